"""`/problems/{type}` and `/doubts/{code}`: what a problem or a doubt means, and how to cure it."""

from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import HTMLResponse

from service.api.access import needs_no_key
from service.api.bodies import StrictRoute, accepts
from service.api.problems import KINDS, describes
from service.errors import NotFound
from service.judgement.doubts import FLATTERS, VOIDS
from service.parsers.doubt_pages import PAGES
from service.parsers.measurement import DoubtCode
from service.wire import Outgoing

router = APIRouter(tags=["explanations"], route_class=StrictRoute)

Accept = Annotated[str | None, Header(include_in_schema=False)]
VARIES = {"Vary": "Accept"}
AS_PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


class ProblemExplanation(Outgoing):
    """What one `type` of problem document means."""

    type: str
    title: str
    status: int
    meaning: str
    cure: str


class DoubtExplanation(Outgoing):
    """What one code of a doubt means."""

    code: DoubtCode
    title: str
    meaning: str
    effect: str
    """What it does to a judgement."""
    cure: str


class ProblemExplanationList(Outgoing):
    """Every type of problem."""

    items: list[ProblemExplanation]


class DoubtExplanationList(Outgoing):
    """Every code of a doubt."""

    items: list[DoubtExplanation]


_PROBLEMS = {
    kind.name: ProblemExplanation(
        type=f"/problems/{kind.name}",
        title=kind.title,
        status=kind.status,
        meaning=kind.meaning,
        cure=kind.cure,
    )
    for kind in KINDS.values()
}


def _effect(code: DoubtCode) -> str:
    if code in FLATTERS:
        return "The true figure can only be worse: the run may prove a target missed, never met."
    if code in VOIDS:
        return "The run proves nothing."
    if code is DoubtCode.UNKNOWN_TOPOLOGY:
        return "A figure of unknown nodes is not comparable, until the run is posted with its nodes."
    if code is DoubtCode.BLOCK_SMALLER_THAN_SHARD:
        return "Times of the run can prove a target missed, never met; rates are not touched."
    return "None on the status; it is shown beside the figure."


@router.get("/problems", response_model_exclude_none=True, responses=describes(406, 422))
@needs_no_key
async def list_problem_types() -> ProblemExplanationList:
    """List every type of problem that this service answers with."""
    return ProblemExplanationList(items=list(_PROBLEMS.values()))


@router.get(
    "/problems/{type}", response_model_exclude_none=True, responses={**AS_PAGE, **describes(404, 406, 422)}
)
@needs_no_key
async def get_problem_type(type: str, response: Response, accept: Accept = None) -> ProblemExplanation:
    """Say what a type of problem means and how to cure it; as a page where the caller prefers one."""
    found = _PROBLEMS.get(type)
    if found is None:
        raise NotFound(f"There is no problem type {type[:80]!r}; /problems lists them.")
    response.headers.update(VARIES)
    return _page(accept, f"{found.status} {found.title}", [found.meaning, found.cure]) or found  # type: ignore[return-value]


@router.get("/doubts", response_model_exclude_none=True, responses=describes(406, 422))
@needs_no_key
async def list_doubt_codes() -> DoubtExplanationList:
    """List every reason that this service has to doubt a run."""
    return DoubtExplanationList(items=[_doubt(code) for code in DoubtCode])


@router.get(
    "/doubts/{code}", response_model_exclude_none=True, responses={**AS_PAGE, **describes(404, 406, 422)}
)
@needs_no_key
async def get_doubt_code(code: str, response: Response, accept: Accept = None) -> DoubtExplanation:
    """Say what a doubt means and how to cure it; as a page where the caller prefers one."""
    if code not in set(DoubtCode):
        raise NotFound(f"There is no doubt {code[:80]!r}; /doubts lists them.")
    found = _doubt(DoubtCode(code))
    response.headers.update(VARIES)
    return _page(accept, found.title, [found.meaning, found.effect, found.cure]) or found  # type: ignore[return-value]


def _doubt(code: DoubtCode) -> DoubtExplanation:
    page = PAGES[code]
    return DoubtExplanation(
        code=code, title=page.title, meaning=page.meaning, effect=_effect(code), cure=page.cure
    )


def _page(accept: str | None, title: str, paragraphs: list[str]) -> Response | None:
    """Return the explanation as a page, where a browser asks for one before JSON."""
    if accept is None or accepts(accept, "text/html") <= accepts(accept, "application/json"):
        return None
    body = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<h1>{escape(title)}</h1>{body}</html>",
        headers=VARIES,
    )
