"""The search for the last value of an unknown that meets a goal: it sizes the scenario with value after value.

A value comes from a closed form where one holds, else from narrowing a bracket, and counts only once its sizing
meets the goal.
"""

import math
from typing import NamedTuple

from pydantic import ValidationError

from service.errors import Fault, Unsatisfiable
from service.sizing import inverse, unknowns
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.solution import SolutionBasis
from service.sizing.spec import ScenarioSpec, SolutionGoal, SolutionUnknown
from service.sizing.unknowns import Asked, Closed, Reached
from service.units import GB

TOLERANCE = 1e-10
"""Relative width to which a bracket is narrowed."""
_COARSE_STEPS = 64
"""How many values a range is looked at in where its end has no sizing."""
_ROUNDINGS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""How far a closed form may lie on the wrong side of its goal, by rounding alone."""


class Trial(NamedTuple):
    """A value that was tried, and has a sizing."""

    value: float
    sizing: Sizing
    reached: Reached
    margin: float

    @property
    def meets(self) -> bool:
        """Whether it meets the goal."""
        return self.margin >= 0.0


class Found(NamedTuple):
    """The last value that meets the goal."""

    trial: Trial
    closed: Closed | None = None
    at_limit: bool = False
    least: Trial | None = None
    """The first that meets it, where smaller ones miss it too."""


class Missed(NamedTuple):
    """The value that comes nearest to a goal which none meets."""

    trial: Trial


def ask(spec: ScenarioSpec, unknown: SolutionUnknown, basis: SolutionBasis) -> Asked:
    """Return what is asked for, with the bytes that a bandwidth moves where the spec states a time in its place."""
    asked = Asked(spec, unknown, basis, moved_bytes=0.0)
    if not unknowns.states_a_time(spec, unknown):
        return asked
    first = size(checked(unknowns.put_in(asked, unknowns.MOST_GB_PER_SECOND)))
    asked = asked._replace(moved_bytes=unknowns.moved_bytes(unknown, first))
    if unknown is SolutionUnknown.WRITE_GB_PER_SECOND and spec.save.staging_budget_bytes_per_node is not None:
        return asked._replace(least_gb_per_second=_least_for_the_stall(asked))
    return asked


def _least_for_the_stall(asked: Asked) -> float:
    """Return the least write bandwidth that keeps a staged save to its stall; 0 where none does. [10^9 B/s]"""
    try:
        slowest = size(checked(unknowns.put_in(asked, unknowns.LEAST_GB_PER_SECOND)))
    except Unsatisfiable:
        return 0.0
    if slowest.blocking.budget_seconds is not None:
        return 0.0
    return asked.moved_bytes / slowest.write.window_seconds(slowest.blocking) / GB


def find(asked: Asked, goal: SolutionGoal) -> Found | Missed:
    """Return the last value that meets the goal, or the one that comes nearest.

    Raises:
        Unsatisfiable: The spec has no answer whatever the unknown is.
    """
    search = _Search(asked, goal)
    match asked.unknown:
        case SolutionUnknown.INTERVAL_SECONDS:
            return search.interval()
        case SolutionUnknown.GPUS:
            return search.gpus()
        case _:
            return search.monotone()


def goal_goodput(asked: Asked, goal: SolutionGoal, sizing: Sizing) -> float | None:
    """Return the goodput that a goal comes to; None for a restart limit, and where each value has another."""
    if goal.waste_usd_per_year is None or asked.unknown is SolutionUnknown.GPUS:
        return goal.goodput_fraction
    cost = unknowns.figures(sizing, asked.basis).cost
    if cost is None or not cost.cluster_usd_per_hour:
        return None
    fraction = inverse.goodput_for_waste(
        waste_usd_per_year=goal.waste_usd_per_year, cluster_usd_per_hour=cost.cluster_usd_per_hour
    )
    return fraction if fraction > 0.0 else None


def checked(spec: ScenarioSpec) -> ScenarioSpec:
    """Return a spec that was put together, once it has passed what one from outside passes.

    Raises:
        Unsatisfiable: It does not pass.
    """
    try:
        return ScenarioSpec.model_validate(spec.model_dump(exclude_unset=True, exclude_none=True))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "#" + "".join(f"/{part}" for part in first["loc"])
        own = (Fault("", "out_of_range", f"{first['msg']}."),)
        faults = first.get("ctx", {}).get("faults", own)
        raise Unsatisfiable(
            *(Fault(place + fault.pointer, fault.code, fault.detail) for fault in faults)
        ) from None


class _Search:
    """The values of one unknown, and by how much each meets the goal."""

    def __init__(self, asked: Asked, goal: SolutionGoal) -> None:
        self.asked = asked
        self.goal = goal
        self.ends = unknowns.range_of(asked)

    def monotone(self) -> Found | Missed:
        """Find the cheapest value where the goal is met the better the further the unknown goes."""
        outcome = self._cheapest()
        if isinstance(outcome, Missed) or self.asked.unknown is not SolutionUnknown.BLOCKING_SECONDS:
            return outcome
        if outcome.least is None and self.ends.best > unknowns.LEAST_SECONDS:
            # A stall that is no longer than the copy to staging memory makes saves wait.
            below = self._margin(unknowns.LEAST_SECONDS)
            return outcome if below >= 0.0 else outcome._replace(least=self._at(self.ends.best))
        return outcome

    def _cheapest(self) -> Found | Missed:
        best = self._best_end()
        if not best.meets:
            return self._beyond(best)
        cheapest = self._margin(self.ends.cheapest)
        if cheapest >= 0.0:
            return Found(self._at(self.ends.cheapest), at_limit=True)
        wanted = goal_goodput(self.asked, self.goal, best.sizing)
        closed = unknowns.closed(self.asked, best.sizing, self.goal, wanted)
        settled = self._settled(closed.value) if closed is not None else None
        if settled is not None:
            return Found(settled, closed)
        if best.value <= 0.0:  # the scale of the bracket is logarithmic
            least = self._at(unknowns.LEAST_SECONDS)
            if not least.meets:
                return Found(best)
            best = least
        return Found(self._narrowed(miss=self.ends.cheapest, miss_margin=cheapest, meet=best))

    def _best_end(self) -> Trial:
        """Return the end of the range where the goal is nearest; where that has no sizing, the best that has one.

        Through a staging budget a shorter stall or lag may bring saves so close together that none of them fits.
        """
        try:
            return self._at(self.ends.best)
        except Unsatisfiable:
            best, cheapest = (
                max(end, unknowns.LEAST_SECONDS) for end in (self.ends.best, self.ends.cheapest)
            )
            steps = [
                best * (cheapest / best) ** (step / _COARSE_STEPS) for step in range(1, _COARSE_STEPS + 1)
            ]
            value = max(steps, key=self._margin)
            if math.isinf(self._margin(value)):
                raise
            return self._at(value)

    def _beyond(self, end: Trial) -> Found | Missed:
        """Find what the best end misses: a stall so short that its interval lets async saves wait for each other."""
        if not unknowns.may_collide(self.asked):
            return Missed(end)
        place = inverse.peak(low=self.ends.best, high=self.ends.cheapest, margin=self._margin, tolerance=1e-5)
        best = max(end, self._at(place), key=lambda trial: trial.margin)
        if not best.meets:
            return Missed(best)
        cheapest = self._margin(self.ends.cheapest)
        least = self._narrowed(miss=end.value, miss_margin=end.margin, meet=best)
        if cheapest >= 0.0:
            return Found(self._at(self.ends.cheapest), at_limit=True, least=least)
        longest = self._narrowed(miss=self.ends.cheapest, miss_margin=cheapest, meet=best)
        return Found(longest, least=least)

    def interval(self) -> Found | Missed:
        """Find the longest and the shortest interval: goodput rises up to one interval, and falls from there."""
        longest = self._at(self.ends.cheapest)
        block = unknowns.figures(longest.sizing, self.asked.basis)
        if block.interval is None or block.blocking is None:
            return Missed(longest)
        stall, share, stated = block.blocking.seconds, 0.0, longest.sizing.blocking.seconds
        if self.asked.spec.save.overhead_fraction is not None:
            stated = 0.0
            if unknowns.stall_follows_interval(self.asked):
                stall, share = 0.0, block.blocking.overhead_fraction
        staged = self.asked.spec.save.staging_budget_bytes_per_node is not None
        low = max(self.ends.best, math.nextafter(max(stall, stated), math.inf))
        if staged:
            low = self._least_interval()
        low_margin = self._margin(low)
        place = min(max(block.interval.exact_seconds, low), self.ends.cheapest)
        if low_margin >= 0.0:
            place = low
        elif self._margin(place) < 0.0:
            # No optimum trains longer between saves than the mean time between failures.
            most = (stall + longest.sizing.failures.mtbf_seconds) / (1.0 - share)
            # Through a staging budget a stall may grow with the interval, and that of the longest says nothing.
            high = self.ends.cheapest if staged else min(max(most, 2.0 * low), self.ends.cheapest)
            place = inverse.peak(low=low, high=high, margin=self._margin, tolerance=1e-5)
        start = self._at(place)
        save = self.asked.spec.save
        if not start.meets and save.overhead_fraction and save.copy_seconds is not None:
            # From here on the stall that is allowed is longer than the copy, and a fast drain keeps to it.
            turning = min(save.copy_seconds / save.overhead_fraction * (1.0 + 1e-9), self.ends.cheapest)
            if self._margin(turning) > start.margin:
                start = self._at(turning)
        if not start.meets:
            return Missed(start)
        least = None
        if low_margin < 0.0:
            least = self._narrowed(miss=low, miss_margin=low_margin, meet=start)
        if longest.meets:
            return Found(longest, at_limit=True, least=least)
        narrowed = self._narrowed(miss=longest.value, miss_margin=longest.margin, meet=start)
        return Found(narrowed, least=least)

    def _least_interval(self) -> float:
        """Return the shortest interval that leaves time to train; the longest does."""
        low, high = math.log(self.ends.best), math.log(self.ends.cheapest)
        if math.isfinite(self._margin(self.ends.best)):
            return self.ends.best
        while high - low > TOLERANCE:
            middle = (low + high) / 2.0
            if math.isfinite(self._margin(math.exp(middle))):
                high = middle
            else:
                low = middle
        return math.exp(high)

    def gpus(self) -> Found | Missed:
        """Find the largest cluster, from above: one with too few nodes for their bandwidth may miss the goal too."""
        counts = self._counts()
        margins: list[float] = []
        for count in counts:
            margins.append(self._margin(count))
            if margins[-1] >= 0.0:
                break
        meet = counts[len(margins) - 1]
        if margins[-1] < 0.0:
            best = max(margins)
            if math.isinf(best):
                return Missed(self._at(self.asked.spec.cluster.gpus))
            meet = self._best_count(counts, margins.index(best))
            if self._margin(meet) < 0.0:
                return Missed(self._at(meet))
        least = None
        if self._margin(counts[-1]) < 0.0:
            least = self._at(inverse.last_count(meet=meet, miss=counts[-1], meets=self._meets))
        larger = [count for count in counts if count > meet]
        if not larger:
            return Found(self._at(meet), at_limit=True, least=least)
        count = inverse.last_count(meet=meet, miss=larger[-1], meets=self._meets)
        return Found(self._at(count), least=least)

    def _counts(self) -> list[int]:
        """Return counts of GPUs over the whole range, the largest first, the stated one among them."""
        least, most = round(self.ends.best), round(self.ends.cheapest)
        counts = {most, least, self.asked.spec.cluster.gpus}
        while most > least:
            most = max(most // 4, least)
            counts.add(most)
        return sorted(counts, reverse=True)

    def _best_count(self, counts: list[int], nearest: int) -> int:
        """Return the count that comes nearest to the goal, around the one of the list that does."""
        low, high = counts[min(nearest + 1, len(counts) - 1)], counts[max(nearest - 1, 0)]
        if low == high:
            return counts[nearest]
        peak = inverse.peak(
            low=low, high=high, margin=lambda value: self._margin(round(value)), tolerance=1e-3
        )
        return max(counts[nearest], round(peak), key=self._margin)

    def _at(self, value: float) -> Trial:
        spec = checked(unknowns.put_in(self.asked, value))  # what else is said must suit the value
        sizing = size(spec)
        reached = unknowns.reached(sizing, self.asked.basis)
        if (
            self.goal.waste_usd_per_year is not None
            and reached.waste_usd_per_year is None
            and reached.goodput_fraction is not None
        ):
            raise unknowns.missing_price(spec)
        return Trial(value, sizing, reached, reached.margin(self.goal))

    def _margin(self, value: float) -> float:
        """Return by how much a value meets the goal; -inf where the scenario has no sizing with it."""
        try:
            return self._at(value).margin
        except Unsatisfiable:
            return -math.inf

    def _meets(self, value: float) -> bool:
        return self._margin(value) >= 0.0

    def _narrowed(self, *, miss: float, miss_margin: float, meet: Trial) -> Trial:
        value = inverse.narrow(
            miss=miss,
            miss_margin=miss_margin,
            meet=meet.value,
            meet_margin=meet.margin,
            margin=self._margin,
            tolerance=TOLERANCE,
        )
        return self._at(value)

    def _settled(self, value: float) -> Trial | None:
        """Return the value of a closed form, moved past its rounding; None where it is not the last that meets."""
        ends = self.ends
        low, high = min(ends), max(ends)
        towards = 1.0 if ends.best > ends.cheapest else -1.0
        if not low <= value <= high:
            return None
        for rounding in _ROUNDINGS:
            trial = self._at(min(max(value * (1.0 + towards * rounding), low), high))
            if trial.meets:
                worse = trial.value * (1.0 - towards * 1e-9)
                return trial if low <= worse <= high and self._margin(worse) < 0.0 else None
        return None
