"""What of a model a checkpoint holds: its parts, the recipe's items, and the bytes that move and stay."""

from collections.abc import Sequence
from typing import NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing import capacity, checkpoint, presets, saves
from service.sizing.architecture import MATRICES, Part
from service.sizing.presets import RecipeItem, StateKind, StateScope
from service.sizing.sizing import ModelPart, ModelState, StateItem
from service.sizing.spec import DEFAULT_BYTES_PER_PARAMETER, ScenarioSpec

EMA_COPY = RecipeItem(
    name="ema_weights_fp32", kind=StateKind.OPTIMIZER, of=StateScope.ALL, bytes_per_parameter=4.0
)
"""Averaged weights are kept beside the optimiser's master weights, and sharded as they are: the forward pass has no use
for them. NeMo's EMA, for one, is a wrapper of the optimiser."""


class Saved(NamedTuple):
    """The bytes of a job's saves. Whole ones, so that the figures can be checked by hand from those in the answer."""

    full_bytes: float
    """What a full save writes. [B]"""
    restored_bytes: float
    """What a restore reads once, at most. [B]"""
    staged_bytes: float
    """What async staging holds of it: the state before it is compressed. [B]"""
    difference_bytes: float | None = None
    """What a save between two full ones writes. [B]"""
    full_every: int = 1
    shares: bool = False
    """Whether saves are deduplicated against each other."""

    def written_as(self, bytes_written: float) -> "Saved":
        """Return the same saves where a full one writes as many bytes, second copies included."""
        if bytes_written == self.full_bytes:
            return self
        times = bytes_written / self.full_bytes
        return self._replace(
            full_bytes=bytes_written,
            restored_bytes=float(round(self.restored_bytes * times)),
            staged_bytes=float(round(self.staged_bytes * times)),
        )

    @property
    def whole_bytes(self) -> float:
        """What one whole checkpoint takes where nothing of it lies in an earlier one. [B]"""
        return self.restored_bytes if self.shares else self.full_bytes

    @property
    def restored_mean_bytes(self) -> float | None:
        """What a restore reads on average; None where it always reads the same. [B]"""
        if self.difference_bytes is None:
            return None
        return saves.mean_chain_bytes(
            checkpoint_bytes=self.full_bytes,
            difference_bytes=self.difference_bytes,
            full_every=self.full_every,
        )

    def figures(self) -> dict[str, int]:
        """Return what the answer says of a save beside its bytes."""
        if self.difference_bytes is None:
            return {"restored_bytes": round(self.restored_bytes)} if self.shares else {}
        mean = saves.mean_save_bytes(
            checkpoint_bytes=self.full_bytes,
            difference_bytes=self.difference_bytes,
            full_every=self.full_every,
        )
        return {
            "difference_bytes": round(self.difference_bytes),
            "mean_bytes": round(mean),
            "restored_bytes": round(self.restored_bytes),
            "restored_mean_bytes": round(self.restored_mean_bytes or 0.0),
        }

    def kept(self, *, copies: int, protection_fraction: float = 0.0) -> float:
        """Return the space of so many checkpoints, protection included. [B]"""
        if self.difference_bytes is not None:
            return saves.kept_chain_bytes(
                checkpoint_bytes=self.full_bytes,
                difference_bytes=self.difference_bytes,
                full_every=self.full_every,
                copies=copies,
                protection_fraction=protection_fraction,
            )
        if self.shares:
            return saves.kept_shared_bytes(
                restored_bytes=self.restored_bytes,
                checkpoint_bytes=self.full_bytes,
                copies=copies,
                protection_fraction=protection_fraction,
            )
        return capacity.kept_bytes(
            checkpoint_bytes=self.full_bytes, copies=copies, protection_fraction=protection_fraction
        )

    def copies_that_fit(self, *, usable_bytes: float) -> float:
        """Return how many checkpoints a usable space keeps while one more is in flight."""
        if self.difference_bytes is not None:
            return saves.chain_copies_that_fit(
                usable_bytes=usable_bytes,
                checkpoint_bytes=self.full_bytes,
                difference_bytes=self.difference_bytes,
                full_every=self.full_every,
            )
        if self.shares:
            return saves.shared_copies_that_fit(
                usable_bytes=usable_bytes,
                restored_bytes=self.restored_bytes,
                checkpoint_bytes=self.full_bytes,
            )
        return capacity.copies_that_fit(usable_bytes=usable_bytes, checkpoint_bytes=self.full_bytes)

    def seconds_until_full(self, *, usable_bytes: float, interval_seconds: float) -> float:
        """Return when a usable space is full if every save is kept. [s]"""
        if self.difference_bytes is not None:
            return interval_seconds * saves.chain_saves_that_fit(
                usable_bytes=usable_bytes,
                checkpoint_bytes=self.full_bytes,
                difference_bytes=self.difference_bytes,
                full_every=self.full_every,
            )
        if self.shares:
            return interval_seconds * saves.shared_saves_that_fit(
                usable_bytes=usable_bytes,
                restored_bytes=self.restored_bytes,
                checkpoint_bytes=self.full_bytes,
            )
        return capacity.seconds_until_full(
            usable_bytes=usable_bytes,
            checkpoint_bytes=self.full_bytes,
            interval_seconds=interval_seconds,
        )


def extra_bytes(spec: ScenarioSpec) -> int:
    """Return what is saved beside the state of the parameters, over all ranks. [B]"""
    return spec.model.extra_bytes + spec.model.extra_bytes_per_rank * spec.cluster.gpus


def recipe_items(spec: ScenarioSpec) -> list[RecipeItem]:
    """Return the items of the spec's recipe and of what it adds to it; none where it names no recipe."""
    model = spec.model
    if model.recipe is None:
        return []
    items = list(presets.recipes()[model.recipe].items)
    if model.ema_copy:
        of = StateScope.ADAPTER if model.adapters is not None else StateScope.ALL
        items.append(EMA_COPY.model_copy(update={"of": of}))
    return items


def saved(spec: ScenarioSpec) -> tuple[ModelState, Saved]:
    """Return what of the model a checkpoint holds, and the bytes of its saves.

    Raises:
        Unsatisfiable: A checkpoint of less than a byte.
    """
    model = spec.model
    block = _model_state(spec)
    extra = extra_bytes(spec)
    if is_plain(spec):
        full = checkpoint.checkpoint_bytes(
            parameters=block.parameters,
            bytes_per_parameter=block.bytes_per_parameter,
            reduction_factor=written_fraction(spec),
            extra_bytes=extra,
        )
    else:
        full = checkpoint.written_bytes(
            state_bytes=block.state_bytes, written_fraction=written_fraction(spec), extra_bytes=extra
        )
    if full < 1.0:
        raise Unsatisfiable(
            Fault(
                "#/model",
                "too_small",
                "A checkpoint of less than a byte: check parameters and bytes_per_parameter.",
            )
        )
    full = float(round(full))
    compression = model.compression_factor or 1.0
    staged = full if model.reduction_factor is not None else float(round(block.state_bytes + extra))
    if model.deduplication_factor is not None:
        whole = saves.whole_bytes(
            state_bytes=block.state_bytes, compression_factor=compression, extra_bytes=extra
        )
        return block, Saved(full, max(float(round(whole)), full), max(staged, full), shares=True)
    if model.differential_fraction is not None and model.full_every is not None:
        difference = saves.difference_bytes(
            state_bytes=block.state_bytes,
            compression_factor=compression,
            differential_fraction=model.differential_fraction,
            extra_bytes=extra,
        )
        difference = float(round(difference))
        longest = saves.longest_chain_bytes(
            checkpoint_bytes=full, difference_bytes=difference, full_every=model.full_every
        )
        return block, Saved(full, longest, max(staged, full), difference, model.full_every)
    return block, Saved(full, full, max(staged, full) if model.compression_factor is not None else full)


def is_plain(spec: ScenarioSpec) -> bool:
    """Return whether a save is parameters times bytes, reduced as a whole, and nothing else."""
    model = spec.model
    return (
        model.recipe is None
        and model.compression_factor is None
        and model.deduplication_factor is None
        and model.differential_fraction is None
        and not model.extra_bytes_per_rank
    )


def written_fraction(spec: ScenarioSpec) -> float:
    """Return the fraction of the parameters' state that a full save writes."""
    model = spec.model
    if model.reduction_factor is not None:
        return model.reduction_factor
    return (model.compression_factor or 1.0) * (model.deduplication_factor or 1.0)


def _model_state(spec: ScenarioSpec) -> ModelState:
    model, parameters = spec.model, spec.parameters
    shape = model.architecture
    kinds = list(shape.totals().values()) if shape is not None else []
    active = sum(part.active_parameters for part in kinds) if kinds else None
    items = recipe_items(spec)
    if not items:
        each = model.bytes_per_parameter or DEFAULT_BYTES_PER_PARAMETER
        return ModelState(
            parameters=parameters,
            active_parameters=active,
            bytes_per_parameter=each,
            state_bytes=round(parameters * each),
            parts=_parts(kinds, [(StateScope.ALL, each)]) if kinds else None,
        )
    adapters = model.adapters
    matrices = sum(part.parameters for part in kinds if part.name in MATRICES)
    counts = {
        StateScope.ALL: parameters,
        StateScope.MATRICES: matrices,
        StateScope.OTHERS: parameters - matrices,
        StateScope.ADAPTER: adapters or 0,
    }
    listed = [
        StateItem(
            name=item.name,
            kind=item.kind,
            of=item.of,
            parameters=counts[item.of],
            bytes_per_parameter=item.bytes_per_parameter,
            bytes=round(counts[item.of] * item.bytes_per_parameter),
        )
        for item in items
    ]
    state = sum(item.bytes for item in listed)
    on_parts = [(item.of, item.bytes_per_parameter) for item in items if item.of is not StateScope.ADAPTER]
    return ModelState(
        parameters=parameters,
        active_parameters=active,
        adapter_parameters=adapters,
        bytes_per_parameter=state / (adapters or parameters),
        state_bytes=state,
        items=listed,
        parts=_parts(kinds, on_parts) if kinds else None,
    )


def _parts(kinds: list[Part], items: Sequence[tuple[StateScope, float]]) -> list[ModelPart]:
    """Return the model's parts, with the bytes of what is saved of each; an adapter belongs to none."""
    return [
        ModelPart(
            part=part.name,
            parameters=part.parameters,
            active_parameters=part.active_parameters,
            bytes=round(part.parameters * part_bytes_per_parameter(part.name, items)) if items else None,
        )
        for part in kinds
    ]


def part_bytes_per_parameter(part: str, items: Sequence[tuple[StateScope, float]]) -> float:
    """Return what each parameter of a kind of part takes, over the items that are of it. [B]"""
    own = StateScope.MATRICES if part in MATRICES else StateScope.OTHERS
    return sum(each for scope, each in items if scope in (StateScope.ALL, own))
