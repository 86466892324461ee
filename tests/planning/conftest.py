"""A place to run scripts in."""

from pathlib import Path

import pytest

from tests.planning.workplace import BENCHMARKS, Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Return a place with stand-ins for the benchmarks and for curl."""
    place = Workplace(tmp_path)
    place.stand_in(*BENCHMARKS, "curl")
    return place
