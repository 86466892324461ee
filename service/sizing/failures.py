"""Mean time between failures of a job, with its uncertainty."""

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
