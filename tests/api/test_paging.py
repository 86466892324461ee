"""Lists by cursor: every item once, whatever is stored meanwhile; and cursors that somebody else made."""

import base64
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from service.api.paging import write_cursor
from service.store.page import Position
from tests.api.asking import IOR_JSON, NOWHERE, SYNC, Json, dcp, places, problem, store, stored_run


def _pages(client: TestClient, path: str, **params: str | int) -> list[list[Json]]:
    pages: list[list[Json]] = []
    answer = client.get(path, params=params)
    while True:
        assert answer.status_code == 200, answer.text
        body = answer.json()
        pages.append(body["items"])
        if "next_cursor" not in body:
            assert set(body) == {"items"}
            assert "link" not in answer.headers
            return pages
        link = answer.headers["link"]
        assert link.endswith('>; rel="next"')
        following = link.removeprefix("<").split(">")[0]
        assert parse_qs(urlsplit(following).query)["cursor"] == [body["next_cursor"]]
        answer = client.get(following)


def test_every_scenario_stands_on_one_page_in_the_order_of_their_making(client: TestClient) -> None:
    made = [store(client, f"s{n}") for n in range(7)]
    for limit, sizes in ((1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (200, [7])):
        pages = _pages(client, "/v1/scenarios", limit=limit)
        assert [len(page) for page in pages] == sizes
        assert [item for page in pages for item in page] == made


def test_an_empty_list_is_a_page(client: TestClient) -> None:
    assert client.get("/v1/scenarios").content == b'{"items":[]}'
    made = store(client)
    assert client.get(f"/v1/scenarios/{made['id']}/benchmark-runs").content == b'{"items":[]}'


def test_fifty_are_a_page_unless_asked_otherwise(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    for _ in range(50):
        client.put(place, json={"name": "llama", "spec": SYNC}, headers={"If-Match": "*"})
    pages = _pages(client, f"{place}/revisions")
    assert [len(page) for page in pages] == [50, 1]
    assert [item["revision"] for page in pages for item in page] == list(range(1, 52))


def test_what_comes_and_goes_meanwhile_moves_nothing(client: TestClient) -> None:
    made = [store(client, f"s{n}") for n in range(4)]
    first = client.get("/v1/scenarios", params={"limit": 2}).json()
    for gone in (made[0], made[1]):  # the one that the cursor stands on, too
        client.delete(f"/v1/scenarios/{gone['id']}", headers={"If-Match": "*"})
    late = store(client, "late")
    client.put(
        f"/v1/scenarios/{made[2]['id']}", json={"name": "new", "spec": SYNC}, headers={"If-Match": "*"}
    )
    rest = client.get("/v1/scenarios", params={"cursor": first["next_cursor"]}).json()["items"]
    assert [item["id"] for item in rest] == [made[2]["id"], made[3]["id"], late["id"]]


def test_runs_are_paged_within_their_label(client: TestClient) -> None:
    made = store(client)
    path = f"/v1/scenarios/{made['id']}/benchmark-runs"
    runs = [stored_run(client, made, dcp(f"r{n}"), storage_label="ab"[n % 2]) for n in range(5)]
    assert [item for page in _pages(client, path, limit=2) for item in page] == runs
    labelled = _pages(client, path, limit=2, storage_label="a")
    assert [len(page) for page in labelled] == [2, 1]
    assert [item for page in labelled for item in page] == runs[::2]
    assert _pages(client, path, storage_label="c") == [[]]
    assert _pages(client, path, storage_label="") == [[]]
    alone = stored_run(client, made, IOR_JSON)
    assert _pages(client, path, storage_label="") == [[alone]]


def test_a_link_keeps_what_was_asked(client: TestClient) -> None:
    made = store(client)
    for n in range(2):
        stored_run(client, made, dcp(f"r{n}"), storage_label="ä&b=c #")
    answer = client.get(
        f"/v1/scenarios/{made['id']}/benchmark-runs", params={"limit": 1, "storage_label": "ä&b=c #"}
    )
    query = parse_qs(urlsplit(answer.headers["link"].split(">")[0]).query)
    assert (query["limit"], query["storage_label"]) == (["1"], ["ä&b=c #"])


def test_a_cursor_serves_its_own_list_and_filters_only(client: TestClient) -> None:
    one, other = store(client, "one"), store(client, "other")
    path = f"/v1/scenarios/{one['id']}/benchmark-runs"
    for n in range(2):
        stored_run(client, one, dcp(f"r{n}"), storage_label="a")
    cursor = client.get(path, params={"limit": 1, "storage_label": "a"}).json()["next_cursor"]
    assert len(client.get(path, params={"cursor": cursor, "storage_label": "a"}).json()["items"]) == 1
    assert client.get(path, params={"cursor": cursor, "storage_label": "a", "limit": 9}).status_code == 200
    for elsewhere, params in (
        (path, {}),
        (path, {"storage_label": "b"}),
        (f"/v1/scenarios/{other['id']}/benchmark-runs", {"storage_label": "a"}),
        (f"/v1/scenarios/{one['id']}/revisions", {}),
        ("/v1/scenarios", {}),
    ):
        answer = client.get(elsewhere, params={"cursor": cursor, **params})
        assert places(problem(answer, 422, "invalid-request")) == [("cursor", "unknown_cursor")]


def _bound(path: str) -> str:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
    cursor = write_cursor(Request(scope), Position(datetime(2026, 11, 29, tzinfo=UTC), uuid4()))
    binding: str = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))[0]
    return binding


def _forged(*payload: object) -> str:
    text = json.dumps([_bound("/v1/scenarios"), *payload])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


HOSTILE = [
    "",
    "a",
    "====",
    "ä",
    "\x00",
    "../..",
    "x" * 500,
    "' OR 1=1",
    base64.urlsafe_b64encode(b"\xff\xfe[]").decode(),
    base64.urlsafe_b64encode(b"[" * 370).decode(),
    base64.urlsafe_b64encode(b"null").decode(),
    base64.urlsafe_b64encode(b'{"0": 1}').decode(),
    base64.urlsafe_b64encode(b"9" * 370).decode(),
    _forged(),
    _forged(None, None),
    _forged(1, 2),
    _forged("2026-11-29", NOWHERE),
    _forged("2026-11-29T00:00:00", NOWHERE),
    _forged("2026-11-29T00:00:00Z", "no id"),
    _forged("2026-11-29T00:00:00Z", NOWHERE, 3),
    _forged("2026-11-29T00:00:00Z", [NOWHERE]),
    _forged({"a": 1}, NOWHERE),
    _forged(["2026-11-29T00:00:00Z"], NOWHERE),
    _forged("99999-11-29T00:00:00Z", NOWHERE),
]


@pytest.mark.parametrize("cursor", HOSTILE)
def test_a_cursor_that_no_page_gave_is_refused(stored_on_both: TestClient, cursor: str) -> None:
    answer = stored_on_both.get("/v1/scenarios", params={"cursor": cursor})
    assert places(problem(answer, 422, "invalid-request")) == [("cursor", "unknown_cursor")]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_forged_cursor_at_the_edge_of_the_calendar_fails_nothing(client: TestClient, at: str) -> None:
    store(client)
    answer = client.get("/v1/scenarios", params={"cursor": _forged(at, NOWHERE)})
    assert answer.status_code == 200
    assert len(answer.json()["items"]) == (1 if at.startswith("0001") else 0)


FORGED_NUMBERS: list[object] = [-5, 0, 2**31, 2**63, 10**300, True, 1.0, "1", None, [1], {"a": 1}]


def test_a_forged_number_is_refused(client: TestClient) -> None:
    path = f"/v1/scenarios/{store(client)['id']}/revisions"
    for number in FORGED_NUMBERS:
        text = json.dumps([_bound(path), number])
        cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")[:500]
        answer = client.get(path, params={"cursor": cursor})
        assert places(problem(answer, 422, "invalid-request")) == [("cursor", "unknown_cursor")]


def test_an_overlong_cursor_is_refused_by_its_name(stored_on_both: TestClient) -> None:
    body = problem(stored_on_both.get("/v1/scenarios", params={"cursor": "x" * 501}), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["cursor"]


@pytest.mark.parametrize("limit", ["0", "201", "-1", "a", "", "1.5", "1_0", "+5", " 5", "9" * 30, "٣"])
def test_a_limit_is_a_number_from_1_to_200(stored_on_both: TestClient, limit: str) -> None:
    body = problem(stored_on_both.get("/v1/scenarios", params={"limit": limit}), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["limit"]
