"""The plan as a whole: sizes, figures, and that what it promises is what the judgement then says."""

import math
from typing import Any

import pytest
from hypothesis import given, settings

from service.errors import Unsatisfiable
from service.judgement.report import Status
from service.parsers.measurement import (
    DcpOp,
    DcpOperation,
    Doubt,
    DoubtCode,
    Measurement,
    Operation,
    Repetition,
    spread,
)
from service.planning import case
from service.planning.commands import Blocks
from service.planning.planned import Launcher, PlannedTest, TestPlan
from service.sizing.size import size
from service.sizing.sizing import Sizing, TargetId
from service.sizing.spec import ScenarioSpec
from service.wire import EXACT_INTEGER_MAX
from tests.judgement.examples import dcp, report_on, run, target_of
from tests.planning.examples import SMALL, changed, one_test, planned, reach
from tests.sizing.scenarios import ARTICLE, bodies

ASYNC = changed(ARTICLE, save={"mode": "async", "blocking_seconds": 5, "headroom": 2.5})
KNOWN_MEMORY = changed(ARTICLE, cluster={"gpus": 16384, "gpu_preset": "h100-sxm"})
SMALL_MEMORY = changed(
    SMALL, cluster={"gpus": 4, "gpus_per_node": 2, "host_memory_bytes_per_node": 20_000_000}
)
UNEVEN = changed(ARTICLE, cluster={"gpus": 100, "gpus_per_node": 8}, shards={"writers": 90, "skew": 3.0})
LAST_NODE_NOT_FULL = changed(ARTICLE, cluster={"gpus": 1001, "gpus_per_node": 8})
FEW_WRITERS = changed(ARTICLE, cluster={"gpus": 64, "gpus_per_node": 8}, shards={"writers": 4})
OF_THE_405B = {"model": {"preset": "llama-3-405b"}, "restore": {"target_seconds": 120}}
ZERO_1 = changed(
    ARTICLE,
    **OF_THE_405B,
    cluster={"gpus": 16384, "parallelism": {"tensor": 8, "pipeline": 16, "zero_stage": 1}},
)
SMALL_ZERO_1 = changed(
    ARTICLE, model={"preset": "llama-3-8b"}, cluster={"gpus": 64, "parallelism": {"zero_stage": 1}}
)
SPREAD = changed(
    ARTICLE,
    **OF_THE_405B,
    cluster={"gpus": 16384, "parallelism": {"tensor": 8, "pipeline": 16, "replicas_written": "spread"}},
)
SCENARIOS: dict[str, dict[str, Any]] = {
    "sync": ARTICLE,
    "async": ASYNC,
    "memory known": KNOWN_MEMORY,
    "memory small": SMALL_MEMORY,
    "uneven": UNEVEN,
    "last node not full": LAST_NODE_NOT_FULL,
    "fewer writers than nodes": FEW_WRITERS,
    "half as many writers as nodes": changed(ARTICLE, shards={"writers": 1024}),
    "async of few writers": changed(ASYNC, cluster={"gpus": 64, "gpus_per_node": 8}, shards={"writers": 4}),
    "small": SMALL,
    "layout of a few full nodes": ZERO_1,
    "layout of a few full nodes, async": changed(ZERO_1, save=ASYNC["save"]),
    "layout of one full rank": SMALL_ZERO_1,
    "layout that spreads": SPREAD,
    "layout of few nodes that write": changed(
        ARTICLE,
        model={"preset": "llama-3-8b"},
        cluster={"gpus": 64, "parallelism": {"zero_stage": 3, "shard_group": 16}},
    ),
}


def test_the_articles_scenario_on_all_nodes() -> None:
    plan = planned(ARTICLE)
    assert (plan.nodes, plan.scenario_nodes, plan.full_scale) == (2048, 2048, True)
    assert plan.unproven == []
    write = one_test(plan, "ior_write")
    # 346,069,336 bytes a shard: 83 transfers of 4 MiB.
    assert (write.block_bytes, write.transfer_bytes) == (83 * 4_194_304, 4_194_304)
    assert (write.ranks, write.ranks_per_node, write.repetitions) == (16384, 8, 3)
    assert write.bytes_written == 3 * 83 * 4_194_304 * 16384
    assert write.expected_seconds == pytest.approx(3 * 83 * 4_194_304 * 16384 / 94.5e9)
    assert reach(write) == {
        TargetId.WRITE_BANDWIDTH: (94.5, "met"),
        TargetId.NODE_WRITE_BANDWIDTH: (94.5 / 2048, "met"),
        TargetId.SLOWEST_WRITER_SECONDS: (60.0, "met"),
    }
    assert reach(one_test(plan, "ior_read"))[TargetId.READ_BANDWIDTH] == (47.25, "met")
    create = one_test(plan, "mdtest_create")
    assert (create.ranks, create.files_per_rank) == (16384, 1)
    assert reach(create) == {TargetId.FILE_CREATE_RATE: (16385 / 60, "met")}
    assert create.expected_seconds == pytest.approx(6 * 16384 / (16385 / 60))
    assert [test.id for test in plan.tests] == [
        *("ior_write", "ior_read", "mdtest_create"),
        # The save of the other mode leaves nothing behind; the loads read those of the scenario's own.
        *("dcp_async_save", "dcp_save", "dcp_load", "dcp_resharded_load"),
    ]
    assert [test.id for test in planned(ASYNC).tests][4:6] == ["dcp_save", "dcp_async_save"]


def test_a_cut_plan_asks_each_node_for_its_share_and_says_what_it_cannot_prove() -> None:
    plan = planned(ASYNC, nodes=16)
    assert (plan.nodes, plan.full_scale) == (16, False)
    write = one_test(plan, "ior_write")
    assert write.ranks == 128
    assert reach(write) == {
        TargetId.WRITE_BANDWIDTH: (23.625 * 16 / 2048, "met_if_it_scales"),
        TargetId.NODE_WRITE_BANDWIDTH: (23.625 / 2048, "met_if_it_scales"),
        TargetId.SLOWEST_WRITER_SECONDS: (240.0, "met_if_it_scales"),
    }
    # A rate of creates is not shared out.
    assert reach(one_test(plan, "mdtest_create"))[TargetId.FILE_CREATE_RATE] == (
        16385 / 240,
        "met_if_it_scales",
    )
    assert {each.target_id: str(each.best) for each in plan.unproven} == {
        **{target.id: "met_if_it_scales" for target in size(ScenarioSpec.model_validate(ASYNC)).targets},
        TargetId.LOAD_SECONDS: "nothing",
        TargetId.RESHARDED_LOAD_SECONDS: "nothing",
        TargetId.CHECKPOINT_BYTES: "nothing",
    }
    assert any("60 nodes" in note for note in plan.notes)


@pytest.mark.parametrize(("nodes", "full"), [(1945, False), (1946, True), (2048, True)])
def test_from_so_many_nodes_on_a_plan_is_at_full_scale(nodes: int, full: bool) -> None:
    plan = planned(ARTICLE, nodes=nodes)
    assert plan.full_scale is full
    value = reach(one_test(plan, "ior_write"))[TargetId.WRITE_BANDWIDTH][0]
    assert value == (94.5 if full else pytest.approx(94.5 * nodes / 2048))


def test_the_fraction_that_counts_as_full_is_a_setting() -> None:
    assert planned(ARTICLE, nodes=1024, full_scale_low_fraction=0.5).full_scale


def test_more_nodes_than_the_scenario_has_are_refused() -> None:
    with pytest.raises(Unsatisfiable) as refused:
        planned(SMALL, nodes=3)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("nodes", "too_large")]


def test_more_bytes_than_can_be_counted_are_refused() -> None:
    body = changed(ARTICLE, model={"parameters": 10**14, "bytes_per_parameter": 64}, interval=None)
    with pytest.raises(Unsatisfiable) as refused:
        planned(body)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("nodes", "too_large")]


@pytest.mark.parametrize(
    ("shard", "block", "transfer"),
    [
        (1, 4096, 4096),
        (4096, 4096, 4096),
        (4097, 8192, 4096),
        (10**6, 2**20, 2**20),
        (346_069_336, 348_127_232, 4_194_304),
        (4 * 2**20, 4 * 2**20, 4 * 2**20),
        (10**12, 10**12 + 1_765_376, 4_194_304),
    ],
)
def test_a_block_is_the_shard_rounded_up_to_whole_transfers(shard: int, block: int, transfer: int) -> None:
    assert case.blocks_for(shard) == Blocks(block, transfer)


def test_a_layout_whose_writers_share_few_nodes_is_tested_from_those() -> None:
    def planned_of(**layout: object) -> TestPlan:
        hybrid = {"zero_stage": 3, "shard_group": 8, **layout}
        return planned(
            changed(ARTICLE, model={"preset": "llama-3-8b"}, cluster={"gpus": 32, "parallelism": hybrid})
        )

    few, all_write = planned_of(), planned_of(replicas_written="spread")
    for plan, nodes in ((few, 1), (all_write, 4)):
        write = one_test(plan, "ior_write")
        assert (write.nodes, write.ranks_per_node) == (nodes, 8)
    assert "run 8 ranks on each of 1 node" in " ".join(few.notes)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_reaches_a_figure_gets_the_verdict_that_the_plan_promises(name: str, cut: bool) -> None:
    body = SCENARIOS[name]
    nodes = max(1, planned(body).scenario_nodes // 3) if cut else None
    plan = planned(body, nodes=nodes)
    spec = ScenarioSpec.model_validate(body)
    for test in plan.tests:
        for proof in test.proofs:
            if not test.scripted:
                continue
            measurement = _measured(test, proof.target_id, proof.value)
            told = run(measurements=[measurement], conditions=test.conditions, doubts=_own_doubts(test))
            target = target_of(report_on(spec, told), proof.target_id)
            promised = Status.NOT_COMPARABLE if proof.best == "nothing" else Status(proof.best)
            assert target.status is promised, (proof, target.reason)
            worse = run(
                measurements=[_measured(test, proof.target_id, proof.value, worse=True)],
                conditions=test.conditions,
                doubts=_own_doubts(test),
            )
            assert target_of(report_on(spec, worse), proof.target_id).status in (
                Status.MISSED,
                # A heavier load cannot show a miss, nor can a rate of creates on fewer nodes.
                Status.NOT_COMPARABLE,
            )


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_checkpoint_that_reaches_a_figure_gets_the_verdict_that_the_plan_promises(
    name: str, cut: bool
) -> None:
    body = SCENARIOS[name]
    nodes = max(1, planned(body).scenario_nodes // 3) if cut else None
    plan = planned(body, nodes=nodes)
    spec = ScenarioSpec.model_validate(body)
    seen = set()
    for test in plan.tests:
        for proof in test.proofs:
            if test.scripted:
                continue
            seen.add(proof.target_id)
            told = run(operations=[_checkpointed(plan, test, proof.target_id, proof.value, size(spec))] * 3)
            target = target_of(report_on(spec, told), proof.target_id)
            promised = Status.NOT_COMPARABLE if proof.best == "nothing" else Status(proof.best)
            assert target.status is promised, (test.id, proof, target.reason)
    assert {TargetId.BLOCKING_SECONDS, TargetId.LOAD_SECONDS, TargetId.RESHARDED_LOAD_SECONDS} <= seen


def _checkpointed(
    plan: TestPlan, test: PlannedTest, target_id: TargetId, value: float, sizing: Sizing
) -> DcpOperation:
    """Return an operation of a test that just reaches a figure, of a job on its nodes."""
    op = DcpOp(test.id.removeprefix("dcp_"))
    held = round(sizing.checkpoint.bytes * min(1.0, test.nodes / plan.scenario_nodes))
    if plan.full_scale and target_id in (TargetId.LOAD_SECONDS, TargetId.RESHARDED_LOAD_SECONDS):
        held = sizing.checkpoint.bytes
    rate = value
    if target_id in (TargetId.NODE_WRITE_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH):
        needed = sizing.write if target_id is TargetId.NODE_WRITE_BANDWIDTH else sizing.read
        assert needed is not None
        # On all nodes the fullest has its part of the checkpoint; on fewer only the mean node is known.
        whole = test.nodes == plan.scenario_nodes
        rate *= needed.required_gb_per_second / needed.node_gb_per_second if whole else test.nodes
    is_rate = target_id in (
        TargetId.WRITE_BANDWIDTH,
        TargetId.NODE_WRITE_BANDWIDTH,
        TargetId.READ_BANDWIDTH,
        TargetId.NODE_READ_BANDWIDTH,
    )
    amplification = sizing.read.read_amplification if sizing.read is not None else 1.0
    moved = held if op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE) else round(held * amplification)
    seconds = moved / 1e9 / rate if is_rate else value
    figures: dict[str, Any] = {"bytes_total": moved, "checkpoint_bytes": held}
    if op in (DcpOp.SAVE, DcpOp.ASYNC_SAVE):
        figures |= {
            "largest_rank_bytes": sizing.checkpoint.largest_shard_bytes,
            "blocked_seconds": value,
            "io_seconds_max": value,
        }
    if op is DcpOp.ASYNC_SAVE:
        figures |= {"drain_seconds": seconds, "durable_lag_seconds": value}
    return dcp(op, seconds=seconds, nodes=test.nodes, ranks=test.ranks, **figures)


def _own_doubts(test: PlannedTest) -> list[Doubt]:
    """Return what IOR's parser would doubt."""
    if test.reordered and test.nodes == 1:
        return [Doubt(code=DoubtCode.CACHED_READ, measurement=0, message="One node.")]
    return []


def _measured(test: PlannedTest, target_id: TargetId, value: float, *, worse: bool = False) -> Measurement:
    """Return a measurement by a test that just reaches a figure, or just does not."""
    is_time = target_id is TargetId.SLOWEST_WRITER_SECONDS
    value *= (1.01 if is_time else 0.99) if worse else 1.0
    if target_id in (TargetId.NODE_WRITE_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH):
        value *= test.nodes
    moved = (test.block_bytes or 0) * (test.segments or 1) * test.ranks
    operations = {"ior_read": Operation.READ, "mdtest_create": Operation.FILE_CREATE}
    return Measurement(
        operation=operations.get(test.id, Operation.WRITE),
        ranks=test.ranks,
        nodes=test.nodes,
        ranks_per_node=test.ranks_per_node,
        block_bytes=test.block_bytes,
        segments=test.segments,
        repetitions=[Repetition(bytes=moved or None)] * test.repetitions,
        gb_per_second=spread([value]) if test.block_bytes and not is_time else None,
        per_second=spread([value]) if not test.block_bytes else None,
        total_seconds=spread([value]) if is_time else None,
    )


def test_uneven_shards_are_tested_twice_with_the_bytes_of_a_save_each() -> None:
    plan = planned(ZERO_1)
    every, largest = one_test(plan, "ior_write"), one_test(plan, "ior_write_largest_shards")
    # 98.3 nodes of 57.8 GB are 5.68 TB, and so are 16,384 ranks of 347 MB.
    assert (every.nodes, every.ranks_per_node, largest.nodes, largest.ranks_per_node) == (2048, 8, 98, 8)
    for test in (every, largest):
        assert test.bytes_written == pytest.approx(3 * 5.682e12, rel=0.01)
        assert test.expected_seconds == pytest.approx(3 * 60, rel=0.01)
    assert plan.script_peak_bytes == pytest.approx(3 * 5.682e12, rel=0.01)
    figures = {target.id: target.value for target in size(ScenarioSpec.model_validate(ZERO_1)).targets}
    assert figures[TargetId.NODE_WRITE_BANDWIDTH] == pytest.approx(0.9632, rel=1e-3)
    assert reach(every) == {TargetId.WRITE_BANDWIDTH: (figures[TargetId.WRITE_BANDWIDTH], "met")}
    assert reach(largest) == {
        target_id: (figures[target_id], "met")
        for target_id in (TargetId.NODE_WRITE_BANDWIDTH, TargetId.SLOWEST_WRITER_SECONDS)
    }
    assert plan.unproven == []


@pytest.mark.parametrize(("seconds", "status"), [(60.0, Status.MET), (61.5, Status.MISSED)])
def test_a_storage_that_saves_the_real_checkpoint_in_time_passes_and_a_slower_one_fails(
    seconds: float, status: Status
) -> None:
    """It takes so many bytes a second from whoever writes them, and a node is no limit."""
    plan, spec = planned(ZERO_1), ScenarioSpec.model_validate(ZERO_1)
    rate = size(spec).checkpoint.bytes / seconds / 1e9
    runs = []
    for number, test_id in enumerate(("ior_write_largest_shards", "ior_write"), start=1):
        test = one_test(plan, test_id)
        moved = test.bytes_written / test.repetitions
        measurement = _measured(test, TargetId.WRITE_BANDWIDTH, rate)
        measurement = measurement.model_copy(update={"total_seconds": spread([moved / rate / 1e9])})
        runs.append(run(number=number, day=number, measurements=[measurement]))
    report = report_on(spec, *runs)
    for target_id in (
        TargetId.WRITE_BANDWIDTH,
        TargetId.NODE_WRITE_BANDWIDTH,
        TargetId.SLOWEST_WRITER_SECONDS,
    ):
        target = target_of(report, target_id)
        assert (target.status, target.full_scale) == (status, True), target.reason


def test_all_nodes_that_write_alike_do_not_show_that_the_fullest_is_too_slow() -> None:
    spec = ScenarioSpec.model_validate(ZERO_1)
    test = one_test(planned(ZERO_1), "ior_write")
    told = run(measurements=[_measured(test, TargetId.WRITE_BANDWIDTH, 95.0)])
    target = target_of(report_on(spec, told), TargetId.NODE_WRITE_BANDWIDTH)
    assert (target.status, target.measured) == (Status.NOT_COMPARABLE, 95.0 / 2048)
    assert "Only the fullest node must give 0.9632 GB/s" in target.reason
    # Eight nodes are far from what the storage has to bear: there it is a miss.
    few = _measured(test, TargetId.WRITE_BANDWIDTH, 4.0).model_copy(update={"nodes": 8, "ranks": 64})
    target = target_of(report_on(spec, run(measurements=[few])), TargetId.NODE_WRITE_BANDWIDTH)
    assert (target.status, target.measured) == (Status.MISSED, 0.5)


def test_every_rank_with_the_largest_shard_is_more_than_a_save_and_shows_no_miss() -> None:
    spec = ScenarioSpec.model_validate(ZERO_1)
    test = one_test(planned(ZERO_1), "ior_write_largest_shards")
    heavy = test.model_copy(update={"nodes": 2048, "ranks": 16384})
    for seconds, status in ((60.0, Status.MET), (1249.0, Status.NOT_COMPARABLE)):
        told = run(measurements=[_measured(heavy, TargetId.SLOWEST_WRITER_SECONDS, seconds)])
        target = target_of(report_on(spec, told), TargetId.SLOWEST_WRITER_SECONDS)
        assert (target.status, target.basis) == (status, "heavier_load"), target.reason
    assert "118.4 TB together, where the scenario has 5.682 TB" in target.reason


def test_a_checkpointers_save_shows_what_its_fullest_node_had() -> None:
    spec = ScenarioSpec.model_validate(ZERO_1)
    checkpoint = size(spec).checkpoint
    saved: dict[str, Any] = {"bytes_total": checkpoint.bytes, "seconds": 60.0, "ranks": 16384}
    told = run(operations=[dcp(DcpOp.SAVE, nodes=2048, **saved)] * 3)
    target = target_of(report_on(spec, told), TargetId.NODE_WRITE_BANDWIDTH)
    assert target.status is Status.MET
    assert target.measured == pytest.approx(checkpoint.largest_node_bytes / 60e9)
    # Of one on fewer nodes the fullest is unknown: its mean may be below, and shows no miss.
    told = run(operations=[dcp(DcpOp.SAVE, nodes=1024, **saved)] * 3)
    target = target_of(report_on(spec, told), TargetId.NODE_WRITE_BANDWIDTH)
    assert target.status is Status.NOT_COMPARABLE
    assert "a mean over them" in target.reason


def test_writers_that_are_fewer_than_the_nodes_have_a_node_each() -> None:
    plan = planned(FEW_WRITERS)
    assert (plan.nodes, plan.scenario_nodes, plan.full_scale) == (8, 8, True)
    assert (one_test(plan, "ior_write").nodes, one_test(plan, "mdtest_create").nodes) == (4, 4)
    assert (one_test(plan, "ior_write").ranks, one_test(plan, "dcp_save").ranks) == (4, 64)
    assert planned(changed(FEW_WRITERS, restore=None)).nodes == 4
    assert any("4 writers" in note for note in plan.notes)


@pytest.mark.parametrize("writers", [3, 1024])
def test_where_all_writers_take_part_they_must_reach_the_whole_figure_in_its_time(writers: int) -> None:
    plan = planned(changed(ARTICLE, shards={"writers": writers}))
    write, read = one_test(plan, "ior_write"), one_test(plan, "ior_read")
    assert (write.nodes, write.ranks, write.ranks_per_node) == (writers, writers, 1)
    assert (plan.full_scale, plan.unproven) == (True, [])
    assert reach(write)[TargetId.WRITE_BANDWIDTH] == (94.5, "met")
    assert reach(read)[TargetId.READ_BANDWIDTH] == (47.25, "met")
    assert "share" not in write.proofs[0].sentence
    # A repetition takes what it may, but for the rounding of its blocks.
    assert write.expected_seconds / write.repetitions == pytest.approx(60, rel=1e-3)
    # At a restart all ranks read, each its share; they write it before, which takes as long as a save.
    assert (read.nodes, read.ranks, read.block_bytes) == (2048, 16384, 83 * 4_194_304)
    assert read.expected_seconds / read.repetitions == pytest.approx(120 + 60, rel=0.01)
    own, back = read.commands
    assert ("-w" in own.argv, "-m" in own.argv, "-r" in back.argv, "-m" in back.argv) == (True,) * 4
    assert write.notes == []


def test_half_of_the_writers_must_reach_half_of_the_figure() -> None:
    plan = planned(changed(ARTICLE, shards={"writers": 1024}), nodes=512)
    write = one_test(plan, "ior_write")
    assert reach(write)[TargetId.WRITE_BANDWIDTH] == (47.25, "met_if_it_scales")
    assert "on 512 nodes, their share of 94.5 GB/s (90,122 MiB/s) on 1,024" in write.proofs[0].sentence
    assert write.expected_seconds / write.repetitions == pytest.approx(60, rel=1e-3)
    assert {each.target_id: each.reason for each in plan.unproven}[TargetId.WRITE_BANDWIDTH].startswith(
        "512 of 1,024 nodes show"
    )


def test_a_job_that_is_cut_while_all_writers_take_part_is_told_apart() -> None:
    plan = planned(changed(ARTICLE, shards={"writers": 1024}), nodes=1500)
    assert (plan.nodes, plan.full_scale) == (1500, False)
    assert {str(each.target_id) for each in plan.unproven} == {
        *("blocking_seconds", "load_seconds", "resharded_load_seconds", "checkpoint_bytes"),
        *("read_bandwidth", "node_read_bandwidth"),
    }
    assert any(
        "whatever a read or the training job's tests reach is met_if_it_scales" in note for note in plan.notes
    )


@pytest.mark.parametrize(
    ("writers", "rate", "count"),
    [
        (None, 94.5, 1),  # thousands of files
        (1024, 94.5, 1),
        (64, 94.5, 2),  # 1.48 GB/s each
        (3, 94.5, 32),  # 31.5 GB/s each
        (3, 9.45, 4),  # 1.89 TB each, in the whole interval
    ],
)
def test_few_large_files_get_as_many_stripes_as_their_rate_and_size_need(
    writers: int | None, rate: float, count: int
) -> None:
    saves = {94.5: ARTICLE["save"], 9.45: {"mode": "async", "blocking_seconds": 5, "headroom": 1}}
    body = changed(ARTICLE, save=saves[rate])
    if writers is not None:
        body = changed(body, shards={"writers": writers})
    plan = planned(body, directory="/x")
    assert plan.lustre.argv[:4] == ["lfs", "setstripe", "-c", str(count)]
    assert {test.stripe_count for test in plan.tests} == {count}
    if count == 1:
        assert "one object" in plan.lustre.purpose
    else:
        assert f"a save writes only {writers} files" in plan.lustre.purpose
        lines = [command.line for command in one_test(plan, "dcp_save").commands]
        assert f"lfs setstripe -c {count} /x/{plan.folder}-dcp" in lines


def test_the_space_of_the_checkpointers_tests_is_counted() -> None:
    plan = planned(ARTICLE)
    checkpoint = 5_670_000_000_000
    assert plan.script_peak_bytes == 3 * 83 * 4_194_304 * 16384
    assert plan.checkpointer_bytes_written == 8 * checkpoint
    assert plan.peak_bytes == 4 * checkpoint
    assert any("removes what no later one reads" in note for note in plan.notes)


def test_without_a_restore_target_nothing_is_read() -> None:
    plan = planned(changed(ARTICLE, restore=None))
    assert not {"ior_read", "dcp_load", "dcp_resharded_load"} & {test.id for test in plan.tests}
    assert any("restore.target_seconds" in note for note in plan.notes)


def test_a_single_rank_cannot_be_resharded() -> None:
    plan = planned(changed(SMALL, cluster={"gpus": 1, "gpus_per_node": 1}))
    assert "dcp_resharded_load" not in {test.id for test in plan.tests}
    assert [each.target_id for each in plan.unproven] == [TargetId.RESHARDED_LOAD_SECONDS]
    assert "single rank" in plan.unproven[0].reason


@given(body=bodies())
@settings(max_examples=60)
def test_any_scenario_that_can_be_sized_can_be_planned(body: dict[str, Any]) -> None:
    try:
        size(ScenarioSpec.model_validate(body))
    except Unsatisfiable:
        return
    spec = ScenarioSpec.model_validate(body)
    if size(spec).checkpoint.largest_shard_bytes * size(spec).checkpoint.writers > EXACT_INTEGER_MAX / 16:
        return
    _assert_sound(planned(body, launcher=Launcher.SRUN))


def _assert_sound(plan: TestPlan) -> None:
    scripted = [test for test in plan.tests if test.scripted]
    assert plan.bytes_written == sum(test.bytes_written for test in scripted) <= EXACT_INTEGER_MAX
    assert plan.script_peak_bytes == max(test.peak_bytes for test in scripted)
    assert plan.peak_bytes == max(test.peak_bytes for test in plan.tests)
    assert plan.bytes_written + plan.checkpointer_bytes_written == sum(
        test.bytes_written for test in plan.tests
    )
    assert 0 < plan.expected_seconds < math.inf
    assert TestPlan.model_validate_json(plan.model_dump_json()) == plan
    for test in scripted:
        assert test.ranks == test.nodes * test.ranks_per_node
        assert test.nodes <= plan.nodes
        if test.block_bytes is not None and test.transfer_bytes is not None:
            assert test.block_bytes % test.transfer_bytes == 0
    promised = {proof.target_id for test in plan.tests for proof in test.proofs if proof.best == "met"}
    assert promised.isdisjoint(each.target_id for each in plan.unproven)
