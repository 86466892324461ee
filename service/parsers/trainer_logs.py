"""What the readers of trainers' files share: the files, what each gives, and how ranks make an operation.

These files are read by `stallbudget convert`, on the user's side, and never uploaded: each reader
(`torch_dcp_log.py`, `nemo_log.py`, …) turns them into the operations of one dcp-timing document, and
`conversion.py` puts the document together. No reader makes up a figure: what its files do not say comes from
what the user stated, or is missing.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import zip_longest
from typing import Any

Json = dict[str, Any]

SAVE, ASYNC_SAVE, LOAD = "save", "async_save", "load"

MAX_SECONDS = 1_000_000
"""No operation of the format takes longer; a log that says so has another unit, or is damaged."""

MILLISECONDS = 1e-3
NANOSECONDS = 1e-9

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"  # as a terminal gets them
    r"|\^\[\[[0-9;]*m"  # as `cat -v` shows the colours
)
_LOCAL_TIME = re.compile(
    r"\b(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?(Z|[+-]\d\d:?\d\d)?(?![\d:])"
)
_STEP_IN_NAME = re.compile(r"(?:^|[^a-z])(?:step|iter|iteration)[-_=]?0*(\d{1,9})(?!\d)", re.IGNORECASE)
_CHECKPOINT_CHARACTERS = 256


class Unconvertible(ValueError):
    """Files that cannot be made a dcp-timing document. The message names the file, and the line if it is one."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file that a trainer or a benchmark left behind.

    Attributes:
        name: As the user named it; some tools write the rank into it.
        text: Its decoded text, every line ended by a bare newline.
    """

    name: str
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers from 1, without colours and other orders to a terminal."""
        for number, line in enumerate(self.text.split("\n"), start=1):
            yield number, _ESCAPES.sub("", line) if "\x1b" in line or "^[" in line else line

    def refusal(self, line: int | str, detail: str) -> Unconvertible:
        """Return the error that names this file, a line of it (or a place in its JSON), and what is wrong there."""
        return Unconvertible(f"{self.name}:{line}: {detail}")


@dataclass(frozen=True, slots=True)
class Stated:
    """What the user said of a run, because its files may not.

    Attributes:
        run_id: The name that the run is to have.
        storage_label: Which storage was measured.
        storage_kind: What kind of storage that is, in the format's words.
        nodes: How many nodes took part.
        world_size: How many ranks.
        mode: `save` or `async_save`: what the log's saves are, where their lines cannot tell.
        checkpoint_bytes: Size of each checkpoint on storage: the sum of its `*.distcp` files. [B]
        saved_world_size: How many ranks wrote the checkpoints that were loaded.
        checkpointer_version: Version of what made the checkpoints.
        label: Free text.
        zone: Time zone of times that are written without one.
    """

    run_id: str | None = None
    storage_label: str | None = None
    storage_kind: str | None = None
    nodes: int | None = None
    world_size: int | None = None
    mode: str | None = None
    checkpoint_bytes: int | None = None
    saved_world_size: int | None = None
    checkpointer_version: str | None = None
    label: str | None = None
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found in its files.

    Attributes:
        checkpointer: What made the checkpoints, as `software.checkpointer` of the format.
        operations: As the format has them, in their order. A `summary` without `ranks_reporting` is over all.
        software: More of `software`, as far as the files tell.
        world_size: As the files say, if they do; likewise `nodes`.
        last_at: The latest time in the files; without a zone where they give none.
        unknown_mode: Why the files cannot tell `save` from `async_save`, where they cannot.
        assumed_mode: Why saves were read as synchronous, where that rests on what the files do not hold.
        notes: What was left out or assumed, for the user to see.
    """

    checkpointer: str
    operations: list[Json]
    software: Json = field(default_factory=dict)
    world_size: int | None = None
    nodes: int | None = None
    last_at: datetime | None = None
    unknown_mode: str | None = None
    assumed_mode: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RankTimes:
    """What one rank tells of one operation.

    Attributes:
        op: The kind of operation.
        rank: The rank.
        times: Its times, as a rank record of the format has them.
        key: What the ranks' records of one operation have in common, such as a checkpoint or an iteration.
        started_at: When it began; without a zone where the file gives none. Likewise `ended_at`.
        about: Fields of the whole operation: step, checkpoint, settings.
        error: What went wrong, if it failed.
    """

    op: str
    rank: int
    times: Json
    key: object = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    about: Json = field(default_factory=dict)
    error: str | None = None


def seconds(
    token: str, file: LogFile, line: int | str, *, unit_seconds: float = 1.0, zero: bool = True
) -> float:
    """Return the duration that a token says. [s]

    Args:
        token: The number as it is written.
        file: Where it stands, for the error.
        line: Likewise.
        unit_seconds: How long its unit is. [s]
        zero: Whether no time at all is acceptable.

    Raises:
        Unconvertible: It is no number, or none that an operation can have taken.
    """
    try:
        value = float(token)
    except ValueError:
        raise file.refusal(line, f"{token[:40]!r} is no duration.") from None
    if not math.isfinite(value) or value < 0 or value * unit_seconds > MAX_SECONDS:
        raise file.refusal(line, f"{token[:40]} is no duration that an operation can have taken.")
    if value == 0 and not zero:
        raise file.refusal(line, "An operation that took no time was not measured; take the line out.")
    # Nanoseconds are as fine as any of these clocks; beyond them are the rounding errors of the unit.
    return round(value * unit_seconds, 9)


def whole(token: str, file: LogFile, line: int | str, *, what: str, most: int) -> int:
    """Return the count or index that a token says, from 0 to `most`.

    Raises:
        Unconvertible: It is none.
    """
    if not re.fullmatch(r"[0-9]{1,18}", token) or int(token) > most:
        raise file.refusal(line, f"{token[:40]!r} is no {what}.")
    return int(token)


def unix_time(token: str | float, file: LogFile, line: int | str) -> datetime:
    """Return the instant that a count of seconds since 1970 says.

    Raises:
        Unconvertible: It is no number, or no clock of a computer shows it.
    """
    try:
        unix_seconds = float(token)
        if 0 < unix_seconds < math.inf:
            return datetime.fromtimestamp(unix_seconds, UTC)
    except (OverflowError, OSError, ValueError):
        pass
    raise file.refusal(line, f"{str(token)[:40]!r} is no time in seconds since 1970.")


def written_time(text: str) -> datetime | None:
    """Return the last date and time written in a text, with its zone if it has one; None without any."""
    found = None
    for found in _LOCAL_TIME.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    if found is None:
        return None
    day, clock, fraction, zone = found.groups(default="")
    zone = "+00:00" if zone == "Z" else zone
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0').ljust(6, '0')}{zone}")
    except ValueError:  # the 30th of February
        return None


def last_written_time(files: Sequence[LogFile]) -> datetime | None:
    """Return the last time written in any of the logs: that of the last line which has one, of each file."""
    found = []
    for file in files:
        for line in reversed(file.text.split("\n")):
            if (at := written_time(line)) is not None:
                found.append(at)
                break
    return latest(found)


def latest(times: Sequence[datetime]) -> datetime | None:
    """Return the latest of some times; those without a zone count as UTC among others."""
    return max(times, key=lambda at: at if at.tzinfo else at.replace(tzinfo=UTC), default=None)


def step_in(name: str) -> int | None:
    """Return the training step that a checkpoint's name says (`step-10`, `iter_0000050`), if it does."""
    found = _STEP_IN_NAME.search(name)
    return int(found[1]) if found else None


def about_checkpoint(path: str) -> Json:
    """Return the fields `checkpoint` and `step` of an operation on a checkpoint, from its path or address."""
    name = path.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    if not name:
        return {}
    about: Json = {}
    if (step := step_in(name)) is not None:
        about["step"] = step
    if len(name) <= _CHECKPOINT_CHARACTERS:
        about["checkpoint"] = name
    return about


def rfc_3339(at: datetime) -> str:
    """Return an instant as the format writes it: in UTC, with a Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def zoned(at: datetime | None, zone: tzinfo | None) -> datetime | None:
    """Return a time with its zone, else with the stated one; None where neither is known."""
    if at is None or at.tzinfo is not None:
        return at
    return at.replace(tzinfo=zone) if zone is not None else None


def operations_of(told: Sequence[RankTimes], *, zone: tzinfo | None = None) -> list[Json]:
    """Return the operations that the ranks' records make up, in the order in which they started.

    Every rank goes through the same operations, so the nth record of a rank with some key belongs with the nth
    of the others. Where ranks have unlike many, and times are known, those belong together that overlap in time.
    Where starts are not known as instants, the order is that of the records.

    Args:
        told: Records in the order of each rank's operations.
        zone: Of the times without a zone; without it they order and group, and are not given.
    """
    places: dict[tuple[str, object], dict[int, list[RankTimes]]] = {}
    order = {id(record): at for at, record in enumerate(told)}
    for record in told:
        places.setdefault((record.op, record.key), {}).setdefault(record.rank, []).append(record)
    groups = [group for by_rank in places.values() for group in _groups(list(by_rank.values()))]
    groups.sort(key=lambda group: min(order[id(record)] for record in group))
    made = [(_started(group, zone), _operation(group, zone)) for group in groups]
    starts = [start for start, _ in made if start is not None]
    if len(starts) == len(made):
        made.sort(key=lambda pair: pair[0] or datetime.max.replace(tzinfo=UTC))
    return [operation for _, operation in made]


def _groups(by_rank: list[list[RankTimes]]) -> list[list[RankTimes]]:
    """Return which records of one key belong to one operation."""
    flat = [record for records in by_rank for record in records]
    if len({len(records) for records in by_rank}) == 1 or any(_window(record) is None for record in flat):
        return [[record for record in group if record is not None] for group in zip_longest(*by_rank)]
    groups: list[list[RankTimes]] = []
    open_until = datetime.min.replace(tzinfo=UTC)
    for record in sorted(flat, key=lambda record: _window(record) or (open_until, open_until)):
        start, end = _window(record) or (open_until, open_until)
        if not groups or start > open_until or any(other.rank == record.rank for other in groups[-1]):
            groups.append([])
            open_until = end
        groups[-1].append(record)
        open_until = max(open_until, end)
    return groups


def _window(record: RankTimes) -> tuple[datetime, datetime] | None:
    start, end = zoned(record.started_at, UTC), zoned(record.ended_at, UTC)
    if start is None:
        return None
    if end is None:  # of an async save whose end is not told, the time that training stood still
        end = ended_after(start, record.times.get("blocked_seconds", 0.0))
    return start, end or start


def _started(group: list[RankTimes], zone: tzinfo | None) -> datetime | None:
    starts = [zoned(record.started_at, zone) for record in group]
    known = [start for start in starts if start is not None]
    return min(known) if len(known) == len(starts) else None


def _operation(group: list[RankTimes], zone: tzinfo | None) -> Json:
    group = sorted(group, key=lambda record: record.rank)
    operation: Json = {"op": group[0].op}
    errors = [record.error for record in group if record.error is not None]
    if errors:
        operation |= {"status": "failed", "error": errors[0][:2048]}
    for record in group:
        for name, value in record.about.items():
            operation.setdefault(name, value)
    start = _started(group, zone)
    ends = [zoned(record.ended_at, zone) for record in group]
    known_ends = [end for end in ends if end is not None]
    if start is not None:
        operation["started_at"] = rfc_3339(start)
        if len(known_ends) == len(ends):
            operation["ended_at"] = rfc_3339(max(known_ends))
    operation["ranks"] = []
    for record in group:
        own: Json = {"rank": record.rank}
        if (at := zoned(record.started_at, zone)) is not None:
            own["started_at"] = rfc_3339(at)
        operation["ranks"].append(own | record.times)
    return operation


def ended_after(start: datetime | None, duration_seconds: float) -> datetime | None:
    """Return the time so long after a start; None where that is not known."""
    try:
        return None if start is None else start + timedelta(seconds=duration_seconds)
    except OverflowError:
        return None


def nothing_found(files: Sequence[LogFile], wanted: str) -> Unconvertible:
    """Return the error for files none of which holds what a reader looks for."""
    names = ", ".join(file.name for file in files[:5]) + (", …" if len(files) > 5 else "")
    return Unconvertible(f"{names}: there is {wanted}.")
