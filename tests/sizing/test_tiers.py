"""Several tiers: their goodput against the exact one of a single tier, against a simulation, and what holds for all."""

import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing import goodput, tiers
from service.sizing.goodput import Split
from service.sizing.tiers import Level
from tests.sizing.scenarios import logarithmic


class Cycle(NamedTuple):
    """From the end of one restart to the end of the next. [s]"""

    alive: float
    restarting: float
    gained: int
    """Steps between saves of the nearest tier, those that were undone taken off."""


@dataclass(frozen=True)
class Machine:
    """A cluster with tiers to simulate, event by event; nearest first. [s]"""

    levels: list[Level]
    period: float
    mtbf: float
    copies_come_back: bool = True
    """Whether a restart makes again what a failure destroyed or cut short, as the model takes it."""

    def run(self, *, seed: int) -> list[Cycle]:
        """Train, save to each tier, drain, fail and restart, often enough to tell and no longer than patience lasts."""
        cycles = min(20_000, round(300_000 / self.levels[0].saves * self.period / self.mtbf))
        chance = random.Random(seed)  # noqa: S311 - a simulation
        here, held, ledger = 0, [0] * len(self.levels), []
        for _ in range(cycles):
            if self.copies_come_back:
                held = [here // apart * apart for apart in self._apart]
            alive = chance.expovariate(1.0 / self.mtbf)
            self._live(alive, here, held)
            needed = self._needed(chance)
            source = self._lose(needed, held)
            back, restarting = held[source], 0.0
            while (failed := chance.expovariate(1.0 / self.mtbf)) < self.levels[source].restart_seconds:
                restarting += failed
                needed = self._needed(chance)
                if needed > source:
                    if self.copies_come_back:
                        held = [back // apart * apart for apart in self._apart]
                    source = self._lose(needed, held)
                    back = held[source]
            restarting += self.levels[source].restart_seconds
            ledger.append(Cycle(alive, restarting, back - here))
            here = back
        return ledger

    @property
    def _apart(self) -> list[int]:
        """How many saves of the nearest tier go to one of each tier."""
        return [self.levels[0].saves // level.saves for level in self.levels]

    @property
    def work(self) -> float:
        """Training between two saves of the nearest tier. [s]"""
        stalls = sum(level.saves * level.blocking_seconds for level in self.levels)
        return (self.period - stalls) / self.levels[0].saves

    def _needed(self, chance: random.Random) -> int:
        weights = [level.fallback_fraction for level in self.levels]
        return chance.choices(range(len(self.levels)), weights)[0]

    def _lose(self, needed: int, held: list[int]) -> int:
        """Take from the nearer tiers what the failure destroys; return the nearest that still holds a save."""
        for nearer in range(needed):
            held[nearer] = -1
        return next(at for at in range(needed, len(held)) if held[at] >= 0)

    def _live(self, alive: float, here: int, held: list[int]) -> None:
        """Train from a save on until the failure, and note the newest save that each tier holds by then."""
        work, now = self.work, 0.0
        tiers_of_saves = list(zip(range(len(held)), self._apart, self.levels, strict=True))
        while now < alive:
            now += work
            here += 1
            ready = []
            for at, apart, level in tiers_of_saves:
                if here % apart == 0:
                    now += level.blocking_seconds
                    ready.append((at, now + level.durable_lag_seconds))
            for at, durable in ready:
                if max(durable, now) <= alive:
                    held[at] = here

    def split(self) -> Split:
        """Return what the formula says of this machine."""
        return tiers.tiered_split(self.levels, period_seconds=self.period, mtbf_seconds=self.mtbf)


def _fraction(ledger: list[Cycle], parts: list[float]) -> tuple[float, float]:
    """Return a part of the wall time, and its standard error from blocks of cycles, which are not independent."""
    walls = [cycle.alive + cycle.restarting for cycle in ledger]
    mean, size = sum(parts) / sum(walls), 50
    rests = [part - mean * wall for part, wall in zip(parts, walls, strict=True)]
    blocks = [sum(rests[at : at + size]) for at in range(0, len(rests), size)]
    return mean, math.sqrt(sum(block * block for block in blocks)) / sum(walls)


SHARED = Level(
    saves=1, blocking_seconds=5, durable_lag_seconds=240, fallback_fraction=0.2, restart_seconds=600
)
SYNC = Level(saves=1, blocking_seconds=60, durable_lag_seconds=0, fallback_fraction=0.7, restart_seconds=600)
TWO = [Level(10, 1, 0, 0.3, 100), SYNC]
FOUR = [
    Level(20, 1, 0, 0.3, 100),
    Level(10, 0.5, 30, 0.3, 150),
    Level(2, 3, 60, 0.2, 300),
    SHARED,
]
MACHINES = [
    pytest.param(Machine([SYNC._replace(fallback_fraction=1)], 600, 11135), id="shared storage alone"),
    pytest.param(Machine(TWO, 600, 11135), id="two, now and then"),
    pytest.param(Machine(TWO, 600, 1500), id="two, often"),
    pytest.param(
        Machine([Level(10, 1, 50, 0.3, 100), SHARED._replace(fallback_fraction=0.7)], 600, 1500),
        id="two, with lags",
    ),
    pytest.param(Machine(FOUR, 600, 11135), id="four, now and then"),
    pytest.param(Machine(FOUR, 600, 700), id="four, often"),
    pytest.param(
        Machine([FOUR[0], FOUR[1]._replace(saves=20), *FOUR[2:]], 600, 2000), id="two that save together"
    ),
    pytest.param(
        Machine([Level(1, 1, 10, 0.8, 100), SHARED._replace(durable_lag_seconds=550)], 600, 900),
        id="all with every save",
    ),
    pytest.param(Machine([Level(3, 1, 190, 0.8, 600), SHARED], 600, 400), id="seldom through a period"),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_simulation_spends_its_time_as_the_formula_says(machine: Machine) -> None:
    ledger, split = machine.run(seed=5), machine.split()
    gained = [cycle.gained * machine.work for cycle in ledger]
    saved = [cycle.gained * (machine.period / machine.levels[0].saves - machine.work) for cycle in ledger]
    restarting = [cycle.restarting for cycle in ledger]
    lost = [cycle.alive - good - stalled for cycle, good, stalled in zip(ledger, gained, saved, strict=True)]
    for parts, wanted in (
        (gained, split.goodput),
        (saved, split.saving),
        (lost, split.lost_work),
        (restarting, split.restarting),
    ):
        found, error = _fraction(ledger, parts)
        assert 0.0 < error < 0.01
        assert abs(found - wanted) < 4 * error


@pytest.mark.parametrize("machine", [Machine(TWO, 600, 11135), Machine(FOUR, 1200, 5000)])
def test_copies_that_do_not_come_back_cost_less_than_a_hundredth(machine: Machine) -> None:
    # The error of the model: real restarts leave nearer tiers empty, and cut drains short, until the next save.
    harsh = Machine(machine.levels, machine.period, machine.mtbf, copies_come_back=False)
    ledger = [cycle for seed in range(4) for cycle in harsh.run(seed=seed)]
    found, error = _fraction(ledger, [cycle.gained * harsh.work for cycle in ledger])
    assert error < 0.0015
    assert machine.split().goodput - 0.01 < found < machine.split().goodput + 4 * error


@st.composite
def operations(draw: st.DrawFn) -> dict[str, float]:
    """Draw what one tier does, over more than the bounds of a scenario."""
    interval = draw(logarithmic(1e-3, 1e9))
    return {
        "interval_seconds": interval,
        "blocking_seconds": interval * draw(st.floats(0.0, 0.99)),
        "restart_seconds": draw(st.just(0.0) | logarithmic(1e-6, 1e8)),
        "durable_lag_seconds": draw(st.just(0.0) | logarithmic(1e-6, 1e9)),
        "mtbf_seconds": draw(logarithmic(1.0, 1e12)),
    }


@settings(derandomize=True, deadline=None, max_examples=150)
@given(operation=operations())
def test_shared_storage_alone_is_the_exact_goodput(operation: dict[str, float]) -> None:
    level = Level(
        saves=1,
        blocking_seconds=operation["blocking_seconds"],
        durable_lag_seconds=operation["durable_lag_seconds"],
        fallback_fraction=1.0,
        restart_seconds=operation["restart_seconds"],
    )
    found = tiers.tiered_split(
        [level], period_seconds=operation["interval_seconds"], mtbf_seconds=operation["mtbf_seconds"]
    )
    exact = goodput.exact_goodput(**operation)
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)


@st.composite
def sets(draw: st.DrawFn) -> Machine:
    """Draw tiers that save in step, each as quick as the next one."""
    count = draw(st.integers(1, 4))
    shares = [draw(st.sampled_from([0.0, 0.0, 1e-9, 0.1, 1.0, 5.0])) for _ in range(count - 1)] + [1.0]
    period, mtbf = draw(logarithmic(1e-3, 1e9)), draw(logarithmic(1.0, 1e12))
    levels: list[Level] = []
    saves, lag, restart = 1, draw(st.just(0.0) | logarithmic(1e-6, 1e9)), draw(logarithmic(1e-6, 1e8))
    for share in reversed(shares):
        blocking = period / saves / 8.0 * draw(st.floats(0.0, 1.0))
        levels.insert(0, Level(saves, blocking, lag, share / sum(shares), restart))
        saves *= draw(st.sampled_from([1, 2, 3, 10, 1000]))
        lag *= draw(st.sampled_from([0.0, 0.1, 1.0]))
        restart *= draw(st.sampled_from([0.0, 0.1, 1.0]))
    return Machine(levels, period, mtbf)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(machine=sets())
def test_the_fractions_are_fractions_and_add_up_to_one(machine: Machine) -> None:
    split = machine.split()
    assert all(0.0 <= part <= 1.0 for part in split)
    assert sum(split) == pytest.approx(1.0, abs=2e-15)
    assert math.isfinite(tiers.mean_restart_seconds(machine.levels, mtbf_seconds=machine.mtbf))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(machine=sets(), at=st.integers(0, 3), factor=st.floats(0.0, 1.0), data=st.data())
def test_a_better_tier_never_lowers_goodput(
    machine: Machine, at: int, factor: float, data: st.DataObject
) -> None:
    at = min(at, len(machine.levels) - 1)
    level = machine.levels[at]
    share = machine.levels[-1].fallback_fraction * factor
    better = {
        "restart": [level._replace(restart_seconds=level.restart_seconds * factor)],
        "lag": [level._replace(durable_lag_seconds=level.durable_lag_seconds * factor)],
        "stall": [level._replace(blocking_seconds=level.blocking_seconds * factor)],
        "survives more": [level._replace(fallback_fraction=level.fallback_fraction + share)],
        "one more, without a stall": [
            level._replace(saves=level.saves * 3, blocking_seconds=0.0, fallback_fraction=0.0),
            level,
        ],
    }
    name = data.draw(st.sampled_from(sorted(better)))
    levels = [*machine.levels[:at], *better[name], *machine.levels[at + 1 :]]
    if name == "survives more":
        levels[-1] = levels[-1]._replace(fallback_fraction=levels[-1].fallback_fraction - share)
    if name == "one more, without a stall" and at > 0:
        return  # nearer tiers would have to save in step with it
    if name == "stall" and any(
        each.durable_lag_seconds + each.blocking_seconds > machine.period / each.saves
        for each in machine.levels
    ):
        return  # a stall then gives the lag of another save the time to end
    improved = Machine(levels, machine.period, machine.mtbf).split()
    assert improved.goodput >= machine.split().goodput * (1 - 1e-12)


def test_a_tier_that_takes_over_failures_gains_goodput() -> None:
    alone = Machine([SHARED._replace(fallback_fraction=1.0)], 600, 11135).split().goodput
    nearer = Level(
        saves=10, blocking_seconds=0, durable_lag_seconds=0, fallback_fraction=0.8, restart_seconds=480
    )
    assert Machine([nearer, SHARED], 600, 11135).split().goodput > alone + 0.03


def test_first_order_and_exact_agree_where_failures_are_rare() -> None:
    split = tiers.tiered_split(FOUR, period_seconds=600, mtbf_seconds=1e8)
    first = tiers.first_order_waste(FOUR, period_seconds=600, mtbf_seconds=1e8)
    assert first == pytest.approx(1.0 - split.goodput, rel=1e-4)


def test_a_restart_that_fails_over_and_over_still_ends_in_numbers() -> None:
    levels = [Level(10, 1, 0, 0.5, 1e7), Level(1, 1, 0, 0.5, 1e7)]
    split = tiers.tiered_split(levels, period_seconds=600, mtbf_seconds=1.0)
    assert split == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-12)


def test_saves_that_leave_no_time_to_train_are_refused() -> None:
    with pytest.raises(ValueError, match="no time to train"):
        tiers.tiered_split(
            [Level(10, 50, 0, 0.5, 0), Level(1, 100, 0, 0.5, 0)], period_seconds=600, mtbf_seconds=1e4
        )


@pytest.mark.parametrize(
    ("asked", "saves"),
    [(600, 4), (590, 4), (401, 4), (399, 8), (300, 8), (60, 40), (1e-3, 2_400_000), (900, 4)],
)
def test_a_tier_saves_with_every_save_of_the_next(asked: float, saves: int) -> None:
    assert tiers.nested_saves(next_interval_seconds=600, interval_seconds=asked, next_saves=4) == saves


def test_drives_are_written_over_as_often_as_their_bytes_say() -> None:
    # 2.768 GB a node every five minutes on four drives of 1.92 TB.
    written = tiers.written_tb_per_day(node_bytes=2.768e9, replicas=1, interval_seconds=300)
    assert written == pytest.approx(0.797184)
    assert tiers.drive_writes_per_day(
        written_tb_per_day=written, drives_per_node=4, drive_bytes=1.92e12
    ) == pytest.approx(0.1038, rel=1e-3)


def test_the_copies_of_a_node_and_what_it_sends() -> None:
    assert tiers.held_bytes(node_bytes=3e9, replicas=2, versions=2) == 12e9
    assert tiers.peer_bytes(checkpoint_bytes=1e12, replicas=3) == 2e12
    lag = tiers.durable_lag(node_bytes=3e9, copies=2, node_write_gb_per_second=0.5)
    assert lag == 12.0
    assert tiers.node_write_rate(node_bytes=3e9, copies=2, durable_lag_seconds=lag) == 0.5
