import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    Table,
    column,
    func,
    insert,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.exc import IntegrityError

import service
from service.errors import DatabaseUnavailable
from service.parsers.run import BenchmarkRun
from service.sizing.spec import ScenarioSpec
from service.store import (
    audit,
    benchmark_runs,
    documents,
    idempotency,
    keys,
    migrate,
    scenarios,
    stored_spec,
    tables,
    workspaces,
)
from service.store.caller import DEFAULT_WORKSPACE, AccessScope, Caller
from service.store.database import Database
from tests.store.conftest import MakeRun


def migrate_there(url: str) -> bool:
    with closing(Database(url)) as database:
        migrate.upgrade(database)
        return migrate.is_at_head(database)


def test_the_migrations_make_exactly_the_tables_of_the_code(database: Database) -> None:
    with database.migrating() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
        made = inspect(connection)
        for table in tables.metadata.sorted_tables:
            # What Alembic does not compare: the names of primary and foreign keys.
            assert made.get_pk_constraint(table.name)["name"] == table.primary_key.name
            assert {key["name"] for key in made.get_foreign_keys(table.name)} == {
                key.name for key in table.foreign_key_constraints
            }


def test_an_empty_database_is_not_at_head_and_a_migrated_one_is(empty_database: Database) -> None:
    assert not migrate.is_at_head(empty_database)
    migrate.upgrade(empty_database)
    assert migrate.is_at_head(empty_database)
    migrate.upgrade(empty_database)
    assert migrate.current(empty_database) == migrate.head()


def test_a_database_of_another_version_is_not_at_head(empty_database: Database) -> None:
    migrate.upgrade(empty_database)
    with empty_database.begin() as transaction:
        transaction.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert not migrate.is_at_head(empty_database)


def test_every_migration_can_be_undone_and_done_again(empty_database: Database) -> None:
    for _ in range(2):
        migrate.upgrade(empty_database)
        migrate.downgrade(empty_database)
        assert migrate.current(empty_database) is None
        with empty_database.read() as transaction:
            assert inspect(transaction).get_table_names() == ["alembic_version"]


def fill(database: Database, spec: ScenarioSpec, at: datetime, make_run: MakeRun) -> None:
    """Put a row at least into every table."""
    by = Caller(DEFAULT_WORKSPACE, "open", frozenset())
    with database.begin() as transaction:
        other = workspaces.create(transaction, id=uuid4(), at=at, name="other").id
        for workspace_id, name in (
            (DEFAULT_WORKSPACE, "a"),
            (other, "a"),
            (other, "b"),
            (other, "a (other)"),
        ):
            made = scenarios.create(
                transaction, workspace_id=workspace_id, id=uuid4(), at=at, name=name, spec=spec
            )
            run = make_run(b"IOR", scenario_id=made.id)
            benchmark_runs.create(
                transaction, workspace_id=workspace_id, run=run, document=documents.pack(b"IOR")
            )
        keys.create(
            transaction,
            workspace_id=other,
            id=uuid4(),
            at=at,
            name="k",
            scopes=[AccessScope.READ],
            secret=keys.Secret("0" * 64, b"salt"),
        )
        audit.record(
            transaction,
            by=by,
            id=uuid4(),
            at=at,
            action=audit.AuditAction.CREATE,
            resource=audit.AuditedResource.SCENARIO,
            resource_id=uuid4(),
        )
        idempotency.claim(transaction, owner_id=other, key="k", at=at, request_sha256="0" * 64)
    with database.read() as transaction:
        for table in tables.metadata.tables.values():
            assert transaction.scalar(select(func.count()).select_from(table)), table.name


def test_a_filled_database_can_be_taken_down_and_up_again(
    empty_database: Database, spec: ScenarioSpec, noon: datetime, make_run: MakeRun
) -> None:
    for _ in range(2):
        migrate.upgrade(empty_database)
        fill(empty_database, spec, noon, make_run)
        migrate.downgrade(empty_database)


def test_scenarios_and_runs_survive_the_way_to_the_first_version_and_back(
    empty_database: Database, spec: ScenarioSpec, noon: datetime, make_run: MakeRun
) -> None:
    migrate.upgrade(empty_database)
    fill(empty_database, spec, noon, make_run)
    migrate.downgrade(empty_database, revision="0001")
    with empty_database.begin() as transaction:
        named = set(transaction.scalars(text("SELECT name FROM scenarios")))
        assert named == set(transaction.scalars(text("SELECT name FROM scenario_revisions")))
        # Without workspaces a name is taken once: the default workspace keeps its own.
        assert named > {"a", "b", "a (other)"}
        assert len(named) == 4
        transaction.execute(text("DELETE FROM benchmark_runs"))
        with pytest.raises(IntegrityError), transaction.begin_nested():
            transaction.execute(text("UPDATE scenarios SET name = 'b' WHERE name = 'a'"))
    migrate.upgrade(empty_database)
    with empty_database.read() as transaction:
        page = scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=10)
        assert {item.name for item in page.items} == named
        assert page.items[0].spec == spec
        assert [each.name for each in workspaces.list_all(transaction)] == ["default"]


def test_what_is_stored_belongs_to_the_default_workspace_from_its_migration_on(
    empty_database: Database, spec: ScenarioSpec, noon: datetime, make_run: MakeRun
) -> None:
    migrate.upgrade(empty_database, revision="0001")
    id_ = uuid4()
    values = {"id": id_, "name": "old", "revision": 1, "created_at": noon, "updated_at": noon}
    with empty_database.begin() as transaction:
        transaction.execute(insert(table("scenarios", *_columns(tables.scenarios, values))).values(values))
        revision = {"scenario_id": id_, "revision": 1, "name": "old", "created_at": noon}
        transaction.execute(tables.scenario_revisions.insert(), {**revision, "spec": stored_spec.dump(spec)})
        run = make_run(b"IOR", scenario_id=id_)
        _insert_as_before_bodies(transaction, run, b"IOR")
    migrate.upgrade(empty_database)
    with empty_database.read() as transaction:
        read = scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=id_)
        assert (read.name, read.spec, read.created_at) == ("old", spec, noon)
        assert benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id) == run
        document = benchmark_runs.get_document(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id)
        assert document.body == b"IOR"


def _insert_as_before_bodies(transaction: Connection, run: BenchmarkRun, document: bytes) -> None:
    """Insert a run as versions 0001 and 0002 kept it, with its document as it came."""
    row = {
        name: value
        for name, value in benchmark_runs.as_row(run).items()
        if name not in ("document_removed_at",)
    }
    transaction.execute(insert(table("benchmark_runs", *_columns(tables.benchmark_runs, row))).values(row))
    documents_then = table(
        "benchmark_documents",
        column("run_id", tables.benchmark_documents.c.run_id.type),
        column("body", tables.document_bodies.c.body.type),
    )
    transaction.execute(insert(documents_then).values(run_id=run.id, body=document))


def test_documents_are_packed_once_a_workspace_on_the_way_up_and_whole_again_on_the_way_down(
    empty_database: Database, spec: ScenarioSpec, noon: datetime, make_run: MakeRun
) -> None:
    migrate.upgrade(empty_database, revision="0002")
    other_workspace = uuid4()
    same, other = b"IOR-4.0.0 " * 5000, b"\x00\xff" * 3
    runs: list[tuple[UUID, BenchmarkRun, bytes]] = []
    with empty_database.begin() as transaction:
        workspaces.create(transaction, id=other_workspace, at=noon, name="other")
        for workspace_id, name in (
            (DEFAULT_WORKSPACE, "a"),
            (DEFAULT_WORKSPACE, "b"),
            (other_workspace, "a"),
        ):
            made = scenarios.create(
                transaction, workspace_id=workspace_id, id=uuid4(), at=noon, name=name, spec=spec
            )
            for document in (same, other):
                run = make_run(document, scenario_id=made.id)
                _insert_as_before_bodies(transaction, run, document)
                runs.append((workspace_id, run, document))
    for _ in range(2):
        migrate.upgrade(empty_database)
        with empty_database.read() as transaction:
            for workspace_id, run, document in runs:
                kept = benchmark_runs.get_document(transaction, workspace_id=workspace_id, id=run.id)
                assert kept.body == document
                assert benchmark_runs.get(transaction, workspace_id=workspace_id, id=run.id) == run
            used = documents.usage(transaction, workspace_id=DEFAULT_WORKSPACE)
        assert (used.documents, used.distinct_documents) == (4, 2)
        assert used.original_bytes == len(same) + len(other) > 20 * used.stored_bytes
        migrate.downgrade(empty_database, revision="0002")
        with empty_database.read() as transaction:
            bodies = {
                row[0]: bytes(row[1])
                for row in transaction.execute(text("SELECT run_id, body FROM benchmark_documents"))
            }
            assert sorted(bodies.values()) == sorted(document for _, _, document in runs)
            assert not inspect(transaction).has_table("document_bodies")


def _columns(of: Table, values: dict[str, Any]) -> list[Any]:
    return [column(name, of.c[name].type) for name in values]


REVISIONS = [script.revision for script in ScriptDirectory.from_config(migrate._config()).walk_revisions()][
    ::-1
]


def _schema(database: Database) -> dict[str, Any]:
    """Return everything that a database says of its tables, in an order of its own."""
    with database.read() as transaction:
        made = inspect(transaction)
        return {
            name: {
                "columns": sorted((each["name"], str(each["type"]), each["nullable"], each["default"])
                                  for each in made.get_columns(name)),
                "primary key": made.get_pk_constraint(name),
                "foreign keys": sorted(map(repr, made.get_foreign_keys(name))),
                "unique": sorted(map(repr, made.get_unique_constraints(name))),
                "indexes": sorted(map(repr, made.get_indexes(name))),
            }
            for name in made.get_table_names()
        }  # fmt: skip


def _fill_as_it_is(database: Database) -> dict[str, int]:
    """Put a row into every table, whatever the revision, that refers to those before; return how many there are."""
    reflected = MetaData()
    with database.begin() as transaction:
        reflected.reflect(transaction)
        rows: dict[str, dict[str, Any]] = {}
        for each in reflected.sorted_tables:
            if each.name == "alembic_version":
                continue
            row: dict[str, Any] = {}
            for column_ in each.columns:
                referred = next(iter(column_.foreign_keys), None)
                row[column_.name] = (
                    rows[referred.column.table.name][referred.column.name] if referred else _value(column_)
                )
            transaction.execute(each.insert(), row)
            rows[each.name] = row
        return {name: transaction.scalar(select(func.count()).select_from(table(name))) or 0 for name in rows}


def _value(column_: Column[Any]) -> object:
    if column_.type.python_type is datetime:
        return datetime(2026, 11, 29, 12, tzinfo=UTC)
    if column_.type.python_type is str:
        return uuid4().hex
    # SQLite tells of an id only that it has 32 letters.
    return {int: 1, bytes: b"x", UUID: uuid4()}[column_.type.python_type]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_has_the_same_tables_from_below_and_from_above(
    empty_database: Database, revision: str
) -> None:
    migrate.upgrade(empty_database, revision=revision)
    from_below = _schema(empty_database)
    migrate.downgrade(empty_database)
    assert _schema(empty_database).keys() == {"alembic_version"}
    migrate.upgrade(empty_database)
    at_head = _schema(empty_database)
    migrate.downgrade(empty_database, revision=revision)
    assert _schema(empty_database) == from_below
    migrate.upgrade(empty_database)
    assert _schema(empty_database) == at_head


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_stored_at_a_revision_goes_all_the_way_up_and_down_again(
    empty_database: Database, revision: str
) -> None:
    migrate.upgrade(empty_database, revision=revision)
    filled = _fill_as_it_is(empty_database)
    at_revision = _schema(empty_database)

    def kept() -> dict[str, int | None]:
        with empty_database.read() as transaction:
            names = inspect(transaction).get_table_names()
            return {
                name: transaction.scalar(select(func.count()).select_from(table(name)))
                for name in filled
                if name in names
            }

    migrate.upgrade(empty_database)
    assert kept() == filled
    with empty_database.migrating() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
    migrate.downgrade(empty_database, revision=revision)
    assert kept() == filled
    assert _schema(empty_database) == at_revision
    migrate.upgrade(empty_database)
    assert kept() == filled


def test_a_migration_that_fails_leaves_nothing_behind(empty_database: Database) -> None:
    def migrate_and_fail() -> None:
        with empty_database.migrating() as connection:
            tables.metadata.create_all(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        migrate_and_fail()
    with empty_database.read() as transaction:
        assert inspect(transaction).get_table_names() == []


def test_a_migration_that_would_leave_orphans_in_sqlite_is_undone(tmp_path: Path) -> None:
    def drop_what_is_referred_to(database: Database) -> None:
        with database.migrating() as connection:
            connection.execute(text("CREATE TABLE parent (id INTEGER PRIMARY KEY)"))
            connection.execute(text("CREATE TABLE child (id INTEGER REFERENCES parent (id))"))
            connection.execute(text("INSERT INTO child VALUES (1)"))

    with closing(Database(f"sqlite:///{tmp_path / 'a.db'}")) as database:
        with pytest.raises(RuntimeError, match="refer to nothing"):
            drop_what_is_referred_to(database)
        with database.read() as transaction:
            assert inspect(transaction).get_table_names() == []


def test_a_migration_leaves_its_settings_on_no_connection(empty_database: Database) -> None:
    migrate.upgrade(empty_database)
    with empty_database.begin() as transaction:
        if empty_database.is_sqlite:
            assert transaction.scalar(text("PRAGMA foreign_keys")) == 1
            assert transaction.scalar(text("PRAGMA busy_timeout")) == 10_000
        else:
            assert transaction.scalar(text("SHOW statement_timeout")) == "1min"


def test_threads_that_migrate_at_once_migrate_once(empty_database_url: str) -> None:
    together = Barrier(6)

    def start(_: int) -> bool:
        together.wait()
        return migrate_there(empty_database_url)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(start, range(6)))


def test_processes_that_migrate_at_once_migrate_once(empty_database_url: str) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert all(pool.map(migrate_there, [empty_database_url] * 6))


def test_without_tables_the_database_is_unavailable_and_says_what_to_do(
    empty_database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    def create() -> None:
        with empty_database.begin() as transaction:
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="a", spec=spec
            )

    def get() -> None:
        with empty_database.read() as transaction:
            scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4())

    for ask in (create, get):
        with pytest.raises(DatabaseUnavailable, match="stallbudget migrate"):
            ask()


def test_the_migrations_are_found_beside_the_package_or_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (migrate.folder() / "env.py").is_file()
    package = tmp_path / "service"
    package.mkdir()
    monkeypatch.setattr(service, "__file__", str(package / "__init__.py"))
    assert migrate.folder() == tmp_path / "migrations"
    (package / "migrations").mkdir()
    assert migrate.folder() == package / "migrations"


def test_a_database_with_strange_tables_of_our_names_is_refused_in_a_sentence(
    empty_database: Database,
) -> None:
    with empty_database.begin() as transaction:
        transaction.execute(text("CREATE TABLE scenarios (x INTEGER)"))
    with pytest.raises(DatabaseUnavailable, match="did not make"):
        migrate.upgrade(empty_database)
