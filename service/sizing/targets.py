"""The list of what a storage system must reach: one line for each figure that a benchmark can prove."""

from collections.abc import Callable

from service.sizing.sizing import (
    Blocking,
    Checkpoint,
    Comparison,
    Metadata,
    Read,
    Scope,
    Target,
    TargetId,
    TargetUnit,
    Write,
)
from service.wire import completed

CHECKPOINT_TOLERANCE_FRACTION = 0.05

_SYNC_WHY = "checkpoint bytes over the stall budget"
_ASYNC_WHY = (
    "the persist bandwidth: checkpoint bytes over the interval, with headroom, or over the durable lag"
)


def _rate(target_id: TargetId, scope: Scope, why: str) -> Callable[..., Target]:
    return completed(
        Target,
        id=target_id,
        comparison=Comparison.AT_LEAST,
        unit=TargetUnit.GB_PER_SECOND,
        scope=scope,
        why=why,
    )


def _time(target_id: TargetId, scope: Scope, why: str) -> Callable[..., Target]:
    return completed(
        Target, id=target_id, comparison=Comparison.AT_MOST, unit=TargetUnit.SECONDS, scope=scope, why=why
    )


# Everything but the value, stated once: the value is what a sizing adds.
_sync_write = _rate(TargetId.WRITE_BANDWIDTH, Scope.CLUSTER, _SYNC_WHY)
_async_write = _rate(TargetId.WRITE_BANDWIDTH, Scope.CLUSTER, _ASYNC_WHY)
_node_write = _rate(TargetId.NODE_WRITE_BANDWIDTH, Scope.NODE, "the write bandwidth over the nodes")
_write_under_read_load = _rate(
    TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD,
    Scope.CLUSTER,
    "async saves drain while the data loaders read: " + _ASYNC_WHY,
)
_sync_writer = _time(TargetId.SLOWEST_WRITER_SECONDS, Scope.RANK, "training waits for the slowest writer")
_async_writer = _time(
    TargetId.SLOWEST_WRITER_SECONDS, Scope.RANK, "a save is durable when its slowest writer is done"
)
_blocking = _time(TargetId.BLOCKING_SECONDS, Scope.RANK, "the stall budget")
_persist = _time(TargetId.PERSIST_SECONDS, Scope.CLUSTER, "a failure before then loses the save")
_read = _rate(TargetId.READ_BANDWIDTH, Scope.CLUSTER, "bytes read at a restart over the restore target")
_node_read = _rate(TargetId.NODE_READ_BANDWIDTH, Scope.NODE, "the read bandwidth over the nodes")
_load = _time(TargetId.LOAD_SECONDS, Scope.CLUSTER, "the restore target")
_resharded_load = _time(
    TargetId.RESHARDED_LOAD_SECONDS,
    Scope.CLUSTER,
    "the restore target, since a restart after lost hardware is onto fewer nodes",
)
_create_rate = completed(
    Target,
    id=TargetId.FILE_CREATE_RATE,
    comparison=Comparison.AT_LEAST,
    unit=TargetUnit.PER_SECOND,
    scope=Scope.CLUSTER,
    why="the files of a save over the time in which it is written",
)
_checkpoint_bytes = completed(
    Target,
    id=TargetId.CHECKPOINT_BYTES,
    comparison=Comparison.WITHIN,
    unit=TargetUnit.BYTES,
    scope=Scope.CLUSTER,
    tolerance_fraction=CHECKPOINT_TOLERANCE_FRACTION,
    why="every other figure rests on the bytes per parameter that were assumed",
)


def targets(
    *,
    is_async: bool,
    checkpoint: Checkpoint,
    blocking: Blocking,
    write: Write,
    read: Read | None,
    metadata: Metadata,
    restore_target_seconds: float | None,
) -> list[Target]:
    """Return the targets of a sizing, in the order of the contract."""
    required, per_node = write.required_gb_per_second, write.per_node_gb_per_second
    lag_seconds = write.durable_lag_seconds
    if is_async:
        listed = [
            _async_write(value=required),
            _node_write(value=per_node),
            _write_under_read_load(value=required),
            _async_writer(value=lag_seconds),
            _blocking(value=blocking.seconds),
            _persist(value=lag_seconds),
        ]
    else:
        listed = [
            _sync_write(value=required),
            _node_write(value=per_node),
            _sync_writer(value=blocking.seconds),
            _blocking(value=blocking.seconds),
        ]
    if read is not None and restore_target_seconds is not None:
        listed += [
            _read(value=read.required_gb_per_second),
            _node_read(value=read.per_node_gb_per_second),
            _load(value=restore_target_seconds),
            _resharded_load(value=restore_target_seconds),
        ]
    listed.append(_create_rate(value=metadata.creates_per_second))
    listed.append(_checkpoint_bytes(value=float(checkpoint.bytes)))
    return listed
