"""The OpenAPI document: current, sound, fit for generators, and kept by every answer of the service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from httpx2 import Response
from jsonschema import Draft202012Validator, FormatChecker
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import AccessMode, Settings
from service.store.caller import AccessScope
from tests.api.asking import (
    DCP,
    IOR_CSV,
    IOR_JSON,
    LOCAL,
    NOWHERE,
    PROBLEM,
    SYNC,
    dcp,
    store,
    stored_run,
    upload,
)
from tests.api.exchanges import Running, run, scope_of, under_a_clock
from tests.api.keyring import make_key
from tests.api.test_usage import remove_documents

Json = dict[str, Any]

ROOT = Path(__file__).parent.parent.parent
ATTEMPTS = Settings.model_fields["failed_keys"].default
METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
VERBS = ("create", "list", "get", "replace", "delete")


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _schemas(value: object, at: str = "#", *, named: bool = False) -> Iterator[tuple[str, Json]]:
    """Yield every schema below a schema; `named` says that the keys of this object are names of fields."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _schemas(item, f"{at}/{n}")
    if not isinstance(value, dict):
        return
    if not named:
        yield at, value
    for key, item in value.items():
        if named or key in (
            "items",
            "additionalProperties",
            "propertyNames",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
        ):
            yield from _schemas(item, f"{at}/{key}")
        elif key in ("properties", "$defs"):
            yield from _schemas(item, f"{at}/{key}", named=True)


def _all_schemas(document: Json) -> Iterator[tuple[str, Json]]:
    yield from _schemas(document["components"]["schemas"], "#/components/schemas", named=True)
    for method, path, operation in _operations(document):
        here = f"{method} {path}"
        for parameter in operation.get("parameters", []):
            yield from _schemas(parameter["schema"], f"{here} {parameter['name']}")
        for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media_type, content in holder.get("content", {}).items():
                yield from _schemas(content["schema"], f"{here} {media_type}")


def test_the_committed_document_is_current(document: Json) -> None:
    committed = (ROOT / "openapi" / "openapi.json").read_text("utf-8")
    made = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    assert committed == made, "openapi/openapi.json is not what the service says: run `make openapi`"


def test_it_has_the_shape_of_openapi_3_1(document: Json) -> None:
    assert re.fullmatch(r"3\.1\.\d", document["openapi"])
    assert set(document) <= {"openapi", "info", "paths", "components", "tags", "servers"}
    assert {"title", "version", "description", "license"} <= set(document["info"])
    for method, path, operation in _operations(document):
        assert method in METHODS
        assert re.fullmatch(r"(/([a-z0-9-]+|\{[a-z_]+\}))+", path), path
        assert {"operationId", "responses", "summary", "description", "tags"} <= set(operation)
        assert set(operation) <= {
            "operationId",
            "responses",
            "summary",
            "description",
            "tags",
            "parameters",
            "requestBody",
            "security",
        }
        in_path = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
        assert sorted(in_path) == sorted(re.findall(r"\{(\w+)\}", path))
        for parameter in operation.get("parameters", []):
            assert parameter["in"] in ("path", "query", "header")
            assert parameter["in"] != "path" or parameter["required"] is True
        for status, response in operation["responses"].items():
            assert re.fullmatch(r"[1-5]\d\d", status)
            assert response["description"]


def test_every_schema_is_a_schema_and_every_reference_leads_somewhere(document: Json) -> None:
    components = document["components"]["schemas"]
    for name, schema in components.items():
        assert re.fullmatch(r"[A-Za-z0-9]+", name)
        Draft202012Validator.check_schema(schema)
    used = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert used <= {f"#/components/schemas/{name}" for name in components}
    assert used >= {f"#/components/schemas/{name}" for name in components}, "nothing refers to some"


def test_names_of_schemas_suit_generators(document: Json) -> None:
    for name in document["components"]["schemas"]:
        assert not re.search(r"(Request|Response|-Input|-Output|_)", name)
        assert name not in ("Model", "Body", "HTTPValidationError", "ValidationError")


def test_every_integer_is_int64_and_every_number_double(document: Json) -> None:
    seen = {"integer": 0, "number": 0}
    for at, schema in _all_schemas(document):
        kind = schema.get("type")
        assert not isinstance(kind, list), at
        if kind in seen:
            seen[kind] += 1
            assert schema.get("format") == {"integer": "int64", "number": "double"}[kind], at
        if kind == "integer":
            for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default"):
                assert type(schema.get(bound, 0)) is int, at
    assert min(seen.values()) > 50


def test_every_bound_stands_under_its_name_of_json_schema(document: Json) -> None:
    known = {
        "$ref",
        "type",
        "format",
        "title",
        "description",
        "default",
        "enum",
        "const",
        "items",
        "properties",
    }
    known |= {"required", "additionalProperties", "propertyNames", "anyOf", "minimum", "maximum", "minLength"}
    known |= {"maxLength", "pattern", "minItems", "maxItems", "examples"}
    for at, schema in _all_schemas(document):
        assert set(schema) <= known, at


def test_nothing_is_null(document: Json) -> None:
    for at, schema in _all_schemas(document):
        assert schema.get("type") != "null", at
        assert schema.get("default", 0) is not None, at
        assert None not in schema.get("enum", []), at
        assert len(schema.get("anyOf", [1, 2])) > 1, at
        assert not isinstance(schema.get("default"), dict), at


def test_what_goes_in_refuses_unknown_fields(document: Json) -> None:
    components = document["components"]["schemas"]
    for name in ("ScenarioSpec", "ScenarioCreate", "ModelSpec", "ClusterSpec", "FailuresSpec", "PricesSpec"):
        assert components[name]["additionalProperties"] is False


def test_operation_ids_are_verb_and_noun_and_unique(document: Json) -> None:
    ids = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(set(ids)) == len(ids) >= 18
    for id_ in ids:
        assert re.fullmatch(rf"({'|'.join(VERBS)})(_[a-z]+)+", id_), id_


def test_the_verb_fits_the_method(document: Json) -> None:
    methods = {"create": "post", "list": "get", "get": "get", "replace": "put", "delete": "delete"}
    for method, path, operation in _operations(document):
        assert methods[operation["operationId"].split("_")[0]] == method, path


def test_an_operation_has_one_tag_and_every_tag_is_described(document: Json) -> None:
    described = {tag["name"] for tag in document["tags"] if tag["description"]}
    used = set()
    for _, path, operation in _operations(document):
        assert len(operation["tags"]) == 1, path
        used |= set(operation["tags"])
    assert used == described


def test_every_parameter_is_described(document: Json) -> None:
    for method, path, operation in _operations(document):
        for parameter in operation.get("parameters", []):
            known = path.startswith(("/problems/", "/doubts/"))
            assert known or parameter.get("description"), (method, path, parameter["name"])


def test_every_failure_is_a_problem_and_nothing_else_is(document: Json) -> None:
    reference = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for method, path, operation in _operations(document):
        for status, response in operation["responses"].items():
            content = response.get("content", {})
            if int(status) >= 400:
                assert content == reference, (method, path, status)
            else:
                assert PROBLEM not in content
                assert bool(content) == (status not in ("204", "304")), (method, path, status)
        assert "500" in operation["responses"]
    assert set(document["components"]["schemas"]["Problem"]["required"]) == {
        "type",
        "title",
        "status",
        "detail",
        "request_id",
        "errors",
    }


def test_raw_bodies_are_binary(document: Json) -> None:
    binary = {"type": "string", "format": "binary"}
    post = document["paths"]["/v1/scenarios/{scenario_id}/benchmark-runs"]["post"]
    assert post["requestBody"]["content"]["application/octet-stream"]["schema"] == binary
    get = document["paths"]["/v1/benchmark-runs/{run_id}/document"]["get"]
    assert get["responses"]["200"]["content"]["application/octet-stream"]["schema"] == binary


def _bodies(document: Json) -> Iterator[tuple[str, str, str, Json]]:
    for method, path, operation in _operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            yield method, path, operation["operationId"], content


def test_every_body_is_required_and_has_an_example(document: Json) -> None:
    found = 0
    for method, path, _, content in _bodies(document):
        found += 1
        assert document["paths"][path][method]["requestBody"]["required"] is True
        assert content["examples"]
        for example in content["examples"].values():
            assert set(example) == {"summary", "value"}
    assert found == 7


def _new_key(client: TestClient) -> str:
    made: str = client.post("/v1/api-keys", json={"name": "a", "scopes": ["read"]}).json()["id"]
    return made


def test_every_example_is_accepted(document: Json, client: TestClient) -> None:
    for method, path, id_, content in _bodies(document):
        for name, example in content["examples"].items():
            sent = example["value"]
            made = store(client, f"{id_}-{name}")
            url = path.format(scenario_id=made["id"], key_id=_new_key(client))
            body = sent if isinstance(sent, str) else json.dumps(sent)
            answer = client.request(method, url, content=body, headers={"If-Match": "*"})
            if answer.status_code == 409:  # the examples of POST have taken the name
                taken = next(
                    item
                    for item in client.get("/v1/scenarios").json()["items"]
                    if item["name"] == sent["name"]
                )
                client.delete(f"/v1/scenarios/{taken['id']}", headers={"If-Match": "*"})
                answer = client.request(method, url, content=body, headers={"If-Match": "*"})
            assert answer.status_code in (200, 201), (id_, name, answer.text)
            if not isinstance(sent, str):
                _validator(document, content["schema"]).validate(sent)


def _validator(document: Json, schema: Json) -> Draft202012Validator:
    """Return what checks an answer, and also refuses fields that the document does not name."""
    closed = json.loads(json.dumps({"components": document["components"], **schema}))
    for _, each in (*_schemas(schema_root(closed), named=True), *_schemas(closed)):
        if "properties" in each:
            each.setdefault("additionalProperties", False)
    return Draft202012Validator(closed, format_checker=FormatChecker())


def schema_root(closed: Json) -> Json:
    """Return the components of a schema that carries them."""
    schemas: Json = closed["components"]["schemas"]
    return schemas


class Tour:
    """Visits endpoints, and holds each answer against the document."""

    def __init__(self, document: Json, client: TestClient) -> None:
        self.document = document
        self.client = client
        self.visited: set[tuple[str, str]] = set()
        self.validators: dict[str, Draft202012Validator] = {}

    def ask(self, method: str, path: str, expected: int, **request: Any) -> Response:  # noqa: ANN401
        """Send a request, and return its answer once it is as documented."""
        answer = self.client.request(method, path, **request)
        assert answer.status_code == expected, (method, path, answer.text)
        operation = self._operation(method, path.split("?")[0])
        self.visited.add((operation["operationId"], str(expected)))
        documented = operation["responses"].get(str(expected))
        assert documented is not None, f"{operation['operationId']} does not document {expected}"
        missing = {name for name in documented["headers"] if name.lower() not in answer.headers}
        assert missing <= {"Link"}, "only the last page of a list leaves a documented header out"
        content = documented.get("content", {})
        if not content:
            assert answer.content == b""
            return answer
        media_type = answer.headers["content-type"].split(";")[0]
        assert media_type in content
        if "json" in media_type:
            schema = content[media_type]["schema"]
            key = json.dumps(schema)
            if key not in self.validators:
                self.validators[key] = _validator(self.document, schema)
            self.validators[key].validate(answer.json())
        return answer

    def _operation(self, method: str, path: str) -> Json:
        for template, item in self.document["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in item:
                operation: Json = item[method.lower()]
                return operation
        raise AssertionError(f"{method} {path} is not in the document")


def _tour_of_success(tour: Tour) -> Json:
    """Visit every success there is, and return the ids of what is stored then."""
    for name, example in tour.document["paths"]["/v1/sizings"]["post"]["requestBody"]["content"][
        "application/json"
    ]["examples"].items():
        assert name
        for explain in ("", "?explain=true"):
            tour.ask("POST", f"/v1/sizings{explain}", 200, json=example["value"])
    questions = tour.document["paths"]["/v1/solutions"]["post"]["requestBody"]["content"]["application/json"]
    for example in questions["examples"].values():
        for explain in ("", "?explain=true"):
            tour.ask("POST", f"/v1/solutions{explain}", 200, json=example["value"])
    for name in ("models", "recipes", "failure-records", "gpus", "save-load-times", "storage-systems"):
        tour.ask("GET", f"/v1/presets/{name}", 200)
    for path in ("/problems", "/problems/stale", "/doubts", "/doubts/stale"):
        tour.ask("GET", path, 200)
        if path.count("/") == 2:
            tour.ask("GET", path, 200, headers={"Accept": "text/html"})
    made = tour.ask("POST", "/v1/scenarios", 201, json={"name": "tour", "spec": SYNC}).json()
    other = store(tour.client, "other")
    place = f"/v1/scenarios/{made['id']}"
    tour.ask("PUT", place, 200, json={"name": "tour", "spec": SYNC}, headers={"If-Match": '"1"'})
    runs = f"{place}/benchmark-runs"
    for document in (IOR_JSON, IOR_CSV, DCP):
        run = tour.ask("POST", f"{runs}?note=a&conditions=idle", 201, content=document).json()
    tour.ask("POST", runs, 200, content=DCP)
    tour.ask("POST", f"{runs}?storage_label=another", 200, content=DCP)
    for path in ("/v1/scenarios?limit=1", f"{place}/revisions?limit=1", f"{runs}?limit=1"):
        following = tour.ask("GET", path, 200).headers["link"].split(">")[0][1:]
        tour.ask("GET", following, 200)
    run_place = f"/v1/benchmark-runs/{run['id']}"
    for path in (place, f"{place}/revisions/1", run_place, f"{run_place}/document"):
        tag = tour.ask("GET", path, 200).headers["etag"]
        tour.ask("GET", path, 304, headers={"If-None-Match": tag})
    for query in ("", "?explain=true"):
        tour.ask("GET", f"{place}/sizing{query}", 200)
    for label in ("", "?storage_label=test-disk", "?storage_label=none"):
        for media_type in ("application/json", "text/html", "text/markdown", "text/csv"):
            tour.ask("GET", f"{place}/gap-report{label}", 200, headers={"Accept": media_type})
    for form in ("application/json", "text/markdown", "text/x-shellscript", "application/x-slurm"):
        tour.ask("GET", f"{place}/test-plan?nodes=16", 200, headers={"Accept": form})
    for query in (
        "",
        "?figure=write_bandwidth&storage_label=test-disk",
        "?storage_label=",
        "?all_storages=true",
    ):
        tour.ask("GET", f"{place}/series{query}", 200)
    tour.ask("GET", "/v1/series?storage_label=test-disk", 200)
    for query in ("storage_label=test-disk&storage_label=none", "split_at=2026-11-29T00:00:00Z"):
        tour.ask("GET", f"{place}/gap-report-comparison?{query}", 200)
    keys = "/v1/api-keys"
    key = tour.ask("POST", keys, 201, json={"name": "a", "scopes": ["submit"]}).json()
    tour.ask("POST", f"{keys}/{key['id']}/rotations", 201, json={})
    tour.ask("GET", f"{keys}/{key['id']}", 200)
    tour.ask("GET", "/v1/usage", 200)
    for path in (keys, "/v1/audit-events", f"/v1/audit-events?resource_id={made['id']}"):
        tour.ask("GET", path, 200)
        following = tour.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=1", 200).headers["link"]
        tour.ask("GET", following.split(">")[0][1:], 200)
    tour.ask("DELETE", f"{keys}/{key['id']}", 204)
    gone = stored_run(tour.client, other, IOR_CSV)
    tour.ask("DELETE", f"/v1/benchmark-runs/{gone['id']}", 204, headers={"If-Match": "*"})
    tour.ask("DELETE", f"/v1/scenarios/{other['id']}", 204, headers={"If-Match": "*"})
    return {"scenario_id": made["id"], "run_id": run["id"], "key_id": key["id"]}


def _tour_of_failure(tour: Tour, ids: Json, application: FastAPI) -> None:
    """Visit the failures that are the caller's."""
    for method, template, operation in _operations(tour.document):
        fixed = {"revision": "1", "type": "stale", "code": "stale"}
        path = template.format(**fixed, **ids)
        nowhere = template.format(**dict.fromkeys(ids, NOWHERE), revision="1", type="none", code="none")
        headers = {"If-Match": "*"}
        ask: Json = {"content": _body(operation), "headers": headers}
        tour.ask(method.upper(), path, 406, **{**ask, "headers": {**headers, "Accept": "image/png"}})
        tour.ask(method.upper(), f"{path}?no_such=1", 422, **ask)
        if "404" in operation["responses"]:
            tour.ask(method.upper(), nowhere, 404, **ask)
        if "428" in operation["responses"]:
            tour.ask(method.upper(), path, 428, **{**ask, "headers": {}})
            tour.ask(method.upper(), path, 412, **{**ask, "headers": {"If-Match": '"no"'}})
        if "413" in operation["responses"]:
            tour.ask(method.upper(), path, 413, **{**ask, "headers": {**headers, "Content-Length": "9" * 12}})
            encoded = {**headers, "Content-Encoding": "br"}
            tour.ask(method.upper(), path, 415, **{**ask, "headers": encoded})
        if "400" in operation["responses"]:
            tour.ask(method.upper(), path, 400, **{**ask, "content": "{"})
            tour.ask(method.upper(), path, 422, **{**ask, "content": "[]"})
    place = f"/v1/scenarios/{ids['scenario_id']}"
    tour.ask("POST", f"/v1/api-keys/{ids['key_id']}/rotations", 409, json={})
    store(tour.client, "taken")
    taken = {"name": "taken", "spec": SYNC}
    tour.ask("POST", "/v1/scenarios", 409, json=taken)
    tour.ask("PUT", place, 409, json=taken, headers={"If-Match": "*"})
    tour.ask("DELETE", place, 409, headers={"If-Match": "*"})
    tour.ask("POST", f"{place}/benchmark-runs", 409, content=dcp(json.loads(DCP)["run_id"], label="other"))
    tour.ask("POST", f"{place}/benchmark-runs", 422, content=b"")
    remove_documents(application)
    tour.ask("GET", f"/v1/benchmark-runs/{ids['run_id']}/document", 410)
    tour.ask("GET", f"/v1/benchmark-runs/{ids['run_id']}", 200)


def _body(operation: Json) -> str | None:
    """Return a body that the operation takes; None where it takes none."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        sent = next(iter(content["examples"].values()))["value"]
        return sent if isinstance(sent, str) else json.dumps(sent)
    return None


def _tour_without_leave(tour: Tour, ids: Json, application: FastAPI) -> None:
    """Visit what is refused to whoever has no key, or one that is not good for it, or too many that are wrong."""
    may = {
        "read": make_key(application, AccessScope.READ),
        "submit": make_key(application, AccessScope.SUBMIT),
    }
    wrong = {"Authorization": f"Bearer sbk_{'0' * 32}_{'0' * 64}"}
    needing = [
        (method.upper(), template.format(revision="1", **ids), operation)
        for method, template, operation in _operations(tour.document)
        if "security" in operation
    ]
    assert len(needing) > 20
    del tour.client.headers["Authorization"]
    for method, path, operation in needing:
        tour.ask(method, path, 401)
        (scopes,) = operation["security"][0].values()
        tour.ask(method, path, 403, headers=may["submit" if scopes == ["read"] else "read"])
    for _ in range(ATTEMPTS):
        tour.client.get("/v1/scenarios", headers=wrong)
    for method, path, _ in needing:
        tour.ask(method, path, 429, headers=wrong)


def _required_query(operation: Json) -> str:
    """Return a query of the parameters without which there is no answer."""
    names = [
        each["name"] for each in operation.get("parameters", ()) if each["in"] == "query" and each["required"]
    ]
    return f"?{'&'.join(f'{name}=a' for name in names)}" if names else ""


def _tour_of_trouble(document: Json, ids: Json, folder: Path) -> set[tuple[str, str]]:
    """Visit what needs a database while there is none, and return what was seen."""
    app = create_app(Settings(database_url=f"sqlite:///{folder / 'empty.db'}", access=AccessMode.KEYS))
    key = {"Authorization": f"Bearer sbk_{'0' * 32}_{'0' * 64}", "If-Match": "*"}
    with TestClient(app, raise_server_exceptions=False, base_url=LOCAL, headers=key) as client:
        tour = Tour(document, client)
        for method, template, operation in _operations(document):
            if "security" in operation:
                path = template.format(revision="1", **ids) + _required_query(operation)
                tour.ask(method.upper(), path, 503, content=_body(operation))
        app.state.access = None  # nothing that anybody foresees
        for method, template, operation in _operations(document):
            if "security" in operation:
                path = template.format(revision="1", **ids) + _required_query(operation)
                tour.ask(method.upper(), path, 500, content=_body(operation))
        return tour.visited


def _tour_of_limits(document: Json, ids: Json, application: FastAPI, key: str) -> set[tuple[str, str]]:
    """Send bodies that do not come, more than the quota, and more at once than there may be; return what was seen."""
    visited: set[tuple[str, str]] = set()
    passes = under_a_clock(application)

    async def withhold() -> None:
        for method, template, operation in _operations(document):
            if "408" in operation["responses"]:
                path = template.format(revision="1", **ids)
                request = Running(
                    application, scope_of(method.upper(), path, (b"authorization", key.encode()))
                )
                await request.asks()
                await passes(0)
                await passes(application.state.settings.slow_seconds)
                status, headers, _ = await request.answer()
                await request.end()
                assert status == 408, path
                missing = {
                    name for name in operation["responses"]["408"]["headers"] if name.lower() not in headers
                }
                assert missing == set()
                visited.add((operation["operationId"], "408"))

    run(withhold)
    app = create_app(Settings(database_url="sqlite:///unused.db", reading_per_minute=1))
    with TestClient(app, raise_server_exceptions=False, base_url=LOCAL) as client:
        tour = Tour(document, client)
        client.get("/nowhere")
        free = [
            (method.upper(), template.format(type="stale", code="wide_spread"))
            for method, template, operation in _operations(document)
            if "security" not in operation
        ]
        for method, path in free:
            tour.ask(method, path, 429)
        app.state.metrics.in_flight = app.state.settings.max_concurrent_requests
        for method, path in free:
            tour.ask(method, path, 503)
    return visited | tour.visited


def test_every_answer_is_as_documented_and_every_documented_status_is_answered(
    document: Json, application: FastAPI, client: TestClient, tmp_path: Path
) -> None:
    tour = Tour(document, client)
    ids = _tour_of_success(tour)
    _tour_of_failure(tour, ids, application)
    limited = _tour_of_limits(document, ids, application, client.headers["Authorization"])
    _tour_without_leave(tour, ids, application)
    visited = tour.visited | limited | _tour_of_trouble(document, ids, tmp_path)
    documented = {
        (operation["operationId"], status)
        for _, _, operation in _operations(document)
        for status in operation["responses"]
        # What explains only has no failure of its own to provoke.
        if status != "500" or "security" in operation
    }
    assert documented - visited == set()


def test_every_route_of_the_contract_is_in_the_document(document: Json) -> None:
    expected = {
        "/v1/sizings": {"post"},
        "/v1/solutions": {"post"},
        "/v1/presets/models": {"get"},
        "/v1/presets/recipes": {"get"},
        "/v1/presets/failure-records": {"get"},
        "/v1/presets/gpus": {"get"},
        "/v1/presets/save-load-times": {"get"},
        "/v1/presets/storage-systems": {"get"},
        "/v1/scenarios": {"get", "post"},
        "/v1/scenarios/{scenario_id}": {"get", "put", "delete"},
        "/v1/scenarios/{scenario_id}/revisions": {"get"},
        "/v1/scenarios/{scenario_id}/revisions/{revision}": {"get"},
        "/v1/scenarios/{scenario_id}/sizing": {"get"},
        "/v1/scenarios/{scenario_id}/benchmark-runs": {"get", "post"},
        "/v1/benchmark-runs/{run_id}": {"get", "delete"},
        "/v1/benchmark-runs/{run_id}/document": {"get"},
        "/v1/scenarios/{scenario_id}/gap-report": {"get"},
        "/v1/scenarios/{scenario_id}/test-plan": {"get"},
        "/v1/scenarios/{scenario_id}/gap-report-comparison": {"get"},
        "/v1/scenarios/{scenario_id}/series": {"get"},
        "/v1/api-keys": {"get", "post"},
        "/v1/api-keys/{key_id}": {"get", "delete"},
        "/v1/api-keys/{key_id}/rotations": {"post"},
        "/v1/audit-events": {"get"},
        "/v1/usage": {"get"},
        "/v1/series": {"get"},
        "/problems/{type}": {"get"},
        "/doubts/{code}": {"get"},
    }
    found = {path: set(item) for path, item in document["paths"].items()}
    assert {path: found.get(path) for path in expected} == expected


def test_a_page_of_many_validates(document: Json, client: TestClient) -> None:
    made = store(client)
    for n in range(3):
        assert upload(client, made, dcp(f"r{n}")).status_code == 201
    tour = Tour(document, client)
    page = tour.ask("GET", f"/v1/scenarios/{made['id']}/benchmark-runs", 200).json()
    assert len(page["items"]) == 3


def test_the_validator_sees_what_the_document_does_not_name(document: Json, client: TestClient) -> None:
    schema = {"$ref": "#/components/schemas/Sizing"}
    good = client.post("/v1/sizings", json=SYNC).json()
    validator = _validator(document, schema)
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "extra": 1})
    assert not validator.is_valid({**good, "checkpoint": {**good["checkpoint"], "bytes": 1.5}})
    assert not validator.is_valid({**good, "write": {**good["write"], "extra": 1}})
    assert not validator.is_valid({**good, "cost": None})


def test_every_link_leads_to_what_was_made(client: TestClient, document: Json) -> None:
    operations = {
        operation["operationId"]: (method, path) for method, path, operation in _operations(document)
    }
    scenario = {"name": "linked", "spec": SYNC}
    bodies: dict[str, Any] = {
        "create_scenario": {"json": scenario},
        "replace_scenario": {"json": scenario},
        "create_benchmark_run": {"content": IOR_JSON},
        "create_api_key": {"json": {"name": "linked", "scopes": ["read"]}},
        "create_api_key_rotation": {"json": {}},
        "get_gap_report_comparison": {"params": {"split_at": "2026-11-29T12:00:00Z"}},
    }
    made: dict[str, Response] = {}
    for name in ("create_scenario", "replace_scenario", "create_benchmark_run", "create_api_key"):
        method, path = operations[name]
        values = {"scenario_id": made["create_scenario"].json()["id"]} if made else {}
        made[name] = client.request(method, path.format(**values), headers={"If-Match": "*"}, **bodies[name])
    followed = set()
    for name, answer in made.items():
        method, path = operations[name]
        links = document["paths"][path][method]["responses"][str(answer.status_code)]["links"]
        # What is deleted is followed to its end last.
        for linked, link in sorted(links.items(), key=lambda item: item[0].startswith("delete")):
            values = {
                parameter: (
                    answer.headers[expression.removeprefix("$response.header.")]
                    if expression.startswith("$response.header.")
                    else answer.json()[expression.removeprefix("$response.body#/")]
                )
                for parameter, expression in link["parameters"].items()
            }
            method, path = operations[link["operationId"]]
            in_path = {
                key.removeprefix("path."): value for key, value in values.items() if key[:5] == "path."
            }
            headers = {
                key.removeprefix("header."): value for key, value in values.items() if key[:7] == "header."
            }
            found = client.request(method, path.format(**in_path), headers=headers, **bodies.get(linked, {}))
            # Of what was replaced or deleted meanwhile, its links say so.
            gone = {404, 409, 412} if linked.startswith(("delete", "replace")) else set()
            assert found.status_code < 300 or found.status_code in gone, (name, linked, found.text)
            followed.add(linked)
    assert followed >= {
        "get_scenario",
        "replace_scenario",
        "delete_scenario",
        "create_benchmark_run",
        "get_gap_report",
    }
    assert followed >= {"get_benchmark_run", "delete_benchmark_run", "get_api_key", "create_api_key_rotation"}
