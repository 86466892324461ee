"""The rules that every model on the wire shares."""

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from service.wire import EXACT_INTEGER_MAX, INT64_MAX, WHOLE, Absent, Incoming, Outgoing


class Part(Incoming):
    """A part of a request, as the spec has them."""

    count: Annotated[int, Field(strict=True, ge=0, le=10**15), WHOLE]
    ratio: Annotated[float, Field(strict=True, allow_inf_nan=False)] = 1.0
    name: str | Absent = None


class Whole(Incoming):
    """A request with a part."""

    part: Part | Absent = None


@pytest.mark.parametrize(
    ("written", "read"), [("5", 5), ("5.0", 5), ("4.05e11", 405_000_000_000), ("1e15", 10**15), ("-0.0", 0)]
)
def test_a_float_without_a_fraction_is_an_integer(written: str, read: int) -> None:
    count = Part.model_validate_json(f'{{"count": {written}}}').count
    assert (type(count), count) == (int, read)


@pytest.mark.parametrize(
    "written", ["5.5", "1e-3", "true", "false", '"5"', "[5]", "{}", "1e400", "NaN", "Infinity", "1e16", "-1"]
)
def test_what_is_no_integer_in_bounds_is_refused(written: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate_json(f'{{"count": {written}}}')
    assert [fault["loc"] for fault in caught.value.errors()] == [("count",)]


@pytest.mark.parametrize("value", [True, "1.5", float("nan"), float("inf"), float("-inf"), 10**400, [1.0]])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({"count": 1, "ratio": value})
    assert [fault["loc"] for fault in caught.value.errors()] == [("ratio",)]


def test_null_is_the_same_as_absent() -> None:
    spelled = Whole.model_validate({"part": {"count": 1, "ratio": None, "name": None}})
    assert spelled == Whole.model_validate({"part": {"count": 1}})
    assert spelled.part is not None
    assert spelled.part.model_fields_set == {"count"}
    assert Whole.model_validate({"part": None}).model_fields_set == set()


def test_null_where_a_value_is_needed_is_missing() -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({"count": None})
    assert [fault["type"] for fault in caught.value.errors()] == ["missing"]


def test_an_unknown_field_is_refused_unless_it_is_null() -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"part": {"count": 1, "counts": 2}})
    assert [(fault["loc"], fault["type"]) for fault in caught.value.errors()] == [
        (("part", "counts"), "extra_forbidden")
    ]


def test_what_is_sent_is_not_changed_by_reading_it() -> None:
    sent = {"count": 1, "name": None}
    Part.model_validate(sent)
    assert sent == {"count": 1, "name": None}


def test_parts_cannot_be_changed() -> None:
    class Answer(Outgoing):
        value: int

    for part, field in ((Part(count=1), "count"), (Answer(value=1), "value")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, field, 2)


def test_the_largest_integers_are_those_of_the_database_and_of_javascript() -> None:
    assert INT64_MAX == 9_223_372_036_854_775_807
    assert float(EXACT_INTEGER_MAX) + 1.0 == float(EXACT_INTEGER_MAX + 1)
    assert int(float(EXACT_INTEGER_MAX)) == EXACT_INTEGER_MAX
