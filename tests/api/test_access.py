"""Who may ask what: each endpoint with each scope, of its own workspace and of another; the open mode; bad keys."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from fastapi import APIRouter, FastAPI
from httpx2 import Response
from sqlalchemy import event
from starlette.testclient import TestClient

from service.api.access import CACHE_SECONDS, Access
from service.api.attempts import WINDOW_SECONDS
from service.api.bodies import StrictRoute
from service.api.examples import QUESTIONS
from service.app import create_app
from service.settings import AccessMode, Settings
from service.store import audit, tables
from service.store.caller import DEFAULT_WORKSPACE, AccessScope
from service.store.database import Database
from tests.api.asking import IOR_JSON, LOCAL, NOWHERE, SYNC, problem
from tests.api.keyring import Clocks, id_of, make_key, make_workspace

Json = dict[str, Any]
Header = dict[str, str]

ROUTES = [
    route
    for route in create_app(Settings(database_url="sqlite:///unused.db")).routes
    if isinstance(route, StrictRoute)
]
NEEDING = [route for route in ROUTES if route.needed_scope is not None]
ALLOWED = {
    AccessScope.READ: {AccessScope.READ},
    AccessScope.SUBMIT: {AccessScope.SUBMIT},
    AccessScope.WRITE: {AccessScope.READ, AccessScope.SUBMIT, AccessScope.WRITE},
    AccessScope.ADMIN: set(AccessScope),
}
ATTEMPTS = Settings.model_fields["failed_keys"].default
CHANGING = {"POST", "PUT", "DELETE"}
STATELESS = {"create_sizing", "create_solution"}


class Place(NamedTuple):
    """A workspace with something of each kind in it, and a key of each scope."""

    ids: dict[str, str]
    keys: dict[AccessScope, Header]


@pytest.fixture
def strict(database_url: str) -> Iterator[TestClient]:
    """Give a client without a key of a service that needs one."""
    app = create_app(Settings(database_url=database_url, access=AccessMode.KEYS))
    with TestClient(app, raise_server_exceptions=False, base_url=LOCAL) as opened:
        yield opened


def _application(client: TestClient) -> FastAPI:
    app = client.app
    assert isinstance(app, FastAPI)
    return app


def _place(client: TestClient, workspace_id: UUID) -> Place:
    app = _application(client)
    own = {
        scope: make_key(app, scope, workspace_id=workspace_id, name=f"key to {scope}")
        for scope in AccessScope
    }
    admin = own[AccessScope.ADMIN]
    scenario = client.post(
        "/v1/scenarios", json={"name": f"llama {uuid4()}", "spec": SYNC}, headers=admin
    ).json()["id"]
    run = client.post(
        f"/v1/scenarios/{scenario}/benchmark-runs?storage_label=pfs", content=IOR_JSON, headers=admin
    ).json()["id"]
    key = id_of(make_key(app, AccessScope.READ, workspace_id=workspace_id))
    return Place({"scenario_id": scenario, "run_id": run, "key_id": str(key), "revision": "1"}, own)


def _body(route: StrictRoute) -> Any:  # noqa: ANN401 - whatever a request holds
    """Return a body that the route takes."""
    if route.operation_id == "create_benchmark_run":
        return IOR_JSON + b"\n"
    examples = {
        "create_sizing": SYNC,
        "create_solution": QUESTIONS["write_bandwidth"]["value"],
        "create_scenario": {"name": "another", "spec": SYNC},
        "replace_scenario": {"name": "renamed", "spec": SYNC},
        "create_api_key": {"name": "new", "scopes": ["read"]},
        "create_api_key_rotation": {"grace_hours": 1},
    }
    found = examples.get(str(route.operation_id))
    return None if found is None else json.dumps(found)


def _ask(client: TestClient, route: StrictRoute, ids: dict[str, str], key: Header | None) -> Response:
    method = next(iter(route.methods or ()))
    path = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route.path)
    query = {
        "get_gap_report_comparison": "?split_at=2026-01-01T00:00:00Z",
        "get_storage_series": "?storage_label=pfs",
        "delete_scenario": "?runs=delete",
    }
    return client.request(
        method,
        path + query.get(str(route.operation_id), ""),
        content=_body(route),
        headers={"If-Match": "*", **(key or {})},
    )


def _state(client: TestClient, place: Place) -> list[Any]:
    """Return all that can be seen of a place by its admin."""
    admin = place.keys[AccessScope.ADMIN]
    scenario = f"/v1/scenarios/{place.ids['scenario_id']}"
    paths = ("/v1/scenarios", f"{scenario}/benchmark-runs", "/v1/api-keys", "/v1/audit-events")
    seen = [client.get(path, headers=admin).json() for path in paths]
    for key in seen[2]["items"]:
        key.pop("last_used_at", None)
    return seen


@pytest.mark.parametrize("route", NEEDING, ids=lambda route: route.operation_id)
def test_each_endpoint_takes_the_scopes_that_it_should_and_shows_nothing_of_another_workspace(
    strict: TestClient, route: StrictRoute
) -> None:
    """The table: this endpoint × every scope and none × own and foreign workspace."""
    own = _place(strict, DEFAULT_WORKSPACE)
    foreign = _place(strict, make_workspace(_application(strict)))
    assert route.needed_scope is not None
    names_something = any(f"{{{name}}}" in route.path for name in ("scenario_id", "run_id", "key_id"))
    before = _state(strict, foreign)
    problem(_ask(strict, route, own.ids, None), 401, "unauthorized")
    for scope in AccessScope:
        may = route.needed_scope in ALLOWED[scope]
        answer = _ask(strict, route, foreign.ids, own.keys[scope])
        if not may:
            body = problem(answer, 403, "forbidden")
            assert str(route.needed_scope) in body["detail"]
            # The same whether there is such a thing or not.
            unknown = _ask(strict, route, dict.fromkeys(own.ids, NOWHERE), own.keys[scope])
            assert problem(unknown, 403, "forbidden")["detail"] == body["detail"]
        elif names_something:
            told = problem(answer, 404, "not-found")["detail"]
            asked = {**dict.fromkeys(own.ids, NOWHERE), "revision": "1"}
            unknown = problem(_ask(strict, route, asked, own.keys[scope]), 404, "not-found")["detail"]
            # Another's is told from what is nowhere by nothing but the id that was asked for.
            assert re.sub(r"[0-9a-f-]{36}", "…", told) == re.sub(r"[0-9a-f-]{36}", "…", unknown)
        else:
            assert answer.status_code in (200, 201), answer.text
            text = answer.text
            assert not any(id_ in text for name, id_ in foreign.ids.items() if name != "revision")
            if route.operation_id == "create_scenario":  # the next scope is to make one of that name too
                strict.delete(
                    answer.headers["location"], headers={"If-Match": "*", **own.keys[AccessScope.ADMIN]}
                )
    assert _state(strict, foreign) == before
    for scope in AccessScope:
        if route.needed_scope not in ALLOWED[scope]:
            problem(_ask(strict, route, own.ids, own.keys[scope]), 403, "forbidden")
    allowed = [scope for scope in AccessScope if route.needed_scope in ALLOWED[scope]]
    for scope in allowed:
        answer = _ask(strict, route, own.ids, own.keys[scope])
        assert answer.status_code in (200, 201, 204), answer.text
        # The next scope is to find it as this one did.
        if "DELETE" in (route.methods or ()):
            own = _place(strict, DEFAULT_WORKSPACE)
        if route.operation_id == "create_scenario":
            strict.delete(
                answer.headers["location"], headers={"If-Match": "*", **own.keys[AccessScope.ADMIN]}
            )


@pytest.mark.parametrize(
    "route",
    [
        route
        for route in NEEDING
        if CHANGING & set(route.methods or ()) and route.operation_id not in STATELESS
    ],
    ids=lambda route: route.operation_id,
)
def test_each_change_leaves_its_trace_and_names_who_made_it(strict: TestClient, route: StrictRoute) -> None:
    own = _place(strict, DEFAULT_WORKSPACE)
    admin = own.keys[AccessScope.ADMIN]
    seen = {item["id"] for item in strict.get("/v1/audit-events", headers=admin).json()["items"]}
    answer = _ask(strict, route, own.ids, {**admin, "X-Request-Id": "the-one"})
    assert answer.status_code in (200, 201, 204), answer.text
    events = [
        item
        for item in strict.get("/v1/audit-events", headers=admin).json()["items"]
        if item["id"] not in seen
    ]
    # A scenario that is deleted with its runs leaves a trace of each.
    assert len(events) == (2 if route.operation_id == "delete_scenario" else 1)
    for each in events:
        assert (each["actor"], each["key_id"], each["request_id"]) == (
            "key to admin",
            str(id_of(admin)),
            "the-one",
        )
        has_versions = each["resource"] in ("scenario", "benchmark_run")
        assert ("new_version" in each) == (has_versions and each["action"] in ("create", "replace"))
        assert ("old_version" in each) == (has_versions and each["action"] in ("replace", "delete"))


@pytest.mark.parametrize(
    "route",
    [route for route in NEEDING if CHANGING & set(route.methods or ())],
    ids=lambda route: route.operation_id,
)
def test_a_change_that_fails_leaves_no_trace(
    strict: TestClient, route: StrictRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _place(strict, DEFAULT_WORKSPACE)
    before = _state(strict, own)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    if route.operation_id in STATELESS:
        return
    with monkeypatch.context() as patched:
        patched.setattr(audit, "record", fail)
        assert _ask(strict, route, own.ids, own.keys[AccessScope.ADMIN]).status_code == 500
    assert _state(strict, own) == before


def test_every_route_says_what_it_needs_or_is_not_made() -> None:
    router = APIRouter(route_class=StrictRoute)
    with pytest.raises(TypeError, match="neither which scope"):

        @router.get("/new")
        def get_new() -> None: ...

    everybody = {route.path for route in ROUTES if route.needed_scope is None}
    assert everybody == {
        *("/", "/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/{name}"),
        *("/problems", "/problems/{type}", "/doubts", "/doubts/{code}"),
    }


def test_a_key_is_asked_for_before_the_body_is_read(strict: TestClient) -> None:
    sent: list[Any] = []

    async def receive() -> Any:  # noqa: ANN401 - an ASGI message
        raise AssertionError("the body was asked for")

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/sizings",
        "raw_path": b"",
        "root_path": "",
        "query_string": b"",
        "client": ("a", 1),
        "server": ("b", 2),
        "headers": [(b"content-length", b"9999999999")],
    }
    asyncio.run(_application(strict)(scope, receive, send))
    assert sent[0]["status"] == 401


# --- Keys that are not good -------------------------------------------------------------------------------------


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def timed(strict: TestClient, clocks: Clocks) -> TestClient:
    """Return the client of a service that needs keys and whose clocks the test sets."""
    app = _application(strict)
    app.state.access = Access(
        app.state.database, app.state.settings, now=clocks.now, monotonic=clocks.monotonic
    )
    return strict


def _changed_secret(header: Header) -> Header:
    value = header["Authorization"]
    return {"Authorization": value[:-1] + ("0" if value[-1] != "0" else "1")}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer sbk_",
        f"Bearer sbk_{'0' * 32}_{'0' * 64}",
        f"Bearer sbk_{'0' * 32}_{'0' * 63}",
        f"Bearer sbk_{'0' * 32}_{'0' * 64} x",
        "Bearer sbk_é",
        "Bearer \x00",
    ],
)
def test_what_is_no_key_is_refused(strict: TestClient, value: str) -> None:
    answer = strict.get("/v1/scenarios", headers={b"Authorization": value.encode("latin-1")})
    problem(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith('Bearer realm="stallbudget"')


def test_a_wrong_secret_is_refused_as_an_unknown_key_is(strict: TestClient) -> None:
    key = make_key(_application(strict), AccessScope.READ)
    unknown = {"Authorization": f"Bearer sbk_{uuid4().hex}_{'0' * 64}"}
    details = {
        problem(strict.get("/v1/scenarios", headers=each), 401, "unauthorized")["detail"]
        for each in (_changed_secret(key), unknown)
    }
    assert len(details) == 1


def test_two_authorizations_are_one_too_many(strict: TestClient) -> None:
    key = make_key(_application(strict), AccessScope.READ)["Authorization"]
    answer = strict.get("/v1/scenarios", headers=[("Authorization", key), ("Authorization", key)])
    problem(answer, 401, "unauthorized")


def test_the_scheme_is_known_in_any_case(strict: TestClient) -> None:
    key = make_key(_application(strict), AccessScope.READ)["Authorization"]
    assert strict.get("/v1/scenarios", headers={"Authorization": "bEARER" + key[6:]}).status_code == 200


def test_an_expired_key_is_refused_at_once_also_when_it_was_just_used(
    timed: TestClient, clocks: Clocks
) -> None:
    key = make_key(
        _application(timed), AccessScope.READ, expires_at=clocks.now() + timedelta(seconds=CACHE_SECONDS / 2)
    )
    assert timed.get("/v1/scenarios", headers=key).status_code == 200
    clocks.advance(CACHE_SECONDS / 2)
    assert "has expired" in problem(timed.get("/v1/scenarios", headers=key), 401, "unauthorized")["detail"]


def test_a_revoked_key_is_refused_at_once_in_its_process_and_soon_in_others(
    timed: TestClient, clocks: Clocks, database_url: str
) -> None:
    app = _application(timed)
    admin, key = make_key(app, AccessScope.ADMIN), make_key(app, AccessScope.READ)
    other_app = create_app(Settings(database_url=database_url))
    other_app.state.access = Access(
        other_app.state.database, other_app.state.settings, now=clocks.now, monotonic=clocks.monotonic
    )
    with TestClient(other_app, base_url=LOCAL) as elsewhere:
        for client in (timed, elsewhere):
            assert client.get("/v1/scenarios", headers=key).status_code == 200
        for _ in range(2):
            assert timed.delete(f"/v1/api-keys/{id_of(key)}", headers=admin).status_code == 204
        assert "revoked" in problem(timed.get("/v1/scenarios", headers=key), 401, "unauthorized")["detail"]
        clocks.advance(CACHE_SECONDS)
        problem(elsewhere.get("/v1/scenarios", headers=key), 401, "unauthorized")
    events = timed.get("/v1/audit-events", headers=admin).json()["items"]
    assert [event["action"] for event in events] == ["revoke"]
    answer = timed.post(f"/v1/api-keys/{id_of(key)}/rotations", json={}, headers=admin)
    problem(answer, 409, "key-ended")


@pytest.mark.parametrize("grace_hours", [0, 2])
def test_a_rotated_key_has_another_secret_and_the_old_one_ends_when_it_was_said_to(
    timed: TestClient, clocks: Clocks, grace_hours: int
) -> None:
    app = _application(timed)
    admin, old = make_key(app, AccessScope.ADMIN), make_key(app, AccessScope.READ)
    assert timed.get("/v1/scenarios", headers=old).status_code == 200
    answer = timed.post(
        f"/v1/api-keys/{id_of(old)}/rotations", json={"grace_hours": grace_hours}, headers=admin
    )
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    new = {"Authorization": f"Bearer {answer.json()['key']}"}
    assert id_of(new) == id_of(old)
    assert timed.get("/v1/scenarios", headers=new).status_code == 200
    clocks.advance(1)
    if grace_hours:
        assert timed.get("/v1/scenarios", headers=old).status_code == 200
        clocks.advance(grace_hours * 3600)
    detail = problem(timed.get("/v1/scenarios", headers=old), 401, "unauthorized")["detail"]
    assert "another secret" in detail
    assert timed.get("/v1/scenarios", headers=new).status_code == 200


def test_many_requests_with_one_key_at_once_are_one_attempt(timed: TestClient) -> None:
    app = _application(timed)
    access: Access = app.state.access
    good = make_key(app, AccessScope.READ)["Authorization"]

    async def at_once(key: str) -> list[Any]:
        scope = {"headers": [(b"authorization", key.encode())], "client": ("192.0.2.7", 1)}
        asked = (access.admit(scope, AccessScope.READ) for _ in range(3 * ATTEMPTS))
        return await asyncio.gather(*asked, return_exceptions=True)

    callers = asyncio.run(at_once(good))
    assert {str(caller.key_id) for caller in callers} == {str(id_of({"Authorization": good}))}
    refused = asyncio.run(at_once(f"Bearer sbk_{uuid4().hex}_{'0' * 64}"))
    assert {refusal.kind for refusal in refused} == {"unauthorized"}
    assert access._failed.wait_seconds("192.0.2.7", access._monotonic()) == 0


def test_a_key_that_was_checked_is_not_looked_up_again_for_a_while(timed: TestClient, clocks: Clocks) -> None:
    key = make_key(_application(timed), AccessScope.READ)
    database: Database = _application(timed).state.database
    statements: list[str] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement)
    )
    for expected in (True, False):
        statements.clear()
        assert timed.post("/v1/sizings", json=SYNC, headers=key).status_code == 200
        assert bool(statements) is expected
    clocks.advance(CACHE_SECONDS)
    assert timed.post("/v1/sizings", json=SYNC, headers=key).status_code == 200
    assert statements


def test_the_last_use_is_written_down_once_a_minute(timed: TestClient, clocks: Clocks) -> None:
    app = _application(timed)
    admin, key = make_key(app, AccessScope.ADMIN), make_key(app, AccessScope.READ)
    place = f"/v1/api-keys/{id_of(key)}"
    assert "last_used_at" not in timed.get(place, headers=admin).json()
    shown = []
    for seconds in (0, 30, 31):
        clocks.advance(seconds)
        timed.get("/v1/scenarios", headers=key)
        shown.append(timed.get(place, headers=admin).json()["last_used_at"])
    assert shown[0] == shown[1] < shown[2]


def test_after_too_many_wrong_keys_an_address_waits_and_then_may_again(
    timed: TestClient, clocks: Clocks
) -> None:
    app = _application(timed)
    known, fresh = make_key(app, AccessScope.READ), make_key(app, AccessScope.READ)
    assert timed.get("/v1/scenarios", headers=known).status_code == 200
    for _ in range(ATTEMPTS):
        problem(timed.get("/v1/scenarios", headers=_changed_secret(known)), 401, "unauthorized")
    for key in (_changed_secret(known), fresh):
        answer = timed.get("/v1/scenarios", headers=key)
        problem(answer, 429, "too-many-attempts")
        assert 0 < int(answer.headers["retry-after"]) <= WINDOW_SECONDS
    # A key that was found good just now needs no check, so whoever shares an address with a guesser goes on.
    assert timed.get("/v1/scenarios", headers=known).status_code == 200
    clocks.advance(WINDOW_SECONDS)
    assert timed.get("/v1/scenarios", headers=fresh).status_code == 200


def test_no_answer_and_no_list_holds_a_secret_but_the_first(strict: TestClient, database: Database) -> None:
    admin = make_key(_application(strict), AccessScope.ADMIN)
    made = strict.post("/v1/api-keys", json={"name": "a", "scopes": ["write", "write"]}, headers=admin)
    assert made.status_code == 201
    secret = made.json()["key"].rpartition("_")[2]
    with database.read() as transaction:
        row = transaction.execute(
            tables.api_keys.select().where(tables.api_keys.c.id == UUID(made.json()["id"]))
        ).one()
    for path in (made.headers["location"], "/v1/api-keys", "/v1/audit-events"):
        text = strict.get(path, headers=admin).text
        for hidden in (secret, row.salt.hex(), row.hash.hex()):
            assert hidden not in text
    assert strict.get(made.headers["location"], headers=admin).json()["scopes"] == ["write"]
    assert secret.encode() not in row.hash + row.salt


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"name": "a", "scopes": []}, "#/scopes"),
        ({"name": "a", "scopes": ["root"]}, "#/scopes/0"),
        ({"name": "", "scopes": ["read"]}, "#/name"),
        ({"name": "a", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}, "#/expires_at"),
        ({"name": "a", "scopes": ["read"], "expires_at": "2099-01-01"}, "#/expires_at"),
        ({"name": "a", "scopes": ["read"], "workspace": "other"}, "#/workspace"),
    ],
)
def test_a_key_that_cannot_be_is_not_made(strict: TestClient, body: Json, place: str) -> None:
    admin = make_key(_application(strict), AccessScope.ADMIN)
    answer = strict.post("/v1/api-keys", json=body, headers=admin)
    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == place


# --- The open mode ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "127.9.9.9"])
def test_an_open_service_answers_to_this_machines_names(client: TestClient, host: str) -> None:
    assert client.get("/v1/scenarios", headers={"Host": host}).status_code == 200
    assert client.post("/v1/sizings", json=SYNC, headers={"Host": host}).status_code == 200
    own = {"Host": host, "Origin": f"http://{host}"}
    assert client.post("/v1/sizings", json=SYNC, headers=own).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil", "[::", ""]
)
def test_an_open_service_refuses_other_names(client: TestClient, host: str) -> None:
    for answer in (
        client.get("/v1/scenarios", headers={"Host": host}),
        client.post("/v1/sizings", json=SYNC, headers={"Host": host}),
    ):
        assert problem(answer, 403, "forbidden")["errors"][0]["pointer"] == "Host"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9", "http://localhost:8000", "["]
)
def test_an_open_service_refuses_pages_of_other_sites(client: TestClient, origin: str) -> None:
    answer = client.post("/v1/sizings", json=SYNC, headers={"Origin": origin, "Content-Type": "text/plain"})
    assert problem(answer, 403, "forbidden")["errors"][0]["pointer"] == "Origin"


def test_with_a_key_neither_name_nor_origin_matters(client: TestClient, application: FastAPI) -> None:
    key = make_key(application, AccessScope.READ)
    headers = {**key, "Host": "storage.example", "Origin": "https://tender.example"}
    assert client.post("/v1/sizings", json=SYNC, headers=headers).status_code == 200


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host"])
def test_an_open_service_is_not_published_by_a_proxy(client: TestClient, name: str) -> None:
    body = problem(client.get("/v1/scenarios", headers={name: "budget.example"}), 403, "forbidden")
    assert "proxy" in body["detail"]


def test_the_first_key_closes_an_open_service_for_good(client: TestClient, application: FastAPI) -> None:
    clocks = Clocks()
    application.state.access = Access(
        application.state.database, application.state.settings, now=clocks.now, monotonic=clocks.monotonic
    )
    assert client.get("/v1/scenarios").status_code == 200
    admin = make_key(application, AccessScope.ADMIN)  # by another process
    assert client.get("/v1/scenarios").status_code == 200
    clocks.advance(CACHE_SECONDS)
    problem(client.get("/v1/scenarios"), 401, "unauthorized")
    assert client.delete(f"/v1/api-keys/{id_of(admin)}", headers=admin).status_code == 204
    problem(client.get("/v1/scenarios"), 401, "unauthorized")
    clocks.advance(CACHE_SECONDS)
    problem(client.get("/v1/scenarios"), 401, "unauthorized")


def test_a_key_that_an_open_service_makes_closes_it_at_once(client: TestClient) -> None:
    made = client.post("/v1/api-keys", json={"name": "first", "scopes": ["admin"]})
    assert made.status_code == 201
    problem(client.get("/v1/scenarios"), 401, "unauthorized")
    admin = {"Authorization": f"Bearer {made.json()['key']}"}
    (event_,) = client.get("/v1/audit-events", headers=admin).json()["items"]
    assert (event_["actor"], event_["action"], event_.get("key_id")) == ("open", "create", None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "storage.example"])  # noqa: S104 - not bound to
def test_beyond_the_loopback_a_service_is_never_open(database_url: str, host: str) -> None:
    app = create_app(Settings(database_url=database_url, host=host))
    with TestClient(app, raise_server_exceptions=False, base_url=LOCAL) as client:
        problem(client.get("/v1/scenarios"), 401, "unauthorized")
        problem(client.post("/v1/sizings", json=SYNC), 401, "unauthorized")
        assert client.get("/livez").status_code == 200


def test_where_nobody_can_tell_whether_there_are_keys_nobody_is_let_in(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("This is no database. " * 100)
    app = create_app(Settings(database_url=f"sqlite:///{file}"))
    with TestClient(app, raise_server_exceptions=False, base_url=LOCAL) as client:
        problem(client.post("/v1/sizings", json=SYNC), 503, "unavailable")


def test_an_open_sizing_asks_the_database_once_in_a_while(client: TestClient, application: FastAPI) -> None:
    statements: list[str] = []
    engine = application.state.database.engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    ask: Callable[[], Response] = lambda: client.post("/v1/sizings", json=SYNC)  # noqa: E731
    assert ask().status_code == 200
    statements.clear()
    assert ask().status_code == 200
    assert statements == []
