"""fio's JSON: labelled files, hand-made jobs with known figures, each refusal, documents among text, damage."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import FORMATS, parse, read
from tests.parsers.manifest import FACTUAL, Entry, codes, content, entries, outcome, refused

Json = dict[str, Any]

GROUP = "fio-3.33-seqwrite-4jobs-group.json"
PER_JOB = "fio-3.33-seqwrite-4jobs-perjob.json"
SECTIONS = "fio-3.33-rw-mixed-2jobsections.json"
MIB = 1 << 20


def side(mib: int = 0, milliseconds: int = 0, call: int = MIB) -> Json:
    """One direction of a job, its figures in agreement as fio computes them."""
    moved, ios = mib * MIB, mib * MIB // call
    rate = 1000 * moved // milliseconds if milliseconds else 0
    return {
        "io_bytes": moved,
        "io_kbytes": moved >> 10,
        "bw_bytes": rate,
        "bw": rate >> 10,
        "iops": round(1000 * ios / milliseconds, 6) if milliseconds else 0.0,
        "runtime": milliseconds,
        "total_ios": ios,
    }


def job(
    name: str = "save",
    *,
    write: Json | None = None,
    read: Json | None = None,
    given: Json | None = None,
    **fields: Any,  # noqa: ANN401 - whatever JSON holds
) -> Json:
    """One entry: by default 512 MiB in 2 s."""
    if write is None and read is None:
        write = side(512, 2000)
    return {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "eta": 0,
        "elapsed": 100,
        "job options": given
        or {
            "name": name,
            "rw": "write" if write else "read",
            "size": "512m",
            "bs": "1m",
            "end_fsync": "1",
        },
        "read": read or side(),
        "write": write or side(),
        "trim": side(),
        **fields,
    }


def options(**changes: str | None) -> Json:
    made: dict[str, str | None] = {
        "name": "save",
        "rw": "write",
        "size": "512m",
        "bs": "1m",
        "end_fsync": "1",
    }
    made |= changes
    return {key: value for key, value in made.items() if value is not None}


def document(*jobs: Json, **fields: object) -> Json:
    return {
        "fio version": "fio-3.36",
        "timestamp": 1_800_000_100,
        "timestamp_ms": 1_800_000_100_000,
        "time": "x",
        "jobs": list(jobs),
        **fields,
    }


def written(*documents: Json) -> bytes:
    """Print documents as fio does."""
    return "\n".join(json.dumps(each, indent=2, separators=(",", " : ")) for each in documents).encode()


def record(*jobs: Json, **fields: object) -> Record:
    return parse(written(document(*jobs, **fields)))


def measurements(made: Record) -> list[Measurement]:
    assert made.measurements is not None
    return made.measurements


def only(made: Record) -> Measurement:
    (found,) = measurements(made)
    return found


# The labelled files


@pytest.mark.parametrize("entry", entries("fio-json"))
def test_a_labelled_file_gives_the_figures_of_its_manifest(entry: Entry) -> None:
    expected = entry["expected"]
    data = content(entry["file"])
    assert next(each.name for each in FORMATS if each.recognises(read(data))) == "fio-json"
    made = parse(data)
    assert (made.tool, made.tool_version, made.format) == ("fio", entry["tool_version"], "fio-json")
    assert {DoubtCode(code) for code in expected.get("must_warn", [])} <= codes(made)
    if expected["outcome"] == ["accept"]:
        assert not FACTUAL & codes(made)
    jobs = expected["jobs"]
    for operation in ("write", "read"):
        of_operation = [each for each in measurements(made) if each.operation == operation]
        assert bool(of_operation) is any(operation in each for each in jobs)
        if not of_operation:
            continue
        (found,) = of_operation
        (repetition,) = found.repetitions
        assert repetition.bytes == expected[f"{operation}_total_bytes"]
        assert repetition.total_seconds == expected[f"{operation}_longest_runtime_ms"] / 1000
        assert repetition.gb_per_second is not None
        assert repetition.gb_per_second * 1e9 == pytest.approx(
            expected[f"{operation}_aggregate_bytes_per_s"], abs=1
        )
        assert found.nodes is None  # the file does not say
        if operation == "write":
            assert found.fsync is ("--end_fsync=1" in entry["command"])
    assert DoubtCode.UNKNOWN_TOPOLOGY in codes(made)


def test_the_number_of_jobs_is_the_number_of_ranks_with_and_without_group_reporting() -> None:
    for name in (GROUP, PER_JOB):
        found = only(parse(content(name)))
        assert (found.ranks, found.block_bytes, found.transfer_bytes) == (4, 64 * MIB, MIB)
        assert (found.segments, found.api, found.file_per_process) == (1, "psync", True)


def test_without_group_reporting_the_slowest_job_is_known() -> None:
    (repetition,) = only(parse(content(PER_JOB))).repetitions
    assert (repetition.slowest_rank, repetition.slowest_rank_seconds) == (0, 0.101)
    assert repetition.mean_rank_seconds == pytest.approx((0.101 + 0.094 + 0.089 + 0.041) / 4)


@pytest.mark.parametrize("entry", entries("fio-normal"))
def test_the_human_text_is_refused_and_json_asked_for(entry: Entry) -> None:
    assert "--output-format=json" in refused(content(entry["file"])).detail


def test_terse_output_is_refused_and_json_asked_for() -> None:
    assert "--output-format=json" in refused(b"3;fio-3.33;save;0;0;0;0;0;0;0;0;0.0;0.0\n").detail


def test_text_around_the_document_is_told() -> None:
    made = parse(content("fio-3.33-warning-before-json.json"))
    (doubt,) = (each for each in made.doubts if each.code is DoubtCode.MIXED_LOG_LINES)
    assert "2 lines" in doubt.message
    assert "line 1" in doubt.message


# Which jobs belong together


def test_jobs_of_one_group_are_added_over_the_longest_runtime() -> None:
    found = only(
        record(
            *(job(write=side(512, milliseconds), given=options(numjobs="2")) for milliseconds in (1000, 4000))
        )
    )
    assert found.ranks == 2
    assert found.gb_per_second is not None
    assert found.gb_per_second.mean == pytest.approx(1024 * MIB / 4 / 1e9)


def test_groups_apart_are_never_added() -> None:
    made = record(job("one"), job("two", groupid=1))
    assert [(each.test, each.ranks) for each in measurements(made)] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("option", ["startdelay", "wait_for"])
def test_a_section_that_starts_later_is_not_added(option: str) -> None:
    made = record(job("one"), job("two", given=options(name="two", **{option: "5"})))
    assert len(measurements(made)) == 2


def test_different_sections_that_ran_together_are_one_measurement() -> None:
    found = only(record(job("one"), job("two", write=side(512, 1000))))
    assert (found.ranks, found.transfer_bytes) == (2, MIB)


def test_a_mixed_job_gives_a_write_and_a_read() -> None:
    made = record(job(write=side(256, 2000), read=side(256, 2000), given=options(rw="rw")))
    assert [each.operation for each in measurements(made)] == [Operation.WRITE, Operation.READ]
    assert not FACTUAL & codes(made)
    assert [each.block_bytes for each in measurements(made)] == [256 * MIB, 256 * MIB]


def test_writers_and_readers_of_one_group_are_counted_apart() -> None:
    made = record(job("w"), job("r", read=side(512, 1000), given=options(name="r", rw="read")))
    assert [each.ranks for each in measurements(made)] == [1, 1]


def test_a_missing_entry_voids_the_figure() -> None:
    value = json.loads(content(PER_JOB))
    del value["jobs"][1]
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(written(value)))
    del value["jobs"][1:]
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(written(value)))  # alone it looks like a group


def test_a_job_that_moved_nothing_voids_its_group() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(record(job("one"), job("two", write=side())))


def test_a_group_of_several_sections_has_an_unknown_number_of_ranks() -> None:
    found = only(record(job(write=side(1024, 2000))))  # twice the size of the section that it is named after
    assert found.ranks is None
    assert found.block_bytes is None


def test_unlike_jobs_raise_a_straggler() -> None:
    jobs = [job(write=side(512, each), given=options(numjobs="3")) for each in (1000, 1000, 4000)]
    assert DoubtCode.STRAGGLER in codes(record(*jobs))


# Errors


def test_a_file_of_a_failed_job_is_refused() -> None:
    error = refused(written(document(job(error=28))))
    assert (error.code, error.pointer) == ("job_failed", "#/jobs/0/error")
    assert "error 28" in error.detail


def test_a_failed_job_is_left_out_and_told() -> None:
    made = record(job("one"), job("two", groupid=1, error=5))
    assert only(made).test == 0
    (doubt,) = (each for each in made.doubts if each.code is DoubtCode.IOR_WARNING)
    assert "#/jobs/1/error" in doubt.message
    assert DoubtCode.INCOMPLETE_RUN not in codes(made)


def test_a_failed_job_voids_those_that_ran_with_it() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(record(job("one"), job("two", error=5)))


def test_wrong_data_is_never_a_pass() -> None:
    assert refused(written(document(job(error=84)))).code == "data_verification_failed"
    assert DoubtCode.DATA_VERIFICATION_FAILED in codes(record(job(), job("two", groupid=1, error=84)))
    text = b"verify: bad magic header 0, wanted acca at file x offset 0\n"
    assert DoubtCode.DATA_VERIFICATION_FAILED in codes(parse(text + written(document(job()))))


def test_errors_that_the_job_went_on_after_void_it() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(record(job(total_err=3, first_error=5)))


def test_a_run_ended_by_a_signal_is_incomplete() -> None:
    text = b"fio: terminating on signal 2\n"
    assert DoubtCode.INCOMPLETE_RUN in codes(parse(text + written(document(job()))))


def test_a_document_written_while_jobs_ran_is_incomplete() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(record(job(eta=12)))
    assert DoubtCode.INCOMPLETE_RUN not in codes(record(job(eta=2**31 - 1)))


# Sync and cache


@pytest.mark.parametrize(
    ("changes", "fsync"),
    [
        ({}, True),
        ({"end_fsync": "0"}, False),
        ({"end_fsync": None}, False),
        ({"end_fsync": None, "fsync_on_close": "1"}, True),
        ({"end_fsync": None, "fsync": "1"}, True),
        ({"end_fsync": None, "fdatasync": "8"}, True),
        ({"end_fsync": None, "fsync": "256"}, False),  # the last 256 of 512 writes may be unsynced
        ({"end_fsync": None, "fsync": "0"}, False),
        ({"end_fsync": None, "sync": "1"}, True),
        ({"end_fsync": None, "sync": "dsync"}, True),
        ({"end_fsync": None, "sync": "none"}, False),
        ({"end_fsync": None, "direct": "1"}, False),
    ],
)
def test_a_write_is_durable_only_if_its_options_sync_all_of_it(
    changes: dict[str, str | None], fsync: bool
) -> None:
    made = record(job(given=options(**changes)))
    assert only(made).fsync is fsync
    assert (DoubtCode.NO_FSYNC in codes(made)) is not fsync


@pytest.mark.parametrize(("version", "fsync"), [("fio-3.16", False), ("fio-3.17", True), ("3.33", False)])
def test_before_3_17_the_time_left_out_the_fsync_of_the_last_close(version: str, fsync: bool) -> None:
    given = options(end_fsync=None, fsync_on_close="1")
    assert only(record(job(given=given), **{"fio version": version})).fsync is fsync


def test_one_unsynced_section_makes_the_group_unsynced() -> None:
    made = record(job("one"), job("two", given=options(name="two", end_fsync=None)))
    assert only(made).fsync is False


def test_global_options_count_and_a_jobs_own_go_before_them() -> None:
    shared = {"end_fsync": "1", "bs": "2m", "numjobs": "4"}
    own = {"name": "save", "rw": "write", "bs": "1m"}
    found = only(record(job(given=own), **{"global options": shared}))
    assert (found.fsync, found.transfer_bytes, found.ranks) == (True, MIB, 4)


def test_without_options_neither_sync_nor_ranks_are_known() -> None:
    entry = job()
    del entry["job options"]
    made = record(entry)
    assert (only(made).fsync, only(made).ranks, only(made).transfer_bytes) == (None, None, None)
    assert DoubtCode.FSYNC_UNKNOWN in codes(made)


@pytest.mark.parametrize(
    ("changes", "cached"), [({}, True), ({"direct": "1"}, False), ({"buffered": "0"}, False)]
)
def test_a_read_is_cached_unless_it_was_direct(changes: dict[str, str], cached: bool) -> None:
    entry = job(read=side(512, 100), given=options(rw="read", end_fsync=None, **changes))
    assert (DoubtCode.CACHED_READ in codes(record(entry))) is cached


# Sizes and time limits


@pytest.mark.parametrize(
    ("bs", "transfer"),
    [
        ("1m", MIB),
        ("1M", MIB),
        ("1024k", MIB),
        ("1048576", MIB),
        ("4k,1m", MIB),
        ("1MiB", None),
        ("64k-1m", None),
        (None, MIB),
    ],
)
def test_the_block_size_is_read_where_it_is_plain(bs: str | None, transfer: int | None) -> None:
    assert only(record(job(given=options(bs=bs)))).transfer_bytes == transfer


def test_a_job_ended_by_time_is_stonewalled() -> None:
    entry = job(write=side(300, 10_000), given=options(runtime="10"))
    assert DoubtCode.STONEWALLED in codes(record(entry))
    entry = job(write=side(900, 10_000), given=options(runtime="10", time_based="1"))
    assert DoubtCode.STONEWALLED in codes(record(entry))


def test_a_job_that_moved_its_size_within_the_limit_is_not() -> None:
    assert not FACTUAL & codes(record(job(given=options(runtime="600"))))


def test_a_job_that_moved_less_than_its_size_without_a_limit_is_incomplete() -> None:
    assert DoubtCode.INCOMPLETE_RUN in codes(record(job(write=side(300, 2000))))


def test_options_that_change_the_amount_raise_no_doubt_of_it() -> None:
    for changes in ({"io_size": "300m"}, {"loops": "3"}, {"size": "50%"}, {"filename": "/dev/nvme0n1"}):
        assert not FACTUAL & codes(record(job(write=side(300, 2000), given=options(**changes))))


@pytest.mark.parametrize("engine", ["null", "filecreate"])
def test_an_engine_that_moves_no_data_is_refused(engine: str) -> None:
    assert refused(written(document(job(given=options(ioengine=engine))))).code == "no_io"


# Client and server


def client(host: str, **fields: Any) -> Json:  # noqa: ANN401 - whatever JSON holds
    return job(**{"hostname": host, "port": 8765, **fields})


def clients(*entries: Json, total: Json | None = None) -> Json:
    made = document(client_stats=[*entries, *([total] if total else [])])
    del made["jobs"]
    return made


def test_clients_are_nodes_and_their_total_is_not_counted_again() -> None:
    grouped = options(numjobs="4", size="128m")
    total = job("All clients", write=side(1024, 4000), hostname="n2", port=8765)
    del total["job options"]
    made = parse(
        written(
            clients(
                client("n1", given=grouped), client("n2", write=side(512, 4000), given=grouped), total=total
            )
        )
    )
    found = only(made)
    assert (found.ranks, found.nodes, found.ranks_per_node) == (8, 2, 4)
    assert found.repetitions[0].bytes == 1024 * MIB
    assert found.gb_per_second is not None
    assert found.gb_per_second.mean == pytest.approx(1024 * MIB / 4 / 1e9)
    assert not {DoubtCode.UNKNOWN_TOPOLOGY, DoubtCode.INCOMPLETE_RUN} & codes(made)


def test_a_client_that_is_missing_from_the_total_is_refused() -> None:
    total = job("All clients", write=side(1024, 4000), hostname="n2", port=8765)
    error = refused(written(clients(client("n1"), total=total)))
    assert (error.code, error.pointer) == ("inconsistent_job", "#/client_stats/1/write")


def test_two_services_of_one_host_are_one_node() -> None:
    found = only(parse(written(clients(client("n1"), client("n1", port=8766)))))
    assert found.nodes == 1


def test_options_by_server_are_found() -> None:
    entries = [
        client("n1", given={"name": "save"}),
        client("n2", given={"name": "save"}),
    ]
    shared = [{"hostname": "n1", "end_fsync": "1"}, {"hostname": "n2", "end_fsync": "0"}]
    assert only(parse(written({**clients(*entries), "global options": shared}))).fsync is False


# Figures that cannot be


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("io_bytes", 512 * MIB * 2, "inconsistent_job"),
        ("io_bytes", "536870912", "bad_number"),
        ("io_bytes", -1, "bad_number"),
        ("io_bytes", True, "bad_number"),
        ("io_bytes", 1.5, "bad_number"),
        ("io_bytes", 10**30, "bad_number"),
        ("io_bytes", 0, "inconsistent_job"),
        ("runtime", 1000, "inconsistent_job"),
        ("runtime", 0, "bad_number"),
        ("runtime", None, "missing_key"),
        ("bw_bytes", 1, "inconsistent_job"),
        ("bw_bytes", 0, "inconsistent_job"),
        ("bw", 10, "inconsistent_job"),
        ("io_kbytes", 10, "inconsistent_job"),
        ("iops", 10.0, "inconsistent_job"),
        ("iops", "x", "bad_number"),
        ("total_ios", 7, "inconsistent_job"),
    ],
)
def test_figures_that_contradict_each_other_are_refused_with_their_place(
    key: str, value: object, code: str
) -> None:
    entry = job()
    entry["write"][key] = value
    error = refused(written(document(entry)))
    assert error.code == code
    assert error.pointer is not None
    assert error.pointer.startswith("#/jobs/0/write")


@pytest.mark.parametrize("elapsed", [0, 1])
def test_a_job_longer_than_fio_is_refused(elapsed: int) -> None:
    assert refused(written(document(job(write=side(512, 2500), elapsed=elapsed)))).code == "inconsistent_job"


@pytest.mark.parametrize("key", ["jobname", "groupid", "error", "read", "write"])
def test_a_missing_key_is_refused(key: str) -> None:
    entry = job()
    del entry[key]
    assert refused(written(document(entry))).code == "missing_key"


def test_directions_counted_as_one_are_refused() -> None:
    entry = job(mixed=side(512, 2000))
    del entry["read"], entry["write"], entry["trim"]
    assert refused(written(document(entry))).code == "mixed_directions"


def test_a_file_without_figures_is_refused() -> None:
    assert refused(written(document())).code == "no_results"
    assert refused(written(document(job(write=side())))).code == "no_results"


def test_kibibytes_of_fio_2_are_converted_and_told() -> None:
    entry = job()
    entry["write"] = {"io_bytes": 512 * 1024, "bw": 262144, "iops": 256.0, "runtime": 2000, "total_ios": 512}
    entry["read"] = {"io_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0}
    made = record(entry)
    assert only(made).repetitions[0].bytes == 512 * MIB
    assert DoubtCode.UNIT_CORRECTED in codes(made)
    entry["write"]["io_bytes"] = 512 * MIB
    made = record(entry)
    assert only(made).repetitions[0].bytes == 512 * MIB
    assert DoubtCode.UNIT_CORRECTED not in codes(made)


# Several documents


def snapshot(seconds: int, mib: int, **fields: Any) -> Json:  # noqa: ANN401 - whatever JSON holds
    """The state of one run so many seconds after its start."""
    return document(
        job(write=side(mib, 1000 * seconds), elapsed=seconds, **fields),
        timestamp=1_800_000_000 + seconds,
        timestamp_ms=(1_800_000_000 + seconds) * 1000 + 20,
    )


def test_of_snapshots_the_last_counts_and_that_is_told() -> None:
    made = parse(written(snapshot(1, 100), snapshot(2, 300), snapshot(3, 512)))
    assert only(made).repetitions[0].bytes == 512 * MIB
    (doubt,) = (each for each in made.doubts if each.code is DoubtCode.SEVERAL_RUNS)
    assert "3 documents of one run" in doubt.message


def test_snapshots_of_a_killed_run_prove_nothing() -> None:
    data = written(snapshot(1, 100), snapshot(2, 512), snapshot(3, 512))
    made = parse(data[:-300])
    assert DoubtCode.INCOMPLETE_RUN in codes(made)


def test_runs_appended_are_runs_of_their_own() -> None:
    later = snapshot(2, 512)
    later["timestamp"] += 60
    later["timestamp_ms"] += 60_000
    made = parse(written(snapshot(2, 512), later))
    assert [each.run for each in measurements(made)] == [0, 1]
    assert DoubtCode.SEVERAL_RUNS in codes(made)
    assert DoubtCode.INCOMPLETE_RUN not in codes(made)
    other = parse(content(GROUP) + content(SECTIONS))
    assert [each.run for each in measurements(other)] == [0, 1, 1]


def test_a_document_cut_off_before_another_is_told() -> None:
    made = parse(content(GROUP)[:3000] + b"\n" + content(SECTIONS))
    assert [each.operation for each in measurements(made)] == [Operation.WRITE, Operation.READ]
    assert any("cut off" in each.message for each in made.doubts)


def test_a_document_that_does_not_end_is_refused_with_its_line() -> None:
    error = refused(b"note: x\n\n" + content(GROUP)[:3000])
    assert (error.code, error.line) == ("not_json", 3)


def test_a_prefix_before_every_line_is_taken_off() -> None:
    plain = parse(content(PER_JOB))
    for prefix in (b"0: ", b"[1,0]<stdout>:"):
        data = b"\n".join(prefix + line for line in content(PER_JOB).split(b"\n"))
        assert parse(data).measurements == plain.measurements


def test_compact_and_sorted_documents_are_read() -> None:
    value = json.loads(content(PER_JOB))
    for data in (
        json.dumps(value),
        json.dumps(value, sort_keys=True, indent=1),
        "note: x\n" + json.dumps(value),
    ):
        assert parse(data.encode()).measurements == parse(content(PER_JOB)).measurements


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"error" : 0,', b'"error" : 0,\n      "error" : 0,', "duplicate_key"),
        (b'"iops" : 1117.903930', b'"iops" : NaN', "non_finite_number"),
        (b'"iops" : 1117.903930', b'"iops" : -nan', "not_json"),
        (b'"iops" : 1117.903930', b'"iops" : 1e999', "non_finite_number"),
        (b'"groupid" : 0,', b'"groupid" : 0', "not_json"),
    ],
)
def test_json_that_is_not_strict_is_refused(old: bytes, new: bytes, code: str) -> None:
    data = content(GROUP)
    assert old in data
    error = refused(b"note: x\n" + data.replace(old, new, 1))
    assert error.code == code
    assert error.line is not None
    if code == "not_json":
        assert abs(error.line - (2 + data[: data.index(old)].count(b"\n"))) <= 1


# Damage


LEAVES = ("io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios")


def test_no_single_changed_figure_gives_another_result() -> None:
    before = [each.repetitions for each in measurements(parse(content(PER_JOB)))]
    value = json.loads(content(PER_JOB))
    for at, key in ((at, key) for at in range(4) for key in LEAVES):
        for factor in (2, 0.5, 10, 1024, 1.01):
            changed = copy.deepcopy(value)
            old = changed["jobs"][at]["write"][key]
            changed["jobs"][at]["write"][key] = round(old * factor) if isinstance(old, int) else old * factor
            made = outcome(written(changed))
            if isinstance(made, Record):
                assert [each.repetitions for each in measurements(made)] == before, (at, key, factor)


@pytest.mark.parametrize("entry", entries("fio-json"))
def test_a_document_less_a_line_is_read_right_or_refused(entry: Entry) -> None:
    lines = content(entry["file"]).split(b"\n")
    right = measurements(parse(content(entry["file"])))
    rates = {(each.operation, each.repetitions[0].gb_per_second) for each in right}
    rng = random.Random(entry["file"])  # noqa: S311 - the same mutations each time
    for at in rng.sample(range(len(lines)), min(len(lines), 250)):
        made = outcome(b"\n".join(lines[:at] + lines[at + 1 :]))
        if isinstance(made, UnreadableDocument):
            assert made.detail
            continue
        found = {(each.operation, each.repetitions[0].gb_per_second) for each in measurements(made)}
        assert found <= rates or DoubtCode.INCOMPLETE_RUN in codes(made)


@pytest.mark.parametrize(
    "made",
    [
        lambda count: content(GROUP) * count,
        lambda count: written(document(*(job(f"j{at}") for at in range(20 * count)))),
        lambda count: b"note: x\n" * 200 * count + content(GROUP),
        lambda count: b'{\n  "fio version" : ' * 100 * count,
    ],
    ids=["documents", "jobs", "text", "openings"],
)
def test_cost_grows_as_the_size_does(made: Callable[[int], bytes]) -> None:
    from tests.parsers.test_init import _calls

    assert _calls(made(40)) < 8.5 * _calls(made(5))


@pytest.mark.parametrize(
    "unit", ['"', '\\"', "{", "}", '{"fio version":', '"\\', " ", "\n{", "[1,0]<stdout>:"]
)
def test_endless_text_is_refused_soon(unit: str) -> None:
    head = b'{\n  "fio version" : "fio-3.33",\n  "x" : "'
    for before in (b"", head, content(GROUP)):
        outcome(before + (unit * 400_000).encode())
