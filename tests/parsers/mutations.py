"""Real files, changed at random, and what must be true of anything that is read from one."""

import codecs
import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import FrameType
from typing import Any

from service.errors import UnreadableDocument
from service.parsers.measurement import DcpOperation, Measurement, Record, Spread
from service.parsers.register import parse
from tests.parsers.manifest import DATA

FILES = {
    path.name: path.read_bytes()
    for folder in (DATA, DATA.parent / "dcp", DATA.parent / "dcp" / "bad", DATA.parent / "dcp" / "foreign")
    for path in sorted(folder.iterdir())
    if path.is_file() and path.name != "MANIFEST.json" and path.stat().st_size
}
"""Every labelled file of every format, and those that are refused."""

SECRET = "s3cret-of-the-job"  # noqa: S105 - stands for one
_DUMP = (
    f"STARTING ENVIRON LOOP\nAWS_SECRET_ACCESS_KEY={SECRET}\nPROMPT=TestID : {SECRET}\nENDING ENVIRON LOOP\n"
)
_LINES = (
    "WARNING: Using actual aggregate bytes moved = 1048576", "ior WARNING: fsync() not available. Using value of 0.",
    "ERROR: cannot open file", "WARNING: Incorrect data on read (3 errors found).", "Options: ", "Results: ",
    "Summary of all tests:", "Finished : now", "TestID : 1", "Test 0: Iter=0, Task=1, Time=12.5, write open start",
    "read      1032.68    258.19", "[RESULT] ior-easy-write 0.1 GiB/s : time 0.8 seconds", "IO500 version io500",
    "4 tasks, 800 files", "SUMMARY rate: (of 2 iterations)", "File creation 1.000 1.000 1.000 0.000", "{", "}", "]",
    "IOR-4.0.0: MPI Coordinated Test of Parallel I/O", "mdtest-4.0.0 was launched with 4 total task(s) on 1 node(s)",
    "write,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1,9", "\u00b2 \u0664\u0662", ",", "-- finished at noon --", "NaN",
)  # fmt: skip

Mutation = Callable[[bytes, random.Random], bytes]


def _cut(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.sample(range(len(data) + 1), 2))
    return (
        data[start:end]
        if rng.random() < 0.3
        else data[:start] + data[end:]
        if rng.random() < 0.5
        else data[:end]
    )


def _flip(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        made[rng.randrange(len(made))] = (
            rng.choice(b'09.-+e",{}[]:\n\r\x00\x1b\xff\\nA ') if rng.random() < 0.8 else rng.randrange(256)
        )
    return bytes(made)


def _digits(data: bytes, rng: random.Random) -> bytes:
    at = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    made = bytearray(data)
    for place in rng.sample(at, min(len(at), rng.randint(1, 3))):
        made[place] = rng.choice(b"0123456789")
    return bytes(made)


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = sorted(rng.randrange(len(lines)) for _ in range(2))
    match rng.randrange(5):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            lines.insert(other, lines[one])
        case 2:
            lines[other:other] = lines[one:other]
        case 3:
            del lines[one]
        case _:
            piece = lines[one:other]
            rng.shuffle(piece)
            lines[one:other] = piece
    return b"\n".join(lines)


def _insert(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(_LINES).encode())
    return b"\n".join(lines)


def _columns(data: bytes, rng: random.Random) -> bytes:
    """Swap two cells of a line, or of all lines."""
    lines = data.split(b"\n")
    sign = b"," if rng.random() < 0.4 else None
    one, other = rng.randrange(12), rng.randrange(12)
    for at in range(len(lines)) if rng.random() < 0.3 else [rng.randrange(len(lines))]:
        cells = lines[at].split(sign)
        if max(one, other) < len(cells):
            cells[one], cells[other] = cells[other], cells[one]
            lines[at] = (sign or b" ").join(cells)
    return b"\n".join(lines)


def _splice(data: bytes, rng: random.Random) -> bytes:
    other = rng.choice(list(FILES.values()))
    if rng.random() < 0.3:
        return data + other
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _prefix(data: bytes, rng: random.Random) -> bytes:
    before = rng.choice((b"[1,0]<stdout>:", b"0: ", b"[3] ", b"node01: ", b"2026-11-29 10:00:00 ", b"  "))
    return b"\n".join((before if rng.random() < 0.98 else b"") + line for line in data.split(b"\n"))


def _encoding(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("latin-1")
    match rng.randrange(6):
        case 0:
            return codecs.BOM_UTF8 + data
        case 1:
            return text.encode("utf-16")
        case 2:
            return text.encode("utf-32")
        case 3:
            return text.encode("utf-16")[: rng.randrange(2 * len(text))] or b"x"
        case 4:
            return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\r\r\n")))
        case _:
            return text.replace(" ", "\u00a0", rng.randrange(20)).encode("latin-1")


def _dump(data: bytes, rng: random.Random) -> bytes:
    """Put an environment dump between two lines, at times killed within it, at times without its start."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines) + 1)
    dump = _DUMP.encode()
    match rng.randrange(3):
        case 0:
            return b"\n".join([*lines[:at], dump + b"\n".join(lines[at:])])
        case 1:
            return b"\n".join([*lines[:at], dump[: rng.randrange(23, len(dump))]])
        case _:
            return _prefix(b"\n".join([*lines[:at], dump + b"\n".join(lines[at:])]), random.Random(1))  # noqa: S311


MUTATIONS: tuple[Mutation, ...] = (
    _cut, _flip, _digits, _lines, _insert, _columns, _splice, _prefix, _encoding, _dump, _digits, _lines,
)  # fmt: skip


def mutated(name: str, turn: int, rng: random.Random) -> bytes:
    """Return a file changed in one way or two; the turn decides which ways have theirs."""
    data = FILES[name]
    for more in range(rng.choice((1, 1, 2))):
        if data:
            data = MUTATIONS[(turn + more) % len(MUTATIONS)](data, rng)
    return data


# What must be true

WORK = 6_000
WORK_BY_BYTE = 3
"""Calls of functions, Python's and C's, that reading a document may take: so many, and so many for each byte."""


def examine(data: bytes) -> Record | UnreadableDocument:
    """Return what a document is read as, or its refusal.

    Raises:
        AssertionError: It took more work than its size allows, or what came of it cannot be.
    """
    made, calls = _counted(data)
    assert calls <= WORK + WORK_BY_BYTE * len(data), f"{calls} calls for {len(data)} bytes"
    if isinstance(made, UnreadableDocument):
        _check_message(made.detail)
        assert made.line is None or made.line >= 1
    else:
        check(made)
    return made


def _counted(data: bytes) -> tuple[Record | UnreadableDocument, int]:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return parse(data), calls
    except UnreadableDocument as error:
        return error, calls
    finally:
        sys.setprofile(before)


def check(record: Record) -> None:
    """Raise AssertionError for a record that no document can have made."""
    written = record.model_dump_json()
    assert SECRET not in written
    value = json.loads(written, parse_constant=_refuse)
    for number in _numbers(value):
        assert math.isfinite(number)
    parts: list[Measurement] | list[DcpOperation] = record.measurements or record.operations or []
    assert parts
    for part in parts:
        if isinstance(part, Measurement):
            _check_measurement(part)
        else:
            _check_operation(part)
    for doubt in record.doubts:
        _check_message(doubt.message)
        assert doubt.measurement is None or 0 <= doubt.measurement < len(parts)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} in an answer")


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _check_measurement(measurement: Measurement) -> None:
    for name in ("ranks", "nodes", "ranks_per_node", "block_bytes", "transfer_bytes", "segments"):
        assert (getattr(measurement, name) or 1) > 0, name
    for rate in (measurement.gb_per_second, measurement.per_second, measurement.total_seconds):
        if rate is not None:
            _check_spread(rate)
    assert measurement.repetitions or (measurement.gb_per_second or measurement.per_second)
    requested = measurement.repetitions_requested
    assert requested is None or len(measurement.repetitions) <= requested
    for repetition in measurement.repetitions[:1000]:
        for name, figure in asdict(repetition).items():
            assert figure is None or figure > 0 or name == "slowest_rank", name
    if measurement.ranks_per_node is not None:
        assert measurement.nodes is not None
        assert measurement.ranks_per_node * measurement.nodes == measurement.ranks


def _check_spread(spread: Spread) -> None:
    known = [each for each in (spread.min, spread.median, spread.max) if each is not None]
    assert spread.mean > 0
    assert all(each > 0 for each in known)
    assert known == sorted(known)
    if spread.min is not None and spread.max is not None:
        assert spread.min <= spread.mean * (1 + 1e-9)
        assert spread.mean <= spread.max * (1 + 1e-9)


def _check_operation(operation: DcpOperation) -> None:
    figures: dict[str, Any] = operation.model_dump(
        exclude={"op", "status", "error", "checkpoint", "skew_basis"}
    )
    for name, figure in figures.items():
        assert figure is None or figure >= 0, name
        assert figure is None or "gb_per_second" not in name or figure > 0, name
    assert operation.ranks_reporting <= operation.world_size


def _check_message(message: str) -> None:
    assert message
    assert message.isprintable(), message
    assert SECRET not in message
    assert len(message) < 800
