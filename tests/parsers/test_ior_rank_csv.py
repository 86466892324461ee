"""IOR's details by rank."""

import pytest

from service.parsers.measurement import DoubtCode, Operation
from service.parsers.register import parse
from tests.parsers.manifest import Entry, check, codes, content, entries, refused

NAME = "ior-4.0-rank-details.csv"


@pytest.mark.parametrize("entry", entries("ior-rank-csv"))
def test_a_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    check(entry)
    measurements = parse(content(entry["file"])).measurements
    assert measurements is not None
    by_operation = {each.operation: each for each in measurements}
    for expected in entry["expected"]["repetitions"]:
        measurement = by_operation[Operation(expected["operation"])]
        assert measurement.ranks == expected["ranks"]
        repetition = measurement.repetitions[expected["iter"]]
        assert repetition.slowest_rank == expected["slowest_rank"]
        assert repetition.slowest_rank_seconds == pytest.approx(expected["slowest_rank_s"], rel=1e-9)
        assert repetition.mean_rank_seconds is not None
        assert expected["fastest_rank_s"] < repetition.mean_rank_seconds < expected["slowest_rank_s"]


def test_only_times_by_rank_are_taken() -> None:
    measurements = parse(content(NAME)).measurements
    assert measurements is not None
    for measurement in measurements:
        assert measurement.gb_per_second is None
        assert measurement.total_seconds is None
        assert measurement.nodes is None
        assert {each.bytes for each in measurement.repetitions} == {None}


def test_a_slow_rank_is_named() -> None:
    doubts = [each for each in parse(content(NAME)).doubts if each.code is DoubtCode.STRAGGLER]
    # 0.0753 s of rank 2 against a mean of 0.0344 s in the first read.
    assert [(each.measurement, "rank 2 took 2.19 times" in each.message) for each in doubts] == [(1, True)]


def test_a_last_repetition_without_all_ranks_is_dropped_with_a_doubt() -> None:
    lines = content(NAME).splitlines(keepends=True)
    record = parse(b"".join(lines[:-1]))
    assert DoubtCode.INCOMPLETE_RUN in codes(record)
    assert record.measurements is not None
    assert [len(each.repetitions) for each in record.measurements] == [2, 1]


def test_a_cut_last_line_is_an_incomplete_run() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(content(NAME)[:-30]))


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        (b"write,1,1.7697787285e-01", b"write,1,2.7697787285e-01", "inconsistent_row", 3),
        (b"write,1,1.7697787285e-01", b"write,1,-1.7697787285e-01", "bad_number", 3),
        (b"write,1,1.7697787285e-01", b"write,1,nan", "bad_number", 3),
        (b"write,1,1.7697787285e-01", b"write,2,1.7697787285e-01", "bad_row", 3),
        (b"write,1,1.7697787285e-01", b"read,1,1.7697787285e-01", "bad_row", 3),
        (b"write,1,1.7697787285e-01,", b"write,1,", "bad_row", 3),
        (b"write,1,1.7697787285e-01", b"remove,1,1.7697787285e-01", "bad_row", 3),
    ],
)
def test_a_row_that_cannot_be_true_is_refused(old: bytes, new: bytes, code: str, line: int) -> None:
    assert old in content(NAME)
    error = refused(content(NAME).replace(old, new, 1))
    assert (error.code, error.line) == (code, line)


def test_a_repetition_of_fewer_ranks_in_between_is_refused() -> None:
    lines = content(NAME).splitlines(keepends=True)
    error = refused(b"".join([*lines[:4], *lines[5:]]))
    assert (error.code, error.line) == ("bad_row", 2 + 3)


def test_a_heading_alone_has_no_results() -> None:
    assert refused(content(NAME).splitlines(keepends=True)[0]).code == "no_results"


def test_blocks_that_were_copied_are_not_more_repetitions() -> None:
    twice = parse(content("ior-4.0-rank-details.csv") * 2)
    assert {doubt.code for doubt in twice.doubts} >= {DoubtCode.FEW_REPETITIONS}
