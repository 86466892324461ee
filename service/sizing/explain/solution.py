"""How the figures of a solution came about: a closed form where one gave the value, else where the search ended."""

from service.sizing.explain.lines import EXPONENTIAL, Lines
from service.sizing.search import Found, Trial
from service.sizing.sizing import Explanation
from service.sizing.solution import SolutionBasis
from service.sizing.spec import SolutionGoal, SolutionUnknown
from service.sizing.unknowns import Asked, figures
from service.sizing.ways_out import Pair


def explain_found(
    asked: Asked, goal: SolutionGoal, goal_goodput_fraction: float | None, found: Found
) -> list[Explanation]:
    """Return a line for every number of a solution, those of its sizing left out."""
    lines = Lines()
    _explain_goal(lines, asked, goal, goal_goodput_fraction, found.trial)
    _explain_value(lines, "#/value", asked.unknown, goal, found)
    if found.least is not None:
        _explain_value(lines, "#/least_value", asked.unknown, goal, Found(found.least))
    return lines


def explain_missed(
    asked: Asked,
    goal: SolutionGoal,
    goal_goodput_fraction: float | None,
    trial: Trial,
    ways: list[tuple[SolutionUnknown, Found]],
    pairs: list[Pair],
) -> list[Explanation]:
    """Return the same where nothing reaches the goal."""
    lines = Lines()
    _explain_goal(lines, asked, goal, goal_goodput_fraction, trial)
    lines.add(
        "#/nearest/value",
        "nearest",
        {asked.unknown: trial.value, **{f"nearest.{name}": value for name, value in _known(trial).items()}},
        "No other value comes nearer.",
    )
    place = "nearest.sizing." + ("delivered." if asked.basis is SolutionBasis.DELIVERED else "")
    for name, value in _known(trial).items():
        lines.add(f"#/nearest/{name}", "same", {place + _PLACES[name]: value})
    for index, (other, found) in enumerate(ways):
        at = f"#/nearest/ways_out/{index}"
        _explain_value(lines, f"{at}/value", other, goal, found)
        if found.least is not None:
            _explain_value(lines, f"{at}/least_value", other, goal, Found(found.least))
    for index, pair in enumerate(pairs):
        at = f"#/nearest/pairs_out/{index}"
        lines.add(
            f"{at}/first/value",
            "given",
            {pair.first: pair.value},
            f"{pair.factor:g} of what the scenario has; of a bandwidth, so many times as much."
            if pair.factor
            else "Where it helps most.",
        )
        _explain_value(lines, f"{at}/second/value", pair.second, goal, pair.found)
        if pair.found.least is not None:
            _explain_value(lines, f"{at}/second/least_value", pair.second, goal, Found(pair.found.least))
    return lines


_PLACES = {
    "goodput_fraction": "goodput.exact.goodput_fraction",
    "waste_usd_per_year": "cost.waste_usd_per_year",
    "restart_seconds": "restart.seconds",
}


def _explain_goal(
    lines: Lines, asked: Asked, goal: SolutionGoal, goal_goodput_fraction: float | None, trial: Trial
) -> None:
    if goal_goodput_fraction is None:
        return
    cost = figures(trial.sizing, asked.basis).cost
    if goal.waste_usd_per_year is None or cost is None:
        lines.add("#/goal_goodput_fraction", "given", {"goal.goodput_fraction": goal_goodput_fraction})
        return
    lines.add(
        "#/goal_goodput_fraction",
        "goodput_for_waste",
        {
            "waste_usd_per_year": goal.waste_usd_per_year,
            "cluster_usd_per_hour": cost.cluster_usd_per_hour,
        },
    )


def _explain_value(
    lines: Lines, pointer: str, unknown: SolutionUnknown, goal: SolutionGoal, found: Found
) -> None:
    if found.closed is not None:
        assumption = None if goal.restart_seconds is not None else EXPONENTIAL
        lines.add(pointer, found.closed.formula, found.closed.inputs, assumption)
        return
    trial = found.trial
    name, wanted = next((name, wanted) for name, wanted in goal if wanted is not None)
    formula = "solved_count" if unknown is SolutionUnknown.GPUS else "solved"
    if found.at_limit:
        formula = "end_of_range"
    lines.add(
        pointer,
        formula,
        {unknown: trial.value, name: getattr(trial.reached, name), f"goal.{name}": wanted},
        EXPONENTIAL,
    )


def _known(trial: Trial) -> dict[str, float]:
    return {name: value for name, value in trial.reached._asdict().items() if value is not None}
