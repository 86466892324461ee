"""Sizing: what comes out. Pydantic, and the wire model too: there is no second definition."""

from enum import StrEnum

from service.sizing.bandwidth import Limit
from service.sizing.checkpoint import UNEVEN_SKEW, Carriers, carriers
from service.sizing.layout import LayoutRule
from service.sizing.presets import StateKind, StateScope
from service.sizing.spec import FailureKind, IntervalRule, TierKind
from service.wire import Absent, Outgoing


class ModelPart(Outgoing):
    """The weights of one kind, over the whole model."""

    part: str
    """`embedding`, `attention`, `mlp`, `router`, `routed_experts`, `shared_experts`, `norms`, `biases` or
    `output_head`."""
    parameters: int
    """All that are stored."""
    active_parameters: int
    """Those of them that work on one token."""
    bytes: int | Absent = None
    """What is saved of their state, before compression and deduplication; absent for an adapter alone. [B]"""


class StateItem(Outgoing):
    """One item of a recipe."""

    name: str
    kind: StateKind
    of: StateScope
    parameters: int
    """How many parameters have it."""
    bytes_per_parameter: float
    """For each of them. [B]"""
    bytes: int
    """All of it, before compression and deduplication. [B]"""


class ModelState(Outgoing):
    """What the model is made of, and what of it a checkpoint holds."""

    parameters: int
    """All stored parameters: these size storage."""
    active_parameters: int | Absent = None
    """Those that work on one token, embeddings included; absent where the shape is not known."""
    adapter_parameters: int | Absent = None
    """Those of an adapter that is saved alone."""
    bytes_per_parameter: float
    """The state over the parameters, or over those of the adapter. [B]"""
    state_bytes: int
    """The state of all that is saved, before compression and deduplication and without extras. [B]"""
    items: list[StateItem] | Absent = None
    """What the state is made of, where a recipe is named."""
    parts: list[ModelPart] | Absent = None
    """What the model is made of, where its shape is known."""


class Checkpoint(Outgoing):
    """What one checkpoint holds, and how it is cut."""

    bytes: int
    """What a full save writes, second copies included, without DCP's `.metadata`. [B]"""
    difference_bytes: int | Absent = None
    """What a save between two full ones writes; absent where all are full. [B]"""
    mean_bytes: int | Absent = None
    """What a save writes on average; absent where all are full. [B]"""
    restored_bytes: int | Absent = None
    """What a restore reads once, at most; absent where that is what a full save writes. [B]"""
    restored_mean_bytes: int | Absent = None
    """The same on average over the saves after which it may come; absent where it is always the same. [B]"""
    bytes_per_gpu: int
    """An even split over the GPUs. [B]"""
    bytes_per_node: int
    """An even split over the nodes. [B]"""
    largest_shard_bytes: int
    """The writer with most to write. [B]"""
    mean_shard_bytes: int
    """All of it over the writers. [B]"""
    skew: float
    """The largest shard over the mean one: by the parallel layout, as given, or taken to be 1."""
    largest_node_bytes: int
    """What the writers of one node write together at most; without a parallel layout an upper bound. [B]"""
    nodes: int
    """GPUs over GPUs per node, rounded up."""
    writers: int
    """Ranks that write."""
    writing_nodes: int
    """Nodes that have a writer: by the parallel layout, or as many as writers can be spread over."""
    files: int
    """Data files of one save, and the one metadata file."""

    @property
    def carriers(self) -> Carriers | None:
        """The nodes of a benchmark for the slowest writer; None where shards are even enough for all that write."""
        if self.skew < UNEVEN_SKEW:
            return None
        return carriers(
            checkpoint_bytes=self.bytes,
            largest_shard_bytes=self.largest_shard_bytes,
            largest_node_bytes=self.largest_node_bytes,
            writing_nodes=self.writing_nodes,
        )


class RankClass(Outgoing):
    """Ranks of a parallel layout that hold and write alike."""

    first_stage: int
    """The pipeline stages that they are in, counted from 0: from this one."""
    last_stage: int
    """To this one."""
    layers_per_stage: int
    """Layers of each of these stages; the most, where the class spans unlike ones."""
    parameters: int
    """Model parameters that each of them works with; in the first of unlike stages."""
    ranks: int
    """How many ranks, all stages together."""
    bytes: int
    """What each of them writes. [B]"""
    weight_bytes: int
    """Model weights in it. [B]"""
    optimiser_bytes: int
    """Optimiser state in it; what is left is the rank's own state, and what the first rank saves for all. [B]"""
    read_bytes: int
    """What each of them reads at a load. [B]"""
    holds: list[str]
    """The parts of the model in these stages."""


class SmallerLayout(Outgoing):
    """A restart on fewer data-parallel ranks, the rest of the layout as it is: the checkpoint is resharded."""

    data: int
    """The data-parallel degree."""
    gpus: int
    """GPUs that it takes."""
    nodes: int
    """Nodes that it takes."""
    read_bytes: int
    """What all ranks together read. [B]"""
    largest_read_bytes: int
    """What the rank with most to read reads, and holds. [B]"""
    largest_shard_bytes: int
    """What the rank with most to write writes from then on. [B]"""


class ParallelLayout(Outgoing):
    """Who writes and who reads what, where the scenario has a parallel layout."""

    rule: LayoutRule
    """By whose rule."""
    tensor: int
    """Ranks that divide each matrix."""
    pipeline: int
    """Stages."""
    data: int
    """Ranks that hold the same parameters, the context-parallel ones among them."""
    distinct_bytes: int
    """The checkpoint with everything in it once. [B]"""
    copies_written: float
    """What a save writes over that."""
    read_amplification: float
    """What all ranks together read at a load over what a save writes."""
    largest_node_read_bytes: int
    """What the ranks of one node read together at most. [B]"""
    ranks: list[RankClass]
    """All ranks of the job, alike ones together."""
    on_fewer_nodes: list[SmallerLayout]
    """Restarts on fewer nodes: after the loss of one, on half of the GPUs, and on as few as the layout allows. Empty
    where no smaller data-parallel degree keeps the layout, and by the rule `mlperf_storage`: in that benchmark a rank
    reads back the very file that it wrote, so it comes back on the same ranks or not at all."""


class ComponentFailures(Outgoing):
    """What one kind of component contributes to the failures."""

    component: str
    share_fraction: float
    """Its part of all failures; the parts add up to 1."""
    failures_per_day: float
    """Interruptions that it causes, over all nodes. [1/day]"""


class Failures(Outgoing):
    """How often the job is interrupted."""

    counts: str | Absent = None
    """What is counted as a failure, by the spec or its preset; absent where nobody said."""
    mtbf_seconds: float
    """Mean time between unexpected interruptions of the whole job. [s]"""
    mtbf_is_lower_bound: bool
    """Whether that is only what it is at least, because none was observed; every figure is then for that bound."""
    mtbf_low_seconds: float | Absent = None
    """Lower end of its confidence interval; absent where the mean was not observed. [s]"""
    mtbf_high_seconds: float | Absent = None
    """Upper end; also absent where no failure was observed, since there is none then. [s]"""
    confidence_fraction: float | Absent = None
    """The probability that the interval covers the true mean; of a lower bound, that the true mean lies above it."""
    settled_mtbf_seconds: float | Absent = None
    """The mean time once the first weeks are over; absent without a factor for them. [s]"""
    node_mtbf_seconds: float | Absent = None
    """Mean time between failures of one node, settled; absent unless components or a rate by node are given. [s]"""
    components: list[ComponentFailures] | Absent = None
    """Which components the failures come from; absent where they are not given."""
    failures_per_day: float
    """Expected interruptions a day. [1/day]"""
    per_1000_node_days: float
    """The same for every 1000 nodes, the unit of published rates. [1/(1000 node days)]"""


class PlannedInterruptions(Outgoing):
    """Interruptions that are planned. They save first, count as no failure, and are in no other figure."""

    per_day: float
    """As observed; the GPU count does not change them. [1/day]"""
    restarting_fraction: float
    """All time that goes into coming back from them, a whole restart each; it can pass 1. To add to the waste."""
    restarting_usd_per_year: float | Absent = None
    """What that costs; absent where the price is not given. [USD/year]"""


class AtMtbf(Outgoing):
    """What follows if the mean time between failures is that of one end of its interval."""

    mtbf_seconds: float
    """That end. [s]"""
    interval_seconds: float
    """The interval by the scenario's rule. [s]"""
    blocking_seconds: float | Absent = None
    """The stall there, where a staging budget bears on it; else it is the scenario's. [s]"""
    restart_seconds: float | Absent = None
    """The mean restart there, where spares are counted; else it is the scenario's. [s]"""
    goodput_fraction: float | Absent = None
    """Training that counts, by the exact formula; absent where the interval leaves no time to train."""
    waste_fraction: float | Absent = None
    """The rest: saving, lost work and restarts. Absent likewise."""
    waste_usd_per_year: float | Absent = None
    """What that costs; absent likewise, and where the price is not given. [USD/year]"""


class Uncertainty(Outgoing):
    """How far the figures move between the ends of the confidence interval of the mean time between failures."""

    low: AtMtbf
    """At its lower end: failures as frequent as the record allows."""
    high: AtMtbf
    """At its upper end."""


class Collision(StrEnum):
    """What happens where a save is not durable before the next one wants to be copied."""

    BLOCKED = "blocked"
    SECOND_BUFFER = "second_buffer"


class Interval(Outgoing):
    """How often a checkpoint is taken, start to start."""

    seconds: float
    """The interval in force. [s]"""
    rule: IntervalRule
    """Where it comes from."""
    young_seconds: float
    """What Young's rule gives for the blocking time in force. [s]"""
    daly_seconds: float
    """What Daly's higher-order rule gives. [s]"""
    exact_seconds: float
    """The optimum for exponential failures, where the stall does not grow with the interval. [s]"""
    effective_seconds: float | Absent = None
    """The period that results where a save waits for the one before it; absent where none does. [s]"""
    collision: Collision | Absent = None
    """Where a save is not durable before the next: `blocked`, or copied to a `second_buffer`; else absent."""
    best_seconds: float | Absent = None
    """The optimum for this durable lag where saves at `exact_seconds` wait for each other; else absent. [s]"""


class Blocking(Outgoing):
    """The stall of one save."""

    seconds: float
    """How long training stops for one save. [s]"""
    overhead_fraction: float
    """The same over the interval."""
    budget_seconds: float | Absent = None
    """The stall that the spec allows, where the copy and the wait for staging memory make it longer whatever the write
    bandwidth, or at that of a given storage; it stays the target. [s]"""
    staging_stall_seconds: float | Absent = None
    """With a staging budget: the copy, and the wait until what does not fit has drained. [s]"""

    @property
    def allowed_seconds(self) -> float:
        """The stall that the spec allows. [s]"""
        return self.seconds if self.budget_seconds is None else self.budget_seconds


class RestartPart(StrEnum):
    """What passes from a failure until training is where it was."""

    DETECT = "detect"
    RESCHEDULE = "reschedule"
    INITIALISE = "initialise"
    LOAD = "load"
    WARM_UP = "warm_up"
    REPLAY = "replay"


class RestartShare(Outgoing):
    """One part of a recovery."""

    part: RestartPart
    seconds: float
    """How long it takes, on average. [s]"""
    fraction: float
    """The same over `recovery_seconds`."""


class Restart(Outgoing):
    """The way back after a failure."""

    seconds: float
    """Detect, reschedule, initialise, load and warm up, without the replay. [s]"""
    load_seconds: float | Absent = None
    """The load in it, where it is known. [s]"""
    spares_exhausted_fraction: float | Absent = None
    """Failures that find no spare node over all failures, where it is stated or follows."""
    replay_seconds: float | Absent = None
    """What a failure undoes on average, to be done again: it counts as lost work, and is not in `seconds`. [s]"""
    recovery_seconds: float | Absent = None
    """From a failure until training is where it was: restart and replay. [s]"""
    parts: list[RestartShare] | Absent = None
    """The parts of a recovery where they are known; all but `replay` add up to `seconds`."""
    dominant: RestartPart | Absent = None
    """The longest of them."""


class Write(Outgoing):
    """The bandwidth that saves need."""

    required_gb_per_second: float
    """Sync: bytes over the stall; async: the persist bandwidth, headroom included, or more where a save through a
    staging budget would else stop training for longer than is allowed. [10^9 B/s]"""
    minimum_gb_per_second: float
    """Sync: the same; async: what fits exactly one save into an interval. [10^9 B/s]"""
    strict_minimum_gb_per_second: float | Absent = None
    """Async: below this a save waits for the one before it. [10^9 B/s]"""
    per_node_gb_per_second: float
    """The required bandwidth over the nodes that have a writer. [10^9 B/s]"""
    per_writer_gb_per_second: float
    """The required bandwidth over the writers. [10^9 B/s]"""
    largest_shard_gb_per_second: float
    """What the writer with most to write must sustain to finish in the same time. [10^9 B/s]"""
    largest_node_gb_per_second: float | Absent = None
    """What the node with most to write must sustain: its part of the required bandwidth, as it has of the bytes; absent
    without a parallel layout. [10^9 B/s]"""
    durable_lag_seconds: float | Absent = None
    """Async: from training going on until the checkpoint is durable. [s]"""
    drain_seconds: float | Absent = None
    """The whole drain of a save, where a part of it passes in the stall; absent where it is the durable lag. [s]"""

    @property
    def node_gb_per_second(self) -> float:
        """What a node must sustain: the one with most to write where that is known. [10^9 B/s]"""
        known = self.largest_node_gb_per_second
        return known if known is not None else self.per_node_gb_per_second

    def window_seconds(self, blocking: Blocking) -> float:
        """Return in what time a save is written: the drain of an async one, the stall of a sync one. [s]"""
        if self.durable_lag_seconds is None:
            return blocking.seconds
        return self.durable_lag_seconds if self.drain_seconds is None else self.drain_seconds


class Read(Outgoing):
    """The bandwidth that a restart needs."""

    bytes: int
    """What all ranks together read; at most, where it depends on the last full save. [B]"""
    mean_bytes: int | Absent = None
    """The same on average; absent where it is always the same. [B]"""
    read_amplification: float
    """Those bytes over what the checkpoint's are once: as given, by the parallel layout, or taken to be 1."""
    required_gb_per_second: float
    """Those bytes over the restore target. [10^9 B/s]"""
    per_node_gb_per_second: float
    """The same over the nodes. [10^9 B/s]"""
    largest_node_gb_per_second: float | Absent = None
    """What the node with most to read must sustain: its part of the required bandwidth, as it has of the bytes; absent
    without a parallel layout. [10^9 B/s]"""

    @property
    def node_gb_per_second(self) -> float:
        """What a node must sustain: the one with most to read where that is known. [10^9 B/s]"""
        known = self.largest_node_gb_per_second
        return known if known is not None else self.per_node_gb_per_second


class Metadata(Outgoing):
    """The file operations of one save."""

    creates_per_save: int
    """Files made, synced and closed."""
    creates_per_second: float
    """Those over the time in which the save is written. [1/s]"""
    deletes_per_interval: int
    """Files removed for each new save once retention is full."""


class HostMemory(Outgoing):
    """DRAM that async staging takes."""

    bytes_per_node: int
    """The largest node's share times the buffers; with skew and no parallel layout an upper bound. [B]"""
    staging_buffers: int
    """Copies held at once."""
    memory_fraction: float | Absent = None
    """The same over the node's memory, where that is known."""
    budget_fraction: float | Absent = None
    """The same over the staging budget, where one is stated: above 1 saves wait for memory."""


class Framework(StrEnum):
    """Whose settings a text is for."""

    TORCHTITAN = "torchtitan"
    MEGATRON_LM = "megatron_lm"
    NEMO = "nemo"
    MEGATRON_BRIDGE = "megatron_bridge"
    TORCH_DCP = "torch_dcp"


class SettingsForm(StrEnum):
    """Where a text is pasted: behind a command, into a TOML file, into a Python program."""

    COMMAND_LINE = "command_line"
    TOML = "toml"
    PYTHON = "python"


class TrainerSetting(Outgoing):
    """What to write for one trainer."""

    framework: Framework
    version: str
    """The versions in which the names were looked up."""
    form: SettingsForm
    text: str
    """To be pasted as it is."""
    source: str
    """Where the names are defined."""


class Trainer(Outgoing):
    """What trainers are to be set to, in their own words."""

    interval_steps: int | Absent = None
    """Training steps from one save to the next, rounded to whole ones; absent without `save.step_seconds`."""
    interval_seconds: float | Absent = None
    """What so many steps and a save come to. [s]"""
    writing_ranks_per_node: int | Absent = None
    """Ranks of a node that write."""
    threads_per_rank: int | Absent = None
    """Writer threads of each that fill the node's bandwidth; absent without `storage.thread_gb_per_second`."""
    threads_per_node: int | Absent = None
    """All of them on a node."""
    settings: list[TrainerSetting]


class Capacity(Outgoing):
    """Space for the checkpoints that are kept."""

    hot_bytes: int
    """Copies on the hot tier with their protection. [B]"""
    hot_peak_bytes: int
    """With the one that is being written. [B]"""
    cold_bytes: int | Absent = None
    """Copies on the cold tier with their protection. [B]"""
    cold_peak_bytes: int | Absent = None
    """With the one that is on its way there. [B]"""


class ExactGoodput(Outgoing):
    """Where the wall time goes, by the exact formula. The four add up to 1."""

    goodput_fraction: float
    """Training that counts."""
    saving_fraction: float
    """Stopped for saves that counted, and waiting for the one before."""
    lost_work_fraction: float
    """Work that a failure undid."""
    restarting_fraction: float
    """Coming back."""


class FirstOrderGoodput(Outgoing):
    """The articles' first-order waste. It leaves the durable lag out and can pass 1."""

    waste_fraction: float
    """The sum of the three."""
    saving_fraction: float
    """Blocking time over the interval."""
    lost_work_fraction: float
    """Half an interval over the mean time between failures."""
    restarting_fraction: float
    """Restart time over the mean time between failures."""


class Goodput(Outgoing):
    """The models side by side; the exact one is the headline."""

    exact: ExactGoodput
    first_order: FirstOrderGoodput
    effective_training_time_ratio: float
    """As Meta's reliability study estimates it: 1 less a restart and half an interval for each failure. It leaves out
    the stall of saves, the durable lag, and failures during a restart; and it can fall below 0."""


class Cost(Outgoing):
    """Dollars. Absent where the price is not given. A year is 365 days."""

    cluster_usd_per_hour: float | Absent = None
    """All GPUs. [USD/h]"""
    stall_usd_per_day: float | Absent = None
    """GPUs stopped for saves, as if nothing failed. [USD/day]"""
    stall_usd_per_year: float | Absent = None
    """[USD/year]"""
    waste_usd_per_year: float | Absent = None
    """GPU time that did not count, by the exact formula. [USD/year]"""
    saving_usd_per_year: float | Absent = None
    """Its part for saves. [USD/year]"""
    lost_work_usd_per_year: float | Absent = None
    """Its part for work undone. [USD/year]"""
    restarting_usd_per_year: float | Absent = None
    """Its part for restarts. [USD/year]"""
    hot_usd_per_month: float | Absent = None
    """Space of the hot tier, the copy in flight included. [USD/month]"""
    cold_usd_per_month: float | Absent = None
    """Likewise the cold tier. [USD/month]"""


class DeliveredWrite(Outgoing):
    """A save as the given storage system would take it. Creates are taken to overlap with writes."""

    seconds: float
    """How long the transfer takes: the slowest of the limits. [s]"""
    gb_per_second: float
    """The checkpoint over that time. [10^9 B/s]"""
    limited_by: Limit
    """Which limit that is."""
    durable_lag_seconds: float | Absent = None
    """Async: the transfer, or what is left of it when training goes on. [s]"""
    creates_per_second: float
    """Files made a second meanwhile. [1/s]"""


class DeliveredRead(Outgoing):
    """A restart's load as the given storage system would serve it."""

    seconds: float
    """How long the load takes. [s]"""
    gb_per_second: float
    """What is read over that time. [10^9 B/s]"""
    limited_by: Limit
    """Which limit that is."""


class DeliveredCapacity(Outgoing):
    """The given usable space against what retention needs."""

    usable_bytes: int
    """[B]"""
    copies_that_fit: int
    """Checkpoints that can be kept while one more is being written; usable space is after protection."""
    hot_peak_fraction: float | Absent = None
    """What the kept copies and the one in flight take over what there is; absent without retention."""
    full_after_seconds: float
    """When it is full if nothing is ever deleted. [s]"""


class Delivered(Outgoing):
    """What the given storage system delivers. A block is absent where the system's figure for it is."""

    feasible: bool
    """Whether training makes progress, and the kept copies fit."""
    reason: str | Absent = None
    """Why not."""
    next_interval_seconds: float | Absent = None
    """Where the interval leaves no time to train: the exact one for the delivered blocking time. [s]"""
    interval: Interval | Absent = None
    blocking: Blocking | Absent = None
    restart: Restart | Absent = None
    write: DeliveredWrite | Absent = None
    read: DeliveredRead | Absent = None
    capacity: DeliveredCapacity | Absent = None
    goodput: Goodput | Absent = None
    cost: Cost | Absent = None


class FailureShare(Outgoing):
    """A kind of failure, and how many of all failures are of it."""

    kind: FailureKind
    nodes: int | Absent = None
    """Nodes that are struck at once; absent where the failure is of processes alone."""
    fraction: float
    """Of all failures."""


class TierSurvival(Outgoing):
    """What a tier makes of a kind of failure."""

    kind: FailureKind
    nodes: int | Absent = None
    """Nodes that are struck at once; absent where the failure is of processes alone."""
    survival_fraction: float
    """The probability that the tier still holds every part of its checkpoint."""


class Tier(Outgoing):
    """One tier of the set. A figure that its kind does not have is absent."""

    kind: TierKind
    interval_seconds: float
    """The interval in force, fitted so that the tier saves with every save of the next one. [s]"""
    young_seconds: float | Absent = None
    """Young's interval for the failures that fall back to this tier; absent where none do, or no save stalls. [s]"""
    saves_per_shared_save: int
    """Saves to this tier in one period of shared storage."""
    blocking_seconds: float
    """What a save to this tier stops training for; of shared storage with the wait for the save before. [s]"""
    durable_lag_seconds: float
    """From training going on until the tier holds the save. [s]"""
    restore_seconds: float | Absent = None
    """The load from this tier, where it is known. [s]"""
    restart_seconds: float
    """The whole restart with that load in it. [s]"""
    survives: list[TierSurvival]
    """Failure by failure."""
    fallback_fraction: float
    """Failures that no nearer tier survives and this one does, over all failures."""
    memory_bytes_per_node: int | Absent = None
    """DRAM for every version and every peer's copy. [B]"""
    nvme_bytes_per_node: int | Absent = None
    """Space on the drives for the same. [B]"""
    nvme_fraction: float | Absent = None
    """That over the node's drives, where they are known."""
    peer_bytes_per_save: int | Absent = None
    """What all nodes send for the copies on other nodes. [B]"""
    node_write_gb_per_second: float | Absent = None
    """What a node must write, or send, for a save to be durable in its lag. [10^9 B/s]"""
    node_written_tb_per_day: float | Absent = None
    """What a node's drives take in a day of saves. [10^12 B/day]"""
    drive_writes_per_day: float | Absent = None
    """How often a day each drive is written over. [1/day]"""
    rated_writes_fraction: float | Absent = None
    """That over the drive's rating."""


class Tiers(Outgoing):
    """The tiers together: what they hold, and where the wall time goes with all of them."""

    failure_mix: list[FailureShare]
    """The kinds of failure that the figures rest on."""
    each: list[Tier]
    """Nearest first; the last is shared storage, with the scenario's own save and interval."""
    memory_bytes_per_node: int | Absent = None
    """DRAM for all tiers in memory, and for async staging. [B]"""
    memory_fraction: float | Absent = None
    """The same over the node's memory, where that is known."""
    shared_saves_per_failure: float
    """Saves to shared storage that come to count between two failures, on average."""
    mean_restart_seconds: float
    """The way back on average over the tiers, failures during it included. [s]"""
    goodput: ExactGoodput
    first_order_waste_fraction: float
    """Stalls, half an interval, lag and restart of each tier, to first order: to check the exact figure by hand."""
    gained_goodput_fraction: float
    """The goodput with the tiers less that with shared storage alone."""
    waste_usd_per_year: float | Absent = None
    """GPU time that does not count with the tiers. [USD/year]"""
    gained_usd_per_year: float | Absent = None
    """What of the waste with shared storage alone the tiers save. [USD/year]"""


class TargetId(StrEnum):
    """What a storage system must reach, item by item."""

    WRITE_BANDWIDTH = "write_bandwidth"
    NODE_WRITE_BANDWIDTH = "node_write_bandwidth"
    WRITE_BANDWIDTH_UNDER_READ_LOAD = "write_bandwidth_under_read_load"
    SLOWEST_WRITER_SECONDS = "slowest_writer_seconds"
    BLOCKING_SECONDS = "blocking_seconds"
    PERSIST_SECONDS = "persist_seconds"
    READ_BANDWIDTH = "read_bandwidth"
    NODE_READ_BANDWIDTH = "node_read_bandwidth"
    LOAD_SECONDS = "load_seconds"
    RESHARDED_LOAD_SECONDS = "resharded_load_seconds"
    FILE_CREATE_RATE = "file_create_rate"
    CHECKPOINT_BYTES = "checkpoint_bytes"


class Comparison(StrEnum):
    """How a measured value is held against a target."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    WITHIN = "within"


class TargetUnit(StrEnum):
    """The unit of a target's value."""

    GB_PER_SECOND = "gb_per_second"
    SECONDS = "seconds"
    PER_SECOND = "per_second"
    BYTES = "bytes"


class Scope(StrEnum):
    """What a target's value is a figure of."""

    CLUSTER = "cluster"
    NODE = "node"
    RANK = "rank"


class Target(Outgoing):
    """One thing that a storage system must reach."""

    id: TargetId
    comparison: Comparison
    value: float
    unit: TargetUnit
    scope: Scope
    tolerance_fraction: float | Absent = None
    """For `within`: how far off, as a fraction of the value."""
    why: str
    """Where the value comes from, in words."""


class WarningCode(StrEnum):
    """What a reader of a sizing should know before he uses it."""

    FIRST_ORDER_OVERSTATES = "first_order_overstates"
    FIRST_ORDER_OMITS_DURABLE_LAG = "first_order_omits_durable_lag"
    SAVES_COLLIDE = "saves_collide"
    DIFFERENTIAL_SAVES_TAKEN_AS_FULL = "differential_saves_taken_as_full"
    EVEN_SHARDS_ASSUMED = "even_shards_assumed"
    FEW_NODES_WRITE = "few_nodes_write"
    REPLICAS_WRITTEN_BY_FEW = "replicas_written_by_few"
    REPLICAS_READ_BY_ALL = "replicas_read_by_all"
    FEW_OBSERVED_FAILURES = "few_observed_failures"
    NO_OBSERVED_FAILURES = "no_observed_failures"
    NO_USEFUL_TIME_AT_LOW_MTBF = "no_useful_time_at_low_mtbf"
    EFFECTIVE_TRAINING_TIME_NEGATIVE = "effective_training_time_negative"
    STAGING_EXCEEDS_HOST_MEMORY = "staging_exceeds_host_memory"
    STAGING_STALLS = "staging_stalls"
    STEPS_ARE_COARSE = "steps_are_coarse"
    THREADS_MAKE_FILES = "threads_make_files"
    LOAD_NOT_SEPARATE = "load_not_separate"
    AGGREGATE_BANDWIDTH_UNKNOWN = "aggregate_bandwidth_unknown"
    FAILURE_MIX_ASSUMED = "failure_mix_assumed"
    TIER_INTERVAL_FITTED = "tier_interval_fitted"
    TIER_SLOWER_THAN_NEXT = "tier_slower_than_next"
    TIERS_EXCEED_HOST_MEMORY = "tiers_exceed_host_memory"
    TIER_EXCEEDS_NODE_NETWORK = "tier_exceeds_node_network"
    TIER_EXCEEDS_DRIVES = "tier_exceeds_drives"
    DRIVE_WRITES_EXCEED_RATING = "drive_writes_exceed_rating"


class SizingWarning(Outgoing):
    """One such thing, and the field of the spec that it is about."""

    code: WarningCode
    pointer: str
    message: str


class ExplanationInput(Outgoing):
    """One number that went into a figure."""

    name: str
    value: float
    unit: str


class Explanation(Outgoing):
    """How one figure of the sizing came about, so that a buyer can check it by hand."""

    pointer: str
    """Which figure."""
    formula: str
    """The formula's id in the register."""
    expression: str
    """The formula, in the names of its inputs."""
    inputs: list[ExplanationInput]
    assumption: str | Absent = None
    """What the figure rests on that nobody measured."""
    source: str
    """Where the formula comes from."""


class Sizing(Outgoing):
    """What a scenario asks of its storage, what comes of it, and what it costs."""

    engine_version: str
    """Of the engine that computed this. The same spec gives the same answer for the same version."""
    model: ModelState
    checkpoint: Checkpoint
    layout: ParallelLayout | Absent = None
    failures: Failures
    interval: Interval
    blocking: Blocking
    restart: Restart
    write: Write
    read: Read | Absent = None
    metadata: Metadata
    host_memory: HostMemory | Absent = None
    capacity: Capacity | Absent = None
    trainer: Trainer | Absent = None
    goodput: Goodput
    uncertainty: Uncertainty | Absent = None
    """Absent unless the failures were observed."""
    planned: PlannedInterruptions | Absent = None
    """Absent unless planned interruptions were counted."""
    cost: Cost | Absent = None
    targets: list[Target]
    delivered: Delivered | Absent = None
    tiers: Tiers | Absent = None
    warnings: list[SizingWarning]
    explanation: list[Explanation] | Absent = None

    def carriers_of(self, target_id: TargetId) -> Carriers | None:
        """Return the nodes of a benchmark that imitates what a target is about; None where that is all that write."""
        of_the_fullest = target_id is TargetId.SLOWEST_WRITER_SECONDS or (
            target_id is TargetId.NODE_WRITE_BANDWIDTH and self.write.largest_node_gb_per_second is not None
        )
        return self.checkpoint.carriers if of_the_fullest else None
