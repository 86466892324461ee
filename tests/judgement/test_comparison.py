"""Two reports side by side. M is 11,135.08 s, the year of the cluster 337,281,024 USD (see test_consequences)."""

import pytest

from service.judgement.comparison import Better, GapReportComparison, compare
from service.judgement.report import Status
from service.parsers.measurement import DoubtCode, Operation
from service.parsers.run import BenchmarkRun
from service.sizing.sizing import TargetId
from service.sizing.spec import ScenarioSpec
from tests.judgement.examples import doubt, ior, mdtest, report_on, run, scenario

GOODPUT, YEAR_USD = 0.8300186509417614, 337_281_024.0


def _compared(
    one: BenchmarkRun | None, other: BenchmarkRun | None, spec: ScenarioSpec | None = None
) -> GapReportComparison:
    spec = spec or scenario()
    first, second = (report_on(spec, *([each] if each is not None else [])) for each in (one, other))
    return compare(first=first, second=second, names=("on a", "on b"))


def _better(found: GapReportComparison, target_id: TargetId = TargetId.WRITE_BANDWIDTH) -> Better:
    return next(target.better for target in found.targets if target.id is target_id)


def test_the_faster_storage_wins_by_dollars() -> None:
    # 70.875 s a save against 56.7: 529.125 and 543.3 useful seconds of 540.
    found = _compared(run(measurements=[ior(80.0)], label="a"), run(measurements=[ior(100.0)], label="b"))
    write = found.targets[0]
    assert (write.id, write.value, write.first.measured, write.second.measured) == (
        TargetId.WRITE_BANDWIDTH,
        94.5,
        80.0,
        100.0,
    )
    assert (write.first.status, write.second.status, write.better) == (
        Status.MISSED,
        Status.MET,
        Better.SECOND,
    )
    assert write.sentence == "The write bandwidth was 80 GB/s on a and 100 GB/s on b: better on b."
    assert (found.first.storage_label, found.second.storage_label) == ("a", "b")
    assert found.better is Better.SECOND
    gain = GOODPUT * (543.3 - 529.125) / 540
    assert found.difference is not None
    assert found.difference.goodput_fraction == pytest.approx(gain, rel=1e-9)
    assert found.difference.waste_usd_per_year == pytest.approx(-gain * YEAR_USD, rel=1e-9)
    assert found.first.waste_usd_per_year == pytest.approx(57_331_482.9 + 5_637_872.69, rel=1e-6)
    assert found.sentence == (
        "Training gets 2.179 % of all time more on b than on a, $7,348,675 a year less wasted. Not all of it is "
        "proved: see the verdicts."
    )
    assert found.first.verdict.decided_by is TargetId.WRITE_BANDWIDTH


def test_a_shorter_time_is_the_better_one_and_equal_figures_are_the_same() -> None:
    slow, quick = (ior(100.0, total_seconds=[seconds]) for seconds in (58.0, 40.0))
    found = _compared(run(measurements=[quick]), run(measurements=[slow]))
    assert _better(found, TargetId.SLOWEST_WRITER_SECONDS) is Better.FIRST
    assert _better(found) is Better.SAME
    # A save takes as long as its slowest writer: 58 s, not the 56.7 s of all bytes at 100 GB/s.
    assert found.better is Better.FIRST
    same = _compared(run(measurements=[quick]), run(measurements=[quick]))
    assert same.sentence == "By what was measured, training gets the same from both."
    assert found.targets[0].sentence.endswith(": the same.")


def test_what_was_measured_of_one_alone_is_said_to_be() -> None:
    # b is slower to write, and makes files as the scenario asks, for all that anybody knows.
    found = _compared(
        run(number=1, measurements=[ior(100.0), mdtest(60.0)], label="a"),
        run(number=2, measurements=[ior(90.0)], label="b"),
    )
    assert found.better is Better.SECOND
    assert found.sentence.endswith(" Not like with like: only rate of file creates on a was measured.")


def test_what_decides_nothing_on_one_side_is_undecided() -> None:
    cached = run(measurements=[ior(500.0, operation=Operation.READ)], doubts=[doubt(DoubtCode.CACHED_READ)])
    real = run(measurements=[ior(50.0, operation=Operation.READ), mdtest(300.0)])
    found = _compared(cached, real)
    read = next(target for target in found.targets if target.id is TargetId.READ_BANDWIDTH)
    assert (read.better, read.first.measured, read.second.measured) == (Better.UNDECIDED, 500.0, 50.0)
    assert read.sentence == (
        "The read bandwidth was 500 GB/s on a and 50 GB/s on b; nothing usable was measured on a."
    )
    creates = next(target for target in found.targets if target.id is TargetId.FILE_CREATE_RATE)
    assert (creates.better, creates.first.measured) == (Better.UNDECIDED, None)
    assert (
        creates.sentence == "The rate of file creates was 300 files/s on b; nothing usable was measured on a."
    )
    assert (found.better, found.difference) == (Better.UNDECIDED, None)
    assert found.sentence == "They cannot be set in order: no usable figure bears on the goodput on a."
    nothing = _compared(None, None)
    assert {target.better for target in nothing.targets} == {Better.UNDECIDED}
    assert nothing.targets[0].sentence == "Nobody measured the write bandwidth."
    assert nothing.sentence.endswith("bears on the goodput on a nor on b.")


def test_no_time_to_train_loses_against_any_and_has_no_price() -> None:
    found = _compared(run(measurements=[ior(9.0)]), run(measurements=[ior(80.0)]))
    assert (found.better, found.difference, found.first.feasible) == (Better.SECOND, None, False)
    assert found.first.goodput_fraction is None
    assert found.sentence == "There is time to train on b, and the measured figures leave none on a."
    both = _compared(run(measurements=[ior(9.0)]), run(measurements=[ior(8.0)]))
    assert both.better is Better.SAME


def test_without_a_price_the_difference_is_in_goodput_alone() -> None:
    spec = scenario(prices=None)
    found = _compared(run(measurements=[ior(80.0)]), run(measurements=[ior(70.0)]), spec)
    assert found.difference is not None
    assert found.difference.waste_usd_per_year is None
    assert found.difference.goodput_fraction < 0
    assert found.better is Better.FIRST
    assert "$" not in found.sentence
