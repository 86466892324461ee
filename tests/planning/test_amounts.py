"""Amounts in words."""

import doctest

import pytest

from service.planning import amounts
from service.sizing.sizing import Comparison, TargetUnit


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(amounts) == (0, 4)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1023, "1,023 bytes"),
        (4096, "4.096 kB (4 KiB)"),
        (5.67e12, "5.67 TB (5.157 TiB)"),
        (1.7e16, "17 PB (15.1 PiB)"),
    ],
)
def test_bytes_are_said_in_both_kinds_of_unit(value: float, words: str) -> None:
    assert amounts.of_bytes(value) == words


@pytest.mark.parametrize(
    ("comparison", "unit", "words"),
    [
        (Comparison.AT_LEAST, TargetUnit.PER_SECOND, "at least 273.1 files/s"),
        (Comparison.AT_MOST, TargetUnit.SECONDS, "at most 273.1 s (5 min)"),
        (Comparison.WITHIN, TargetUnit.BYTES, "about 273 bytes"),
    ],
)
def test_a_bound_names_its_direction_and_unit(comparison: Comparison, unit: TargetUnit, words: str) -> None:
    assert amounts.bound(comparison, 273.08, unit) == words
