"""A scenario's figures over time, run by run, and whether they changed.

Only what can be set side by side stands in one series: figures of one target, one tool, one number of nodes, one
load of a rank, with the same conditions and the same doubts that flatter.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from service.judgement import change, doubts, sentences
from service.judgement.evidence import SOURCES, Figure, figures
from service.judgement.figure import may_speak, reading_of
from service.judgement.report import EvidenceChoice
from service.judgement.verdict import goodness
from service.parsers.measurement import DoubtCode
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Comparison, Scope, Sizing, Target, TargetId, TargetUnit
from service.sizing.spec import ScenarioSpec
from service.units import DAY_SECONDS
from service.wire import Absent, Outgoing


class ChangeKind(StrEnum):
    """What a series shows."""

    TOO_FEW = "too_few"
    """Too few points to say."""
    STEADY = "steady"
    """No change that is certain and large enough."""
    STEP = "step"
    """The level shifted between two runs."""
    DRIFT = "drift"
    """It moved slowly, all along."""


class Direction(StrEnum):
    """Which way a change went."""

    BETTER = "better"
    WORSE = "worse"


class Change(Outgoing):
    """What a series shows, by the thresholds of the answer."""

    kind: ChangeKind
    direction: Direction | Absent = None
    """Which way, seen from the target; absent without a change."""
    before: float | Absent = None
    """Of a step the median before it, of a drift the fitted level at the first point; in the unit of the figure."""
    after: float | Absent = None
    """Of a step the median from there on, of a drift the fitted level at the last point."""
    change_fraction: float | Absent = None
    """After less before, over before; absent where there was nothing before."""
    first_run_id: UUID | Absent = None
    """Of a step: the first run after it."""
    changed_after_at: datetime | Absent = None
    """Of a step: when the last run before it took place."""
    changed_before_at: datetime | Absent = None
    """Of a step: when the first run after it took place."""
    probability: float | Absent = None
    """Of a step: an upper bound on how likely so clear a one is by chance."""
    slope_per_day: float | Absent = None
    """Of a drift: the Theil-Sen slope, in the unit of the figure a day."""
    slope_low_per_day: float | Absent = None
    """Lower end of its confidence interval."""
    slope_high_per_day: float | Absent = None
    """Upper end."""
    sentence: str


class SeriesPoint(Outgoing):
    """The figure of one run."""

    run_id: UUID
    took_place_at: datetime
    """When, as far as is known: at the latest when it was received."""
    value: float
    """In the unit of the figure, as the run had it: over all its nodes, or for one of them."""


class Series(Outgoing):
    """One figure over time, from runs that can be set side by side."""

    figure: TargetId
    unit: TargetUnit
    comparison: Comparison
    target_value: float
    """What the scenario asks of all its nodes; a smaller run is not to be held against it."""
    tool: str
    nodes: int | Absent = None
    """Nodes of each run; absent where unknown."""
    rank_bytes: float | Absent = None
    """Bytes that a rank moved in each benchmark run, to two digits; absent where unknown. [B]"""
    conditions: list[Condition]
    flattered_by: list[DoubtCode]
    """Doubts that each of the runs has, and for which the true figure can only be worse."""
    points: list[SeriesPoint]
    """The oldest first; at most as many as the thresholds say, the newest."""
    points_left_out: int
    """Older ones."""
    change: Change


class SeriesThresholds(Outgoing):
    """From where on something counts as a change."""

    least_points: int
    """Fewer are `too_few`."""
    least_segment_points: int
    """A step has as many points on either side."""
    most_points: int
    """Only the newest so many are looked at."""
    significance_fraction: float
    """How often either test may see a change where there is none."""
    least_change_fraction: float
    """A smaller change is no news."""


class SeriesReport(Outgoing):
    """A scenario's figures over time."""

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    storage_label: str | Absent = None
    """The storage; absent where its runs have no label."""
    evidence: EvidenceChoice
    runs_considered: int
    thresholds: SeriesThresholds
    series: list[Series]
    """In the order of the targets; of one target the longest first."""


_THRESHOLDS = SeriesThresholds(
    least_points=change.LEAST_POINTS,
    least_segment_points=change.LEAST_SEGMENT_POINTS,
    most_points=change.MOST_POINTS,
    significance_fraction=change.SIGNIFICANCE_FRACTION,
    least_change_fraction=change.LEAST_CHANGE_FRACTION,
)

_Key = tuple[str, int | None, float | None, tuple[Condition, ...], tuple[DoubtCode, ...]]


def series(
    *,
    spec: ScenarioSpec,
    sizing: Sizing,
    scenario_id: UUID,
    scenario_revision: int,
    runs: Sequence[BenchmarkRun],
    storage_label: str | None,
    choice: EvidenceChoice,
    only: Collection[TargetId] | None = None,
) -> SeriesReport:
    """Return the figures of a storage's runs over time.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id.
        scenario_revision: The revision that `spec` is.
        runs: The runs of that storage that `choice` admits by id and time, in any order.
        storage_label: Their label, if they have one.
        choice: What was asked for of the evidence.
        only: The figures to tell; None for all that the scenario has a target for.
    """
    ordered = sorted(runs, key=lambda run: (run.took_place_at, run.received_at, run.id.int))
    looked_up = [(run, doubts.placed(run)) for run in ordered]
    return SeriesReport(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        storage_label=storage_label,
        evidence=choice,
        runs_considered=len(runs),
        thresholds=_THRESHOLDS,
        series=[
            each
            for target in sizing.targets
            if only is None or target.id in only
            for each in _of_target(target, looked_up, spec, sizing, scenario_revision, choice)
        ],
    )


def _of_target(
    target: Target,
    runs: Sequence[tuple[BenchmarkRun, doubts.Placed]],
    spec: ScenarioSpec,
    sizing: Sizing,
    revision: int,
    choice: EvidenceChoice,
) -> list[Series]:
    found: dict[_Key, dict[UUID, Figure]] = {}
    reading = reading_of(spec, sizing, choice)
    for run, stated in runs:
        if not may_speak(run, target.id, choice.conditions):
            continue
        for figure in figures(run, target.id, reading=reading, expected=target.value):
            seen = doubts.of_figure(
                figure,
                stated,
                kind=SOURCES[target.id].kind,
                spec=spec,
                revision=revision,
                largest_shard_bytes=sizing.checkpoint.largest_shard_bytes,
            )
            voided = doubts.first_of(seen, doubts.VOIDS) is not None
            if voided or (target.scope is Scope.NODE and figure.nodes is None):
                continue
            flattering = sorted({doubt.code for doubt in seen} & doubts.FLATTERS)
            of_run = found.setdefault(_key(figure, flattering), {})
            # Of a run's like tests the worst counts.
            other = of_run.get(run.id)
            if other is None or _goodness(target, figure) < _goodness(target, other):
                of_run[run.id] = figure
    listed = [_series(target, key, list(of_runs.values())) for key, of_runs in found.items()]
    return sorted(listed, key=lambda each: -len(each.points) - each.points_left_out)


def _goodness(target: Target, figure: Figure) -> float:
    return goodness(target, figure.value / target.value)


def _key(figure: Figure, flattering: Sequence[DoubtCode]) -> _Key:
    rank_bytes = None
    if figure.of_benchmark and figure.rank_bytes is not None:
        rank_bytes = float(f"{figure.rank_bytes:.2g}")
    return (
        figure.run.tool,
        figure.nodes,
        rank_bytes,
        tuple(sorted(set(figure.run.conditions) - {Condition.IDLE})),
        tuple(flattering),
    )


def _series(target: Target, key: _Key, found: Sequence[Figure]) -> Series:
    tool, nodes, rank_bytes, conditions, flattering = key
    share = nodes if target.scope is Scope.NODE and nodes else 1
    points = [
        SeriesPoint(run_id=figure.run.id, took_place_at=figure.run.took_place_at, value=figure.value / share)
        for figure in found[-change.MOST_POINTS :]
    ]
    return Series(
        figure=target.id,
        unit=target.unit,
        comparison=target.comparison,
        target_value=target.value,
        tool=tool,
        nodes=nodes,
        rank_bytes=rank_bytes,
        conditions=list(conditions),
        flattered_by=list(flattering),
        points=points,
        points_left_out=len(found) - len(points),
        change=_change(target, points),
    )


def _change(target: Target, points: Sequence[SeriesPoint]) -> Change:
    name = sentences.NAMES[target.id]
    count = len(points)
    if count < change.LEAST_POINTS:
        return Change(
            kind=ChangeKind.TOO_FEW,
            sentence=f"{count} point{'' if count == 1 else 's'} of the {name} say nothing of a change; "
            f"{change.LEAST_POINTS} are the least.",
        )
    first = points[0].took_place_at
    found = change.change(
        times=[(point.took_place_at - first).total_seconds() / DAY_SECONDS for point in points],
        values=[point.value for point in points],
    )
    match found:
        case change.Step(at, before, after, probability):
            return Change(
                kind=ChangeKind.STEP,
                direction=_direction(target, before, after),
                before=before,
                after=after,
                change_fraction=_fraction(before, after),
                first_run_id=points[at].run_id,
                changed_after_at=points[at - 1].took_place_at,
                changed_before_at=points[at].took_place_at,
                probability=probability,
                sentence=f"The {name} shifted from {sentences.quantity(before, target.unit)} to "
                f"{sentences.quantity(after, target.unit)}, {_better(target, before, after)}, between "
                f"{points[at - 1].took_place_at:%Y-%m-%d} and {points[at].took_place_at:%Y-%m-%d}: find out what "
                "changed then.",
            )
        case change.Drift(slope, low, high, begin, end):
            return Change(
                kind=ChangeKind.DRIFT,
                direction=_direction(target, begin, end),
                before=begin,
                after=end,
                change_fraction=_fraction(begin, end),
                slope_per_day=slope,
                slope_low_per_day=low,
                slope_high_per_day=high,
                sentence=f"The {name} drifts from {sentences.quantity(begin, target.unit)} to "
                f"{sentences.quantity(end, target.unit)}, {_better(target, begin, end)}, between {first:%Y-%m-%d} and "
                f"{points[-1].took_place_at:%Y-%m-%d}: find out what fills up or wears out.",
            )
        case _:
            return Change(
                kind=ChangeKind.STEADY,
                sentence=f"The {name} shows no change over {count} points that is certain and larger than "
                f"{sentences.percent(change.LEAST_CHANGE_FRACTION)}.",
            )


def _direction(target: Target, before: float, after: float) -> Direction:
    is_better = goodness(target, after / target.value) > goodness(target, before / target.value)
    return Direction.BETTER if is_better else Direction.WORSE


def _better(target: Target, before: float, after: float) -> str:
    fraction = _fraction(before, after)
    amount = (
        f"{sentences.percent(abs(fraction))} {'more' if fraction > 0 else 'less'}, "
        if fraction is not None
        else ""
    )
    return f"{amount}which is {_direction(target, before, after)}"


def _fraction(before: float, after: float) -> float | None:
    return (after - before) / before if before > 0.0 else None
