"""Every query on benchmark runs and on the documents they were read from."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError, create_model
from sqlalchemy import ColumnElement, Connection, Row, func, select, tuple_
from sqlalchemy.exc import IntegrityError

from service.errors import DatabaseUnavailable, DocumentRemoved, NotFound, RunIdTaken, UnreadableDocument
from service.parsers.run import BenchmarkRun
from service.store import documents, idempotency, scenarios
from service.store.database import insert_unless_present
from service.store.documents import PackedDocument
from service.store.page import Page, Position
from service.store.tables import benchmark_documents, benchmark_runs, document_bodies, in_utc
from service.store.tables import scenarios as scenarios_table
from service.strict_json import JsonFault, loads

RECORD_FIELDS = {"measurements", "operations", "summary", "doubts", "ran_at_zone_assumed"}
"""What of a run is kept as JSON; each other field has a column."""


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of an upload as they were received, with what is known of them.

    Attributes:
        body: The bytes.
        sha256: Their digest, in hexadecimal.
        format: Which format they were read as.
    """

    body: bytes
    sha256: str
    format: str


def create(
    transaction: Connection, *, workspace_id: UUID, run: BenchmarkRun, document: PackedDocument
) -> tuple[BenchmarkRun, bool]:
    """Store a run with its document, and return it and True.

    Where the scenario has the same bytes already, the run as it was first stored comes back, and False: of
    many at once one is stored.

    Raises:
        RunIdTaken: The scenario has a run of this `run_id` with other bytes.
        NotFound: There is no such scenario, or it has not had the revision. The transaction is then lost.
        UnreadableDocument: A name that the document gives holds NUL, which Postgres cannot keep as text.
    """
    values = as_row(run)
    scenarios.require(transaction, workspace_id=workspace_id, id=run.scenario_id)
    # More than once only where the run in the way is deleted before it can be read.
    for _ in range(5):
        try:
            is_new = insert_unless_present(transaction, benchmark_runs, values)
        except IntegrityError as error:
            raise NotFound(
                f"There is no scenario {run.scenario_id} that has had a revision {run.scenario_revision}."
            ) from error
        if is_new:
            documents.attach(transaction, workspace_id=workspace_id, run_id=run.id, document=document)
            return _in_utc(run), True
        first = find(transaction, workspace_id=workspace_id, scenario_id=run.scenario_id, sha256=run.sha256)
        if first is not None:
            return first, False
        if run.run_id is not None and _has_run_id(transaction, run.scenario_id, run.run_id):
            raise RunIdTaken(
                f"The scenario has a run with the run_id {run.run_id!r} already, and its document is another."
            )
    raise DatabaseUnavailable("Runs like this one come and go too fast to store it.")


def get(transaction: Connection, *, workspace_id: UUID, id: UUID) -> BenchmarkRun:
    """Return a run; raise NotFound."""
    row = transaction.execute(
        select(benchmark_runs).where(benchmark_runs.c.id == id, _of(workspace_id))
    ).one_or_none()
    if row is None:
        raise NotFound(_missing(id))
    return _run(row)


def find(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID, sha256: str
) -> BenchmarkRun | None:
    """Return the run that these bytes became in this scenario, or None."""
    row = transaction.execute(
        select(benchmark_runs).where(_in(workspace_id, scenario_id), benchmark_runs.c.sha256 == sha256)
    ).one_or_none()
    return None if row is None else _run(row)


def get_document(transaction: Connection, *, workspace_id: UUID, id: UUID) -> Document:
    """Return the original bytes of a run.

    Raises:
        NotFound: There is no such run.
        DocumentRemoved: The run is there without it.
    """
    row = transaction.execute(
        select(document_bodies.c.body, benchmark_runs.c.sha256, benchmark_runs.c.format)
        .select_from(benchmark_documents)
        .join(benchmark_runs, benchmark_runs.c.id == benchmark_documents.c.run_id)
        .join(
            document_bodies,
            (document_bodies.c.workspace_id == benchmark_documents.c.workspace_id)
            & (document_bodies.c.sha256 == benchmark_documents.c.body_sha256),
        )
        .where(benchmark_documents.c.run_id == id, _of(workspace_id))
    ).one_or_none()
    if row is None:
        run = get(transaction, workspace_id=workspace_id, id=id)
        raise DocumentRemoved(
            f"The document of the benchmark run {id} was removed at {run.document_removed_at:%Y-%m-%dT%H:%M:%SZ}; "
            "what was read from it is kept."
        )
    return Document(body=documents.unpack(row.body), sha256=row.sha256, format=row.format)


def list_page(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    limit: int,
    after: Position | None = None,
    storage_label: str | None = None,
    unlabelled: bool = False,
) -> Page[BenchmarkRun, Position]:
    """Return a scenario's runs after a position, the first received first; raise NotFound.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        scenario_id: Whose runs.
        limit: How many at most.
        after: The position of the last run that the caller has.
        storage_label: Only runs of this storage; None for all, those without a label too.
        unlabelled: Only runs without a label.
    """
    place = (benchmark_runs.c.received_at, benchmark_runs.c.id)
    query = select(benchmark_runs).where(_in(workspace_id, scenario_id)).order_by(*place).limit(limit + 1)
    if storage_label is not None or unlabelled:
        query = query.where(_labelled(storage_label))
    if after is not None:
        query = query.where(tuple_(*place) > after)
    found = [_run(row) for row in transaction.execute(query)]
    if not found:
        scenarios.require(transaction, workspace_id=workspace_id, id=scenario_id)
    items = found[:limit]
    more = len(found) > limit
    return Page(items, Position(items[-1].received_at, items[-1].id) if more else None)


def delete(transaction: Connection, *, workspace_id: UUID, id: UUID) -> None:
    """Delete a run and its document; raise NotFound."""
    held = list(
        transaction.scalars(
            select(benchmark_documents.c.body_sha256).where(
                benchmark_documents.c.run_id == id, benchmark_documents.c.workspace_id == workspace_id
            )
        )
    )
    gone = transaction.execute(benchmark_runs.delete().where(benchmark_runs.c.id == id, _of(workspace_id)))
    if gone.rowcount == 0:
        raise NotFound(_missing(id))
    documents.release(transaction, workspace_id=workspace_id, sha256s=held)
    idempotency.forget(transaction, [id])


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which runs took place; open where an end is None.

    Attributes:
        begin: Then or later.
        end: Earlier than then.
    """

    begin: datetime | None = None
    end: datetime | None = None


ALWAYS = Period()


def newest_label(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID, period: Period = ALWAYS
) -> str | None:
    """Return the storage label of the newest run, by when it ran as far as known, then by when it came.

    None where that run has no label, and where there are no runs: `for_judgement` takes either as it is.
    """
    label: str | None = transaction.scalar(
        select(benchmark_runs.c.storage_label)
        .where(_in(workspace_id, scenario_id), *_during(period))
        .order_by(
            _TOOK_PLACE_AT.desc(),
            benchmark_runs.c.received_at.desc(),
            benchmark_runs.c.id.desc(),
        )
        .limit(1)
    )
    return label


def count_by_label(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID
) -> dict[str | None, int]:
    """Return how many runs a scenario has on each storage, by label; None for those without one."""
    label = benchmark_runs.c.storage_label
    rows = transaction.execute(
        select(label, func.count()).where(_in(workspace_id, scenario_id)).group_by(label).order_by(label)
    )
    return {row[0]: row[1] for row in rows}


def for_judgement(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    storage_label: str | None,
    period: Period = ALWAYS,
) -> list[BenchmarkRun]:
    """Return every run of a scenario on one storage, the first received first.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        scenario_id: Whose runs.
        storage_label: Which storage; None for the runs that have no label.
        period: Only those that took place then.
    """
    rows = transaction.execute(
        select(benchmark_runs)
        .where(_in(workspace_id, scenario_id), _labelled(storage_label), *_during(period))
        .order_by(benchmark_runs.c.received_at, benchmark_runs.c.id)
    )
    return [_run(row) for row in rows]


def of_every_storage(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID, period: Period = ALWAYS
) -> list[BenchmarkRun]:
    """Return every run of a scenario that took place in a time, whatever its label, the first received first."""
    rows = transaction.execute(
        select(benchmark_runs)
        .where(_in(workspace_id, scenario_id), *_during(period))
        .order_by(benchmark_runs.c.received_at, benchmark_runs.c.id)
    )
    return [_run(row) for row in rows]


def on_storage(
    transaction: Connection, *, workspace_id: UUID, storage_label: str, period: Period = ALWAYS
) -> tuple[list[BenchmarkRun], list[scenarios.Scenario]]:
    """Return a workspace's runs that carry a label, the first received first; and the scenarios that they are of.

    Args:
        transaction: What it happens in.
        workspace_id: Whose runs.
        storage_label: Which storage.
        period: Only runs that took place then.
    """
    chosen = (_of(workspace_id), benchmark_runs.c.storage_label == storage_label, *_during(period))
    rows = transaction.execute(
        select(benchmark_runs).where(*chosen).order_by(benchmark_runs.c.received_at, benchmark_runs.c.id)
    )
    runs = [_run(row) for row in rows]
    measured_for = select(benchmark_runs.c.scenario_id).where(*chosen)
    return runs, scenarios.among(transaction, workspace_id=workspace_id, ids=measured_for)


def named(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    ids: Collection[UUID],
    period: Period = ALWAYS,
) -> list[BenchmarkRun]:
    """Return those runs of a scenario that have one of the ids, the first received first.

    An id that no run of the scenario in that period has is passed over: the caller sees what is missing.
    """
    rows = transaction.execute(
        select(benchmark_runs)
        .where(_in(workspace_id, scenario_id), benchmark_runs.c.id.in_(ids), *_during(period))
        .order_by(benchmark_runs.c.received_at, benchmark_runs.c.id)
    )
    return [_run(row) for row in rows]


_TOOK_PLACE_AT = func.coalesce(benchmark_runs.c.ran_at, benchmark_runs.c.received_at)


def _during(period: Period) -> Iterator[ColumnElement[bool]]:
    if period.begin is not None:
        yield in_utc(period.begin) <= _TOOK_PLACE_AT
    if period.end is not None:
        yield in_utc(period.end) > _TOOK_PLACE_AT


def _of(workspace_id: UUID) -> ColumnElement[bool]:
    return benchmark_runs.c.scenario_id.in_(
        select(scenarios_table.c.id).where(scenarios_table.c.workspace_id == workspace_id)
    )


def _in(workspace_id: UUID, scenario_id: UUID) -> ColumnElement[bool]:
    return benchmark_runs.c.scenario_id == scenarios.within(workspace_id, scenario_id)


def _labelled(storage_label: str | None) -> ColumnElement[bool]:
    if storage_label is None:
        return benchmark_runs.c.storage_label.is_(None)
    return benchmark_runs.c.storage_label == storage_label


def _has_run_id(transaction: Connection, scenario_id: UUID, run_id: str) -> bool:
    found = transaction.scalar(
        select(benchmark_runs.c.id).where(
            benchmark_runs.c.scenario_id == scenario_id, benchmark_runs.c.run_id == run_id
        )
    )
    return found is not None


def as_row(run: BenchmarkRun) -> dict[str, Any]:
    """Return a run as its row.

    Raises:
        ValueError: It has a number that JSON has not: NaN or infinity.
        UnreadableDocument: One of its texts holds NUL.
    """
    values = run.model_dump(exclude=RECORD_FIELDS)
    for name, value in values.items():
        if isinstance(value, str) and "\x00" in value:
            raise UnreadableDocument(
                "nul_character", f"The document's {name} holds a NUL character: remove it."
            )
    record = run.model_dump(include=RECORD_FIELDS, exclude_none=True)
    return {**values, "conditions": _json(values["conditions"]), "record": _json(record)}


_Kept: type[BaseModel] = create_model(
    "_Kept",
    __base__=BaseModel,
    **{  # type: ignore[call-overload]
        name: (field.annotation, field)
        for name, field in BenchmarkRun.model_fields.items()
        if name in RECORD_FIELDS or name == "conditions"
    },
)
"""What of a run is kept as JSON, to be read without a detour by dictionaries: a judgement reads thousands."""


def check_record(*, conditions: str, record: str) -> None:
    """Raise ValueError unless what an archive says of a run could be read back as it is."""
    try:
        parts = loads(conditions), loads(record)
        if not isinstance(parts[0], list) or not isinstance(parts[1], dict) or not record.startswith("{"):
            raise ValueError("it is no object")
        together = _together(conditions, record)
        loads(together)
    except JsonFault as fault:
        raise ValueError(fault.detail) from None
    try:
        kept: Any = _Kept.model_validate_json(together)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False, include_input=False)[0]["msg"]) from None
    places = len(kept.operations or kept.measurements or ())
    if any(doubt.measurement is not None and not 0 <= doubt.measurement < places for doubt in kept.doubts):
        raise ValueError("a doubt is about a measurement that is not there")


def _together(conditions: str, record: str) -> str:
    return f'{{"conditions":{conditions},{record[1:]}'


def _run(row: Row[Any]) -> BenchmarkRun:
    values = dict(row._mapping)
    record, conditions = values.pop("record"), values.pop("conditions")
    kept = _Kept.model_validate_json(_together(conditions, record))
    # Constructed: the columns have their types already, and the rest was read just now.
    return BenchmarkRun.model_construct(**values, **dict(kept))


def _in_utc(run: BenchmarkRun) -> BenchmarkRun:
    """Return the run as it will be read back."""
    ran_at = None if run.ran_at is None else in_utc(run.ran_at)
    return run.model_copy(update={"received_at": in_utc(run.received_at), "ran_at": ran_at})


def _json(value: object) -> str:
    # Pydantic would write NaN as null, which could not be read back.
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _missing(id: UUID) -> str:
    return f"There is no benchmark run {id}."
