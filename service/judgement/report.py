"""GapReport: what was measured against what is needed. The wire models; there is no second definition."""

from enum import StrEnum
from uuid import UUID

from service.parsers.measurement import Doubt
from service.sizing.sizing import Sizing, Target, TargetId
from service.wire import Absent, Outgoing


class Status(StrEnum):
    """What the evidence says about one target."""

    UNMEASURED = "unmeasured"
    """No run has the figure."""
    NOT_COMPARABLE = "not_comparable"
    """There is a figure, and it decides nothing."""
    MISSED = "missed"
    """It falls short."""
    MET = "met"
    """It suffices, on as many nodes as the scenario has."""
    MET_IF_IT_SCALES = "met_if_it_scales"
    """It suffices on fewer nodes; that more of them keep the pace is not shown."""


class Basis(StrEnum):
    """How a measured figure was held against its target."""

    FULL_SCALE = "full_scale"
    """As a whole, on as many nodes as the scenario has."""
    PER_NODE_EXTRAPOLATED = "per_node_extrapolated"
    """Node by node, on fewer nodes; `measured` is what all nodes would give at that pace."""
    PER_NODE_LARGER_RUN = "per_node_larger_run"
    """Node by node, on more nodes than the scenario has."""
    WHOLE_RUN = "whole_run"
    """As a whole, on another number of nodes: the figure does not grow with them."""
    DIRECT = "direct"
    """A time as it is, on another number of nodes; each rank had the load of the scenario's."""
    HEAVIER_LOAD = "heavier_load"
    """A time as it is, of more ranks on a node or more bytes: it can only prove that the target is met."""
    LIGHTER_LOAD = "lighter_load"
    """A time as it is, of fewer ranks on a node or fewer bytes: it can only prove a miss."""
    UNLIKE_LOAD = "unlike_load"
    """A time of a load that cannot be set beside the scenario's."""


class TargetReport(Target):
    """One target, and what the runs say about it."""

    status: Status
    basis: Basis | Absent = None
    """How the figures were compared; absent where nothing was measured, or the nodes are unknown."""
    measured: float | Absent = None
    """In the target's unit. Of the rate of a smaller or larger run: what the scenario's nodes would give."""
    measured_min: float | Absent = None
    """The least of the repetitions, likewise."""
    measured_max: float | Absent = None
    """The largest of the repetitions, likewise."""
    ratio: float | Absent = None
    """Measured over target. 1 or more is good for `at_least`, 1 or less for `at_most`."""
    per_node_target: float | Absent = None
    """Each node's share of the target, where nodes were compared."""
    per_node_measured: float | Absent = None
    """What each node of the run gave."""
    nodes: int | Absent = None
    """Nodes of the run."""
    full_scale: bool | Absent = None
    """Whether those are as many as the scenario's, give or take a twentieth; absent where unknown."""
    run_ids: list[UUID]
    """The runs that the status rests on; empty where nothing was measured."""
    doubts: list[Doubt]
    """What there is to doubt in them, as far as it touches this target."""
    reason: str
    """Why the status is what it is, in one sentence."""


class Outcome(StrEnum):
    """The verdict in a word."""

    FALLS_SHORT = "falls_short"
    """At least one target is missed."""
    MEETS = "meets"
    """Every target is met at full scale."""
    UNPROVEN = "unproven"
    """None is missed, and some are yet to be proved."""


class Verdict(Outgoing):
    """Whether the storage does what the scenario needs."""

    outcome: Outcome
    sentence: str
    """The verdict with the figure that decides it."""
    decided_by: TargetId | Absent = None
    """The target that decides: the one missed by most, the first unproven, or the one met most narrowly."""


class Difference(Outgoing):
    """The measured sizing minus the specified one."""

    goodput_fraction: float
    """By the exact formula; negative where training loses."""
    waste_usd_per_year: float | Absent = None
    """Positive where more is wasted; absent without a GPU price. [USD/year]"""


class Consequences(Outgoing):
    """What the measured figures do to training."""

    feasible: bool
    """Whether the interval leaves time to train, with the measured figures in place of the specified."""
    reason: str | Absent = None
    """Why there is no measured sizing."""
    specified: Sizing
    """The scenario as it was specified."""
    measured: Sizing | Absent = None
    """The scenario with the measured stall, lag and load; absent where none of them was measured."""
    difference: Difference | Absent = None
    used: list[TargetId]
    """The targets whose figures went into `measured`; every other one keeps its specified value."""
    extrapolated: list[TargetId]
    """Those of them that rest on a run of another size."""
    next_interval_seconds: float | Absent = None
    """Where the interval leaves no time to train: the exact one for the measured stall. [s]"""


class GapReport(Outgoing):
    """How far a storage system is from what a scenario asks, and what that costs."""

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    """The revision that was judged."""
    storage_label: str | Absent = None
    """The storage that was judged; absent where its runs have no label."""
    runs_considered: int
    """Runs of that storage."""
    targets: list[TargetReport]
    verdict: Verdict
    consequences: Consequences
