from collections.abc import Callable
from uuid import UUID

import pytest

from service.judgement.gap import judge, newest_label
from service.judgement.report import Basis, Outcome, Status
from service.parsers.measurement import DcpOp, DoubtCode, Measurement, Operation, Spread
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.size import size
from service.sizing.sizing import TargetId
from service.sizing.spec import ScenarioSpec
from tests.judgement.examples import (
    SCENARIO_ID,
    SHARD_BYTES,
    async_scenario,
    codes,
    dcp,
    doubt,
    ior,
    mdtest,
    one_node_scenario,
    report_on,
    run,
    scenario,
    target_of,
)

WRITE, NODE_WRITE = TargetId.WRITE_BANDWIDTH, TargetId.NODE_WRITE_BANDWIDTH
READ, NODE_READ = TargetId.READ_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH


def test_nothing_uploaded_is_unmeasured_and_unproven() -> None:
    report = report_on(scenario())
    assert [target.status for target in report.targets] == [Status.UNMEASURED] * 10
    assert all(target.measured is None and target.ratio is None for target in report.targets)
    assert all(target.run_ids == [] and target.doubts == [] for target in report.targets)
    assert report.verdict.outcome is Outcome.UNPROVEN
    assert report.verdict.decided_by is WRITE
    assert report.runs_considered == 0
    assert "94.5 GB/s" in report.verdict.sentence
    wire = report.model_dump(mode="json", exclude_none=True)
    assert "measured" not in wire["targets"][0]
    assert "storage_label" not in wire


def test_full_scale_is_compared_as_a_whole_by_the_mean_of_the_repetitions() -> None:
    report = report_on(scenario(), run(number=7, measurements=[ior(90.0, 94.5, 102.0)]))
    write = target_of(report, WRITE)
    assert write.status is Status.MET
    assert write.basis is Basis.FULL_SCALE
    assert write.full_scale is True
    assert write.nodes == 2048
    assert (write.measured, write.measured_min, write.measured_max) == (95.5, 90.0, 102.0)
    assert write.ratio == pytest.approx(1.0105820105820107)
    assert write.per_node_target is None
    assert write.run_ids == [UUID(int=7)]
    node = target_of(report, NODE_WRITE)
    assert node.status is Status.MET
    assert node.value == 0.046142578125
    assert node.measured == pytest.approx(0.046630859375)


def test_full_scale_that_falls_short_is_missed() -> None:
    report = report_on(scenario(), run(measurements=[ior(75.6, 75.6, 75.6)]))
    write = target_of(report, WRITE)
    assert (write.status, write.measured) == (Status.MISSED, 75.6)
    assert write.ratio == pytest.approx(0.8)
    assert write.reason == (
        "The write bandwidth was 75.6 GB/s on 2,048 nodes; at least 94.5 GB/s is needed: 20 % short."
    )
    assert report.verdict.outcome is Outcome.FALLS_SHORT
    assert report.verdict.decided_by is WRITE
    assert report.verdict.sentence == (
        "Storage pfs-a falls short on 2 of 10 targets, most of all in the write bandwidth: "
        "75.6 GB/s where at least 94.5 GB/s is needed, $7,776,376 a year more wasted."
    )


def test_a_mean_alone_is_compared_and_shows_no_range() -> None:
    alone = ior(100.0).model_copy(
        update={"repetitions": [], "gb_per_second": Spread(mean=100.0), "total_seconds": Spread(mean=57.0)}
    )
    report = report_on(scenario(), run(measurements=[alone]))
    write = target_of(report, WRITE)
    assert (write.status, write.measured) == (Status.MET, 100.0)
    assert (write.measured_min, write.measured_max) == (None, None)
    # A mean of times says nothing of the longest.
    assert target_of(report, TargetId.SLOWEST_WRITER_SECONDS).status is Status.UNMEASURED


def test_a_rate_that_is_exactly_the_target_meets_it() -> None:
    assert target_of(report_on(scenario(), run(measurements=[ior(94.5)])), WRITE).status is Status.MET


@pytest.mark.parametrize(
    ("nodes", "status", "basis"),
    [
        # 95 % of 2,048 nodes are 1,945.6; 105 % are 2,150.4.
        (1945, Status.MET_IF_IT_SCALES, Basis.PER_NODE_EXTRAPOLATED),
        (1946, Status.MET, Basis.FULL_SCALE),
        (2150, Status.MET, Basis.FULL_SCALE),
        (2151, Status.NOT_COMPARABLE, Basis.PER_NODE_LARGER_RUN),
    ],
)
def test_full_scale_reaches_from_95_to_105_percent_of_the_nodes(
    nodes: int, status: Status, basis: Basis
) -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(200.0, nodes=nodes)])), WRITE)
    assert (write.status, write.basis) == (status, basis)


def test_the_bounds_of_full_scale_belong_to_it() -> None:
    # 95 and 105 % of 60 nodes.
    spec = scenario(cluster={"gpus": 480, "gpus_per_node": 8})
    for nodes in (57, 63):
        write = target_of(report_on(spec, run(measurements=[ior(94.5, nodes=nodes)])), WRITE)
        assert write.status is Status.MET, nodes


def test_16_of_2048_nodes_that_reach_their_share_meet_it_if_it_scales() -> None:
    report = report_on(scenario(), run(measurements=[ior(0.72, 0.80, 0.88, nodes=16)]))
    write = target_of(report, WRITE)
    assert write.status is Status.MET_IF_IT_SCALES
    assert write.basis is Basis.PER_NODE_EXTRAPOLATED
    assert write.full_scale is False
    assert write.nodes == 16
    assert write.per_node_measured == pytest.approx(0.05)
    assert write.per_node_target == pytest.approx(0.046142578125)
    assert write.measured == pytest.approx(102.4)  # 0.05 * 2048
    assert write.measured_min == pytest.approx(92.16)  # 0.72 / 16 * 2048
    assert write.measured_max == pytest.approx(112.64)  # 0.88 / 16 * 2048
    assert write.ratio == pytest.approx(1.0835978835978836)  # 0.05 / 0.046142578125
    node = target_of(report, NODE_WRITE)
    assert node.status is Status.MET_IF_IT_SCALES
    assert node.measured == pytest.approx(0.05)
    assert node.ratio == pytest.approx(1.0835978835978836)
    assert report.verdict.outcome is Outcome.UNPROVEN


def test_16_of_2048_nodes_that_do_not_reach_their_share_miss_it() -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(0.64, nodes=16)])), WRITE)
    assert write.status is Status.MISSED
    assert write.measured == pytest.approx(81.92)  # 0.04 * 2048
    assert write.ratio == pytest.approx(0.8668783068783069)  # 0.04 / 0.046142578125
    assert write.reason == (
        "16 nodes gave 0.04 GB/s each, and each of 2,048 must give 0.04614 GB/s: 13.31 % short."
    )


def test_more_nodes_than_105_percent_can_miss_but_not_meet() -> None:
    # 4,096 nodes with 120 GB/s together give 0.029 each, and 0.046 is needed.
    short = target_of(report_on(scenario(), run(measurements=[ior(120.0, nodes=4096)])), WRITE)
    assert (short.status, short.basis) == (Status.MISSED, Basis.PER_NODE_LARGER_RUN)
    assert short.per_node_measured == pytest.approx(0.029296875)
    assert short.measured == pytest.approx(60.0)
    assert short.ratio == pytest.approx(0.6349206349206349)
    enough = target_of(report_on(scenario(), run(measurements=[ior(240.0, nodes=4096)])), WRITE)
    assert enough.status is Status.NOT_COMPARABLE
    assert enough.ratio == pytest.approx(1.2698412698412698)


def test_an_unknown_node_count_compares_with_nothing() -> None:
    report = report_on(scenario(), run(measurements=[ior(10.0, nodes=None)]))
    write, node = target_of(report, WRITE), target_of(report, NODE_WRITE)
    assert (write.status, write.measured, write.nodes, write.basis) == (
        Status.NOT_COMPARABLE,
        10.0,
        None,
        None,
    )
    assert "unknown number of nodes" in write.reason
    # What one node gave is unknown, so it is absent, not the aggregate and not zero.
    assert (node.status, node.measured, node.ratio) == (Status.NOT_COMPARABLE, None, None)
    assert report.verdict.outcome is Outcome.UNPROVEN


# Doubts


def test_a_missing_fsync_cannot_meet_a_write_target_and_says_nothing_about_reads() -> None:
    both = [ior(100.0), ior(50.0, operation=Operation.READ)]
    report = report_on(scenario(), run(measurements=both, doubts=[doubt(DoubtCode.NO_FSYNC)]))
    write, read = target_of(report, WRITE), target_of(report, READ)
    assert write.status is Status.NOT_COMPARABLE
    assert codes(write) == [DoubtCode.NO_FSYNC]
    assert "There is no_fsync." in write.reason
    assert (read.status, codes(read)) == (Status.MET, [])


@pytest.mark.parametrize("code", [DoubtCode.NO_FSYNC, DoubtCode.FSYNC_IGNORED, DoubtCode.FSYNC_UNKNOWN])
def test_a_doubt_that_flatters_does_not_excuse_a_miss(code: DoubtCode) -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(80.0)], doubts=[doubt(code)])), WRITE)
    assert (write.status, codes(write)) == (Status.MISSED, [code])


def test_a_flattered_smaller_run_is_not_comparable_either() -> None:
    flattered = run(measurements=[ior(1.0, nodes=16)], doubts=[doubt(DoubtCode.NO_FSYNC)])
    assert target_of(report_on(scenario(), flattered), WRITE).status is Status.NOT_COMPARABLE


def test_a_cached_read_cannot_meet_and_leaves_the_write_alone() -> None:
    both = [ior(100.0), ior(500.0, operation=Operation.READ)]
    report = report_on(scenario(), run(measurements=both, doubts=[doubt(DoubtCode.CACHED_READ, 1)]))
    assert target_of(report, READ).status is Status.NOT_COMPARABLE
    assert target_of(report, NODE_READ).status is Status.NOT_COMPARABLE
    assert target_of(report, WRITE).status is Status.MET
    slow = run(measurements=[ior(40.0, operation=Operation.READ)], doubts=[doubt(DoubtCode.CACHED_READ)])
    assert target_of(report_on(scenario(), slow), READ).status is Status.MISSED


def test_a_doubt_about_one_measurement_touches_only_that_one() -> None:
    tests = [ior(100.0, nodes=2048), ior(99.0, nodes=2048)]
    write = target_of(
        report_on(scenario(), run(measurements=tests, doubts=[doubt(DoubtCode.NO_FSYNC, 1)])), WRITE
    )
    assert (write.status, write.measured, codes(write)) == (Status.MET, 100.0, [])


@pytest.mark.parametrize(
    "code", [DoubtCode.DATA_VERIFICATION_FAILED, DoubtCode.IO500_INVALID, DoubtCode.INCOMPLETE_RUN]
)
@pytest.mark.parametrize("rate", [50.0, 150.0])
def test_a_voided_run_proves_nothing_either_way(code: DoubtCode, rate: float) -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(rate)], doubts=[doubt(code)])), WRITE)
    assert (write.status, write.measured) == (Status.NOT_COMPARABLE, rate)
    assert "proves nothing" in write.reason


@pytest.mark.parametrize("code", [DoubtCode.FEW_REPETITIONS, DoubtCode.WIDE_SPREAD, DoubtCode.STRAGGLER])
def test_other_doubts_are_shown_and_change_nothing(code: DoubtCode) -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(100.0)], doubts=[doubt(code)])), WRITE)
    assert (write.status, codes(write)) == (Status.MET, [code])


def test_evidence_for_an_older_revision_counts_with_a_doubt() -> None:
    report = report_on(scenario(), run(measurements=[ior(100.0)], revision=2), revision=3)
    write = target_of(report, WRITE)
    assert (write.status, codes(write)) == (Status.MET, [DoubtCode.OLDER_REVISION])
    assert "revision 2" in write.doubts[0].message
    same = report_on(scenario(), run(measurements=[ior(100.0)], revision=3), revision=3)
    assert codes(target_of(same, WRITE)) == []


# Which evidence


def test_runs_that_contradict_each_other_are_doubted_and_the_newest_decides() -> None:
    report = report_on(
        scenario(),
        run(number=1, day=1, measurements=[ior(100.0)]),
        run(number=2, day=2, measurements=[ior(80.0)]),
    )
    write = target_of(report, WRITE)
    assert (write.status, write.run_ids, codes(write)) == (
        Status.MISSED,
        [UUID(int=2)],
        [DoubtCode.RUNS_DISAGREE],
    )
    assert str(UUID(int=1)) in write.doubts[0].message


def test_an_unusable_run_disagrees_with_nobody() -> None:
    report = report_on(
        scenario(),
        run(number=1, day=1, measurements=[ior(100.0)], doubts=[doubt(DoubtCode.NO_FSYNC)]),
        run(number=2, day=2, measurements=[ior(80.0)]),
    )
    assert codes(target_of(report, WRITE)) == []


def _chosen(*runs: BenchmarkRun) -> int:
    return target_of(report_on(scenario(), *runs), WRITE).run_ids[0].int


@pytest.mark.parametrize("order", [lambda runs: runs, lambda runs: runs[::-1]])
def test_the_best_evidence_is_reported_whatever_the_order(
    order: Callable[[list[BenchmarkRun]], list[BenchmarkRun]],
) -> None:
    void = [doubt(DoubtCode.INCOMPLETE_RUN)]
    usable_before_unusable = [
        run(number=1, day=1, measurements=[ior(1.0, nodes=16)]),
        run(number=2, day=2, measurements=[ior(100.0)], doubts=void),
    ]
    assert _chosen(*order(usable_before_unusable)) == 1
    full_scale_before_newer = [
        run(number=1, day=1, measurements=[ior(100.0)]),
        run(number=2, day=2, measurements=[ior(0.6, nodes=16)]),
    ]
    assert _chosen(*order(full_scale_before_newer)) == 1
    by_ran_at_before_received_at = [
        run(number=1, day=1, ran_day=20, measurements=[ior(100.0)]),
        run(number=2, day=10, measurements=[ior(101.0)]),
    ]
    assert _chosen(*order(by_ran_at_before_received_at)) == 1
    most_nodes = [
        run(number=1, day=1, measurements=[ior(100.0, nodes=2000)]),
        run(number=2, day=1, measurements=[ior(98.0, nodes=1999)]),
    ]
    assert _chosen(*order(most_nodes)) == 1
    worst = [
        run(number=1, day=1, measurements=[ior(100.0)]),
        run(number=2, day=1, measurements=[ior(98.0)]),
    ]
    assert _chosen(*order(worst)) == 2
    newest_of_the_unusable = [
        run(number=1, day=1, measurements=[ior(100.0)], doubts=void),
        run(number=2, day=2, measurements=[ior(1.0, nodes=16)], doubts=void),
    ]
    assert _chosen(*order(newest_of_the_unusable)) == 2


def test_of_the_tests_in_one_file_the_one_with_most_nodes_then_the_worst_counts() -> None:
    tests = [ior(1.0, nodes=16), ior(100.0, nodes=2000), ior(97.0, nodes=2000)]
    write = target_of(report_on(scenario(), run(measurements=tests)), WRITE)
    assert (write.measured, codes(write)) == (97.0, [])


def test_a_run_under_read_load_counts_for_its_own_target_only() -> None:
    loaded = run(number=3, measurements=[ior(25.0)], conditions=[Condition.UNDER_READ_LOAD])
    report = report_on(async_scenario(), loaded)
    own = target_of(report, TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)
    assert (own.status, own.value, own.measured) == (Status.MET, 23.625, 25.0)
    assert target_of(report, WRITE).status is Status.UNMEASURED
    idle = run(number=4, measurements=[ior(30.0)], conditions=[Condition.IDLE])
    report = report_on(async_scenario(), idle)
    assert target_of(report, TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD).status is Status.UNMEASURED
    assert target_of(report, WRITE).measured == 30.0


def test_a_degraded_run_counts_only_when_asked_for() -> None:
    degraded = run(measurements=[ior(50.0)], conditions=[Condition.DEGRADED])
    both = run(measurements=[ior(20.0)], conditions=[Condition.DEGRADED, Condition.UNDER_READ_LOAD])
    assert target_of(report_on(scenario(), degraded), WRITE).status is Status.UNMEASURED
    asked = report_on(scenario(), degraded, conditions=[Condition.DEGRADED])
    assert target_of(asked, WRITE).status is Status.MISSED
    own = TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD
    assert target_of(report_on(async_scenario(), both), own).status is Status.UNMEASURED
    asked = report_on(async_scenario(), both, conditions=[Condition.DEGRADED])
    assert target_of(asked, own).status is Status.MISSED


def test_a_report_is_about_the_storage_of_the_newest_run_unless_another_is_named() -> None:
    runs = [
        run(number=1, day=1, measurements=[ior(100.0)], label="pfs-a"),
        run(number=2, day=2, measurements=[ior(50.0)], label="pfs-b"),
    ]
    report = report_on(scenario(), *runs)
    assert (report.storage_label, report.runs_considered) == ("pfs-b", 1)
    assert target_of(report, WRITE).measured == 50.0
    named = judge(
        spec=scenario(),
        sizing=size(scenario()),
        scenario_id=SCENARIO_ID,
        scenario_revision=1,
        runs=runs,
        storage_label="pfs-a",
    )
    assert target_of(named, WRITE).measured == 100.0
    assert (newest_label([]), newest_label(runs[:1])) == (None, "pfs-a")


# Create rates and sizes


def test_a_create_rate_is_never_multiplied() -> None:
    # 16,385 files in 60 s are 273.08 a second.
    def creates(rate: float, nodes: int) -> tuple[Status, float | None, float | None]:
        report = report_on(scenario(), run(measurements=[mdtest(rate, nodes=nodes)]))
        target = target_of(report, TargetId.FILE_CREATE_RATE)
        return target.status, target.measured, target.per_node_measured

    assert creates(300.0, 16) == (Status.MET_IF_IT_SCALES, 300.0, None)
    assert creates(200.0, 16) == (Status.NOT_COMPARABLE, 200.0, None)
    assert creates(300.0, 2048) == (Status.MET, 300.0, None)
    assert creates(200.0, 2048) == (Status.MISSED, 200.0, None)
    assert creates(200.0, 4096) == (Status.MISSED, 200.0, None)
    assert creates(300.0, 4096) == (Status.NOT_COMPARABLE, 300.0, None)


def test_a_checkpoint_is_held_against_its_size_at_full_scale_only() -> None:
    def judged(checkpoint_bytes: float, nodes: int = 2048) -> tuple[Status, float]:
        save = dcp(DcpOp.SAVE, seconds=50.0, nodes=nodes, checkpoint_bytes=round(checkpoint_bytes))
        target = target_of(report_on(scenario(), run(operations=[save])), TargetId.CHECKPOINT_BYTES)
        assert target.ratio is not None
        return target.status, round(target.ratio, 9)

    assert judged(5.67e12) == (Status.MET, 1.0)
    assert judged(5.67e12 * 1.05) == (Status.MET, 1.05)
    assert judged(5.67e12 * 1.06) == (Status.MISSED, 1.06)
    assert judged(5.67e12 * 0.94) == (Status.MISSED, 0.94)
    assert judged(5.67e12 / 128, nodes=16) == (Status.NOT_COMPARABLE, 0.0078125)


def test_a_size_is_not_flattered_by_what_flatters_a_speed() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=5_670_000_000_000, bytes_total=5_670_000_000_000)
    doubts = [doubt(DoubtCode.NO_FSYNC), doubt(DoubtCode.PARTIAL_RANKS)]
    report = report_on(scenario(), run(operations=[save], doubts=doubts))
    assert target_of(report, TargetId.CHECKPOINT_BYTES).status is Status.MET
    assert target_of(report, WRITE).status is Status.NOT_COMPARABLE


def test_the_size_furthest_off_counts() -> None:
    saves = [
        dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=total)
        for total in (5_670_000_000_000, 4_000_000_000_000)
    ]
    size_target = target_of(report_on(scenario(), run(operations=saves)), TargetId.CHECKPOINT_BYTES)
    assert (size_target.status, size_target.measured) == (Status.MISSED, 4e12)


# Times


def _writer(
    *, seconds: float, nodes: int = 16, ranks_per_node: int = 8, bytes_of_a_shard: float = 1.0
) -> tuple[Status, Basis | None]:
    measurement = ior(
        1.0,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        block_bytes=round(SHARD_BYTES * bytes_of_a_shard),
        total_seconds=[seconds - 1.0, seconds],
    )
    target = target_of(
        report_on(scenario(), run(measurements=[measurement])), TargetId.SLOWEST_WRITER_SECONDS
    )
    assert target.measured == seconds
    return target.status, target.basis


def test_a_time_of_like_load_is_compared_as_it_is_and_never_scaled() -> None:
    assert _writer(seconds=50.0) == (Status.MET_IF_IT_SCALES, Basis.DIRECT)
    assert _writer(seconds=61.0) == (Status.MISSED, Basis.DIRECT)
    assert _writer(seconds=50.0, nodes=2048) == (Status.MET, Basis.FULL_SCALE)
    assert _writer(seconds=61.0, nodes=2048) == (Status.MISSED, Basis.FULL_SCALE)
    assert _writer(seconds=61.0, nodes=4096) == (Status.MISSED, Basis.DIRECT)
    assert _writer(seconds=50.0, nodes=4096) == (Status.NOT_COMPARABLE, Basis.DIRECT)


def test_bytes_within_a_tenth_of_the_largest_shard_are_like_it() -> None:
    assert _writer(seconds=61.0, bytes_of_a_shard=1.09) == (Status.MISSED, Basis.DIRECT)
    assert _writer(seconds=50.0, bytes_of_a_shard=0.91) == (Status.MET_IF_IT_SCALES, Basis.DIRECT)


def test_more_bytes_or_ranks_can_only_prove_that_a_time_is_met() -> None:
    heavier = Basis.HEAVIER_LOAD
    assert _writer(seconds=50.0, bytes_of_a_shard=1.5) == (Status.MET_IF_IT_SCALES, heavier)
    assert _writer(seconds=50.0, bytes_of_a_shard=1.5, nodes=2048) == (Status.MET, heavier)
    assert _writer(seconds=61.0, bytes_of_a_shard=1.5) == (Status.NOT_COMPARABLE, heavier)
    assert _writer(seconds=50.0, ranks_per_node=9) == (Status.MET_IF_IT_SCALES, heavier)
    assert _writer(seconds=61.0, ranks_per_node=9) == (Status.NOT_COMPARABLE, heavier)


def test_fewer_bytes_or_ranks_can_only_prove_that_a_time_is_missed() -> None:
    lighter = Basis.LIGHTER_LOAD
    assert _writer(seconds=61.0, bytes_of_a_shard=0.5) == (Status.MISSED, lighter)
    assert _writer(seconds=50.0, bytes_of_a_shard=0.5) == (Status.NOT_COMPARABLE, lighter)
    assert _writer(seconds=61.0, ranks_per_node=1) == (Status.MISSED, lighter)
    assert _writer(seconds=50.0, ranks_per_node=1) == (Status.NOT_COMPARABLE, lighter)


@pytest.mark.parametrize("seconds", [50.0, 61.0])
def test_a_load_lighter_in_one_way_and_heavier_in_another_proves_nothing(seconds: float) -> None:
    assert _writer(seconds=seconds, ranks_per_node=1, bytes_of_a_shard=8.0) == (
        Status.NOT_COMPARABLE,
        Basis.UNLIKE_LOAD,
    )


def test_a_time_whose_load_is_unknown_proves_nothing() -> None:
    bare = Measurement(
        operation=Operation.WRITE,
        nodes=16,
        ranks=128,
        repetitions=[],
        total_seconds=ior(1.0, total_seconds=[99.0]).total_seconds,
    )
    target = target_of(report_on(scenario(), run(measurements=[bare])), TargetId.SLOWEST_WRITER_SECONDS)
    assert (target.status, target.measured) == (Status.NOT_COMPARABLE, 99.0)


def test_a_block_smaller_than_the_shard_is_doubted_for_times_only() -> None:
    measurement = ior(50.0, block_bytes=SHARD_BYTES // 2, total_seconds=[70.0])
    report = report_on(scenario(), run(measurements=[measurement]))
    assert codes(target_of(report, TargetId.SLOWEST_WRITER_SECONDS)) == [DoubtCode.BLOCK_SMALLER_THAN_SHARD]
    assert codes(target_of(report, WRITE)) == []


def test_a_parallel_layout_moves_the_shard_that_times_are_held_against() -> None:
    model = {"preset": "llama-3-405b"}
    layout = {"tensor": 8, "pipeline": 32}
    even = scenario(model=model, cluster={"gpus": 512})
    laid = scenario(model=model, cluster={"gpus": 512, "parallelism": layout})
    mean, largest = 11_097_553_600, 14_852_161_536
    writer = TargetId.SLOWEST_WRITER_SECONDS

    def judged(spec: ScenarioSpec, block_bytes: int, seconds: float) -> tuple[Status, list[DoubtCode]]:
        measurement = ior(100.0, nodes=64, block_bytes=block_bytes, total_seconds=[seconds])
        target = target_of(report_on(spec, run(measurements=[measurement])), writer)
        return target.status, codes(target)

    assert judged(even, mean, 50.0) == (Status.MET, [])
    assert judged(laid, mean, 50.0) == (Status.NOT_COMPARABLE, [DoubtCode.BLOCK_SMALLER_THAN_SHARD])
    assert judged(laid, mean, 70.0) == (Status.MISSED, [DoubtCode.BLOCK_SMALLER_THAN_SHARD])
    assert judged(laid, largest, 50.0) == (Status.MET, [])
    assert "14.85 GB" in next(each for each in size(laid).targets if each.id is writer).why


def test_a_parallel_layout_says_how_often_a_load_reads_what_it_does_not_say_itself() -> None:
    laid = scenario(
        model={"preset": "llama-3-405b"}, cluster={"gpus": 512, "parallelism": {"tensor": 8, "pipeline": 32}}
    )
    load = dcp(DcpOp.LOAD, nodes=64, seconds=100.0, checkpoint_bytes=5_681_947_443_200)
    read = target_of(report_on(laid, run(operations=[load])), READ)
    assert read.measured == pytest.approx(56.819 * 16 / 14, rel=1e-3)


def test_ranks_that_write_nothing_have_no_counterpart_in_a_benchmark() -> None:
    # One writer a node holds eight times the even shard; the benchmark has one rank a node then.
    spec = scenario(shards={"writers": 2048})
    shard = 8 * SHARD_BYTES
    one = ior(100.0, ranks_per_node=1, block_bytes=shard, total_seconds=[50.0])
    eight = ior(100.0, ranks_per_node=8, block_bytes=shard, total_seconds=[70.0])
    writer = TargetId.SLOWEST_WRITER_SECONDS
    assert target_of(report_on(spec, run(measurements=[one])), writer).status is Status.MET
    assert target_of(report_on(spec, run(measurements=[eight])), writer).status is Status.NOT_COMPARABLE


def _load_status(
    seconds: float, *, nodes: int = 2048, bytes_total: int | None = None, checkpoint_bytes: int | None = None
) -> tuple[Status, Basis | None]:
    load = dcp(
        DcpOp.LOAD, seconds=seconds, nodes=nodes, bytes_total=bytes_total, checkpoint_bytes=checkpoint_bytes
    )
    target = target_of(report_on(scenario(), run(operations=[load])), TargetId.LOAD_SECONDS)
    return target.status, target.basis


def test_a_load_is_compared_by_the_bytes_of_all_ranks() -> None:
    whole = 5_670_000_000_000
    assert _load_status(110.0, bytes_total=whole) == (Status.MET, Basis.FULL_SCALE)
    assert _load_status(130.0, bytes_total=whole) == (Status.MISSED, Basis.FULL_SCALE)
    assert _load_status(110.0, bytes_total=whole * 2) == (Status.MET, Basis.HEAVIER_LOAD)
    assert _load_status(130.0, bytes_total=whole * 2) == (Status.NOT_COMPARABLE, Basis.HEAVIER_LOAD)
    assert _load_status(110.0, bytes_total=whole // 2) == (Status.NOT_COMPARABLE, Basis.LIGHTER_LOAD)
    assert _load_status(130.0, bytes_total=whole // 2) == (Status.MISSED, Basis.LIGHTER_LOAD)
    # Bytes read are often not to be seen: then the checkpoint's size stands for them.
    assert _load_status(110.0, checkpoint_bytes=whole) == (Status.MET, Basis.FULL_SCALE)
    assert _load_status(110.0) == (Status.NOT_COMPARABLE, Basis.UNLIKE_LOAD)
    # A job on 16 nodes with its own small checkpoint.
    assert _load_status(5.0, nodes=16, bytes_total=whole // 128) == (
        Status.NOT_COMPARABLE,
        Basis.LIGHTER_LOAD,
    )
    assert _load_status(110.0, nodes=1024, bytes_total=whole) == (Status.MET_IF_IT_SCALES, Basis.DIRECT)


def test_a_resharded_load_has_its_own_target() -> None:
    load = dcp(DcpOp.RESHARDED_LOAD, seconds=140.0, bytes_total=5_670_000_000_000)
    report = report_on(scenario(), run(operations=[load]))
    assert target_of(report, TargetId.RESHARDED_LOAD_SECONDS).status is Status.MISSED
    assert target_of(report, TargetId.LOAD_SECONDS).status is Status.UNMEASURED
    # The bandwidth it read with stands in for that of a plain load, 5,670 GB in 140 s.
    assert target_of(report, READ).measured == pytest.approx(40.5)
    plain = dcp(DcpOp.LOAD, seconds=105.0, bytes_total=5_670_000_000_000)
    report = report_on(scenario(), run(operations=[load, plain]))
    assert target_of(report, READ).measured == pytest.approx(54.0)


# DCP


def test_the_rate_of_dcp_saves_is_all_bytes_over_all_seconds_without_warm_up_and_failures() -> None:
    whole = 5_670_000_000_000
    saves = [
        dcp(DcpOp.SAVE, seconds=600.0, bytes_total=whole, blocked_seconds=600.0, warmup=True),
        dcp(DcpOp.SAVE, seconds=40.0, bytes_total=whole, blocked_seconds=40.0),
        dcp(DcpOp.SAVE, seconds=60.0, bytes_total=whole, blocked_seconds=60.0),
        dcp(DcpOp.SAVE, seconds=900.0, bytes_total=whole, blocked_seconds=900.0, status="failed"),
    ]
    report = report_on(scenario(), run(operations=saves, doubts=[doubt(DoubtCode.INCOMPLETE_RUN, 3)]))
    write = target_of(report, WRITE)
    assert write.status is Status.MET
    assert write.measured == pytest.approx(113.4)  # 11,340 GB in 100 s; the mean of the rates is 118.1
    assert write.measured_min == pytest.approx(94.5)
    assert write.measured_max == pytest.approx(141.75)
    blocking = target_of(report, TargetId.BLOCKING_SECONDS)
    assert (blocking.status, blocking.measured, blocking.measured_min) == (Status.MET, 60.0, 40.0)


def test_a_doubt_about_one_of_the_operations_touches_the_run_figure() -> None:
    saves = [dcp(DcpOp.SAVE, seconds=50.0, bytes_total=5_670_000_000_000) for _ in range(3)]
    report = report_on(scenario(), run(operations=saves, doubts=[doubt(DoubtCode.PARTIAL_RANKS, 1)]))
    assert target_of(report, WRITE).status is Status.NOT_COMPARABLE


def test_sync_saves_say_nothing_about_async_ones_and_the_reverse() -> None:
    whole = 5_670_000_000_000
    sync = run(operations=[dcp(DcpOp.SAVE, seconds=50.0, bytes_total=whole, blocked_seconds=50.0)])
    drained = dcp(
        DcpOp.ASYNC_SAVE, seconds=205.0, bytes_total=whole, blocked_seconds=5.0, drain_seconds=200.0,
        durable_lag_seconds=200.0,
    )  # fmt: skip
    for spec, other in ((async_scenario(), sync), (scenario(), run(operations=[drained]))):
        report = report_on(spec, other)
        assert target_of(report, WRITE).status is Status.UNMEASURED
        assert target_of(report, TargetId.BLOCKING_SECONDS).status is Status.UNMEASURED


def test_an_async_save_gives_stall_lag_writer_and_persist_bandwidth() -> None:
    save = dcp(
        DcpOp.ASYNC_SAVE,
        seconds=258.0,
        bytes_total=5_670_000_000_000,
        largest_rank_bytes=SHARD_BYTES,
        blocked_seconds=8.0,
        drain_seconds=225.0,
        durable_lag_seconds=250.0,
        io_seconds_max=200.0,
    )
    report = report_on(async_scenario(), run(operations=[save, save, save]))
    found = {
        target.id: (target.status, target.value, target.measured)
        for target in report.targets
        if target.status is not Status.UNMEASURED
    }
    assert found == {
        WRITE: (Status.MET, 23.625, pytest.approx(25.2)),
        NODE_WRITE: (Status.MET, 0.01153564453125, pytest.approx(0.0123046875)),
        TargetId.SLOWEST_WRITER_SECONDS: (Status.MET, 240.0, 200.0),
        TargetId.BLOCKING_SECONDS: (Status.MISSED, 5.0, 8.0),
        TargetId.PERSIST_SECONDS: (Status.MISSED, 240.0, 250.0),
    }
    assert report.verdict.decided_by is TargetId.BLOCKING_SECONDS  # 1.6 times too long, against 1.04
    assert "8 s where at most 5 s" in report.verdict.sentence


def test_without_bytes_read_the_scenarios_amplification_turns_the_effective_rate() -> None:
    spec = scenario(restore={"target_seconds": 120, "read_amplification": 1.5})
    loads = [
        dcp(DcpOp.LOAD, seconds=seconds, checkpoint_bytes=5_670_000_000_000) for seconds in (100.0, 80.0)
    ]
    read = target_of(report_on(spec, run(operations=loads)), READ)
    assert read.value == pytest.approx(70.875)
    assert read.measured == pytest.approx(94.5)  # 11,340 GB in 180 s are 63, and half as much again
    assert read.measured_min == pytest.approx(85.05)
    assert read.measured_max == pytest.approx(106.3125)
    assert read.status is Status.MET


def _one_node_runs(slower: float) -> list[BenchmarkRun]:
    whole, share = 14_000_000_000, 1_750_000_000
    save = dcp(
        DcpOp.SAVE,
        seconds=8.0 * slower,
        nodes=1,
        bytes_total=whole,
        checkpoint_bytes=whole,
        largest_rank_bytes=share,
        blocked_seconds=8.0 * slower,
        io_seconds_max=7.0 * slower,
    )
    load = dcp(DcpOp.LOAD, seconds=16.0 * slower, nodes=1, bytes_total=whole, checkpoint_bytes=whole)
    resharded = dcp(DcpOp.RESHARDED_LOAD, seconds=18.0 * slower, nodes=1, bytes_total=whole)
    return [
        run(number=1, operations=[save, save, save, load, load, load, resharded]),
        run(number=2, measurements=[mdtest(2.0 / slower, nodes=1)]),
    ]


def test_one_dcp_document_and_one_mdtest_cover_a_one_node_cluster() -> None:
    report = report_on(one_node_scenario(), *_one_node_runs(1.0))
    assert {target.id: (target.status, target.measured) for target in report.targets} == {
        WRITE: (Status.MET, pytest.approx(1.75)),
        NODE_WRITE: (Status.MET, pytest.approx(1.75)),
        TargetId.SLOWEST_WRITER_SECONDS: (Status.MET, 7.0),
        TargetId.BLOCKING_SECONDS: (Status.MET, 8.0),
        READ: (Status.MET, pytest.approx(0.875)),
        NODE_READ: (Status.MET, pytest.approx(0.875)),
        TargetId.LOAD_SECONDS: (Status.MET, 16.0),
        TargetId.RESHARDED_LOAD_SECONDS: (Status.MET, 18.0),
        TargetId.FILE_CREATE_RATE: (Status.MET, 2.0),
        TargetId.CHECKPOINT_BYTES: (Status.MET, 14e9),
    }
    assert report.verdict.outcome is Outcome.MEETS
    assert report.verdict.decided_by is TargetId.RESHARDED_LOAD_SECONDS
    assert report.verdict.sentence == (
        "Storage pfs-a meets all 10 targets, most narrowly the time of a resharded load: "
        "18 s where at most 20 s is needed."
    )


def test_a_one_node_cluster_three_times_too_slow_misses_all_but_the_size() -> None:
    report = report_on(one_node_scenario(), *_one_node_runs(3.0))
    missed = [target.id for target in report.targets if target.status is Status.MISSED]
    assert missed == [target.id for target in report.targets if target.id is not TargetId.CHECKPOINT_BYTES]
    assert report.verdict.outcome is Outcome.FALLS_SHORT


def test_a_cluster_smaller_than_its_node_is_like_itself() -> None:
    spec = scenario(
        model={"parameters": 1_000_000_000},
        cluster={"gpus": 4, "gpus_per_node": 8},
        failures={"mtbf_hours": 1000},
        save={"mode": "sync", "blocking_seconds": 10},
    )
    save = dcp(DcpOp.SAVE, seconds=9.0, nodes=1, ranks=4, bytes_total=14_000_000_000, blocked_seconds=9.0)
    blocking = target_of(report_on(spec, run(operations=[save])), TargetId.BLOCKING_SECONDS)
    assert (blocking.status, blocking.basis) == (Status.MET, Basis.FULL_SCALE)


def test_the_last_node_need_not_be_full() -> None:
    # 12 GPUs are a full node and a half one: six ranks a node on average.
    spec = scenario(
        model={"parameters": 1_000_000_000},
        cluster={"gpus": 12, "gpus_per_node": 8},
        failures={"mtbf_hours": 1000},
        save={"mode": "sync", "blocking_seconds": 10},
    )
    share = 14_000_000_000 // 12
    for nodes, ranks, basis in ((2, 12, Basis.FULL_SCALE), (1, 8, Basis.DIRECT)):
        save = dcp(
            DcpOp.SAVE, seconds=9.0, nodes=nodes, ranks=ranks, blocked_seconds=9.0, largest_rank_bytes=share
        )
        blocking = target_of(report_on(spec, run(operations=[save])), TargetId.BLOCKING_SECONDS)
        assert blocking.basis is basis, nodes


def test_the_reason_of_an_unlike_load_says_what_is_unlike() -> None:
    load = dcp(DcpOp.RESHARDED_LOAD, seconds=140.0, bytes_total=11_340_000_000_000)
    target = target_of(report_on(scenario(), run(operations=[load])), TargetId.RESHARDED_LOAD_SECONDS)
    assert target.reason == (
        "The time of a resharded load was 140 s on 2,048 nodes, for 11.34 TB where the scenario loads 5.67 TB; "
        "at most 120 s is needed, and a heavier load can only prove that it is met."
    )
    light = ior(1.0, nodes=16, ranks_per_node=4, total_seconds=[50.0])
    target = target_of(report_on(scenario(), run(measurements=[light])), TargetId.SLOWEST_WRITER_SECONDS)
    assert target.reason == (
        "The time of the slowest writer was 50 s on 16 of 2,048 nodes, with 4 ranks a node and 346.1 MB a rank, "
        "where the scenario has 8 and up to 346.1 MB; at most 60 s is needed, and a lighter load can only prove "
        "that it is missed."
    )


def test_the_reason_of_a_size_names_its_tolerance() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=6_615_000_000_000)
    target = target_of(report_on(scenario(), run(operations=[save])), TargetId.CHECKPOINT_BYTES)
    assert target.reason == (
        "The size of a checkpoint was 6.615 TB on 2,048 nodes; within 5 % of 5.67 TB is needed: 16.67 % more."
    )


def test_a_save_whose_bytes_are_known_by_the_checkpoint_alone_has_its_load() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, blocked_seconds=50.0, checkpoint_bytes=5_670_000_000_000)
    bare = dcp(DcpOp.SAVE, seconds=50.0, blocked_seconds=50.0)
    for operation, status in ((save, Status.MET), (bare, Status.NOT_COMPARABLE)):
        target = target_of(report_on(scenario(), run(operations=[operation])), TargetId.BLOCKING_SECONDS)
        assert (target.status, target.measured) == (status, 50.0)


def test_a_create_rate_that_is_flattered_says_so_and_not_that_it_is_a_size() -> None:
    unsynced = [doubt(DoubtCode.NO_FSYNC, measurement=0)]
    report = report_on(scenario(), run(measurements=[mdtest(10_000.0, nodes=2)], doubts=unsynced))
    target = target_of(report, TargetId.FILE_CREATE_RATE)
    assert target.status is Status.NOT_COMPARABLE
    assert "can only be worse" in target.reason


def test_doubts_are_looked_up_by_measurement_and_keep_the_order_of_the_run() -> None:
    about = [doubt(DoubtCode.WIDE_SPREAD, 1), doubt(DoubtCode.FEW_REPETITIONS), doubt(DoubtCode.STRAGGLER, 0)]
    report = report_on(scenario(), run(measurements=[ior(90.0, nodes=16), ior(99.0)], doubts=about))
    assert codes(target_of(report, WRITE)) == [DoubtCode.WIDE_SPREAD, DoubtCode.FEW_REPETITIONS]


def test_of_differential_saves_the_largest_is_a_full_one() -> None:
    spec = scenario(model={"parameters": 405_000_000_000, "differential_fraction": 0.1, "full_every": 10})
    sizes = [5_670_000_000_000, 567_000_000_000, 567_000_000_000]
    saves = [dcp(DcpOp.SAVE, seconds=None, checkpoint_bytes=each) for each in sizes]
    target = target_of(report_on(spec, run(operations=saves)), TargetId.CHECKPOINT_BYTES)
    assert (target.status, target.measured) == (Status.MET, 5_670_000_000_000)


# Fewer writers than nodes


def test_where_every_writer_took_part_nothing_is_left_to_scale() -> None:
    # 1,024 writers of 5.54 GB on 2,048 nodes: a benchmark of 1,024 ranks on as many nodes is all of them.
    spec = scenario(shards={"writers": 1024})
    shard = 5_537_109_375
    slow = ior(51.1, nodes=1024, ranks_per_node=1, block_bytes=shard, total_seconds=[112.0])
    report = report_on(spec, run(measurements=[slow]))
    write, slowest = target_of(report, WRITE), target_of(report, TargetId.SLOWEST_WRITER_SECONDS)
    assert (write.status, write.measured, write.nodes_fraction) == (Status.MISSED, 51.1, 1.0)
    assert (slowest.status, slowest.measured) == (Status.MISSED, 112.0)
    node = target_of(report, TargetId.NODE_WRITE_BANDWIDTH)
    assert node.value == pytest.approx(94.5 / 1024)
    assert node.status is Status.MISSED
    assert node.measured == pytest.approx(51.1 / 1024)


def test_of_a_checkpointers_nodes_those_without_a_writer_move_nothing() -> None:
    save = dcp(DcpOp.SAVE, seconds=56.0, bytes_total=5_670_000_000_000, blocked_seconds=56.0)
    report = report_on(scenario(shards={"writers": 1024}), run(operations=[save]))
    node = target_of(report, TargetId.NODE_WRITE_BANDWIDTH)
    assert node.status is Status.MET
    assert node.measured == pytest.approx(101.25 / 1024)


def test_half_of_the_writers_are_still_a_smaller_run() -> None:
    spec = scenario(shards={"writers": 1024})
    report = report_on(spec, run(measurements=[ior(50.0, nodes=512, ranks_per_node=1)]))
    write = target_of(report, WRITE)
    assert (write.status, write.measured, write.nodes_fraction) == (Status.MET_IF_IT_SCALES, 100.0, 0.5)
    assert "each of 1,024 must give" in write.reason
