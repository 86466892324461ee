"""The tests that a script runs: IOR writing, reading, writing under a read load, and mdtest."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from service.parsers.measurement import CACHE_MULTIPLE
from service.parsers.run import Condition
from service.planning import amounts, commands
from service.planning.case import REPETITIONS, Case, blocks_for, proofs, write_proofs
from service.planning.commands import Blocks, Ranks
from service.planning.planned import PlannedTest, ReadTrust, TestId
from service.sizing.sizing import TargetId
from service.units import GB, TB
from service.wire import EXACT_INTEGER_MAX

HEAVIER_RATIO = 1.1
"""So many times a save's bytes are judged as a heavier load."""
LONGEST_READ_SECONDS = 3600.0
"""A read of so much data is planned where the memory is known and the whole test takes no longer than this. [s]"""


_OF_A_WRITE = (
    TargetId.WRITE_BANDWIDTH,
    TargetId.NODE_WRITE_BANDWIDTH,
    TargetId.SLOWEST_WRITER_SECONDS,
)


def ior_write(case: Case) -> PlannedTest:
    """Return the write from every rank, of the mean or the largest shard, which keeps its files for the read."""
    result = "ior-write.json"
    written = REPETITIONS * case.one_write_bytes
    each = "the largest shard" if case.for_fullest is None else "the mean shard"
    return PlannedTest(
        id=TestId.IOR_WRITE,
        title="IOR write",
        why=f"A save: a file for each writer, all at once, each as large as {each}, synced.",
        scripted=True,
        **_shape(case.ranks, case.blocks),
        file_per_process=True,
        fsync=True,
        stripe_count=case.stripe_count,
        commands=[
            case.site.command(
                "Write, with fsync inside the time, and keep the files for the read.",
                commands.ior_write(
                    case.site.launcher,
                    case.ranks,
                    case.blocks,
                    file=f"{TestId.IOR_WRITE}/data",
                    repetitions=REPETITIONS,
                    result=result,
                    keep=True,
                ),
            )
        ],
        expected_seconds=case.write_seconds(written),
        bytes_written=written,
        peak_bytes=written,
        proofs=write_proofs(
            case,
            case.targets(*(each for each in _OF_A_WRITE if case.of(each) is case)),
        ),
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=list(_load_notes(case)),
    )


def ior_write_largest_shards(case: Case) -> PlannedTest:
    """Return the write of the largest shards from as many of the fullest nodes as make up a checkpoint.

    IOR gives all ranks the same to write. Were all of them to write the largest shard, the storage would have to take
    the skew times a checkpoint in the time of one; here it takes one, and no rank or node has less than the fullest.

    Args:
        case: That of the fullest nodes.
    """
    result = "ior-write-largest-shards.json"
    written = REPETITIONS * case.one_write_bytes
    checkpoint = case.sizing.checkpoint
    full = case.writing_nodes
    notes = [
        f"The largest shard is {checkpoint.skew:.3g} times the mean one, and IOR has every rank write the same. So at "
        f"full scale {full * case.ranks.per_node:,} ranks on {amounts.of_nodes(full)} write it, which makes "
        f"{amounts.of_bytes(full * case.ranks.per_node * case.blocks.block_bytes)} where a save has "
        f"{amounts.of_bytes(checkpoint.bytes)}: each rank, and each node, has no less to do than the fullest of "
        "a save.",
        "It shows what a rank and a node can do while the storage takes as much as in a save. It has fewer writers and "
        "files than a save; that the storage bears all of them at once, ior_write shows.",
    ]
    if full * case.ranks.per_node * case.blocks.block_bytes > HEAVIER_RATIO * checkpoint.bytes:
        notes.append(
            "No whole number of ranks and nodes makes up a save; this is more, so it can show that the time is kept "
            "and not that it is missed."
        )
    if case.ranks.nodes < full:
        notes.append(f"Here it runs on {amounts.of_nodes(case.ranks.nodes, out_of=full)}.")
    return PlannedTest(
        id=TestId.IOR_WRITE_LARGEST_SHARDS,
        title="IOR write of the largest shards",
        why="The slowest writer of a save: the largest shard from as many ranks as make up a checkpoint, synced.",
        scripted=True,
        **_shape(case.ranks, case.blocks),
        file_per_process=True,
        fsync=True,
        stripe_count=case.stripe_count,
        commands=[
            case.site.command(
                "Write, with fsync inside the time.",
                commands.ior_write(
                    case.site.launcher,
                    case.ranks,
                    case.blocks,
                    file=f"{TestId.IOR_WRITE_LARGEST_SHARDS}/data",
                    repetitions=REPETITIONS,
                    result=result,
                    keep=False,
                ),
            )
        ],
        expected_seconds=case.write_seconds(written),
        bytes_written=written,
        peak_bytes=case.one_write_bytes,
        proofs=write_proofs(
            case,
            case.targets(*(each for each in _OF_A_WRITE if case.sizing.carriers_of(each) is not None)),
        ),
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=notes,
    )


def ior_read(case: Case) -> PlannedTest:
    """Return the read of what was written, or of more where the memory of the nodes asks for it and allows it."""
    result = "ior-read.json"
    reader = _reader(case)
    trust = _read_trust(case)
    grown = _read_blocks(case) if trust.trusted else None
    blocks = grown or reader.blocks
    # What was written for more memory than there is need not be written anew for each repetition.
    own_repetitions = 1 if grown else REPETITIONS
    has_own = grown is not None or reader is not case
    launcher, site = case.site.launcher, case.site
    read = commands.ior_read(
        launcher,
        reader.ranks,
        blocks,
        file=f"{TestId.IOR_READ if has_own else TestId.IOR_WRITE}/data",
        repetitions=REPETITIONS,
        result=result,
        many_files=grown is None,
    )
    steps = [site.command("Read back what another node wrote.", read)]
    if has_own:
        own = commands.ior_write(
            launcher,
            reader.ranks,
            blocks,
            file=f"{TestId.IOR_READ}/data",
            repetitions=own_repetitions,
            result=None,
            keep=True,
        )
        purpose = (
            "Write more than the nodes' memory holds three times."
            if grown
            else "Write a share for every rank of the job: at a restart all of them read, not only those that write."
        )
        steps.insert(0, site.command(purpose, own))
    one_read = blocks.rank_bytes * reader.ranks.count
    written = own_repetitions * one_read if has_own else 0
    required = _required_read(reader)
    return PlannedTest(
        id=TestId.IOR_READ,
        title="IOR read",
        why="The restart: every rank reads at once what was saved, and no rank what its own node has in memory.",
        scripted=True,
        **_shape(reader.ranks, blocks),
        file_per_process=True,
        reordered=True,
        stripe_count=case.stripe_count,
        commands=steps,
        expected_seconds=REPETITIONS * one_read / GB / required + case.write_seconds(written),
        bytes_written=written,
        peak_bytes=written + REPETITIONS * case.one_write_bytes,
        read_trust=trust,
        proofs=proofs(
            case,
            reader.ranks.nodes,
            case.targets(TargetId.READ_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH),
            flattered=not trust.trusted,
        ),
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=[trust.sentence],
    )


def _reader(case: Case) -> Case:
    """Return the case with the ranks and blocks of a restart: where fewer ranks save than load, those of the job."""
    if case.writing_nodes == case.all_nodes:
        return case
    cluster = case.spec.cluster
    share_bytes = -(-case.sizing.checkpoint.bytes // cluster.gpus)
    ranks = Ranks(nodes=case.nodes, per_node=min(cluster.gpus_per_node, cluster.gpus))
    return replace(case, ranks=ranks, blocks=blocks_for(share_bytes))


def _required_read(reader: Case) -> float:
    """Return the rate that the nodes of a read must reach. [GB/s]"""
    read = reader.sizing.read
    return read.required_gb_per_second * reader.share(reader.ranks.nodes) if read is not None else 1.0


def _read_blocks(case: Case) -> Blocks | None:
    """Return blocks of so many segments that a read counts; None where one segment does, or too much is needed."""
    reader = _reader(case)
    memory = case.spec.cluster.node_memory_bytes
    node_bytes = reader.blocks.block_bytes * reader.ranks.per_node
    if memory is None or reader.ranks.nodes == 1 or case.sizing.read is None:
        return None
    if node_bytes >= CACHE_MULTIPLE * memory:
        return None
    blocks = Blocks(
        reader.blocks.block_bytes,
        reader.blocks.transfer_bytes,
        segments=-(-CACHE_MULTIPLE * memory // node_bytes),
    )
    moved_bytes = blocks.rank_bytes * reader.ranks.count
    seconds = REPETITIONS * moved_bytes / GB / _required_read(reader) + case.write_seconds(moved_bytes)
    usable_tb = case.spec.storage.usable_tb if case.spec.storage is not None else None
    usable_bytes = usable_tb * TB if usable_tb is not None else EXACT_INTEGER_MAX
    fits = moved_bytes + REPETITIONS * case.one_write_bytes <= usable_bytes
    return blocks if seconds <= LONGEST_READ_SECONDS and fits else None


def _read_trust(case: Case) -> ReadTrust:
    memory = case.spec.cluster.node_memory_bytes
    needed = CACHE_MULTIPLE * memory if memory is not None else None
    grown = _read_blocks(case)
    reader = _reader(case)
    node_bytes = (grown or reader.blocks).rank_bytes * reader.ranks.per_node
    enough = needed is None or node_bytes >= needed
    trusted = enough and reader.ranks.nodes > 1
    cold = "a DCP load with a cold page cache shows it."
    if reader.ranks.nodes == 1:
        sentence = (
            "On one node nobody reads what another node wrote, so this read can show a miss and nothing else; "
            + cold
        )
    elif needed is None:
        sentence = (
            "The scenario does not say how much memory a node has. The read counts because every rank reads what "
            "another node wrote, and each repetition files of its own; but a node reads "
            f"{amounts.of_bytes(node_bytes)}, and where that is less than three times its memory a cache may have "
            "helped: give cluster.host_memory_bytes_per_node."
        )
    elif grown is not None:
        sentence = (
            f"A node has {amounts.of_bytes(memory or 0)} of memory, so each reads {amounts.of_bytes(node_bytes)}, more "
            "than three times that, from files written for this test."
        )
    elif enough:
        sentence = (
            f"Each node reads {amounts.of_bytes(node_bytes)}, more than three times its memory of "
            f"{amounts.of_bytes(memory or 0)}."
        )
    else:
        sentence = (
            f"A node has {amounts.of_bytes(memory or 0)} of memory, and reads {amounts.of_bytes(node_bytes)} where "
            f"{amounts.of_bytes(needed)} would be trusted, which takes too long or too much space at the speed that is "
            "asked for. This read can show a miss and nothing else; " + cold
        )
    return ReadTrust(
        node_memory_bytes=memory,
        needed_bytes_per_node=needed,
        bytes_per_node=node_bytes,
        trusted=trusted,
        sentence=sentence,
    )


def ior_write_under_read_load(case: Case) -> PlannedTest:
    """Return the write beside a job that reads all the time."""
    result = "ior-write-under-read-load.json"
    readers = Ranks(nodes=case.ranks.nodes, per_node=1)
    read = Blocks(case.blocks.block_bytes, case.blocks.transfer_bytes, segments=case.ranks.per_node)
    site, launcher, folder = case.site, case.site.launcher, TestId.IOR_WRITE_UNDER_READ_LOAD
    written = (1 + REPETITIONS) * case.one_write_bytes
    return PlannedTest(
        id=TestId.IOR_WRITE_UNDER_READ_LOAD,
        title="IOR write under read load",
        why="An async save drains while the data loaders read: the write again, beside a job that reads all the time.",
        scripted=True,
        **_shape(case.ranks, case.blocks),
        file_per_process=True,
        fsync=True,
        stripe_count=case.stripe_count,
        commands=[
            site.command(
                "Write what the load reads.",
                commands.ior_write(
                    launcher,
                    readers,
                    read,
                    file=f"{folder}/load",
                    repetitions=1,
                    result=None,
                    keep=True,
                ),
            ),
            site.command(
                "Start the load, one reader on each node, in the background; end it when the write is done.",
                commands.ior_reader(launcher, readers, read, file=f"{folder}/load"),
            ),
            site.command(
                "Write beside it, once the first pass of the load is done.",
                commands.ior_write(
                    launcher,
                    case.ranks,
                    case.blocks,
                    file=f"{folder}/data",
                    repetitions=REPETITIONS,
                    result=result,
                    keep=False,
                ),
            ),
        ],
        expected_seconds=case.write_seconds(written),
        bytes_written=written,
        peak_bytes=2 * case.one_write_bytes,
        proofs=write_proofs(case, case.targets(TargetId.WRITE_BANDWIDTH_UNDER_READ_LOAD)),
        conditions=[Condition.UNDER_READ_LOAD],
        result_file=result,
        post=case.post(result, [Condition.UNDER_READ_LOAD]),
        notes=[
            "The result counts only if the load went on until the write ended; the script posts it only then.",
            "One reader on each node, past its page cache, is a load and not yours: where your data loaders read more, "
            "give it more ranks.",
            *_load_notes(case),
        ],
    )


def mdtest_create(case: Case) -> PlannedTest:
    """Return the creates of a save, by all writers into one folder."""
    result = "mdtest-create.txt"
    files_per_rank = case.spec.shards.files_per_writer
    (target,) = case.targets(TargetId.FILE_CREATE_RATE)
    return PlannedTest(
        id=TestId.MDTEST_CREATE,
        title="mdtest create",
        why="The burst of creates that every save is, by all writers into one folder, and the deletes of an old one.",
        scripted=True,
        nodes=case.ranks.nodes,
        ranks=case.ranks.count,
        ranks_per_node=case.ranks.per_node,
        repetitions=REPETITIONS,
        files_per_rank=files_per_rank,
        file_per_process=True,
        stripe_count=case.stripe_count,
        commands=[
            case.site.command(
                "Create and remove the files of a save.",
                commands.mdtest_create(
                    case.site.launcher,
                    case.ranks,
                    files_per_rank=files_per_rank,
                    repetitions=REPETITIONS,
                    folder=TestId.MDTEST_CREATE,
                ),
            )
        ],
        # The deletes are given as long as the creates.
        expected_seconds=2 * REPETITIONS * files_per_rank * case.ranks.count / target.value,
        bytes_written=0,
        peak_bytes=0,
        proofs=write_proofs(case, [target]),
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=[
            "A rate of creates is not multiplied by nodes: metadata servers do not grow with the clients.",
        ],
    )


def _shape(ranks: Ranks, blocks: Blocks) -> dict[str, Any]:
    return {
        "nodes": ranks.nodes,
        "ranks": ranks.count,
        "ranks_per_node": ranks.per_node,
        "repetitions": REPETITIONS,
        "block_bytes": blocks.block_bytes,
        "transfer_bytes": blocks.transfer_bytes,
        "segments": blocks.segments,
        "files_per_rank": 1,
    }


def _load_notes(case: Case) -> Iterator[str]:
    checkpoint = case.sizing.checkpoint
    even = checkpoint.bytes / checkpoint.writers
    if case.for_fullest is not None:
        yield (
            f"Every rank writes the mean shard: this shows what the storage takes from all writers together. The "
            f"largest is {checkpoint.skew:.3g} times that; how long its writer takes, "
            f"{TestId.IOR_WRITE_LARGEST_SHARDS} shows."
        )
    elif checkpoint.largest_shard_bytes > 1.05 * even:
        yield (
            f"Every rank writes the largest shard, {checkpoint.largest_shard_bytes / even:.3g} times the mean one, so "
            "this is harder than a save; to pass it is more than enough."
        )
    if case.ranks.per_node * case.writing_nodes > checkpoint.writers:
        yield (
            f"The {checkpoint.writers:,} writers do not divide by {case.writing_nodes:,} nodes. Here every node gets "
            f"{case.ranks.per_node} ranks, on all of them {case.ranks.per_node * case.writing_nodes:,}: a little more "
            "than a save."
        )
