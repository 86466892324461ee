"""A training run that does nothing but save and load, under the recorder; a test starts it, once for each rank."""

import sys
from pathlib import Path
from typing import Any

import ckpt_recorder
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def state_of(rank: int, world_size: int) -> dict[str, Any]:
    """Return a state of half a megabyte for each rank."""
    if hasattr(torch, "IS_STAND_IN"):
        return {"w": bytes(1 << 19)}
    if world_size == 1:
        return {"w": torch.zeros(1 << 17)}
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (world_size,))
    return {"w": distribute_tensor(torch.zeros(world_size << 17), mesh, [Shard(0)])}


def main(folder: Path, rank: int, world_size: int) -> None:
    """Train."""
    if world_size > 1:
        meeting = f"file://{folder / 'meeting'}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world_size)
    state = state_of(rank, world_size)
    recorder = ckpt_recorder.Recorder(
        run_id="a-run", storage_label="scratch", trainer="a test", storage_kind="local"
    )
    recorder.save(state, checkpoint_id=f"{folder}/step-1", step=1, warmup=True)
    recorder.save(state, checkpoint_id=f"{folder}/step-2", step=2)
    future = None
    for step in (3, 4):
        future = recorder.async_save(state, checkpoint_id=f"{folder}/step-{step}", step=step, previous=future)
    ckpt_recorder.done_future(future).result()
    recorder.load(state, checkpoint_id=f"{folder}/step-2", step=2, page_cache="warm")
    try:
        recorder.load(state, checkpoint_id=f"{folder}/step-99", step=99)
    except BaseException as error:  # torch's own is no Exception
        print("training was told:", type(error).__name__)
    with recorder.timing("resharded_load", checkpoint_id=f"{folder}/step-1", saved_world_size=16):
        dcp.load(state, checkpoint_id=f"{folder}/step-1")
    print("wrote" if recorder.write(folder / "dcp-timing.json") else "left the writing to rank 0")
    assert "service" not in sys.modules
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
