"""`GET /v1/scenarios/{scenario_id}/gap-report`: measured against target, with the consequences."""

from fastapi import APIRouter

from service.api.benchmark_runs import StorageLabel
from service.api.bodies import StrictRoute
from service.api.dependencies import ScenarioId, UseDatabase, UseSettings, now
from service.api.evidence import UseChoice, gather
from service.api.problems import describes
from service.api.scenarios import sizing_of
from service.judgement.doubts import Drill
from service.judgement.gap import judge
from service.judgement.report import GapReport
from service.store import scenarios

router = APIRouter(tags=["gap-reports"], route_class=StrictRoute)


@router.get(
    "/v1/scenarios/{scenario_id}/gap-report",
    response_model_exclude_none=True,
    responses=describes(404, 406, 422, 503),
)
def get_gap_report(
    scenario_id: ScenarioId,
    database: UseDatabase,
    settings: UseSettings,
    choice: UseChoice,
    storage_label: StorageLabel = None,
) -> GapReport:
    """Hold what was measured against every target, and say what the difference costs.

    The report is about one storage label; without `storage_label` that of the newest run.
    """
    with database.read() as transaction:
        scenario = scenarios.get(transaction, id=scenario_id)
        label, runs = gather(transaction, scenario_id=scenario_id, storage_label=storage_label, choice=choice)
    return judge(
        spec=scenario.spec,
        sizing=sizing_of(scenario.spec),
        scenario_id=scenario.id,
        scenario_revision=scenario.revision,
        runs=runs,
        storage_label=label,
        full_scale_low_fraction=settings.full_scale_low_fraction,
        full_scale_high_fraction=settings.full_scale_high_fraction,
        choice=choice,
        drill=Drill(now(), settings.restore_drill_days),
    )
