"""How the figures of the tiers came about."""

from service.sizing import presets
from service.sizing.explain.lines import EXPONENTIAL, Facts, Lines
from service.sizing.sizing import Tier, Tiers
from service.sizing.spec.tiers import FailureKind, TierKind, TierSpec
from service.sizing.tiered import keeps_memory_or_drives, written_copies

TOGETHER = "Saves of a tier fall together with every save of the next one, and their stalls add up."
RANDOM_NODES = (
    "Any nodes are as likely to be lost together as any others, and the members of a group stand apart."
)
SAME_GROUPS = "Tiers with copies on other nodes place them in the same groups."
MADE_AGAIN = (
    "A copy that a failure destroyed, or that was on its way to a farther tier, is there again when the restart ends, "
    "unless it is newer than the restored one. " + EXPONENTIAL
)
EVEN_DRIVES = "Writes are spread evenly over the drives, the file system adds none, and nothing fails."


def explain_tiers(lines: Lines, job: Facts) -> None:
    """Explain the tiers of a scenario, each and together."""
    block, spec = job.sizing.tiers, job.spec
    if block is None or spec.tiers is None:
        return
    _explain_mix(lines, job, block)
    nearer = [0.0] * len(block.failure_mix)
    for at, tier in enumerate(block.each):
        given = spec.tiers[at] if at < len(spec.tiers) else None
        pointer = f"#/tiers/each/{at}"
        _explain_timing(lines, job, block, at, given)
        _explain_survival(lines, job, pointer, tier, given)
        _explain_fallback(lines, block, pointer, tier, nearer)
        nearer = [max(pair[0], pair[1].survival_fraction) for pair in zip(nearer, tier.survives, strict=True)]
        if given is not None:
            _explain_amounts(lines, job, pointer, tier, given)
    _explain_memory(lines, job, block)
    _explain_outcome(lines, job, block)


def _explain_mix(lines: Lines, job: Facts, block: Tiers) -> None:
    assumed = None if job.spec.failure_mix is not None else presets.failure_mixes()["llama-3-405b"]
    for at, share in enumerate(block.failure_mix):
        pointer = f"#/tiers/failure_mix/{at}"
        if share.nodes is not None:
            lines.add(
                f"{pointer}/nodes",
                "given",
                {"nodes": share.nodes},
                assumed.assumption if assumed is not None else None,
                assumed.source if assumed is not None else None,
            )
        if assumed is None:
            lines.add(f"{pointer}/fraction", "given", {"failure_fraction": share.fraction})
        else:
            counts = {
                "observed_failures": assumed.process
                if share.kind is FailureKind.PROCESS
                else assumed.node_loss,
                "all.observed_failures": assumed.process + assumed.node_loss,
            }
            lines.add(f"{pointer}/fraction", "ratio", counts, assumed.assumption, assumed.source)


def _explain_timing(lines: Lines, job: Facts, block: Tiers, at: int, given: TierSpec | None) -> None:
    tier, pointer = block.each[at], f"#/tiers/each/{at}"
    shared = block.each[-1]
    if given is None:
        _explain_shared_timing(lines, job, pointer, tier)
    else:
        following = block.each[at + 1]
        lines.add(
            f"{pointer}/interval_seconds",
            "ratio",
            {
                "shared_storage.interval_seconds": shared.interval_seconds,
                "saves_per_shared_save": tier.saves_per_shared_save,
            },
            TOGETHER,
        )
        lines.add(
            f"{pointer}/saves_per_shared_save",
            "nested_saves",
            {
                "next_interval_seconds": following.interval_seconds,
                "interval_seconds": given.interval_seconds,
                "next_saves": following.saves_per_shared_save,
            },
            TOGETHER,
        )
        lines.add(
            f"{pointer}/blocking_seconds",
            "given",
            {"blocking_seconds": given.blocking_seconds},
            TOGETHER,
        )
        _explain_lag(lines, job, pointer, given)
        _explain_restore(lines, job, pointer, tier, given)
    if tier.young_seconds is not None:
        lines.add(
            f"{pointer}/young_seconds",
            "tier_young_interval",
            {
                "blocking_seconds": tier.blocking_seconds,
                "mtbf_seconds": job.mtbf_seconds,
                "fallback_fraction": tier.fallback_fraction,
            },
            "Interval and restart are small beside the time between failures.",
        )


def _explain_shared_timing(lines: Lines, job: Facts, pointer: str, tier: Tier) -> None:
    interval, blocking_seconds = job.sizing.interval, job.sizing.blocking.seconds
    lines.add(f"{pointer}/interval_seconds", "same", {"interval.seconds": tier.interval_seconds})
    lines.add(f"{pointer}/saves_per_shared_save", "same", {"saves_per_shared_save": 1})
    if interval.effective_seconds is None:
        lines.add(f"{pointer}/blocking_seconds", "same", {"blocking.seconds": tier.blocking_seconds})
        lines.add(f"{pointer}/durable_lag_seconds", "same", {"durable_lag_seconds": tier.durable_lag_seconds})
    else:
        inputs = {"interval_seconds": interval.seconds, "blocking_seconds": blocking_seconds}
        lines.add(
            f"{pointer}/blocking_seconds",
            "shared_stall",
            {**inputs, "effective_seconds": interval.effective_seconds},
        )
        lines.add(f"{pointer}/durable_lag_seconds", "shared_lag", {**inputs, "staging_buffers": job.buffers})
    if tier.restore_seconds is not None:
        lines.add(f"{pointer}/restore_seconds", "same", {"restart.load_seconds": tier.restore_seconds})
    lines.add(f"{pointer}/restart_seconds", "same", {"restart.seconds": tier.restart_seconds})


def _explain_lag(lines: Lines, job: Facts, pointer: str, given: TierSpec) -> None:
    at = f"{pointer}/durable_lag_seconds"
    if given.node_write_gb_per_second is not None:
        lines.add(
            at,
            "copies_lag",
            {
                "node_bytes": job.whole_share_bytes,
                "copies": written_copies(given),
                "node_write_gb_per_second": given.node_write_gb_per_second,
            },
            job.even,
        )
    elif given.durable_lag_seconds is not None:
        lines.add(at, "given", {"durable_lag_seconds": given.durable_lag_seconds})
    else:
        lines.add(
            at, "same", {"durable_lag_seconds": 0.0}, "Host memory holds the copy when training goes on."
        )


def _explain_restore(lines: Lines, job: Facts, pointer: str, tier: Tier, given: TierSpec) -> None:
    restart = job.sizing.restart
    if given.restore_seconds is not None:
        lines.add(f"{pointer}/restore_seconds", "given", {"restore_seconds": given.restore_seconds})
    else:
        node = given.node_read_gb_per_second
        lines.add(
            f"{pointer}/restore_seconds",
            "transfer_time",
            {
                "total_bytes": job.saved.whole_bytes,
                "total_gb_per_second": given.read_gb_per_second,
                "node_bytes": job.whole_share_bytes,
                "node_gb_per_second": node,
            },
            job.even if node is not None else None,
        )
    if restart.load_seconds is not None:
        lines.add(
            f"{pointer}/restart_seconds",
            "restart_with_load",
            {
                "restart_seconds": restart.seconds,
                "specified_load_seconds": restart.load_seconds,
                "load_seconds": tier.restore_seconds,
            },
        )
    else:
        lines.add(
            f"{pointer}/restart_seconds",
            "same",
            {"restart.seconds": restart.seconds},
            "How much of the restart is the load is not known, so none of it is saved.",
        )


def _explain_survival(lines: Lines, job: Facts, pointer: str, tier: Tier, given: TierSpec | None) -> None:
    for at, outcome in enumerate(tier.survives):
        here = f"{pointer}/survives/{at}"
        if outcome.nodes is not None:
            lines.add(f"{here}/nodes", "same", {"nodes": outcome.nodes})
        if given is None or keeps_memory_or_drives(tier.kind, outcome.kind):
            lines.add(
                f"{here}/survival_fraction",
                "same",
                {"survival_fraction": outcome.survival_fraction},
                "Shared storage survives every failure of the cluster."
                if given is None
                else "The failure leaves what this tier lies on.",
            )
        else:
            lines.add(
                f"{here}/survival_fraction",
                "group_survival",
                {
                    "nodes": job.sizing.checkpoint.nodes,
                    "replicas": given.copies,
                    "lost_nodes": outcome.nodes,
                },
                RANDOM_NODES if given.copies > 1 else "The node's own copy is the only one.",
            )


def _explain_fallback(lines: Lines, block: Tiers, pointer: str, tier: Tier, nearer: list[float]) -> None:
    inputs = {}
    for share, outcome, before in zip(block.failure_mix, tier.survives, nearer, strict=True):
        name = share.kind if share.nodes is None else f"{share.kind}_{share.nodes}"
        inputs[f"{name}.failure_fraction"] = share.fraction
        inputs[f"{name}.survival_fraction"] = outcome.survival_fraction
        inputs[f"{name}.nearer_survival_fraction"] = before
    lines.add(f"{pointer}/fallback_fraction", "fallback_fraction", inputs, SAME_GROUPS)


def _explain_amounts(lines: Lines, job: Facts, pointer: str, tier: Tier, given: TierSpec) -> None:
    node = {"node_bytes": job.whole_share_bytes}
    held = {**node, "replicas": given.copies, "versions": given.versions}
    for name in ("memory_bytes_per_node", "nvme_bytes_per_node"):
        if getattr(tier, name) is not None:
            lines.add(f"{pointer}/{name}", "held_bytes", held, job.even)
    if tier.nvme_fraction is not None:
        drives = {"drives_per_node": given.drives_per_node, "drive_bytes": given.drive_bytes}
        lines.add(f"{pointer}/nvme_fraction", "drive_space_fraction", {**held, **drives}, job.even)
        lines.add(
            f"{pointer}/drive_writes_per_day",
            "drive_writes_per_day",
            {"written_tb_per_day": tier.node_written_tb_per_day, **drives},
            EVEN_DRIVES,
        )
    if tier.rated_writes_fraction is not None:
        lines.add(
            f"{pointer}/rated_writes_fraction",
            "ratio",
            {
                "drive_writes_per_day": tier.drive_writes_per_day,
                "rated_drive_writes_per_day": given.rated_drive_writes_per_day,
            },
        )
    if tier.peer_bytes_per_save is not None:
        lines.add(
            f"{pointer}/peer_bytes_per_save",
            "peer_bytes",
            {"checkpoint_bytes": job.saved.whole_bytes, "replicas": given.copies},
        )
    if tier.node_write_gb_per_second is not None:
        lines.add(
            f"{pointer}/node_write_gb_per_second",
            "node_write_rate",
            {**node, "copies": written_copies(given), "durable_lag_seconds": tier.durable_lag_seconds},
            job.even,
        )
    if tier.node_written_tb_per_day is not None:
        lines.add(
            f"{pointer}/node_written_tb_per_day",
            "written_tb_per_day",
            {**node, "replicas": given.copies, "interval_seconds": tier.interval_seconds},
            EVEN_DRIVES,
        )


def _explain_memory(lines: Lines, job: Facts, block: Tiers) -> None:
    if block.memory_bytes_per_node is None:
        return
    parts: dict[str, float | None] = {
        f"{tier.kind}.bytes_per_node": tier.memory_bytes_per_node
        for tier in block.each
        if tier.kind in (TierKind.HOST_MEMORY, TierKind.PEER_MEMORY)
    }
    if job.sizing.host_memory is not None:
        parts["staging.bytes_per_node"] = job.sizing.host_memory.bytes_per_node
    lines.add("#/tiers/memory_bytes_per_node", "sum", parts, "The tiers and the staging share no copy.")
    if block.memory_fraction is not None:
        memory, source = job.spec.cluster.host_memory_bytes_per_node, None
        if memory is None:
            preset = presets.gpus()[str(job.spec.cluster.gpu_preset)]
            memory, source = preset.host_memory_bytes_per_node, preset.source
        lines.add(
            "#/tiers/memory_fraction",
            "ratio",
            {"bytes_per_node": block.memory_bytes_per_node, "host_memory_bytes_per_node": memory},
            f"The nodes have {memory} bytes, as in the preset." if source else None,
            source,
        )


def _explain_outcome(lines: Lines, job: Facts, block: Tiers) -> None:
    at, mtbf = "#/tiers", {"mtbf_seconds": job.mtbf_seconds}
    period = {"period_seconds": block.each[-1].interval_seconds}

    def levels(*fields: str) -> dict[str, float]:
        return {f"{tier.kind}.{field}": getattr(tier, field) for tier in block.each for field in fields}

    stalls = levels("saves_per_shared_save", "blocking_seconds")
    everything = levels(
        "saves_per_shared_save",
        "blocking_seconds",
        "durable_lag_seconds",
        "fallback_fraction",
        "restart_seconds",
    )
    lines.add(
        f"{at}/shared_saves_per_failure",
        "shared_saves_per_failure",
        {**period, **mtbf, **everything},
        MADE_AGAIN,
    )
    lines.add(
        f"{at}/mean_restart_seconds",
        "restart_per_failure",
        {**mtbf, **levels("fallback_fraction", "restart_seconds")},
        EXPONENTIAL,
    )
    saves = {"shared_saves_per_failure": block.shared_saves_per_failure}
    restart = {**mtbf, "mean_restart_seconds": block.mean_restart_seconds}
    lines.add(
        f"{at}/goodput/goodput_fraction",
        "tiered_goodput",
        {**saves, **period, **restart, **stalls},
        MADE_AGAIN,
    )
    lines.add(f"{at}/goodput/saving_fraction", "tiered_saving", {**saves, **restart, **stalls}, MADE_AGAIN)
    lines.add(
        f"{at}/goodput/lost_work_fraction", "tiered_lost_work", {**saves, **period, **restart}, MADE_AGAIN
    )
    lines.add(f"{at}/goodput/restarting_fraction", "tiered_restarting", restart, EXPONENTIAL)
    lines.add(
        f"{at}/first_order_waste_fraction",
        "tiered_first_order",
        {**period, **mtbf, **everything},
        "Intervals, lags and restarts are small beside the time between failures.",
    )
    exact = job.sizing.goodput.exact
    lines.add(
        f"{at}/gained_goodput_fraction",
        "difference",
        {
            "tiers.goodput_fraction": block.goodput.goodput_fraction,
            "exact.goodput_fraction": exact.goodput_fraction,
        },
    )
    if block.waste_usd_per_year is None or job.sizing.cost is None:
        return
    hourly = {"cluster_usd_per_hour": job.sizing.cost.cluster_usd_per_hour}
    wasted = (
        block.goodput.saving_fraction + block.goodput.lost_work_fraction + block.goodput.restarting_fraction
    )
    for name, fraction in (("waste", wasted), ("gained", block.gained_goodput_fraction)):
        lines.add(
            f"{at}/{name}_usd_per_year",
            "wasted_usd_per_year",
            {"lost_fraction": fraction, **hourly},
            EXPONENTIAL,
        )
