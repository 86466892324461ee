"""What a scenario may say: bounds on both sides, what is missing, what contradicts itself, and where that is said."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from service.sizing import presets
from service.sizing.size import size
from service.sizing.spec import ClusterSpec, IntervalRule, SaveMode, ScenarioSpec
from tests.sizing.scenarios import DEEPSEEK_V3, TINY_LLAMA, Body, article, bodies

PARTS = {"detect_seconds": 30, "reschedule_seconds": 60, "initialise_seconds": 100, "warm_up_seconds": 20}
SPARES = {**PARTS, "reschedule_seconds": 0, "load_seconds": 5, "reschedule_without_spares_seconds": 9}
GPU = {"component": "gpu", "per_node": 8, "mtbf_hours": 50_000}
OBSERVED = {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16384}

LISTS = ("tiers", "failure_mix")
"""Blocks that are lists; what an item may say is tested in test_spec_tiers."""


def _faults(body: Body) -> list[tuple[str, str]]:
    """Return pointer and code of every fault, the way the API names them."""
    with pytest.raises(ValidationError) as caught:
        ScenarioSpec.model_validate(body)
    found = []
    for error in caught.value.errors():
        at = "#" + "".join(f"/{part}" for part in error["loc"])
        carried = error.get("ctx", {}).get("faults")
        if carried is None:
            found.append((at, error["type"]))
        else:
            assert error["msg"] == carried[0].detail
            found += [(at + fault.pointer, fault.code) for fault in carried]
            assert all(fault.detail.endswith(".") for fault in carried)
    return found


def _nested(levels: int) -> list[object]:
    inner: list[object] = []
    for _ in range(levels):
        inner = [inner]
    return inner


MISSING = [
    *(
        ({block: None}, [(f"#/{block}", "missing")])
        for block in ("model", "cluster", "failures", "restart", "save")
    ),
    ({"model": {}}, [("#/model/parameters", "missing")]),
    ({"model": {"bytes_per_parameter": 14}}, [("#/model/parameters", "missing")]),
    ({"model": {"parameters": 5, "ema_copy": True}}, [("#/model/recipe", "missing")]),
    ({"model": {"parameters": 5, "adapter_parameters": 5}}, [("#/model/recipe", "missing")]),
    ({"model": {"preset": "llama-2-7b", "lora_rank": 5}}, [("#/model/recipe", "missing")]),
    ({"model": {"parameters": 5, "recipe": "lora_adam"}}, [("#/model/adapter_parameters", "missing")]),
    (
        {
            "model": {
                "parameters": 5,
                "recipe": "lora_adam",
                "adapter_parameters": 5,
                "lora_targets": ["mlp"],
            }
        },
        [("#/model/lora_rank", "missing")],
    ),
    ({"model": {"parameters": 5, "full_every": 5}}, [("#/model/differential_fraction", "missing")]),
    ({"model": {"parameters": 5, "differential_fraction": 0.5}}, [("#/model/full_every", "missing")]),
    ({"model": {"config": {}}}, [("#/model/config/model_type", "missing")]),
    (
        {"model": {"config": {"model_type": "llama", **dict.fromkeys(TINY_LLAMA)} | {"model_type": "llama"}}},
        [
            (f"#/model/config/{key}", "missing")
            for key in (
                "hidden_size",
                "num_hidden_layers",
                "vocab_size",
                "num_attention_heads",
                "intermediate_size",
            )
        ],
    ),
    ({"cluster": {}}, [("#/cluster/gpus", "missing")]),
    ({"cluster": {"gpu_preset": "h100-sxm"}}, [("#/cluster/gpus", "missing")]),
    ({"failures": {}}, [("#/failures", "missing")]),
    (
        {"failures": {"observed_hours": 5}},
        [("#/failures/observed_failures", "missing"), ("#/failures/observed_gpus", "missing")],
    ),
    ({"failures": {"mtbf_gpus": 8}}, [("#/failures/mtbf_hours", "missing")]),
    ({"restart": {}}, [("#/restart/seconds", "missing")]),
    (
        {"restart": {"detect_seconds": 5}},
        [(f"#/restart/{name}", "missing") for name in PARTS if name != "detect_seconds"],
    ),
    ({"restart": PARTS, "restore": None}, [("#/restart/load_seconds", "missing")]),
    ({"save": {}}, [("#/save/mode", "missing")]),
    ({"save": {"mode": "sync"}}, [("#/save/blocking_seconds", "missing")]),
    (
        {"save": {"mode": "sync"}, "storage": {"read_gb_per_second": 5, "usable_tb": 5}},
        [("#/save/blocking_seconds", "missing")],
    ),
    ({"save": {"mode": "async"}}, [("#/save/blocking_seconds", "missing")]),
    (
        {"save": {"mode": "async"}, "storage": {"write_gb_per_second": 5}},
        [("#/save/blocking_seconds", "missing")],
    ),
    ({"interval": {"rule": "fixed"}}, [("#/interval/seconds", "missing")]),
    ({"restore": {}}, [("#/restore/target_seconds", "missing")]),
    ({"storage": {}}, [("#/storage", "missing")]),
    ({"storage": {"usable_tb": None}}, [("#/storage", "missing")]),
]

CONTRADICTIONS = [
    ({"model": {"preset": "llama-3-70b", "parameters": 7e10}}, [("#/model/preset", "contradiction")]),
    ({"model": {"preset": "gpt-9"}}, [("#/model/preset", "unknown_preset")]),
    ({"model": {"preset": "gpt-9", "recipe": "muon_mixed"}}, [("#/model/preset", "unknown_preset")]),
    (
        {"model": {"preset": "gpt-9", "recipe": "lora_adam", "lora_rank": 8}},
        [("#/model/preset", "unknown_preset")],
    ),
    ({"model": {"parameters": 5, "config": TINY_LLAMA}}, [("#/model/config", "contradiction")]),
    ({"model": {"preset": "llama-2-7b", "config": TINY_LLAMA}}, [("#/model/config", "contradiction")]),
    (
        {"model": {"parameters": 5, "recipe": "adam_fp32", "bytes_per_parameter": 14}},
        [("#/model/recipe", "contradiction")],
    ),
    ({"model": {"parameters": 5, "recipe": "adam"}}, [("#/model/recipe", "unknown_preset")]),
    ({"model": {"parameters": 5, "recipe": "muon_mixed"}}, [("#/model/recipe", "needs_shape")]),
    (
        {"model": {"parameters": 5, "recipe": "adam_fp32", "adapter_parameters": 5}},
        [("#/model/adapter_parameters", "contradiction")],
    ),
    (
        {"model": {"parameters": 5, "recipe": "lora_adam", "lora_rank": 5}},
        [("#/model/lora_rank", "needs_shape")],
    ),
    (
        {"model": {"config": TINY_LLAMA, "recipe": "lora_adam", "lora_rank": 5, "adapter_parameters": 5}},
        [("#/model/lora_rank", "contradiction")],
    ),
    (
        {
            "model": {
                "config": TINY_LLAMA,
                "recipe": "lora_adam",
                "lora_rank": 5,
                "lora_targets": ["routed_experts", "mlp"],
            }
        },
        [("#/model/lora_targets", "unknown_part")],
    ),
    (
        {"model": {"preset": "kimi-k2", "recipe": "lora_adam", "lora_rank": 1_000_000}},
        [("#/model/lora_rank", "too_large")],
    ),
    (
        {"model": {"parameters": 5, "reduction_factor": 1.0, "compression_factor": 0.5}},
        [("#/model/reduction_factor", "contradiction")],
    ),
    (
        {
            "model": {
                "parameters": 5,
                "deduplication_factor": 0.5,
                "differential_fraction": 0.5,
                "full_every": 5,
            }
        },
        [("#/model/deduplication_factor", "contradiction")],
    ),
    (
        {"model": {"config": {"model_type": "rwkv"}, "recipe": "muon_mixed"}},
        [("#/model/config/model_type", "unknown_architecture")],
    ),
    (
        {"model": {"config": TINY_LLAMA | {"hidden_size": "64"}, "recipe": "lora_adam", "lora_rank": 8}},
        [("#/model/config/hidden_size", "not_a_count")],
    ),
    ({"model": {"config": TINY_LLAMA | {"x": _nested(17)}}}, [("#/model/config", "too_deep")]),
    ({"model": {"config": TINY_LLAMA | {"x": [0] * 40_000}}}, [("#/model/config", "too_large")]),
    ({"model": {"config": TINY_LLAMA | {"x": [10**5000]}}}, [("#/model/config", "non_finite_number")]),
    ({"model": {"config": TINY_LLAMA | {"x": math.inf}}}, [("#/model/config", "non_finite_number")]),
    (
        {"model": {"preset": "gpt-9", "parameters": 7e10}},
        [("#/model/preset", "contradiction"), ("#/model/preset", "unknown_preset")],
    ),
    ({"cluster": {"gpus": 8, "gpu_preset": "h1000"}}, [("#/cluster/gpu_preset", "unknown_preset")]),
    ({"failures": {"preset": "nobody"}}, [("#/failures/preset", "unknown_preset")]),
    (
        {"failures": {"preset": "llama-3-405b", **OBSERVED}},
        [("#/failures/preset", "contradiction"), ("#/failures/observed_failures", "contradiction")],
    ),
    (
        {"failures": {"mtbf_hours": 3, **OBSERVED}},
        [("#/failures/observed_failures", "contradiction"), ("#/failures/mtbf_hours", "contradiction")],
    ),
    (
        {"failures": {"preset": "llama-3-405b", "mtbf_gpus": 8, "observed_hours": 2}},
        [
            ("#/failures/preset", "contradiction"),
            ("#/failures/observed_hours", "contradiction"),
            ("#/failures/mtbf_gpus", "contradiction"),
            ("#/failures/observed_failures", "missing"),
            ("#/failures/observed_gpus", "missing"),
            ("#/failures/mtbf_hours", "missing"),
        ],
    ),
    (
        {"failures": {"per_1000_node_days": 6.5, "components": [GPU]}},
        [("#/failures/components", "contradiction"), ("#/failures/per_1000_node_days", "contradiction")],
    ),
    (
        {"failures": {"components": [GPU, {**GPU, "component": "nic"}, GPU]}},
        [("#/failures/components/2/component", "duplicate")],
    ),
    (
        {"failures": {"components": [GPU, {"component": "NIC 1", "per_node": 0, "mtbf_hours": 1e11}]}},
        [
            ("#/failures/components/1/component", "string_pattern_mismatch"),
            ("#/failures/components/1/per_node", "greater_than_equal"),
            ("#/failures/components/1/mtbf_hours", "less_than_equal"),
        ],
    ),
    (
        {"failures": {"components": [{"component": "gpu"}]}},
        [("#/failures/components/0/per_node", "missing"), ("#/failures/components/0/mtbf_hours", "missing")],
    ),
    ({"failures": {"components": []}}, [("#/failures/components", "too_short")]),
    (
        {"failures": {"preset": "llama-3-405b", "counts": "All."}},
        [("#/failures/counts", "contradiction")],
    ),
    ({"failures": {**OBSERVED, "counts": ""}}, [("#/failures/counts", "string_too_short")]),
    ({"failures": {**OBSERVED, "counts": "a\nb"}}, [("#/failures/counts", "string_pattern_mismatch")]),
    (
        {"failures": {"mtbf_hours": 3, "observed_planned": 4}},
        [
            ("#/failures/observed_planned", "contradiction"),
            ("#/failures/mtbf_hours", "contradiction"),
            ("#/failures/observed_failures", "missing"),
        ],
    ),
    ({"failures": {"observed_planned": 4}}, [("#/failures/observed_failures", "missing")]),
    ({"storage": {"preset": "nobody"}}, [("#/storage/preset", "unknown_preset")]),
    ({"storage": {"preset": "deepseek-3fs", "usable_tb": 5}}, [("#/storage/preset", "nothing_sustained")]),
    (
        {"restart": {"seconds": 600, "detect_seconds": 5, "load_seconds": 5}},
        [("#/restart/detect_seconds", "contradiction"), ("#/restart/load_seconds", "contradiction")],
    ),
    ({"restart": {"seconds": 119}}, [("#/restart/seconds", "too_small")]),
    ({"restart": {"seconds": 600, "spare_nodes": 4}}, [("#/restart/spare_nodes", "contradiction")]),
    (
        {"restart": {**PARTS, "spare_nodes": 4, "repair_hours": 48}},
        [("#/restart/reschedule_without_spares_seconds", "missing")],
    ),
    (
        {"restart": {**PARTS, "reschedule_without_spares_seconds": 90}},
        [("#/restart/spares_exhausted_fraction", "missing")],
    ),
    (
        {
            "restart": {
                **PARTS,
                "reschedule_without_spares_seconds": 59,
                "spares_exhausted_fraction": 0.1,
            }
        },
        [("#/restart/reschedule_without_spares_seconds", "contradiction")],
    ),
    (
        {"restart": {**PARTS, "reschedule_without_spares_seconds": 90, "node_loss_fraction": 0.8}},
        [("#/restart/spare_nodes", "missing"), ("#/restart/repair_hours", "missing")],
    ),
    (
        {
            "restart": {
                **PARTS,
                "reschedule_without_spares_seconds": 90,
                "spares_exhausted_fraction": 0.1,
                "spare_nodes": 4,
            }
        },
        [("#/restart/spare_nodes", "contradiction")],
    ),
    (
        {"save": {"mode": "sync", "blocking_seconds": 6, "overhead_fraction": 0.01}},
        [("#/save/overhead_fraction", "contradiction")],
    ),
    (
        {
            "save": {
                "mode": "sync",
                "blocking_seconds": 6,
                "overhead_fraction": 0.01,
                "headroom": 2,
                "durable_lag_seconds": 5,
                "staging_buffers": 1,
            }
        },
        [
            ("#/save/overhead_fraction", "contradiction"),
            ("#/save/headroom", "contradiction"),
            ("#/save/durable_lag_seconds", "contradiction"),
            ("#/save/staging_buffers", "contradiction"),
        ],
    ),
    (
        {"save": {"mode": "async", "blocking_seconds": 6, "copy_seconds": 5, "drain_overlaps_copy": True}},
        [("#/save/staging_budget_bytes_per_node", "missing")] * 2,
    ),
    (
        {
            "save": {
                "mode": "sync",
                "blocking_seconds": 6,
                "staging_budget_bytes_per_node": 5,
                "copy_seconds": 5,
                "drain_overlaps_copy": False,
            }
        },
        [
            ("#/save/staging_budget_bytes_per_node", "contradiction"),
            ("#/save/copy_seconds", "contradiction"),
            ("#/save/drain_overlaps_copy", "contradiction"),
        ],
    ),
    (
        {
            "save": {"mode": "async", "blocking_seconds": 6, "staging_budget_bytes_per_node": 10**12 + 1},
            "cluster": {"gpus": 16384, "host_memory_bytes_per_node": 10**12},
        },
        [("#/save/staging_budget_bytes_per_node", "too_large")],
    ),
    *(
        ({"interval": {"rule": rule, "seconds": 600}}, [("#/interval/seconds", "contradiction")])
        for rule in ("exact", "young", "daly")
    ),
    ({"interval": {"seconds": 600}}, [("#/interval/seconds", "contradiction")]),
    ({"save": {"mode": "sync", "blocking_seconds": 600}}, [("#/save/blocking_seconds", "too_large")]),
    ({"shards": {"writers": 16385}}, [("#/shards/writers", "too_large")]),
    ({"shards": {"skew": 16385}}, [("#/shards/skew", "too_large")]),
    ({"shards": {"skew": 9, "writers": 8}}, [("#/shards/skew", "too_large")]),
    ({"shards": {"skew": 2, "largest_shard_bytes": 10**9}}, [("#/shards/skew", "contradiction")]),
    (
        {"shards": {"writers": 16385}, "save": {"mode": "sync"}, "restart": {"seconds": 1}},
        [
            ("#/shards/writers", "too_large"),
            ("#/save/blocking_seconds", "missing"),
            ("#/restart/seconds", "too_small"),
        ],
    ),
    (
        {"model": {}, "failures": {}, "interval": {"rule": "fixed"}},
        [("#/model/parameters", "missing"), ("#/failures", "missing"), ("#/interval/seconds", "missing")],
    ),
]


@pytest.mark.parametrize(("blocks", "faults"), MISSING + CONTRADICTIONS)
def test_what_is_missing_or_contradicts_is_named_all_at_once(
    blocks: Body, faults: list[tuple[str, str]]
) -> None:
    assert _faults(article(**blocks)) == faults


@pytest.mark.parametrize("restart", [120, 600])
def test_a_restart_may_be_all_load(restart: float) -> None:
    ScenarioSpec.model_validate(article(restart={"seconds": restart}))


BOUNDS: list[tuple[str, str, float, float]] = [
    ("model", "parameters", 1, 10**14),
    ("model", "bytes_per_parameter", 0.01, 64),
    ("model", "extra_bytes", 0, 10**15),
    ("model", "reduction_factor", 1e-4, 1),
    ("model", "adapter_parameters", 1, 10**14),
    ("model", "lora_rank", 1, 10**6),
    ("model", "extra_bytes_per_rank", 0, 10**8),
    ("model", "compression_factor", 1e-4, 1),
    ("model", "deduplication_factor", 1e-4, 1),
    ("model", "differential_fraction", 1e-4, 1),
    ("model", "full_every", 2, 1000),
    ("cluster", "gpus", 1, 10**7),
    ("cluster", "gpus_per_node", 1, 1024),
    ("cluster", "host_memory_bytes_per_node", 1, 10**15),
    ("shards", "writers", 1, 10**7),
    ("shards", "files_per_writer", 1, 10**5),
    ("shards", "largest_shard_bytes", 1, 10**16),
    ("shards", "skew", 1, 1e7),
    ("failures", "observed_failures", 0, 10**9),
    ("failures", "observed_planned", 0, 10**9),
    ("failures", "observed_hours", 1e-3, 1e8),
    ("failures", "observed_gpus", 1, 10**8),
    ("failures", "mtbf_hours", 1e-4, 1e10),
    ("failures", "mtbf_gpus", 1, 10**8),
    ("failures", "per_1000_node_days", 1e-9, 1e9),
    ("failures", "early_life_factor", 1, 1000),
    *(("restart", name, 0, 1e7) for name in ("seconds", "load_seconds", *PARTS)),
    ("restart", "reschedule_without_spares_seconds", 0, 1e7),
    ("restart", "spares_exhausted_fraction", 0, 1),
    ("restart", "spare_nodes", 0, 10**6),
    ("restart", "repair_hours", 1e-3, 1e6),
    ("restart", "node_loss_fraction", 1e-6, 1),
    ("save", "blocking_seconds", 1e-6, 1e7),
    ("save", "overhead_fraction", 1e-6, 0.99),
    ("save", "headroom", 1, 100),
    ("save", "durable_lag_seconds", 1e-6, 1e7),
    ("save", "staging_buffers", 1, 16),
    ("save", "staging_budget_bytes_per_node", 1, 10**15),
    ("save", "copy_seconds", 1e-6, 1e7),
    ("save", "step_seconds", 1e-6, 1e7),
    ("interval", "seconds", 1e-3, 1e9),
    ("restore", "target_seconds", 1e-6, 1e7),
    ("restore", "read_amplification", 0.01, 10_000),
    ("retention", "hot_copies", 1, 100_000),
    ("retention", "hot_protection_fraction", 0, 10),
    ("retention", "cold_copies", 0, 100_000),
    ("retention", "cold_protection_fraction", 0, 10),
    ("storage", "write_gb_per_second", 1e-6, 1e9),
    ("storage", "read_gb_per_second", 1e-6, 1e9),
    ("storage", "node_gb_per_second", 1e-6, 1e9),
    ("storage", "thread_gb_per_second", 1e-6, 1e9),
    ("storage", "file_creates_per_second", 1e-3, 1e12),
    ("storage", "usable_tb", 1e-6, 9e6),
    ("prices", "gpu_hour_usd", 0, 1e6),
    ("prices", "hot_usd_per_tb_month", 0, 1e6),
    ("prices", "cold_usd_per_tb_month", 0, 1e6),
]
WHOLE = {
    "parameters", "extra_bytes", "gpus", "gpus_per_node", "host_memory_bytes_per_node", "writers",
    "files_per_writer", "largest_shard_bytes", "observed_failures", "observed_planned", "observed_gpus", "mtbf_gpus",
    "staging_buffers", "hot_copies", "cold_copies", "spare_nodes", "staging_budget_bytes_per_node",
    "adapter_parameters", "lora_rank", "extra_bytes_per_rank", "full_every",
}  # fmt: skip


def _body(block: str, field: str, value: object) -> Body:
    """Return a body that holds a field and whatever it needs beside it, and nothing against it."""
    gpus = {"gpus": 10**7}
    blocks: dict[tuple[str, str], Body] = {
        ("cluster", ""): gpus,
        ("failures", "observed"): OBSERVED,
        ("failures", "mtbf"): {"mtbf_hours": 3},
        ("failures", "early"): {"mtbf_hours": 3},
        ("restore", ""): {"target_seconds": 5},
        ("save", "headroom"): {"mode": "async", "blocking_seconds": 5},
        ("save", "step"): {"mode": "sync", "blocking_seconds": 5},
        ("save", "durable"): {"mode": "async", "blocking_seconds": 5},
        ("save", "copy"): {"mode": "async", "blocking_seconds": 5, "staging_budget_bytes_per_node": 5},
        ("save", "staging"): {"mode": "async", "blocking_seconds": 5},
        ("save", ""): {"mode": "sync"},
        ("interval", ""): {"rule": "fixed"},
        ("model", "adapter"): {"parameters": 1, "recipe": "lora_adam"},
        ("model", "lora"): {"preset": "llama-2-7b", "recipe": "lora_adam"},
        ("model", "differential"): {"parameters": 1, "full_every": 2},
        ("model", "full_every"): {"parameters": 1, "differential_fraction": 0.5},
        ("model", "parameters"): {},
        ("model", ""): {"parameters": 1},
        ("restart", "seconds"): {},
        ("restart", "reschedule_without"): {
            **PARTS,
            "reschedule_seconds": 0,
            "load_seconds": 5,
            "spares_exhausted_fraction": 0.1,
        },
        ("restart", "spares_ex"): SPARES,
        ("restart", "spare_nodes"): {**SPARES, "spare_nodes": 2, "repair_hours": 48},
        ("restart", "repair"): {**SPARES, "spare_nodes": 2},
        ("restart", "node"): {**SPARES, "spare_nodes": 2, "repair_hours": 48},
        ("restart", ""): {**PARTS, "load_seconds": 5},
    }
    beside = next(
        (fields for (name, start), fields in blocks.items() if name == block and field.startswith(start)), {}
    )
    body = article(
        cluster=gpus,
        restart={"seconds": 1e7},
        restore=None,
        save={"mode": "sync", "overhead_fraction": 0.5},
        interval=None,
    )
    return {**body, block: {**beside, field: value}}


@pytest.mark.parametrize(("block", "field", "low", "high"), BOUNDS)
def test_a_number_is_taken_at_its_bounds_and_refused_beyond(
    block: str, field: str, low: float, high: float
) -> None:
    for value in (low, high):
        read: Any = ScenarioSpec.model_validate(_body(block, field, value))
        assert getattr(getattr(read, block), field) == value
    if field in WHOLE:
        below, above = low - 1, high + 1
    else:
        below, above = (low - 1e-9 if low == 0 else math.nextafter(low, -1)), math.nextafter(high, math.inf)
    assert _faults(_body(block, field, below)) == [(f"#/{block}/{field}", "greater_than_equal")]
    assert _faults(_body(block, field, above)) == [(f"#/{block}/{field}", "less_than_equal")]


@pytest.mark.parametrize(("block", "field", "low", "high"), BOUNDS)
def test_what_is_no_finite_number_is_refused_where_it_stands(
    block: str, field: str, low: float, high: float
) -> None:
    refused: list[object] = [True, False, "5", "", [5], {}, math.nan, math.inf, -math.inf]
    for value in refused:
        ((pointer, _),) = _faults(_body(block, field, value))
        assert pointer == f"#/{block}/{field}"
    if field in WHOLE:
        assert _faults(_body(block, field, 1.5)) == [(f"#/{block}/{field}", "int_type")]
        read: Any = ScenarioSpec.model_validate_json(json.dumps(_body(block, field, float(high))))
        assert type(getattr(getattr(read, block), field)) is int


@pytest.mark.parametrize(("field", "low", "high"), [("per_node", 1e-4, 1e5), ("mtbf_hours", 1e-4, 1e10)])
def test_a_number_of_a_component_is_taken_at_its_bounds_and_refused_beyond(
    field: str, low: float, high: float
) -> None:
    def body(value: float) -> Body:
        return article(failures={"components": [{**GPU, field: value}]})

    for value in (low, high):
        components = ScenarioSpec.model_validate(body(value)).failures.components
        assert components is not None
        assert getattr(components[0], field) == value
    pointer = f"#/failures/components/0/{field}"
    assert _faults(body(math.nextafter(low, -1))) == [(pointer, "greater_than_equal")]
    assert _faults(body(math.nextafter(high, math.inf))) == [(pointer, "less_than_equal")]


def test_a_stated_figure_goes_before_that_of_a_storage_preset() -> None:
    storage = {"preset": "llama-3-tectonic", "write_gb_per_second": 5}
    system = ScenarioSpec.model_validate(article(storage=storage)).storage_system
    assert system is not None
    assert (system.write_gb_per_second, system.read_gb_per_second, system.usable_tb) == (5, 2000, None)


def test_the_bounds_of_every_number_are_tested() -> None:
    def numbers() -> set[tuple[str, str]]:
        schema = ScenarioSpec.model_json_schema()
        found = set()
        for block, reference in schema["properties"].items():
            if block in LISTS:
                continue
            arms = reference.get("anyOf", [reference])
            name = next(arm["$ref"] for arm in arms if "$ref" in arm).rpartition("/")[2]
            for field, described in schema["$defs"][name]["properties"].items():
                kinds = {arm.get("type") for arm in described.get("anyOf", [described])}
                if kinds & {"integer", "number"}:
                    found.add((block, field))
        return found

    assert numbers() == {(block, field) for block, field, _, _ in BOUNDS}


def test_a_config_is_kept_as_it_was_with_what_does_not_matter() -> None:
    config = TINY_LLAMA | {"rope_scaling": None, "architectures": ["X"], "auto_map": {"a": [1, 2.5, True]}}
    spec = ScenarioSpec.model_validate(article(model={"config": config}))
    assert spec.model.config == config
    again = ScenarioSpec.model_validate_json(spec.model_dump_json(exclude_none=True, exclude_unset=True))
    assert again == spec
    assert again.model.config == config


def test_a_null_in_a_config_is_kept_for_what_it_says() -> None:
    spec = ScenarioSpec.model_validate(article(model={"config": DEEPSEEK_V3 | {"q_lora_rank": None}}))
    again = ScenarioSpec.model_validate_json(spec.model_dump_json(exclude_none=True, exclude_unset=True))
    assert again.parameters == spec.parameters


@pytest.mark.parametrize("config", [5, "llama", [], True, [TINY_LLAMA]])
def test_a_config_that_is_no_object_is_refused(config: object) -> None:
    assert _faults(article(model={"config": config})) == [("#/model/config", "dict_type")]


def test_deep_nesting_is_refused_and_not_walked_into() -> None:
    assert _faults(article(model={"config": TINY_LLAMA | {"x": _nested(50_000)}})) == [
        ("#/model/config", "too_deep")
    ]


def test_4_05e11_is_an_integer() -> None:
    text = json.dumps(article()).replace("405000000000", "4.05e11")
    assert "4.05e11" in text
    assert ScenarioSpec.model_validate_json(text) == ScenarioSpec.model_validate(article())


def test_null_means_absent_everywhere() -> None:
    nulls = {
        name: {**article().get(name, {}), **dict.fromkeys(_optional(name))}
        for name in ("model", "cluster", "failures", "restart", "save", "interval", "restore", "prices")
    }
    spelled = {**article(), **nulls, "shards": None, "storage": None}
    assert ScenarioSpec.model_validate(spelled) == ScenarioSpec.model_validate(article())


def _optional(block: str) -> set[str]:
    model: Any = ScenarioSpec.model_fields[block].annotation
    inner = next(arm for arm in getattr(model, "__args__", (model,)) if hasattr(arm, "model_fields"))
    return set(inner.model_fields) - set(article()[block])


def test_null_for_a_default_is_the_default() -> None:
    spec = ScenarioSpec.model_validate(
        article(
            model={"parameters": 5, "bytes_per_parameter": None},
            interval={"rule": None},
            shards={"skew": None},
        )
    )
    assert (spec.model.bytes_per_parameter, spec.interval.rule) == (None, IntervalRule.EXACT)
    assert size(spec).model.bytes_per_parameter == 14.0


@pytest.mark.parametrize("block", [block for block in ScenarioSpec.model_fields if block not in LISTS])
def test_an_unknown_field_is_refused_where_it_stands(block: str) -> None:
    body = article(shards={"skew": 2}, storage={"usable_tb": 9})
    body[block] = {**body[block], "colour": 1}
    assert _faults(body) == [(f"#/{block}/colour", "extra_forbidden")]


def test_an_unknown_block_is_refused() -> None:
    assert _faults(article(colour={"gpus": 1})) == [("#/colour", "extra_forbidden")]


@pytest.mark.parametrize("block", list(ScenarioSpec.model_fields))
@pytest.mark.parametrize("value", [5, "x", [], True])
def test_a_block_that_is_no_object_is_refused(block: str, value: object) -> None:
    assert [pointer for pointer, _ in _faults({**article(), block: value})] == [f"#/{block}"]


@pytest.mark.parametrize(("block", "field"), [("save", "mode"), ("interval", "rule")])
def test_a_word_that_is_none_of_the_choices_is_refused(block: str, field: str) -> None:
    for value in ("sometimes", 1, True, ""):
        body = article()
        body[block] = {**body[block], field: value}
        assert _faults(body) == [(f"#/{block}/{field}", "enum")]


def test_the_defaults_are_those_of_the_contract() -> None:
    spec = ScenarioSpec.model_validate(
        {
            "model": {"parameters": 1},
            "cluster": {"gpus": 1},
            "failures": {"preset": "llama-3-405b"},
            "restart": {"seconds": 1},
            "save": {"mode": "sync", "overhead_fraction": 0.1},
            "restore": {"target_seconds": 1},
            "retention": {},
        }
    )
    assert size(spec).model.bytes_per_parameter == 14
    assert spec.model.extra_bytes == 0
    assert size(spec).checkpoint.bytes == 14
    assert spec.cluster.gpus_per_node == 8
    assert spec.shards.files_per_writer == 1
    assert spec.interval.rule is IntervalRule.EXACT
    assert spec.restore is not None
    assert spec.restore.read_amplification is None
    assert spec.retention is not None
    assert spec.retention.model_dump() == {
        "hot_copies": 1,
        "hot_protection_fraction": 0.0,
        "cold_copies": 0,
        "cold_protection_fraction": 0.0,
    }
    assert spec.save.mode is SaveMode.SYNC


@settings(derandomize=True, deadline=None, max_examples=100)
@given(body=bodies())
def test_a_spec_survives_storing_it(body: Body) -> None:
    spec = ScenarioSpec.model_validate(body)
    assert ScenarioSpec.model_validate_json(spec.model_dump_json()) == spec
    assert ScenarioSpec.model_validate_json(spec.model_dump_json(exclude_none=True)) == spec


@pytest.mark.parametrize("name", presets.models())
def test_the_parameters_of_a_preset_are_the_specs(name: str) -> None:
    spec = ScenarioSpec.model_validate(article(model={"preset": name}))
    assert spec.parameters == presets.models()[name].parameters


@pytest.mark.parametrize(
    ("cluster", "memory_bytes"),
    [
        ({"gpus": 8, "gpu_preset": "h100-sxm", "host_memory_bytes_per_node": 5}, 5),
        ({"gpus": 8, "gpu_preset": "h100-sxm"}, 2_000_000_000_000),
        ({"gpus": 8, "gpu_preset": "h100-sxm", "gpus_per_node": 4}, None),
        ({"gpus": 8}, None),
    ],
)
def test_the_memory_of_a_node_is_the_given_one_or_its_presets_for_such_a_node(
    cluster: dict[str, object], memory_bytes: int | None
) -> None:
    assert ClusterSpec.model_validate(cluster).node_memory_bytes == memory_bytes
