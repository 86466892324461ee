"""size(spec) gives the sizing: it runs the chapters in order, and holds no formula of its own."""

from service import __version__
from service.errors import Fault, Unsatisfiable
from service.sizing import bandwidth, checkpoint, presets
from service.sizing.delivered import delivered
from service.sizing.explain import explain
from service.sizing.interruptions import failures_of, planned_of, uncertainty_of
from service.sizing.operation import Job, Operation, collision, cost_of, interval_for, operate
from service.sizing.placement import described
from service.sizing.restarting import restart_block, restarting
from service.sizing.shards import shards_of
from service.sizing.sizing import (
    Capacity,
    Checkpoint,
    HostMemory,
    Metadata,
    Read,
    Sizing,
    SizingWarning,
    Tiers,
    WarningCode,
    Write,
)
from service.sizing.spec import DEFAULT_HEADROOM, IntervalRule, SaveMode, ScenarioSpec
from service.sizing.staged import Staged, drained, staged, stalls, with_stall
from service.sizing.state import Saved, saved
from service.sizing.targets import targets
from service.sizing.trainer_settings import trainer_block
from service.sizing.transfers import LIMITING_FIELD, save_transfer
from service.wire import INT64_MAX

ENGINE_VERSION = __version__

OVERSTATED_FRACTION = 0.05


def size(spec: ScenarioSpec, *, explained: bool = False) -> Sizing:
    """Return what a scenario asks of its storage, what comes of it, and what it costs.

    Args:
        spec: The scenario.
        explained: Add for each figure its formula, inputs, assumption and source.

    Raises:
        Unsatisfiable: The spec has no answer; the faults name the fields and what would satisfy them.
    """
    warnings: list[SizingWarning] = []
    failure_block = failures_of(spec, warnings)
    model_block, saved_bytes = saved(spec)
    job = _job(spec, saved_bytes, failure_block.mtbf_seconds, warnings)

    way_back = restarting(job)
    blocking_seconds, blocking_pointer = _stall(job)
    lag_is_stated = spec.save.durable_lag_seconds is not None
    chosen_seconds = interval_for(job, blocking_seconds, spec.save.overhead_fraction)
    if blocking_seconds is None:
        assert spec.save.overhead_fraction is not None  # noqa: S101 - the spec refuses neither
        blocking_seconds = chosen_seconds * spec.save.overhead_fraction
    through = None
    if spec.save.staging_budget_bytes_per_node is not None:
        through = _staged(job, warnings)
        chosen_seconds, blocking_seconds = through.interval_seconds, through.blocking_seconds
        if through.exceeds:
            blocking_pointer = "#/save/staging_budget_bytes_per_node"
    if chosen_seconds - blocking_seconds <= 0.0:
        raise Unsatisfiable(_no_useful_time(job, chosen_seconds, blocking_seconds, blocking_pointer))

    write, window_seconds = _write(job, chosen_seconds, blocking_seconds, through)
    lag_seconds = window_seconds if job.is_async else 0.0
    if through is not None:
        lag_seconds = through.lag_seconds
        write = write.model_copy(update=drained(through))
    operation = operate(job, chosen_seconds, blocking_seconds, lag_seconds, way_back.seconds)
    if through is not None:
        operation = operation._replace(blocking=with_stall(operation.blocking, through))
    _warn_of_operation(job, operation, lag_is_stated, warnings)

    read = None
    if spec.restore is not None:
        amount = bandwidth.read_bytes(
            checkpoint_bytes=job.saved.restored_bytes, read_amplification=job.read_amplification
        )
        if amount > INT64_MAX:
            raise Unsatisfiable(
                Fault(
                    "#/restore/read_amplification",
                    "too_large",
                    f"A restart would read more than {INT64_MAX} bytes (9.2 EB), which is beyond this service: "
                    f"give at most {INT64_MAX / job.saved.restored_bytes:.4g}.",
                )
            )
        required = bandwidth.read_bandwidth(read_bytes=amount, target_seconds=spec.restore.target_seconds)
        read = Read(
            bytes=round(amount),
            mean_bytes=round(job.saved.restored_mean_bytes * job.read_amplification)
            if job.saved.restored_mean_bytes is not None
            else None,
            read_amplification=job.read_amplification,
            required_gb_per_second=required,
            per_node_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.nodes),
            largest_node_gb_per_second=bandwidth.largest_node_bandwidth(
                total_gb_per_second=required,
                total_bytes=job.checkpoint_bytes * job.read_amplification,
                largest_node_bytes=job.node_read_bytes,
            )
            if job.placement is not None
            else None,
        )
    checkpoint_block = Checkpoint(
        bytes=round(job.checkpoint_bytes),
        **job.saved.figures(),
        bytes_per_gpu=round(
            checkpoint.even_share(checkpoint_bytes=job.checkpoint_bytes, holders=spec.cluster.gpus)
        ),
        bytes_per_node=round(checkpoint.even_share(checkpoint_bytes=job.checkpoint_bytes, holders=job.nodes)),
        largest_shard_bytes=round(job.largest_shard_bytes),
        mean_shard_bytes=round(
            checkpoint.even_share(checkpoint_bytes=job.checkpoint_bytes, holders=job.writers)
        ),
        skew=job.skew,
        largest_node_bytes=round(job.node_share_bytes),
        nodes=job.nodes,
        writers=job.writers,
        writing_nodes=job.writing_nodes,
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
        model=model_block,
        checkpoint=checkpoint_block,
        layout=described(job.placement, spec.cluster.gpus_per_node) if job.placement is not None else None,
        failures=failure_block,
        interval=operation.interval,
        blocking=operation.blocking,
        restart=restart_block(way_back, job, operation),
        write=write,
        read=read,
        metadata=metadata,
        host_memory=_host_memory(job, warnings) if job.is_async else None,
        capacity=space,
        trainer=trainer_block(job, operation, write, warnings),
        goodput=operation.goodput,
        uncertainty=uncertainty_of(job, failure_block, operation, way_back, warnings),
        planned=planned_of(job, way_back.seconds),
        cost=cost_of(job, operation, space),
        targets=targets(
            is_async=job.is_async,
            checkpoint=checkpoint_block,
            blocking=operation.blocking,
            write=write,
            read=read,
            metadata=metadata,
            restore_target_seconds=spec.restore.target_seconds if spec.restore is not None else None,
        ),
        delivered=delivered(job, operation, way_back, warnings) if spec.storage is not None else None,
        tiers=_tiers(job, operation, way_back.seconds, way_back.load_seconds, warnings)
        if spec.tiers is not None
        else None,
        warnings=warnings,
    )
    return sizing.model_copy(update={"explanation": explain(job, sizing)}) if explained else sizing


def _job(spec: ScenarioSpec, saved_bytes: Saved, mtbf_seconds: float, warnings: list[SizingWarning]) -> Job:
    cluster = spec.cluster
    nodes = checkpoint.node_count(gpus=cluster.gpus, gpus_per_node=cluster.gpus_per_node)
    shards = shards_of(spec, distinct_bytes=saved_bytes.full_bytes, nodes=nodes, warnings=warnings)
    preset = presets.gpus()[cluster.gpu_preset] if cluster.gpu_preset is not None else None
    price = spec.prices.gpu_hour_usd if spec.prices is not None else None
    if price is None and preset is not None:
        price = preset.gpu_hour_usd
    return Job(
        spec=spec,
        is_async=spec.save.mode is SaveMode.ASYNC,
        checkpoint_bytes=shards.checkpoint_bytes,
        saved=saved_bytes.written_as(shards.checkpoint_bytes),
        nodes=nodes,
        writers=shards.writers,
        writing_nodes=shards.writing_nodes,
        files=checkpoint.file_count(writers=shards.writers, files_per_writer=spec.shards.files_per_writer),
        skew=shards.skew,
        largest_shard_bytes=shards.largest_shard_bytes,
        node_share_bytes=shards.node_share_bytes,
        read_amplification=shards.read_amplification,
        node_read_bytes=shards.node_read_bytes,
        placement=shards.placement,
        buffers=spec.save.staging_buffers or 1,
        mtbf_seconds=mtbf_seconds,
        gpu_hour_usd=price,
    )


def _stall(job: Job) -> tuple[float | None, str]:
    """Return the blocking time where it does not depend on the interval, and the field it comes from."""
    save = job.spec.save
    if save.blocking_seconds is not None:
        return save.blocking_seconds, "#/save/blocking_seconds"
    if save.overhead_fraction is not None:
        return None, "#/save/overhead_fraction"
    transfer = save_transfer(job)
    return transfer.seconds, LIMITING_FIELD[transfer.limited_by]


def _staged(job: Job, warnings: list[SizingWarning]) -> Staged:
    """Return what the staging budget makes of a save, and warn where that is a longer stall than was allowed."""
    save = job.spec.save
    needed = job.staging_bytes_per_node
    if job.buffers > 1 and (save.staging_budget_bytes_per_node or 0) < needed:
        raise Unsatisfiable(
            Fault(
                "#/save/staging_budget_bytes_per_node",
                "too_small",
                f"{job.buffers} staging buffers take {needed:.6g} bytes on a node: give as much, or fewer buffers.",
            )
        )
    found = staged(job.spec, node_share_bytes=job.staged_share_bytes, mtbf_seconds=job.mtbf_seconds)
    if found is None:
        raise Unsatisfiable(
            Fault(
                "#/save/staging_budget_bytes_per_node",
                "no_useful_time",
                "The copy and the wait for staging memory together take as long as the interval, however long that "
                f"is: stage up to {job.staged_share_bytes:.6g} bytes on a node, or drain with more headroom.",
            )
        )
    if found.exceeds:
        warnings.append(stalls(job, found))
    return found


def _no_useful_time(job: Job, interval_seconds: float, blocking_seconds: float, pointer: str) -> Fault:
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


def _write(
    job: Job, interval_seconds: float, blocking_seconds: float, through: Staged | None
) -> tuple[Write, float]:
    """Return the write block, and the time in which a save is written."""
    save, total = job.spec.save, job.checkpoint_bytes
    drained_seconds = through.drained_seconds if through is not None else 0.0
    limit = through.limit if through is not None else None
    strict = lag = None
    if job.is_async:
        minimum = bandwidth.minimum_persist_bandwidth(
            checkpoint_bytes=total, interval_seconds=interval_seconds
        )
        strict = bandwidth.strict_persist_bandwidth(
            checkpoint_bytes=total,
            interval_seconds=interval_seconds,
            blocking_seconds=blocking_seconds - drained_seconds,
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
        if limit is not None:
            lag = limit.seconds
            required = bandwidth.persist_bandwidth_for_stall(
                checkpoint_bytes=total,
                interval_seconds=interval_seconds,
                headroom=headroom,
                drain_limit_seconds=lag,
            )
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
            per_node_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.writing_nodes),
            per_writer_gb_per_second=bandwidth.share(total_gb_per_second=required, holders=job.writers),
            largest_shard_gb_per_second=bandwidth.shard_bandwidth(
                largest_shard_bytes=job.largest_shard_bytes, window_seconds=window
            ),
            largest_node_gb_per_second=bandwidth.largest_node_bandwidth(
                total_gb_per_second=required, total_bytes=total, largest_node_bytes=job.node_share_bytes
            )
            if job.placement is not None
            else None,
            durable_lag_seconds=lag,
        ),
        window,
    )


def _warn_of_operation(
    job: Job, operation: Operation, lag_is_stated: bool, warnings: list[SizingWarning]
) -> None:
    exact, first = operation.goodput.exact, operation.goodput.first_order
    waste = exact.saving_fraction + exact.lost_work_fraction + exact.restarting_fraction
    if job.saved.difference_bytes is not None:
        warnings.append(
            SizingWarning(
                code=WarningCode.DIFFERENTIAL_SAVES_TAKEN_AS_FULL,
                pointer="#/model/differential_fraction",
                message="Stalls, lags and bandwidths are those of a full save, which must fit as well; the saves "
                f"between two full ones write {job.saved.difference_bytes:.6g} bytes, so the true goodput is higher "
                "than the one given.",
            )
        )
    if first.waste_fraction > waste * (1.0 + OVERSTATED_FRACTION):
        warnings.append(
            SizingWarning(
                code=WarningCode.FIRST_ORDER_OVERSTATES,
                pointer="#/failures",
                message=f"The first-order waste of {first.waste_fraction:.3f} is more than 5 % above the exact "
                f"{waste:.3f}: half an interval and a restart are not small beside the time between failures.",
            )
        )
    ratio = operation.goodput.effective_training_time_ratio
    if ratio < 0.0:
        warnings.append(
            SizingWarning(
                code=WarningCode.EFFECTIVE_TRAINING_TIME_NEGATIVE,
                pointer="#/failures",
                message=f"The effective-training-time ratio of {ratio:.3f} is below 0: it is a first-order estimate, "
                "and does not hold where a restart and half an interval are long beside the time between failures.",
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
            collision(job, operation, "#/save/durable_lag_seconds" if lag_is_stated else "#/save")
        )


def _host_memory(job: Job, warnings: list[SizingWarning]) -> HostMemory:
    cluster = job.spec.cluster
    staged_bytes = job.staging_bytes_per_node
    memory, room = cluster.node_memory_bytes, job.spec.save.staging_budget_bytes_per_node
    if memory is not None and room is None and staged_bytes > memory:
        warnings.append(
            SizingWarning(
                code=WarningCode.STAGING_EXCEEDS_HOST_MEMORY,
                pointer="#/cluster/host_memory_bytes_per_node",
                message=f"Staging takes {staged_bytes:.6g} bytes on a node that has {memory:.6g}: fewer staging "
                "buffers, more nodes, or sync saves.",
            )
        )
    return HostMemory(
        bytes_per_node=round(staged_bytes),
        staging_buffers=job.buffers,
        memory_fraction=staged_bytes / memory if memory is not None else None,
        budget_fraction=staged_bytes / room if room is not None else None,
    )


def _tiers(
    job: Job,
    operation: Operation,
    restart_seconds: float,
    load_seconds: float | None,
    warnings: list[SizingWarning],
) -> Tiers:
    # Few scenarios have tiers: their module is read when one does.
    from service.sizing.tiered import tiered

    return tiered(job, operation, restart_seconds, load_seconds, warnings)


def _capacity(job: Job) -> Capacity | None:
    kept = job.spec.retention
    if kept is None:
        return None
    hot, cold = (
        (kept.hot_copies, kept.hot_protection_fraction),
        (kept.cold_copies, kept.cold_protection_fraction),
    )
    for tier, (copies, protection) in (("hot", hot), ("cold", cold)):
        if job.saved.kept(copies=copies + 1, protection_fraction=protection) > INT64_MAX:
            raise Unsatisfiable(
                Fault(
                    f"#/retention/{tier}_copies",
                    "too_large",
                    f"The copies take more than {INT64_MAX} bytes (9.2 EB), which is beyond this service: keep fewer.",
                )
            )
    cold_bytes = cold_peak = None
    if kept.cold_copies:
        cold_bytes = round(job.saved.kept(copies=cold[0], protection_fraction=cold[1]))
        cold_peak = round(job.saved.kept(copies=cold[0] + 1, protection_fraction=cold[1]))
    return Capacity(
        hot_bytes=round(job.saved.kept(copies=hot[0], protection_fraction=hot[1])),
        hot_peak_bytes=round(job.saved.kept(copies=hot[0] + 1, protection_fraction=hot[1])),
        cold_bytes=cold_bytes,
        cold_peak_bytes=cold_peak,
    )
