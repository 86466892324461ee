"""Reading bodies and the rest of the request by the rules: bounded, strict JSON, known parameters, known `Accept`."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from service.api.access import needed_by
from service.api.encodings import ENCODINGS, BrokenEncoding, Unpacker
from service.api.problems import MAX_ERRORS, Refused, describes, summary
from service.api.rates import Budget, charge, spent_by
from service.errors import Fault
from service.store.caller import AccessScope
from service.strict_json import JsonFault, loads

LARGE_BYTES = 65_536
"""From this size on JSON is read in a thread, so that a hostile body holds up nobody else."""

_WRITTEN_WRONG = {"duplicate_key"}
"""Faults of a body that can be read as JSON, and so is wrong rather than malformed."""


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body as it was before its Content-Encoding, counted while it is read and unpacked.

    Raises:
        Refused: It is longer than `max_bytes`, packed or unpacked, or in an encoding that we do not read.
        BrokenEncoding: It is not what its Content-Encoding says.
    """
    unpacker = _unpacker(request)
    limit = f"The body may have {max_bytes} bytes at most, unpacked."
    too_large = Refused("too-large", limit, Fault("#", "too_large", limit))
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise too_large
    pieces, size = [], 0
    async for piece in request.stream():
        if unpacker is not None:
            piece = unpacker.feed(piece, room=max_bytes - size)
        size += len(piece)
        if size > max_bytes:
            raise too_large
        pieces.append(piece)
    if unpacker is not None:
        unpacker.finish()
    return b"".join(pieces)


def _unpacker(request: Request) -> Unpacker | None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ENCODINGS:
        known = ", ".join([*ENCODINGS, "identity"])
        raise Refused(
            "unsupported-encoding",
            f"Content-Encoding {encoding[:40]!r} is not read here; {known} are.",
            Fault("Content-Encoding", "unsupported", f"Send the body in one of {known}."),
            headers={"Accept-Encoding": known},
        )
    return ENCODINGS[encoding]()


def read_json(body: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what a JSON body holds. Numbers too large for a float come back as infinity, for the model to refuse.

    Raises:
        Refused: It is not JSON, or an object in it has a key twice.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(Fault("#", "not_utf8", f"Byte {error.start} is not UTF-8.")) from None
    if not text.strip():
        raise _malformed(Fault("#", "empty", "The body is empty; a JSON object belongs here."))
    try:
        return loads(text.removeprefix("\ufeff"), finite=False)
    except JsonFault as error:
        fault = Fault(error.pointer or "#", error.code, error.detail, error.line)
        if error.code in _WRITTEN_WRONG:
            raise Refused("invalid-request", summary([fault]), fault) from None
        raise _malformed(fault) from None


def _malformed(fault: Fault) -> Refused:
    return Refused("malformed-json", fault.detail, fault)


class _JsonRequest(Request):
    """A request whose JSON body has been read."""

    def __init__(self, request: Request, body: bytes, value: object) -> None:
        super().__init__(request.scope, request.receive)
        self._read_body = body
        self._read_value = value
        self._headers = Headers({**request.headers, "content-type": "application/json"})

    async def body(self) -> bytes:
        return self._read_body

    async def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        return self._read_value


class StrictRoute(APIRoute):
    """A route that keeps the rules of this service before its function is called.

    The body is strict JSON whatever its content type says, no longer than `max_json_bytes`; a query parameter
    that the function does not know, or one given twice, is refused; so is an `Accept` without a media type
    that the route has. Its operationId is the name of the function, which says what scope a key must have.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401
        """Take what APIRoute takes; raise TypeError where the function does not say who may call it."""
        self.needed_scope = needed_by(endpoint)
        methods = set(options.get("methods") or ())
        self.budget = spent_by(endpoint, _usual_budget(self.needed_scope, methods))
        statuses = {429, 503} | ({401, 403} if self.needed_scope is not None else set())
        statuses |= {408} if methods & {"POST", "PUT"} else set()
        options["responses"] = {**describes(*statuses), **(options.get("responses") or {})}
        super().__init__(path, endpoint, **{**options, "operation_id": endpoint.__name__})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with the rules before it."""
        handle = super().get_route_handler()
        reads_json = self.body_field is not None
        computes = self._computation()
        parameters = {field.alias: field for field in _query_fields(self)}
        several = {name for name, field in parameters.items() if _takes_several(field)}
        produced = sorted(_media_types(self))
        needed = self.needed_scope
        budget = self.budget

        async def checked(request: Request) -> Response:
            scope = request.scope
            if needed is not None:
                try:
                    scope["caller"] = await scope["app"].state.access.admit(scope, needed)
                except Exception:
                    # Whose key it is, if it is one, is not known: the address answers for it.
                    charge(scope, Budget.READING)
                    raise
            if budget is not None:
                charge(scope, budget)
            _check_accept(request, produced)
            if request.scope["query_string"]:
                _check_parameters(request, parameters, several)
            if reads_json:
                try:
                    body = await read_body(request, max_bytes=request.app.state.settings.max_json_bytes)
                except BrokenEncoding as error:
                    raise _malformed(Fault("#", "broken_encoding", str(error))) from None
                value = (
                    read_json(body) if len(body) < LARGE_BYTES else await run_in_threadpool(read_json, body)
                )
                if computes is not None and not request.scope["query_string"]:
                    return await computes(value)
                request = _JsonRequest(request, body, value)
            return await handle(request)

        return checked

    def _computation(self) -> Callable[[Any], Coroutine[Any, Any, Response]] | None:
        """Return what answers a body where nothing else of the request matters; None where something does."""
        return None


class ComputingRoute(StrictRoute):
    """A route whose async function takes one model, has a default for all else, and returns a model.

    Without a query there is nothing for FastAPI to solve, and its handler takes a third of such a request's
    time to find that out. The body is validated and the answer serialised by the fields that FastAPI made.
    """

    def _computation(self) -> Callable[[Any], Coroutine[Any, Any, Response]] | None:
        given, answered, function = self.body_field, self.response_field, self.dependant.call
        if given is None or answered is None or function is None:
            return None
        without_none = self.response_model_exclude_none

        async def compute(value: object) -> Response:
            model, errors = given.validate(value, {}, loc=("body",))
            if errors:
                raise RequestValidationError(errors, body=value)
            answer = await function(model)
            content = answered.serialize_json(answer, exclude_none=without_none)
            return Response(content, media_type="application/json")

        return compute


def _usual_budget(needed: AccessScope | None, methods: set[str]) -> Budget:
    """Return what a route takes from that does not say so: one that computes has a body, and needs to read only."""
    if methods <= {"GET"}:
        return Budget.READING
    return Budget.COMPUTING if needed is AccessScope.READ else Budget.WRITING


def _query_fields(route: APIRoute) -> Iterable[Any]:
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        yield from dependant.query_params
        waiting.extend(dependant.dependencies)


def _takes_several(field: Any) -> bool:  # noqa: ANN401 - FastAPI's own class
    return "list" in str(field.field_info.annotation).lower()


def _media_types(route: APIRoute) -> set[str]:
    """Return what the route answers with; nothing where it says nothing, and any Accept will do."""
    media_type = getattr(getattr(route.response_class, "value", route.response_class), "media_type", None)
    listed = {media_type} if media_type else set()
    for status, response in route.responses.items():
        if int(status) < 300:
            listed |= set(response.get("content", {}))
    return listed


def _check_parameters(request: Request, known: dict[str, Any], several: set[str]) -> None:
    faults = []
    times = Counter(name for name, _ in request.query_params.multi_items())
    for name in times:
        if name not in known:
            listed = f"; there are {', '.join(known)}" if known else ""
            faults.append(Fault(name[:80], "unknown_parameter", f"There is no such parameter here{listed}."))
        elif times[name] > 1 and name not in several:
            faults.append(Fault(name, "repeated_parameter", "Give this parameter once."))
    if faults:
        raise Refused("invalid-request", summary(faults), *faults[:MAX_ERRORS])


def _check_accept(request: Request, produced: list[str]) -> None:
    accept = request.headers.get("accept")
    if not accept or not produced or ("*/*" in accept and "q=0" not in accept):
        return
    if not any(accepts(accept, media_type) for media_type in produced):
        raise Refused(
            "not-acceptable",
            f"This path answers {', '.join(produced)}; the Accept header asks for none of them.",
            Fault("Accept", "not_acceptable", f"Leave it out, or ask for {' or '.join(produced)}."),
        )


def preferred(accept: str | None, media_types: Sequence[str]) -> str:
    """Return the media type that an Accept header prefers; of equals the first, which is the default too."""
    if not accept:
        return media_types[0]
    return max(media_types, key=lambda media_type: accepts(accept, media_type))


def accepts(accept: str, media_type: str) -> float:
    """Return the weight that an Accept header gives to a media type: 0 where it does not want it.

    The most specific range that matches decides, as RFC 9110 says.
    """
    main = media_type.split("/")[0]
    best, weight = -1, 0.0
    for item in accept.split(","):
        range_, *parameters = (part.strip().lower() for part in item.split(";"))
        specificity = {media_type: 2, f"{main}/*": 1, "*/*": 0, "*": 0}.get(range_, -1)
        if specificity > best:
            quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            try:
                weight = min(max(float(quality), 0.0), 1.0)
            except ValueError:
                weight = 1.0
            best = specificity
    return weight
