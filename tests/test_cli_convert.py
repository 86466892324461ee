"""`stallbudget convert` and `stallbudget recorder`, as they are typed."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.testing import CliRunner, Result

from service import recorder
from service.cli import StorageKind, Trainer, app
from service.parsers.conversion import READERS
from service.parsers.dcp_timing_document import Storage
from service.parsers.register import parse

FOREIGN = Path(__file__).parent / "data" / "dcp" / "foreign"
NEMO = FOREIGN / "nemo-style.log"
MEGATRON = FOREIGN / "megatron-timers-style.log"
STATED = ("--run-id", "run-1", "--nodes", "1", "--world-size", "2", "--storage-label", "pfs-a")


def convert(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["convert", *(str(argument) for argument in arguments)], input=stdin)


def operations(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    made: list[dict[str, Any]] = json.loads(result.stdout)["operations"]
    return made


def test_what_is_printed_is_a_document_and_nothing_else() -> None:
    done = convert("nemo", NEMO, *STATED)
    assert done.exit_code == 0
    assert parse(done.stdout_bytes).run_id == "run-1"
    assert done.stdout.endswith("\n}\n")
    assert "read as synchronous" in done.stderr


def test_many_files_make_one_document() -> None:
    files = sorted(FOREIGN.glob("dcp-logger.w4_async_thread.*"))
    (operation,) = operations(
        convert("torch-dcp-log", *files, "--run-id", "r", "--nodes", 1, "--storage-label", "x")
    )
    assert len(operation["ranks"]) == 4


def test_all_that_is_missing_is_named_in_one_message() -> None:
    done = convert("megatron", MEGATRON)
    assert (done.exit_code, done.stdout) == (2, "")
    for option in ("--run-id", "--nodes", "--world-size", "--storage-label", "--mode"):
        assert option in done.stderr
    assert "Traceback" not in done.stderr


def test_a_refused_line_is_named_with_its_file(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("noise\n" + NEMO.read_text().splitlines()[0].replace("0.535", "-0.535"))
    done = convert("nemo", log, *STATED)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{log}:2: ")


def test_a_log_may_come_from_a_pipe() -> None:
    assert len(operations(convert("nemo", "-", *STATED, stdin=NEMO.read_bytes()))) == 5


def test_every_statement_reaches_the_document() -> None:
    done = convert(
        "torchtitan", FOREIGN / "torchtitan-style-2024-to-2026-05.log", *STATED, "--mode", "async_save",
        "--checkpoint-bytes", 1000000000, "--saved-world-size", 4, "--storage-kind", "nas", "--label", "a try",
        "--checkpointer-version", "2.13.0", "--time-zone", "+02:00", "--recorded-at", "2024-01-02T03:04:05Z",
    )  # fmt: skip
    made = json.loads(done.stdout)
    assert made["recorded_at"] == "2024-01-02T03:04:05Z"
    assert made["label"] == "a try"
    assert made["storage"] == {"label": "pfs-a", "kind": "nas"}
    assert made["software"]["checkpointer_version"] == "2.13.0"
    assert {operation["op"] for operation in made["operations"]} == {"async_save", "resharded_load"}
    assert {operation["checkpoint_bytes"] for operation in made["operations"]} == {1000000000}
    assert made["operations"][0]["started_at"] == "2026-11-29T14:31:14.696000Z"


@pytest.mark.parametrize(
    ("zone", "start"),
    [("UTC", "T16:32:19"), ("Z", "T16:32:19"), ("+01:00", "T15:32:19"), ("-03:30", "T20:02:19")],
)
def test_a_time_zone_is_a_name_or_an_offset(zone: str, start: str) -> None:
    log = FOREIGN / "torchtitan-style.log"
    starts = [
        one["started_at"] for one in operations(convert("torchtitan", log, *STATED, "--time-zone", zone))
    ]
    assert any(start in at for at in starts)


def test_the_name_of_a_time_zone_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not every machine that tests run on has the names.
    monkeypatch.setattr("service.cli.ZoneInfo", {"Europe/Berlin": timezone(timedelta(hours=1))}.__getitem__)
    log = FOREIGN / "torchtitan-style.log"
    starts = [
        one["started_at"]
        for one in operations(convert("torchtitan", log, *STATED, "--time-zone", "Europe/Berlin"))
    ]
    assert any("T15:32:19" in at for at in starts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nemo", "/nowhere/job.log", *STATED), "/nowhere/job.log: No such file or directory."),
        (("nemo", FOREIGN, *STATED), "Is a directory."),
        (("nemo", NEMO, *STATED, "--time-zone", "Atlantis"), "--time-zone: 'Atlantis' is no time zone"),
        (("nemo", NEMO, *STATED, "--time-zone", "+99:00"), "--time-zone: '+99:00' is no time zone"),
        (("nemo", NEMO, *STATED, "--time-zone", ""), "--time-zone: '' is no time zone"),
        (("nemo", NEMO, *STATED, "--recorded-at", "2024-01-01T00:00:00"), "--recorded-at"),
        (("nemo", NEMO, *STATED, "--recorded-at", "noon"), "--recorded-at"),
        (("nemo", NEMO, *STATED, "--nodes", "0"), "--nodes"),
        (("nemo", NEMO, *STATED, "--mode", "sync"), "sync"),
        (("ior", NEMO, *STATED), "ior"),
        (("nemo", MEGATRON, *STATED), "no line with Global Checkpoint Save"),
    ],
)
def test_wrong_use_ends_with_2_and_says_why(arguments: tuple[object, ...], said: str) -> None:
    done = convert(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_command_knows_every_reader_and_every_kind_of_storage() -> None:
    assert [one.value for one in Trainer] == list(READERS)
    assert [one.value for one in StorageKind] == list(get_args(get_type_hints(Storage)["kind"]))


def test_the_recorder_is_printed_as_it_is_and_stands_on_its_own() -> None:
    printed = CliRunner().invoke(app, ["recorder"])
    assert printed.stdout == Path(recorder.__file__).read_text("utf-8")
    assert "import service" not in printed.stdout
    assert "from service" not in printed.stdout


def test_converting_loads_no_web_framework() -> None:
    code = (
        "import sys; from service.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print(sorted({'fastapi', 'sqlalchemy', 'httpx', 'uvicorn'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "convert", "nemo", NEMO, *STATED], capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_log_without_times_gives_the_same_document_twice(tmp_path: Path) -> None:
    log = tmp_path / "megatron.log"
    log.write_bytes((FOREIGN / "megatron-timers-style.log").read_bytes())
    said = ["--run-id", "m", "--storage-label", "x", "--nodes", "1", "--world-size", "8", "--mode", "save"]
    once, twice = (CliRunner().invoke(app, ["convert", "megatron", str(log), *said]) for _ in range(2))
    assert once.exit_code == 0
    assert once.stdout == twice.stdout
    written = datetime.fromtimestamp(log.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert written in once.stdout
