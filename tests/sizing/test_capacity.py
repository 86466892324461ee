"""Space for the copies that are kept."""

import pytest

from service.sizing import capacity


def test_protection_is_added_to_every_copy() -> None:
    inputs = {"checkpoint_bytes": 5.67e12, "protection_fraction": 0.25}
    assert capacity.kept_bytes(**inputs, copies=10) == pytest.approx(70.875e12, rel=1e-15)
    assert capacity.peak_bytes(**inputs, copies=10) == pytest.approx(77.9625e12, rel=1e-15)


@pytest.mark.parametrize(("usable", "copies"), [(0.5, 0), (1, 0), (1.99, 0), (2, 1), (10.5, 9), (11, 10)])
def test_one_place_is_left_for_the_copy_in_flight(usable: float, copies: int) -> None:
    assert capacity.copies_that_fit(usable_bytes=usable * 1e12, checkpoint_bytes=1e12) == copies


def test_space_fills_by_whole_checkpoints() -> None:
    inputs = {"checkpoint_bytes": 1e12, "interval_seconds": 600.0}
    assert capacity.seconds_until_full(usable_bytes=10.9e12, **inputs) == 6000
    assert capacity.seconds_until_full(usable_bytes=0.9e12, **inputs) == 0
