"""Events of torch's DCP logger: recorded ones with known figures, and what loggers do to them."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from service.parsers.trainer_logs import Unconvertible
from tests.parsers.foreign import DATA, FACTS, FOREIGN, converted, foreign, notes_of, record, stated, text_of

KIND = "torch-dcp-log"
RUNS = {
    "w2_sync": [f"dcp-logger.w2_sync.rank{rank}.jsonl" for rank in range(2)],
    "w4_async_thread": [f"dcp-logger.w4_async_thread.rank{rank}.jsonl" for rank in range(4)],
}
TWO_RANKS = DATA.parent / "recorded" / "torch-2.13-dcp-logger-two-ranks.log"
SECOND_NS = 1_000_000_000
START_NS = 1_795_969_858 * SECOND_NS


def event(name: str, kind: str, at_seconds: float, **more: Any) -> str:  # noqa: ANN401 - whatever is to be stated
    """Return a line as a handler writes it that uses JSON."""
    told = {
        "checkpoint_id": "/ckpt/step-10", "uuid": f"{name}-{more.get('global_rank', '0')}", "func_name": name,
        "world_size": "2", "global_rank": "0", "event": kind, "time": START_NS + int(at_seconds * SECOND_NS),
    }  # fmt: skip
    return json.dumps({**told, **more})


def a_save(*, rank: str = "0", spent: object = SECOND_NS) -> list[str]:
    return [
        event("save", "start", 0, global_rank=rank),
        event("save", "end", 1, global_rank=rank, times_spent=spent),
    ]


@pytest.mark.parametrize("name", [name for names in RUNS.values() for name in names])
def test_a_rank_has_the_nanoseconds_of_its_events_as_seconds(name: str) -> None:
    facts = FACTS[name]
    (operation,) = converted(KIND, foreign(name), stated())["operations"]
    (times,) = operation["ranks"]
    is_async = "async_save_ns" in facts
    assert times["io_seconds"] == pytest.approx(facts["write_data_ns"] / 1e9, abs=1e-9)
    assert times["persist_seconds" if is_async else "total_seconds"] == pytest.approx(facts["save_ns"] / 1e9)
    if is_async:
        assert times["blocked_seconds"] == pytest.approx(facts["async_save_ns"] / 1e9)
        assert times["staging_seconds"] == pytest.approx(facts["stage_state_dict_ns"] / 1e9)


@pytest.mark.parametrize(
    ("run", "fixture"), [("w2_sync", "w2-save-and-load"), ("w4_async_thread", "w4-async-thread")]
)
def test_all_ranks_make_the_operation_that_the_run_itself_recorded(run: str, fixture: str) -> None:
    made = converted(KIND, foreign(*RUNS[run]), stated())
    expected = json.loads((DATA / f"{fixture}.json").read_text())
    (operation,) = made["operations"]
    same = expected["operations"][0]
    assert made["world_size"] == expected["world_size"]
    assert {key: operation[key] for key in ("op", "step", "checkpoint")} == {
        key: same[key] for key in ("op", "step", "checkpoint")
    }
    assert len(operation["ranks"]) == len(same["ranks"])
    for told, known in zip(operation["ranks"], same["ranks"], strict=True):
        for name in told.keys() - {"rank", "started_at"}:
            # The recorder's clock enclosed the logger's: by less than 10 ms in these runs.
            assert told[name] == pytest.approx(known[name], abs=0.010), (told["rank"], name)
    assert made["software"]["collective_backend"] == "gloo"


def test_the_total_of_an_async_save_lasts_until_the_save_behind_it_is_done() -> None:
    lines = [
        event("async_save", "start", 0),
        event("stage_state_dict", "start", 0.1, checkpoint_id=None),
        event("stage_state_dict", "end", 0.4, checkpoint_id=None, times_spent=3 * SECOND_NS // 10),
        event("save", "start", 0.5),
        event("maybe_synchronize_staging", "end", 0.55, checkpoint_id=None, times_spent=1),
        event("async_save", "end", 0.6, times_spent=6 * SECOND_NS // 10),
        event("write_data", "end", 4.4, times_spent=3 * SECOND_NS),
        event("save", "end", 4.5, times_spent=4 * SECOND_NS),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated())["operations"]
    assert operation["op"] == "async_save"
    (times,) = operation["ranks"]
    del times["started_at"]
    assert times == {
        "rank": 0, "blocked_seconds": 0.6, "staging_seconds": 0.3, "persist_seconds": 4.0, "total_seconds": 4.5,
        "io_seconds": 3.0,
    }  # fmt: skip


def test_the_call_of_a_stager_that_returns_at_once_is_no_staging_time() -> None:
    lines = [
        event("async_save", "start", 0),
        event("stage_state_dict", "end", 0.1, checkpoint_id=None, times_spent=1000),
        event("async_save", "end", 0.2, times_spent=SECOND_NS // 5),
    ]
    (operation,) = converted(KIND, [text_of(*lines)], stated())["operations"]
    assert "staging_seconds" not in operation["ranks"][0]


def test_a_log_of_both_ranks_of_torch_2_13_gives_every_operation_it_saw() -> None:
    made = converted(KIND, [text_of(TWO_RANKS.read_text())], stated())
    assert [
        (one["op"], one["step"], len(one["ranks"]), one.get("status", "ok")) for one in made["operations"]
    ] == [
        ("save", 10, 2, "ok"),
        ("async_save", 20, 2, "ok"),
        ("async_save", 30, 2, "ok"),
        ("load", 10, 2, "ok"),
        ("load", 10, 2, "ok"),
        ("load", 99, 2, "failed"),
    ]
    thread, process = made["operations"][1:3]
    assert all("persist_seconds" in rank for rank in thread["ranks"])
    assert all("total_seconds" not in rank and "blocked_seconds" in rank for rank in process["ranks"])
    assert "metadata is None" in made["operations"][-1]["error"]


def test_prefixes_colours_and_line_ends_of_windows_change_nothing() -> None:
    plain = TWO_RANKS.read_text()
    noisy = plain.replace("INFO - ", "INFO - \x1b[32m\x1b[1m").replace("}\n", "}\x1b[0m\r\n")
    assert noisy != plain
    assert converted(KIND, [text_of(noisy)], stated()) == converted(KIND, [text_of(plain)], stated())


def test_the_order_of_files_and_of_interleaved_lines_changes_nothing() -> None:
    files = foreign(*RUNS["w4_async_thread"])
    lines = [line for file in files for line in file.text.splitlines()]
    random.Random(4).shuffle(lines)  # noqa: S311 - an order
    expected = converted(KIND, files, stated())
    assert converted(KIND, files[::-1], stated()) == expected
    assert converted(KIND, [text_of(*lines)], stated()) == expected


def test_the_same_events_in_two_files_count_once() -> None:
    files = foreign(*RUNS["w2_sync"])
    assert converted(KIND, [*files, *files], stated()) == converted(KIND, files, stated())


def test_fewer_ranks_than_the_world_are_told_as_partial() -> None:
    made = converted(KIND, foreign(RUNS["w4_async_thread"][2]), stated())
    assert record(made).operations[0].partial_ranks  # type: ignore[index]


def test_a_save_that_never_ended_is_one_that_failed() -> None:
    (operation,) = converted(KIND, [text_of(event("save", "start", 0))], stated())["operations"]
    assert (operation["status"], operation["error"]) == (
        "failed",
        "The log has the start of this operation and not its end.",
    )


def test_an_event_that_is_cut_off_at_the_end_of_a_file_is_left_out_and_said() -> None:
    cut = event("load", "start", 9)[:-30]
    file = text_of(*a_save(), cut)
    assert len(converted(KIND, [file], stated())["operations"]) == 1
    assert notes_of(KIND, [file], stated()) == ["train.log:3: the event is cut off and was left out."]


def test_events_without_a_process_group_are_a_world_of_one() -> None:
    lines = [
        json.dumps(
            {
                key: value
                for key, value in json.loads(line).items()
                if key not in ("world_size", "global_rank")
            }
        )
        for line in a_save()
    ]
    made = converted(KIND, [text_of(*lines)], stated(nodes=None))
    assert (made["world_size"], made["nodes"]) == (1, 1)
    with pytest.raises(Unconvertible, match="without world_size"):
        converted(KIND, [text_of(*lines), text_of(*lines, name="other.log")], stated())


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (-1, "no duration that an operation can have taken"),
        (10**30, "no duration that an operation can have taken"),
        (float("nan"), "no duration"),
        ("1000", "should be a number of nanoseconds"),
        (True, "should be a number of nanoseconds"),
        (None, "should be a number of nanoseconds"),
    ],
)
def test_an_absurd_duration_is_refused_with_its_file_and_line(spent: object, said: str) -> None:
    with pytest.raises(Unconvertible, match=said) as refused:
        converted(KIND, [text_of("noise", *a_save(spent=spent))], stated())
    assert str(refused.value).startswith("train.log:3: ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (event("save", "begin", 0), "no event that torch logs"),
        (event("save", "start", 0, global_rank="-1"), "no rank"),
        (event("save", "start", 0, world_size="many"), "no world size"),
        (event("save", "start", 0, time="yesterday"), "`time` should be"),
        (event("save", "start", 0, time=10**40), "no time in seconds since 1970"),
        ("{'func_name': 'save', 'event': }", "cannot be read"),
    ],
)
def test_a_damaged_event_is_refused_with_its_file_and_line(line: str, said: str) -> None:
    with pytest.raises(Unconvertible, match=said) as refused:
        converted(KIND, [text_of(line, *a_save())], stated())
    assert str(refused.value).startswith("train.log:1: ")


def test_runs_of_unlike_size_are_not_mixed() -> None:
    with pytest.raises(Unconvertible, match=r"unlike size \(2 at .*, 4 at "):
        converted(KIND, foreign(RUNS["w2_sync"][0], RUNS["w4_async_thread"][0]), stated())


def test_a_log_without_events_is_refused() -> None:
    with pytest.raises(Unconvertible, match="no event of torch's DCP logger"):
        converted(KIND, [text_of("step: 10 loss: 8.0")], stated())


def test_every_recorded_file_is_of_a_run_above() -> None:
    assert {path.name for path in Path(FOREIGN).glob("dcp-logger.*")} == {
        name for names in RUNS.values() for name in names
    }


def test_events_that_ran_into_one_line_are_all_read() -> None:
    expected = converted(KIND, [text_of(*a_save(rank="0"), *a_save(rank="1"))], stated())
    as_json = "noise ".join([*a_save(rank="0"), *a_save(rank="1")])
    as_dicts = "".join(str(json.loads(line)) for line in [*a_save(rank="0"), *a_save(rank="1")])
    assert converted(KIND, [text_of(as_json)], stated()) == expected
    assert converted(KIND, [text_of(as_dicts)], stated()) == expected


def test_an_event_within_what_another_program_logged_is_read() -> None:
    expected = converted(KIND, [text_of(*a_save())], stated())
    wrapped = [json.dumps({"level": "DEBUG", "message": json.loads(line)}) for line in a_save()]
    quoted = [json.dumps({"level": "DEBUG", "message": str(json.loads(line))}) for line in a_save()]
    assert converted(KIND, [text_of(*wrapped)], stated()) == expected
    assert converted(KIND, [text_of(*quoted)], stated()) == expected


def test_a_brace_in_the_text_of_an_error_ends_no_event() -> None:
    failed = json.loads(event("save", "exception", 1, error="no {key} in {'a': 1}"))
    (operation,) = converted(KIND, [text_of(str(failed))], stated())["operations"]
    assert operation["error"] == "no {key} in {'a': 1}"


def test_async_saves_that_overlap_keep_their_own_saves() -> None:
    def whole(step: int, start: float, saved: float) -> list[str]:
        lines = [
            event("async_save", "start", start),
            event("async_save", "end", start + 0.5, times_spent=SECOND_NS // 2),
            event("save", "start", start + 0.6),
            event("write_data", "end", saved - 0.1, times_spent=int(start + 1) * SECOND_NS // 10),
            event("save", "end", saved, times_spent=int((saved - start - 0.6) * SECOND_NS)),
        ]
        return [
            line.replace("step-10", f"step-{step}").replace('"uuid": "', f'"uuid": "{start}-')
            for line in lines
        ]

    lines = [*whole(10, 0, 9.0), *whole(20, 5, 12.0), *whole(10, 20, 23.0)]
    made = converted(KIND, [text_of(*lines)], stated())
    told = [
        (one["step"], one["ranks"][0]["total_seconds"], one["ranks"][0]["io_seconds"])
        for one in made["operations"]
    ]
    assert told == [(10, 9.0, 0.1), (20, 7.0, 0.6), (10, 3.0, 2.1)]
