import pytest

from service.judgement.sentences import NAMES, number, quantity
from service.sizing.sizing import TargetId, TargetUnit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.046142578125, "0.04614"),
        (94.5, "94.5"),
        (999.96, "1000"),
        (1176.29, "1,176"),
        (9999.6, "10,000"),
        (123456.7, "123,457"),
        (5e-7, "5e-07"),
        (2e17, "2e+17"),
    ],
)
def test_a_number_has_four_digits_or_all_that_stand_before_the_point(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (94.5, TargetUnit.GB_PER_SECOND, "94.5 GB/s"),
        (60.0, TargetUnit.SECONDS, "60 s"),
        (273.0833, TargetUnit.PER_SECOND, "273.1 files/s"),
        (5.67e12, TargetUnit.BYTES, "5.67 TB"),
        (2.5e15, TargetUnit.BYTES, "2.5 PB"),
        (346_069_336.0, TargetUnit.BYTES, "346.1 MB"),
        (12.0, TargetUnit.BYTES, "12 bytes"),
    ],
)
def test_a_quantity_carries_its_unit_in_decimal(value: float, unit: TargetUnit, text: str) -> None:
    assert quantity(value, unit) == text


def test_every_target_has_a_name() -> None:
    assert set(NAMES) == set(TargetId)
