"""elbencho's CSV: labelled files, agreement with the JSON of the same runs, each refusal, damage."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record
from service.parsers.register import FORMATS, parse, read
from tests.parsers.elbencho_files import COMMAND, HEADING, MIB, as_csv, as_json, phase
from tests.parsers.manifest import FACTUAL, Entry, codes, content, entries, outcome, refused

FILES = "elbencho-3.1-4files-write-read.csv"


def measurements(made: Record) -> list[Measurement]:
    assert made.measurements is not None
    return made.measurements


@pytest.mark.parametrize("entry", entries("elbencho-csv"))
def test_a_labelled_file_gives_the_figures_of_its_manifest(entry: Entry) -> None:
    data = content(entry["file"])
    assert next(each.name for each in FORMATS if each.recognises(read(data))) == "elbencho-csv"
    made = parse(data)
    assert (made.tool, made.tool_version, made.format) == ("elbencho", entry["tool_version"], "elbencho-csv")
    assert not FACTUAL & codes(made)
    phases = {each["operation"]: each for each in entry["expected"]["phases"]}
    for name, operation in (("WRITE", Operation.WRITE), ("READ", Operation.READ)):
        found = [each for each in measurements(made) if each.operation is operation]
        assert len(found) == (name in phases)
        for each in found:
            (repetition,) = each.repetitions
            assert repetition.gb_per_second == pytest.approx(
                phases[name]["MiB/s [last]"] * MIB / 1e9, rel=1e-12
            )
            assert repetition.bytes is not None
            assert repetition.bytes // MIB == phases[name]["MiB [last]"]
            assert repetition.total_seconds == phases[name]["time ms [last]"] / 1000
            assert (each.ranks, each.nodes) == (phases[name]["hosts"] * phases[name]["threads"], 1)
            assert each.transfer_bytes == phases[name]["block size"]


@pytest.mark.parametrize("entry", entries("elbencho-csv"))
def test_both_formats_of_one_run_agree_within_the_digits(entry: Entry) -> None:
    csv = measurements(parse(content(entry["file"])))
    jsonl = measurements(parse(content(entry["file"].replace(".csv", ".json"))))
    assert len(csv) == len(jsonl)
    for one, other in zip(csv, jsonl, strict=True):
        figures = {"repetitions", "gb_per_second"}
        assert one.model_dump(exclude=figures) == other.model_dump(exclude=figures)
        (rough,), (exact,) = one.repetitions, other.repetitions
        assert replace(rough, gb_per_second=None) == replace(exact, gb_per_second=None)
        if exact.gb_per_second is not None:
            assert rough.gb_per_second is not None
            assert 0 <= exact.gb_per_second - rough.gb_per_second < MIB / 1e9
    assert {doubt.code for doubt in parse(content(entry["file"])).doubts} == {
        doubt.code for doubt in parse(content(entry["file"].replace(".csv", ".json"))).doubts
    }


@pytest.mark.parametrize(
    "phases",
    [
        [phase(), phase("READ")],
        [phase("SYNC", mib=0), phase(), phase("SYNC", mib=0), phase("READ"), phase("SYNC", mib=0)],
        [phase(microseconds=777_777), phase("READ", microseconds=123_456, direct_io="true")],
        [phase(), phase("READ"), phase(), phase("READ")],
        [phase(mib=300), phase("READ")],
        [phase()],
        [phase(command='"elbencho" "-w" "--hosts" "n1 n2" ', hosts="2")],
    ],
)
def test_hand_made_phases_read_alike_in_both_formats(phases: list[dict[str, object]]) -> None:
    csv, jsonl = parse(as_csv(*phases)), parse(as_json(*phases))
    assert [(each.code, each.measurement) for each in csv.doubts] == [
        (each.code, each.measurement) for each in jsonl.doubts
    ]
    for one, other in zip(measurements(csv), measurements(jsonl), strict=True):
        assert (one.run, one.operation, one.ranks, one.nodes) == (
            other.run,
            other.operation,
            other.ranks,
            other.nodes,
        )
        assert one.total_seconds == other.total_seconds


def test_bytes_are_absent_where_whole_mebibytes_do_not_say_them() -> None:
    command = '"elbencho" "-w" "-t" "4" "--randamount" "1g" '
    odd = phase(mib=511, random_offsets="true", block_size="4096", last={"iops": "130750"}, command=command)
    (found,) = measurements(parse(as_csv(odd)))
    assert found.repetitions[0].bytes is None


def test_a_rate_that_rounds_to_zero_is_refused_or_left_out() -> None:
    last: dict[str, str | None] = {
        "bytes/s": "409600", "bytes": "409600", "iops": "100", "entries": "100", "entries/s": "100",
    }  # fmt: skip
    command = '"elbencho" "-w" "-t" "1" '
    config: dict[str, Any] = {
        "path_type": "dir", "paths": "1", "dirs": "1", "files": "100", "threads": "1", "file_size": "4096",
        "block_size": "4096", "command": command,
    }  # fmt: skip
    small = phase(mib=0, last=last, microseconds=1_000_000, **config)
    made = parse(as_csv(small))
    assert [each.operation for each in measurements(made)] == [Operation.FILE_CREATE]
    assert len(measurements(parse(as_json(small)))) == 2
    last = {**last, "entries": None, "entries/s": None}
    slow = phase(mib=0, last=last, microseconds=1_000_000, **config)
    assert refused(as_csv(slow)).code == "bad_number"


def test_runs_appended_share_the_heading_or_repeat_it() -> None:
    once, again = as_csv(phase(), phase("READ")), as_csv(phase(), phase("READ"))
    rows = again.split(b"\n", 1)[1]
    for data in (once + rows, once + again):
        made = parse(data)
        assert [each.run for each in measurements(made)] == [0, 0, 1, 1]
        assert DoubtCode.SEVERAL_RUNS in codes(made)


def test_columns_go_by_their_heading() -> None:
    lines = as_csv(phase(), phase("READ")).decode().splitlines()
    columns = lines[0].split(",")
    order = [*columns[:3], *reversed(columns[3:-1]), columns[-1]]
    turned = [
        ",".join(dict(zip(columns, line.split(","), strict=True))[name] for name in order) for line in lines
    ]
    made = parse("\n".join(turned).encode())
    assert made.measurements == parse("\n".join(lines).encode()).measurements


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (",MiB/s [last],", ",MB/s [last],", "unknown_columns"),
        (",MiB [last],", ",MiB [first],", "unknown_columns"),
        (",511,511,", ",511,5110,", "inconsistent_row"),
        (",511,511,", ",511,0,", "inconsistent_row"),
        (",511,511,", ",511,,", "missing_key"),
        (",511,511,", ",511,511.7,", "bad_number"),
        (",511,511,", ",511,-511,", "bad_number"),
        (",511,511,", ",511,nan,", "bad_number"),
        (",511,511,", ",511,inf,", "bad_number"),
        (",511,511,", ",511,5,11,", "bad_row"),
        (",1,1000,", ",1,100,", "inconsistent_row"),
        (",1,1000,", ",1,,", "missing_key"),
        (",1,1000,", ",2000,1000,", "inconsistent_row"),
        (",WRITE,", ",,", "bad_row"),
        (",file,", ",8,", "bad_row"),
        ("2026-11-29T", "yesterday", "bad_row"),
        (",0,0,WRITE", ",maybe,0,WRITE", "bad_value"),
        (",1048576,", ",4096,", "inconsistent_row"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(old: str, new: str, code: str) -> None:
    text = as_csv(phase(), phase("READ")).decode()
    assert old in text
    error = refused(text.replace(old, new, 1).encode())
    assert error.code == code
    assert error.line == (1 if code == "unknown_columns" else 2)


def test_a_cut_last_line_is_told() -> None:
    data = as_csv(phase(), phase("READ")).rstrip(b"\n ")
    for length in (3, 40, len(COMMAND) + 5, len(COMMAND) + 30):
        made = parse(data[:-length])
        assert [each.operation for each in measurements(made)] == [Operation.WRITE]
        assert DoubtCode.INCOMPLETE_RUN in codes(made)
    assert refused(as_csv(phase()).rstrip()[:-42]).line == 2


def test_lines_of_a_log_and_prefixes_are_passed_over() -> None:
    lines = as_csv(phase(), phase("READ")).rstrip(b"\n").split(b"\n")
    right = parse(b"\n".join(lines)).measurements
    made = parse(b"\n".join([b"starting, on n1", *lines[:2], b"some warning", *lines[2:]]))
    assert made.measurements == right
    assert DoubtCode.MIXED_LOG_LINES in codes(made)
    assert parse(b"\n".join(b"0: " + line for line in lines)).measurements == right


def test_a_heading_alone_is_refused() -> None:
    assert refused(HEADING.encode()).code == "no_results"
    assert refused(b"ISO date,label,path type,paths\n").code == "unknown_columns"


@pytest.mark.parametrize("entry", entries("elbencho-csv"))
def test_changed_bytes_are_seen_or_change_nothing_that_counts(entry: Entry) -> None:
    data = content(entry["file"])
    right = {each.repetitions[0].gb_per_second for each in measurements(parse(data))}
    rng = random.Random(entry["file"])  # noqa: S311 - the same mutations each time
    for _ in range(400):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.choice(b'09.-e",[]:\n x')
        made = outcome(bytes(changed))
        if isinstance(made, UnreadableDocument):
            assert made.detail
            continue
        for each in measurements(made):
            rate = each.repetitions[0].gb_per_second
            # Whole MiB/s, whole milliseconds: what they hide cannot be seen.
            assert any(
                (rate is None) is (other is None) and (rate is None or abs(rate - (other or 0)) <= 0.1 * rate)
                for other in right
            )


@pytest.mark.parametrize(
    "made",
    [
        lambda count: as_csv(*[phase(), phase("READ")] * 10 * count),
        lambda count: as_csv(phase(), phase("READ")) + b"text\n" * 200 * count,
        lambda count: as_csv(phase(), phase("READ")) * 10 * count,
    ],
    ids=["runs", "text", "headings"],
)
def test_cost_grows_as_the_size_does(made: Callable[[int], bytes]) -> None:
    from tests.parsers.test_init import _calls

    assert _calls(made(40)) < 8.5 * _calls(made(5))


@pytest.mark.parametrize(
    "unit", ['"', ",", "2026-11-29T16:45:09.351+0000,", "0: ", "ISO date,label,path type,"]
)
def test_endless_text_is_refused_soon(unit: str) -> None:
    for before in (b"", as_csv(phase()), HEADING.encode()):
        outcome(before + (unit * 100_000).encode())
