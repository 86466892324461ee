"""GET …/series over HTTP. What is said of a change has tests of its own."""

import pytest
from starlette.testclient import TestClient

from tests.api.asking import IOR_JSON, NOWHERE, Json, dcp, nulls, places, problem, store, stored_run


def _series(client: TestClient, scenario: Json, **params: object) -> Json:
    answer = client.get(f"/v1/scenarios/{scenario['id']}/series", params=params)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert nulls(body) == []
    return body


def test_a_series_over_http(client: TestClient) -> None:
    made = store(client)
    for month in range(1, 9):
        stored_run(client, made, dcp(f"r{month}"), storage_label="a", ran_at=f"2026-{month:02}-01T00:00:00Z")
    body = _series(client, made)
    assert (body["scenario_id"], body["storage_label"], body["runs_considered"]) == (made["id"], "a", 8)
    assert body["thresholds"]["least_points"] == 6
    assert {each["change"]["kind"] for each in body["series"]} == {"steady"}
    one = _series(client, made, figure="blocking_seconds", storage_label="a")["series"]
    assert [(each["figure"], len(each["points"])) for each in one] == [("blocking_seconds", 8)]
    assert one[0]["points"][0]["took_place_at"] == "2026-01-01T00:00:00Z"
    two = _series(client, made, figure=["blocking_seconds", "load_seconds"])["series"]
    assert {each["figure"] for each in two} == {"blocking_seconds", "load_seconds"}
    few = _series(client, made, ran_from="2026-06-01T00:00:00Z")
    assert few["runs_considered"] == 3
    assert {each["change"]["kind"] for each in few["series"]} == {"too_few"}


def test_without_runs_there_is_no_series(client: TestClient) -> None:
    body = _series(client, store(client))
    assert (body["series"], body["runs_considered"]) == ([], 0)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"figure": "goodput"}, ("figure", "enum")),
        ({"figure": "persist_seconds"}, ("figure", "no_target")),  # a sync scenario has none
        ({"runs": NOWHERE}, ("runs", "unknown_run")),
    ],
)
def test_a_figure_or_run_that_is_not_there_is_refused(
    client: TestClient, query: Json, place: tuple[str, str]
) -> None:
    answer = client.get(f"/v1/scenarios/{store(client)['id']}/series", params=query)
    assert places(problem(answer, 422, "invalid-request")) == [place]


def test_all_storages_of_a_scenario_stand_side_by_side(client: TestClient) -> None:
    made = store(client)
    for number, label in enumerate(["a", "b", None]):
        tags = {"storage_label": label} if label is not None else {}
        stored_run(client, made, IOR_JSON + b" " * number, **tags)
    body = _series(client, made, all_storages="true", figure="write_bandwidth")
    assert [each.get("storage_label") for each in body["series"]] == ["a", "b", None]
    assert ("storage_label" in body, body["runs_considered"]) == (False, 3)
    assert {each.get("storage_label"): each["runs"] for each in body["storages"]} == {"a": 1, "b": 1, None: 1}
    named = [each["points"][0]["run_id"] for each in body["series"][:2]]
    assert _series(client, made, all_storages="true", runs=named)["runs_considered"] == 2


def test_runs_without_a_label_are_chosen_by_an_empty_one(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, ran_at="2026-01-01T00:00:00Z")
    newest = stored_run(client, made, IOR_JSON + b" ", storage_label="a", ran_at="2026-11-29T00:00:00Z")
    assert _series(client, made)["series"][0]["points"][0]["run_id"] == newest["id"]
    body = _series(client, made, storage_label="")
    assert (body["runs_considered"], "storage_label" in body["series"][0]) == (1, False)


def test_a_storage_is_told_across_scenarios(client: TestClient) -> None:
    scenarios = [store(client, name) for name in ("one", "two", "three")]
    for number in range(12):
        made = scenarios[number % 2]
        when = f"2025-{number + 1:02}-01T00:00:00Z"
        stored_run(client, made, IOR_JSON + b" " * number, storage_label="pfs a/b", ran_at=when)
    stored_run(client, scenarios[2], IOR_JSON, storage_label="other")
    answer = client.get("/v1/series", params={"storage_label": "pfs a/b"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert nulls(body) == []
    assert (body["storage_label"], body["runs_considered"]) == ("pfs a/b", 12)
    assert [each["name"] for each in body["scenarios"]] == ["one", "two"]
    assert {each["figure"] for each in body["series"]} == {"node_write_bandwidth", "node_read_bandwidth"}
    for each in body["series"]:
        assert each["nodes"] == 2
        assert [point["scenario_id"] for point in each["points"]] == [
            scenarios[number % 2]["id"] for number in range(12)
        ]
        assert (each["change"]["kind"], each["steps"]) == ("steady", [])
    few = client.get(
        "/v1/series",
        params={
            "storage_label": "pfs a/b",
            "figure": "node_read_bandwidth",
            "ran_from": "2025-10-01T00:00:00Z",
        },
    ).json()
    assert [(each["figure"], len(each["points"])) for each in few["series"]] == [("node_read_bandwidth", 3)]
    nobody = client.get("/v1/series", params={"storage_label": "nope"}).json()
    assert (nobody["series"], nobody["scenarios"], nobody["runs_considered"]) == ([], [], 0)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({}, ("storage_label", "missing")),
        ({"storage_label": ""}, ("storage_label", "string_too_short")),
        ({"storage_label": "a", "figure": "load_seconds"}, ("figure", "enum")),
        ({"storage_label": "a", "runs": NOWHERE}, ("runs", "unknown_parameter")),
    ],
)
def test_a_storage_has_to_be_named(client: TestClient, query: Json, place: tuple[str, str]) -> None:
    assert places(problem(client.get("/v1/series", params=query), 422, "invalid-request")) == [place]


def test_one_storage_and_all_of_them_contradict_each_other(client: TestClient) -> None:
    path = f"/v1/scenarios/{store(client)['id']}/series"
    answer = client.get(path, params={"storage_label": "a", "all_storages": "true"})
    assert places(problem(answer, 422, "invalid-request")) == [("all_storages", "contradiction")]
