"""`GET /v1/scenarios/{scenario_id}/gap-report`: measured against target, with the consequences; and two of them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import AwareDatetime, BeforeValidator, StringConstraints

from service.api.access import needs
from service.api.benchmark_runs import LABEL_PATTERN, ChosenLabel, instant
from service.api.bodies import StrictRoute, preferred
from service.api.dependencies import ScenarioId, UseDatabase, UseSettings, UseWorkspaceId, now
from service.api.evidence import UseChoice, UseChoiceOfAll, chosen_runs, gather, newest_label
from service.api.problems import Refused, describes, summary
from service.api.rates import Budget, spends
from service.api.scenarios import sizing_of
from service.errors import Fault
from service.judgement.comparison import GapReportComparison, compare
from service.judgement.doubts import Drill
from service.judgement.gap import judge
from service.judgement.renderings import comma_separated, markdown, page
from service.judgement.report import EvidenceChoice, GapReport, StorageRuns
from service.parsers.run import BenchmarkRun
from service.settings import Settings
from service.store import benchmark_runs, scenarios
from service.store.caller import AccessScope
from service.store.scenarios import Scenario

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

TwoLabels = Annotated[
    list[Annotated[str, StringConstraints(max_length=128, pattern=LABEL_PATTERN.replace("+", "*"))]] | None,
    Query(
        max_length=2,
        description="The storages that are compared: the first, and the second; empty for the runs without a label.",
    ),
]
SplitAt = Annotated[
    AwareDatetime | None,
    BeforeValidator(instant),
    Query(description="Compare what ran before then with what ran from then on; with a time zone."),
]


@router.get(
    "/v1/scenarios/{scenario_id}/gap-report",
    response_model_exclude_none=True,
    responses={**AS_TEXT, **describes(404, 406, 422, 503)},
)
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_gap_report(
    scenario_id: ScenarioId,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    settings: UseSettings,
    response: Response,
    choice: UseChoice,
    storage_label: ChosenLabel = None,
    accept: Accept = None,
) -> GapReport:
    """Hold what was measured against every target, and say what the difference costs.

    The report is about one storage label; without `storage_label` that of the newest run, and with an empty one the
    runs that have none. `storages` lists the others, whose runs are left out of it. As Markdown, as CSV
    with a row for each target, or as a page to print where Accept prefers that.
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
        counts = benchmark_runs.count_by_label(
            transaction, workspace_id=workspace_id, scenario_id=scenario_id
        )
    report = _judged(scenario, label, runs, choice, settings, counts)
    media_type = preferred(accept, [JSON, *RENDERINGS])
    if media_type in RENDERINGS:
        text = RENDERINGS[media_type](report, name=scenario.name)
        return Response(text, media_type=media_type, headers=VARIES | ALONE)  # type: ignore[return-value]
    response.headers.update(VARIES)
    return report


@router.get(
    "/v1/scenarios/{scenario_id}/gap-report-comparison",
    response_model_exclude_none=True,
    responses=describes(404, 406, 422, 503),
)
@needs(AccessScope.READ)
@spends(Budget.COMPUTING)
def get_gap_report_comparison(
    scenario_id: ScenarioId,
    database: UseDatabase,
    workspace_id: UseWorkspaceId,
    settings: UseSettings,
    choice: UseChoiceOfAll,
    storage_label: TwoLabels = None,
    split_at: SplitAt = None,
) -> GapReportComparison:
    """Set two reports of one scenario side by side: each target with both figures, and what the difference costs.

    Two storages, named by `storage_label` given twice; or one, before and after a time, named by `split_at`, and
    then that of the newest run where no `storage_label` is given.
    """
    labels = storage_label or []
    with database.read() as transaction:
        scenario = scenarios.get(transaction, workspace_id=workspace_id, id=scenario_id)
        _check_sides(labels, split_at)
        if split_at is None:
            sides: list[tuple[str | None, EvidenceChoice]] = [(label or None, choice) for label in labels]
        else:
            label = (
                labels[0] or None
                if labels
                else newest_label(
                    transaction, workspace_id=workspace_id, scenario_id=scenario_id, choice=choice
                )
            )
            sides = [(label, each) for each in _split(choice, split_at)]
        runs = [
            chosen_runs(
                transaction,
                workspace_id=workspace_id,
                scenario_id=scenario_id,
                storage_label=label,
                choice=each,
            )
            for label, each in sides
        ]
    first, second = (
        _judged(scenario, label, of_side, each, settings)
        for (label, each), of_side in zip(sides, runs, strict=True)
    )
    names = ("before", "after") if split_at is not None else (_on(labels[0]), _on(labels[1]))
    return compare(first=first, second=second, names=names, split_at=split_at)


def _on(label: str) -> str:
    return f"on {label}" if label else "without a label"


def _judged(
    scenario: Scenario,
    label: str | None,
    runs: list[BenchmarkRun],
    choice: EvidenceChoice,
    settings: Settings,
    counts: Mapping[str | None, int] = MappingProxyType({}),
) -> GapReport:
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
        storages=[StorageRuns(storage_label=name, runs=count) for name, count in counts.items()],
    )


def _check_sides(labels: list[str], split_at: datetime | None) -> None:
    """Refuse what does not say which two reports are meant."""
    fault = None
    if split_at is None and len(labels) < 2:
        fault = Fault(
            "storage_label",
            "missing",
            "Give storage_label twice to compare two storages, or split_at to compare before with after.",
        )
    elif split_at is not None and len(labels) == 2:
        fault = Fault(
            "split_at", "contradiction", "Give two storage labels, or one at most and split_at; not both."
        )
    elif len(labels) == 2 and labels[0] == labels[1]:
        fault = Fault(
            "storage_label", "same_twice", "Name two storages; to compare one with itself give split_at."
        )
    if fault is not None:
        raise Refused("invalid-request", summary([fault]), fault)


def _split(choice: EvidenceChoice, at: datetime) -> tuple[EvidenceChoice, EvidenceChoice]:
    """Return what of the chosen time lies before a moment, and what from it on."""
    begin, end = choice.ran_from, choice.ran_before
    return (
        choice.model_copy(update={"ran_before": at if end is None else min(at, end)}),
        choice.model_copy(update={"ran_from": at if begin is None else max(at, begin)}),
    )
