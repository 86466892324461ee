"""torchtitan logs: both wordings, with the figures that their lines state."""

from datetime import timedelta, timezone

import pytest

from service.parsers.conversion import FactsMissing
from service.parsers.trainer_logs import Unconvertible
from tests.parsers.foreign import FACTS, Json, converted, foreign, notes_of, record, stated, text_of

KIND = "torchtitan"
NEWER = "torchtitan-style.log"
OLDER = "torchtitan-style-2024-to-2026-05.log"


def line(message: str, *, rank: int = 0, clock: str = "16:32:19,669") -> str:
    return f"[rank{rank}]:[titan] 2026-11-29 {clock} - root - INFO - {message}"


def told(made: Json) -> list[list[object]]:
    """Return the operations as the manifest lists them."""
    listed: list[list[object]] = []
    for operation in made["operations"]:
        (rank,) = operation["ranks"]
        is_async = operation["op"] == "async_save"
        step = [] if operation["op"] == "load" else [operation["step"]]
        listed.append(
            [
                "async_save blocked" if is_async else operation["op"],
                *step,
                rank["blocked_seconds" if is_async else "total_seconds"],
            ]
        )
    return listed


def test_the_newer_wording_says_what_each_line_is() -> None:
    made = converted(KIND, foreign(NEWER), stated(world_size=8))
    assert told(made) == FACTS[NEWER]["operations"]
    load = made["operations"][3]
    assert (load["checkpoint"], load["step"]) == ("step-10", 10)
    assert all(operation.partial_ranks for operation in record(made).operations or ())


@pytest.mark.parametrize(("mode", "name"), [("save", "save"), ("async_save", "async_save blocked")])
def test_the_older_wording_is_what_the_user_says(mode: str, name: str) -> None:
    made = converted(KIND, foreign(OLDER), stated(world_size=8, mode=mode))
    assert told(made) == [
        [name if entry[0] == "save or async_save" else entry[0], *entry[1:]]
        for entry in FACTS[OLDER]["operations"]
    ]


def test_without_a_mode_the_older_wording_names_it_among_all_that_is_missing() -> None:
    with pytest.raises(FactsMissing) as missing:
        converted(KIND, foreign(OLDER), stated(run_id=None, nodes=None, storage_label=None))
    assert list(missing.value.missing) == ["--run-id", "--nodes", "--world-size", "--storage-label", "--mode"]


def test_the_blank_before_in_may_be_there() -> None:
    file = text_of(line("Finished saving the checkpoint (or staging if async is enabled) in 5.53 seconds."))
    (operation,) = converted(KIND, [file], stated(world_size=1, mode="save"))["operations"]
    assert operation["ranks"] == [{"rank": 0, "total_seconds": 5.53}]


def test_a_mode_that_contradicts_the_newer_wording_is_refused() -> None:
    file = text_of(line("Finished staging the checkpoint in 0.18 seconds."))
    with pytest.raises(Unconvertible, match="--mode save contradicts the files"):
        converted(KIND, [file], stated(world_size=1, mode="save"))


@pytest.mark.parametrize("which", ["the", "initial", "resume", "additional"])
def test_each_kind_of_load_is_read(which: str) -> None:
    lines = [
        line(f"Loading {which} checkpoint from outputs/checkpoint/step-500."),
        line(f"Finished loading {which} checkpoint in 2.31 seconds."),
    ]
    (load,) = converted(KIND, [text_of(*lines)], stated(world_size=1))["operations"]
    assert (load["op"], load["step"], load["ranks"][0]["total_seconds"]) == ("load", 500, 2.31)


def test_with_a_time_zone_operations_have_their_times() -> None:
    made = converted(KIND, foreign(NEWER), stated(world_size=8, zone=timezone(timedelta(hours=1))))
    first_save = next(operation for operation in made["operations"] if operation["op"] == "save")
    assert first_save["started_at"] == "2026-11-29T15:32:19.679000Z"
    assert first_save["ended_at"] == "2026-11-29T15:32:20.683000Z"
    starts = [operation["started_at"] for operation in made["operations"]]
    assert starts == sorted(starts)


def test_without_a_zone_no_time_of_day_is_made_up() -> None:
    made = converted(KIND, foreign(NEWER), stated(world_size=8))
    assert not any("started_at" in operation for operation in made["operations"])
    assert made["recorded_at"] == "2026-11-29T16:31:16.764000Z"
    assert any("no zone" in note for note in notes_of(KIND, foreign(NEWER), stated(world_size=8)))


def test_the_ranks_of_one_log_are_told_apart() -> None:
    lines = [
        line(f"Finished saving the checkpoint in {took} seconds.", rank=rank)
        for rank, took in ((1, 2.0), (0, 1.0), (0, 1.5), (1, 2.5))
    ]
    made = converted(KIND, [text_of(*lines)], stated(world_size=2))
    assert [
        [(rank["rank"], rank["total_seconds"]) for rank in operation["ranks"]]
        for operation in made["operations"]
    ] == [[(0, 1.0), (1, 2.0)], [(0, 1.5), (1, 2.5)]]


def test_one_file_for_each_rank_makes_one_document() -> None:
    files = [
        text_of(line("Finished staging the checkpoint in 0.2 seconds.", rank=rank), name=f"{rank}.log")
        for rank in range(3)
    ]
    (operation,) = converted(KIND, files, stated(world_size=3))["operations"]
    assert [rank["rank"] for rank in operation["ranks"]] == [0, 1, 2]


def test_several_files_that_do_not_say_their_rank_are_refused() -> None:
    files = [
        text_of("Finished saving the checkpoint in 1.0 seconds.", name=name) for name in ("a.log", "b.log")
    ]
    with pytest.raises(Unconvertible, match="do not say their rank"):
        converted(KIND, files, stated(world_size=2))


def test_one_file_that_does_not_say_its_rank_is_of_the_first() -> None:
    file = text_of("[titan] Finished saving the checkpoint in 0.60 seconds.")
    (operation,) = converted(KIND, [file], stated(world_size=8))["operations"]
    assert operation["ranks"] == [{"rank": 0, "total_seconds": 0.6}]


@pytest.mark.parametrize(("clock", "known"), [("16:00:01,000", True), ("16:00:01,001", False)])
def test_a_save_within_a_second_of_its_step_line_is_of_that_step(clock: str, known: bool) -> None:
    lines = [
        line("step: 20  loss:  8.0", clock="16:00:00,000"),
        line("Saving the checkpoint.", clock=clock),
        line("Finished saving the checkpoint in 1.00 seconds.", clock="16:00:02,001"),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=1))["operations"]
    assert ("step" in operation) is known


def test_lines_that_are_whole_are_not_told_as_cut_off() -> None:
    notes = notes_of(KIND, foreign(NEWER), stated(world_size=8))
    assert not any("cut off" in note for note in notes)


def test_a_save_long_after_the_last_step_line_is_of_no_known_step() -> None:
    lines = [
        line("step: 20  loss:  8.0", clock="16:00:00,000"),
        line("Saving the checkpoint.", clock="16:00:30,000"),
        line("Finished saving the checkpoint in 1.00 seconds.", clock="16:00:31,000"),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=1))["operations"]
    assert "step" not in operation


def test_the_last_step_is_known_by_its_own_line() -> None:
    lines = [
        line("step: 640  loss:  8.0", clock="16:00:00,000"),
        line("Saving a full checkpoint at last step, step 644.", clock="16:00:30,000"),
        line("Finished saving the checkpoint in 5.00 seconds.", clock="16:00:35,000"),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=1))["operations"]
    assert operation["step"] == 644


def test_colours_and_line_ends_of_windows_change_nothing() -> None:
    plain = foreign(NEWER)[0].text
    noisy = (
        plain.replace("step: ", "\x1b[31mstep: ")
        .replace("Finished", "\x1b[0m\x1b[1mFinished")
        .replace("\n", "\r\n")
    )
    said = stated(world_size=8)
    assert converted(KIND, [text_of(noisy)], said) == converted(KIND, [text_of(plain)], said)


def test_staging_that_took_no_measurable_time_is_legal() -> None:
    file = text_of(line("Finished staging the checkpoint in 0.00 seconds."))
    (operation,) = converted(KIND, [file], stated(world_size=1))["operations"]
    assert operation["ranks"][0]["blocked_seconds"] == 0


@pytest.mark.parametrize("took", ["-1.0", "nan", "inf", "1e99", "1,00", "0.00", "2000000"])
def test_an_absurd_number_is_refused_with_its_file_and_line(took: str) -> None:
    file = text_of("noise", line(f"Finished saving the checkpoint in {took} seconds."))
    with pytest.raises(Unconvertible) as refused:
        converted(KIND, [file], stated(world_size=1))
    assert str(refused.value).startswith("train.log:2: ")


def test_a_line_that_is_cut_off_is_left_out_and_said() -> None:
    file = text_of(
        line("Finished saving the checkpoint in 1.0 seconds."), line("Finished saving the checkpoint in")
    )
    assert len(converted(KIND, [file], stated(world_size=1))["operations"]) == 1
    assert "train.log:2: the line is cut off and was left out." in notes_of(
        KIND, [file], stated(world_size=1)
    )


def test_a_log_without_such_lines_is_refused() -> None:
    with pytest.raises(Unconvertible, match="no line with Finished saving"):
        converted(KIND, [text_of(line("Saving the checkpoint."))], stated(world_size=1))
