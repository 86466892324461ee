"""The OpenAPI document, finished: what generators need and FastAPI does not write.

Every integer is `int64`, every number `double`; nothing is null, since what is unknown is absent; problems have
their own media type.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from service.api.access import SCHEME
from service.api.bodies import StrictRoute
from service.api.problems import Problem
from service.wire import Incoming, Outgoing

DESCRIPTION = """\
Turns a training job on a cluster into the checkpoint storage that it needs, takes the results of benchmarks,
and says how far a system falls short and what that costs.

Units are in the names and decimal: `_gb_per_second` is 10^9 bytes a second, `_tb` 10^12 bytes. Integers are exact
up to 2^53 - 1 in JavaScript. What is unknown is absent, never null. Enumerations may gain values. Every failure
is an `application/problem+json` document whose `type` is a path that explains it.

A request carries a key, `Authorization: Bearer sbk_…`, with the scope that its operation lists under `security`.
The scope `write` includes `read` and `submit`, `admin` includes all. A key sees its own workspace: what is another's
is not there. A service that listens on the loopback alone asks for no key until there is one.
"""

TAGS = [
    {"name": "sizings", "description": "What a scenario asks of its storage. Stateless."},
    {"name": "solutions", "description": "What a quantity has to be to reach a goal. Stateless."},
    {"name": "presets", "description": "Named inputs, each with its source."},
    {"name": "scenarios", "description": "Stored specs, with every past revision."},
    {"name": "benchmark-runs", "description": "What benchmarks wrote, normalised, beside the original."},
    {"name": "test-plans", "description": "The tests that settle a scenario, with their commands."},
    {"name": "gap-reports", "description": "Measured against target, with the consequences."},
    {"name": "series", "description": "Measured figures over time, and whether they changed."},
    {"name": "api-keys", "description": "The keys of the workspace. A secret is told once."},
    {"name": "audit-events", "description": "Who changed what in the workspace."},
    {"name": "usage", "description": "What the workspace holds, and how large it is."},
    {"name": "explanations", "description": "What problems and doubts mean, and how to cure them."},
]

Json = dict[str, Any]


def install(app: FastAPI) -> None:
    """Make the app serve the finished document, built at the first request for it."""
    app.openapi = _once(lambda: finished(app))  # type: ignore[method-assign]


def _once(build: Callable[[], Json]) -> Callable[[], Json]:
    made: list[Json] = []

    def document() -> Json:
        if not made:
            made.append(build())
        return made[0]

    return document


def finished(app: FastAPI) -> Json:
    """Return the app's OpenAPI 3.1 document."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=DESCRIPTION,
        routes=app.routes,
        tags=TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        separate_input_output_schemas=False,
    )
    needed = {
        route.operation_id: route.needed_scope for route in app.routes if isinstance(route, StrictRoute)
    }
    for operation in _operations(document):
        _finish_operation(operation)
    _link(document)
    for operation in _operations(document):
        scope = needed.get(operation["operationId"])
        if scope is not None:
            operation["security"] = [{SCHEME: [str(scope)]}]
    document["components"]["securitySchemes"] = {
        SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, as `stallbudget key create` or `POST /v1/api-keys` tells it once.",
        }
    }
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs") | {"Problem": problem}
    schemas = document["components"]["schemas"] = dict(sorted(schemas.items()))
    for leftover in ("HTTPValidationError", "ValidationError"):
        schemas.pop(leftover, None)
    for schema in _schemas(document):
        _finish_schema(schema)
    for model in _models(Incoming, Outgoing):
        for name, description in _field_docs(model).items():
            field = schemas.get(model.__name__, {}).get("properties", {}).get(name)
            if field is not None:
                field.setdefault("description", description)
    return document


def _models(*bases: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield every model of the service that is loaded."""
    for base in bases:
        for model in base.__subclasses__():
            yield model
            yield from _models(model)


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the strings below the fields of a model and of those it inherits from.

    Pydantic would read them as each class is made, for which every start of the service would pay.
    """
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.split(".")[0] == __name__.split(".")[0]:
            found |= _docs_by_class(each.__module__).get(each.__name__, {})
    return found


@cache
def _docs_by_class(module: str) -> dict[str, dict[str, str]]:
    """Return the strings below the fields of every class of a module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        node.name: {
            field.target.id: inspect.cleandoc(below.value.value)
            for field, below in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def _operations(document: Json) -> Iterator[Json]:
    for path in document["paths"].values():
        yield from path.values()


HEADERS = {
    "X-Request-Id": "The id of the request, as in the service's log.",
    "ETag": "The version of what is answered, for If-Match and If-None-Match.",
    "Location": "Where what is answered is found.",
    "Link": 'The next page, as `<path>; rel="next"`; absent on the last.',
    "Accept-Encoding": "The encodings that are read.",
    "WWW-Authenticate": "That a key is needed, or what is wrong with the one that was sent.",
    "RateLimit-Policy": "The quota a minute that the request counts against; absent where there is none.",
    "RateLimit": "What is left of it (`r`), and in how many seconds it is whole again (`t`).",
    "Retry-After": "After how many seconds to try again.",
}


def _finish_operation(operation: Json) -> None:
    parameters = {parameter["name"]: parameter for parameter in operation.get("parameters", ())}
    if "If-Match" in parameters:
        # Its absence is a 428 of ours, not a 422 of the framework's, so the framework takes it for optional.
        parameters["If-Match"]["required"] = True
    if "If-None-Match" in parameters:
        operation["responses"]["304"] = {"description": "What the caller has still holds."}
    makes = "201" in operation["responses"]
    operation["responses"] = dict(sorted(operation["responses"].items()))
    for status, response in operation["responses"].items():
        sent = {
            "X-Request-Id": True,
            "ETag": int(status) < 400
            and status != "204"
            and (
                (makes and operation["tags"] != ["api-keys"])
                or parameters.keys() & {"If-None-Match", "If-Match"}
            ),
            "Location": int(status) < 300 and makes,
            "Link": status == "200" and "cursor" in parameters,
            "Accept-Encoding": status == "415",
            "WWW-Authenticate": status == "401",
            "RateLimit-Policy": True,
            "RateLimit": True,
            "Retry-After": status in ("429", "503"),
        }
        response["headers"] = {
            name: {"description": HEADERS[name], "schema": {"type": "string"}}
            for name, is_sent in sent.items()
            if is_sent
        }


MAKES = {
    "create_scenario": {"scenario_id": "id", "revision": "revision"},
    "replace_scenario": {"scenario_id": "id", "revision": "revision"},
    "create_benchmark_run": {"run_id": "id"},
    "create_api_key": {"key_id": "id"},
}
"""What operations answer that others take: the parameter of their paths, and the field of the answer."""


def _link(document: Json) -> None:
    """Say of each operation that makes something which others take it, and from where in the answer."""
    operations = {operation["operationId"]: operation for operation in _operations(document)}
    for name in MAKES.keys() & operations.keys():
        fields = MAKES[name]
        links = {}
        for taker, operation in operations.items():
            parameters = operation.get("parameters", ())
            in_path = [parameter["name"] for parameter in parameters if parameter["in"] == "path"]
            if in_path and set(in_path) <= fields.keys():
                taken = {f"path.{parameter}": f"$response.body#/{fields[parameter]}" for parameter in in_path}
                if any(parameter["name"] == "If-Match" for parameter in parameters):
                    taken["header.If-Match"] = "$response.header.ETag"
                links[taker] = {"operationId": taker, "parameters": taken}
        for status, response in operations[name]["responses"].items():
            if status in ("200", "201"):
                response["links"] = dict(links)


def _schemas(document: Json) -> Iterator[Json]:
    """Yield every schema, inner ones first: those of the components, the parameters and the bodies."""
    roots = list(document["components"]["schemas"].values())
    for operation in _operations(document):
        roots += [parameter["schema"] for parameter in operation.get("parameters", ())]
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        roots += [content["schema"] for body in bodies for content in body.get("content", {}).values()]
    for root in roots:
        yield from _within(root)


def _within(schema: Json) -> Iterator[Json]:
    for name, member in schema.items():
        if name in ("properties", "$defs"):  # a map of schemas by field name; a field may be named `items`
            for field in member.values():
                yield from _within(field)
        elif name in ("items", "additionalProperties", "propertyNames", "not") and isinstance(member, dict):
            yield from _within(member)
        elif name in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for each in member:
                yield from _within(each)
    yield schema


def _finish_schema(schema: Json) -> None:
    if "anyOf" in schema:
        members = [member for member in schema["anyOf"] if member.get("type") != "null"]
        if len(members) == 1:
            del schema["anyOf"]
            # The field's own description goes before that of the type it refers to.
            for key, value in members[0].items():
                schema.setdefault(key, value)
        else:
            schema["anyOf"] = members
    if schema.get("default", 0) is None:
        del schema["default"]
    if schema.get("type") == "integer":
        schema["format"] = "int64"
        for bound in ("minimum", "maximum"):
            if bound in schema:
                schema[bound] = int(schema[bound])
    elif schema.get("type") == "number":
        schema["format"] = "double"
