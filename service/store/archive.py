"""A workspace as one file of JSON lines, which goes from SQLite to Postgres and back unchanged.

    {"archive": {format_version, engine_version, workspace}}   the first line
    {"scenario": {…}} {"revision": {…}} {"revision": {…}}      each scenario, then all that it ever said
    {"document": {…}} {"piece": "…"} {"piece": "…"}            each original, compressed, in base64
    {"run": {…}}                                               each run, which names its document by its sha256
    {"end": {scenarios, …, sha256}}                            how many there were, and the digest of all before

In this order a reader can store each line as it comes, and holds one document at a time. What a text column holds is
kept letter by letter. Keys are not in it, and neither are audit events: they tell what was done in one database, by
keys of it, and are not to be brought in by a file. An archive comes from outside: every line is checked as an upload
would be, and its digest shows damage, not who wrote it.
"""

import hashlib
import json
import warnings
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Any, BinaryIO, Protocol, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, Table, select
from sqlalchemy.exc import IntegrityError

from service import __version__
from service.errors import StallbudgetError
from service.store import benchmark_runs, documents, stored_spec
from service.store.documents import BrokenBody, PackedDocument
from service.store.tables import (
    benchmark_documents,
    document_bodies,
    in_utc,
    scenario_revisions,
    scenarios,
)
from service.store.tables import benchmark_runs as runs_table
from service.strict_json import JsonFault, loads

FORMAT_VERSION = 1
"""The form of the file. A reader takes those up to its own."""
PIECE_BYTES = 1 << 20
"""How much of a document one line holds, before base64."""
MAX_DOCUMENT_BYTES = 512 << 20
"""The largest document that a service can be set to take."""
MAX_LINE_BYTES = 256 << 20
"""The longest line that is read. A run's is the longest: it holds all that was read from a document."""
_ROWS_AT_ONCE = 200
_BYTES_AT_ONCE = 8 << 20


class UnusableArchive(StallbudgetError):
    """A file cannot be imported. The message says which line is wrong, or what it clashes with."""


class Sink(Protocol):
    """What can be written to."""

    def write(self, data: bytes, /) -> object:
        """Take some bytes."""
        ...


# --- What a line holds ----------------------------------------------------------------------------------------------


def _moment(value: datetime) -> datetime:
    return in_utc(value)


def _without_control_characters(value: str) -> str:
    if any(character < " " or character == "\x7f" for character in value):
        raise ValueError("it has control characters")
    return value


def _without_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("it has a NUL character")
    return value


Moment = Annotated[datetime, AfterValidator(_moment)]
Text = Annotated[str, AfterValidator(_without_nul)]
MOST_NOTE = 2000
"""As an upload's."""
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_without_control_characters)]
Label = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_without_control_characters)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Revision = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Bytes = Annotated[int, Field(strict=True, ge=0, le=MAX_DOCUMENT_BYTES)]
Count = Annotated[int, Field(strict=True, ge=0)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Line = TypeVar("Line", bound=_Line)


class _Header(_Line):
    format_version: Annotated[int, Field(strict=True, ge=1)]
    engine_version: Text
    workspace: Name


class _ScenarioLine(_Line):
    id: UUID
    name: Name
    revision: Revision
    created_at: Moment
    updated_at: Moment


class _RevisionLine(_Line):
    scenario_id: UUID
    revision: Revision
    name: Name
    created_at: Moment
    spec: Text


class _DocumentLine(_Line):
    sha256: Sha256
    original_bytes: Bytes
    stored_bytes: Bytes


class _RunLine(_Line):
    id: UUID
    scenario_id: UUID
    scenario_revision: Revision
    received_at: Moment
    ran_at: Moment | None = None
    tool: Text
    tool_version: Text | None = None
    format: Text
    sha256: Sha256
    document_bytes: Bytes
    storage_label: Label | None = None
    conditions: Text
    note: Annotated[Text, Field(max_length=MOST_NOTE)] | None = None
    run_id: Text | None = None
    record: Text
    document_removed_at: Moment | None = None
    body_sha256: Sha256 | None = None


class _End(_Line):
    scenarios: Count
    revisions: Count
    documents: Count
    runs: Count
    sha256: Sha256


@dataclass
class Counts:
    """What an archive holds.

    Attributes:
        sha256: Digest of all lines before the last.
    """

    scenarios: int = 0
    revisions: int = 0
    documents: int = 0
    runs: int = 0
    sha256: str = ""

    def __str__(self) -> str:
        return (
            f"{self.scenarios} scenarios with {self.revisions} revisions, {self.runs} runs with {self.documents} "
            f"documents, sha256 {self.sha256}"
        )


# --- Writing --------------------------------------------------------------------------------------------------------


def write(transaction: Connection, sink: Sink, *, workspace_id: UUID, workspace: str) -> Counts:
    """Write a workspace as an archive, and return what it holds.

    The same workspace gives the same bytes, on either database.

    Args:
        transaction: A snapshot: what others do meanwhile is not in the file.
        sink: Where to.
        workspace_id: Which workspace.
        workspace: Its name.
    """
    digest, counts = hashlib.sha256(), Counts()
    header = {"format_version": FORMAT_VERSION, "engine_version": __version__, "workspace": workspace}
    lines = chain(
        [{"archive": header}],
        _scenario_lines(transaction, workspace_id, counts),
        _document_lines(transaction, workspace_id, counts),
        _run_lines(transaction, workspace_id, counts),
    )
    for line in lines:
        written = _written(line)
        digest.update(written)
        sink.write(written)
    counts.sha256 = digest.hexdigest()
    sink.write(_written({"end": vars(counts)}))
    return counts


def _check_spec(lines: "Lines", text: str) -> None:
    """Raise UnusableArchive unless a spec can be read back, as one of an older version can that this one refuses."""
    try:
        if not isinstance(loads(text), dict):
            raise lines.fault("the spec is no object")
    except JsonFault as error:
        raise lines.fault(f"the spec is not JSON as it should be: {error.detail}") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            stored_spec.load(text).model_dump_json()
        except Exception as error:
            raise lines.fault("the spec is none that could be shown") from error


def _written(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _scenario_lines(transaction: Connection, workspace_id: UUID, counts: Counts) -> Iterator[dict[str, Any]]:
    order = (scenarios.c.created_at, scenarios.c.id, scenario_revisions.c.revision)
    query = (
        select(scenarios, *(column.label(f"said_{column.name}") for column in scenario_revisions.c))
        .join(scenario_revisions, scenario_revisions.c.scenario_id == scenarios.c.id)
        .where(scenarios.c.workspace_id == workspace_id)
        .order_by(*order)
    )
    last = None
    for row in _stream(transaction, query):
        if row["id"] != last:
            last = row["id"]
            counts.scenarios += 1
            yield {"scenario": _plain({name: row[name] for name in _ScenarioLine.model_fields})}
        counts.revisions += 1
        yield {"revision": _plain({name: row[f"said_{name}"] for name in _RevisionLine.model_fields})}


def _document_lines(transaction: Connection, workspace_id: UUID, counts: Counts) -> Iterator[dict[str, Any]]:
    own = document_bodies.c.workspace_id == workspace_id
    described = [document_bodies.c[name] for name in _DocumentLine.model_fields]
    for row in _stream(transaction, select(*described).where(own).order_by(document_bodies.c.sha256)):
        counts.documents += 1
        yield {"document": _plain(row)}
        body: Any = transaction.scalar(
            select(document_bodies.c.body).where(own, document_bodies.c.sha256 == row["sha256"])
        )
        for at in range(0, len(body), PIECE_BYTES):
            yield {"piece": b64encode(body[at : at + PIECE_BYTES]).decode()}


def _run_lines(transaction: Connection, workspace_id: UUID, counts: Counts) -> Iterator[dict[str, Any]]:
    query = (
        select(runs_table, benchmark_documents.c.body_sha256)
        .join(scenarios, scenarios.c.id == runs_table.c.scenario_id)
        .outerjoin(benchmark_documents, benchmark_documents.c.run_id == runs_table.c.id)
        .where(scenarios.c.workspace_id == workspace_id)
        .order_by(runs_table.c.received_at, runs_table.c.id)
    )
    for row in _stream(transaction, query):
        counts.runs += 1
        yield {"run": _plain({name: row[name] for name in _RunLine.model_fields})}


def _stream(transaction: Connection, query: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - of any columns
    """Yield rows as they come from the database, never all of them at once."""
    result = transaction.execute(query, execution_options={"yield_per": 100})
    for row in result:
        yield dict(row._mapping)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return a row as JSON has it, without what is absent."""
    return {name: _plain_value(value) for name, value in values.items() if value is not None}


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


# --- Reading --------------------------------------------------------------------------------------------------------


def workspace_named_in(source: BinaryIO) -> tuple[str, "Lines"]:
    """Return the workspace that an archive was made of, and the rest of it.

    Raises:
        UnusableArchive: It is no archive, or one of a later version.
    """
    lines = Lines(source)
    try:
        kind, value = next(lines, ("nothing", None))
    except UnusableArchive:
        kind, value = "nothing", None
    if kind != "archive":
        raise UnusableArchive("This is no archive of a workspace, as `stallbudget export` writes them.")
    version = value.get("format_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise UnusableArchive(
            f"The archive has format {version}, made by a later version of the service; this one reads up to "
            f"{FORMAT_VERSION}."
        )
    return lines.checked(_Header, value).workspace, lines


def read(
    transaction: Connection,
    lines: "Lines",
    *,
    workspace_id: UUID,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> Counts:
    """Store all that an archive holds in a workspace, and return what it was.

    Args:
        transaction: Undone when this raises, it leaves nothing behind.
        lines: What follows the first line, from `workspace_named_in`.
        workspace_id: Where to.
        max_document_bytes: The largest document to take. [B]

    Raises:
        UnusableArchive: It is damaged, holds what an upload could not hold, or what is here already.
    """
    reader = _Reader(transaction, lines, workspace_id, max_document_bytes)
    try:
        return reader.read()
    except IntegrityError as error:
        raise UnusableArchive(
            f"Near line {lines.number}: two things in the archive, or one in it and one that is here, clash; "
            "nothing was imported."
        ) from error


class Lines:
    """The lines of an archive: each the name of what it holds, and that.

    Attributes:
        number: Of the line that was read last, from 1.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.number = 0
        self.sha256_before = ""
        """Digest of all lines before the last that was read."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        line = self._source.readline(MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LINE_BYTES:
            raise self.fault(f"it is longer than {MAX_LINE_BYTES} bytes")
        if not line.endswith(b"\n"):
            raise self.fault("it is cut: the file ends within it")
        self.sha256_before = self._digest.hexdigest()
        self._digest.update(line)
        try:
            value = loads(line.decode())
        except UnicodeDecodeError:
            raise self.fault("it is not UTF-8") from None
        except JsonFault as error:
            raise self.fault(f"it is not JSON as it should be: {error.detail}") from None
        if not isinstance(value, dict) or len(value) != 1:
            raise self.fault("it is no object with one field")
        return next(iter(value.items()))

    def fault(self, what: str) -> UnusableArchive:
        """Return what to raise about the line that was read last."""
        return UnusableArchive(f"Line {self.number} of the archive: {what}; nothing was imported.")

    def checked(self, model: type[Line], value: object) -> Line:
        """Return what the line holds as it should be; raise UnusableArchive."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = "/".join(str(part) for part in fault["loc"])
            raise self.fault(f"{place or 'it'}: {fault['msg']}") from None


@dataclass
class _Waiting:
    """Rows of one table that are still to be inserted: many at once is ten times as fast as each by itself."""

    table: Table
    rows: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0


class _Reader:
    def __init__(
        self, transaction: Connection, lines: Lines, workspace_id: UUID, max_document_bytes: int
    ) -> None:
        self._transaction = transaction
        self._lines = lines
        self._workspace_id = workspace_id
        self._max_document_bytes = max_document_bytes
        self._counts = Counts()
        self._stage = 0
        self._scenario: _ScenarioLine | None = None
        self._said: _RevisionLine | None = None
        self._scenario_ids: set[UUID] = set()
        self._ended = False
        # In the order in which one refers to another.
        self._waiting = {
            table.name: _Waiting(table)
            for table in (scenarios, scenario_revisions, runs_table, benchmark_documents)
        }

    def read(self) -> Counts:
        takers: dict[str, tuple[int, Callable[[Any], None]]] = {
            "scenario": (0, self._take_scenario),
            "revision": (0, self._take_revision),
            "document": (1, self._take_document),
            "run": (2, self._take_run),
            "end": (3, self._take_end),
        }
        for kind, value in self._lines:
            stage, take = takers.get(kind, (-1, None))
            if take is None or stage < self._stage or self._ended:
                raise self._lines.fault(f"{kind[:40]!r} does not belong here")
            self._stage = stage
            if kind != "revision":
                self._end_scenario()
            take(value)
        if not self._ended:
            raise UnusableArchive(
                f"The archive is cut: it ends after line {self._lines.number}, without its last one; nothing was "
                "imported."
            )
        return self._counts

    def _take_scenario(self, value: object) -> None:
        line = self._lines.checked(_ScenarioLine, value)
        clash = self._transaction.execute(select(scenarios.c.id).where(scenarios.c.id == line.id)).first()
        if clash is not None:
            raise UnusableArchive(f"There is a scenario {line.id} already; nothing was imported.")
        named = select(scenarios.c.id).where(
            scenarios.c.workspace_id == self._workspace_id, scenarios.c.name == line.name
        )
        if self._transaction.execute(named).first() is not None:
            raise UnusableArchive(
                f"The workspace has a scenario named {line.name!r} already; nothing was imported."
            )
        self._scenario, self._said = line, None
        self._scenario_ids.add(line.id)
        self._counts.scenarios += 1
        self._put(scenarios, {**dict(line), "workspace_id": self._workspace_id}, size=0)

    def _take_revision(self, value: object) -> None:
        line = self._lines.checked(_RevisionLine, value)
        following = 1 if self._said is None else self._said.revision + 1
        if self._scenario is None or (line.scenario_id, line.revision) != (self._scenario.id, following):
            raise self._lines.fault("it is not the next revision of the scenario before it")
        _check_spec(self._lines, line.spec)
        self._said = line
        self._counts.revisions += 1
        self._put(scenario_revisions, dict(line), size=len(line.spec))

    def _end_scenario(self) -> None:
        """Raise unless the scenario before has all its revisions, and is as the last of them says."""
        scenario, said = self._scenario, self._said
        if scenario is None:
            return
        if said is None or (said.revision, said.name, said.created_at) != (
            scenario.revision,
            scenario.name,
            scenario.updated_at,
        ):
            raise self._lines.fault(
                f"before it, the last revision of the scenario {scenario.id} is not what the scenario says"
            )
        self._scenario = None

    def _take_document(self, value: object) -> None:
        line = self._lines.checked(_DocumentLine, value)
        if line.original_bytes > self._max_document_bytes:
            raise self._lines.fault(
                f"the document has {line.original_bytes} bytes, more than STALLBUDGET_MAX_DOCUMENT_BYTES allows"
            )
        body = bytearray()
        while len(body) < line.stored_bytes:
            kind, piece = next(self._lines, ("nothing", None))
            if kind != "piece" or not isinstance(piece, str):
                raise self._lines.fault("a piece of the document before it belongs here")
            try:
                made = b64decode(piece, validate=True)
            except (NotBase64, ValueError):
                raise self._lines.fault("the piece is not base64") from None
            if not 0 < len(made) <= PIECE_BYTES:
                raise self._lines.fault(f"a piece has 1 to {PIECE_BYTES} bytes")
            body += made
        document = PackedDocument(line.sha256, line.original_bytes, bytes(body))
        if len(body) != line.stored_bytes:
            raise self._lines.fault("the document has other bytes than it says")
        try:
            documents.check(document)
        except BrokenBody as error:
            raise self._lines.fault(f"the document is not what it says: {error}") from None
        documents.keep(self._transaction, workspace_id=self._workspace_id, document=document)
        self._counts.documents += 1

    def _take_run(self, value: object) -> None:
        line = self._lines.checked(_RunLine, value)
        if line.scenario_id not in self._scenario_ids:
            raise self._lines.fault("its scenario is not in the archive")
        if (line.body_sha256 is None) == (line.document_removed_at is None):
            raise self._lines.fault("a run has a document, or the time when that was removed")
        try:
            benchmark_runs.check_record(conditions=line.conditions, record=line.record)
        except ValueError as error:
            raise self._lines.fault(
                f"what was read from its document is not as it should be: {error}"
            ) from None
        self._counts.runs += 1
        row = dict(line)
        body_sha256 = row.pop("body_sha256")
        self._put(runs_table, row, size=len(line.record))
        if body_sha256 is not None:
            own = {"workspace_id": self._workspace_id, "body_sha256": body_sha256}
            self._put(benchmark_documents, {"run_id": line.id, **own}, size=0)

    def _take_end(self, value: object) -> None:
        line = self._lines.checked(_End, value)
        self._counts.sha256 = self._lines.sha256_before
        if line.sha256 != self._counts.sha256:
            raise UnusableArchive(
                "The archive was altered or damaged: its digest is another; nothing was imported."
            )
        if dict(line) != vars(self._counts):
            raise self._lines.fault("it counts other things than there are")
        self._flush()
        self._check_references()
        self._ended = True

    def _check_references(self) -> None:
        """Raise where a document is of no run: nothing would ever delete it."""
        lost = select(document_bodies.c.sha256).where(
            document_bodies.c.workspace_id == self._workspace_id, ~documents.is_referred_to()
        )
        if self._transaction.execute(lost).first() is not None:
            raise self._lines.fault("a document in the archive is of no run")

    def _put(self, table: Table, row: dict[str, Any], *, size: int) -> None:
        waiting = self._waiting[table.name]
        waiting.rows.append(row)
        waiting.size += size
        if len(waiting.rows) >= _ROWS_AT_ONCE or waiting.size >= _BYTES_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        for waiting in self._waiting.values():
            if waiting.rows:
                self._transaction.execute(waiting.table.insert(), waiting.rows)
                waiting.rows, waiting.size = [], 0
