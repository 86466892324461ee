"""`stallbudget submit`: against the service itself in process and over the loopback, and against scripted answers."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.api.examples import LLAMA_405B_SYNC
from service.app import create_app
from service.cli import app as command
from service.settings import Settings
from service.store.caller import AccessScope
from service.store.database import Database
from service.submit import (
    ATTEMPTS,
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    Fate,
    Submitter,
    Tags,
    Unreachable,
    figures,
    problem,
    standing,
)
from tests.api.asking import LOCAL
from tests.api.keyring import store_key

DATA = Path(__file__).parent / "data" / "dcp"
SAVES = DATA / "w2-save-and-load.json"
NOW = datetime(2026, 11, 29, 10, 0, 0, tzinfo=UTC)
SCENARIO_ID = "0d9f9a0e-5a52-4b27-b1a7-0c2d6b8a9f10"
RUN = {"id": "7", "tool": "ior", "tool_version": "4.0.0", "doubts": []}

Handler = Callable[[httpx.Request], httpx.Response]


class InProcess(httpx.BaseTransport):
    """Hands requests to the service without a network."""

    def __init__(self, client: TestClient) -> None:
        self._client = client
        self.seen: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.seen.append(request)
        headers = [(name, value) for name, value in request.headers.items() if name != "host"]
        answer = self._client.request(
            request.method, request.url.raw_path.decode(), headers=headers, content=request.content
        )
        return httpx.Response(
            answer.status_code, headers=list(answer.headers.items()), content=answer.content
        )


class Waits:
    """What a submitter waited for and told meanwhile; no time passes."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.told: list[str] = []


def submitter(transport: httpx.BaseTransport, waits: Waits | None = None) -> Submitter:
    waits = waits or Waits()
    client = httpx.Client(base_url="http://storage.test", transport=transport)
    return Submitter(client, wait=waits.seconds.append, tell=waits.told.append, now=lambda: NOW)


def scripted(*answers: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """Return a transport that gives these answers in turn, the last again and again, and what it was asked."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(handle), asked


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(database_url=database_url)


@pytest.fixture
def service(settings: Settings) -> Iterator[InProcess]:
    """Give the service in process, with one scenario named llama."""
    with TestClient(create_app(settings), raise_server_exceptions=False, base_url=LOCAL) as client:
        made = client.post("/v1/scenarios", json={"name": "llama", "spec": LLAMA_405B_SYNC})
        assert made.status_code == 201
        yield InProcess(client)


class Announced(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Give the address of the service on the loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = Announced(uvicorn.Config(create_app(settings), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert server.listening.wait(30)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


# --- Against the service -----------------------------------------------------------------------------------


def test_a_file_is_stored_and_its_run_and_doubts_are_told(service: InProcess) -> None:
    sends = submitter(service)
    outcome = sends.submit(SAVES, scenario_id=sends.scenario_id("llama"), tags=Tags())
    assert outcome.fate is Fate.STORED
    first, *doubts = outcome.text().splitlines()
    assert first == (
        f"{SAVES}: stored as run {outcome.run_id}: torch.distributed.checkpoint 2.13.0, "
        "save x3 0.2832 GB/s, blocked 0.547 s at most, load x2 0.8732 GB/s, blocked 0.1857 s at most; "
        "it can prove that a target is missed, not that it is met"
    )
    assert any(line.startswith("  few_repetitions: ") for line in doubts)


def test_the_same_file_again_is_already_there(service: InProcess) -> None:
    sends = submitter(service)
    scenario_id = sends.scenario_id("llama")
    first = sends.submit(SAVES, scenario_id=scenario_id, tags=Tags())
    again = sends.submit(SAVES, scenario_id=scenario_id, tags=Tags())
    assert (again.fate, again.run_id) == (Fate.ALREADY_STORED, first.run_id)
    assert again.notice is None


def test_what_is_said_of_a_file_goes_along(service: InProcess) -> None:
    sends = submitter(service)
    tags = Tags("pfs & co", ["idle", "under_read_load"], "a note", "2024-11-29T10:00:00+01:00", 1)
    outcome = sends.submit(SAVES, scenario_id=sends.scenario_id("llama"), tags=tags)
    with httpx.Client(base_url="http://storage.test", transport=service) as client:
        run = client.get(f"/v1/benchmark-runs/{outcome.run_id}").json()
    assert (run["storage_label"], run["conditions"], run["note"]) == (
        "pfs & co",
        ["idle", "under_read_load"],
        "a note",
    )
    assert run["ran_at"] == "2024-11-29T09:00:00Z"


def test_a_key_that_only_submits_takes_the_id_of_a_scenario_and_not_its_name(
    service: InProcess, database: Database
) -> None:
    scenario_id = submitter(service).scenario_id("llama")
    key = store_key(database, AccessScope.SUBMIT)
    with httpx.Client(base_url="http://storage.test", transport=service, headers=key) as client:
        sends = Submitter(client, wait=lambda _: None, tell=lambda _: None, now=lambda: NOW)
        with pytest.raises(Unreachable, match="give its id"):
            sends.scenario_id("llama")
        assert sends.scenario_id(scenario_id.upper()) == scenario_id
        outcome = sends.submit(SAVES, scenario_id=scenario_id, tags=Tags())
        assert outcome.fate is Fate.STORED
        assert sends.submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags()).fate is Fate.REFUSED


def test_one_that_is_still_being_answered_is_sent_again() -> None:
    busy = httpx.Response(
        409,
        json={"type": "/problems/idempotency-key-in-use", "detail": "Still."},
        headers={"Retry-After": "2"},
    )
    transport, asked = scripted(busy, httpx.Response(201, json=RUN))
    waits = Waits()
    outcome = submitter(transport, waits).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert (outcome.fate, waits.seconds) == (Fate.STORED, [2.0])
    assert len({request.headers["idempotency-key"] for request in asked}) == 1


def test_a_file_that_is_no_result_is_refused_with_the_reason_and_the_place(service: InProcess) -> None:
    sends = submitter(service)
    bad = DATA / "bad" / "duplicate-rank.json"
    outcome = sends.submit(bad, scenario_id=sends.scenario_id("llama"), tags=Tags())
    assert outcome.fate is Fate.REFUSED
    assert "(duplicate_rank, #/operations/0/ranks/1/rank)" in outcome.text()
    assert "Rank 0 stands twice" in outcome.text()


def test_an_empty_file_is_refused(service: InProcess, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.touch()
    sends = submitter(service)
    assert sends.submit(empty, scenario_id=sends.scenario_id("llama"), tags=Tags()).fate is Fate.REFUSED


def test_a_scenario_is_found_by_its_id_and_on_any_page(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.submit._PAGE_ITEMS", 1)
    with httpx.Client(base_url="http://storage.test", transport=service) as client:
        last = client.post("/v1/scenarios", json={"name": "last", "spec": LLAMA_405B_SYNC}).json()["id"]
    sends = submitter(service)
    assert sends.scenario_id("last") == last
    assert sends.scenario_id(last.upper()) == last


def test_a_scenario_that_is_not_there_is_told_from_those_that_are(service: InProcess) -> None:
    for name in ("lama", SCENARIO_ID):
        with pytest.raises(Unreachable, match=f"no scenario '{name}'; there are llama"):
            submitter(service).scenario_id(name)


# --- Against scripted answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(429),
        httpx.Response(502),
        httpx.Response(503),
        httpx.Response(504),
    ],
)
def test_what_may_pass_is_tried_again_under_the_same_key(trouble: httpx.Response | Exception) -> None:
    transport, asked = scripted(trouble, trouble, httpx.Response(201, json=RUN))
    waits = Waits()
    outcome = submitter(transport, waits).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert outcome.fate is Fate.STORED
    assert waits.seconds == [FIRST_WAIT_SECONDS, 2 * FIRST_WAIT_SECONDS]
    assert len(waits.told) == 2
    assert len({request.headers["Idempotency-Key"] for request in asked}) == 1
    assert [request.content for request in asked] == [SAVES.read_bytes()] * 3


def test_what_does_not_pass_is_given_up() -> None:
    transport, asked = scripted(httpx.ConnectError("refused"))
    waits = Waits()
    with pytest.raises(
        Unreachable, match=rf"cannot be connected to \(refused\)\. Given up after {ATTEMPTS} attempts"
    ):
        submitter(transport, waits).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert len(asked) == ATTEMPTS
    assert waits.seconds == [FIRST_WAIT_SECONDS * 2**at for at in range(ATTEMPTS - 1)]


@pytest.mark.parametrize(
    ("header", "waited"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Sun, 29 Nov 2026 10:00:30 GMT", 30.0),
        ("Sun, 29 Nov 2026 09:00:00 GMT", 0.0),
        ("soon", FIRST_WAIT_SECONDS),
    ],
)
def test_the_service_says_how_long_to_wait(header: str, waited: float) -> None:
    transport, _ = scripted(
        httpx.Response(503, headers={"Retry-After": header}), httpx.Response(201, json=RUN)
    )
    waits = Waits()
    submitter(transport, waits).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert waits.seconds == [waited]


def test_a_wait_too_long_is_left_to_the_user() -> None:
    transport, _ = scripted(httpx.Response(429, headers={"Retry-After": str(int(LONGEST_WAIT_SECONDS) + 1)}))
    waits = Waits()
    with pytest.raises(Unreachable, match="tried again in 121 s"):
        submitter(transport, waits).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert waits.seconds == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422])
def test_what_was_refused_is_not_tried_again(status: int) -> None:
    transport, asked = scripted(httpx.Response(status, json={"detail": "No."}))
    outcome = submitter(transport).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert (outcome.fate, outcome.reason, len(asked)) == (Fate.REFUSED, "No.", 1)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500, json={"detail": "A fault."}),
        httpx.Response(201, text="<html>"),
        httpx.Response(201, json=["no run"]),
        httpx.Response(201, json={"no": "id"}),
        httpx.Response(308, headers={"location": "https://storage.test/"}),
    ],
)
def test_an_answer_that_is_none_of_the_services_is_no_success(answer: httpx.Response) -> None:
    transport, asked = scripted(answer)
    with pytest.raises(Unreachable):
        submitter(transport).submit(SAVES, scenario_id=SCENARIO_ID, tags=Tags())
    assert len(asked) == 1


def test_a_list_that_is_none_is_no_service_of_ours() -> None:
    for answer in (
        httpx.Response(200, json={"hello": "world"}),
        httpx.Response(200, text="hello"),
        httpx.Response(403),
    ):
        transport, _ = scripted(answer)
        with pytest.raises(Unreachable):
            submitter(transport).scenario_id("llama")


def test_the_key_is_that_of_the_request_and_follows_from_the_digest(tmp_path: Path) -> None:
    transport, asked = scripted(httpx.Response(201, json=RUN))
    other = tmp_path / "other.json"
    other.write_bytes(SAVES.read_bytes() + b"\n")
    copy = tmp_path / "copy.json"
    copy.write_bytes(SAVES.read_bytes())
    sends = submitter(transport)
    for file, scenario_id, tags in (
        (SAVES, SCENARIO_ID, Tags()),
        (copy, SCENARIO_ID, Tags()),
        (other, SCENARIO_ID, Tags()),
        (SAVES, "another", Tags()),
        (SAVES, SCENARIO_ID, Tags(note="again")),
    ):
        sends.submit(file, scenario_id=scenario_id, tags=tags)
    first, same, *others = (request.headers["Idempotency-Key"] for request in asked)
    assert first == same
    assert len({first, *others}) == 4
    assert len(first) == len(hashlib.sha256().hexdigest())


def test_a_file_is_sent_in_parts_with_its_length(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.write_bytes(b"x" * 1_000_000)
    parts: list[int] = []

    class Counting(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            assert request.headers["Content-Length"] == "1000000"
            assert "Transfer-Encoding" not in request.headers
            parts.extend(len(part) for part in request.stream)  # type: ignore[union-attr]
            return httpx.Response(201, json=RUN)

    submitter(Counting()).submit(large, scenario_id=SCENARIO_ID, tags=Tags())
    assert sum(parts) == 1_000_000
    assert max(parts) < 100_000


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"detail": "It is wrong."}, "It is wrong."),
        ({"detail": "It is wrong.", "errors": []}, "It is wrong."),
        (
            {
                "detail": "Two.",
                "errors": [{"pointer": "#/a", "code": "c", "detail": "First."}, {"detail": "Second."}],
            },
            "Two. (c, #/a: First.)",
        ),
        (
            {"detail": "Bad.", "errors": [{"pointer": "#", "code": "c", "detail": "Bad.", "line": 3}]},
            "Bad. (c, line 3)",
        ),
        (["odd"], "http://storage.test/ answered 422 Unprocessable Entity."),
        ({"detail": 7}, "http://storage.test/ answered 422 Unprocessable Entity."),
    ],
)
def test_a_problem_is_told_in_a_sentence(told: Any, expected: str) -> None:  # noqa: ANN401 - any JSON
    request = httpx.Request("GET", "http://storage.test/")
    assert problem(httpx.Response(422, json=told, request=request)) == expected


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], "undoubted"),
        (["few_repetitions"], "usable as evidence, with 1 doubt"),
        (["few_repetitions", "no_fsync"], "it can prove that a target is missed, not that it is met"),
        (["no_fsync", "incomplete_run"], "what is doubted here proves nothing"),
    ],
)
def test_the_doubts_say_what_a_run_can_prove(codes: list[str], expected: str) -> None:
    assert standing(codes) == expected


def test_the_figures_of_a_benchmark_are_its_rates_on_its_nodes() -> None:
    write = {"operation": "write", "nodes": 2, "gb_per_second": {"mean": 0.8891}}
    create = {"operation": "file_create", "nodes": 1, "per_second": {"mean": 12345.6}}
    run = {**RUN, "measurements": [write, create]}
    assert figures(run) == "ior 4.0.0, write 0.8891 GB/s on 2 nodes, file_create 1.235e+04 /s on 1 node"
    assert figures({**RUN, "measurements": [write] * 20}).endswith(", and 14 more")


# --- The command ---------------------------------------------------------------------------------------------


def run(*arguments: object) -> Any:  # noqa: ANN401 - what the runner returns
    return CliRunner().invoke(command, ["submit", *(str(argument) for argument in arguments)])


def test_the_command_posts_over_the_network_and_ends_with_0_or_1(settings: Settings) -> None:
    bad = DATA / "bad" / "zero-bytes.json"
    with served(settings) as url:
        httpx.post(f"{url}/v1/scenarios", json={"name": "llama", "spec": LLAMA_405B_SYNC}).raise_for_status()
        alone = run(
            SAVES,
            "--scenario",
            "llama",
            "--url",
            url,
            "--condition",
            "idle",
            "--ran-at",
            "2024-11-29T10:00:00Z",
        )
        mixed = run(SAVES, bad, "--scenario", "llama", "--url", f"{url}/")
        unknown = run(SAVES, "--scenario", "lama", "--url", url)
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert f"{SAVES}: stored as run " in alone.stdout
    assert mixed.exit_code == 1
    assert "already stored as run" in mixed.stdout
    assert f"{bad}: refused: " in mixed.stdout
    assert mixed.stderr.splitlines() == [
        f"[1/2] {SAVES}, {SAVES.stat().st_size} bytes", f"[2/2] {bad}, {bad.stat().st_size} bytes",
    ]  # fmt: skip
    assert unknown.exit_code == 2
    assert "no scenario 'lama'" in unknown.stderr


def test_the_command_ends_with_2_where_it_is_used_wrongly(tmp_path: Path) -> None:
    at = ("--scenario", "llama", "--url")
    for arguments, said in (
        ((tmp_path / "none.json", *at, "http://127.0.0.1:9"), "there is no such file"),
        ((tmp_path, *at, "http://127.0.0.1:9"), "there is no such file"),
        ((SAVES, *at, "127.0.0.1:9"), "no address of a service"),
        ((SAVES, *at, "ftp://127.0.0.1"), "no address of a service"),
        ((SAVES, *at, "http://127.0.0.1:9", "--ran-at", "yesterday"), "--ran-at"),
        ((SAVES, *at, "http://127.0.0.1:9", "--condition", "busy"), "busy"),
        ((SAVES, "--scenario", "llama"), "--url"),
    ):
        ended = run(*arguments)
        assert (ended.exit_code, said in ended.stderr) == (2, True), (arguments, ended.stderr)


def test_the_command_takes_its_key_from_the_environment_alone(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = store_key(database, AccessScope.WRITE)["Authorization"].removeprefix("Bearer ")
    with served(settings) as url:
        refused = run(SAVES, "--scenario", "llama", "--url", url)
        assert (refused.exit_code, "needs a key" in refused.stderr) == (2, True)
        monkeypatch.setenv("STALLBUDGET_API_KEY", f" {key}\n")
        known = run(SAVES, "--scenario", "llama", "--url", url)
        assert (known.exit_code, "there is none yet" in known.stderr) == (2, True)
    in_url = run(SAVES, "--scenario", "llama", "--url", f"http://{key}@127.0.0.1:9")
    assert (in_url.exit_code, "STALLBUDGET_API_KEY" in in_url.stderr) == (2, True)
    assert key not in refused.output + known.output + in_url.output
    monkeypatch.setenv("STALLBUDGET_API_KEY", "sbk_a\r\nX: y")
    assert "holds no key" in run(SAVES, "--scenario", "llama", "--url", "http://127.0.0.1:9").stderr


def test_the_command_ends_with_2_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    with socket.socket() as silent:  # bound, so that nobody else is there, and not listening
        silent.bind(("127.0.0.1", 0))
        ended = run(SAVES, "--scenario", "llama", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert ended.exit_code == 2
    assert "cannot be connected to" in ended.stderr
    assert len(waited) == ATTEMPTS - 1


def test_the_conditions_of_the_command_are_those_of_the_service() -> None:
    from service.cli import StorageCondition
    from service.parsers.run import Condition

    assert [one.value for one in StorageCondition] == [one.value for one in Condition]


def test_every_answer_of_a_run_can_be_shown() -> None:
    assert figures({"id": "7"}) == "unknown tool"
    assert figures({"tool": "x", "summary": {"save": {"count": 0}}}) == "x, save x0"
