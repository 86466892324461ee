"""DLIO's checkpoint summary: the labelled files, hand-made ones, and damage."""

import json
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import UnreadableDocument
from service.parsers.dlio_summary import read_summary
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import parse, read
from tests.parsers.manifest import codes, outcome, refused

DATA = Path(__file__).parents[1] / "data" / "dcp"
ENTRIES = {
    entry["file"]: entry
    for entry in json.loads((DATA / "MANIFEST.json").read_text())["files"]
    if entry["file"].endswith(".summary.json")
}
BOTH, READ = (DATA / "foreign" / f"dlio-{name}.summary.json" for name in ("both", "read"))
GIB = 1 << 30

Json = dict[str, Any]


def metrics(name: str, size_bytes: int, durations: list[float]) -> Json:
    """Return the metrics that DLIO computes for saves or loads of these durations."""
    rates = [size_bytes / GIB / each for each in durations]
    return {
        f"{name}_checkpoint_io_mean_GB_per_second": statistics.fmean(rates),
        f"{name}_checkpoint_io_stdev_GB_per_second": statistics.pstdev(rates),
        f"{name}_checkpoint_duration_mean_seconds": statistics.fmean(durations),
        f"{name}_checkpoint_duration_stdev_seconds": statistics.pstdev(durations),
    }


def summary(
    *,
    save: list[float] | None = None,
    load: list[float] | None = None,
    size_bytes: int = 64 * GIB,
    **fields: object,
) -> Json:
    """Return a summary of 16 processes on 2 hosts, of a run with these durations."""
    metric: Json = {}
    for name, durations in (("save", save), ("load", load)):
        if durations is not None:
            metric |= metrics(name, size_bytes, durations)
    metric["checkpoint_size_GB"] = size_bytes / GIB
    return {
        "start": "2026-11-29T16:35:27.373982",
        "num_accelerators": 16,
        "num_hosts": 2,
        "hostname": "node-0",
        "metric": metric,
        "host_memory_GB": [8.0, 8.0],
        **fields,
    }


def encoded(value: object) -> bytes:
    return json.dumps(value, indent=4).encode()


def measurements(value: object) -> list[Measurement]:
    made = parse(encoded(value)).measurements
    assert made is not None
    return made


def refused_at(value: object, code: str, place: str) -> None:
    error = refused(encoded(value))
    assert (error.code, error.pointer) == (code, place), error.detail


@pytest.mark.parametrize("file", ENTRIES)
def test_a_labelled_file_is_read_as_its_manifest_says(file: str) -> None:
    facts = ENTRIES[file]["facts"]
    record = parse((DATA / file).read_bytes())
    assert (record.tool, record.format, record.ran_at) == ("dlio", "dlio-summary", None)
    assert record.measurements is not None
    expected = [
        (Operation(op), facts[name]) for op, name in (("write", "save"), ("read", "load")) if name in facts
    ]
    assert [each.operation for each in record.measurements] == [op for op, _ in expected]
    for each, (_, fact) in zip(record.measurements, expected, strict=True):
        assert (each.ranks, each.nodes) == (facts["num_accelerators_is_world_size"], 1)
        assert each.ranks_per_node == each.ranks
        assert each.gb_per_second is not None
        assert each.gb_per_second.mean == pytest.approx(fact["gb_per_s_total_over_total"], rel=1e-6)
        # The file has no single duration: these follow from its four statistics.
        assert [one.total_seconds for one in each.repetitions] == sorted(fact["durations_s_rank0"])
        assert {one.bytes for one in each.repetitions} == {facts["checkpoint_bytes"]}
    assert {DoubtCode.UNIT_CORRECTED, DoubtCode.PARTIAL_RANKS} <= codes(record)


def test_doubts_name_the_operation_they_are_about() -> None:
    about = {(doubt.code, doubt.measurement) for doubt in parse(BOTH.read_bytes()).doubts}
    assert {
        (DoubtCode.UNIT_CORRECTED, None),
        (DoubtCode.FSYNC_UNKNOWN, 0),
        (DoubtCode.WIDE_SPREAD, 0),
        (DoubtCode.CACHED_READ, 1),
    } <= about
    assert DoubtCode.FEW_REPETITIONS not in {code for code, _ in about}


# Rates and repetitions


def test_the_rate_is_all_bytes_over_all_seconds() -> None:
    (write,) = measurements(summary(save=[10.0, 20.0, 30.0, 60.0]))
    assert write.gb_per_second is not None
    assert write.gb_per_second.mean == pytest.approx(4 * 64 * GIB / 1e9 / 120)
    assert (write.ranks, write.nodes, write.ranks_per_node) == (16, 2, None)


def test_of_more_than_three_checkpoints_only_means_are_known() -> None:
    record = parse(encoded(summary(save=[10.0, 20.0, 30.0, 60.0])))
    assert record.measurements is not None
    (write,) = record.measurements
    assert write.repetitions == []
    assert write.gb_per_second is not None
    assert write.total_seconds is not None
    assert (write.gb_per_second.min, write.gb_per_second.max, write.gb_per_second.median) == (
        None,
        None,
        None,
    )
    assert (write.total_seconds.mean, write.total_seconds.max) == (30.0, None)
    assert DoubtCode.FEW_REPETITIONS not in codes(record)
    assert DoubtCode.WIDE_SPREAD in codes(record)
    assert DoubtCode.WIDE_SPREAD not in codes(parse(encoded(summary(save=[10.0, 10.1, 10.2, 10.3]))))


def test_one_checkpoint_is_its_own_mean() -> None:
    record = parse(encoded(summary(save=[12.5])))
    assert record.measurements is not None
    (write,) = record.measurements
    assert [each.total_seconds for each in write.repetitions] == [12.5]
    assert DoubtCode.FEW_REPETITIONS in codes(record)


def test_two_checkpoints_follow_from_mean_and_deviation() -> None:
    record = parse(encoded(summary(load=[12.5, 10.25])))
    assert record.measurements is not None
    (load,) = record.measurements
    assert [each.total_seconds for each in load.repetitions] == [10.25, 12.5]
    assert load.gb_per_second is not None
    assert load.gb_per_second.max == pytest.approx(64 * GIB / 1e9 / 10.25)
    assert DoubtCode.FEW_REPETITIONS in codes(record)


durations = st.lists(st.integers(1000, 10**10), min_size=1, max_size=12, unique=True).map(
    lambda microseconds: [each / 1e6 for each in microseconds]
)


@given(durations, st.integers(1, 10**15))
@settings(derandomize=True, database=None, deadline=None, max_examples=300)
def test_any_true_summary_is_read_and_no_repetition_made_up(seconds: list[float], size_bytes: int) -> None:
    save = read_summary(read(encoded(summary(save=seconds, size_bytes=size_bytes)))).save
    assert save is not None
    assert save.mean_seconds == pytest.approx(statistics.fmean(seconds))
    if save.seconds:
        assert save.seconds == pytest.approx(sorted(seconds), abs=1e-5, rel=1e-8)


@given(st.lists(st.integers(10**6, 10**9), min_size=2, max_size=3))
@settings(derandomize=True, database=None, deadline=None, max_examples=300)
def test_up_to_three_durations_that_differ_are_found(microseconds: list[int]) -> None:
    seconds = [each / 1e6 for each in microseconds]
    save = read_summary(read(encoded(summary(save=seconds)))).save
    assert save is not None
    if statistics.pstdev(seconds) > 0.01 * statistics.fmean(seconds):
        # Of two that are nearly the same, the least digits blur.
        assert save.seconds == pytest.approx(sorted(seconds), abs=1e-5)


# What the loads can be worth


@pytest.mark.parametrize(
    ("nodes", "memory", "cached"),
    [
        (1, [1.0], True),
        (2, [8.0, 8.0], False),
        (2, [8.0, 11.0], True),
        (2, None, True),
        (2, [], True),
        (2, ["8", "8"], True),
        (2, [True, True], True),
        (2, [-8.0, 0.0], True),
    ],
)
def test_a_load_that_may_fit_into_memory_is_doubted(nodes: int, memory: object, cached: bool) -> None:
    # A node's share of 64 GiB is 32 GiB.
    record = parse(encoded(summary(load=[10.0], num_hosts=nodes, host_memory_GB=memory)))
    assert (DoubtCode.CACHED_READ in codes(record)) is cached


# What is refused


def test_nan_is_taken_for_an_operation_that_was_not_run() -> None:
    text = READ.read_text()
    assert text.count("NaN") == 4
    record = parse(text.replace(": NaN", " \n:\t NaN\n").encode())
    assert record == parse(READ.read_bytes())
    absent = "\n".join(line for line in text.splitlines() if "NaN" not in line)
    assert parse(absent.encode()) == record
    assert parse(text.replace("NaN", "null").encode()) == record


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"checkpoint_size_GB": 0.43254756927490234', '"checkpoint_size_GB": NaN'),
        ('"epochs": 0', '"epochs": NaN'),
        ('"hostname": "node-0"', '"hostname": [NaN]'),
        ("NaN", "-NaN"),
        ("NaN", "nan"),
        ("NaN", "Infinity"),
    ],
)
def test_any_other_nan_is_refused(old: str, new: str) -> None:
    text = READ.read_text()
    assert old in text
    assert refused(text.replace(old, new, 1).encode()).code in ("non_finite_number", "not_json")


def test_nan_of_one_figure_alone_is_refused() -> None:
    text = BOTH.read_text().replace("0.8428883333333334", "NaN")
    error = refused(text.encode())
    assert error.code == "missing_figure"
    assert error.pointer == "#/metric/save_checkpoint_duration_mean_seconds"


def test_a_text_in_a_string_is_no_nan() -> None:
    value = summary(save=[1.0], note='"save_checkpoint_io_mean_GB_per_second": NaN,')
    assert measurements(value) == measurements(summary(save=[1.0]))


def test_deviations_may_be_missing() -> None:
    value = summary(save=[10.0, 12.0])
    for key in list(value["metric"]):
        if "stdev" in key:
            del value["metric"][key]
    (write,) = measurements(value)
    assert write.repetitions == []
    assert write.gb_per_second is not None
    assert write.gb_per_second.mean == pytest.approx(64 * GIB / 1e9 / 11)


def test_a_run_without_checkpoints_is_refused() -> None:
    refused_at(summary(metric={"train_au_percentage": [99.0]}), "no_results", "#/metric")
    nothing = {f"{name}_checkpoint_io_mean_GB_per_second": None for name in ("save", "load")}
    refused_at(summary(metric={**nothing, "checkpoint_size_GB": 1.0}), "no_results", "#/metric")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_accelerators", 0),
        ("num_accelerators", -1),
        ("num_accelerators", 2.5),
        ("num_accelerators", "16"),
        ("num_accelerators", True),
        ("num_accelerators", None),
        ("num_accelerators", 10**9),
        ("num_hosts", 0),
        ("num_hosts", [2]),
    ],
)
def test_counts_that_are_none_are_refused(key: str, value: object) -> None:
    refused_at(summary(save=[1.0]) | {key: value}, "bad_number", f"#/{key}")


def test_more_hosts_than_processes_are_refused() -> None:
    refused_at(summary(save=[1.0], num_hosts=17), "contradictory_setup", "#/num_hosts")


@pytest.mark.parametrize("value", [0, -1.0, 1e300, 1e-12, 64.1, "64", True, [64.0]])
def test_a_size_that_is_none_is_refused(value: object) -> None:
    document = summary(save=[1.0])
    document["metric"]["checkpoint_size_GB"] = value
    refused_at(document, "bad_number", "#/metric/checkpoint_size_GB")


@pytest.mark.parametrize("key", list(metrics("save", 1, [1.0])))
@pytest.mark.parametrize("value", [-1.0, 1e300, "1.0", True, {}])
def test_a_metric_that_is_none_is_refused(key: str, value: object) -> None:
    document = summary(save=[10.0, 12.0])
    document["metric"][key] = value
    refused_at(document, "bad_number", f"#/metric/{key}")


@pytest.mark.parametrize("key", ["io_mean_GB_per_second", "duration_mean_seconds"])
@pytest.mark.parametrize("factor", [0.9, 1.1, 1.073741824, 1000])
def test_statements_that_contradict_each_other_are_refused(key: str, factor: float) -> None:
    document = summary(save=[10.0, 11.0, 12.0])
    document["metric"][f"save_checkpoint_{key}"] *= factor
    refused_at(document, "inconsistent_summary", "#/metric/save_checkpoint_io_mean_GB_per_second")


def test_a_size_in_other_units_is_refused() -> None:
    document = summary(save=[10.0, 11.0, 12.0])
    document["metric"]["checkpoint_size_GB"] = 68.71875
    refused_at(document, "inconsistent_summary", "#/metric/save_checkpoint_io_mean_GB_per_second")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"num_accelerators": 2, "num_hosts": 1, "metric": ', "not_json"),
        ('{"num_accelerators": 2, "num_hosts": 1, "metric": 3}', "wrong_type"),
        ('{"num_accelerators": 2, "metric": {}, "metric": {}}', "duplicate_key"),
        ('{"num_accelerators": 2, "metric": {"a": 1e999}}', "non_finite_number"),
        ('{"num_accelerators": 2, "metric": ' + '{"a": ' * 80 + "1" + "}" * 81, "too_deep"),
    ],
)
def test_json_that_is_damaged_is_refused(text: str, code: str) -> None:
    assert refused(text.encode()).code == code


def test_keys_that_are_not_known_are_kept_out() -> None:
    value = summary(save=[1.0], host_meminfo={"MemTotal": "1 kB"}, new_key=[1, {"a": None}])
    assert measurements(value) == measurements(summary(save=[1.0]))


@pytest.mark.parametrize("file", ENTRIES)
def test_damage_is_refused_or_changes_a_rate_no_more_than_the_deviations_allow(file: str) -> None:
    text = (DATA / file).read_text()
    before = read_summary(read(text.encode()))
    truth = {Operation.WRITE: before.save, Operation.READ: before.load}
    rng = random.Random(file)  # noqa: S311 - the same mutations each time
    start, end = text.index('"metric"'), text.index('"num_files_train"')
    for _ in range(500):
        at = rng.randrange(start, end)
        made = outcome((text[:at] + rng.choice('0123456789-.e",{}N ') + text[at + 1 :]).encode())
        if isinstance(made, UnreadableDocument):
            assert made.detail
            continue
        for each in made.measurements or []:
            known = truth[each.operation]
            assert each.gb_per_second is not None
            assert known is not None
            deviation = statistics.pstdev(known.seconds) / known.mean_seconds
            rates = [1 / seconds for seconds in known.seconds]
            allowed = deviation * statistics.pstdev(rates) / statistics.fmean(rates)
            rate = before.checkpoint_bytes / 1e9 / known.mean_seconds
            assert each.gb_per_second.mean == pytest.approx(rate, rel=1.5 * allowed + 1e-5)


def test_a_cut_file_is_refused() -> None:
    data = BOTH.read_bytes().rstrip()
    for stop in range(1, len(data), 11):
        assert not isinstance(outcome(data[:stop]), Record)
