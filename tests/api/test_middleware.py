"""Around every request: its id, HEAD, and what happens when something fails that nobody caught."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Message, Scope

from service.app import create_app
from service.settings import Settings
from service.sizing import presets
from service.store.caller import DEFAULT_WORKSPACE, AccessScope
from tests.api.asking import IOR_JSON, LOCAL, NOWHERE, SYNC, problem, store, stored_run, upload
from tests.api.exchanges import Running, run, scope_of, under_a_clock
from tests.api.keyring import id_of, make_key


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


def _app(**settings: float) -> FastAPI:
    return create_app(Settings(database_url="sqlite:///unused.db", **settings))  # type: ignore[arg-type]


def test_a_body_that_comes_too_slowly_is_cut_off() -> None:
    app = _app(slow_seconds=10, min_bytes_per_second=10)
    passes = under_a_clock(app)

    async def scene() -> None:
        request = Running(app, scope_of("POST", "/v1/sizings"))
        await request.asks()
        await passes(0)
        request.give(b"{" + b" " * 200, more=True)
        await request.asks()
        await passes(10)
        assert request.sent == []
        request.give(b" " * 99, more=True)
        await request.asks()
        await passes(10)
        status, headers, body = await request.answer()
        assert (status, json.loads(body)["type"]) == (408, "/problems/slow-body")
        # What is left of the body must not be read as another request.
        assert headers["connection"] == "close"
        assert headers["x-request-id"] == json.loads(body)["request_id"]
        await request.end()
        assert len(request.sent) == 2

    run(scene)


def test_a_body_that_takes_its_time_at_a_fair_pace_is_read() -> None:
    app = _app(slow_seconds=10, min_bytes_per_second=10, request_seconds=10)
    passes = under_a_clock(app)

    async def scene() -> None:
        request = Running(app, scope_of("POST", "/v1/sizings"))
        await request.asks()
        await passes(0)
        for _ in range(50):
            request.give(b" " * 100, more=True)
            await request.asks()
            await passes(10)
        request.give(json.dumps(SYNC).encode(), more=False)
        assert (await request.answer())[0] == 200

    run(scene)


def _slow_app(go_on: threading.Event, **settings: float) -> FastAPI:
    app = _app(**settings)

    @app.get("/slow")
    def get_slow() -> str:
        go_on.wait(60)
        return "done"

    return app


def test_an_answer_that_takes_too_long_is_a_503_and_what_comes_later_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on = threading.Event()
    app = _slow_app(go_on, request_seconds=30)
    passes = under_a_clock(app)

    async def scene() -> None:
        request = Running(app, scope_of("GET", "/slow"))
        request.give(b"", more=False)
        await asyncio.sleep(0)
        await passes(29)
        assert request.sent == []
        await passes(2)
        status, headers, body = await request.answer()
        assert (status, json.loads(body)["type"]) == (503, "/problems/took-too-long")
        assert int(headers["retry-after"]) > 0
        assert app.state.metrics.in_flight == 1
        go_on.set()
        await request.end()
        assert app.state.metrics.in_flight == 0
        assert len(request.sent) == 2

    with caplog.at_level(logging.INFO, "stallbudget"):
        run(scene)
    assert [
        vars(record)["fields"]["status"] for record in caplog.records if record.getMessage() == "request"
    ] == [503]


@pytest.mark.parametrize(
    ("limit", "others_wait"), [("max_concurrent_requests", True), ("max_concurrent_per_address", False)]
)
def test_beyond_its_limit_the_service_says_that_it_is_busy_but_not_to_operators(
    limit: str, *, others_wait: bool
) -> None:
    go_on = threading.Event()
    app = _slow_app(go_on, **{limit: 1})

    async def scene() -> None:
        first = Running(app, scope_of("GET", "/slow"))
        await asyncio.sleep(0)
        for path in ("/v1/presets/gpus", "/slow"):
            other = Running(app, scope_of("GET", path))
            status, headers, body = await other.answer()
            assert (status, json.loads(body)["type"]) == (503, "/problems/busy")
            assert int(headers["retry-after"]) > 0
        live = Running(app, scope_of("GET", "/livez"))
        assert (await live.answer())[0] == 200
        elsewhere = {**scope_of("GET", "/v1/presets/gpus"), "client": ("192.0.2.9", 1)}
        assert (await Running(app, elsewhere).answer())[0] == (503 if others_wait else 200)
        go_on.set()
        assert (await first.answer())[0] == 200
        await first.end()
        assert (await Running(app, scope_of("GET", "/v1/presets/gpus")).answer())[0] == 200

    run(scene)


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [vars(record)["fields"] for record in caplog.records if record.getMessage() == "request"]


def test_each_request_has_a_line_with_its_route_and_nothing_that_it_held(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "stallbudget"):
        made = store(client, "a-name-that-is-confidential")
        upload(client, made, note="a-note-that-is-confidential")
        client.get("/a-path-that-is-confidential", headers={"Authorization": "Bearer sbk_confidential"})
        client.head(f"/v1/scenarios/{made['id']}")
    told = [(line["method"], line["route"], line["status"]) for line in _lines(caplog)]
    assert told == [
        ("POST", "/v1/scenarios", 201),
        ("POST", "/v1/scenarios/{scenario_id}/benchmark-runs", 201),
        ("GET", "unmatched", 404),
        ("HEAD", "/v1/scenarios/{scenario_id}", 200),
    ]
    first, second, *_, head = _lines(caplog)
    assert first["request_bytes"] == len(
        json.dumps({"name": made["name"], "spec": SYNC}, separators=(",", ":"))
    )
    assert second["request_bytes"] == len(IOR_JSON)
    assert isinstance(first["response_bytes"], int)
    assert first["response_bytes"] > 500
    assert head["response_bytes"] == 0
    assert isinstance(first["duration_seconds"], float)
    assert 0 < first["duration_seconds"] < 60
    assert first["workspace_id"]
    written = repr([vars(record) for record in caplog.records])
    assert "confidential" not in written
    assert made["id"] not in written


@pytest.mark.parametrize(
    ("given", "trace_id"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"),
        ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more", "0af7651916cd43dd8448eb211c80319c"),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", None),
        ("nonsense", None),
    ],
)
def test_the_trace_of_the_caller_is_in_the_line(
    stateless: TestClient, caplog: pytest.LogCaptureFixture, given: str, trace_id: str | None
) -> None:
    with caplog.at_level(logging.INFO, "stallbudget"):
        stateless.get("/livez", headers={"traceparent": given})
    assert [line.get("trace_id") for line in _lines(caplog)] == [trace_id]


def test_a_line_names_the_key_by_its_id_alone(
    client: TestClient, application: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    key = make_key(application, AccessScope.READ, name="a-name-that-is-confidential")
    with caplog.at_level(logging.INFO, "stallbudget"):
        assert client.get("/v1/scenarios", headers=key).status_code == 200
        assert (
            client.get("/v1/scenarios", headers={"Authorization": "Bearer sbk_confidential"}).status_code
            == 401
        )
    good, bad = _lines(caplog)
    assert (good["key_id"], good["workspace_id"]) == (str(id_of(key)), str(DEFAULT_WORKSPACE))
    assert bad.keys() & {"key_id", "workspace_id"} == set()
    written = repr([vars(record) for record in caplog.records])
    assert key["Authorization"].rpartition("_")[2] not in written
    assert "confidential" not in written
