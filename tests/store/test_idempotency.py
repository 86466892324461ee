from contextlib import closing
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from service.errors import DatabaseUnavailable, KeyReused, StillRunning
from service.store import idempotency
from service.store.database import Database
from service.store.idempotency import KEPT, Done
from tests.store.conftest import CountStatements

OWNER = UUID(int=7)
DONE = Done(status=201, resource_id=UUID(int=9))


def claim(database: Database, at: datetime, *, key: str = "k", sha256: str = "a" * 64) -> Done | None:
    """Claim a key, and keep what became of it where it is the first."""
    with database.begin() as transaction:
        found = idempotency.claim(transaction, owner_id=OWNER, key=key, at=at, request_sha256=sha256)
        if found is None:
            idempotency.keep(transaction, owner_id=OWNER, key=key, done=DONE)
        return found


def test_the_first_is_done_and_the_next_are_told_what_became_of_it(
    database: Database, noon: datetime
) -> None:
    assert claim(database, noon) is None
    assert claim(database, noon) == DONE
    with pytest.raises(KeyReused):
        claim(database, noon, sha256="b" * 64)


def test_a_key_is_free_again_after_a_day(database: Database, noon: datetime) -> None:
    claim(database, noon)
    assert claim(database, noon + KEPT - timedelta(microseconds=1)) == DONE
    assert claim(database, noon + KEPT, sha256="b" * 64) is None


def test_what_is_undone_leaves_the_key_free(database: Database, noon: datetime) -> None:
    def fail() -> None:
        with database.begin() as transaction:
            idempotency.claim(transaction, owner_id=OWNER, key="k", at=noon, request_sha256="a" * 64)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert claim(database, noon, sha256="b" * 64) is None


def test_what_is_deleted_is_forgotten(database: Database, noon: datetime) -> None:
    claim(database, noon)
    with database.begin() as transaction:
        idempotency.forget(transaction, [uuid4(), DONE.resource_id])
    assert claim(database, noon) is None


def test_one_that_another_transaction_is_doing_is_waited_for_and_given_up(
    database: Database, database_url: str, noon: datetime
) -> None:
    with closing(Database(database_url, lock_seconds=0.05)) as other, database.begin() as transaction:
        idempotency.claim(transaction, owner_id=OWNER, key="k", at=noon, request_sha256="a" * 64)
        # SQLite has one writer; Postgres tells this wait from others.
        with pytest.raises(DatabaseUnavailable if database.is_sqlite else StillRunning):
            claim(other, noon)


def test_a_claim_takes_few_statements(
    database: Database, noon: datetime, count_statements: CountStatements
) -> None:
    with count_statements() as statements:
        claim(database, noon)
    assert len(statements) == 3
