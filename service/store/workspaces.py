"""Every query on workspaces."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from service.errors import NameTaken, NotFound
from service.store.database import insert_unless_present
from service.store.tables import in_utc, workspaces


@dataclass(frozen=True, slots=True)
class Workspace:
    """Whose scenarios, runs and keys are kept apart from those of others."""

    id: UUID
    name: str
    created_at: datetime


def create(transaction: Connection, *, id: UUID, at: datetime, name: str) -> Workspace:
    """Make a workspace, and return it; raise NameTaken."""
    made = Workspace(id=id, name=name, created_at=in_utc(at))
    row = {"id": made.id, "name": made.name, "created_at": made.created_at}
    if not insert_unless_present(transaction, workspaces, row, unique=["name"]):
        raise NameTaken(f"Another workspace is named {name!r}.")
    return made


def find(transaction: Connection, *, name: str) -> Workspace:
    """Return the workspace of that name; raise NotFound."""
    row = transaction.execute(select(workspaces).where(workspaces.c.name == name)).one_or_none()
    if row is None:
        raise NotFound(f"There is no workspace {name!r}.")
    return Workspace(**row._mapping)


def list_all(transaction: Connection) -> list[Workspace]:
    """Return every workspace, by name."""
    rows = transaction.execute(select(workspaces).order_by(workspaces.c.name))
    return [Workspace(**row._mapping) for row in rows]
