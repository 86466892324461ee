"""Every failure as an `application/problem+json` document (RFC 9457): one table, one shape.

A `type` is a path that serves its own explanation. `errors` names every wrong field at once.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from service import errors
from service.api.rates import Budget, charge
from service.errors import Fault
from service.strict_json import pointer
from service.wire import Absent, Outgoing

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2
MAX_ERRORS = 100
"""How many wrong places one answer lists: a body can hold tens of thousands."""
MAX_NAME = 200
"""How much of an unknown field's name an answer repeats."""

log = logging.getLogger("stallbudget")


class ProblemError(Outgoing):
    """One thing wrong with one place of the request."""

    pointer: str
    """Where: `#/cluster/gpus` in a body, `#` for the whole of it, the bare name of a parameter."""
    code: str
    """A stable word for what is wrong."""
    detail: str
    """What is wrong, and what would be right."""
    line: int | Absent = None
    """The line of an uploaded text, counted from 1."""


class Problem(Outgoing):
    """Why a request was refused or failed."""

    type: str
    """A path on this service that explains the kind of problem."""
    title: str
    """The kind of problem in a few words."""
    status: int
    """The HTTP status."""
    detail: str
    """What happened this time."""
    request_id: str
    """The id of the request, as in its `X-Request-Id` header and in the service's log."""
    errors: list[ProblemError]
    """Every wrong place, or the first hundred; empty where the problem is not about a place."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its status, and what its page says."""

    name: str
    status: int
    title: str
    meaning: str
    cure: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("malformed-json", 400, "The body is not JSON",
             "The body is empty, not UTF-8, not JSON (NaN and Infinity are not JSON), or nests too deep.",
             "Send one JSON object in UTF-8. `errors` says where reading stopped."),
        Kind("bad-request", 400, "The request cannot be read", "The request itself is malformed.",
             "Check it against the OpenAPI document."),
        Kind("unauthorized", 401, "A key is needed", "The request has no API key, or one that is not good.",
             "Send a key as Authorization: Bearer sbk_…; `stallbudget key create` or POST /v1/api-keys makes one."),
        Kind("forbidden", 403, "That is not allowed",
             "The key has not the scope that this needs; or, without keys, the request came from another site's page.",
             "Use a key with the scope in `detail`."),
        Kind("not-found", 404, "There is no such thing", "The path or the id in it names nothing that exists here.",
             "List the resources to find the id; the paths are in /openapi.json."),
        Kind("method-not-allowed", 405, "The path has no such method", "The resource exists and cannot do this.",
             "Use one of the methods in the Allow header."),
        Kind("not-acceptable", 406, "No such representation", "Accept names no media type that this path has.",
             "Leave Accept out, or ask for one of the media types in `detail`."),
        Kind("name-taken", 409, "The name is taken",
             "Another scenario of the workspace has this name; names are unique.",
             "Choose another name, or replace that scenario by PUT."),
        Kind("runs-exist", 409, "The scenario has benchmark runs", "Deleting it would delete evidence.",
             "Delete the runs first, or repeat with ?runs=delete."),
        Kind("run-id-taken", 409, "The run_id was posted with other bytes",
             "A dcp-timing document with this run_id is stored, and its bytes differ.",
             "Give a new run a new run_id; to correct a run, delete the stored one first."),
        Kind("key-ended", 409, "The key has ended", "A key that is revoked or has expired gets no other secret.",
             "Make another key."),
        Kind("idempotency-key-in-use", 409, "The request is still being answered",
             "A request with this Idempotency-Key has not been answered yet.",
             "Send it again after the seconds in Retry-After, under the same key."),
        Kind("slow-body", 408, "The body came too slowly",
             "Less of the body came than the service waits for. The connection is closed.",
             "Send it again over a better connection, or compressed; the least pace is in `detail`."),
        Kind("document-removed", 410, "The document was removed",
             "The run is kept, with all that was read from its document; the original went for its age.",
             "Post the file again, if you have it: delete the run first, which is otherwise found again."),
        Kind("stale", 412, "The resource has changed", "If-Match names a revision that is not the current one.",
             "Read the resource again, apply the change to what it says now, and send the new ETag."),
        Kind("too-large", 413, "The body is too large", "The body is longer than the service reads.",
             "Send less; the limit is in `detail`."),
        Kind("unsupported-encoding", 415, "The content encoding is not supported",
             "The Content-Encoding names a compression that this path does not read.",
             "Send the body as it is, or in one of the encodings that Accept-Encoding of the answer lists."),
        Kind("invalid-request", 422, "The request is wrong", "It was read, and fields of it are wrong.",
             "Correct each place in `errors`; all of them are listed."),
        Kind("unsatisfiable", 422, "The scenario has no answer",
             "Every field is well-formed, and together they leave nothing that could be computed.",
             "Change one of the places in `errors`; each says what would satisfy it."),
        Kind("unreadable-document", 422, "The document holds no usable result",
             "The upload is not a benchmark result that can be used. Nothing was stored.",
             "See `errors` for the first bad line or place; post the file as the tool wrote it."),
        Kind("idempotency-key-reused", 422, "The Idempotency-Key belongs to another request",
             "A request of the same owner had this key within 24 hours, and asked something else.",
             "Make a new key for each request, and repeat one only to send the same request again."),
        Kind("precondition-required", 428, "If-Match is missing",
             "Changing or deleting a resource needs the ETag of what was read, so that no change is lost.",
             "Send the resource's ETag in If-Match, or * to overwrite whatever is there."),
        Kind("too-many-attempts", 429, "Too many wrong keys", "Too many keys that came from this address were wrong.",
             "Correct the key, and try again after the seconds in Retry-After."),
        Kind("rate-limited", 429, "Too many requests",
             "The key, or the address where there is no key, has used up its quota for this kind of work.",
             "Send it again after the seconds in Retry-After; RateLimit says on every answer how much is left."),
        Kind("busy", 503, "The service is busy", "The service works on as many requests as it may.",
             "Try again after the seconds in Retry-After."),
        Kind("took-too-long", 503, "The answer took too long",
             "The answer did not begin in time. A change that was asked for may be made nevertheless.",
             "Read what there is before sending a change again, or send it under the same Idempotency-Key; ask for "
             "less at once."),
        Kind("shutting-down", 503, "The process ends", "It finishes what it works on, and takes nothing new.",
             "Send the request again: another process, or the next one, answers it."),
        Kind("unavailable", 503, "The database is not available",
             "The database does not answer, or its tables are not those of this version.",
             "Try again after the seconds in Retry-After; see /readyz."),
        Kind("internal-error", 500, "The service failed", "A fault of the service, not of the request. It was logged.",
             "Report the request_id."),
    )
}  # fmt: skip

KIND_OF_ERROR: dict[type[errors.StallbudgetError], str] = {
    errors.Unsatisfiable: "unsatisfiable",
    errors.UnreadableDocument: "unreadable-document",
    errors.NotFound: "not-found",
    errors.DocumentRemoved: "document-removed",
    errors.NameTaken: "name-taken",
    errors.Stale: "stale",
    errors.RunsExist: "runs-exist",
    errors.RunIdTaken: "run-id-taken",
    errors.KeyEnded: "key-ended",
    errors.KeyReused: "idempotency-key-reused",
    errors.StillRunning: "idempotency-key-in-use",
    errors.RateLimited: "rate-limited",
    errors.ShuttingDown: "shutting-down",
    errors.DatabaseUnavailable: "unavailable",
}

_KIND_OF_STATUS = {400: "bad-request", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}


class Refused(errors.StallbudgetError):
    """A request that the HTTP rules refuse before any resource is asked.

    Args:
        kind: A name of `KINDS`.
        detail: What happened this time.
        faults: The wrong places, if it is about places.
        headers: To send along.
    """

    def __init__(
        self, kind: str, detail: str, *faults: Fault, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.faults = faults
        self.headers = dict(headers or {})


def describes(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that can end in the statuses: each a problem document."""
    titles: dict[int, list[str]] = {}
    for kind in KINDS.values():
        titles.setdefault(kind.status, []).append(kind.title)
    return {
        status: {
            "description": "; or ".join(titles[status]) + ".",
            # Not `model=Problem`: FastAPI would build a validator for every status of every route at each start.
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({*statuses, 500})
    }


def request_id_of(request: Request) -> str:
    """Return the id that the middleware gave the request."""
    return str(request.scope.get("request_id", ""))


def answer(
    request: Request,
    kind_name: str,
    detail: str,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the problem document of a kind, for this request."""
    kind = KINDS[kind_name]
    problem = Problem(
        type=f"/problems/{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=detail.encode(errors="replace").decode(),  # a server may hand on a path with lone surrogates
        request_id=request_id_of(request),
        errors=[
            ProblemError(pointer=fault.pointer, code=fault.code, detail=fault.detail, line=fault.line)
            for fault in faults
        ],
    )
    sent = dict(headers or {})
    if kind.status == 503 or kind.name == "idempotency-key-in-use":
        sent["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=kind.status,
        headers=sent,
        media_type=MEDIA_TYPE,
    )


def install(app: FastAPI) -> None:
    """Answer every failure of the app with a problem document."""
    app.add_exception_handler(errors.StallbudgetError, _on_own_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_own_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.StallbudgetError)  # noqa: S101 - the handler is installed for it
    count = request.scope.get("count_refusal")
    if count is not None:
        count(error)
    if isinstance(error, Refused):
        return answer(request, error.kind, str(error), error.faults, error.headers)
    faults: Sequence[Fault] = ()
    headers = {}
    if isinstance(error, errors.DatabaseUnavailable):
        log.warning("the database is not available: %s", error)
    elif isinstance(error, errors.RateLimited):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, errors.Unsatisfiable):
        faults = error.faults
    elif isinstance(error, errors.UnreadableDocument):
        faults = (Fault(error.pointer or "#", error.code, error.detail, error.line),)
    elif isinstance(error, errors.NameTaken):
        faults = (Fault("#/name", "name_taken", str(error)),)
    elif isinstance(error, errors.Stale):
        faults = (Fault("If-Match", "stale", str(error)),)
    elif isinstance(error, errors.KeyReused | errors.StillRunning):
        faults = (Fault("Idempotency-Key", KIND_OF_ERROR[type(error)].replace("-", "_"), str(error)),)
    return answer(request, KIND_OF_ERROR[type(error)], str(error), faults, headers)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler is installed for it
    headers = dict(error.headers or {})
    detail = str(error.detail)
    if error.status_code == 405:
        methods = sorted(_methods_at(request))
        headers["Allow"] = ", ".join(methods)
        detail = f"{request.url.path} takes {', '.join(methods)}; not {request.method}."
    elif error.status_code == 404:
        detail = f"There is nothing at {request.url.path[:200]}."
    if "rate_limit" not in request.scope:
        try:
            charge(request.scope, Budget.READING)
        except errors.RateLimited as limited:
            return await _on_own_error(request, limited)
    kind = _KIND_OF_STATUS.get(error.status_code)
    if kind is None:
        log.error("unexpected status %s of %s", error.status_code, request_id_of(request))
        kind = "internal-error" if error.status_code >= 500 else "bad-request"
    return answer(request, kind, detail, headers=headers)


def _methods_at(request: Request) -> set[str]:
    """Return every method of the path: one path has a route for each of them."""
    found: set[str] = set()
    for route in request.app.router.routes:
        if route.path_regex.match(request.url.path):
            found |= route.methods
    return found | ({"HEAD"} if "GET" in found else set())


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler is installed for it
    found = error.errors()
    if any(item["loc"][0] == "path" for item in found):
        return answer(request, "not-found", f"There is nothing at {request.url.path[:200]}.")
    body_field = getattr(request.scope.get("route"), "body_field", None)
    model = body_field.field_info.annotation if body_field is not None else None
    listed = list(_faults(found[:MAX_ERRORS], model))
    if len(found) < MAX_ERRORS:
        listed += _behind(found, listed, model, error.body)
        listed = listed[:MAX_ERRORS]
    return answer(
        request, "invalid-request", summary(listed, unlisted=max(len(found) - MAX_ERRORS, 0)), listed
    )


def summary(faults: Sequence[Fault], *, unlisted: int = 0) -> str:
    """Return the first fault in words, and how many more there are."""
    count = len(faults) - 1 + unlisted
    more = f" And {count} more; see errors." if count else ""
    return f"{faults[0].pointer}: {faults[0].detail}{more}"


_CODES = {"extra_forbidden": "unknown_field", "missing": "missing"}


def _faults(found: Iterable[Mapping[str, Any]], model: Any) -> Iterable[Fault]:  # noqa: ANN401 - a type of any kind
    """Yield the faults of pydantic's errors, ours among them with their own places."""
    for item in found:
        where, *place = (part[:MAX_NAME] if isinstance(part, str) else part for part in item["loc"])
        base = pointer(*place) if where == "body" else "-".join(str(part) for part in place[:1])
        if where == "header":
            base = base.title()
        inner = item.get("ctx", {}).get("faults")
        if inner is not None:
            for fault in inner:
                yield Fault(base + fault.pointer, fault.code, fault.detail)
            continue
        kind = str(item["type"])
        detail = str(item["msg"]) + "."
        if kind == "extra_forbidden":
            detail = _unknown_field(str(place[-1]), _fields_at(model, place[:-1]))
        elif kind == "missing":
            detail = "This field is required." if place else "A body is required."
        elif kind in ("model_type", "model_attributes_type", "dict_type"):
            detail = "A JSON object belongs here."
        yield Fault(base, _CODES.get(kind, kind), detail)


def _unknown_field(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    if close:
        return f"There is no such field here; {close[0]} may be meant."
    return "There is no such field here" + (f"; there are {', '.join(known)}." if known else ".")


def _behind(
    found: Sequence[Mapping[str, Any]],
    listed: Sequence[Fault],
    model: Any,  # noqa: ANN401 - a type of any kind
    body: Any,  # noqa: ANN401 - whatever JSON holds
) -> Iterable[Fault]:
    """Yield what a model would find wrong besides, were the fields that it refused not there.

    Pydantic looks for contradictions between fields only once each of them is well-formed by itself.
    """
    places = [
        item["loc"][1:] for item in found if item["loc"][0] == "body" and "faults" not in item.get("ctx", {})
    ]
    if not (isinstance(model, type) and issubclass(model, BaseModel) and isinstance(body, dict) and places):
        return
    try:
        model.model_validate(_without(body, places))
    except ValidationError as error:
        told = {fault.pointer for fault in listed}
        emptied = {pointer(*place[:-1]) for place in places}
        blocks = {
            pointer(*item["loc"][1:-1])
            for item in found
            if item["loc"][0] == "body" and item["type"] not in ("extra_forbidden", "missing")
        }
        for fault in _faults([{**item, "loc": ("body", *item["loc"])} for item in error.errors()], model):
            # Beside a refused field something may be missing, or contradict a default, only because that one is out.
            block = {fault.pointer, fault.pointer.rpartition("/")[0]} & blocks
            if (
                fault.pointer in told
                or (block and fault.code in ("missing", "contradiction"))
                or (fault.code == "missing" and fault.pointer in emptied)
            ):
                continue
            yield fault


def _without(body: dict[str, Any], places: Sequence[Sequence[str | int]]) -> dict[str, Any]:
    """Return the body less what lies at the places."""
    kept = deepcopy(body)
    for *way, last in places:
        inner: Any = kept
        for part in way:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.pop(last, None)
    return kept


def _fields_at(model: Any, place: Sequence[str | int]) -> list[str]:  # noqa: ANN401 - a type of any kind
    """Return the names of the fields of the model that a place leads to."""
    for part in place:
        field = (
            model.model_fields.get(str(part))
            if isinstance(model, type) and issubclass(model, BaseModel)
            else None
        )
        if field is None:
            return []
        model = next((arg for arg in get_args(field.annotation) if arg is not type(None)), field.annotation)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []
