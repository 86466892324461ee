"""What the tests of the API send, and how they look at answers."""

import json
from pathlib import Path
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from service.api.examples import LLAMA_405B_ASYNC, LLAMA_405B_SYNC

DATA = Path(__file__).parent.parent / "data"
PROBLEM = "application/problem+json"
LOCAL = "http://127.0.0.1:8000"
"""Where clients in process reach a service: an open one answers to no other name than this machine's."""
NOWHERE = "00000000-0000-4000-8000-000000000000"
SYNC = LLAMA_405B_SYNC
ASYNC = LLAMA_405B_ASYNC

Json = dict[str, Any]

IOR_JSON = (DATA / "benchmarks/ior-4.0-posix-fpp-2nodes-write-read-3reps.json").read_bytes()
IOR_TEXT = (DATA / "benchmarks/ior-4.0-posix-fpp-2nodes-write-read-3reps.txt").read_bytes()
IOR_CSV = (DATA / "benchmarks/ior-4.0-posix-fpp-write-read-3reps.csv").read_bytes()
DCP = (DATA / "dcp/w2-save-and-load.json").read_bytes()


def changed(spec: Json, pointer: str, value: object) -> Json:
    """Return a copy of a JSON object with one place set, its objects made where they are missing."""
    copy: Json = json.loads(json.dumps(spec))
    *path, last = pointer.removeprefix("#/").split("/")
    place = copy
    for part in path:
        place = place.setdefault(part, {})
    place[last] = value
    return copy


def without(spec: Json, pointer: str) -> Json:
    """Return a copy of a JSON object with one place taken out."""
    copy: Json = json.loads(json.dumps(spec))
    *path, last = pointer.removeprefix("#/").split("/")
    place = copy
    for part in path:
        place = place[part]
    del place[last]
    return copy


def store(client: TestClient, name: str = "llama", spec: Json = SYNC) -> Json:
    """Store a scenario, and return it as it was answered."""
    answer = client.post("/v1/scenarios", json={"name": name, "spec": spec})
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


def upload(client: TestClient, scenario: Json, document: bytes = IOR_JSON, **params: Any) -> Response:  # noqa: ANN401
    """Post a document to a scenario."""
    return client.post(
        f"/v1/scenarios/{scenario['id']}/benchmark-runs", content=document, params=params or None
    )


def stored_run(client: TestClient, scenario: Json, document: bytes = IOR_JSON, **params: Any) -> Json:  # noqa: ANN401
    """Post a document that is new to its scenario, and return the run."""
    answer = upload(client, scenario, document, **params)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


def problem(answer: Response, status: int, kind: str) -> Json:
    """Return a problem document, once everything that all of them share is found in order."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    body: Json = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "request_id", "errors"}
    assert (body["type"], body["status"]) == (f"/problems/{kind}", status)
    assert body["request_id"] == answer.headers["x-request-id"] != ""
    assert body["title"]
    assert body["detail"]
    for error in body["errors"]:
        assert set(error) - {"line"} == {"pointer", "code", "detail"}
        assert all(error.values()), error
    return body


def places(body: Json) -> list[tuple[str, str]]:
    """Return the pointer and the code of each error of a problem document."""
    return [(error["pointer"], error["code"]) for error in body["errors"]]


def nulls(value: object, at: str = "#") -> list[str]:
    """Return the place of every null in a JSON value."""
    if value is None:
        return [at]
    if isinstance(value, dict):
        return [place for key, item in value.items() for place in nulls(item, f"{at}/{key}")]
    if isinstance(value, list):
        return [place for n, item in enumerate(value) for place in nulls(item, f"{at}/{n}")]
    return []


def dcp(run_id: str, **changes: object) -> bytes:
    """Return a dcp-timing document under another run_id."""
    return json.dumps({**json.loads(DCP), "run_id": run_id, **changes}).encode()


UNSATISFIABLE: list[tuple[Json, str, str]] = [
    ({**SYNC, "failures": {"mtbf_hours": 1e-4, "mtbf_gpus": 1}}, "#/failures", "out_of_range"),
    ({**SYNC, "model": {"parameters": 1, "bytes_per_parameter": 0.01}}, "#/model", "too_small"),
    (changed(SYNC, "#/shards/largest_shard_bytes", 1), "#/shards/largest_shard_bytes", "out_of_range"),
    (
        {**SYNC, "retention": {"hot_copies": 100_000, "hot_protection_fraction": 10, "cold_copies": 0}}
        | {"model": {"parameters": 10**14}},
        "#/retention/hot_copies",
        "too_large",
    ),
    (
        {**SYNC, "interval": {"rule": "young"}, "save": {"mode": "sync", "blocking_seconds": 1e7}},
        "#/save/blocking_seconds",
        "no_useful_time",
    ),
]
"""Specs that can be read and have no sizing, each with the place and the code of the fault."""
