"""The way back after a failure: the restart, and the read in it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.spec.fields import PositiveSeconds, Seconds, refuse
from service.wire import Absent, Incoming


class RestartSpec(Incoming):
    """What passes from a failure until training goes on: `seconds`, or all the parts."""

    seconds: Seconds | Absent = None
    """The whole of it, the load of the checkpoint included. [s]"""
    detect_seconds: Seconds | Absent = None
    """Until the failure is noticed. [s]"""
    reschedule_seconds: Seconds | Absent = None
    """Until the nodes are there. [s]"""
    initialise_seconds: Seconds | Absent = None
    """Start of the processes and of their collectives. [s]"""
    load_seconds: Seconds | Absent = None
    """Reading the checkpoint; without it `restore.target_seconds`. [s]"""
    warm_up_seconds: Seconds | Absent = None
    """Until the steps run at full speed again. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = ("detect_seconds", "reschedule_seconds", "initialise_seconds", "warm_up_seconds")
        given = [name for name in (*parts, "load_seconds") if getattr(self, name) is not None]
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
        return self


class RestoreSpec(Incoming):
    """The read after a failure."""

    target_seconds: PositiveSeconds
    """In what time every rank must have its state. [s]"""
    read_amplification: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0.01, le=10_000)] | Absent
    ) = None
    """Bytes that all ranks together read over the checkpoint's bytes; without it what the parallel layout gives, and
    1 without a layout."""
