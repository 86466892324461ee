"""What operators and browsers ask: `/livez`, `/readyz`, `/metrics`, `/openapi.json`, `/docs`, `/`; all undocumented."""

from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from service.api.access import needs_no_key
from service.api.bodies import StrictRoute
from service.api.dependencies import UseDatabase, UseSettings
from service.api.metrics import may_read
from service.api.rates import spends
from service.errors import NotFound
from service.wire import Outgoing

router = APIRouter(include_in_schema=False, route_class=StrictRoute)

DOCS_FILES = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}
"""What the documentation page is made of. It comes with a dependency, since closed networks reach no CDN."""


class State(Outgoing):
    """How the service is."""

    status: str


@router.get("/livez")
@needs_no_key
@spends(None)
async def get_liveness() -> State:
    """Say that the process answers."""
    return State(status="alive")


@router.get("/readyz")
@needs_no_key
@spends(None)
async def get_readiness(request: Request) -> State:
    """Say that the database answers, with its tables at this version; 503 otherwise, and in any case soon."""
    await request.app.state.readiness.require()
    return State(status="ready")


@router.get("/metrics", response_class=Response)
@needs_no_key
@spends(None)
async def get_metrics(request: Request, database: UseDatabase, settings: UseSettings) -> Response:
    """Return the counts of this process, for Prometheus; nothing is there for those who may not read them."""
    if not may_read(settings.metrics, request.scope):
        raise NotFound("There is nothing at /metrics.")
    content, content_type = request.app.state.metrics.exposition(
        accept=request.headers.get("accept", ""), database=database, rates=request.app.state.rates
    )
    return Response(content, headers={"Content-Type": content_type})


@router.get("/openapi.json")
@needs_no_key
async def get_openapi_document(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", response_class=HTMLResponse)
@needs_no_key
async def get_docs(request: Request) -> HTMLResponse:
    """Return the page that shows the OpenAPI document and tries it."""
    root = request.scope.get("root_path", "")
    return get_swagger_ui_html(
        openapi_url=f"{root}/openapi.json",
        title="stallbudget",
        swagger_js_url=f"{root}/docs/swagger-ui-bundle.js",
        swagger_css_url=f"{root}/docs/swagger-ui.css",
        swagger_favicon_url=f"{root}/docs/favicon.png",
    )


@router.get("/docs/{name}", response_class=Response)
@needs_no_key
async def get_docs_file(name: str) -> Response:
    """Return a file of that page."""
    if name not in DOCS_FILES:
        raise NotFound(f"There is nothing at /docs/{name[:100]}.")
    content = files("fastapi_offline").joinpath("static", name).read_bytes()
    return Response(content, media_type=DOCS_FILES[name], headers={"Cache-Control": "max-age=86400"})


@router.get("/", response_class=RedirectResponse)
@needs_no_key
async def get_start(request: Request) -> RedirectResponse:
    """Lead to the documentation."""
    return RedirectResponse(request.scope.get("root_path", "") + "/docs")
