"""What holds for any runs whatsoever."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.judgement.comparison import Better, compare
from service.judgement.doubts import Drill
from service.judgement.evidence import Statistic
from service.judgement.renderings import comma_separated, markdown, page
from service.judgement.report import ChecklistStatus, EvidenceChoice, GapReport, Outcome, Status
from service.judgement.series import series
from service.parsers.measurement import DcpOp, Doubt, DoubtCode, Measurement, Operation
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.size import size
from service.sizing.sizing import Comparison, TargetId
from service.wire import Outgoing
from tests.judgement.examples import (
    SCENARIO_ID,
    SHARD_BYTES,
    async_scenario,
    at,
    codes,
    dcp,
    doubt,
    ior,
    mdtest,
    report_on,
    run,
    scenario,
    target_of,
)

NODES = st.sampled_from([1, 16, 1945, 1946, 2048, 2150, 2151, 4096])
RATES = st.floats(min_value=1e-3, max_value=1e4)
DOUBTS = st.lists(st.sampled_from(DoubtCode), max_size=2, unique=True)


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    kind = draw(st.sampled_from(["write", "read", "create"]))
    nodes = draw(NODES | st.none())
    if kind == "create":
        return mdtest(draw(RATES), nodes=nodes)
    return ior(
        *draw(st.lists(RATES, min_size=1, max_size=3)),
        nodes=nodes,
        operation=Operation(kind),
        ranks_per_node=draw(st.sampled_from([1, 8, 16])),
        block_bytes=draw(st.sampled_from([1, SHARD_BYTES, 10 * SHARD_BYTES])),
        total_seconds=draw(st.lists(RATES, max_size=2)),
    )


@st.composite
def any_run(draw: st.DrawFn, number: int) -> BenchmarkRun:
    doubts = [doubt(code, draw(st.none() | st.integers(0, 1))) for code in draw(DOUBTS)]
    day, ran_day = draw(st.integers(1, 28)), draw(st.none() | st.integers(1, 28))
    conditions = draw(st.lists(st.sampled_from(Condition), max_size=1))
    if draw(st.booleans()):
        return run(
            number=number,
            day=day,
            ran_day=ran_day,
            measurements=draw(st.lists(measurements(), min_size=1, max_size=2)),
            doubts=doubts,
            conditions=conditions,
        )
    nodes, seconds = draw(NODES), draw(RATES)
    operations = [
        dcp(
            op,
            seconds=seconds,
            nodes=nodes,
            bytes_total=draw(st.none() | st.sampled_from([1, 5_670_000_000_000])),
            checkpoint_bytes=draw(st.none() | st.sampled_from([1, 5_670_000_000_000])),
            blocked_seconds=seconds,
            drain_seconds=seconds if op is DcpOp.ASYNC_SAVE else None,
            durable_lag_seconds=seconds if op is DcpOp.ASYNC_SAVE else None,
            io_seconds_max=draw(st.none() | RATES),
        )
        for op in draw(st.lists(st.sampled_from(DcpOp), min_size=1, max_size=2))
    ]
    return run(
        number=number, day=day, ran_day=ran_day, operations=operations, doubts=doubts, conditions=conditions
    )


@st.composite
def some_runs(draw: st.DrawFn) -> list[BenchmarkRun]:
    return [draw(any_run(number)) for number in range(1, 1 + draw(st.integers(0, 4)))]


def _check_verdict(report: GapReport) -> None:
    statuses = [target.status for target in report.targets]
    decider = next((t for t in report.targets if t.id is report.verdict.decided_by), None)
    assert decider is not None
    if Status.MISSED in statuses:
        assert (report.verdict.outcome, decider.status) == (Outcome.FALLS_SHORT, Status.MISSED)
    elif set(statuses) == {Status.MET}:
        assert (report.verdict.outcome, decider.status) == (Outcome.MEETS, Status.MET)
    else:
        assert report.verdict.outcome is Outcome.UNPROVEN
        assert decider.status is not Status.MET


@settings(deadline=None)
@given(runs=some_runs(), is_async=st.booleans())
def test_every_report_is_consistent(runs: list[BenchmarkRun], is_async: bool) -> None:
    report = report_on(async_scenario() if is_async else scenario(), *runs)
    _check_verdict(report)
    for target in report.targets:
        assert target.reason.endswith(".")
        assert (target.status is Status.UNMEASURED) == (target.run_ids == [])
        found = set(codes(target))
        flattered = found & {
            DoubtCode.NO_FSYNC,
            DoubtCode.FSYNC_IGNORED,
            DoubtCode.FSYNC_UNKNOWN,
            DoubtCode.CACHED_READ,
            DoubtCode.PARTIAL_RANKS,
        }
        voided = found & {
            DoubtCode.DATA_VERIFICATION_FAILED,
            DoubtCode.IO500_INVALID,
            DoubtCode.INCOMPLETE_RUN,
        }
        if voided:
            assert target.status is Status.NOT_COMPARABLE
        if target.status in (Status.MET, Status.MET_IF_IT_SCALES):
            assert not flattered
            assert target.ratio is not None
            assert target.full_scale is (target.status is Status.MET)
            if target.comparison is Comparison.AT_LEAST:
                assert target.ratio >= 1 - 1e-8
            if target.comparison is Comparison.AT_MOST:
                assert target.ratio <= 1 + 1e-8
        if target.status is Status.MISSED and target.comparison is Comparison.AT_LEAST:
            assert target.ratio is not None
            assert target.ratio < 1
    used = {target.id: target for target in report.targets if target.id in report.consequences.used}
    assert all(
        target.status in (Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES) for target in used.values()
    )
    assert set(report.consequences.extrapolated) == {key for key, each in used.items() if not each.full_scale}
    _check_whole(report)


PARTS = {TargetId.FILE_CREATE_RATE, TargetId.SLOWEST_WRITER_SECONDS}
NODES_ALONE = {TargetId.NODE_WRITE_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH}
TIMED = {TargetId.BLOCKING_SECONDS, TargetId.PERSIST_SECONDS, TargetId.LOAD_SECONDS}


def _check_whole(report: GapReport) -> None:
    """No time of the whole is shorter than a part says, but for a save or load timed from end to end on all nodes.

    A checkpoint of another size than specified changes what the parts say, each by itself.
    """
    found = report.consequences
    usable = {each.target for each in found.each}
    timed_whole = {each.id for each in report.targets if each.full_scale} & usable & TIMED
    if found.measured is None or timed_whole or TargetId.CHECKPOINT_BYTES in usable:
        return
    measured = found.measured
    for each in found.each:
        # Parts alone leave a save as long as specified; a node's rate is the same figure over other nodes.
        if each.target in PARTS or each.target in NODES_ALONE:
            continue
        for part, whole in (
            (each.blocking_seconds, measured.blocking.seconds),
            (each.durable_lag_seconds, measured.write.durable_lag_seconds),
            (each.load_seconds, measured.restart.load_seconds),
        ):
            assert part is None or (whole is not None and whole >= part * (1 - 1e-9))


@settings(deadline=None)
@given(runs=some_runs(), data=st.data())
def test_the_order_of_the_runs_does_not_matter(runs: list[BenchmarkRun], data: st.DataObject) -> None:
    shuffled: Sequence[BenchmarkRun] = data.draw(st.permutations(runs))
    assert report_on(scenario(), *shuffled) == report_on(scenario(), *runs)


@settings(deadline=None)
@given(
    nodes=NODES | st.none(), rate=RATES, found=st.lists(st.sampled_from(DoubtCode), max_size=3, unique=True)
)
def test_a_rates_status_is_the_first_of_the_table(
    nodes: int | None, rate: float, found: list[DoubtCode]
) -> None:
    doubts: list[Doubt] = [doubt(code) for code in found]
    target = target_of(
        report_on(scenario(), run(measurements=[ior(rate, nodes=nodes)], doubts=doubts)),
        TargetId.WRITE_BANDWIDTH,
    )
    if nodes is None or {"data_verification_failed", "io500_invalid", "incomplete_run"} & set(found):
        expected = "not_comparable"
    elif rate < (94.5 if nodes in (1946, 2048, 2150) else 94.5 * nodes / 2048):
        expected = "missed"
    elif {"no_fsync", "fsync_ignored", "fsync_unknown", "partial_ranks"} & set(found):
        expected = "not_comparable"
    elif nodes in (1946, 2048, 2150):
        expected = "met"
    else:
        expected = "met_if_it_scales" if nodes < 1946 else "not_comparable"
    assert target.status == expected


@settings(deadline=None)
@given(rate=RATES, older=some_runs())
def test_older_runs_change_a_usable_newest_at_full_scale_by_a_doubt_at_most(
    rate: float, older: list[BenchmarkRun]
) -> None:
    newest = run(number=99, day=29, measurements=[ior(rate)])
    alone = target_of(report_on(scenario(), newest), TargetId.WRITE_BANDWIDTH)
    among = target_of(report_on(scenario(), newest, *older), TargetId.WRITE_BANDWIDTH)
    assert alone.status in (Status.MET, Status.MISSED)
    told: dict[str, object] = {"doubts": [], "chosen_because": None}
    assert among.model_copy(update=told) == alone.model_copy(update=told)
    assert set(codes(among)) <= {*codes(alone), DoubtCode.RUNS_DISAGREE}


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)


def _all_are_numbers(answer: Outgoing) -> bool:
    return all(math.isfinite(number) for number in _numbers(answer.model_dump(mode="python")))


@settings(deadline=None)
@given(
    runs=some_runs(),
    others=some_runs(),
    is_async=st.booleans(),
    statistic=st.sampled_from(Statistic),
    time_statistic=st.sampled_from(Statistic),
)
def test_whatever_is_made_of_any_runs_is_whole(
    runs: list[BenchmarkRun],
    others: list[BenchmarkRun],
    is_async: bool,
    statistic: Statistic,
    time_statistic: Statistic,
) -> None:
    spec = async_scenario() if is_async else scenario()
    asked: dict[str, Any] = {"statistic": statistic, "time_statistic": time_statistic}
    first, second = (report_on(spec, *each, drill=Drill(at(20), 7), **asked) for each in (runs, others))
    assert _all_are_numbers(first)
    for rendering in (markdown, page, comma_separated):
        assert rendering(first, name="any")
    compared = compare(first=first, second=second, names=("on a", "on b"))
    assert _all_are_numbers(compared)
    turned = compare(first=second, second=first, names=("on b", "on a"))
    opposite = {Better.FIRST: Better.SECOND, Better.SECOND: Better.FIRST}
    assert [target.better for target in turned.targets] == [
        opposite.get(target.better, target.better) for target in compared.targets
    ]
    told = series(
        spec=spec,
        sizing=size(spec),
        scenario_id=SCENARIO_ID,
        scenario_revision=1,
        runs=runs,
        storage_label="pfs-a",
        choice=EvidenceChoice(**asked),
    )
    assert _all_are_numbers(told)
    # Each item that is priced costs no less than the next, and each is a target that is not met.
    prices = [item.waste_usd_per_year for item in first.verdict.items if item.waste_usd_per_year is not None]
    assert prices == sorted(prices, reverse=True)
    assert {item.target for item in first.verdict.items} == {
        target.id for target in first.targets if target.status is not Status.MET
    }
    for item in first.checklist:
        assert (item.status is ChecklistStatus.PROVED) <= bool(item.run_ids)
        assert (item.status is ChecklistStatus.STATED) <= bool(item.pointers)


@pytest.mark.parametrize("figure", [0.0, 5e-324, 1e-310, 1e-300, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("nodes", [1, 2048])
def test_figures_far_out_of_any_bounds_break_nothing(figure: float, nodes: int) -> None:
    measured = [
        ior(figure, nodes=nodes, total_seconds=[figure]),
        ior(figure, nodes=nodes, operation=Operation.READ),
        mdtest(figure, nodes=nodes),
    ]
    operations = [
        dcp(
            op,
            seconds=figure or None,
            nodes=nodes,
            bytes_total=5_670_000_000_000,
            checkpoint_bytes=1,
            blocked_seconds=figure,
            drain_seconds=figure or None if op is DcpOp.ASYNC_SAVE else None,
            durable_lag_seconds=figure if op is DcpOp.ASYNC_SAVE else None,
        )
        for op in DcpOp
        if figure >= 1e-9
    ]
    runs = [run(number=1, measurements=measured), run(number=2, operations=operations)]
    for spec in (scenario(), async_scenario(), scenario(interval={"rule": "young"})):
        for chosen in ([runs[0]], [runs[1]], runs):
            report = report_on(spec, *chosen)
            assert _all_are_numbers(report)
            assert page(report, name="any")
