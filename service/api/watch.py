"""What is looked at once in a while because nothing else would end it: slow clients and requests that take too long.

One timer for the whole process, not one for each request or each read: a request pays for an entry in a dict.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("stallbudget")

LONGEST_SECONDS = 1.0
"""How long it is at most from one look to the next."""


class Watched(Protocol):
    """Something that may go on for too long."""

    def look(self, at: float) -> None:
        """End what has gone on for too long at that moment."""


class Watch:
    """Looks at everything that is in it, as long as there is something.

    Args:
        every_seconds: How long from one look to the next; a limit holds to about as much.
        monotonic: Seconds since some moment.
    """

    def __init__(self, *, every_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.every_seconds = min(every_seconds, LONGEST_SECONDS)
        self.monotonic = monotonic
        # Ordered, unlike a set: those that came first are looked at first.
        self._watched: dict[Watched, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._watched)

    def add(self, one: Watched) -> None:
        """Look at something from now on."""
        self._watched[one] = None
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.call_later(self.every_seconds, self._turn, loop)

    def remove(self, one: Watched) -> None:
        """Look at it no more."""
        self._watched.pop(one, None)

    def look(self) -> None:
        """Look at everything now."""
        at = self.monotonic()
        for one in list(self._watched):
            try:
                one.look(at)
            except Exception:
                # One that cannot be looked at must not keep the others from it.
                log.exception("the watch failed")

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self.look()
        if self._watched:
            loop.call_later(self.every_seconds, self._turn, loop)
        elif self._loop is loop:
            self._loop = None


class Pace:
    """Whether something moves on, taken over one stretch of time after the other.

    Over each stretch, not on average: who has sent much may not stand still for long after it.

    Args:
        over_seconds: How long a stretch is.
        bytes_per_second: How much at least has to move.
    """

    __slots__ = ("_begun_at", "_begun_with", "_least", "_over_seconds")

    def __init__(self, *, over_seconds: float, bytes_per_second: float) -> None:
        self._over_seconds = over_seconds
        self._least = max(1.0, bytes_per_second * over_seconds)
        self._begun_at: float | None = None
        self._begun_with = 0

    def is_too_slow(self, at: float, moved_bytes: int) -> bool:
        """Return whether less than it must has moved over the stretch that ends; begin another where enough has.

        Args:
            at: The present moment. [s]
            moved_bytes: How much has moved since some moment before the stretch. [B]
        """
        if self._begun_at is None:
            self._begun_at, self._begun_with = at, moved_bytes
            return False
        if at - self._begun_at < self._over_seconds:
            return False
        if moved_bytes - self._begun_with < self._least:
            return True
        self._begun_at, self._begun_with = at, moved_bytes
        return False

    def rest(self) -> None:
        """Begin anew at the next look: nothing has to move for now."""
        self._begun_at = None
