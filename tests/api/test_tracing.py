"""Traces: a span of every request where they go somewhere, and nothing loaded where they do not."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.testclient import TestClient

from service.api.tracing import Tracing
from service.app import create_app
from service.settings import Settings
from service.sizing import presets
from tests.api.asking import LOCAL, NOWHERE, SYNC

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def _spans(ask: Callable[[TestClient], object]) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(Settings(database_url="sqlite:///unused.db"), tracing=Tracing(provider))
    with TestClient(app, base_url=LOCAL, raise_server_exceptions=False) as client:
        ask(client)
    return list(exporter.get_finished_spans())


def test_a_request_is_a_span_of_its_callers_trace() -> None:
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-Id": "mine"}
    (span,) = _spans(lambda client: client.post("/v1/sizings?explain=true", json=SYNC, headers=headers))
    assert (span.name, span.kind) == ("POST /v1/sizings", SpanKind.SERVER)
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (int(TRACE, 16), int(SPAN, 16))
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "stallbudget.request_id": "mine",
        "http.route": "/v1/sizings",
        "http.response.status_code": 200,
    }
    assert span.status.status_code is StatusCode.UNSET


def test_its_line_in_the_log_names_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "stallbudget"):
        (span,) = _spans(lambda client: client.get("/livez"))
    (line,) = (vars(record)["fields"] for record in caplog.records if record.getMessage() == "request")
    assert int(line["trace_id"], 16) == span.context.trace_id


def test_no_path_and_no_query_is_in_a_span() -> None:
    def ask(client: TestClient) -> None:
        client.get(f"/v1/scenarios/{NOWHERE}?note=confidential")
        client.get("/confidential")

    spans = _spans(ask)
    assert [span.name for span in spans] == ["GET /v1/scenarios/{scenario_id}", "GET"]
    assert all("confidential" not in span.to_json() and NOWHERE not in span.to_json() for span in spans)


def test_a_failure_is_an_error_without_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("confidential")

    monkeypatch.setattr(presets, "gpus", fail)
    (span,) = _spans(lambda client: client.get("/v1/presets/gpus"))
    assert span.status.status_code is StatusCode.ERROR
    assert "confidential" not in span.to_json()


def _loaded(**variables: str) -> dict[str, object]:
    code = """
import json, sys
from service import cli
tracing = cli._tracing()
from service.app import create_app
from service.settings import Settings
create_app(Settings(database_url="sqlite:///unused.db"), tracing=tracing)
print(json.dumps({"traces": tracing is not None, "sdk": "opentelemetry.sdk" in sys.modules}))
if tracing is not None:
    tracing.close()
"""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "STALLBUDGET_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | variables, capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("variables", "traces"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_nothing_is_loaded_unless_the_environment_says_where_traces_go(
    variables: dict[str, str], traces: bool
) -> None:
    assert _loaded(**variables) == {"traces": traces, "sdk": traces}
