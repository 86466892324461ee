"""Reading, sizing and posting over HTTP, on SQLite and on Postgres, by one process and by two; and long gap reports."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, select

from benchmarks.http import serving
from service.api.examples import IOR_CSV, LLAMA_405B_SYNC
from service.store.database import Database
from service.store.tables import benchmark_runs
from tests.conftest import administer, new_postgres, own_postgres
from tests.free_port import free_port

HEADING = "## With a database"
SECTION = """\
{heading}

Requests a second, and how long they took: the median and the 99th percentile. Over {connections} kept-alive connections
for {seconds:g} s each, one kind of request at a time: `GET` of a scenario, `POST /v1/sizings`, and `POST` of an IOR
document of {document_bytes} bytes, each time a new one. The processes are `stallbudget serve`, open on the loopback,
without rate limits and without a log of requests. The service has no workers of its own: two processes are two of it
on one database, and every other connection goes to the second. Postgres is the one that comes with the tests, on the
same machine and with `fsync` on; SQLite syncs each commit too. *Bare* is FastAPI alone with canned answers of the same
models, which keeps nothing. Nothing is pinned: client, processes and Postgres share the processors, and where there are
but two, two processes cannot reach twice the rate of one. The load average was {load:.1f} before; where that is well
above 0, other work had a share of the machine, not the same for every row, and rows compare only roughly.

| server | processes | reading | p50 | p99 | sizing | p50 | p99 | posting | p50 | p99 |
|---|---|---|---|---|---|---|---|---|---|---|
{rates}

A gap report over runs on one storage, on SQLite: copies of one run, a write and a read of three repetitions each, with
ids and times of their own. From the request to the end of the answer, by one process.

| runs | report | for each run |
|---|---|---|
| {few} (median of {few_times}) | {few_seconds:.3f} s | {few_each:.0f} µs |
| {many:,} (once) | {many_seconds:.1f} s | {many_each:.0f} µs |
"""

KINDS = ("read", "size", "post")
CONNECTIONS = 8
SECONDS = 1.5
PROCESSES = (1, 2)
FEW, MANY = 100, 100_000
FEW_TIMES = 15
AT_ONCE = 5000
"""Rows that one transaction inserts."""
READY_WITHIN_SECONDS = 60.0
SETTINGS = {
    "STALLBUDGET_READING_PER_MINUTE": "0",
    "STALLBUDGET_COMPUTING_PER_MINUTE": "0",
    "STALLBUDGET_WRITING_PER_MINUTE": "0",
    "STALLBUDGET_LOG_LEVEL": "warning",
    "STALLBUDGET_REQUEST_SECONDS": "600",
}

Load = tuple[float, float, float]
"""Requests a second, and two percentiles of what they took. [1/s, s, s]"""


def section() -> str:
    """Measure, and return this part of the page."""
    load = os.getloadavg()[0]
    rates: dict[tuple[str, int], dict[str, Load]] = {}
    with own_postgres() as server:
        # Tests do without it; what is acknowledged is to be on the disk here.
        for setting in ("fsync", "full_page_writes"):
            administer(server, f"ALTER SYSTEM RESET {setting}")
        administer(server, "SELECT pg_reload_conf()")
        databases: dict[str, Callable[[], AbstractContextManager[str]]] = {
            "SQLite": _new_sqlite,
            "Postgres": lambda: new_postgres(server),
        }
        for processes in PROCESSES:
            with ExitStack() as stack:
                ports = [stack.enter_context(serving("plain", pinned=False)) for _ in range(processes)]
                rates["bare", processes] = _loads(ports, str(uuid4()))
            for name, new in databases.items():
                with ExitStack() as stack:
                    url = stack.enter_context(new())
                    ports = [stack.enter_context(_service(url)) for _ in range(processes)]
                    rates[name, processes] = _loads(ports, _stored_scenario(ports[0], "loaded"))
    few, many = _report_seconds()
    return SECTION.format(
        heading=HEADING,
        connections=CONNECTIONS,
        seconds=SECONDS,
        document_bytes=len(IOR_CSV.encode()),
        load=load,
        rates="\n".join(
            f"| {name} | {processes} | {' | '.join(_cells(found[kind]) for kind in KINDS)} |"
            for (name, processes), found in rates.items()
        ),
        few=FEW,
        few_times=FEW_TIMES,
        few_seconds=few,
        few_each=few / FEW * 1e6,
        many=MANY,
        many_seconds=many,
        many_each=many / MANY * 1e6,
    )


def _cells(load: Load) -> str:
    rate, middle, late = load
    return f"{rate:,.0f} | {middle * 1e3:.1f} ms | {late * 1e3:.1f} ms"


@contextmanager
def _new_sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="stallbudget-benchmark-") as folder:
        yield f"sqlite:///{Path(folder) / 'stallbudget.db'}"


@contextmanager
def _service(url: str) -> Iterator[int]:
    """Give the port of a `stallbudget serve` that is ready, and end it."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    environment |= SETTINGS | {"STALLBUDGET_DATABASE_URL": url, "STALLBUDGET_PORT": str(port)}
    with subprocess.Popen([sys.executable, "-m", "service.cli", "serve"], env=environment) as server:
        try:
            # Without its log it says nothing of being ready.
            deadline = time.monotonic() + READY_WITHIN_SECONDS
            while not _is_ready(port):
                assert server.poll() is None, "the service ended"
                assert time.monotonic() < deadline, "the service does not get ready"
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()


def _is_ready(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=READY_WITHIN_SECONDS)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False


def _loads(ports: list[int], scenario: str) -> dict[str, Load]:
    return {kind: _load(kind, ports, scenario) for kind in KINDS}


def _load(kind: str, ports: list[int], scenario: str) -> Load:
    command = [sys.executable, "-m", "benchmarks.load", kind, scenario, str(SECONDS), str(CONNECTIONS)]
    done = subprocess.run([*command, *map(str, ports)], check=True, stdout=subprocess.PIPE, text=True)
    rate, middle, late = json.loads(done.stdout)
    return rate, middle, late


def _stored_scenario(port: int, name: str) -> str:
    body = json.dumps({"name": name, "spec": LLAMA_405B_SYNC}).encode()
    return str(_ask(port, "POST", "/v1/scenarios", body)["id"])


def _report_seconds() -> tuple[float, float]:
    """Return how long a gap report takes over few runs, and over many. [s, s]"""
    with _new_sqlite() as url, _service(url) as port:
        path = f"/v1/scenarios/{_stored_scenario(port, 'measured')}"
        _ask(port, "POST", f"{path}/benchmark-runs", IOR_CSV.encode())
        _copy(url, range(1, FEW))
        few = _median_seconds(port, path, runs=FEW, times=FEW_TIMES)
        _copy(url, range(FEW, MANY))
        return few, _median_seconds(port, path, runs=MANY, times=1)


def _copy(url: str, numbers: range) -> None:
    """Store the first run anew under each number, received so many seconds later, without its document."""
    with closing(Database(url)) as database:
        with database.read() as transaction:
            runs = select(benchmark_runs).order_by(benchmark_runs.c.received_at).limit(1)
            first = transaction.execute(runs).one()._asdict()
        for begin in range(numbers.start, numbers.stop, AT_ONCE):
            copies = [
                first
                | {
                    "id": uuid4(),
                    "sha256": f"{number:064x}",
                    "received_at": first["received_at"] + timedelta(seconds=number),
                }
                for number in range(begin, min(begin + AT_ONCE, numbers.stop))
            ]
            with database.begin() as transaction:
                transaction.execute(insert(benchmark_runs), copies)


def _median_seconds(port: int, scenario: str, *, runs: int, times: int) -> float:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        report = _ask(port, "GET", f"{scenario}/gap-report")
        found.append(time.perf_counter() - started)
        assert [storage["runs"] for storage in report["storages"]] == [runs]
    return median(found)


def _ask(port: int, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=600)) as connection:
        connection.request(method, path, body)
        answer = connection.getresponse()
        said = answer.read()
    assert answer.status in (200, 201), said[:500]
    read: dict[str, Any] = json.loads(said)
    return read
