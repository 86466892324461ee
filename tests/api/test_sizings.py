"""POST /v1/sizings: the fields and figures of the contract's example, and what makes two answers the same."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from service import __version__
from service.api.examples import GIVEN_STORAGE, SPECS
from tests.api.asking import ASYNC, SYNC, UNSATISFIABLE, Json, changed, nulls, places, problem

EXAMPLE: Json = {
    "checkpoint": {
        "bytes": 5_670_000_000_000,
        "bytes_per_gpu": 346_069_336,
        "bytes_per_node": 2_768_554_688,
        "largest_shard_bytes": 346_069_336,
        "writers": 16_384,
        "files": 16_385,
    },
    "failures": {
        "mtbf_seconds": 11_135.08,
        "mtbf_low_seconds": 10_118,
        "mtbf_high_seconds": 12_283,
        "confidence_fraction": 0.95,
        "failures_per_day": 7.76,
    },
    "interval": {
        "seconds": 600,
        "rule": "fixed",
        "young_seconds": 1155.9,
        "daly_seconds": 1176.29,
        "exact_seconds": 1176.30,
    },
    "blocking": {"seconds": 60, "overhead_fraction": 0.1},
    "write": {
        "required_gb_per_second": 94.5,
        "minimum_gb_per_second": 94.5,
        "per_node_gb_per_second": 0.0461,
    },
    "read": {
        "bytes": 5_670_000_000_000,
        "required_gb_per_second": 47.25,
        "per_node_gb_per_second": 0.0231,
    },
    "metadata": {"creates_per_save": 16_385, "creates_per_second": 273.1, "deletes_per_interval": 16_385},
    "capacity": {"hot_bytes": 56_700_000_000_000, "hot_peak_bytes": 62_370_000_000_000},
    "goodput": {
        "exact": {
            "goodput_fraction": 0.8300,
            "saving_fraction": 0.0922,
            "lost_work_fraction": 0.0253,
            "restarting_fraction": 0.0525,
        },
        "first_order": {
            "waste_fraction": 0.1808,
            "saving_fraction": 0.1,
            "lost_work_fraction": 0.0269,
            "restarting_fraction": 0.0539,
        },
    },
    "cost": {
        "cluster_usd_per_hour": 38_502.4,
        "stall_usd_per_day": 92_405.76,
        "stall_usd_per_year": 33_728_102,
        "waste_usd_per_year": 57_331_483,
    },
}


def _differences(expected: object, found: object, at: str = "#") -> list[str]:
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [at]
        return [
            place
            for key, item in expected.items()
            for place in (
                _differences(item, found[key], f"{at}/{key}") if key in found else [f"{at}/{key} missing"]
            )
        ]
    if isinstance(expected, float):  # as many digits as the example shows
        digits = len(str(expected).split(".")[1].rstrip("0"))
        return [] if found == pytest.approx(expected, abs=0.6 * 10**-digits) else [f"{at}: {found}"]
    if isinstance(expected, int) and isinstance(found, float):
        return [] if found == pytest.approx(expected, abs=0.6) else [f"{at}: {found}"]
    return [] if expected == found else [f"{at}: {found}"]


def test_the_contracts_example_gives_the_contracts_figures(stateless: TestClient) -> None:
    answer = stateless.post("/v1/sizings", json=SYNC)
    assert answer.status_code == 200
    sizing = answer.json()
    assert _differences(EXAMPLE, sizing) == []
    assert sizing["engine_version"] == __version__
    assert sizing["targets"][0]["id"] == "write_bandwidth"
    assert {key: sizing["targets"][0][key] for key in ("comparison", "value", "unit", "scope")} == {
        "comparison": "at_least",
        "value": 94.5,
        "unit": "gb_per_second",
        "scope": "cluster",
    }
    assert "first_order_overstates" in [warning["code"] for warning in sizing["warnings"]]


def test_each_target_id_stands_once(stateless: TestClient) -> None:
    for spec in (SYNC, ASYNC):
        ids = [target["id"] for target in stateless.post("/v1/sizings", json=spec).json()["targets"]]
        assert len(ids) == len(set(ids)) > 3


def test_async_adds_what_only_async_has(stateless: TestClient) -> None:
    sync = stateless.post("/v1/sizings", json=SYNC).json()
    later = stateless.post("/v1/sizings", json=ASYNC).json()
    assert {"durable_lag_seconds", "strict_minimum_gb_per_second"} <= set(later["write"])
    assert {"durable_lag_seconds", "strict_minimum_gb_per_second"}.isdisjoint(sync["write"])
    assert later["host_memory"]["staging_buffers"] == 1
    assert "host_memory" not in sync
    only_async = {"write_bandwidth_under_read_load", "persist_seconds"}
    assert only_async <= {target["id"] for target in later["targets"]}
    assert only_async.isdisjoint(target["id"] for target in sync["targets"])


def test_delivered_is_there_exactly_when_a_storage_is(stateless: TestClient) -> None:
    assert "delivered" not in stateless.post("/v1/sizings", json=SYNC).json()
    assert stateless.post("/v1/sizings", json=GIVEN_STORAGE).json()["delivered"]["feasible"] is True


@pytest.mark.parametrize(
    ("block", "answers"), [("restore", "read"), ("retention", "capacity"), ("prices", "cost")]
)
def test_what_is_not_asked_is_not_answered(stateless: TestClient, block: str, answers: str) -> None:
    spec = {key: value for key, value in SYNC.items() if key != block}
    assert answers not in stateless.post("/v1/sizings", json=spec).json()


@pytest.mark.parametrize("name", SPECS)
def test_no_answer_holds_null(stateless: TestClient, name: str) -> None:
    for explain in ("false", "true"):
        answer = stateless.post("/v1/sizings", json=SPECS[name]["value"], params={"explain": explain})
        assert answer.status_code == 200
        assert nulls(answer.json()) == []


def _with_nulls(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Fill every optional place of the example with null."""
    empty = {
        "model": ["preset", "extra_bytes", "reduction_factor"],
        "cluster": ["gpu_preset", "host_memory_bytes_per_node"],
        "failures": ["preset", "mtbf_hours", "mtbf_gpus"],
        "restart": ["detect_seconds", "load_seconds"],
        "save": ["overhead_fraction", "headroom", "durable_lag_seconds", "staging_buffers"],
        "restore": ["read_amplification"],
        "retention": ["hot_protection_fraction", "cold_copies", "cold_protection_fraction"],
        "prices": ["hot_usd_per_tb_month", "cold_usd_per_tb_month"],
    }
    filled = {key: {**value[key], **dict.fromkeys(empty.get(key, []))} for key in value}
    return {**filled, "shards": None, "storage": None}


def test_null_means_the_same_as_absent(stateless: TestClient) -> None:
    plain = stateless.post("/v1/sizings", json=SYNC)
    filled = stateless.post("/v1/sizings", json=_with_nulls(SYNC))
    assert (filled.status_code, filled.content) == (200, plain.content)


def test_null_for_what_is_required_is_missing(stateless: TestClient) -> None:
    body = problem(stateless.post("/v1/sizings", json={**SYNC, "model": None}), 422, "invalid-request")
    assert places(body) == [("#/model", "missing")]


def test_the_same_question_gets_the_same_bytes(stateless: TestClient) -> None:
    first = stateless.post("/v1/sizings", json=SYNC).content
    reordered = json.dumps(dict(reversed(SYNC.items())), indent=3)
    assert stateless.post("/v1/sizings", content=reordered).content == first
    assert stateless.post("/v1/sizings?explain=false", json=SYNC).content == first


@pytest.mark.parametrize("number", ["4.05e11", "405000000000.0", "405e9", "40500000000.0E1"])
def test_a_whole_number_may_be_written_with_an_exponent(stateless: TestClient, number: str) -> None:
    text = json.dumps(SYNC).replace("405000000000", number)
    assert text != json.dumps(SYNC)
    answer = stateless.post("/v1/sizings", content=text)
    assert answer.content == stateless.post("/v1/sizings", json=SYNC).content


def test_every_field_in_bytes_is_an_integer(stateless: TestClient) -> None:
    def wrong(value: object, name: str = "") -> list[str]:
        if isinstance(value, dict):
            return [place for key, item in value.items() for place in wrong(item, key)]
        if isinstance(value, list):
            return [place for item in value for place in wrong(item)]
        is_bytes = name == "bytes" or name.endswith("_bytes") or name in {"bytes_per_gpu", "bytes_per_node"}
        return [name] if is_bytes and not isinstance(value, int) else []

    for example in SPECS.values():
        text = stateless.post("/v1/sizings", json=example["value"]).text
        assert wrong(json.loads(text)) == []
        assert "mib" not in text.lower()


def test_explain_adds_the_explanation_and_changes_nothing_else(stateless: TestClient) -> None:
    plain = stateless.post("/v1/sizings", json=SYNC).json()
    explained = stateless.post("/v1/sizings?explain=true", json=SYNC).json()
    explanation = explained.pop("explanation")
    assert explained == plain
    assert "explanation" not in plain
    for entry in explanation:
        assert set(entry) - {"assumption"} == {"pointer", "formula", "expression", "inputs", "source"}
        place: Any = plain
        for part in entry["pointer"].removeprefix("#/").split("/"):
            place = place[int(part)] if isinstance(place, list) else place[part]
        assert isinstance(place, int | float)


@pytest.mark.parametrize(("spec", "place", "code"), UNSATISFIABLE)
def test_a_spec_without_an_answer_says_which_field_to_change(
    stateless: TestClient, spec: Json, place: str, code: str
) -> None:
    body = problem(stateless.post("/v1/sizings", json=spec), 422, "unsatisfiable")
    assert places(body) == [(place, code)]


def test_all_wrong_fields_are_named_at_once(stateless: TestClient) -> None:
    spec = changed(changed(changed(SYNC, "#/cluster/gpus", "16384"), "#/save/mode", "sink"), "#/mode", 1)
    body = problem(stateless.post("/v1/sizings", json=spec), 422, "invalid-request")
    assert {pointer for pointer, _ in places(body)} == {"#/cluster/gpus", "#/save/mode", "#/mode"}
    assert "And 2 more" in body["detail"]


def test_what_the_sender_calls_the_body_does_not_matter(stateless: TestClient) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=x"):
        answer = stateless.post(
            "/v1/sizings", content=json.dumps(SYNC), headers={"Content-Type": content_type}
        )
        assert answer.status_code == 200


def test_a_sizing_needs_no_database(stateless: TestClient) -> None:
    # The database of this service has no tables, and a request for what is stored says so.
    assert stateless.get("/v1/scenarios").status_code == 503
    assert stateless.post("/v1/sizings", json=SYNC).status_code == 200


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        ('{"model_type": "llama", "hidden_size": 1e999}', "#/model/config"),
        ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "#/model/config"),
        ('{"model_type": "llama", "hidden_size": -4096}', "#/model/config/hidden_size"),
        ('{"model_type": "llama", "hidden_size": "4096"}', "#/model/config/hidden_size"),
        ('{"model_type": "llama", "hidden_size": [4096]}', "#/model/config/hidden_size"),
        ('{"model_type": "llama", "hidden_size": 1e308}', "#/model/config/hidden_size"),
        ('{"model_type": ["llama"]}', "#/model/config/model_type"),
        ('{"model_type": "llama", "x": ' + "[" * 40 + "]" * 40 + "}", "#/model/config"),
        ('{"model_type": "llama", "x": "' + "x" * 70_000 + '"}', "#/model/config"),
        ('{"text_config": {"model_type": "llama"}}', "#/model/config/text_config"),
        ("[]", "#/model/config"),
        ('"llama"', "#/model/config"),
    ],
    ids=lambda text: text[:40],
)
def test_a_hostile_config_is_refused_where_it_is_wrong(stateless: TestClient, raw: str, pointer: str) -> None:
    body = json.dumps({**SPECS["sync"]["value"], "model": {"config": "@"}}).replace('"@"', raw)
    answer = stateless.post("/v1/sizings", content=body)
    assert pointer in {place for place, _ in places(problem(answer, 422, "invalid-request"))}


def test_a_nesting_that_no_document_may_have_is_no_json(stateless: TestClient) -> None:
    raw = '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    body = json.dumps({**SPECS["sync"]["value"], "model": {"config": "@"}}).replace('"@"', raw)
    assert stateless.post("/v1/sizings", content=body).status_code in {400, 413}
