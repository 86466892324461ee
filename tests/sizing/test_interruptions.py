"""What interrupts a job: each way to say it, how far off it may be, and what is planned."""

import math

import pytest
from hypothesis import given, settings

from service.errors import Unsatisfiable
from service.sizing.size import size
from service.sizing.sizing import AtMtbf, PlannedInterruptions, Sizing, Uncertainty, WarningCode
from service.sizing.spec import ScenarioSpec
from tests.sizing.scenarios import LLAMA_3_FAILURES, Body, bodies, sized

NODE = [
    {"component": "gpu", "per_node": 8, "mtbf_hours": 50_000},
    {"component": "nic", "per_node": 2, "mtbf_hours": 150_000},
    {"component": "psu", "per_node": 2, "mtbf_hours": 100_000},
]
NOTHING_FAILED = {"observed_failures": 0, "observed_hours": 1296, "observed_gpus": 16384}


def _codes(sizing: Sizing) -> set[WarningCode]:
    return {warning.code for warning in sizing.warnings}


def _uncertainty(sizing: Sizing) -> Uncertainty:
    assert sizing.uncertainty is not None
    return sizing.uncertainty


def _planned(sizing: Sizing) -> PlannedInterruptions:
    assert sizing.planned is not None
    return sizing.planned


def test_components_add_up_over_a_node_and_the_nodes() -> None:
    block = sized(failures={"components": NODE}, cluster={"gpus": 10_000}).failures
    assert block.node_mtbf_seconds is not None
    assert round(block.node_mtbf_seconds / 3600, 1) == 5172.4
    assert round(block.mtbf_seconds / 3600, 3) == 4.138
    assert block.confidence_fraction is None


def test_each_component_has_its_share_of_the_failures() -> None:
    block = sized(failures={"components": NODE}).failures
    assert block.components is not None
    assert [part.component for part in block.components] == ["gpu", "nic", "psu"]
    # 8/50, 2/150 and 2/100 failures in 1000 h: 24, 2 and 3 parts of 29.
    shares = [part.share_fraction for part in block.components]
    assert shares == pytest.approx([24 / 29, 2 / 29, 3 / 29], rel=1e-14)
    assert sum(part.failures_per_day for part in block.components) == pytest.approx(
        block.failures_per_day, rel=1e-14
    )


def test_a_rate_by_1000_node_days_holds_for_the_nodes_of_this_cluster() -> None:
    by_eight = sized(failures={"per_1000_node_days": 6.5}).failures
    assert round(by_eight.mtbf_seconds / 3600, 2) == 1.80
    assert by_eight.per_1000_node_days == pytest.approx(6.5, rel=1e-14)
    by_four = sized(
        failures={"per_1000_node_days": 6.5}, cluster={"gpus": 16384, "gpus_per_node": 4}
    ).failures
    assert by_four.mtbf_seconds == pytest.approx(by_eight.mtbf_seconds / 2, rel=1e-14)


def test_every_answer_says_the_rate_in_the_unit_of_published_ones() -> None:
    assert sized(failures={"preset": "meta-rsc-2"}).failures.per_1000_node_days == pytest.approx(
        2.34, rel=1e-12
    )
    # 419 failures in 54 days on 2,048 nodes.
    assert sized().failures.per_1000_node_days == pytest.approx(419 / 54 / 2.048, rel=1e-14)


def test_a_new_cluster_fails_as_many_times_as_often() -> None:
    settled, new = sized().failures, sized(failures={**LLAMA_3_FAILURES, "early_life_factor": 4}).failures
    assert new.mtbf_seconds == pytest.approx(settled.mtbf_seconds / 4, rel=1e-15)
    assert new.settled_mtbf_seconds == settled.mtbf_seconds
    assert settled.settled_mtbf_seconds is None
    assert settled.mtbf_low_seconds is not None
    assert new.mtbf_low_seconds == pytest.approx(settled.mtbf_low_seconds / 4, rel=1e-14)


def test_a_new_cluster_of_components_keeps_the_settled_figure_of_its_node() -> None:
    block = sized(failures={"components": NODE, "early_life_factor": 2}).failures
    assert block.node_mtbf_seconds is not None
    assert block.settled_mtbf_seconds == block.node_mtbf_seconds / 2048
    assert block.mtbf_seconds == block.settled_mtbf_seconds / 2


def test_what_is_counted_is_shown_back() -> None:
    assert (
        sized(failures={**LLAMA_3_FAILURES, "counts": "Exits by signal."}).failures.counts
        == "Exits by signal."
    )
    assert sized().failures.counts is None
    counted = sized(failures={"preset": "imbue-70b"}).failures.counts
    assert counted is not None
    assert counted.startswith("Machines that break")


def test_a_record_without_a_failure_gives_a_bound_that_is_said_to_be_one() -> None:
    sizing = sized(failures=NOTHING_FAILED)
    block = sizing.failures
    assert block.mtbf_seconds == pytest.approx(1296 * 3600 / math.log(20), rel=1e-14)
    assert block.mtbf_seconds == pytest.approx(1296 * 3600 / 2.996, rel=1e-4)
    assert block.mtbf_is_lower_bound
    assert (block.mtbf_low_seconds, block.mtbf_high_seconds) == (block.mtbf_seconds, None)
    assert block.confidence_fraction == 0.95
    assert sizing.uncertainty is None
    (warning,) = (w for w in sizing.warnings if w.code is WarningCode.NO_OBSERVED_FAILURES)
    assert warning.pointer == "#/failures/observed_failures"
    assert "Nothing failed in 1296 h on 16384 GPUs" in warning.message
    assert WarningCode.FEW_OBSERVED_FAILURES not in _codes(sizing)


def test_a_record_with_failures_is_no_bound() -> None:
    assert not sized().failures.mtbf_is_lower_bound
    assert not sized(failures={"mtbf_hours": 3}).failures.mtbf_is_lower_bound


def test_a_short_record_of_a_preset_is_doubted_where_the_preset_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.sizing.interruptions.FEW_FAILURES", 500)
    (warning,) = (
        w
        for w in sized(failures={"preset": "llama-3-405b"}).warnings
        if w.code is WarningCode.FEW_OBSERVED_FAILURES
    )
    assert warning.pointer == "#/failures/preset"


def test_llama_3s_uncertainty_reaches_the_interval_goodput_and_dollars() -> None:
    sizing = sized(interval={"rule": "exact"})
    block = _uncertainty(sizing)
    assert (round(block.low.mtbf_seconds), round(block.high.mtbf_seconds)) == (10_118, 12_283)
    assert sizing.cost is not None
    assert sizing.cost.waste_usd_per_year is not None
    assert block.low.waste_usd_per_year is not None
    assert block.high.waste_usd_per_year is not None
    assert block.low.interval_seconds < sizing.interval.seconds < block.high.interval_seconds
    assert block.low.waste_usd_per_year > sizing.cost.waste_usd_per_year > block.high.waste_usd_per_year
    assert block.low.goodput_fraction is not None
    assert block.high.goodput_fraction is not None
    assert block.low.goodput_fraction < sizing.goodput.exact.goodput_fraction < block.high.goodput_fraction


def test_a_fixed_interval_is_not_moved_by_the_uncertainty() -> None:
    block = _uncertainty(sized())
    assert block.low.interval_seconds == block.high.interval_seconds == 600


def test_only_an_observed_record_has_an_uncertainty() -> None:
    for failures in ({"mtbf_hours": 3}, {"per_1000_node_days": 6.5}, {"components": NODE}):
        assert sized(failures=failures).uncertainty is None
    assert sized(prices=None).uncertainty is not None
    assert _uncertainty(sized(prices=None)).low.waste_usd_per_year is None


def test_an_end_that_leaves_no_time_to_train_is_told() -> None:
    sizing = sized(
        failures={"observed_failures": 1, "observed_hours": 1, "observed_gpus": 16384},
        save={"mode": "sync", "blocking_seconds": 5000},
        interval={"rule": "young"},
    )
    low = _uncertainty(sizing).low
    assert low.interval_seconds < 5000
    assert low.goodput_fraction is low.waste_fraction is low.waste_usd_per_year is None
    assert WarningCode.NO_USEFUL_TIME_AT_LOW_MTBF in _codes(sizing)
    assert WarningCode.NO_USEFUL_TIME_AT_LOW_MTBF not in _codes(sized())


@settings(derandomize=True, deadline=None, max_examples=150)
@given(body=bodies())
def test_each_end_is_what_the_scenario_is_at_that_mean_time(body: Body) -> None:
    body = {**body, "failures": {"observed_failures": 7, "observed_hours": 40, "observed_gpus": 512}}
    try:
        sizing = size(ScenarioSpec.model_validate(body))
    except Unsatisfiable:
        return
    for end in (_uncertainty(sizing).low, _uncertainty(sizing).high):
        assert _as_sized(body, end) == pytest.approx(_figures_of(end), rel=1e-9, abs=1e-300)


def _figures_of(end: AtMtbf) -> list[float]:
    goodput = end.goodput_fraction if end.goodput_fraction is not None else -1.0
    return [end.interval_seconds, goodput, end.waste_usd_per_year or 0.0]


def _as_sized(body: Body, end: AtMtbf) -> list[float]:
    """Return what a sizing says for the mean time of one end, given directly."""
    spec = ScenarioSpec.model_validate({**body, "failures": {"mtbf_hours": end.mtbf_seconds / 3600}})
    try:
        sizing = size(spec)
    except Unsatisfiable:  # beyond the range that is sized, or no time to train
        return _figures_of(end)
    wasted = sizing.cost.waste_usd_per_year if sizing.cost is not None else None
    return [sizing.interval.seconds, sizing.goodput.exact.goodput_fraction, wasted or 0.0]


def test_spares_run_out_more_often_at_the_low_end() -> None:
    restart = {
        "detect_seconds": 30,
        "reschedule_seconds": 60,
        "reschedule_without_spares_seconds": 7200,
        "spare_nodes": 16,
        "repair_hours": 48,
        "initialise_seconds": 100,
        "warm_up_seconds": 20,
    }
    sizing = sized(restart=restart)
    block = _uncertainty(sizing)
    assert block.low.restart_seconds is not None
    assert block.high.restart_seconds is not None
    assert block.low.restart_seconds > sizing.restart.seconds > block.high.restart_seconds
    assert _uncertainty(sized()).low.restart_seconds is None


def test_a_wait_for_staging_memory_follows_the_interval_at_each_end() -> None:
    save = {"mode": "async", "blocking_seconds": 5, "staging_budget_bytes_per_node": 10**9}
    sizing = sized(save=save, interval={"rule": "exact"})
    block = _uncertainty(sizing)
    assert block.low.blocking_seconds is not None
    assert block.high.blocking_seconds is not None
    assert block.low.blocking_seconds < sizing.blocking.seconds < block.high.blocking_seconds


def test_planned_interruptions_are_told_apart_and_change_no_other_figure() -> None:
    with_planned = sized(failures={**LLAMA_3_FAILURES, "observed_planned": 47})
    block = _planned(with_planned)
    assert block.per_day == pytest.approx(47 / 54, rel=1e-14)
    assert block.restarting_fraction == pytest.approx(47 / 54 * 600 / 86400, rel=1e-14)
    assert block.restarting_usd_per_year == pytest.approx(
        block.restarting_fraction * 38502.4 * 8760, rel=1e-14
    )
    assert with_planned.model_copy(update={"planned": None}) == sized()


def test_planned_interruptions_do_not_grow_with_the_gpus() -> None:
    record = {**LLAMA_3_FAILURES, "observed_planned": 47, "early_life_factor": 3}
    few, many = (sized(failures=record, cluster={"gpus": gpus}) for gpus in (1024, 16384))
    assert _planned(few).per_day == _planned(many).per_day == pytest.approx(47 / 54, rel=1e-14)


def test_no_planned_interruptions_is_a_figure_and_none_counted_is_not() -> None:
    assert _planned(sized(failures={**LLAMA_3_FAILURES, "observed_planned": 0})).restarting_fraction == 0
    assert sized().planned is None
    assert _planned(sized(failures={"preset": "llama-3-405b"}, prices=None)).restarting_usd_per_year is None


def test_the_effective_training_time_ratio_counts_restarts_and_half_an_interval() -> None:
    sizing = sized()
    first = sizing.goodput.first_order
    expected = 1 - first.lost_work_fraction - first.restarting_fraction
    assert sizing.goodput.effective_training_time_ratio == pytest.approx(expected, rel=1e-14)


def test_the_ratio_of_metas_study_is_worked_out_in_its_own_unit() -> None:
    # 1,500 nodes of RSC-1, 5 min of overhead, hourly checkpoints: 9.75 failures a day, 35 min each.
    sizing = sized(
        failures={"preset": "meta-rsc-1"},
        cluster={"gpus": 12_000},
        restart={"seconds": 300},
        restore=None,
        interval={"rule": "fixed", "seconds": 3600},
    )
    assert sizing.goodput.effective_training_time_ratio == pytest.approx(1 - 9.75 * 35 / 1440, rel=1e-12)


def test_a_ratio_below_0_is_reported_as_it_is_with_a_warning() -> None:
    sizing = sized(failures={"mtbf_hours": 0.1})
    assert sizing.goodput.effective_training_time_ratio == pytest.approx(1 - 900 / 360, rel=1e-14)
    assert WarningCode.EFFECTIVE_TRAINING_TIME_NEGATIVE in _codes(sizing)
    assert WarningCode.EFFECTIVE_TRAINING_TIME_NEGATIVE not in _codes(sized())


@settings(derandomize=True, deadline=None, max_examples=150)
@given(body=bodies())
def test_the_figures_of_failures_hang_together(body: Body) -> None:
    try:
        block = size(ScenarioSpec.model_validate(body)).failures
    except Unsatisfiable:
        return
    assert 1.0 <= block.mtbf_seconds <= 1e12
    assert block.failures_per_day * block.mtbf_seconds == pytest.approx(86400, rel=1e-12)
    if block.settled_mtbf_seconds is not None:
        assert block.settled_mtbf_seconds >= block.mtbf_seconds
    if block.components is not None:
        assert sum(part.share_fraction for part in block.components) == pytest.approx(1, rel=1e-12)
    if block.mtbf_low_seconds is not None:
        assert block.mtbf_low_seconds <= block.mtbf_seconds
    assert block.mtbf_is_lower_bound == (
        block.mtbf_high_seconds is None and block.mtbf_low_seconds is not None
    )
