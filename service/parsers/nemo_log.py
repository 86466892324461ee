"""NeMo 2 logs: the line that each rank writes after it saved or loaded a checkpoint.

    Global Checkpoint Save : Rank: 0 : Iteration: 50 : Start time: 1744408121.151s : Save duration: 4.389s
    Global Checkpoint Load : Rank : 0 : Start time : 1744407969.270s : Time spent in load_checkpoint: 9.712s

The iteration is not always there. With async saves the duration is that of the blocked part, and the log of the
first rank has a line `Scheduled async checkpoint save for …` for each of them.
"""

import re
from collections.abc import Sequence

from service.parsers.trainer_logs import (
    ASYNC_SAVE,
    LOAD,
    SAVE,
    LogFile,
    RankTimes,
    Reading,
    Stated,
    ended_after,
    latest,
    nothing_found,
    operations_of,
    seconds,
    unix_time,
    whole,
)

_LINE = re.compile(
    r"Global Checkpoint (?P<kind>Save|Load)\s*:\s*Rank\s*:\s*(?P<rank>\S+)\s*:\s*"
    r"(?:Iteration\s*:\s*(?P<iteration>\S+)\s*:\s*)?"
    r"Start time\s*:\s*(?P<start>\S+?)s\s*:\s*"
    r"(?:Save duration|Time spent in load_checkpoint)\s*:\s*(?P<duration>\S+?)s(?![A-Za-z0-9.])"
)
_HEAD = re.compile(r"Global Checkpoint (?:Save|Load)\s*:\s*Rank")
_SCHEDULED = re.compile(r"Scheduled async checkpoint save for|Async checkpoint save for step [0-9]+")

MAX_RANK = 9_999_999
MAX_STEP = 1_000_000_000


def read(files: Sequence[LogFile], stated: Stated) -> Reading:
    """Return the saves and loads of NeMo logs, whichever ranks' they are, in one file or many.

    Saves are synchronous unless the user or the log says otherwise: NeMo logs each async save as scheduled.

    Raises:
        Unconvertible: A line has an absurd number, or there is none of these lines.
    """
    is_async = any(_SCHEDULED.search(file.text) for file in files)
    save = stated.mode or (ASYNC_SAVE if is_async else SAVE)
    told: list[RankTimes] = []
    seen: set[tuple[str, ...]] = set()
    notes: list[str] = []
    for file in files:
        for number, line in file.lines():
            if "Global Checkpoint" not in line:
                continue
            found = list(_LINE.finditer(line))
            if len(found) < len(_HEAD.findall(line)):
                notes.append(f"{file.name}:{number}: the line is cut off and was left out.")
            for match in found:
                if match.groups("") in seen:  # one rank's line in its own log and in a common one
                    continue
                seen.add(match.groups(""))
                told.append(_rank_times(match, save, file, number))
    if not told:
        raise nothing_found(files, "no line with Global Checkpoint Save or Global Checkpoint Load")
    told.sort(key=lambda record: record.started_at.timestamp() if record.started_at else 0.0)
    assumed = None
    if stated.mode is None and not is_async and any(record.op == SAVE for record in told):
        assumed = "no line says that a save was scheduled as async, so all saves were read as synchronous"
    return Reading(
        checkpointer="megatron-core",
        software={"trainer": "nemo"},
        operations=operations_of(told),
        last_at=latest([record.ended_at for record in told if record.ended_at is not None]),
        assumed_mode=assumed,
        notes=notes,
    )


def _rank_times(match: re.Match[str], save: str, file: LogFile, number: int) -> RankTimes:
    rank = whole(match["rank"], file, number, what="rank", most=MAX_RANK)
    duration = seconds(match["duration"], file, number, zero=match["kind"] == "Save" and save == ASYNC_SAVE)
    start = unix_time(match["start"], file, number)
    op = save if match["kind"] == "Save" else LOAD
    about = {}
    if match["iteration"] not in (None, "None"):
        about["step"] = whole(match["iteration"], file, number, what="iteration", most=MAX_STEP)
    blocks_only = op == ASYNC_SAVE
    return RankTimes(
        op=op,
        rank=rank,
        times={"blocked_seconds" if blocks_only else "total_seconds": duration},
        key=about.get("step"),
        started_at=start,
        # When an async save was safe, its line does not say.
        ended_at=None if blocks_only else ended_after(start, duration),
        about=about,
    )
