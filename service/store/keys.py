"""API keys: every query on them, and how one is written and checked.

A key is `sbk_<id>_<secret>`. Of the secret only a hash is kept, keyed with a salt of its own: the secret has 256
random bits, so that nothing slower than one hash is needed, and nothing that is stored gives it away.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, exists, or_, select, tuple_

from service.errors import KeyEnded, NotFound
from service.store.caller import AccessScope, Caller, included
from service.store.page import Page, Position
from service.store.tables import api_keys, in_utc
from service.wire import Absent, Outgoing

_WRITTEN = re.compile(r"sbk_([0-9a-f]{32})_([0-9a-f]{64})")


class ApiKey(Outgoing):
    """What is known of a key; never its secret."""

    id: UUID
    name: str
    scopes: list[AccessScope]
    created_at: datetime
    expires_at: datetime | Absent = None
    """From when on it is refused; absent where it does not expire."""
    rotated_at: datetime | Absent = None
    """When it got its present secret, where that is not its first."""
    old_expires_at: datetime | Absent = None
    """Until when the secret before that one is taken as well."""
    revoked_at: datetime | Absent = None
    """Since when it is refused for good."""
    last_used_at: datetime | Absent = None
    """When it was last used, to the minute."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """The secret half of a key, and the salt that its hash is keyed with.

    Attributes:
        text: 64 hexadecimal digits, from a source that nobody can foresee.
        salt: 16 bytes from such a source.
    """

    text: str
    salt: bytes

    @property
    def hash(self) -> bytes:
        """What is kept of it."""
        return hashed(self.text, self.salt)


def hashed(text: str, salt: bytes) -> bytes:
    """Return the keyed hash of a secret."""
    return hmac.digest(salt, text.encode(), "sha256")


def written(id: UUID, secret: Secret) -> str:
    """Return a key as its owner sends it."""
    return f"sbk_{id.hex}_{secret.text}"


def parts(key: str) -> tuple[UUID, str] | None:
    """Return the id and the secret of a key; None where it is not written as one."""
    found = _WRITTEN.fullmatch(key)
    return None if found is None else (UUID(found[1]), found[2])


def create(
    transaction: Connection,
    *,
    workspace_id: UUID,
    id: UUID,
    at: datetime,
    name: str,
    scopes: Iterable[AccessScope],
    secret: Secret,
    expires_at: datetime | None = None,
) -> ApiKey:
    """Store a key, and return what may be known of it.

    Args:
        transaction: What it happens in.
        workspace_id: What it opens.
        id: Of the key.
        at: The present time.
        name: Who it is for, for people.
        scopes: What it is good for.
        secret: Its secret, of which the hash is kept.
        expires_at: From when on it is refused; None for never.
    """
    kept = set(scopes)
    row = {
        "id": id,
        "workspace_id": workspace_id,
        "name": name,
        "scopes": " ".join(scope for scope in AccessScope if scope in kept),
        "created_at": in_utc(at),
        "expires_at": None if expires_at is None else in_utc(expires_at),
        "salt": secret.salt,
        "hash": secret.hash,
    }
    transaction.execute(api_keys.insert(), row)
    return get(transaction, workspace_id=workspace_id, id=id)


def get(transaction: Connection, *, workspace_id: UUID, id: UUID) -> ApiKey:
    """Return a key; raise NotFound."""
    return _key(_row(transaction, workspace_id=workspace_id, id=id))


def list_page(
    transaction: Connection, *, workspace_id: UUID, limit: int, after: Position | None = None
) -> Page[ApiKey, Position]:
    """Return the keys of a workspace after a position, the oldest first; those that are revoked too."""
    place = (api_keys.c.created_at, api_keys.c.id)
    query = select(api_keys).where(api_keys.c.workspace_id == workspace_id).order_by(*place).limit(limit + 1)
    if after is not None:
        query = query.where(tuple_(*place) > after)
    found = [_key(row) for row in transaction.execute(query)]
    items = found[:limit]
    more = len(found) > limit
    return Page(items, Position(items[-1].created_at, items[-1].id) if more else None)


def rotate(
    transaction: Connection,
    *,
    workspace_id: UUID,
    id: UUID,
    at: datetime,
    secret: Secret,
    old_expires_at: datetime,
) -> ApiKey:
    """Give a key another secret, and return it.

    Args:
        transaction: What it happens in.
        workspace_id: Whose key.
        id: Which key.
        at: The present time.
        secret: Its secret from now on.
        old_expires_at: Until when the present one is taken as well. One before that is refused from now on.

    Raises:
        NotFound: There is no such key.
        KeyEnded: It is revoked or has expired, and no secret would help.
    """
    row = _row(transaction, workspace_id=workspace_id, id=id, hold=True)
    ended = _ended(row, at)
    if ended is not None:
        raise KeyEnded(f"The key {id} {ended}; make another.")
    transaction.execute(
        api_keys.update()
        .where(api_keys.c.id == id)
        .values(
            salt=secret.salt,
            hash=secret.hash,
            rotated_at=in_utc(at),
            old_salt=row.salt,
            old_hash=row.hash,
            old_expires_at=in_utc(old_expires_at),
        )
    )
    return get(transaction, workspace_id=workspace_id, id=id)


def revoke(transaction: Connection, *, workspace_id: UUID, id: UUID, at: datetime) -> bool:
    """Refuse a key from now on, and return True; False where it is revoked already. Raise NotFound."""
    if _row(transaction, workspace_id=workspace_id, id=id, hold=True).revoked_at is not None:
        return False
    transaction.execute(api_keys.update().where(api_keys.c.id == id).values(revoked_at=in_utc(at)))
    return True


def workspace_of(transaction: Connection, *, id: UUID) -> UUID:
    """Return whose key it is, for an operator, who sees all; raise NotFound."""
    found: UUID | None = transaction.scalar(select(api_keys.c.workspace_id).where(api_keys.c.id == id))
    if found is None:
        raise NotFound(_missing(id))
    return found


def any_exist(transaction: Connection) -> bool:
    """Return whether there was ever a key; not in a database without the table for them."""
    if not transaction.dialect.has_table(transaction, api_keys.name):
        return False
    return bool(transaction.scalar(select(exists(select(api_keys.c.id)))))


@dataclass(frozen=True, slots=True)
class Presented:
    """A key whose secret is right.

    Attributes:
        caller: Whose it is.
        ends_at: From when on the secret is refused; None for never.
        ended: Why the key is refused nevertheless, as `was revoked` or `has expired`; None where it is not.
        last_used_at: When it was last used, as far as that was written down.
    """

    caller: Caller
    ends_at: datetime | None
    ended: str | None
    last_used_at: datetime | None


_NOBODYS = b"\x00" * 32
"""No hash of anything that is known."""


def verify(transaction: Connection, *, id: UUID, secret: str, at: datetime) -> Presented | None:
    """Return whose key this is; None where there is no such key, or its secret is another.

    An unknown id costs the same two hashes and comparisons as a known one.
    """
    row = transaction.execute(select(api_keys).where(api_keys.c.id == id)).one_or_none()
    has_old = row is not None and row.old_hash is not None
    present = _matches(secret, *((row.salt, row.hash) if row is not None else (_NOBODYS, _NOBODYS)))
    old = _matches(
        secret,
        *((row.old_salt, row.old_hash) if row is not None and has_old else (_NOBODYS, _NOBODYS)),
    )
    if row is None or not (present or old):
        return None
    ends = [moment for moment in (row.expires_at, None if present else row.old_expires_at) if moment]
    ended = _ended(row, at)
    if ended is None and ends and min(ends) <= at:
        ended = "was given another secret"
    return Presented(
        caller=Caller(
            workspace_id=row.workspace_id,
            name=row.name,
            scopes=included(_scopes(row)),
            key_id=row.id,
        ),
        ends_at=min(ends) if ends else None,
        ended=ended,
        last_used_at=row.last_used_at,
    )


def mark_used(transaction: Connection, *, id: UUID, at: datetime, unless_since: datetime) -> None:
    """Write down that a key was used, unless that was written down since then."""
    transaction.execute(
        api_keys.update()
        .where(
            api_keys.c.id == id,
            or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < unless_since),
        )
        .values(last_used_at=at)
    )


def _matches(secret: str, salt: bytes, hash: bytes) -> bool:
    return hmac.compare_digest(hashed(secret, salt), hash)


def _ended(row: Row[Any], at: datetime) -> str | None:
    """Return why a key is refused, whatever its secret; None where it is not."""
    if row.revoked_at is not None:
        return "was revoked"
    if row.expires_at is not None and row.expires_at <= at:
        return "has expired"
    return None


def _row(transaction: Connection, *, workspace_id: UUID, id: UUID, hold: bool = False) -> Row[Any]:
    query = select(api_keys).where(api_keys.c.id == id, api_keys.c.workspace_id == workspace_id)
    row = transaction.execute(query.with_for_update() if hold else query).one_or_none()
    if row is None:
        raise NotFound(_missing(id))
    return row


def _scopes(row: Row[Any]) -> list[AccessScope]:
    return [AccessScope(scope) for scope in row.scopes.split()]


def _key(row: Row[Any]) -> ApiKey:
    shown = {name: row._mapping[name] for name in ApiKey.model_fields if name != "scopes"}
    return ApiKey.model_construct(**shown, scopes=_scopes(row))


def _missing(id: UUID) -> str:
    return f"There is no API key {id}."
