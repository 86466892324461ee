"""DLIO's results: `summary.json`, and every rank's `<rank>_per_epoch_stats.json` with the time of each checkpoint.

The summary has the size of a checkpoint (`checkpoint_size_GB`, which is GiB in spite of its name), the processes
and the hosts. Its times are of rank 0 only and its rates are means of rates, so neither is used. A rank's file has,
by epoch, `save_ckpt<n>` and `load_ckpt<n>` with a `duration` in seconds, and `start` and `end` without a zone.
"""

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from service.errors import UnreadableDocument
from service.parsers.dlio_summary import Summary, read_summary
from service.parsers.document import Document
from service.parsers.trainer_logs import (
    LOAD,
    SAVE,
    Json,
    LogFile,
    RankTimes,
    Reading,
    Stated,
    Unconvertible,
    latest,
    nothing_found,
    operations_of,
    seconds,
)

_RANK_FILE = re.compile(r"(?:^|[^0-9])([0-9]{1,7})_per_epoch_stats\.json$")
_OTHER_FILE = re.compile(r"_output\.json$")
_CHECKPOINT = re.compile(r"(save|load)_ckpt([0-9]{1,9})")


def read(files: Sequence[LogFile], stated: Stated) -> Reading:
    """Return the saves and loads of one DLIO run, from its summary and its ranks' files.

    Raises:
        Unconvertible: A file is not what DLIO writes, two are of the same rank, or none has a checkpoint.
    """
    summaries: list[tuple[LogFile, Summary]] = []
    told: list[RankTimes] = []
    times: list[datetime] = []
    rank_of: dict[int, str] = {}
    notes: list[str] = []
    for file in files:
        if _OTHER_FILE.search(file.name):
            notes.append(f"{file.name}: holds no checkpoint times and was left out.")
            continue
        value = loose_json(file)
        if "num_accelerators" in value or "num_hosts" in value:
            summaries.append((file, _summary(file)))
            continue
        named = _RANK_FILE.search(file.name)
        if named is None:
            raise Unconvertible(
                f"{file.name}: neither a summary.json nor named <rank>_per_epoch_stats.json, which tells the rank."
            )
        rank = int(named[1])
        if rank in rank_of:
            raise Unconvertible(
                f"{file.name}: rank {rank} has {rank_of[rank]} already; convert one run at a time."
            )
        rank_of[rank] = file.name
        told += _rank_times(file, value, rank, times)
    if len(summaries) > 1:
        raise Unconvertible(f"{summaries[1][0].name}: a second summary.json; convert one run at a time.")
    if not told:
        raise nothing_found(
            files,
            "no save_ckpt or load_ckpt; give every rank's <rank>_per_epoch_stats.json beside summary.json",
        )
    summary = summaries[0][1] if summaries else None
    if summary is None:
        notes.append("No summary.json was given, so the size of a checkpoint is not known.")
    operations = operations_of(told, zone=stated.zone)
    for operation in operations:
        if summary is not None and "error" not in operation:
            # DLIO's own throughput takes either to have moved the whole checkpoint.
            operation |= dict.fromkeys(("checkpoint_bytes", "bytes_total"), summary.checkpoint_bytes)
    return Reading(
        checkpointer="dlio",
        operations=operations,
        world_size=None if summary is None else summary.world_size,
        nodes=None if summary is None else summary.nodes,
        last_at=latest(times),
        notes=notes,
    )


def _summary(file: LogFile) -> Summary:
    """Return what a summary.json says, as the reader of uploads reads it.

    Raises:
        Unconvertible: It is none that can be used.
    """
    try:
        return read_summary(Document(file.text))
    except UnreadableDocument as error:
        where = error.pointer if error.pointer and error.pointer not in error.detail else ""
        raise Unconvertible(f"{file.name}: {where}{' ' if where else ''}{error.detail}") from None


def loose_json(file: LogFile) -> Json:
    """Return the JSON object of a file whose writer lets bare NaN pass.

    Raises:
        Unconvertible: It holds none.
    """
    try:
        value: Any = json.loads(file.text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise file.refusal(error.lineno, f"The file is not JSON: {error.msg}.") from None
    except (RecursionError, ValueError):
        raise file.refusal(1, "The file cannot be read as JSON.") from None
    if not isinstance(value, dict):
        raise file.refusal(1, "The file should hold one JSON object.")
    return value


def _rank_times(file: LogFile, stats: Json, rank: int, times: list[datetime]) -> list[RankTimes]:
    told = []
    for epoch, parts in stats.items():
        if not isinstance(parts, dict):
            continue
        for name, part in parts.items():
            found = _CHECKPOINT.fullmatch(name)
            if found is None or not isinstance(part, dict):
                continue
            place = f"#/{epoch}/{name}"
            started_at, ended_at = (_time(file, part, which, place) for which in ("start", "end"))
            times += [at for at in (started_at, ended_at) if at is not None]
            own: Json = {}
            error = None
            if (duration := part.get("duration")) is None:
                error = f"DLIO recorded the start of {name} on rank {rank} and not its duration."
            else:
                is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
                token = repr(duration) if is_number and math.isfinite(duration) else str(duration)
                if not is_number:
                    raise file.refusal(f"{place}/duration", f"{token[:40]!r} is no duration.")
                own["total_seconds"] = seconds(token, file, f"{place}/duration", zero=False)
            told.append(
                RankTimes(
                    op=SAVE if found[1] == "save" else LOAD,
                    rank=rank,
                    times=own,
                    key=(epoch, name),
                    started_at=started_at,
                    ended_at=ended_at,
                    error=error,
                )
            )
    return told


def _time(file: LogFile, part: Json, which: str, place: str) -> datetime | None:
    if (text := part.get(which)) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise file.refusal(f"{place}/{which}", f"{str(text)[:40]!r} is no time.") from None
