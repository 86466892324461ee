"""Which figure each target is."""

from service.sizing.explain.lines import Facts, Lines
from service.sizing.sizing import Read, TargetId, Write


def explain_targets(lines: Lines, job: Facts) -> None:
    """Explain what a storage system must reach."""
    sizing = job.sizing
    lag = ("write.durable_lag_seconds", sizing.write.durable_lag_seconds)
    window = lag if job.is_async else ("blocking.seconds", sizing.blocking.seconds)
    if sizing.write.drain_seconds is not None:
        window = ("write.drain_seconds", sizing.write.drain_seconds)
    required = ("write.required_gb_per_second", sizing.write.required_gb_per_second)
    target = (
        "restore.target_seconds",
        job.spec.restore.target_seconds if job.spec.restore is not None else None,
    )
    read, read_per_node = (
        (
            ("read.required_gb_per_second", sizing.read.required_gb_per_second),
            _of_a_node("read", sizing.read),
        )
        if sizing.read is not None
        else (target, target)
    )
    figures = {
        TargetId.WRITE_BANDWIDTH: required,
        TargetId.NODE_WRITE_BANDWIDTH: _of_a_node("write", sizing.write),
        TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: required,
        TargetId.SLOWEST_WRITER_SECONDS: window,
        TargetId.BLOCKING_SECONDS: ("blocking.seconds", sizing.blocking.allowed_seconds),
        TargetId.PERSIST_SECONDS: lag,
        TargetId.READ_BANDWIDTH: read,
        TargetId.NODE_READ_BANDWIDTH: read_per_node,
        TargetId.LOAD_SECONDS: target,
        TargetId.RESHARDED_LOAD_SECONDS: target,
        TargetId.FILE_CREATE_RATE: ("metadata.creates_per_second", sizing.metadata.creates_per_second),
        TargetId.CHECKPOINT_BYTES: ("checkpoint.bytes", sizing.checkpoint.bytes),
    }
    for at, listed in enumerate(sizing.targets):
        lines.add(f"#/targets/{at}/value", "same", dict([figures[listed.id]]))
        if listed.tolerance_fraction is not None:
            lines.add(
                f"#/targets/{at}/tolerance_fraction",
                "given",
                {"tolerance_fraction": listed.tolerance_fraction},
                source="How far a measured checkpoint may be from the assumed one before every figure moves",
            )


def _of_a_node(block: str, needed: Write | Read) -> tuple[str, float]:
    which = "per_node" if needed.largest_node_gb_per_second is None else "largest_node"
    return f"{block}.{which}_gb_per_second", needed.node_gb_per_second
