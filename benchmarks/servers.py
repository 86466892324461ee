"""`python -m benchmarks.servers NAME`: serves one of the applications that are compared, and prints its port.

All three run under the same uvicorn (uvloop, httptools, no access log) and take the same model. The plain one has a
canned answer to what `benchmarks.databases` asks as well.
"""

import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import uvicorn
from fastapi import FastAPI, Request

from service.api import sizings
from service.api.examples import IOR_CSV, LLAMA_405B_SYNC
from service.app import create_app
from service.parsers import register
from service.parsers.run import BenchmarkRun
from service.settings import Settings
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec
from service.store.scenarios import Scenario

CANNED = size(ScenarioSpec.model_validate(LLAMA_405B_SYNC))


def service() -> FastAPI:
    """Return the service as it is."""
    return create_app(Settings(database_url="sqlite:///unused.db", computing_per_minute=10**9))


def canned() -> FastAPI:
    """Return the service with nothing but the computation replaced: it answers the same sizing to everybody."""
    setattr(sizings, "size", lambda spec, *, explained=False: CANNED)  # noqa: B010 - a name that is not exported
    return service()


def plain() -> FastAPI:
    """Return what FastAPI alone makes of such an endpoint: none of our middleware, none of our strict reading."""
    app = FastAPI()
    at, id = datetime.now(UTC), UUID(int=0)
    spec = ScenarioSpec.model_validate(LLAMA_405B_SYNC)
    scenario = Scenario(id=id, name="llama", revision=1, spec=spec, created_at=at, updated_at=at)
    document = IOR_CSV.encode()
    run = BenchmarkRun(
        **dict(register.parse(document)),
        id=id,
        scenario_id=id,
        scenario_revision=1,
        received_at=at,
        sha256="0" * 64,
        document_bytes=len(document),
        conditions=[],
    )

    @app.post("/v1/sizings", response_model_exclude_none=True)
    async def create_sizing(spec: ScenarioSpec, explain: bool = False) -> Sizing:
        return CANNED

    @app.get("/v1/scenarios/{scenario_id}", response_model_exclude_none=True)
    async def get_scenario(scenario_id: UUID) -> Scenario:
        return scenario

    @app.post("/v1/scenarios/{scenario_id}/benchmark-runs", status_code=201, response_model_exclude_none=True)
    async def create_benchmark_run(scenario_id: UUID, request: Request) -> BenchmarkRun:
        await request.body()
        return run

    return app


APPS: dict[str, Callable[[], FastAPI]] = {"service": service, "canned": canned, "plain": plain}


def main() -> None:
    """Serve until the process is ended."""
    app = APPS[sys.argv[1]]()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(
            app, loop="uvloop", http="httptools", access_log=False, log_level="warning", lifespan="on"
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
