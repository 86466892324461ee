"""Which runs a report is made from: the parameters that choose them, and the runs that they choose."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query
from pydantic import AwareDatetime, BeforeValidator
from sqlalchemy import Connection

from service.api.benchmark_runs import instant
from service.api.dependencies import ID
from service.api.problems import MAX_ERRORS, Refused, summary
from service.errors import Fault
from service.judgement.evidence import Statistic
from service.judgement.gap import newest_label as newest_label_of
from service.judgement.report import EvidenceChoice
from service.parsers.run import BenchmarkRun, Condition
from service.store import benchmark_runs
from service.store.benchmark_runs import Period

MOST_RUNS = 100
"""How many runs may be named."""

StatisticQuery = Annotated[
    Statistic,
    Query(description="Which of the repetitions' rates is compared; times are not touched by it."),
]
TimeStatisticQuery = Annotated[
    Statistic,
    Query(description="Which of the repetitions' times is compared; each is that of its slowest rank."),
]
ConditionsQuery = Annotated[
    list[Condition] | None,
    Query(
        description="Let runs with this tag count for every target; may be repeated. `idle` always counts."
    ),
]
RunsQuery = Annotated[
    list[Annotated[UUID, ID]] | None,
    Query(max_length=MOST_RUNS, description="Only this run counts; may be repeated."),
]
RanFrom = Annotated[
    AwareDatetime | None,
    BeforeValidator(instant),
    Query(description="Only runs that took place then or later, with a time zone."),
]
RanBefore = Annotated[
    AwareDatetime | None,
    BeforeValidator(instant),
    Query(description="Only runs that took place earlier, with a time zone."),
]


async def _choice(
    statistic: StatisticQuery = Statistic.MEAN,
    time_statistic: TimeStatisticQuery = Statistic.MAX,
    conditions: ConditionsQuery = None,
    runs: RunsQuery = None,
    ran_from: RanFrom = None,
    ran_before: RanBefore = None,
) -> EvidenceChoice:
    return EvidenceChoice(
        statistic=statistic,
        time_statistic=time_statistic,
        conditions=sorted(set(conditions or ())),
        run_ids=sorted(set(runs)) if runs is not None else None,
        ran_from=ran_from,
        ran_before=ran_before,
    )


async def _choice_of_all(
    statistic: StatisticQuery = Statistic.MEAN,
    time_statistic: TimeStatisticQuery = Statistic.MAX,
    conditions: ConditionsQuery = None,
    ran_from: RanFrom = None,
    ran_before: RanBefore = None,
) -> EvidenceChoice:
    return await _choice(statistic, time_statistic, conditions, None, ran_from, ran_before)


UseChoice = Annotated[EvidenceChoice, Depends(_choice)]
UseChoiceOfAll = Annotated[EvidenceChoice, Depends(_choice_of_all)]
"""The same without naming runs, for what is made of several sets of them."""


def gather(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    storage_label: str | None,
    choice: EvidenceChoice,
) -> tuple[str | None, list[BenchmarkRun]]:
    """Return the storage that a report is about, and the runs on it that were chosen.

    Args:
        transaction: What it happens in.
        workspace_id: Whose scenario.
        scenario_id: Whose runs.
        storage_label: Which storage; empty for the runs without a label, None for that of the newest of the chosen.
        choice: Which runs.

    Raises:
        Refused: A run was named that the scenario has not, or that is of another storage or time.
    """
    if choice.run_ids is None:
        label = (
            newest_label(transaction, workspace_id=workspace_id, scenario_id=scenario_id, choice=choice)
            if storage_label is None
            else storage_label or None
        )
        return label, chosen_runs(
            transaction,
            workspace_id=workspace_id,
            scenario_id=scenario_id,
            storage_label=label,
            choice=choice,
        )
    found = _named(
        transaction, workspace_id=workspace_id, scenario_id=scenario_id, ids=choice.run_ids, choice=choice
    )
    label = newest_label_of(found) if storage_label is None else storage_label or None
    faults = [
        Fault(
            "runs",
            "other_storage",
            f"The run {run.id} is of {_storage(run.storage_label)}, and the report of {_storage(label)}: name "
            "runs of one storage.",
        )
        for run in found
        if run.storage_label != label
    ]
    if faults:
        raise Refused("invalid-request", summary(faults), *faults[:MAX_ERRORS])
    return label, found


def gather_all(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID, choice: EvidenceChoice
) -> list[BenchmarkRun]:
    """Return the runs that were chosen, of whatever storage.

    Raises:
        Refused: A run was named that the scenario has not, or not in that time.
    """
    if choice.run_ids is not None:
        return _named(
            transaction, workspace_id=workspace_id, scenario_id=scenario_id, ids=choice.run_ids, choice=choice
        )
    return benchmark_runs.of_every_storage(
        transaction, workspace_id=workspace_id, scenario_id=scenario_id, period=period_of(choice)
    )


def _named(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    ids: Sequence[UUID],
    choice: EvidenceChoice,
) -> list[BenchmarkRun]:
    """Return the runs that were named; raise Refused where the scenario has not all of them in the chosen time."""
    period = period_of(choice)
    found = benchmark_runs.named(
        transaction, workspace_id=workspace_id, scenario_id=scenario_id, ids=ids, period=period
    )
    known = {run.id for run in found}
    where = "" if period == benchmark_runs.ALWAYS else " in that time"
    faults = [
        Fault("runs", "unknown_run", f"The scenario has no run {run_id}{where}.")
        for run_id in ids
        if run_id not in known
    ]
    if faults:
        raise Refused("invalid-request", summary(faults), *faults[:MAX_ERRORS])
    return found


def newest_label(
    transaction: Connection, *, workspace_id: UUID, scenario_id: UUID, choice: EvidenceChoice
) -> str | None:
    """Return the storage label of the newest run in the chosen time, if there is one and it has one."""
    return benchmark_runs.newest_label(
        transaction, workspace_id=workspace_id, scenario_id=scenario_id, period=period_of(choice)
    )


def chosen_runs(
    transaction: Connection,
    *,
    workspace_id: UUID,
    scenario_id: UUID,
    storage_label: str | None,
    choice: EvidenceChoice,
) -> list[BenchmarkRun]:
    """Return the runs on a storage in the chosen time; None stands for those without a label."""
    return benchmark_runs.for_judgement(
        transaction,
        workspace_id=workspace_id,
        scenario_id=scenario_id,
        storage_label=storage_label,
        period=period_of(choice),
    )


def period_of(choice: EvidenceChoice) -> Period:
    """Return the time that was chosen."""
    return Period(choice.ran_from, choice.ran_before)


def _storage(label: str | None) -> str:
    return f"storage {label}" if label is not None else "a storage without a label"
