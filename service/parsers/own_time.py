"""When a run began, as tools print it that know no time zone: IOR and mdtest.

Such a time is read as UTC and marked as assumed. It may be half a day off, which orders the runs of one cluster
rightly, and any two runs that lie further apart.
"""

import re
from datetime import UTC, datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEAD = 200_000
"""Characters that are looked at: a run says at its head when it began."""

_CTIME = re.compile(
    r"(?:Run began|Began)\"?[ \t]{0,40}:[ \t]{0,10}\"?[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ 0-9][0-9]) "
    r"([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})"
)
_MDTEST = re.compile(r"-- started at ([0-9]{2})/([0-9]{2})/([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) --")


def began(text: str) -> datetime | None:
    """Return when the first run of an IOR or mdtest output began, its clock taken for UTC; None if unsaid."""
    head = text[:_HEAD]
    found = _CTIME.search(head)
    if found is not None:
        month, day, hour, minute, second, year = found.groups()
        return _instant(
            year, str(_MONTHS.index(month) + 1 if month in _MONTHS else 0), day, hour, minute, second
        )
    found = _MDTEST.search(head)
    if found is not None:
        month, day, year, hour, minute, second = found.groups()
        return _instant(year, month, day, hour, minute, second)
    return None


def _instant(*parts: str) -> datetime | None:
    year, month, day, hour, minute, second = (int(part) for part in parts)
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:  # no such day or hour: the line is damaged, and tells no time
        return None
