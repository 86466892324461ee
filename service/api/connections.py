"""What uvicorn is run with: no log of its own, no trust in proxies that nobody named, and connections under watch.

uvicorn closes a connection that idles between two requests. It waits without end for the head of a request, takes a
head of any length, and holds an answer for a client that does not read it; what lies below a request is here, what
can be answered is in `middleware.py`. And how it ends: `DrainingServer`.
"""

import asyncio
import time
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.metrics import Metrics
from service.api.readiness import Readiness
from service.api.watch import Pace, Watch
from service.settings import Settings

_HEAD_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


def server_options(app: FastAPI) -> dict[str, Any]:
    """Return what `uvicorn.run(app, …)` takes beside the address."""
    settings: Settings = app.state.settings
    return {
        "http": partial(
            WatchedConnection, settings=settings, watch=app.state.watch, metrics=app.state.metrics
        ),
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "log_level": settings.log_level,
        "access_log": False,
        "server_header": False,
        # Left to itself it believes whoever is on the loopback.
        "proxy_headers": settings.trusted_proxies is not None,
        "forwarded_allow_ips": settings.trusted_proxies or "",
        "timeout_keep_alive": settings.idle_seconds,
        "timeout_graceful_shutdown": settings.shutdown_seconds,
    }


class DrainingServer(uvicorn.Server):
    """A server that says at once that it ends, and stops taking connections some time later.

    Told to end, it is no longer ready; after `drain_seconds` it closes its port and the connections that idle, and
    waits `shutdown_seconds` at most for the others. Told again, it does not wait before closing its port.

    Args:
        app: What it serves.
        options: What `uvicorn.Config` takes, beside those of `server_options`.
    """

    def __init__(self, app: FastAPI, **options: Any) -> None:  # noqa: ANN401 - what uvicorn takes
        super().__init__(uvicorn.Config(app, **options, **server_options(app)))
        self._readiness: Readiness = app.state.readiness
        self._drain_seconds: float = app.state.settings.drain_seconds
        self._ends_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that the process is to end."""
        self._readiness.end()
        if self._ends_at is None and self._drain_seconds:
            self._ends_at = time.monotonic() + self._drain_seconds
            # Uvicorn ends the process by it when all is done.
            self._captured_signals.append(sig)
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to close the port."""
        is_time = self._ends_at is not None and time.monotonic() >= self._ends_at
        return await super().on_tick(counter) or is_time


class WatchedConnection(HttpToolsProtocol):
    """A connection that is closed when its client is too slow, sends a head too long, or is one too many."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - what uvicorn gives, and hands on unseen
        settings: Settings,
        watch: Watch,
        metrics: Metrics,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **options)
        self._settings = settings
        self._watch = watch
        self._metrics = metrics
        self._head_since: float | None = None
        """Since when the head of a request is waited for."""
        self._head_bytes = 0
        """What has come since the last head was whole or the last piece of a body came."""
        self._is_in_message = False
        self._is_ended = False
        self._leftover_since: float | None = None
        """Since when a body comes in whose request was answered."""
        self._answer = Pace(
            over_seconds=settings.slow_seconds, bytes_per_second=settings.min_bytes_per_second
        )
        self._buffered_bytes = 0
        self._written_out_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._settings.max_connections:
            self._end("too_many_connections")
            return
        self._head_since = self._watch.monotonic()
        self._watch.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._watch.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._head_since is None and not self._is_in_message:
            # Line ends before a request begin none, and end uvicorn's own wait for it.
            self._head_since = self._watch.monotonic()
        self._head_bytes += len(data)
        super().data_received(data)
        # Also what follows a body, and what is sent between its pieces: nothing else bounds that.
        if self._head_bytes > self._settings.max_head_bytes and not self.transport.is_closing():
            if self._head_since is not None and not self._is_answering():
                self.transport.write(_HEAD_TOO_LONG)
                self.transport.close()
                self._is_ended = True
                self._metrics.count_cut_off("long_head")
            else:
                self._end("long_head")

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._is_in_message = True
        if self._head_since is None:
            self._head_since = self._watch.monotonic()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head of a request is whole."""
        self._head_since = None
        self._head_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a piece of a body came."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        self._is_in_message = False
        self._head_bytes = 0
        super().on_message_complete()

    def look(self, at: float) -> None:
        """End the connection where its client is too slow."""
        if self.transport.is_closing() and not self._unsent_bytes():
            return
        if self._is_answering() and self._head_since is not None:
            # Of a request behind the one that is answered nothing is read for so long.
            self._head_since = at
        if self._head_since is not None and at - self._head_since > self._settings.head_seconds:
            self._end("slow_head")
        elif self._is_stuck_in_answer(at):
            self._end("slow_reader")
        elif self._is_stuck_in_leftover(at):
            self._end("unread_body")

    def _is_stuck_in_answer(self, at: float) -> bool:
        unsent = self._unsent_bytes()
        if not unsent:
            self._answer.rest()
            self._buffered_bytes = 0
            return False
        # What was added meanwhile hides as much of what went out, and never more: an answer in pieces goes on only
        # when the last one is gone but for a little.
        self._written_out_bytes += max(0, self._buffered_bytes - unsent)
        self._buffered_bytes = unsent
        return self._answer.is_too_slow(at, self._written_out_bytes)

    def _is_stuck_in_leftover(self, at: float) -> bool:
        if not (self._is_in_message and self.cycle is not None and self.cycle.response_complete):
            self._leftover_since = None
            return False
        if self._leftover_since is None:
            self._leftover_since = at
        return at - self._leftover_since > self._settings.slow_seconds

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def _end(self, reason: str) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._metrics.count_cut_off(reason)
        # Not close(): that waits for the client to read what is left.
        self.transport.abort()
