"""The register of formats: recognition by content, and what is said of documents that are none of them."""

import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from service.errors import UnreadableDocument
from service.parsers import FORMATS, read
from tests.parsers.manifest import DATA, Entry, content, entries, outcome, refused

NAMES = {
    "text": "ior-text",
    "json": "ior-json",
    "csv": "ior-csv",
    "ior-rank-csv": "ior-rank-csv",
    "mdtest-text": "mdtest-text",
    "io500-summary": "io500-summary",
}
MUTATIONS_PER_FILE = 45


def test_every_format_has_its_own_name() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS)


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


def _cut(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.sample(range(len(data) + 1), 2))
    return data[start:end] if rng.random() < 0.5 else data[:start] + data[end:]


def _flip(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        made[rng.randrange(len(made))] = rng.choice(b'09.-e",{}[]:\n\r\x00\xffnA ')
    return bytes(made)


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            lines.insert(other, lines[one])
        case _:
            del lines[one]
    return b"\n".join(lines)


FILES = sorted(path for path in DATA.iterdir() if path.name != "MANIFEST.json" and path.stat().st_size)


def _splice(data: bytes, rng: random.Random) -> bytes:
    other = rng.choice(FILES).read_bytes()
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(path: object) -> None:
    name = str(path).rpartition("/")[2]
    rng = random.Random(name)  # noqa: S311 - the same mutations each time
    kinds: tuple[Callable[[bytes, random.Random], bytes], ...] = (_cut, _flip, _lines, _splice)
    for at in range(MUTATIONS_PER_FILE):
        data = kinds[at % len(kinds)](content(name), rng)
        made = outcome(data)
        if isinstance(made, UnreadableDocument):
            assert made.detail
            continue
        for each in made.measurements or []:
            assert each.repetitions
            assert all((repetition.gb_per_second or 1) > 0 for repetition in each.repetitions)


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
    ],
    ids=["tests", "runs", "json", "csv", "rank-csv", "mdtest", "io500"],
)
def test_cost_grows_as_the_size_does(made: Callable[[int], bytes]) -> None:
    few, many = _calls(made(10)), _calls(made(80))
    assert many < 8.5 * few


@pytest.mark.parametrize(
    "unit",
    [
        *(" ", "0", '"', "\\", "{", "[", '"Command line": ', ', "Path": "', "IOR-4", "1,"),
        *("mdtest-4 was launched with ", "V-1: Rank 1 ", "File read ", "WARNING: unable to read ", "'-F' "),
        *("[RESULT] ", "[RESULT] ior-easy-write 1", "IO500 version "),
        *('"save_checkpoint_io_mean_GB_per_second" : ', "NaN,"),
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
        content("io500-sc25dev-debug-result_summary.txt"),
        b'{"num_accelerators": 2, "metric": {',
    ):
        outcome(before + long)
