"""IO500's summary: the labelled file, and what can befall others of its kind."""

import random
import re

import pytest

from service.errors import UnreadableDocument
from service.parsers.measurement import DoubtCode, Measurement, Operation
from service.parsers.register import parse
from service.parsers.run import with_stated_nodes
from tests.parsers.manifest import Entry, codes, content, entries, outcome, refused

NAME = "io500-sc25dev-debug-result_summary.txt"
TEXT = content(NAME).decode()
VALID = TEXT.replace(" [INVALID]", "")

OPERATIONS = {
    "ior-easy-write": Operation.WRITE,
    "ior-easy-read": Operation.READ,
    "ior-hard-write": Operation.WRITE,
    "ior-hard-read": Operation.READ,
    "mdtest-easy-write": Operation.FILE_CREATE,
    "mdtest-easy-stat": Operation.FILE_STAT,
    "mdtest-easy-delete": Operation.FILE_REMOVE,
    "mdtest-hard-write": Operation.FILE_CREATE,
    "mdtest-hard-stat": Operation.FILE_STAT,
    "mdtest-hard-read": Operation.FILE_READ,
    "mdtest-hard-delete": Operation.FILE_REMOVE,
}


def by_name(text: str) -> dict[str, Measurement]:
    made = parse(text.encode()).measurements
    assert made is not None
    return {each.name or "": each for each in made}


def refused_at(text: str, code: str, words: str) -> UnreadableDocument:
    """Check that a document is refused with the line that holds the words."""
    error = refused(text.encode())
    assert error.code == code, error.detail
    assert error.line is not None
    assert words in text.splitlines()[error.line - 1]
    return error


@pytest.mark.parametrize("entry", entries("io500-summary"))
def test_the_labelled_file_is_read_as_its_manifest_says(entry: Entry) -> None:
    record = parse(content(entry["file"]))
    assert (record.tool, record.format, record.tool_version) == (
        "io500",
        "io500-summary",
        entry["tool_version"],
    )
    assert {DoubtCode(code) for code in entry["expected"]["must_warn"]} <= codes(record)
    assert record.measurements is not None
    phases = {phase["phase"]: phase for phase in entry["expected"]["phases"] if phase["phase"] in OPERATIONS}
    assert [each.name for each in record.measurements] == list(phases)
    invalid = {doubt.measurement for doubt in record.doubts if doubt.code is DoubtCode.IO500_INVALID}
    for at, each in enumerate(record.measurements):
        phase = phases[each.name or ""]
        assert each.operation is OPERATIONS[each.name or ""]
        assert (at in invalid) is phase["invalid"]
        assert (each.ranks, each.nodes, each.fsync, each.total_seconds) == (None, None, None, None)
        assert len(each.repetitions) == 1
        if phase["unit"] == "GiB/s":
            assert each.gb_per_second is not None
            assert each.gb_per_second.mean * 1e9 == pytest.approx(phase["bytes_per_s"], abs=1)
            assert each.per_second is None
        else:
            assert each.per_second is not None
            assert each.per_second.mean == pytest.approx(phase["value"] * 1000)
            assert each.gb_per_second is None


def test_the_two_tests_of_a_tool_are_told_apart() -> None:
    made = by_name(TEXT)
    assert len({(each.test, each.operation) for each in made.values()}) == len(made)
    assert made["ior-easy-write"].test == made["ior-easy-read"].test
    assert made["mdtest-hard-write"].test == made["mdtest-hard-delete"].test


def test_a_valid_run_is_not_called_invalid() -> None:
    record = parse(VALID.encode())
    assert DoubtCode.IO500_INVALID not in codes(record)
    assert DoubtCode.INCOMPLETE_RUN not in codes(record)


def test_a_score_marked_invalid_alone_voids_every_phase() -> None:
    record = parse((VALID.rstrip("\n") + " [INVALID]\n").encode())
    assert [each.measurement for each in record.doubts if each.code is DoubtCode.IO500_INVALID] == [None]


def test_what_the_summary_cannot_say_is_doubted() -> None:
    record = parse(VALID.encode())
    about: dict[DoubtCode, set[str | None]] = {}
    assert record.measurements is not None
    for doubt in record.doubts:
        name = None if doubt.measurement is None else record.measurements[doubt.measurement].name
        about.setdefault(doubt.code, set()).add(name)
    assert about[DoubtCode.FSYNC_UNKNOWN] == {"ior-easy-write", "ior-hard-write", "mdtest-hard-write"}
    assert about[DoubtCode.CACHED_READ] == {"ior-easy-read", "ior-hard-read", "mdtest-hard-read"}
    assert about[DoubtCode.UNKNOWN_TOPOLOGY] == {None}
    assert about[DoubtCode.FEW_REPETITIONS] == set(OPERATIONS)


def test_the_poster_may_state_the_nodes() -> None:
    record = with_stated_nodes(parse(VALID.encode()), nodes=4)
    assert record.measurements is not None
    assert {each.nodes for each in record.measurements} == {4}
    assert DoubtCode.UNKNOWN_TOPOLOGY not in codes(record)


def test_the_marks_of_2020_are_read() -> None:
    text = "IO500 version io500-sc20_v3\n" + "".join(
        line.replace("[RESULT]", "[RESULT-invalid]").replace(" [INVALID]", "") + "\n"
        if "[INVALID]" in line
        else line + "\n"
        for line in TEXT.replace("[SCORE ]", "[SCORE-invalid]").splitlines()[1:]
        if "[      ]" not in line
    )
    record = parse(text.encode())
    assert record.tool_version == "io500-sc20_v3"
    assert record.measurements == parse(TEXT.encode()).measurements
    assert {each.measurement for each in record.doubts if each.code is DoubtCode.IO500_INVALID} == {
        0,
        1,
        2,
        3,
    }


def test_the_score_of_early_2020_is_read() -> None:
    text = (
        VALID.replace("[SCORE ]", "[SCORE]")
        .replace("0.694410 GiB/s", "0.694410 GB/s")
        .replace("GiB/s :", "GiB/s  :")
    )
    record = parse(text.encode())
    assert DoubtCode.INCOMPLETE_RUN not in codes(record)
    assert record.measurements == parse(VALID.encode()).measurements


def test_the_extended_phases_are_passed_over_and_not_scored() -> None:
    extra = "[RESULT]     ior-rnd1MB-write        9.000000 GiB/s : time 300.000 seconds\n"
    text = (
        VALID.replace("[SCORE ]", extra + "[SCORE ]")
        + VALID.splitlines()[-1].replace("[SCORE ]", "[SCOREX]")
        + "\n"
    )
    assert by_name(text) == by_name(VALID)


def test_a_rate_of_zero_is_a_phase_that_was_not_run() -> None:
    text = re.sub(r"(ior-easy-read +)\S+", r"\g<1>0.000000", VALID)
    text = re.sub(r"Bandwidth \S+ (.*) TOTAL \S+", r"Bandwidth 0.000000 \1 TOTAL 0.000000", text)
    assert set(OPERATIONS) - set(by_name(text)) == {"ior-easy-read"}


def test_nothing_measured_is_refused() -> None:
    refused_at("IO500 version io500-sc25 (standard)\n", "no_results", "version")
    text = re.sub(r"(\] +[\w-]+ +)\S+( (?:GiB/s|kIOPS))", r"\g<1>0.000000\2", VALID)
    text = re.sub(r"\b(Bandwidth|IOPS|TOTAL) \S+", r"\1 0.000000", text)
    refused_at(text, "no_results", "version")


def test_lines_without_the_first_or_the_last_are_read_and_doubted() -> None:
    lines = VALID.splitlines()
    record = parse("\n".join(lines[1:-1]).encode())
    assert record.tool_version is None
    assert DoubtCode.INCOMPLETE_RUN in codes(record)


def test_a_last_line_that_was_cut_is_no_result() -> None:
    for stop in ("GiB/s : time 1.020", "69441", "634447"):
        text = VALID[: VALID.rindex(stop)]
        assert DoubtCode.INCOMPLETE_RUN in codes(parse(text.encode()))
    cut = VALID[: VALID.index("99856 kIOPS")]
    assert set(OPERATIONS) - set(by_name(cut)) == {"mdtest-hard-delete"}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("0.155614", "-0.155614", "bad_number"),
        ("0.155614", "0,155614", "bad_number"),
        ("0.155614", "1.5e-1", "bad_number"),
        ("0.155614", "nan", "bad_number"),
        ("0.155614", "inf", "bad_number"),
        ("0.155614", "155614000000.000000", "bad_number"),
        ("time 0.822", "time -0.822", "bad_number"),
        ("time 0.822", "time inf", "bad_number"),
        ("0.155614 GiB/s", "0.155614 MiB/s", "bad_row"),
        ("0.155614 GiB/s", "0.155614 kIOPS", "bad_row"),
        ("0.822 seconds", "0.822 second", "bad_row"),
        ("0.822 seconds", "0.822 seconds [INVALD]", "bad_row"),
        ("ior-hard-write ", "ior-easy-write ", "duplicate_row"),
    ],
)  # fmt: skip
def test_a_result_that_is_none_is_refused(old: str, new: str, code: str) -> None:
    assert old in VALID
    refused_at(VALID.replace(old, new), code, new.strip())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.155614", "0.165614"),
        ("8.237909", "9.237909"),
        ("[RESULT]       ior-hard-write", "[RESUL7]       ior-hard-write"),
        ("0.694410", "0.694510"),
        ("107.362611", "107.362711"),
        ("8.634447", "8.634547"),
    ],
)
def test_a_score_that_is_not_the_mean_of_the_rates_is_refused(old: str, new: str) -> None:
    assert old in VALID
    refused_at(VALID.replace(old, new), "inconsistent_summary", "[SCORE ]")


def test_a_damaged_score_within_the_file_is_refused() -> None:
    refused_at(VALID.replace("TOTAL", "TOTA1") + "\nThe result files are here\n", "bad_row", "[SCORE ]")
    refused_at("[SCORE ] Bandwidth 1.0 GiB/s : IOPS 1.0 kiops : TOTAL 1.0\n" + VALID, "bad_row", "[SCORE ]")


def test_a_result_after_the_score_is_refused() -> None:
    late = "[RESULT]     mdtest-easy-read        1.000000 kIOPS : time 1.000 seconds\n"
    refused_at(VALID + late, "bad_row", "mdtest-easy-read")


def test_several_runs_are_all_read() -> None:
    record = parse((VALID + VALID).encode())
    assert record.measurements is not None
    assert [each.run for each in record.measurements] == [0] * 11 + [1] * 11
    assert DoubtCode.SEVERAL_RUNS in codes(record)


@pytest.mark.parametrize("prefix", ["[1,3]<stdout>:", "3: ", "2026-11-29T10:00:07Z node01 "])
def test_what_stands_around_the_lines_is_passed_over(prefix: str) -> None:
    lines = [
        "module load mpi",
        *VALID.splitlines(),
        "",
        "The result files are stored in the directory: ./results",
    ]
    text = "\n".join(prefix.replace("3", str(at % 7)) + line for at, line in enumerate(lines))
    assert by_name(text) == by_name(VALID)


def test_a_digit_changed_never_gives_another_rate() -> None:
    truth = by_name(TEXT)
    rng = random.Random(NAME)  # noqa: S311 - the same mutations each time
    digits = [at for at, character in enumerate(TEXT) if character.isdigit()]
    for _ in range(600):
        at = rng.choice(digits)
        made = outcome((TEXT[:at] + rng.choice("0123456789") + TEXT[at + 1 :]).encode())
        if isinstance(made, UnreadableDocument):
            continue
        for each in made.measurements or []:
            known = truth[each.name or ""]
            rate, true_rate = (one.gb_per_second or one.per_second for one in (each, known))
            assert rate is not None
            assert true_rate is not None
            # Each rate counts for a fourth or an eighth of a score that has six digits or more.
            assert rate.mean == pytest.approx(true_rate.mean, rel=3e-5)
