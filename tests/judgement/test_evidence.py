"""Which evidence is chosen, how it stands for its repetitions, and what is said of it."""

from uuid import UUID

import pytest

from service.judgement.evidence import Statistic
from service.judgement.report import Basis, Status
from service.parsers.measurement import DcpOp, DoubtCode, Measurement, Operation, Repetition, Spread
from service.parsers.run import Condition
from service.sizing.sizing import TargetId
from tests.judgement.examples import (
    SHARD_BYTES,
    async_scenario,
    codes,
    dcp,
    doubt,
    ior,
    mdtest,
    report_on,
    run,
    scenario,
    target_of,
)

WRITE, WRITER = TargetId.WRITE_BANDWIDTH, TargetId.SLOWEST_WRITER_SECONDS
WHOLE = 5_670_000_000_000


@pytest.mark.parametrize(
    ("statistic", "measured", "status"),
    [
        (Statistic.MEAN, 95.0, Status.MET),  # (80 + 90 + 115) / 3
        (Statistic.MEDIAN, 90.0, Status.MISSED),
        (Statistic.MIN, 80.0, Status.MISSED),
        (Statistic.MAX, 115.0, Status.MET),
    ],
)
def test_a_rate_is_compared_by_the_statistic_that_was_asked_for(
    statistic: Statistic, measured: float, status: Status
) -> None:
    report = report_on(
        scenario(),
        run(measurements=[ior(80.0, 90.0, 115.0, total_seconds=[40.0, 55.0])]),
        statistic=statistic,
    )
    write = target_of(report, WRITE)
    assert write.measured == pytest.approx(measured)
    assert (write.status, write.statistic) == (status, statistic)
    assert (write.measured_min, write.measured_max) == (80.0, 115.0)
    assert report.evidence.statistic is statistic
    # Times keep the largest.
    writer = target_of(report, WRITER)
    assert (writer.measured, writer.statistic) == (55.0, Statistic.MAX)


def test_a_time_is_compared_by_another_statistic_only_when_it_is_asked_for() -> None:
    saves = [
        dcp(DcpOp.SAVE, seconds=each, blocked_seconds=each, bytes_total=WHOLE, largest_rank_bytes=SHARD_BYTES)
        for each in (50.0, 56.0, 74.0)
    ]
    for statistic, measured in (
        (Statistic.MAX, 74.0),
        (Statistic.MEAN, 60.0),
        (Statistic.MEDIAN, 56.0),
        (Statistic.MIN, 50.0),
    ):
        report = report_on(scenario(), run(operations=saves), time_statistic=statistic)
        blocking = target_of(report, TargetId.BLOCKING_SECONDS)
        assert (blocking.measured, blocking.statistic) == (measured, statistic)
        assert (blocking.measured_min, blocking.measured_max) == (50.0, 74.0)
        assert blocking.status is (Status.MISSED if statistic is Statistic.MAX else Status.MET)
        # The rate stays all bytes over all seconds: 17,010 GB in 180 s.
        assert target_of(report, WRITE).measured == pytest.approx(94.5)


def test_the_rate_of_a_checkpointer_by_another_statistic_is_one_of_its_operations() -> None:
    saves = [dcp(DcpOp.SAVE, seconds=each, bytes_total=WHOLE) for each in (50.0, 60.0, 70.0)]
    for statistic, measured in (
        (Statistic.MEAN, 94.5),  # 17,010 GB in 180 s; the mean of the rates is 96.3
        (Statistic.MEDIAN, 94.5),
        (Statistic.MIN, 81.0),
        (Statistic.MAX, 113.4),
    ):
        write = target_of(report_on(scenario(), run(operations=saves), statistic=statistic), WRITE)
        assert write.measured == pytest.approx(measured), statistic


def test_a_statistic_that_a_file_does_not_tell_is_not_made_up() -> None:
    alone = ior(100.0).model_copy(update={"repetitions": [], "gb_per_second": Spread(mean=100.0)})
    write = target_of(report_on(scenario(), run(measurements=[alone]), statistic=Statistic.MIN), WRITE)
    assert (write.status, write.measured) == (Status.UNMEASURED, None)
    assert write.reason == (
        "No run tells the min of its repetitions for the write bandwidth; at least 94.5 GB/s is needed."
    )


def test_the_report_says_why_it_took_this_evidence() -> None:
    def because(*runs: object, **choice: object) -> str | None:
        return target_of(report_on(scenario(), *runs, **choice), WRITE).chosen_because  # type: ignore[arg-type]

    full = [run(number=each, day=each, measurements=[ior(100.0)]) for each in (1, 2)]
    small = run(number=3, day=3, measurements=[ior(1.0, nodes=16)])
    void = run(number=4, day=4, measurements=[ior(1.0)], doubts=[doubt(DoubtCode.INCOMPLETE_RUN)])
    mean = "compared by the mean of its repetitions."
    assert because() is None
    assert because(full[0]) == f"The only run that has the figure; {mean}"
    assert because(void) == f"The only run that has the figure; {mean}"
    assert because(full[0], small) == (
        f"The only usable run at full scale, of 2 runs that have the figure; {mean}"
    )
    assert because(*full, small, void) == (
        f"The newest of 2 usable runs at full scale, of 4 runs that have the figure; {mean}"
    )
    assert because(small, void) == f"The only usable run, of 2 runs that have the figure; {mean}"
    other = run(number=5, day=5, measurements=[ior(1.0, nodes=16)])
    assert because(small, other) == f"The newest of 2 usable runs, none of them at full scale; {mean}"
    assert because(void, void.model_copy(update={"id": UUID(int=9)})) == (
        f"The newest of 2 runs, none of them usable; {mean}"
    )
    tests = run(measurements=[ior(1.0, nodes=16), ior(100.0), ior(97.0)])
    assert because(tests, statistic=Statistic.MIN) == (
        "The only run that has the figure; of its 3 tests the usable one on most nodes, and of those the worst; "
        "compared by the least of its repetitions."
    )


def test_the_margin_is_positive_on_the_good_side_and_a_fraction_of_the_target() -> None:
    save = dcp(
        DcpOp.SAVE,
        seconds=54.0,
        blocked_seconds=54.0,
        bytes_total=WHOLE,
        checkpoint_bytes=5_839_100_000_000 + 1_000_000_000,  # 5,840.1 GB: 3 % more
        largest_rank_bytes=SHARD_BYTES,
    )
    report = report_on(
        scenario(), run(operations=[save]), run(number=2, measurements=[mdtest(218.4666666667)])
    )
    margins = {target.id: target.margin_fraction for target in report.targets if target.ratio is not None}
    assert margins == {
        WRITE: pytest.approx(1 / 9),  # 105 GB/s over 94.5
        TargetId.NODE_WRITE_BANDWIDTH: pytest.approx(1 / 9),
        TargetId.BLOCKING_SECONDS: pytest.approx(0.1),  # 54 of 60 s
        TargetId.FILE_CREATE_RATE: pytest.approx(-0.2),  # 218.47 of 273.08
        TargetId.CHECKPOINT_BYTES: pytest.approx(0.02),  # of the 5 % that are allowed
    }


def test_a_smaller_run_says_what_fraction_was_tested_and_what_that_has_missed_before() -> None:
    write = target_of(report_on(scenario(), run(measurements=[ior(0.8, nodes=16)])), WRITE)
    assert write.nodes_fraction == 0.0078125
    assert write.experience == (
        "16 of 2,048 nodes were tested, 0.7812 % of them. Experience says that this is not proof: a fault seen in "
        "the field appeared only at 60 nodes, not at four. Repeat it on as many nodes as can be spared."
    )
    # What falls short already needs no warning, and full scale none either.
    short = target_of(report_on(scenario(), run(measurements=[ior(0.1, nodes=16)])), WRITE)
    assert (short.status, short.experience) == (Status.MISSED, None)
    full = target_of(report_on(scenario(), run(measurements=[ior(100.0)])), WRITE)
    assert (full.nodes_fraction, full.experience) == (1.0, None)
    unknown = target_of(report_on(scenario(), run(measurements=[ior(100.0, nodes=None)])), WRITE)
    assert (unknown.nodes_fraction, unknown.experience) == (None, None)


@pytest.mark.parametrize(
    ("per_parameter", "extra", "nearest", "status", "words"),
    [
        (14.0, 0, 14.0, Status.MET, "speaks for the 14 that were assumed"),
        (14.4, 0, 14.0, Status.MET, "speaks for the 14 that were assumed"),
        (12.0, 0, 12.0, Status.MISSED, "speaks for 12 (fp32 weights and two Adam moments), not for the 14"),
        (16.1, 0, 16.0, Status.MISSED, "speaks for 16"),
        (14.0, 20_000_000_000, 14.0, Status.MET, "speaks for the 14"),
        (2.0, 0, 12.0, Status.MISSED, "fits none of 12, 14, 16 and the 14"),
    ],
)
def test_a_checkpoint_speaks_for_one_of_the_recipes(
    per_parameter: float, extra: int, nearest: float, status: Status, words: str
) -> None:
    spec = scenario(model={"parameters": 405_000_000_000, "bytes_per_parameter": 14, "extra_bytes": extra})
    save = dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=round(405e9 * per_parameter) + extra)
    target = target_of(report_on(spec, run(operations=[save])), TargetId.CHECKPOINT_BYTES)
    assert target.status is status
    found = target.bytes_per_parameter
    assert found is not None
    assert found.measured == pytest.approx(per_parameter)
    assert (found.assumed, found.nearest) == (14.0, nearest)
    assert words in found.sentence


def test_a_checkpoint_can_speak_for_the_scenarios_own_bytes_per_parameter() -> None:
    model = {"parameters": 405_000_000_000, "bytes_per_parameter": 10, "reduction_factor": 0.5}
    save = dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=2_000_000_000_000)
    target = target_of(report_on(scenario(model=model), run(operations=[save])), TargetId.CHECKPOINT_BYTES)
    found = target.bytes_per_parameter
    assert found is not None
    # 2 TB over half of 405e9 parameters are 9.88 bytes.
    assert found.measured == pytest.approx(9.876543209876543)
    assert found.nearest == 10.0


def test_a_checkpoint_speaks_for_what_a_recipe_holds_beside_loaders_and_compression() -> None:
    model = {
        "parameters": 405_000_000_000,
        "recipe": "adam_bf16_moments",
        "compression_factor": 0.5,
        "extra_bytes_per_rank": 1_000_000,
    }
    extra = 1_000_000 * scenario().cluster.gpus
    save = dcp(DcpOp.SAVE, seconds=50.0, checkpoint_bytes=2_025_000_000_000 + extra)
    found = target_of(
        report_on(scenario(model=model), run(operations=[save])), TargetId.CHECKPOINT_BYTES
    ).bytes_per_parameter
    assert found is not None
    assert found.measured == pytest.approx(10)
    assert (found.assumed, found.nearest) == (10, 10)


def test_a_checkpoint_of_fewer_nodes_or_a_speed_says_nothing_of_bytes_per_parameter() -> None:
    save = dcp(DcpOp.SAVE, seconds=50.0, nodes=16, checkpoint_bytes=WHOLE, bytes_total=WHOLE)
    report = report_on(scenario(), run(operations=[save]))
    assert all(target.bytes_per_parameter is None for target in report.targets)


def test_the_slowest_ranks_own_time_is_that_of_the_slowest_writer_where_there_is_no_other() -> None:
    def by_rank(*seconds: float) -> Measurement:
        return Measurement(
            operation=Operation.WRITE,
            ranks=16384,
            nodes=2048,
            block_bytes=SHARD_BYTES,
            segments=1,
            repetitions=[
                Repetition(slowest_rank=7, slowest_rank_seconds=each, mean_rank_seconds=30.0)
                for each in seconds
            ],
        )

    writer = target_of(report_on(scenario(), run(measurements=[by_rank(50.0, 66.0, 40.0)])), WRITER)
    assert (writer.status, writer.measured, writer.measured_min) == (Status.MISSED, 66.0, 40.0)
    assert target_of(report_on(scenario(), run(measurements=[by_rank(50.0)])), WRITER).status is Status.MET
    # The end-to-end time of all ranks goes before it.
    both = by_rank(50.0).model_copy(update={"total_seconds": Spread(mean=70.0, max=70.0)})
    assert target_of(report_on(scenario(), run(measurements=[both])), WRITER).measured == 70.0
    # IOR's own file says nothing of the bytes, so it can be held against nothing.
    bare = by_rank(66.0).model_copy(update={"block_bytes": None})
    writer = target_of(report_on(scenario(), run(measurements=[bare])), WRITER)
    assert (writer.status, writer.measured) == (Status.NOT_COMPARABLE, 66.0)
    assert "how much each rank moved is unknown" in writer.reason


def test_a_straggler_is_what_decides_a_stall() -> None:
    # The mean rate reaches 94.5 GB/s, and one rank of one repetition took 120 s.
    slow = ior(90.0, 100.0, 94.0, total_seconds=[55.0, 57.0, 120.0])
    report = report_on(scenario(), run(measurements=[slow], doubts=[doubt(DoubtCode.STRAGGLER)]))
    assert target_of(report, WRITE).status is Status.MET
    writer = target_of(report, WRITER)
    assert (writer.status, writer.measured, writer.ratio) == (Status.MISSED, 120.0, 2.0)
    assert codes(writer) == [DoubtCode.STRAGGLER]
    assert report.verdict.decided_by is WRITER
    # 120 s of each 600 leave 480 of 540 useful seconds: a ninth of the goodput of 0.83 is lost.
    assert report.verdict.items[0].target is WRITER
    assert report.verdict.items[0].goodput_fraction == pytest.approx(-0.8300186509417614 / 9)


def test_a_rate_of_tiny_writes_keeps_its_status_and_says_what_it_is() -> None:
    tiny = ior(50.0, block_bytes=4096)
    write = target_of(report_on(scenario(), run(measurements=[tiny])), WRITE)
    assert (write.status, codes(write)) == (Status.MISSED, [])
    assert write.reason.endswith(
        "Each rank wrote 4,096 bytes where the largest shard has 346.1 MB: that times opening and closing files "
        "rather than writing, so measure again with blocks of a shard."
    )
    # A hundredth of a shard and more is a stream.
    for block, words in ((3_460_693, True), (3_460_694, False)):
        write = target_of(report_on(scenario(), run(measurements=[ior(50.0, block_bytes=block)])), WRITE)
        assert ("Each rank wrote" in write.reason) is words


def test_runs_that_are_left_out_for_their_tag_are_named_where_nothing_else_speaks() -> None:
    degraded = run(number=1, measurements=[ior(50.0)], conditions=[Condition.DEGRADED])
    loaded = run(number=2, measurements=[ior(50.0)], conditions=[Condition.UNDER_READ_LOAD])
    write = target_of(report_on(scenario(), degraded, loaded), WRITE)
    assert write.status is Status.UNMEASURED
    assert write.reason.endswith(
        "Runs tagged degraded and under_read_load have it, and count where they are asked for by conditions."
    )
    report = report_on(
        scenario(), degraded, loaded, conditions=[Condition.DEGRADED, Condition.UNDER_READ_LOAD]
    )
    assert target_of(report, WRITE).status is Status.MISSED
    assert report.evidence.conditions == [Condition.DEGRADED, Condition.UNDER_READ_LOAD]


def test_the_bandwidth_under_read_load_is_a_line_of_its_own_with_its_own_evidence() -> None:
    idle = run(number=1, measurements=[ior(30.0)])
    loaded = run(number=2, day=2, measurements=[ior(20.0)], conditions=[Condition.UNDER_READ_LOAD])
    report = report_on(async_scenario(), idle, loaded)
    found = {
        target.id: (target.status, target.measured, target.run_ids)
        for target in report.targets
        if target.id in (WRITE, TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)
    }
    assert found == {
        WRITE: (Status.MET, 30.0, [UUID(int=1)]),
        TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: (Status.MISSED, 20.0, [UUID(int=2)]),
    }


def test_a_crowd_of_contradicting_runs_is_counted_and_its_newest_named() -> None:
    against = [run(number=each, day=each, measurements=[ior(80.0)]) for each in range(1, 10)]
    write = target_of(
        report_on(scenario(), *against, run(number=99, day=20, measurements=[ior(100.0)])), WRITE
    )
    assert (write.status, write.basis) == (Status.MET, Basis.FULL_SCALE)
    assert codes(write) == [DoubtCode.RUNS_DISAGREE]
    named = [each for each in range(1, 10) if str(UUID(int=each)) in write.doubts[0].message]
    assert named == [5, 6, 7, 8, 9]
    assert "and 4 more" in write.doubts[0].message
