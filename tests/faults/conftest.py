"""Databases that faults are made in, and services on them."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from service.store import tables
from service.store.database import Database
from tests.conftest import BOTH, new_postgres
from tests.faults.asking import service
from tests.faults.crashing_postgres import CrashingPostgres, crashing_postgres


@pytest.fixture(scope="session")
def session_postgres() -> Iterator[CrashingPostgres]:
    """Give a Postgres that tests crash, one after the other."""
    with crashing_postgres() as server:
        yield server


@pytest.fixture
def own_postgres(session_postgres: CrashingPostgres) -> CrashingPostgres:
    """Return a Postgres that runs and has nothing in it, whatever the test before did to it."""
    if not session_postgres.runs():
        session_postgres.start()
    for statement in (
        "ALTER SYSTEM RESET synchronous_standby_names",
        "SELECT pg_reload_conf()",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    ):
        session_postgres.ask(statement)
    return session_postgres


@pytest.fixture(scope="module", params=BOTH)
def two_services(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Give the URL of a database, and the ports of two services on it."""
    with ExitStack() as opened:
        url = (
            f"sqlite:///{tmp_path_factory.mktemp('two') / 'two.db'}"
            if request.param == "sqlite"
            else opened.enter_context(new_postgres(request.getfixturevalue("postgres_server")))
        )
        ports = [opened.enter_context(service(url)).port for _ in range(2)]
        yield url, (ports[0], ports[1])


@pytest.fixture
def two(two_services: tuple[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the ports of two services on one database, which has no rows but the default workspace."""
    url, ports = two_services
    with closing(Database(url)) as database, database.begin() as transaction:
        for table in reversed(tables.metadata.sorted_tables):
            if table is not tables.workspaces:
                transaction.execute(table.delete())
    return ports


@pytest.fixture
def shared_url(two_services: tuple[str, tuple[int, int]]) -> str:
    """Return the URL of the database of those two services."""
    return two_services[0]
