"""/v1/scenarios: stored specs by unique name, their revisions, their sizing, and what deleting one takes along."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from starlette.testclient import TestClient

from service.api.examples import SPECS
from service.store import tables
from tests.api.asking import (
    ASYNC,
    DCP,
    IOR_JSON,
    NOWHERE,
    SYNC,
    UNSATISFIABLE,
    Json,
    changed,
    nulls,
    places,
    problem,
    store,
    stored_run,
    upload,
)


def _rows(application: FastAPI, table: str) -> int:
    with application.state.database.read() as transaction:
        return int(transaction.scalar(select(func.count()).select_from(tables.metadata.tables[table])))


@pytest.mark.parametrize("name", SPECS)
def test_a_stored_scenario_is_what_was_said_without_defaults(client: TestClient, name: str) -> None:
    spec = SPECS[name]["value"]
    answer = client.post("/v1/scenarios", json={"name": name, "spec": spec})
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {"id", "name", "revision", "spec", "created_at", "updated_at"}
    assert (made["name"], made["revision"], made["spec"]) == (name, 1, spec)
    assert made["created_at"] == made["updated_at"]
    assert made["created_at"].endswith("Z")
    assert datetime.fromisoformat(made["created_at"]).utcoffset() is not None


def test_a_new_scenario_says_where_it_is_and_which_version(client: TestClient) -> None:
    answer = client.post("/v1/scenarios", json={"name": "llama", "spec": SYNC})
    assert answer.headers["location"] == f"/v1/scenarios/{answer.json()['id']}"
    assert answer.headers["etag"] == '"1"'
    read = client.get(answer.headers["location"])
    assert (read.status_code, read.content, read.headers["etag"]) == (200, answer.content, '"1"')


def test_null_in_a_spec_is_stored_as_absent(client: TestClient) -> None:
    spec = {**SYNC, "shards": None, "prices": {"gpu_hour_usd": None}}
    made = store(client, spec=spec)
    read = client.get(f"/v1/scenarios/{made['id']}").json()
    assert read == made
    assert nulls(read) == []
    assert read["spec"] == {**SYNC, "prices": {}}


def test_a_taken_name_is_a_conflict(client: TestClient) -> None:
    store(client, "llama")
    answer = client.post("/v1/scenarios", json={"name": "llama", "spec": ASYNC})
    assert places(problem(answer, 409, "name-taken")) == [("#/name", "name_taken")]
    other = store(client, "other")
    answer = client.put(
        f"/v1/scenarios/{other['id']}", json={"name": "llama", "spec": SYNC}, headers={"If-Match": '"1"'}
    )
    assert places(problem(answer, 409, "name-taken")) == [("#/name", "name_taken")]
    assert client.get(f"/v1/scenarios/{other['id']}").json() == other


def test_a_scenario_may_keep_its_own_name_and_give_it_free(client: TestClient) -> None:
    made = store(client, "llama")
    place = f"/v1/scenarios/{made['id']}"
    kept = client.put(place, json={"name": "llama", "spec": ASYNC}, headers={"If-Match": '"1"'})
    assert kept.status_code == 200
    renamed = client.put(place, json={"name": "elsewhere", "spec": ASYNC}, headers={"If-Match": '"2"'})
    assert renamed.status_code == 200
    assert store(client, "llama")["revision"] == 1


def test_of_many_that_want_a_name_at_once_one_gets_it(client: TestClient) -> None:
    def post(_: int) -> int:
        return client.post("/v1/scenarios", json={"name": "wanted", "spec": SYNC}).status_code

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(post, range(8))) == [201] + [409] * 7


@pytest.mark.parametrize(
    "name", ["a", "x" * 200, "ä ñ 漢字 🦙", "'; DROP TABLE scenarios;--", '%s {} \\ / " <b>', "a\u2028b"]
)
def test_a_name_comes_back_as_it_was_given(client: TestClient, name: str) -> None:
    made = store(client, name)
    assert client.get(f"/v1/scenarios/{made['id']}").json()["name"] == name


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", "a\nb", "\x7f", 1, True, ["a"], {"a": 1}])
def test_a_name_that_is_none_is_refused(stored_on_both: TestClient, name: object) -> None:
    answer = stored_on_both.post("/v1/scenarios", json={"name": name, "spec": SYNC})
    body = problem(answer, 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["#/name"]


@pytest.mark.parametrize(("spec", "place", "code"), UNSATISFIABLE)
def test_what_has_no_sizing_is_not_stored(
    client: TestClient, application: FastAPI, spec: Json, place: str, code: str
) -> None:
    answer = client.post("/v1/scenarios", json={"name": "llama", "spec": spec})
    body = problem(answer, 422, "unsatisfiable")
    assert places(body) == [(place.replace("#/", "#/spec/"), code)]
    assert (_rows(application, "scenarios"), _rows(application, "scenario_revisions")) == (0, 0)


def test_put_makes_the_next_revision_and_keeps_the_earlier_ones(client: TestClient) -> None:
    made = store(client)
    place = f"/v1/scenarios/{made['id']}"
    answer = client.put(place, json={"name": "later", "spec": ASYNC}, headers={"If-Match": '"1"'})
    now = answer.json()
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert (now["id"], now["name"], now["revision"], now["spec"]) == (made["id"], "later", 2, ASYNC)
    assert now["created_at"] == made["created_at"] < now["updated_at"]
    assert client.get(place).json() == now
    revisions = client.get(f"{place}/revisions").json()["items"]
    assert [(item["revision"], item["name"], item["spec"]) for item in revisions] == [
        (1, "llama", SYNC),
        (2, "later", ASYNC),
    ]
    assert revisions[0] == {
        "scenario_id": made["id"],
        "revision": 1,
        "name": "llama",
        "spec": SYNC,
        "created_at": made["created_at"],
    }
    for item in revisions:
        one = client.get(f"{place}/revisions/{item['revision']}")
        assert (one.json(), one.headers["etag"]) == (item, f'"{item["revision"]}"')


def test_of_many_that_replace_the_same_revision_one_does(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"

    def put(number: int) -> int:
        body = {"name": f"by-{number}", "spec": SYNC}
        return client.put(place, json=body, headers={"If-Match": '"1"'}).status_code

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(put, range(8))) == [200] + [412] * 7
    assert client.get(place).json()["revision"] == 2


@pytest.mark.parametrize("revision", ["0", "3", "-1", "1.0", "01x", "+1", "1_0", "99999999999999999999", "a"])
def test_a_revision_that_never_was_is_not_found(client: TestClient, revision: str) -> None:
    place = f"/v1/scenarios/{store(client)['id']}/revisions"
    problem(client.get(f"{place}/{revision}"), 404, "not-found")


def test_the_sizing_of_a_scenario_is_that_of_its_present_spec(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    client.put(place, json={"name": "llama", "spec": ASYNC}, headers={"If-Match": "*"})
    for query in ("", "?explain=true"):
        answer = client.get(f"{place}/sizing{query}")
        assert answer.status_code == 200
        assert answer.content == client.post(f"/v1/sizings{query}", json=ASYNC).content


def test_a_scenario_without_runs_can_be_deleted(client: TestClient, application: FastAPI) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    answer = client.delete(place, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.content) == (204, b"")
    for gone in (place, f"{place}/revisions", f"{place}/revisions/1", f"{place}/sizing"):
        problem(client.get(gone), 404, "not-found")
    problem(client.delete(place, headers={"If-Match": '"1"'}), 404, "not-found")
    assert _rows(application, "scenario_revisions") == 0
    assert store(client)["revision"] == 1


def test_a_scenario_with_runs_is_deleted_only_with_them(client: TestClient, application: FastAPI) -> None:
    made = store(client)
    run = stored_run(client, made)
    stored_run(client, made, DCP)
    place = f"/v1/scenarios/{made['id']}"
    for query in ("", "?runs=keep"):
        problem(client.delete(place + query, headers={"If-Match": '"1"'}), 409, "runs-exist")
    assert client.get(f"/v1/benchmark-runs/{run['id']}").status_code == 200
    assert client.delete(f"{place}?runs=delete", headers={"If-Match": '"1"'}).status_code == 204
    problem(client.get(f"/v1/benchmark-runs/{run['id']}"), 404, "not-found")
    problem(client.get(f"/v1/benchmark-runs/{run['id']}/document"), 404, "not-found")
    assert [_rows(application, name) for name in ("benchmark_runs", "benchmark_documents")] == [0, 0]


def test_runs_is_keep_or_delete(client: TestClient) -> None:
    place = f"/v1/scenarios/{store(client)['id']}"
    body = problem(client.delete(f"{place}?runs=all", headers={"If-Match": "*"}), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["runs"]
    assert client.get(place).status_code == 200


@pytest.mark.parametrize("id_", [NOWHERE, "1", "none", "%00", "{%s}", "urn:uuid:%s", "%s0", " %s", "-"])
@pytest.mark.parametrize(
    "rest", ["", "/revisions", "/revisions/1", "/sizing", "/benchmark-runs", "/gap-report"]
)
def test_an_id_that_nothing_has_is_not_found(stored_on_both: TestClient, id_: str, rest: str) -> None:
    # Another way of writing an id that is there is no id either.
    real = _there(stored_on_both)
    written = id_.replace("%s", real)
    problem(stored_on_both.get(f"/v1/scenarios/{written}{rest}"), 404, "not-found")
    problem(stored_on_both.get(f"/v1/scenarios/{real.replace('-', '')}{rest}"), 404, "not-found")


def _there(client: TestClient) -> str:
    items = client.get("/v1/scenarios").json()["items"]
    return str(items[0]["id"] if items else store(client)["id"])


def test_changing_what_is_not_there_is_not_found(client: TestClient) -> None:
    place = f"/v1/scenarios/{NOWHERE}"
    for headers in ({"If-Match": '"1"'}, {"If-Match": "*"}, {}):
        problem(client.put(place, json={"name": "a", "spec": SYNC}, headers=headers), 404, "not-found")
        problem(client.delete(place, headers=headers), 404, "not-found")


def test_a_refused_put_changes_nothing(client: TestClient) -> None:
    made = store(client)
    place = f"/v1/scenarios/{made['id']}"
    wrong = changed({"name": "later", "spec": SYNC}, "#/spec/cluster/gpus", -1)
    body = problem(client.put(place, json=wrong, headers={"If-Match": '"1"'}), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["#/spec/cluster/gpus"]
    unsatisfiable = {"name": "later", "spec": UNSATISFIABLE[0][0]}
    body = problem(client.put(place, json=unsatisfiable, headers={"If-Match": '"1"'}), 422, "unsatisfiable")
    assert [pointer for pointer, _ in places(body)] == ["#/spec/failures"]
    assert client.get(place).json() == made


OUTDATED: list[tuple[str, object]] = [
    ("#/model", {"preset": "a-model-of-long-ago"}),
    ("#/cluster/gpus", 10**9),
    ("#/cluster/gpus", "many"),
    ("#/save/mode", "paused"),
    ("#/restart/seconds", -1),
    ("#/restart", 600),
    ("#/shards/no_longer_known", {"a": [1]}),
    ("#/interval", {"rule": "fixed"}),
]
"""What an earlier or later version may have stored, and this one refuses."""


# An enumeration's value that is gone is written as it is, and pydantic remarks on that.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("pointer", "value"), OUTDATED)
def test_a_spec_that_this_version_refuses_can_be_read_and_replaced_but_not_sized(
    client: TestClient, application: FastAPI, pointer: str, value: object
) -> None:
    made = store(client)
    place = f"/v1/scenarios/{made['id']}"
    outdated = changed(SYNC, pointer, value)
    with application.state.database.begin() as transaction:
        transaction.execute(tables.scenario_revisions.update().values(spec=json.dumps(outdated)))
    is_known = pointer != "#/shards/no_longer_known"
    expected = outdated if is_known else {**SYNC, "shards": {}}
    for path in (place, f"{place}/revisions/1"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["spec"]) == (200, expected)
    for path in ("/v1/scenarios", f"{place}/revisions"):
        assert client.get(path).json()["items"][0]["spec"] == expected
    for path in (f"{place}/sizing", f"{place}/gap-report"):
        answer = client.get(path)
        if is_known:
            assert [pointer for pointer, _ in places(problem(answer, 422, "unsatisfiable"))] == ["#/spec"]
        else:
            assert answer.status_code == 200
    assert upload(client, made, IOR_JSON).status_code == 201
    replaced = client.put(place, json={"name": "llama", "spec": SYNC}, headers={"If-Match": '"1"'})
    assert replaced.status_code == 200
    assert client.get(f"{place}/sizing").status_code == 200
