"""The way back after a failure: the restart, and the read in it."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.spec.fields import PositiveSeconds, Seconds, refuse
from service.wire import WHOLE, Absent, Incoming


class RestartSpec(Incoming):
    """What passes from a failure until training goes on: `seconds`, or all the parts.

    Work that is then done again is no part of it: it counts as lost work.
    """

    seconds: Seconds | Absent = None
    """The whole of it, the load of the checkpoint included. [s]"""
    detect_seconds: Seconds | Absent = None
    """Until the failure is noticed. [s]"""
    reschedule_seconds: Seconds | Absent = None
    """Until the nodes are there, a spare for each that is lost. [s]"""
    reschedule_without_spares_seconds: Seconds | Absent = None
    """Until the nodes are there where no spare is left: a repair, a smaller job, a place in the queue. [s]"""
    spares_exhausted_fraction: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)] | Absent
    ) = None
    """Failures that find no spare over all failures."""
    spare_nodes: Annotated[int, Field(strict=True, ge=0, le=1_000_000), WHOLE] | Absent = None
    """Nodes beside those of the job: that fraction then follows from them and `repair_hours`."""
    repair_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e6)] | Absent = None
    """Mean time from a failure until its node is a spare again. [h]"""
    node_loss_fraction: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1)] | Absent = (
        None
    )
    """Failures that take a node away over all failures; 1 without it, which needs the most spares."""
    initialise_seconds: Seconds | Absent = None
    """Start of the processes and of their collectives. [s]"""
    load_seconds: Seconds | Absent = None
    """Reading the checkpoint; without it `restore.target_seconds`, else as long as `storage` takes to read it. [s]"""
    warm_up_seconds: Seconds | Absent = None
    """Until the steps run at full speed again. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = ("detect_seconds", "reschedule_seconds", "initialise_seconds", "warm_up_seconds")
        given = [
            name for name in type(self).model_fields if name != "seconds" and getattr(self, name) is not None
        ]
        if self.seconds is not None:
            refuse(
                Fault(
                    f"/{name}",
                    "contradiction",
                    "Give seconds, which includes every part, or the parts; not both.",
                )
                for name in given
            )
        elif not given:
            refuse(
                [
                    Fault(
                        "/seconds",
                        "missing",
                        f"Give seconds, or the parts {', '.join(parts)} and load_seconds.",
                    )
                ]
            )
        else:
            refuse(
                Fault(
                    f"/{name}",
                    "missing",
                    f"A part left out is not zero: give all of {', '.join(parts)}, or seconds alone.",
                )
                for name in parts
                if name not in given
            )
            refuse(self._spares())
        return self

    def _spares(self) -> Iterable[Fault]:
        """Yield what is missing of, or contradicts itself in, how often no spare is left."""
        counted = ("spare_nodes", "repair_hours", "node_loss_fraction")
        of_spares = ("spares_exhausted_fraction", *counted)
        given = [name for name in of_spares if getattr(self, name) is not None]
        if self.reschedule_without_spares_seconds is None:
            if given:
                yield Fault(
                    "/reschedule_without_spares_seconds",
                    "missing",
                    f"{given[0]} says how often no spare is left: say how long the nodes then take.",
                )
            return
        with_spares = self.reschedule_seconds
        if with_spares is not None and self.reschedule_without_spares_seconds < with_spares:
            yield Fault(
                "/reschedule_without_spares_seconds",
                "contradiction",
                "Without a spare the nodes are there no sooner than with one: give at least the "
                f"{with_spares:g} s of reschedule_seconds.",
            )
        if not given:
            yield Fault(
                "/spares_exhausted_fraction",
                "missing",
                "Say how often no spare is left: spares_exhausted_fraction, or spare_nodes and repair_hours.",
            )
        elif self.spares_exhausted_fraction is not None:
            for name in given[1:]:
                yield Fault(
                    f"/{name}",
                    "contradiction",
                    "Give spares_exhausted_fraction, or spare_nodes and repair_hours from which it follows; not both.",
                )
        else:
            for name in ("spare_nodes", "repair_hours"):
                if getattr(self, name) is None:
                    yield Fault(
                        f"/{name}",
                        "missing",
                        f"How often no spare is left follows from spare_nodes and repair_hours: also give {name}.",
                    )


class RestoreSpec(Incoming):
    """The read after a failure."""

    target_seconds: PositiveSeconds
    """In what time every rank must have its state. [s]"""
    read_amplification: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=10_000)] | Absent
    ) = None
    """Bytes that all ranks together read over the checkpoint's bytes; without it what the parallel layout gives, and
    1 without a layout."""
