"""Two gap reports of one scenario side by side: two storages, or one before and after something."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from service.judgement import sentences
from service.judgement.report import (
    Basis,
    Difference,
    EvidenceChoice,
    GapReport,
    Outcome,
    Status,
    TargetReport,
    Verdict,
)
from service.judgement.verdict import USABLE, goodness
from service.sizing.sizing import Sizing, Target
from service.wire import Absent, Outgoing

_ROUNDING = 1e-9
"""A relative difference that comes from adding up floats decides nothing."""


class Better(StrEnum):
    """Which of two is better."""

    FIRST = "first"
    SECOND = "second"
    SAME = "same"
    UNDECIDED = "undecided"
    """One of them, or both, have no figure that decides anything."""


class ComparedFigure(Outgoing):
    """What one of the reports says about a target."""

    status: Status
    basis: Basis | Absent = None
    measured: float | Absent = None
    """In the target's unit, as in the report."""
    measured_min: float | Absent = None
    measured_max: float | Absent = None
    ratio: float | Absent = None
    """Measured over target."""
    margin_fraction: float | Absent = None
    """How far on the good side of the target."""
    nodes: int | Absent = None
    """Nodes of the run."""
    run_ids: list[UUID]
    reason: str


class TargetComparison(Target):
    """One target, with both figures."""

    first: ComparedFigure
    second: ComparedFigure
    better: Better
    sentence: str


class ComparedReport(Outgoing):
    """One of the reports, but for its targets."""

    storage_label: str | Absent = None
    """The storage; absent where its runs have no label."""
    evidence: EvidenceChoice
    """Which runs it is made from."""
    runs_considered: int
    verdict: Verdict
    feasible: bool
    """Whether the interval leaves time to train, with its measured figures."""
    goodput_fraction: float | Absent = None
    """With its measured figures; absent where none bears on it."""
    waste_usd_per_year: float | Absent = None
    """Likewise. [USD/year]"""


class GapReportComparison(Outgoing):
    """Two gap reports of one scenario, side by side."""

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    split_at: datetime | Absent = None
    """Where the second is about what ran from then on, and the first about what ran before."""
    first: ComparedReport
    second: ComparedReport
    targets: list[TargetComparison]
    better: Better
    """By the goodput that the measured figures give."""
    difference: Difference | Absent = None
    """The second less the first; absent where one of them has no measured goodput."""
    sentence: str


def compare(
    *, first: GapReport, second: GapReport, names: tuple[str, str], split_at: datetime | None = None
) -> GapReportComparison:
    """Return two reports of one revision of a scenario side by side.

    Args:
        first: The one.
        second: The other.
        names: What to call them in sentences.
        split_at: The time that parts them, if that is what does.
    """
    one, other = first.consequences.measured, second.consequences.measured
    difference = _difference(one, other) if one is not None and other is not None else None
    better = _better_goodput(first, second)
    return GapReportComparison(
        engine_version=second.engine_version,
        scenario_id=second.scenario_id,
        scenario_revision=second.scenario_revision,
        split_at=split_at,
        first=_side(first),
        second=_side(second),
        targets=[_target(*both, names) for both in zip(first.targets, second.targets, strict=True)],
        better=better,
        difference=difference,
        sentence=_sentence(first, second, names, better, difference),
    )


def _side(report: GapReport) -> ComparedReport:
    measured = report.consequences.measured
    return ComparedReport(
        storage_label=report.storage_label,
        evidence=report.evidence,
        runs_considered=report.runs_considered,
        verdict=report.verdict,
        feasible=report.consequences.feasible,
        goodput_fraction=measured.goodput.exact.goodput_fraction if measured is not None else None,
        waste_usd_per_year=_waste(measured) if measured is not None else None,
    )


def _waste(sizing: Sizing) -> float | None:
    return sizing.cost.waste_usd_per_year if sizing.cost is not None else None


def _difference(first: Sizing, second: Sizing) -> Difference:
    before, after = _waste(first), _waste(second)
    return Difference(
        goodput_fraction=second.goodput.exact.goodput_fraction - first.goodput.exact.goodput_fraction,
        waste_usd_per_year=after - before if before is not None and after is not None else None,
    )


def _better_goodput(first: GapReport, second: GapReport) -> Better:
    """Return which trains more; what leaves no time to train loses against what does."""
    goodputs = []
    for consequences in (first.consequences, second.consequences):
        if consequences.measured is not None:
            goodputs.append(consequences.measured.goodput.exact.goodput_fraction)
        elif consequences.feasible:
            return Better.UNDECIDED
        else:
            goodputs.append(0.0)
    return _larger(*goodputs)


def _larger(first: float, second: float) -> Better:
    if first == second or abs(first - second) <= _ROUNDING * max(abs(first), abs(second)):
        return Better.SAME
    return Better.FIRST if first > second else Better.SECOND


def _target(one: TargetReport, other: TargetReport, names: tuple[str, str]) -> TargetComparison:
    better = Better.UNDECIDED
    if one.status in USABLE and other.status in USABLE:
        better = _larger(goodness(one, one.ratio), goodness(other, other.ratio))
    return TargetComparison(
        **{name: getattr(one, name) for name in Target.model_fields},
        first=_figure(one),
        second=_figure(other),
        better=better,
        sentence=_target_sentence(one, other, names, better),
    )


def _figure(target: TargetReport) -> ComparedFigure:
    return ComparedFigure(**{name: getattr(target, name) for name in ComparedFigure.model_fields})


def _target_sentence(one: TargetReport, other: TargetReport, names: tuple[str, str], better: Better) -> str:
    name = sentences.NAMES[one.id]
    told = " and ".join(
        f"{sentences.quantity(target.measured, target.unit)} {of}"
        for target, of in zip((one, other), names, strict=True)
        if target.measured is not None
    )
    if not told:
        return f"Nobody measured the {name}."
    match better:
        case Better.UNDECIDED:
            idle = " nor ".join(
                of for target, of in zip((one, other), names, strict=True) if target.status not in USABLE
            )
            return f"The {name} was {told}; nothing usable was measured {idle}."
        case Better.SAME:
            return f"The {name} was {told}: the same."
        case _:
            return f"The {name} was {told}: better {names[0] if better is Better.FIRST else names[1]}."


def _unlike(first: GapReport, second: GapReport, names: tuple[str, str]) -> str:
    """Return what was measured of one storage alone: the other is then taken to be as specified in it."""
    told = []
    usable = [
        {target.id for target in report.targets if target.status in USABLE} for report in (first, second)
    ]
    for mine, others, of in ((usable[0], usable[1], names[0]), (usable[1], usable[0], names[1])):
        alone = [sentences.NAMES[target.id] for target in first.targets if target.id in mine - others]
        if alone:
            told.append(f"{', '.join(alone)} {of}")
    return f" Not like with like: only {'; only '.join(told)} was measured." if told else ""


def _sentence(
    first: GapReport,
    second: GapReport,
    names: tuple[str, str],
    better: Better,
    difference: Difference | None,
) -> str:
    """Return which of the two trains more, and what the difference is worth."""
    if better is Better.UNDECIDED:
        unknown = " nor ".join(
            of
            for report, of in zip((first, second), names, strict=True)
            if report.consequences.measured is None and report.consequences.feasible
        )
        return f"They cannot be set in order: no usable figure bears on the goodput {unknown}."
    if better is Better.SAME:
        return "By what was measured, training gets the same from both."
    winner, loser = names if better is Better.FIRST else names[::-1]
    if difference is None:
        return f"There is time to train {winner}, and the measured figures leave none {loser}."
    money = difference.waste_usd_per_year
    priced = f", ${abs(money):,.0f} a year less wasted" if money is not None else ""
    verdicts = {first.verdict.outcome, second.verdict.outcome}
    proved = (
        ""
        if verdicts <= {Outcome.MEETS, Outcome.FALLS_SHORT}
        else " Not all of it is proved: see the verdicts."
    ) + _unlike(first, second, names)
    return (
        f"Training gets {sentences.percent(abs(difference.goodput_fraction))} of all time more {winner} than {loser}"
        f"{priced}.{proved}"
    )
