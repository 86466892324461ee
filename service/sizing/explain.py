"""How each figure of a sizing came about: its formula, inputs, assumption and source, figure by figure.

Nothing is computed here. A line names a formula of the register and the numbers that go into it, and a test
evaluates every line and holds it against the figure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from service.sizing import presets
from service.sizing.checkpoint import largest_node_share
from service.sizing.formulas import REGISTER
from service.sizing.sizing import (
    Cost,
    Explanation,
    ExplanationInput,
    Goodput,
    Interval,
    Sizing,
    TargetId,
)
from service.sizing.spec import DEFAULT_HEADROOM, IntervalRule, SaveMode, ScenarioSpec
from service.units import unit_of

EVEN = "All shards are equal: neither skew nor largest_shard_bytes was given."
RATE_SCALES = "Failures grow with the GPU count, and strike at a constant rate."
LAST_NODE_FULL = "Every node holds the same share."
EXPONENTIAL = "Failures come at a constant rate, also during a restart."
CREATES_OVERLAP = "Files are created while data is written, not before."


class _Job(NamedTuple):
    """Numbers that many lines use."""

    spec: ScenarioSpec
    sizing: Sizing
    skew: float
    even: str | None
    node_share_bytes: float
    headroom: float
    buffers: int
    is_async: bool
    mtbf_seconds: float


class _Lines(list[Explanation]):
    """The explanation as it grows."""

    def add(
        self,
        pointer: str,
        formula: str,
        inputs: Mapping[str, float | None],
        assumption: str | None = None,
        source: str | None = None,
    ) -> None:
        entry = REGISTER[formula]
        self.append(
            Explanation(
                pointer=pointer,
                formula=formula,
                expression=entry.expression,
                inputs=[
                    ExplanationInput(name=name, value=value, unit=unit_of(name))
                    for name, value in inputs.items()
                    if value is not None
                ],
                assumption=assumption,
                source=source or entry.source,
            )
        )


def explain(spec: ScenarioSpec, sizing: Sizing) -> list[Explanation]:
    """Return a line for every number in the sizing of the spec, in the order of the answer."""
    lines = _Lines()
    total, nodes, writers = sizing.checkpoint.bytes, sizing.checkpoint.nodes, sizing.checkpoint.writers
    shards = spec.shards
    skew = shards.skew or 1.0
    if shards.largest_shard_bytes is not None:
        skew = shards.largest_shard_bytes / (total / writers)
    job = _Job(
        spec=spec,
        sizing=sizing,
        skew=skew,
        even=EVEN if shards.skew is None and shards.largest_shard_bytes is None else None,
        node_share_bytes=largest_node_share(checkpoint_bytes=total, nodes=nodes, writers=writers, skew=skew),
        headroom=spec.save.headroom or DEFAULT_HEADROOM,
        buffers=spec.save.staging_buffers or 1,
        is_async=spec.save.mode is SaveMode.ASYNC,
        mtbf_seconds=sizing.failures.mtbf_seconds,
    )
    _checkpoint(lines, job)
    _failures(lines, job)
    _interval(lines, job, "#", sizing.interval, sizing.blocking.seconds, sizing.write.durable_lag_seconds)
    _blocking(lines, job)
    _restart(lines, job)
    _write(lines, job)
    window = sizing.write.durable_lag_seconds if job.is_async else sizing.blocking.seconds
    if spec.restore is not None and sizing.read is not None:
        lines.add(
            "#/read/bytes",
            "read_bytes",
            {"checkpoint_bytes": total, "read_amplification": spec.restore.read_amplification},
        )
        lines.add(
            "#/read/required_gb_per_second",
            "read_bandwidth",
            {
                "read_bytes": total * spec.restore.read_amplification,
                "target_seconds": spec.restore.target_seconds,
            },
        )
        lines.add(
            "#/read/per_node_gb_per_second",
            "share",
            {"total_gb_per_second": sizing.read.required_gb_per_second, "holders": nodes},
            LAST_NODE_FULL,
        )
    files = {"files": sizing.checkpoint.files}
    lines.add("#/metadata/creates_per_save", "same", files)
    lines.add("#/metadata/creates_per_second", "create_rate", {**files, "window_seconds": window})
    lines.add(
        "#/metadata/deletes_per_interval",
        "same",
        files,
        "Retention is full: each save replaces an older one.",
    )
    _host_memory(lines, job)
    _capacity(lines, job)
    _goodput(
        lines,
        job,
        "#",
        sizing.goodput,
        sizing.interval,
        sizing.blocking.seconds,
        sizing.restart.seconds,
        sizing.write.durable_lag_seconds or 0.0,
    )
    if sizing.cost is not None:
        _cost(lines, job, "#", sizing.cost, sizing.goodput, sizing.interval, sizing.blocking.seconds)
    _targets(lines, job)
    _delivered(lines, job)
    return lines


def _checkpoint(lines: _Lines, job: _Job) -> None:
    spec, block = job.spec, job.sizing.checkpoint
    source = presets.models()[spec.model.preset].source if spec.model.preset is not None else None
    total = {"checkpoint_bytes": block.bytes}
    lines.add(
        "#/checkpoint/bytes",
        "checkpoint_bytes",
        {
            "parameters": spec.parameters,
            "bytes_per_parameter": spec.model.bytes_per_parameter,
            "reduction_factor": spec.model.reduction_factor,
            "extra_bytes": spec.model.extra_bytes,
        },
        f"A checkpoint holds {spec.model.bytes_per_parameter:g} bytes per parameter; measure yours."
        + (f" Parameters: {source}." if source else ""),
    )
    lines.add(
        "#/checkpoint/bytes_per_gpu", "even_share", {**total, "holders": spec.cluster.gpus}, "An even split."
    )
    lines.add("#/checkpoint/bytes_per_node", "even_share", {**total, "holders": block.nodes}, LAST_NODE_FULL)
    if spec.shards.largest_shard_bytes is not None:
        lines.add(
            "#/checkpoint/largest_shard_bytes",
            "given",
            {"shards.largest_shard_bytes": spec.shards.largest_shard_bytes},
        )
    else:
        lines.add(
            "#/checkpoint/largest_shard_bytes",
            "largest_shard",
            {**total, "writers": block.writers, "skew": job.skew},
            job.even,
        )
    lines.add(
        "#/checkpoint/nodes",
        "node_count",
        {"gpus": spec.cluster.gpus, "gpus_per_node": spec.cluster.gpus_per_node},
    )
    if spec.shards.writers is not None:
        lines.add("#/checkpoint/writers", "given", {"shards.writers": spec.shards.writers})
    else:
        lines.add("#/checkpoint/writers", "same", {"gpus": spec.cluster.gpus}, "Every GPU's rank writes.")
    lines.add(
        "#/checkpoint/files",
        "file_count",
        {"writers": block.writers, "files_per_writer": spec.shards.files_per_writer},
    )


def _failures(lines: _Lines, job: _Job) -> None:
    given, block, gpus = job.spec.failures, job.sizing.failures, job.spec.cluster.gpus
    record = presets.failure_records()[given.preset] if given.preset is not None else given
    source = presets.failure_records()[given.preset].source if given.preset is not None else None
    if record.observed_failures is not None:
        lines.add(
            "#/failures/mtbf_seconds",
            "observed_mtbf",
            {
                "observed_hours": record.observed_hours,
                "observed_failures": record.observed_failures,
                "observed_gpus": record.observed_gpus,
                "gpus": gpus,
            },
            RATE_SCALES,
            source,
        )
        inputs = {
            "mtbf_seconds": block.mtbf_seconds,
            "observed_failures": record.observed_failures,
            "confidence_fraction": block.confidence_fraction,
        }
        counted = "Failures are independent of each other."
        lines.add("#/failures/mtbf_low_seconds", "mtbf_low", inputs, counted)
        lines.add("#/failures/mtbf_high_seconds", "mtbf_high", inputs, counted)
        lines.add(
            "#/failures/confidence_fraction",
            "given",
            {"confidence_fraction": block.confidence_fraction},
            source="The customary two-sided 95 %",
        )
    else:
        lines.add(
            "#/failures/mtbf_seconds",
            "scaled_mtbf",
            {"mtbf_hours": record.mtbf_hours, "mtbf_gpus": record.mtbf_gpus or gpus, "gpus": gpus},
            RATE_SCALES,
            source,
        )
    lines.add("#/failures/failures_per_day", "failures_per_day", {"mtbf_seconds": block.mtbf_seconds})


def _interval(
    lines: _Lines,
    job: _Job,
    at: str,
    block: Interval,
    blocking_seconds: float,
    durable_lag_seconds: float | None,
    *,
    stall_is_delivered: bool = False,
) -> None:
    """Explain an interval block: of the sizing, or of what is delivered."""
    save = job.spec.save
    inputs = {"blocking_seconds": blocking_seconds, "mtbf_seconds": job.mtbf_seconds}
    if block.rule is IntervalRule.FIXED:
        lines.add(f"{at}/interval/seconds", "given", {"interval.seconds": job.spec.interval.seconds})
    elif save.overhead_fraction is not None and not stall_is_delivered:
        lines.add(
            f"{at}/interval/seconds",
            f"{block.rule}_interval_at_overhead",
            {"overhead_fraction": save.overhead_fraction, "mtbf_seconds": job.mtbf_seconds},
        )
    else:
        lines.add(f"{at}/interval/seconds", f"{block.rule}_interval", inputs)
    for rule in (IntervalRule.YOUNG, IntervalRule.DALY, IntervalRule.EXACT):
        lines.add(
            f"{at}/interval/{rule}_seconds",
            f"{rule}_interval",
            inputs,
            EXPONENTIAL if rule is IntervalRule.EXACT else None,
        )
    if block.effective_seconds is not None:
        lines.add(
            f"{at}/interval/effective_seconds",
            "effective_interval",
            {
                "interval_seconds": block.seconds,
                "blocking_seconds": blocking_seconds,
                "durable_lag_seconds": durable_lag_seconds,
                "staging_buffers": job.buffers,
            },
        )


def _blocking(lines: _Lines, job: _Job) -> None:
    save, sizing = job.spec.save, job.sizing
    if save.blocking_seconds is not None:
        lines.add("#/blocking/seconds", "given", {"save.blocking_seconds": save.blocking_seconds})
    elif save.overhead_fraction is not None:
        lines.add(
            "#/blocking/seconds",
            "stall",
            {"overhead_fraction": save.overhead_fraction, "interval_seconds": sizing.interval.seconds},
        )
    else:
        _transfer(lines, job, "#/blocking/seconds", reading=False)
    lines.add(
        "#/blocking/overhead_fraction",
        "ratio",
        {"blocking.seconds": sizing.blocking.seconds, "interval.seconds": sizing.interval.seconds},
    )


def _restart(lines: _Lines, job: _Job) -> None:
    restart, block = job.spec.restart, job.sizing.restart
    target = job.spec.restore.target_seconds if job.spec.restore is not None else None
    if restart.seconds is not None:
        lines.add("#/restart/seconds", "given", {"restart.seconds": restart.seconds})
    else:
        lines.add(
            "#/restart/seconds",
            "sum",
            {
                "detect_seconds": restart.detect_seconds,
                "reschedule_seconds": restart.reschedule_seconds,
                "initialise_seconds": restart.initialise_seconds,
                "load_seconds": block.load_seconds,
                "warm_up_seconds": restart.warm_up_seconds,
            },
        )
    if block.load_seconds is not None:
        if restart.load_seconds is not None:
            lines.add("#/restart/load_seconds", "given", {"restart.load_seconds": restart.load_seconds})
        else:
            lines.add(
                "#/restart/load_seconds",
                "same",
                {"restore.target_seconds": target},
                "The load takes as long as its target allows.",
            )


def _write(lines: _Lines, job: _Job) -> None:
    spec, block, sizing = job.spec, job.sizing.write, job.sizing
    total = {"checkpoint_bytes": sizing.checkpoint.bytes}
    stalled = {**total, "blocking_seconds": sizing.blocking.seconds}
    periodic = {**total, "interval_seconds": sizing.interval.seconds}
    window = sizing.blocking.seconds
    if job.is_async:
        window = block.durable_lag_seconds or window
        lag = spec.save.durable_lag_seconds
        headroom = (
            f"Headroom of {DEFAULT_HEADROOM:g}, between the articles' 2 and 3."
            if spec.save.headroom is None
            else None
        )
        lines.add(
            "#/write/required_gb_per_second",
            "persist_bandwidth" if lag is None else "persist_bandwidth_for_lag",
            {**periodic, "headroom": job.headroom, "durable_lag_seconds": lag},
            headroom,
        )
        lines.add("#/write/minimum_gb_per_second", "minimum_persist_bandwidth", periodic)
        lines.add(
            "#/write/strict_minimum_gb_per_second",
            "strict_persist_bandwidth",
            {**periodic, "blocking_seconds": sizing.blocking.seconds, "staging_buffers": job.buffers},
        )
        if lag is not None:
            lines.add("#/write/durable_lag_seconds", "given", {"save.durable_lag_seconds": lag})
        else:
            lines.add(
                "#/write/durable_lag_seconds",
                "durable_lag",
                {"interval_seconds": sizing.interval.seconds, "headroom": job.headroom},
                "The save drains at the required bandwidth.",
            )
    else:
        lines.add("#/write/required_gb_per_second", "sync_write_bandwidth", stalled)
        lines.add("#/write/minimum_gb_per_second", "sync_write_bandwidth", stalled)
    required = {"total_gb_per_second": block.required_gb_per_second}
    lines.add(
        "#/write/per_node_gb_per_second",
        "share",
        {**required, "holders": sizing.checkpoint.nodes},
        LAST_NODE_FULL,
    )
    lines.add(
        "#/write/per_writer_gb_per_second",
        "share",
        {**required, "holders": sizing.checkpoint.writers},
        "An even split.",
    )
    lines.add(
        "#/write/largest_shard_gb_per_second",
        "shard_bandwidth",
        {
            "largest_shard_bytes": total["checkpoint_bytes"] / sizing.checkpoint.writers * job.skew,
            "window_seconds": window,
        },
        job.even,
    )


def _host_memory(lines: _Lines, job: _Job) -> None:
    block, cluster = job.sizing.host_memory, job.spec.cluster
    if block is None:
        return
    lines.add(
        "#/host_memory/bytes_per_node",
        "staging_bytes",
        {
            "checkpoint_bytes": job.sizing.checkpoint.bytes,
            "nodes": job.sizing.checkpoint.nodes,
            "writers": job.sizing.checkpoint.writers,
            "skew": job.skew,
            "staging_buffers": block.staging_buffers,
        },
        job.even or "An upper bound: every rank of the node holds the largest shard.",
    )
    if job.spec.save.staging_buffers is not None:
        lines.add("#/host_memory/staging_buffers", "given", {"save.staging_buffers": block.staging_buffers})
    else:
        lines.add(
            "#/host_memory/staging_buffers", "given", {"staging_buffers": 1}, "One buffer, the default."
        )
    if block.memory_fraction is not None:
        memory, source = cluster.host_memory_bytes_per_node, None
        if memory is None:
            preset = presets.gpus()[str(cluster.gpu_preset)]
            memory, source = preset.host_memory_bytes_per_node, preset.source
        lines.add(
            "#/host_memory/memory_fraction",
            "ratio",
            {
                "staging_bytes": job.node_share_bytes * block.staging_buffers,
                "host_memory_bytes_per_node": memory,
            },
            f"The nodes have {memory} bytes, as in the preset." if source else None,
            source,
        )


def _capacity(lines: _Lines, job: _Job) -> None:
    block, kept = job.sizing.capacity, job.spec.retention
    if block is None or kept is None:
        return
    for tier, copies, protection in (
        ("hot", kept.hot_copies, kept.hot_protection_fraction),
        ("cold", kept.cold_copies, kept.cold_protection_fraction),
    ):
        if getattr(block, f"{tier}_bytes") is not None:
            inputs = {
                "checkpoint_bytes": job.sizing.checkpoint.bytes,
                "copies": copies,
                "protection_fraction": protection,
            }
            lines.add(f"#/capacity/{tier}_bytes", "kept_bytes", inputs)
            lines.add(f"#/capacity/{tier}_peak_bytes", "peak_bytes", inputs)


def _goodput(
    lines: _Lines,
    job: _Job,
    at: str,
    block: Goodput,
    interval: Interval,
    blocking_seconds: float,
    restart_seconds: float,
    durable_lag_seconds: float,
) -> None:
    """Explain a goodput block: of the sizing, or of what is delivered."""
    mtbf = {"mtbf_seconds": job.mtbf_seconds}
    restart = {"restart_seconds": restart_seconds, **mtbf}
    exact = f"{at}/goodput/exact"
    inputs = {"interval_seconds": interval.seconds, "blocking_seconds": blocking_seconds, **restart}
    if interval.effective_seconds is not None:
        inputs |= {
            "effective_interval_seconds": interval.effective_seconds,
            "staging_buffers": job.buffers,
        }
        prefix = "colliding"
    else:
        inputs["durable_lag_seconds"] = durable_lag_seconds
        prefix = "exact"
    lines.add(f"{exact}/goodput_fraction", f"{prefix}_goodput", inputs, EXPONENTIAL)
    lines.add(f"{exact}/saving_fraction", f"{prefix}_saving", inputs, EXPONENTIAL)
    lines.add(
        f"{exact}/lost_work_fraction",
        f"{prefix}_lost_work",
        inputs,
        EXPONENTIAL,
    )
    lines.add(f"{exact}/restarting_fraction", "exact_restarting", restart, EXPONENTIAL)
    first = f"{at}/goodput/first_order"
    small = "Interval and restart are small beside the time between failures."
    lines.add(
        f"{first}/waste_fraction",
        "sum",
        {
            "saving_fraction": block.first_order.saving_fraction,
            "lost_work_fraction": block.first_order.lost_work_fraction,
            "restarting_fraction": block.first_order.restarting_fraction,
        },
        small,
    )
    lines.add(
        f"{first}/saving_fraction",
        "ratio",
        {"blocking.seconds": blocking_seconds, "interval.seconds": interval.seconds},
        small,
    )
    lines.add(
        f"{first}/lost_work_fraction",
        "first_order_lost_work",
        {"interval_seconds": interval.seconds, **mtbf},
        "A failure strikes in the middle of an interval, on average.",
    )
    lines.add(
        f"{first}/restarting_fraction",
        "ratio",
        {"restart.seconds": restart_seconds, "mtbf_seconds": job.mtbf_seconds},
        small,
    )


def _cost(
    lines: _Lines,
    job: _Job,
    at: str,
    block: Cost,
    goodput: Goodput,
    interval: Interval,
    blocking_seconds: float,
) -> None:
    """Explain a cost block: of the sizing, or of what is delivered."""
    prices, cluster, space = job.spec.prices, job.spec.cluster, job.sizing.capacity
    if block.cluster_usd_per_hour is not None:
        price = prices.gpu_hour_usd if prices is not None else None
        source = None
        if price is None:
            preset = presets.gpus()[str(cluster.gpu_preset)]
            price, source = preset.gpu_hour_usd, preset.source
        hourly = {"cluster_usd_per_hour": block.cluster_usd_per_hour}
        lines.add(
            f"{at}/cost/cluster_usd_per_hour",
            "cluster_usd_per_hour",
            {"gpus": cluster.gpus, "gpu_hour_usd": price},
            "The price of the GPU preset." if source else None,
            source,
        )
        stalled = {**hourly, "blocking_seconds": blocking_seconds, "interval_seconds": interval.seconds}
        if interval.effective_seconds is not None:
            stalled["effective_seconds"] = interval.effective_seconds
        lines.add(
            f"{at}/cost/stall_usd_per_day",
            "stall_usd_per_day" if interval.effective_seconds is None else "colliding_stall_usd_per_day",
            stalled,
            "Nothing fails.",
        )
        lines.add(
            f"{at}/cost/stall_usd_per_year", "usd_per_year_from_day", {"usd_per_day": block.stall_usd_per_day}
        )
        parts = ("saving", "lost_work", "restarting")
        fractions = {part: getattr(goodput.exact, f"{part}_fraction") for part in parts}
        for name, fraction in {"waste": sum(fractions.values()), **fractions}.items():
            lines.add(
                f"{at}/cost/{name}_usd_per_year",
                "wasted_usd_per_year",
                {"lost_fraction": fraction, **hourly},
                EXPONENTIAL,
            )
    if prices is not None and space is not None:
        for tier in ("hot", "cold"):
            if getattr(block, f"{tier}_usd_per_month") is not None:
                lines.add(
                    f"{at}/cost/{tier}_usd_per_month",
                    "space_usd_per_month",
                    {
                        "space_bytes": getattr(space, f"{tier}_peak_bytes"),
                        "usd_per_tb_month": getattr(prices, f"{tier}_usd_per_tb_month"),
                    },
                    "The space of the copy in flight is paid for as well.",
                )


def _targets(lines: _Lines, job: _Job) -> None:
    sizing = job.sizing
    window = (
        ("write.durable_lag_seconds", sizing.write.durable_lag_seconds)
        if job.is_async
        else ("blocking.seconds", sizing.blocking.seconds)
    )
    required = ("write.required_gb_per_second", sizing.write.required_gb_per_second)
    target = (
        "restore.target_seconds",
        job.spec.restore.target_seconds if job.spec.restore is not None else None,
    )
    read, read_per_node = (
        (
            ("read.required_gb_per_second", sizing.read.required_gb_per_second),
            ("read.per_node_gb_per_second", sizing.read.per_node_gb_per_second),
        )
        if sizing.read is not None
        else (target, target)
    )
    figures = {
        TargetId.WRITE_BANDWIDTH: required,
        TargetId.NODE_WRITE_BANDWIDTH: ("write.per_node_gb_per_second", sizing.write.per_node_gb_per_second),
        TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD: required,
        TargetId.SLOWEST_WRITER_SECONDS: window,
        TargetId.BLOCKING_SECONDS: ("blocking.seconds", sizing.blocking.seconds),
        TargetId.PERSIST_SECONDS: window,
        TargetId.READ_BANDWIDTH: read,
        TargetId.NODE_READ_BANDWIDTH: read_per_node,
        TargetId.LOAD_SECONDS: target,
        TargetId.RESHARDED_LOAD_SECONDS: target,
        TargetId.FILE_CREATE_RATE: ("metadata.creates_per_second", sizing.metadata.creates_per_second),
        TargetId.CHECKPOINT_BYTES: ("checkpoint.bytes", sizing.checkpoint.bytes),
    }
    for at, listed in enumerate(sizing.targets):
        lines.add(f"#/targets/{at}/value", "same", dict([figures[listed.id]]))
        if listed.tolerance_fraction is not None:
            lines.add(
                f"#/targets/{at}/tolerance_fraction",
                "given",
                {"tolerance_fraction": listed.tolerance_fraction},
                source="How far a measured checkpoint may be from the assumed one before every figure moves",
            )


def _transfer(lines: _Lines, job: _Job, pointer: str, *, reading: bool) -> None:
    """Explain a transfer's time on the given storage system."""
    storage, block = job.spec.storage, job.sizing.checkpoint
    if storage is None:
        return
    amplification = job.spec.restore.read_amplification if reading and job.spec.restore is not None else 1.0
    creates = storage.file_creates_per_second if not reading else None
    lines.add(
        pointer,
        "transfer_time",
        {
            "total_bytes": block.bytes * amplification,
            "total_gb_per_second": storage.read_gb_per_second if reading else storage.write_gb_per_second,
            "node_bytes": job.node_share_bytes * amplification,
            "node_gb_per_second": storage.node_gb_per_second,
            "files": block.files if creates is not None else None,
            "file_creates_per_second": creates,
        },
        "The system holds its stated figures." if reading else CREATES_OVERLAP,
    )


def _delivered(lines: _Lines, job: _Job) -> None:
    block, spec, sizing = job.sizing.delivered, job.spec, job.sizing
    if block is None or spec.storage is None:
        return
    at = "#/delivered"
    total = {"checkpoint_bytes": sizing.checkpoint.bytes}
    blocking_seconds, lag_seconds = sizing.blocking.seconds, sizing.write.durable_lag_seconds
    interval_seconds = sizing.interval.seconds
    if block.write is not None:
        lag_seconds = block.write.durable_lag_seconds
        if not job.is_async:
            blocking_seconds = block.write.seconds
    if block.next_interval_seconds is not None:
        lines.add(
            f"{at}/next_interval_seconds",
            "exact_interval",
            {"blocking_seconds": blocking_seconds, "mtbf_seconds": job.mtbf_seconds},
            EXPONENTIAL,
        )
    if block.interval is not None and block.blocking is not None:
        interval_seconds = block.interval.seconds
        stall_is_delivered = block.write is not None and not job.is_async
        _interval(
            lines,
            job,
            at,
            block.interval,
            blocking_seconds,
            lag_seconds,
            stall_is_delivered=stall_is_delivered,
        )
        if stall_is_delivered:
            _transfer(lines, job, f"{at}/blocking/seconds", reading=False)
        else:
            lines.add(f"{at}/blocking/seconds", "same", {"blocking.seconds": blocking_seconds})
        lines.add(
            f"{at}/blocking/overhead_fraction",
            "ratio",
            {"blocking.seconds": blocking_seconds, "interval.seconds": interval_seconds},
        )
    if block.restart is not None:
        if block.read is not None and sizing.restart.load_seconds is not None:
            lines.add(
                f"{at}/restart/seconds",
                "restart_with_load",
                {
                    "restart_seconds": sizing.restart.seconds,
                    "specified_load_seconds": sizing.restart.load_seconds,
                    "load_seconds": block.read.seconds,
                },
            )
        else:
            lines.add(f"{at}/restart/seconds", "same", {"restart.seconds": sizing.restart.seconds})
        if block.restart.load_seconds is not None:
            lines.add(f"{at}/restart/load_seconds", "same", {"load_seconds": block.restart.load_seconds})
    if block.write is not None:
        seconds = block.write.seconds
        _transfer(lines, job, f"{at}/write/seconds", reading=False)
        lines.add(f"{at}/write/gb_per_second", "sync_write_bandwidth", {**total, "blocking_seconds": seconds})
        if block.write.durable_lag_seconds is not None:
            lines.add(f"{at}/write/durable_lag_seconds", "same", {"write.seconds": seconds})
        lines.add(
            f"{at}/write/creates_per_second",
            "create_rate",
            {"files": sizing.checkpoint.files, "window_seconds": seconds},
        )
    if block.read is not None:
        amplification = spec.restore.read_amplification if spec.restore is not None else 1.0
        _transfer(lines, job, f"{at}/read/seconds", reading=True)
        lines.add(
            f"{at}/read/gb_per_second",
            "read_bandwidth",
            {"read_bytes": sizing.checkpoint.bytes * amplification, "target_seconds": block.read.seconds},
        )
    if block.capacity is not None and spec.storage.usable_tb is not None:
        usable = {"usable_bytes": block.capacity.usable_bytes, **total}
        lines.add(f"{at}/capacity/usable_bytes", "tb_to_bytes", {"usable_tb": spec.storage.usable_tb})
        lines.add(f"{at}/capacity/copies_that_fit", "copies_that_fit", usable)
        if spec.retention is not None:
            lines.add(
                f"{at}/capacity/hot_peak_fraction",
                "peak_fraction",
                {**usable, "copies": spec.retention.hot_copies},
            )
        lines.add(
            f"{at}/capacity/full_after_seconds",
            "seconds_until_full",
            {**usable, "interval_seconds": interval_seconds},
        )
    if block.goodput is not None and block.interval is not None and block.restart is not None:
        _goodput(
            lines,
            job,
            at,
            block.goodput,
            block.interval,
            blocking_seconds,
            block.restart.seconds,
            lag_seconds or 0.0,
        )
        if block.cost is not None:
            _cost(lines, job, at, block.cost, block.goodput, block.interval, blocking_seconds)
