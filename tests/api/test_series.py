"""GET …/series over HTTP. What is said of a change has tests of its own."""

import pytest
from starlette.testclient import TestClient

from tests.api.asking import NOWHERE, Json, dcp, nulls, places, problem, store, stored_run


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
