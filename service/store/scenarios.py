"""Every query on scenarios and their revisions, and the two resources as the wire shows them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, ScalarSelect, Select, exists, select, tuple_
from sqlalchemy.exc import IntegrityError

from service.errors import NameTaken, NotFound, RunsExist, Stale
from service.sizing.spec import ScenarioSpec
from service.store import documents, idempotency, stored_spec
from service.store.database import insert_unless_present
from service.store.page import Page, Position
from service.store.tables import benchmark_documents, benchmark_runs, in_utc, scenario_revisions, scenarios
from service.wire import Outgoing


class Scenario(Outgoing):
    """A stored spec, under a name."""

    id: UUID
    name: str
    """Unique among the scenarios of the workspace."""
    revision: int
    """1 at first, and one more with each replacement."""
    spec: ScenarioSpec
    """What was said, without the defaults of what was not."""
    created_at: datetime
    updated_at: datetime
    """When the present revision was stored."""


class ScenarioRevision(Outgoing):
    """What a scenario said at one time."""

    scenario_id: UUID
    revision: int
    name: str
    spec: ScenarioSpec
    created_at: datetime
    """When this revision was stored."""


def create(
    transaction: Connection, *, workspace_id: UUID, id: UUID, at: datetime, name: str, spec: ScenarioSpec
) -> Scenario:
    """Store a scenario as its revision 1, and return it.

    Raises:
        NameTaken: Another scenario has the name. The transaction can go on.
    """
    at = in_utc(at)
    scenario = Scenario(id=id, name=name, revision=1, spec=spec, created_at=at, updated_at=at)
    row = {"id": id, "name": name, "revision": 1, "created_at": at, "updated_at": at}
    row["workspace_id"] = workspace_id
    if not insert_unless_present(transaction, scenarios, row, unique=["workspace_id", "name"]):
        raise NameTaken(_taken(name))
    _keep_revision(transaction, scenario)
    return scenario


def get(transaction: Connection, *, workspace_id: UUID, id: UUID) -> Scenario:
    """Return a scenario as it is now; raise NotFound."""
    row = transaction.execute(_present(workspace_id).where(scenarios.c.id == id)).one_or_none()
    if row is None:
        raise NotFound(_missing(id))
    return _scenario(row)


def among(transaction: Connection, *, workspace_id: UUID, ids: Select[tuple[UUID]]) -> list[Scenario]:
    """Return the scenarios of a workspace whose ids a query gives, as they are now."""
    return [
        _scenario(row) for row in transaction.execute(_present(workspace_id).where(scenarios.c.id.in_(ids)))
    ]


def list_page(
    transaction: Connection, *, workspace_id: UUID, limit: int, after: Position | None = None
) -> Page[Scenario, Position]:
    """Return the scenarios of a workspace after a position, the oldest first."""
    place = (scenarios.c.created_at, scenarios.c.id)
    query = _present(workspace_id).order_by(*place).limit(limit + 1)
    if after is not None:
        query = query.where(tuple_(*place) > after)
    found = [_scenario(row) for row in transaction.execute(query)]
    items = found[:limit]
    more = len(found) > limit
    return Page(items, Position(items[-1].created_at, items[-1].id) if more else None)


def replace(
    transaction: Connection,
    *,
    workspace_id: UUID,
    id: UUID,
    at: datetime,
    name: str,
    spec: ScenarioSpec,
    if_revision: int | None,
) -> Scenario:
    """Store what a scenario says from now on as its next revision, and return it.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        id: Which scenario.
        at: The time of the change.
        name: Its name from now on.
        spec: Its spec from now on.
        if_revision: The revision that the caller has seen; None replaces any.

    Raises:
        NotFound: There is no such scenario.
        Stale: It is at another revision. Of two callers with the same revision one gets this.
        NameTaken: Another scenario has the name. The transaction is then lost.
    """
    at = in_utc(at)
    seen = _hold(transaction, workspace_id=workspace_id, id=id, if_revision=if_revision)
    scenario = Scenario(
        id=id, name=name, revision=seen.revision + 1, spec=spec, created_at=seen.created_at, updated_at=at
    )
    try:
        transaction.execute(
            scenarios.update()
            .where(scenarios.c.id == id, scenarios.c.revision == seen.revision)
            .values(name=name, revision=scenario.revision, updated_at=at)
        )
    except IntegrityError as error:
        raise NameTaken(_taken(name)) from error
    _keep_revision(transaction, scenario)
    return scenario


def delete(
    transaction: Connection, *, workspace_id: UUID, id: UUID, if_revision: int | None, with_runs: bool
) -> list[tuple[UUID, str]]:
    """Delete a scenario with all its revisions; return the id and the sha256 of each run that went with it.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        id: Which scenario.
        if_revision: The revision that the caller has seen; None deletes any.
        with_runs: Whether its benchmark runs and their documents go too.

    Raises:
        NotFound: There is no such scenario.
        Stale: It is at another revision.
        RunsExist: It has runs, and `with_runs` is false.
    """
    # While the row is held nobody can add a run: that must see the scenario, and waits.
    _hold(transaction, workspace_id=workspace_id, id=id, if_revision=if_revision)
    runs = benchmark_runs.c.scenario_id == id
    gone: list[tuple[UUID, str]] = []
    if with_runs:
        idempotency.forget(transaction, select(benchmark_runs.c.id).where(runs))
        held = transaction.scalars(
            select(benchmark_documents.c.body_sha256).where(
                benchmark_documents.c.run_id.in_(select(benchmark_runs.c.id).where(runs))
            )
        ).all()
        deletion = benchmark_runs.delete().where(runs)
        gone += (
            (row.id, row.sha256)
            for row in transaction.execute(deletion.returning(benchmark_runs.c.id, benchmark_runs.c.sha256))
        )
        documents.release(transaction, workspace_id=workspace_id, sha256s=held)
    elif transaction.scalar(select(exists().where(runs))):
        raise RunsExist(f"The scenario {id} has benchmark runs.")
    idempotency.forget(transaction, [id])
    transaction.execute(scenarios.delete().where(scenarios.c.id == id))
    return gone


def list_revisions(
    transaction: Connection, *, workspace_id: UUID, id: UUID, limit: int, after: int | None = None
) -> Page[ScenarioRevision, int]:
    """Return what a scenario said, the first revision first, the present one included; raise NotFound.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        id: Which scenario.
        limit: How many revisions at most.
        after: Those above this number only.
    """
    query = (
        select(scenario_revisions)
        .where(scenario_revisions.c.scenario_id == within(workspace_id, id))
        .order_by(scenario_revisions.c.revision)
        .limit(limit + 1)
    )
    if after is not None:
        query = query.where(scenario_revisions.c.revision > after)
    found = [_revision(row) for row in transaction.execute(query)]
    if not found:
        require(transaction, workspace_id=workspace_id, id=id)
    items = found[:limit]
    return Page(items, items[-1].revision if len(found) > limit else None)


def get_revision(transaction: Connection, *, workspace_id: UUID, id: UUID, revision: int) -> ScenarioRevision:
    """Return what a scenario said at a revision; raise NotFound."""
    row = transaction.execute(
        select(scenario_revisions).where(
            scenario_revisions.c.scenario_id == within(workspace_id, id),
            scenario_revisions.c.revision == revision,
        )
    ).one_or_none()
    if row is None:
        require(transaction, workspace_id=workspace_id, id=id)
        raise NotFound(f"The scenario {id} has no revision {revision}.")
    return _revision(row)


def first(transaction: Connection, *, workspace_id: UUID, id: UUID) -> Scenario:
    """Return a scenario as it was created; raise NotFound."""
    said = get_revision(transaction, workspace_id=workspace_id, id=id, revision=1)
    return Scenario.model_construct(
        id=id,
        name=said.name,
        revision=1,
        spec=said.spec,
        created_at=said.created_at,
        updated_at=said.created_at,
    )


def require(transaction: Connection, *, workspace_id: UUID, id: UUID) -> None:
    """Raise NotFound unless there is such a scenario."""
    if transaction.scalar(select(within(workspace_id, id))) is None:
        raise NotFound(_missing(id))


def within(workspace_id: UUID, id: UUID) -> ScalarSelect[UUID]:
    """Return the id of a scenario, to be compared with in a query; nothing where it is another workspace's."""
    return (
        select(scenarios.c.id)
        .where(scenarios.c.id == id, scenarios.c.workspace_id == workspace_id)
        .scalar_subquery()
    )


def _hold(transaction: Connection, *, workspace_id: UUID, id: UUID, if_revision: int | None) -> Row[Any, Any]:
    """Return the scenario's revision and creation, and keep others from changing it until the end."""
    row = transaction.execute(
        select(scenarios.c.revision, scenarios.c.created_at)
        .where(scenarios.c.id == id, scenarios.c.workspace_id == workspace_id)
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFound(_missing(id))
    if if_revision is not None and if_revision != row.revision:
        raise Stale(f"The scenario {id} is at revision {row.revision}, no longer at {if_revision}.")
    return row


def _keep_revision(transaction: Connection, scenario: Scenario) -> None:
    transaction.execute(
        scenario_revisions.insert(),
        {
            "scenario_id": scenario.id,
            "revision": scenario.revision,
            "name": scenario.name,
            "created_at": scenario.updated_at,
            "spec": stored_spec.dump(scenario.spec),
        },
    )


_SHOWN = [column for column in scenarios.c if column is not scenarios.c.workspace_id]


def _present(workspace_id: UUID) -> Select[Any]:
    """Select the scenarios of a workspace, each with what its present revision says."""
    return (
        select(*_SHOWN, scenario_revisions.c.spec)
        .join(
            scenario_revisions,
            (scenario_revisions.c.scenario_id == scenarios.c.id)
            & (scenario_revisions.c.revision == scenarios.c.revision),
        )
        .where(scenarios.c.workspace_id == workspace_id)
    )


def _scenario(row: Row[Any]) -> Scenario:
    # Constructed: validation would run the checks of a spec again, which reading must not fail.
    return Scenario.model_construct(**{**row._mapping, "spec": stored_spec.load(row.spec)})


def _revision(row: Row[Any]) -> ScenarioRevision:
    return ScenarioRevision.model_construct(**{**row._mapping, "spec": stored_spec.load(row.spec)})


def _missing(id: UUID) -> str:
    return f"There is no scenario {id}."


def _taken(name: str) -> str:
    return f"Another scenario is named {name!r}."
