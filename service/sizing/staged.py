"""A save through a staging budget: its stall, and the interval that the rule gives for that stall.

The stall lengthens the interval of a rule, and a drain that was sized by the interval lengthens the stall:
the two are solved together.
"""

from typing import NamedTuple

from service.sizing import staging
from service.sizing.operation import Job, interval_for
from service.sizing.sizing import Blocking, SizingWarning, WarningCode
from service.sizing.spec import DEFAULT_HEADROOM, IntervalRule
from service.units import GB


class Staged(NamedTuple):
    """What a staging budget makes of a save."""

    interval_seconds: float
    budget_seconds: float
    """The stall as the spec allows it. [s]"""
    stall_seconds: float
    """The stall as the copy, and the wait for memory, make it. [s]"""
    drain_seconds: float
    lag_seconds: float

    @property
    def blocking_seconds(self) -> float:
        """The stall in force: the longer of the two. [s]"""
        return max(self.budget_seconds, self.stall_seconds)

    @property
    def drained_seconds(self) -> float:
        """How much of the drain passes in the stall. [s]"""
        return max(self.drain_seconds - self.lag_seconds, 0.0)

    @property
    def exceeds(self) -> bool:
        """Whether the stall is longer than the spec allows."""
        return self.stall_seconds > self.budget_seconds


class _Line(NamedTuple):
    """A time that is a constant and a fraction of the interval."""

    seconds: float
    fraction: float

    def __call__(self, interval_seconds: float) -> float:
        return self.seconds + self.fraction * interval_seconds

    def plus(self, other: "_Line") -> "_Line":
        return _Line(self.seconds + other.seconds, self.fraction + other.fraction)


def staged(job: Job, *, drain_seconds: float | None = None) -> Staged | None:
    """Return what the spec's staging budget makes of its saves; None where the stall outgrows every interval.

    Args:
        job: The job, whose spec has a staging budget.
        drain_seconds: How long a whole save takes to drain; without it the durable lag that is stated, or else the
            interval over the headroom. [s]
    """
    save, share = job.spec.save, job.node_share_bytes
    room = float(save.staging_budget_bytes_per_node or 0)
    allowed = (
        _Line(save.blocking_seconds, 0.0)
        if save.blocking_seconds is not None
        else _Line(0.0, save.overhead_fraction or 0.0)
    )
    copy = _Line(save.copy_seconds, 0.0) if save.copy_seconds is not None else allowed
    if drain_seconds is None:
        drain_seconds = save.durable_lag_seconds
    drain = (
        _Line(drain_seconds, 0.0)
        if drain_seconds is not None
        else _Line(0.0, 1.0 / (save.headroom if save.headroom is not None else DEFAULT_HEADROOM))
    )
    waiting = max(1.0 - room / share, 0.0)
    wait = _Line(drain.seconds * waiting, drain.fraction * waiting)
    longest = (allowed, copy, wait) if save.drain_overlaps_copy else (allowed, copy.plus(wait))
    interval_seconds = _interval(job, longest)
    if interval_seconds is None:
        return None
    inputs = {
        "node_share_bytes": share,
        "drain_gb_per_second": share / drain(interval_seconds) / GB,
    }
    copying = {"copy_seconds": copy(interval_seconds), "staging_budget_bytes": room}
    if save.drain_overlaps_copy:
        stall = staging.overlapped_stall(**inputs, **copying)
        lag = staging.overlapped_lag(**inputs, staging_stall_seconds=stall)
    else:
        stall = staging.serial_stall(**inputs, **copying)
        lag = staging.serial_lag(**inputs, staging_budget_bytes=room)
    return Staged(
        interval_seconds=interval_seconds,
        budget_seconds=allowed(interval_seconds),
        stall_seconds=stall,
        drain_seconds=drain(interval_seconds),
        lag_seconds=lag,
    )


def with_stall(block: Blocking, found: Staged) -> Blocking:
    """Return the block of a stall with what made it."""
    told = {
        "budget_seconds": found.budget_seconds if found.exceeds else None,
        "staging_stall_seconds": found.stall_seconds,
    }
    return block.model_copy(update=told)


def drained(found: Staged) -> dict[str, float | None]:
    """Return the fields of a write block that change where a part of the drain passes in the stall."""
    part = found.lag_seconds < found.drain_seconds
    return {
        "durable_lag_seconds": found.lag_seconds,
        "drain_seconds": found.drain_seconds if part else None,
    }


def stalls(job: Job, found: Staged, *, where: str = "A") -> SizingWarning:
    """Return the warning that a save stops training for longer than was allowed, with the ways out."""
    room = job.spec.save.staging_budget_bytes_per_node
    return SizingWarning(
        code=WarningCode.STAGING_STALLS,
        pointer="#/save/staging_budget_bytes_per_node",
        message=f"{where} save stops training for {found.stall_seconds:.6g} s where {found.budget_seconds:.6g} s are "
        f"allowed: {room} bytes may be staged of the {job.node_share_bytes:.6g} of a node, and what does not fit waits "
        "until as much has drained. The figures count the longer stall. Ways out: staging memory for the whole share, "
        "a faster drain or copy, or more nodes.",
    )


def _interval(job: Job, longest: tuple[_Line, ...]) -> float | None:
    """Return the interval for a stall that is the longest of the lines; None where there is none."""
    if job.spec.interval.rule is IntervalRule.FIXED:
        return interval_for(job, None, None)
    if any(line.fraction >= 1.0 for line in longest):
        return None
    # The interval of a rule grows with its stall and ever more slowly, so each line has one stall that it gives
    # back, and the longest stall is that of the longest of these.
    return max(_interval_of(job, line) for line in longest)


def _interval_of(job: Job, line: _Line) -> float:
    """Return the interval at which the rule and one line agree about the stall."""
    if line.fraction == 0.0:
        return interval_for(job, line.seconds, None) if line.seconds > 0.0 else 0.0
    if line.seconds == 0.0:
        return interval_for(job, None, line.fraction)
    low = high = line.seconds
    while line(interval_for(job, high, None)) > high:
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high:
        if line(interval_for(job, middle, None)) > middle:
            low = middle
        else:
            high = middle
    return interval_for(job, high, None)
