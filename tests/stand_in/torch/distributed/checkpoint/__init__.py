"""save, async_save and load that log what torch 2.13's were recorded to log, and write a file for each rank."""

import json
import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import distributed as dist

_RECORDED = Path(__file__).parents[4] / "data" / "dcp" / "foreign"
_logger = logging.getLogger("c10d-NullHandler-dcp_logger")
_logger.setLevel(logging.DEBUG)
_logger.propagate = False
_executor = ThreadPoolExecutor(max_workers=1)

State = dict[str, bytes]


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _replay(run: str, names: Iterable[str], checkpoint: str) -> None:
    """Log the recorded events of some phases, one dictionary for all of them as torch does, and take their time."""
    reused: dict[str, Any] = {}
    for line in (_RECORDED / f"dcp-logger.{run}.rank{_rank()}.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["func_name"] in names:
            if event["event"] == "end":
                _pass(event["times_spent"] / 1e9)
            reused.clear()
            reused |= event
            if event["checkpoint_id"] is not None:
                reused["checkpoint_id"] = checkpoint
            _logger.debug(reused)


def _pass(seconds: float) -> None:
    """Let as much time go by as a phase took."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _write(state: State, folder: Path) -> None:
    _replay("w2_sync", ("local_step", "global_step", "write_data"), str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"__{_rank()}_0.distcp").write_bytes(state["w"])
    (folder / ".metadata").write_bytes(b"metadata")


def save(state_dict: State, *, checkpoint_id: str) -> None:
    """Write a file for this rank."""
    _write(state_dict, Path(checkpoint_id))


def async_save(state_dict: State, *, checkpoint_id: str) -> "Future[None]":
    """Do so in another thread, after the time that staging took."""
    _replay("w4_async_thread", ("stage_state_dict", "maybe_synchronize_staging"), checkpoint_id)
    return _executor.submit(_write, state_dict, Path(checkpoint_id))


def load(_state_dict: State, *, checkpoint_id: str) -> None:
    """Find the metadata, or raise what torch raises for want of it."""
    if not (Path(checkpoint_id) / ".metadata").exists():
        raise FileNotFoundError(checkpoint_id)
    event = {
        "checkpoint_id": checkpoint_id,
        "func_name": "read_data",
        "event": "end",
        "times_spent": 2_000_000,
    }
    _pass(0.002)
    _logger.debug(event)
