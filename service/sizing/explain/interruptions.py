"""How the figures of the failures, of what is planned and of the restart came about."""

from service.sizing import goodput, presets
from service.sizing.explain.lines import EXPONENTIAL, RATE_SCALES, RATES_ADD_UP, Facts, Lines
from service.sizing.explain.saving import (
    drain_limit,
    explain_staged_interval,
    explain_stall_in_force,
    explain_transfer,
    staged_lag,
)
from service.sizing.interruptions import durable_lag_of, record_of
from service.sizing.sizing import AtMtbf, Interval, Restart, RestartPart
from service.sizing.spec import FailuresSpec, IntervalRule

_INDEPENDENT = "Failures are independent of each other."


def explain_failures(lines: Lines, job: Facts) -> None:
    """Explain how often the job is interrupted."""
    given, block = job.spec.failures, job.sizing.failures
    nodes = {"nodes": job.sizing.checkpoint.nodes}
    counted = (
        f" Counted: {block.counts.removesuffix('.')}."
        if block.counts is not None
        else " What is counted as a failure is not said."
    )
    source = presets.failure_records()[given.preset].source if given.preset is not None else None
    if given.early_life_factor is not None:
        _explain_settled(lines, job, "#/failures/settled_mtbf_seconds", counted, source)
        lines.add(
            "#/failures/mtbf_seconds",
            "early_life_mtbf",
            {
                "settled_mtbf_seconds": block.settled_mtbf_seconds,
                "early_life_factor": given.early_life_factor,
            },
            f"The cluster is new, and fails {given.early_life_factor:g} times as often as it will.{counted}",
        )
    else:
        _explain_settled(lines, job, "#/failures/mtbf_seconds", counted, source)
    mtbf = {"mtbf_seconds": block.mtbf_seconds}
    record = record_of(given)
    if record.observed_failures is not None:
        if record.observed_failures == 0:
            lines.add("#/failures/mtbf_low_seconds", "same", mtbf, _INDEPENDENT)
        else:
            inputs = {
                **mtbf,
                "observed_failures": record.observed_failures,
                "confidence_fraction": block.confidence_fraction,
            }
            lines.add("#/failures/mtbf_low_seconds", "mtbf_low", inputs, _INDEPENDENT)
            lines.add("#/failures/mtbf_high_seconds", "mtbf_high", inputs, _INDEPENDENT)
        lines.add(
            "#/failures/confidence_fraction",
            "given",
            {"confidence_fraction": block.confidence_fraction},
            source=f"The customary {'one' if block.mtbf_is_lower_bound else 'two'}-sided 95 %",
        )
    _explain_nodes(lines, given, job)
    lines.add("#/failures/failures_per_day", "failures_per_day", mtbf)
    lines.add("#/failures/per_1000_node_days", "rate_by_node", {**mtbf, **nodes})


def _explain_settled(lines: Lines, job: Facts, pointer: str, counted: str, source: str | None) -> None:
    """Explain the mean time between failures before any factor for the first weeks."""
    given, block, gpus = job.spec.failures, job.sizing.failures, job.spec.cluster.gpus
    record = record_of(given)
    if record.observed_failures is not None:
        observed = {
            "observed_hours": record.observed_hours,
            "observed_gpus": record.observed_gpus,
            "gpus": gpus,
        }
        if record.observed_failures == 0:
            lines.add(
                pointer,
                "bound_of_no_failures",
                {**observed, "confidence_fraction": block.confidence_fraction},
                f"Nothing failed: this is what the mean time is at least. {RATE_SCALES}{counted}",
                source,
            )
        else:
            lines.add(
                pointer,
                "observed_mtbf",
                {**observed, "observed_failures": record.observed_failures},
                RATE_SCALES + counted,
                source,
            )
    elif record.mtbf_hours is not None:
        lines.add(
            pointer,
            "scaled_mtbf",
            {"mtbf_hours": record.mtbf_hours, "mtbf_gpus": record.mtbf_gpus or gpus, "gpus": gpus},
            RATE_SCALES + counted,
            source,
        )
    else:
        lines.add(
            pointer,
            "mtbf_of_nodes",
            {"node_mtbf_seconds": block.node_mtbf_seconds, "nodes": job.sizing.checkpoint.nodes},
            "Every node fails as often as any other, also one that is not full, and each stops the whole job."
            + counted,
        )


def _explain_nodes(lines: Lines, given: FailuresSpec, job: Facts) -> None:
    """Explain the mean time between failures of a node, and what its components contribute."""
    block = job.sizing.failures
    node = {"node_mtbf_seconds": block.node_mtbf_seconds}
    if given.components is not None and block.components is not None:
        inputs = {}
        for part in given.components:
            inputs[f"{part.component}.per_node"] = part.per_node
            inputs[f"{part.component}.mtbf_hours"] = part.mtbf_hours
        lines.add("#/failures/node_mtbf_seconds", "node_mtbf_of_components", inputs, RATES_ADD_UP)
        for at, (part, found) in enumerate(zip(given.components, block.components, strict=True)):
            lines.add(
                f"#/failures/components/{at}/share_fraction",
                "component_share",
                {"per_node": part.per_node, "mtbf_hours": part.mtbf_hours, **node},
                RATES_ADD_UP,
            )
            lines.add(
                f"#/failures/components/{at}/failures_per_day",
                "product",
                {"share_fraction": found.share_fraction, "failures_per_day": block.failures_per_day},
                RATES_ADD_UP,
            )
    elif given.per_1000_node_days is not None:
        lines.add(
            "#/failures/node_mtbf_seconds",
            "node_mtbf_of_rate",
            {"rate_per_1000_node_days": given.per_1000_node_days},
        )


def explain_uncertainty(lines: Lines, job: Facts) -> None:
    """Explain what follows at both ends of the interval of the mean time between failures."""
    block = job.sizing.uncertainty
    if block is None:
        return
    for end, found in (("low", block.low), ("high", block.high)):
        at = f"#/uncertainty/{end}"
        lines.add(
            f"{at}/mtbf_seconds", "same", {f"failures.mtbf_{end}_seconds": found.mtbf_seconds}, _INDEPENDENT
        )
        _explain_end(lines, job, at, found)


def _explain_end(lines: Lines, job: Facts, at: str, found: AtMtbf) -> None:
    spec, sizing = job.spec, job.sizing
    rule, overhead = spec.interval.rule, spec.save.overhead_fraction
    mtbf = {"mtbf_seconds": found.mtbf_seconds}
    blocking_seconds = sizing.blocking.seconds
    lag_seconds = durable_lag_of(spec, found.interval_seconds) if job.is_async else 0.0
    limit = drain_limit(job, found.mtbf_seconds)
    if limit is not None:
        lag_seconds = limit.seconds
    if found.blocking_seconds is not None:
        blocking_seconds, overhead = found.blocking_seconds, None
        explain_stall_in_force(lines, job, f"{at}/blocking_seconds", found.interval_seconds, lag_seconds)
    if found.restart_seconds is not None:
        _explain_restart_at(lines, job, at, found)
    if spec.save.staging_budget_bytes_per_node is not None:
        explain_staged_interval(lines, job, f"{at}/interval_seconds", found.mtbf_seconds)
    elif rule is IntervalRule.FIXED:
        lines.add(f"{at}/interval_seconds", "given", {"interval.seconds": spec.interval.seconds})
    elif overhead is not None:
        lines.add(
            f"{at}/interval_seconds", f"{rule}_interval_at_overhead", {"overhead_fraction": overhead, **mtbf}
        )
    else:
        lines.add(
            f"{at}/interval_seconds", f"{rule}_interval", {"blocking_seconds": blocking_seconds, **mtbf}
        )
    if found.goodput_fraction is None:
        return
    if overhead is not None:
        blocking_seconds = found.interval_seconds * overhead
    inputs = {
        "interval_seconds": found.interval_seconds,
        "blocking_seconds": blocking_seconds,
        "restart_seconds": sizing.restart.seconds if found.restart_seconds is None else found.restart_seconds,
        **mtbf,
    }
    if found.blocking_seconds is not None:
        lag_seconds = staged_lag(job, found.interval_seconds, lag_seconds)
    period = found.interval_seconds
    if job.is_async:
        period = goodput.effective_interval(
            interval_seconds=period,
            blocking_seconds=blocking_seconds,
            durable_lag_seconds=lag_seconds,
            staging_buffers=job.buffers,
        )
    if period > found.interval_seconds:
        inputs |= {"effective_interval_seconds": period, "staging_buffers": job.buffers}
        name = "colliding"
    else:
        inputs["durable_lag_seconds"] = lag_seconds
        name = "exact"
    lines.add(f"{at}/goodput_fraction", f"{name}_goodput", inputs, EXPONENTIAL)
    lines.add(f"{at}/waste_fraction", f"{name}_waste", inputs, EXPONENTIAL)
    if found.waste_usd_per_year is not None and sizing.cost is not None:
        lines.add(
            f"{at}/waste_usd_per_year",
            "wasted_usd_per_year",
            {
                "lost_fraction": found.waste_fraction,
                "cluster_usd_per_hour": sizing.cost.cluster_usd_per_hour,
            },
            EXPONENTIAL,
        )


def _explain_restart_at(lines: Lines, job: Facts, at: str, found: AtMtbf) -> None:
    """Explain the mean restart where spares run out as often as at one end of the interval."""
    given = job.spec.restart
    others = sum(
        share.seconds
        for share in job.sizing.restart.parts or ()
        if share.part not in (RestartPart.RESCHEDULE, RestartPart.REPLAY)
    )
    lines.add(
        f"{at}/restart_seconds",
        "restart_with_spares",
        {
            "other_parts_seconds": others,
            "reschedule_seconds": given.reschedule_seconds,
            "reschedule_without_spares_seconds": given.reschedule_without_spares_seconds,
            "spare_nodes": given.spare_nodes,
            "repair_hours": given.repair_hours,
            "node_loss_fraction": given.node_loss_fraction or 1.0,
            "mtbf_seconds": found.mtbf_seconds,
        },
        "Nodes fail independently and are repaired side by side.",
    )


def explain_planned(lines: Lines, job: Facts) -> None:
    """Explain what planned interruptions cost."""
    block, record, sizing = job.sizing.planned, record_of(job.spec.failures), job.sizing
    if block is None:
        return
    lines.add(
        "#/planned/per_day",
        "planned_per_day",
        {"observed_planned": record.observed_planned, "observed_hours": record.observed_hours},
        "They come by the calendar, however many GPUs there are.",
    )
    lines.add(
        "#/planned/restarting_fraction",
        "planned_fraction",
        {"planned_per_day": block.per_day, "restart_seconds": sizing.restart.seconds},
        "Each saves first and undoes no work. The whole restart counts, also the time to detect a failure, so it is "
        "rather less.",
    )
    if block.restarting_usd_per_year is not None and sizing.cost is not None:
        lines.add(
            "#/planned/restarting_usd_per_year",
            "wasted_usd_per_year",
            {
                "lost_fraction": block.restarting_fraction,
                "cluster_usd_per_hour": sizing.cost.cluster_usd_per_hour,
            },
        )


def explain_restart(lines: Lines, job: Facts) -> None:
    """Explain the way back after a failure."""
    given, block = job.spec.restart, job.sizing.restart
    target = job.spec.restore.target_seconds if job.spec.restore is not None else None
    if given.seconds is not None:
        lines.add("#/restart/seconds", "given", {"restart.seconds": given.seconds})
    else:
        lines.add(
            "#/restart/seconds",
            "sum",
            {
                f"{share.part}_seconds": share.seconds
                for share in block.parts or ()
                if share.part is not RestartPart.REPLAY
            },
        )
    if block.load_seconds is not None:
        if given.load_seconds is not None:
            lines.add("#/restart/load_seconds", "given", {"restart.load_seconds": given.load_seconds})
        elif target is not None:
            lines.add(
                "#/restart/load_seconds",
                "same",
                {"restore.target_seconds": target},
                "The load takes as long as its target allows.",
            )
        else:
            explain_transfer(lines, job, "#/restart/load_seconds", reading=True)
    explain_recovery(
        lines,
        job,
        "#",
        block,
        job.sizing.interval,
        job.sizing.blocking.seconds,
        job.sizing.write.durable_lag_seconds or 0.0,
    )


def explain_recovery(
    lines: Lines,
    job: Facts,
    at: str,
    block: Restart,
    interval: Interval,
    blocking_seconds: float,
    durable_lag_seconds: float,
) -> None:
    """Explain the parts of a restart block and the replay after it: of the sizing, or of what is delivered."""
    given, mtbf_seconds = job.spec.restart, job.mtbf_seconds
    at = f"{at}/restart"
    if block.spares_exhausted_fraction is not None:
        stated = given.spares_exhausted_fraction
        if stated is not None:
            lines.add(
                f"{at}/spares_exhausted_fraction", "given", {"restart.spares_exhausted_fraction": stated}
            )
        else:
            lines.add(
                f"{at}/spares_exhausted_fraction",
                "spares_exhausted",
                {
                    "spare_nodes": given.spare_nodes,
                    "repair_hours": given.repair_hours,
                    "node_loss_fraction": given.node_loss_fraction or 1.0,
                    "mtbf_seconds": mtbf_seconds,
                },
                "Nodes fail independently and are repaired side by side."
                + ("" if given.node_loss_fraction is not None else " Every failure takes a node away."),
            )
    if block.replay_seconds is None:
        return
    inputs = {
        "interval_seconds": interval.seconds,
        "blocking_seconds": blocking_seconds,
        "mtbf_seconds": mtbf_seconds,
    }
    if interval.effective_seconds is not None:
        replay = "colliding_replay"
        inputs |= {"effective_interval_seconds": interval.effective_seconds, "staging_buffers": job.buffers}
    else:
        replay = "replay"
        inputs["durable_lag_seconds"] = durable_lag_seconds
    lines.add(
        f"{at}/replay_seconds",
        replay,
        inputs,
        EXPONENTIAL
        + " What is undone takes as long again, its saves included; goodput counts it as lost work.",
    )
    lines.add(
        f"{at}/recovery_seconds",
        "sum",
        {"restart.seconds": block.seconds, "replay_seconds": block.replay_seconds},
    )
    for index, share in enumerate(block.parts or ()):
        pointer = f"{at}/parts/{index}"
        name = f"{share.part}_seconds"
        if share.part is RestartPart.RESCHEDULE and block.spares_exhausted_fraction is not None:
            lines.add(
                f"{pointer}/seconds",
                "mean_reschedule",
                {
                    "reschedule_seconds": given.reschedule_seconds,
                    "reschedule_without_spares_seconds": given.reschedule_without_spares_seconds,
                    "spares_exhausted_fraction": block.spares_exhausted_fraction,
                },
                "The mean over failures with and without spares stands for every restart.",
            )
        elif share.part in (RestartPart.LOAD, RestartPart.REPLAY):
            lines.add(f"{pointer}/seconds", "same", {f"restart.{name}": getattr(block, name)})
        else:
            lines.add(f"{pointer}/seconds", "given", {f"restart.{name}": getattr(given, name)})
        lines.add(
            f"{pointer}/fraction",
            "ratio",
            {name: share.seconds, "recovery_seconds": block.recovery_seconds},
        )
