"""A scenario's parallel layout, and what comes of it: shards, nodes, reads, and a restart on fewer nodes."""

import math
from typing import NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing import layout as layouts
from service.sizing.layout import (
    Layout,
    LayoutRule,
    Node,
    PerParameter,
    Ranks,
    ReplicasWritten,
    Stage,
    StateBytes,
    held_parameters,
)
from service.sizing.presets import RecipeItem, StateKind, StateScope
from service.sizing.sizing import ParallelLayout, RankClass, SmallerLayout
from service.sizing.spec import DEFAULT_BYTES_PER_PARAMETER, ScenarioSpec
from service.sizing.state import recipe_items, written_fraction
from service.wire import INT64_MAX

DEFAULT_WEIGHT_BYTES = 2.0
"""Weights in bf16."""
MASTER_AND_MOMENTS_BYTES = 12.0
"""Master weights and two moments in fp32: a checkpoint of as many bytes has no other weights."""


class Placement(NamedTuple):
    """A layout with the bytes of each of its ranks."""

    layout: Layout
    state: StateBytes
    stages: list[Stage]
    runs: list[Ranks]
    written: list[float]
    """By each rank of a run. [B]"""
    read: list[float]
    """Likewise. [B]"""
    bytes: float
    """What one save writes, second copies included. [B]"""
    distinct_bytes: float
    writers: int
    writing_nodes: int
    node: Node
    read_node: Node

    @property
    def largest_shard_bytes(self) -> float:
        """What the writer with most to write writes. [B]"""
        return max(self.written)

    @property
    def mean_shard_bytes(self) -> float:
        """What a writer writes on average. [B]"""
        return (
            math.fsum(each * run.ranks for each, run in zip(self.written, self.runs, strict=True))
            / self.writers
        )

    @property
    def read_bytes(self) -> float:
        """What all ranks together read at a load. [B]"""
        return math.fsum(each * run.ranks for each, run in zip(self.read, self.runs, strict=True))

    @property
    def read_amplification(self) -> float:
        """That over what was written."""
        return self.read_bytes / self.bytes


def weight_bytes_per_parameter(spec: ScenarioSpec) -> float:
    """Return what of a parameter's bytes is model weights where no recipe says: as stated, else by their number. [B]"""
    stated = spec.cluster.parallelism
    if stated is not None and stated.weight_bytes_per_parameter is not None:
        return stated.weight_bytes_per_parameter
    each = spec.model.bytes_per_parameter or DEFAULT_BYTES_PER_PARAMETER
    return min(DEFAULT_WEIGHT_BYTES, each) if each != MASTER_AND_MOMENTS_BYTES else 0.0


def state_bytes(spec: ScenarioSpec) -> StateBytes:
    """Return what a full save of a scenario writes of a parameter and of a rank. [B]"""
    model, items = spec.model, recipe_items(spec)
    if items:
        weights = _per_parameter(spec, [item for item in items if item.kind is StateKind.WEIGHTS])
        optimiser = _per_parameter(spec, [item for item in items if item.kind is not StateKind.WEIGHTS])
    else:
        each, own = model.bytes_per_parameter or DEFAULT_BYTES_PER_PARAMETER, weight_bytes_per_parameter(spec)
        fraction = written_fraction(spec)
        weights = PerParameter(own * fraction, own * fraction)
        optimiser = PerParameter((each - own) * fraction, (each - own) * fraction)
    return StateBytes(
        weights=weights,
        optimiser=optimiser,
        rank=float(model.extra_bytes_per_rank),
        once=float(model.extra_bytes),
    )


def _per_parameter(spec: ScenarioSpec, items: list[RecipeItem]) -> PerParameter:
    fraction = written_fraction(spec)
    return PerParameter(
        matrices=fraction
        * sum(item.bytes_per_parameter for item in items if item.of is not StateScope.OTHERS),
        others=fraction
        * sum(item.bytes_per_parameter for item in items if item.of is not StateScope.MATRICES),
    )


def placed(spec: ScenarioSpec, distinct_bytes: float) -> Placement:
    """Return the scenario's layout with its bytes.

    Args:
        spec: The scenario, with a layout that fits its GPUs and its model.
        distinct_bytes: The checkpoint without second copies. [B]

    Raises:
        Unsatisfiable: What is written or read is more than this service can count.
    """
    layout, shape = spec.layout, spec.architecture
    assert layout is not None  # noqa: S101 - the caller asks first, and the spec refuses a layout without a shape
    assert shape is not None  # noqa: S101
    state = state_bytes(spec)
    held = layouts.stages(layout, shape, state)
    found = _placed(layout, state, held, spec.cluster.gpus_per_node, distinct_bytes)
    if found.bytes > INT64_MAX:
        raise Unsatisfiable(
            Fault(
                "#/cluster/parallelism/replicas_written",
                "too_large",
                f"All copies together take more than {INT64_MAX} bytes (9.2 EB), which is beyond this service: write "
                "them once.",
            )
        )
    if found.read_bytes > INT64_MAX:
        raise Unsatisfiable(
            Fault(
                "#/cluster/parallelism/zero_stage",
                "too_large",
                f"All ranks together hold, and load, more than {INT64_MAX} bytes (9.2 EB), beyond this service: "
                "shard the state, so that fewer data-parallel ranks hold the same.",
            )
        )
    return found


def _placed(
    layout: Layout, state: StateBytes, held: list[Stage], gpus_per_node: int, distinct_bytes: float
) -> Placement:
    runs = layouts.place(layout, held, state)
    written, read = [run.written for run in runs], [run.read for run in runs]
    total = distinct_bytes
    if layout.replicas_written is ReplicasWritten.ALL:
        total = float(round(math.fsum(each * run.ranks for each, run in zip(written, runs, strict=True))))
    return Placement(
        layout=layout,
        state=state,
        stages=held,
        runs=runs,
        written=written,
        read=read,
        bytes=total,
        distinct_bytes=distinct_bytes,
        writers=sum(run.ranks for each, run in zip(written, runs, strict=True) if each > 0.0),
        writing_nodes=layouts.writing_nodes(runs, gpus_per_node),
        node=layouts.largest_node(runs, written, gpus_per_node),
        read_node=layouts.largest_node(runs, read, gpus_per_node),
    )


def spread_largest_shard_bytes(placement: Placement) -> float:
    """Return what the largest shard would be if all that hold the same wrote an equal part of it. [B]"""
    layout = placement.layout._replace(replicas_written=ReplicasWritten.SPREAD)
    return max(run.written for run in layouts.place(layout, placement.stages, placement.state))


def described(placement: Placement, gpus_per_node: int) -> ParallelLayout:
    """Return the layout as the answer shows it."""
    layout = placement.layout
    return ParallelLayout(
        rule=layout.rule,
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data,
        distinct_bytes=round(placement.distinct_bytes),
        copies_written=placement.bytes / placement.distinct_bytes,
        read_amplification=placement.read_amplification,
        largest_node_read_bytes=round(placement.read_node.bytes),
        ranks=[rank_class(placement, group) for group in classes(placement)],
        on_fewer_nodes=[
            smaller_layout(placement, data, gpus_per_node)
            for data in smaller_degrees(placement.layout, gpus_per_node)
        ],
    )


class Group(NamedTuple):
    """Runs of ranks that hold and write alike, in consecutive stages."""

    runs: tuple[int, ...]
    first_stage: int
    last_stage: int


def classes(placement: Placement) -> list[Group]:
    """Return the runs of a layout with those that are alike put together, in the order of their first ranks."""
    groups: list[Group] = []
    open_at: dict[tuple[object, ...], int] = {}
    for number, run in enumerate(placement.runs):
        held = placement.stages[run.first_stage]
        content = run._replace(first_stage=0, last_stage=0, first_rank=0, ranks=0)
        alike = (content, held, run.first_stage == run.last_stage)
        at = open_at.get(alike)
        if at is not None and groups[at].last_stage >= run.first_stage - 1:
            groups[at] = Group((*groups[at].runs, number), groups[at].first_stage, run.last_stage)
            continue
        open_at[alike] = len(groups)
        groups.append(Group((number,), run.first_stage, run.last_stage))
    return groups


def rank_class(placement: Placement, group: Group) -> RankClass:
    """Return what the ranks of a group have in common."""
    run = placement.runs[group.runs[0]]
    covered = placement.stages[group.first_stage : group.last_stage + 1]
    return RankClass(
        first_stage=group.first_stage,
        last_stage=group.last_stage,
        layers_per_stage=max(stage.layers for stage in covered),
        parameters=round(held_parameters(**held_inputs(placement, group))),
        ranks=sum(placement.runs[number].ranks for number in group.runs),
        bytes=round(placement.written[group.runs[0]]),
        weight_bytes=round(run.weights.bytes),
        optimiser_bytes=round(run.optimiser.bytes),
        read_bytes=round(placement.read[group.runs[0]]),
        holds=list(dict.fromkeys(name for stage in covered for name in stage.holds)),
    )


def held_inputs(placement: Placement, group: Group) -> dict[str, float]:
    """Return the parameters of a group's first stage, and over how many ranks they are divided."""
    held, layout = placement.stages[group.first_stage].parameters, placement.layout
    found = {
        "tensor_parameters": held.tensor + held.tied,
        "tensor": layout.tensor,
        "whole_parameters": held.whole,
    }
    if held.expert:
        found |= {
            "expert_parameters": held.expert,
            "expert": layout.expert,
            "expert_tensor": layout.expert_tensor,
        }
    return found


def smaller_degrees(layout: Layout, gpus_per_node: int) -> dict[int, int]:
    """Return data-parallel degrees on which the job can come back, each with the GPUs that lead to it.

    After one node is lost, on half of the GPUs, and the least. Tensor, pipeline and expert degrees stay. A
    benchmark's layout comes back as it was, so it has none.
    """
    if layout.rule is LayoutRule.MLPERF_STORAGE:
        return {}
    step = layouts.data_step(layout)
    found: dict[int, int] = {}
    for gpus in (layout.ranks - gpus_per_node, layout.ranks // 2, layout.tensor * layout.pipeline * step):
        data = layouts.data_on_fewer(
            gpus=max(gpus, 0), tensor=layout.tensor, pipeline=layout.pipeline, data_step=step
        )
        if 0 < data < layout.data:
            found.setdefault(data, gpus)
    return found


def smaller_placement(placement: Placement, data: int, gpus_per_node: int) -> Placement:
    """Return the same checkpoint on fewer data-parallel ranks."""
    layout = layouts.on_fewer(placement.layout, data)
    return _placed(layout, placement.state, placement.stages, gpus_per_node, placement.distinct_bytes)


def smaller_layout(placement: Placement, data: int, gpus_per_node: int) -> SmallerLayout:
    """Return what a restart on fewer data-parallel ranks reads, and what its saves write then."""
    smaller = smaller_placement(placement, data, gpus_per_node)
    return SmallerLayout(
        data=data,
        gpus=smaller.layout.ranks,
        nodes=-(-smaller.layout.ranks // gpus_per_node),
        read_bytes=round(smaller.read_bytes),
        largest_read_bytes=round(max(smaller.read)),
        largest_shard_bytes=round(smaller.largest_shard_bytes),
    )
