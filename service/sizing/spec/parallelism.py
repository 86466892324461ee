"""How a job is cut over its GPUs."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.layout import Layout, LayoutRule, PipelineSplit, ReplicasWritten, layers_per_stage
from service.sizing.spec.fields import Count, refuse
from service.wire import WHOLE, Absent, Incoming

MOST_STAGES = 1024


class ParallelismSpec(Incoming):
    """How a job is cut over its GPUs; it says who writes what, in place of `shards`. The model needs a shape for it.

    FSDP is `zero_stage` 3; HSDP is that with a `shard_group`. Context-parallel ranks count as data-parallel ones:
    they hold the same weights, and ZeRO shards over both.
    """

    tensor: Count = 1
    """Ranks that divide each matrix. They must divide the attention heads, key-value heads and vocabulary."""
    pipeline: Annotated[int, Field(strict=True, ge=1, le=MOST_STAGES), WHOLE] = 1
    """Stages that divide the layers."""
    data: Count | Absent = None
    """Ranks that hold the same parameters; without it what `tensor` and `pipeline` leave of the GPUs."""
    expert: Count = 1
    """Ranks that divide the routed experts of a layer among them. They are ranks of the same stage: with
    `expert_tensor` they divide `tensor` times `data`."""
    expert_tensor: Count | Absent = None
    """Ranks that divide each expert's matrices; as many as `tensor` without it."""
    zero_stage: Annotated[int, Field(strict=True, ge=0, le=3), WHOLE] = 1
    """What data-parallel ranks divide: 0 nothing, 1 the optimiser's state, 2 also gradients, which nobody saves,
    3 also the weights."""
    shard_group: Count | Absent = None
    """Data-parallel ranks over which ZeRO shards, the whole being repeated over the other groups (HSDP, or several
    distributed-optimizer instances of Megatron); without it all of `data`."""
    replicas_written: ReplicasWritten = ReplicasWritten.ONCE
    """Who writes what several data-parallel ranks hold alike: `once` the first of them, the plain rule that published
    figures follow, and DeepSpeed with the weights of a data-parallel group; `spread` each an equal part, as Megatron's
    fully parallel save does (its default now) and DCP's deduplication strives for; `all` each all of it."""
    rule: LayoutRule = LayoutRule.FRAMEWORK
    """`framework`: ZeRO shards the state of a rank's own parameters within its data-parallel group, as Megatron,
    DeepSpeed and FSDP do. `mlperf_storage`: optimiser bytes even over all ranks, and the weights once by stage, as
    that benchmark writes and reads them."""
    pipeline_split: PipelineSplit = PipelineSplit.REMAINDER_FIRST
    """How layers are counted out to stages: `remainder_first` evenly, with one more on each of the first stages;
    `ends_as_layers` with the embedding and the output head counted as a layer each, as Megatron can."""
    layers_per_stage: (
        Annotated[
            list[Annotated[int, Field(strict=True, ge=0, le=10_000), WHOLE]],
            Field(min_length=1, max_length=MOST_STAGES),
        ]
        | Absent
    ) = None
    """The layers of each stage, where neither split is the job's."""
    weight_bytes_per_parameter: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=64)] | Absent
    ) = None
    """Those of the saved bytes per parameter that are model weights, which ZeRO below 3 leaves whole; the rest is
    sharded as optimiser state. Without it 2 (bf16), none where 12 bytes are saved (master weights and moments). [B]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        if self.zero_stage == 0 and self.shard_group is not None:
            yield Fault(
                "/shard_group",
                "contradiction",
                "ZeRO 0 shards nothing: leave shard_group out, or give a zero_stage from 1 to 3.",
            )
        if self.layers_per_stage is not None and self.pipeline_split is not PipelineSplit.REMAINDER_FIRST:
            yield Fault(
                "/pipeline_split",
                "contradiction",
                "Give layers_per_stage, or a pipeline_split to count the layers out; not both.",
            )

    def layout(self, *, gpus: int, layers: int) -> Layout:
        """Return the layout on so many GPUs of a model with so many layers, whether or not it fits them."""
        data = self.data or max(gpus // (self.tensor * self.pipeline), 1)
        counts: tuple[int, ...] = ()
        if self.layers_per_stage is not None:
            counts = tuple(self.layers_per_stage)
        elif self.pipeline <= layers:
            counts = layers_per_stage(layers=layers, pipeline=self.pipeline, split=self.pipeline_split)
        return Layout(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=data,
            expert=self.expert,
            expert_tensor=self.expert_tensor or self.tensor,
            zero_stage=self.zero_stage,
            shard_group=self.shard_group or data,
            replicas_written=self.replicas_written,
            rule=self.rule,
            layers_per_stage=counts,
        )
