"""How the figures of a parallel layout came about."""

from collections.abc import Iterable

from service.sizing import layout as layouts
from service.sizing.explain.lines import Facts, Lines
from service.sizing.layout import (
    LayoutRule,
    NodePart,
    PipelineSplit,
    Ranks,
    ReplicasWritten,
    Share,
    StateBytes,
)
from service.sizing.placement import (
    Group,
    Placement,
    classes,
    smaller_degrees,
    smaller_placement,
    weight_bytes_per_parameter,
)
from service.sizing.sizing import RankClass

SHARED_EVENLY = "Shards within a data-parallel group are equal."
BENCHMARK = "As MLPerf Storage lays a checkpoint out, which no framework does."
RANKS_READ = (
    "Every rank reads what it holds from storage; where some read and send it to the others, give "
    "restore.read_amplification as measured."
)
READS_ITS_OWN = "Each rank reads what it wrote, as the benchmark does."
RESHARDED = (
    "Tensor, pipeline and expert degrees stay, and the checkpoint can be resharded over data-parallel ranks."
)

COPIES = {
    ReplicasWritten.ONCE: "Of data-parallel ranks that hold something alike the first writes it, and of tensor-parallel ones each an "
    "equal part.",
    ReplicasWritten.SPREAD: "The ranks that hold something alike each write an equal part of it.",
    ReplicasWritten.ALL: "Every rank writes all that it holds.",
}
SPLITS = {
    PipelineSplit.REMAINDER_FIRST: "The layers are counted out evenly, one more to each of the first stages.",
    PipelineSplit.ENDS_AS_LAYERS: "The layers are counted out evenly, the embedding and the output head among them.",
}


def rule_says(placement: Placement) -> str:
    """Return on what the shards of a layout rest."""
    if placement.layout.rule is LayoutRule.MLPERF_STORAGE:
        return BENCHMARK
    return f"{COPIES[placement.layout.replicas_written]} {SHARED_EVENLY}"


def largest_shard_inputs(placement: Placement) -> dict[str, float | None]:
    """Return what makes up the shard of the writer with most to write."""
    at = placement.written.index(placement.largest_shard_bytes)
    return _written(placement.runs[at], placement.state)


def node_inputs(placement: Placement, parts: Iterable[NodePart], rank_bytes: list[float]) -> dict[str, float]:
    """Return what the ranks of a node have, by their stages."""
    found: dict[str, float] = {}
    for part in parts:
        run = placement.runs[part.run]
        name = _stages(run.first_stage, run.last_stage)
        found[name] = found.get(name, 0.0) + rank_bytes[part.run] * part.ranks
    return found


def class_bytes(placement: Placement, rank_bytes: list[float]) -> dict[str, float]:
    """Return what all ranks have, class by class."""
    return {
        f"class_{number}_bytes": sum(rank_bytes[run] * placement.runs[run].count for run in group.runs)
        for number, group in enumerate(classes(placement))
    }


def writing_ranks(placement: Placement) -> dict[str, float]:
    """Return the ranks that write, class by class."""
    return {
        f"layout.ranks.{number}.ranks": sum(placement.runs[run].count for run in group.runs)
        for number, group in enumerate(classes(placement))
        if placement.written[group.runs[0]] > 0.0
    }


def explain_placed_shards(lines: Lines, job: Facts, placement: Placement) -> None:
    """Explain the writers of a layout, and how unevenly they share a checkpoint."""
    says = rule_says(placement)
    mean = job.sizing.checkpoint.bytes / job.sizing.checkpoint.writers
    lines.add("#/checkpoint/largest_shard_bytes", "rank_bytes", largest_shard_inputs(placement), says)
    lines.add(
        "#/checkpoint/skew",
        "ratio",
        {"largest_shard_bytes": placement.largest_shard_bytes, "mean_shard_bytes": mean},
        says,
    )
    lines.add(
        "#/checkpoint/largest_node_bytes",
        "sum",
        node_inputs(placement, placement.node.parts, placement.written),
        f"Ranks fill nodes in their order. {says}",
    )
    lines.add("#/checkpoint/writers", "sum", writing_ranks(placement), says)


def explain_read_amplification(lines: Lines, job: Facts) -> None:
    """Explain what the ranks read of a checkpoint at a restart."""
    stated = job.spec.restore.read_amplification if job.spec.restore is not None else None
    pointer = "#/read/read_amplification"
    if stated is not None:
        lines.add(pointer, "given", {"restore.read_amplification": stated})
    elif job.placement is not None:
        lines.add(
            pointer, "same", {"layout.read_amplification": job.read_amplification}, _reading(job.placement)
        )
    else:
        lines.add(
            pointer,
            "given",
            {"read_amplification": job.read_amplification},
            "Each byte is read once: neither restore.read_amplification nor a parallel layout was given.",
        )


def explain_layout(lines: Lines, job: Facts) -> None:
    """Explain who holds, writes and reads what."""
    block, placement = job.sizing.layout, job.placement
    if block is None or placement is None:
        return
    at = "#/layout"
    spec, layout, stated = job.spec, placement.layout, job.spec.cluster.parallelism
    assert stated is not None  # noqa: S101 - a placement has it
    lines.add(f"{at}/tensor", "given", {"cluster.parallelism.tensor": layout.tensor})
    lines.add(f"{at}/pipeline", "given", {"cluster.parallelism.pipeline": layout.pipeline})
    if stated.data is not None:
        lines.add(f"{at}/data", "given", {"cluster.parallelism.data": layout.data})
    else:
        lines.add(
            f"{at}/data",
            "data_degree",
            {"gpus": spec.cluster.gpus, "tensor": layout.tensor, "pipeline": layout.pipeline},
        )
    explain_state(lines, job, placement)
    lines.add(
        f"{at}/copies_written",
        "ratio",
        {"checkpoint.bytes": placement.bytes, "layout.distinct_bytes": placement.distinct_bytes},
    )
    lines.add(
        f"{at}/read_amplification",
        "ratio",
        {"read_bytes": placement.read_bytes, "checkpoint.bytes": placement.bytes},
        _reading(placement),
    )
    lines.add(
        f"{at}/largest_node_read_bytes",
        "sum",
        node_inputs(placement, placement.read_node.parts, placement.read),
        _reading(placement),
    )
    split = None
    if stated.layers_per_stage is None and layout.pipeline > 1:
        split = SPLITS[stated.pipeline_split]
    for number, (group, listed) in enumerate(zip(classes(placement), block.ranks, strict=True)):
        _explain_class(lines, f"{at}/ranks/{number}", placement, group, listed, split)
    _explain_fewer(lines, at, job, placement)


def explain_state(lines: Lines, job: Facts, placement: Placement) -> None:
    """Explain what is saved of a parameter and of a rank."""
    at, model, stated = "#/layout", job.spec.model, job.spec.cluster.parallelism
    weights = weight_bytes_per_parameter(job.spec)
    lines.add(
        f"{at}/distinct_bytes",
        "checkpoint_bytes",
        {
            "parameters": job.spec.parameters,
            "bytes_per_parameter": model.bytes_per_parameter,
            "reduction_factor": model.reduction_factor,
            "extra_bytes": model.extra_bytes,
        },
    )
    is_stated = stated is not None and stated.weight_bytes_per_parameter is not None
    lines.add(
        f"{at}/weight_bytes_per_parameter",
        "product",
        {"weight_bytes_per_parameter": weights, "reduction_factor": model.reduction_factor},
        None
        if is_stated
        else f"Of {model.bytes_per_parameter:g} bytes per parameter {weights:g} are model weights; the rest is sharded "
        "as optimiser state.",
    )
    lines.add(
        f"{at}/optimiser_bytes_per_parameter",
        "optimiser_bytes_per_parameter",
        {
            "bytes_per_parameter": model.bytes_per_parameter,
            "weight_bytes_per_parameter": weights,
            "reduction_factor": model.reduction_factor,
        },
    )
    lines.add(
        f"{at}/rank_state_bytes",
        "ratio",
        {"model.extra_bytes": model.extra_bytes, "cluster.gpus": job.spec.cluster.gpus},
        "Every rank writes an equal part of what is saved beside the parameters.",
    )


def _explain_class(
    lines: Lines, at: str, placement: Placement, group: Group, listed: RankClass, split: str | None
) -> None:
    run, state = placement.runs[group.runs[0]], placement.state
    by_benchmark = placement.layout.rule is LayoutRule.MLPERF_STORAGE
    source = layouts.MLPERF_STORAGE if by_benchmark else layouts.MEGATRON
    assumption = rule_says(placement)
    lines.add(f"{at}/first_stage", "placed", {"first_stage": listed.first_stage}, source=source)
    lines.add(f"{at}/last_stage", "placed", {"last_stage": listed.last_stage}, source=source)
    lines.add(f"{at}/layers_per_stage", "placed", {"layers": listed.layers_per_stage}, split, source)
    lines.add(f"{at}/ranks", "placed", {"ranks": listed.ranks}, source=source)
    lines.add(f"{at}/bytes", "rank_bytes", _written(run, state), assumption)
    for kind, share, each in (
        ("weight", run.weights, state.weights),
        ("optimiser", run.optimiser, state.optimiser),
    ):
        inputs = {"bytes_per_parameter": each, **_share(share, "")}
        lines.add(f"{at}/{kind}_bytes", "share_bytes", inputs, assumption)
    lines.add(f"{at}/read_bytes", "rank_bytes", _read(run, state), _reading(placement))


def _explain_fewer(lines: Lines, at: str, job: Facts, placement: Placement) -> None:
    layout, per_node = placement.layout, job.spec.cluster.gpus_per_node
    degrees = {"tensor": layout.tensor, "pipeline": layout.pipeline}
    step = layouts.data_step(layout)
    for number, (data, gpus) in enumerate(smaller_degrees(layout, per_node).items()):
        entry = f"{at}/on_fewer_nodes/{number}"
        smaller = smaller_placement(placement, data, per_node)
        most_read = smaller.runs[smaller.read.index(max(smaller.read))]
        lines.add(f"{entry}/data", "data_on_fewer", {"gpus": gpus, **degrees, "data_step": step}, RESHARDED)
        lines.add(f"{entry}/gpus", "rank_count", {**degrees, "data": data})
        lines.add(f"{entry}/nodes", "node_count", {"gpus": smaller.layout.ranks, "gpus_per_node": per_node})
        lines.add(f"{entry}/read_bytes", "sum", class_bytes(smaller, smaller.read), RANKS_READ)
        lines.add(f"{entry}/largest_read_bytes", "rank_bytes", _read(most_read, smaller.state), RANKS_READ)
        lines.add(
            f"{entry}/largest_shard_bytes", "rank_bytes", largest_shard_inputs(smaller), rule_says(smaller)
        )


def _reading(placement: Placement) -> str:
    return READS_ITS_OWN if placement.layout.rule is LayoutRule.MLPERF_STORAGE else RANKS_READ


def _stages(first: int, last: int) -> str:
    return f"stage_{first}_bytes" if first == last else f"stages_{first}_to_{last}_bytes"


def _share(share: Share, prefix: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for kind in ("tensor", "whole", "expert"):
        parameters = getattr(share, f"{kind}_parameters")
        if parameters:
            found[f"{prefix}{kind}_parameters"] = parameters
            found[f"{prefix}{kind}_ways"] = getattr(share, f"{kind}_ways")
    return found


def _rank(weights: Share, optimiser: Share, state: StateBytes) -> dict[str, float | None]:
    return {
        "weight_bytes_per_parameter": state.weights,
        **_share(weights, "weight_"),
        "optimiser_bytes_per_parameter": state.optimiser,
        **_share(optimiser, "optimiser_"),
        "rank_state_bytes": state.rank or None,
    }


def _written(run: Ranks, state: StateBytes) -> dict[str, float | None]:
    return _rank(run.weights, run.optimiser, state)


def _read(run: Ranks, state: StateBytes) -> dict[str, float | None]:
    return _rank(run.read_weights, run.read_optimiser, state)
