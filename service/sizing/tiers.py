"""Several tiers that a job saves to: what each holds and moves, and where the wall time goes with all of them.

The tiers stand nearest first, and the last is shared storage, which survives every failure. They save in step: a tier
saves with every so many saves of the one before it, each at the same step of training. `P` is the period of shared
storage, `n` a tier's saves in it, `C` what a save at that tier stops training for, `D` from then until it is durable,
`q` the fraction of failures that fall back to the tier, `R` the restart from it, `M` the mean time between failures.

What the model takes for granted, and the simulation in its tests with it:

- Failures come at a constant rate, also during a restart. Each falls back to the nearest tier that survives it.
- Stalls of saves that fall together add up, and none of these saves counts before training goes on.
- A copy that a failure destroyed, or that was on its way to a farther tier, is there again when the restart ends,
  unless it is newer than the restored one. This flatters goodput, by a few thousandths where failures are 5,000 s
  apart and restarts take 600 s, and by less where they are rarer.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from service.sizing.goodput import Split
from service.units import DAY_SECONDS, GB, TB

_MOST_EXPONENT = 600.0
"""Of a restart over the time between failures: exp of minus this is as good as never, and can be divided by."""


class Level(NamedTuple):
    """One tier as the model sees it."""

    saves: int
    """In a period of shared storage, `n`; a multiple of the next level's. 1 for shared storage."""
    blocking_seconds: float
    durable_lag_seconds: float
    fallback_fraction: float
    restart_seconds: float


def nested_saves(*, next_interval_seconds: float, interval_seconds: float, next_saves: int) -> int:
    """Return how often a tier saves in a period of shared storage, so that it saves with every save of the next tier.

    ``next_saves * max(1, round(next interval / interval))``: the nearest to the interval asked for.
    """
    return next_saves * max(1, round(next_interval_seconds / interval_seconds))


def shared_stall(*, blocking_seconds: float, interval_seconds: float, effective_seconds: float) -> float:
    """Return what a save to shared storage stops training for, the wait for the save before it included. [s]"""
    return blocking_seconds + effective_seconds - interval_seconds


def shared_lag(*, interval_seconds: float, blocking_seconds: float, staging_buffers: int) -> float:
    """Return the lag of shared storage whose saves wait, as `exact_goodput_when_saves_collide` has it. [s]"""
    return interval_seconds - (blocking_seconds if staging_buffers == 1 else 0.0)


def fallback_fraction(
    *,
    failure_fractions: Sequence[float],
    survival_fractions: Sequence[float],
    nearer_survival_fractions: Sequence[float],
) -> float:
    """Return the failures that a tier survives and no nearer tier does, over all failures.

    ``sum over the kinds of failure of f * max(p - p of the nearer tiers, 0)``: tiers with copies on other nodes place
    them in the same groups, so what fewer copies survive more copies survive too.
    """
    return sum(
        fraction * max(survives - nearer, 0.0)
        for fraction, survives, nearer in zip(
            failure_fractions, survival_fractions, nearer_survival_fractions, strict=True
        )
    )


def useful_seconds(levels: Sequence[Level], *, period_seconds: float) -> float:
    """Return the training in one period of shared storage, ``P - sum of n * C``. [s]"""
    return period_seconds - sum(level.saves * level.blocking_seconds for level in levels)


def saves_per_failure(levels: Sequence[Level], *, period_seconds: float, mtbf_seconds: float) -> float:
    """Return how many saves to shared storage come to count between two failures, on average.

    For shared storage alone this is ``exp(-D/M) / (exp(P/M) - 1)``. With more tiers it follows from the same
    renewal argument, level by level. Let a stretch be the time from one save of a tier to its next, `A` the
    fraction of lives that pass it and `F` the lives that end in it, both for one life at its start. Of the lives
    that a failure ends, the restarts that stay within the tiers up to this one begin again within the stretch; the
    fraction `B` falls back farther. With `d` the sum of ``q * exp(-D/M)`` over these tiers, and
    ``W = (F + A) * B + d * A``, the next stretch of the tier multiplies the lives by ``A * (B + d) / W``, and adds
    ``F * (B + d) / W`` ended ones for each life that enters it. The stretch of the farther tier is made of such
    stretches; the result is ``A * d / F`` of the last tier.

    Raises:
        ValueError: The saves leave no time to train.

    References:
        Renewal argument, as for `goodput.exact_goodput`; checked by event-by-event simulation in the tests. The
        setting is that of N. H. Vaidya, "A case for two-level distributed recovery schemes", SIGMETRICS 1995, and
        of A. Moody et al., "Design, modeling, and evaluation of a scalable multi-level checkpointing system", SC10.
    """
    useful = useful_seconds(levels, period_seconds=period_seconds)
    if useful <= 0.0:
        raise ValueError("the saves leave no time to train")
    lives = _Lives(levels, useful / levels[0].saves, mtbf_seconds)
    last = len(levels) - 1
    passed, ended = lives.stretch(last, last)
    return passed * lives.counted(last, last) / ended


def mean_restart_seconds(levels: Sequence[Level], *, mtbf_seconds: float) -> float:
    """Return how long the way back takes on average, failures on the way included. [s]

    A failure during a restart begins it again: from the same tier, or from a farther one where it needs that.
    For shared storage alone this is ``M * (exp(R/M) - 1)``.
    """
    means: list[float] = []
    for begun in _restarts(levels, mtbf_seconds):
        again = sum(chance * mean for chance, mean in zip(begun.farther, means, strict=True))
        means.insert(0, begun.attempt_seconds + again)
    return sum(level.fallback_fraction * mean for level, mean in zip(levels, means, strict=True))


def tiered_split(levels: Sequence[Level], *, period_seconds: float, mtbf_seconds: float) -> Split:
    """Return where the wall time goes with all tiers; the four add up to 1.

    ``goodput = saves per failure * useful / (M + restart per failure)``, and likewise the saving that counted. What
    is left of the time beside these and the restarts is lost work. For shared storage alone this is `exact_goodput`.

    Raises:
        ValueError: The saves leave no time to train.
    """
    useful = useful_seconds(levels, period_seconds=period_seconds)
    counted = saves_per_failure(levels, period_seconds=period_seconds, mtbf_seconds=mtbf_seconds)
    restart_seconds = mean_restart_seconds(levels, mtbf_seconds=mtbf_seconds)
    alive = mtbf_seconds / (mtbf_seconds + restart_seconds)
    per_life = alive / mtbf_seconds * counted
    return Split(
        goodput=per_life * useful,
        saving=per_life * (period_seconds - useful),
        lost_work=lost_work_fraction(
            shared_saves_per_failure=counted,
            period_seconds=period_seconds,
            mtbf_seconds=mtbf_seconds,
            mean_restart_seconds=restart_seconds,
        ),
        restarting=restart_seconds / (mtbf_seconds + restart_seconds),
    )


def lost_work_fraction(
    *,
    shared_saves_per_failure: float,
    period_seconds: float,
    mtbf_seconds: float,
    mean_restart_seconds: float,
) -> float:
    """Return the time that failures undo, ``(M - saves per failure * P) / (M + restart per failure)``, of all."""
    alive = mtbf_seconds / (mtbf_seconds + mean_restart_seconds)
    return alive * max(1.0 - shared_saves_per_failure * period_seconds / mtbf_seconds, 0.0)


def first_order_waste(levels: Sequence[Level], *, period_seconds: float, mtbf_seconds: float) -> float:
    """Return the waste to first order, ``sum of C/T + sum of q * (T/2 + D + R) / M`` with ``T = P/n``.

    To check the exact figure by hand where failures are rare; unlike the articles' it has the durable lag.
    """
    saving = sum(level.saves * level.blocking_seconds for level in levels) / period_seconds
    failing = sum(
        level.fallback_fraction
        * (period_seconds / level.saves / 2.0 + level.durable_lag_seconds + level.restart_seconds)
        for level in levels
    )
    return saving + failing / mtbf_seconds


def tier_young_interval(*, blocking_seconds: float, mtbf_seconds: float, fallback_fraction: float) -> float:
    """Return the interval of one tier that minimises waste to first order. [s]

    ``T = sqrt(2 * C * M / q)``: Young's rule for the failures that fall back to the tier, whatever the other tiers do.

    References:
        S. Di et al., "Optimization of multi-level checkpoint model for large scale HPC applications", IPDPS 2014, has
        the optimum of several levels; to first order its intervals are these.
    """
    return math.sqrt(2.0 * blocking_seconds * (mtbf_seconds / fallback_fraction))


class _Restart(NamedTuple):
    """A restart from one tier, until it ends well or a failure asks for a farther tier."""

    attempt_seconds: float
    ends_well: float
    farther: list[float]
    """The chance of going on from each farther tier, in order."""


def _restarts(levels: Sequence[Level], mtbf_seconds: float) -> list[_Restart]:
    """Return the restarts from the farthest tier to the nearest."""
    total = sum(level.fallback_fraction for level in levels)
    restarts = []
    for at in reversed(range(len(levels))):
        exposure = min(levels[at].restart_seconds / mtbf_seconds, _MOST_EXPONENT)
        undisturbed, disturbed = math.exp(-exposure), -math.expm1(-exposure)
        farther = [level.fallback_fraction / total for level in levels[at + 1 :]]
        nearer = sum(level.fallback_fraction / total for level in levels[: at + 1]) if farther else 1.0
        leaves = sum(farther) * disturbed + undisturbed * (nearer + sum(farther))
        restarts.append(
            _Restart(
                attempt_seconds=mtbf_seconds * disturbed / leaves,
                ends_well=undisturbed / leaves,
                farther=[disturbed * chance / leaves for chance in farther],
            )
        )
    return restarts


class _Lives:
    """Lives, from the end of a restart to the next failure, on their way from save to save."""

    def __init__(self, levels: Sequence[Level], work_seconds: float, mtbf_seconds: float) -> None:
        self._levels = levels
        self._work_seconds = work_seconds
        self._mtbf_seconds = mtbf_seconds
        count = len(levels)
        # For each tier that a failure asks for, the chances that training goes on from each tier.
        ends: list[list[float]] = [[] for _ in levels]
        for at, restart in zip(reversed(range(count)), _restarts(levels, mtbf_seconds), strict=True):
            ends[at] = [0.0] * at + [restart.ends_well] + [0.0] * (count - at - 1)
            for farther, chance in enumerate(restart.farther, start=at + 1):
                ends[at] = [
                    here + chance * there for here, there in zip(ends[at], ends[farther], strict=True)
                ]
        self._ends = ends
        self._farther = [
            sum(level.fallback_fraction * sum(end[at + 1 :]) for level, end in zip(levels, ends, strict=True))
            for at in range(count)
        ]

    def counted(self, at: int, highest: int) -> float:
        """Return `d` of the tiers up to `at`, for a save that falls together with those of the tiers up to `highest`.

        The stalls of the farther tiers pass before it counts, and its own lag runs meanwhile.
        """
        total = 0.0
        for index, level in enumerate(self._levels[: at + 1]):
            stalls = sum(later.blocking_seconds for later in self._levels[index + 1 : highest + 1])
            lag = max(level.durable_lag_seconds - stalls, 0.0)
            stays = sum(self._ends[index][: at + 1])
            total += level.fallback_fraction * stays * math.exp(-lag / self._mtbf_seconds)
        return total

    def stretch(self, at: int, highest: int) -> tuple[float, float]:
        """Return `A` and `F` of a stretch of tier `at` that ends with saves of the tiers up to `highest`."""
        if at == 0:
            stalls = sum(level.blocking_seconds for level in self._levels[: highest + 1])
            exposure = (self._work_seconds + stalls) / self._mtbf_seconds
            return math.exp(-exposure), -math.expm1(-exposure)
        parts = self._levels[at - 1].saves // self._levels[at].saves
        if parts == 1:
            return self.stretch(at - 1, highest)
        inner = self.stretch(at - 1, at - 1)
        passed, ended = inner
        if passed > 0.0 and parts > 2:
            passing, stopped, ending = self._enter(at - 1, at - 1, *inner)
            ended += passed * ending * _geometric_sum(passing, stopped, parts - 2)
            passed *= _power(passing, stopped, parts - 2)
        if passed == 0.0:
            return 0.0, ended
        passing, _, ending = self._enter(at - 1, highest, *self.stretch(at - 1, highest))
        return passed * passing, ended + passed * ending

    def _enter(self, at: int, highest: int, passed: float, ended: float) -> tuple[float, float, float]:
        """Return the lives that pass a stretch for each that enters it, one less those, and those that end in it."""
        farther = self._farther[at]
        before, after = self.counted(at, at), self.counted(at, highest)
        whole = (ended + passed) * farther + after * passed
        if whole == 0.0:
            return 0.0, 1.0, math.inf
        return (
            min(passed * (farther + before) / whole, 1.0),
            (ended * farther + (after - before) * passed) / whole,
            ended * (farther + before) / whole,
        )


def _log(passing: float, stopped: float) -> float:
    if stopped < 0.5:
        return math.log1p(-stopped)
    return math.log(passing) if passing > 0.0 else -math.inf


def _power(passing: float, stopped: float, times: int) -> float:
    return math.exp(_log(passing, stopped) * times)


def _geometric_sum(passing: float, stopped: float, terms: int) -> float:
    """Return ``1 + p + p**2 + ...`` in so many terms, for ``p = passing = 1 - stopped``."""
    if stopped <= 0.0:
        return float(terms)
    return -math.expm1(_log(passing, stopped) * terms) / stopped


def durable_lag(*, node_bytes: float, copies: int, node_write_gb_per_second: float) -> float:
    """Return how long a node takes to write its copies of one save to a tier. [s]"""
    return node_bytes * copies / (node_write_gb_per_second * GB)


def node_write_rate(*, node_bytes: float, copies: int, durable_lag_seconds: float) -> float:
    """Return what a node must write for its copies of one save to be durable in time. [10^9 B/s]"""
    return node_bytes * copies / durable_lag_seconds / GB


def held_bytes(*, node_bytes: float, replicas: int, versions: int) -> float:
    """Return what a tier takes on each node: its own part and those of peers, in each version held. [B]

    Two versions are the complete checkpoint and the one that is being written.
    """
    return node_bytes * replicas * versions


def peer_bytes(*, checkpoint_bytes: float, replicas: int) -> float:
    """Return what one save sends over the network for the copies on other nodes. [B]"""
    return checkpoint_bytes * (replicas - 1)


def written_tb_per_day(*, node_bytes: float, replicas: int, interval_seconds: float) -> float:
    """Return what the drives of a node take in a day of saves, as if nothing failed. [10^12 B/day]"""
    return node_bytes * replicas * (DAY_SECONDS / interval_seconds) / TB


def drive_writes_per_day(*, written_tb_per_day: float, drives_per_node: int, drive_bytes: float) -> float:
    """Return how often a day each drive of a node is written over, for writes spread evenly over them. [1/day]"""
    return written_tb_per_day * TB / (drives_per_node * drive_bytes)
