"""Cursors: opaque to the caller, bound to the list that gave them."""

import base64
import hashlib
import json
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request, Response

from service.api.dependencies import DIGITS
from service.api.problems import Refused
from service.errors import Fault
from service.store.page import Position

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most."), DIGITS]
Cursor = Annotated[
    str | None,
    Query(max_length=500, description="`next_cursor` of the page before; absent for the first page."),
]


Place = Position | int


def _bound_to(request: Request) -> str:
    """Return what a cursor of this list must carry: the path and the filters, but not the place in it."""
    filters = sorted(
        item for item in request.query_params.multi_items() if item[0] not in ("cursor", "limit")
    )
    return hashlib.sha256(json.dumps([request.url.path, filters]).encode()).hexdigest()[:16]


def write_cursor(request: Request, place: Place) -> str:
    """Return the cursor of the page that follows a place: a time and an id, or a number."""
    parts = [place] if isinstance(place, int) else [place.at.isoformat(), str(place.id)]
    payload = json.dumps([_bound_to(request), *parts], separators=(",", ":"))
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")


def read_position(request: Request, cursor: str | None) -> Position | None:
    """Return the time and id after which a page starts; None for the first page.

    Raises:
        Refused: The cursor is none of this list's.
    """
    if cursor is None:
        return None
    try:
        at, id_ = _parts(request, cursor)
        position = Position(datetime.fromisoformat(str(at)), UUID(str(id_)))
        if position.at.tzinfo is None:
            raise ValueError(at)
    except ValueError:
        raise _unknown() from None
    return position


def read_number(request: Request, cursor: str | None) -> int | None:
    """Return the number after which a page starts; None for the first page.

    Raises:
        Refused: The cursor is none of this list's.
    """
    if cursor is None:
        return None
    try:
        (number,) = _parts(request, cursor)
    except ValueError:
        raise _unknown() from None
    if type(number) is not int or not 0 < number < 2**31:  # what a column for it holds
        raise _unknown()
    return number


def _parts(request: Request, cursor: str) -> list[object]:
    """Return the place in a cursor; raise ValueError where it is none of this list's."""
    try:
        payload = json.loads(
            base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        )
    except RecursionError:
        raise ValueError(cursor) from None
    if not isinstance(payload, list) or payload[:1] != [_bound_to(request)]:
        raise ValueError(cursor)
    return payload[1:]


def _unknown() -> Refused:
    return Refused(
        "invalid-request",
        "cursor: This is no cursor of this list with these filters.",
        Fault("cursor", "unknown_cursor", "Take next_cursor of the page before, with the same filters."),
    )


def link_next(request: Request, response: Response, cursor: str) -> None:
    """Name the next page in the `Link` header."""
    following = request.url.include_query_params(cursor=cursor)
    response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
