"""Steps and drifts: by hand, against scipy as the oracle, and by how often they are seen where there are none."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from service.judgement.change import (
    LEAST_POINTS,
    SIGNIFICANCE_FRACTION,
    Drift,
    Step,
    change,
    largest_step,
    slope,
)

DAYS = [float(day) for day in range(400)]


def _change(*values: float) -> Step | Drift | None:
    return change(times=DAYS[: len(values)], values=values)


def test_a_step_by_hand() -> None:
    # Means 100 and 80, squares 2 + 2 with 6 degrees of freedom: t = 20 / sqrt(4/6 * (1/4 + 1/4)) = 34.64.
    found = _change(100, 101, 99, 100, 80, 81, 79, 80)
    assert isinstance(found, Step)
    assert found.first_after == 4
    assert [found.before, found.after] == pytest.approx([100.0, 80.0])
    # Three splits leave three points on either side.
    expected = 3 * 2 * float(stats.t.sf(34.64101615137755, 6))
    assert found.probability == pytest.approx(expected, rel=1e-6)


def test_the_statistic_of_a_step_is_students() -> None:
    values = [9.1, 10.2, 9.7, 10.0, 11.9, 12.4, 12.1]
    found = largest_step(values)
    best = min(
        (float(stats.ttest_ind(values[:at], values[at:]).pvalue), at) for at in range(3, len(values) - 2)
    )
    assert found.first_after == best[1] == 4
    assert found.probability == pytest.approx(best[0] * 2, rel=1e-9)  # at 3 and at 4 points


def test_a_drift_by_hand_and_against_scipy() -> None:
    # A point a day, each a hundredth lower: from 100 to 81 in 19 days.
    values = [100.0 - day for day in range(20)]
    found = _change(*values)
    assert isinstance(found, Drift)
    assert [found.slope, found.begin, found.end] == pytest.approx([-1.0, 100.0, 81.0])
    noisy = [value + (0.7, -0.4, 0.1, -0.6, 0.5)[day % 5] for day, value in enumerate(values)]
    mine = slope(times=DAYS[:20], values=noisy)
    oracle = stats.theilslopes(noisy, DAYS[:20], alpha=1 - SIGNIFICANCE_FRACTION)
    assert mine is not None
    assert mine.slope == pytest.approx(oracle.slope)
    # The ends of the interval are scipy's, or one rank further out: those here are rounded outwards.
    assert mine.low <= oracle.low_slope < oracle.high_slope <= mine.high
    assert mine.high - mine.low == pytest.approx(oracle.high_slope - oracle.low_slope, rel=0.1)


def test_a_step_is_not_taken_for_a_drift_nor_the_reverse() -> None:
    step = _change(*[100.0 + day % 2 for day in range(10)], *[70.0 + day % 2 for day in range(10)])
    assert isinstance(step, Step)
    assert step.first_after == 10
    assert isinstance(_change(*[100.0 - 2 * day + day % 3 for day in range(20)]), Drift)


@pytest.mark.parametrize(
    "values",
    [
        [100.0] * 6,
        [0.0] * 6,
        [100.0, 101.0, 99.0, 100.0, 95.0, 94.0, 96.0, 95.0],  # certain, and 5 % only
        [100.0, 60.0, 140.0, 90.0, 80.0, 120.0, 70.0, 100.0],  # large, and not certain
        [100.0, 100.0, 100.0, 100.0, 100.0, 1.0],  # one bad day at the end is no step yet
        [100.0, 100.0, 100.0, 1.0, 100.0, 100.0, 100.0],
        [1.0, 1.0 + 1e-16, 1.0, 1.0, 1.0 + 2e-16, 1.0],
    ],
)
def test_what_is_no_change(values: list[float]) -> None:
    assert _change(*values) is None


def test_points_of_one_moment_have_no_slope() -> None:
    assert slope(times=[1.0] * 6, values=[1, 2, 3, 4, 5, 6]) is None
    found = change(times=[1.0] * 6, values=[100.0, 100.0, 100.0, 50.0, 50.0, 50.0])
    assert isinstance(found, Step)
    assert found.probability == 0.0


def test_a_series_from_nothing_is_a_step() -> None:
    found = _change(0, 0, 0, 0, 5, 5, 5, 5)
    assert isinstance(found, Step)
    assert (found.before, found.after) == (0.0, 5.0)


def test_where_there_is_no_change_one_is_seldom_seen() -> None:
    # Two tests of 1 % each: at most 2 % and chance.
    generator = random.Random(20261129)  # noqa: S311 - a simulation
    seen = 0
    for _ in range(1000):
        values = [generator.gauss(100.0, 25.0) for _ in range(generator.choice([6, 10, 30]))]
        seen += _change(*(max(value, 0.0) for value in values)) is not None
    assert seen <= 35


@settings(deadline=None)
@given(
    values=st.lists(
        st.floats(min_value=0, max_value=1e300, allow_subnormal=True), min_size=LEAST_POINTS, max_size=30
    ),
    gaps=st.lists(st.floats(min_value=0, max_value=1e5), min_size=30, max_size=30),
)
def test_any_series_is_answered_in_numbers(values: list[float], gaps: list[float]) -> None:
    times = [sum(gaps[:at]) for at in range(len(values))]
    found = change(times=times, values=values)
    if isinstance(found, Step):
        assert 3 <= found.first_after <= len(values) - 3
        assert min(values) <= min(found.before, found.after)
        assert max(found.before, found.after) <= max(values) * (1 + 1e-12)
        assert 0.0 <= found.probability <= SIGNIFICANCE_FRACTION
    if isinstance(found, Drift):
        assert found.low <= found.slope <= found.high
        assert found.low > 0.0 or found.high < 0.0
