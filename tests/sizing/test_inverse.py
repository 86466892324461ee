"""The inverse formulas undo the goodput, and the searches find what scipy finds, in few steps."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from service.sizing import inverse
from service.sizing.goodput import exact_goodput
from tests.sizing.scenarios import logarithmic

INTERVAL, STALL, RESTART, LAG, MTBF = 600.0, 60.0, 500.0, 240.0, 11_135.0
GOODPUT = exact_goodput(
    interval_seconds=INTERVAL,
    blocking_seconds=STALL,
    restart_seconds=RESTART,
    durable_lag_seconds=LAG,
    mtbf_seconds=MTBF,
).goodput
PERIODIC = {"goodput_fraction": GOODPUT, "interval_seconds": INTERVAL, "mtbf_seconds": MTBF}


def test_each_inverse_gives_back_what_made_the_goodput() -> None:
    stall, lag = {"blocking_seconds": STALL}, {"durable_lag_seconds": LAG}
    assert inverse.exposure_for_goodput(**PERIODIC, **stall) == pytest.approx(RESTART + LAG, rel=1e-12)
    assert inverse.restart_for_goodput(**PERIODIC, **stall, **lag) == pytest.approx(RESTART, rel=1e-12)
    assert inverse.blocking_for_goodput(**PERIODIC, **lag, restart_seconds=RESTART) == pytest.approx(
        STALL, rel=1e-12
    )
    assert inverse.async_write_for_goodput(
        **PERIODIC, **stall, restart_seconds=RESTART, checkpoint_bytes=480e9
    ) == pytest.approx(2.0, rel=1e-12)
    # What a durable lag costs, a longer restart costs as well.
    assert inverse.sync_write_for_goodput(
        **PERIODIC, restart_seconds=RESTART + LAG, checkpoint_bytes=120e9
    ) == pytest.approx(2.0, rel=1e-12)
    assert inverse.read_for_goodput(
        **PERIODIC, **stall, **lag, other_restart_seconds=400, read_bytes=200e9
    ) == pytest.approx(2.0, rel=1e-12)


def test_a_load_is_what_the_other_parts_of_a_restart_leave() -> None:
    assert (
        inverse.read_for_restart(read_bytes=5.67e12, restart_seconds=540, other_restart_seconds=480) == 94.5
    )


def test_40_million_dollars_are_12_percent_of_a_cluster_for_a_year() -> None:
    fraction = inverse.goodput_for_waste(waste_usd_per_year=40e6, cluster_usd_per_hour=38_502.4)
    assert fraction == pytest.approx(1 - 40e6 / 337_281_024, rel=1e-12)
    assert inverse.goodput_for_waste(waste_usd_per_year=1e9, cluster_usd_per_hour=38_502.4) < 0


class _Counted:
    """A margin that counts how often it is asked."""

    def __init__(self, margin: Callable[[float], float]) -> None:
        self.margin = margin
        self.calls = 0

    def __call__(self, value: float) -> float:
        self.calls += 1
        return self.margin(value)


def _narrowed(margin: Callable[[float], float], *, miss: float, meet: float) -> tuple[float, int]:
    counted = _Counted(margin)
    value = inverse.narrow(
        miss=miss,
        meet=meet,
        miss_margin=margin(miss),
        meet_margin=margin(meet),
        margin=counted,
        tolerance=1e-10,
    )
    return value, counted.calls


@pytest.mark.parametrize(
    ("margin", "steps"),
    [
        (lambda x: 1.0 - x / (x + 3e3) * 2.0, 15),
        (lambda x: math.exp(-x / 500.0) - 0.9, 15),
        (lambda x: math.exp(-math.sqrt(x / 500.0)) - 0.3, 15),
        (lambda x: 1e8 * (0.5 - x / (x + 7.0)), 15),
    ],
)
def test_a_smooth_margin_is_narrowed_in_few_steps_to_where_scipy_finds_its_root(
    margin: Callable[[float], float], steps: int
) -> None:
    value, calls = _narrowed(margin, miss=1e7, meet=1e-6)
    root = brentq(margin, 1e-6, 1e7, xtol=1e-13, rtol=1e-14)
    assert margin(value) >= 0.0
    assert value == pytest.approx(root, rel=2e-10)
    assert calls <= steps


@given(edge=logarithmic(1e-5, 1e6), rises=st.booleans(), deep=st.sampled_from([-math.inf, -1.0, -1e-300]))
def test_a_cliff_is_found_from_either_side_in_no_more_steps_than_halving_takes(
    edge: float, rises: bool, deep: float
) -> None:
    def margin(value: float) -> float:
        return 1e-3 if (value >= edge) is rises else deep

    ends = {"miss": 1e-6, "meet": 1e7} if rises else {"miss": 1e7, "meet": 1e-6}
    value, calls = _narrowed(margin, **ends)
    assert margin(value) > 0.0
    assert value == pytest.approx(edge, rel=2e-10)
    assert calls <= math.ceil(math.log2(math.log(1e13) / 1e-10)) + 3


def test_a_bracket_that_is_narrow_already_stays_as_it_is() -> None:
    assert _narrowed(lambda x: 1.0 - x, miss=1.0 + 1e-12, meet=1.0) == (1.0, 0)


@given(top=logarithmic(1e-2, 1e6))
def test_a_peak_is_found_between_two_values(top: float) -> None:
    counted = _Counted(lambda x: -abs(math.log(x / top)) - 1.0)
    place = inverse.peak(low=1e-3, high=1e7, margin=counted, tolerance=1e-6)
    assert place == pytest.approx(top, rel=2e-6)
    assert counted.calls < 40


def test_a_peak_that_meets_the_goal_is_good_enough() -> None:
    counted = _Counted(lambda x: 20.0 - abs(math.log(x)))
    inverse.peak(low=1e-3, high=1e7, margin=counted, tolerance=1e-6)
    assert counted.calls == 2


@given(edge=st.integers(1, 10_000_000))
def test_the_last_count_is_found_upwards_and_downwards(edge: int) -> None:
    assert inverse.last_count(meet=1, miss=10_000_001, meets=lambda n: n <= edge) == edge
    assert inverse.last_count(meet=10_000_000, miss=0, meets=lambda n: n >= edge) == edge
