"""Keys for tests of a service."""

from datetime import UTC, datetime, timedelta
from secrets import token_bytes, token_hex
from uuid import UUID, uuid4

from fastapi import FastAPI

from service.store import keys, workspaces
from service.store.caller import DEFAULT_WORKSPACE, AccessScope
from service.store.database import Database
from service.store.keys import Secret


def make_key(
    application: FastAPI,
    *scopes: AccessScope,
    workspace_id: UUID = DEFAULT_WORKSPACE,
    name: str = "a key",
    expires_at: datetime | None = None,
) -> dict[str, str]:
    """Store a key of a service, as another process would, and return the header that carries it."""
    database: Database = application.state.database
    return store_key(database, *scopes, workspace_id=workspace_id, name=name, expires_at=expires_at)


def store_key(
    database: Database,
    *scopes: AccessScope,
    workspace_id: UUID = DEFAULT_WORKSPACE,
    name: str = "a key",
    expires_at: datetime | None = None,
) -> dict[str, str]:
    """Store a key, and return the header that carries it."""
    secret, id_ = Secret(token_hex(32), token_bytes(16)), uuid4()
    with database.begin() as transaction:
        keys.create(
            transaction,
            workspace_id=workspace_id,
            id=id_,
            at=datetime.now(UTC),
            name=name,
            scopes=scopes,
            secret=secret,
            expires_at=expires_at,
        )
    return {"Authorization": f"Bearer {keys.written(id_, secret)}"}


def make_workspace(application: FastAPI, name: str = "other") -> UUID:
    """Store a workspace, and return its id."""
    database: Database = application.state.database
    with database.begin() as transaction:
        return workspaces.create(transaction, id=uuid4(), at=datetime.now(UTC), name=name).id


def id_of(header: dict[str, str]) -> UUID:
    """Return the id of the key in a header."""
    parts = keys.parts(header["Authorization"].removeprefix("Bearer "))
    assert parts is not None
    return parts[0]


class Clocks:
    """Both clocks of the access, which go only when told to."""

    def __init__(self) -> None:
        self._passed = timedelta()
        self._start = datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return 1000.0 + self._passed.total_seconds()

    def now(self) -> datetime:
        """Return the present time."""
        return self._start + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += timedelta(seconds=seconds)
