"""`/v1/api-keys`: the keys of a workspace. What is secret of one is told once, where it is made."""

from datetime import timedelta
from secrets import token_bytes, token_hex
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Body, Request, Response
from pydantic import AwareDatetime, BeforeValidator, Field

from service.api.access import needs
from service.api.benchmark_runs import instant
from service.api.bodies import StrictRoute
from service.api.dependencies import KeyId, UseAccess, UseCaller, UseDatabase, UseWorkspaceId, now
from service.api.examples import API_KEYS, ROTATIONS
from service.api.paging import Cursor, Limit, link_next, read_position, write_cursor
from service.api.problems import Refused, describes, summary
from service.api.scenarios import Name
from service.errors import Fault
from service.store import audit, keys
from service.store.audit import AuditAction, AuditedResource
from service.store.caller import AccessScope
from service.store.keys import ApiKey, Secret
from service.wire import Absent, Incoming, Outgoing

router = APIRouter(prefix="/v1/api-keys", tags=["api-keys"], route_class=StrictRoute)

LONGEST_GRACE_HOURS = 720


class ApiKeyCreate(Incoming):
    """A key to be made."""

    name: Name
    """Who or what it is for; no control characters."""
    scopes: Annotated[list[AccessScope], Field(min_length=1, max_length=len(AccessScope))]
    """What it is good for: `read`; `write`, which reads as well; `submit`, which posts benchmark runs and does nothing
    else; `admin`, which does everything, keys and the audit trail included."""
    expires_at: Annotated[AwareDatetime, BeforeValidator(instant)] | Absent = None
    """From when on it is refused, with a time zone; absent for never."""


class ApiKeyRotationCreate(Incoming):
    """Another secret for a key."""

    grace_hours: Annotated[float, Field(strict=True, ge=0, le=LONGEST_GRACE_HOURS, allow_inf_nan=False)] = 0
    """How long the present secret is taken as well; 0 refuses it at once."""


class IssuedApiKey(ApiKey):
    """A key with its secret."""

    key: str
    """What to send as `Authorization: Bearer …`. It is told here and never again."""


class ApiKeyPage(Outgoing):
    """Some keys, the oldest first; those that are revoked too."""

    items: list[ApiKey]
    next_cursor: str | Absent = None
    """The `cursor` of the next page; absent on the last."""


def new_secret() -> Secret:
    """Return a secret that nobody can foresee."""
    return Secret(text=token_hex(32), salt=token_bytes(16))


@router.post(
    "", status_code=201, response_model_exclude_none=True, responses=describes(400, 406, 413, 415, 422)
)
@needs(AccessScope.ADMIN)
def create_api_key(
    body: Annotated[ApiKeyCreate, Body(openapi_examples=API_KEYS)],
    database: UseDatabase,
    access: UseAccess,
    caller: UseCaller,
    response: Response,
) -> IssuedApiKey:
    """Make a key of the same workspace. From the first one on, every request needs a key."""
    at = now()
    if body.expires_at is not None and body.expires_at <= at:
        fault = Fault(
            "#/expires_at", "in_the_past", "A key that is good for something expires later than now."
        )
        raise Refused("invalid-request", summary([fault]), fault)
    secret = new_secret()
    with database.begin() as transaction:
        made = keys.create(
            transaction,
            workspace_id=caller.workspace_id,
            id=uuid4(),
            at=at,
            name=body.name,
            scopes=body.scopes,
            secret=secret,
            expires_at=body.expires_at,
        )
        audit.record(
            transaction,
            by=caller,
            id=uuid4(),
            at=at,
            action=AuditAction.CREATE,
            resource=AuditedResource.API_KEY,
            resource_id=made.id,
        )
    access.key_was_made()
    return _issued(made, secret, response)


@router.get("", response_model_exclude_none=True, responses=describes(406, 422))
@needs(AccessScope.ADMIN)
def list_api_keys(
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ApiKeyPage:
    """List the keys of the workspace, the oldest first, those that are revoked too; never a secret."""
    after = read_position(request, cursor)
    with database.read() as transaction:
        page = keys.list_page(transaction, workspace_id=workspace_id, limit=limit, after=after)
    if page.next_after is None:
        return ApiKeyPage(items=page.items)
    next_cursor = write_cursor(request, page.next_after)
    link_next(request, response, next_cursor)
    return ApiKeyPage(items=page.items, next_cursor=next_cursor)


@router.get("/{key_id}", response_model_exclude_none=True, responses=describes(404, 406, 422))
@needs(AccessScope.ADMIN)
def get_api_key(key_id: KeyId, database: UseDatabase, workspace_id: UseWorkspaceId) -> ApiKey:
    """Return what is known of a key, when it was last used among it; never its secret."""
    with database.read() as transaction:
        return keys.get(transaction, workspace_id=workspace_id, id=key_id)


@router.delete("/{key_id}", status_code=204, responses=describes(404, 406, 422))
@needs(AccessScope.ADMIN)
def delete_api_key(key_id: KeyId, database: UseDatabase, access: UseAccess, caller: UseCaller) -> None:
    """Revoke a key: it is refused from now on, and stays in the list. Needs no If-Match, being the same twice."""
    at = now()
    with database.begin() as transaction:
        if keys.revoke(transaction, workspace_id=caller.workspace_id, id=key_id, at=at):
            audit.record(
                transaction,
                by=caller,
                id=uuid4(),
                at=at,
                action=AuditAction.REVOKE,
                resource=AuditedResource.API_KEY,
                resource_id=key_id,
            )
    access.key_was_changed(key_id)


@router.post(
    "/{key_id}/rotations",
    status_code=201,
    response_model_exclude_none=True,
    responses=describes(400, 404, 406, 409, 413, 415, 422),
)
@needs(AccessScope.ADMIN)
def create_api_key_rotation(
    key_id: KeyId,
    body: Annotated[ApiKeyRotationCreate, Body(openapi_examples=ROTATIONS)],
    database: UseDatabase,
    access: UseAccess,
    caller: UseCaller,
    response: Response,
) -> IssuedApiKey:
    """Give a key another secret. The present one is refused from now on, or after `grace_hours`."""
    at = now()
    secret = new_secret()
    with database.begin() as transaction:
        rotated = keys.rotate(
            transaction,
            workspace_id=caller.workspace_id,
            id=key_id,
            at=at,
            secret=secret,
            old_expires_at=at + timedelta(hours=body.grace_hours),
        )
        audit.record(
            transaction,
            by=caller,
            id=uuid4(),
            at=at,
            action=AuditAction.ROTATE,
            resource=AuditedResource.API_KEY,
            resource_id=key_id,
        )
    access.key_was_changed(key_id)
    return _issued(rotated, secret, response)


def _issued(key: ApiKey, secret: Secret, response: Response) -> IssuedApiKey:
    response.headers["Location"] = f"/v1/api-keys/{key.id}"
    response.headers["Cache-Control"] = "no-store"
    return IssuedApiKey.model_construct(**dict(key), key=keys.written(key.id, secret))
