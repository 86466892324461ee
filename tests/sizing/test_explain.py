"""The explanation: a line for every figure, and each line gives its figure when it is worked out again."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from service.errors import Unsatisfiable
from service.sizing.formulas import REGISTER
from service.sizing.size import size
from service.sizing.sizing import Explanation, Sizing
from service.sizing.spec import ScenarioSpec
from service.units import UNITS_BY_SUFFIX
from tests.sizing.scenarios import DEEPSEEK_V3, TINY_LLAMA, Body, article, bodies

STORAGE = {
    "write_gb_per_second": 40.0,
    "read_gb_per_second": 30.0,
    "node_gb_per_second": 5.0,
    "file_creates_per_second": 5000.0,
    "usable_tb": 100.0,
}
ASYNC = {"mode": "async", "blocking_seconds": 5}
PARTS = {"detect_seconds": 30, "reschedule_seconds": 60, "initialise_seconds": 100, "warm_up_seconds": 20}
PRICES = {"gpu_hour_usd": 2.35, "hot_usd_per_tb_month": 20, "cold_usd_per_tb_month": 3}

LLAMA_405B = {"preset": "llama-3-405b"}
TIERS: list[Body] = [
    {"kind": "host_memory", "interval_seconds": 60, "blocking_seconds": 0.5, "node_read_gb_per_second": 20},
    {
        "kind": "peer_memory",
        "interval_seconds": 120,
        "blocking_seconds": 0,
        "durable_lag_seconds": 10,
        "restore_seconds": 10,
    },
    {
        "kind": "node_local_nvme",
        "interval_seconds": 300,
        "blocking_seconds": 1,
        "node_write_gb_per_second": 0.1,
        "read_gb_per_second": 2000,
        "replicas": 2,
        "drives_per_node": 4,
        "drive_bytes": 1_920_000_000_000,
        "rated_drive_writes_per_day": 1,
    },
]
FAILURE_MIX: list[Body] = [
    {"kind": "process", "fraction": 0.25},
    {"kind": "node_reboot", "nodes": 4, "fraction": 0.25},
    {"kind": "node_loss", "fraction": 0.375},
    {"kind": "node_loss", "nodes": 3, "fraction": 0.125},
]

BODIES: dict[str, Body] = {
    "sync": article(),
    "sync on storage": article(storage=STORAGE, interval={"rule": "exact"}),
    "sync as the storage gives it": article(storage=STORAGE, save={"mode": "sync"}),
    "sync on storage by overhead": article(
        storage=STORAGE, save={"mode": "sync", "overhead_fraction": 0.02}, interval={"rule": "daly"}
    ),
    "sync on storage that only reads": article(
        storage={"read_gb_per_second": 30.0},
        save={"mode": "sync", "overhead_fraction": 9 / 13},
        interval={"rule": "daly"},
    ),
    "sync on storage that is too slow": article(storage={"write_gb_per_second": 1.0}),
    "async": article(save=ASYNC, failures={"preset": "meta-rsc-1"}),
    "async on storage, colliding": article(
        save=ASYNC | {"staging_buffers": 2}, storage=STORAGE | {"write_gb_per_second": 5.0}, prices=PRICES
    ),
    "async on storage, colliding, one buffer": article(
        save=ASYNC, storage=STORAGE | {"write_gb_per_second": 5.0}
    ),
    "async, the exact interval collides": article(
        save=ASYNC | {"durable_lag_seconds": 900}, interval={"rule": "exact"}
    ),
    "async, a second buffer for the overlap": article(
        save=ASYNC | {"durable_lag_seconds": 598, "staging_buffers": 2}
    ),
    "async with a lag, colliding": article(save=ASYNC | {"durable_lag_seconds": 900}, storage=STORAGE),
    "async, presets": article(
        model={"preset": "llama-3-70b"},
        cluster={"gpus": 1024, "gpu_preset": "h100-sxm"},
        failures={"preset": "llama-3-405b"},
        save=ASYNC,
        prices=None,
    ),
    "restart in parts": article(restart=PARTS, storage=STORAGE),
    "restart in all parts": article(restart=PARTS | {"load_seconds": 90}, restore=None, storage=STORAGE),
    "staging that is too small": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 2 * 10**9}, storage=STORAGE
    ),
    "staging that is too small, exact": article(
        save=ASYNC
        | {"staging_budget_bytes_per_node": 10**9, "copy_seconds": 3, "drain_overlaps_copy": False},
        interval={"rule": "exact"},
        storage=STORAGE,
        cluster={"gpus": 16384, "gpu_preset": "h100-sxm"},
    ),
    "staging that is too small, by overhead": article(
        save={"mode": "async", "overhead_fraction": 0.01, "staging_budget_bytes_per_node": 10**9},
        interval={"rule": "daly"},
        storage=STORAGE,
    ),
    "staging that is too small, with a lag": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**9, "durable_lag_seconds": 300},
        interval={"rule": "young"},
    ),
    "staging that is too small, overlapped": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**8, "drain_overlaps_copy": True}, storage=STORAGE
    ),
    "staging whose drain keeps to the stall": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**9, "copy_seconds": 1},
        interval={"rule": "exact"},
        storage=STORAGE,
        cluster={"gpus": 16384, "gpu_preset": "h100-sxm"},
    ),
    "staging whose drain keeps to the stall, overlapped": article(
        save={
            "mode": "async",
            "overhead_fraction": 0.01,
            "staging_budget_bytes_per_node": 10**9,
            "drain_overlaps_copy": True,
            "durable_lag_seconds": 300,
        },
        interval={"rule": "young"},
    ),
    "staging that is large enough": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**11, "staging_buffers": 2, "copy_seconds": 4},
        storage=STORAGE,
    ),
    "staging that is too small for the storage": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**8}, storage=STORAGE | {"write_gb_per_second": 1}
    ),
    "staging that is too small for a storage that only reads": article(
        save=ASYNC | {"staging_budget_bytes_per_node": 10**8}, storage={"read_gb_per_second": 30.0}
    ),
    "restart that loads as the storage reads": article(restart=PARTS, restore=None, storage=STORAGE),
    "restart without spares, so often": article(
        restart=PARTS | {"reschedule_without_spares_seconds": 7200, "spares_exhausted_fraction": 0.1},
        storage={"read_gb_per_second": 30.0},
    ),
    "restart with spares, colliding saves": article(
        restart=PARTS
        | {
            "reschedule_without_spares_seconds": 7200,
            "spare_nodes": 16,
            "repair_hours": 48,
            "node_loss_fraction": 0.78,
        },
        save=ASYNC | {"durable_lag_seconds": 900, "staging_buffers": 3},
    ),
    "restart in parts, storage too slow": article(
        restart=PARTS, storage=STORAGE | {"write_gb_per_second": 1.0}
    ),
    "in a trainer's words": article(
        save=ASYNC | {"step_seconds": 7.3}, storage=STORAGE | {"thread_gb_per_second": 0.3}
    ),
    "threads for what saves need": article(shards={"writers": 700}, storage={"thread_gb_per_second": 0.01}),
    "few writers, one large": article(
        shards={"writers": 100, "files_per_writer": 3, "largest_shard_bytes": 10**12}, storage=STORAGE
    ),
    "two tiers": article(
        retention={"hot_copies": 2, "cold_copies": 50, "cold_protection_fraction": 0.5}, prices=PRICES
    ),
    "layout": article(
        model=LLAMA_405B, cluster={"gpus": 512, "parallelism": {"tensor": 8, "pipeline": 32}}, storage=STORAGE
    ),
    "layout of the benchmark": article(
        model=LLAMA_405B | {"bytes_per_parameter": 12, "extra_bytes": 10**9},
        cluster={"gpus": 512, "parallelism": {"tensor": 8, "pipeline": 32, "rule": "mlperf_storage"}},
        restore={"target_seconds": 120, "read_amplification": 1.5},
        storage=STORAGE,
    ),
    "layout, hybrid-sharded, every replica written": article(
        model=LLAMA_405B,
        cluster={
            "gpus": 1024,
            "gpu_preset": "h100-sxm",
            "parallelism": {
                "tensor": 4,
                "data": 256,
                "zero_stage": 3,
                "shard_group": 64,
                "replicas_written": "all",
                "weight_bytes_per_parameter": 4,
            },
        },
        save=ASYNC,
        storage=STORAGE,
    ),
    "layout, recipe, compressed": article(
        model=LLAMA_405B | {"recipe": "muon_mixed", "compression_factor": 0.7, "extra_bytes_per_rank": 5000},
        cluster={"gpus": 512, "parallelism": {"tensor": 8, "pipeline": 4, "replicas_written": "all"}},
        save=ASYNC,
        storage=STORAGE,
    ),
    "layout, differences": article(
        model=LLAMA_405B | {"differential_fraction": 0.1, "full_every": 6},
        cluster={
            "gpus": 512,
            "parallelism": {"tensor": 8, "pipeline": 4, "pipeline_split": "ends_as_layers"},
        },
        save=ASYNC,
        storage=STORAGE,
    ),
    "layout, experts": article(
        model={"preset": "deepseek-v3"},
        cluster={
            "gpus": 2048,
            "parallelism": {
                "pipeline": 16,
                "expert": 64,
                "layers_per_stage": [4] * 15 + [1],
                "replicas_written": "spread",
            },
        },
        save=ASYNC,
    ),
    "tiers": article(
        cluster={"gpus": 16384, "gpu_preset": "h100-sxm"},
        save=ASYNC,
        interval={"rule": "exact"},
        tiers=TIERS,
    ),
    "tiers under colliding saves": article(
        save=ASYNC | {"durable_lag_seconds": 900, "staging_buffers": 2},
        shards={"skew": 1.2},
        tiers=TIERS[2:],
        failure_mix=FAILURE_MIX,
    ),
    "a tier beside a restart as a whole": article(
        cluster={"gpus": 16384, "host_memory_bytes_per_node": 10**12},
        restore=None,
        prices=None,
        tiers=[
            {"kind": "peer_memory", "interval_seconds": 100, "blocking_seconds": 0.1, "restore_seconds": 9}
            | {"node_write_gb_per_second": 10, "replicas": 3}
        ],
        failure_mix=FAILURE_MIX,
    ),
    "a mixture by its config": article(
        model={"config": DEEPSEEK_V3, "recipe": "muon_mixed", "ema_copy": True, "extra_bytes_per_rank": 5000}
    ),
    "8-bit moments": article(model={"config": TINY_LLAMA, "recipe": "adam_8bit", "reduction_factor": 0.7}),
    "an adapter of a rank": article(
        model={"preset": "mixtral-8x7b", "recipe": "lora_adam", "lora_rank": 16, "ema_copy": True},
        storage=STORAGE,
    ),
    "an adapter of a rank on attention": article(
        model={"config": TINY_LLAMA, "recipe": "lora_adam", "lora_rank": 4, "lora_targets": ["attention"]}
    ),
    "an adapter by its parameters": article(
        model={"parameters": 7e9, "recipe": "lora_adam", "adapter_parameters": 4e6}
    ),
    "a bare count by a recipe": article(model={"parameters": 7e9, "recipe": "lion_mixed", "extra_bytes": 77}),
    "compressed": article(model={"parameters": 7e9, "compression_factor": 0.6}, save=ASYNC, storage=STORAGE),
    "deduplicated": article(
        model={
            "parameters": 7e11,
            "compression_factor": 0.9,
            "deduplication_factor": 0.2,
            "extra_bytes_per_rank": 10**6,
        },
        cluster={"gpus": 1024, "gpu_preset": "h100-sxm"},
        save=ASYNC,
        storage=STORAGE,
        retention={"hot_copies": 3, "cold_copies": 2},
        prices=PRICES,
    ),
    "differences": article(
        model={
            "preset": "llama-3-70b",
            "recipe": "adam_mixed_16",
            "differential_fraction": 0.1,
            "full_every": 6,
            "extra_bytes": 10**9,
        },
        save=ASYNC,
        storage=STORAGE,
        retention={"hot_copies": 7, "cold_copies": 1, "cold_protection_fraction": 0.5},
    ),
    "differences without retention": article(
        model={"parameters": 7e9, "differential_fraction": 0.1, "full_every": 2},
        retention=None,
        storage=STORAGE,
    ),
    "tiny differences": article(
        model={
            "parameters": 9,
            "bytes_per_parameter": 0.5,
            "differential_fraction": 1e-4,
            "full_every": 1000,
        },
        storage=STORAGE,
    ),
    "as little as may be": article(interval=None, restore=None, retention=None, prices=None),
    "components of a new cluster": article(
        failures={
            "components": [
                {"component": "gpu", "per_node": 8, "mtbf_hours": 50_000},
                {"component": "nic", "per_node": 2, "mtbf_hours": 150_000},
                {"component": "leaf-switch", "per_node": 0.0625, "mtbf_hours": 300_000},
            ],
            "early_life_factor": 3,
            "counts": "Field replacements.",
        }
    ),
    "a rate by node": article(failures={"per_1000_node_days": 6.5}, save=ASYNC),
    "nothing failed": article(
        failures={
            "observed_failures": 0,
            "observed_planned": 3,
            "observed_hours": 500,
            "observed_gpus": 16384,
        }
    ),
    "few failures and planned ones, by overhead": article(
        failures={
            "observed_failures": 3,
            "observed_planned": 9,
            "observed_hours": 500,
            "observed_gpus": 16384,
        },
        save={"mode": "async", "overhead_fraction": 0.02, "durable_lag_seconds": 2000},
        interval={"rule": "young"},
    ),
    "no useful time at the low end": article(
        failures={"observed_failures": 1, "observed_hours": 1, "observed_gpus": 16384},
        save={"mode": "sync", "blocking_seconds": 5000},
        interval={"rule": "young"},
    ),
    "a storage system by name": article(
        storage={"preset": "llama-3-tectonic", "read_gb_per_second": 500.0},
        save={"mode": "sync"},
        interval={"rule": "exact"},
    ),
    "tiny": article(
        model={"parameters": 3, "bytes_per_parameter": 0.45},
        restore={"target_seconds": 5, "read_amplification": 0.01},
        storage=STORAGE,
        save=ASYNC,
    ),
}


def _leaves(value: object, at: str = "#") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if (at, key) not in {("#", "explanation"), ("#", "warnings")}:
                yield from _leaves(item, f"{at}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{at}/{index}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at, value


def _explained(body: Body) -> tuple[Sizing, list[Explanation]]:
    sizing = size(ScenarioSpec.model_validate(body), explained=True)
    assert sizing.explanation is not None
    return sizing, sizing.explanation


def _assert_every_figure_is_explained(body: Body) -> None:
    sizing, lines = _explained(body)
    figures = dict(_leaves(sizing.model_dump(mode="json", exclude_none=True)))
    assert Counter(line.pointer for line in lines) == Counter(figures.keys())
    for line in lines:
        inputs = {entry.name: entry.value for entry in line.inputs}
        worked_out = REGISTER[line.formula].function(**inputs)
        figure = figures[line.pointer]
        whole = isinstance(figure, int) and worked_out < 1e9  # whole bytes and counts are rounded
        assert figure == pytest.approx(worked_out, rel=1e-9, abs=0.5 if whole else 1e-300), line


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_figure_has_one_line_that_gives_it(body: Body) -> None:
    _assert_every_figure_is_explained(body)


@settings(derandomize=True, deadline=None, max_examples=120)
@given(body=bodies())
def test_every_figure_of_any_spec_has_one_line_that_gives_it(body: Body) -> None:
    try:
        _assert_every_figure_is_explained(body)
    except Unsatisfiable:
        return


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_line_says_its_formula_source_and_units(body: Body) -> None:
    units = {unit for _, unit in UNITS_BY_SUFFIX} | {"1"}
    for line in _explained(body)[1]:
        assert line.expression == REGISTER[line.formula].expression
        assert line.source
        assert line.inputs
        for entry in line.inputs:
            assert entry.unit in units
            counted = re.fullmatch(
                r".*_parameters|layers_\d+|parameters_per_layer_\d+|parameters_outside_layers|.*_ways|"
                r"compression_factor|deduplication_factor|full_every|lora_rank|matrix_sides",
                entry.name,
            ) or entry.name.rpartition(".")[2] in {
                "gpus", "gpus_per_node", "writers", "files_per_writer", "files", "nodes", "holders", "skew",
                "copies", "parameters", "observed_failures", "observed_gpus", "mtbf_gpus", "headroom",
                "reduction_factor", "read_amplification", "staging_buffers", "replicas", "versions", "lost_nodes",
                "drives_per_node", "saves_per_shared_save", "next_saves", "shared_saves_per_failure",
                "observed_planned", "per_node", "early_life_factor", "spare_nodes", "interval_steps", "writing_ranks",
                "threads",
                "tensor", "pipeline", "data", "data_step", "expert", "expert_tensor", "ranks", "layers",
                "first_stage", "last_stage", "tensor_parameters", "whole_parameters", "expert_parameters",
            }  # fmt: skip
            assert counted or entry.unit != "1" or entry.name.endswith("_fraction"), entry.name


def _line(body: Body, pointer: str) -> Explanation:
    (line,) = (line for line in _explained(body)[1] if line.pointer == pointer)
    return line


def test_even_shards_are_called_an_assumption_only_where_they_are_one() -> None:
    pointer = "#/write/largest_shard_gb_per_second"
    assumed = _line(article(), pointer).assumption
    assert assumed is not None
    assert "neither skew nor largest_shard_bytes was given" in assumed
    assert _line(article(shards={"skew": 1}), pointer).assumption is None
    assert _line(article(shards={"largest_shard_bytes": 1e9}), pointer).assumption is None


def test_a_preset_is_named_as_the_source() -> None:
    body = BODIES["async, presets"]
    assert "arXiv:2407.21783" in _line(body, "#/failures/mtbf_seconds").source
    assert "SemiAnalysis" in _line(body, "#/cost/cluster_usd_per_hour").source
    assert "DGX H100" in _line(body, "#/host_memory/memory_fraction").source


def test_what_is_counted_stands_beside_the_figure() -> None:
    pointer = "#/failures/mtbf_seconds"
    by_preset = _line(article(failures={"preset": "llama-3-405b"}), pointer).assumption
    assert by_preset is not None
    assert by_preset.endswith(
        "Counted: Unexpected interruptions of the job. The 47 planned ones are not counted."
    )
    said = _line(BODIES["components of a new cluster"], pointer).assumption
    assert said == "The cluster is new, and fails 3 times as often as it will. Counted: Field replacements."
    unsaid = _line(article(), pointer).assumption
    assert unsaid is not None
    assert unsaid.endswith("What is counted as a failure is not said.")


def test_a_storage_preset_is_the_source_of_the_figure_that_it_gives_and_of_no_other() -> None:
    body = BODIES["a storage system by name"]
    written = _line(body, "#/delivered/write/seconds")
    assert "arXiv:2407.21783" in written.source
    assert written.assumption is not None
    assert "not said whether it is write or read" in written.assumption
    assert "arXiv" not in _line(body, "#/delivered/read/seconds").source


def test_the_default_headroom_is_called_an_assumption() -> None:
    pointer = "#/write/required_gb_per_second"
    assert _line(article(save=ASYNC), pointer).assumption is not None
    assert _line(article(save=ASYNC | {"headroom": 2.5}), pointer).assumption is None


def test_an_explanation_changes_no_figure() -> None:
    for body in BODIES.values():
        spec = ScenarioSpec.model_validate(body)
        assert size(spec, explained=True).model_copy(update={"explanation": None}) == size(spec)
