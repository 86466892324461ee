"""Requests per second of `POST /v1/sizings`, beside endpoints that compute nothing. Interleaved, in several rounds."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

NAMES = ("service", "canned", "plain")


def rates(*, rounds: int, seconds: float, connections: int) -> dict[str, list[float]]:
    """Return the requests per second of each application, round by round.

    All servers stay up; one at a time has work, in an order that turns from round to round. Where the
    machine has two processors or more, servers and client have one each.
    """
    with ExitStack() as stack:
        ports = {name: stack.enter_context(serving(name)) for name in NAMES}
        found: dict[str, list[float]] = {name: [] for name in NAMES}
        for turn in range(rounds):
            order = NAMES[turn % len(NAMES) :] + NAMES[: turn % len(NAMES)]
            for name in order:
                found[name].append(_load(ports[name], seconds, connections))
    return found


@contextmanager
def serving(name: str, *, pinned: bool = True) -> Iterator[int]:
    """Give the port of an application of `benchmarks.servers`, and end it."""
    command = [*(_pinned(0) if pinned else []), sys.executable, "-m", "benchmarks.servers", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _load(port: int, seconds: float, connections: int) -> float:
    command = [
        sys.executable,
        "-m",
        "benchmarks.load",
        "size",
        "-",
        str(seconds),
        str(connections),
        str(port),
    ]
    done = subprocess.run([*_pinned(1), *command], check=True, capture_output=True, text=True)
    rate: float = json.loads(done.stdout)[0]
    return rate


def _pinned(which: int) -> list[str]:
    """Return the words before a command that give it a processor of its own, where that is possible."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    processors = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(processors[which])] if len(processors) > 1 else []
