"""The quantities that a scenario can be asked for: where each stands in a spec, how far it goes, its closed forms."""

from typing import NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing.formulas import REGISTER
from service.sizing.sizing import Comparison, Delivered, Sizing
from service.sizing.solution import SolutionBasis, SolutionUnit
from service.sizing.spec import (
    IntervalRule,
    IntervalSpec,
    RestartSpec,
    RestoreSpec,
    SaveMode,
    ScenarioSpec,
    SolutionGoal,
    SolutionUnknown,
)
from service.units import GB

# What the fields of a spec take, at either end.
LEAST_GB_PER_SECOND, MOST_GB_PER_SECOND = 1e-6, 1e9
LEAST_SECONDS, MOST_SECONDS = 1e-6, 1e7
LEAST_INTERVAL_SECONDS, MOST_INTERVAL_SECONDS = 1e-3, 1e9
MOST_GPUS = 10_000_000

UNITS = {
    SolutionUnknown.WRITE_GB_PER_SECOND: SolutionUnit.GB_PER_SECOND,
    SolutionUnknown.READ_GB_PER_SECOND: SolutionUnit.GB_PER_SECOND,
    SolutionUnknown.BLOCKING_SECONDS: SolutionUnit.SECONDS,
    SolutionUnknown.RESTART_SECONDS: SolutionUnit.SECONDS,
    SolutionUnknown.INTERVAL_SECONDS: SolutionUnit.SECONDS,
    SolutionUnknown.GPUS: SolutionUnit.GPUS,
}


def comparison(unknown: SolutionUnknown) -> Comparison:
    """Return on which side of the solved value the goal is reached."""
    bandwidth = UNITS[unknown] is SolutionUnit.GB_PER_SECOND
    return Comparison.AT_LEAST if bandwidth else Comparison.AT_MOST


class Asked(NamedTuple):
    """One quantity of a scenario, and which figures of a sizing speak for it."""

    spec: ScenarioSpec
    unknown: SolutionUnknown
    basis: SolutionBasis
    moved_bytes: float
    """What a bandwidth moves in the time that the spec states in its place; 0 where it states none. [B]"""
    least_gb_per_second: float = 0.0
    """Below this a write bandwidth stalls a save through its staging budget for longer than the spec allows."""


def basis_of(spec: ScenarioSpec, unknown: SolutionUnknown) -> SolutionBasis:
    """Return which figures a goal is held against: the scenario's, or those that its storage system delivers."""
    storage = spec.storage_system
    if storage is None:
        return SolutionBasis.SPECIFIED
    if UNITS[unknown] is SolutionUnit.GB_PER_SECOND:
        return SolutionBasis.DELIVERED
    if unknown is SolutionUnknown.BLOCKING_SECONDS and _storage_sets_the_stall(spec):
        return SolutionBasis.SPECIFIED
    has_limits = spec.storage_times_a_save or storage.read_gb_per_second is not None
    return SolutionBasis.DELIVERED if has_limits else SolutionBasis.SPECIFIED


def states_a_time(spec: ScenarioSpec, unknown: SolutionUnknown) -> bool:
    """Return whether the bandwidth that is asked for stands in the spec as the time of a transfer."""
    return UNITS[unknown] is SolutionUnit.GB_PER_SECOND and spec.storage is None


def levers(asked: Asked) -> list[SolutionUnknown]:
    """Return the other quantities that can be turned beside the one that is asked for."""
    others = [
        SolutionUnknown.RESTART_SECONDS,
        SolutionUnknown.BLOCKING_SECONDS,
        SolutionUnknown.INTERVAL_SECONDS,
        SolutionUnknown.GPUS,
    ]
    is_async = asked.spec.save.mode is SaveMode.ASYNC
    write_sets_the_stall = not is_async and asked.unknown is SolutionUnknown.WRITE_GB_PER_SECOND
    delivered_stall = asked.basis is SolutionBasis.DELIVERED and _storage_sets_the_stall(asked.spec)
    if write_sets_the_stall or delivered_stall:
        others.remove(SolutionUnknown.BLOCKING_SECONDS)
    if is_async or delivered_stall:
        others.append(SolutionUnknown.WRITE_GB_PER_SECOND)
    if asked.spec.cluster.parallelism is not None:
        others.remove(SolutionUnknown.GPUS)  # a layout fits the GPUs that it was made for
    return [other for other in others if other is not asked.unknown]


def put_in(asked: Asked, value: float) -> ScenarioSpec:
    """Return the scenario with a value in the place of the unknown, and in that of all that follows from it.

    The blocks are copied, and the whole is for the caller to check.
    """
    spec, unknown = asked.spec, asked.unknown
    match unknown:
        case SolutionUnknown.WRITE_GB_PER_SECOND:
            return _put_in_write(asked, value)
        case SolutionUnknown.READ_GB_PER_SECOND:
            return _put_in_read(asked, value)
        case SolutionUnknown.BLOCKING_SECONDS:
            return _with_stall(spec, value)
        case SolutionUnknown.RESTART_SECONDS:
            return spec.model_copy(update={"restart": RestartSpec(seconds=value)})
        case SolutionUnknown.INTERVAL_SECONDS:
            interval = IntervalSpec(rule=IntervalRule.FIXED, seconds=value)
            return spec.model_copy(update={"interval": interval})
        case SolutionUnknown.GPUS:
            update: dict[str, object] = {"cluster": spec.cluster.model_copy(update={"gpus": round(value)})}
            if spec.failures.mtbf_hours is not None and spec.failures.mtbf_gpus is None:
                # It holds for the stated count, which is about to change.
                update["failures"] = spec.failures.model_copy(update={"mtbf_gpus": spec.cluster.gpus})
            return spec.model_copy(update=update)


def _put_in_write(asked: Asked, value: float) -> ScenarioSpec:
    spec = asked.spec
    is_async = spec.save.mode is SaveMode.ASYNC
    if spec.storage is not None:
        storage = spec.storage.model_copy(update={"write_gb_per_second": value})
        spec = spec.model_copy(update={"storage": storage})
        return spec if is_async else _with_stall(spec, None)
    seconds = _time_of(asked.moved_bytes, value)
    if not is_async:
        return _with_stall(spec, seconds)
    return spec.model_copy(update={"save": spec.save.model_copy(update={"durable_lag_seconds": seconds})})


def _put_in_read(asked: Asked, value: float) -> ScenarioSpec:
    spec = asked.spec
    if spec.storage is not None:
        storage = spec.storage.model_copy(update={"read_gb_per_second": value})
        return spec.model_copy(update={"storage": storage})
    load = _time_of(asked.moved_bytes, value)
    if spec.restart.seconds is not None:
        restart = RestartSpec(seconds=min(_rest_of_restart(spec) + load, MOST_SECONDS))
    else:
        restart = spec.restart.model_copy(update={"load_seconds": None})
    restore = (
        spec.restore.model_copy(update={"target_seconds": load})
        if spec.restore is not None
        else RestoreSpec(target_seconds=load)
    )
    return spec.model_copy(update={"restart": restart, "restore": restore})


def _with_stall(spec: ScenarioSpec, seconds: float | None) -> ScenarioSpec:
    save = spec.save.model_copy(update={"blocking_seconds": seconds, "overhead_fraction": None})
    return spec.model_copy(update={"save": save})


def may_collide(asked: Asked) -> bool:
    """Return whether less of the unknown may bring saves so close together that they wait for each other."""
    is_async = asked.spec.save.mode is SaveMode.ASYNC
    chosen = asked.spec.interval.rule is not IntervalRule.FIXED
    return asked.unknown is SolutionUnknown.BLOCKING_SECONDS and is_async and chosen


def stall_follows_interval(asked: Asked) -> bool:
    """Return whether the stall is a fraction of the interval, in the figures that the goal is held against."""
    delivered = asked.basis is SolutionBasis.DELIVERED and _storage_sets_the_stall(asked.spec)
    return asked.spec.save.overhead_fraction is not None and not delivered


def _storage_sets_the_stall(spec: ScenarioSpec) -> bool:
    return spec.save.mode is SaveMode.SYNC and spec.storage_times_a_save


def _time_of(moved_bytes: float, gb_per_second: float) -> float:
    if not moved_bytes:  # a first look, to learn how many they are
        return LEAST_SECONDS
    return min(max(moved_bytes / (gb_per_second * GB), LEAST_SECONDS), MOST_SECONDS)


def _rest_of_restart(spec: ScenarioSpec) -> float:
    """Return what a restart given as one number takes beside its load. [s]"""
    assert spec.restart.seconds is not None  # noqa: S101 - callers look
    return spec.restart.seconds - (spec.restore.target_seconds if spec.restore is not None else 0.0)


class Range(NamedTuple):
    """How far an unknown goes: from where the goal is nearest to where it is cheapest to have."""

    best: float
    cheapest: float


def range_of(asked: Asked) -> Range:
    """Return the range of an unknown that the goal gets the nearer the more of it there is, or the less."""
    spec = asked.spec
    match asked.unknown:
        case SolutionUnknown.WRITE_GB_PER_SECOND | SolutionUnknown.READ_GB_PER_SECOND:
            if not asked.moved_bytes:
                return Range(MOST_GB_PER_SECOND, LEAST_GB_PER_SECOND)
            longest = MOST_SECONDS
            if asked.unknown is SolutionUnknown.READ_GB_PER_SECOND and spec.restart.seconds is not None:
                longest = max(longest - _rest_of_restart(spec), LEAST_SECONDS)
            most = min(asked.moved_bytes / LEAST_SECONDS / GB, MOST_GB_PER_SECOND)
            least = max(asked.moved_bytes / longest / GB, LEAST_GB_PER_SECOND, asked.least_gb_per_second)
            return Range(most, min(least, most))
        case SolutionUnknown.BLOCKING_SECONDS:
            interval = spec.interval.seconds
            most = MOST_SECONDS if interval is None else min(MOST_SECONDS, interval)
            return Range(min(max(LEAST_SECONDS, _just_above_the_copy(asked)), most), most)
        case SolutionUnknown.RESTART_SECONDS:
            return Range(spec.restore.target_seconds if spec.restore is not None else 0.0, MOST_SECONDS)
        case SolutionUnknown.GPUS:
            shards = spec.shards
            return Range(float(shards.writers or -(-(shards.skew or 1.0) // 1)), float(MOST_GPUS))
        case SolutionUnknown.INTERVAL_SECONDS:
            return Range(LEAST_INTERVAL_SECONDS, MOST_INTERVAL_SECONDS)


def _just_above_the_copy(asked: Asked) -> float:
    """Return the shortest stall that a fast drain keeps to; 0 where any is, or none.

    Where less is allowed than the copy takes, what is asked of the storage does not shorten the wait for memory.
    """
    copy_seconds = asked.spec.save.copy_seconds
    if copy_seconds is None or asked.basis is SolutionBasis.DELIVERED:
        return 0.0
    return copy_seconds * (1.0 + 1e-9)


class Reached(NamedTuple):
    """What a sizing says about the goals; None where it does not."""

    goodput_fraction: float | None
    waste_usd_per_year: float | None
    restart_seconds: float | None

    @property
    def has_goodput(self) -> bool:
        """Whether any time is left to train."""
        return self.goodput_fraction is not None

    def margin(self, goal: SolutionGoal) -> float:
        """Return by how much the goal is met; below 0 it is missed, and -inf where nothing speaks for it."""
        for name, sense in (
            ("goodput_fraction", 1.0),
            ("waste_usd_per_year", -1.0),
            ("restart_seconds", -1.0),
        ):
            wanted, found = getattr(goal, name), getattr(self, name)
            if wanted is not None and found is not None:
                return float(sense * (found - wanted))
        return float("-inf")


def figures(sizing: Sizing, basis: SolutionBasis) -> Sizing | Delivered:
    """Return the blocks that speak for a goal."""
    if basis is SolutionBasis.DELIVERED and sizing.delivered is not None:
        return sizing.delivered
    return sizing


def reached(sizing: Sizing, basis: SolutionBasis) -> Reached:
    """Return what a sizing says about the goals."""
    block = figures(sizing, basis)
    return Reached(
        block.goodput.exact.goodput_fraction if block.goodput is not None else None,
        block.cost.waste_usd_per_year if block.cost is not None else None,
        block.restart.seconds if block.restart is not None else None,
    )


class Closed(NamedTuple):
    """A value in closed form: the formula of the register, and what goes into it."""

    value: float
    formula: str
    inputs: dict[str, float]


def closed(asked: Asked, best: Sizing, goal: SolutionGoal, goodput_fraction: float | None) -> Closed | None:
    """Return the value that just reaches a goal, where a formula gives it; whether it does is for the caller to see.

    Args:
        asked: What is asked for.
        best: The sizing where the goal is nearest: it has the figures that do not depend on the unknown.
        goal: What is to be reached.
        goodput_fraction: The goodput that the goal comes to, where it is not a restart limit.
    """
    block = figures(best, asked.basis)
    if block.interval is None or block.restart is None or block.blocking is None:
        return None
    unknown = asked.unknown
    load = block.restart.load_seconds
    if goal.restart_seconds is not None:
        if load is None:
            return None
        return _closed(
            "read_for_restart",
            read_bytes=_read_bytes(best),
            restart_seconds=goal.restart_seconds,
            other_restart_seconds=block.restart.seconds - load,
        )
    if goodput_fraction is None or goodput_fraction <= 0.0 or block.interval.effective_seconds is not None:
        return None
    lag = best.write.durable_lag_seconds or 0.0
    if isinstance(block, Delivered) and block.write is not None:
        lag = block.write.durable_lag_seconds or 0.0
    common = {
        "goodput_fraction": goodput_fraction,
        "interval_seconds": block.interval.seconds,
        "mtbf_seconds": best.failures.mtbf_seconds,
    }
    stall = {"blocking_seconds": block.blocking.seconds}
    restart = {"restart_seconds": block.restart.seconds}
    is_fixed = asked.spec.interval.rule is IntervalRule.FIXED
    total = {"checkpoint_bytes": float(best.checkpoint.bytes)}
    if unknown is SolutionUnknown.RESTART_SECONDS and block.restart.seconds == best.restart.seconds:
        return _closed("restart_for_goodput", **common, **stall, durable_lag_seconds=lag)
    if unknown is SolutionUnknown.BLOCKING_SECONDS and is_fixed:
        return _closed("blocking_for_goodput", **common, **restart, durable_lag_seconds=lag)
    if unknown is SolutionUnknown.WRITE_GB_PER_SECOND:
        if asked.spec.save.mode is SaveMode.ASYNC:
            return _closed("async_write_for_goodput", **total, **common, **stall, **restart)
        if is_fixed:
            return _closed("sync_write_for_goodput", **total, **common, **restart)
    if unknown is SolutionUnknown.READ_GB_PER_SECOND and load is not None:
        return _closed(
            "read_for_goodput",
            read_bytes=_read_bytes(best),
            **common,
            **stall,
            durable_lag_seconds=lag,
            other_restart_seconds=block.restart.seconds - load,
        )
    return None


def _closed(formula: str, **inputs: float) -> Closed | None:
    try:
        return Closed(REGISTER[formula].function(**inputs), formula, inputs)
    except (ZeroDivisionError, OverflowError, ValueError):  # beyond what floats hold: left to the search
        return None


def _read_bytes(sizing: Sizing) -> float:
    return float(sizing.read.bytes if sizing.read is not None else sizing.checkpoint.bytes)


def moved_bytes(unknown: SolutionUnknown, sizing: Sizing) -> float:
    """Return what a bandwidth that stands in the spec as a time moves in it. [B]"""
    if unknown is SolutionUnknown.READ_GB_PER_SECOND:
        return _read_bytes(sizing)
    return float(sizing.checkpoint.bytes)


def missing_price(spec: ScenarioSpec) -> Unsatisfiable:
    """Return the refusal of a budget where no price is known."""
    preset = (
        f"; the preset {spec.cluster.gpu_preset} has no price with a source"
        if spec.cluster.gpu_preset is not None
        else ", or a cluster.gpu_preset that has one"
    )
    return Unsatisfiable(
        Fault(
            "#/prices/gpu_hour_usd",
            "missing",
            f"A waste in dollars needs the price of a GPU-hour: give prices.gpu_hour_usd{preset}.",
        )
    )
