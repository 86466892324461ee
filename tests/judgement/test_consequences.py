"""The figures are worked out by hand from M = 1,296 * 3,600 / 419 = 11,135.0835 s and the exact formula.

With T = 600 s the goodput of the sync scenario is 0.8300186509 at C = 60 and R = 600. It goes with
(T - C) * exp(-(R + D)/M), so every case below is that figure times a ratio. A year of the cluster costs
38,502.4 USD * 8,760 = 337,281,024 USD.
"""

import math

import pytest

from service.judgement.report import Consequence, Consequences, GapReport
from service.parsers.measurement import DcpOp, DoubtCode, Operation
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.sizing import Sizing, TargetId
from service.sizing.spec import ScenarioSpec
from tests.judgement.examples import (
    SHARD_BYTES,
    async_scenario,
    dcp,
    doubt,
    ior,
    mdtest,
    report_on,
    run,
    scenario,
)

WHOLE = 5_670_000_000_000
SYNC_GOODPUT, ASYNC_GOODPUT = 0.8300186509417614, 0.8950565848722251
MTBF_SECONDS = 11135.08353221957


def _consequences(spec: ScenarioSpec, *runs: BenchmarkRun) -> Consequences:
    report: GapReport = report_on(spec, *runs)
    return report.consequences


def _measured(found: Consequences) -> Sizing:
    assert found.measured is not None
    return found.measured


def test_a_slow_write_stalls_longer_and_costs_millions() -> None:
    # 5,670 GB at 80 GB/s take 70.875 s of each 600, so useful time falls from 540 to 529.125 s a period.
    found = _consequences(scenario(), run(measurements=[ior(80.0)]))
    measured = _measured(found)
    assert found.feasible is True
    assert (found.used, found.extrapolated) == ([TargetId.WRITE_BANDWIDTH], [])
    assert found.specified.blocking.seconds == 60.0
    assert measured.blocking.seconds == pytest.approx(70.875)
    assert measured.interval.seconds == 600.0
    assert measured.goodput.exact.goodput_fraction == pytest.approx(0.8133029975547407, rel=1e-9)
    assert found.difference is not None
    assert found.difference.goodput_fraction == pytest.approx(-0.016715653387021523, rel=1e-9)
    assert found.difference.waste_usd_per_year == pytest.approx(5_637_872.69, abs=0.01)
    assert found.next_interval_seconds is None


def test_without_a_price_there_are_no_dollars() -> None:
    found = _consequences(scenario(prices=None), run(measurements=[ior(80.0)]))
    assert found.difference is not None
    assert found.difference.waste_usd_per_year is None
    assert found.difference.goodput_fraction < 0


def test_a_faster_storage_gains() -> None:
    # 189 GB/s halve the stall: 570 useful seconds in place of 540.
    found = _consequences(scenario(), run(measurements=[ior(189.0)]))
    assert _measured(found).goodput.exact.goodput_fraction == pytest.approx(SYNC_GOODPUT * 570 / 540)
    assert found.difference is not None
    assert found.difference.waste_usd_per_year == pytest.approx(
        -SYNC_GOODPUT * 30 / 540 * 337_281_024, rel=1e-9
    )


def test_an_extrapolated_figure_is_used_and_named() -> None:
    # 16 nodes with 0.04 GB/s each: 81.92 of all 2,048, so 69.2138671875 s.
    found = _consequences(scenario(), run(measurements=[ior(0.64, nodes=16)]))
    assert _measured(found).blocking.seconds == pytest.approx(69.2138671875)
    assert (found.used, found.extrapolated) == ([TargetId.WRITE_BANDWIDTH], [TargetId.WRITE_BANDWIDTH])
    assert _measured(found).goodput.exact.goodput_fraction == pytest.approx(0.8158562775844931, rel=1e-9)


def test_the_timed_stall_goes_before_the_one_that_follows_from_the_bandwidth() -> None:
    save = dcp(
        DcpOp.SAVE, seconds=66.0, bytes_total=WHOLE, blocked_seconds=66.0, largest_rank_bytes=SHARD_BYTES
    )
    found = _consequences(
        scenario(), run(number=1, measurements=[ior(50.0)]), run(number=2, day=2, operations=[save])
    )
    assert found.used == [TargetId.BLOCKING_SECONDS]
    assert _measured(found).blocking.seconds == 66.0


def test_a_figure_that_is_not_comparable_is_not_used() -> None:
    found = _consequences(scenario(), run(measurements=[ior(100.0)], doubts=[doubt(DoubtCode.NO_FSYNC)]))
    assert (found.measured, found.difference, found.used) == (None, None, [])
    assert found.reason is not None
    # Where it proves a miss it is used.
    found = _consequences(scenario(), run(measurements=[ior(80.0)], doubts=[doubt(DoubtCode.NO_FSYNC)]))
    assert found.used == [TargetId.WRITE_BANDWIDTH]


def test_where_nothing_was_measured_nothing_is_claimed() -> None:
    found = _consequences(scenario())
    assert found.feasible is True
    assert (found.measured, found.difference, found.next_interval_seconds) == (None, None, None)
    assert found.reason is not None
    assert "measured" not in found.model_dump(exclude_none=True)


def test_async_stall_lag_and_load_take_the_place_of_the_specified_ones() -> None:
    # C 5 to 8, D 240 to 300, and 5,670 GB at 35 GB/s load in 162 s, so R = 600 - 120 + 162 = 642.
    save = dcp(
        DcpOp.ASYNC_SAVE,
        seconds=308.0,
        bytes_total=WHOLE,
        largest_rank_bytes=SHARD_BYTES,
        blocked_seconds=8.0,
        drain_seconds=300.0,
        durable_lag_seconds=300.0,
    )
    found = _consequences(
        async_scenario(),
        run(number=1, operations=[save]),
        run(number=2, measurements=[ior(35.0, operation=Operation.READ)]),
    )
    measured = _measured(found)
    assert measured.blocking.seconds == 8.0
    assert measured.write.durable_lag_seconds == 300.0
    assert measured.restart.seconds == pytest.approx(642.0)
    assert measured.restart.load_seconds == pytest.approx(162.0)
    expected = ASYNC_GOODPUT * 592 / 595 * math.exp(-(60 + 42) / MTBF_SECONDS)
    assert measured.goodput.exact.goodput_fraction == pytest.approx(expected, rel=1e-9)
    assert measured.goodput.exact.goodput_fraction == pytest.approx(0.8824233524698296, rel=1e-9)
    assert found.used == [TargetId.BLOCKING_SECONDS, TargetId.PERSIST_SECONDS, TargetId.READ_BANDWIDTH]
    assert found.difference is not None
    assert found.difference.waste_usd_per_year == pytest.approx(4_260_949.56, abs=0.01)


def test_a_persist_bandwidth_gives_the_lag_and_leaves_the_stall() -> None:
    # 5,670 GB at 20 GB/s are durable after 283.5 s; IOR knows nothing of the async stall.
    found = _consequences(async_scenario(), run(measurements=[ior(20.0)]))
    measured = _measured(found)
    assert measured.write.durable_lag_seconds == pytest.approx(283.5)
    assert measured.blocking.seconds == 5.0
    assert measured.goodput.exact.goodput_fraction == pytest.approx(0.8915668033038628, rel=1e-9)
    assert found.used == [TargetId.WRITE_BANDWIDTH]


def test_an_unmeasured_lag_keeps_its_specified_seconds_although_the_interval_moves() -> None:
    spec = async_scenario(interval={"rule": "young"})
    specified = _consequences(spec).specified
    save = dcp(
        DcpOp.ASYNC_SAVE,
        seconds=None,
        blocked_seconds=20.0,
        bytes_total=WHOLE,
        largest_rank_bytes=SHARD_BYTES,
    )
    measured = _measured(_consequences(spec, run(operations=[save])))
    assert specified.interval.seconds == pytest.approx(333.6927259054289)
    assert measured.interval.seconds == pytest.approx(667.3854518108578)  # the root of four times the stall
    assert measured.write.durable_lag_seconds == specified.write.durable_lag_seconds
    assert measured.write.durable_lag_seconds == pytest.approx(133.47709036217156)


def test_a_stall_given_as_a_fraction_keeps_its_specified_seconds() -> None:
    spec = scenario(save={"mode": "sync", "overhead_fraction": 0.01}, interval={"rule": "young"})
    reading = run(measurements=[ior(94.5, operation=Operation.READ)])
    found = _consequences(spec, reading)
    # C = 2 M f^2 = 2.22702 s, and the load of 60 s leaves R = 540.
    assert found.specified.blocking.seconds == pytest.approx(2.227016706443914)
    assert _measured(found).blocking.seconds == pytest.approx(2.227016706443914)
    assert _measured(found).interval.seconds == pytest.approx(found.specified.interval.seconds)
    assert _measured(found).restart.seconds == pytest.approx(540.0)


def test_the_load_that_the_parts_of_a_restart_give_is_the_one_replaced() -> None:
    parts = {
        "detect_seconds": 60,
        "reschedule_seconds": 120,
        "initialise_seconds": 180,
        "load_seconds": 90,
        "warm_up_seconds": 30,
    }
    load = dcp(DcpOp.LOAD, seconds=100.0, bytes_total=WHOLE)
    found = _consequences(scenario(restart=parts), run(operations=[load]))
    assert found.specified.restart.seconds == 480.0
    assert _measured(found).restart.seconds == pytest.approx(490.0)
    assert found.used == [TargetId.LOAD_SECONDS]
    assert _measured(found).goodput.exact.goodput_fraction == pytest.approx(0.8382587788394994, rel=1e-9)


def test_a_measured_load_keeps_the_other_parts_of_a_restart() -> None:
    parts = {
        "detect_seconds": 60,
        "reschedule_seconds": 120,
        "reschedule_without_spares_seconds": 3720,
        "spares_exhausted_fraction": 0.1,
        "initialise_seconds": 180,
        "warm_up_seconds": 30,
    }
    load = dcp(DcpOp.LOAD, seconds=100.0, bytes_total=WHOLE)
    measured = _measured(_consequences(scenario(restart=parts), run(operations=[load])))
    assert measured.restart.seconds == pytest.approx(60 + 120 + 360 + 180 + 100 + 30)
    assert measured.restart.parts is not None
    assert {share.part.value: share.seconds for share in measured.restart.parts}["load"] == pytest.approx(
        100.0
    )


def test_a_load_that_the_storage_gave_stays_where_only_saves_were_measured() -> None:
    parts = {
        "detect_seconds": 60,
        "reschedule_seconds": 120,
        "initialise_seconds": 180,
        "warm_up_seconds": 30,
    }
    found = _consequences(
        scenario(restart=parts, restore=None, storage={"read_gb_per_second": 30.0}),
        run(measurements=[ior(80.0)]),
    )
    assert found.specified.restart.load_seconds == pytest.approx(189.0)
    assert _measured(found).restart.seconds == pytest.approx(found.specified.restart.seconds)


def test_a_restart_that_is_all_load_takes_the_measured_one() -> None:
    found = _consequences(
        scenario(restart={"seconds": 120}), run(operations=[dcp(DcpOp.LOAD, seconds=30.0, bytes_total=WHOLE)])
    )
    assert _measured(found).restart.seconds == pytest.approx(30.0)
    assert _measured(found).restart.load_seconds == pytest.approx(30.0)


def test_without_a_restore_target_the_restart_stays() -> None:
    found = _consequences(
        scenario(restore=None),
        run(measurements=[ior(80.0), ior(1.0, operation=Operation.READ)]),
    )
    assert found.used == [TargetId.WRITE_BANDWIDTH]
    assert _measured(found).restart.seconds == 600.0


def test_a_stall_as_long_as_the_interval_is_infeasible_and_names_the_next_interval() -> None:
    # 5,670 GB at 9 GB/s stop training for 630 s, and a save was to start every 600.
    found = _consequences(scenario(), run(measurements=[ior(9.0)]))
    assert found.feasible is False
    assert (found.measured, found.difference) == (None, None)
    assert found.used == [TargetId.WRITE_BANDWIDTH]
    assert found.next_interval_seconds == pytest.approx(3968.0031518347864, rel=1e-9)
    assert found.reason is not None
    assert "630 s" in found.reason


def test_youngs_rule_is_infeasible_from_twice_the_time_between_failures_on() -> None:
    # 2 M is 22,270.167 s, which 5,670 GB take at 0.2546 GB/s.
    spec = scenario(interval={"rule": "young"})
    assert _consequences(spec, run(measurements=[ior(0.26)])).feasible is True
    found = _consequences(spec, run(measurements=[ior(0.25)]))  # 22,680 s
    assert found.feasible is False
    assert found.next_interval_seconds is not None
    assert found.next_interval_seconds > 22_680.0
    assert _consequences(scenario(interval={"rule": "exact"}), run(measurements=[ior(0.25)])).feasible is True


@pytest.mark.parametrize("rate", [0.0, 1e-310, 1e-300, 1e-9, 1e9])
@pytest.mark.parametrize("rule", ["exact", "young", "daly"])
def test_a_rate_far_out_of_any_bounds_breaks_nothing(rate: float, rule: str) -> None:
    for spec in (scenario(interval={"rule": rule}), async_scenario(interval={"rule": rule})):
        both = run(measurements=[ior(rate), ior(rate, operation=Operation.READ)])
        found = _consequences(spec, both)
        figures = [found.next_interval_seconds]
        if found.measured is not None:
            figures.append(found.measured.goodput.exact.goodput_fraction)
        assert all(math.isfinite(figure) for figure in figures if figure is not None)


def test_a_stated_storage_gives_way_to_the_measured_one() -> None:
    stated = scenario(save={"mode": "sync"}, storage={"write_gb_per_second": 94.5})
    found = _consequences(stated, run(measurements=[ior(80.0)]))
    assert found.specified.blocking.seconds == pytest.approx(60.0)
    assert found.specified.delivered is not None
    assert _measured(found).blocking.seconds == pytest.approx(70.875)
    assert _measured(found).delivered is None


def test_a_stall_too_short_to_be_timed_is_a_microsecond() -> None:
    save = dcp(
        DcpOp.ASYNC_SAVE, seconds=None, blocked_seconds=0.0, bytes_total=WHOLE, largest_rank_bytes=SHARD_BYTES
    )
    found = _consequences(async_scenario(interval={"rule": "exact"}), run(operations=[save]))
    assert _measured(found).blocking.seconds == 1e-6


# Each figure by itself


def _alone(found: Consequences, target_id: TargetId) -> Consequence:
    return next(each for each in found.each if each.target is target_id)


def test_each_figure_alone_and_all_of_them_together() -> None:
    # C 60 to 66 (534 useful seconds of 540), the load 120 to 141.75, so R 600 to 621.75.
    save = dcp(
        DcpOp.SAVE, seconds=66.0, bytes_total=WHOLE, blocked_seconds=66.0, largest_rank_bytes=SHARD_BYTES
    )
    found = _consequences(
        scenario(),
        run(number=1, operations=[save]),
        run(number=2, measurements=[ior(40.0, operation=Operation.READ)]),
    )
    year = 337_281_024.0
    stalled = SYNC_GOODPUT * 534 / 540
    loaded = SYNC_GOODPUT * math.exp(-21.75 / MTBF_SECONDS)
    both = loaded * 534 / 540
    stall, load = _alone(found, TargetId.BLOCKING_SECONDS), _alone(found, TargetId.READ_BANDWIDTH)
    assert (stall.blocking_seconds, stall.durable_lag_seconds, stall.load_seconds) == (66.0, None, None)
    assert stall.goodput_fraction == pytest.approx(stalled, rel=1e-9)
    assert stall.difference is not None
    assert stall.difference.waste_usd_per_year == pytest.approx((SYNC_GOODPUT - stalled) * year, rel=1e-6)
    assert stall.saved_if_fixed_usd_per_year == pytest.approx((loaded - both) * year, rel=1e-6)
    assert stall.interval_seconds == 600.0
    assert stall.exact_interval_seconds == pytest.approx(1234.770932904635)
    assert load.blocking_seconds is None
    assert load.load_seconds == pytest.approx(141.75)
    assert load.goodput_fraction == pytest.approx(loaded, rel=1e-9)
    assert load.saved_if_fixed_usd_per_year == pytest.approx((stalled - both) * year, rel=1e-6)
    assert _measured(found).goodput.exact.goodput_fraction == pytest.approx(both, rel=1e-9)
    # The write bandwidth of those saves, 85.9 GB/s, says 66 s too; the timed stall goes before it.
    write = _alone(found, TargetId.WRITE_BANDWIDTH)
    assert write.blocking_seconds == pytest.approx(66.0)
    assert (write.saved_if_fixed_usd_per_year, write.superseded_by) == (0.0, TargetId.BLOCKING_SECONDS)


def test_creates_make_a_save_longer_and_never_shorter() -> None:
    # 16,385 files at 200 a second take 81.925 s.
    slow = _alone(_consequences(scenario(), run(measurements=[mdtest(200.0)])), TargetId.FILE_CREATE_RATE)
    assert slow.blocking_seconds == pytest.approx(81.925)
    assert slow.goodput_fraction == pytest.approx(SYNC_GOODPUT * (600 - 81.925) / 540, rel=1e-9)
    quick = _alone(_consequences(scenario(), run(measurements=[mdtest(9e9)])), TargetId.FILE_CREATE_RATE)
    assert quick.blocking_seconds == 60.0
    assert quick.difference is not None
    assert quick.difference.goodput_fraction == pytest.approx(0.0, abs=1e-12)
    assert "changes nothing" in quick.sentence


def test_a_larger_checkpoint_takes_longer_to_save_and_to_load() -> None:
    # 16 bytes a parameter in place of 14: 68.571 s a save, 137.143 s a load.
    save = dcp(DcpOp.SAVE, seconds=None, checkpoint_bytes=6_480_000_000_000)
    alone = _alone(_consequences(scenario(), run(operations=[save])), TargetId.CHECKPOINT_BYTES)
    assert alone.blocking_seconds == pytest.approx(480 / 7)
    assert alone.load_seconds == pytest.approx(960 / 7)
    expected = SYNC_GOODPUT * (600 - 480 / 7) / 540 * math.exp(-(960 / 7 - 120) / MTBF_SECONDS)
    assert alone.goodput_fraction == pytest.approx(expected, rel=1e-9)


def test_async_saves_that_now_collide_are_said_to() -> None:
    # 5,670 GB at 6.3 GB/s are durable after 900 s: with one buffer a save every 905 s, not every 600.
    found = _consequences(async_scenario(), run(measurements=[ior(6.3)]))
    alone = _alone(found, TargetId.WRITE_BANDWIDTH)
    assert alone.durable_lag_seconds == pytest.approx(900.0)
    assert alone.interval_seconds == 600.0
    assert alone.effective_interval_seconds == pytest.approx(905.0)
    assert alone.goodput_fraction == pytest.approx(0.5668817573811618, rel=1e-9)
    assert alone.sentence.endswith(
        "Saves now collide: one is durable 900 s after training went on, so the interval of 600 s becomes 905 s."
    )
    assert found.collision is not None
    assert _measured(found).interval.effective_seconds == pytest.approx(905.0)
    # At 10 GB/s they are durable after 567 s, in time for the next.
    free = _consequences(async_scenario(), run(measurements=[ior(10.0)]))
    assert (free.collision, _alone(free, TargetId.WRITE_BANDWIDTH).effective_interval_seconds) == (None, None)


def test_async_saves_drain_at_the_bandwidth_under_read_load() -> None:
    loaded = run(number=1, measurements=[ior(20.0)], conditions=[Condition.UNDER_READ_LOAD])
    found = _consequences(async_scenario(), loaded)
    alone = _alone(found, TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)
    assert alone.durable_lag_seconds == pytest.approx(283.5)
    assert alone.goodput_fraction == pytest.approx(0.8915668033038628, rel=1e-9)
    assert found.used == [TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD]
    # The system being quicker when idle does not help, and the other way round it would not hold either.
    both = _consequences(async_scenario(), loaded, run(number=2, day=2, measurements=[ior(27.0)]))
    assert _measured(both).write.durable_lag_seconds == pytest.approx(283.5)
    assert both.used == [TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD]
    idle = _alone(both, TargetId.WRITE_BANDWIDTH)
    assert (idle.durable_lag_seconds, idle.superseded_by) == (210.0, TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)
    assert "All together, the write bandwidth under read load says more of that time" in idle.sentence


def test_saves_that_collide_under_read_load_do_so_in_the_whole() -> None:
    # 5,670 GB at 28.35 GB/s are durable after 200 s, at 6.3 GB/s after 900.
    found = _consequences(
        async_scenario(),
        run(number=1, measurements=[ior(28.35)]),
        run(number=2, measurements=[ior(6.3)], conditions=[Condition.UNDER_READ_LOAD]),
    )
    assert _measured(found).interval.effective_seconds == pytest.approx(905.0)
    assert found.collision is not None
    assert found.difference is not None
    assert found.difference.waste_usd_per_year is not None
    assert found.difference.waste_usd_per_year > 1e8


def test_a_save_takes_as_long_as_the_slowest_of_its_parts() -> None:
    # 100 GB/s would take 56.7 s, the slowest writer 80 s, 16,385 files at 100 a second 163.85 s.
    writing = run(number=1, measurements=[ior(100.0, total_seconds=[80.0])])
    found = _consequences(scenario(), writing)
    assert (_measured(found).blocking.seconds, found.used) == (80.0, [TargetId.SLOWEST_WRITER_SECONDS])
    found = _consequences(scenario(), writing, run(number=2, measurements=[mdtest(100.0)]))
    assert _measured(found).blocking.seconds == pytest.approx(163.85)
    assert found.used == [TargetId.FILE_CREATE_RATE]
    creates, slowest = (
        _alone(found, each) for each in (TargetId.FILE_CREATE_RATE, TargetId.SLOWEST_WRITER_SECONDS)
    )
    # Without slow creates a save would take the 80 s of its slowest writer; to speed up that one helps nothing.
    saved = SYNC_GOODPUT * (163.85 - 80) / 540 * 337_281_024
    assert creates.saved_if_fixed_usd_per_year == pytest.approx(saved, rel=1e-6)
    assert (slowest.saved_if_fixed_usd_per_year, slowest.superseded_by) == (0.0, TargetId.FILE_CREATE_RATE)


def test_a_save_timed_on_all_nodes_holds_its_parts_and_one_on_fewer_does_not() -> None:
    creates = run(number=1, measurements=[mdtest(100.0)])
    for nodes, expected in ((2048, 55.0), (16, 163.85)):
        save = dcp(
            DcpOp.SAVE,
            seconds=55.0,
            nodes=nodes,
            bytes_total=WHOLE * nodes // 2048,
            blocked_seconds=55.0,
            largest_rank_bytes=SHARD_BYTES,
        )
        found = _consequences(scenario(), creates, run(number=2, operations=[save]))
        assert _measured(found).blocking.seconds == pytest.approx(expected)


def test_a_restart_loads_onto_other_ranks_than_saved() -> None:
    loads = [
        dcp(DcpOp.LOAD, seconds=100.0, bytes_total=WHOLE),
        dcp(DcpOp.RESHARDED_LOAD, seconds=220.0, bytes_total=WHOLE),
    ]
    found = _consequences(scenario(), run(operations=loads))
    assert (_measured(found).restart.load_seconds, found.used) == (220.0, [TargetId.RESHARDED_LOAD_SECONDS])
    assert _alone(found, TargetId.LOAD_SECONDS).superseded_by is TargetId.RESHARDED_LOAD_SECONDS


def test_a_larger_checkpoint_takes_longer_at_the_measured_bandwidth() -> None:
    # 16.2 TB (40 bytes a parameter) at 108 GB/s take 150 s, not the 52.5 s of 5.67 TB.
    held = dcp(DcpOp.SAVE, seconds=None, checkpoint_bytes=16_200_000_000_000)
    found = _consequences(
        scenario(), run(number=1, measurements=[ior(108.0)]), run(number=2, operations=[held])
    )
    assert _measured(found).blocking.seconds == pytest.approx(150.0)
    assert found.used == [TargetId.WRITE_BANDWIDTH, TargetId.CHECKPOINT_BYTES]
    size = _alone(found, TargetId.CHECKPOINT_BYTES)
    assert size.saved_if_fixed_usd_per_year == pytest.approx(
        (
            SYNC_GOODPUT * 547.5 / 540
            - SYNC_GOODPUT * 450 / 540 * math.exp(-(120 * 16.2 / 5.67 - 120) / MTBF_SECONDS)
        )
        * 337_281_024,
        rel=1e-6,
    )


def test_a_rate_of_nothing_leaves_no_time_to_train() -> None:
    found = _consequences(scenario(), run(measurements=[ior(0.0)]))
    assert (found.feasible, found.used) == (False, [TargetId.WRITE_BANDWIDTH])


def test_an_infeasible_figure_alone_says_so_and_names_the_best_interval() -> None:
    alone = _alone(_consequences(scenario(), run(measurements=[ior(9.0)])), TargetId.WRITE_BANDWIDTH)
    assert (alone.feasible, alone.goodput_fraction, alone.difference) == (False, None, None)
    assert alone.exact_interval_seconds == pytest.approx(3968.0031518347864, rel=1e-9)
    assert "leaves no time to train" in alone.sentence


def test_a_figure_from_a_smaller_run_is_marked() -> None:
    found = _consequences(scenario(), run(measurements=[ior(0.64, nodes=16)]))
    assert [each.extrapolated for each in found.each] == [True, True]
    assert _alone(found, TargetId.NODE_WRITE_BANDWIDTH).blocking_seconds == pytest.approx(69.2138671875)


STAGED = {
    "mode": "async",
    "blocking_seconds": 5.0,
    "durable_lag_seconds": 240.0,
    "staging_budget_bytes_per_node": WHOLE // 2048 // 4,
}
"""A quarter of a node's share may be staged, so 180 of the 240 s of its drain pass in the stall."""


def test_a_measured_rate_drains_the_staging_memory_of_the_scenario() -> None:
    found = _consequences(scenario(save=STAGED), run(measurements=[ior(WHOLE / 1e9 / 120)]))
    assert found.specified.blocking.seconds == pytest.approx(185.0, rel=1e-6)
    measured = _measured(found)
    assert measured.blocking.seconds == pytest.approx(95.0, rel=1e-6)
    assert measured.write.durable_lag_seconds == pytest.approx(30.0, rel=1e-6)


def test_a_measured_stall_holds_the_wait_for_staging_memory() -> None:
    save = dcp(
        DcpOp.ASYNC_SAVE, seconds=200.0, bytes_total=WHOLE, blocked_seconds=150.0, durable_lag_seconds=50.0
    )
    measured = _measured(_consequences(scenario(save=STAGED), run(operations=[save])))
    assert measured.blocking.seconds == 150.0
    assert measured.blocking.staging_stall_seconds is None
    assert measured.write.durable_lag_seconds == 50.0


def test_a_save_takes_as_long_as_its_fullest_node_where_that_was_measured_apart() -> None:
    spec = scenario(
        model={"preset": "llama-3-405b"},
        cluster={
            "gpus": 16384,
            "gpus_per_node": 8,
            "parallelism": {"tensor": 8, "pipeline": 16, "zero_stage": 1},
        },
    )
    # All nodes together take 5,682 GB at 100 GB/s; the fullest has 57.79 GB of it, and gets 0.8 GB/s.
    together = run(number=1, measurements=[ior(100.0)])
    fullest = run(number=2, measurements=[ior(98 * 0.8, nodes=98)])
    found = _consequences(spec, together, fullest)
    measured = _measured(found)
    assert measured.blocking.seconds == pytest.approx(57.793732608 / 0.8)
    assert found.used == [TargetId.NODE_WRITE_BANDWIDTH]
    by_target = {each.target: each for each in found.each}
    assert by_target[TargetId.WRITE_BANDWIDTH].superseded_by is TargetId.NODE_WRITE_BANDWIDTH
    # Were that node as fast as it must be, the stall would be the specified one: that is what it costs alone.
    assert found.difference is not None
    saved = by_target[TargetId.NODE_WRITE_BANDWIDTH].saved_if_fixed_usd_per_year
    assert saved == pytest.approx(found.difference.waste_usd_per_year)
