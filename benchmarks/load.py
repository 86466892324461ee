"""`python -m benchmarks.load PORT SECONDS CONNECTIONS`: posts a spec over and over, and prints requests per second.

Each connection is kept alive and sends its next request when the last answer is complete. The first
tenth of the time warms the server up and does not count.
"""

import asyncio
import json
import sys
import time

from service.api.examples import LLAMA_405B_SYNC

BODY = json.dumps(LLAMA_405B_SYNC).encode()
REQUEST = (
    b"POST /v1/sizings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


class _Connection(asyncio.Protocol):
    """One client: it counts the answers, and stops at a deadline or at any answer but 200."""

    def __init__(self) -> None:
        self.answers = 0
        self.failure: bytes | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200 "):
            self.failure = self._buffer
            self._transport.close()
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(rest) >= length:
            self._buffer = rest[length:]
            self.answers += 1
            self._transport.write(REQUEST)


async def _rate(port: int, seconds: float, connections: int) -> float:
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(_Connection, "127.0.0.1", port))[1] for _ in range(connections)]
    await asyncio.sleep(seconds / 10)
    before, started = sum(client.answers for client in clients), time.perf_counter()
    await asyncio.sleep(seconds)
    after, ended = sum(client.answers for client in clients), time.perf_counter()
    for client in clients:
        if client.failure is not None:
            raise SystemExit(f"An answer was not 200: {client.failure[:500]!r}")
    return (after - before) / (ended - started)


if __name__ == "__main__":
    print(asyncio.run(_rate(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))))
