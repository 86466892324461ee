"""How the figures of the checkpoint, its host memory and its space came about."""

from service.sizing import presets
from service.sizing.explain.lines import LAST_NODE_FULL, Facts, Lines


def explain_checkpoint(lines: Lines, job: Facts) -> None:
    """Explain what one checkpoint holds, and how it is cut."""
    spec, block = job.spec, job.sizing.checkpoint
    source = presets.models()[spec.model.preset].source if spec.model.preset is not None else None
    total = {"checkpoint_bytes": block.bytes}
    lines.add(
        "#/checkpoint/bytes",
        "checkpoint_bytes",
        {
            "parameters": spec.parameters,
            "bytes_per_parameter": spec.model.bytes_per_parameter,
            "reduction_factor": spec.model.reduction_factor,
            "extra_bytes": spec.model.extra_bytes,
        },
        f"A checkpoint holds {spec.model.bytes_per_parameter:g} bytes per parameter; measure yours."
        + (f" Parameters: {source}." if source else ""),
    )
    lines.add(
        "#/checkpoint/bytes_per_gpu", "even_share", {**total, "holders": spec.cluster.gpus}, "An even split."
    )
    lines.add("#/checkpoint/bytes_per_node", "even_share", {**total, "holders": block.nodes}, LAST_NODE_FULL)
    if spec.shards.largest_shard_bytes is not None:
        lines.add(
            "#/checkpoint/largest_shard_bytes",
            "given",
            {"shards.largest_shard_bytes": spec.shards.largest_shard_bytes},
        )
    else:
        lines.add(
            "#/checkpoint/largest_shard_bytes",
            "largest_shard",
            {**total, "writers": block.writers, "skew": job.skew},
            job.even,
        )
    lines.add(
        "#/checkpoint/nodes",
        "node_count",
        {"gpus": spec.cluster.gpus, "gpus_per_node": spec.cluster.gpus_per_node},
    )
    if spec.shards.writers is not None:
        lines.add("#/checkpoint/writers", "given", {"shards.writers": spec.shards.writers})
    else:
        lines.add("#/checkpoint/writers", "same", {"gpus": spec.cluster.gpus}, "Every GPU's rank writes.")
    lines.add(
        "#/checkpoint/files",
        "file_count",
        {"writers": block.writers, "files_per_writer": spec.shards.files_per_writer},
    )


def explain_host_memory(lines: Lines, job: Facts) -> None:
    """Explain the DRAM that async staging takes."""
    block, cluster = job.sizing.host_memory, job.spec.cluster
    if block is None:
        return
    lines.add(
        "#/host_memory/bytes_per_node",
        "staging_bytes",
        {
            "checkpoint_bytes": job.sizing.checkpoint.bytes,
            "nodes": job.sizing.checkpoint.nodes,
            "writers": job.sizing.checkpoint.writers,
            "skew": job.skew,
            "staging_buffers": block.staging_buffers,
        },
        job.even or "An upper bound: every rank of the node holds the largest shard.",
    )
    if job.spec.save.staging_buffers is not None:
        lines.add("#/host_memory/staging_buffers", "given", {"save.staging_buffers": block.staging_buffers})
    else:
        lines.add(
            "#/host_memory/staging_buffers", "given", {"staging_buffers": 1}, "One buffer, the default."
        )
    if block.memory_fraction is not None:
        memory, source = cluster.host_memory_bytes_per_node, None
        if memory is None:
            preset = presets.gpus()[str(cluster.gpu_preset)]
            memory, source = preset.host_memory_bytes_per_node, preset.source
        lines.add(
            "#/host_memory/memory_fraction",
            "ratio",
            {
                "staging_bytes": job.node_share_bytes * block.staging_buffers,
                "host_memory_bytes_per_node": memory,
            },
            f"The nodes have {memory} bytes, as in the preset." if source else None,
            source,
        )

    if block.budget_fraction is not None:
        lines.add(
            "#/host_memory/budget_fraction",
            "ratio",
            {
                "staging_bytes": job.node_share_bytes * block.staging_buffers,
                "staging_budget_bytes": job.spec.save.staging_budget_bytes_per_node,
            },
        )


def explain_trainer(lines: Lines, job: Facts) -> None:
    """Explain what trainers are to be set to."""
    block, sizing, storage = job.sizing.trainer, job.sizing, job.spec.storage
    if block is None:
        return
    step = {
        "blocking_seconds": sizing.blocking.seconds,
        "step_seconds": job.spec.save.step_seconds,
    }
    if block.interval_steps is not None:
        lines.add(
            "#/trainer/interval_steps",
            "interval_steps",
            {"interval_seconds": sizing.interval.seconds, **step},
            "Every step takes as long.",
        )
        lines.add(
            "#/trainer/interval_seconds",
            "interval_of_steps",
            {"interval_steps": block.interval_steps, **step},
        )
    if block.threads_per_rank is not None and storage is not None:
        rate = storage.node_gb_per_second
        ranks = {"writing_ranks": block.writing_ranks_per_node}
        lines.add(
            "#/trainer/writing_ranks_per_node",
            "writing_ranks",
            {"writers": sizing.checkpoint.writers, "nodes": sizing.checkpoint.nodes},
            "Writers are spread evenly over the nodes.",
        )
        lines.add(
            "#/trainer/threads_per_rank",
            "writer_threads",
            {
                "node_gb_per_second": rate if rate is not None else sizing.write.per_node_gb_per_second,
                "thread_gb_per_second": storage.thread_gb_per_second,
                **ranks,
            },
            "Threads do not slow each other down."
            + (
                ""
                if rate is not None
                else " The node has to move what saves need, since its limit is not given."
            ),
        )
        lines.add(
            "#/trainer/threads_per_node",
            "threads_of_a_node",
            {"threads": block.threads_per_rank, **ranks},
        )


def explain_capacity(lines: Lines, job: Facts) -> None:
    """Explain the space of the copies that are kept."""
    block, kept = job.sizing.capacity, job.spec.retention
    if block is None or kept is None:
        return
    for tier, copies, protection in (
        ("hot", kept.hot_copies, kept.hot_protection_fraction),
        ("cold", kept.cold_copies, kept.cold_protection_fraction),
    ):
        if getattr(block, f"{tier}_bytes") is not None:
            inputs = {
                "checkpoint_bytes": job.sizing.checkpoint.bytes,
                "copies": copies,
                "protection_fraction": protection,
            }
            lines.add(f"#/capacity/{tier}_bytes", "kept_bytes", inputs)
            lines.add(f"#/capacity/{tier}_peak_bytes", "peak_bytes", inputs)
