"""What elbencho's two formats share: phases, the command line, the checks, and the doubts that follow.

The figures are those of the moment when the last worker was done (`last_done`, `[last]`). elbencho prints whole
numbers, rounded down; two figures of one phase agree when some true values behind them can.

`--sync` is a phase of its own, timed apart: the write's time never holds it, so that no write of elbencho's is
taken as durable. What the write would be with the sync that followed stands in the doubt.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from service.errors import UnreadableDocument
from service.parsers import ior
from service.parsers.ior import Place, refusal
from service.parsers.measurement import (
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    Repetition,
    Spread,
    add,
    repetition_doubts,
    spread,
)
from service.units import GB
from service.wire import EXACT_INTEGER_MAX

OPERATIONS = {"WRITE": Operation.WRITE, "READ": Operation.READ}
"""The phases that are read. `WRITE+r`, `RWMIX70` and their like mix reads and writes in one figure."""

_SYNC = "SYNC"
_DROP_CACHE = "DROPCACHE"
_SMALL_FILE_BYTES = 1 << 20
"""Up to here a file that takes one call measures creates; beyond it, bandwidth."""

_MOST_MILLISECONDS = 10**11
_MOST_BYTES_PER_SECOND = 1e16
_SLACK = 1e-6
_WHOLE = re.compile(r"[0-9]{1,18}")

_KEEP_THE_AMOUNT = frozenset({
    "-w", "--write", "-r", "--read", "-d", "--mkdirs", "-F", "--delfiles", "-D", "--deldirs", "--stat", "-t",
    "--threads", "-n", "--dirs", "-N", "--files", "-s", "--size", "-b", "--block", "--sync", "--dropcache",
    "--direct", "--iodepth", "--hosts", "--hostsfile", "--csvfile", "--jsonfile", "--resfile", "--label", "--lat",
    "--latpercent", "--lathisto", "--allelapsed", "--cpu", "--nolive", "--live1", "--zones", "--cores", "-i",
    "--iterations", "--rotatehosts", "--timelimit", "--phasedelay", "--nodelerr", "--trunc", "--trunctosize",
    "--preallocsize", "--blockvarpct", "--blockvaralgo", "--nocsvlabels",
})  # fmt: skip
"""Options beside which a phase moves all files whole, unless a time limit ends it."""


@dataclass(frozen=True, slots=True)
class Range:
    """Where a true value lies of which a file shows the whole part: from `low` up to, not including, `high`."""

    low: float
    high: float

    def times(self, low: float, high: float) -> "Range":
        """Return the range scaled by another."""
        return Range(self.low * low, self.high * high)

    def meets(self, other: "Range") -> bool:
        """Tell whether one value can lie in both."""
        return self.low <= other.high * (1 + _SLACK) and other.low <= self.high * (1 + _SLACK)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a run, as a line of either format shows it. None is not shown.

    Attributes:
        place: Where it stands.
        name: `WRITE`, `SYNC`, …
        version: elbencho's.
        command: Its command line, never shown to anyone.
        started: When it began.
        path_type: `dir`, `file`, `blockdev`, `bucket` or `object`.
        numbers: The counts of its set-up, by the names of the JSON format.
        direct: Whether the page cache was bypassed.
        random: Whether offsets were random.
        milliseconds: Until the last worker was done, rounded down; `first_milliseconds` until the first was.
        first_milliseconds: See there.
        rate: The bandwidth as printed. [bytes/s]
        rate_step: What one unit of its last digit is. [bytes/s]
        bytes: What was moved, as printed.
        bytes_step: What one unit of its last digit is; 0 where `bytes` is exact. [bytes]
        first_bytes: What had been moved when the first worker was done, likewise.
        calls_per_second: IOPS.
        entries: Files done.
        entries_per_second: Files a second.
    """

    place: Place
    name: str
    version: str | None = None
    command: str | None = None
    started: datetime | None = None
    path_type: str | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    direct: bool | None = None
    random: bool | None = None
    milliseconds: int | None = None
    first_milliseconds: int | None = None
    rate: int | None = None
    rate_step: int = 1
    bytes: int | None = None
    bytes_step: int = 0
    first_bytes: int | None = None
    calls_per_second: int | None = None
    entries: int | None = None
    entries_per_second: int | None = None

    @property
    def ranks(self) -> int | None:
        """Workers on all hosts; `threads` counts those of one."""
        hosts, threads = self.numbers.get("hosts"), self.numbers.get("threads")
        return None if hosts is None or threads is None else hosts * threads

    @property
    def setup(self) -> tuple[object, ...]:
        """What all repetitions of one measurement share."""
        return self.path_type, self.direct, self.random, sorted(self.numbers.items())


def whole(text: str, what: str, place: Place) -> int:
    """Return a whole number as elbencho prints it.

    Raises:
        UnreadableDocument: `bad_number` for anything else.
    """
    if not _WHOLE.fullmatch(text) or int(text) > EXACT_INTEGER_MAX:
        raise refusal(
            "bad_number",
            f"has {text[:30]!r} for {what}, which is no whole number within reason; post the original file.",
            place,
        )
    return int(text)


def date(text: object) -> datetime | None:
    """Return elbencho's date, which carries its time zone; None for anything else."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


# The command line


@dataclass(frozen=True, slots=True)
class _Command:
    """What a command line asks for."""

    words: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, phase: Phase) -> "_Command":
        """Return the command of a phase; elbencho quotes every word and escapes nothing."""
        words = tuple(re.findall(r'"([^"]{0,4000})"', phase.command or "")[1:])
        return cls(words, frozenset(word.partition("=")[0] for word in words))

    def has(self, *names: str) -> bool:
        """Tell whether one of the options was given."""
        return not self.names.isdisjoint(names)

    def value(self, *names: str) -> str | None:
        """Return the value of an option."""
        short = tuple(name for name in names if len(name) == 2)
        if self.names.isdisjoint(names) and not any(word.startswith(short) for word in self.words):
            return None
        for at, word in enumerate(self.words):
            name, equals, value = word.partition("=")
            if name in names:
                return value if equals else next(iter(self.words[at + 1 : at + 2]), None)
            if len(name) > 2 and name[:2] in names and name[0] == "-" != name[1]:
                return name[2:]
        return None

    def count(self, *names: str) -> int:
        """Return the value of an option that is a number, 0 where there is none."""
        value = self.value(*names) or ""
        return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else 0

    @property
    def iterations(self) -> int:
        """How often all phases were to run."""
        return max(1, self.count("-i", "--iterations"))

    @property
    def time_limit(self) -> bool:
        """Whether a phase may end before all is done."""
        return self.count("--timelimit") > 0 or self.has("--infloop")

    @property
    def keeps_the_amount(self) -> bool:
        """Whether nothing among its options lets a phase move other than all files, whole."""
        return bool(self.words) and all(
            word.partition("=")[0] in _KEEP_THE_AMOUNT or word[:2] in ("-t", "-n", "-N", "-s", "-b", "-i")
            for word in self.words
            if word.startswith("-")
        )

    def check(self, phase: Phase) -> None:
        """Raise `inconsistent_row` for a phase with other hosts or threads than the command line gives."""
        if not self.words or self.has("-c", "--configfile"):
            return
        hosts, threads = phase.numbers.get("hosts"), phase.numbers.get("threads")
        if hosts is not None and hosts > 1 and not self.has("--hosts", "--hostsfile"):
            raise _contradiction("it has several hosts, and its command line names none", phase.place)
        given = self.count("-t", "--threads")
        if given and threads is not None and threads != given:
            raise _contradiction("its threads are not those of its command line", phase.place)

    def nodes(self, hosts: int) -> int:
        """Return how many machines the hosts are: one may run several services, told apart by their port."""
        given = [word for word in re.split(r"[, ]", self.value("--hosts") or "") if word]
        names = {word.partition(":")[0] for word in given}
        return len(names) if len(given) == hosts and not any("[" in word for word in given) else hosts

    def asks_for(self, operation: Operation) -> bool:
        """Tell whether a phase was asked for."""
        return self.has(*(("-w", "--write") if operation is Operation.WRITE else ("-r", "--read")))


# Checks


def _check(phase: Phase) -> None:
    """Raise `bad_number` or `inconsistent_row` for figures that cannot all be true."""
    place = phase.place
    for name in ("hosts", "threads", "block_size"):
        if phase.numbers.get(name) == 0:
            raise refusal("bad_number", f"has zero for {name}; post the file as elbencho wrote it.", place)
    if (phase.ranks or 0) > EXACT_INTEGER_MAX or (phase.bytes or 0) > EXACT_INTEGER_MAX:
        raise refusal("bad_number", "has counts beyond reason; post the original file.", place)
    if phase.milliseconds is None:
        raise refusal(
            "missing_key", "has no time of the last worker; post the file as elbencho wrote it.", place
        )
    if phase.milliseconds > _MOST_MILLISECONDS:
        raise refusal("bad_number", "has a time of years; post the file as elbencho wrote it.", place)
    if (phase.rate is None) != (phase.bytes is None):
        raise refusal(
            "missing_key",
            "has only one of bandwidth and bytes of the last worker; post the file as elbencho wrote it.",
            place,
        )
    later = (
        (phase.first_milliseconds, phase.milliseconds, "time"),
        (phase.first_bytes, phase.bytes, "number of bytes"),
    )
    for first, last, what in later:
        if first is not None and last is not None and first > last:
            raise _contradiction(f"the first worker was done at a larger {what} than the last", place)
    time = Range(phase.milliseconds / 1e3, (phase.milliseconds + 1) / 1e3)
    if phase.entries is not None and phase.entries_per_second is not None:
        shown = Range(phase.entries_per_second, phase.entries_per_second + 1)
        if not shown.times(time.low, time.high).meets(Range(phase.entries, phase.entries)):
            raise _contradiction("its entries, entries a second and time do not fit", place)
    if phase.rate is None or phase.bytes is None:
        return
    if phase.rate > _MOST_BYTES_PER_SECOND:
        raise refusal("bad_number", "has a bandwidth beyond reason; post the original file.", place)
    if phase.bytes == 0 and phase.bytes_step == 0:
        raise refusal("bad_number", "moved no bytes at a bandwidth; post the original file.", place)
    rate = Range(phase.rate, phase.rate + phase.rate_step)
    if not rate.times(time.low, time.high).meets(Range(phase.bytes, phase.bytes + phase.bytes_step)):
        raise _contradiction("its bytes, bandwidth and time do not fit", place)
    _check_calls(phase, rate)


def _check_calls(phase: Phase, rate: Range) -> None:
    block, size = phase.numbers.get("block_size"), phase.numbers.get("file_size")
    if phase.calls_per_second is None or not block:
        return
    calls = Range(phase.calls_per_second, phase.calls_per_second + 1)
    alike = phase.random is False and size and (size <= block or size % block == 0)
    least = min(block, size) if alike and size else 0
    if not rate.meets(calls.times(least, min(block, size) if alike and size else block)):
        raise _contradiction("its IOPS, block size and bandwidth do not fit", phase.place)


def _contradiction(what: str, place: Place) -> UnreadableDocument:
    return refusal(
        "inconsistent_row",
        f"contradicts itself: {what}; the file was changed or damaged, so post the original.",
        place,
    )


# Runs

_Key = tuple[str | None, str | None]


def _key(phase: Phase) -> _Key:
    return phase.command, phase.version


@dataclass(slots=True)
class _Run:
    """One call of elbencho: its command, and where its phases stand among those of the file."""

    command: _Command
    key: _Key
    at: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def _runs(phases: Sequence[Phase]) -> list[_Run]:
    """Return the runs of a file; a phase comes back within one only as often as there are iterations."""
    found: list[_Run] = []
    commands: dict[_Key, tuple[_Command, int]] = {}
    for at, phase in enumerate(phases):
        if phase.name in (_SYNC, _DROP_CACHE):
            continue
        key = _key(phase)
        if key not in commands:
            command = _Command.of(phase)
            commands[key] = (command, command.iterations)
        command, iterations = commands[key]
        run = found[-1] if found else None
        if run is None or run.key != key or run.counts.get(phase.name, 0) >= iterations:
            run = _Run(command, key)
            found.append(run)
        run.at.append(at)
        run.counts[phase.name] = run.counts.get(phase.name, 0) + 1
    return found


def _synced_milliseconds(phases: Sequence[Phase], at: int) -> int | None:
    """Return how long the sync lasted that followed a phase, if there was one."""
    after = phases[at + 1] if at + 1 < len(phases) else None
    if after is None or after.name != _SYNC or _key(after) != _key(phases[at]):
        return None
    return after.milliseconds


def _caches_dropped(phases: Sequence[Phase], at: int) -> bool:
    """Tell whether the caches were synced and dropped just before a phase."""
    before: set[str] = set()
    for phase in reversed(phases[max(0, at - 4) : at]):
        if phase.name not in (_SYNC, _DROP_CACHE) or _key(phase) != _key(phases[at]):
            break
        before.add(phase.name)
    return {_SYNC, _DROP_CACHE} <= before


def record(
    name: str, phases: Sequence[Phase], *, cut_line: int | None, text_lines: Sequence[int], hint: str
) -> Record:
    """Return the record of a file.

    Args:
        name: The format.
        phases: Its phases in order, those that are not read included.
        cut_line: The line within which the file ends, if it does.
        text_lines: Lines that are none of elbencho's.
        hint: The option that writes this format, for the messages.

    Raises:
        UnreadableDocument: `bad_number`, `inconsistent_row`, `missing_key`, `contradictory_setup`, `no_results`.
    """
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    runs = _runs(phases)
    for number, run in enumerate(runs):
        first = len(made)
        lacking: list[str] = []
        for operation_name, operation in OPERATIONS.items():
            at = [each for each in run.at if phases[each].name == operation_name]
            for new, found in _measurements(number, operation, phases, at, run.command):
                doubts += [each.about(len(made)) for each in found]
                add(made, new)
            wanted = run.command.iterations if run.command.asks_for(operation) else 0
            if len(at) < wanted and not _is_read_otherwise(run, operation_name):
                lacking.append(f"{len(at)} of {wanted} {operation_name} phases are there")
        if number == len(runs) - 1 and cut_line is not None:
            lacking.append(f"the file ends within line {cut_line}")
        about = range(first, len(made))
        doubts += [each.about(place) for place in about for each in _lacks(run, lacking)]
    if not made:
        raise _nothing(phases, cut_line)
    if len(runs) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {len(runs)} runs, each of which was read; post them one by one where "
                "their conditions differ.",
            )
        )
    if text_lines:
        count = len(text_lines)
        doubts.append(
            Doubt(
                code=DoubtCode.MIXED_LOG_LINES,
                message=f"{count} line{'' if count == 1 else 's'} that are none of elbencho's were passed over, the "
                f"first of them line {text_lines[0]}; post the file that {hint} wrote.",
            )
        )
    doubts += repetition_doubts(made)
    return Record(
        tool="elbencho",
        tool_version=next((each.version for each in phases if each.version), None),
        format=name,
        ran_at=min((each.started for each in phases if each.started), default=None),
        measurements=made,
        doubts=ior.merged(doubts, len(made)),
    )


def _is_read_otherwise(run: _Run, operation_name: str) -> bool:
    """Tell whether a phase ran under a name that is not read: `WRITE+s`, `RWMIX70`, `MIX-T4`."""
    mixes = ("RWMIX", "MIX-T", "NET") if operation_name == "WRITE" else ()
    return any(each.startswith((f"{operation_name}+", f"{operation_name}-", *mixes)) for each in run.counts)


def _lacks(run: _Run, lacking: Sequence[str]) -> list[Doubt]:
    if not lacking:
        return []
    if run.command.time_limit and "ends within" not in lacking[-1]:
        return [
            Doubt(
                code=DoubtCode.REPS_SKIPPED,
                message="A time limit (--timelimit) ended the run before all its phases: "
                f"{lacking[0]}; raise it, or ask for fewer.",
            )
        ]
    return [
        Doubt(
            code=DoubtCode.INCOMPLETE_RUN,
            message=f"The run is incomplete: {lacking[0]}; let it run to its end and post the whole file.",
        )
    ]


def _nothing(phases: Sequence[Phase], cut_line: int | None) -> UnreadableDocument:
    if cut_line is not None:
        return UnreadableDocument(
            "no_results",
            f"The file ends within line {cut_line}, and no whole line of a WRITE or READ stands before it; post the "
            "whole file.",
            line=cut_line,
        )
    what = (
        "phases that mix reads and writes, whose figures cannot be told apart"
        if any("MIX" in each.name or "+" in each.name for each in phases)
        else "no WRITE or READ phase that moved data"
    )
    line = phases[0].place.line if phases else 1
    return UnreadableDocument(
        "no_results", f"The file has {what}; post that of a run with -w or -r.", line=line
    )


# Measurements


def _planned(phase: Phase, command: _Command) -> tuple[int, ...]:
    """Return what a phase can have been meant to move, nothing where that is not certain. [bytes]"""
    numbers, size = phase.numbers, phase.numbers.get("file_size")
    if not size or phase.random is not False or phase.ranks is None or not command.keeps_the_amount:
        return ()
    if phase.path_type == "dir" and "dirs" in numbers and "files" in numbers:
        return (phase.ranks * numbers["dirs"] * numbers["files"] * size,)
    if phase.path_type in ("file", "blockdev") and "paths" in numbers:
        # The hosts share the files, or each has its own.
        return (numbers["paths"] * size, numbers["paths"] * size * numbers["hosts"])
    return ()


def _exact_bytes(phase: Phase, planned: Sequence[int]) -> int | None:
    """Return the bytes moved, where they are known to the byte."""
    if phase.bytes is None or phase.bytes_step == 0:
        return phase.bytes
    fitting = [each for each in planned if phase.bytes <= each < phase.bytes + phase.bytes_step]
    if fitting:
        return fitting[0]
    block = phase.numbers.get("block_size")
    return (
        phase.bytes
        if block and phase.random is False and block % phase.bytes_step == 0 and not planned
        else None
    )


def _measurements(
    run: int, operation: Operation, phases: Sequence[Phase], at: Sequence[int], command: _Command
) -> list[tuple[Measurement, list[Doubt]]]:
    """Return one operation of a run over its iterations, and the create rate that goes with a write of small files."""
    if not at:
        return []
    own = [phases[each] for each in at]
    for phase in own:
        _check(phase)
        command.check(phase)
        if phase.setup != own[0].setup:
            raise refusal(
                "contradictory_setup",
                "has another set-up than the phase of its kind before it in the same run; post one whole file.",
                phase.place,
            )
    found: list[tuple[Measurement, list[Doubt]]] = []
    first = own[0]
    numbers = first.numbers
    block, size = numbers.get("block_size"), numbers.get("file_size")
    creates = (
        operation is Operation.WRITE
        and first.path_type == "dir"
        and size is not None
        and size <= min(block or 0, _SMALL_FILE_BYTES)
        and all(phase.entries_per_second for phase in own)
    )
    moved = [phase for phase in own if phase.rate is not None]
    if any(phase.rate == 0 for phase in moved):
        if not creates or any(phase.bytes_step == 0 for phase in moved):
            place = next(phase.place for phase in moved if phase.rate == 0)
            raise refusal(
                "bad_number",
                "has a bandwidth of zero, or one that rounds to it; only a positive one can have been measured.",
                place,
            )
    elif moved:
        if len(moved) != len(own):
            place = next(phase.place for phase in own if phase.rate is None)
            raise refusal("missing_key", "has no bandwidth; post the file as elbencho wrote it.", place)
        found.append(_bandwidth(run, operation, phases, at, command))
    if creates:
        repetitions = [
            Repetition(per_second=float(phase.entries_per_second or 0), total_seconds=_seconds(phase))
            for phase in own
        ]
        made = _described(run, Operation.FILE_CREATE, first, command).model_copy(
            update={
                "fsync": False,
                "repetitions": repetitions,
                "per_second": spread([float(phase.entries_per_second or 0) for phase in own]),
                "total_seconds": _total_seconds(repetitions),
            }
        )
        found.append((made, [*_sync_doubts(phases, at, Operation.FILE_CREATE), *_topology(made)]))
    return found


def _seconds(phase: Phase) -> float | None:
    return phase.milliseconds / 1e3 if phase.milliseconds else None


def _total_seconds(repetitions: Sequence[Repetition]) -> Spread | None:
    return spread([each.total_seconds for each in repetitions if each.total_seconds is not None])


def _described(run: int, operation: Operation, phase: Phase, command: _Command) -> Measurement:
    """Return a measurement with what its set-up says, and no figures."""
    numbers = phase.numbers
    hosts, ranks, size = numbers.get("hosts"), phase.ranks, numbers.get("file_size")
    nodes = None if hosts is None else command.nodes(hosts)
    block = segments = None
    planned = _planned(phase, command)
    moved = _exact_bytes(phase, planned)
    if ranks and moved is not None and moved in planned:
        if phase.path_type == "dir":
            block, segments = size, numbers["dirs"] * numbers["files"]
        elif moved % ranks == 0:
            block, segments = moved // ranks, 1
    file_per_process = None
    if phase.path_type == "dir":
        file_per_process = True
    elif phase.path_type == "file" and numbers.get("paths") == 1 and (ranks or 1) > 1:
        file_per_process = False
    return Measurement(
        run=run,
        operation=operation,
        file_per_process=file_per_process,
        ranks=ranks,
        nodes=nodes,
        ranks_per_node=ranks // nodes if ranks and nodes and ranks % nodes == 0 else None,
        block_bytes=block,
        transfer_bytes=numbers.get("block_size"),
        segments=segments,
        repetitions_requested=command.iterations if command.words else None,
        repetitions=[],
    )


def _bandwidth(
    run: int, operation: Operation, phases: Sequence[Phase], at: Sequence[int], command: _Command
) -> tuple[Measurement, list[Doubt]]:
    own = [phases[each] for each in at]
    rates = [(phase.rate or 0) / GB for phase in own]
    repetitions: list[Repetition] = []
    differs = False
    for phase, rate in zip(own, rates, strict=True):
        planned = _planned(phase, command)
        moved = _exact_bytes(phase, planned)
        low, high = phase.bytes or 0, (phase.bytes or 0) + phase.bytes_step
        differs |= bool(planned) and not any(low <= each <= high for each in planned)
        repetitions.append(Repetition(gb_per_second=rate, bytes=moved, total_seconds=_seconds(phase)))
    made = _described(run, operation, own[0], command).model_copy(
        update={
            "fsync": False if operation is Operation.WRITE and not _is_object_store(own[0]) else None,
            "repetitions": repetitions,
            "gb_per_second": spread(rates),
            "total_seconds": _total_seconds(repetitions),
        }
    )
    doubts: list[Doubt] = []
    if differs:
        doubts.append(_differs(operation, command))
    if operation is Operation.WRITE:
        doubts += _sync_doubts(phases, at, operation)
    else:
        doubts += _cache_doubts(phases, at, made.nodes, command)
    return made, doubts + _topology(made)


def _differs(operation: Operation, command: _Command) -> Doubt:
    if command.time_limit:
        return Doubt(
            code=DoubtCode.STONEWALLED,
            message=f"The bytes of a {operation} are not those planned, as when --timelimit ends it; repeat it "
            "without, or size the test to finish.",
        )
    return Doubt(
        code=DoubtCode.INCOMPLETE_RUN,
        message=f"The bytes of a {operation} are not those of the files it was to move, and no time limit says why; "
        "let it run to its end.",
    )


def _is_object_store(phase: Phase) -> bool:
    return phase.path_type in ("bucket", "object")


def _sync_doubts(phases: Sequence[Phase], at: Sequence[int], operation: Operation) -> list[Doubt]:
    """Return the doubt about a write: elbencho times no sync with it."""
    own = [phases[each] for each in at]
    if _is_object_store(own[0]):
        return [
            Doubt(
                code=DoubtCode.FSYNC_UNKNOWN,
                message="The file does not say whether the object store had made the data durable when it answered; "
                "ask its vendor.",
            )
        ]
    synced = [_synced_milliseconds(phases, each) for each in at]
    message = "elbencho was run without --sync, so that the write may have ended in the page cache"
    if all(each is not None for each in synced):
        sync_seconds = sum(each or 0 for each in synced) / 1e3
        seconds = sum(phase.milliseconds or 0 for phase in own) / 1e3 + sync_seconds
        message = f"elbencho times --sync apart from the write: {sync_seconds:.3f} s followed"
        moved = [(phase.rate or 0) * (phase.milliseconds or 0) / 1e3 for phase in own]
        if operation is Operation.WRITE and seconds > 0:
            message += f", with which it would be about {sum(moved) / seconds / GB:.3g} GB/s"
    elif any(phase.direct for phase in own):
        message = "The write bypassed the page cache (--direct), and did not wait until the storage had emptied its own"
    return [
        Doubt(
            code=DoubtCode.NO_FSYNC,
            message=f"{message}; for a durable figure measure with fio (end_fsync=1) or IOR (-e).",
        )
    ]


def _cache_doubts(
    phases: Sequence[Phase], at: Sequence[int], nodes: int | None, command: _Command
) -> list[Doubt]:
    """Return the doubt about a read, unless the file shows that the page cache had no part in it."""
    if all(phases[each].direct or _caches_dropped(phases, each) for each in at):
        return []
    if nodes is not None and nodes > 1 and command.count("--rotatehosts") % nodes:
        return []
    where = (
        "The read ran on one node, which may hold in memory what it wrote or read before"
        if nodes == 1
        else "Each host may have read what it held in memory"
    )
    return [
        Doubt(
            code=DoubtCode.CACHED_READ,
            message=f"{where}; read with --direct, with --sync --dropcache, or with --rotatehosts on several hosts.",
        )
    ]


def _topology(measurement: Measurement) -> list[Doubt]:
    if measurement.nodes is None:
        return [
            Doubt(
                code=DoubtCode.UNKNOWN_TOPOLOGY,
                message="The file does not say how many hosts took part; give ?nodes= when posting it.",
            )
        ]
    if measurement.ranks is not None and measurement.ranks_per_node is None:
        return [
            Doubt(
                code=DoubtCode.UNEVEN_NODES,
                message=f"{measurement.ranks} workers ran on {measurement.nodes} nodes in unlike numbers; run the "
                "same on every node.",
            )
        ]
    return []
