"""What the gap costs: the sizing again, with the measured stall, lag and load in place of the specified ones.

A figure that nobody measured, or that decides nothing, keeps its specified value.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.errors import Unsatisfiable
from service.judgement import sentences
from service.judgement.report import Consequences, Difference, Status, TargetReport
from service.sizing.interval import exact_interval
from service.sizing.size import size
from service.sizing.sizing import Sizing, TargetId
from service.sizing.spec import RestartSpec, SaveMode, ScenarioSpec
from service.sizing.units import GB

LEAST_SECONDS = 1e-6
"""The shortest time that a spec can state."""

_DECIDING = frozenset({Status.MISSED, Status.MET, Status.MET_IF_IT_SCALES})


@dataclass(frozen=True, slots=True)
class _Time:
    """A time that training feels, and the target whose figure it is; without one it is as specified."""

    seconds: float
    target: TargetReport | None


def consequences(*, spec: ScenarioSpec, sizing: Sizing, targets: Sequence[TargetReport]) -> Consequences:
    """Return what the measured figures make of the scenario.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        targets: The judged targets, whose usable figures take the place of the specified ones.
    """
    by_id = {target.id: target for target in targets if target.status in _DECIDING}
    blocking = _blocking(spec, sizing, by_id)
    lag = _lag(spec, sizing, by_id)
    load = _load(spec, sizing, by_id)
    used = [each.target for each in (blocking, lag, load) if each is not None and each.target is not None]
    if not used:
        return Consequences(
            feasible=True,
            reason="No usable measurement bears on the stall, the durable lag or the load: only the "
            "specified figures are known.",
            specified=sizing,
            used=[],
            extrapolated=[],
        )
    used_ids = [target.id for target in used]
    scaled_ids = [target.id for target in used if not target.full_scale]
    try:
        measured = size(_measured_spec(spec, sizing, blocking, lag, load))
    except Unsatisfiable as error:
        return Consequences(
            feasible=False,
            reason=sentences.capitalised("; ".join(fault.detail for fault in error.faults)),
            specified=sizing,
            used=used_ids,
            extrapolated=scaled_ids,
            next_interval_seconds=exact_interval(
                blocking_seconds=blocking.seconds, mtbf_seconds=sizing.failures.mtbf_seconds
            ),
        )
    return Consequences(
        feasible=True,
        specified=sizing,
        measured=measured,
        difference=_difference(sizing, measured),
        used=used_ids,
        extrapolated=scaled_ids,
    )


def _blocking(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time:
    """Return the stall: as timed; for sync saves else the checkpoint over its bandwidth; else specified."""
    timed = _timed(measured.get(TargetId.BLOCKING_SECONDS))
    if timed is None and spec.save.mode is SaveMode.SYNC:
        timed = _transferred(sizing.checkpoint.bytes, measured.get(TargetId.WRITE_BANDWIDTH))
    return timed or _Time(sizing.blocking.seconds, None)


def _lag(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time | None:
    """Return the durable lag of async saves, likewise; None for sync ones, which have none."""
    if spec.save.mode is SaveMode.SYNC or sizing.write.durable_lag_seconds is None:
        return None
    return (
        _timed(measured.get(TargetId.PERSIST_SECONDS))
        or _transferred(sizing.checkpoint.bytes, measured.get(TargetId.WRITE_BANDWIDTH))
        or _Time(sizing.write.durable_lag_seconds, None)
    )


def _load(spec: ScenarioSpec, sizing: Sizing, measured: Mapping[TargetId, TargetReport]) -> _Time | None:
    """Return the load of a restart, likewise; None where the scenario has no restore target to replace."""
    if spec.restore is None or sizing.read is None:
        return None
    return (
        _timed(measured.get(TargetId.LOAD_SECONDS))
        or _transferred(sizing.read.bytes, measured.get(TargetId.READ_BANDWIDTH))
        or _Time(_specified_load_seconds(spec, spec.restore.target_seconds), None)
    )


def _timed(target: TargetReport | None) -> _Time | None:
    if target is None or target.measured is None:
        return None
    return _Time(max(target.measured, LEAST_SECONDS), target)


def _transferred(total_bytes: float, target: TargetReport | None) -> _Time | None:
    """Return how long the bytes take at the measured rate, where that is a time at all."""
    if target is None or not target.measured:
        return None
    seconds = total_bytes / GB / target.measured
    return _Time(max(seconds, LEAST_SECONDS), target) if math.isfinite(seconds) else None


def _specified_load_seconds(spec: ScenarioSpec, target_seconds: float) -> float:
    """Return the seconds of load that the specified restart time has in it."""
    restart = spec.restart
    return restart.load_seconds if restart.load_seconds is not None else target_seconds


def _measured_spec(
    spec: ScenarioSpec, sizing: Sizing, blocking: _Time, lag: _Time | None, load: _Time | None
) -> ScenarioSpec:
    """Return the scenario with the times stated outright, whatever they were derived from before.

    A storage block goes: it says what a system was believed to deliver. Times beyond the bounds of a spec are
    let through, since the formulas bear them and a measurement is what it is.
    """
    save: dict[str, object] = {"blocking_seconds": blocking.seconds, "overhead_fraction": None}
    if lag is not None:
        save["durable_lag_seconds"] = lag.seconds
    changed: dict[str, object] = {"save": spec.save.model_copy(update=save), "storage": None}
    if load is not None and load.target is not None and spec.restore is not None:
        specified = _specified_load_seconds(spec, spec.restore.target_seconds)
        others = max(sizing.restart.seconds - specified, 0.0)
        changed["restart"] = RestartSpec.model_construct(seconds=others + load.seconds)
        changed["restore"] = spec.restore.model_copy(update={"target_seconds": load.seconds})
    return spec.model_copy(update=changed)


def _difference(specified: Sizing, measured: Sizing) -> Difference:
    wasted = [
        sizing.cost.waste_usd_per_year if sizing.cost is not None else None
        for sizing in (specified, measured)
    ]
    before, after = wasted
    return Difference(
        goodput_fraction=measured.goodput.exact.goodput_fraction - specified.goodput.exact.goodput_fraction,
        waste_usd_per_year=after - before if before is not None and after is not None else None,
    )
