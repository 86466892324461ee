"""mdtest's output: the labelled files, and what can befall others of their kind."""

import random
import re

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import parse
from tests.parsers.manifest import FACTUAL, Entry, codes, content, entries, outcome, refused

FOUR = "mdtest-4.0-files-only-3iters.txt"
TWO_NODES = "mdtest-4.0-files-2nodes-write-1k.txt"
OLD = "mdtest-3.2-files-only-3iters.txt"
BY_RANK = "mdtest-3.3-files-only-3iters-ok.txt"
ONCE = "mdtest-4.0-create-only-1iter.txt"
STONEWALL = "mdtest-4.0-stonewall-W2.txt"
BOTH_TABLES = "mdtest-4.0-rate-and-time.txt"
IO500 = "io500-sc25dev-debug-mdtest-easy-write.txt"

ROWS = {
    "file_creation": Operation.FILE_CREATE,
    "file_stat": Operation.FILE_STAT,
    "file_read": Operation.FILE_READ,
    "file_removal": Operation.FILE_REMOVE,
}


def changed(name: str, *changes: tuple[str, str]) -> bytes:
    """Return a labelled file with strings replaced, each of which must be there."""
    text = content(name).decode()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text.encode()


def measurements(data: bytes) -> list[Measurement]:
    made = parse(data).measurements
    assert made is not None
    return made


def create(data: bytes) -> Measurement:
    return next(each for each in measurements(data) if each.operation is Operation.FILE_CREATE)


def refused_at(data: bytes, code: str, words: str) -> UnreadableDocument:
    """Check that a document is refused with the line that holds the words."""
    error = refused(data)
    assert error.code == code, error.detail
    assert error.line is not None
    assert words in data.decode().splitlines()[error.line - 1]
    return error


@pytest.mark.parametrize("entry", entries("mdtest-text"))
def test_a_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    expected = entry["expected"]
    if expected["outcome"] == ["reject"]:
        assert refused(content(entry["file"])).line is not None
        return
    record = parse(content(entry["file"]))
    assert (record.tool, record.format) == ("mdtest", "mdtest-text")
    assert record.tool_version is not None
    assert entry["tool_version"].startswith(record.tool_version)
    if expected["outcome"] == ["accept"]:
        assert not FACTUAL & codes(record)
    rates = {
        ROWS[name]: rate for name, rate in expected["rate_ops_per_s"].items() if name in ROWS and rate["max"]
    }
    assert record.measurements is not None
    assert [each.operation for each in record.measurements] == list(rates)
    for each in record.measurements:
        assert (each.ranks, each.nodes) == (expected["tasks"], expected["nodes"])
        assert each.repetitions_requested == len(each.repetitions) == expected["iterations"]
        assert each.per_second is not None
        shown = rates[each.operation]
        assert (each.per_second.max, each.per_second.min, each.per_second.mean) == (
            shown["max"],
            shown["min"],
            shown["mean"],
        )
        assert each.gb_per_second is None
        assert each.total_seconds is None


def test_ranks_by_rank_are_refused_with_advice() -> None:
    error = refused(content("mdtest-4.0-rank-details.csv"))
    assert error.code == "unknown_format"
    assert "post what mdtest printed" in error.detail


# The table of rates


def test_a_rate_of_zero_is_a_phase_that_was_not_run() -> None:
    assert [each.operation for each in measurements(content(ONCE))] == [Operation.FILE_CREATE]


def test_a_test_of_nothing_but_zeros_is_refused() -> None:
    data = changed(
        ONCE,
        ("        958.771        958.771        958.771", "          0.000          0.000          0.000"),
    )
    assert "none was run" in refused_at(data, "no_results", "SUMMARY").detail


def test_single_rates_are_known_only_where_all_are_the_same() -> None:
    (repetition,) = create(content(ONCE)).repetitions
    assert repetition.per_second == 958.771
    assert [each.per_second for each in create(content(FOUR)).repetitions] == [None] * 3


def test_lines_of_rank_0_are_no_rates_of_all_tasks() -> None:
    # With -v it printed 398.990 and 434.513 for its own quarter of the files.
    made = create(content("mdtest-4.0-print-all-procs-verbose1.txt"))
    assert made.per_second is not None
    assert (made.per_second.min, made.per_second.max) == (1595.962, 1738.052)
    assert made.per_second.median == 1667.007
    assert [each.per_second for each in made.repetitions] == [None, None]


def with_rank_statistics(name: str) -> bytes:
    """Return a file as mdtest prints it with three more columns, of the ranks, before the four."""
    text = content(name).decode()
    text = text.replace(
        "   Operation                     Max ",
        "   Operation     per Rank: Max            Min           Mean      per Iteration: Max ",
    )
    return re.sub(
        r"^(   (?:File|Tree) \w+ +)(?=\d)",
        r"\g<1>   5112.001       31.002      399.003         ",
        text,
        flags=re.MULTILINE,
    ).encode()


def test_of_rank_statistics_only_the_last_four_columns_are_read() -> None:
    data = with_rank_statistics(FOUR)
    assert data.count(b"5112.001") == 6
    assert parse(data) == parse(content(FOUR))


def test_more_columns_than_the_heading_are_refused() -> None:
    row = "9599.164       6998.259"
    refused_at(changed(FOUR, (row, f"{row}       1.000")), "bad_row", "File creation")
    data = with_rank_statistics(FOUR).replace(
        b"per Rank: Max            Min           Mean      per Iteration:", b""
    )
    refused_at(data, "bad_row", "File creation")


def test_a_row_without_its_heading_is_refused() -> None:
    text = content(FOUR).decode()
    refused_at(text.replace("   Operation", "   0peration").encode(), "unknown_columns", "File creation")
    refused_at(
        text.replace("Max            Min", "Min            Max").encode(), "unknown_columns", "Operation"
    )


@pytest.mark.parametrize(
    "heading", ["SUMMARY: (of 3 iterations)", "SUMMARY rate (in ops/sec): (of 3 iterations)"]
)
def test_every_heading_of_a_table_of_rates_is_known(heading: str) -> None:
    assert parse(changed(FOUR, ("SUMMARY rate: (of 3 iterations)", heading))) == parse(content(FOUR))


def test_an_unknown_heading_is_refused() -> None:
    refused_at(changed(FOUR, ("SUMMARY rate:", "SUMMARY pace:")), "unknown_columns", "SUMMARY pace")


@pytest.mark.parametrize(
    "heading", ["SUMMARY time:", "SUMMARY time (in ops/sec):", "SUMMARY time (in ms/op):", "SUMMARY:"]
)
def test_a_table_of_times_alone_is_refused_with_advice(heading: str) -> None:
    data = changed(FOUR, ("SUMMARY rate:", heading), ("'-u'", "'-u' '-Z'"))
    assert "without -Z" in refused_at(data, "no_results", "SUMMARY").detail


def test_the_table_of_times_is_passed_over() -> None:
    text = content(BOTH_TABLES).decode()
    rates = text[: text.index("\nSUMMARY time")] + text[text.index("-- finished") :]
    assert parse(rates.encode()) == parse(text.encode())


def test_directories_alone_are_refused() -> None:
    text = content("mdtest-4.0-dirs-and-files.txt").decode()
    data = re.sub(r"^   File .*\n", "", text, flags=re.MULTILINE).encode()
    assert "on files" in refused_at(data, "no_results", "SUMMARY").detail


@pytest.mark.parametrize(
    "bad", ["-1561.634", "1561,634", "1.561e3", "nan", "inf", "1561.634x", "1561634000000000.000"]
)
def test_a_rate_that_is_no_plain_number_is_refused(bad: str) -> None:
    refused_at(changed(FOUR, ("1561.634", bad)), "bad_number", "File creation")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (FOUR, "14341.952", "94341.952"),
        (FOUR, "14341.952", "14431.952"),
        (FOUR, "1561.634", "1661.634"),
        (FOUR, "1561.634", "0.000"),
        (FOUR, "9599.164", "9599.264"),
        (FOUR, "6998.259", "6998.359"),
        (FOUR, "9599.164", "959.916"),
        (FOUR, "(of 3 iterations)", "(of 2 iterations)"),
        (FOUR, "(of 3 iterations)", "(of 1 iterations)"),
        (TWO_NODES, "982.808", "982.818"),
        (TWO_NODES, "771.177", "771.187"),
        (ONCE, "958.771        958.771        958.771", "958.771        958.771        958.671"),
        (OLD, "1976.454", "1996.454"),
        (OLD, "1970.715", "1971.715"),
        (BY_RANK, "1477.112", "7477.112"),
        (BY_RANK, "910.714", "1910.714"),
        (BY_RANK, "246.940", "746.940"),
        (BY_RANK, "(of 3 iterations)", "(of 1 iterations)"),
    ],
)  # fmt: skip
def test_statistics_that_cannot_be_together_are_refused(name: str, old: str, new: str) -> None:
    error = refused(changed(name, (old, new)))
    assert error.code == "inconsistent_summary", error.detail
    assert error.line is not None


@pytest.mark.parametrize("version", ["3.4.0+dev", "3.2.0", "3.3.0rc1"])
def test_a_development_build_may_count_as_either_neighbour_does(version: str) -> None:
    assert measurements(changed(FOUR, ("mdtest-4.0.0", f"mdtest-{version}")))
    assert measurements(changed(BY_RANK, ("mdtest-3.3.0", f"mdtest-{version}")))


def test_a_deviation_of_one_iteration_may_be_nan() -> None:
    row = "958.771        958.771        958.771          "
    assert measurements(changed(ONCE, (f"{row}0.000", f"{row}-nan"))) == measurements(content(ONCE))


@pytest.mark.parametrize("count", ["0", "100001", "999999999999"])
def test_an_absurd_count_of_iterations_is_refused(count: str) -> None:
    refused_at(changed(FOUR, ("(of 3 iter", f"(of {count} iter")), "bad_number", "SUMMARY")


def test_a_row_twice_is_refused() -> None:
    text = content(FOUR).decode()
    row = next(line for line in text.splitlines() if "File creation" in line)
    refused_at(text.replace(row, f"{row}\n{row}").encode(), "duplicate_row", "File creation")


# Who took part


def test_even_nodes_are_known_from_the_map_of_the_tasks() -> None:
    assert create(content(TWO_NODES)).ranks_per_node == 4
    assert create(changed(TWO_NODES, ("Nodemap: 11110000\n", ""))).ranks_per_node is None
    assert create(content(OLD)).ranks_per_node == 4  # all of them on the only node


def test_uneven_nodes_are_doubted() -> None:
    record = parse(changed(TWO_NODES, ("Nodemap: 11110000", "Nodemap: 11111000")))
    assert DoubtCode.UNEVEN_NODES in codes(record)
    assert record.measurements is not None
    assert {each.ranks_per_node for each in record.measurements} == {None}


@pytest.mark.parametrize("shown", ["1111000", "1111000000", "1111x000", ""])
def test_a_map_of_other_length_says_nothing(shown: str) -> None:
    made = create(changed(TWO_NODES, ("Nodemap: 11110000", f"Nodemap: {shown}")))
    assert (made.nodes, made.ranks_per_node) == (2, None)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (FOUR, "Nodemap: 1111", "Nodemap: 1101"),
        (FOUR, "on 1 node(s)", "on 2 node(s)"),
        (TWO_NODES, "Nodemap: 11110000", "Nodemap: 11111111"),
        (FOUR, "4 tasks, 2000 files", "9 tasks, 2000 files"),
        (FOUR, "4 tasks, 2000 files", "2 tasks, 2000 files"),
        (FOUR, "4 tasks, 2000 files", "4 tasks, 2500 files"),
        (FOUR, "with 4 total", "with 8 total"),
    ],
)
def test_a_set_up_that_contradicts_itself_is_refused(name: str, old: str, new: str) -> None:
    assert refused(changed(name, (old, new))).code == "contradictory_setup"


@pytest.mark.parametrize(
    "launch", ["4 total task(s) on 0 node(s)", "4 total task(s) on 5 node(s)", "0 total task(s) on 0 node(s)"]
)
def test_impossible_counts_are_refused(launch: str) -> None:
    refused_at(changed(FOUR, ("4 total task(s) on 1 node(s)", launch)), "bad_number", "launched")


def test_a_damaged_launch_line_is_refused() -> None:
    refused_at(changed(FOUR, ("4 total task(s)", "4x total task(s)")), "bad_row", "launched")


def test_the_plural_of_old_releases_is_read() -> None:
    data = changed(OLD, ("4 total task(s) on 1 node(s)", "4 total task(s) on 1 nodes"))
    assert measurements(data) == measurements(content(OLD))


def several_counts(nodes: int) -> bytes:
    """Return a run over two counts of tasks (-f 2 -l 4 -s 2), each with a table of its own."""
    text = content(FOUR).decode()
    start, end = text.index("4 tasks, 2000"), text.index("-- finished")
    few = text[start:end].replace("4 tasks, 2000", "2 tasks, 1000")
    text = text[:start] + few + text[start:]
    text = text.replace("'-u'", "'-u' '-f' '2' '-l' '4' '-s' '2'")
    if nodes == 2:
        text = text.replace("on 1 node(s)", "on 2 node(s)").replace("Nodemap: 1111", "Nodemap: 1100")
    return text.encode()


def test_each_count_of_tasks_is_a_test() -> None:
    made = measurements(several_counts(1))
    assert [(each.test, each.ranks, each.nodes, each.ranks_per_node) for each in made] == [
        *[(0, 2, 1, 2)] * 4,
        *[(1, 4, 1, 4)] * 4,
    ]


def test_on_which_nodes_fewer_tasks_ran_is_not_known() -> None:
    record = parse(several_counts(2))
    assert record.measurements is not None
    assert [(each.nodes, each.ranks_per_node) for each in record.measurements] == [
        *[(None, None)] * 4,
        *[(2, 2)] * 4,
    ]
    about = {doubt.measurement for doubt in record.doubts if doubt.code is DoubtCode.UNKNOWN_TOPOLOGY}
    assert about == {0, 1, 2, 3}


# What a file makes one doubt


@pytest.mark.parametrize(
    ("options", "fsync", "doubted"),
    [
        ("'-w' '1024'", False, True),
        ("'-w=1024'", False, True),
        ("'-w1024'", False, True),
        ("'-w' '1k'", False, True),
        ("-Fw 1024", False, True),
        ("'-w' '0'", False, False),
        ("'-u'", False, False),
        ("'-w' '1024' '-y'", True, False),
        ("'-w' '1024' '-uy'", True, False),
        ("'-w' '1024' '-Y'", True, False),
        ("'-w' '1024' '-d' '-y'", False, True),
        ("'-w' '1024' --longy", False, True),
    ],
)
def test_files_written_without_sync_are_doubted(options: str, fsync: bool, doubted: bool) -> None:
    record = parse(changed(TWO_NODES, ("'-w' '1024'", options)))
    assert record.measurements is not None
    assert [each.fsync for each in record.measurements] == [fsync, None, None, None]
    about = [doubt.measurement for doubt in record.doubts if doubt.code is DoubtCode.NO_FSYNC]
    assert about == ([0] if doubted else [])


def test_a_create_alone_names_itself_where_it_was_not_synced() -> None:
    # Of a create rate the judgement counts it only then.
    record = parse(changed(ONCE, ("'-u'", "'-u' '-w' '4096'")))
    assert [each.measurement for each in record.doubts if each.code is DoubtCode.NO_FSYNC] == [0]


def test_a_lost_command_line_leaves_the_flags_unknown() -> None:
    record = parse(re.sub(rb"Command line.*\n", b"", content(TWO_NODES)))
    assert {DoubtCode.FSYNC_UNKNOWN, DoubtCode.CACHED_READ} <= codes(record)
    assert record.measurements is not None
    assert record.measurements[0].fsync is None


def test_a_lone_quote_in_a_path_loses_no_other_option() -> None:
    record = parse(changed(TWO_NODES, ("'/mnt/ckpt/md'", "'/mnt/it's/md'")))
    assert DoubtCode.NO_FSYNC in codes(record)


def test_a_read_by_one_node_is_doubted() -> None:
    record = parse(content(FOUR))
    assert [each.measurement for each in record.doubts if each.code is DoubtCode.CACHED_READ] == [2]


@pytest.mark.parametrize(("options", "doubted"), [("'-N' '4'", False), ("'-N' '0'", True), ("'-u'", True)])
def test_a_read_of_own_files_on_several_nodes_is_doubted(options: str, doubted: bool) -> None:
    record = parse(changed(TWO_NODES, ("'-u'", options)))
    assert (DoubtCode.CACHED_READ in codes(record)) is doubted


def test_a_read_that_only_opens_is_doubted_where_mdtest_warns() -> None:
    record = parse(content(FOUR))
    (warning,) = (each for each in record.doubts if each.code is DoubtCode.IOR_WARNING)
    assert warning.measurement == 2
    assert "opened and closed" in warning.message
    assert DoubtCode.IOR_WARNING not in codes(parse(content(TWO_NODES)))


def test_a_dirty_start_directory_is_doubted() -> None:
    (warning,) = (each for each in parse(content(STONEWALL)).doubts if each.code is DoubtCode.IOR_WARNING)
    assert warning.measurement is None
    assert "4 lines" in warning.message


def test_a_stonewall_is_doubted_of_the_creation() -> None:
    met = next(each for each in parse(content(STONEWALL)).doubts if each.code is DoubtCode.STONEWALLED)
    assert "ended the creation" in met.message
    not_met = next(each for each in parse(content(IO500)).doubts if each.code is DoubtCode.STONEWALLED)
    assert "may be fewer" in not_met.message
    record = parse(changed(FOUR, ("'-u'", "'-u' '-W' '30'")))
    assert [each.measurement for each in record.doubts if each.code is DoubtCode.STONEWALLED] == [0]
    assert DoubtCode.STONEWALLED not in codes(parse(changed(FOUR, ("'-u'", "'-u' '-W' '0'"))))


def test_files_that_could_not_be_made_void_the_run() -> None:
    failed = "WARNING: unable to create file /mnt/ckpt/md/test-dir.0-0/file.mdtest.0.7\n"
    record = parse(changed(FOUR, ("4 tasks, 2000 files\n", "4 tasks, 2000 files\n" + failed)))
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: verifying the data on read (12 errors)! Take care!",
        "ERROR: verifying the data read! Take care!",
    ],
)
def test_wrong_data_voids_the_run(said: str) -> None:
    record = parse(changed(FOUR, ("-- finished", f"\n{said}\n-- finished")))
    assert DoubtCode.DATA_VERIFICATION_FAILED in codes(record)


def test_any_other_warning_is_told() -> None:
    record = parse(changed(TWO_NODES, ("Nodemap", "ior WARNING: something odd.\nNodemap")))
    (warning,) = (each for each in record.doubts if each.code is DoubtCode.IOR_WARNING)
    assert "line 7" in warning.message


def test_few_and_unlike_iterations_are_doubted() -> None:
    record = parse(content(TWO_NODES))
    assert {DoubtCode.FEW_REPETITIONS, DoubtCode.WIDE_SPREAD} <= codes(record)
    assert DoubtCode.FEW_REPETITIONS not in codes(parse(content(FOUR)))


def test_a_back_end_that_does_nothing_is_refused() -> None:
    refused_at(changed(FOUR, ("'-u'", "'-u' '-a' 'DUMMY'")), "no_io", "Command line")


def test_tasks_that_open_the_same_files_are_refused() -> None:
    refused_at(changed(FOUR, ("'-u'", "'-S'")), "shared_files", "Command line")


def test_the_back_end_is_told_where_it_is_given() -> None:
    assert create(content(IO500)).api == "POSIX"
    assert create(content(FOUR)).api is None


# Whole, cut, several


def test_an_end_mark_is_missed() -> None:
    record = parse(re.sub(rb"-- finished.*\n", b"", content(FOUR)))
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_within_io500_the_end_mark_may_be_missing() -> None:
    data = re.sub(rb"-- finished.*\n", b"", content(IO500))
    assert parse(data) == parse(content(IO500))


def test_rows_of_a_table_that_was_cut_are_kept_and_doubted() -> None:
    text = content(FOUR).decode()
    for stop, rows in (("File read ", 2), ("27.379", 2), ("3284.104", 3), ("Tree removal", 4)):
        record = parse(text[: text.index(stop, text.index("File read") - 3)].encode())
        assert record.measurements is not None
        assert len(record.measurements) == rows
        assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_a_row_that_was_cut_within_the_file_is_refused() -> None:
    refused_at(changed(FOUR, ("      9599.164       6998.259", "")), "bad_row", "File creation")


def test_a_row_cut_short_by_a_kill_may_be_followed_by_the_launcher_s_words() -> None:
    text = content(FOUR).decode()
    data = text[: text.index("33284")]
    record = parse(
        (data + "\n" + "-" * 40 + "\nmpirun noticed that process rank 0 exited on signal 9\n").encode()
    )
    assert record.measurements is not None
    assert [each.operation for each in record.measurements] == [
        Operation.FILE_CREATE,
        Operation.FILE_STAT,
        Operation.FILE_READ,
    ]
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_a_row_that_is_missing_is_doubted() -> None:
    record = parse(re.sub(rb"   File stat.*\n", b"", content(FOUR)))
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_several_runs_are_all_read() -> None:
    record = parse(content(FOUR) + content(BY_RANK) + content(ONCE))
    assert record.measurements is not None
    assert [each.run for each in record.measurements] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert DoubtCode.SEVERAL_RUNS in codes(record)
    assert DoubtCode.INCOMPLETE_RUN not in codes(record)


def test_a_killed_run_beside_a_whole_one_is_told() -> None:
    record = parse(content(FOUR) + content("mdtest-4.0-killed.txt"))
    assert record.measurements is not None
    assert len(record.measurements) == 4
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_a_run_that_aborted_is_refused_with_the_line_that_says_why() -> None:
    why = "11/29/2026 16:39:40: Process 3: FAILED in create_file, unable to open file: Permission denied"
    error = refused_at(
        content("mdtest-4.0-killed.txt") + f"{why}\nmpirun aborted\n".encode(), "no_results", "FAILED in"
    )
    assert "before its SUMMARY" in error.detail


def test_the_text_around_a_run_is_passed_over() -> None:
    before = "Welcome to node01\nSLURM_JOB_ID=7\n+ mpirun -np 4 mdtest -F\nWARNING: no route\n"
    after = "\nJob 7 finished\nFile creation 1 2 3 4\nERROR: none\n"
    data = before.encode() + content(FOUR) + after.encode()
    assert parse(data).measurements == parse(content(FOUR)).measurements


@pytest.mark.parametrize(
    "prefix", ["[1,3]<stdout>:", "3: ", "[3] ", "2026-11-29T10:00:07Z node01 ", "> ", "   "]
)
def test_a_prefix_on_every_line_is_passed_over(prefix: str) -> None:
    lines = content(TWO_NODES).decode().splitlines()
    marked = "\n".join(prefix.replace("3", str(at % 7)) + line for at, line in enumerate(lines))
    assert parse(marked.encode()) == parse(content(TWO_NODES))


def test_the_head_of_a_verbose_line_is_passed_over() -> None:
    text = content(FOUR).decode()
    marked = re.sub(r"^(?=4 tasks|SUMMARY|   File)", "V-0: Rank   0 Line  2594 ", text, flags=re.MULTILINE)
    assert marked.count("V-0") == 6
    assert parse(marked.encode()) == parse(text.encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encoding_and_line_ends_change_nothing(encoding: str, end: str) -> None:
    data = content(TWO_NODES).decode().replace("\n", end).encode(encoding)
    assert parse(data) == parse(content(TWO_NODES))


# Damage


NUMBERS = re.compile(r"(?<![\w.])\d+\.\d{3}(?![\w.])")


@pytest.mark.parametrize("name", [ONCE, TWO_NODES, FOUR, OLD, IO500])
def test_a_digit_changed_in_a_table_never_gives_another_rate(name: str) -> None:
    """A larger or smaller rate by more than the digits printed shows in the other three figures."""
    text = content(name).decode()
    truth = {(each.test, each.operation): each.per_second for each in measurements(text.encode())}
    rng = random.Random(name)  # noqa: S311 - the same mutations each time
    rows = [row for row in re.finditer(r"^ +File \w+ .*$", text, re.MULTILINE) if "0.000   " not in row[0]]
    for _ in range(300):
        row = rng.choice(rows)
        at = rng.choice([place for place in range(row.start(), row.end()) if text[place].isdigit()])
        digit = rng.choice("0123456789")
        made = outcome((text[:at] + digit + text[at + 1 :]).encode())
        if isinstance(made, UnreadableDocument):
            continue
        assert made.measurements is not None
        for each in made.measurements:
            assert each.per_second is not None
            known = truth[each.test, each.operation]
            assert known is not None
            # Of three values or fewer all is checked, to what the digits of the deviation tell.
            assert each.per_second.mean == pytest.approx(known.mean, rel=2e-3, abs=0.02)
            assert each.per_second.min == pytest.approx(known.min, rel=2e-3, abs=0.02)
            assert each.per_second.max == pytest.approx(known.max, rel=2e-3, abs=0.02)


def test_a_cut_file_gives_true_rates_with_a_doubt_or_none() -> None:
    data = content(FOUR)
    truth = {each.operation: each.per_second for each in measurements(data)}
    whole = data.rindex(b" --")
    for stop in range(0, whole - len("finished at 11/29/2026 16:38:01"), 7):
        made = outcome(data[:stop])
        if isinstance(made, Record):
            assert DoubtCode.INCOMPLETE_RUN in codes(made)
            assert all(truth[each.operation] == each.per_second for each in made.measurements or [])
