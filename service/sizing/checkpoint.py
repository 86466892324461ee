"""What one checkpoint holds; shards, writers, files."""

import math
from typing import NamedTuple


def checkpoint_bytes(
    *, parameters: float, bytes_per_parameter: float, reduction_factor: float, extra_bytes: float
) -> float:
    """Return the bytes of one checkpoint. [B]

    ``S = parameters * bytes_per_parameter * reduction_factor + extra_bytes``. Everything that is stored
    counts: all experts of a mixture, optimiser moments and master weights.

    Args:
        parameters: All stored parameters.
        bytes_per_parameter: 12 for fp32 master weights and two Adam moments, 14 with bf16 weights, 16 for
            ZeRO's in-memory figure. [B]
        reduction_factor: Fraction of those bytes that is written.
        extra_bytes: Data-loader and random-number state. [B]

    References:
        S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
        SC20, section 3.1, for what mixed-precision Adam holds.
    """
    return parameters * bytes_per_parameter * reduction_factor + extra_bytes


def state_item_bytes(*, parameters: int, bytes_per_parameter: float) -> float:
    """Return one item of the saved state. [B]"""
    return parameters * bytes_per_parameter


def written_bytes(*, state_bytes: float, written_fraction: float, extra_bytes: float) -> float:
    """Return what a full save writes of an itemised state. [B]

    Args:
        state_bytes: The items of the recipe, added up. [B]
        written_fraction: What compression and deduplication leave of it.
        extra_bytes: What is saved beside it, over all ranks. [B]
    """
    return state_bytes * written_fraction + extra_bytes


def node_count(*, gpus: int, gpus_per_node: int) -> int:
    """Return the nodes that hold the GPUs, the last one perhaps not full."""
    return -(-gpus // gpus_per_node)


def even_share(*, checkpoint_bytes: float, holders: int) -> float:
    """Return the bytes of each of `holders` equal shares. [B]"""
    return checkpoint_bytes / holders


def largest_shard(*, checkpoint_bytes: float, writers: int, skew: float) -> float:
    """Return the bytes of the writer with most to write. [B]

    Args:
        checkpoint_bytes: The whole checkpoint. [B]
        writers: How many share it.
        skew: Largest shard over mean shard; real layouts are uneven (Llama 3: 1 MB to 4 GB a GPU, arXiv:2407.21783).
    """
    return checkpoint_bytes / writers * skew


def skew_of_largest(*, largest_shard_bytes: float, checkpoint_bytes: float, writers: int) -> float:
    """Return the largest shard over the mean one."""
    return largest_shard_bytes / (checkpoint_bytes / writers)


def spread_nodes(*, nodes: int, writers: int) -> int:
    """Return the nodes that write where writers are spread over as many as there are."""
    return min(nodes, writers)


def largest_node_share(*, checkpoint_bytes: float, nodes: int, writers: int, skew: float) -> float:
    """Return an upper bound of what the node with most to write holds. [B]

    Every rank of that node is taken to hold the largest shard, since the layout is not known. Where fewer
    ranks write than there are nodes, the node of a writer holds a shard and others nothing. No node holds more
    than the whole checkpoint.
    """
    return min(checkpoint_bytes / min(nodes, writers) * skew, checkpoint_bytes)


UNEVEN_SKEW = 1.5
"""From here on a test in which every writer writes the largest shard asks for half as much again as a save."""


class Carriers(NamedTuple):
    """Nodes that write a whole checkpoint if each has as much to write as the fullest one."""

    nodes: int
    ranks_per_node: int
    """Ranks of each that write the largest shard."""


def carriers(
    *, checkpoint_bytes: float, largest_shard_bytes: float, largest_node_bytes: float, writing_nodes: int
) -> Carriers:
    """Return on how few ranks the largest shard makes up the checkpoint, as full a node as the fullest.

    A benchmark gives all its ranks the same to write. On these each rank, and each node, has what the one with most
    has, and the storage has what a save brings it, give or take a twentieth: where no whole number of nodes comes so
    close, more.

    Args:
        checkpoint_bytes: What a save writes. [B]
        largest_shard_bytes: What the writer with most writes of it. [B]
        largest_node_bytes: What the node with most writes of it. [B]
        writing_nodes: Nodes with a writer: never more than these.
    """
    shard = max(largest_shard_bytes, 1.0)
    # Bytes are rounded, so that eight equal shards may come to a little more than eight times one.
    per_node = max(math.ceil(largest_node_bytes / shard - _ROUNDED), 1)
    exact = checkpoint_bytes / (shard * per_node)
    fewer = math.floor(exact + _ROUNDED)
    nodes = fewer if fewer >= _ALMOST_ALL * exact else math.ceil(exact)
    return Carriers(nodes=min(max(nodes, 1), writing_nodes), ranks_per_node=per_node)


_ROUNDED = 0.01
_ALMOST_ALL = 0.95


def file_count(*, writers: int, files_per_writer: int) -> int:
    """Return the files of one save: every writer's, and DCP's one `.metadata`.

    References:
        PyTorch, "Distributed Checkpoint", which writes at least one file per rank and a global `.metadata`.
    """
    return writers * files_per_writer + 1
