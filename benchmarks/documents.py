"""Megabytes a second that the parsers read, on large documents made from the examples' real ones."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from service import parsers

EXAMPLES = Path(__file__).parent.parent / "examples"


def ior_text() -> bytes:
    """Return the IOR example as often as it makes about a megabyte: a log of many runs."""
    return (EXAMPLES / "ior-write-read.txt").read_bytes() * 400


def dcp_timing() -> bytes:
    """Return the dcp-timing example with its save and its load repeated to about a megabyte."""
    document = json.loads((EXAMPLES / "dcp-timing.json").read_bytes())
    document["operations"] = [
        {**each, "step": each["step"] + 1000 * turn} for turn in range(350) for each in document["operations"]
    ]
    return json.dumps(document).encode()


MADE: dict[str, Callable[[], bytes]] = {"ior-text": ior_text, "dcp-timing": dcp_timing}


def megabytes_per_second(*, rounds: int) -> dict[str, tuple[int, float]]:
    """Return the size of each document, and how fast it is recognised and read. [B, MB/s]"""
    found = {}
    for name, make in MADE.items():
        body, took = make(), []
        for _ in range(rounds):
            started = time.process_time()
            record = parsers.parse(body)
            took.append(time.process_time() - started)
            assert record.format == name
        found[name] = (len(body), len(body) / 1e6 / median(took))
    return found
