"""Specs, scenarios and runs to store."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from service.parsers.measurement import Doubt, DoubtCode, Measurement, Operation, Repetition, spread
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.spec import ScenarioSpec
from service.store import scenarios
from service.store.caller import DEFAULT_WORKSPACE
from service.store.database import Database

NOON = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)

SPEC: dict[str, Any] = {
    "model": {"parameters": 405_000_000_000},
    "cluster": {"gpus": 16384, "gpus_per_node": 8},
    "failures": {"observed_failures": 419, "observed_hours": 1296.1, "observed_gpus": 16384},
    "restart": {"seconds": 600},
    "save": {"mode": "sync", "blocking_seconds": 60},
    "interval": {"rule": "fixed", "seconds": 600},
}

MakeRun = Callable[..., BenchmarkRun]
CountStatements = Callable[[], AbstractContextManager[list[str]]]


@pytest.fixture
def noon() -> datetime:
    return NOON


@pytest.fixture
def spec() -> ScenarioSpec:
    return ScenarioSpec.model_validate(SPEC)


@pytest.fixture
def scenario(database: Database, spec: ScenarioSpec) -> scenarios.Scenario:
    with database.begin() as transaction:
        return scenarios.create(
            transaction, workspace_id=DEFAULT_WORKSPACE, id=uuid4(), at=NOON, name="llama", spec=spec
        )


@pytest.fixture
def make_run(request: pytest.FixtureRequest) -> MakeRun:
    """Return a maker of runs, of the scenario unless told otherwise, each a second after the one before."""
    made = 0

    def make(document: bytes = b"IOR-4.0.0", **values: object) -> BenchmarkRun:
        nonlocal made
        made += 1
        if "scenario_id" not in values:
            values["scenario_id"] = request.getfixturevalue("scenario").id
        rates = (0.1 + 0.2, 1.815, 1e-9)
        return BenchmarkRun.model_validate(
            {
                "id": uuid4(),
                "scenario_revision": 1,
                "received_at": NOON + timedelta(seconds=made),
                "sha256": hashlib.sha256(document).hexdigest(),
                "document_bytes": len(document),
                "conditions": [Condition.IDLE],
                "tool": "ior",
                "tool_version": "4.0.0",
                "format": "ior-text",
                "storage_label": "pfs-a",
                "measurements": [
                    Measurement(
                        operation=Operation.WRITE,
                        ranks=8,
                        nodes=2,
                        block_bytes=2**53 + 1,
                        repetitions=[Repetition(gb_per_second=rate, bytes=2**62) for rate in rates],
                        gb_per_second=spread(rates),
                    )
                ],
                "doubts": [Doubt(code=DoubtCode.WIDE_SPREAD, measurement=0, message="Weit gestreut: 25 %.")],
            }
            | values
        )

    return make


@pytest.fixture
def nowhere() -> UUID:
    """Return an id that nothing has."""
    return UUID("00000000-0000-4000-8000-000000000000")


@pytest.fixture
def count_statements(database: Database) -> CountStatements:
    """Return what collects the statements that reach the database, but for those that begin a transaction."""

    @contextmanager
    def count() -> Iterator[list[str]]:
        statements: list[str] = []

        def keep(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            if not statement.startswith(("BEGIN", "PRAGMA")):
                statements.append(statement)

        event.listen(database.engine, "before_cursor_execute", keep)
        try:
            yield statements
        finally:
            event.remove(database.engine, "before_cursor_execute", keep)

    return count
