"""What each doubt means, and how to cure it: the text behind `GET /doubts/{code}`."""

from typing import NamedTuple

from service.parsers.measurement import DoubtCode


class Page(NamedTuple):
    """The explanation of one doubt."""

    title: str
    meaning: str
    cure: str


PAGES = {
    DoubtCode.NO_FSYNC: Page(
        "The write was not synced",
        "The time ends when the data is in the client's page cache, so a part of it measures memory and not storage.",
        "Run IOR with -e, mdtest with -y, fio with end_fsync=1; in DCP leave sync_files at true. elbencho times its "
        "--sync apart from the write, so use one of the others to prove a durable rate.",
    ),
    DoubtCode.FSYNC_IGNORED: Page(
        "The sync was asked for and not done",
        "The back end of the benchmark has no fsync, and the tool says that it went on without.",
        "Measure with the POSIX back end, which syncs.",
    ),
    DoubtCode.FSYNC_UNKNOWN: Page(
        "The file does not say whether the write was synced",
        "This format, or this way of running the tool, leaves the flag out, so the figure may be the page cache's.",
        "Post the tool's text or JSON output of a run with fsync; of DCP, say sync_files in settings.",
    ),
    DoubtCode.CACHED_READ: Page(
        "The read may have come from the client's memory",
        "The data lay in the memory of the node that read it: it had written it, or read it before, so the figure "
        "says nothing about storage.",
        "Run IOR with -C on two nodes or more, with more data than three times a node's memory, or drop the caches; "
        "in DCP time a cold load and say page_cache cold.",
    ),
    DoubtCode.CACHE_UNKNOWN: Page(
        "Nothing says whether the load came from storage",
        "The document does not say what was in the page cache before the load. Where ranks load what their own node "
        "saved, memory may have served it. The figure counts, and is no proof that a restart can load.",
        "Drop the caches before a load, and say page_cache cold in its settings; the recorder's load takes it.",
    ),
    DoubtCode.PARTIAL_RANKS: Page(
        "Not all ranks reported",
        "The slowest rank may be one of those that did not.",
        "Record every rank, as `stallbudget recorder` does.",
    ),
    DoubtCode.DATA_VERIFICATION_FAILED: Page(
        "The data read back was wrong",
        "The tool compared what it read with what it had written, and found differences.",
        "Find the fault of the storage first; a fast wrong read is worth nothing.",
    ),
    DoubtCode.IO500_INVALID: Page(
        "IO500 calls the phase invalid",
        "The phase broke a rule of the benchmark, most often by being too short.",
        "Run it for at least 300 s, as the rules ask.",
    ),
    DoubtCode.INCOMPLETE_RUN: Page(
        "The run did not finish",
        "Rows, the end mark or repetitions that were begun are missing: the job was killed, or the file was cut.",
        "Run it again to its end, and post the whole output.",
    ),
    DoubtCode.BLOCK_SMALLER_THAN_SHARD: Page(
        "Each rank moved less than the largest shard",
        "A save ends when the writer of the largest shard is done, and this run's ranks had less to write.",
        "Set the block size to the largest shard, rounded up to the transfer size.",
    ),
    DoubtCode.FEW_REPETITIONS: Page(
        "Fewer than three repetitions",
        "One or two runs do not show how much the figure varies.",
        "Run IOR with -i 3 or more; time at least three saves after the warm-up.",
    ),
    DoubtCode.WIDE_SPREAD: Page(
        "The repetitions differ widely",
        "The largest and the smallest are more than 25 % of the mean apart, so the mean is not what one save gets.",
        "Look for other load, run longer, and judge by the slowest repetition.",
    ),
    DoubtCode.STONEWALLED: Page(
        "The run was ended by time",
        "With a stonewall each rank stops after so many seconds, and the bytes moved differ from those planned.",
        "For a save's time, write whole shards without -D.",
    ),
    DoubtCode.REPS_SKIPPED: Page(
        "Repetitions were skipped",
        "A time limit ended the run before all the repetitions asked for.",
        "Raise the limit (-T), or ask for fewer repetitions.",
    ),
    DoubtCode.NAN_SUMMARY: Page(
        "The tool's summary is not a number",
        "IOR's summary divides by repetitions that did not take place; the single rows are right and were used.",
        "Nothing to do; run without -T to be rid of it.",
    ),
    DoubtCode.STRAGGLER: Page(
        "One rank was much slower than the rest",
        "The slowest rank's own time is more than one and a half times the mean, and a save waits for it.",
        "Look at that rank's node and network; shards of unlike size do the same.",
    ),
    DoubtCode.UNKNOWN_TOPOLOGY: Page(
        "The file does not say how many nodes took part",
        "Without the nodes a figure can be compared neither as a whole nor by node.",
        "Post it with ?nodes=N, or post the output of a version that says it (IOR 3.3 or newer, text or JSON).",
    ),
    DoubtCode.UNEVEN_NODES: Page(
        "The nodes had unlike numbers of ranks",
        "A share by node is then not what each node did.",
        "Run the same number of ranks on every node.",
    ),
    DoubtCode.SEVERAL_RUNS: Page(
        "The file holds several runs",
        "Each was read, and is a measurement of its own. Of fio's --status-interval the last report was used.",
        "Nothing to do; post them one by one where their conditions differ.",
    ),
    DoubtCode.MIXED_LOG_LINES: Page(
        "Log lines stood between the JSON",
        "The tool printed warnings into its own document; whole lines that are known to be such were dropped.",
        "Let IOR write it with -O summaryFile=FILE.",
    ),
    DoubtCode.INVALID_JSON_STRING: Page(
        "A string of the document was not escaped",
        "A backslash or quote in a path made the JSON invalid; it was put right where there is one way to do so.",
        "Keep backslashes and quotes out of the test file's name.",
    ),
    DoubtCode.IOR_WARNING: Page(
        "The tool printed a warning",
        "The message says how many there are, or where the first one stands.",
        "Read it in the document; most concern files left over from an earlier run.",
    ),
    DoubtCode.UNIT_CORRECTED: Page(
        "A unit was put right",
        "The tool names one unit and prints another; the figure was converted from the one it really is.",
        "Nothing to do; compare with figures in 10^9 bytes only.",
    ),
    DoubtCode.ENVIRONMENT_REMOVED: Page(
        "The job's environment was cut out",
        "At high verbosity IOR prints every environment variable, tokens among them. That part was not stored.",
        "Run with -vv or less, and change any secret that was printed.",
    ),
    DoubtCode.OLDER_REVISION: Page(
        "The run was posted for an earlier revision of the scenario",
        "What was asked has changed since, so the run may have measured something else.",
        "Check that its ranks, nodes and block size still fit, or measure again.",
    ),
    DoubtCode.STALE: Page(
        "The proof is old",
        "A restore that was not tried lately is a hope.",
        "Restore again, on a schedule.",
    ),
    DoubtCode.RUNS_DISAGREE: Page(
        "Another run says the opposite",
        "Two usable runs lie on either side of the target.",
        "Find what differed between them, and measure again.",
    ),
}
