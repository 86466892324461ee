"""Target by target: what was measured against what is needed.

`judge` gives the whole report. For each target every figure of every run that may speak is judged alone;
then the best evidence is reported: usable before unusable, full scale before smaller, newest first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from uuid import UUID

from service.judgement import doubts, sentences
from service.judgement.consequences import consequences
from service.judgement.evidence import SOURCES, Activity, Figure, Kind, figures
from service.judgement.report import Basis, GapReport, Outcome, Status, TargetReport, Verdict
from service.parsers.measurement import Doubt
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Comparison, Scope, Sizing, Target, TargetId
from service.sizing.spec import ScenarioSpec

USABLE = frozenset({Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES})
"""The statuses of a figure that decides something."""

RANKS_TOLERANCE_FRACTION = 0.05
BYTES_TOLERANCE_FRACTION = 0.10
_ROUNDING = 1e-9
"""A relative difference that comes from adding up floats decides nothing."""

_SPECIAL_CONDITIONS = frozenset({Condition.UNDER_READ_LOAD, Condition.DEGRADED})
_OWN_CONDITION = {TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: Condition.UNDER_READ_LOAD}


class _Scale(Enum):
    FULL = "full"
    SMALLER = "smaller"
    LARGER = "larger"


class _Load(Enum):
    LIKE = "like"
    HEAVIER = "heavier"
    LIGHTER = "lighter"
    UNLIKE = "unlike"
    UNKNOWN = "unknown"


_BASIS_OF_LOAD = {
    _Load.HEAVIER: Basis.HEAVIER_LOAD,
    _Load.LIGHTER: Basis.LIGHTER_LOAD,
    _Load.UNLIKE: Basis.UNLIKE_LOAD,
    _Load.UNKNOWN: Basis.UNLIKE_LOAD,
}


@dataclass(frozen=True, slots=True)
class _Case:
    """What every figure is held against."""

    spec: ScenarioSpec
    sizing: Sizing
    revision: int
    low_fraction: float
    high_fraction: float

    @property
    def nodes(self) -> int:
        return self.sizing.checkpoint.nodes

    def scale(self, nodes: int | None) -> _Scale | None:
        if nodes is None:
            return None
        if nodes < self.low_fraction * self.nodes:
            return _Scale.SMALLER
        if nodes > self.high_fraction * self.nodes:
            return _Scale.LARGER
        return _Scale.FULL


@dataclass(frozen=True, slots=True)
class _Judged:
    """One figure, held against one target."""

    figure: Figure
    status: Status
    basis: Basis | None
    scale: _Scale | None
    load: _Load | None
    measured: float | None
    measured_min: float | None
    measured_max: float | None
    ratio: float | None
    per_node_target: float | None
    per_node_measured: float | None
    falls_short: bool
    doubts: list[Doubt]


def judge(
    *,
    spec: ScenarioSpec,
    sizing: Sizing,
    scenario_id: UUID,
    scenario_revision: int,
    runs: Sequence[BenchmarkRun],
    storage_label: str | None = None,
    full_scale_low_fraction: float = 0.95,
    full_scale_high_fraction: float = 1.05,
    conditions: Collection[Condition] = (),
) -> GapReport:
    """Return how far a storage system is from what a scenario asks, and what that costs.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id.
        scenario_revision: The revision that `spec` is; runs posted for an older one are doubted.
        runs: The scenario's runs, in any order.
        storage_label: The storage to judge; without it that of the newest run. Runs of others do not count.
        full_scale_low_fraction: From this fraction of the scenario's nodes on, a run is compared as a whole.
        full_scale_high_fraction: Up to this fraction likewise.
        conditions: Which of the runs tagged `under_read_load` or `degraded` count for every target. Without
            it the former count for the bandwidth under read load alone, the latter for none.
    """
    if storage_label is None:
        storage_label = newest_label(runs)
    considered = [run for run in runs if run.storage_label == storage_label]
    case = _Case(spec, sizing, scenario_revision, full_scale_low_fraction, full_scale_high_fraction)
    targets = [
        _report(target, [run for run in considered if _may_speak(run, target.id, conditions)], case)
        for target in sizing.targets
    ]
    return GapReport(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        storage_label=storage_label,
        runs_considered=len(considered),
        targets=targets,
        verdict=verdict(targets, storage_label=storage_label),
        consequences=consequences(spec=spec, sizing=sizing, targets=targets),
    )


def newest_label(runs: Sequence[BenchmarkRun]) -> str | None:
    """Return the storage label of the newest run, if there is a run and it has one."""
    newest = max(runs, key=lambda run: (took_place_at(run), run.received_at, str(run.id)), default=None)
    return newest.storage_label if newest is not None else None


def took_place_at(run: BenchmarkRun) -> datetime:
    """Return when a run took place, as far as is known: at the latest when it was received."""
    return run.ran_at if run.ran_at is not None else run.received_at


def verdict(targets: Sequence[TargetReport], *, storage_label: str | None) -> Verdict:
    """Return the verdict that the statuses add up to, with the target that decides it."""
    name = f"Storage {storage_label}" if storage_label is not None else "The storage"
    missed = [target for target in targets if target.status is Status.MISSED]
    if missed:
        worst = min(missed, key=_margin)
        return Verdict(
            outcome=Outcome.FALLS_SHORT,
            sentence=f"{name} falls short on {len(missed)} of {len(targets)} targets, most of all in the "
            f"{sentences.NAMES[worst.id]}: {_held_against(worst)}.",
            decided_by=worst.id,
        )
    unproven = [target for target in targets if target.status is not Status.MET]
    if unproven:
        first = unproven[0]
        return Verdict(
            outcome=Outcome.UNPROVEN,
            sentence=f"{name} has missed no target, but {len(unproven)} of {len(targets)} are yet to be proved, "
            f"first the {sentences.NAMES[first.id]}: {_held_against(first)}.",
            decided_by=first.id,
        )
    # A size that is as assumed is no narrow escape.
    contested = [target for target in targets if target.comparison is not Comparison.WITHIN]
    narrowest = min(contested or targets, key=_margin)
    return Verdict(
        outcome=Outcome.MEETS,
        sentence=f"{name} meets all {len(targets)} targets, most narrowly the {sentences.NAMES[narrowest.id]}: "
        f"{_held_against(narrowest)}.",
        decided_by=narrowest.id,
    )


def _held_against(target: TargetReport) -> str:
    if target.status is Status.UNMEASURED or target.measured is None:
        return f"{sentences.needed(target)} is needed, and {_PROOF[target.status]}"
    return (
        f"{sentences.quantity(target.measured, target.unit)} where {sentences.needed(target)} is needed"
        + (f", {_PROOF[target.status]}" if target.status in _PROOF else "")
    )


_PROOF = {
    Status.UNMEASURED: "nothing was measured",
    Status.NOT_COMPARABLE: "no run can be held against it",
    Status.MET_IF_IT_SCALES: "if more nodes keep the pace",
}


def _margin(target: TargetReport) -> float:
    return _goodness(target, target.ratio)


def _goodness(target: Target, ratio: float | None) -> float:
    """Return a number that is larger for a better figure, comparable between targets: 1 is just enough."""
    if ratio is None:
        return 0.0
    inverse = 1.0 / ratio if ratio > 0.0 else float("inf")
    tolerance_fraction = target.tolerance_fraction or 0.0
    match target.comparison:
        case Comparison.AT_LEAST:
            return ratio
        case Comparison.AT_MOST:
            return inverse
        case Comparison.WITHIN:
            return min(ratio / (1.0 - tolerance_fraction), inverse * (1.0 + tolerance_fraction))


def _may_speak(run: BenchmarkRun, target_id: TargetId, asked: Collection[Condition]) -> bool:
    """Whether the state in which a run found the storage is one that the target is about."""
    special = _SPECIAL_CONDITIONS.intersection(run.conditions)
    own = _OWN_CONDITION.get(target_id)
    if own is not None and own not in special:
        return False
    return special <= {own, *asked}


def _report(target: Target, runs: Sequence[BenchmarkRun], case: _Case) -> TargetReport:
    amplification = case.spec.restore.read_amplification if case.spec.restore is not None else 1.0
    judged = [
        _judge(figure, target, case)
        for run in runs
        for figure in figures(
            run,
            target.id,
            mode=case.spec.save.mode,
            read_amplification=amplification,
            expected=target.value,
        )
    ]
    if not judged:
        return TargetReport(
            **dict(target),
            status=Status.UNMEASURED,
            run_ids=[],
            doubts=[],
            reason=f"No run measured the {sentences.NAMES[target.id]}; {sentences.needed(target)} is needed, and "
            f"{SOURCES[target.id].hint} would show it.",
        )
    chosen = _first(judged, target)
    if chosen.status in USABLE:
        against = _on_the_other_side(chosen, judged, target)
        if against:
            chosen = replace(chosen, doubts=[*chosen.doubts, doubts.runs_disagree(against)])
    return TargetReport(
        **dict(target),
        status=chosen.status,
        basis=chosen.basis,
        measured=chosen.measured,
        measured_min=chosen.measured_min,
        measured_max=chosen.measured_max,
        ratio=chosen.ratio,
        per_node_target=chosen.per_node_target,
        per_node_measured=chosen.per_node_measured,
        nodes=chosen.figure.nodes,
        full_scale=chosen.scale is _Scale.FULL if chosen.scale is not None else None,
        run_ids=[chosen.figure.run.id],
        doubts=chosen.doubts,
        reason=_reason(chosen, target, case),
    )


def _first(judged: Sequence[_Judged], target: Target) -> _Judged:
    """Return the best evidence; among the unusable the newest, whatever its scale."""

    def rank(each: _Judged) -> tuple[bool, bool, float, int, float, str, tuple[int, ...]]:
        usable = each.status in USABLE
        return (
            not usable,
            usable and each.scale is not _Scale.FULL,
            -took_place_at(each.figure.run).timestamp(),
            -(each.figure.nodes or 0),
            _goodness(target, each.ratio),
            str(each.figure.run.id),
            each.figure.places,
        )

    return min(judged, key=rank)


def _on_the_other_side(chosen: _Judged, judged: Sequence[_Judged], target: Target) -> list[Figure]:
    """Return what usable runs say where it is the opposite; of each run its own best evidence."""
    by_run: dict[UUID, list[_Judged]] = {}
    for each in judged:
        if each.status in USABLE:
            by_run.setdefault(each.figure.run.id, []).append(each)
    best = [_first(of_run, target) for of_run in by_run.values()]
    return [each.figure for each in best if each.falls_short is not chosen.falls_short]


def _judge(figure: Figure, target: Target, case: _Case) -> _Judged:
    """Return what one figure says about one target, as if there were no other."""
    kind = SOURCES[target.id].kind
    scale = case.scale(figure.nodes)
    load = _load(figure, kind, case)
    factor = _factor(figure, target, kind, scale, case)
    found = doubts.of_figure(
        figure,
        kind=kind,
        spec=case.spec,
        revision=case.revision,
        largest_shard_bytes=case.sizing.checkpoint.largest_shard_bytes,
    )
    measured = figure.value * factor if factor is not None else None
    ratio = measured / target.value if measured is not None else None
    falls_short = ratio is not None and _falls_short(target, ratio)
    per_node = kind is Kind.RATE and figure.nodes is not None and scale is not _Scale.FULL
    share = target.value if target.scope is Scope.NODE else target.value / case.nodes
    return _Judged(
        figure=figure,
        status=_status(kind, scale, load, falls_short, found),
        basis=_basis(kind, scale, load),
        scale=scale,
        load=load,
        measured=measured,
        measured_min=figure.least * factor if factor is not None and figure.least is not None else None,
        measured_max=figure.largest * factor if factor is not None and figure.largest is not None else None,
        ratio=ratio,
        per_node_target=share if per_node else None,
        per_node_measured=figure.value / figure.nodes if per_node and figure.nodes else None,
        falls_short=falls_short,
        doubts=found,
    )


def _factor(figure: Figure, target: Target, kind: Kind, scale: _Scale | None, case: _Case) -> float | None:
    """Return what turns the run's figure into the target's: only rates are ever scaled."""
    if kind is not Kind.RATE:
        return 1.0
    if figure.nodes is None:
        # What all nodes gave is known and can be shown; what one of them gave is not.
        return 1.0 if target.scope is Scope.CLUSTER else None
    if target.scope is Scope.NODE:
        return 1.0 / figure.nodes
    return 1.0 if scale is _Scale.FULL else case.nodes / figure.nodes


def _falls_short(target: Target, ratio: float) -> bool:
    match target.comparison:
        case Comparison.AT_LEAST:
            return ratio < 1.0 - _ROUNDING
        case Comparison.AT_MOST:
            return ratio > 1.0 + _ROUNDING
        case Comparison.WITHIN:
            return abs(ratio - 1.0) > (target.tolerance_fraction or 0.0) + _ROUNDING


def _status(
    kind: Kind, scale: _Scale | None, load: _Load | None, falls_short: bool, found: Sequence[Doubt]
) -> Status:
    """Return the first status that applies to a figure."""
    proves_nothing = (
        scale is None
        or doubts.first_of(found, doubts.VOIDS) is not None
        or (kind is Kind.SIZE and scale is not _Scale.FULL)
        or load in (_Load.UNLIKE, _Load.UNKNOWN)
        or (load is _Load.HEAVIER and falls_short)
        or (load is _Load.LIGHTER and not falls_short)
        or (kind is Kind.CREATE_RATE and scale is _Scale.SMALLER and falls_short)
    )
    if proves_nothing:
        return Status.NOT_COMPARABLE
    if falls_short:
        return Status.MISSED
    if doubts.first_of(found, doubts.FLATTERS) is not None or scale is _Scale.LARGER:
        return Status.NOT_COMPARABLE
    return Status.MET if scale is _Scale.FULL else Status.MET_IF_IT_SCALES


def _basis(kind: Kind, scale: _Scale | None, load: _Load | None) -> Basis | None:
    if scale is None:
        return None
    if load is not None and load is not _Load.LIKE:
        return _BASIS_OF_LOAD[load]
    if scale is _Scale.FULL:
        return Basis.FULL_SCALE
    if load is _Load.LIKE:
        return Basis.DIRECT
    if kind is Kind.RATE:
        return Basis.PER_NODE_EXTRAPOLATED if scale is _Scale.SMALLER else Basis.PER_NODE_LARGER_RUN
    return Basis.WHOLE_RUN


def _load(figure: Figure, kind: Kind, case: _Case) -> _Load | None:
    """Return how the load in a time compares with the scenario's; None for what is no time."""
    if kind is Kind.LOAD_TIME:
        return _total_load(figure, case)
    if kind is not Kind.RANK_TIME:
        return None
    if figure.ranks is None or figure.nodes is None or figure.rank_bytes is None:
        return _Load.UNKNOWN
    cluster, checkpoint = case.spec.cluster, case.sizing.checkpoint
    # All ranks of a benchmark write, as only the writers of a scenario do; a checkpointer runs on every GPU.
    ranks = checkpoint.writers if figure.of_benchmark else cluster.gpus
    # The last node of a scenario may not be full: both its mean node and its full one are like it.
    mean_node = ranks / checkpoint.nodes
    full_node = max(mean_node, min(cluster.gpus_per_node, cluster.gpus) * ranks / cluster.gpus)
    return _combined(
        _beside(figure.ranks / figure.nodes, mean_node, full_node, RANKS_TOLERANCE_FRACTION),
        _beside(
            figure.rank_bytes,
            checkpoint.largest_shard_bytes,
            checkpoint.largest_shard_bytes,
            BYTES_TOLERANCE_FRACTION,
        ),
    )


def _total_load(figure: Figure, case: _Case) -> _Load:
    """Compare bytes read with bytes to be read; where the former are unknown, the checkpoints."""
    read, wanted = figure.moved_bytes, case.sizing.read.bytes if case.sizing.read is not None else None
    if read is None or wanted is None:
        read, wanted = figure.checkpoint_bytes, case.sizing.checkpoint.bytes
    if read is None:
        return _Load.UNKNOWN
    return _combined(_beside(read, wanted, wanted, BYTES_TOLERANCE_FRACTION))


def _beside(value: float, low: float, high: float, tolerance_fraction: float) -> int:
    """Return -1, 0 or 1: less than, like, or more than what lies between `low` and `high`."""
    if value < low * (1.0 - tolerance_fraction - _ROUNDING):
        return -1
    return 1 if value > high * (1.0 + tolerance_fraction + _ROUNDING) else 0


def _combined(*sides: int) -> _Load:
    if min(sides) < 0 < max(sides):
        return _Load.UNLIKE
    if min(sides) < 0:
        return _Load.LIGHTER
    return _Load.HEAVIER if max(sides) > 0 else _Load.LIKE


def _reason(judged: _Judged, target: Target, case: _Case) -> str:
    """Return why the status is what it is, in one sentence."""
    name, need = sentences.NAMES[target.id], sentences.needed(target)
    value = judged.measured if judged.measured is not None else judged.figure.value
    amount = sentences.quantity(value, target.unit)
    where = _where(judged, case)
    void = doubts.first_of(judged.doubts, doubts.VOIDS)
    flattering = doubts.first_of(judged.doubts, doubts.FLATTERS)
    if judged.scale is None:
        return (
            f"{amount} was measured on an unknown number of nodes, so it cannot be held against the {name} "
            f"that is needed, {need}: post the run with its nodes."
        )
    if void is not None:
        return f"The run, with {amount} {where}, proves nothing for the {name}: {void.message}"
    if judged.status is Status.NOT_COMPARABLE:
        return f"The {name} was {amount} {where}, {_why_not(judged, flattering, need, case)}"
    if judged.per_node_measured is not None and judged.per_node_target is not None:
        share = sentences.quantity(judged.per_node_target, target.unit)
        each = (
            f"{judged.figure.nodes:,} nodes gave {sentences.quantity(judged.per_node_measured, target.unit)} "
            f"each, and each of {case.nodes:,} must give {share}"
        )
        if judged.status is Status.MISSED:
            return f"{each}: {sentences.off_by(target, judged.ratio or 0.0)}."
        all_of_them = f", which makes {amount} together" if target.scope is Scope.CLUSTER else ""
        return f"{each}: enough if {case.nodes:,} nodes keep that pace{all_of_them}."
    if judged.status is Status.MISSED:
        gap = sentences.off_by(target, judged.ratio or 0.0)
        return f"The {name} was {amount} {where}; {need} is needed: {gap}."
    if judged.status is Status.MET_IF_IT_SCALES:
        return f"The {name} was {amount} {where}; {need} is needed: enough if more nodes do not change it."
    return f"The {name} was {amount} {where}; {need} is needed."


def _why_not(judged: _Judged, flattering: Doubt | None, need: str, case: _Case) -> str:
    """Return the end of the sentence that says why a figure decides nothing."""
    load = judged.load
    if load is _Load.UNKNOWN:
        return f"and how much each rank moved is unknown, so it cannot be held against {need}."
    if load is _Load.UNLIKE:
        return (
            f"{_load_in_words(judged.figure, case)}: lighter in one way and heavier in another, so it cannot be "
            f"held against {need}."
        )
    if load is _Load.HEAVIER and judged.falls_short:
        return (
            f"{_load_in_words(judged.figure, case)}; {need} is needed, and a heavier load can only prove that it "
            "is met."
        )
    if load is _Load.LIGHTER and not judged.falls_short:
        return (
            f"{_load_in_words(judged.figure, case)}; {need} is needed, and a lighter load can only prove that it "
            "is missed."
        )
    if judged.basis is Basis.WHOLE_RUN and judged.falls_short:
        return f"less than {need}, and a rate of creates is not multiplied by nodes: run on all of them."
    if judged.basis is Basis.WHOLE_RUN and judged.scale is _Scale.SMALLER:
        return f"and only a checkpoint of all nodes can be held against {need}."
    if flattering is not None:
        return f"which would reach {need}, but the true figure can only be worse: {flattering.message}"
    return f"which reaches {need} with more nodes than the scenario has, so its own are yet to show it."


def _load_in_words(figure: Figure, case: _Case) -> str:
    checkpoint, read = case.sizing.checkpoint, case.sizing.read
    if figure.activity is Activity.READING:
        moved, wanted = figure.moved_bytes, read.bytes if read is not None else None
        if moved is None or wanted is None:
            moved, wanted = figure.checkpoint_bytes or 0.0, checkpoint.bytes
        return f"for {sentences.bytes_in_words(moved)} where the scenario loads {sentences.bytes_in_words(wanted)}"
    ranks = (figure.ranks or 0) / (figure.nodes or 1)
    wanted_ranks = (checkpoint.writers if figure.of_benchmark else case.spec.cluster.gpus) / checkpoint.nodes
    return (
        f"with {sentences.number(ranks)} ranks a node and {sentences.bytes_in_words(figure.rank_bytes or 0.0)} a "
        f"rank, where the scenario has {sentences.number(wanted_ranks)} and up to "
        f"{sentences.bytes_in_words(checkpoint.largest_shard_bytes)}"
    )


def _where(judged: _Judged, case: _Case) -> str:
    nodes = judged.figure.nodes or 0
    plural = "" if nodes == 1 else "s"
    if judged.scale is _Scale.SMALLER:
        return f"on {nodes:,} of {case.nodes:,} nodes"
    if judged.scale is _Scale.LARGER:
        return f"on {nodes:,} node{plural}, of which the scenario has {case.nodes:,}"
    return f"on {nodes:,} node{plural}"
