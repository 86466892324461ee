"""The verdict on a storage system: one word, one sentence, and what is not met by what it costs.

Here too is the one measure by which figures of unlike targets are set in order.
"""

from collections.abc import Mapping, Sequence

from service.judgement import sentences
from service.judgement.evidence import Statistic
from service.judgement.report import (
    Consequence,
    EvidenceChoice,
    Outcome,
    Status,
    TargetReport,
    Verdict,
    VerdictItem,
)
from service.sizing.sizing import Comparison, Target, TargetId

USABLE = frozenset({Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES})
"""The statuses of a figure that decides something."""


def verdict(
    targets: Sequence[TargetReport],
    *,
    storage_label: str | None,
    each: Sequence[Consequence],
    choice: EvidenceChoice,
) -> Verdict:
    """Return the verdict that the statuses add up to, with the target that decides it.

    Args:
        targets: The judged targets.
        storage_label: The name of the storage, if it has one.
        each: What each usable figure alone costs.
        choice: What was asked for of the evidence; what is not usual of it is told with the verdict.
    """
    reached = _reached(targets, storage_label, each)
    return reached.model_copy(update={"sentence": reached.sentence + _unusual(choice)})


def _reached(
    targets: Sequence[TargetReport], storage_label: str | None, each: Sequence[Consequence]
) -> Verdict:
    items = _items(targets, {consequence.target: consequence for consequence in each})
    name = f"Storage {storage_label}" if storage_label is not None else "The storage"
    missed = {target.id: target for target in targets if target.status is Status.MISSED}
    if missed:
        size = missed.pop(TargetId.CHECKPOINT_BYTES, None)
        if not missed:
            assert size is not None  # noqa: S101 - something was missed
            return Verdict(
                outcome=Outcome.FALLS_SHORT,
                sentence=f"{name} has missed no target of its own, but the scenario does not hold: "
                f"{_other_size(size)}",
                decided_by=size.id,
                items=items,
            )
        # The list is in order of what each costs, so its first one decides.
        dearest = next(item for item in items if item.target in missed)
        priced = dearest.waste_usd_per_year
        cost = (
            f", {sentences.dollars(priced)} a year more wasted" if priced is not None and priced > 0.0 else ""
        )
        return Verdict(
            outcome=Outcome.FALLS_SHORT,
            sentence=f"{name} falls short on {len(missed)} of {len(targets)} targets, most of all in the "
            f"{sentences.NAMES[dearest.target]}: {_held_against(missed[dearest.target])}{cost}."
            + (f" Besides, {_other_size(size)}" if size is not None else ""),
            decided_by=dearest.target,
            items=items,
        )
    unproven = [target for target in targets if target.status is not Status.MET]
    if unproven:
        first = unproven[0]
        return Verdict(
            outcome=Outcome.UNPROVEN,
            sentence=f"{name} has missed no target, but {len(unproven)} of {len(targets)} are yet to be proved, "
            f"first the {sentences.NAMES[first.id]}: {_held_against(first)}.",
            decided_by=first.id,
            items=items,
        )
    # A size that is as assumed is no narrow escape.
    contested = [target for target in targets if target.comparison is not Comparison.WITHIN]
    narrowest = min(contested or targets, key=_margin)
    return Verdict(
        outcome=Outcome.MEETS,
        sentence=f"{name} meets all {len(targets)} targets, most narrowly the {sentences.NAMES[narrowest.id]}: "
        f"{_held_against(narrowest)}.",
        decided_by=narrowest.id,
        items=items,
    )


def _other_size(size: TargetReport) -> str:
    """Return what a checkpoint of another size than assumed means: a fault of the scenario, not of the storage."""
    return (
        f"a checkpoint takes {sentences.quantity(size.measured or 0.0, size.unit)} where {sentences.needed(size)} was "
        "assumed. Set the scenario's bytes to what was measured, and judge again."
    )


def _unusual(choice: EvidenceChoice) -> str:
    """Return a sentence about evidence that is not read as usual; nothing where it is."""
    usual = EvidenceChoice()
    told = [
        f"{what} by the {_STATISTICS[asked]} of their repetitions"
        for what, asked, as_usual in (
            ("rates", choice.statistic, usual.statistic),
            ("times", choice.time_statistic, usual.time_statistic),
        )
        if asked is not as_usual
    ]
    if choice.conditions:
        told.append(f"with runs tagged {' and '.join(choice.conditions)} counted for every target")
    return f" As was asked, this is {' and '.join(told)}." if told else ""


_STATISTICS = {
    Statistic.MEAN: "mean",
    Statistic.MEDIAN: "median",
    Statistic.MIN: "least",
    Statistic.MAX: "largest",
}


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
    return goodness(target, target.ratio)


def goodness(target: Target, ratio: float | None) -> float:
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


def margin_fraction(target: Target, ratio: float) -> float:
    """Return how far on the good side of its target a figure is, as a fraction of it; negative on the other."""
    match target.comparison:
        case Comparison.AT_LEAST:
            return ratio - 1.0
        case Comparison.AT_MOST:
            return 1.0 - ratio
        case Comparison.WITHIN:
            return (target.tolerance_fraction or 0.0) - abs(ratio - 1.0)


def _items(targets: Sequence[TargetReport], costs: Mapping[TargetId, Consequence]) -> list[VerdictItem]:
    """Return what is not met: first what leaves no time to train, then by dollars, by goodput, and the unpriced."""
    listed = []
    for place, target in enumerate(targets):
        if target.status is Status.MET:
            continue
        cost = costs.get(target.id)
        difference = cost.difference if cost is not None else None
        item = VerdictItem(
            target=target.id,
            status=target.status,
            waste_usd_per_year=difference.waste_usd_per_year if difference is not None else None,
            goodput_fraction=difference.goodput_fraction if difference is not None else None,
            sentence=cost.sentence if cost is not None else target.reason,
        )
        is_open = cost is not None and cost.feasible
        rank = (
            is_open or cost is None,
            cost is None,
            -(item.waste_usd_per_year or 0.0),
            item.goodput_fraction or 0.0,
            place,
        )
        listed.append((rank, item))
    return [item for _, item in sorted(listed, key=lambda each: each[0])]
