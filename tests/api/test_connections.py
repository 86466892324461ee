"""Connections of a server that runs: those whose client is too slow, asks for too much or is one too many are closed.

No test waits for a while and looks: each waits for the server to close, which a server without the limit never does.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.api.connections import server_options
from service.app import create_app
from service.settings import Settings
from tests.api.asking import SYNC
from tests.running_server import running_server

SECONDS = 60.0
"""How long a test waits for what must happen."""
HEAD = b"POST /v1/sizings HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = json.dumps(SYNC).encode()


@contextmanager
def _connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        yield connection


def _until_closed(connection: socket.socket) -> bytes:
    """Return everything that comes until the server closes the connection; fail where it does not."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def _one_answer(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return head


def _cut_off(port: int, reason: str) -> float:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    found = [
        line
        for line in text.splitlines()
        if line.startswith(f'stallbudget_cut_off_total{{reason="{reason}"}}')
    ]
    return float(found[0].split()[-1]) if found else 0.0


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give the port of a server that has no patience."""
    file = tmp_path_factory.mktemp("hasty") / "a.db"
    with running_server(
        f"sqlite:///{file}", head_seconds=1, slow_seconds=1, min_bytes_per_second=1e9, max_head_bytes=4096
    ) as port:
        yield port


@pytest.mark.parametrize(
    "begun",
    [b"", b"\r\n", b"P", HEAD, HEAD + b"X-Long: " + b"x" * 100],
    ids=["nothing", "line", "word", "head", "long"],
)
def test_a_head_that_does_not_come_ends_the_connection(hasty: int, begun: bytes) -> None:
    with _connection(hasty) as connection:
        connection.sendall(begun)
        assert _until_closed(connection) == b""
    assert _cut_off(hasty, "slow_head") >= 1


def test_a_head_that_does_not_come_after_an_answer_ends_the_connection(hasty: int) -> None:
    with _connection(hasty) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert _one_answer(connection).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /live")
        assert _until_closed(connection) == b""


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 1000\r\n\r\n{",
        b"Content-Length: 1000\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
)
def test_a_body_that_does_not_come_is_a_408_and_the_end(hasty: int, head: bytes) -> None:
    with _connection(hasty) as connection:
        connection.sendall(HEAD + head)
        received = _until_closed(connection)
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in received.lower()
    assert json.loads(received.partition(b"\r\n\r\n")[2])["type"] == "/problems/slow-body"
    assert _cut_off(hasty, "slow_body") >= 1


def test_a_head_that_is_too_long_is_a_431(hasty: int) -> None:
    with _connection(hasty) as connection:
        connection.sendall(HEAD + b"X-Long: " + b"x" * 5000)
        assert _until_closed(connection).startswith(b"HTTP/1.1 431 ")
    assert _cut_off(hasty, "long_head") >= 1


def test_what_follows_a_chunked_body_is_no_way_round_that(hasty: int) -> None:
    with _connection(hasty) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
        connection.sendall(b"0\r\nX-Trailer: " + b"x" * 5000)
        assert b" 200 " not in _until_closed(connection)


def test_a_body_that_goes_on_after_its_answer_ends_the_connection(hasty: int) -> None:
    with _connection(hasty) as connection:
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert _one_answer(connection).startswith(b"HTTP/1.1 404 ")
        _until_closed(connection)
    assert _cut_off(hasty, "unread_body") >= 1


def test_a_client_that_does_not_read_its_answer_is_let_go(hasty: int) -> None:
    with socket.socket() as connection:
        # Nothing of an answer beyond this goes out before the client reads.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", hasty))
        for _ in range(10):
            connection.sendall(b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with httpx.Client(base_url=f"http://127.0.0.1:{hasty}", timeout=SECONDS) as client:
            # The server says itself when it has let go; each question is answered before the next.
            for _ in range(100_000):
                if "slow_reader" in client.get("/metrics").text:
                    break
            else:
                pytest.fail("the server holds the answer for good")


def test_a_client_at_a_fair_pace_is_served(hasty: int) -> None:
    with _connection(hasty) as connection:
        for _ in range(3):
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            assert _one_answer(connection).startswith(b"HTTP/1.1 200 ")


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    with (
        running_server(f"sqlite:///{tmp_path}/a.db", idle_seconds=0.2) as port,
        _connection(port) as connection,
    ):
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert _one_answer(connection).startswith(b"HTTP/1.1 200 ")
        assert _until_closed(connection) == b""


def test_one_connection_too_many_is_closed_and_the_others_go_on(tmp_path: Path) -> None:
    with (
        running_server(f"sqlite:///{tmp_path}/a.db", max_connections=1) as port,
        _connection(port) as first,
    ):
        first.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert _one_answer(first).startswith(b"HTTP/1.1 200 ")
        with _connection(port) as second:
            assert _until_closed(second) == b""
        first.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert _one_answer(first).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("trusted", "share"), [(None, True), ("127.0.0.0/8, ::1", False), ("10.0.0.7", True)]
)
def test_forwarded_addresses_are_believed_from_named_proxies_alone(
    tmp_path: Path, trusted: str | None, share: bool
) -> None:
    settings = {} if trusted is None else {"trusted_proxies": trusted}
    with running_server(f"sqlite:///{tmp_path}/a.db", reading_per_minute=1, **settings) as port:
        statuses = [
            httpx.get(
                f"http://127.0.0.1:{port}/v1/presets/gpus", headers={"X-Forwarded-For": address}
            ).status_code
            for address in ("203.0.113.1", "203.0.113.2")
        ]
    # Without keys it takes nothing through a proxy; what it refuses counts like what it does.
    assert statuses == [403, 429 if share else 403]


def test_the_server_says_neither_its_name_nor_logs_paths(tmp_path: Path) -> None:
    said: list[str] = []
    with running_server(f"sqlite:///{tmp_path}/a.db", said) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/a-path")
    assert "server" not in answer.headers
    assert "a-path" not in "".join(said)


def test_the_options_are_those_of_the_settings() -> None:
    app = create_app(Settings(database_url="sqlite:///unused.db", idle_seconds=7))
    options = server_options(app)
    assert (options["timeout_keep_alive"], options["access_log"], options["proxy_headers"]) == (
        7,
        False,
        False,
    )
