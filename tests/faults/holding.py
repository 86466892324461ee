"""Holding a service within a transaction: it has begun to store, and cannot come to its end."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import psycopg

from service.store.database import parse_url


def is_sqlite(database_url: str) -> bool:
    """Return whether a URL is that of a SQLite database."""
    return database_url.startswith("sqlite")


@contextmanager
def held_before_the_audit(database_url: str) -> Iterator[Callable[[], int]]:
    """Let nobody write a line of the audit trail, the last thing of each change; give how many try to.

    On SQLite whoever tries goes on trying until its process ends.
    """
    hold = _held_sqlite if is_sqlite(database_url) else held_postgres
    with hold(database_url) as count_within:
        yield count_within


@contextmanager
def _held_sqlite(database_url: str) -> Iterator[Callable[[], int]]:
    file = parse_url(database_url).database
    with closing(sqlite3.connect(str(file), isolation_level=None, timeout=0)) as own:
        own.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        )
        own.execute(
            "CREATE TRIGGER hold BEFORE INSERT ON audit_events BEGIN SELECT count(*) FROM endless; END"
        )

        def count_within() -> int:
            return int(_is_locked(own))

        yield count_within
        own.execute("PRAGMA busy_timeout = 10000")
        own.execute("DROP TRIGGER hold")
        own.execute("DROP VIEW endless")


def _is_locked(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        return True
    connection.execute("ROLLBACK")
    return False


@contextmanager
def held_postgres(database_url: str, table: str = "audit_events") -> Iterator[Callable[[], int]]:
    """Let nobody write to a table of Postgres; give how many wait to."""
    with postgres(database_url) as holding, postgres(database_url) as watching, holding.transaction():
        holding.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE".encode())

        def count_within() -> int:
            return len(waiting(watching))

        yield count_within


def waiting(connection: psycopg.Connection[tuple[int]]) -> list[int]:
    """Return the processes of the server that wait for a lock on something in this database."""
    rows = connection.execute(
        "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE NOT granted AND datname = current_database()"
    )
    return [row[0] for row in rows]


def postgres(database_url: str) -> AbstractContextManager[psycopg.Connection[tuple[int]]]:
    """Give a connection of the test's own."""
    url = parse_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(url, autocommit=True)
