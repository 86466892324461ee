"""How the figures of the failures and of the restart came about."""

from service.sizing import presets
from service.sizing.explain.lines import RATE_SCALES, Facts, Lines


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
    restart, block = job.spec.restart, job.sizing.restart
    target = job.spec.restore.target_seconds if job.spec.restore is not None else None
    if restart.seconds is not None:
        lines.add("#/restart/seconds", "given", {"restart.seconds": restart.seconds})
    else:
        lines.add(
            "#/restart/seconds",
            "sum",
            {
                "detect_seconds": restart.detect_seconds,
                "reschedule_seconds": restart.reschedule_seconds,
                "initialise_seconds": restart.initialise_seconds,
                "load_seconds": block.load_seconds,
                "warm_up_seconds": restart.warm_up_seconds,
            },
        )
    if block.load_seconds is not None:
        if restart.load_seconds is not None:
            lines.add("#/restart/load_seconds", "given", {"restart.load_seconds": restart.load_seconds})
        else:
            lines.add(
                "#/restart/load_seconds",
                "same",
                {"restore.target_seconds": target},
                "The load takes as long as its target allows.",
            )
