"""Who changed what: written in the transaction of the change, never altered, never deleted."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, tuple_

from service.store.caller import Caller
from service.store.page import Page, Position
from service.store.tables import audit_events, in_utc
from service.wire import Absent, Outgoing


class AuditAction(StrEnum):
    """What was done."""

    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"
    ROTATE = "rotate"
    REVOKE = "revoke"
    IMPORT = "import"


class AuditedResource(StrEnum):
    """What it was done to."""

    SCENARIO = "scenario"
    BENCHMARK_RUN = "benchmark_run"
    BENCHMARK_DOCUMENT = "benchmark_document"
    API_KEY = "api_key"
    WORKSPACE = "workspace"


class AuditEvent(Outgoing):
    """One change."""

    id: UUID
    at: datetime
    actor: str
    """The name of the key; `open` where the service asked for none, `cli` for the command line."""
    key_id: UUID | Absent = None
    """The key; absent where there was none."""
    action: AuditAction
    resource: AuditedResource
    resource_id: UUID
    request_id: str | Absent = None
    """The `X-Request-Id` of the request; absent for the command line."""
    old_version: str | Absent = None
    """The version before: the ETag of a scenario or a run without its quotes; absent where there was none."""
    new_version: str | Absent = None
    """The version since; absent where it is gone."""


def record(
    transaction: Connection,
    *,
    by: Caller,
    id: UUID,
    at: datetime,
    action: AuditAction,
    resource: AuditedResource,
    resource_id: UUID,
    old_version: str | int | None = None,
    new_version: str | int | None = None,
) -> None:
    """Write down a change of the caller's workspace.

    Args:
        transaction: The one of the change.
        by: Who made it.
        id: Of the event.
        at: When.
        action: What was done.
        resource: To what.
        resource_id: To which.
        old_version: Its version before, where it has versions.
        new_version: Its version since.
    """
    transaction.execute(
        audit_events.insert(),
        {
            "id": id,
            "workspace_id": by.workspace_id,
            "at": in_utc(at),
            "actor": by.name,
            "key_id": by.key_id,
            "action": action,
            "resource": resource,
            "resource_id": resource_id,
            "request_id": by.request_id,
            "old_version": None if old_version is None else str(old_version),
            "new_version": None if new_version is None else str(new_version),
        },
    )


def record_deletions(
    transaction: Connection,
    *,
    by: Caller,
    at: datetime,
    resource: AuditedResource,
    deleted: Iterable[tuple[UUID, UUID, str]],
) -> None:
    """Write down the deletion of many: of each the id of the event, its own id, and its version."""
    rows = [
        {
            "id": id_,
            "workspace_id": by.workspace_id,
            "at": in_utc(at),
            "actor": by.name,
            "key_id": by.key_id,
            "action": AuditAction.DELETE,
            "resource": resource,
            "resource_id": resource_id,
            "request_id": by.request_id,
            "old_version": version,
        }
        for id_, resource_id, version in deleted
    ]
    if rows:
        transaction.execute(audit_events.insert(), rows)


def list_page(
    transaction: Connection,
    *,
    workspace_id: UUID,
    limit: int,
    after: Position | None = None,
    resource_id: UUID | None = None,
) -> Page[AuditEvent, Position]:
    """Return the changes of a workspace after a position, the oldest first.

    Args:
        transaction: What it happens in.
        workspace_id: Whose changes.
        limit: How many at most.
        after: The position of the last event that the caller has.
        resource_id: Only the changes of this.
    """
    place = (audit_events.c.at, audit_events.c.id)
    query = (
        select(*(column for column in audit_events.c if column is not audit_events.c.workspace_id))
        .where(audit_events.c.workspace_id == workspace_id)
        .order_by(*place)
        .limit(limit + 1)
    )
    if resource_id is not None:
        query = query.where(audit_events.c.resource_id == resource_id)
    if after is not None:
        query = query.where(tuple_(*place) > after)
    found = [_event(dict(row._mapping)) for row in transaction.execute(query)]
    items = found[:limit]
    more = len(found) > limit
    return Page(items, Position(items[-1].at, items[-1].id) if more else None)


def _event(values: dict[str, Any]) -> AuditEvent:
    return AuditEvent.model_validate(values)
