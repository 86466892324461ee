from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from service.errors import NotFound, RunIdTaken, RunsExist, UnreadableDocument
from service.parsers.measurement import DcpOp, DcpOperation, DcpSummary
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.spec import ScenarioSpec
from service.store import benchmark_runs, documents, scenarios, tables
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database
from service.store.scenarios import Scenario
from tests.store.conftest import CountStatements, MakeRun

DOCUMENT = b"IOR-4.0.0\r\n\x00\xff\xfe"


def store(database: Database, run: BenchmarkRun, document: bytes = DOCUMENT) -> tuple[BenchmarkRun, bool]:
    with database.begin() as transaction:
        return benchmark_runs.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, run=run, document=documents.pack(document)
        )


def test_what_was_stored_comes_back_equal(database: Database, make_run: MakeRun) -> None:
    run = make_run(
        DOCUMENT,
        note="nachts, alle Knoten frei 🌙",
        conditions=[Condition.UNDER_READ_LOAD, Condition.DEGRADED],
        ran_at=datetime(2026, 11, 1, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-7))),
    )
    stored, is_new = store(database, run)
    assert is_new
    assert stored == run
    with database.read() as transaction:
        read = benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id)
        assert (
            benchmark_runs.find(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=run.scenario_id, sha256=run.sha256
            )
            == run
        )
        document = benchmark_runs.get_document(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id)
    assert read.model_dump() == stored.model_dump() == run.model_dump()
    assert read.model_dump_json() == stored.model_dump_json()
    assert (document.body, document.sha256, document.format) == (DOCUMENT, run.sha256, "ior-text")


def test_a_run_of_checkpoint_operations_comes_back_equal(database: Database, make_run: MakeRun) -> None:
    operation = DcpOperation(
        op=DcpOp.ASYNC_SAVE,
        status="ok",
        world_size=16,
        nodes=2,
        ranks_reporting=16,
        partial_ranks=False,
        blocked_seconds=0.1 + 0.2,
        checkpoint="schritt-10 \x00",
    )
    run = make_run(
        run_id="nightly-1",
        measurements=None,
        operations=[operation],
        summary={DcpOp.ASYNC_SAVE: DcpSummary(count=1, gb_per_second=1e-300)},
    )
    store(database, run)
    with database.read() as transaction:
        read = benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id)
    assert read == run
    assert read.operations == [operation]
    assert read.summary is not None
    assert [type(op) for op in read.summary] == [DcpOp]


def test_a_run_with_a_number_that_json_has_not_is_not_stored(database: Database, make_run: MakeRun) -> None:
    operation = DcpOperation(
        op=DcpOp.SAVE,
        status="ok",
        world_size=1,
        nodes=1,
        ranks_reporting=1,
        partial_ranks=False,
        blocked_seconds=float("inf"),
    )
    with pytest.raises(ValueError, match="JSON"):
        store(database, make_run(operations=[operation]))


def test_a_name_with_nul_is_refused_on_both_databases(database: Database, make_run: MakeRun) -> None:
    with pytest.raises(UnreadableDocument, match="run_id holds a NUL"):
        store(database, make_run(run_id="a\x00b"))


def test_the_same_bytes_again_are_the_run_as_first_stored(database: Database, make_run: MakeRun) -> None:
    first = make_run(DOCUMENT, note="first")
    store(database, first)
    assert store(database, make_run(DOCUMENT, note="second", storage_label="pfs-b")) == (first, False)
    with database.read() as transaction:
        page = benchmark_runs.list_page(
            transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=first.scenario_id, limit=10
        )
    assert page.items == [first]


def test_the_same_bytes_in_another_scenario_are_another_run(
    database: Database, make_run: MakeRun, noon: datetime, scenario: Scenario
) -> None:
    with database.begin() as transaction:
        other = scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="other", spec=scenario.spec
        )
    for scenario_id in (scenario.id, other.id):
        assert store(database, make_run(DOCUMENT, run_id="r", scenario_id=scenario_id))[1]


def test_a_run_id_again_with_other_bytes_is_refused_and_the_transaction_goes_on(
    database: Database, make_run: MakeRun
) -> None:
    store(database, make_run(b"one", run_id="nightly"), b"one")
    with database.begin() as transaction:
        with pytest.raises(RunIdTaken, match="nightly"):
            benchmark_runs.create(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                run=make_run(b"two", run_id="nightly"),
                document=documents.pack(b"two"),
            )
        assert benchmark_runs.create(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            run=make_run(b"two", run_id="later"),
            document=documents.pack(b"two"),
        )[1]
    assert store(database, make_run(b"one", run_id="nightly"), b"one")[1] is False


def test_a_scenario_that_is_gone_or_was_never_at_the_revision_is_not_found(
    database: Database, make_run: MakeRun, nowhere: UUID
) -> None:
    with pytest.raises(NotFound, match=str(nowhere)):
        store(database, make_run(scenario_id=nowhere))
    with pytest.raises(NotFound, match="revision 2"):
        store(database, make_run(scenario_revision=2))


def test_what_is_not_there_is_not_found(database: Database, nowhere: UUID) -> None:
    with database.begin() as transaction:
        for ask in (
            lambda: benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere),
            lambda: benchmark_runs.get_document(transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere),
            lambda: benchmark_runs.delete(transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere),
            lambda: benchmark_runs.list_page(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=nowhere, limit=10
            ),
        ):
            with pytest.raises(NotFound, match=str(nowhere)):
                ask()
        assert (
            benchmark_runs.find(transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=nowhere, sha256="0")
            is None
        )
        assert (
            benchmark_runs.newest_label(transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=nowhere)
            is None
        )
        assert (
            benchmark_runs.for_judgement(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=nowhere, storage_label=None
            )
            == []
        )


def test_fifty_identical_uploads_at_once_make_one_run(database: Database, make_run: MakeRun) -> None:
    runs = [make_run(DOCUMENT, run_id="same") for _ in range(50)]
    # No more threads than connections: the rest would only wait for one.
    together = Barrier(10)

    def upload(run: BenchmarkRun) -> tuple[BenchmarkRun, bool]:
        together.wait()
        return store(database, run)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(upload, runs))
    assert sum(is_new for _, is_new in answers) == 1
    assert len({run.id for run, _ in answers}) == 1
    with database.read() as transaction:
        for table in (tables.benchmark_runs, tables.benchmark_documents, tables.document_bodies):
            assert transaction.scalar(select(func.count()).select_from(table)) == 1


def test_of_uploads_at_once_with_one_run_id_and_other_bytes_one_is_stored(
    database: Database, make_run: MakeRun
) -> None:
    documents = [f"{index}".encode() for index in range(10)]
    runs = [make_run(document, run_id="same") for document in documents]
    together = Barrier(10)

    def upload(run: BenchmarkRun, document: bytes) -> bool:
        together.wait()
        try:
            return store(database, run, document)[1]
        except RunIdTaken:
            return False

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(upload, runs, documents)) == 1


def test_an_upload_and_the_deletion_of_its_scenario_at_once_leave_no_orphan(
    database: Database, make_run: MakeRun, scenario: Scenario
) -> None:
    runs = [make_run(f"{index}".encode()) for index in range(9)]
    together = Barrier(10)

    def upload(run: BenchmarkRun) -> bool:
        together.wait()
        try:
            return store(database, run)[1]
        except NotFound:
            return False

    def delete(with_runs: bool) -> bool:
        together.wait()
        try:
            with database.begin() as transaction:
                scenarios.delete(
                    transaction,
                    workspace_id=DEFAULT_WORKSPACE,
                    id=scenario.id,
                    if_revision=None,
                    with_runs=with_runs,
                )
        except RunsExist:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        uploads = [pool.submit(upload, run) for run in runs]
        deleted = pool.submit(delete, True).result()
        for done in uploads:
            done.result()
    assert deleted
    with database.read() as transaction:
        assert transaction.scalar(select(func.count()).select_from(tables.benchmark_runs)) == 0


def test_pages_hold_every_run_once_and_may_be_of_one_label(
    database: Database, make_run: MakeRun, scenario: Scenario, noon: datetime
) -> None:
    made = [
        make_run(f"{index}".encode(), received_at=noon + timedelta(seconds=index // 3), storage_label=label)
        for index, label in enumerate(["a", "b", None] * 3)
    ]
    for run in reversed(made):
        store(database, run)
    made.sort(key=lambda run: (run.received_at, run.id))
    for label, unlabelled in ((None, False), ("a", False), (None, True)):
        expected = [run for run in made if run.storage_label == label or (label is None and not unlabelled)]
        read: list[BenchmarkRun] = []
        after = None
        with database.read() as transaction:
            while True:
                page = benchmark_runs.list_page(
                    transaction,
                    workspace_id=DEFAULT_WORKSPACE,
                    scenario_id=scenario.id,
                    limit=2,
                    after=after,
                    storage_label=label,
                    unlabelled=unlabelled,
                )
                read += page.items
                after = page.next_after
                if after is None:
                    break
        assert read == expected


def test_a_deleted_run_is_gone_with_its_document_and_can_be_posted_again(
    database: Database, make_run: MakeRun
) -> None:
    first = make_run(DOCUMENT)
    store(database, first)
    with database.begin() as transaction:
        benchmark_runs.delete(transaction, workspace_id=DEFAULT_WORKSPACE, id=first.id)
        with pytest.raises(NotFound):
            benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=first.id)
        for table in (tables.benchmark_documents, tables.document_bodies):
            assert transaction.scalar(select(func.count()).select_from(table)) == 0
    assert store(database, make_run(DOCUMENT))[1]


def test_the_newest_label_goes_by_when_a_run_ran_then_by_when_it_came(
    database: Database, make_run: MakeRun, scenario: Scenario, noon: datetime
) -> None:
    def newest() -> str | None:
        with database.read() as transaction:
            return benchmark_runs.newest_label(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id
            )

    assert newest() is None
    day = timedelta(days=1)
    for label, received_at, ran_at, expected in (
        ("a", noon, None, "a"),
        ("b", noon + day, noon - day, "a"),
        ("c", noon + day, noon, "c"),
        ("d", noon - day, noon + day, "d"),
        (None, noon + 2 * day, None, None),
        ("e", noon, noon + 9 * day, "e"),
    ):
        document = repr(label).encode()
        store(
            database,
            make_run(document, storage_label=label, received_at=received_at, ran_at=ran_at),
            document,
        )
        assert newest() == expected


def test_a_judgement_gets_the_runs_of_its_label_in_one_query(
    database: Database, make_run: MakeRun, scenario: Scenario, count_statements: CountStatements
) -> None:
    made = [make_run(f"{index}".encode(), storage_label=("a", None)[index % 2]) for index in range(20)]
    for run in made:
        store(database, run)
    for label, expected in (("a", made[::2]), (None, made[1::2])):
        with count_statements() as statements, database.read() as transaction:
            runs = benchmark_runs.for_judgement(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id, storage_label=label
            )
        assert runs == expected
        assert len(statements) == 1


def test_the_runs_of_every_storage_come_in_one_query(
    database: Database,
    make_run: MakeRun,
    scenario: Scenario,
    noon: datetime,
    count_statements: CountStatements,
) -> None:
    made = [
        make_run(f"{index}".encode(), storage_label=label, ran_at=noon + timedelta(days=index))
        for index, label in enumerate(["a", "b", None])
    ]
    for run in made:
        store(database, run)
    with count_statements() as statements, database.read() as transaction:
        assert (
            benchmark_runs.of_every_storage(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id
            )
            == made
        )
        assert len(statements) == 1
        period = benchmark_runs.Period(begin=noon + timedelta(days=1))
        assert (
            benchmark_runs.of_every_storage(
                transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id, period=period
            )
            == made[1:]
        )


def test_the_runs_on_a_storage_come_with_their_scenarios_in_two_queries(
    database: Database,
    make_run: MakeRun,
    scenario: Scenario,
    spec: ScenarioSpec,
    noon: datetime,
    count_statements: CountStatements,
) -> None:
    with database.begin() as transaction:
        others = [
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name=name, spec=spec
            )
            for name in ("b", "c")
        ]
    made = [
        make_run(f"{index}".encode(), scenario_id=[scenario, others[0]][index % 2].id, storage_label="pfs")
        for index in range(20)
    ]
    elsewhere = make_run(b"other", scenario_id=others[1].id, storage_label="other")
    for run in [*made, elsewhere]:
        store(database, run)
    with count_statements() as statements, database.read() as transaction:
        runs, measured_for = benchmark_runs.on_storage(
            transaction, workspace_id=DEFAULT_WORKSPACE, storage_label="pfs"
        )
        assert len(statements) == 2
        assert runs == made
        assert sorted(each.name for each in measured_for) == ["b", "llama"]
        period = benchmark_runs.Period(end=made[1].received_at)
        early, of_early = benchmark_runs.on_storage(
            transaction, workspace_id=DEFAULT_WORKSPACE, storage_label="pfs", period=period
        )
        assert (early, [each.name for each in of_early]) == (made[:1], ["llama"])


def test_no_query_but_that_for_the_document_loads_it(
    database: Database, make_run: MakeRun, scenario: Scenario, count_statements: CountStatements
) -> None:
    run = make_run(DOCUMENT)
    store(database, run)
    with count_statements() as statements, database.read() as transaction:
        benchmark_runs.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=run.id)
        benchmark_runs.list_page(
            transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id, limit=10
        )
        benchmark_runs.newest_label(transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id)
        benchmark_runs.for_judgement(
            transaction, workspace_id=DEFAULT_WORKSPACE, scenario_id=scenario.id, storage_label="pfs-a"
        )
    assert len(statements) == 4
    assert not [statement for statement in statements if "documents" in statement]
