"""`python -m benchmarks.load WHAT SCENARIO SECONDS CONNECTIONS PORT [PORT]`: asks the same over and over.

WHAT is `read` (the scenario whose id SCENARIO is), `size` (a spec) or `post` (to that scenario a document, each time
another one: a scenario is good for one such call). Prints as JSON a list: the requests per second, and the median and
the 99th percentile of the seconds that they took.

Each connection is kept alive and sends its next request when the last answer is complete; with several ports they
take turns. The first tenth of the time warms the server up and does not count.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from statistics import quantiles

from service.api.examples import IOR_CSV, LLAMA_405B_SYNC

OPENED = "0.0182"
"""What the document says of how long its files took to open, and nothing else of it does."""


def requests(what: str, scenario: str) -> Iterator[bytes]:
    """Return what is sent, without end."""
    if what == "read":
        return itertools.repeat(_request(f"GET /v1/scenarios/{scenario}"))
    if what == "size":
        return itertools.repeat(_request("POST /v1/sizings", json.dumps(LLAMA_405B_SYNC)))
    runs = f"POST /v1/scenarios/{scenario}/benchmark-runs"
    documents = (IOR_CSV.replace(OPENED, f"{number / 10_000:.4f}") for number in itertools.count())
    return (_request(runs, document) for document in documents)


def _request(line: str, body: str = "") -> bytes:
    return (
        f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body.encode())}\r\n\r\n{body}"
    ).encode()


class _Connection(asyncio.Protocol):
    """One client: it times the answers, and stops at a deadline or at any answer but the one it expects."""

    def __init__(self, asked: Iterator[bytes], expected: bytes) -> None:
        self.answered: list[tuple[float, float]] = []
        """When each answer was complete, and how long it took. [s]"""
        self.failure: bytes | None = None
        self._asked = asked
        self._expected = b"HTTP/1.1 " + expected
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        request = next(self._asked)
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(self._expected):
            self.failure = self._buffer
            self._transport.close()
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(rest) >= length:
            self._buffer = b""
            now = time.perf_counter()
            self.answered.append((now, now - self._sent))
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.failure is None and not self._transport.is_closing():
            self.failure = b"the connection was cut"


async def _load(
    what: str, scenario: str, seconds: float, connections: int, ports: list[int]
) -> tuple[float, float, float]:
    loop = asyncio.get_running_loop()
    asked, expected = requests(what, scenario), b"201 " if what == "post" else b"200 "
    clients = [
        (await loop.create_connection(lambda: _Connection(asked, expected), "127.0.0.1", port))[1]
        for port in itertools.islice(itertools.cycle(ports), connections)
    ]
    await asyncio.sleep(seconds / 10)
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    ended = time.perf_counter()
    for client in clients:
        if client.failure is not None:
            raise SystemExit(f"An answer was not {expected.decode()}: {client.failure[:500]!r}")
    times = [took for client in clients for at, took in client.answered if started <= at < ended]
    percentiles = quantiles(times, n=100, method="inclusive")
    return len(times) / (ended - started), percentiles[49], percentiles[98]


if __name__ == "__main__":
    what, scenario, seconds, connections, *ports = sys.argv[1:]
    print(
        json.dumps(
            asyncio.run(_load(what, scenario, float(seconds), int(connections), list(map(int, ports))))
        )
    )
