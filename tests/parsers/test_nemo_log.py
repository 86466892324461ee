"""NeMo 2 logs: lines of the known shapes, with the figures that they state."""

import pytest

from service.parsers.trainer_logs import Unconvertible
from tests.parsers.foreign import FACTS, converted, foreign, notes_of, record, stated, text_of

KIND = "nemo"
NAME = "nemo-style.log"
PREFIX = "[NeMo I 2025-04-11 14:48:45 nemo_logging:393 rank:{rank}] "
SCHEDULED = (
    "[NeMo I 2025-04-11 14:48:46 nemo_logging:393] Scheduled async checkpoint save for /ckpt/step=50.ckpt"
)


def a_save(
    *, rank: object = 0, iteration: object = 50, start: object = 1744408121.151, took: object = 4.389
) -> str:
    told = "" if iteration is None else f" : Iteration: {iteration}"
    return (
        PREFIX.format(rank=rank)
        + f"Global Checkpoint Save : Rank: {rank}{told} : Start time: {start}s : Save duration: {took}s"
    )


def a_load(*, rank: int = 0, start: float = 1744407969.270, took: float = 9.712) -> str:
    return (
        PREFIX.format(rank=rank)
        + f"Global Checkpoint Load : Rank : {rank} : Start time : {start}s : Time spent in load_checkpoint: {took}s"
    )


def test_the_recorded_lines_give_their_operations() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=2))
    told = [
        [operation["op"], rank["rank"], operation.get("step"), rank["total_seconds"]]
        for operation in made["operations"]
        for rank in operation["ranks"]
    ]
    assert sorted(told, key=str) == sorted(FACTS[NAME]["operations"], key=str)
    assert [len(operation["ranks"]) for operation in made["operations"]] == [2] * 5
    assert not any(operation.partial_ranks for operation in record(made).operations or ())


def test_start_times_are_instants_and_the_last_end_is_when_it_was_recorded() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=2))
    assert made["operations"][0]["started_at"] == "2026-11-29T16:30:58.082000Z"
    assert made["recorded_at"] == "2026-11-29T16:30:59.972000Z"


def test_a_line_without_an_iteration_is_read_too() -> None:
    made = converted(KIND, [text_of(a_save(iteration=None, took=60.221))], stated(world_size=8))
    assert made["operations"][0]["ranks"][0]["total_seconds"] == 60.221
    assert "step" not in made["operations"][0]


def test_saves_that_the_log_says_were_scheduled_are_async_and_their_duration_is_blocked() -> None:
    said = stated(world_size=1)
    (operation,) = converted(KIND, [text_of(a_save(), SCHEDULED)], said)["operations"]
    assert operation["op"] == "async_save"
    assert operation["ranks"][0]["blocked_seconds"] == 4.389
    assert "total_seconds" not in operation["ranks"][0]
    assert "ended_at" not in operation
    assert notes_of(KIND, [text_of(a_save(), SCHEDULED)], said) == []


def test_the_user_may_say_that_saves_are_async() -> None:
    (operation,) = converted(KIND, [text_of(a_save())], stated(world_size=1, mode="async_save"))["operations"]
    assert operation["op"] == "async_save"


def test_without_a_sign_of_async_saves_they_are_synchronous_and_that_is_said() -> None:
    (note,) = notes_of(KIND, [text_of(a_save())], stated(world_size=1))
    assert "read as synchronous" in note


def test_no_rate_rests_on_a_mode_that_was_only_assumed() -> None:
    with pytest.raises(Unconvertible, match="--mode"):
        converted(KIND, [text_of(a_save())], stated(world_size=1, checkpoint_bytes=10**9))
    made = converted(KIND, [text_of(a_save())], stated(world_size=1, checkpoint_bytes=10**9, mode="save"))
    assert record(made).operations[0].write_gb_per_second == pytest.approx(1 / 4.389)  # type: ignore[index]


def test_the_ranks_logs_and_a_common_one_give_each_record_once() -> None:
    first, second = a_save(rank=0), a_save(rank=1, took=4.5)
    made = converted(
        KIND,
        [text_of(first, name="0.log"), text_of(second, name="1.log"), text_of(second, first)],
        stated(world_size=2),
    )
    assert [len(operation["ranks"]) for operation in made["operations"]] == [2]


def test_two_saves_of_one_iteration_are_two_operations() -> None:
    lines = [a_save(start=1744408121.0 + 10 * at, rank=rank) for at in range(2) for rank in (1, 0)]
    made = converted(KIND, [text_of(*lines)], stated(world_size=2))
    assert [(one["step"], len(one["ranks"])) for one in made["operations"]] == [(50, 2), (50, 2)]


def test_ranks_with_unlike_many_loads_are_matched_by_their_times() -> None:
    lines = [a_load(rank=0, start=100.0), a_load(rank=0, start=200.0), a_load(rank=1, start=200.1)]
    made = converted(KIND, [text_of(*lines)], stated(world_size=2))
    assert [[rank["rank"] for rank in one["ranks"]] for one in made["operations"]] == [[0], [0, 1]]


def test_two_ranks_lines_that_ran_into_one_are_both_read() -> None:
    made = converted(KIND, [text_of(a_save(rank=0) + a_save(rank=1))], stated(world_size=2))
    assert len(made["operations"][0]["ranks"]) == 2


def test_colours_progress_bars_and_line_ends_of_windows_change_nothing() -> None:
    line = a_save()
    noisy = f"Epoch 0:  50%|#####     |\r\x1b[32m{line}\x1b[0m\r"
    said = stated(world_size=1)
    assert converted(KIND, [text_of(noisy, "")], said) == converted(KIND, [text_of(line)], said)


def test_a_line_that_is_cut_off_is_left_out_and_said() -> None:
    file = text_of(a_save(), a_save(rank=1)[:-6])
    assert len(converted(KIND, [file], stated(world_size=2))["operations"][0]["ranks"]) == 1
    assert "train.log:2: the line is cut off and was left out." in notes_of(
        KIND, [file], stated(world_size=2)
    )


@pytest.mark.parametrize(
    "line",
    [
        a_save(took=-4.3),
        a_save(took="nan"),
        a_save(took="1e12"),
        a_save(took="4,389"),
        a_save(took=0.0),
        a_save(start="nan"),
        a_save(start=1e30),
        a_save(rank=-1),
        a_save(iteration="1e3"),
    ],
)
def test_an_absurd_number_is_refused_with_its_file_and_line(line: str) -> None:
    with pytest.raises(Unconvertible) as refused:
        converted(KIND, [text_of("noise", a_save(), line)], stated(world_size=2))
    assert str(refused.value).startswith("train.log:3: ")


def test_an_async_save_may_block_for_no_measurable_time_and_a_load_may_not() -> None:
    said = stated(world_size=1, mode="async_save")
    assert (
        converted(KIND, [text_of(a_save(took="0.000"))], said)["operations"][0]["ranks"][0]["blocked_seconds"]
        == 0
    )
    with pytest.raises(Unconvertible, match="took no time"):
        converted(KIND, [text_of(a_save(), a_load(took=0.0))], said)


def test_a_log_without_such_lines_is_refused() -> None:
    with pytest.raises(Unconvertible, match="no line with Global Checkpoint Save"):
        converted(KIND, [text_of("Epoch 0")], stated(world_size=1))
