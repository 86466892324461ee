"""Who asks: a workspace, a key or none, and what that may do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

DEFAULT_WORKSPACE = UUID("00000000-0000-4000-8000-000000000001")
"""The workspace that every database has, named `default`; everything of an open service is in it."""


class AccessScope(StrEnum):
    """What a key is good for."""

    READ = "read"
    WRITE = "write"
    SUBMIT = "submit"
    ADMIN = "admin"


_INCLUDED = {
    AccessScope.READ: frozenset({AccessScope.READ}),
    AccessScope.SUBMIT: frozenset({AccessScope.SUBMIT}),
    AccessScope.WRITE: frozenset({AccessScope.READ, AccessScope.SUBMIT, AccessScope.WRITE}),
    AccessScope.ADMIN: frozenset(AccessScope),
}


def included(scopes: Iterable[AccessScope]) -> frozenset[AccessScope]:
    """Return the scopes with all that they include: `write` reads and submits, `admin` does everything."""
    return frozenset().union(*(_INCLUDED[scope] for scope in scopes))


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks, as far as the store must know.

    Attributes:
        workspace_id: Whose rows it sees.
        name: The name of its key; `open` where a service asks for none, `cli` for the command line.
        scopes: What it may do, with all that this includes.
        key_id: Its key.
        request_id: The request that it asks by.
    """

    workspace_id: UUID
    name: str
    scopes: frozenset[AccessScope]
    key_id: UUID | None = None
    request_id: str | None = None

    @property
    def owner_id(self) -> UUID:
        """Whose idempotency keys its own must differ from: those of its key, else of its workspace."""
        return self.workspace_id if self.key_id is None else self.key_id
