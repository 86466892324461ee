"""The files that trainers and benchmarks left behind, as tests take them, with what is known of them."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.parsers import document
from service.parsers.conversion import convert, log_file
from service.parsers.measurement import Record
from service.parsers.register import parse
from service.parsers.trainer_logs import LogFile, Stated

Json = dict[str, Any]

DATA = Path(__file__).parents[1] / "data" / "dcp"
FOREIGN = DATA / "foreign"
FACTS: dict[str, Json] = {
    entry["file"].removeprefix("foreign/"): entry["facts"]
    for entry in json.loads((DATA / "MANIFEST.json").read_text())["files"]
    if entry["file"].startswith("foreign/")
}

NOW = datetime(2026, 12, 24, tzinfo=UTC)


def foreign(*names: str) -> list[LogFile]:
    """Return files of the folder of foreign files."""
    return [log_file(name, (FOREIGN / name).read_bytes()) for name in names]


def text_of(*lines: str, name: str = "train.log") -> LogFile:
    """Return a file that holds some lines."""
    return log_file(name, "\n".join(lines).encode())


def stated(**more: Any) -> Stated:  # noqa: ANN401 - whatever is to be stated
    """Return what has to be stated of any run, and more."""
    return Stated(**{"run_id": "run-1", "storage_label": "pfs-a", "nodes": 1, **more})


def converted(
    kind: str, files: Sequence[LogFile], said: Stated, *, recorded_at: datetime | None = None
) -> Json:
    """Return the document that is made of some files."""
    text, _ = convert(kind, files, said, recorded_at=recorded_at, now=NOW)
    made: Json = json.loads(text)
    return made


def notes_of(kind: str, files: Sequence[LogFile], said: Stated) -> list[str]:
    """Return what a user is told beside the document."""
    return convert(kind, files, said, recorded_at=None, now=NOW)[1]


def record(made: Json) -> Record:
    """Return what the service reads from a document."""
    return parse(document.read(json.dumps(made).encode()).text.encode())


def column(made: Json, name: str) -> Iterable[list[float]]:
    """Return one time of each rank, operation by operation."""
    return [[rank[name] for rank in operation["ranks"]] for operation in made["operations"]]
