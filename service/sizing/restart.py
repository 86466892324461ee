"""What a restart is made of: how often no spare node is left, and how much work is done again after it."""

from scipy.special import gammainc

from service.sizing import goodput
from service.units import HOUR_SECONDS


def spares_exhausted(
    *, spare_nodes: int, repair_hours: float, node_loss_fraction: float, mtbf_seconds: float
) -> float:
    """Return the fraction of failures that need a spare node and find none.

    ``f * P(N >= k)`` with `N` the nodes in repair, a Poisson number of mean ``f * repair / M``. Nodes fail
    independently and are repaired side by side, however long each repair takes; a failure finds as many in repair
    as there are at any time.

    Args:
        spare_nodes: Nodes beside those of the job, `k`.
        repair_hours: Mean time from a failure until the node is back among the spares. [h]
        node_loss_fraction: Failures that take a node away over all failures, `f`.
        mtbf_seconds: Mean time between failures of the whole job, `M`. [s]

    References:
        L. Takacs, "Introduction to the Theory of Queues", 1962, chapter 3: the queue M/G/infinity.
        R. W. Wolff, "Poisson arrivals see time averages", Operations Research 30(2), 1982.
    """
    in_repair = node_loss_fraction * repair_hours * HOUR_SECONDS / mtbf_seconds
    none_left = float(gammainc(spare_nodes, in_repair)) if spare_nodes else 1.0
    return node_loss_fraction * none_left


def mean_reschedule(
    *,
    reschedule_seconds: float,
    reschedule_without_spares_seconds: float,
    spares_exhausted_fraction: float,
) -> float:
    """Return how long it takes until the nodes are there, the mean over failures with and without spares. [s]"""
    return (
        reschedule_seconds * (1.0 - spares_exhausted_fraction)
        + reschedule_without_spares_seconds * spares_exhausted_fraction
    )


def restart_with_spares(
    *,
    other_parts_seconds: float,
    reschedule_seconds: float,
    reschedule_without_spares_seconds: float,
    spare_nodes: int,
    repair_hours: float,
    node_loss_fraction: float,
    mtbf_seconds: float,
) -> float:
    """Return the mean restart: `mean_reschedule` by `spares_exhausted`, and its other parts. [s]"""
    exhausted = spares_exhausted(
        spare_nodes=spare_nodes,
        repair_hours=repair_hours,
        node_loss_fraction=node_loss_fraction,
        mtbf_seconds=mtbf_seconds,
    )
    return other_parts_seconds + mean_reschedule(
        reschedule_seconds=reschedule_seconds,
        reschedule_without_spares_seconds=reschedule_without_spares_seconds,
        spares_exhausted_fraction=exhausted,
    )


def replay(
    *, interval_seconds: float, blocking_seconds: float, durable_lag_seconds: float, mtbf_seconds: float
) -> float:
    """Return the time that a failure undoes and training spends again, the mean over restarts. [s]

    ``M - T * exp(-D/M) / (exp(T/M) - 1)``: what passes between two restarts less the periods that count, to first
    order ``T/2 + D``. It is the lost work of `goodput.exact_goodput`, failure by failure.
    """
    return (
        mtbf_seconds
        * goodput.exact_goodput(
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            restart_seconds=0.0,
            durable_lag_seconds=durable_lag_seconds,
            mtbf_seconds=mtbf_seconds,
        ).lost_work
    )


def replay_when_saves_collide(
    *,
    interval_seconds: float,
    effective_interval_seconds: float,
    blocking_seconds: float,
    staging_buffers: int,
    mtbf_seconds: float,
) -> float:
    """Return the same where saves wait for each other. [s]

    It is the lost work of `goodput.exact_goodput_when_saves_collide`, failure by failure.
    """
    return (
        mtbf_seconds
        * goodput.exact_goodput_when_saves_collide(
            interval_seconds=interval_seconds,
            effective_interval_seconds=effective_interval_seconds,
            blocking_seconds=blocking_seconds,
            restart_seconds=0.0,
            staging_buffers=staging_buffers,
            mtbf_seconds=mtbf_seconds,
        ).lost_work
    )
