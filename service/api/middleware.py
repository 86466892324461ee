"""Around every request: its id, a HEAD for every GET, its limits, its line in the log, its place in the metrics.

And a problem document for what nobody caught. Pure ASGI, one layer: each further one would cost every request.
"""

import asyncio
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api import logs, problems
from service.api.attempts import network_of
from service.api.metrics import GAVE_UP, UNMATCHED, Metrics
from service.api.rates import Budget, charge
from service.api.watch import Pace, Watch
from service.errors import RateLimited
from service.settings import Settings

if TYPE_CHECKING:
    from service.api.tracing import Tracing

log = logging.getLogger("stallbudget")

ALWAYS_ANSWERED = frozenset({"/livez", "/readyz", "/metrics"})
"""What operators ask is answered however much there is to do: a busy process is not to be taken for a dead one."""

_LISTS = (b"accept", b"content-encoding", b"if-match", b"if-none-match")
"""Headers that hold a list, and mean the same on one line as on several."""
_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


class EveryRequest:
    """Gives each request an id, holds it to its limits, and keeps a failure from ending as anything but a problem.

    Args:
        app: What is asked.
        settings: The limits.
        watch: Ends what takes too long.
        metrics: Counts what came of it.
        tracing: Where spans go; None for nowhere.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        watch: Watch,
        metrics: Metrics,
        tracing: "Tracing | None" = None,
    ) -> None:
        self.app = app
        self._settings = settings
        self._watch = watch
        self._metrics = metrics
        self._tracing = tracing
        self._in_flight: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its id in the scope and in the answer's `X-Request-Id`."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, asked, traceparent = _read(scope["headers"])
        request_id = asked.decode() if _WELL_FORMED.fullmatch(asked) else token_hex(16)
        exchange = Exchange(
            {**scope, "headers": headers, "request_id": request_id},
            receive,
            send,
            settings=self._settings,
            watch=self._watch,
            metrics=self._metrics,
        )
        if traceparent:
            known = _TRACEPARENT.fullmatch(traceparent)
            exchange.trace_id = known[1].decode() if known else None
        # Never taken back: what the server itself says of the request afterwards is to carry the id too.
        logs.REQUEST_ID.set(request_id)
        metrics = self._metrics
        metrics.in_flight += 1
        client = scope.get("client")
        place = network_of(client[0]) if client else ""
        own = self._in_flight[place] = self._in_flight.get(place, 0) + 1
        self._watch.add(exchange)
        try:
            if (
                metrics.in_flight > self._settings.max_concurrent_requests
                or own > self._settings.max_concurrent_per_address
            ) and scope["path"] not in ALWAYS_ANSWERED:
                metrics.count_cut_off("busy")
                with suppress(RateLimited):
                    charge(exchange.scope, Budget.READING)
                await exchange.refuse("busy", "The service works on as many requests as it may; try again.")
            elif self._tracing is None:
                await self.app(exchange.scope, exchange.receive, exchange.send)
            else:
                with self._tracing.span_of(exchange):
                    await self.app(exchange.scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            # Nobody is left to be answered, and nothing here is at fault.
            if not exchange.was_cut_off:
                log.info("request %s was given up by its sender", request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            if exchange.status is None and not exchange.was_cut_off:
                await exchange.refuse("internal-error", "The service failed; its log has the request_id.")
            elif not exchange.was_cut_off:
                raise
        finally:
            metrics.in_flight -= 1
            if self._in_flight[place] > 1:
                self._in_flight[place] -= 1
            else:
                del self._in_flight[place]
            self._watch.remove(exchange)
            exchange.end()


class Exchange:
    """One request on its way in, and its answer on its way out.

    Attributes:
        scope: Of the request, as the app gets it.
        method: As it was sent; the app sees a HEAD as GET.
        status: Of the answer; None before it begins.
        trace_id: The trace that the request belongs to, where it said so.
        was_cut_off: Whether it was answered before the app had an answer. What that says is then dropped.
    """

    __slots__ = (
        "_is_read", "_is_waiting", "_metrics", "_monotonic", "_pace", "_receive", "_refusal", "_request_bytes",
        "_response_bytes", "_send", "_settings", "_started_at", "_working_since", "method", "scope", "status",
        "trace_id", "was_cut_off",
    )  # fmt: skip

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        settings: Settings,
        watch: Watch,
        metrics: Metrics,
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        if self.method == "HEAD":
            scope["method"] = "GET"
        self.status: int | None = None
        self.trace_id: str | None = None
        self.was_cut_off = False
        self._receive = receive
        self._send = send
        self._settings = settings
        self._metrics = metrics
        self._monotonic = watch.monotonic
        self._started_at = self._working_since = watch.monotonic()
        self._is_waiting = False
        self._is_read = False
        self._pace: Pace | None = None
        self._refusal: asyncio.Task[None] | None = None
        self._request_bytes = 0
        self._response_bytes = 0

    async def receive(self) -> Message:
        """Give the app a piece of the body."""
        if self._is_read:
            return await self._receive()
        self._is_waiting = True
        message = await self._receive()
        self._is_waiting = False
        if message["type"] == "http.request":
            self._request_bytes += len(message.get("body", b""))
            self._is_read = not message.get("more_body", False)
        self._working_since = self._monotonic()
        return message

    async def send(self, message: Message) -> None:
        """Send what the app answers, unless the request was cut off."""
        if not self.was_cut_off:
            await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", self.scope["request_id"].encode()),
                *self.scope.get("rate_limit", ()),
            ]
        elif message["type"] == "http.response.body":
            if self.method == "HEAD":
                message["body"] = b""
            self._response_bytes += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, kind: str, detail: str, headers: dict[str, str] | None = None) -> None:
        """Answer with a problem document."""
        failure = problems.answer(Request(self.scope), kind, detail, headers=headers)
        await failure(self.scope, self._receive, self.send)

    def look(self, at: float) -> None:
        """Answer in the app's place where the body comes in too slowly, or the app takes too long."""
        if self.status is not None or self.was_cut_off:
            return
        if self._is_waiting:
            if self._pace is None:
                self._pace = Pace(
                    over_seconds=self._settings.slow_seconds,
                    bytes_per_second=self._settings.min_bytes_per_second,
                )
            if self._pace.is_too_slow(at, self._request_bytes):
                # The connection goes with it: the rest of the body would be taken for the next request.
                self._cut_off(
                    "slow-body",
                    f"Less than {self._settings.min_bytes_per_second:g} bytes of the body a second came in over "
                    f"{self._settings.slow_seconds:g} s.",
                    {"Connection": "close"},
                )
            return
        if self._pace is not None:
            self._pace.rest()
        if at - self._working_since > self._settings.request_seconds:
            self._cut_off(
                "took-too-long",
                f"There was no answer within {self._settings.request_seconds:g} s. What was begun goes on and may "
                "yet be done.",
            )

    def _cut_off(self, kind: str, detail: str, headers: dict[str, str] | None = None) -> None:
        self._metrics.count_cut_off(kind.replace("-", "_"))

        async def refuse() -> None:
            failure = problems.answer(Request(self.scope), kind, detail, headers=headers)
            await failure(self.scope, self._receive, self._pass_on)

        self.was_cut_off = True
        self._refusal = asyncio.get_running_loop().create_task(refuse())

    def end(self) -> None:
        """Count the request, and write its line."""
        scope = self.scope
        seconds = self._monotonic() - self._started_at
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._metrics.count_request(method=self.method, route=route, status=self.status, seconds=seconds)
        level = logging.WARNING if self.status is not None and self.status >= 500 else logging.INFO
        if not log.isEnabledFor(level):
            return
        fields: dict[str, Any] = {
            "method": self.method,
            "route": route,
            "status": self.status or GAVE_UP,
            "duration_seconds": round(seconds, 6),
            "request_bytes": self._request_bytes,
            "response_bytes": self._response_bytes,
        }
        client = scope.get("client")
        if client:
            fields["address"] = client[0]
        caller = scope.get("caller")
        if caller is not None:
            fields["workspace_id"] = str(caller.workspace_id)
            if caller.key_id is not None:
                fields["key_id"] = str(caller.key_id)
        if self.trace_id is not None:
            fields["trace_id"] = self.trace_id
        logs.write(log, level, "request", fields)


def _read(headers: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], bytes, bytes]:
    """Return the headers with each list that was sent on several lines on its first one, and two by themselves.

    Those are `X-Request-Id` and `traceparent`, empty where they are absent.
    """
    made: list[tuple[bytes, bytes]] = []
    place: dict[bytes, int] = {}
    request_id = traceparent = b""
    for header in headers:
        name, value = header
        if name in _LISTS:
            if name in place:
                at = place[name]
                made[at] = (name, made[at][1] + b", " + value)
                continue
            place[name] = len(made)
        elif name == b"x-request-id":
            request_id = request_id or value
        elif name == b"traceparent":
            # Sent twice it says nothing, by its specification.
            traceparent = b"" if traceparent else value
        made.append(header)
    return made, request_id, traceparent
