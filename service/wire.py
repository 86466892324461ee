"""The base of every model that crosses the wire, and the rules they share.

The rules of the API are here once: unknown fields are refused, null means absent, a count written as
`4.05e11` is an integer.
"""

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Absent: TypeAlias = None
"""The type of a field left out: what is unknown is absent from an answer, and null in a request means absent."""

INT64_MAX = 2**63 - 1
EXACT_INTEGER_MAX = 2**53 - 1
"""Up to here every integer survives JavaScript's numbers, and Python's floats."""


def _whole(value: object) -> object:
    """Read a float without a fraction as the integer it is; leave the rest for the type check."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Stands last in the annotation of an integer: the bounds before it stay those of a plain integer."""


Flag = Annotated[bool, Field(strict=True)]
"""A JSON boolean, and nothing that merely reads like one."""


class Incoming(BaseModel):
    """A part of a request: unknown fields are refused, null is the same as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        if isinstance(value, dict) and None in value.values():
            return {key: item for key, item in value.items() if item is not None}
        return value


class Outgoing(BaseModel):
    """A part of an answer. What is unknown stays None and is left out on the wire."""

    model_config = ConfigDict(frozen=True)
