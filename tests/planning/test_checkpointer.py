"""The checkpointer's tests: their calls are those of the recorder, and their ranks those of the judgement."""

import inspect
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from service import recorder
from service.planning.planned import TestPlan
from tests.planning.examples import HOSTILE, SMALL, changed, one_test, planned, reach
from tests.sizing.scenarios import ARTICLE

DCP = ("dcp_save", "dcp_async_save", "dcp_load", "dcp_resharded_load")
SYNC = changed(SMALL, save={"mode": "sync", "blocking_seconds": 0.5})


def _run_calls(
    plan: TestPlan, test_id: str, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, dict[str, Any]]]:
    """Run a test's calls with a recorder that takes what the real one takes, and return what it was called with."""
    made: list[tuple[str, dict[str, Any]]] = []

    class Noting:
        def __init__(self, **options: Any) -> None:  # noqa: ANN401
            inspect.signature(recorder.Recorder.__init__).bind(self, **options)
            made.append(("Recorder", options))

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            real = getattr(recorder.Recorder, name)

            def call(*words: Any, **options: Any) -> object:  # noqa: ANN401
                inspect.signature(real).bind(self, *words, **options)
                made.append((name, options))
                return f"future {len(made)}"

            return call

    module = ModuleType("ckpt_recorder")
    module.Recorder = Noting  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ckpt_recorder", module)
    calls = one_test(plan, test_id).calls
    assert calls is not None
    names = {"state": SimpleNamespace(), "train_one_interval": lambda: None}
    exec(compile("\n".join(calls), test_id, "exec"), names)  # noqa: S102 - the lines under test
    return made


@pytest.mark.parametrize("directory", [None, "/mnt/a", f"/{HOSTILE}"])
@pytest.mark.parametrize("test_id", DCP)
def test_the_calls_are_python_that_the_recorder_takes(
    test_id: str, directory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "STALLBUDGET_DIRECTORY", "/mnt/from the shell")
    plan = planned(SMALL, directory=directory, storage_label=HOSTILE)
    made = _run_calls(plan, test_id, monkeypatch)
    _, options = made[0]
    assert (options["storage_label"], options["nodes"]) == (HOSTILE, one_test(plan, test_id).nodes)
    place = f"{directory or '/mnt/from the shell'}/{plan.folder}-dcp/"
    operations = made[1:-1]
    assert all(each["checkpoint_id"].startswith(place) for _, each in operations)
    assert made[-1] == ("write", {})
    is_load = test_id in ("dcp_load", "dcp_resharded_load")
    assert len(operations) == 3 + (not is_load)
    if is_load:
        assert {each["page_cache"] for _, each in operations} == {"cold"}
    else:
        assert [each["warmup"] for _, each in operations] == [True, False, False, False]


def test_each_async_save_waits_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _run_calls(planned(SMALL, directory="/x"), "dcp_async_save", monkeypatch)
    assert [each["previous"] for name, each in made if name == "async_save"] == [
        *(None, "future 2", "future 3", "future 4"),
    ]


def test_what_is_loaded_was_saved_in_the_mode_of_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    for body, saved in ((SMALL, "async"), (SYNC, "save")):
        made = _run_calls(planned(body, directory="/x"), "dcp_load", monkeypatch)
        assert [each["checkpoint_id"].rsplit("/", 1)[1] for _, each in made[1:-1]] == [
            f"{saved}-{step}" for step in (1, 2, 3)
        ]


@pytest.mark.parametrize(
    ("gpus", "nodes", "onto", "saved_by"),
    [
        (16384, None, 2047, 16384),  # one node less still counts as all
        (16384, 16, 15, 128),  # so it does where none counts
        (32, None, 4, 24),  # of four nodes three would not count, so they save and all load
        (8, None, 1, 4),
        (2, None, 1, 1),
    ],
)
def test_a_resharded_load_is_onto_fewer_nodes_where_those_still_count(
    gpus: int, nodes: int | None, onto: int, saved_by: int
) -> None:
    plan = planned(changed(ARTICLE, cluster={"gpus": gpus, "gpus_per_node": 8}), nodes=nodes)
    test = one_test(plan, "dcp_resharded_load")
    assert test.nodes == onto
    assert test.ranks != saved_by
    assert f"saved_world_size={saved_by}," in "\n".join(test.calls or [])
    assert any(need.startswith(f"saved_world_size {saved_by},") for need in test.document_needs or [])


def test_the_saves_of_the_other_mode_prove_the_size_alone() -> None:
    for body, own, other in ((SMALL, "dcp_async_save", "dcp_save"), (SYNC, "dcp_save", "dcp_async_save")):
        plan = planned(body)
        assert set(reach(one_test(plan, other))) == {"checkpoint_bytes"}
        assert any("no evidence" in note for note in one_test(plan, other).notes)
        assert {"write_bandwidth", "blocking_seconds", "slowest_writer_seconds"} <= set(
            reach(one_test(plan, own))
        )


def test_every_rank_of_the_job_takes_part() -> None:
    plan = planned(changed(ARTICLE, cluster={"gpus": 1001, "gpus_per_node": 8}))
    save = one_test(plan, "dcp_save")
    assert (save.ranks, save.nodes, save.ranks_per_node) == (1001, 126, 8)
    assert save.bytes_written == 4 * 5_670_000_000_000


def test_the_caches_of_every_node_are_dropped_before_a_load() -> None:
    drop = one_test(planned(ARTICLE), "dcp_load").commands[1]
    assert drop.argv[-2:] == ["-c", "sync; echo 3 > /proc/sys/vm/drop_caches"]
    assert drop.argv[:5] == ["mpirun", "-n", "2048", "--map-by", "ppr:1:node"]


def test_a_label_that_nobody_gave_is_left_to_fill_in(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _run_calls(planned(SMALL, directory="/x"), "dcp_save", monkeypatch)
    assert made[0][1]["storage_label"] == "name-of-the-storage"


def _removed(plan: TestPlan, test_id: str) -> set[str]:
    """Return what a test's commands remove, below the folder of the checkpoints; that folder as an empty name."""
    place = f"/x/{plan.folder}-dcp"
    return {
        word.removeprefix(place).removeprefix("/")
        for command in one_test(plan, test_id).commands
        if command.argv[0] == "rm"
        for word in command.argv[3:]
    }


@pytest.mark.parametrize(
    ("body", "own", "other", "name", "other_name"),
    [
        (SMALL, "dcp_async_save", "dcp_save", "async", "save"),
        (SYNC, "dcp_save", "dcp_async_save", "save", "async"),
    ],
)
def test_what_no_later_test_reads_is_removed_and_what_one_reads_is_not(
    body: dict[str, Any], own: str, other: str, name: str, other_name: str
) -> None:
    plan = planned(changed(body, cluster={"gpus": 200, "gpus_per_node": 2}), directory="/x")
    ids = [test.id for test in plan.tests]
    assert ids.index(other) < ids.index(own) < ids.index("dcp_load")  # type: ignore[arg-type]
    assert _removed(plan, other) == {f"{other_name}-{step}" for step in range(4)}
    assert _removed(plan, own) == {f"{name}-0"}
    assert _removed(plan, "dcp_load") == set()
    assert _removed(plan, "dcp_resharded_load") == {""}


def test_where_nothing_is_loaded_nothing_is_left() -> None:
    plan = planned(changed(SYNC, restore=None), directory="/x")
    assert _removed(plan, "dcp_save") == {f"save-{step}" for step in range(4)}


def test_a_save_by_fewer_ranks_takes_the_place_of_what_is_there_and_is_counted() -> None:
    test = one_test(planned(SMALL, directory="/x"), "dcp_resharded_load")
    again = test.commands[1]
    assert again.purpose == (
        "Remove what was saved, and then save again by the calls of dcp_async_save, on 2 ranks."
    )
    assert again.argv[-1].endswith("-dcp/async-3")
    assert test.bytes_written == test.peak_bytes == 4 * 14_000_000


def test_a_resharded_load_says_which_ranks_a_layout_can_start_on() -> None:
    notes = " ".join(one_test(planned(ARTICLE), "dcp_resharded_load").notes)
    assert "the most ranks that its layout can start on below 16,384" in notes
    assert "a replica has 128 ranks, and 16,256 remain" in notes
    assert "at full scale from 1,946 nodes on" in notes
    assert "replica has" not in " ".join(one_test(planned(SMALL), "dcp_resharded_load").notes)
