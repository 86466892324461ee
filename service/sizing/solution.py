"""Solution: what an unknown has to be for a goal, or why nothing reaches it. Pydantic, and the wire model too."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import PlainSerializer

from service.sizing.sizing import Comparison, Explanation, Sizing
from service.sizing.spec import ScenarioSpec, SolutionUnknown
from service.wire import Absent, Outgoing


def _as_given(spec: ScenarioSpec) -> dict[str, Any]:
    """Return a spec without the defaults that nobody gave, as scenarios are stored and shown."""
    return spec.model_dump(mode="json", exclude_unset=True, exclude_none=True)


class SolutionUnit(StrEnum):
    """The unit of a solved value."""

    GB_PER_SECOND = "gb_per_second"
    SECONDS = "seconds"
    GPUS = "gpus"


class SolutionBasis(StrEnum):
    """Which figures of the sizing the goal is held against."""

    SPECIFIED = "specified"
    """Those of the scenario itself."""
    DELIVERED = "delivered"
    """Those below `delivered`, as the given storage system would give them."""


class WayOut(Outgoing):
    """Another quantity that would reach the goal, with the unknown where it comes nearest."""

    unknown: SolutionUnknown
    comparison: Comparison
    value: float
    least_value: float | Absent = None
    """The least that would, where not everything below `value` would."""
    unit: SolutionUnit
    notice: str | Absent = None
    """What else matters, as in the answer's own `notice`."""


class WayOutPair(Outgoing):
    """Two other quantities that together would reach the goal, with the unknown where it comes nearest."""

    first: WayOut
    """Set to this: a half, a quarter, a tenth, a hundredth or a thousandth of what it is (of a bandwidth, so many
    times as much), or else to where it helps most."""
    second: WayOut
    """What the other then has to be."""


class SolutionNearest(Outgoing):
    """How near the unknown alone comes to the goal, and what else would reach it."""

    value: float
    """The unknown where it comes nearest: the end of its range, or the best interval."""
    goodput_fraction: float | Absent = None
    """The goodput there. Absent where the storage system leaves no time to train."""
    waste_usd_per_year: float | Absent = None
    """The waste there, where the price is known. [USD/year]"""
    restart_seconds: float | Absent = None
    """The restart there. [s]"""
    spec: Annotated[ScenarioSpec, PlainSerializer(_as_given)]
    """The scenario with that value put in."""
    ways_out: list[WayOut]
    """Each alone would reach the goal, with the unknown at `value`. Empty where none does."""
    pairs_out: list[WayOutPair] | Absent = None
    """Where none does: pairs that would. A smaller cluster comes last, and before that what changes least first."""
    sizing: Sizing
    """Its sizing."""


class Solution(Outgoing):
    """What an unknown has to be for a goal; or, where nothing reaches it, how near it comes and what would."""

    engine_version: str
    """Of the engine that computed this. The same question gives the same answer for the same version."""
    feasible: bool
    """Whether a value of the unknown reaches the goal, in the figures of `basis`; `notice` says what else matters."""
    unknown: SolutionUnknown
    unit: SolutionUnit
    basis: SolutionBasis
    """Which figures the goal is held against. A `storage` block makes it `delivered`, but for the stall budget of sync
    saves, which a system does not change."""
    goal_goodput_fraction: float | Absent = None
    """The goodput that the goal comes to; absent for a restart limit, and for a budget that depends on the GPUs."""
    value: float | Absent = None
    """The cheapest that reaches the goal: the least bandwidth, the longest stall, restart or interval, the most GPUs.

    It meets the goal when it is put back, and lies within 1e-9 of itself of one that misses. The bandwidth of async
    saves is what the goal needs; the headroom that saves are planned with stays in `sizing.write`."""
    comparison: Comparison | Absent = None
    """On which side of `value` the goal is reached."""
    least_value: float | Absent = None
    """The least that reaches the goal, where not everything below `value` does: a shorter interval saves too often, a
    smaller cluster has too few nodes to write with, a shorter stall brings async saves so close that they wait."""
    at_limit: bool | Absent = None
    """True where the goal would allow more, and `value` is the end of what the field takes, or the least bandwidth that
    keeps a save through its staging budget to the stall that is allowed."""
    notice: str | Absent = None
    """What else matters: that the given storage system would miss a goal which is held against the scenario's own
    figures, that it cannot hold the copies kept, or that a save stops training for longer than the spec allows."""
    reason: str | Absent = None
    """Why nothing reaches the goal, and what would."""
    nearest: SolutionNearest | Absent = None
    spec: Annotated[ScenarioSpec, PlainSerializer(_as_given)] | Absent = None
    """The scenario with the value put in, for `POST /v1/sizings` or to store."""
    sizing: Sizing | Absent = None
    """Its sizing."""
    explanation: list[Explanation] | Absent = None
    """With `explain=true`: how the figures of this answer came about; those of the sizing are explained in it."""
