"""IOR's JSON output: the labelled files, what can be put right in others, and what cannot."""

import json
import re
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Record
from service.parsers.register import parse, without_environment
from tests.parsers.manifest import Entry, check, codes, content, entries, outcome, refused

TWO_NODES = "ior-4.0-posix-fpp-2nodes-write-read-3reps.json"
NESTED = "ior-3.3-posix-fpp-write-read-3reps.json"
STONEWALLED = "ior-4.0-stonewall-wearout-summaryfile.json"


def value(name: str = TWO_NODES) -> Any:  # noqa: ANN401 - whatever JSON holds
    return json.loads(content(name))


def dumped(made: object) -> bytes:
    return json.dumps(made, indent=2).encode()


def measurements(record: Record) -> list[Measurement]:
    assert record.measurements is not None
    return record.measurements


@pytest.mark.parametrize("entry", entries("json"))
def test_a_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    if entry["file"] == "ior-4.0-json-stdout-verbose2.json":
        # The manifest allows both; a stray bracket leaves no certainty, so it is refused by its line.
        error = refused(content(entry["file"]))
        assert (error.code, error.line) == ("not_json", 150)
        return
    check(entry)


def test_the_version_and_format_are_told() -> None:
    record = parse(content(NESTED))
    assert (record.tool_version, record.format) == ("3.3.0", "ior-json")


def test_reordered_comes_from_the_parameters() -> None:
    assert [each.reordered for each in measurements(parse(content(TWO_NODES)))] == [True, True]


def test_the_layout_of_the_json_does_not_matter() -> None:
    plain = parse(content(TWO_NODES))
    assert parse(json.dumps(value(), separators=(",", ":")).encode()) == plain
    assert parse(json.dumps(value(), separators=(" , ", " : ")).encode()) == plain
    assert parse(content(TWO_NODES).replace(b"\n", b"\r\n")) == plain
    assert parse(b"\xef\xbb\xbf" + content(TWO_NODES)) == plain
    assert parse(content(TWO_NODES).decode().encode("utf-16")) == plain


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "2026-11-29T10:00:07Z "])
def test_a_prefix_on_every_line_is_passed_over(prefix: str) -> None:
    data = "\n".join(prefix + line for line in content(TWO_NODES).decode().splitlines()).encode()
    assert parse(data).measurements == parse(content(TWO_NODES)).measurements


# What is put right


def test_a_job_s_lines_around_the_json_are_dropped_with_a_doubt() -> None:
    data = b"Loading openmpi/4.1.4\n+ mpirun ior\n" + content(TWO_NODES) + b"+ rc=0\nJob finished\n"
    record = parse(data)
    assert record.measurements == parse(content(TWO_NODES)).measurements
    assert DoubtCode.MIXED_LOG_LINES in codes(record)


def test_a_line_that_is_no_known_log_line_is_not_dropped() -> None:
    data = content(TWO_NODES).replace(b'    "Results": [', b'    "Results": [\nsome other text')
    error = refused(data)
    assert error.code == "not_json"
    assert error.line is not None
    assert data.splitlines()[error.line - 1] == b"some other text"


def test_bytes_stated_in_log_lines_are_taken_for_the_row_they_fit() -> None:
    lines = b"".join(
        b"WARNING: Expected aggregate file size       = 17179869184\n"
        b"WARNING: Using actual aggregate bytes moved = %d\n" % moved
        for moved in (549453824, 390070272)
    )
    record = parse(content(STONEWALLED).replace(b'    "Results": [\n', b'    "Results": [\n' + lines))
    assert [each.bytes for each in measurements(record)[0].repetitions] == [390070272, 549453824]


@pytest.mark.parametrize("path", [r"/mnt/run\d1", r"/mnt/run\n1", '/mnt/a "quoted" run', "/mnt/a\tb"])
def test_a_path_that_ior_does_not_escape_is_put_right_with_a_doubt(path: str) -> None:
    text = content(TWO_NODES).decode().replace("/mnt/ckpt/testfile", path)
    record = parse(text.encode())
    assert record.measurements == parse(content(TWO_NODES)).measurements
    # A backslash before an n happens to be valid JSON.
    assert (DoubtCode.INVALID_JSON_STRING in codes(record)) is (path != r"/mnt/run\n1")


def test_an_end_cut_off_leaves_the_finished_repetitions_with_a_doubt() -> None:
    text = content(TWO_NODES)
    record = parse(text[: text.index(b'"summary"')])
    assert DoubtCode.INCOMPLETE_RUN in codes(record)
    assert [len(each.repetitions) for each in measurements(record)] == [3, 3]
    last = text.index(b"}", text.rindex(b'"totalTime"'))
    record = parse(text[:last])
    assert DoubtCode.INCOMPLETE_RUN in codes(record)
    assert [len(each.repetitions) for each in measurements(record)] == [3, 2]


def test_two_runs_after_each_other_are_both_read() -> None:
    record = parse(content(TWO_NODES) + content(NESTED))
    assert [each.run for each in measurements(record)] == [0, 0, 1, 1]
    assert {DoubtCode.SEVERAL_RUNS} <= codes(record)
    assert DoubtCode.MIXED_LOG_LINES not in codes(record)


def test_a_killed_run_before_a_whole_one_is_doubted_alone() -> None:
    record = parse(content("ior-4.0-killed-mid-run.json") + content(TWO_NODES))
    doubts = [each.measurement for each in record.doubts if each.code is DoubtCode.INCOMPLETE_RUN]
    assert doubts == [0, 1]


def test_bare_nan_in_the_summary_is_unknown_with_a_doubt() -> None:
    made = value()
    made["tests"][0]["Parameters"]["maxTimeDuration"] = 1
    made["tests"][0]["Results"] = made["tests"][0]["Results"][:5]
    text = dumped(made).decode()
    text = re.sub(r'("(?:bw|OPs)(?:Max|Min|Mean)\w{0,3}": )[\d.]+', r"\1-nan", text)
    record = parse(text.encode())
    assert {DoubtCode.REPS_SKIPPED, DoubtCode.NAN_SUMMARY} <= codes(record)
    assert DoubtCode.INCOMPLETE_RUN not in codes(record)
    assert [len(each.repetitions) for each in measurements(record)] == [3, 2]


def test_keys_that_ior_3_3_repeats_may_repeat_only_with_equal_values() -> None:
    text = content(NESTED)
    first = text.rindex(b'"blockSize": 33554432')
    error = refused(text[:first] + text[first:].replace(b"33554432", b"33554431", 1))
    assert (error.code, error.pointer) == ("duplicate_key", "#/summary/1/blockSize")


def test_no_other_key_may_repeat() -> None:
    data = content(TWO_NODES).replace(b'"bwMiB": 517.2095, ', b'"bwMiB": 517.2095, "bwMiB": 517.2095, ')
    error = refused(data)
    assert (error.code, error.pointer) == ("duplicate_key", "#/tests/0/Results/0/bwMiB")


def test_an_environment_dump_leaves_no_trace() -> None:
    dump = b"STARTING ENVIRON LOOP\nTOKEN=s3cret\nENDING ENVIRON LOOP\n"
    data = content(TWO_NODES).replace(b'  "tests": [\n', b'  "tests": [\n' + dump)
    record = parse(data)
    assert DoubtCode.ENVIRONMENT_REMOVED in codes(record)
    assert "s3cret" not in record.model_dump_json()
    assert without_environment(data) == content(TWO_NODES)


def test_a_back_end_without_fsync_is_doubted() -> None:
    warning = b"WARNING: fsync() only available in POSIX.  Using value of 0.\n"
    record = parse(warning + content(TWO_NODES))
    assert DoubtCode.FSYNC_IGNORED in codes(record)
    assert measurements(record)[0].fsync is False


# What is refused


def test_the_json_of_ior_3_2_is_refused_with_advice() -> None:
    error = refused(content("ior-3.2-posix-fpp-write-read-3reps.json"))
    assert error.code == "unsupported_version"
    assert "text output" in error.detail
    headless = content("ior-3.2-posix-fpp-write-read-3reps.json").partition(b"\n")[2]
    assert refused(headless).code == "not_json"


@pytest.mark.parametrize(
    ("path", "new", "code"),
    [
        (("tests", 0, "Results", 0, "bwMiB"), 0, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), -1.5, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), "inf", "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), True, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), None, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), 1e30, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), 10**400, "bad_number"),
        (("tests", 0, "Results", 0, "bwMiB"), 617.2095, "inconsistent_row"),
        (("tests", 0, "Results", 0, "openTime"), -0.1, "bad_number"),
        (("tests", 0, "Results", 0, "openTime"), 9.1, "inconsistent_row"),
        (("tests", 0, "Results", 0, "totalTime"), 5.1, "inconsistent_row"),
        (("tests", 0, "Results", 0, "iops"), 229.3295, "inconsistent_row"),
        (("tests", 0, "Results", 0, "blockKiB"), 16384.0, "inconsistent_row"),
        (("tests", 0, "Results", 0), 7, "bad_structure"),
        (("tests", 0, "Results", 0), {"bwMiB": 1.0}, "bad_structure"),
        (("tests", 0, "Results"), {}, "bad_structure"),
        (("tests", 0, "Parameters"), [], "bad_structure"),
        (("tests", 0), [], "bad_structure"),
        (("tests",), {}, "bad_structure"),
        (("summary",), {}, "bad_structure"),
        (("summary", 0, "bwMeanMIB"), 500.0, "inconsistent_summary"),
        (("summary", 0, "OPsMean"), 500.0, "inconsistent_summary"),
        (("summary", 0, "MeanTime"), 1.5, "inconsistent_summary"),
        (("summary", 0, "TestID"), 9, "inconsistent_summary"),
        (("summary", 0, "operation"), None, "bad_structure"),
        (("tests", 0, "Options", "tasks"), 16, "contradictory_setup"),
        (("tests", 0, "Options", "tasks"), "8", "bad_number"),
        (("tests", 0, "Options", "nodes"), 1, "contradictory_setup"),
        (("tests", 0, "Options", "access"), "single-shared-file", "contradictory_setup"),
        (("tests", 0, "Options", "ordering inter file"), "no tasks offsets", "contradictory_setup"),
        (("tests", 0, "Options", "api"), "MPIIO", "contradictory_setup"),
        (("tests", 0, "Parameters", "api"), "DUMMY", "no_io"),
        (("tests", 0, "Parameters", "dryRun"), 1, "no_io"),
        (("tests", 0, "Parameters", "blockSize"), 2**80, "bad_number"),
    ],
)
def test_a_value_that_cannot_be_true_is_refused(path: tuple[str | int, ...], new: object, code: str) -> None:
    made = value()
    at = made
    for step in path[:-1]:
        at = at[step]
    assert path[-1] in at or isinstance(path[-1], int)
    at[path[-1]] = new
    error = refused(dumped(made))
    assert error.code == code, error.detail
    assert error.pointer is not None
    assert error.pointer.startswith("#/")


def test_a_result_more_than_asked_for_is_refused() -> None:
    made = value()
    made["tests"][0]["Results"].append(made["tests"][0]["Results"][0])
    assert refused(dumped(made)).code == "duplicate_row"


def test_a_result_less_than_asked_for_is_an_incomplete_run() -> None:
    made = value()
    del made["tests"][0]["Results"][2]
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(dumped(made)))


def test_nodes_of_zero_are_unknown() -> None:
    made = value()
    made["tests"][0]["Parameters"]["nodes"] = made["tests"][0]["Options"]["nodes"] = 0
    record = parse(dumped(made))
    assert measurements(record)[0].nodes is None
    assert DoubtCode.UNKNOWN_TOPOLOGY in codes(record)


def test_no_results_at_all_are_refused() -> None:
    made = value()
    made["tests"][0]["Results"], made["summary"] = [], []
    assert refused(dumped(made)).code == "no_results"


def test_text_and_json_of_two_runs_in_one_file_are_refused() -> None:
    text = content("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt")
    assert refused(text + content(TWO_NODES)).code == "mixed_formats"
    assert refused(content(TWO_NODES) + text).code == "mixed_formats"


@pytest.mark.parametrize("end", range(0, 5400, 53))
def test_a_cut_file_never_passes_as_whole(end: int) -> None:
    made = outcome(content(TWO_NODES)[: end + 1])
    assert isinstance(made, UnreadableDocument) or DoubtCode.INCOMPLETE_RUN in codes(made)
