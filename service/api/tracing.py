"""Spans of requests, for OpenTelemetry. Loaded only where they go somewhere; the extra `stallbudget[otel]` sends them.

A span has the route by its template, and no path, query or body. What starts them and where they go, the standard
variables say: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` and so on.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind, StatusCode, format_trace_id, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.requests import ClientDisconnect

from service import __version__
from service.settings import SettingError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from service.api.middleware import Exchange

_PROPAGATED = (b"traceparent", b"tracestate")


class Tracing:
    """Makes a span of every request, as part of the caller's trace where it names one.

    Args:
        provider: Makes the spans, and sends them.
    """

    def __init__(self, provider: "TracerProvider") -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("stallbudget", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span_of(self, exchange: "Exchange") -> Iterator[None]:
        """Give a span that lasts until the request has ended."""
        scope = exchange.scope
        carrier = {
            name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _PROPAGATED
        }
        span = self._tracer.start_span(
            exchange.method,
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": exchange.method,
                "url.scheme": scope.get("scheme", "http"),
                "stallbudget.request_id": scope["request_id"],
            },
        )
        exchange.trace_id = format_trace_id(span.get_span_context().trace_id)
        failed = False
        try:
            # What failed is in the log, under the same trace; its message may quote what was sent.
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except ClientDisconnect:
            raise
        except Exception:
            failed = True
            raise
        finally:
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                span.update_name(f"{exchange.method} {route}")
                span.set_attribute("http.route", route)
            if exchange.status is not None:
                span.set_attribute("http.response.status_code", exchange.status)
            if failed or (exchange.status is not None and exchange.status >= 500):
                span.set_status(StatusCode.ERROR)
            span.end()

    def close(self) -> None:
        """Send what is not sent yet."""
        self._provider.shutdown()


def from_environment() -> Tracing:
    """Return what sends spans to where the environment says.

    Raises:
        SettingError: The packages for it are not there.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends traces is not installed: install stallbudget[otel]."
        ) from None
    about: dict[str, Any] = {"service.version": __version__}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        about["service.name"] = "stallbudget"
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
