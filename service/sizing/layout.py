"""Who holds what, and who writes what: a model's parts placed on the ranks of a parallel layout.

A rank is a place in a pipeline stage. What it writes follows from the stage and from how far down the stage it
stands, so ranks are counted in runs of alike ones and never one by one.

Two rules are known. `FRAMEWORK` is what Megatron-LM, DeepSpeed and FSDP do: ranks are numbered tensor first, then
data, then pipeline, and the state of a model-parallel rank's own parameters is sharded within its data-parallel
group. `MLPERF_STORAGE` is the benchmark's: tensor first, then pipeline, then data, and optimiser bytes even over all
ranks, whichever parameters they belong to.

References:
    S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC20.
    Y. Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 16(12), 2023.
    D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC21.
    Megatron-LM, `megatron/core/parallel_state.py`: the order of ranks, and the groups of experts.
    argonne-lcf/dlio_benchmark, `checkpointing/base_checkpointing.py`: the rule of MLPerf Storage.
"""

import math
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from service.sizing.architecture import MATRICES, Architecture, Cut, Part

ZERO = "Rajbhandari et al., ZeRO, SC20, section 5"
MEGATRON = "Megatron-LM, megatron/core/parallel_state.py; Narayanan et al., SC21"
MLPERF_STORAGE = "MLPerf Storage, by DLIO's checkpointing/base_checkpointing.py"


class LayoutRule(StrEnum):
    """By whose rule a layout shares out a checkpoint."""

    FRAMEWORK = "framework"
    MLPERF_STORAGE = "mlperf_storage"


class ReplicasWritten(StrEnum):
    """Who writes what several ranks hold alike."""

    ONCE = "once"
    """The first of them."""
    SPREAD = "spread"
    """Each an equal part of it, so that it is still written once."""
    ALL = "all"
    """Each all of it."""


class PipelineSplit(StrEnum):
    """How layers are counted out to pipeline stages where their number does not say."""

    REMAINDER_FIRST = "remainder_first"
    """Evenly, and one more to each of the first stages until none is left."""
    ENDS_AS_LAYERS = "ends_as_layers"
    """Likewise, with the embedding and the output head counted as a layer each."""


class Layout(NamedTuple):
    """How a job is cut over its ranks."""

    tensor: int
    pipeline: int
    data: int
    expert: int
    expert_tensor: int
    zero_stage: int
    shard_group: int
    """Data-parallel ranks over which ZeRO shards; all of them unless the job is hybrid-sharded."""
    replicas_written: ReplicasWritten
    rule: LayoutRule
    layers_per_stage: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """Of the job."""
        return rank_count(tensor=self.tensor, pipeline=self.pipeline, data=self.data)

    @property
    def stage_ranks(self) -> int:
        """Of one pipeline stage."""
        return self.tensor * self.data

    @property
    def instances(self) -> int:
        """How many times the sharded state exists."""
        return self.data // self.shard_group

    @property
    def expert_data(self) -> int:
        """Ranks that hold the same experts before ZeRO."""
        return self.stage_ranks // (self.expert * self.expert_tensor)


class PerParameter(NamedTuple):
    """What is saved of a parameter, by what it belongs to."""

    matrices: float
    """Of a layer's matrices. [B]"""
    others: float
    """Of embeddings, output head, norms and biases. [B]"""

    def of(self, part: Part) -> float:
        """Return what is saved of a parameter of the part. [B]"""
        return self.matrices if part.name in MATRICES else self.others


class StateBytes(NamedTuple):
    """What a save writes beside second copies."""

    weights: PerParameter
    """Model weights."""
    optimiser: PerParameter
    """Master weights, moments and whatever else is sharded as they are."""
    rank: float
    """Data-loader and random-number state of each rank. [B]"""
    once: float
    """What the first rank saves for all. [B]"""


class Cuts(NamedTuple):
    """What a pipeline stage holds, by how its ranks divide it: parameters, or bytes."""

    tensor: float
    """Over the tensor-parallel ranks."""
    whole: float
    """Not at all: norms and routers."""
    expert: float
    """Over the ranks of experts."""
    tied: float
    """The embedding that the last stage holds a second time for its output, over the tensor-parallel ranks."""


class Share(NamedTuple):
    """One rank's share of a stage's bytes: each kind over the ranks that divide it."""

    tensor_bytes: float
    tensor_ways: int
    whole_bytes: float
    whole_ways: int
    expert_bytes: float
    expert_ways: int

    @property
    def bytes(self) -> float:
        """What that is. [B]"""
        return share_bytes(**self._asdict())


NOTHING = Share(0.0, 1, 0.0, 1, 0.0, 1)


class Ranks(NamedTuple):
    """A run of consecutive ranks that hold and write alike, in one stage, or over all stages alike."""

    first_stage: int
    last_stage: int
    first_rank: int
    ranks: int
    weights: Share
    optimiser: Share
    read_weights: Share
    read_optimiser: Share

    own_bytes: float
    """What each of them saves of its own, and for all, beside the model's state. [B]"""

    @property
    def written(self) -> float:
        """What each of them writes. [B]"""
        return self.weights.bytes + self.optimiser.bytes + self.own_bytes

    @property
    def read(self) -> float:
        """What each of them reads at a load. [B]"""
        return self.read_weights.bytes + self.read_optimiser.bytes + self.own_bytes


class Stage(NamedTuple):
    """What one pipeline stage holds."""

    layers: int
    parameters: Cuts
    weights: Cuts
    optimiser: Cuts
    holds: tuple[str, ...]
    """The kinds of parts."""


def share_bytes(
    *,
    tensor_bytes: float = 0.0,
    tensor_ways: float = 1,
    whole_bytes: float = 0.0,
    whole_ways: float = 1,
    expert_bytes: float = 0.0,
    expert_ways: float = 1,
) -> float:
    """Return the bytes of one rank's share of a pipeline stage. [B]

    Args:
        tensor_bytes: State of the stage that tensor-parallel ranks divide; 0 where the rank has none of it. [B]
        tensor_ways: Ranks over which it is divided.
        whole_bytes: State of norms and routers, which every tensor-parallel rank holds. [B]
        whole_ways: Likewise.
        expert_bytes: State of routed experts. [B]
        expert_ways: Likewise.

    References:
        Rajbhandari et al., ZeRO, SC20, section 5: state over the data-parallel degree.
    """
    return tensor_bytes / tensor_ways + whole_bytes / whole_ways + expert_bytes / expert_ways


def rank_bytes(*, own_bytes: float = 0.0, **shares: float) -> float:
    """Return what one rank writes, or reads: its shares of weights and optimiser state, and its own state. [B]

    Args:
        own_bytes: Data-loader and random-number state, and what the first rank saves for all. [B]
        shares: The arguments of `share_bytes`, once as `weight_…` and once as `optimiser_…`.
    """
    total = own_bytes
    for kind in ("weight_", "optimiser_"):
        of_kind = {name.removeprefix(kind): value for name, value in shares.items() if name.startswith(kind)}
        total += share_bytes(**of_kind)
    return total


def held_parameters(
    *,
    tensor_parameters: float = 0,
    tensor: float = 1,
    whole_parameters: float = 0,
    expert_parameters: float = 0,
    expert: float = 1,
    expert_tensor: float = 1,
) -> float:
    """Return the parameters that one rank works with: its stage's, cut by tensor and by experts.

    Args:
        tensor_parameters: Those of the stage that tensor-parallel ranks divide.
        tensor: Over so many.
        whole_parameters: Norms and routers, of which each has all.
        expert_parameters: Those of routed experts.
        expert: Ranks that divide the experts of a layer among them.
        expert_tensor: Ranks that divide each of these.

    References:
        Narayanan et al., SC21, section 2.3; Megatron-LM for the groups of experts.
    """
    return tensor_parameters / tensor + whole_parameters + expert_parameters / (expert * expert_tensor)


def rank_count(*, tensor: int, pipeline: int, data: int) -> int:
    """Return the ranks of a layout."""
    return tensor * pipeline * data


def data_degree(*, gpus: int, tensor: int, pipeline: int) -> float:
    """Return the data-parallel degree that the other two leave."""
    return gpus / (tensor * pipeline)


def layers_per_stage(*, layers: int, pipeline: int, split: PipelineSplit) -> tuple[int, ...]:
    """Return how many layers each pipeline stage holds.

    Where the stages do not divide the layers, the first stages hold one more. With `ENDS_AS_LAYERS` the embedding
    and the output head take the place of a layer each: how 126 layers lie on 32 stages as 3, 30 times 4, and 3.

    References:
        Megatron-LM, `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split`;
        The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.2, which takes a layer off both ends.
    """
    ends = 2 if split is PipelineSplit.ENDS_AS_LAYERS else 0
    each, more = divmod(layers + ends, pipeline)
    counts = [each + (stage < more) for stage in range(pipeline)]
    if ends:
        counts[0] -= 1
        counts[-1] -= 1
    return tuple(counts)


def misfits(layout: Layout, architecture: Architecture, gpus: int) -> Iterator[tuple[str, str]]:
    """Yield why the layout fits neither the GPUs nor the model: the field to blame, and a sentence."""
    tensor, pipeline, data = layout.tensor, layout.pipeline, layout.data
    if layout.ranks != gpus:
        yield (
            "data",
            f"tensor {tensor} times pipeline {pipeline} times data {data} are {layout.ranks} ranks, and the cluster "
            f"has {gpus} GPUs"
            + (
                f": data would be {gpus // (tensor * pipeline)}."
                if gpus % (tensor * pipeline) == 0
                else f", which tensor times pipeline, {tensor * pipeline}, does not divide."
            ),
        )
    for name, count in (
        ("attention heads", architecture.attention_heads),
        ("key-value heads", architecture.key_value_heads),
        ("rows of the vocabulary", architecture.vocabulary),
    ):
        if count % tensor:
            padded = -(-count // tensor) * tensor
            cure = (
                f"; a framework that pads it saves {padded}: give that as the model's vocabulary"
                if name.startswith("rows")
                else ""
            )
            yield "tensor", f"{tensor} tensor-parallel ranks cannot divide the model's {count} {name}{cure}."
    layers = architecture.layer_count
    counts = layout.layers_per_stage
    if pipeline > layers:
        yield "pipeline", f"{pipeline} stages are more than the model's {layers} layers."
    elif len(counts) != pipeline or sum(counts) != layers:
        yield (
            "layers_per_stage",
            f"{sum(counts)} layers on {len(counts)} stages are listed; the model has {layers} layers and the layout "
            f"{pipeline} stages.",
        )
    if data % layout.shard_group:
        yield (
            "shard_group",
            f"Groups of {layout.shard_group} do not divide the {data} data-parallel ranks.",
        )
    yield from _expert_misfits(layout, architecture)
    if layout.rule is LayoutRule.MLPERF_STORAGE:
        yield from _benchmark_misfits(layout)


def _expert_misfits(layout: Layout, architecture: Architecture) -> Iterator[tuple[str, str]]:
    experts, wide = architecture.routed_experts, layout.expert * layout.expert_tensor
    if not experts:
        for name, count, without in (
            ("expert", layout.expert, 1),
            ("expert_tensor", layout.expert_tensor, layout.tensor),
        ):
            if count != without:
                yield name, "The model has no routed experts to divide: leave it out."
        return
    if experts % layout.expert:
        yield (
            "expert",
            f"{layout.expert} expert-parallel ranks cannot divide the {experts} experts of a layer.",
        )
    if layout.stage_ranks % wide:
        yield (
            "expert",
            f"expert {layout.expert} times expert_tensor {layout.expert_tensor} must divide the "
            f"{layout.stage_ranks} ranks of a stage (tensor times data).",
        )
    elif (
        layout.zero_stage and layout.data % layout.shard_group == 0 and layout.expert_data % layout.instances
    ):
        yield (
            "shard_group",
            f"{layout.instances} sharded copies cannot divide the {layout.expert_data} ranks that hold the same "
            "experts.",
        )


def _benchmark_misfits(layout: Layout) -> Iterator[tuple[str, str]]:
    if layout.expert > 1:
        yield "expert", "MLPerf Storage knows no expert parallelism: use the rule framework."
    if layout.shard_group != layout.data:
        yield "shard_group", "MLPerf Storage shards over all data-parallel ranks: use the rule framework."
    if layout.replicas_written is not ReplicasWritten.ONCE:
        yield "replicas_written", "MLPerf Storage writes the weights once: use the rule framework."
    if layout.zero_stage == 3 and layout.pipeline > 1:
        yield (
            "zero_stage",
            "MLPerf Storage has no pipeline stages at ZeRO 3: use one stage, or the rule framework.",
        )


def stages(layout: Layout, architecture: Architecture, state: StateBytes) -> list[Stage]:
    """Return what each pipeline stage holds, in order."""
    found = []
    last = layout.pipeline - 1
    waiting = deque((run.depth, run.parts) for run in architecture.layers)
    for stage, layers in enumerate(layout.layers_per_stage):
        runs: list[tuple[int, tuple[Part, ...]]] = [(1, architecture.embedding)] if stage == 0 else []
        wanted = layers
        while wanted:
            depth, parts = waiting.popleft()
            taken = min(depth, wanted)
            runs.append((taken, parts))
            wanted -= taken
            if depth > taken:
                waiting.appendleft((depth - taken, parts))
        if stage == last:
            runs.append((1, architecture.head))
        tied: tuple[Part, ...] = ()
        if architecture.tied_embeddings and stage == last > 0:
            tied = tuple(part for part in architecture.embedding if part.cut is Cut.TENSOR)
        found.append(
            Stage(
                layers=layers,
                parameters=_cuts(runs, tied, PerParameter(1, 1)),
                weights=_cuts(runs, tied, state.weights),
                optimiser=_cuts(runs, tied, state.optimiser),
                holds=tuple(dict.fromkeys(part.name for _, parts in runs for part in parts)),
            )
        )
    return found


def _cuts(runs: list[tuple[int, tuple[Part, ...]]], tied: tuple[Part, ...], each: PerParameter) -> Cuts:
    sums = dict.fromkeys(Cut, 0.0)
    for times, parts in runs:
        for part in parts:
            sums[part.cut] += times * part.parameters * each.of(part)
    return Cuts(
        tensor=sums[Cut.TENSOR],
        whole=sums[Cut.REPLICATED],
        expert=sums[Cut.EXPERT],
        tied=sum(part.parameters * each.of(part) for part in tied),
    )


def place(layout: Layout, held: list[Stage], state: StateBytes) -> list[Ranks]:
    """Return the ranks of the job, in their order, as runs of alike ones."""
    by_rule = _by_benchmark if layout.rule is LayoutRule.MLPERF_STORAGE else _by_framework
    runs = list(by_rule(layout, held, state.rank))
    if state.once:
        first = runs[0]
        rest = first._replace(first_rank=1, ranks=first.ranks - 1)
        runs[:1] = [
            first._replace(ranks=1, own_bytes=state.rank + state.once),
            *([rest] if rest.ranks else []),
        ]
    return runs


class _Sharding(NamedTuple):
    """How one kind of state is sharded within a stage, and which ranks of the stage write it."""

    dense: int
    expert: int
    dense_writers: int
    expert_writers: int


def _sharding(layout: Layout, from_stage: int) -> _Sharding:
    """Return it for state that ZeRO shards from a stage on: 1 for the optimiser's, 3 for the weights."""
    dense = layout.shard_group if layout.zero_stage >= from_stage else 1
    expert = layout.expert_data // layout.instances if layout.zero_stage >= from_stage else 1
    once = layout.replicas_written is ReplicasWritten.ONCE
    return _Sharding(
        dense=dense,
        expert=expert,
        dense_writers=layout.tensor * dense if once else layout.stage_ranks,
        expert_writers=layout.expert * layout.expert_tensor * expert if once else layout.stage_ranks,
    )


def _written(layout: Layout, held: Cuts, sharding: _Sharding, place_in_stage: int) -> Share:
    copies = layout.replicas_written
    dense_ways, expert_ways = (
        layout.tensor * sharding.dense,
        layout.expert * layout.expert_tensor * sharding.expert,
    )
    if copies is ReplicasWritten.SPREAD:
        dense_ways = expert_ways = layout.stage_ranks
    writes_dense = place_in_stage < sharding.dense_writers
    writes_experts = place_in_stage < sharding.expert_writers
    return Share(
        tensor_bytes=held.tensor * writes_dense + (held.tied if copies is ReplicasWritten.ALL else 0.0),
        tensor_ways=dense_ways,
        whole_bytes=held.whole * writes_dense,
        whole_ways=sharding.dense if copies is ReplicasWritten.ALL else dense_ways,
        expert_bytes=held.expert * writes_experts,
        expert_ways=expert_ways,
    )


def _held(layout: Layout, held: Cuts, sharding: _Sharding) -> Share:
    return Share(
        tensor_bytes=held.tensor + held.tied,
        tensor_ways=layout.tensor * sharding.dense,
        whole_bytes=held.whole,
        whole_ways=sharding.dense,
        expert_bytes=held.expert,
        expert_ways=layout.expert * layout.expert_tensor * sharding.expert,
    )


def _by_framework(layout: Layout, held: list[Stage], own_bytes: float) -> Iterator[Ranks]:
    weights, optimiser = _sharding(layout, 3), _sharding(layout, 1)
    everyone = layout.stage_ranks
    bounds = {0, everyone, weights.dense_writers, optimiser.dense_writers}
    if any(stage.parameters.expert for stage in held):
        bounds |= {weights.expert_writers, optimiser.expert_writers}
    edges = sorted(bounds)
    for number, stage in enumerate(held):
        read_weights = _held(layout, stage.weights, weights)
        read_optimiser = _held(layout, stage.optimiser, optimiser)
        for start, end in pairwise(edges):
            yield Ranks(
                first_stage=number,
                last_stage=number,
                first_rank=number * everyone + start,
                ranks=end - start,
                weights=_written(layout, stage.weights, weights, start),
                optimiser=_written(layout, stage.optimiser, optimiser, start),
                read_weights=read_weights,
                read_optimiser=read_optimiser,
                own_bytes=own_bytes,
            )


def _by_benchmark(layout: Layout, held: list[Stage], own_bytes: float) -> Iterator[Ranks]:
    """Yield them by a rule that knows no experts, cutting those like all matrices; a rank reads what it wrote."""
    replica = layout.tensor * layout.pipeline
    everywhere = layout.ranks if layout.zero_stage else replica
    optimiser = Share(
        tensor_bytes=math.fsum(stage.optimiser.tensor + stage.optimiser.expert for stage in held),
        tensor_ways=everywhere,
        whole_bytes=math.fsum(stage.optimiser.whole for stage in held),
        whole_ways=everywhere,
        expert_bytes=0.0,
        expert_ways=1,
    )
    sharded = layout.zero_stage == 3
    ways = layout.tensor * (layout.data if sharded else 1)
    for number, stage in enumerate(held):
        weights = Share(stage.weights.tensor + stage.weights.expert, ways, stage.weights.whole, ways, 0.0, 1)
        yield Ranks(
            first_stage=number,
            last_stage=number,
            first_rank=number * layout.tensor,
            ranks=layout.ranks if sharded else layout.tensor,
            weights=weights,
            optimiser=optimiser,
            read_weights=weights,
            read_optimiser=optimiser,
            own_bytes=own_bytes,
        )
    if not sharded and layout.data > 1:
        rest = optimiser if layout.zero_stage else NOTHING
        yield Ranks(
            first_stage=0,
            last_stage=layout.pipeline - 1,
            first_rank=replica,
            ranks=layout.ranks - replica,
            weights=NOTHING,
            optimiser=rest,
            read_weights=NOTHING,
            read_optimiser=rest,
            own_bytes=own_bytes,
        )


class NodePart(NamedTuple):
    """Some of the ranks of one node."""

    run: int
    """Which run of alike ranks they are of."""
    ranks: int


class Node(NamedTuple):
    """The node with most to move."""

    bytes: float
    parts: tuple[NodePart, ...]


def largest_node(runs: list[Ranks], rank_bytes: list[float], gpus_per_node: int) -> Node:
    """Return the node whose ranks have most together; ranks fill nodes in their order.

    Only a node at the edge of a run can have more than a node within one: every other is like its neighbour.

    Args:
        runs: All ranks of the job.
        rank_bytes: What each rank of a run has. [B]
        gpus_per_node: Ranks of a node; the last one may have fewer.
    """
    nodes: dict[int, None] = {}
    for run in runs:
        first, last = run.first_rank // gpus_per_node, (run.first_rank + run.ranks - 1) // gpus_per_node
        nodes.update(dict.fromkeys((first, min(first + 1, last), last)))
    best = Node(-1.0, ())
    at = 0
    for node in sorted(nodes):
        start, end = node * gpus_per_node, (node + 1) * gpus_per_node
        while runs[at].first_rank + runs[at].ranks <= start:
            at += 1
        parts = []
        for number in range(at, len(runs)):
            run = runs[number]
            if run.first_rank >= end:
                break
            inside = min(run.first_rank + run.ranks, end) - max(run.first_rank, start)
            parts.append(NodePart(number, inside))
        total = math.fsum(rank_bytes[part.run] * part.ranks for part in parts)
        if total > best.bytes:
            best = Node(total, tuple(parts))
    return best


def writing_nodes(runs: list[Ranks], gpus_per_node: int) -> int:
    """Return how many nodes have a rank that writes."""
    found, last = 0, -1
    for run in runs:
        if run.written > 0.0:
            first = max(run.first_rank // gpus_per_node, last + 1)
            last = max((run.first_rank + run.ranks - 1) // gpus_per_node, last)
            found += max(last - first + 1, 0)
    return found


def data_step(layout: Layout) -> int:
    """Return of what the data-parallel degree must be a multiple for the rest of the layout to stay as it is.

    A hybrid-sharded job loses whole groups; experts must still divide a stage, and their ranks the groups.
    """
    group = layout.shard_group if layout.instances > 1 else 1
    wide = layout.expert * layout.expert_tensor
    return math.lcm(group, wide // math.gcd(wide, layout.tensor))


def data_on_fewer(*, gpus: int, tensor: int, pipeline: int, data_step: int) -> int:
    """Return the largest data-parallel degree that fits on so many GPUs; 0 where none does."""
    return gpus // (tensor * pipeline * data_step) * data_step


def on_fewer(layout: Layout, data: int) -> Layout:
    """Return the layout with fewer data-parallel ranks."""
    group = layout.shard_group if layout.instances > 1 else data
    return layout._replace(data=data, shard_group=group)
