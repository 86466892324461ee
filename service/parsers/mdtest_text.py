"""mdtest's output, from 1.9 to the 4.1 development builds, alone or inside a job's log.

A launch line begins a run, a line `4 tasks, 2000 files` tells who takes part in the next test, and a `SUMMARY`
heading begins its table, of which the rates of the file phases are read: with `-P` a table of times follows,
with `-Z` there is nothing else. A rate of `0.000` is a phase that was not run.

What the four columns are over differs between releases (see `_fits`). Each iteration's own rate is not printed:
the lines that `-v` adds are those of rank 0, from 4.0 on over its own files alone. So only the rates of a test
whose iterations were all the same are known one by one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.errors import UnreadableDocument
from service.parsers.command_words import command_words
from service.parsers.document import Document
from service.parsers.ior import Place, merged, refusal
from service.parsers.ior_prefix import line_prefix, unprefixed
from service.parsers.measurement import (
    MOST_MEASUREMENTS,
    MOST_UNSEEN_REPETITIONS,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    Repetition,
    Spread,
    add,
    check_amount,
    repetition_doubts,
)
from service.parsers.own_time import began

NAME = "mdtest-text"

_MARK = " was launched with "
_BANNER = re.compile(r"mdtest-([0-9][\w.+-]{0,40})" + _MARK)
_LAUNCHED = re.compile(r"([0-9]{1,12}) total task(?:\(s\)|s?) on ([0-9]{1,12}) node(?:\(s\)|s?)\s*$")
_VERBOSE = re.compile(r"V-[0-9]{1,3}: (?:Rank {1,12}[0-9]{1,9} Line {1,12}[0-9]{1,6} )?")
_TASKS = re.compile(r"([0-9]{1,12}) tasks?, ([0-9]{1,18}) (?:files?(?:/directories)?|directories)$")
_SUMMARY = re.compile(r"SUMMARY(?: (rate|time))?(?: \(in [^()]{1,20}\))?: \(of ([0-9]{1,12}) iterations?\)$")
_COLUMNS = ["Max", "Min", "Mean", "Std", "Dev"]
_ROWS = ("File ", "Directory ", "Tree ")
_DIGITS = frozenset("0123456789")
_FILE_ROW = re.compile(r"File (creation|stat|read|removal)(?=[\s:])")
_LAST_ROW = re.compile(r"Tree removal(?=[\s:])")
_RATE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_WARNING = re.compile(r"(?:ior )?(?:WARNING|ERROR):", re.IGNORECASE)
_FAILED = re.compile(
    r"unable to (?:create|mknode?|open|write|stat|read|remove|unlink|verify write)\b.{0,40}? file\b",
    re.IGNORECASE,
)
_ABORTED = re.compile(r".{0,40}: Process [0-9]{1,9}: FAILED in ")
_WRONG_DATA = re.compile(r"verifying the data|incorrect data", re.IGNORECASE)
_STONEWALL_HIT = re.compile(r"(?:Continue )?stonewall hit ")

_OPERATIONS = {
    "creation": Operation.FILE_CREATE,
    "stat": Operation.FILE_STAT,
    "read": Operation.FILE_READ,
    "removal": Operation.FILE_REMOVE,
}
_MOST_PER_SECOND = 1e12
_MOST_TASKS = 10**8
_ROUNDING = 5e-4
"""Half a unit of the last digit: rates are printed with three decimals."""


# The command line


@dataclass(frozen=True, slots=True)
class _Command:
    """What a command line says; None and False where there is none.

    Attributes:
        known: Whether there was one.
        values: The last value of each option, by its letter; empty for a flag.
        inside_io500: Whether mdtest was called as IO500 calls it: then its output may end after the tables.
    """

    known: bool
    values: Mapping[str, str] = field(default_factory=dict)
    inside_io500: bool = False

    def positive(self, letter: str) -> bool:
        """Tell whether an option has a value other than zero."""
        return any(digit in self.values.get(letter, "") for digit in "123456789")

    @property
    def syncs(self) -> bool | None:
        """Whether the times include making the files durable: each by `-y`, all at the end by `-Y`."""
        return ("y" in self.values or "Y" in self.values) if self.known else None


_WITH_VALUE = frozenset("abdefGiIlnNpsVwWxz")
_FLAGS = frozenset("BcCDEFgkLPrRStTuUvXyYZ")


def _command(text: str) -> _Command:
    """Return what can be told from a command line; what is not understood is passed over."""
    words = command_words(text)
    if words is None:  # a path with a lone quote
        words = [word.strip("'\"") for word in text.split()]
    values: dict[str, str] = {}
    at = 1  # the first word is the program
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], start=1):
            if letter in _WITH_VALUE:
                value = word[place + 1 :].removeprefix("=")
                if not value and at < len(words):
                    value = words[at]
                    at += 1
                values[letter] = value
                break
            if letter not in _FLAGS:
                break
            values[letter] = ""
    return _Command(
        known=bool(words),
        values=values,
        inside_io500="x" in values and any(word.startswith("--saveRankPerformanceDetails") for word in words),
    )


# What the lines say


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    largest: float
    least: float
    mean: float
    deviation: float | None


@dataclass(slots=True)
class _Table:
    """One table of rates, and the line above it that tells how many tasks took part."""

    line: int
    iterations: int
    tasks: int
    width: int = 4
    rows: dict[Operation, _Row] = field(default_factory=dict)
    whole: bool = False


@dataclass(slots=True)
class _Run:
    """One run as its lines say it."""

    version: str
    line: int
    launched: int
    nodes: int
    command: _Command = _Command(known=False)
    command_line: int | None = None
    first_node_tasks: int | None = None
    tasks: int | None = None
    announced: int = 0
    tables: list[_Table] = field(default_factory=list)
    times_line: int | None = None
    finished: bool = False
    cut_line: int | None = None
    warning_lines: list[int] = field(default_factory=list)
    dirty_lines: list[int] = field(default_factory=list)
    failed_lines: list[int] = field(default_factory=list)
    wrong_data_lines: list[int] = field(default_factory=list)
    opens_only_line: int | None = None
    stonewall_hit: bool = False


def recognises(document: Document) -> bool:
    """Tell whether a line is mdtest's launch line, whole or damaged."""
    text = document.text
    at = text.find(_MARK)
    while at >= 0:
        if _BANNER.search(text, max(0, at - 60), at + len(_MARK)):
            return True
        at = text.find(_MARK, at + 1)
    return False


# Reading line by line


class _Walk:
    """The state of reading a file from top to bottom."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self.prefix: re.Pattern[str] | None = None
        self.tables = self.iterations = 0
        self.section = "outside"  # outside, head, table, times
        self.headed = False

    @property
    def run(self) -> _Run:
        return self.runs[-1]

    def take(self, received: str, number: int) -> None:
        """Take in the next line."""
        banner = _BANNER.search(received) if _MARK in received else None
        if banner:
            self.begin_run(received, banner, number)
            return
        if self.section == "outside":
            return
        line = unprefixed(received, self.prefix).strip()
        verbose = _VERBOSE.match(line) if line.startswith("V-") else None
        text = line[verbose.end() :].strip() if verbose else line
        if not text:
            return
        if self.section == "table" and text.startswith(_ROWS):
            self.take_row(text, number)
            return
        if self.noted(text, number):
            return
        tasks = _TASKS.match(text) if text[0] in _DIGITS else None
        if summary := _SUMMARY.match(text):
            self.begin_table(summary, number)
        elif text.startswith("SUMMARY"):
            raise refusal(
                "unknown_columns",
                "heads a summary of mdtest that is not known; post the whole output.",
                _at(number),
            )
        elif text.startswith("-- finished at"):
            self.structural()
            self.run.finished = True
            self.section = "outside"
        elif tasks:
            self.announce(tasks, number)
        elif text.startswith("Command line used:"):
            if self.run.command_line is None:
                self.run.command, self.run.command_line = _command(text.partition(":")[2]), number
        elif text.startswith("Nodemap:"):
            self.map_nodes(text.partition(":")[2].strip(), number)
        elif self.section == "table":
            self.take_row(text, number)

    def begin_run(self, received: str, banner: re.Match[str], number: int) -> None:
        launched = _LAUNCHED.match(received, banner.end())
        if launched is None:
            raise refusal(
                "bad_row",
                "is mdtest's launch line, and does not say on how many tasks and nodes; post the original.",
                _at(number),
            )
        tasks, nodes = int(launched[1]), int(launched[2])
        if not 0 < nodes <= tasks <= _MOST_TASKS:
            raise refusal(
                "bad_number", f"launches {tasks} tasks on {nodes} nodes; post the original.", _at(number)
            )
        self.prefix = line_prefix(received[: banner.start()])
        check_amount(len(self.runs) + 1, "runs", MOST_MEASUREMENTS)
        self.runs.append(_Run(version=banner[1], line=number, launched=tasks, nodes=nodes))
        self.section = "head"

    def announce(self, said: re.Match[str], number: int) -> None:
        """Take in how many tasks take part in the next test."""
        self.structural()
        run, tasks = self.run, int(said[1])
        run.tasks = tasks
        run.announced += 1
        self.section = "head"
        given = run.command.values
        may_be_fewer = not run.command.known or "f" in given or "l" in given
        if not 0 < tasks <= run.launched or (tasks < run.launched and not may_be_fewer):
            raise refusal(
                "contradictory_setup",
                f"tells of {tasks} tasks where {run.launched} were launched; post one whole file.",
                _at(number),
            )
        items = given.get("n", "")
        if (
            run.announced == 1
            and items.isascii()
            and items.isdigit()
            and len(items) < 19
            and not given.keys() & set("bISz")
            and int(said[2]) != tasks * int(items)
        ):
            raise refusal(
                "contradictory_setup",
                f"tells of {said[2]} files where {tasks} tasks have {items} each; post one whole file.",
                _at(number),
            )

    def map_nodes(self, shown: str, number: int) -> None:
        """Take in which tasks share the node of the first one."""
        run = self.run
        if len(shown) != run.launched or shown.strip("01"):
            return  # cut short, or of another kind: it says nothing then
        run.first_node_tasks = shown.count("1")
        if (run.first_node_tasks == run.launched) is not (run.nodes == 1):
            raise refusal(
                "contradictory_setup",
                f"maps the tasks to other nodes than the {run.nodes} of the launch line; post the original file.",
                _at(number),
            )

    def noted(self, text: str, number: int) -> bool:
        """Take in a warning, or that a time limit was met."""
        run = self.run
        if "stonewall" in text and _STONEWALL_HIT.match(text):
            run.stonewall_hit = True
            return True
        if "FAILED" in text and _ABORTED.match(text):
            run.failed_lines.append(number)
            return True
        if ":" not in text or not _WARNING.match(text):
            return False
        if _WRONG_DATA.search(text):
            run.wrong_data_lines.append(number)
        elif "Read bytes is 0" in text:
            run.opens_only_line = run.opens_only_line or number
        elif _FAILED.search(text):
            run.failed_lines.append(number)
        elif "unable to create tree directory" in text:
            run.dirty_lines.append(number)
        else:
            run.warning_lines.append(number)
        return True

    def structural(self) -> None:
        """Note that the run goes on: a row that was cut off before was not cut by the file's end."""
        if self.run.cut_line is not None:
            raise refusal(
                "bad_row",
                "is a row of rates with columns missing; post the output as mdtest wrote it.",
                _at(self.run.cut_line),
            )

    def begin_table(self, summary: re.Match[str], number: int) -> None:
        self.structural()
        run = self.run
        # Old releases head both kinds of table alike.
        if summary[1] == "time" or (summary[1] is None and "Z" in run.command.values):
            run.times_line = run.times_line or number
            self.section = "times"
            return
        iterations = int(summary[2])
        if not 0 < iterations <= MOST_UNSEEN_REPETITIONS:
            raise refusal("bad_number", f"sums up {iterations} iterations; post the original.", _at(number))
        self.tables += 1
        self.iterations += iterations
        check_amount(self.tables, "tables", MOST_MEASUREMENTS)
        check_amount(self.iterations, "iterations", MOST_UNSEEN_REPETITIONS)
        run.tables.append(_Table(number, iterations, run.launched if run.tasks is None else run.tasks))
        self.section, self.headed = "table", False

    def take_row(self, text: str, number: int) -> None:
        table = self.run.tables[-1]
        if text.startswith("Operation"):
            words = text.replace("per Rank:", " ").replace("per Iteration:", " ").split()[1:]
            if words not in (_COLUMNS, [*_COLUMNS[:3], *_COLUMNS]):
                raise refusal(
                    "unknown_columns",
                    "heads columns that no known mdtest writes; post the original.",
                    _at(number),
                )
            # With statistics by rank, three columns of those stand before the four over iterations.
            table.width, self.headed = (4 if words == _COLUMNS else 7), True
            return
        row = _FILE_ROW.match(text)
        if row is None:
            if _LAST_ROW.match(text):
                self.structural()
                table.whole = True
            return
        self.structural()
        if not self.headed:
            raise refusal(
                "unknown_columns",
                "is a row of rates without a heading above it; post the whole output.",
                _at(number),
            )
        cells = text[row.end() :].strip(" \t:").split()
        if len(cells) < table.width or _lacks_digits(cells[-1]):
            self.run.cut_line = number
            return
        if len(cells) > table.width:
            raise refusal(
                "bad_row",
                f"is a row of {len(cells)} columns below a heading of {table.width}; lines ran into each "
                "other, so post the output as mdtest wrote it.",
                _at(number),
            )
        operation = _OPERATIONS[row[1]]
        if operation in table.rows:
            raise refusal(
                "duplicate_row",
                "is the second row of its kind in one table; post one whole file.",
                _at(number),
            )
        table.rows[operation] = _row(cells[-4:], number)


def _at(number: int) -> Place:
    return Place(line=number)


def _lacks_digits(token: str) -> bool:
    """Tell whether a number was cut within its three decimals."""
    digits = token.replace(".", "")
    return digits != "" and _DIGITS.issuperset(digits) and len(token.partition(".")[2]) < 3


def _rate(token: str, number: int) -> float:
    if not _RATE.fullmatch(token) or float(token) > _MOST_PER_SECOND:
        raise refusal(
            "bad_number",
            f"has {token[:30]!r} for a rate, which is no plain decimal number within reason; post the output as "
            "mdtest wrote it.",
            _at(number),
        )
    return float(token)


def _row(cells: Sequence[str], number: int) -> _Row:
    largest, least, mean = (_rate(cell, number) for cell in cells[:3])
    # Some releases divide by the iterations less one, which for one of them gives nan.
    deviation = None if cells[3].lower().strip("-") == "nan" else _rate(cells[3], number)
    if least > largest or (largest > 0 and not 0 < least <= mean + 2 * _ROUNDING <= largest + 4 * _ROUNDING):
        raise refusal(
            "inconsistent_summary",
            "has a mean that does not lie between its smallest and largest rate, or a rate of zero beside "
            "others; the file was changed or damaged, so post the original.",
            _at(number),
        )
    if largest == 0 and (least or mean or deviation):
        raise refusal(
            "inconsistent_summary", "has zero for its largest rate, and not for the others.", _at(number)
        )
    return _Row(number, largest, least, min(max(mean, least), largest), deviation)


# From a run to measurements


def _populations(run: _Run, table: _Table) -> list[tuple[int, bool]]:
    """Return over how many values a release's columns may be, and whether the deviation is a sample's.

    From 4.0 on they are over the iterations, each at the pace of its slowest rank; before 3.3 at that of its
    fastest, or, without barriers (`-B`), over what each rank saw; in 3.3 always the latter.
    """
    by_rank = table.iterations * table.tasks
    if run.version.startswith(("1.", "2.")):
        return (
            [(table.iterations, False), (by_rank, False)]
            if "B" in run.command.values
            else [(table.iterations, False)]
        )
    if run.version.startswith("3."):
        return [(table.iterations, False), (table.iterations, True), (by_rank, False)]
    return [(table.iterations, True)]


def _fits(row: _Row, count: int, *, sample: bool) -> bool:
    """Tell whether so many values can have these statistics, as far as the printed digits go."""
    range_ = row.largest - row.least
    slack = 2 * _ROUNDING + 1e-9 * row.largest
    if count == 1:
        return range_ <= slack and (row.deviation or 0) <= slack
    middle = (row.largest + row.least) / 2
    if count == 2:
        fewest = most = 2 * (range_ / 2) ** 2
        if abs(row.mean - middle) > slack:
            return False
    else:
        # The values between the ends have this mean; the deviation is least when they all are that.
        inner = (count * row.mean - row.largest - row.least) / (count - 2)
        reach = slack * (1 + 2 / (count - 2))
        if not row.least - reach <= inner <= row.largest + reach:
            return False
        ends = (row.largest - row.mean) ** 2 + (row.least - row.mean) ** 2
        fewest = ends + (count - 2) * (inner - row.mean) ** 2
        most = fewest if count == 3 else count * max(0.0, (row.largest - row.mean) * (row.mean - row.least))
        most = max(fewest, most)
    if row.deviation is None:
        return True
    divisor = count - 1 if sample else count
    slack *= 2 + math.sqrt(2 * count)
    return math.sqrt(fewest / divisor) - slack <= row.deviation <= math.sqrt(most / divisor) + slack


def _check(row: _Row, run: _Run, table: _Table) -> None:
    if not any(_fits(row, count, sample=sample) for count, sample in _populations(run, table)):
        raise refusal(
            "inconsistent_summary",
            f"has statistics that {table.iterations} iteration{'' if table.iterations == 1 else 's'} cannot "
            "have; the file was changed or damaged, so post the original.",
            _at(row.line),
        )


def _refuse_what_is_no_test(run: _Run) -> None:
    if run.command_line is None:
        return
    place = _at(run.command_line)
    if run.command.values.get("a", "").strip().upper() == "DUMMY":
        raise refusal(
            "no_io", "names the back end DUMMY, which performs no I/O; measure with -a POSIX.", place
        )
    if "S" in run.command.values:
        raise refusal(
            "shared_files",
            "says -S: all tasks open the same files, so that the rates are not those of files created; run "
            "without -S.",
            place,
        )


def _take(at: int, run: _Run, made: list[Measurement]) -> None:
    """Add the measurements of a run."""
    for test, table in enumerate(run.tables):
        nodes: int | None = run.nodes
        first_node_tasks = table.tasks if run.nodes == 1 else run.first_node_tasks
        if table.tasks != run.launched and run.nodes > 1:
            nodes = None  # on which nodes the fewer tasks of this test ran is not said
        even = nodes is not None and first_node_tasks is not None and nodes * first_node_tasks == table.tasks
        for operation, row in table.rows.items():
            if row.largest == 0:
                continue
            _check(row, run, table)
            alike = row.largest == row.least == row.mean
            # Of one or two values the mean is the median, if the columns are over the iterations at all.
            by_iteration = [count for count, _ in _populations(run, table)] == [table.iterations]
            tells_median = alike or (by_iteration and table.iterations == 2)
            add(
                made,
                Measurement(
                    run=at,
                    test=test,
                    operation=operation,
                    api=run.command.values.get("a", "").strip() or None,
                    ranks=table.tasks,
                    nodes=nodes,
                    ranks_per_node=first_node_tasks if even else None,
                    fsync=run.command.syncs if operation is Operation.FILE_CREATE else None,
                    repetitions_requested=table.iterations,
                    repetitions=[Repetition(per_second=row.mean if alike else None)] * table.iterations,
                    per_second=Spread(
                        mean=row.mean,
                        median=row.mean if tells_median else None,
                        min=row.least,
                        max=row.largest,
                    ),
                ),
            )


def _lines_in_words(lines: Sequence[int]) -> str:
    return f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines, the first of them line {lines[0]}"


def _run_doubts(run: _Run) -> list[Doubt]:
    """Return the doubts about all that a run measured."""
    doubts: list[Doubt] = []

    def doubt(code: DoubtCode, message: str) -> None:
        doubts.append(Doubt(code=code, message=message))

    lacks = _lacks(run)
    if lacks is not None:
        doubt(
            DoubtCode.INCOMPLETE_RUN,
            f"The run is incomplete: {lacks}; let it run to its end and post the whole output.",
        )
    if run.failed_lines:
        doubt(
            DoubtCode.INCOMPLETE_RUN,
            f"mdtest could not do what it counted as done ({_lines_in_words(run.failed_lines)}), so the rates are "
            "not those of files; cure the cause and run it again.",
        )
    if run.wrong_data_lines:
        doubt(
            DoubtCode.DATA_VERIFICATION_FAILED,
            f"mdtest found wrong data when it read the files back (line {run.wrong_data_lines[0]}); find the "
            "cause before any figure of this storage is trusted.",
        )
    if run.dirty_lines:
        doubt(
            DoubtCode.IOR_WARNING,
            f"mdtest found directories of an earlier run in its way ({_lines_in_words(run.dirty_lines)}); "
            "start in an empty directory.",
        )
    if run.warning_lines:
        doubt(
            DoubtCode.IOR_WARNING,
            f"mdtest printed warnings ({_lines_in_words(run.warning_lines)}); read them, and repeat the run if "
            "the set-up was not as meant.",
        )
    return doubts


def _lacks(run: _Run) -> str | None:
    """Return what a run lacks, as the end of a sentence."""
    if run.cut_line is not None:
        return f"line {run.cut_line} is cut off"
    if not run.tables and run.times_line is None:
        return f"the one that begins in line {run.line} has no table of results"
    for table in run.tables:
        if not table.whole:
            return f"the table of line {table.line} has no end"
        if 0 < len(table.rows) < len(_OPERATIONS):
            return f"the table of line {table.line} lacks rows"
    if run.tables and run.announced > len(run.tables):
        return "a test has no table of results"
    if not run.finished and not run.command.inside_io500:
        return "the line with which mdtest says that it finished is missing"
    return None


def _own_doubts(measurement: Measurement, run: _Run) -> list[Doubt]:
    """Return the doubts about one measurement that follow from how the test was set up."""
    doubts: list[Doubt] = []

    def doubt(code: DoubtCode, message: str) -> None:
        doubts.append(Doubt(code=code, message=message))

    if measurement.operation is Operation.FILE_CREATE:
        if not run.command.known:
            doubt(
                DoubtCode.FSYNC_UNKNOWN,
                "The command line is missing, so that nothing tells whether the files were made durable; post "
                "the whole output.",
            )
        elif not run.command.syncs and run.command.positive("w"):
            doubt(
                DoubtCode.NO_FSYNC,
                "The files were written without -y, so that their data may have ended in the page cache; repeat "
                "it with -y.",
            )
        if run.command.positive("W") or run.stonewall_hit:
            doubt(
                DoubtCode.STONEWALLED,
                "A time limit (-W) ended the creation before all files were made; repeat without -W."
                if run.stonewall_hit
                else "The creation had a time limit (-W), so the files made may be fewer than planned; repeat "
                "without -W.",
            )
    if measurement.operation is Operation.FILE_READ:
        if run.opens_only_line is not None:
            doubt(
                DoubtCode.IOR_WARNING,
                f"mdtest warned that its read only opened and closed the files (line {run.opens_only_line}); "
                "give -e to read bytes.",
            )
        if measurement.nodes == 1:
            doubt(
                DoubtCode.CACHED_READ,
                "The read ran on one node, which may hold in memory what it wrote; read from other nodes.",
            )
        elif not run.command.positive("N") and (run.command.positive("e") or not run.command.known):
            doubt(
                DoubtCode.CACHED_READ,
                "Each task read its own files (no -N), which its node may hold in memory; repeat with -N set to "
                "the tasks of a node.",
            )
    if measurement.nodes is None:
        doubt(
            DoubtCode.UNKNOWN_TOPOLOGY,
            "Fewer tasks took part than were launched, and the file does not say on how many nodes; launch as "
            "many as take part.",
        )
    elif measurement.ranks_per_node is None and run.first_node_tasks is not None:
        doubt(
            DoubtCode.UNEVEN_NODES,
            f"{measurement.ranks} tasks ran on {measurement.nodes} nodes whose first had "
            f"{run.first_node_tasks}; run the same number on every node.",
        )
    return doubts


def _nothing_measured(runs: Sequence[_Run]) -> UnreadableDocument:
    """Return the error for a file of which no rate can be taken."""
    times = next((run.times_line for run in runs if run.times_line is not None and not run.tables), None)
    if times is not None:
        return refusal(
            "no_results",
            "heads a table of times, and there is none of rates; run mdtest without -Z (-P prints both).",
            _at(times),
        )
    tables = [table for run in runs for table in run.tables]
    if tables:
        detail = (
            "heads a table in which every file phase is 0.000: none was run."
            if any(table.rows for table in tables)
            else "heads a table without a whole row of a file phase; run mdtest on files (-F) to its end."
        )
        return refusal("no_results", detail, _at(tables[0].line))
    last = runs[-1]
    return refusal(
        "no_results",
        "is of an mdtest run that ended before its SUMMARY, so nothing was measured; post the output of a whole "
        "run.",
        _at(next(iter(last.failed_lines + last.warning_lines), last.line)),
    )


def parse(document: Document) -> Record:
    """Return what an mdtest output holds.

    Raises:
        UnreadableDocument: Nothing in it can be used, or it contradicts itself; with the line where it does.
    """
    walk = _Walk()
    for number, line in document.numbered():
        walk.take(line, number)
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    unsynced: list[Doubt] = []
    for at, run in enumerate(walk.runs):
        _refuse_what_is_no_test(run)
        first = len(made)
        _take(at, run, made)
        for place in range(first, len(made)):
            for each in _own_doubts(made[place], run):
                # Of a create rate it counts only where it names the measurement.
                kind = unsynced if each.code in (DoubtCode.NO_FSYNC, DoubtCode.FSYNC_UNKNOWN) else doubts
                kind.append(each.about(place))
        about: Sequence[int | None] = range(first, len(made)) if len(made) > first else [None]
        doubts += [each.about(place) for each in _run_doubts(run) for place in about]
    if not made:
        raise _nothing_measured(walk.runs)
    if len(walk.runs) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {len(walk.runs)} mdtest runs, all of which were read; check that they "
                "measured the same storage, or post them one by one.",
            )
        )
    doubts += repetition_doubts(made)
    ran_at = began(document.text)
    return Record(
        tool="mdtest",
        tool_version=walk.runs[0].version,
        format=NAME,
        ran_at=ran_at,
        ran_at_zone_assumed=True if ran_at is not None else None,
        measurements=made,
        doubts=[*unsynced, *merged(doubts, len(made))],
    )
