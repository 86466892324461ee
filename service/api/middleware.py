"""Around every request: its id, a HEAD for every GET, and a problem document for what nobody caught. Pure ASGI."""

import logging
import re
from collections.abc import Iterable
from secrets import token_hex

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api import problems

log = logging.getLogger("stallbudget")

_LISTS = (b"accept", b"content-encoding", b"if-match", b"if-none-match")
"""Headers that hold a list, and mean the same on one line as on several."""
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,128}")


class EveryRequest:
    """Gives each request an id, and keeps a failure from ending as anything but a problem document."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its id in the scope and in the answer's `X-Request-Id`."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        request_id = asked if _WELL_FORMED.fullmatch(asked) else token_hex(16)
        without_body = scope["method"] == "HEAD"
        scope = {
            **scope,
            "headers": _on_one_line(scope["headers"]),
            "request_id": request_id,
            "method": "GET" if without_body else scope["method"],
        }
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            elif without_body and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        except ClientDisconnect:
            # Nobody is left to be answered, and nothing here is at fault.
            log.info("request %s was given up by its sender", request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            if started:
                raise
            failure = problems.answer(
                Request(scope), "internal-error", "The service failed; its log has the request_id."
            )
            await failure(scope, receive, send_on)


def _on_one_line(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers with each list that was sent on several lines on its first one."""
    made: list[tuple[bytes, bytes]] = []
    place: dict[bytes, int] = {}
    for name, value in headers:
        if name in place:
            at = place[name]
            made[at] = (name, made[at][1] + b", " + value)
            continue
        if name in _LISTS:
            place[name] = len(made)
        made.append((name, value))
    return made
