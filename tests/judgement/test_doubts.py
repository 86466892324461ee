import pytest

from service.judgement.doubts import FLATTERS, VOIDS
from service.judgement.report import Status
from service.parsers.measurement import DcpOp, DoubtCode, Measurement, Operation, Repetition, spread
from service.sizing.sizing import TargetId
from tests.judgement.examples import codes, dcp, doubt, ior, mdtest, report_on, run, scenario, target_of


def test_a_doubt_flatters_or_voids_or_does_neither() -> None:
    assert {str(code) for code in FLATTERS} == {
        "no_fsync",
        "fsync_ignored",
        "fsync_unknown",
        "cached_read",
        "partial_ranks",
    }
    assert {str(code) for code in VOIDS} == {"data_verification_failed", "io500_invalid", "incomplete_run"}


def _read_status(node_bytes: int, memory_bytes: int) -> tuple[Status, list[DoubtCode]]:
    spec = scenario(cluster={"gpus": 16384, "gpus_per_node": 8, "host_memory_bytes_per_node": memory_bytes})
    measurement = ior(60.0, operation=Operation.READ, block_bytes=node_bytes // 8)
    target = target_of(report_on(spec, run(measurements=[measurement])), TargetId.READ_BANDWIDTH)
    return target.status, codes(target)


def test_a_read_of_less_than_three_times_a_nodes_memory_may_have_read_its_cache() -> None:
    assert _read_status(6_000_000_000, 2_000_000_000) == (Status.MET, [])
    assert _read_status(5_999_999_992, 2_000_000_000) == (Status.NOT_COMPARABLE, [DoubtCode.CACHED_READ])


def test_the_bytes_really_moved_count_against_the_memory_rather_than_the_plan() -> None:
    spec = scenario(cluster={"gpus": 16384, "gpus_per_node": 8, "host_memory_bytes_per_node": 1_000_000_000})
    stopped = Measurement(
        operation=Operation.READ,
        ranks=16384,
        nodes=2048,
        block_bytes=10**12,
        segments=1,
        repetitions=[Repetition(gb_per_second=60.0, bytes=2048 * 10**9, total_seconds=34.0)],
        gb_per_second=spread([60.0]),
    )
    target = target_of(report_on(spec, run(measurements=[stopped])), TargetId.READ_BANDWIDTH)
    assert codes(target) == [DoubtCode.CACHED_READ]
    assert "1,000,000,000 bytes" in target.doubts[0].message


def test_memory_says_nothing_about_writes_nor_about_a_dcp_load() -> None:
    spec = scenario(cluster={"gpus": 16384, "gpus_per_node": 8, "host_memory_bytes_per_node": 10**15})
    load = dcp(DcpOp.LOAD, seconds=100.0, bytes_total=5_670_000_000_000)
    report = report_on(spec, run(number=1, measurements=[ior(100.0)]), run(number=2, operations=[load]))
    assert target_of(report, TargetId.WRITE_BANDWIDTH).status is Status.MET
    assert target_of(report, TargetId.READ_BANDWIDTH).status is Status.MET
    assert target_of(report, TargetId.LOAD_SECONDS).status is Status.MET


def test_a_read_that_its_parser_doubts_is_not_doubted_twice() -> None:
    spec = scenario(cluster={"gpus": 16384, "gpus_per_node": 8, "host_memory_bytes_per_node": 10**15})
    reading = run(measurements=[ior(60.0, operation=Operation.READ)], doubts=[doubt(DoubtCode.CACHED_READ)])
    assert codes(target_of(report_on(spec, reading), TargetId.READ_BANDWIDTH)) == [DoubtCode.CACHED_READ]


@pytest.mark.parametrize(("measurement", "status"), [(None, Status.MET), (0, Status.NOT_COMPARABLE)])
def test_a_missing_fsync_touches_a_create_rate_only_where_it_names_it(
    measurement: int | None, status: Status
) -> None:
    made = run(measurements=[mdtest(300.0)], doubts=[doubt(DoubtCode.NO_FSYNC, measurement)])
    assert target_of(report_on(scenario(), made), TargetId.FILE_CREATE_RATE).status is status


def test_a_load_with_ranks_missing_cannot_meet_its_target() -> None:
    load = dcp(DcpOp.LOAD, seconds=100.0, bytes_total=5_670_000_000_000)
    loading = run(operations=[load], doubts=[doubt(DoubtCode.PARTIAL_RANKS)])
    report = report_on(scenario(), loading)
    assert target_of(report, TargetId.LOAD_SECONDS).status is Status.NOT_COMPARABLE
    assert target_of(report, TargetId.READ_BANDWIDTH).status is Status.NOT_COMPARABLE
