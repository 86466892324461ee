"""Entity tags: what a reader has seen, and what a writer must name."""

from typing import Annotated

from fastapi import Header, Response

from service.api.problems import Refused
from service.errors import Fault

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The ETag of what was read, or `*`. Required: without it 428, when stale 412.",
        # Said, not checked: an empty one is a missing one.
        json_schema_extra={"minLength": 1},
    ),
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="An ETag already at hand: 304 when it still holds.")
]


def entity_tag(version: int | str) -> str:
    """Return the strong entity tag of a version."""
    return f'"{version}"'


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def required_version(header: str | None) -> list[str] | None:
    """Return the versions that an If-Match header names; None for `*`, which is any.

    Raises:
        Refused: The header is missing (428).
    """
    if header is None or not header.strip():
        raise Refused(
            "precondition-required",
            "Send the ETag of what you read in If-Match.",
            Fault("If-Match", "missing", "The ETag of the resource, or * to take it as it is."),
        )
    if header.strip() == "*":
        return None
    # A weak tag never matches here: RFC 9110 compares strongly for If-Match.
    return [tag[1:-1] for tag in _tags(header) if len(tag) > 1 and tag[0] == tag[-1] == '"']


def not_modified(header: str | None, tag: str) -> Response | None:
    """Return a 304 when the caller already has this version, else None."""
    if header is None:
        return None
    seen = [known.removeprefix("W/") for known in _tags(header)]
    if header.strip() == "*" or tag in seen:
        return Response(status_code=304, headers={"ETag": tag})
    return None
