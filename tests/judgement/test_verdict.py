"""What is not met, by what it costs. The outcome, its sentence and its decider are tested with the targets."""

import pytest

from service.judgement.evidence import Statistic
from service.judgement.report import Outcome, Status
from service.parsers.measurement import DcpOp, Operation
from service.sizing.sizing import TargetId
from tests.judgement.examples import SHARD_BYTES, dcp, ior, mdtest, report_on, run, scenario

WHOLE = 5_670_000_000_000


def test_what_is_not_met_is_listed_by_dollars_and_what_nothing_prices_comes_last() -> None:
    report = report_on(
        scenario(),
        # 70.875 s a save; a load of 141.75 s.
        run(number=1, measurements=[ior(80.0), ior(40.0, operation=Operation.READ)]),
        run(number=2, measurements=[mdtest(300.0)]),
    )
    items = report.verdict.items
    assert [(item.target, item.status) for item in items] == [
        (TargetId.WRITE_BANDWIDTH, Status.MISSED),
        (TargetId.NODE_WRITE_BANDWIDTH, Status.MISSED),
        (TargetId.READ_BANDWIDTH, Status.MISSED),
        (TargetId.NODE_READ_BANDWIDTH, Status.MISSED),
        (TargetId.SLOWEST_WRITER_SECONDS, Status.UNMEASURED),
        (TargetId.BLOCKING_SECONDS, Status.UNMEASURED),
        (TargetId.LOAD_SECONDS, Status.UNMEASURED),
        (TargetId.RESHARDED_LOAD_SECONDS, Status.UNMEASURED),
        (TargetId.CHECKPOINT_BYTES, Status.UNMEASURED),
    ]
    # 10.875 s of 540 useful ones; 21.75 s more of restart, exp(-21.75 / 11135.08).
    assert items[0].waste_usd_per_year == pytest.approx(5_637_872.69, abs=0.01)
    assert items[0].goodput_fraction == pytest.approx(-0.016715653387)
    assert items[2].waste_usd_per_year == pytest.approx(546_287.75, abs=0.01)
    assert items[0].sentence == (
        "By the measured write bandwidth alone, a save stops training for 70.88 s in place of 60 s: a loss of "
        "1.672 % of all time, $5,637,873 a year more wasted."
    )
    assert items[4].waste_usd_per_year is None
    assert items[4].sentence.startswith("No run measured the time of the slowest writer")


def test_without_a_price_the_order_is_that_of_the_goodput() -> None:
    slow_read = run(number=1, measurements=[ior(94.0), ior(20.0, operation=Operation.READ)])
    items = report_on(scenario(prices=None), slow_read).verdict.items
    assert [item.target for item in items[:2]] == [TargetId.READ_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH]
    assert all(item.waste_usd_per_year is None for item in items)
    assert "a year" not in items[0].sentence


def test_what_leaves_no_time_to_train_comes_first() -> None:
    # 630 s of writing in an interval of 600; a load that costs any sum.
    stuck = run(measurements=[ior(9.0), ior(0.01, operation=Operation.READ)])
    items = report_on(scenario(), stuck).verdict.items
    assert [item.target for item in items[:3]] == [
        TargetId.WRITE_BANDWIDTH,
        TargetId.NODE_WRITE_BANDWIDTH,
        TargetId.READ_BANDWIDTH,
    ]
    assert items[0].waste_usd_per_year is None
    assert "leaves no time to train" in items[0].sentence


def test_where_all_is_met_there_is_nothing_to_list() -> None:
    spec = scenario(restore=None)
    save = dcp(
        DcpOp.SAVE,
        seconds=50.0,
        bytes_total=WHOLE,
        checkpoint_bytes=WHOLE,
        largest_rank_bytes=SHARD_BYTES,
        blocked_seconds=50.0,
        io_seconds_max=45.0,
    )
    report = report_on(spec, run(number=1, operations=[save]), run(number=2, measurements=[mdtest(300.0)]))
    assert (report.verdict.outcome, report.verdict.items) == (Outcome.MEETS, [])


def test_the_dearest_miss_decides_and_not_the_one_furthest_off() -> None:
    # A resharded load at 1.83 times its target costs less than creates that make a save take 81.9 s.
    loads = [
        dcp(DcpOp.LOAD, seconds=110.0, bytes_total=WHOLE),
        dcp(DcpOp.RESHARDED_LOAD, seconds=220.0, bytes_total=WHOLE),
    ]
    verdict = report_on(
        scenario(), run(number=1, operations=loads), run(number=2, measurements=[mdtest(200.0)])
    ).verdict
    assert verdict.items[0].target is TargetId.FILE_CREATE_RATE
    assert verdict.decided_by is TargetId.FILE_CREATE_RATE
    assert "most of all in the rate of file creates: 200 files/s where" in verdict.sentence
    assert verdict.sentence.endswith("$11,366,470 a year more wasted.")


def test_a_checkpoint_of_another_size_is_a_fault_of_the_scenario_and_not_of_the_storage() -> None:
    # 12 bytes a parameter where 14 were assumed: 4.86 TB.
    held = dcp(DcpOp.SAVE, seconds=None, checkpoint_bytes=4_860_000_000_000)
    alone = report_on(scenario(), run(operations=[held])).verdict
    assert (alone.outcome, alone.decided_by) == (Outcome.FALLS_SHORT, TargetId.CHECKPOINT_BYTES)
    assert alone.sentence.startswith(
        "Storage pfs-a has missed no target of its own, but the scenario does not hold: a checkpoint takes 4.86 TB"
    )
    beside = report_on(
        scenario(), run(number=1, operations=[held]), run(number=2, measurements=[ior(80.0)])
    ).verdict
    assert beside.decided_by is TargetId.WRITE_BANDWIDTH
    assert "falls short on 2 of 10 targets" in beside.sentence
    assert "Besides, a checkpoint takes 4.86 TB" in beside.sentence


def test_a_verdict_on_chosen_repetitions_says_so() -> None:
    uneven = run(measurements=[ior(90.0, 98.0, 103.0, total_seconds=[55.0, 58.0, 80.0])])
    best = report_on(scenario(), uneven, statistic=Statistic.MAX, time_statistic=Statistic.MIN).verdict
    assert best.sentence.endswith(
        " As was asked, this is rates by the largest of their repetitions and times by the least of their repetitions."
    )
    assert "As was asked" not in report_on(scenario(), uneven).verdict.sentence
