"""What is trained, and what of it a checkpoint holds."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing import presets
from service.sizing.architecture import Architecture
from service.sizing.hugging_face import architecture
from service.sizing.spec.fields import PresetName, refuse
from service.wire import WHOLE, Absent, Incoming


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
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        known = presets.models()
        if self.preset is None and self.parameters is None:
            yield Fault("/parameters", "missing", "Give parameters, or a preset that has them.")
        if self.preset is not None and self.parameters is not None:
            yield Fault("/preset", "contradiction", "Give a preset or parameters, not both.")
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The model presets are {', '.join(known)}.")

    @property
    def architecture(self) -> Architecture | None:
        """STUB until the models branch has it."""
        shapes = {
            "llama-3-405b": (126, 16384, 53248, 128, 8),
            "llama-3-70b": (80, 8192, 28672, 64, 8),
            "llama-3-8b": (32, 4096, 14336, 32, 8),
            "mixtral-8x7b": (32, 4096, 14336, 32, 8),
            "deepseek-v3": (61, 4096, 14336, 32, 8),
        }
        if self.preset not in shapes:
            return None
        layers, hidden, ffn, heads, kv = shapes[str(self.preset)]
        return architecture(
            {
                "model_type": "llama",
                "num_hidden_layers": layers,
                "hidden_size": hidden,
                "intermediate_size": ffn,
                "num_attention_heads": heads,
                "num_key_value_heads": kv,
                "vocab_size": 128256,
                "tie_word_embeddings": False,
            }
        )
