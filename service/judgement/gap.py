"""Target by target: what was measured against what is needed.

`judge` gives the whole report. For each target every figure of every run that may speak is judged alone;
then the best evidence is reported: usable before unusable, full scale before smaller, newest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from service.judgement import doubts, reasons
from service.judgement.checklist import checklist
from service.judgement.consequences import consequences
from service.judgement.evidence import figures
from service.judgement.figure import Case, Judged, Scale, judge_figure, may_speak
from service.judgement.report import EvidenceChoice, GapReport, Status, StorageRuns, TargetReport
from service.judgement.verdict import USABLE, goodness, margin_fraction, verdict
from service.parsers.run import BenchmarkRun
from service.sizing.sizing import Sizing, Target
from service.sizing.spec import ScenarioSpec


def judge(
    *,
    spec: ScenarioSpec,
    sizing: Sizing,
    scenario_id: UUID,
    scenario_revision: int,
    runs: Sequence[BenchmarkRun],
    storage_label: str | None = None,
    full_scale_low_fraction: float = 0.95,
    full_scale_high_fraction: float = 1.05,
    choice: EvidenceChoice | None = None,
    drill: doubts.Drill | None = None,
    storages: Sequence[StorageRuns] = (),
) -> GapReport:
    """Return how far a storage system is from what a scenario asks, and what that costs.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id.
        scenario_revision: The revision that `spec` is; runs posted for an older one are doubted.
        runs: The scenario's runs, in any order, as far as `choice` admits them by id and time.
        storage_label: The storage to judge; without it that of the newest run. Runs of others do not count.
        full_scale_low_fraction: From this fraction of the scenario's nodes on, a run is compared as a whole.
        full_scale_high_fraction: Up to this fraction likewise.
        choice: What was asked for of the evidence: the statistics, and which of the runs tagged
            `under_read_load` or `degraded` count for every target. Without it the former count for the
            bandwidth under read load alone, the latter for none.
        drill: How lately a read must have been tried; without it no proof grows old.
        storages: What storages the scenario has runs on, `runs` or not, for the reader to see.
    """
    choice = choice or EvidenceChoice()
    if storage_label is None:
        storage_label = newest_label(runs)
    considered = [run for run in runs if run.storage_label == storage_label]
    case = Case(
        spec, sizing, scenario_revision, full_scale_low_fraction, full_scale_high_fraction, choice, drill
    )
    looked_up = [(run, doubts.placed(run)) for run in considered]
    targets = [_report(target, looked_up, case) for target in sizing.targets]
    found = consequences(spec=spec, sizing=sizing, targets=targets)
    return GapReport(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        storage_label=storage_label,
        evidence=choice,
        storages=list(storages),
        runs_considered=len(considered),
        targets=targets,
        verdict=verdict(targets, storage_label=storage_label, each=found.each, choice=choice),
        consequences=found,
        checklist=checklist(spec=spec, sizing=sizing, targets=targets),
    )


def newest_label(runs: Sequence[BenchmarkRun]) -> str | None:
    """Return the storage label of the newest run, if there is a run and it has one."""
    newest = max(runs, key=lambda run: (run.took_place_at, run.received_at, str(run.id)), default=None)
    return newest.storage_label if newest is not None else None


@dataclass(slots=True)
class _Evidence:
    """What the runs say of one target, as far as they were looked at: the best of them, and a count of the rest.

    Of a run nothing else is kept, so that thousands of them take no more memory than their documents.

    Attributes:
        target: The target.
        best: The best evidence so far.
        tests: How many figures its run has.
        runs: How many runs have a figure.
        full: How many usable ones at full scale.
        sides: The usable runs by whether they fall short.
    """

    target: Target
    best: Judged | None = None
    tests: int = 0
    runs: int = 0
    full: int = 0
    sides: dict[bool, list[BenchmarkRun]] = field(default_factory=lambda: {True: [], False: []})

    def add(self, judged: Sequence[Judged]) -> None:
        """Take in what one run says; there is at least one figure."""
        best = min(judged, key=self._rank)
        self.runs += 1
        if best.status in USABLE:
            self.full += best.scale is Scale.FULL
            self.sides[best.falls_short].append(best.figure.run)
        if self.best is None or self._rank(best) < self._rank(self.best):
            self.best, self.tests = best, len(judged)

    def _rank(self, each: Judged) -> tuple[bool, bool, float, int, float, int, tuple[int, ...]]:
        """Return what is smaller for better evidence; among the unusable the newest, whatever its scale."""
        usable = each.status in USABLE
        return (
            not usable,
            usable and each.scale is not Scale.FULL,
            -each.figure.run.took_place_at.timestamp(),
            -(each.figure.nodes or 0),
            goodness(self.target, each.ratio),
            each.figure.run.id.int,
            each.figure.places,
        )


def _report(target: Target, runs: Sequence[tuple[BenchmarkRun, doubts.Placed]], case: Case) -> TargetReport:
    asked, reading = case.choice.conditions, case.reading
    evidence = _Evidence(target)
    for run, stated in runs:
        if may_speak(run, target.id, asked):
            found = figures(run, target.id, reading=reading, expected=target.value)
            if found:
                evidence.add([judge_figure(figure, stated, target, case) for figure in found])
    chosen = evidence.best
    if chosen is None:
        return TargetReport(
            **dict(target),
            status=Status.UNMEASURED,
            run_ids=[],
            doubts=[],
            reason=reasons.why_unmeasured(target, [run for run, _ in runs], case),
        )
    against = evidence.sides[not chosen.falls_short]
    if chosen.status in USABLE and against:
        chosen = replace(chosen, doubts=[*chosen.doubts, doubts.runs_disagree(against)])
    nodes = chosen.figure.nodes
    return TargetReport(
        **dict(target),
        status=chosen.status,
        basis=chosen.basis,
        measured=chosen.measured,
        measured_min=chosen.measured_min,
        measured_max=chosen.measured_max,
        ratio=chosen.ratio,
        margin_fraction=margin_fraction(target, chosen.ratio) if chosen.ratio is not None else None,
        statistic=chosen.figure.statistic,
        per_node_target=chosen.per_node_target,
        per_node_measured=chosen.per_node_measured,
        nodes=nodes,
        nodes_fraction=nodes / chosen.nodes_beside if nodes is not None else None,
        full_scale=chosen.scale is Scale.FULL if chosen.scale is not None else None,
        run_ids=[chosen.figure.run.id],
        doubts=chosen.doubts,
        reason=reasons.reason(chosen, target, case) + reasons.small_writes(chosen, case),
        chosen_because=reasons.chosen_because(
            chosen,
            tests=evidence.tests,
            runs=evidence.runs,
            usable=sum(len(side) for side in evidence.sides.values()),
            full=evidence.full,
        ),
        experience=reasons.experience(chosen),
        bytes_per_parameter=reasons.bytes_per_parameter(chosen, case),
    )
