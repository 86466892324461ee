"""ScenarioSpec: all blocks, and what needs two of them to see."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.architecture import Architecture
from service.sizing.layout import Layout, ReplicasWritten, misfits
from service.sizing.spec.cluster import ClusterSpec, ShardsSpec
from service.sizing.spec.failures import FailuresSpec
from service.sizing.spec.fields import refuse
from service.sizing.spec.model import DEFAULT_BYTES_PER_PARAMETER, ModelSpec
from service.sizing.spec.parallelism import ParallelismSpec
from service.sizing.spec.restart import RestartSpec, RestoreSpec
from service.sizing.spec.save import IntervalSpec, SaveSpec
from service.sizing.spec.storage import PricesSpec, RetentionSpec, StorageSpec
from service.sizing.spec.tiers import FailureShares, Tiers, tier_contradictions
from service.wire import Absent, Incoming


class ScenarioSpec(Incoming):
    """A training job on a cluster, with what is wanted of its checkpoints."""

    model: ModelSpec
    cluster: ClusterSpec
    shards: ShardsSpec = Field(default_factory=ShardsSpec)
    failures: FailuresSpec
    restart: RestartSpec
    save: SaveSpec
    interval: IntervalSpec = Field(default_factory=IntervalSpec)
    restore: RestoreSpec | Absent = None
    retention: RetentionSpec | Absent = None
    storage: StorageSpec | Absent = None
    prices: PricesSpec | Absent = None
    tiers: Tiers | Absent = None
    """Tiers nearer than shared storage, nearest first; `save` and `interval` are the tier `shared_storage`."""
    failure_mix: FailureShares | Absent = None
    """What failures leave of the nodes, for `tiers`; without it as in the Llama 3 record."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        gpus, shards, save, restart = self.cluster.gpus, self.shards, self.save, self.restart
        if shards.writers is not None and shards.writers > gpus:
            yield Fault(
                "/shards/writers", "too_large", f"Writers are ranks, and there are {gpus} of them at most."
            )
        if shards.skew is not None and shards.skew > (shards.writers or gpus):
            yield Fault(
                "/shards/skew",
                "too_large",
                f"One of {shards.writers or gpus} shards cannot hold more than the whole checkpoint.",
            )
        if self.cluster.parallelism is not None:
            yield from self._layout_faults()
        if save.blocking_seconds is None and save.overhead_fraction is None and not self.storage_times_a_save:
            yield Fault(
                "/save/blocking_seconds",
                "missing",
                "Give the stall budget as blocking_seconds or overhead_fraction, or a storage block whose write "
                "bandwidth it follows from.",
            )
        if (
            self.interval.seconds is not None
            and save.blocking_seconds is not None
            and save.blocking_seconds >= self.interval.seconds
        ):
            yield Fault(
                "/save/blocking_seconds",
                "too_large",
                "A save that blocks as long as the interval leaves no time to train: block for less than "
                f"{self.interval.seconds:g} s, or save less often.",
            )
        memory, room = self.cluster.node_memory_bytes, save.staging_budget_bytes_per_node
        if memory is not None and room is not None and room > memory:
            yield Fault(
                "/save/staging_budget_bytes_per_node",
                "too_large",
                f"A node has {memory} bytes of memory: give at most as much.",
            )
        target = self.restore.target_seconds if self.restore is not None else None
        if restart.seconds is not None and target is not None and restart.seconds < target:
            yield Fault(
                "/restart/seconds",
                "too_small",
                f"The restart includes the load, for which restore.target_seconds allows {target:g} s: give at "
                "least as much.",
            )
        if (
            restart.seconds is None
            and restart.load_seconds is None
            and target is None
            and not self.storage_times_a_load
        ):
            yield Fault(
                "/restart/load_seconds",
                "missing",
                "Give load_seconds, or restore.target_seconds or storage.read_gb_per_second to take it from.",
            )
        if self.tiers is not None or self.failure_mix is not None:
            yield from tier_contradictions(
                tiers=self.tiers,
                failure_mix=self.failure_mix,
                nodes=-(-gpus // self.cluster.gpus_per_node),
                interval_seconds=self.interval.seconds,
            )

    def _layout_faults(self) -> Iterable[Fault]:
        at, stated = "/cluster/parallelism", self.cluster.parallelism
        for name in ("writers", "largest_shard_bytes", "skew"):
            if getattr(self.shards, name) is not None:
                yield Fault(
                    f"/shards/{name}",
                    "contradiction",
                    f"{name} follows from cluster.parallelism: leave it out, or the layout where {name} was measured.",
                )
        shape = self.architecture
        if shape is None:
            yield Fault(
                at,
                "no_shape",
                "A layout divides a model's parts, which a parameter count does not tell: give the model as config, "
                "or as a preset that has a shape.",
            )
            return
        assert stated is not None  # noqa: S101 - the caller asks first
        layout = stated.layout(gpus=self.cluster.gpus, layers=shape.layer_count)
        for name, why in misfits(layout, shape, self.cluster.gpus):
            yield Fault(f"{at}/{name}", "does_not_fit", why)
        yield from self._layout_state_faults(stated)

    def _layout_state_faults(self, stated: ParallelismSpec) -> Iterable[Fault]:
        at, model = "/cluster/parallelism", self.model
        if model.adapter_parameters is not None or model.lora_rank is not None:
            yield Fault(
                at,
                "adapter_alone",
                "A layout places the state of the whole model, and this recipe saves an adapter alone: leave it out, "
                "and give shards as they are.",
            )
        if stated.replicas_written is ReplicasWritten.ALL:
            for name in ("deduplication_factor", "differential_fraction"):
                if getattr(model, name) is not None:
                    yield Fault(
                        f"{at}/replicas_written",
                        "contradiction",
                        f"model.{name} leaves out what is saved already, and all saves every copy: write them once, or "
                        "leave it out.",
                    )
        own, each = (
            stated.weight_bytes_per_parameter,
            model.bytes_per_parameter or DEFAULT_BYTES_PER_PARAMETER,
        )
        if own is not None and model.recipe is not None:
            yield Fault(
                f"{at}/weight_bytes_per_parameter",
                "contradiction",
                f"The recipe {model.recipe} says what are weights: leave this out.",
            )
        elif own is not None and own > each:
            yield Fault(
                f"{at}/weight_bytes_per_parameter",
                "too_large",
                f"A checkpoint saves {each:g} bytes per parameter in all.",
            )

    @property
    def architecture(self) -> Architecture | None:
        """The model's shape, where it is given as one."""
        return self.model.architecture

    @property
    def layout(self) -> Layout | None:
        """The parallel layout, where it is given and the model has a shape to lay out."""
        stated, shape = self.cluster.parallelism, self.architecture
        if stated is None or shape is None:
            return None
        return stated.layout(gpus=self.cluster.gpus, layers=shape.layer_count)

    @property
    def storage_times_a_save(self) -> bool:
        """Whether the storage block has a limit that times a save."""
        storage = self.storage_system
        return storage is not None and any(
            limit is not None
            for limit in (
                storage.write_gb_per_second,
                storage.node_gb_per_second,
                storage.file_creates_per_second,
            )
        )

    @property
    def storage_times_a_load(self) -> bool:
        """Whether the storage block has a limit that times a load."""
        storage = self.storage_system
        return storage is not None and any(
            limit is not None for limit in (storage.read_gb_per_second, storage.node_gb_per_second)
        )

    @property
    def storage_system(self) -> StorageSpec | None:
        """The storage block, with the figures of its preset."""
        return self.storage.with_preset if self.storage is not None else None

    @property
    def parameters(self) -> int:
        """All stored parameters, as given or counted."""
        return self.model.stored_parameters
