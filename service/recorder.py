"""Records what checkpoints cost a training run, and writes it as one dcp-timing document.

This one file needs nothing but torch. Copy it beside the training script and put its calls in place of those of
`torch.distributed.checkpoint`; every rank makes the same calls:

    recorder = Recorder(run_id="llama-405b-2026-11-29", storage_label="pfs-a")

    recorder.save(state, checkpoint_id=path, step=step)                       # as dcp.save
    future = recorder.async_save(state, checkpoint_id=path, step=step, previous=future)   # as dcp.async_save
    recorder.load(state, checkpoint_id=path, step=step)                       # as dcp.load
    with recorder.timing("save", checkpoint_id=path, step=step):              # around a checkpointer of your own
        ...

    recorder.write("dcp-timing.json")                                         # at the end; rank 0 writes

The calls take and return what torch's do, `async_save` too; `previous` is what the `async_save` before returned, and
the wait for it is recorded. What fails in the recorder itself becomes a warning and never reaches the training;
what fails in torch is recorded and raised as ever.

Recorded are, for each rank, how long its training stood still, the copy to host memory, planning, its own reading
or writing (from the events of torch's DCP logger) and the time until the checkpoint was safe; and the sizes of the
files, which rank 0 looks up in a thread of its own, where `checkpoint_id` is a folder that it can see. For other
storage give `checkpoint_bytes`. The nodes come from what torchrun sets, or from `nodes`.
"""

import collections
import contextlib
import datetime
import json
import logging
import os
import pathlib
import re
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

_EVENTS = "c10d-NullHandler-dcp_logger"
_PHASES = {
    "local_step": "plan_seconds",
    "global_step": "plan_seconds",
    "write_data": "io_seconds",
    "read_data": "io_seconds",
}
_STAGING = "stage_state_dict"
_SHARED = (
    "op", "status", "error", "step", "checkpoint", "warmup", "saved_world_size", "checkpoint_bytes", "metadata_bytes",
    "bytes_total", "files_total", "settings",
)  # fmt: skip
CLOCK_TOLERANCE_SECONDS = 0.001
"""torch times its phases by the wall clock; by so much one may seem to begin before its operation."""

_DATA_FILE = re.compile(r"__(\d+)_\d+\.distcp")


class _Operation:
    """One checkpoint operation on this rank, from the moment at which its training stops."""

    def __init__(self, op: str, step: int | None, checkpoint_id: object) -> None:
        self.started = time.perf_counter()
        self.path = None if checkpoint_id is None else os.fspath(checkpoint_id)  # type: ignore[call-overload]
        self.told: dict[str, Any] = {"op": op}
        if step is not None:
            self.told["step"] = int(step)
        if self.path:
            self.told["checkpoint"] = os.path.basename(str(self.path).rstrip("/"))[:256]  # noqa: PTH119 - or an address
        self.times: dict[str, Any] = {"started_at": _now()}
        self.ended_at: str | None = None
        self.staged: float | None = None  # when the copy to host memory was done, by the monotonic clock
        self.rank_bytes: dict[int, list[int]] = {}
        self.done = threading.Event()
        self.measured = threading.Event()
        self.measured.set()  # but while a thread is looking the sizes up

    def elapsed(self) -> float:
        return round(time.perf_counter() - self.started, 6)

    def fail(self, error: BaseException) -> None:
        self.told["status"] = "failed"
        self.told["error"] = f"{type(error).__name__}: {error}"[:2048]


class _PhaseHandler(logging.Handler):
    """Keeps the ends of the phases that torch's DCP logger tells of, until an operation asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._kept: collections.deque[tuple[str, str, float, float]] = collections.deque(maxlen=10_000)

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event. torch uses its dictionary again, so what matters is copied at once."""
        event = record.msg
        if not isinstance(event, dict) or event.get("event") != "end":
            return
        name = str(event.get("func_name"))
        if name in _PHASES or name == _STAGING:
            kept = (name, str(event.get("checkpoint_id")), event["times_spent"] / 1e9, time.perf_counter())
            with self._guard:
                self._kept.append(kept)

    def take(self, names: set[str], checkpoint_id: object, since: float) -> list[tuple[str, float, float]]:
        """Return name, seconds and end of the phases of a checkpoint that ended since then, and forget them."""
        mine = {"None"}
        if checkpoint_id is not None:  # torch's own writer takes the slash off a folder's end
            mine |= {str(checkpoint_id), str(pathlib.Path(str(checkpoint_id)))}
        with self._guard:
            taken = [
                kept
                for kept in self._kept
                if kept[0] in names
                and kept[1] in mine
                and kept[3] - kept[2] >= since - CLOCK_TOLERANCE_SECONDS
            ]
            for kept in taken:
                self._kept.remove(kept)
        return [(name, spent, ended) for name, _, spent, ended in taken]


class Recorder:
    """Times the checkpoint operations of a run.

    Args:
        run_id: A name for the run; the same document again is the same run.
        storage_label: Which storage is measured.
        nodes: How many nodes take part; by default what torchrun or the host names say.
        storage_kind: `local`, `remote_block`, `nas`, `parallel_fs`, `object`, `memory` or `other`.
        label: Free text.
        trainer: What trains, if it has a name; likewise its version.
        trainer_version: See there.
        checkpointer: What makes the checkpoints, where `timing` is used around something other than torch's.
        checkpointer_version: Its version; by default torch's.
    """

    def __init__(
        self,
        *,
        run_id: str,
        storage_label: str,
        nodes: int | None = None,
        storage_kind: str | None = None,
        label: str | None = None,
        trainer: str | None = None,
        trainer_version: str | None = None,
        checkpointer: str = "torch.distributed.checkpoint",
        checkpointer_version: str | None = None,
    ) -> None:
        self._nodes = nodes
        self._operations: list[_Operation] = []
        self._process_saves = 0
        self._handler = _PhaseHandler()
        self._head: dict[str, Any] = {"format": "dcp-timing", "format_version": 1, "run_id": run_id}
        if label is not None:
            self._head["label"] = label
        self._software = {
            "checkpointer": checkpointer,
            "checkpointer_version": checkpointer_version,
            "trainer": trainer,
            "trainer_version": trainer_version,
        }
        self._storage = {"label": storage_label, **({"kind": storage_kind} if storage_kind else {})}
        with _warned("listen to torch's DCP logger"):
            _events_logger().addHandler(self._handler)

    def close(self) -> None:
        """Stop listening to torch. What was recorded can still be written."""
        with _warned("stop listening to torch's DCP logger"):
            _events_logger().removeHandler(self._handler)

    # --- In place of torch's own calls ---------------------------------------------------------------------

    def save(
        self,
        state_dict: Any,  # noqa: ANN401 - as torch has it
        *,
        checkpoint_id: Any = None,  # noqa: ANN401 - as torch has it
        step: int | None = None,
        warmup: bool = False,
        checkpoint_bytes: int | None = None,
        **more: Any,  # noqa: ANN401 - as torch has them
    ) -> Any:  # noqa: ANN401 - as torch has it
        """Save as `dcp.save` does, and record it; return what it returns."""
        import torch.distributed.checkpoint as dcp

        place = _place(checkpoint_id, more.get("storage_writer"))
        with self.timing(
            "save",
            checkpoint_id=place,
            step=step,
            warmup=warmup,
            checkpoint_bytes=checkpoint_bytes,
            **_seen(more),
        ):
            return dcp.save(state_dict, checkpoint_id=checkpoint_id, **more)

    def load(
        self,
        state_dict: Any,  # noqa: ANN401 - as torch has it
        *,
        checkpoint_id: Any = None,  # noqa: ANN401 - as torch has it
        step: int | None = None,
        saved_world_size: int | None = None,
        page_cache: str | None = None,
        warmup: bool = False,
        checkpoint_bytes: int | None = None,
        **more: Any,  # noqa: ANN401 - as torch has them
    ) -> Any:  # noqa: ANN401 - as torch has it
        """Load as `dcp.load` does, and record it.

        Args:
            state_dict: As `dcp.load` has it.
            checkpoint_id: As `dcp.load` has it.
            step: The training step of the checkpoint.
            saved_world_size: How many ranks wrote it, where they were not as many as now.
            page_cache: `cold` where the caches were dropped before, `warm` where it was surely in them.
            warmup: Whether a one-off cost is in it.
            checkpoint_bytes: Its size, where it cannot be looked up. [B]
            more: As `dcp.load` has them.
        """
        import torch.distributed.checkpoint as dcp

        place = _place(checkpoint_id, more.get("storage_reader"))
        resharded = saved_world_size is not None and saved_world_size != _world()[1]
        with self.timing(
            "resharded_load" if resharded else "load",
            checkpoint_id=place,
            step=step,
            warmup=warmup,
            saved_world_size=saved_world_size,
            checkpoint_bytes=checkpoint_bytes,
            settings={"page_cache": page_cache} if page_cache else None,
            by_rank="process_group" not in more,
        ):
            return dcp.load(state_dict, checkpoint_id=checkpoint_id, **more)

    def async_save(
        self,
        state_dict: Any,  # noqa: ANN401 - as torch has it
        *,
        checkpoint_id: Any = None,  # noqa: ANN401 - as torch has it
        step: int | None = None,
        previous: Any = None,  # noqa: ANN401 - as torch has it
        warmup: bool | None = None,
        checkpoint_bytes: int | None = None,
        **more: Any,  # noqa: ANN401 - as torch has them
    ) -> Any:  # noqa: ANN401 - as torch has it
        """Save as `dcp.async_save` does, after the save before is done, and record both; return what it returns.

        Args:
            state_dict: As `dcp.async_save` has it.
            checkpoint_id: As `dcp.async_save` has it.
            step: The training step.
            previous: What the last `async_save` returned: it is waited for, which training has to as well.
            warmup: Whether a one-off cost is in it; by default so for the first save by a process.
            checkpoint_bytes: Its size, where it cannot be looked up. [B]
            more: As `dcp.async_save` has them.
        """
        import torch.distributed.checkpoint as dcp

        operation = self._begin("async_save", step, _place(checkpoint_id, more.get("storage_writer")))
        if previous is not None:
            try:
                done_future(previous).result()
            except BaseException:
                self._operations.remove(operation)  # it was the save before that failed; this one never began
                raise
            with _warned("time the wait for the save before"):
                operation.times["wait_previous_seconds"] = operation.elapsed()
        called = time.perf_counter()
        try:
            answer = dcp.async_save(state_dict, checkpoint_id=checkpoint_id, **more)
        except BaseException as error:
            operation.fail(error)
            operation.done.set()
            raise
        operation.times["blocked_seconds"] = operation.elapsed()
        with _warned("follow an async save"):
            seen = _seen(more)
            settings = seen["settings"] or {}
            by_process = settings.get("async_checkpointer_type") == "process"
            settings["async_staging"] = hasattr(answer, "staging_completion")
            operation.told["settings"] = settings
            self._process_saves += by_process
            if warmup or (warmup is None and by_process and self._process_saves == 1):
                operation.told["warmup"] = True
            staged = self._handler.take({_STAGING}, None, called)
            if settings["async_staging"]:
                answer.staging_completion.add_done_callback(lambda _: self._staged(operation, staged))
            elif staged:
                _, spent, operation.staged = staged[-1]
                operation.times["staging_seconds"] = round(spent, 6)
            done_future(answer).add_done_callback(
                lambda future: self._completed(operation, future, checkpoint_bytes, by_rank=seen["by_rank"])
            )
        return answer

    # --- Around anything ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def timing(
        self,
        op: str,
        *,
        checkpoint_id: Any = None,  # noqa: ANN401 - a path or an address
        step: int | None = None,
        warmup: bool = False,
        saved_world_size: int | None = None,
        checkpoint_bytes: int | None = None,
        settings: dict[str, Any] | None = None,
        by_rank: bool = True,
    ) -> Iterator[None]:
        """Record a save, load or resharded_load that happens within, whatever does it.

        Args:
            op: `save`, `load` or `resharded_load`.
            checkpoint_id: Where the checkpoint is.
            step: The training step.
            warmup: Whether a one-off cost is in it.
            saved_world_size: Loads: how many ranks wrote it.
            checkpoint_bytes: Its size, where it cannot be looked up. [B]
            settings: As the format has them.
            by_rank: Whether the numbers in the names of the files are those of the ranks.
        """
        operation = self._begin(op, step, checkpoint_id)
        try:
            yield
        except BaseException as error:
            operation.fail(error)
            operation.done.set()
            raise
        with _warned("record an operation"):
            operation.times["total_seconds"] = operation.elapsed()
            operation.ended_at = _now()
            if warmup:
                operation.told["warmup"] = True
            if saved_world_size is not None:
                operation.told["saved_world_size"] = int(saved_world_size)
            if settings:
                operation.told["settings"] = settings
            self._add_phases(operation)
            self._measure(operation, checkpoint_bytes, by_rank=by_rank)
        operation.done.set()

    def write(self, path: Any = "dcp-timing.json", *, wait_seconds: float = 600.0) -> bool:  # noqa: ANN401 - any path
        """Gather what all ranks recorded and, on rank 0, write the document; return whether that was done here.

        Every rank calls it, after its last operation. Saves under way are waited for, but not for ever.

        Args:
            path: Where to write it: put in place whole, or not at all.
            wait_seconds: How long to wait for what is under way. [s]
        """
        mine = "null"
        with _warned("gather this rank's records"):
            until = time.monotonic() + wait_seconds
            for operation in self._operations:
                operation.done.wait(max(0.0, until - time.monotonic()))
                operation.measured.wait(max(0.0, until - time.monotonic()))
            mine = json.dumps(self._records(), allow_nan=False)
        # All ranks take part in this, whatever went wrong on one of them.
        everyone: list[str] = []
        with _warned("gather the ranks' records"):
            everyone = _gathered(mine)
        if not everyone:
            return False
        with _warned(f"write {path}"):
            document = self._document([json.loads(one) for one in everyone])
            _write_whole(
                pathlib.Path(path), json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            )
            return True
        return False

    # --- Inside ---------------------------------------------------------------------------------------------

    def _begin(self, op: str, step: int | None, checkpoint_id: object) -> _Operation:
        try:
            operation = _Operation(op, step, checkpoint_id)
        except Exception as error:  # a path or a step of some other kind
            _warn("name an operation", error)
            operation = _Operation(op, None, None)
        self._operations.append(operation)
        return operation

    def _add_phases(self, operation: _Operation) -> None:
        for name, spent, _ in self._handler.take(set(_PHASES), operation.path, operation.started):
            key = _PHASES[name]
            operation.times[key] = round(operation.times.get(key, 0.0) + spent, 6)

    def _staged(self, operation: _Operation, staged: list[tuple[str, float, float]]) -> None:
        with _warned("time the staging"):
            operation.staged = time.perf_counter()
            began = staged[-1][2] - staged[-1][1] if staged else None
            if began is not None:
                operation.times["staging_seconds"] = round(operation.staged - began, 6)

    def _completed(
        self,
        operation: _Operation,
        future: Any,  # noqa: ANN401 - a future of torch's
        checkpoint_bytes: int | None,
        *,
        by_rank: bool,
    ) -> None:
        with _warned("record the end of an async save"):
            total, ended_at = operation.elapsed(), _now()
            error = future.exception()
            if error is not None:
                operation.fail(error)
            else:
                operation.times["total_seconds"], operation.ended_at = total, ended_at
                if operation.staged is not None:
                    lasted = operation.started + total - operation.staged
                    operation.times["persist_seconds"] = round(max(0.0, lasted), 6)
                self._add_phases(operation)
                self._measure(operation, checkpoint_bytes, by_rank=by_rank)
        operation.done.set()

    def _measure(self, operation: _Operation, checkpoint_bytes: int | None, *, by_rank: bool) -> None:
        """Look the sizes up on rank 0, in a thread: a folder of many files takes its time."""
        is_save = operation.told["op"] in ("save", "async_save")
        if checkpoint_bytes is not None:
            operation.told["checkpoint_bytes"] = int(checkpoint_bytes)
            if is_save:
                operation.told["bytes_total"] = int(checkpoint_bytes)
        if checkpoint_bytes is not None or operation.path is None or _world()[0] != 0:
            return
        operation.measured.clear()

        def look() -> None:
            try:
                with _warned("look up the size of a checkpoint"):
                    _add_sizes(operation, is_save=is_save, by_rank=by_rank)
            finally:
                operation.measured.set()

        threading.Thread(target=look, name="checkpoint-sizes", daemon=True).start()

    def _records(self) -> dict[str, Any]:
        """Return what this rank has to tell, for rank 0."""
        operations = []
        for operation in self._operations:
            if not operation.done.is_set() and "blocked_seconds" not in operation.times:
                continue  # it is still in its blocking part
            operations.append(
                {
                    "told": dict(operation.told),
                    "times": dict(operation.times),
                    "ended_at": operation.ended_at,
                    "rank_bytes": {str(rank): sizes for rank, sizes in operation.rank_bytes.items()},
                }
            )
        return {
            "host": socket.gethostname(),
            "local_world_size": os.environ.get("LOCAL_WORLD_SIZE"),
            "group_rank": os.environ.get("GROUP_RANK"),
            "operations": operations,
        }

    def _document(self, everyone: list[Any]) -> dict[str, Any]:
        """Return the document that the ranks' records make."""
        import torch

        records = {rank: one for rank, one in enumerate(everyone) if one is not None}
        world_size = len(everyone)
        nodes, per_node = _topology(list(records.values()), world_size, self._nodes)
        software = {name: value for name, value in self._software.items() if value is not None}
        software.setdefault("checkpointer_version", torch.__version__.split("+")[0])
        if (backend := _backend()) is not None:
            software["collective_backend"] = backend
        groups: dict[tuple[object, ...], dict[int, Any]] = {}
        for rank, record in records.items():
            seen: dict[tuple[object, ...], int] = {}
            for operation in record["operations"]:
                told = operation["told"]
                same = (told["op"], told.get("checkpoint"), told.get("step"))
                seen[same] = seen.get(same, 0) + 1
                groups.setdefault((*same, seen[same]), {})[rank] = operation
        operations = [_merged(by_rank, records, nodes) for by_rank in groups.values()]
        operations.sort(key=lambda operation: str(operation["started_at"]))
        head = {
            **self._head,
            "recorded_at": _now(),
            "software": software,
            "world_size": world_size,
            "nodes": nodes,
        }
        if per_node is not None:
            head["ranks_per_node"] = per_node
        return {**head, "storage": self._storage, "operations": operations}


def done_future(answer: Any) -> Any:  # noqa: ANN401 - a future of torch's
    """Return the future that is done when the checkpoint is safe, of what `async_save` returned."""
    return getattr(answer, "upload_completion", answer)


def _merged(by_rank: dict[int, Any], records: dict[int, Any], nodes: int) -> dict[str, Any]:
    """Return one operation of the document, from what each rank tells of it."""
    first = by_rank[min(by_rank)]
    told: dict[str, Any] = {}
    for one in by_rank.values():
        told |= {name: value for name, value in one["told"].items() if name not in told or name == "status"}
    failed = told.get("status") == "failed"
    merged: dict[str, Any] = {name: told[name] for name in _SHARED if name in told}
    if failed:  # whatever some ranks wrote is no checkpoint
        for name in ("checkpoint_bytes", "bytes_total", "files_total", "metadata_bytes"):
            merged.pop(name, None)
        merged["error"] = next(
            one["told"]["error"] for one in by_rank.values() if one["told"].get("status") == "failed"
        )
    merged["started_at"] = min(one["times"]["started_at"] for one in by_rank.values())
    ends = [one["ended_at"] for one in by_rank.values()]
    if all(ends):
        merged["ended_at"] = max(ends)
    sizes = first["rank_bytes"] if not failed else {}
    group_ranks = {rank: record.get("group_rank") for rank, record in records.items()}
    merged["ranks"] = []
    for rank, one in sorted(by_rank.items()):
        own: dict[str, Any] = {"rank": rank}
        node = group_ranks[rank]
        if node is not None and node.isdecimal() and int(node) < nodes:
            own["node"] = int(node)
        own |= one["times"]
        if sizes:
            own["bytes"], own["files"] = sizes.get(str(rank), [0, 0])
        merged["ranks"].append(own)
    return merged


def _topology(records: list[Any], world_size: int, stated: int | None) -> tuple[int, int | None]:
    """Return the nodes, and the ranks on each where they are the same on all."""
    local = {record["local_world_size"] for record in records}
    size = local.pop() if len(local) == 1 else None
    per_node = int(size) if size is not None and size.isdecimal() and int(size) > 0 else None
    if stated is not None:
        nodes = int(stated)
    elif per_node is not None and world_size % per_node == 0:
        nodes = world_size // per_node
    else:
        nodes = len({record["host"] for record in records}) or 1
    return nodes, per_node if per_node is not None and nodes * per_node == world_size else None


def _add_sizes(operation: _Operation, *, is_save: bool, by_rank: bool) -> None:
    """Add the sizes of a checkpoint's files to an operation, where it is a folder that can be seen from here."""
    folder = pathlib.Path(str(operation.path))
    if not folder.is_dir():
        return
    world_size = _world()[1]
    total, files = 0, 0
    sizes: dict[int, list[int]] = {}
    for entry in os.scandir(folder):
        named = _DATA_FILE.fullmatch(entry.name)
        if entry.name == ".metadata":
            operation.told["metadata_bytes"] = entry.stat().st_size
        if not entry.name.endswith(".distcp"):
            continue
        rank = int(named[1]) if named else None
        if rank is None:
            by_rank = False
        elif is_save and by_rank and rank >= world_size:
            continue  # left over from a save by more ranks
        size = entry.stat().st_size
        total, files = total + size, files + 1
        if rank is not None:
            own = sizes.setdefault(rank, [0, 0])
            own[0], own[1] = own[0] + size, own[1] + 1
    if files == 0:
        return
    operation.told["checkpoint_bytes"], operation.told["files_total"] = total, files
    if is_save:
        operation.told["bytes_total"] = total
        if by_rank:
            operation.rank_bytes = sizes


def _place(checkpoint_id: object, storage: object) -> Any:  # noqa: ANN401 - a path or an address
    """Return where a checkpoint is: as the call says, else as its writer or reader does."""
    if checkpoint_id:
        return checkpoint_id
    try:
        return getattr(storage, "checkpoint_id", None)
    except Exception:
        return None


def _seen(more: dict[str, Any]) -> dict[str, Any]:
    """Return what the arguments of a save tell of its settings."""
    settings: dict[str, Any] = {}
    by_rank = True
    with _warned("read the settings of a save"):
        by_rank = more.get("process_group") is None
        writer = more.get("storage_writer")
        for name, kind in (("thread_count", int), ("sync_files", bool), ("single_file_per_rank", bool)):
            value = getattr(writer, name, None)
            if type(value) is kind:
                settings[name] = value
        asynchronous = getattr(more.get("async_checkpointer_type"), "value", None)
        if asynchronous in ("thread", "process"):
            settings["async_checkpointer_type"] = asynchronous
    return {"settings": settings, "by_rank": by_rank}


def _events_logger() -> logging.Logger:
    """Return the logger to which torch tells the phases of each operation."""
    try:
        from torch.distributed.checkpoint import logger as torch_logger

        found = getattr(torch_logger, "_dcp_logger", None)
        if isinstance(found, logging.Logger):
            return found
    except ImportError:
        pass
    return logging.getLogger(_EVENTS)


def _world() -> tuple[int, int]:
    """Return this process's rank and how many there are; without a process group it is a world of its own."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def _backend() -> str | None:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return str(dist.get_backend())[:32]
    return None


def _gathered(mine: str) -> list[str]:
    """Return every rank's text, on rank 0; nothing on the others."""
    import torch.distributed as dist

    rank, world_size = _world()
    if world_size == 1:
        return [mine]
    everyone: list[Any] | None = [None] * world_size if rank == 0 else None
    dist.gather_object(mine, everyone, dst=0)
    return everyone or []


def _write_whole(path: pathlib.Path, text: str) -> None:
    """Write a file so that at no moment a part of it is there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")  # noqa: UP017 - or Python 3.10


@contextlib.contextmanager
def _warned(what: str) -> Iterator[None]:
    """Make what fails within a warning: no training shall end for its timing."""
    try:
        yield
    except Exception as error:
        _warn(what, error)


def _warn(what: str, error: Exception) -> None:
    # Where warnings are errors, this one is not: it would reach the training after all.
    with contextlib.suppress(Exception):
        warnings.warn(
            f"The checkpoint recorder could not {what}: {type(error).__name__}: {error}", stacklevel=3
        )
