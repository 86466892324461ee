"""What would reach a goal that its unknown alone does not: another quantity, two, or all, and how far those go."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from service.errors import Unsatisfiable
from service.sizing import unknowns
from service.sizing.search import Found, Trial, ask, checked, find
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.solution import SolutionUnit
from service.sizing.spec import ScenarioSpec, SolutionGoal, SolutionUnknown
from service.sizing.unknowns import Asked

FACTORS = (0.5, 0.25, 0.1, 0.01, 0.001)
"""The shares of what it is that the first quantity of a pair is tried at; bandwidths grow as much."""


class Pair(NamedTuple):
    """Two quantities that together reach a goal: one set to a value, and the other found beside it."""

    first: SolutionUnknown
    value: float
    factor: float
    """What `value` is of what the scenario has; 0 where it is the end of the range."""
    second: SolutionUnknown
    found: Found

    @property
    def shrinks_the_cluster(self) -> bool:
        """Whether fewer GPUs are a part of it, which is seldom what is wanted."""
        return SolutionUnknown.GPUS in (self.first, self.second)


class Limit(NamedTuple):
    """All quantities at the same share of what they are, or each where it helps most, at the best interval."""

    values: dict[SolutionUnknown, float]
    trial: Trial


def ways_out(asked: Asked, goal: SolutionGoal, spec: ScenarioSpec) -> list[tuple[SolutionUnknown, Found]]:
    """Return the other quantities that would reach the goal, in a spec that has the unknown where it comes nearest."""
    found = ((other, _found(asked, goal, spec, other)) for other in unknowns.levers(asked))
    return [(other, outcome) for other, outcome in found if outcome is not None]


def pairs_out(asked: Asked, goal: SolutionGoal, spec: ScenarioSpec) -> list[Pair]:
    """Return the pairs of other quantities that would reach the goal there, a smaller cluster last.

    A pair reaches it if the second does with the first where that helps most; how much less of the first will do is
    tried at the `FACTORS` alone.
    """
    levers = unknowns.levers(asked)
    pairs = []
    for first, second in _pairs(levers):
        values = list(_values(asked, spec, first))
        if not values or _beside(asked, goal, spec, first, values[-1][1], second) is None:
            continue
        for factor, value in values:
            found = _beside(asked, goal, spec, first, value, second)
            if found is not None:
                pairs.append(Pair(first, value, factor, second, found))
                break
    return sorted(pairs, key=lambda pair: (pair.shrinks_the_cluster, -pair.factor))


def together(asked: Asked, goal: SolutionGoal, spec: ScenarioSpec) -> Limit | None:
    """Return all quantities of time and bandwidth together, as little changed as reaches the goal, or at their ends.

    None where even that has no sizing.
    """
    levers = [lever for lever in unknowns.levers(asked) if lever not in _APART]
    limit = None
    for at in range(len(FACTORS) + 1):
        changed, values = spec, {}
        for lever in levers:
            steps = dict(_values(asked, changed, lever))
            factor = FACTORS[at] if at < len(FACTORS) else 0.0
            value = steps.get(factor, steps.get(0.0))
            if value is not None:
                changed, values[lever] = _put_in(asked, changed, lever, value), value
        try:
            trial = find(ask(changed, SolutionUnknown.INTERVAL_SECONDS, asked.basis), goal).trial
        except Unsatisfiable:
            continue
        limit = Limit(values, trial)
        if trial.meets:
            break
    return limit


_APART = (SolutionUnknown.INTERVAL_SECONDS, SolutionUnknown.GPUS)
"""The best interval follows from the others, and a cluster of one GPU reaches any goal."""


def _pairs(levers: list[SolutionUnknown]) -> Iterable[tuple[SolutionUnknown, SolutionUnknown]]:
    """Return every two, with the interval second: a share of an interval is no better than the whole."""
    ordered = sorted(levers, key=lambda lever: lever is SolutionUnknown.INTERVAL_SECONDS)
    return [(first, second) for at, first in enumerate(ordered) for second in ordered[at + 1 :]]


def _values(asked: Asked, spec: ScenarioSpec, unknown: SolutionUnknown) -> Iterator[tuple[float, float]]:
    """Yield the values to try a quantity at, each with its share of what it is; the last is the end of its range."""
    try:
        sizing = size(spec)
        best, cheapest = unknowns.range_of(ask(spec, unknown, asked.basis))
    except Unsatisfiable:
        return
    stated = _stated(spec, sizing, unknown)
    more = unknowns.UNITS[unknown] is SolutionUnit.GB_PER_SECOND
    for factor in FACTORS if stated is not None else ():
        assert stated is not None  # noqa: S101 - there is no factor without it
        value = stated / factor if more else stated * factor
        if unknown is SolutionUnknown.GPUS:
            value = float(round(value))
        if min(best, cheapest) < value < max(best, cheapest):
            yield factor, value
    yield 0.0, best


def _stated(spec: ScenarioSpec, sizing: Sizing, unknown: SolutionUnknown) -> float | None:
    """Return what a quantity is in a scenario; None where it has none."""
    match unknown:
        case SolutionUnknown.RESTART_SECONDS:
            return sizing.restart.seconds
        case SolutionUnknown.BLOCKING_SECONDS:
            return sizing.blocking.allowed_seconds
        case SolutionUnknown.GPUS:
            return float(spec.cluster.gpus)
        case SolutionUnknown.WRITE_GB_PER_SECOND:
            storage = spec.storage_system
            return sizing.write.required_gb_per_second if storage is None else storage.write_gb_per_second
        case _:
            return None


def _put_in(asked: Asked, spec: ScenarioSpec, unknown: SolutionUnknown, value: float) -> ScenarioSpec:
    return unknowns.put_in(ask(spec, unknown, asked.basis), value)


def _beside(
    asked: Asked,
    goal: SolutionGoal,
    spec: ScenarioSpec,
    first: SolutionUnknown,
    value: float,
    second: SolutionUnknown,
) -> Found | None:
    """Return what the second quantity has to be with the first at a value; None where nothing will do."""
    try:
        changed = checked(_put_in(asked, spec, first, value))
    except Unsatisfiable:
        return None
    return _found(asked, goal, changed, second)


def _found(asked: Asked, goal: SolutionGoal, spec: ScenarioSpec, unknown: SolutionUnknown) -> Found | None:
    try:
        outcome = find(ask(spec, unknown, asked.basis), goal)
    except Unsatisfiable:
        return None
    return outcome if isinstance(outcome, Found) else None
