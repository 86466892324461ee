"""`/v1/scenarios`: stored specs by unique name, their revisions, and the sizing of each."""

import hashlib
from enum import StrEnum
from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import StringConstraints, ValidationError

from service.api.access import needs
from service.api.bodies import StrictRoute
from service.api.dependencies import DIGITS, ScenarioId, UseCaller, UseDatabase, UseWorkspaceId, now
from service.api.examples import SCENARIOS
from service.api.idempotency import UseOnce, say_replayed
from service.api.paging import Cursor, Limit, link_next, read_number, read_position, write_cursor
from service.api.preconditions import IfMatch, IfNoneMatch, entity_tag, not_modified, required_version
from service.api.problems import describes
from service.api.rates import Budget, spends
from service.api.sizings import Explain
from service.errors import Fault, Stale, Unsatisfiable
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec
from service.store import audit, scenarios
from service.store.audit import AuditAction, AuditedResource
from service.store.caller import AccessScope
from service.store.database import Database
from service.store.scenarios import Scenario, ScenarioRevision
from service.wire import Absent, Incoming, Outgoing

router = APIRouter(prefix="/v1/scenarios", tags=["scenarios"], route_class=StrictRoute)

Name = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class ScenarioCreate(Incoming):
    """A spec to be stored, and the name to find it by."""

    name: Name
    """Unique among the scenarios of the workspace; no control characters."""
    spec: ScenarioSpec


class ScenarioPage(Outgoing):
    """Some scenarios, the oldest first."""

    items: list[Scenario]
    next_cursor: str | Absent = None
    """The `cursor` of the next page; absent on the last."""


class ScenarioRevisionPage(Outgoing):
    """Some revisions of a scenario, the first one first."""

    items: list[ScenarioRevision]
    next_cursor: str | Absent = None
    """The `cursor` of the next page; absent on the last."""


class Runs(StrEnum):
    """What becomes of the benchmark runs of a scenario that is deleted."""

    KEEP = "keep"
    DELETE = "delete"


ScenarioBody = Annotated[ScenarioCreate, Body(openapi_examples=SCENARIOS)]


def sizing_of(spec: ScenarioSpec, *, explained: bool = False) -> Sizing:
    """Return the sizing of a stored spec, which an older version may have accepted.

    Raises:
        Unsatisfiable: This version refuses the spec, or it has no answer.
    """
    try:
        checked = ScenarioSpec.model_validate(
            spec.model_dump(exclude_unset=True, exclude_none=True, warnings=False)
        )
    except ValidationError as error:
        raise Unsatisfiable(
            Fault(
                "#/spec",
                "outdated",
                f"This version no longer accepts the stored spec: {error.errors()[0]['msg']}.",
            )
        ) from None
    return size(checked, explained=explained)


def _checked(body: ScenarioCreate) -> ScenarioCreate:
    """Return the body; raise Unsatisfiable, with pointers into the body, where its spec has no sizing."""
    try:
        size(body.spec)
    except Unsatisfiable as error:
        raise error.below("#/spec") from None
    return body


def _versions_seen(
    database: Database, workspace_id: UUID, scenario_id: UUID, if_match: str | None
) -> list[str] | None:
    """Return the versions that If-Match names; what is not there is NotFound before a missing header is."""
    if if_match is None:
        with database.read() as transaction:
            scenarios.require(transaction, workspace_id=workspace_id, id=scenario_id)
    return required_version(if_match)


def _revision_among(versions: list[str] | None, scenario: Scenario) -> int | None:
    """Return the scenario's revision where the versions name it, None where any will do; else raise Stale."""
    if versions is None:
        return None
    if str(scenario.revision) not in versions:
        raise Stale(
            f"The scenario {scenario.id} is at revision {scenario.revision}, which If-Match does not name; its "
            "ETag is the revision in quotes."
        )
    return scenario.revision


@router.post(
    "",
    status_code=201,
    response_model_exclude_unset=True,
    responses=describes(400, 406, 409, 413, 415, 422, 503),
)
@needs(AccessScope.WRITE)
def create_scenario(
    body: ScenarioBody, database: UseDatabase, caller: UseCaller, once: UseOnce, response: Response
) -> Scenario:
    """Store a scenario under a new name."""
    _checked(body)
    said = hashlib.sha256(body.model_dump_json(exclude_unset=True).encode()).hexdigest()
    workspace_id, at = caller.workspace_id, now()
    with once.alone(), database.begin() as transaction:
        before = once.before(transaction, at=at, body_sha256=said)
        if before is not None:
            scenario = scenarios.first(transaction, workspace_id=workspace_id, id=before.resource_id)
            say_replayed(response)
        else:
            scenario = scenarios.create(
                transaction, workspace_id=workspace_id, id=uuid4(), at=at, name=body.name, spec=body.spec
            )
            audit.record(
                transaction,
                by=caller,
                id=uuid4(),
                at=at,
                action=AuditAction.CREATE,
                resource=AuditedResource.SCENARIO,
                resource_id=scenario.id,
                new_version=scenario.revision,
            )
            once.keep(transaction, status=201, resource_id=scenario.id)
    response.headers["Location"] = f"/v1/scenarios/{scenario.id}"
    response.headers["ETag"] = entity_tag(scenario.revision)
    return scenario


@router.get("", response_model_exclude_unset=True, responses=describes(406, 422, 503))
@needs(AccessScope.READ)
def list_scenarios(
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ScenarioPage:
    """List the scenarios, the oldest first."""
    after = read_position(request, cursor)
    with database.read() as transaction:
        page = scenarios.list_page(transaction, workspace_id=workspace_id, limit=limit, after=after)
    if page.next_after is None:
        return ScenarioPage(items=page.items)
    next_cursor = write_cursor(request, page.next_after)
    link_next(request, response, next_cursor)
    return ScenarioPage(items=page.items, next_cursor=next_cursor)


@router.get("/{scenario_id}", response_model_exclude_unset=True, responses=describes(404, 406, 422, 503))
@needs(AccessScope.READ)
def get_scenario(
    scenario_id: ScenarioId,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    if_none_match: IfNoneMatch = None,
) -> Scenario:
    """Return a scenario as it is now. Its `ETag` is what PUT and DELETE need."""
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
    tag = entity_tag(scenario.revision)
    response.headers["ETag"] = tag
    return not_modified(if_none_match, tag) or scenario  # type: ignore[return-value]


@router.put(
    "/{scenario_id}",
    response_model_exclude_unset=True,
    responses=describes(400, 404, 406, 409, 412, 413, 415, 422, 428, 503),
)
@needs(AccessScope.WRITE)
def replace_scenario(
    scenario_id: ScenarioId,
    body: ScenarioBody,
    database: UseDatabase,
    caller: UseCaller,
    response: Response,
    if_match: IfMatch = None,
) -> Scenario:
    """Store what a scenario says from now on as its next revision; the earlier ones stay readable."""
    workspace_id, at = caller.workspace_id, now()
    versions = _versions_seen(database, workspace_id, scenario_id, if_match)
    _checked(body)
    with database.begin() as transaction:
        seen = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        scenario = scenarios.replace(
            transaction,
            workspace_id=workspace_id,
            id=scenario_id,
            at=at,
            name=body.name,
            spec=body.spec,
            if_revision=_revision_among(versions, seen),
        )
        audit.record(
            transaction,
            by=caller,
            id=uuid4(),
            at=at,
            action=AuditAction.REPLACE,
            resource=AuditedResource.SCENARIO,
            resource_id=scenario.id,
            old_version=scenario.revision - 1,
            new_version=scenario.revision,
        )
    response.headers["ETag"] = entity_tag(scenario.revision)
    return scenario


@router.delete("/{scenario_id}", status_code=204, responses=describes(404, 406, 409, 412, 422, 428, 503))
@needs(AccessScope.WRITE)
def delete_scenario(
    scenario_id: ScenarioId,
    database: UseDatabase,
    caller: UseCaller,
    if_match: IfMatch = None,
    runs: Annotated[Runs, Query(description="`delete` deletes its benchmark runs too.")] = Runs.KEEP,
) -> None:
    """Delete a scenario and its revisions; with `runs=delete` its benchmark runs too."""
    workspace_id, at = caller.workspace_id, now()
    versions = _versions_seen(database, workspace_id, scenario_id, if_match)
    with database.begin() as transaction:
        seen = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        gone = scenarios.delete(
            transaction,
            workspace_id=workspace_id,
            id=scenario_id,
            if_revision=_revision_among(versions, seen),
            with_runs=runs is Runs.DELETE,
        )
        audit.record_deletions(
            transaction,
            by=caller,
            at=at,
            resource=AuditedResource.BENCHMARK_RUN,
            deleted=[(uuid4(), run_id, sha256) for run_id, sha256 in gone],
        )
        audit.record(
            transaction,
            by=caller,
            id=uuid4(),
            at=at,
            action=AuditAction.DELETE,
            resource=AuditedResource.SCENARIO,
            resource_id=scenario_id,
            old_version=seen.revision,
        )
    database.forget_deleted()


@router.get(
    "/{scenario_id}/revisions", response_model_exclude_unset=True, responses=describes(404, 406, 422, 503)
)
@needs(AccessScope.READ)
def list_scenario_revisions(
    scenario_id: ScenarioId,
    request: Request,
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ScenarioRevisionPage:
    """List what a scenario said, the first revision first, the present one included."""
    after = read_number(request, cursor)
    with database.read() as transaction:
        page = scenarios.list_revisions(
            transaction, workspace_id=workspace_id, id=scenario_id, limit=limit, after=after
        )
    if page.next_after is None:
        return ScenarioRevisionPage(items=page.items)
    next_cursor = write_cursor(request, page.next_after)
    link_next(request, response, next_cursor)
    return ScenarioRevisionPage(items=page.items, next_cursor=next_cursor)


@router.get(
    "/{scenario_id}/revisions/{revision}",
    response_model_exclude_unset=True,
    responses=describes(404, 406, 422, 503),
)
@needs(AccessScope.READ)
def get_scenario_revision(
    scenario_id: ScenarioId,
    revision: Annotated[int, Path(ge=1, le=2**31 - 1, description="Which revision, from 1."), DIGITS],
    response: Response,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    if_none_match: IfNoneMatch = None,
) -> ScenarioRevision:
    """Return what a scenario said at a revision."""
    with database.read() as transaction:
        found = scenarios.get_revision(
            transaction, workspace_id=workspace_id, id=scenario_id, revision=revision
        )
    tag = entity_tag(found.revision)
    response.headers["ETag"] = tag
    return not_modified(if_none_match, tag) or found  # type: ignore[return-value]


@router.get(
    "/{scenario_id}/sizing", response_model_exclude_none=True, responses=describes(404, 406, 422, 503)
)
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_scenario_sizing(
    scenario_id: ScenarioId, database: UseDatabase, workspace_id: UseWorkspaceId, explain: Explain = False
) -> Sizing:
    """Size a stored scenario as it is now."""
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
    return sizing_of(scenario.spec, explained=explain)
