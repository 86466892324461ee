import multiprocessing
import sqlite3
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection, exc, func, select, text

from service.errors import DatabaseUnavailable
from service.sizing.spec import ScenarioSpec
from service.store import scenarios, tables
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database, PoolState, parse_url
from service.store.scenarios import Scenario
from tests.conftest import new_postgres


def count(transaction: Connection) -> int | None:
    return transaction.scalar(select(func.count()).select_from(tables.scenarios))


def add(transaction: Connection, spec: ScenarioSpec, at: datetime) -> Scenario:
    id = uuid4()
    return scenarios.create(
        transaction, workspace_id=DEFAULT_WORKSPACE, id=id, at=at, name=f"{id}", spec=spec
    )


def ask(url: str) -> None:
    with closing(Database(url, lock_seconds=0.2)) as database, database.begin() as transaction:
        transaction.execute(text("SELECT 1"))


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("postgres://u:p%40ss@h:5/d?sslmode=require", "postgresql+psycopg://u:p%40ss@h:5/d?sslmode=require"),
        ("postgresql://h/d", "postgresql+psycopg://h/d"),
        ("postgresql+psycopg:///d?host=/run/pg", "postgresql+psycopg:///d?host=/run/pg"),
        ("sqlite:///a.db", "sqlite+pysqlite:///a.db"),
        ("sqlite:////var/lib/a.db", "sqlite+pysqlite:////var/lib/a.db"),
    ],
)
def test_a_url_gets_the_driver_that_is_used(given: str, read: str) -> None:
    assert parse_url(given).render_as_string(hide_password=False).replace("%2F", "/") == read


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///file:a?mode=memory&uri=true", "in memory"),
        ("mysql://h/d", "mysql is no database that we know"),
        ("postgresql+asyncpg://h/d", "no database that we know"),
        ("", "sqlite:///file.db or"),
        ("stallbudget.db", "sqlite:///file.db or"),
        ("postgresql://u:secret@h:port/d", "sqlite:///file.db or"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Database(url)
    assert "secret" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    with closing(Database("postgresql://u:secret@h/d")) as database:
        assert "secret" not in repr(database)


def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    with closing(Database(f"sqlite:///{tmp_path / 'a.db'}")):
        assert list(tmp_path.iterdir()) == []


def test_sqlite_without_its_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=f"there is no folder {tmp_path / 'none'}"):
        ask(f"sqlite:///{tmp_path / 'none' / 'a.db'}")


def test_sqlite_on_what_is_no_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="no file we may write to"):
        ask(f"sqlite:///{tmp_path}")


def test_sqlite_on_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(DatabaseUnavailable, match="no SQLite database"):
        ask(f"sqlite:///{file}")


def test_a_read_only_sqlite_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    file = tmp_path / "a.db"
    with closing(connect(file)) as connection:
        connection.execute("CREATE TABLE a (b)")
    # Root may write to any file, so its mode would prove nothing.
    monkeypatch.setattr(
        sqlite3.dbapi2, "connect", lambda path, **given: connect(f"file:{path}?mode=ro", uri=True, **given)
    )
    with pytest.raises(DatabaseUnavailable, match="may not be written to"):
        ask(f"sqlite:///{file}")


def test_a_locked_sqlite_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    ask(f"sqlite:///{file}")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable, match="locked by another process"):
            ask(f"sqlite:///{file}")


def test_sqlite_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    with closing(Database(f"sqlite:///{tmp_path / 'a.db'}")) as database, database.begin() as transaction:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        assert [transaction.scalar(text(f"PRAGMA {name}")) for name in pragmas] == ["wal", 2, 1, 10_000]


def test_processes_that_open_a_new_sqlite_file_at_once_all_do(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        for index in range(5):
            list(pool.map(ask, [f"sqlite:///{tmp_path / f'{index}.db'}"] * 4))


def test_no_postgres_at_the_address_says_so() -> None:
    with pytest.raises(DatabaseUnavailable, match="does not answer"):
        ask("postgresql://127.0.0.1:1/none")


def test_an_unknown_postgres_database_says_so(postgres_server: str) -> None:
    url = parse_url(postgres_server).set(database="none").render_as_string(hide_password=False)
    with pytest.raises(DatabaseUnavailable, match="refuses the connection"):
        ask(url)


def test_postgres_connections_that_died_in_the_pool_are_replaced(migrated_postgres: str) -> None:
    with closing(Database(migrated_postgres)) as database:
        with database.read() as transaction:
            pid = transaction.scalar(text("SELECT pg_backend_pid()"))
        end(migrated_postgres, pid)
        with database.read() as transaction:
            assert transaction.scalar(text("SELECT pg_backend_pid()")) != pid


def test_a_postgres_connection_that_dies_in_use_is_unavailable_and_then_replaced(
    migrated_postgres: str,
) -> None:
    def lose(database: Database) -> None:
        with database.begin() as transaction:
            end(migrated_postgres, transaction.scalar(text("SELECT pg_backend_pid()")))
            transaction.execute(text("SELECT 1"))

    with closing(Database(migrated_postgres)) as database:
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            lose(database)
        with database.read() as transaction:
            assert transaction.scalar(text("SELECT 1")) == 1


def test_when_every_connection_is_in_use_one_is_waited_for_only_so_long(database_url: str) -> None:
    def read(database: Database) -> None:
        with database.read():
            pass

    with closing(Database(database_url, pool_size=1, lock_seconds=0.05)) as database:
        with database.read(), pytest.raises(DatabaseUnavailable, match="in use"):
            read(database)
        read(database)


def test_a_writer_of_sqlite_waits_its_turn_only_so_long(tmp_path: Path) -> None:
    def write(database: Database) -> None:
        with database.begin():
            pass

    with closing(Database(f"sqlite:///{tmp_path / 'a.db'}", lock_seconds=0.05)) as database:
        with database.begin(), pytest.raises(DatabaseUnavailable, match="Too many writers"):
            write(database)
        write(database)


def test_a_lock_that_another_holds_too_long_is_unavailable(
    migrated_postgres: str, spec: ScenarioSpec, noon: datetime
) -> None:
    with closing(Database(migrated_postgres, lock_seconds=0.1)) as database:
        with database.begin() as transaction:
            made = add(transaction, spec, noon)

        def replace() -> None:
            with database.begin() as transaction:
                scenarios.replace(
                    transaction,
                    workspace_id=DEFAULT_WORKSPACE,
                    id=made.id,
                    at=noon,
                    name="a",
                    spec=spec,
                    if_revision=None,
                )

        with database.begin() as transaction:
            scenarios.replace(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=made.id,
                at=noon,
                name="b",
                spec=spec,
                if_revision=None,
            )
            with pytest.raises(DatabaseUnavailable, match="holds what this one needs"):
                replace()


def test_our_own_mistakes_are_not_taken_for_a_lost_database(database: Database) -> None:
    def blunder() -> None:
        with database.begin() as transaction:
            transaction.execute(text("SELEKT 1"))

    with pytest.raises(exc.DBAPIError):
        blunder()


def test_an_exception_undoes_everything_and_leaves_the_database_usable(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    def fail() -> None:
        with database.begin() as transaction:
            add(transaction, spec, noon)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.begin() as transaction:
        assert count(transaction) == 0
        add(transaction, spec, noon)
    with database.read() as transaction:
        assert count(transaction) == 1


def test_a_reader_cannot_write(database: Database, spec: ScenarioSpec, noon: datetime) -> None:
    def write() -> None:
        with database.read() as transaction:
            add(transaction, spec, noon)

    with pytest.raises((exc.DBAPIError, DatabaseUnavailable), match=r"(?i)read-?only|written"):
        write()
    with database.begin() as transaction:
        add(transaction, spec, noon)


def test_a_reader_sees_one_state_while_others_write(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.read() as reading:
        assert count(reading) == 0
        with database.begin() as writing:
            add(writing, spec, noon)
        assert count(reading) == 0
    with database.read() as reading:
        assert count(reading) == 1


def test_writers_at_once_all_get_their_turn(database: Database, spec: ScenarioSpec, noon: datetime) -> None:
    together = Barrier(10)

    def write(_: int) -> None:
        together.wait()
        for _ in range(5):
            with database.begin() as transaction:
                # Read, then write: what must not fail for want of a lock that was not taken at once.
                count(transaction)
                add(transaction, spec, noon)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(write, range(10)))
    with database.read() as transaction:
        assert count(transaction) == 50


def test_closing_leaves_no_connection(database_url: str) -> None:
    database = Database(database_url)
    with database.begin() as transaction:
        transaction.execute(text("SELECT 1"))
    database.close()
    if database.is_sqlite:
        # The last connection takes the log with it.
        assert not Path(f"{database.url.database}-wal").exists()


def end(url: str, pid: int | None) -> None:
    """End a connection from the server's side, and return when it is gone."""
    with psycopg.connect(
        parse_url(url).set(drivername="postgresql").render_as_string(False), autocommit=True
    ) as own:
        assert own.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)


def test_the_state_of_the_pool_is_told_and_those_who_wait_are_counted(database_url: str) -> None:
    with closing(Database(database_url, pool_size=1, lock_seconds=0.05)) as database:
        assert database.pool_state() == PoolState(size=1, in_use=0, idle=0, waits=0)
        with database.read():
            assert database.pool_state() == PoolState(size=1, in_use=1, idle=0, waits=0)
            with pytest.raises(DatabaseUnavailable), database.read():
                pass
        assert database.pool_state() == PoolState(size=1, in_use=0, idle=1, waits=1)
        with database.begin():
            pass
        assert database.pool_state().waits == 1


def test_postgres_keeps_what_was_acknowledged_whatever_its_databases_are_set_to(postgres_server: str) -> None:
    with new_postgres(postgres_server) as url:
        name = parse_url(url).database
        for said, used in (("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")):
            with psycopg.connect(url, autocommit=True) as own:
                own.execute(f"ALTER DATABASE {name} SET synchronous_commit = {said}".encode())
            with closing(Database(url)) as database:
                for _ in range(2):
                    with database.begin() as transaction:
                        assert transaction.scalar(text("SHOW synchronous_commit")) == used


def test_a_postgres_that_falls_silent_is_given_up_unless_the_url_says_otherwise(
    migrated_postgres: str,
) -> None:
    def parameters(url: str) -> dict[str, str]:
        with closing(Database(url)) as database, database.read() as transaction:
            driver = transaction.connection.dbapi_connection
            assert isinstance(driver, psycopg.Connection)
            return driver.info.get_parameters()

    known = parameters(migrated_postgres)
    assert (known["tcp_user_timeout"], known["keepalives_idle"]) == ("20000", "10")
    assert parameters(f"{migrated_postgres}&tcp_user_timeout=7")["tcp_user_timeout"] == "7"


def test_a_postgres_that_may_only_be_read_is_unavailable_to_writers_and_left(migrated_postgres: str) -> None:
    def process(transaction: Connection) -> int:
        return int(transaction.execute(text("SELECT pg_backend_pid()")).scalar_one())

    def write(database: Database) -> None:
        with database.begin() as transaction:
            transaction.execute(text("SET TRANSACTION READ ONLY"))
            transaction.execute(text("DELETE FROM scenarios"))

    with closing(Database(migrated_postgres)) as database:
        with database.read() as transaction:
            first = process(transaction)
        with pytest.raises(DatabaseUnavailable, match="may not be written to"):
            write(database)
        # Whether another server has taken its place, only a new connection can tell.
        with database.read() as transaction:
            assert process(transaction) != first


def test_a_transaction_that_was_idle_for_too_long_is_unavailable(migrated_postgres: str) -> None:
    def idle(database: Database) -> None:
        with database.begin() as transaction:
            transaction.execute(text("SET idle_in_transaction_session_timeout = 1"))
            pid = transaction.scalar(text("SELECT pg_backend_pid()"))
            with psycopg.connect(migrated_postgres, autocommit=True) as other:
                while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
                    pass
            transaction.execute(text("SELECT 1"))

    with (
        closing(Database(migrated_postgres)) as database,
        pytest.raises(DatabaseUnavailable, match="does not answer"),
    ):
        idle(database)
