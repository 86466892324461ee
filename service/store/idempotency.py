"""Requests that carry an `Idempotency-Key`: each is done once, and what became of it is told again.

The row is written in the transaction of the effect, so the two are kept or lost together. It names what was
made, not the bytes of the answer: those follow from what is stored. What is deleted is forgotten with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection, Select, select, tuple_
from sqlalchemy.exc import DBAPIError

from service.errors import DatabaseUnavailable, KeyReused, StillRunning
from service.store.database import insert_unless_present
from service.store.tables import idempotency_keys

KEPT = timedelta(hours=24)
"""How long a key is remembered."""
_REMOVED_AT_ONCE = 100
"""How many old rows one request clears away at most."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a request.

    Attributes:
        status: The HTTP status that it was answered with.
        resource_id: What it made or found.
    """

    status: int
    resource_id: UUID


def claim(
    transaction: Connection, *, owner_id: UUID, key: str, at: datetime, request_sha256: str
) -> Done | None:
    """Return what became of the request with this key; None where it is the first, which then must `keep`.

    A request that another transaction is doing now is waited for.

    Args:
        transaction: What it happens in.
        owner_id: Whose key.
        key: The key.
        at: The present time.
        request_sha256: Digest of all that the request asks.

    Raises:
        KeyReused: Another request had this key.
        StillRunning: The wait for the request with this key was too long.
    """
    row = {"owner_id": owner_id, "key": key, "created_at": at, "request_sha256": request_sha256}
    own = (idempotency_keys.c.owner_id == owner_id, idempotency_keys.c.key == key)
    _remove_old(transaction, before=at - KEPT)
    # More than once only where the row in the way is deleted before it can be read.
    for _ in range(5):
        try:
            if insert_unless_present(transaction, idempotency_keys, row):
                return None
        except DBAPIError as error:
            if isinstance(error.orig, LockNotAvailable):
                raise StillRunning(
                    "The request with this Idempotency-Key is still being answered."
                ) from error
            raise
        found = transaction.execute(select(idempotency_keys).where(*own).with_for_update()).one_or_none()
        if found is None:
            continue
        if found.created_at <= at - KEPT:
            transaction.execute(idempotency_keys.update().where(*own).values(**row))
            return None
        if found.request_sha256 != request_sha256:
            raise KeyReused("Another request had this Idempotency-Key; give each request its own.")
        return Done(status=found.status, resource_id=found.resource_id)
    raise DatabaseUnavailable("Requests with this Idempotency-Key come and go too fast.")


def keep(transaction: Connection, *, owner_id: UUID, key: str, done: Done) -> None:
    """Remember what became of a request whose key was claimed in this transaction."""
    transaction.execute(
        idempotency_keys.update()
        .where(idempotency_keys.c.owner_id == owner_id, idempotency_keys.c.key == key)
        .values(status=done.status, resource_id=done.resource_id)
    )


def forget(transaction: Connection, resource_ids: Sequence[UUID] | Select[tuple[UUID]]) -> None:
    """Forget the requests that made these: repeated, they are to make them anew."""
    transaction.execute(idempotency_keys.delete().where(idempotency_keys.c.resource_id.in_(resource_ids)))


def _remove_old(transaction: Connection, *, before: datetime) -> None:
    """Remove some rows that are too old, and leave those that another transaction removes."""
    row = (idempotency_keys.c.owner_id, idempotency_keys.c.key)
    old = (
        select(*row)
        .where(idempotency_keys.c.created_at <= before)
        .limit(_REMOVED_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    transaction.execute(idempotency_keys.delete().where(tuple_(*row).in_(old)))
