"""How the interval, the stall and the rates that they ask for came about."""

from service.sizing import presets, staging
from service.sizing.explain.lines import CREATES_OVERLAP, EXPONENTIAL, LAST_NODE_FULL, Facts, Lines
from service.sizing.sizing import Blocking, Interval
from service.sizing.spec import DEFAULT_HEADROOM, IntervalRule
from service.sizing.staged import Choice, Staged, staged
from service.units import GB


def explain_interval(
    lines: Lines,
    job: Facts,
    at: str,
    block: Interval,
    blocking_seconds: float,
    durable_lag_seconds: float | None,
    *,
    stall_is_delivered: bool = False,
    drain_seconds: float | None = None,
) -> None:
    """Explain an interval block: of the sizing, or of what is delivered."""
    save = job.spec.save
    inputs = {"blocking_seconds": blocking_seconds, "mtbf_seconds": job.mtbf_seconds}
    if save.staging_budget_bytes_per_node is not None and durable_lag_seconds is not None:
        explain_staged_interval(lines, job, f"{at}/interval/seconds", job.mtbf_seconds, drain_seconds)
    elif block.rule is IntervalRule.FIXED:
        lines.add(f"{at}/interval/seconds", "given", {"interval.seconds": job.spec.interval.seconds})
    elif save.overhead_fraction is not None and not stall_is_delivered:
        lines.add(
            f"{at}/interval/seconds",
            f"{block.rule}_interval_at_overhead",
            {"overhead_fraction": save.overhead_fraction, "mtbf_seconds": job.mtbf_seconds},
        )
    else:
        lines.add(f"{at}/interval/seconds", f"{block.rule}_interval", inputs)
    for rule in (IntervalRule.YOUNG, IntervalRule.DALY, IntervalRule.EXACT):
        lines.add(
            f"{at}/interval/{rule}_seconds",
            f"{rule}_interval",
            inputs,
            EXPONENTIAL if rule is IntervalRule.EXACT else None,
        )
    if block.effective_seconds is not None:
        lines.add(
            f"{at}/interval/effective_seconds",
            "effective_interval",
            {
                "interval_seconds": block.seconds,
                "blocking_seconds": blocking_seconds,
                "durable_lag_seconds": durable_lag_seconds,
                "staging_buffers": job.buffers,
            },
        )
    if block.best_seconds is not None:
        lines.add(
            f"{at}/interval/best_seconds",
            "best_interval",
            {
                **inputs,
                "durable_lag_seconds": durable_lag_seconds,
                "staging_buffers": job.buffers,
            },
            EXPONENTIAL,
        )


def explain_staging(
    lines: Lines, job: Facts, at: str, block: Blocking, interval_seconds: float, drain_seconds: float
) -> None:
    """Explain a stall that a staging budget bears on: of the sizing, or of what is delivered."""
    save = job.spec.save
    overlaps = bool(save.drain_overlaps_copy)
    assumed = [
        "The copy takes all of the stall that is allowed." if save.copy_seconds is None else "",
        "Nothing drains while the copy runs." if save.drain_overlaps_copy is None else "",
        job.even or "",
        "Every rank of the node holds the largest shard, which is an upper bound."
        if job.even is None and job.placement is None
        else "",
    ]
    lines.add(
        f"{at}/blocking/staging_stall_seconds",
        "overlapped_stall" if overlaps else "serial_stall",
        _through_staging(job, block.allowed_seconds, drain_seconds),
        " ".join(filter(None, assumed)),
    )
    if block.budget_seconds is not None:
        _explain_allowed(lines, job, f"{at}/blocking/budget_seconds", interval_seconds)
        lines.add(
            f"{at}/blocking/seconds",
            "same",
            {"blocking.staging_stall_seconds": block.staging_stall_seconds},
            "The budget is what is wanted; the longer stall is what comes.",
        )
    else:
        _explain_allowed(lines, job, f"{at}/blocking/seconds", interval_seconds)


def explain_staged_interval(
    lines: Lines, job: Facts, pointer: str, mtbf_seconds: float, drain_seconds: float | None = None
) -> None:
    """Explain the interval of saves that go through staging memory."""
    found = _staged(job, mtbf_seconds, drain_seconds)
    if found is not None:
        lines.add(
            pointer,
            found.interval.formula,
            found.interval.inputs,
            "A wait that grows with the interval takes its fraction of any interval: the rule is asked for the rest of "
            "the stall, in the time that is left."
            if found.interval.formula != "given"
            else None,
        )


def _staged(job: Facts, mtbf_seconds: float, drain_seconds: float | None = None) -> Staged | None:
    return staged(
        job.spec,
        node_share_bytes=job.staged_share_bytes,
        mtbf_seconds=mtbf_seconds,
        drain_seconds=drain_seconds,
    )


def drain_limit(job: Facts, mtbf_seconds: float) -> Choice | None:
    """Return the drain that the stall through a staging budget asks for; None where something else does."""
    if job.spec.save.staging_budget_bytes_per_node is None:
        return None
    found = _staged(job, mtbf_seconds)
    return found.limit if found is not None else None


def _through_staging(job: Facts, allowed_seconds: float, drain_seconds: float) -> dict[str, float]:
    """Return the inputs of a stall that goes through staging memory."""
    save = job.spec.save
    return {
        "copy_seconds": save.copy_seconds if save.copy_seconds is not None else allowed_seconds,
        "node_share_bytes": job.staged_share_bytes,
        "staging_budget_bytes": float(save.staging_budget_bytes_per_node or 0),
        "drain_gb_per_second": job.staged_share_bytes / drain_seconds / GB,
    }


def _allowed_seconds(job: Facts, interval_seconds: float) -> float:
    save = job.spec.save
    if save.blocking_seconds is not None:
        return save.blocking_seconds
    return (save.overhead_fraction or 0.0) * interval_seconds


def explain_stall_in_force(
    lines: Lines, job: Facts, pointer: str, interval_seconds: float, drain_seconds: float
) -> None:
    """Explain the stall of a save through staging memory in one line."""
    allowed_seconds = _allowed_seconds(job, interval_seconds)
    lines.add(
        pointer,
        "overlapped_stall_in_force" if job.spec.save.drain_overlaps_copy else "serial_stall_in_force",
        {"allowed_seconds": allowed_seconds, **_through_staging(job, allowed_seconds, drain_seconds)},
    )


def staged_lag(job: Facts, interval_seconds: float, drain_seconds: float) -> float:
    """Return the durable lag of a save through staging memory, for the lines that need it. [s]"""
    inputs = _through_staging(job, _allowed_seconds(job, interval_seconds), drain_seconds)
    share = {name: inputs[name] for name in ("node_share_bytes", "drain_gb_per_second")}
    if job.spec.save.drain_overlaps_copy:
        return staging.overlapped_lag(**share, staging_stall_seconds=staging.overlapped_stall(**inputs))
    return staging.serial_lag(**share, staging_budget_bytes=inputs["staging_budget_bytes"])


def explain_staged_lag(lines: Lines, job: Facts, pointer: str, block: Blocking, drain_seconds: float) -> None:
    """Explain the durable lag that is left of a drain when training goes on."""
    save = job.spec.save
    inputs = {
        "node_share_bytes": job.staged_share_bytes,
        "drain_gb_per_second": job.staged_share_bytes / drain_seconds / GB,
    }
    if save.drain_overlaps_copy:
        inputs["staging_stall_seconds"] = block.staging_stall_seconds or 0.0
        lines.add(pointer, "overlapped_lag", inputs)
    else:
        inputs["staging_budget_bytes"] = save.staging_budget_bytes_per_node or 0
        lines.add(pointer, "serial_lag", inputs)


def _explain_allowed(lines: Lines, job: Facts, pointer: str, interval_seconds: float) -> None:
    save = job.spec.save
    if save.blocking_seconds is not None:
        lines.add(pointer, "given", {"save.blocking_seconds": save.blocking_seconds})
    else:
        lines.add(
            pointer,
            "stall",
            {"overhead_fraction": save.overhead_fraction, "interval_seconds": interval_seconds},
        )


def explain_blocking(lines: Lines, job: Facts) -> None:
    """Explain the stall of one save."""
    save, sizing = job.spec.save, job.sizing
    if sizing.blocking.staging_stall_seconds is not None:
        explain_staging(
            lines,
            job,
            "#",
            sizing.blocking,
            sizing.interval.seconds,
            sizing.write.window_seconds(sizing.blocking),
        )
    elif save.blocking_seconds is not None or save.overhead_fraction is not None:
        _explain_allowed(lines, job, "#/blocking/seconds", sizing.interval.seconds)
    else:
        explain_transfer(lines, job, "#/blocking/seconds", reading=False)
    lines.add(
        "#/blocking/overhead_fraction",
        "ratio",
        {"blocking.seconds": sizing.blocking.seconds, "interval.seconds": sizing.interval.seconds},
    )


def explain_write(lines: Lines, job: Facts) -> None:
    """Explain the bandwidth that saves need."""
    spec, block, sizing = job.spec, job.sizing.write, job.sizing
    total = {"checkpoint_bytes": sizing.checkpoint.bytes}
    stalled = {**total, "blocking_seconds": sizing.blocking.seconds}
    periodic = {**total, "interval_seconds": sizing.interval.seconds}
    window = block.window_seconds(sizing.blocking)
    if job.is_async:
        drained = window - (block.durable_lag_seconds or 0.0)
        lag = spec.save.durable_lag_seconds
        limit = drain_limit(job, job.mtbf_seconds)
        headroom = (
            f"Headroom of {DEFAULT_HEADROOM:g}, between the articles' 2 and 3."
            if spec.save.headroom is None
            else None
        )
        asked_for = {**periodic, "headroom": job.headroom, "durable_lag_seconds": lag}
        formula = "persist_bandwidth" if lag is None else "persist_bandwidth_for_lag"
        if limit is not None:
            formula = "persist_bandwidth_for_stall"
            asked_for |= {"drain_limit_seconds": limit.seconds, "durable_lag_seconds": None}
        lines.add("#/write/required_gb_per_second", formula, asked_for, headroom)
        lines.add("#/write/minimum_gb_per_second", "minimum_persist_bandwidth", periodic)
        lines.add(
            "#/write/strict_minimum_gb_per_second",
            "strict_persist_bandwidth",
            {
                **periodic,
                "blocking_seconds": sizing.blocking.seconds - drained,
                "staging_buffers": job.buffers,
            },
            "What drains in the stall has no need of the interval."
            if block.drain_seconds is not None
            else None,
        )
        pointer = "#/write/durable_lag_seconds"
        if block.drain_seconds is not None:
            explain_staged_lag(lines, job, pointer, sizing.blocking, block.drain_seconds)
            pointer = "#/write/drain_seconds"
        if limit is not None:
            lines.add(
                pointer,
                limit.formula,
                limit.inputs,
                "The longest drain after which a save has stopped training for no longer than is allowed.",
            )
        elif lag is not None:
            lines.add(pointer, "given", {"save.durable_lag_seconds": lag})
        else:
            lines.add(
                pointer,
                "durable_lag",
                {"interval_seconds": sizing.interval.seconds, "headroom": job.headroom},
                "The save drains at the required bandwidth.",
            )
    else:
        lines.add("#/write/required_gb_per_second", "sync_write_bandwidth", stalled)
        lines.add("#/write/minimum_gb_per_second", "sync_write_bandwidth", stalled)
    required = {"total_gb_per_second": block.required_gb_per_second}
    lines.add(
        "#/write/per_node_gb_per_second",
        "share",
        {**required, "holders": sizing.checkpoint.writing_nodes},
        LAST_NODE_FULL,
    )
    lines.add(
        "#/write/per_writer_gb_per_second",
        "share",
        {**required, "holders": sizing.checkpoint.writers},
        "An even split.",
    )
    lines.add(
        "#/write/largest_shard_gb_per_second",
        "shard_bandwidth",
        {
            "largest_shard_bytes": job.placement.largest_shard_bytes
            if job.placement is not None
            else total["checkpoint_bytes"] / sizing.checkpoint.writers * job.skew,
            "window_seconds": window,
        },
        job.even,
    )
    if block.largest_node_gb_per_second is not None:
        lines.add(
            "#/write/largest_node_gb_per_second",
            "largest_node_bandwidth",
            {
                **required,
                "total_bytes": total["checkpoint_bytes"],
                "largest_node_bytes": job.node_share_bytes,
            },
        )


def explain_transfer(lines: Lines, job: Facts, pointer: str, *, reading: bool) -> None:
    """Explain a transfer's time on the given storage system."""
    storage, block = job.spec.storage_system, job.sizing.checkpoint
    if storage is None:
        return
    creates = storage.file_creates_per_second if not reading else None
    moved = job.saved.restored_bytes if reading else job.saved.full_bytes
    assumption, source = "The system holds its stated figures." if reading else CREATES_OVERLAP, None
    figure = "read_gb_per_second" if reading else "write_gb_per_second"
    if storage.preset is not None and getattr(job.spec.storage, figure) is None:
        preset = presets.storage_systems()[storage.preset]
        assumption, source = f"{assumption} {preset.note}.", preset.source
    lines.add(
        pointer,
        "transfer_time",
        {
            "total_bytes": moved * (job.read_amplification if reading else 1.0),
            "total_gb_per_second": storage.read_gb_per_second if reading else storage.write_gb_per_second,
            "node_bytes": (job.node_read_bytes if reading else job.node_share_bytes)
            * (moved / job.saved.full_bytes),
            "node_gb_per_second": storage.node_gb_per_second,
            "files": block.files if creates is not None else None,
            "file_creates_per_second": creates,
        },
        assumption,
        source,
    )
