"""IOR's CSV output (`-O summaryFormat=CSV`), as IOR 4 writes it and the 3.4 development builds did.

It says nothing of API, access, nodes, segments or fsync, and has no end mark: these stay unknown. A heading
begins each test of a script. IOR 3.2 and 3.3 printed no results in this format.
"""

import re

from service.errors import UnreadableDocument
from service.parsers import ior
from service.parsers.document import Document
from service.parsers.ior import Place, Remarks, Row, Setup, refusal
from service.parsers.ior_log import LogLines, is_log_line
from service.parsers.measurement import (
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    add,
    repetition_doubts,
)
from service.units import KIB

NAME = "ior-csv"

_HEADING = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s)"
_HEADINGS = (f"{_HEADING},numTasks,iter", f"{_HEADING},iter")
_FIGURES = _HEADING.replace("Latency,", "").split(",")[1:]
"""In the order of `ior.Halves`."""
_LATENCY = 3
_OPERATIONS = {"write": Operation.WRITE, "read": Operation.READ}
_ROWS = tuple(_OPERATIONS)
_RUN_TOGETHER = re.compile(
    r"\s{0,8}3\.[23]\.[0-9]{1,3}(?:\+\w{1,10})?[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] "
)
"""How the one line of 3.2 and 3.3 begins: version and date without a space."""


def recognises(document: Document) -> bool:
    """Tell whether a line is the CSV's heading, or the document is what IOR 3.2 and 3.3 wrote instead."""
    text = document.text
    if "MPI Coordinated Test" in text:
        return False  # text output, which refuses to be mixed
    return (
        text.lstrip().startswith(_HEADING)
        or f"\n{_HEADING}" in text[:64_000]
        or bool(_RUN_TOGETHER.match(text) and "summaryFormat=CSV" in text)
    )


def _row(line: str, columns: list[str], place: Place) -> tuple[Row, int | None] | None:
    """Return a row and its number of tasks; None for a phase that is not read.

    Raises:
        UnreadableDocument: `bad_row` or `bad_number`.
    """
    cells = line.split(",")
    if len(cells) != len(columns):
        raise refusal(
            "bad_row",
            f"has {len(cells)} columns below a heading of {len(columns)}; post the CSV as IOR wrote it.",
            place,
        )
    operation = _OPERATIONS.get(cells[0])
    if operation is None:
        return None
    values, halves = ior.figures([*cells[1:_LATENCY], *cells[_LATENCY + 1 : 10]], _FIGURES, place)
    tasks = ior.count(cells[10], "numTasks", place) if columns[10] == "numTasks" else None
    made = ior.row(
        place=place,
        operation=operation,
        values=values,
        halves=halves,
        repetition=ior.count(cells[-1], "iter", place),
    )
    return made, tasks


def parse(document: Document) -> Record:
    """Return what IOR's CSV output holds.

    Raises:
        UnreadableDocument: `unsupported_version`, `bad_row`, `bad_number`, `no_results`, and what the
            checks of the rows find; always with the line.
    """
    if _RUN_TOGETHER.match(document.text):
        raise UnreadableDocument(
            "unsupported_version",
            "The CSV of IOR 3.2 and 3.3 holds no results; post its text output, or use IOR 4.",
            line=1,
        )
    tests: list[list[tuple[Row, int | None]]] = []
    columns: list[str] = []
    remarks = Remarks()
    log_lines = LogLines()
    cut_line: int | None = None
    last = document.text.count("\n") + 1
    for number, received in document.numbered():
        line = received.strip()
        if not line:
            continue
        place = Place(line=number)
        if line.startswith(_HEADING):
            if line not in _HEADINGS:
                raise refusal(
                    "unknown_columns", "heads columns that no known IOR writes; post IOR's own file.", place
                )
            columns = line.split(",")
            tests.append([])
        elif not columns or (not line.startswith(_ROWS) and is_log_line(line)):
            ior.note(remarks, line, number)
            log_lines.take(number)
        elif number == last and line.count(",") < len(columns) - 1:
            cut_line = number  # the file ends without a newline, within a row
        elif (read := _row(line, columns, place)) is not None:
            tests[-1].append(read)
    return _record(tests, remarks, log_lines, cut_line)


def _record(
    tests: list[list[tuple[Row, int | None]]], remarks: Remarks, log_lines: LogLines, cut_line: int | None
) -> Record:
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    for test, read in enumerate(tests):
        counts: dict[Operation, int] = {}
        gaps = False
        for operation in (Operation.WRITE, Operation.READ):
            of_operation = [(row, tasks) for row, tasks in read if row.operation is operation]
            if not of_operation:
                continue
            rows, gap = ior.in_order([row for row, _ in of_operation])
            gaps |= gap
            counts[operation] = len(rows)
            setup = _setup(of_operation)
            new, found = ior.measurement(run=0, test=test, operation=operation, setup=setup, rows=rows)
            found += ior.setup_doubts(operation, setup, tells_setup=False)
            doubts += [each.about(len(made)) for each in found]
            add(made, new)
        if gaps or len(set(counts.values())) > 1 or (cut_line is not None and test == len(tests) - 1):
            doubts += [
                Doubt(
                    code=DoubtCode.INCOMPLETE_RUN,
                    measurement=at,
                    message="Rows are missing: repetitions were skipped, the file is cut off, or one "
                    "operation has fewer rows than the other; let the run finish and post the whole file.",
                )
                for at in range(len(made) - len(counts), len(made))
            ]
    if not made:
        raise UnreadableDocument(
            "no_results", "The CSV has no whole row of a write or read; post that of a finished run.", line=1
        )
    if log_lines.count:
        doubts.append(
            Doubt(
                code=DoubtCode.MIXED_LOG_LINES,
                message=f"{log_lines.count} lines that are no CSV were passed over, the first of them line "
                f"{log_lines.first}; use -O summaryFile=FILE and post that file.",
            )
        )
    doubts += ior.incorrect_data(remarks.incorrect_lines) + ior.warnings(remarks.warning_lines)
    doubts += repetition_doubts(made)
    return Record(tool="ior", format=NAME, measurements=made, doubts=ior.merged(doubts, len(made)))


def _setup(rows: list[tuple[Row, int | None]]) -> Setup:
    """Return the set-up that the rows of one operation share.

    Raises:
        UnreadableDocument: `contradictory_setup` where they do not.
    """
    first, tasks = rows[0]
    for row, of_row in rows[1:]:
        if (row.block_kib, row.transfer_kib, of_row) != (first.block_kib, first.transfer_kib, tasks):
            raise refusal(
                "contradictory_setup",
                "has another block size, transfer size or number of tasks than the rows before it; post "
                "one file per run.",
                row.place,
            )

    def whole_bytes(kib: float | None) -> int | None:
        return None if kib is None else round(kib * KIB)

    return Setup(
        ranks=tasks, block_bytes=whole_bytes(first.block_kib), transfer_bytes=whole_bytes(first.transfer_kib)
    )
