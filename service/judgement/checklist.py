"""The checklist of a scenario: which of the things that an expert asks for are shown, and which are a hope.

The items are those of "Checkpoint I/O Sizing: Write Bandwidth for 70B-405B". Each is proved by runs, stated by an
input, stale, or open; what was measured and falls short, or was measured on too few nodes, stays open.
"""

from collections.abc import Mapping, Sequence

from service.judgement import sentences
from service.judgement.report import (
    ChecklistId,
    ChecklistItem,
    ChecklistStatus,
    Status,
    TargetReport,
)
from service.parsers.measurement import DoubtCode
from service.sizing.sizing import Sizing, TargetId
from service.sizing.spec import IntervalRule, SaveMode, ScenarioSpec
from service.sizing.state import extra_bytes
from service.units import TB

TITLES: dict[ChecklistId, str] = {
    ChecklistId.CHECKPOINT_BYTES: "checkpoint bytes measured",
    ChecklistId.INTERVAL: "interval from your own failure rate",
    ChecklistId.STALL_BUDGET: "stall budget written down",
    ChecklistId.SAVE_MODE: "sync or async decided",
    ChecklistId.PERSIST_BANDWIDTH: "persist bandwidth at least size over interval, with headroom",
    ChecklistId.METADATA_RATE: "metadata rate tested",
    ChecklistId.RESTART_READ: "restart read tested, also resharded",
    ChecklistId.RETENTION: "retention tier sized",
    ChecklistId.WRITE_UNDER_READ_LOAD: "write tested under read load",
    ChecklistId.LOADER_AND_RNG_STATE: "data-loader and RNG state included",
    ChecklistId.SEPARATE_PROCESS_GROUP: "separate process group for checkpoint collectives",
}
"""What each item asks for, in the words of the article."""

Targets = Mapping[TargetId, TargetReport]


def checklist(*, spec: ScenarioSpec, sizing: Sizing, targets: Sequence[TargetReport]) -> list[ChecklistItem]:
    """Return every item of the checklist with its state.

    Args:
        spec: The scenario, which states some of them.
        sizing: What `size` gives for it.
        targets: The judged targets, which prove the others.
    """
    by_id = {target.id: target for target in targets}
    return [
        _checkpoint_bytes(by_id),
        _interval(spec, sizing),
        _stall_budget(spec, sizing),
        _save_mode(spec),
        _persist_bandwidth(spec, by_id),
        _metadata_rate(spec, by_id),
        _restart_read(spec, by_id),
        _retention(spec, sizing),
        _under_read_load(spec, by_id),
        _loader_and_rng_state(spec),
        _process_group(spec),
    ]


def _item(
    item: ChecklistId,
    status: ChecklistStatus,
    sentence: str,
    *,
    by: Sequence[TargetReport] = (),
    pointers: Sequence[str] = (),
) -> ChecklistItem:
    run_ids = dict.fromkeys(run_id for target in by for run_id in target.run_ids)
    return ChecklistItem(
        id=item,
        title=TITLES[item],
        status=status,
        sentence=sentence,
        run_ids=list(run_ids),
        pointers=list(pointers),
    )


def _open(
    item: ChecklistId, sentence: str, *, by: Sequence[TargetReport] = (), pointers: Sequence[str] = ()
) -> ChecklistItem:
    return _item(item, ChecklistStatus.OPEN, sentence, by=by, pointers=pointers)


def _stated(item: ChecklistId, sentence: str, *pointers: str) -> ChecklistItem:
    return _item(item, ChecklistStatus.STATED, sentence, pointers=pointers)


def _checkpoint_bytes(targets: Targets) -> ChecklistItem:
    target = targets[TargetId.CHECKPOINT_BYTES]
    if target.status not in (Status.MET, Status.MISSED):
        return _open(ChecklistId.CHECKPOINT_BYTES, target.reason, by=[target])
    sentence = target.reason
    if target.bytes_per_parameter is not None:
        sentence += f" {target.bytes_per_parameter.sentence}"
    # Measured it is, also where the scenario assumes another size: that the target says.
    return _item(ChecklistId.CHECKPOINT_BYTES, ChecklistStatus.PROVED, sentence, by=[target])


def _interval(spec: ScenarioSpec, sizing: Sizing) -> ChecklistItem:
    exact = f"{sentences.number(sizing.interval.exact_seconds)} s"
    if spec.failures.preset is not None:
        return _open(
            ChecklistId.INTERVAL,
            f"The failure rate is that of the preset {spec.failures.preset}, not your own: count your failures, and "
            "give observed_failures, observed_hours and observed_gpus." + _counted(sizing),
            pointers=["#/failures/preset"],
        )
    if spec.interval.rule is IntervalRule.FIXED:
        return _open(
            ChecklistId.INTERVAL,
            f"The interval is fixed at {sentences.number(sizing.interval.seconds)} s; by the failures that are "
            f"stated the best one is {exact}: take it from them with the rule exact.{_counted(sizing)}",
            pointers=["#/interval"],
        )
    return _stated(
        ChecklistId.INTERVAL,
        f"The interval of {sentences.number(sizing.interval.seconds)} s follows by the rule {spec.interval.rule} from "
        f"the failures that are stated.{_counted(sizing)}",
        "#/failures",
    )


def _counted(sizing: Sizing) -> str:
    """Return the sentence that says what the failures count, where anybody said."""
    counts = sizing.failures.counts
    return f" Counted: {counts.removesuffix('.')}." if counts is not None else ""


def _stall_budget(spec: ScenarioSpec, sizing: Sizing) -> ChecklistItem:
    seconds = f"{sentences.number(sizing.blocking.allowed_seconds)} s"
    if spec.save.blocking_seconds is not None:
        return _stated(
            ChecklistId.STALL_BUDGET, f"A save may stop training for {seconds}.", "#/save/blocking_seconds"
        )
    if spec.save.overhead_fraction is not None:
        return _stated(
            ChecklistId.STALL_BUDGET,
            f"A save may stop training for {sentences.percent(spec.save.overhead_fraction)} of the interval: "
            f"{seconds}.",
            "#/save/overhead_fraction",
        )
    return _open(
        ChecklistId.STALL_BUDGET,
        f"The stall of {seconds} is what the storage gives, not what training may lose: state blocking_seconds.",
        pointers=["#/storage"],
    )


def _save_mode(spec: ScenarioSpec) -> ChecklistItem:
    return _stated(ChecklistId.SAVE_MODE, f"Saves are {spec.save.mode}.", "#/save/mode")


def _persist_bandwidth(spec: ScenarioSpec, targets: Targets) -> ChecklistItem:
    if spec.save.headroom == 1.0:
        return _open(
            ChecklistId.PERSIST_BANDWIDTH,
            "The scenario asks for no headroom, so one slow save makes the next one wait: give a headroom of 2 to 3. "
            + targets[TargetId.WRITE_BANDWIDTH].reason,
            by=[targets[TargetId.WRITE_BANDWIDTH]],
            pointers=["#/save/headroom"],
        )
    stated = spec.storage.write_gb_per_second if spec.storage is not None else None
    return _measured_or_stated(
        ChecklistId.PERSIST_BANDWIDTH,
        targets[TargetId.WRITE_BANDWIDTH],
        stated,
        "#/storage/write_gb_per_second",
    )


def _metadata_rate(spec: ScenarioSpec, targets: Targets) -> ChecklistItem:
    stated = spec.storage.file_creates_per_second if spec.storage is not None else None
    return _measured_or_stated(
        ChecklistId.METADATA_RATE,
        targets[TargetId.FILE_CREATE_RATE],
        stated,
        "#/storage/file_creates_per_second",
    )


def _measured_or_stated(
    item: ChecklistId, target: TargetReport, stated: float | None, pointer: str
) -> ChecklistItem:
    if target.status is Status.MET:
        return _item(item, ChecklistStatus.PROVED, target.reason, by=[target])
    if target.status is Status.UNMEASURED and stated is not None:
        amount = sentences.quantity(stated, target.unit)
        if stated >= target.value:
            return _stated(
                item, f"The storage is said to give {amount}; {sentences.needed(target)} is needed.", pointer
            )
        return _open(
            item,
            f"The storage is said to give {amount}, and {sentences.needed(target)} is needed.",
            pointers=[pointer],
        )
    return _open(item, target.reason, by=[target])


def _restart_read(spec: ScenarioSpec, targets: Targets) -> ChecklistItem:
    if spec.restore is None:
        return _open(
            ChecklistId.RESTART_READ,
            "The scenario says nothing of how fast a restart must load: give restore.target_seconds.",
        )
    load = targets[TargetId.LOAD_SECONDS]
    # A benchmark stands in for a load that nobody timed, or timed long ago; never for one that did not suffice.
    stands_in = load.status in (Status.UNMEASURED, Status.MET)
    plain = _freshest(load, targets[TargetId.READ_BANDWIDTH]) if stands_in else None
    resharded = _freshest(targets[TargetId.RESHARDED_LOAD_SECONDS])
    shown = [target for target in (plain, resharded) if target is not None]
    missing = [
        targets[wanted].reason
        for wanted, found in (
            (TargetId.LOAD_SECONDS, plain),
            (TargetId.RESHARDED_LOAD_SECONDS, resharded),
        )
        if found is None
    ]
    if missing:
        return _open(ChecklistId.RESTART_READ, " ".join(missing), by=shown)
    untold = [doubt for target in shown for doubt in target.doubts if doubt.code is DoubtCode.CACHE_UNKNOWN]
    if untold:
        return _open(ChecklistId.RESTART_READ, untold[0].message, by=shown)
    stale = [doubt for target in shown for doubt in target.doubts if doubt.code is DoubtCode.STALE]
    if stale:
        return _item(ChecklistId.RESTART_READ, ChecklistStatus.STALE, stale[0].message, by=shown)
    return _item(
        ChecklistId.RESTART_READ,
        ChecklistStatus.PROVED,
        " ".join(target.reason for target in shown),
        by=shown,
    )


def _freshest(*targets: TargetReport) -> TargetReport | None:
    """Return the first target that is met and not stale, else the first that is met."""
    met = [target for target in targets if target.status is Status.MET]
    return min(met, key=_is_stale, default=None)


def _is_stale(target: TargetReport) -> bool:
    return any(doubt.code is DoubtCode.STALE for doubt in target.doubts)


def _retention(spec: ScenarioSpec, sizing: Sizing) -> ChecklistItem:
    if spec.retention is None or sizing.capacity is None:
        return _open(
            ChecklistId.RETENTION,
            "The scenario says nothing of how many checkpoints are kept: give retention.",
        )
    copies, peak = spec.retention.hot_copies, sizing.capacity.hot_peak_bytes
    need = (
        f"{copies:,} {'copy' if copies == 1 else 'copies'} on the hot tier, with the one that is being written, "
        f"take {sentences.bytes_in_words(peak)}"
    )
    usable = spec.storage.usable_tb if spec.storage is not None else None
    if usable is None:
        return _stated(ChecklistId.RETENTION, f"{need}.", "#/retention")
    there = f"{sentences.bytes_in_words(usable * TB)} of usable space"
    if peak > usable * TB:
        return _open(
            ChecklistId.RETENTION,
            f"{need}, and there are {there}.",
            pointers=["#/retention", "#/storage/usable_tb"],
        )
    return _stated(ChecklistId.RETENTION, f"{need}, of {there}.", "#/retention", "#/storage/usable_tb")


def _under_read_load(spec: ScenarioSpec, targets: Targets) -> ChecklistItem:
    target = targets.get(TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)
    if target is None:
        return _stated(
            ChecklistId.WRITE_UNDER_READ_LOAD,
            "Saves are sync, so the job's own data loaders stand still while one is written.",
            "#/save/mode",
        )
    status = ChecklistStatus.PROVED if target.status is Status.MET else ChecklistStatus.OPEN
    return _item(ChecklistId.WRITE_UNDER_READ_LOAD, status, target.reason, by=[target])


def _loader_and_rng_state(spec: ScenarioSpec) -> ChecklistItem:
    extra = extra_bytes(spec)
    if extra:
        return _stated(
            ChecklistId.LOADER_AND_RNG_STATE,
            f"{sentences.bytes_in_words(extra)} are saved beside the state of the parameters.",
            "#/model/extra_bytes_per_rank" if spec.model.extra_bytes_per_rank else "#/model/extra_bytes",
        )
    return _open(
        ChecklistId.LOADER_AND_RNG_STATE,
        "A checkpoint is sized for the state of the parameters alone: include the data loaders' and the random "
        "number generators', and state their size in extra_bytes_per_rank or extra_bytes.",
        pointers=["#/model/extra_bytes"],
    )


def _process_group(spec: ScenarioSpec) -> ChecklistItem:
    pointer = "#/save/separate_process_group"
    if spec.save.separate_process_group:
        return _stated(
            ChecklistId.SEPARATE_PROCESS_GROUP,
            "Checkpoint collectives have a process group of their own.",
            pointer,
        )
    if spec.save.mode is SaveMode.SYNC and spec.save.separate_process_group is None:
        return _stated(
            ChecklistId.SEPARATE_PROCESS_GROUP,
            "Saves are sync, so their collectives never run beside those of training.",
            "#/save/mode",
        )
    return _open(
        ChecklistId.SEPARATE_PROCESS_GROUP,
        "Async saves hold collectives while training holds its own, and on one process group they can hang: give "
        "them a group of their own, and state separate_process_group.",
        pointers=[pointer],
    )
