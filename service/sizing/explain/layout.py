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
)
from service.sizing.placement import (
    Group,
    Placement,
    classes,
    held_inputs,
    smaller_degrees,
    smaller_placement,
    weight_bytes_per_parameter,
)
from service.sizing.sizing import RankClass
from service.sizing.spec import ScenarioSpec

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
    ReplicasWritten.ONCE: "Of data-parallel ranks that hold something alike the first writes it, and of tensor-"
    "parallel ones each an equal part.",
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


def weights_say(spec: ScenarioSpec) -> str:
    """Return what of the saved bytes is taken for model weights."""
    if spec.model.recipe is not None:
        return f"Weights are what the recipe {spec.model.recipe} calls so; the rest is sharded as optimiser state."
    weights = weight_bytes_per_parameter(spec)
    if weights == 0.0:
        return "No weights are saved beside the optimiser's master copy."
    return f"Of each parameter {weights:g} bytes are model weights; the rest is sharded as optimiser state."


def largest_shard_inputs(placement: Placement) -> dict[str, float | None]:
    """Return what makes up the shard of the writer with most to write."""
    at = placement.written.index(placement.largest_shard_bytes)
    return _written(placement.runs[at])


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
        f"class_{number}_bytes": sum(rank_bytes[run] * placement.runs[run].ranks for run in group.runs)
        for number, group in enumerate(classes(placement))
    }


def writing_ranks(placement: Placement) -> dict[str, float]:
    """Return the ranks that write, class by class."""
    return {
        f"layout.ranks.{number}.ranks": sum(placement.runs[run].ranks for run in group.runs)
        for number, group in enumerate(classes(placement))
        if placement.written[group.runs[0]] > 0.0
    }


def explain_placed_shards(lines: Lines, job: Facts, placement: Placement) -> None:
    """Explain the writers of a layout, and how unevenly they share a checkpoint."""
    says = rule_says(placement)
    lines.add("#/checkpoint/largest_shard_bytes", "rank_bytes", largest_shard_inputs(placement), says)
    lines.add(
        "#/checkpoint/skew",
        "ratio",
        {
            "largest_shard_bytes": placement.largest_shard_bytes,
            "mean_shard_bytes": placement.mean_shard_bytes,
        },
        says,
    )
    lines.add(
        "#/checkpoint/largest_node_bytes",
        "sum",
        node_inputs(placement, placement.node.parts, placement.written),
        f"Ranks fill nodes in their order. {says}",
    )
    lines.add("#/checkpoint/writers", "sum", writing_ranks(placement), says)
    lines.add(
        "#/checkpoint/writing_nodes",
        "placed",
        {"nodes": placement.writing_nodes},
        f"Ranks fill nodes in their order. {says}",
    )


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
    weights = weights_say(spec)
    for number, (group, listed) in enumerate(zip(classes(placement), block.ranks, strict=True)):
        _explain_class(lines, f"{at}/ranks/{number}", placement, group, listed, split, weights)
    _explain_fewer(lines, at, job, placement)


def _explain_class(
    lines: Lines,
    at: str,
    placement: Placement,
    group: Group,
    listed: RankClass,
    split: str | None,
    weights: str,
) -> None:
    run = placement.runs[group.runs[0]]
    by_benchmark = placement.layout.rule is LayoutRule.MLPERF_STORAGE
    source = layouts.MLPERF_STORAGE if by_benchmark else layouts.MEGATRON
    says = rule_says(placement)
    lines.add(f"{at}/first_stage", "placed", {"first_stage": listed.first_stage}, source=source)
    lines.add(f"{at}/last_stage", "placed", {"last_stage": listed.last_stage}, source=source)
    lines.add(f"{at}/layers_per_stage", "placed", {"layers": listed.layers_per_stage}, split, source)
    lines.add(f"{at}/parameters", "held_parameters", held_inputs(placement, group), source=source)
    lines.add(f"{at}/ranks", "placed", {"ranks": listed.ranks}, source=source)
    lines.add(f"{at}/bytes", "rank_bytes", _written(run), says)
    lines.add(f"{at}/weight_bytes", "share_bytes", _share(run.weights, ""), f"{says} {weights}")
    lines.add(f"{at}/optimiser_bytes", "share_bytes", _share(run.optimiser, ""), f"{says} {weights}")
    lines.add(f"{at}/read_bytes", "rank_bytes", _read(run), _reading(placement))


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
        lines.add(f"{entry}/largest_read_bytes", "rank_bytes", _read(most_read), RANKS_READ)
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
        held = getattr(share, f"{kind}_bytes")
        if held:
            found[f"{prefix}{kind}_bytes"] = held
            found[f"{prefix}{kind}_ways"] = getattr(share, f"{kind}_ways")
    return found or {f"{prefix}tensor_bytes": 0.0}


def _written(run: Ranks) -> dict[str, float | None]:
    return {
        **_share(run.weights, "weight_"),
        **_share(run.optimiser, "optimiser_"),
        "own_bytes": run.own_bytes or None,
    }


def _read(run: Ranks) -> dict[str, float | None]:
    return {
        **_share(run.read_weights, "weight_"),
        **_share(run.read_optimiser, "optimiser_"),
        "own_bytes": run.own_bytes or None,
    }
