"""One figure against one target: how they compare, and what that proves.

A rate is compared as a whole at full scale and node by node otherwise; a time where a rank had the scenario's
load, or where a lighter or heavier one proves something all the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from service.judgement import doubts
from service.judgement.evidence import SOURCES, Activity, Figure, Kind, Reading
from service.judgement.report import Basis, EvidenceChoice, Status
from service.parsers.measurement import Doubt
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Checkpoint, Comparison, Scope, Sizing, Target, TargetId
from service.sizing.spec import ScenarioSpec

RANKS_TOLERANCE_FRACTION = 0.05
"""So far apart ranks per node may be to be like each other."""
BYTES_TOLERANCE_FRACTION = 0.10
"""Likewise bytes that were moved."""
_ROUNDING = 1e-9
"""A relative difference that comes from adding up floats decides nothing."""

SPECIAL_CONDITIONS = frozenset({Condition.UNDER_READ_LOAD, Condition.DEGRADED})
_OF_WRITERS = frozenset({Activity.WRITING, Activity.CREATING})
_OWN_CONDITION = {TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: Condition.UNDER_READ_LOAD}


class Scale(Enum):
    """How many nodes a run had, beside the scenario's."""

    FULL = "full"
    SMALLER = "smaller"
    LARGER = "larger"


class Load(Enum):
    """What a rank had to move, or all of them, beside the scenario's."""

    LIKE = "like"
    HEAVIER = "heavier"
    LIGHTER = "lighter"
    UNLIKE = "unlike"
    UNKNOWN = "unknown"


_BASIS_OF_LOAD = {
    Load.HEAVIER: Basis.HEAVIER_LOAD,
    Load.LIGHTER: Basis.LIGHTER_LOAD,
    Load.UNLIKE: Basis.UNLIKE_LOAD,
    Load.UNKNOWN: Basis.UNLIKE_LOAD,
}


@dataclass(frozen=True, slots=True)
class Case:
    """What every figure is held against."""

    spec: ScenarioSpec
    sizing: Sizing
    revision: int
    low_fraction: float
    high_fraction: float
    choice: EvidenceChoice
    drill: doubts.Drill | None

    def nodes_beside(self, figure: Figure, target_id: TargetId) -> int:
        """Return on how many nodes a run does all that the target is about.

        All of them, but where fewer ranks write than there are nodes: the ranks of a benchmark stand for the
        writers, and when all of these take part nothing is left to scale. Where shards are uneven, and the target is
        about the fullest of them, it is as many as make up a checkpoint if each is as full.
        """
        if figure.of_benchmark and figure.activity is Activity.WRITING:
            carriers = self.sizing.carriers_of(target_id)
            if carriers is not None:
                return carriers.nodes
        return self.nodes_alike(figure)

    def nodes_alike(self, figure: Figure) -> int:
        """Return how many nodes of the scenario do what the nodes of the run did, however full they are."""
        checkpoint = self.sizing.checkpoint
        if figure.of_benchmark and figure.activity in _OF_WRITERS:
            return checkpoint.writing_nodes
        return checkpoint.nodes

    def nodes_at_work(self, figure: Figure) -> float:
        """Return how many nodes of the run moved the bytes: of a checkpointer's saves, those that have a writer."""
        checkpoint, nodes = self.sizing.checkpoint, float(figure.nodes or 0)
        if figure.activity is Activity.WRITING and not figure.of_benchmark:
            return nodes * checkpoint.writing_nodes / checkpoint.nodes
        return nodes

    def scale(self, figure: Figure, target_id: TargetId) -> Scale | None:
        """Return how many nodes the run had beside the scenario's; None where it is unknown."""
        if figure.nodes is None:
            return None
        if figure.nodes < self.low_fraction * self.nodes_beside(figure, target_id):
            return Scale.SMALLER
        if figure.nodes > self.high_fraction * self.nodes_alike(figure):
            return Scale.LARGER
        return Scale.FULL

    def fullest_node(self, figure: Figure) -> tuple[float, float] | None:
        """Return the rate that the fullest node must have and that of all; None where the former is unknown. [GB/s]"""
        needed = self.sizing.read if figure.activity is Activity.READING else self.sizing.write
        if needed is None or needed.largest_node_gb_per_second is None:
            return None
        return needed.largest_node_gb_per_second, needed.required_gb_per_second

    @property
    def reading(self) -> Reading:
        """How runs are read for it."""
        return reading_of(self.spec, self.sizing, self.choice)


@dataclass(frozen=True, slots=True)
class Judged:
    """One figure, held against one target."""

    figure: Figure
    status: Status
    basis: Basis | None
    scale: Scale | None
    load: Load | None
    shows_no_miss: bool
    """Whether a node that was asked for more, or as a mean of unlike ones, can only prove that the target is met."""
    nodes_beside: int
    measured: float | None
    measured_min: float | None
    measured_max: float | None
    ratio: float | None
    per_node_target: float | None
    per_node_measured: float | None
    falls_short: bool
    doubts: list[Doubt]


def reading_of(spec: ScenarioSpec, sizing: Sizing | None, choice: EvidenceChoice) -> Reading:
    """Return how runs are read for a scenario, by the statistics that were chosen."""
    amplification = spec.restore.read_amplification if spec.restore is not None else None
    if sizing is not None and sizing.read is not None:
        amplification = sizing.read.read_amplification
    return Reading(
        mode=spec.save.mode,
        read_amplification=amplification or 1.0,
        statistic=choice.statistic,
        time_statistic=choice.time_statistic,
        differential=spec.model.differential_fraction is not None,
    )


def may_speak(run: BenchmarkRun, target_id: TargetId, asked: Collection[Condition]) -> bool:
    """Whether the state in which a run found the storage is one that the target is about."""
    if not run.conditions:
        return target_id not in _OWN_CONDITION
    special = SPECIAL_CONDITIONS.intersection(run.conditions)
    own = _OWN_CONDITION.get(target_id)
    if own is not None and own not in special:
        return False
    return special <= {own, *asked}


def judge_figure(figure: Figure, stated: doubts.Placed, target: Target, case: Case) -> Judged:
    """Return what one figure says about one target, as if there were no other."""
    kind = SOURCES[target.id].kind
    scale = case.scale(figure, target.id)
    nodes_beside = case.nodes_beside(figure, target.id)
    load = _load(figure, target.id, kind, case)
    shows_no_miss = target.scope is Scope.NODE and _shows_no_miss(figure, scale, case)
    factor = _factor(figure, target, kind, scale, case)
    found = doubts.of_figure(
        figure,
        stated,
        kind=kind,
        spec=case.spec,
        revision=case.revision,
        drill=case.drill,
        largest_shard_bytes=case.sizing.checkpoint.largest_shard_bytes,
    )
    measured = figure.value * factor if factor is not None else None
    ratio = measured / target.value if measured is not None else None
    falls_short = ratio is not None and _falls_short(target, ratio)
    per_node = kind is Kind.RATE and figure.nodes is not None and scale is not Scale.FULL
    share = target.value if target.scope is Scope.NODE else target.value / nodes_beside
    return Judged(
        figure=figure,
        status=Status.NOT_COMPARABLE
        if shows_no_miss and falls_short
        else _status(kind, scale, load, falls_short, found),
        basis=_basis(kind, scale, load),
        scale=scale,
        load=load,
        shows_no_miss=shows_no_miss,
        nodes_beside=nodes_beside,
        measured=measured,
        measured_min=figure.least * factor if factor is not None and figure.least is not None else None,
        measured_max=figure.largest * factor if factor is not None and figure.largest is not None else None,
        ratio=ratio,
        per_node_target=share if per_node else None,
        per_node_measured=_of_a_node(figure, target, case) if per_node else None,
        falls_short=falls_short,
        doubts=found,
    )


def _factor(figure: Figure, target: Target, kind: Kind, scale: Scale | None, case: Case) -> float | None:
    """Return what turns the run's figure into the target's: only rates are ever scaled."""
    if kind is not Kind.RATE:
        return 1.0
    if figure.nodes is None:
        # What all nodes gave is known and can be shown; what one of them gave is not.
        return 1.0 if target.scope is Scope.CLUSTER else None
    if target.scope is Scope.NODE:
        fullest = case.fullest_node(figure)
        if fullest is not None and scale is Scale.FULL and not figure.of_benchmark:
            # It moved a checkpoint, of which that node has its part.
            return fullest[0] / fullest[1]
        return 1.0 / case.nodes_at_work(figure)
    return 1.0 if scale is Scale.FULL else case.nodes_beside(figure, target.id) / figure.nodes


def _shows_no_miss(figure: Figure, scale: Scale | None, case: Case) -> bool:
    """Return whether a node of the run that falls short of the fullest node's rate may be none too slow for it.

    A benchmark has all its nodes do the same: where they could only reach that rate by more than all nodes of a save
    need together, the storage was asked for too much. Of a checkpoint on another number of nodes only the mean node is
    known, and the fullest did as much at least.
    """
    fullest = case.fullest_node(figure)
    if fullest is None or figure.nodes is None:
        return False
    if not figure.of_benchmark:
        return scale is not Scale.FULL
    node, together = fullest
    return _beside(figure.nodes * node, together, together, RANKS_TOLERANCE_FRACTION) > 0


def _of_a_node(figure: Figure, target: Target, case: Case) -> float | None:
    """Return what each node of the run gave; None where their number is unknown."""
    if not figure.nodes:
        return None
    return figure.value / (case.nodes_at_work(figure) if target.scope is Scope.NODE else float(figure.nodes))


def _falls_short(target: Target, ratio: float) -> bool:
    match target.comparison:
        case Comparison.AT_LEAST:
            return ratio < 1.0 - _ROUNDING
        case Comparison.AT_MOST:
            return ratio > 1.0 + _ROUNDING
        case Comparison.WITHIN:
            return abs(ratio - 1.0) > (target.tolerance_fraction or 0.0) + _ROUNDING


def _status(
    kind: Kind, scale: Scale | None, load: Load | None, falls_short: bool, found: Sequence[Doubt]
) -> Status:
    """Return the first status that applies to a figure."""
    proves_nothing = (
        scale is None
        or doubts.first_of(found, doubts.VOIDS) is not None
        or (kind is Kind.SIZE and scale is not Scale.FULL)
        or load in (Load.UNLIKE, Load.UNKNOWN)
        or (load is Load.HEAVIER and falls_short)
        or (load is Load.LIGHTER and not falls_short)
        or (kind is Kind.CREATE_RATE and scale is Scale.SMALLER and falls_short)
    )
    if proves_nothing:
        return Status.NOT_COMPARABLE
    if falls_short:
        return Status.MISSED
    if doubts.first_of(found, doubts.FLATTERS) is not None or scale is Scale.LARGER:
        return Status.NOT_COMPARABLE
    return Status.MET if scale is Scale.FULL else Status.MET_IF_IT_SCALES


def _basis(kind: Kind, scale: Scale | None, load: Load | None) -> Basis | None:
    if scale is None:
        return None
    if load is not None and load is not Load.LIKE:
        return _BASIS_OF_LOAD[load]
    if scale is Scale.FULL:
        return Basis.FULL_SCALE
    if load is Load.LIKE:
        return Basis.DIRECT
    if kind is Kind.RATE:
        return Basis.PER_NODE_EXTRAPOLATED if scale is Scale.SMALLER else Basis.PER_NODE_LARGER_RUN
    return Basis.WHOLE_RUN


def _load(figure: Figure, target_id: TargetId, kind: Kind, case: Case) -> Load | None:
    """Return how the load in a time compares with the scenario's; None for what is no time."""
    if kind is Kind.LOAD_TIME:
        return _total_load(figure, case)
    if kind is not Kind.RANK_TIME:
        return None
    if figure.ranks is None or figure.nodes is None or figure.rank_bytes is None:
        return Load.UNKNOWN
    cluster, checkpoint = case.spec.cluster, case.sizing.checkpoint
    if figure.of_benchmark and case.sizing.carriers_of(target_id) is not None:
        return _fullest_load(figure.rank_bytes, figure.ranks, figure.nodes, checkpoint)
    # All ranks of a benchmark write, as only the writers of a scenario do; a checkpointer runs on every GPU.
    ranks = checkpoint.writers if figure.of_benchmark else cluster.gpus
    # The last node of a scenario may not be full: both its mean node and its full one are like it.
    mean_node = ranks / case.nodes_beside(figure, target_id)
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


def _fullest_load(rank_bytes: float, ranks: int, nodes: int, checkpoint: Checkpoint) -> Load:
    """Compare a rank with the slowest writer, its node with the fullest, and all ranks with a checkpoint.

    Fewer bytes than a checkpoint's are those of fewer nodes, which is a matter of scale and not of load.
    """
    shard, node, whole = checkpoint.largest_shard_bytes, checkpoint.largest_node_bytes, checkpoint.bytes
    one_rank = _beside(rank_bytes, shard, shard, BYTES_TOLERANCE_FRACTION)
    one_node = _beside(rank_bytes * ranks / nodes, node, node, BYTES_TOLERANCE_FRACTION)
    # Lighter ranks prove a miss only while all of them together have no more than a checkpoint, not even by padding.
    tolerance_fraction = 0.0 if min(one_rank, one_node) < 0 else BYTES_TOLERANCE_FRACTION
    together = max(_beside(rank_bytes * ranks, whole, whole, tolerance_fraction), 0)
    return _combined(one_rank, one_node, together)


def _total_load(figure: Figure, case: Case) -> Load:
    """Compare bytes read with bytes to be read; where the former are unknown, the checkpoints."""
    read, wanted = figure.moved_bytes, case.sizing.read.bytes if case.sizing.read is not None else None
    if read is None or wanted is None:
        read, wanted = figure.checkpoint_bytes, case.sizing.checkpoint.bytes
    if read is None:
        return Load.UNKNOWN
    return _combined(_beside(read, wanted, wanted, BYTES_TOLERANCE_FRACTION))


def _beside(value: float, low: float, high: float, tolerance_fraction: float) -> int:
    """Return -1, 0 or 1: less than, like, or more than what lies between `low` and `high`."""
    if value < low * (1.0 - tolerance_fraction - _ROUNDING):
        return -1
    return 1 if value > high * (1.0 + tolerance_fraction + _ROUNDING) else 0


def _combined(*sides: int) -> Load:
    if min(sides) < 0 < max(sides):
        return Load.UNLIKE
    if min(sides) < 0:
        return Load.LIGHTER
    return Load.HEAVIER if max(sides) > 0 else Load.LIKE
