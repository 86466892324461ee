"""Scenarios and runs that the tests of the judgement are made of.

The scenario of most tests is the article's: 405B parameters of 14 bytes (5.67 TB) on 16,384 GPUs in 2,048
nodes, a sync save of 60 s every 600 s (94.5 GB/s), a restore in 120 s (47.25 GB/s), 346,069,336 bytes a GPU.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from service.judgement.doubts import Drill
from service.judgement.gap import judge
from service.judgement.report import EvidenceChoice, GapReport, TargetReport
from service.parsers.measurement import (
    DcpOp,
    DcpOperation,
    DcpSummary,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Repetition,
    spread,
)
from service.parsers.run import BenchmarkRun, Condition
from service.sizing.size import size
from service.sizing.sizing import TargetId
from service.sizing.spec import ScenarioSpec

SCENARIO_ID = UUID(int=1)
SHARD_BYTES = 346_069_336


def scenario(**blocks: Any) -> ScenarioSpec:  # noqa: ANN401
    """The article's sync scenario, with blocks replaced; None takes a block out."""
    body: dict[str, Any] = {
        "model": {"parameters": 405_000_000_000, "bytes_per_parameter": 14},
        "cluster": {"gpus": 16384, "gpus_per_node": 8},
        "failures": {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16384},
        "restart": {"seconds": 600},
        "save": {"mode": "sync", "blocking_seconds": 60},
        "interval": {"rule": "fixed", "seconds": 600},
        "restore": {"target_seconds": 120},
        "prices": {"gpu_hour_usd": 2.35},
    }
    return ScenarioSpec.model_validate(body | blocks)


def async_scenario(**blocks: Any) -> ScenarioSpec:  # noqa: ANN401
    """The article's async scenario: it stops for 5 s, and persists 23.625 GB/s, so 240 s of lag."""
    return scenario(**({"save": {"mode": "async", "blocking_seconds": 5, "headroom": 2.5}} | blocks))


def one_node_scenario() -> ScenarioSpec:
    """14 GB on one node of 8 GPUs: 10 s to save (1.4 GB/s, 0.9 files/s), 20 s to restore (0.7 GB/s)."""
    return scenario(
        model={"parameters": 1_000_000_000, "bytes_per_parameter": 14},
        cluster={"gpus": 8, "gpus_per_node": 8},
        failures={"mtbf_hours": 1000},
        save={"mode": "sync", "blocking_seconds": 10},
        restore={"target_seconds": 20},
    )


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def run(
    *,
    number: int = 1,
    day: int = 1,
    ran_day: int | None = None,
    measurements: Sequence[Measurement] | None = None,
    operations: Sequence[DcpOperation] | None = None,
    doubts: Sequence[Doubt] = (),
    conditions: Sequence[Condition] = (),
    revision: int = 1,
    label: str | None = "pfs-a",
) -> BenchmarkRun:
    """A run with the id `number`, received on a day of November 2026."""
    return BenchmarkRun(
        id=UUID(int=number),
        scenario_id=SCENARIO_ID,
        scenario_revision=revision,
        received_at=at(day),
        ran_at=at(ran_day) if ran_day is not None else None,
        sha256="0" * 64,
        document_bytes=1,
        conditions=list(conditions),
        storage_label=label,
        tool="ior" if operations is None else "torch.distributed.checkpoint",
        format="ior-json" if operations is None else "dcp-timing",
        measurements=list(measurements) if measurements is not None else None,
        operations=list(operations) if operations is not None else None,
        summary=summary(operations) if operations is not None else None,
        doubts=list(doubts),
    )


def ior(
    *rates: float,
    nodes: int | None = 2048,
    operation: Operation = Operation.WRITE,
    ranks_per_node: int = 8,
    block_bytes: int = SHARD_BYTES,
    total_seconds: Sequence[float] | None = None,
    on_ranks: int | None = None,
) -> Measurement:
    """An IOR measurement with these rates; without times of its own it says none. [GB/s]"""
    return Measurement(
        operation=operation,
        ranks=on_ranks if on_ranks is not None else (nodes * ranks_per_node if nodes is not None else None),
        nodes=nodes,
        block_bytes=block_bytes,
        segments=1,
        repetitions=[Repetition(gb_per_second=rate) for rate in rates],
        gb_per_second=spread(rates),
        total_seconds=spread(total_seconds or ()),
    )


def mdtest(*rates: float, nodes: int | None = 2048) -> Measurement:
    """An mdtest measurement of file creates. [1/s]"""
    return Measurement(
        operation=Operation.FILE_CREATE,
        ranks=nodes * 8 if nodes is not None else None,
        nodes=nodes,
        repetitions=[Repetition(per_second=rate) for rate in rates],
        per_second=spread(rates),
    )


def dcp(
    op: DcpOp,
    *,
    seconds: float | None,
    nodes: int = 2048,
    ranks: int | None = None,
    status: str = "ok",
    **figures: Any,  # noqa: ANN401
) -> DcpOperation:
    """A DCP operation; the rates follow from the bytes and the time as the format's page has it."""
    total, size_bytes = figures.get("bytes_total"), figures.get("checkpoint_bytes")
    over = figures.get("drain_seconds") if op is DcpOp.ASYNC_SAVE else seconds
    rates: dict[str, float] = {}
    if over and total is not None:
        is_save = op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE)
        rates["write_gb_per_second" if is_save else "restore_gb_per_second"] = total / 1e9 / over
    if over and size_bytes is not None and op in (DcpOp.LOAD, DcpOp.RESHARDED_LOAD):
        rates["restore_effective_gb_per_second"] = size_bytes / 1e9 / over
    world = ranks if ranks is not None else nodes * 8
    body: dict[str, Any] = {
        "op": op,
        "status": status,
        "world_size": world,
        "nodes": nodes,
        "ranks_reporting": world,
        "partial_ranks": False,
        "end_to_end_seconds": seconds,
    }
    return DcpOperation(**(body | rates | figures))


def summary(operations: Sequence[DcpOperation]) -> dict[DcpOp, DcpSummary]:
    """The run figures, as the format's page has them."""
    found: dict[DcpOp, DcpSummary] = {}
    for op in {each.op for each in operations}:
        counted = [each for each in operations if each.op is op and each.status == "ok" and not each.warmup]
        pairs = [
            (each.bytes_total, each.drain_seconds if op is DcpOp.ASYNC_SAVE else each.end_to_end_seconds)
            for each in counted
        ]
        known = [(total, seconds) for total, seconds in pairs if total is not None and seconds is not None]
        whole = bool(known) and len(known) == len(pairs)
        found[op] = DcpSummary(
            count=len(counted),
            gb_per_second=sum(pair[0] for pair in known) / 1e9 / sum(pair[1] for pair in known)
            if whole
            else None,
        )
    return found


def doubt(code: DoubtCode, measurement: int | None = None) -> Doubt:
    return Doubt(code=code, measurement=measurement, message=f"There is {code}.")


def report_on(
    spec: ScenarioSpec,
    *runs: BenchmarkRun,
    revision: int = 1,
    conditions: Sequence[Condition] = (),
    drill: Drill | None = None,
    **choice: Any,  # noqa: ANN401
) -> GapReport:
    """The report on these runs, whatever the storage of the newest."""
    return judge(
        spec=spec,
        sizing=size(spec),
        scenario_id=SCENARIO_ID,
        scenario_revision=revision,
        runs=runs,
        storage_label=None,
        choice=EvidenceChoice(conditions=list(conditions), **choice),
        drill=drill,
    )


def target_of(report: GapReport, target_id: TargetId) -> TargetReport:
    return next(target for target in report.targets if target.id is target_id)


def codes(target: TargetReport) -> list[DoubtCode]:
    return [each.code for each in target.doubts]
