"""When IOR and mdtest say that they began."""

from datetime import UTC, datetime

import pytest

from service.parsers.own_time import began
from service.parsers.register import parse
from tests.parsers.manifest import content


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("ior-3.0-posix-fpp-write-read-3reps.txt", datetime(2026, 11, 29, 16, 34, 43, tzinfo=UTC)),
        ("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt", datetime(2026, 11, 29, 16, 33, 35, tzinfo=UTC)),
        ("ior-4.0-joblog-prologue-epilogue.txt", datetime(2026, 11, 29, 16, 42, 51, tzinfo=UTC)),
        ("io500-sc25dev-debug-mdtest-easy-write.txt", datetime(2026, 11, 29, 16, 44, 13, tzinfo=UTC)),
    ],
)
def test_a_run_has_its_own_time_and_says_that_its_zone_was_assumed(name: str, second: datetime) -> None:
    record = parse(content(name))
    assert (record.ran_at, record.ran_at_zone_assumed) == (second, True)


@pytest.mark.parametrize("name", ["ior-4.0-tag-output.txt", "ior-4.0-posix-fpp-write-read-5reps.json"])
def test_prefixes_and_json_hide_no_time(name: str) -> None:
    assert parse(content(name)).ran_at is not None


def test_a_file_without_a_time_has_none() -> None:
    record = parse(content("ior-4.0-posix-fpp-write-read-3reps.csv"))
    assert (record.ran_at, record.ran_at_zone_assumed) == (None, None)


@pytest.mark.parametrize(
    "line",
    [
        "Began : Sun Foo 29 16:33:35 2026",
        "Began : Sun Feb 30 16:33:35 2026",
        "Began : Sun Nov 29 25:33:35 2026",
        "-- started at 13/29/2026 16:44:13 --",
        "Began : yesterday",
    ],
)
def test_a_damaged_time_is_none(line: str) -> None:
    assert began(line) is None


def test_a_day_of_one_digit_is_read() -> None:
    assert began("Began               : Wed Jul  1 06:07:08 2026") == datetime(
        2026, 7, 1, 6, 7, 8, tzinfo=UTC
    )
