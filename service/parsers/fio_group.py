"""From fio's jobs that ran together to measurements, and the doubts about them."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from service.parsers import ior
from service.parsers.fio_job import Job
from service.parsers.measurement import Doubt, DoubtCode, Measurement, Operation, Repetition, spread
from service.units import GB

_T = TypeVar("_T")
Key = tuple[str | None, str]
"""A section on a host."""


def processes(group: list[Job]) -> tuple[dict[Key, int], str | None]:
    """Return the processes of each section and host, as far as known, and what shows that some are missing.

    With group_reporting a section has one entry for all of its processes, without it one for each.
    """
    sections: dict[Key, list[Job]] = {}
    for job in group:
        sections.setdefault((job.host, job.name), []).append(job)
    found: dict[Key, int] = {}
    lacking = None
    for key, jobs in sections.items():
        copies = jobs[0].copies
        if copies is None:
            continue
        if len(jobs) == 1:
            found[key] = copies
        elif len(jobs) % copies == 0:
            found[key] = len(jobs)
        else:
            lacking = f"{len(jobs)} of {copies} jobs of a section are there"
    return found, lacking


class Amounts(NamedTuple):
    """How the bytes moved compare with those planned.

    Attributes:
        by_time: A time limit ended a job.
        missing: What shows that a job moved less than it should have.
        more: A job moved more, as the one entry of several sections does under group_reporting.
        exact: Every job moved what was planned, to the byte.
    """

    by_time: bool = False
    missing: str | None = None
    more: bool = False
    exact: bool = False


def amounts(jobs: list[Job], ranks: Mapping[Key, int]) -> Amounts:
    """Return how the bytes that the jobs moved compare with those that their options plan."""
    by_time = more = False
    missing = None
    exact = bool(jobs)
    entries: dict[Key, int] = {}
    for job in jobs:
        key = (job.host, job.name)
        entries[key] = entries.get(key, 0) + 1
    for job in jobs:
        key = (job.host, job.name)
        copies = 1 if entries[key] > 1 else ranks.get(key)
        planned = None if copies is None else job.planned_bytes(copies)
        if planned is None or copies is None:
            exact = False
            by_time |= job.time_limit and (job.option("time_based") not in (None, "0") or job.time_reached)
            continue
        moved = sum(side.bytes for side in job.sides.values())
        call = max((job.transfer_bytes(each) or 0 for each in job.sides), default=0)
        exact &= moved == planned
        if abs(moved - planned) > call * copies:
            if job.time_limit:
                by_time = True
            elif moved > planned:
                more = True
            elif job.sides:
                missing = "a job moved less than its size, and no time limit says why"
        elif job.option("time_based") not in (None, "0"):
            by_time = True
    return Amounts(by_time, missing, more, exact)


def _shared(values: Iterable[_T]) -> _T | None:
    """Return the value that all have, or None where they differ."""
    found = list(values)
    return found[0] if found and all(each == found[0] for each in found) else None


def _file_per_process(jobs: list[Job], ranks: int | None) -> bool | None:
    def of(job: Job) -> bool | None:
        if job.options is None or job.option("filename_format", "opendir", "unique_filename") is not None:
            return None
        filename = job.option("filename")
        if filename is None:
            return True if (job.number("nrfiles", "nr_files") or 1) == 1 else None
        return False if ":" not in filename and "$" not in filename and (ranks or 1) > 1 else None

    return _shared(of(job) for job in jobs)


def measurement(
    run: int, test: int, operation: Operation, jobs: list[Job], ranks: Mapping[Key, int], *, exact: bool
) -> tuple[Measurement, list[Doubt]]:
    """Return what the jobs of one group did together in one direction, with the doubts about it."""
    sides = [job.sides[operation] for job in jobs]
    keys = {(job.host, job.name) for job in jobs}
    by_key = {key: ranks.get(key) for key in keys}
    known = [each for each in by_key.values() if each is not None]
    rank_count = sum(known) if len(known) == len(keys) else None
    moved = sum(side.bytes for side in sides)
    longest = max(side.milliseconds for side in sides)
    seconds = longest / 1e3
    single = len(jobs) > 1 and rank_count == len(jobs)
    times = [side.milliseconds / 1e3 for side in sides]
    hosts = {job.host for job in jobs if job.host}
    nodes = len(hosts) or None
    per_host = _shared(
        sum(count or 0 for (host, _), count in by_key.items() if host == each) for each in sorted(hosts)
    )
    durable = {job.made_durable(1 if single else by_key[job.host, job.name]) for job in jobs}
    fsync = False if False in durable else None if None in durable else True
    shares = {side.bytes for side in sides}
    block: int | None = None
    if single and len(shares) == 1:
        block = sides[0].bytes
    elif rank_count and exact and moved % rank_count == 0 and all(len(job.sides) == 1 for job in jobs):
        block = moved // rank_count if _shared(job.option("size") for job in jobs) else None
    elif rank_count == 1:
        block = moved
    repetition = Repetition(
        gb_per_second=moved / seconds / GB,
        bytes=moved,
        total_seconds=seconds,
        slowest_rank=times.index(seconds) if single else None,
        slowest_rank_seconds=seconds if single else None,
        mean_rank_seconds=sum(times) / len(times) if single else None,
    )
    engine = _shared(job.option("ioengine") for job in jobs)
    made = Measurement(
        run=run,
        test=test,
        operation=operation,
        api=engine if engine and re.fullmatch(r"[\w.+-]{1,40}", engine) else None,
        file_per_process=_file_per_process(jobs, rank_count),
        ranks=rank_count,
        nodes=nodes,
        ranks_per_node=per_host
        if rank_count and nodes and per_host and per_host * nodes == rank_count
        else None,
        block_bytes=block,
        transfer_bytes=_shared(job.transfer_bytes(operation) for job in jobs),
        segments=1 if block is not None else None,
        fsync=fsync if operation is Operation.WRITE else None,
        repetitions=[repetition],
        gb_per_second=spread([moved / seconds / GB]),
        total_seconds=spread([seconds]),
    )
    doubts = ior.straggler(operation, [repetition])
    direct = all(job.direct for job in jobs)
    if operation is Operation.WRITE:
        doubts += _fsync_doubts(fsync, direct=direct)
    elif not direct:
        doubts.append(_cached(nodes))
    if nodes is None:
        doubts.append(
            Doubt(
                code=DoubtCode.UNKNOWN_TOPOLOGY,
                message="fio ran on one machine and its output does not say so; post it with ?nodes=1, or drive "
                "several machines with fio --client.",
            )
        )
    elif rank_count is not None and made.ranks_per_node is None:
        doubts.append(
            Doubt(
                code=DoubtCode.UNEVEN_NODES,
                message=f"{rank_count} jobs ran on {nodes} hosts in unlike numbers; run the same on every host.",
            )
        )
    return made, doubts


def _fsync_doubts(fsync: bool | None, *, direct: bool) -> list[Doubt]:
    if fsync:
        return []
    if fsync is None:
        return [
            Doubt(
                code=DoubtCode.FSYNC_UNKNOWN,
                message="The file has no job options, so it does not say whether the write was synced; use fio 3 "
                "with end_fsync=1.",
            )
        ]
    where = (
        "bypassed the page cache (direct=1), and did not wait until the storage had emptied its own"
        if direct
        else "ran without an fsync of all its data, so that it may have ended in the page cache"
    )
    return [
        Doubt(code=DoubtCode.NO_FSYNC, message=f"The write {where}; repeat it with end_fsync=1."),
    ]


def _cached(nodes: int | None) -> Doubt:
    where = (
        "The jobs of each host may have read what that host held in memory"
        if nodes is not None and nodes > 1
        else "The read ran on one machine, which may hold in memory what it read"
    )
    return Doubt(
        code=DoubtCode.CACHED_READ,
        message=f"{where}: fio only advises the kernel to drop it; read with direct=1, or more data than three "
        "times the memory.",
    )
