"""Models by their config.json: exact counts, what is demanded, and what is refused.

The counts of `tests/data/model_shapes.json` are those of transformers 5.24 and PyTorch, which built each model on
the meta device and added up its parameters, and the biases by which DeepSeek's routers choose. Those marked as
published are also what the model's safetensors index, its paper or its card says.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import Unsatisfiable
from service.sizing.architecture import Architecture, Cut
from service.sizing.hugging_face import architecture, families
from tests.sizing.scenarios import DEEPSEEK_V3, TINY_LLAMA, Body, configs

SHAPES = json.loads((Path(__file__).parents[1] / "data" / "model_shapes.json").read_text("utf-8"))
BY_NAME: dict[str, Body] = {shape["name"]: shape["config"] for shape in SHAPES}
LLAMA_3_8B = BY_NAME["llama-3-8b"]
MIXTRAL = BY_NAME["mixtral-8x7b"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_models_parameters_are_exact(shape: Body) -> None:
    assert architecture(shape["config"]).parameters == shape["parameters"]


ISSUED = {
    "Llama 3 8B": (LLAMA_3_8B, 8_030_261_248),
    "Llama 3 70B": (
        LLAMA_3_8B
        | {
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
        },
        70_553_706_496,
    ),
    "Llama 3 405B": (
        LLAMA_3_8B
        | {
            "hidden_size": 16384,
            "intermediate_size": 53248,
            "num_hidden_layers": 126,
            "num_attention_heads": 128,
        },
        405_853_388_800,
    ),
    "Llama 2 7B": (
        LLAMA_3_8B | {"intermediate_size": 11008, "vocab_size": 32000, "num_key_value_heads": None},
        6_738_415_616,
    ),
    "Mixtral 8x7B": (MIXTRAL, 46_702_792_704),
    "DeepSeek-V3": (DEEPSEEK_V3, 671_026_419_200),
}


@pytest.mark.parametrize(("config", "parameters"), ISSUED.values(), ids=ISSUED.keys())
def test_the_counts_that_everybody_knows(config: Body, parameters: int) -> None:
    assert architecture(config).parameters == parameters


def test_every_family_is_counted_against_its_own_code() -> None:
    assert {shape["config"]["model_type"] for shape in SHAPES} == set(families())


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        # Model cards and papers, to the digits that they print.
        ("mixtral-8x7b", 12.9),
        ("mixtral-8x22b", 39.2),
        ("qwen3-30b-a3b", 3.35),
        ("qwen3-235b-a22b", 22.2),
        ("olmoe", 1.28),
        ("deepseek-v2", 21.4),
        ("deepseek-v3", 37.6),
        ("kimi-k2", 32.9),
        ("llama-4-scout", 17.2),
        ("llama-4-maverick", 17.2),
        ("dbrx", 36.5),
    ],
)
def test_active_parameters_are_those_of_the_chosen_experts(name: str, billions: float) -> None:
    assert round(architecture(BY_NAME[name]).active_parameters / 1e9, 2) == pytest.approx(billions, abs=0.051)


@pytest.mark.parametrize(("name", "billions"), [("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)])
def test_gpt_oss_counts_its_active_parameters_without_the_input_embedding(name: str, billions: float) -> None:
    shape = architecture(BY_NAME[name])
    (embedding,) = shape.embedding
    assert round((shape.active_parameters - embedding.parameters) / 1e9, 2) == billions


def _cut(shape: Architecture, name: str) -> dict[Cut, int]:
    found: dict[Cut, int] = {}
    for parts in (shape.embedding, *shape.each_layer(), shape.head):
        for part in parts:
            if part.name == name:
                found[part.cut] = found.get(part.cut, 0) + part.parameters
    return found


def test_latent_attention_is_cut_behind_its_down_projections() -> None:
    shape = architecture(DEEPSEEK_V3)
    down = 7168 * 1536 + 7168 * (512 + 64)
    up = 1536 * 128 * 192 + 512 * 128 * (128 + 128) + 128 * 128 * 7168
    assert _cut(shape, "attention") == {Cut.REPLICATED: 61 * down, Cut.TENSOR: 61 * up}
    assert _cut(shape, "norms") == {Cut.REPLICATED: 61 * (1536 + 512 + 2 * 7168) + 7168}
    assert _cut(shape, "router") == {Cut.REPLICATED: 58 * 256 * 7168}
    assert _cut(shape, "routed_experts") == {Cut.EXPERT: 58 * 256 * 3 * 7168 * 2048}
    assert _cut(shape, "shared_experts") == {Cut.TENSOR: 58 * 3 * 7168 * 2048}
    assert _cut(shape, "mlp") == {Cut.TENSOR: 3 * 3 * 7168 * 18432}
    assert _cut(shape, "embedding") == _cut(shape, "output_head") == {Cut.TENSOR: 129280 * 7168}
    assert [run.depth for run in shape.layers] == [3, 58]


def test_biases_are_cut_as_what_they_are_added_to() -> None:
    shape = architecture(TINY_LLAMA | {"attention_bias": True, "mlp_bias": True})
    inner, outer = 64 + 2 * 32 + 2 * 100, 64 + 64
    assert _cut(shape, "biases") == {Cut.TENSOR: 3 * inner, Cut.REPLICATED: 3 * outer}


def test_positions_lie_whole_on_every_rank() -> None:
    shape = architecture(BY_NAME["gpt2"])
    assert _cut(shape, "embedding") == {Cut.TENSOR: 50257 * 768, Cut.REPLICATED: 1024 * 768}


def test_tied_embeddings_are_stored_once() -> None:
    tied = architecture(TINY_LLAMA | {"tie_word_embeddings": True})
    apart = architecture(TINY_LLAMA | {"tie_word_embeddings": False})
    assert apart.parameters - tied.parameters == 1001 * 64
    assert (tied.tied_embeddings, apart.tied_embeddings) == (True, False)
    assert architecture(TINY_LLAMA) == apart


def test_layers_of_two_sorts_keep_their_order() -> None:
    shape = architecture(BY_NAME["llama4 every third layer"])
    assert [run.depth for run in shape.layers] == [2, 1, 2]
    assert [any(part.name == "routed_experts" for part in layer) for layer in shape.each_layer()] == [
        False, False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rank", "parameters"),
    [
        # What PEFT prints for every linear layer of the published model.
        ("llama-3-8b", 16, 41_943_040),
        ("mistral-7b", 16, 41_943_040),
    ],
)
def test_the_sides_of_the_matrices_give_the_adapters_of_a_rank(name: str, rank: int, parameters: int) -> None:
    assert rank * sum(architecture(BY_NAME[name]).matrix_sides.values()) == parameters


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        # Rows and columns of every linear layer in transformers' model, without the head.
        ("phi-4", 3_481_600),
        ("gpt2", 147_456),
        ("gpt-neox-20b", 4_325_376),
        ("falcon-40b", 6_942_720),
        ("starcoder2-15b", 3_973_120),
        ("gemma-2-9b", 3_376_128),
        ("command-r", 6_307_840),
        ("nemotron-4-340b", 28_606_464),
    ],
)
def test_fused_matrices_have_fewer_sides(name: str, sides: int) -> None:
    assert sum(architecture(BY_NAME[name]).matrix_sides.values()) == sides


def test_the_prediction_module_is_left_out_and_said_so() -> None:
    with_module = architecture(DEEPSEEK_V3)
    without = architecture(DEEPSEEK_V3 | {"num_nextn_predict_layers": 0})
    assert with_module.parameters == without.parameters
    assert "multi-token prediction" in with_module.notes[0]
    assert without.notes == ()


def _refused(config: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - whatever JSON holds
    with pytest.raises(Unsatisfiable) as caught:
        architecture(config)
    assert all(fault.detail.endswith(".") for fault in caught.value.faults)
    return [(fault.pointer, fault.code) for fault in caught.value.faults]


def test_an_unknown_family_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(Unsatisfiable) as caught:
        architecture({"model_type": "mamba", "hidden_size": 5})
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("/model_type", "unknown_architecture")
    assert all(name in fault.detail for name in families())
    assert _refused({}) == [("/model_type", "missing")]
    assert _refused({"model_type": 7}) == [("/model_type", "missing")]


def test_a_wrapper_is_refused_with_what_to_give_instead() -> None:
    assert _refused({"model_type": "llama4", "text_config": BY_NAME["llama-4-scout"]}) == [
        ("/text_config", "wrapper")
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_value_that_the_count_needs_is_never_guessed(shape: Body) -> None:
    """Without any key, a shape is the same, or refused for that very key: no default of a released model is taken."""
    config = shape["config"]
    for key in config.keys() - {"model_type"}:
        less = {name: value for name, value in config.items() if name != key}
        try:
            found = architecture(less)
        except Unsatisfiable as refused:
            named = {fault.pointer.split("/")[1] for fault in refused.faults}
            assert DECIDES.get(key, key) in named
            assert len(named) == 1 or key == "new_decoder_architecture"  # which settles what else is needed
        else:
            assert found.parameters == shape["parameters"] or key in DEFINED, key


DEFINED = {
    # What a family defines its absence to mean.
    "tie_word_embeddings", "attention_bias", "mlp_bias", "qkv_bias", "use_bias", "use_qk_norm", "qk_layernorm",
    "head_dim", "num_key_value_heads", "num_kv_heads", "n_inner", "ffn_hidden_size", "num_ln_in_parallel_attn",
    "decoder_sparse_step", "mlp_only_layers",
}  # fmt: skip
DECIDES = {"moe_layers": "interleave_moe_layer_step"}
"""Without the one the other is needed in its place."""


def test_everything_that_is_wrong_is_said_at_once() -> None:
    wrong = {
        "hidden_size": "4096",
        "num_hidden_layers": 0,
        "num_attention_heads": True,
        "vocab_size": 1.5,
        "intermediate_size": -1,
        "attention_bias": 1,
    }
    assert sorted(_refused(TINY_LLAMA | wrong)) == sorted(
        [
            ("/hidden_size", "not_a_count"),
            ("/num_hidden_layers", "out_of_range"),
            ("/num_attention_heads", "not_a_count"),
            ("/vocab_size", "not_a_count"),
            ("/intermediate_size", "out_of_range"),
            ("/attention_bias", "not_a_flag"),
        ]
    )


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        (TINY_LLAMA | {"num_key_value_heads": 3}, ("/num_key_value_heads", "not_divisible")),
        (TINY_LLAMA | {"hidden_size": 66}, ("/num_attention_heads", "not_divisible")),
        (MIXTRAL | {"num_experts_per_tok": 9}, ("/num_experts_per_tok", "out_of_range")),
        (DEEPSEEK_V3 | {"moe_layer_freq": 2}, ("/moe_layer_freq", "unknown_architecture")),
        (BY_NAME["gpt2"] | {"add_cross_attention": True}, ("/add_cross_attention", "unknown_architecture")),
        (BY_NAME["dbrx"] | {"attn_config": 5}, ("/attn_config", "not_an_object")),
        (BY_NAME["dbrx"] | {"attn_config": {}}, ("/attn_config/kv_n_heads", "missing")),
        (BY_NAME["qwen3-30b-a3b"] | {"mlp_only_layers": [48]}, ("/mlp_only_layers", "not_layers")),
        (BY_NAME["qwen3-30b-a3b"] | {"mlp_only_layers": "all"}, ("/mlp_only_layers", "not_layers")),
        (TINY_LLAMA | {"vocab_size": 10**8, "hidden_size": 10**8}, ("", "too_large")),
    ],
)
def test_a_shape_that_cannot_be_is_refused_where_it_is_wrong(config: Body, fault: tuple[str, str]) -> None:
    assert fault in _refused(config)


def test_a_null_is_as_good_as_nothing_but_where_it_speaks() -> None:
    assert architecture(TINY_LLAMA | {"head_dim": None, "mlp_bias": None}) == architecture(TINY_LLAMA)
    plain = architecture(DEEPSEEK_V3 | {"q_lora_rank": None})
    assert plain.parameters != architecture(DEEPSEEK_V3).parameters
    without = {key: value for key, value in DEEPSEEK_V3.items() if key != "q_lora_rank"}
    assert _refused(without) == [("/q_lora_rank", "missing")]


def test_whole_floats_are_counts() -> None:
    assert architecture(TINY_LLAMA | {"hidden_size": 64.0}) == architecture(TINY_LLAMA)


JUNK = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.sampled_from([1e308, -1, 0, 10**30, "", "64", [], {}, [1], {"kv_n_heads": "x"}])
    | st.recursive(
        st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
    )
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(data=st.data())
def test_junk_is_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    config = dict(data.draw(st.sampled_from(SHAPES))["config"])
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3)):
        config[key] = data.draw(JUNK)
    try:
        found = architecture(config)
    except Unsatisfiable as refused:
        assert refused.faults  # noqa: PT017 - it may also be taken
    else:
        assert 0 < found.active_parameters <= found.parameters <= 10**14


@settings(derandomize=True, deadline=None, max_examples=100)
@given(config=configs())
def test_parts_are_positive_and_add_up(config: Body) -> None:
    try:
        found = architecture(config)
    except Unsatisfiable as refused:
        assert [fault.code for fault in refused.faults] == ["too_large"]  # noqa: PT017
        return
    layers = [part for parts in found.each_layer() for part in parts]
    every = [*found.embedding, *layers, *found.head]
    assert sum(part.parameters for part in every) == found.parameters
    assert sum(part.active_parameters for part in every) == found.active_parameters
    assert all(0 < part.active_parameters <= part.parameters for part in every)
    assert all(part.active_parameters == part.parameters for part in every if part.cut is not Cut.EXPERT)
    assert found.layer_count == config["num_hidden_layers"]


def test_the_deepest_shape_is_counted_quickly() -> None:
    config = BY_NAME["llama4 every third layer"] | {"num_hidden_layers": 10_000}
    started = time.process_time()
    architecture(config)
    assert time.process_time() - started < 1.0
