"""Rates that a requirement asks for, and times that a system takes."""

from typing import Any

import pytest

from service.sizing import bandwidth
from service.sizing.bandwidth import Limit

TRANSFER: dict[str, Any] = {
    "total_bytes": 100e9,
    "total_gb_per_second": 10.0,
    "node_bytes": 5e9,
    "node_gb_per_second": 1.0,
    "files": 1000,
    "file_creates_per_second": 250.0,
}


def test_bandwidth_is_in_decimal_gigabytes() -> None:
    assert bandwidth.sync_write_bandwidth(checkpoint_bytes=5.67e12, blocking_seconds=60) == 94.5
    assert bandwidth.read_bandwidth(read_bytes=5.67e12, target_seconds=120) == 47.25


@pytest.mark.parametrize(("buffers", "window"), [(1, 595), (2, 600), (16, 600)])
def test_one_buffer_has_to_drain_while_training_runs(buffers: int, window: float) -> None:
    assert bandwidth.strict_persist_bandwidth(
        checkpoint_bytes=5.67e12, interval_seconds=600, blocking_seconds=5, staging_buffers=buffers
    ) == pytest.approx(5670 / window, rel=1e-15)


def test_the_lag_without_a_stated_one_is_the_time_at_the_required_bandwidth() -> None:
    required = bandwidth.persist_bandwidth(checkpoint_bytes=5.67e12, interval_seconds=600, headroom=2.5)
    lag = bandwidth.durable_lag(interval_seconds=600, headroom=2.5)
    assert lag == 240
    assert required * lag == pytest.approx(5670, rel=1e-15)
    assert bandwidth.durable_lag(interval_seconds=0.1 + 0.2, headroom=1.0) == 0.1 + 0.2


@pytest.mark.parametrize(
    ("changed", "seconds", "limit"),
    [
        ({}, 10, Limit.AGGREGATE_BANDWIDTH),
        ({"node_gb_per_second": 0.25}, 20, Limit.NODE_BANDWIDTH),
        ({"file_creates_per_second": 20.0}, 50, Limit.FILE_CREATES),
        ({"total_gb_per_second": None}, 5, Limit.NODE_BANDWIDTH),
        ({"total_gb_per_second": None, "node_gb_per_second": None}, 4, Limit.FILE_CREATES),
        ({"node_gb_per_second": None, "file_creates_per_second": None}, 10, Limit.AGGREGATE_BANDWIDTH),
    ],
)
def test_the_slowest_known_limit_sets_the_time(changed: dict[str, Any], seconds: float, limit: Limit) -> None:
    transfer = bandwidth.transfer_time(**TRANSFER | changed)
    assert transfer.seconds == pytest.approx(seconds)
    assert transfer.limited_by is limit


def test_a_system_without_any_limit_is_refused() -> None:
    unknown = dict.fromkeys(("total_gb_per_second", "node_gb_per_second", "file_creates_per_second"))
    with pytest.raises(ValueError, match="no limit"):
        bandwidth.transfer_time(**TRANSFER | unknown)
