"""Real files of every format, changed at random: what is made of them is a record that can be true, or a refusal."""

import random
import re

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Record
from service.parsers.register import parse
from tests.parsers.manifest import content
from tests.parsers.mutations import FILES, examine, mutated

TURNS = 60


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_read_or_refused_and_nothing_else(name: str) -> None:
    rng = random.Random(name)  # noqa: S311 - the same changes each time
    for turn in range(TURNS):
        data = mutated(name, turn, rng)
        try:
            examine(data)
        except Exception as error:
            raise AssertionError(f"turn {turn} of {name}: {error!r}") from error


# Changes that a careful reader can see. The figures of these files are told more than once: rows and their summary,
# rates and times and bytes, a score, a sum, a number of repetitions.

SEEN = frozenset({
    DoubtCode.INCOMPLETE_RUN, DoubtCode.PARTIAL_RANKS, DoubtCode.STONEWALLED, DoubtCode.REPS_SKIPPED,
    DoubtCode.SEVERAL_RUNS, DoubtCode.IO500_INVALID, DoubtCode.NAN_SUMMARY,
})  # fmt: skip
PRECISION = 0.01
"""Within so much of the original the digits printed beside a figure may hide a change of it."""

ROWS = {
    "ior-4.0-posix-fpp-2nodes-write-read-3reps.txt": r"^(?:write|read) .* [0-9] +$",
    "ior-3.3-posix-fpp-write-read-3reps.txt": r"^(?:write|read) .* [0-9] +$",
    "ior-3.2-posix-fpp-write-read-3reps.txt": r"^(?:write|read) .* [0-9] +$",
    "ior-3.0-posix-fpp-write-read-3reps.txt": r"^(?:write|read) .* [0-9] +$",
    "ior-4.0-posix-fpp-write-read-3reps.csv": r"^(?:write|read),.*",
    "ior-4.0-rank-details.csv": r"^(?:write|read),.*",
    "mdtest-4.0-files-only-3iters.txt": r"^ +File \w+ .*",
    "mdtest-4.0-dirs-and-files.txt": r"^ +File \w+ .*",
    "io500-sc25dev-debug-result_summary.txt": r"^\[RESULT\].*",
    "elbencho-3.1-dirs-fpp-write-read-delete.json": r'^\{"phase_type":"(?:WRITE|READ)".*',
    "elbencho-3.1-dirs-fpp-write-read-delete.csv": r"^2026[^,]*,,dir,.*,(?:WRITE|READ),.*",
    "fio-3.33-seqwrite-4jobs-perjob.json": r"^    \{\n(?:      .*\n)+?    \},?$",
    "ior-4.0-posix-fpp-write-read-5reps.json": r'^            \{\n        "access"(?:.*\n)+?      \}\n, $',
}
NUMBERS = {
    "ior-4.0-posix-fpp-2nodes-write-read-3reps.txt": r"^(?:write|read) +([0-9.]+) (?:.* )([0-9.]+) +[0-9] +$",
    "ior-3.2-posix-fpp-write-read-3reps.txt": r"^(?:write|read) +([0-9.]+) (?:.* )([0-9.]+) +[0-9] +$",
    "ior-4.0-posix-fpp-write-read-3reps.csv": r"^(?:write|read),([0-9.]+),.*,([0-9.]+),6,[0-9]$",
    "ior-4.0-posix-fpp-write-read-5reps.json": r'"(?:bwMiB|totalTime)": ([0-9.]+)',
    "ior-4.0-rank-details.csv": r"^(?:write|read),[0-9],([0-9.]+)e",
    "mdtest-4.0-files-only-3iters.txt": r"^ +File \w+ +([0-9.]+) +([0-9.]+) +([0-9.]+)",
    "mdtest-4.0-dirs-and-files.txt": r"^ +File \w+ +([0-9.]+) +([0-9.]+) +([0-9.]+)",
    "io500-sc25dev-debug-result_summary.txt": r"^\[RESULT\] +[\w-]+ +([0-9.]+)",
    "fio-3.33-seqwrite-4jobs-perjob.json": r'"(?:io_bytes|bw_bytes|runtime)" : ([1-9][0-9]*)',
    "elbencho-3.1-dirs-fpp-write-read-delete.json": r'"last_done":\{"elapsed_time_ms":"([0-9]+)".*bytes..s":"([0-9]+)"',
    "w8-threads.json": r'"(?:bytes|bytes_total)": ([0-9]+)',
}


def _figures(record: Record) -> list[float | None]:
    """Return every figure of a record that is compared with a target, in order."""
    found: list[float | None] = []
    for measurement in record.measurements or ():
        for rate in (measurement.gb_per_second, measurement.per_second, measurement.total_seconds):
            found += [None] if rate is None else [rate.mean, rate.min, rate.max]
        for each in measurement.repetitions:
            found += [
                each.gb_per_second,
                each.per_second,
                each.bytes,
                each.total_seconds,
                each.slowest_rank_seconds,
            ]
    for operation in record.operations or ():
        found += [operation.write_gb_per_second, operation.restore_gb_per_second, operation.bytes_total]
    return found


def _is_seen(original: Record, data: bytes) -> bool:
    """Tell whether a changed document is refused, doubted, or read as the original was."""
    try:
        record = parse(data)
    except UnreadableDocument:
        return True
    doubts = [(each.code, each.measurement) for each in original.doubts]
    if any(each.code in SEEN and (each.code, each.measurement) not in doubts for each in record.doubts):
        return True
    before, after = _figures(original), _figures(record)
    return len(before) == len(after) and all(
        one == other or (one is not None and other is not None and abs(one - other) <= PRECISION * abs(one))
        for one, other in zip(before, after, strict=True)
    )


def _file(name: str) -> str:
    return FILES[name].decode()


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_missing_or_stands_twice_is_seen(name: str) -> None:
    text, original = _file(name), parse(FILES[name])
    rows = list(re.finditer(ROWS[name], text, re.MULTILINE))
    assert len(rows) > 1
    for row in rows:
        after = text[row.end() :].removeprefix("\n")
        assert _is_seen(original, (text[: row.start()] + after).encode()), f"without {row[0][:80]}"
        twice = f"{text[: row.end()]}\n{text[row.start() :]}"
        assert _is_seen(original, twice.encode()), f"twice {row[0][:80]}"


@pytest.mark.parametrize("name", NUMBERS)
def test_a_digit_that_was_changed_is_seen(name: str) -> None:
    text, original = _file(name), parse(FILES[name])
    places = [
        at
        for found in re.finditer(NUMBERS[name], text, re.MULTILINE)
        for group in range(1, (found.re.groups or 0) + 1)
        for at in range(*found.span(group))
        if text[at].isdigit()
    ]
    assert len(places) > 10
    rng = random.Random(name)  # noqa: S311 - the same digits each time
    for at in places:
        digit = rng.choice([each for each in "0123456789" if each != text[at]])
        data = f"{text[:at]}{digit}{text[at + 1 :]}".encode()
        line = text.count("\n", 0, at) + 1
        assert _is_seen(original, data), f"{text[at - 8 : at]}[{digit}]{text[at + 1 : at + 8]} in line {line}"


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("ior-4.0-posix-fpp-2nodes-write-read-3reps.txt", "\nFinished "),
        ("ior-4.0-posix-fpp-write-read-5reps.json", '"Finished"'),
        ("mdtest-4.0-files-only-3iters.txt", "\n-- finished"),
        ("io500-sc25dev-debug-result_summary.txt", "\n[SCORE"),
        ("elbencho-3.1-dirs-fpp-write-read-delete.json", '{"phase_type":"RMFILES"'),
    ],
)
def test_a_file_that_is_cut_off_anywhere_is_seen(name: str, end: str) -> None:
    data, original = content(name), parse(content(name))
    for length in range(0, data.index(end.encode()), 7):
        assert _is_seen(original, data[:length]), f"cut at {length}"


# What a longer campaign found


def _changed(name: str, *changes: tuple[str, str]) -> bytes:
    text = FILES[name].decode()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text.encode()


def test_a_key_with_a_character_that_cannot_be_seen_is_named_without_it() -> None:
    made = examine(_changed("w8-threads.json", ('"bytes_total"', '"byt\x7fes\u202e_total"')))
    assert isinstance(made, UnreadableDocument)
    assert "byt\ufffdes\ufffd_total" in made.detail


def test_a_mean_beyond_the_largest_is_refused() -> None:
    made = examine(
        _changed(
            "ior-4.0-posix-fpp-read-only-1rep.json", ('"bwMeanMIB": 2370.9191', '"bwMeanMIB": 2370.9195')
        )
    )
    assert isinstance(made, UnreadableDocument)
    assert made.code == "inconsistent_summary"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("io500-sc25dev-debug-mdtest-easy-write.txt", "8237.909       8237.909", "8237.908       8237.909"),
        ("ior-4.0-posix-fpp-read-only-1rep.json", '"bwMaxMIB": 2370.9191', '"bwMaxMIB": 2370.9190'),
        ("ior-2.10-posix-fpp-write-read-3reps.txt", "1455.82    1332.19", "1332.18    1332.19"),
    ],
)
def test_a_least_beyond_the_largest_is_refused(name: str, before: str, after: str) -> None:
    made = examine(_changed(name, (before, after)))
    assert isinstance(made, UnreadableDocument)
    assert made.code == "inconsistent_summary"


def test_a_mean_time_of_zero_is_none() -> None:
    name = "ior-2.10-posix-fpp-write-read-3reps.txt"
    text = FILES[name].decode()
    row = next(
        line for line in text.splitlines() if line.startswith("read") and line.rstrip().endswith("EXCEL")
    )
    seconds = row.split()[-2]
    made = examine(text.replace(row, row.replace(f" {seconds} ", f" {'0' * len(seconds)} ")).encode())
    if not isinstance(made, UnreadableDocument):
        assert (made.measurements or [])[1].total_seconds is None


def test_the_mean_time_lies_between_the_shortest_and_the_longest() -> None:
    # A row of a second or more has two decimals, its mean five.
    for name in FILES:
        made = examine(FILES[name])
        for measurement in getattr(made, "measurements", None) or ():
            total = measurement.total_seconds
            assert total is None or total.min is None or total.min <= total.mean <= (total.max or 0)
