"""From trainers' files to one dcp-timing document: the register of their readers, and what they do not say.

To add a format, write one module with `read(files, stated)` and give it one line in `READERS`.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from service.errors import UnreadableDocument
from service.parsers import (
    dcp_timing,
    dlio_stats,
    document,
    megatron_log,
    nemo_log,
    s3torchbenchmarking,
    torch_dcp_log,
    torchtitan_log,
)
from service.parsers.trainer_logs import (
    ASYNC_SAVE,
    LOAD,
    SAVE,
    Json,
    LogFile,
    Reading,
    Stated,
    Unconvertible,
    rfc_3339,
    zoned,
)

READERS: dict[str, Callable[[Sequence[LogFile], Stated], Reading]] = {
    "torch-dcp-log": torch_dcp_log.read,
    "dlio": dlio_stats.read,
    "nemo": nemo_log.read,
    "torchtitan": torchtitan_log.read,
    "megatron": megatron_log.read,
    "s3torchbenchmarking": s3torchbenchmarking.read,
}

UNKNOWN_VERSION = "unknown"


class FactsMissing(Unconvertible):
    """The files do not say all that a document needs.

    Args:
        missing: By the name of the option that states it, what it is and why it is needed.
    """

    def __init__(self, missing: dict[str, str]) -> None:
        listed = "".join(f"\n  {option:<16} {what}" for option, what in missing.items())
        super().__init__(f"The files do not say all of it; state what is missing:{listed}")
        self.missing = missing


def log_file(name: str, data: bytes) -> LogFile:
    """Return a file as its readers take it.

    Raises:
        Unconvertible: It is empty, or no text.
    """
    try:
        return LogFile(name, document.read(data).text)
    except UnreadableDocument as error:
        raise Unconvertible(f"{name}: {error.detail}") from None


def convert(
    kind: str, files: Sequence[LogFile], stated: Stated, *, recorded_at: datetime | None, now: datetime
) -> tuple[str, list[str]]:
    """Return a dcp-timing document as JSON, and what the user should know of how it came about.

    The same files and statements give the same text, unless the files hold no time and none is stated.

    Args:
        kind: A name of `READERS`.
        files: All files of one run.
        stated: What the user says.
        recorded_at: When the document is to say that it was made; by default the latest time in the files.
        now: In place of that, where they hold none.

    Raises:
        FactsMissing: What else has to be stated, all of it.
        Unconvertible: The files cannot be read, contradict what was stated, or tell what cannot be.
    """
    reading = READERS[kind](files, stated)
    notes = list(reading.notes)
    world_size = _agreed("--world-size", stated.world_size, reading.world_size)
    nodes = _agreed("--nodes", stated.nodes, reading.nodes)
    if nodes is None and world_size == 1:
        nodes = 1
    _check_mode(stated, reading)
    missing = _missing(stated, reading, world_size=world_size, nodes=nodes)
    if missing:
        raise FactsMissing(missing)
    assert world_size is not None  # noqa: S101 - else it would be missing
    if reading.assumed_mode is not None:
        notes.append(f"Note: {reading.assumed_mode}; state --mode async_save if that is wrong.")
    made_at = recorded_at or reading.last_at or now
    if made_at.tzinfo is None:
        if stated.zone is None:
            notes.append(
                "Note: the times in the files have no zone. recorded_at takes them as UTC, and the operations have "
                "no times of day; state --time-zone to have both right."
            )
        made_at = zoned(made_at, stated.zone or UTC) or made_at
    version = stated.checkpointer_version or reading.software.get("checkpointer_version", UNKNOWN_VERSION)
    made: Json = {
        "format": "dcp-timing",
        "format_version": 1,
        "run_id": stated.run_id,
        "recorded_at": rfc_3339(made_at),
    }
    if stated.label is not None:
        made["label"] = stated.label
    made |= {
        "software": {
            "checkpointer": reading.checkpointer, **reading.software, "checkpointer_version": version,
        },
        "world_size": world_size,
        "nodes": nodes,
        "storage": {
            "label": stated.storage_label, **({"kind": stated.storage_kind} if stated.storage_kind else {}),
        },
        "operations": [_finished(operation, stated, world_size) for operation in reading.operations],
    }  # fmt: skip
    text = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        dcp_timing.parse(document.read(text.encode()))
    except UnreadableDocument as error:
        raise Unconvertible(
            f"What the files tell makes no valid document: {error.pointer or '#'}: {error.detail}"
        ) from None
    return text, notes


def _agreed(option: str, stated: int | None, read: int | None) -> int | None:
    if stated is not None and read is not None and stated != read:
        raise Unconvertible(f"{option} {stated} contradicts the files, which say {read}; leave it out.")
    return read if stated is None else stated


def _check_mode(stated: Stated, reading: Reading) -> None:
    saves = {operation["op"] for operation in reading.operations} - {LOAD}
    if stated.mode is not None and saves and stated.mode not in saves:
        raise Unconvertible(
            f"--mode {stated.mode} contradicts the files, which say that they are of {saves.pop()}; leave it out."
        )


def _missing(
    stated: Stated, reading: Reading, *, world_size: int | None, nodes: int | None
) -> dict[str, str]:
    missing = {}
    if stated.run_id is None:
        missing["--run-id"] = "a name for this run; the same document again is the same run"
    if nodes is None:
        missing["--nodes"] = "how many nodes took part"
    if world_size is None:
        missing["--world-size"] = "how many ranks took part"
    if stated.storage_label is None:
        missing["--storage-label"] = "which storage was measured"
    if reading.unknown_mode is not None:
        missing["--mode"] = f"{SAVE} or {ASYNC_SAVE}: {reading.unknown_mode}"
    elif reading.assumed_mode is not None and stated.checkpoint_bytes is not None:
        missing["--mode"] = (
            f"{SAVE} or {ASYNC_SAVE}: {reading.assumed_mode}, and a rate must not rest on that"
        )
    return missing


def _finished(operation: Json, stated: Stated, world_size: int) -> Json:
    """Return an operation with what the user stated of it, its fields in the order of the format's page."""
    made = dict(operation)
    if made["op"] == LOAD and stated.saved_world_size is not None:
        made["saved_world_size"] = stated.saved_world_size
        if stated.saved_world_size != world_size:
            made["op"] = "resharded_load"
    if stated.checkpoint_bytes is not None and "error" not in made:
        if made.get("checkpoint_bytes", made.get("bytes_total")) is not None:
            raise Unconvertible("--checkpoint-bytes: the files say the bytes themselves; leave it out.")
        made["checkpoint_bytes"] = stated.checkpoint_bytes
        if made["op"] in (SAVE, ASYNC_SAVE):
            made["bytes_total"] = stated.checkpoint_bytes
    if "summary" in made:
        made["summary"] = {"ranks_reporting": world_size, **made["summary"]}
    last = {name: made.pop(name) for name in ("settings", "ranks", "summary") if name in made}
    return made | last
