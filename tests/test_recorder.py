"""The recorder: under a real torch where one is installed, and under a stand-in that replays a real one's events.

The ids of the tests say which.
"""

import importlib.util
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from service import recorder as recorder_module
from service.cli import app as command
from service.parsers.measurement import DoubtCode, Record
from service.parsers.register import parse
from service.recorder import Recorder

HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in"
SCHEMA = Draft202012Validator(json.loads((HERE / "data" / "dcp" / "dcp-timing.schema.json").read_text()))
IMPLEMENTATIONS = ["stand-in torch"]
if importlib.util.find_spec("torch") is not None:
    IMPLEMENTATIONS.append(f"torch {metadata.version('torch')}")

Json = dict[str, Any]


@pytest.fixture(
    scope="module", params=[f"{one}, {ranks} rank" for one in IMPLEMENTATIONS for ranks in (1, 2)]
)
def trained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Json, int, bool]:
    """Return what a training of one or two ranks recorded, how many they were, and whether torch was a stand-in."""
    implementation, ranks = request.param.split(", ")
    is_stand_in, world_size = implementation == "stand-in torch", int(ranks[0])
    folder = tmp_path_factory.mktemp("training")
    printed = CliRunner().invoke(command, ["recorder"])
    assert printed.exit_code == 0
    (folder / "ckpt_recorder.py").write_text(printed.stdout, "utf-8")
    running = []
    for rank in reversed(range(world_size)):
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([str(STAND_IN)] if is_stand_in else [])]),
            "RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(rank),
        }  # fmt: skip
        arguments = [
            sys.executable,
            str(HERE / "recorded_training.py"),
            str(folder),
            str(rank),
            str(world_size),
        ]
        running.append(
            subprocess.Popen(
                arguments,
                env=environment,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        if is_stand_in:  # its ranks run one after the other
            running[-1].wait(60)
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * world_size, said
    assert [out.splitlines()[-1] for out, _ in said] == ["left the writing to rank 0"] * (world_size - 1) + [
        "wrote"
    ]
    assert all(out.startswith("training was told:") for out, _ in said)
    made: Json = json.loads((folder / "dcp-timing.json").read_text())
    assert sorted(path.name for path in folder.glob(".*")) == []
    return made, world_size, is_stand_in


def read(made: Json) -> Record:
    return parse(json.dumps(made).encode())


def test_a_training_leaves_a_document_that_the_service_takes(trained: tuple[Json, int, bool]) -> None:
    made, world_size, _ = trained
    SCHEMA.validate(made)
    record = read(made)
    assert [(one.op, one.status, one.step, one.warmup) for one in record.operations or ()] == [
        ("save", "ok", 1, True),
        ("save", "ok", 2, False),
        ("async_save", "ok", 3, False),
        ("async_save", "ok", 4, False),
        ("load", "ok", 2, False),
        ("load", "failed", 99, False),
        ("resharded_load", "ok", None, False),
    ]
    assert all(one.ranks_reporting == world_size for one in record.operations or ())
    assert DoubtCode.PARTIAL_RANKS not in [doubt.code for doubt in record.doubts]


def test_the_head_says_what_ran_where(trained: tuple[Json, int, bool]) -> None:
    made, world_size, _ = trained
    assert made["run_id"] == "a-run"
    assert made["software"]["checkpointer"] == "torch.distributed.checkpoint"
    assert made["software"]["trainer"] == "a test"
    assert made["software"].get("collective_backend") == (None if world_size == 1 else "gloo")
    assert (made["world_size"], made["nodes"], made["ranks_per_node"]) == (world_size, world_size, 1)
    assert made["storage"] == {"label": "scratch", "kind": "local"}


def test_each_rank_has_its_own_times_and_bytes(trained: tuple[Json, int, bool]) -> None:
    made, world_size, _ = trained
    for operation in made["operations"][:4]:
        assert [(rank["rank"], rank["node"]) for rank in operation["ranks"]] == [
            (at, at) for at in range(world_size)
        ]
        for rank in operation["ranks"]:
            assert 0 < rank["io_seconds"] <= rank["total_seconds"]
            assert rank["plan_seconds"] > 0
            assert rank["bytes"] >= 1 << 19
            assert rank["files"] == 1
        assert operation["bytes_total"] == sum(rank["bytes"] for rank in operation["ranks"])
        assert operation["files_total"] == world_size
        assert operation["metadata_bytes"] > 0


def test_an_async_save_tells_its_phases_apart(trained: tuple[Json, int, bool]) -> None:
    made, _, _ = trained
    first, second = made["operations"][2:4]
    for operation in (first, second):
        for rank in operation["ranks"]:
            assert rank["staging_seconds"] + rank.get("wait_previous_seconds", 0) <= rank["blocked_seconds"]
            assert rank["blocked_seconds"] <= rank["total_seconds"]
            assert rank["io_seconds"] <= rank["persist_seconds"] <= rank["total_seconds"]
    assert not any("wait_previous_seconds" in rank for rank in first["ranks"])
    assert all(rank["wait_previous_seconds"] > 0 for rank in second["ranks"])


def test_a_load_that_failed_is_recorded_and_reaches_the_training(trained: tuple[Json, int, bool]) -> None:
    made, _, _ = trained
    failed = made["operations"][5]
    assert failed["error"]
    assert "checkpoint_bytes" not in failed


def test_a_load_knows_the_size_of_what_it_read(trained: tuple[Json, int, bool]) -> None:
    made, _, _ = trained
    save, load = made["operations"][1], made["operations"][4]
    assert load["checkpoint_bytes"] == save["checkpoint_bytes"]
    assert load["settings"] == {"page_cache": "warm"}
    assert "bytes_total" not in load
    assert made["operations"][6]["saved_world_size"] == 16


def test_the_recorded_io_is_that_of_torchs_events(trained: tuple[Json, int, bool]) -> None:
    made, _, is_stand_in = trained
    if is_stand_in:
        recorded = {0: 0.414653, 1: 0.353016}
        for rank in made["operations"][1]["ranks"]:
            assert rank["io_seconds"] == recorded[rank["rank"]]
    else:
        assert all(rank["io_seconds"] < 30 for rank in made["operations"][1]["ranks"])


# --- Whatever happens to it, training goes on -------------------------------------------------------------------


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give the stand-in's torch.distributed, in this process."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(STAND_IN))
    for variable in ("LOCAL_WORLD_SIZE", "GROUP_RANK"):
        monkeypatch.delenv(variable, raising=False)
    yield importlib.import_module("torch.distributed")
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]


@pytest.fixture
def records(stand_in: Any) -> Iterator[Recorder]:  # noqa: ANN401 - a module
    made = Recorder(run_id="a-run", storage_label="scratch")
    yield made
    made.close()


STATE = {"w": b"x" * 1000}


def test_a_folder_that_cannot_be_written_to_is_a_warning(records: Recorder, tmp_path: Path) -> None:
    records.save(STATE, checkpoint_id=str(tmp_path / "step-1"))
    with pytest.warns(UserWarning, match="could not write .*FileNotFoundError"):
        assert records.write(tmp_path / "none" / "dcp.json") is False


def test_a_document_that_is_there_is_replaced_whole(records: Recorder, tmp_path: Path) -> None:
    records.save(STATE, checkpoint_id=str(tmp_path / "step-1"))
    target = tmp_path / "dcp.json"
    target.write_text("old")
    assert records.write(target)
    assert json.loads(target.read_text())["run_id"] == "a-run"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["dcp.json"]


def test_an_odd_checkpoint_id_is_a_warning(records: Recorder, tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match="could not name an operation"),
        records.timing("save", checkpoint_id=7),
    ):
        pass
    assert records.write(tmp_path / "dcp.json")
    (operation,) = json.loads((tmp_path / "dcp.json").read_text())["operations"]
    assert operation["op"] == "save"
    assert "checkpoint" not in operation


def test_ranks_that_cannot_be_reached_are_a_warning(
    records: Recorder,
    stand_in: Any,  # noqa: ANN401 - a module
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    stand_in.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}")
    with pytest.warns(UserWarning, match="could not gather the ranks' records"):
        assert records.write(tmp_path / "dcp.json") is False
    assert not (tmp_path / "dcp.json").exists()


def test_where_warnings_are_errors_the_recorder_keeps_silent(records: Recorder, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert records.write(tmp_path / "none" / "dcp.json") is False


def test_events_of_another_shape_are_passed_over(records: Recorder, tmp_path: Path) -> None:
    logger = logging.getLogger("c10d-NullHandler-dcp_logger")
    logger.debug("no dictionary")
    logger.debug({"event": "end"})
    with records.timing("save", checkpoint_id=str(tmp_path)):
        logger.debug(
            {"event": "end", "func_name": "write_data", "checkpoint_id": "/another", "times_spent": 10**9}
        )
    assert records.write(tmp_path / "dcp.json")
    (operation,) = json.loads((tmp_path / "dcp.json").read_text())["operations"]
    assert "io_seconds" not in operation["ranks"][0]


def test_a_save_that_failed_in_the_background_is_recorded(records: Recorder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    future = records.async_save(STATE, checkpoint_id=str(tmp_path / "file" / "step-1"))
    assert isinstance(future.exception(), NotADirectoryError)
    with pytest.raises(NotADirectoryError):  # as training meets it, too
        records.async_save(STATE, checkpoint_id=str(tmp_path / "step-2"), previous=future)
    assert records.write(tmp_path / "dcp.json")
    operations = read(json.loads((tmp_path / "dcp.json").read_text())).operations or []
    assert len(operations) == 1
    operation = operations[0]
    assert (operation.op, operation.status) == ("async_save", "failed")
    assert "NotADirectoryError" in (operation.error or "")


def test_a_save_that_never_ends_is_not_waited_for_for_ever(records: Recorder, tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    endless: Future[None] = Future()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dcp, "async_save", lambda *_args, **_more: endless)
        assert records.async_save(STATE, checkpoint_id=str(tmp_path / "step-1")) is endless
    assert records.write(tmp_path / "dcp.json", wait_seconds=0.01)
    (operation,) = json.loads((tmp_path / "dcp.json").read_text())["operations"]
    assert "total_seconds" not in operation["ranks"][0]
    assert "blocked_seconds" in operation["ranks"][0]


class Response:
    """What torch returns where staging goes on in the background."""

    def __init__(self) -> None:
        self.staging_completion: Future[None] = Future()
        self.upload_completion: Future[None] = Future()


def test_staging_in_the_background_is_no_part_of_what_blocks(records: Recorder, tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    logger = logging.getLogger("c10d-NullHandler-dcp_logger")
    response = Response()

    def begin(*_args: object, **_more: object) -> Response:
        logger.debug(
            {"event": "end", "func_name": "stage_state_dict", "checkpoint_id": None, "times_spent": 10}
        )
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dcp, "async_save", begin)
        assert (
            records.async_save(STATE, checkpoint_id=str(tmp_path / "step-1"), checkpoint_bytes=5000)
            is response
        )
    response.staging_completion.set_result(None)
    response.upload_completion.set_result(None)
    assert records.write(tmp_path / "dcp.json")
    (operation,) = json.loads((tmp_path / "dcp.json").read_text())["operations"]
    assert operation["settings"] == {"async_staging": True}
    assert operation["checkpoint_bytes"] == operation["bytes_total"] == 5000
    (rank,) = operation["ranks"]
    assert {"blocked_seconds", "staging_seconds", "persist_seconds", "total_seconds"} <= rank.keys()
    assert rank["total_seconds"] == pytest.approx(
        rank["persist_seconds"] + rank["staging_seconds"], abs=rank["blocked_seconds"] + 1e-4
    )


def test_files_that_other_ranks_left_behind_are_not_counted(records: Recorder, tmp_path: Path) -> None:
    folder = tmp_path / "step-1"
    folder.mkdir()
    (folder / "__7_0.distcp").write_bytes(b"left over")
    records.save(STATE, checkpoint_id=str(folder))
    assert records.write(tmp_path / "dcp.json")
    (operation,) = json.loads((tmp_path / "dcp.json").read_text())["operations"]
    assert (operation["bytes_total"], operation["files_total"]) == (1000, 1)


def test_without_what_torchrun_sets_host_names_are_the_nodes(records: Recorder, tmp_path: Path) -> None:
    records.save(STATE, checkpoint_id=str(tmp_path / "step-1"))
    records.write(tmp_path / "dcp.json")
    made = json.loads((tmp_path / "dcp.json").read_text())
    assert made["nodes"] == 1
    assert "ranks_per_node" not in made
    assert "node" not in made["operations"][0]["ranks"][0]


def test_nodes_that_are_stated_go_before_the_environment(
    stand_in: Any,  # noqa: ANN401 - a module
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    records = Recorder(run_id="a-run", storage_label="scratch", nodes=1)
    records.save(STATE, checkpoint_id=str(tmp_path / "step-1"))
    records.write(tmp_path / "dcp.json")
    records.close()
    made = json.loads((tmp_path / "dcp.json").read_text())
    assert made["nodes"] == 1
    assert "ranks_per_node" not in made


def test_without_any_torch_the_recorder_can_be_imported() -> None:
    code = "import sys; sys.modules['torch'] = None; import recorder; print('imported')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(recorder_module.__file__).parent,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "imported\n", done.stderr
