"""One page of a list, and the place where the next one begins."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

Item = TypeVar("Item")
Place = TypeVar("Place")


class Position(NamedTuple):
    """A place in a list that is ordered by time, then id: what was inserted since moves nothing before it."""

    at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Place]):
    """Some items of a list, in its order.

    Attributes:
        items: At most as many as were asked for.
        next_after: Ask for what comes after this to get the next page; None at the end of the list.
    """

    items: list[Item]
    next_after: Place | None
