"""Bytes and seconds: the only place that knows how many of one make another.

What this service says is decimal. The binary units are for what other tools print, at the parsers' border.
"""

KIB = 2**10
MIB = 2**20
GIB = 2**30
GB = 10**9
TB = 10**12

HOUR_SECONDS = 3600
DAY_SECONDS = 86_400
DAYS_PER_YEAR = 365
"""A year is 365 days, as in the articles' money figures."""
HOURS_PER_YEAR = 24 * DAYS_PER_YEAR

UNITS_BY_SUFFIX = (
    ("_gb_per_second", "GB/s"),
    ("_usd_per_tb_month", "USD/(TB month)"),
    ("_usd_per_hour", "USD/h"),
    ("_usd_per_day", "USD/day"),
    ("_usd_per_month", "USD/month"),
    ("_usd_per_year", "USD/year"),
    ("_hour_usd", "USD/h"),
    ("_tb_per_day", "TB/day"),
    ("_per_second", "1/s"),
    ("_per_day", "1/day"),
    ("_per_node_day", "1/(node day)"),
    ("_per_1000_node_days", "1/(1000 node days)"),
    ("_seconds", "s"),
    ("_hours", "h"),
    ("_bytes_per_node", "B"),
    ("_bytes_per_parameter", "B"),
    ("_bytes_per_rank", "B"),
    ("_bytes", "B"),
    ("_tb", "TB"),
    ("_fraction", "1"),
)


def unit_of(name: str) -> str:
    """Return the unit that a quantity's name carries; `1` for a count or a bare ratio.

    >>> unit_of("write_gb_per_second"), unit_of("restart.seconds"), unit_of("gpus")
    ('GB/s', 's', '1')
    """
    name = name.rpartition(".")[2]
    if name.startswith("bytes"):
        return "B"
    return next((unit for suffix, unit in UNITS_BY_SUFFIX if ("_" + name).endswith(suffix)), "1")
