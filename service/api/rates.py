"""How many requests a caller may send a minute: by kind of work, for each key, or for each address without one.

Kept in the memory of the process, so that with N processes a caller has N times as much; there is no store to ask,
none that could fail, and no request that waits for one. Where more callers than can be remembered are busy at once,
the longest known is forgotten and begins anew: that errs on the side of answering, and is counted.
"""

import math
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from service.api.attempts import network_of
from service.errors import RateLimited
from service.settings import Settings

WINDOW_SECONDS = 60
CALLERS = 20_000
"""How many callers are remembered, each once for every kind of work that it asked for."""

_SPENT = "spent_budget"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Budget(StrEnum):
    """A kind of work, with a quota of its own."""

    READING = "reading"
    COMPUTING = "computing"
    WRITING = "writing"


def spends(budget: Budget | None) -> Callable[[Endpoint], Endpoint]:
    """Say from which budget a route takes, None for none; stands below the route's own decorator.

    A route that does not say so takes from what its scope and its method suggest.
    """

    def mark(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_SPENT] = budget
        return endpoint

    return mark


def spent_by(endpoint: Callable[..., Any], otherwise: Budget) -> Budget | None:
    """Return from which budget a route says that it takes."""
    budget: Budget | None = vars(endpoint).get(_SPENT, otherwise)
    return budget


@dataclass(frozen=True, slots=True)
class Standing:
    """How a caller stands after a request.

    Attributes:
        is_allowed: Whether the request may be answered.
        fields: The `RateLimit-Policy` and `RateLimit` fields that say how it stands.
        retry_after_seconds: After how many whole seconds the next request may come; 0 where it may now.
    """

    is_allowed: bool
    fields: tuple[tuple[bytes, bytes], ...]
    retry_after_seconds: int = 0


UNLIMITED = Standing(True, ())


class RateLimits:
    """The quotas, and how far each caller has used them up.

    A quota comes back evenly: one request every 60 s over the quota, up to the whole. So there is no edge of a
    window at which twice as much goes through, and one number for a caller is enough: the moment at which its
    quota is whole again (the generic cell rate algorithm).

    Args:
        settings: The quotas.
        monotonic: Seconds since some moment.
        callers: How many are remembered.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        callers: int = CALLERS,
    ) -> None:
        self._quotas: Mapping[Budget, int] = {
            Budget.READING: settings.reading_per_minute,
            Budget.COMPUTING: settings.computing_per_minute,
            Budget.WRITING: settings.writing_per_minute,
        }
        self._policies = {
            budget: (b"ratelimit-policy", b'"%s";q=%d;w=%d' % (budget.encode(), quota, WINDOW_SECONDS))
            for budget, quota in self._quotas.items()
        }
        self._monotonic = monotonic
        self._callers = callers
        self._whole_at: dict[tuple[Budget, object], float] = {}
        self.forgotten = 0
        """How many callers were forgotten while their quota was not whole."""

    def take(self, budget: Budget, caller: object) -> Standing:
        """Take one request of a caller, known by its key or its address, from a budget. Refused ones cost nothing."""
        quota = self._quotas[budget]
        if not quota:
            return UNLIMITED
        at = self._monotonic()
        place = (budget, caller)
        whole_at = max(self._whole_at.get(place, at), at)
        pause = WINDOW_SECONDS / quota
        used = whole_at - at + pause
        # A hair's breadth for the rounding of sums: the last request of a whole quota is within it.
        is_allowed = used <= WINDOW_SECONDS * (1 + 1e-9)
        if is_allowed:
            if place not in self._whole_at and len(self._whole_at) >= self._callers:
                self._make_room(at)
            self._whole_at[place] = at + used
        else:
            used -= pause
        remaining = max(0, int((WINDOW_SECONDS - used) / pause + 1e-6))
        fields = (
            self._policies[budget],
            (b"ratelimit", b'"%s";r=%d;t=%d' % (budget.encode(), remaining, math.ceil(used))),
        )
        if is_allowed:
            return Standing(True, fields)
        return Standing(False, fields, max(1, math.ceil(used + pause - WINDOW_SECONDS)))

    def _make_room(self, at: float) -> None:
        """Forget those whose quota is whole, else the one that was heard of first."""
        self._whole_at = {place: whole for place, whole in self._whole_at.items() if whole > at}
        # A tenth at a time: this is not to be gone through for every request of a flood.
        while len(self._whole_at) > 0.9 * self._callers:
            del self._whole_at[next(iter(self._whole_at))]
            self.forgotten += 1


def charge(scope: MutableMapping[str, Any], budget: Budget) -> None:
    """Take a request from a budget of its key, or of its address where it has none; its answer will say what is left.

    Raises:
        RateLimited: The budget is used up.
    """
    state = scope["app"].state
    caller = scope.get("caller")
    key_id = None if caller is None else caller.key_id
    client = scope.get("client")
    standing: Standing = state.rates.take(
        budget, network_of(client[0] if client else "") if key_id is None else key_id
    )
    scope["rate_limit"] = standing.fields
    if not standing.is_allowed:
        whose = "address" if key_id is None else "key"
        state.metrics.count_rate_limited(budget=budget, by=whose)
        seconds = standing.retry_after_seconds
        raise RateLimited(
            f"The {whose} has used up its quota for {budget}; try again in {seconds} s.",
            retry_after_seconds=seconds,
        )
