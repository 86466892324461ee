"""Whether a series of figures changed: in steps, as after an upgrade, or by a slow drift.

The series is cut into levels where that brings the points closest to them. A cut is a step where the runs beside it
part so cleanly that chance seldom does it, counted by their order alone, and the levels differ by enough to matter.
Of steps and a drift that which lies closer to the points is told. Pure functions of numbers.
"""

import math
import statistics
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

LEAST_POINTS = 6
"""Fewer points than this say nothing."""
LEAST_SEGMENT_POINTS = 3
"""Each level has as many points."""
MOST_SEGMENTS = 8
"""Levels that are looked for."""
MOST_POINTS = 200
"""Of a longer series the newest so many are looked at."""
CLEAR_FRACTION = 0.02
"""A change is clear where chance shows one as clean in so small a fraction of series that have none."""
SUSPECTED_FRACTION = 0.125
"""A step is suspected, where no run of one level lies among those of the other, up to this fraction: of six points,
three and three, no cleaner one is possible, and chance brings that about once in ten times."""
LEAST_CHANGE_FRACTION = 0.10
"""A smaller change, as a fraction of what was before, is no news, however certain."""

_NORMAL_QUANTILE = statistics.NormalDist().inv_cdf(1.0 - CLEAR_FRACTION / 2.0)
_RESOLUTION_FRACTION = 1e-3
"""How closely two fits are told apart, as a fraction of the level: benchmarks repeat no better."""
_MANY_POINTS = 20
"""From here on so many places for a step are tried that one below two standard deviations is none."""


@dataclass(frozen=True, slots=True)
class Step:
    """A shift of the level between two points.

    Attributes:
        first_after: Index of the first point after it.
        points_before: Points of the level before it.
        points_after: Points of the level after it.
        before: Median of the former.
        after: Median of the latter.
        probability: An upper bound on how likely it is that points of one level part so cleanly.
    """

    first_after: int
    points_before: int
    points_after: int
    before: float
    after: float
    probability: float

    @property
    def is_clear(self) -> bool:
        """Whether chance does as much so seldom that it counts as certain; otherwise it is suspected."""
        return self.probability <= CLEAR_FRACTION


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow change.

    Attributes:
        slope: Median change in a unit of time.
        low: Lower end of its confidence interval.
        high: Upper end.
        begin: The fitted level at the first point.
        end: The fitted level at the last.
    """

    slope: float
    low: float
    high: float
    begin: float
    end: float


def change(*, times: Sequence[float], values: Sequence[float]) -> list[Step] | Drift | None:
    """Return the change that a series shows: its steps, the oldest first, or its drift; None where there is none.

    Args:
        times: When, in any unit, in order; at least `LEAST_POINTS` of them.
        values: What was measured then; none negative.
    """
    scale, least = max(values), min(values)
    if scale - least < LEAST_CHANGE_FRACTION * least or scale == least:
        return None
    # Figures of any size: their sums must neither overflow nor vanish.
    scaled = [value / scale for value in values]
    found_steps, drift = steps(scaled), slope(times=times, values=scaled)
    if drift is not None and (drift.low <= 0.0 <= drift.high or not _matters(drift.begin, drift.end)):
        drift = None
    if drift is not None and (
        not found_steps or _badness_of_line(times, scaled, drift) < _badness_of_steps(scaled, found_steps)
    ):
        figures = (drift.slope, drift.low, drift.high, drift.begin, drift.end)
        return Drift(*(figure * scale for figure in figures))
    return [
        Step(
            step.first_after,
            step.points_before,
            step.points_after,
            step.before * scale,
            step.after * scale,
            step.probability,
        )
        for step in found_steps
    ] or None


def steps(values: Sequence[float]) -> list[Step]:
    """Return the steps of a series, the oldest first.

    For each number of levels the cuts are those that leave the least sum of distances from the levels' medians. Of the
    numbers of levels the largest counts at which every cut is a step: clear, or suspected, and large enough.

    Args:
        values: In order.

    References:
        I. E. Auger and C. E. Lawrence, "Algorithms for the optimal identification of segment neighborhoods", Bulletin
        of Mathematical Biology 51, 1989.
    """
    found: list[Step] = []
    for cuts in _cuts(values):
        borders = [0, *cuts, len(values)]
        candidates = [
            _step(values, first, cut, last)
            for (first, cut), (_, last) in zip(pairwise(borders[:-1]), pairwise(borders[1:]), strict=True)
        ]
        if all(step is not None for step in candidates):
            found = [step for step in candidates if step is not None]
    return found


def _step(values: Sequence[float], first: int, cut: int, last: int) -> Step | None:
    """Return the step between two neighbouring levels, if it is one."""
    earlier, later = values[first:cut], values[cut:last]
    before, after = statistics.median(earlier), statistics.median(later)
    if not _matters(before, after):
        return None
    places = last - first - 2 * LEAST_SEGMENT_POINTS + 1
    probability = min(1.0, places * separation_probability(earlier, later))
    apart = max(earlier) < min(later) or max(later) < min(earlier)
    if probability > (SUSPECTED_FRACTION if apart else CLEAR_FRACTION):
        return None
    return Step(cut, len(earlier), len(later), before, after, probability)


def separation_probability(earlier: Sequence[float], later: Sequence[float]) -> float:
    """Return how likely it is that values in random order part so cleanly at this place.

    Of all pairs of an earlier and a later value some are in the wrong order, whichever of the two directions has fewer.
    Of values without a change every order is equally likely, whatever they are distributed like; so the probability is
    a count of orders, `2 * (orders with as few wrong pairs) / C(n, n₁)`: 2/20 for three values all above three others.
    Equal values count as a wrong pair, which can only make it larger. Where it is far from small it is given as 1.

    Args:
        earlier: The values before the place.
        later: The values after it.

    References:
        H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than
        the other", Annals of Mathematical Statistics 18, 1947.
    """
    few, many = sorted((len(earlier), len(later)))
    rising = sum(after > before for before in earlier for after in later)
    falling = sum(after < before for before in earlier for after in later)
    wrong = few * many - max(rising, falling)
    deviation = math.sqrt(few * many * (few + many + 1) / 12.0)
    if few + many > _MANY_POINTS and few * many / 2.0 - wrong < 2.0 * deviation:
        return 1.0
    return min(1.0, 2 * _orders(few, many, wrong) / math.comb(few + many, few))


def _orders(few: int, many: int, most_wrong: int) -> int:
    """Return how many of the orders of so many values and so many others have at most so many wrong pairs.

    The orders with w wrong pairs are the coefficient of q^w in the Gaussian binomial coefficient, which is the product
    over i = 1 … few of (1 − q^(many + i)) / (1 − q^i).
    """
    counts = [1] + [0] * most_wrong
    for i in range(1, few + 1):
        for power in range(most_wrong, many + i - 1, -1):
            counts[power] -= counts[power - many - i]
        for power in range(i, most_wrong + 1):
            counts[power] += counts[power - i]
    return sum(counts)


def _cuts(values: Sequence[float]) -> list[list[int]]:
    """Return the best cuts into two levels, into three, and so on."""
    count, least = len(values), LEAST_SEGMENT_POINTS
    costs = _costs(values)
    # The least cost of the first `end` values in so many levels, and where the last of those begins.
    best: list[float] = [costs[0][end] if end >= least else math.inf for end in range(count + 1)]
    begins: list[list[int]] = []
    found = []
    for levels in range(2, min(MOST_SEGMENTS, count // least) + 1):
        following, begin = [math.inf] * (count + 1), [0] * (count + 1)
        for end in range(levels * least, count + 1):
            begin[end] = min(
                range((levels - 1) * least, end - least + 1), key=lambda at: best[at] + costs[at][end]
            )
            following[end] = best[begin[end]] + costs[begin[end]][end]
        best = following
        begins.append(begin)
        cuts, end = [], count
        for place in reversed(begins):
            end = place[end]
            cuts.append(end)
        found.append(cuts[::-1])
    return found


def _costs(values: Sequence[float]) -> list[list[float]]:
    """Return for each begin and end the sum of the distances of the values between them from their median."""
    count = len(values)
    costs = []
    for begin in range(count):
        ordered: list[float] = []
        row = [0.0] * (count + 1)
        for end in range(begin + 1, count + 1):
            insort(ordered, values[end - 1])
            half = len(ordered) // 2
            row[end] = sum(ordered[len(ordered) - half :]) - sum(ordered[:half])
        costs.append(row)
    return costs


def slope(*, times: Sequence[float], values: Sequence[float]) -> Drift | None:
    """Return the Theil–Sen slope of a series with its confidence interval; None where all times are one.

    The slope is the median of those of all pairs of points at different times. Kendall's statistic of n independent
    points has the variance n(n − 1)(2n + 5)/18, which gives the ranks of the slopes that bound the interval. Of few
    points it would reach past them, and ends at the outermost: all slopes of six independent points have one sign
    once in 360 times.

    Args:
        times: In order.
        values: One for each.

    References:
        P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of the American Statistical
        Association 63, 1968.
    """
    slopes = sorted(
        (later - earlier) / (after - before)
        for (before, earlier), (after, later) in combinations(zip(times, values, strict=True), 2)
        if after > before
    )
    if not slopes:
        return None
    count = len(values)
    spread = _NORMAL_QUANTILE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    low = max(math.floor((len(slopes) - spread) / 2.0) - 1, 0)
    high = min(math.ceil((len(slopes) + spread) / 2.0), len(slopes) - 1)
    middle = statistics.median(slopes)
    level = statistics.median(
        value - middle * (time - times[0]) for time, value in zip(times, values, strict=True)
    )
    return Drift(
        slope=middle,
        low=slopes[low],
        high=slopes[high],
        begin=level,
        end=level + middle * (times[-1] - times[0]),
    )


def _matters(before: float, after: float) -> bool:
    return abs(after - before) >= LEAST_CHANGE_FRACTION * abs(before) and after != before


def _badness_of_steps(values: Sequence[float], found: Sequence[Step]) -> float:
    levels = [found[0].before, *(step.after for step in found)]
    borders = [0, *(step.first_after for step in found), len(values)]
    distance = sum(
        abs(value - level)
        for level, (begin, end) in zip(levels, pairwise(borders), strict=True)
        for value in values[begin:end]
    )
    return _badness(values, distance, parameters=len(levels) + len(found))


def _badness_of_line(times: Sequence[float], values: Sequence[float], drift: Drift) -> float:
    distance = sum(
        abs(value - drift.begin - drift.slope * (time - times[0]))
        for time, value in zip(times, values, strict=True)
    )
    return _badness(values, distance, parameters=2)


def _badness(values: Sequence[float], distance: float, *, parameters: int) -> float:
    """Return Schwarz's criterion of a fit, for errors that are as often large as Laplace's: less is better.

    References:
        G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.
    """
    count = len(values)
    least = _RESOLUTION_FRACTION * statistics.fmean(values)
    return count * math.log(distance / count + least) + parameters * math.log(count)
