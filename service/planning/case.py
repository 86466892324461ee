"""What every test is planned from, and what a run of so many nodes can prove.

By the rules of the judgement rates are compared node by node on fewer nodes, times where a rank has the scenario's
load, a rate of creates as a whole, and the size of a checkpoint only on all nodes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from service.parsers.measurement import ENOUGH_REPETITIONS
from service.parsers.run import Condition
from service.planning import amounts, commands
from service.planning.commands import Blocks, Ranks, Site
from service.planning.planned import Best, Command, Proof
from service.sizing.checkpoint import Carriers
from service.sizing.sizing import Scope, Sizing, Target, TargetId, TargetUnit
from service.sizing.spec import SaveMode, ScenarioSpec
from service.units import GB

REPETITIONS = ENOUGH_REPETITIONS
OBJECT_GB_PER_SECOND = 1.0
"""What one object of a file on Lustre is trusted to take; a guess on the safe side, for one on disks."""
OBJECT_BYTES = 500 * GB
"""More than this in one object fills one target of the storage before the others. [B]"""
MOST_STRIPES = 2000
"""Lustre gives a file no more objects."""

LARGEST_TRANSFER_BYTES = 4 * 2**20
SMALLEST_TRANSFER_BYTES = 4096
PADDING_FRACTION = 0.05
"""By no more than this a block is larger than the largest shard, unless that is tiny."""

LOADS = frozenset({TargetId.LOAD_SECONDS, TargetId.RESHARDED_LOAD_SECONDS})


def blocks_for(shard_bytes: int) -> Blocks:
    """Return the block of each rank: the shard, rounded up to whole transfers.

    The transfer is the largest power of two that pads the shard by a twentieth at most.
    """
    shard_bytes = max(shard_bytes, 1)  # a share of less than half a byte is rounded to none
    transfer = LARGEST_TRANSFER_BYTES
    while (
        transfer > SMALLEST_TRANSFER_BYTES
        and _up(shard_bytes, transfer) > (1 + PADDING_FRACTION) * shard_bytes
    ):
        transfer //= 2
    return Blocks(block_bytes=_up(shard_bytes, transfer), transfer_bytes=transfer)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


@dataclass(frozen=True, slots=True)
class Case:
    """What every test is planned from."""

    spec: ScenarioSpec
    sizing: Sizing
    scenario_id: UUID
    site: Site
    url: str
    storage_label: str | None
    nodes: int
    low_fraction: float
    ranks: Ranks
    blocks: Blocks
    carriers: Carriers | None = None
    """Where it is that of the fullest nodes alone: as many of them as make up a checkpoint."""

    @property
    def all_nodes(self) -> int:
        """The scenario's nodes."""
        return self.sizing.checkpoint.nodes

    @property
    def writing_nodes(self) -> int:
        """The nodes that write in a save, or stand for them."""
        return self.carriers.nodes if self.carriers is not None else self.sizing.checkpoint.writing_nodes

    @property
    def for_fullest(self) -> "Case | None":
        """The case of the fullest nodes alone; None where shards are even enough to need none."""
        checkpoint = self.sizing.checkpoint
        carriers = checkpoint.carriers
        if carriers is None:
            return None
        return replace(
            self,
            ranks=Ranks(nodes=min(self.nodes, carriers.nodes), per_node=carriers.ranks_per_node),
            blocks=blocks_for(checkpoint.largest_shard_bytes),
            carriers=carriers,
        )

    def of(self, target_id: TargetId) -> "Case":
        """Return the case of the write test that is meant for a target."""
        fullest = self.for_fullest if self.sizing.carriers_of(target_id) is not None else None
        return fullest if fullest is not None else self

    @property
    def is_async(self) -> bool:
        """Whether training goes on while a save is written."""
        return self.spec.save.mode is SaveMode.ASYNC

    @property
    def window_seconds(self) -> float:
        """In what time a save is written."""
        return self.sizing.write.window_seconds(self.sizing.blocking)

    @property
    def one_write_bytes(self) -> int:
        """What all ranks of IOR write in one repetition. [B]"""
        return self.blocks.block_bytes * self.ranks.count

    @property
    def stripe_count(self) -> int:
        """Over how many objects a file is striped on Lustre: as few as its share of the rate and its size need."""
        checkpoint = self.sizing.checkpoint
        files = checkpoint.writers * self.spec.shards.files_per_writer
        rate = self.sizing.write.required_gb_per_second / files
        size = checkpoint.largest_shard_bytes / self.spec.shards.files_per_writer
        return min(
            MOST_STRIPES, max(math.ceil(rate / OBJECT_GB_PER_SECOND), math.ceil(size / OBJECT_BYTES), 1)
        )

    def is_full(self, nodes: int, *, writing: bool = False) -> bool:
        """Whether a run on so many nodes counts as one at full scale; of a benchmark that writes, with all writers."""
        return nodes >= self.low_fraction * self.nodes_of(writing=writing)

    def nodes_of(self, *, writing: bool) -> int:
        """Return the nodes that take part at full scale: in a benchmark that writes those that have writers."""
        return self.writing_nodes if writing else self.all_nodes

    def share(self, nodes: int, *, writing: bool = False) -> float:
        """Return the part of a cluster's rate that so many nodes must reach."""
        if self.is_full(nodes, writing=writing):
            return 1.0
        return nodes / self.nodes_of(writing=writing)

    @property
    def write_share(self) -> float:
        """The part of a cluster's write rate that the benchmark's nodes must reach."""
        return self.share(self.ranks.nodes, writing=True)

    def write_seconds(self, moved_bytes: float) -> float:
        """Return how long so much takes at the write bandwidth that the benchmark's nodes must reach."""
        return moved_bytes / GB / (self.sizing.write.required_gb_per_second * self.write_share)

    def is_fuller(self, target_id: TargetId) -> bool:
        """Whether a target of a node is that of the fullest, by the scenario's layout."""
        read = self.sizing.read
        needed = read if target_id is TargetId.NODE_READ_BANDWIDTH and read is not None else self.sizing.write
        return needed.largest_node_gb_per_second is not None

    def targets(self, *ids: TargetId) -> list[Target]:
        """Return those of the targets that the scenario has, in its order."""
        return [target for target in self.sizing.targets if target.id in ids]

    def post(self, result: str, conditions: Sequence[Condition] = ()) -> Command:
        """Return what posts a result."""
        plain = self.site.command(
            "Post the result.",
            commands.post(
                url=self.url,
                scenario_id=self.scenario_id,
                result=result,
                storage_label=self.storage_label,
                conditions=conditions,
            ),
        )
        key = commands.key_to_curl(commands.KEY_VARIABLE)
        return plain.model_copy(update={"line": f"{key} | {plain.line}"})


def proofs(case: Case, nodes: int, targets: Sequence[Target], *, flattered: bool = False) -> list[Proof]:
    """Return what a run on so many nodes must reach for each target; a flattered one can only show a miss."""
    return [_proof(case, nodes, target, writing=False, flattered=flattered) for target in targets]


def write_proofs(case: Case, targets: Sequence[Target]) -> list[Proof]:
    """Return what a benchmark must reach whose ranks stand for the writers of a save."""
    return [_proof(case, case.ranks.nodes, target, writing=True) for target in targets]


def _proof(case: Case, nodes: int, target: Target, *, writing: bool, flattered: bool = False) -> Proof:
    is_share = target.unit is TargetUnit.GB_PER_SECOND and target.scope is Scope.CLUSTER
    value = target.value * (case.share(nodes, writing=writing) if is_share else 1.0)
    sentence = amounts.bound(target.comparison, value, target.unit)
    if is_share and value != target.value:
        sentence += (
            f" on {amounts.of_nodes(nodes)}, their share of {amounts.of_unit(target.value, target.unit)} on "
            f"{case.nodes_of(writing=writing):,}"
        )
    elif target.scope is Scope.NODE:
        sentence += (
            " from each node" if writing or not case.is_fuller(target.id) else " from the fullest node"
        )
    best = _best(case, nodes, target.id, writing=writing)
    return Proof(
        target_id=target.id,
        comparison=target.comparison,
        target_value=target.value,
        value=value,
        unit=target.unit,
        scope=target.scope,
        why=target.why,
        best=Best.NOTHING if flattered else best,
        sentence=f"{sentence}: {target.why}",
    )


def _best(case: Case, nodes: int, target_id: TargetId, *, writing: bool) -> Best:
    if case.is_full(nodes, writing=writing):
        return Best.MET
    # A checkpoint of fewer nodes is smaller: it says nothing of the size, and of the time of a load only a miss.
    if target_id is TargetId.CHECKPOINT_BYTES or target_id in LOADS:
        return Best.NOTHING
    return Best.MET_IF_IT_SCALES
