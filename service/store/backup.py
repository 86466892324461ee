"""A copy of a SQLite database while it is in use. Postgres has `pg_dump` for that."""

import os
import sqlite3
from pathlib import Path

from service.errors import DatabaseUnavailable
from service.store.database import Database


def copy(database: Database, target: Path) -> int:
    """Write all that a SQLite database holds at one moment to a new file; return its size. [B]

    Readers and writers go on meanwhile. The copy holds nothing that was deleted, stands on the disk when this
    returns, and appears under its name only when it is whole.

    Raises:
        DatabaseUnavailable: The database cannot be read, or the copy not written.
        FileExistsError: There is a file of that name.
        ValueError: It is no SQLite database.
    """
    if not database.is_sqlite:
        raise ValueError("Postgres is backed up with pg_dump.")
    if target.exists():
        raise FileExistsError(target)
    if not database.exists():
        raise DatabaseUnavailable("There is no such SQLite database.")
    part = target.with_name(target.name + ".part")
    # Made here, so that nobody else may read it at any time.
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    try:
        # Not of the pool: VACUUM INTO runs outside a transaction, and takes one of its own to read.
        source = sqlite3.connect(str(database.url.database), timeout=60, isolation_level=None)
        try:
            source.execute("VACUUM INTO ?", (str(part),))
        finally:
            source.close()
        with sqlite3.connect(part) as made:
            (found,) = made.execute("PRAGMA quick_check(1)").fetchone()
        made.close()
        if found != "ok":
            raise DatabaseUnavailable(f"The SQLite database is damaged: {found}.")
        _sync(part)
        part.replace(target)
        _sync(target.absolute().parent)
    except sqlite3.Error as error:
        raise DatabaseUnavailable(f"The SQLite database cannot be copied: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return target.stat().st_size


def _sync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
