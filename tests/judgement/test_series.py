"""Figures over time: what may stand in one series, and what is said of its change."""

from uuid import UUID

import pytest

from service.judgement.report import EvidenceChoice
from service.judgement.series import (
    Certainty,
    ChangeKind,
    Context,
    Direction,
    Series,
    SeriesReport,
    StorageFigure,
    StorageSeriesReport,
    series,
    storage_series,
)
from service.parsers.measurement import DcpOp, DoubtCode, Operation
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.size import size
from service.sizing.sizing import TargetId
from tests.judgement.examples import SCENARIO_ID, SHARD_BYTES, at, dcp, doubt, ior, run, scenario

WRITE = TargetId.WRITE_BANDWIDTH


def _report(*runs: BenchmarkRun, only: TargetId | None = WRITE, **choice: object) -> SeriesReport:
    spec = scenario()
    return series(
        spec=spec,
        sizing=size(spec),
        scenario_id=SCENARIO_ID,
        scenario_revision=1,
        runs=runs,
        storage_label="pfs-a",
        choice=EvidenceChoice.model_validate(choice),
        only=[only] if only is not None else None,
    )


def _one(report: SeriesReport) -> Series:
    (found,) = report.series
    return found


def _daily(*rates: float, **measured: object) -> list[BenchmarkRun]:
    return [
        run(number=day, day=day, measurements=[ior(rate, **measured)])  # type: ignore[arg-type]
        for day, rate in enumerate(rates, start=1)
    ]


def test_a_step_after_an_upgrade_is_noticed() -> None:
    found = _one(_report(*_daily(*[100, 101, 99] * 2, *[80, 81, 79] * 2)))
    assert (found.figure, found.nodes, found.tool, found.target_value) == (WRITE, 2048, "ior", 94.5)
    assert [(point.run_id.int, point.took_place_at, point.value) for point in found.points[:2]] == [
        (1, at(1), 100.0),
        (2, at(2), 101.0),
    ]
    change = found.change
    assert (change.kind, change.direction) == (ChangeKind.STEP, Direction.WORSE)
    assert [change.before, change.after] == pytest.approx([100.0, 80.0])
    assert change.change_fraction == pytest.approx(-0.2)
    assert (change.first_run_id, change.changed_after_at, change.changed_before_at) == (
        UUID(int=7),
        at(6),
        at(7),
    )
    assert change.certainty is Certainty.CLEAR
    # All six of them above all six others, at one of seven places.
    assert change.probability == pytest.approx(7 * 2 / 924)
    assert change.sentence == (
        "The write bandwidth shifted from 100 GB/s to 80 GB/s, 20 % less, which is worse, between 2026-11-06 and "
        "2026-11-07: find out what changed then."
    )


def test_every_step_is_listed_and_the_newest_comes_first_in_words() -> None:
    found = _one(_report(*_daily(*[50] * 10, *[100, 101, 99, 100, 100] * 2, 75, 76, 74, 75)))
    assert [
        (
            step.first_run_id.int,
            step.before,
            step.after,
            str(step.direction),
            step.points_before,
            step.points_after,
        )
        for step in found.steps
    ] == [(11, 50.0, 100.0, "better", 10, 10), (21, 100.0, 75.0, "worse", 10, 4)]
    change = found.change
    assert (change.before, change.after, change.direction) == (100.0, 75.0, Direction.WORSE)
    assert (change.first_run_id, change.probability) == (UUID(int=21), found.steps[1].probability)
    assert change.sentence == (
        "The write bandwidth shifted from 100 GB/s to 75 GB/s, 25 % less, which is worse, between 2026-11-20 and "
        "2026-11-21: find out what changed then. Earlier it shifted from 50 GB/s to 100 GB/s between 2026-11-10 and "
        "2026-11-11."
    )


def test_a_step_of_few_runs_is_suspected_and_says_how_sure_it_is() -> None:
    change = _one(_report(*_daily(100, 101, 99, 60, 61, 59))).change
    assert (change.kind, change.certainty, change.probability) == (ChangeKind.STEP, Certainty.SUSPECTED, 0.1)
    assert change.sentence == (
        "The write bandwidth seems to have shifted from 100 GB/s to 60 GB/s, 40 % less, which is worse, between "
        "2026-11-03 and 2026-11-04: the 3 runs since then all lie on one side of the 3 before, which chance alone "
        "brings about in up to 10 % of such series. Measure again."
    )


def test_a_slow_decline_is_noticed() -> None:
    change = _one(_report(*_daily(*(100.0 - day for day in range(20))))).change
    assert (change.kind, change.direction) == (ChangeKind.DRIFT, Direction.WORSE)
    assert change.slope_per_day == pytest.approx(-1.0)
    assert change.slope_low_per_day is not None
    assert change.slope_high_per_day is not None
    assert change.slope_low_per_day <= -1.0 <= change.slope_high_per_day < 0.0
    assert [change.before, change.after] == pytest.approx([100.0, 81.0])
    assert (
        "drifts, by the line through its 20 points, from 100 GB/s to 81 GB/s, 19 % less, which is worse"
        in change.sentence
    )
    assert change.first_run_id is None


def test_a_time_that_grows_is_worse_and_one_that_falls_is_better() -> None:
    def of_times(*seconds: float) -> Direction | None:
        runs = [
            run(number=day, day=day, measurements=[ior(1.0, total_seconds=[each])])
            for day, each in enumerate(seconds, start=1)
        ]
        return _one(_report(*runs, only=TargetId.SLOWEST_WRITER_SECONDS)).change.direction

    assert of_times(50, 50, 50, 70, 70, 70) is Direction.WORSE
    assert of_times(70, 70, 70, 50, 50, 50) is Direction.BETTER
    assert of_times(50, 50, 50, 50, 50, 50) is None


def test_few_points_say_too_few_and_a_quiet_series_is_steady() -> None:
    few = _one(_report(*_daily(100, 100, 100, 50, 50))).change
    assert (few.kind, few.direction, few.before) == (ChangeKind.TOO_FEW, None, None)
    assert few.sentence == "5 points of the write bandwidth say nothing of a change; 6 are the least."
    quiet = _one(_report(*_daily(100, 101, 100, 99, 100, 101))).change
    assert quiet.kind is ChangeKind.STEADY
    assert _report().series == []


def test_the_thresholds_are_told() -> None:
    assert _report().thresholds.model_dump() == {
        "least_points": 6,
        "least_segment_points": 3,
        "most_segments": 8,
        "most_points": 200,
        "significance_fraction": 0.02,
        "suspicion_fraction": 0.125,
        "least_change_fraction": 0.1,
    }


def test_what_cannot_be_set_side_by_side_makes_a_series_of_its_own() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, bytes_total=5_670_000_000_000, largest_rank_bytes=SHARD_BYTES)
    report = _report(
        run(number=1, measurements=[ior(100.0)]),
        run(number=2, measurements=[ior(101.0)], conditions=[Condition.IDLE]),
        run(number=3, measurements=[ior(1.0, nodes=16)]),
        run(number=4, measurements=[ior(100.0, block_bytes=4096)]),
        run(number=5, measurements=[ior(300.0)], doubts=[doubt(DoubtCode.NO_FSYNC)]),
        run(number=6, operations=[save]),
        run(number=7, measurements=[ior(9.0)], conditions=[Condition.DEGRADED]),
        run(number=8, measurements=[ior(9.0)], doubts=[doubt(DoubtCode.INCOMPLETE_RUN)]),
        run(number=9, measurements=[ior(50.0, nodes=None)]),
    )
    found = {tuple(point.run_id.int for point in each.points): each for each in report.series}
    assert set(found) == {(1, 2), (3,), (4,), (5,), (6,), (9,)}
    assert next(iter(found)) == (1, 2)  # the longest first
    assert found[(3,)].nodes == 16
    assert found[(4,)].rank_bytes == 4100.0  # two digits
    assert found[(5,)].flattered_by == [DoubtCode.NO_FSYNC]
    assert (found[(6,)].tool, found[(6,)].rank_bytes) == ("torch.distributed.checkpoint", None)
    assert found[(9,)].nodes is None
    degraded = run(number=7, measurements=[ior(9.0)], conditions=[Condition.DEGRADED])
    asked = _one(_report(degraded, conditions=[Condition.DEGRADED]))
    assert asked.conditions == [Condition.DEGRADED]


def test_the_figure_of_a_node_is_what_one_of_them_gave() -> None:
    report = _report(
        run(number=1, measurements=[ior(102.4)]),
        run(number=2, measurements=[ior(1.0, nodes=None)]),
        only=TargetId.NODE_WRITE_BANDWIDTH,
    )
    assert [point.value for point in _one(report).points] == [0.05]


def test_of_a_runs_like_tests_the_worst_is_its_point_by_the_statistic_that_was_asked_for() -> None:
    tests = run(measurements=[ior(90.0, 110.0), ior(80.0, 130.0)])
    assert [point.value for point in _one(_report(tests)).points] == [100.0]
    assert [point.value for point in _one(_report(tests, statistic="min")).points] == [80.0]


def test_a_long_series_tells_its_newest_points() -> None:
    runs = [
        run(number=number, day=1, measurements=[ior(100.0 if number <= 100 else 50.0)])
        for number in range(1, 304)
    ]
    found = _one(_report(*runs))
    assert (len(found.points), found.points_left_out) == (200, 103)
    assert found.points[0].run_id.int == 104
    assert found.change.kind is ChangeKind.STEADY  # the step lies before them


def test_every_figure_is_told_unless_one_is_named() -> None:
    both = run(measurements=[ior(100.0, total_seconds=[50.0]), ior(40.0, operation=Operation.READ)])
    assert [each.figure for each in _report(both, only=None).series] == [
        TargetId.WRITE_BANDWIDTH,
        TargetId.NODE_WRITE_BANDWIDTH,
        TargetId.SLOWEST_WRITER_SECONDS,
        TargetId.READ_BANDWIDTH,
        TargetId.NODE_READ_BANDWIDTH,
    ]


OTHER_ID = UUID(int=77)


def _across(*runs: BenchmarkRun, only: list[StorageFigure] | None = None) -> StorageSeriesReport:
    contexts = {
        SCENARIO_ID: ("one", Context(scenario(), 1)),
        OTHER_ID: ("another", Context(scenario(), 3)),
    }
    return storage_series(
        storage_label="pfs-a",
        scenarios=contexts,
        runs=runs,
        choice=EvidenceChoice(),
        engine_version="1",
        only=only,
    )


def test_all_storages_stand_side_by_side_and_never_in_one_series() -> None:
    runs = _daily(100, 100, 100)
    others = [
        each.model_copy(update={"storage_label": label, "id": UUID(int=1000 + place)})
        for place, each in enumerate(_daily(50, 50, 50, 50))
        for label in ([None, "pfs-b"][place % 2],)
    ]
    found = _report(*runs, *others).series
    assert [(each.storage_label, [point.value for point in each.points]) for each in found] == [
        ("pfs-a", [100.0] * 3),
        (None, [50.0] * 2),
        ("pfs-b", [50.0] * 2),
    ]


def test_a_storage_is_told_across_scenarios_in_rates_alone() -> None:
    runs = [
        each.model_copy(update={"scenario_id": OTHER_ID}) if place % 2 else each
        for place, each in enumerate(_daily(*[102.4] * 6, *[51.2] * 6, total_seconds=[50.0]))
    ]
    report = _across(*runs)
    (one,) = report.series
    assert (one.figure, one.nodes, one.unit) == (StorageFigure.NODE_WRITE_BANDWIDTH, 2048, "gb_per_second")
    assert [(point.scenario_id, point.value) for point in one.points[:3]] == [
        (SCENARIO_ID, 0.05),
        (OTHER_ID, 0.05),
        (SCENARIO_ID, 0.05),
    ]
    assert (one.change.direction, one.change.certainty) == (Direction.WORSE, Certainty.CLEAR)
    assert [(each.name, each.revision) for each in report.scenarios] == [("another", 3), ("one", 1)]
    assert report.runs_considered == 12


def test_across_scenarios_unlike_runs_stand_apart() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, bytes_total=5_670_000_000_000, largest_rank_bytes=SHARD_BYTES)
    report = _across(
        run(number=1, measurements=[ior(100.0)]),
        run(number=2, measurements=[ior(1.0, nodes=16)]),
        run(number=3, measurements=[ior(40.0, operation=Operation.READ)]),
        run(number=4, operations=[save]),
        run(number=5, measurements=[ior(100.0, nodes=None)]),
    )
    assert [(each.figure, each.tool, each.save_mode, each.nodes) for each in report.series] == [
        ("node_write_bandwidth", "ior", None, 2048),
        ("node_write_bandwidth", "ior", None, 16),
        ("node_write_bandwidth", "torch.distributed.checkpoint", "sync", 2048),
        ("node_read_bandwidth", "ior", None, 2048),
    ]
    assert _across(run(measurements=[ior(1.0)]), only=[StorageFigure.FILE_CREATE_RATE]).series == []
