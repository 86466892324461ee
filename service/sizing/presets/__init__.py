"""Named models, GPUs and failure records, each with the source of its figures.

The data lie beside this module as JSON, read once at their first use.
"""

import json
from functools import cache
from importlib.resources import files

from service.wire import Absent, Outgoing


class ModelPreset(Outgoing):
    """A model by name."""

    name: str
    title: str
    parameters: int
    """All stored parameters; for a mixture of experts all experts, not the active ones."""
    source: str
    """Where the parameter count comes from."""


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
