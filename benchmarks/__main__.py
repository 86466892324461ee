"""`make benchmark`: measures, prints, and writes benchmarks/README.md."""

import os
import platform
from pathlib import Path
from statistics import median

from benchmarks import documents, engine, http, imports

ROUNDS = 15
SECONDS = 1.0
CONNECTIONS = 8

PAGE = """\
# What it costs

Written by `make benchmark` on {machine}.
Absolute figures are that machine's. Ratios are taken within one run, round by round, and their median is shown; they
move by a few hundredths from run to run.

## A sizing, without HTTP

Processor time.

| scenario | sizing | with its explanation |
|---|---|---|
{engine}

## `POST /v1/sizings`

Over {connections} kept-alive connections, each server under one uvicorn process (uvloop, httptools, no access log).
Servers and client have a processor each where there are two. In each of {rounds} rounds every server had
{seconds:g} s of work, one after the other, in an order that turns.

| server | requests a second | the service reaches |
|---|---|---|
| the service | {service:,.0f} | |
| a bare FastAPI endpoint: same models, canned answer, none of our rules | {plain:,.0f} | {to_plain:.0%} of it |
| the service itself, but with a canned answer | {canned:,.0f} | {to_canned:.0%} of it |

The first ratio says what the service costs beside the framework under it, the second what the computation costs
inside it.

## Starting

Importing `service.app` takes {import_ours:.2f} s; importing only the libraries that it imports takes
{import_theirs:.2f} s. The ratio is {import_ratio:.2f}. Fresh processes, interleaved, medians of {import_rounds} rounds.

## Reading documents

Processor time, of recognising and reading.

| format | document | read at |
|---|---|---|
{documents}
"""


def page() -> str:
    """Measure everything, and return the page."""
    sizings = engine.microseconds(rounds=9, calls=400)
    rates = http.rates(rounds=ROUNDS, seconds=SECONDS, connections=CONNECTIONS)
    import_rounds = 9
    import_ours, import_theirs, import_ratio = imports.seconds(rounds=import_rounds)
    read = documents.megabytes_per_second(rounds=5)
    return PAGE.format(
        machine=machine(),
        engine="\n".join(
            f"| {name} | {bare:.0f} µs | {explained:.0f} µs |" for name, (bare, explained) in sizings.items()
        ),
        connections=CONNECTIONS,
        rounds=ROUNDS,
        seconds=SECONDS,
        **{name: median(found) for name, found in rates.items()},
        to_plain=_ratio(rates["service"], rates["plain"]),
        to_canned=_ratio(rates["service"], rates["canned"]),
        import_ours=import_ours,
        import_theirs=import_theirs,
        import_ratio=import_ratio,
        import_rounds=import_rounds,
        documents="\n".join(
            f"| {name} | {size / 1e6:.1f} MB | {rate:.1f} MB/s |" for name, (size, rate) in read.items()
        ),
    )


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def machine() -> str:
    """Return what the figures were taken on, in general words."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{processors} processors ({platform.machine()}), {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


if __name__ == "__main__":
    text = page()
    Path(__file__).with_name("README.md").write_text(text, "utf-8")
    print(text)
