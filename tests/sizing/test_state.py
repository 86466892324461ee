"""What of a model a checkpoint holds: recipes, their items, and what they do to the rest of a sizing."""

import pytest
from hypothesis import given, settings

from service.errors import Unsatisfiable
from service.sizing import presets
from service.sizing.presets import StateKind
from service.sizing.size import size
from service.sizing.sizing import ModelState, Sizing
from service.sizing.spec import ScenarioSpec
from tests.sizing.scenarios import DEEPSEEK_V3, TINY_LLAMA, Body, article, bodies, sized

ASYNC = {"mode": "async", "blocking_seconds": 5}


def _model(**fields: object) -> ModelState:
    return sized(model=dict(fields)).model


@pytest.mark.parametrize(
    ("recipe", "bytes_per_parameter"),
    [
        ("adam_mixed_12", 12),
        ("adam_mixed_14", 14),
        ("adam_mixed_16", 16),
        ("adam_fp32", 12),
        ("adam_bf16_moments", 10),
        ("adam_8bit", 4 + 2 * (1 + 4 / 256)),
        ("lion_mixed", 10),
        ("sgd_momentum", 8),
        ("weights_bf16", 2),
        ("weights_fp32", 4),
    ],
)
def test_a_recipe_is_the_sum_of_its_items(recipe: str, bytes_per_parameter: float) -> None:
    sizing = sized(model={"preset": "llama-3-70b", "recipe": recipe})
    assert sizing.model.bytes_per_parameter == bytes_per_parameter
    assert sizing.checkpoint.bytes == sizing.model.state_bytes == 70_553_706_496 * bytes_per_parameter
    assert sizing.model.items is not None
    assert sum(item.bytes for item in sizing.model.items) == sizing.model.state_bytes


def test_8_bit_moments_carry_their_scales() -> None:
    state = _model(preset="llama-3-8b", recipe="adam_8bit")
    assert state.state_bytes == 48_432_513_152
    assert state.items is not None
    # A byte each, and four for every block of 256.
    assert [item.bytes for item in state.items[1:]] == [8_030_261_248 + 8_030_261_248 // 256 * 4] * 2


def test_muon_keeps_one_momentum_of_matrices_and_two_moments_of_the_rest() -> None:
    state = _model(preset="llama-3-8b", recipe="muon_mixed")
    assert state.items is not None
    rest = 2 * 128_256 * 4096 + 65 * 4096
    matrices = 8_030_261_248 - rest
    assert [(item.name, item.parameters) for item in state.items[2:]] == [
        ("momentum_fp32", matrices),
        ("first_moment_fp32", rest),
        ("second_moment_fp32", rest),
    ]
    assert state.state_bytes == 6 * 8_030_261_248 + 4 * matrices + 8 * rest == 84_506_370_048
    assert state.parts is not None
    by_part = {part.part: part.bytes for part in state.parts}
    assert by_part["embedding"] == 14 * 128_256 * 4096
    assert by_part["mlp"] == 10 * 32 * 3 * 4096 * 14336
    assert sum(part.bytes or 0 for part in state.parts) == state.state_bytes


def test_an_adapter_is_saved_without_its_base_model() -> None:
    state = _model(preset="llama-3-8b", recipe="lora_adam", lora_rank=16)
    assert (state.adapter_parameters, state.state_bytes) == (41_943_040, 503_316_480)
    assert (state.parameters, state.bytes_per_parameter) == (8_030_261_248, 12)
    assert state.parts is not None
    assert all(part.bytes is None for part in state.parts)
    counted = _model(parameters=8_030_261_248, recipe="lora_adam", adapter_parameters=41_943_040)
    assert counted.state_bytes == state.state_bytes


def test_adapters_may_go_beside_some_matrices_only() -> None:
    both = _model(preset="llama-3-8b", recipe="lora_adam", lora_rank=16, lora_targets=["mlp", "attention"])
    assert both.adapter_parameters == 41_943_040
    one = _model(preset="llama-3-8b", recipe="lora_adam", lora_rank=16, lora_targets=["attention"])
    sides = 32 * (4 * 4096 + 2 * 4096 + 2 * 1024)
    assert one.adapter_parameters == 16 * sides
    twice = _model(
        preset="llama-3-8b", recipe="lora_adam", lora_rank=16, lora_targets=["attention", "attention"]
    )
    assert twice == one


def test_a_moving_average_adds_fp32_weights_to_what_is_trained() -> None:
    state = _model(preset="llama-3-8b", recipe="adam_mixed_14", ema_copy=True)
    assert state.bytes_per_parameter == 18
    assert state.items is not None
    assert (state.items[-1].name, state.items[-1].kind) == ("ema_weights_fp32", StateKind.OPTIMIZER)
    adapter = _model(preset="llama-3-8b", recipe="lora_adam", lora_rank=16, ema_copy=True)
    assert adapter.state_bytes == 16 * 41_943_040
    assert _model(preset="llama-3-8b", recipe="adam_mixed_14", ema_copy=False).bytes_per_parameter == 14


def test_a_bare_count_has_neither_parts_nor_active_parameters() -> None:
    state = _model(parameters=10**9)
    assert state == ModelState(parameters=10**9, bytes_per_parameter=14, state_bytes=14 * 10**9)


def test_only_the_total_sizes_storage() -> None:
    sizing = sized(model={"config": DEEPSEEK_V3})
    assert sizing.model.active_parameters == 37_552_297_472
    assert sizing.checkpoint.bytes == 14 * 671_026_419_200


def test_a_preset_is_what_its_config_is() -> None:
    named = sized(model={"preset": "deepseek-v3"})
    given_out = sized(model={"config": presets.models()["deepseek-v3"].config})
    assert named == given_out
    assert named.model == sized(model={"config": DEEPSEEK_V3}).model


def test_every_rank_saves_its_own_loader_and_random_state() -> None:
    plain = sized()
    sizing = sized(model={**article()["model"], "extra_bytes": 77, "extra_bytes_per_rank": 20_000})
    assert sizing.checkpoint.bytes == plain.checkpoint.bytes + 77 + 16384 * 20_000


def test_compressed_bytes_are_what_moves_and_stays_and_plain_ones_are_staged() -> None:
    plain = sized(save=ASYNC)
    sizing = sized(model={**article()["model"], "compression_factor": 0.5}, save=ASYNC)
    assert sizing.checkpoint.bytes * 2 == plain.checkpoint.bytes
    assert sizing.write.required_gb_per_second * 2 == pytest.approx(plain.write.required_gb_per_second)
    assert sizing.read is not None
    assert plain.read is not None
    assert sizing.read.bytes * 2 == plain.read.bytes
    assert sizing.capacity is not None
    assert plain.capacity is not None
    assert sizing.capacity.hot_bytes * 2 == plain.capacity.hot_bytes
    assert sizing.host_memory == plain.host_memory
    assert sizing.checkpoint.restored_bytes is None


def test_a_deduplicated_save_writes_less_and_is_read_whole() -> None:
    plain = sized()
    sizing = sized(model={**article()["model"], "deduplication_factor": 0.25})
    assert sizing.checkpoint.bytes * 4 == plain.checkpoint.bytes
    assert sizing.checkpoint.restored_bytes == plain.checkpoint.bytes
    assert sizing.read == plain.read
    assert sizing.write.required_gb_per_second * 4 == pytest.approx(plain.write.required_gb_per_second)
    assert sizing.capacity is not None
    assert sizing.capacity.hot_bytes == 5_670_000_000_000 + 9 * 5_670_000_000_000 // 4
    assert sizing.checkpoint.mean_bytes is None


DIFFERENTIAL = {
    "parameters": 10**9,
    "bytes_per_parameter": 14,
    "differential_fraction": 0.1,
    "full_every": 6,
}


def test_differential_saves_write_less_on_average_and_more_is_read() -> None:
    sizing = sized(model=DIFFERENTIAL, retention={"hot_copies": 7})
    block = sizing.checkpoint
    assert (block.bytes, block.difference_bytes, block.mean_bytes) == (
        14 * 10**9,
        14 * 10**8,
        35 * 10**8,
    )
    assert (block.restored_bytes, block.restored_mean_bytes) == (21 * 10**9, 175 * 10**8)
    assert sizing.read is not None
    assert (sizing.read.bytes, sizing.read.mean_bytes) == (21 * 10**9, 175 * 10**8)
    assert sizing.read.required_gb_per_second == 21 / 120
    assert sizing.write.required_gb_per_second == 14 / 60  # a full save must fit the stall as well
    assert sizing.capacity is not None
    assert (sizing.capacity.hot_bytes, sizing.capacity.hot_peak_bytes) == (42 * 10**9, 56 * 10**9)


def test_a_storage_system_reads_the_whole_chain_and_fills_with_differences() -> None:
    storage = {"write_gb_per_second": 1, "read_gb_per_second": 1, "usable_tb": 0.056}
    sizing = sized(model=DIFFERENTIAL, storage=storage, retention={"hot_copies": 7})
    delivered = sizing.delivered
    assert delivered is not None
    assert delivered.read is not None
    assert delivered.read.seconds == 21
    assert delivered.write is not None
    assert delivered.write.seconds == 14
    assert delivered.capacity is not None
    assert delivered.capacity.copies_that_fit == 7
    assert delivered.capacity.hot_peak_fraction == 1
    # Two runs of 21 GB, and a full save of the third.
    assert delivered.capacity.full_after_seconds == 13 * 600
    assert delivered.feasible
    smaller = sized(model=DIFFERENTIAL, storage=storage | {"usable_tb": 0.055}, retention={"hot_copies": 7})
    assert smaller.delivered is not None
    assert smaller.delivered.reason == (
        "The 7 kept and the checkpoint in flight take 0.056 TB, and 0.055 TB are usable."
    )


def test_a_chain_too_long_to_read_is_refused() -> None:
    model = {
        "parameters": 10**14,
        "bytes_per_parameter": 64,
        "differential_fraction": 1,
        "full_every": 1000,
    }
    with pytest.raises(Unsatisfiable) as caught:
        sized(model=model, restore={"target_seconds": 120, "read_amplification": 100})
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("#/restore/read_amplification", "too_large")


def _figures(sizing: Sizing) -> dict[str, object]:
    return sizing.model_copy(update={"model": None}).model_dump(exclude_none=True)


@pytest.mark.parametrize("recipe", ["adam_mixed_12", "adam_mixed_14", "adam_mixed_16", "adam_bf16_moments"])
def test_a_recipe_sizes_as_its_bytes_per_parameter(recipe: str) -> None:
    by_recipe = sized(model={"parameters": 10**9, "recipe": recipe})
    by_bytes = sized(model={"parameters": 10**9, "bytes_per_parameter": by_recipe.model.bytes_per_parameter})
    assert _figures(by_recipe) == _figures(by_bytes)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(body=bodies())
def test_what_is_saved_adds_up(body: Body) -> None:
    try:
        sizing = size(ScenarioSpec.model_validate(body))
    except Unsatisfiable:
        return
    model, block = sizing.model, sizing.checkpoint
    assert model.active_parameters is None or 0 < model.active_parameters <= model.parameters
    if model.items is not None:
        assert model.state_bytes == sum(item.bytes for item in model.items)
    if model.parts is not None:
        assert sum(part.parameters for part in model.parts) == model.parameters
        assert sum(part.active_parameters for part in model.parts) == model.active_parameters
        whole = [part.bytes for part in model.parts if part.bytes is not None]
        assert not whole or sum(whole) == pytest.approx(model.state_bytes, rel=1e-12, abs=len(whole))
    if block.difference_bytes is not None:
        assert block.mean_bytes is not None
        assert block.restored_mean_bytes is not None
        assert block.difference_bytes <= block.mean_bytes <= block.bytes <= block.restored_mean_bytes
    assert block.restored_bytes is None or block.bytes <= block.restored_bytes
    if sizing.capacity is not None:
        assert block.bytes <= sizing.capacity.hot_bytes <= sizing.capacity.hot_peak_bytes


def test_the_default_stays_what_it_was() -> None:
    assert sized(model={"config": TINY_LLAMA}).model.bytes_per_parameter == 14
