"""The dcp-timing format, version 1: what checkpoint operations took, as a training team recorded it.

Here are the model of the document, the rules that hold between its fields, the figures that follow from
it (bandwidth, blocked time, drain, skew, restore rates) and the doubts that it raises by itself. `parse`
goes through them in this order, and so does this file.

A document is refused for the first fault found: in its JSON, then in its shape, then in its topology,
then operation by operation, each by the rules in the order in which the format's page lists them.

Documents may hold hundreds of thousands of rank records. So the parts are typed dictionaries: they are
read in half the time of model objects, take a quarter of the memory, and say as types what the format
says, that a field may be absent but not null.
"""

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BeforeValidator, ConfigDict, FailFast, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import TypedDict  # pydantic reads the standard library's only from Python 3.12 on

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers.measurement import DcpOp, DcpOperation, DcpSummary, Doubt, DoubtCode, Record
from service.wire import EXACT_INTEGER_MAX, Flag, Integer

FORMAT_NAME = "dcp-timing"

BYTES_PER_GB = 1_000_000_000

TIME_TOLERANCE_SECONDS = 0.001
"""By so much a part may exceed its whole, and a summary its ranks: clocks are read one after another."""

WINDOW_TOLERANCE_SECONDS = 1.0
"""By so much a duration may exceed the wall-clock window in which it lies."""

CHECKPOINT_TOLERANCE_PER_CENT = 1
"""By so much the size of a saved checkpoint may differ from the bytes written, of the latter."""

SUMMARY_TOLERANCE_FRACTION = 0.001
"""By so much a summary may differ from the ranks beside it, of the larger figure."""

PLAUSIBLE_BYTES_PER_SECOND_PER_RANK = 200 * BYTES_PER_GB
"""No rank moves more; a document that says so has a wrong unit, or a time that is none."""

ENOUGH_REPETITIONS = 3
WIDE_SPREAD_FRACTION = 0.25
STRAGGLER_MAX_OVER_MEAN = 1.5

_ROUNDING = 1e-9
"""What lies on a limit in decimal shall not fall beyond it in binary."""

_SHOWN_CHARACTERS = 80
"""More of the poster's own text than this is not repeated in a fault."""

_TORCH = "torch.distributed.checkpoint"


# --- The document: shape, types and bounds, the same as in the format's JSON Schema -----------------------

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_STRICT = ConfigDict(extra="forbid")


def _read_instant(value: object) -> datetime:
    """Return the instant of an RFC 3339 timestamp, in UTC; a leap second is the second after it."""
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
        leaps = value[17:19] == "60"
        try:
            read = datetime.fromisoformat(f"{value[:17]}59{value[19:]}" if leaps else value)
            return (read + timedelta(seconds=leaps)).astimezone(UTC)
        except (ValueError, OverflowError):  # the 30th of February; the year 0
            pass
    raise PydanticCustomError(
        "timestamp", "Input should be an RFC 3339 timestamp with a zone, such as 2026-11-29T10:00:00Z"
    )


def _read_version(value: object) -> object:
    # Python holds True to be 1 and so would a Literal; JSON does not.
    if isinstance(value, bool) or value != 1:
        raise PydanticCustomError("version", "Input should be 1")
    return 1


def _text(least: int, most: int) -> Any:  # noqa: ANN401 - a piece of an annotation
    return Field(strict=True, min_length=least, max_length=most)


Instant = Annotated[datetime, BeforeValidator(_read_instant)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1_000_000, allow_inf_nan=False)]
Bytes = Annotated[Integer, Field(ge=0, le=EXACT_INTEGER_MAX)]
Positive = Annotated[Integer, Field(ge=1, le=10_000_000)]
Count = Annotated[Integer, Field(ge=0, le=1_000_000_000)]
Index = Annotated[Integer, Field(ge=0, le=9_999_999)]


@with_config(_STRICT)
class Software(TypedDict):
    """What made the checkpoints."""

    checkpointer: Annotated[str, _text(1, 64)]
    checkpointer_version: Annotated[str, _text(1, 64)]
    trainer: NotRequired[Annotated[str, _text(0, 64)]]
    trainer_version: NotRequired[Annotated[str, _text(0, 64)]]
    collective_backend: NotRequired[Annotated[str, _text(0, 32)]]


@with_config(_STRICT)
class Storage(TypedDict):
    """What was measured."""

    label: Annotated[str, _text(1, 128)]
    kind: NotRequired[Literal["local", "remote_block", "nas", "parallel_fs", "object", "memory", "other"]]
    notes: NotRequired[Annotated[str, _text(0, 1024)]]


@with_config(_STRICT)
class State(TypedDict):
    """What was in the checkpoints."""

    parameters: NotRequired[Annotated[Integer, Field(ge=1, le=EXACT_INTEGER_MAX)]]
    sharding: NotRequired[Annotated[str, _text(0, 64)]]
    contents: NotRequired[Annotated[list[Annotated[str, _text(0, 64)]], FailFast(), Field(max_length=32)]]


@with_config(_STRICT)
class Settings(TypedDict, total=False):
    """How the checkpointer was set, under torch's names."""

    async_checkpointer_type: Literal["thread", "process"]
    async_staging: Flag
    pinned_memory: Flag
    thread_count: Positive
    sync_files: Flag
    single_file_per_rank: Flag
    page_cache: Literal["cold", "warm", "unknown"]


@with_config(_STRICT)
class RankRecord(TypedDict):
    """The times of one rank in one operation, all from the moment at which its training loop stops."""

    rank: Index
    node: NotRequired[Index]
    started_at: NotRequired[Instant]
    blocked_seconds: NotRequired[Seconds]
    wait_previous_seconds: NotRequired[Seconds]
    staging_seconds: NotRequired[Seconds]
    plan_seconds: NotRequired[Seconds]
    io_seconds: NotRequired[Seconds]
    persist_seconds: NotRequired[Seconds]
    total_seconds: NotRequired[Seconds]
    bytes: NotRequired[Bytes]
    files: NotRequired[Count]


@with_config(_STRICT)
class SecondsStatistic(TypedDict):
    """One time over the ranks. [s]"""

    min: NotRequired[Seconds]
    mean: NotRequired[Seconds]
    max: Seconds


@with_config(_STRICT)
class BytesStatistic(TypedDict):
    """Bytes over the ranks."""

    min: NotRequired[Bytes]
    mean: NotRequired[Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]]
    max: Bytes


@with_config(_STRICT)
class Summary(TypedDict):
    """Aggregates over the ranks, instead of their records or beside them."""

    ranks_reporting: Positive
    blocked_seconds: NotRequired[SecondsStatistic]
    wait_previous_seconds: NotRequired[SecondsStatistic]
    staging_seconds: NotRequired[SecondsStatistic]
    io_seconds: NotRequired[SecondsStatistic]
    persist_seconds: NotRequired[SecondsStatistic]
    total_seconds: NotRequired[SecondsStatistic]
    bytes: NotRequired[BytesStatistic]
    slowest_rank: NotRequired[Index]


@with_config(_STRICT)
class Operation(TypedDict):
    """One save, async save, load or resharded load; `_check_shape` has the rules that depend on which."""

    op: Literal["save", "async_save", "load", "resharded_load"]
    status: NotRequired[Literal["ok", "failed"]]
    error: NotRequired[Annotated[str, _text(0, 2048)]]
    step: NotRequired[Count]
    checkpoint: NotRequired[Annotated[str, _text(0, 256)]]
    warmup: NotRequired[Flag]
    started_at: NotRequired[Instant]
    ended_at: NotRequired[Instant]
    saved_world_size: NotRequired[Positive]
    checkpoint_bytes: NotRequired[Bytes]
    metadata_bytes: NotRequired[Bytes]
    bytes_total: NotRequired[Bytes]
    files_total: NotRequired[Count]
    settings: NotRequired[Settings]
    ranks: NotRequired[Annotated[list[RankRecord], FailFast(), Field(min_length=1, max_length=200_000)]]
    summary: NotRequired[Summary]


@with_config(_STRICT)
class Document(TypedDict):
    """A whole dcp-timing document."""

    format: Literal["dcp-timing"]
    format_version: Annotated[int, BeforeValidator(_read_version)]
    run_id: Annotated[str, _text(1, 128)]
    recorded_at: Instant
    label: NotRequired[Annotated[str, _text(0, 256)]]
    software: Software
    world_size: Positive
    nodes: Positive
    ranks_per_node: NotRequired[Positive]
    storage: Storage
    state: NotRequired[State]
    operations: Annotated[list[Operation], FailFast(), Field(min_length=1, max_length=10_000)]


_document: TypeAdapter[Document] = TypeAdapter(Document)

_HEAD = frozenset(Document.__required_keys__) - {"format"}
_ASYNC_TIMES = ("staging_seconds", "persist_seconds", "wait_previous_seconds")
_ASYNC_SETTINGS = ("async_checkpointer_type", "async_staging")

Quantity = Literal[
    "blocked_seconds",
    "wait_previous_seconds",
    "staging_seconds",
    "io_seconds",
    "persist_seconds",
    "total_seconds",
    "bytes",
]
"""What both a rank record and a summary may hold."""

_QUANTITIES: tuple[Quantity, ...] = (
    "blocked_seconds",
    "wait_previous_seconds",
    "staging_seconds",
    "io_seconds",
    "persist_seconds",
    "total_seconds",
    "bytes",
)
_PARTS_OF_TOTAL: tuple[Quantity, ...] = (
    "blocked_seconds",
    "staging_seconds",
    "io_seconds",
    "persist_seconds",
)


# --- Reading ---------------------------------------------------------------------------------------------


def recognises(value: object) -> bool:
    """Return whether a JSON value is a dcp-timing document, or is evidently meant to be one.

    The second is so that a document whose `format` is missing or misspelt is told what to mend, rather
    than that nobody knows it: `format` begins with dcp, or `operations` stands among most of the other
    required fields.
    """
    if not isinstance(value, dict):
        return False
    name = value.get("format")
    if isinstance(name, str) and name.strip().lower().startswith("dcp"):
        return True
    return "operations" in value and 2 * len(_HEAD & value.keys()) > len(_HEAD)


def parse(text: str) -> Record:
    """Return what a dcp-timing document says, the figures that follow, and the doubts it raises.

    Args:
        text: The whole document, decoded.

    Raises:
        UnreadableDocument: With the format's own code for the first thing that is wrong, and the place:
            the line of a syntax error, else the pointer (`#/operations/0/ranks/1/total_seconds`).

    References:
        The dcp-timing format, version 1.
    """
    document = _read(text)
    _check_topology(document)
    world_size = document["world_size"]
    all_observed = []
    for at, operation in enumerate(document["operations"]):
        observed = observe(operation, world_size=world_size)
        _check_operation(at, operation, observed, document)
        all_observed.append(observed)
    operations = _figures(document, all_observed)
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


def _read(text: str) -> Document:
    try:
        value = strict_json.loads(text)
    except strict_json.JsonFault as fault:
        # Nesting beyond any use is a fault of shape: the format knows no word of its own for it.
        code = "schema" if fault.code == "too_deep" else fault.code
        raise UnreadableDocument(code, fault.detail, line=fault.line, pointer=fault.pointer) from None
    try:
        document = _document.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise _schema_fault(first) from None
    for at, operation in enumerate(document["operations"]):
        _check_shape(at, operation)
    return document


def _refusal(code: str, detail: str, *place: str | int) -> UnreadableDocument:
    return UnreadableDocument(code, detail, pointer=strict_json.pointer(*place))


def _schema_fault(error: ErrorDetails) -> UnreadableDocument:
    """Turn what pydantic found into one sentence about one place."""
    place = list(error["loc"])
    subject = f"`{place[-1]}`" if place and isinstance(place[-1], str) else "It"
    if place and isinstance(place[-1], str) and len(place[-1]) > _SHOWN_CHARACTERS:
        subject = f"`{str(place.pop())[:_SHOWN_CHARACTERS]}…`"
    if not place:
        subject = "The document"
    elif isinstance(place[-1], int):
        subject = f"Item {place[-1]} of `{place[-2]}`"
    match error["type"]:
        case "missing":
            detail = f"{subject} is missing; the format requires it here."
        case "extra_forbidden":
            detail = (
                f"{subject} is no field of the format here; take it out or give it its name in the format, "
                "where every time ends in _seconds and every size in bytes."
            )
        case "dict_type":
            detail = f"{subject} should be an object, not {_shown(error['input'])}."
        case "list_type":
            detail = f"{subject} should be an array, not {_shown(error['input'])}."
        case "too_short" | "too_long":
            should = error["msg"].partition(" ")[2].partition(" after validation")[0]
            detail = f"{subject} {should}."
        case _:
            should = error["msg"].partition(" ")[2]
            detail = f"{subject} {should}, not {_shown(error['input'])}."
    return _refusal("schema", detail, *place)


def _shown(value: object) -> str:
    """Return the poster's value as it may be repeated to him: as JSON writes it, and short."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f'"{_cut(value)}"'
        case _:
            return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _check_shape(at: int, operation: Operation) -> None:
    """Check what the schema asks of an operation by its `op` and `status`."""
    op = operation["op"]
    place = ("operations", at)
    if op == "resharded_load" and "saved_world_size" not in operation:
        raise _refusal(
            "schema",
            "`saved_world_size` is missing; a resharded_load says how many ranks wrote the checkpoint.",
            *place, "saved_world_size",
        )  # fmt: skip
    if not _is_ok(operation) and "error" not in operation:
        raise _refusal(
            "schema", "`error` is missing; an operation that failed says what went wrong.", *place, "error"
        )
    if "ranks" not in operation and "summary" not in operation:
        raise _refusal(
            "schema", "The operation has neither `ranks` nor `summary`; give at least one.", *place
        )
    if op != "async_save":
        _check_no_async_fields(at, operation)
    if _is_ok(operation):
        needed: Quantity = "blocked_seconds" if op == "async_save" else "total_seconds"
        detail = f"`{needed}` is missing; {_an(op)} that is ok needs it."
        for index, record in enumerate(operation.get("ranks", ())):
            if needed not in record:
                raise _refusal("schema", detail, *place, "ranks", index, needed)
        if needed not in operation.get("summary", {needed: None}):
            raise _refusal("schema", detail, *place, "summary", needed)


def _check_no_async_fields(at: int, operation: Operation) -> None:
    detail = "`{}` belongs to an async_save only; take it out of {}."
    op = _an(operation["op"])
    for name in _ASYNC_SETTINGS:
        if name in operation.get("settings", ()):
            raise _refusal("schema", detail.format(name, op), "operations", at, "settings", name)
    misplaced = frozenset(_ASYNC_TIMES)
    for index, record in enumerate(operation.get("ranks", ())):
        if not misplaced.isdisjoint(record):
            name = next(name for name in _ASYNC_TIMES if name in record)
            raise _refusal("schema", detail.format(name, op), "operations", at, "ranks", index, name)
    for name in _ASYNC_TIMES:
        if name in operation.get("summary", ()):
            raise _refusal("schema", detail.format(name, op), "operations", at, "summary", name)


def _an(op: str) -> str:
    return f"an {op}" if op == "async_save" else f"a {op}"


def _is_ok(operation: Operation) -> bool:
    return operation.get("status", "ok") == "ok"


# --- What the ranks say together --------------------------------------------------------------------------


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
        aggregates = _stated(operation["summary"])
        reporting = operation["summary"]["ranks_reporting"]
    if operation["op"] != "async_save":
        _block_for_the_total(records, columns, aggregates)
    bytes_total = operation.get("bytes_total")
    if bytes_total is None and len(records) == world_size and "bytes" in columns:
        bytes_total = sum(record["bytes"] for record in records)
    return Observed(
        op=DcpOp(operation["op"]),
        ok=_is_ok(operation),
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


def _stated(summary: Summary) -> dict[Quantity, Aggregate]:
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


# --- The rules between the fields -------------------------------------------------------------------------


def _check_topology(document: Document) -> None:
    ranks, nodes, per_node = document["world_size"], document["nodes"], document.get("ranks_per_node")
    if nodes > ranks:
        raise _refusal(
            "topology_mismatch",
            f"{nodes} nodes cannot run {ranks} ranks; `nodes` is at most `world_size`.",
            "nodes",
        )
    if per_node is not None and nodes * per_node != ranks:
        raise _refusal(
            "topology_mismatch",
            f"{nodes} nodes of {per_node} ranks are not {ranks} ranks; leave `ranks_per_node` out where nodes "
            "differ.",
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
            raise _refusal(
                "rank_out_of_range", f"There is no rank {record['rank']}: {known}",
                "operations", at, "ranks", index, "rank",
            )  # fmt: skip
    if "summary" in operation:
        summary = operation["summary"]
        if summary["ranks_reporting"] > world_size:
            raise _refusal(
                "rank_out_of_range",
                f"{summary['ranks_reporting']} ranks cannot have reported: {known}",
                "operations", at, "summary", "ranks_reporting",
            )  # fmt: skip
        if summary.get("slowest_rank", 0) >= world_size:
            raise _refusal(
                "rank_out_of_range", f"There is no rank {summary['slowest_rank']}: {known}",
                "operations", at, "summary", "slowest_rank",
            )  # fmt: skip
    for index, record in enumerate(records):
        if record.get("node", 0) >= nodes:
            raise _refusal(
                "node_out_of_range",
                f"There is no node {record['node']}: the run has {nodes} nodes, counted from 0 to {nodes - 1}.",
                "operations", at, "ranks", index, "node",
            )  # fmt: skip
    seen: set[int] = set()
    for index, record in enumerate(records):
        if record["rank"] in seen:
            raise _refusal(
                "duplicate_rank", f"Rank {record['rank']} stands twice; give one record for each rank.",
                "operations", at, "ranks", index, "rank",
            )  # fmt: skip
        seen.add(record["rank"])
    saved_by = operation.get("saved_world_size", world_size)
    if operation["op"] == "load" and saved_by != world_size:
        raise _refusal(
            "op_mismatch",
            f"A checkpoint of {saved_by} ranks that {world_size} ranks load is a resharded_load, not a load.",
            "operations", at, "saved_world_size",
        )  # fmt: skip


def _check_parts(at: int, operation: Operation) -> None:
    tolerance = TIME_TOLERANCE_SECONDS + _ROUNDING
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
    aggregates = _stated(operation["summary"]) if "summary" in operation else {}
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
    return _refusal(
        "part_exceeds_total",
        f"`{part}` of {part_seconds:g} s is longer than the {whole_seconds:g} s of `{whole}`, of which it is a "
        "part; check the units and from when each is counted.",
        *place,
    )


def _check_bytes(at: int, operation: Operation, observed: Observed) -> None:
    records = operation.get("ranks", [])
    stated = operation.get("bytes_total")
    if stated is not None and records:
        told = sum(record.get("bytes", 0) for record in records)
        complete = len(records) == observed.world_size and "bytes" in observed.columns
        if told > stated or (complete and told != stated):
            raise _refusal(
                "bytes_mismatch",
                f"The ranks' bytes sum to {told}, but `bytes_total` is {stated}; it is the sum over all ranks.",
                "operations", at, "bytes_total",
            )  # fmt: skip
    if stated is not None and not records and "bytes" in observed.aggregates:
        largest = observed.aggregates["bytes"].max
        if largest > stated:
            raise _refusal(
                "bytes_mismatch",
                f"One rank moved {largest:.0f} bytes, but `bytes_total`, the sum over all ranks, is {stated}.",
                "operations", at, "bytes_total",
            )  # fmt: skip
    size, moved = operation.get("checkpoint_bytes"), observed.bytes_total
    if observed.op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) and size is not None and moved is not None:
        if abs(size - moved) * 100 > moved * CHECKPOINT_TOLERANCE_PER_CENT:
            raise _refusal(
                "bytes_mismatch",
                f"A checkpoint of {size} bytes does not come of {moved} bytes written; `checkpoint_bytes` and "
                "`bytes_total` of a save may differ by one per cent.",
                "operations", at, "checkpoint_bytes",
            )  # fmt: skip


def _check_files(at: int, operation: Operation, observed: Observed) -> None:
    records, stated = operation.get("ranks", []), operation.get("files_total")
    if observed.op not in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) or stated is None:
        return
    if len(records) == observed.world_size and all("files" in record for record in records):
        told = sum(record["files"] for record in records)
        if told != stated:
            raise _refusal(
                "files_mismatch",
                f"The ranks' files sum to {told}, but `files_total` is {stated}; it is the sum over all ranks.",
                "operations", at, "files_total",
            )  # fmt: skip


def _check_nothing_is_zero(at: int, operation: Operation, observed: Observed) -> None:
    if not observed.ok:
        return
    if observed.bytes_total == 0:
        name = "bytes_total" if "bytes_total" in operation else "ranks"
        raise _refusal(
            "zero_bytes",
            f"The {observed.op} is ok but moved no bytes; leave bytes that are not known out.",
            "operations", at, name,
        )  # fmt: skip
    if end_to_end_seconds(observed) == 0:
        raise _refusal(
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
        raise _refusal(
            "end_before_start",
            f"`ended_at` lies {-window_seconds:g} s before `started_at`; it is the latest end over the ranks.",
            "operations", at, "ended_at",
        )  # fmt: skip
    longest_seconds = end_to_end_seconds(observed)
    if (
        longest_seconds is not None
        and longest_seconds > window_seconds + WINDOW_TOLERANCE_SECONDS + _ROUNDING
    ):
        raise _refusal(
            "window_mismatch",
            f"`total_seconds` of {longest_seconds:g} does not fit into the {window_seconds:g} s from `started_at` "
            "to `ended_at`; times are in seconds, not milliseconds.",
            *_place_of_longest(at, observed),
        )


def _is_plausible(*, moved_bytes: float, seconds: float, ranks: int) -> bool:
    return moved_bytes <= PLAUSIBLE_BYTES_PER_SECOND_PER_RANK * ranks * seconds * (1 + _ROUNDING)


def _check_rates(at: int, operation: Operation, observed: Observed) -> None:
    for index, record in enumerate(operation.get("ranks", ())):
        name: Literal["io_seconds", "total_seconds"] = (
            "io_seconds" if "io_seconds" in record else "total_seconds"
        )
        if "bytes" in record and name in record:
            moved_bytes, seconds = record["bytes"], record[name]
            if not _is_plausible(moved_bytes=moved_bytes, seconds=seconds, ranks=1):
                raise _implausible(
                    f"{moved_bytes} bytes of one rank", seconds, "operations", at, "ranks", index, name
                )
    moved = observed.bytes_total
    if moved is None:
        return
    total_seconds = end_to_end_seconds(observed)
    place = _place_of_longest(at, observed)
    if total_seconds is not None and not _is_plausible(
        moved_bytes=moved, seconds=total_seconds, ranks=observed.world_size
    ):
        raise _implausible(f"{moved} bytes of {observed.world_size} ranks", total_seconds, *place)
    # The rate of an async save is over its drain, so a stated drain must be a time as well.
    persist = observed.aggregates.get("persist_seconds")
    if persist is not None and not _is_plausible(
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
    return _refusal(
        "implausible_rate",
        f"{what} in {seconds:g} s are more than {PLAUSIBLE_BYTES_PER_SECOND_PER_RANK // BYTES_PER_GB} GB/s a rank; "
        "times are in seconds and sizes in bytes.",
        *place,
    )


def _check_summary_order(at: int, summary: Summary) -> None:
    for name, stated in _stated(summary).items():
        known = [value for value in (stated.min, stated.mean, stated.max) if value is not None]
        # The mean of equal values may come out a rounding error above them.
        if any(low > high * (1 + _ROUNDING) for low, high in zip(known, known[1:], strict=False)):
            raise _refusal(
                "summary_order",
                f"`{name}` should have min <= mean <= max, not {' , '.join(f'{value:g}' for value in known)}.",
                "operations", at, "summary", name,
            )  # fmt: skip


def _check_summary_against_ranks(at: int, summary: Summary, observed: Observed) -> None:
    place = ("operations", at, "summary")
    if summary["ranks_reporting"] != observed.reporting:
        raise _refusal(
            "summary_mismatch",
            f"The summary is over {summary['ranks_reporting']} ranks, but `ranks` holds {observed.reporting}; leave "
            "one of the two out.",
            *place, "ranks_reporting",
        )  # fmt: skip
    for name, stated in _stated(summary).items():
        told = observed.aggregates.get(name)
        if told is None:
            continue
        for which, one, other in (
            ("min", stated.min, told.min),
            ("mean", stated.mean, told.mean),
            ("max", stated.max, told.max),
        ):
            if one is not None and other is not None and _disagree(name, one, other):
                raise _refusal(
                    "summary_mismatch",
                    f"The summary has {one:.10g} as {which} of `{name}`, the ranks have {other:.10g}; leave one of "
                    "the two out.",
                    *place, name, which,
                )  # fmt: skip
    slowest, io = summary.get("slowest_rank"), observed.columns.get("io_seconds")
    if slowest is not None and io is not None:
        own_seconds = dict(zip(observed.ranks, io, strict=True)).get(slowest, 0.0)
        if _disagree("io_seconds", own_seconds, max(io)):
            raise _refusal(
                "summary_mismatch",
                f"The summary has rank {slowest} as the slowest, but rank {slowest_rank(observed.ranks, io)} has the "
                "largest `io_seconds`.",
                *place, "slowest_rank",
            )  # fmt: skip


def _disagree(name: Quantity, one: float, other: float) -> bool:
    apart = abs(one - other)
    if apart <= SUMMARY_TOLERANCE_FRACTION * max(one, other) * (1 + _ROUNDING):
        return False
    return name == "bytes" or apart > TIME_TOLERANCE_SECONDS + _ROUNDING


# --- The derived figures ----------------------------------------------------------------------------------


def end_to_end_seconds(observed: Observed) -> float | None:
    """Return how long the operation took until every rank was done, the largest `total_seconds`. [s]

    Source: the dcp-timing format, version 1, “Derived figures”, as for the functions that follow.
    """
    return observed.aggregates["total_seconds"].max if "total_seconds" in observed.aggregates else None


def durable_lag_seconds(observed: Observed) -> float | None:
    """Return how long after training went on the checkpoint of an async save was safe. [s]

    The largest `total_seconds - blocked_seconds` of a rank; with a summary only, the difference of the
    two maxima. Never below 0, where two readings of a clock cross. Unknown for an async save that
    failed, which left nothing safe.
    """
    return _longest_after_blocking(observed) if observed.ok else None


def drain_seconds(observed: Observed) -> float | None:
    """Return how long an async save was writing: the largest `persist_seconds`. [s]

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
    return max(0.0, *(whole - part for whole, part in zip(totals, blocks, strict=True)))


_TOTAL_AND_BLOCKED: tuple[Quantity, Quantity] = ("total_seconds", "blocked_seconds")


def io_seconds_max(observed: Observed) -> float | None:
    """Return the largest `io_seconds`, when every rank of the world reports it. [s]"""
    if partial_ranks(observed) or "io_seconds" not in observed.aggregates:
        return None
    return observed.aggregates["io_seconds"].max


def partial_ranks(observed: Observed) -> bool:
    """Return whether fewer ranks report than the world has."""
    return observed.reporting < observed.world_size


def checkpoint_bytes(operation: Operation, observed: Observed) -> int | None:
    """Return the size of the checkpoint on storage: as stated, else what a save wrote. [bytes]

    What a save wrote before it failed is not the size of a checkpoint.
    """
    stated = operation.get("checkpoint_bytes")
    if stated is None and observed.ok and observed.op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE):
        return observed.bytes_total
    return stated


def gb_per_second(*, moved_bytes: float | None, seconds: float | None) -> float | None:
    """Return bytes over seconds. [10^9 bytes/s]

    Unknown where either is, and where the time is zero: a rate over no time is no rate.
    """
    if moved_bytes is None or seconds is None or seconds <= 0:
        return None
    return moved_bytes / BYTES_PER_GB / seconds


def write_gb_per_second(observed: Observed) -> float | None:
    """Return the bytes written over the end-to-end time of a save, or the drain of an async one. [10^9 bytes/s]

    A drain that is a difference of two nearly equal times can be too short to be one. The rate is then
    unknown.
    """
    moved, seconds = observed.bytes_total, rated_seconds(observed)
    if not observed.ok or observed.op not in (DcpOp.SAVE, DcpOp.ASYNC_SAVE):
        return None
    if moved is None or seconds is None:
        return None
    if not _is_plausible(moved_bytes=moved, seconds=seconds, ranks=observed.world_size):
        return None
    return gb_per_second(moved_bytes=moved, seconds=seconds)


def rated_seconds(observed: Observed) -> float | None:
    """Return the time over which the rate of an operation is taken: end to end, or the drain if async. [s]"""
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


def _figures(document: Document, all_observed: Sequence[Observed]) -> list[DcpOperation]:
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
        restore_effective_gb_per_second=gb_per_second(moved_bytes=size, seconds=seconds)
        if restored
        else None,
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


def _counts(figures: DcpOperation) -> bool:
    """Return whether an operation counts in the figures of the run."""
    return figures.status == "ok" and not figures.warmup


def _rate(figures: DcpOperation) -> float | None:
    return figures.write_gb_per_second or figures.restore_gb_per_second


def summarise(operations: Sequence[DcpOperation]) -> dict[DcpOp, DcpSummary]:
    """Return the figures of the run by kind of operation, over those that are ok and not warm-up.

    The rate is the sum of bytes over the sum of seconds, and only where each of the operations has both:
    a mean of rates would weigh a quick operation as much as a slow one.
    """
    summary = {}
    for op in dict.fromkeys(figures.op for figures in operations):
        counted = [figures for figures in operations if figures.op is op and _counts(figures)]
        blocked = [figures.blocked_seconds for figures in counted if figures.blocked_seconds is not None]
        rate = None
        if counted and all(_rate(figures) is not None for figures in counted):
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

    The message has `{}` where its subject goes.
    """
    if len(found) == operations > 1:
        return [Doubt(code=code, message=message.format("Every operation"))]
    return [Doubt(code=code, measurement=at, message=message.format(f"Operation {at}")) for at in found]


def _failures(operations: Sequence[DcpOperation]) -> list[Doubt]:
    """Doubt operations that failed: they were begun and not completed. It voids those, not the others."""
    return _about(
        DoubtCode.INCOMPLETE_RUN,
        [at for at, figures in enumerate(operations) if figures.status == "failed"],
        "{} failed and counts in no figure: find out why before trusting that the others will not, then "
        "repeat it.",
        operations=len(operations),
    )


def _partial_ranks(operations: Sequence[DcpOperation]) -> list[Doubt]:
    return _about(
        DoubtCode.PARTIAL_RANKS,
        [at for at, figures in enumerate(operations) if figures.partial_ranks and figures.status == "ok"],
        f"{{}} has times of fewer than the {operations[0].world_size} ranks of the run, so a slower rank may be "
        "missing: gather the times of all ranks.",
        operations=len(operations),
    )


def _writes_without_fsync(document: Document) -> list[Doubt]:
    """Doubt saves that may be in memory yet.

    torch's own writer syncs unless told not to; what others do where the document is silent is not known.
    """
    saves = [
        (at, operation.get("settings", {}).get("sync_files"))
        for at, operation in enumerate(document["operations"])
        if operation["op"] in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) and _is_ok(operation)
    ]
    count = len(document["operations"])
    unsynced = _about(
        DoubtCode.NO_FSYNC,
        [at for at, synced in saves if synced is False],
        "{} wrote with `sync_files` false, so bytes may not have reached the storage when the clock stopped: "
        "measure with `sync_files` true.",
        operations=count,
    )
    if document["software"]["checkpointer"] == _TORCH:
        return unsynced
    unknown = _about(
        DoubtCode.FSYNC_UNKNOWN,
        [at for at, synced in saves if synced is None],
        f"{{}} does not say whether {_cut(document['software']['checkpointer']).replace('{', '{{').replace('}', '}}')} "
        "synced its files: state `sync_files` in its settings.",
        operations=count,
    )
    return [*unsynced, *unknown]


def _cached_reads(document: Document) -> list[Doubt]:
    """Doubt loads that may have come out of memory.

    Those that say so, and, as for any read, those on one node that do not say that the cache was cold:
    one node that reads what it wrote finds it in its own memory.
    """
    loads = [
        (at, operation.get("settings", {}).get("page_cache", "unknown"))
        for at, operation in enumerate(document["operations"])
        if operation["op"] in (DcpOp.LOAD, DcpOp.RESHARDED_LOAD) and _is_ok(operation)
    ]
    count = len(document["operations"])
    cure = "drop the caches before the load and state `page_cache` cold."
    warm = _about(
        DoubtCode.CACHED_READ,
        [at for at, cache in loads if cache == "warm"],
        f"{{}} read with a warm page cache, so the rate is that of memory: {cure}",
        operations=count,
    )
    alone = _about(
        DoubtCode.CACHED_READ,
        [at for at, cache in loads if cache == "unknown" and document["nodes"] == 1],
        f"{{}} read on one node and does not say that its page cache was cold: {cure}",
        operations=count,
    )
    return [*warm, *alone]


def _stragglers(operations: Sequence[DcpOperation]) -> list[Doubt]:
    return [
        Doubt(
            code=DoubtCode.STRAGGLER,
            measurement=at,
            message=f"In operation {at} the slowest rank{_named(figures.slowest_rank)} took "
            f"{figures.skew_max_over_mean:.3g} times the ranks' mean for its own reading or writing: look at its "
            "bytes, its node and its path to the storage.",
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
                message=f"{ranks} ranks cannot be spread evenly over {nodes} nodes, so figures per node are means of "
                "unlike nodes: run with the same number on each.",
            )
        ]
    for at, operation in enumerate(document["operations"]):
        on_node = Counter(record["node"] for record in operation.get("ranks", ()) if "node" in record)
        if on_node.total() == ranks and (len(on_node) < nodes or len(set(on_node.values())) > 1):
            return [
                Doubt(
                    code=DoubtCode.UNEVEN_NODES,
                    measurement=at,
                    message=f"The ranks of operation {at} are not spread evenly over the {nodes} nodes, so figures per "
                    "node are means of unlike nodes: run with the same number on each.",
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
        counted = [at for at in kind if _counts(operations[at])]
        if len(counted) < ENOUGH_REPETITIONS:
            doubts.append(
                Doubt(
                    code=DoubtCode.FEW_REPETITIONS,
                    measurement=(counted or kind)[0],
                    message=f"The figures of {op} rest on {len(counted)} operations that are ok and not warm-up: record "
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
                    message=f"The rates of {op} lie between {rates[slowest]:.4g} GB/s (operation {slowest}) and "
                    f"{rates[fastest]:.4g} GB/s (operation {fastest}), more than a quarter of their mean apart: find "
                    "out what else used the storage, and measure again.",
                )
            )
    return doubts


def _comparable_rate(figures: DcpOperation) -> float | None:
    rate = _rate(figures)
    return figures.restore_effective_gb_per_second if rate is None else rate
