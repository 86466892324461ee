"""Where the wall time goes: to first order, and exactly.

`T` interval, `C` blocking time, `D` durable lag, `R` restart time, `M` mean time between failures, `P` the
period where saves wait for each other. Failures are exponential and may strike during a restart.
"""

import math
from typing import NamedTuple

from service.units import DAY_SECONDS

_SERIES_BELOW = 0.1
_ROUNDING = 1e-12
"""Of a bandwidth that was copied from an answer, and the lag computed back from it."""


class Split(NamedTuple):
    """Fractions of the wall time. The four of an exact split add up to 1."""

    goodput: float
    saving: float
    lost_work: float
    restarting: float


class FirstOrder(NamedTuple):
    """First-order fractions, and their sum, which can pass 1."""

    waste: float
    saving: float
    lost_work: float
    restarting: float


def first_order_waste(
    *, interval_seconds: float, blocking_seconds: float, restart_seconds: float, mtbf_seconds: float
) -> FirstOrder:
    """Return the articles' waste ``C/T + (T/2 + R)/M``, by its terms.

    A failure costs half an interval on average and a restart. The durable lag is left out.

    References:
        "Checkpoint Storage That Doesn't Stall Training", the section on Young and Daly.
    """
    saving = blocking_seconds / interval_seconds
    lost_work = interval_seconds / 2.0 / mtbf_seconds
    restarting = restart_seconds / mtbf_seconds
    return FirstOrder(saving + lost_work + restarting, saving, lost_work, restarting)


def effective_training_time_ratio(
    *, nodes: float, failures_per_node_day: float, restart_seconds: float, interval_seconds: float
) -> float:
    """Return the expected share of productive time of a long run, as Meta's reliability study estimates it.

    ``1 - n * r * (u0 + q + dt/2)`` with `n` nodes, `r` failures per node-day, `u0` the way back from a failure, `q`
    the wait for nodes, `dt` the interval. It is a first-order figure without the stall of the saves, and falls below
    0 where a restart and half an interval are long beside the time between failures.

    Args:
        nodes: Of the job.
        failures_per_node_day: [1/(node day)]
        restart_seconds: `u0 + q`. [s]
        interval_seconds: `dt`. [s]

    References:
        A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
        arXiv:2410.21680. Its second version also divides by 1 + w/dt, for a write of w that stops training.
    """
    lost_seconds = restart_seconds + interval_seconds / 2.0
    return 1.0 - nodes * failures_per_node_day * lost_seconds / DAY_SECONDS


def exact_goodput(
    *,
    interval_seconds: float,
    blocking_seconds: float,
    restart_seconds: float,
    durable_lag_seconds: float,
    mtbf_seconds: float,
) -> Split:
    """Return where the wall time goes when no save waits for another.

    ``goodput = (T - C)/M * exp(-(R + D)/M) / (exp(T/M) - 1)``: each period that ends without a failure adds
    its useful time, and after a failure a restart, and the lag until a checkpoint is durable, must pass.

    Raises:
        ValueError: The interval leaves no time to train.

    References:
        Renewal argument. With `D` = 0 it is the complete formula of J. T. Daly, "A higher order estimate of the
        optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22, 2006.
    """
    return _split(
        period_seconds=interval_seconds,
        useful_seconds=interval_seconds - blocking_seconds,
        saving_seconds=blocking_seconds,
        restart_seconds=restart_seconds,
        exposed_seconds=durable_lag_seconds,
        mtbf_seconds=mtbf_seconds,
    )


def exact_goodput_when_saves_collide(
    *,
    interval_seconds: float,
    effective_interval_seconds: float,
    blocking_seconds: float,
    restart_seconds: float,
    staging_buffers: int,
    mtbf_seconds: float,
) -> Split:
    """Return where the wall time goes when saves wait for a staging buffer.

    ``goodput = (T - C)/M * exp(-L/M) / (exp(P/M) - 1)`` with ``L = R + T - C`` for one staging buffer and
    ``L = R + T`` for more. The wait for a buffer counts as saving where the save that held it became durable.

    With one buffer every such save was waited for, ``P - T`` long. With `b` buffers training runs ahead of the
    drains after a restart, by ``a = (b - 1) * T - C``, before the first wait: `n` durable saves were waited for
    ``max(n * (P - T) - a, 0)`` in all. What is run ahead is lost at the next failure.

    Args:
        interval_seconds: The interval asked for, `T`. [s]
        effective_interval_seconds: The period that results, `P`, above `T`. [s]
        blocking_seconds: The stall of a save without the wait, `C`. [s]
        restart_seconds: `R`. [s]
        staging_buffers: Copies that host memory holds.
        mtbf_seconds: `M`. [s]

    References:
        The same renewal argument; checked by event-by-event simulation in the tests.
    """
    one_buffer = staging_buffers == 1
    wait_seconds = effective_interval_seconds - interval_seconds
    split = _split(
        period_seconds=effective_interval_seconds,
        useful_seconds=interval_seconds - blocking_seconds,
        saving_seconds=wait_seconds + blocking_seconds,
        restart_seconds=restart_seconds,
        exposed_seconds=interval_seconds - (blocking_seconds if one_buffer else 0.0),
        mtbf_seconds=mtbf_seconds,
    )
    if one_buffer or wait_seconds <= 0.0:
        return split
    met, not_met = _waits(
        period_seconds=effective_interval_seconds,
        wait_seconds=wait_seconds,
        ahead_seconds=(staging_buffers - 1) * interval_seconds - blocking_seconds,
        exposed_seconds=restart_seconds + interval_seconds,
        mtbf_seconds=mtbf_seconds,
    )
    stalls = split.goodput * (blocking_seconds / (interval_seconds - blocking_seconds))
    return split._replace(saving=stalls + met, lost_work=split.lost_work + not_met)


def _waits(
    *,
    period_seconds: float,
    wait_seconds: float,
    ahead_seconds: float,
    exposed_seconds: float,
    mtbf_seconds: float,
) -> tuple[float, float]:
    """Return the fraction of the wall time that durable saves were waited for, and what is spared of it.

    A life between failures sees at least `j` durable saves with the probability ``exp(-(L + j*P)/M)``. Of the
    ``n * (P - T)`` that `n` of them would be waited for, ``min(n * (P - T), a)`` are spared: all of the first
    ``m - 1``, and of save `m` what is left of `a`.
    """
    left = math.fmod(ahead_seconds, wait_seconds)
    spared_saves = (ahead_seconds - left) / wait_seconds
    period, exposed = period_seconds / mtbf_seconds, exposed_seconds / mtbf_seconds
    turning = math.exp(-exposed - (spared_saves + 1.0) * period)
    counted = -math.expm1(-period)
    met = (wait_seconds - left) * turning + wait_seconds * turning * math.exp(-period) / counted
    not_met = left * turning + wait_seconds * math.exp(-exposed - period) * (
        -math.expm1(-spared_saves * period) / counted
    )
    return met / mtbf_seconds, not_met / mtbf_seconds


def effective_interval(
    *, interval_seconds: float, blocking_seconds: float, durable_lag_seconds: float, staging_buffers: int
) -> float:
    """Return the period from save to save, which waiting for a staging buffer can stretch. [s]

    ``P = max(T, C + D)`` with one buffer, ``max(T, D)`` with more: drains are serial, so a second buffer helps
    only while ``D <= T``. A drain that ends just in time, but for rounding, makes nothing wait.
    """
    busy = durable_lag_seconds + (blocking_seconds if staging_buffers == 1 else 0.0)
    return busy if busy > interval_seconds * (1.0 + _ROUNDING) else interval_seconds


def _split(
    *,
    period_seconds: float,
    useful_seconds: float,
    saving_seconds: float,
    restart_seconds: float,
    exposed_seconds: float,
    mtbf_seconds: float,
) -> Split:
    if useful_seconds <= 0.0:
        raise ValueError("the interval leaves no time to train")
    period = period_seconds / mtbf_seconds
    # Periods that count, times M: exp(-(R + D)/M) / (exp(P/M) - 1), in a form that neither overflows nor cancels.
    counted = math.exp(-(restart_seconds + exposed_seconds) / mtbf_seconds - period) / -math.expm1(-period)
    goodput = useful_seconds / mtbf_seconds * counted
    saving = saving_seconds / mtbf_seconds * counted
    restarting = -math.expm1(-restart_seconds / mtbf_seconds)
    exposed = exposed_seconds / mtbf_seconds
    lost_work = math.exp(-restart_seconds / mtbf_seconds) * (
        -math.expm1(-exposed) + math.exp(-exposed) * _lost_of_period(period)
    )
    return Split(goodput, saving, lost_work, restarting)


def _lost_of_period(y: float) -> float:
    """Return ``1 - y/(exp(y) - 1)``: what failures undo of the time between restarts, without cancellation."""
    if y < _SERIES_BELOW:
        square = y * y
        return y * (0.5 - y * (1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600))))
    return 1.0 - y * math.exp(-y) / -math.expm1(-y)
