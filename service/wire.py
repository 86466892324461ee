"""The base of every model that crosses the wire, and the rules they share.

The rules of the API are here once: unknown fields are refused, null means absent, a count written as
`4.05e11` is an integer.
"""

from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar, cast

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

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        if isinstance(value, dict) and None in value.values():
            return {key: item for key, item in value.items() if item is not None}
        return value


class Outgoing(BaseModel):
    """A part of an answer. What is unknown stays None and is left out on the wire."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


P = ParamSpec("P")
M = TypeVar("M", bound=Outgoing)


def computed(model: Callable[P, M]) -> Callable[P, M]:
    """Return what makes a model of figures that this service computed, without validating them again.

    The types are the type checker's to hold; a validated model of the same figures is equal. Pydantic's
    own `model_construct` takes twice the time of the validation that it leaves out.

    Args:
        model: The class of the model; its optional fields must be absent by default.
    """
    return _maker(cast("type[M]", model), {})


def completed(model: type[M], **stated: Any) -> Callable[..., M]:  # noqa: ANN401 - whatever the model holds
    """Return likewise what makes a model most of which is stated here, once.

    Args:
        model: The class of the model.
        stated: Fields that all of them have alike.
    """
    return _maker(model, stated)


def _maker(model: type[M], stated: dict[str, Any]) -> Callable[..., M]:
    fields = model.model_fields
    assert all(each.is_required() or each.default is None for each in fields.values())  # noqa: S101
    start = {name: stated.get(name) for name in fields}
    new, put = model.__new__, object.__setattr__

    def make(**figures: Any) -> M:  # noqa: ANN401 - whatever the model holds
        made = new(model)
        put(made, "__dict__", start | figures)
        put(made, "__pydantic_fields_set__", stated.keys() | figures.keys() if stated else set(figures))
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    return make
