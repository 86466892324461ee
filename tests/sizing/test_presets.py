"""Named models, GPUs and failure records, against what is published of them."""

import pytest

from service.sizing import presets
from service.sizing.size import size
from service.sizing.spec import ScenarioSpec
from tests.sizing.scenarios import article

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


@pytest.mark.parametrize("table", [presets.models, presets.gpus, presets.failure_records])
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
    assert by_name == size(ScenarioSpec.model_validate(article()))
