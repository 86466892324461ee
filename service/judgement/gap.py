"""Target by target: what was measured against what is needed.

`judge` gives the whole report. For each target every figure of every run that may speak is judged alone;
then the best evidence is reported: usable before unusable, full scale before smaller, newest first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from service.judgement import doubts, sentences
from service.judgement.checklist import checklist
from service.judgement.consequences import consequences
from service.judgement.evidence import SOURCES, Activity, Figure, Kind, Reading, Statistic, figures
from service.judgement.report import (
    Basis,
    BytesPerParameter,
    Consequences,
    EvidenceChoice,
    GapReport,
    Status,
    TargetReport,
)
from service.judgement.verdict import USABLE, goodness, margin_fraction, verdict
from service.parsers.measurement import Doubt
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Comparison, Scope, Sizing, Target, TargetId
from service.sizing.spec import ScenarioSpec
from service.sizing.targets import CHECKPOINT_TOLERANCE_FRACTION

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
    choice: EvidenceChoice
    drill: doubts.Drill | None

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

    @property
    def reading(self) -> Reading:
        return reading_of(self.spec, self.choice)


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
    choice: EvidenceChoice | None = None,
    drill: doubts.Drill | None = None,
) -> GapReport:
    """Return how far a storage system is from what a scenario asks, and what that costs.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id.
        scenario_revision: The revision that `spec` is; runs posted for an older one are doubted.
        runs: The scenario's runs, in any order, as far as `choice` admits them by id and time.
        storage_label: The storage to judge; without it that of the newest run. Runs of others do not count.
        full_scale_low_fraction: From this fraction of the scenario's nodes on, a run is compared as a whole.
        full_scale_high_fraction: Up to this fraction likewise.
        choice: What was asked for of the evidence: the statistics, and which of the runs tagged
            `under_read_load` or `degraded` count for every target. Without it the former count for the
            bandwidth under read load alone, the latter for none.
        drill: How lately a read must have been tried; without it no proof grows old.
    """
    choice = choice or EvidenceChoice()
    if storage_label is None:
        storage_label = newest_label(runs)
    considered = [run for run in runs if run.storage_label == storage_label]
    case = _Case(
        spec, sizing, scenario_revision, full_scale_low_fraction, full_scale_high_fraction, choice, drill
    )
    targets = [_report(target, considered, case) for target in sizing.targets]
    found: Consequences = consequences(spec=spec, sizing=sizing, targets=targets)
    return GapReport(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        storage_label=storage_label,
        evidence=choice,
        runs_considered=len(considered),
        targets=targets,
        verdict=verdict(targets, storage_label=storage_label, each=found.each),
        consequences=found,
        checklist=checklist(spec=spec, sizing=sizing, targets=targets),
    )


def newest_label(runs: Sequence[BenchmarkRun]) -> str | None:
    """Return the storage label of the newest run, if there is a run and it has one."""
    newest = max(runs, key=lambda run: (run.took_place_at, run.received_at, str(run.id)), default=None)
    return newest.storage_label if newest is not None else None


def reading_of(spec: ScenarioSpec, choice: EvidenceChoice) -> Reading:
    """Return how runs are read for a scenario, by the statistics that were chosen."""
    return Reading(
        mode=spec.save.mode,
        read_amplification=spec.restore.read_amplification if spec.restore is not None else 1.0,
        statistic=choice.statistic,
        time_statistic=choice.time_statistic,
    )


def may_speak(run: BenchmarkRun, target_id: TargetId, asked: Collection[Condition]) -> bool:
    """Whether the state in which a run found the storage is one that the target is about."""
    special = _SPECIAL_CONDITIONS.intersection(run.conditions)
    own = _OWN_CONDITION.get(target_id)
    if own is not None and own not in special:
        return False
    return special <= {own, *asked}


def _report(target: Target, runs: Sequence[BenchmarkRun], case: _Case) -> TargetReport:
    asked = case.choice.conditions
    judged = [
        _judge(figure, target, case)
        for run in runs
        if may_speak(run, target.id, asked)
        for figure in figures(run, target.id, reading=case.reading, expected=target.value)
    ]
    if not judged:
        return TargetReport(
            **dict(target),
            status=Status.UNMEASURED,
            run_ids=[],
            doubts=[],
            reason=_why_unmeasured(target, runs, case),
        )
    chosen = _first(judged, target)
    because = _chosen_because(chosen, judged, target)
    if chosen.status in USABLE:
        against = _on_the_other_side(chosen, judged, target)
        if against:
            chosen = replace(chosen, doubts=[*chosen.doubts, doubts.runs_disagree(against)])
    nodes = chosen.figure.nodes
    return TargetReport(
        **dict(target),
        status=chosen.status,
        basis=chosen.basis,
        measured=chosen.measured,
        measured_min=chosen.measured_min,
        measured_max=chosen.measured_max,
        ratio=chosen.ratio,
        margin_fraction=margin_fraction(target, chosen.ratio) if chosen.ratio is not None else None,
        statistic=chosen.figure.statistic,
        per_node_target=chosen.per_node_target,
        per_node_measured=chosen.per_node_measured,
        nodes=nodes,
        nodes_fraction=nodes / case.nodes if nodes is not None else None,
        full_scale=chosen.scale is _Scale.FULL if chosen.scale is not None else None,
        run_ids=[chosen.figure.run.id],
        doubts=chosen.doubts,
        reason=_reason(chosen, target, case) + _small_writes(chosen, case),
        chosen_because=because,
        experience=_experience(chosen, case),
        bytes_per_parameter=_bytes_per_parameter(chosen, case),
    )


def _why_unmeasured(target: Target, runs: Sequence[BenchmarkRun], case: _Case) -> str:
    """Return what is missing, and what would have counted had it been asked for."""
    name, need = sentences.NAMES[target.id], sentences.needed(target)
    left_out: set[Condition] = set()
    told_otherwise = False
    usual = Reading(mode=case.reading.mode, read_amplification=case.reading.read_amplification)
    for run in runs:
        counts = may_speak(run, target.id, case.choice.conditions)
        if (counts and told_otherwise) or not figures(run, target.id, reading=usual, expected=target.value):
            continue
        if counts:
            told_otherwise = True
        else:
            left_out |= _SPECIAL_CONDITIONS.intersection(run.conditions)
    source = SOURCES[target.id]
    reason = f"No run measured the {name}; {need} is needed, and {source.hint} would show it."
    if told_otherwise:
        statistic = case.reading.statistic_of(source.kind)
        reason = f"No run tells the {statistic} of its repetitions for the {name}; {need} is needed."
    if left_out - set(case.choice.conditions):
        tags = " and ".join(sorted(left_out - set(case.choice.conditions)))
        reason += f" Runs tagged {tags} have it, and count where they are asked for by conditions."
    return reason


def _first(judged: Sequence[_Judged], target: Target) -> _Judged:
    """Return the best evidence; among the unusable the newest, whatever its scale."""

    def rank(each: _Judged) -> tuple[bool, bool, float, int, float, str, tuple[int, ...]]:
        usable = each.status in USABLE
        return (
            not usable,
            usable and each.scale is not _Scale.FULL,
            -each.figure.run.took_place_at.timestamp(),
            -(each.figure.nodes or 0),
            goodness(target, each.ratio),
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


def _chosen_because(chosen: _Judged, judged: Sequence[_Judged], target: Target) -> str:
    """Return why this figure is reported, and how it stands for its repetitions."""
    usable = [each for each in judged if each.status in USABLE]
    full = [each for each in usable if each.scale is _Scale.FULL]
    runs, usable_runs, full_runs = (
        len({each.figure.run.id for each in group}) for group in (judged, usable, full)
    )
    if not usable:
        which = (
            "The only run that has the figure"
            if runs == 1
            else f"The newest of {runs} runs, none of them usable"
        )
    elif runs == 1:
        which = "The only run that has the figure"
    elif full:
        which = (
            "The only usable run at full scale"
            if full_runs == 1
            else f"The newest of {full_runs} usable runs at full scale"
        )
    else:
        which = (
            "The only usable run"
            if usable_runs == 1
            else f"The newest of {usable_runs} usable runs, none of them at full scale"
        )
    if usable and runs > max(1, full_runs or usable_runs):
        which += f", of {runs} runs that have the figure"
    tests = sum(each.figure.run.id == chosen.figure.run.id for each in judged)
    if tests > 1:
        which += f"; of its {tests} tests the usable one on most nodes, and of those the worst"
    return f"{which}; {_COMPARED_BY[chosen.figure.statistic]}."


_COMPARED_BY: dict[Statistic | None, str] = {
    Statistic.MEAN: "compared by the mean of its repetitions",
    Statistic.MEDIAN: "compared by the median of its repetitions",
    Statistic.MIN: "compared by the least of its repetitions",
    Statistic.MAX: "compared by the largest of its repetitions",
    None: "of several sizes the one furthest off is compared",
}

EXPERIENCE = "a fault seen in the field appeared only at 60 nodes, not at four"


def _experience(judged: _Judged, case: _Case) -> str | None:
    """Return what smaller runs have failed to show before, where this one seems to suffice."""
    nodes = judged.figure.nodes
    if judged.scale is not _Scale.SMALLER or nodes is None or judged.falls_short:
        return None
    return (
        f"{nodes:,} of {case.nodes:,} nodes were tested, {sentences.percent(nodes / case.nodes)} of them. "
        f"Experience says that this is not proof: {EXPERIENCE}. Repeat it on as many nodes as can be spared."
    )


FAR_BELOW_SHARD_FRACTION = 0.01
"""Ranks that write less than this fraction of the largest shard time the making of files, not a stream of bytes."""


def _small_writes(judged: _Judged, case: _Case) -> str:
    """Return a sentence to add where a write rate comes from writes that no checkpoint makes."""
    figure, shard = judged.figure, case.sizing.checkpoint.largest_shard_bytes
    if figure.activity is not Activity.WRITING or judged.load is not None or figure.rank_bytes is None:
        return ""
    if figure.rank_bytes >= FAR_BELOW_SHARD_FRACTION * shard:
        return ""
    return (
        f" Each rank wrote {sentences.bytes_in_words(figure.rank_bytes)} where the largest shard has "
        f"{sentences.bytes_in_words(shard)}: that times opening and closing files rather than writing, so measure "
        "again with blocks of a shard."
    )


RECIPES = {
    12.0: "fp32 weights and two Adam moments",
    14.0: "fp32 weights, two Adam moments and bf16 weights",
    16.0: "fp32 weights, two Adam moments, bf16 weights and gradients",
}
"""What a parameter may take in a checkpoint. [B]"""


def _bytes_per_parameter(judged: _Judged, case: _Case) -> BytesPerParameter | None:
    """Return what a checkpoint at full scale says of the assumed bytes of a parameter."""
    if judged.figure.activity is not Activity.HOLDING or judged.status not in USABLE:
        return None
    model = case.spec.model
    measured = (judged.figure.value - model.extra_bytes) / model.reduction_factor / case.spec.parameters
    assumed = model.bytes_per_parameter
    nearest = min((assumed, *RECIPES), key=lambda each: abs(each - measured))
    off_fraction = measured / nearest - 1.0
    fits = abs(off_fraction) <= CHECKPOINT_TOLERANCE_FRACTION
    means = f" ({RECIPES[nearest]})" if nearest in RECIPES else ""
    if fits and nearest == assumed:
        said = f"it speaks for the {sentences.number(assumed)} that were assumed{means}."
    elif fits:
        said = (
            f"it speaks for {sentences.number(nearest)}{means}, not for the {sentences.number(assumed)} that were "
            f"assumed: set bytes_per_parameter to what was measured."
        )
    else:
        said = (
            f"it fits none of 12, 14, 16 and the {sentences.number(assumed)} that were assumed; nearest is "
            f"{sentences.number(nearest)}{means}. Find out what else it holds, or lacks."
        )
    return BytesPerParameter(
        measured=measured,
        assumed=assumed,
        nearest=nearest,
        sentence=f"The checkpoint takes {sentences.number(measured)} bytes a parameter: {said}",
    )


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
        drill=case.drill,
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
