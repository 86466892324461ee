"""The register of formats: recognition by content, and what is said of documents that are none of them."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from service.errors import UnreadableDocument
from service.parsers import register
from service.parsers.measurement import DoubtCode, Measurement, Operation, Record, Repetition, spread
from service.parsers.register import FORMATS, Document, Format, read
from tests.parsers.manifest import DATA, Entry, content, entries, outcome, refused

NAMES = {
    "text": "ior-text",
    "json": "ior-json",
    "csv": "ior-csv",
    "ior-rank-csv": "ior-rank-csv",
    "mdtest-text": "mdtest-text",
    "io500-summary": "io500-summary",
}


def test_every_format_has_its_own_name() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS)


def test_a_format_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def recognises(document: Document) -> bool:
        return document.text.startswith("toy ")

    def parse_toy(document: Document) -> Record:
        rate = float(document.text.split()[1])
        return Record(
            tool="toy",
            format="toy-text",
            measurements=[
                Measurement(
                    operation=Operation.WRITE,
                    repetitions=[Repetition(gb_per_second=rate)],
                    gb_per_second=spread([rate]),
                )
            ],
            doubts=[],
        )

    monkeypatch.setattr(register, "FORMATS", (*FORMATS, Format("toy-text", recognises, parse_toy)))
    assert register.parse(b"toy 1.5\n").format == "toy-text"
    assert "toy-text" in refused(b"no toy").detail
    assert {each.code for each in register.parse(b"toy 1.5\nSTARTING ENVIRON LOOP\n").doubts} == {
        DoubtCode.ENVIRONMENT_REMOVED
    }


@pytest.mark.parametrize("entry", [entry for format in NAMES for entry in entries(format)])
def test_a_labelled_file_is_recognised_as_what_it_is(entry: Entry) -> None:
    document = read(content(entry["file"]))
    found = [each.name for each in FORMATS if each.recognises(document)]
    if entry["file"].endswith(("mpi-abort-init-failure.txt", "not-multiple-error.txt")):
        assert found == []
    else:
        assert found[0] == NAMES[entry["format"]]


@pytest.mark.parametrize("entry", entries("unknown"))
def test_a_labelled_file_of_no_format_is_refused(entry: Entry) -> None:
    assert refused(content(entry["file"])).code in ("empty", "unknown_format")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("rank,items,rate-Directory creation,time-Directory creation\n", "post what mdtest printed"),
        ("SUMMARY rate: (of 3 iterations)\n   File creation 1 1 1 0\n", "part of mdtest's output"),
        ("SUMMARY rate (in ops/sec): (of 3 iterations)\n", "part of mdtest's output"),
        ("[ior-easy-write]\nt_start = 2026-11-29\nscore = 0.155614\n", "post its result_summary.txt"),
        ('{"1": {"save_ckpt1": {"duration": 0.5}}}', "post the summary.json"),
        ("ckpt: (g=0): rw=write, bs=(R) 1024KiB\n...\nfio-3.33\n", "fio's text"),
        ('  "fio version" : "fio-3.33",\n  "jobs" : [\n', "fio's JSON"),
        ("OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n", "elbencho's table"),
        ('{\n  "phase_type": "SYNC",\n', "elbencho's JSON"),
        ("<!DOCTYPE html>\n<html><body>Sign in</body></html>", "web page"),
        ("#!/bin/bash\n#SBATCH -N 2\nior -w\n", "script"),
        ("srun: error: node01: task 3: Killed\nslurmstepd: error\n", "SLURM"),
        ("mpirun noticed that process rank 0 exited\n", "MPI"),
        ("ERROR: block size must be a multiple of transfer size, (ior.c:1490)\n", "error"),
        ("access    bw(MiB/s)  block(KiB)\nwrite 1 2\n", "part of IOR's output"),
        ('{"name": "trainer", "tests": []}', "JSON of an unknown kind"),
        ("[1, 2]", "JSON list"),
        ('{"name": ', "begins as JSON"),
        ("Lorem ipsum dolor\n", "plain text"),
    ],
)
def test_an_unknown_document_is_told_what_it_looks_like_and_what_is_accepted(text: str, what: str) -> None:
    error = refused(text.encode())
    assert error.code == "unknown_format"
    assert what in error.detail
    assert "ior-json" in error.detail


def _calls(data: bytes) -> int:
    """Return how many functions, Python's and C's, it takes to read a document."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        outcome(data)
    finally:
        sys.setprofile(before)
    return calls


def _tests(count: int) -> bytes:
    """Return a text output of so many tests."""
    text = content("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt").decode()
    head, _, rest = text.partition("TestID              : 0\n")
    test, _, end = rest.partition("\nSummary of all tests:")
    return (head + "".join(f"TestID              : {at}\n{test}" for at in range(count)) + end).encode()


def _between(lines: bytes) -> bytes:
    """Return a text output of IOR with lines put among its options."""
    before, heading, after = content("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt").partition(
        b"Options: \n"
    )
    return before + heading + lines + after


@pytest.mark.parametrize(
    "made",
    [
        _tests,
        lambda count: content("ior-4.0-two-runs-appended.txt") * count,
        lambda count: content("ior-3.3-posix-fpp-write-read-3reps.json") * count,
        lambda count: content("ior-4.0-posix-fpp-write-read-3reps.csv") * count,
        lambda count: content("ior-4.0-rank-details.csv") * count,
        lambda count: content("mdtest-4.0-dirs-and-files.txt") * count,
        lambda count: content("io500-sc25dev-debug-result_summary.txt") * count,
        lambda count: content("elbencho-3.1-dirs-fpp-write-read-delete.json") * count,
        lambda count: content("elbencho-3.1-dirs-fpp-write-read-delete.csv") * count,
        lambda count: content("fio-3.33-seqwrite-4jobs-group.json") * count,
        lambda count: _between(b"WARNING: a file is there\n" * 30 * count),
        lambda count: _between(b"key : value\n" * 30 * count),
        lambda count: _between(b"x\n" * 100 * count),
        lambda count: _between(b"Test 0: Iter=0, Task=1, Time=12.5, write open start\n" * 30 * count),
        lambda count: _between(b"STARTING ENVIRON LOOP\n" + b"A=b\n" * 50 * count),
        lambda count: _between(b"ENDING ENVIRON LOOP\n" * 30 * count),
        lambda count: content("ior-4.0-existing-file-warnings.json") * count,
        lambda count: b"x\n" * 100 * count + content("fio-3.33-seqwrite-4jobs-group.json"),
    ],
    ids=[
        *(
            "tests",
            "runs",
            "json",
            "csv",
            "rank-csv",
            "mdtest",
            "io500",
            "elbencho-json",
            "elbencho-csv",
            "fio",
        ),
        *(
            "warnings",
            "options",
            "tiny lines",
            "rank times",
            "dump",
            "ends of dumps",
            "mixed json",
            "text and fio",
        ),
    ],
)
def test_cost_grows_as_the_size_does(made: Callable[[int], bytes]) -> None:
    few, many = _calls(made(10)), _calls(made(80))
    assert many < 8.5 * few


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (b"IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n" * 20_000, "runs"),
        (b"IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n" + b"".join(b"TestID : %d\n" % at for at in range(20_000)),
         "tests"),
        (content("mdtest-4.0-files-only-3iters.txt").replace(b"of 3 iterations", b"of 99999 iterations") * 2,
         "iterations"),
        (content("ior-2.10-posix-fpp-write-read-3reps.txt").replace(b" = 3\n", b" = 9999\n") * 12, "repetitions"),
        (content("io500-sc25dev-debug-result_summary.txt") * 1000, "measurements"),
        (content("elbencho-3.1-manyfiles-create.json") * 12_000, "measurements"),
        (b"IO500 version io500\n" * 20_000, "runs"),
    ],
)  # fmt: skip
def test_a_little_text_cannot_ask_for_much(document: bytes, what: str) -> None:
    error = refused(document)
    assert error.code == "too_many_results"
    assert what in error.detail


@pytest.mark.parametrize(
    "tool", ["mdtest-4.0-files-only-3iters.txt", "io500-sc25dev-debug-result_summary.txt"]
)
def test_a_log_of_two_tools_is_refused(tool: str) -> None:
    for data in (
        content("ior-4.0-joblog-prologue-epilogue.txt") + content(tool),
        content(tool) + content("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt"),
    ):
        error = refused(data)
        assert error.code == "mixed_formats"
        assert "ior-text" in error.detail


@pytest.mark.parametrize("digits", ["\u0661\u0662", "\uff11\uff12", "\u00b2"])
def test_digits_of_other_scripts_are_no_number(digits: str) -> None:
    for name, number in (
        ("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt", b"58.15 "),
        ("ior-4.0-posix-fpp-write-read-3reps.csv", b"1745.6908"),
        ("mdtest-4.0-files-only-3iters.txt", b"14341.952"),
    ):
        data = content(name)
        assert number in data
        made = outcome(data.replace(number, digits.encode() + number[1:], 1))
        assert isinstance(made, UnreadableDocument)
        assert made.code == "bad_number"


@pytest.mark.parametrize(
    "unit",
    [
        *(" ", "0", '"', "\\", "{", "[", '"Command line": ', ', "Path": "', "IOR-4", "1,"),
        *("mdtest-4 was launched with ", "V-1: Rank 1 ", "File read ", "WARNING: unable to read ", "'-F' "),
        *("[RESULT] ", "[RESULT] ior-easy-write 1", "IO500 version "),
        *(
            '"save_checkpoint_io_mean_GB_per_second" : ',
            "NaN,",
            "a",
            "a'b' ",
            "\\a",
            "Command line : ior ",
            '"a" ',
        ),
        *("ENDING ENVIRON LOOP", "1e", "9", "0.", '"fio version" : ', '{"phase_type"', "[1,0]<stdout>:"),
    ],
)
def test_a_line_without_end_is_read_or_refused_soon(unit: str) -> None:
    # Each of these took minutes if an expression tried every way to share it out.
    long = (unit * 1_000_000)[:1_000_000].encode()
    for before in (
        b"",
        content("ior-4.0-killed-mid-run.txt"),
        content("ior-4.0-killed-mid-run.json") + b'\n"',
        content("mdtest-4.0-killed.txt"),
        content("mdtest-4.0-killed.txt").partition(b"mdtest '-F'")[0],
        content("ior-4.0-killed-mid-run.txt").partition(b"ior -a")[0],
        content("io500-sc25dev-debug-result_summary.txt"),
        b'{"num_accelerators": 2, "metric": {',
    ):
        outcome(before + long)


@pytest.mark.parametrize(
    ("name", "trainer"),
    [
        ("nemo-style.log", "nemo"),
        ("torchtitan-style.log", "torchtitan"),
        ("torchtitan-style-2024-to-2026-05.log", "torchtitan"),
        ("megatron-timers-style.log", "megatron"),
        ("dcp-logger.w2_sync.rank0.jsonl", "torch-dcp-log"),
        ("s3torchbenchmarking-style.job_results.json", "s3torchbenchmarking"),
        ("dlio-both.0_per_epoch_stats.json", "dlio"),
    ],
)
def test_what_a_trainer_printed_is_told_how_to_become_a_document(name: str, trainer: str) -> None:
    error = refused((DATA.parent / "dcp" / "foreign" / name).read_bytes())
    assert error.code == "unknown_format"
    assert f"`stallbudget convert {trainer} FILE…`" in error.detail


def test_a_log_whose_lines_begin_with_a_bracket_is_not_called_json() -> None:
    assert (
        "JSON" not in refused(b"[1,0]<stdout>: hello\n[1,0]<stdout>: world\n").detail.split("; accepted")[0]
    )
