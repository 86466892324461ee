"""An archive of a workspace: the same on either database, whole or refused, and no way round the rules of uploads."""

import base64
import hashlib
import io
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from service.parsers.measurement import DcpOp, DcpOperation
from service.sizing.spec import ScenarioSpec
from service.store import (
    archive,
    audit,
    benchmark_runs,
    documents,
    keys,
    scenarios,
    tables,
    workspaces,
)
from service.store.archive import UnusableArchive
from service.store.caller import DEFAULT_WORKSPACE, AccessScope, Caller
from service.store.database import Database
from tests.store.conftest import SPEC, MakeRun

Line = dict[str, Any]
DOCUMENTS = (b"IOR-4.0.0\r\n\x00\xff\xfe", b"zwei \xf0\x9f\x8c\x99 " * 300_000, b"drei")


def exported(database: Database, workspace: str = "default") -> bytes:
    sink = io.BytesIO()
    with database.read() as transaction:
        found = workspaces.find(transaction, name=workspace)
        archive.write(transaction, sink, workspace_id=found.id, workspace=found.name)
    return sink.getvalue()


def imported(database: Database, text: bytes, workspace_id: UUID = DEFAULT_WORKSPACE) -> archive.Counts:
    with database.begin() as transaction:
        _, lines = archive.workspace_named_in(io.BytesIO(text))
        return archive.read(transaction, lines, workspace_id=workspace_id)


def rows(database: Database) -> dict[str, int]:
    with database.read() as transaction:
        return {
            table.name: transaction.scalar(select(func.count()).select_from(table)) or 0
            for table in tables.metadata.sorted_tables
        }


@pytest.fixture
def filled(
    database: Database, spec: ScenarioSpec, noon: datetime, make_run: MakeRun
) -> tuple[Database, list[UUID]]:
    """Give a database with one of everything that a workspace can have, and the ids of its runs."""
    ids = []
    with database.begin() as transaction:
        for name, microseconds in (("Größe 🌙", 1), ("b", 0)):
            made = scenarios.create(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=uuid4(),
                at=noon + timedelta(microseconds=microseconds),
                name=name,
                spec=spec,
            )
            for at, document in enumerate(DOCUMENTS):
                run = make_run(document, scenario_id=made.id, note="a\tb\u2028c", ran_at=noon if at else None)
                benchmark_runs.create(
                    transaction,
                    workspace_id=DEFAULT_WORKSPACE,
                    run=run,
                    document=documents.pack(document),
                )
                ids.append(run.id)
        operation = DcpOperation(
            op=DcpOp.SAVE, status="ok", world_size=2, nodes=1, ranks_reporting=2, partial_ranks=False
        )
        run = make_run(
            b"dcp", scenario_id=made.id, run_id="n-1", measurements=None, operations=[operation], doubts=[]
        )
        benchmark_runs.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, run=run, document=documents.pack(b"dcp")
        )
        scenarios.replace(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=made.id,
            at=noon + timedelta(days=1),
            name="renamed",
            spec=ScenarioSpec.model_validate({**SPEC, "restart": {"seconds": 0.1 + 0.2}}),
            if_revision=1,
        )
        old = make_run(b"old", scenario_id=made.id, received_at=noon - timedelta(days=99))
        benchmark_runs.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, run=old, document=documents.pack(b"old")
        )
        documents.remove_older(
            transaction,
            by=Caller(DEFAULT_WORKSPACE, "cli", frozenset()),
            new_id=uuid4,
            at=noon,
            received_before=noon - timedelta(days=9),
        )
        keys.create(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=uuid4(),
            at=noon,
            name="a key",
            scopes=[AccessScope.READ],
            secret=keys.Secret("0" * 64, b"salt"),
        )
    return database, [*ids, run.id, old.id]


@pytest.fixture
def elsewhere(other_database_url: str) -> Iterator[Database]:
    """Give an empty database of the other kind."""
    with closing(Database(other_database_url)) as opened:
        yield opened


def test_a_workspace_goes_to_the_other_kind_of_database_and_is_the_same_there_byte_for_byte(
    filled: tuple[Database, list[UUID]], elsewhere: Database
) -> None:
    database, ids = filled
    text = exported(database)
    counts = imported(elsewhere, text)
    assert (counts.scenarios, counts.revisions, counts.documents, counts.runs) == (2, 3, 4, 8)
    assert exported(elsewhere) == text == exported(database)
    with database.read() as here, elsewhere.read() as there:
        for id_ in ids:
            assert benchmark_runs.get(there, workspace_id=DEFAULT_WORKSPACE, id=id_) == benchmark_runs.get(
                here, workspace_id=DEFAULT_WORKSPACE, id=id_
            )
        for id_ in ids[:-1]:
            assert benchmark_runs.get_document(
                there, workspace_id=DEFAULT_WORKSPACE, id=id_
            ) == benchmark_runs.get_document(here, workspace_id=DEFAULT_WORKSPACE, id=id_)
        pages = [
            scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=9)
            for transaction in (here, there)
        ]
    assert pages[0] == pages[1]


def test_neither_keys_nor_the_audit_trail_nor_another_workspace_is_in_it(
    filled: tuple[Database, list[UUID]], noon: datetime, spec: ScenarioSpec
) -> None:
    database, _ = filled
    before = exported(database)
    with database.begin() as transaction:
        other = workspaces.create(transaction, id=uuid4(), at=noon, name="other").id
        scenarios.create(transaction, workspace_id=other, id=uuid4(), at=noon, name="secret", spec=spec)
        audit.record(
            transaction,
            by=Caller(DEFAULT_WORKSPACE, "somebody", frozenset()),
            id=uuid4(),
            at=noon,
            action=audit.AuditAction.CREATE,
            resource=audit.AuditedResource.SCENARIO,
            resource_id=uuid4(),
        )
    assert exported(database) == before
    assert not any(word in before for word in (b"a key", b"salt", b"somebody", b"secret"))


def test_an_empty_workspace_is_an_archive_too(database: Database) -> None:
    assert imported(database, exported(database)).runs == 0


def test_it_is_written_and_read_line_by_line(
    filled: tuple[Database, list[UUID]], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, _ = filled
    monkeypatch.setattr(archive, "PIECE_BYTES", 100)
    longest = max(len(line) for line in exported(database).splitlines() if line.startswith(b'{"piece"'))
    assert longest < 200


def test_writing_and_reading_hold_one_document_at_a_time(
    database: Database, elsewhere: Database, make_run: MakeRun, tmp_path: Path
) -> None:
    size, count = 1_000_000, 24
    for at in range(count):
        document = random.Random(at).randbytes(size)  # noqa: S311 - no secret
        run = make_run(document)
        with database.begin() as transaction:
            benchmark_runs.create(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                run=run,
                document=documents.pack(document),
            )
    file = tmp_path / "a.jsonl"
    tracemalloc.start()
    try:
        with database.read() as transaction, file.open("wb") as sink:
            archive.write(transaction, sink, workspace_id=DEFAULT_WORKSPACE, workspace="default")
        _, writing = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with file.open("rb") as source, elsewhere.begin() as transaction:
            _, lines = archive.workspace_named_in(source)
            archive.read(transaction, lines, workspace_id=DEFAULT_WORKSPACE)
        _, reading = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > count * size
    assert max(writing, reading) < 10 * size


# --- What is refused ------------------------------------------------------------------------------------------------


def lines_of(text: bytes) -> list[Line]:
    return [json.loads(line) for line in text.splitlines()]


def sealed(lines: list[Line]) -> bytes:
    """Return lines as an archive whose digest and counts are right."""
    body = b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for line in lines
        if "end" not in line
    )
    kinds = [next(iter(line)) for line in lines]
    counts = {f"{kind}s": kinds.count(kind) for kind in ("scenario", "revision", "document", "run")}
    return body + json.dumps({"end": {**counts, "sha256": hashlib.sha256(body).hexdigest()}}).encode() + b"\n"


def refused(database: Database, text: bytes, workspace_id: UUID = DEFAULT_WORKSPACE) -> str:
    """Return what is said of an archive that is refused, once nothing of it is found to be there."""
    before = rows(database)
    with pytest.raises(UnusableArchive) as caught:
        imported(database, text, workspace_id)
    assert rows(database) == before
    return str(caught.value)


def test_what_was_sealed_again_is_taken(filled: tuple[Database, list[UUID]], elsewhere: Database) -> None:
    text = exported(filled[0])
    assert imported(elsewhere, sealed(lines_of(text))).runs == 8


def test_a_file_that_is_cut_anywhere_is_refused(
    filled: tuple[Database, list[UUID]], elsewhere: Database
) -> None:
    text = exported(filled[0])
    ends = [0, 1, *(at + 1 for at, byte in enumerate(text) if byte == 10), len(text) - 1]
    for end in ends[:-2] + ends[-1:]:
        refused(elsewhere, text[:end])
    assert imported(elsewhere, text).runs == 8


def test_a_file_of_which_a_byte_was_altered_is_refused(
    filled: tuple[Database, list[UUID]], elsewhere: Database
) -> None:
    text = exported(filled[0])
    renamed = text.replace("Größe".encode(), "Grösse".encode(), 2)
    assert "altered or damaged" in refused(elsewhere, renamed)
    for at in range(5, len(text), max(1, len(text) // 60)):
        refused(elsewhere, text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
    refused(elsewhere, text + b"\n")
    refused(elsewhere, text + text.splitlines(keepends=True)[-1])


def test_a_file_of_a_later_format_is_refused_whatever_else_it_holds(database: Database) -> None:
    later = b'{"archive":{"format_version":2,"anything":[1]}}\n{"new":1}\n'
    assert "later version" in refused(database, later)


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b"IOR-4.0.0\n", b'{"end":{}}\n', b"\xff\n", b"[" * 100 + b"\n"]
)
def test_what_is_no_archive_is_refused(database: Database, text: bytes) -> None:
    refused(database, text)


def test_what_is_here_already_is_refused_whole(
    filled: tuple[Database, list[UUID]], elsewhere: Database, noon: datetime, spec: ScenarioSpec
) -> None:
    database, _ = filled
    text = exported(database)
    assert "There is a scenario" in refused(database, text)
    with database.begin() as transaction:
        other = workspaces.create(transaction, id=uuid4(), at=noon, name="other").id
    # Ids are taken across workspaces.
    assert "There is a scenario" in refused(database, text, other)
    with elsewhere.begin() as transaction:
        scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="renamed", spec=spec
        )
    assert "named 'renamed'" in refused(elsewhere, text)


def _at(lines: list[Line], kind: str, nth: int = 0) -> Line:
    found: Line = [line[kind] for line in lines if kind in line][nth]
    return found


def _set(kind: str, **values: object) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        _at(lines, kind).update(values)

    return change


def _drop(kind: str, nth: int = 0) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        lines.remove([line for line in lines if kind in line][nth])

    return change


def _repeat(kind: str) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        at = next(at for at, line in enumerate(lines) if kind in line)
        lines.insert(at, lines[at])

    return change


def _add_late(lines: list[Line]) -> None:
    """Put a scenario after the runs."""
    lines.insert(-1, lines[1])


def _rotate(lines: list[Line]) -> None:
    lines.insert(1, lines.pop(-2))


def _pack_a_bomb(lines: list[Line]) -> None:
    document = _at(lines, "document")
    body = documents.pack(bytes(20_000_000)).body
    at = next(at for at, line in enumerate(lines) if "document" in line)
    while "piece" in lines[at + 1]:
        del lines[at + 1]
    lines.insert(at + 1, {"piece": base64.b64encode(body).decode()})
    document["stored_bytes"] = len(body)


def _record(change: Callable[[Line], None]) -> Callable[[list[Line]], None]:
    def within(lines: list[Line]) -> None:
        run = _at(lines, "run", 1)
        record = json.loads(run["record"])
        change(record)
        run["record"] = json.dumps(record)

    return within


def _add_run_of_nobody(lines: list[Line]) -> None:
    _at(lines, "run")["scenario_id"] = str(UUID(int=5))


HOSTILE: dict[str, tuple[Callable[[list[Line]], None], str]] = {
    "an unknown field": (_set("scenario", extra=1), "extra"),
    "a name with NUL": (_set("scenario", name="a\x00"), "control characters"),
    "a name too long": (_set("scenario", name="a" * 201), "200"),
    "an id that is none": (_set("scenario", id="1"), "id"),
    "a moment without zone": (_set("scenario", created_at="2026-01-01T00:00:00"), "time zone"),
    "a revision missing": (_drop("revision"), "next revision"),
    "a revision twice": (_repeat("revision"), "next revision"),
    "a revision of another": (_set("revision", scenario_id=str(UUID(int=7))), "next revision"),
    "a scenario of other words": (_set("scenario", name="x"), "not what the scenario says"),
    "a scenario twice": (_repeat("scenario"), "not what the scenario says"),
    "a spec that is no JSON": (_set("revision", spec="{"), "spec"),
    "a spec that is no object": (_set("revision", spec="[]"), "no object"),
    "a spec with NaN": (_set("revision", spec='{"model": NaN}'), "spec"),
    "a deep spec": (_set("revision", spec='{"a":' * 100 + "1" + "}" * 100), "spec"),
    "a spec with a NUL": (_set("revision", spec="\x00"), "NUL"),
    "a document of no run": (lambda lines: _drop_runs_of_a_document(lines), "of no run"),
    "a document missing": (lambda lines: _drop_a_document(lines), "clash"),
    "a bomb": (_pack_a_bomb, "more than it says"),
    "a document of another size": (_set("document", original_bytes=3), "more than it says"),
    "a document of another digest": (_set("document", sha256="0" * 64), "something else"),
    "a document too large": (_set("document", original_bytes=2**40), "original_bytes"),
    "pieces that are too few": (_set("document", stored_bytes=10**6), "piece"),
    "a piece that is not base64": (lambda lines: lines[_piece(lines)].update(piece="*"), "base64"),
    "an empty piece": (lambda lines: lines[_piece(lines)].update(piece=""), "a piece has"),
    "a scenario after the runs": (_add_late, "does not belong here"),
    "a run before its scenario": (_rotate, "not in the archive"),
    "a run twice": (_repeat("run"), "clash"),
    "a run of a scenario that is elsewhere": (_add_run_of_nobody, "not in the archive"),
    "a run of a later revision": (_set("run", scenario_revision=9), "clash"),
    "a run without a document": (lambda lines: _at(lines, "run", 2).pop("body_sha256"), "has a document"),
    "a record that breaks out": (_set("run", record='{"doubts":[],"conditions":["idle"]}'), "twice"),
    "conditions that break out": (_set("run", conditions='[],"doubts":[]'), "not as it should be"),
    "a condition that is none": (_set("run", conditions='["hot"]'), "not as it should be"),
    "a record with infinity": (
        _set("run", record='{"doubts":[],"measurements":[{"nodes":1e999}]}'),
        "too large",
    ),
    "a record of other types": (_record(lambda record: record.update(measurements=3)), "valid array"),
    "a doubt about nothing": (
        _record(lambda record: record["doubts"][0].update(measurement=99)),
        "not there",
    ),
    "a negative size": (_set("run", document_bytes=-1), "document_bytes"),
    "a line of two things": (lambda lines: lines[2].update(other=1), "one field"),
}


def _piece(lines: list[Line]) -> int:
    return next(at for at, line in enumerate(lines) if "piece" in line)


def _drop_runs_of_a_document(lines: list[Line]) -> None:
    sha256 = _at(lines, "document")["sha256"]
    lines[:] = [line for line in lines if line.get("run", {}).get("body_sha256") != sha256]


def _drop_a_document(lines: list[Line]) -> None:
    at = next(at for at, line in enumerate(lines) if "document" in line)
    del lines[at]
    while "piece" in lines[at]:
        del lines[at]


@pytest.mark.parametrize(("change", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_file_whose_digest_is_right_and_whose_lines_are_not_is_refused(
    filled: tuple[Database, list[UUID]],
    elsewhere: Database,
    change: Callable[[list[Line]], None],
    said: str,
) -> None:
    lines = lines_of(exported(filled[0]))
    change(lines)
    assert said in refused(elsewhere, sealed(lines))


def test_a_run_cannot_be_brought_into_the_scenario_of_another_workspace(
    filled: tuple[Database, list[UUID]], noon: datetime
) -> None:
    database, _ = filled
    lines = lines_of(exported(database))
    with database.begin() as transaction:
        other = workspaces.create(transaction, id=uuid4(), at=noon, name="other").id
    theirs = [line for line in lines if "scenario" not in line and "revision" not in line]
    for line in theirs:
        if "run" in line:
            line["run"]["id"] = str(uuid4())
    assert "not in the archive" in refused(database, sealed(theirs), other)


def test_a_spec_that_this_version_refuses_and_can_show_is_taken(
    filled: tuple[Database, list[UUID]], elsewhere: Database
) -> None:
    lines = lines_of(exported(filled[0]))
    spec = json.dumps({**SPEC, "restart": {"seconds": -5}, "later": {"field": 1}})
    _at(lines, "revision").update(spec=spec)
    id_ = UUID(_at(lines, "scenario")["id"])
    text = sealed(lines)
    imported(elsewhere, text)
    with elsewhere.read() as transaction:
        read = scenarios.get_revision(transaction, workspace_id=DEFAULT_WORKSPACE, id=id_, revision=1)
    assert read.spec.restart.seconds == -5
    assert lines_of(exported(elsewhere)) == lines_of(text)


def test_a_document_larger_than_the_service_takes_is_refused(
    filled: tuple[Database, list[UUID]], elsewhere: Database
) -> None:
    text = exported(filled[0])
    _, lines = archive.workspace_named_in(io.BytesIO(text))
    with elsewhere.begin() as transaction, pytest.raises(UnusableArchive, match="MAX_DOCUMENT_BYTES"):
        archive.read(transaction, lines, workspace_id=DEFAULT_WORKSPACE, max_document_bytes=1000)


def test_a_line_without_end_is_read_no_further_than_a_bound(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_LINE_BYTES", 1000)
    asked: list[int] = []

    class Endless(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return b"x" * (size or 0)

    with pytest.raises(UnusableArchive, match="no archive"):
        archive.workspace_named_in(Endless())
    assert asked == [1001]
