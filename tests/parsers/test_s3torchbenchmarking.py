"""s3torchbenchmarking's job_results.json: that of known figures, and what versions of the tool do differently."""

import copy
import json
from typing import Any

import pytest

from service.parsers.conversion import FactsMissing
from service.parsers.trainer_logs import LogFile, Unconvertible
from tests.parsers.foreign import FACTS, FOREIGN, converted, foreign, notes_of, record, stated, text_of

KIND = "s3torchbenchmarking"
NAME = "s3torchbenchmarking-style.job_results.json"
RESULTS = json.loads((FOREIGN / NAME).read_text())
DURATIONS = "corrected_save_durations_s"


def changed(**metrics: Any) -> LogFile:  # noqa: ANN401 - whatever is to be stated
    results = copy.deepcopy(RESULTS)
    results["metrics"] |= metrics
    return text_of(json.dumps(results), name="job_results.json")


def configured(**config: Any) -> LogFile:  # noqa: ANN401 - whatever is to be stated
    results = copy.deepcopy(RESULTS)
    results["config"] |= config
    return text_of(json.dumps(results), name="job_results.json")


def test_each_epoch_is_a_save_over_all_ranks() -> None:
    made = converted(KIND, foreign(NAME), stated())
    facts = FACTS[NAME]
    summaries = [operation["summary"] for operation in made["operations"]]
    assert [summary["total_seconds"]["max"] for summary in summaries] == pytest.approx(
        facts["max_duration_s_per_epoch"]
    )
    assert sum(summary["ranks_reporting"] for summary in summaries) == facts["entries"]
    assert [operation["bytes_total"] / 2**20 for operation in made["operations"]] == pytest.approx(
        [facts["size_mib"]] * 2, abs=1e-4
    )
    assert made["operations"][0]["settings"] == {"thread_count": 1}
    assert not any(operation.partial_ranks for operation in record(made).operations or ())


def test_rates_over_the_longest_time_of_all_give_the_same_size() -> None:
    longest = max(RESULTS["metrics"][DURATIONS])
    file = changed(throughput_mibs=[260.6758 / longest] * 16)
    made = converted(KIND, [file], stated())
    assert made["operations"][0]["bytes_total"] == pytest.approx(260.6758 * 2**20, abs=1)


def test_rates_that_give_no_one_size_give_no_bytes_and_that_is_said() -> None:
    file = changed(throughput_mibs=[float(at + 1) for at in range(16)])
    assert not any(
        "bytes_total" in operation for operation in converted(KIND, [file], stated())["operations"]
    )
    assert "bytes are left out" in notes_of(KIND, [file], stated())[0]


def test_files_on_a_disk_that_may_not_be_synced_are_doubted_and_objects_are_not() -> None:
    on_disk = record(converted(KIND, foreign(NAME), stated()))
    assert "fsync_unknown" in [doubt.code for doubt in on_disk.doubts]
    for checkpoint, expected in (
        ({"storage": "s3"}, set()),
        ({"storage": "disk", "sync_files": True}, set()),
        ({"storage": "disk", "sync_files": False}, {"no_fsync"}),
    ):
        told = record(converted(KIND, [configured(checkpoint=checkpoint)], stated()))
        assert {doubt.code.value for doubt in told.doubts if "fsync" in doubt.code} == expected


def test_without_a_world_size_in_the_file_it_has_to_be_stated() -> None:
    file = configured(world_size=None)
    with pytest.raises(FactsMissing) as missing:
        converted(KIND, [file], stated(nodes=None))
    assert list(missing.value.missing) == ["--nodes", "--world-size"]
    assert len(converted(KIND, [file], stated(world_size=8))["operations"]) == 2


@pytest.mark.parametrize("value", [-1.0, 0.0, 1e9, float("nan"), "1.0", True, None])
def test_an_absurd_duration_is_refused_with_its_place(value: object) -> None:
    durations = [*RESULTS["metrics"][DURATIONS][:-1], value]
    with pytest.raises(Unconvertible) as refused:
        converted(KIND, [changed(**{DURATIONS: durations})], stated())
    assert str(refused.value).startswith(f"job_results.json:#/metrics/{DURATIONS}/15: ")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            changed(**{DURATIONS: RESULTS["metrics"][DURATIONS][:-1]}),
            "15 entries are not 2 epochs of 8 ranks",
        ),
        (changed(**{DURATIONS: []}), "0 entries"),
        (changed(**{DURATIONS: {"mean": 1.0}}), "no list of save durations"),
        (configured(world_size=0), "#/config/world_size"),
        (configured(world_size="8"), "#/config/world_size"),
        (text_of("{}", name="job_results.json"), "no list of save durations"),
        (text_of("no JSON", name="job_results.json"), "job_results.json:1: "),
    ],
)
def test_what_are_no_whole_epochs_is_refused(file: LogFile, said: str) -> None:
    with pytest.raises(Unconvertible, match=said):
        converted(KIND, [file], stated())


def test_two_jobs_are_not_one_run() -> None:
    with pytest.raises(Unconvertible, match="one at a time"):
        converted(KIND, foreign(NAME, NAME), stated())


def test_what_the_file_says_of_the_software_is_told() -> None:
    results = copy.deepcopy(RESULTS)
    results["config"] |= {"checkpoint": {"storage": "s3"}}
    results["metadata"] = {"pytorch_version": "2.13.0"}
    made = converted(KIND, [text_of(json.dumps(results), name="job_results.json")], stated())
    assert made["software"] == {
        "checkpointer": "torch.distributed.checkpoint",
        "trainer": "s3torchbenchmarking",
        "checkpointer_version": "2.13.0",
        "collective_backend": "gloo",
    }
    on_disk = converted(KIND, foreign(NAME), stated())
    assert on_disk["software"]["checkpointer"] == "s3torchbenchmarking"
    assert "trainer" not in on_disk["software"]


@pytest.mark.parametrize(
    "config",
    [{"backend": 7, "thread_count": 0}, {"backend": "", "thread_count": True}, {"backend": "x" * 33}],
)
def test_odd_settings_are_left_out(config: dict[str, object]) -> None:
    made = converted(KIND, [configured(**{"thread_count": "4", **config})], stated())
    assert "collective_backend" not in made["software"]
    assert "settings" not in made["operations"][0]


def test_without_a_count_of_epochs_the_ranks_give_it() -> None:
    assert converted(KIND, [configured(epochs=None)], stated()) == converted(KIND, foreign(NAME), stated())


def test_a_rate_that_is_no_number_is_refused_with_its_place() -> None:
    with pytest.raises(Unconvertible, match=r"^job_results\.json:#/metrics/throughput_mibs/0: "):
        converted(KIND, [changed(throughput_mibs=["fast"] * 16)], stated())
