"""A scenario's tiers: what each survives, holds and moves, and the goodput of all of them together."""

from collections.abc import Sequence
from typing import NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing import bandwidth, cost, presets, recovery, tiers
from service.sizing.formulas import restart_with_load
from service.sizing.operation import Job, Operation
from service.sizing.sizing import (
    ExactGoodput,
    FailureShare,
    SizingWarning,
    Tier,
    Tiers,
    TierSurvival,
    WarningCode,
)
from service.sizing.spec.tiers import FailureKind, TierKind, TierSpec

FITTED_FRACTION = 0.05
"""An interval that the fit changes by more than this is warned of."""
_ROUNDING = 1e-12


class _Timing(NamedTuple):
    """How a tier saves and restores."""

    kind: TierKind
    interval_seconds: float
    saves: int
    blocking_seconds: float
    durable_lag_seconds: float
    restore_seconds: float | None
    restart_seconds: float


def tiered(
    job: Job,
    operation: Operation,
    restart_seconds: float,
    load_seconds: float | None,
    warnings: list[SizingWarning],
) -> Tiers:
    """Return the figures of the spec's tiers, with the operation of shared storage as the last of them.

    Raises:
        Unsatisfiable: The tiers cannot be kept up together.
    """
    spec = job.spec
    given = spec.tiers
    assert given is not None  # noqa: S101 - the caller asks first
    mix = _failure_mix(job, warnings)
    timings = _timings(job, given, operation, restart_seconds, load_seconds, warnings)
    survivals = [_survivals(job, tier, mix) for tier in given]
    survivals.append([1.0] * len(mix))
    levels, nearer = [], [0.0] * len(mix)
    for timing, survives in zip(timings, survivals, strict=True):
        levels.append(
            tiers.Level(
                saves=timing.saves,
                blocking_seconds=timing.blocking_seconds,
                durable_lag_seconds=timing.durable_lag_seconds,
                fallback_fraction=tiers.fallback_fraction(
                    failure_fractions=[share.fraction for share in mix],
                    survival_fractions=survives,
                    nearer_survival_fractions=nearer,
                ),
                restart_seconds=timing.restart_seconds,
            )
        )
        nearer = [max(pair) for pair in zip(nearer, survives, strict=True)]
    period_seconds, mtbf_seconds = operation.period_seconds, job.mtbf_seconds
    _refuse_no_useful_time(timings, period_seconds)
    split = tiers.tiered_split(levels, period_seconds=period_seconds, mtbf_seconds=mtbf_seconds)
    each = [
        Tier(
            kind=timing.kind,
            interval_seconds=timing.interval_seconds,
            young_seconds=tiers.tier_young_interval(
                blocking_seconds=timing.blocking_seconds,
                mtbf_seconds=mtbf_seconds,
                fallback_fraction=level.fallback_fraction,
            )
            if level.fallback_fraction > 0.0 and timing.blocking_seconds > 0.0
            else None,
            saves_per_shared_save=timing.saves,
            blocking_seconds=timing.blocking_seconds,
            durable_lag_seconds=timing.durable_lag_seconds,
            restore_seconds=timing.restore_seconds,
            restart_seconds=timing.restart_seconds,
            survives=[
                TierSurvival(kind=share.kind, nodes=share.nodes, survival_fraction=fraction)
                for share, fraction in zip(mix, survives, strict=True)
            ],
            fallback_fraction=level.fallback_fraction,
        ).model_copy(update=_amounts(job, given[at], timing, at, warnings) if at < len(given) else None)
        for at, (timing, level, survives) in enumerate(zip(timings, levels, survivals, strict=True))
    ]
    memory_bytes, memory_fraction = _memory(job, each, warnings)
    gained = split.goodput - operation.goodput.exact.goodput_fraction
    waste_usd = gained_usd = None
    if job.gpu_hour_usd is not None:
        hourly = cost.cluster_usd_per_hour(gpus=spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd)
        waste_usd, gained_usd = (
            cost.wasted_usd_per_year(lost_fraction=fraction, cluster_usd_per_hour=hourly)
            for fraction in (split.saving + split.lost_work + split.restarting, gained)
        )
    return Tiers(
        failure_mix=mix,
        each=each,
        memory_bytes_per_node=memory_bytes,
        memory_fraction=memory_fraction,
        shared_saves_per_failure=tiers.saves_per_failure(
            levels, period_seconds=period_seconds, mtbf_seconds=mtbf_seconds
        ),
        mean_restart_seconds=tiers.mean_restart_seconds(levels, mtbf_seconds=mtbf_seconds),
        goodput=ExactGoodput(
            goodput_fraction=split.goodput,
            saving_fraction=split.saving,
            lost_work_fraction=split.lost_work,
            restarting_fraction=split.restarting,
        ),
        first_order_waste_fraction=tiers.first_order_waste(
            levels, period_seconds=period_seconds, mtbf_seconds=mtbf_seconds
        ),
        gained_goodput_fraction=gained,
        waste_usd_per_year=waste_usd,
        gained_usd_per_year=gained_usd,
    )


def _failure_mix(job: Job, warnings: list[SizingWarning]) -> list[FailureShare]:
    given = job.spec.failure_mix
    if given is not None:
        return [
            FailureShare(kind=share.kind, nodes=share.struck_nodes, fraction=share.fraction)
            for share in given
        ]
    assumed = presets.failure_mixes()["llama-3-405b"]
    counted = assumed.process + assumed.node_loss
    warnings.append(
        SizingWarning(
            code=WarningCode.FAILURE_MIX_ASSUMED,
            pointer="#/tiers",
            message=f"{assumed.assumption} ({assumed.source}). Your cluster's failures may leave more or less: give "
            "failure_mix, and in it those of several nodes at once.",
        )
    )
    return [
        FailureShare(kind=FailureKind.PROCESS, fraction=assumed.process / counted),
        FailureShare(kind=FailureKind.NODE_LOSS, nodes=1, fraction=assumed.node_loss / counted),
    ]


def _timings(
    job: Job,
    given: Sequence[TierSpec],
    operation: Operation,
    restart_seconds: float,
    load_seconds: float | None,
    warnings: list[SizingWarning],
) -> list[_Timing]:
    interval_seconds, period_seconds = operation.interval.seconds, operation.period_seconds
    lag_seconds = operation.durable_lag_seconds
    if period_seconds > interval_seconds:
        lag_seconds = tiers.shared_lag(
            interval_seconds=interval_seconds,
            blocking_seconds=operation.blocking.seconds,
            staging_buffers=job.buffers,
        )
    following = _Timing(
        kind=TierKind.SHARED_STORAGE,
        interval_seconds=period_seconds,
        saves=1,
        blocking_seconds=tiers.shared_stall(
            blocking_seconds=operation.blocking.seconds,
            interval_seconds=interval_seconds,
            effective_seconds=period_seconds,
        ),
        durable_lag_seconds=lag_seconds,
        restore_seconds=load_seconds,
        restart_seconds=restart_seconds,
    )
    timings = [following]
    for at in reversed(range(len(given))):
        tier = given[at]
        saves = tiers.nested_saves(
            next_interval_seconds=following.interval_seconds,
            interval_seconds=tier.interval_seconds,
            next_saves=following.saves,
        )
        restore_seconds = _restore_seconds(job, tier)
        timing = _Timing(
            kind=tier.kind,
            interval_seconds=period_seconds / saves,
            saves=saves,
            blocking_seconds=tier.blocking_seconds,
            durable_lag_seconds=_lag_seconds(job, tier),
            restore_seconds=restore_seconds,
            restart_seconds=restart_seconds
            if load_seconds is None
            else restart_with_load(
                restart_seconds=restart_seconds,
                specified_load_seconds=load_seconds,
                load_seconds=restore_seconds,
            ),
        )
        _check_pace(at, tier, timing, following, warnings)
        if abs(timing.interval_seconds / tier.interval_seconds - 1.0) > FITTED_FRACTION:
            warnings.append(
                SizingWarning(
                    code=WarningCode.TIER_INTERVAL_FITTED,
                    pointer=f"#/tiers/{at}/interval_seconds",
                    message=f"{tier.kind} saves with every save of {following.kind}, so "
                    f"{tier.interval_seconds:.6g} s becomes {timing.interval_seconds:.6g} s: choose intervals that "
                    "go into each other.",
                )
            )
        timings.insert(0, timing)
        following = timing
    if load_seconds is None:
        warnings.append(
            SizingWarning(
                code=WarningCode.LOAD_NOT_SEPARATE,
                pointer="#/restart/seconds",
                message="How much of the restart is the load is not said, so every tier keeps the restart as given: "
                "give restore.target_seconds, or the restart in parts.",
            )
        )
    return timings


def _check_pace(
    at: int, tier: TierSpec, timing: _Timing, following: _Timing, warnings: list[SizingWarning]
) -> None:
    """Refuse a save that is not durable before the next; warn where the next tier is quicker than this one."""
    pointer = f"#/tiers/{at}/" + (
        "durable_lag_seconds" if tier.durable_lag_seconds is not None else "node_write_gb_per_second"
    )
    if timing.durable_lag_seconds > tier.interval_seconds:
        raise Unsatisfiable(
            Fault(
                pointer,
                "too_small",
                f"A node would take {timing.durable_lag_seconds:.6g} s for its copies, and the next save begins "
                f"after {tier.interval_seconds:g} s: write faster, or save less often.",
            )
        )
    there = following.blocking_seconds + following.durable_lag_seconds
    if timing.durable_lag_seconds > there * (1.0 + _ROUNDING):
        warnings.append(
            SizingWarning(
                code=WarningCode.TIER_SLOWER_THAN_NEXT,
                pointer=pointer,
                message=f"{tier.kind} holds a save {timing.durable_lag_seconds:.6g} s after its stall, and "
                f"{following.kind} the same save after {there:.6g} s. The figures have a failure fall back to the "
                "nearest tier that survives it, whose last save may for that long be the older one.",
            )
        )
    if timing.restart_seconds > following.restart_seconds * (1.0 + _ROUNDING):
        warnings.append(
            SizingWarning(
                code=WarningCode.TIER_SLOWER_THAN_NEXT,
                pointer=f"#/tiers/{at}",
                message=f"A restart from {tier.kind} takes {timing.restart_seconds:.6g} s, and one from "
                f"{following.kind} {following.restart_seconds:.6g} s. The figures have a failure fall back to the "
                "nearest tier that survives it all the same.",
            )
        )


def _refuse_no_useful_time(timings: Sequence[_Timing], period_seconds: float) -> None:
    shares = [timing.saves * timing.blocking_seconds / period_seconds for timing in timings]
    if sum(timing.saves * timing.blocking_seconds for timing in timings) < period_seconds:
        return
    worst = max(range(len(timings) - 1), key=shares.__getitem__)
    raise Unsatisfiable(
        Fault(
            f"#/tiers/{worst}/blocking_seconds",
            "no_useful_time",
            f"Together the saves stop training for {sum(shares):.4g} of the time, {shares[worst]:.4g} of it for "
            f"{timings[worst].kind} every {timings[worst].interval_seconds:.6g} s: block for less, or save less often.",
        )
    )


def _lag_seconds(job: Job, tier: TierSpec) -> float:
    if tier.node_write_gb_per_second is not None:
        return tiers.durable_lag(
            node_bytes=job.whole_share_bytes,
            copies=written_copies(tier),
            node_write_gb_per_second=tier.node_write_gb_per_second,
        )
    return tier.durable_lag_seconds or 0.0


def written_copies(tier: TierSpec) -> int:
    """Return the copies of its part that a node writes in one save: to peers all but its own."""
    return tier.copies - 1 if tier.kind is TierKind.PEER_MEMORY else tier.copies


def _restore_seconds(job: Job, tier: TierSpec) -> float:
    if tier.restore_seconds is not None:
        return tier.restore_seconds
    return bandwidth.transfer_time(
        total_bytes=job.saved.whole_bytes,
        total_gb_per_second=tier.read_gb_per_second,
        node_bytes=job.whole_share_bytes,
        node_gb_per_second=tier.node_read_gb_per_second,
    ).seconds


def _survivals(job: Job, tier: TierSpec, mix: Sequence[FailureShare]) -> list[float]:
    """Return for each kind of failure the probability that the tier survives it."""
    return [
        survival(tier.kind, share.kind, nodes=job.nodes, replicas=tier.copies, lost_nodes=share.nodes or 0)
        for share in mix
    ]


def survival(tier: TierKind, failure: FailureKind, *, nodes: int, replicas: int, lost_nodes: int) -> float:
    """Return the probability that a tier survives a failure.

    Shared storage survives all; a failure of processes leaves every tier; a reboot leaves the drives. The rest is a
    matter of copies on other nodes, of which host memory has none.
    """
    if tier is TierKind.SHARED_STORAGE or keeps_memory_or_drives(tier, failure):
        return 1.0
    return recovery.survival_fraction(nodes=nodes, replicas=replicas, lost_nodes=lost_nodes)


def keeps_memory_or_drives(tier: TierKind, failure: FailureKind) -> bool:
    """Return whether a failure leaves every node what a tier lies on."""
    return failure is FailureKind.PROCESS or (
        failure is FailureKind.NODE_REBOOT and tier is TierKind.NODE_LOCAL_NVME
    )


def _amounts(
    job: Job, tier: TierSpec, timing: _Timing, at: int, warnings: list[SizingWarning]
) -> dict[str, float]:
    """Return what a tier holds and moves, as far as its kind has it."""
    share_bytes = job.whole_share_bytes
    held = tiers.held_bytes(node_bytes=share_bytes, replicas=tier.copies, versions=tier.versions)
    if tier.kind is TierKind.HOST_MEMORY:
        return {"memory_bytes_per_node": round(held)}
    rate = tiers.node_write_rate(
        node_bytes=share_bytes,
        copies=written_copies(tier),
        durable_lag_seconds=timing.durable_lag_seconds,
    )
    figures: dict[str, float] = {"node_write_gb_per_second": rate}
    if tier.copies > 1:
        figures["peer_bytes_per_save"] = round(
            tiers.peer_bytes(checkpoint_bytes=job.saved.whole_bytes, replicas=tier.copies)
        )
        _warn_of_network(job, tier, rate, at, warnings)
    if tier.kind is TierKind.PEER_MEMORY:
        return figures | {"memory_bytes_per_node": round(held)}
    written = tiers.written_tb_per_day(
        node_bytes=share_bytes, replicas=tier.copies, interval_seconds=timing.interval_seconds
    )
    figures |= {"nvme_bytes_per_node": round(held), "node_written_tb_per_day": written}
    if tier.drives_per_node is not None and tier.drive_bytes is not None:
        figures |= _drive_figures(tier, tier.drives_per_node, tier.drive_bytes, held, written, at, warnings)
    return figures


def _warn_of_network(
    job: Job, tier: TierSpec, node_gb_per_second: float, at: int, warnings: list[SizingWarning]
) -> None:
    storage = job.spec.storage
    limit = storage.node_gb_per_second if storage is not None else None
    sent = node_gb_per_second * (tier.copies - 1) / written_copies(tier)
    if limit is not None and sent > limit * (1.0 + _ROUNDING):
        warnings.append(
            SizingWarning(
                code=WarningCode.TIER_EXCEEDS_NODE_NETWORK,
                pointer=f"#/tiers/{at}",
                message=f"A node would send {sent:.6g} GB/s to its peers, and its network moves {limit:.6g}: allow "
                "a longer durable lag, or keep fewer replicas.",
            )
        )


def _drive_figures(
    tier: TierSpec,
    drives: int,
    drive_bytes: int,
    held_bytes: float,
    written_tb_per_day: float,
    at: int,
    warnings: list[SizingWarning],
) -> dict[str, float]:
    space_fraction = held_bytes / (drives * drive_bytes)
    writes = tiers.drive_writes_per_day(
        written_tb_per_day=written_tb_per_day, drives_per_node=drives, drive_bytes=drive_bytes
    )
    figures = {"nvme_fraction": space_fraction, "drive_writes_per_day": writes}
    if space_fraction > 1.0:
        warnings.append(
            SizingWarning(
                code=WarningCode.TIER_EXCEEDS_DRIVES,
                pointer=f"#/tiers/{at}/drive_bytes",
                message=f"The copies take {held_bytes:.6g} bytes on a node whose drives hold "
                f"{drives * drive_bytes:.6g}: larger drives, or fewer versions or replicas.",
            )
        )
    if tier.rated_drive_writes_per_day is not None:
        figures["rated_writes_fraction"] = writes / tier.rated_drive_writes_per_day
        if writes > tier.rated_drive_writes_per_day:
            warnings.append(
                SizingWarning(
                    code=WarningCode.DRIVE_WRITES_EXCEED_RATING,
                    pointer=f"#/tiers/{at}/rated_drive_writes_per_day",
                    message=f"Each drive is written over {writes:.4g} times a day and rated for "
                    f"{tier.rated_drive_writes_per_day:g}: save less often, or spread over more or larger drives.",
                )
            )
    return figures


def _memory(job: Job, each: Sequence[Tier], warnings: list[SizingWarning]) -> tuple[int | None, float | None]:
    """Return the memory that the tiers and async staging take on a node, and its fraction of what there is."""
    held = [tier.memory_bytes_per_node for tier in each if tier.memory_bytes_per_node is not None]
    if not held:
        return None, None
    if job.is_async:
        held.append(round(job.staging_bytes_per_node))
    taken, memory = sum(held), job.spec.cluster.node_memory_bytes
    if memory is not None and taken > memory:
        warnings.append(
            SizingWarning(
                code=WarningCode.TIERS_EXCEED_HOST_MEMORY,
                pointer="#/tiers",
                message=f"The tiers in memory and the staging take {taken:.6g} bytes on a node that has "
                f"{memory:.6g}: fewer versions or replicas, or more nodes.",
            )
        )
    return taken, taken / memory if memory is not None else None
