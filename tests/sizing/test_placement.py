"""A scenario with a parallel layout: what of its answer the layout moves, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.errors import Fault, Unsatisfiable
from service.sizing.size import size
from service.sizing.sizing import Sizing, TargetId, WarningCode
from service.sizing.solve import solve
from service.sizing.spec import ScenarioSpec, SolutionQuestion
from service.wire import INT64_MAX
from tests.sizing.scenarios import Body, article, bodies, sized

LLAMA_405B: Body = {"preset": "llama-3-405b"}
OF_MLPERF: Body = {"tensor": 8, "pipeline": 32, "data": 2}


def _sized(model: Body = LLAMA_405B, *, gpus: int = 512, blocks: Body | None = None, **layout: Any) -> Sizing:  # noqa: ANN401
    return sized(model=model, cluster={"gpus": gpus, "parallelism": layout}, **(blocks or {}))


def _llama(**changed: object) -> Body:
    """Return MLPerf Storage's 70B."""
    return {
        "config": {
            "model_type": "llama",
            "num_hidden_layers": 80,
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_attention_heads": 128,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "tie_word_embeddings": False,
        }
        | changed
    }


# What MLPerf Storage publishes, asked of the service.


@pytest.mark.parametrize(("rule", "skew"), [("mlperf_storage", 1.19), ("framework", 1.34)])
def test_the_405b_of_mlperf_storage(rule: str, skew: float) -> None:
    block = _sized(**OF_MLPERF, rule=rule).checkpoint
    assert block.bytes == pytest.approx(5.682e12, rel=1e-3)
    assert (block.writers, block.files) == (512, 513)
    assert block.skew == pytest.approx(skew, abs=0.005)
    assert block.mean_shard_bytes == round(block.bytes / 512)
    assert block.largest_shard_bytes == pytest.approx(block.skew * block.bytes / 512)


def test_the_8b_and_the_70b_of_mlperf_storage() -> None:
    small = _sized({"preset": "llama-3-8b"}, gpus=8, zero_stage=3)
    assert small.checkpoint.bytes == pytest.approx(112.4e9, rel=1e-3)
    assert small.checkpoint.writers == 8
    assert small.checkpoint.skew == pytest.approx(1.0)
    large = _sized(_llama(), gpus=64, tensor=8, zero_stage=3)
    assert large.checkpoint.bytes == pytest.approx(978.4e9, rel=1e-3)
    assert large.checkpoint.writers == 64
    real = _sized(_llama(num_attention_heads=64), gpus=64, tensor=8, zero_stage=3)
    assert real.checkpoint.bytes == 70_553_706_496 * 14


# What the layout moves.


def test_the_largest_shard_and_the_largest_node_move_what_rests_on_them() -> None:
    storage = {"storage": {"write_gb_per_second": 1e6, "node_gb_per_second": 10.0}}
    even, uneven = (
        _sized(**OF_MLPERF, zero_stage=stage, pipeline_split=split, blocks=storage)
        for stage, split in ((1, "ends_as_layers"), (1, "remainder_first"))
    )
    assert even.checkpoint.bytes == uneven.checkpoint.bytes
    more = uneven.checkpoint.largest_shard_bytes / even.checkpoint.largest_shard_bytes
    assert more > 1.1
    assert uneven.write.largest_shard_gb_per_second == pytest.approx(
        more * even.write.largest_shard_gb_per_second
    )
    for sizing in (even, uneven):
        block = sizing.checkpoint
        assert block.largest_node_bytes == 8 * block.largest_shard_bytes
        assert sizing.write.largest_node_gb_per_second == pytest.approx(block.largest_node_bytes / 60 / 1e9)
        assert sizing.delivered is not None
        assert sizing.delivered.write is not None
        assert sizing.delivered.write.seconds == pytest.approx(block.largest_node_bytes / 10e9)


def test_async_staging_is_that_of_the_largest_node() -> None:
    saves = {"save": {"mode": "async", "blocking_seconds": 5, "staging_buffers": 2}}
    sizing = _sized(**OF_MLPERF, blocks=saves)
    assert sizing.host_memory is not None
    assert sizing.host_memory.bytes_per_node == 2 * sizing.checkpoint.largest_node_bytes
    # The bound without a layout takes every node for the largest rank eight times: the same here, where it is.
    assert sizing.checkpoint.largest_node_bytes < sizing.checkpoint.bytes / 64 * 1.34


def test_a_layout_leaves_nothing_to_assume_of_shards() -> None:
    codes = {warning.code for warning in _sized(**OF_MLPERF).warnings}
    assert WarningCode.EVEN_SHARDS_ASSUMED not in codes


def test_the_target_of_the_slowest_writer_says_what_it_has_to_write() -> None:
    (target,) = (each for each in _sized(**OF_MLPERF).targets if each.id is TargetId.SLOWEST_WRITER_SECONDS)
    assert "14.85 GB" in target.why
    assert "1.34 times the mean" in target.why


def test_where_few_nodes_write_it_is_said() -> None:
    hybrid: Body = {"zero_stage": 3, "shard_group": 64, "tensor": 1}
    sizing = _sized(**hybrid)
    assert (sizing.checkpoint.writing_nodes, sizing.checkpoint.writers) == (8, 64)
    assert sizing.write.per_node_gb_per_second == pytest.approx(sizing.write.required_gb_per_second / 8)
    (warning,) = (each for each in sizing.warnings if each.code is WarningCode.FEW_NODES_WRITE)
    assert "Only 8 of 64 nodes" in warning.message
    assert "by replicas_written spread" in warning.message
    spread = _sized(**hybrid, replicas_written="spread")
    assert spread.checkpoint.writers == 512
    assert all(each.code is not WarningCode.FEW_NODES_WRITE for each in spread.warnings)


ZERO_1: Body = {"tensor": 8, "pipeline": 16, "zero_stage": 1}


def _messages(sizing: Sizing, code: WarningCode) -> list[str]:
    return [each.message for each in sizing.warnings if each.code is code]


def test_a_node_target_is_that_of_the_node_with_most() -> None:
    sizing = _sized(gpus=16384, **ZERO_1)
    write, read, layout = sizing.write, sizing.read, sizing.layout
    assert read is not None
    assert layout is not None
    targets = {target.id: target for target in sizing.targets}
    # 57.8 GB in 60 s, and 57.8 GB in 120 s; the mean node has 2.774 GB to write.
    node_write = targets[TargetId.NODE_WRITE_BANDWIDTH]
    assert node_write.value == write.largest_node_gb_per_second == pytest.approx(57.793732608 / 60)
    assert write.per_node_gb_per_second == pytest.approx(2.7743884 / 60)
    assert node_write.why.startswith("the node with most to write has 57.79 GB by the layout")
    node_read = targets[TargetId.NODE_READ_BANDWIDTH]
    assert node_read.value == read.largest_node_gb_per_second
    assert node_read.value == pytest.approx(layout.largest_node_read_bytes / 120e9)
    assert node_read.why.startswith("the node with most to read has 57.8 GB")


def test_without_a_layout_a_node_target_is_that_of_every_node_that_writes() -> None:
    sizing = sized(shards={"writers": 1024, "skew": 4})
    targets = {target.id: target.value for target in sizing.targets}
    assert sizing.write.largest_node_gb_per_second is None
    assert targets[TargetId.NODE_WRITE_BANDWIDTH] == pytest.approx(94.5 / 1024)
    assert targets[TargetId.NODE_READ_BANDWIDTH] == pytest.approx(47.25 / 2048)


def test_the_node_with_most_keeps_the_headroom_of_all() -> None:
    """A lag longer than the headroom allows leaves the bandwidth as it is, of all nodes and of one."""
    save: Body = {"mode": "async", "blocking_seconds": 5, "headroom": 4.0, "durable_lag_seconds": 500}
    sizing = _sized(gpus=16384, blocks={"save": save}, **ZERO_1)
    checkpoint, write = sizing.checkpoint, sizing.write
    assert write.required_gb_per_second > checkpoint.bytes / 500e9
    assert write.largest_node_gb_per_second == pytest.approx(
        write.required_gb_per_second * checkpoint.largest_node_bytes / checkpoint.bytes
    )


def test_a_stated_amplification_of_reads_holds_for_the_node_with_most() -> None:
    restore = {"target_seconds": 120, "read_amplification": 1.0}
    sizing = _sized(gpus=16384, blocks={"restore": restore}, **ZERO_1)
    assert sizing.read is not None
    assert sizing.read.largest_node_gb_per_second == pytest.approx(
        sizing.checkpoint.largest_node_bytes / 120e9
    )
    assert _messages(sizing, WarningCode.REPLICAS_READ_BY_ALL) == []


def test_that_every_rank_reads_its_replica_is_said() -> None:
    (message,) = _messages(_sized(gpus=16384, **ZERO_1), WarningCode.REPLICAS_READ_BY_ALL)
    assert message.startswith("All ranks together read 19.1 times what a save writes")
    # Nobody asks about reads here, and there every rank reads its own.
    for quiet in (
        _sized(gpus=16384, blocks={"restore": None}, **ZERO_1),
        _sized(gpus=16384, tensor=8, pipeline=16, zero_stage=3),
    ):
        assert _messages(quiet, WarningCode.REPLICAS_READ_BY_ALL) == []


def test_that_the_first_replica_writes_is_said_where_nobody_stated_it() -> None:
    (message,) = _messages(_sized(gpus=16384, **ZERO_1), WarningCode.REPLICAS_WRITTEN_BY_FEW)
    spread = _sized(gpus=16384, **ZERO_1, replicas_written="spread")
    assert spread.checkpoint.largest_shard_bytes == pytest.approx(0.3774e9, rel=1e-3)
    assert "largest shard is 7.224 GB, and 0.3774 GB by replicas_written spread" in message
    for stated in (spread, _sized(gpus=16384, **ZERO_1, replicas_written="once"), _sized(**OF_MLPERF)):
        assert _messages(stated, WarningCode.REPLICAS_WRITTEN_BY_FEW) == []


def test_a_moving_average_is_sharded_as_the_optimisers_state_is() -> None:
    averaged: Body = {"preset": "llama-3-8b", "recipe": "adam_mixed_14", "ema_copy": True}
    sizing = _sized(averaged, gpus=64, zero_stage=1)
    # bf16 weights by the first rank, and of the other 16 bytes a 64th by each.
    parameters = 8_030_261_248
    assert sizing.checkpoint.bytes == 18 * parameters
    assert sizing.checkpoint.largest_shard_bytes == parameters * (2 + 16 / 64)
    assert sizing.checkpoint.skew == pytest.approx(2.25 / (18 / 64))
    assert sizing.layout is not None
    assert sizing.layout.read_amplification == pytest.approx((64 * 2 + 16) / 18)


def test_replicas_written_many_times_are_bytes_to_write_and_to_keep() -> None:
    once, every = (
        _sized(tensor=8, zero_stage=3, shard_group=16, replicas_written=how) for how in ("once", "all")
    )
    assert every.checkpoint.bytes == pytest.approx(4 * once.checkpoint.bytes, rel=1e-4)
    assert every.layout is not None
    assert every.layout.distinct_bytes == once.checkpoint.bytes
    assert every.layout.copies_written == pytest.approx(4.0, rel=1e-4)
    assert every.write.required_gb_per_second == pytest.approx(
        4 * once.write.required_gb_per_second, rel=1e-4
    )
    assert every.capacity is not None
    assert every.capacity.hot_bytes == 10 * every.checkpoint.bytes


# What a load reads.


def test_by_default_every_rank_reads_what_it_holds() -> None:
    weights_twice = _sized(**OF_MLPERF)
    assert weights_twice.read is not None
    assert weights_twice.read.read_amplification == pytest.approx((12 + 2 * 2) / 14, rel=1e-4)
    assert weights_twice.read.bytes == pytest.approx(
        weights_twice.checkpoint.bytes * weights_twice.read.read_amplification
    )
    sharded = _sized({"preset": "llama-3-8b"}, gpus=8, zero_stage=3)
    assert sharded.read is not None
    assert sharded.read.read_amplification == pytest.approx(1.0)
    benchmark = _sized(**OF_MLPERF, rule="mlperf_storage")
    assert benchmark.read is not None
    assert benchmark.read.read_amplification == pytest.approx(1.0)


def test_a_measured_amplification_goes_before_the_layouts() -> None:
    measured = {"restore": {"target_seconds": 120, "read_amplification": 1.01}}
    sizing = _sized(**OF_MLPERF, blocks=measured)
    assert sizing.read is not None
    assert sizing.read.bytes == round(sizing.checkpoint.bytes * 1.01)
    assert sizing.layout is not None
    assert sizing.layout.read_amplification > 1.1


def test_a_tied_embedding_is_written_once_and_read_by_both_ends() -> None:
    tied = _llama(tie_word_embeddings=True)
    one, two = (_sized(tied, gpus=64, tensor=8, pipeline=pipeline) for pipeline in (1, 2))
    assert one.checkpoint.bytes == two.checkpoint.bytes
    assert one.layout is not None
    assert two.layout is not None
    first, last = (next(each for each in two.layout.ranks if each.first_stage == stage) for stage in (0, 1))
    assert (last.first_stage, last.layers_per_stage) == (1, 40)
    assert "embedding" not in last.holds
    assert last.parameters - first.parameters == 8192  # the norm before the output
    assert last.read_bytes == pytest.approx(first.read_bytes, rel=1e-4)
    assert last.bytes == pytest.approx(first.bytes - 128_256 * 8192 / 8 * (2 + 12 / 4), rel=1e-4)


# Who writes what.


def test_the_classes_account_for_every_rank_and_every_byte() -> None:
    sizing = _sized({"preset": "deepseek-v3"}, gpus=2048, pipeline=16, expert=64)
    assert sizing.layout is not None
    ranks = sizing.layout.ranks
    assert sum(each.ranks for each in ranks) == 2048
    assert sum(each.ranks * each.bytes for each in ranks) == pytest.approx(sizing.checkpoint.bytes, rel=1e-6)
    assert max(each.bytes for each in ranks) == sizing.checkpoint.largest_shard_bytes
    assert {"routed_experts", "shared_experts", "router"} <= set(ranks[-1].holds)
    assert ranks[0].first_stage == 0
    assert ranks[-1].last_stage == 15


def test_what_is_saved_for_all_is_the_first_ranks_and_what_each_saves_is_everybodys() -> None:
    plain = _sized(**OF_MLPERF)
    own = _sized(LLAMA_405B | {"extra_bytes": 10**9, "extra_bytes_per_rank": 1000}, **OF_MLPERF)
    assert plain.layout is not None
    assert own.layout is not None
    assert own.layout.ranks[0].ranks == 1
    assert own.layout.ranks[0].bytes == plain.layout.ranks[0].bytes + 10**9 + 1000
    assert own.layout.ranks[-1].bytes == plain.layout.ranks[-1].bytes + 1000


def test_twelve_bytes_are_the_optimisers_and_leave_nothing_for_the_first_rank_alone() -> None:
    sizing = _sized(LLAMA_405B | {"bytes_per_parameter": 12}, tensor=8, pipeline=1)
    assert sizing.checkpoint.skew == pytest.approx(1.0)
    for recipe in ("adam_mixed_12", "adam_mixed_14"):
        named = _sized(LLAMA_405B | {"recipe": recipe}, **OF_MLPERF)
        number = _sized(LLAMA_405B | {"bytes_per_parameter": float(recipe[-2:])}, **OF_MLPERF)
        assert named.layout == number.layout
    stated = _sized(LLAMA_405B | {"bytes_per_parameter": 12}, tensor=8, weight_bytes_per_parameter=4)
    assert stated.layout is not None
    assert stated.layout.ranks[0].weight_bytes > 0


def test_a_recipe_that_treats_matrices_apart_is_placed_part_by_part() -> None:
    sizing = _sized({"preset": "llama-3-8b", "recipe": "muon_mixed"}, gpus=8, tensor=1, pipeline=8)
    assert sizing.layout is not None
    first, middle = sizing.layout.ranks[0], sizing.layout.ranks[1]
    # Layers alone: 10 bytes for each parameter of a matrix, and 14 for the few of norms.
    assert middle.bytes == pytest.approx(middle.parameters * 10, rel=1e-4)
    assert first.bytes - middle.bytes == 128_256 * 4096 * 14


# Fewer nodes.


def test_a_restart_on_fewer_nodes_lists_what_fits() -> None:
    sizing = _sized(gpus=1024, tensor=8, pipeline=16)
    assert sizing.layout is not None
    found = [(each.data, each.gpus, each.nodes) for each in sizing.layout.on_fewer_nodes]
    assert found == [(7, 896, 112), (4, 512, 64), (1, 128, 16)]
    reads = [each.read_bytes for each in sizing.layout.on_fewer_nodes]
    assert reads == sorted(reads, reverse=True)  # weights are read by fewer replicas
    shards = [each.largest_shard_bytes for each in sizing.layout.on_fewer_nodes]
    assert shards == sorted(shards)
    assert shards[0] > sizing.checkpoint.largest_shard_bytes


def test_experts_and_groups_say_by_how_much_data_parallelism_can_shrink() -> None:
    experts = _sized({"preset": "deepseek-v3"}, gpus=2048, pipeline=16, expert=64)
    assert experts.layout is not None
    assert [each.data for each in experts.layout.on_fewer_nodes] == [64]
    hybrid = _sized(zero_stage=3, shard_group=64)
    assert hybrid.layout is not None
    assert [each.data for each in hybrid.layout.on_fewer_nodes] == [448, 256, 64]
    assert _sized(gpus=256, tensor=8, pipeline=32).layout.on_fewer_nodes == []  # type: ignore[union-attr]


# What is refused.


def _faults(body: Body) -> list[Fault]:
    with pytest.raises(ValidationError) as refused:
        ScenarioSpec.model_validate(body)
    return [
        replace(fault, pointer="".join(f"/{part}" for part in error["loc"]) + fault.pointer)
        for error in refused.value.errors()
        for fault in error["ctx"]["faults"]
    ]


DEEPSEEK: Body = {"preset": "deepseek-v3"}


@pytest.mark.parametrize(
    ("model", "gpus", "layout", "field", "why"),
    [
        (LLAMA_405B, 512, {"tensor": 8, "pipeline": 32, "data": 3}, "data", "data would be 2"),
        (LLAMA_405B, 500, {"tensor": 8, "pipeline": 32}, "data", "does not divide"),
        (LLAMA_405B, 48, {"tensor": 3}, "tensor", "128 attention heads"),
        (LLAMA_405B, 64, {"tensor": 16}, "tensor", "8 key-value heads"),
        (_llama(vocab_size=128257), 64, {"tensor": 8}, "tensor", "a framework that pads it saves 128264"),
        (LLAMA_405B, 128, {"pipeline": 128}, "pipeline", "126 layers"),
        (LLAMA_405B, 8, {"pipeline": 2, "layers_per_stage": [63, 62]}, "layers_per_stage", "125 layers"),
        (LLAMA_405B, 8, {"pipeline": 2, "layers_per_stage": [126]}, "layers_per_stage", "on 1 stages"),
        (LLAMA_405B, 8, {"shard_group": 3}, "shard_group", "Groups of 3"),
        (LLAMA_405B, 8, {"expert": 2}, "expert", "no routed experts"),
        (LLAMA_405B, 8, {"expert_tensor": 2}, "expert_tensor", "no routed experts"),
        (DEEPSEEK, 24, {"expert": 3}, "expert", "256 experts"),
        (DEEPSEEK, 24, {"expert": 16}, "expert", "24 ranks of a stage"),
        (DEEPSEEK, 32, {"expert": 32, "shard_group": 16}, "shard_group", "same experts"),
        (DEEPSEEK, 32, {"expert": 2, "rule": "mlperf_storage"}, "expert", "no expert parallelism"),
        (LLAMA_405B, 8, {"shard_group": 4, "rule": "mlperf_storage"}, "shard_group", "use the rule framework"),
        (LLAMA_405B, 8, {"replicas_written": "all", "rule": "mlperf_storage"}, "replicas_written", "once"),
        (LLAMA_405B, 8, {"zero_stage": 3, "pipeline": 2, "rule": "mlperf_storage"}, "zero_stage", "ZeRO 3"),
    ],
)  # fmt: skip
def test_a_layout_that_does_not_fit_is_refused_with_the_reason(
    model: Body, gpus: int, layout: Body, field: str, why: str
) -> None:
    faults = _faults(article(model=model, cluster={"gpus": gpus, "parallelism": layout}))
    assert {(fault.pointer, fault.code) for fault in faults} == {
        (f"/cluster/parallelism/{field}", "does_not_fit")
    }
    assert why in " ".join(fault.detail for fault in faults)


@pytest.mark.parametrize("name", ["writers", "skew", "largest_shard_bytes"])
def test_shards_that_follow_from_the_layout_are_not_stated_beside_it(name: str) -> None:
    cluster = {"gpus": 512, "parallelism": OF_MLPERF}
    (fault,) = _faults(article(model=LLAMA_405B, cluster=cluster, shards={name: 2}))
    assert (fault.pointer, fault.code) == (f"/shards/{name}", "contradiction")
    files = sized(model=LLAMA_405B, cluster=cluster, shards={"files_per_writer": 3}).checkpoint.files
    assert files == 3 * 512 + 1


def test_a_bare_parameter_count_has_no_shape_to_lay_out() -> None:
    (fault,) = _faults(article(cluster={"gpus": 512, "parallelism": {}}))
    assert (fault.pointer, fault.code) == ("/cluster/parallelism", "no_shape")
    assert "config" in fault.detail


@pytest.mark.parametrize(
    ("model", "layout", "pointer"),
    [
        ({}, {"zero_stage": 0, "shard_group": 2}, "/shard_group"),
        ({}, {"layers_per_stage": [126], "pipeline_split": "ends_as_layers"}, "/pipeline_split"),
        ({}, {"weight_bytes_per_parameter": 15.0}, "/weight_bytes_per_parameter"),
        ({"recipe": "adam_mixed_14"}, {"weight_bytes_per_parameter": 2.0}, "/weight_bytes_per_parameter"),
        ({"deduplication_factor": 0.5}, {"replicas_written": "all"}, "/replicas_written"),
        ({"differential_fraction": 0.5, "full_every": 3}, {"replicas_written": "all"}, "/replicas_written"),
        ({"recipe": "lora_adam", "lora_rank": 16}, {}, ""),
    ],
)
def test_what_contradicts_a_layout_is_refused(model: Body, layout: Body, pointer: str) -> None:
    body = article(model=LLAMA_405B | model, cluster={"gpus": 512, "parallelism": layout})
    assert [fault.pointer for fault in _faults(body)] == [f"/cluster/parallelism{pointer}"]


@pytest.mark.parametrize(("copies", "field"), [("all", "replicas_written"), ("once", "zero_stage")])
def test_copies_beyond_counting_are_refused(copies: str, field: str) -> None:
    layout = {"zero_stage": 0, "replicas_written": copies}
    spec = ScenarioSpec.model_validate(
        article(model=LLAMA_405B, cluster={"gpus": 10_000_000, "parallelism": layout})
    )
    with pytest.raises(Unsatisfiable) as refused:
        size(spec)
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == (f"#/cluster/parallelism/{field}", "too_large")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tensor", 0),
        ("tensor", 10**7 + 1),
        ("pipeline", 1025),
        ("data", 0),
        ("expert", 0),
        ("expert_tensor", 0),
        ("zero_stage", 4),
        ("zero_stage", -1),
        ("shard_group", 0),
        ("weight_bytes_per_parameter", -0.1),
        ("weight_bytes_per_parameter", 64.1),
        ("layers_per_stage", []),
        ("layers_per_stage", [-1]),
        ("rule", "fsdp"),
        ("replicas_written", "twice"),
        ("pipeline_split", "even"),
    ],
)
def test_what_is_out_of_bounds_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        ScenarioSpec.model_validate(article(cluster={"gpus": 8, "parallelism": {name: value}}))
    assert refused.value.errors()[0]["loc"][:3] == ("cluster", "parallelism", name)


def test_a_thousand_unlike_stages_are_sized() -> None:
    layers = 1024
    alternating = {
        "config": {
            "model_type": "qwen3_moe",
            "hidden_size": 64,
            "intermediate_size": 128,
            "moe_intermediate_size": 32,
            "num_hidden_layers": layers,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "head_dim": 8,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [],
            "vocab_size": 1024,
            "tie_word_embeddings": False,
        }
    }
    sizing = _sized(alternating, gpus=8 * layers, pipeline=layers, expert=4)
    assert sizing.layout is not None
    assert sum(each.ranks for each in sizing.layout.ranks) == 8 * layers


# What holds for any scenario with a layout.


@settings(derandomize=True, deadline=None, max_examples=80)
@given(body=bodies().filter(lambda drawn: "parallelism" in drawn["cluster"]), data=st.data())
def test_the_answer_adds_up_for_any_layout(body: Body, data: st.DataObject) -> None:
    try:
        sizing = size(ScenarioSpec.model_validate(body))
    except Unsatisfiable:
        return
    block, layout = sizing.checkpoint, sizing.layout
    assert layout is not None
    assert sum(each.ranks for each in layout.ranks) == body["cluster"]["gpus"]
    written = sum(each.ranks * each.bytes for each in layout.ranks)
    rounding = 0.5 * body["cluster"]["gpus"] + 1
    assert written == pytest.approx(block.bytes, rel=1e-9, abs=rounding)
    assert block.bytes == pytest.approx(layout.distinct_bytes * layout.copies_written, rel=1e-9)
    assert block.largest_shard_bytes == max(each.bytes for each in layout.ranks)
    assert 1 - 1e-9 <= block.skew <= block.writers
    assert block.largest_shard_bytes <= block.largest_node_bytes <= min(block.bytes + 1, INT64_MAX)
    assert min(each.bytes for each in layout.ranks) >= 0
    drawn = data.draw(st.sampled_from(layout.ranks))
    assert drawn.weight_bytes + drawn.optimiser_bytes <= drawn.bytes + 1


# What a solution makes of it.


def test_the_size_of_a_cluster_is_not_asked_of_a_layout_that_fits_one() -> None:
    spec = article(model=LLAMA_405B, cluster={"gpus": 512, "parallelism": OF_MLPERF})
    question = {"spec": spec, "unknown": "gpus", "goal": {"goodput_fraction": 0.8}}
    with pytest.raises(ValidationError) as refused:
        SolutionQuestion.model_validate(question)
    (error,) = refused.value.errors()
    (fault,) = error["ctx"]["faults"]
    assert (fault.pointer, fault.code) == ("/spec/cluster/parallelism", "contradiction")
    found = solve(SolutionQuestion.model_validate(question | {"unknown": "write_gb_per_second"}))
    assert found.feasible
    assert found.sizing is not None
    assert found.sizing.layout is not None
