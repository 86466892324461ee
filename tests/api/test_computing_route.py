"""A sizing, or a solution, is answered without FastAPI's handler; with it, as with a query, the answer is the same."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.api.examples import LLAMA_405B_SYNC, QUESTIONS, SPECS
from service.app import create_app
from service.settings import Settings
from tests.api.asking import LOCAL

BODIES: list[Any] = [
    *(example["value"] for example in SPECS.values()),
    None,
    [],
    {},
    {"model": {"parameters": "405e9"}, "cluster": {"gpu": 1}},
    {**LLAMA_405B_SYNC, "failures": {"mtbf_hours": 1e-9}},
    {**LLAMA_405B_SYNC, "prices": {"gpu_hour_usd": -1}, "more": 1},
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Settings(database_url="sqlite:///unused.db")), base_url=LOCAL) as made:
        yield made


ASKED: list[tuple[str, Any]] = [
    *(("/v1/sizings", body) for body in BODIES),
    *(("/v1/solutions", each["value"]) for each in QUESTIONS.values()),
    ("/v1/solutions", {"spec": LLAMA_405B_SYNC, "unknown": "none"}),
]


@pytest.mark.parametrize(("path", "body"), ASKED)
def test_the_answer_is_the_one_that_the_framework_gives(client: TestClient, path: str, body: Any) -> None:  # noqa: ANN401
    text = json.dumps(body)
    ours, frameworks = (client.post(path + query, content=text) for query in ("", "?explain=false"))
    assert ours.status_code == frameworks.status_code
    assert ours.headers.keys() == frameworks.headers.keys()
    answers = [ours.json(), frameworks.json()]
    for answer in answers:
        answer.pop("request_id", None)
    assert answers[0] == answers[1]
