"""Figures over time, run by run, and whether they changed: of a scenario, or of a storage across scenarios.

Only what can be set side by side stands in one series: figures of one target, one storage, one tool, one number of
nodes, one load of a rank, with the same conditions and the same doubts that flatter.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from service.judgement import change, doubts, sentences
from service.judgement.evidence import SOURCES, Activity, Figure, Reading, figures
from service.judgement.figure import may_speak, reading_of
from service.judgement.report import EvidenceChoice, StorageRuns
from service.judgement.verdict import goodness
from service.parsers.measurement import DoubtCode
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Comparison, Scope, Sizing, Target, TargetId, TargetUnit
from service.sizing.spec import SaveMode, ScenarioSpec
from service.units import DAY_SECONDS
from service.wire import Absent, Outgoing


class ChangeKind(StrEnum):
    """What a series shows."""

    TOO_FEW = "too_few"
    """Too few points to say."""
    STEADY = "steady"
    """No change that is certain and large enough."""
    STEP = "step"
    """The level shifted between two runs, once or several times: what is told is the newest shift."""
    DRIFT = "drift"
    """It moved slowly, all along."""


class Direction(StrEnum):
    """Which way a change went."""

    BETTER = "better"
    WORSE = "worse"


class Certainty(StrEnum):
    """How sure a step is."""

    SUSPECTED = "suspected"
    """No run of one level lies among those of the other, but of so few runs chance alone shows as much now and then."""
    CLEAR = "clear"
    """Chance alone seldom shows as much: in `significance_fraction` of series at most."""


class LevelStep(Outgoing):
    """A shift of the level between two runs."""

    direction: Direction
    """Which way, seen from the target."""
    certainty: Certainty
    before: float
    """The median of the level before it, in the unit of the figure."""
    after: float
    """The median of the level after it, which ends at the next step or at the newest run."""
    change_fraction: float | Absent = None
    """After less before, over before; absent where there was nothing before."""
    first_run_id: UUID
    """The first run after it."""
    changed_after_at: datetime
    """When the last run before it took place."""
    changed_before_at: datetime
    """When the first run after it took place."""
    points_before: int
    """Runs of the level before it."""
    points_after: int
    """Runs of the level after it."""
    probability: float
    """An upper bound on how likely so clean a step is by chance; it holds whatever the figures are distributed like.

    By the rank test of Mann and Whitney: where nothing changed, every order of the runs is as likely as any other, and
    the orders are counted in which the two levels part as cleanly or more. Three runs all above three others: 2 orders
    of 20. That, times the places at which the step could have been among the runs of the two levels."""


class Change(Outgoing):
    """What a series shows, by the thresholds of the answer; of several steps the newest."""

    kind: ChangeKind
    direction: Direction | Absent = None
    """Which way, seen from the target; absent without a change."""
    certainty: Certainty | Absent = None
    """Of a step: how sure it is."""
    before: float | Absent = None
    """Of a step the median of the level before it, of a drift the fitted line at the first point; in its unit."""
    after: float | Absent = None
    """Of a step the median of the level from there on, of a drift the fitted line at the last point."""
    change_fraction: float | Absent = None
    """After less before, over before; absent where there was nothing before."""
    first_run_id: UUID | Absent = None
    """Of a step: the first run after it."""
    changed_after_at: datetime | Absent = None
    """Of a step: when the last run before it took place."""
    changed_before_at: datetime | Absent = None
    """Of a step: when the first run after it took place."""
    probability: float | Absent = None
    """Of a step: an upper bound on how likely so clean a one is by chance, by a rank test: see `steps`."""
    slope_per_day: float | Absent = None
    """Of a drift: the Theil-Sen slope, in the unit of the figure a day."""
    slope_low_per_day: float | Absent = None
    """Lower end of its confidence interval, by Kendall's statistic, which asks nothing of the distribution."""
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
    storage_label: str | Absent = None
    """The storage of its runs; absent where they have no label."""
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
    steps: list[LevelStep]
    """Every step, the oldest first: the last one is that of `change`."""


class StorageFigure(StrEnum):
    """The figures of a storage that do not depend on what a scenario asks."""

    NODE_WRITE_BANDWIDTH = "node_write_bandwidth"
    """What a node wrote in a second, on so many nodes."""
    NODE_READ_BANDWIDTH = "node_read_bandwidth"
    """What a node read in a second, likewise."""
    FILE_CREATE_RATE = "file_create_rate"
    """Files that all nodes together made in a second."""


class StorageSeriesPoint(SeriesPoint):
    """The figure of one run, of whichever scenario."""

    scenario_id: UUID
    """The scenario that the run was posted to."""


class StorageSeries(Outgoing):
    """One figure of a storage over time, from runs of any scenario that can be set side by side."""

    figure: StorageFigure
    unit: TargetUnit
    tool: str
    save_mode: SaveMode | Absent = None
    """Of what a checkpointer wrote: how it saved."""
    nodes: int | Absent = None
    """Nodes of each run; absent where unknown."""
    rank_bytes: float | Absent = None
    """Bytes that a rank moved in each benchmark run, to two digits; absent where unknown. [B]"""
    conditions: list[Condition]
    flattered_by: list[DoubtCode]
    """Doubts that each of the runs has, and for which the true figure can only be worse."""
    points: list[StorageSeriesPoint]
    """The oldest first; at most as many as the thresholds say, the newest."""
    points_left_out: int
    """Older ones."""
    change: Change
    steps: list[LevelStep]
    """Every step, the oldest first: the last one is that of `change`."""


class SeriesThresholds(Outgoing):
    """From where on something counts as a change."""

    least_points: int
    """Fewer are `too_few`."""
    least_segment_points: int
    """Each level has as many points."""
    most_segments: int
    """So many levels are looked for."""
    most_points: int
    """Only the newest so many are looked at."""
    significance_fraction: float
    """In what fraction of series without a change either test may see a clear one."""
    suspicion_fraction: float
    """The largest `probability` of a step that is told as suspected."""
    least_change_fraction: float
    """A smaller change is no news."""


class SeriesReport(Outgoing):
    """A scenario's figures over time."""

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    storage_label: str | Absent = None
    """The storage; absent where its runs have no label, and where all storages are told."""
    storages: list[StorageRuns]
    """Every storage that the scenario has runs on."""
    evidence: EvidenceChoice
    runs_considered: int
    thresholds: SeriesThresholds
    series: list[Series]
    """In the order of the targets; of one target the longest first."""


class SeriesScenario(Outgoing):
    """A scenario whose runs are told."""

    scenario_id: UUID
    name: str
    revision: int


class StorageSeriesReport(Outgoing):
    """A storage's figures over time, from the runs of every scenario that carry its label."""

    engine_version: str
    storage_label: str
    scenarios: list[SeriesScenario]
    """Those that have runs on it, by name."""
    evidence: EvidenceChoice
    runs_considered: int
    thresholds: SeriesThresholds
    series: list[StorageSeries]
    """In the order of the figures; of one figure the longest first."""


_THRESHOLDS = SeriesThresholds(
    least_points=change.LEAST_POINTS,
    least_segment_points=change.LEAST_SEGMENT_POINTS,
    most_segments=change.MOST_SEGMENTS,
    most_points=change.MOST_POINTS,
    significance_fraction=change.CLEAR_FRACTION,
    suspicion_fraction=change.SUSPECTED_FRACTION,
    least_change_fraction=change.LEAST_CHANGE_FRACTION,
)


@dataclass(frozen=True, slots=True)
class _Measure:
    """What is told over time.

    Attributes:
        target_id: The figure, by the id of its target.
        unit: Its unit.
        scope: Whether it is that of one node.
        expected: Of several sizes the one furthest from it is taken.
        goodness: What is larger for a better figure.
    """

    target_id: TargetId
    unit: TargetUnit
    scope: Scope
    expected: float
    goodness: Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Context:
    """The scenario that a run was posted to, as far as its figures depend on it.

    Attributes:
        spec: What it says now.
        revision: The revision that this is.
        sizing: What that comes to; only times and reads ask. None where none of these is told.
    """

    spec: ScenarioSpec
    revision: int
    sizing: Sizing | None = None

    @property
    def largest_shard_bytes(self) -> int:
        """Of its checkpoint; only times are doubted by it. [B]"""
        return self.sizing.checkpoint.largest_shard_bytes if self.sizing is not None else 0


@dataclass(frozen=True, slots=True)
class _Told:
    """A run, with what its figures depend on."""

    run: BenchmarkRun
    stated: doubts.Placed
    context: Context
    reading: Reading


@dataclass(frozen=True, slots=True)
class _Key:
    """What the runs of one series have in common."""

    storage_label: str | None
    tool: str
    save_mode: SaveMode | None
    nodes: int | None
    rank_bytes: float | None
    conditions: tuple[Condition, ...]
    flattered_by: tuple[DoubtCode, ...]


_STORAGE_MEASURES = {
    StorageFigure.NODE_WRITE_BANDWIDTH: (TargetUnit.GB_PER_SECOND, Scope.NODE),
    StorageFigure.NODE_READ_BANDWIDTH: (TargetUnit.GB_PER_SECOND, Scope.NODE),
    StorageFigure.FILE_CREATE_RATE: (TargetUnit.PER_SECOND, Scope.CLUSTER),
}


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
    storages: Sequence[StorageRuns] = (),
) -> SeriesReport:
    """Return the figures of a scenario's runs over time: of one storage, or of all of them side by side.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id.
        scenario_revision: The revision that `spec` is.
        runs: The runs that `choice` admits by id and time, in any order.
        storage_label: Their label, if they have one and the same.
        choice: What was asked for of the evidence.
        only: The figures to tell; None for all that the scenario has a target for.
        storages: What storages the scenario has runs on, `runs` or not, for the reader to see.
    """
    context = Context(spec, scenario_revision, sizing)
    told = _told(runs, {scenario_id: context}, choice)
    found = []
    for target in sizing.targets:
        if only is not None and target.id not in only:
            continue
        measure = _measure(target)
        for key, of_key in _collected(measure, told, choice):
            points = [
                SeriesPoint(
                    run_id=figure.run.id,
                    took_place_at=figure.run.took_place_at,
                    value=_value(measure, figure),
                )
                for figure in of_key[-change.MOST_POINTS :]
            ]
            steps, newest = _changes(measure, points)
            found.append(
                Series(
                    figure=target.id,
                    unit=target.unit,
                    comparison=target.comparison,
                    target_value=target.value,
                    storage_label=key.storage_label,
                    tool=key.tool,
                    nodes=key.nodes,
                    rank_bytes=key.rank_bytes,
                    conditions=list(key.conditions),
                    flattered_by=list(key.flattered_by),
                    points=points,
                    points_left_out=len(of_key) - len(points),
                    change=newest,
                    steps=steps,
                )
            )
    return SeriesReport(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        storage_label=storage_label,
        storages=list(storages),
        evidence=choice,
        runs_considered=len(runs),
        thresholds=_THRESHOLDS,
        series=found,
    )


def storage_series(
    *,
    storage_label: str,
    scenarios: Mapping[UUID, tuple[str, Context]],
    runs: Sequence[BenchmarkRun],
    choice: EvidenceChoice,
    engine_version: str,
    only: Collection[StorageFigure] | None = None,
) -> StorageSeriesReport:
    """Return the figures of a storage over time, whichever scenarios its runs were posted to.

    Only rates, those of a node and those of creates: what they are does not depend on what a scenario asks.

    Args:
        storage_label: The label of the runs.
        scenarios: The name of each scenario that has some, and what its runs depend on.
        runs: The runs that `choice` admits by time, in any order; those of other scenarios are passed over.
        choice: What was asked for of the evidence.
        engine_version: Of this engine.
        only: The figures to tell; None for all.
    """
    known = [run for run in runs if run.scenario_id in scenarios]
    told = _told(known, {id_: context for id_, (_, context) in scenarios.items()}, choice)
    found = []
    for which, (unit, scope) in _STORAGE_MEASURES.items():
        if only is not None and which not in only:
            continue
        # Of each of them more is better.
        measure = _Measure(TargetId(which.value), unit, scope, expected=0.0, goodness=float)
        for key, of_key in _collected(measure, told, choice):
            points = [
                StorageSeriesPoint(
                    run_id=figure.run.id,
                    took_place_at=figure.run.took_place_at,
                    value=_value(measure, figure),
                    scenario_id=figure.run.scenario_id,
                )
                for figure in of_key[-change.MOST_POINTS :]
            ]
            steps, newest = _changes(measure, points)
            found.append(
                StorageSeries(
                    figure=which,
                    unit=unit,
                    tool=key.tool,
                    save_mode=key.save_mode,
                    nodes=key.nodes,
                    rank_bytes=key.rank_bytes,
                    conditions=list(key.conditions),
                    flattered_by=list(key.flattered_by),
                    points=points,
                    points_left_out=len(of_key) - len(points),
                    change=newest,
                    steps=steps,
                )
            )
    with_runs = {run.scenario_id for run in known}
    return StorageSeriesReport(
        engine_version=engine_version,
        storage_label=storage_label,
        scenarios=sorted(
            (
                SeriesScenario(scenario_id=id_, name=name, revision=context.revision)
                for id_, (name, context) in scenarios.items()
                if id_ in with_runs
            ),
            key=lambda scenario: (scenario.name, scenario.scenario_id),
        ),
        evidence=choice,
        runs_considered=len(known),
        thresholds=_THRESHOLDS,
        series=found,
    )


def _told(
    runs: Sequence[BenchmarkRun], contexts: Mapping[UUID, Context], choice: EvidenceChoice
) -> list[_Told]:
    """Return the runs by when they took place."""
    readings = {id_: reading_of(context.spec, context.sizing, choice) for id_, context in contexts.items()}
    return [
        _Told(run, doubts.placed(run), contexts[run.scenario_id], readings[run.scenario_id])
        for run in sorted(runs, key=lambda run: (run.took_place_at, run.received_at, run.id.int))
    ]


def _measure(target: Target) -> _Measure:
    return _Measure(
        target.id,
        target.unit,
        target.scope,
        target.value,
        goodness=lambda value: goodness(target, value / target.value),
    )


def _collected(
    measure: _Measure, runs: Sequence[_Told], choice: EvidenceChoice
) -> list[tuple[_Key, list[Figure]]]:
    """Return the figures that can be set side by side, the longest series first; one figure of a run in each."""
    found: dict[_Key, dict[UUID, Figure]] = {}
    for told in runs:
        if not may_speak(told.run, measure.target_id, choice.conditions):
            continue
        for figure in figures(told.run, measure.target_id, reading=told.reading, expected=measure.expected):
            seen = doubts.of_figure(
                figure,
                told.stated,
                kind=SOURCES[measure.target_id].kind,
                spec=told.context.spec,
                revision=told.context.revision,
                largest_shard_bytes=told.context.largest_shard_bytes,
            )
            voided = doubts.first_of(seen, doubts.VOIDS) is not None
            if voided or (measure.scope is Scope.NODE and figure.nodes is None):
                continue
            flattering = sorted({doubt.code for doubt in seen} & doubts.FLATTERS)
            of_run = found.setdefault(_key(figure, flattering, told.reading.mode), {})
            # Of a run's like tests the worst counts.
            other = of_run.get(told.run.id)
            if other is None or measure.goodness(figure.value) < measure.goodness(other.value):
                of_run[told.run.id] = figure
    return sorted(
        ((key, list(of_runs.values())) for key, of_runs in found.items()), key=lambda each: -len(each[1])
    )


def _key(figure: Figure, flattering: Sequence[DoubtCode], mode: SaveMode) -> _Key:
    rank_bytes = None
    if figure.of_benchmark and figure.rank_bytes is not None:
        rank_bytes = float(f"{figure.rank_bytes:.2g}")
    saves = figure.activity is Activity.WRITING and not figure.of_benchmark
    return _Key(
        storage_label=figure.run.storage_label,
        tool=figure.run.tool,
        save_mode=mode if saves else None,
        nodes=figure.nodes,
        rank_bytes=rank_bytes,
        conditions=tuple(sorted(set(figure.run.conditions) - {Condition.IDLE})),
        flattered_by=tuple(flattering),
    )


def _value(measure: _Measure, figure: Figure) -> float:
    share = figure.nodes if measure.scope is Scope.NODE and figure.nodes else 1
    return figure.value / share


def _changes(measure: _Measure, points: Sequence[SeriesPoint]) -> tuple[list[LevelStep], Change]:
    """Return the steps of a series, and what is told of it first."""
    name = sentences.NAMES[measure.target_id]
    count = len(points)
    if count < change.LEAST_POINTS:
        return [], Change(
            kind=ChangeKind.TOO_FEW,
            sentence=f"{count} point{'' if count == 1 else 's'} of the {name} say nothing of a change; "
            f"{change.LEAST_POINTS} are the least.",
        )
    first = points[0].took_place_at
    found = change.change(
        times=[(point.took_place_at - first).total_seconds() / DAY_SECONDS for point in points],
        values=[point.value for point in points],
    )
    if found is None:
        return [], Change(
            kind=ChangeKind.STEADY,
            sentence=f"The {name} shows no change over {count} points that is certain and larger than "
            f"{sentences.percent(change.LEAST_CHANGE_FRACTION)}.",
        )
    if isinstance(found, change.Drift):
        return [], _drift(measure, found, points)
    steps = [_step(measure, each, points) for each in found]
    newest = steps[-1]
    return steps, Change(
        kind=ChangeKind.STEP,
        direction=newest.direction,
        certainty=newest.certainty,
        before=newest.before,
        after=newest.after,
        change_fraction=newest.change_fraction,
        first_run_id=newest.first_run_id,
        changed_after_at=newest.changed_after_at,
        changed_before_at=newest.changed_before_at,
        probability=newest.probability,
        sentence=_sentence(measure, steps),
    )


def _step(measure: _Measure, step: change.Step, points: Sequence[SeriesPoint]) -> LevelStep:
    last, first = points[step.first_after - 1], points[step.first_after]
    return LevelStep(
        direction=_direction(measure, step.before, step.after),
        certainty=Certainty.CLEAR if step.is_clear else Certainty.SUSPECTED,
        before=step.before,
        after=step.after,
        change_fraction=_fraction(step.before, step.after),
        first_run_id=first.run_id,
        changed_after_at=last.took_place_at,
        changed_before_at=first.took_place_at,
        points_before=step.points_before,
        points_after=step.points_after,
        probability=step.probability,
    )


def _sentence(measure: _Measure, steps: Sequence[LevelStep]) -> str:
    """Return what the newest step is, how sure, and what came before it."""
    name, newest = sentences.NAMES[measure.target_id], steps[-1]
    amounts = (
        f"from {_amount(measure, newest.before)} to {_amount(measure, newest.after)}, "
        f"{_better(measure, newest.before, newest.after)}, {_between(newest)}"
    )
    if newest.certainty is Certainty.CLEAR:
        told = f"The {name} shifted {amounts}: find out what changed then."
    else:
        told = (
            f"The {name} seems to have shifted {amounts}: the {newest.points_after} runs since then all lie on one "
            f"side of the {newest.points_before} before, which chance alone brings about in up to "
            f"{sentences.percent(newest.probability)} of such series. Measure again."
        )
    earlier = [
        f"from {_amount(measure, step.before)} to {_amount(measure, step.after)} {_between(step)}"
        for step in steps[:-1]
    ]
    return told if not earlier else f"{told} Earlier it shifted {', then '.join(earlier)}."


def _between(step: LevelStep) -> str:
    return f"between {step.changed_after_at:%Y-%m-%d} and {step.changed_before_at:%Y-%m-%d}"


def _drift(measure: _Measure, drift: change.Drift, points: Sequence[SeriesPoint]) -> Change:
    return Change(
        kind=ChangeKind.DRIFT,
        direction=_direction(measure, drift.begin, drift.end),
        before=drift.begin,
        after=drift.end,
        change_fraction=_fraction(drift.begin, drift.end),
        slope_per_day=drift.slope,
        slope_low_per_day=drift.low,
        slope_high_per_day=drift.high,
        sentence=f"The {sentences.NAMES[measure.target_id]} drifts, by the line through its {len(points)} points, from "
        f"{_amount(measure, drift.begin)} to {_amount(measure, drift.end)}, "
        f"{_better(measure, drift.begin, drift.end)}, between {points[0].took_place_at:%Y-%m-%d} and "
        f"{points[-1].took_place_at:%Y-%m-%d}: find out what fills up or wears out.",
    )


def _amount(measure: _Measure, value: float) -> str:
    return sentences.quantity(value, measure.unit)


def _direction(measure: _Measure, before: float, after: float) -> Direction:
    return Direction.BETTER if measure.goodness(after) > measure.goodness(before) else Direction.WORSE


def _better(measure: _Measure, before: float, after: float) -> str:
    fraction = _fraction(before, after)
    amount = (
        f"{sentences.percent(abs(fraction))} {'more' if fraction > 0 else 'less'}, "
        if fraction is not None
        else ""
    )
    return f"{amount}which is {_direction(measure, before, after)}"


def _fraction(before: float, after: float) -> float | None:
    return (after - before) / before if before > 0.0 else None
