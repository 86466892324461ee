"""How often to save: the rules against each other, against 50 digits, and with the stall a fraction of the period."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from service.sizing import interval
from service.sizing.goodput import exact_goodput
from tests.sizing.scenarios import logarithmic

MTBF = logarithmic(1.0, 1e12)


def _useful_to_50_digits(ratio: Decimal) -> Decimal:
    """Return the x with -ln(1 - x) - x = ratio, by bisection on y = -ln(1 - x)."""
    low, high = Decimal(0), 1 + ratio + (2 * ratio).sqrt() * 2
    for _ in range(260):
        y = (low + high) / 2
        if y - 1 + (-y).exp() < ratio:
            low = y
        else:
            high = y
    return 1 - (-high).exp()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(ratio=logarithmic(1e-13, 100.0), mtbf=MTBF)
def test_the_exact_interval_keeps_its_digits(ratio: float, mtbf: float) -> None:
    blocking = ratio * mtbf
    with localcontext(prec=70):
        useful = Decimal(mtbf) * _useful_to_50_digits(Decimal(blocking) / Decimal(mtbf))
        exact = Decimal(blocking) + useful
        found = interval.exact_interval(blocking_seconds=blocking, mtbf_seconds=mtbf)
        assert abs(Decimal(found) / exact - 1) < Decimal("2e-15")


def test_the_exact_interval_keeps_its_digits_where_the_stall_is_a_trillionth_of_the_mtbf() -> None:
    with localcontext(prec=70):
        useful = _useful_to_50_digits(Decimal("1e-12"))
        found = interval.exact_interval(blocking_seconds=1e-3, mtbf_seconds=1e9) - 1e-3
        assert float(Decimal(10) ** 9 * useful) == pytest.approx(found, rel=1e-14)


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.4999999, 0.5, 0.5000001, 1.0, 2.0, 10.0, 700.0])
def test_the_exact_interval_is_lamberts_where_that_is_accurate(ratio: float) -> None:
    oracle = ratio + 1.0 + lambertw(-math.exp(-1.0 - ratio)).real
    assert interval.exact_interval(blocking_seconds=ratio, mtbf_seconds=1.0) == pytest.approx(
        oracle, rel=1e-10
    )


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    blocking=logarithmic(1e-6, 1e7),
    mtbf=MTBF,
    restart=logarithmic(1e-6, 1e7),
    lag=st.just(0.0) | logarithmic(1e-6, 1e7),
    step=st.sampled_from([1e-3, 1e-2, 0.1, 1.0]),
)
def test_the_exact_interval_beats_its_neighbours(
    blocking: float, mtbf: float, restart: float, lag: float, step: float
) -> None:
    def goodput(period: float) -> float:
        return exact_goodput(
            interval_seconds=period,
            blocking_seconds=blocking,
            restart_seconds=restart,
            durable_lag_seconds=lag,
            mtbf_seconds=mtbf,
        ).goodput

    best = interval.exact_interval(blocking_seconds=blocking, mtbf_seconds=mtbf)
    useful = best - blocking
    reached = goodput(best)
    for neighbour in (useful / (1.0 + step), useful * (1.0 + step)):
        assert goodput(blocking + neighbour) <= reached * (1.0 + 1e-14)


@pytest.mark.parametrize("period", [300.0, 1e6])
def test_a_neighbour_far_away_is_clearly_worse(period: float) -> None:
    def goodput(at: float) -> float:
        return exact_goodput(
            interval_seconds=at,
            blocking_seconds=60.0,
            restart_seconds=600.0,
            durable_lag_seconds=240.0,
            mtbf_seconds=11135.0,
        ).goodput

    best = interval.exact_interval(blocking_seconds=60.0, mtbf_seconds=11135.0)
    assert goodput(period) < 0.97 * goodput(best)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(blocking=logarithmic(1e-6, 1e7), mtbf=MTBF)
def test_every_rule_is_homogeneous_and_the_exact_one_leaves_time_to_train(
    blocking: float, mtbf: float
) -> None:
    for rule in (interval.young_interval, interval.daly_interval, interval.exact_interval):
        found = rule(blocking_seconds=blocking, mtbf_seconds=mtbf)
        # A power of two changes no digit.
        assert rule(blocking_seconds=4 * blocking, mtbf_seconds=4 * mtbf) == pytest.approx(
            4 * found, rel=1e-15
        )
    assert interval.exact_interval(blocking_seconds=blocking, mtbf_seconds=mtbf) > blocking


@settings(derandomize=True, deadline=None, max_examples=100)
@given(blocking=logarithmic(1e-6, 1e7), mtbf=MTBF, factor=st.floats(1.0, 10.0))
def test_a_longer_stall_never_shortens_the_exact_interval(
    blocking: float, mtbf: float, factor: float
) -> None:
    shorter = interval.exact_interval(blocking_seconds=blocking, mtbf_seconds=mtbf)
    longer = interval.exact_interval(blocking_seconds=blocking * factor, mtbf_seconds=mtbf)
    assert longer >= shorter * (1.0 - 1e-15)


def test_the_rules_agree_where_the_stall_is_small() -> None:
    inputs = {"blocking_seconds": 1.0, "mtbf_seconds": 1e8}
    young, daly, exact = (
        rule(**inputs) for rule in (interval.young_interval, interval.daly_interval, interval.exact_interval)
    )
    assert young == pytest.approx(math.sqrt(2e8), rel=1e-15)
    assert daly == pytest.approx(exact, rel=1e-11)
    assert young < daly
    assert young == pytest.approx(exact, rel=1e-4)


def test_dalys_rule_jumps_at_twice_the_mtbf_and_the_exact_one_does_not() -> None:
    below, at = math.nextafter(200.0, 0.0), 200.0
    daly = [interval.daly_interval(blocking_seconds=c, mtbf_seconds=100.0) for c in (below, at)]
    exact = [interval.exact_interval(blocking_seconds=c, mtbf_seconds=100.0) for c in (below, at)]
    assert daly == pytest.approx([200.0 * (1 + 1 / 3 + 1 / 9), 300.0], rel=1e-12)
    assert exact[1] == pytest.approx(exact[0], rel=1e-14)


AT_OVERHEAD = [
    (interval.young_interval, interval.young_interval_at_overhead),
    (interval.daly_interval, interval.daly_interval_at_overhead),
    (interval.exact_interval, interval.exact_interval_at_overhead),
]


@pytest.mark.parametrize(("rule", "at_overhead"), AT_OVERHEAD, ids=["young", "daly", "exact"])
@settings(derandomize=True, deadline=None, max_examples=100)
@given(fraction=logarithmic(1e-6, 0.99) | st.floats(0.5, 0.99), mtbf=MTBF)
def test_a_stall_that_is_a_fraction_of_the_interval_gives_the_same_interval_back(
    rule: Callable[..., float], at_overhead: Callable[..., float], fraction: float, mtbf: float
) -> None:
    period = at_overhead(overhead_fraction=fraction, mtbf_seconds=mtbf)
    assert rule(blocking_seconds=fraction * period, mtbf_seconds=mtbf) == pytest.approx(period, rel=1e-13)


@pytest.mark.parametrize("fraction", [0.68, 0.69, math.nextafter(9 / 13, 0), math.nextafter(9 / 13, 1), 0.7])
def test_dalys_rule_has_an_answer_on_both_sides_of_its_jump(fraction: float) -> None:
    period = interval.daly_interval_at_overhead(overhead_fraction=fraction, mtbf_seconds=1000.0)
    given_back = interval.daly_interval(blocking_seconds=fraction * period, mtbf_seconds=1000.0)
    assert given_back == pytest.approx(period, rel=1e-12) or fraction == pytest.approx(9 / 13, rel=1e-15)
    assert period > fraction * period > 0.0


def test_at_a_small_fraction_the_stall_is_twice_the_mtbf_times_its_square() -> None:
    for _, at_overhead in AT_OVERHEAD:
        period = at_overhead(overhead_fraction=1e-6, mtbf_seconds=1e9)
        assert 1e-6 * period == pytest.approx(2 * 1e9 * 1e-12, rel=1e-6)
