"""What a given storage system delivers: how long a save and a load take on it, and what follows."""

from service.sizing import bandwidth, interval
from service.sizing.formulas import restart_with_load
from service.sizing.operation import Job, Operation, collision, cost_of, interval_for, operate
from service.sizing.restarting import Restarting, restart_block
from service.sizing.sizing import (
    Blocking,
    Delivered,
    DeliveredCapacity,
    DeliveredRead,
    DeliveredWrite,
    Restart,
    SizingWarning,
    WarningCode,
)
from service.sizing.staged import staged, stalls, with_stall
from service.sizing.transfers import LIMITING_FIELD, load_transfer, save_transfer
from service.units import TB


def delivered(
    job: Job,
    specified: Operation,
    way_back: Restarting,
    warnings: list[SizingWarning],
) -> Delivered:
    """Return what the spec's storage system delivers; a figure that it does not have keeps the specified value."""
    spec = job.spec
    storage = spec.storage_system
    assert storage is not None  # noqa: S101 - the caller asks first
    blocking_seconds, lag_seconds = specified.blocking.seconds, specified.durable_lag_seconds
    interval_seconds = specified.interval.seconds
    write = read = through = None
    found = way_back
    if spec.storage_times_a_save:
        transfer = save_transfer(job)
        write = DeliveredWrite(
            seconds=transfer.seconds,
            gb_per_second=bandwidth.sync_write_bandwidth(
                checkpoint_bytes=job.checkpoint_bytes, blocking_seconds=transfer.seconds
            ),
            limited_by=transfer.limited_by,
            durable_lag_seconds=transfer.seconds if job.is_async else None,
            creates_per_second=bandwidth.create_rate(files=job.files, window_seconds=transfer.seconds),
        )
        _warn_of_unknown(storage.write_gb_per_second, "write", warnings)
        if spec.save.staging_budget_bytes_per_node is not None:
            through = staged(
                spec,
                node_share_bytes=job.staged_share_bytes,
                mtbf_seconds=job.mtbf_seconds,
                drain_seconds=transfer.seconds,
            )
            assert through is not None  # noqa: S101 - a drain that no interval stretches always has an answer
            interval_seconds, blocking_seconds = through.interval_seconds, through.blocking_seconds
            lag_seconds = through.lag_seconds
            write = write.model_copy(update={"durable_lag_seconds": lag_seconds})
            if through.exceeds:
                warnings.append(stalls(job, through, delivered=True))
        elif job.is_async:
            lag_seconds = transfer.seconds
        else:
            blocking_seconds = transfer.seconds
            interval_seconds = interval_for(job, blocking_seconds, None)
    if spec.storage_times_a_load:
        transfer = load_transfer(job)
        amount = bandwidth.read_bytes(
            checkpoint_bytes=job.saved.restored_bytes, read_amplification=job.read_amplification
        )
        read = DeliveredRead(
            seconds=transfer.seconds,
            gb_per_second=bandwidth.read_bandwidth(read_bytes=amount, target_seconds=transfer.seconds),
            limited_by=transfer.limited_by,
        )
        _warn_of_unknown(storage.read_gb_per_second, "read", warnings)
        if way_back.load_seconds is not None:
            found = way_back.with_load(
                restart_with_load(
                    restart_seconds=way_back.seconds,
                    specified_load_seconds=way_back.load_seconds,
                    load_seconds=transfer.seconds,
                ),
                transfer.seconds,
            )
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
        space = _capacity(job, storage.usable_tb, interval_seconds)
        copies = spec.retention.hot_copies if spec.retention is not None else 1
        if space.copies_that_fit < copies:
            needed = job.saved.kept(copies=copies + 1)
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
        stalled = None
        if through is not None:
            stalled = with_stall(
                Blocking(seconds=blocking_seconds, overhead_fraction=blocking_seconds / interval_seconds),
                through,
            )
        return Delivered(
            feasible=False,
            reason=_sentence(reasons),
            next_interval_seconds=interval.exact_interval(
                blocking_seconds=blocking_seconds, mtbf_seconds=job.mtbf_seconds
            ),
            blocking=stalled,
            restart=Restart(seconds=found.seconds, load_seconds=found.load_seconds)
            if found is not way_back
            else None,
            write=write,
            read=read,
            capacity=space,
        )
    operation = operate(job, interval_seconds, blocking_seconds, lag_seconds, found.seconds)
    if through is not None:
        operation = operation._replace(blocking=with_stall(operation.blocking, through))
    if operation.interval.effective_seconds is not None and write is not None:
        warnings.append(collision(job, operation, LIMITING_FIELD[write.limited_by]))
    return Delivered(
        feasible=not reasons,
        reason=_sentence(reasons),
        interval=operation.interval,
        blocking=operation.blocking,
        restart=restart_block(found, job, operation),
        write=write,
        read=read,
        capacity=space,
        goodput=operation.goodput,
        cost=cost_of(job, operation, None),
    )


def _warn_of_unknown(gb_per_second: float | None, direction: str, warnings: list[SizingWarning]) -> None:
    if gb_per_second is None:
        warnings.append(
            SizingWarning(
                code=WarningCode.AGGREGATE_BANDWIDTH_UNKNOWN,
                pointer=f"#/storage/{direction}_gb_per_second",
                message=f"The aggregate {direction} bandwidth is not given, so the time rests on the other limits "
                "alone, and the true one can only be longer.",
            )
        )


def _capacity(job: Job, usable_tb: float, interval_seconds: float) -> DeliveredCapacity:
    usable, kept = float(round(usable_tb * TB)), job.spec.retention
    return DeliveredCapacity(
        usable_bytes=int(usable),
        copies_that_fit=int(job.saved.copies_that_fit(usable_bytes=usable)),
        hot_peak_fraction=job.saved.kept(copies=kept.hot_copies + 1) / usable if kept is not None else None,
        full_after_seconds=job.saved.seconds_until_full(
            usable_bytes=usable, interval_seconds=interval_seconds
        ),
    )


def _sentence(reasons: list[str]) -> str | None:
    text = "; ".join(reasons)
    return text[0].upper() + text[1:] + "." if text else None
