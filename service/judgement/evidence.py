"""Which figure of a run speaks about which target: one table, and how to read a run by it.

A figure is taken as the run has it. What it is worth is decided in `gap.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any

from service.parsers.measurement import DcpOp, DcpOperation, Measurement, Operation, Spread, spread
from service.parsers.run import BenchmarkRun
from service.sizing.sizing import TargetId
from service.sizing.spec import SaveMode
from service.units import GB


class Kind(StrEnum):
    """How a figure behaves when the number of nodes or the load changes."""

    RATE = "rate"
    """Compared as a whole at full scale, node by node otherwise."""
    CREATE_RATE = "create_rate"
    """Compared as a whole: metadata servers do not grow with the clients."""
    RANK_TIME = "rank_time"
    """Compared where a rank has the scenario's load."""
    LOAD_TIME = "load_time"
    """Compared where all ranks together read what the scenario's would."""
    SIZE = "size"
    """Compared at full scale only."""


class Statistic(StrEnum):
    """Which of the repetitions' figures stands for them."""

    MEAN = "mean"
    MEDIAN = "median"
    MIN = "min"
    MAX = "max"


class Activity(StrEnum):
    """What the storage did while the figure was taken; some doubts concern only one of these."""

    WRITING = "writing"
    READING = "reading"
    CREATING = "creating"
    HOLDING = "holding"


@dataclass(frozen=True, slots=True)
class Figure:
    """What one measurement of a benchmark, or the like operations of a DCP document, say about one target.

    Attributes:
        run: The run.
        places: Indices into its `measurements` or `operations`.
        activity: What the storage did.
        value: The figure that is compared, in the target's unit, over all nodes of the run.
        statistic: Which of the repetitions' figures it is; None for a size, of which the one furthest off counts.
        least: The least of the repetitions, if known.
        largest: The largest of the repetitions, if known.
        nodes: Nodes of the run, if known.
        ranks: Ranks of the run, if known.
        rank_bytes: Bytes that a rank moved meanwhile: the largest rank's, or the mean; if known. [B]
        moved_bytes: Bytes that all ranks moved meanwhile, if known. [B]
        checkpoint_bytes: Size of the checkpoint that was moved, if there was one and it is known. [B]
        of_benchmark: From a benchmark, all of whose ranks read or write; not from a checkpointer.
    """

    run: BenchmarkRun
    places: tuple[int, ...]
    activity: Activity
    value: float
    statistic: Statistic | None
    least: float | None
    largest: float | None
    nodes: int | None
    ranks: int | None
    rank_bytes: float | None = None
    moved_bytes: float | None = None
    checkpoint_bytes: float | None = None
    of_benchmark: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where the evidence for one target is found.

    Attributes:
        kind: How the figure is compared.
        activity: What the storage does meanwhile.
        hint: What would measure it, for a reader.
        operation: The benchmark operation that has it, if one has.
        figure: The name of its figure in a measurement.
        dcp_ops: The DCP operations that have it, by the mode of the scenario's saves; each entry is one way,
            and a document's first way that has a figure is taken.
        dcp_figure: Its name in a DCP operation.
    """

    kind: Kind
    activity: Activity
    hint: str
    operation: Operation | None = None
    figure: str = "gb_per_second"
    dcp_ops: Mapping[SaveMode, Sequence[Sequence[DcpOp]]] | None = None
    dcp_figure: str = ""


_SAVES = {SaveMode.SYNC: [[DcpOp.SAVE]], SaveMode.ASYNC: [[DcpOp.ASYNC_SAVE]]}
_LOADS = {mode: [[DcpOp.LOAD]] for mode in SaveMode}
_RESHARDED_LOADS = {mode: [[DcpOp.RESHARDED_LOAD]] for mode in SaveMode}
# A resharded load reads the same storage, so it stands in where a document has no plain one.
_EITHER_LOAD = {mode: [[DcpOp.LOAD], [DcpOp.RESHARDED_LOAD]] for mode in SaveMode}
# What was saved says how large a checkpoint is; a load says it where nothing was saved.
_HOLDERS = {mode: [[DcpOp.SAVE, DcpOp.ASYNC_SAVE], [DcpOp.LOAD, DcpOp.RESHARDED_LOAD]] for mode in SaveMode}

_WRITE_RATE = Source(
    kind=Kind.RATE,
    activity=Activity.WRITING,
    hint="IOR writing with fsync, or DCP saves timed with their bytes,",
    operation=Operation.WRITE,
    dcp_ops=_SAVES,
    dcp_figure="write_gb_per_second",
)
_READ_RATE = Source(
    kind=Kind.RATE,
    activity=Activity.READING,
    hint="IOR reading back with reordered tasks, or timed DCP loads,",
    operation=Operation.READ,
    dcp_ops=_EITHER_LOAD,
    dcp_figure="restore_gb_per_second",
)
SOURCES: dict[TargetId, Source] = {
    TargetId.WRITE_BANDWIDTH: _WRITE_RATE,
    TargetId.NODE_WRITE_BANDWIDTH: _WRITE_RATE,
    TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: replace(
        _WRITE_RATE, hint="writing while another job reads, in a run tagged under_read_load,"
    ),
    TargetId.SLOWEST_WRITER_SECONDS: Source(
        kind=Kind.RANK_TIME,
        activity=Activity.WRITING,
        hint="IOR writing the largest shard from every rank, or DCP saves with each rank's io_seconds,",
        operation=Operation.WRITE,
        figure="total_seconds",
        dcp_ops=_SAVES,
        dcp_figure="io_seconds_max",
    ),
    TargetId.BLOCKING_SECONDS: Source(
        kind=Kind.RANK_TIME,
        activity=Activity.WRITING,
        hint="timed DCP saves in the mode of the scenario",
        dcp_ops=_SAVES,
        dcp_figure="blocked_seconds",
    ),
    TargetId.PERSIST_SECONDS: Source(
        kind=Kind.RANK_TIME,
        activity=Activity.WRITING,
        hint="timed DCP async saves with their total_seconds",
        dcp_ops=_SAVES,
        dcp_figure="durable_lag_seconds",
    ),
    TargetId.READ_BANDWIDTH: _READ_RATE,
    TargetId.NODE_READ_BANDWIDTH: _READ_RATE,
    TargetId.LOAD_SECONDS: Source(
        kind=Kind.LOAD_TIME,
        activity=Activity.READING,
        hint="a timed DCP load onto as many ranks as saved",
        dcp_ops=_LOADS,
        dcp_figure="end_to_end_seconds",
    ),
    TargetId.RESHARDED_LOAD_SECONDS: Source(
        kind=Kind.LOAD_TIME,
        activity=Activity.READING,
        hint="a timed DCP load onto another number of ranks",
        dcp_ops=_RESHARDED_LOADS,
        dcp_figure="end_to_end_seconds",
    ),
    TargetId.FILE_CREATE_RATE: Source(
        kind=Kind.CREATE_RATE,
        activity=Activity.CREATING,
        hint="mdtest creating files",
        operation=Operation.FILE_CREATE,
        figure="per_second",
    ),
    TargetId.CHECKPOINT_BYTES: Source(
        kind=Kind.SIZE,
        activity=Activity.HOLDING,
        hint="DCP saves with checkpoint_bytes, on all nodes,",
        dcp_ops=_HOLDERS,
        dcp_figure="checkpoint_bytes",
    ),
}
"""The table. A target that is not in it is never measured."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How runs are read for a scenario.

    Attributes:
        mode: How the scenario saves, which decides the DCP operations that count.
        read_amplification: Bytes read over the checkpoint's bytes, where a document does not know the former.
        statistic: Which of the repetitions' rates is compared.
        time_statistic: Which of their times. Each of them is already that of its slowest rank.
        differential: Whether most saves hold differences alone, so that the largest one is a full one.
    """

    mode: SaveMode
    read_amplification: float = 1.0
    statistic: Statistic = Statistic.MEAN
    time_statistic: Statistic = Statistic.MAX
    differential: bool = False

    def statistic_of(self, kind: Kind) -> Statistic:
        """Return what stands for the repetitions of such a figure."""
        return self.time_statistic if kind in (Kind.RANK_TIME, Kind.LOAD_TIME) else self.statistic


def figures(run: BenchmarkRun, target_id: TargetId, *, reading: Reading, expected: float) -> list[Figure]:
    """Return what a run says about a target: one figure for each measurement, one for a DCP document.

    Args:
        run: The run.
        target_id: The target.
        reading: How the scenario wants them read.
        expected: The target's value: of several sizes the one furthest from it is taken.
    """
    source = SOURCES.get(target_id)
    if source is None:
        return []
    found = list(_of_benchmark(run, source, reading))
    if source.dcp_ops is not None:
        for ops in source.dcp_ops[reading.mode]:
            figure = _of_dcp(run, source, ops, reading, expected=expected)
            if figure is not None:
                found.append(figure)
                break
    return found


def _of_benchmark(run: BenchmarkRun, source: Source, reading: Reading) -> Iterator[Figure]:
    statistic = reading.statistic_of(source.kind)
    for place, measurement in enumerate(run.measurements or ()):
        if measurement.operation is not source.operation:
            continue
        over_repetitions = _over_repetitions(measurement, source)
        value = getattr(over_repetitions, statistic, None)
        if over_repetitions is None or value is None:  # a mean time says nothing of the longest
            continue
        moved_bytes = _moved_bytes(measurement)
        yield Figure(
            run=run,
            places=(place,),
            activity=source.activity,
            value=value,
            statistic=statistic,
            least=over_repetitions.min,
            largest=over_repetitions.max,
            nodes=measurement.nodes,
            ranks=measurement.ranks,
            rank_bytes=_rank_bytes(measurement, moved_bytes),
            moved_bytes=moved_bytes,
            of_benchmark=True,
        )


def _over_repetitions(measurement: Measurement, source: Source) -> Spread | None:
    """Return the spread of a figure; of times by rank alone, that of the slowest ranks' own."""
    found: Spread | None = getattr(measurement, source.figure)
    if found is None and source.kind is Kind.RANK_TIME:
        slowest = [each.slowest_rank_seconds for each in measurement.repetitions]
        return spread([seconds for seconds in slowest if seconds is not None])
    return found


def _moved_bytes(measurement: Measurement) -> float | None:
    """Return the bytes that all ranks moved in the slowest repetition, else those they were told to move."""
    timed = [each for each in measurement.repetitions if each.total_seconds is not None]
    slowest = max(timed, key=lambda each: each.total_seconds or 0.0, default=None)
    if slowest is not None and slowest.bytes is not None:
        return slowest.bytes
    told = _rank_bytes(measurement, None)
    return told * measurement.ranks if told is not None and measurement.ranks is not None else None


def _rank_bytes(measurement: Measurement, moved_bytes: float | None) -> float | None:
    if moved_bytes is not None and measurement.ranks:
        return moved_bytes / measurement.ranks
    if measurement.block_bytes is not None and measurement.segments is not None:
        return float(measurement.block_bytes * measurement.segments)
    return None


def _of_dcp(
    run: BenchmarkRun, source: Source, ops: Sequence[DcpOp], reading: Reading, *, expected: float
) -> Figure | None:
    counted = {
        place: operation
        for place, operation in enumerate(run.operations or ())
        if operation.op in ops and operation.status == "ok" and not operation.warmup
    }
    if not counted:
        return None
    if source.kind is Kind.RATE:
        return _rate_of_dcp(run, source, ops[0], counted, reading)
    read: Callable[[Any], float | None] = attrgetter(source.dcp_figure)
    known = {place: value for place, each in counted.items() if (value := read(each)) is not None}
    if not known:
        return None
    statistic = reading.statistic_of(source.kind) if source.kind is not Kind.SIZE else None
    if statistic is None and reading.differential:
        value = max(known.values())
    elif statistic is None:
        value = max(known.values(), key=lambda each: abs(each - expected))
    else:
        value = _statistic(list(known.values()), statistic)
    # The one whose figure it is, or comes nearest to it, says of what load it is.
    operation = counted[min(known, key=lambda place: abs(known[place] - value))]
    # Only saves are compared by the bytes of a rank, and all of them together write the checkpoint.
    written = operation.bytes_total if operation.bytes_total is not None else operation.checkpoint_bytes
    even = written / operation.world_size if written is not None else None
    return Figure(
        run=run,
        places=tuple(counted),
        activity=source.activity,
        value=value,
        statistic=statistic,
        least=min(known.values()),
        largest=max(known.values()),
        nodes=operation.nodes,
        ranks=operation.world_size,
        rank_bytes=operation.largest_rank_bytes if operation.largest_rank_bytes is not None else even,
        moved_bytes=operation.bytes_total,
        checkpoint_bytes=operation.checkpoint_bytes,
    )


def _rate_of_dcp(
    run: BenchmarkRun,
    source: Source,
    op: DcpOp,
    counted: Mapping[int, DcpOperation],
    reading: Reading,
) -> Figure | None:
    """Return the rate of one kind of operation; as the mean all bytes over all seconds, never a mean of rates."""
    operations = list(counted.values())
    summary = (run.summary or {}).get(op)
    value = summary.gb_per_second if summary is not None else None
    rates = [rate for each in operations if (rate := getattr(each, source.dcp_figure)) is not None]
    if value is None and source.activity is Activity.READING:
        seconds = [each.end_to_end_seconds for each in operations if each.end_to_end_seconds]
        held = [each.checkpoint_bytes for each in operations if each.checkpoint_bytes is not None]
        if len(seconds) == len(held) == len(operations):
            value = sum(held) / GB / sum(seconds) * reading.read_amplification
            rates = [
                size / GB / each_seconds * reading.read_amplification
                for size, each_seconds in zip(held, seconds, strict=True)
            ]
    if reading.statistic is not Statistic.MEAN:
        value = _statistic(rates, reading.statistic) if len(rates) == len(operations) else None
    if value is None:
        return None
    first = operations[0]
    return Figure(
        run=run,
        places=tuple(counted),
        activity=source.activity,
        value=value,
        statistic=reading.statistic,
        least=min(rates, default=value),
        largest=max(rates, default=value),
        nodes=first.nodes,
        ranks=first.world_size,
    )


def _statistic(values: Sequence[float], statistic: Statistic) -> float:
    made = spread(values)
    value: float | None = getattr(made, statistic, None)
    assert value is not None  # noqa: S101 - of values that are there each statistic is known
    return value
