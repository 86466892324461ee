"""Layouts to test with: generated ones over small models, and an oracle that hands state out rank by rank."""

from collections import defaultdict
from typing import NamedTuple

from hypothesis import strategies as st

from service.sizing.architecture import Architecture, Cut, Layers, Part
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
    misfits,
)

Holders = dict[tuple[int, ...], list[tuple[int, int]]]
"""Of each piece of state the ranks that hold it, each with the number of its copy."""


class Laid(NamedTuple):
    """A model, a layout that fits it, and what is saved."""

    shape: Architecture
    layout: Layout
    state: StateBytes


def part(name: str, parameters: int, cut: Cut = Cut.TENSOR) -> Part:
    return Part(name, parameters, parameters, cut)


def llama(
    *, layers: int, hidden: int, ffn: int, heads: int, key_value_heads: int, vocabulary: int = 128_256
) -> Architecture:
    """Return a Llama's shape, counted here by hand and not by the engine."""
    attention = 2 * hidden * hidden + 2 * hidden * (hidden // heads * key_value_heads)
    each = (
        part("attention", attention),
        part("mlp", 3 * hidden * ffn),
        part("norms", 2 * hidden, Cut.REPLICATED),
    )
    return Architecture(
        embedding=(part("embedding", vocabulary * hidden),),
        layers=(Layers(layers, each),),
        head=(part("norms", hidden, Cut.REPLICATED), part("output_head", vocabulary * hidden)),
        tied_embeddings=False,
        hidden=hidden,
        vocabulary=vocabulary,
        attention_heads=heads,
        key_value_heads=key_value_heads,
        routed_experts=0,
    )


LLAMA_405B = llama(layers=126, hidden=16384, ffn=53248, heads=128, key_value_heads=8)


@st.composite
def shapes(draw: st.DrawFn, *, alike: bool = False) -> Architecture:
    """Draw a small model: dense or with experts, its layers alike or not, embeddings tied or not."""
    runs, experts = [], draw(st.sampled_from([0, 8]))
    for _ in range(1 if alike else draw(st.integers(1, 3))):
        parts = [
            part("attention", draw(st.integers(1, 9)) * 96),
            part("norms", draw(st.integers(0, 30)), Cut.REPLICATED),
        ]
        if experts and draw(st.booleans()):
            parts += [
                part("router", 17, Cut.REPLICATED),
                part("routed_experts", draw(st.integers(1, 20)) * 96, Cut.EXPERT),
            ]
        runs.append(Layers(draw(st.integers(1, 6)), tuple(parts)))
    tied = draw(st.booleans())
    head = [part("norms", 5, Cut.REPLICATED)] + ([] if tied else [part("output_head", 960)])
    return Architecture(
        embedding=(part("embedding", 960),),
        layers=tuple(runs),
        head=tuple(head),
        tied_embeddings=tied,
        hidden=96,
        vocabulary=96,
        attention_heads=96,
        key_value_heads=24,
        routed_experts=experts,
    )


@st.composite
def laid(draw: st.DrawFn, *, rule: LayoutRule = LayoutRule.FRAMEWORK, alike: bool = False) -> Laid:
    """Draw a layout that fits a drawn model."""
    shape = draw(shapes(alike=alike))
    by_benchmark = rule is LayoutRule.MLPERF_STORAGE
    zero_stage = draw(st.integers(0, 3))
    layers = shape.layer_count
    pipeline = 1 if by_benchmark and zero_stage == 3 else draw(st.integers(1, min(layers, 5)))
    tensor = draw(st.sampled_from([1, 2, 3, 4]))
    group, instances = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    if zero_stage == 0 or by_benchmark:
        instances = 1
    data = group * instances
    expert, expert_tensor = 1, tensor
    if shape.routed_experts and not by_benchmark:
        # Experts divide the ranks of one instance: any two numbers whose product does.
        widths = [
            (each, wide)
            for each in (1, 2, 4, 8)
            for wide in (1, 2, 3, 4)
            if tensor * (group if zero_stage else data) % (each * wide) == 0
        ]
        expert, expert_tensor = draw(st.sampled_from(widths))
    layout = Layout(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        expert=expert,
        expert_tensor=expert_tensor,
        zero_stage=zero_stage,
        shard_group=group if zero_stage else data,
        replicas_written=ReplicasWritten.ONCE if by_benchmark else draw(st.sampled_from(ReplicasWritten)),
        rule=rule,
        layers_per_stage=layers_per_stage(
            layers=layers, pipeline=pipeline, split=draw(st.sampled_from(PipelineSplit))
        ),
    )
    assert not list(misfits(layout, shape, layout.ranks))
    others = draw(st.sampled_from([0.0, 6.0, 12.0]))
    state = StateBytes(
        weights=PerParameter(*[draw(st.sampled_from([0.0, 2.0, 4.0]))] * 2),
        optimiser=PerParameter(draw(st.just(others) | st.just(8.0)), others),
        rank=draw(st.sampled_from([0.0, 7.0])),
        once=draw(st.sampled_from([0.0, 1000.0])),
    )
    return Laid(shape, layout, state)


def rank_by_rank(runs: list[Ranks], of_run: list[float]) -> list[float]:
    """Return what each rank of the job has, in order."""
    found: list[float] = []
    for run, each in zip(runs, of_run, strict=True):
        assert run.first_rank == len(found)
        found += [each] * run.ranks
    return found


def oracle(placed: Laid, held: list[Stage]) -> tuple[list[float], list[float]]:
    """Return what each rank writes and reads by the rule framework.

    Every piece of state knows its holders; it is handed to those of them that write it.
    """
    layout, state = placed.layout, placed.state
    tensor, data, group = layout.tensor, layout.data, layout.shard_group
    wide = layout.expert * layout.expert_tensor
    expert_group = (tensor * data // wide) // (data // group)
    written = [state.rank + (state.once if rank == 0 else 0.0) for rank in range(layout.ranks)]
    read = list(written)

    def hand_out(holders: Holders, each: float, *, whole: bool) -> None:
        for ranks in holders.values():
            first = min(replica for _, replica in ranks)
            writers = [rank for rank, _ in ranks]
            if layout.replicas_written is ReplicasWritten.ONCE:
                writers = [rank for rank, replica in ranks if replica == first]
                assert whole or len(writers) == 1
            for rank, _ in ranks:
                read[rank] += each
            share = 1 if layout.replicas_written is ReplicasWritten.ALL else len(writers)
            for rank in writers:
                written[rank] += each / share

    for number, stage in enumerate(held):
        for kind, sharded in (
            (stage.weights, layout.zero_stage == 3),
            (stage.optimiser, layout.zero_stage > 0),
        ):
            dense: Holders = defaultdict(list)
            alike: Holders = defaultdict(list)
            experts: Holders = defaultdict(list)
            ways, expert_ways = (group, expert_group) if sharded else (1, 1)
            for at in range(tensor * data):
                rank = number * tensor * data + at
                at_tensor, at_data = at % tensor, at // tensor
                dense[at_tensor, at_data % ways].append((rank, at_data // ways))
                alike[at_data % ways,].append((rank, at_data // ways))
                at_expert_data = at // wide
                experts[at % wide, at_expert_data % expert_ways].append((rank, at_expert_data // expert_ways))
            hand_out(dense, kind.tensor / tensor / ways, whole=False)
            hand_out(alike, kind.whole / ways, whole=True)
            hand_out(experts, kind.expert / wide / expert_ways, whole=False)
            # The second copy of a tied embedding: everybody reads it, and only who writes everything writes it.
            for at in range(tensor * data):
                rank = number * tensor * data + at
                copy = kind.tied / tensor / ways
                read[rank] += copy
                written[rank] += copy if layout.replicas_written is ReplicasWritten.ALL else 0.0
    return written, read
