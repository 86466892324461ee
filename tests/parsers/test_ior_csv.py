"""IOR's CSV output."""

import pytest

from service.parsers.measurement import DoubtCode
from service.parsers.register import parse
from tests.parsers.manifest import Entry, check, codes, content, entries, refused

NAME = "ior-4.0-posix-fpp-write-read-3reps.csv"
ABSENT = ("api", "file_per_process", "nodes", "ranks_per_node", "segments", "fsync", "repetitions_requested")


@pytest.mark.parametrize("entry", entries("csv"))
def test_a_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    check(entry, absent=ABSENT)


def test_what_the_file_cannot_say_is_doubted() -> None:
    assert {DoubtCode.FSYNC_UNKNOWN, DoubtCode.UNKNOWN_TOPOLOGY, DoubtCode.CACHED_READ} <= codes(
        parse(content(NAME))
    )


def test_a_development_build_without_tasks_leaves_them_unknown() -> None:
    lines = content(NAME).decode().splitlines()
    eleven = [",".join(cell for at, cell in enumerate(line.split(",")) if at != 10) for line in lines]
    measurements = parse("\n".join(eleven).encode() + b"\n").measurements
    assert measurements is not None
    assert [each.ranks for each in measurements] == [None, None]
    assert measurements[0].repetitions[0].bytes == 201326592


def test_each_heading_begins_a_test() -> None:
    measurements = parse(content(NAME) + content(NAME)).measurements
    assert measurements is not None
    assert [each.test for each in measurements] == [0, 0, 1, 1]


def test_log_lines_among_the_rows_are_passed_over_with_a_doubt() -> None:
    data = content(NAME).replace(b"\nread", b'\nWARNING: The file "x" exists already\nread', 1)
    record = parse(data)
    assert {DoubtCode.MIXED_LOG_LINES, DoubtCode.IOR_WARNING} <= codes(record)
    assert record.measurements == parse(content(NAME)).measurements


def test_a_cut_last_line_is_an_incomplete_run() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(content(NAME)[:-20]))


def test_fewer_reads_than_writes_are_an_incomplete_run() -> None:
    lines = content(NAME).splitlines(keepends=True)
    assert lines[-1].startswith(b"read")
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(b"".join(lines[:-1])))


def test_a_repetition_left_out_is_an_incomplete_run() -> None:
    lines = content(NAME).splitlines(keepends=True)
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(b"".join([*lines[:3], *lines[5:]])))


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        (b"1745.6908", b"174,56908", "bad_row", 2),
        (b"1745.6908", b"-1745.6908", "bad_number", 2),
        (b"1745.6908", b"nan", "bad_number", 2),
        (b"1745.6908", b"0.0000", "bad_number", 2),
        (b"1745.6908", b"745.6908", "inconsistent_row", 2),
        (b",6,0\nread", b",8,0\nread", "contradictory_setup", 4),
        (b",6,1\nread", b",6,0\nread", "duplicate_row", 4),
    ],
)
def test_a_row_that_cannot_be_true_is_refused(old: bytes, new: bytes, code: str, line: int) -> None:
    assert old in content(NAME)
    error = refused(content(NAME).replace(old, new, 1))
    assert (error.code, error.line) == (code, line)


def test_bytes_that_are_no_whole_blocks_are_doubted_as_stonewalled() -> None:
    heading, row = content(NAME).splitlines()[:2]
    cells = row.split(b",")
    # A tenth less of everything that counts bytes, in the same time.
    cells[1], cells[2] = b"%.4f" % (float(cells[1]) * 0.9), b"%.4f" % (float(cells[2]) * 0.9)
    record = parse(heading + b"\n" + b",".join(cells) + b"\n")
    assert DoubtCode.STONEWALLED in codes(record)


def test_a_heading_alone_has_no_results() -> None:
    assert refused(content(NAME).splitlines(keepends=True)[0]).code == "no_results"


def test_columns_of_an_unknown_release_are_refused() -> None:
    assert refused(content(NAME).replace(b",iter", b",iter,colour", 1)).code == "unknown_columns"


def test_the_csv_of_old_releases_is_refused_by_name() -> None:
    error = refused(content("ior-3.3-posix-fpp-write-read-3reps.csv"))
    assert error.code == "unsupported_version"
    assert "text output" in error.detail
