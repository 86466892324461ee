"""GET …/gap-report-comparison over HTTP. What is compared has tests of its own."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.asking import IOR_JSON, Json, dcp, nulls, places, problem, store, stored_run


def _ask(client: TestClient, scenario: Json, **params: Any) -> Json:  # noqa: ANN401
    answer = client.get(f"/v1/scenarios/{scenario['id']}/gap-report-comparison", params=params)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert nulls(body) == []
    return body


def test_two_storages_side_by_side_are_their_two_reports(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, dcp("a"), storage_label="a")
    stored_run(client, made, IOR_JSON, storage_label="b")
    body = _ask(client, made, storage_label=["a", "b"], statistic="min")
    assert (body["first"]["storage_label"], body["second"]["storage_label"]) == ("a", "b")
    assert "split_at" not in body
    for side in ("first", "second"):
        report = client.get(
            f"/v1/scenarios/{made['id']}/gap-report",
            params={"storage_label": body[side]["storage_label"], "statistic": "min"},
        ).json()
        assert body[side]["verdict"] == report["verdict"]
        assert body[side]["evidence"] == report["evidence"]
        for target, compared in zip(report["targets"], body["targets"], strict=True):
            assert (target["id"], target["value"]) == (compared["id"], compared["value"])
            for name in ("status", "measured", "ratio", "nodes", "run_ids", "reason", "margin_fraction"):
                assert compared[side].get(name) == target.get(name)
    turned = _ask(client, made, storage_label=["b", "a"], statistic="min")
    assert turned["first"] == body["second"]


def test_runs_without_a_label_are_one_of_the_sides(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    stored_run(client, made, dcp("b"), storage_label="b")
    body = _ask(client, made, storage_label=["", "b"])
    assert ("storage_label" in body["first"], body["second"]["storage_label"]) == (False, "b")
    assert [body[side]["runs_considered"] for side in ("first", "second")] == [1, 1]
    assert "without a label" in " ".join(target["sentence"] for target in body["targets"])
    split = _ask(client, made, storage_label="", split_at="2000-01-01T00:00:00Z")
    assert [split[side]["runs_considered"] for side in ("first", "second")] == [0, 1]


def test_before_and_after(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, dcp("old"), storage_label="a", ran_at="2026-01-01T00:00:00Z")
    new = stored_run(client, made, dcp("new"), storage_label="a", ran_at="2026-02-01T00:00:00Z")
    body = _ask(client, made, split_at="2026-02-01T00:00:00Z")
    assert (body["first"]["storage_label"], body["second"]["storage_label"]) == ("a", "a")
    assert (body["first"]["runs_considered"], body["second"]["runs_considered"]) == (1, 1)
    assert body["split_at"] == "2026-02-01T00:00:00Z"
    assert (
        body["first"]["evidence"]["ran_before"] == body["second"]["evidence"]["ran_from"] == body["split_at"]
    )
    assert {run for target in body["targets"] for run in target["second"]["run_ids"]} == {new["id"]}
    assert {target["better"] for target in body["targets"]} <= {"same", "undecided"}
    empty = _ask(
        client, made, split_at="2026-02-01T00:00:00Z", ran_from="2026-01-15T00:00:00Z", storage_label="a"
    )
    assert empty["first"]["runs_considered"] == 0
    narrow = _ask(
        client,
        made,
        split_at="2026-01-15T00:00:00Z",
        ran_from="2026-02-02T00:00:00Z",
        ran_before="2026-01-10T00:00:00Z",
    )
    assert (narrow["first"]["runs_considered"], narrow["second"]["runs_considered"]) == (0, 0)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({}, ("storage_label", "missing")),
        ({"storage_label": "a"}, ("storage_label", "missing")),
        ({"storage_label": ["a", "a"]}, ("storage_label", "same_twice")),
        ({"storage_label": ["a", "b", "c"]}, ("storage_label", "too_long")),
        ({"storage_label": ["a", "b"], "split_at": "2026-01-01T00:00:00Z"}, ("split_at", "contradiction")),
        ({"split_at": "2026-01-01"}, ("split_at", "value_error")),
        ({"storage_label": ["", ""]}, ("storage_label", "same_twice")),
        ({"storage_label": ["a", "b\n"]}, ("storage_label", "string_pattern_mismatch")),
        ({"storage_label": ["a", "b"], "runs": "x"}, ("runs", "unknown_parameter")),
    ],
)
def test_what_names_no_two_reports_is_refused(
    client: TestClient, query: Json, place: tuple[str, str]
) -> None:
    answer = client.get(f"/v1/scenarios/{store(client)['id']}/gap-report-comparison", params=query)
    assert places(problem(answer, 422, "invalid-request")) == [place]
