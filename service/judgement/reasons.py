"""What is said of a judged figure: why its status is what it is, why it was chosen, and what it may hide."""

from collections.abc import Sequence

from service.judgement import doubts, sentences
from service.judgement.evidence import SOURCES, Activity, Statistic, figures
from service.judgement.figure import SPECIAL_CONDITIONS, Case, Judged, Load, Scale, may_speak, reading_of
from service.judgement.report import Basis, BytesPerParameter, EvidenceChoice, Status
from service.judgement.verdict import USABLE
from service.parsers.measurement import Doubt
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Scope, Target, TargetUnit
from service.sizing.state import extra_bytes, written_fraction
from service.sizing.targets import CHECKPOINT_TOLERANCE_FRACTION


def reason(judged: Judged, target: Target, case: Case) -> str:
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
        nodes = judged.nodes_beside
        share = sentences.quantity(judged.per_node_target, target.unit)
        each = (
            f"{judged.figure.nodes:,} nodes gave {sentences.quantity(judged.per_node_measured, target.unit)} "
            f"each, and each of {nodes:,} must give {share}"
        )
        if judged.status is Status.MISSED:
            return f"{each}: {sentences.off_by(target, judged.ratio or 0.0)}."
        all_of_them = f", which makes {amount} together" if target.scope is Scope.CLUSTER else ""
        return f"{each}: enough if {nodes:,} nodes keep that pace{all_of_them}."
    if judged.status is Status.MISSED:
        gap = sentences.off_by(target, judged.ratio or 0.0)
        return f"The {name} was {amount} {where}; {need} is needed: {gap}."
    if judged.status is Status.MET_IF_IT_SCALES:
        return f"The {name} was {amount} {where}; {need} is needed: enough if more nodes do not change it."
    return f"The {name} was {amount} {where}; {need} is needed."


def _why_not(judged: Judged, flattering: Doubt | None, need: str, case: Case) -> str:
    """Return the end of the sentence that says why a figure decides nothing."""
    load = judged.load
    if judged.shows_no_miss and judged.falls_short:
        return _why_no_miss(judged, need, case)
    if load is Load.UNKNOWN:
        return f"and how much each rank moved is unknown, so it cannot be held against {need}."
    if load is Load.UNLIKE:
        return (
            f"{_load_in_words(judged, case)}: lighter in one way and heavier in another, so it cannot be "
            f"held against {need}."
        )
    if load is Load.HEAVIER and judged.falls_short:
        return (
            f"{_load_in_words(judged, case)}; {need} is needed, and a heavier load can only prove that it "
            "is met."
        )
    if load is Load.LIGHTER and not judged.falls_short:
        return (
            f"{_load_in_words(judged, case)}; {need} is needed, and a lighter load can only prove that it "
            "is missed."
        )
    if judged.basis is Basis.WHOLE_RUN and judged.falls_short:
        return f"less than {need}, and a rate of creates is not multiplied by nodes: run on all of them."
    if flattering is not None:
        return f"which would reach {need}, but the true figure can only be worse: {flattering.message}"
    if judged.basis is Basis.WHOLE_RUN and judged.scale is Scale.SMALLER:
        return f"and only a checkpoint of all nodes can be held against {need}."
    return f"which reaches {need} with more nodes than the scenario has, so its own are yet to show it."


def _why_no_miss(judged: Judged, need: str, case: Case) -> str:
    """Return why a node that fell short of the fullest node's rate is not proved too slow."""
    figure, fullest = judged.figure, case.fullest_node(judged.figure)
    if not figure.of_benchmark or fullest is None:
        return f"a mean over them; the fullest node must give {need}, and may have done so: no figure tells."
    node, together = (sentences.quantity(each, TargetUnit.GB_PER_SECOND) for each in fullest)
    everything = sentences.quantity(fullest[0] * (figure.nodes or 0), TargetUnit.GB_PER_SECOND)
    return (
        f"each having the same to do. Only the fullest node must give {node}: all of these would come to {everything} "
        f"where {together} is needed of all together, so less than {need} is no miss. Fewer nodes would show it."
    )


def _load_in_words(judged: Judged, case: Case) -> str:
    figure = judged.figure
    checkpoint, read = case.sizing.checkpoint, case.sizing.read
    if figure.activity is Activity.READING:
        moved, wanted = figure.moved_bytes, read.bytes if read is not None else None
        if moved is None or wanted is None:
            moved, wanted = figure.checkpoint_bytes or 0.0, checkpoint.bytes
        return f"for {sentences.bytes_in_words(moved)} where the scenario loads {sentences.bytes_in_words(wanted)}"
    ranks = (figure.ranks or 0) / (figure.nodes or 1)
    ranks_there = checkpoint.writers if figure.of_benchmark else case.spec.cluster.gpus
    wanted_ranks = ranks_there / judged.nodes_beside
    carriers = checkpoint.carriers if figure.of_benchmark else None
    if carriers is not None:
        together = sentences.bytes_in_words((figure.rank_bytes or 0.0) * (figure.ranks or 0))
        return (
            f"with {sentences.number(ranks)} ranks a node and {sentences.bytes_in_words(figure.rank_bytes or 0.0)} a "
            f"rank, {together} together, where the scenario has "
            f"{sentences.bytes_in_words(checkpoint.bytes)}, of which a rank has up to "
            f"{sentences.bytes_in_words(checkpoint.largest_shard_bytes)} and a node up to "
            f"{sentences.bytes_in_words(checkpoint.largest_node_bytes)}"
        )
    return (
        f"with {sentences.number(ranks)} ranks a node and {sentences.bytes_in_words(figure.rank_bytes or 0.0)} a "
        f"rank, where the scenario has {sentences.number(wanted_ranks)} and up to "
        f"{sentences.bytes_in_words(checkpoint.largest_shard_bytes)}"
    )


def _where(judged: Judged, case: Case) -> str:
    nodes = judged.figure.nodes or 0
    plural = "" if nodes == 1 else "s"
    if judged.scale is Scale.SMALLER:
        return f"on {nodes:,} of {judged.nodes_beside:,} nodes"
    if judged.scale is Scale.LARGER:
        return f"on {nodes:,} node{plural}, of which the scenario has {case.nodes_alike(judged.figure):,}"
    return f"on {nodes:,} node{plural}"


def why_unmeasured(target: Target, runs: Sequence[BenchmarkRun], case: Case) -> str:
    """Return what is missing, and what would have counted had it been asked for."""
    name, need = sentences.NAMES[target.id], sentences.needed(target)
    left_out: set[Condition] = set()
    told_otherwise = False
    usual = reading_of(case.spec, case.sizing, EvidenceChoice())
    for run in runs:
        counts = may_speak(run, target.id, case.choice.conditions)
        if (counts and told_otherwise) or not figures(run, target.id, reading=usual, expected=target.value):
            continue
        if counts:
            told_otherwise = True
        else:
            left_out |= SPECIAL_CONDITIONS.intersection(run.conditions)
    source = SOURCES[target.id]
    reason = f"No run measured the {name}; {need} is needed, and {source.hint} would show it."
    if told_otherwise:
        statistic = case.reading.statistic_of(source.kind)
        reason = f"No run tells the {statistic} of its repetitions for the {name}; {need} is needed."
    if left_out - set(case.choice.conditions):
        tags = " and ".join(sorted(left_out - set(case.choice.conditions)))
        reason += f" Runs tagged {tags} have it, and count where they are asked for by conditions."
    return reason


def chosen_because(chosen: Judged, *, tests: int, runs: int, usable: int, full: int) -> str:
    """Return why this figure is reported, and how it stands for its repetitions.

    Args:
        chosen: The figure.
        tests: How many figures its run has.
        runs: How many runs have one.
        usable: How many of those are usable.
        full: How many of those at full scale.
    """
    if runs == 1:
        which = "The only run that has the figure"
    elif not usable:
        which = f"The newest of {runs:,} runs, none of them usable"
    elif full:
        which = (
            "The only usable run at full scale"
            if full == 1
            else f"The newest of {full:,} usable runs at full scale"
        )
    else:
        which = (
            "The only usable run"
            if usable == 1
            else f"The newest of {usable:,} usable runs, none of them at full scale"
        )
    if usable and runs > max(1, full or usable):
        which += f", of {runs:,} runs that have the figure"
    if tests > 1:
        which += f"; of its {tests:,} tests the usable one on most nodes, and of those the worst"
    return f"{which}; {_COMPARED_BY[chosen.figure.statistic]}."


_COMPARED_BY: dict[Statistic | None, str] = {
    Statistic.MEAN: "compared by the mean of its repetitions",
    Statistic.MEDIAN: "compared by the median of its repetitions",
    Statistic.MIN: "compared by the least of its repetitions",
    Statistic.MAX: "compared by the largest of its repetitions",
    None: "of several sizes the one furthest off is compared",
}

EXPERIENCE = "a fault seen in the field appeared only at 60 nodes, not at four"


def experience(judged: Judged) -> str | None:
    """Return what smaller runs have failed to show before, where this one seems to suffice."""
    nodes = judged.figure.nodes
    if judged.scale is not Scale.SMALLER or nodes is None or judged.falls_short:
        return None
    there = judged.nodes_beside
    return (
        f"{nodes:,} of {there:,} nodes were tested, {sentences.percent(nodes / there)} of them. "
        f"Experience says that this is not proof: {EXPERIENCE}. Repeat it on as many nodes as can be spared."
    )


FAR_BELOW_SHARD_FRACTION = 0.01
"""Ranks that write less than this fraction of the largest shard time the making of files, not a stream of bytes."""


def small_writes(judged: Judged, case: Case) -> str:
    """Return a sentence to add where a write rate comes from writes that no checkpoint makes."""
    # Where shards are uneven, most ranks of a save write far less than the largest.
    checkpoint = case.sizing.checkpoint
    uneven = checkpoint.carriers is not None
    figure, shard = judged.figure, checkpoint.mean_shard_bytes if uneven else checkpoint.largest_shard_bytes
    if figure.activity is not Activity.WRITING or judged.load is not None or figure.rank_bytes is None:
        return ""
    if figure.rank_bytes >= FAR_BELOW_SHARD_FRACTION * shard:
        return ""
    which = "mean" if uneven else "largest"
    return (
        f" Each rank wrote {sentences.bytes_in_words(figure.rank_bytes)} where the {which} shard has "
        f"{sentences.bytes_in_words(shard)}: that times opening and closing files rather than writing, so measure "
        "again with blocks of a shard."
    )


RECIPES = {
    12.0: "fp32 weights and two Adam moments",
    14.0: "fp32 weights, two Adam moments and bf16 weights",
    16.0: "fp32 weights, two Adam moments, bf16 weights and gradients",
}
"""What a parameter may take in a checkpoint. [B]"""


def bytes_per_parameter(judged: Judged, case: Case) -> BytesPerParameter | None:
    """Return what a checkpoint at full scale says of the assumed bytes of a parameter."""
    if judged.figure.activity is not Activity.HOLDING or judged.status not in USABLE:
        return None
    model = case.sizing.model
    state_bytes = (judged.figure.value - extra_bytes(case.spec)) / written_fraction(case.spec)
    measured = state_bytes / (model.adapter_parameters or model.parameters)
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
