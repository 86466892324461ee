"""solve(question) gives what an unknown has to be for a goal, or how near it comes and what would reach the goal."""

import math

from service.errors import Unsatisfiable
from service.sizing import unknowns
from service.sizing.explain.solution import explain_found, explain_missed
from service.sizing.search import Found, Missed, Trial, ask, checked, find, goal_goodput
from service.sizing.size import ENGINE_VERSION, size
from service.sizing.sizing import Comparison, ExactGoodput
from service.sizing.solution import Solution, SolutionNearest, WayOut
from service.sizing.spec import ScenarioSpec, SolutionGoal, SolutionQuestion, SolutionUnknown
from service.sizing.unknowns import Asked


def solve(question: SolutionQuestion, *, explained: bool = False) -> Solution:
    """Return what the unknown of a scenario has to be to reach a goal, or how near it comes and what would reach it.

    Args:
        question: The scenario, its unknown, and the goal.
        explained: Add for each figure its formula, inputs, assumption and source, here and in the sizing.

    Raises:
        Unsatisfiable: The spec has no answer whatever the unknown is; the faults name its fields.
    """
    spec, unknown, goal = question.spec, question.unknown, question.goal
    try:
        asked = ask(spec, unknown, unknowns.basis_of(spec, unknown))
        outcome = find(asked, goal)
        if isinstance(outcome, Found):
            return _feasible(asked, goal, outcome, explained=explained)
        return _infeasible(asked, goal, outcome, explained=explained)
    except Unsatisfiable as error:
        raise error.below("#/spec") from None


def _feasible(asked: Asked, goal: SolutionGoal, found: Found, *, explained: bool) -> Solution:
    spec = checked(unknowns.put_in(asked, found.trial.value))
    wanted = goal_goodput(asked, goal, found.trial.sizing)
    return Solution(
        engine_version=ENGINE_VERSION,
        feasible=True,
        unknown=asked.unknown,
        unit=unknowns.UNITS[asked.unknown],
        basis=asked.basis,
        goal_goodput_fraction=wanted,
        value=found.trial.value,
        comparison=unknowns.comparison(asked.unknown),
        least_value=found.least.value if found.least is not None else None,
        at_limit=found.at_limit,
        spec=spec,
        sizing=size(spec, explained=explained),
        explanation=explain_found(asked, goal, wanted, found) if explained else None,
    )


def _infeasible(asked: Asked, goal: SolutionGoal, missed: Missed, *, explained: bool) -> Solution:
    trial = missed.trial
    spec = checked(unknowns.put_in(asked, trial.value))
    wanted = goal_goodput(asked, goal, trial.sizing)
    ways = [] if goal.restart_seconds is not None else _ways_out(asked, goal, spec)
    listed = [
        WayOut(
            unknown=other,
            comparison=unknowns.comparison(other),
            value=found.trial.value,
            least_value=found.least.value if found.least is not None else None,
            unit=unknowns.UNITS[other],
        )
        for other, found in ways
    ]
    return Solution(
        engine_version=ENGINE_VERSION,
        feasible=False,
        unknown=asked.unknown,
        unit=unknowns.UNITS[asked.unknown],
        basis=asked.basis,
        goal_goodput_fraction=wanted,
        reason=_reason(asked, goal, wanted, trial, listed),
        nearest=SolutionNearest(
            value=trial.value,
            **trial.reached._asdict(),
            spec=spec,
            ways_out=listed,
            sizing=size(spec, explained=True) if explained else trial.sizing,
        ),
        explanation=explain_missed(asked, goal, wanted, trial, ways) if explained else None,
    )


def _ways_out(asked: Asked, goal: SolutionGoal, spec: ScenarioSpec) -> list[tuple[SolutionUnknown, Found]]:
    """Return the other quantities that would reach the goal, in a spec that has the unknown where it comes nearest."""
    ways = []
    for other in unknowns.levers(asked):
        try:
            outcome = find(ask(spec, other, asked.basis), goal)
        except Unsatisfiable:
            continue
        if isinstance(outcome, Found):
            ways.append((other, outcome))
    return ways


def _reason(
    asked: Asked, goal: SolutionGoal, goal_goodput_fraction: float | None, trial: Trial, ways: list[WayOut]
) -> str:
    at = f"With {asked.unknown} at its best, {trial.value:.6g},"
    block = unknowns.figures(trial.sizing, asked.basis)
    if goal.restart_seconds is not None and block.restart is not None:
        whole, load = block.restart.seconds, block.restart.load_seconds or 0.0
        left = goal.restart_seconds - load
        cure = f"would have to take at most {left:.6g} s" if left >= 0.0 else "cannot make up for it"
        return (
            f"{at} a restart takes {whole:.6g} s, where at most {goal.restart_seconds:.6g} s are wanted: its load "
            f"takes {load:.6g} s of them, and its other parts {whole - load:.6g} s, which {cure}."
        )
    if block.goodput is None:
        cause = trial.sizing.delivered.reason if trial.sizing.delivered is not None else None
        return " ".join(filter(None, (f"{at} no time is left to train.", cause, _cure(ways))))
    if goal.goodput_fraction is not None:
        found, wanted = _apart(
            trial.reached.goodput_fraction, goal.goodput_fraction, [f".{n}g" for n in range(4, 18)]
        )
        shortfall = f"the goodput is {found}, where {wanted} is wanted"
    else:
        found, wanted = _apart(
            trial.reached.waste_usd_per_year, goal.waste_usd_per_year, [f",.{n}f" for n in range(12)]
        )
        shortfall = f"the waste is {found} USD a year, where {wanted} are allowed"
    return f"{at} {shortfall}: {_parts(block.goodput.exact, goal_goodput_fraction)}. {_cure(ways)}"


def _parts(split: ExactGoodput, goal_goodput_fraction: float | None) -> str:
    """Return where the time goes, the largest part first, and whether that part alone is more than the goal leaves."""
    parts = sorted(
        (
            (split.restarting_fraction, "restarts"),
            (split.lost_work_fraction, "lost work"),
            (split.saving_fraction, "saves"),
        ),
        reverse=True,
    )
    fraction, largest = parts[0]
    rest = " and ".join(f"{name} {part:.3g}" for part, name in parts[1:])
    if goal_goodput_fraction is not None and fraction > 1.0 - goal_goodput_fraction:
        return (
            f"{largest} alone waste {fraction:.3g} of the time, more than the {1.0 - goal_goodput_fraction:.3g} that "
            f"the goal leaves; {rest}"
        )
    return f"{largest} waste {fraction:.3g} of the time, {rest}"


def _cure(ways: list[WayOut]) -> str:
    if not ways:
        return "No other quantity alone would reach the goal beside that."
    return f"Beside that, {', or '.join(map(_shown, ways))} would reach the goal."


_SIDES = {Comparison.AT_LEAST: "at least", Comparison.AT_MOST: "at most"}


def _shown(way: WayOut) -> str:
    up = way.comparison is Comparison.AT_LEAST
    if way.least_value is None:
        return f"{way.unknown} of {_SIDES[way.comparison]} {_rounded(way.value, up=up)}"
    return f"{way.unknown} between {_rounded(way.least_value, up=True)} and {_rounded(way.value, up=False)}"


def _rounded(value: float, *, up: bool) -> str:
    """Return a value with eight digits, rounded to the side on which it still reaches the goal."""
    if float(value).is_integer():
        return f"{value:.0f}"
    step = 10.0 ** (math.floor(math.log10(value)) - 7)
    return f"{(math.ceil if up else math.floor)(value / step) * step:.8g}"


def _apart(found: float | None, wanted: float | None, formats: list[str]) -> tuple[str, str]:
    """Return two numbers in the first of the formats that tells them apart, or else in the last."""
    pairs = [(format(found, each), format(wanted, each)) for each in formats]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])
