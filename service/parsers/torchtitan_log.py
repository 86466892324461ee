"""torchtitan logs: what the checkpoint manager says after each save, staging and load.

    Finished saving the checkpoint in 1.00 seconds.                                       a save
    Finished staging the checkpoint in 0.18 seconds.                                      an async save, blocked
    Finished loading the checkpoint in 0.91 seconds.                                      a load
    Finished saving the checkpoint (or staging if async is enabled)in 1.00 seconds.       until 2026-05: either

The older wording does not tell a save from an async save: the user has to. Times have two decimals; the wait for
the previous async save is not in the newer `staging` line. There are no bytes and no world size, and as a rule
one rank only. torchrun writes the rank in front (`[rank0]:`).
"""

import re
from collections.abc import Sequence
from datetime import datetime

from service.parsers.trainer_logs import (
    ASYNC_SAVE,
    LOAD,
    SAVE,
    Json,
    LogFile,
    RankTimes,
    Reading,
    Stated,
    Unconvertible,
    about_checkpoint,
    ended_after,
    last_written_time,
    nothing_found,
    operations_of,
    seconds,
    written_time,
)

_FINISHED = re.compile(
    r"Finished (?:(?P<saving>saving)|(?P<staging>staging)|(?P<loading>loading))"
    r"(?: the| initial| resume| additional)? checkpoint"
    r"(?P<either>\s*\(or staging if async is enabled\))?\s*in\s*(?P<duration>\S+)\s*seconds?\b"
)
_HEAD = re.compile(r"Finished (?:saving|staging|loading)(?: the| initial| resume| additional)? checkpoint")
_BEGUN = re.compile(
    r"(?:Saving|Staging) the checkpoint|Saving a (?:full|model)|Loading (?:the |\w+ )?checkpoint"
)
_LOADED_FROM = re.compile(r"Loading (?:the |\w+ )?checkpoint from (?P<path>\S+?)\.?(?:\s|$)")
_RANK = re.compile(r"\[[A-Za-z_]{1,20}([0-9]{1,7})\]:")  # torchrun puts the role before the rank
_STEP = re.compile(r"\bstep:\s*([0-9]{1,9})\b")
_LAST_STEP = re.compile(r"\bat last step, step ([0-9]{1,9})\b")

SAVED_AT_ONCE_SECONDS = 1.0
"""A save begins right after its step's line; one that begins later may be of a step that has no line."""


class _Progress:
    """Where the log of one rank has got to."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.step_at: datetime | None = None
        self.begun_at: datetime | None = None
        self.path: str | None = None


def read(files: Sequence[LogFile], stated: Stated) -> Reading:
    """Return the saves and loads of torchtitan logs.

    Raises:
        Unconvertible: A line has an absurd number, there is none of these lines, or several files do not say
            whose they are.
    """
    told: list[RankTimes] = []
    notes: list[str] = []
    unmarked: list[str] = []
    ambiguous = False
    for file in files:
        progress: dict[int, _Progress] = {}
        for number, line in file.lines():
            ranks = [(mark.start(), int(mark[1])) for mark in _RANK.finditer(line)]
            first = ranks[0][1] if ranks else 0
            _follow(progress.setdefault(first, _Progress()), line)
            found = list(_FINISHED.finditer(line))
            if len(found) < len(_HEAD.findall(line)):
                notes.append(f"{file.name}:{number}: the line is cut off and was left out.")
            for match in found:
                before = [rank for at, rank in ranks if at < match.start()]
                rank = before[-1] if before else 0
                if not before and file.name not in unmarked:
                    unmarked.append(file.name)
                ambiguous |= match["either"] is not None
                told.append(
                    _rank_times(match, rank, progress.setdefault(rank, _Progress()), stated, file, number)
                )
    if not told:
        raise nothing_found(files, "no line with Finished saving, staging or loading the checkpoint")
    if unmarked and len(files) > 1:
        raise Unconvertible(
            f"{', '.join(unmarked)}: the lines do not say their rank ([rank0]:), so several files cannot be told "
            "apart; convert one file alone, which is then taken for rank 0's."
        )
    unknown = None
    if ambiguous and stated.mode is None:
        unknown = "the older wording, `saving the checkpoint (or staging if async is enabled)`, is of either"
    return Reading(
        checkpointer="torch.distributed.checkpoint",
        software={"trainer": "torchtitan"},
        operations=operations_of(told, zone=stated.zone),
        last_at=last_written_time(files),
        unknown_mode=unknown,
        notes=notes,
    )


def _follow(progress: _Progress, line: str) -> None:
    """Note the step that a line is about, the load it announces, and when the operation began."""
    if (begun := _BEGUN.search(line)) is not None:
        progress.begun_at = written_time(line[: begun.start()])
    if (source := _LOADED_FROM.search(line)) is not None:
        progress.path = source["path"]
    if (last := _LAST_STEP.search(line)) is not None:
        progress.step, progress.step_at = int(last[1]), None
    elif (step := _STEP.search(line)) is not None:
        progress.step, progress.step_at = int(step[1]), written_time(line[: step.start()])


def _rank_times(
    match: re.Match[str], rank: int, progress: _Progress, stated: Stated, file: LogFile, number: int
) -> RankTimes:
    if match["loading"]:
        op = LOAD
    elif match["staging"]:
        op = ASYNC_SAVE
    else:
        op = (stated.mode or SAVE) if match["either"] else SAVE
    duration = seconds(match["duration"], file, number, zero=op == ASYNC_SAVE)
    ended_at = written_time(match.string[: match.start()])
    started_at = progress.begun_at
    if (
        started_at is None
        or ended_at is None
        or not _comparable(started_at, ended_at)
        or started_at > ended_at
    ):
        started_at = ended_after(ended_at, -duration)
    about: Json = {}
    if op == LOAD:
        about = about_checkpoint(progress.path) if progress.path is not None else {}
    elif progress.step is not None and _at_once(progress.step_at, started_at):
        about["step"] = progress.step
    progress.begun_at = progress.path = None
    return RankTimes(
        op=op,
        rank=rank,
        times={"blocked_seconds" if op == ASYNC_SAVE else "total_seconds": duration},
        started_at=started_at,
        ended_at=None if op == ASYNC_SAVE else ended_at,
        about=about,
    )


def _at_once(step_at: datetime | None, started_at: datetime | None) -> bool:
    if step_at is None or started_at is None or not _comparable(step_at, started_at):
        return True
    return abs((started_at - step_at).total_seconds()) <= SAVED_AT_ONCE_SECONDS


def _comparable(one: datetime, other: datetime) -> bool:
    return (one.tzinfo is None) == (other.tzinfo is None)
