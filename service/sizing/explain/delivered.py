"""How the figures of a given storage system came about."""

from service.sizing.explain.contents import kept_as
from service.sizing.explain.interruptions import explain_recovery
from service.sizing.explain.lines import EXPONENTIAL, Facts, Lines
from service.sizing.explain.outcome import explain_cost, explain_goodput
from service.sizing.explain.saving import (
    explain_interval,
    explain_staged_lag,
    explain_staging,
    explain_transfer,
)
from service.sizing.formulas import REGISTER
from service.sizing.spec import IntervalRule


def explain_delivered(lines: Lines, job: Facts) -> None:
    """Explain what the given storage system delivers."""
    block, spec, sizing = job.sizing.delivered, job.spec, job.sizing
    if block is None or spec.storage is None:
        return
    at = "#/delivered"
    total = {"checkpoint_bytes": sizing.checkpoint.bytes}
    blocking_seconds, lag_seconds = sizing.blocking.seconds, sizing.write.durable_lag_seconds
    interval_seconds = sizing.interval.seconds
    stall_is_delivered = block.write is not None and not job.is_async
    if block.write is not None:
        lag_seconds = block.write.durable_lag_seconds
        if not job.is_async:
            blocking_seconds = block.write.seconds
        elif block.blocking is not None:
            blocking_seconds = block.blocking.seconds
    if block.next_interval_seconds is not None:
        lines.add(
            f"{at}/next_interval_seconds",
            "exact_interval",
            {"blocking_seconds": blocking_seconds, "mtbf_seconds": job.mtbf_seconds},
            EXPONENTIAL,
        )
        if not job.is_async and block.write is not None and spec.interval.rule is not IntervalRule.FIXED:
            # The interval that leaves no time to train is in no answer, and space fills at its pace all the same.
            interval_seconds = REGISTER[f"{spec.interval.rule}_interval"].function(
                blocking_seconds=blocking_seconds, mtbf_seconds=job.mtbf_seconds
            )
    if block.interval is None and block.blocking is not None:
        # The stall of a staging budget leaves no time to train.
        interval_seconds = block.blocking.seconds / block.blocking.overhead_fraction
    if block.interval is not None and block.blocking is not None:
        interval_seconds = block.interval.seconds
        explain_interval(
            lines,
            job,
            at,
            block.interval,
            blocking_seconds,
            lag_seconds,
            stall_is_delivered=stall_is_delivered,
            drain_seconds=block.write.seconds if block.write is not None else None,
        )
    if block.blocking is not None:
        if block.blocking.staging_stall_seconds is not None and block.write is not None:
            explain_staging(lines, job, at, block.blocking, interval_seconds, block.write.seconds)
        elif stall_is_delivered:
            explain_transfer(lines, job, f"{at}/blocking/seconds", reading=False)
        else:
            lines.add(f"{at}/blocking/seconds", "same", {"blocking.seconds": blocking_seconds})
        lines.add(
            f"{at}/blocking/overhead_fraction",
            "ratio",
            {"blocking.seconds": blocking_seconds, "interval.seconds": interval_seconds},
        )
    if block.restart is not None:
        if block.read is not None and sizing.restart.load_seconds is not None:
            lines.add(
                f"{at}/restart/seconds",
                "restart_with_load",
                {
                    "restart_seconds": sizing.restart.seconds,
                    "specified_load_seconds": sizing.restart.load_seconds,
                    "load_seconds": block.read.seconds,
                },
            )
        else:
            lines.add(f"{at}/restart/seconds", "same", {"restart.seconds": sizing.restart.seconds})
        if block.restart.load_seconds is not None:
            lines.add(f"{at}/restart/load_seconds", "same", {"load_seconds": block.restart.load_seconds})
        explain_recovery(
            lines,
            job,
            at,
            block.restart,
            block.interval or sizing.interval,
            blocking_seconds,
            lag_seconds or 0.0,
        )
    if block.write is not None:
        seconds = block.write.seconds
        explain_transfer(lines, job, f"{at}/write/seconds", reading=False)
        lines.add(f"{at}/write/gb_per_second", "sync_write_bandwidth", {**total, "blocking_seconds": seconds})
        if block.write.durable_lag_seconds is not None:
            pointer = f"{at}/write/durable_lag_seconds"
            if spec.save.staging_budget_bytes_per_node is not None and block.blocking is not None:
                explain_staged_lag(lines, job, pointer, block.blocking, seconds)
            else:
                lines.add(pointer, "same", {"write.seconds": seconds})
        lines.add(
            f"{at}/write/creates_per_second",
            "create_rate",
            {"files": sizing.checkpoint.files, "window_seconds": seconds},
        )
    if block.read is not None:
        explain_transfer(lines, job, f"{at}/read/seconds", reading=True)
        lines.add(
            f"{at}/read/gb_per_second",
            "read_bandwidth",
            {
                "read_bytes": job.saved.restored_bytes * job.read_amplification,
                "target_seconds": block.read.seconds,
            },
        )
    if block.capacity is not None and spec.storage.usable_tb is not None:
        kind, inputs = kept_as(job)
        usable = {"usable_bytes": block.capacity.usable_bytes, **inputs}
        lines.add(f"{at}/capacity/usable_bytes", "tb_to_bytes", {"usable_tb": spec.storage.usable_tb})
        lines.add(f"{at}/capacity/copies_that_fit", f"{kind}copies_that_fit", usable)
        if spec.retention is not None:
            copies = spec.retention.hot_copies + (1 if kind else 0)
            lines.add(
                f"{at}/capacity/hot_peak_fraction", f"{kind}peak_fraction", {**usable, "copies": copies}
            )
        lines.add(
            f"{at}/capacity/full_after_seconds",
            f"{kind}seconds_until_full",
            {**usable, "interval_seconds": interval_seconds},
        )
    if block.goodput is not None and block.interval is not None and block.restart is not None:
        explain_goodput(
            lines,
            job,
            at,
            block.goodput,
            block.interval,
            blocking_seconds,
            block.restart.seconds,
            lag_seconds or 0.0,
        )
        if block.cost is not None:
            explain_cost(lines, job, at, block.cost, block.goodput, block.interval, blocking_seconds)
