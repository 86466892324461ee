"""The one record that every parser gives, and the doubts it may raise.

All units are decimal and in the names; a parser converts once, at its border. A figure that the file
does not carry is None, never zero and never made up.
"""

import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum

from service.errors import UnreadableDocument
from service.wire import Absent, Outgoing


class Operation(StrEnum):
    """What a measurement timed."""

    WRITE = "write"
    READ = "read"
    FILE_CREATE = "file_create"
    FILE_STAT = "file_stat"
    FILE_READ = "file_read"
    FILE_REMOVE = "file_remove"


class DcpOp(StrEnum):
    """The kind of a checkpoint operation, as the dcp-timing format names it."""

    SAVE = "save"
    ASYNC_SAVE = "async_save"
    LOAD = "load"
    RESHARDED_LOAD = "resharded_load"


class DoubtCode(StrEnum):
    """Every reason to doubt a run. Their pages (`GET /doubts/{code}`) say what to do about each."""

    NO_FSYNC = "no_fsync"
    FSYNC_IGNORED = "fsync_ignored"
    FSYNC_UNKNOWN = "fsync_unknown"
    CACHED_READ = "cached_read"
    CACHE_UNKNOWN = "cache_unknown"
    PARTIAL_RANKS = "partial_ranks"
    DATA_VERIFICATION_FAILED = "data_verification_failed"
    IO500_INVALID = "io500_invalid"
    INCOMPLETE_RUN = "incomplete_run"
    BLOCK_SMALLER_THAN_SHARD = "block_smaller_than_shard"
    FEW_REPETITIONS = "few_repetitions"
    WIDE_SPREAD = "wide_spread"
    STONEWALLED = "stonewalled"
    REPS_SKIPPED = "reps_skipped"
    NAN_SUMMARY = "nan_summary"
    STRAGGLER = "straggler"
    UNKNOWN_TOPOLOGY = "unknown_topology"
    UNEVEN_NODES = "uneven_nodes"
    SEVERAL_RUNS = "several_runs"
    MIXED_LOG_LINES = "mixed_log_lines"
    INVALID_JSON_STRING = "invalid_json_string"
    IOR_WARNING = "ior_warning"
    UNIT_CORRECTED = "unit_corrected"
    ENVIRONMENT_REMOVED = "environment_removed"
    OLDER_REVISION = "older_revision"
    STALE = "stale"
    RUNS_DISAGREE = "runs_disagree"


class Doubt(Outgoing):
    """A reason not to take a figure at its word.

    Attributes:
        code: What kind of doubt; its page says how to cure it.
        measurement: The index into `measurements` (or `operations`) that it is about; absent: all of them.
        message: One sentence on this file: what was seen, and what to do about it.
    """

    code: DoubtCode
    measurement: int | Absent = None
    message: str

    def about(self, measurement: int | None) -> "Doubt":
        """Return the same doubt of one measurement, or of all."""
        return Doubt(code=self.code, measurement=measurement, message=self.message)


class Spread(Outgoing):
    """A figure over the repetitions of one measurement: arithmetic mean, median, least and largest.

    The median is absent where a tool tells only the other three, least and largest where it tells only the
    mean.
    """

    mean: float
    median: float | Absent = None
    min: float | Absent = None
    max: float | Absent = None

    @property
    def width_fraction(self) -> float | None:
        """Largest less least over the mean; None where they are unknown."""
        return None if self.min is None or self.max is None else (self.max - self.min) / self.mean


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of the values, or None when there are none."""
    if not values:
        return None
    return Spread(
        mean=statistics.fmean(values), median=statistics.median(values), min=min(values), max=max(values)
    )


@dataclass(slots=True)
class Repetition:
    """One repetition of one operation over all ranks.

    Attributes:
        gb_per_second: Bytes moved by all ranks over `total_seconds`. [10^9 bytes/s]
        per_second: Files a second, for metadata operations.
        bytes: Bytes really moved by all ranks.
        open_seconds: Last end minus first start of the opens (creates); likewise the next two. They overlap.
        transfer_seconds: Reading or writing, the fsync included where there was one.
        close_seconds: Closing.
        total_seconds: First open to last close: the time of the slowest rank, end to end.
        slowest_rank: The rank whose own time was the longest, where the file has times by rank.
        slowest_rank_seconds: Its time.
        mean_rank_seconds: The mean of the ranks' own times.
    """

    # A file may have a million: as a model each would weigh eight times as much.
    gb_per_second: float | Absent = None
    per_second: float | Absent = None
    bytes: int | Absent = None
    open_seconds: float | Absent = None
    transfer_seconds: float | Absent = None
    close_seconds: float | Absent = None
    total_seconds: float | Absent = None
    slowest_rank: int | Absent = None
    slowest_rank_seconds: float | Absent = None
    mean_rank_seconds: float | Absent = None


class Measurement(Outgoing):
    """One operation of one test of one run, over its repetitions.

    Attributes:
        run: Which run of the file, from 0, where a file holds several.
        test: Which test of that run (IOR's TestID).
        name: What the tool calls the test, where it has a name (IO500's `ior-easy-write`).
        operation: What was timed.
        api: The back end (`POSIX`, `MPIIO`), without a version.
        file_per_process: True for a file per rank, False for one shared file.
        ranks: Ranks that took part.
        nodes: Nodes they ran on.
        nodes_stated: True where the poster said the node count, because the file does not.
        ranks_per_node: Only where nodes times it are the ranks.
        block_bytes: Bytes a rank moves in one segment.
        transfer_bytes: Bytes of one call.
        segments: Blocks a rank moves.
        fsync: Whether the time includes making the data durable.
        reordered: Whether each rank read back what another rank had written.
        repetitions_requested: How many were asked for; `repetitions` holds those that finished. Where the
            tool prints statistics alone they have no figures; where it does not say how many, there are none.
        gb_per_second: Spread of the repetitions' rates; `per_second` and `total_seconds` likewise.
    """

    run: int = 0
    test: int = 0
    name: str | Absent = None
    operation: Operation
    api: str | Absent = None
    file_per_process: bool | Absent = None
    ranks: int | Absent = None
    nodes: int | Absent = None
    nodes_stated: bool | Absent = None
    ranks_per_node: int | Absent = None
    block_bytes: int | Absent = None
    transfer_bytes: int | Absent = None
    segments: int | Absent = None
    fsync: bool | Absent = None
    reordered: bool | Absent = None
    repetitions_requested: int | Absent = None
    repetitions: list[Repetition]
    gb_per_second: Spread | Absent = None
    per_second: Spread | Absent = None
    total_seconds: Spread | Absent = None


MOST_MEASUREMENTS = 10_000
"""Of one document: as many as a dcp-timing document may have operations. An answer has a kilobyte or two of each,
whatever little the document has of it."""
MOST_UNSEEN_REPETITIONS = 100_000
"""Of one document, those of which it tells nothing but how many they were."""


def add(made: list[Measurement], new: Measurement) -> None:
    """Add a measurement to those of a document.

    Raises:
        UnreadableDocument: `too_many_results`: there are more than `MOST_MEASUREMENTS`.
    """
    check_amount(len(made) + 1, "measurements, by run, test and operation", MOST_MEASUREMENTS)
    made.append(new)


def check_amount(count: int, what: str, most: int) -> None:
    """Raise `too_many_results` where a document has begun to hold more of something than is taken of one."""
    if count > most:
        raise UnreadableDocument(
            "too_many_results",
            f"The document holds more than {most} {what}; post its runs in several documents.",
        )


CACHE_MULTIPLE = 3
"""A node that reads less than this many times its memory may have read its memory."""

ENOUGH_REPETITIONS = 3
WIDE_SPREAD_FRACTION = 0.25
"""From here on (max - min) / mean of the repetitions is a doubt."""


def _unlike(repetitions: Sequence[Repetition]) -> int:
    """Return how many repetitions there are; of ranks' own times, those alike in every digit are one that was copied.

    Other formats number their repetitions, or print too few digits to tell.
    """
    by_rank = [
        each for each in repetitions if each.slowest_rank_seconds is not None and each.total_seconds is None
    ]
    return len(repetitions) - len(by_rank) + len({astuple(each) for each in by_rank})


def repetition_doubts(measurements: Sequence[Measurement]) -> list[Doubt]:
    """Return the doubts that any tool's repetitions can raise: too few of them, or too far apart."""
    doubts: list[Doubt] = []
    for at, measurement in enumerate(measurements):
        count = _unlike(measurement.repetitions)
        if count < ENOUGH_REPETITIONS:
            doubts.append(
                Doubt(
                    code=DoubtCode.FEW_REPETITIONS,
                    measurement=at,
                    message=f"The {measurement.operation} figure rests on {count} finished "
                    f"repetition{'' if count == 1 else 's'}; measure at least {ENOUGH_REPETITIONS}.",
                )
            )
        rate = measurement.gb_per_second or measurement.per_second
        width = rate.width_fraction if rate is not None else None
        if width is not None and width > WIDE_SPREAD_FRACTION:
            doubts.append(
                Doubt(
                    code=DoubtCode.WIDE_SPREAD,
                    measurement=at,
                    message=f"The {measurement.operation} rates lie {width:.0%} of their mean apart; "
                    "repeat the run on a quiet system, with more repetitions.",
                )
            )
    return doubts


class DcpOperation(Outgoing):
    """One checkpoint operation of a dcp-timing document, with the figures derived from it.

    The names and rules of the derived figures are those of the format's page (see `dcp_timing.py`, which
    computes them). A figure whose inputs are missing is absent.
    """

    op: DcpOp
    status: str
    error: str | Absent = None
    step: int | Absent = None
    checkpoint: str | Absent = None
    warmup: bool = False
    world_size: int
    nodes: int
    ranks_per_node: int | Absent = None
    saved_world_size: int | Absent = None
    ranks_reporting: int
    partial_ranks: bool
    bytes_total: int | Absent = None
    checkpoint_bytes: int | Absent = None
    files_total: int | Absent = None
    end_to_end_seconds: float | Absent = None
    blocked_seconds: float | Absent = None
    blocked_mean_seconds: float | Absent = None
    drain_seconds: float | Absent = None
    durable_lag_seconds: float | Absent = None
    io_seconds_max: float | Absent = None
    write_gb_per_second: float | Absent = None
    restore_gb_per_second: float | Absent = None
    restore_effective_gb_per_second: float | Absent = None
    read_amplification: float | Absent = None
    skew_max_over_mean: float | Absent = None
    slowest_rank: int | Absent = None
    skew_basis: str | Absent = None
    largest_rank_bytes: int | Absent = None
    bytes_skew_max_over_mean: float | Absent = None
    overlaps_previous: bool | Absent = None


class DcpSummary(Outgoing):
    """The run figures of one kind of operation, over those that are ok and not warm-up.

    Attributes:
        count: How many operations.
        blocked_seconds_max: The largest of the operations' `blocked_seconds`.
        blocked_seconds_mean: Their mean.
        gb_per_second: Sum of bytes over sum of seconds; never a mean of rates. [10^9 bytes/s]
    """

    count: int
    blocked_seconds_max: float | Absent = None
    blocked_seconds_mean: float | Absent = None
    gb_per_second: float | Absent = None


class Record(Outgoing):
    """What a parser makes of one document.

    `measurements` for the benchmarks; `operations` and `summary` for dcp-timing documents.

    Attributes:
        tool: `ior`, `mdtest`, … or, for dcp-timing, its `software.checkpointer`.
        tool_version: As the file says it.
        format: The name of the format in `register.FORMATS`.
        ran_at: When the file says that the run took place.
        ran_at_zone_assumed: True where the file's time has no zone and was taken for UTC.
        storage_label: Which storage the file says it measured (dcp-timing).
        run_id: The poster's own name for the run (dcp-timing).
        doubts: What the file itself gives reason to doubt.
    """

    tool: str
    tool_version: str | Absent = None
    format: str
    ran_at: datetime | Absent = None
    ran_at_zone_assumed: bool | Absent = None
    storage_label: str | Absent = None
    run_id: str | Absent = None
    measurements: list[Measurement] | Absent = None
    operations: list[DcpOperation] | Absent = None
    summary: dict[DcpOp, DcpSummary] | Absent = None
    doubts: list[Doubt]
