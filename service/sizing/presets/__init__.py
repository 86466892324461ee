"""Named models, recipes, GPUs and failure records, each with the source of its figures.

The data lie beside this module as JSON, read once at their first use.
"""

import json
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from service.sizing.architecture import Architecture
from service.wire import Absent, Outgoing


class ModelPreset(Outgoing):
    """A model by name."""

    name: str
    title: str
    parameters: int
    """All stored parameters; for a mixture of experts all experts, not the active ones."""
    active_parameters: int
    """Those that work on one token, embeddings included. They size compute, never storage."""
    config: dict[str, Any]
    """The shape that both are counted from, in the names of a Hugging Face `config.json`."""
    source: str
    """Where the shape comes from."""


class StateKind(StrEnum):
    """What a part of the saved state is for."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"


class StateScope(StrEnum):
    """Which parameters a part of the saved state belongs to."""

    ALL = "all"
    MATRICES = "matrices"
    """Of the layers: attention, feed-forward, router, experts."""
    OTHERS = "others"
    """Embeddings, output head, norms and biases."""
    ADAPTER = "adapter"


class RecipeItem(Outgoing):
    """One part of what a recipe saves."""

    name: str
    kind: StateKind
    of: StateScope
    bytes_per_parameter: float
    """For each of those parameters. [B]"""


class Recipe(Outgoing):
    """What of a model's state a checkpoint holds, by name."""

    name: str
    title: str
    items: list[RecipeItem]
    source: str
    """Where the items come from."""


class GpuPreset(Outgoing):
    """A GPU by name, with defaults for the node it usually sits in."""

    name: str
    title: str
    gpu_hour_usd: float | Absent = None
    """Price of one GPU for an hour; absent where we know no price with a source. [USD]"""
    gpus_per_node: int
    """GPUs in the reference node that the host memory belongs to."""
    host_memory_bytes_per_node: int | Absent = None
    """DRAM of that reference node. Used only for nodes of as many GPUs. [B]"""
    source: str
    """Where price and memory come from."""


class FailureRecord(Outgoing):
    """A cluster's published record of interruptions: either observed counts, or a mean time between failures."""

    name: str
    title: str
    observed_failures: int | Absent = None
    observed_hours: float | Absent = None
    observed_gpus: int | Absent = None
    mtbf_hours: float | Absent = None
    mtbf_gpus: int | Absent = None
    counts: str
    """What is counted as a failure."""
    source: str
    """Where the record was published."""


def _rows(file_name: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(files(__package__).joinpath(file_name).read_text("utf-8"))
    return rows


@cache
def models() -> dict[str, ModelPreset]:
    """Return the models by name."""
    return {preset.name: preset for preset in map(ModelPreset.model_validate, _rows("models.json"))}


@cache
def architecture(name: str) -> Architecture:
    """Return what a named model is made of."""
    from service.sizing import hugging_face

    return hugging_face.architecture(models()[name].config)


@cache
def recipes() -> dict[str, Recipe]:
    """Return the recipes by name."""
    return {recipe.name: recipe for recipe in map(Recipe.model_validate, _rows("recipes.json"))}


@cache
def gpus() -> dict[str, GpuPreset]:
    """Return the GPUs by name."""
    return {preset.name: preset for preset in map(GpuPreset.model_validate, _rows("gpus.json"))}


@cache
def failure_records() -> dict[str, FailureRecord]:
    """Return the failure records by name."""
    return {
        record.name: record for record in map(FailureRecord.model_validate, _rows("failure_records.json"))
    }
