"""Every figure that survives in the text of the two articles, to the digits printed there.

"Stall" is "Checkpoint Storage That Doesn't Stall Training"; "IO" is "Checkpoint I/O Sizing: Write Bandwidth for
70B-405B".
"""

import pytest

from service.sizing.interval import daly_interval, exact_interval
from tests.sizing.scenarios import Body, sized

STALL_TABLE = [
    (4096, 120, 8.7, 8.4),
    (4096, 30, 5.0, 4.9),
    (4096, 5, 2.8, 2.8),
    (16384, 120, 20.0, 18.5),
    (16384, 30, 12.7, 12.0),
    (16384, 5, 8.4, 8.0),
    (65536, 120, 50.8, 40.8),
    (65536, 30, 36.2, 30.6),
    (65536, 5, 27.5, 24.1),
]


@pytest.mark.parametrize(("gpus", "blocking_seconds", "first_order", "exact"), STALL_TABLE)
def test_stall_prints_this_waste_and_the_exact_model_gives_less(
    gpus: int, blocking_seconds: float, first_order: float, exact: float
) -> None:
    blocks: Body = {
        "cluster": {"gpus": gpus},
        "failures": {"mtbf_hours": 3.1, "mtbf_gpus": 16384},
        "save": {"mode": "sync", "blocking_seconds": blocking_seconds},
    }
    by_young = sized(**blocks, interval={"rule": "young"})
    by_exact = sized(**blocks, interval={"rule": "exact"})
    assert round(by_young.goodput.first_order.waste_fraction * 100, 1) == first_order
    assert round((1 - by_exact.goodput.exact.goodput_fraction) * 100, 1) == exact


@pytest.mark.parametrize(("gpus", "hours"), [(4096, 12.4), (16384, 3.1)])
def test_stall_prints_this_time_between_failures(gpus: int, hours: float) -> None:
    failures = sized(
        cluster={"gpus": gpus}, failures={"mtbf_hours": 3.1, "mtbf_gpus": 16384}, interval=None
    ).failures
    assert round(failures.mtbf_seconds / 3600, 1) == hours


@pytest.mark.parametrize("failures", [{"mtbf_hours": 3.1, "mtbf_gpus": 16384}, None])
def test_stall_has_a_failure_every_47_minutes_on_65536_gpus(failures: dict[str, float] | None) -> None:
    blocks: Body = {"failures": failures} if failures else {}
    minutes = sized(cluster={"gpus": 65536}, **blocks).failures.mtbf_seconds / 60
    assert minutes == pytest.approx(47, abs=0.65)


def test_io_has_a_failure_every_3_09_hours_and_more_than_seven_a_day() -> None:
    failures = sized().failures
    assert round(failures.mtbf_seconds / 3600, 2) == 3.09
    assert round(failures.mtbf_seconds) == 11_135
    assert round(failures.mtbf_seconds, -2) == 11_100
    assert 7 < failures.failures_per_day < 8


@pytest.mark.parametrize(
    ("parameters", "bytes_per_parameter", "terabytes", "digits"),
    [
        (70e9, 14, 1, 0),  # Stall: ~1 TB
        (405e9, 14, 5.7, 1),  # Stall: ~5.7 TB
        (1e12, 14, 14, 0),  # Stall: ~14 TB, all experts
        (70e9, 12, 0.84, 2),  # IO: 0.84 to 1.12 TB
        (70e9, 16, 1.12, 2),
        (405e9, 12, 4.9, 1),  # IO: 4.9 to 6.5 TB
        (405e9, 16, 6.5, 1),
        (405e9, 14, 5.67, 2),
        (1.5e9, 16, 0.024, 3),  # IO: GPT-2 needs 24 GB
    ],
)
def test_the_articles_print_this_checkpoint_size(
    parameters: float, bytes_per_parameter: float, terabytes: float, digits: int
) -> None:
    model = {"parameters": parameters, "bytes_per_parameter": bytes_per_parameter}
    assert round(sized(model=model).checkpoint.bytes / 1e12, digits) == terabytes


def test_io_saves_14_percent_of_the_bytes_without_the_bf16_copy() -> None:
    without = sized(model={"parameters": 405e9, "bytes_per_parameter": 12}).checkpoint.bytes
    assert round((1 - without / sized().checkpoint.bytes) * 100) == 14


def test_io_splits_405b_into_346_mb_a_gpu_and_2_77_gb_a_node() -> None:
    checkpoint = sized().checkpoint
    assert round(checkpoint.bytes_per_gpu / 1e6) == 346
    assert round(checkpoint.bytes_per_node / 1e9, 2) == 2.77
    assert (checkpoint.nodes, checkpoint.writers, checkpoint.files) == (2048, 16384, 16385)


def test_io_stages_7_66_gb_a_node_for_70b_on_1024_gpus() -> None:
    sizing = sized(
        model={"parameters": 70e9}, cluster={"gpus": 1024}, save={"mode": "async", "blocking_seconds": 6.3}
    )
    assert sizing.host_memory is not None
    assert sizing.checkpoint.bytes == 980_000_000_000
    assert round(sizing.host_memory.bytes_per_node / 1e9, 2) == 7.66
    assert sizing.checkpoint.nodes == 128


def test_io_needs_945_gb_per_second_for_a_stall_of_1_percent() -> None:
    sizing = sized(save={"mode": "sync", "overhead_fraction": 0.01})
    assert sizing.blocking.seconds == pytest.approx(6, rel=1e-12)
    assert sizing.write.required_gb_per_second == pytest.approx(945, rel=1e-12)
    assert round(sizing.write.per_node_gb_per_second * 1e3, 1) == 461.4


def test_both_articles_need_94_5_gb_per_second_for_60_seconds() -> None:
    sizing = sized()
    assert sizing.write.required_gb_per_second == pytest.approx(94.5, rel=1e-12)
    assert sizing.blocking.overhead_fraction == pytest.approx(0.1, rel=1e-12)
    # Stall: ~95 GB/s, only ~6 MB/s per GPU.
    assert round(sizing.write.per_writer_gb_per_second * 1e3) == 6


def test_io_needs_9_45_gb_per_second_at_least_for_async_and_23_6_with_headroom() -> None:
    sizing = sized(save={"mode": "async", "blocking_seconds": 5, "headroom": 2.5})
    assert sizing.write.minimum_gb_per_second == pytest.approx(9.45, rel=1e-12)
    assert round(sizing.write.required_gb_per_second, 1) == 23.6
    synchronous = sized(save={"mode": "sync", "overhead_fraction": 0.01}).write.required_gb_per_second
    assert 30 < synchronous / sizing.write.required_gb_per_second < 50  # IO: 30 to 50 times less


def test_io_needs_47_gb_per_second_to_load_in_2_minutes() -> None:
    read = sized().read
    assert read is not None
    assert round(read.required_gb_per_second) == 47
    assert read.required_gb_per_second == pytest.approx(47.25, rel=1e-12)


@pytest.mark.parametrize(("interval_seconds", "percent"), [(600, 2.7), (1800, 8.1)])
def test_io_loses_this_part_of_the_work(interval_seconds: float, percent: float) -> None:
    first_order = sized(interval={"rule": "fixed", "seconds": interval_seconds}).goodput.first_order
    assert round(first_order.lost_work_fraction * 100, 1) == percent


def test_both_articles_keep_ten_copies_in_56_7_tb() -> None:
    capacity = sized().capacity
    assert capacity is not None
    assert capacity.hot_bytes == 56_700_000_000_000
    assert capacity.hot_peak_bytes == 62_370_000_000_000


def test_stall_pays_38_5_thousand_dollars_an_hour_and_62_thousand_a_day_for_stalls() -> None:
    cost = sized(interval={"rule": "fixed", "seconds": 900}).cost
    assert cost is not None
    assert cost.cluster_usd_per_hour is not None
    assert cost.stall_usd_per_day is not None
    assert cost.stall_usd_per_year is not None
    assert round(cost.cluster_usd_per_hour, -2) == 38_500
    assert round(cost.cluster_usd_per_hour / 60, -1) == 640
    assert round(cost.cluster_usd_per_hour / 60) == 642
    assert round(cost.stall_usd_per_day, -3) == 62_000
    assert round(cost.stall_usd_per_day, -2) == 61_600
    assert round(cost.stall_usd_per_year, -6) == 22_000_000
    assert round(cost.stall_usd_per_year, -5) == 22_500_000


def test_a_stall_of_1_percent_at_youngs_interval_is_2_2_seconds() -> None:
    sizing = sized(save={"mode": "sync", "overhead_fraction": 0.01}, interval={"rule": "young"})
    assert round(sizing.blocking.seconds, 1) == 2.2


def test_garwoods_bounds_of_llama_3_are_10118_and_12283_seconds() -> None:
    failures = sized().failures
    assert failures.mtbf_low_seconds is not None
    assert failures.mtbf_high_seconds is not None
    assert (round(failures.mtbf_low_seconds), round(failures.mtbf_high_seconds)) == (10_118, 12_283)
    assert failures.confidence_fraction == 0.95


@pytest.mark.parametrize(
    ("mtbf_minutes", "between_minutes", "digits"), [(1440, 117, 0), (360, 57, 0), (15, 9.1, 1)]
)
def test_dalys_paper_trains_this_long_between_saves_of_5_minutes(
    mtbf_minutes: float, between_minutes: float, digits: int
) -> None:
    period = daly_interval(blocking_seconds=300, mtbf_seconds=mtbf_minutes * 60)
    assert round((period - 300) / 60, digits) == between_minutes
    assert period == pytest.approx(
        exact_interval(blocking_seconds=300, mtbf_seconds=mtbf_minutes * 60), rel=2e-3
    )


@pytest.mark.parametrize(("staging_buffers", "goodput"), [(1, 0.567), (2, 0.570)])
def test_colliding_saves_leave_this_goodput(staging_buffers: int, goodput: float) -> None:
    sizing = sized(
        save={
            "mode": "async",
            "blocking_seconds": 5,
            "durable_lag_seconds": 900,
            "staging_buffers": staging_buffers,
        }
    )
    assert round(sizing.goodput.exact.goodput_fraction, 3) == goodput
    assert sizing.interval.effective_seconds == (905 if staging_buffers == 1 else 900)
