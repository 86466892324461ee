"""Mean time between failures of a job, and how far off it may be."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from service.sizing import failures
from tests.sizing.scenarios import logarithmic, logarithmic_count


def test_the_rate_grows_with_the_gpus() -> None:
    record = {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16384}
    assert failures.observed_mtbf(**record, gpus=16384) == pytest.approx(1296 * 3600 / 419, rel=1e-15)
    assert failures.observed_mtbf(**record, gpus=65536) == pytest.approx(1296 * 900 / 419, rel=1e-15)


def test_a_rate_by_node_is_one_over_that_many_nodes() -> None:
    # 6.50 failures per 1000 node-days, 128 nodes of 8.
    by_node = failures.scaled_mtbf(mtbf_hours=24_000 / 6.5, mtbf_gpus=8, gpus=1024)
    assert by_node == pytest.approx(1000 / 6.5 / 128 * 86400, rel=1e-14)
    assert failures.failures_per_day(mtbf_seconds=by_node) == pytest.approx(0.0065 * 128, rel=1e-14)


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390), (100, 81.364, 121.627)],
)
def test_the_bounds_are_those_of_garwoods_table(count: int, low: float, high: float) -> None:
    bounds = failures.poisson_bounds(mtbf_seconds=1.0 / count, failures=count, confidence_fraction=0.95)
    assert 1 / bounds.high_seconds == pytest.approx(low, abs=6e-4)
    assert 1 / bounds.low_seconds == pytest.approx(high, abs=6e-4)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(count=logarithmic_count(1, 10**9))
def test_each_bound_leaves_two_and_a_half_percent(count: int) -> None:
    bounds = failures.poisson_bounds(mtbf_seconds=1.0, failures=count, confidence_fraction=0.95)
    assert 0 < bounds.low_seconds < 1 < bounds.high_seconds
    assert math.isfinite(bounds.high_seconds)
    most, fewest = count / bounds.low_seconds, count / bounds.high_seconds
    # The tail moves by about the root of the count times the error of the bound.
    tolerance = 1e-9 * math.sqrt(count)
    assert poisson.cdf(count, most) == pytest.approx(0.025, rel=tolerance + 1e-9)
    assert poisson.sf(count - 1, fewest) == pytest.approx(0.025, rel=tolerance + 1e-9)


def test_each_end_alone_is_the_interval_s() -> None:
    inputs = {"mtbf_seconds": 11135.0, "confidence_fraction": 0.95}
    both = failures.poisson_bounds(**inputs, failures=419)
    assert failures.mtbf_low(**inputs, observed_failures=419) == both.low_seconds
    assert failures.mtbf_high(**inputs, observed_failures=419) == both.high_seconds


def test_a_node_fails_as_often_as_all_of_its_components() -> None:
    # 8 GPUs at 50,000 h, 2 NICs at 150,000 h, 2 supplies at 100,000 h.
    node = failures.node_mtbf_of_components([(8, 50_000), (2, 150_000), (2, 100_000)])
    assert round(node / 3600, 1) == 5172.4
    assert round(failures.mtbf_of_nodes(node_mtbf_seconds=node, nodes=1250) / 3600, 3) == 4.138


@settings(derandomize=True, deadline=None, max_examples=80)
@given(parts=st.lists(st.tuples(logarithmic(1e-4, 1e5), logarithmic(1e-4, 1e10)), min_size=1, max_size=64))
def test_a_node_lasts_no_longer_than_its_weakest_component(parts: list[tuple[float, float]]) -> None:
    node = failures.node_mtbf_of_components(parts)
    assert 0 < node < math.inf
    assert node <= min(hours / per_node for per_node, hours in parts) * 3600 * (1 + 1e-12)
    shares = [
        failures.component_share(per_node=per_node, mtbf_hours=hours, node_mtbf_seconds=node)
        for per_node, hours in parts
    ]
    assert sum(shares) == pytest.approx(1, rel=1e-12)


def test_2048_nodes_at_6_5_per_1000_node_days_fail_every_1_8_hours() -> None:
    node = failures.node_mtbf_of_rate(rate_per_1000_node_days=6.5)
    assert round(failures.mtbf_of_nodes(node_mtbf_seconds=node, nodes=2048) / 3600, 2) == 1.80


@pytest.mark.parametrize(("confidence", "expected"), [(0.95, 2.9957), (0.99, 4.6052), (0.6, 0.9163)])
def test_no_failures_leave_one_minus_the_confidence_at_the_bound(confidence: float, expected: float) -> None:
    bound = failures.bound_of_no_failures(
        observed_hours=100, observed_gpus=8, gpus=16, confidence_fraction=confidence
    )
    counted = 100 * 3600 * 8 / 16 / bound
    assert counted == pytest.approx(expected, abs=5e-5)
    assert poisson.cdf(0, counted) == pytest.approx(1 - confidence, rel=1e-12)


def test_planned_stops_cost_their_restarts() -> None:
    per_day = failures.planned_per_day(observed_planned=47, observed_hours=1296)
    assert per_day == pytest.approx(47 / 54, rel=1e-15)
    assert failures.planned_fraction(planned_per_day=per_day, restart_seconds=600) == pytest.approx(
        0.00604, abs=5e-6
    )
