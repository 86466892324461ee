"""A Postgres of one's own, which can be crashed, stopped, started again, and have a standby."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import postgres_package

_SETTINGS = (
    # What is found after a crash must be there by the service's doing.
    "fsync = on",
    "synchronous_commit = off",
    "wal_writer_delay = 10s",
    "wal_level = replica",
    "shared_buffers = '16MB'",
    # A standby tells the service at once that it may not write.
    "hot_standby = on",
)


class CrashingPostgres:
    """A server on a socket.

    Args:
        data: Its folder.
        installation: The package's handle on its programs and their user.
    """

    def __init__(self, data: Path, installation: Any) -> None:  # noqa: ANN401 - the package has no types
        self.data = data
        # Beside its folder: a standby begins as a copy of that.
        self.address = data.parent / f"{data.name}-socket"
        self.address.mkdir()
        if installation.system_user is not None:
            shutil.chown(self.address, installation.system_user)
        self.socket = self.address / ".s.PGSQL.5432"
        self.url = f"postgresql://postgres@/postgres?host={self.address}"
        self._installation = installation

    def start(self) -> None:
        """Start it, and return when it answers."""
        self._control("start", "-w", "-l", f"{self.data}.log", "-o", f"-h '' -k '{self.address}'")

    def crash(self) -> None:
        """End it without a last word: the next start has to recover."""
        self._control("stop", "-m", "immediate")

    def stop(self) -> None:
        """End it in order, its connections cut."""
        self._control("stop", "-m", "fast")

    def promote(self) -> None:
        """Make a standby the primary, and return when it takes writes."""
        self._control("promote", "-w")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement by itself, and return its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            return answer.fetchall() if answer.description else []

    @contextmanager
    def standby(self) -> Iterator["CrashingPostgres"]:
        """Give a standby that has every commit before it is acknowledged."""
        data = self.data.parent / "standby"
        self._run(
            "pg_basebackup", "-D", str(data), "-h", str(self.address), "-U", "postgres", "-R", "-c", "fast"
        )
        copy = CrashingPostgres(data, self._installation)
        try:
            copy.start()
            for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
                self.ask(statement)
            yield copy
        finally:
            copy.end()
            shutil.rmtree(copy.data)
            shutil.rmtree(copy.address)

    def runs(self) -> bool:
        """Return whether it was started and neither stopped nor crashed."""
        return (self.data / "postmaster.pid").exists()

    def end(self) -> None:
        """End it where it runs."""
        if self.runs():
            self.crash()

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.data), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # Files, not pipes: the server inherits them, and a pipe would stay open as long as it runs.
        with tempfile.TemporaryFile("w+") as said:
            ended = subprocess.run(
                [self._installation.bin_path / program, *arguments],
                stdout=said,
                stderr=subprocess.STDOUT,
                user=self._installation.system_user,
                cwd=self.data.parent,
                timeout=60,
                check=False,
            )
            said.seek(0)
            assert ended.returncode == 0, said.read()


@contextmanager
def crashing_postgres() -> Iterator[CrashingPostgres]:
    """Give a server that answers and has nothing in it, and remove it."""
    get_server = postgres_package().get_server
    # Under root the server runs as another user, who cannot enter tmp_path.
    folder = Path(tempfile.mkdtemp(prefix="stallbudget-crashing-"))
    try:
        installation = get_server(folder / "data", start=False)
        installation.ensure_pgdata_inited()
        if installation.system_user is not None:
            # It writes its log there, and a standby is made there.
            shutil.chown(folder, installation.system_user)
        server = CrashingPostgres(folder / "data", installation)
        with (server.data / "postgresql.conf").open("a") as configuration:
            configuration.write("\n".join(["", *_SETTINGS, ""]))
        try:
            server.start()
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder)
