"""The machine that trains, and how a checkpoint is cut over it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing import presets
from service.sizing.spec.fields import Count, PresetName, refuse
from service.sizing.spec.parallelism import ParallelismSpec
from service.wire import WHOLE, Absent, Incoming


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
    parallelism: ParallelismSpec | Absent = None
    """How the job is cut over its GPUs: who writes what, in place of `shards`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = presets.gpus()
        if self.gpu_preset is not None and self.gpu_preset not in known:
            refuse([Fault("/gpu_preset", "unknown_preset", f"The GPU presets are {', '.join(known)}.")])
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
            refuse(
                [
                    Fault(
                        "/skew",
                        "contradiction",
                        "Give largest_shard_bytes or skew: each follows from the other.",
                    )
                ]
            )
        return self

    @property
    def even(self) -> bool:
        """Whether nothing says that the shards are uneven, or how."""
        return self.skew is None and self.largest_shard_bytes is None
