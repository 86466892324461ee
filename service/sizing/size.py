"""size(spec) gives the sizing: it runs the chapters in order, and holds no formula of its own."""

from dataclasses import dataclass

from service import __version__
from service.errors import Fault, Unsatisfiable
from service.sizing import bandwidth, capacity, checkpoint, cost, failures, goodput, interval, presets
from service.sizing.explain import explain
from service.sizing.formulas import restart_with_load
from service.sizing.sizing import (
    Blocking,
    Capacity,
    Checkpoint,
    Cost,
    Delivered,
    DeliveredCapacity,
    DeliveredRead,
    DeliveredWrite,
    ExactGoodput,
    Failures,
    FirstOrderGoodput,
    Goodput,
    HostMemory,
    Interval,
    Metadata,
    Read,
    Restart,
    Sizing,
    SizingWarning,
    WarningCode,
    Write,
)
from service.sizing.spec import IntervalRule, SaveMode, ScenarioSpec
from service.sizing.targets import targets
from service.sizing.units import TB
from service.wire import INT64_MAX

ENGINE_VERSION = __version__

MTBF_LEAST_SECONDS = 1.0
MTBF_MOST_SECONDS = 1e12
FEW_FAILURES = 20
OVERSTATED_FRACTION = 0.05


@dataclass(frozen=True, slots=True)
class _Job:
    """What stays the same whatever the storage: the checkpoint, the failures, the prices."""

    spec: ScenarioSpec
    is_async: bool
    checkpoint_bytes: float
    nodes: int
    writers: int
    files: int
    skew: float
    largest_shard_bytes: float
    node_share_bytes: float
    buffers: int
    mtbf_seconds: float
    gpu_hour_usd: float | None


@dataclass(frozen=True, slots=True)
class _Operation:
    """A job that saves: its interval, its stall, and what comes of them."""

    interval: Interval
    blocking: Blocking
    period_seconds: float
    durable_lag_seconds: float
    goodput: Goodput
    stall_usd_per_day: float | None


def size(spec: ScenarioSpec, *, explained: bool = False) -> Sizing:
    """Return what a scenario asks of its storage, what comes of it, and what it costs.

    Args:
        spec: The scenario.
        explained: Add for each figure its formula, inputs, assumption and source.

    Raises:
        Unsatisfiable: The spec has no answer; the faults name the fields and what would satisfy them.
    """
    warnings: list[SizingWarning] = []
    failure_block = _failures(spec, warnings)
    job = _job(spec, failure_block.mtbf_seconds, warnings)

    restart_seconds, load_seconds = _restart(spec)
    blocking_seconds, blocking_pointer = _stall(job)
    lag_is_stated = spec.save.durable_lag_seconds is not None
    chosen_seconds = _interval_seconds(job, blocking_seconds, spec.save.overhead_fraction)
    if blocking_seconds is None:
        assert spec.save.overhead_fraction is not None  # noqa: S101 - the spec refuses neither
        blocking_seconds = chosen_seconds * spec.save.overhead_fraction
    if chosen_seconds - blocking_seconds <= 0.0:
        raise Unsatisfiable(_no_useful_time(job, chosen_seconds, blocking_seconds, blocking_pointer))

    write, window_seconds = _write(job, chosen_seconds, blocking_seconds)
    lag_seconds = window_seconds if job.is_async else 0.0
    operation = _operate(job, chosen_seconds, blocking_seconds, lag_seconds, restart_seconds)
    _warn_of_operation(job, operation, lag_is_stated, warnings)

    read = None
    if spec.restore is not None:
        amount = bandwidth.read_bytes(
            checkpoint_bytes=job.checkpoint_bytes, read_amplification=spec.restore.read_amplification
        )
        if amount > INT64_MAX:
            raise Unsatisfiable(
                Fault(
                    "#/restore/read_amplification",
                    "too_large",
                    f"A restart would read more than {INT64_MAX} bytes (9.2 EB), which is beyond this service: "
                    f"give at most {INT64_MAX / job.checkpoint_bytes:.4g}.",
                )
            )
        required = bandwidth.read_bandwidth(read_bytes=amount, target_seconds=spec.restore.target_seconds)
        read = Read(
            bytes=round(amount),
            required_gb_per_second=required,
            per_node_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.nodes),
        )
    checkpoint_block = Checkpoint(
        bytes=round(job.checkpoint_bytes),
        bytes_per_gpu=round(
            checkpoint.even_share(checkpoint_bytes=job.checkpoint_bytes, holders=spec.cluster.gpus)
        ),
        bytes_per_node=round(checkpoint.even_share(checkpoint_bytes=job.checkpoint_bytes, holders=job.nodes)),
        largest_shard_bytes=round(job.largest_shard_bytes),
        nodes=job.nodes,
        writers=job.writers,
        files=job.files,
    )
    metadata = Metadata(
        creates_per_save=job.files,
        creates_per_second=bandwidth.create_rate(files=job.files, window_seconds=window_seconds),
        deletes_per_interval=job.files,
    )
    space = _capacity(job)
    sizing = Sizing(
        engine_version=ENGINE_VERSION,
        checkpoint=checkpoint_block,
        failures=failure_block,
        interval=operation.interval,
        blocking=operation.blocking,
        restart=Restart(seconds=restart_seconds, load_seconds=load_seconds),
        write=write,
        read=read,
        metadata=metadata,
        host_memory=_host_memory(job, warnings) if job.is_async else None,
        capacity=space,
        goodput=operation.goodput,
        cost=_cost(job, operation, space),
        targets=targets(
            is_async=job.is_async,
            checkpoint=checkpoint_block,
            blocking=operation.blocking,
            write=write,
            read=read,
            metadata=metadata,
            restore_target_seconds=spec.restore.target_seconds if spec.restore is not None else None,
        ),
        delivered=_delivered(job, operation, restart_seconds, load_seconds, warnings)
        if spec.storage is not None
        else None,
        warnings=warnings,
    )
    return sizing.model_copy(update={"explanation": explain(spec, sizing)}) if explained else sizing


def _failures(spec: ScenarioSpec, warnings: list[SizingWarning]) -> Failures:
    given = spec.failures
    record = presets.failure_records()[given.preset] if given.preset is not None else given
    gpus = spec.cluster.gpus
    low = high = confidence = None
    if record.observed_failures is not None:
        assert record.observed_hours is not None  # noqa: S101 - the spec refuses a part of a record
        assert record.observed_gpus is not None  # noqa: S101
        mtbf_seconds = failures.observed_mtbf(
            observed_failures=record.observed_failures,
            observed_hours=record.observed_hours,
            observed_gpus=record.observed_gpus,
            gpus=gpus,
        )
        confidence = failures.CONFIDENCE_FRACTION
        low, high = failures.poisson_bounds(
            mtbf_seconds=mtbf_seconds, failures=record.observed_failures, confidence_fraction=confidence
        )
        if record.observed_failures < FEW_FAILURES:
            warnings.append(
                SizingWarning(
                    code=WarningCode.FEW_OBSERVED_FAILURES,
                    pointer="#/failures/observed_failures",
                    message=f"{record.observed_failures} failures leave the time between failures between "
                    f"{low:.0f} and {high:.0f} s: size for the low end, or observe longer.",
                )
            )
    else:
        assert record.mtbf_hours is not None  # noqa: S101
        mtbf_seconds = failures.scaled_mtbf(
            mtbf_hours=record.mtbf_hours, mtbf_gpus=record.mtbf_gpus or gpus, gpus=gpus
        )
    if not MTBF_LEAST_SECONDS <= mtbf_seconds <= MTBF_MOST_SECONDS:
        raise Unsatisfiable(
            Fault(
                "#/failures",
                "out_of_range",
                f"These failures mean one every {mtbf_seconds:.3g} s for the whole job; a sizing needs between "
                f"{MTBF_LEAST_SECONDS:g} and {MTBF_MOST_SECONDS:g} s. Check the hours and the GPU counts.",
            )
        )
    return Failures(
        mtbf_seconds=mtbf_seconds,
        mtbf_low_seconds=low,
        mtbf_high_seconds=high,
        confidence_fraction=confidence,
        failures_per_day=failures.failures_per_day(mtbf_seconds=mtbf_seconds),
    )


def _job(spec: ScenarioSpec, mtbf_seconds: float, warnings: list[SizingWarning]) -> _Job:
    model, cluster, shards = spec.model, spec.cluster, spec.shards
    total = checkpoint.checkpoint_bytes(
        parameters=spec.parameters,
        bytes_per_parameter=model.bytes_per_parameter,
        reduction_factor=model.reduction_factor,
        extra_bytes=model.extra_bytes,
    )
    if total < 1.0:
        raise Unsatisfiable(
            Fault(
                "#/model",
                "too_small",
                "A checkpoint of less than a byte: check parameters and bytes_per_parameter.",
            )
        )
    total = float(
        round(total)
    )  # whole bytes, so that the figures can be checked by hand from those in the answer
    nodes = checkpoint.node_count(gpus=cluster.gpus, gpus_per_node=cluster.gpus_per_node)
    writers = shards.writers or cluster.gpus
    skew = 1.0
    if shards.largest_shard_bytes is not None:
        if not total / writers - 1.0 <= shards.largest_shard_bytes <= total:
            raise Unsatisfiable(
                Fault(
                    "#/shards/largest_shard_bytes",
                    "out_of_range",
                    f"{writers} writers share {total:.0f} bytes, so the largest shard lies between "
                    f"{total / writers:.0f} and {total:.0f} bytes.",
                )
            )
        skew = checkpoint.skew_of_largest(
            largest_shard_bytes=shards.largest_shard_bytes, checkpoint_bytes=total, writers=writers
        )
    elif shards.skew is not None:
        skew = shards.skew
    elif writers > 1:
        warnings.append(
            SizingWarning(
                code=WarningCode.EVEN_SHARDS_ASSUMED,
                pointer="#/shards",
                message="All shards are taken to be equal, which real layouts are not, and the largest sets a "
                "save's time: give skew or largest_shard_bytes as measured.",
            )
        )
    preset = presets.gpus()[cluster.gpu_preset] if cluster.gpu_preset is not None else None
    price = spec.prices.gpu_hour_usd if spec.prices is not None else None
    if price is None and preset is not None:
        price = preset.gpu_hour_usd
    return _Job(
        spec=spec,
        is_async=spec.save.mode is SaveMode.ASYNC,
        checkpoint_bytes=total,
        nodes=nodes,
        writers=writers,
        files=checkpoint.file_count(writers=writers, files_per_writer=shards.files_per_writer),
        skew=skew,
        largest_shard_bytes=checkpoint.largest_shard(checkpoint_bytes=total, writers=writers, skew=skew),
        node_share_bytes=checkpoint.largest_node_share(
            checkpoint_bytes=total, nodes=nodes, writers=writers, skew=skew
        ),
        buffers=spec.save.staging_buffers or 1,
        mtbf_seconds=mtbf_seconds,
        gpu_hour_usd=price,
    )


def _restart(spec: ScenarioSpec) -> tuple[float, float | None]:
    """Return the restart time and the load in it, where that is known."""
    restart = spec.restart
    target = spec.restore.target_seconds if spec.restore is not None else None
    if restart.seconds is not None:
        return restart.seconds, target
    load = restart.load_seconds if restart.load_seconds is not None else target
    parts = (
        restart.detect_seconds,
        restart.reschedule_seconds,
        restart.initialise_seconds,
        load,
        restart.warm_up_seconds,
    )
    return sum(part for part in parts if part is not None), load


def _stall(job: _Job) -> tuple[float | None, str]:
    """Return the blocking time where it does not depend on the interval, and the field it comes from."""
    save = job.spec.save
    if save.blocking_seconds is not None:
        return save.blocking_seconds, "#/save/blocking_seconds"
    if save.overhead_fraction is not None:
        return None, "#/save/overhead_fraction"
    transfer = _save_transfer(job)
    return transfer.seconds, _LIMITING_FIELD[transfer.limited_by]


_LIMITING_FIELD = {
    bandwidth.Limit.AGGREGATE_BANDWIDTH: "#/storage/write_gb_per_second",
    bandwidth.Limit.NODE_BANDWIDTH: "#/storage/node_gb_per_second",
    bandwidth.Limit.FILE_CREATES: "#/storage/file_creates_per_second",
}


def _save_transfer(job: _Job) -> bandwidth.Transfer:
    storage = job.spec.storage
    assert storage is not None  # noqa: S101 - callers ask the spec first
    return bandwidth.transfer_time(
        total_bytes=job.checkpoint_bytes,
        total_gb_per_second=storage.write_gb_per_second,
        node_bytes=job.node_share_bytes,
        node_gb_per_second=storage.node_gb_per_second,
        files=job.files,
        file_creates_per_second=storage.file_creates_per_second,
    )


def _interval_seconds(job: _Job, blocking_seconds: float | None, overhead_fraction: float | None) -> float:
    """Return the interval by the spec's rule: for a blocking time, or else for a fraction of the interval."""
    rule = job.spec.interval.rule
    if rule is IntervalRule.FIXED:
        assert job.spec.interval.seconds is not None  # noqa: S101 - the spec refuses it
        return job.spec.interval.seconds
    if blocking_seconds is not None:
        return _RULES[rule](blocking_seconds=blocking_seconds, mtbf_seconds=job.mtbf_seconds)
    assert overhead_fraction is not None  # noqa: S101
    return _RULES_AT_OVERHEAD[rule](overhead_fraction=overhead_fraction, mtbf_seconds=job.mtbf_seconds)


_RULES = {
    IntervalRule.YOUNG: interval.young_interval,
    IntervalRule.DALY: interval.daly_interval,
    IntervalRule.EXACT: interval.exact_interval,
}
_RULES_AT_OVERHEAD = {
    IntervalRule.YOUNG: interval.young_interval_at_overhead,
    IntervalRule.DALY: interval.daly_interval_at_overhead,
    IntervalRule.EXACT: interval.exact_interval_at_overhead,
}


def _no_useful_time(job: _Job, interval_seconds: float, blocking_seconds: float, pointer: str) -> Fault:
    rule = job.spec.interval.rule
    if rule is IntervalRule.FIXED:
        cure = (
            f"let saves start more than {blocking_seconds:.6g} s apart, or finish one in less than "
            f"{interval_seconds:.6g} s"
        )
    else:
        cure = (
            f"the rule {rule} gives no time to train from twice the mean time between failures on "
            f"({2.0 * job.mtbf_seconds:.6g} s): use the rule exact, or block for less"
        )
    return Fault(
        pointer,
        "no_useful_time",
        f"A save that blocks for {blocking_seconds:.6g} s every {interval_seconds:.6g} s "
        f"leaves no time to train: {cure}.",
    )


def _write(job: _Job, interval_seconds: float, blocking_seconds: float) -> tuple[Write, float]:
    """Return the write block, and the time in which a save is written."""
    save, total = job.spec.save, job.checkpoint_bytes
    strict = lag = None
    if job.is_async:
        minimum = bandwidth.minimum_persist_bandwidth(
            checkpoint_bytes=total, interval_seconds=interval_seconds
        )
        strict = bandwidth.strict_persist_bandwidth(
            checkpoint_bytes=total,
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            staging_buffers=job.buffers,
        )
        headroom = save.headroom if save.headroom is not None else DEFAULT_HEADROOM
        if save.durable_lag_seconds is not None:
            lag = save.durable_lag_seconds
            required = bandwidth.persist_bandwidth_for_lag(
                checkpoint_bytes=total,
                interval_seconds=interval_seconds,
                headroom=headroom,
                durable_lag_seconds=lag,
            )
        else:
            required = bandwidth.persist_bandwidth(
                checkpoint_bytes=total, interval_seconds=interval_seconds, headroom=headroom
            )
            lag = bandwidth.durable_lag(interval_seconds=interval_seconds, headroom=headroom)
    else:
        required = minimum = bandwidth.sync_write_bandwidth(
            checkpoint_bytes=total, blocking_seconds=blocking_seconds
        )
    window = lag if lag is not None else blocking_seconds
    return (
        Write(
            required_gb_per_second=required,
            minimum_gb_per_second=minimum,
            strict_minimum_gb_per_second=strict,
            per_node_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.nodes),
            per_writer_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.writers),
            largest_shard_gb_per_second=bandwidth.shard_bandwidth(
                largest_shard_bytes=job.largest_shard_bytes, window_seconds=window
            ),
            durable_lag_seconds=lag,
        ),
        window,
    )


DEFAULT_HEADROOM = 2.5
"""The articles plan two to three times the floor."""


def _operate(
    job: _Job,
    interval_seconds: float,
    blocking_seconds: float,
    durable_lag_seconds: float,
    restart_seconds: float,
) -> _Operation:
    """Return what comes of an interval, a stall, a lag and a restart; the interval must leave time to train."""
    mtbf_seconds = job.mtbf_seconds
    period = interval_seconds
    if job.is_async:
        period = goodput.effective_interval(
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            durable_lag_seconds=durable_lag_seconds,
            staging_buffers=job.buffers,
        )
    collides = period > interval_seconds
    if collides:
        split = goodput.exact_goodput_when_saves_collide(
            interval_seconds=interval_seconds,
            effective_interval_seconds=period,
            blocking_seconds=blocking_seconds,
            restart_seconds=restart_seconds,
            staging_buffers=job.buffers,
            mtbf_seconds=mtbf_seconds,
        )
    else:
        split = goodput.exact_goodput(
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds,
            restart_seconds=restart_seconds,
            durable_lag_seconds=durable_lag_seconds,
            mtbf_seconds=mtbf_seconds,
        )
    first = goodput.first_order_waste(
        interval_seconds=interval_seconds,
        blocking_seconds=blocking_seconds,
        restart_seconds=restart_seconds,
        mtbf_seconds=mtbf_seconds,
    )
    stall = None
    if job.gpu_hour_usd is not None:
        stall = cost.stall_usd_per_day(
            cluster_usd_per_hour=cost.cluster_usd_per_hour(
                gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd
            ),
            blocking_seconds=blocking_seconds + (period - interval_seconds),
            interval_seconds=period,
        )
    return _Operation(
        interval=Interval(
            seconds=interval_seconds,
            rule=job.spec.interval.rule,
            young_seconds=interval.young_interval(
                blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds
            ),
            daly_seconds=interval.daly_interval(blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds),
            exact_seconds=interval.exact_interval(
                blocking_seconds=blocking_seconds, mtbf_seconds=mtbf_seconds
            ),
            effective_seconds=period if collides else None,
        ),
        blocking=Blocking(seconds=blocking_seconds, overhead_fraction=blocking_seconds / interval_seconds),
        period_seconds=period,
        durable_lag_seconds=durable_lag_seconds,
        goodput=Goodput(
            exact=ExactGoodput(
                goodput_fraction=split.goodput,
                saving_fraction=split.saving,
                lost_work_fraction=split.lost_work,
                restarting_fraction=split.restarting,
            ),
            first_order=FirstOrderGoodput(
                waste_fraction=first.waste,
                saving_fraction=first.saving,
                lost_work_fraction=first.lost_work,
                restarting_fraction=first.restarting,
            ),
        ),
        stall_usd_per_day=stall,
    )


def _warn_of_operation(
    job: _Job, operation: _Operation, lag_is_stated: bool, warnings: list[SizingWarning]
) -> None:
    exact, first = operation.goodput.exact, operation.goodput.first_order
    waste = exact.saving_fraction + exact.lost_work_fraction + exact.restarting_fraction
    if first.waste_fraction > waste * (1.0 + OVERSTATED_FRACTION):
        warnings.append(
            SizingWarning(
                code=WarningCode.FIRST_ORDER_OVERSTATES,
                pointer="#/failures",
                message=f"The first-order waste of {first.waste_fraction:.3f} is more than 5 % above the exact "
                f"{waste:.3f}: half an interval and a restart are not small beside the time between failures.",
            )
        )
    if operation.durable_lag_seconds > 0.0:
        warnings.append(
            SizingWarning(
                code=WarningCode.FIRST_ORDER_OMITS_DURABLE_LAG,
                pointer="#/save/durable_lag_seconds" if lag_is_stated else "#/save",
                message=f"The first-order figure leaves out the {operation.durable_lag_seconds:.6g} s until a save "
                "is durable; the exact one counts them.",
            )
        )
    if operation.interval.effective_seconds is not None:
        warnings.append(
            _collision(job, operation, "#/save/durable_lag_seconds" if lag_is_stated else "#/save")
        )


def _collision(job: _Job, operation: _Operation, pointer: str) -> SizingWarning:
    interval_seconds, lag_seconds = operation.interval.seconds, operation.durable_lag_seconds
    one_buffer = job.buffers == 1
    window = interval_seconds - (operation.blocking.seconds if one_buffer else 0.0)
    more_buffers = ", a second staging buffer" if one_buffer and lag_seconds <= interval_seconds else ""
    return SizingWarning(
        code=WarningCode.SAVES_COLLIDE,
        pointer=pointer,
        message=f"A save takes {lag_seconds:.6g} s to become durable, so the next one waits and the interval of "
        f"{interval_seconds:.6g} s becomes {operation.period_seconds:.6g} s. Ways out: storage that makes it durable "
        f"within {window:.6g} s{more_buffers}, or an interval of at least {operation.period_seconds:.6g} s.",
    )


def _host_memory(job: _Job, warnings: list[SizingWarning]) -> HostMemory:
    cluster = job.spec.cluster
    staged = bandwidth.staging_bytes(node_bytes=job.node_share_bytes, staging_buffers=job.buffers)
    memory = cluster.host_memory_bytes_per_node
    if memory is None and cluster.gpu_preset is not None:
        preset = presets.gpus()[cluster.gpu_preset]
        if preset.gpus_per_node == cluster.gpus_per_node:
            memory = preset.host_memory_bytes_per_node
    if memory is not None and staged > memory:
        warnings.append(
            SizingWarning(
                code=WarningCode.STAGING_EXCEEDS_HOST_MEMORY,
                pointer="#/cluster/host_memory_bytes_per_node",
                message=f"Staging takes {staged:.6g} bytes on a node that has {memory:.6g}: fewer staging buffers, "
                "more nodes, or sync saves.",
            )
        )
    return HostMemory(
        bytes_per_node=round(staged),
        staging_buffers=job.buffers,
        memory_fraction=staged / memory if memory is not None else None,
    )


def _capacity(job: _Job) -> Capacity | None:
    kept = job.spec.retention
    if kept is None:
        return None
    total = job.checkpoint_bytes
    hot, cold = (
        (kept.hot_copies, kept.hot_protection_fraction),
        (kept.cold_copies, kept.cold_protection_fraction),
    )
    for tier, (copies, protection) in (("hot", hot), ("cold", cold)):
        if (
            capacity.peak_bytes(checkpoint_bytes=total, copies=copies, protection_fraction=protection)
            > INT64_MAX
        ):
            raise Unsatisfiable(
                Fault(
                    f"#/retention/{tier}_copies",
                    "too_large",
                    f"The copies take more than {INT64_MAX} bytes (9.2 EB), which is beyond this service: keep fewer.",
                )
            )
    cold_bytes = cold_peak = None
    if kept.cold_copies:
        cold_bytes = round(
            capacity.kept_bytes(checkpoint_bytes=total, copies=cold[0], protection_fraction=cold[1])
        )
        cold_peak = round(
            capacity.peak_bytes(checkpoint_bytes=total, copies=cold[0], protection_fraction=cold[1])
        )
    return Capacity(
        hot_bytes=round(
            capacity.kept_bytes(checkpoint_bytes=total, copies=hot[0], protection_fraction=hot[1])
        ),
        hot_peak_bytes=round(
            capacity.peak_bytes(checkpoint_bytes=total, copies=hot[0], protection_fraction=hot[1])
        ),
        cold_bytes=cold_bytes,
        cold_peak_bytes=cold_peak,
    )


def _cost(job: _Job, operation: _Operation, space: Capacity | None) -> Cost | None:
    figures: dict[str, float] = {}
    prices = job.spec.prices
    if job.gpu_hour_usd is not None and operation.stall_usd_per_day is not None:
        hourly = cost.cluster_usd_per_hour(gpus=job.spec.cluster.gpus, gpu_hour_usd=job.gpu_hour_usd)
        exact = operation.goodput.exact
        parts = (exact.saving_fraction, exact.lost_work_fraction, exact.restarting_fraction)
        saving, lost_work, restarting = (
            cost.wasted_usd_per_year(lost_fraction=part, cluster_usd_per_hour=hourly) for part in parts
        )
        figures.update(
            cluster_usd_per_hour=hourly,
            stall_usd_per_day=operation.stall_usd_per_day,
            stall_usd_per_year=cost.usd_per_year_from_day(usd_per_day=operation.stall_usd_per_day),
            waste_usd_per_year=cost.wasted_usd_per_year(
                lost_fraction=sum(parts), cluster_usd_per_hour=hourly
            ),
            saving_usd_per_year=saving,
            lost_work_usd_per_year=lost_work,
            restarting_usd_per_year=restarting,
        )
    if prices is not None and space is not None:
        for tier, price, amount in (
            ("hot", prices.hot_usd_per_tb_month, space.hot_peak_bytes),
            ("cold", prices.cold_usd_per_tb_month, space.cold_peak_bytes),
        ):
            if price is not None and amount is not None:
                figures[f"{tier}_usd_per_month"] = cost.space_usd_per_month(
                    space_bytes=amount, usd_per_tb_month=price
                )
    return Cost(**figures) if figures else None


def _delivered(
    job: _Job,
    specified: _Operation,
    restart_seconds: float,
    load_seconds: float | None,
    warnings: list[SizingWarning],
) -> Delivered:
    """Return what the spec's storage system delivers; a figure that it does not have keeps the specified value."""
    spec = job.spec
    storage = spec.storage
    assert storage is not None  # noqa: S101 - the caller asks first
    blocking_seconds, lag_seconds = specified.blocking.seconds, specified.durable_lag_seconds
    interval_seconds = specified.interval.seconds
    write = read = restart = None
    if spec.storage_times_a_save:
        transfer = _save_transfer(job)
        write = DeliveredWrite(
            seconds=transfer.seconds,
            gb_per_second=bandwidth.sync_write_bandwidth(
                checkpoint_bytes=job.checkpoint_bytes, blocking_seconds=transfer.seconds
            ),
            limited_by=transfer.limited_by,
            durable_lag_seconds=transfer.seconds if job.is_async else None,
            creates_per_second=bandwidth.create_rate(files=job.files, window_seconds=transfer.seconds),
        )
        if job.is_async:
            lag_seconds = transfer.seconds
        else:
            blocking_seconds = transfer.seconds
            interval_seconds = _interval_seconds(job, blocking_seconds, None)
    if storage.read_gb_per_second is not None or storage.node_gb_per_second is not None:
        amplification = spec.restore.read_amplification if spec.restore is not None else 1.0
        amount = bandwidth.read_bytes(checkpoint_bytes=job.checkpoint_bytes, read_amplification=amplification)
        transfer = bandwidth.transfer_time(
            total_bytes=amount,
            total_gb_per_second=storage.read_gb_per_second,
            node_bytes=job.node_share_bytes * amplification,
            node_gb_per_second=storage.node_gb_per_second,
        )
        read = DeliveredRead(
            seconds=transfer.seconds,
            gb_per_second=bandwidth.read_bandwidth(read_bytes=amount, target_seconds=transfer.seconds),
            limited_by=transfer.limited_by,
        )
        if load_seconds is not None:
            restart_seconds = restart_with_load(
                restart_seconds=restart_seconds,
                specified_load_seconds=load_seconds,
                load_seconds=transfer.seconds,
            )
            restart = Restart(seconds=restart_seconds, load_seconds=transfer.seconds)
        else:
            warnings.append(
                SizingWarning(
                    code=WarningCode.LOAD_NOT_SEPARATE,
                    pointer="#/restart/seconds",
                    message="How much of the restart is the load is not said, so the delivered figures keep the "
                    "restart as given: give restore.target_seconds, or the restart in parts.",
                )
            )
    space, reasons = None, []
    if storage.usable_tb is not None:
        space = _delivered_capacity(job, storage.usable_tb, interval_seconds)
        copies = spec.retention.hot_copies if spec.retention is not None else 1
        if space.copies_that_fit < copies:
            needed = capacity.peak_bytes(
                checkpoint_bytes=job.checkpoint_bytes, copies=copies, protection_fraction=0.0
            )
            reasons.append(
                f"the {copies} kept and the checkpoint in flight take {needed / TB:.6g} TB, and "
                f"{storage.usable_tb:.6g} TB are usable"
            )
    if write is None and read is None:
        return Delivered(feasible=not reasons, reason=_sentence(reasons), capacity=space)
    if interval_seconds - blocking_seconds <= 0.0:
        reasons.insert(
            0,
            f"a save takes {blocking_seconds:.6g} s and the interval is {interval_seconds:.6g} s, "
            "which leaves no time to train",
        )
        return Delivered(
            feasible=False,
            reason=_sentence(reasons),
            next_interval_seconds=interval.exact_interval(
                blocking_seconds=blocking_seconds, mtbf_seconds=job.mtbf_seconds
            ),
            restart=restart,
            write=write,
            read=read,
            capacity=space,
        )
    operation = _operate(job, interval_seconds, blocking_seconds, lag_seconds, restart_seconds)
    if operation.interval.effective_seconds is not None and write is not None:
        warnings.append(_collision(job, operation, _LIMITING_FIELD[write.limited_by]))
    return Delivered(
        feasible=not reasons,
        reason=_sentence(reasons),
        interval=operation.interval,
        blocking=operation.blocking,
        restart=restart or Restart(seconds=restart_seconds, load_seconds=load_seconds),
        write=write,
        read=read,
        capacity=space,
        goodput=operation.goodput,
        cost=_cost(job, operation, None),
    )


def _delivered_capacity(job: _Job, usable_tb: float, interval_seconds: float) -> DeliveredCapacity:
    usable, kept = float(round(usable_tb * TB)), job.spec.retention
    return DeliveredCapacity(
        usable_bytes=int(usable),
        copies_that_fit=int(
            capacity.copies_that_fit(usable_bytes=usable, checkpoint_bytes=job.checkpoint_bytes)
        ),
        hot_peak_fraction=capacity.peak_bytes(
            checkpoint_bytes=job.checkpoint_bytes, copies=kept.hot_copies, protection_fraction=0.0
        )
        / usable
        if kept is not None
        else None,
        full_after_seconds=capacity.seconds_until_full(
            usable_bytes=usable, checkpoint_bytes=job.checkpoint_bytes, interval_seconds=interval_seconds
        ),
    )


def _sentence(reasons: list[str]) -> str | None:
    text = "; ".join(reasons)
    return text[0].upper() + text[1:] + "." if text else None
