"""GET …/gap-report: which runs it is about, and what it says over HTTP. The judgement has tests of its own."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from service import __version__
from service.app import create_app
from service.parsers.run import BenchmarkRun
from service.settings import Settings
from service.store import benchmark_runs, tables
from service.store.database import Database
from tests.api.asking import (
    ASYNC,
    IOR_CSV,
    IOR_JSON,
    LOCAL,
    NOWHERE,
    SYNC,
    Json,
    changed,
    dcp,
    nulls,
    places,
    problem,
    store,
    stored_run,
)
from tests.judgement.examples import ior


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


def test_runs_without_a_label_are_chosen_by_an_empty_one(client: TestClient) -> None:
    made = store(client)
    unlabelled = stored_run(client, made, IOR_CSV, ran_at="2026-01-01T00:00:00Z")
    labelled = stored_run(client, made, dcp("a"), storage_label="a", ran_at="2026-02-01T00:00:00Z")
    assert _report(client, made)["storage_label"] == "a"
    report = _report(client, made, storage_label="")
    assert ("storage_label" in report, report["runs_considered"]) == (False, 1)
    assert _report(client, made, storage_label="", runs=unlabelled["id"])["runs_considered"] == 1
    answer = client.get(
        f"/v1/scenarios/{made['id']}/gap-report", params={"storage_label": "", "runs": labelled["id"]}
    )
    assert places(problem(answer, 422, "invalid-request")) == [("runs", "other_storage")]


def test_the_same_question_gets_the_same_bytes(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    stored_run(client, made, IOR_CSV)
    path = f"/v1/scenarios/{made['id']}/gap-report"
    assert client.get(path).content == client.get(path).content


def test_a_parameter_that_a_report_has_not_is_refused(client: TestClient) -> None:
    answer = client.get(f"/v1/scenarios/{store(client)['id']}/gap-report?label=a")
    assert places(problem(answer, 422, "invalid-request")) == [("label", "unknown_parameter")]


# Which evidence


def _target(report: Json, target_id: str) -> Json:
    found: Json = next(target for target in report["targets"] if target["id"] == target_id)
    return found


@pytest.mark.parametrize("statistic", ["mean", "median", "min", "max"])
def test_the_statistic_of_a_rate_can_be_chosen(client: TestClient, statistic: str) -> None:
    made = store(client)
    run = stored_run(client, made, IOR_JSON)
    report = _report(client, made, statistic=statistic)
    write = _target(report, "write_bandwidth")
    rate = run["measurements"][0]["gb_per_second"]
    assert write["statistic"] == report["evidence"]["statistic"] == statistic
    assert write["per_node_measured"] == pytest.approx(rate[statistic] / 2)
    assert write["measured"] == pytest.approx(rate[statistic] / 2 * 2048)
    assert write["margin_fraction"] == pytest.approx(write["ratio"] - 1)
    assert write["nodes_fraction"] == 2 / 2048
    time = _target(report, "slowest_writer_seconds")
    assert (time["statistic"], time["measured"]) == ("max", run["measurements"][0]["total_seconds"]["max"])


def test_the_statistic_of_a_time_can_be_chosen(client: TestClient) -> None:
    made = store(client)
    run = stored_run(client, made, IOR_JSON)
    time = _target(_report(client, made, time_statistic="median"), "slowest_writer_seconds")
    assert time["measured"] == run["measurements"][0]["total_seconds"]["median"]


def test_runs_can_be_named(client: TestClient) -> None:
    made = store(client)
    first = stored_run(client, made, dcp("a"), storage_label="a", ran_at="2026-01-01T00:00:00Z")
    second = stored_run(client, made, IOR_JSON, storage_label="a", ran_at="2026-02-01T00:00:00Z")
    stored_run(client, made, IOR_CSV, storage_label="b", ran_at="2026-03-01T00:00:00Z")
    report = _report(client, made, runs=first["id"])
    assert (report["storage_label"], report["runs_considered"]) == ("a", 1)
    assert report["evidence"]["run_ids"] == [first["id"]]
    assert {run for target in report["targets"] for run in target["run_ids"]} == {first["id"]}
    both = client.get(
        f"/v1/scenarios/{made['id']}/gap-report", params={"runs": [first["id"], second["id"], first["id"]]}
    ).json()
    assert both["runs_considered"] == 2


def test_runs_that_are_not_there_or_of_another_storage_are_named_all_at_once(client: TestClient) -> None:
    made, other = store(client), store(client, "other")
    run = stored_run(client, made, IOR_CSV, storage_label="a", ran_at="2026-01-01T00:00:00Z")
    elsewhere = stored_run(client, other, IOR_CSV)
    unlike = stored_run(client, made, IOR_JSON, ran_at="2026-02-01T00:00:00Z")
    path = f"/v1/scenarios/{made['id']}/gap-report"
    body = problem(
        client.get(path, params={"runs": [run["id"], NOWHERE, elsewhere["id"]]}), 422, "invalid-request"
    )
    assert places(body) == [("runs", "unknown_run")] * 2
    assert {NOWHERE in error["detail"] or elsewhere["id"] in error["detail"] for error in body["errors"]} == {
        True
    }
    body = problem(client.get(path, params={"runs": [run["id"], unlike["id"]]}), 422, "invalid-request")
    assert places(body) == [("runs", "other_storage")]
    assert "is of storage a, and the report of a storage without a label" in body["errors"][0]["detail"]
    body = problem(
        client.get(path, params={"runs": [run["id"]], "storage_label": "b"}), 422, "invalid-request"
    )
    assert places(body) == [("runs", "other_storage")]
    body = problem(
        client.get(path, params={"runs": run["id"], "ran_before": "2026-01-01T00:00:00Z"}),
        422,
        "invalid-request",
    )
    assert "in that time" in body["detail"]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"runs": "nonsense"}, "runs"),
        ({"runs": [NOWHERE] * 101}, "runs"),
        ({"statistic": "mode"}, "statistic"),
        ({"time_statistic": ""}, "time_statistic"),
        ({"conditions": "busy"}, "conditions"),
        ({"ran_from": "yesterday"}, "ran_from"),
        ({"ran_before": "2026-01-01"}, "ran_before"),
        ({"statistic": ["min", "max"]}, "statistic"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(client: TestClient, query: Json, place: str) -> None:
    answer = client.get(f"/v1/scenarios/{store(client)['id']}/gap-report", params=query)
    body = problem(answer, 422, "invalid-request")
    assert {pointer for pointer, _ in places(body)} == {place}


def test_tagged_runs_count_where_they_are_asked_for(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON, conditions="degraded")
    assert _target(_report(client, made), "write_bandwidth")["status"] == "unmeasured"
    report = _report(client, made, conditions="degraded")
    assert _target(report, "write_bandwidth")["status"] == "met_if_it_scales"
    assert report["evidence"]["conditions"] == ["degraded"]


def test_a_report_can_be_about_a_time(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, dcp("old"), storage_label="old", ran_at="2026-01-01T00:00:00Z")
    stored_run(client, made, dcp("new"), storage_label="new", ran_at="2026-02-01T00:00:00Z")
    before = _report(client, made, ran_before="2026-02-01T00:00:00Z")
    assert (before["storage_label"], before["runs_considered"]) == ("old", 1)
    assert before["evidence"]["ran_before"] == "2026-02-01T00:00:00Z"
    since = _report(client, made, ran_from="2026-02-01T00:00:00Z", storage_label="new")
    assert since["runs_considered"] == 1
    assert _report(client, made, ran_from="2026-02-01T00:00:00Z", storage_label="old")["runs_considered"] == 0


def test_a_report_names_the_storages_whose_runs_it_leaves_out(client: TestClient) -> None:
    scenario = store(client)
    stored_run(client, scenario)
    stored_run(client, scenario, IOR_JSON + b"\n", storage_label="pfs-a")
    stored_run(client, scenario, IOR_JSON + b"\n\n", storage_label="pfs-a")
    report = client.get(f"/v1/scenarios/{scenario['id']}/gap-report?storage_label=mistyped").json()
    assert sorted(report["storages"], key=lambda each: each["runs"]) == [
        {"runs": 1},
        {"storage_label": "pfs-a", "runs": 2},
    ]
    assert report["runs_considered"] == 0


# The checklist


def _item(report: Json, item_id: str) -> Json:
    found: Json = next(item for item in report["checklist"] if item["id"] == item_id)
    return found


def test_a_report_has_the_checklist_of_its_scenario(client: TestClient) -> None:
    made = store(client, spec=ASYNC)
    report = _report(client, made)
    assert len(report["checklist"]) == 11
    assert _item(report, "save_mode") == {
        "id": "save_mode",
        "title": "sync or async decided",
        "status": "stated",
        "sentence": "Saves are async.",
        "run_ids": [],
        "pointers": ["#/save/mode"],
    }
    assert _item(report, "separate_process_group")["status"] == "open"
    spec = changed(ASYNC, "#/save/separate_process_group", True)
    said = _item(_report(client, store(client, "other", spec)), "separate_process_group")
    assert (said["status"], said["pointers"]) == ("stated", ["#/save/separate_process_group"])


@pytest.mark.parametrize("value", ["true", 1, 0, []])
def test_a_separate_process_group_is_true_or_false(client: TestClient, value: object) -> None:
    spec = changed(SYNC, "#/save/separate_process_group", value)
    body = problem(client.post("/v1/sizings", json=spec), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["#/save/separate_process_group"]


def test_a_separate_process_group_changes_no_figure(client: TestClient) -> None:
    spec = changed(SYNC, "#/save/separate_process_group", False)
    assert client.post("/v1/sizings", json=spec).content == client.post("/v1/sizings", json=SYNC).content


@pytest.mark.parametrize(("days", "is_stale"), [(30, True), (3650, False)])
def test_a_read_is_stale_after_the_days_that_are_set(database_url: str, days: float, is_stale: bool) -> None:
    settings = Settings(database_url=database_url, restore_drill_days=days)
    with TestClient(create_app(settings), base_url=LOCAL) as client:
        made = store(client)
        stored_run(client, made, IOR_JSON, ran_at="2026-01-01T00:00:00Z")
        report = _report(client, made)
        found = {
            target["id"]: "stale" in [doubt["code"] for doubt in target["doubts"]]
            for target in report["targets"]
        }
    assert found["read_bandwidth"] is found["node_read_bandwidth"] is is_stale
    assert not found["write_bandwidth"]


# For people


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/markdown", "text/markdown"),
        ("text/csv", "text/csv"),
        ("text/csv;q=0.5, text/markdown", "text/markdown"),
        ("text/*", "text/html"),
        ("text/html;q=0.1, application/json;q=0.2", "application/json"),
    ],
)
def test_a_report_comes_as_what_is_preferred(client: TestClient, accept: str | None, media_type: str) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    answer = client.get(
        f"/v1/scenarios/{made['id']}/gap-report", headers={"Accept": accept} if accept is not None else {}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == media_type
    assert answer.headers["vary"] == "Accept"
    assert answer.text.startswith(
        {
            "application/json": "{",
            "text/html": "<!doctype html>",
            "text/markdown": "# Gap report: llama\n",
            "text/csv": "scenario,scenario_revision,",
        }[media_type]
    )


@pytest.mark.parametrize("accept", ["image/png", "text/plain", "text/html;q=0", "application/xml"])
def test_what_a_report_cannot_be_is_not_acceptable(client: TestClient, accept: str) -> None:
    path = f"/v1/scenarios/{store(client)['id']}/gap-report"
    body = problem(client.get(path, headers={"Accept": accept}), 406, "not-acceptable")
    for media_type in ("application/json", "text/csv", "text/html", "text/markdown"):
        assert media_type in body["detail"]


def test_a_page_of_hostile_names_is_harmless(client: TestClient) -> None:
    made = store(client, "<script>alert(1)</script>")
    stored_run(client, made, IOR_JSON, storage_label="=1+1<b>", note="<i>")
    path = f"/v1/scenarios/{made['id']}/gap-report"
    page = client.get(path, headers={"Accept": "text/html"})
    assert "<script" not in page.text
    assert "<b>" not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert page.headers["x-content-type-options"] == "nosniff"
    rows = client.get(path, headers={"Accept": "text/csv"}).text.splitlines()
    assert all(row.startswith("<script>alert(1)</script>,1,'=1+1<b>,") for row in rows[1:])


def test_a_rendering_takes_the_same_parameters(client: TestClient) -> None:
    made = store(client)
    stored_run(client, made, IOR_JSON)
    answer = client.get(
        f"/v1/scenarios/{made['id']}/gap-report",
        params={"statistic": "min"},
        headers={"Accept": "text/markdown"},
    )
    assert "rates by the min of the repetitions" in answer.text
    answer = client.get(
        f"/v1/scenarios/{made['id']}/gap-report",
        params={"statistic": "none"},
        headers={"Accept": "text/markdown"},
    )
    problem(answer, 422, "invalid-request")


# However many runs there are

READERS: list[tuple[str, Json]] = [
    ("gap-report", {}),
    ("gap-report", {"storage_label": "a"}),
    ("gap-report-comparison", {"storage_label": ["a", "b"]}),
    ("gap-report-comparison", {"split_at": "2026-06-01T00:00:00Z"}),
    ("series", {"figure": "write_bandwidth"}),
    ("series", {"figure": "write_bandwidth", "all_storages": "true"}),
]


def _fill(database: Database, scenario_id: UUID, runs: int) -> None:
    """Store so many runs, a minute apart, as one statement."""
    run = BenchmarkRun(
        id=uuid4(),
        scenario_id=scenario_id,
        scenario_revision=1,
        received_at=datetime(2026, 1, 1, tzinfo=UTC),
        sha256="",
        document_bytes=1,
        conditions=[],
        storage_label="a",
        tool="ior",
        format="ior-json",
        measurements=[ior(100.0)],
        doubts=[],
    )
    row = benchmark_runs.as_row(run)
    with database.begin() as transaction:
        transaction.execute(
            tables.benchmark_runs.insert(),
            [
                {
                    **row,
                    "id": uuid4(),
                    "sha256": f"{number:064x}",
                    "received_at": run.received_at + timedelta(minutes=number),
                }
                for number in range(runs)
            ],
        )


def test_many_runs_cost_as_few_queries_as_a_few(application: FastAPI, client: TestClient) -> None:
    database: Database = application.state.database
    statements: list[str] = []

    def keep(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA", "SELECT version_num")):
            statements.append(statement)

    counts: dict[int, list[int]] = {}
    for runs, readers in ((10, READERS), (1000, READERS), (10_000, READERS[:1])):
        made = store(client, f"with {runs}")
        _fill(database, UUID(made["id"]), runs)
        event.listen(database.engine, "before_cursor_execute", keep)
        for resource, params in readers:
            statements.clear()
            answer = client.get(f"/v1/scenarios/{made['id']}/{resource}", params=params)
            assert answer.status_code == 200, answer.text
            counts.setdefault(runs, []).append(len(statements))
            assert not [each for each in statements if "benchmark_documents" in each]
            if resource != "gap-report-comparison":
                assert answer.json()["runs_considered"] == runs
        event.remove(database.engine, "before_cursor_execute", keep)
    assert counts == {10: [4, 3, 3, 4, 4, 3], 1000: [4, 3, 3, 4, 4, 3], 10_000: [4]}
