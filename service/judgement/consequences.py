"""What the gap costs: the sizing again, with the measured stall, lag and load in place of the specified ones.

Once with all of them together, and once with each usable figure alone. A figure that nobody measured, or that
decides nothing, keeps its specified value.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.errors import Unsatisfiable
from service.judgement import sentences
from service.judgement.report import Consequence, Consequences, Difference, Status, TargetReport
from service.sizing.interval import exact_interval
from service.sizing.size import size
from service.sizing.sizing import Sizing, TargetId
from service.sizing.spec import RestartSpec, SaveMode, ScenarioSpec
from service.units import GB

LEAST_SECONDS = 1e-6
"""The shortest time that a spec can state."""
MOST_SECONDS = 1e100
"""A longer one is no time: the formulas would leave the numbers there are."""

_DECIDING = frozenset({Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES})


@dataclass(frozen=True, slots=True)
class _Time:
    """A time that training feels, and the target whose figure it is; without one it is as specified."""

    seconds: float
    target: TargetReport | None


@dataclass(frozen=True, slots=True)
class _Times:
    """The three times that a measurement can change; the last two are None where the scenario has none."""

    blocking: _Time
    lag: _Time | None
    load: _Time | None

    def used(self) -> list[TargetReport]:
        return [
            each.target
            for each in (self.blocking, self.lag, self.load)
            if each is not None and each.target is not None
        ]


def consequences(*, spec: ScenarioSpec, sizing: Sizing, targets: Sequence[TargetReport]) -> Consequences:
    """Return what the measured figures make of the scenario.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        targets: The judged targets, whose usable figures take the place of the specified ones.
    """
    by_id = {target.id: target for target in targets if target.status in _DECIDING}
    times = _Times(_blocking(spec, sizing, by_id), _lag(spec, sizing, by_id), _load(spec, sizing, by_id))
    used = times.used()
    together = _sized(spec, sizing, times) if used else None
    each = _each(spec, sizing, by_id, times, together)
    if together is None:
        return Consequences(
            feasible=True,
            reason="No usable measurement bears on the stall, the durable lag or the load: only the "
            "specified figures are known.",
            specified=sizing,
            used=[],
            extrapolated=[],
            each=each,
        )
    used_ids = [target.id for target in used]
    scaled_ids = [target.id for target in used if not target.full_scale]
    if isinstance(together, Unsatisfiable):
        return Consequences(
            feasible=False,
            reason=_why_not(together),
            specified=sizing,
            used=used_ids,
            extrapolated=scaled_ids,
            next_interval_seconds=_exact_interval(sizing, times),
            each=each,
        )
    return Consequences(
        feasible=True,
        specified=sizing,
        measured=together,
        difference=_difference(sizing, together),
        used=used_ids,
        extrapolated=scaled_ids,
        collision=_collision(sizing, together, times),
        each=each,
    )


def _sized(spec: ScenarioSpec, sizing: Sizing, times: _Times) -> Sizing | Unsatisfiable:
    """Return the scenario sized with these times, or why that has no answer."""
    try:
        return size(_measured_spec(spec, sizing, times))
    except Unsatisfiable as error:
        return error


def _why_not(error: Unsatisfiable) -> str:
    return sentences.capitalised("; ".join(fault.detail for fault in error.faults))


def _exact_interval(sizing: Sizing, times: _Times) -> float:
    return exact_interval(blocking_seconds=times.blocking.seconds, mtbf_seconds=sizing.failures.mtbf_seconds)


def _each(
    spec: ScenarioSpec,
    sizing: Sizing,
    by_id: Mapping[TargetId, TargetReport],
    all_times: _Times,
    together: Sizing | Unsatisfiable | None,
) -> list[Consequence]:
    """Return what each usable figure does by itself, in the order of the targets."""
    specified = _Times(_blocking(spec, sizing, {}), _lag(spec, sizing, {}), _load(spec, sizing, {}))
    found = []
    for target in by_id.values():
        times = _alone(target, spec, sizing, specified)
        if times is None:
            continue
        alone = _sized(spec, sizing, times)
        saved = None
        if isinstance(together, Sizing) and any(used.id is target.id for used in all_times.used()):
            saved = _saved(spec, sizing, together, _without(target, all_times, specified))
        found.append(_consequence(target, sizing, times, alone, saved))
    return found


def _alone(target: TargetReport, spec: ScenarioSpec, sizing: Sizing, specified: _Times) -> _Times | None:
    """Return the specified times with what one figure makes of them; None where it bears on none of them.

    The time of the slowest writer and that of the creates are parts of a save: they can make it longer, and
    say nothing of how much shorter it is.
    """
    is_async = spec.save.mode is SaveMode.ASYNC
    window = sizing.write.window_seconds(sizing.blocking)
    if target.measured is None:
        return None
    written: _Time | None = None
    loaded: _Time | None = None
    match target.id:
        case TargetId.BLOCKING_SECONDS:
            blocking = _timed(target)
            return replace(specified, blocking=blocking) if blocking is not None else None
        case TargetId.WRITE_BANDWIDTH | TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD:
            written = _transferred(sizing.checkpoint.bytes, target)
        case TargetId.NODE_WRITE_BANDWIDTH:
            written = _transferred(sizing.checkpoint.bytes / sizing.checkpoint.nodes, target)
        case TargetId.PERSIST_SECONDS:
            written = _timed(target)
        case TargetId.SLOWEST_WRITER_SECONDS:
            written = _time(max(window, target.measured), target)
        case TargetId.FILE_CREATE_RATE:
            creates = sizing.metadata.creates_per_save / target.measured if target.measured else math.inf
            written = _time(max(window, creates), target)
        case TargetId.READ_BANDWIDTH:
            loaded = _transferred(sizing.read.bytes, target) if sizing.read is not None else None
        case TargetId.NODE_READ_BANDWIDTH:
            loaded = (
                _transferred(sizing.read.bytes / sizing.checkpoint.nodes, target)
                if sizing.read is not None
                else None
            )
        case TargetId.LOAD_SECONDS | TargetId.RESHARDED_LOAD_SECONDS:
            loaded = _timed(target)
        case TargetId.CHECKPOINT_BYTES:
            # At the bandwidths that were specified, more bytes take longer in proportion.
            growth = target.measured / sizing.checkpoint.bytes
            written = _time(window * growth, target)
            if specified.load is not None:
                loaded = _time(specified.load.seconds * growth, target)
    if written is None and loaded is None:
        return None
    if written is not None:
        specified = replace(specified, lag=written) if is_async else replace(specified, blocking=written)
    return replace(specified, load=loaded) if loaded is not None else specified


def _without(target: TargetReport, times: _Times, specified: _Times) -> _Times:
    """Return the times with that of one target as it was specified."""

    def kept(time: _Time | None, instead: _Time | None) -> _Time | None:
        return instead if time is not None and time.target is target else time

    return _Times(
        kept(times.blocking, specified.blocking) or specified.blocking,
        kept(times.lag, specified.lag),
        kept(times.load, specified.load),
    )


def _saved(spec: ScenarioSpec, sizing: Sizing, together: Sizing, fixed: _Times) -> float | None:
    """Return the dollars a year that all measured figures waste more than they would with one of them fixed."""
    sized = _sized(spec, sizing, fixed) if fixed.used() else sizing
    if isinstance(sized, Unsatisfiable):
        return None
    return _difference(sized, together).waste_usd_per_year


def _consequence(
    target: TargetReport,
    sizing: Sizing,
    times: _Times,
    alone: Sizing | Unsatisfiable,
    saved: float | None,
) -> Consequence:
    known = Consequence(
        target=target.id,
        blocking_seconds=_changed(times.blocking),
        durable_lag_seconds=_changed(times.lag),
        load_seconds=_changed(times.load),
        extrapolated=not target.full_scale,
        feasible=isinstance(alone, Sizing),
        exact_interval_seconds=_exact_interval(sizing, times),
        saved_if_fixed_usd_per_year=saved,
        sentence="",
    )
    if isinstance(alone, Unsatisfiable):
        return known.model_copy(update={"sentence": _why_not(alone)})
    difference = _difference(sizing, alone)
    collision = _collision(sizing, alone, times)
    return known.model_copy(
        update={
            "interval_seconds": alone.interval.seconds,
            "effective_interval_seconds": alone.interval.effective_seconds,
            "goodput_fraction": alone.goodput.exact.goodput_fraction,
            "waste_usd_per_year": alone.cost.waste_usd_per_year if alone.cost is not None else None,
            "difference": difference,
            "sentence": _in_words(target, sizing, times, difference) + (f" {collision}" if collision else ""),
        }
    )


def _changed(time: _Time | None) -> float | None:
    return time.seconds if time is not None and time.target is not None else None


def _in_words(target: TargetReport, sizing: Sizing, times: _Times, difference: Difference) -> str:
    """Return what one figure does to training, in a sentence."""
    parts = []
    for time, what, before in (
        (times.blocking, "a save stops training for", sizing.blocking.seconds),
        (times.lag, "a save is durable after", sizing.write.durable_lag_seconds),
        (times.load, "a load takes", sizing.restart.load_seconds),
    ):
        if time is not None and time.target is not None and before is not None:
            parts.append(
                f"{what} {sentences.number(time.seconds)} s in place of {sentences.number(before)} s"
            )
    name = sentences.NAMES[target.id]
    if abs(difference.goodput_fraction) < _NOTHING_FRACTION:
        return f"By the measured {name} alone, {' and '.join(parts)}, which changes nothing."
    loses = difference.goodput_fraction < 0.0
    money = difference.waste_usd_per_year
    priced = (
        ""
        if money is None
        else f", {sentences.dollars(abs(money))} a year {'more' if loses else 'less'} wasted"
    )
    return (
        f"By the measured {name} alone, {' and '.join(parts)}: {'a loss' if loses else 'a gain'} of "
        f"{sentences.percent(abs(difference.goodput_fraction))} of all time{priced}."
    )


_NOTHING_FRACTION = 1e-9
"""A smaller change of the goodput comes from adding up floats."""


def _collision(specified: Sizing, measured: Sizing, times: _Times) -> str | None:
    """Return a sentence where async saves wait for one another with the measured figures."""
    period = measured.interval.effective_seconds
    if period is None or times.lag is None:
        return None
    again = (
        "Saves collide, as they do with the specified figures"
        if specified.interval.effective_seconds
        else ("Saves now collide")
    )
    return (
        f"{again}: one is durable {sentences.number(times.lag.seconds)} s after training went on, so the interval "
        f"of {sentences.number(measured.interval.seconds)} s becomes {sentences.number(period)} s."
    )


def _blocking(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time:
    """Return the stall: as timed; for sync saves else the checkpoint over its bandwidth; else specified."""
    timed = _timed(measured.get(TargetId.BLOCKING_SECONDS))
    if timed is None and spec.save.mode is SaveMode.SYNC:
        timed = _transferred(sizing.checkpoint.bytes, measured.get(TargetId.WRITE_BANDWIDTH))
    return timed or _Time(sizing.blocking.seconds, None)


def _lag(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time | None:
    """Return the durable lag of async saves, likewise; None for sync ones, which have none."""
    if spec.save.mode is SaveMode.SYNC or sizing.write.durable_lag_seconds is None:
        return None
    return (
        _timed(measured.get(TargetId.PERSIST_SECONDS))
        or _transferred(sizing.checkpoint.bytes, measured.get(TargetId.WRITE_BANDWIDTH))
        or _Time(sizing.write.durable_lag_seconds, None)
    )


def _load(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time | None:
    """Return the load of a restart, likewise; None where the scenario has no restore target to replace."""
    if spec.restore is None or sizing.read is None:
        return None
    return (
        _timed(measured.get(TargetId.LOAD_SECONDS))
        or _transferred(sizing.read.bytes, measured.get(TargetId.READ_BANDWIDTH))
        or _Time(_specified_load_seconds(spec, spec.restore.target_seconds), None)
    )


def _timed(target: TargetReport | None) -> _Time | None:
    if target is None or target.measured is None:
        return None
    return _time(target.measured, target)


def _time(seconds: float, target: TargetReport) -> _Time | None:
    """Return the time that a figure gives, where it is one that the formulas bear."""
    return _Time(max(seconds, LEAST_SECONDS), target) if seconds <= MOST_SECONDS else None


def _transferred(total_bytes: float, target: TargetReport | None) -> _Time | None:
    """Return how long the bytes take at the measured rate, where that is a time at all."""
    if target is None or not target.measured:
        return None
    return _time(total_bytes / GB / target.measured, target)


def _specified_load_seconds(spec: ScenarioSpec, target_seconds: float) -> float:
    """Return the seconds of load that the specified restart time has in it."""
    restart = spec.restart
    return restart.load_seconds if restart.load_seconds is not None else target_seconds


def _measured_spec(spec: ScenarioSpec, sizing: Sizing, times: _Times) -> ScenarioSpec:
    """Return the scenario with the times stated outright, whatever they were derived from before.

    A storage block goes: it says what a system was believed to deliver. Times beyond the bounds of a spec are
    let through, since the formulas bear them and a measurement is what it is.
    """
    blocking, lag, load = times.blocking, times.lag, times.load
    save: dict[str, object] = {"blocking_seconds": blocking.seconds, "overhead_fraction": None}
    if lag is not None:
        save["durable_lag_seconds"] = lag.seconds
        if spec.save.staging_budget_bytes_per_node is not None:
            save |= _through_staging(sizing, blocking, lag)
    changed: dict[str, object] = {"save": spec.save.model_copy(update=save), "storage": None}
    if spec.restore is None and spec.restart.seconds is None:
        # The load may have come from the storage block.
        changed["restart"] = spec.restart.model_copy(update={"load_seconds": sizing.restart.load_seconds})
    if load is not None and load.target is not None and spec.restore is not None:
        if spec.restart.seconds is None:
            changed["restart"] = spec.restart.model_copy(update={"load_seconds": load.seconds})
        else:
            others = max(spec.restart.seconds - spec.restore.target_seconds, 0.0)
            changed["restart"] = RestartSpec.model_construct(seconds=others + load.seconds)
        changed["restore"] = spec.restore.model_copy(update={"target_seconds": load.seconds})
    return spec.model_copy(update=changed)


def _through_staging(sizing: Sizing, blocking: _Time, lag: _Time) -> dict[str, object]:
    """Return the fields of a save that goes through a staging budget.

    A measured stall holds the wait for staging memory, and a measured lag is what is left of the drain after it. A
    measured rate says how long the whole drain takes, from which both follow.
    """
    if blocking.target is None and (lag.target is None or lag.target.id is not TargetId.PERSIST_SECONDS):
        drain = lag.seconds if lag.target is not None else sizing.write.window_seconds(sizing.blocking)
        return {"blocking_seconds": sizing.blocking.allowed_seconds, "durable_lag_seconds": drain}
    return {"staging_budget_bytes_per_node": None, "copy_seconds": None, "drain_overlaps_copy": None}


def _difference(specified: Sizing, measured: Sizing) -> Difference:
    wasted = [
        sizing.cost.waste_usd_per_year if sizing.cost is not None else None
        for sizing in (specified, measured)
    ]
    before, after = wasted
    return Difference(
        goodput_fraction=measured.goodput.exact.goodput_fraction - specified.goodput.exact.goodput_fraction,
        waste_usd_per_year=after - before if before is not None and after is not None else None,
    )
