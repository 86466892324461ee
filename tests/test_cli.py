"""The command `stallbudget`: what it prints, and how it fails: status 2 and a sentence, never a traceback."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from service.api.examples import GIVEN_STORAGE, LLAMA_405B_SYNC
from service.app import create_app
from service.cli import app
from service.settings import PREFIX, Settings
from service.sizing.size import size
from service.sizing.spec import ScenarioSpec
from service.store import migrate, tables
from service.store.database import Database

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def failed(result: Result) -> str:
    """Return what a command that failed says."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    assert result.stderr.strip().endswith(".")
    return result.stderr.strip()


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(LLAMA_405B_SYNC), "utf-8")
    return file


def test_size_prints_the_sizing_that_the_service_answers(spec: Path) -> None:
    result = run("size", spec)
    assert (result.exit_code, result.stderr) == (0, "")
    expected = size(ScenarioSpec.model_validate(LLAMA_405B_SYNC)).model_dump(mode="json", exclude_none=True)
    assert json.loads(result.stdout) == expected
    assert "null" not in result.stdout
    assert run("size", spec).stdout == result.stdout


def test_size_explains_when_asked(spec: Path) -> None:
    plain, explained = json.loads(run("size", spec).stdout), json.loads(run("size", "--explain", spec).stdout)
    assert explained.pop("explanation")
    assert explained == plain


def test_size_reads_standard_input_and_a_byte_order_mark() -> None:
    text = json.dumps(GIVEN_STORAGE)
    plain = run("size", "-", stdin=text.encode())
    assert plain.exit_code == 0
    assert json.loads(plain.stdout)["delivered"]["feasible"] is True
    assert run("size", "-", stdin=b"\xef\xbb\xbf" + text.encode()).stdout == plain.stdout


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"", "#: "),
        (b"{", "#: "),
        (b"[]", "#: "),
        (b"null", "#: "),
        (b'{"a": NaN}', "#/a: "),
        (b'{"a": 1, "a": 1}', "#/a: "),
        (b"[" * 70, "#: "),
        (b'"\\ud800"', "#: "),
        (b"\xff\xfe{\x00}\x00", "byte 0 is not UTF-8"),
        (b"{}", "#/model: "),
        (json.dumps({**LLAMA_405B_SYNC, "restart": {}}).encode(), "#/restart/seconds: "),
        (json.dumps({**LLAMA_405B_SYNC, "failures": {}}).encode(), "#/failures: "),
        (
            json.dumps({**LLAMA_405B_SYNC, "cluster": {"gpus": 1e999}}).replace("Infinity", "1e999").encode(),
            "#/cluster/gpus: ",
        ),
        (
            json.dumps({**LLAMA_405B_SYNC, "failures": {"mtbf_hours": 1e-4, "mtbf_gpus": 1}}).encode(),
            "#/failures: ",
        ),
    ],
)
def test_size_names_the_file_and_the_place_of_what_is_wrong(tmp_path: Path, text: bytes, place: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_bytes(text)
    assert failed(run("size", file)).startswith(f"{file}: {place}")
    assert failed(run("size", "-", stdin=text)).startswith(f"-: {place}")


def test_size_names_every_wrong_field_on_its_line() -> None:
    text = json.dumps(
        {**LLAMA_405B_SYNC, "cluster": {"gpus": "8", "nodes": 1}, "save": {"mode": "sync", "headroom": 2}}
    )
    lines = failed(run("size", "-", stdin=text.encode())).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["#/cluster/gpus", "#/cluster/nodes", "#/save/headroom"]


def test_size_says_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    assert failed(run("size", tmp_path / "none.json")).endswith("No such file or directory.")
    assert failed(run("size", tmp_path)).endswith("Is a directory.")


def test_openapi_prints_the_document_of_the_service(tmp_path: Path) -> None:
    printed = run("openapi")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == create_app(Settings(database_url="sqlite:///unused.db")).openapi()
    file = tmp_path / "openapi.json"
    assert (run("openapi", file).exit_code, file.read_text("utf-8")) == (0, printed.stdout)


def test_openapi_needs_no_setting_and_makes_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", "mysql://nothing")
    assert run("openapi").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_openapi_says_why_a_file_cannot_be_written(tmp_path: Path) -> None:
    message = failed(run("openapi", tmp_path / "no" / "folder.json"))
    assert message.endswith("No such file or directory.")


def test_migrate_brings_a_database_to_this_version_and_again_does_nothing(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", empty_database_url)
    for _ in range(2):
        assert run("migrate").exit_code == 0
        with closing(Database(empty_database_url)) as database:
            assert migrate.is_at_head(database)


def test_migrate_without_a_setting_uses_a_file_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("migrate").exit_code == 0
    assert (tmp_path / "stallbudget.db").is_file()


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_a_database_that_cannot_be_opened_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("no database " * 100)
    for url in (
        f"sqlite:///{tmp_path}/none/a.db",
        f"sqlite:///{broken}",
        "postgresql://me:hunter2@127.0.0.1:1/nothing",
    ):
        monkeypatch.setenv("STALLBUDGET_DATABASE_URL", url)
        message = failed(run(command))
        assert message.startswith("STALLBUDGET_DATABASE_URL: ")
        assert "hunter2" not in message


def test_a_database_of_a_later_version_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", f"sqlite:///{tmp_path}/later.db")
    assert run("migrate").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "later.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "9999" in failed(run("migrate"))


@pytest.mark.parametrize("command", ["migrate", "serve"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "65536"),
        ("DATABASE_URL", "mysql://me:hunter2@host/name"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "hunter2"),
        ("MAX_JSON_BYTES", "1"),
        ("POOL_SIZE", "0"),
        ("FULL_SCALE_LOW_FRACTION", "nan"),
    ],
)
def test_a_bad_setting_is_a_sentence_that_names_it(
    monkeypatch: pytest.MonkeyPatch, command: str, name: str, value: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    message = failed(run(command))
    assert message.startswith(f"{PREFIX}{name}: ")
    assert len(message.splitlines()) == 1
    assert "hunter2" not in message


def test_help_names_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("serve", "migrate", "backup", "export", "import", "prune", "openapi", "size"):
        assert command in result.stdout
        assert run(command, "--help").exit_code == 0


@pytest.mark.parametrize("arguments", [["sise"], ["size"], ["size", "a", "b"], ["size", "--no-such", "a"]])
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_the_command_fails_in_a_process_of_its_own_without_a_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", "size", str(tmp_path / "none.json")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path / 'none.json'}: No such file or directory.\n"


def test_serve_on_a_port_in_use_ends_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environment = {
            **os.environ,
            "STALLBUDGET_PORT": str(taken.getsockname()[1]),
            "STALLBUDGET_DATABASE_URL": f"sqlite:///{tmp_path}/a.db",
        }
        done = subprocess.run(
            [sys.executable, "-m", "service.cli", "serve"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=30,
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "address already in use" in done.stderr


@pytest.fixture
def migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path / 'keys.db'}"
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", url)
    assert run("migrate").exit_code == 0
    return url


def test_a_key_is_printed_alone_and_opens_its_workspace_until_it_is_revoked(migrated: str) -> None:
    assert run("workspace", "create", "acme").exit_code == 0
    made = run("key", "create", "--name", "ci", "--scope", "read", "--scope", "submit", "--workspace", "acme")
    key = made.stdout.removesuffix("\n")
    assert re.fullmatch(r"sbk_[0-9a-f]{32}_[0-9a-f]{64}", key)
    id_, secret = key.split("_")[1:]
    assert secret not in made.stderr
    with TestClient(create_app(Settings(database_url=migrated)), base_url="http://127.0.0.1") as client:
        assert client.get("/v1/scenarios").status_code == 401
        assert client.get("/v1/scenarios", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        rotated = run("key", "rotate", id_).stdout.strip()
    assert rotated != key
    (line,) = run("key", "list").stdout.splitlines()
    assert line.split("  ")[1:5] == ["acme", "ci", "read,submit", "good"]
    assert "last used" in line
    assert secret not in line
    assert run("key", "list", "--workspace", "default").stdout == ""
    assert run("key", "revoke", id_).exit_code == 0
    assert "revoked" in run("key", "list").stdout
    assert "was revoked" in failed(run("key", "rotate", id_))
    with TestClient(create_app(Settings(database_url=migrated)), base_url="http://127.0.0.1") as client:
        for each in (key, rotated):
            assert client.get("/v1/scenarios", headers={"Authorization": f"Bearer {each}"}).status_code == 401
    with closing(Database(migrated)) as database, database.read() as transaction:
        rows = transaction.execute(select(tables.audit_events).order_by(tables.audit_events.c.at)).all()
    told = [(row.actor, row.resource, row.action) for row in rows]
    assert told == [
        ("cli", "workspace", "create"),
        ("cli", "api_key", "create"),
        ("cli", "api_key", "rotate"),
        ("cli", "api_key", "revoke"),
    ]


def test_workspaces_are_listed_by_name(migrated: str) -> None:
    made = run("workspace", "create", "acme").stdout.strip()
    lines = [line.split("  ") for line in run("workspace", "list").stdout.splitlines()]
    assert [line[1] for line in lines] == ["acme", "default"]
    assert lines[0][0] == made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("workspace", "create", "default"), "named 'default'"),
        (("workspace", "create", ""), "1 to 200"),
        (("key", "create", "--name", "a\x00b", "--scope", "read"), "control"),
        (("key", "create", "--name", "a", "--scope", "read", "--workspace", "none"), "no workspace 'none'"),
        (("key", "list", "--workspace", "none"), "no workspace 'none'"),
        (("key", "revoke", "x"), "no id of a key"),
        (("key", "rotate", "00000000-0000-4000-8000-000000000000"), "no API key"),
    ],
)
def test_what_cannot_be_done_to_keys_is_said_in_a_sentence(
    migrated: str, arguments: tuple[str, ...], said: str
) -> None:
    assert said in failed(run(*arguments))


def test_keys_need_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    assert "stallbudget migrate" in failed(run("key", "create", "--name", "a", "--scope", "read"))


def test_an_export_is_the_same_to_a_file_and_to_the_terminal_and_is_imported_under_another_name(
    migrated: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    assert run("export", "--workspace", "default", file).exit_code == 0
    printed = run("export", "--workspace", "default")
    assert (printed.exit_code, printed.stdout_bytes) == (0, file.read_bytes())
    assert "0 runs" in printed.stderr
    for _ in range(2):
        assert run("import", file, "--workspace", "copy").exit_code == 0
        assert run("import", "-", "--workspace", "copy", stdin=file.read_bytes()).exit_code == 0
    assert "copy" in run("workspace", "list").stdout
    with closing(Database(migrated)) as database, database.read() as transaction:
        rows = transaction.execute(select(tables.audit_events).order_by(tables.audit_events.c.at)).all()
    assert [row.action for row in rows].count("import") == 4
    assert [row.action for row in rows].count("create") == 1


def test_a_backup_is_made_and_never_over_another(migrated: str, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    assert run("backup", file).exit_code == 0
    with closing(Database(f"sqlite:///{file}")) as database:
        assert migrate.is_at_head(database)
    assert "there is a file of that name" in failed(run("backup", file))


def test_prune_counts_by_workspace(migrated: str) -> None:
    assert run("workspace", "create", "acme").exit_code == 0
    everywhere = run("prune", "--documents-older-than", "30").stdout.splitlines()
    assert everywhere == ["acme: 0 documents removed.", "default: 0 documents removed."]
    one = run("prune", "--documents-older-than", "30", "--workspace", "acme").stdout.splitlines()
    assert one == everywhere[:1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "--workspace", "none"), "no workspace 'none'"),
        (("export", "--workspace", "default", "{folder}"), "there is a file of that name"),
        (("export", "--workspace", "default", "{folder}/none/a"), "No such file or directory"),
        (("import", "{folder}/none"), "No such file or directory"),
        (("import", "{folder}"), "Is a directory"),
        (("import", "{spec}"), "no archive"),
        (("import", "{spec}", "--workspace", "new"), "no archive"),
        (("backup", "{folder}/none/a.db"), "No such file or directory"),
        (("prune", "--documents-older-than", "1", "--workspace", "none"), "no workspace 'none'"),
    ],
)
def test_what_cannot_be_kept_or_read_is_said_in_a_sentence_and_leaves_nothing(
    migrated: str, tmp_path: Path, spec: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = sorted(tmp_path.iterdir())
    given = [argument.format(folder=tmp_path, spec=spec) for argument in arguments]
    assert said in failed(run(*given))
    assert [place for place in sorted(tmp_path.iterdir()) if "-" not in place.name] == [
        place for place in before if "-" not in place.name
    ]
    assert run("workspace", "list").stdout.count("\n") == 1


def test_postgres_is_not_backed_up_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/nothing")
    message = failed(run("backup", tmp_path / "a"))
    assert "pg_dump" in message
    assert "hunter2" not in message


class Served(Exception):
    """The server was started."""


@pytest.mark.parametrize(
    ("settings", "has_key", "starts"),
    [
        ({}, False, True),
        ({"HOST": "localhost"}, False, True),
        ({"HOST": "::1"}, False, True),
        ({"HOST": "0.0.0.0"}, False, False),  # noqa: S104 - not bound to
        ({"HOST": "::"}, False, False),
        ({"HOST": "0.0.0.0"}, True, True),  # noqa: S104 - not bound to
        ({"HOST": "0.0.0.0", "ACCESS": "keys"}, False, True),  # noqa: S104 - not bound to
    ],
)
def test_beyond_the_loopback_it_does_not_start_without_a_key(
    migrated: str,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    has_key: bool,
    starts: bool,
) -> None:
    def serve(*_: object, **__: object) -> None:
        raise Served

    monkeypatch.setattr("uvicorn.Server.run", serve)
    for name, value in settings.items():
        monkeypatch.setenv(PREFIX + name, value)
    if has_key:
        assert run("key", "create", "--name", "a", "--scope", "admin").exit_code == 0
    result = run("serve")
    if starts:
        assert isinstance(result.exception, Served)
    else:
        assert "stallbudget key create" in failed(result)
