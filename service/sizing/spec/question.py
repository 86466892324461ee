"""SolutionQuestion: a scenario, the one quantity of it that is not known, and what it has to reach."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.spec.fields import PositiveSeconds, refuse
from service.sizing.spec.scenario import ScenarioSpec
from service.wire import Absent, Incoming

_NOT_ASKED_YET = 1e-6
"""Stands in the place of an unknown that the spec leaves out, and is replaced like a stated one."""


class SolutionUnknown(StrEnum):
    """Which quantity of a scenario is to be found."""

    WRITE_GB_PER_SECOND = "write_gb_per_second"
    READ_GB_PER_SECOND = "read_gb_per_second"
    BLOCKING_SECONDS = "blocking_seconds"
    RESTART_SECONDS = "restart_seconds"
    INTERVAL_SECONDS = "interval_seconds"
    GPUS = "gpus"


class SolutionGoal(Incoming):
    """What is to be reached: one of the three."""

    goodput_fraction: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1)] | Absent = None
    """At least this much of the time counts, by the exact formula."""
    waste_usd_per_year: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e18)] | Absent = (
        None
    )
    """At most this much GPU time is wasted, by the exact formula; needs the price of a GPU-hour. [USD/year]"""
    restart_seconds: PositiveSeconds | Absent = None
    """A restart takes at most this long; can be asked of `read_gb_per_second` alone. [s]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if not given:
            refuse([Fault("", "missing", "Give one of " + ", ".join(type(self).model_fields) + ".")])
        if len(given) > 1:
            refuse(Fault(f"/{name}", "contradiction", "Give one goal, not several.") for name in given)
        return self


class SolutionQuestion(Incoming):
    """A scenario, the quantity of it that is not known, and the goal that it has to reach."""

    spec: ScenarioSpec
    """All else that is known. What it says of the unknown is replaced, and a stall or a load may be left out."""
    unknown: SolutionUnknown
    """What is to be found.

    `blocking_seconds` replaces `save.overhead_fraction` too, `interval_seconds` the rule, `restart_seconds` all parts.
    `write_gb_per_second` replaces the stall of sync saves and the durable lag of async ones, `read_gb_per_second` the
    load in the restart and `restore.target_seconds`; with a `storage` block they replace that system's figures, and of
    those above only the stall of sync saves. `gpus` leaves `failures.mtbf_hours` to the count that was stated."""
    goal: SolutionGoal

    @model_validator(mode="before")
    @classmethod
    def _the_unknown_may_be_left_out(cls, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Fill the unknown's own place in the spec where it is empty, for it is required of other scenarios."""
        if not isinstance(value, dict) or not isinstance(value.get("spec"), dict):
            return value
        spec, unknown = value["spec"], value.get("unknown")
        save, restart = spec.get("save"), spec.get("restart")
        filled: dict[str, Any] = {}
        stalls = unknown == SolutionUnknown.BLOCKING_SECONDS or (
            unknown == SolutionUnknown.WRITE_GB_PER_SECOND
            and isinstance(save, dict)
            and save.get("mode") == "sync"
        )
        if (
            stalls
            and isinstance(save, dict)
            and save.get("blocking_seconds") is None
            and save.get("overhead_fraction") is None
        ):
            filled["save"] = {**save, "blocking_seconds": _NOT_ASKED_YET}
        if (
            unknown == SolutionUnknown.READ_GB_PER_SECOND
            and isinstance(restart, dict)
            and restart
            and spec.get("restore") is None
            and restart.get("seconds") is None
            and restart.get("load_seconds") is None
        ):
            filled["restart"] = {**restart, "load_seconds": _NOT_ASKED_YET}
        return {**value, "spec": {**spec, **filled}} if filled else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        reads = self.unknown is SolutionUnknown.READ_GB_PER_SECOND
        if self.goal.restart_seconds is not None and not reads:
            yield Fault(
                "/goal/restart_seconds",
                "contradiction",
                "A restart limit can be asked of read_gb_per_second alone, since the load is what storage changes of "
                f"a restart; of {self.unknown} ask goodput_fraction or waste_usd_per_year.",
            )
        if self.spec.tiers is not None:
            yield Fault(
                "/spec/tiers",
                "contradiction",
                "A goal is held against the goodput of shared storage alone: leave tiers out, and size the answer with "
                "them.",
            )
        if self.unknown is SolutionUnknown.GPUS and self.spec.cluster.parallelism is not None:
            yield Fault(
                "/spec/cluster/parallelism",
                "contradiction",
                "A layout fits the GPUs that it was made for, so their number cannot be asked: leave it out, and give "
                "shards as they are.",
            )
        if reads and self.spec.restart.seconds is not None and self.spec.restore is None:
            yield Fault(
                "/spec/restore",
                "missing",
                "How much of the restart is the load is not said: give restore.target_seconds, or the restart in "
                "parts.",
            )
