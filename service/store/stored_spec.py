"""A spec as it is kept: the JSON of what its author said, without the defaults.

What is stored was valid for the version that stored it. A later version may know more contradictions, or
fewer presets, and must still show what was said; so reading never refuses.
"""

import json
import types
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from service.sizing.spec import ScenarioSpec

Block = TypeVar("Block", bound=BaseModel)


def dump(spec: ScenarioSpec) -> str:
    """Return the spec as JSON, with every number exactly as it is, and only with what was said."""
    return spec.model_dump_json(exclude_unset=True, exclude_none=True)


def load(text: str) -> ScenarioSpec:
    """Return the spec of that JSON.

    One that this version would refuse comes back as it was said: fields that this version does not know are
    left out, values out of its bounds stay as they are. To size it, validate it again.
    """
    try:
        return ScenarioSpec.model_validate_json(text)
    except ValidationError:
        return _unchecked(ScenarioSpec, json.loads(text))


def _unchecked(model: type[Block], said: dict[str, Any]) -> Block:
    """Build a model without its checks."""
    values = {
        name: _value(field.annotation, said[name])
        for name, field in model.model_fields.items()
        if said.get(name) is not None
    }
    return model.model_construct(set(values), **values)


def _value(annotation: Any, said: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what was said in the form that the annotation asks for, as far as that can be had."""
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    for member in members:
        if isinstance(said, dict) and isinstance(member, type) and issubclass(member, BaseModel):
            return _unchecked(member, said)
    try:
        return TypeAdapter(annotation).validate_python(said)
    except ValidationError:
        return said
