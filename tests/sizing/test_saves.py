"""What a save writes and a restore reads where the two differ."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing import saves
from tests.sizing.scenarios import logarithmic

CHAIN: dict[str, Any] = {"checkpoint_bytes": 14e9, "difference_bytes": 1.4e9, "full_every": 6}


def test_a_difference_is_a_fraction_of_the_state_and_all_of_the_extras() -> None:
    difference = saves.difference_bytes(
        state_bytes=1000, compression_factor=0.5, differential_fraction=0.1, extra_bytes=7
    )
    assert difference == 57
    assert (
        saves.difference_bytes(state_bytes=1, compression_factor=1, differential_fraction=1e-4, extra_bytes=0)
        == 1
    )


def test_a_run_of_six_saves_writes_one_full_and_five_differences() -> None:
    assert saves.mean_save_bytes(**CHAIN) == pytest.approx(3.5e9, rel=1e-15)
    assert saves.longest_chain_bytes(**CHAIN) == 21e9
    assert saves.mean_chain_bytes(**CHAIN) == 17.5e9


@settings(derandomize=True, deadline=None, max_examples=50)
@given(full=logarithmic(1, 1e15), fraction=st.floats(1e-4, 1), every=st.integers(2, 60))
def test_the_mean_and_the_longest_chain_are_those_of_every_place_in_a_run(
    full: float, fraction: float, every: int
) -> None:
    chain: dict[str, Any] = {
        "checkpoint_bytes": full,
        "difference_bytes": full * fraction,
        "full_every": every,
    }
    by_place = [full + place * full * fraction for place in range(every)]
    assert saves.longest_chain_bytes(**chain) == pytest.approx(max(by_place), rel=1e-12)
    assert saves.mean_chain_bytes(**chain) == pytest.approx(math.fsum(by_place) / every, rel=1e-12)
    assert (
        saves.mean_save_bytes(**chain)
        <= full * (1 + 1e-15)
        <= saves.longest_chain_bytes(**chain) * (1 + 1e-15)
    )


def _kept_at_worst(every: int, copies: int, full: float, difference: float) -> float:
    """Let saves come in, keep what the last so many need, and return the most that was ever kept."""
    worst = 0.0
    for latest in range(every * 3 + copies, every * 4 + copies):
        oldest = latest - copies + 1
        first = oldest - oldest % every
        held = [full if save % every == 0 else difference for save in range(first, latest + 1)]
        worst = max(worst, math.fsum(held))
    return worst


@pytest.mark.parametrize("every", [2, 3, 6, 7])
@pytest.mark.parametrize("copies", [1, 2, 5, 6, 7, 13])
def test_the_space_of_a_chain_is_the_worst_of_a_simulation(every: int, copies: int) -> None:
    kept = saves.kept_chain_bytes(
        checkpoint_bytes=100, difference_bytes=7, full_every=every, copies=copies, protection_fraction=0
    )
    assert kept == _kept_at_worst(every, copies, 100, 7)


def test_the_space_of_the_last_seven_of_runs_of_six() -> None:
    # Twelve saves, of which two are full; with the one in flight thirteen, of which three are.
    assert saves.kept_chain_bytes(**CHAIN, copies=7, protection_fraction=0) == pytest.approx(42e9)
    assert saves.kept_chain_bytes(**CHAIN, copies=8, protection_fraction=0.5) == pytest.approx(84e9)


def test_the_space_of_deduplicated_copies() -> None:
    shared = {"restored_bytes": 14e9, "checkpoint_bytes": 2.8e9}
    assert saves.kept_shared_bytes(**shared, copies=1, protection_fraction=0) == 14e9
    assert saves.kept_shared_bytes(**shared, copies=3, protection_fraction=0.5) == pytest.approx(29.4e9)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    usable=st.integers(1, 100_000),
    full=st.integers(10, 1000),
    difference=st.integers(1, 10),
    every=st.integers(2, 9),
)
def test_as_many_saves_fit_as_can_be_put_in_one_by_one(
    usable: int, full: int, difference: int, every: int
) -> None:
    fits, left = 0, usable
    while left >= (need := full if fits % every == 0 else difference):
        fits, left = fits + 1, left - need
    chain = {"checkpoint_bytes": full, "difference_bytes": difference, "full_every": every}
    assert saves.chain_saves_that_fit(usable_bytes=usable, **chain) == fits
    copies = int(saves.chain_copies_that_fit(usable_bytes=usable, **chain))
    if copies:
        assert saves.kept_chain_bytes(**chain, copies=copies + 1, protection_fraction=0) <= usable
    assert saves.kept_chain_bytes(**chain, copies=copies + 2, protection_fraction=0) > usable


@settings(derandomize=True, deadline=None, max_examples=200)
@given(usable=st.integers(1, 100_000), whole=st.integers(10, 1000), part=st.integers(1, 10))
def test_as_many_deduplicated_saves_fit_as_can_be_put_in_one_by_one(
    usable: int, whole: int, part: int
) -> None:
    fits, left = 0, usable
    while left >= (need := part if fits else whole):
        fits, left = fits + 1, left - need
    shared = {"restored_bytes": whole, "checkpoint_bytes": part}
    assert saves.shared_saves_that_fit(usable_bytes=usable, **shared) == fits
    assert saves.shared_copies_that_fit(usable_bytes=usable, **shared) == max(fits - 1, 0)
