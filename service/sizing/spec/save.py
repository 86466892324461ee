"""How, and how often, a checkpoint is taken."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.spec.fields import PositiveSeconds, refuse
from service.wire import WHOLE, Absent, Flag, Incoming

DEFAULT_HEADROOM = 2.5
"""The articles plan two to three times the floor."""


class SaveMode(StrEnum):
    """Whether training stops for the whole save, or only while the state is copied to host memory."""

    SYNC = "sync"
    ASYNC = "async"


_STAGING = ("staging_budget_bytes_per_node", "copy_seconds", "drain_overlaps_copy")


class SaveSpec(Incoming):
    """How a checkpoint is taken, and the stall budget: `blocking_seconds` or `overhead_fraction`."""

    mode: SaveMode
    """`sync`: training stops for the whole save. `async`: only while its state is copied to host memory."""
    blocking_seconds: PositiveSeconds | Absent = None
    """How long training may stop for one save. [s]"""
    overhead_fraction: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=0.99)] | Absent
    ) = None
    """The same as a fraction of the interval."""
    headroom: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1, le=100)] | Absent = None
    """Async: persist bandwidth over the least that fits the interval; 2.5 without it."""
    durable_lag_seconds: PositiveSeconds | Absent = None
    """Async: how long after training goes on the checkpoint may take to be durable. [s]"""
    staging_buffers: Annotated[int, Field(strict=True, ge=1, le=16), WHOLE] | Absent = None
    """Async: copies of a node's share that host memory holds; 1 without it."""
    staging_budget_bytes_per_node: Annotated[int, Field(strict=True, ge=1, le=10**15), WHOLE] | Absent = None
    """Async: host memory of one node that staging may take; a larger share waits until as much has drained. [B]"""
    copy_seconds: PositiveSeconds | Absent = None
    """Async: the copy to host memory by itself; without it all of the stall that is allowed. [s]"""
    drain_overlaps_copy: Flag | Absent = None
    """Async: whether a save drains while it is being copied; without it, it does not."""
    step_seconds: PositiveSeconds | Absent = None
    """One training step without a save: gives the interval in steps, and the lines to set in trainers. [s]"""
    separate_process_group: Flag | Absent = None
    """Whether checkpoint collectives have a process group of their own; no figure rests on it, the checklist does."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        if self.blocking_seconds is not None and self.overhead_fraction is not None:
            yield Fault(
                "/overhead_fraction",
                "contradiction",
                "Give blocking_seconds or overhead_fraction, not both.",
            )
        if self.mode is SaveMode.SYNC:
            for name in ("headroom", "durable_lag_seconds", "staging_buffers", *_STAGING):
                if getattr(self, name) is not None:
                    yield Fault(
                        f"/{name}",
                        "contradiction",
                        f"{name} belongs to mode async; leave it out, or change the mode.",
                    )
            return
        if self.blocking_seconds is None and self.overhead_fraction is None:
            yield Fault(
                "/blocking_seconds",
                "missing",
                "An async save still stops training to copy its state: give "
                "blocking_seconds (measured, or published: 0.6 to 14 s) or overhead_fraction.",
            )
        if self.staging_budget_bytes_per_node is None:
            for name in _STAGING[1:]:
                if getattr(self, name) is not None:
                    yield Fault(
                        "/staging_budget_bytes_per_node",
                        "missing",
                        f"{name} bears on a save that waits for staging memory: say how much there is.",
                    )


class IntervalRule(StrEnum):
    """How the time between saves is chosen."""

    EXACT = "exact"
    YOUNG = "young"
    DALY = "daly"
    FIXED = "fixed"


class IntervalSpec(Incoming):
    """How often a checkpoint is taken, from the start of one save to the start of the next."""

    rule: IntervalRule = IntervalRule.EXACT
    """`exact`: the optimum for exponential failures; `young` 1974; `daly` 2006; `fixed`: as given."""
    seconds: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e9)] | Absent = None
    """The interval of the rule `fixed`. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rule is IntervalRule.FIXED and self.seconds is None:
            refuse([Fault("/seconds", "missing", "The rule fixed needs the interval in seconds.")])
        if self.rule is not IntervalRule.FIXED and self.seconds is not None:
            refuse(
                [
                    Fault(
                        "/seconds",
                        "contradiction",
                        f"The rule {self.rule} computes the interval: leave seconds out, or say fixed.",
                    )
                ]
            )
        return self
