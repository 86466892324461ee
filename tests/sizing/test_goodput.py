"""Where the wall time goes: the exact formula against 50 digits, against a simulation, and against the first order."""

import math
import random
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing import goodput, interval
from service.sizing.goodput import Split
from tests.sizing.scenarios import logarithmic

LAG = st.just(0.0) | logarithmic(1e-6, 1e7)


@st.composite
def operations(draw: st.DrawFn) -> dict[str, float]:
    """Draw what `exact_goodput` takes, over the whole bounds."""
    period = draw(logarithmic(1e-3, 1e9))
    return {
        "interval_seconds": period,
        "blocking_seconds": min(draw(logarithmic(1e-12, 0.999)) * period, 1e7),
        "restart_seconds": draw(LAG),
        "durable_lag_seconds": draw(LAG),
        "mtbf_seconds": draw(logarithmic(1.0, 1e12)),
    }


def _wide_context() -> Context:
    return Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _to_50_digits(
    *, period: float, blocking: float, restart: float, exposed: float, mtbf: float
) -> tuple[Decimal, ...]:
    m, t, c = Decimal(mtbf), Decimal(period), Decimal(blocking)
    decay = (-t / m).exp()
    # Where a period is a trillionth of the mean time, 1 - decay keeps 48 of its 60 digits.
    counted = (-(Decimal(restart) + Decimal(exposed)) / m).exp() * decay / (1 - decay)
    good, saving = (t - c) / m * counted, c / m * counted
    restarting = 1 - (-Decimal(restart) / m).exp()
    return good, saving, 1 - good - saving - restarting, restarting


@settings(derandomize=True, deadline=None, max_examples=200)
@given(operation=operations())
def test_every_fraction_keeps_its_digits(operation: dict[str, float]) -> None:
    period, restart, exposed, mtbf = (
        operation[f"{name}_seconds"] for name in ("interval", "restart", "durable_lag", "mtbf")
    )
    with localcontext(_wide_context()):
        exact = _to_50_digits(
            period=period,
            blocking=operation["blocking_seconds"],
            restart=restart,
            exposed=exposed,
            mtbf=mtbf,
        )
        # exp(-a) of an `a` that is a float is off by about a times a float's precision, whoever computes it.
        tolerance = Decimal(2e-15 + 4e-16 * (period + restart + exposed) / mtbf)
        for found, wanted in zip(goodput.exact_goodput(**operation), exact, strict=True):
            assert abs(Decimal(found) - wanted) <= tolerance * abs(wanted) + Decimal("1e-300")


def test_a_stall_of_a_trillionth_of_the_mtbf_keeps_its_digits() -> None:
    period = math.sqrt(2e-12) * 1e9
    with localcontext(_wide_context()):
        exact = _to_50_digits(period=period, blocking=1e-3, restart=0.0, exposed=0.0, mtbf=1e9)
    found = goodput.exact_goodput(
        interval_seconds=period,
        blocking_seconds=1e-3,
        restart_seconds=0.0,
        durable_lag_seconds=0.0,
        mtbf_seconds=1e9,
    )
    assert found == pytest.approx([float(part) for part in exact], rel=1e-15)


@settings(derandomize=True, deadline=None, max_examples=250)
@given(operation=operations(), buffers=st.integers(1, 3))
def test_the_fractions_are_fractions_and_add_up_to_one(operation: dict[str, float], buffers: int) -> None:
    splits = [goodput.exact_goodput(**operation)]
    period = goodput.effective_interval(
        interval_seconds=operation["interval_seconds"],
        blocking_seconds=operation["blocking_seconds"],
        durable_lag_seconds=operation["durable_lag_seconds"],
        staging_buffers=buffers,
    )
    operation = {name: value for name, value in operation.items() if name != "durable_lag_seconds"}
    splits.append(
        goodput.exact_goodput_when_saves_collide(
            **operation, effective_interval_seconds=period, staging_buffers=buffers
        )
    )
    for split in splits:
        assert all(0.0 <= part <= 1.0 for part in split)
        assert sum(split) == pytest.approx(1.0, abs=2e-15)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(operation=operations(), factor=st.floats(1.0, 100.0), name=st.sampled_from(["restart", "durable_lag"]))
def test_a_longer_restart_or_lag_never_helps(operation: dict[str, float], factor: float, name: str) -> None:
    before = goodput.exact_goodput(**operation).goodput
    longer = {**operation, f"{name}_seconds": operation[f"{name}_seconds"] * factor}
    assert goodput.exact_goodput(**longer).goodput <= before


def test_an_interval_without_time_to_train_is_refused() -> None:
    with pytest.raises(ValueError, match="no time to train"):
        goodput.exact_goodput(
            interval_seconds=60,
            blocking_seconds=60,
            restart_seconds=0,
            durable_lag_seconds=0,
            mtbf_seconds=1000,
        )


def test_first_order_and_exact_agree_where_failures_are_rare() -> None:
    first = goodput.first_order_waste(
        interval_seconds=600, blocking_seconds=6, restart_seconds=600, mtbf_seconds=1e8
    )
    exact = goodput.exact_goodput(
        interval_seconds=600,
        blocking_seconds=6,
        restart_seconds=600,
        durable_lag_seconds=0,
        mtbf_seconds=1e8,
    )
    assert first.waste == pytest.approx(1 - exact.goodput, rel=1e-4)
    assert first.saving == pytest.approx(exact.saving, rel=1e-4)
    assert first.lost_work == pytest.approx(exact.lost_work, rel=1e-4)
    assert first.restarting == pytest.approx(exact.restarting, rel=1e-4)


def test_the_first_order_can_pass_one() -> None:
    assert goodput.first_order_waste(
        interval_seconds=100, blocking_seconds=99, restart_seconds=600, mtbf_seconds=600
    ).waste == pytest.approx(0.99 + 50 / 600 + 1, rel=1e-15)


@pytest.mark.parametrize(
    ("lag", "buffers", "period"),
    [
        (0, 1, 600),
        (595, 1, 600),
        (596, 1, 601),
        (596, 2, 600),
        (600, 2, 600),
        (601, 2, 601),
        (601, 16, 601),
        (900, 1, 905),
        (900, 2, 900),
    ],
)
def test_a_period_is_stretched_until_a_buffer_is_free(lag: float, buffers: int, period: float) -> None:
    assert (
        goodput.effective_interval(
            interval_seconds=600, blocking_seconds=5, durable_lag_seconds=lag, staging_buffers=buffers
        )
        == period
    )


def test_a_drain_that_ends_just_in_time_but_for_rounding_stretches_nothing() -> None:
    assert (
        goodput.effective_interval(
            interval_seconds=600.0,
            blocking_seconds=5.0,
            durable_lag_seconds=math.nextafter(600.0, 1e9),
            staging_buffers=2,
        )
        == 600.0
    )


@pytest.mark.parametrize("buffers", [1, 2])
def test_goodput_has_no_step_where_saves_begin_to_collide(buffers: int) -> None:
    common = {"blocking_seconds": 5.0, "restart_seconds": 600.0, "mtbf_seconds": 11135.0}
    edge = 600.0 - (5.0 if buffers == 1 else 0.0)
    before = goodput.exact_goodput(interval_seconds=600.0, durable_lag_seconds=edge, **common)
    after = goodput.exact_goodput_when_saves_collide(
        interval_seconds=600.0, effective_interval_seconds=600.0, staging_buffers=buffers, **common
    )
    assert after == pytest.approx(before, rel=1e-14)


@dataclass
class Ledger:
    """What a simulated cluster did between two failures, cycle by cycle. [s]"""

    total: list[float] = field(default_factory=list)
    useful: list[float] = field(default_factory=list)
    saving: list[float] = field(default_factory=list)
    restarting: list[float] = field(default_factory=list)

    def fraction(self, part: list[float]) -> tuple[float, float]:
        """Return a part of the wall time, and the standard error of that."""
        cycles, wall = len(self.total), sum(self.total)
        mean = sum(part) / wall
        squares = sum((amount - mean * whole) ** 2 for amount, whole in zip(part, self.total, strict=True))
        return mean, math.sqrt(squares) / wall * math.sqrt(cycles / (cycles - 1))


@dataclass(frozen=True)
class Machine:
    """A cluster to simulate, event by event. [s]"""

    interval: float
    blocking: float
    lag: float
    restart: float
    mtbf: float
    buffers: int = 1

    def run(self, *, cycles: int, seed: int) -> Ledger:
        """Train, save, drain, fail and restart, so many times."""
        chance, ledger = random.Random(seed), Ledger()  # noqa: S311 - a simulation
        for _ in range(cycles):
            restarting = 0.0
            while (failed := chance.expovariate(1 / self.mtbf)) < self.restart:
                restarting += failed
            restarting += self.restart
            alive = chance.expovariate(1 / self.mtbf)
            useful, saving = self._live(alive)
            ledger.total.append(restarting + alive)
            ledger.useful.append(useful)
            ledger.saving.append(saving)
            ledger.restarting.append(restarting)
        return ledger

    def _live(self, alive: float) -> tuple[float, float]:
        """Return the durable training, and the stalls that led to it, until the cluster fails after `alive`."""
        work = self.interval - self.blocking
        now = drained = 0.0
        durable_at: list[float] = []
        stalls: list[float] = []  # a save's stall, and the wait until its buffer was free again
        while now < alive:
            now += work
            held = [at for at in range(len(durable_at)) if durable_at[at] > now]
            if len(held) >= self.buffers:  # wait for the oldest drain to give its buffer back
                oldest = held[0]
                stalls[oldest] += durable_at[oldest] - now
                now = durable_at[oldest]
            now += self.blocking
            drained = max(drained, now) + self.lag
            durable_at.append(drained)
            stalls.append(self.blocking)
        counted = sum(at <= alive for at in durable_at)
        return counted * work, sum(stalls[:counted])


def _exact(machine: Machine) -> Split:
    common = {
        "interval_seconds": machine.interval,
        "blocking_seconds": machine.blocking,
        "restart_seconds": machine.restart,
        "mtbf_seconds": machine.mtbf,
    }
    period = goodput.effective_interval(
        interval_seconds=machine.interval,
        blocking_seconds=machine.blocking,
        durable_lag_seconds=machine.lag,
        staging_buffers=machine.buffers,
    )
    if period == machine.interval:
        return goodput.exact_goodput(**common, durable_lag_seconds=machine.lag)
    return goodput.exact_goodput_when_saves_collide(
        **common, effective_interval_seconds=period, staging_buffers=machine.buffers
    )


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(Machine(interval=600, blocking=60, lag=0, restart=600, mtbf=11135), id="sync"),
        pytest.param(Machine(interval=600, blocking=120, lag=0, restart=600, mtbf=700), id="sync, often"),
        pytest.param(Machine(interval=600, blocking=5, lag=240, restart=600, mtbf=11135), id="async"),
        pytest.param(Machine(interval=600, blocking=5, lag=590, restart=600, mtbf=900), id="async, often"),
        pytest.param(Machine(interval=600, blocking=5, lag=900, restart=600, mtbf=11135), id="colliding"),
        pytest.param(
            Machine(interval=600, blocking=100, lag=700, restart=60, mtbf=2000), id="colliding often"
        ),
        pytest.param(
            Machine(interval=600, blocking=5, lag=598, restart=600, mtbf=5000, buffers=2), id="two buffers"
        ),
        *(
            pytest.param(
                Machine(interval=600, blocking=5, lag=lag, restart=600, mtbf=mtbf, buffers=buffers),
                id=f"{buffers} buffers, colliding, {lag} s lag",
            )
            for buffers in (2, 3)
            for lag, mtbf in ((620, 11135), (900, 11135), (1500, 3000))
        ),
    ],
)
def test_a_simulation_spends_its_time_as_the_exact_formula_says(machine: Machine) -> None:
    ledger, exact = machine.run(cycles=20_000, seed=7), _exact(machine)
    lost = [
        whole - good - saving - restarting
        for whole, good, saving, restarting in zip(
            ledger.total, ledger.useful, ledger.saving, ledger.restarting, strict=True
        )
    ]
    for part, wanted in (
        (ledger.useful, exact.goodput),
        (ledger.saving, exact.saving),
        (lost, exact.lost_work),
        (ledger.restarting, exact.restarting),
    ):
        found, error = ledger.fraction(part)
        assert 0.0 < error < 0.01
        assert abs(found - wanted) < 4 * error


@pytest.mark.parametrize("buffers", [1, 2, 3])
@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    stretch=logarithmic(1e-9, 20.0),
    stall=st.floats(0.001, 0.9),
    mtbf=logarithmic(0.5, 1e4),
    restart=st.just(0.0) | logarithmic(1e-3, 2.0),
)
def test_the_split_of_colliding_saves_is_that_of_the_lives_added_up(
    buffers: int, stretch: float, stall: float, mtbf: float, restart: float
) -> None:
    # In units of the interval. A life ends with a failure after an exponential time; how many saves it sees
    # durable says what of it counted.
    lag = 1.0 + stretch
    period = lag + (stall if buffers == 1 else 0.0)
    found = goodput.exact_goodput_when_saves_collide(
        interval_seconds=1.0,
        effective_interval_seconds=period,
        blocking_seconds=stall,
        restart_seconds=restart,
        staging_buffers=buffers,
        mtbf_seconds=mtbf,
    )
    first = 1.0 - stall if buffers == 1 else 1.0
    useful = saving = waited = 0.0
    for durable in range(1, 20_000):
        chance = math.exp(-(restart + first + durable * period) / mtbf)
        if chance < 1e-18:
            break
        ahead = (buffers - 1) - stall if buffers > 1 else 0.0
        so_far = max(durable * (period - 1.0) - ahead, 0.0)
        useful += (1.0 - stall) * chance
        saving += (stall + so_far - waited) * chance
        waited = so_far
    else:
        return  # too many saves a life to add up
    assert found.goodput == pytest.approx(useful / mtbf, rel=1e-9)
    assert found.saving == pytest.approx(saving / mtbf, rel=1e-8)
    assert sum(found) == pytest.approx(1.0, abs=2e-15)


def _optimum(machine: Machine) -> float:
    """Return the interval of the largest exact goodput, by trying many, each finer than the last."""
    low, high = machine.blocking * (1 + 1e-9), machine.blocking + 20 * machine.mtbf
    for _ in range(40):
        tried = [low * (high / low) ** (at / 40) for at in range(41)]
        best = max(range(41), key=lambda at: _exact(replace(machine, interval=tried[at])).goodput)
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, 40)]
    return (low + high) / 2


@pytest.mark.parametrize(
    ("blocking", "lag", "mtbf", "buffers"),
    [
        (5, 240, 11135, 1),  # nothing waits at the exact interval
        (5, 900, 11135, 1),
        (5, 900, 11135, 2),
        (5, 20_000, 11135, 1),  # a lag beyond the time between failures
        (5, 20_000, 11135, 3),
        (300, 500, 400, 1),
        (300, 500, 400, 2),
        (100, 2_000, 300, 2),
    ],
)
def test_the_best_interval_is_where_the_exact_goodput_is_largest(
    blocking: float, lag: float, mtbf: float, buffers: int
) -> None:
    found = interval.best_interval(
        blocking_seconds=blocking, durable_lag_seconds=lag, staging_buffers=buffers, mtbf_seconds=mtbf
    )
    machine = Machine(interval=found, blocking=blocking, lag=lag, restart=60, mtbf=mtbf, buffers=buffers)
    assert found == pytest.approx(_optimum(machine), rel=1e-3)
    assert _exact(machine).goodput >= _exact(replace(machine, interval=_optimum(machine))).goodput * (
        1 - 1e-9
    )


def test_metas_ratio_of_effective_training_time_is_the_first_order_without_the_stall() -> None:
    inputs = {"restart_seconds": 600.0, "interval_seconds": 3600.0}
    ratio = goodput.effective_training_time_ratio(nodes=2048, failures_per_node_day=0.0065, **inputs)
    # 13.312 failures a day, each 10 min and half an hour.
    assert ratio == pytest.approx(1 - 13.312 * 2400 / 86400, rel=1e-14)
    first = goodput.first_order_waste(blocking_seconds=0.0, mtbf_seconds=86400 / 13.312, **inputs)
    assert ratio == pytest.approx(1 - first.waste, rel=1e-14)
