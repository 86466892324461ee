"""Named models, GPUs, failure records, storage systems and measured times, against what is published of them."""

import pytest

from service.sizing import presets
from service.sizing.size import size
from service.sizing.spec import ScenarioSpec
from tests.sizing.scenarios import LLAMA_3_FAILURES, article

SHAPES = {
    # layers, hidden, FFN, heads, key-value heads, vocabulary, experts
    "llama-2-7b": (32, 4096, 11008, 32, 32, 32000, 1),
    "llama-3-8b": (32, 4096, 14336, 32, 8, 128256, 1),
    "llama-3-70b": (80, 8192, 28672, 64, 8, 128256, 1),
    "llama-3-405b": (126, 16384, 53248, 128, 8, 128256, 1),
    "mixtral-8x7b": (32, 4096, 14336, 32, 8, 32000, 8),
}


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_the_parameters_of_a_llama_shape_are_counted(name: str, shape: tuple[int, ...]) -> None:
    layers, hidden, ffn, heads, kv_heads, vocabulary, experts = shape
    attention = 2 * hidden * hidden + 2 * hidden * hidden * kv_heads // heads
    router = hidden * experts if experts > 1 else 0
    layer = attention + 3 * hidden * ffn * experts + router + 2 * hidden
    assert presets.models()[name].parameters == layers * layer + 2 * vocabulary * hidden + hidden


def test_the_parameters_of_deepseek_v3_are_counted() -> None:
    hidden, heads, q_rank, kv_rank, nope, rope, value = 7168, 128, 1536, 512, 128, 64, 128
    attention = (
        hidden * q_rank + q_rank
        + q_rank * heads * (nope + rope)
        + hidden * (kv_rank + rope) + kv_rank
        + kv_rank * heads * (nope + value)
        + heads * value * hidden
    )  # fmt: skip
    dense = 3 * hidden * 18432
    sparse = 257 * 3 * hidden * 2048 + 256 * hidden + 256  # routed and shared experts, router and its bias
    layers = 61 * (attention + 2 * hidden) + 3 * dense + 58 * sparse
    counted = layers + 2 * 129280 * hidden + hidden
    assert presets.models()["deepseek-v3"].parameters == counted


@pytest.mark.parametrize(
    "table",
    [presets.models, presets.gpus, presets.failure_records, presets.storage_systems, presets.save_load_times],
)
def test_every_preset_is_listed_under_its_name_with_a_source(table: object) -> None:
    assert callable(table)
    rows = table()
    assert rows
    for name, row in rows.items():
        assert row.name == name
        assert row.title
        assert row.source


@pytest.mark.parametrize(("name", "per_1000_node_days"), [("meta-rsc-1", 6.50), ("meta-rsc-2", 2.34)])
def test_metas_clusters_fail_as_often_as_their_paper_says(name: str, per_1000_node_days: float) -> None:
    record = presets.failure_records()[name]
    assert record.mtbf_hours is not None
    assert record.mtbf_gpus == 8
    assert 24_000 / record.mtbf_hours == pytest.approx(per_1000_node_days, rel=1e-12)


@pytest.mark.parametrize("name", presets.failure_records())
def test_a_failure_record_is_whole_and_sizes(name: str) -> None:
    record = presets.failure_records()[name]
    observed = (record.observed_failures, record.observed_hours, record.observed_gpus)
    assert (None in observed) != (record.mtbf_hours is None)
    sizing = size(ScenarioSpec.model_validate(article(failures={"preset": name})))
    assert (sizing.failures.mtbf_low_seconds is None) == (record.mtbf_hours is not None)


def test_the_llama_3_record_is_the_one_typed_out() -> None:
    by_name = size(ScenarioSpec.model_validate(article(failures={"preset": "llama-3-405b"})))
    counts = presets.failure_records()["llama-3-405b"].counts
    typed = {**LLAMA_3_FAILURES, "observed_planned": 47, "counts": counts}
    assert by_name == size(ScenarioSpec.model_validate(article(failures=typed)))


@pytest.mark.parametrize(
    ("name", "hours", "gpus"),
    [
        ("opt-175b", 13.71, 992),  # 105 restarts in 60 days
        ("bloom-176b", 112.0, 400),  # three in two weeks
        ("imbue-70b", 168 / (0.03 * 511), 511 * 8),  # 3 % of 511 machines a week
        ("meta-rsc-1", 1.8, 16384),  # the paper's projections
        ("meta-rsc-1", 0.23, 131072),
    ],
)
def test_a_record_gives_the_time_between_failures_that_its_source_implies(
    name: str, hours: float, gpus: int
) -> None:
    spec = article(failures={"preset": name}, cluster={"gpus": gpus}, interval=None)
    found = size(ScenarioSpec.model_validate(spec)).failures.mtbf_seconds / 3600
    assert found == pytest.approx(hours, rel=0.025)


def test_each_record_says_what_it_counts() -> None:
    for name, record in presets.failure_records().items():
        assert record.counts
        sizing = size(ScenarioSpec.model_validate(article(failures={"preset": name})))
        assert sizing.failures.counts == record.counts


def test_bytecheckpoints_times_are_those_of_its_paper() -> None:
    times = presets.save_load_times()["bytecheckpoint-405b"]
    assert (times.gpus, times.blocking_seconds, times.save_seconds, times.load_seconds) == (
        8960, 0.59, 51.06, 129.49,
    )  # fmt: skip


def test_the_time_that_asynchronous_saves_took_off_a_7b_is_the_one_published() -> None:
    times = presets.save_load_times()
    before, after = times["pytorch-ibm-7b-sync"], times["pytorch-ibm-7b-async"]
    assert (before.blocking_seconds, after.blocking_seconds) == (148.8, 6.3)
    assert before.blocking_seconds is not None
    assert after.blocking_seconds is not None
    assert before.blocking_seconds / after.blocking_seconds == pytest.approx(23.62, abs=0.005)


def test_a_measured_time_is_a_time() -> None:
    for times in presets.save_load_times().values():
        known = [times.blocking_seconds, times.save_seconds, times.load_seconds]
        assert any(known)
        assert all(seconds is None or seconds > 0 for seconds in known)
        assert times.note


def test_llama_3s_fabric_has_its_sustained_and_its_peak_throughput_apart() -> None:
    system = presets.storage_systems()["llama-3-tectonic"]
    assert system.write_gb_per_second == system.read_gb_per_second == 2000
    assert system.peak_write_gb_per_second == system.peak_read_gb_per_second == 7000
    assert (system.capacity_tb, system.servers) == (240_000, 7500)


def test_no_peak_is_below_what_is_sustained() -> None:
    for system in presets.storage_systems().values():
        for sustained, peak in (
            (system.write_gb_per_second, system.peak_write_gb_per_second),
            (system.read_gb_per_second, system.peak_read_gb_per_second),
        ):
            assert sustained is None or peak is None or sustained <= peak
        assert system.note
