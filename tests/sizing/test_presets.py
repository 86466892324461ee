"""Named models, GPUs, failure records, storage systems and measured times, against what is published of them."""

import pytest

from service.sizing import presets
from service.sizing.size import size
from service.sizing.spec import ScenarioSpec
from tests.sizing.scenarios import LLAMA_3_FAILURES, article

PUBLISHED = {
    # All stored parameters, as the models' safetensors indices, papers or cards have them.
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gemma-2-27b": 27_227_128_320,
    "olmo-2-13b": 13_716_198_400,
    "phi-4": 14_659_507_200,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "dbrx": 131_596_523_520,
    "falcon-180b": 179_522_565_120,
    "gpt-neox-20b": 20_554_567_680,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
}
COUNTED = {
    # Of those that publish rounded figures, or with other parts: counted by transformers from the same shape.
    "llama-4-scout": 107_769_861_120,
    "llama-4-maverick": 400_711_848_960,
    "nemotron-4-340b": 341_029_195_776,
    "kimi-k2": 1_026_408_232_448,
    "glm-4.5": 352_797_829_024,
    "glm-4.5-air": 106_852_251_264,
}


def test_every_models_count_is_held_against_another() -> None:
    assert PUBLISHED.keys() | COUNTED.keys() == presets.models().keys()


@pytest.mark.parametrize(("name", "parameters"), (PUBLISHED | COUNTED).items())
def test_a_models_shape_gives_its_count(name: str, parameters: int) -> None:
    preset, shape = presets.models()[name], presets.architecture(name)
    assert preset.parameters == shape.parameters == parameters
    assert preset.active_parameters == shape.active_parameters


@pytest.mark.parametrize("name", presets.models())
def test_a_models_config_says_whether_its_embeddings_are_tied(name: str) -> None:
    config = presets.models()[name].config
    assert config["tie_word_embeddings"] == presets.architecture(name).tied_embeddings


def test_the_embeddings_of_nemotron_are_those_of_its_report() -> None:
    shape = presets.architecture("nemotron-4-340b").totals()
    embeddings = shape["embedding"].parameters + shape["output_head"].parameters
    assert round(embeddings / 1e9, 1) == 9.4
    assert round((341_029_195_776 - embeddings) / 1e9, 1) == 331.6


@pytest.mark.parametrize(
    "table",
    [
        presets.models,
        presets.recipes,
        presets.gpus,
        presets.failure_records,
        presets.storage_systems,
        presets.save_load_times,
    ],
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
