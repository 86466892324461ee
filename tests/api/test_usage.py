"""`GET /v1/usage`, and runs whose original was removed for its age."""

from datetime import timedelta
from uuid import uuid4

from fastapi import FastAPI
from starlette.testclient import TestClient

from service.api.dependencies import now
from service.store import documents
from service.store.caller import DEFAULT_WORKSPACE, AccessScope, Caller
from service.store.database import Database
from tests.api.asking import IOR_JSON, IOR_TEXT, problem, store, stored_run, upload
from tests.api.keyring import make_key, make_workspace


def remove_documents(application: FastAPI) -> int:
    """Remove the originals of all runs, as `stallbudget prune` does to old ones."""
    database: Database = application.state.database
    with database.begin() as transaction:
        return documents.remove_older(
            transaction,
            by=Caller(DEFAULT_WORKSPACE, "cli", frozenset()),
            new_id=uuid4,
            at=now(),
            received_before=now() + timedelta(hours=1),
        )


def test_usage_tells_what_was_posted_and_what_that_takes(client: TestClient) -> None:
    assert set(client.get("/v1/usage").json().values()) == {0}
    for name in ("a", "b"):
        stored_run(client, store(client, name), IOR_JSON)
    used = client.get("/v1/usage").json()
    assert (used["scenarios"], used["benchmark_runs"]) == (2, 2)
    assert (used["documents"], used["distinct_documents"]) == (2, 1)
    assert used["received_bytes"] == 2 * used["original_bytes"] == 2 * len(IOR_JSON)
    assert 0 < used["stored_bytes"] < len(IOR_JSON) / 2


def test_usage_is_the_same_whether_another_workspace_has_the_same_bytes(
    client: TestClient, application: FastAPI
) -> None:
    other = make_key(application, AccessScope.WRITE, workspace_id=make_workspace(application))
    own = make_key(application, AccessScope.WRITE)
    seen = []
    for key in (own, other):
        client.headers.update(key)
        stored_run(client, store(client), IOR_JSON)
        seen.append(client.get("/v1/usage").json())
    assert seen[0] == seen[1]


def test_a_run_without_its_document_says_so_and_serves_what_was_read(
    client: TestClient, application: FastAPI
) -> None:
    scenario = store(client)
    run = stored_run(client, scenario, IOR_JSON)
    place = f"/v1/benchmark-runs/{run['id']}"
    tag = client.get(place).headers["etag"]
    assert remove_documents(application) == 1
    body = problem(client.get(f"{place}/document"), 410, "document-removed")
    assert run["id"] in body["detail"]
    after = client.get(place, headers={"If-None-Match": tag})
    assert after.status_code == 200
    left = after.json()
    assert left.pop("document_removed_at").endswith("Z")
    assert left == run
    again = upload(client, scenario, IOR_JSON)
    assert (again.status_code, again.json()["id"]) == (200, run["id"])
    assert client.get(f"/v1/scenarios/{scenario['id']}/gap-report").status_code == 200
    used = client.get("/v1/usage").json()
    assert (used["benchmark_runs"], used["documents"], used["stored_bytes"]) == (1, 0, 0)
    # What the caller saw of it is no longer what it is.
    problem(client.delete(place, headers={"If-Match": tag}), 412, "stale")
    assert client.delete(place, headers={"If-Match": after.headers["etag"]}).status_code == 204
    assert upload(client, scenario, IOR_JSON).status_code == 201


def test_what_is_deleted_by_its_scenario_takes_no_more_space(client: TestClient) -> None:
    scenario = store(client)
    for document in (IOR_JSON, IOR_TEXT):
        stored_run(client, scenario, document)
    gone = client.delete(f"/v1/scenarios/{scenario['id']}?runs=delete", headers={"If-Match": "*"})
    assert gone.status_code == 204
    assert set(client.get("/v1/usage").json().values()) == {0}
