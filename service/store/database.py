"""Opening SQLite or Postgres, and transactions on either.

A `Database` is made by whoever puts the parts together; nothing connects before it is first used. On both
databases a transaction sees one state of the data: `read()` a snapshot, `begin()` what is committed, with
the rows it changes held until its end. Nothing is run twice behind the caller's back: what is retried is
only the opening (a dead connection of the pool, a locked SQLite file).
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, Table, create_engine, event, exc, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.pool import QueuePool

from service.errors import DatabaseUnavailable

OPEN_SECONDS = 5
"""How long opening a connection to Postgres may take."""
LOCK_SECONDS = 10
"""How long a statement waits for another's lock, and a transaction for a connection of the pool."""
STATEMENT_SECONDS = 60
"""How long Postgres works on one statement; also how long it leaves an idle transaction open."""
SILENT_SECONDS = 20
"""After how long a Postgres that sends not even acknowledgements is given up: its machine may be gone."""
TURNS = 3
"""How many times as long a writer of SQLite waits for those before it in this process."""
MIGRATION_SECONDS = 600
"""How long a process waits while another one migrates."""
MIGRATION_LOCK = 0x57A11B0D6E7
"""The number of the advisory lock of whoever migrates on Postgres; any that nobody else takes."""

_COMMITS_REACH_THE_DISK = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""`local`, `remote_write` and `remote_apply` wait for the server's own disk as well, and stay as they are."""
_NOT_OURS = "The tables in the database are not those of this version: run `stallbudget migrate`."
_READ_ONLY = (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported)
"""A standby refuses the beginning of a transaction that may write as a feature that it has not."""
_TIMED_OUT = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)
"""They end the connection, and are no OperationalError as others that do."""
_SQLITE_SENTENCES = {
    sqlite3.SQLITE_BUSY: "The SQLite database is locked by another process.",
    sqlite3.SQLITE_LOCKED: "The SQLite database is locked by another process.",
    sqlite3.SQLITE_PROTOCOL: "The SQLite database is locked by another process.",
    sqlite3.SQLITE_CANTOPEN: "The SQLite database cannot be opened: its path is no file we may write to.",
    sqlite3.SQLITE_READONLY: "The SQLite database may not be written to.",
    sqlite3.SQLITE_PERM: "The SQLite database may not be written to.",
    sqlite3.SQLITE_FULL: "The disk of the SQLite database is full.",
    sqlite3.SQLITE_IOERR: "The disk of the SQLite database fails.",
    sqlite3.SQLITE_NOTADB: "The file is no SQLite database.",
    sqlite3.SQLITE_CORRUPT: "The SQLite database is damaged.",
}


def parse_url(url: str) -> URL:
    """Return the URL with the driver that is used for it.

    Raises:
        ValueError: It is none of SQLite's or Postgres's; the message is a sentence without its password.
    """
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise ValueError("A database is given as sqlite:///file.db or postgresql://user@host/name.") from None
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if not parsed.database or parsed.database == ":memory:" or parsed.database.startswith("file:"):
            raise ValueError(
                "SQLite needs the path of a file, as in sqlite:///file.db: a database in memory would be "
                "another one on each connection."
            )
        return parsed.set(drivername="sqlite+pysqlite")
    raise ValueError(
        f"{parsed.drivername} is no database that we know: give sqlite:///file.db or postgresql://user@host/name."
    )


@dataclass(frozen=True, slots=True)
class PoolState:
    """How the connections of a pool are.

    Attributes:
        size: How many there may be.
        in_use: How many work for a transaction.
        idle: How many are open and wait for one.
        waits: How many transactions found all of them in use, so far.
    """

    size: int
    in_use: int
    idle: int
    waits: int


class Database:
    """One SQLite file or Postgres database, with a pool of connections to it.

    Args:
        url: As `parse_url` reads it.
        pool_size: How many connections there may be; more requests than that wait.
        lock_seconds: How long a statement waits for another's lock, and a transaction for a connection. [s]

    Raises:
        ValueError: The URL is none that we know.
    """

    def __init__(self, url: str, *, pool_size: int = 10, lock_seconds: float = LOCK_SECONDS) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        make = _sqlite_engine if self.is_sqlite else _postgres_engine
        self.engine: Engine = make(self.url, pool_size, lock_seconds)
        self._reading: Engine
        self._writing: Engine
        if self.is_sqlite:
            self._reading = self.engine.execution_options(sqlite_begin="BEGIN", sqlite_query_only=1)
            self._writing = self.engine.execution_options(sqlite_begin="BEGIN IMMEDIATE", sqlite_query_only=0)
        else:
            self._reading = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            self._writing = self.engine
        self._pool_size = pool_size
        self._waits = 0
        self._counting_waits = threading.Lock()
        # SQLite has one writer. Those of this process queue here, in turn, rather than poll the file.
        self._writer = threading.Lock()
        self._writer_seconds = TURNS * lock_seconds

    def __repr__(self) -> str:
        return f"Database({self.url.render_as_string(hide_password=True)!r})"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a transaction that sees one snapshot and cannot write.

        Raises:
            DatabaseUnavailable: The database does not answer, or has not our tables.
        """
        with self._explained(), self._reading.begin() as transaction:
            yield transaction

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Give a transaction that commits at the end, or undoes everything when an exception leaves it.

        Raises:
            DatabaseUnavailable: The database does not answer, is locked for too long, or has not our tables.
        """
        with self._explained(), self._one_writer(), self._writing.begin() as transaction:
            yield transaction

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Give a transaction that is alone in changing the schema, whatever other processes do.

        Raises:
            DatabaseUnavailable: The database does not answer, or another migration takes too long.
        """
        with self._explained(), self._one_writer(), self._writing.connect() as connection:
            # The connection is thrown away afterwards, with all that is set on it here.
            connection.detach()
            if self.is_sqlite:
                driver: Any = connection.connection.dbapi_connection
                driver.execute(f"PRAGMA busy_timeout = {MIGRATION_SECONDS * 1000}")
                # A batch migration drops a table to replace it; with foreign keys on, that deletes rows.
                driver.execute("PRAGMA foreign_keys = OFF")
                with connection.begin():
                    yield connection
                    if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                        raise RuntimeError("The migration would leave rows that refer to nothing.")
            else:
                with connection.begin():
                    connection.execute(text(f"SET LOCAL lock_timeout = '{MIGRATION_SECONDS}s'"))
                    connection.execute(text("SET LOCAL statement_timeout = 0"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
                    yield connection

    def pool_state(self) -> PoolState:
        """Return how the connections of the pool are. Asks no database."""
        pool = self.engine.pool
        assert isinstance(pool, QueuePool)  # noqa: S101 - both engines are made with one
        return PoolState(
            size=self._pool_size, in_use=pool.checkedout(), idle=pool.checkedin(), waits=self._waits
        )

    def forget_deleted(self) -> None:
        """Empty SQLite's log, in which what was deleted still stands until it is written over; nothing on Postgres.

        As far as that can be had at once: while somebody writes or reads, a later call or the close does it.
        """
        if not self.is_sqlite or not self._writer.acquire(blocking=False):
            return
        try:
            with self._explained(), self.engine.connect() as connection:
                driver: Any = connection.connection.dbapi_connection
                (before,) = driver.execute("PRAGMA busy_timeout").fetchone()
                driver.execute("PRAGMA busy_timeout = 0")
                try:
                    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    driver.execute(f"PRAGMA busy_timeout = {before}")
        except DatabaseUnavailable:
            pass
        finally:
            self._writer.release()

    def exists(self) -> bool:
        """Return whether there is something to connect to: not a SQLite file that is yet to be made."""
        return not self.is_sqlite or Path(str(self.url.database)).exists()

    def close(self) -> None:
        """Close every connection. Those in use are closed when they are given back."""
        self.engine.dispose()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._writer.acquire(timeout=self._writer_seconds):
            raise DatabaseUnavailable("Too many writers wait for the SQLite database.")
        try:
            yield
        finally:
            self._writer.release()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the failures of the database itself into DatabaseUnavailable; leave our own mistakes alone."""
        if self.pool_state().in_use >= self._pool_size:
            with self._counting_waits:
                self._waits += 1
        try:
            yield
        except exc.TimeoutError as error:
            raise DatabaseUnavailable("Every connection to the database is in use.") from error
        except exc.DBAPIError as error:
            sentence = _explain_sqlite(error) if self.is_sqlite else _explain_postgres(error)
            if sentence is None:
                raise
            if self.is_sqlite:
                folder = Path(str(self.url.database)).absolute().parent
                if not folder.is_dir():
                    sentence = f"The SQLite database cannot be opened: there is no folder {folder}."
            raise DatabaseUnavailable(sentence) from error


def insert_unless_present(
    transaction: Connection, table: Table, values: dict[str, Any], *, unique: list[str] | None = None
) -> bool:
    """Insert a row, and return whether it was: not when a row with the same unique values is there.

    A row that a transaction beside this one is inserting is waited for. Without `unique` any unique
    constraint of the table counts, with it only the one on those columns.
    """
    insert = sqlite.insert if transaction.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).on_conflict_do_nothing(index_elements=unique)
    result = transaction.execute(statement, values, execution_options={"preserve_rowcount": True})
    return result.rowcount == 1


def _sqlite_engine(url: URL, pool_size: int, lock_seconds: float) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=lock_seconds,
        hide_parameters=True,
        # isolation_level None: the driver begins nothing of its own accord, we do (below).
        connect_args={"timeout": lock_seconds, "isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        _use_write_ahead_log(connection, tries=100)
        connection.execute("PRAGMA foreign_keys = ON")
        # FULL: what was answered with 201 is still there after the power failed. NORMAL would be faster.
        connection.execute("PRAGMA synchronous = FULL")
        # What is deleted is written over with zeros, so that nobody reads it out of the file.
        connection.execute("PRAGMA secure_delete = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(f"PRAGMA query_only = {options.get('sqlite_query_only', 0)}")
        # A writer takes its lock at once: one that reads first cannot be sure to get it later.
        connection.exec_driver_sql(options.get("sqlite_begin", "BEGIN"))

    return engine


def _use_write_ahead_log(connection: sqlite3.Connection, *, tries: int) -> None:
    """Let readers and a writer go on beside each other; for good, it is a property of the file.

    The change needs the file alone for a moment, and SQLite does not wait for that: of several processes
    that open a new file at once, all but one are refused.
    """
    for left in reversed(range(tries)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not left:
                raise
            time.sleep(0.02)
        else:
            return


def _postgres_engine(url: URL, pool_size: int, lock_seconds: float) -> Engine:
    settings = {
        "application_name": "stallbudget",
        "connect_timeout": str(OPEN_SECONDS),
        # Left to itself the kernel takes a quarter of an hour to give up what was sent, and two hours to ask at all.
        "tcp_user_timeout": str(SILENT_SECONDS * 1000),
        "keepalives_idle": str(SILENT_SECONDS // 2),
        "keepalives_interval": str(SILENT_SECONDS // 4),
        "keepalives_count": "2",
        "options": (
            f"-c timezone=UTC -c lock_timeout={int(lock_seconds * 1000)} "
            f"-c statement_timeout={STATEMENT_SECONDS}s "
            f"-c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s"
        ),
    }
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=lock_seconds,
        # Names and documents of others have no place in a message, which may end up in a log.
        hide_parameters=True,
        pool_pre_ping=True,
        # What the URL says goes first.
        connect_args={name: value for name, value in settings.items() if name not in url.query},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: psycopg.Connection[Any], _record: object) -> None:
        # What was answered with 201 is still there after a crash, whatever else the server's databases can do without.
        connection.autocommit = True
        connection.execute(_COMMITS_REACH_THE_DISK)
        connection.autocommit = False

    @event.listens_for(engine, "handle_error")
    def _leave_a_standby(context: ExceptionContext) -> None:
        # A server that may only be read answers every ping. Another one may have taken its place.
        if isinstance(context.original_exception, _READ_ONLY):
            context.is_disconnect = True

    return engine


def _explain_sqlite(error: exc.DBAPIError) -> str | None:
    """Return what is wrong with the database as a sentence, or None if the fault is in what we asked."""
    cause = error.orig
    if not isinstance(cause, sqlite3.Error):
        return None
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    said = str(cause)
    if code == sqlite3.SQLITE_ERROR and (
        said.startswith(("no such table", "no such column")) or "has no column named" in said
    ):
        return _NOT_OURS
    return _SQLITE_SENTENCES.get(code)


def _explain_postgres(error: exc.DBAPIError) -> str | None:
    """Return what is wrong with the database as a sentence, or None if the fault is in what we asked."""
    cause = error.orig
    if isinstance(cause, (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)):
        return _NOT_OURS
    if isinstance(cause, (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)):
        return "Another transaction holds what this one needs."
    if isinstance(cause, psycopg.errors.QueryCanceled):
        return "The database took too long."
    if isinstance(cause, _READ_ONLY):
        return "The Postgres database may not be written to: it is a standby, or set so."
    # A row too large for an index, and its like: the server is well.
    too_large = isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "").startswith("54")
    gone = (psycopg.OperationalError, *_TIMED_OUT)
    if error.connection_invalidated or (isinstance(cause, gone) and not too_large):
        return "The Postgres database does not answer, or refuses the connection."
    return None
