"""The write, persist, read and metadata rates that a requirement asks for, and the times that a system takes."""

from enum import StrEnum
from typing import NamedTuple

from service.units import GB


class Limit(StrEnum):
    """Which limit of a storage system sets a transfer's time."""

    AGGREGATE_BANDWIDTH = "aggregate_bandwidth"
    NODE_BANDWIDTH = "node_bandwidth"
    FILE_CREATES = "file_creates"


def sync_write_bandwidth(*, checkpoint_bytes: float, blocking_seconds: float) -> float:
    """Return the bandwidth at which a whole save fits the stall budget. [10^9 B/s]

    ``S / C``: an end-to-end rate at the client, file creation, fsync and close included.

    References:
        "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B", step 2.
    """
    return checkpoint_bytes / blocking_seconds / GB


def minimum_persist_bandwidth(*, checkpoint_bytes: float, interval_seconds: float) -> float:
    """Return the bandwidth at which one save drains in one interval. [10^9 B/s]

    ``S / T``, the floor of "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B" for async saves.
    """
    return checkpoint_bytes / interval_seconds / GB


def strict_persist_bandwidth(
    *, checkpoint_bytes: float, interval_seconds: float, blocking_seconds: float, staging_buffers: int
) -> float:
    """Return the bandwidth below which a save waits for the one before it. [10^9 B/s]

    With one staging buffer the drain has to end before the next copy starts, ``S / (T - C)``; a second
    buffer gives it the whole interval, ``S / T``.
    """
    window = interval_seconds - (blocking_seconds if staging_buffers == 1 else 0.0)
    return checkpoint_bytes / window / GB


def persist_bandwidth(*, checkpoint_bytes: float, interval_seconds: float, headroom: float) -> float:
    """Return the bandwidth that an async save asks for where no durable lag is stated. [10^9 B/s]

    ``S / T * headroom``.

    References:
        "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B": plan two to three times the floor.
    """
    return checkpoint_bytes / interval_seconds * headroom / GB


def persist_bandwidth_for_lag(
    *, checkpoint_bytes: float, interval_seconds: float, headroom: float, durable_lag_seconds: float
) -> float:
    """Return the bandwidth that an async save asks for with a durable lag stated. [10^9 B/s]

    The larger of ``S / T * headroom`` and ``S / D``.
    """
    return max(checkpoint_bytes / interval_seconds * headroom, checkpoint_bytes / durable_lag_seconds) / GB


def persist_bandwidth_for_stall(
    *, checkpoint_bytes: float, interval_seconds: float, headroom: float, drain_limit_seconds: float
) -> float:
    """Return the bandwidth that an async save asks for where a slower drain would stall it for too long. [10^9 B/s]

    The larger of ``S / T * headroom`` and ``S / L``, for the longest drain `L` that keeps the stall to what is allowed
    (`staging.serial_drain_limit`), where no shorter durable lag is stated. The stall is a limit of its own, and gets no
    headroom.
    """
    return max(checkpoint_bytes / interval_seconds * headroom, checkpoint_bytes / drain_limit_seconds) / GB


def durable_lag(*, interval_seconds: float, headroom: float) -> float:
    """Return how long a save takes to become durable at the bandwidth of `persist_bandwidth`. [s]

    ``S / (S / T * headroom) = T / headroom``: the bytes cancel, and with them a rounding that could make the
    lag longer than the interval.
    """
    return interval_seconds / headroom


def read_bytes(*, checkpoint_bytes: float, read_amplification: float) -> float:
    """Return what all ranks together read at a restart. [B]"""
    return checkpoint_bytes * read_amplification


def read_bandwidth(*, read_bytes: float, target_seconds: float) -> float:
    """Return the bandwidth at which a restart's load meets its target. [10^9 B/s]

    References:
        "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B", the section on the restart path.
    """
    return read_bytes / target_seconds / GB


def share(*, total_gb_per_second: float, holders: int) -> float:
    """Return an equal share of an aggregate bandwidth: of a node, or of a writer. [10^9 B/s]"""
    return total_gb_per_second / holders


def shard_bandwidth(*, largest_shard_bytes: float, window_seconds: float) -> float:
    """Return what the writer with most to write must sustain to finish in the save's time. [10^9 B/s]"""
    return largest_shard_bytes / window_seconds / GB


def largest_node_bandwidth(
    *, total_gb_per_second: float, total_bytes: float, largest_node_bytes: float
) -> float:
    """Return what the node with most to move must sustain to be done when all are. [10^9 B/s]

    Its part of the bandwidth is its part of the bytes.

    Args:
        total_gb_per_second: What all nodes together must sustain. [10^9 B/s]
        total_bytes: What they move. [B]
        largest_node_bytes: What that node moves of it. [B]
    """
    return total_gb_per_second * (largest_node_bytes / total_bytes)


def create_rate(*, files: float, window_seconds: float) -> float:
    """Return the files to be made a second while a save is written. [1/s]"""
    return files / window_seconds


def staging_bytes(*, node_bytes: float, staging_buffers: int) -> float:
    """Return the host memory that async staging takes on a node. [B]

    References:
        "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B": the node's shard for each staging buffer.
    """
    return node_bytes * staging_buffers


class Transfer(NamedTuple):
    """How long a transfer takes, and which limit sets it."""

    seconds: float
    limited_by: Limit


def transfer_time(
    *,
    total_bytes: float,
    total_gb_per_second: float | None,
    node_bytes: float,
    node_gb_per_second: float | None,
    files: float = 0.0,
    file_creates_per_second: float | None = None,
) -> Transfer:
    """Return how long a storage system takes for a save or a load: the slowest of its limits.

    The limits are the bytes over the aggregate bandwidth, the largest node's bytes over a node's bandwidth,
    and the files over the create rate, creates being taken to overlap with the data. A limit that is not
    known is left out; at least one must be.

    Raises:
        ValueError: No limit is known.
    """
    limits = []
    if total_gb_per_second is not None:
        limits.append(Transfer(total_bytes / (total_gb_per_second * GB), Limit.AGGREGATE_BANDWIDTH))
    if node_gb_per_second is not None:
        limits.append(Transfer(node_bytes / (node_gb_per_second * GB), Limit.NODE_BANDWIDTH))
    if file_creates_per_second is not None:
        limits.append(Transfer(files / file_creates_per_second, Limit.FILE_CREATES))
    if not limits:
        raise ValueError("no limit of the storage system is known")
    return max(limits, key=lambda transfer: transfer.seconds)
