"""How a served process ends: what it answers it finishes, what is new it refuses, and it does not wait without end.

Nothing here sleeps: each step waits for what the process says or does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import UUID

import httpx
import pytest

from service.store import benchmark_runs
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database
from tests.api.asking import IOR_JSON, SYNC
from tests.served import SECONDS, Served, served

TRIES = 100_000


@contextmanager
def begun_upload(server: Served, scenario_id: str) -> Iterator[socket.socket]:
    """Give a connection on which half of a document was sent, to a server that asked for it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        head = (
            f"POST /v1/scenarios/{scenario_id}/benchmark-runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Length: {len(IOR_JSON)}\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(1)
        assert received.startswith(b"HTTP/1.1 100 ")
        connection.sendall(IOR_JSON[:1000])
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def scenario_of(server: Served) -> str:
    made = httpx.post(f"{server.url}/v1/scenarios", json={"name": "a", "spec": SYNC})
    assert made.status_code == 201, made.text
    id_: str = made.json()["id"]
    return id_


def refuses_connections(server: Served) -> bool:
    for _ in range(TRIES):
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            continue  # it was in the queue when that was closed
    return False


def test_an_upload_that_has_begun_is_finished_and_nothing_new_is_taken(database_url: str) -> None:
    with served(database_url) as server:
        scenario_id = scenario_of(server)
        with begun_upload(server, scenario_id) as connection:
            server.is_told_to_end()
            server.until("Shutting down")
            assert refuses_connections(server)
            assert server.process.poll() is None
            connection.sendall(IOR_JSON[1000:])
            head, _, body = rest_of(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201 ")
        assert b"connection: close" in head.lower()
        assert server.ends() == -signal.SIGTERM
    with closing(Database(database_url)) as database, database.read() as transaction:
        document = benchmark_runs.get_document(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=UUID(json.loads(body)["id"])
        )
    assert document.body == IOR_JSON


def test_an_upload_that_does_not_go_on_is_waited_for_no_longer_than_set(database_url: str) -> None:
    with served(database_url, shutdown_seconds=0.2) as server:
        with begun_upload(server, scenario_of(server)) as connection:
            server.is_told_to_end()
            assert b" 201 " not in rest_of(connection)
        assert server.ends() == -signal.SIGTERM
        server.until("timeout graceful shutdown exceeded")
    with closing(Database(database_url)) as database, database.read() as transaction:
        counted = transaction.exec_driver_sql("SELECT count(*) FROM benchmark_runs").scalar()
    assert counted == 0


def test_while_it_drains_it_is_not_ready_and_answers_all_else(database_url: str) -> None:
    with served(database_url, drain_seconds=3600) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/readyz").status_code == 200
        server.is_told_to_end()
        for _ in range(TRIES):
            answer = httpx.get(f"{server.url}/readyz")
            if answer.status_code != 200:
                break
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/shutting-down")
        assert answer.headers["retry-after"]
        assert httpx.get(f"{server.url}/livez").status_code == 200
        assert httpx.post(f"{server.url}/v1/sizings", json=SYNC).status_code == 200
        # Told again it does not wait any longer.
        server.is_told_to_end()
        assert server.ends() == -signal.SIGTERM


def test_it_drains_no_longer_than_set(database_url: str) -> None:
    with served(database_url, drain_seconds=0.3) as server:
        server.is_told_to_end()
        assert server.ends() == -signal.SIGTERM


@pytest.mark.parametrize("first", ["serve", "migrate"])
def test_without_migrating_it_starts_and_is_ready_once_somebody_migrates(
    empty_database_url: str, first: str
) -> None:
    migrate = [sys.executable, "-m", "service.cli", "migrate"]
    environment = {**os.environ, "STALLBUDGET_DATABASE_URL": empty_database_url}
    if first == "migrate":
        subprocess.run(migrate, env=environment, check=True)
    with served(empty_database_url, migrate_at_start="false") as server:
        if first == "serve":
            answer = httpx.get(f"{server.url}/readyz")
            assert (answer.status_code, "stallbudget migrate" in answer.text) == (503, True)
            assert httpx.get(f"{server.url}/v1/scenarios").status_code == 503
            subprocess.run(migrate, env=environment, check=True)
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        assert httpx.get(f"{server.url}/v1/scenarios").status_code == 200
