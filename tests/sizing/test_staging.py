"""Staging memory that is smaller than a share: the measured stall, and a save followed byte by byte."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.sizing import staging
from service.units import GB, GIB
from tests.sizing.scenarios import logarithmic


def test_a_share_that_fits_stalls_no_longer_than_its_copy() -> None:
    inputs = {
        "copy_seconds": 13.0,
        "node_share_bytes": 9.75 * GIB,
        "staging_budget_bytes": 16.0 * GIB,
        "drain_gb_per_second": 0.60 * GIB / GB,
    }
    assert staging.serial_stall(**inputs) == 13.0
    assert staging.overlapped_stall(**inputs) == 13.0


def test_78_gib_through_8_gib_stall_as_long_as_was_measured() -> None:
    inputs = {
        "copy_seconds": 13.0,
        "node_share_bytes": 78.0 * GIB,
        "staging_budget_bytes": 8.0 * GIB,
        "drain_gb_per_second": 0.60 * GIB / GB,
    }
    found = staging.serial_stall(**inputs)
    assert found == pytest.approx(70 / 0.6 + 13, rel=1e-14)
    assert round(found, 1) == 129.7
    assert found == pytest.approx(130.1, rel=0.004)  # as measured
    assert staging.overlapped_stall(**inputs) == pytest.approx(70 / 0.6, rel=1e-14)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    share=st.floats(1.0, 50.0),
    budget=st.floats(0.2, 60.0),
    drain=logarithmic(0.05, 20.0),
    copy=st.floats(0.5, 20.0),
)
def test_a_save_followed_byte_by_byte_stalls_as_long(
    share: float, budget: float, drain: float, copy: float
) -> None:
    # GB and GB/s. The copy runs at its own rate until memory is full, then as fast as memory drains.
    step = min(copy, share / drain) / 2_000
    rate, now, copied, drained = share / copy, 0.0, 0.0, 0.0
    while copied < share * (1 - 1e-9):
        drained = min(drained + drain * step, copied)
        copied = min(copied + rate * step, share, drained + budget)
        now += step
    inputs = {"node_share_bytes": share * GB, "drain_gb_per_second": drain}
    stall = staging.overlapped_stall(copy_seconds=copy, staging_budget_bytes=budget * GB, **inputs)
    tolerance = 0.01 * (copy + share / drain)
    assert now == pytest.approx(stall, abs=tolerance)
    left = (copied - drained) / drain
    if share / drain >= copy:  # else the drain keeps up with the copy and is done with it
        assert staging.overlapped_lag(staging_stall_seconds=stall, **inputs) == pytest.approx(
            left, abs=tolerance
        )


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    share=logarithmic(1.0, 1e15),
    budget=logarithmic(1.0, 1e15),
    drain=logarithmic(1e-6, 1e9),
    copy=logarithmic(1e-6, 1e7),
)
def test_no_byte_is_forgotten_where_nothing_overlaps(
    share: float, budget: float, drain: float, copy: float
) -> None:
    inputs = {"node_share_bytes": share, "staging_budget_bytes": budget, "drain_gb_per_second": drain}
    wait = staging.serial_stall(copy_seconds=0.0, **inputs)
    assert wait + staging.serial_lag(**inputs) == pytest.approx(share / (drain * GB), rel=1e-12)
    stall = staging.serial_stall(copy_seconds=copy, **inputs)
    assert stall >= staging.overlapped_stall(copy_seconds=copy, **inputs) >= copy
