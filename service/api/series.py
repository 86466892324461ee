"""`GET /v1/scenarios/{scenario_id}/series`: measured figures over time, and whether they changed."""

from typing import Annotated

from fastapi import APIRouter, Query

from service.api.access import needs
from service.api.benchmark_runs import StorageLabel
from service.api.bodies import StrictRoute
from service.api.dependencies import ScenarioId, UseDatabase, UseWorkspaceId
from service.api.evidence import UseChoice, gather
from service.api.problems import Refused, describes, summary
from service.api.rates import Budget, spends
from service.api.scenarios import sizing_of
from service.errors import Fault
from service.judgement import series
from service.judgement.series import SeriesReport
from service.sizing.sizing import TargetId
from service.store import scenarios
from service.store.caller import AccessScope

router = APIRouter(tags=["series"], route_class=StrictRoute)

Figures = Annotated[
    list[TargetId] | None,
    Query(description="Only this figure, by the id of its target; may be repeated."),
]


@router.get(
    "/v1/scenarios/{scenario_id}/series",
    response_model_exclude_none=True,
    responses=describes(404, 406, 422, 503),
)
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_series(
    scenario_id: ScenarioId,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    choice: UseChoice,
    storage_label: StorageLabel = None,
    figure: Figures = None,
) -> SeriesReport:
    """Return what the runs of a storage measured over time, with the step or the slow drift that it shows.

    A series holds what can be set side by side: one figure of one tool on one number of nodes. Without
    `storage_label` it is about that of the newest run.
    """
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        label, runs = gather(
            transaction,
            workspace_id=workspace_id,
            scenario_id=scenario_id,
            storage_label=storage_label,
            choice=choice,
        )
    sizing = sizing_of(scenario.spec)
    known = [target.id for target in sizing.targets]
    faults = [
        Fault("figure", "no_target", f"The scenario has no target {each}; it has {', '.join(known)}.")
        for each in dict.fromkeys(figure or ())
        if each not in known
    ]
    if faults:
        raise Refused("invalid-request", summary(faults), *faults)
    return series.series(
        spec=scenario.spec,
        sizing=sizing,
        scenario_id=scenario.id,
        scenario_revision=scenario.revision,
        runs=runs,
        storage_label=label,
        choice=choice,
        only=figure,
    )
