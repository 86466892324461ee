"""dcp-timing documents: fixtures with known figures, each refusal, both sides of each limit, properties."""

import copy
import json
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from service.errors import UnreadableDocument
from service.parsers import dcp_timing
from service.parsers.document import Document
from service.parsers.measurement import DcpOp, DoubtCode, Record

Json = dict[str, Any]

DATA = Path(__file__).parents[1] / "data" / "dcp"
MANIFEST = json.loads((DATA / "MANIFEST.json").read_text())
ENTRIES = {entry["file"]: entry for entry in MANIFEST["files"] if not entry["file"].startswith("foreign/")}
ACCEPTED = [name for name, entry in ENTRIES.items() if entry["expect"] == "accept"]
REFUSED = [name for name, entry in ENTRIES.items() if entry["expect"] == "reject"]
SCHEMA = Draft202012Validator(json.loads((DATA / "dcp-timing.schema.json").read_text()))

NEVER_IN_ACCEPTED = {
    DoubtCode.INCOMPLETE_RUN,
    DoubtCode.MIXED_LOG_LINES,
    DoubtCode.INVALID_JSON_STRING,
    DoubtCode.STONEWALLED,
    DoubtCode.REPS_SKIPPED,
    DoubtCode.NAN_SUMMARY,
    DoubtCode.IO500_INVALID,
}
NOT_IN_THE_MANIFEST = {
    "status", "checkpoint", "world_size", "nodes", "ranks_per_node", "saved_world_size", "files_total",
    "checkpoint_bytes", "durable_lag_seconds", "io_seconds_max",
}  # fmt: skip

repeatable = settings(derandomize=True, database=None, deadline=None, max_examples=150)


def save(**fields: object) -> Json:
    """A save of two ranks: 3 GB in 2 s."""
    return {
        "op": "save",
        "step": 10,
        "started_at": "2026-11-29T16:39:00Z",
        "ended_at": "2026-11-29T16:39:02Z",
        "checkpoint_bytes": 3_000_000_000,
        "bytes_total": 3_000_000_000,
        "files_total": 2,
        "ranks": [
            {"rank": 0, "node": 0, "io_seconds": 1.0, "total_seconds": 1.9, "bytes": 10**9, "files": 1},
            {"rank": 1, "node": 0, "io_seconds": 1.2, "total_seconds": 2.0, "bytes": 2 * 10**9, "files": 1},
        ],
        **fields,
    }


def async_save(**fields: object) -> Json:
    """An async save of two ranks with every field: 3 GB, drained in 4 s, safe 4.5 s after it blocked."""
    rank = {
        "rank": 0,
        "node": 0,
        "started_at": "2026-11-29T17:39:00.25+01:00",
        "blocked_seconds": 0.5,
        "wait_previous_seconds": 0.1,
        "staging_seconds": 0.75,
        "plan_seconds": 0.01,
        "io_seconds": 3.0,
        "persist_seconds": 4.0,
        "total_seconds": 5.0,
        "bytes": 1_000_000_000.0,
        "files": 1,
    }
    return {
        "op": "async_save",
        "status": "ok",
        "step": 10,
        "checkpoint": "step-10",
        "warmup": False,
        "started_at": "2026-11-29T16:39:00Z",
        "ended_at": "2026-11-29T16:39:05Z",
        "checkpoint_bytes": 3_000_000_000,
        "metadata_bytes": 100,
        "bytes_total": 3_000_000_000,
        "files_total": 2,
        "settings": {
            "async_checkpointer_type": "thread",
            "async_staging": True,
            "pinned_memory": True,
            "thread_count": 1,
            "sync_files": True,
            "single_file_per_rank": True,
        },
        "ranks": [rank, {**rank, "rank": 1, "persist_seconds": 3.5, "bytes": 2_000_000_000}],
        **fields,
    }


def load(**fields: object) -> Json:
    """A load of a checkpoint of 2 GB by two ranks that read 4 GB in 2 s, as a summary."""
    return {
        "op": "load",
        "started_at": "2026-11-29T16:40:00Z",
        "saved_world_size": 2,
        "checkpoint_bytes": 2_000_000_000,
        "bytes_total": 4_000_000_000,
        "settings": {"page_cache": "cold"},
        "summary": {
            "ranks_reporting": 2,
            "blocked_seconds": {"min": 1.0, "mean": 1.5, "max": 2.0},
            "io_seconds": {"min": 0.5, "mean": 0.75, "max": 1.0},
            "total_seconds": {"min": 1.0, "mean": 1.5, "max": 2.0},
            "bytes": {"min": 10**9, "mean": 2e9, "max": 3 * 10**9},
            "slowest_rank": 1,
        },
        **fields,
    }


def document(*operations: Json, **fields: object) -> Json:
    return {
        "format": "dcp-timing",
        "format_version": 1,
        "run_id": "run-1",
        "recorded_at": "2026-11-29T16:41:00Z",
        "label": "a run",
        "software": {
            "checkpointer": "torch.distributed.checkpoint",
            "checkpointer_version": "2.13.0",
            "trainer": "ours",
            "trainer_version": "1",
            "collective_backend": "gloo",
        },
        "world_size": 2,
        "nodes": 1,
        "ranks_per_node": 2,
        "storage": {"label": "pfs-a", "kind": "parallel_fs", "notes": "none"},
        "state": {"parameters": 1000, "sharding": "fsdp2", "contents": ["weights_bf16"]},
        "operations": list(operations),
        **fields,
    }


def parse(value: Json) -> Record:
    return dcp_timing.parse(Document(json.dumps(value)))


def figures(*operations: Json, **fields: object) -> list[dict[str, Any]]:
    made = parse(document(*operations, **fields)).operations
    assert made is not None
    return [operation.model_dump(exclude_none=True) for operation in made]


def refusal(value: Json | str) -> tuple[str, str | None]:
    with pytest.raises(UnreadableDocument) as caught:
        dcp_timing.parse(Document(value if isinstance(value, str) else json.dumps(value)))
    assert caught.value.detail.endswith(".")
    assert len(caught.value.detail) < 300
    return caught.value.code, caught.value.pointer


def code_of(value: Json) -> str | None:
    """The code of the refusal, or None for a document that is taken."""
    try:
        parse(value)
    except UnreadableDocument as error:
        return error.code
    return None


def doubts(*operations: Json, **fields: object) -> set[tuple[str, int | None]]:
    return {(doubt.code.value, doubt.measurement) for doubt in parse(document(*operations, **fields)).doubts}


def without(value: Json, *names: str) -> Json:
    return {name: item for name, item in value.items() if name not in names}


def changed(operation: Json, rank: int, /, **fields: object) -> Json:
    """The operation with other fields in one rank record; None takes a field out."""
    made = copy.deepcopy(operation)
    record = {**made["ranks"][rank], **fields}
    made["ranks"][rank] = {name: item for name, item in record.items() if item is not None}
    return made


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-5)
    return one == other


# --- Fixtures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_fixture_gives_the_figures_of_the_manifest_and_no_others(name: str) -> None:
    record = dcp_timing.parse(Document((DATA / name).read_text()))
    expected = ENTRIES[name]["derived"]
    assert record.operations is not None
    assert len(record.operations) == len(expected["operations"])
    for operation, wanted in zip(record.operations, expected["operations"], strict=True):
        made = operation.model_dump(exclude_none=True)
        assert {key: made.get(key) for key in wanted if not same(wanted[key], made.get(key))} == {}
        assert made.keys() - NOT_IN_THE_MANIFEST == wanted.keys()
    assert record.summary is not None
    summary = {op.value: line.model_dump(exclude_none=True) for op, line in record.summary.items()}
    assert summary.keys() == expected["run"].keys()
    for op, wanted in expected["run"].items():
        assert summary[op].keys() == wanted.keys()
        assert {key: summary[op][key] for key in wanted if not same(wanted[key], summary[op][key])} == {}
    assert not {doubt.code for doubt in record.doubts} & NEVER_IN_ACCEPTED


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_fixture_is_refused_for_its_reason(name: str) -> None:
    assert refusal((DATA / name).read_text())[0] == ENTRIES[name]["reason_code"]


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_every_fixture_is_recognised(name: str) -> None:
    assert dcp_timing.recognises(Document((DATA / name).read_text()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"format": "dcp-timing"}, True),
        ({"format": "DCP_timing"}, True),
        (without(document(save()), "format"), True),
        ({"operations": [], "format": "other"}, False),
        ({"version": "IOR-4.0.0", "tests": [], "software": {}, "nodes": 2}, False),
        ({"num_accelerators": 2, "num_hosts": 1, "metric": {}}, False),
        ([], False),
        ("dcp-timing", False),
        (None, False),
    ],
)
def test_what_is_meant_to_be_a_document_is_recognised(value: object, *, expected: bool) -> None:
    assert dcp_timing.recognises(Document(json.dumps(value))) is expected


def test_the_record_says_what_ran_where_and_when() -> None:
    late = save(started_at="2026-11-29T18:39:10+02:00", ended_at="2026-11-29T16:39:12Z")
    record = parse(document(late, save()))
    assert (record.tool, record.tool_version) == ("torch.distributed.checkpoint", "2.13.0")
    assert (record.format, record.storage_label, record.run_id) == ("dcp-timing", "pfs-a", "run-1")
    assert record.ran_at == datetime(2026, 11, 29, 16, 39, tzinfo=UTC)


def test_a_document_without_starts_ran_when_it_was_recorded() -> None:
    record = parse(document(without(save(), "started_at"), recorded_at="2026-11-29T17:41:00+01:00"))
    assert record.ran_at == datetime(2026, 11, 29, 16, 41, tzinfo=UTC)
    assert record.ran_at.utcoffset() == UTC.utcoffset(None)


# --- Refusals ---------------------------------------------------------------------------------------------


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(UnreadableDocument) as caught:
        dcp_timing.parse(Document('{\n "format": "dcp-timing",\n oops\n}'))
    assert (caught.value.code, caught.value.line) == ("not_json", 3)


PLACE = "#/operations/0"


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ('{"format": "dcp-timing", "format": "dcp-timing"}', "duplicate_key", "#/format"),
        ('{"format": "dcp-timing", "nodes": Infinity}', "non_finite_number", "#/nodes"),
        ('{"format": "dcp-timing", "nodes": 1e999}', "non_finite_number", "#/nodes"),
        ('{"format":' + "[" * 100 + "]" * 100 + "}", "schema", "#"),
        ("[]", "schema", "#"),
        ("9" * 5000, "non_finite_number", "#"),
        (document(save(), format_version=2), "schema", "#/format_version"),
        (document(save(), format_version=True), "schema", "#/format_version"),
        (document(save(), format="dcp"), "schema", "#/format"),
        (without(document(save()), "run_id"), "schema", "#/run_id"),
        (document(save(), run_id=None), "schema", "#/run_id"),
        (document(save(), label=None), "schema", "#/label"),
        (document(save(), recorded_at="2026-11-29T16:41:00"), "schema", "#/recorded_at"),
        (document(save(), recorded_at="2026-02-30T16:41:00Z"), "schema", "#/recorded_at"),
        (document(save(), recorded_at="2026-11-29T24:00:00Z"), "schema", "#/recorded_at"),
        (document(save(), recorded_at="0001-01-01T00:00:00+01:00"), "schema", "#/recorded_at"),
        (document(), "schema", "#/operations"),
        (document(save(**{"x" * 1000: 1})), "schema", PLACE),
        (document(changed(save(), 1, total_ms=2000)), "schema", f"{PLACE}/ranks/1/total_ms"),
        (document(changed(save(), 1, total_seconds=None)), "schema", f"{PLACE}/ranks/1/total_seconds"),
        (document(changed(save(), 1, total_seconds="2.0")), "schema", f"{PLACE}/ranks/1/total_seconds"),
        (document(changed(save(), 1, total_seconds=True)), "schema", f"{PLACE}/ranks/1/total_seconds"),
        (document(changed(save(), 1, bytes=0.5)), "schema", f"{PLACE}/ranks/1/bytes"),
        (document(changed(save(), 1, staging_seconds=0)), "schema", f"{PLACE}/ranks/1/staging_seconds"),
        (document(save(settings={"async_staging": False})), "schema", f"{PLACE}/settings/async_staging"),
        (document(changed(async_save(), 0, blocked_seconds=None)), "schema",
         f"{PLACE}/ranks/0/blocked_seconds"),
        (document(without(save(), "ranks")), "schema", PLACE),
        (document(save(status="failed")), "schema", f"{PLACE}/error"),
        (document(save(op="resharded_load")), "schema", f"{PLACE}/saved_world_size"),
        (document(load(summary={"ranks_reporting": 2})), "schema", f"{PLACE}/summary/total_seconds"),
        (document(save(), nodes=3, ranks_per_node=1), "topology_mismatch", "#/nodes"),
        (document(save(), ranks_per_node=1), "topology_mismatch", "#/ranks_per_node"),
        (document(changed(save(), 1, rank=2)), "rank_out_of_range", f"{PLACE}/ranks/1/rank"),
        (document(load(summary={**load()["summary"], "slowest_rank": 2})), "rank_out_of_range",
         f"{PLACE}/summary/slowest_rank"),
        (document(load(summary={**load()["summary"], "ranks_reporting": 3})), "rank_out_of_range",
         f"{PLACE}/summary/ranks_reporting"),
        (document(changed(save(), 1, node=1)), "node_out_of_range", f"{PLACE}/ranks/1/node"),
        (document(save(), changed(save(), 1, rank=0)), "duplicate_rank", "#/operations/1/ranks/1/rank"),
        (document(load(saved_world_size=4)), "op_mismatch", f"{PLACE}/saved_world_size"),
        (document(changed(save(), 0, io_seconds=2.5)), "part_exceeds_total", f"{PLACE}/ranks/0/io_seconds"),
        (document(changed(async_save(), 1, wait_previous_seconds=0.6)), "part_exceeds_total",
         f"{PLACE}/ranks/1/wait_previous_seconds"),
        (document(load(summary={**load()["summary"], "io_seconds": {"max": 3}})), "part_exceeds_total",
         f"{PLACE}/summary/io_seconds/max"),
        (document(changed(save(), 0, bytes=10**9 - 1)), "bytes_mismatch", f"{PLACE}/bytes_total"),
        (document(save(ranks=save()["ranks"][1:], bytes_total=10**9, checkpoint_bytes=10**9)),
         "bytes_mismatch", f"{PLACE}/bytes_total"),
        (document(load(bytes_total=10**9)), "bytes_mismatch", f"{PLACE}/bytes_total"),
        (document(save(checkpoint_bytes=2 * 10**9)), "bytes_mismatch", f"{PLACE}/checkpoint_bytes"),
        (document(changed(save(), 0, files=2)), "files_mismatch", f"{PLACE}/files_total"),
        (document(load(summary={"ranks_reporting": 2, "total_seconds": {"max": 1}}, bytes_total=0)),
         "zero_bytes", f"{PLACE}/bytes_total"),
        (document({"op": "save", "ranks": [{"rank": r, "total_seconds": 1, "bytes": 0} for r in (0, 1)]}),
         "zero_bytes", f"{PLACE}/ranks"),
        (document(load(summary={"ranks_reporting": 2, "total_seconds": {"max": 0}})), "zero_time",
         f"{PLACE}/summary/total_seconds/max"),
        (document(save(ended_at="2026-11-29T16:38:59Z")), "end_before_start", f"{PLACE}/ended_at"),
        (document(changed(save(), 1, total_seconds=2000)), "window_mismatch",
         f"{PLACE}/ranks/1/total_seconds"),
        (document(changed(save(), 1, io_seconds=0.001)), "implausible_rate", f"{PLACE}/ranks/1/io_seconds"),
        (document(changed(save(), 1, io_seconds=0)), "implausible_rate", f"{PLACE}/ranks/1/io_seconds"),
        (document(load(bytes_total=10**12)), "implausible_rate", f"{PLACE}/summary/total_seconds/max"),
        (document(async_save(ranks=[{**rank, "persist_seconds": 0.001} for rank in async_save()["ranks"]])),
         "implausible_rate", f"{PLACE}/ranks/0/persist_seconds"),
        (document(load(summary={**load()["summary"], "io_seconds": {"min": 0.9, "mean": 0.8, "max": 1}})),
         "summary_order", f"{PLACE}/summary/io_seconds"),
        (document(load(summary={**load()["summary"], "bytes": {"mean": 3e9, "max": 2 * 10**9}})),
         "summary_order", f"{PLACE}/summary/bytes"),
        (document(save(summary={"ranks_reporting": 2, "total_seconds": {"max": 1.9}})), "summary_mismatch",
         f"{PLACE}/summary/total_seconds/max"),
        (document(save(summary={"ranks_reporting": 1, "total_seconds": {"max": 2}})), "summary_mismatch",
         f"{PLACE}/summary/ranks_reporting"),
        (document(save(summary={"ranks_reporting": 2, "total_seconds": {"max": 2}, "slowest_rank": 0})),
         "summary_mismatch", f"{PLACE}/summary/slowest_rank"),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_with_code_and_place(
    value: Json | str, code: str, pointer: str | None
) -> None:
    assert refusal(value) == (code, pointer)


def test_the_first_rule_of_the_page_that_applies_is_told() -> None:
    worst = changed(save(ended_at="2026-11-29T16:38:59Z", files_total=9), 1, rank=0, io_seconds=9)
    assert refusal(document(worst))[0] == "duplicate_rank"
    assert refusal(document(worst, changed(save(), 0, oops=1)))[0] == "schema"


def test_long_text_of_the_poster_is_cut_in_the_sentence() -> None:
    with pytest.raises(UnreadableDocument) as caught:
        parse(document(save(), run_id="r" * 100_000))
    assert 80 <= caught.value.detail.count("r") < 120


def test_a_sentence_names_what_is_wrong_and_what_would_be_right() -> None:
    def detail(**fields: object) -> str:
        with pytest.raises(UnreadableDocument) as caught:
            parse({**document(save()), **fields})
        return caught.value.detail

    assert detail(world_size=0) == "`world_size` should be greater than or equal to 1, not 0."
    assert detail(label=None) == "`label` should be a valid string, not null."
    assert detail(state={"contents": [True]}) == "Item 0 of `contents` should be a valid string, not true."
    assert detail(operations=[]) == "`operations` should have at least 1 item."
    assert detail(storage=[]) == "`storage` should be an object, not an array."
    assert detail(operations={}) == "`operations` should be an array, not an object."
    assert detail(**{"y" * 1000: 1}).startswith("`" + "y" * 80 + "…` is no field of the format here;")
    assert detail(recorded_at="now").endswith('such as 2026-11-29T10:00:00Z, not "now".')


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    assert figures(save(bytes_total=3e9, step=10.0), world_size=2.0)[0]["bytes_total"] == 3_000_000_000


def test_a_leap_second_is_the_second_after_it() -> None:
    record = parse(document(save(started_at="2016-12-31T23:59:60Z", ended_at="2017-01-01T00:00:02Z")))
    assert record.ran_at == datetime(2017, 1, 1, tzinfo=UTC)


# --- Both sides of each limit -----------------------------------------------------------------------------


def summarised(**quantities: dict[str, float]) -> Json:
    return without(load(summary={"ranks_reporting": 2, **quantities}), "bytes_total")


TOLD: Json = {"ranks_reporting": 2, "total_seconds": {"max": 2}}


@pytest.mark.parametrize(
    ("inside", "outside", "code"),
    [
        (changed(save(), 1, io_seconds=2.001), changed(save(), 1, io_seconds=2.00101), "part_exceeds_total"),
        (summarised(total_seconds={"max": 1}, io_seconds={"max": 1.001}),
         summarised(total_seconds={"max": 1}, io_seconds={"max": 1.00101}), "part_exceeds_total"),
        # In binary 1.008 is above 1.007 + 0.001, and a mean of equal values may be above them.
        (summarised(total_seconds={"max": 1.007}, io_seconds={"max": 1.008}),
         summarised(total_seconds={"max": 1.007}, io_seconds={"max": 1.00801}), "part_exceeds_total"),
        (changed(changed(save(), 1, total_seconds=1.007, io_seconds=1.008), 0, total_seconds=1.007),
         changed(save(), 1, total_seconds=1.007, io_seconds=1.00801), "part_exceeds_total"),
        (summarised(total_seconds={"min": 0.1, "mean": 0.10000000000000002, "max": 0.1}),
         summarised(total_seconds={"min": 0.1, "mean": 0.10001, "max": 0.1}), "summary_order"),
        (save(checkpoint_bytes=3_030_000_000), save(checkpoint_bytes=3_030_000_001), "bytes_mismatch"),
        (save(checkpoint_bytes=2_970_000_000), save(checkpoint_bytes=2_969_999_999), "bytes_mismatch"),
        (changed(save(), 1, total_seconds=3.0), changed(save(), 1, total_seconds=3.00001), "window_mismatch"),
        (changed(save(), 1, io_seconds=0.01), changed(save(), 1, io_seconds=0.009999), "implausible_rate"),
        (load(bytes_total=800 * 10**9, summary={"ranks_reporting": 2, "total_seconds": {"max": 2}}),
         load(bytes_total=801 * 10**9, summary={"ranks_reporting": 2, "total_seconds": {"max": 2}}),
         "implausible_rate"),
        (save(summary={"ranks_reporting": 2, "total_seconds": {"max": 2.002}}),
         save(summary={"ranks_reporting": 2, "total_seconds": {"max": 2.0021}}), "summary_mismatch"),
        (save(summary={**TOLD, "io_seconds": {"min": 0.999, "max": 1.2}}),
         save(summary={**TOLD, "io_seconds": {"min": 0.998, "max": 1.2}}), "summary_mismatch"),
        (changed(save(summary={**TOLD, "io_seconds": {"min": 0.1009, "max": 1.2}}), 0, io_seconds=0.1),
         changed(save(summary={**TOLD, "io_seconds": {"min": 0.1011, "max": 1.2}}), 0, io_seconds=0.1),
         "summary_mismatch"),
        (save(summary={**TOLD, "bytes": {"max": 2_002_000_000}}),
         save(summary={**TOLD, "bytes": {"max": 2_003_000_000}}),
         "summary_mismatch"),
        (summarised(total_seconds={"min": 1, "mean": 1, "max": 1}),
         summarised(total_seconds={"min": 1, "mean": 1.0001, "max": 1}), "summary_order"),
        (save(ended_at="2026-11-29T16:39:01Z"), save(ended_at="2026-11-29T16:39:00Z"), "window_mismatch"),
    ],
)  # fmt: skip
def test_a_limit_has_two_sides(inside: Json, outside: Json, code: str) -> None:
    assert code_of(document(inside)) is None
    assert code_of(document(outside)) == code


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("total_seconds", 1_000_000, 1_000_000.1),
        ("bytes", 2**53 - 1, 2**53),
        ("files", 10**9, 10**9 + 1),
        ("rank", 9_999_999, 10_000_000),
    ],
)
def test_the_bounds_of_the_schema_are_inclusive(name: str, inside: float, outside: float) -> None:
    bare = {"op": "save", "ranks": [{"rank": 0, "total_seconds": 1_000_000, name: inside}]}
    assert code_of(document(bare, world_size=10**7, nodes=10**7, ranks_per_node=1)) is None
    bare["ranks"] = [{"rank": 0, "total_seconds": 1_000_000, name: outside}]
    assert refusal(document(bare)) == ("schema", f"{PLACE}/ranks/0/{name}")


def test_a_save_that_failed_is_kept_and_counts_in_no_rate() -> None:
    failed = save(status="failed", error="No space left on device")
    record = parse(document(save(), failed, save()))
    assert record.operations is not None
    assert record.summary is not None
    assert record.operations[1].error == "No space left on device"
    assert record.operations[1].write_gb_per_second is None
    assert record.summary[DcpOp.SAVE].count == 2
    assert ("incomplete_run", 1) in {(doubt.code.value, doubt.measurement) for doubt in record.doubts}


def test_what_failed_has_no_figure_that_only_a_whole_operation_has() -> None:
    failed = {"status": "failed", "error": "lost a node"}
    whole = {
        "write_gb_per_second", "restore_gb_per_second", "restore_effective_gb_per_second",
        "read_amplification", "durable_lag_seconds", "checkpoint_bytes",
    }  # fmt: skip
    for one in (save(**failed), async_save(**failed)):
        assert figures(without(one, "checkpoint_bytes"))[0].keys().isdisjoint(whole)
    assert figures(load(**failed))[0].keys() & whole == {"checkpoint_bytes"}


def test_the_rate_and_the_ranks_of_what_failed_are_not_judged() -> None:
    quick = save(status="failed", error="", ranks=[{"rank": 0, "total_seconds": 1e-6, "bytes": 10**9}])
    assert doubts(quick, save(), save(), save()) == {("incomplete_run", 0)}
    assert refusal(document({**quick, "status": "ok"}))[0] == "implausible_rate"


def test_an_operation_that_failed_at_once_is_no_fault_of_the_document() -> None:
    failed = {"op": "save", "status": "failed", "error": "", "bytes_total": 0, "ranks": [{"rank": 0}]}
    assert figures(failed)[0]["status"] == "failed"


# --- Figures ----------------------------------------------------------------------------------------------


def test_the_figures_of_an_async_save() -> None:
    made = figures(async_save())[0]
    assert made["blocked_seconds"] == 0.5
    assert made["drain_seconds"] == 4.0
    assert made["durable_lag_seconds"] == 4.5
    assert made["write_gb_per_second"] == 0.75
    assert made["io_seconds_max"] == 3.0
    assert (made["skew_max_over_mean"], made["slowest_rank"]) == (1.0, 0)


def test_the_drain_without_persist_seconds_is_the_longest_time_after_blocking() -> None:
    bare = changed(changed(async_save(), 0, persist_seconds=None, blocked_seconds=0.2), 1, total_seconds=4.75)
    assert figures(bare)[0]["drain_seconds"] == pytest.approx(4.8)
    stated = without(async_save(), "ranks")
    stated["summary"] = {"ranks_reporting": 2, "blocked_seconds": {"max": 0.5}, "total_seconds": {"max": 5}}
    assert figures(stated)[0]["drain_seconds"] == 4.5
    assert figures(stated)[0]["durable_lag_seconds"] == 4.5


def test_a_drain_too_short_to_be_a_time_gives_no_rate() -> None:
    stated = without(async_save(), "ranks")
    stated["summary"] = {"ranks_reporting": 2, "blocked_seconds": {"max": 5}, "total_seconds": {"max": 5}}
    record = parse(document(stated))
    assert record.operations is not None
    assert record.summary is not None
    assert record.operations[0].drain_seconds == 0
    assert record.operations[0].write_gb_per_second is None
    assert record.summary[DcpOp.ASYNC_SAVE].gb_per_second is None


def test_training_cannot_be_blocked_for_longer_than_the_save_took() -> None:
    late = without(async_save(), "ranks", "bytes_total")
    blocked, total = {"blocked_seconds": 1.0005}, {"total_seconds": 1.0}
    ranks = [{"rank": rank, **blocked, **total} for rank in (0, 1)]
    summary = {"ranks_reporting": 2, "blocked_seconds": {"max": 1.0005}, "total_seconds": {"max": 1.0}}
    for told in ({"ranks": ranks}, {"summary": summary}):
        made = figures({**late, **told})[0]
        assert (made["durable_lag_seconds"], made["drain_seconds"]) == (0, 0)


def test_there_is_no_skew_about_a_mean_of_zero() -> None:
    idle = [{"rank": rank, "io_seconds": 0, "total_seconds": 1, "bytes": 0} for rank in (0, 1)]
    made = figures({"op": "save", "ranks": idle}, world_size=3, ranks_per_node=3)[0]
    assert made["largest_rank_bytes"] == 0
    assert not made.keys() & {"skew_max_over_mean", "skew_basis", "slowest_rank", "bytes_skew_max_over_mean"}


def test_a_summary_names_the_slowest_rank_by_its_own_time_only() -> None:
    made = figures(load(summary=without(load()["summary"], "io_seconds")))[0]
    assert (made["skew_basis"], made.get("slowest_rank")) == ("total_seconds", None)


def test_a_time_that_one_rank_leaves_out_is_unknown() -> None:
    made = figures(changed(async_save(), 1, total_seconds=None, io_seconds=None))[0]
    assert made.keys().isdisjoint({"end_to_end_seconds", "durable_lag_seconds", "io_seconds_max"})
    assert (made["skew_basis"], made["slowest_rank"]) == ("persist_seconds", 0)


def test_the_largest_io_time_of_some_ranks_is_not_that_of_all() -> None:
    partial = save(ranks=save()["ranks"][:1])
    assert "io_seconds_max" not in figures(partial)[0]
    assert figures(partial)[0]["end_to_end_seconds"] == 1.9
    assert figures(save())[0]["io_seconds_max"] == 1.2


def test_a_save_blocks_for_its_total_unless_it_says_less() -> None:
    made = figures(changed(save(), 1, blocked_seconds=1.0))[0]
    assert (made["blocked_seconds"], made["blocked_mean_seconds"]) == (1.9, pytest.approx(1.45))


def test_the_lowest_rank_wins_a_tie() -> None:
    tied = changed(save(), 1, io_seconds=1.0)
    tied["ranks"].reverse()
    assert figures(tied)[0]["slowest_rank"] == 0


def test_the_figures_of_a_load() -> None:
    made = figures(load())[0]
    assert made["restore_gb_per_second"] == 2.0
    assert made["restore_effective_gb_per_second"] == 1.0
    assert made["read_amplification"] == 2.0
    assert (made["skew_basis"], made["slowest_rank"]) == ("io_seconds", 1)
    assert "write_gb_per_second" not in made


def test_the_bytes_of_a_save_are_the_size_of_its_checkpoint_unless_stated() -> None:
    bare = without(save(), "checkpoint_bytes", "bytes_total")
    assert figures(bare)[0]["checkpoint_bytes"] == 3_000_000_000
    assert "bytes_total" not in figures({**bare, "ranks": bare["ranks"][:1]})[0]


def started(second: int, **fields: object) -> Json:
    bare = without(async_save(started_at=f"2026-11-29T16:39:{second:02}Z", **fields), "ended_at")
    return changed(changed(bare, 0, wait_previous_seconds=0), 1, wait_previous_seconds=0)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (started(6), False),
        (started(5), False),
        (started(4), True),
        (changed(started(4), 1, wait_previous_seconds=0.25), False),
        (without(started(4), "started_at"), None),
    ],
)
def test_a_save_overlaps_one_that_it_did_not_wait_for(second: Json, *, expected: bool | None) -> None:
    made = figures(started(0), second)
    assert made[0]["overlaps_previous"] is False
    assert made[1].get("overlaps_previous") is expected


def test_a_wait_that_only_a_summary_tells_is_a_wait() -> None:
    waited = without(started(4), "ranks")
    waited["summary"] = {
        "ranks_reporting": 2, "blocked_seconds": {"max": 1}, "wait_previous_seconds": {"max": 1},
    }  # fmt: skip
    assert figures(started(0), waited)[1]["overlaps_previous"] is False
    del waited["summary"]["wait_previous_seconds"]
    assert figures(started(0), waited)[1]["overlaps_previous"] is True


def test_the_first_async_save_overlaps_none_whenever_it_began() -> None:
    assert figures(without(started(0), "started_at"))[0]["overlaps_previous"] is False


def test_a_save_may_outlast_the_last_year_that_can_be_written() -> None:
    last = {**started(0), "started_at": "9999-12-31T23:59:59Z"}
    assert [one["overlaps_previous"] for one in figures(last, last)] == [False, True]


def test_a_save_overlaps_a_long_one_behind_a_short_one() -> None:
    short = changed(changed(started(1), 0, total_seconds=4.0), 1, total_seconds=4.0)
    assert figures(changed(started(0), 1, total_seconds=30.0), short, started(20))[2]["overlaps_previous"]


def test_the_rate_of_the_run_is_a_sum_over_a_sum_and_leaves_warm_up_out() -> None:
    slow = without(save(ranks=[{**rank, "total_seconds": 8.0} for rank in save()["ranks"]]), "ended_at")
    summary = parse(document(save(), slow, {**slow, "warmup": True})).summary
    assert summary is not None
    line = summary[DcpOp.SAVE]
    assert (line.count, line.blocked_seconds_max, line.blocked_seconds_mean) == (2, 8.0, 5.0)
    assert line.gb_per_second == pytest.approx(0.6)


def test_one_operation_without_bytes_leaves_the_rate_of_the_run_unknown() -> None:
    bare = {"op": "save", "ranks": [{"rank": 0, "total_seconds": 1}]}
    summary = parse(document(save(), bare)).summary
    assert summary is not None
    assert summary[DcpOp.SAVE].gb_per_second is None


# --- Doubts -----------------------------------------------------------------------------------------------


def test_three_good_saves_of_all_ranks_leave_nothing_to_doubt() -> None:
    assert doubts(save(), save(), save(warmup=False)) == set()


def test_fewer_than_three_that_count_are_few() -> None:
    assert doubts(save(warmup=True), save(), save()) == {("few_repetitions", 1)}


@pytest.mark.parametrize(("cached", "nodes", "doubted"), [
    ("warm", 2, True), ("cold", 1, False), ("unknown", 1, True), ("unknown", 2, False), (None, 1, True),
    (None, 2, False),
])  # fmt: skip
def test_a_load_that_may_come_from_memory_is_doubted(
    cached: str | None, nodes: int, *, doubted: bool
) -> None:
    one = load(settings={} if cached is None else {"page_cache": cached})
    made = doubts(one, load(), load(), nodes=nodes, ranks_per_node=2 // nodes)
    assert (("cached_read", 0) in made) is doubted
    assert (("cache_unknown", 0) in made) is (cached not in ("cold", "warm") and not doubted)


@pytest.mark.parametrize(("checkpointer", "synced", "code"), [
    ("torch.distributed.checkpoint", None, None),
    ("torch.distributed.checkpoint", False, "no_fsync"),
    ("megatron-core", None, "fsync_unknown"),
    ("megatron-core", True, None),
    ("a{0}b", None, "fsync_unknown"),
])  # fmt: skip
def test_a_write_without_fsync_is_doubted(
    checkpointer: str, *, synced: bool | None, code: str | None
) -> None:
    one = save(settings={} if synced is None else {"sync_files": synced})
    sure = save(settings={"sync_files": True})
    software = {"checkpointer": checkpointer, "checkpointer_version": "1"}
    expected = set() if code is None else {(code, 1)}
    assert doubts(sure, one, sure, load(), load(), load(), software=software) == expected


def test_a_doubt_about_every_operation_is_told_once() -> None:
    assert doubts(*[save(settings={"sync_files": False})] * 3) == {("no_fsync", None)}
    assert ("partial_ranks", None) in doubts(*[save(ranks=save()["ranks"][:1])] * 3)


def test_loads_of_unknown_bytes_are_compared_by_the_size_of_the_checkpoint() -> None:
    def of(seconds: float) -> Json:
        return without(load(summary={"ranks_reporting": 2, "total_seconds": {"max": seconds}}), "bytes_total")

    assert ("wide_spread", 1) in doubts(of(2.0), of(3.0), of(2.0))
    assert ("wide_spread", 1) not in doubts(of(2.0), of(2.1), of(2.0))


def test_a_quarter_of_the_mean_is_wide() -> None:
    def of(seconds: float) -> Json:
        return without(save(ranks=[{**r, "total_seconds": seconds} for r in save()["ranks"]]), "ended_at")

    assert ("wide_spread", 2) not in doubts(of(2.0), of(2.0), of(2.5))
    assert ("wide_spread", 2) in doubts(of(2.0), of(2.0), of(2.7))


@pytest.mark.parametrize(("slow", "doubted"), [(3.0, False), (3.1, True)])
def test_a_rank_that_takes_half_as_long_again_is_a_straggler(slow: float, *, doubted: bool) -> None:
    one = without(changed(save(), 1, io_seconds=slow, total_seconds=4.0), "ended_at")
    assert (("straggler", 0) in doubts(one, one, one)) is doubted


def test_nodes_of_unlike_size_are_doubted() -> None:
    bare = without(document(save(), save(), save()), "ranks_per_node")
    bare = {**bare, "world_size": 2, "nodes": 2}
    codes = {(doubt.code, doubt.measurement) for doubt in parse(bare).doubts}
    assert codes == {(DoubtCode.UNEVEN_NODES, 0)}  # both ranks say node 0
    three = {"op": "save", "summary": {"ranks_reporting": 3, "total_seconds": {"max": 1}}}
    odd = parse({**bare, "world_size": 3, "operations": [three] * 3}).doubts
    assert [(doubt.code, doubt.measurement) for doubt in odd] == [(DoubtCode.UNEVEN_NODES, None)]


# --- Agreement with the schema ----------------------------------------------------------------------------

RESHARDED = load(op="resharded_load", saved_world_size=8)
FAILED = {"op": "async_save", "status": "failed", "error": "lost a node", "summary": {"ranks_reporting": 1}}
WHOLE = [document(save()), document(async_save()), document(load()), document(RESHARDED), document(FAILED)]
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 1.0, 1.5, -0.5, 1e6, 1_000_001, 2**53 - 1, 2**53, 1e300, 10_000_001,
    10**9 + 1,
    "", "ok", "failed", "x" * 65, "x" * 2049, "save", "load", "async_save", "resharded_load", "warm",
    "thread", "2026-11-29T16:39:00Z", "2026-11-29T16:39:00.1234567891Z", "2026-11-29", "2.0",
    [], {}, [1], ["x"], [{}], {"max": 1}, {"max": 1, "min": 0}, {"rank": 0}, [{"rank": 0}],
    [{"rank": 0, "total_seconds": 1}], [{"rank": 0, "blocked_seconds": 1}],
    {"ranks_reporting": 1}, {"ranks_reporting": 1, "total_seconds": {"max": 1}},
]  # fmt: skip
KEYS = sorted({"total_ms", "extra", "warmup", "label", "error", "summary", "ranks", "settings",
               "saved_world_size", "staging_seconds", "persist_seconds", "wait_previous_seconds",
               "async_staging", "node", "plan_seconds", "slowest_rank", "bytes", "status", "op"})  # fmt: skip


def containers(value: Any) -> list[Any]:  # noqa: ANN401 - whatever JSON holds
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [value] if isinstance(value, dict | list) and value else []
    return found + [place for item in inner for place in containers(item)]


def mutate(value: Json, pick: random.Random) -> Json:
    """Return the document with one thing replaced, removed, added or doubled."""
    made = copy.deepcopy(value)
    place = pick.choice(containers(made))
    key = pick.choice(list(place)) if isinstance(place, dict) else pick.randrange(len(place))
    actions: list[Callable[[], Any]] = [
        lambda: place.__setitem__(key, copy.deepcopy(pick.choice(ODD_VALUES))),
        lambda: place.__delitem__(key),
        lambda: (
            place.__setitem__(pick.choice(KEYS), copy.deepcopy(pick.choice(ODD_VALUES)))
            if isinstance(place, dict)
            else place.append(copy.deepcopy(pick.choice(ODD_VALUES)))
        ),
    ]
    pick.choice(actions)()
    return made


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_the_schema_agrees_on_the_fixtures(name: str) -> None:
    text = (DATA / name).read_text()
    if name == "bad/nan-time.json":  # which no validator of a schema sees
        assert refusal(text)[0] == "non_finite_number"
        return
    value = json.loads(text)
    assert SCHEMA.is_valid(value) is (code_of(value) != "schema")


@pytest.mark.parametrize("seed", range(5))
def test_the_schema_agrees_on_mutated_documents(seed: int) -> None:
    pick = random.Random(seed)  # noqa: S311 - nothing secret
    valid = 0
    for _ in range(600):
        value = pick.choice(WHOLE)
        for _ in range(pick.choice([1, 1, 2])):
            value = mutate(value, pick)
        agreed = SCHEMA.is_valid(value)
        assert agreed is (code_of(value) != "schema"), json.dumps(value)
        valid += agreed
    assert 60 < valid < 540  # both kinds were met


DAMAGE = ["", "", "9", "-", "0", ".", "e9", "{", "]", '"', "\\", ",", "null", "NaN", "\x00", "é"]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_text_is_refused_or_read_and_never_crashes(seed: int) -> None:
    pick = random.Random(seed)  # noqa: S311 - nothing secret
    texts = [(DATA / name).read_text() for name in sorted(ENTRIES)]
    outcomes = []
    for _ in range(250):
        text = pick.choice(texts)
        for _ in range(pick.choice([1, 1, 3])):
            at, length = pick.randrange(len(text)), pick.choice([0, 1, 1, 8, 200])
            text = text[:at] + pick.choice(DAMAGE) + text[at + length :]
        outcomes.append(outcome(text))
    assert all(isinstance(one, Record | UnreadableDocument) for one in outcomes)
    refused = [one for one in outcomes if isinstance(one, UnreadableDocument)]
    assert len(refused) > 100
    assert all(one.detail and (one.line or one.pointer) for one in refused)


def outcome(text: str) -> Record | UnreadableDocument:
    try:
        return dcp_timing.parse(Document(text))
    except UnreadableDocument as error:
        return error


# --- Properties -------------------------------------------------------------------------------------------

TIMES = st.integers(min_value=200_000, max_value=9_000_000).map(lambda microseconds: microseconds / 1e6)
RANKS = st.lists(st.tuples(TIMES, TIMES, st.integers(0, 10**9)), min_size=2, max_size=9).filter(
    lambda ranks: sum(moved for _, _, moved in ranks) > 0
)
OPS = st.sampled_from(["save", "load", "async_save"])


def made_of(op: str, ranks: list[tuple[float, float, int]]) -> Json:
    """An operation of ranks whose shorter time is their own I/O (async: their blocking)."""
    part = "blocked_seconds" if op == "async_save" else "io_seconds"
    return {
        "op": op,
        "bytes_total": sum(moved for _, _, moved in ranks),
        "ranks": [
            {"rank": rank, "total_seconds": max(one, other), part: min(one, other), "bytes": moved}
            for rank, (one, other, moved) in enumerate(ranks)
        ],
    }


def summary_of(operation: Json) -> Json:
    records = operation["ranks"]
    summary: dict[str, Any] = {"ranks_reporting": len(records)}
    for name in ("total_seconds", "blocked_seconds", "io_seconds", "bytes"):
        values = [record[name] for record in records if name in record]
        if values:
            mean = min(max(math.fsum(values) / len(values), min(values)), max(values))
            summary[name] = {"min": min(values), "mean": mean, "max": max(values)}
    if "io_seconds" in records[0]:
        slowest = max(records, key=lambda record: (record["io_seconds"], -record["rank"]))
        summary["slowest_rank"] = slowest["rank"]
    return {**without(operation, "ranks"), "summary": summary}


@repeatable
@given(OPS, RANKS)
def test_a_summary_gives_the_figures_of_its_ranks(op: str, ranks: list[tuple[float, float, int]]) -> None:
    operation, size = made_of(op, ranks), len(ranks)
    (from_ranks,) = figures(operation, world_size=size, ranks_per_node=size)
    (from_summary,) = figures(summary_of(operation), world_size=size, ranks_per_node=size)
    of_each_rank = {"bytes_skew_max_over_mean"}
    if op == "async_save":  # differences by rank, which a summary cannot know; and nobody names the slowest
        of_each_rank |= {"drain_seconds", "durable_lag_seconds", "write_gb_per_second", "slowest_rank"}
    kept = {key: value for key, value in from_ranks.items() if key not in of_each_rank}
    assert kept.keys() <= from_summary.keys()
    assert all(same(value, from_summary[key]) for key, value in kept.items())


@repeatable
@given(OPS, RANKS)
def test_ranks_and_their_own_summary_never_disagree(op: str, ranks: list[tuple[float, float, int]]) -> None:
    operation, size = made_of(op, ranks), len(ranks)
    both = {**operation, "summary": summary_of(operation)["summary"]}
    assert figures(both, world_size=size, ranks_per_node=size) == figures(
        operation, world_size=size, ranks_per_node=size
    )


@repeatable
@given(OPS, RANKS)
def test_one_more_rank_never_lowers_the_largest(op: str, ranks: list[tuple[float, float, int]]) -> None:
    operation, size = made_of(op, ranks), len(ranks)
    fewer = {**operation, "ranks": operation["ranks"][:-1]}
    (more,) = figures(operation, world_size=size, ranks_per_node=size)
    (less,) = figures(fewer, world_size=size, ranks_per_node=size)
    assert less["partial_ranks"]
    for name in ("blocked_seconds", "end_to_end_seconds", "largest_rank_bytes"):
        assert more[name] >= less[name]


@repeatable
@given(OPS, RANKS, st.randoms(use_true_random=False))
def test_the_order_of_the_ranks_does_not_matter(
    op: str, ranks: list[tuple[float, float, int]], pick: random.Random
) -> None:
    operation, size = made_of(op, ranks), len(ranks)
    shuffled = copy.deepcopy(operation)
    pick.shuffle(shuffled["ranks"])
    assert figures(shuffled, world_size=size, ranks_per_node=size) == figures(
        operation, world_size=size, ranks_per_node=size
    )


@repeatable
@given(OPS, st.lists(RANKS, min_size=1, max_size=4))
def test_the_rate_of_the_run_lies_between_those_of_its_operations(
    op: str, runs: list[list[tuple[float, float, int]]]
) -> None:
    size = max(map(len, runs))
    record = parse(document(*(made_of(op, run) for run in runs), world_size=size, ranks_per_node=size))
    assert record.operations is not None
    assert record.summary is not None
    rates = [one.write_gb_per_second or one.restore_gb_per_second for one in record.operations]
    known = [rate for rate in rates if rate is not None]
    rate = record.summary[DcpOp(op)].gb_per_second
    assert (rate is None) == (len(known) < len(rates))
    if rate is not None:
        assert min(known) * (1 - 1e-9) <= rate <= max(known) * (1 + 1e-9)
