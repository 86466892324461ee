"""`GET /v1/audit-events`: who changed what in the workspace of the key that asks."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from service.api.access import needs
from service.api.bodies import StrictRoute
from service.api.dependencies import ID, UseDatabase, UseWorkspaceId
from service.api.paging import Cursor, Limit, link_next, read_position, write_cursor
from service.api.problems import describes
from service.store import audit
from service.store.audit import AuditEvent
from service.store.caller import AccessScope
from service.wire import Absent, Outgoing

router = APIRouter(prefix="/v1/audit-events", tags=["audit-events"], route_class=StrictRoute)

ResourceId = Annotated[UUID | None, ID, Query(description="Only the changes of what has this `id`.")]


class AuditEventPage(Outgoing):
    """Some changes, the oldest first."""

    items: list[AuditEvent]
    next_cursor: str | Absent = None
    """The `cursor` of the next page; absent on the last."""


@router.get("", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.ADMIN)
def list_audit_events(
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    resource_id: ResourceId = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AuditEventPage:
    """List the changes of scenarios, runs and keys, the oldest first: who, what, when, and by which request."""
    after = read_position(request, cursor)
    with database.read() as transaction:
        page = audit.list_page(
            transaction, workspace_id=workspace_id, limit=limit, after=after, resource_id=resource_id
        )
    if page.next_after is None:
        return AuditEventPage(items=page.items)
    next_cursor = write_cursor(request, page.next_after)
    link_next(request, response, next_cursor)
    return AuditEventPage(items=page.items, next_cursor=next_cursor)
