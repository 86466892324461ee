"""The service in process: on both databases where something is stored, on none where nothing is."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from service.store import migrate
from service.store.database import Database
from tests.api.asking import LOCAL
from tests.conftest import BOTH, new_postgres


@pytest.fixture
def application(database_url: str) -> FastAPI:
    """Return the service over a database that has our tables and no rows."""
    return create_app(Settings(database_url=database_url))


@pytest.fixture
def client(application: FastAPI) -> Iterator[TestClient]:
    """Give a client of that service. What nobody caught is an answer, as it is to a real client."""
    with TestClient(application, raise_server_exceptions=False, base_url=LOCAL) as opened:
        yield opened


@pytest.fixture(scope="session")
def stateless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Give a client for what needs no database: there is none, and one that is opened has no tables."""
    file = tmp_path_factory.mktemp("stateless") / "empty.db"
    with TestClient(
        create_app(Settings(database_url=f"sqlite:///{file}")), raise_server_exceptions=False, base_url=LOCAL
    ) as opened:
        yield opened


@pytest.fixture(scope="session")
def stored_on_sqlite(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Give a client of a service on SQLite that tests share, for requests that store nothing."""
    file = tmp_path_factory.mktemp("shared") / "shared.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    with TestClient(
        create_app(Settings(database_url=f"sqlite:///{file}")), raise_server_exceptions=False, base_url=LOCAL
    ) as opened:
        yield opened


@pytest.fixture(scope="session", params=BOTH)
def stored_on_both(request: pytest.FixtureRequest) -> Iterator[TestClient]:
    """Give a client of a service that tests share, on SQLite and on Postgres, which refuse different texts."""
    if request.param == "sqlite":
        yield request.getfixturevalue("stored_on_sqlite")
        return
    with new_postgres(request.getfixturevalue("postgres_server")) as url:
        with closing(Database(url)) as database:
            migrate.upgrade(database)
        with TestClient(
            create_app(Settings(database_url=url)), raise_server_exceptions=False, base_url=LOCAL
        ) as opened:
            yield opened
