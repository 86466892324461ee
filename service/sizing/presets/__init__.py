"""Named models, recipes, GPUs, failure records and storage systems, and measured times; each with its source.

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
    """Which parameters a part of the saved state belongs to: `matrices` are those of the layers (attention,
    feed-forward, router, experts), `others` embeddings, output head, norms and biases.
    """

    ALL = "all"
    MATRICES = "matrices"
    OTHERS = "others"
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
    """Unexpected interruptions that were counted."""
    observed_planned: int | Absent = None
    """Planned interruptions in the same time; they are not among the failures."""
    observed_hours: float | Absent = None
    """How long they were counted. [h]"""
    observed_gpus: int | Absent = None
    """On how many GPUs."""
    mtbf_hours: float | Absent = None
    """Mean time between failures, where the source gives that. [h]"""
    mtbf_gpus: int | Absent = None
    """The GPU count for which it holds."""
    counts: str
    """What is counted as a failure."""
    source: str
    """Where the record was published."""


class SaveLoadTimes(Outgoing):
    """How long the saves and loads of a real job took, as published."""

    name: str
    title: str
    model: str
    """What was trained."""
    gpus: int | Absent = None
    """On how many GPUs; absent where the source does not say."""
    blocking_seconds: float | Absent = None
    """How long training stopped for one save. [s]"""
    save_seconds: float | Absent = None
    """From the start of a save until it was durable. [s]"""
    load_seconds: float | Absent = None
    """How long a load took. [s]"""
    note: str
    """What the times hold for, and what the source leaves open."""
    source: str
    """Where they were published."""


class StorageSystem(Outgoing):
    """A storage system as published. A peak is not sustained: only sustained figures feed a spec that names it."""

    name: str
    title: str
    write_gb_per_second: float | Absent = None
    """Sustained aggregate write. [10^9 B/s]"""
    read_gb_per_second: float | Absent = None
    """Sustained aggregate read. [10^9 B/s]"""
    peak_write_gb_per_second: float | Absent = None
    """Most that was reached or is stated as a peak; never sized with. [10^9 B/s]"""
    peak_read_gb_per_second: float | Absent = None
    """Likewise for reads. [10^9 B/s]"""
    capacity_tb: float | Absent = None
    """Space as published, which need not be what is usable; never sized with. [10^12 B]"""
    servers: int | Absent = None
    """Storage servers."""
    note: str
    """What the figures hold for, and what the source leaves open."""
    source: str
    """Where they were published."""


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


class FailureMix(Outgoing):
    """A published record of interruptions, counted by what they leave of a node."""

    name: str
    process: int
    """Interruptions that leave every node its memory."""
    node_loss: int
    """Interruptions that cost a node."""
    assumption: str
    """How the causes were sorted."""
    source: str
    """Where the causes were published."""


@cache
def failure_mixes() -> dict[str, FailureMix]:
    """Return the mixes of failures by name."""
    return {mix.name: mix for mix in map(FailureMix.model_validate, _rows("failure_mixes.json"))}


@cache
def save_load_times() -> dict[str, SaveLoadTimes]:
    """Return the measured times by name."""
    return {times.name: times for times in map(SaveLoadTimes.model_validate, _rows("save_load_times.json"))}


@cache
def storage_systems() -> dict[str, StorageSystem]:
    """Return the storage systems by name."""
    return {
        system.name: system for system in map(StorageSystem.model_validate, _rows("storage_systems.json"))
    }
