"""Scenarios to test with: the articles', and generated ones over the whole bounds of the spec."""

import math
from typing import Any

from hypothesis import strategies as st

from service.sizing import presets
from service.sizing.size import size
from service.sizing.sizing import Sizing
from service.sizing.spec import ScenarioSpec

Body = dict[str, Any]

LLAMA_3_FAILURES: Body = {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16384}

ARTICLE: Body = {
    "model": {"parameters": 405_000_000_000, "bytes_per_parameter": 14},
    "cluster": {"gpus": 16384, "gpus_per_node": 8},
    "failures": LLAMA_3_FAILURES,
    "restart": {"seconds": 600},
    "save": {"mode": "sync", "blocking_seconds": 60},
    "interval": {"rule": "fixed", "seconds": 600},
    "restore": {"target_seconds": 120},
    "retention": {"hot_copies": 10},
    "prices": {"gpu_hour_usd": 2.35},
}
"""The worked example of "Checkpoint I/O Sizing", priced as in "Checkpoint Storage That Doesn't Stall Training"."""


TINY_LLAMA: Body = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 100,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1001,
}
DEEPSEEK_V3: Body = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_shared_experts": 1,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
    "tie_word_embeddings": False,
    "rope_scaling": {"type": "yarn", "factor": 40},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
"""What matters of its published config.json, and some of what does not."""


def article(**blocks: Body | list[Body] | None) -> Body:
    """Return the articles' scenario with other blocks; None leaves a block out."""
    return {name: block for name, block in {**ARTICLE, **blocks}.items() if block is not None}


def sized(**blocks: Body | list[Body] | None) -> Sizing:
    """Return the sizing of the articles' scenario with other blocks."""
    return size(ScenarioSpec.model_validate(article(**blocks)))


def logarithmic(low: float, high: float) -> st.SearchStrategy[float]:
    """Draw floats whose logarithm is spread evenly, both bounds included."""
    return st.floats(math.log(low), math.log(high)).map(
        lambda exponent: min(max(math.exp(exponent), low), high)
    ) | st.sampled_from([float(low), float(high)])


def logarithmic_count(low: int, high: int) -> st.SearchStrategy[int]:
    """Draw integers likewise."""
    return logarithmic(low, high).map(lambda drawn: min(max(round(drawn), low), high))


def _fields(draw: st.DrawFn, required: Body, optional: Body) -> Body:
    block = {name: draw(strategy) for name, strategy in required.items()}
    for name, strategy in optional.items():
        if draw(st.booleans()):
            block[name] = draw(strategy)
    return block


@st.composite
def bodies(
    draw: st.DrawFn, *, mode: str | None = None, rules: tuple[str, ...] = (), layouts: bool = True
) -> Body:
    """Draw a valid scenario body over the whole bounds of the spec; a layout, if any, fits its GPUs and its model."""
    model = draw(_models())
    gpus = draw(logarithmic_count(1, 10_000_000))
    cluster: Body = {"gpus": gpus} | _fields(
        draw,
        {},
        {
            "gpus_per_node": logarithmic_count(1, 1024),
            "host_memory_bytes_per_node": logarithmic_count(1, 10**15),
            "gpu_preset": st.sampled_from(["h100-sxm", "h200-sxm"]),
        },
    )
    shards = _fields(
        draw,
        {},
        {"writers": logarithmic_count(1, gpus), "files_per_writer": logarithmic_count(1, 100_000)},
    )
    if draw(st.booleans()):
        shards["skew"] = draw(logarithmic(1, shards.get("writers", gpus)))
    if layouts and draw(st.integers(0, 3)) == 0:
        shards = {name: value for name, value in shards.items() if name == "files_per_writer"}
        model, gpus, layout = draw(_laid_out(model))
        cluster |= {"gpus": gpus, "parallelism": layout}
    chosen_mode = mode or draw(st.sampled_from(["sync", "async"]))
    rule = draw(st.sampled_from(rules or ("exact", "young", "daly", "fixed")))
    body: Body = {
        "model": model,
        "cluster": cluster,
        "shards": shards,
        "failures": draw(_failures()),
        "interval": {"rule": rule},
    }
    if rule == "fixed":
        body["interval"]["seconds"] = draw(logarithmic(1e-3, 1e9))
    body["restart"], restore = draw(_restarts())
    if restore is not None:
        body["restore"] = restore
    body["save"] = {"mode": chosen_mode} | draw(_stalls(body["interval"].get("seconds", math.inf)))
    if chosen_mode == "async":
        body["save"] |= _fields(
            draw,
            {},
            {
                "headroom": logarithmic(1, 100),
                "durable_lag_seconds": logarithmic(1e-6, 1e7),
                "staging_buffers": logarithmic_count(1, 16),
            },
        )
        if draw(st.booleans()):
            memory = cluster.get("host_memory_bytes_per_node", 10**12)
            body["save"] |= _fields(
                draw,
                {"staging_budget_bytes_per_node": logarithmic_count(1, memory)},
                {"copy_seconds": logarithmic(1e-6, 1e7), "drain_overlaps_copy": st.booleans()},
            )
            if draw(st.integers(0, 3)):  # several buffers seldom fit a budget
                body["save"].pop("staging_buffers", None)
    if draw(st.booleans()) and body["save"]:
        body["save"]["step_seconds"] = draw(logarithmic(1e-6, 1e7))
    optional: Body = {
        "retention": {
            "hot_copies": logarithmic_count(1, 100_000),
            "hot_protection_fraction": st.floats(0, 10),
            "cold_copies": st.just(0) | logarithmic_count(1, 100_000),
            "cold_protection_fraction": st.floats(0, 10),
        },
        "storage": {
            "preset": st.just("llama-3-tectonic"),
            "write_gb_per_second": logarithmic(1e-6, 1e9),
            "read_gb_per_second": logarithmic(1e-6, 1e9),
            "node_gb_per_second": logarithmic(1e-6, 1e9),
            "thread_gb_per_second": logarithmic(1e-6, 1e9),
            "file_creates_per_second": logarithmic(1e-3, 1e12),
            "usable_tb": logarithmic(1e-6, 9e6),
        },
        "prices": {
            "gpu_hour_usd": st.just(0.0) | logarithmic(0.01, 1e6),
            "hot_usd_per_tb_month": st.just(0.0) | logarithmic(0.01, 1e6),
            "cold_usd_per_tb_month": st.just(0.0) | logarithmic(0.01, 1e6),
        },
    }
    for name, fields in optional.items():
        if draw(st.booleans()):
            block = _fields(draw, {}, fields)
            if block or name != "storage":
                body[name] = block
    storage = body.get("storage", {})
    times_a_save = bool(
        {"preset", "write_gb_per_second", "node_gb_per_second", "file_creates_per_second"} & storage.keys()
    )
    if chosen_mode == "sync" and times_a_save and draw(st.booleans()):
        body["save"] = {"mode": "sync"}
    if draw(st.booleans()):
        body |= draw(
            tiers(
                nodes=-(-cluster["gpus"] // cluster.get("gpus_per_node", 8)),
                most_seconds=body["interval"].get("seconds", 1e9),
            )
        )
    return body


_SHARES = st.sampled_from([0, 1, 2, 5, 2**40])


@st.composite
def tiers(draw: st.DrawFn, *, nodes: int, most_seconds: float) -> Body:
    """Draw the tiers of a cluster of so many nodes, none slower to save than so, and what failures leave of it."""
    kinds = [kind for kind in ("host_memory", "peer_memory", "node_local_nvme") if draw(st.booleans())]
    if nodes == 1:
        kinds = [kind for kind in kinds if kind != "peer_memory"]
    drawn, least = [], 1e-3
    for kind in kinds or ["node_local_nvme"]:
        least = draw(logarithmic(least, most_seconds))
        tier = {"kind": kind, "interval_seconds": least}
        tier["blocking_seconds"] = draw(st.just(0.0) | logarithmic(1e-9, min(least / 8, 1e7)))
        tier |= draw(
            st.sampled_from(
                [{"restore_seconds": 0.0}, {"node_read_gb_per_second": 20.0}, {"read_gb_per_second": 900.0}]
            )
        )
        if kind != "host_memory":
            if draw(st.booleans()):
                tier["durable_lag_seconds"] = draw(logarithmic(1e-6, min(least, 1e7)))
            else:
                tier["node_write_gb_per_second"] = draw(logarithmic(1e-3, 1e9))
            if draw(st.booleans()):
                tier["replicas"] = draw(st.integers(2 if kind == "peer_memory" else 1, min(nodes, 16)))
        if kind == "node_local_nvme" and draw(st.booleans()):
            tier |= {
                "drives_per_node": draw(st.integers(1, 256)),
                "drive_bytes": draw(logarithmic_count(1, 10**15)),
            }
            if draw(st.booleans()):
                tier["rated_drive_writes_per_day"] = draw(logarithmic(1e-3, 1e4))
        if draw(st.booleans()):
            tier["versions"] = draw(st.integers(1, 16))
        drawn.append(tier)
    body: Body = {"tiers": drawn}
    if draw(st.booleans()):
        shares = {
            ("process", 1): draw(_SHARES),
            ("node_reboot", 1): draw(_SHARES),
            ("node_reboot", nodes): draw(_SHARES),
            ("node_loss", draw(logarithmic_count(1, nodes))): draw(_SHARES),
            ("node_loss", 1): 1,
        }
        body["failure_mix"] = [
            {"kind": kind, "fraction": share / sum(shares.values())}
            | ({"nodes": struck} if kind != "process" else {})
            for (kind, struck), share in shares.items()
        ]
    return body


_EXPERTS = {"llama-3-8b": 0, "llama-3-405b": 0, "mixtral-8x7b": 8, "deepseek-v3": 256}


@st.composite
def _laid_out(draw: st.DrawFn, model: Body) -> tuple[Body, int, Body]:
    """Draw a shape for the model, the GPUs, and a parallel layout that fits both."""
    name = draw(st.sampled_from(sorted(_EXPERTS)))
    by_benchmark = draw(st.integers(0, 3)) == 0
    zero_stage = draw(st.integers(0, 3))
    tensor = draw(st.sampled_from([1, 2, 4, 8]))
    pipeline = 1 if by_benchmark and zero_stage == 3 else draw(st.integers(1, 32))
    group, instances = draw(logarithmic_count(1, 1000)), draw(st.integers(1, 30))
    if zero_stage == 0 or by_benchmark:
        instances = 1
    layout: Body = {"tensor": tensor, "pipeline": pipeline, "zero_stage": zero_stage}
    if draw(st.booleans()):
        layout["data"] = group * instances
    if instances > 1:
        layout["shard_group"] = group
    if by_benchmark:
        layout["rule"] = "mlperf_storage"
    else:
        layout["replicas_written"] = draw(st.sampled_from(["once", "spread", "all"]))
        if _EXPERTS[name]:
            ranks = tensor * group
            wide = draw(st.sampled_from([each for each in (1, 2, 3, 4, 8) if ranks % each == 0]))
            spread = [each for each in (1, 2, 4, 8) if ranks % (each * wide) == 0]
            layout |= {"expert": draw(st.sampled_from(spread)), "expert_tensor": wide}
    others = ("parameters", "config", "adapter_parameters", "lora_rank")
    model = {key: value for key, value in model.items() if key not in others} | {"preset": name}
    if model.get("recipe") == "lora_adam":
        model["recipe"] = "adam_mixed_12"
    if {"deduplication_factor", "differential_fraction"} & model.keys():
        layout.pop("replicas_written", None)
    if "recipe" not in model and draw(st.booleans()):
        layout["weight_bytes_per_parameter"] = 0.005
    if draw(st.booleans()):
        layout["pipeline_split"] = draw(st.sampled_from(["remainder_first", "ends_as_layers"]))
    return model, tensor * pipeline * group * instances, layout


@st.composite
def configs(draw: st.DrawFn) -> Body:
    """Draw a config.json of a llama, a mixtral or a deepseek_v3 of any size."""
    heads = draw(st.integers(1, 64))
    kind = draw(st.sampled_from(["llama", "mixtral", "deepseek_v3"]))
    experts = draw(st.integers(1, 300))
    config = {
        "model_type": kind,
        "hidden_size": heads * draw(st.integers(1, 128)),
        "num_hidden_layers": draw(st.integers(1, 100)),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": draw(logarithmic_count(1, 50_000)),
        "vocab_size": draw(logarithmic_count(1, 300_000)),
    } | _fields(draw, {}, {"tie_word_embeddings": st.booleans()})
    if kind == "llama":
        return config | _fields(draw, {}, {"attention_bias": st.booleans(), "mlp_bias": st.booleans()})
    config["num_experts_per_tok"] = draw(st.integers(1, experts))
    if kind == "mixtral":
        return config | {"num_local_experts": experts}
    return config | {
        "n_routed_experts": experts,
        "n_shared_experts": draw(st.integers(0, 3)),
        "moe_intermediate_size": draw(logarithmic_count(1, 10_000)),
        "first_k_dense_replace": draw(st.integers(0, 100)),
        "q_lora_rank": draw(st.none() | st.integers(1, 2000)),
        "kv_lora_rank": draw(st.integers(1, 2000)),
        "qk_nope_head_dim": draw(st.integers(1, 200)),
        "qk_rope_head_dim": draw(st.integers(0, 200)),
        "v_head_dim": draw(st.integers(1, 200)),
    }


@st.composite
def _models(draw: st.DrawFn) -> Body:
    shaped = {"preset": st.sampled_from(["llama-3-8b", "kimi-k2"]), "config": configs()}
    known = draw(st.sampled_from(["parameters", "parameters", *shaped]))
    model = {known: draw(shaped.get(known, logarithmic_count(1, 10**14)))}
    recipe = draw(st.none() | st.sampled_from(["adam_8bit", "muon_mixed", "lora_adam", "weights_bf16"]))
    if recipe == "muon_mixed" and known == "parameters":
        recipe = "lion_mixed"
    if recipe is None:
        model |= _fields(draw, {}, {"bytes_per_parameter": logarithmic(0.01, 64)})
    else:
        model |= {"recipe": recipe} | _fields(draw, {}, {"ema_copy": st.booleans()})
    if recipe == "lora_adam" and known == "parameters":
        model["adapter_parameters"] = draw(logarithmic_count(1, 10**12))
    elif recipe == "lora_adam":
        model["lora_rank"] = draw(logarithmic_count(1, 1000))
    model |= _fields(
        draw,
        {},
        {"extra_bytes": logarithmic_count(1, 10**15), "extra_bytes_per_rank": logarithmic_count(1, 10**8)},
    )
    fraction = logarithmic(1e-4, 1)
    match draw(st.sampled_from(["none", "reduced", "compressed", "deduplicated", "differential"])):
        case "reduced":
            model |= {"reduction_factor": draw(fraction)}
        case "compressed":
            model |= {"compression_factor": draw(fraction)}
        case "deduplicated":
            model |= {"deduplication_factor": draw(fraction)}
            model |= _fields(draw, {}, {"compression_factor": fraction})
        case "differential":
            model |= {"differential_fraction": draw(fraction), "full_every": draw(logarithmic_count(2, 1000))}
            model |= _fields(draw, {}, {"compression_factor": fraction})
    return model


@st.composite
def _failures(draw: st.DrawFn) -> Body:
    more = _fields(
        draw, {}, {"early_life_factor": logarithmic(1, 1000), "counts": st.just("What stops the job")}
    )
    match draw(st.sampled_from(["in range", "anywhere", "observed", "components", "rate", "preset"])):
        case "in range":
            return {"mtbf_hours": draw(logarithmic(1 / 3600 + 1e-9, 1e12 / 3600))}
        case "components":
            parts = draw(
                st.lists(st.sampled_from(["gpu", "hbm", "nic", "switch", "psu"]), min_size=1, unique=True)
            )
            return more | {
                "components": [
                    {
                        "component": part,
                        "per_node": draw(logarithmic(1e-4, 1e5)),
                        "mtbf_hours": draw(logarithmic(1e-4, 1e10)),
                    }
                    for part in parts
                ]
            }
        case "rate":
            return more | {"per_1000_node_days": draw(logarithmic(1e-9, 1e9))}
        case "anywhere":
            return _fields(
                draw, {"mtbf_hours": logarithmic(1e-4, 1e10)}, {"mtbf_gpus": logarithmic_count(1, 10**8)}
            )
        case "observed":
            return more | _fields(
                draw,
                {
                    "observed_failures": st.just(0) | logarithmic_count(1, 10**9),
                    "observed_hours": logarithmic(1e-3, 1e8),
                    "observed_gpus": logarithmic_count(1, 10**8),
                },
                {"observed_planned": st.just(0) | logarithmic_count(1, 10**9)},
            )
        case _:
            more.pop("counts", None)
            return more | {"preset": draw(st.sampled_from(list(presets.failure_records())))}


@st.composite
def _restarts(draw: st.DrawFn) -> tuple[Body, Body | None]:
    seconds = st.just(0.0) | logarithmic(1e-6, 1e7)
    target = draw(st.none() | logarithmic(1e-6, 1e7))
    restore = None
    if target is not None:
        restore = {"target_seconds": target} | _fields(
            draw, {}, {"read_amplification": logarithmic(0.01, 10_000)}
        )
    if draw(st.booleans()):
        return {"seconds": max(draw(seconds), target or 0.0)}, restore
    parts = ("detect_seconds", "reschedule_seconds", "initialise_seconds", "warm_up_seconds")
    restart = {part: draw(seconds) for part in parts}
    if target is None or draw(st.booleans()):
        restart["load_seconds"] = draw(seconds)
    match draw(st.sampled_from(["spares", "stated", "counted"])):
        case "stated":
            restart["reschedule_without_spares_seconds"] = max(draw(seconds), restart["reschedule_seconds"])
            restart["spares_exhausted_fraction"] = draw(st.floats(0, 1))
        case "counted":
            restart["reschedule_without_spares_seconds"] = max(draw(seconds), restart["reschedule_seconds"])
            restart |= _fields(
                draw,
                {
                    "spare_nodes": st.just(0) | logarithmic_count(1, 1_000_000),
                    "repair_hours": logarithmic(1e-3, 1e6),
                },
                {"node_loss_fraction": logarithmic(1e-6, 1)},
            )
    return restart, restore


@st.composite
def _stalls(draw: st.DrawFn, interval_seconds: float) -> Body:
    if draw(st.booleans()):
        return {"overhead_fraction": draw(logarithmic(1e-6, 0.99))}
    most = min(1e7, math.nextafter(interval_seconds, 0.0))
    return {"blocking_seconds": draw(logarithmic(1e-6, most))}
