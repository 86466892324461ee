"""Staging memory that is smaller than what a save stages: how long training then stops, and what is left to drain.

A save copies a node's share to host memory, from where it drains to the storage. What does not fit has to wait
until as much has drained.
"""

from service.units import GB


def serial_stall(
    *, copy_seconds: float, node_share_bytes: float, staging_budget_bytes: float, drain_gb_per_second: float
) -> float:
    """Return how long a save stops training where nothing drains while it is copied. [s]

    ``copy + (share - budget) / drain``, and the copy alone where the share fits.

    Args:
        copy_seconds: The copy to host memory by itself. [s]
        node_share_bytes: What the save stages on one node. [B]
        staging_budget_bytes: Host memory that it may take there. [B]
        drain_gb_per_second: At what rate the node's staging memory drains. [10^9 B/s]

    References:
        Conservation of bytes. 78 GiB through 8 GiB at 0.60 GiB/s with a copy of 13 s give 129.7 s; 130.1 s were
        measured.
    """
    return copy_seconds + max(node_share_bytes - staging_budget_bytes, 0.0) / (drain_gb_per_second * GB)


def overlapped_stall(
    *, copy_seconds: float, node_share_bytes: float, staging_budget_bytes: float, drain_gb_per_second: float
) -> float:
    """Return the same where draining starts with the copy: ``max(copy, (share - budget) / drain)``. [s]"""
    return max(copy_seconds, max(node_share_bytes - staging_budget_bytes, 0.0) / (drain_gb_per_second * GB))


def serial_drain_limit(
    *, allowed_seconds: float, copy_seconds: float, node_share_bytes: float, staging_budget_bytes: float
) -> float:
    """Return the longest drain of a whole save that keeps `serial_stall` to what is allowed. [s]

    ``(allowed - copy) * share / (share - budget)``: what does not fit has to drain in what the copy leaves of the
    stall. Only for a share that does not fit, and a stall that is longer than the copy: no drain keeps to another.

    Args:
        allowed_seconds: The stall that is allowed. [s]
        copy_seconds: The copy to host memory by itself. [s]
        node_share_bytes: What the save stages on one node. [B]
        staging_budget_bytes: Host memory that it may take there. [B]

    References:
        Conservation of bytes. 78 GiB through 8 GiB in 130 s with a copy of 13 s have to drain at 0.642e9 B/s.
    """
    return (allowed_seconds - copy_seconds) * node_share_bytes / (node_share_bytes - staging_budget_bytes)


def overlapped_drain_limit(
    *, allowed_seconds: float, node_share_bytes: float, staging_budget_bytes: float
) -> float:
    """Return the same for `overlapped_stall`: ``allowed * share / (share - budget)``. [s]"""
    return allowed_seconds * node_share_bytes / (node_share_bytes - staging_budget_bytes)


def interval_of_wait(*, spared_seconds: float, waiting_fraction: float) -> float:
    """Return the interval at which a wait that is a fraction of it takes so long. [s]"""
    return spared_seconds / waiting_fraction


def serial_lag(*, node_share_bytes: float, staging_budget_bytes: float, drain_gb_per_second: float) -> float:
    """Return the durable lag where nothing drains while a save is copied: what is staged when training goes on. [s]"""
    return min(node_share_bytes, staging_budget_bytes) / (drain_gb_per_second * GB)


def overlapped_lag(
    *, node_share_bytes: float, staging_stall_seconds: float, drain_gb_per_second: float
) -> float:
    """Return the durable lag where draining starts with the copy: the drain less the stall. [s]"""
    return max(node_share_bytes / (drain_gb_per_second * GB) - staging_stall_seconds, 0.0)
