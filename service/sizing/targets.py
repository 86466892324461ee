"""The list of what a storage system must reach: one line for each figure that a benchmark can prove."""

from pydantic import TypeAdapter

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
from service.units import GB

CHECKPOINT_TOLERANCE_FRACTION = 0.05


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
    bandwidth_why = (
        "the persist bandwidth: checkpoint bytes over the interval, with headroom, or over the durable lag"
        if is_async
        else "checkpoint bytes over the stall budget"
    )
    if blocking.staging_stall_seconds is not None:
        bandwidth_why += ", or what keeps the wait for staging memory within the stall that is allowed"
    window = write.window_seconds(blocking)
    listed = [
        _rate(TargetId.WRITE_BANDWIDTH, write.required_gb_per_second, Scope.CLUSTER, bandwidth_why),
        _rate(
            TargetId.NODE_WRITE_BANDWIDTH,
            write.node_gb_per_second,
            Scope.NODE,
            _why_a_node("write", write, checkpoint.bytes),
        ),
    ]
    if is_async:
        listed.append(
            _rate(
                TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD,
                write.required_gb_per_second,
                Scope.CLUSTER,
                "async saves drain while the data loaders read: " + bandwidth_why,
            )
        )
    slowest = (
        "a save is durable when its slowest writer is done"
        if is_async
        else "training waits for the slowest writer"
    )
    if checkpoint.skew > 1.0:
        slowest += f", and the largest shard has {checkpoint.largest_shard_bytes / GB:.4g} GB, "
        slowest += f"{checkpoint.skew:.3g} times the mean"
    listed.append(_time(TargetId.SLOWEST_WRITER_SECONDS, window, Scope.RANK, slowest))
    listed.append(_time(TargetId.BLOCKING_SECONDS, blocking.allowed_seconds, Scope.RANK, "the stall budget"))
    if write.durable_lag_seconds is not None:
        listed.append(
            _time(
                TargetId.PERSIST_SECONDS,
                write.durable_lag_seconds,
                Scope.CLUSTER,
                "a failure before then loses the save",
            )
        )
    if read is not None and restore_target_seconds is not None:
        listed += [
            _rate(
                TargetId.READ_BANDWIDTH,
                read.required_gb_per_second,
                Scope.CLUSTER,
                "bytes read at a restart over the restore target",
            ),
            _rate(
                TargetId.NODE_READ_BANDWIDTH,
                read.node_gb_per_second,
                Scope.NODE,
                _why_a_node("read", read, read.bytes),
            ),
            _time(TargetId.LOAD_SECONDS, restore_target_seconds, Scope.CLUSTER, "the restore target"),
            _time(
                TargetId.RESHARDED_LOAD_SECONDS,
                restore_target_seconds,
                Scope.CLUSTER,
                "the restore target, since a restart after lost hardware is onto fewer nodes",
            ),
        ]
    listed += [
        {
            "id": TargetId.FILE_CREATE_RATE,
            "comparison": Comparison.AT_LEAST,
            "value": metadata.creates_per_second,
            "unit": TargetUnit.PER_SECOND,
            "scope": Scope.CLUSTER,
            "why": "the files of a save over the time in which it is written",
        },
        {
            "id": TargetId.CHECKPOINT_BYTES,
            "comparison": Comparison.WITHIN,
            "value": checkpoint.bytes,
            "unit": TargetUnit.BYTES,
            "scope": Scope.CLUSTER,
            "tolerance_fraction": CHECKPOINT_TOLERANCE_FRACTION,
            "why": "every other figure rests on the bytes per parameter that were assumed",
        },
    ]
    return _TARGETS.validate_python(listed)


def _why_a_node(verb: str, needed: Write | Read, total_bytes: int) -> str:
    if needed.largest_node_gb_per_second is None:
        return f"the {verb} bandwidth over the nodes"
    node_bytes = total_bytes * (needed.node_gb_per_second / needed.required_gb_per_second)
    return f"the node with most to {verb} has {node_bytes / GB:.4g} GB by the layout, and must be done when all are"


_Line = dict[str, object]
_TARGETS = TypeAdapter(list[Target])
"""Makes all targets at once, which takes half the time of one by one: they are a third of a sizing."""


def _rate(target_id: TargetId, value: float, scope: Scope, why: str) -> _Line:
    return {
        "id": target_id,
        "comparison": Comparison.AT_LEAST,
        "value": value,
        "unit": TargetUnit.GB_PER_SECOND,
        "scope": scope,
        "why": why,
    }


def _time(target_id: TargetId, value: float, scope: Scope, why: str) -> _Line:
    return {
        "id": target_id,
        "comparison": Comparison.AT_MOST,
        "value": value,
        "unit": TargetUnit.SECONDS,
        "scope": scope,
        "why": why,
    }
