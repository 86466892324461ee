"""The goodput turned around: what one quantity must be for a goodput, a waste or a restart that is wanted.

Closed forms where there are any, and the search for the rest. `T` interval, `C` blocking time, `D` durable lag, `R`
restart time, `M` mean time between failures, `g` the goodput to reach.
"""

import math
from collections.abc import Callable

from service.units import GB, HOURS_PER_YEAR

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def goodput_for_waste(*, waste_usd_per_year: float, cluster_usd_per_hour: float) -> float:
    """Return the goodput at which a year's waste costs so much.

    ``1 - waste / (cluster cost of a year)``; below 0 where the budget is larger than the whole bill.
    """
    return 1.0 - waste_usd_per_year / (cluster_usd_per_hour * HOURS_PER_YEAR)


def exposure_for_goodput(
    *, goodput_fraction: float, interval_seconds: float, blocking_seconds: float, mtbf_seconds: float
) -> float:
    """Return the restart time and durable lag together, ``R + D``, that leave a goodput. [s]

    `goodput.exact_goodput` solved for them: ``R + D = M * ln((T - C) / (g * M * (exp(T/M) - 1)))``. Below 0 where the
    goodput is out of reach whatever they are.
    """
    period = interval_seconds / mtbf_seconds
    useful = math.log((interval_seconds - blocking_seconds) / (goodput_fraction * mtbf_seconds))
    return mtbf_seconds * (useful - period - math.log(-math.expm1(-period)))


def restart_for_goodput(
    *,
    goodput_fraction: float,
    interval_seconds: float,
    blocking_seconds: float,
    durable_lag_seconds: float,
    mtbf_seconds: float,
) -> float:
    """Return the longest restart that leaves a goodput. [s]

    ``R = M * ln((T - C) / (g * M * (exp(T/M) - 1))) - D``.
    """
    return (
        exposure_for_goodput(
            goodput_fraction=goodput_fraction,
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            mtbf_seconds=mtbf_seconds,
        )
        - durable_lag_seconds
    )


def blocking_for_goodput(
    *,
    goodput_fraction: float,
    interval_seconds: float,
    restart_seconds: float,
    durable_lag_seconds: float,
    mtbf_seconds: float,
) -> float:
    """Return the longest stall that leaves a goodput, at an interval that does not follow from it. [s]

    ``C = T - g * M * (exp(T/M) - 1) * exp((R + D)/M)``. Not above 0 where the goodput is out of reach.

    Raises:
        OverflowError: The goodput is out of reach by more than a float can say.
    """
    period = interval_seconds / mtbf_seconds
    outage = (restart_seconds + durable_lag_seconds) / mtbf_seconds
    return interval_seconds - goodput_fraction * mtbf_seconds * math.exp(period + outage) * -math.expm1(
        -period
    )


def sync_write_for_goodput(
    *,
    checkpoint_bytes: float,
    goodput_fraction: float,
    interval_seconds: float,
    restart_seconds: float,
    mtbf_seconds: float,
) -> float:
    """Return the least write bandwidth of sync saves for a goodput, at a fixed interval. [10^9 B/s]

    ``S / C`` with the `C` of `blocking_for_goodput`.
    """
    blocking = blocking_for_goodput(
        goodput_fraction=goodput_fraction,
        interval_seconds=interval_seconds,
        restart_seconds=restart_seconds,
        durable_lag_seconds=0.0,
        mtbf_seconds=mtbf_seconds,
    )
    return checkpoint_bytes / blocking / GB


def async_write_for_goodput(
    *,
    checkpoint_bytes: float,
    goodput_fraction: float,
    interval_seconds: float,
    blocking_seconds: float,
    restart_seconds: float,
    mtbf_seconds: float,
) -> float:
    """Return the least write bandwidth of async saves for a goodput, where no save waits for another. [10^9 B/s]

    ``S / D`` with ``D = M * ln((T - C) / (g * M * (exp(T/M) - 1))) - R``.
    """
    exposure = exposure_for_goodput(
        goodput_fraction=goodput_fraction,
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        mtbf_seconds=mtbf_seconds,
    )
    return checkpoint_bytes / (exposure - restart_seconds) / GB


def read_for_goodput(
    *,
    read_bytes: float,
    goodput_fraction: float,
    interval_seconds: float,
    blocking_seconds: float,
    durable_lag_seconds: float,
    other_restart_seconds: float,
    mtbf_seconds: float,
) -> float:
    """Return the least read bandwidth for a goodput. [10^9 B/s]

    The bytes read over the load, which is the restart of `restart_for_goodput` less its other parts.
    """
    restart = restart_for_goodput(
        goodput_fraction=goodput_fraction,
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        durable_lag_seconds=durable_lag_seconds,
        mtbf_seconds=mtbf_seconds,
    )
    return read_for_restart(
        read_bytes=read_bytes, restart_seconds=restart, other_restart_seconds=other_restart_seconds
    )


def read_for_restart(*, read_bytes: float, restart_seconds: float, other_restart_seconds: float) -> float:
    """Return the least read bandwidth at which a restart takes so long. [10^9 B/s]

    ``read_bytes / (R - other parts)``.
    """
    return read_bytes / (restart_seconds - other_restart_seconds) / GB


def narrow(
    *,
    miss: float,
    meet: float,
    margin: Callable[[float], float],
    tolerance: float,
    miss_margin: float,
    meet_margin: float,
) -> float:
    """Return a value that meets a goal and, but for the tolerance, is the last that does.

    The bracket from `miss` to `meet`, both above 0, is narrowed on a logarithmic scale until its ends lie within the
    tolerance of each other; the end that meets the goal is the answer. A smooth margin takes ten to twenty steps,
    and none more than three over those of halving.

    Args:
        miss: A value that misses the goal.
        meet: A value that meets it; on either side of `miss`.
        margin: By how much a value meets the goal; below 0 it misses, and -inf where it has no margin at all.
        tolerance: Relative width of the bracket that is left.
        miss_margin: The margin of `miss`.
        meet_margin: The margin of `meet`.

    References:
        I. F. D. Oliveira, R. H. C. Takahashi, "An enhancement of the bisection method average performance preserving
        minmax optimality", ACM Transactions on Mathematical Software 47(1), 2020: interpolate, truncate, project.
    """
    start, length = math.log(miss), math.log(meet / miss)
    half = min(tolerance / abs(length) / 2.0, 0.5)
    slack = half * 2.0 ** (math.ceil(math.log2(0.5 / half)) + 2)
    low, high, low_margin, high_margin = 0.0, 1.0, miss_margin, meet_margin
    while high - low > 2.0 * half:
        middle = (low + high) / 2.0
        chosen = middle
        if math.isfinite(low_margin) and math.isfinite(high_margin) and high_margin > low_margin:
            straight = (high_margin * low - low_margin * high) / (high_margin - low_margin)
            towards = math.copysign(1.0, middle - straight)
            cut = 0.2 * (high - low) ** 2
            chosen = straight + towards * cut if cut <= abs(middle - straight) else middle
            reach = max(slack - (high - low) / 2.0, 0.0)
            if abs(chosen - middle) > reach:
                chosen = middle - towards * reach
        slack /= 2.0
        if not low < chosen < high:
            chosen = middle
        if not low < chosen < high:
            break
        value = math.exp(start + length * chosen)
        found = margin(value)
        if found >= 0.0:
            high, high_margin, meet = chosen, found, value
        else:
            low, low_margin = chosen, found
    return meet


def peak(*, low: float, high: float, margin: Callable[[float], float], tolerance: float) -> float:
    """Return where a margin with one peak is largest, or the first value found that meets the goal.

    Golden-section search on a logarithmic scale between two values above 0.

    References:
        J. Kiefer, "Sequential minimax search for a maximum", Proceedings of the AMS 4(3), 1953.
    """
    left, right = math.log(low), math.log(high)
    inner = [right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)]
    margins = [margin(math.exp(place)) for place in inner]
    while right - left > tolerance and max(margins) < 0.0:
        if margins[0] >= margins[1]:
            right = inner[1]
            inner = [right - _GOLDEN * (right - left), inner[0]]
            margins = [margin(math.exp(inner[0])), margins[0]]
        else:
            left = inner[0]
            inner = [inner[1], left + _GOLDEN * (right - left)]
            margins = [margins[1], margin(math.exp(inner[1]))]
    return math.exp(inner[0] if margins[0] >= margins[1] else inner[1])


def last_count(*, meet: int, miss: int, meets: Callable[[int], bool]) -> int:
    """Return the last count on the way from `meet`, which meets a goal, to `miss`, which does not, by halving."""
    while abs(miss - meet) > 1:
        middle = (meet + miss) // 2
        if meets(middle):
            meet = middle
        else:
            miss = middle
    return meet
