"""Idempotency-Key: what stores is done once under it, and answered as before."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from service.api import benchmark_runs, scenarios
from service.api.idempotency import RunningRequests
from service.errors import StillRunning
from service.store import idempotency
from service.store.caller import DEFAULT_WORKSPACE, AccessScope
from tests.api.asking import IOR_CSV, IOR_JSON, SYNC, problem, store
from tests.api.keyring import make_key

KEY = {"Idempotency-Key": "a-key"}
BODY = {"name": "once", "spec": SYNC}

Ask = Callable[..., Response]


@pytest.fixture(params=["scenario", "run"])
def ask(request: pytest.FixtureRequest, client: TestClient) -> Ask:
    """Return what posts something, the same unless told otherwise."""
    if request.param == "scenario":

        def post_scenario(headers: dict[str, str] = KEY, *, other: bool = False) -> Response:
            return client.post(
                "/v1/scenarios", json={**BODY, "name": "other"} if other else BODY, headers=headers
            )

        return post_scenario
    runs = f"/v1/scenarios/{store(client)['id']}/benchmark-runs"

    def post_run(headers: dict[str, str] = KEY, *, other: bool = False) -> Response:
        return client.post(runs, content=IOR_CSV if other else IOR_JSON, headers=headers)

    return post_run


def _told(answer: Response) -> tuple[Any, ...]:
    return (answer.status_code, answer.content, answer.headers["location"], answer.headers["etag"])


def test_the_same_request_again_is_answered_as_before(client: TestClient, ask: Ask) -> None:
    first, again = ask(), ask()
    assert first.status_code == 201
    assert _told(again) == _told(first)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    events = client.get("/v1/audit-events", params={"resource_id": first.json()["id"]}).json()["items"]
    assert len(events) == 1


def test_a_scenario_that_was_replaced_meanwhile_is_answered_as_it_was_made(client: TestClient) -> None:
    first = client.post("/v1/scenarios", json=BODY, headers=KEY)
    changed = {"name": "renamed", "spec": SYNC}
    assert client.put(first.headers["location"], json=changed, headers={"If-Match": "*"}).status_code == 200
    assert _told(client.post("/v1/scenarios", json=BODY, headers=KEY)) == _told(first)


def test_other_white_space_is_the_same_request_and_another_tag_is_not(client: TestClient) -> None:
    body = client.build_request("POST", "/", json=BODY).content
    first = client.post("/v1/scenarios", content=body, headers=KEY)
    assert _told(client.post("/v1/scenarios", content=b" " + body, headers=KEY)) == _told(first)
    runs = f"{first.headers['location']}/benchmark-runs"
    key = {"Idempotency-Key": "another"}
    assert client.post(f"{runs}?note=a", content=IOR_JSON, headers=key).status_code == 201
    problem(client.post(f"{runs}?note=b", content=IOR_JSON, headers=key), 422, "idempotency-key-reused")


def test_another_request_under_the_key_is_refused_and_changes_nothing(client: TestClient, ask: Ask) -> None:
    ask()
    before = client.get("/v1/audit-events").content
    body = problem(ask(other=True), 422, "idempotency-key-reused")
    assert body["errors"][0]["pointer"] == "Idempotency-Key"
    assert client.get("/v1/audit-events").content == before


def test_one_that_failed_is_done_anew(client: TestClient) -> None:
    taken = store(client, "once")
    problem(client.post("/v1/scenarios", json=BODY, headers=KEY), 409, "name-taken")
    assert client.delete(f"/v1/scenarios/{taken['id']}", headers={"If-Match": "*"}).status_code == 204
    assert client.post("/v1/scenarios", json=BODY, headers=KEY).status_code == 201


def test_what_was_deleted_is_made_anew(client: TestClient, ask: Ask) -> None:
    first = ask()
    assert client.delete(first.headers["location"], headers={"If-Match": "*"}).status_code == 204
    again = ask()
    assert again.status_code == 201
    assert again.json()["id"] != first.json()["id"]


def test_runs_deleted_with_their_scenario_are_forgotten(client: TestClient) -> None:
    made = store(client)
    runs = f"/v1/scenarios/{made['id']}/benchmark-runs"
    client.post(runs, content=IOR_JSON, headers=KEY)
    gone = client.delete(f"/v1/scenarios/{made['id']}?runs=delete", headers={"If-Match": "*"})
    assert gone.status_code == 204
    assert client.post("/v1/scenarios", json=BODY, headers=KEY).status_code == 201


def test_a_document_that_is_stored_already_is_found_under_the_key_as_well(client: TestClient) -> None:
    made = store(client)
    runs = f"/v1/scenarios/{made['id']}/benchmark-runs"
    first = client.post(runs, content=IOR_JSON)
    for _ in range(2):
        answer = client.post(runs, content=IOR_JSON, headers=KEY)
        assert (answer.status_code, answer.content) == (200, first.content)


def test_owners_have_keys_of_their_own(client: TestClient, application: FastAPI) -> None:
    owners = [make_key(application, AccessScope.WRITE) for _ in range(2)]
    for n, owner in enumerate(owners):
        body = {"name": f"of {n}", "spec": SYNC}
        assert client.post("/v1/scenarios", json=body, headers={**KEY, **owner}).status_code == 201


@pytest.mark.parametrize("passed", [timedelta(hours=23, minutes=59), timedelta(hours=24)])
def test_a_key_is_remembered_for_a_day(
    client: TestClient, ask: Ask, monkeypatch: pytest.MonkeyPatch, passed: timedelta
) -> None:
    first = ask()
    later = datetime.fromisoformat(first.json().get("created_at", first.json().get("received_at"))) + passed
    for module in (scenarios, benchmark_runs):
        monkeypatch.setattr(module, "now", lambda: later + timedelta(seconds=1) if passed.days else later)
    other = ask(other=True)
    if passed.days:
        assert other.status_code == 201
    else:
        problem(other, 422, "idempotency-key-reused")


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256, "a\tb", "\x7f"])
def test_a_malformed_key_is_refused_by_name(client: TestClient, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    answer = client.post("/v1/scenarios", json=BODY, headers=headers)
    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == "Idempotency-Key"


def test_of_many_at_once_one_is_done_and_the_others_are_told_so(client: TestClient, ask: Ask) -> None:
    together = Barrier(8)

    def send(_: int) -> Response:
        together.wait()
        return ask()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    done = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.json()["id"] for answer in done}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in done) == 1
    for answer in answers:
        if answer.status_code != 201:
            problem(answer, 409, "idempotency-key-in-use")
            assert int(answer.headers["retry-after"]) > 0


def test_one_that_is_still_being_answered_is_not_begun_again(
    client: TestClient, application: FastAPI, ask: Ask
) -> None:
    running: RunningRequests = application.state.running
    with running.alone(DEFAULT_WORKSPACE, "a-key"):
        problem(ask(), 409, "idempotency-key-in-use")
        assert ask({"Idempotency-Key": "b"}).status_code == 201
        with pytest.raises(StillRunning), running.alone(DEFAULT_WORKSPACE, "a-key"):
            pass
    assert client.get("/v1/scenarios").status_code == 200


def test_old_keys_are_removed_as_new_ones_come(client: TestClient, application: FastAPI) -> None:
    database = application.state.database
    at = datetime.fromisoformat(store(client)["created_at"])
    digest = hashlib.sha256(b"").hexdigest()

    def claim(name: str, moment: datetime) -> None:
        with database.begin() as transaction:
            idempotency.claim(
                transaction, owner_id=DEFAULT_WORKSPACE, key=name, at=moment, request_sha256=digest
            )

    for n in range(3):
        claim(f"old {n}", at - idempotency.KEPT - timedelta(hours=1))
    claim("new", at)
    with database.read() as transaction:
        rows = transaction.execute(idempotency.idempotency_keys.select()).all()  # type: ignore[attr-defined]
    assert [row.key for row in rows] == ["new"]
