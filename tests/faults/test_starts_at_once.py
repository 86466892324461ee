"""Instances that start at once on a database without tables: one makes them, the others wait for it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from service.store import migrate
from service.store.database import MIGRATION_LOCK, Database, parse_url
from tests.faults.asking import WAITS_SECONDS, ask, service, stored_scenario, until
from tests.faults.holding import is_sqlite, postgres, waiting

AT_ONCE = 4


@contextmanager
def _migration_held(database_url: str) -> Iterator[Callable[[list[int]], bool]]:
    """Let nobody migrate; give whether the processes of those ids all wait to."""
    if not is_sqlite(database_url):
        with postgres(database_url) as holding, postgres(database_url) as watching:
            holding.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
            yield lambda processes: len(waiting(watching)) == len(processes)
        return
    file = str(parse_url(database_url).database)
    with closing(sqlite3.connect(file, isolation_level=None)) as holding:
        holding.execute("PRAGMA journal_mode = WAL")
        holding.execute("BEGIN IMMEDIATE")
        # Whoever has the file open has come to migrate.
        yield lambda processes: all(_has_open(process, file) for process in processes)
        holding.execute("ROLLBACK")


def _has_open(process: int, file: str) -> bool:
    folder = Path(f"/proc/{process}/fd")
    if not folder.is_dir():
        return True
    return any(os.path.realpath(link) == os.path.realpath(file) for link in folder.iterdir())


def test_processes_that_migrate_at_once_all_succeed_and_a_service_beside_them_serves(
    empty_database_url: str,
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    with ExitStack() as processes:
        with _migration_held(empty_database_url) as all_wait:
            started = [
                processes.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-m", "service.cli", command],
                        env={
                            **environment,
                            "STALLBUDGET_DATABASE_URL": empty_database_url,
                            "STALLBUDGET_PORT": "0",
                        },
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                )
                for command in ["migrate"] * AT_ONCE
            ]
            for each in started:
                processes.callback(each.kill)
            until(lambda: all_wait([each.pid for each in started]))
        with service(empty_database_url) as one, service(empty_database_url) as other:
            for each in started:
                _, said = each.communicate(timeout=WAITS_SECONDS)
                assert (each.returncode, said) == (0, "")
            scenario_id = stored_scenario(one.port)
            assert ask(other.port, "GET", f"/v1/scenarios/{scenario_id}").status == 200
            assert ask(other.port, "GET", "/readyz").status == 200
    with closing(Database(empty_database_url)) as database:
        assert migrate.is_at_head(database)
