"""Clients of instances of the service, over connections of their own, and what they send."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from service.api.examples import LLAMA_405B_SYNC
from tests.api.asking import IOR_CSV
from tests.running_server import Instance, running_instance

Json = dict[str, Any]

NO_LIMITS = {"reading_per_minute": 0, "computing_per_minute": 0, "writing_per_minute": 0}
WAITS_SECONDS = 60.0
"""How long a test waits for what must happen. Only a test that fails waits so long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        """Return the body, which is a JSON object."""
        read: Json = json.loads(self.body)
        return read


@contextmanager
def service(database_url: str, said: list[str] | None = None, /, **settings: object) -> Iterator[Instance]:
    """Give an instance without quotas."""
    with running_instance(database_url, said, **{**NO_LIMITS, **settings}) as instance:
        yield instance


class Client:
    """One connection to an instance, opened when it is first used."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAITS_SECONDS)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send a request, and do not wait for its answer."""
        self._connection.request(method, path, body, headers or {})

    def receive(self) -> Answer:
        """Wait for the answer; raise OSError or HTTPException where none comes."""
        answer = self._connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read())

    def close(self) -> None:
        """Give up the connection, and whatever answer is outstanding."""
        self._connection.close()


def ask(
    port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """Send a request over a connection of its own, and return the answer."""
    with closing(Client(port)) as client:
        client.send(method, path, body, headers)
        return client.receive()


def all_at_once(questions: list[Callable[[], Answer]]) -> list[Answer]:
    """Ask every question, each in a thread, when all threads are there."""
    together = threading.Barrier(len(questions))

    def one(question: Callable[[], Answer]) -> Answer:
        together.wait(timeout=WAITS_SECONDS)
        return question()

    with ThreadPoolExecutor(len(questions)) as pool:
        return list(pool.map(one, questions))


def until(is_so: Callable[[], object]) -> None:
    """Return when something is so; fail when it does not become so in a minute."""
    lapsed = threading.Event()
    timer = threading.Timer(WAITS_SECONDS, lapsed.set)
    timer.start()
    try:
        while not is_so():
            # Between two looks the others are to get on.
            assert not lapsed.wait(0.01), "what is waited for does not happen"
    finally:
        timer.cancel()


def scenario_body(name: str) -> bytes:
    """Return a scenario to store."""
    return json.dumps({"name": name, "spec": LLAMA_405B_SYNC}).encode()


def stored_scenario(port: int, name: str = "llama") -> str:
    """Store a scenario, and return its id."""
    answer = ask(port, "POST", "/v1/scenarios", scenario_body(name))
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


def runs_of(scenario_id: str) -> str:
    """Return the path of a scenario's runs."""
    return f"/v1/scenarios/{scenario_id}/benchmark-runs"


def document(number: int) -> bytes:
    """Return a small document that differs from that of every other number."""
    # How long the files took to open: nothing else of the document says anything of that.
    return IOR_CSV.replace(b"0.0182", b"0.0%04d" % number)


def assert_unavailable(answer: Answer) -> None:
    """Check that an answer is a 503 that says when to come again."""
    assert answer.status == 503, answer.body
    assert answer.json()["type"] == "/problems/unavailable"
    assert int(answer.headers["retry-after"]) > 0


@dataclass
class Uploads:
    """Documents that several clients post at once, each one once.

    Attributes:
        receipts: The run of every document that was acknowledged with a 201, by its number.
        unanswered: The numbers of those whose client heard nothing.
        refused: What the others were answered with, by their numbers.
        in_flight: How many requests are sent and not answered.
    """

    scenario_id: str
    count: int
    clients: int = 8
    receipts: dict[int, Json] = field(default_factory=dict)
    unanswered: list[int] = field(default_factory=list)
    refused: dict[int, Answer] = field(default_factory=dict)
    in_flight: int = 0

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = iter(range(self.count))
        self._port: int | None = None
        self._is_over = False
        self._posting = self.clients

    @contextmanager
    def going_to(self, port: int) -> Iterator[None]:
        """Have the clients post to a port, as long as documents are left; and stop when the test fails."""
        self.go_on_at(port)
        with ThreadPoolExecutor(self.clients) as pool:
            posting = [pool.submit(self._post) for _ in range(self.clients)]
            try:
                yield
            except BaseException:
                with self._changed:
                    self._is_over = True
                    self._changed.notify_all()
                raise
            for each in posting:
                each.result(timeout=WAITS_SECONDS)

    def go_on_at(self, port: int) -> None:
        """Have the clients go on, those that lost their instance at this port."""
        with self._changed:
            self._port = port
            self._changed.notify_all()

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Return when something is so of what has been sent and answered."""
        with self._changed:
            self._changed.wait_for(lambda: is_so() or self._posting == 0, timeout=WAITS_SECONDS)
            assert is_so(), "what is waited for does not happen"

    def pause(self) -> None:
        """Have no client send another request until they go on."""
        with self._changed:
            self._port = None

    def _post(self) -> None:
        client: Client | None = None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._port is not None or self._is_over)
                    number = next(self._numbers, None)
                    if number is None or self._is_over:
                        return
                    port = self._port
                    assert port is not None
                if client is None:
                    client = Client(port)
                answer = self._post_one(client, number)
                if answer is None:
                    client.close()
                    client = None
        finally:
            if client is not None:
                client.close()
            with self._changed:
                self._posting -= 1
                self._changed.notify_all()

    def _post_one(self, client: Client, number: int) -> Answer | None:
        answer = None
        is_sent = False
        try:
            client.send("POST", runs_of(self.scenario_id), document(number))
            with self._changed:
                is_sent = True
                self.in_flight += 1
                self._changed.notify_all()
            answer = client.receive()
        except (OSError, http.client.HTTPException):
            pass
        with self._changed:
            self.in_flight -= is_sent
            if answer is None:
                self.unanswered.append(number)
            elif answer.status == 201:
                self.receipts[number] = answer.json()
            else:
                self.refused[number] = answer
            self._changed.notify_all()
        return answer
