"""A gap report as Markdown, as CSV and as an HTML page fit to print.

Names, labels and what tools wrote come from outside: here they are escaped, each format in its own way.
"""

import csv
import io
import re
from collections.abc import Sequence
from html import escape

from service.judgement.outline import OUTCOMES, Section, Table, outline
from service.judgement.report import GapReport, Outcome

FOOTNOTE = (
    "1 GB is 10⁹ bytes, 1 TB is 10¹² bytes, a year has 365 days. Dollars are estimates from list prices."
)

# Markdown


def markdown(report: GapReport, *, name: str) -> str:
    """Return the report as Markdown with tables, as GitHub reads it.

    Args:
        report: The report.
        name: The scenario's name.
    """
    told = outline(report, name=name)
    lines = [f"# {_plain(told.title)}", ""]
    for section in told.sections:
        lines += [f"## {_plain(section.heading)}", ""]
        for paragraph in section.paragraphs:
            lines += [_plain(paragraph), ""]
        if section.table is not None:
            lines += [*_markdown_rows(section.table), ""]
    return "\n".join([*lines, _plain(FOOTNOTE), ""])


def _markdown_rows(table: Table) -> list[str]:
    rows = [
        table.columns,
        *(
            [_in_words(cell) if at == table.state_column else cell for at, cell in enumerate(row)]
            for row in table.rows
        ),
    ]
    written = [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows]
    written.insert(1, "|" + " --- |" * len(table.columns))
    return written


_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~#!$])|(?<=[A-Za-z])(:)(?=//)|(?<=www)(\.)|(@)", re.IGNORECASE)
_SPACES = re.compile(r"[\s\x00-\x1f\x7f\u2028\u2029]+")


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no link, no line of its own."""
    return _MARKDOWN.sub(r"\\\g<0>", _one_line(text))


def _in_words(state: str) -> str:
    """Return a state as people write it: `met if it scales`."""
    return state.replace("_", " ")


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


# CSV

CSV_COLUMNS = (
    "scenario",
    "scenario_revision",
    "storage_label",
    "target",
    "status",
    "comparison",
    "value",
    "unit",
    "scope",
    "statistic",
    "measured",
    "measured_min",
    "measured_max",
    "per_node_target",
    "per_node_measured",
    "ratio",
    "margin_fraction",
    "basis",
    "nodes",
    "nodes_fraction",
    "waste_usd_per_year",
    "goodput_fraction",
    "run_ids",
    "doubts",
    "reason",
    "chosen_because",
)
"""One row is one target; the two before `run_ids` are what its figure alone changes, as in the report."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff0b", "\uff0d", "\uff1d", "\uff20")
"""What makes a spreadsheet take a cell for a formula, full-width forms too."""


def comma_separated(report: GapReport, *, name: str) -> str:
    """Return the targets of the report as CSV (RFC 4180) with a heading; what is unknown is an empty cell.

    Args:
        report: The report.
        name: The scenario's name.
    """
    alone = {each.target: each.difference for each in report.consequences.each}
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(CSV_COLUMNS)
    for target in report.targets:
        difference = alone.get(target.id)
        known = {
            "scenario": name,
            "scenario_revision": report.scenario_revision,
            "storage_label": report.storage_label,
            "target": target.id,
            "waste_usd_per_year": difference.waste_usd_per_year if difference is not None else None,
            "goodput_fraction": difference.goodput_fraction if difference is not None else None,
            "run_ids": " ".join(str(run_id) for run_id in target.run_ids),
            "doubts": " ".join(dict.fromkeys(doubt.code for doubt in target.doubts)),
        }
        writer.writerow(_cell(known.get(column, getattr(target, column, None))) for column in CSV_COLUMNS)
    return written.getvalue()


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = _one_line(value)
    return f"'{text}" if value.startswith(_FORMULA) or text.startswith(_FORMULA) else text


# HTML

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto; max-width: 70rem;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; break-after: avoid; }
.outcome { display: inline-block; padding: .1rem .6rem; border: 2px solid; border-radius: .3rem; font-weight: 700; }
.falls_short { color: #a31515; } .meets { color: #14631f; } .unproven { color: #7a5200; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { border: 1px solid #bbb; padding: .25rem .45rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { background: #f0f0f0; }
th, td.state { overflow-wrap: normal; }
tr { break-inside: avoid; } thead { display: table-header-group; }
td.state { font-weight: 600; }
td.missed { color: #a31515; } td.met, td.proved { color: #14631f; }
td.unmeasured, td.not_comparable, td.met_if_it_scales, td.stale, td.open { color: #7a5200; }
footer { margin-top: 2rem; font-size: .8rem; color: #555; }
@page { size: A4 landscape; margin: 12mm; }
@media print { body { margin: 0; max-width: none; padding: 0; font-size: 10pt; } .scroll { overflow: visible; } }
"""


def page(report: GapReport, *, name: str) -> str:
    """Return the report as one HTML page that stands alone, has no script, and is fit to print.

    Args:
        report: The report.
        name: The scenario's name.
    """
    told = outline(report, name=name)
    title = escape(_one_line(told.title))
    sections = "".join(_section(section) for section in told.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{_outcome(told.outcome)}\n{sections}"
        f"<footer>{escape(FOOTNOTE)}</footer>\n</body>\n</html>\n"
    )


def _outcome(outcome: Outcome) -> str:
    return f'<p class="outcome {outcome}">{escape(OUTCOMES[outcome])}</p>'


def _section(section: Section) -> str:
    paragraphs = "".join(f"<p>{escape(_one_line(paragraph))}</p>\n" for paragraph in section.paragraphs)
    table = _table(section.table) if section.table is not None else ""
    return f"<section>\n<h2>{escape(section.heading)}</h2>\n{paragraphs}{table}</section>\n"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "".join(f"<tr>{_cells(row, table.state_column)}</tr>\n" for row in table.rows)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n'


def _unbroken(text: str) -> str:
    """Return text whose per cent signs stay on the line of their number."""
    return text.replace(" %", "&nbsp;%")


def _cells(row: Sequence[str], state_column: int | None) -> str:
    return "".join(
        f'<td class="state {escape(cell)}">{escape(_in_words(cell))}</td>'
        if column == state_column
        else f"<td>{_unbroken(escape(_one_line(cell)))}</td>"
        for column, cell in enumerate(row)
    )
