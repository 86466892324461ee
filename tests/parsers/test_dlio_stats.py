"""DLIO's summary and ranks' files: those of real runs, with known figures."""

import json
from datetime import timedelta, timezone
from typing import Any

import pytest

from service.parsers.conversion import FactsMissing
from service.parsers.measurement import DcpOp
from service.parsers.trainer_logs import LogFile, Unconvertible
from tests.parsers.foreign import FACTS, converted, foreign, notes_of, record, stated, text_of

KIND = "dlio"
RUNS = {"both": 2, "write": 4, "read": 4}
RANK_FILES = [
    f"dlio-{run}.{rank}_per_epoch_stats.json" for run, ranks in RUNS.items() for rank in range(ranks)
]


def files_of(run: str) -> list[LogFile]:
    ranks = [f"dlio-{run}.{rank}_per_epoch_stats.json" for rank in range(RUNS[run])]
    return foreign(f"dlio-{run}.summary.json", *ranks)


def rank_file(rank: int, **parts: Any) -> LogFile:  # noqa: ANN401 - whatever is to be stated
    return text_of(
        json.dumps({"1": {"start": "2026-11-29T16:35:28.281427", **parts}}),
        name=f"{rank}_per_epoch_stats.json",
    )


def took(seconds: object) -> dict[str, object]:
    return {"start": "2026-11-29T16:35:29", "end": "2026-11-29T16:35:30", "duration": seconds}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_gives_the_figures_of_all_its_ranks(run: str) -> None:
    made = converted(KIND, files_of(run), stated(nodes=None))
    facts = FACTS[f"dlio-{run}.summary.json"]
    assert (made["world_size"], made["nodes"]) == (facts["num_accelerators_is_world_size"], 1)
    read = record(made)
    assert read.summary is not None
    for op in ("save", "load"):
        told = facts.get(op)
        own = [operation for operation in read.operations or () if operation.op == op]
        if told is None:
            assert own == []
            continue
        assert [operation.end_to_end_seconds for operation in own] == pytest.approx(
            told["durations_s_max_over_ranks"]
        )
        assert {operation.checkpoint_bytes for operation in own} == {facts["checkpoint_bytes"]}
        assert read.summary[DcpOp(op)].count == told["count"]
        assert read.summary[DcpOp(op)].gb_per_second == pytest.approx(
            told["gb_per_s_with_max_over_ranks"], rel=1e-5
        )
        assert not any(operation.partial_ranks for operation in own)


@pytest.mark.parametrize("name", RANK_FILES)
def test_a_rank_has_its_own_durations(name: str) -> None:
    (file,) = foreign(name)
    rank = int(name.split(".")[1].split("_")[0])
    parts = json.loads(file.text)["1"]
    expected = [part["duration"] for key, part in parts.items() if "_ckpt" in key]
    made = converted(KIND, [file], stated(world_size=4))
    told = [operation["ranks"] for operation in made["operations"]]
    assert told == [
        [{"rank": rank, "total_seconds": pytest.approx(duration, abs=1e-9)}] for duration in expected
    ]


def test_the_first_rank_alone_has_the_durations_of_the_summary() -> None:
    made = converted(KIND, foreign("dlio-both.summary.json", "dlio-both.0_per_epoch_stats.json"), stated())
    facts = FACTS["dlio-both.summary.json"]
    seconds = [operation["ranks"][0]["total_seconds"] for operation in made["operations"]]
    assert seconds == pytest.approx(facts["save"]["durations_s_rank0"] + facts["load"]["durations_s_rank0"])
    assert all(operation.partial_ranks for operation in record(made).operations or ())


def test_operations_are_in_the_order_in_which_they_took_place() -> None:
    made = converted(KIND, files_of("both")[::-1], stated())
    assert [operation["op"] for operation in made["operations"]] == ["save"] * 3 + ["load"] * 3


def test_with_a_time_zone_operations_have_their_times() -> None:
    made = converted(KIND, files_of("both"), stated(zone=timezone(timedelta(hours=1))))
    assert made["operations"][0]["started_at"] == "2026-11-29T15:35:29.281722Z"
    assert made["operations"][0]["ended_at"] == "2026-11-29T15:35:30.220023Z"


def test_without_a_summary_the_world_has_to_be_stated_and_bytes_are_unknown() -> None:
    files = files_of("write")[1:]
    with pytest.raises(FactsMissing) as missing:
        converted(KIND, files, stated(nodes=None))
    assert list(missing.value.missing) == ["--nodes", "--world-size"]
    made = converted(KIND, files, stated(world_size=4))
    assert not any("bytes_total" in operation for operation in made["operations"])
    assert any(
        "size of a checkpoint is not known" in note for note in notes_of(KIND, files, stated(world_size=4))
    )


def test_a_checkpoint_without_a_duration_is_one_that_failed() -> None:
    files = [rank_file(0, save_ckpt1=took(1.0)), rank_file(1, save_ckpt1={"start": "2026-11-29T16:35:29"})]
    (operation,) = converted(KIND, files, stated(world_size=2))["operations"]
    assert operation["status"] == "failed"
    assert "on rank 1" in operation["error"]


def test_whether_dlio_synced_its_files_is_doubted() -> None:
    codes = [doubt.code for doubt in record(converted(KIND, files_of("write"), stated())).doubts]
    assert "fsync_unknown" in codes


def test_other_files_of_the_run_are_left_out_and_said() -> None:
    files = [*files_of("write"), text_of("{}", name="0_output.json")]
    assert converted(KIND, files, stated()) == converted(KIND, files_of("write"), stated())
    assert "0_output.json: holds no checkpoint times and was left out." in notes_of(KIND, files, stated())


@pytest.mark.parametrize("duration", [-1.0, 0, 1e9, float("nan"), float("inf"), "1.0", True, [1]])
def test_an_absurd_duration_is_refused_with_its_place(duration: object) -> None:
    with pytest.raises(Unconvertible) as refused:
        converted(KIND, [rank_file(3, save_ckpt1=took(duration))], stated(world_size=4))
    assert str(refused.value).startswith("3_per_epoch_stats.json:#/1/save_ckpt1/duration: ")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("/num_accelerators", 0),
        ("/num_hosts", "one"),
        ("/metric/checkpoint_size_GB", float("nan")),
        ("/metric/checkpoint_size_GB", -1),
    ],
)
def test_an_absurd_summary_is_refused_with_its_place(place: str, value: object) -> None:
    summary = json.loads(foreign("dlio-both.summary.json")[0].text)
    *parents, name = place.split("/")[1:]
    (summary[parents[0]] if parents else summary)[name] = value
    files = [text_of(json.dumps(summary), name="summary.json"), rank_file(0, save_ckpt1=took(1.0))]
    with pytest.raises(Unconvertible, match=rf"^summary\.json: #{place} "):
        converted(KIND, files, stated(world_size=2))


def test_what_is_no_file_of_one_run_is_refused() -> None:
    whole = files_of("both")
    for files, said in (
        ([*whole, whole[0]], "a second summary.json"),
        ([*whole, whole[1]], "rank 0 has"),
        ([whole[0]], "no save_ckpt or load_ckpt"),
        ([text_of('{"1": {}}', name="stats.json")], "tells the rank"),
        ([text_of("{", name="summary.json")], "summary.json:1: The file is not JSON"),
        ([text_of("[1]", name="summary.json")], "one JSON object"),
        ([rank_file(0, save_ckpt1={**took(1.0), "start": "noon"})], "no time"),
    ):
        with pytest.raises(Unconvertible, match=said):
            converted(KIND, files, stated(world_size=2))


def test_what_the_user_states_may_not_contradict_the_summary() -> None:
    with pytest.raises(Unconvertible, match="--nodes 2 contradicts the files, which say 1"):
        converted(KIND, files_of("both"), stated(nodes=2))
    with pytest.raises(Unconvertible, match="--checkpoint-bytes"):
        converted(KIND, files_of("both"), stated(checkpoint_bytes=1))
    with pytest.raises(Unconvertible, match="--mode async_save contradicts the files"):
        converted(KIND, files_of("both"), stated(mode="async_save"))
