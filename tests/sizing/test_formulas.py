"""The register of formulas."""

import inspect
import math
import re

import pytest

from service.sizing.formulas import REGISTER, Formula


@pytest.mark.parametrize("entry", REGISTER.values(), ids=REGISTER.keys())
def test_a_formula_can_be_read_and_traced(entry: Formula) -> None:
    assert entry.expression
    assert entry.source
    assert re.fullmatch(r"[a-z_]+", entry.id)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("checkpoint_bytes", {"parameters": 7, "bytes_per_parameter": 14.0, "reduction_factor": 0.5, "extra_bytes": 9}),
        ("state_item_bytes", {"parameters": 7, "bytes_per_parameter": 1.015625}),
        ("adapter_parameters", {"lora_rank": 16, "matrix_sides": 2_621_440}),
        (
            "counted",
            {
                "layers_1": 3, "parameters_per_layer_1": 5, "layers_2": 4, "parameters_per_layer_2": 7,
                "parameters_outside_layers": 11,
            },
        ),
        (
            "difference_bytes",
            {"state_bytes": 1e9, "compression_factor": 0.5, "differential_fraction": 0.1, "extra_bytes": 7},
        ),
        ("mean_save_bytes", {"checkpoint_bytes": 1e9, "difference_bytes": 1e8, "full_every": 6}),
        ("longest_chain_bytes", {"checkpoint_bytes": 1e9, "difference_bytes": 1e8, "full_every": 6}),
        ("mean_chain_bytes", {"checkpoint_bytes": 1e9, "difference_bytes": 1e8, "full_every": 6}),
        ("whole_bytes", {"state_bytes": 1e9, "compression_factor": 0.5, "extra_bytes": 7}),
        ("restored_read_bytes", {"restored_bytes": 1e9, "read_amplification": 3.0}),
        (
            "kept_shared_bytes",
            {"restored_bytes": 1e9, "checkpoint_bytes": 1e8, "copies": 5, "protection_fraction": 0.5},
        ),
        ("even_share", {"checkpoint_bytes": 1e12, "holders": 7}),
        ("largest_shard", {"checkpoint_bytes": 1e12, "writers": 7, "skew": 1.5}),
        ("file_count", {"writers": 7, "files_per_writer": 3}),
        ("observed_mtbf", {"observed_hours": 10.0, "observed_failures": 3, "observed_gpus": 8, "gpus": 64}),
        ("scaled_mtbf", {"mtbf_hours": 10.0, "mtbf_gpus": 8, "gpus": 64}),
        ("failures_per_day", {"mtbf_seconds": 7.0}),
        ("rate_by_node", {"mtbf_seconds": 7.0, "nodes": 3}),
        (
            "bound_of_no_failures",
            {"observed_hours": 10.0, "observed_gpus": 8, "gpus": 64, "confidence_fraction": 0.95},
        ),
        ("component_share", {"per_node": 8, "mtbf_hours": 50_000.0, "node_mtbf_seconds": 7e6}),
        ("node_mtbf_of_rate", {"rate_per_1000_node_days": 6.5}),
        ("mtbf_of_nodes", {"node_mtbf_seconds": 7e6, "nodes": 3}),
        ("early_life_mtbf", {"settled_mtbf_seconds": 7e6, "early_life_factor": 3.0}),
        ("planned_per_day", {"observed_planned": 47, "observed_hours": 1296.0}),
        ("planned_fraction", {"planned_per_day": 0.5, "restart_seconds": 600.0}),
        (
            "effective_training_time_ratio",
            {"nodes": 2048, "failures_per_node_day": 0.0065, "restart_seconds": 600.0, "interval_seconds": 3600.0},
        ),
        ("young_interval_at_overhead", {"overhead_fraction": 0.01, "mtbf_seconds": 7.0}),
        ("stall", {"overhead_fraction": 0.01, "interval_seconds": 7.0}),
        ("sync_write_bandwidth", {"checkpoint_bytes": 1e12, "blocking_seconds": 7.0}),
        ("minimum_persist_bandwidth", {"checkpoint_bytes": 1e12, "interval_seconds": 7.0}),
        ("persist_bandwidth", {"checkpoint_bytes": 1e12, "interval_seconds": 7.0, "headroom": 2.0}),
        (
            "persist_bandwidth_for_lag",
            {"checkpoint_bytes": 1e12, "interval_seconds": 7.0, "headroom": 2.0, "durable_lag_seconds": 3.0},
        ),
        (
            "persist_bandwidth_for_stall",
            {"checkpoint_bytes": 1e12, "interval_seconds": 7.0, "headroom": 2.0, "drain_limit_seconds": 3.0},
        ),
        (
            "serial_drain_limit",
            {"allowed_seconds": 9.0, "copy_seconds": 5.0, "node_share_bytes": 9e9, "staging_budget_bytes": 2e9},
        ),
        ("overlapped_drain_limit", {"allowed_seconds": 9.0, "node_share_bytes": 9e9, "staging_budget_bytes": 2e9}),
        ("durable_lag", {"interval_seconds": 7.0, "headroom": 2.0}),
        ("read_bytes", {"checkpoint_bytes": 1e12, "read_amplification": 3.0}),
        ("read_bandwidth", {"read_bytes": 1e12, "target_seconds": 7.0}),
        ("share", {"total_gb_per_second": 5.0, "holders": 7}),
        ("shard_bandwidth", {"largest_shard_bytes": 1e12, "window_seconds": 7.0}),
        ("create_rate", {"files": 5, "window_seconds": 7.0}),
        ("largest_node_share", {"checkpoint_bytes": 1e12, "nodes": 7, "writers": 3, "skew": 1.5}),
        ("staging_bytes", {"checkpoint_bytes": 1e12, "nodes": 2, "writers": 3, "skew": 9.0, "staging_buffers": 2}),
        ("kept_bytes", {"checkpoint_bytes": 1e12, "copies": 3, "protection_fraction": 0.5}),
        ("peak_bytes", {"checkpoint_bytes": 1e12, "copies": 3, "protection_fraction": 0.5}),
        ("peak_fraction", {"checkpoint_bytes": 1e12, "copies": 3, "usable_bytes": 1e13}),
        ("tb_to_bytes", {"usable_tb": 3.0}),
        ("first_order_lost_work", {"interval_seconds": 5.0, "mtbf_seconds": 7.0}),
        ("cluster_usd_per_hour", {"gpus": 5, "gpu_hour_usd": 7.0}),
        ("stall_usd_per_day", {"cluster_usd_per_hour": 5.0, "blocking_seconds": 1.0, "interval_seconds": 7.0}),
        (
            "colliding_stall_usd_per_day",
            {"cluster_usd_per_hour": 5.0, "blocking_seconds": 1.0, "interval_seconds": 7.0, "effective_seconds": 9.0},
        ),
        ("usd_per_year_from_day", {"usd_per_day": 5.0}),
        ("wasted_usd_per_year", {"lost_fraction": 0.5, "cluster_usd_per_hour": 7.0}),
        ("space_usd_per_month", {"space_bytes": 1e13, "usd_per_tb_month": 7.0}),
        (
            "mean_reschedule",
            {"reschedule_seconds": 60.0, "reschedule_without_spares_seconds": 7200.0, "spares_exhausted_fraction": 0.1},
        ),
        (
            "serial_stall",
            {
                "copy_seconds": 5.0,
                "node_share_bytes": 9e9,
                "staging_budget_bytes": 2e9,
                "drain_gb_per_second": 0.5,
            },
        ),
        (
            "overlapped_stall",
            {
                "copy_seconds": 5.0,
                "node_share_bytes": 9e9,
                "staging_budget_bytes": 2e9,
                "drain_gb_per_second": 0.5,
            },
        ),
        ("serial_lag", {"node_share_bytes": 9e9, "staging_budget_bytes": 2e9, "drain_gb_per_second": 0.5}),
        ("overlapped_lag", {"node_share_bytes": 9e9, "staging_stall_seconds": 5.0, "drain_gb_per_second": 0.5}),
        ("interval_of_wait", {"spared_seconds": 9.0, "waiting_fraction": 0.2}),
        ("interval_steps", {"interval_seconds": 600.0, "blocking_seconds": 5.0, "step_seconds": 7.3}),
        ("interval_of_steps", {"interval_steps": 82, "blocking_seconds": 5.0, "step_seconds": 7.3}),
        ("writing_ranks", {"writers": 700, "nodes": 256}),
        ("writer_threads", {"node_gb_per_second": 50.0, "thread_gb_per_second": 1.7, "writing_ranks": 8}),
        ("nested_saves", {"next_interval_seconds": 600.0, "interval_seconds": 70.0, "next_saves": 3}),
        ("shared_stall", {"blocking_seconds": 5.0, "interval_seconds": 600.0, "effective_seconds": 905.0}),
        ("copies_lag", {"node_bytes": 3e9, "copies": 2, "node_write_gb_per_second": 7.0}),
        ("node_write_rate", {"node_bytes": 3e9, "copies": 2, "durable_lag_seconds": 7.0}),
        ("held_bytes", {"node_bytes": 3e9, "replicas": 2, "versions": 3}),
        ("peer_bytes", {"checkpoint_bytes": 1e12, "replicas": 3}),
        ("written_tb_per_day", {"node_bytes": 3e9, "replicas": 2, "interval_seconds": 300.0}),
        ("drive_writes_per_day", {"written_tb_per_day": 3.0, "drives_per_node": 4, "drive_bytes": 1e12}),
        (
            "drive_space_fraction",
            {"node_bytes": 3e9, "replicas": 2, "versions": 3, "drives_per_node": 4, "drive_bytes": 1e12},
        ),
        (
            "tiered_lost_work",
            {
                "mtbf_seconds": 9e3, "shared_saves_per_failure": 8.0, "period_seconds": 600.0,
                "mean_restart_seconds": 500.0,
            },
        ),
        ("tiered_restarting", {"mean_restart_seconds": 500.0, "mtbf_seconds": 9e3}),
        ("restart_with_load", {"restart_seconds": 9.0, "specified_load_seconds": 5.0, "load_seconds": 7.0}),
    ],
)  # fmt: skip
def test_an_expression_that_is_plain_arithmetic_gives_what_its_function_gives(
    name: str, inputs: dict[str, float]
) -> None:
    entry = REGISTER[name]
    known = {"__builtins__": {}, "max": max, "min": min, "log": math.log, "round": round, "ceil": math.ceil}
    by_hand = eval(entry.expression, known, dict(inputs))  # noqa: S307
    assert entry.function(**inputs) == pytest.approx(by_hand, rel=1e-14)


def test_no_formula_is_registered_under_another_name() -> None:
    assert all(name == entry.id for name, entry in REGISTER.items())
    assert all(callable(entry.function) and inspect.signature(entry.function) for entry in REGISTER.values())


@pytest.mark.parametrize("name", ["exact", "colliding"])
def test_the_written_breakdown_is_the_computed_one(name: str) -> None:
    inputs = {
        "interval_seconds": 600.0,
        "blocking_seconds": 5.0,
        "restart_seconds": 600.0,
        "mtbf_seconds": 11135.0,
    }
    if name == "exact":
        inputs["durable_lag_seconds"] = 240.0
    else:
        inputs |= {"effective_interval_seconds": 905.0, "staging_buffers": 1}
    for part in ("goodput", "saving", "lost_work"):
        entry = REGISTER[f"{name}_{part}"]
        written = entry.expression.replace("[one buffer: blocking_seconds]", "blocking_seconds")
        by_hand = eval(written, {"__builtins__": {}, "exp": math.exp}, inputs)  # noqa: S307
        assert entry.function(**inputs) == pytest.approx(by_hand, rel=1e-12)
    wasted = REGISTER[f"{name}_waste"].function(**inputs)
    assert wasted == pytest.approx(1 - REGISTER[f"{name}_goodput"].function(**inputs), rel=1e-12)


def test_a_node_s_components_are_told_apart_by_their_names() -> None:
    function = REGISTER["node_mtbf_of_components"].function
    inputs = {"gpu.per_node": 8, "gpu.mtbf_hours": 50_000.0, "psu.mtbf_hours": 100_000.0, "psu.per_node": 2}
    assert function(**inputs) == pytest.approx(3600 / (8 / 50_000 + 2 / 100_000), rel=1e-14)


@pytest.mark.parametrize("buffers", [2, 3])
def test_the_written_breakdown_with_more_buffers_is_the_computed_one(buffers: int) -> None:
    inputs = {
        "interval_seconds": 600.0,
        "blocking_seconds": 5.0,
        "restart_seconds": 600.0,
        "mtbf_seconds": 11135.0,
        "effective_interval_seconds": 905.0,
        "staging_buffers": buffers,
    }
    written, _, where = REGISTER["buffered_saving"].expression.partition(" with ")
    named = dict(zip(("C", "T", "M", "P"), (5.0, 600.0, 11135.0, 905.0), strict=True))
    for name, value in named.items():
        assert any(f"{name} {field}" in where and inputs[field] == value for field in inputs)
    for assignment in re.findall(r"(\w) = ([^,]+)(?:,|$)", where):
        name, expression = assignment
        named[name] = eval(  # noqa: S307
            expression.replace(" mod ", " % "), {"__builtins__": {}, "exp": math.exp}, named | inputs
        )
    by_hand = eval(written, {"__builtins__": {}, "exp": math.exp}, named | inputs)  # noqa: S307
    saving = REGISTER["buffered_saving"].function(**inputs)
    assert saving == pytest.approx(by_hand, rel=1e-12)
    lost_work = REGISTER["buffered_lost_work"].function(**inputs)
    goodput = REGISTER["colliding_goodput"].function(**inputs)
    assert lost_work == pytest.approx(math.exp(-600 / 11135) - goodput - saving, rel=1e-12)


def test_the_written_replay_is_the_computed_one() -> None:
    inputs = {
        "interval_seconds": 600.0,
        "blocking_seconds": 5.0,
        "durable_lag_seconds": 240.0,
        "mtbf_seconds": 11135.0,
    }
    entry = REGISTER["replay"]
    by_hand = eval(entry.expression, {"__builtins__": {}, "exp": math.exp}, inputs)  # noqa: S307
    assert entry.function(**inputs) == pytest.approx(by_hand, rel=1e-12)
