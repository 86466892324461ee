"""The commands of deploy/README.md do what it says: backup and restore under load, the way to the other database."""

import hashlib
import json
import os
import shlex
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import psycopg
from sqlalchemy import func, select
from sqlalchemy.engine import make_url

from service.store import archive, benchmark_runs, migrate, tables, workspaces
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database
from tests.api.asking import DCP, SYNC, dcp
from tests.conftest import postgres_tools
from tests.served import SECONDS, Served, served
from tests.test_readme import blocks

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "deploy/README.md").read_text("utf-8")
WRITERS = 3
BEFORE = 15
"""Uploads that are acknowledged before a backup begins."""

NOT_RUN_HERE = {
    # What `make container` stands in for.
    'export STALLBUDGET_POSTGRES_PASSWORD="$(openssl rand -hex 32)"\ndocker compose up --build --detach',
    "docker compose run --rm service stallbudget key create --name first --scope admin",
}


def commands(below: str) -> list[str]:
    """Return the blocks of commands below a heading of the page."""
    part = PAGE.partition(f" {below}\n")[2]
    assert part, below
    level = "\n## " if f"\n## {below}\n" in PAGE else "\n##"
    return [block.commands for block in blocks(part.split(level)[0])]


def run(script: str, folder: Path, **environment: str) -> None:
    """Run commands of the page in a folder, with this checkout's command."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    prelude = f'set -e\nstallbudget() {{ {shlex.quote(sys.executable)} -m service.cli "$@"; }}\n'
    done = subprocess.run(
        ["sh"],
        input=prelude + script,
        cwd=folder,
        env={**given, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_of_the_page_is_run_by_a_test() -> None:
    tested = {
        command
        for heading in ("SQLite", "Postgres", "A workspace as a file", "How long documents are kept")
        for command in commands(heading)
    }
    assert {block.commands for block in blocks(PAGE)} == tested | NOT_RUN_HERE


class Load:
    """Uploads that go on until they are told to stop.

    Attributes:
        acknowledged: The ids of the runs that were answered with 201, each with the digest of what was posted.
    """

    def __init__(self, server: Served) -> None:
        self._url = server.url
        made = httpx.post(f"{server.url}/v1/scenarios", json={"name": "a", "spec": SYNC})
        self._scenario_id = made.json()["id"]
        self.acknowledged: dict[UUID, str] = {}
        self.problems: list[str] = []
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._upload, args=(n,)) for n in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _upload(self, writer: int) -> None:
        with httpx.Client(base_url=self._url, timeout=SECONDS) as client:
            at = 0
            while not self._stop.is_set():
                at += 1
                document = dcp(f"{writer}-{at}")
                try:
                    answer = client.post(
                        f"/v1/scenarios/{self._scenario_id}/benchmark-runs", content=document
                    )
                    problem = None if answer.status_code == 201 else answer.text
                except httpx.HTTPError as error:
                    problem = repr(error)
                with self._changed:
                    if problem is None:
                        self.acknowledged[UUID(answer.json()["id"])] = hashlib.sha256(document).hexdigest()
                    else:
                        self.problems.append(problem)
                        self._stop.set()
                    self._changed.notify_all()

    def goes_on(self, uploads: int) -> None:
        """Wait until so many more are acknowledged."""
        with self._changed:
            enough = len(self.acknowledged) + uploads
            assert self._changed.wait_for(
                lambda: len(self.acknowledged) >= enough or self.problems, timeout=SECONDS
            )
        assert self.problems == []

    def stops(self) -> None:
        """Send no more, and wait for what was sent."""
        self._stop.set()
        for thread in self._threads:
            thread.join(SECONDS)
        assert self.problems == []


def stored(database: Database) -> dict[UUID, str]:
    """Return the runs, each with the digest of its document as it is unpacked."""
    with database.read() as transaction:
        ids = list(transaction.scalars(select(tables.benchmark_runs.c.id)))
        return {
            id_: hashlib.sha256(
                benchmark_runs.get_document(transaction, workspace_id=DEFAULT_WORKSPACE, id=id_).body
            ).hexdigest()
            for id_ in ids
        }


def exported(database: Database) -> bytes:
    sink = BytesIO()
    with database.read() as transaction:
        place = workspaces.find(transaction, name="default")
        archive.write(transaction, sink, workspace_id=place.id, workspace=place.name)
    return sink.getvalue()


def check(restored_url: str, *, least: dict[UUID, str], most: dict[UUID, str]) -> bytes:
    """Hold a restored database against what was acknowledged before and after its backup; return its archive."""
    with closing(Database(restored_url)) as restored:
        assert migrate.is_at_head(restored)
        found = stored(restored)
        assert least.items() <= found.items() <= most.items()
        return exported(restored)


def test_sqlite_is_backed_up_under_load_and_restored_elsewhere(migrated_sqlite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in use"
    folder.mkdir()
    file = folder / "stallbudget.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    back_up, restore = commands("SQLite")
    with served(f"sqlite:///{file}", writing_per_minute=0) as server:
        load = Load(server)
        try:
            load.goes_on(BEFORE)
            least = dict(load.acknowledged)
            run(back_up, folder)
            load.goes_on(BEFORE)
        finally:
            load.stops()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        # What is there is another database, with a log of its own that must not be taken for that of the backup.
        for name in ("stallbudget.db", "stallbudget.db-wal", "stallbudget.db-shm"):
            (elsewhere / name).write_bytes(b"something else")
        backup = folder / "stallbudget-backup.db"
        assert backup.stat().st_mode & 0o777 == 0o600
        backup.rename(elsewhere / backup.name)
        run(restore, elsewhere)
        restored = f"sqlite:///{elsewhere / 'stallbudget.db'}"
        check(restored, least=least, most=load.acknowledged)
        # And once more with nobody writing: then the two are the same.
        run(back_up, folder)
        (folder / "stallbudget-backup.db").replace(elsewhere / "stallbudget-backup.db")
        run(restore, elsewhere)
        with closing(Database(f"sqlite:///{file}")) as original:
            assert check(restored, least=load.acknowledged, most=load.acknowledged) == exported(original)
            assert stored(original) == load.acknowledged


STAND_IN = """\
docker() {
    case "$2" in
        exec) shift 4; tool=$1; shift; "$TOOLS/$tool" "$@" ;;
        stop | up) : ;;
        *) return 1 ;;
    esac
}
"""
"""For Docker: what is to be run in the container of Postgres is run here."""


def test_postgres_is_backed_up_under_load_and_restored_elsewhere(
    postgres_server: str, tmp_path: Path
) -> None:
    server_url = make_url(postgres_server)
    names = [f"stallbudget_test_{uuid4().hex}" for _ in range(2)]
    urls = [server_url.set(database=name).render_as_string(hide_password=False) for name in names]
    host = server_url.query.get("host") or server_url.host
    environment = {
        "TOOLS": str(postgres_tools()),
        "PGHOST": str(host),
        "PGPORT": str(server_url.port or 5432),
        "PGPASSWORD": server_url.password or "",
    }
    back_up, restore = (
        STAND_IN
        + script.replace("--username stallbudget", f"--username {server_url.username}")
        .replace(" --dbname stallbudget", f" --dbname {name}")
        .replace(" stallbudget >", f" {name} >")
        .replace("--if-exists stallbudget\n", f"--if-exists {name}\n")
        .replace(f"createdb --username {server_url.username} stallbudget\n",
                 f"createdb --username {server_url.username} {name}\n")
        for script, name in zip(commands("Postgres"), names, strict=True)
    )  # fmt: skip
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE {names[0]}".encode())
            with served(urls[0], writing_per_minute=0) as server:
                load = Load(server)
                try:
                    load.goes_on(BEFORE)
                    least = dict(load.acknowledged)
                    run(back_up, tmp_path, **environment)
                    load.goes_on(BEFORE)
                finally:
                    load.stops()
                run(restore, tmp_path, **environment)
                check(urls[1], least=least, most=load.acknowledged)
                run(back_up + "\n" + restore, tmp_path, **environment)
                with closing(Database(urls[0])) as original:
                    same = check(urls[1], least=load.acknowledged, most=load.acknowledged)
                    assert same == exported(original)
        finally:
            for name in names:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def test_a_workspace_goes_to_the_other_database_by_the_commands_of_the_page(
    database_url: str, other_database_url: str, tmp_path: Path
) -> None:
    with served(database_url) as server:
        scenario = httpx.post(f"{server.url}/v1/scenarios", json={"name": "a", "spec": SYNC}).json()
        posted = httpx.post(f"{server.url}/v1/scenarios/{scenario['id']}/benchmark-runs", content=DCP)
        assert posted.status_code == 201
    (script,) = commands("A workspace as a file")
    run(script, tmp_path, STALLBUDGET_DATABASE_URL=database_url, OTHER_DATABASE_URL=other_database_url)
    assert (tmp_path / "default.jsonl").stat().st_mode & 0o777 == 0o600
    with closing(Database(database_url)) as here, closing(Database(other_database_url)) as there:
        assert exported(here) == exported(there) == (tmp_path / "default.jsonl").read_bytes()
    with served(other_database_url) as server:
        run_ = posted.json()
        assert httpx.get(f"{server.url}/v1/benchmark-runs/{run_['id']}").json() == run_
        assert httpx.get(f"{server.url}/v1/benchmark-runs/{run_['id']}/document").content == DCP
        trail = httpx.get(f"{server.url}/v1/audit-events").json()["items"]
    digest = json.loads((tmp_path / "default.jsonl").read_bytes().splitlines()[-1])["end"]["sha256"]
    assert [(each["actor"], each["action"], each["new_version"]) for each in trail] == [
        ("cli", "import", digest)
    ]


def test_documents_are_pruned_by_the_command_of_the_page(database_url: str, tmp_path: Path) -> None:
    (script,) = commands("How long documents are kept")
    with served(database_url) as server:
        scenario = httpx.post(f"{server.url}/v1/scenarios", json={"name": "a", "spec": SYNC}).json()
        place = f"{server.url}/v1/scenarios/{scenario['id']}/benchmark-runs"
        made = [httpx.post(place, content=dcp(f"r{n}")).json()["id"] for n in range(2)]
        with closing(Database(database_url)) as database, database.begin() as transaction:
            runs = tables.benchmark_runs
            transaction.execute(
                runs.update()
                .where(runs.c.id == UUID(made[0]))
                .values(received_at=datetime.now(UTC) - timedelta(days=366))
            )
        run(script, tmp_path, STALLBUDGET_DATABASE_URL=database_url)
        statuses = [httpx.get(f"{server.url}/v1/benchmark-runs/{id_}/document").status_code for id_ in made]
        assert statuses == [410, 200]
        assert "document_removed_at" in httpx.get(f"{server.url}/v1/benchmark-runs/{made[0]}").json()
    with closing(Database(database_url)) as database, database.read() as transaction:
        assert transaction.scalar(select(func.count()).select_from(tables.document_bodies)) == 1
