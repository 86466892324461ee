"""Parallel layouts: what MLPerf Storage publishes, and what holds for any layout."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.sizing import layout as layouts
from service.sizing.architecture import Architecture, Cut
from service.sizing.layout import (
    Layout,
    LayoutRule,
    PerParameter,
    PipelineSplit,
    Ranks,
    ReplicasWritten,
    Stage,
    StateBytes,
    layers_per_stage,
)
from tests.sizing.layouts import LLAMA_405B, Laid, laid, llama, oracle, rank_by_rank

FOURTEEN = StateBytes(PerParameter(2.0, 2.0), PerParameter(12.0, 12.0), rank=0.0, once=0.0)
EXAMPLES = settings(derandomize=True, deadline=None, max_examples=150)

LLAMA_8B = llama(layers=32, hidden=4096, ffn=14336, heads=32, key_value_heads=8)
LLAMA_70B_OF_MLPERF = llama(layers=80, hidden=8192, ffn=28672, heads=128, key_value_heads=8)
"""The benchmark's table has 128 heads where the model has 64: its 8 key-value heads are half as wide."""


def _layout(
    *,
    tensor: int = 1,
    pipeline: int = 1,
    data: int = 1,
    layers: int = 126,
    zero_stage: int = 1,
    rule: LayoutRule = LayoutRule.FRAMEWORK,
    split: PipelineSplit = PipelineSplit.REMAINDER_FIRST,
    replicas_written: ReplicasWritten = ReplicasWritten.ONCE,
    shard_group: int | None = None,
    expert: int = 1,
    expert_tensor: int | None = None,
) -> Layout:
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        expert=expert,
        expert_tensor=expert_tensor or tensor,
        zero_stage=zero_stage,
        shard_group=shard_group or data,
        replicas_written=replicas_written,
        rule=rule,
        layers_per_stage=layers_per_stage(layers=layers, pipeline=pipeline, split=split),
    )


def _placed(drawn: Laid) -> tuple[list[Ranks], list[float]]:
    runs = layouts.place(drawn.layout, _stages(drawn), drawn.state)
    return runs, [run.written for run in runs]


def _stages(drawn: Laid) -> list[Stage]:
    return layouts.stages(drawn.layout, drawn.shape, drawn.state)


def _total(drawn: Laid) -> float:
    runs, written = _placed(drawn)
    return math.fsum(each * run.ranks for run, each in zip(runs, written, strict=True))


def _largest(drawn: Laid) -> float:
    return max(_placed(drawn)[1])


# What MLPerf Storage publishes.


@pytest.mark.parametrize(
    ("shape", "layout", "ranks", "total"),
    [
        (LLAMA_8B, _layout(data=8, layers=32, zero_stage=3), 8, 112.4e9),
        (LLAMA_70B_OF_MLPERF, _layout(tensor=8, data=8, layers=80, zero_stage=3), 64, 978.4e9),
        (LLAMA_405B, _layout(tensor=8, pipeline=32, data=2), 512, 5.682e12),
    ],
    ids=["8b", "70b", "405b"],
)
@pytest.mark.parametrize("rule", LayoutRule)
def test_the_checkpoints_of_mlperf_storage_have_their_published_size(
    shape: Architecture, layout: Layout, ranks: int, total: float, rule: LayoutRule
) -> None:
    placed = Laid(shape, layout._replace(rule=rule), FOURTEEN)
    assert list(layouts.misfits(placed.layout, shape, ranks)) == []
    assert _total(placed) == pytest.approx(total, rel=1e-3)


def test_with_the_64_heads_that_it_has_the_70b_is_one_percent_larger_than_the_benchmarks() -> None:
    real = llama(layers=80, hidden=8192, ffn=28672, heads=64, key_value_heads=8)
    assert real.parameters == 70_553_706_496
    narrower = 80 * 2 * 8192 * (8 * 64)  # 64 columns less for each key and value head of each layer
    assert real.parameters - LLAMA_70B_OF_MLPERF.parameters == narrower
    assert real.parameters * 14 / 978.4e9 == pytest.approx(1.0096, abs=1e-4)


@pytest.mark.parametrize(
    ("shape", "printed_gb", "rounding"),
    [(LLAMA_8B, 105, 1), (LLAMA_70B_OF_MLPERF, 912, 1), (LLAMA_405B, 5290, 5)],
)
def test_its_tables_print_binary_units_under_decimal_names(
    shape: Architecture, printed_gb: int, rounding: int
) -> None:
    """ "105 GB", "912 GB" and "5.29 TB" are thousands of 2^30 bytes, 7 % more than they say."""
    assert shape.parameters * 14 / 2**30 == pytest.approx(printed_gb, abs=rounding)
    assert shape.parameters * 14 / 1e9 == pytest.approx(printed_gb * 1.07374, rel=3e-3)


@pytest.mark.parametrize(
    ("rule", "skew"), [(LayoutRule.MLPERF_STORAGE, 1.1917), (LayoutRule.FRAMEWORK, 1.3383)]
)
def test_the_largest_rank_of_the_405b_is_as_published(rule: LayoutRule, skew: float) -> None:
    placed = Laid(LLAMA_405B, _layout(tensor=8, pipeline=32, data=2, rule=rule), FOURTEEN)
    assert _largest(placed) / (_total(placed) / 512) == pytest.approx(skew, abs=5e-4)


def test_the_largest_rank_is_what_four_layers_and_the_embedding_make_of_it() -> None:
    layer = 2 * 16384**2 + 2 * 16384 * 1024 + 3 * 16384 * 53248 + 2 * 16384
    own = (4 * layer + 128_256 * 16384) / 8
    everywhere = LLAMA_405B.parameters / 512
    largest = {
        rule: _largest(Laid(LLAMA_405B, _layout(tensor=8, pipeline=32, data=2, rule=rule), FOURTEEN))
        for rule in LayoutRule
    }
    assert largest[LayoutRule.MLPERF_STORAGE] == pytest.approx(2 * own + 12 * everywhere, rel=1e-12)
    assert largest[LayoutRule.FRAMEWORK] == pytest.approx(2 * own + 12 * own / 2, rel=1e-12)


def test_ends_counted_as_layers_even_the_405b_out() -> None:
    layout = _layout(tensor=8, pipeline=32, data=2, split=PipelineSplit.ENDS_AS_LAYERS)
    assert layout.layers_per_stage == (3, *[4] * 30, 3)
    placed = Laid(LLAMA_405B, layout, FOURTEEN)
    even = Laid(LLAMA_405B, _layout(tensor=8, pipeline=32, data=2), FOURTEEN)
    assert _largest(placed) < 0.9 * _largest(even)


# Who writes what.


def _shards(**degrees: object) -> list[float]:
    placed = Laid(LLAMA_405B, _layout(**degrees), FOURTEEN)  # type: ignore[arg-type]
    return rank_by_rank(*_placed(placed))


def test_without_zero_the_first_data_parallel_rank_writes_all() -> None:
    shards = _shards(data=4, zero_stage=0)
    assert shards == [LLAMA_405B.parameters * 14, 0.0, 0.0, 0.0]


def test_with_zero_1_and_2_the_weights_are_the_first_ranks() -> None:
    for stage in (1, 2):
        shards = _shards(data=4, zero_stage=stage)
        assert shards == [LLAMA_405B.parameters * 5, *[LLAMA_405B.parameters * 3] * 3]


def test_fsdp_is_even() -> None:
    assert _shards(data=4, zero_stage=3) == [LLAMA_405B.parameters * 14 / 4] * 4


def test_hybrid_sharding_leaves_the_second_group_nothing_to_write() -> None:
    shard = LLAMA_405B.parameters * 14 / 2
    assert _shards(data=4, zero_stage=3, shard_group=2) == [shard, shard, 0.0, 0.0]
    everyone = {"data": 4, "zero_stage": 3, "shard_group": 2}
    assert _shards(**everyone, replicas_written=ReplicasWritten.SPREAD) == [shard / 2] * 4
    assert _shards(**everyone, replicas_written=ReplicasWritten.ALL) == [shard] * 4


# What holds for any layout.


@EXAMPLES
@given(drawn=laid())
def test_every_rank_writes_and_reads_what_handing_out_piece_by_piece_gives_it(drawn: Laid) -> None:
    held = _stages(drawn)
    runs, written = _placed(drawn)
    by_hand, read_by_hand = oracle(drawn, held)
    assert rank_by_rank(runs, written) == pytest.approx(by_hand, rel=1e-12)
    assert rank_by_rank(runs, [run.read for run in runs]) == pytest.approx(read_by_hand, rel=1e-12)


@EXAMPLES
@given(drawn=laid(), per_node=st.integers(1, 9))
def test_no_node_has_more_than_the_largest(drawn: Laid, per_node: int) -> None:
    runs, written = _placed(drawn)
    ranks = rank_by_rank(runs, written)
    node = layouts.largest_node(runs, written, per_node)
    by_hand = max(math.fsum(ranks[at : at + per_node]) for at in range(0, len(ranks), per_node))
    assert node.bytes == pytest.approx(by_hand, rel=1e-12)
    assert sum(part.ranks for part in node.parts) <= per_node
    assert math.fsum(part.ranks * written[part.run] for part in node.parts) == pytest.approx(
        by_hand, rel=1e-12
    )


@EXAMPLES
@given(drawn=st.one_of(laid(), laid(rule=LayoutRule.MLPERF_STORAGE)), per_node=st.integers(1, 9))
def test_a_node_writes_if_one_of_its_ranks_does(drawn: Laid, per_node: int) -> None:
    runs, written = _placed(drawn)
    ranks = rank_by_rank(runs, written)
    by_hand = sum(any(ranks[at : at + per_node]) for at in range(0, len(ranks), per_node))
    assert layouts.writing_nodes(runs, per_node) == by_hand


def _once(drawn: Laid) -> float:
    """Return the bytes of a save in which everything is written once."""
    own = drawn.state.rank * drawn.layout.ranks + drawn.state.once
    return own + sum(
        each.parameters * (drawn.state.weights.of(each) + drawn.state.optimiser.of(each))
        for each in drawn.shape.totals().values()
    )


def _times_replicas(drawn: Laid) -> float:
    """Return the bytes of a save in which every rank writes what it holds, by how many ranks hold it."""
    shape, layout, state = drawn.shape, drawn.layout, drawn.state
    written = state.rank * layout.ranks + state.once
    for kind, is_sharded in (
        (state.weights, layout.zero_stage == 3),
        (state.optimiser, layout.zero_stage >= 1),
    ):
        dense = layout.instances if is_sharded else layout.data
        holders = {
            Cut.TENSOR: dense,
            Cut.REPLICATED: layout.tensor * dense,
            Cut.EXPERT: layout.instances if is_sharded else layout.expert_data,
        }
        for each in shape.totals().values():
            is_twice = shape.tied_embeddings and layout.pipeline > 1 and each.name == "embedding"
            written += each.parameters * kind.of(each) * holders[each.cut] * (2 if is_twice else 1)
    return written


@EXAMPLES
@given(drawn=laid())
def test_shards_add_up_to_the_checkpoint_times_the_replicas_written(drawn: Laid) -> None:
    is_all = drawn.layout.replicas_written is ReplicasWritten.ALL
    assert _total(drawn) == pytest.approx(_times_replicas(drawn) if is_all else _once(drawn), rel=1e-12)


@EXAMPLES
@given(drawn=laid(rule=LayoutRule.MLPERF_STORAGE))
def test_the_benchmarks_shards_add_up_to_the_checkpoint(drawn: Laid) -> None:
    runs, written = _placed(drawn)
    assert len(rank_by_rank(runs, written)) == drawn.layout.ranks
    assert _total(drawn) == pytest.approx(_once(drawn), rel=1e-12)


@EXAMPLES
@given(drawn=st.one_of(laid(), laid(rule=LayoutRule.MLPERF_STORAGE)))
def test_nothing_is_negative_and_the_largest_is_not_below_the_mean(drawn: Laid) -> None:
    runs, written = _placed(drawn)
    assert min(written) >= 0.0
    assert min(run.read for run in runs) >= 0.0
    writers = sum(run.ranks for run, each in zip(runs, written, strict=True) if each > 0.0)
    assume(writers)
    assert max(written) >= _total(drawn) / writers * (1 - 1e-12)
    assert _total(drawn) <= sum(
        each * run.ranks for run, each in zip(runs, [run.read for run in runs], strict=True)
    ) * (1 + 1e-12)


def _assert_never_larger(coarse: Laid, fine: Laid) -> None:
    assert not list(layouts.misfits(fine.layout, fine.shape, fine.layout.ranks))
    assert _largest(fine) <= _largest(coarse) * (1 + 1e-12)


@EXAMPLES
@given(drawn=laid(), times=st.integers(2, 4))
def test_more_data_parallel_ranks_never_raise_the_largest_shard(drawn: Laid, times: int) -> None:
    whole = drawn.layout.shard_group == drawn.layout.data
    data = drawn.layout.data * times
    finer = drawn.layout._replace(data=data, shard_group=data if whole else drawn.layout.shard_group)
    _assert_never_larger(drawn, drawn._replace(layout=finer))


@EXAMPLES
@given(drawn=laid())
def test_a_higher_zero_stage_never_raises_the_largest_shard(drawn: Laid) -> None:
    assume(1 <= drawn.layout.zero_stage < 3)
    _assert_never_larger(drawn, drawn._replace(layout=drawn.layout._replace(zero_stage=3)))
    _assert_never_larger(
        drawn._replace(layout=drawn.layout._replace(zero_stage=0, shard_group=drawn.layout.data)), drawn
    )


@EXAMPLES
@given(drawn=laid())
def test_twice_the_tensor_parallel_ranks_never_raise_the_largest_shard(drawn: Laid) -> None:
    assume(drawn.layout.tensor % 3)
    finer = drawn.layout._replace(tensor=2 * drawn.layout.tensor)
    if not drawn.shape.routed_experts:
        finer = finer._replace(expert_tensor=finer.tensor)
    _assert_never_larger(drawn, drawn._replace(layout=finer))


@EXAMPLES
@given(drawn=laid())
def test_more_expert_parallel_ranks_never_raise_the_largest_shard(drawn: Laid) -> None:
    layout = drawn.layout._replace(expert=2 * drawn.layout.expert)
    assume(not list(layouts.misfits(layout, drawn.shape, layout.ranks)))
    _assert_never_larger(drawn, drawn._replace(layout=layout))


@EXAMPLES
@given(drawn=laid(alike=True), times=st.integers(2, 3))
def test_more_stages_of_layers_that_are_alike_never_raise_the_largest_shard(drawn: Laid, times: int) -> None:
    """Of unlike layers they can: a cut that moves may put two heavy ones on one stage."""
    pipeline, layers = drawn.layout.pipeline * times, drawn.shape.layer_count
    assume(pipeline <= layers)
    split = PipelineSplit.REMAINDER_FIRST
    coarse, fine = (
        drawn._replace(
            layout=drawn.layout._replace(
                pipeline=count, layers_per_stage=layers_per_stage(layers=layers, pipeline=count, split=split)
            )
        )
        for count in (drawn.layout.pipeline, pipeline)
    )
    _assert_never_larger(coarse, fine)


@EXAMPLES
@given(drawn=laid())
def test_spread_writes_no_larger_shard_than_once_and_once_none_larger_than_all(drawn: Laid) -> None:
    largest = [
        _largest(drawn._replace(layout=drawn.layout._replace(replicas_written=copies)))
        for copies in (ReplicasWritten.SPREAD, ReplicasWritten.ONCE, ReplicasWritten.ALL)
    ]
    assert largest[0] <= largest[1] * (1 + 1e-12)
    assert largest[1] <= largest[2] * (1 + 1e-12)


@EXAMPLES
@given(drawn=laid(rule=LayoutRule.MLPERF_STORAGE), times=st.integers(2, 4))
def test_by_the_benchmarks_rule_more_data_parallel_ranks_never_raise_the_largest_shard(
    drawn: Laid, times: int
) -> None:
    data = drawn.layout.data * times
    _assert_never_larger(drawn, drawn._replace(layout=drawn.layout._replace(data=data, shard_group=data)))


@EXAMPLES
@given(layers=st.integers(1, 200), pipeline=st.integers(1, 200), split=st.sampled_from(PipelineSplit))
def test_every_layer_has_one_stage(layers: int, pipeline: int, split: PipelineSplit) -> None:
    assume(pipeline <= layers)
    counts = layers_per_stage(layers=layers, pipeline=pipeline, split=split)
    assert len(counts) == pipeline
    assert sum(counts) == layers
    assert min(counts) >= 0


# Fewer nodes.


@EXAMPLES
@given(drawn=laid(), gpus=st.integers(1, 200))
def test_a_layout_on_fewer_ranks_fits_its_model_and_is_the_largest_that_does(drawn: Laid, gpus: int) -> None:
    layout = drawn.layout
    step = layouts.data_step(layout)
    data = layouts.data_on_fewer(gpus=gpus, tensor=layout.tensor, pipeline=layout.pipeline, data_step=step)
    assert data * layout.tensor * layout.pipeline <= gpus
    if data:
        smaller = layouts.on_fewer(layout, data)
        assert not list(layouts.misfits(smaller, drawn.shape, smaller.ranks))
    for more in range(data + 1, gpus // (layout.tensor * layout.pipeline) + 1):
        group = layout.shard_group if layout.instances > 1 else more
        larger = layout._replace(data=more, shard_group=group)
        assert list(layouts.misfits(larger, drawn.shape, larger.ranks))


def test_a_million_ranks_are_a_few_runs() -> None:
    layout = _layout(tensor=8, pipeline=1, data=1_250_000)
    runs = layouts.place(layout, layouts.stages(layout, LLAMA_405B, FOURTEEN), FOURTEEN)
    assert sum(run.ranks for run in runs) == 10_000_000
    assert len(runs) == 2
