"""The dcp-timing document: its shape, types and bounds, the same as in the format's JSON Schema.

`read` makes typed parts of a text, or says what about it is not the format; the rules between fields are
in `dcp_timing.py`, the figures in `dcp_timing_figures.py`.

Documents may hold hundreds of thousands of rank records. So the parts are typed dictionaries: they are
read in half the time of model objects, take a quarter of the memory, and say as types what the format
says, that a field may be absent but not null.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BeforeValidator, ConfigDict, FailFast, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import TypedDict  # pydantic reads the standard library's only from Python 3.12 on

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers.document import Document as Upload
from service.wire import EXACT_INTEGER_MAX, WHOLE, Flag

_SHOWN_CHARACTERS = 80
"""More of the poster's own text than this is not repeated to him."""

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
Bytes = Annotated[int, Field(strict=True, ge=0, le=EXACT_INTEGER_MAX), WHOLE]
Positive = Annotated[int, Field(strict=True, ge=1, le=10_000_000), WHOLE]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000), WHOLE]
Index = Annotated[int, Field(strict=True, ge=0, le=9_999_999), WHOLE]


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

    parameters: NotRequired[Annotated[int, Field(strict=True, ge=1, le=EXACT_INTEGER_MAX), WHOLE]]
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
    """One time over the ranks, in seconds."""

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

_document: TypeAdapter[Document] = TypeAdapter(Document)

_ASYNC_TIMES = ("staging_seconds", "persist_seconds", "wait_previous_seconds")
_ASYNC_SETTINGS = ("async_checkpointer_type", "async_staging")


def read(upload: Upload) -> Document:
    """Return the document that an upload holds.

    Raises:
        UnreadableDocument: It is not JSON, or not of the shape of the format.
    """
    value = upload.json
    if value is None:
        try:
            value = strict_json.loads(upload.text)
        except strict_json.JsonFault as fault:
            # Nesting beyond any use is a fault of shape: the format knows no word of its own for it.
            code = "schema" if fault.code == "too_deep" else fault.code
            place = "#" if fault.line is None and fault.pointer is None else fault.pointer
            raise UnreadableDocument(code, fault.detail, line=fault.line, pointer=place) from None
    try:
        document = _document.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise _schema_fault(first) from None
    for at, operation in enumerate(document["operations"]):
        _check_shape(at, operation)
    return document


def refusal(code: str, detail: str, *place: str | int) -> UnreadableDocument:
    """Return the error that refuses a document for what stands at a place: keys and indices from the root."""
    return UnreadableDocument(code, detail, pointer=strict_json.pointer(*place))


def _schema_fault(error: ErrorDetails) -> UnreadableDocument:
    """Turn what pydantic found into one sentence about one place."""
    place = list(error["loc"])
    match place:
        case []:
            subject = "The document"
        case [*_, str(name)]:
            subject = f"`{cut(name)}`"
            if len(name) > _SHOWN_CHARACTERS:  # no field of ours: its parent is place enough
                place.pop()
        case _:
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
    return refusal("schema", detail, *place)


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
            return f'"{cut(value)}"'
        case _:
            return cut(str(value))


def cut(text: str) -> str:
    """Return as much of somebody's text as may be repeated in a sentence, and no character that cannot be seen."""
    shown = "".join(each if each.isprintable() else "\ufffd" for each in text[:_SHOWN_CHARACTERS])
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown}…"


def _check_shape(at: int, operation: Operation) -> None:
    """Check what the schema asks of an operation by its `op` and `status`."""
    op = operation["op"]
    place = ("operations", at)
    if op == "resharded_load" and "saved_world_size" not in operation:
        raise refusal(
            "schema",
            "`saved_world_size` is missing; a resharded_load says how many ranks wrote the checkpoint.",
            *place, "saved_world_size",
        )  # fmt: skip
    if not is_ok(operation) and "error" not in operation:
        raise refusal(
            "schema", "`error` is missing; an operation that failed says what went wrong.", *place, "error"
        )
    if "ranks" not in operation and "summary" not in operation:
        raise refusal("schema", "The operation has neither `ranks` nor `summary`; give at least one.", *place)
    if op != "async_save":
        _check_no_async_fields(at, operation)
    if is_ok(operation):
        needed: Quantity = "blocked_seconds" if op == "async_save" else "total_seconds"
        detail = f"`{needed}` is missing; {_an(op)} that is ok needs it."
        for index, record in enumerate(operation.get("ranks", ())):
            if needed not in record:
                raise refusal("schema", detail, *place, "ranks", index, needed)
        if needed not in operation.get("summary", {needed: None}):
            raise refusal("schema", detail, *place, "summary", needed)


def _check_no_async_fields(at: int, operation: Operation) -> None:
    detail = "`{}` belongs to an async_save only; take it out of {}."
    op = _an(operation["op"])
    for name in _ASYNC_SETTINGS:
        if name in operation.get("settings", ()):
            raise refusal("schema", detail.format(name, op), "operations", at, "settings", name)
    misplaced = frozenset(_ASYNC_TIMES)
    for index, record in enumerate(operation.get("ranks", ())):
        if not misplaced.isdisjoint(record):
            name = next(name for name in _ASYNC_TIMES if name in record)
            raise refusal("schema", detail.format(name, op), "operations", at, "ranks", index, name)
    for name in _ASYNC_TIMES:
        if name in operation.get("summary", ()):
            raise refusal("schema", detail.format(name, op), "operations", at, "summary", name)


def _an(op: str) -> str:
    return f"an {op}" if op == "async_save" else f"a {op}"


def is_ok(operation: Operation) -> bool:
    """Return whether an operation succeeded, as it did unless it says otherwise."""
    return operation.get("status", "ok") == "ok"
