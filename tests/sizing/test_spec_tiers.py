"""What a scenario may say of its tiers and of what failures leave: bounds, what is missing, what contradicts itself."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from service.sizing.spec import FailureKind, ScenarioSpec, TierKind
from tests.sizing.scenarios import Body, article

HOST: Body = {"kind": "host_memory", "interval_seconds": 60, "blocking_seconds": 1, "restore_seconds": 5}
PEER: Body = {
    "kind": "peer_memory",
    "interval_seconds": 120,
    "blocking_seconds": 0,
    "durable_lag_seconds": 10,
    "restore_seconds": 10,
}
NVME: Body = {
    "kind": "node_local_nvme",
    "interval_seconds": 300,
    "blocking_seconds": 0,
    "node_write_gb_per_second": 5,
    "node_read_gb_per_second": 10,
}


def _faults(**blocks: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - whatever a body holds
    """Return pointer and code of every fault, the way the API names them."""
    with pytest.raises(ValidationError) as caught:
        ScenarioSpec.model_validate(article(**blocks))
    found = []
    for error in caught.value.errors():
        at = "#" + "".join(f"/{part}" for part in error["loc"])
        carried = error.get("ctx", {}).get("faults")
        if carried is None:
            found.append((at, error["type"]))
        else:
            found += [(at + fault.pointer, fault.code) for fault in carried]
            assert all(fault.detail.endswith(".") for fault in carried)
    return found


def _without(block: Body, *names: str) -> Body:
    return {name: value for name, value in block.items() if name not in names}


TIERS = [
    ([], [("", "too_short")]),
    ([HOST, PEER, NVME, NVME], [("", "too_long")]),
    ([5], [("/0", "model_type")]),
    ([{**HOST, "colour": 1}], [("/0/colour", "extra_forbidden")]),
    ([{**HOST, "kind": "tape"}], [("/0/kind", "enum")]),
    ([{**NVME, "kind": "shared_storage"}], [("/0/kind", "contradiction")]),
    ([HOST, HOST], [("/1/kind", "contradiction")]),
    ([NVME, {**HOST, "interval_seconds": 300}], [("/1/kind", "contradiction")]),
    ([{**HOST, "interval_seconds": 121}, PEER], [("/1/interval_seconds", "too_small")]),
    ([{**NVME, "interval_seconds": 601}], [("/0/interval_seconds", "too_large")]),
    ([{**HOST, "blocking_seconds": 60}], [("/0/blocking_seconds", "too_large")]),
    ([{**PEER, "durable_lag_seconds": 121}], [("/0/durable_lag_seconds", "too_large")]),
    *(
        ([_without(HOST, name)], [(f"/0/{name}", "missing")])
        for name in ("kind", "interval_seconds", "blocking_seconds", "restore_seconds")
    ),
    ([{**HOST, "read_gb_per_second": 1}], [("/0/read_gb_per_second", "contradiction")]),
    ([{**HOST, "durable_lag_seconds": 1}], [("/0/durable_lag_seconds", "contradiction")]),
    ([{**HOST, "node_write_gb_per_second": 1}], [("/0/node_write_gb_per_second", "contradiction")]),
    ([{**HOST, "replicas": 1}], [("/0/replicas", "contradiction")]),
    (
        [{**HOST, "drives_per_node": 1, "drive_bytes": 1}],
        [("/0/drives_per_node", "contradiction"), ("/0/drive_bytes", "contradiction")],
    ),
    ([_without(PEER, "durable_lag_seconds")], [("/0/durable_lag_seconds", "missing")]),
    ([{**PEER, "node_write_gb_per_second": 1}], [("/0/node_write_gb_per_second", "contradiction")]),
    ([{**PEER, "replicas": 1}], [("/0/replicas", "too_small")]),
    ([{**NVME, "drive_bytes": 10**12}], [("/0/drives_per_node", "missing")]),
    ([{**NVME, "rated_drive_writes_per_day": 1}], [("/0/drive_bytes", "missing")]),
]  # fmt: skip


@pytest.mark.parametrize(("tiers", "faults"), TIERS)
def test_tiers_that_contradict_themselves_are_refused_where_they_do(
    tiers: list[Body], faults: list[tuple[str, str]]
) -> None:
    assert _faults(tiers=tiers) == [(f"#/tiers{pointer}", code) for pointer, code in faults]


def test_more_copies_than_nodes_are_refused() -> None:
    one_node = {"gpus": 8, "gpus_per_node": 8}
    assert _faults(tiers=[PEER], cluster=one_node) == [("#/tiers/0/replicas", "too_large")]


MIXES = [
    ([], [("", "too_short")]),
    ([{"kind": "process", "fraction": 0.9}], [("", "contradiction")]),
    ([{"kind": "process", "nodes": 1, "fraction": 1}], [("/0/nodes", "contradiction")]),
    ([{"kind": "node_loss", "nodes": 2049, "fraction": 1}], [("/0/nodes", "too_large")]),
    (
        [{"kind": "node_loss", "fraction": 0.5}, {"kind": "node_loss", "nodes": 1, "fraction": 0.5}],
        [("/1/kind", "contradiction")],
    ),
    ([{"kind": "sabotage", "fraction": 1}], [("/0/kind", "enum")]),
    ([{"kind": "process"}], [("/0/fraction", "missing")]),
    ([{"kind": "process", "fraction": 1.1}], [("/0/fraction", "less_than_equal")]),
]


@pytest.mark.parametrize(("mix", "faults"), MIXES)
def test_a_mix_that_is_none_is_refused_where_it_stands(
    mix: list[Body], faults: list[tuple[str, str]]
) -> None:
    assert _faults(tiers=[HOST], failure_mix=mix) == [
        (f"#/failure_mix{pointer}", code) for pointer, code in faults
    ]


def test_a_mix_without_tiers_is_refused() -> None:
    assert _faults(failure_mix=[{"kind": "process", "fraction": 1}]) == [("#/failure_mix", "contradiction")]


WHOLE = ("replicas", "versions", "drives_per_node", "drive_bytes")
BOUNDS = [
    ("interval_seconds", 1e-3, 1e9),
    ("blocking_seconds", 0, 1e7),
    ("durable_lag_seconds", 1e-6, 1e7),
    ("node_write_gb_per_second", 1e-6, 1e9),
    ("restore_seconds", 0, 1e7),
    ("node_read_gb_per_second", 1e-6, 1e9),
    ("read_gb_per_second", 1e-6, 1e9),
    ("replicas", 1, 16),
    ("versions", 1, 16),
    ("drives_per_node", 1, 256),
    ("drive_bytes", 1, 10**15),
    ("rated_drive_writes_per_day", 1e-3, 1e4),
]


def _tier(field: str, value: object) -> Body:
    """Return a tier that may have the field, whatever else contradicts it left out."""
    tier = {**NVME, "interval_seconds": 1e9, "drives_per_node": 1, "drive_bytes": 1, field: value}
    if field in ("restore_seconds", "read_gb_per_second"):
        del tier["node_read_gb_per_second"]
    if field == "durable_lag_seconds":
        del tier["node_write_gb_per_second"]
    return tier


@pytest.mark.parametrize(("field", "low", "high"), BOUNDS)
def test_a_number_is_taken_at_its_bounds_and_refused_beyond(field: str, low: float, high: float) -> None:
    free = {"interval": {"rule": "exact"}}
    for value in (low, high):
        read: Any = ScenarioSpec.model_validate(article(tiers=[_tier(field, value)], **free))
        assert getattr(read.tiers[0], field) == value
    below, above = (low - 1, high + 1) if field in WHOLE else (low - 1e-9, math.nextafter(high, math.inf))
    assert _faults(tiers=[_tier(field, below)], **free) == [(f"#/tiers/0/{field}", "greater_than_equal")]
    assert _faults(tiers=[_tier(field, above)], **free) == [(f"#/tiers/0/{field}", "less_than_equal")]
    refused: list[object] = [True, "5", [5], math.nan, math.inf]
    for wrong in refused:
        ((pointer, _),) = _faults(tiers=[_tier(field, wrong)], **free)
        assert pointer == f"#/tiers/0/{field}"


def test_the_bounds_of_every_number_are_tested() -> None:
    schema = ScenarioSpec.model_json_schema()["$defs"]["TierSpec"]["properties"]
    numbers = {
        name
        for name, described in schema.items()
        if {arm.get("type") for arm in described.get("anyOf", [described])} & {"integer", "number"}
    }
    assert numbers == {field for field, _, _ in BOUNDS}


def test_the_defaults_are_those_that_the_docs_name() -> None:
    spec = ScenarioSpec.model_validate(
        article(tiers=[HOST, PEER, NVME], failure_mix=[{"kind": "node_loss", "fraction": 1}])
    )
    assert spec.tiers is not None
    assert spec.failure_mix is not None
    assert [tier.copies for tier in spec.tiers] == [1, 2, 1]
    assert [tier.versions for tier in spec.tiers] == [2, 2, 2]
    assert spec.failure_mix[0].struck_nodes == 1
    assert [tier.kind for tier in spec.tiers] == list(TierKind)[:3]
    assert spec.failure_mix[0].kind is FailureKind.NODE_LOSS


def test_null_means_absent_in_an_item_too() -> None:
    nulls = {**HOST, "replicas": None, "durable_lag_seconds": None, "versions": None}
    text = json.dumps(article(tiers=[nulls]))
    assert ScenarioSpec.model_validate_json(text) == ScenarioSpec.model_validate(article(tiers=[HOST]))
