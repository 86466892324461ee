"""Dollars: of the cluster, of its stalls and its waste, and of the space. A year is 365 days."""

from service.units import DAY_SECONDS, DAYS_PER_YEAR, HOUR_SECONDS, HOURS_PER_YEAR, TB


def cluster_usd_per_hour(*, gpus: float, gpu_hour_usd: float) -> float:
    """Return what all GPUs cost. [USD/h]

    16,384 GPUs at $2.35 are $38,502 ("Checkpoint Storage That Doesn't Stall Training", the money).
    """
    return gpus * gpu_hour_usd


def stall_usd_per_day(
    *, cluster_usd_per_hour: float, blocking_seconds: float, interval_seconds: float
) -> float:
    """Return what GPUs that wait for saves cost, as if nothing failed. [USD/day]

    ``86,400/T * C`` seconds a day: 60 s every 15 minutes are 96 stalls.

    References:
        "Checkpoint Storage That Doesn't Stall Training", the money.
    """
    return DAY_SECONDS / interval_seconds * blocking_seconds * cluster_usd_per_hour / HOUR_SECONDS


def usd_per_year_from_day(*, usd_per_day: float) -> float:
    """Return a daily cost over a year. [USD/year]"""
    return usd_per_day * DAYS_PER_YEAR


def wasted_usd_per_year(*, lost_fraction: float, cluster_usd_per_hour: float) -> float:
    """Return what a fraction of the cluster's time costs. [USD/year]"""
    return lost_fraction * cluster_usd_per_hour * HOURS_PER_YEAR


def space_usd_per_month(*, space_bytes: float, usd_per_tb_month: float) -> float:
    """Return what space on a tier costs. [USD/month]"""
    return space_bytes / TB * usd_per_tb_month
