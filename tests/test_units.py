"""The unit that a quantity's name carries."""

import pytest

from service.units import unit_of


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("write_gb_per_second", "GB/s"),
        ("total_gb_per_second", "GB/s"),
        ("file_creates_per_second", "1/s"),
        ("seconds", "s"),
        ("restart.seconds", "s"),
        ("restore.target_seconds", "s"),
        ("mtbf_hours", "h"),
        ("checkpoint_bytes", "B"),
        ("checkpoint.bytes", "B"),
        ("bytes_per_parameter", "B"),
        ("host_memory_bytes_per_node", "B"),
        ("usable_tb", "TB"),
        ("gpu_hour_usd", "USD/h"),
        ("cluster_usd_per_hour", "USD/h"),
        ("usd_per_day", "USD/day"),
        ("usd_per_tb_month", "USD/(TB month)"),
        ("hot_usd_per_month", "USD/month"),
        ("waste_usd_per_year", "USD/year"),
        ("failures_per_day", "1/day"),
        ("failures_per_node_day", "1/(node day)"),
        ("per_1000_node_days", "1/(1000 node days)"),
        ("gpu.mtbf_hours", "h"),
        ("overhead_fraction", "1"),
        ("gpus", "1"),
        ("skew", "1"),
    ],
)
def test_a_name_says_its_unit(name: str, unit: str) -> None:
    assert unit_of(name) == unit
