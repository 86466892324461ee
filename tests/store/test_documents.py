"""Documents: compressed, each once in a workspace, and gone, bytes and all, with the last run that had them."""

import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from service.errors import DocumentRemoved, NotFound
from service.parsers.run import BenchmarkRun
from service.sizing.spec import ScenarioSpec
from service.store import audit, benchmark_runs, documents, scenarios, tables, workspaces
from service.store.caller import DEFAULT_WORKSPACE, Caller
from service.store.database import Database
from service.store.documents import BrokenBody, PackedDocument
from service.store.scenarios import Scenario
from tests.store.conftest import MakeRun

DOCUMENT = b"IOR-4.0.0 wrote this, and wrote this, and wrote this. " * 200
INCOMPRESSIBLE = random.Random(1).randbytes(100_000)  # noqa: S311 - no secret
BY = Caller(DEFAULT_WORKSPACE, "cli", frozenset())

AnotherScenario = Callable[..., UUID]


@pytest.fixture
def another_scenario(database: Database, spec: ScenarioSpec, noon: datetime) -> AnotherScenario:
    """Return a maker of scenarios, in the default workspace unless told otherwise."""

    def make(name: str, workspace_id: UUID = DEFAULT_WORKSPACE) -> UUID:
        with database.begin() as transaction:
            return scenarios.create(
                transaction, workspace_id=workspace_id, id=uuid4(), at=noon, name=name, spec=spec
            ).id

    return make


@pytest.fixture
def other_workspace(database: Database, noon: datetime) -> UUID:
    with database.begin() as transaction:
        return workspaces.create(transaction, id=uuid4(), at=noon, name="other").id


def store(
    database: Database, run: BenchmarkRun, document: bytes, workspace_id: UUID = DEFAULT_WORKSPACE
) -> None:
    with database.begin() as transaction:
        _, is_new = benchmark_runs.create(
            transaction, workspace_id=workspace_id, run=run, document=documents.pack(document)
        )
    assert is_new


def delete(database: Database, run: BenchmarkRun, workspace_id: UUID = DEFAULT_WORKSPACE) -> None:
    with database.begin() as transaction:
        benchmark_runs.delete(transaction, workspace_id=workspace_id, id=run.id)


def body_of(database: Database, run: BenchmarkRun, workspace_id: UUID = DEFAULT_WORKSPACE) -> bytes:
    with database.read() as transaction:
        return benchmark_runs.get_document(transaction, workspace_id=workspace_id, id=run.id).body


def bodies(database: Database) -> int:
    with database.read() as transaction:
        return transaction.scalar(select(func.count()).select_from(tables.document_bodies)) or 0


def test_what_was_packed_is_unpacked_and_smaller_meanwhile() -> None:
    for document in (b"", b"a", DOCUMENT, INCOMPRESSIBLE):
        packed = documents.pack(document)
        documents.check(packed)
        assert documents.unpack(packed.body) == document
        assert packed.sha256 == hashlib.sha256(document).hexdigest()
        assert (packed.original_bytes, len(packed.body) < len(document) + 64) == (len(document), True)
    assert len(documents.pack(DOCUMENT).body) < len(DOCUMENT) / 20


def test_equal_documents_of_a_workspace_are_kept_once_and_stay_until_the_last_run_goes(
    database: Database, make_run: MakeRun, another_scenario: AnotherScenario
) -> None:
    runs = [make_run(DOCUMENT, scenario_id=another_scenario(name)) for name in "abc"]
    for run in runs:
        store(database, run, DOCUMENT)
    assert bodies(database) == 1
    for left in (2, 1, 0):
        delete(database, runs[left])
        assert bodies(database) == (1 if left else 0)
        for run in runs[:left]:
            assert body_of(database, run) == DOCUMENT


def test_a_scenario_that_is_deleted_takes_its_documents_along_and_no_others(
    database: Database, make_run: MakeRun, another_scenario: AnotherScenario
) -> None:
    a, b = another_scenario("a"), another_scenario("b")
    kept = make_run(b"both", scenario_id=b)
    store(database, kept, b"both")
    for document in (b"both", b"a alone"):
        store(database, make_run(document, scenario_id=a), document)
    assert bodies(database) == 2
    with database.begin() as transaction:
        scenarios.delete(transaction, workspace_id=DEFAULT_WORKSPACE, id=a, if_revision=None, with_runs=True)
    assert bodies(database) == 1
    assert body_of(database, kept) == b"both"


def test_equal_documents_of_two_workspaces_are_kept_apart_so_that_neither_can_tell(
    database: Database, make_run: MakeRun, another_scenario: AnotherScenario, other_workspace: UUID
) -> None:
    own = make_run(DOCUMENT, scenario_id=another_scenario("a"))
    store(database, own, DOCUMENT)
    with database.read() as transaction:
        alone = documents.usage(transaction, workspace_id=DEFAULT_WORKSPACE)
    foreign = make_run(DOCUMENT, scenario_id=another_scenario("a", other_workspace))
    store(database, foreign, DOCUMENT, other_workspace)
    assert bodies(database) == 2
    with database.read() as transaction:
        for workspace_id in (DEFAULT_WORKSPACE, other_workspace):
            assert documents.usage(transaction, workspace_id=workspace_id) == alone
    delete(database, own)
    assert body_of(database, foreign, other_workspace) == DOCUMENT
    with pytest.raises(NotFound):
        body_of(database, foreign)


def test_usage_counts_runs_and_what_their_documents_take(
    database: Database, make_run: MakeRun, another_scenario: AnotherScenario, other_workspace: UUID
) -> None:
    with database.read() as transaction:
        nothing = documents.usage(transaction, workspace_id=other_workspace)
    assert set(nothing.model_dump().values()) == {0}
    for name in "ab":
        store(database, make_run(DOCUMENT, scenario_id=another_scenario(name)), DOCUMENT)
    store(database, make_run(INCOMPRESSIBLE, scenario_id=another_scenario("c")), INCOMPRESSIBLE)
    with database.read() as transaction:
        used = documents.usage(transaction, workspace_id=DEFAULT_WORKSPACE)
        assert documents.usage(transaction, workspace_id=other_workspace) == nothing
    assert (used.scenarios, used.benchmark_runs, used.documents, used.distinct_documents) == (3, 3, 3, 2)
    assert used.received_bytes == 2 * len(DOCUMENT) + len(INCOMPRESSIBLE)
    assert used.original_bytes == len(DOCUMENT) + len(INCOMPRESSIBLE)
    assert used.stored_bytes == sum(
        len(documents.pack(document).body) for document in (DOCUMENT, INCOMPRESSIBLE)
    )


def test_uploads_and_deletions_of_the_same_bytes_at_once_lose_no_document_and_leave_none_behind(
    database: Database, make_run: MakeRun, another_scenario: AnotherScenario
) -> None:
    places = [another_scenario(f"{n}") for n in range(8)]
    together = Barrier(8)

    def come_and_go(scenario_id: UUID) -> None:
        together.wait()
        for _ in range(15):
            run = make_run(DOCUMENT, scenario_id=scenario_id)
            store(database, run, DOCUMENT)
            assert body_of(database, run) == DOCUMENT
            delete(database, run)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come_and_go, places))
    assert bodies(database) == 0


def test_old_documents_are_removed_and_their_runs_say_so_and_stay(
    database: Database, make_run: MakeRun, scenario: Scenario, noon: datetime, other_workspace: UUID
) -> None:
    day = timedelta(days=1)
    old, new = (
        make_run(document, received_at=noon - age)
        for document, age in ((b"old", 31 * day), (b"new", 29 * day))
    )
    for run, document in ((old, b"old"), (new, b"new")):
        store(database, run, document)

    def remove(workspace_id: UUID) -> int:
        with database.begin() as transaction:
            return documents.remove_older(
                transaction,
                by=Caller(workspace_id, "cli", frozenset()),
                new_id=uuid4,
                at=noon,
                received_before=noon - 30 * day,
            )

    assert [remove(other_workspace), remove(DEFAULT_WORKSPACE), remove(DEFAULT_WORKSPACE)] == [0, 1, 0]
    with pytest.raises(DocumentRemoved, match=r"was removed at 2026-11-29T12:00:00Z"):
        body_of(database, old)
    assert body_of(database, new) == b"new"
    assert bodies(database) == 1
    with database.read() as transaction:
        read = benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=old.id)
        (event,) = audit.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=10).items
    assert read == old.model_copy(update={"document_removed_at": noon})
    assert read.version != old.version
    assert (event.action, event.resource, event.resource_id, event.old_version) == (
        "delete",
        "benchmark_document",
        old.id,
        old.sha256,
    )
    delete(database, old)


def test_nothing_of_what_was_deleted_stands_in_the_files_of_sqlite(
    tmp_path: Path, migrated_sqlite: Path, spec: ScenarioSpec, noon: datetime
) -> None:
    """On Postgres what a table gave up is gone from its files when vacuum and later rows have been over it."""
    file = tmp_path / "a.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    packed = documents.pack(INCOMPRESSIBLE)
    marks = [packed.body[at : at + 24] for at in range(1000, 90_000, 7919)] + [b"a note nobody else may read"]

    def found() -> int:
        files = [place.read_bytes() for place in tmp_path.iterdir()]
        return sum(mark in each for mark in marks for each in files)

    with closing(Database(f"sqlite:///{file}")) as database:
        with database.begin() as transaction:
            made = scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="a", spec=spec
            )
            run = BenchmarkRun(
                id=uuid4(),
                scenario_id=made.id,
                scenario_revision=1,
                received_at=noon,
                sha256=packed.sha256,
                document_bytes=packed.original_bytes,
                conditions=[],
                note="a note nobody else may read",
                tool="ior",
                format="ior-text",
                measurements=[],
                doubts=[],
            )
            benchmark_runs.create(transaction, workspace_id=DEFAULT_WORKSPACE, run=run, document=packed)
        database.forget_deleted()
        assert found() >= len(marks)
        delete(database, run)
        database.forget_deleted()
        assert found() == 0
        assert file.stat().st_size > len(INCOMPRESSIBLE)


def test_while_somebody_reads_the_log_is_emptied_later(tmp_path: Path, migrated_sqlite: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    log = tmp_path / "a.db-wal"
    with closing(Database(f"sqlite:///{file}")) as database:
        with database.read() as reading:
            assert reading.scalar(select(func.count()).select_from(tables.scenarios)) == 0
            with database.begin() as transaction:
                transaction.execute(tables.scenarios.delete())
                transaction.execute(tables.workspaces.update().values(name="default"))
            database.forget_deleted()
            assert log.stat().st_size
        database.forget_deleted()
        assert log.stat().st_size == 0


BOMB = documents.pack(bytes(50_000_000))
FAR_WINDOW = b"\x28\xb5\x2f\xfd\x00\xa0" + b"\x01\x00\x00"
"""The head of a frame that would need a gigabyte to be unpacked, and an empty last block."""


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (PackedDocument(BOMB.sha256, 1000, BOMB.body), "more than it says"),
        (PackedDocument(BOMB.sha256, 50_000_001, BOMB.body), "something else"),
        (PackedDocument("0" * 64, 50_000_000, BOMB.body), "something else"),
        (PackedDocument(BOMB.sha256, 50_000_000, BOMB.body[:-1]), "ends before"),
        (PackedDocument(BOMB.sha256, 50_000_000, BOMB.body + b"x"), "something else"),
        (PackedDocument(BOMB.sha256, 50_000_000, BOMB.body + BOMB.body), "something else"),
        (PackedDocument(BOMB.sha256, 0, b""), "ends before"),
        (PackedDocument(BOMB.sha256, 10, b"plain text"), "not compressed by zstd"),
        (PackedDocument(hashlib.sha256(b"").hexdigest(), 0, FAR_WINDOW), "not compressed by zstd"),
    ],
    ids=["bomb", "short", "other", "cut", "more", "twice", "nothing", "plain", "window"],
)
def test_a_packed_document_from_outside_is_what_it_says_or_refused(
    document: PackedDocument, said: str
) -> None:
    assert len(BOMB.body) < 10_000
    with pytest.raises(BrokenBody, match=said):
        documents.check(document)
