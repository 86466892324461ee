"""What IOR's four formats share: its numbers, its command line, its set-up, and the doubts that follow.

The parsers of the formats read their files into `Row`, `Summary` and `Setup`; `measurement` turns these into
the neutral record, checks that bandwidth, time and bytes of every row agree, and converts the units.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from service.errors import UnreadableDocument
from service.parsers.command_words import command_words
from service.parsers.measurement import (
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Repetition,
    Spread,
    spread,
)
from service.units import GB, KIB, MIB
from service.wire import EXACT_INTEGER_MAX

_MOST_MIB_PER_SECOND = 1e10
_MOST_SECONDS = 1e8
_SLACK = 2e-4
"""How far, beside the printed digits, two statements of one quantity may lie apart."""

STRAGGLER_RATIO = 1.5


class Place(NamedTuple):
    """Where in the received document something stands.

    Attributes:
        line: The line of a text, from 1.
        pointer: The place in a JSON document, as a URI fragment.
    """

    line: int | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        """Name the place within a sentence."""
        if self.line is not None:
            return f"Line {self.line}"
        return self.pointer or "The document"


def refusal(code: str, detail: str, place: Place) -> UnreadableDocument:
    """Return the error that names the place; `detail` goes on after it ("Line 7 …")."""
    return UnreadableDocument(code, f"{place} {detail}", line=place.line, pointer=place.pointer)


class Figure(NamedTuple):
    """A printed number and half a unit of its last digit: how far the true value may be from it."""

    value: float
    half: float


_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?")
_COUNT = re.compile(r"[0-9]{1,18}")
_HALVES = tuple(0.5 * 10.0**-decimals for decimals in range(13))
"""Half a unit of the last digit, by the number of decimals."""
_ALIKE = str.maketrans("123456789", "000000000")
_SHAPES = {
    "0" * digits + ("." + "0" * decimals if decimals else ""): half
    for digits in range(1, 16)
    for decimals, half in enumerate(_HALVES)
}
"""The same by what a plain decimal looks like with all its digits alike."""


def figure(token: str, what: str, place: Place) -> Figure:
    """Return the number that a table shows.

    Raises:
        UnreadableDocument: `bad_number` for all but a plain decimal (`12.50`): no sign, exponent or comma.
    """
    if not _PLAIN.fullmatch(token):
        raise refusal(
            "bad_number",
            f"has {token[:30]!r} for {what}, which is no plain decimal number; post the output as IOR wrote "
            "it.",
            place,
        )
    return Figure(float(token), _HALVES[len(token.partition(".")[2])])


def count(token: str, what: str, place: Place) -> int:
    """Return a whole number that a table or a heading shows; raise `bad_number` for anything else."""
    if not _COUNT.fullmatch(token):
        raise refusal(
            "bad_number",
            f"has {token[:30]!r} for {what}, which is no whole number; post the output as IOR wrote it.",
            place,
        )
    return int(token)


class Halves(NamedTuple):
    """Half a unit of the last digit of each figure of a row, in the order of its columns; zero where it is absent."""

    mib: float
    iops: float
    block_kib: float
    transfer_kib: float
    open: float
    transfer: float
    close: float
    total: float


_shared_halves = lru_cache(maxsize=1000)(Halves)
"""Rows have few ways to be printed, and there may be a million of them."""


def figures(
    tokens: Sequence[str | None], columns: Iterable[str], place: Place
) -> tuple[list[float | None], Halves]:
    """Return the numbers that a row shows and their halves, both in the order of `Halves`; None stays None.

    A file may have a million rows, so that they hold plain numbers in place of a `Figure` each.

    Raises:
        UnreadableDocument: `bad_number`, as `figure` says.
    """
    present = [token for token in tokens if token is not None]
    halves = list(map(_SHAPES.get, "\n".join(present).translate(_ALIKE).split("\n")))
    if len(halves) == len(tokens) and None not in halves:
        return list(map(float, present)), _shared_halves(*halves)
    shown = [
        None if token is None else figure(token, column, place)
        for token, column in zip(tokens, columns, strict=True)
    ]
    return (
        [None if each is None else each.value for each in shown],
        Halves(*(0.0 if each is None else each.half for each in shown)),
    )


_ROUNDS_TO_ZERO_SECONDS = 0.001
"""Beyond this no version prints a time as zero."""


class Row(NamedTuple):
    """One repetition of one operation, as a file shows it.

    Attributes:
        line: Where it stands in a text.
        pointer: Where it stands in a JSON document.
        operation: `write` or `read`.
        mib: Bandwidth. [MiB/s]
        iops: Calls a second, over the transfer time alone.
        block_kib: Block size. [KiB]
        transfer_kib: Transfer size. [KiB]
        open: Seconds, absent where the file shows zero or nothing; likewise the next three.
        transfer: Seconds of reading or writing.
        close: Seconds.
        total: Seconds from the first open to the last close.
        halves: How far from these the true values may be.
        repetition: Its number, from 0, where the file says it.
        moved_bytes: What IOR says it really moved, where it says so.
    """

    line: int | None
    pointer: str | None
    operation: Operation
    mib: float
    iops: float | None
    block_kib: float | None
    transfer_kib: float | None
    open: float | None
    transfer: float | None
    close: float | None
    total: float | None
    halves: Halves
    repetition: int | None = None
    moved_bytes: int | None = None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.line, self.pointer)


def row(
    *,
    place: Place,
    operation: Operation,
    values: Sequence[float | None],
    halves: Halves,
    repetition: int | None = None,
    moved_bytes: int | None = None,
) -> Row:
    """Return a checked row; `values` and `halves` are in the order of `Halves`.

    Raises:
        UnreadableDocument: `bad_number` for a bandwidth or time beyond reason, `inconsistent_row` for a step
            that lasts longer than the whole.
    """
    mib, iops, block_kib, transfer_kib, *times = values
    if mib is None or not 0 < mib < _MOST_MIB_PER_SECOND:
        raise refusal(
            "bad_number",
            f"has a bandwidth of {mib or 0:g} MiB/s; only a positive one can have been measured.",
            place,
        )
    for at, time in enumerate(times):
        if time is None or 0 < time <= _MOST_SECONDS:
            continue
        if time > 0:
            raise refusal("bad_number", f"has a time of {time:g} s; no run lasts for years.", place)
        times[at] = None
    open_, transfer, close, total = times
    if total is None:
        for name, step in (("open", open_), ("transfer", transfer), ("close", close)):
            if step is not None and step > _ROUNDS_TO_ZERO_SECONDS:
                raise refusal(
                    "inconsistent_row",
                    f"shows {step:g} s for the {name} step and no time in total; the file was changed or damaged, so "
                    "post the original.",
                    place,
                )
    else:
        longest = 1.01 * (total + halves.total)
        for name, step in (("open", open_), ("transfer", transfer), ("close", close)):
            if step is not None and step > longest and step - getattr(halves, name) > longest:
                raise refusal(
                    "inconsistent_row",
                    f"shows {step:g} s for the {name} step and only {total:g} s in total; the file was changed or "
                    "damaged, so post the original.",
                    place,
                )
    return Row(
        *place,
        operation,
        mib,
        iops,
        block_kib,
        transfer_kib,
        open_,
        transfer,
        close,
        total,
        halves,
        repetition,
        moved_bytes,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """IOR's own statistics over the repetitions of one operation.

    Attributes:
        place: Where they stand.
        largest: Of the bandwidths, likewise the next two; absent where IOR printed nan. [MiB/s]
        seconds_mean: Mean of the total times.
        calls: The same three as calls of one transfer size a second.
    """

    place: Place
    largest: Figure | None = None
    least: Figure | None = None
    mean: Figure | None = None
    seconds_mean: Figure | None = None
    calls: tuple[Figure | None, Figure | None, Figure | None] = (None, None, None)


@dataclass(slots=True)
class Setup:
    """How a test was set up, as far as its file says. None is unknown.

    Attributes:
        api: The back end, without a version.
        file_per_process: False for one shared file.
        ranks: Tasks that took part.
        nodes: Nodes they ran on.
        first_node_ranks: Tasks that were started on the first node.
        block_bytes: Bytes of a block; `transfer_bytes` of a call.
        transfer_bytes: See there.
        segments: Blocks a rank moves.
        aggregate_bytes: Planned bytes of all ranks, where the file says them exactly.
        fsync: Whether `-e` (or `-Y`) was given.
        fsync_ignored: Whether the back end said that it has no fsync.
        reordered: Whether ranks read what others wrote.
        repetitions: How many were asked for.
        may_stonewall: Whether a time limit (`-D`) may have ended a repetition.
    """

    api: str | None = None
    file_per_process: bool | None = None
    ranks: int | None = None
    nodes: int | None = None
    first_node_ranks: int | None = None
    block_bytes: int | None = None
    transfer_bytes: int | None = None
    segments: int | None = None
    aggregate_bytes: int | None = None
    fsync: bool | None = None
    fsync_ignored: bool = False
    reordered: bool | None = None
    repetitions: int | None = None
    may_stonewall: bool = False

    @property
    def planned_bytes(self) -> int | None:
        """What all ranks together were to move in one repetition."""
        if self.block_bytes is not None and self.segments is not None and self.ranks is not None:
            return self.block_bytes * self.segments * self.ranks
        return self.aggregate_bytes

    @property
    def ranks_per_node(self) -> int | None:
        """Tasks on each node, only where that many on every node are all of them."""
        if self.nodes is None or self.ranks is None or self.first_node_ranks is None:
            return None
        return self.first_node_ranks if self.nodes * self.first_node_ranks == self.ranks else None


def api_name(text: str) -> str | None:
    """Return a back end's name without the version that old releases print after it."""
    return re.split(r"[\s(]|-(?=[0-9])", text.strip(), maxsplit=1)[0] or None


def access_is_file_per_process(text: str) -> bool | None:
    """Return what IOR's `access` means, or None for a mode not known here."""
    mode = text.strip().lower()
    if mode.startswith("file-per-process"):
        return True
    if mode.startswith("single-shared-file"):
        return False
    return None


# The command line


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What an IOR command line says of itself.

    Attributes:
        script: Whether something else may say otherwise: `-f` names a file, or the line is not there.
        letters: The options given, by their letter.
        values: The last value of the options that take one.
        directives: What `-O` sets, by lower-case name.
    """

    script: bool = False
    letters: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    directives: Mapping[str, str] = field(default_factory=dict)

    @property
    def fsync(self) -> bool | None:
        """Whether writes were made durable; None where a script may say."""
        said = [self.directives.get(name) for name in ("fsync", "fsyncperwrite")]
        if "e" in self.letters or "Y" in self.letters or "1" in said:
            return None if self.script else True
        return None if self.script else False

    @property
    def deadline(self) -> bool:
        """Whether a time limit on each phase was set (`-D`)."""
        given = self.values.get("D") or self.directives.get("deadlineforstonewalling")
        return given is not None and given.strip("0.") != ""

    @property
    def time_limit(self) -> bool:
        """Whether the test may stop before all repetitions (`-T`)."""
        given = self.values.get("T") or self.directives.get("maxtimeduration")
        return given is not None and given.strip("0.") != ""

    @property
    def dry_run(self) -> bool:
        """Whether no I/O was to take place."""
        return self.directives.get("dryrun", "0").strip("0") != ""

    @property
    def inside_io500(self) -> bool:
        """Whether IOR was called as IO500 calls it: then it prints neither summary nor end mark."""
        return bool({"stonewallingstatusfile", "saverankperformancedetailscsv"} & self.directives.keys())

    @property
    def operations(self) -> frozenset[Operation]:
        """What must have been measured; nothing where a script says it."""
        if self.script or {"writefile", "readfile", "checkwrite", "checkread"} & self.directives.keys():
            return frozenset()
        if not self.letters & set("wrWR"):
            return frozenset((Operation.WRITE, Operation.READ))
        return frozenset(
            operation
            for letter, operation in (("w", Operation.WRITE), ("r", Operation.READ))
            if letter in self.letters
        )


_WITH_VALUE = frozenset("aAbdDfGijJlMNoOQstTUX")
_FLAGS = frozenset("BcCeEFghHIkKmnpPqrRSuvVwWxyYzZ")


def command_line(text: str) -> CommandLine:
    """Return what can be told from a command line; what is not understood is passed over."""
    words = command_words(text)
    if words is None:  # a path with a lone quote
        words = text.split()
    letters: set[str] = set()
    values: dict[str, str] = {}
    directives: dict[str, str] = {}

    def take(letter: str, value: str) -> None:
        letters.add(letter)
        values[letter] = value
        if letter == "O":
            for part in value.split(","):
                name, _, said = part.partition("=")
                directives[name.strip().lower()] = said.strip()

    if not words:
        return CommandLine(script=True)
    at = 1  # the first word is the program
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], start=1):
            if letter in _WITH_VALUE:
                value = word[place + 1 :].removeprefix("=")
                # `-l` took no value in old releases.
                if not value and at < len(words) and not (letter == "l" and words[at].startswith("-")):
                    value = words[at]
                    at += 1
                take(letter, value)
                break
            if letter not in _FLAGS:
                break
            letters.add(letter)
    return CommandLine("f" in letters, frozenset(letters), values, directives)


# From rows to a measurement


def _near(left: float, right: float, tolerance: float) -> bool:
    return abs(left - right) <= tolerance * max(abs(left), abs(right))


def _relative(half: float, value: float) -> float:
    return half / value if value > 0 else 0.0


def _multiple(value: float, unit: int, tolerance: float) -> int | None:
    """Return the whole multiple of the unit that the value can be, or None."""
    multiple = max(1, round(value / unit)) * unit
    return multiple if _near(value, multiple, tolerance) else None


def _moved(row: Row, setup: Setup) -> tuple[int | None, bool]:
    """Return the bytes that a repetition moved, if known, and whether they differ from the plan.

    Raises:
        UnreadableDocument: `inconsistent_row`: its figures cannot all be true.
    """
    planned = setup.planned_bytes
    stated = row.moved_bytes
    if row.total is None:  # it rounds to zero, so that nothing can be checked
        if stated is not None:
            return stated, planned is not None and stated != planned
        return (None if setup.may_stonewall else planned), False
    halves = row.halves
    measured = row.mib * MIB * row.total
    tolerance = _SLACK + halves.mib / row.mib + halves.total / row.total
    if row.iops and row.transfer is not None and row.transfer_kib is not None:
        called = row.iops * row.transfer * row.transfer_kib * KIB
        parts = (
            halves.iops / row.iops
            + halves.transfer / row.transfer
            + _relative(halves.transfer_kib, row.transfer_kib)
        )
        slack = tolerance + _SLACK + parts
        if not _near(called, measured, slack):
            raise _contradiction(row, "its IOPS and transfer time", called, measured)
    if stated is not None:
        if not _near(stated, measured, tolerance) or (setup.transfer_bytes and stated % setup.transfer_bytes):
            raise _contradiction(row, "the actual bytes moved that IOR stated for it", stated, measured)
        return stated, planned is not None and stated != planned
    if planned is not None:
        if _near(planned, measured, tolerance):
            return planned, False
        if not (setup.may_stonewall and measured < planned):
            raise _contradiction(row, "block size, segments and ranks", planned, measured)
        return _multiple(measured, setup.transfer_bytes or 1, tolerance), True
    if setup.block_bytes is None:
        return None, False
    # Segments unknown: whole blocks of all ranks, or else a stonewall ended it.
    whole = _multiple(measured, setup.block_bytes * (setup.ranks or 1), tolerance)
    if whole is not None:
        return whole, False
    return _multiple(measured, setup.transfer_bytes or 1, tolerance), True


def _contradiction(row: Row, what: str, said: float, measured: float) -> UnreadableDocument:
    return refusal(
        "inconsistent_row",
        f"contradicts itself: bandwidth times total time are {measured / 1e6:.6g} MB, by {what} they are "
        f"{said / 1e6:.6g} MB; the file was changed or damaged, so post the original.",
        row.place,
    )


def _check_sizes(row: Row, setup: Setup) -> None:
    for shown, half, known, what in (
        (row.block_kib, row.halves.block_kib, setup.block_bytes, "block"),
        (row.transfer_kib, row.halves.transfer_kib, setup.transfer_bytes, "transfer"),
    ):
        if shown is None or known is None or shown * KIB == known:
            continue
        if abs(shown * KIB - known) > half * KIB + 1:
            raise refusal(
                "inconsistent_row",
                f"shows a {what} size of {shown:g} KiB in a test of {known} bytes; rows of different "
                "runs were mixed, so post one whole file.",
                row.place,
            )


def _check_summary(summary: Summary, rows: Sequence[Row]) -> None:
    half = max(row.halves.mib for row in rows)
    rates = [row.mib for row in rows]
    for shown, true, what in (
        (summary.largest, max(rates), "largest"),
        (summary.least, min(rates), "smallest"),
        (summary.mean, sum(rates) / len(rates), "mean"),
    ):
        if shown is not None and abs(shown.value - true) > shown.half + half + 1e-6 * true:
            raise refusal(
                "inconsistent_summary",
                f"gives {shown.value:g} MiB/s as the {what} {rows[0].operation} bandwidth where the "
                f"repetitions give {true:g}; the file was changed or damaged, so post the original.",
                summary.place,
            )
    least, mean, largest = summary.least, summary.mean, summary.largest
    if (
        least
        and mean
        and largest
        and not (
            least.value <= largest.value
            and least.value <= mean.value + 2 * mean.half <= largest.value + 4 * mean.half
        )
    ):
        raise refusal(
            "inconsistent_summary",
            "has a mean that does not lie between its smallest and largest bandwidth; post the original.",
            summary.place,
        )
    totals = [row.total for row in rows if row.total is not None]
    if summary.seconds_mean is not None and len(totals) == len(rows):
        true = sum(totals) / len(totals)
        allowed = summary.seconds_mean.half + max(row.halves.total for row in rows) + _SLACK * true
        if abs(summary.seconds_mean.value - true) > allowed:
            raise refusal(
                "inconsistent_summary",
                f"gives {summary.seconds_mean.value:g} s as the mean time where the repetitions give "
                f"{true:.6g} s; the file was changed or damaged, so post the original.",
                summary.place,
            )


def check_setup(setup: Setup, place: Place) -> None:
    """Raise `no_io` for a test that moves nothing, `bad_number` for sizes or counts beyond reason."""
    for said in (setup.ranks, setup.block_bytes, setup.transfer_bytes, setup.segments, setup.planned_bytes):
        if said == 0:
            raise refusal("no_io", "is of a test that moves no bytes; post one that does.", place)
        if said is not None and said > EXACT_INTEGER_MAX:
            raise refusal(
                "bad_number", "is of a test whose sizes are beyond reason; post the original.", place
            )
    for said in (setup.nodes, setup.first_node_ranks, setup.repetitions):
        if said is not None and said > EXACT_INTEGER_MAX:
            raise refusal(
                "bad_number", "is of a test whose counts are beyond reason; post the original.", place
            )


def check_calls(summary: Summary, transfer_bytes: int | None) -> None:
    """Raise `inconsistent_summary` where bandwidths and calls a second do not fit the transfer size."""
    for rate, calls in zip((summary.largest, summary.least, summary.mean), summary.calls, strict=True):
        if rate is None or calls is None or not transfer_bytes:
            continue
        implied = rate.value * MIB / transfer_bytes
        allowed = calls.half + rate.half * MIB / transfer_bytes + _SLACK * implied
        if abs(calls.value - implied) > allowed:
            raise refusal(
                "inconsistent_summary",
                f"gives {calls.value:g} calls a second for {rate.value:g} MiB/s where transfers of "
                f"{transfer_bytes} bytes make {implied:.6g}; the file was changed or damaged, so post the "
                "original.",
                summary.place,
            )


def gb_per_second(mib_per_second: float) -> float:
    """Return a bandwidth in MiB/s as one in GB/s, 10^9 bytes a second."""
    return mib_per_second * MIB / GB


def in_order(rows: Sequence[Row]) -> tuple[list[Row], bool]:
    """Return the rows by their repetition, and whether one between them is missing.

    Raises:
        UnreadableDocument: `duplicate_row`: a repetition stands there twice.
    """
    if not rows or any(row.repetition is None for row in rows):
        return list(rows), False
    ordered = sorted(rows, key=lambda row: row.repetition or 0)
    for earlier, later in itertools.pairwise(ordered):
        if earlier.repetition == later.repetition:
            raise refusal(
                "duplicate_row",
                f"is a second {later.operation} row of repetition {later.repetition}; post one whole file "
                "of one run.",
                later.place,
            )
    return ordered, ordered[-1].repetition != len(ordered) - 1


def measurement(
    *,
    run: int,
    test: int,
    operation: Operation,
    setup: Setup,
    rows: Sequence[Row],
    summary: Summary | None = None,
    ranks_seconds: Mapping[int, Mapping[int, float]] | None = None,
) -> tuple[Measurement, list[Doubt]]:
    """Return one operation of one test in neutral units, with the doubts that its rows raise.

    Args:
        run: Which run of the file.
        test: Which test of the run.
        operation: What the rows measured.
        setup: How the test was set up.
        rows: The finished repetitions, in order.
        summary: IOR's statistics, where it printed them over just these repetitions: they have more digits.
        ranks_seconds: The ranks' own times by repetition and rank, where the file has them.

    Raises:
        UnreadableDocument: `inconsistent_row`, `inconsistent_summary`.
    """
    check_setup(setup, rows[0].place)
    repetitions: list[Repetition] = []
    short: list[int] = []
    for at, each in enumerate(rows):
        _check_sizes(each, setup)
        moved, differs = _moved(each, setup)
        if differs:
            short.append(at)
        made = Repetition(
            gb_per_second=gb_per_second(each.mib),
            bytes=moved,
            open_seconds=each.open,
            transfer_seconds=each.transfer,
            close_seconds=each.close,
            total_seconds=each.total,
        )
        own = (ranks_seconds or {}).get(at if each.repetition is None else each.repetition)
        repetitions.append(_with_own_times(made, own) if own else made)
    rate = spread([gb_per_second(each.mib) for each in rows])
    # Were one left out, it could be the longest of all.
    timed = [each.total for each in rows if each.total is not None]
    total = spread(timed) if len(timed) == len(rows) else None
    if summary is not None:
        _check_summary(summary, rows)
        check_calls(summary, setup.transfer_bytes)
        if summary.largest and summary.least and summary.mean and rate is not None:
            largest, least, mean = (
                gb_per_second(each.value) for each in (summary.largest, summary.least, summary.mean)
            )
            mean = min(max(mean, least), largest)
            median = mean if len(rows) <= 2 else min(max(rate.median or mean, least), largest)
            rate = Spread(mean=mean, median=median, min=least, max=largest)
        if (
            summary.seconds_mean
            and summary.seconds_mean.value > 0
            and total is not None
            and any(each.halves.total > 1e-5 for each in rows)
        ):
            # The mean has more digits than a row of a second or more, and lies between the shortest and the longest.
            mean = summary.seconds_mean.value
            total = Spread(
                mean=mean,
                median=mean if len(rows) == 1 else total.median,
                min=min(mean, total.min or mean),
                max=max(mean, total.max or mean),
            )
    whole = described(
        run=run, test=test, operation=operation, setup=setup, repetitions=repetitions, rate=rate, total=total
    )
    doubts: list[Doubt] = []
    if short:
        doubts.append(
            Doubt(
                code=DoubtCode.STONEWALLED,
                message=f"In {len(short)} of {len(rows)} {operation} repetitions the bytes moved are not "
                "those planned, as when a time limit (-D) ends them; repeat without -D, or size the test "
                "to finish.",
            )
        )
    return whole, doubts + straggler(operation, repetitions)


def _with_own_times(repetition: Repetition, own: Mapping[int, float]) -> Repetition:
    """Return a repetition with what its ranks' own times say."""
    slowest = max(own, key=lambda rank: own[rank])
    return replace(
        repetition,
        slowest_rank=slowest,
        slowest_rank_seconds=own[slowest],
        mean_rank_seconds=sum(own.values()) / len(own),
    )


def described(
    *,
    run: int,
    test: int,
    operation: Operation,
    setup: Setup,
    repetitions: list[Repetition],
    rate: Spread | None,
    total: Spread | None,
) -> Measurement:
    """Return a measurement with what its set-up says."""
    return Measurement(
        run=run,
        test=test,
        operation=operation,
        api=setup.api,
        file_per_process=setup.file_per_process,
        ranks=setup.ranks,
        nodes=setup.nodes,
        ranks_per_node=setup.ranks_per_node,
        block_bytes=setup.block_bytes,
        transfer_bytes=setup.transfer_bytes,
        segments=setup.segments,
        fsync=False if setup.fsync_ignored else setup.fsync,
        reordered=setup.reordered,
        repetitions_requested=setup.repetitions,
        repetitions=repetitions,
        gb_per_second=rate,
        total_seconds=total,
    )


def straggler(operation: Operation, repetitions: Iterable[Repetition]) -> list[Doubt]:
    """Return the doubt about one rank that was much slower than the mean, where times by rank are known."""
    worst: tuple[float, int | None] = (0.0, None)
    for each in repetitions:
        if each.slowest_rank_seconds is not None and each.mean_rank_seconds:
            worst = max(
                worst,
                (each.slowest_rank_seconds / each.mean_rank_seconds, each.slowest_rank),
                key=lambda w: w[0],
            )
    if worst[0] <= STRAGGLER_RATIO:
        return []
    return [
        Doubt(
            code=DoubtCode.STRAGGLER,
            message=f"In a {operation} rank {worst[1]} took {worst[0]:.2f} times as long as the mean of the "
            "ranks; look at its node, its network and the storage server it used.",
        )
    ]


def setup_doubts(operation: Operation, setup: Setup, *, tells_setup: bool = True) -> list[Doubt]:
    """Return the doubts that follow from how a test was set up.

    Args:
        operation: What was measured.
        setup: The set-up as far as it is known.
        tells_setup: False for the formats that cannot say, for the wording.
    """
    doubts: list[Doubt] = []

    def doubt(code: DoubtCode, message: str) -> None:
        doubts.append(Doubt(code=code, message=message))

    if operation is Operation.WRITE:
        if setup.fsync_ignored:
            doubt(
                DoubtCode.FSYNC_IGNORED,
                "IOR warned that this back end has no fsync, so the write may have ended in memory; use -a "
                "POSIX -e.",
            )
        elif setup.fsync is None:
            doubt(
                DoubtCode.FSYNC_UNKNOWN,
                "This format does not say whether the write was made durable; post IOR's JSON (-O "
                "summaryFormat=JSON)."
                if not tells_setup
                else "The command line does not show whether the write was made durable (a script may "
                "set it); give -e on the command line, or post IOR's JSON.",
            )
        elif not setup.fsync:
            doubt(
                DoubtCode.NO_FSYNC,
                "The write was run without -e, so that it may have ended in the page cache; repeat it with "
                "-e.",
            )
    elif setup.nodes == 1:
        doubt(
            DoubtCode.CACHED_READ,
            "The read ran on one node, which may hold in memory what it wrote; read from other nodes, or "
            "more data than three times the memory.",
        )
    elif setup.reordered is False:
        doubt(
            DoubtCode.CACHED_READ,
            "Each rank read back its own data (no -C), which its node may hold in memory; repeat with -C "
            "on two nodes or more.",
        )
    elif setup.reordered is None:
        doubt(
            DoubtCode.CACHED_READ,
            "The file does not show that ranks read other nodes' data (-C), so the read may come from "
            "memory; post IOR's JSON of a run with -C.",
        )
    elif (
        setup.nodes is None
        and setup.ranks is not None
        and setup.first_node_ranks is not None
        and setup.first_node_ranks >= setup.ranks
    ):
        doubt(
            DoubtCode.CACHED_READ,
            "The read seems to have run on one node, which may hold in memory what it wrote; read from "
            "other nodes.",
        )
    if setup.nodes is None:
        doubt(
            DoubtCode.UNKNOWN_TOPOLOGY,
            "The file does not say on how many nodes the tasks ran; give ?nodes= when posting it, or use "
            "IOR 3.3 or later.",
        )
    elif setup.ranks is not None and setup.first_node_ranks is not None and setup.ranks_per_node is None:
        doubt(
            DoubtCode.UNEVEN_NODES,
            f"{setup.ranks} tasks ran on {setup.nodes} node{'' if setup.nodes == 1 else 's'} whose first "
            f"was given {setup.first_node_ranks}; run the same number on every node.",
        )
    return doubts


def merged(doubts: Iterable[Doubt], measurements: int) -> list[Doubt]:
    """Return the doubts once each; one that all measurements share is told once, of the whole file."""
    alike: dict[tuple[DoubtCode, str], dict[int | None, Doubt]] = {}
    for each in doubts:
        alike.setdefault((each.code, each.message), {})[each.measurement] = each
    told: list[Doubt] = []
    for about in alike.values():
        if None in about or len(about) == measurements:
            told.append(next(iter(about.values())).about(None))
        else:
            told += about.values()
    return told


# Lines that IOR prints between the others

_WARNINGS = ("WARNING:", "ERROR:", "ior WARNING:", "ior ERROR:")
_STONEWALL_WARNING = re.compile(
    r"(?:ior )?WARNING:\s*(?:Expected aggregate file size|Stat\(\) of aggregate|Using actual aggregate"
    r" bytes moved|Maybe caused by deadline)",
    re.IGNORECASE,
)
_ACTUAL_BYTES = re.compile(r"Using actual aggregate bytes moved\s*=\s*(\S+)", re.IGNORECASE)
_FSYNC_IGNORED = re.compile(r"fsync\(\).*Using value of 0", re.IGNORECASE)
_INCORRECT = ("incorrect data on read", "incorrect data on write", "failed comparison of buffer")


@dataclass(slots=True)
class Remarks:
    """What IOR's warning lines said.

    Attributes:
        moved_bytes: True byte counts, each with its line, in order.
        fsync_ignored: The back end has no fsync.
        incorrect_lines: Lines that tell of wrong data.
        warning_lines: Lines of any other warning or error.
    """

    moved_bytes: list[tuple[int, int]] = field(default_factory=list)
    fsync_ignored: bool = False
    incorrect_lines: list[int] = field(default_factory=list)
    warning_lines: list[int] = field(default_factory=list)


def note(remarks: Remarks, line: str, number: int) -> bool:
    """Take in a line if it is a remark of IOR's; tell whether it was.

    Raises:
        UnreadableDocument: `bad_number` for a byte count that is none.
    """
    lower = line.lower()
    if ("incorrect" in lower or "failed" in lower) and any(words in lower for words in _INCORRECT):
        remarks.incorrect_lines.append(number)
        return True
    if not line.startswith(_WARNINGS):
        return False
    actual = _ACTUAL_BYTES.search(line)
    if actual:
        remarks.moved_bytes.append((number, count(actual[1], "the bytes moved", Place(line=number))))
    elif _FSYNC_IGNORED.search(line):
        remarks.fsync_ignored = True
    elif not _STONEWALL_WARNING.match(line):
        remarks.warning_lines.append(number)
    return True


def incorrect_data(lines: Sequence[int]) -> list[Doubt]:
    """Return the doubt about data that did not read back as written."""
    if not lines:
        return []
    return [
        Doubt(
            code=DoubtCode.DATA_VERIFICATION_FAILED,
            message=f"IOR found wrong data when it checked what it had written (line {lines[0]}); find the "
            "cause before any figure of this storage is trusted.",
        )
    ]


def warnings(lines: Sequence[int]) -> list[Doubt]:
    """Return the doubt about other warnings that IOR printed."""
    if not lines:
        return []
    return [
        Doubt(
            code=DoubtCode.IOR_WARNING,
            message=f"IOR printed {len(lines)} warning or error line{'' if len(lines) == 1 else 's'}, the "
            f"first in line {lines[0]}; read {'it' if len(lines) == 1 else 'them'} and repeat the run if "
            "the set-up was not as meant.",
        )
    ]


def refuse_no_io(setup: Setup, place: Place, *, dry_run: bool) -> None:
    """Raise `no_io` for a test that only pretended: the DUMMY back end, or a dry run."""
    if setup.api is not None and setup.api.upper() == "DUMMY":
        raise refusal(
            "no_io", "shows the back end DUMMY, which performs no I/O; measure with -a POSIX or MPIIO.", place
        )
    if dry_run:
        raise refusal("no_io", "shows a dry run, in which no I/O took place; run it without dryRun.", place)
