"""The way back after a failure, put together: its parts, the whole, and what training does again."""

from typing import NamedTuple

from service.sizing import restart
from service.sizing.operation import Job, Operation
from service.sizing.sizing import Restart, RestartPart, RestartShare
from service.sizing.transfers import load_transfer


class Restarting(NamedTuple):
    """How long a restart takes: in parts where the spec gives them, else as a whole."""

    seconds: float
    load_seconds: float | None
    parts: dict[RestartPart, float] | None
    spares_exhausted_fraction: float | None

    def with_load(self, seconds: float, load_seconds: float) -> "Restarting":
        """Return the same restart with another load in it, `seconds` long."""
        parts = self.parts and {**self.parts, RestartPart.LOAD: load_seconds}
        return self._replace(seconds=seconds, load_seconds=load_seconds, parts=parts)


def restarting(job: Job) -> Restarting:
    """Return how long the restart of the spec takes, the load in it as stated, as targeted, or as the storage reads."""
    given = job.spec.restart
    target = job.spec.restore.target_seconds if job.spec.restore is not None else None
    if given.seconds is not None:
        return Restarting(given.seconds, target, None, None)
    load = given.load_seconds if given.load_seconds is not None else target
    if load is None:
        load = load_transfer(job).seconds
    exhausted = given.spares_exhausted_fraction
    if given.spare_nodes is not None and given.repair_hours is not None:
        exhausted = restart.spares_exhausted(
            spare_nodes=given.spare_nodes,
            repair_hours=given.repair_hours,
            node_loss_fraction=given.node_loss_fraction or 1.0,
            mtbf_seconds=job.mtbf_seconds,
        )
    detect, reschedule = given.detect_seconds, given.reschedule_seconds
    initialise, warm_up = given.initialise_seconds, given.warm_up_seconds
    if reschedule is not None and given.reschedule_without_spares_seconds is not None:
        reschedule = restart.mean_reschedule(
            reschedule_seconds=reschedule,
            reschedule_without_spares_seconds=given.reschedule_without_spares_seconds,
            spares_exhausted_fraction=exhausted or 0.0,
        )
    parts = {
        RestartPart.DETECT: detect or 0.0,
        RestartPart.RESCHEDULE: reschedule or 0.0,
        RestartPart.INITIALISE: initialise or 0.0,
        RestartPart.LOAD: load,
        RestartPart.WARM_UP: warm_up or 0.0,
    }
    return Restarting(sum(parts.values()), load, parts, exhausted)


def restart_block(way_back: Restarting, job: Job, operation: Operation) -> Restart:
    """Return the block of an answer: the restart, and the replay that follows it."""
    interval, blocking_seconds = operation.interval, operation.blocking.seconds
    if interval.effective_seconds is not None:
        replayed = restart.replay_when_saves_collide(
            interval_seconds=interval.seconds,
            effective_interval_seconds=interval.effective_seconds,
            blocking_seconds=blocking_seconds,
            staging_buffers=job.buffers,
            mtbf_seconds=job.mtbf_seconds,
        )
    else:
        replayed = restart.replay(
            interval_seconds=interval.seconds,
            blocking_seconds=blocking_seconds,
            durable_lag_seconds=operation.durable_lag_seconds,
            mtbf_seconds=job.mtbf_seconds,
        )
    recovery = way_back.seconds + replayed
    shares = dominant = None
    if way_back.parts is not None:
        every = {**way_back.parts, RestartPart.REPLAY: replayed}
        shares = [
            RestartShare(part=part, seconds=seconds, fraction=seconds / recovery)
            for part, seconds in every.items()
        ]
        dominant = max(every, key=lambda part: every[part])
    return Restart(
        seconds=way_back.seconds,
        load_seconds=way_back.load_seconds,
        spares_exhausted_fraction=way_back.spares_exhausted_fraction,
        replay_seconds=replayed,
        recovery_seconds=recovery,
        parts=shares,
        dominant=dominant,
    )
