"""Events of torch's DCP logger (`c10d-NullHandler-dcp_logger`), as a handler of the user's wrote them.

A line is one event, as JSON or as Python prints a dict, alone or after a log's prefix: the start, the end or the
exception of one phase on one rank. `times_spent` is nanoseconds. A checkpoint's `save` or `load` has the phases
`local_step`, `global_step` and `write_data` or `read_data` within it. An async save is `async_save`, within which
`stage_state_dict` copies the state, and then a `save` of the same checkpoint in another thread; where that runs
in another process, its events are not in the log. Bytes are not in the events.
"""

import ast
import bisect
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from service.parsers.trainer_logs import (
    ASYNC_SAVE,
    LOAD,
    NANOSECONDS,
    SAVE,
    Json,
    LogFile,
    RankTimes,
    Reading,
    Stated,
    Unconvertible,
    about_checkpoint,
    latest,
    nothing_found,
    operations_of,
    seconds,
    unix_time,
    whole,
)

_LOOKS_LIKE_ONE = re.compile(r"""['"]func_name['"]\s*:""")
_CLOSES = re.compile(r"\}")
_OPENS = re.compile(r"""\{\s*['"]""")
_OPERATIONS = (SAVE, ASYNC_SAVE, LOAD)
_PLANS = ("local_step", "global_step")
_MAX_LINE_CHARACTERS = 1_000_000
_MAX_BRACES = 100
MAX_RANK = 9_999_999


@dataclass(slots=True)
class _Call:
    """One call of a phase on one rank; times since 1970 in nanoseconds."""

    name: str
    checkpoint: str | None
    rank: int
    start_ns: int
    file: LogFile
    line: int
    end_ns: int | None = None
    spent_seconds: float | None = None
    error: str | None = None
    start_told: bool = False

    def may_hold(self, other: "_Call") -> bool:
        """Return whether another call is of the same checkpoint, as far as both say."""
        return None in (self.checkpoint, other.checkpoint) or self.checkpoint == other.checkpoint


def read(files: Sequence[LogFile], _stated: Stated) -> Reading:
    """Return the operations that the events of some ranks, in one file or many, make up.

    Raises:
        Unconvertible: An event is damaged or has an absurd number, two events contradict each other, or there
            is none.
    """
    notes: list[str] = []
    calls: dict[tuple[int, object], _Call] = {}
    world_sizes: dict[int, str] = {}
    backends: dict[str, None] = {}
    alone: list[str] = []
    for file in files:
        for number, event in _events(file, notes):
            if "world_size" in event:
                size = whole(str(event["world_size"]), file, number, what="world size", most=10_000_000)
                world_sizes.setdefault(size, f"{file.name}:{number}")
            elif file.name not in alone:
                alone.append(file.name)
            if event.get("backend"):
                backends[str(event["backend"])] = None
            _take(event, calls, file, number)
    if not calls:
        raise nothing_found(files, "no event of torch's DCP logger, a line with func_name and event")
    if len(world_sizes) > 1:
        told = ", ".join(f"{size} at {place}" for size, place in world_sizes.items())
        raise Unconvertible(f"The events are of worlds of unlike size ({told}); convert one run at a time.")
    if alone and (world_sizes or len(alone) > 1):
        raise Unconvertible(
            f"{', '.join(alone)}: events without world_size and global_rank, which are of a process without a "
            "process group, do not go together with other files; convert that file alone."
        )
    told_times = _rank_times(sorted(calls.values(), key=lambda call: call.start_ns), notes)
    if not told_times:
        raise nothing_found(files, "no save, async_save or load among the events")
    software: Json = {}
    if len(backends) == 1 and len(backend := next(iter(backends))) <= 32:
        software["collective_backend"] = backend
    return Reading(
        checkpointer="torch.distributed.checkpoint",
        software=software,
        operations=operations_of(told_times),
        # Events of a process that has no process group say neither: it is a world of its own.
        world_size=next(iter(world_sizes), 1),
        last_at=latest(
            [at for record in told_times for at in (record.ended_at, record.started_at) if at is not None]
        ),
        notes=notes,
    )


def _events(file: LogFile, notes: list[str]) -> Iterator[tuple[int, Json]]:
    """Yield the events of a file with their lines; note one that is cut off at the end of the file."""
    lines = [(number, line) for number, line in file.lines() if _LOOKS_LIKE_ONE.search(line)]
    for at, (number, line) in enumerate(lines):
        events = _events_on(line)
        yield from ((number, event) for event in events)
        if len(events) == len(_LOOKS_LIKE_ONE.findall(line)):
            continue
        if at < len(lines) - 1:
            raise file.refusal(
                number, "The event cannot be read, neither as JSON nor as a Python dict; take the line out."
            )
        notes.append(f"{file.name}:{number}: the event is cut off and was left out.")


def _events_on(line: str) -> list[Json]:
    """Return the events on a line, whatever stands before, between and after them."""
    events: list[Json] = []
    at = 0
    while len(line) <= _MAX_LINE_CHARACTERS and (opening := _OPENS.search(line, at)) is not None:
        value, at = _value_at(line, opening.start())
        if isinstance(value, dict) and "func_name" in value:
            events.append(value)
        else:
            at = opening.end()  # it may lie inside of what another program logged
    return events


def _value_at(line: str, start: int) -> tuple[Any, int]:
    """Return what JSON or Python reads from a place on, and where that ends; None where it is nothing."""
    try:
        return json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        pass
    # An event is flat, so its first brace ends it, but for one in the text of an error.
    for end in itertools.islice(_CLOSES.finditer(line, start), _MAX_BRACES):
        try:
            return ast.literal_eval(line[start : end.end()]), end.end()
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None, start


def _take(event: Json, calls: dict[tuple[int, object], _Call], file: LogFile, number: int) -> None:
    """Add what one event says to the call that it is about."""
    kind = event.get("event")
    if kind not in ("start", "end", "exception"):
        raise file.refusal(
            number, f"{str(kind)[:40]!r} is no event that torch logs: start, end or exception."
        )
    rank = whole(str(event.get("global_rank", "0")), file, number, what="rank", most=MAX_RANK)
    at_ns = event.get("time")
    if isinstance(at_ns, bool) or not isinstance(at_ns, int):
        raise file.refusal(number, "`time` should be a count of nanoseconds since 1970.")
    unix_time(at_ns * NANOSECONDS, file, number)
    name, checkpoint = str(event["func_name"]), event.get("checkpoint_id")
    call = calls.get(key := (rank, event.get("uuid") or (name, checkpoint)))
    if call is None or call.name != name or (kind == "start" and event.get("uuid") is None):
        call = calls[key] = _Call(
            name, None if checkpoint is None else str(checkpoint), rank, at_ns, file, number
        )
    if kind == "start":
        call.start_ns, call.start_told = at_ns, True
    elif kind == "exception":
        call.end_ns, call.error = at_ns, str(event.get("error") or "it ended with an exception")
    else:
        spent = event.get("times_spent")
        if isinstance(spent, bool) or not isinstance(spent, int | float):
            raise file.refusal(number, "`times_spent` should be a number of nanoseconds.")
        call.spent_seconds = seconds(str(spent), file, number, unit_seconds=NANOSECONDS)
        call.end_ns = at_ns
        if not call.start_told:
            call.start_ns = at_ns - int(spent)


def _rank_times(calls: Sequence[_Call], notes: list[str]) -> list[RankTimes]:
    """Return what each rank tells of each operation, each rank's in their order."""
    told: list[RankTimes] = []
    by_rank: dict[int, list[_Call]] = {}
    for call in calls:
        by_rank.setdefault(call.rank, []).append(call)
    for own in by_rank.values():
        writing: set[int] = set()  # the saves that belong to an async one
        for at, call in enumerate(own):
            if call.name not in _OPERATIONS or id(call) in writing:
                continue
            inner = _inner_save(call, own[at + 1 :], writing) if call.name == ASYNC_SAVE else None
            if inner is not None:
                writing.add(id(inner))
            told.append(_one(call, inner, own))
    return told


def _inner_save(async_save: _Call, later: Sequence[_Call], taken: set[int]) -> _Call | None:
    """Return the save that writes what an async save staged: the next of the same checkpoint, if it comes before
    the next async one.
    """
    for call in later:
        if call.checkpoint == async_save.checkpoint and id(call) not in taken:
            if call.name == SAVE:
                return call
            if call.name == ASYNC_SAVE:
                return None
    return None


def _one(call: _Call, inner: _Call | None, own: Sequence[_Call]) -> RankTimes:
    """Return what one rank tells of one operation.

    Args:
        call: Its save, async_save or load.
        inner: The save in the background of an async one.
        own: All calls of the rank.
    """
    io_call = call if inner is None else inner
    times: Json = {}
    end_ns = call.end_ns
    if call.name == ASYNC_SAVE:
        _add(times, "blocked_seconds", call.spent_seconds)
        # A stager that works in the background returns at once, and its call tells nothing of the copy.
        if _within(call, own, ("maybe_synchronize_staging",)) is not None:
            _add(times, "staging_seconds", _within(call, own, ("stage_state_dict",)))
        end_ns = None
        if inner is not None and inner.end_ns is not None and inner.error is None:
            _add(times, "persist_seconds", inner.spent_seconds)
            end_ns = max(inner.end_ns, call.end_ns or 0)
            times["total_seconds"] = round((end_ns - call.start_ns) * NANOSECONDS, 9)
    elif call.error is None:
        _add(times, "total_seconds", call.spent_seconds)
    if call.name != ASYNC_SAVE or inner is not None:
        _add(times, "plan_seconds", _within(io_call, own, _PLANS))
        _add(
            times, "io_seconds", _within(io_call, own, ("read_data" if call.name == LOAD else "write_data",))
        )
    error = call.error or (inner.error if inner is not None else None)
    if error is None and any(part.spent_seconds is None for part in (call, inner) if part is not None):
        error = "The log has the start of this operation and not its end."
    about = about_checkpoint(call.checkpoint) if call.checkpoint else {}
    if inner is not None:
        about["settings"] = {"async_checkpointer_type": "thread"}
    return RankTimes(
        op=call.name,
        rank=call.rank,
        times=times,
        key=call.checkpoint,
        started_at=unix_time(call.start_ns * NANOSECONDS, call.file, call.line),
        ended_at=None if end_ns is None else unix_time(end_ns * NANOSECONDS, call.file, call.line),
        about=about,
        error=error,
    )


def _within(call: _Call, own: Sequence[_Call], names: Sequence[str]) -> float | None:
    """Return the seconds of the phases with these names within a call; None where none has ended."""
    first = bisect.bisect_left(own, call.start_ns, key=_start)
    last = len(own) if call.end_ns is None else bisect.bisect_right(own, call.end_ns, key=_start)
    spent = [
        other.spent_seconds
        for other in own[first:last]
        if other.name in names and other.spent_seconds is not None and call.may_hold(other)
    ]
    return round(sum(spent), 9) if spent else None


def _start(call: _Call) -> int:
    return call.start_ns


def _add(times: Json, name: str, value: float | None) -> None:
    if value is not None:
        times[name] = value
