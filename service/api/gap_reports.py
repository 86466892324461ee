"""`GET /v1/scenarios/{scenario_id}/gap-report`: measured against target, with the consequences."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from service.api.benchmark_runs import StorageLabel
from service.api.bodies import StrictRoute, preferred
from service.api.dependencies import ScenarioId, UseDatabase, UseSettings, now
from service.api.evidence import UseChoice, gather
from service.api.problems import describes
from service.api.scenarios import sizing_of
from service.judgement.doubts import Drill
from service.judgement.gap import judge
from service.judgement.renderings import comma_separated, markdown, page
from service.judgement.report import GapReport
from service.store import scenarios

router = APIRouter(tags=["gap-reports"], route_class=StrictRoute)

Accept = Annotated[str | None, Header(include_in_schema=False)]
VARIES = {"Vary": "Accept"}
JSON = "application/json"
RENDERINGS: dict[str, Callable[..., str]] = {
    "text/html": page,
    "text/markdown": markdown,
    "text/csv": comma_separated,
}
"""What a report is read as besides JSON."""
AS_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type: {"schema": {"type": "string"}} for media_type in RENDERINGS}}
}
ALONE = {
    # Names and what tools wrote stand in the page: it is escaped, and could load and run nothing if it were not.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
}


@router.get(
    "/v1/scenarios/{scenario_id}/gap-report",
    response_model_exclude_none=True,
    responses={**AS_TEXT, **describes(404, 406, 422, 503)},
)
def get_gap_report(
    scenario_id: ScenarioId,
    database: UseDatabase,
    settings: UseSettings,
    response: Response,
    choice: UseChoice,
    storage_label: StorageLabel = None,
    accept: Accept = None,
) -> GapReport:
    """Hold what was measured against every target, and say what the difference costs.

    The report is about one storage label; without `storage_label` that of the newest run. As Markdown, as CSV
    with a row for each target, or as a page to print where Accept prefers that.
    """
    with database.read() as transaction:
        scenario = scenarios.get(transaction, id=scenario_id)
        label, runs = gather(transaction, scenario_id=scenario_id, storage_label=storage_label, choice=choice)
    report = judge(
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
    media_type = preferred(accept, [JSON, *RENDERINGS])
    if media_type in RENDERINGS:
        text = RENDERINGS[media_type](report, name=scenario.name)
        return Response(text, media_type=media_type, headers=VARIES | ALONE)  # type: ignore[return-value]
    response.headers.update(VARIES)
    return report
