"""create_app(settings): the one place where the parts of the service are put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI

from service import __version__
from service.api import (
    api_keys,
    audit_events,
    benchmark_runs,
    explanations,
    gap_reports,
    openapi,
    operations,
    presets,
    problems,
    scenarios,
    series,
    sizings,
    solutions,
    test_plans,
    usage,
)
from service.api.access import Access
from service.api.dependencies import now
from service.api.idempotency import RunningRequests
from service.api.metrics import Metrics
from service.api.middleware import EveryRequest
from service.api.rates import RateLimits
from service.api.readiness import Readiness
from service.api.watch import Watch
from service.settings import Settings
from service.store.database import Database

if TYPE_CHECKING:
    from service.api.tracing import Tracing


def create_app(settings: Settings, *, tracing: "Tracing | None" = None) -> FastAPI:
    """Return the service as an ASGI application, with its own database handle. Connects at the first request.

    Args:
        settings: What the environment, or a test, wants.
        tracing: Where spans go; None for nowhere.
    """
    database = Database(
        settings.database_url, pool_size=settings.pool_size, lock_seconds=settings.lock_seconds
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # More threads than connections would only queue for a connection, and starve each other of SQLite's lock.
        current_default_thread_limiter().total_tokens = settings.pool_size
        yield
        app.state.readiness.close()
        database.close()
        if tracing is not None:
            tracing.close()

    app = FastAPI(
        title="stallbudget",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        # It looks for providers at every request, and nothing configures one.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.settings = settings
    app.state.database = database
    app.state.running = RunningRequests()
    app.state.metrics = metrics = Metrics()
    app.state.rates = RateLimits(settings)
    app.state.readiness = Readiness(database, within_seconds=settings.ready_seconds)
    # A quarter of the shortest limit, so that it holds to about that much.
    app.state.watch = watch = Watch(
        every_seconds=min(settings.head_seconds, settings.slow_seconds, settings.request_seconds) / 4
    )
    app.state.access = Access(database, settings, now=now)
    # Not include_router: it matches each request twice, against the router and then against its routes.
    for room in (
        sizings,
        solutions,
        presets,
        scenarios,
        benchmark_runs,
        test_plans,
        gap_reports,
        series,
        api_keys,
        audit_events,
        usage,
        explanations,
        operations,
    ):
        app.router.routes += room.router.routes
    problems.install(app)
    openapi.install(app)
    app.add_middleware(EveryRequest, settings=settings, watch=watch, metrics=metrics, tracing=tracing)
    return app
