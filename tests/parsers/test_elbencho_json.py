"""elbencho's JSON lines: labelled files, phases with known figures, runs, each refusal, damage."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import FORMATS, parse, read
from tests.parsers.elbencho_files import COMMAND, MIB, as_csv, as_json, phase
from tests.parsers.manifest import FACTUAL, Entry, codes, content, entries, outcome, refused

FILES = "elbencho-3.1-4files-write-read.json"
DIRS = "elbencho-3.1-dirs-fpp-write-read-delete.json"
MANY = "elbencho-3.1-manyfiles-create.json"


def measurements(made: Record) -> list[Measurement]:
    assert made.measurements is not None
    return made.measurements


def of(made: Record, operation: Operation) -> Measurement:
    (found,) = (each for each in measurements(made) if each.operation is operation)
    return found


def messages(made: Record, code: DoubtCode) -> list[str]:
    return [each.message for each in made.doubts if each.code is code]


# The labelled files


@pytest.mark.parametrize("entry", entries("elbencho-jsonl"))
def test_a_labelled_file_gives_the_figures_of_its_manifest(entry: Entry) -> None:
    data = content(entry["file"])
    assert next(each.name for each in FORMATS if each.recognises(read(data))) == "elbencho-json"
    made = parse(data)
    assert (made.tool, made.tool_version, made.format) == ("elbencho", entry["tool_version"], "elbencho-json")
    assert not FACTUAL & codes(made)
    phases = {each["phase"]: each for each in entry["expected"]["phases"]}
    for name, operation in (("WRITE", Operation.WRITE), ("READ", Operation.READ)):
        found = [each for each in measurements(made) if each.operation is operation]
        assert len(found) == (name in phases)
        for each in found:
            (repetition,) = each.repetitions
            assert repetition.gb_per_second == phases[name]["last_bytes_per_s"] / 1e9
            assert repetition.bytes == phases[name]["last_bytes"]
            assert repetition.total_seconds == phases[name]["last_elapsed_time_ms"] / 1000
            assert (each.ranks, each.nodes, each.ranks_per_node) == (4, 1, 4)


def test_the_create_rate_is_taken_of_small_files_only() -> None:
    found = of(parse(content(MANY)), Operation.FILE_CREATE)
    assert found.per_second is not None
    assert found.per_second.mean == 5447
    assert found.gb_per_second is None
    assert (found.block_bytes, found.segments) == (4096, 400)
    assert not [
        each for each in measurements(parse(content(DIRS))) if each.operation is Operation.FILE_CREATE
    ]


@pytest.mark.parametrize("entry", entries("elbencho-text"))
def test_the_table_is_refused_and_the_jsonfile_asked_for(entry: Entry) -> None:
    assert "--jsonfile" in refused(content(entry["file"])).detail


def test_the_set_up_is_read() -> None:
    found = of(parse(content(DIRS)), Operation.WRITE)
    assert (found.block_bytes, found.segments, found.transfer_bytes) == (32 * MIB, 2, MIB)
    assert found.file_per_process is True
    found = of(parse(content(FILES)), Operation.WRITE)
    assert (found.block_bytes, found.segments) == (128 * MIB, 1)
    assert parse(content(FILES)).ran_at == datetime(2026, 11, 29, 16, 45, 9, 351000, tzinfo=UTC)


# Sync and cache


def test_no_write_of_elbencho_is_taken_as_durable() -> None:
    made = parse(as_json(phase(), phase("READ")))
    assert of(made, Operation.WRITE).fsync is False
    (message,) = messages(made, DoubtCode.NO_FSYNC)
    assert "without --sync" in message


def test_a_sync_that_followed_stands_in_the_doubt() -> None:
    made = parse(as_json(phase("SYNC", mib=0), phase(), phase("SYNC", mib=0, microseconds=500_000)))
    (message,) = messages(made, DoubtCode.NO_FSYNC)
    assert "0.500 s followed" in message
    assert "about 0.358 GB/s" in message  # 512 MiB in 1.5 s
    assert of(made, Operation.WRITE).repetitions[0].total_seconds == 1.0


def test_the_sync_of_another_run_is_not_this_ones() -> None:
    made = parse(as_json(phase(), phase("SYNC", mib=0, command='"elbencho" "--sync" ')))
    assert "without --sync" in messages(made, DoubtCode.NO_FSYNC)[0]


def test_a_read_of_one_host_is_cached_unless_the_file_shows_otherwise() -> None:
    sync, drop, ours = phase("SYNC", mib=0), phase("DROPCACHE", mib=0), phase("READ")
    for phases, cached in (
        ([phase(), ours], True),
        ([phase(), sync, ours], True),
        ([phase(), drop, ours], True),  # what was not synced cannot be dropped
        ([phase(), sync, drop, ours], False),
        ([phase(), phase("READ", direct_io="true")], False),
    ):
        assert (DoubtCode.CACHED_READ in codes(parse(as_json(*phases)))) is cached


def test_a_read_of_rotated_hosts_is_not_cached() -> None:
    for words, cached in (('"--rotatehosts" "1"', False), ("", True), ('"--rotatehosts" "2"', True)):
        command = f'"elbencho" "-r" "--hosts" "n1 n2" {words} '
        made = parse(as_json(phase("READ", command=command, hosts="2")))
        assert of(made, Operation.READ).nodes == 2
        assert (DoubtCode.CACHED_READ in codes(made)) is cached


def test_an_object_store_says_nothing_of_sync() -> None:
    made = parse(as_json(phase(path_type="bucket", command='"elbencho" "-w" ')))
    assert of(made, Operation.WRITE).fsync is None
    assert DoubtCode.FSYNC_UNKNOWN in codes(made)


# Hosts, runs, repetitions


def test_threads_count_by_host_and_services_of_one_host_are_one_node() -> None:
    command = '"elbencho" "-w" "-t" "4" "--hosts" "n1:1611 n1:1612 n2:1611 n2:1612" '
    found = of(parse(as_json(phase(command=command, hosts="4"))), Operation.WRITE)
    assert (found.ranks, found.nodes, found.ranks_per_node) == (16, 2, 8)
    command = '"elbencho" "-w" "-t" "4" "--hosts" "n[1-4]" '
    assert of(parse(as_json(phase(command=command, hosts="4"))), Operation.WRITE).nodes == 4


def test_iterations_are_repetitions() -> None:
    command = COMMAND.replace('"-t"', '"-i" "2" "-t"')
    written = [phase(command=command), phase("READ", command=command)]
    slower = [phase(command=command, microseconds=2_000_000), phase("READ", command=command)]
    made = parse(as_json(*written, *slower))
    found = of(made, Operation.WRITE)
    assert found.repetitions_requested == 2
    assert [each.total_seconds for each in found.repetitions] == [1.0, 2.0]
    assert found.gb_per_second is not None
    assert found.gb_per_second.min == pytest.approx(512 * MIB / 2 / 1e9)
    assert DoubtCode.SEVERAL_RUNS not in codes(made)
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(as_json(*written, slower[0])))


def test_the_same_command_again_is_another_run() -> None:
    made = parse(as_json(phase(), phase("READ"), phase(), phase("READ")))
    assert [each.run for each in measurements(made)] == [0, 0, 1, 1]
    assert DoubtCode.SEVERAL_RUNS in codes(made)


def test_a_phase_that_was_asked_for_and_is_missing_voids_the_run() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(as_json(phase())))
    made = parse(as_json(phase(command='"elbencho" "-w" "-t" "4" ')))
    assert DoubtCode.INCOMPLETE_RUN not in codes(made)


def test_a_run_ended_by_time_says_so() -> None:
    command = COMMAND.replace('"-t"', '"--timelimit" "1" "-t"')
    made = parse(as_json(phase(command=command, mib=300)))
    assert {DoubtCode.STONEWALLED, DoubtCode.REPS_SKIPPED} <= codes(made)
    assert DoubtCode.INCOMPLETE_RUN not in codes(made)
    assert of(made, Operation.WRITE).block_bytes is None


def test_fewer_bytes_without_a_time_limit_void_the_run() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(as_json(phase(mib=300), phase("READ"))))
    command = COMMAND.replace('"-t"', '"--randamount" "300m" "-t"')
    made = parse(as_json(phase(mib=300, command=command), phase("READ", command=command)))
    assert not FACTUAL & codes(made)


def test_phases_that_are_not_read_reject_nothing() -> None:
    others = [
        phase(name, mib=0, last={"elapsed_time_ms": "x"}) for name in ("MKDIRS", "STAT", "RMFILES", "NEW")
    ]
    assert len(measurements(parse(as_json(*others, phase(), phase("READ"))))) == 2


@pytest.mark.parametrize("name", ["RWMIX70", "MIX-T4", "WRITE+r", "STAT", "NETBENCH"])
def test_a_file_of_other_phases_alone_is_refused(name: str) -> None:
    assert refused(as_json(phase(name))).code == "no_results"


def test_a_write_of_empty_files_is_a_create_rate_alone() -> None:
    empty = phase(
        mib=0, path_type="dir", paths="1", dirs="1", files="250", file_size="0",
        command='"elbencho" "-w" "-t" "4" ', last={"entries": "1000", "entries/s": "999"},
    )  # fmt: skip
    made = parse(as_json(empty))
    assert [each.operation for each in measurements(made)] == [Operation.FILE_CREATE]
    assert parse(as_csv(empty)).measurements == made.measurements


def test_a_time_of_zero_is_absent() -> None:
    quick = phase("READ", microseconds=900, command='"elbencho" "-r" ', first={"elapsed_time_ms": "0"})
    found = of(parse(as_json(quick)), Operation.READ)
    assert found.total_seconds is None
    assert found.repetitions[0].total_seconds is None
    assert found.repetitions[0].gb_per_second == pytest.approx(512 * MIB / 9e-4 / 1e9)


# Refusals


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ({"bytes/s": "1"}, "inconsistent_row"),
        ({"bytes/s": "0"}, "inconsistent_row"),
        ({"bytes": "1"}, "inconsistent_row"),
        ({"bytes": "0"}, "bad_number"),
        ({"elapsed_time_ms": "500"}, "inconsistent_row"),
        ({"elapsed_time_ms": "0"}, "inconsistent_row"),
        ({"elapsed_time_ms": "-1000"}, "bad_number"),
        ({"elapsed_time_ms": "1e3"}, "bad_number"),
        ({"elapsed_time_ms": "1000.5"}, "bad_number"),
        ({"elapsed_time_ms": "٣٣"}, "bad_number"),
        ({"elapsed_time_ms": ""}, "bad_number"),
        ({"elapsed_time_ms": None}, "missing_key"),
        ({"bytes": None}, "missing_key"),
        ({"bytes/s": None}, "missing_key"),
        ({"bytes/s": "9" * 30}, "bad_number"),
        ({"iops": "10"}, "inconsistent_row"),
        ({"entries": "100", "entries/s": "3"}, "inconsistent_row"),
    ],
)
def test_figures_that_cannot_be_are_refused_with_their_line(last: dict[str, str | None], code: str) -> None:
    error = refused(as_json(phase("SYNC", mib=0), phase(last=last)))
    assert (error.code, error.line) == (code, 2)


@pytest.mark.parametrize("value", [True, 1.5, [], {}])
def test_a_value_of_another_kind_is_refused(value: object) -> None:
    changed: dict[str, Any] = phase()
    changed["last_done"]["bytes"] = value
    assert refused(as_json(changed)).code == "bad_number"


def test_numbers_without_quotes_are_read() -> None:
    changed: dict[str, Any] = phase()
    changed["last_done"] = {key: int(value) for key, value in changed["last_done"].items()}
    assert parse(as_json(changed)).measurements == parse(as_json(phase())).measurements


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"threads": "8"}, "inconsistent_row"),
        ({"hosts": "2"}, "inconsistent_row"),
        ({"hosts": "0"}, "bad_number"),
        ({"block_size": "0"}, "bad_number"),
        ({"block_size": "4096"}, "inconsistent_row"),
        ({"direct_io": "yes"}, "bad_value"),
    ],
)
def test_a_set_up_that_cannot_be_is_refused(config: dict[str, str | None], code: str) -> None:
    assert refused(as_json(phase(**config))).code == code  # type: ignore[arg-type]


def test_the_first_worker_is_not_done_after_the_last() -> None:
    for first in ({"elapsed_time_ms": "1001"}, {"elapsed_time_ms": "1", "bytes": str(513 * MIB)}):
        assert refused(as_json(phase(first=first))).code == "inconsistent_row"


def test_only_the_last_done_counts() -> None:
    changed: dict[str, Any] = phase()
    del changed["last_done"]
    assert refused(as_json(changed)).code == "missing_key"


def test_repetitions_of_unlike_set_up_are_refused() -> None:
    command = COMMAND.replace('"-t"', '"-i" "2" "-t"')
    error = refused(as_json(phase(command=command), phase(command=command, block_size="2097152")))
    assert error.code in ("contradictory_setup", "inconsistent_row")
    assert error.line == 2


# Damage


def test_a_cut_last_line_is_told() -> None:
    data = as_json(phase(), phase("READ"))
    made = parse(data[:-40])
    assert [each.operation for each in measurements(made)] == [Operation.WRITE]
    assert DoubtCode.INCOMPLETE_RUN in codes(made)
    assert refused(as_json(phase())[:-40]).line == 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"bytes":', '"bytes":"1","bytes":', "duplicate_key"),
        ('"iops":"511"', '"iops":NaN', "non_finite_number"),
        ('"iops":"511"', '"iops":"nan"', "bad_number"),
        ('"config":{', '"config":{,', "not_json"),
        ('{"phase_type"', '"phase_type"', "not_json"),
    ],
)
def test_a_damaged_line_is_refused_with_its_number(old: str, new: str, code: str) -> None:
    data = as_json(phase("READ"), phase(), phase("RMFILES", mib=0)).decode()
    at = data.index(old, data.index("\n"))
    error = refused((data[:at] + data[at:].replace(old, new, 1)).encode())
    assert (error.code, error.line) == (code, 2)


def test_lines_of_a_log_are_told() -> None:
    data = b"elbencho starts\n" + as_json(phase()) + b"\n" + as_json(phase("READ")) + b"done\n"
    made = parse(data)
    assert len(measurements(made)) == 2
    (message,) = messages(made, DoubtCode.MIXED_LOG_LINES)
    assert "line 1" in message


def test_keys_in_another_order_are_read() -> None:
    lines = [json.dumps(each, sort_keys=True) for each in (phase(), phase("READ"))]
    assert (
        parse("\n".join(lines).encode()).measurements == parse(as_json(phase(), phase("READ"))).measurements
    )


def test_objects_over_several_lines_are_refused_and_one_a_line_asked_for() -> None:
    error = refused(json.dumps(phase(), indent=2).encode())
    assert (error.code, error.line) == ("not_json", 1)
    assert "one object a line" in error.detail


def test_a_prefix_before_every_line_is_taken_off() -> None:
    lines = as_json(phase(), phase("READ")).split(b"\n")
    made = parse(b"\n".join(b"[1,0]<stdout>:" + line for line in lines[:-1]))
    assert made.measurements == parse(b"\n".join(lines)).measurements


def test_no_single_changed_figure_gives_another_result() -> None:
    right = [each.repetitions for each in measurements(parse(content(FILES)))]
    lines = content(FILES).decode().splitlines()
    for at in (1, 3):
        value = json.loads(lines[at])
        for key, old in value["last_done"].items():
            for new in (int(old) * 2, int(old) // 2, int(old) * 1024, int(old + "0"), int(old[1:] or "0")):
                changed = {**value, "last_done": {**value["last_done"], key: str(new)}}
                made = outcome("\n".join([*lines[:at], json.dumps(changed), *lines[at + 1 :]]).encode())
                if isinstance(made, Record):
                    assert [each.repetitions for each in measurements(made)] == right, (at, key, new)


@pytest.mark.parametrize("entry", entries("elbencho-jsonl"))
def test_changed_bytes_are_seen_or_change_nothing_that_counts(entry: Entry) -> None:
    data = content(entry["file"])
    right = {each.repetitions[0].gb_per_second for each in measurements(parse(data))}
    rng = random.Random(entry["file"])  # noqa: S311 - the same mutations each time
    for _ in range(400):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.choice(b'09.-e",{}[]:\n x')
        made = outcome(bytes(changed))
        if isinstance(made, UnreadableDocument):
            assert made.detail
            continue
        for each in measurements(made):
            rate = each.repetitions[0].gb_per_second
            assert any((rate is None) is (other is None) and (rate is None or abs(rate - (other or 0)) <= 2e-3 * rate)
                       for other in right)  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        lambda count: as_json(*[phase(), phase("READ")] * 10 * count),
        lambda count: as_json(phase()) + b"text\n" * 200 * count,
        lambda count: as_json(phase(), *[phase("SYNC", mib=0)] * 20 * count, phase("READ")),
    ],
    ids=["runs", "text", "syncs"],
)
def test_cost_grows_as_the_size_does(made: Callable[[int], bytes]) -> None:
    from tests.parsers.test_init import _calls

    assert _calls(made(40)) < 8.5 * _calls(made(5))


@pytest.mark.parametrize("unit", ['"', '\\"', "{", '{"phase_type":', '{"phase_type":"x"}\n', "[1] ", '"a" '])
def test_endless_text_is_refused_soon(unit: str) -> None:
    for before in (b"", as_json(phase()), b'{"phase_type":"'):
        outcome(before + (unit * 100_000).encode())
