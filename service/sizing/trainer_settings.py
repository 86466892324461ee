"""The lines to write into a trainer's settings, by trainer: names as they are in the versions said.

Megatron-LM writes all shards in parallel unless told not to; its `--ckpt-fully-parallel-save` has no effect any more.
"""

from service.sizing import trainer
from service.sizing.operation import Job, Operation
from service.sizing.sizing import (
    Framework,
    SettingsForm,
    SizingWarning,
    Trainer,
    TrainerSetting,
    WarningCode,
    Write,
)

COARSE_FRACTION = 0.05
"""From here on a reader is told that whole steps change the interval."""


def trainer_block(
    job: Job, operation: Operation, write: Write, warnings: list[SizingWarning]
) -> Trainer | None:
    """Return what trainers are to be set to; None where neither a step's nor a thread's speed is known."""
    step_seconds, storage = job.spec.save.step_seconds, job.spec.storage
    thread_rate = storage.thread_gb_per_second if storage is not None else None
    steps = seconds = ranks = threads = None
    if step_seconds is not None:
        wanted, blocking_seconds = operation.interval.seconds, operation.blocking.seconds
        steps = trainer.interval_steps(
            interval_seconds=wanted, blocking_seconds=blocking_seconds, step_seconds=step_seconds
        )
        seconds = trainer.interval_of_steps(
            interval_steps=steps, step_seconds=step_seconds, blocking_seconds=blocking_seconds
        )
        if abs(seconds - wanted) > COARSE_FRACTION * wanted:
            warnings.append(
                SizingWarning(
                    code=WarningCode.STEPS_ARE_COARSE,
                    pointer="#/save/step_seconds",
                    message=f"The interval of {wanted:.6g} s is far from a whole number of steps of "
                    f"{step_seconds:.6g} s: {steps} of them and a save come to {seconds:.6g} s. "
                    f"The figures are those of {wanted:.6g} s.",
                )
            )
    if storage is not None and thread_rate is not None:
        rate = storage.node_gb_per_second
        ranks = trainer.writing_ranks(writers=job.writers, nodes=job.writing_nodes)
        threads = trainer.writer_threads(
            node_gb_per_second=rate if rate is not None else write.node_gb_per_second,
            thread_gb_per_second=thread_rate,
            writing_ranks=ranks,
        )
        if threads > max(job.spec.shards.files_per_writer, 1):
            warnings.append(_threads_make_files(threads))
    if steps is None and threads is None:
        return None
    return Trainer(
        interval_steps=steps,
        interval_seconds=seconds,
        writing_ranks_per_node=ranks,
        threads_per_rank=threads,
        threads_per_node=threads * ranks if threads is not None and ranks is not None else None,
        settings=[
            *(_interval_settings(steps, threads or 1, is_async=job.is_async) if steps is not None else ()),
            *(_thread_settings(threads) if threads is not None and threads > 1 else ()),
        ],
    )


def _threads_make_files(threads: int) -> SizingWarning:
    return SizingWarning(
        code=WarningCode.THREADS_MAKE_FILES,
        pointer="#/shards/files_per_writer",
        message=f"One writer thread of a rank cannot fill its part of the node's bandwidth; {threads} can. DCP writes "
        f"a file from each thread, so give files_per_writer {threads}: files and creates a second grow with it.",
    )


def _interval_settings(steps: int, threads: int, *, is_async: bool) -> list[TrainerSetting]:
    mode = "async" if is_async else "disabled"
    megatron = [f"--save-interval {steps}", "--ckpt-format torch_dist"]
    nemo = [
        f"recipe.log.ckpt.every_n_train_steps = {steps}",
        "recipe.log.ckpt.train_time_interval = None",
        f"recipe.trainer.strategy.ckpt_async_save = {is_async}",
    ]
    if is_async:
        # Without the persistent worker Megatron-LM turns async saves off, with no more than a warning.
        megatron += ["--async-save", "--use-persistent-ckpt-worker"]
        if threads > 1:
            megatron.append(f"--dist-ckpt-workers {threads}")
    bridge = [
        f"config.checkpoint.save_interval = {steps}",
        'config.checkpoint.ckpt_format = "torch_dist"',
        f"config.checkpoint.async_save = {is_async}",
    ]
    if is_async:
        # Without it Megatron Bridge refuses async saves.
        bridge.append("config.checkpoint.use_persistent_ckpt_worker = True")
    if threads > 1:
        nemo.append(f"recipe.trainer.strategy.ckpt_torch_dist_multiproc = {threads}")
        bridge.append(f"config.checkpoint.storage_writers_per_rank = {threads}")
    return [
        TrainerSetting(
            framework=Framework.TORCHTITAN,
            version="0.2.2",
            form=SettingsForm.TOML,
            text=f'[checkpoint]\nenable = true\ninterval = {steps}\nasync_mode = "{mode}"',
            source="torchtitan, torchtitan/config/job_config.py, class Checkpoint",
        ),
        TrainerSetting(
            framework=Framework.TORCHTITAN,
            version="0.2.2, and main of August 2026",
            form=SettingsForm.COMMAND_LINE,
            text=f"--checkpoint.enable --checkpoint.interval {steps} --checkpoint.async_mode {mode}",
            source="torchtitan, docs/checkpoint.md and torchtitan/components/checkpointer/dcp.py",
        ),
        TrainerSetting(
            framework=Framework.MEGATRON_LM,
            version="core 0.20, main of August 2026",
            form=SettingsForm.COMMAND_LINE,
            text=" ".join(megatron),
            source="Megatron-LM, megatron/training/config/training_config.py, class CheckpointConfig, and arguments.py",
        ),
        TrainerSetting(
            framework=Framework.NEMO,
            version="2.6",
            form=SettingsForm.PYTHON,
            text="\n".join(nemo),
            source="NeMo, nemo/lightning/pytorch/callbacks/model_checkpoint.py and strategies/megatron_strategy.py",
        ),
        TrainerSetting(
            framework=Framework.MEGATRON_BRIDGE,
            version="main of 2026, commit 003e863",
            form=SettingsForm.PYTHON,
            text="\n".join(bridge),
            source="Megatron Bridge, src/megatron/bridge/training/config.py, class CheckpointConfig",
        ),
    ]


def _thread_settings(threads: int) -> list[TrainerSetting]:
    return [
        TrainerSetting(
            framework=Framework.TORCH_DCP,
            version="2.0 and later",
            form=SettingsForm.PYTHON,
            text=f"torch.distributed.checkpoint.FileSystemWriter(path, thread_count={threads})",
            source="PyTorch, torch/distributed/checkpoint/filesystem.py, class FileSystemWriter",
        )
    ]
