"""A report as Markdown, CSV and HTML: complete, and safe with names and words from outside."""

import csv
import html.parser
import io
from dataclasses import dataclass, field

import pytest

from service.judgement import sentences
from service.judgement.outline import OUTCOMES, outline
from service.judgement.renderings import CSV_COLUMNS, comma_separated, markdown, page
from service.judgement.report import GapReport, Outcome, StorageRuns
from service.parsers.measurement import DcpOp, Doubt, DoubtCode, Operation
from service.parsers.run import Condition
from service.sizing.sizing import TargetId
from tests.judgement.examples import SHARD_BYTES, async_scenario, dcp, ior, mdtest, report_on, run, scenario

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://evil.example","click")',
    "+1+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "＝1",
    "a | b",
    "# heading\n\n- item\n| a | b |",
    "[click](javascript:alert(1))",
    "![x](http://evil.example/x.png)",
    "www.evil.example http://evil.example a@evil.example",
    "`code` *bold* __x__ ~~y~~ &lt; $x$",
    "line\u2028separator\x0bvertical",
    'a,b"c\nd',
    "ünï 🌙",
]


def _hostile(text: str) -> GapReport:
    """A report in which everything that can come from outside is this text."""
    told = Doubt(code=DoubtCode.IOR_WARNING, measurement=0, message=text)
    void = Doubt(code=DoubtCode.INCOMPLETE_RUN, message=text)
    return report_on(
        scenario(),
        run(number=1, measurements=[ior(80.0)], doubts=[told], label=text),
        run(number=2, measurements=[mdtest(1.0)], doubts=[void], label=text),
    )


def _sync_report() -> GapReport:
    save = dcp(
        DcpOp.SAVE,
        seconds=70.0,
        bytes_total=6_480_000_000_000,
        checkpoint_bytes=6_480_000_000_000,
        largest_rank_bytes=SHARD_BYTES,
        blocked_seconds=66.0,
    )
    return report_on(
        scenario(),
        run(number=1, measurements=[ior(0.8, nodes=16, operation=Operation.READ), mdtest(200.0)]),
        run(number=2, operations=[save]),
    )


@dataclass
class Read(html.parser.HTMLParser):
    """What an HTML page holds, once its tags are found to close in order."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.waiting.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.waiting.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.waiting:
            self.texts.append(data.replace("\xa0", " "))


def _read(text: str) -> Read:
    found = Read()
    found.feed(text)
    found.close()
    assert found.waiting == []
    return found


def test_a_page_says_what_the_report_says() -> None:
    report = _sync_report()
    text = "\n".join(_read(page(report, name="llama")).texts)
    assert "Gap report: llama" in text
    assert report.verdict.sentence in text
    for target in report.targets:
        assert sentences.capitalised(sentences.NAMES[target.id]) in text
        assert target.reason in text
    for item in report.checklist:
        assert item.title in text
        assert item.sentence in text
    for each in report.consequences.each:
        assert each.sentence in text
    for words in (
        "92.57 GB/s",
        "+116.7 %",
        "16 (0.7812 %)",
        "$11,366,470",
        "Run 00000000-0000-0000-0000-000000000002.",
    ):
        assert words in text, words


def test_a_page_stands_alone_and_runs_nothing() -> None:
    found = _read(page(_sync_report(), name="llama"))
    assert set(found.tags) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "div", "table", "thead",
        "tbody", "tr", "th", "td", "footer",
    }  # fmt: skip
    assert {name for name, _ in found.attributes} == {"lang", "charset", "name", "content", "class", "scope"}
    assert "url(" not in page(_sync_report(), name="llama")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_comes_from_outside_is_text_in_a_page(text: str) -> None:
    plain, found = _read(page(_hostile("harmless"), name="harmless")), _read(page(_hostile(text), name=text))
    assert (found.tags, found.attributes) == (plain.tags, plain.attributes)
    assert " ".join(text.split()) in "\n".join(found.texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_comes_from_outside_makes_no_lines_and_no_markup_in_markdown(text: str) -> None:
    plain = markdown(_hostile("harmless"), name="harmless").split("\n")
    found = markdown(_hostile(text), name=text).split("\n")
    assert len(found) == len(plain)
    for before, after in zip(plain, found, strict=True):
        assert _unescaped(after, "|") == _unescaped(before, "|")
        for mark in "`*[]<>~$&":
            assert _unescaped(after, mark) == 0, (mark, after)
        assert "://" not in after.replace("\\:", "")
        assert "www." not in after


def _unescaped(line: str, mark: str) -> int:
    return line.replace("\\\\", "").replace(f"\\{mark}", "").count(mark)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_comes_from_outside_is_no_formula_in_csv(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(comma_separated(_hostile(text), name=text))))
    assert len(rows) == 10
    numbers = {
        "scenario_revision", "value", "measured", "measured_min", "measured_max", "ratio", "margin_fraction", "nodes",
        "nodes_fraction", "waste_usd_per_year", "goodput_fraction",
    }  # fmt: skip
    for row in rows:
        assert None not in row
        for name, cell in row.items():
            if name in numbers:
                assert cell == "" or float(cell) is not None
            else:
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝")), (name, cell)
                assert "\n" not in cell
        assert row["scenario"].removeprefix("'") == " ".join(text.split())


def test_csv_has_a_row_for_each_target_with_its_own_figures() -> None:
    report = _sync_report()
    rows = list(csv.DictReader(io.StringIO(comma_separated(report, name="llama"))))
    assert list(rows[0]) == list(CSV_COLUMNS)
    assert [row["target"] for row in rows] == [target.id for target in report.targets]
    write = rows[0]
    assert {
        name: write[name] for name in ("scenario", "storage_label", "status", "unit", "basis", "statistic")
    } == {
        "scenario": "llama",
        "storage_label": "pfs-a",
        "status": "missed",
        "unit": "gb_per_second",
        "basis": "full_scale",
        "statistic": "mean",
    }
    assert float(write["measured"]) == pytest.approx(6480 / 70)
    assert float(write["waste_usd_per_year"]) == pytest.approx(648_031.34, abs=0.01)
    assert float(write["goodput_fraction"]) < 0  # a number, though it begins like a formula
    load = next(row for row in rows if row["target"] == TargetId.LOAD_SECONDS)
    assert (load["measured"], load["run_ids"], load["chosen_because"]) == ("", "", "")


def test_every_kind_of_report_has_an_outline() -> None:
    reports = [
        report_on(scenario()),
        report_on(scenario(prices=None, restore=None)),
        report_on(async_scenario(), run(measurements=[ior(6.3)], label=None)),
        report_on(scenario(), run(measurements=[ior(9.0)])),  # no time to train
        report_on(scenario(), run(measurements=[ior(1.0, nodes=None)])),
        report_on(
            scenario(),
            run(measurements=[ior(200.0, nodes=4096)]),
            statistic="min",
            conditions=[Condition.DEGRADED],
        ),
        report_on(scenario(), run(number=3, measurements=[ior(99.0)]), run_ids=[run(number=3).id]),
    ]
    for report in reports:
        told = outline(report, name="any")
        assert told.outcome is report.verdict.outcome
        for section in told.sections:
            assert section.paragraphs or section.table
            for row in section.table.rows if section.table else ():
                assert len(row) == len(section.table.columns if section.table else ())
                assert all(isinstance(cell, str) and cell for cell in row)
        for rendering in (markdown, page, comma_separated):
            assert rendering(report, name="any") == rendering(report, name="any") != ""
    assert set(OUTCOMES) == set(Outcome)
    collided = markdown(reports[2], name="any")
    assert "Saves now collide" in collided
    assert "| Storage | without a label |" in collided
    stuck = markdown(reports[3], name="any")
    assert "For the measured stall the best interval is 3,968 s." in stuck
    assert "| Only these runs | 00000000-0000-0000-0000-000000000003 |" in markdown(reports[6], name="any")


def test_the_storages_that_a_report_leaves_out_are_named() -> None:
    report = report_on(scenario(), run(measurements=[ior(99.0)]))
    runs = [
        StorageRuns(storage_label="pfs-a", runs=1),
        StorageRuns(runs=2),
        StorageRuns(storage_label="b|b", runs=3),
    ]
    told = markdown(report.model_copy(update={"storages": runs}), name="any")
    assert "| Storages left out, with their runs | without a label (2), b\\|b (3) |" in told
    many = [StorageRuns(storage_label=f"s{number}", runs=1) for number in range(12)]
    assert "s9 (1) and 2 more |" in markdown(report.model_copy(update={"storages": many}), name="any")
    assert "left out" not in markdown(report, name="any")
