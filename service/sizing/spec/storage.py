"""What is kept, on which storage system, and at which prices."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing import presets
from service.sizing.spec.fields import PresetName, refuse
from service.wire import WHOLE, Absent, Incoming


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

    preset: PresetName | Absent = None
    """A system of `GET /v1/presets/storage-systems`: its sustained figures, where none is given here."""
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
    thread_gb_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e9)] | Absent
    ) = None
    """What one writer thread moves, as measured: gives the threads of a rank, and limits no figure. [10^9 B/s]"""
    file_creates_per_second: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e12)] | Absent
    ) = None
    """Files made a second, all clients together."""
    usable_tb: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=9e6)] | Absent = None
    """Space after protection. [10^12 B]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            refuse([Fault("", "missing", "Give at least one of " + ", ".join(type(self).model_fields) + ".")])
        if self.preset is not None:
            refuse(_unusable(self.preset))
        return self

    @property
    def with_preset(self) -> "StorageSpec":
        """The system with the sustained figures of its preset where none is given."""
        if self.preset is None:
            return self
        return self.model_copy(
            update={
                name: figure
                for name, figure in _sustained(self.preset).items()
                if getattr(self, name) is None
            }
        )


def _sustained(preset: str) -> dict[str, float]:
    system = presets.storage_systems()[preset]
    figures = {
        "write_gb_per_second": system.write_gb_per_second,
        "read_gb_per_second": system.read_gb_per_second,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _unusable(preset: str) -> Iterable[Fault]:
    known = presets.storage_systems()
    usable = ", ".join(name for name in known if _sustained(name))
    if preset not in known:
        yield Fault("/preset", "unknown_preset", f"The storage systems with sustained figures are {usable}.")
    elif not _sustained(preset):
        yield Fault(
            "/preset",
            "nothing_sustained",
            f"Of {preset} only a peak is published, and a peak is not sustained: give figures of your own, or one "
            f"of {usable}.",
        )


Price = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6)]


class PricesSpec(Incoming):
    """What things cost."""

    gpu_hour_usd: Price | Absent = None
    """One GPU for an hour. [USD]"""
    hot_usd_per_tb_month: Price | Absent = None
    """A terabyte of the hot tier for a month. [USD]"""
    cold_usd_per_tb_month: Price | Absent = None
    """A terabyte of the cold tier for a month. [USD]"""
