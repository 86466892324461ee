"""IOR's default output, from 2.10 to the 4.1 development builds, alone or inside a job's log.

A file is walked line by line: a banner begins a run, a `TestID` (or `Summary:`) block begins a test, a
heading gives the columns of the rows below it, the summary table gives IOR's own statistics. Columns always
go by their heading. What lies outside a run, and lines that are nothing of these, is passed over.
"""

import re
from dataclasses import dataclass, field

from service.errors import UnreadableDocument
from service.parsers import ior, ior_run
from service.parsers.document import Document
from service.parsers.ior import Figure, Place, Remarks, Row, Setup, Summary, refusal
from service.parsers.ior_prefix import line_prefix, unprefixed, without_known_prefix
from service.parsers.measurement import (
    MOST_MEASUREMENTS,
    MOST_UNSEEN_REPETITIONS,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    check_amount,
    repetition_doubts,
)
from service.parsers.own_time import began
from service.units import KIB

NAME = "ior-text"

_MARK = ": MPI Coordinated Test of Parallel I/O"
_BANNER = re.compile(r"IOR-([0-9][\w.+-]{0,40})" + re.escape(_MARK))
_END_OF_RUN = re.compile(r"(?:Run finished|Finished)\s*:")
_TEST_STARTED = re.compile(r"Test ([0-9]{1,6}) started:")
_CLIENTS = re.compile(r"([0-9]{1,12}) \(([0-9]{1,12}) per node\)")
_SEGMENTS = re.compile(r"\(([0-9]{1,18}) segments?\)")
_HUMAN = re.compile(r"([0-9]{1,18}) (bytes|KiB|MiB|GiB|TiB)")
_RANK_TIME = re.compile(
    r"Test ([0-9]{1,6}): Iter=([0-9]{1,9}), Task=([0-9]{1,9}), Time=([0-9]{1,12}\.[0-9]{1,12}), (write|read)"
    r" (open start|close stop)"
)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

_ROW_COLUMNS = (
    "bw(MiB/s)", "IOPS", "block(KiB)", "xfer(KiB)", "open(s)", "wr/rd(s)", "close(s)", "total(s)",
)  # fmt: skip
"""In the order of `ior.Halves`."""
_OPTIONAL = range(1, len(_ROW_COLUMNS) - 1)
"""All but bandwidth and total time."""
_OPERATIONS = {"write": Operation.WRITE, "read": Operation.READ}
_ROWS = tuple(_OPERATIONS)
_HEADS = (
    "Finished", "Run finished", "access", '"Command line":', "TestID", "Test ", "Summary", "Options:", "Results:",
    "Operation",
)  # fmt: skip
_NAN = frozenset(("nan", "-nan", "inf", "-inf"))


_DIGITS = frozenset("0123456789")


@dataclass(slots=True)
class _SummaryRow:
    line: int
    cells: dict[str, str]


@dataclass(slots=True)
class _Test:
    """One test as its lines say it."""

    id: int
    line: int
    options: dict[str, tuple[str, int]] = field(default_factory=dict)
    heading: list[str] | None = None
    at: list[int] = field(default_factory=list)
    iter_at: int | None = None
    rows: list[Row] = field(default_factory=list)
    summaries: dict[Operation, _SummaryRow] = field(default_factory=dict)
    incorrect_lines: list[int] = field(default_factory=list)
    fsync_ignored: bool = False
    has_unplaced_bytes: bool = False
    rank_times: dict[tuple[Operation, int], dict[int, list[float | None]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """One run as its lines say it."""

    version: str
    line: int
    command: str = ""
    tests: list[_Test] = field(default_factory=list)
    by_id: dict[int, _Test] = field(default_factory=dict)
    finished: bool = False
    cut_line: int | None = None
    fsync_ignored: bool = False
    warning_lines: list[int] = field(default_factory=list)


def recognises(document: Document) -> bool:
    """Tell whether a line is IOR's banner."""
    return any(_BANNER.search(line) for line in _lines_with_mark(document.text))


def _lines_with_mark(text: str) -> list[str]:
    """Return the lines that hold the banner's words, found without looking at each line."""
    found: list[str] = []
    at = text.find(_MARK)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        # A version is short: of a line of megabytes only the end matters.
        found.append(text[max(start, at - 400) : at + len(_MARK)])
        at = text.find(_MARK, at + 1)
    return found


def _heads_results(text: str) -> bool:
    return (text.startswith("access") and "bw(MiB/s)" in text) or (
        text.startswith("Operation") and "Max" in text and "MiB)" in text
    )


class _Walk:
    """The state of reading a file from top to bottom."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self.remarks = Remarks()
        self.section = "outside"  # outside, head, options, rows, summary
        self.columns: list[str] = []
        self.prefix: re.Pattern[str] | None = None
        self.before = Remarks()
        self.tests = 0

    @property
    def run(self) -> _Run:
        return self.runs[-1]

    def test(self, line: int) -> _Test:
        if not self.run.tests:
            self.add_test(_Test(0, line))
        return self.run.tests[-1]

    def add_test(self, test: _Test) -> None:
        self.tests += 1
        check_amount(self.tests, "tests", MOST_MEASUREMENTS)
        self.run.tests.append(test)
        self.run.by_id[test.id] = test

    def take(self, received: str, number: int) -> None:
        """Take in the next line."""
        banner = _BANNER.search(received) if _MARK in received else None
        if banner:
            self.begin_run(received, banner, number)
            return
        if self.section == "outside":
            text = without_known_prefix(received).strip()
            if _heads_results(text):
                raise refusal(
                    "bad_structure",
                    "heads a table of results outside of any run: the line `IOR-…: MPI Coordinated Test of Parallel "
                    "I/O` above it is missing or damaged, or it is another of IOR's formats; post each run whole.",
                    Place(line=number),
                )
            # IOR checks its options, and warns of them, before it prints the banner.
            ior.note(self.before, text, number)
            return
        text = (received if self.prefix is None else unprefixed(received, self.prefix)).strip()
        if self.section == "rows" and text.startswith(_ROWS) and text[-1] in _DIGITS:
            # Most of a long file is rows; a remark or a sentence may begin as one.
            cells = text.split()
            heading = self.run.tests[-1].heading if self.run.tests else None
            if cells[0] in _OPERATIONS and heading is not None and len(cells) == len(heading):
                self.take_row(cells, number)
                return
        if text and not self.noted(text, number):
            if text.startswith(_HEADS):
                self.take_head(text, number)
            else:
                self.take_content(text, number)

    def take_head(self, text: str, number: int) -> None:
        """Take in a line that may begin something."""
        if _END_OF_RUN.match(text):
            self.structural()
            self.leave_test()
            self.run.finished = True
            self.section = "outside"
        elif text.startswith(("access,bw(MiB/s)", '"Command line":')):
            raise UnreadableDocument(
                "mixed_formats",
                f"Line {number} begins another of IOR's formats within its text output; post each alone.",
                line=number,
            )
        elif text.startswith("TestID") and ":" in text:
            self.begin_test(ior.count(text.partition(":")[2].strip(), "TestID", Place(line=number)), number)
        elif started := _TEST_STARTED.match(text):
            self.begin_test(int(started[1]), number)
        elif text == "Summary:":
            if self.run.tests and self.run.tests[-1].options:
                self.begin_test(self.run.tests[-1].id + 1, number)
            self.test(number)
            self.section = "options"
        elif text == "Options:":
            self.structural()
            self.test(number)
            self.section = "options"
        elif text == "Results:":
            self.section = "rows"
        elif text.startswith("access") and "bw(MiB/s)" in text:
            self.structural()
            self.begin_rows(text, number)
        elif text.startswith("Summary of all tests"):
            self.structural()
            self.section, self.columns = "summary", []
        elif text.startswith("Operation") and "Max" in text:
            self.structural()
            self.section, self.columns = (
                "summary",
                text.replace(" (", "(").replace("Std Dev", "StdDev").split(),
            )
        else:
            self.take_content(text, number)

    def noted(self, text: str, number: int) -> bool:
        """Take in a warning, or a time of one rank."""
        remarks = self.remarks
        if ior.note(remarks, text, number):
            if remarks.fsync_ignored:
                self.test(number).fsync_ignored = True
                remarks.fsync_ignored = False
            self.test(number).incorrect_lines += remarks.incorrect_lines
            self.run.warning_lines += remarks.warning_lines
            remarks.incorrect_lines, remarks.warning_lines = [], []
            return True
        timed = _RANK_TIME.match(text) if text.startswith("Test ") else None
        if timed is None:
            return False
        test = self.run.by_id.get(int(timed[1]))
        if test is not None:
            ranks = test.rank_times.setdefault((_OPERATIONS[timed[5]], int(timed[2])), {})
            ranks.setdefault(int(timed[3]), [None, None])[timed[6] == "close stop"] = float(timed[4])
        return True

    def structural(self) -> None:
        """Note that the run goes on: a row that was cut off before was not cut by the file's end."""
        if self.runs and self.run.cut_line is not None:
            raise refusal(
                "bad_row",
                "is a row of results with columns missing or added; post the output as IOR wrote it.",
                Place(line=self.run.cut_line),
            )

    def begin_run(self, received: str, banner: re.Match[str], number: int) -> None:
        before = received[: banner.start()]
        self.prefix = line_prefix(before)
        self.leave_test()
        run = _Run(version=banner[1], line=number, fsync_ignored=self.before.fsync_ignored)
        run.warning_lines += self.before.warning_lines
        self.runs.append(run)
        check_amount(len(self.runs), "runs", MOST_MEASUREMENTS)
        self.before = Remarks()
        self.remarks = Remarks()
        self.section = "head"

    def leave_test(self) -> None:
        """Note byte counts that belong to no row, as IOR 2.10 prints them."""
        if self.runs and self.run.tests and self.remarks.moved_bytes:
            self.run.tests[-1].has_unplaced_bytes = True
        self.remarks.moved_bytes = []

    def begin_test(self, id: int, number: int) -> None:
        self.structural()
        self.leave_test()
        tests = self.run.tests
        if tests and tests[-1].id == id and not tests[-1].rows and not tests[-1].options:
            return
        if id in self.run.by_id:
            raise refusal(
                "duplicate_test",
                f"begins test {id} of one run a second time; post one whole file.",
                Place(line=number),
            )
        self.add_test(_Test(id, number))
        self.section = "head"

    def begin_rows(self, text: str, number: int) -> None:
        columns = text.split()
        if not {"bw(MiB/s)", "total(s)"} <= set(columns) or len(set(columns)) != len(columns):
            raise refusal(
                "unknown_columns",
                "heads a table of results that lacks bandwidth or total time, or has a column twice; post "
                "IOR's own output.",
                Place(line=number),
            )
        test = self.test(number)
        test.heading = columns
        test.at = [columns.index(column) if column in columns else len(columns) for column in _ROW_COLUMNS]
        test.iter_at = columns.index("iter") if "iter" in columns else None
        self.section = "rows"

    def take_content(self, text: str, number: int) -> None:
        """Take in a line within a section."""
        if self.section == "head" and text.startswith("Command line"):
            key, _, value = text.partition(":")
            if key.rstrip() in ("Command line", "Command line used"):
                self.run.command = self.run.command or value.strip()
        elif self.section == "options":
            # 2.10 and 3.0 write `key = value`, the later ones `key : value`; values may hold either sign.
            colon, equals = text.find(":"), text.find("=")
            key, found, value = text.partition(":" if equals < 0 or 0 <= colon < equals else "=")
            if found:
                self.option(key.strip().lower(), value.strip(), number)
        elif self.section == "rows":
            cells = text.split() if text.startswith(_ROWS) else [""]
            if cells[0] in _OPERATIONS:
                self.take_row(cells, number)
        elif self.section == "summary":
            self.take_summary(text, number)

    def option(self, key: str, value: str, number: int) -> None:
        options = self.test(number).options
        if key in options and options[key][0] != value:
            raise refusal(
                "contradictory_setup",
                f"gives {key[:40]!r} another value than line {options[key][1]}; post one whole file.",
                Place(line=number),
            )
        options.setdefault(key, (value, number))

    def take_row(self, cells: list[str], number: int) -> None:
        test = self.test(number)
        place = Place(line=number)
        if test.heading is None:
            raise refusal(
                "bad_row", "is a row of results without a heading above it; post the whole output.", place
            )
        if len(cells) != len(test.heading):
            if _DIGITS.isdisjoint("".join(cells[1:2])):
                return  # a sentence that begins with "write" or "read"
            self.structural()
            if len(cells) > len(test.heading):
                raise refusal(
                    "bad_row",
                    f"is a row of {len(cells)} columns below a heading of {len(test.heading)}; lines ran "
                    "into each other, so post the output as IOR wrote it.",
                    place,
                )
            self.run.cut_line = number
            return
        self.structural()
        padded = [*cells, None]
        tokens = [padded[at] for at in test.at]
        if "-" in tokens:  # as IOR prints for what does not apply
            tokens = [None if each == "-" and at in _OPTIONAL else each for at, each in enumerate(tokens)]
        values, halves = ior.figures(tokens, _ROW_COLUMNS, place)
        moved = self.remarks.moved_bytes
        if len(moved) > 1:
            raise refusal(
                "bad_row",
                "follows more than one statement of the bytes really moved; a row is missing.",
                place,
            )
        made = ior.row(
            place=place,
            operation=_OPERATIONS[cells[0]],
            values=values,
            halves=halves,
            repetition=None if test.iter_at is None else ior.count(cells[test.iter_at], "iter", place),
            moved_bytes=moved[0][1] if moved else None,
        )
        self.remarks.moved_bytes = []
        test.rows.append(made)

    def take_summary(self, text: str, number: int) -> None:
        cells = text.split()
        operation = _OPERATIONS.get(cells[0])
        if operation is None:
            return
        place = Place(line=number)
        columns = self.columns
        if self.run.version.startswith("2.") and "Mean(s)" in columns and cells[-1] == "EXCEL":
            # With -v it adds columns whose headings hold spaces.
            columns = columns[: columns.index("Mean(s)") + 1]
            cells = cells[: min(len(cells) - 1, len(columns))]
        if len(cells) > len(columns) and columns[-2:] == ["API", "RefNum"]:
            # Old releases print the back end's version behind its name.
            cells = [*cells[: len(columns) - 2], " ".join(cells[len(columns) - 2 : -1]), cells[-1]]
        if len(cells) != len(columns):
            self.structural()
            if len(cells) > len(columns) or not columns:
                raise refusal(
                    "bad_row",
                    "is a row of the summary that does not fit its heading; post the whole output.",
                    place,
                )
            self.run.cut_line = number
            return
        self.structural()
        named: dict[str, str] = {}
        for column, cell in zip(columns, cells, strict=True):
            named.setdefault(column, cell)  # two columns are called StdDev
        test = self.test(number)
        if "Test#" in named:
            id = ior.count(named["Test#"], "Test#", place)
            found = self.run.by_id.get(id)
            if found is None:
                raise refusal(
                    "inconsistent_summary",
                    f"sums up a test {id} that the file does not hold; post the whole file.",
                    place,
                )
            test = found
        earlier = test.summaries.get(operation)
        if earlier is not None and earlier.cells != named:
            raise refusal(
                "inconsistent_summary",
                f"sums up what line {earlier.line} does with other figures; post one whole file of one run.",
                place,
            )
        test.summaries.setdefault(operation, _SummaryRow(number, named))


def _scripted_tests_together(runs: list[_Run]) -> list[_Run]:
    """Join the runs of IOR 2.10 that are tests of one script: it repeats the banner for each."""
    joined: list[_Run] = []
    for run in runs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and run.version.startswith("2.")
            and last.version == run.version
            and not last.finished
            and run.command == last.command
            and ior.command_line(run.command).script
        ):
            for test in run.tests:
                test.id = len(last.tests)
                last.tests.append(test)
            last.finished, last.cut_line = run.finished, run.cut_line
            last.warning_lines += run.warning_lines
            last.fsync_ignored |= run.fsync_ignored
        else:
            joined.append(run)
    return joined


def _human_bytes(text: str) -> int | None:
    """Return a size that IOR prints for people, where that is exact: it rounds to two decimals."""
    found = _HUMAN.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _setup(test: _Test, command: ior.CommandLine, *, fsync_ignored: bool) -> Setup:
    """Return how a test was set up, from its options, its summary and the command line.

    Raises:
        UnreadableDocument: `contradictory_setup`, `bad_number`, `no_io`.
    """
    setup = Setup(
        fsync=command.fsync, fsync_ignored=fsync_ignored or test.fsync_ignored, may_stonewall=command.deadline
    )

    def said(key: str) -> str | None:
        return test.options[key][0] if key in test.options else None

    def counted(key: str) -> int | None:
        if key not in test.options:
            return None
        value, line = test.options[key]
        return ior.count(value, key, Place(line=line))

    setup.api = ior.api_name(said("api") or "")
    ior.refuse_no_io(
        setup,
        Place(line=test.options["api"][1] if "api" in test.options else test.line),
        dry_run=command.dry_run or (said("dryrun") or "0").strip("0") != "",
    )
    setup.file_per_process = ior.access_is_file_per_process(said("access") or "")
    setup.ranks, setup.nodes = counted("tasks"), counted("nodes") or None
    setup.first_node_ranks = counted("clients per node")
    clients = _CLIENTS.match(said("clients") or "")
    if clients:
        setup.ranks, setup.first_node_ranks = int(clients[1]), int(clients[2])
    setup.repetitions = counted("repetitions")
    setup.segments = counted("segments")
    pattern = _SEGMENTS.search(said("pattern") or said("strided") or "")
    if pattern:
        setup.segments = int(pattern[1])
    setup.block_bytes = _human_bytes(said("blocksize") or "")
    setup.transfer_bytes = _human_bytes(said("xfersize") or "")
    setup.aggregate_bytes = _human_bytes(said("aggregate filesize") or "")
    setup.may_stonewall |= (said("stonewallingtime") or "0").strip("0.") != ""
    between = said("ordering inter file")
    if between is not None:
        setup.reordered = between.startswith(("constant", "random")) and not re.search(
            r"constant task offsets? = 0$", between
        )
        if said("task offset") == "0" and between.startswith("constant"):
            setup.reordered = False
    for row in test.summaries.values():
        _merge_summary(setup, row)
    for shown in test.rows[:1]:
        if setup.block_bytes is None and shown.block_kib is not None and shown.block_kib.is_integer():
            setup.block_bytes = int(shown.block_kib) * KIB
        if (
            setup.transfer_bytes is None
            and shown.transfer_kib is not None
            and shown.transfer_kib.is_integer()
        ):
            setup.transfer_bytes = int(shown.transfer_kib) * KIB
    return setup


def _merge_summary(setup: Setup, row: _SummaryRow) -> None:
    place = Place(line=row.line)

    def agreed(column: str, known: int | None) -> int | None:
        if column not in row.cells:
            return known
        value = ior.count(row.cells[column], column, place)
        if known is not None and value != known:
            raise refusal(
                "contradictory_setup",
                f"has {value} for {column} where the test's options say {known}; post one whole file of one "
                "run.",
                place,
            )
        return value

    setup.ranks = agreed("#Tasks", setup.ranks)
    setup.first_node_ranks = agreed("tPN", setup.first_node_ranks)
    setup.repetitions = agreed("reps", setup.repetitions)
    setup.segments = agreed("segcnt", setup.segments)
    setup.block_bytes = agreed("blksiz", setup.block_bytes)
    setup.transfer_bytes = agreed("xsize", setup.transfer_bytes)
    shared = agreed("fPP", None if setup.file_per_process is None else int(setup.file_per_process))
    setup.file_per_process = None if shared is None else shared == 1
    if "API" in row.cells:
        api = ior.api_name(row.cells["API"])
        if setup.api is not None and api != setup.api:
            raise refusal(
                "contradictory_setup",
                "names another API than the test's options; post one whole file.",
                place,
            )
        setup.api = api
        ior.refuse_no_io(setup, place, dry_run=False)
    if setup.reordered is None and "reord" in row.cells:
        setup.reordered = "1" in (row.cells["reord"], row.cells.get("reordrand"))


def _statistics(row: _SummaryRow) -> tuple[Summary, bool]:
    """Return IOR's statistics, and whether it printed nan for one of them."""
    place = Place(line=row.line)
    nan = False

    def shown(column: str) -> Figure | None:
        nonlocal nan
        cell = row.cells.get(column)
        if cell is None:
            return None
        if cell.lower() in _NAN:
            nan = True
            return None
        return ior.figure(cell, column, place)

    made = Summary(
        place,
        largest=shown("Max(MiB)"),
        least=shown("Min(MiB)"),
        mean=shown("Mean(MiB)"),
        seconds_mean=shown("Mean(s)"),
        calls=(shown("Max(OPs)"), shown("Min(OPs)"), shown("Mean(OPs)")),
    )
    return made, nan


def _rank_seconds(test: _Test, operation: Operation, setup: Setup) -> dict[int, dict[int, float]]:
    """Return the ranks' own times by repetition, only where every rank has both ends."""
    whole: dict[int, dict[int, float]] = {}
    for (timed, repetition), ranks in test.rank_times.items():
        if timed is not operation or len(ranks) != setup.ranks:
            continue
        seconds: dict[int, float] = {}
        for rank, (start, stop) in ranks.items():
            if start is None or stop is None or stop < start:
                break
            seconds[rank] = stop - start
        else:
            whole[repetition] = seconds
    return whole


def parse(document: Document) -> Record:
    """Return what an IOR text output holds.

    Raises:
        UnreadableDocument: Nothing in it can be used, or it contradicts itself; with the line where it does.
    """
    walk = _Walk()
    for number, line in document.numbered():
        walk.take(line, number)
    walk.leave_test()
    runs = _scripted_tests_together(walk.runs)
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    unseen = 0
    for at, run in enumerate(runs):
        told = _told(run)
        unseen += sum(test.setup.repetitions or 0 for test in told.tests if not test.rows)
        check_amount(unseen, "repetitions of which it has no rows", MOST_UNSEEN_REPETITIONS)
        ior_run.take(at, told, made, doubts)
    if not made:
        last = runs[-1]
        why = f" (line {last.warning_lines[0]} tells why)" if last.warning_lines else ""
        raise UnreadableDocument(
            "no_results",
            f"No repetition of a write or read had finished when this IOR output ended{why}; post that of a "
            "whole run.",
            line=last.warning_lines[0] if last.warning_lines else last.line,
        )
    if len(runs) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {len(runs)} IOR runs, all of which were read; check that they "
                "measured the same storage, or post them one by one.",
            )
        )
    doubts += repetition_doubts(made)
    ran_at = began(document.text)
    return Record(
        tool="ior",
        tool_version=runs[0].version,
        format=NAME,
        ran_at=ran_at,
        ran_at_zone_assumed=True if ran_at is not None else None,
        measurements=made,
        doubts=ior.merged(doubts, len(made)),
    )


def _told(run: _Run) -> ior_run.Run:
    """Return a run as the formats share it."""
    command = ior.command_line(run.command)
    tests: list[ior_run.Test] = []
    for test in run.tests:
        setup = _setup(test, command, fsync_ignored=run.fsync_ignored)
        tests.append(
            ior_run.Test(
                id=test.id,
                setup=setup,
                rows=test.rows,
                summaries={operation: _statistics(row) for operation, row in test.summaries.items()},
                ranks_seconds={each: _rank_seconds(test, each, setup) for each in _OPERATIONS.values()},
                incorrect_lines=test.incorrect_lines,
                has_unplaced_bytes=test.has_unplaced_bytes,
                time_limit=command.time_limit,
                operations=command.operations,
            )
        )
    return ior_run.Run(
        tests=tests,
        finished=run.finished,
        # Inside IO500 it prints neither summary nor end mark.
        has_end_mark=not command.inside_io500,
        has_rows=not run.version.startswith("2."),
        cut=None if run.cut_line is None else f"line {run.cut_line} is cut off",
        warning_lines=run.warning_lines,
    )
