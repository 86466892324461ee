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

SPECS = {
    "sync": {"summary": "405B on 16,384 GPUs, synchronous saves of 60 s", "value": LLAMA_405B_SYNC},
    "async": {"summary": "The same, asynchronous saves that block for 5 s", "value": LLAMA_405B_ASYNC},
    "storage": {"summary": "70B on 1,024 GPUs: what a given storage system delivers", "value": GIVEN_STORAGE},
}

SCENARIOS = {
    name: {"summary": example["summary"], "value": {"name": f"llama-{name}", "spec": example["value"]}}
    for name, example in SPECS.items()
}

UPLOADS = {
    "ior": {
        "summary": "What `ior -O summaryFormat=JSON -O summaryFile=ior.json` wrote, as it is",
        "value": "@ior.json",
    }
}
