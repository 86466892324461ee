"""What is trained, and what of it a checkpoint holds."""

import json
import math
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from service.errors import Fault, Unsatisfiable
from service.sizing import presets
from service.sizing.architecture import Architecture
from service.sizing.presets import StateScope
from service.sizing.spec.fields import PresetName, refuse, together
from service.wire import WHOLE, Absent, Flag, Incoming

DEFAULT_BYTES_PER_PARAMETER = 14.0
"""Adam in mixed precision with the bf16 weights, as in the articles. [B]"""

MOST_PARAMETERS = 10**14

CONFIG_MOST_CHARACTERS = 65_536
CONFIG_MOST_LEVELS = 16

Fraction = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1)]

_FACTORS = ("compression_factor", "deduplication_factor", "differential_fraction", "full_every")


class LoraTarget(StrEnum):
    """Which matrices of the layers an adapter goes beside."""

    ATTENTION = "attention"
    MLP = "mlp"
    ROUTED_EXPERTS = "routed_experts"
    SHARED_EXPERTS = "shared_experts"


class ModelSpec(Incoming):
    """What is trained, and what of it a checkpoint holds. Give `preset`, `config` or `parameters`."""

    preset: PresetName | Absent = None
    """A model of `GET /v1/presets/models`, in place of `parameters`."""
    config: dict[str, Any] | Absent = None
    """The body of the model's Hugging Face `config.json`, in place of `parameters`; other keys are kept."""
    parameters: Annotated[int, Field(strict=True, ge=1, le=MOST_PARAMETERS), WHOLE] | Absent = None
    """All stored parameters; for a mixture of experts all experts, not the active ones."""
    bytes_per_parameter: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=64)] | Absent
    ) = None
    """12: fp32 master weights and two Adam moments; 14: with bf16 weights; 16: ZeRO's figure, with gradients.
    14 without it and without a recipe. [B]"""
    recipe: PresetName | Absent = None
    """What a checkpoint holds, as one of `GET /v1/presets/recipes`, in place of `bytes_per_parameter`."""
    ema_copy: Flag | Absent = None
    """Whether an fp32 moving average of the weights is saved beside the recipe's state. A layout shards it as it does
    the optimiser's, whose master weights it follows."""
    adapter_parameters: Annotated[int, Field(strict=True, ge=1, le=MOST_PARAMETERS), WHOLE] | Absent = None
    """Parameters of the adapter, for a recipe that saves it alone."""
    lora_rank: Annotated[int, Field(strict=True, ge=1, le=1_000_000), WHOLE] | Absent = None
    """Rank of low-rank adapters, in place of `adapter_parameters`; they are counted from the model's shape."""
    lora_targets: Annotated[list[LoraTarget], Field(min_length=1, max_length=4)] | Absent = None
    """What has such adapters; without it every matrix of the layers but routers."""
    extra_bytes: Annotated[int, Field(strict=True, ge=0, le=10**15), WHOLE] = 0
    """What is saved beside the parameters' state, once: the trainer's own, for example. [B]"""
    extra_bytes_per_rank: Annotated[int, Field(strict=True, ge=0, le=10**8), WHOLE] = 0
    """What every rank saves beside it: data-loader and random-number state. [B]"""
    reduction_factor: Fraction | Absent = None
    """The fraction of the parameters' bytes that is written and read back; 1 without it."""
    compression_factor: Fraction | Absent = None
    """Compressed over plain bytes of the parameters' state: what is written, kept and read back."""
    deduplication_factor: Fraction | Absent = None
    """The fraction of it that earlier saves do not hold: what is written. A restore reads all of it."""
    differential_fraction: Fraction | Absent = None
    """The fraction that a save between two full ones writes: what changed since the save before."""
    full_every: Annotated[int, Field(strict=True, ge=2, le=1000), WHOLE] | Absent = None
    """One of so many saves is full; a restore reads it and the differences since."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        yield from self._of_the_model()
        if self.recipe is not None or self.ema_copy is not None or self.lora_targets is not None:
            yield from self._of_the_recipe()
        if self.adapter_parameters is not None or self.lora_rank is not None:
            yield from self._of_the_adapter()
        if not self.model_fields_set.isdisjoint(_FACTORS):
            yield from self._of_the_factors()

    def _of_the_model(self) -> Iterable[Fault]:
        known = presets.models()
        if self.preset is None and self.parameters is None and self.config is None:
            yield Fault("/parameters", "missing", "Give parameters, or a preset or a config that has them.")
        if self.preset is not None and self.parameters is not None:
            yield Fault("/preset", "contradiction", "Give a preset or parameters, not both.")
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The model presets are {', '.join(known)}.")
        if self.config is not None:
            for other in ("preset", "parameters"):
                if getattr(self, other) is not None:
                    yield Fault("/config", "contradiction", f"Give a config or {other}, not both.")
            yield from self._config_faults

    def _of_the_recipe(self) -> Iterable[Fault]:
        known = presets.recipes()
        if self.recipe is None:
            for name in ("ema_copy", "lora_targets"):
                if getattr(self, name) is not None:
                    yield Fault(
                        "/recipe", "missing", f"{name} adds to a recipe: give one, such as adam_mixed_14."
                    )
            return
        if self.bytes_per_parameter is not None:
            yield Fault("/recipe", "contradiction", "Give a recipe or bytes_per_parameter, not both.")
        if self.recipe not in known:
            yield Fault("/recipe", "unknown_preset", f"The recipes are {', '.join(known)}.")
            return
        scopes = {item.of for item in known[self.recipe].items}
        if StateScope.MATRICES in scopes and self.parameters is not None:
            yield Fault(
                "/recipe",
                "needs_shape",
                f"{self.recipe} treats matrices apart from the rest, and a bare count does not tell them apart: "
                "give a config or a preset in place of parameters.",
            )
        if StateScope.ADAPTER in scopes:
            if self.adapter_parameters is None and self.lora_rank is None:
                yield Fault(
                    "/adapter_parameters",
                    "missing",
                    f"{self.recipe} saves the adapter alone: give adapter_parameters, or lora_rank with a config or "
                    "preset.",
                )
        else:
            for name in ("adapter_parameters", "lora_rank", "lora_targets"):
                if getattr(self, name) is not None:
                    yield Fault(
                        f"/{name}",
                        "contradiction",
                        f"{name} belongs to a recipe of adapters, such as lora_adam.",
                    )
        if self.lora_targets is not None and self.lora_rank is None:
            yield Fault(
                "/lora_rank", "missing", "lora_targets says where adapters of a rank go: give lora_rank."
            )

    def _of_the_adapter(self) -> Iterable[Fault]:
        if self.recipe is None:
            name = "adapter_parameters" if self.adapter_parameters is not None else "lora_rank"
            yield Fault(
                "/recipe", "missing", f"{name} needs a recipe that saves adapters, such as lora_adam."
            )
        if self.adapter_parameters is not None and self.lora_rank is not None:
            yield Fault("/lora_rank", "contradiction", "Give adapter_parameters or lora_rank, not both.")
        if self.lora_rank is None:
            return
        if self.parameters is not None:
            yield Fault(
                "/lora_rank",
                "needs_shape",
                "Adapters of a rank are counted from the model's shape: give a config or a preset in place of "
                "parameters, or adapter_parameters in place of the rank.",
            )
            return
        shape = self._shape_or_none
        if shape is not None:
            lacking = [each for each in self.lora_targets or () if each not in shape.matrix_sides]
            for target in lacking:
                has = ", ".join(each for each in LoraTarget if each in shape.matrix_sides)
                yield Fault("/lora_targets", "unknown_part", f"This model has no {target}; it has {has}.")
            if not lacking and (self.adapters or 0) > MOST_PARAMETERS:
                yield Fault(
                    "/lora_rank",
                    "too_large",
                    f"Adapters of this rank have {self.adapters:.3g} parameters; {MOST_PARAMETERS:.0e} are the most.",
                )

    def _of_the_factors(self) -> Iterable[Fault]:
        given = [name for name in _FACTORS[:3] if getattr(self, name) is not None]
        if self.reduction_factor is not None and given:
            yield Fault(
                "/reduction_factor",
                "contradiction",
                f"Give reduction_factor, or {' and '.join(given)}, which say more; not both.",
            )
        yield from together(self, "A differential save", ("differential_fraction", "full_every"))
        if self.deduplication_factor is not None and self.differential_fraction is not None:
            yield Fault(
                "/deduplication_factor",
                "contradiction",
                "Give deduplication_factor or differential_fraction: both leave out what an earlier save holds.",
            )

    @cached_property
    def _config_faults(self) -> list[Fault]:
        if self.config is None:
            return []
        faults = list(_bounded(self.config))
        if not faults:
            try:
                _ = self._counted_config
            except Unsatisfiable as refused:
                faults = [
                    Fault(f"/config{fault.pointer}", fault.code, fault.detail) for fault in refused.faults
                ]
        return faults

    @cached_property
    def _counted_config(self) -> Architecture:
        from service.sizing import hugging_face

        assert self.config is not None  # noqa: S101 - callers ask first
        return hugging_face.architecture(self.config)

    @property
    def _shape_or_none(self) -> Architecture | None:
        """The shape as far as the spec names one that can be counted."""
        named_wrongly = self.preset is not None and self.preset not in presets.models()
        return None if named_wrongly or self._config_faults else self.architecture

    @property
    def architecture(self) -> Architecture | None:
        """What the model is made of; None where only its parameters are known."""
        if self.config is not None:
            return self._counted_config
        return presets.architecture(self.preset) if self.preset is not None else None

    @property
    def stored_parameters(self) -> int:
        """All stored parameters, as given or counted."""
        if self.parameters is not None:
            return self.parameters
        if self.config is not None:
            return self._counted_config.parameters
        return presets.models()[str(self.preset)].parameters

    @property
    def adapters(self) -> int | None:
        """Parameters of the adapter, as given or counted; None where there is none."""
        if self.lora_rank is None:
            return self.adapter_parameters
        shape = self.architecture
        assert shape is not None  # noqa: S101 - the spec refuses a rank without a shape
        targets = self.lora_targets or [each for each in LoraTarget if each in shape.matrix_sides]
        return self.lora_rank * sum(shape.matrix_sides[each] for each in set(targets))


def _bounded(config: dict[str, Any]) -> Iterable[Fault]:
    """Yield what keeps a foreign file from being kept: too long, too deep, or a number that no float can hold."""
    waiting: list[tuple[object, int]] = [(config, 1)]
    while waiting:
        value, level = waiting.pop()
        if level > CONFIG_MOST_LEVELS:
            yield Fault("/config", "too_deep", f"A config nests at most {CONFIG_MOST_LEVELS} levels.")
            return
        if isinstance(value, dict):
            waiting.extend((item, level + 1) for item in value.values())
        elif isinstance(value, list):
            waiting.extend((item, level + 1) for item in value)
        elif (isinstance(value, int) and value.bit_length() > 1023) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            yield Fault(
                "/config", "non_finite_number", "A config holds a number that is too large to be one."
            )
            return
    if len(json.dumps(config)) > CONFIG_MOST_CHARACTERS:
        yield Fault(
            "/config",
            "too_large",
            f"A config has at most {CONFIG_MOST_CHARACTERS} characters: leave out what the count does not need.",
        )
