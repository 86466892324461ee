"""How a checkpoint is cut: by the scenario's parallel layout, or as its shards are stated."""

from collections.abc import Iterator
from typing import NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing import checkpoint
from service.sizing.layout import LayoutRule, ReplicasWritten
from service.sizing.placement import Placement, placed, spread_largest_shard_bytes
from service.sizing.sizing import SizingWarning, WarningCode
from service.sizing.spec import ScenarioSpec
from service.units import GB

FEW_WRITE_RATIO = 1.25
"""A largest shard so many times what it would be by `spread` is told."""
MANY_READ_RATIO = 2.0
"""Likewise reads over what was written."""


class Shards(NamedTuple):
    """A checkpoint over its writers, its nodes and its readers."""

    checkpoint_bytes: float
    """What one save writes. [B]"""
    writers: int
    writing_nodes: int
    skew: float
    largest_shard_bytes: float
    node_share_bytes: float
    """What the node with most writes: by the layout, or an upper bound. [B]"""
    read_amplification: float
    node_read_bytes: float
    """What the node with most reads at a load, likewise. [B]"""
    placement: Placement | None


def shards_of(
    spec: ScenarioSpec, *, distinct_bytes: float, nodes: int, warnings: list[SizingWarning]
) -> Shards:
    """Return how the checkpoint is cut.

    Args:
        spec: The scenario.
        distinct_bytes: The checkpoint with everything in it once. [B]
        nodes: Nodes of the job.
        warnings: Grows by the assumption that shards are even, where nothing else is known.

    Raises:
        Unsatisfiable: The stated largest shard is impossible, or the layout's copies are beyond counting.
    """
    if spec.cluster.parallelism is not None:
        return _by_layout(spec, distinct_bytes, nodes, warnings)
    writers = spec.shards.writers or spec.cluster.gpus
    skew = _stated_skew(spec, distinct_bytes, writers, warnings)
    node_share = checkpoint.largest_node_share(
        checkpoint_bytes=distinct_bytes, nodes=nodes, writers=writers, skew=skew
    )
    amplification = 1.0
    if spec.restore is not None and spec.restore.read_amplification is not None:
        amplification = spec.restore.read_amplification
    return Shards(
        checkpoint_bytes=distinct_bytes,
        writers=writers,
        writing_nodes=checkpoint.spread_nodes(nodes=nodes, writers=writers),
        skew=skew,
        largest_shard_bytes=checkpoint.largest_shard(
            checkpoint_bytes=distinct_bytes, writers=writers, skew=skew
        ),
        node_share_bytes=node_share,
        read_amplification=amplification,
        node_read_bytes=node_share * amplification,
        placement=None,
    )


def _by_layout(
    spec: ScenarioSpec, distinct_bytes: float, nodes: int, warnings: list[SizingWarning]
) -> Shards:
    placement = placed(spec, distinct_bytes)
    warnings.extend(_warnings(spec, placement, nodes))
    largest, node = placement.largest_shard_bytes, placement.node.bytes
    amplification, node_read = placement.read_amplification, placement.read_node.bytes
    if spec.restore is not None and spec.restore.read_amplification is not None:
        amplification = spec.restore.read_amplification
        node_read = node * amplification
    return Shards(
        checkpoint_bytes=placement.bytes,
        writers=placement.writers,
        writing_nodes=placement.writing_nodes,
        skew=largest / placement.mean_shard_bytes,
        largest_shard_bytes=largest,
        node_share_bytes=node,
        read_amplification=amplification,
        node_read_bytes=node_read,
        placement=placement,
    )


def _warnings(spec: ScenarioSpec, placement: Placement, nodes: int) -> Iterator[SizingWarning]:
    """Yield where few write, or all read, what many ranks hold alike."""
    stated = spec.cluster.parallelism
    assert stated is not None  # noqa: S101 - a placement has it
    largest = placement.largest_shard_bytes
    written_once = (
        placement.layout.rule is LayoutRule.FRAMEWORK
        and placement.layout.replicas_written is ReplicasWritten.ONCE
        and placement.layout.data > 1
    )
    few_nodes = placement.writing_nodes < nodes
    said = "replicas_written" in stated.model_fields_set
    spread = spread_largest_shard_bytes(placement) if written_once and (few_nodes or not said) else largest
    beside = (
        f" The largest shard is {largest / GB:.4g} GB, and {spread / GB:.4g} GB by replicas_written spread."
        if spread < largest
        else ""
    )
    if few_nodes:
        yield SizingWarning(
            code=WarningCode.FEW_NODES_WRITE,
            pointer="#/cluster/parallelism/replicas_written",
            message=f"Only {placement.writing_nodes} of {nodes} nodes write, so each of them has to write more "
            f"than where all do: let replicas_written be spread, or see that their network carries it.{beside}",
        )
    elif not said and largest > FEW_WRITE_RATIO * spread:
        yield SizingWarning(
            code=WarningCode.REPLICAS_WRITTEN_BY_FEW,
            pointer="#/cluster/parallelism/replicas_written",
            message="Of the ranks that hold the same, the first is taken to write all of it, since replicas_written "
            f"was not given.{beside} Megatron-LM (fully parallel save) and PyTorch DCP spread it: give spread if you "
            "use them, or once if this is meant.",
        )
    amplification, restore = placement.read_amplification, spec.restore
    is_read = restore is not None or spec.storage is not None
    if (
        amplification > MANY_READ_RATIO
        and is_read
        and (restore is None or restore.read_amplification is None)
    ):
        yield SizingWarning(
            code=WarningCode.REPLICAS_READ_BY_ALL,
            pointer="#/restore/read_amplification" if restore is not None else "#/cluster/parallelism",
            message=f"All ranks together read {amplification:.3g} times what a save writes, since each reads all that "
            "it holds, as its copies do: the read targets count every byte of it. Where one rank reads for its copies "
            "and passes it on, as Megatron-LM's fully parallel load does, or a cache serves them, give a "
            "restore.read_amplification near 1.",
        )


def _stated_skew(spec: ScenarioSpec, total: float, writers: int, warnings: list[SizingWarning]) -> float:
    stated = spec.shards
    if stated.largest_shard_bytes is not None:
        if not total / writers - 1.0 <= stated.largest_shard_bytes <= total:
            raise Unsatisfiable(
                Fault(
                    "#/shards/largest_shard_bytes",
                    "out_of_range",
                    f"{writers} writers share {total:.0f} bytes, so the largest shard lies between "
                    f"{total / writers:.0f} and {total:.0f} bytes.",
                )
            )
        return checkpoint.skew_of_largest(
            largest_shard_bytes=stated.largest_shard_bytes, checkpoint_bytes=total, writers=writers
        )
    if stated.skew is not None:
        return stated.skew
    if writers > 1:
        warnings.append(
            SizingWarning(
                code=WarningCode.EVEN_SHARDS_ASSUMED,
                pointer="#/shards",
                message="All shards are taken to be equal, which real layouts are not, and the largest sets a "
                "save's time: give the parallel layout, or skew or largest_shard_bytes as measured.",
            )
        )
    return 1.0
