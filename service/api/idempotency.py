"""`Idempotency-Key`: a request that stores something is done once, however often it is sent."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Request, Response
from sqlalchemy import Connection

from service.errors import StillRunning
from service.store import idempotency
from service.store.caller import Caller
from service.store.idempotency import Done

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="Any text of up to 255 visible ASCII characters that no other request of yours has had. Sent again "
        "under the same key within 24 hours, a request that succeeded is not done again but answered as before, with "
        "`Idempotency-Replayed: true`; another request under it is a 422, one that is still being answered a 409.",
    ),
]


class RunningRequests:
    """The requests with an `Idempotency-Key` that this process is answering."""

    def __init__(self) -> None:
        self._keys: set[tuple[UUID, str]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def alone(self, owner_id: UUID, key: str) -> Iterator[None]:
        """Keep others with the key out meanwhile; raise StillRunning where one is in already."""
        own = (owner_id, key)
        with self._lock:
            if own in self._keys:
                raise StillRunning("The request with this Idempotency-Key is still being answered.")
            self._keys.add(own)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(own)


@dataclass(frozen=True, slots=True)
class Once:
    """What makes sure that a request is done once, where it has a key; nothing where it has none."""

    owner_id: UUID
    key: str | None
    asked: str
    running: RunningRequests

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others with the same key out meanwhile.

        Raises:
            StillRunning: One is in already.
        """
        if self.key is None:
            yield
            return
        with self.running.alone(self.owner_id, self.key):
            yield

    def before(self, transaction: Connection, *, at: datetime, body_sha256: str) -> Done | None:
        """Return what became of the request when it was sent before; None where it is to be done now.

        Raises:
            KeyReused: Another request had its key.
            StillRunning: Another process is answering it, and takes too long.
        """
        if self.key is None:
            return None
        digest = hashlib.sha256(f"{self.asked} {body_sha256}".encode()).hexdigest()
        return idempotency.claim(
            transaction, owner_id=self.owner_id, key=self.key, at=at, request_sha256=digest
        )

    def keep(self, transaction: Connection, *, status: int, resource_id: UUID) -> None:
        """Remember what became of it, in the transaction in which it was done."""
        if self.key is not None:
            done = Done(status=status, resource_id=resource_id)
            idempotency.keep(transaction, owner_id=self.owner_id, key=self.key, done=done)


def say_replayed(response: Response) -> None:
    """Say that the answer is that of an earlier request."""
    response.headers["Idempotency-Replayed"] = "true"


async def _once(request: Request, idempotency_key: IdempotencyKey = None) -> Once:
    caller: Caller = request.scope["caller"]
    return Once(
        owner_id=caller.owner_id,
        key=idempotency_key,
        asked=json.dumps([request.method, request.url.path, sorted(request.query_params.multi_items())]),
        running=request.app.state.running,
    )


UseOnce = Annotated[Once, Depends(_once)]
