"""What the readers of trainers' files share: numbers, times, names, and which records make one operation."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.parsers.trainer_logs import (
    RankTimes,
    Unconvertible,
    about_checkpoint,
    last_written_time,
    operations_of,
    seconds,
    step_in,
    unix_time,
    whole,
    written_time,
)
from tests.parsers.foreign import text_of

FILE = text_of("a line")


def at(second: float) -> datetime:
    return datetime(2026, 11, 29, tzinfo=UTC) + timedelta(seconds=second)


def told(rank: int, start: float | None, took: float = 1.0, **more: object) -> RankTimes:
    started = None if start is None else at(start)
    ended = None if start is None else at(start + took)
    return RankTimes("save", rank, {"total_seconds": took}, started_at=started, ended_at=ended, **more)  # type: ignore[arg-type]


def ranks(operations: list[dict[str, object]]) -> list[list[int]]:
    return [[rank["rank"] for rank in operation["ranks"]] for operation in operations]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("token", "unit", "expected"),
    [("1.5", 1.0, 1.5), ("1004.44", 1e-3, 1.00444), ("414652703", 1e-9, 0.414652703)],
)
def test_a_duration_is_in_seconds(token: str, unit: float, expected: float) -> None:
    assert seconds(token, FILE, 1, unit_seconds=unit) == expected


@pytest.mark.parametrize("token", ["0", "0.0", "1000000"])
def test_the_ends_of_what_an_operation_can_have_taken_are_in(token: str) -> None:
    assert seconds(token, FILE, 1) == float(token)


def test_no_time_at_all_is_refused_where_it_was_measured() -> None:
    with pytest.raises(Unconvertible, match="took no time"):
        seconds("0.0", FILE, 1, zero=False)


def test_a_count_may_be_as_large_as_is_said() -> None:
    assert whole("7", FILE, 1, what="rank", most=7) == 7
    for token in ("8", "-1", "7.0", ""):
        with pytest.raises(Unconvertible, match="is no rank"):
            whole(token, FILE, 1, what="rank", most=7)


@pytest.mark.parametrize(
    "line",
    ["\x1b[31mstep: 1\x1b[0m", "\x1b]0;title\x07step: 1", "^[[36mstep: 1^[[39m", "\x1bMstep: 1"],
)
def test_orders_to_a_terminal_are_taken_out(line: str) -> None:
    assert list(text_of(line, "plain").lines()) == [(1, "step: 1"), (2, "plain")]


@pytest.mark.parametrize("token", ["", "x", "nan", "-inf", "-0.1", "1000001", "1_000_000_0"])
def test_what_no_operation_can_have_taken_is_refused(token: str) -> None:
    with pytest.raises(Unconvertible, match=r"^train\.log:7: "):
        seconds(token, FILE, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-29 16:32:19,669 - root", datetime(2026, 11, 29, 16, 32, 19, 669000)),
        ("[2024-04-04 09:09:27] [INFO]", datetime(2024, 4, 4, 9, 9, 27)),
        ("2026-11-29T16:32:19.669123456Z", datetime(2026, 11, 29, 16, 32, 19, 669123, tzinfo=UTC)),
        (
            "2026-11-29T16:32:19+01:00",
            datetime(2026, 11, 29, 16, 32, 19, tzinfo=timezone(timedelta(hours=1))),
        ),
        ("2026-01-01 00:00:00 and 2026-01-02 00:00:00", datetime(2026, 1, 2)),
        ("2026-02-30 00:00:00", None),
        ("step: 10", None),
    ],
)
def test_a_written_time_has_a_zone_only_where_it_is_written(text: str, expected: datetime | None) -> None:
    assert written_time(text) == expected
    assert (written_time(text) or at(0)).tzinfo == (expected or at(0)).tzinfo


def test_the_last_time_of_several_logs_is_the_latest() -> None:
    early, late = text_of("2026-01-01 00:00:00 a", "no time"), text_of("2026-01-03 00:00:00 b")
    assert last_written_time([late, early]) == datetime(2026, 1, 3)
    assert last_written_time([FILE]) is None


@pytest.mark.parametrize(
    ("name", "step"),
    [("step-10", 10), ("iter_0000050", 50), ("global_step120", 120), ("m--val_loss=0.00-step=24-last", 24),
     ("epoch-3", None), ("stepwise", None), ("footstep-", None)],
)  # fmt: skip
def test_a_name_says_a_step_or_none(name: str, step: int | None) -> None:
    assert step_in(name) == step


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/ckpt/step-10", {"checkpoint": "step-10", "step": 10}),
        ("s3://bucket/run/final/", {"checkpoint": "final"}),
        ("C:\\ckpt\\step-7", {"checkpoint": "step-7", "step": 7}),
        ("/", {}),
        ("x" * 256, {"checkpoint": "x" * 256}),
        ("x" * 257, {}),
    ],
)
def test_a_checkpoint_is_named_by_the_end_of_its_path(path: str, expected: dict[str, object]) -> None:
    assert about_checkpoint(path) == expected


def test_the_nth_records_of_all_ranks_make_the_nth_operation() -> None:
    made = operations_of([told(1, 0), told(1, 5), told(0, 0.1), told(0, 5.1)])
    assert ranks(made) == [[0, 1], [0, 1]]
    assert [operation["started_at"] for operation in made] == ["2026-11-29T00:00:00Z", "2026-11-29T00:00:05Z"]
    assert made[1]["ended_at"] == "2026-11-29T00:00:06.100000Z"


def test_a_rank_whose_clock_is_off_still_belongs() -> None:
    assert ranks(operations_of([told(0, 0), told(0, 5), told(1, 100), told(1, 105)])) == [[0, 1], [0, 1]]


def test_where_ranks_tell_of_unlike_many_the_times_decide() -> None:
    assert ranks(operations_of([told(0, 0), told(0, 5), told(0, 10), told(1, 5.5), told(1, 10)])) == [
        [0],
        [0, 1],
        [0, 1],
    ]


def test_records_that_touch_belong_together_and_those_apart_do_not() -> None:
    assert ranks(operations_of([told(0, 0), told(1, 1.0), told(1, 9)])) == [[0, 1], [1]]
    assert ranks(operations_of([told(0, 0), told(1, 1.1), told(1, 9)])) == [[0], [1], [1]]


def test_where_one_start_is_unknown_the_order_of_the_records_stands() -> None:
    made = operations_of([told(0, 5, key="b"), told(0, None, key="c"), told(0, 0, key="a")])
    assert [operation.get("started_at", "")[17:] for operation in made] == ["05Z", "", "00Z"]


def test_an_instant_is_one_that_a_clock_can_show() -> None:
    assert unix_time("1.5", FILE, 1) == datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)
    for token in ("0", "-1", "nan", "1e400", "1e30", "now"):
        with pytest.raises(Unconvertible, match="no time in seconds since 1970"):
            unix_time(token, FILE, 1)


def test_where_ranks_tell_of_unlike_many_without_times_the_order_decides() -> None:
    assert ranks(operations_of([told(0, None), told(0, None), told(1, None)])) == [[0, 1], [0]]


def test_records_of_other_checkpoints_are_other_operations() -> None:
    assert ranks(operations_of([told(0, 0, key="a"), told(1, 0, key="b")])) == [[0], [1]]


def test_an_operation_that_failed_on_one_rank_failed() -> None:
    (operation,) = operations_of([told(0, 0), told(1, 0, error="disk full")])
    assert (operation["status"], operation["error"]) == ("failed", "disk full")


def test_times_without_a_zone_order_and_are_not_given() -> None:
    naive = [
        RankTimes("save", rank, {}, started_at=datetime(2026, 1, 1, 0, 0, second))
        for rank, second in ((0, 5), (1, 5))
    ]
    (operation,) = operations_of(naive)
    assert "started_at" not in operation
    (zoned,) = operations_of(naive, zone=timezone(timedelta(hours=-1)))
    assert zoned["started_at"] == "2026-01-01T01:00:05Z"
