"""Steps and drifts by hand, against scipy, by simulation, and for any numbers at all."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from service.judgement.change import (
    CLEAR_FRACTION,
    LEAST_POINTS,
    SUSPECTED_FRACTION,
    Drift,
    Step,
    change,
    separation_probability,
    slope,
    steps,
)

DAYS = [float(day) for day in range(400)]


def _change(*values: float) -> list[Step] | Drift | None:
    return change(times=DAYS[: len(values)], values=values)


def _steps(*values: float) -> list[Step]:
    found = _change(*values)
    assert isinstance(found, list)
    return found


def _levels(found: list[Step]) -> list[tuple[int, float, float]]:
    return [(step.first_after, step.before, step.after) for step in found]


def test_the_probability_of_a_separation_by_hand() -> None:
    # Of the 20 ways to place three values among six, one has them all first and one all last.
    assert separation_probability([100, 101, 99], [60, 61, 59]) == 2 / 20
    # One pair of nine in the wrong order: besides those two, one neighbour of each.
    assert separation_probability([100, 101, 60], [59, 58, 61]) == 4 / 20
    # Equal values count as wrong.
    assert separation_probability([100, 100, 60], [59, 58, 60]) == 4 / 20
    assert separation_probability([1.0] * 4, [1.0] * 4) == 1.0


@pytest.mark.parametrize(("few", "many"), [(3, 3), (3, 5), (4, 4), (4, 7), (6, 6)])
def test_the_probability_of_a_separation_is_that_of_mann_and_whitney(few: int, many: int) -> None:
    generator = random.Random(few * 100 + many)  # noqa: S311 - a simulation
    for _ in range(20):
        values = [generator.random() for _ in range(few + many)]
        expected = stats.mannwhitneyu(values[:few], values[few:], method="exact").pvalue
        assert separation_probability(values[:few], values[few:]) == pytest.approx(expected, rel=1e-12)
        assert separation_probability(values[few:], values[:few]) == pytest.approx(expected, rel=1e-12)


def test_the_probability_is_a_count_of_orders_whatever_the_values() -> None:
    # Every order of these seven, however far apart they lie: as many as the figure says part as cleanly.
    values = [1.0, 2.0, 3.0, 50.0, 51.0, 5000.0, 1e9]
    figures = [separation_probability(order[:3], order[3:]) for order in itertools.permutations(values)]
    for level in set(figures):
        assert sum(each <= level for each in figures) / len(figures) == pytest.approx(level)


def test_of_six_points_a_clean_step_is_suspected_and_no_more() -> None:
    (step,) = _steps(100, 101, 99, 60, 61, 59)
    assert (step.first_after, step.points_before, step.points_after) == (3, 3, 3)
    assert [step.before, step.after] == [100.0, 60.0]
    assert step.probability == 2 / 20  # and one place for it
    assert not step.is_clear


def test_a_step_by_hand() -> None:
    (step,) = _steps(100, 101, 99, 100, 98, 80, 81, 79, 80, 78, 79)
    # All five above all six: 2 orders of C(11, 5) = 462; a step could begin at six of the points.
    assert (step.first_after, step.before, step.after) == (5, 100.0, 79.5)
    assert step.probability == pytest.approx(6 * 2 / 462)
    assert not step.is_clear
    (step,) = _steps(*[100, 101, 99] * 2, *[80, 81, 79] * 2)
    assert step.probability == pytest.approx(7 * 2 / 924)
    assert step.is_clear


def test_every_step_is_found_and_the_newest_comes_last() -> None:
    rise_and_fall = (
        [50.1, 49.9, 50.3, 49.6, 50.0] * 2 + [99.8, 100.4, 101.0, 99.1, 100.0] * 2 + [75.2, 74.9, 75.9, 74.1]
    )
    found = _steps(*rise_and_fall)
    assert _levels(found) == [(10, 50.0, 100.0), (20, 100.0, pytest.approx(75.05))]
    assert [step.is_clear for step in found] == [True, True]
    assert found[1].probability == pytest.approx(9 * 2 / math.comb(14, 4))


def test_a_dip_is_two_steps() -> None:
    assert _levels(_steps(*[100.0] * 6, *[50.0] * 6, *[100.0] * 6)) == [(6, 100.0, 50.0), (12, 50.0, 100.0)]


def test_two_clean_steps_are_no_drift() -> None:
    falling = [100.0, 101.0, 99.0] * 2 + [75.0, 76.0, 74.0] * 2 + [50.0, 51.0, 49.0] * 2
    assert _levels(_steps(*falling)) == [(6, 100.0, 75.0), (12, 75.0, 50.0)]


def test_a_clear_step_stands_beside_a_suspected_one() -> None:
    found = _steps(*[50.0, 51.0] * 5, *[100.0, 101.0, 99.0] * 2, 75.0, 76.0, 74.0)
    assert [(step.first_after, step.is_clear) for step in found] == [(10, True), (16, False)]
    assert found[1].probability == pytest.approx(4 * 2 / math.comb(9, 3))


def test_the_best_cuts_are_the_best_of_all() -> None:
    generator = random.Random(7)  # noqa: S311 - a simulation
    for _ in range(20):
        values = [generator.choice([50, 75, 100]) + generator.random() for _ in range(11)]
        found = steps(values)
        if len(found) != 1:
            continue
        distances = {at: _distance(values[:at]) + _distance(values[at:]) for at in range(3, 9)}
        assert distances[found[0].first_after] == pytest.approx(min(distances.values()))


def _distance(values: list[float]) -> float:
    middle = sorted(values)[len(values) // 2]
    return sum(abs(value - middle) for value in values)


def test_a_drift_by_hand_and_against_scipy() -> None:
    # A point a day, each a hundredth lower: from 100 to 81 in 19 days.
    values = [100.0 - day for day in range(20)]
    found = _change(*values)
    assert isinstance(found, Drift)
    assert [found.slope, found.begin, found.end] == pytest.approx([-1.0, 100.0, 81.0])
    noisy = [value + (0.7, -0.4, 0.1, -0.6, 0.5)[day % 5] for day, value in enumerate(values)]
    mine = slope(times=DAYS[:20], values=noisy)
    oracle = stats.theilslopes(noisy, DAYS[:20], alpha=1 - CLEAR_FRACTION)
    assert mine is not None
    assert mine.slope == pytest.approx(oracle.slope)
    # The ends of the interval are scipy's, or one rank further out: those here are rounded outwards.
    assert mine.low <= oracle.low_slope < oracle.high_slope <= mine.high
    assert mine.high - mine.low == pytest.approx(oracle.high_slope - oracle.low_slope, rel=0.1)


def test_a_step_is_not_taken_for_a_drift_nor_the_reverse() -> None:
    assert _levels(
        _steps(*[100.0 + day % 2 for day in range(10)], *[70.0 + day % 2 for day in range(10)])
    ) == [(10, 100.5, 70.5)]
    assert isinstance(_change(*[100.0 - 2 * day + day % 3 for day in range(20)]), Drift)
    # A drift could be cut into clean levels as well, but lies closer to its line.
    assert len(steps([100.0 - day for day in range(40)])) > 1
    assert isinstance(_change(*[100.0 - day for day in range(40)]), Drift)


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
    assert isinstance(found, list)
    assert found[0].probability == 0.1


def test_a_series_from_nothing_is_a_step() -> None:
    assert _levels(_steps(0, 0, 0, 0, 5, 5, 5, 5)) == [(4, 0.0, 5.0)]


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("count", [6, 10, 24])
def test_where_there_is_no_change_one_is_seldom_seen(shape: str, count: int) -> None:
    generator = random.Random(20261129)  # noqa: S311 - a simulation
    clear = suspected = drifts = 0
    for _ in range(400):
        noise = [generator.gauss(0.0, 0.25) for _ in range(count)]
        found = _change(
            *(100.0 * (math.exp(2 * each) if shape == "skewed" else max(1 + each, 0.0)) for each in noise)
        )
        drifts += isinstance(found, Drift)
        if isinstance(found, list):
            clear += any(step.is_clear for step in found)
            suspected += not any(step.is_clear for step in found)
    # Each as often as it says, and chance.
    assert clear <= 400 * CLEAR_FRACTION + 8
    assert drifts <= 400 * CLEAR_FRACTION + 8
    assert suspected <= 400 * SUSPECTED_FRACTION


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
    for step in found if isinstance(found, list) else []:
        assert 3 <= step.first_after <= len(values) - 3
        assert min(values) <= min(step.before, step.after) + 1e-300 * max(values)  # what may underflow
        assert max(step.before, step.after) <= max(values) * (1 + 1e-12)
        assert 0.0 < step.probability <= SUSPECTED_FRACTION
    if isinstance(found, Drift):
        assert found.low <= found.slope <= found.high
        assert found.low > 0.0 or found.high < 0.0
