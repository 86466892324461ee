"""Whether a series of figures changed: a step, as after an upgrade, or a slow drift.

Two tests, each with a bound on false alarms and a least size that matters; of two findings the one that lies
closer to the points is told. Pure functions of numbers.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

LEAST_POINTS = 6
"""Fewer points than this say nothing."""
LEAST_SEGMENT_POINTS = 3
"""A step has as many points on either side of it."""
MOST_POINTS = 200
"""Of a longer series the newest so many are looked at."""
SIGNIFICANCE_FRACTION = 0.01
"""How often either test may find a change in a series of independent figures that has none."""
LEAST_CHANGE_FRACTION = 0.10
"""A smaller change, as a fraction of what was before, is no news, however certain."""

_NORMAL_QUANTILE = statistics.NormalDist().inv_cdf(1.0 - SIGNIFICANCE_FRACTION / 2.0)


@dataclass(frozen=True, slots=True)
class Step:
    """A shift of the level between two points.

    Attributes:
        first_after: Index of the first point after it.
        before: Median of the points before.
        after: Median of the points from there on.
        probability: An upper bound on how likely so clear a step is where there is none.
    """

    first_after: int
    before: float
    after: float
    probability: float


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


def change(*, times: Sequence[float], values: Sequence[float]) -> Step | Drift | None:
    """Return the change that a series shows, if one is both certain and large enough.

    Args:
        times: When, in any unit, in order; at least `LEAST_POINTS` of them.
        values: What was measured then; none negative.
    """
    scale = max(values)
    if scale <= 0.0:
        return None
    # Figures of any size: their squares must neither overflow nor vanish.
    scaled = [value / scale for value in values]
    step, drift = largest_step(scaled), slope(times=times, values=scaled)
    found_step = step if _matters(step.before, step.after) and _is_certain(step) else None
    found_drift = (
        drift
        if drift is not None and not drift.low <= 0.0 <= drift.high and _matters(drift.begin, drift.end)
        else None
    )
    if found_step is not None and found_drift is not None:
        if _distance_from_step(scaled, found_step) <= _distance_from_line(times, scaled, found_drift):
            found_drift = None
        else:
            found_step = None
    if found_step is not None:
        return Step(
            found_step.first_after,
            found_step.before * scale,
            found_step.after * scale,
            found_step.probability,
        )
    if found_drift is not None:
        return Drift(
            *(
                figure * scale
                for figure in (
                    found_drift.slope,
                    found_drift.low,
                    found_drift.high,
                    found_drift.begin,
                    found_drift.end,
                )
            )
        )
    return None


def largest_step(values: Sequence[float]) -> Step:
    """Return the clearest step of a series, whether or not it is one.

    For each split into two segments the two-sample statistic t = |m₁ − m₂| / (s·√(1/n₁ + 1/n₂)), with s² the pooled
    variance of n − 2 degrees of freedom; the split with the largest t counts. By Bonferroni's inequality the
    probability of such a t without a step is at most the number of splits times that of one.

    Args:
        values: At least `LEAST_POINTS`, in order.

    References:
        K. J. Worsley, "On the likelihood ratio test for a shift in location of normal populations", Journal of the
        American Statistical Association 74, 1979.
    """
    # Imported here: it takes a while, and most requests ask for no series.
    from scipy.special import stdtr

    count = len(values)
    splits = range(LEAST_SEGMENT_POINTS, count - LEAST_SEGMENT_POINTS + 1)
    at = max(splits, key=lambda split: _clearness(values, split))
    clearness = _clearness(values, at)
    one = 2.0 * float(stdtr(count - 2, -clearness)) if math.isfinite(clearness) else 0.0
    return Step(
        first_after=at,
        before=statistics.median(values[:at]),
        after=statistics.median(values[at:]),
        probability=min(1.0, len(splits) * one),
    )


def _clearness(values: Sequence[float], split: int) -> float:
    """Return the two-sample statistic of a split."""
    before, after = values[:split], values[split:]
    first, second = statistics.fmean(before), statistics.fmean(after)
    squares = sum((value - first) ** 2 for value in before) + sum((value - second) ** 2 for value in after)
    error = math.sqrt(squares / (len(values) - 2) * (1.0 / len(before) + 1.0 / len(after)))
    distance = abs(first - second)
    if error > 0.0:
        return distance / error
    return math.inf if distance > 0.0 else 0.0


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


def _is_certain(step: Step) -> bool:
    return step.probability <= SIGNIFICANCE_FRACTION


def _matters(before: float, after: float) -> bool:
    return abs(after - before) >= LEAST_CHANGE_FRACTION * abs(before) and after != before


def _distance_from_step(values: Sequence[float], step: Step) -> float:
    return sum(
        abs(value - (step.before if at < step.first_after else step.after)) for at, value in enumerate(values)
    )


def _distance_from_line(times: Sequence[float], values: Sequence[float], drift: Drift) -> float:
    return sum(
        abs(value - drift.begin - drift.slope * (time - times[0]))
        for time, value in zip(times, values, strict=True)
    )
