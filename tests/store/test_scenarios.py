from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, update

from service.errors import NameTaken, NotFound, RunsExist, Stale
from service.sizing.spec import SaveMode, ScenarioSpec
from service.store import benchmark_runs, documents, scenarios, tables
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database
from service.store.scenarios import Scenario
from tests.store.conftest import CountStatements, MakeRun


def test_what_was_stored_comes_back_equal(database: Database, scenario: Scenario) -> None:
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id) == scenario


def test_a_spec_keeps_what_was_said_and_no_defaults(
    database: Database, scenario: Scenario, spec: ScenarioSpec
) -> None:
    with database.read() as transaction:
        read = scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id).spec
    assert read == spec
    assert read.model_dump(exclude_unset=True) == spec.model_dump(exclude_unset=True)
    assert "bytes_per_parameter" not in read.model.model_fields_set


def test_numbers_survive_to_the_last_bit(database: Database, spec: ScenarioSpec, noon: datetime) -> None:
    said = spec.model_dump(exclude_unset=True)
    said["model"] = {"parameters": 10**14 - 1, "bytes_per_parameter": 0.1 + 0.2, "extra_bytes": 10**15 - 1}
    said["save"] = {"mode": "sync", "blocking_seconds": 1.0000000000000002}
    exact = ScenarioSpec.model_validate(said)
    with database.begin() as transaction:
        stored = scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="exact", spec=exact
        )
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=stored.id).spec == exact


@pytest.mark.parametrize("name", ["Größe ∑ 🚀", "a\tb\n'\"\\%s;--", "\ufeff‮\x01", "e\u0301 é", "x" * 200])
def test_any_text_survives(database: Database, spec: ScenarioSpec, noon: datetime, name: str) -> None:
    with database.begin() as transaction:
        stored = scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name=name, spec=spec
        )
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=stored.id).name == name


def test_names_that_differ_in_case_or_composition_are_two_names(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        for name in ("é", "e\u0301", "É", "a", "A", "a "):
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name=name, spec=spec
            )


def test_a_time_comes_back_as_the_same_moment_in_utc(database: Database, spec: ScenarioSpec) -> None:
    there = datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    with database.begin() as transaction:
        created = scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=there, name="kathmandu", spec=spec
        )
    with database.read() as transaction:
        read = scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=created.id)
    for scenario in (created, read):
        assert scenario.created_at == there
        assert scenario.created_at.utcoffset() == timedelta(0)


def test_times_sort_as_the_moments_do_whatever_their_zones(database: Database, spec: ScenarioSpec) -> None:
    moments = [
        datetime(year, 1, 1, hour, 0, 0, microsecond, tzinfo=timezone(timedelta(hours=offset)))
        for year in (1, 999, 1969, 2026, 9999)
        for hour in (0, 23)
        for microsecond in (0, 1, 999_999)
        for offset in (-12, 0, 14)
    ]
    with database.begin() as transaction:
        made = [
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=at, name=f"{index}", spec=spec
            )
            for index, at in enumerate(moments)
        ]
    made.sort(key=lambda scenario: (scenario.created_at, scenario.id))
    with database.read() as transaction:
        assert scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=100).items == made


def test_a_moment_for_which_utc_has_no_date_becomes_the_nearest(
    database: Database, spec: ScenarioSpec
) -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    with database.begin() as transaction:
        for name, at in (("first", datetime.min), ("last", datetime.max)):
            zone = east if name == "first" else west
            scenarios.create(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=uuid4(),
                at=at.replace(tzinfo=zone),
                name=name,
                spec=spec,
            )
    with database.read() as transaction:
        times = [
            item.created_at
            for item in scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=2).items
        ]
    assert times == [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]


def test_a_time_without_a_zone_is_refused_by_its_column(database: Database, scenario: Scenario) -> None:
    with pytest.raises(Exception, match="no time zone"), database.begin() as transaction:
        transaction.execute(update(tables.scenarios).values(updated_at=datetime(2026, 1, 1)))


def test_a_taken_name_is_refused_and_the_transaction_goes_on(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        with pytest.raises(NameTaken, match="llama"):
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="llama", spec=spec
            )
        scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="other", spec=spec
        )
    with database.read() as transaction:
        names = [
            item.name
            for item in scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=10).items
        ]
    assert sorted(names) == ["llama", "other"]


def test_what_is_not_there_is_not_found(
    database: Database, spec: ScenarioSpec, noon: datetime, nowhere: UUID
) -> None:
    with database.begin() as transaction:
        for ask in (
            lambda: scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere),
            lambda: scenarios.replace(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=nowhere,
                at=noon,
                name="a",
                spec=spec,
                if_revision=None,
            ),
            lambda: scenarios.delete(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere, if_revision=None, with_runs=True
            ),
            lambda: scenarios.list_revisions(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere, limit=10
            ),
            lambda: scenarios.get_revision(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere, revision=1
            ),
            lambda: scenarios.require(transaction, workspace_id=DEFAULT_WORKSPACE, id=nowhere),
        ):
            with pytest.raises(NotFound, match=str(nowhere)):
                ask()


def test_pages_hold_every_scenario_once_in_the_order_of_creation(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    made = []
    with database.begin() as transaction:
        # Two at each moment: the id decides between them.
        for index in range(10):
            at = noon + timedelta(microseconds=index // 2)
            made.append(
                scenarios.create(
                    transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=at, name=f"{index}", spec=spec
                )
            )
    made.sort(key=lambda item: (item.created_at, item.id))
    read: list[Scenario] = []
    after = None
    with database.read() as transaction:
        for _ in range(4):
            page = scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=3, after=after)
            read += page.items
            after = page.next_after
            if after is None:
                break
    assert read == made


def test_a_page_that_holds_exactly_the_rest_is_the_last(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        for name in ("a", "b"):
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name=name, spec=spec
            )
    with database.read() as transaction:
        assert scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=2).next_after is None
        assert (
            scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=1).next_after is not None
        )


def test_a_replacement_is_the_next_revision_and_the_old_one_stays(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    later = noon + timedelta(days=1)
    async_spec = ScenarioSpec.model_validate(
        spec.model_dump(exclude_unset=True) | {"save": {"mode": "async", "blocking_seconds": 5}}
    )
    with database.begin() as transaction:
        replaced = scenarios.replace(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=scenario.id,
            at=later,
            name="llama 3",
            spec=async_spec,
            if_revision=1,
        )
    assert (replaced.revision, replaced.created_at, replaced.updated_at) == (2, noon, later)
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id) == replaced
        first = scenarios.get_revision(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, revision=1
        )
        second = scenarios.get_revision(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, revision=2
        )
        with pytest.raises(NotFound, match="no revision 3"):
            scenarios.get_revision(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, revision=3)
        assert scenarios.list_revisions(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, limit=9
        ).items == [first, second]
        page = scenarios.list_revisions(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, limit=1)
        assert (page.items, page.next_after) == ([first], 1)
        page = scenarios.list_revisions(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, limit=1, after=1
        )
        assert (page.items, page.next_after) == ([second], None)
    assert (first.name, first.spec, first.created_at) == ("llama", spec, noon)
    assert (second.name, second.spec, second.created_at) == ("llama 3", async_spec, later)


def test_a_replacement_of_what_is_no_longer_so_is_stale(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction, pytest.raises(Stale, match="at revision 1, no longer at 7"):
        scenarios.replace(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=scenario.id,
            at=noon,
            name="a",
            spec=spec,
            if_revision=7,
        )
    with database.begin() as transaction, pytest.raises(Stale):
        scenarios.delete(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, if_revision=2, with_runs=True
        )
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id) == scenario


def test_without_a_revision_any_is_replaced(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        for revision in (2, 3):
            replaced = scenarios.replace(
                transaction,
                workspace_id=DEFAULT_WORKSPACE,
                id=scenario.id,
                at=noon,
                name="llama",
                spec=spec,
                if_revision=None,
            )
            assert replaced.revision == revision


def test_a_replacement_cannot_take_a_name_either(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        other = scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="other", spec=spec
        )
    with pytest.raises(NameTaken, match="llama"), database.begin() as transaction:
        scenarios.replace(
            transaction,
            workspace_id=DEFAULT_WORKSPACE,
            id=other.id,
            at=noon,
            name="llama",
            spec=spec,
            if_revision=1,
        )
    with database.read() as transaction:
        assert scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=other.id) == other


def test_of_replacements_of_the_same_revision_one_wins(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    together = Barrier(8)

    def replace(index: int) -> bool:
        together.wait()
        try:
            with database.begin() as transaction:
                scenarios.replace(
                    transaction,
                    workspace_id=DEFAULT_WORKSPACE,
                    id=scenario.id,
                    at=noon,
                    name=f"{index}",
                    spec=spec,
                    if_revision=1,
                )
        except Stale:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(replace, range(8)))
    assert sum(won) == 1
    with database.read() as transaction:
        now = scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id)
    assert (now.revision, now.name) == (2, f"{won.index(True)}")


def test_of_scenarios_created_at_once_under_one_name_one_is_stored(
    database: Database, spec: ScenarioSpec, noon: datetime
) -> None:
    together = Barrier(8)

    def create(_: int) -> bool:
        together.wait()
        try:
            with database.begin() as transaction:
                scenarios.create(
                    transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="same", spec=spec
                )
        except NameTaken:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1
    with database.read() as transaction:
        assert len(scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=10).items) == 1


def test_a_deleted_scenario_is_gone_with_its_revisions_and_its_name_is_free(
    database: Database, scenario: Scenario, spec: ScenarioSpec, noon: datetime
) -> None:
    with database.begin() as transaction:
        scenarios.delete(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, if_revision=1, with_runs=False
        )
        assert transaction.scalar(select(func.count()).select_from(tables.scenario_revisions)) == 0
        scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name="llama", spec=spec
        )


def test_a_scenario_with_runs_is_deleted_only_when_told_so(
    database: Database, scenario: Scenario, make_run: MakeRun
) -> None:
    with database.begin() as transaction:
        benchmark_runs.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, run=make_run(), document=documents.pack(b"IOR-4.0.0")
        )
    with database.begin() as transaction, pytest.raises(RunsExist):
        scenarios.delete(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, if_revision=None, with_runs=False
        )
    with database.begin() as transaction:
        scenarios.delete(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id, if_revision=None, with_runs=True
        )
        for name, table in tables.metadata.tables.items():
            rows = transaction.scalar(select(func.count()).select_from(table))
            assert rows == (1 if name == "workspaces" else 0), name


def test_a_spec_that_this_version_would_refuse_is_shown_as_it_was_said(
    database: Database, scenario: Scenario
) -> None:
    said = (
        '{"model":{"preset":"a model that was","from_the_future":[1]},"cluster":{"gpus":99999999},'
        '"new_block":{},"failures":{"mtbf_hours":5.5},"restart":{"seconds":60},"restore":{"target_seconds":120},'
        '"save":{"mode":"sync","blocking_seconds":5,"headroom":2}}'
    )
    with database.begin() as transaction:
        transaction.execute(update(tables.scenario_revisions).values(spec=said))
    with database.read() as transaction:
        spec = scenarios.get(transaction, workspace_id=DEFAULT_WORKSPACE, id=scenario.id).spec
        assert scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=1).items[0].spec == spec
    assert spec.model_dump(mode="json", exclude_unset=True) == {
        "model": {"preset": "a model that was"},
        "cluster": {"gpus": 99_999_999},
        "failures": {"mtbf_hours": 5.5},
        "restart": {"seconds": 60.0},
        "restore": {"target_seconds": 120.0},
        "save": {"mode": "sync", "blocking_seconds": 5.0, "headroom": 2.0},
    }
    assert spec.save.mode is SaveMode.SYNC
    assert spec.cluster.gpus_per_node == 8
    assert spec.shards.files_per_writer == 1
    assert spec.prices is None


def test_a_list_is_one_query_whatever_its_length(
    database: Database, spec: ScenarioSpec, noon: datetime, count_statements: CountStatements
) -> None:
    with database.begin() as transaction:
        for index in range(20):
            scenarios.create(
                transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=noon, name=f"{index}", spec=spec
            )
    with count_statements() as statements, database.read() as transaction:
        assert len(scenarios.list_page(transaction, workspace_id=DEFAULT_WORKSPACE, limit=50).items) == 20
    assert len(statements) == 1
