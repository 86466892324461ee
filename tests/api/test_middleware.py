"""Around every request: its id, HEAD, and what happens when something fails that nobody caught."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Message, Scope

from service.app import create_app
from service.settings import Settings
from service.sizing import presets
from tests.api.asking import IOR_JSON, LOCAL, NOWHERE, SYNC, problem, store, stored_run


@pytest.mark.parametrize("given", ["a", "7f3-A_.9", "x" * 128])
def test_a_well_formed_request_id_is_echoed(stateless: TestClient, given: str) -> None:
    headers = {"X-Request-Id": given}
    assert stateless.get("/livez", headers=headers).headers["x-request-id"] == given
    body = problem(stateless.get("/nowhere", headers=headers), 404, "not-found")
    assert body["request_id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a/b", "ä", "<b>", "a,b", "{}"])
def test_another_request_id_is_replaced(stateless: TestClient, given: str) -> None:
    answer = stateless.get("/livez", headers={b"X-Request-Id": given.encode("latin-1")})
    made = answer.headers["x-request-id"]
    assert made != given
    assert made.isalnum()
    assert len(made) == 32


def test_every_request_without_an_id_gets_its_own(stateless: TestClient) -> None:
    assert len({stateless.get("/livez").headers["x-request-id"] for _ in range(3)}) == 3


def test_head_is_get_without_the_body(client: TestClient) -> None:
    made = store(client)
    run = stored_run(client, made, IOR_JSON)
    place = f"/v1/scenarios/{made['id']}"
    for path in (
        "/v1/scenarios",
        place,
        f"{place}/revisions",
        f"{place}/revisions/1",
        f"{place}/sizing",
        f"{place}/benchmark-runs",
        f"{place}/gap-report",
        f"/v1/benchmark-runs/{run['id']}",
        f"/v1/benchmark-runs/{run['id']}/document",
        "/v1/presets/models",
        "/problems",
        "/doubts/wide_spread",
        "/livez",
        "/readyz",
        "/openapi.json",
        "/docs",
        f"/v1/scenarios/{NOWHERE}",
        "/nowhere",
    ):
        get, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        assert get.content != b""
        # Each request has its own id, and takes one from what is left of the quota.
        own = {"x-request-id", "ratelimit"}
        shown = {name: value for name, value in get.headers.items() if name not in own}
        assert shown == {name: value for name, value in head.headers.items() if name not in own}
        assert get.headers.keys() == head.headers.keys()


def test_head_where_there_is_no_get_is_not_allowed(stateless: TestClient) -> None:
    answer = stateless.head("/v1/sizings")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Give a client of a service in which one thing fails as nobody foresaw."""

    def fail() -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(presets, "gpus", fail)
    with TestClient(
        create_app(Settings(database_url="sqlite:///unused.db")),
        raise_server_exceptions=False,
        base_url=LOCAL,
    ) as opened:
        yield opened


def test_a_failure_is_a_problem_that_tells_only_its_request_id(
    broken: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "stallbudget"):
        answer = broken.get("/v1/presets/gpus", headers={"X-Request-Id": "the-one"})
    body = problem(answer, 500, "internal-error")
    assert body["request_id"] == "the-one"
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text
    assert "the-one" in caplog.text
    assert "hunter2" in caplog.text
    head = broken.head("/v1/presets/gpus")
    assert (head.status_code, head.content) == (500, b"")


def _scope(**changes: object) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/sizings",
        "raw_path": b"/v1/sizings",
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "client": ("test", 1),
        "server": ("test", 80),
        **changes,
    }


def _ask(app: FastAPI, scope: Scope, *messages: Message) -> list[Message]:
    waiting, sent = list(messages), []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def test_a_sender_who_leaves_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db"))
    with caplog.at_level(logging.INFO, "stallbudget"):
        sent = _ask(app, _scope(), {"type": "http.request", "body": b"{", "more_body": True})
    assert sent == []
    said = [
        (record.levelname, record.getMessage()[:7])
        for record in caplog.records
        if record.name == "stallbudget"
    ]
    assert said == [("INFO", "request"), ("INFO", "request")]
    assert vars(caplog.records[-1])["fields"]["status"] == "gave_up"


def test_bytes_after_a_declared_end_are_not_read() -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db"))
    sent = _ask(
        app,
        _scope(),
        {"type": "http.request", "body": b"{}", "more_body": False},
        {"type": "http.request", "body": b"x", "more_body": False},
    )
    assert sent[0]["status"] == 422


@pytest.mark.parametrize("path", ["/\udcff", "/%ff", "/v1/scenarios/\udc80", "//", "", "/\x00", "*"])
def test_a_path_of_any_bytes_is_not_found(path: str) -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db"))
    sent = _ask(app, _scope(path=path, method="GET"), {"type": "http.request", "body": b""})
    assert sent[0]["status"] == 404


def test_answers_of_computing_carry_an_id_too(stateless: TestClient) -> None:
    assert stateless.post("/v1/sizings", json=SYNC).headers["x-request-id"]
