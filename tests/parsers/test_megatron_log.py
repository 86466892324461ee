"""Megatron-LM logs: the timers in each of their shapes, and what else in the log tells of them."""

import pytest

from service.parsers.conversion import FactsMissing
from service.parsers.trainer_logs import Unconvertible
from tests.parsers.foreign import FACTS, NOW, converted, foreign, notes_of, record, stated, text_of

KIND = "megatron"
NAME = "megatron-timers-style.log"
HEAD = "(min, max) time across ranks (ms):"
SAVE = "    save-checkpoint ................................: {}"
LOAD = "    load-checkpoint ................................: {}"


def test_the_recorded_timers_give_their_operations() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=8, mode="save"))
    facts = FACTS[NAME]["operations"]
    assert [operation["op"] for operation in made["operations"]] == [fact["op"] for fact in facts]
    for operation, fact in zip(made["operations"], facts, strict=True):
        assert operation["summary"]["ranks_reporting"] == 8
        # The log has two decimals of a millisecond, the facts six of a second.
        assert operation["summary"]["total_seconds"]["min"] == pytest.approx(fact["min_s"], abs=6e-6)
        assert operation["summary"]["total_seconds"]["max"] == pytest.approx(fact["max_s"], abs=6e-6)


def test_with_async_saves_the_timer_is_the_blocked_part() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=8, mode="async_save"))
    ops = [operation["op"] for operation in made["operations"]]
    assert ops == ["async_save", "async_save", "async_save", "load"]
    assert made["operations"][0]["summary"]["blocked_seconds"] == {"min": 1.00444, "max": 1.07279}
    assert "total_seconds" not in made["operations"][0]["summary"]


def test_a_log_of_timers_alone_cannot_say_the_mode() -> None:
    with pytest.raises(FactsMissing) as missing:
        converted(KIND, foreign(NAME), stated())
    assert list(missing.value.missing) == ["--world-size", "--mode"]


def test_a_log_of_loads_alone_needs_no_mode() -> None:
    (load,) = converted(KIND, [text_of(LOAD.format("(897.21, 926.07)"))], stated(world_size=8))["operations"]
    assert load["summary"]["total_seconds"] == {"min": 0.89721, "max": 0.92607}


@pytest.mark.parametrize(
    ("told", "op"),
    [
        ("  async_save ...................................... True", "async_save"),
        ("  async_save ...................................... False", "save"),
        ("  scheduled an async checkpoint save at iteration      50 to /ckpt", "async_save"),
    ],
)
def test_the_rest_of_the_log_may_say_the_mode(told: str, op: str) -> None:
    lines = [told, HEAD, SAVE.format("(1.00, 2.00)")]
    assert converted(KIND, [text_of(*lines)], stated(world_size=8))["operations"][0]["op"] == op


def test_the_listed_arguments_say_the_world_size() -> None:
    lines = ["  world_size ...................................... 16", SAVE.format("(1.00, 2.00)")]
    assert converted(KIND, [text_of(*lines)], stated(mode="save"))["world_size"] == 16
    with pytest.raises(Unconvertible, match="--world-size 8 contradicts the files, which say 16"):
        converted(KIND, [text_of(*lines)], stated(mode="save", world_size=8))


def test_the_step_is_that_of_the_save_that_was_begun() -> None:
    lines = [
        "saving checkpoint at iteration      50 to /ckpt in torch_dist format",
        SAVE.format("(1.00, 2.00)"),
        "saving checkpoint at iteration     100 to /ckpt in torch_dist format",
        "  successfully saved checkpoint from iteration      50 to /ckpt",
        SAVE.format("(1.00, 2.00)"),
    ]
    made = converted(KIND, [text_of(*lines)], stated(world_size=8, mode="async_save"))
    assert [operation["step"] for operation in made["operations"]] == [50, 100]


def test_a_timer_on_the_line_of_the_message_before_it_is_read() -> None:
    line = (
        "  successfully saved checkpoint from iteration      50 to /ckpt [ t 1/1, p 1/1 ] (min, max) time across ranks "
        "(ms): save-checkpoint ................................: (24895.07, 24895.13)"
    )
    (operation,) = converted(KIND, [text_of(line)], stated(world_size=8, mode="save"))["operations"]
    assert operation["step"] == 50
    assert operation["summary"]["total_seconds"]["max"] == 24.89513


def test_the_shape_with_the_largest_time_alone_is_read() -> None:
    lines = ["max time across ranks (ms):", SAVE.format("18512.90")]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=8, mode="save"))["operations"]
    assert operation["summary"]["total_seconds"] == {"max": 18.5129}


def test_the_shape_with_every_rank_is_read() -> None:
    lines = [
        "times across ranks (ms):",
        "  save-checkpoint:",
        "     rank  0: 1004.44",
        "     rank  1: 1072.79",
        "  forward-backward:",
        "     rank  0: 5.00",
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=2, mode="save"))["operations"]
    assert operation["ranks"] == [
        {"rank": 0, "total_seconds": 1.00444},
        {"rank": 1, "total_seconds": 1.07279},
    ]


def test_labels_of_the_launcher_colours_and_line_ends_of_windows_change_nothing() -> None:
    said = stated(world_size=8, mode="save")
    plain = foreign(NAME)[0].text
    noisy = "".join(f"1: \x1b[36m{line}\x1b[0m\r\n" for line in plain.splitlines())
    assert converted(KIND, [text_of(noisy)], said) == converted(KIND, [text_of(plain)], said)


def test_other_timers_are_no_saves() -> None:
    lines = [
        "    save-checkpoint-non-persistent .................: (1.00, 2.00)",
        "    forward-backward ...............................: (26094.39, 26095.09)",
        SAVE.format("(3.00, 4.00)"),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated(world_size=8, mode="save"))["operations"]
    assert operation["summary"]["total_seconds"]["max"] == 0.004


def test_the_load_timer_of_a_run_that_had_nothing_to_load_is_left_out_and_said() -> None:
    file = text_of(
        "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt",
        "    will not load any checkpoints and will start from random",
        LOAD.format("(0.18, 0.18)"),
        SAVE.format("(3.00, 4.00)"),
    )
    said = stated(world_size=8, mode="save")
    assert [operation["op"] for operation in converted(KIND, [file], said)["operations"]] == ["save"]
    assert "no checkpoint was there to load" in notes_of(KIND, [file], said)[0]


def test_bytes_that_are_stated_give_rates() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=8, mode="save", checkpoint_bytes=273338399))
    operations = record(made).operations or []
    first, load = operations[0], operations[-1]
    assert first.write_gb_per_second == pytest.approx(0.273338399 / 1.07279)
    assert load.restore_effective_gb_per_second == pytest.approx(0.273338399 / 0.92607)
    assert load.restore_gb_per_second is None


def test_without_any_time_in_the_log_the_document_is_of_now() -> None:
    made = converted(KIND, foreign(NAME), stated(world_size=8, mode="save"))
    assert made["recorded_at"] == NOW.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    "told",
    [
        "(nan, 2.00)", "(1.00, inf)", "(-1.00, 2.00)", "(3.00, 2.00)", "(1.00, 1e99)", "(0.00, 0.00)", "(a, b)",
        "(1,004.44, 1,072.79)", "-5.0", "soon",
    ],
)  # fmt: skip
def test_an_absurd_number_is_refused_with_its_file_and_line(told: str) -> None:
    with pytest.raises(Unconvertible) as refused:
        converted(KIND, [text_of(HEAD, SAVE.format(told))], stated(world_size=8, mode="save"))
    assert str(refused.value).startswith("train.log:2: ")


def test_one_rank_has_its_least_time_as_its_largest() -> None:
    (operation,) = converted(KIND, [text_of(SAVE.format("(2.00, 2.00)"))], stated(world_size=1, mode="save"))[
        "operations"
    ]
    assert operation["summary"]["total_seconds"] == {"min": 0.002, "max": 0.002}


def test_a_line_that_is_cut_off_is_left_out_and_said() -> None:
    file = text_of(SAVE.format("(3.00, 4.00)"), SAVE.format("(3.00, 4"))
    said = stated(world_size=8, mode="save")
    assert len(converted(KIND, [file], said)["operations"]) == 1
    assert "train.log:2: the line is cut off and was left out." in notes_of(KIND, [file], said)


def test_a_log_without_these_timers_is_refused() -> None:
    with pytest.raises(Unconvertible, match="no timer save-checkpoint"):
        converted(KIND, [text_of(HEAD, "    evaluate ....: (1.0, 2.0)")], stated(world_size=8, mode="save"))
