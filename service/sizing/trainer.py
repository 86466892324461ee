"""What a trainer is set to: the interval in steps, and the writer threads of a rank."""

import math

_ROUNDING = 1e-12
"""Of a quotient that is a whole number but for a float's precision."""


def interval_steps(*, interval_seconds: float, blocking_seconds: float, step_seconds: float) -> int:
    """Return after how many training steps a save starts: the nearest whole number, and at least one.

    ``round((T - C) / step)``: training stops for `C` in each interval `T`.

    Args:
        interval_seconds: From the start of one save to the start of the next, `T`. [s]
        blocking_seconds: How long training stops for one, `C`. [s]
        step_seconds: One training step without a save. [s]
    """
    return max(1, round((interval_seconds - blocking_seconds) / step_seconds))


def interval_of_steps(*, interval_steps: int, step_seconds: float, blocking_seconds: float) -> float:
    """Return the interval that so many steps and a save come to. [s]"""
    return interval_steps * step_seconds + blocking_seconds


def writing_ranks(*, writers: int, nodes: int) -> int:
    """Return the writers of one node, spread evenly, the fullest node counted."""
    return -(-writers // nodes)


def writer_threads(*, node_gb_per_second: float, thread_gb_per_second: float, writing_ranks: int) -> int:
    """Return the threads that each writing rank of a node needs so that together they move what the node can.

    Args:
        node_gb_per_second: What the node can, or must, move. [10^9 B/s]
        thread_gb_per_second: What one writer thread moves, as measured. [10^9 B/s]
        writing_ranks: Ranks of the node that write at once.

    References:
        "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B": raise thread_count when a node cannot fill its NIC.
    """
    return max(1, math.ceil(node_gb_per_second / (thread_gb_per_second * writing_ranks) * (1.0 - _ROUNDING)))
