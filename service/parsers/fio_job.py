"""The jobs of one JSON document of fio's: read, checked against themselves, with what their options mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from service.errors import UnreadableDocument
from service.parsers.fio_document import Found
from service.parsers.measurement import Operation
from service.wire import EXACT_INTEGER_MAX

_ALL_CLIENTS = "All clients"
_FINISHED = (0, 2**31 - 1)
"""What fio prints as `eta` when nothing runs any more; in the first three seconds also while it does."""

_NO_STORAGE = frozenset({
    "null", "cpuio", "exec", "e4defrag", "net", "netsplice", "rdma", "falloc", "ftruncate", "filecreate",
    "filestat", "filedelete", "dircreate", "dirstat", "dirdelete",
})  # fmt: skip
"""Engines that move no data of a file, whatever their io_bytes say."""

_KEEP_THE_AMOUNT = frozenset({
    "name", "description", "rw", "readwrite", "directory", "filename", "size", "bs", "blocksize",
    "ioengine", "iodepth", "numjobs", "direct", "buffered", "sync", "fsync", "fdatasync", "fsync_on_close",
    "end_fsync", "end_syncfs", "group_reporting", "new_group", "stonewall", "thread", "invalidate",
    "randrepeat", "norandommap", "create_on_open", "create_serialize", "create_fsync", "unlink",
    "overwrite", "fallocate", "refill_buffers", "scramble_buffers", "zero_buffers",
    "buffer_compress_percentage", "buffer_pattern", "startdelay", "start_delay", "wait_for", "nice", "prio",
    "cpus_allowed", "numa_cpu_nodes", "iodepth_batch", "iodepth_low", "randseed", "iodepth_batch_submit",
    "iodepth_batch_complete", "gtod_reduce", "unique_filename", "filename_format", "hipri", "registerfiles",
    "fixedbufs", "sqthread_poll", "percentile_list", "lat_percentiles", "clat_percentiles", "disable_lat",
    "disable_clat", "disable_slat", "log_avg_msec", "write_bw_log", "write_lat_log", "write_iops_log",
    "runtime", "timeout", "time_based", "rwmixread", "rwmixwrite",
})  # fmt: skip
"""Options beside which a job moves its `size`, unless a time limit ends it."""

_MOST_MILLISECONDS = 10**11
_MOST_BYTES_PER_SECOND = 1e16
_SLACK = 1e-6
_UNSYNCED_FRACTION = 0.05
"""With fsync=N the last N writes may stay unsynced; up to this share of a job's bytes that is let pass."""

_TIME_REACHED = 0.98


class Side(NamedTuple):
    """What one job, or one group of them, wrote or read."""

    bytes: int
    milliseconds: int
    ios: int | None


_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)b?", re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_DURATION = re.compile(r"([0-9]{1,12})(us|ms|s|m|h|d)?", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Job:
    """One entry of `jobs` or `client_stats`.

    Attributes:
        at: Its index.
        name: Its section.
        group: The number of its group.
        host: The machine it ran on, where the file says it.
        error: fio's error number, 0 for none.
        errors: How many errors it went on after.
        options: Its options and the global ones; None where the file has none.
        sides: What it moved.
        trimmed: Whether it trimmed, which is not read.
        closes_in_time: Whether this fio's time holds the fsync of `fsync_on_close`, as from 3.17 on.
    """

    at: int
    name: str
    group: int
    host: str | None
    error: int
    errors: int
    options: Mapping[str, str] | None
    sides: Mapping[Operation, Side]
    trimmed: bool
    closes_in_time: bool

    def option(self, *names: str) -> str | None:
        """Return the value of an option under any of its names."""
        for name in names:
            value = (self.options or {}).get(name)
            if value is not None:
                return value.strip()
        return None

    def number(self, *names: str) -> int | None:
        """Return the value of an option that is a plain whole number."""
        value = self.option(*names)
        return int(value) if value is not None and re.fullmatch(r"[0-9]{1,12}", value) else None

    def is_on(self, *names: str) -> bool:
        """Tell whether a switch is set."""
        return bool(self.number(*names))

    def size(self, text: str | None) -> int | None:
        """Return a size in bytes; None for one that is not plainly a number of bytes."""
        found = _SIZE.fullmatch(text or "")
        if found is None or self.option("kb_base") not in (None, "1024"):
            return None
        size = int(found[1]) << _SHIFTS[found[2].lower()]
        return size if size <= EXACT_INTEGER_MAX else None

    @property
    def direct(self) -> bool:
        """Whether the page cache was bypassed."""
        return self.is_on("direct") or self.option("buffered") == "0"

    @property
    def copies(self) -> int | None:
        """How many processes its section asked for; None where the file does not say."""
        if self.options is None:
            return None
        return self.number("numjobs") or (1 if self.option("numjobs") is None else None)

    def transfer_bytes(self, operation: Operation) -> int | None:
        """Return the bytes of one call, where all calls were alike."""
        if self.options is None or self.option("bsrange", "blocksize_range", "bssplit") is not None:
            return None
        text = self.option("bs", "blocksize")
        if text is not None:
            parts = text.split(",")
            at = 1 if operation is Operation.WRITE and len(parts) > 1 and parts[1] else 0
            return self.size(parts[at].strip()) or None
        side = self.sides.get(operation)  # the default, which shows in the counts
        if side is None or not side.ios or side.bytes % side.ios:
            return None
        return side.bytes // side.ios

    @property
    def time_limit(self) -> bool:
        """Whether a time limit was set."""
        return self.option("runtime", "timeout") not in (None, "0")

    @property
    def time_reached(self) -> bool:
        """Whether the job lasted as long as its time limit, as far as that can be read."""
        found = _DURATION.fullmatch((self.option("runtime", "timeout") or "").lower())
        if found is None:
            return True
        limit = int(found[1]) * _SECONDS[found[2] or "s"]
        longest = max((side.milliseconds for side in self.sides.values()), default=0) / 1e3
        return longest >= _TIME_REACHED * limit

    def planned_bytes(self, copies: int) -> int | None:
        """Return what it was to move, read and written together, where its options leave no doubt."""
        if self.options is None or self.trimmed or not self.options.keys() <= _KEEP_THE_AMOUNT:
            return None
        filename = self.option("filename") or ""
        size = self.size(self.option("size"))
        if not size or ":" in filename or filename.startswith("/dev/"):
            return None
        return size * copies

    def made_durable(self, copies: int | None) -> bool | None:
        """Tell whether its writes were synced within the time; None where the file does not say.

        `direct=1` is no answer: it passes by the client's page cache, and waits for no cache further on.
        """
        if self.options is None:
            return None
        if self.is_on("end_fsync") or self.is_on("end_syncfs"):
            return True
        if self.is_on("fsync_on_close") and self.closes_in_time:
            return True
        if (self.option("sync") or "0").lower() in ("1", "sync", "dsync"):
            return True
        every = self.number("fsync") or self.number("fdatasync")
        side = self.sides.get(Operation.WRITE)
        if not every or side is None:
            return False
        call = self.transfer_bytes(Operation.WRITE) or (side.bytes / side.ios if side.ios else side.bytes)
        return every * call <= _UNSYNCED_FRACTION * side.bytes / (copies or 1)


_RELEASE = re.compile(r"fio-([0-9]{1,3})\.([0-9]{1,3})")
_CLOSES_IN_TIME = (3, 17)
"""Releases before this one stopped the clock before the fsync of `fsync_on_close` (fio issue 831)."""


def _release(version: object) -> tuple[int, int]:
    found = _RELEASE.match(version) if isinstance(version, str) else None
    return (int(found[1]), int(found[2])) if found else (0, 0)


class Reader:
    """Reads the jobs of one document."""

    def __init__(self, found: Found) -> None:
        self._found = found
        value = found.value
        self.by_host = "client_stats" in value
        self.key = "client_stats" if self.by_host else "jobs"
        entries = value.get(self.key)
        if not isinstance(entries, list) or not entries:
            raise found.refusal(
                "no_results", "holds no jobs; post the output of a run that finished.", self.key
            )
        self._closes_in_time = _release(value.get("fio version")) >= _CLOSES_IN_TIME
        self.units_corrected = False
        self.jobs: list[Job] = []
        self.total: Job | None = None
        self.running = False
        for at, entry in enumerate(entries):
            job = self._job(at, entry)
            if self.by_host and job.name == _ALL_CLIENTS and at == len(entries) - 1 and at > 0:
                self.total = job
            else:
                self.jobs.append(job)
        self._check_total()

    def _refusal(self, code: str, detail: str, *path: str | int) -> UnreadableDocument:
        return self._found.refusal(code, detail, self.key, *path)

    def _whole(
        self, within: Mapping[str, Any], key: str, *path: str | int, most: int = EXACT_INTEGER_MAX
    ) -> int:
        value = within.get(key)
        if value is None:
            raise self._refusal("missing_key", f"has no {key}; post the file as fio wrote it.", *path)
        if type(value) is not int or not 0 <= value <= most:
            raise self._refusal(
                "bad_number",
                "is no whole number within reason; post the file as fio wrote it.",
                *path,
                key,
            )
        return value

    def _text(self, within: Mapping[str, Any], key: str, *path: str | int) -> str:
        value = within.get(key)
        if not isinstance(value, str):
            raise self._refusal(
                "missing_key", f"has no text for {key}; post the file as fio wrote it.", *path
            )
        return value

    def _options(self, entry: Mapping[str, Any], at: int, host: str | None) -> Mapping[str, str] | None:
        own = entry.get("job options")
        shared = self._found.value.get("global options")
        if isinstance(shared, list):  # one item for each of several servers
            shared = next(
                (each for each in shared if isinstance(each, dict) and each.get("hostname") == host), None
            )
        if own is None and shared is None:
            return None
        made: dict[str, str] = {}
        for options in (shared, own):
            if options is None:
                continue
            if not isinstance(options, dict):
                raise self._refusal(
                    "bad_options", "has options that are no object; post the file as fio wrote it.", at
                )
            made |= {key: value for key, value in options.items() if isinstance(value, str)}
        for added in ("hostname", "port"):
            made.pop(added, None)
        return made

    def _job(self, at: int, entry: object) -> Job:
        if not isinstance(entry, dict):
            raise self._refusal("bad_job", "is no object; post the file as fio wrote it.", at)
        host = self._text(entry, "hostname", at) if self.by_host else None
        for key in ("read", "write"):
            if "mixed" in entry and key not in entry:
                raise self._refusal(
                    "mixed_directions",
                    "counts reads and writes as one (unified_rw_reporting); run fio without it.",
                    at,
                    "mixed",
                )
        options = self._options(entry, at, host)
        engine = (options or {}).get("ioengine", "").strip()
        if engine in _NO_STORAGE:
            raise self._refusal(
                "no_io",
                "used an engine that moves no data of files; measure with psync, libaio or io_uring.",
                at,
                "job options",
            )
        eta = entry.get("eta")
        elapsed = entry.get("elapsed")
        if type(eta) is int and _FINISHED[0] < eta < _FINISHED[1]:
            self.running = True
        sides: dict[Operation, Side] = {}
        for operation in (Operation.WRITE, Operation.READ):
            side = self._side(entry, operation, at)
            if side is None:
                continue
            sides[operation] = side
            if elapsed is not None:
                seconds = self._whole(entry, "elapsed", at)
                if seconds == 0 or side.milliseconds > 1000 * seconds + 1000:
                    raise self._refusal(
                        "inconsistent_job",
                        f"ran for {side.milliseconds} ms where fio as a whole ran for {seconds} s; the file was "
                        "changed or damaged, so post the original.",
                        at,
                        operation.value,
                        "runtime",
                    )
        trim = entry.get("trim")
        return Job(
            at=at,
            name=self._text(entry, "jobname", at),
            group=self._whole(entry, "groupid", at),
            host=host,
            error=self._whole(entry, "error", at),
            errors=self._whole(entry, "total_err", at) if "total_err" in entry else 0,
            options=options,
            sides=sides,
            trimmed=isinstance(trim, dict) and trim.get("io_bytes") != 0,
            closes_in_time=self._closes_in_time,
        )

    def _side(self, entry: Mapping[str, Any], operation: Operation, at: int) -> Side | None:
        """Return what a job moved in one direction, None if nothing.

        Raises:
            UnreadableDocument: Its bytes, time, bandwidth and calls cannot all be true.
        """
        key = operation.value
        side = entry.get(key)
        if not isinstance(side, dict):
            raise self._refusal("missing_key", f"has no {key}; post the file as fio wrote it.", at)
        path = (at, key)
        moved = self._whole(side, "io_bytes", *path)
        rates = {
            unit: self._whole(side, name, *path)
            for name, unit in (("bw_bytes", 1), ("bw", 1024))
            if name in side
        }
        kib = self._whole(side, "io_kbytes", *path) if "io_kbytes" in side else None
        if moved == 0:
            if kib or any(rates.values()):
                raise self._refusal(
                    "inconsistent_job",
                    "moved no bytes at a bandwidth; the file was changed or damaged, so post the original.",
                    *path,
                    "io_bytes",
                )
            return None
        milliseconds = self._whole(side, "runtime", *path, most=_MOST_MILLISECONDS)
        if milliseconds == 0:
            raise self._refusal(
                "bad_number",
                "is zero, so that there is no rate; move enough bytes to take some time.",
                *path,
                "runtime",
            )
        if not rates:
            raise self._refusal("missing_key", "has no bandwidth; post the file as fio wrote it.", *path)
        if kib is None and 1 not in rates and _agrees(1000 * moved / milliseconds, rates[1024], 1.0):
            moved *= 1024  # fio 2 printed KiB under this name
            self.units_corrected = True
        if kib is not None and abs(moved / 1024 - kib) > 1:
            raise self._contradiction("io_kbytes", *path)
        for unit, rate in rates.items():
            if not _agrees(1000 * moved / milliseconds / unit, rate, 1.0):
                raise self._contradiction("bw_bytes" if unit == 1 else "bw", *path)
        if 1000 * moved / milliseconds > _MOST_BYTES_PER_SECOND:
            raise self._refusal("bad_number", "is a time too short to be true.", *path, "runtime")
        ios = self._whole(side, "total_ios", *path) if "total_ios" in side else None
        self._check_calls(side, ios, milliseconds, *path)
        return Side(moved, milliseconds, ios)

    def _check_calls(
        self, side: Mapping[str, Any], ios: int | None, milliseconds: int, *path: str | int
    ) -> None:
        iops = side.get("iops")
        if iops is None or ios is None:
            return
        if type(iops) not in (int, float) or iops < 0:
            raise self._refusal("bad_number", "is no rate; post the file as fio wrote it.", *path, "iops")
        if not _agrees(1000 * ios / milliseconds, iops, 0.01):
            raise self._contradiction("iops", *path)

    def _contradiction(self, key: str, *path: str | int) -> UnreadableDocument:
        return self._refusal(
            "inconsistent_job",
            "does not fit the bytes, calls and runtime beside it; the file was changed or damaged, so post the "
            "original.",
            *path,
            key,
        )

    def _check_total(self) -> None:
        """Compare fio's own sum over all clients with the entries."""
        if self.total is None:
            return
        for operation in (Operation.WRITE, Operation.READ):
            told = self.total.sides.get(operation)
            added = sum(job.sides[operation].bytes for job in self.jobs if operation in job.sides)
            if (told.bytes if told else 0) != added:
                raise self._refusal(
                    "inconsistent_job",
                    "is not the sum of the clients' bytes: one is missing or was changed; post the original.",
                    self.total.at,
                    operation.value,
                )


def _agrees(left: float, right: float, unit: float) -> bool:
    return abs(left - right) <= unit + _SLACK * max(left, right)
