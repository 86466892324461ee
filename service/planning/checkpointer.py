"""The tests that a training job runs under the recorder: DCP saves, async saves, loads and resharded loads."""

from collections.abc import Sequence

from service.planning import amounts, commands
from service.planning.case import REPETITIONS, STRIPE_COUNT, Case, proofs
from service.planning.commands import Ranks, Site
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
    ranks: Ranks | None = None,
    before: Sequence[Command] = (),
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
        stripe_count=STRIPE_COUNT,
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
        ],
        calls=[*head, *calls, f"recorder.write({result!r})"],
        document_needs=list(needs),
        expected_seconds=seconds,
        bytes_written=round(written),
        peak_bytes=round(written),
        proofs=proofs,
        conditions=[],
        result_file=result,
        post=case.post(result),
        notes=["Give every run a run_id of its own.", *notes],
    )


def _python_path(site: Site) -> str:
    if site.directory is not None:
        return repr(f"{site.directory.rstrip('/')}/{site.folder}-dcp")
    return f"os.environ[{commands.DIRECTORY_VARIABLE!r}] + {f'/{site.folder}-dcp'!r}"


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
        written=(REPETITIONS + 1) * case.sizing.checkpoint.bytes * case.share(case.nodes),
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
        written=(REPETITIONS + 1) * case.sizing.checkpoint.bytes * case.share(case.nodes),
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
    saved = "async" if case.is_async else "save"
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
        notes=[]
        if full
        else [
            "A job on fewer nodes loads a smaller checkpoint, and a smaller load can only show a miss of the time."
        ],
    )


def dcp_resharded_load(case: Case) -> PlannedTest:
    """Return timed loads onto another number of ranks: fewer nodes, where one less still counts as all."""
    saved = "async" if case.is_async else "save"
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
    return _test(
        case,
        TestId.DCP_RESHARDED_LOAD,
        title="DCP resharded load",
        why="The restart that really comes after lost hardware: onto another number of ranks, each reading byte ranges "
        f"of many files. {amounts.of_nodes(nodes)} load{'s' if nodes == 1 else ''} {how}.",
        ranks=Ranks(nodes, per_node),
        before=[_drop_caches(case, nodes)],
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
        seconds=REPETITIONS * target_seconds,
        written=0,
    )


def _drop_caches(case: Case, nodes: int) -> Command:
    return case.site.command(
        "Before the load drop the page cache of every node, as root; or start on nodes that wrote nothing of it.",
        [
            *commands.launch(case.site.launcher, Ranks(nodes, 1)),
            *("sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"),
        ],
    )
