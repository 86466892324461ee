"""A copy of a SQLite database: of one moment, whole or not there, for its owner alone."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest

from service.errors import DatabaseUnavailable
from service.store import backup, migrate, workspaces
from service.store.database import Database


@pytest.fixture
def in_use(migrated_sqlite: Path, tmp_path: Path) -> Iterator[Database]:
    """Give a database of SQLite with our tables."""
    file = tmp_path / "in-use.db"
    file.write_bytes(migrated_sqlite.read_bytes())
    with closing(Database(f"sqlite:///{file}")) as opened:
        yield opened


def names_in(file: Path) -> list[str]:
    with closing(Database(f"sqlite:///{file}")) as copied, copied.read() as transaction:
        return [each.name for each in workspaces.list_all(transaction)]


def test_it_holds_what_was_committed_while_others_read_and_write(
    in_use: Database, tmp_path: Path, noon: datetime
) -> None:
    target = tmp_path / "copy.db"
    with in_use.begin() as transaction:
        workspaces.create(transaction, id=uuid4(), at=noon, name="committed")
    with in_use.read(), in_use.begin() as transaction:
        workspaces.create(transaction, id=uuid4(), at=noon, name="not yet")
        assert backup.copy(in_use, target) == target.stat().st_size > 0
    assert names_in(target) == ["committed", "default"]
    assert target.stat().st_mode & 0o777 == 0o600
    with closing(Database(f"sqlite:///{target}")) as copied:
        assert migrate.is_at_head(copied)
        with copied.begin() as transaction:
            workspaces.create(transaction, id=uuid4(), at=noon, name="goes on")


def test_a_file_that_is_there_is_never_written_over(in_use: Database, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_bytes(b"the backup of yesterday")
    with pytest.raises(FileExistsError):
        backup.copy(in_use, target)
    assert target.read_bytes() == b"the backup of yesterday"


def test_what_an_earlier_try_left_is_in_nobodys_way(in_use: Database, tmp_path: Path) -> None:
    (tmp_path / "copy.db.part").write_bytes(b"")
    backup.copy(in_use, tmp_path / "copy.db")
    assert names_in(tmp_path / "copy.db") == ["default"]


def test_a_database_that_cannot_be_copied_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database " * 1000)
    before = sorted(tmp_path.iterdir())
    for name in ("broken.db", "none.db"):
        with (
            closing(Database(f"sqlite:///{tmp_path / name}")) as database,
            pytest.raises(DatabaseUnavailable),
        ):
            backup.copy(database, tmp_path / "copy.db")
        assert sorted(tmp_path.iterdir()) == before


def test_a_damaged_database_is_no_backup(in_use: Database, tmp_path: Path) -> None:
    file = Path(str(in_use.url.database))
    in_use.close()
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'workspaces'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(file.read_bytes())
    data[(root - 1) * size : root * size] = b"\xff" * size
    file.write_bytes(data)
    with pytest.raises(DatabaseUnavailable):
        backup.copy(in_use, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_postgres_has_a_tool_of_its_own(tmp_path: Path) -> None:
    database = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(ValueError, match="pg_dump"):
        backup.copy(database, tmp_path / "copy.db")
