"""What a gap report says to people: its sections, paragraphs and tables in plain text, before any format.

`renderings.py` writes them as Markdown and HTML. Nothing here is escaped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from service.judgement import sentences
from service.judgement.report import (
    Basis,
    Consequences,
    GapReport,
    Outcome,
    Status,
    TargetReport,
)
from service.sizing.sizing import Comparison, Sizing


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under their headings.

    Attributes:
        columns: The headings.
        rows: The cells, as many in each row.
        state_column: The column that holds a state, such as `missed`, if one does.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    state_column: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands below it."""

    heading: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole report: its title, the word of its verdict, and its sections."""

    title: str
    outcome: Outcome
    sections: Sequence[Section] = field(default_factory=list)


OUTCOMES = {
    Outcome.FALLS_SHORT: "Falls short",
    Outcome.MEETS: "Meets",
    Outcome.UNPROVEN: "Unproven",
}
_BASES = {
    Basis.FULL_SCALE: "as a whole",
    Basis.PER_NODE_EXTRAPOLATED: "by node, extrapolated",
    Basis.PER_NODE_LARGER_RUN: "by node, of a larger run",
    Basis.WHOLE_RUN: "as a whole, not scaled",
    Basis.DIRECT: "directly, of like load",
    Basis.HEAVIER_LOAD: "of a heavier load",
    Basis.LIGHTER_LOAD: "of a lighter load",
    Basis.UNLIKE_LOAD: "of an unlike load",
}
NOTHING = "–"
MOST_STORAGES = 10
"""How many of the storages that a report leaves out are named."""


def outline(report: GapReport, *, name: str) -> Outline:
    """Return what there is to read in a report.

    Args:
        report: The report.
        name: The scenario's name.
    """
    found = [
        _verdict(report),
        _about(report, name),
        Section("Targets", table=_targets(report.targets)),
        Section("Why", table=_reasons(report.targets)),
        _consequences(report.consequences),
        _each(report.consequences),
        Section(
            "Checklist",
            table=Table(
                ("Item", "State", "What shows it, or what is missing"),
                [(item.title, item.status, item.sentence) for item in report.checklist],
                state_column=1,
            ),
        ),
        _doubts(report.targets),
    ]
    return Outline(
        title=f"Gap report: {name}",
        outcome=report.verdict.outcome,
        sections=[section for section in found if section.paragraphs or section.table],
    )


def _about(report: GapReport, name: str) -> Section:
    choice = report.evidence
    rows = [
        ("Scenario", f"{name}, revision {report.scenario_revision}"),
        ("Scenario id", str(report.scenario_id)),
        ("Storage", _storage(report.storage_label)),
        ("Runs considered", f"{report.runs_considered:,}"),
        (
            "Evidence",
            f"rates by the {choice.statistic} of the repetitions, times by the {choice.time_statistic}",
        ),
    ]
    if choice.conditions:
        rows.append(("Counted for every target", ", ".join(choice.conditions)))
    if choice.run_ids is not None:
        rows.append(("Only these runs", ", ".join(str(run_id) for run_id in choice.run_ids)))
    if choice.ran_from is not None:
        rows.append(("Runs from", choice.ran_from.isoformat()))
    if choice.ran_before is not None:
        rows.append(("Runs before", choice.ran_before.isoformat()))
    others = [
        f"{_storage(each.storage_label)} ({each.runs:,})"
        for each in report.storages
        if each.storage_label != report.storage_label
    ]
    if others:
        more = f" and {len(others) - MOST_STORAGES:,} more" if len(others) > MOST_STORAGES else ""
        rows.append(("Storages left out, with their runs", ", ".join(others[:MOST_STORAGES]) + more))
    rows.append(("Engine version", report.engine_version))
    return Section("About", table=Table(("What", "Which"), rows))


def _storage(label: str | None) -> str:
    return label if label is not None else "without a label"


def _verdict(report: GapReport) -> Section:
    verdict = report.verdict
    rows = [
        (
            sentences.capitalised(sentences.NAMES[item.target]),
            str(item.status),
            _dollars(item.waste_usd_per_year),
            item.sentence,
        )
        for item in verdict.items
    ]
    return Section(
        "Verdict",
        [f"{OUTCOMES[verdict.outcome]}. {verdict.sentence}"],
        Table(
            ("Not met", "Status", "Wasted more a year", "What it does, or what is missing"),
            rows,
            state_column=1,
        )
        if rows
        else None,
    )


def _targets(targets: Sequence[TargetReport]) -> Table:
    return Table(
        ("Target", "Status", "Needed", "Measured", "Least to largest", "Margin", "Nodes", "Compared"),
        [
            (
                sentences.capitalised(sentences.NAMES[target.id]),
                str(target.status),
                sentences.needed(target),
                _quantity(target, target.measured),
                _range(target),
                _margin(target),
                _nodes(target),
                _BASES[target.basis] if target.basis is not None else NOTHING,
            )
            for target in targets
        ],
        state_column=1,
    )


def _quantity(target: TargetReport, value: float | None) -> str:
    return sentences.quantity(value, target.unit) if value is not None else NOTHING


def _range(target: TargetReport) -> str:
    if target.measured_min is None or target.measured_max is None:
        return NOTHING
    if target.measured_min == target.measured_max:
        return _quantity(target, target.measured_min)
    least = sentences.number(target.measured_min)
    if target.comparison is Comparison.WITHIN:  # bytes have a unit of their own size
        least = _quantity(target, target.measured_min)
    return f"{least} to {_quantity(target, target.measured_max)}"


def _margin(target: TargetReport) -> str:
    if target.margin_fraction is None:
        return NOTHING
    return f"{'+' if target.margin_fraction >= 0 else '−'}{sentences.percent(abs(target.margin_fraction))}"


def _nodes(target: TargetReport) -> str:
    if target.nodes is None:
        return NOTHING
    part = f" ({sentences.percent(target.nodes_fraction)})" if target.nodes_fraction is not None else ""
    return f"{target.nodes:,}{part}"


def _reasons(targets: Sequence[TargetReport]) -> Table:
    return Table(
        ("Target", "Status", "Reason", "Evidence"),
        [
            (
                sentences.capitalised(sentences.NAMES[target.id]),
                str(target.status),
                _joined(
                    target.reason,
                    target.experience,
                    target.bytes_per_parameter.sentence if target.bytes_per_parameter is not None else None,
                ),
                _joined(target.chosen_because, _runs(target)) or NOTHING,
            )
            for target in targets
        ],
        state_column=1,
    )


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _runs(target: TargetReport) -> str:
    if target.status is Status.UNMEASURED:
        return ""
    return f"Run {', '.join(str(run_id) for run_id in target.run_ids)}."


def _consequences(found: Consequences) -> Section:
    paragraphs = [each for each in (found.reason, found.collision) if each is not None]
    if found.next_interval_seconds is not None:
        paragraphs.append(
            f"For the measured stall the best interval is {sentences.number(found.next_interval_seconds)} s."
        )
    if found.extrapolated:
        names = ", ".join(sentences.NAMES[target] for target in found.extrapolated)
        paragraphs.append(f"Extrapolated from runs of another size: {names}.")
    measured = found.measured
    columns = ("Figure", "Specified") if measured is None else ("Figure", "Specified", "Measured")
    sizings = [found.specified] if measured is None else [found.specified, measured]
    rows = [
        (name, *cells)
        for name, *cells in zip(*([_FIGURES, *(list(_figures(sizing)) for sizing in sizings)]), strict=True)
        if any(cell != NOTHING for cell in cells)
    ]
    return Section("Consequences, all together", paragraphs, Table(columns, rows))


_FIGURES = (
    "Stall of a save",
    "Interval",
    "Interval that results where saves collide",
    "Best interval for the stall",
    "Durable lag",
    "Restart",
    "Goodput",
    "Waste a year",
)


def _figures(sizing: Sizing) -> Iterable[str]:
    interval = sizing.interval
    yield _seconds(sizing.blocking.seconds)
    yield _seconds(interval.seconds)
    yield _seconds(interval.effective_seconds)
    yield _seconds(interval.exact_seconds)
    yield _seconds(sizing.write.durable_lag_seconds)
    yield _seconds(sizing.restart.seconds)
    yield sentences.percent(sizing.goodput.exact.goodput_fraction)
    yield _dollars(sizing.cost.waste_usd_per_year if sizing.cost is not None else None)


def _seconds(value: float | None) -> str:
    return f"{sentences.number(value)} s" if value is not None else NOTHING


def _dollars(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{'−' if value < 0 else ''}{sentences.dollars(abs(value))}"


def _each(found: Consequences) -> Section:
    rows = [
        (
            sentences.capitalised(sentences.NAMES[each.target]),
            each.sentence,
            sentences.percent(each.goodput_fraction) if each.goodput_fraction is not None else NOTHING,
            _dollars(each.difference.waste_usd_per_year if each.difference is not None else None),
            _dollars(each.saved_if_fixed_usd_per_year),
            _seconds(each.exact_interval_seconds),
        )
        for each in found.each
    ]
    if not rows:
        return Section("Consequences, each figure alone")
    return Section(
        "Consequences, each figure alone",
        ["Figures of one run speak of the same seconds: these rows do not add up."],
        Table(
            (
                "Figure",
                "What it does",
                "Goodput",
                "Wasted more a year",
                "Saved by fixing it alone",
                "Best interval",
            ),
            rows,
        ),
    )


def _doubts(targets: Sequence[TargetReport]) -> Section:
    """Return each doubt once, with the targets that it touches."""
    touched: dict[tuple[str, str], list[str]] = {}
    for target in targets:
        for doubt in target.doubts:
            touched.setdefault((doubt.code, doubt.message), []).append(sentences.NAMES[target.id])
    rows = [(code, message, ", ".join(names)) for (code, message), names in touched.items()]
    return Section("Doubts", table=Table(("Doubt", "What was seen", "Touches"), rows) if rows else None)
