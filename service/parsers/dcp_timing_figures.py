"""What follows from the times of a dcp-timing operation: bandwidth, blocked time, drain, skew, restore rates.

`observe` puts together what the ranks of one operation say, each derived figure is a function of that, and
`summarise` has the figures of the whole run. A figure whose inputs are missing is None, never zero.

Source: the dcp-timing format, version 1, “Derived figures”.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from service.parsers.dcp_timing_document import Document, Operation, Quantity, RankRecord, Summary, is_ok
from service.parsers.measurement import DcpOp, DcpOperation, DcpSummary
from service.units import GB

PLAUSIBLE_BYTES_PER_SECOND_PER_RANK = 200 * GB
"""No rank moves more; a document that says so has a wrong unit, or a time that is none."""

ROUNDING = 1e-9
"""What lies on a limit in decimal shall not fall beyond it in binary."""

_QUANTITIES: tuple[Quantity, ...] = (
    "blocked_seconds",
    "wait_previous_seconds",
    "staging_seconds",
    "io_seconds",
    "persist_seconds",
    "total_seconds",
    "bytes",
)
_TOTAL_AND_BLOCKED: tuple[Quantity, Quantity] = ("total_seconds", "blocked_seconds")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One quantity over the ranks: taken from their records, or as a summary states it.

    Attributes:
        max: The largest.
        mean: The arithmetic mean; a summary may leave it out.
        min: The smallest; likewise.
    """

    max: float
    mean: float | None = None
    min: float | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """What the ranks of one operation say together; the derived figures are functions of it.

    Attributes:
        op: The kind of operation.
        ok: Whether it succeeded.
        reporting: How many ranks it knows of.
        world_size: How many there are.
        ranks: Their numbers, in the order of their records; empty where there is a summary only.
        columns: By quantity, the values of all `ranks` in the same order; only where each of them has one.
        aggregates: By quantity, over the ranks listed, or from the summary where none are.
        bytes_total: Bytes moved by all ranks, as stated, else the sum where every rank of the world says.
    """

    op: DcpOp
    ok: bool
    reporting: int
    world_size: int
    ranks: Sequence[int]
    columns: dict[Quantity, list[float]]
    aggregates: dict[Quantity, Aggregate]
    bytes_total: int | None


def observe(operation: Operation, *, world_size: int) -> Observed:
    """Return what the ranks of an operation say together.

    `blocked_seconds` of a save or load that leaves it out is its `total_seconds`: training waits for all
    of it. Rank records go before a summary.
    """
    records = operation.get("ranks", [])
    columns = {name: column for name in _QUANTITIES if (column := _column(records, name)) is not None}
    if records:
        aggregates = {
            name: Aggregate(max(column), statistics.fmean(column), min(column))
            for name, column in columns.items()
        }
        reporting = len(records)
    else:
        aggregates = stated_aggregates(operation["summary"])
        reporting = operation["summary"]["ranks_reporting"]
    if operation["op"] != "async_save":
        _block_for_the_total(records, columns, aggregates)
    bytes_total = operation.get("bytes_total")
    if bytes_total is None and len(records) == world_size and "bytes" in columns:
        bytes_total = sum(record["bytes"] for record in records)
    return Observed(
        op=DcpOp(operation["op"]),
        ok=is_ok(operation),
        reporting=reporting,
        world_size=world_size,
        ranks=[record["rank"] for record in records],
        columns=columns,
        aggregates=aggregates,
        bytes_total=bytes_total,
    )


def _column(records: Sequence[RankRecord], name: Quantity) -> list[float] | None:
    column = [record[name] for record in records if name in record]
    return column if column and len(column) == len(records) else None


def stated_aggregates(summary: Summary) -> dict[Quantity, Aggregate]:
    """Return what a summary states of each quantity."""
    return {
        name: Aggregate(stated["max"], stated.get("mean"), stated.get("min"))
        for name in _QUANTITIES
        if (stated := summary.get(name)) is not None
    }


def _block_for_the_total(
    records: Sequence[RankRecord],
    columns: dict[Quantity, list[float]],
    aggregates: dict[Quantity, Aggregate],
) -> None:
    if "blocked_seconds" in aggregates or "total_seconds" not in aggregates:
        return
    aggregates["blocked_seconds"] = aggregates["total_seconds"]
    if totals := columns.get("total_seconds"):
        column = [record.get("blocked_seconds", total) for record, total in zip(records, totals, strict=True)]
        columns["blocked_seconds"] = column
        aggregates["blocked_seconds"] = Aggregate(max(column), statistics.fmean(column), min(column))


def is_plausible(*, moved_bytes: float, seconds: float, ranks: int) -> bool:
    """Return whether so many ranks can move so many bytes in so many seconds."""
    return moved_bytes <= PLAUSIBLE_BYTES_PER_SECOND_PER_RANK * ranks * seconds * (1 + ROUNDING)


def end_to_end_seconds(observed: Observed) -> float | None:
    """Return the seconds until every rank was done: the largest `total_seconds`."""
    return observed.aggregates["total_seconds"].max if "total_seconds" in observed.aggregates else None


def durable_lag_seconds(observed: Observed) -> float | None:
    """Return the seconds from training going on to the checkpoint of an async save being safe.

    The largest `total_seconds - blocked_seconds` of a rank; with a summary only, the difference of the
    two maxima. Never below 0, where two readings of a clock cross. Unknown for an async save that
    failed, which left nothing safe.
    """
    return _longest_after_blocking(observed) if observed.ok else None


def drain_seconds(observed: Observed) -> float | None:
    """Return the seconds during which an async save was writing: the largest `persist_seconds`.

    Where that is not told, the largest `total_seconds - blocked_seconds`, as for the durable lag.
    """
    if observed.op is not DcpOp.ASYNC_SAVE:
        return None
    if "persist_seconds" in observed.aggregates:
        return observed.aggregates["persist_seconds"].max
    return _longest_after_blocking(observed)


def _longest_after_blocking(observed: Observed) -> float | None:
    total, blocked = (observed.aggregates.get(name) for name in _TOTAL_AND_BLOCKED)
    if observed.op is not DcpOp.ASYNC_SAVE or total is None or blocked is None:
        return None
    if not observed.ranks:
        return max(0.0, total.max - blocked.max)
    totals, blocks = (observed.columns[name] for name in _TOTAL_AND_BLOCKED)
    return max(0.0, max(whole - part for whole, part in zip(totals, blocks, strict=True)))


def io_seconds_max(observed: Observed) -> float | None:
    """Return the largest `io_seconds`, in seconds, when every rank of the world reports it."""
    if partial_ranks(observed) or "io_seconds" not in observed.aggregates:
        return None
    return observed.aggregates["io_seconds"].max


def partial_ranks(observed: Observed) -> bool:
    """Return whether fewer ranks report than the world has."""
    return observed.reporting < observed.world_size


def checkpoint_bytes(operation: Operation, observed: Observed) -> int | None:
    """Return the bytes of the checkpoint on storage: as stated, else what a save wrote.

    What a save wrote before it failed is not the size of a checkpoint.
    """
    stated = operation.get("checkpoint_bytes")
    if stated is None and observed.ok and observed.op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE):
        return observed.bytes_total
    return stated


def gb_per_second(*, moved_bytes: float | None, seconds: float | None) -> float | None:
    """Return bytes over seconds, in 10^9 bytes a second.

    Unknown where either is, and where the time is zero: a rate over no time is no rate.
    """
    if moved_bytes is None or seconds is None or seconds <= 0:
        return None
    return moved_bytes / GB / seconds


def write_gb_per_second(observed: Observed) -> float | None:
    """Return the bytes written over the end-to-end time of a save, or the drain of an async one.

    In 10^9 bytes a second. Unknown where the drain is the difference of two nearly equal times and so too
    short to be a time.
    """
    moved, seconds = observed.bytes_total, rated_seconds(observed)
    if not observed.ok or observed.op not in (DcpOp.SAVE, DcpOp.ASYNC_SAVE):
        return None
    if moved is None or seconds is None:
        return None
    if not is_plausible(moved_bytes=moved, seconds=seconds, ranks=observed.world_size):
        return None
    return gb_per_second(moved_bytes=moved, seconds=seconds)


def rated_seconds(observed: Observed) -> float | None:
    """Return the seconds that the rate is taken over: end to end, or the drain of an async save."""
    return drain_seconds(observed) if observed.op is DcpOp.ASYNC_SAVE else end_to_end_seconds(observed)


def read_amplification(*, read_bytes: int | None, size_bytes: int | None) -> float | None:
    """Return how many times over a checkpoint was read: bytes read over its size."""
    if read_bytes is None or not size_bytes:
        return None
    return read_bytes / size_bytes


@dataclass(frozen=True, slots=True)
class Skew:
    """How unlike the ranks' times were.

    Attributes:
        max_over_mean: The largest over the mean.
        basis: Which time: only `io_seconds` shows a slow rank, since the others end in a collective.
        slowest_rank: Whose was the largest; the lowest rank wins a tie.
    """

    max_over_mean: float
    basis: str
    slowest_rank: int | None


def skew(observed: Observed, *, stated_slowest_rank: int | None = None) -> Skew | None:
    """Return how unlike the ranks' times were, by the first of io, persist and total that all ranks have.

    Unknown with fewer than two ranks, and where the mean is zero. A summary names the slowest rank by
    `io_seconds`, so it is known on that basis only.
    """
    if observed.reporting < 2:
        return None
    bases: tuple[Quantity, ...] = ("io_seconds", "persist_seconds", "total_seconds")
    for basis in bases:
        times = observed.aggregates.get(basis)
        if times is None or times.mean is None:
            continue
        if times.mean == 0:
            return None
        column = observed.columns.get(basis)
        if column is not None:
            slowest: int | None = slowest_rank(observed.ranks, column)
        else:
            slowest = stated_slowest_rank if basis == "io_seconds" else None
        return Skew(max_over_mean=times.max / times.mean, basis=basis, slowest_rank=slowest)
    return None


def slowest_rank(ranks: Sequence[int], seconds: Sequence[float]) -> int:
    """Return the rank with the largest time; the lowest rank wins a tie."""
    longest = max(seconds)
    return min(rank for rank, own in zip(ranks, seconds, strict=True) if own == longest)


def bytes_skew_max_over_mean(observed: Observed) -> float | None:
    """Return the largest over the mean of the ranks' bytes, from rank records of two ranks or more."""
    if len(observed.ranks) < 2 or "bytes" not in observed.columns:
        return None
    moved = observed.aggregates["bytes"]
    return moved.max / moved.mean if moved.mean else None


def derive(document: Document, all_observed: Sequence[Observed]) -> list[DcpOperation]:
    """Return the operations of a document with their figures.

    Args:
        document: The whole document.
        all_observed: What `observe` makes of each of its operations, in their order.
    """
    figures = []
    last_end: datetime | None = None  # of the async saves so far
    any_async = False
    for operation, observed in zip(document["operations"], all_observed, strict=True):
        overlaps: bool | None = None
        if observed.op is DcpOp.ASYNC_SAVE:
            overlaps = overlaps_previous(operation, last_end=last_end, is_first=not any_async)
            any_async = True
            end = _end_of(operation, observed)
            last_end = end if last_end is None or (end is not None and end > last_end) else last_end
        figures.append(_figures_of(operation, observed, document, overlaps=overlaps))
    return figures


def _end_of(operation: Operation, observed: Observed) -> datetime | None:
    seconds = end_to_end_seconds(observed)
    if "started_at" not in operation or seconds is None:
        return None
    try:
        return operation["started_at"] + timedelta(seconds=seconds)
    except OverflowError:  # a run on the last days of the year 9999
        return datetime.max.replace(tzinfo=UTC)


def overlaps_previous(operation: Operation, *, last_end: datetime | None, is_first: bool) -> bool | None:
    """Return whether an async save began before an earlier one was done, and did not wait for it.

    Args:
        operation: The async save.
        last_end: The latest known end of the earlier async saves; None where none is known.
        is_first: Whether there is no earlier one.

    An earlier save whose end is not known counts as done. Unknown where this one's start is.
    """
    waits = [record.get("wait_previous_seconds", 0.0) for record in operation.get("ranks", ())]
    if "summary" in operation and "wait_previous_seconds" in operation["summary"]:
        waits.append(operation["summary"]["wait_previous_seconds"]["max"])
    if is_first or max(waits, default=0.0) > 0:
        return False
    if "started_at" not in operation:
        return None
    return last_end is not None and operation["started_at"] < last_end


def _figures_of(
    operation: Operation, observed: Observed, document: Document, *, overlaps: bool | None
) -> DcpOperation:
    blocked = observed.aggregates.get("blocked_seconds")
    moved = observed.aggregates.get("bytes")
    size = checkpoint_bytes(operation, observed)
    restored = observed.ok and observed.op in (DcpOp.LOAD, DcpOp.RESHARDED_LOAD)
    seconds = end_to_end_seconds(observed)
    uneven = skew(observed, stated_slowest_rank=operation.get("summary", {}).get("slowest_rank"))
    return DcpOperation(
        op=observed.op,
        status=operation.get("status", "ok"),
        error=operation.get("error"),
        step=operation.get("step"),
        checkpoint=operation.get("checkpoint"),
        warmup=operation.get("warmup", False),
        world_size=document["world_size"],
        nodes=document["nodes"],
        ranks_per_node=document.get("ranks_per_node"),
        saved_world_size=operation.get("saved_world_size"),
        ranks_reporting=observed.reporting,
        partial_ranks=partial_ranks(observed),
        bytes_total=observed.bytes_total,
        checkpoint_bytes=size,
        files_total=operation.get("files_total"),
        end_to_end_seconds=seconds,
        blocked_seconds=blocked.max if blocked else None,
        blocked_mean_seconds=blocked.mean if blocked else None,
        drain_seconds=drain_seconds(observed),
        durable_lag_seconds=durable_lag_seconds(observed),
        io_seconds_max=io_seconds_max(observed),
        write_gb_per_second=write_gb_per_second(observed),
        restore_gb_per_second=(
            gb_per_second(moved_bytes=observed.bytes_total, seconds=seconds) if restored else None
        ),
        restore_effective_gb_per_second=(
            gb_per_second(moved_bytes=size, seconds=seconds) if restored else None
        ),
        read_amplification=(
            read_amplification(read_bytes=observed.bytes_total, size_bytes=size) if restored else None
        ),
        skew_max_over_mean=uneven.max_over_mean if uneven else None,
        slowest_rank=uneven.slowest_rank if uneven else None,
        skew_basis=uneven.basis if uneven else None,
        largest_rank_bytes=int(moved.max) if moved else None,
        bytes_skew_max_over_mean=bytes_skew_max_over_mean(observed),
        overlaps_previous=overlaps,
    )


def counts(figures: DcpOperation) -> bool:
    """Return whether an operation counts in the figures of the run."""
    return figures.status == "ok" and not figures.warmup


def rate_gb_per_second(figures: DcpOperation) -> float | None:
    """Return the rate of a save or load by the bytes that its ranks moved, in 10^9 bytes a second."""
    written = figures.write_gb_per_second
    return figures.restore_gb_per_second if written is None else written


def summarise(operations: Sequence[DcpOperation]) -> dict[DcpOp, DcpSummary]:
    """Return the figures of the run by kind of operation, over those that are ok and not warm-up.

    The rate is the sum of bytes over the sum of seconds, and only where each of the operations has both:
    a mean of rates would weigh a quick operation as much as a slow one.
    """
    summary = {}
    for op in dict.fromkeys(figures.op for figures in operations):
        counted = [figures for figures in operations if figures.op is op and counts(figures)]
        blocked = [figures.blocked_seconds for figures in counted if figures.blocked_seconds is not None]
        rate = None
        if counted and all(rate_gb_per_second(figures) is not None for figures in counted):
            rate = gb_per_second(
                moved_bytes=sum(figures.bytes_total or 0 for figures in counted),
                seconds=sum(
                    (figures.drain_seconds if op is DcpOp.ASYNC_SAVE else figures.end_to_end_seconds) or 0.0
                    for figures in counted
                ),
            )
        summary[op] = DcpSummary(
            count=len(counted),
            blocked_seconds_max=max(blocked, default=None),
            blocked_seconds_mean=statistics.fmean(blocked) if blocked else None,
            gb_per_second=rate,
        )
    return summary
