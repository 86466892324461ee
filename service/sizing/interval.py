"""How often to save: Young, Daly, exact; with the blocking time given, or as a fraction of the interval.

`T` is the time from the start of one save to the start of the next, `C` the time that training stops for
a save, `M` the mean time between failures of the job.
"""

import math

_SERIES_BELOW = 0.25
_SERIES_TERMS = 26
"""At `_SERIES_BELOW` the last term is below a float's precision of the first."""


def young_interval(*, blocking_seconds: float, mtbf_seconds: float) -> float:
    """Return the interval that minimises waste to first order. [s]

    ``T = sqrt(2 * C * M)``, for a `C` small beside `M`. It leaves no time to train where ``C >= 2 * M``.

    Args:
        blocking_seconds: How long training stops for one save, `C`. [s]
        mtbf_seconds: Mean time between failures of the whole job, `M`. [s]

    References:
        J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the
        ACM 17(9), 1974.
    """
    return math.sqrt(2.0 * blocking_seconds * mtbf_seconds)


def daly_interval(*, blocking_seconds: float, mtbf_seconds: float) -> float:
    """Return Daly's higher-order optimum, counted from start to start. [s]

    ``T = sqrt(2CM) * (1 + sqrt(C/2M)/3 + (C/2M)/9)`` for ``C < 2M``, else ``M + C``. Daly counts the time
    between saves, ``T - C``. The rule jumps at ``C = 2M``.

    References:
        J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
        Generation Computer Systems 22, 2006, equation 37.
    """
    ratio = blocking_seconds / mtbf_seconds / 2.0
    if ratio >= 1.0:
        return mtbf_seconds + blocking_seconds
    root = math.sqrt(ratio)
    return math.sqrt(2.0 * blocking_seconds * mtbf_seconds) * (1.0 + root / 3.0 + ratio / 9.0)


def exact_interval(*, blocking_seconds: float, mtbf_seconds: float) -> float:
    """Return the interval that maximises the exact goodput for exponential failures. [s]

    ``T = C + M * (1 + W0(-exp(-1 - C/M)))`` with `W0` the principal branch of Lambert's function. It does not
    depend on the restart time, nor on a durable lag that is held fixed.

    References:
        Setting the derivative of `goodput.exact_goodput` to zero; the same optimum as in Daly 2006, section 4.
    """
    useful = _useful_over_mtbf(blocking_seconds / mtbf_seconds)
    return blocking_seconds + mtbf_seconds * useful


def best_interval(
    *, blocking_seconds: float, durable_lag_seconds: float, staging_buffers: int, mtbf_seconds: float
) -> float:
    """Return the interval that maximises the exact goodput for a durable lag that can make saves wait. [s]

    The interval of `exact_interval` where no save waits at it. Else the shortest at which none does, ``C + D``
    with one staging buffer and `D` with more; but ``C + M`` where that is shorter: saves then wait, and there
    is nothing to gain from training longer between two of them than a failure lets it.

    References:
        The derivatives of `goodput.exact_goodput` and, where saves collide, of
        `goodput.exact_goodput_when_saves_collide`, whose goodput goes with ``(T - C) * exp(-T/M)``.
    """
    free = durable_lag_seconds + (blocking_seconds if staging_buffers == 1 else 0.0)
    exact = exact_interval(blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds)
    return max(exact, min(free, blocking_seconds + mtbf_seconds))


def young_interval_at_overhead(*, overhead_fraction: float, mtbf_seconds: float) -> float:
    """Return Young's interval where the blocking time is a fraction of it. [s]

    ``C = f * T`` in ``T = sqrt(2 * C * M)`` gives ``T = 2 * f * M``, and so ``C = 2 * M * f**2``.
    """
    return 2.0 * overhead_fraction * mtbf_seconds


def daly_interval_at_overhead(*, overhead_fraction: float, mtbf_seconds: float) -> float:
    """Return Daly's interval where the blocking time is a fraction of it. [s]

    ``C = f * T`` makes Daly's rule a quadratic in ``s = sqrt(C/2M)``: ``s = f * (1 + s/3 + s**2/9)``, which has
    a root below 1 for `f` up to 9/13; beyond that the branch ``T = M + C`` holds. Where both branches
    have an answer the shorter stall is taken.
    """
    fraction = overhead_fraction
    if fraction <= 9.0 / 13.0:
        linear = 1.0 - fraction / 3.0
        # The smaller root of (f/9) s^2 - linear s + f = 0, in the form that does not cancel.
        root = (
            2.0 * fraction / (linear + math.sqrt(max(linear * linear - 4.0 * fraction * fraction / 9.0, 0.0)))
        )
        return 2.0 * mtbf_seconds * root * root / fraction
    return mtbf_seconds / (1.0 - fraction)


def exact_interval_at_overhead(*, overhead_fraction: float, mtbf_seconds: float) -> float:
    """Return the exact optimum where the blocking time is a fraction of it. [s]

    With ``x = (T - C)/M`` the optimum has ``C/M = -log1p(-x) - x``; ``C = f * T`` then asks for the `x` at which
    ``(-log1p(-x) - x)/x = f/(1 - f)``, whose left side rises from 0 without bound.
    """
    wanted = overhead_fraction / (1.0 - overhead_fraction)
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _log_excess(middle) < wanted * middle:
            low = middle
        else:
            high = middle
    return mtbf_seconds * high / (1.0 - overhead_fraction)


def _log_excess(x: float) -> float:
    """Return ``-log1p(-x) - x`` for `x` in [0, 1), without the cancellation of small `x`."""
    if x >= _SERIES_BELOW:
        return -math.log1p(-x) - x if x < 1.0 else math.inf
    total = 0.0
    for power in range(_SERIES_TERMS, 1, -1):
        total = total * x + 1.0 / power
    return total * x * x


def _useful_over_mtbf(ratio: float) -> float:
    """Return the `x` in (0, 1) with ``-log1p(-x) - x = ratio``.

    Newton's method; the first guess is the inverse series in ``sqrt(2 * ratio)`` (N. M. Temme's expansion for
    the incomplete gamma function) where it is small, and the tail ``1 - exp(-1 - ratio)`` where it is not.
    """
    root = math.sqrt(2.0 * ratio)
    if root < 1.0:
        x = root * (1.0 + root * (-1.0 / 3.0 + root * (1.0 / 36.0 + root * (1.0 / 270.0 + root / 4320.0))))
        for _ in range(2):
            x -= (_log_excess(x) - ratio) * (1.0 - x) / x
        return x
    # In the distance from 1, y = 1 - x = exp(-ratio - x): it keeps its digits where x does not.
    y = math.exp(-1.0 - ratio)
    for _ in range(60):
        nearer = math.exp(-1.0 - ratio + y)
        if abs(nearer - y) <= 1e-16 * nearer:
            break
        y -= (y - nearer) / (1.0 - nearer)
    return 1.0 - y
