"""The whole sizing: the golden cases, what holds for every valid spec, and what a given storage system delivers."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import __version__
from service.errors import Unsatisfiable
from service.sizing.bandwidth import Limit
from service.sizing.size import size
from service.sizing.sizing import Delivered, Sizing, WarningCode
from service.sizing.spec import FailureShareSpec, ScenarioSpec, TierSpec
from tests.sizing.scenarios import Body, article, bodies, logarithmic, sized

LISTS = {"tiers": TierSpec, "failure_mix": FailureShareSpec}
GOLDEN = sorted((Path(__file__).parents[1] / "data" / "golden").glob("*.json"))


def _numbers(value: object, at: str = "#") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{at}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{at}/{index}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at, value


def _figures(sizing: Sizing) -> dict[str, float]:
    return dict(_numbers(sizing.model_dump(mode="json", exclude_none=True)))


def _size(body: Body) -> Sizing:
    return size(ScenarioSpec.model_validate(body))


def _delivered(**blocks: Body | None) -> Delivered:
    delivered = sized(**blocks).delivered
    assert delivered is not None
    return delivered


def _codes(sizing: Sizing) -> list[str]:
    return [warning.code for warning in sizing.warnings]


def test_there_are_golden_cases() -> None:
    assert len(GOLDEN) == 16


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_case_comes_out_at_its_tolerance(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    figures = _figures(_size(case["request"]))
    expected = {f"#{pointer}": value for pointer, value in case["expect"].items()}
    found = {pointer: figures[pointer] for pointer in expected}
    assert found == pytest.approx(expected, rel=case["relative_tolerance"], abs=0)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(body=bodies())
def test_every_valid_spec_is_sized_in_finite_numbers_or_refused_by_name(body: Body) -> None:
    spec = ScenarioSpec.model_validate(body)
    try:
        sizing = size(spec)
    except Unsatisfiable as refusal:
        for fault in refusal.faults:
            _assert_points_into_the_spec(fault.pointer)
            assert fault.detail.endswith(".")
        return
    figures = _figures(sizing)
    for pointer, value in figures.items():
        assert math.isfinite(value), pointer
        signed = pointer.endswith("/effective_training_time_ratio") or pointer.startswith("#/tiers/gained_")
        assert value >= 0 or signed, pointer
        if pointer.endswith("_bytes") or isinstance(value, int):
            assert value < 2**63, pointer
        if ("/goodput/" in pointer and "first_order" not in pointer) or pointer.endswith("/goodput_fraction"):
            assert value <= 1.0, pointer
    for block in (sizing, sizing.delivered):
        if block is not None and block.goodput is not None:
            exact = block.goodput.exact
            assert sum(exact.model_dump().values()) == pytest.approx(1.0, abs=2e-15)
    if sizing.tiers is not None:
        assert sum(sizing.tiers.goodput.model_dump().values()) == pytest.approx(1.0, abs=2e-15)
        assert sum(tier.fallback_fraction for tier in sizing.tiers.each) == pytest.approx(1.0, abs=1e-14)
    for warning in sizing.warnings:
        _assert_points_into_the_spec(warning.pointer)


def _assert_points_into_the_spec(pointer: str) -> None:
    root, block, *rest = pointer.split("/")
    assert root == "#"
    model: Any = ScenarioSpec.model_fields[block].annotation
    if block in LISTS:
        model = LISTS[block]
        assert rest == [] or rest.pop(0).isdecimal()
    for name in rest:
        inner = next(arm for arm in getattr(model, "__args__", (model,)) if hasattr(arm, "model_fields"))
        model = inner.model_fields[name].annotation


@settings(derandomize=True, deadline=None, max_examples=60)
@given(body=bodies())
def test_the_same_spec_gives_the_same_bytes(body: Body) -> None:
    def answer() -> str:
        try:
            return size(ScenarioSpec.model_validate_json(json.dumps(body)), explained=True).model_dump_json()
        except Unsatisfiable as refusal:
            return str(refusal)

    assert answer() == answer()


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    body=bodies(rules=("exact", "fixed")),
    name=st.sampled_from(["write", "read", "node"]),
    rate=logarithmic(1e-6, 1e6),
    factor=logarithmic(1.0, 1e3),
)
def test_more_bandwidth_never_lowers_what_is_delivered(
    body: Body, name: str, rate: float, factor: float
) -> None:
    def delivered(value: float) -> float:
        storage = {
            "write_gb_per_second": 1.0,
            **body.get("storage", {}),
            f"{name}_gb_per_second": value,
            "usable_tb": 9e6,
        }
        sizing = _size({**body, "storage": storage})
        assert sizing.delivered is not None
        return sizing.delivered.goodput.exact.goodput_fraction if sizing.delivered.goodput else 0.0

    try:
        slow = delivered(rate)
    except Unsatisfiable:
        return
    assert delivered(rate * factor) >= slow * (1.0 - 1e-11)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(body=bodies(layouts=False), factor=st.integers(2, 1000))
def test_more_gpus_and_as_many_more_observed_leave_the_time_between_failures(body: Body, factor: int) -> None:
    gpus = min(body["cluster"]["gpus"], 10_000)
    record = {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16384}

    def mtbf(scale: int, failures: Body) -> float:
        cluster = {**body["cluster"], "gpus": gpus * scale}
        return _size(article(cluster=cluster, failures=failures)).failures.mtbf_seconds

    scaled = mtbf(factor, {**record, "observed_gpus": 16384 * factor})
    assert scaled == pytest.approx(mtbf(1, record), rel=1e-14)
    assert mtbf(factor, record) == pytest.approx(mtbf(1, record) / factor, rel=1e-14)
    assert mtbf(factor, {"mtbf_hours": 3.0}) == mtbf(1, {"mtbf_hours": 3.0}) == 10_800.0


@settings(derandomize=True, deadline=None, max_examples=100)
@given(body=bodies(), more=st.integers(1, 10**6))
def test_more_gpus_never_raise_the_time_between_failures(body: Body, more: int) -> None:
    def mtbf(gpus: int) -> float:
        return _size({**article(), "failures": failures, "cluster": {"gpus": gpus}}).failures.mtbf_seconds

    failures = body["failures"]
    try:
        few = mtbf(body["cluster"]["gpus"])
        many = mtbf(min(body["cluster"]["gpus"] + more, 10_000_000))
    except Unsatisfiable:
        return
    assert many <= few


@settings(derandomize=True, deadline=None, max_examples=100)
@given(fraction=logarithmic(1e-6, 0.99), rule=st.sampled_from(["exact", "young", "daly", "fixed"]))
def test_a_stall_given_as_a_fraction_is_that_fraction_of_the_interval(fraction: float, rule: str) -> None:
    interval = {"rule": rule, **({"seconds": 777.0} if rule == "fixed" else {})}
    sizing = sized(save={"mode": "sync", "overhead_fraction": fraction}, interval=interval)
    assert sizing.blocking.seconds == pytest.approx(fraction * sizing.interval.seconds, rel=1e-15)
    assert sizing.blocking.overhead_fraction == pytest.approx(fraction, rel=1e-15)
    if rule != "fixed":
        by_rule = getattr(sizing.interval, f"{rule}_seconds")
        assert sizing.interval.seconds == pytest.approx(by_rule, rel=1e-12)


def test_the_answer_carries_the_version_of_the_engine() -> None:
    assert sized().engine_version == __version__


def test_what_is_not_asked_for_is_absent() -> None:
    sizing = sized(restore=None, retention=None, prices=None)
    answer = sizing.model_dump(mode="json", exclude_none=True)
    assert set(answer) == {
        "engine_version", "model", "checkpoint", "failures", "interval", "blocking", "restart", "write",
        "metadata", "goodput", "uncertainty", "targets", "warnings",
    }  # fmt: skip
    assert "load_seconds" not in answer["restart"]


def test_async_adds_its_fields_and_sync_has_none_of_them() -> None:
    sync, asynchronous = sized(), sized(save={"mode": "async", "blocking_seconds": 5})
    assert sync.host_memory is None
    assert sync.write.durable_lag_seconds is sync.write.strict_minimum_gb_per_second is None
    assert asynchronous.write.durable_lag_seconds == 600 / 2.5
    assert asynchronous.write.strict_minimum_gb_per_second == pytest.approx(5670 / 595, rel=1e-15)
    assert asynchronous.interval.effective_seconds is None


@pytest.mark.parametrize(
    ("lag", "required"),
    [(120, 47.25), (240, 23.625), (500, 23.625)],
    ids=["lag rules", "same", "headroom rules"],
)
def test_a_stated_lag_raises_the_persist_bandwidth_but_never_lowers_it(lag: float, required: float) -> None:
    write = sized(save={"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": lag}).write
    assert write.required_gb_per_second == pytest.approx(required, rel=1e-15)
    assert write.durable_lag_seconds == lag


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seconds=st.floats(10, 1e5), parameters=st.integers(10**9, 10**12))
def test_two_buffers_without_headroom_just_fit(seconds: float, parameters: int) -> None:
    sizing = sized(
        model={"parameters": parameters},
        save={"mode": "async", "blocking_seconds": 5, "headroom": 1, "staging_buffers": 2},
        interval={"rule": "fixed", "seconds": seconds},
    )
    assert sizing.interval.effective_seconds is None


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seconds=st.floats(10, 1e5), parameters=st.integers(10**9, 10**12), buffers=st.integers(1, 2))
def test_storage_with_the_strict_minimum_makes_no_save_wait(
    seconds: float, parameters: int, buffers: int
) -> None:
    blocks: Body = {
        "model": {"parameters": parameters},
        "save": {"mode": "async", "blocking_seconds": 5, "staging_buffers": buffers},
        "interval": {"rule": "fixed", "seconds": seconds},
    }
    strict = sized(**blocks).write.strict_minimum_gb_per_second
    assert strict is not None
    enough, short = (
        sized(**blocks, storage={"write_gb_per_second": strict * factor}) for factor in (1.0, 0.999)
    )
    assert WarningCode.SAVES_COLLIDE not in _codes(enough)
    assert WarningCode.SAVES_COLLIDE in _codes(short)


def test_a_collision_names_the_ways_out_with_their_numbers() -> None:
    save = {"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": 598}
    (warning,) = (w for w in sized(save=save).warnings if w.code is WarningCode.SAVES_COLLIDE)
    assert warning.pointer == "#/save/durable_lag_seconds"
    assert "within 595 s" in warning.message
    assert "a second staging buffer" in warning.message
    assert "at least 603 s" in warning.message
    later = sized(save={**save, "durable_lag_seconds": 700}).warnings
    assert not any("second staging buffer" in w.message for w in later)


def test_a_collision_on_the_given_storage_points_at_what_limits_it() -> None:
    sizing = sized(
        save={"mode": "async", "blocking_seconds": 5},
        storage={"write_gb_per_second": 1000, "file_creates_per_second": 20},
    )
    assert [w.pointer for w in sizing.warnings if w.code is WarningCode.SAVES_COLLIDE] == [
        "#/storage/file_creates_per_second"
    ]


@pytest.mark.parametrize(
    ("lag", "buffers", "collision"),
    [(240, 1, None), (595, 1, None), (598, 1, "blocked"), (598, 2, "second_buffer"), (900, 2, "blocked")],
)
def test_a_save_that_is_not_durable_before_the_next_says_what_happens(
    lag: float, buffers: int, collision: str | None
) -> None:
    save = {
        "mode": "async",
        "blocking_seconds": 5,
        "durable_lag_seconds": lag,
        "staging_buffers": buffers,
    }
    interval = sized(save=save).interval
    assert interval.collision == collision
    assert (interval.effective_seconds is not None) == (collision == "blocked")


def test_where_saves_at_the_exact_interval_collide_the_best_one_is_named() -> None:
    save = {"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": 900}
    colliding = sized(save=save, interval={"rule": "exact"})
    best = colliding.interval.best_seconds
    assert best == 905
    better = sized(save=save, interval={"rule": "fixed", "seconds": best})
    assert better.goodput.exact.goodput_fraction > colliding.goodput.exact.goodput_fraction
    assert sized(save=save | {"durable_lag_seconds": 300}).interval.best_seconds is None


def test_the_wait_of_colliding_saves_is_in_the_stall_and_not_in_the_first_order() -> None:
    save = {"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": 900}
    sizing = sized(save=save)
    assert sizing.cost is not None
    assert sizing.cost.stall_usd_per_day == pytest.approx(86400 / 905 * 310 * 38502.4 / 3600, rel=1e-14)
    assert sizing.goodput.first_order.saving_fraction == 5 / 600


@pytest.mark.parametrize(
    ("blocks", "warned"),
    [
        ({"failures": {"mtbf_hours": 1000}}, False),
        ({}, True),
        ({"failures": {"mtbf_hours": 0.2}}, True),
    ],
)
def test_the_first_order_is_said_to_overstate_when_it_is_5_percent_off(blocks: Body, warned: bool) -> None:
    sizing = sized(**blocks)
    waste = 1 - sizing.goodput.exact.goodput_fraction
    assert (sizing.goodput.first_order.waste_fraction > 1.05 * waste) is warned
    assert (WarningCode.FIRST_ORDER_OVERSTATES in _codes(sizing)) is warned


def test_the_first_order_is_said_to_omit_the_lag_of_async_saves_only() -> None:
    code = WarningCode.FIRST_ORDER_OMITS_DURABLE_LAG
    assert code not in _codes(sized())
    assert code in _codes(sized(save={"mode": "async", "blocking_seconds": 5}))


def test_a_record_of_few_failures_is_doubted() -> None:
    record = {"observed_failures": 19, "observed_hours": 100, "observed_gpus": 1024}
    (warning,) = (w for w in sized(failures=record).warnings if w.code == "few_observed_failures")
    assert warning.pointer == "#/failures/observed_failures"
    assert "few_observed_failures" not in _codes(sized(failures={**record, "observed_failures": 20}))


def test_even_shards_are_an_assumption_until_the_skew_is_given() -> None:
    assert "even_shards_assumed" in _codes(sized())
    assert "even_shards_assumed" not in _codes(sized(shards={"skew": 1}))
    assert "even_shards_assumed" not in _codes(sized(shards={"largest_shard_bytes": 4e9}))
    assert "even_shards_assumed" not in _codes(sized(shards={"writers": 1}))


def test_the_largest_shard_follows_from_the_skew_and_the_skew_from_it() -> None:
    by_skew = sized(shards={"skew": 10}, save={"mode": "async", "blocking_seconds": 5})
    by_bytes = sized(
        shards={"largest_shard_bytes": by_skew.checkpoint.largest_shard_bytes},
        save={"mode": "async", "blocking_seconds": 5},
    )
    assert by_skew.checkpoint.largest_shard_bytes == 3_460_693_359
    assert by_skew.host_memory is not None
    assert by_bytes.host_memory is not None
    assert by_skew.host_memory.bytes_per_node == 27_685_546_875
    assert by_bytes.host_memory.bytes_per_node == pytest.approx(27_685_546_875, rel=1e-9)
    assert by_skew.write.largest_shard_gb_per_second == pytest.approx(3.460693359375 / 240, rel=1e-14)


@pytest.mark.parametrize("largest", [346_069_334, 5_670_000_000_001])
def test_a_largest_shard_that_cannot_be_is_refused(largest: int) -> None:
    with pytest.raises(Unsatisfiable, match="between 346069336 and 5670000000000 bytes") as caught:
        sized(shards={"largest_shard_bytes": largest})
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [
        ("#/shards/largest_shard_bytes", "out_of_range")
    ]


def test_a_node_of_a_writer_holds_a_whole_shard_where_few_ranks_write() -> None:
    sizing = sized(
        shards={"writers": 16},
        save={"mode": "async", "blocking_seconds": 5, "staging_buffers": 2},
        storage={"write_gb_per_second": 1000, "node_gb_per_second": 50},
    )
    shard = 5.67e12 / 16
    assert sizing.host_memory is not None
    assert sizing.host_memory.bytes_per_node == 2 * shard
    assert sizing.delivered is not None
    assert sizing.delivered.write is not None
    assert sizing.delivered.write.seconds == pytest.approx(shard / 50e9, rel=1e-15)
    assert sizing.delivered.write.limited_by is Limit.NODE_BANDWIDTH


def test_staging_beyond_the_nodes_memory_is_warned_of() -> None:
    save = {"mode": "async", "blocking_seconds": 5, "staging_buffers": 2}
    tight, ample = (
        sized(save=save, cluster={"gpus": 16384, "host_memory_bytes_per_node": memory})
        for memory in (5.5e9, 5.6e9)
    )
    assert "staging_exceeds_host_memory" in _codes(tight)
    assert "staging_exceeds_host_memory" not in _codes(ample)
    assert ample.host_memory is not None
    assert ample.host_memory.memory_fraction == pytest.approx(2 * 2768554687.5 / 5.6e9, rel=1e-15)


def test_a_gpu_preset_gives_price_and_memory_that_the_spec_overrules() -> None:
    save = {"mode": "async", "blocking_seconds": 5}
    preset = {"gpus": 16384, "gpu_preset": "h100-sxm"}
    by_preset = sized(save=save, cluster=preset, prices=None)
    assert by_preset.cost is not None
    assert by_preset.cost.cluster_usd_per_hour == 16384 * 2.35
    assert by_preset.host_memory is not None
    assert by_preset.host_memory.memory_fraction == pytest.approx(2768554687.5 / 2e12, rel=1e-15)
    own = sized(
        save=save, cluster={**preset, "host_memory_bytes_per_node": 1e12}, prices={"gpu_hour_usd": 1.0}
    )
    assert own.cost is not None
    assert own.cost.cluster_usd_per_hour == 16384
    assert own.host_memory is not None
    assert own.host_memory.memory_fraction == pytest.approx(2768554687.5 / 1e12, rel=1e-15)
    other_node = sized(save=save, cluster={**preset, "gpus_per_node": 4})
    assert other_node.host_memory is not None
    assert other_node.host_memory.memory_fraction is None


def test_the_cost_of_waste_is_the_sum_of_its_parts() -> None:
    sizing = sized()
    cost = sizing.cost
    assert cost is not None
    parts = (cost.saving_usd_per_year, cost.lost_work_usd_per_year, cost.restarting_usd_per_year)
    assert all(part is not None for part in parts)
    waste = (1 - sizing.goodput.exact.goodput_fraction) * 38502.4 * 8760
    assert cost.waste_usd_per_year == pytest.approx(waste, rel=1e-14)
    assert sum(part for part in parts if part is not None) == pytest.approx(waste, rel=1e-14)


def test_space_is_billed_at_its_peak_with_protection() -> None:
    sizing = sized(
        retention={"hot_copies": 10, "hot_protection_fraction": 0.25, "cold_copies": 100},
        prices={"hot_usd_per_tb_month": 20, "cold_usd_per_tb_month": 2},
    )
    assert sizing.capacity is not None
    assert sizing.capacity.hot_bytes == 70_875_000_000_000
    assert sizing.capacity.hot_peak_bytes == 77_962_500_000_000
    assert (sizing.capacity.cold_bytes, sizing.capacity.cold_peak_bytes) == (567 * 10**12, 572_670 * 10**9)
    assert sizing.cost is not None
    assert sizing.cost.hot_usd_per_month == pytest.approx(77.9625 * 20, rel=1e-15)
    assert sizing.cost.cold_usd_per_month == pytest.approx(572.67 * 2, rel=1e-15)
    assert sizing.cost.cluster_usd_per_hour is None


@pytest.mark.parametrize(
    ("restart", "restore", "seconds", "load"),
    [
        ({"seconds": 600}, None, 600, None),
        ({"seconds": 600}, {"target_seconds": 120}, 600, 120),
        ({"load_seconds": 90}, None, 300, 90),
        ({"load_seconds": 90}, {"target_seconds": 120}, 300, 90),
        ({}, {"target_seconds": 120}, 330, 120),
    ],
)
def test_the_restart_is_whole_or_the_sum_of_its_parts(
    restart: Body, restore: Body | None, seconds: float, load: float | None
) -> None:
    parts = {"detect_seconds": 30, "reschedule_seconds": 60, "initialise_seconds": 100, "warm_up_seconds": 20}
    block = sized(restart=restart if "seconds" in restart else parts | restart, restore=restore).restart
    assert (block.seconds, block.load_seconds) == (seconds, load)


IN_PARTS = {"detect_seconds": 30, "reschedule_seconds": 60, "initialise_seconds": 100, "warm_up_seconds": 20}


def test_a_recovery_names_its_parts_and_the_longest_of_them() -> None:
    block = sized(restart=IN_PARTS).restart
    assert block.parts is not None
    assert block.replay_seconds is not None
    assert [(share.part, share.seconds) for share in block.parts] == [
        ("detect", 30),
        ("reschedule", 60),
        ("initialise", 100),
        ("load", 120),
        ("warm_up", 20),
        ("replay", block.replay_seconds),
    ]
    assert sum(share.fraction for share in block.parts) == pytest.approx(1.0, rel=1e-14)
    assert block.seconds == 330
    assert block.recovery_seconds == pytest.approx(330 + block.replay_seconds, rel=1e-15)
    assert block.dominant == "replay"
    assert sized(restart=IN_PARTS | {"load_seconds": 900}).restart.dominant == "load"


def test_replay_is_the_lost_work_of_the_goodput_and_not_counted_again() -> None:
    sizing = sized(restart=IN_PARTS)
    assert sizing.restart.replay_seconds is not None
    restarts_a_second = (1 - sizing.goodput.exact.restarting_fraction) / sizing.failures.mtbf_seconds
    assert sizing.restart.replay_seconds * restarts_a_second == pytest.approx(
        sizing.goodput.exact.lost_work_fraction, rel=1e-12
    )
    whole = sized(restart={"seconds": 330})
    assert whole.goodput == sizing.goodput
    assert (whole.restart.parts, whole.restart.dominant) == (None, None)
    assert whole.restart.replay_seconds == sizing.restart.replay_seconds


def test_spares_that_run_out_lengthen_the_mean_restart() -> None:
    without = IN_PARTS | {"reschedule_without_spares_seconds": 7260}
    stated = sized(restart=without | {"spares_exhausted_fraction": 0.1}).restart
    assert stated.seconds == pytest.approx(330 + 720, rel=1e-15)
    counted = [
        sized(restart=without | {"spare_nodes": spares, "repair_hours": 48}).restart for spares in (0, 12, 40)
    ]
    assert counted[0].spares_exhausted_fraction == 1.0
    assert counted[0].seconds == pytest.approx(330 + 7200, rel=1e-15)
    assert counted[0].seconds > counted[1].seconds > counted[2].seconds
    assert counted[2].seconds == pytest.approx(330, rel=1e-3)


def test_a_load_that_nobody_states_takes_as_long_as_the_storage_reads() -> None:
    sizing = sized(restart=IN_PARTS, restore=None, storage={"read_gb_per_second": 30})
    assert sizing.restart.load_seconds == pytest.approx(189, rel=1e-15)
    assert sizing.restart.seconds == pytest.approx(210 + 189, rel=1e-15)
    assert sizing.delivered is not None
    assert sizing.delivered.restart is not None
    assert sizing.delivered.restart.seconds == pytest.approx(sizing.restart.seconds, rel=1e-15)


def test_the_delivered_load_stands_in_the_delivered_parts() -> None:
    restart = _delivered(restart=IN_PARTS, storage={"read_gb_per_second": 30}).restart
    assert restart is not None
    assert restart.parts is not None
    (load,) = (share.seconds for share in restart.parts if share.part == "load")
    assert load == pytest.approx(189, rel=1e-15)


@pytest.mark.parametrize(
    ("blocks", "pointer", "words"),
    [
        ({"failures": {"mtbf_hours": 1e10}}, "#/failures", "between 1 and 1e+12 s"),
        (
            {"failures": {"observed_failures": 1000, "observed_hours": 0.01, "observed_gpus": 1}},
            "#/failures",
            "between 1 and",
        ),
        ({"model": {"parameters": 1, "bytes_per_parameter": 0.01}}, "#/model", "less than a byte"),
        (
            {"interval": {"rule": "young"}, "save": {"mode": "sync", "blocking_seconds": 1e5}},
            "#/save/blocking_seconds",
            "(22270.2 s)",
        ),
        (
            {"save": {"mode": "sync"}, "storage": {"write_gb_per_second": 5.67}},
            "#/storage/write_gb_per_second",
            "start more than 1000 s apart",
        ),
        (
            {"save": {"mode": "sync"}, "storage": {"node_gb_per_second": 0.001}},
            "#/storage/node_gb_per_second",
            "less than 600 s",
        ),
        (
            {
                "save": {"mode": "sync"},
                "storage": {"write_gb_per_second": 1000, "file_creates_per_second": 1},
            },
            "#/storage/file_creates_per_second",
            "start more than 16385 s apart",
        ),
        (
            {"model": {"parameters": 1e14}, "retention": {"hot_copies": 100_000}},
            "#/retention/hot_copies",
            "keep fewer",
        ),
        (
            {"model": {"parameters": 1e14}, "retention": {"cold_copies": 100_000}},
            "#/retention/cold_copies",
            "keep fewer",
        ),
        (
            {"model": {"parameters": 1e14}, "restore": {"target_seconds": 60, "read_amplification": 10_000}},
            "#/restore/read_amplification",
            "at most 6588",
        ),
    ],
)
def test_a_spec_without_an_answer_is_refused_with_what_would_satisfy(
    blocks: Body, pointer: str, words: str
) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        sized(**blocks)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]
    assert words in caught.value.faults[0].detail


def test_the_exact_rule_has_an_answer_where_youngs_has_none() -> None:
    sizing = sized(interval={"rule": "exact"}, save={"mode": "sync", "blocking_seconds": 1e5})
    assert sizing.interval.seconds > 1e5
    assert sizing.interval.young_seconds < 1e5


def test_storage_gives_the_stall_that_a_sync_save_leaves_out() -> None:
    sizing = sized(save={"mode": "sync"}, storage={"write_gb_per_second": 100})
    assert sizing.blocking.seconds == pytest.approx(56.7, rel=1e-15)
    assert sizing.write.required_gb_per_second == pytest.approx(100, rel=1e-15)
    assert sizing.delivered is not None
    assert sizing.delivered.blocking == sizing.blocking
    assert sizing.delivered.goodput == sizing.goodput


@pytest.mark.parametrize(
    ("changed", "limit", "seconds"),
    [
        ({}, Limit.AGGREGATE_BANDWIDTH, 60),
        ({"node_gb_per_second": 0.02}, Limit.NODE_BANDWIDTH, 138.427734375),
        ({"file_creates_per_second": 100.0}, Limit.FILE_CREATES, 163.85),
    ],
)
def test_the_slowest_limit_sets_the_save(changed: Body, limit: Limit, seconds: float) -> None:
    storage = {"write_gb_per_second": 94.5, "node_gb_per_second": 1.0, "file_creates_per_second": 1000.0}
    write = _delivered(storage=storage | changed).write
    assert write is not None
    assert write.limited_by is limit
    assert write.seconds == pytest.approx(seconds, rel=1e-14)
    assert write.gb_per_second == pytest.approx(5670 / seconds, rel=1e-14)
    assert write.creates_per_second == pytest.approx(16385 / seconds, rel=1e-14)


def test_the_delivered_load_replaces_the_specified_one_in_the_restart() -> None:
    delivered = _delivered(
        storage={"read_gb_per_second": 20}, restore={"target_seconds": 120, "read_amplification": 2}
    )
    assert delivered.read is not None
    assert delivered.read.seconds == pytest.approx(567)
    assert delivered.restart is not None
    assert delivered.restart.seconds == pytest.approx(600 - 120 + 567)
    assert delivered.restart.load_seconds == pytest.approx(567)
    assert delivered.goodput is not None
    assert delivered.goodput.exact.restarting_fraction == pytest.approx(
        1 - math.exp(-1047 / 11135.08353221957)
    )


def test_a_load_that_is_the_whole_restart_keeps_its_digits_when_it_is_replaced() -> None:
    delivered = _delivered(
        model={"parameters": 1000},
        restart={"seconds": 1e7},
        restore={"target_seconds": 1e7},
        storage={"read_gb_per_second": 1e9},
    )
    assert delivered.restart is not None
    assert delivered.restart.seconds == pytest.approx(1.4e4 / 1e18, rel=1e-15)


def test_a_restart_whose_load_is_unknown_stays_as_given_and_says_so() -> None:
    sizing = sized(restore=None, storage={"read_gb_per_second": 20})
    assert "load_not_separate" in _codes(sizing)
    assert sizing.delivered is not None
    assert sizing.delivered.restart == sizing.restart
    assert sizing.delivered.read is not None


def test_storage_too_slow_for_the_interval_says_so_and_names_one_that_works() -> None:
    delivered = _delivered(storage={"write_gb_per_second": 5.67})
    assert not delivered.feasible
    assert delivered.reason is not None
    assert "no time to train" in delivered.reason
    assert delivered.goodput is None
    assert delivered.next_interval_seconds is not None
    following = _delivered(
        storage={"write_gb_per_second": 5.67},
        interval={"rule": "fixed", "seconds": delivered.next_interval_seconds},
    )
    assert following.feasible
    assert following.goodput is not None


@pytest.mark.parametrize(
    ("retention", "usable_tb", "fits", "feasible"),
    [
        ({"hot_copies": 10}, 62.37, 10, True),
        ({"hot_copies": 10}, 62.36, 9, False),
        ({"hot_copies": 10, "hot_protection_fraction": 2}, 62.37, 10, True),
        (None, 11.34, 1, True),
        (None, 11.33, 0, False),
        (None, 5.0, 0, False),
    ],
)
def test_usable_space_is_enough_for_the_kept_copies_and_the_one_in_flight_or_infeasible(
    retention: Body | None, usable_tb: float, fits: int, feasible: bool
) -> None:
    delivered = _delivered(retention=retention, storage={"usable_tb": usable_tb})
    assert delivered.capacity is not None
    assert delivered.capacity.copies_that_fit == fits
    assert delivered.feasible is feasible
    assert (delivered.reason is None) is feasible
    if retention is not None:
        assert delivered.capacity.hot_peak_fraction == pytest.approx(62.37 / usable_tb, rel=1e-12)
    else:
        assert delivered.capacity.hot_peak_fraction is None


def test_space_that_is_too_small_says_how_much_is_needed() -> None:
    reason = _delivered(storage={"usable_tb": 50}).reason
    assert reason is not None
    assert "62.37 TB" in reason
    assert "50 TB" in reason


def test_space_is_full_after_as_many_intervals_as_copies_go_in() -> None:
    capacity = _delivered(storage={"usable_tb": 60}).capacity
    assert capacity is not None
    assert capacity.full_after_seconds == 10 * 600


@pytest.mark.parametrize("limit", [{"node_gb_per_second": 0.02}, {"file_creates_per_second": 100.0}])
def test_a_save_timed_without_the_aggregate_bandwidth_says_that_it_can_only_take_longer(
    limit: dict[str, float],
) -> None:
    sizing = sized(storage=limit)
    found = [
        warning for warning in sizing.warnings if warning.code is WarningCode.AGGREGATE_BANDWIDTH_UNKNOWN
    ]
    assert sizing.delivered is not None
    assert sizing.delivered.write is not None
    assert found[0].pointer == "#/storage/write_gb_per_second"
