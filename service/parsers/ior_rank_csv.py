"""IOR's details by rank (`-O saveRankPerformanceDetailsCSV=FILE`): the one file with each rank's own time.

Ranks 0 to N - 1 follow each other; rank 0 again begins the next repetition or operation. The throughputs
assume that every rank moved the same, so that only the times are taken: what a repetition moved is unknown.
"""

import re

from service.errors import UnreadableDocument
from service.parsers import ior
from service.parsers.document import Document
from service.parsers.ior import Place, Setup, refusal
from service.parsers.measurement import (
    WIDE_SPREAD_FRACTION,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    Repetition,
    repetition_doubts,
    spread,
)

NAME = "ior-rank-csv"

_HEADING = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput"
_COLUMNS = _HEADING.split(",")
_OPERATIONS = {"write": Operation.WRITE, "read": Operation.READ}
_SCIENTIFIC = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_AGREEMENT = 1e-6
"""Times and throughputs are printed with eleven digits, and each made from the other."""


def recognises(document: Document) -> bool:
    """Tell whether the first line that is not blank is the heading."""
    return document.text.lstrip().startswith(_HEADING)


def _number(token: str, column: str, place: Place) -> float:
    if not _SCIENTIFIC.fullmatch(token):
        raise refusal(
            "bad_number",
            f"has {token[:30]!r} for {column}, which is no positive number; post IOR's own file.",
            place,
        )
    return float(token)


def _rank_row(cells: list[str], place: Place) -> tuple[int, float, float]:
    """Return a row's rank, its seconds from open to close, and the bytes that IOR assumed for it.

    Raises:
        UnreadableDocument: `bad_number`, `inconsistent_row`.
    """
    rank = ior.count(cells[1], "rank", place)
    with_open, alone, rate_with_open, rate_alone = (
        _number(cell, column, place) for cell, column in zip(cells[2:], _COLUMNS[2:], strict=True)
    )
    if with_open <= 0 or rate_with_open <= 0 or with_open > 1e8:
        raise refusal(
            "bad_number", "has a time or rate of zero or beyond reason; post IOR's own file.", place
        )
    assumed, again = with_open * rate_with_open, alone * rate_alone
    if alone > with_open * 1.01 or abs(assumed - again) > _AGREEMENT * assumed:
        raise refusal(
            "inconsistent_row",
            "has times and throughputs that contradict each other; the file was changed or damaged, so "
            "post the original.",
            place,
        )
    return rank, with_open, assumed


def parse(document: Document) -> Record:
    """Return what IOR's details by rank hold.

    Raises:
        UnreadableDocument: `bad_row`, `bad_number`, `inconsistent_row`, `no_results`, with the line.
    """
    blocks: list[tuple[Operation, int, list[float], float]] = []
    incomplete = False
    operation: Operation | None = None
    last = document.text.count("\n") + 1
    for number, received in document.numbered():
        line = received.strip()
        if not line or line == _HEADING:
            continue
        place = Place(line=number)
        cells = line.split(",")
        if len(cells) != len(_COLUMNS):
            if number == last and len(cells) < len(_COLUMNS):
                incomplete = True
                break
            raise refusal(
                "bad_row",
                f"has {len(cells)} columns instead of {len(_COLUMNS)}; post the file as IOR wrote it.",
                place,
            )
        operation = _OPERATIONS.get(cells[0])
        if operation is None:
            raise refusal(
                "bad_row", "is of neither a write nor a read; post the file as IOR wrote it.", place
            )
        rank, seconds, assumed = _rank_row(cells, place)
        if rank == 0:
            blocks.append((operation, number, [seconds], assumed))
            continue
        if not blocks or rank != len(blocks[-1][2]) or operation is not blocks[-1][0]:
            raise refusal(
                "bad_row",
                f"has rank {rank} out of turn: a rank is missing, twice there or of another operation.",
                place,
            )
        if abs(assumed - blocks[-1][3]) > _AGREEMENT * assumed:
            raise refusal(
                "inconsistent_row",
                "assumes other bytes than the ranks before it; post the original file.",
                place,
            )
        blocks[-1][2].append(seconds)
    return _record(blocks, incomplete=incomplete)


def _record(blocks: list[tuple[Operation, int, list[float], float]], *, incomplete: bool) -> Record:
    sizes = [len(seconds) for _, _, seconds, _ in blocks]
    if incomplete and len(blocks) == 1:
        raise UnreadableDocument(
            "no_results",
            "The only repetition in the file is cut off; post the whole file.",
            line=blocks[0][1],
        )
    if len(blocks) > 1 and sizes[-1] < sizes[0]:
        incomplete = True
        blocks = blocks[:-1]
    elif incomplete and len(blocks) > 1 and sizes[-1] == sizes[0]:
        pass  # the cut fell into the first row of a further repetition
    for _, line, seconds, _ in blocks:
        if len(seconds) != sizes[0]:
            raise refusal(
                "bad_row",
                f"begins a repetition of {len(seconds)} ranks in a file of {sizes[0]}; post one file per "
                "run.",
                Place(line=line),
            )
    if not blocks:
        raise UnreadableDocument(
            "no_results", "The file has no row of a rank; post that of a finished run.", line=1
        )
    setup = Setup(ranks=sizes[0])
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    counts: list[int] = []
    for operation in (Operation.WRITE, Operation.READ):
        of_operation = [seconds for each, _, seconds, _ in blocks if each is operation]
        if not of_operation:
            continue
        repetitions: list[Repetition] = []
        for seconds in of_operation:
            longest = max(seconds)
            repetitions.append(
                Repetition(
                    slowest_rank=seconds.index(longest),
                    slowest_rank_seconds=longest,
                    mean_rank_seconds=sum(seconds) / len(seconds),
                )
            )
        found = ior.straggler(operation, repetitions) + ior.setup_doubts(operation, setup, tells_setup=False)
        slowest = spread([max(seconds) for seconds in of_operation])
        width = slowest.width_fraction if slowest is not None else None
        if width is not None and width > WIDE_SPREAD_FRACTION:
            found.append(
                Doubt(
                    code=DoubtCode.WIDE_SPREAD,
                    message=f"The times of the slowest {operation} ranks lie {width:.0%} of their mean "
                    "apart; repeat the run on a quiet system, with more repetitions.",
                )
            )
        doubts += [each.about(len(made)) for each in found]
        counts.append(len(repetitions))
        made.append(
            ior.described(
                run=0,
                test=0,
                operation=operation,
                setup=setup,
                repetitions=repetitions,
                rate=None,
                total=None,
            )
        )
    if incomplete or len(set(counts)) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.INCOMPLETE_RUN,
                message="The last repetition lacks ranks, or one operation has fewer repetitions than the "
                "other; let the run finish and post the whole file.",
            )
        )
    doubts += repetition_doubts(made)
    return Record(tool="ior", format=NAME, measurements=made, doubts=ior.merged(doubts, len(made)))
