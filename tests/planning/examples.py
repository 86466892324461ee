"""Scenarios and plans that the tests of the planning are made of."""

from typing import Any
from uuid import UUID

from service.planning import plan as planning
from service.planning.planned import PlannedTest, TestPlan
from service.sizing.size import size
from service.sizing.sizing import TargetId
from service.sizing.spec import ScenarioSpec

SCENARIO_ID = UUID("0f1e2d3c-0000-4000-8000-000000000001")
URL = "http://127.0.0.1:8000"

SMALL: dict[str, Any] = {
    "model": {"parameters": 1_000_000, "bytes_per_parameter": 14},
    "cluster": {"gpus": 4, "gpus_per_node": 2},
    "shards": {"files_per_writer": 3},
    "failures": {"mtbf_hours": 6},
    "restart": {"seconds": 60},
    "save": {"mode": "async", "blocking_seconds": 0.5, "durable_lag_seconds": 5},
    "interval": {"rule": "fixed", "seconds": 60},
    "restore": {"target_seconds": 5},
}
"""14 MB on two nodes of two GPUs, saved in the background."""

HOSTILE = 'it\'s "q" $(touch pwned) `touch pwned` ;touch pwned| & \\ * é %s %n -rf | <b> [a](b) #SBATCH --x'
"""A name, a label or the end of a path that somebody may send."""


def changed(body: dict[str, Any], **blocks: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a scenario's body with blocks replaced; None takes a block out."""
    return {name: block for name, block in {**body, **blocks}.items() if block is not None}


def planned(body: dict[str, Any], **options: Any) -> TestPlan:  # noqa: ANN401
    """Return the plan of a scenario."""
    spec = ScenarioSpec.model_validate(body)
    chosen: dict[str, Any] = {"name": "small", "url": URL, "scenario_id": SCENARIO_ID, "scenario_revision": 2}
    return planning.plan(spec=spec, sizing=size(spec), **{**chosen, **options})


def one_test(plan: TestPlan, test_id: str) -> PlannedTest:
    """Return one of its tests."""
    return next(test for test in plan.tests if test.id == test_id)


def reach(test: PlannedTest) -> dict[TargetId, tuple[float, str]]:
    """Return what a test must reach for each target, and the best that it can say of it."""
    return {proof.target_id: (proof.value, str(proof.best)) for proof in test.proofs}
