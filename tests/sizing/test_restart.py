"""What a restart is made of: spares against a simulation and a table, replay against the first order."""

import heapq
import random

import pytest

from service.sizing import restart


@pytest.mark.parametrize(
    ("spares", "mean_in_repair", "fraction"),
    [
        # 1 minus the Poisson distribution at spares - 1, from a table of it.
        (0, 2.0, 1.0),
        (1, 2.0, 0.8647),
        (2, 2.0, 0.5940),
        (4, 2.0, 0.1429),
        (8, 2.0, 0.0011),
        (10, 5.0, 0.0318),
    ],
)
def test_spares_run_out_as_a_poisson_table_says(spares: int, mean_in_repair: float, fraction: float) -> None:
    found = restart.spares_exhausted(
        spare_nodes=spares, repair_hours=mean_in_repair, node_loss_fraction=1.0, mtbf_seconds=3600.0
    )
    assert found == pytest.approx(fraction, abs=5e-5)


@pytest.mark.parametrize("repair", ["fixed", "exponential", "mostly short"])
def test_a_simulated_pool_of_spares_runs_out_as_often(repair: str) -> None:
    chance = random.Random(5)  # noqa: S311 - a simulation
    mean_hours, mtbf_hours, spares, loss = 40.0, 6.0, 7, 0.78

    def repaired() -> float:
        if repair == "fixed":
            return mean_hours
        if repair == "exponential":
            return chance.expovariate(1 / mean_hours)
        return 10.0 if chance.random() < 0.8 else 160.0

    in_repair: list[float] = []  # until when
    now, failures, without = 0.0, 200_000, 0
    for _ in range(failures):
        now += chance.expovariate(1 / mtbf_hours)
        if chance.random() >= loss:
            continue
        while in_repair and in_repair[0] <= now:
            heapq.heappop(in_repair)
        without += len(in_repair) >= spares
        heapq.heappush(in_repair, now + repaired())
    expected = restart.spares_exhausted(
        spare_nodes=spares, repair_hours=mean_hours, node_loss_fraction=loss, mtbf_seconds=mtbf_hours * 3600
    )
    assert without / failures == pytest.approx(expected, rel=0.04)


def test_replay_is_half_an_interval_and_the_lag_where_failures_are_rare() -> None:
    found = restart.replay(
        interval_seconds=600, blocking_seconds=5, durable_lag_seconds=240, mtbf_seconds=1e8
    )
    assert found == pytest.approx(600 / 2 + 240, rel=1e-4)


def test_replay_is_the_time_between_failures_where_no_save_is_ever_reached() -> None:
    found = restart.replay(interval_seconds=1e6, blocking_seconds=5, durable_lag_seconds=0, mtbf_seconds=100)
    assert found == pytest.approx(100, rel=1e-12)


def test_what_runs_ahead_of_the_drains_is_replayed_too() -> None:
    common = {
        "interval_seconds": 600.0,
        "effective_interval_seconds": 900.0,
        "blocking_seconds": 5.0,
        "mtbf_seconds": 1e7,
    }
    two = restart.replay_when_saves_collide(staging_buffers=2, **common)
    three = restart.replay_when_saves_collide(staging_buffers=3, **common)
    assert three - two == pytest.approx(600, rel=1e-3)
