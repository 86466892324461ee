"""Measured figures over time, and whether they changed: `GET /v1/scenarios/{scenario_id}/series`, `GET /v1/series`."""

from typing import Annotated

from fastapi import APIRouter, Query

from service.api.access import needs
from service.api.benchmark_runs import LABEL_PATTERN, ChosenLabel
from service.api.bodies import StrictRoute
from service.api.dependencies import ScenarioId, UseDatabase, UseWorkspaceId
from service.api.evidence import UseChoice, UseChoiceOfAll, gather, gather_all, period_of
from service.api.problems import Refused, describes, summary
from service.api.rates import Budget, spends
from service.api.scenarios import sizing_of
from service.errors import Fault
from service.judgement import series
from service.judgement.report import StorageRuns
from service.judgement.series import Context, SeriesReport, StorageFigure, StorageSeriesReport
from service.sizing.size import ENGINE_VERSION
from service.sizing.sizing import TargetId
from service.store import benchmark_runs, scenarios
from service.store.caller import AccessScope

router = APIRouter(tags=["series"], route_class=StrictRoute)

Figures = Annotated[
    list[TargetId] | None,
    Query(description="Only this figure, by the id of its target; may be repeated."),
]
AllStorages = Annotated[
    bool,
    Query(
        description="Tell every storage that the scenario has runs on, side by side; not with `storage_label`."
    ),
]
OneLabel = Annotated[
    str,
    Query(min_length=1, max_length=128, pattern=LABEL_PATTERN, description="Which storage."),
]
StorageFigures = Annotated[
    list[StorageFigure] | None, Query(description="Only this figure; may be repeated.")
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
    storage_label: ChosenLabel = None,
    all_storages: AllStorages = False,
    figure: Figures = None,
) -> SeriesReport:
    """Return what the runs of a scenario measured over time, with the steps or the slow drift that it shows.

    A series holds what can be set side by side: one figure of one storage by one tool on one number of nodes. Without
    `storage_label` it is about that of the newest run, with `all_storages` about each of them.
    """
    if all_storages and storage_label is not None:
        fault = Fault("all_storages", "contradiction", "Give storage_label, or all_storages; not both.")
        raise Refused("invalid-request", summary([fault]), fault)
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        if all_storages:
            label, runs = (
                None,
                gather_all(transaction, workspace_id=workspace_id, scenario_id=scenario_id, choice=choice),
            )
        else:
            label, runs = gather(
                transaction,
                workspace_id=workspace_id,
                scenario_id=scenario_id,
                storage_label=storage_label,
                choice=choice,
            )
        counts = benchmark_runs.count_by_label(
            transaction, workspace_id=workspace_id, scenario_id=scenario_id
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
        storages=[StorageRuns(storage_label=name, runs=count) for name, count in counts.items()],
    )


@router.get("/v1/series", response_model_exclude_none=True, responses=describes(406, 422, 503))
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_storage_series(
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    choice: UseChoiceOfAll,
    storage_label: OneLabel,
    figure: StorageFigures = None,
) -> StorageSeriesReport:
    """Return what a storage gave over time, from the runs of every scenario of the workspace that carry its label.

    It tells rates alone, of a node and of creates, which do not depend on what a scenario asks; runs of unlike numbers
    of nodes, tools, or loads of a rank stand in series of their own. Each point names its scenario.
    """
    with database.read() as transaction:
        runs, measured_for = benchmark_runs.on_storage(
            transaction, workspace_id=workspace_id, storage_label=storage_label, period=period_of(choice)
        )
    return series.storage_series(
        storage_label=storage_label,
        scenarios={each.id: (each.name, Context(each.spec, each.revision)) for each in measured_for},
        runs=runs,
        choice=choice,
        engine_version=ENGINE_VERSION,
        only=figure,
    )
