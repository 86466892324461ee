"""The labelled benchmark files, and how a record is compared with what their manifest says."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Record, Spread
from service.parsers.register import parse

DATA = Path(__file__).parent.parent / "data" / "benchmarks"
MIB_PER_GB = 1e9 / (1 << 20)
FACTUAL = {
    DoubtCode.INCOMPLETE_RUN,
    DoubtCode.MIXED_LOG_LINES,
    DoubtCode.INVALID_JSON_STRING,
    DoubtCode.STONEWALLED,
    DoubtCode.REPS_SKIPPED,
    DoubtCode.NAN_SUMMARY,
    DoubtCode.IO500_INVALID,
}
"""Doubts that a file of which the manifest says `accept` must not raise."""

Entry = dict[str, Any]


def entries(format: str) -> list[Any]:
    """Return the manifest's entries of one of its formats, as test parameters."""
    manifest = json.loads((DATA / "MANIFEST.json").read_text())
    return [pytest.param(entry, id=entry["file"]) for entry in manifest["files"] if entry["format"] == format]


def content(name: str) -> bytes:
    return (DATA / name).read_bytes()


def codes(record: Record) -> set[DoubtCode]:
    return {doubt.code for doubt in record.doubts}


def refused(data: bytes) -> UnreadableDocument:
    """Return the error that a document is refused with."""
    with pytest.raises(UnreadableDocument) as caught:
        parse(data)
    return caught.value


def outcome(data: bytes) -> Record | UnreadableDocument:
    """Return what a document is read as, or the error that it is refused with; let any other error out."""
    try:
        return parse(data)
    except UnreadableDocument as error:
        return error


def check(entry: Entry, *, absent: tuple[str, ...] = ()) -> None:
    """Compare what is made of an entry's file with the manifest.

    Args:
        entry: The manifest's entry.
        absent: Fields of a measurement that the format does not carry, so that a record must lack them.
    """
    expected = entry["expected"]
    if expected["outcome"] == ["reject"]:
        error = refused(content(entry["file"]))
        assert error.detail.endswith((".", ")"))
        return
    record = parse(content(entry["file"]))
    assert record.tool == "ior"
    if record.tool_version is not None:
        assert entry["tool_version"].startswith(record.tool_version)
    assert {DoubtCode(code) for code in expected.get("must_warn", [])} <= codes(record)
    if expected["outcome"] == ["accept"]:
        assert not FACTUAL & codes(record)
    assert record.measurements is not None
    if "results" in expected:
        assert len(record.measurements) == len(expected["results"])
        for measurement, result in zip(record.measurements, expected["results"], strict=True):
            _check_measurement(measurement, result, absent)


def _check_measurement(measurement: Measurement, result: dict[str, Any], absent: tuple[str, ...]) -> None:
    assert (measurement.run, measurement.test) == (result["run"], result["test_id"])
    assert measurement.operation == result["operation"]
    for key, field in (
        ("api", "api"),
        ("ranks", "ranks"),
        ("nodes", "nodes"),
        ("ranks_per_node", "ranks_per_node"),
        ("block_bytes", "block_bytes"),
        ("transfer_bytes", "transfer_bytes"),
        ("segments", "segments"),
        ("fsync", "fsync"),
        ("repetitions_requested", "repetitions_requested"),
    ):
        if field in absent:
            assert getattr(measurement, field) is None, field
        elif key in result:
            assert getattr(measurement, field) == result[key], field
    if "file_per_process" in absent:
        assert measurement.file_per_process is None
    elif "access" in result:
        assert measurement.file_per_process is (result["access"] == "file-per-process")
    repetitions = measurement.repetitions
    assert len(repetitions) == result.get("repetitions_reported", 1)
    moved = result.get("bytes_moved_per_repetition")
    if moved is not None:
        assert [each.bytes for each in repetitions] == (
            moved if isinstance(moved, list) else [moved] * len(repetitions)
        )
    # Where only statistics were printed, the manifest has no single repetitions.
    shown_repetitions = result.get("repetitions", [])
    assert len(shown_repetitions) in (0, len(repetitions))
    for each, shown in zip(repetitions, shown_repetitions, strict=False):
        assert each.gb_per_second == pytest.approx(shown["bw_mib_s"] / MIB_PER_GB, rel=1e-9)
        for field, key in (
            ("open_seconds", "open_s"),
            ("transfer_seconds", "io_s"),
            ("close_seconds", "close_s"),
            ("total_seconds", "total_s"),
        ):
            # A time that was printed as zero is absent.
            assert (getattr(each, field) or 0) == pytest.approx(shown[key], abs=1e-12)
    rate = measurement.gb_per_second
    assert rate is not None
    _check_rate(rate, result)
    if "mean_total_s" in result:
        assert measurement.total_seconds is not None
        # IOR prints four or five decimals of the mean, and two of a time over a second.
        assert measurement.total_seconds.mean == pytest.approx(result["mean_total_s"], abs=6e-5)


def _check_rate(rate: Spread, result: dict[str, Any]) -> None:
    assert rate.max is not None
    assert rate.min is not None
    if "bw_mib_s" in result:
        assert rate.max == rate.min == pytest.approx(result["bw_mib_s"] / MIB_PER_GB, rel=1e-9)
    for key, value in (("max_mib_s", rate.max), ("min_mib_s", rate.min), ("mean_mib_s", rate.mean)):
        if key in result:
            assert value * MIB_PER_GB == pytest.approx(result[key], rel=1e-6), key
    if "max_bytes_per_s" in result:
        assert rate.max * 1e9 == pytest.approx(result["max_bytes_per_s"], rel=1e-7)
    if "mean_GB_per_s" in result:
        assert rate.mean == pytest.approx(result["mean_GB_per_s"], abs=6e-7)
    if "mean_mib_s_from_rows" in result:
        # Rows from 3600 MiB/s on are printed without decimals.
        assert rate.mean * MIB_PER_GB == pytest.approx(result["mean_mib_s_from_rows"], rel=1e-3)
