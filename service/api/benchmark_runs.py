"""Benchmark runs: a tool's document as the raw body, read, kept beside its normalised form, answered with a receipt."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, BeforeValidator
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from service.api.access import needs
from service.api.bodies import StrictRoute, read_body
from service.api.dependencies import (
    DIGITS,
    RunId,
    ScenarioId,
    UseCaller,
    UseDatabase,
    UseSettings,
    UseWorkspaceId,
    now,
)
from service.api.encodings import BrokenEncoding
from service.api.examples import UPLOADS
from service.api.idempotency import Once, UseOnce, say_replayed
from service.api.metrics import Metrics
from service.api.paging import Cursor, Limit, link_next, read_position, write_cursor
from service.api.preconditions import IfMatch, IfNoneMatch, entity_tag, not_modified, required_version
from service.api.problems import Refused, describes, summary
from service.errors import Fault, Stale, UnreadableDocument
from service.parsers.measurement import Record
from service.parsers.run import BenchmarkRun, Condition, StatedNodesDiffer, with_stated_nodes
from service.store import audit, benchmark_runs, documents, scenarios
from service.store.audit import AuditAction, AuditedResource
from service.store.caller import AccessScope, Caller
from service.store.database import Database
from service.wire import Absent, Outgoing

router = APIRouter(tags=["benchmark-runs"], route_class=StrictRoute)

CLOCK_TOLERANCE = timedelta(days=1)
"""How far a clock elsewhere may run ahead of ours before a run's time is taken for a mistake."""

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")


def instant(value: object) -> object:
    """Refuse what is no RFC 3339 instant: a bare number would be read as seconds since 1970."""
    if isinstance(value, str):
        # In a query string an unescaped + is a space.
        value = re.sub(r" (?=\d\d:\d\d$)", "+", value)
        if not _RFC_3339.fullmatch(value):
            raise ValueError("give a time with its zone, such as 2026-11-29T10:00:00Z")
    return value


LABEL_PATTERN = r"^[^\x00-\x1f\x7f]+$"
"""No control characters."""
StorageLabel = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=128,
        pattern=LABEL_PATTERN,
        description="Which storage was measured.",
    ),
]
ChosenLabel = Annotated[
    str | None,
    Query(
        max_length=128,
        pattern=LABEL_PATTERN.replace("+", "*"),
        description="Only runs of this storage; empty for the runs without a label.",
    ),
]
"""Which runs are read: None stands for the caller's having said nothing, an empty one for runs without a label."""
Conditions = Annotated[
    list[Condition] | None, Query(description="The state of the storage meanwhile; may be repeated.")
]
Note = Annotated[
    str | None,
    Query(max_length=2000, pattern=r"^[^\x00]*$", description="Anything worth keeping with the run."),
]
RanAt = Annotated[
    AwareDatetime | None,
    BeforeValidator(instant),
    Query(description="When the run took place, with a time zone; goes before the file's own time."),
]
Nodes = Annotated[
    int | None,
    Query(ge=1, le=10_000_000, description="How many nodes took part, where the file does not say."),
    DIGITS,
]


class BenchmarkRunReceipt(BenchmarkRun):
    """A run as it was stored, and what the poster has to know about that."""

    notice: str | Absent = None
    """Where the same bytes were stored before with other tags: which were kept, and which were not taken."""


class BenchmarkRunPage(Outgoing):
    """Some runs of a scenario, the first received first."""

    items: list[BenchmarkRun]
    next_cursor: str | Absent = None
    """The `cursor` of the next page; absent on the last."""


UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The document as the tool wrote it. The content decides; its declared type is ignored.",
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "examples": UPLOADS,
            }
        },
    }
}


@router.post(
    "/v1/scenarios/{scenario_id}/benchmark-runs",
    status_code=201,
    response_model_exclude_none=True,
    responses={
        200: {
            "model": BenchmarkRunReceipt,
            "description": "The same bytes are stored already: the run as it was first stored, with a `notice` where "
            "it carries other tags than were given now.",
        },
        **describes(404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=UPLOAD_BODY,
)
@needs(AccessScope.SUBMIT)
async def create_benchmark_run(
    scenario_id: ScenarioId,
    request: Request,
    response: Response,
    database: UseDatabase,
    settings: UseSettings,
    caller: UseCaller,
    once: UseOnce,
    storage_label: StorageLabel = None,
    conditions: Conditions = None,
    note: Note = None,
    ran_at: RanAt = None,
    nodes: Nodes = None,
) -> BenchmarkRunReceipt:
    """Post what a benchmark wrote, as it is. It is read, judged for doubts, and kept with its original bytes.

    The same bytes again are the same run, with the tags that it has: `notice` says so where others were given. To
    change a tag, delete the run and post it anew.
    """
    metrics: Metrics = request.app.state.metrics
    request.scope["count_refusal"] = metrics.count_refused_upload
    received_at = now()
    if ran_at is not None and ran_at > received_at + CLOCK_TOLERANCE:
        fault = Fault("ran_at", "in_the_future", "A run that has taken place has a time that has passed.")
        raise Refused("invalid-request", summary([fault]), fault)
    await run_in_threadpool(_require_scenario, database, caller.workspace_id, scenario_id)
    with once.alone():
        try:
            body = await read_body(request, max_bytes=settings.max_document_bytes)
        except BrokenEncoding as error:
            raise UnreadableDocument("broken_encoding", str(error)) from None
        tags = {
            "storage_label": storage_label,
            "conditions": list(dict.fromkeys(conditions or [])),
            "note": note,
            "ran_at": ran_at,
        }
        upload = Upload(caller, once, scenario_id, body, received_at, tags, nodes)
        receipt = await run_in_threadpool(_receive, database, upload)
    run = receipt.run
    is_new = receipt.status == 201 and not receipt.is_replayed
    metrics.count_upload(format=run.format, outcome="stored" if is_new else "repeated")
    response.status_code = receipt.status
    if receipt.is_replayed:
        say_replayed(response)
    response.headers["Location"] = f"/v1/benchmark-runs/{run.id}"
    response.headers["ETag"] = entity_tag(run.version)
    notice = None if receipt.status == 201 else _notice(run, tags, nodes)
    # Constructed: the run was read and checked, and may hold thousands of measurements.
    return BenchmarkRunReceipt.model_construct(**dict(run), notice=notice)


def _notice(run: BenchmarkRun, given: dict[str, Any], nodes: int | None) -> str | None:
    """Return what was asked for of a run that is stored already and is otherwise, if anything was."""
    others = [
        name
        for name, value in given.items()
        if value not in (None, [])
        and (set(value) != set(run.conditions) if name == "conditions" else value != getattr(run, name))
    ]
    parts = run.operations or run.measurements or ()
    if nodes is not None and any(part.nodes != nodes for part in parts):
        others.append("nodes")
    if not others:
        return None
    kept = f"the label {run.storage_label}" if run.storage_label is not None else "no label"
    return (
        f"These bytes are stored already, as run {run.id} with {kept}; it keeps its tags, and what was given now for "
        f"{', '.join(others)} was not taken. To change them, delete the run and post it again."
    )


def _require_scenario(database: Database, workspace_id: UUID, scenario_id: UUID) -> None:
    """Raise NotFound before a body of many megabytes is read for nothing."""
    with database.read() as transaction:
        scenarios.require(transaction, workspace_id=workspace_id, id=scenario_id)


@dataclass(frozen=True, slots=True)
class Upload:
    """A document as it came, with what was said of it."""

    caller: Caller
    once: Once
    scenario_id: UUID
    body: bytes
    received_at: datetime
    tags: dict[str, Any]
    nodes: int | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a document."""

    run: BenchmarkRun
    status: int
    is_replayed: bool = False


def _receive(database: Database, upload: Upload) -> Receipt:
    """Read a document and store its run; the parser is done before the transaction opens."""
    workspace_id, scenario_id = upload.caller.workspace_id, upload.scenario_id
    sha256 = hashlib.sha256(upload.body).hexdigest()
    with database.read() as transaction:
        stored = benchmark_runs.find(
            transaction, workspace_id=workspace_id, scenario_id=scenario_id, sha256=sha256
        )
    if stored is not None and upload.once.key is None:
        return Receipt(stored, 200)
    if stored is not None:
        with database.begin() as transaction:
            return _receipt_of_before(transaction, upload, sha256) or _kept(transaction, upload, stored, 200)
    # Here, not above: the parsers are a sixth of the service's start, and only an upload needs them.
    from service.parsers import register

    tags = dict(upload.tags)
    record = _with_nodes(register.parse(upload.body), upload.nodes)
    if tags["storage_label"] is None:
        tags["storage_label"] = record.storage_label
    if tags["ran_at"] is not None:
        record = record.model_copy(update={"ran_at_zone_assumed": None})
    elif record.ran_at is not None and record.ran_at <= upload.received_at + CLOCK_TOLERANCE:
        tags["ran_at"] = record.ran_at
    else:
        # A clock that runs ahead would make its run the newest for good: better no time than that one.
        record = record.model_copy(update={"ran_at_zone_assumed": None})
    kept = documents.pack(register.without_environment(upload.body))
    with database.begin() as transaction:
        before = _receipt_of_before(transaction, upload, sha256)
        if before is not None:
            return before
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        run = BenchmarkRun.model_validate(
            {
                **dict(record),  # its parts as they are, which may be many
                **tags,
                "id": uuid4(),
                "scenario_id": scenario_id,
                "scenario_revision": scenario.revision,
                "received_at": upload.received_at,
                "sha256": sha256,
                "document_bytes": len(upload.body),
            }
        )
        run, is_new = benchmark_runs.create(transaction, workspace_id=workspace_id, run=run, document=kept)
        if is_new:
            audit.record(
                transaction,
                by=upload.caller,
                id=uuid4(),
                at=upload.received_at,
                action=AuditAction.CREATE,
                resource=AuditedResource.BENCHMARK_RUN,
                resource_id=run.id,
                new_version=sha256,
            )
        return _kept(transaction, upload, run, 201 if is_new else 200)


def _receipt_of_before(transaction: Connection, upload: Upload, sha256: str) -> Receipt | None:
    """Return what the upload was answered with when it was sent before under its Idempotency-Key."""
    before = upload.once.before(transaction, at=upload.received_at, body_sha256=sha256)
    if before is None:
        return None
    run = benchmark_runs.get(transaction, workspace_id=upload.caller.workspace_id, id=before.resource_id)
    return Receipt(run, before.status, is_replayed=True)


def _kept(transaction: Connection, upload: Upload, run: BenchmarkRun, status: int) -> Receipt:
    upload.once.keep(transaction, status=status, resource_id=run.id)
    return Receipt(run, status)


def _with_nodes(record: Record, nodes: int | None) -> Record:
    if nodes is None:
        return record
    try:
        return with_stated_nodes(record, nodes=nodes)
    except StatedNodesDiffer as error:
        fault = Fault("nodes", "contradiction", str(error))
        raise Refused("invalid-request", summary([fault]), fault) from None


@router.get(
    "/v1/scenarios/{scenario_id}/benchmark-runs",
    response_model_exclude_none=True,
    responses=describes(404, 406, 422, 503),
)
@needs(AccessScope.READ)
def list_benchmark_runs(
    scenario_id: ScenarioId,
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    storage_label: ChosenLabel = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> BenchmarkRunPage:
    """List a scenario's runs, the first received first."""
    after = read_position(request, cursor)
    with database.read() as transaction:
        page = benchmark_runs.list_page(
            transaction,
            workspace_id=workspace_id,
            scenario_id=scenario_id,
            limit=limit,
            after=after,
            storage_label=storage_label or None,
            unlabelled=storage_label == "",
        )
    if page.next_after is None:
        return BenchmarkRunPage(items=page.items)
    next_cursor = write_cursor(request, page.next_after)
    link_next(request, response, next_cursor)
    return BenchmarkRunPage(items=page.items, next_cursor=next_cursor)


@router.get(
    "/v1/benchmark-runs/{run_id}", response_model_exclude_none=True, responses=describes(404, 406, 422, 503)
)
@needs(AccessScope.READ)
def get_benchmark_run(
    run_id: RunId,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    if_none_match: IfNoneMatch = None,
) -> BenchmarkRun:
    """Return a run: what was read from its document, its tags, and what there is to doubt."""
    with database.read() as transaction:
        run = benchmark_runs.get(transaction, workspace_id=workspace_id, id=run_id)
    tag = entity_tag(run.version)
    response.headers["ETag"] = tag
    return not_modified(if_none_match, tag) or run  # type: ignore[return-value]


@router.get(
    "/v1/benchmark-runs/{run_id}/document",
    response_class=Response,
    responses={
        200: {
            "description": "The original bytes.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        **describes(404, 406, 410, 422, 503),
    },
)
@needs(AccessScope.READ)
def get_benchmark_run_document(
    run_id: RunId, database: UseDatabase, workspace_id: UseWorkspaceId, if_none_match: IfNoneMatch = None
) -> Response:
    """Return the document of a run as it was posted, less the job's environment where it held one."""
    with database.read() as transaction:
        document = benchmark_runs.get_document(transaction, workspace_id=workspace_id, id=run_id)
    tag = entity_tag(document.sha256)
    # A document comes from outside: it is never to be shown as a page of ours.
    headers = {
        "ETag": tag,
        "Content-Disposition": f'attachment; filename="{document.format}-{document.sha256[:12]}"',
        "X-Content-Type-Options": "nosniff",
    }
    return not_modified(if_none_match, tag) or Response(
        document.body, media_type="application/octet-stream", headers=headers
    )


@router.delete(
    "/v1/benchmark-runs/{run_id}", status_code=204, responses=describes(404, 406, 412, 422, 428, 503)
)
@needs(AccessScope.WRITE)
def delete_benchmark_run(
    run_id: RunId, database: UseDatabase, caller: UseCaller, if_match: IfMatch = None
) -> None:
    """Delete a run and its document."""
    workspace_id = caller.workspace_id
    with database.begin() as transaction:
        run = benchmark_runs.get(transaction, workspace_id=workspace_id, id=run_id)
        versions = required_version(if_match)
        if versions is not None and run.version not in versions:
            raise Stale(f"If-Match does not name the benchmark run {run_id}; its ETag is {run.version}.")
        benchmark_runs.delete(transaction, workspace_id=workspace_id, id=run_id)
        audit.record(
            transaction,
            by=caller,
            id=uuid4(),
            at=now(),
            action=AuditAction.DELETE,
            resource=AuditedResource.BENCHMARK_RUN,
            resource_id=run_id,
            old_version=run.version,
        )
    database.forget_deleted()
