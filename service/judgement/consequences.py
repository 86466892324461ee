"""What the gap costs: the sizing again, with the measured stall, lag and load in place of the specified ones.

Once with all of them together, and once with each usable figure alone. A figure that nobody measured, or that
decides nothing, keeps its specified value. The whole is never better than its parts, but for a save or a load
that was timed from end to end on all nodes: that holds its parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.errors import Unsatisfiable
from service.judgement import sentences
from service.judgement.report import Consequence, Consequences, Difference, Status, TargetReport
from service.sizing.interval import exact_interval
from service.sizing.size import size
from service.sizing.sizing import Read, Sizing, TargetId, Write
from service.sizing.spec import RestartSpec, SaveMode, ScenarioSpec
from service.sizing.staged import staged
from service.units import GB

LEAST_SECONDS = 1e-6
"""The shortest time that a spec can state."""
MOST_SECONDS = 1e12
"""What stands for a longer one, up to that of a rate of nothing: the formulas would leave the numbers there are."""

_DECIDING = frozenset({Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES})

_PARTS_OF_A_SAVE = frozenset({TargetId.SLOWEST_WRITER_SECONDS, TargetId.FILE_CREATE_RATE})
_WHOLE_OF = {
    TargetId.NODE_WRITE_BANDWIDTH: TargetId.WRITE_BANDWIDTH,
    TargetId.NODE_READ_BANDWIDTH: TargetId.READ_BANDWIDTH,
}
"""Two names for one measured figure, unless a node is fuller than others and another run shows how fast it is."""

_Usable = Mapping[TargetId, TargetReport]


@dataclass(frozen=True, slots=True)
class _Time:
    """A time that training feels, and the targets whose figures make it; without any it is as specified."""

    seconds: float
    targets: tuple[TargetReport, ...] = ()


@dataclass(frozen=True, slots=True)
class _Times:
    """The three times that a measurement can change; the last two are None where the scenario has none."""

    blocking: _Time
    lag: _Time | None
    load: _Time | None

    def used(self) -> list[TargetReport]:
        """The targets whose figures are in them, each once."""
        parts = (self.blocking, self.lag, self.load)
        named = [target for part in parts if part is not None for target in part.targets]
        return list({target.id: target for target in named}.values())


def consequences(*, spec: ScenarioSpec, sizing: Sizing, targets: Sequence[TargetReport]) -> Consequences:
    """Return what the measured figures make of the scenario.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        targets: The judged targets, whose usable figures take the place of the specified ones.
    """
    by_id = {target.id: target for target in targets if target.status in _DECIDING}
    times = _times(spec, sizing, by_id)
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
    by_id: _Usable,
    all_times: _Times,
    together: Sizing | Unsatisfiable | None,
) -> list[Consequence]:
    """Return what each usable figure does by itself, in the order of the targets."""
    found = []
    for target in by_id.values():
        times = _alone(target, spec, sizing)
        if times is None:
            continue
        saved = _saved(target, spec, sizing, by_id, together) if isinstance(together, Sizing) else None
        found.append(
            _consequence(
                target,
                sizing,
                times,
                _sized(spec, sizing, times),
                saved=saved,
                superseded_by=_superseded_by(target, sizing, times, all_times),
            )
        )
    return found


def _alone(target: TargetReport, spec: ScenarioSpec, sizing: Sizing) -> _Times | None:
    """Return the specified times with what one figure makes of them; None where it bears on none of them."""
    times = _times(spec, sizing, {target.id: target})
    if times.used():
        return times
    if target.id not in _PARTS_OF_A_SAVE:
        return None
    # It leaves the save as long as it was specified, which is worth saying.
    return (
        replace(times, blocking=replace(times.blocking, targets=(target,)))
        if times.lag is None
        else replace(times, lag=replace(times.lag, targets=(target,)))
    )


def _is_whole_of(whole: TargetReport, target: TargetReport, sizing: Sizing) -> bool:
    """Return whether the figure of a node is that of all nodes, by another name."""
    if _WHOLE_OF.get(target.id) is not whole.id:
        return False
    return sizing.layout is None or whole.run_ids == target.run_ids


def _superseded_by(target: TargetReport, sizing: Sizing, alone: _Times, together: _Times) -> TargetId | None:
    """Return the target whose figure the whole has in place of this one; None where it has this one."""
    if any(used.id is target.id or _is_whole_of(used, target, sizing) for used in together.used()):
        return None
    for part, whole in (
        (alone.blocking, together.blocking),
        (alone.lag, together.lag),
        (alone.load, together.load),
    ):
        if part is not None and part.targets and whole is not None and whole.targets:
            return whole.targets[0].id
    return None


def _saved(
    target: TargetReport, spec: ScenarioSpec, sizing: Sizing, by_id: _Usable, together: Sizing
) -> float | None:
    """Return the dollars a year that all figures waste more than they would if this one just met its target.

    None for a figure that meets it, and where there is no price.
    """
    if target.status is not Status.MISSED:
        return None
    fixed = dict(by_id)
    for each in by_id.values():
        if each is target or _is_whole_of(each, target, sizing) or _is_whole_of(target, each, sizing):
            fixed[each.id] = each.model_copy(update={"measured": each.value})
    sized = _sized(spec, sizing, _times(spec, sizing, fixed))
    return _difference(sized, together).waste_usd_per_year if isinstance(sized, Sizing) else None


def _consequence(
    target: TargetReport,
    sizing: Sizing,
    times: _Times,
    alone: Sizing | Unsatisfiable,
    *,
    saved: float | None,
    superseded_by: TargetId | None,
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
        superseded_by=superseded_by,
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
            "sentence": _in_words(target, sizing, times, difference)
            + (f" {collision}" if collision else "")
            + (f" All together, {_says_more(superseded_by)}" if superseded_by is not None else ""),
        }
    )


def _says_more(target_id: TargetId) -> str:
    return f"the {sentences.NAMES[target_id]} says more of that time and goes before it."


def _changed(time: _Time | None) -> float | None:
    return time.seconds if time is not None and time.targets else None


def _in_words(target: TargetReport, sizing: Sizing, times: _Times, difference: Difference) -> str:
    """Return what one figure does to training, in a sentence."""
    parts = []
    for time, what, before in (
        (times.blocking, "a save stops training for", sizing.blocking.seconds),
        (times.lag, "a save is durable after", sizing.write.durable_lag_seconds),
        (times.load, "a load takes", sizing.restart.load_seconds),
    ):
        if time is not None and time.targets and before is not None:
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


def _times(spec: ScenarioSpec, sizing: Sizing, measured: _Usable) -> _Times:
    """Return the times that the usable figures make, the specified ones where none bears on them.

    A save timed from end to end on all nodes has made its files and waited for its slowest writer. Any other
    figure may leave some of that out, so then the longest time that any figure speaks of counts.
    """
    is_async = spec.save.mode is SaveMode.ASYNC
    blocking = _Time(sizing.blocking.seconds)
    stalled = _timed(measured.get(TargetId.BLOCKING_SECONDS))
    if not is_async or sizing.write.durable_lag_seconds is None:
        return _Times(_saved_in(sizing, measured, stalled, blocking), None, _load(spec, sizing, measured))
    persisted = _timed(measured.get(TargetId.PERSIST_SECONDS))
    lag = _saved_in(sizing, measured, persisted, _Time(sizing.write.window_seconds(sizing.blocking)))
    return _Times(stalled or blocking, lag, _load(spec, sizing, measured))


def _saved_in(sizing: Sizing, measured: _Usable, timed: _Time | None, specified: _Time) -> _Time:
    """Return how long a save takes: to be written if it is sync, to be durable if it is async."""
    checkpoint = sizing.checkpoint
    timed_whole = timed is not None and timed.targets[0].full_scale is True
    size = measured.get(TargetId.CHECKPOINT_BYTES)
    moved = _transferred(checkpoint.bytes, size, measured.get(TargetId.WRITE_BANDWIDTH))
    by_node = _transferred(
        _node_bytes(checkpoint.bytes, sizing.write), size, measured.get(TargetId.NODE_WRITE_BANDWIDTH)
    )
    # Async saves drain while the data loaders read, whatever they do on an idle system.
    loaded = _transferred(checkpoint.bytes, size, measured.get(TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD))
    untimed = [] if timed_whole else [moved, *_beside_the_whole(by_node, moved, sizing.write)]
    wholes = [timed, *untimed, loaded]
    parts = [] if timed_whole else [_slowest(measured), _creates(sizing, measured)]
    return _longest(wholes, parts, specified, size)


def _load(spec: ScenarioSpec, sizing: Sizing, measured: _Usable) -> _Time | None:
    """Return how long a restart's load takes; None where the scenario has no restore target to replace.

    A restart after lost hardware loads onto other ranks than saved, so the slower of both loads counts.
    """
    if spec.restore is None or sizing.read is None:
        return None
    specified = _Time(_specified_load_seconds(spec, spec.restore.target_seconds))
    size = measured.get(TargetId.CHECKPOINT_BYTES)
    timed = _timed(measured.get(TargetId.LOAD_SECONDS))
    resharded = _timed(measured.get(TargetId.RESHARDED_LOAD_SECONDS))
    read = _transferred(sizing.read.bytes, size, measured.get(TargetId.READ_BANDWIDTH))
    by_node = _transferred(
        _node_bytes(sizing.read.bytes, sizing.read), size, measured.get(TargetId.NODE_READ_BANDWIDTH)
    )
    timed_whole = timed is not None and timed.targets[0].full_scale is True
    untimed = [] if timed_whole else [read, *_beside_the_whole(by_node, read, sizing.read)]
    wholes = [timed, *untimed, resharded]
    return _longest(wholes, [], specified, size)


def _node_bytes(total_bytes: float, needed: Write | Read) -> float:
    """Return what of a transfer the node has whose rate is the target: the fullest, or each of them alike. [B]"""
    return total_bytes * (needed.node_gb_per_second / needed.required_gb_per_second)


def _beside_the_whole(by_node: _Time | None, whole: _Time | None, needed: Write | Read) -> list[_Time | None]:
    """Return the time of a node where it may not be that of all: another name for it, unless one node is fuller."""
    return [by_node] if whole is None or needed.largest_node_gb_per_second is not None else []


def _longest(
    wholes: Sequence[_Time | None],
    parts: Sequence[_Time | None],
    specified: _Time,
    size: TargetReport | None,
) -> _Time:
    """Return the longest of what was measured.

    Where nothing measured the whole of it, that is as specified, in proportion to the bytes that a checkpoint
    was found to hold; a part can then make it longer, and says nothing of how much shorter it is.
    """
    known = [time for time in wholes if time is not None]
    if not known:
        known = [_time(specified.seconds * _growth(size), size) if size is not None else specified]
    known += [time for time in parts if time is not None]
    return max(known, key=lambda time: time.seconds)


def _slowest(measured: _Usable) -> _Time | None:
    return _timed(measured.get(TargetId.SLOWEST_WRITER_SECONDS))


def _creates(sizing: Sizing, measured: _Usable) -> _Time | None:
    """Return how long the files of a save take to be made."""
    target = measured.get(TargetId.FILE_CREATE_RATE)
    if target is None or target.measured is None:
        return None
    return _time(_over(sizing.metadata.creates_per_save, target.measured), target)


def _growth(size: TargetReport | None) -> float:
    """Return the bytes of a checkpoint over those specified, as far as they were measured."""
    return size.measured / size.value if size is not None and size.measured is not None else 1.0


def _timed(target: TargetReport | None) -> _Time | None:
    if target is None or target.measured is None:
        return None
    return _time(target.measured, target)


def _time(seconds: float, *targets: TargetReport) -> _Time:
    """Return the time that figures give, as one that the formulas bear."""
    return _Time(min(max(seconds, LEAST_SECONDS), MOST_SECONDS), targets)


def _over(amount: float, rate: float) -> float:
    """Return how long an amount takes at a rate, which may be nothing. [s]"""
    return amount / rate if rate > amount / MOST_SECONDS else MOST_SECONDS


def _transferred(
    specified_bytes: float, size: TargetReport | None, target: TargetReport | None
) -> _Time | None:
    """Return how long the bytes take at the measured rate, where that is a time at all.

    They are as many as a measured checkpoint has, where one was.
    """
    if target is None or target.measured is None:
        return None
    growth = _growth(size)
    if size is None or abs(growth - 1.0) < _NOTHING_FRACTION:
        return _time(_over(specified_bytes / GB, target.measured), target)
    return _time(_over(specified_bytes * growth / GB, target.measured), target, size)


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
            save |= _through_staging(spec, sizing, blocking, lag)
    changed: dict[str, object] = {"save": spec.save.model_copy(update=save), "storage": None}
    if spec.restore is None and spec.restart.seconds is None:
        # The load may have come from the storage block.
        changed["restart"] = spec.restart.model_copy(update={"load_seconds": sizing.restart.load_seconds})
    if load is not None and load.targets and spec.restore is not None:
        if spec.restart.seconds is None:
            changed["restart"] = spec.restart.model_copy(update={"load_seconds": load.seconds})
        else:
            others = max(spec.restart.seconds - spec.restore.target_seconds, 0.0)
            changed["restart"] = RestartSpec.model_construct(seconds=others + load.seconds)
        changed["restore"] = spec.restore.model_copy(update={"target_seconds": load.seconds})
    return spec.model_copy(update=changed)


def _through_staging(spec: ScenarioSpec, sizing: Sizing, blocking: _Time, lag: _Time) -> dict[str, object]:
    """Return the fields of a save that goes through a staging budget, which then is in them.

    A measured stall holds the wait for staging memory, and a measured lag is what is left of the drain after it. Any
    other figure says how long the whole drain takes, from which both follow, whatever stall is allowed.
    """
    unstaged: dict[str, object] = {
        "staging_budget_bytes_per_node": None,
        "copy_seconds": None,
        "drain_overlaps_copy": None,
    }
    if (
        sizing.host_memory is not None
        and not blocking.targets
        and TargetId.PERSIST_SECONDS not in {target.id for target in lag.targets}
    ):
        through = staged(
            spec,
            node_share_bytes=sizing.host_memory.bytes_per_node / sizing.host_memory.staging_buffers,
            mtbf_seconds=sizing.failures.mtbf_seconds,
            drain_seconds=lag.seconds,
        )
        assert through is not None  # noqa: S101 - a drain that no interval stretches always has an answer
        return {
            **unstaged,
            "blocking_seconds": through.blocking_seconds,
            "durable_lag_seconds": through.lag_seconds,
        }
    return unstaged if lag.targets else {**unstaged, "durable_lag_seconds": sizing.write.durable_lag_seconds}


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
