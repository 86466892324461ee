import hmac
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.errors import KeyEnded, NameTaken, NotFound
from service.store import keys, tables, workspaces
from service.store.caller import DEFAULT_WORKSPACE, AccessScope, included
from service.store.database import Database
from service.store.keys import ApiKey, Secret

SECRET = Secret("0a" * 32, b"salt" * 4)
OTHER = Secret("0b" * 32, b"more" * 4)


@pytest.fixture
def key(database: Database, noon: datetime) -> ApiKey:
    with database.begin() as transaction:
        return keys.create(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=uuid4(),
            at=noon,
            name="für CI",
            scopes=[AccessScope.WRITE, AccessScope.READ, AccessScope.READ],
            secret=SECRET,
            expires_at=noon + timedelta(days=1),
        )


def verify(database: Database, id_: UUID, secret: Secret, at: datetime) -> keys.Presented | None:
    with database.read() as transaction:
        return keys.verify(transaction, id=id_, secret=secret.text, at=at)


def test_a_key_is_written_and_read_back() -> None:
    id_ = uuid4()
    written = keys.written(id_, SECRET)
    assert keys.parts(written) == (id_, SECRET.text)
    for wrong in (
        "",
        written[:-1],
        written + "0",
        written.upper(),
        written.replace("sbk", "ghp"),
        f" {written}",
    ):
        assert keys.parts(wrong) is None
    assert SECRET.text not in repr(SECRET)


def test_what_is_kept_is_a_keyed_hash(database: Database, key: ApiKey) -> None:
    with database.read() as transaction:
        row = transaction.execute(tables.api_keys.select()).one()
    assert row.hash == hmac.new(SECRET.salt, SECRET.text.encode(), "sha256").digest()
    kept = b"".join(value for value in row if isinstance(value, bytes)) + repr(row).encode()
    assert SECRET.text.encode() not in kept
    assert bytes.fromhex(SECRET.text) not in kept


def test_the_right_secret_tells_whose_key_it_is(database: Database, key: ApiKey, noon: datetime) -> None:
    presented = verify(database, key.id, SECRET, noon)
    assert presented is not None
    assert presented.ended is None
    caller = presented.caller
    assert (caller.workspace_id, caller.key_id, caller.name) == (DEFAULT_WORKSPACE, key.id, "für CI")
    assert caller.scopes == {AccessScope.READ, AccessScope.WRITE, AccessScope.SUBMIT}
    assert key.scopes == [AccessScope.READ, AccessScope.WRITE]


def test_an_unknown_key_costs_the_comparisons_of_a_known_one(
    database: Database, key: ApiKey, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    compared = 0

    def compare(one: bytes, other: bytes) -> bool:
        nonlocal compared
        compared += 1
        assert len(one) == len(other) == 32
        return one == other

    monkeypatch.setattr(keys.hmac, "compare_digest", compare)  # type: ignore[attr-defined]
    for id_, secret in ((key.id, OTHER), (uuid4(), OTHER), (key.id, SECRET)):
        compared = 0
        verify(database, id_, secret, noon)
        counts.append(compared)
    assert counts == [2, 2, 2]


def test_the_hash_of_nobody_is_matched_by_no_secret(database: Database, key: ApiKey, noon: datetime) -> None:
    for secret in (OTHER, Secret("0" * 64, b""), Secret("", b"")):
        assert verify(database, key.id, secret, noon) is None
        assert verify(database, uuid4(), secret, noon) is None


def test_a_key_ends_at_its_time(database: Database, key: ApiKey, noon: datetime) -> None:
    for passed, ended in ((timedelta(hours=23), None), (timedelta(days=1), "has expired")):
        presented = verify(database, key.id, SECRET, noon + passed)
        assert presented is not None
        assert (presented.ended, presented.ends_at) == (ended, noon + timedelta(days=1))
    with database.begin() as transaction, pytest.raises(KeyEnded, match="has expired"):
        keys.rotate(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=key.id,
            at=noon + timedelta(days=1),
            secret=OTHER,
            old_expires_at=noon,
        )


def test_of_three_secrets_the_last_two_are_good_in_the_time_of_grace(
    database: Database, key: ApiKey, noon: datetime
) -> None:
    third = Secret("0c" * 32, b"last" * 4)
    for secret in (OTHER, third):
        with database.begin() as transaction:
            rotated = keys.rotate(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=key.id,
                at=noon,
                secret=secret,
                old_expires_at=noon + timedelta(hours=1),
            )
    assert (rotated.rotated_at, rotated.old_expires_at) == (noon, noon + timedelta(hours=1))
    assert verify(database, key.id, SECRET, noon) is None
    for secret, later in ((OTHER, "was given another secret"), (third, None)):
        for at, expected in ((noon, None), (noon + timedelta(hours=1), later)):
            presented = verify(database, key.id, secret, at)
            assert presented is not None
            assert presented.ended == expected


def test_another_workspaces_key_is_not_there(database: Database, key: ApiKey, noon: datetime) -> None:
    with database.begin() as transaction:
        other = workspaces.create(transaction, id=uuid4(), at=noon, name="other").id
        assert keys.list_page(transaction, workspace_id=other, limit=9).items == []
        for ask in (
            lambda: keys.get(transaction, workspace_id=other, id=key.id),
            lambda: keys.revoke(transaction, workspace_id=other, id=key.id, at=noon),
            lambda: keys.rotate(
                transaction, workspace_id=other, id=key.id, at=noon, secret=OTHER, old_expires_at=noon
            ),
        ):
            with pytest.raises(NotFound, match=str(key.id)):
                ask()
        with pytest.raises(NameTaken, match="other"):
            workspaces.create(transaction, id=uuid4(), at=noon, name="other")
        assert keys.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=key.id) == key


def test_a_revoked_key_stays_and_its_first_revocation_counts(
    database: Database, key: ApiKey, noon: datetime
) -> None:
    with database.begin() as transaction:
        for minute, changed in ((1, True), (2, False)):
            at = noon + timedelta(minutes=minute)
            assert keys.revoke(transaction, workspace_id=DEFAULT_WORKSPACE, id=key.id, at=at) is changed
        read = keys.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=key.id)
        assert read.revoked_at == noon + timedelta(minutes=1)
        assert keys.any_exist(transaction)
    presented = verify(database, key.id, SECRET, noon)
    assert presented is not None
    assert presented.ended == "was revoked"


def test_a_database_without_keys_or_without_their_table_has_none(
    database: Database, empty_database: Database
) -> None:
    for each in (database, empty_database):
        with each.read() as transaction:
            assert not keys.any_exist(transaction)


def test_pages_hold_every_key_once(database: Database, noon: datetime) -> None:
    with database.begin() as transaction:
        made = [
            keys.create(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=uuid4(),
                at=noon,
                name="k",
                scopes=[AccessScope.READ],
                secret=SECRET,
            )
            for _ in range(5)
        ]
        read: list[ApiKey] = []
        after = None
        for _ in range(3):
            page = keys.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=2, after=after)
            read += page.items
            after = page.next_after
    assert after is None
    assert read == sorted(made, key=lambda each: each.id)


def test_scopes_include_what_they_say() -> None:
    assert included([AccessScope.SUBMIT]) == {AccessScope.SUBMIT}
    assert included([AccessScope.READ, AccessScope.SUBMIT]) == {AccessScope.READ, AccessScope.SUBMIT}
    assert included([AccessScope.ADMIN]) == set(AccessScope)
    assert included([]) == frozenset()


def test_the_default_workspace_is_there_from_the_start(database: Database) -> None:
    with database.read() as transaction:
        assert workspaces.find(transaction, name="default").id == DEFAULT_WORKSPACE
        assert transaction.scalar(text("SELECT count(*) FROM workspaces")) == 1
        with pytest.raises(NotFound, match="nowhere"):
            workspaces.find(transaction, name="nowhere")
