"""A Hugging Face `config.json` in, the model's parts with their parameters out.

One row of `_FAMILIES` for each `model_type`. A family that is not there, or a value that the count needs and
the config lacks, is refused: a guessed shape would size the wrong storage. A default stands here only where
it belongs to the family's definition (heads of hidden / heads, as many key-value heads as heads), not where
it is merely what one released model has.

References:
    The modelling code of Hugging Face transformers 5.24, against which each family is counted in the tests.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from service.errors import Fault, Unsatisfiable
from service.sizing.architecture import Architecture, Cut, Layers, Part
from service.sizing.model_config import ModelConfig

MOST_LAYERS = 10_000
MOST_PARAMETERS = 10**14

_PREDICTION_MODULE = (
    "The multi-token prediction module is not counted, as in the published count; a checkpoint of pre-training "
    "that holds it is larger: add its bytes as extra_bytes"
)


def architecture(config: Mapping[str, Any]) -> Architecture:
    """Return what the model of a `config.json` is made of.

    Raises:
        Unsatisfiable: The family is not known, or a value is wrong or lacking; pointers start at the config.
    """
    read = ModelConfig(config)
    kind = read.word("model_type")
    build = _FAMILIES.get(kind)
    if build is None:
        raise Unsatisfiable(_unknown(read, kind))
    made = build(read)
    read.finish()
    if made.parameters > MOST_PARAMETERS:
        raise Unsatisfiable(
            Fault("", "too_large", f"This shape has {made.parameters:.3g} parameters; 1e14 are the most.")
        )
    return made


def families() -> tuple[str, ...]:
    """Return the `model_type` of each family that can be counted."""
    return tuple(_FAMILIES)


def _unknown(read: ModelConfig, kind: str) -> Fault:
    if read.states("text_config"):
        return Fault(
            "/text_config",
            "wrapper",
            "This config wraps a text model and others, such as a vision encoder. Give the object under text_config, "
            "with its model_type, as config, and what is saved of the others as extra_bytes.",
        )
    if not kind:
        return Fault(
            "/model_type", "missing", "The count needs model_type, which says the family of the shape."
        )
    known = ", ".join(_FAMILIES)
    return Fault(
        "/model_type",
        "unknown_architecture",
        f"How a model of type {kind[:64]!r} is made is not known here; known are {known}. "
        "Give parameters instead, counted from its safetensors index.",
    )


# What layers are made of.


class _Weights(NamedTuple):
    """A part in the making."""

    name: str
    parameters: int
    active_parameters: int
    cut: Cut
    sides: int = 0
    """Of its matrices, rows and columns added up."""


def _merged(parts: Iterable[_Weights]) -> tuple[Part, ...]:
    """Return the parts with those of one name and cut added up, and none that is empty."""
    sums: dict[tuple[str, Cut], tuple[int, int]] = {}
    for part in parts:
        stored, active = sums.get((part.name, part.cut), (0, 0))
        sums[part.name, part.cut] = (stored + part.parameters, active + part.active_parameters)
    return tuple(
        Part(name, stored, active, cut) for (name, cut), (stored, active) in sums.items() if stored > 0
    )


def _always(name: str, parameters: int, cut: Cut, sides: int = 0) -> _Weights:
    return _Weights(name, parameters, parameters, cut, sides)


class _Heads(NamedTuple):
    """The attention heads of a layer."""

    query: int
    key_value: int
    size: int


def _grouped_query(
    hidden: int, heads: _Heads, *, inner_bias: bool, outer_bias: bool, fused: bool = False
) -> list[_Weights]:
    """Return the matrices of attention with shared key-value heads, and their biases.

    Args:
        hidden: Width of the model.
        heads: Its heads.
        inner_bias: Whether queries, keys and values have biases.
        outer_bias: Whether the output has them.
        fused: Whether queries, keys and values come of one matrix.
    """
    query, key_value = heads.query * heads.size, 2 * heads.key_value * heads.size
    sides = (1 if fused else 3) * hidden + query + key_value + query + hidden
    return [
        _always("attention", hidden * (query + key_value) + query * hidden, Cut.TENSOR, sides),
        _always("biases", (query + key_value) * inner_bias, Cut.TENSOR),
        _always("biases", hidden * outer_bias, Cut.REPLICATED),
    ]


def _mlp(
    hidden: int, ffn: int, *, matrices: int = 3, bias: bool = False, name: str = "mlp", fused: bool = False
) -> list[_Weights]:
    """Return a feed-forward block: with a gate three matrices, of which two may be fused, without it two."""
    sides = matrices * (hidden + ffn) - hidden * fused
    return [
        _always(name, matrices * hidden * ffn, Cut.TENSOR, sides if ffn else 0),
        _always("biases", (matrices - 1) * ffn * bias, Cut.TENSOR),
        _always("biases", hidden * bias, Cut.REPLICATED),
    ]


def _experts(hidden: int, ffn: int, *, experts: int, chosen: int, bias: bool = False) -> list[_Weights]:
    """Return the routed experts of a layer, each a gated feed-forward block, and the router's matrix."""
    weights, biases = 3 * hidden * ffn, (2 * ffn + hidden) * bias
    return [
        _always("router", hidden * experts, Cut.REPLICATED),
        _always("biases", experts * bias, Cut.REPLICATED),
        _Weights(
            "routed_experts", experts * weights, chosen * weights, Cut.EXPERT, experts * 3 * (hidden + ffn)
        ),
        _Weights("biases", experts * biases, chosen * biases, Cut.EXPERT),
    ]


class _FeedForward(NamedTuple):
    """What a family's layers hold beside attention."""

    dense: list[_Weights]
    sparse: list[_Weights]
    is_sparse: Callable[[int], bool]
    experts: int


def _dense_only(parts: list[_Weights]) -> _FeedForward:
    return _FeedForward(parts, [], lambda _layer: False, 0)


class _Stack(NamedTuple):
    """A model's frame: what `_assembled` puts around its layers."""

    hidden: int
    layers: int
    heads: _Heads
    vocabulary: int
    tied: bool
    positions: int = 0
    norm_size: int = 1
    """Vectors of a norm: a weight, and with 2 a bias as well; with 0 it has no parameters."""
    head_bias: bool = False
    notes: tuple[str, ...] = ()


def _assembled(stack: _Stack, beside: list[_Weights], forward: _FeedForward) -> Architecture:
    """Return the whole model of layers that differ in their feed-forward blocks alone."""
    runs = [
        (sum(1 for _ in run), is_sparse)
        for is_sparse, run in groupby(range(stack.layers), key=forward.is_sparse)
    ]
    dense, sparse = [*beside, *forward.dense], [*beside, *forward.sparse]
    sides: dict[str, int] = {}
    for depth, is_sparse in runs:
        for part in sparse if is_sparse else dense:
            if part.sides:
                sides[part.name] = sides.get(part.name, 0) + depth * part.sides
    parts = {True: _merged(sparse), False: _merged(dense)}
    return Architecture(
        embedding=_merged(
            [
                _always("embedding", stack.vocabulary * stack.hidden, Cut.TENSOR),
                _always("embedding", stack.positions * stack.hidden, Cut.REPLICATED),
            ]
        ),
        layers=tuple(Layers(depth, parts[is_sparse]) for depth, is_sparse in runs),
        head=_merged(
            [
                _always("norms", stack.hidden * stack.norm_size, Cut.REPLICATED),
                _always("output_head", 0 if stack.tied else stack.vocabulary * stack.hidden, Cut.TENSOR),
                _always("biases", stack.vocabulary * stack.head_bias, Cut.TENSOR),
            ]
        ),
        tied_embeddings=stack.tied,
        hidden=stack.hidden,
        vocabulary=stack.vocabulary,
        attention_heads=stack.heads.query,
        key_value_heads=stack.heads.key_value,
        routed_experts=forward.experts,
        notes=stack.notes,
        matrix_sides=sides,
    )


# What families are made of.


class _Trait(NamedTuple):
    """A yes or no that a config may state, and what it is where it does not."""

    key: str
    default: bool

    def read(self, read: ModelConfig) -> bool:
        return read.flag(self.key, default=self.default)


class _Always(NamedTuple):
    """A yes or no that a family settles."""

    value: bool

    def read(self, _read: ModelConfig) -> bool:
        return self.value


_YES, _NO = _Always(True), _Always(False)
_ATTENTION_BIAS = _Trait("attention_bias", False)


def _plain_mlp(read: ModelConfig, hidden: int, _layers: int) -> _FeedForward:
    return _dense_only(_mlp(hidden, read.count("intermediate_size")))


class _Family(NamedTuple):
    """A family that differs from Llama in these, and has Llama's names for what is the same."""

    inner_bias: _Trait | _Always = _NO
    """Of the query, key and value matrices."""
    outer_bias: _Trait | _Always = _NO
    """Of the attention's output matrix."""
    kv_heads_default: bool = False
    """Whether a config without num_key_value_heads has as many as heads."""
    head_size_default: bool = True
    """Whether a config without head_dim has heads of hidden_size / heads."""
    head_norms: _Trait | _Always = _NO
    """Norms of queries and keys with one vector for all heads of a kind."""
    whole_norms: _Trait | _Always = _NO
    """Norms of queries and keys over all heads."""
    norms: int = 2
    norm_size: int = 1
    sinks: bool = False
    """Whether each head has a learned logit that takes attention away."""
    tied: bool = False
    head_bias: bool = False
    fused: bool = False
    """Whether queries, keys and values come of one matrix."""
    forward: Callable[[ModelConfig, int, int], _FeedForward] = _plain_mlp
    notes: Callable[[ModelConfig], tuple[str, ...]] = lambda _read: ()

    def build(self, read: ModelConfig) -> Architecture:
        """Return the model of a config of this family."""
        hidden, layers, vocabulary = _frame(read)
        heads = _heads(
            read, hidden, kv_heads_default=self.kv_heads_default, head_size_default=self.head_size_default
        )
        normed = 2 * heads.size * self.norm_size * self.head_norms.read(read)
        normed += (heads.query + heads.key_value) * heads.size * self.whole_norms.read(read)
        beside = [
            *_grouped_query(
                hidden,
                heads,
                inner_bias=self.inner_bias.read(read),
                outer_bias=self.outer_bias.read(read),
                fused=self.fused,
            ),
            _always("norms", self.norms * hidden * self.norm_size + normed, Cut.REPLICATED),
            _always("biases", heads.query * self.sinks, Cut.TENSOR),
        ]
        stack = _Stack(
            hidden=hidden,
            layers=layers,
            heads=heads,
            vocabulary=vocabulary,
            tied=read.flag("tie_word_embeddings", default=self.tied),
            norm_size=self.norm_size,
            head_bias=self.head_bias,
            notes=(*self.notes(read), *_sharing_note(read)),
        )
        return _assembled(stack, beside, self.forward(read, hidden, layers))


def _sharing_note(read: ModelConfig) -> tuple[str, ...]:
    """Return what is taken for granted of a config that does not say how many heads keys and values have."""
    if read.count("num_key_value_heads", default=0, least=0):
        return ()
    return ("The config has no num_key_value_heads, so keys and values have a head for each query's",)


def _frame(read: ModelConfig) -> tuple[int, int, int]:
    return (
        read.count("hidden_size"),
        read.count("num_hidden_layers", most=MOST_LAYERS),
        read.count("vocab_size"),
    )


def _heads(
    read: ModelConfig, hidden: int, *, kv_heads_default: bool, head_size_default: bool = True
) -> _Heads:
    query = read.count("num_attention_heads")
    key_value = read.count("num_key_value_heads", default=query if kv_heads_default else None)
    _check_sharing(read, query, key_value, "num_key_value_heads")
    if head_size_default and read.count("head_dim", default=0, least=0) == 0:
        return _Heads(query, key_value, _head_size(read, hidden, query, "num_attention_heads"))
    return _Heads(query, key_value, read.count("head_dim"))


def _check_sharing(read: ModelConfig, query: int, key_value: int, key: str) -> None:
    if query % key_value:
        read.conflict(key, "not_divisible", f"{query} heads cannot share {key_value} key-value heads evenly.")


def _head_size(read: ModelConfig, hidden: int, heads: int, key: str) -> int:
    if hidden % heads:
        read.conflict(key, "not_divisible", f"A hidden size of {hidden} does not divide into {heads} heads.")
    return max(hidden // heads, 1)


def _chosen(read: ModelConfig, experts: int, key: str = "num_experts_per_tok") -> int:
    chosen = read.count(key)
    if chosen > experts:
        read.conflict(key, "out_of_range", f"A token cannot go to {chosen} of {experts} experts.")
    return min(chosen, experts)


def _llama_mlp(read: ModelConfig, hidden: int, _layers: int) -> _FeedForward:
    bias = read.flag("mlp_bias", default=False)
    return _dense_only(_mlp(hidden, read.count("intermediate_size"), bias=bias))


def _fused_mlp(read: ModelConfig, hidden: int, _layers: int) -> _FeedForward:
    return _dense_only(_mlp(hidden, read.count("intermediate_size"), fused=True))


def _two_matrices(bias: _Trait | _Always) -> Callable[[ModelConfig, int, int], _FeedForward]:
    def forward(read: ModelConfig, hidden: int, _layers: int) -> _FeedForward:
        return _dense_only(_mlp(hidden, read.count("intermediate_size"), matrices=2, bias=bias.read(read)))

    return forward


def _experts_everywhere(
    *, key: str = "num_local_experts", bias: bool = False, selection_bias: bool = False
) -> Callable[[ModelConfig, int, int], _FeedForward]:
    """Return the reading of a family whose every layer has routed experts, and none shared."""
    alias = "num_experts" if key == "num_local_experts" else "num_local_experts"

    def forward(read: ModelConfig, hidden: int, _layers: int) -> _FeedForward:
        experts = read.count(key, alias=alias)
        ffn, chosen = read.count("intermediate_size"), _chosen(read, experts)
        sparse = [
            *_experts(hidden, ffn, experts=experts, chosen=chosen, bias=bias),
            _always("biases", experts * selection_bias, Cut.REPLICATED),
        ]
        return _FeedForward([], sparse, lambda _layer: True, experts)

    return forward


def _qwen_experts(*, shared: bool) -> Callable[[ModelConfig, int, int], _FeedForward]:
    """Return the reading of Qwen's mixtures: every n-th layer sparse, but those that are listed as dense."""

    def forward(read: ModelConfig, hidden: int, layers: int) -> _FeedForward:
        experts = read.count("num_experts", alias="num_local_experts")
        ffn, chosen = read.count("moe_intermediate_size"), _chosen(read, experts)
        step = read.count("decoder_sparse_step", default=1)
        listed = frozenset(read.layer_list("mlp_only_layers", layers) or ())
        sparse = _experts(hidden, ffn, experts=experts, chosen=chosen)
        if shared:
            sparse += _mlp(hidden, read.count("shared_expert_intermediate_size"), name="shared_experts")
            sparse.append(_always("router", hidden, Cut.REPLICATED))  # the gate of the shared expert
        dense = _mlp(hidden, read.count("intermediate_size")) if step > 1 or listed else []
        return _FeedForward(
            dense, sparse, lambda layer: layer not in listed and (layer + 1) % step == 0, experts
        )

    return forward


def _llama_4_experts(read: ModelConfig, hidden: int, layers: int) -> _FeedForward:
    experts = read.count("num_local_experts", alias="num_experts")
    ffn, chosen = read.count("intermediate_size"), _chosen(read, experts)
    listed = read.layer_list("moe_layers", layers)
    if listed is None:
        step = read.count("interleave_moe_layer_step")
        listed = list(range(step - 1, layers, step))
    sparse_layers = frozenset(listed) & frozenset(range(layers))
    dense = _mlp(hidden, read.count("intermediate_size_mlp")) if len(sparse_layers) < layers else []
    sparse = [
        *_experts(hidden, ffn, experts=experts, chosen=chosen),
        *_mlp(hidden, ffn, name="shared_experts"),
    ]
    return _FeedForward(dense, sparse, sparse_layers.__contains__, experts)


def _gpt_2(read: ModelConfig) -> Architecture:
    hidden, layers = read.count("n_embd"), read.count("n_layer", most=MOST_LAYERS)
    query = read.count("n_head")
    heads = _Heads(query, query, _head_size(read, hidden, query, "n_head"))
    if read.flag("add_cross_attention", default=False):
        read.fault("add_cross_attention", "unknown_architecture", "Only a decoder alone can be counted.")
    stack = _Stack(
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocabulary=read.count("vocab_size"),
        tied=read.flag("tie_word_embeddings", default=True),
        positions=read.count("n_positions"),
        norm_size=2,
    )
    beside = [
        *_grouped_query(hidden, heads, inner_bias=True, outer_bias=True, fused=True),
        _always("norms", 4 * hidden, Cut.REPLICATED),
    ]
    ffn = read.count("n_inner", default=4 * hidden)
    return _assembled(stack, beside, _dense_only(_mlp(hidden, ffn, matrices=2, bias=True)))


def _gpt_neox(read: ModelConfig) -> Architecture:
    hidden, layers, vocabulary = _frame(read)
    query = read.count("num_attention_heads")
    heads = _Heads(query, query, _head_size(read, hidden, query, "num_attention_heads"))
    bias = read.flag("attention_bias", default=True)
    stack = _Stack(
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocabulary=vocabulary,
        tied=read.flag("tie_word_embeddings", default=False),
        norm_size=2,
    )
    beside = [
        *_grouped_query(hidden, heads, inner_bias=bias, outer_bias=bias, fused=True),
        _always("norms", 4 * hidden, Cut.REPLICATED),
    ]
    return _assembled(stack, beside, _two_matrices(_YES)(read, hidden, layers))


def _falcon(read: ModelConfig) -> Architecture:
    hidden, layers, vocabulary = _frame(read)
    query = read.count("num_attention_heads")
    bias = read.flag("bias")
    newer = read.flag("new_decoder_architecture")
    key_value = query
    if newer:
        key_value = read.count("num_kv_heads", default=query)
    elif read.flag("multi_query"):
        key_value = 1
    if newer or read.flag("parallel_attn"):
        norms = 2 if read.count("num_ln_in_parallel_attn", default=2 if newer else 1, most=2) == 2 else 1
    else:
        norms = 2
    _check_sharing(read, query, key_value, "num_kv_heads")
    heads = _Heads(query, key_value, _head_size(read, hidden, query, "num_attention_heads"))
    stack = _Stack(
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocabulary=vocabulary,
        tied=read.flag("tie_word_embeddings", default=True),
        norm_size=2,
    )
    beside = [
        *_grouped_query(hidden, heads, inner_bias=bias, outer_bias=bias, fused=True),
        _always("norms", norms * 2 * hidden, Cut.REPLICATED),
    ]
    ffn = read.count("ffn_hidden_size", default=4 * hidden)
    return _assembled(stack, beside, _dense_only(_mlp(hidden, ffn, matrices=2, bias=bias)))


def _dbrx(read: ModelConfig) -> Architecture:
    hidden, layers = read.count("d_model"), read.count("n_layers", most=MOST_LAYERS)
    query = read.count("n_heads")
    attention, forward = read.block("attn_config"), read.block("ffn_config")
    size = _head_size(read, hidden, query, "n_heads")
    heads = _Heads(query, attention.count("kv_n_heads"), size)
    _check_sharing(attention, query, heads.key_value, "kv_n_heads")
    experts = forward.count("moe_num_experts")
    sparse = _experts(
        hidden,
        forward.count("ffn_hidden_size"),
        experts=experts,
        chosen=_chosen(forward, experts, "moe_top_k"),
    )
    stack = _Stack(
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocabulary=read.count("vocab_size"),
        tied=read.flag("tie_word_embeddings", default=False),
    )
    beside = [
        *_grouped_query(hidden, heads, inner_bias=False, outer_bias=False, fused=True),
        _always("norms", 2 * hidden, Cut.REPLICATED),
    ]
    return _assembled(stack, beside, _FeedForward([], sparse, lambda _layer: True, experts))


def _deepseek_experts(read: ModelConfig, hidden: int, layers: int, *, selection_bias: bool) -> _FeedForward:
    """Return DeepSeek's blocks: the first few layers dense, the rest with routed and shared experts."""
    experts = read.count("n_routed_experts", alias="num_local_experts")
    ffn = read.count("moe_intermediate_size")
    dense_layers = read.count("first_k_dense_replace", least=0)
    if read.count("moe_layer_freq", default=1) != 1:
        read.fault(
            "moe_layer_freq", "unknown_architecture", "Only a moe_layer_freq of 1 is known of this family."
        )
    shared = read.count("n_shared_experts", least=0)
    sparse = [
        *_experts(hidden, ffn, experts=experts, chosen=_chosen(read, experts)),
        _always("biases", experts * selection_bias, Cut.REPLICATED),
        *_mlp(hidden, shared * ffn, name="shared_experts"),
    ]
    dense = _mlp(hidden, read.count("intermediate_size")) if dense_layers else []
    return _FeedForward(dense, sparse, lambda layer: layer >= dense_layers, experts)


def _deepseek(read: ModelConfig, *, selection_bias: bool) -> Architecture:
    """Return a model with multi-head latent attention, and experts of which the first layers have none.

    References:
        DeepSeek-V2, arXiv:2405.04434, section 2.1; DeepSeek-V3, arXiv:2412.19437.
    """
    hidden, layers, vocabulary = _frame(read)
    heads = read.count("num_attention_heads")
    rope = read.count("qk_rope_head_dim", least=0)
    nope, value = read.count("qk_nope_head_dim"), read.count("v_head_dim")
    latent = read.count("kv_lora_rank")
    bias = read.flag("attention_bias", default=False)
    # A null here says that queries are not compressed; its absence says nothing.
    compressed = not read.is_null("q_lora_rank")
    query = read.count("q_lora_rank") if compressed else 0
    widened, unpacked = heads * (nope + rope), heads * (nope + value)
    beside = [
        _always("attention", hidden * query, Cut.REPLICATED, hidden + query if query else 0),
        _always("attention", (query or hidden) * widened, Cut.TENSOR, (query or hidden) + widened),
        _always("attention", hidden * (latent + rope), Cut.REPLICATED, hidden + latent + rope),
        _always("attention", latent * unpacked, Cut.TENSOR, latent + unpacked),
        _always("attention", heads * value * hidden, Cut.TENSOR, heads * value + hidden),
        _always("norms", query + latent + 2 * hidden, Cut.REPLICATED),
        _always("biases", (query + latent + rope + hidden) * bias, Cut.REPLICATED),
    ]
    stack = _Stack(
        hidden=hidden,
        layers=layers,
        heads=_Heads(heads, heads, nope + rope),
        vocabulary=vocabulary,
        tied=read.flag("tie_word_embeddings", default=False),
        notes=_prediction_note(read),
    )
    return _assembled(stack, beside, _deepseek_experts(read, hidden, layers, selection_bias=selection_bias))


def _prediction_note(read: ModelConfig) -> tuple[str, ...]:
    modules = read.count("num_nextn_predict_layers", default=0, least=0, alias="num_mtp_layers")
    return (_PREDICTION_MODULE,) if modules else ()


def _deepseek_2(read: ModelConfig) -> Architecture:
    return _deepseek(read, selection_bias=False)


def _deepseek_3(read: ModelConfig) -> Architecture:
    """Return V3's shape; its experts are chosen with a bias each, unless the config names another way."""
    return _deepseek(read, selection_bias=read.word("topk_method") in {"", "noaux_tc"})


def _glm_4_experts(read: ModelConfig, hidden: int, layers: int) -> _FeedForward:
    return _deepseek_experts(read, hidden, layers, selection_bias=True)


_FAMILIES: dict[str, Callable[[ModelConfig], Architecture]] = {
    "llama": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, forward=_llama_mlp
    ).build,
    "mistral": _Family().build,
    "qwen2": _Family(inner_bias=_YES).build,
    "qwen3": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, head_size_default=False, head_norms=_YES
    ).build,
    "gemma": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, head_size_default=False, tied=True
    ).build,
    "gemma2": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, head_size_default=False, norms=4, tied=True
    ).build,
    "gemma3_text": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        head_size_default=False,
        head_norms=_YES,
        norms=4,
        tied=True,
    ).build,
    "phi": _Family(
        inner_bias=_YES,
        outer_bias=_YES,
        kv_heads_default=True,
        head_norms=_Trait("qk_layernorm", False),
        norms=1,
        norm_size=2,
        head_bias=True,
        forward=_two_matrices(_YES),
    ).build,
    "phi3": _Family(kv_heads_default=True, fused=True, forward=_fused_mlp).build,
    "olmo": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, norm_size=0
    ).build,
    "olmo2": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, whole_norms=_YES
    ).build,
    "olmo3": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, whole_norms=_YES
    ).build,
    "granite": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, forward=_llama_mlp
    ).build,
    "smollm3": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, tied=True, forward=_llama_mlp
    ).build,
    "cohere": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        kv_heads_default=True,
        whole_norms=_Trait("use_qk_norm", False),
        norms=1,
        tied=True,
    ).build,
    "cohere2": _Family(
        inner_bias=_ATTENTION_BIAS, outer_bias=_ATTENTION_BIAS, kv_heads_default=True, norms=1, tied=True
    ).build,
    "starcoder2": _Family(
        inner_bias=_Trait("use_bias", True),
        outer_bias=_Trait("use_bias", True),
        norm_size=2,
        tied=True,
        forward=_two_matrices(_Trait("use_bias", True)),
    ).build,
    "nemotron": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        norm_size=2,
        forward=_two_matrices(_Trait("mlp_bias", False)),
    ).build,
    "gpt2": _gpt_2,
    "gpt_neox": _gpt_neox,
    "falcon": _falcon,
    "mixtral": _Family(forward=_experts_everywhere()).build,
    "qwen2_moe": _Family(inner_bias=_Trait("qkv_bias", True), forward=_qwen_experts(shared=True)).build,
    "qwen3_moe": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        head_size_default=False,
        head_norms=_YES,
        forward=_qwen_experts(shared=False),
    ).build,
    "olmoe": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        kv_heads_default=True,
        whole_norms=_YES,
        forward=_experts_everywhere(key="num_experts"),
    ).build,
    "gpt_oss": _Family(
        inner_bias=_Trait("attention_bias", True),
        outer_bias=_Trait("attention_bias", True),
        head_size_default=False,
        sinks=True,
        forward=_experts_everywhere(bias=True),
    ).build,
    "minimax_m2": _Family(
        head_size_default=False, whole_norms=_YES, forward=_experts_everywhere(selection_bias=True)
    ).build,
    "glm4_moe": _Family(
        inner_bias=_ATTENTION_BIAS,
        head_size_default=False,
        head_norms=_Trait("use_qk_norm", False),
        forward=_glm_4_experts,
        notes=_prediction_note,
    ).build,
    "llama4_text": _Family(
        inner_bias=_ATTENTION_BIAS,
        outer_bias=_ATTENTION_BIAS,
        head_size_default=False,
        forward=_llama_4_experts,
    ).build,
    "dbrx": _dbrx,
    "deepseek_v2": _deepseek_2,
    "deepseek_v3": _deepseek_3,
    "kimi_k2": _deepseek_3,
}
