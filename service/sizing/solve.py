"""solve(question) gives what an unknown has to be for a goal, or how near it comes and what would reach the goal."""

import math

from service.errors import Unsatisfiable
from service.sizing import unknowns
from service.sizing.explain.solution import explain_found, explain_missed
from service.sizing.search import Found, Missed, Trial, ask, checked, find, goal_goodput
from service.sizing.size import ENGINE_VERSION, size
from service.sizing.sizing import Comparison, ExactGoodput, Sizing
from service.sizing.solution import Solution, SolutionBasis, SolutionNearest, WayOut, WayOutPair
from service.sizing.spec import SolutionGoal, SolutionQuestion, SolutionUnknown
from service.sizing.unknowns import Asked, Reached
from service.sizing.ways_out import Limit, pairs_out, together, ways_out


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
        notice=_notice(asked, goal, found.trial.sizing),
        spec=spec,
        sizing=size(spec, explained=explained),
        explanation=explain_found(asked, goal, wanted, found) if explained else None,
    )


def _infeasible(asked: Asked, goal: SolutionGoal, missed: Missed, *, explained: bool) -> Solution:
    trial = missed.trial
    spec = checked(unknowns.put_in(asked, trial.value))
    wanted = goal_goodput(asked, goal, trial.sizing)
    has_ways = goal.restart_seconds is None
    ways = ways_out(asked, goal, spec) if has_ways else []
    pairs = pairs_out(asked, goal, spec) if has_ways and not ways else []
    all_shrink = all(pair.shrinks_the_cluster for pair in pairs)
    limit = together(asked, goal, spec) if has_ways and not ways and all_shrink else None
    listed = [_way_out(asked, goal, other, found) for other, found in ways]
    in_pairs = [
        WayOutPair(
            first=WayOut(
                unknown=pair.first,
                comparison=unknowns.comparison(pair.first),
                value=pair.value,
                unit=unknowns.UNITS[pair.first],
            ),
            second=_way_out(asked, goal, pair.second, pair.found),
        )
        for pair in pairs
    ]
    return Solution(
        engine_version=ENGINE_VERSION,
        feasible=False,
        unknown=asked.unknown,
        unit=unknowns.UNITS[asked.unknown],
        basis=asked.basis,
        goal_goodput_fraction=wanted,
        reason=_reason(asked, goal, wanted, trial, _cure(listed, in_pairs, limit, goal)),
        nearest=SolutionNearest(
            value=trial.value,
            **trial.reached._asdict(),
            spec=spec,
            ways_out=listed,
            pairs_out=in_pairs or None,
            sizing=size(spec, explained=True) if explained else trial.sizing,
        ),
        explanation=explain_missed(asked, goal, wanted, trial, ways, pairs) if explained else None,
    )


def _way_out(asked: Asked, goal: SolutionGoal, unknown: SolutionUnknown, found: Found) -> WayOut:
    return WayOut(
        unknown=unknown,
        comparison=unknowns.comparison(unknown),
        value=found.trial.value,
        least_value=found.least.value if found.least is not None else None,
        unit=unknowns.UNITS[unknown],
        notice=_notice(asked, goal, found.trial.sizing),
    )


def _notice(asked: Asked, goal: SolutionGoal, sizing: Sizing) -> str | None:
    """Return what of an answer is not as the spec asks for it, or not on the given storage system."""
    says, block = [], sizing.delivered
    stall = unknowns.figures(sizing, asked.basis).blocking
    if stall is not None and stall.budget_seconds is not None:
        says.append(
            f"A save stops training for {stall.seconds:.6g} s, where {stall.budget_seconds:.6g} s are allowed: "
            "the goal is met all the same."
        )
    moves = block is not None and (block.write is not None or block.read is not None)
    if block is not None and moves and asked.basis is SolutionBasis.SPECIFIED:
        reached = unknowns.reached(sizing, SolutionBasis.DELIVERED)
        if block.goodput is None:
            says.append("On the given storage system no time is left to train.")
        elif reached.margin(goal) < 0.0:
            says.append(
                f"On the given storage system {_shortfall(reached, goal)}: "
                "the goal is met by the scenario's own figures alone."
            )
    if block is not None and not block.feasible and block.reason is not None:
        says.append(block.reason)
    return " ".join(says) or None


def _reason(
    asked: Asked, goal: SolutionGoal, goal_goodput_fraction: float | None, trial: Trial, cure: str
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
        return " ".join(filter(None, (f"{at} no time is left to train.", cause, cure)))
    shortfall = _shortfall(trial.reached, goal)
    return f"{at} {shortfall}: {_parts(block.goodput.exact, goal_goodput_fraction)}. {cure}"


def _shortfall(reached: Reached, goal: SolutionGoal) -> str:
    """Return what is reached, and what is wanted, of the goodput or of the waste."""
    if goal.goodput_fraction is not None:
        found, wanted = _apart(
            reached.goodput_fraction, goal.goodput_fraction, [f".{n}g" for n in range(4, 18)]
        )
        return f"the goodput is {found}, where {wanted} is wanted"
    found, wanted = _apart(
        reached.waste_usd_per_year, goal.waste_usd_per_year, [f",.{n}f" for n in range(12)]
    )
    return f"the waste is {found} USD a year, where {wanted} are allowed"


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


def _cure(ways: list[WayOut], pairs: list[WayOutPair], limit: Limit | None, goal: SolutionGoal) -> str:
    """Return the sentences that say what would reach the goal, or how far everything together goes."""
    if ways:
        return f"Beside that, {', or '.join(map(_shown, ways))} would reach the goal."
    alone = "No other quantity alone would reach the goal beside that"
    if pairs:
        first, second = pairs[0].first, pairs[0].second
        alone += f"; {first.unknown} of {first.value:.8g} together with {_shown(second)} would"
    else:
        alone += ", nor would any two"
    if limit is None:
        return f"{alone}."
    every = ", ".join(f"{unknown} of {value:.6g}" for unknown, value in limit.values.items())
    every += f"{' and ' if every else ''}interval_seconds of {limit.trial.value:.6g}"
    if limit.trial.meets:
        return f"{alone}; {every} together would{' too' if pairs else ''}."
    if pairs:
        return f"{alone}, and no other change of times and bandwidths."
    left = (
        _shortfall(limit.trial.reached, goal)
        if limit.trial.reached.has_goodput
        else "no time is left to train"
    )
    return f"{alone}: even with {every}, {left}."


_SIDES = {Comparison.AT_LEAST: "at least", Comparison.AT_MOST: "at most"}


def _shown(way: WayOut) -> str:
    up = way.comparison is Comparison.AT_LEAST
    elsewhere = " (but not on the given storage system)" if way.notice is not None else ""
    if way.least_value is None:
        return f"{way.unknown} of {_SIDES[way.comparison]} {_rounded(way.value, up=up)}{elsewhere}"
    least, most = _rounded(way.least_value, up=True), _rounded(way.value, up=False)
    return f"{way.unknown} between {least} and {most}{elsewhere}"


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
