"""Problem documents: one shape for every failure, 404, 405 and 503 included, and the places in them."""

import typing

import pytest
from starlette.testclient import TestClient

from service import errors
from service.api.problems import KIND_OF_ERROR, KINDS, MAX_ERRORS
from tests.api.asking import IOR_JSON, NOWHERE, SYNC, Json, places, problem, store, stored_run

ALLOWED = {
    "/v1/sizings": "POST",
    "/v1/presets/models": "GET, HEAD",
    "/v1/presets/failure-records": "GET, HEAD",
    "/v1/presets/gpus": "GET, HEAD",
    "/v1/scenarios": "GET, HEAD, POST",
    "/v1/scenarios/{scenario}": "DELETE, GET, HEAD, PUT",
    "/v1/scenarios/{scenario}/revisions": "GET, HEAD",
    "/v1/scenarios/{scenario}/revisions/1": "GET, HEAD",
    "/v1/scenarios/{scenario}/sizing": "GET, HEAD",
    "/v1/scenarios/{scenario}/benchmark-runs": "GET, HEAD, POST",
    "/v1/scenarios/{scenario}/gap-report": "GET, HEAD",
    "/v1/benchmark-runs/{run}": "DELETE, GET, HEAD",
    "/v1/benchmark-runs/{run}/document": "GET, HEAD",
    "/problems": "GET, HEAD",
    "/problems/stale": "GET, HEAD",
    "/doubts": "GET, HEAD",
    "/doubts/wide_spread": "GET, HEAD",
    "/livez": "GET, HEAD",
    "/readyz": "GET, HEAD",
    "/openapi.json": "GET, HEAD",
    "/docs": "GET, HEAD",
    "/": "GET, HEAD",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")


@pytest.fixture(scope="module")
def ids(stored_on_both: TestClient) -> dict[str, str]:
    made = store(stored_on_both, "problems")
    return {"scenario": made["id"], "run": stored_run(stored_on_both, made, IOR_JSON)["id"]}


@pytest.mark.parametrize("path", ALLOWED)
def test_a_method_that_a_path_has_not_is_told_all_that_it_has(
    stored_on_both: TestClient, ids: dict[str, str], path: str
) -> None:
    allowed = ALLOWED[path].split(", ")
    refused = [method for method in METHODS if method not in allowed]
    assert len(refused) >= len(METHODS) - 4
    for method in refused:
        answer = stored_on_both.request(method, path.format(**ids))
        assert answer.headers["allow"] == ALLOWED[path], method
        if method == "HEAD":
            assert (answer.status_code, answer.content) == (405, b"")
        else:
            problem(answer, 405, "method-not-allowed")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1",
            "/v1/",
            "/v1/scenarios/",
            "/v2/scenarios",
            "/V1/scenarios",
            "/v1//scenarios",
            "/v1/sizings/1",
        ),
        *("/problems/", "/docs/", "/docs/nothing.js", "/docs/..%2f..%2fapp.py", "/%2e%2e/x", "/favicon.ico"),
        *(f"/v1/scenarios/{NOWHERE}/sizing/1", "/v1/benchmark-runs", "/v1/presets", "/" + "x" * 5000),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_is_nowhere_is_not_found(stateless: TestClient, path: str, method: str) -> None:
    if path == "/docs/nothing.js" or path.startswith("/docs/.."):
        method = "GET"
    body = problem(stateless.request(method, path), 404, "not-found")
    assert len(body["detail"]) < 300


def test_every_error_of_ours_has_a_kind() -> None:
    def below(parent: type[errors.StallbudgetError]) -> set[type[errors.StallbudgetError]]:
        found = set(parent.__subclasses__())
        return found | {each for child in found for each in below(child)}

    ours = {each for each in below(errors.StallbudgetError) if each.__module__ == "service.errors"}
    assert set(KIND_OF_ERROR) == ours
    assert set(KIND_OF_ERROR.values()) <= set(KINDS)


def test_every_answered_type_leads_to_its_page(stored_on_both: TestClient) -> None:
    for name, kind in KINDS.items():
        page = stored_on_both.get(f"/problems/{name}").json()
        assert (page["type"], page["status"], page["title"]) == (f"/problems/{name}", kind.status, kind.title)


@pytest.mark.parametrize(
    ("name", "meant", "pointer"),
    [
        ("gpu", "gpus", "#/cluster/gpu"),
        ("gpus_pernode", "gpus_per_node", "#/cluster/gpus_pernode"),
        ("a/b~c", "", "#/cluster/a~1b~0c"),
        ("", "", "#/cluster/"),
        ("ä🦙", "", "#/cluster/ä🦙"),
    ],
)
def test_an_unknown_field_is_named_with_what_may_be_meant(
    stateless: TestClient, name: str, meant: str, pointer: str
) -> None:
    spec = {**SYNC, "cluster": {**SYNC["cluster"], name: 1}}
    body = problem(stateless.post("/v1/sizings", json=spec), 422, "invalid-request")
    assert places(body) == [(pointer, "unknown_field")]
    detail = body["errors"][0]["detail"]
    assert (f"{meant} may be meant" in detail) if meant else ("gpus_per_node" in detail)


def test_a_detail_names_the_first_place_and_counts_the_rest(stateless: TestClient) -> None:
    body = problem(stateless.post("/v1/sizings", json={}), 422, "invalid-request")
    assert body["detail"].startswith("#/model: ")
    assert body["detail"].endswith("And 4 more; see errors.")
    assert len(body["errors"]) == 5


def test_no_problem_repeats_a_secret_looking_value(stateless: TestClient) -> None:
    spec = {**SYNC, "restart": {"seconds": "hunter2"}, "save": {"mode": "hunter2"}, "interval": ["hunter2"]}
    answer = stateless.post("/v1/sizings", json=spec)
    assert len(problem(answer, 422, "invalid-request")["errors"]) == 3
    assert "hunter2" not in answer.text


def test_statuses_of_kinds_are_errors_and_names_are_kebab_case() -> None:
    for name, kind in KINDS.items():
        assert 400 <= kind.status < 600
        assert name == kind.name == kind.name.lower().replace("_", "-")
        for attribute in typing.get_type_hints(type(kind)):
            assert getattr(kind, attribute)


def test_a_body_of_thousands_of_faults_gets_a_short_answer(stateless: TestClient) -> None:
    spec = {**SYNC, "cluster": {**SYNC["cluster"], **{f"gpus_{n}": 1 for n in range(50_000)}}}
    body = problem(stateless.post("/v1/sizings", json=spec), 422, "invalid-request")
    assert len(body["errors"]) == MAX_ERRORS
    assert body["detail"].endswith("And 49999 more; see errors.")
    assert places(body)[0] == ("#/cluster/gpus_0", "unknown_field")


def test_a_query_of_thousands_of_parameters_gets_a_short_answer(stateless: TestClient) -> None:
    query = "&".join(f"p{n}" for n in range(5000))
    body = problem(stateless.get(f"/v1/presets/gpus?{query}"), 422, "invalid-request")
    assert len(body["errors"]) == MAX_ERRORS
    assert body["detail"].endswith("And 4999 more; see errors.")


def test_a_long_name_is_not_repeated_in_full(stateless: TestClient) -> None:
    answer = stateless.post("/v1/sizings", json={**SYNC, "a" * 100_000: 1})
    body = problem(answer, 422, "invalid-request")
    assert places(body) == [("#/" + "a" * 200, "unknown_field")]
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        (
            {
                "shards": {"writers": 20000},
                "save": {"mode": "sync", "blocking_seconds": 700},
                "prices": {"gpu_hour_usd": "x"},
            },
            {"#/shards/writers", "#/save/blocking_seconds", "#/prices/gpu_hour_usd"},
        ),
        (
            {"cluster": {"gpus": 16384, "gpu_preset": "nope", "gpus_per_node": 0, "foo": 1}},
            {"#/cluster/gpu_preset", "#/cluster/gpus_per_node", "#/cluster/foo"},
        ),
        (
            {"failures": {"mtbf_gpus": 3, "observed_failures": 0, "x": 1}},
            {"#/failures/x", "#/failures/mtbf_gpus", "#/failures/observed_failures"},
        ),
        ({"model": {"preset": 3}}, {"#/model/preset"}),
        ({"restart": {"seconds": "soon"}}, {"#/restart/seconds"}),
        ({"interval": {"rule": "fixed", "seconds": -1}}, {"#/interval/seconds"}),
        ({"failures": {"mtbf_hours": "x"}}, {"#/failures/mtbf_hours"}),
    ],
)
def test_contradictions_are_told_beside_fields_that_are_wrong_by_themselves(
    stateless: TestClient, changes: Json, pointers: set[str]
) -> None:
    answer = stateless.post("/v1/sizings", json={**SYNC, **changes})
    told = {pointer for pointer, _ in places(problem(answer, 422, "invalid-request"))}
    assert told >= pointers
    assert {pointer.split("/")[1] for pointer in told} == set(changes)
