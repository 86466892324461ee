"""GET /v1/presets: every named input has its source, and a spec can name it."""

import pytest
from starlette.testclient import TestClient

from tests.api.asking import SYNC, Json, changed, nulls, places, problem, without

LISTS = ("models", "recipes", "failure-records", "gpus", "save-load-times", "storage-systems")


def _items(client: TestClient, name: str) -> list[Json]:
    answer = client.get(f"/v1/presets/{name}")
    assert answer.status_code == 200
    items: list[Json] = answer.json()["items"]
    return items


@pytest.mark.parametrize("name", LISTS)
def test_every_preset_has_a_name_of_its_own_and_a_source(stateless: TestClient, name: str) -> None:
    items = _items(stateless, name)
    assert len({item["name"] for item in items}) == len(items) > 0
    assert all(item["source"] for item in items)
    assert nulls(items) == []


def test_every_model_can_be_named_by_a_spec(stateless: TestClient) -> None:
    for item in _items(stateless, "models"):
        answer = stateless.post("/v1/sizings", json={**SYNC, "model": {"preset": item["name"]}})
        assert answer.json()["checkpoint"]["bytes"] == pytest.approx(item["parameters"] * 14)


def test_every_models_shape_can_be_posted_as_a_config(stateless: TestClient) -> None:
    for item in _items(stateless, "models"):
        answer = stateless.post("/v1/sizings", json={**SYNC, "model": {"config": item["config"]}})
        model = answer.json()["model"]
        assert model["parameters"] == item["parameters"]
        assert model["active_parameters"] == item["active_parameters"]


def test_every_recipe_can_be_named_by_a_spec_and_is_itemised(stateless: TestClient) -> None:
    for item in _items(stateless, "recipes"):
        adapter = {"lora_rank": 8} if any(each["of"] == "adapter" for each in item["items"]) else {}
        spec = {**SYNC, "model": {"preset": "llama-3-8b", "recipe": item["name"], **adapter}}
        model = stateless.post("/v1/sizings", json=spec).json()["model"]
        assert [each["name"] for each in model["items"]] == [each["name"] for each in item["items"]]
        assert sum(each["bytes"] for each in model["items"]) == model["state_bytes"]


def test_every_failure_record_can_be_named_by_a_spec(stateless: TestClient) -> None:
    for item in _items(stateless, "failure-records"):
        spec = {**SYNC, "failures": {"preset": item["name"]}, "interval": {"rule": "exact"}}
        answer = stateless.post("/v1/sizings", json=spec)
        assert answer.status_code == 200, answer.text


def test_every_gpu_can_be_named_by_a_spec_and_prices_it(stateless: TestClient) -> None:
    for item in _items(stateless, "gpus"):
        spec = changed(without(SYNC, "#/prices"), "#/cluster/gpu_preset", item["name"])
        answer = stateless.post("/v1/sizings", json=spec)
        assert answer.status_code == 200, answer.text
        if "gpu_hour_usd" in item:
            assert answer.json()["cost"]["cluster_usd_per_hour"] == pytest.approx(
                16_384 * item["gpu_hour_usd"]
            )


def test_a_storage_system_with_sustained_figures_can_be_named_by_a_spec_and_no_other(
    stateless: TestClient,
) -> None:
    for item in _items(stateless, "storage-systems"):
        spec = {**SYNC, "storage": {"preset": item["name"]}}
        answer = stateless.post("/v1/sizings", json=spec)
        if "write_gb_per_second" in item or "read_gb_per_second" in item:
            assert answer.status_code == 200, answer.text
            seconds = 5.67e12 / (item["write_gb_per_second"] * 1e9)
            assert answer.json()["delivered"]["write"]["seconds"] == pytest.approx(seconds)
            assert "capacity" not in answer.json()["delivered"]
        else:
            found = problem(answer, 422, "invalid-request")
            assert places(found) == [("#/storage/preset", "nothing_sustained")]


@pytest.mark.parametrize(
    "pointer",
    ["#/model/preset", "#/model/recipe", "#/failures/preset", "#/cluster/gpu_preset", "#/storage/preset"],
    ids=lambda text: text[2:],
)
def test_an_unknown_preset_is_refused_where_it_stands(stateless: TestClient, pointer: str) -> None:
    block = pointer.split("/")[1]
    spec = SYNC if block == "cluster" else {**SYNC, block: {}}
    answer = stateless.post("/v1/sizings", json=changed(spec, pointer, "no-such"))
    assert (pointer, "unknown_preset") in places(problem(answer, 422, "invalid-request"))
