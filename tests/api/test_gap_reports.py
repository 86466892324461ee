"""GET …/gap-report: which runs it is about, and what it says over HTTP. The judgement has tests of its own."""

import pytest
from starlette.testclient import TestClient

from service import __version__
from tests.api.asking import (
    ASYNC,
    IOR_CSV,
    IOR_JSON,
    SYNC,
    Json,
    dcp,
    nulls,
    places,
    problem,
    store,
    stored_run,
)


def _report(client: TestClient, scenario: Json, **params: str) -> Json:
    answer = client.get(f"/v1/scenarios/{scenario['id']}/gap-report", params=params)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    assert nulls(body) == []
    return body


@pytest.mark.parametrize("spec", [SYNC, ASYNC], ids=["sync", "async"])
def test_without_runs_every_target_is_unmeasured(client: TestClient, spec: Json) -> None:
    report = _report(client, store(client, spec=spec))
    assert (report["engine_version"], report["runs_considered"]) == (__version__, 0)
    assert {target["status"] for target in report["targets"]} == {"unmeasured"}
    assert report["verdict"]["outcome"] == "unproven"
    sizing = client.post("/v1/sizings", json=spec).json()
    assert report["consequences"]["specified"] == sizing
    assert "measured" not in report["consequences"]
    assert [target["id"] for target in report["targets"]] == [target["id"] for target in sizing["targets"]]


def test_a_run_is_held_against_the_targets(client: TestClient) -> None:
    made = store(client)
    run = stored_run(client, made, IOR_JSON)
    report = _report(client, made)
    assert (report["scenario_id"], report["scenario_revision"]) == (made["id"], 1)
    target = next(item for item in report["targets"] if item["id"] == "write_bandwidth")
    assert (target["status"], target["basis"], target["nodes"]) == (
        "met_if_it_scales",
        "per_node_extrapolated",
        2,
    )
    assert target["run_ids"] == [run["id"]]
    mean = run["measurements"][0]["gb_per_second"]["mean"]
    assert target["per_node_measured"] == pytest.approx(mean / 2)
    assert target["measured"] == pytest.approx(mean / 2 * 2048)
    assert target["ratio"] == pytest.approx(target["measured"] / 94.5)
    assert target["reason"]


def test_a_report_is_about_the_present_revision(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    client.put(
        f"/v1/scenarios/{made['id']}", json={"name": "llama", "spec": ASYNC}, headers={"If-Match": "*"}
    )
    report = _report(client, made)
    assert report["scenario_revision"] == 2
    doubts = [doubt["code"] for target in report["targets"] for doubt in target["doubts"]]
    assert "older_revision" in doubts


def test_a_report_is_about_the_newest_runs_label_unless_told_otherwise(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, dcp("new"), storage_label="new", ran_at="2026-03-01T00:00:00Z")
    stored_run(client, made, dcp("old"), storage_label="old", ran_at="2026-02-01T00:00:00Z")
    assert _report(client, made)["storage_label"] == "new"
    assert _report(client, made, storage_label="old")["storage_label"] == "old"
    assert _report(client, made, storage_label="old")["runs_considered"] == 1
    assert _report(client, made, storage_label="none")["runs_considered"] == 0


def test_runs_without_a_label_are_a_storage_of_their_own(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, dcp("a"), storage_label="a", ran_at="2026-01-01T00:00:00Z")
    stored_run(client, made, IOR_CSV)
    report = _report(client, made)
    assert "storage_label" not in report
    assert report["runs_considered"] == 1


def test_the_same_question_gets_the_same_bytes(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    stored_run(client, made, IOR_CSV)
    path = f"/v1/scenarios/{made['id']}/gap-report"
    assert client.get(path).content == client.get(path).content


def test_a_parameter_that_a_report_has_not_is_refused(client: TestClient) -> None:
    answer = client.get(f"/v1/scenarios/{store(client)['id']}/gap-report?label=a")
    assert places(problem(answer, 422, "invalid-request")) == [("label", "unknown_parameter")]
