"""fio's JSON output (`--output-format=json`, `json+`), alone or among the text that fio prints beside it.

One document holds a list `jobs`, or `client_stats` where several machines were driven with `--client`. Jobs of
one `groupid` ran together: their bytes are added and divided by the longest runtime. A section with
`stonewall` opens a group of its own, which is a measurement of its own. `--status-interval` writes the
document again and again, of which the last counts; documents of other runs are runs of their own.

fio's `runtime` is that of the phase, the fsync of `end_fsync` and, from fio 3.17 on, of `fsync_on_close`
included; it leaves out the creation of files, so nothing here fills `open_seconds`. `job_runtime` is a sum over
processes and unused.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from service.errors import UnreadableDocument
from service.parsers import ior
from service.parsers.document import Document
from service.parsers.fio_document import OPENING, Contents, Found, contents
from service.parsers.fio_group import amounts, measurement, processes
from service.parsers.fio_job import Job, Reader
from service.parsers.measurement import (
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    add,
    repetition_doubts,
)

NAME = "fio-json"

_SAME_START_SECONDS = 2.5
"""How far two snapshots of one run may disagree on its start, when times are whole seconds."""
_SAME_START_SECONDS_BY_MS = 1.5


def recognises(document: Document) -> bool:
    """Tell whether the document holds a JSON object of fio's, whole or cut off."""
    if '"fio version"' not in document.text:
        return False
    if OPENING.search(document.text):
        return True
    return isinstance(document.json, dict) and "fio version" in document.json


@dataclass
class _Document:
    """One document with what was read of it."""

    found: Found
    reader: Reader

    @cached_property
    def at(self) -> datetime | None:
        """When fio wrote it (with clients: began it)."""
        value = self.found.value.get("timestamp")
        if type(value) is not int or not 0 < value < 2**33:
            return None
        return datetime.fromtimestamp(value, UTC)

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """What stays the same from one snapshot of a run to the next."""
        return (
            self.found.value.get("fio version"),
            *((job.name, job.group, job.host, job.options) for job in self.reader.jobs),
        )

    def began(self) -> tuple[float, float] | None:
        """Return the second at which fio was started, and how far off that may be."""
        value = self.found.value
        entries = value[self.reader.key]
        elapsed = entries[0].get("elapsed")
        if type(elapsed) is not int:
            return None
        milliseconds, seconds = value.get("timestamp_ms"), value.get("timestamp")
        if type(milliseconds) is int:
            return milliseconds / 1e3 - elapsed, _SAME_START_SECONDS_BY_MS
        return (float(seconds) - elapsed, _SAME_START_SECONDS) if type(seconds) is int else None

    def continues(self, earlier: "_Document") -> bool:
        """Tell whether this can be a later snapshot of the same run."""
        if self.identity != earlier.identity:
            return False
        for job, before in zip(self.reader.jobs, earlier.reader.jobs, strict=True):
            for operation, side in before.sides.items():
                now = job.sides.get(operation)
                if now is None or now.bytes < side.bytes or now.milliseconds < side.milliseconds:
                    return False
        start, start_before = self.began(), earlier.began()
        if start is None or start_before is None:
            return True
        return abs(start[0] - start_before[0]) <= max(start[1], start_before[1])


def parse(document: Document) -> Record:
    """Return what fio's JSON output holds.

    Raises:
        UnreadableDocument: `not_json` and its kin, `missing_key`, `bad_number`, `inconsistent_job`, `no_io`,
            `job_failed`, `mixed_directions`, `no_results`; with the pointer, and the line where there is more
            in the file than one document.
    """
    held = contents(document)
    runs: list[list[_Document]] = []
    for found in held.documents:
        read = _Document(found, Reader(found))
        if runs and read.continues(runs[-1][-1]):
            runs[-1].append(read)
        else:
            runs.append([read])
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    failures: list[UnreadableDocument] = []
    for at, snapshots in enumerate(runs):
        first = len(made)
        _take(at, snapshots[-1], made, doubts, failures)
        last = at == len(runs) - 1
        if snapshots[-1].reader.running or (last and held.ends_cut):
            doubts += [_incomplete("it was still running", place) for place in range(first, len(made))]
        if len(snapshots) > 1:
            doubts.append(
                Doubt(
                    code=DoubtCode.SEVERAL_RUNS,
                    message=f"The file holds {len(snapshots)} documents of one run, as --status-interval writes "
                    "them; the last was used.",
                )
            )
    if not made:
        raise (
            failures[0]
            if failures
            else runs[0][0].found.refusal(
                "no_results",
                "holds no job that wrote or read; post the output of a run that did.",
                runs[0][0].reader.key,
            )
        )
    doubts += _failure_doubts(failures)
    if len(runs) > 1:
        doubts.append(
            Doubt(
                code=DoubtCode.SEVERAL_RUNS,
                message=f"The file holds {len(runs)} runs, each of which was read; post them one by one where "
                "their conditions differ.",
            )
        )
    doubts += _text_doubts(held)
    doubts += repetition_doubts(made)
    return Record(
        tool="fio",
        tool_version=_version(runs[0][0].found),
        format=NAME,
        ran_at=min((each[-1].at for each in runs if each[-1].at is not None), default=None),
        measurements=made,
        doubts=ior.merged(doubts, len(made)),
    )


def _version(found: Found) -> str | None:
    value = found.value.get("fio version")
    return value if isinstance(value, str) and 0 < len(value) <= 60 else None


def _text_doubts(held: Contents) -> list[Doubt]:
    doubts: list[Doubt] = []
    if count := held.text_lines.count:
        doubts.append(
            Doubt(
                code=DoubtCode.MIXED_LOG_LINES,
                message=f"{count} line{'' if count == 1 else 's'} that are no JSON were passed over, the first of "
                f"them line {held.text_lines.first}; read them, and use --output=FILE to have the JSON alone.",
            )
        )
    if held.signal_line is not None:
        doubts.append(_incomplete(f"fio was ended by a signal (line {held.signal_line})", None))
    if held.wrong_data_line is not None:
        doubts.append(_wrong_data(f"line {held.wrong_data_line}"))
    skipped = held.cut_lines[:-1] if held.ends_cut else held.cut_lines
    if skipped:
        doubts.append(
            Doubt(
                code=DoubtCode.MIXED_LOG_LINES,
                message=f"The document of fio that begins in line {skipped[0]} is cut off and was passed over; "
                "post each run's whole file.",
            )
        )
    return doubts


def _incomplete(what: str, measurement: int | None) -> Doubt:
    return Doubt(
        code=DoubtCode.INCOMPLETE_RUN,
        measurement=measurement,
        message=f"The run is incomplete: {what}; let it run to its end and post the whole output.",
    )


def _wrong_data(where: str) -> Doubt:
    return Doubt(
        code=DoubtCode.DATA_VERIFICATION_FAILED,
        message=f"fio found wrong data when it checked what it had written ({where}); find the cause before any "
        "figure of this storage is trusted.",
    )


_EILSEQ = 84
"""The error number with which fio ends a job whose data did not verify."""


def _failed(document: _Document, job: Job) -> UnreadableDocument:
    what = (
        "found wrong data when it checked what it had written"
        if job.error == _EILSEQ
        else f"ended with error {job.error}"
    )
    return document.found.refusal(
        "data_verification_failed" if job.error == _EILSEQ else "job_failed",
        f"shows that the job {what}, so its figures were not taken; cure that and run it again.",
        document.reader.key,
        job.at,
        "error",
    )


def _failure_doubts(failures: Iterable[UnreadableDocument]) -> list[Doubt]:
    doubts: list[Doubt] = []
    for failure in failures:
        if failure.code == "data_verification_failed":
            doubts.append(_wrong_data(failure.pointer or "its error"))
        else:
            doubts.append(Doubt(code=DoubtCode.IOR_WARNING, message=f"A job was left out: {failure}"))
    return doubts


def _together(document: _Document) -> list[list[Job]]:
    """Return the jobs that ran at the same time, by groups in their order.

    A section that waits for another, or starts later than the rest, is a group of its own.
    """
    groups: dict[tuple[int, str], list[Job]] = {}
    for job in document.reader.jobs:
        apart = job.option("wait_for", "wait_for_previous", "startdelay", "start_delay") not in (
            None,
            "0",
            "",
        )
        groups.setdefault((job.group, job.name if apart else ""), []).append(job)
    return list(groups.values())


def _take(
    run: int,
    document: _Document,
    made: list[Measurement],
    doubts: list[Doubt],
    failures: list[UnreadableDocument],
) -> None:
    """Add the measurements of a run's last document, and their doubts."""
    if document.reader.units_corrected:
        doubts.append(
            Doubt(
                code=DoubtCode.UNIT_CORRECTED,
                message="io_bytes is in KiB in this file, as fio 2 wrote it; it was converted.",
            )
        )
    for test, group in enumerate(_together(document)):
        failed = [job for job in group if job.error]
        failures += [_failed(document, job) for job in failed]
        jobs = [job for job in group if not job.error]
        ranks, lacking = processes(group)
        stopped = amounts(jobs, ranks)
        if stopped.more:
            ranks = {}
        missing = lacking or stopped.missing
        if failed:
            missing = "a job of its group failed"
        elif any(not job.sides and not job.trimmed for job in group):
            missing = "a job of its group moved nothing"
        elif any(job.errors for job in group):
            missing = "a job of its group went on after errors"
        for operation in (Operation.WRITE, Operation.READ):
            moving = [job for job in jobs if operation in job.sides]
            if not moving:
                continue
            new, found = measurement(run, test, operation, moving, ranks, exact=stopped.exact)
            if missing:
                found.append(_incomplete(missing, None))
            if stopped.by_time:
                found.append(
                    Doubt(
                        code=DoubtCode.STONEWALLED,
                        message="A time limit (runtime) ended the jobs, so that the bytes moved are not a size "
                        "that was planned; for a save's time write whole shards without it.",
                    )
                )
            doubts += [each.about(len(made)) for each in found]
            add(made, new)
