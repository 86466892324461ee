"""From any trainer's files to a document: what holds whatever they are."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from service.parsers.conversion import READERS, FactsMissing, convert, log_file
from service.parsers.trainer_logs import Stated, Unconvertible
from tests.parsers.foreign import (
    DATA,
    FACTS,
    FOREIGN,
    NOW,
    converted,
    foreign,
    notes_of,
    record,
    stated,
    text_of,
)

SCHEMA = Draft202012Validator(json.loads((DATA / "dcp-timing.schema.json").read_text()))
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sync events": ("torch-dcp-log", "dcp-logger.w2_sync.*", {}),
    "async events": ("torch-dcp-log", "dcp-logger.w4_async_thread.*", {}),
    "dlio both": ("dlio", "dlio-both.*", {}),
    "dlio write": ("dlio", "dlio-write.*", {}),
    "dlio read": ("dlio", "dlio-read.*", {}),
    "nemo": ("nemo", "nemo-style.log", {"world_size": 2}),
    "torchtitan": ("torchtitan", "torchtitan-style.log", {"world_size": 8}),
    "torchtitan of old": (
        "torchtitan", "torchtitan-style-2024-to-2026-05.log", {"world_size": 8, "mode": "async_save"},
    ),
    "megatron": ("megatron", "megatron-timers-style.log", {"world_size": 8, "mode": "save"}),
    "s3torchbenchmarking": ("s3torchbenchmarking", "s3torchbenchmarking-style.job_results.json", {}),
}  # fmt: skip
repeatable = settings(derandomize=True, database=None, deadline=None, max_examples=300)


def names_of(run: str) -> list[str]:
    return sorted(path.name for path in FOREIGN.glob(RUNS[run][1]))


@pytest.mark.parametrize("run", RUNS)
def test_every_document_is_of_the_format_and_of_its_schema(run: str) -> None:
    kind, _, said = RUNS[run]
    made = converted(kind, foreign(*names_of(run)), stated(**said))
    SCHEMA.validate(made)
    assert record(made).run_id == "run-1"


@pytest.mark.parametrize("run", RUNS)
def test_the_same_files_give_the_same_text_at_any_time(run: str) -> None:
    kind, _, said = RUNS[run]
    at = None if kind not in ("megatron", "s3torchbenchmarking") else NOW  # these hold no time
    first, second = (
        convert(
            kind,
            foreign(*names_of(run)),
            stated(**said),
            recorded_at=at,
            now=datetime(year, 1, 1, tzinfo=UTC),
        )
        for year in (2027, 2028)
    )
    assert first == second


def test_every_foreign_file_of_the_manifest_belongs_to_a_run() -> None:
    assert {name for run in RUNS for name in names_of(run)} == FACTS.keys()


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(FactsMissing) as missing:
        converted("megatron", foreign("megatron-timers-style.log"), Stated())
    assert list(missing.value.missing) == ["--run-id", "--nodes", "--world-size", "--storage-label", "--mode"]
    assert all(option in str(missing.value) for option in missing.value.missing)


def test_loads_of_what_other_ranks_wrote_are_resharded() -> None:
    files, said = foreign("nemo-style.log"), {"world_size": 2}
    resharded = converted("nemo", files, stated(saved_world_size=4, **said))
    same = converted("nemo", files, stated(saved_world_size=2, **said))
    assert [one["op"] for one in resharded["operations"]][-2:] == ["resharded_load"] * 2
    assert [(one["op"], one.get("saved_world_size")) for one in same["operations"]][-2:] == [("load", 2)] * 2


def test_what_is_stated_stands_in_the_document() -> None:
    said = stated(world_size=2, label="a try", storage_kind="nas", checkpointer_version="0.9")
    at = datetime(2026, 1, 2, tzinfo=UTC)
    made = converted("nemo", foreign("nemo-style.log"), said, recorded_at=at)
    assert made["label"] == "a try"
    assert made["storage"] == {"label": "pfs-a", "kind": "nas"}
    assert made["software"] == {
        "checkpointer": "megatron-core",
        "trainer": "nemo",
        "checkpointer_version": "0.9",
    }
    assert made["recorded_at"] == "2026-01-02T00:00:00Z"


def test_times_without_a_zone_are_recorded_in_the_stated_one_else_in_utc() -> None:
    files = foreign("torchtitan-style.log")
    zone = timezone(timedelta(hours=9))
    assert (
        converted("torchtitan", files, stated(world_size=8))["recorded_at"] == "2026-11-29T16:31:16.764000Z"
    )
    assert converted("torchtitan", files, stated(world_size=8, zone=zone))["recorded_at"] == (
        "2026-11-29T07:31:16.764000Z"
    )
    assert notes_of("torchtitan", files, stated(world_size=8, zone=zone)) == []


def test_one_rank_ran_on_one_node_and_two_may_have_run_on_any() -> None:
    line = "Finished saving the checkpoint in 1.00 seconds."
    assert converted("torchtitan", [text_of(line)], stated(world_size=1, nodes=None))["nodes"] == 1
    with pytest.raises(FactsMissing):
        converted("torchtitan", [text_of(line)], stated(world_size=2, nodes=None))


def test_a_document_that_the_service_would_refuse_is_not_printed() -> None:
    with pytest.raises(
        Unconvertible, match=r"no valid document: #/operations/0/ranks/1/rank: There is no rank 1"
    ):
        converted("nemo", foreign("nemo-style.log"), stated(world_size=1))
    with pytest.raises(Unconvertible, match="#/nodes"):
        converted("nemo", foreign("nemo-style.log"), stated(world_size=2, nodes=3))


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b\x08\x00", b"\x00\x01" * 50])
def test_what_is_no_text_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(Unconvertible, match=r"^train\.log: The document"):
        log_file("train.log", data)


@repeatable
@given(run=st.sampled_from(sorted(RUNS)), data=st.data())
def test_damaged_files_are_read_or_refused_and_never_break(run: str, data: st.DataObject) -> None:
    kind, _, said = RUNS[run]
    text = foreign(names_of(run)[0])[0].text
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    put = data.draw(
        st.sampled_from(["", "9" * 30, "-", "nan", "\x1b[31m", "{", '"', "\n", "1e400", ": ", "(", "é"])
    )
    damaged = text[:start] + put + text[start + length :]
    try:
        made = converted(
            kind, [text_of(damaged, name="0_per_epoch_stats.json")], stated(**{"world_size": 8, **said})
        )
    except Unconvertible:
        return
    assert record(made).operations


@repeatable
@given(kind=st.sampled_from(sorted(READERS)), run=st.sampled_from(sorted(RUNS)))
def test_the_files_of_one_trainer_are_refused_as_those_of_another(kind: str, run: str) -> None:
    if RUNS[run][0] == kind:
        return
    with pytest.raises(Unconvertible):
        converted(kind, foreign(*names_of(run)), stated(world_size=8, mode="save"))
