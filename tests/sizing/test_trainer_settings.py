"""What trainers are told: names that they know, and nothing that they do not need."""

import ast
import shlex
import tomllib

import pytest

from service.sizing.sizing import Framework, SettingsForm, Trainer, TrainerSetting
from tests.sizing.scenarios import Body, sized

ASYNC: Body = {"mode": "async", "blocking_seconds": 5, "step_seconds": 7.3}


def _trainer(**blocks: Body | None) -> Trainer:
    found = sized(**blocks).trainer
    assert found is not None
    return found


def _setting(found: Trainer, framework: Framework, form: SettingsForm) -> TrainerSetting:
    (setting,) = (each for each in found.settings if (each.framework, each.form) == (framework, form))
    return setting


def test_without_a_step_or_a_thread_nothing_is_said() -> None:
    assert sized().trainer is None
    assert sized(storage={"write_gb_per_second": 100}).trainer is None


def test_the_interval_is_told_in_steps_and_what_they_come_to() -> None:
    found = _trainer(save=ASYNC)
    assert found.interval_steps == 82
    assert found.interval_seconds == pytest.approx(82 * 7.3 + 5, rel=1e-15)
    assert found.threads_per_rank is None
    assert {each.framework for each in found.settings} == {
        Framework.TORCHTITAN,
        Framework.MEGATRON_LM,
        Framework.NEMO,
        Framework.MEGATRON_BRIDGE,
    }


def test_torchtitan_reads_its_toml() -> None:
    text = _setting(_trainer(save=ASYNC), Framework.TORCHTITAN, SettingsForm.TOML).text
    assert tomllib.loads(text) == {"checkpoint": {"enable": True, "interval": 82, "async_mode": "async"}}
    sync = _trainer(save={"mode": "sync", "blocking_seconds": 60, "step_seconds": 5})
    text = _setting(sync, Framework.TORCHTITAN, SettingsForm.TOML).text
    assert tomllib.loads(text) == {"checkpoint": {"enable": True, "interval": 108, "async_mode": "disabled"}}
    line = _setting(sync, Framework.TORCHTITAN, SettingsForm.COMMAND_LINE).text
    assert shlex.split(line) == [
        "--checkpoint.enable", "--checkpoint.interval", "108", "--checkpoint.async_mode", "disabled",
    ]  # fmt: skip


def test_megatron_is_told_of_async_saves_and_of_the_worker_that_they_need() -> None:
    line = _setting(_trainer(save=ASYNC), Framework.MEGATRON_LM, SettingsForm.COMMAND_LINE).text
    assert shlex.split(line) == [
        "--save-interval", "82", "--ckpt-format", "torch_dist", "--async-save", "--use-persistent-ckpt-worker",
    ]  # fmt: skip
    sync = _trainer(save={"mode": "sync", "blocking_seconds": 60, "step_seconds": 5})
    assert "async" not in _setting(sync, Framework.MEGATRON_LM, SettingsForm.COMMAND_LINE).text


def test_nemo_counts_steps_and_no_time_beside_them() -> None:
    text = _setting(_trainer(save=ASYNC), Framework.NEMO, SettingsForm.PYTHON).text
    assigned = {
        ast.unparse(line.targets[0]): ast.literal_eval(line.value)
        for line in ast.parse(text).body
        if isinstance(line, ast.Assign)
    }
    assert assigned == {
        "recipe.log.ckpt.every_n_train_steps": 82,
        "recipe.log.ckpt.train_time_interval": None,
        "recipe.trainer.strategy.ckpt_async_save": True,
    }


def test_megatron_bridge_is_told_the_same_in_its_own_names() -> None:
    text = _setting(_trainer(save=ASYNC), Framework.MEGATRON_BRIDGE, SettingsForm.PYTHON).text
    assigned = {
        ast.unparse(line.targets[0]): ast.literal_eval(line.value)
        for line in ast.parse(text).body
        if isinstance(line, ast.Assign)
    }
    assert assigned == {
        "config.checkpoint.save_interval": 82,
        "config.checkpoint.ckpt_format": "torch_dist",
        "config.checkpoint.async_save": True,
        "config.checkpoint.use_persistent_ckpt_worker": True,
    }


def test_threads_that_fill_the_nic_are_set_where_a_trainer_takes_them() -> None:
    found = _trainer(save=ASYNC, storage={"node_gb_per_second": 50, "thread_gb_per_second": 1.7})
    assert (found.writing_ranks_per_node, found.threads_per_rank, found.threads_per_node) == (8, 4, 32)
    megatron = _setting(found, Framework.MEGATRON_LM, SettingsForm.COMMAND_LINE).text
    assert megatron.endswith("--dist-ckpt-workers 4")
    nemo = _setting(found, Framework.NEMO, SettingsForm.PYTHON).text
    assert nemo.endswith("recipe.trainer.strategy.ckpt_torch_dist_multiproc = 4")
    bridge = _setting(found, Framework.MEGATRON_BRIDGE, SettingsForm.PYTHON).text
    assert bridge.endswith("config.checkpoint.storage_writers_per_rank = 4")
    dcp = _setting(found, Framework.TORCH_DCP, SettingsForm.PYTHON).text
    assert ast.unparse(ast.parse(dcp)).endswith("FileSystemWriter(path, thread_count=4)")


def test_without_the_nics_rate_the_threads_move_what_saves_need() -> None:
    # 94.5 GB/s over 2,048 nodes of 8 writers.
    found = _trainer(storage={"thread_gb_per_second": 0.002})
    assert found.threads_per_rank == 3
    assert found.interval_steps is None


def test_threads_that_make_files_are_warned_of_until_they_are_counted() -> None:
    storage: Body = {"node_gb_per_second": 50, "thread_gb_per_second": 1.7}
    codes = [warning.code.value for warning in sized(storage=storage).warnings]
    assert "threads_make_files" in codes
    counted = sized(storage=storage, shards={"files_per_writer": 4})
    assert "threads_make_files" not in [warning.code.value for warning in counted.warnings]


def test_steps_too_coarse_for_the_interval_are_warned_of() -> None:
    def codes(step_seconds: float) -> list[str]:
        return [warning.code.value for warning in sized(save=ASYNC | {"step_seconds": step_seconds}).warnings]

    assert "steps_are_coarse" in codes(400)
    assert "steps_are_coarse" not in codes(7.3)
