"""Who may ask what: keys, their scopes, and the open mode of a service on the loopback.

Each route says once which scope it needs, by `needs` or `needs_no_key`; `StrictRoute` has it checked before
anything else of the request is looked at, its body least of all.
"""

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from service.api.attempts import FailedAttempts
from service.api.problems import Refused
from service.errors import DatabaseUnavailable, Fault
from service.settings import Settings, is_loopback
from service.store import keys
from service.store.caller import DEFAULT_WORKSPACE, AccessScope, Caller, included
from service.store.database import Database

CACHE_SECONDS = 5.0
"""For how long a key that was checked, or the absence of keys, is taken as it was: so long a key may be good after
another process revoked it. In the process that revokes it, it ends at once."""
CACHED_KEYS = 1000
OWN_HOSTS = 100
USE_NOTED = timedelta(minutes=1)
"""How exact `last_used_at` is."""

SCHEME = "apiKey"
"""The name of the security scheme in the OpenAPI document."""

_FORWARDING = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host"})
"""What a proxy adds: whoever asks through one may be anywhere."""
_NEEDED = "needed_scope"
_BEARER = b"bearer "

log = logging.getLogger("stallbudget")

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def needs(scope: AccessScope) -> Callable[[Endpoint], Endpoint]:
    """Say which scope a key must have for a route; stands below the route's own decorator."""

    def mark(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_NEEDED] = scope
        return endpoint

    return mark


def needs_no_key(endpoint: Endpoint) -> Endpoint:
    """Say that a route is for everybody; stands below the route's own decorator."""
    vars(endpoint)[_NEEDED] = None
    return endpoint


def needed_by(endpoint: Callable[..., Any]) -> AccessScope | None:
    """Return the scope that a route says it needs, None where it says that it needs no key.

    Raises:
        TypeError: It says neither.
    """
    try:
        needed: AccessScope | None = vars(endpoint)[_NEEDED]
    except KeyError:
        raise TypeError(
            f"{endpoint.__qualname__} says neither which scope it needs nor that it needs none"
        ) from None
    return needed


@dataclass(slots=True)
class _Verified:
    caller: Caller
    until: float


class Access:
    """Admits callers, or refuses them.

    Args:
        database: Where the keys are.
        settings: Whether the service may be open.
        monotonic: Seconds since some moment.
        now: The present time.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._now = now
        self._monotonic = monotonic
        self._may_be_open = settings.may_be_open
        self._open_until = -1.0
        # What Host headers of this machine look like here: to read one takes longer than all else.
        self._own_hosts: set[bytes] = set()
        self._verified: dict[bytes, _Verified] = {}
        self._checking: dict[bytes, asyncio.Future[Caller]] = {}
        # Routes that change keys run in threads. What was looked up before a change must not be kept after it.
        self._changing = threading.Lock()
        self._changes = 0
        self._failed = FailedAttempts(settings.failed_keys)

    async def admit(self, scope: Mapping[str, Any], needed: AccessScope) -> Caller:
        """Return who asks by this request.

        Raises:
            Refused: It has no key, or not a good one (401); its key may not do that, or the request comes from a
                page of somebody else (403); too many keys of its address were wrong (429).
            DatabaseUnavailable: Whether there are keys, or whether this is one, cannot be found out.
        """
        authorization = host = origin = forwarded = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                if authorization is not None:
                    raise _unauthorized("Send one Authorization header, not several.")
                authorization = value
            elif name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name in _FORWARDING:
                forwarded = value
        if authorization is None:
            if not await self._is_open():
                raise _unauthorized("This service needs a key: send it as Authorization: Bearer sbk_….")
            if host is not None and host not in self._own_hosts:
                _refuse_foreign_host(host)
                if len(self._own_hosts) < OWN_HOSTS:
                    self._own_hosts.add(host)
            if origin is not None:
                _refuse_foreign_origin(origin, host)
            if forwarded is not None:
                raise _published()
            return _OPEN
        if not authorization.lower().startswith(_BEARER):
            raise _unauthorized(
                "The key is sent as Authorization: Bearer sbk_…, in no other scheme.", given=True
            )
        key = authorization[len(_BEARER) :].strip()
        digest = hashlib.sha256(key).digest()
        known = self._verified.get(digest)
        if known is not None and self._monotonic() < known.until:
            caller = known.caller
        else:
            caller = await self._check_once(scope, key, digest)
        if needed not in caller.scopes:
            raise Refused(
                "forbidden",
                f"The key {caller.name!r} has not the scope {needed}, which this needs.",
                headers={
                    "WWW-Authenticate": f'Bearer realm="stallbudget", error="insufficient_scope", scope="{needed}"'
                },
            )
        return caller

    def key_was_made(self) -> None:
        """Take note that there is a key now: the service is no longer open."""
        self._may_be_open = False

    def key_was_changed(self, id: UUID) -> None:
        """Forget what is known of a key: it was revoked or has another secret."""
        with self._changing:
            self._changes += 1
            self._verified = {
                digest: known for digest, known in self._verified.items() if known.caller.key_id != id
            }

    async def _is_open(self) -> bool:
        """Return whether requests need no key. Once there was one, they need one for good."""
        if not self._may_be_open:
            return False
        if self._monotonic() >= self._open_until:
            asked_at = self._monotonic()
            if await run_in_threadpool(self._any_key_exists):
                self._may_be_open = False
            else:
                self._open_until = asked_at + CACHE_SECONDS
        return self._may_be_open

    def _any_key_exists(self) -> bool:
        # Connecting would make the file of SQLite.
        if not self._database.exists():
            return False
        with self._database.read() as transaction:
            return keys.any_exist(transaction)

    async def _check_once(self, scope: Mapping[str, Any], key: bytes, digest: bytes) -> Caller:
        """Return whose key it is; of many requests that come with it at once, one looks it up for all."""
        while (running := self._checking.get(digest)) is not None:
            with suppress(asyncio.CancelledError):
                return await asyncio.shield(running)
            if not running.cancelled():  # this request was given up, not the one that looks
                raise asyncio.CancelledError
        looking = self._checking[digest] = asyncio.get_running_loop().create_future()
        try:
            caller = await self._check(scope, key, digest)
        except (Refused, DatabaseUnavailable) as refusal:
            looking.set_exception(refusal)
            looking.exception()  # nobody may be waiting for it
            raise
        except BaseException:
            looking.cancel()
            raise
        else:
            looking.set_result(caller)
            return caller
        finally:
            del self._checking[digest]

    async def _check(self, scope: Mapping[str, Any], key: bytes, digest: bytes) -> Caller:
        """Return whose key it is, looked up in the database."""
        client = scope.get("client")
        address = client[0] if client else ""
        at = self._monotonic()
        wait_seconds = self._failed.wait_seconds(address, at)
        if wait_seconds:
            raise Refused(
                "too-many-attempts",
                f"Too many keys from this address were wrong; try again in {wait_seconds} s.",
                headers={"Retry-After": str(wait_seconds)},
            )
        self._failed.count(address, at)
        changes = self._changes
        parts = keys.parts(key.decode("latin-1"))
        try:
            presented = None if parts is None else await run_in_threadpool(self._look_up, *parts)
        except BaseException:
            # Nothing was found out about the key.
            self._failed.forgive(address, at)
            raise
        if presented is None:
            raise _unauthorized("There is no such key, or its secret is another.", given=True)
        self._failed.forgive(address, at)
        if presented.ended is not None:
            raise _unauthorized(f"The key {presented.caller.name!r} {presented.ended}.", given=True)
        good_seconds = CACHE_SECONDS
        if presented.ends_at is not None:
            good_seconds = min(good_seconds, (presented.ends_at - self._now()).total_seconds())
        with self._changing:
            if len(self._verified) >= CACHED_KEYS:
                self._verified.clear()
            if changes == self._changes:
                self._verified[digest] = _Verified(presented.caller, at + good_seconds)
        return presented.caller

    def _look_up(self, id: UUID, secret: str) -> keys.Presented | None:
        at = self._now()
        with self._database.read() as transaction:
            presented = keys.verify(transaction, id=id, secret=secret, at=at)
        if presented is not None and presented.ended is None:
            since = at - USE_NOTED
            if presented.last_used_at is None or presented.last_used_at < since:
                self._note_use(id, at, since)
        return presented

    def _note_use(self, id: UUID, at: datetime, since: datetime) -> None:
        """Write down that a key was used, in a transaction of its own; no request fails for want of that."""
        try:
            with self._database.begin() as transaction:
                keys.mark_used(transaction, id=id, at=at, unless_since=since)
        except DatabaseUnavailable as error:
            log.warning("the use of key %s was not written down: %s", id, error)


_OPEN = Caller(workspace_id=DEFAULT_WORKSPACE, name="open", scopes=included([AccessScope.ADMIN]))


# A page of somebody else can make a browser on this machine send requests here. It sends its own Origin with what
# changes anything; or it has a name of its own lead to this machine, which then stands in Host.


def _refuse_foreign_host(host: bytes) -> None:
    if not is_loopback(_name_of(host)):
        raise Refused(
            "forbidden",
            "Without keys this service answers to localhost and 127.0.0.1 only; to reach it under another name, "
            "make a key with `stallbudget key create`.",
            Fault("Host", "foreign", "Ask for localhost or 127.0.0.1."),
        )


def _published() -> Refused:
    return Refused(
        "forbidden",
        "Without keys this service answers to this machine alone, and a proxy has passed this request on: make a key "
        "with `stallbudget key create`.",
        Fault("X-Forwarded-For", "foreign", "Ask without a proxy, or with a key."),
    )


def _refuse_foreign_origin(origin: bytes, host: bytes | None) -> None:
    if host is None or _place_of(origin) != host.lower():
        raise Refused(
            "forbidden",
            "Without keys this service takes no requests from pages of other sites; make a key with "
            "`stallbudget key create`.",
            Fault("Origin", "foreign", "Leave it out, or send it from a page of this service."),
        )


def _place_of(origin: bytes) -> bytes:
    """Return the host and the port of an origin; nothing where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return b""


def _name_of(host: bytes) -> str:
    """Return what a Host header names, without the port."""
    text = host.decode("latin-1")
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def _unauthorized(detail: str, *, given: bool = False) -> Refused:
    challenge = 'Bearer realm="stallbudget"' + (', error="invalid_token"' if given else "")
    return Refused("unauthorized", detail, headers={"WWW-Authenticate": challenge})
