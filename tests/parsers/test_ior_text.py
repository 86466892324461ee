"""IOR's text output: the labelled files, and what can befall others of their kind."""

import re

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import parse, without_environment
from tests.parsers.manifest import MIB_PER_GB, Entry, check, codes, content, entries, outcome, refused

TWO_NODES = "ior-4.0-posix-fpp-2nodes-write-read-3reps.txt"
IO500 = "io500-sc25dev-debug-ior-easy-write.txt"


def changed(name: str, *changes: tuple[str, str]) -> bytes:
    """Return a labelled file with strings replaced, each of which must be there."""
    text = content(name).decode()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text.encode()


def lines_of(name: str) -> list[str]:
    return content(name).decode().splitlines()


def measurements(record: Record) -> list[Measurement]:
    assert record.measurements is not None
    return record.measurements


@pytest.mark.parametrize("entry", entries("text"))
def test_a_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    absent: tuple[str, ...] = ()
    if entry["tool_version"].startswith(("2.", "3.0", "3.1", "3.2")):
        absent = ("nodes", "ranks_per_node")  # these releases do not print the nodes
    if entry["tool_version"].startswith("2."):
        absent += ("segments",)
    if "script" in entry["file"]:
        absent += ("fsync",)
    check(entry, absent=absent)


def test_the_version_is_the_banner_s() -> None:
    assert parse(content("ior-3.0-posix-fpp-write-read-3reps.txt")).tool_version == "3.0.1"


def test_the_name_of_the_format_is_the_register_s() -> None:
    assert parse(content(TWO_NODES)).format == "ior-text"


def test_figures_of_ior_2_10_come_from_its_table_and_single_rates_stay_unknown() -> None:
    write, read = measurements(parse(content("ior-2.10-posix-fpp-write-read-3reps.txt")))
    assert [each.gb_per_second for each in write.repetitions] == [None] * 3
    assert write.gb_per_second is not None
    assert write.gb_per_second.median is None
    assert write.total_seconds is not None
    assert write.total_seconds.max == pytest.approx(134217728 / (1332.19 * 2**20))
    assert read.reordered is True


def test_a_row_without_decimals_leaves_the_spread_to_the_summary() -> None:
    read = measurements(parse(content("ior-3.0-posix-fpp-write-read-3reps.txt")))[1]
    assert read.gb_per_second is not None
    assert read.gb_per_second.max == pytest.approx(25075.78 / MIB_PER_GB)
    assert read.repetitions[2].gb_per_second == pytest.approx(25076 / MIB_PER_GB)


@pytest.mark.parametrize(
    "prefix", ["[1,3]<stdout>:", "3: ", "[3] ", "2026-11-29T10:00:07Z node01 ", "> ", "   "]
)
def test_a_prefix_on_every_line_is_passed_over(prefix: str) -> None:
    plain = parse(content(TWO_NODES))
    marked = "\n".join(prefix.replace("3", str(at % 7)) + line for at, line in enumerate(lines_of(TWO_NODES)))
    assert parse(marked.encode()).measurements == plain.measurements


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "\r"])
def test_encoding_and_line_ends_change_nothing(encoding: str, end: str) -> None:
    data = content(TWO_NODES).decode().replace("\n", end).encode(encoding)
    assert parse(data) == parse(content(TWO_NODES))


def test_a_log_in_latin_1_is_read() -> None:
    assert parse("Zugriff gewährt für Zoë\n".encode("latin-1") + content(TWO_NODES)) == parse(
        content(TWO_NODES)
    )


def test_blank_lines_and_dumps_between_rows_are_passed_over() -> None:
    noise = "\n\nhints passed to MPI_File_open() {\n\tcb_nodes = 2\n}\nhints returned {\n\tromio = x\n}\n\n"
    lines = lines_of(TWO_NODES)
    at = next(number for number, line in enumerate(lines) if line.startswith("read"))
    data = "\n".join([*lines[:at], noise, *lines[at:]]).encode()
    assert parse(data) == parse(content(TWO_NODES))


def test_a_sentence_that_begins_with_read_is_no_row() -> None:
    lines = lines_of(TWO_NODES)
    at = next(number for number, line in enumerate(lines) if line.startswith("read"))
    data = "\n".join([*lines[:at], "read ahead is switched off here", *lines[at:]]).encode()
    assert parse(data) == parse(content(TWO_NODES))


def test_lost_tabs_in_the_set_up_of_an_old_release_do_no_harm() -> None:
    name = "ior-3.0-posix-fpp-write-read-3reps.txt"
    assert parse(content(name).replace(b"\t", b"")) == parse(content(name))


def test_a_version_behind_the_api_is_dropped() -> None:
    name = "ior-3.0-posix-fpp-write-read-3reps.txt"
    data = changed(
        name, ("api                = POSIX", "api                = MPIIO (version=3, subversion=1)")
    )
    data = data.replace(b"134217728 POSIX 0", b"134217728 MPIIO (version=3, subversion=1) 0")
    assert {each.api for each in measurements(parse(data))} == {"MPIIO"}


def test_a_table_printed_twice_counts_once() -> None:
    text = content(TWO_NODES).decode()
    table = text[text.index("\nSummary of all tests:") : text.index("Finished")]
    assert parse(text.replace("Finished", table + "Finished").encode()) == parse(content(TWO_NODES))


def test_two_tables_that_differ_are_refused() -> None:
    text = content(TWO_NODES).decode()
    table = text[text.index("\nSummary of all tests:") : text.index("Finished")].replace("346.98", "345.98")
    assert refused(text.replace("Finished", table + "Finished").encode()).code == "inconsistent_summary"


# What a file makes one doubt


def test_a_write_without_fsync_is_doubted() -> None:
    record = parse(changed(TWO_NODES, (" -e ", " ")))
    assert measurements(record)[0].fsync is False
    assert DoubtCode.NO_FSYNC in codes(record)


@pytest.mark.parametrize("option", ["-Y", "-O fsync=1", "-O summaryFormat=default,fsync=1", "-Fe"])
def test_other_ways_to_ask_for_fsync_are_known(option: str) -> None:
    record = parse(changed(TWO_NODES, (" -e ", f" {option} ")))
    assert measurements(record)[0].fsync is True


def test_an_e_within_another_option_s_value_asks_for_nothing() -> None:
    assert measurements(parse(changed(TWO_NODES, (" -F -e ", " -F -o -e "))))[0].fsync is False


def test_a_lost_command_line_leaves_fsync_unknown() -> None:
    data = re.sub(rb"Command line.*\n", b"", content(TWO_NODES))
    record = parse(data)
    assert measurements(record)[0].fsync is None
    assert DoubtCode.FSYNC_UNKNOWN in codes(record)


@pytest.mark.parametrize("before_banner", [True, False])
def test_a_back_end_without_fsync_is_doubted(before_banner: bool) -> None:
    warning = b"WARNING: fsync() only available in POSIX.  Using value of 0.\n"
    text = content(TWO_NODES)
    data = warning + text if before_banner else text.replace(b"Results:", warning + b"Results:")
    record = parse(data)
    assert {DoubtCode.FSYNC_IGNORED} == codes(record) & {DoubtCode.FSYNC_IGNORED, DoubtCode.NO_FSYNC}
    assert measurements(record)[0].fsync is False


def test_a_reordered_read_on_two_nodes_is_not_doubted() -> None:
    assert DoubtCode.CACHED_READ not in codes(parse(content(TWO_NODES)))


@pytest.mark.parametrize(
    "changes",
    [
        [
            ("constant task offset", "no tasks offsets"),
            ("1     1        1         0    0", "1     0        1         0    0"),
        ],
        [("nodes               : 2", "nodes               : 1")],
    ],
)
def test_a_read_that_memory_may_have_served_is_doubted(changes: list[tuple[str, str]]) -> None:
    doubts = [
        each for each in parse(changed(TWO_NODES, *changes)).doubts if each.code is DoubtCode.CACHED_READ
    ]
    assert [each.measurement for each in doubts] == [1]


def test_wrong_data_voids_every_measurement_of_the_test() -> None:
    warning = "WARNING: Incorrect data on read (256 errors found).\n"
    record = parse(changed(TWO_NODES, ("Summary of", warning + "Summary of")))
    assert DoubtCode.DATA_VERIFICATION_FAILED in codes(record)


def test_an_environment_dump_leaves_no_trace() -> None:
    dump = "STARTING ENVIRON LOOP\nTOKEN=s3cret\nX=WARNING: s3cret\nwrite 1 2 3\nENDING ENVIRON LOOP\n"
    data = changed(TWO_NODES, ("Results:", dump + "Results:"))
    record = parse(data)
    assert DoubtCode.ENVIRONMENT_REMOVED in codes(record)
    assert "s3cret" not in record.model_dump_json()
    assert record.measurements == parse(content(TWO_NODES)).measurements
    assert without_environment(data) == content(TWO_NODES)


def test_times_by_rank_give_the_slowest_and_a_straggler() -> None:
    times = []
    for rank in range(8):
        stop = 100.0 + (4.0 if rank == 5 else 1.0)
        times += [
            f"Test 0: Iter=0, Task={rank}, Time=100.000000, write open start",
            f"Test 0: Iter=0, Task={rank}, Time={stop:.6f}, write close stop",
        ]
    record = parse(changed(TWO_NODES, ("Summary of", "\n".join(times) + "\nSummary of")))
    first = measurements(record)[0].repetitions[0]
    assert (first.slowest_rank, first.slowest_rank_seconds) == (5, 4.0)
    assert first.mean_rank_seconds == pytest.approx(11 / 8)
    assert DoubtCode.STRAGGLER in codes(record)


def test_times_of_some_ranks_only_are_not_used() -> None:
    times = (
        "Test 0: Iter=0, Task=0, Time=100.0, write open start\nTest 0: Iter=0, Task=0, Time=104.0, write "
        "close stop\n"
    )
    first = measurements(parse(changed(TWO_NODES, ("Summary of", times + "Summary of"))))[0].repetitions[0]
    assert first.slowest_rank_seconds is None


def test_a_missing_repetition_is_an_incomplete_run() -> None:
    lines = [line for line in lines_of(TWO_NODES) if not line.startswith("write     312.24")]
    assert DoubtCode.INCOMPLETE_RUN in codes(parse("\n".join(lines).encode()))


def test_a_missing_end_mark_is_an_incomplete_run() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(content(TWO_NODES).partition(b"Finished")[0]))


def test_inside_io500_no_end_mark_is_expected() -> None:
    assert DoubtCode.INCOMPLETE_RUN not in codes(parse(content(IO500)))


def test_a_last_row_cut_off_is_dropped_with_a_doubt() -> None:
    name = "ior-4.0-killed-mid-run.txt"
    record = parse(content(name).rstrip()[:-12])
    assert len(measurements(record)[1].repetitions) == 18
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_a_stonewall_known_from_its_limit_alone_is_doubted() -> None:
    name = "ior-4.0-posix-fpp-stonewall-nowearout-write.txt"
    data = re.sub(rb"WARNING: .*\n", b"", content(name))
    record = parse(data)
    assert DoubtCode.STONEWALLED in codes(record)
    moved = [each.bytes for each in measurements(record)[0].repetitions]
    assert moved == pytest.approx([200278016, 79691776], rel=5e-3)


def test_a_set_up_that_lost_its_repetitions_is_an_incomplete_run() -> None:
    record = parse(changed(IO500, ("repetitions         : 1\n", "")))
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


# What is refused


def rejected_at(data: bytes, code: str, begins: str) -> None:
    """Check that a document is refused with a code, at the line that begins so."""
    error = refused(data)
    assert error.code == code, error.detail
    assert error.line is not None
    assert data.decode().splitlines()[error.line - 1].startswith(begins)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("58.15 ", "nan   ", "bad_number"),
        ("58.15 ", "inf   ", "bad_number"),
        ("58.15 ", "1e400 ", "bad_number"),
        ("58.15 ", "58,15 ", "bad_number"),
        ("58.15 ", "-58.15", "bad_number"),
        ("58.15 ", "0.00  ", "bad_number"),
        ("58.15 ", "5815  ", "inconsistent_row"),
        ("0.378637", "-0.37863", "bad_number"),
        ("4.40       0", "0.40       0", "inconsistent_row"),
        ("4.40       0", "44.0       0", "inconsistent_row"),
        ("14.54 ", "15.54 ", "inconsistent_row"),
        ("32768      4096       0.378637", "16384      4096       0.378637", "inconsistent_row"),
        ("4.40       0", "4.40", "bad_row"),
        ("4.40       0", "4.40       0 WARNING: x", "bad_row"),
    ],
)
def test_a_row_that_cannot_be_true_is_refused(old: str, new: str, code: str) -> None:
    text = content(TWO_NODES).decode()
    row = next(line for line in text.splitlines() if line.startswith("write     58.15"))
    assert old in row
    data = text.replace(row, row.replace(old, new, 1)).encode()
    rejected_at(data, code, "write")


def test_a_row_that_stands_twice_is_refused() -> None:
    lines = lines_of(TWO_NODES)
    at = next(number for number, line in enumerate(lines) if line.startswith("read"))
    rejected_at("\n".join([*lines[:at], lines[at], *lines[at:]]).encode(), "duplicate_row", "read")


def test_a_time_printed_as_zero_is_absent() -> None:
    record = parse(changed(TWO_NODES, ("0.378637", "0.000000")))
    assert measurements(record)[0].repetitions[0].open_seconds is None


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("346.98", "446.98", "inconsistent_summary"),
        ("167.64", "168.64", "inconsistent_summary"),
        ("1.86803", "2.86803", "inconsistent_summary"),
        ("33554432", "33554431", "contradictory_setup"),
        ("NA     0      8", "NA     0      9", "contradictory_setup"),
        ("NA     0      8", "NA     7      8", "inconsistent_summary"),
        ("256.0 POSIX", "256.0 MPIIO", "contradictory_setup"),
        ("256.0 POSIX", "256.0 DUMMY", "contradictory_setup"),
    ],
)
def test_a_summary_that_contradicts_the_rest_is_refused(old: str, new: str, code: str) -> None:
    text = content(TWO_NODES).decode()
    row = next(line for line in text.splitlines() if line.startswith("write         670.55"))
    rejected_at(text.replace(row, row.replace(old, new, 1)).encode(), code, "write")


def test_the_dummy_back_end_is_no_io() -> None:
    rejected_at(changed(TWO_NODES, ("POSIX", "DUMMY")), "no_io", "api")


def test_a_dry_run_is_no_io() -> None:
    assert refused(changed(TWO_NODES, (" -e ", " -e -O dryRun=1 "))).code == "no_io"


def test_a_heading_without_the_bandwidth_is_refused() -> None:
    rejected_at(changed(TWO_NODES, ("bw(MiB/s)", "bw(MiB/s)x")), "unknown_columns", "access")


def test_a_test_that_comes_twice_is_refused() -> None:
    text = content("ior-4.0-script-3tests.txt").decode()
    rejected_at(
        text.replace("TestID              : 1", "TestID              : 0").encode(),
        "duplicate_test",
        "TestID",
    )


def test_an_option_with_two_values_is_refused() -> None:
    data = changed(TWO_NODES, ("tasks               : 8", "tasks               : 8\ntasks               : 4"))
    rejected_at(data, "contradictory_setup", "tasks")


def test_csv_within_the_text_is_refused() -> None:
    heading = content("ior-4.0-posix-fpp-4nodes-write-only.csv").decode().splitlines()[0] + "\n"
    assert refused(changed(TWO_NODES, ("Finished", heading + "Finished"))).code == "mixed_formats"


def test_tests_of_an_old_script_are_one_run() -> None:
    text = content("ior-2.10-posix-fpp-write-read-3reps.txt").decode().replace("IOR -a", "IOR -f s.ior -a")
    begun, _, end = text.partition("Run finished")
    record = parse((begun + text).encode())
    assert end
    assert [(each.run, each.test, each.operation) for each in measurements(record)] == [
        (0, 0, Operation.WRITE),
        (0, 0, Operation.READ),
        (0, 1, Operation.WRITE),
        (0, 1, Operation.READ),
    ]
    assert DoubtCode.SEVERAL_RUNS not in codes(record)


@pytest.mark.parametrize("end", range(0, 2600, 13))
def test_a_cut_file_never_passes_as_whole(end: int) -> None:
    text = content(TWO_NODES)
    finished = text.index(b"Finished")
    made = outcome(text[: min(end, finished)])
    assert isinstance(made, UnreadableDocument) or DoubtCode.INCOMPLETE_RUN in codes(made)


OLD = "ior-2.10-posix-fpp-write-read-3reps.txt"


def test_columns_that_ior_2_10_adds_with_v_are_passed_over() -> None:
    text = content(OLD).decode()
    text = text.replace("Mean (s)  \n", "Mean (s)  Op grep #Tasks tPN\n").replace(
        "   EXCEL", " 4 4 3 1 EXCEL"
    )
    record = parse(text.encode())
    assert [each.gb_per_second for each in measurements(record)] == [
        each.gb_per_second for each in measurements(parse(content(OLD)))
    ]


def test_segments_of_ior_2_10_come_from_its_pattern() -> None:
    text = (
        content(OLD)
        .decode()
        .replace("\trepetitions", "\tpattern            = strided (4 segments)\n\trepetitions")
    )
    text = text.replace("blocksize          = 32 MiB", "blocksize          = 8 MiB")
    write = measurements(parse(text.encode()))[0]
    assert (write.segments, write.block_bytes, write.repetitions[0].bytes) == (4, 8 << 20, 134217728)


def test_a_stonewall_of_ior_2_10_leaves_the_bytes_unknown() -> None:
    warning = "WARNING: Using actual aggregate bytes moved = 100663296\n"
    record = parse(changed(OLD, ("\nOperation", f"\n{warning}\nOperation")))
    write = measurements(record)[0]
    assert {each.bytes for each in write.repetitions} == {None}
    assert write.total_seconds is None
    assert DoubtCode.STONEWALLED in codes(record)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("1455.82", "1555.82", "inconsistent_summary"),
        ("1373.83", "1473.83", "inconsistent_summary"),
        ("0.09333", "0.19333", "inconsistent_summary"),
        ("1455.82", "-1455.82", "bad_number"),
    ],
)
def test_a_table_of_ior_2_10_that_cannot_be_true_is_refused(old: str, new: str, code: str) -> None:
    text = content(OLD).decode()
    row = next(line for line in text.splitlines() if line.startswith("write"))
    rejected_at(text.replace(row, row.replace(old, new, 1)).encode(), code, "write")


def test_a_warning_before_the_banner_is_ior_s() -> None:
    warning = b"WARNING: More tasks requested (16) than available (8), running with 8 tasks.\n"
    assert DoubtCode.IOR_WARNING in codes(parse(warning + content(TWO_NODES)))


def test_rows_lost_from_under_a_summary_are_an_incomplete_run() -> None:
    lines = [
        line for line in lines_of(TWO_NODES) if not re.match(r"(write|read) +\S+ +\S+ +\S+ +32768", line)
    ]
    record = parse("\n".join(lines).encode())
    assert DoubtCode.INCOMPLETE_RUN in codes(record)
    assert {each.gb_per_second for write in measurements(record) for each in write.repetitions} == {None}


def test_a_table_of_nan_alone_has_no_results() -> None:
    data = re.sub(rb"(?m)^(write|read) +[\d.]+ +[\d.]+ +[\d.]+", rb"\1 nan nan nan", content(OLD))
    assert refused(data).code == "no_results"
    assert refused(data.replace(b"nan", b"0.00")).code == "bad_number"


def test_a_row_without_its_total_hides_no_long_save() -> None:
    text = content("ior-4.0-posix-fpp-write-read-2reps.txt").decode()
    changed = re.sub(r"(?m)^(write\s+75\.91 .*?)3\.37(\s+0\s*)$", r"\g<1>0.000000\2", text)
    assert changed != text
    assert refused(changed.encode()).code == "inconsistent_row"


def test_a_run_that_lost_its_banner_is_not_passed_over() -> None:
    text = content("ior-4.0-two-runs-appended.txt").decode()
    second = text.rindex("IOR-4.0.0:")
    for changed in (text[:second] + text[second + 4 :], text[4:]):
        error = refused(changed.encode())
        assert error.code == "bad_structure"
        assert error.line is not None


def test_csv_behind_text_is_not_passed_over() -> None:
    text, csv = (
        content("ior-4.0-posix-fpp-write-read-2reps.txt"),
        content("ior-4.0-posix-fpp-4nodes-write-only.csv"),
    )
    assert refused(text + csv).code == "bad_structure"
