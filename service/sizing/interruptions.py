"""What interrupts the job: failures, however the spec gives them, how far off they may be, and what is planned."""

from service.errors import Fault, Unsatisfiable
from service.sizing import bandwidth, checkpoint, cost, failures, presets
from service.sizing.operation import Job, Operation, exact_split, interval_for
from service.sizing.restarting import Restarting, restarting
from service.sizing.sizing import (
    AtMtbf,
    ComponentFailures,
    Failures,
    PlannedInterruptions,
    SizingWarning,
    Uncertainty,
    WarningCode,
)
from service.sizing.spec import DEFAULT_HEADROOM, FailingComponent, FailuresSpec, ScenarioSpec
from service.sizing.staged import staged

MTBF_LEAST_SECONDS = 1.0
MTBF_MOST_SECONDS = 1e12
FEW_FAILURES = 20


def failures_of(spec: ScenarioSpec, warnings: list[SizingWarning]) -> Failures:
    """Return how often the job is interrupted.

    Raises:
        Unsatisfiable: The failures are too frequent or too rare to size with.
    """
    given = spec.failures
    record = record_of(given)
    nodes = checkpoint.node_count(gpus=spec.cluster.gpus, gpus_per_node=spec.cluster.gpus_per_node)
    mtbf_seconds, node_seconds = _settled(given, record, spec.cluster.gpus, nodes)
    settled_seconds = None
    if given.early_life_factor is not None:
        settled_seconds = mtbf_seconds
        mtbf_seconds = failures.early_life_mtbf(
            settled_mtbf_seconds=settled_seconds, early_life_factor=given.early_life_factor
        )
    if not MTBF_LEAST_SECONDS <= mtbf_seconds <= MTBF_MOST_SECONDS:
        raise Unsatisfiable(
            Fault(
                "#/failures",
                "out_of_range",
                f"These failures mean one every {mtbf_seconds:.3g} s for the whole job; a sizing needs between "
                f"{MTBF_LEAST_SECONDS:g} and {MTBF_MOST_SECONDS:g} s. Check the hours and the GPU counts.",
            )
        )
    low = high = confidence = None
    if record.observed_failures is not None:
        confidence = failures.CONFIDENCE_FRACTION
        if record.observed_failures:
            low, high = failures.poisson_bounds(
                mtbf_seconds=mtbf_seconds, failures=record.observed_failures, confidence_fraction=confidence
            )
        else:
            low = mtbf_seconds
        if record.observed_failures < FEW_FAILURES:
            warnings.append(_few(given, record, mtbf_seconds, low, high))
    per_day = failures.failures_per_day(mtbf_seconds=mtbf_seconds)
    return Failures(
        counts=record.counts,
        mtbf_seconds=mtbf_seconds,
        mtbf_is_lower_bound=record.observed_failures == 0,
        mtbf_low_seconds=low,
        mtbf_high_seconds=high,
        confidence_fraction=confidence,
        settled_mtbf_seconds=settled_seconds,
        node_mtbf_seconds=node_seconds,
        components=_components(given.components, node_seconds, per_day)
        if given.components is not None and node_seconds is not None
        else None,
        failures_per_day=per_day,
        per_1000_node_days=1000.0 * failures.failures_per_node_day(mtbf_seconds=mtbf_seconds, nodes=nodes),
    )


def record_of(given: FailuresSpec) -> FailuresSpec | presets.FailureRecord:
    """Return the record that the block names, or the block, which is one itself."""
    return presets.failure_records()[given.preset] if given.preset is not None else given


def _settled(
    given: FailuresSpec, record: FailuresSpec | presets.FailureRecord, gpus: int, nodes: int
) -> tuple[float, float | None]:
    """Return the mean time between failures of the settled cluster, and the node's where it comes from one. [s]"""
    if record.observed_failures is not None:
        assert record.observed_hours is not None  # noqa: S101 - the spec refuses a part of a record
        assert record.observed_gpus is not None  # noqa: S101
        if record.observed_failures == 0:
            bound = failures.bound_of_no_failures(
                observed_hours=record.observed_hours,
                observed_gpus=record.observed_gpus,
                gpus=gpus,
                confidence_fraction=failures.CONFIDENCE_FRACTION,
            )
            return bound, None
        observed = failures.observed_mtbf(
            observed_failures=record.observed_failures,
            observed_hours=record.observed_hours,
            observed_gpus=record.observed_gpus,
            gpus=gpus,
        )
        return observed, None
    if record.mtbf_hours is not None:
        scaled = failures.scaled_mtbf(
            mtbf_hours=record.mtbf_hours, mtbf_gpus=record.mtbf_gpus or gpus, gpus=gpus
        )
        return scaled, None
    if given.components is not None:
        node_seconds = failures.node_mtbf_of_components(
            (part.per_node, part.mtbf_hours) for part in given.components
        )
    else:
        assert given.per_1000_node_days is not None  # noqa: S101 - the spec refuses none of these ways
        node_seconds = failures.node_mtbf_of_rate(rate_per_1000_node_days=given.per_1000_node_days)
    return failures.mtbf_of_nodes(node_mtbf_seconds=node_seconds, nodes=nodes), node_seconds


def _components(
    components: list[FailingComponent], node_mtbf_seconds: float, failures_per_day: float
) -> list[ComponentFailures]:
    found = []
    for part in components:
        share = failures.component_share(
            per_node=part.per_node, mtbf_hours=part.mtbf_hours, node_mtbf_seconds=node_mtbf_seconds
        )
        found.append(
            ComponentFailures(
                component=part.component, share_fraction=share, failures_per_day=share * failures_per_day
            )
        )
    return found


def _few(
    given: FailuresSpec,
    record: FailuresSpec | presets.FailureRecord,
    mtbf_seconds: float,
    low_seconds: float,
    high_seconds: float | None,
) -> SizingWarning:
    """Return the warning that a record says little of the time between failures."""
    pointer = "#/failures/preset" if given.preset is not None else "#/failures/observed_failures"
    if high_seconds is None:
        return SizingWarning(
            code=WarningCode.NO_OBSERVED_FAILURES,
            pointer=pointer,
            message=f"Nothing failed in {record.observed_hours:g} h on {record.observed_gpus} GPUs, which says only "
            f"that the time between failures is at least {mtbf_seconds:.6g} s, with 95 % confidence. Every figure is "
            "for that bound: the waste may be far lower, and observing longer tells.",
        )
    return SizingWarning(
        code=WarningCode.FEW_OBSERVED_FAILURES,
        pointer=pointer,
        message=f"{record.observed_failures} failures leave the time between failures between "
        f"{low_seconds:.0f} and {high_seconds:.0f} s: size for the low end, or observe longer.",
    )


def uncertainty_of(
    job: Job,
    block: Failures,
    operation: Operation,
    way_back: Restarting,
    warnings: list[SizingWarning],
) -> Uncertainty | None:
    """Return what follows at both ends of the interval of the mean time between failures; None where it has not two."""
    if block.mtbf_low_seconds is None or block.mtbf_high_seconds is None:
        return None
    hourly = None
    if job.gpu_hour_usd is not None:
        hourly = cost.cluster_usd_per_hour(gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd)
    low, high = (
        _at(job._replace(mtbf_seconds=seconds), operation.blocking.seconds, way_back.seconds, hourly)
        for seconds in (block.mtbf_low_seconds, block.mtbf_high_seconds)
    )
    if low.goodput_fraction is None:
        warnings.append(
            SizingWarning(
                code=WarningCode.NO_USEFUL_TIME_AT_LOW_MTBF,
                pointer="#/failures",
                message=f"At the low end of the time between failures, {low.mtbf_seconds:.6g} s, the interval of "
                f"{low.interval_seconds:.6g} s leaves no time to train: the record does not exclude that.",
            )
        )
    return Uncertainty(low=low, high=high)


def _at(
    job: Job,
    blocking_seconds: float,
    restart_seconds: float,
    cluster_usd_per_hour: float | None,
) -> AtMtbf:
    """Return what the scenario comes to at the job's mean time between failures, one end of its interval.

    The stall is the scenario's own but where it waits for staging memory, and so is the restart but where spares
    are counted.
    """
    spec, mtbf_seconds = job.spec, job.mtbf_seconds
    overhead = spec.save.overhead_fraction
    told = {}
    if spec.restart.spare_nodes is not None:
        told["restart_seconds"] = restart_seconds = restarting(job).seconds
    through = None
    if spec.save.staging_budget_bytes_per_node is not None:
        through = staged(spec, node_share_bytes=job.staged_share_bytes, mtbf_seconds=mtbf_seconds)
    if through is not None:
        interval_seconds, blocking_seconds = through.interval_seconds, through.blocking_seconds
        told["blocking_seconds"] = blocking_seconds
    else:
        interval_seconds = interval_for(job, blocking_seconds if overhead is None else None, overhead)
        if overhead is not None:
            blocking_seconds = interval_seconds * overhead
    if interval_seconds - blocking_seconds <= 0.0:
        return AtMtbf(mtbf_seconds=mtbf_seconds, interval_seconds=interval_seconds, **told)
    lag_seconds = durable_lag_of(spec, interval_seconds) if job.is_async else 0.0
    if through is not None:
        lag_seconds = through.lag_seconds
    _, split = exact_split(
        job, interval_seconds, blocking_seconds, lag_seconds, restart_seconds, mtbf_seconds
    )
    waste_fraction = split.saving + split.lost_work + split.restarting
    return AtMtbf(
        mtbf_seconds=mtbf_seconds,
        interval_seconds=interval_seconds,
        **told,
        goodput_fraction=split.goodput,
        waste_fraction=waste_fraction,
        waste_usd_per_year=cost.wasted_usd_per_year(
            lost_fraction=waste_fraction, cluster_usd_per_hour=cluster_usd_per_hour
        )
        if cluster_usd_per_hour is not None
        else None,
    )


def durable_lag_of(spec: ScenarioSpec, interval_seconds: float) -> float:
    """Return the time until an async save is durable: as stated, else at the bandwidth that is required. [s]"""
    save = spec.save
    if save.durable_lag_seconds is not None:
        return save.durable_lag_seconds
    headroom = save.headroom if save.headroom is not None else DEFAULT_HEADROOM
    return bandwidth.durable_lag(interval_seconds=interval_seconds, headroom=headroom)


def planned_of(job: Job, restart_seconds: float) -> PlannedInterruptions | None:
    """Return what planned interruptions cost; None where none were counted."""
    record = record_of(job.spec.failures)
    if record.observed_planned is None:
        return None
    assert record.observed_hours is not None  # noqa: S101 - the spec refuses a part of a record
    per_day = failures.planned_per_day(
        observed_planned=record.observed_planned, observed_hours=record.observed_hours
    )
    fraction = failures.planned_fraction(planned_per_day=per_day, restart_seconds=restart_seconds)
    usd = None
    if job.gpu_hour_usd is not None:
        usd = cost.wasted_usd_per_year(
            lost_fraction=fraction,
            cluster_usd_per_hour=cost.cluster_usd_per_hour(
                gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd
            ),
        )
    return PlannedInterruptions(per_day=per_day, restarting_fraction=fraction, restarting_usd_per_year=usd)
