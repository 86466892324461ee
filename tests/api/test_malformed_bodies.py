"""Hundreds of bodies that are wrong, each against every endpoint that takes one.

None is accepted, none fails the service, and each answer names the place of the fault.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.api.asking import ASYNC, DCP, PROBLEM, SYNC, Json, changed, problem, store, without

MARK = "@@@"
"""Stands where a text that is no JSON value, or not one that Python writes, is to stand."""

GIGANTIC = "9" * 400
"""An integer that no float can hold."""


def _text(body: Json, pointer: str, raw: str) -> str:
    """Return a body with raw text in one place of it."""
    return json.dumps(changed(body, pointer, MARK)).replace(f'"{MARK}"', raw)


INTEGERS = {
    "model": (
        "parameters",
        "extra_bytes",
        "extra_bytes_per_rank",
        "adapter_parameters",
        "lora_rank",
        "full_every",
    ),
    "cluster": ("gpus", "gpus_per_node", "host_memory_bytes_per_node"),
    "shards": ("writers", "files_per_writer", "largest_shard_bytes"),
    "failures": ("observed_failures", "observed_gpus", "mtbf_gpus"),
    "save": ("staging_buffers",),
    "retention": ("hot_copies", "cold_copies"),
}
FLOATS = {
    "model": (
        "bytes_per_parameter",
        "reduction_factor",
        "compression_factor",
        "deduplication_factor",
        "differential_fraction",
    ),
    "shards": ("skew",),
    "failures": ("observed_hours", "mtbf_hours"),
    "restart": ("seconds", "detect_seconds", "load_seconds", "warm_up_seconds"),
    "save": ("blocking_seconds", "overhead_fraction", "headroom", "durable_lag_seconds"),
    "interval": ("seconds",),
    "restore": ("target_seconds", "read_amplification"),
    "retention": ("hot_protection_fraction", "cold_protection_fraction"),
    "storage": ("write_gb_per_second", "node_gb_per_second", "file_creates_per_second", "usable_tb"),
    "prices": ("gpu_hour_usd", "cold_usd_per_tb_month"),
}
TEXTS = {"model": ("preset",), "cluster": ("gpu_preset",), "failures": ("preset",)}
CHOICES = {"save": ("mode",), "interval": ("rule",)}

NO_NUMBERS = [
    "true",
    "false",
    '"1"',
    '""',
    "[]",
    "[1]",
    "{}",
    '"1e3"',
    '"NaN"',
    "-1",
    "1e30",
    "1e999",
    "-1e999",
]
NO_TEXTS = ["1", "true", "[]", "{}", '""', '"' + "x" * 65 + '"', "1e999"]
NO_CHOICES = ["1", "true", "[]", "{}", '""', '"SYNC"', '" sync"', '"none"', '["sync"]']
NO_BLOCKS = ["1", "true", '"a"', "[]", "[{}]", "1e999", '"{}"']
REQUIRED = ("model", "cluster", "failures", "restart", "save")
OPTIONAL = ("shards", "interval", "restore", "retention", "storage", "prices")
BLOCKS = (*REQUIRED, *OPTIONAL)


def _wrong_values() -> Iterator[tuple[str, str]]:
    """Yield places of a spec, each with a raw text that is wrong there."""
    for block, names in INTEGERS.items():
        for name in names:
            yield from ((f"#/{block}/{name}", raw) for raw in [*NO_NUMBERS, "1.5", "1e-3", GIGANTIC])
    for block, names in FLOATS.items():
        for name in names:
            yield from ((f"#/{block}/{name}", raw) for raw in [*NO_NUMBERS, GIGANTIC])
    for block, names in TEXTS.items():
        for name in names:
            yield from ((f"#/{block}/{name}", raw) for raw in NO_TEXTS)
    for block, names in CHOICES.items():
        for name in names:
            yield from ((f"#/{block}/{name}", raw) for raw in NO_CHOICES)
    for block in BLOCKS:
        yield from ((f"#/{block}", raw) for raw in NO_BLOCKS)
        yield f"#/{block}/no_such_field", "1"
        yield f"#/{block}/no_such_field", "{}"
    yield "#/no_such_field", "1"
    yield "#/Model", "{}"


def _alone(spec: Json, block: str, **fields: object) -> Json:
    """Return a spec in which one block says only this."""
    return {**spec, block: fields}


PARTS = {"detect_seconds": 1, "reschedule_seconds": 1, "initialise_seconds": 1, "warm_up_seconds": 1}

CONTRADICTIONS: list[tuple[Json, set[str]]] = [
    ({}, {"#/model", "#/cluster", "#/failures", "#/restart", "#/save"}),
    *((without(SYNC, f"#/{block}"), {f"#/{block}"}) for block in REQUIRED),
    *((changed(SYNC, f"#/{block}", None), {f"#/{block}"}) for block in REQUIRED),
    (_alone(SYNC, "model"), {"#/model/parameters"}),
    (_alone(SYNC, "model", bytes_per_parameter=14), {"#/model/parameters"}),
    (_alone(SYNC, "model", preset="llama-3-70b", parameters=1000), {"#/model/preset"}),
    (_alone(SYNC, "model", preset="llama"), {"#/model/preset"}),
    (_alone(SYNC, "cluster"), {"#/cluster/gpus"}),
    (_alone(SYNC, "cluster", gpus=8, gpu_preset="h100"), {"#/cluster/gpu_preset"}),
    (_alone(SYNC, "cluster", gpus=0), {"#/cluster/gpus"}),
    (_alone(SYNC, "cluster", gpus=10_000_001), {"#/cluster/gpus"}),
    (_alone(SYNC, "cluster", gpus=8, gpus_per_node=1025), {"#/cluster/gpus_per_node"}),
    (_alone(SYNC, "shards", largest_shard_bytes=10**9, skew=2), {"#/shards/skew"}),
    (_alone(SYNC, "shards", writers=16_385), {"#/shards/writers"}),
    (_alone(SYNC, "shards", writers=4, skew=5), {"#/shards/skew"}),
    (_alone(SYNC, "shards", skew=0.99), {"#/shards/skew"}),
    (_alone(SYNC, "failures"), {"#/failures"}),
    (_alone(SYNC, "failures", preset="llama"), {"#/failures/preset"}),
    (_alone(SYNC, "failures", mtbf_gpus=8), {"#/failures/mtbf_hours"}),
    (
        _alone(SYNC, "failures", observed_hours=1296),
        {"#/failures/observed_failures", "#/failures/observed_gpus"},
    ),
    (_alone(SYNC, "failures", preset="llama-3-405b", counts="all of them"), {"#/failures/counts"}),
    (_alone(SYNC, "failures", observed_planned=4), {"#/failures/observed_failures"}),
    (
        _alone(SYNC, "failures", components=[{"component": "gpu", "per_node": 8, "mtbf_hours": 5e4}] * 2),
        {"#/failures/components/1/component"},
    ),
    (
        changed(SYNC, "#/failures/mtbf_hours", 3),
        {"#/failures/observed_failures", "#/failures/mtbf_hours"},
    ),
    (
        changed(SYNC, "#/failures/preset", "llama-3-405b"),
        {"#/failures/preset", "#/failures/observed_failures"},
    ),
    (
        _alone(SYNC, "failures", preset="llama-3-405b", mtbf_hours=3),
        {"#/failures/preset", "#/failures/mtbf_hours"},
    ),
    (_alone(SYNC, "restart"), {"#/restart/seconds"}),
    (_alone(SYNC, "restart", seconds=119), {"#/restart/seconds"}),
    (_alone(SYNC, "restart", seconds=600, load_seconds=1), {"#/restart/load_seconds"}),
    (_alone(SYNC, "restart", seconds=600, **PARTS), {f"#/restart/{name}" for name in PARTS}),
    (_alone(SYNC, "restart", load_seconds=1), {f"#/restart/{name}" for name in PARTS}),
    *(
        (
            _alone(SYNC, "restart", load_seconds=1, **{name: 1 for name in PARTS if name != left}),
            {f"#/restart/{left}"},
        )
        for left in PARTS
    ),
    ({**without(SYNC, "#/restore"), "restart": PARTS}, {"#/restart/load_seconds"}),
    (_alone(SYNC, "save"), {"#/save/mode"}),
    (_alone(SYNC, "save", mode="sync"), {"#/save/blocking_seconds"}),
    (_alone(SYNC, "save", mode="async"), {"#/save/blocking_seconds"}),
    ({**_alone(SYNC, "save", mode="sync"), "storage": {"usable_tb": 1}}, {"#/save/blocking_seconds"}),
    (changed(SYNC, "#/save/overhead_fraction", 0.1), {"#/save/overhead_fraction"}),
    (changed(SYNC, "#/save/headroom", 2), {"#/save/headroom"}),
    (changed(SYNC, "#/save/durable_lag_seconds", 2), {"#/save/durable_lag_seconds"}),
    (changed(SYNC, "#/save/staging_buffers", 1), {"#/save/staging_buffers"}),
    (
        changed(changed(SYNC, "#/save/staging_buffers", 1), "#/save/headroom", 2),
        {"#/save/staging_buffers", "#/save/headroom"},
    ),
    (changed(ASYNC, "#/save/headroom", 0.99), {"#/save/headroom"}),
    (changed(ASYNC, "#/save/blocking_seconds", 600), {"#/save/blocking_seconds"}),
    (changed(SYNC, "#/save/blocking_seconds", 600), {"#/save/blocking_seconds"}),
    (_alone(SYNC, "interval", rule="fixed"), {"#/interval/seconds"}),
    (_alone(SYNC, "interval", seconds=600), {"#/interval/seconds"}),
    *(
        (_alone(SYNC, "interval", rule=rule, seconds=600), {"#/interval/seconds"})
        for rule in ("exact", "daly")
    ),
    (_alone(SYNC, "restore"), {"#/restore/target_seconds"}),
    (_alone(SYNC, "restore", target_seconds=0), {"#/restore/target_seconds"}),
    (_alone(SYNC, "restore", target_seconds=601), {"#/restart/seconds"}),
    (_alone(SYNC, "retention", hot_copies=0), {"#/retention/hot_copies"}),
    (_alone(SYNC, "storage"), {"#/storage"}),
    (_alone(SYNC, "storage", write_gb_per_second=0), {"#/storage/write_gb_per_second"}),
    (_alone(SYNC, "prices", gpu_hour_usd=-0.01), {"#/prices/gpu_hour_usd"}),
    (
        changed(changed(SYNC, "#/cluster/gpus", "8"), "#/prices/usd", 1),
        {"#/cluster/gpus", "#/prices/usd"},
    ),
]

_GOOD = json.dumps(SYNC)
MALFORMED: list[tuple[str, bytes, str]] = [
    ("empty", b"", "#"),
    ("white space", b" \r\n\t ", "#"),
    ("only a mark", b"\xef\xbb\xbf", "#"),
    ("two marks", b"\xef\xbb\xbf\xef\xbb\xbf" + _GOOD.encode(), "#"),
    ("UTF-16 with a mark", _GOOD.encode("utf-16"), "#"),
    ("UTF-16 little", _GOOD.encode("utf-16-le"), "#"),
    ("UTF-16 big", _GOOD.encode("utf-16-be"), "#"),
    ("UTF-32", _GOOD.encode("utf-32"), "#"),
    ("UTF-7", b"+AHs-+AH0-", "#"),
    ("Latin-1", '{"ä": 1}'.encode("latin-1"), "#"),
    ("Windows-1252", b'{"a": "\x93x\x94"}', "#"),
    ("cut in a character", '{"a": "ä'.encode()[:-1], "#"),
    ("overlong", b'{"a": "\xc0\x80"}', "#"),
    ("a surrogate in UTF-8", b'{"a": "\xed\xa0\x80"}', "#"),
    ("half a surrogate pair", b'{"a": "\\ud800"}', "#"),
    ("the other half", b'{"a": "\\udc00x"}', "#"),
    ("halves in the wrong order", b'{"\\udc00\\ud800": 1}', "#"),
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00", "#"),
    ("a pickle", b"\x80\x04}\x94.", "#"),
    ("a form", b"model=%7B%7D&cluster=%7B%7D", "#"),
    ("multipart", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n{}\r\n--x--\r\n', "#"),
    ("XML", b"<?xml version='1.0'?><spec/>", "#"),
    ("YAML", b"model:\n  parameters: 1\n", "#"),
    ("cut off", _GOOD[:-2].encode(), "#"),
    ("cut in the middle", _GOOD[:100].encode(), "#"),
    ("something after it", _GOOD.encode() + b"x", "#"),
    ("two documents", _GOOD.encode() * 2, "#"),
    ("two lines of JSON", b"{}\n{}", "#"),
    ("NUL after it", _GOOD.encode() + b"\x00", "#"),
    ("single quotes", b"{'a': 1}", "#"),
    ("a trailing comma", b'{"a": 1,}', "#"),
    ("no colon", b'{"a" 1}', "#"),
    ("no key", b"{1: 1}", "#"),
    ("a comment", b'// spec\n{"a": 1}', "#"),
    ("Python", b'{"a": True, "b": None}', "#"),
    ("a raw control character", b'{"a": "\x01"}', "#"),
    ("a raw newline in a string", b'{"a": "b\nc"}', "#"),
    ("a bad escape", b'{"a": "\\x41"}', "#"),
    ("a short escape", b'{"a": "\\u12"}', "#"),
    ("a leading zero", b'{"a": 01}', "#"),
    ("a plus", b'{"a": +1}', "#"),
    ("no digit before the point", b'{"a": .5}', "#"),
    ("no digit after the point", b'{"a": 1.}', "#"),
    ("no exponent", b'{"a": 1e}', "#"),
    ("hexadecimal", b'{"a": 0x10}', "#"),
    ("an underscore", b'{"a": 1_000}', "#"),
    ("digits of another script", '{"a": ١}'.encode(), "#"),
    ("a non-breaking space", '{"a":\u00a01}'.encode(), "#"),
    ("an open list", b"[", "#"),
    ("a closed object", b"}", "#"),
    ("an open string", b'"', "#"),
    ("undefined", b"undefined", "#"),
    ("NaN", b"NaN", "#"),
    ("a NaN inside", _text(SYNC, "#/cluster/gpus", "NaN").encode(), "#/cluster/gpus"),
    ("an infinity inside", _text(SYNC, "#/restart/seconds", "Infinity").encode(), "#/restart/seconds"),
    ("a negative one", _text(SYNC, "#/a~1b/~0", "-Infinity").encode(), "#/a~01b/~00"),
    ("NaN in a list", b'{"a": [0, {"b": NaN}]}', "#/a/1/b"),
    ("65 lists", b"[" * 65 + b"]" * 65, "#"),
    ("65 objects", b'{"a":' * 65 + b"1" + b"}" * 65, "#"),
    ("half a million lists", b"[" * 500_000, "#"),
    ("a hundred thousand objects", b'{"a":' * 100_000, "#"),
    ("deep and good", b"[" * 50_000 + b"]" * 50_000, "#"),
]
"""Bodies that are no JSON, with the place that is named."""

TWICE: list[tuple[bytes, str]] = [
    (b'{"model": {}, "model": {}}', "#/model"),
    (b'{"model": {}, "\\u006dodel": {}}', "#/model"),
    (_text(SYNC, "#/save", '{"mode": "sync", "mode": "sync"}').encode(), "#/save/mode"),
    (b'{"a": [{"b/c": 1, "b/c": 1}]}', "#/a/0/b~1c"),
    (b'{"": 1, "": 1}', "#/"),
]

NO_OBJECTS = [b"null", b"true", b"1", b"1e999", b"-1e999", b'"a"', b"[]", b"[{}]", b'"{}"']


@pytest.fixture(scope="module")
def scenario(stored_on_sqlite: TestClient) -> str:
    return str(store(stored_on_sqlite, "malformed")["id"])


def _to_all(client: TestClient, scenario: str, body: bytes, wrapped: bytes) -> Iterator[tuple[Response, str]]:
    """Send a spec to every endpoint that takes one; yield each answer with where the spec lies in the body."""
    yield client.post("/v1/sizings", content=body), "#"
    yield client.post("/v1/scenarios", content=wrapped), "#/spec"
    yield (
        client.put(f"/v1/scenarios/{scenario}", content=wrapped, headers={"If-Match": "*"}),
        "#/spec",
    )
    # What has a name here asks a question there.
    question = b'"unknown": "restart_seconds", "goal": {"goodput_fraction": 0.5}'
    yield client.post("/v1/solutions", content=wrapped.replace(b'"name": "never"', question)), "#/spec"


def _named(spec: str) -> bytes:
    return b'{"name": "never", "spec": ' + spec.encode() + b"}"


def _pointers(answer: Response) -> set[str]:
    found = [error["pointer"] for error in answer.json()["errors"]]
    assert len(found) == len(set(found)) > 0
    return set(found)


@pytest.mark.parametrize("pointer", dict.fromkeys(pointer for pointer, _ in _wrong_values()))
def test_a_wrong_value_is_refused_where_it_stands(
    stored_on_sqlite: TestClient, scenario: str, pointer: str
) -> None:
    texts = [_text(SYNC, pointer, raw) for place, raw in _wrong_values() if place == pointer]
    for text in texts:
        answer = stored_on_sqlite.post("/v1/sizings", content=text)
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {pointer}, text
    for answer, base in _to_all(stored_on_sqlite, scenario, texts[0].encode(), _named(texts[0])):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {base + pointer[1:]}


@pytest.mark.parametrize(("spec", "pointers"), CONTRADICTIONS)
def test_a_contradiction_is_refused_at_each_of_its_fields(
    stored_on_sqlite: TestClient, scenario: str, spec: Json, pointers: set[str]
) -> None:
    text = json.dumps(spec)
    for answer, base in _to_all(stored_on_sqlite, scenario, text.encode(), _named(text)):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {base + pointer[1:] for pointer in pointers}


@pytest.mark.parametrize(
    ("body", "pointer"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED]
)
def test_what_is_no_json_is_malformed(
    stored_on_sqlite: TestClient, scenario: str, body: bytes, pointer: str
) -> None:
    for answer, _ in _to_all(stored_on_sqlite, scenario, body, body):
        problem(answer, 400, "malformed-json")
        assert _pointers(answer) == {pointer}


@pytest.mark.parametrize(("body", "pointer"), TWICE)
def test_a_key_that_stands_twice_is_refused(
    stored_on_sqlite: TestClient, scenario: str, body: bytes, pointer: str
) -> None:
    for answer, _ in _to_all(stored_on_sqlite, scenario, body, body):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {pointer}


@pytest.mark.parametrize("body", NO_OBJECTS)
def test_json_that_is_no_object_is_refused(stored_on_sqlite: TestClient, scenario: str, body: bytes) -> None:
    for answer, _ in _to_all(stored_on_sqlite, scenario, body, body):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {"#"}


def test_an_integer_of_thousands_of_digits_is_refused(stored_on_sqlite: TestClient, scenario: str) -> None:
    text = _text(SYNC, "#/cluster/gpus", "9" * 5000)
    for answer, base in _to_all(stored_on_sqlite, scenario, text.encode(), _named(text)):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == {f"{base}/cluster/gpus"}


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"#/name", "#/spec"}),
        ({"name": "a"}, {"#/spec"}),
        ({"spec": SYNC}, {"#/name"}),
        ({"name": None, "spec": None}, {"#/name", "#/spec"}),
        ({"name": "a", "spec": []}, {"#/spec"}),
        ({"name": "a", "spec": json.dumps(SYNC)}, {"#/spec"}),
        ({"name": "a", "spec": SYNC, "revision": 1}, {"#/revision"}),
        ({"name": "a", "spec": SYNC, "id": "b", "created_at": "c"}, {"#/id", "#/created_at"}),
        ({"name": 1, "spec": {**SYNC, "a": 1}}, {"#/name", "#/spec/a"}),
        (SYNC, {"#/name", "#/spec", *(f"#/{block}" for block in SYNC)}),
    ],
)
def test_a_body_that_is_no_scenario_is_refused(
    stored_on_sqlite: TestClient, scenario: str, body: Json, pointers: set[str]
) -> None:
    text = json.dumps(body).encode()
    for answer in (
        stored_on_sqlite.post("/v1/scenarios", content=text),
        stored_on_sqlite.put(f"/v1/scenarios/{scenario}", content=text, headers={"If-Match": "*"}),
    ):
        problem(answer, 422, "invalid-request")
        assert _pointers(answer) == pointers


DOCUMENT: Any = json.loads(DCP)


def _document(pointer: str, raw: str) -> bytes:
    """Return the dcp-timing document with raw text in one place."""
    copy = json.loads(DCP)
    *path, last = pointer.removeprefix("#/").split("/")
    place = copy
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[int(last) if isinstance(place, list) else last] = MARK
    return json.dumps(copy).replace(f'"{MARK}"', raw).encode()


WRONG_TIMINGS = [
    (f"#/{place}", raw)
    for place in ("world_size", "nodes", "operations/0/checkpoint_bytes", "operations/0/ranks/0/bytes")
    for raw in ("true", '"2"', "-1", "1.5", "[]", "{}", "NaN", "1e999", GIGANTIC)
]
WRONG_TIMINGS += [
    (f"#/{place}", raw)
    for place in ("operations/0/ranks/0/total_seconds", "operations/1/ranks/1/io_seconds")
    for raw in ("true", '"2"', "-1", "[]", "Infinity", "1e999", "-1e999")
]
WRONG_TIMINGS += [
    (f"#/{place}", raw)
    for place in ("software", "operations", "storage", "operations/2", "run_id", "operations/0/started_at")
    for raw in ("1", "true", "1e999")
]
WRONG_TIMINGS += [
    (f"#/{place}no_such_field", "1")
    for place in ("", "software/", "storage/", "state/", "operations/0/", "operations/0/ranks/1/")
]
WRONG_TIMINGS += [("#/operations/0/op", raw) for raw in ('"store"', "1", '""')]


@pytest.mark.parametrize(("pointer", "raw"), WRONG_TIMINGS)
def test_a_wrong_value_of_a_timing_document_is_refused_where_it_stands(
    stored_on_sqlite: TestClient, scenario: str, pointer: str, raw: str
) -> None:
    answer = stored_on_sqlite.post(
        f"/v1/scenarios/{scenario}/benchmark-runs", content=_document(pointer, raw)
    )
    problem(answer, 422, "unreadable-document")
    assert _pointers(answer) == {pointer}


UPLOADS = [body for _, body, _ in MALFORMED] + [body for body, _ in TWICE] + NO_OBJECTS
UPLOADS += [DCP[:cut] for cut in (1, 10, 100, 1000, len(DCP) - 2)]
UPLOADS += [DCP * 2, DCP + b"}", DCP.replace(b":", b"=", 3), b"[" + DCP + b"]", DCP.replace(b'"', b"'")]


@pytest.mark.parametrize("body", UPLOADS)
def test_what_is_no_document_is_refused(stored_on_sqlite: TestClient, scenario: str, body: bytes) -> None:
    path = f"/v1/scenarios/{scenario}/benchmark-runs"
    answer = stored_on_sqlite.post(path, content=body)
    assert answer.headers["content-type"] == PROBLEM
    problem(answer, 422, "unreadable-document")
    assert len(_pointers(answer)) == 1
    assert stored_on_sqlite.get(path).json()["items"] == []
