"""`python -m benchmarks.servers NAME`: serves one of the applications that are compared, and prints its port.

All three run under the same uvicorn (uvloop, httptools, no access log) and take the same model.
"""

import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from service.api import sizings
from service.api.examples import LLAMA_405B_SYNC
from service.app import create_app
from service.settings import Settings
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec

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

    @app.post("/v1/sizings", response_model_exclude_none=True)
    async def create_sizing(spec: ScenarioSpec, explain: bool = False) -> Sizing:
        return CANNED

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
