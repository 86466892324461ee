"""Finishing the OpenAPI document: the walk over schemas, and what it changes in each."""

from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, Field
from starlette.testclient import TestClient

from service.api import openapi
from service.wire import Absent


class _Inner(BaseModel):
    count: int = Field(ge=0, le=2**53)


class _Tricky(BaseModel):
    """Field names that are also words of JSON Schema."""

    items: list[int]
    properties: dict[str, float]
    type: _Inner | Absent = Field(default=None, description="Mine.")
    title: str | Absent = None
    default: float | Absent = None
    format: int = 3
    either: list[int] | dict[str, int] | Absent = None


@pytest.fixture
def schemas() -> Any:  # noqa: ANN401 - JSON
    app, router = FastAPI(), APIRouter()

    @router.post("/tricky")
    def create_tricky(body: _Tricky, limit: int | None = None) -> _Tricky:
        return body

    app.include_router(router)
    document = openapi.finished(app)
    assert document["paths"]["/tricky"]["post"]["parameters"][0]["schema"] == {
        "title": "Limit",
        "type": "integer",
        "format": "int64",
    }
    return document["components"]["schemas"]


def test_every_number_has_a_format_wherever_it_stands(schemas: Any) -> None:  # noqa: ANN401
    fields = schemas["_Tricky"]["properties"]
    assert fields["items"]["items"] == {"type": "integer", "format": "int64"}
    assert fields["properties"]["additionalProperties"] == {"type": "number", "format": "double"}
    assert fields["default"]["format"] == "double"
    assert fields["format"]["format"] == "int64"
    assert fields["either"]["anyOf"][0]["items"]["format"] == "int64"
    assert schemas["_Inner"]["properties"]["count"]["format"] == "int64"


def test_nothing_is_null_and_nothing_has_null_for_a_default(schemas: Any) -> None:  # noqa: ANN401
    fields = schemas["_Tricky"]["properties"]
    assert fields["type"] == {"$ref": "#/components/schemas/_Inner", "description": "Mine."}
    assert fields["title"] == {"type": "string", "title": "Title"}
    assert len(fields["either"]["anyOf"]) == 2
    assert fields["format"]["default"] == 3
    assert all("default" not in field for name, field in fields.items() if name not in ("format", "default"))


def test_bounds_of_integers_are_integers(schemas: Any) -> None:  # noqa: ANN401
    count = schemas["_Inner"]["properties"]["count"]
    assert [repr(count[bound]) for bound in ("minimum", "maximum")] == ["0", str(2**53)]


def test_the_frameworks_own_error_schemas_are_gone(schemas: Any) -> None:  # noqa: ANN401
    assert {"HTTPValidationError", "ValidationError"}.isdisjoint(schemas)


def test_the_document_is_made_once_and_served_the_same(stateless: TestClient) -> None:
    first, second = (stateless.get("/openapi.json") for _ in range(2))
    assert first.content == second.content
