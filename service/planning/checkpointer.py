"""The tests that a training job runs under the recorder: DCP saves, async saves, loads and resharded loads."""

import math
from collections.abc import Iterator, Sequence

from service.planning import amounts, commands
from service.planning.case import REPETITIONS, Case, proofs
from service.planning.commands import Place, Ranks, Site
from service.planning.planned import Command, PlannedTest, Proof, TestId
from service.sizing.sizing import TargetId
from service.sizing.spec import SaveMode


def _test(
    case: Case,
    test_id: TestId,
    *,
    title: str,
    why: str,
    calls: Sequence[str],
    needs: Sequence[str],
    proofs: list[Proof],
    seconds: float,
    written: float,
    peak: float,
    ranks: Ranks | None = None,
    before: Sequence[Command] = (),
    after: Sequence[Command] = (),
    notes: Sequence[str] = (),
) -> PlannedTest:
    result = f"{test_id.replace('_', '-')}.json"
    cluster = case.spec.cluster
    ranks = ranks or Ranks(case.nodes, min(cluster.gpus_per_node, cluster.gpus))
    site = case.site
    label = case.storage_label or "name-of-the-storage"
    head = [
        *(["import os"] if site.directory is None else []),
        "from ckpt_recorder import Recorder",
        f"recorder = Recorder(run_id={site.folder + '-' + test_id.replace('_', '-') + '-1'!r}, "
        f"storage_label={label!r}, nodes={ranks.nodes})",
        f"folder = {_python_path(site)}",
    ]
    return PlannedTest(
        id=test_id,
        title=title,
        why=why,
        scripted=False,
        nodes=ranks.nodes,
        ranks=min(ranks.count, cluster.gpus),
        ranks_per_node=ranks.per_node,
        repetitions=REPETITIONS,
        files_per_rank=case.spec.shards.files_per_writer,
        file_per_process=True,
        stripe_count=case.stripe_count,
        commands=[
            Command(
                purpose="Write the recorder, one file that needs torch alone, beside your training script.",
                argv=["sh", "-c", "stallbudget recorder > ckpt_recorder.py"],
                line="stallbudget recorder > ckpt_recorder.py",
            ),
            *before,
            site.command(
                "Start your training script with the calls in it, in the way in which you start it.",
                commands.torchrun(site.launcher, ranks, script="train.py"),
            ),
            *after,
        ],
        calls=[*head, *calls, f"recorder.write({result!r})"],
        document_needs=list(needs),
        expected_seconds=seconds,
        bytes_written=round(written),
        peak_bytes=round(peak),
        proofs=proofs,
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=["Give every run a run_id of its own.", *notes],
    )


def _python_path(site: Site) -> str:
    if site.directory is not None:
        return repr(site.path(Place(of_checkpoints=True)))
    below = f"/{site.folder}{commands.CHECKPOINTS_SUFFIX}"
    return f"os.environ[{commands.DIRECTORY_VARIABLE!r}] + {below!r}"


def _saved_bytes(case: Case, checkpoints: int) -> float:
    """Return what so many checkpoints of the job take. [B]"""
    return checkpoints * case.sizing.checkpoint.bytes * case.share(case.nodes)


def _name_of_saves(mode: SaveMode) -> str:
    """Return what the names of the checkpoints that a mode saves begin with."""
    return "async" if mode is SaveMode.ASYNC else "save"


def _removal_after_save(case: Case, mode: SaveMode) -> Command:
    """Return what removes of a save's checkpoints those that no load reads."""
    name = _name_of_saves(mode)
    if mode is not case.spec.save.mode or case.sizing.read is None:
        places = [Place(f"{name}-{step}", of_checkpoints=True) for step in range(REPETITIONS + 1)]
        purpose = "Remove its checkpoints: nothing reads them, and the next test needs their space."
    else:
        places = [Place(f"{name}-0", of_checkpoints=True)]
        purpose = "Remove the checkpoint of the warm-up; the loads read the others."
    return case.site.command(purpose, commands.remove(*places))


def _removal_of_all(case: Case) -> Command:
    return case.site.command(
        "Remove the checkpoints: no other test reads them.",
        commands.remove(Place(of_checkpoints=True)),
    )


def _striping(case: Case) -> list[Command]:
    """Return what prepares the job's folder on Lustre, where its files need more than the usual one object."""
    if case.stripe_count == 1:
        return []
    folder = Place(of_checkpoints=True)
    return [
        case.site.command("Make the folder of the checkpoints.", ["mkdir", "-p", "--", folder]),
        case.site.command(
            "On Lustre, let its few large files lie on several targets each.",
            commands.stripe(case.stripe_count, folder),
        ),
    ]


_EXAMPLE_REPLICA_RANKS = 8 * 16
"""Of the layout of Llama 3 405B on 16,384 GPUs."""

_SAVE_NEEDS = (
    "of every rank total_seconds and io_seconds, in an operation that is ok and not warm-up",
    "bytes_total and checkpoint_bytes, as the recorder finds them in the folder",
    "settings.sync_files true, or absent as torch's default",
)
_COLD = "settings.page_cache cold, and true: a warm cache proves nothing"


def dcp_save(case: Case) -> PlannedTest:
    """Return timed saves; evidence for the times of a scenario that saves so."""
    proved = (
        [TargetId.CHECKPOINT_BYTES]
        if case.is_async
        else [
            TargetId.WRITE_BANDWIDTH,
            TargetId.NODE_WRITE_BANDWIDTH,
            TargetId.SLOWEST_WRITER_SECONDS,
            TargetId.BLOCKING_SECONDS,
            TargetId.CHECKPOINT_BYTES,
        ]
    )
    return _test(
        case,
        TestId.DCP_SAVE,
        title="DCP save",
        why="What training waits for, by the checkpointer itself: planning, serialising and collectives included.",
        calls=[
            f"for step in range({REPETITIONS + 1}):",
            '    recorder.save(state, checkpoint_id=f"{folder}/save-{step}", step=step, warmup=step == 0)',
        ],
        needs=_SAVE_NEEDS,
        proofs=proofs(case, case.nodes, case.targets(*proved)),
        seconds=(REPETITIONS + 1) * case.window_seconds,
        written=_saved_bytes(case, REPETITIONS + 1),
        peak=_saved_bytes(case, REPETITIONS + 1),
        before=_striping(case),
        after=[_removal_after_save(case, SaveMode.SYNC)],
        notes=_of_other_mode(case, wanted=SaveMode.SYNC),
    )


def dcp_async_save(case: Case) -> PlannedTest:
    """Return timed async saves, likewise."""
    proved = (
        [
            TargetId.WRITE_BANDWIDTH,
            TargetId.NODE_WRITE_BANDWIDTH,
            TargetId.SLOWEST_WRITER_SECONDS,
            TargetId.BLOCKING_SECONDS,
            TargetId.PERSIST_SECONDS,
            TargetId.CHECKPOINT_BYTES,
        ]
        if case.is_async
        else [TargetId.CHECKPOINT_BYTES]
    )
    return _test(
        case,
        TestId.DCP_ASYNC_SAVE,
        title="DCP async save",
        why="The stall that is left when the write goes on beside training, and how long the checkpoint is unsafe.",
        calls=[
            "future = None",
            f"for step in range({REPETITIONS + 1}):",
            "    train_one_interval()",
            "    future = recorder.async_save(",
            '        state, checkpoint_id=f"{folder}/async-{step}", step=step, previous=future, warmup=step == 0',
            "    )",
        ],
        needs=(
            "of every rank blocked_seconds, total_seconds and io_seconds",
            *_SAVE_NEEDS[1:],
            "wait_previous_seconds where a save waits for the one before it: it is a part of the stall",
        ),
        proofs=proofs(case, case.nodes, case.targets(*proved)),
        seconds=(REPETITIONS + 1) * (case.sizing.interval.seconds if case.is_async else case.window_seconds),
        written=_saved_bytes(case, REPETITIONS + 1),
        peak=_saved_bytes(case, REPETITIONS + 1),
        before=_striping(case),
        after=[_removal_after_save(case, SaveMode.ASYNC)],
        notes=[
            "Give the checkpoint's collectives a process group of their own (process_group=…): on that of training "
            "they wait for its collectives, and may hang.",
            "With AsyncCheckpointerType.PROCESS the ranks' io_seconds stay unknown, and the slowest writer unproved.",
            *_of_other_mode(case, wanted=SaveMode.ASYNC),
        ],
    )


def _of_other_mode(case: Case, *, wanted: SaveMode) -> list[str]:
    mode = case.spec.save.mode
    if mode is wanted:
        return []
    return [
        f"The scenario saves {mode}, so the times of this test are for the decision between the two, and no evidence."
    ]


def dcp_load(case: Case) -> PlannedTest:
    """Return timed loads onto as many ranks as saved, with cold caches."""
    saved = _name_of_saves(case.spec.save.mode)
    full = case.is_full(case.nodes)
    target_seconds = case.targets(TargetId.LOAD_SECONDS)[0].value
    return _test(
        case,
        TestId.DCP_LOAD,
        title="DCP load",
        why="The restart that is hoped for: every rank gets its state back, on as many ranks as saved it.",
        before=[_drop_caches(case, case.nodes)],
        calls=[
            f"for step in range(1, {REPETITIONS + 1}):",
            f'    recorder.load(state, checkpoint_id=f"{{folder}}/{saved}-{{step}}", step=step, page_cache="cold")',
        ],
        needs=("of every rank total_seconds", "checkpoint_bytes, as the recorder finds it", _COLD),
        proofs=proofs(
            case,
            case.nodes,
            case.targets(TargetId.READ_BANDWIDTH, TargetId.NODE_READ_BANDWIDTH, TargetId.LOAD_SECONDS),
        ),
        seconds=REPETITIONS * target_seconds,
        written=0,
        peak=_saved_bytes(case, REPETITIONS),
        after=[] if case.spec.cluster.gpus > 1 else [_removal_of_all(case)],
        notes=[]
        if full
        else [
            "A job on fewer nodes loads a smaller checkpoint, and a smaller load can only show a miss of the time."
        ],
    )


def dcp_resharded_load(case: Case) -> PlannedTest:
    """Return timed loads onto another number of ranks: fewer nodes, where one less still counts as all."""
    saved = _name_of_saves(case.spec.save.mode)
    cluster = case.spec.cluster
    per_node = min(cluster.gpus_per_node, cluster.gpus)
    target_seconds = case.targets(TargetId.RESHARDED_LOAD_SECONDS)[0].value
    # Onto fewer nodes, as after lost hardware, where one node less still counts as many; else from fewer.
    onto_fewer = case.nodes > 1 and case.is_full(case.nodes - 1) == case.is_full(case.nodes)
    nodes = case.nodes - 1 if onto_fewer else case.nodes
    if onto_fewer:
        saved_ranks, how = (
            min(case.nodes * per_node, cluster.gpus),
            f"what {amounts.of_nodes(case.nodes)} saved",
        )
    elif case.nodes > 1:
        saved_ranks = (case.nodes - 1) * per_node
        how = f"what {amounts.of_nodes(case.nodes - 1)} saved, in a run of the save before"
    else:
        saved_ranks = max(1, per_node // 2)
        how = f"what {saved_ranks} rank{'s' if saved_ranks > 1 else ''} saved, in a run of the save before"
    # Where fewer saved than load, they do so for this test, in the place of what is there.
    saves_again = not onto_fewer
    save_test = TestId.DCP_ASYNC_SAVE if case.is_async else TestId.DCP_SAVE
    again = [
        case.site.command(
            f"Remove what was saved, and then save again by the calls of {save_test}, on {saved_ranks:,} "
            f"rank{'s' if saved_ranks > 1 else ''}.",
            commands.remove(
                *(Place(f"{saved}-{step}", of_checkpoints=True) for step in range(REPETITIONS + 1))
            ),
        )
    ]
    return _test(
        case,
        TestId.DCP_RESHARDED_LOAD,
        title="DCP resharded load",
        why="The restart that really comes after lost hardware: onto another number of ranks, each reading byte ranges "
        f"of many files. {amounts.of_nodes(nodes)} load{'s' if nodes == 1 else ''} {how}.",
        ranks=Ranks(nodes, per_node),
        before=[*(again if saves_again else []), _drop_caches(case, nodes)],
        after=[_removal_of_all(case)],
        calls=[
            f"for step in range(1, {REPETITIONS + 1}):",
            "    recorder.load(",
            f'        state, checkpoint_id=f"{{folder}}/{saved}-{{step}}", step=step, '
            f'saved_world_size={saved_ranks}, page_cache="cold"',
            "    )",
        ],
        needs=(
            "of every rank total_seconds",
            f"saved_world_size {saved_ranks}, which differs from the ranks that load",
            "checkpoint_bytes, as the recorder finds it",
            _COLD,
        ),
        proofs=proofs(case, nodes, case.targets(TargetId.RESHARDED_LOAD_SECONDS)),
        seconds=REPETITIONS * target_seconds
        + ((REPETITIONS + 1) * case.window_seconds if saves_again else 0.0),
        written=_saved_bytes(case, REPETITIONS + 1) if saves_again else 0,
        peak=_saved_bytes(case, REPETITIONS + 1 if saves_again else REPETITIONS),
        notes=list(
            _layout_notes(
                case, smaller=nodes * per_node if onto_fewer else saved_ranks, whole=case.nodes * per_node
            )
        ),
    )


def _layout_notes(case: Case, *, smaller: int, whole: int) -> Iterator[str]:
    """Yield which number of ranks to take, since the scenario does not say how the job lays its ranks out."""
    if smaller == 1:
        return
    example = _EXAMPLE_REPLICA_RANKS
    of_example = (
        f" With tensor 8 times pipeline 16 a replica has {example} ranks, and {whole - example:,} remain."
        if whole > 2 * example
        else ""
    )
    yield (
        f"{smaller:,} ranks suit a job that is only data parallel. One with tensor or pipeline parallelism starts on "
        "whole replicas alone: take the most ranks that its layout can start on below "
        f"{whole:,}, which is one data-parallel replica less, and put that number and its nodes into the commands and "
        f"the calls.{of_example}"
    )
    if case.is_full(case.nodes) and case.nodes > 1:
        yield (
            f"The load counts as one at full scale from {math.ceil(case.low_fraction * case.all_nodes):,} nodes on; "
            "where a replica is too large for that, save on the smaller number and load on the larger."
        )


def _drop_caches(case: Case, nodes: int) -> Command:
    return case.site.command(
        "Before the load drop the page cache of every node, as root; or start on nodes that wrote nothing of it.",
        [
            *commands.launch(case.site.launcher, Ranks(nodes, 1)),
            *("sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"),
        ],
    )
