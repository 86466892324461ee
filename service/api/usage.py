"""`GET /v1/usage`: what the workspace of the key that asks holds, and what its documents take."""

from fastapi import APIRouter

from service.api.access import needs
from service.api.bodies import StrictRoute
from service.api.dependencies import UseDatabase, UseWorkspaceId
from service.api.problems import describes
from service.store import documents
from service.store.caller import AccessScope
from service.store.documents import Usage

router = APIRouter(prefix="/v1/usage", tags=["usage"], route_class=StrictRoute)


@router.get("", responses=describes(406, 422))
@needs(AccessScope.READ)
def get_usage(database: UseDatabase, workspace_id: UseWorkspaceId) -> Usage:
    """Count what the workspace holds: scenarios, runs, and how large their documents are, as posted and as kept."""
    with database.read() as transaction:
        return documents.usage(transaction, workspace_id=workspace_id)
