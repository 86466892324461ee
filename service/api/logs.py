"""The log: one line an event, as JSON or as `key=value`, with the id of the request that it belongs to.

No line holds a body, a query string, a key or an id from a path; those of requests name the route by its template.
What fails within a request is written with its traceback and without its message, since messages quote what was
sent: pydantic's the value, Postgres's the row.
"""

import errno
import json
import logging
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from service.settings import LogFormat, Settings

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that the present code works for; threads that it starts see it too."""

_OURS = ("stallbudget", "uvicorn", "alembic")
# ASCII alone: no terminal and no reader of logs takes anything in it for a command or a line's end.
_encode = json.JSONEncoder(default=str).encode
_BARE = re.compile(r"[A-Za-z0-9_.:/{}+@%-]+")


def configure(settings: Settings, stream: TextIO) -> None:
    """Write the log of this process to a stream, everybody's lines in one form."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if settings.log_format is LogFormat.JSON else Logfmt())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in _OURS:
        logging.getLogger(name).setLevel(settings.log_level.upper())


def write(logger: logging.Logger, level: int, event: str, fields: Mapping[str, object]) -> None:
    """Write a line with fields."""
    if logger.isEnabledFor(level):
        logger.handle(_Event(logger.name, level, event, fields))


class _Event(logging.LogRecord):
    """A record made in a fifth of the time: nobody looks up where it was written, in which thread, and so on."""

    def __init__(self, name: str, level: int, event: str, fields: Mapping[str, object]) -> None:
        created = time.time()
        vars(self).update(
            _BLANK,
            name=name,
            levelno=level,
            levelname=logging.getLevelName(level),
            msg=event,
            fields=fields,
            created=created,
            msecs=created % 1 * 1000,
        )


_BLANK = {
    **vars(logging.LogRecord("", 0, "", 0, "", None, None)),
    "thread": None,
    "threadName": None,
    "taskName": None,
}


class _Lines(logging.Formatter):
    """What both forms have in common."""

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._second_text = ""

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return what a line says, in its order."""
        event = record.getMessage()
        said: dict[str, Any] = {
            "at": self._instant(record.created),
            "level": record.levelname.lower(),
            "event": event.rstrip(),
        }
        if record.name != _OURS[0]:
            said["logger"] = record.name
        request_id = REQUEST_ID.get()
        if request_id is not None:
            said["request_id"] = request_id
        said.update(vars(record).get("fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said["exception"] = type(error).__qualname__
            said["traceback"] = (
                self.formatException(record.exc_info)
                if request_id is None
                else "".join(_without_messages(error)).rstrip()
            )
        return said

    def _instant(self, created: float) -> str:
        second = int(created)
        if second != self._second:
            # Threads may get here at once: what they set is the same, or is set anew for the next line.
            text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second_text, self._second = text, second
        else:
            text = self._second_text
        return f"{text}.{int(created % 1 * 1000):03d}Z"


class JsonLines(_Lines):
    """Each line a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return _encode(self.fields_of(record))


class Logfmt(_Lines):
    """Each line `key=value key=value`, a value in quotes where it holds more than a word."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return " ".join(f"{name}={_word(value)}" for name, value in self.fields_of(record).items())


def _word(value: object) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else _encode(text)


def _without_messages(error: BaseException) -> Iterator[str]:
    """Yield the traceback of an exception, after that of what it came from, with the types and no messages."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _without_messages(before)
        yield "which led to\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}{_code(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield "which holds\n"
            yield from _without_messages(each)


def _code(error: BaseException) -> str:
    """Return the code of a failure of the system or of a database, which says what the message would."""
    code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    if code is None and isinstance(error, OSError) and error.errno is not None:
        code = errno.errorcode.get(error.errno)
    return f" ({code})" if code else ""
