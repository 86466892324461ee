"""Mean time between failures of a job, with its uncertainty; and what is planned, which is no failure."""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from scipy.special import gammaincinv

from service.units import DAY_SECONDS, HOUR_SECONDS

CONFIDENCE_FRACTION = 0.95


class Bounds(NamedTuple):
    """Ends of a confidence interval. [s]"""

    low_seconds: float
    high_seconds: float


def observed_mtbf(
    *, observed_failures: float, observed_hours: float, observed_gpus: float, gpus: float
) -> float:
    """Return the job's mean time between failures from an observed record. [s]

    The failure rate is taken to grow with the GPU count, so
    ``M = observed_hours * 3600 / observed_failures * observed_gpus / gpus``.

    Args:
        observed_failures: Unexpected interruptions counted.
        observed_hours: For how long. [h]
        observed_gpus: On how many GPUs.
        gpus: GPUs of the job that is sized.

    References:
        The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.4: 419 in 54 days on 16,384 GPUs.
    """
    return observed_hours * HOUR_SECONDS / observed_failures * (observed_gpus / gpus)


def scaled_mtbf(*, mtbf_hours: float, mtbf_gpus: float, gpus: float) -> float:
    """Return the job's mean time between failures from one known at another GPU count. [s]

    ``M = mtbf_hours * 3600 * mtbf_gpus / gpus``: 1 for a rate by GPU, GPUs per node for one by node.
    """
    return mtbf_hours * HOUR_SECONDS * (mtbf_gpus / gpus)


def bound_of_no_failures(
    *, observed_hours: float, observed_gpus: float, gpus: float, confidence_fraction: float
) -> float:
    """Return what the mean time between failures is at least where none was observed. [s]

    ``M >= observed_hours * 3600 * observed_gpus / gpus / -ln(1 - confidence_fraction)``, one-sided: had failures
    been more frequent, a record of none would be less likely than `1 - confidence_fraction`. At 95 % it is the exposure
    over 2.996.

    References:
        F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28(3/4), 1936, for a count of 0.
    """
    exposure_seconds = observed_hours * HOUR_SECONDS * (observed_gpus / gpus)
    return exposure_seconds / -math.log1p(-confidence_fraction)


def node_mtbf_of_components(components: Iterable[tuple[float, float]]) -> float:
    """Return the mean time between failures of a node from those of what is in it. [s]

    ``3600 / sum(per_node / mtbf_hours)``: any one failing stops the node, and their rates add up.

    Args:
        components: Of each kind how many a node has, and the mean time between failures of one. [h]

    References:
        Series system of independent parts with constant rates: R. E. Barlow and F. Proschan, "Mathematical Theory
        of Reliability", 1965.
    """
    return HOUR_SECONDS / sum(per_node / mtbf_hours for per_node, mtbf_hours in components)


def component_share(*, per_node: float, mtbf_hours: float, node_mtbf_seconds: float) -> float:
    """Return which fraction of a node's failures one kind of component causes."""
    return per_node / mtbf_hours * node_mtbf_seconds / HOUR_SECONDS


def node_mtbf_of_rate(*, rate_per_1000_node_days: float) -> float:
    """Return the mean time between failures of a node from its rate. [s]

    ``1000 * 86400 / rate``: 6.50 per 1000 node-days are 3,692 h.

    References:
        A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
        arXiv:2410.21680, which gives rates in this unit.
    """
    return 1000.0 * DAY_SECONDS / rate_per_1000_node_days


def mtbf_of_nodes(*, node_mtbf_seconds: float, nodes: float) -> float:
    """Return the mean time between failures of a job that any of its nodes stops. [s]"""
    return node_mtbf_seconds / nodes


def early_life_mtbf(*, settled_mtbf_seconds: float, early_life_factor: float) -> float:
    """Return the mean time between failures while a cluster is new. [s]

    Args:
        settled_mtbf_seconds: Once the weak parts are out. [s]
        early_life_factor: How many times as often it fails until then.

    References:
        B. Schroeder and G. A. Gibson, "A large-scale study of failures in high-performance computing systems", DSN
        2006, section 5: of several clusters the rate fell over the first months; of the first of a kind it rose.
    """
    return settled_mtbf_seconds / early_life_factor


def mtbf_low(*, mtbf_seconds: float, observed_failures: float, confidence_fraction: float) -> float:
    """Return the lower end of the exact interval of a mean time between failures. [s]

    See `poisson_bounds`.
    """
    return poisson_bounds(
        mtbf_seconds=mtbf_seconds, failures=observed_failures, confidence_fraction=confidence_fraction
    ).low_seconds


def mtbf_high(*, mtbf_seconds: float, observed_failures: float, confidence_fraction: float) -> float:
    """Return the upper end of the exact interval of a mean time between failures. [s]

    See `poisson_bounds`.
    """
    return poisson_bounds(
        mtbf_seconds=mtbf_seconds, failures=observed_failures, confidence_fraction=confidence_fraction
    ).high_seconds


def poisson_bounds(*, mtbf_seconds: float, failures: float, confidence_fraction: float) -> Bounds:
    """Return the exact two-sided confidence interval of a mean time between failures.

    With `n` failures counted, the expected count lies between the quantiles `a/2` of a gamma distribution of
    shape `n` and `1 - a/2` of shape `n + 1`; the mean time is the exposure over them.

    Args:
        mtbf_seconds: Exposure over failures. [s]
        failures: The count, at least 1.
        confidence_fraction: `1 - a`.

    References:
        F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28(3/4), 1936.
    """
    fewest, most = _expected_counts(failures, confidence_fraction)
    exposure_seconds = mtbf_seconds * failures
    return Bounds(exposure_seconds / most, exposure_seconds / fewest)


@lru_cache(maxsize=1024)
def _expected_counts(failures: float, confidence_fraction: float) -> tuple[float, float]:
    """Return the fewest and the most failures to expect where so many were counted; kept, since records recur."""
    tail = (1.0 - confidence_fraction) / 2.0
    return float(gammaincinv(failures, tail)), float(gammaincinv(failures + 1.0, 1.0 - tail))


def failures_per_day(*, mtbf_seconds: float) -> float:
    """Return the expected interruptions a day. [1/day]"""
    return DAY_SECONDS / mtbf_seconds


def failures_per_node_day(*, mtbf_seconds: float, nodes: float) -> float:
    """Return the expected interruptions a day for each node of the job. [1/(node day)]"""
    return failures_per_day(mtbf_seconds=mtbf_seconds) / nodes


def planned_per_day(*, observed_planned: float, observed_hours: float) -> float:
    """Return the planned interruptions a day. [1/day]

    They come by the calendar of those who run the cluster, so the GPU count does not change them: 47 in the 54 days
    of Llama 3 (arXiv:2407.21783, section 3.3.4).
    """
    return observed_planned / (observed_hours * HOUR_SECONDS) * DAY_SECONDS


def planned_fraction(*, planned_per_day: float, restart_seconds: float) -> float:
    """Return the fraction of all time that goes into restarts after planned interruptions.

    A planned stop saves first, so it undoes no work; what it costs is the way back. The fraction passes 1 where
    more stops are said to be planned than there is time to come back from.
    """
    return planned_per_day * restart_seconds / DAY_SECONDS
