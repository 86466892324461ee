"""Megatron-LM logs: the timers `save-checkpoint` and `load-checkpoint`, in each of their three shapes.

    (min, max) time across ranks (ms):
        save-checkpoint ................................: (1004.44, 1072.79)      timing_log_option minmax
    max time across ranks (ms):
        save-checkpoint ................................: 1072.79                 max
    times across ranks (ms):
      save-checkpoint:
         rank  0: 1004.44                                                         all

Milliseconds, and one aggregate over all ranks but in the last shape. With `--async-save` the same timer holds the
blocked part only. The timer does not say so; the log does where it lists the arguments (`async_save ... True`) or
has a line `scheduled an async checkpoint save`. `save-checkpoint-non-persistent` is another timer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.parsers.trainer_logs import (
    ASYNC_SAVE,
    LOAD,
    MILLISECONDS,
    SAVE,
    Json,
    LogFile,
    Reading,
    Stated,
    last_written_time,
    nothing_found,
    seconds,
    whole,
)

_TIMER = re.compile(
    r"(?<![\w-])(?P<kind>save|load)-checkpoint\s*\.*\s*:\s*"
    r"(?:\((?P<min>[^,()]+),(?P<max>[^()]+)\)|(?P<only>[^\s()]+)|(?P<ranks>)$)"
)
_HEAD = re.compile(r"(?<![\w-])(?:save|load)-checkpoint\s*\.*\s*:")
_RANK = re.compile(r"^(?:\W|[0-9]+:)*rank\s+(?P<rank>[0-9]{1,7}):\s*(?P<time>\S+)\s*$")
_SAVING = re.compile(r"(?:\bsaving|scheduled an async) checkpoint (?:save )?at iteration\s+([0-9]{1,9})")
_SAVED = re.compile(r"successfully saved checkpoint (?:from|at) iteration\s+([0-9]{1,9})")
_LOADED = re.compile(r"successfully loaded checkpoint.*\bat iteration\s+([0-9]{1,9})")
_NOTHING_LOADED = re.compile(r"will not load any checkpoints")
_ASYNC_ARGUMENT = re.compile(r"\basync_save\s*\.{2,}\s*(True|False)\b")
_WORLD_ARGUMENT = re.compile(r"\bworld_size\s*\.{2,}\s*([0-9]{1,8})\b")
_SCHEDULED = re.compile(r"scheduled an async checkpoint save")


@dataclass(slots=True)
class _Found:
    """What the logs hold so far."""

    timers: list[Json] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_async: bool | None = None
    world_size: int | None = None


def read(files: Sequence[LogFile], stated: Stated) -> Reading:
    """Return the saves and loads of Megatron-LM's timers.

    Raises:
        Unconvertible: A timer has an absurd number, or there is no such timer.
    """
    found = _Found(is_async={None: None, ASYNC_SAVE: True, SAVE: False}[stated.mode])
    for file in files:
        _read_file(file, found)
    found.timers = [timer for timer in found.timers if "times" in timer or timer["ranks"]]
    if not found.timers:
        raise nothing_found(files, "no timer save-checkpoint or load-checkpoint")
    mode = stated.mode or {None: None, True: ASYNC_SAVE, False: SAVE}[found.is_async]
    saved = any(timer["kind"] == SAVE for timer in found.timers)
    return Reading(
        checkpointer="megatron-core",
        software={"trainer": "megatron-lm"},
        operations=[_operation(timer, mode or SAVE) for timer in found.timers],
        world_size=found.world_size,
        last_at=last_written_time(files),
        unknown_mode=(
            "the timer save-checkpoint is of the whole save, or with --async-save of its blocked part"
            if mode is None and saved
            else None
        ),
        notes=found.notes,
    )


def _read_file(file: LogFile, found: _Found) -> None:
    step: dict[str, int] = {}
    loads_nothing = False
    listing: Json | None = None  # the timer whose ranks follow, a line each
    for number, line in file.lines():
        if (argument := _ASYNC_ARGUMENT.search(line)) is not None:
            found.is_async = argument[1] == "True"
        if _SCHEDULED.search(line):
            found.is_async = True
        if (size := _WORLD_ARGUMENT.search(line)) is not None:
            found.world_size = int(size[1]) or None
        if (saving := _SAVING.search(line)) is not None:
            step[SAVE] = int(saving[1])
        elif (
            not found.is_async and (saved := _SAVED.search(line)) is not None
        ):  # of an async one it comes late
            step.setdefault(SAVE, int(saved[1]))
        if (loaded := _LOADED.search(line)) is not None:
            step[LOAD] = int(loaded[1])
        loads_nothing |= _NOTHING_LOADED.search(line) is not None
        if listing is not None and (rank := _RANK.match(line)) is not None:
            listing["ranks"].append(
                (
                    whole(rank["rank"], file, number, what="rank", most=9_999_999),
                    seconds(rank["time"], file, number, unit_seconds=MILLISECONDS),
                )
            )
            continue
        listing = None
        timers = list(_TIMER.finditer(line))
        if len(timers) < len(_HEAD.findall(line)):
            found.notes.append(f"{file.name}:{number}: the line is cut off and was left out.")
        for match in timers:
            kind = match["kind"]
            if kind == LOAD and loads_nothing:
                found.notes.append(
                    f"{file.name}:{number}: the log says that no checkpoint was there to load."
                )
                loads_nothing = False
                continue
            timer: Json = {"kind": kind, "ranks": [], "step": step.pop(kind, None)}
            if match["ranks"] is None:
                timer["times"] = _aggregate(match, file, number)
            else:
                listing = timer
            found.timers.append(timer)


def _aggregate(match: re.Match[str], file: LogFile, number: int) -> Json:
    if match["only"] is not None:
        return {"max": seconds(match["only"], file, number, unit_seconds=MILLISECONDS, zero=False)}
    least = seconds(match["min"], file, number, unit_seconds=MILLISECONDS)
    most = seconds(match["max"], file, number, unit_seconds=MILLISECONDS, zero=False)
    if least > most:
        raise file.refusal(number, f"({match['min']}, {match['max']}) is no pair of least and largest time.")
    return {"min": least, "max": most}


def _operation(timer: Json, mode: str) -> Json:
    op = mode if timer["kind"] == SAVE else LOAD
    time = "blocked_seconds" if op == ASYNC_SAVE else "total_seconds"
    operation: Json = {"op": op}
    if timer["step"] is not None:
        operation["step"] = timer["step"]
    if timer["ranks"]:
        return operation | {"ranks": [{"rank": rank, time: value} for rank, value in sorted(timer["ranks"])]}
    return operation | {"summary": {time: timer["times"]}}
