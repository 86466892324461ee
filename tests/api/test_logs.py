"""The log: one line an event in either form, with the request's id, and without anything that was sent."""

import contextvars
import io
import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from service.api import logs
from service.settings import LogFormat, LogLevel, Settings
from service.sizing.spec import ScenarioSpec
from service.store.database import Database
from tests.api.asking import SYNC
from tests.running_server import running_server


@pytest.fixture
def stream() -> io.StringIO:
    """Return where the log goes."""
    return io.StringIO()


def _configure(stream: io.StringIO, format: LogFormat, level: LogLevel = LogLevel.INFO) -> logging.Logger:
    logs.configure(Settings(database_url="sqlite:///unused.db", log_format=format, log_level=level), stream)
    return logging.getLogger("stallbudget")


def _within_a_request(act: Callable[[], None]) -> None:
    def within() -> None:
        logs.REQUEST_ID.set("the-one")
        act()

    contextvars.copy_context().run(within)


def test_a_json_line_is_one_object_with_its_time_in_utc(stream: io.StringIO) -> None:
    log = _configure(stream, LogFormat.JSON)
    logs.write(log, logging.INFO, "request", {"status": 200, "route": "/v1/scenarios/{scenario_id}"})
    log.warning("two\nlines of %s", "ä\u2028!")
    logging.getLogger("uvicorn.error").info("started")
    first, second, third = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first.pop("at").endswith("Z")
    assert first == {
        "level": "info",
        "event": "request",
        "status": 200,
        "route": "/v1/scenarios/{scenario_id}",
    }
    assert (second["level"], second["event"]) == ("warning", "two\nlines of ä\u2028!")
    assert third["logger"] == "uvicorn.error"


def test_a_logfmt_line_quotes_what_is_more_than_a_word(stream: io.StringIO) -> None:
    log = _configure(stream, LogFormat.LOGFMT)
    logs.write(log, logging.INFO, "request", {"route": "/v1/sizings", "status": 200})
    log.warning('said "a=b"\nlevel=error')
    first, second = stream.getvalue().splitlines()
    assert first.split(" ", 1)[1] == "level=info event=request route=/v1/sizings status=200"
    assert second.split(" ", 1)[1] == r'level=warning event="said \"a=b\"\nlevel=error"'


def test_a_line_within_a_request_has_its_id(stream: io.StringIO) -> None:
    log = _configure(stream, LogFormat.JSON)
    _within_a_request(lambda: log.info("in"))
    log.info("out")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["request_id"], "request_id" in second) == ("the-one", False)


def test_below_its_level_nothing_is_written(stream: io.StringIO) -> None:
    log = _configure(stream, LogFormat.JSON, LogLevel.WARNING)
    logs.write(log, logging.INFO, "request", {})
    logging.getLogger("uvicorn.error").info("started")
    logging.getLogger("somebody.else").info("hello")
    assert stream.getvalue() == ""


SECRET = "hunter2"  # noqa: S105 - it opens nothing
"""Named, since a traceback shows lines of the source."""


def _fail_in_pydantic() -> None:
    ScenarioSpec.model_validate({**SYNC, "model": {"parameters": SECRET}})


def _fail_in_sql(folder: Path) -> None:
    with Database(f"sqlite:///{folder}/a.db").begin() as transaction:
        transaction.execute(text("SELECT nothing(:value)"), {"value": SECRET})


def _fail_in_chain() -> None:
    try:
        int(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


def _fail_in_group() -> None:
    raise ExceptionGroup(SECRET, [ValueError(SECRET), OSError(28, SECRET)])


@pytest.mark.parametrize(
    ("fail", "named"),
    [
        (_fail_in_pydantic, ["ValidationError", "_fail_in_pydantic"]),
        (_fail_in_chain, ["ValueError", "which led to", "KeyError"]),
        (_fail_in_group, ["ExceptionGroup", "which holds", "ValueError", "OSError (ENOSPC)"]),
    ],
)
@pytest.mark.parametrize("format", list(LogFormat))
def test_a_failure_within_a_request_has_a_traceback_and_no_value(
    stream: io.StringIO, format: LogFormat, fail: Callable[[], None], named: list[str]
) -> None:
    log = _configure(stream, format)

    def act() -> None:
        try:
            fail()
        except Exception:
            log.exception("request failed")

    _within_a_request(act)
    assert SECRET not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 1
    for name in named:
        assert name in stream.getvalue()


def test_outside_of_requests_a_failure_keeps_its_message(stream: io.StringIO) -> None:
    log = _configure(stream, LogFormat.JSON)
    try:
        raise RuntimeError("no space for the log")
    except RuntimeError:
        log.exception("start failed")
    line = json.loads(stream.getvalue())
    assert line["exception"] == "RuntimeError"
    assert "no space for the log" in line["traceback"]


def test_parameters_of_a_statement_are_in_no_message(tmp_path: Path) -> None:
    with pytest.raises(Exception) as caught:
        _fail_in_sql(tmp_path)
    assert isinstance(caught.value.__cause__ or caught.value.__context__, sqlite3.Error)
    assert SECRET not in str(caught.value)


def test_a_service_that_runs_writes_json_lines_and_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []
    with running_server(f"sqlite:///{tmp_path}/a.db", said, log_format="json") as port:
        httpx.get(f"http://127.0.0.1:{port}/v1/scenarios?limit={SECRET}", headers={"X-Request-Id": "mine"})
    lines = [json.loads(line) for line in said]
    assert {line["level"] for line in lines} == {"info"}
    (request,) = (line for line in lines if line["event"] == "request")
    assert (request["request_id"], request["route"], request["status"]) == ("mine", "/v1/scenarios", 422)
    assert SECRET not in "".join(said)
    assert any(line.get("logger", "").startswith("alembic") for line in lines)
