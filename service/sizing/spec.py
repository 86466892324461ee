"""ScenarioSpec: what goes in. Pydantic, and the wire model too: there is no second definition.

Bounds are generous but finite, so that no formula overflows within them. A block refuses what
contradicts itself; `ScenarioSpec` refuses what needs two blocks to see.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from service.errors import Fault
from service.sizing import presets
from service.wire import WHOLE, Absent, Flag, Incoming

Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e7)]
"""A duration that may be nothing. [s]"""
PositiveSeconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e7)]
"""A duration that takes at least a microsecond. [s]"""
Count = Annotated[int, Field(strict=True, ge=1, le=10_000_000), WHOLE]
PresetName = Annotated[str, Field(strict=True, min_length=1, max_length=64)]


def _refuse(faults: Iterable[Fault]) -> None:
    """Raise one validation error that carries every fault, with pointers relative to this block."""
    found = tuple(faults)
    if found:
        raise PydanticCustomError(
            "contradiction", "{sentence}", {"sentence": found[0].detail, "faults": found}
        )


def _together(block: Incoming, wanted: str, names: tuple[str, ...]) -> Iterable[Fault]:
    """Yield a fault for each of the fields that is absent while others of them are given."""
    given = [name for name in names if getattr(block, name) is not None]
    if given:
        for name in names:
            if name not in given:
                yield Fault(f"/{name}", "missing", f"{wanted} also needs {name}, beside {', '.join(given)}.")


class ModelSpec(Incoming):
    """What is trained, and what of it a checkpoint holds. Give `preset` or `parameters`."""

    preset: PresetName | Absent = None
    """A model of `GET /v1/presets/models`, in place of `parameters`."""
    parameters: Annotated[int, Field(strict=True, ge=1, le=10**14), WHOLE] | Absent = None
    """All stored parameters; for a mixture of experts all experts, not the active ones."""
    bytes_per_parameter: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=64)] = 14.0
    """12: fp32 master weights and two Adam moments; 14: with bf16 weights; 16: ZeRO's figure, with gradients. [B]"""
    extra_bytes: Annotated[int, Field(strict=True, ge=0, le=10**15), WHOLE] = 0
    """What is saved beside the parameters' state: data-loader and random-number state. [B]"""
    reduction_factor: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1)] = 1.0
    """The fraction of the parameters' bytes that is written, after compression or deduplication."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        known = presets.models()
        if self.preset is None and self.parameters is None:
            yield Fault("/parameters", "missing", "Give parameters, or a preset that has them.")
        if self.preset is not None and self.parameters is not None:
            yield Fault("/preset", "contradiction", "Give a preset or parameters, not both.")
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The model presets are {', '.join(known)}.")


class ClusterSpec(Incoming):
    """The machine that trains."""

    gpus: Count
    """GPUs of the job; each is one rank."""
    gpu_preset: PresetName | Absent = None
    """A GPU of `GET /v1/presets/gpus`: the default for the price and the host memory."""
    gpus_per_node: Annotated[int, Field(strict=True, ge=1, le=1024), WHOLE] = 8
    """GPUs in one node."""
    host_memory_bytes_per_node: Annotated[int, Field(strict=True, ge=1, le=10**15), WHOLE] | Absent = None
    """DRAM of one node. [B]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = presets.gpus()
        if self.gpu_preset is not None and self.gpu_preset not in known:
            _refuse([Fault("/gpu_preset", "unknown_preset", f"The GPU presets are {', '.join(known)}.")])
        return self

    @property
    def node_memory_bytes(self) -> int | None:
        """DRAM of one node: as stated, else as the GPU preset has it for nodes of as many GPUs. [B]"""
        if self.host_memory_bytes_per_node is not None or self.gpu_preset is None:
            return self.host_memory_bytes_per_node
        preset = presets.gpus()[self.gpu_preset]
        return preset.host_memory_bytes_per_node if preset.gpus_per_node == self.gpus_per_node else None


class ShardsSpec(Incoming):
    """How a checkpoint is cut into files."""

    writers: Count | Absent = None
    """Ranks that write; without it every GPU does."""
    files_per_writer: Annotated[int, Field(strict=True, ge=1, le=100_000), WHOLE] = 1
    """Data files of one writer in one save."""
    largest_shard_bytes: Annotated[int, Field(strict=True, ge=1, le=10**16), WHOLE] | Absent = None
    """Bytes of the writer with most to write: it sets a save's completion time. [B]"""
    skew: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1, le=1e7)] | Absent = None
    """The largest shard over the mean one; 1 without it, which is an assumption."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.largest_shard_bytes is not None and self.skew is not None:
            _refuse(
                [
                    Fault(
                        "/skew",
                        "contradiction",
                        "Give largest_shard_bytes or skew: each follows from the other.",
                    )
                ]
            )
        return self


class FailuresSpec(Incoming):
    """How often the job is interrupted: a `preset`, an observed record, or a mean time between failures."""

    preset: PresetName | Absent = None
    """A record of `GET /v1/presets/failure-records`."""
    observed_failures: Annotated[int, Field(strict=True, ge=0, le=10**9), WHOLE] | Absent = None
    """Unexpected interruptions that were counted."""
    observed_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e8)] | Absent = None
    """How long they were counted. [h]"""
    observed_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """On how many GPUs."""
    mtbf_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1e10)] | Absent = None
    """Mean time between failures, given directly. [h]"""
    mtbf_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """The GPU count for which `mtbf_hours` holds (1: per GPU, 8: per node of 8); without it this cluster's."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        observed = ("observed_failures", "observed_hours", "observed_gpus")
        ways = (("preset",), observed, ("mtbf_hours", "mtbf_gpus"))
        given = [[name for name in way if getattr(self, name) is not None] for way in ways]
        known = presets.failure_records()
        if not any(given):
            yield Fault(
                "",
                "missing",
                "Give a preset, or observed_failures, observed_hours and observed_gpus, or mtbf_hours.",
            )
        if sum(map(bool, given)) > 1:
            for names in filter(None, given):
                yield Fault(
                    f"/{names[0]}",
                    "contradiction",
                    "Give one of preset, the observed record, and mtbf_hours; not several.",
                )
        yield from _together(self, "An observed record", observed)
        if self.mtbf_gpus is not None and self.mtbf_hours is None:
            yield Fault(
                "/mtbf_hours",
                "missing",
                "mtbf_gpus says for how many GPUs mtbf_hours holds: give mtbf_hours.",
            )
        if self.observed_failures == 0:
            yield Fault(
                "/observed_failures",
                "no_failures",
                "A record without a failure gives only a lower bound of the time between failures, which is "
                "not served yet: give a longer record, or mtbf_hours.",
            )
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The failure records are {', '.join(known)}.")


class RestartSpec(Incoming):
    """What passes from a failure until training goes on: `seconds`, or all the parts."""

    seconds: Seconds | Absent = None
    """The whole of it, the load of the checkpoint included. [s]"""
    detect_seconds: Seconds | Absent = None
    """Until the failure is noticed. [s]"""
    reschedule_seconds: Seconds | Absent = None
    """Until the nodes are there. [s]"""
    initialise_seconds: Seconds | Absent = None
    """Start of the processes and of their collectives. [s]"""
    load_seconds: Seconds | Absent = None
    """Reading the checkpoint; without it `restore.target_seconds`. [s]"""
    warm_up_seconds: Seconds | Absent = None
    """Until the steps run at full speed again. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = ("detect_seconds", "reschedule_seconds", "initialise_seconds", "warm_up_seconds")
        given = [name for name in (*parts, "load_seconds") if getattr(self, name) is not None]
        if self.seconds is not None:
            _refuse(
                Fault(
                    f"/{name}",
                    "contradiction",
                    "Give seconds, which includes every part, or the parts; not both.",
                )
                for name in given
            )
        elif not given:
            _refuse(
                [
                    Fault(
                        "/seconds",
                        "missing",
                        f"Give seconds, or the parts {', '.join(parts)} and load_seconds.",
                    )
                ]
            )
        else:
            _refuse(
                Fault(
                    f"/{name}",
                    "missing",
                    f"A part left out is not zero: give all of {', '.join(parts)}, or seconds alone.",
                )
                for name in parts
                if name not in given
            )
        return self


DEFAULT_HEADROOM = 2.5
"""The articles plan two to three times the floor."""


class SaveMode(StrEnum):
    """Whether training stops for the whole save, or only while the state is copied to host memory."""

    SYNC = "sync"
    ASYNC = "async"


class SaveSpec(Incoming):
    """How a checkpoint is taken, and the stall budget: `blocking_seconds` or `overhead_fraction`."""

    mode: SaveMode
    """`sync`: training stops for the whole save. `async`: only while its state is copied to host memory."""
    blocking_seconds: PositiveSeconds | Absent = None
    """How long training may stop for one save. [s]"""
    overhead_fraction: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=0.99)] | Absent
    ) = None
    """The same as a fraction of the interval."""
    headroom: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1, le=100)] | Absent = None
    """Async: persist bandwidth over the least that fits the interval; 2.5 without it."""
    durable_lag_seconds: PositiveSeconds | Absent = None
    """Async: how long after training goes on the checkpoint may take to be durable. [s]"""
    staging_buffers: Annotated[int, Field(strict=True, ge=1, le=16), WHOLE] | Absent = None
    """Async: copies of a node's share that host memory holds; 1 without it."""
    separate_process_group: Flag | Absent = None
    """Whether checkpoint collectives have a process group of their own; no figure rests on it, the checklist does."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        if self.blocking_seconds is not None and self.overhead_fraction is not None:
            yield Fault(
                "/overhead_fraction",
                "contradiction",
                "Give blocking_seconds or overhead_fraction, not both.",
            )
        if self.mode is SaveMode.SYNC:
            for name in ("headroom", "durable_lag_seconds", "staging_buffers"):
                if getattr(self, name) is not None:
                    yield Fault(
                        f"/{name}",
                        "contradiction",
                        f"{name} belongs to mode async; leave it out, or change the mode.",
                    )
        elif self.blocking_seconds is None and self.overhead_fraction is None:
            yield Fault(
                "/blocking_seconds",
                "missing",
                "An async save still stops training to copy its state: give "
                "blocking_seconds (measured, or published: 0.6 to 14 s) or overhead_fraction.",
            )


class IntervalRule(StrEnum):
    """How the time between saves is chosen."""

    EXACT = "exact"
    YOUNG = "young"
    DALY = "daly"
    FIXED = "fixed"


class IntervalSpec(Incoming):
    """How often a checkpoint is taken, from the start of one save to the start of the next."""

    rule: IntervalRule = IntervalRule.EXACT
    """`exact`: the optimum for exponential failures; `young` 1974; `daly` 2006; `fixed`: as given."""
    seconds: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e9)] | Absent = None
    """The interval of the rule `fixed`. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rule is IntervalRule.FIXED and self.seconds is None:
            _refuse([Fault("/seconds", "missing", "The rule fixed needs the interval in seconds.")])
        if self.rule is not IntervalRule.FIXED and self.seconds is not None:
            _refuse(
                [
                    Fault(
                        "/seconds",
                        "contradiction",
                        f"The rule {self.rule} computes the interval: leave seconds out, or say fixed.",
                    )
                ]
            )
        return self


class RestoreSpec(Incoming):
    """The read after a failure."""

    target_seconds: PositiveSeconds
    """In what time every rank must have its state. [s]"""
    read_amplification: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=10_000)] = 1.0
    """Bytes that all ranks together read over the checkpoint's bytes."""


class RetentionSpec(Incoming):
    """How many checkpoints are kept, and where."""

    hot_copies: Annotated[int, Field(strict=True, ge=1, le=100_000), WHOLE] = 1
    """Checkpoints kept on the tier that is written to."""
    hot_protection_fraction: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=10)] = 0.0
    """Space for parity or replicas over the data: 0.25 for 8+2, 2 for three replicas."""
    cold_copies: Annotated[int, Field(strict=True, ge=0, le=100_000), WHOLE] = 0
    """Checkpoints kept on a cheaper tier."""
    cold_protection_fraction: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=10)] = 0.0
    """The same for the cold tier."""


class StorageSpec(Incoming):
    """A storage system as it is, for what it delivers. Each figure is optional; what it limits is then left out."""

    write_gb_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e9)] | Absent
    ) = None
    """Sustained aggregate write, durable. [10^9 B/s]"""
    read_gb_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e9)] | Absent
    ) = None
    """Sustained aggregate read. [10^9 B/s]"""
    node_gb_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e9)] | Absent
    ) = None
    """What one node's network or client can move. [10^9 B/s]"""
    file_creates_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e12)] | Absent
    ) = None
    """Files made a second, all clients together."""
    usable_tb: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=9e6)] | Absent = None
    """Space after protection. [10^12 B]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            _refuse(
                [Fault("", "missing", "Give at least one of " + ", ".join(type(self).model_fields) + ".")]
            )
        return self


Price = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6)]


class PricesSpec(Incoming):
    """What things cost."""

    gpu_hour_usd: Price | Absent = None
    """One GPU for an hour. [USD]"""
    hot_usd_per_tb_month: Price | Absent = None
    """A terabyte of the hot tier for a month. [USD]"""
    cold_usd_per_tb_month: Price | Absent = None
    """A terabyte of the cold tier for a month. [USD]"""


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

    @model_validator(mode="after")
    def _check(self) -> Self:
        _refuse(self._contradictions())
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
        target = self.restore.target_seconds if self.restore is not None else None
        if restart.seconds is not None and target is not None and restart.seconds < target:
            yield Fault(
                "/restart/seconds",
                "too_small",
                f"The restart includes the load, for which restore.target_seconds allows {target:g} s: give at "
                "least as much.",
            )
        if restart.seconds is None and restart.load_seconds is None and target is None:
            yield Fault(
                "/restart/load_seconds",
                "missing",
                "Give load_seconds, or restore.target_seconds to take it from.",
            )

    @property
    def storage_times_a_save(self) -> bool:
        """Whether the storage block has a limit that times a save."""
        storage = self.storage
        return storage is not None and any(
            limit is not None
            for limit in (
                storage.write_gb_per_second,
                storage.node_gb_per_second,
                storage.file_creates_per_second,
            )
        )

    @property
    def parameters(self) -> int:
        """All stored parameters, from the model or its preset."""
        if self.model.parameters is not None:
            return self.model.parameters
        return presets.models()[str(self.model.preset)].parameters
