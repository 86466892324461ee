"""How the figures of the failures and of the restart came about."""

from service.sizing import presets
from service.sizing.explain.lines import EXPONENTIAL, RATE_SCALES, Facts, Lines
from service.sizing.explain.saving import explain_transfer
from service.sizing.sizing import Interval, Restart, RestartPart


def explain_failures(lines: Lines, job: Facts) -> None:
    """Explain how often the job is interrupted."""
    given, block, gpus = job.spec.failures, job.sizing.failures, job.spec.cluster.gpus
    record = presets.failure_records()[given.preset] if given.preset is not None else given
    source = presets.failure_records()[given.preset].source if given.preset is not None else None
    if record.observed_failures is not None:
        lines.add(
            "#/failures/mtbf_seconds",
            "observed_mtbf",
            {
                "observed_hours": record.observed_hours,
                "observed_failures": record.observed_failures,
                "observed_gpus": record.observed_gpus,
                "gpus": gpus,
            },
            RATE_SCALES,
            source,
        )
        inputs = {
            "mtbf_seconds": block.mtbf_seconds,
            "observed_failures": record.observed_failures,
            "confidence_fraction": block.confidence_fraction,
        }
        counted = "Failures are independent of each other."
        lines.add("#/failures/mtbf_low_seconds", "mtbf_low", inputs, counted)
        lines.add("#/failures/mtbf_high_seconds", "mtbf_high", inputs, counted)
        lines.add(
            "#/failures/confidence_fraction",
            "given",
            {"confidence_fraction": block.confidence_fraction},
            source="The customary two-sided 95 %",
        )
    else:
        lines.add(
            "#/failures/mtbf_seconds",
            "scaled_mtbf",
            {"mtbf_hours": record.mtbf_hours, "mtbf_gpus": record.mtbf_gpus or gpus, "gpus": gpus},
            RATE_SCALES,
            source,
        )
    lines.add("#/failures/failures_per_day", "failures_per_day", {"mtbf_seconds": block.mtbf_seconds})


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
