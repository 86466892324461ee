"""/readyz answers soon, whatever the database does, and asks it one question at a time."""

import asyncio
import threading

import pytest

from service.api.readiness import Readiness
from service.errors import DatabaseUnavailable, ShuttingDown
from service.store import migrate
from service.store.database import Database


class _Hanging:
    """A database that answers when it is let."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked = 0
        self.answer: bool | Exception = True

    def is_at_head(self, _database: Database) -> bool:
        self.asked += 1
        self.go_on.wait(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> _Hanging:
    """Return what stands in for the database."""
    made = _Hanging()
    monkeypatch.setattr(migrate, "is_at_head", made.is_at_head)
    return made


def _ready(within_seconds: float) -> Readiness:
    return Readiness(Database("sqlite:///unused.db"), within_seconds=within_seconds)


def test_a_database_that_hangs_is_not_ready_and_is_not_asked_again(hanging: _Hanging) -> None:
    ready = _ready(0.01)

    async def scene() -> None:
        for _ in range(5):
            with pytest.raises(DatabaseUnavailable, match=r"within 0\.01 s"):
                await ready.require()
        assert hanging.asked == 1
        hanging.go_on.set()
        assert ready._asked is not None
        await ready._asked
        await _ready(60).require()

    asyncio.run(scene())
    ready.close()


def test_a_failure_of_the_database_is_told_and_the_next_question_is_a_new_one(hanging: _Hanging) -> None:
    hanging.go_on.set()
    ready = _ready(60)

    async def scene() -> None:
        hanging.answer = DatabaseUnavailable("gone")
        with pytest.raises(DatabaseUnavailable, match="gone"):
            await ready.require()
        hanging.answer = False
        with pytest.raises(DatabaseUnavailable, match="stallbudget migrate"):
            await ready.require()
        hanging.answer = True
        await ready.require()
        assert hanging.asked == 3

    asyncio.run(scene())
    ready.close()


def test_a_process_that_is_to_end_is_not_ready_and_asks_no_database(hanging: _Hanging) -> None:
    ready = _ready(60)
    ready.end()

    async def scene() -> None:
        with pytest.raises(ShuttingDown):
            await ready.require()

    asyncio.run(scene())
    assert hanging.asked == 0
    ready.close()
