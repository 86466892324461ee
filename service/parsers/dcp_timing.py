"""The dcp-timing format, version 1: what checkpoint operations took, as a training team recorded it.

Here are how a document is recognised and read, the rules that hold between its fields, and the doubts that
it raises by itself. Its shape is in `dcp_timing_document.py`, the figures that follow from it are in
`dcp_timing_figures.py`.

A document is refused for the first fault found: in its JSON, then in its shape, then in its topology,
then operation by operation, each by the rules in the order in which the format's page lists them.
"""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from service.errors import UnreadableDocument
from service.parsers.dcp_timing_document import (
    Document,
    Operation,
    Quantity,
    Summary,
    cut,
    is_ok,
    read,
    refusal,
)
from service.parsers.dcp_timing_figures import (
    PLAUSIBLE_BYTES_PER_SECOND_PER_RANK,
    ROUNDING,
    Observed,
    counts,
    derive,
    end_to_end_seconds,
    is_plausible,
    observe,
    rate_gb_per_second,
    slowest_rank,
    stated_aggregates,
    summarise,
)
from service.parsers.document import Document as Upload
from service.parsers.measurement import DcpOp, DcpOperation, Doubt, DoubtCode, Record
from service.units import GB

FORMAT_NAME = "dcp-timing"

TIME_TOLERANCE_SECONDS = 0.001
"""By so much a part may exceed its whole, and a summary its ranks: clocks are read one after another."""

WINDOW_TOLERANCE_SECONDS = 1.0
"""By so much a duration may exceed the wall-clock window in which it lies."""

CHECKPOINT_TOLERANCE_PER_CENT = 1
"""By so much the size of a saved checkpoint may differ from the bytes written, of the latter."""

SUMMARY_TOLERANCE_FRACTION = 0.001
"""By so much a summary may differ from the ranks beside it, of the larger figure."""

ENOUGH_REPETITIONS = 3
WIDE_SPREAD_FRACTION = 0.25
STRAGGLER_MAX_OVER_MEAN = 1.5

_TORCH = "torch.distributed.checkpoint"

_NAMED = re.compile(r'"format"\s{0,20}:\s{0,20}"dcp-timing"')
_HEAD = frozenset(Document.__required_keys__) - {"format"}
_PARTS_OF_TOTAL: tuple[Quantity, ...] = (
    "blocked_seconds",
    "staging_seconds",
    "io_seconds",
    "persist_seconds",
)


def recognises(upload: Upload) -> bool:
    """Return whether an upload is a dcp-timing document, or is evidently meant to be one.

    The second is so that a document whose `format` is missing or misspelt, or whose JSON is broken, is told
    what to mend, rather than that nobody knows it: `format` begins with dcp, or `operations` stands among most
    of the other required fields.
    """
    if '"operations"' not in upload.text and '"format"' not in upload.text:
        return False
    value = upload.json
    if value is None:
        return upload.json_fault is not None and _NAMED.search(upload.text) is not None
    if not isinstance(value, dict):
        return False
    name = value.get("format")
    if isinstance(name, str) and name.strip().lower().startswith("dcp"):
        return True
    return "operations" in value and 2 * len(_HEAD & value.keys()) > len(_HEAD)


def parse(upload: Upload) -> Record:
    """Return what a dcp-timing document says, the figures that follow, and the doubts it raises.

    Args:
        upload: The whole document.

    Raises:
        UnreadableDocument: With the format's own code for the first thing that is wrong, and the place:
            the line of a syntax error, else the pointer (`#/operations/0/ranks/1/total_seconds`).

    References:
        The dcp-timing format, version 1.
    """
    document = read(upload)
    _check_topology(document)
    world_size = document["world_size"]
    all_observed = []
    for at, operation in enumerate(document["operations"]):
        observed = observe(operation, world_size=world_size)
        _check_operation(at, operation, observed, document)
        all_observed.append(observed)
    operations = derive(document, all_observed)
    started = [operation["started_at"] for operation in document["operations"] if "started_at" in operation]
    return Record(
        tool=document["software"]["checkpointer"],
        tool_version=document["software"]["checkpointer_version"],
        format=FORMAT_NAME,
        ran_at=min(started, default=document["recorded_at"]),
        storage_label=document["storage"]["label"],
        run_id=document["run_id"],
        operations=operations,
        summary=summarise(operations),
        doubts=_doubts(document, operations),
    )


# --- The rules between the fields -------------------------------------------------------------------------


def _check_topology(document: Document) -> None:
    ranks, nodes, per_node = document["world_size"], document["nodes"], document.get("ranks_per_node")
    if nodes > ranks:
        raise refusal(
            "topology_mismatch",
            f"{nodes} nodes cannot run {ranks} ranks; `nodes` is at most `world_size`.",
            "nodes",
        )
    if per_node is not None and nodes * per_node != ranks:
        raise refusal(
            "topology_mismatch",
            f"{nodes} nodes of {per_node} ranks are not {ranks} ranks; leave `ranks_per_node` out where "
            "nodes differ.",
            "ranks_per_node",
        )


def _check_operation(at: int, operation: Operation, observed: Observed, document: Document) -> None:
    """Check one operation against the rules of the format's page, in the page's order."""
    _check_ranks(at, operation, document)
    _check_parts(at, operation)
    _check_bytes(at, operation, observed)
    _check_files(at, operation, observed)
    _check_nothing_is_zero(at, operation, observed)
    _check_window(at, operation, observed)
    if observed.ok:  # one that failed gives no rate
        _check_rates(at, operation, observed)
    if "summary" in operation:
        _check_summary_order(at, operation["summary"])
        if "ranks" in operation:
            _check_summary_against_ranks(at, operation["summary"], observed)


def _check_ranks(at: int, operation: Operation, document: Document) -> None:
    world_size, nodes = document["world_size"], document["nodes"]
    records = operation.get("ranks", [])
    known = f"the run has {world_size} ranks, counted from 0 to {world_size - 1}."
    for index, record in enumerate(records):
        if record["rank"] >= world_size:
            raise refusal(
                "rank_out_of_range", f"There is no rank {record['rank']}: {known}",
                "operations", at, "ranks", index, "rank",
            )  # fmt: skip
    if "summary" in operation:
        summary = operation["summary"]
        if summary["ranks_reporting"] > world_size:
            raise refusal(
                "rank_out_of_range",
                f"{summary['ranks_reporting']} ranks cannot have reported: {known}",
                "operations", at, "summary", "ranks_reporting",
            )  # fmt: skip
        if summary.get("slowest_rank", 0) >= world_size:
            raise refusal(
                "rank_out_of_range", f"There is no rank {summary['slowest_rank']}: {known}",
                "operations", at, "summary", "slowest_rank",
            )  # fmt: skip
    for index, record in enumerate(records):
        if record.get("node", 0) >= nodes:
            raise refusal(
                "node_out_of_range",
                f"There is no node {record['node']}: the run has {nodes} nodes, counted from 0 to "
                f"{nodes - 1}.",
                "operations", at, "ranks", index, "node",
            )  # fmt: skip
    seen: set[int] = set()
    for index, record in enumerate(records):
        if record["rank"] in seen:
            raise refusal(
                "duplicate_rank", f"Rank {record['rank']} stands twice; give one record for each rank.",
                "operations", at, "ranks", index, "rank",
            )  # fmt: skip
        seen.add(record["rank"])
    saved_by = operation.get("saved_world_size", world_size)
    if operation["op"] == "load" and saved_by != world_size:
        raise refusal(
            "op_mismatch",
            f"A checkpoint of {saved_by} ranks that {world_size} ranks load is a resharded_load, not a load.",
            "operations", at, "saved_world_size",
        )  # fmt: skip


def _check_parts(at: int, operation: Operation) -> None:
    tolerance = TIME_TOLERANCE_SECONDS + ROUNDING
    never = float("inf")
    for index, record in enumerate(operation.get("ranks", ())):
        limit = record.get("total_seconds", never) + tolerance
        for part in _PARTS_OF_TOTAL:
            if record.get(part, 0.0) > limit:
                raise _part_exceeds(
                    part, record[part], "total_seconds", record["total_seconds"],
                    "operations", at, "ranks", index, part,
                )  # fmt: skip
        if record.get("wait_previous_seconds", 0.0) > record.get("blocked_seconds", never) + tolerance:
            raise _part_exceeds(
                "wait_previous_seconds", record["wait_previous_seconds"],
                "blocked_seconds", record["blocked_seconds"],
                "operations", at, "ranks", index, "wait_previous_seconds",
            )  # fmt: skip
    # What holds for each rank holds for the largest of them.
    aggregates = stated_aggregates(operation["summary"]) if "summary" in operation else {}
    pairs: list[tuple[Quantity, Quantity]] = [(part, "total_seconds") for part in _PARTS_OF_TOTAL]
    for part, whole in [*pairs, ("wait_previous_seconds", "blocked_seconds")]:
        if part in aggregates and whole in aggregates:
            part_max, whole_max = aggregates[part].max, aggregates[whole].max
            if part_max > whole_max + tolerance:
                raise _part_exceeds(
                    part, part_max, whole, whole_max, "operations", at, "summary", part, "max"
                )


def _part_exceeds(
    part: str, part_seconds: float, whole: str, whole_seconds: float, *place: str | int
) -> UnreadableDocument:
    return refusal(
        "part_exceeds_total",
        f"`{part}` of {part_seconds:g} s is longer than the {whole_seconds:g} s of `{whole}`, of which it is "
        "a part; check the units and from when each is counted.",
        *place,
    )


def _check_bytes(at: int, operation: Operation, observed: Observed) -> None:
    records = operation.get("ranks", [])
    stated = operation.get("bytes_total")
    if stated is not None and records:
        told = sum(record.get("bytes", 0) for record in records)
        complete = len(records) == observed.world_size and "bytes" in observed.columns
        if told > stated or (complete and told != stated):
            raise refusal(
                "bytes_mismatch",
                f"The ranks' bytes sum to {told}, but `bytes_total` is {stated}; it is the sum over all "
                "ranks.",
                "operations", at, "bytes_total",
            )  # fmt: skip
    if stated is not None and not records and "bytes" in observed.aggregates:
        largest = observed.aggregates["bytes"].max
        if largest > stated:
            raise refusal(
                "bytes_mismatch",
                f"One rank moved {largest:.0f} bytes, but `bytes_total` of all ranks is {stated}.",
                "operations", at, "bytes_total",
            )  # fmt: skip
    size, moved = operation.get("checkpoint_bytes"), observed.bytes_total
    if observed.op not in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) or size is None or moved is None:
        return
    if abs(size - moved) * 100 > moved * CHECKPOINT_TOLERANCE_PER_CENT:
        raise refusal(
            "bytes_mismatch",
            f"A checkpoint of {size} bytes does not come of {moved} bytes written; `checkpoint_bytes` "
            "and `bytes_total` of a save may differ by one per cent.",
            "operations", at, "checkpoint_bytes",
        )  # fmt: skip


def _check_files(at: int, operation: Operation, observed: Observed) -> None:
    records, stated = operation.get("ranks", []), operation.get("files_total")
    if observed.op not in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) or stated is None:
        return
    if len(records) == observed.world_size and all("files" in record for record in records):
        told = sum(record["files"] for record in records)
        if told != stated:
            raise refusal(
                "files_mismatch",
                f"The ranks' files sum to {told}, but `files_total` is {stated}; it is the sum over all "
                "ranks.",
                "operations", at, "files_total",
            )  # fmt: skip


def _check_nothing_is_zero(at: int, operation: Operation, observed: Observed) -> None:
    if not observed.ok:
        return
    if observed.bytes_total == 0:
        name = "bytes_total" if "bytes_total" in operation else "ranks"
        raise refusal(
            "zero_bytes",
            f"The {observed.op} is ok but moved no bytes; leave bytes that are not known out.",
            "operations", at, name,
        )  # fmt: skip
    if end_to_end_seconds(observed) == 0:
        raise refusal(
            "zero_time",
            f"The {observed.op} is ok but took no time; leave times that are not known out.",
            *_place_of_longest(at, observed),
        )


def _place_of_longest(at: int, observed: Observed) -> tuple[str | int, ...]:
    """Return the place of the `total_seconds` that is the end-to-end time."""
    totals = observed.columns.get("total_seconds")
    if totals is None:
        return ("operations", at, "summary", "total_seconds", "max")
    return ("operations", at, "ranks", totals.index(max(totals)), "total_seconds")


def _check_window(at: int, operation: Operation, observed: Observed) -> None:
    if "started_at" not in operation or "ended_at" not in operation:
        return
    window_seconds = (operation["ended_at"] - operation["started_at"]).total_seconds()
    if window_seconds < 0:
        raise refusal(
            "end_before_start",
            f"`ended_at` lies {-window_seconds:g} s before `started_at`; it is the latest end of a rank.",
            "operations", at, "ended_at",
        )  # fmt: skip
    longest_seconds = end_to_end_seconds(observed)
    if longest_seconds is not None and longest_seconds > window_seconds + WINDOW_TOLERANCE_SECONDS + ROUNDING:
        raise refusal(
            "window_mismatch",
            f"`total_seconds` of {longest_seconds:g} does not fit into the {window_seconds:g} s from "
            "`started_at` to `ended_at`; times are in seconds, not milliseconds.",
            *_place_of_longest(at, observed),
        )


def _check_rates(at: int, operation: Operation, observed: Observed) -> None:
    for index, record in enumerate(operation.get("ranks", ())):
        name: Literal["io_seconds", "total_seconds"] = (
            "io_seconds" if "io_seconds" in record else "total_seconds"
        )
        if "bytes" in record and name in record:
            moved_bytes, seconds = record["bytes"], record[name]
            if not is_plausible(moved_bytes=moved_bytes, seconds=seconds, ranks=1):
                raise _implausible(
                    f"{moved_bytes} bytes of one rank", seconds, "operations", at, "ranks", index, name
                )
    moved = observed.bytes_total
    if moved is None:
        return
    total_seconds = end_to_end_seconds(observed)
    place = _place_of_longest(at, observed)
    if total_seconds is not None and not is_plausible(
        moved_bytes=moved, seconds=total_seconds, ranks=observed.world_size
    ):
        raise _implausible(f"{moved} bytes of {observed.world_size} ranks", total_seconds, *place)
    # The rate of an async save is over its drain, so a stated drain must be a time as well.
    persist = observed.aggregates.get("persist_seconds")
    if persist is not None and not is_plausible(
        moved_bytes=moved, seconds=persist.max, ranks=observed.world_size
    ):
        column = observed.columns.get("persist_seconds")
        where = ("summary", "persist_seconds", "max") if column is None else (
            "ranks", column.index(persist.max), "persist_seconds"
        )  # fmt: skip
        raise _implausible(
            f"{moved} bytes of {observed.world_size} ranks", persist.max, "operations", at, *where
        )


def _implausible(what: str, seconds: float, *place: str | int) -> UnreadableDocument:
    return refusal(
        "implausible_rate",
        f"{what} in {seconds:g} s are more than {PLAUSIBLE_BYTES_PER_SECOND_PER_RANK // GB} GB/s a "
        "rank; times are in seconds and sizes in bytes.",
        *place,
    )


def _check_summary_order(at: int, summary: Summary) -> None:
    for name, stated in stated_aggregates(summary).items():
        known = [value for value in (stated.min, stated.mean, stated.max) if value is not None]
        # The mean of equal values may come out a rounding error above them.
        if any(low > high * (1 + ROUNDING) for low, high in itertools.pairwise(known)):
            raise refusal(
                "summary_order",
                f"`{name}` should have min <= mean <= max, not {', '.join(f'{value:g}' for value in known)}.",
                "operations", at, "summary", name,
            )  # fmt: skip


def _check_summary_against_ranks(at: int, summary: Summary, observed: Observed) -> None:
    place = ("operations", at, "summary")
    if summary["ranks_reporting"] != observed.reporting:
        raise refusal(
            "summary_mismatch",
            f"The summary is over {summary['ranks_reporting']} ranks, but `ranks` holds "
            f"{observed.reporting}; leave one of the two out.",
            *place, "ranks_reporting",
        )  # fmt: skip
    for name, stated in stated_aggregates(summary).items():
        told = observed.aggregates.get(name)
        if told is None:
            continue
        for which, one, other in (
            ("min", stated.min, told.min),
            ("mean", stated.mean, told.mean),
            ("max", stated.max, told.max),
        ):
            if one is not None and other is not None and _disagree(one, other):
                raise refusal(
                    "summary_mismatch",
                    f"The summary has {one:.10g} as {which} of `{name}`, the ranks have {other:.10g}; leave "
                    "one of the two out.",
                    *place, name, which,
                )  # fmt: skip
    slowest, io = summary.get("slowest_rank"), observed.columns.get("io_seconds")
    if slowest is not None and io is not None:
        own_seconds = dict(zip(observed.ranks, io, strict=True)).get(slowest, 0.0)
        if _disagree(own_seconds, max(io)):
            raise refusal(
                "summary_mismatch",
                f"The summary has rank {slowest} as the slowest, but rank {slowest_rank(observed.ranks, io)} "
                "has the largest `io_seconds`.",
                *place, "slowest_rank",
            )  # fmt: skip


def _disagree(one: float, other: float) -> bool:
    # Bytes that differ do so by more than a thousandth of one, so both limits may hold for them too.
    limit = max(SUMMARY_TOLERANCE_FRACTION * max(one, other), TIME_TOLERANCE_SECONDS)
    return abs(one - other) > limit * (1 + ROUNDING) + ROUNDING


# --- Doubts -----------------------------------------------------------------------------------------------


def _doubts(document: Document, operations: Sequence[DcpOperation]) -> list[Doubt]:
    """Return what the document itself gives reason to doubt."""
    return [
        *_failures(operations),
        *_partial_ranks(operations),
        *_writes_without_fsync(document),
        *_cached_reads(document),
        *_stragglers(operations),
        *_uneven_nodes(document),
        *_repetitions(operations),
    ]


def _about(code: DoubtCode, found: Sequence[int], message: str, *, operations: int) -> list[Doubt]:
    """Return a doubt for each operation found, or one for the document where it is about all of them.

    The message lacks its subject, which goes before it.
    """
    if len(found) == operations > 1:
        return [Doubt(code=code, message=f"Every operation{message}")]
    return [Doubt(code=code, measurement=at, message=f"Operation {at}{message}") for at in found]


def _failures(operations: Sequence[DcpOperation]) -> list[Doubt]:
    """Doubt operations that failed: they were begun and not completed. It voids those, not the others."""
    return _about(
        DoubtCode.INCOMPLETE_RUN,
        [at for at, figures in enumerate(operations) if figures.status == "failed"],
        " failed and counts in no figure: find out why before trusting that the others will not, then "
        "repeat it.",
        operations=len(operations),
    )


def _partial_ranks(operations: Sequence[DcpOperation]) -> list[Doubt]:
    return _about(
        DoubtCode.PARTIAL_RANKS,
        [at for at, figures in enumerate(operations) if figures.partial_ranks and figures.status == "ok"],
        f" has times of fewer than the {operations[0].world_size} ranks of the run, so a slower rank may "
        "be missing: gather the times of all ranks.",
        operations=len(operations),
    )


def _writes_without_fsync(document: Document) -> list[Doubt]:
    """Doubt saves that may be in memory yet.

    torch's own writer syncs unless told not to; what others do where the document is silent is not known.
    """
    saves = [
        (at, operation.get("settings", {}).get("sync_files"))
        for at, operation in enumerate(document["operations"])
        if operation["op"] in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) and is_ok(operation)
    ]
    count = len(document["operations"])
    unsynced = _about(
        DoubtCode.NO_FSYNC,
        [at for at, synced in saves if synced is False],
        " wrote with `sync_files` false, so bytes may not have reached the storage when the clock stopped: "
        "measure with `sync_files` true.",
        operations=count,
    )
    if document["software"]["checkpointer"] == _TORCH:
        return unsynced
    unknown = _about(
        DoubtCode.FSYNC_UNKNOWN,
        [at for at, synced in saves if synced is None],
        f" does not say whether {cut(document['software']['checkpointer'])} synced its files: state "
        "`sync_files` in its settings.",
        operations=count,
    )
    return [*unsynced, *unknown]


def _cached_reads(document: Document) -> list[Doubt]:
    """Doubt loads that may have come out of memory.

    Those that say so, and, as for any read, those on one node that do not say that the cache was cold:
    one node that reads what it wrote finds it in its own memory. On several nodes a silence is told, no more.
    """
    loads = [
        (at, operation.get("settings", {}).get("page_cache", "unknown"))
        for at, operation in enumerate(document["operations"])
        if operation["op"] in (DcpOp.LOAD, DcpOp.RESHARDED_LOAD) and is_ok(operation)
    ]
    count = len(document["operations"])
    cure = "drop the caches before the load and state `page_cache` cold."
    warm = _about(
        DoubtCode.CACHED_READ,
        [at for at, cache in loads if cache == "warm"],
        f" read with a warm page cache, so the rate is that of memory: {cure}",
        operations=count,
    )
    alone = _about(
        DoubtCode.CACHED_READ,
        [at for at, cache in loads if cache == "unknown" and document["nodes"] == 1],
        f" read on one node and does not say that its page cache was cold: {cure}",
        operations=count,
    )
    untold = _about(
        DoubtCode.CACHE_UNKNOWN,
        [at for at, cache in loads if cache == "unknown" and document["nodes"] != 1],
        f" does not say whether its page cache was cold, so nodes may have read what they had just written: {cure}",
        operations=count,
    )
    return [*warm, *alone, *untold]


def _stragglers(operations: Sequence[DcpOperation]) -> list[Doubt]:
    return [
        Doubt(
            code=DoubtCode.STRAGGLER,
            measurement=at,
            message=f"In operation {at} the slowest rank{_named(figures.slowest_rank)} took "
            f"{figures.skew_max_over_mean:.3g} times the ranks' mean for its own reading or writing: look at "
            "its bytes, its node and its path to the storage.",
        )
        for at, figures in enumerate(operations)
        if figures.status == "ok"
        and figures.skew_basis == "io_seconds"
        and (figures.skew_max_over_mean or 0) > STRAGGLER_MAX_OVER_MEAN
    ]


def _named(rank: int | None) -> str:
    return "" if rank is None else f", {rank},"


def _uneven_nodes(document: Document) -> list[Doubt]:
    """Doubt figures per node where nodes hold unlike numbers of ranks."""
    ranks, nodes = document["world_size"], document["nodes"]
    if "ranks_per_node" not in document and ranks % nodes:
        return [
            Doubt(
                code=DoubtCode.UNEVEN_NODES,
                message=f"{ranks} ranks cannot be spread evenly over {nodes} nodes, so figures per node are "
                "means of unlike nodes: run with the same number on each.",
            )
        ]
    for at, operation in enumerate(document["operations"]):
        on_node = Counter(record["node"] for record in operation.get("ranks", ()) if "node" in record)
        if on_node.total() == ranks and (len(on_node) < nodes or len(set(on_node.values())) > 1):
            return [
                Doubt(
                    code=DoubtCode.UNEVEN_NODES,
                    measurement=at,
                    message=f"The ranks of operation {at} are not spread evenly over the {nodes} nodes, so "
                    "figures per node are means of unlike nodes: run with the same number on each.",
                )
            ]
    return []


def _repetitions(operations: Sequence[DcpOperation]) -> list[Doubt]:
    """Doubt the figures of each kind of operation that was repeated too few times, or came out unlike.

    The first names the first operation of its kind that counts, the second the slowest of its kind.
    """
    doubts = []
    for op in dict.fromkeys(figures.op for figures in operations):
        kind = [at for at, figures in enumerate(operations) if figures.op is op]
        counted = [at for at in kind if counts(operations[at])]
        if len(counted) < ENOUGH_REPETITIONS:
            doubts.append(
                Doubt(
                    code=DoubtCode.FEW_REPETITIONS,
                    measurement=(counted or kind)[0],
                    message=f"The figures of {op} rest on {len(counted)} "
                    f"operation{'' if len(counted) == 1 else 's'}, those that are ok and not warm-up: record "
                    f"{ENOUGH_REPETITIONS} or more.",
                )
            )
        rates = {at: rate for at in counted if (rate := _comparable_rate(operations[at])) is not None}
        if len(rates) < 2:
            continue
        slowest, fastest = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
        if rates[fastest] - rates[slowest] > WIDE_SPREAD_FRACTION * statistics.fmean(rates.values()):
            doubts.append(
                Doubt(
                    code=DoubtCode.WIDE_SPREAD,
                    measurement=slowest,
                    message=f"The rates of {op} lie between {rates[slowest]:.4g} GB/s (operation {slowest}) "
                    f"and {rates[fastest]:.4g} GB/s (operation {fastest}), more than a quarter of their mean "
                    "apart: find out what else used the storage, and measure again.",
                )
            )
    return doubts


def _comparable_rate(figures: DcpOperation) -> float | None:
    rate = rate_gb_per_second(figures)
    return figures.restore_effective_gb_per_second if rate is None else rate
