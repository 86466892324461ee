"""Figures are made without validation; these tests hold them to their types."""

import math
from typing import Any

import pytest

from service.api.examples import GIVEN_STORAGE, SPECS
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec

EVERYTHING = {
    **GIVEN_STORAGE,
    "save": {"mode": "async", "blocking_seconds": 5, "durable_lag_seconds": 900, "staging_buffers": 2},
    "interval": {"rule": "fixed", "seconds": 600},
    "retention": {"hot_copies": 2, "cold_copies": 3},
    "prices": {"gpu_hour_usd": 2, "hot_usd_per_tb_month": 20, "cold_usd_per_tb_month": 5},
    "shards": {"skew": 2},
}


@pytest.mark.parametrize("spec", [*(example["value"] for example in SPECS.values()), EVERYTHING])
@pytest.mark.parametrize("explained", [False, True])
def test_a_sizing_reads_back_as_it_was(spec: dict[str, Any], explained: bool) -> None:
    made = size(ScenarioSpec.model_validate(spec), explained=explained)
    text = made.model_dump_json()
    again = Sizing.model_validate_json(text, strict=True)
    assert again == made
    assert again.model_dump_json() == text


def test_whole_numbers_in_a_spec_stay_numbers_of_their_kind() -> None:
    made = size(ScenarioSpec.model_validate(EVERYTHING))
    assert isinstance(made.checkpoint.bytes, int)
    assert all(isinstance(target.value, float) and math.isfinite(target.value) for target in made.targets)
