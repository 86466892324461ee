"""The rules before a route: limits while reading, encodings, parameters, Accept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.api.bodies import accepts
from service.app import create_app
from service.settings import Settings
from tests.api.asking import IOR_JSON, LOCAL, SYNC, places, problem, store

LIMIT = 2048


@pytest.fixture
def small(migrated_sqlite: Path, tmp_path: Path) -> Iterator[TestClient]:
    """Give a client of a service that reads no more than 2 KiB."""
    file = tmp_path / "small.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    settings = Settings(database_url=f"sqlite:///{file}", max_json_bytes=LIMIT, max_document_bytes=LIMIT)
    with TestClient(create_app(settings), raise_server_exceptions=False, base_url=LOCAL) as opened:
        yield opened


def _paths(client: TestClient) -> list[str]:
    made = store(client)
    return ["/v1/sizings", "/v1/scenarios", f"/v1/scenarios/{made['id']}/benchmark-runs"]


class _Chunks:
    """A body sent in pieces without its length, that knows how much of it was taken."""

    def __init__(self, size: int) -> None:
        self.left = size

    def __iter__(self) -> Iterator[bytes]:
        while self.left > 0:
            self.left -= 512
            yield b" " * 512


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not(small: TestClient) -> None:
    text = json.dumps(SYNC)
    assert small.post("/v1/sizings", content=text + " " * (LIMIT - len(text))).status_code == 200
    body = problem(small.post("/v1/sizings", content=text + " " * (LIMIT + 1 - len(text))), 413, "too-large")
    assert str(LIMIT) in body["detail"]


def test_a_body_without_a_length_is_counted_while_it_is_read(small: TestClient) -> None:
    for path in _paths(small):
        problem(small.post(path, content=iter(_Chunks(LIMIT + 1))), 413, "too-large")
    answer = small.post("/v1/sizings", content=iter([json.dumps(SYNC).encode()]))
    assert answer.status_code == 200


@pytest.mark.parametrize("length", ["0", "1", "-1", "x", "1e3", "²", ""])
def test_a_length_that_lies_lets_nothing_past_the_limit(small: TestClient, length: str) -> None:
    for path in _paths(small):
        answer = small.post(
            path, content=b" " * (LIMIT + 1), headers={b"Content-Length": length.encode("latin-1")}
        )
        problem(answer, 413, "too-large")


@pytest.mark.parametrize("length", [str(LIMIT + 1), "9" * 400])
def test_a_length_beyond_the_limit_is_refused_before_the_body(small: TestClient, length: str) -> None:
    for path in _paths(small):
        problem(small.post(path, content=b"{}", headers={"Content-Length": length}), 413, "too-large")


@pytest.mark.parametrize("encoding", ["br", "deflate", "compress", "identity, gzip", "gzip, zstd", "x" * 999])
def test_an_encoding_that_is_not_read_is_refused(small: TestClient, encoding: str) -> None:
    for path in _paths(small):
        answer = small.post(path, content=b"{}", headers={"Content-Encoding": encoding})
        body = problem(answer, 415, "unsupported-encoding")
        assert places(body) == [("Content-Encoding", "unsupported")]
        assert answer.headers["accept-encoding"] == "gzip, x-gzip, zstd, identity"


def test_an_encoding_on_a_second_line_is_seen(small: TestClient) -> None:
    headers = [("Content-Encoding", "identity"), ("Content-Encoding", "br")]
    problem(small.post("/v1/sizings", json=SYNC, headers=headers), 415, "unsupported-encoding")


@pytest.mark.parametrize("encoding", ["identity", "Identity", ""])
def test_no_encoding_may_be_said(stateless: TestClient, encoding: str) -> None:
    answer = stateless.post("/v1/sizings", json=SYNC, headers={"Content-Encoding": encoding})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/json",
        "application/*",
        "APPLICATION/JSON",
        "application/json;charset=utf-8",
        "text/html, application/json;q=0.1",
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "",
        "*",
    ],
)
def test_an_accept_that_json_satisfies_is_answered(stateless: TestClient, accept: str) -> None:
    assert stateless.get("/v1/presets/gpus", headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/xml",
        "application/problem+json",
        "text/*",
        "application/json;q=0",
        "*/*;q=0",
        "application/json;q=0.0, text/csv",
        "*/*, application/json;q=0",
        "json",
        ";",
    ],
)
def test_an_accept_that_json_does_not_satisfy_is_refused(stateless: TestClient, accept: str) -> None:
    for method, path in (("GET", "/v1/presets/gpus"), ("POST", "/v1/sizings"), ("GET", "/livez")):
        body = problem(
            stateless.request(method, path, headers={"Accept": accept}, content=b"{"), 406, "not-acceptable"
        )
        assert places(body) == [("Accept", "not_acceptable")]
        assert "application/json" in body["detail"]


def test_accept_on_several_lines_is_one_list(stateless: TestClient) -> None:
    headers = [("Accept", "text/html"), ("Accept", "application/json")]
    assert stateless.get("/v1/presets/gpus", headers=headers).status_code == 200


def test_a_document_is_bytes_and_not_json(stored_on_both: TestClient) -> None:
    made = store(stored_on_both, "document")
    run = stored_on_both.post(f"/v1/scenarios/{made['id']}/benchmark-runs", content=IOR_JSON).json()
    path = f"/v1/benchmark-runs/{run['id']}/document"
    for accept in ("application/octet-stream", "*/*", "application/*"):
        assert stored_on_both.get(path, headers={"Accept": accept}).content == IOR_JSON
    problem(stored_on_both.get(path, headers={"Accept": "application/json"}), 406, "not-acceptable")


@pytest.mark.parametrize(
    ("accept", "weight"),
    [
        ("application/json", 1.0),
        ("application/json;q=0.5", 0.5),
        ("application/json ; q=0.5", 0.5),
        ("*/*;q=0.1, application/*;q=0.2, application/json;q=0.3", 0.3),
        ("application/json;q=0.3, application/*;q=0.2, */*;q=0.1", 0.3),
        ("*/*;q=0.1, application/*;q=0.2", 0.2),
        ("application/json;q=2", 1.0),
        ("application/json;q=-1", 0.0),
        ("application/json;q=x", 1.0),
        ("text/html", 0.0),
        ("", 0.0),
    ],
)
def test_the_most_specific_range_decides(accept: str, weight: float) -> None:
    assert accepts(accept, "application/json") == weight


def test_a_parameter_is_given_once(stateless: TestClient) -> None:
    body = problem(
        stateless.post("/v1/sizings?explain=true&explain=true&foo=1", json=SYNC), 422, "invalid-request"
    )
    assert places(body) == [("explain", "repeated_parameter"), ("foo", "unknown_parameter")]


@pytest.mark.parametrize(
    "query", ["foo=1", "foo", "FOO=", "Explain=true", "%ff=1", "a%00=1", "x" * 999, "explain[]=1"]
)
def test_an_unknown_parameter_is_refused_everywhere(stateless: TestClient, query: str) -> None:
    for method, path in (("POST", "/v1/sizings"), ("GET", "/v1/presets/models"), ("GET", "/problems")):
        body = problem(stateless.request(method, f"{path}?{query}", json=SYNC), 422, "invalid-request")
        assert [code for _, code in places(body)] == ["unknown_parameter"]


@pytest.mark.parametrize("value", ["", "maybe", "2", "null"])
def test_a_flag_is_true_or_false(stateless: TestClient, value: str) -> None:
    body = problem(stateless.post(f"/v1/sizings?explain={value}", json=SYNC), 422, "invalid-request")
    assert [pointer for pointer, _ in places(body)] == ["explain"]
