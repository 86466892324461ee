"""The `summary.json` that DLIO writes for a checkpointing run, as in MLPerf Storage.

Its keys say GB where the values are GiB. It has no single checkpoint: of the saves and of the loads it tells the
mean and the standard deviation of the durations, and of the rates, each over rank 0's own times. The mean of
rates overstates what the storage gave, so that the rate here is all bytes over all seconds: the size of a
checkpoint over the mean duration. The two statements of it are checked against each other.

Python writes a bare `NaN` for the mean of nothing: in a run without saves, and only there, it is taken for that.
"""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service import strict_json
from service.errors import UnreadableDocument
from service.parsers.document import Document
from service.parsers.ior import Place, merged, refusal
from service.parsers.measurement import (
    CACHE_MULTIPLE,
    WIDE_SPREAD_FRACTION,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Record,
    Repetition,
    Spread,
    repetition_doubts,
    spread,
)
from service.strict_json import JsonFault, pointer
from service.units import GB, GIB
from service.wire import EXACT_INTEGER_MAX

NAME = "dlio-summary"

"""A node that reads less than this many times its memory may have read its memory."""

_NAN_OF_AN_OPERATION = re.compile(
    r'("(?:save|load)_checkpoint_(?:io|duration)_(?:mean|stdev)_(?:GB_per_second|seconds)"[ \t\n]{0,80}:[ \t\n]{0,80})'
    r"NaN(?=[ \t\n]{0,80}[,}])"
)
_HEAD = 2_000_000
_MOST_RANKS = 10**8
_MICROSECOND = 1e-6
"""DLIO takes its times in these."""
_MOST_SECONDS = 1e8
_MOSTGIB_PER_SECOND = 1e9
_AGREEMENT = 1e-6
"""All figures are printed with every digit, so that only rounding may part them."""
_SAME = 1e-10
_TOO_ALIKE = 1e-3
"""Durations whose deviation is less than this of their mean have statistics that rounding blurs."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The saves, or the loads, of a run.

    Attributes:
        mean_seconds: Mean of rank 0's durations.
        mean_rate: Mean of the checkpoints' rates. Never compare a target with it. [bytes/s]
        rate_deviation: The standard deviation of the rates, if told. [bytes/s]
        seconds: Each duration, the shortest first, where there were three or fewer: then the statistics tell
            them. Empty where they do not; in which order the checkpoints were made is never told.
    """

    mean_seconds: float
    mean_rate: float
    rate_deviation: float | None
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summary tells of its checkpoints.

    The durations of each checkpoint are not in it: DLIO writes these, for each rank, into
    `<rank>_per_epoch_stats.json`.

    Attributes:
        checkpoint_bytes: Size of one checkpoint, over all ranks.
        world_size: Processes that saved and loaded.
        nodes: Nodes that they ran on.
        memory_bytes: Memory of the largest node, if told.
        save: Its saves, if there were any.
        load: Its loads, if there were any.
    """

    checkpoint_bytes: int
    world_size: int
    nodes: int
    memory_bytes: float | None = None
    save: Phase | None = None
    load: Phase | None = None


def recognises(document: Document) -> bool:
    """Tell whether the text has the keys of DLIO's summary, whole or damaged."""
    text = document.text[:_HEAD]
    return text.lstrip()[:1] == "{" and '"num_accelerators"' in text and '"metric"' in text


def read_summary(document: Document) -> Summary:
    """Return what a summary tells of its checkpoints; the one reader for uploads and converters.

    Raises:
        UnreadableDocument: It is no strict JSON but for the `NaN` of an operation that was not run, lacks a
            figure, contradicts itself, or times no checkpoint; with the line or the pointer.
    """
    try:
        root = strict_json.loads(_NAN_OF_AN_OPERATION.sub(r"\1null", document.text))
    except JsonFault as fault:
        raise UnreadableDocument(
            fault.code,
            f"{fault.detail} Post summary.json as DLIO wrote it.",
            line=fault.line,
            pointer=fault.pointer,
        ) from None
    if not isinstance(root, dict) or not isinstance(root.get("metric"), dict):
        raise refusal("wrong_type", "is no object; post summary.json as DLIO wrote it.", _at("metric"))
    metric = root["metric"]
    if not any(key.startswith(("save_checkpoint_", "load_checkpoint_")) for key in metric):
        raise refusal(
            "no_results",
            "holds no checkpoint's time: the run was of training alone; post that of a checkpointing run.",
            _at("metric"),
        )
    world_size = _count(root, "num_accelerators")
    nodes = _count(root, "num_hosts")
    if nodes > world_size:
        raise refusal(
            "contradictory_setup", f"has {nodes} hosts for {world_size} processes.", _at("num_hosts")
        )
    size = _number(metric, "checkpoint_size_GB", most=EXACT_INTEGER_MAX / GIB)
    checkpoint_bytes = round(size * GIB)
    # It is a count of bytes over 2^30, which a float holds exactly.
    if checkpoint_bytes <= 0 or abs(checkpoint_bytes - size * GIB) > _AGREEMENT:
        raise refusal(
            "bad_number",
            "is no whole number of bytes over 2^30; post summary.json as DLIO wrote it.",
            _at("metric", "checkpoint_size_GB"),
        )
    save = _phase(metric, "save", size)
    load = _phase(metric, "load", size)
    if save is None and load is None:
        raise refusal(
            "no_results",
            "holds no save and no load that was timed; post that of a finished run.",
            _at("metric"),
        )
    return Summary(checkpoint_bytes, world_size, nodes, _memory_bytes(root), save, load)


def _at(*parts: str | int) -> Place:
    return Place(pointer=pointer(*parts))


def _count(root: dict[str, Any], key: str) -> int:
    value = root.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 < value <= _MOST_RANKS:
        raise refusal(
            "bad_number", "is not there, or no count; post summary.json as DLIO wrote it.", _at(key)
        )
    return value


def _number(
    metric: dict[str, Any], key: str, *, least: float = 0.0, most: float, zero: bool = False
) -> float:
    """Return a positive figure of the metrics, or one that may be zero."""
    value = metric.get(key)
    if value is None:
        raise refusal(
            "missing_figure", "is not there; post summary.json as DLIO wrote it.", _at("metric", key)
        )
    if type(value) not in (int, float) or not least <= value <= most or (value == 0 and not zero):
        raise refusal(
            "bad_number",
            "is no figure that can have been measured; post summary.json as DLIO wrote it.",
            _at("metric", key),
        )
    return float(value)


def _phase(metric: dict[str, Any], name: str, size: float) -> Phase | None:
    """Return the saves or the loads, or None where there were none.

    Raises:
        UnreadableDocument: `missing_figure`, `bad_number`, `inconsistent_summary`.
    """
    rate_keys = [f"{name}_checkpoint_io_{what}_GB_per_second" for what in ("mean", "stdev")]
    time_keys = [f"{name}_checkpoint_duration_{what}_seconds" for what in ("mean", "stdev")]
    if all(metric.get(key) is None for key in (*rate_keys, *time_keys)):
        return None
    rate = _number(metric, rate_keys[0], most=_MOSTGIB_PER_SECOND)
    seconds = _number(metric, time_keys[0], least=_MICROSECOND, most=_MOST_SECONDS)
    rate_deviation = _deviation(metric, rate_keys[1], most=_MOSTGIB_PER_SECOND)
    deviation = _deviation(metric, time_keys[1], most=_MOST_SECONDS)
    # Each rate is the size over its duration. Less their covariance, mean times mean is the size; and that is
    # negative, and no larger than the product of the deviations.
    excess, slack = seconds * rate - size, _AGREEMENT * size
    most = math.inf if deviation is None or rate_deviation is None else deviation * rate_deviation
    if not -slack <= excess <= most + slack:
        raise refusal(
            "inconsistent_summary",
            f"contradicts the rest: checkpoints of {size:.6g} GiB in {seconds:.6g} s at {rate:.6g} GiB/s, in the "
            "mean, cannot be with such deviations; the file was changed or damaged, so post the original.",
            _at("metric", rate_keys[0]),
        )
    known: tuple[float, ...] = ()
    if deviation is not None and rate_deviation is not None:
        known = _durations(seconds, deviation, rate / size, rate_deviation / size)
    return Phase(
        mean_seconds=seconds,
        mean_rate=rate * GIB,
        rate_deviation=None if rate_deviation is None else rate_deviation * GIB,
        seconds=known,
    )


def _deviation(metric: dict[str, Any], key: str, *, most: float) -> float | None:
    return None if metric.get(key) is None else _number(metric, key, most=most, zero=True)


def _durations(
    mean: float, deviation: float, reciprocal_mean: float, reciprocal_deviation: float
) -> tuple[float, ...]:
    """Return the durations, the shortest first, if three or fewer have just these statistics; else nothing.

    Mean and deviation tell two durations, the mean of the reciprocals a third. Since DLIO takes them in whole
    microseconds, what is found must have all four statistics to the last digits; of more durations it has not.
    Where all are nearly the same, rounding hides the difference, and nothing is told; where two are, they may be
    microseconds off.

    Args:
        mean: Mean of the durations. [s]
        deviation: Their standard deviation, over all of them. [s]
        reciprocal_mean: The same of the durations' reciprocals. [1/s]
        reciprocal_deviation: Likewise.
    """
    if deviation == 0:
        return (mean,)
    if deviation < _TOO_ALIKE * mean:
        return ()
    for found in ((mean - deviation, mean + deviation), _three_durations(mean, deviation, reciprocal_mean)):
        durations = tuple(round(each, 6) for each in found)
        if durations and min(durations) > 0:
            moments = (*_moments(durations), *_moments([1 / each for each in durations]))
            told = (mean, deviation, reciprocal_mean, reciprocal_deviation)
            if all(map(_same, moments, told)):
                return durations
    return ()


def _moments(values: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.pstdev(values)


def _same(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=_SAME)


def _three_durations(mean: float, deviation: float, reciprocal_mean: float) -> tuple[float, ...]:
    """Return the three durations with these statistics, the shortest first."""
    # They are the roots of a cubic, whose coefficients are the sums of their products.
    pairs = 3 * (mean**2 - deviation**2 / 2)
    product = pairs / (3 * reciprocal_mean)
    # About their mean that is x^3 - 3/2 deviation^2 x - about. All roots are real, so trigonometry finds them.
    about = product - mean**3 + 1.5 * mean * deviation**2
    cosine = math.sqrt(2) * about / deviation**3
    if not -1 - _AGREEMENT <= cosine <= 1 + _AGREEMENT:
        return ()
    angle = math.acos(max(-1.0, min(1.0, cosine))) / 3
    turns = (angle + turn * math.tau / 3 for turn in range(3))
    return tuple(sorted(mean + math.sqrt(2) * deviation * math.cos(turn) for turn in turns))


def _memory_bytes(root: dict[str, Any]) -> float | None:
    """Return the memory of the largest node, which DLIO gives in GiB; None where that is not told of all."""
    told = root.get("host_memory_GB")
    if not isinstance(told, list) or not told:
        return None
    if not all(type(each) in (int, float) and 0 < each < _MOSTGIB_PER_SECOND for each in told):
        return None
    return float(max(told)) * GIB


def _measurement(summary: Summary, operation: Operation, phase: Phase) -> Measurement:
    size = summary.checkpoint_bytes / GB
    known = spread([size / seconds for seconds in phase.seconds])
    rate = Spread(mean=size / phase.mean_seconds)
    if known is not None:
        rate = rate.model_copy(update={"median": known.median, "min": known.min, "max": known.max})
    return Measurement(
        operation=operation,
        ranks=summary.world_size,
        nodes=summary.nodes,
        ranks_per_node=summary.world_size if summary.nodes == 1 else None,
        repetitions=[
            Repetition(gb_per_second=size / seconds, bytes=summary.checkpoint_bytes, total_seconds=seconds)
            for seconds in phase.seconds
        ],
        gb_per_second=rate,
        total_seconds=spread(phase.seconds) or Spread(mean=phase.mean_seconds),
    )


def _doubts(summary: Summary, operation: Operation, phase: Phase) -> list[Doubt]:
    what = "saves" if operation is Operation.WRITE else "loads"
    doubts = [
        Doubt(
            code=DoubtCode.UNIT_CORRECTED,
            message="DLIO's keys say GB where the values are GiB; they were converted, and the rate is all bytes "
            "over all seconds in place of its mean of rates.",
        ),
        Doubt(
            code=DoubtCode.PARTIAL_RANKS,
            message="The summary has the times of rank 0 alone, and another may have been slower; convert the "
            "run with every rank's per_epoch_stats.json to dcp-timing.",
        ),
    ]
    if operation is Operation.WRITE:
        doubts.append(
            Doubt(
                code=DoubtCode.FSYNC_UNKNOWN,
                message="The summary does not say whether the saves were made durable; post a dcp-timing document "
                "that says sync_files.",
            )
        )
    elif summary.nodes == 1:
        doubts.append(
            Doubt(
                code=DoubtCode.CACHED_READ,
                message="The loads ran on one node, which may hold in memory what it saved; load on other nodes, or "
                "drop the caches.",
            )
        )
    elif (
        summary.memory_bytes is None
        or summary.checkpoint_bytes / summary.nodes < CACHE_MULTIPLE * summary.memory_bytes
    ):
        doubts.append(
            Doubt(
                code=DoubtCode.CACHED_READ,
                message="Each node loaded what it may hold in memory: its share of a checkpoint is not three times "
                "its memory, or that is not told; drop the caches before loading.",
            )
        )
    # The largest and the smallest lie at least two standard deviations apart.
    least_width = 2 * (phase.rate_deviation or 0) / phase.mean_rate
    if not phase.seconds and least_width > WIDE_SPREAD_FRACTION:
        doubts.append(
            Doubt(
                code=DoubtCode.WIDE_SPREAD,
                message=f"The rates of the {what} lie at least {least_width:.0%} of their mean apart; repeat the "
                "run on a quiet system, with more checkpoints.",
            )
        )
    return doubts


def parse(document: Document) -> Record:
    """Return what a DLIO summary holds.

    Raises:
        UnreadableDocument: As `read_summary` says.
    """
    summary = read_summary(document)
    made: list[Measurement] = []
    doubts: list[Doubt] = []
    phases: Sequence[tuple[Operation, Phase | None]] = (
        (Operation.WRITE, summary.save),
        (Operation.READ, summary.load),
    )
    for operation, phase in phases:
        if phase is None:
            continue
        doubts += [each.about(len(made)) for each in _doubts(summary, operation, phase)]
        made.append(_measurement(summary, operation, phase))
    counted = [at for at, measurement in enumerate(made) if measurement.repetitions]
    doubts += [each for each in repetition_doubts(made) if each.measurement in counted]
    return Record(tool="dlio", format=NAME, measurements=made, doubts=merged(doubts, len(made)))
