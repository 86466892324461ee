"""A save through a staging budget: its stall, and the interval that the rule gives for that stall.

The drain is fast enough for the stall that is allowed, where any drain is. Where none is, since the copy alone takes as
long, a drain that is sized by the interval makes a wait that grows with it. Such a wait takes a fraction `w` of any
interval: where the rest of the stall is `C`, goodput goes as for a stall of ``C / (1 - w)`` that does not grow, and the
rules are asked for that.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from service.sizing import staging
from service.sizing.formulas import REGISTER
from service.sizing.operation import Job
from service.sizing.sizing import Blocking, SizingWarning, WarningCode
from service.sizing.spec import DEFAULT_HEADROOM, IntervalRule, ScenarioSpec
from service.units import GB


class Choice(NamedTuple):
    """A time, and the formula of the register that gives it."""

    seconds: float
    formula: str
    inputs: Mapping[str, float]


class Staged(NamedTuple):
    """What a staging budget makes of a save."""

    interval: Choice
    budget_seconds: float
    """The stall as the spec allows it. [s]"""
    stall_seconds: float
    """The stall as the copy, and the wait for memory, make it. [s]"""
    drain_seconds: float
    lag_seconds: float
    limit: Choice | None
    """The drain in force, where it is the stall that is allowed which asks for it."""
    copy_seconds: float

    @property
    def interval_seconds(self) -> float:
        """The interval in force. [s]"""
        return self.interval.seconds

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

    def no_drain_will_do(self, *, overlaps: bool) -> bool:
        """Return whether no drain, however fast, would keep the stall to what is allowed."""
        spare = self.budget_seconds - self.copy_seconds
        return spare < 0.0 or (spare == 0.0 and not overlaps)


class _Given(NamedTuple):
    """What a stall is made of: times, and fractions of the interval, whichever the spec has."""

    allowed_seconds: float
    allowed_fraction: float
    copy_seconds: float | None
    """None where the copy takes all of the stall that is allowed. [s]"""
    drain_seconds: float
    drain_fraction: float
    waiting: float
    """The fraction of the drain for which a copy waits."""
    overlaps: bool

    def allowed(self, interval_seconds: float) -> float:
        return self.allowed_seconds + self.allowed_fraction * interval_seconds

    def drain(self, interval_seconds: float) -> float:
        return self.drain_seconds + self.drain_fraction * interval_seconds

    def stall(self, interval_seconds: float) -> float:
        """Return the stall in force. [s]"""
        allowed = self.allowed(interval_seconds)
        copy = self.copy_seconds if self.copy_seconds is not None else allowed
        wait = self.drain(interval_seconds) * self.waiting
        return max(allowed, copy, wait) if self.overlaps else max(allowed, copy + wait)


def staged(
    spec: ScenarioSpec, *, node_share_bytes: float, mtbf_seconds: float, drain_seconds: float | None = None
) -> Staged | None:
    """Return what the spec's staging budget makes of its saves; None where the stall outgrows every interval.

    Args:
        spec: The scenario, which has a staging budget.
        node_share_bytes: What a save stages on one node. [B]
        mtbf_seconds: Mean time between failures of the job. [s]
        drain_seconds: How long a whole save takes to drain; without it as long as is asked for: the durable lag that
            is stated, or else the interval over the headroom, or less where the stall that is allowed needs it. [s]
    """
    save = spec.save
    room = float(save.staging_budget_bytes_per_node or 0)
    is_asked_for = drain_seconds is None
    if drain_seconds is None:
        drain_seconds = save.durable_lag_seconds
    headroom = save.headroom if save.headroom is not None else DEFAULT_HEADROOM
    given = _Given(
        allowed_seconds=save.blocking_seconds or 0.0,
        allowed_fraction=save.overhead_fraction or 0.0,
        copy_seconds=save.copy_seconds,
        drain_seconds=drain_seconds or 0.0,
        drain_fraction=1.0 / headroom if drain_seconds is None else 0.0,
        waiting=max(1.0 - room / node_share_bytes, 0.0),
        overlaps=bool(save.drain_overlaps_copy),
    )
    limit = None
    interval = _interval_of_allowed(spec, given, mtbf_seconds) if is_asked_for else None
    if interval is not None:
        limit = _limit(given, interval.seconds, node_share_bytes, room)
    if interval is None or limit is None:
        interval = _interval(spec, given, mtbf_seconds)
    if interval is None:
        return None
    allowed_seconds, drain_seconds = given.allowed(interval.seconds), given.drain(interval.seconds)
    if limit is not None and limit.seconds < drain_seconds:
        drain_seconds = limit.seconds
    else:
        limit = None
    inputs = {
        "node_share_bytes": node_share_bytes,
        "drain_gb_per_second": node_share_bytes / drain_seconds / GB,
    }
    copying = {
        "copy_seconds": save.copy_seconds if save.copy_seconds is not None else allowed_seconds,
        "staging_budget_bytes": room,
    }
    if given.overlaps:
        stall = staging.overlapped_stall(**inputs, **copying)
        lag = staging.overlapped_lag(**inputs, staging_stall_seconds=stall)
    else:
        stall = staging.serial_stall(**inputs, **copying)
        lag = staging.serial_lag(**inputs, staging_budget_bytes=room)
    if limit is not None:
        stall = min(stall, allowed_seconds)  # no rounding makes it a longer one
    return Staged(
        interval=interval,
        budget_seconds=allowed_seconds,
        stall_seconds=stall,
        drain_seconds=drain_seconds,
        lag_seconds=lag,
        limit=limit,
        copy_seconds=copying["copy_seconds"],
    )


def _interval_of_allowed(spec: ScenarioSpec, given: _Given, mtbf_seconds: float) -> Choice | None:
    """Return the interval for a stall that is as long as is allowed; None where there is none."""
    return _interval(spec, given._replace(waiting=0.0, copy_seconds=0.0), mtbf_seconds)


def _limit(
    given: _Given, interval_seconds: float, node_share_bytes: float, staging_budget_bytes: float
) -> Choice | None:
    """Return the longest drain that keeps the stall to what is allowed; None where any does, or none."""
    if not given.waiting:
        return None
    allowed = given.allowed(interval_seconds)
    copy = given.copy_seconds if given.copy_seconds is not None else allowed
    inputs = {
        "allowed_seconds": allowed,
        "node_share_bytes": node_share_bytes,
        "staging_budget_bytes": staging_budget_bytes,
    }
    if given.overlaps:
        return _chosen("overlapped_drain_limit", **inputs) if copy <= allowed else None
    return _chosen("serial_drain_limit", **inputs, copy_seconds=copy) if copy < allowed else None


def _interval(spec: ScenarioSpec, given: _Given, mtbf_seconds: float) -> Choice | None:
    """Return the interval for the stall that it causes; None where there is none."""
    rule = spec.interval.rule
    if rule is IntervalRule.FIXED:
        assert spec.interval.seconds is not None  # noqa: S101 - the spec refuses it
        return _chosen("given", **{"interval.seconds": spec.interval.seconds})
    mtbf = {"mtbf_seconds": mtbf_seconds}
    wait_fraction = given.drain_fraction * given.waiting

    def for_stall(blocking_seconds: float) -> Choice:
        return _chosen(f"{rule}_interval", blocking_seconds=blocking_seconds, **mtbf)

    def for_fraction(overhead_fraction: float) -> Choice | None:
        if overhead_fraction >= 1.0:
            return None
        return _chosen(f"{rule}_interval_at_overhead", overhead_fraction=overhead_fraction, **mtbf)

    if wait_fraction >= 1.0:
        return None
    if given.allowed_fraction:
        if given.copy_seconds is None and not given.overlaps and wait_fraction:
            return for_fraction(given.allowed_fraction / (1.0 - wait_fraction))
        allowed = for_fraction(given.allowed_fraction)
        if allowed is None or given.stall(allowed.seconds) <= given.allowed(allowed.seconds):
            return allowed
        if given.copy_seconds is None:
            return for_stall(_given_back(given, for_stall))
    least = given.copy_seconds if given.copy_seconds is not None else given.allowed_seconds
    fixed_wait = given.drain_seconds * given.waiting
    if not wait_fraction:
        constant = max(least, fixed_wait) if given.overlaps else least + fixed_wait
        return for_stall(max(given.allowed_seconds, constant))
    if given.overlaps:
        # Beyond the interval at which the wait is as long as the rest of the stall, only the wait grows.
        constant = max(given.allowed_seconds, least)
        turning = _chosen("interval_of_wait", spared_seconds=constant, waiting_fraction=wait_fraction)
        return min(for_stall(constant), turning)
    return for_stall(least / (1.0 - wait_fraction))


def _chosen(formula: str, **inputs: float) -> Choice:
    return Choice(REGISTER[formula].function(**inputs), formula, inputs)


def _given_back(given: _Given, for_stall: Callable[[float], Choice]) -> float:
    """Return the stall whose interval gives it back: a part of it is a fraction of the interval. [s]

    The interval of a rule grows with its stall and ever more slowly, so there is one.
    """
    low = high = max(given.drain_seconds * given.waiting, given.allowed_seconds)
    while given.stall(for_stall(high).seconds) > high:
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high:
        if given.stall(for_stall(middle).seconds) > middle:
            low = middle
        else:
            high = middle
    return high


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


def stalls(job: Job, found: Staged, *, delivered: bool = False) -> SizingWarning:
    """Return the warning that a save stops training for longer than was allowed, with the ways out.

    A drain that is asked for is fast enough wherever one can be; that of a given storage may just be too slow.
    """
    save, where = job.spec.save, "On the given storage a" if delivered else "A"
    why = (
        f"{save.staging_budget_bytes_per_node} bytes may be staged of the {job.staged_share_bytes:.6g} of a node, and "
        "what does not fit waits until as much has drained"
    )
    ways = "staging memory for the whole share, a faster drain or copy, or more nodes"
    if not delivered or found.no_drain_will_do(overlaps=bool(save.drain_overlaps_copy)):
        copy = f"the copy alone takes {found.copy_seconds:.6g} s"
        if found.copy_seconds < found.budget_seconds:
            copy += ", and the interval that the rule gives for such a stall allows it less"
        ways = "staging memory for the whole share, a faster copy, a longer stall, or more nodes"
        if save.copy_seconds is None:
            copy = (
                f"the copy is taken to last all {found.copy_seconds:.6g} s, since copy_seconds is not given"
            )
            ways = f"give copy_seconds if it is shorter, or drain_overlaps_copy if it is so; {ways}"
        elif job.staged_share_bytes <= (save.staging_budget_bytes_per_node or 0):
            ways = "a faster copy, a longer stall, or more nodes"
        why += f". No write bandwidth keeps a save within what is allowed: {copy}"
    return SizingWarning(
        code=WarningCode.STAGING_STALLS,
        pointer="#/save/staging_budget_bytes_per_node",
        message=f"{where} save stops training for {found.stall_seconds:.6g} s where {found.budget_seconds:.6g} s are "
        f"allowed: {why}. The figures count the longer stall. Ways out: {ways}.",
    )
