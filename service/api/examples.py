"""Request bodies that the documentation shows. They are real: the tests send each of them."""

from typing import Any

LLAMA_405B_SYNC: dict[str, Any] = {
    "model": {"parameters": 405_000_000_000, "bytes_per_parameter": 14},
    "cluster": {"gpus": 16_384, "gpus_per_node": 8},
    "failures": {"observed_failures": 419, "observed_hours": 1296, "observed_gpus": 16_384},
    "restart": {"seconds": 600},
    "save": {"mode": "sync", "blocking_seconds": 60},
    "interval": {"rule": "fixed", "seconds": 600},
    "restore": {"target_seconds": 120},
    "retention": {"hot_copies": 10},
    "prices": {"gpu_hour_usd": 2.35},
}

LLAMA_405B_ASYNC: dict[str, Any] = {
    **LLAMA_405B_SYNC,
    "save": {"mode": "async", "blocking_seconds": 5, "headroom": 2.5},
}

GIVEN_STORAGE: dict[str, Any] = {
    "model": {"preset": "llama-3-70b"},
    "cluster": {"gpus": 1024, "gpu_preset": "h100-sxm"},
    "failures": {"preset": "llama-3-405b"},
    "restart": {"seconds": 600},
    "save": {"mode": "sync"},
    "restore": {"target_seconds": 120},
    "retention": {"hot_copies": 10, "hot_protection_fraction": 0.25},
    "storage": {
        "write_gb_per_second": 40,
        "read_gb_per_second": 60,
        "node_gb_per_second": 12.5,
        "file_creates_per_second": 5000,
        "usable_tb": 200,
    },
}

MIXTURE_OF_EXPERTS: dict[str, Any] = {
    "model": {
        "config": {
            "model_type": "mixtral",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "vocab_size": 32000,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
        },
        "recipe": "adam_bf16_moments",
        "extra_bytes_per_rank": 20_000,
    },
    "cluster": {"gpus": 256, "gpus_per_node": 8},
    "failures": {"preset": "meta-rsc-1"},
    "restart": {"seconds": 600},
    "save": {"mode": "async", "blocking_seconds": 3},
    "restore": {"target_seconds": 60},
}

PARALLEL_LAYOUT: dict[str, Any] = {
    "model": {"preset": "llama-3-405b"},
    "cluster": {
        "gpus": 512,
        "gpus_per_node": 8,
        "parallelism": {"tensor": 8, "pipeline": 32, "data": 2, "zero_stage": 1},
    },
    "failures": {"preset": "llama-3-405b"},
    "restart": {"seconds": 600},
    "save": {"mode": "sync", "blocking_seconds": 60},
    "restore": {"target_seconds": 120},
}

NEW_CLUSTER: dict[str, Any] = {
    **LLAMA_405B_ASYNC,
    "failures": {
        "components": [
            {"component": "gpu", "per_node": 8, "mtbf_hours": 50_000},
            {"component": "nic", "per_node": 2, "mtbf_hours": 150_000},
            {"component": "psu", "per_node": 2, "mtbf_hours": 100_000},
        ],
        "early_life_factor": 3,
        "counts": "Replacements of parts, by data sheet",
    },
    "interval": {"rule": "exact"},
}

TIERS: dict[str, Any] = {
    **LLAMA_405B_ASYNC,
    "tiers": [
        {"kind": "host_memory", "interval_seconds": 60, "blocking_seconds": 0.5, "restore_seconds": 5},
        {
            "kind": "peer_memory",
            "interval_seconds": 60,
            "blocking_seconds": 0,
            "durable_lag_seconds": 15,
            "restore_seconds": 10,
            "replicas": 2,
        },
        {
            "kind": "node_local_nvme",
            "interval_seconds": 300,
            "blocking_seconds": 0,
            "node_write_gb_per_second": 5,
            "node_read_gb_per_second": 10,
            "drives_per_node": 4,
            "drive_bytes": 1_920_000_000_000,
            "rated_drive_writes_per_day": 1,
        },
    ],
    "failure_mix": [
        {"kind": "process", "fraction": 0.25},
        {"kind": "node_loss", "fraction": 0.7},
        {"kind": "node_loss", "nodes": 2, "fraction": 0.05},
    ],
}

SPECS: dict[str, dict[str, Any]] = {
    "sync": {"summary": "405B on 16,384 GPUs, synchronous saves of 60 s", "value": LLAMA_405B_SYNC},
    "async": {"summary": "The same, asynchronous saves that block for 5 s", "value": LLAMA_405B_ASYNC},
    "layout": {
        "summary": "405B on 512 GPUs by its parallel layout, which says who writes what",
        "value": PARALLEL_LAYOUT,
    },
    "components": {"summary": "The same on a new cluster, its failures by component", "value": NEW_CLUSTER},
    "storage": {"summary": "70B on 1,024 GPUs: what a given storage system delivers", "value": GIVEN_STORAGE},
    "tiers": {"summary": "405B with copies in host memory, on a peer and on NVMe", "value": TIERS},
    "config": {
        "summary": "A mixture of experts by its config.json, its state by a recipe",
        "value": MIXTURE_OF_EXPERTS,
    },
}

SCENARIOS = {
    name: {"summary": example["summary"], "value": {"name": f"llama-{name}", "spec": example["value"]}}
    for name, example in SPECS.items()
}

QUESTIONS: dict[str, dict[str, Any]] = {
    "write_bandwidth": {
        "summary": "Which write bandwidth makes 90 % of the time count?",
        "value": {
            "spec": LLAMA_405B_SYNC,
            "unknown": "write_gb_per_second",
            "goal": {"goodput_fraction": 0.9},
        },
    },
    "largest_cluster": {
        "summary": "Up to how many GPUs does a given storage system keep 90 % of the time useful?",
        "value": {"spec": GIVEN_STORAGE, "unknown": "gpus", "goal": {"goodput_fraction": 0.9}},
    },
    "out_of_reach": {
        "summary": "A goodput that no write bandwidth reaches, since restarts alone waste more",
        "value": {
            "spec": LLAMA_405B_SYNC,
            "unknown": "write_gb_per_second",
            "goal": {"goodput_fraction": 0.95},
        },
    },
}

IOR_CSV = """\
access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter
write,1745.6908,873.2978,0.0064,32768.0000,2048.0000,0.0182,0.1099,0.0076,0.1100,6,0
read,12831.5228,6424.8725,0.0001,32768.0000,2048.0000,0.0120,0.0149,0.0127,0.0150,6,0
write,1975.5914,988.5693,0.0061,32768.0000,2048.0000,0.0128,0.0971,0.0078,0.0972,6,1
read,5699.0246,2850.8640,0.0001,32768.0000,2048.0000,0.0309,0.0337,0.0319,0.0337,6,1
write,288.9042,144.4689,0.0081,32768.0000,2048.0000,0.0522,0.6645,0.5345,0.6646,6,2
read,3352.1330,1676.4712,0.0002,32768.0000,2048.0000,0.0357,0.0573,0.0544,0.0573,6,2
"""

UPLOADS = {
    "ior": {
        "summary": "What `ior -O summaryFormat=CSV -O summaryFile=ior.csv` wrote, as it is",
        "value": IOR_CSV,
    }
}

API_KEYS: dict[str, dict[str, Any]] = {
    "jobs": {
        "summary": "For training jobs, which post what they measured",
        "value": {"name": "nightly jobs", "scopes": ["submit"]},
    },
    "tooling": {
        "summary": "For procurement tooling, until the end of 2099",
        "value": {"name": "tender", "scopes": ["write"], "expires_at": "2099-12-31T23:59:59Z"},
    },
}

ROTATIONS: dict[str, dict[str, Any]] = {
    "day": {"summary": "The present secret is good for another day", "value": {"grace_hours": 24}},
}
