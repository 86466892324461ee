"""TestPlan: the tests that settle a scenario, with their commands. The wire models; there is no second definition."""

from enum import StrEnum
from uuid import UUID

from service.parsers.run import Condition
from service.sizing.sizing import Comparison, Scope, TargetId, TargetUnit
from service.wire import Absent, Outgoing


class Launcher(StrEnum):
    """What starts the ranks of a benchmark."""

    MPIRUN = "mpirun"
    """Open MPI's; other MPIs spell `--map-by ppr:8:node` as `-ppn 8`."""
    SRUN = "srun"
    """Slurm's."""


class TestId(StrEnum):
    """The tests there are."""

    __test__ = False  # no class of tests, whatever its name begins with

    IOR_WRITE = "ior_write"
    """IOR writes what a save writes, and syncs it."""
    IOR_WRITE_LARGEST_SHARDS = "ior_write_largest_shards"
    """IOR writes a checkpoint's bytes from few ranks, each as much as the slowest writer of a save: where shards are
    uneven."""
    IOR_READ = "ior_read"
    """IOR reads it back, each rank what another node wrote."""
    IOR_WRITE_UNDER_READ_LOAD = "ior_write_under_read_load"
    """The write again while another job reads."""
    MDTEST_CREATE = "mdtest_create"
    """mdtest makes the files of a save."""
    DCP_SAVE = "dcp_save"
    """The checkpointer saves, and training waits."""
    DCP_ASYNC_SAVE = "dcp_async_save"
    """The checkpointer saves while training goes on."""
    DCP_LOAD = "dcp_load"
    """The checkpointer loads onto as many ranks as saved."""
    DCP_RESHARDED_LOAD = "dcp_resharded_load"
    """The checkpointer loads onto another number of ranks."""


class Best(StrEnum):
    """The best that a test can say about a target; a miss it may always show."""

    MET = "met"
    """It can show that the target is met."""
    MET_IF_IT_SCALES = "met_if_it_scales"
    """It can show it of the nodes tested; that more of them keep the pace it cannot."""
    NOTHING = "nothing"
    """It can at most show a miss."""


class Command(Outgoing):
    """One command."""

    purpose: str
    """What it is for."""
    argv: list[str]
    """Word by word. Where no directory was given, a path begins with `$STALLBUDGET_DIRECTORY`, to be filled in."""
    line: str
    """The same as one line for a POSIX shell, safely quoted."""


class Proof(Outgoing):
    """What a test says about one target."""

    target_id: TargetId
    comparison: Comparison
    target_value: float
    """The target, for the whole cluster."""
    value: float
    """What this run itself must show: on fewer nodes their share of a rate."""
    unit: TargetUnit
    scope: Scope
    why: str
    """Where the target comes from."""
    best: Best
    sentence: str
    """The figure to reach, in words."""


class ReadTrust(Outgoing):
    """Whether a read can be trusted not to come from the memory of the nodes."""

    node_memory_bytes: int | Absent = None
    """DRAM of a node; absent where the scenario does not say. [B]"""
    needed_bytes_per_node: int | Absent = None
    """Three times that. [B]"""
    bytes_per_node: int
    """What each node reads in one repetition. [B]"""
    trusted: bool
    """Whether the run may count as met: from two nodes on, and with so much data where the memory is known."""
    sentence: str


class PlannedTest(Outgoing):
    """One test: its commands, its size, and what it must reach."""

    __test__ = False

    id: TestId
    title: str
    why: str
    """What it imitates."""
    scripted: bool
    """Whether the script runs it; the others run in your training job."""
    nodes: int
    ranks: int
    ranks_per_node: int
    repetitions: int
    """Those that count; a warm-up before them is extra."""
    block_bytes: int | Absent = None
    """What a rank moves in one segment, rounded up to whole transfers: the largest shard; the mean one where shards are
    so uneven that the largest has a test of its own; and where fewer ranks write than load, in a read a rank's share of
    the checkpoint. [B]"""
    transfer_bytes: int | Absent = None
    """What it moves in one call. [B]"""
    segments: int | Absent = None
    """Blocks of each rank."""
    files_per_rank: int | Absent = None
    """Files that each rank makes."""
    file_per_process: bool | Absent = None
    fsync: bool | Absent = None
    """Whether the time includes making the data durable."""
    reordered: bool | Absent = None
    """Whether each rank reads what another node wrote."""
    stripe_count: int | Absent = None
    """On Lustre: objects that a file is striped over."""
    commands: list[Command]
    """In their order; of a test under load the second goes on beside the third."""
    calls: list[str] | Absent = None
    """Lines for your training script, where the test runs there."""
    document_needs: list[str] | Absent = None
    """What the document that it writes must contain to count."""
    expected_seconds: float
    """How long it takes if the targets are just reached, without the start of the ranks. [s]"""
    bytes_written: int
    """[B]"""
    peak_bytes: int
    """Most that is on the storage meanwhile, as far as this test or one before it left it there. [B]"""
    read_trust: ReadTrust | Absent = None
    proofs: list[Proof]
    """The figures it must reach; none where it only informs."""
    conditions: list[Condition]
    """What its result is tagged with."""
    result_file: str
    post: Command
    """What posts the result; it prints the HTTP status and keeps the answer in a file. Its `line` hands it the key that
    the shell's variable `STALLBUDGET_API_KEY` holds, if any, on standard input, where no list of processes shows it."""
    notes: list[str]


class Unproven(Outgoing):
    """A target that this plan cannot show to be met."""

    target_id: TargetId
    best: Best
    reason: str


class TestPlan(Outgoing):
    """The tests that show whether a storage system does what a scenario needs."""

    __test__ = False

    engine_version: str
    scenario_id: UUID
    scenario_revision: int
    name: str
    """The scenario's."""
    storage_label: str | Absent = None
    """What the results are posted under."""
    nodes: int
    """On how many nodes the benchmarks run, the largest of them."""
    scenario_nodes: int
    full_scale: bool
    """Whether those are enough for a target to be met, and not only to be met if it scales."""
    launcher: Launcher
    directory: str | Absent = None
    """Where on the storage the tests write; without it the variable STALLBUDGET_DIRECTORY says so."""
    folder: str
    """The folder of its own that the script makes there, and removes again."""
    url: str
    """The service that the results are posted to."""
    expected_seconds: float
    """Of the tests that the script runs, together. [s]"""
    bytes_written: int
    """Likewise. [B]"""
    script_peak_bytes: int
    """Space that the script needs at one time. [B]"""
    checkpointer_bytes_written: int
    """Of the tests that your training job runs, together. [B]"""
    peak_bytes: int
    """Space that the whole plan needs at one time: the script, and after it the training job's tests one after the
    other, where each is followed by the command that removes what no later one reads. [B]"""
    lustre: Command
    """What to do with the folder on Lustre, before anything is written to it."""
    tests: list[PlannedTest]
    unproven: list[Unproven]
    """What the plan can no longer prove, and why."""
    notes: list[str]
