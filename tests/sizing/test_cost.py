"""Dollars."""

import pytest

from service.sizing import cost


def test_a_stall_costs_what_the_cluster_costs_meanwhile() -> None:
    # 96 stalls of a minute are 1.6 hours a day.
    daily = cost.stall_usd_per_day(cluster_usd_per_hour=1000, blocking_seconds=60, interval_seconds=900)
    assert daily == pytest.approx(1600, rel=1e-15)
    assert cost.usd_per_year_from_day(usd_per_day=daily) == pytest.approx(584_000, rel=1e-15)


def test_a_year_of_waste_has_8760_hours() -> None:
    assert cost.wasted_usd_per_year(lost_fraction=0.25, cluster_usd_per_hour=1000) == 2_190_000


def test_space_is_paid_by_the_decimal_terabyte() -> None:
    assert cost.space_usd_per_month(space_bytes=62.37e12, usd_per_tb_month=20) == pytest.approx(1247.4)
