"""`make benchmark`: measures, prints, and writes benchmarks/README.md.

`python -m benchmarks databases` measures the part with a database alone, and leaves the others as they are.
"""

import os
import platform
import sys
from pathlib import Path
from statistics import median

from benchmarks import databases, documents, engine, http, imports

ROUNDS = 15
SECONDS = 1.0
CONNECTIONS = 8

PAGE = """\
# What it costs

Written by `make benchmark` on {machine}.
Absolute figures are that machine's. Ratios are taken within one run, round by round, and their median is shown; they
move by a few hundredths from run to run, and are not the ratio of the medians shown beside them.

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

Documents made from real outputs, each read in a process of its own: megabytes (10^6 bytes) a second of processor time,
recognising included, and how many times the document's size the process grew by at most. Beside it, what the
language alone makes of the same bytes: `json.loads` for JSON, `splitlines` for text. *Growth* is the time of the
largest over that of the middle one, for as much of each: 1 where cost is linear. There are {most_runs} runs at most,
each of them longer in a larger document: of repetitions, iterations or the lines that tools print between.

| format, of many | MB | read at | memory | beside the language | its memory | growth |
|---|---|---|---|---|---|---|
{documents}

{databases}"""


def page() -> str:
    """Measure everything, and return the page."""
    sizings = engine.microseconds(rounds=9, calls=400)
    rates = http.rates(rounds=ROUNDS, seconds=SECONDS, connections=CONNECTIONS)
    import_rounds = 9
    import_ours, import_theirs, import_ratio = imports.seconds(rounds=import_rounds)
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
        most_runs=documents.MOST_RUNS,
        documents="\n".join(_rows(made, found) for made, found in documents.measurements()),
        databases=databases.section(),
    )


def _rows(made: documents.Made, found: list[tuple[documents.Taken, documents.Taken]]) -> str:
    """Return the rows of one kind of document, by size."""
    rows = []
    for at, (ours, plain) in enumerate(found):
        growth = f"{found[-2][0].rate / ours.rate:.2f}" if at == len(found) - 1 else ""
        rows.append(
            f"| {f'{made.format}, {made.of}' if at == 0 else ''} | {ours.size / documents.MEGABYTE:.0f} "
            f"| {ours.rate:.1f} MB/s | {ours.peak / ours.size:.1f} times | {ours.rate / plain.rate:.1%} of its speed "
            f"| {plain.peak / plain.size:.1f} times | {growth} |"
        )
    return "\n".join(rows)


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
    written = Path(__file__).with_name("README.md")
    if sys.argv[1:] == ["databases"]:
        # The last part of the page.
        kept = written.read_text("utf-8").partition(f"\n{databases.HEADING}\n")[0]
        text = f"{kept}\n{databases.section()}"
    else:
        text = page()
    written.write_text(text, "utf-8")
    print(text)
