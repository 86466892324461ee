"""What a database holds, looked at past the service, and whether it is whole."""

import hashlib
from contextlib import closing
from uuid import UUID

from sqlalchemy import func, select

from service.store import benchmark_runs, documents, tables
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database
from tests.faults.asking import Json, document


def assert_whole(database_url: str, scenario_id: str, receipts: dict[int, Json], *, sent: int) -> set[int]:
    """Check that every acknowledged run is there as it was acknowledged, and no half of any other.

    Args:
        database_url: Where.
        scenario_id: The scenario that the runs are of.
        receipts: What was acknowledged, by the number of the document.
        sent: How many documents were sent; those of the numbers below it.

    Returns:
        The numbers of the documents that are there.
    """
    number_of = {hashlib.sha256(document(number)).hexdigest(): number for number in range(sent)}
    with closing(Database(database_url)) as database, database.read() as transaction:
        if database.is_sqlite:
            assert transaction.exec_driver_sql("PRAGMA integrity_check").all() == [("ok",)]
            assert transaction.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        runs = {
            str(run.id): run
            for run in benchmark_runs.of_every_storage(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=UUID(scenario_id)
            )
        }
        kept = tables.benchmark_documents.join(tables.document_bodies)
        bodies = {
            str(row.run_id): documents.unpack(row.body)
            for row in transaction.execute(
                select(tables.benchmark_documents.c.run_id, tables.document_bodies.c.body).select_from(kept)
            )
        }
        counts = [
            transaction.scalar(select(func.count()).select_from(table))
            for table in (tables.benchmark_documents, tables.document_bodies)
        ]
        created = transaction.execute(
            select(tables.audit_events.c.resource_id, tables.audit_events.c.new_version).where(
                tables.audit_events.c.resource == "benchmark_run", tables.audit_events.c.action == "create"
            )
        ).all()
    # No run without its document and its line of the audit trail, nor the other way round, nor any twice.
    assert runs.keys() == bodies.keys()
    assert counts == [len(runs), len(runs)]
    assert sorted(str(row.resource_id) for row in created) == sorted(runs)
    there = set()
    for id_, run in runs.items():
        number = number_of[run.sha256]
        assert bodies[id_] == document(number)
        assert number not in there
        there.add(number)
    assert {str(row.resource_id): row.new_version for row in created} == {
        id_: run.sha256 for id_, run in runs.items()
    }
    for receipt in receipts.values():
        assert runs[receipt["id"]].model_dump(mode="json", exclude_none=True) == receipt
    assert there >= receipts.keys()
    return there


def count(database_url: str, table: str) -> int:
    """Return how many rows a table has."""
    with closing(Database(database_url)) as database, database.read() as transaction:
        counted = transaction.scalar(select(func.count()).select_from(tables.metadata.tables[table]))
        assert counted is not None
        return counted
