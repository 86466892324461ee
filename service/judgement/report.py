"""GapReport: what was measured against what is needed. The wire models; there is no second definition."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from service.judgement.evidence import Statistic
from service.parsers.measurement import Doubt
from service.parsers.run import Condition
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


class EvidenceChoice(Outgoing):
    """Which runs of a storage may speak, and what of them is compared."""

    statistic: Statistic = Statistic.MEAN
    """Which of the repetitions' rates is compared; of a checkpointer's, `mean` is all bytes over all seconds."""
    time_statistic: Statistic = Statistic.MAX
    """Which of the repetitions' times is; each of them is already that of its slowest rank."""
    conditions: list[Condition] = Field(default_factory=list)
    """Runs tagged `under_read_load` or `degraded` count for every target where the tag is listed here."""
    run_ids: list[UUID] | Absent = None
    """The only runs that count, where some were named."""
    ran_from: datetime | Absent = None
    """Only runs that took place then or later."""
    ran_before: datetime | Absent = None
    """Only runs that took place earlier."""


class BytesPerParameter(Outgoing):
    """What a measured checkpoint says of the bytes of a parameter."""

    measured: float
    """The checkpoint, without its extra bytes, over parameters and reduction factor. [B]"""
    assumed: float
    """What the scenario says. [B]"""
    nearest: float
    """The one nearest to the measured of 12 (fp32 weights and two Adam moments), 14 (with bf16 weights), 16 (with
    gradients) and what the scenario says. [B]"""
    sentence: str
    """Which of them the checkpoint speaks for."""


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
    margin_fraction: float | Absent = None
    """How far on the good side of the target, as a fraction of it; negative on the other side. Of `within`: what
    is left of the tolerance."""
    statistic: Statistic | Absent = None
    """Which of the repetitions' figures `measured` is; absent for a size, of which the one furthest off counts."""
    per_node_target: float | Absent = None
    """Each node's share of the target, where nodes were compared."""
    per_node_measured: float | Absent = None
    """What each node of the run gave."""
    nodes: int | Absent = None
    """Nodes of the run."""
    nodes_fraction: float | Absent = None
    """Those over the scenario's; of a benchmark that writes, over as many of them as have a writer."""
    full_scale: bool | Absent = None
    """Whether those are as many as the scenario's, give or take a twentieth; absent where unknown."""
    run_ids: list[UUID]
    """The runs that the status rests on; empty where nothing was measured."""
    doubts: list[Doubt]
    """What there is to doubt in them, as far as it touches this target."""
    reason: str
    """Why the status is what it is."""
    chosen_because: str | Absent = None
    """Why this evidence is reported, and not other; absent where nothing was measured."""
    experience: str | Absent = None
    """Of a smaller run that suffices: what such runs have failed to show before."""
    bytes_per_parameter: BytesPerParameter | Absent = None
    """Of a checkpoint's size at full scale: what it says of the assumption behind it."""


class Outcome(StrEnum):
    """The verdict in a word."""

    FALLS_SHORT = "falls_short"
    """At least one target is missed."""
    MEETS = "meets"
    """Every target is met at full scale."""
    UNPROVEN = "unproven"
    """None is missed, and some are yet to be proved."""


class VerdictItem(Outgoing):
    """A target that is not met, and what that alone does to training."""

    target: TargetId
    status: Status
    waste_usd_per_year: float | Absent = None
    """What its figure alone wastes more than was specified; absent where nothing prices it. [USD/year]"""
    goodput_fraction: float | Absent = None
    """What it alone does to the goodput; negative where training loses."""
    sentence: str


class Verdict(Outgoing):
    """Whether the storage does what the scenario needs."""

    outcome: Outcome
    sentence: str
    """The verdict with the figure that decides it."""
    decided_by: TargetId | Absent = None
    """The target that decides: the dearest that is missed, the first unproven, or the one met most narrowly."""
    items: list[VerdictItem]
    """The targets that are not met, what costs most first; what no figure prices comes last."""


class Difference(Outgoing):
    """The measured sizing minus the specified one."""

    goodput_fraction: float
    """By the exact formula; negative where training loses."""
    waste_usd_per_year: float | Absent = None
    """Positive where more is wasted; absent without a GPU price. [USD/year]"""


class Consequence(Outgoing):
    """What one measured figure alone does to training, every other one as specified.

    Figures of several targets can come from the same run and speak of the same seconds: they do not add up.
    """

    target: TargetId
    blocking_seconds: float | Absent = None
    """The stall, where the figure changes it. [s]"""
    durable_lag_seconds: float | Absent = None
    """The durable lag, likewise. [s]"""
    load_seconds: float | Absent = None
    """The load of a restart, likewise. [s]"""
    extrapolated: bool
    """Whether the figure rests on a run of another size."""
    feasible: bool
    """Whether the interval leaves time to train."""
    interval_seconds: float | Absent = None
    """The interval in force. [s]"""
    exact_interval_seconds: float
    """The best interval for the stall that results. [s]"""
    effective_interval_seconds: float | Absent = None
    """The period that results where async saves collide; absent where they do not. [s]"""
    goodput_fraction: float | Absent = None
    """What results; absent where it is not feasible."""
    waste_usd_per_year: float | Absent = None
    """Likewise. [USD/year]"""
    difference: Difference | Absent = None
    """The same, less what was specified: what it costs not to fix this."""
    saved_if_fixed_usd_per_year: float | Absent = None
    """Of a missed figure: what is saved if it alone just met its target, while all others stay as measured; nothing
    where another one sets the time anyway. [USD/year]"""
    superseded_by: TargetId | Absent = None
    """The target whose figure the whole has in place of this one, since it says more of the same time."""
    sentence: str


class Consequences(Outgoing):
    """What the measured figures do to training."""

    feasible: bool
    """Whether the interval leaves time to train, with the measured figures in place of the specified."""
    reason: str | Absent = None
    """Why there is no measured sizing."""
    specified: Sizing
    """The scenario as it was specified."""
    measured: Sizing | Absent = None
    """The scenario with the measured stall, lag and load; absent where none of them was measured. What a checkpoint
    holds, and the space for it, stay as specified."""
    difference: Difference | Absent = None
    used: list[TargetId]
    """The targets whose figures went into `measured`; every other one keeps its specified value."""
    extrapolated: list[TargetId]
    """Those of them that rest on a run of another size."""
    next_interval_seconds: float | Absent = None
    """Where the interval leaves no time to train: the exact one for the measured stall. [s]"""
    collision: str | Absent = None
    """Where async saves collide with the measured figures: what becomes of the interval."""
    each: list[Consequence]
    """Each usable figure by itself, in the order of the targets."""


class StorageRuns(Outgoing):
    """How many runs a scenario has on one storage."""

    storage_label: str | Absent = None
    """Absent for the runs without a label."""
    runs: int


class ChecklistId(StrEnum):
    """What an expert asks for before he trusts a checkpoint storage."""

    CHECKPOINT_BYTES = "checkpoint_bytes"
    INTERVAL = "interval"
    STALL_BUDGET = "stall_budget"
    SAVE_MODE = "save_mode"
    PERSIST_BANDWIDTH = "persist_bandwidth"
    METADATA_RATE = "metadata_rate"
    RESTART_READ = "restart_read"
    RETENTION = "retention"
    WRITE_UNDER_READ_LOAD = "write_under_read_load"
    LOADER_AND_RNG_STATE = "loader_and_rng_state"
    SEPARATE_PROCESS_GROUP = "separate_process_group"


class ChecklistStatus(StrEnum):
    """How far one of these is more than a hope."""

    PROVED = "proved"
    """Runs at full scale show it."""
    STATED = "stated"
    """An input says it."""
    STALE = "stale"
    """It was proved, and longer ago than the drill interval."""
    OPEN = "open"
    """Nobody measured or stated it, or what was measured does not show it."""


class ChecklistItem(Outgoing):
    """One item of the checklist."""

    id: ChecklistId
    title: str
    """What is asked for."""
    status: ChecklistStatus
    sentence: str
    """What shows it, or what is missing."""
    run_ids: list[UUID]
    """The runs that bear on it."""
    pointers: list[str]
    """The fields of the spec that state it, or in which it is to be stated."""


class GapReport(Outgoing):
    """How far a storage system is from what a scenario asks, and what that costs."""

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    """The revision that was judged."""
    storage_label: str | Absent = None
    """The storage that was judged; absent where its runs have no label."""
    evidence: EvidenceChoice
    storages: list[StorageRuns]
    """Every storage that the scenario has runs on: the report is about one of them, and leaves out the rest."""
    runs_considered: int
    """Runs of that storage, as far as they were chosen."""
    targets: list[TargetReport]
    verdict: Verdict
    consequences: Consequences
    checklist: list[ChecklistItem]
    """What an expert asks for, item by item."""
