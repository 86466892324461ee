"""A request to the app without a server between: piece by piece, under a clock that the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Scope

from service.api.watch import Watch


def scope_of(method: str, path: str, *headers: tuple[bytes, bytes], client: str = "127.0.0.1") -> Scope:
    """Return the scope of a request, as a server makes it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000"), *headers],
        "client": (client, 1),
        "server": ("127.0.0.1", 8000),
    }


class Running:
    """A request that the app works on.

    Attributes:
        sent: What it has answered so far.
    """

    def __init__(self, app: FastAPI, scope: Scope) -> None:
        self.sent: list[Message] = []
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._answered = asyncio.Event()
        self._asked = asyncio.Event()
        self._task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        self._asked.set()
        return await self._messages.get()

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._answered.set()
            # As a server does, which tells an app that still reads that there is nothing more.
            self._messages.put_nowait({"type": "http.disconnect"})

    def give(self, body: bytes, *, more: bool) -> None:
        """Send a piece of the body."""
        self._asked.clear()
        self._messages.put_nowait({"type": "http.request", "body": body, "more_body": more})

    async def asks(self) -> None:
        """Wait until the app waits for a piece of the body; fail where it answers instead."""
        asked, answered = (
            asyncio.ensure_future(self._asked.wait()),
            asyncio.ensure_future(self._answered.wait()),
        )
        await asyncio.wait([asked, answered], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        answered.cancel()
        assert asked.done(), self.sent

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Wait for the answer, and return its status, its headers and its body."""
        await asyncio.wait_for(self._answered.wait(), 30)
        start, *bodies = self.sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, b"".join(message["body"] for message in bodies)

    async def end(self) -> None:
        """Wait until the app is done with it."""
        await asyncio.wait_for(self._task, 30)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def under_a_clock(app: FastAPI) -> Callable[[float], Awaitable[None]]:
    """Give the app's watch a clock of the test's, and return what moves it on and has the watch look."""
    clock = Clock()
    watch: Watch = app.state.watch
    watch.monotonic = clock
    watch.every_seconds = 1e6

    async def passes(seconds: float) -> None:
        clock.at += seconds
        watch.look()
        await asyncio.sleep(0)

    return passes


def run(scene: Callable[[], Awaitable[Any]]) -> None:
    """Run a scene in a loop of its own."""

    async def whole() -> None:
        await scene()

    asyncio.run(whole())
