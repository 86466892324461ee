"""Solutions: by hand, put back into a sizing, against every other value, and out of reach."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.errors import Unsatisfiable
from service.sizing import unknowns
from service.sizing.formulas import REGISTER
from service.sizing.search import ask
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.solution import Solution, SolutionBasis
from service.sizing.solve import solve
from service.sizing.spec import ScenarioSpec, SolutionGoal, SolutionQuestion, SolutionUnknown
from service.units import UNITS_BY_SUFFIX
from tests.sizing.scenarios import ARTICLE, Body, article, bodies, logarithmic

EXACT: Body = {"rule": "exact"}
ASYNC: Body = {"mode": "async", "blocking_seconds": 5}
PARTS: Body = {
    "detect_seconds": 30,
    "reschedule_seconds": 60,
    "initialise_seconds": 100,
    "warm_up_seconds": 20,
}
STORAGE: Body = {
    "write_gb_per_second": 40.0,
    "read_gb_per_second": 60.0,
    "node_gb_per_second": 12.5,
    "file_creates_per_second": 5000.0,
}
COLLIDING = article(save={**ASYNC, "durable_lag_seconds": 900}, interval=EXACT)
"""Where the stall is so short that the best interval for it is shorter than the lag."""
M = 1296 * 3600 / 419
"""The Llama 3 record on 16,384 GPUs. [s]"""
S = 405e9 * 14
"""The articles' checkpoint. [B]"""


def asked(unknown: str, goal: Body, spec: Body = ARTICLE, *, explained: bool = False) -> Solution:
    """Return the solution of a question about a scenario."""
    question = SolutionQuestion.model_validate({"spec": spec, "unknown": unknown, "goal": goal})
    return solve(question, explained=explained)


def found(unknown: str, goal: Body, spec: Body = ARTICLE) -> float:
    """Return the value of a solution that there is."""
    solution = asked(unknown, goal, spec)
    assert solution.feasible, solution.reason
    assert solution.value is not None
    return solution.value


def goodput(sizing: Sizing | None) -> float:
    """Return the headline goodput of a scenario."""
    assert sizing is not None
    return sizing.goodput.exact.goodput_fraction


# By hand. At T = 600 s and M = 11,135.08 s: T/M = 0.0538838, e^(T/M) - 1 = 0.0553620, e^(R/M) likewise 1.0553620 for
# R = 600 s, so that goodput = (600 - C)/11135.08 / 0.0553620 / 1.0553620 = (600 - C) * 0.001537071.


@pytest.mark.parametrize(
    ("goodput_fraction", "blocking_seconds", "gb_per_second"),
    [(0.85, 47.0004, 120.637), (0.90, 14.4710, 391.818), (0.70, 144.5885, 39.2147)],
)
def test_the_articles_cluster_needs_this_write_bandwidth(
    goodput_fraction: float, blocking_seconds: float, gb_per_second: float
) -> None:
    goal = {"goodput_fraction": goodput_fraction}
    assert found("blocking_seconds", goal) == pytest.approx(blocking_seconds, rel=3e-6)
    solution = asked("write_gb_per_second", goal)
    assert solution.value == pytest.approx(gb_per_second, rel=3e-6)
    assert solution.comparison == "at_least"
    assert solution.unit == "gb_per_second"
    assert solution.sizing is not None
    assert solution.sizing.blocking.seconds == pytest.approx(blocking_seconds, rel=3e-6)
    assert solution.sizing.write.required_gb_per_second == pytest.approx(solution.value, rel=1e-12)


def test_95_percent_is_out_of_reach_since_restarts_alone_waste_5_2_and_a_restart_of_270_s_would_do() -> None:
    solution = asked("write_gb_per_second", {"goodput_fraction": 0.95})
    assert not solution.feasible
    assert (solution.value, solution.sizing, solution.spec) == (None, None, None)
    assert solution.nearest is not None
    # Saves that take no time: 600 * 0.001537071.
    assert solution.nearest.goodput_fraction == pytest.approx(0.922243, rel=1e-6)
    assert solution.nearest.sizing.goodput.exact.restarting_fraction == pytest.approx(0.0525, abs=5e-5)
    assert solution.reason is not None
    assert (
        "restarts alone waste 0.0525 of the time, more than the 0.05 that the goal leaves" in solution.reason
    )
    assert "restart_seconds of at most 269.80" in solution.reason
    ways = {way.unknown: way.value for way in solution.nearest.ways_out}
    # R = M ln(T/M / (0.95 (e^(T/M) - 1)))
    by_hand = M * math.log(600 / M / 0.95 / (math.exp(600 / M) - 1))
    assert ways[SolutionUnknown.RESTART_SECONDS] == pytest.approx(by_hand, rel=1e-6)
    assert round(by_hand) == 270
    # With n GPUs M is 11,135 * 16,384 / n; 10,388 are too many for a loss of T/2M + R/M = 5 %.
    assert ways[SolutionUnknown.GPUS] == 10_387


def test_a_goal_beyond_all_help_says_so() -> None:
    solution = asked("restart_seconds", {"goodput_fraction": 1})
    assert solution.nearest is not None
    assert solution.nearest.value == 120  # the load must fit the restart
    assert solution.nearest.ways_out == []
    assert solution.reason is not None
    assert "No other quantity alone" in solution.reason


def test_one_percent_of_stall_at_youngs_interval_is_the_articles_2_2_seconds() -> None:
    young = {"rule": "young"}
    by_overhead = size(
        ScenarioSpec.model_validate(article(save={"mode": "sync", "overhead_fraction": 0.01}, interval=young))
    )
    solution = asked("blocking_seconds", {"goodput_fraction": goodput(by_overhead)}, article(interval=young))
    assert solution.value is not None
    assert round(solution.value, 1) == 2.2
    assert solution.value == pytest.approx(2 * M * 0.01**2, rel=1e-9)


def test_the_optimum_of_a_stall_is_the_only_interval_that_keeps_its_goodput() -> None:
    best = size(ScenarioSpec.model_validate(article(interval=EXACT)))
    a_little_less = {"goodput_fraction": goodput(best) * (1 - 1e-9)}
    solution = asked("interval_seconds", a_little_less, article(interval=None))
    assert solution.least_value is not None
    assert solution.value is not None
    assert solution.least_value < best.interval.exact_seconds < solution.value
    assert solution.value / solution.least_value == pytest.approx(1, abs=1e-3)
    missed = asked(
        "interval_seconds", {"goodput_fraction": goodput(best) * (1 + 1e-9)}, article(interval=None)
    )
    assert missed.nearest is not None
    assert missed.nearest.value == pytest.approx(best.interval.exact_seconds, rel=1e-4)


def test_the_stated_interval_is_an_end_of_the_range_that_keeps_its_goodput() -> None:
    solution = asked(
        "interval_seconds", {"goodput_fraction": goodput(size(ScenarioSpec.model_validate(ARTICLE)))}
    )
    assert solution.least_value == pytest.approx(600, rel=1e-9)
    assert solution.comparison == "at_most"
    assert solution.value is not None
    assert solution.value > 1176.3  # beyond the optimum
    assert solution.sizing is not None
    assert solution.sizing.interval.rule == "fixed"


def test_the_largest_cluster_for_90_percent() -> None:
    spec = article(save={"mode": "sync", "blocking_seconds": 6})
    gpus = found("gpus", {"goodput_fraction": 0.9}, spec)

    def by_hand(n: float) -> float:
        m = M * 16384 / n
        return (600 - 6) / m * math.exp(-600 / m) / (math.exp(600 / m) - 1)

    assert by_hand(gpus) >= 0.9 > by_hand(gpus + 1)
    assert gpus == 19_286


def test_a_budget_of_waste_is_a_goodput_for_a_cluster_that_stays_and_not_for_one_that_grows() -> None:
    budget = {"waste_usd_per_year": 40e6}
    solution = asked("blocking_seconds", budget)
    # 40e6 / (16,384 * 2.35 * 8760) = 0.1185955
    assert solution.goal_goodput_fraction == pytest.approx(0.8814045, abs=1e-7)
    assert solution.value == pytest.approx(600 - 0.8814045 / 0.001537071, rel=1e-5)
    assert solution.sizing is not None
    assert solution.sizing.cost is not None
    assert solution.sizing.cost.waste_usd_per_year == pytest.approx(40e6, rel=1e-12)
    grown = asked("gpus", budget)
    assert grown.goal_goodput_fraction is None
    assert grown.value == 12_594


def test_a_restart_limit_gives_the_read_bandwidth() -> None:
    # 600 s less the load of 120 s leave 480 s; 60 s for 5.67 TB are 94.5 GB/s.
    assert found("read_gb_per_second", {"restart_seconds": 540}) == pytest.approx(94.5, rel=1e-12)
    # Parts of 210 s leave 90 s: 63 GB/s; twice the bytes need twice that.
    for amplification, gb_per_second in ((1, 63), (2, 126)):
        restore = {"target_seconds": 120, "read_amplification": amplification}
        solution = asked(
            "read_gb_per_second", {"restart_seconds": 300}, article(restart=PARTS, restore=restore)
        )
        assert solution.value == pytest.approx(gb_per_second, rel=1e-12)
        assert solution.sizing is not None
        assert solution.sizing.read is not None
        assert solution.sizing.read.required_gb_per_second == pytest.approx(gb_per_second, rel=1e-12)
        assert solution.sizing.restart.seconds == pytest.approx(300, rel=1e-12)


def test_a_restart_limit_below_the_other_parts_says_what_they_would_have_to_take() -> None:
    solution = asked("read_gb_per_second", {"restart_seconds": 300})
    assert not solution.feasible
    assert solution.reason is not None
    assert "its other parts 480 s, which would have to take at most 300 s" in solution.reason
    assert solution.nearest is not None
    assert solution.nearest.restart_seconds == pytest.approx(480)


def test_the_persist_bandwidth_of_async_saves_is_their_bytes_over_the_lag_that_is_left() -> None:
    solution = asked("write_gb_per_second", {"goodput_fraction": 0.9}, article(save=ASYNC))
    lag = M * math.log(595 / M / 0.9 / (math.exp(600 / M) - 1)) - 600
    assert solution.value == pytest.approx(S / lag / 1e9, rel=1e-9)
    assert solution.sizing is not None
    assert solution.sizing.write.durable_lag_seconds == pytest.approx(lag, rel=1e-9)
    assert solution.sizing.write.required_gb_per_second == pytest.approx(solution.value, rel=1e-9)


def test_async_saves_may_even_wait_for_each_other_where_the_goal_is_low() -> None:
    solution = asked("write_gb_per_second", {"goodput_fraction": 0.567}, article(save=ASYNC))
    assert solution.sizing is not None
    assert solution.sizing.write.durable_lag_seconds == pytest.approx(
        900, rel=2e-3
    )  # as in the worked example
    assert solution.sizing.interval.effective_seconds is not None


@pytest.mark.parametrize("unknown", SolutionUnknown)
def test_a_storage_system_is_solved_on_what_it_delivers(unknown: SolutionUnknown) -> None:
    save = {"mode": "sync", "blocking_seconds": 60}
    solution = asked(unknown, {"goodput_fraction": 0.75}, article(storage=STORAGE, save=save, interval=EXACT))
    stays = unknown is SolutionUnknown.BLOCKING_SECONDS  # a budget, which the system does not change
    assert solution.basis == ("specified" if stays else "delivered")
    assert solution.sizing is not None
    assert solution.sizing.delivered is not None
    assert solution.sizing.delivered.goodput is not None
    speaks = solution.sizing if stays else solution.sizing.delivered
    assert speaks.goodput is not None
    least = speaks.goodput.exact.goodput_fraction
    assert 0.75 <= least < 0.75 * (1 + 1e-4)


def test_a_storage_system_that_only_has_space_delivers_no_goodput() -> None:
    spec = article(storage={"usable_tb": 200.0})
    assert asked("restart_seconds", {"goodput_fraction": 0.8}, spec).basis == "specified"


def test_more_bandwidth_does_not_help_where_the_nodes_are_the_limit() -> None:
    spec = article(storage={"node_gb_per_second": 0.04}, save={"mode": "sync"}, interval=EXACT)
    solution = asked("write_gb_per_second", {"goodput_fraction": 0.9}, spec)
    assert not solution.feasible
    assert solution.nearest is not None
    assert solution.nearest.sizing.delivered is not None
    assert solution.nearest.sizing.delivered.write is not None
    assert solution.nearest.sizing.delivered.write.limited_by == "node_bandwidth"


def test_a_cluster_can_be_too_small_for_its_nodes_and_too_large_for_its_failures() -> None:
    spec = article(storage={"node_gb_per_second": 0.1}, save={"mode": "sync"}, restart={"seconds": 120})
    solution = asked("gpus", {"goodput_fraction": 0.75}, spec)
    assert solution.value is not None
    assert solution.least_value is not None
    gpus, least = solution.value, solution.least_value
    for count, meets in ((gpus, True), (gpus + 64, False), (least, True), (least - 1, False), (1024, False)):
        sizing = size(ScenarioSpec.model_validate({**spec, "cluster": {"gpus": int(count)}}))
        assert sizing.delivered is not None
        assert sizing.delivered.goodput is not None
        assert (sizing.delivered.goodput.exact.goodput_fraction >= 0.75) is meets


def test_what_is_known_by_this_clusters_count_stays_known_by_it() -> None:
    spec = article(failures={"mtbf_hours": 3.0})
    same = article(failures={"mtbf_hours": 3.0, "mtbf_gpus": 16384})
    goal = {"goodput_fraction": 0.85}
    assert found("gpus", goal, spec) == found("gpus", goal, same) != 16384
    solution = asked("gpus", goal, spec)
    assert solution.spec is not None
    assert solution.spec.failures.mtbf_gpus == 16384


@pytest.mark.parametrize(
    ("unknown", "left_out"),
    [
        ("blocking_seconds", {"save": {"mode": "sync"}}),
        ("blocking_seconds", {"save": {"mode": "async"}}),
        ("write_gb_per_second", {"save": {"mode": "sync"}}),
        ("read_gb_per_second", {"restart": PARTS, "restore": None}),
        ("interval_seconds", {"interval": None}),
    ],
)
def test_the_unknown_may_be_left_out_and_what_is_stated_of_it_does_not_matter(
    unknown: str, left_out: dict[str, Any]
) -> None:
    stated = {
        "save": {**left_out.get("save", {}), "blocking_seconds": 60},
        "restart": {**PARTS, "load_seconds": 7},
        "interval": {"rule": "fixed", "seconds": 500},
    }
    goal = {"goodput_fraction": 0.8}
    spec = article(**left_out)
    with_it = article(**{**left_out, **{name: block for name, block in stated.items() if name in left_out}})
    assert with_it != spec
    assert found(unknown, goal, spec) == found(unknown, goal, with_it)


def test_a_goal_that_everything_meets_gives_the_end_of_the_range_and_says_so() -> None:
    solution = asked("restart_seconds", {"waste_usd_per_year": 1e18})
    assert (solution.feasible, solution.at_limit, solution.value) == (True, True, 1e7)
    assert asked("restart_seconds", {"goodput_fraction": 0.85}).at_limit is False


def test_free_gpus_waste_nothing() -> None:
    solution = asked("gpus", {"waste_usd_per_year": 0}, article(prices={"gpu_hour_usd": 0}))
    assert solution.at_limit
    assert solution.goal_goodput_fraction is None


@pytest.mark.parametrize("unknown", SolutionUnknown)
def test_a_budget_needs_a_price(unknown: SolutionUnknown) -> None:
    with pytest.raises(Unsatisfiable) as refused:
        asked(unknown, {"waste_usd_per_year": 1e6}, article(prices=None))
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [
        ("#/spec/prices/gpu_hour_usd", "missing")
    ]


@pytest.mark.parametrize("unknown", SolutionUnknown)
def test_a_spec_that_has_no_sizing_is_refused_where_it_is_wrong(unknown: SolutionUnknown) -> None:
    spec = article(model={"parameters": 1, "bytes_per_parameter": 0.01})
    with pytest.raises(Unsatisfiable) as refused:
        asked(unknown, {"goodput_fraction": 0.5}, spec)
    assert [fault.pointer for fault in refused.value.faults] == ["#/spec/model"]


@pytest.mark.parametrize("unknown", [each for each in SolutionUnknown if each != "read_gb_per_second"])
def test_a_restart_limit_can_be_asked_of_the_read_bandwidth_alone(unknown: SolutionUnknown) -> None:
    with pytest.raises(ValidationError, match="read_gb_per_second alone"):
        asked(unknown, {"restart_seconds": 300})


def test_a_read_bandwidth_needs_to_know_what_of_the_restart_is_the_load() -> None:
    with pytest.raises(ValidationError, match="How much of the restart is the load"):
        asked("read_gb_per_second", {"goodput_fraction": 0.5}, article(restore=None))


@pytest.mark.parametrize("goal", [{}, {"goodput_fraction": 0.9, "restart_seconds": 5}])
def test_there_is_one_goal(goal: Body) -> None:
    with pytest.raises(ValidationError, match=r"one of|one goal"):
        asked("read_gb_per_second", goal)


@st.composite
def reachable(draw: st.DrawFn) -> tuple[SolutionQuestion, float]:
    """Draw a question, and a value that is known to meet its goal: a sizing gives a little more there."""
    body = draw(bodies())
    unknown = draw(st.sampled_from(list(SolutionUnknown)))
    goal = draw(st.sampled_from(["goodput_fraction", "waste_usd_per_year"]))
    try:
        question = SolutionQuestion.model_validate({"spec": body, "unknown": unknown, "goal": {goal: 1}})
        spec = question.spec
        this = ask(spec, unknown, unknowns.basis_of(spec, unknown))
        ends = unknowns.range_of(this)
        low, high = sorted(ends)
        value = draw(logarithmic(max(low, 1e-6), max(high, 2e-6)))
        value = float(round(value)) if unknown is SolutionUnknown.GPUS else value
        reached = unknowns.reached(size(unknowns.put_in(this, value)), this.basis)
    except (ValidationError, Unsatisfiable):
        assume(False)
    wanted = getattr(reached, goal)
    assume(wanted is not None and low <= value <= high)
    assume(goal != "goodput_fraction" or 2e-6 <= wanted <= 1)
    assume(goal != "waste_usd_per_year" or wanted <= 9e17)
    assert wanted is not None
    wanted *= 1 - 1e-9 if goal == "goodput_fraction" else 1 + 1e-9
    return question.model_copy(update={"goal": SolutionGoal(**{goal: wanted})}), value


def _worse(spec: ScenarioSpec, solution: Solution, by: float) -> ScenarioSpec:
    """Return the answered spec with the value moved a little past the goal."""

    def changed(block: str, **fields: object) -> ScenarioSpec:
        return spec.model_copy(update={block: getattr(spec, block).model_copy(update=fields)})

    assert solution.value is not None
    match solution.unknown:
        case SolutionUnknown.WRITE_GB_PER_SECOND:
            if spec.storage is not None:
                return changed("storage", write_gb_per_second=solution.value * (1 - by))
            name = "blocking_seconds" if spec.save.mode == "sync" else "durable_lag_seconds"
            return changed("save", **{name: getattr(spec.save, name) * (1 + by)})
        case SolutionUnknown.READ_GB_PER_SECOND:
            if spec.storage is not None:
                return changed("storage", read_gb_per_second=solution.value * (1 - by))
            assert spec.restore is not None
            if spec.restart.seconds is not None:
                return changed("restart", seconds=spec.restart.seconds + spec.restore.target_seconds * by)
            return changed("restore", target_seconds=spec.restore.target_seconds * (1 + by))
        case SolutionUnknown.BLOCKING_SECONDS:
            return changed("save", blocking_seconds=solution.value * (1 + by))
        case SolutionUnknown.RESTART_SECONDS:
            return changed("restart", seconds=max(solution.value * (1 + by), 2e-6))
        case SolutionUnknown.INTERVAL_SECONDS:
            return changed("interval", seconds=solution.value * (1 + by))
        case SolutionUnknown.GPUS:
            return changed("cluster", gpus=int(solution.value) + 1)


@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(drawn=reachable())
def test_what_can_be_reached_is_found_and_meets_the_goal_and_a_little_worse_misses_it(
    drawn: tuple[SolutionQuestion, float],
) -> None:
    question, meets = drawn
    solution = solve(question)
    assert solution.feasible, solution.reason
    assert solution.value is not None
    assert solution.spec is not None
    # What is answered can be sent again, and gives the same sizing, which meets the goal.
    again = ScenarioSpec.model_validate_json(
        solution.model_dump_json(include={"spec"}, exclude_none=True)[8:-1]
    )
    assert size(again) == solution.sizing
    reached = unknowns.reached(size(again), solution.basis)
    assert reached.margin(question.goal) >= 0
    # It is no dearer than the value that was known to meet it.
    cheaper = 1 if solution.comparison == "at_most" else -1
    assert cheaper * solution.value >= cheaper * meets * (1 - cheaper * 1e-9)
    if solution.least_value is not None:
        assert solution.least_value <= meets * (1 + 1e-9)
        assert solution.least_value <= solution.value
    if solution.at_limit:
        return
    try:
        worse = unknowns.reached(size(_worse(again, solution, 1e-6)), solution.basis)
    except Unsatisfiable:
        return
    scale = (
        1.0
        if question.goal.goodput_fraction is not None
        else max(question.goal.waste_usd_per_year or 0, 1e-9)
    )
    assert worse.margin(question.goal) <= 1e-12 * scale


@settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(
    body=bodies(),
    unknown=st.sampled_from(list(SolutionUnknown)),
    goodput_fraction=st.floats(0.3, 1),
    place=st.floats(0, 1),
)
def test_what_is_called_out_of_reach_is_reached_by_no_value_and_by_each_way_out(
    body: Body, unknown: SolutionUnknown, goodput_fraction: float, place: float
) -> None:
    goal = {"goodput_fraction": goodput_fraction}
    try:
        question = SolutionQuestion.model_validate({"spec": body, "unknown": unknown, "goal": goal})
        solution = solve(question)
    except (ValidationError, Unsatisfiable):
        return
    if solution.feasible:
        return
    nearest = solution.nearest
    assert nearest is not None
    assert solution.reason is not None
    this = ask(question.spec, unknown, solution.basis)
    low, high = sorted(unknowns.range_of(this))
    other = min(math.exp(math.log(max(low, 1e-6)) * (1 - place) + math.log(high) * place), high)
    try:
        reached = unknowns.reached(size(unknowns.put_in(this, other)), solution.basis)
    except Unsatisfiable:
        pass
    else:
        assert reached.margin(question.goal) < 0
        assert (reached.goodput_fraction or 0) <= (nearest.goodput_fraction or 0) + 1e-9
    for way in nearest.ways_out:
        spec = unknowns.put_in(ask(nearest.spec, way.unknown, solution.basis), way.value)
        assert unknowns.reached(size(spec), solution.basis).margin(question.goal) >= 0
    for pair in nearest.pairs_out or ():
        spec = unknowns.put_in(ask(nearest.spec, pair.first.unknown, solution.basis), pair.first.value)
        spec = unknowns.put_in(ask(spec, pair.second.unknown, solution.basis), pair.second.value)
        assert unknowns.reached(size(spec), solution.basis).margin(question.goal) >= 0


@pytest.mark.parametrize("rule", ["exact", "young", "daly", "fixed"])
@pytest.mark.parametrize("save", [{"mode": "sync", "blocking_seconds": 20}, ASYNC])
@pytest.mark.parametrize("unknown", [each for each in SolutionUnknown if each != "interval_seconds"])
def test_no_value_beyond_the_answer_meets_the_goal(unknown: SolutionUnknown, save: Body, rule: str) -> None:
    interval = {"rule": "fixed", "seconds": 900} if rule == "fixed" else {"rule": rule}
    spec = article(save=save, interval=interval)
    solution = asked(unknown, {"goodput_fraction": 0.8}, spec)
    assert solution.value is not None
    question = SolutionQuestion.model_validate(
        {"spec": spec, "unknown": unknown, "goal": {"goodput_fraction": 0.8}}
    )
    this = ask(question.spec, unknown, SolutionBasis.SPECIFIED)
    end = unknowns.range_of(this).cheapest
    for step in range(1, 61):
        value = solution.value * (end / solution.value) ** (step / 60)
        try:
            sizing = size(unknowns.put_in(this, value))
        except Unsatisfiable:
            continue
        assert goodput(sizing) < 0.8 or (unknown is SolutionUnknown.GPUS and round(value) == solution.value)


EXPLAINED: list[tuple[str, Body, Body, str]] = [
    ("write_gb_per_second", {"goodput_fraction": 0.9}, ARTICLE, "sync_write_for_goodput"),
    ("write_gb_per_second", {"goodput_fraction": 0.95}, ARTICLE, "nearest"),
    ("write_gb_per_second", {"goodput_fraction": 0.8}, article(interval=EXACT), "solved"),
    ("write_gb_per_second", {"goodput_fraction": 0.9}, article(save=ASYNC), "async_write_for_goodput"),
    ("write_gb_per_second", {"goodput_fraction": 0.5}, article(save=ASYNC), "solved"),
    ("write_gb_per_second", {"goodput_fraction": 0.8}, article(storage=STORAGE), "sync_write_for_goodput"),
    ("read_gb_per_second", {"restart_seconds": 540}, ARTICLE, "read_for_restart"),
    ("read_gb_per_second", {"restart_seconds": 300}, ARTICLE, "nearest"),
    ("read_gb_per_second", {"goodput_fraction": 0.8}, article(restart=PARTS), "read_for_goodput"),
    ("read_gb_per_second", {"goodput_fraction": 0.7}, article(storage=STORAGE), "read_for_goodput"),
    ("blocking_seconds", {"waste_usd_per_year": 40e6}, ARTICLE, "blocking_for_goodput"),
    ("restart_seconds", {"goodput_fraction": 0.85}, ARTICLE, "restart_for_goodput"),
    ("restart_seconds", {"goodput_fraction": 0.7}, article(storage=STORAGE, interval=EXACT), "solved"),
    ("restart_seconds", {"waste_usd_per_year": 1e18}, ARTICLE, "end_of_range"),
    ("restart_seconds", {"waste_usd_per_year": 40e6}, article(storage=STORAGE, interval=EXACT), "nearest"),
    ("interval_seconds", {"goodput_fraction": 0.84}, ARTICLE, "solved"),
    ("interval_seconds", {"goodput_fraction": 0.9}, article(storage=STORAGE), "nearest"),
    ("gpus", {"waste_usd_per_year": 40e6}, ARTICLE, "solved_count"),
    ("read_gb_per_second", {"goodput_fraction": 0.97}, ARTICLE, "nearest"),
    ("gpus", {"goodput_fraction": 0.95}, ARTICLE, "nearest"),
    ("blocking_seconds", {"goodput_fraction": 0.8}, COLLIDING, "solved"),
]


def _numbers(value: object, at: str = "#") -> dict[str, float]:
    if isinstance(value, dict):
        return {
            place: number
            for key, item in value.items()
            if key not in ("sizing", "spec", "explanation")
            for place, number in _numbers(item, f"{at}/{key}").items()
        }
    if isinstance(value, list):
        return {k: v for n, item in enumerate(value) for k, v in _numbers(item, f"{at}/{n}").items()}
    return {at: value} if isinstance(value, int | float) and not isinstance(value, bool) else {}


@pytest.mark.parametrize(("unknown", "goal", "spec", "formula"), EXPLAINED)
def test_every_figure_of_a_solution_has_one_line_that_gives_it(
    unknown: str, goal: Body, spec: Body, formula: str
) -> None:
    solution = asked(unknown, goal, spec, explained=True)
    assert solution.explanation is not None
    figures = _numbers(solution.model_dump(mode="json", exclude_none=True))
    assert sorted(line.pointer for line in solution.explanation) == sorted(figures)
    by_pointer = {line.pointer: line.formula for line in solution.explanation}
    assert formula in (by_pointer.get("#/value"), by_pointer.get("#/nearest/value"))
    units = {unit for _, unit in UNITS_BY_SUFFIX} | {"1"}
    for line in solution.explanation:
        inputs = {entry.name: entry.value for entry in line.inputs}
        assert REGISTER[line.formula].function(**inputs) == pytest.approx(figures[line.pointer], rel=1e-9)
        assert line.expression == REGISTER[line.formula].expression
        assert line.source
        assert {entry.unit for entry in line.inputs} <= units
        if line.formula in ("solved", "solved_count"):
            _, reached, wanted = inputs.values()
            assert reached <= wanted if "waste_usd_per_year" in inputs else reached >= wanted
            assert line.formula == "solved_count" or reached == pytest.approx(wanted, rel=1e-6)
    sizing = solution.sizing if solution.nearest is None else solution.nearest.sizing
    assert sizing is not None
    assert sizing.explanation
    assert solution.model_copy(update={"explanation": None, "sizing": None, "nearest": None}) == asked(
        unknown, goal, spec
    ).model_copy(update={"sizing": None, "nearest": None})


# Two nodes that stage 8 of their 78 GiB; 130 s are allowed, 13 of them for the copy.
STAGED: Body = article(
    model={"parameters": 11_964_551_753},
    cluster={"gpus": 16},
    failures={"mtbf_hours": 24},
    save={
        "mode": "async",
        "blocking_seconds": 130,
        "copy_seconds": 13,
        "staging_budget_bytes_per_node": 8_589_934_592,
    },
    interval={"rule": "fixed", "seconds": 1800},
)


def test_a_write_bandwidth_keeps_a_staged_save_to_its_own_target_whatever_the_goal_would_allow() -> None:
    solution = asked("write_gb_per_second", {"goodput_fraction": 0.9}, STAGED)
    assert solution.value == pytest.approx(1.28482, rel=1e-5)  # 2 * 70 GiB in 117 s
    assert solution.at_limit
    assert solution.notice is None
    assert solution.sizing is not None
    assert solution.sizing.blocking.seconds == pytest.approx(130, rel=1e-12)
    assert solution.sizing.write.required_gb_per_second == pytest.approx(solution.value, rel=1e-12)
    a_little_more = {"goodput_fraction": goodput(solution.sizing) + 1e-5}
    more = asked("write_gb_per_second", a_little_more, STAGED)
    assert more.value is not None
    assert more.value > 1.285
    assert not more.at_limit


def test_a_staged_save_on_a_given_storage_may_meet_the_goal_with_a_stall_that_is_not_allowed() -> None:
    solution = asked(
        "write_gb_per_second", {"goodput_fraction": 0.9}, STAGED | {"storage": {"node_gb_per_second": 1.0}}
    )
    assert solution.basis == "delivered"
    assert solution.notice is not None
    assert "where 130 s are allowed: the goal is met all the same" in solution.notice


def test_a_stall_no_longer_than_the_copy_makes_staged_saves_wait() -> None:
    solution = asked("blocking_seconds", {"goodput_fraction": 0.9}, STAGED)
    assert solution.value == pytest.approx(151.298, abs=1e-3)
    assert solution.least_value == pytest.approx(13, rel=1e-6)
    save = STAGED["save"]

    def at(seconds: float) -> float:
        return goodput(
            size(ScenarioSpec.model_validate(STAGED | {"save": save | {"blocking_seconds": seconds}}))
        )

    assert at(13) < 0.9 < at(13.0001)


def test_an_interval_at_which_the_stall_that_is_allowed_outlasts_the_copy_is_found() -> None:
    save = {name: value for name, value in STAGED["save"].items() if name != "blocking_seconds"}
    spec = STAGED | {"save": save | {"overhead_fraction": 0.02}}
    solution = asked("interval_seconds", {"goodput_fraction": 0.9695}, spec)
    assert solution.feasible
    assert solution.least_value == pytest.approx(13 / 0.02, rel=1e-6)


def test_what_no_quantity_alone_reaches_is_reached_by_a_pair_and_the_pair_is_named() -> None:
    solution = asked("read_gb_per_second", {"goodput_fraction": 0.97})
    assert solution.nearest is not None
    assert solution.nearest.goodput_fraction == pytest.approx(0.8390, abs=5e-5)
    assert solution.nearest.ways_out == []
    assert solution.nearest.pairs_out is not None
    first = solution.nearest.pairs_out[0]
    assert (first.first.unknown, first.second.unknown) == ("restart_seconds", "blocking_seconds")
    assert first.first.value == pytest.approx(4.8, rel=1e-6)  # a hundredth of the 480 s that are left
    # C = T - g M (e^(T/M) - 1) e^(R/M)
    by_hand = 600 - 0.97 * M * (math.exp(600 / M) - 1) * math.exp(4.8 / M)
    assert first.second.value == pytest.approx(by_hand, rel=1e-5)
    assert solution.reason is not None
    assert "restart_seconds of 4.8000001 together with blocking_seconds of at most 1.776" in solution.reason
    for pair in solution.nearest.pairs_out:
        spec = solution.nearest.spec
        for way in (pair.first, pair.second):
            spec = unknowns.put_in(ask(spec, way.unknown, solution.basis), way.value)
        assert goodput(size(spec)) >= 0.97


def test_what_only_a_smaller_cluster_or_all_times_together_reach_says_both() -> None:
    solution = asked("read_gb_per_second", {"goodput_fraction": 0.99})
    assert solution.reason is not None
    assert "blocking_seconds of 0.6 together with gpus of at most 2116 would; " in solution.reason
    assert "restart_seconds of 0.48, blocking_seconds of 0.06 and interval_seconds of" in solution.reason
    assert solution.reason.endswith("together would too.")


def test_a_goal_that_nothing_reaches_says_how_far_everything_goes() -> None:
    solution = asked("read_gb_per_second", {"goodput_fraction": 1})
    assert solution.reason is not None
    assert "nor would any two: even with restart_seconds of" in solution.reason
    assert "where 1 is wanted." in solution.reason


PER_NODE: Body = {"write_gb_per_second": 100, "read_gb_per_second": 50, "node_gb_per_second": 1}


def test_an_answer_that_does_not_hold_on_the_given_storage_says_so() -> None:
    spec = article(restart=PARTS | {"initialise_seconds": 140}, storage=PER_NODE)
    solution = asked("blocking_seconds", {"goodput_fraction": 0.85}, spec)
    assert (solution.feasible, solution.basis) == (True, "specified")
    assert solution.sizing is not None
    assert solution.sizing.delivered is not None
    assert solution.sizing.delivered.goodput is not None
    held = solution.sizing.delivered.goodput.exact.goodput_fraction
    assert (held < 0.85) == (solution.notice is not None)
    higher = asked("blocking_seconds", {"goodput_fraction": 0.9}, spec)
    assert higher.feasible
    assert higher.notice is not None
    assert higher.notice.startswith("On the given storage system the goodput is 0.")
    assert "where 0.9 is wanted" in higher.notice
    missed = asked("blocking_seconds", {"goodput_fraction": 0.97}, spec)
    assert missed.nearest is not None
    gpus = next(way for way in missed.nearest.ways_out if way.unknown is SolutionUnknown.GPUS)
    assert gpus.notice is not None
    assert "(but not on the given storage system)" in (missed.reason or "")


def test_copies_that_do_not_fit_the_given_storage_are_noticed() -> None:
    spec = article(storage=STORAGE | {"usable_tb": 20.0})
    solution = asked("restart_seconds", {"goodput_fraction": 0.7}, spec)
    assert solution.notice is not None
    assert "20 TB are usable" in solution.notice
