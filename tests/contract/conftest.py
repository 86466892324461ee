"""The document as the service makes it, and a service to hold it against."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from service.store.caller import AccessScope
from tests.api.asking import LOCAL
from tests.api.keyring import make_key


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """Return the OpenAPI document, as JSON gives it back."""
    made = create_app(Settings(database_url="sqlite:///unused.db")).openapi()
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read


@pytest.fixture
def application(migrated_sqlite: Path, tmp_path: Path) -> FastAPI:
    """Return a service over an empty SQLite database."""
    file = tmp_path / "contract.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    return create_app(Settings(database_url=f"sqlite:///{file}", max_json_bytes=100_000))


@pytest.fixture
def admin(application: FastAPI) -> dict[str, str]:
    """Return the header of a key of that service that may do everything."""
    return make_key(application, AccessScope.ADMIN)


@pytest.fixture
def client(application: FastAPI, admin: dict[str, str]) -> Iterator[TestClient]:
    """Give a client of that service, which needs keys and has one."""
    with TestClient(application, raise_server_exceptions=False, base_url=LOCAL, headers=admin) as opened:
        yield opened
