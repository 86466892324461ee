"""A scenario and its sizing → the plan of the tests that settle it."""

import math
from collections.abc import Iterator, Sequence
from uuid import UUID

from service.errors import Fault, Unsatisfiable
from service.planning import amounts, commands
from service.planning.benchmarks import (
    ior_read,
    ior_write,
    ior_write_largest_shards,
    ior_write_under_read_load,
    mdtest_create,
)
from service.planning.case import LOADS, OBJECT_BYTES, OBJECT_GB_PER_SECOND, Case, blocks_for
from service.planning.checkpointer import dcp_async_save, dcp_load, dcp_resharded_load, dcp_save
from service.planning.commands import Place, Ranks, Site
from service.planning.planned import Best, Launcher, PlannedTest, TestPlan, Unproven
from service.sizing.sizing import Sizing, Target, TargetId, TargetUnit
from service.sizing.spec import ScenarioSpec
from service.wire import EXACT_INTEGER_MAX

_TIMES = frozenset({TargetId.SLOWEST_WRITER_SECONDS, TargetId.BLOCKING_SECONDS, TargetId.PERSIST_SECONDS})
_OF_ALL_NODES = frozenset(
    {
        TargetId.BLOCKING_SECONDS,
        TargetId.PERSIST_SECONDS,
        TargetId.CHECKPOINT_BYTES,
        TargetId.READ_BANDWIDTH,
        TargetId.NODE_READ_BANDWIDTH,
        *LOADS,
    }
)
"""What all nodes take part in, whether or not they write."""
_ORDER = (Best.NOTHING, Best.MET_IF_IT_SCALES, Best.MET)

_SCALE_NOTE = (
    "A small run misses faults that appear only at scale: one that was seen in the field appeared on 60 nodes, and "
    "not on four. Let the last run before acceptance be one on all nodes."
)


def plan(
    *,
    spec: ScenarioSpec,
    sizing: Sizing,
    scenario_id: UUID,
    scenario_revision: int,
    name: str,
    url: str,
    nodes: int | None = None,
    storage_label: str | None = None,
    directory: str | None = None,
    launcher: Launcher = Launcher.MPIRUN,
    full_scale_low_fraction: float = 0.95,
) -> TestPlan:
    """Return the tests that show whether a storage system does what a scenario needs.

    Args:
        spec: The scenario.
        sizing: What `size` gives for it.
        scenario_id: Its id, which the results are posted to.
        scenario_revision: The revision that `spec` is.
        name: Its name.
        url: The service that they are posted to.
        nodes: The nodes that can be spared; without it all of the scenario's.
        storage_label: What the results are posted under.
        directory: An absolute path on the storage under test.
        launcher: What starts the ranks.
        full_scale_low_fraction: From this fraction of the scenario's nodes on, a run is compared as a whole.

    Raises:
        Unsatisfiable: More nodes are asked for than the scenario has, or more is to be written than can be counted.
    """
    all_nodes, writing_nodes = sizing.checkpoint.nodes, sizing.checkpoint.writing_nodes
    if nodes is not None and nodes > all_nodes:
        raise Unsatisfiable(
            Fault("nodes", "too_large", f"The scenario has {all_nodes} nodes; give that many at most.")
        )
    folder = f"stallbudget-{str(scenario_id)[:8]}-r{scenario_revision}"
    chosen = nodes if nodes is not None else all_nodes
    case = Case(
        spec=spec,
        sizing=sizing,
        scenario_id=scenario_id,
        site=Site(directory=directory, folder=folder, launcher=launcher),
        url=url.rstrip("/"),
        storage_label=storage_label,
        nodes=chosen,
        low_fraction=full_scale_low_fraction,
        # Every node that writes has as many; where writers do not divide by those it is more than needed, never less.
        ranks=Ranks(
            nodes=min(chosen, writing_nodes), per_node=-(-sizing.checkpoint.writers // writing_nodes)
        ),
        blocks=blocks_for(
            sizing.checkpoint.largest_shard_bytes
            if sizing.checkpoint.carriers is None
            else sizing.checkpoint.mean_shard_bytes
        ),
    )
    tests = list(_tests(case))
    scripted = [test for test in tests if test.scripted]
    peak_bytes = max(test.peak_bytes for test in tests)
    if max(peak_bytes, sum(test.bytes_written for test in tests)) > EXACT_INTEGER_MAX:
        raise Unsatisfiable(
            Fault(
                "nodes",
                "too_large",
                "The tests would write more than 9 PB: plan them for fewer nodes, or a smaller model.",
            )
        )
    return TestPlan(
        engine_version=sizing.engine_version,
        scenario_id=scenario_id,
        scenario_revision=scenario_revision,
        name=name,
        storage_label=storage_label,
        nodes=max(test.nodes for test in scripted),
        scenario_nodes=all_nodes,
        full_scale=case.is_full(case.ranks.nodes, writing=True)
        and (case.sizing.read is None or case.is_full(case.nodes)),
        launcher=launcher,
        directory=directory,
        folder=folder,
        url=case.url,
        expected_seconds=sum(test.expected_seconds for test in scripted),
        bytes_written=sum(test.bytes_written for test in scripted),
        script_peak_bytes=max(test.peak_bytes for test in scripted),
        checkpointer_bytes_written=sum(test.bytes_written for test in tests if not test.scripted),
        peak_bytes=peak_bytes,
        lustre=case.site.command(_striping(case), commands.stripe(case.stripe_count, Place())),
        tests=tests,
        unproven=list(_unproven(case, tests)),
        notes=list(_notes(case, sum(test.bytes_written for test in tests if not test.scripted))),
    )


def _tests(case: Case) -> Iterator[PlannedTest]:
    yield ior_write(case)
    if case.sizing.read is not None:
        yield ior_read(case)
    # After the read, which needs the files of the write before it: these two never take their space at once.
    fullest = case.for_fullest
    if fullest is not None:
        yield ior_write_largest_shards(fullest)
    if case.is_async:
        yield ior_write_under_read_load(case)
    yield mdtest_create(case)
    # That of the other mode first: it leaves nothing behind, and the loads read what the scenario's own mode saved.
    saves = [dcp_save(case), dcp_async_save(case)]
    yield from saves if case.is_async else saves[::-1]
    if case.sizing.read is not None:
        yield dcp_load(case)
        if case.spec.cluster.gpus > 1:
            yield dcp_resharded_load(case)


def _striping(case: Case) -> str:
    """Return why the files get as many objects as they do."""
    if case.stripe_count == 1:
        return (
            "On Lustre, give each file one object: with a file for each rank, thousands of them spread over the "
            "targets by themselves, and wider stripes add locks and metadata work without bandwidth."
        )
    checkpoint = case.sizing.checkpoint
    files = checkpoint.writers * case.spec.shards.files_per_writer
    rate = amounts.of_unit(case.sizing.write.required_gb_per_second / files, TargetUnit.GB_PER_SECOND)
    return (
        f"On Lustre, give each file {case.stripe_count:,} objects, or all targets (-c -1) where there are fewer: a "
        f"save writes only {files:,} file{'s' if files > 1 else ''}, of up to "
        f"{amounts.of_bytes(checkpoint.largest_shard_bytes / case.spec.shards.files_per_writer)} and at {rate} each, "
        f"where one object is trusted to take {OBJECT_GB_PER_SECOND:g} GB/s and {amounts.of_bytes(OBJECT_BYTES)}. Many "
        "small files would have one each."
    )


def _unproven(case: Case, tests: Sequence[PlannedTest]) -> Iterator[Unproven]:
    for target in case.sizing.targets:
        reached = [proof.best for test in tests for proof in test.proofs if proof.target_id is target.id]
        best = max(reached, key=_ORDER.index, default=Best.NOTHING)
        if best is not Best.MET:
            yield Unproven(
                target_id=target.id, best=best, reason=_why_not(case, target, measured=bool(reached))
            )


def _why_not(whole: Case, target: Target, *, measured: bool) -> str:
    case = whole.of(target.id)
    # A benchmark that writes is complete where all that write take part, all else where all nodes do.
    writing = target.id not in _OF_ALL_NODES
    tested = case.ranks.nodes if writing else case.nodes
    some = f"{tested:,} of {case.nodes_of(writing=writing):,} nodes"
    if not measured:
        return (
            "No test of this plan measures it: a single rank cannot load what another number of ranks saved."
        )
    if target.id is TargetId.CHECKPOINT_BYTES:
        return (
            f"A checkpoint of {some} is smaller; only one of all of them can be held against the whole size."
        )
    if target.id in LOADS:
        return f"{some} load less than the whole checkpoint, so the run can show a miss and nothing else."
    if target.id is TargetId.FILE_CREATE_RATE:
        return (
            f"A rate of creates is not multiplied: {some} must reach the whole rate by themselves, and then more "
            "clients may still slow it down."
        )
    if target.id in _TIMES:
        return f"Each rank has its load, but the storage has that of {some}."
    return f"{some} show what one node gets; that all of them keep the pace, they cannot show."


def _notes(case: Case, written: int) -> Iterator[str]:
    full, nodes = case.is_full(case.nodes), case.ranks.nodes
    all_write = case.is_full(nodes, writing=True)
    if case.writing_nodes < case.all_nodes:
        ranks = "one rank" if case.ranks.per_node == 1 else f"{case.ranks.per_node} ranks"
        yield (
            f"A save has {case.sizing.checkpoint.writers:,} writers and the cluster {case.all_nodes:,} nodes: the "
            f"benchmarks that write run {ranks} on each of {amounts.of_nodes(nodes)}, and at full scale on "
            f"{case.writing_nodes:,}, which have to reach the whole figure. At a restart every rank reads, on "
            "all nodes."
        )
    if not full:
        what = "whatever a read or the training job's tests reach" if all_write else "whatever it reaches"
        yield (
            f"The plan is cut to {case.nodes:,} of {case.all_nodes:,} nodes: {what} is met_if_it_scales "
            f"at best. From {math.ceil(case.low_fraction * case.all_nodes):,} nodes on a run counts as one at full "
            "scale."
        )
        yield _SCALE_NOTE
    yield (
        f"The checkpointer's tests write {amounts.of_bytes(written)}. They run in the order of this plan, each "
        "followed by the command that removes what no later one reads: without that they need all of it at once."
    )
    if case.sizing.read is None:
        yield "The scenario has no restore target, so no read is planned: give restore.target_seconds."
    if case.site.launcher is Launcher.MPIRUN:
        yield (
            "mpirun is Open MPI's, and finds the hosts as it always does: from the scheduler, or a host file. Other "
            "MPIs spell --map-by ppr:N:node as -ppn N."
        )
    if case.site.directory is None:
        yield f"Set {commands.DIRECTORY_VARIABLE} to a directory on the storage under test."
    yield "Durations are those at which the targets are just reached; a slower system takes longer."
