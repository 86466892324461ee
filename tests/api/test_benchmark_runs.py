"""Benchmark runs: what an upload answers, what is kept of it, and what is refused without a trace."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from starlette.testclient import TestClient

from service.store import tables
from tests.api.asking import (
    DATA,
    DCP,
    IOR_CSV,
    IOR_JSON,
    IOR_TEXT,
    NOWHERE,
    SYNC,
    dcp,
    nulls,
    places,
    problem,
    store,
    stored_run,
    upload,
)


def _stored(application: FastAPI) -> tuple[int, int]:
    """Return how many runs and documents there are."""
    with application.state.database.read() as transaction:
        runs, documents = (
            int(transaction.scalar(select(func.count()).select_from(table)))
            for table in (tables.benchmark_runs, tables.benchmark_documents)
        )
    return runs, documents


def test_an_upload_answers_with_the_run(client: TestClient) -> None:
    made = store(client)
    client.put(f"/v1/scenarios/{made['id']}", json={"name": "llama", "spec": SYNC}, headers={"If-Match": "*"})
    before = datetime.now(UTC)
    answer = upload(client, made, IOR_JSON, storage_label="pfs-a", conditions="idle")
    run = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/benchmark-runs/{run['id']}"
    assert answer.headers["etag"] == f'"{run["sha256"]}"'
    assert before <= datetime.fromisoformat(run["received_at"]) <= datetime.now(UTC)
    assert run["received_at"].endswith("Z")
    expected = {
        "scenario_id": made["id"],
        "scenario_revision": 2,
        "tool": "ior",
        "tool_version": "4.0.0",
        "format": "ior-json",
        "sha256": hashlib.sha256(IOR_JSON).hexdigest(),
        "document_bytes": len(IOR_JSON),
        "storage_label": "pfs-a",
        "conditions": ["idle"],
    }
    assert {key: run[key] for key in expected} == expected
    write = run["measurements"][0]
    shown = {
        "run": 0,
        "test": 0,
        "operation": "write",
        "api": "POSIX",
        "file_per_process": True,
        "ranks": 8,
        "nodes": 2,
        "ranks_per_node": 4,
        "block_bytes": 33_554_432,
        "transfer_bytes": 4_194_304,
        "segments": 1,
        "fsync": True,
        "reordered": True,
        "repetitions_requested": 3,
    }
    assert {key: write[key] for key in shown} == shown
    assert write["repetitions"][0]["gb_per_second"] == pytest.approx(0.542, abs=5e-4)
    assert write["repetitions"][0]["bytes"] == 268_435_456
    assert write["gb_per_second"] == pytest.approx(
        {"mean": 0.889, "median": 0.542, "min": 0.310, "max": 1.815}, abs=6e-4
    )
    assert "wide_spread" in [doubt["code"] for doubt in run["doubts"] if doubt["measurement"] == 0]
    assert nulls(run) == []


def test_a_stored_run_reads_as_it_was_answered(client: TestClient) -> None:
    made = store(client)
    for document in (IOR_JSON, IOR_TEXT, IOR_CSV, DCP):
        answer = upload(client, made, document, note="ä\n🦙", conditions=["degraded", "idle", "degraded"])
        assert answer.json()["conditions"] == ["degraded", "idle"]
        read = client.get(answer.headers["location"])
        assert (read.status_code, read.content) == (200, answer.content)
        assert read.headers["etag"] == answer.headers["etag"]
        listed = client.get(f"/v1/scenarios/{made['id']}/benchmark-runs").json()["items"]
        assert listed[-1] == answer.json()


def test_a_dcp_run_has_operations_and_a_summary(client: TestClient) -> None:
    run = stored_run(client, store(client), DCP)
    assert (run["format"], run["run_id"]) == ("dcp-timing", json.loads(DCP)["run_id"])
    assert "measurements" not in run
    assert run["summary"]["save"]["count"] == 3
    assert run["summary"]["save"]["gb_per_second"] == pytest.approx(0.283214, rel=1e-5)
    assert run["operations"][0]["write_gb_per_second"] == pytest.approx(0.2703985, rel=1e-5)
    assert nulls(run) == []


@pytest.mark.parametrize("document", [IOR_JSON, IOR_TEXT, IOR_CSV, DCP], ids=["json", "text", "csv", "dcp"])
def test_the_document_comes_back_byte_for_byte(client: TestClient, document: bytes) -> None:
    for sent in (document, document.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + document):
        run = stored_run(client, store(client, f"s{len(sent)}-{sent[:1]!r}"), sent)
        answer = client.get(f"/v1/benchmark-runs/{run['id']}/document")
        assert (answer.status_code, answer.content) == (200, sent)
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith("attachment;")


def test_the_same_bytes_again_are_the_run_as_it_was_first_stored(
    client: TestClient, application: FastAPI
) -> None:
    made = store(client)
    first = upload(client, made, IOR_JSON, storage_label="a", conditions="idle", note="first")
    again = upload(client, made, IOR_JSON, storage_label="b", conditions="degraded", note="again", nodes=7)
    assert (first.status_code, again.status_code) == (201, 200)
    told = again.json()
    assert told.pop("notice") == (
        f"These bytes are stored already, as run {told['id']} with the label a; it keeps its tags, and what was given "
        "now for storage_label, conditions, note, nodes was not taken. To change them, delete the run and post it "
        "again."
    )
    assert told == first.json()
    for tags in ({}, {"storage_label": "a"}, {"conditions": ["idle", "idle"], "note": "first", "nodes": 2}):
        assert upload(client, made, IOR_JSON, **tags).content == first.content
    assert [again.headers[name] for name in ("location", "etag")] == [
        first.headers[name] for name in ("location", "etag")
    ]
    assert _stored(application) == (1, 1)


def test_the_same_bytes_are_another_run_in_another_scenario(client: TestClient) -> None:
    runs = [stored_run(client, store(client, name)) for name in ("one", "other")]
    assert runs[0]["id"] != runs[1]["id"]
    assert runs[0]["sha256"] == runs[1]["sha256"]


def test_the_same_bytes_sent_at_once_are_stored_once(client: TestClient, application: FastAPI) -> None:
    made = store(client)
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: upload(client, made), range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.content for answer in answers}) == 1
    assert _stored(application) == (1, 1)


def test_a_deleted_run_can_be_posted_again(client: TestClient) -> None:
    made = store(client)
    run = stored_run(client, made)
    client.delete(f"/v1/benchmark-runs/{run['id']}", headers={"If-Match": "*"})
    for path in ("", "/document"):
        problem(client.get(f"/v1/benchmark-runs/{run['id']}{path}"), 404, "not-found")
    assert stored_run(client, made, note="again")["id"] != run["id"]


def test_a_run_id_with_other_bytes_is_a_conflict_in_its_scenario(
    client: TestClient, application: FastAPI
) -> None:
    made, other = store(client), store(client, "other")
    stored_run(client, made, dcp("mine"))
    problem(upload(client, made, dcp("mine", label="changed")), 409, "run-id-taken")
    assert _stored(application) == (1, 1)
    assert upload(client, made, dcp("mine")).status_code == 200
    assert upload(client, made, dcp("another")).status_code == 201
    assert upload(client, other, dcp("mine", label="changed")).status_code == 201


@pytest.mark.parametrize(
    "content_type", [None, "application/x-www-form-urlencoded", "multipart/form-data", "image/png", "a", ""]
)
def test_the_content_type_is_ignored(client: TestClient, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = client.post(
        f"/v1/scenarios/{store(client)['id']}/benchmark-runs", content=IOR_JSON, headers=headers
    )
    assert (answer.status_code, answer.json()["format"]) == (201, "ior-json")


def test_a_documents_own_label_and_time_stand_unless_others_are_given(client: TestClient) -> None:
    made, other = store(client), store(client, "other")
    own = stored_run(client, made, DCP)
    assert own["storage_label"] == json.loads(DCP)["storage"]["label"]
    assert datetime.fromisoformat(own["ran_at"]) == datetime.fromisoformat(
        json.loads(DCP)["operations"][0]["started_at"]
    )
    given = stored_run(client, other, DCP, storage_label="mine", ran_at="2026-01-02T03:04:05Z")
    assert (given["storage_label"], given["ran_at"]) == ("mine", "2026-01-02T03:04:05Z")


INSTANTS = [
    ("2026-11-28T10:00:00Z", "2026-11-28T10:00:00+00:00"),
    ("2026-11-28t10:00:00z", "2026-11-28T10:00:00+00:00"),
    ("2026-11-28 10:00:00Z", "2026-11-28T10:00:00+00:00"),
    ("2026-11-28T10:00:00.25Z", "2026-11-28T10:00:00.250000+00:00"),
    ("2026-11-28T10:00:00.123456789Z", "2026-11-28T10:00:00.123456+00:00"),
    ("2026-11-28T10:00:00+05:30", "2026-11-28T04:30:00+00:00"),
    ("2026-11-28T10:00:00 05:30", "2026-11-28T04:30:00+00:00"),  # what a bare + becomes in a query
    ("2026-11-28T10:00:00-08:00", "2026-11-28T18:00:00+00:00"),
    ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+00:00"),
]


def test_a_time_is_answered_in_utc(client: TestClient) -> None:
    for number, (said, instant) in enumerate(INSTANTS):
        run = stored_run(client, store(client, f"s{number}"), IOR_CSV, ran_at=said)
        assert run["ran_at"].endswith("Z")
        assert datetime.fromisoformat(run["ran_at"]).isoformat() == instant
        assert client.get(f"/v1/benchmark-runs/{run['id']}").json() == run


BAD_TIMES = ["", "now", "1764410400", "2026-11-29", "2026-11-29T10:00:00", "2026-11-29T10:00Z"]
BAD_TIMES += ["2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-29T25:00:00Z", "10:00:00Z"]
BAD_TIMES += ["2026-11-29T10:00:00+99:00", "0000-01-01T00:00:00Z", "٢٠٢٦-11-29T10:00:00Z"]
BAD_PARAMETERS = [("ran_at", value) for value in BAD_TIMES]
BAD_PARAMETERS += [("ran_at", "9999-01-01T00:00:00Z")]
BAD_PARAMETERS += [
    ("nodes", value) for value in ("0", "-1", "1.0", "1e3", "two", "", "10000001", "9" * 40, "1_0")
]
BAD_PARAMETERS += [("conditions", value) for value in ("", "IDLE", "busy", "idle,degraded")]
BAD_PARAMETERS += [("storage_label", value) for value in ("", "x" * 129, "a\x00", "a\n", "\x7f")]
BAD_PARAMETERS += [("note", value) for value in ("x" * 2001, "a\x00b")]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_a_wrong_parameter_is_named_and_nothing_stored(
    stored_on_both: TestClient, name: str, value: str
) -> None:
    made = _shared(stored_on_both)
    answer = stored_on_both.post(
        f"/v1/scenarios/{made}/benchmark-runs", content=IOR_JSON, params={name: value}
    )
    body = problem(answer, 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == [name]
    assert stored_on_both.get(f"/v1/scenarios/{made}/benchmark-runs").json()["items"] == []


def _shared(client: TestClient) -> str:
    """Return a scenario that no other module posts to."""
    named = {item["name"]: item["id"] for item in client.get("/v1/scenarios?limit=200").json()["items"]}
    return str(named.get("refusals") or store(client, name="refusals")["id"])


@pytest.mark.parametrize("name", ["storage_label", "note", "ran_at", "nodes"])
def test_a_parameter_given_twice_is_refused(stored_on_both: TestClient, name: str) -> None:
    answer = stored_on_both.post(
        f"/v1/scenarios/{_shared(stored_on_both)}/benchmark-runs?{name}=1&{name}=1", content=IOR_JSON
    )
    assert places(problem(answer, 422, "invalid-request")) == [(name, "repeated_parameter")]


def test_every_unknown_parameter_is_named(stored_on_both: TestClient) -> None:
    answer = stored_on_both.post(
        f"/v1/scenarios/{_shared(stored_on_both)}/benchmark-runs?label=a&storage-label=b&ranAt=c",
        content=IOR_JSON,
    )
    assert places(problem(answer, 422, "invalid-request")) == [
        ("label", "unknown_parameter"),
        ("storage-label", "unknown_parameter"),
        ("ranAt", "unknown_parameter"),
    ]


def test_a_stated_node_count_fills_what_the_file_leaves_out(client: TestClient) -> None:
    run = stored_run(client, store(client), IOR_CSV, nodes=3)
    assert {(item["nodes"], item["nodes_stated"]) for item in run["measurements"]} == {(3, True)}
    assert "unknown_topology" not in [doubt["code"] for doubt in run["doubts"]]
    silent = stored_run(client, store(client, "other"), IOR_CSV)
    assert all("nodes" not in item for item in silent["measurements"])
    assert "unknown_topology" in [doubt["code"] for doubt in silent["doubts"]]


@pytest.mark.parametrize(
    ("document", "nodes"), [(IOR_JSON, 3), (DCP, 2), (IOR_CSV, 7)], ids=["json", "dcp", "more than ranks"]
)
def test_a_stated_node_count_against_the_file_is_refused(
    client: TestClient, application: FastAPI, document: bytes, nodes: int
) -> None:
    answer = upload(client, store(client), document, nodes=nodes)
    assert places(problem(answer, 422, "invalid-request")) == [("nodes", "contradiction")]
    assert _stored(application) == (0, 0)


def test_a_stated_node_count_that_the_file_has_changes_nothing(client: TestClient) -> None:
    run = stored_run(client, store(client), IOR_JSON, nodes=2)
    assert {item["nodes"] for item in run["measurements"]} == {2}
    assert all("nodes_stated" not in item for item in run["measurements"])


BAD_DOCUMENTS = [
    (b"", "empty", None, "#"),
    (b" \n\n", "empty", None, "#"),
    ((DATA / "benchmarks/derived-not-a-benchmark.json").read_bytes(), "unknown_format", None, "#"),
    ((DATA / "benchmarks/ior-4.0-killed-before-first-result.txt").read_bytes(), "no_results", 1, "#"),
    ((DATA / "dcp/bad/duplicate-rank.json").read_bytes(), "duplicate_rank", None, "#/operations/0/ranks/1"),
    ((DATA / "dcp/bad/nan-time.json").read_bytes(), "non_finite_number", None, "#/operations/0/ranks/0/"),
    (
        (DATA / "dcp/bad/rank-out-of-range.json").read_bytes(),
        "rank_out_of_range",
        None,
        "#/operations/0/ranks/1",
    ),
    (b"\x1f\x8b\x08\x00", "binary", None, "#"),
    (IOR_TEXT[:900] + b"\x00" + IOR_TEXT[900:], "binary", IOR_TEXT[:900].count(b"\n") + 1, "#"),
]


@pytest.mark.parametrize(("document", "code", "line", "pointer"), BAD_DOCUMENTS)
def test_a_bad_document_is_refused_with_its_place_and_nothing_stored(
    client: TestClient, application: FastAPI, document: bytes, code: str, line: int | None, pointer: str
) -> None:
    answer = upload(client, store(client), document)
    (error,) = problem(answer, 422, "unreadable-document")["errors"]
    assert (error["code"], error.get("line")) == (code, line)
    assert error["pointer"].startswith(pointer)
    assert _stored(application) == (0, 0)


def test_a_document_for_no_scenario_is_not_found(client: TestClient, application: FastAPI) -> None:
    for id_ in (NOWHERE, "none"):
        problem(upload(client, {"id": id_}), 404, "not-found")
    assert _stored(application) == (0, 0)


@pytest.mark.parametrize("id_", [NOWHERE, "none", "0", "{" + NOWHERE + "}", NOWHERE.replace("-", "")])
@pytest.mark.parametrize("rest", ["", "/document"])
def test_a_run_that_is_not_there_is_not_found(stored_on_both: TestClient, id_: str, rest: str) -> None:
    problem(stored_on_both.get(f"/v1/benchmark-runs/{id_}{rest}"), 404, "not-found")
    problem(stored_on_both.delete(f"/v1/benchmark-runs/{id_}", headers={"If-Match": "*"}), 404, "not-found")


def test_a_text_of_ones_own_with_nul_is_refused_alike_on_both(
    client: TestClient, application: FastAPI
) -> None:
    answer = upload(client, store(client), dcp("a\x00b"))
    problem(answer, 422, "unreadable-document")
    assert _stored(application) == (0, 0)


@pytest.mark.parametrize(
    ("file", "format", "operations"),
    [
        ("benchmarks/mdtest-4.0-files-2nodes-write-1k.txt", "mdtest-text", 4),
        ("benchmarks/io500-sc25dev-debug-result_summary.txt", "io500-summary", 11),
        ("dcp/foreign/dlio-both.summary.json", "dlio-summary", 2),
        ("dcp/foreign/dlio-read.summary.json", "dlio-summary", 1),
    ],
)
def test_the_relatives_of_ior_and_dcp_are_taken_and_judged(
    client: TestClient, file: str, format: str, operations: int
) -> None:
    scenario = store(client)
    run = stored_run(client, scenario, (DATA / file).read_bytes())
    assert (run["format"], len(run["measurements"])) == (format, operations)
    assert client.get(f"/v1/benchmark-runs/{run['id']}").json() == run
    assert client.get(f"/v1/benchmark-runs/{run['id']}/document").content == (DATA / file).read_bytes()
    report = client.get(f"/v1/scenarios/{scenario['id']}/gap-report")
    assert report.status_code == 200
    assert nulls(run) == nulls(report.json()) == []


def test_a_file_from_the_future_is_not_the_newest_for_good(client: TestClient) -> None:
    scenario = store(client)
    ahead = IOR_JSON.replace(b"2026", b"2099")
    run = stored_run(client, scenario, ahead)
    assert "ran_at" not in run
    assert "ran_at_zone_assumed" not in run


def test_the_files_own_time_orders_runs_and_the_posters_word_goes_before_it(client: TestClient) -> None:
    scenario = store(client)
    run = stored_run(client, scenario)
    assert run["ran_at"].startswith("2026-11-29T")
    assert run["ran_at_zone_assumed"] is True
    stated = stored_run(client, scenario, IOR_JSON + b"\n", ran_at="2026-11-28T10:00:00Z")
    assert stated["ran_at"] == "2026-11-28T10:00:00Z"
    assert "ran_at_zone_assumed" not in stated
