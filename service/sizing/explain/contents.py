"""How the figures of the checkpoint, its host memory and its space came about."""

from service.sizing import presets
from service.sizing.explain.layout import class_bytes, explain_placed_shards, rule_says
from service.sizing.explain.lines import LAST_NODE_FULL, Facts, Lines
from service.sizing.layout import ReplicasWritten
from service.sizing.state import extra_bytes, is_plain, written_fraction

UNREDUCED = " The copy is of the state as it is before it is reduced."
UPPER_BOUND = "An upper bound: every rank of the node holds the largest shard."


def explain_checkpoint(lines: Lines, job: Facts) -> None:
    """Explain what one checkpoint holds, and how it is cut."""
    spec, block = job.spec, job.sizing.checkpoint
    total = {"checkpoint_bytes": block.bytes}
    placement = job.placement
    if placement is not None and placement.layout.replicas_written is ReplicasWritten.ALL:
        lines.add(
            "#/checkpoint/bytes", "sum", class_bytes(placement, placement.written), rule_says(placement)
        )
    else:
        _explain_bytes(lines, job, "#/checkpoint/bytes")
    _explain_differences(lines, job)
    lines.add(
        "#/checkpoint/bytes_per_gpu", "even_share", {**total, "holders": spec.cluster.gpus}, "An even split."
    )
    lines.add("#/checkpoint/bytes_per_node", "even_share", {**total, "holders": block.nodes}, LAST_NODE_FULL)
    if placement is not None:
        _explain_bytes(lines, job, "#/layout/distinct_bytes")
    explain_shards(lines, job)
    lines.add(
        "#/checkpoint/nodes",
        "node_count",
        {"gpus": spec.cluster.gpus, "gpus_per_node": spec.cluster.gpus_per_node},
    )
    lines.add(
        "#/checkpoint/files",
        "file_count",
        {"writers": block.writers, "files_per_writer": spec.shards.files_per_writer},
    )


def explain_shards(lines: Lines, job: Facts) -> None:
    """Explain the writers, and how unevenly they share a checkpoint."""
    spec, block = job.spec, job.sizing.checkpoint
    total = {"checkpoint_bytes": block.bytes}
    lines.add("#/checkpoint/mean_shard_bytes", "even_share", {**total, "holders": block.writers})
    if job.placement is not None:
        explain_placed_shards(lines, job, job.placement)
        return
    mean = block.bytes / block.writers
    if spec.shards.largest_shard_bytes is not None:
        lines.add(
            "#/checkpoint/skew",
            "ratio",
            {"shards.largest_shard_bytes": spec.shards.largest_shard_bytes, "mean_shard_bytes": mean},
        )
    else:
        lines.add("#/checkpoint/skew", "given", {"skew": job.skew}, job.even)
    lines.add(
        "#/checkpoint/largest_node_bytes",
        "largest_node_share",
        {**total, "nodes": block.nodes, "writers": block.writers, "skew": job.skew},
        job.even or UPPER_BOUND,
    )
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
        "#/checkpoint/writing_nodes",
        "spread_nodes",
        {"nodes": block.nodes, "writers": block.writers},
        "Writers are spread over the nodes." if block.writers < spec.cluster.gpus else None,
    )
    if spec.shards.writers is not None:
        lines.add("#/checkpoint/writers", "given", {"shards.writers": spec.shards.writers})
    else:
        lines.add("#/checkpoint/writers", "same", {"gpus": spec.cluster.gpus}, "Every GPU's rank writes.")


def _explain_bytes(lines: Lines, job: Facts, pointer: str) -> None:
    """Explain what a full save holds with everything in it once."""
    model, block = job.spec.model, job.sizing.model
    source = presets.models()[model.preset].source if model.preset is not None else None
    if is_plain(job.spec):
        lines.add(
            pointer,
            "checkpoint_bytes",
            {
                "parameters": block.parameters,
                "bytes_per_parameter": block.bytes_per_parameter,
                "reduction_factor": written_fraction(job.spec),
                "extra_bytes": model.extra_bytes,
            },
            f"A checkpoint holds {block.bytes_per_parameter:g} bytes per parameter; measure yours."
            + (f" Parameters: {source}." if source else ""),
        )
        return
    items = {f"{item.name}_bytes": item.bytes for item in block.items or ()} or {
        "state_bytes": block.state_bytes
    }
    inputs: dict[str, float | None] = {
        **items,
        "reduction_factor": model.reduction_factor,
        "compression_factor": model.compression_factor,
        "deduplication_factor": model.deduplication_factor,
        "extra_bytes": model.extra_bytes,
    }
    if model.extra_bytes_per_rank:
        inputs |= {"extra_bytes_per_rank": model.extra_bytes_per_rank, "gpus": job.spec.cluster.gpus}
    said = [
        f"A checkpoint holds what the recipe {model.recipe} names; measure yours."
        if model.recipe is not None
        else f"A checkpoint holds {block.bytes_per_parameter:g} bytes per parameter; measure yours."
    ]
    if block.adapter_parameters is not None:
        said.append(
            "The base model is not saved: a restart reads it from elsewhere, which is not counted here."
        )
    if model.differential_fraction is not None:
        said.append("This is a full save; bandwidths and times are for it.")
    if model.compression_factor is not None:
        said.append("Compressing takes no time of its own.")
    lines.add(pointer, "checkpoint_bytes_itemised", inputs, " ".join(said))


def _explain_differences(lines: Lines, job: Facts) -> None:
    """Explain what a save writes and a restore reads where they differ."""
    block, model = job.sizing.checkpoint, job.spec.model
    if block.restored_bytes is None:
        return
    state = {
        "state_bytes": job.sizing.model.state_bytes,
        "compression_factor": model.compression_factor or 1.0,
        "extra_bytes": extra_bytes(job.spec),
    }
    if block.difference_bytes is None:
        lines.add("#/checkpoint/restored_bytes", "whole_bytes", state)
        return
    lines.add(
        "#/checkpoint/difference_bytes",
        "difference_bytes",
        {**state, "differential_fraction": model.differential_fraction},
        "Every difference is as large.",
    )
    chain = {
        "checkpoint_bytes": block.bytes,
        "difference_bytes": block.difference_bytes,
        "full_every": job.saved.full_every,
    }
    lines.add("#/checkpoint/mean_bytes", "mean_save_bytes", chain)
    lines.add(
        "#/checkpoint/restored_bytes", "longest_chain_bytes", chain, "The failure comes before a full save."
    )
    lines.add(
        "#/checkpoint/restored_mean_bytes",
        "mean_chain_bytes",
        chain,
        "A failure comes after any save of a run alike.",
    )


def explain_read_bytes(lines: Lines, job: Facts) -> None:
    """Explain what all ranks together read at a restart."""
    block, amplification = job.sizing.checkpoint, {"read_amplification": job.read_amplification}
    if block.restored_bytes is None:
        lines.add("#/read/bytes", "read_bytes", {"checkpoint_bytes": block.bytes, **amplification})
        return
    lines.add(
        "#/read/bytes", "restored_read_bytes", {"restored_bytes": job.saved.restored_bytes, **amplification}
    )
    if job.saved.restored_mean_bytes is not None:
        lines.add(
            "#/read/mean_bytes",
            "restored_read_bytes",
            {"restored_bytes": job.saved.restored_mean_bytes, **amplification},
            "A failure comes after any save of a run alike.",
        )


def kept_as(job: Facts) -> tuple[str, dict[str, float]]:
    """Return how checkpoints rest on each other, as a formula's prefix, and the bytes that its formulas take."""
    saved = job.saved
    inputs: dict[str, float] = {"checkpoint_bytes": saved.full_bytes}
    if saved.difference_bytes is not None:
        return "chain_", {
            **inputs,
            "difference_bytes": saved.difference_bytes,
            "full_every": saved.full_every,
        }
    if saved.shares:
        return "shared_", {**inputs, "restored_bytes": saved.restored_bytes}
    return "", inputs


def explain_host_memory(lines: Lines, job: Facts) -> None:
    """Explain the DRAM that async staging takes."""
    block, cluster = job.sizing.host_memory, job.spec.cluster
    if block is None:
        return
    staged = job.saved.staged_bytes / job.saved.full_bytes
    if job.placement is not None:
        lines.add(
            "#/host_memory/bytes_per_node",
            "product",
            {"largest_node_bytes": job.node_share_bytes * staged, "staging_buffers": block.staging_buffers},
            rule_says(job.placement) + (UNREDUCED if _is_reduced_later(job) else ""),
        )
    else:
        lines.add(
            "#/host_memory/bytes_per_node",
            "staging_bytes",
            {
                "checkpoint_bytes": job.saved.staged_bytes,
                "nodes": job.sizing.checkpoint.nodes,
                "writers": job.sizing.checkpoint.writers,
                "skew": job.skew,
                "staging_buffers": block.staging_buffers,
            },
            (job.even or UPPER_BOUND) + (UNREDUCED if _is_reduced_later(job) else ""),
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
                "staging_bytes": job.node_share_bytes
                * (job.saved.staged_bytes / job.saved.full_bytes)
                * block.staging_buffers,
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
                "staging_bytes": job.staged_share_bytes * block.staging_buffers,
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
            {"writers": sizing.checkpoint.writers, "nodes": sizing.checkpoint.writing_nodes},
            "Writers are spread evenly over the nodes.",
        )
        lines.add(
            "#/trainer/threads_per_rank",
            "writer_threads",
            {
                "node_gb_per_second": rate if rate is not None else sizing.write.node_gb_per_second,
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
            kind, inputs = kept_as(job)
            inputs |= {"copies": copies, "protection_fraction": protection}
            if kind:
                lines.add(f"#/capacity/{tier}_bytes", f"kept_{kind}bytes", inputs)
                lines.add(
                    f"#/capacity/{tier}_peak_bytes",
                    f"kept_{kind}bytes",
                    {**inputs, "copies": copies + 1},
                    "With the one that is being written.",
                )
            else:
                lines.add(f"#/capacity/{tier}_bytes", "kept_bytes", inputs)
                lines.add(f"#/capacity/{tier}_peak_bytes", "peak_bytes", inputs)


def _is_reduced_later(job: Facts) -> bool:
    return job.saved.staged_bytes != job.saved.full_bytes
