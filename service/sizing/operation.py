"""A job that saves: what comes of its interval, its stall, its durable lag and its restart.

The same for the figures that a scenario asks for and for those that a given storage system delivers.
"""

from typing import NamedTuple

from service.sizing import bandwidth, cost, failures, goodput, interval
from service.sizing.placement import Placement
from service.sizing.sizing import (
    Blocking,
    Capacity,
    Collision,
    Cost,
    ExactGoodput,
    FirstOrderGoodput,
    Goodput,
    Interval,
    SizingWarning,
    WarningCode,
)
from service.sizing.spec import IntervalRule, ScenarioSpec
from service.sizing.state import Saved


class Job(NamedTuple):
    """What stays the same whatever the storage: the checkpoint, the failures, the prices."""

    spec: ScenarioSpec
    is_async: bool
    checkpoint_bytes: float
    saved: Saved
    nodes: int
    writers: int
    writing_nodes: int
    files: int
    skew: float
    largest_shard_bytes: float
    node_share_bytes: float
    """What the node with most writes: by the layout, or an upper bound. [B]"""
    read_amplification: float
    node_read_bytes: float
    """What the node with most reads at a load, likewise. [B]"""
    placement: Placement | None
    buffers: int
    mtbf_seconds: float
    gpu_hour_usd: float | None

    @property
    def whole_share_bytes(self) -> float:
        """What a whole copy takes of the node that holds most: tiers keep such, whatever shared storage does. [B]"""
        return self.node_share_bytes * (self.saved.whole_bytes / self.checkpoint_bytes)

    @property
    def staging_bytes_per_node(self) -> float:
        """Host memory that async staging takes on the node that holds most; it holds the state uncompressed. [B]"""
        return bandwidth.staging_bytes(node_bytes=self.staged_share_bytes, staging_buffers=self.buffers)

    @property
    def staged_share_bytes(self) -> float:
        """What one save stages there. [B]"""
        return self.node_share_bytes * (self.saved.staged_bytes / self.checkpoint_bytes)


class Operation(NamedTuple):
    """A job that saves: its interval, its stall, and what comes of them."""

    interval: Interval
    blocking: Blocking
    period_seconds: float
    durable_lag_seconds: float
    goodput: Goodput
    stall_usd_per_day: float | None


def interval_for(
    job: Job,
    blocking_seconds: float | None,
    overhead_fraction: float | None,
) -> float:
    """Return the interval by the spec's rule: for a blocking time, or else for a fraction of the interval."""
    rule = job.spec.interval.rule
    if rule is IntervalRule.FIXED:
        assert job.spec.interval.seconds is not None  # noqa: S101 - the spec refuses it
        return job.spec.interval.seconds
    mtbf_seconds = job.mtbf_seconds
    if blocking_seconds is not None:
        return _RULES[rule](blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds)
    assert overhead_fraction is not None  # noqa: S101
    return _RULES_AT_OVERHEAD[rule](overhead_fraction=overhead_fraction, mtbf_seconds=mtbf_seconds)


_RULES = {
    IntervalRule.YOUNG: interval.young_interval,
    IntervalRule.DALY: interval.daly_interval,
    IntervalRule.EXACT: interval.exact_interval,
}
_RULES_AT_OVERHEAD = {
    IntervalRule.YOUNG: interval.young_interval_at_overhead,
    IntervalRule.DALY: interval.daly_interval_at_overhead,
    IntervalRule.EXACT: interval.exact_interval_at_overhead,
}


def exact_split(
    job: Job,
    interval_seconds: float,
    blocking_seconds: float,
    durable_lag_seconds: float,
    restart_seconds: float,
    mtbf_seconds: float,
) -> tuple[float, goodput.Split]:
    """Return the period that results, and where the wall time goes; the interval must leave time to train."""
    period = interval_seconds
    if job.is_async:
        period = goodput.effective_interval(
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            durable_lag_seconds=durable_lag_seconds,
            staging_buffers=job.buffers,
        )
    if period > interval_seconds:
        return period, goodput.exact_goodput_when_saves_collide(
            interval_seconds=interval_seconds,
            effective_interval_seconds=period,
            blocking_seconds=blocking_seconds,
            restart_seconds=restart_seconds,
            staging_buffers=job.buffers,
            mtbf_seconds=mtbf_seconds,
        )
    return period, goodput.exact_goodput(
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        restart_seconds=restart_seconds,
        durable_lag_seconds=durable_lag_seconds,
        mtbf_seconds=mtbf_seconds,
    )


def operate(
    job: Job,
    interval_seconds: float,
    blocking_seconds: float,
    durable_lag_seconds: float,
    restart_seconds: float,
) -> Operation:
    """Return what comes of an interval, a stall, a lag and a restart; the interval must leave time to train."""
    mtbf_seconds = job.mtbf_seconds
    period, split = exact_split(
        job, interval_seconds, blocking_seconds, durable_lag_seconds, restart_seconds, mtbf_seconds
    )
    exact = interval.exact_interval(blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds)
    best = None
    if job.is_async and _collides(job.buffers, exact, blocking_seconds, durable_lag_seconds):
        best = interval.best_interval(
            blocking_seconds=blocking_seconds,
            durable_lag_seconds=durable_lag_seconds,
            staging_buffers=job.buffers,
            mtbf_seconds=mtbf_seconds,
        )
    collides = period > interval_seconds
    first = goodput.first_order_waste(
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        restart_seconds=restart_seconds,
        mtbf_seconds=mtbf_seconds,
    )
    stall = None
    if job.gpu_hour_usd is not None:
        stall = cost.stall_usd_per_day(
            cluster_usd_per_hour=cost.cluster_usd_per_hour(
                gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd
            ),
            blocking_seconds=blocking_seconds + (period - interval_seconds),
            interval_seconds=period,
        )
    return Operation(
        interval=Interval(
            seconds=interval_seconds,
            rule=job.spec.interval.rule,
            young_seconds=interval.young_interval(
                blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds
            ),
            daly_seconds=interval.daly_interval(blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds),
            exact_seconds=exact,
            effective_seconds=period if collides else None,
            collision=collision_of(job, interval_seconds, blocking_seconds, durable_lag_seconds),
            best_seconds=best,
        ),
        blocking=Blocking(seconds=blocking_seconds, overhead_fraction=blocking_seconds / interval_seconds),
        period_seconds=period,
        durable_lag_seconds=durable_lag_seconds,
        goodput=Goodput(
            exact=ExactGoodput(
                goodput_fraction=split.goodput,
                saving_fraction=split.saving,
                lost_work_fraction=split.lost_work,
                restarting_fraction=split.restarting,
            ),
            first_order=FirstOrderGoodput(
                waste_fraction=first.waste,
                saving_fraction=first.saving,
                lost_work_fraction=first.lost_work,
                restarting_fraction=first.restarting,
            ),
            effective_training_time_ratio=goodput.effective_training_time_ratio(
                nodes=job.nodes,
                failures_per_node_day=failures.failures_per_node_day(
                    mtbf_seconds=mtbf_seconds, nodes=job.nodes
                ),
                restart_seconds=restart_seconds,
                interval_seconds=period,
            ),
        ),
        stall_usd_per_day=stall,
    )


def collision_of(
    job: Job, interval_seconds: float, blocking_seconds: float, durable_lag_seconds: float
) -> Collision | None:
    """Return what a save meets that is not durable before the next; None where it is."""
    if not job.is_async:
        return None
    if _collides(job.buffers, interval_seconds, blocking_seconds, durable_lag_seconds):
        return Collision.BLOCKED
    if _collides(1, interval_seconds, blocking_seconds, durable_lag_seconds):
        return Collision.SECOND_BUFFER
    return None


def _collides(
    buffers: int, interval_seconds: float, blocking_seconds: float, durable_lag_seconds: float
) -> bool:
    period = goodput.effective_interval(
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        durable_lag_seconds=durable_lag_seconds,
        staging_buffers=buffers,
    )
    return period > interval_seconds


def cost_of(job: Job, operation: Operation, space: Capacity | None) -> Cost | None:
    """Return the dollars of an operation, and of the space; None where no price is known."""
    figures: dict[str, float] = {}
    prices = job.spec.prices
    if job.gpu_hour_usd is not None and operation.stall_usd_per_day is not None:
        hourly = cost.cluster_usd_per_hour(gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd)
        exact = operation.goodput.exact
        parts = (exact.saving_fraction, exact.lost_work_fraction, exact.restarting_fraction)
        saving, lost_work, restarting = (
            cost.wasted_usd_per_year(lost_fraction=part, cluster_usd_per_hour=hourly) for part in parts
        )
        figures.update(
            cluster_usd_per_hour=hourly,
            stall_usd_per_day=operation.stall_usd_per_day,
            stall_usd_per_year=cost.usd_per_year_from_day(usd_per_day=operation.stall_usd_per_day),
            waste_usd_per_year=cost.wasted_usd_per_year(
                lost_fraction=sum(parts), cluster_usd_per_hour=hourly
            ),
            saving_usd_per_year=saving,
            lost_work_usd_per_year=lost_work,
            restarting_usd_per_year=restarting,
        )
    if prices is not None and space is not None:
        for tier, price, amount in (
            ("hot", prices.hot_usd_per_tb_month, space.hot_peak_bytes),
            ("cold", prices.cold_usd_per_tb_month, space.cold_peak_bytes),
        ):
            if price is not None and amount is not None:
                figures[f"{tier}_usd_per_month"] = cost.space_usd_per_month(
                    space_bytes=amount, usd_per_tb_month=price
                )
    return Cost(**figures) if figures else None


def collision(job: Job, operation: Operation, pointer: str) -> SizingWarning:
    """Return the warning that saves wait for each other, with the ways out, about the field that is to blame."""
    interval_seconds, lag_seconds = operation.interval.seconds, operation.durable_lag_seconds
    one_buffer = job.buffers == 1
    window = interval_seconds - (operation.blocking.seconds if one_buffer else 0.0)
    more_buffers = ", a second staging buffer" if one_buffer and lag_seconds <= interval_seconds else ""
    return SizingWarning(
        code=WarningCode.SAVES_COLLIDE,
        pointer=pointer,
        message=f"A save takes {lag_seconds:.6g} s to become durable, so the next one waits and the interval of "
        f"{interval_seconds:.6g} s becomes {operation.period_seconds:.6g} s. Ways out: storage that makes it durable "
        f"within {window:.6g} s{more_buffers}, or an interval of at least {operation.period_seconds:.6g} s.",
    )
