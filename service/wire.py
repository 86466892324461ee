"""The base of every model that crosses the wire, and the number types they are made of.

The rules of the API are here once: unknown fields are refused, null means absent, a number is a finite
JSON number (never a boolean or a string), a count written as `4.05e11` is an integer.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

Absent = SkipJsonSchema[None]
"""The type of a field left out. Never shown: what is unknown is absent, not null."""

INT64_MAX = 2**63 - 1
EXACT_INTEGER_MAX = 2**53 - 1
"""Up to here every integer survives JavaScript's numbers, and Python's floats."""


def _whole(value: object) -> object:
    """Read a float without a fraction as the integer it is; leave the rest for the type check."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _real(value: object) -> object:
    """Turn an integer beyond the range of floats into infinity, which the type check refuses by name."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 1000:
        return float("inf")
    return value


Integer = Annotated[int, BeforeValidator(_whole), Field(strict=True)]
Number = Annotated[float, BeforeValidator(_real), Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]


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
