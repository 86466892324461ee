"""How the model's figures came about: its parts, and the items of what is saved of it."""

from service.sizing import presets
from service.sizing.architecture import MATRICES, Architecture
from service.sizing.explain.lines import Facts, Lines
from service.sizing.presets import StateScope
from service.sizing.sizing import ModelPart
from service.sizing.spec import DEFAULT_BYTES_PER_PARAMETER, LoraTarget
from service.sizing.state import part_bytes_per_parameter

EMBEDDINGS_ARE_ACTIVE = "Embeddings are counted as active; some model cards leave the input's out."


def explain_model(lines: Lines, job: Facts) -> None:
    """Explain what the model is made of, and what of it is saved."""
    model, block = job.spec.model, job.sizing.model
    source = presets.models()[model.preset].source if model.preset is not None else None
    shape = model.architecture
    if shape is None:
        lines.add("#/model/parameters", "given", {"parameters": block.parameters})
    else:
        notes = ". ".join(shape.notes)
        parts = block.parts or []
        lines.add(
            "#/model/parameters",
            "sum",
            {f"{part.part}_parameters": part.parameters for part in parts},
            f"{notes}." if notes else None,
            source,
        )
        lines.add(
            "#/model/active_parameters",
            "sum",
            {f"{part.part}_active_parameters": part.active_parameters for part in parts},
            EMBEDDINGS_ARE_ACTIVE,
            source,
        )
    _explain_adapter(lines, job, shape)
    _explain_state(lines, job)
    if shape is not None:
        _explain_parts(lines, job, shape)


def _explain_adapter(lines: Lines, job: Facts, shape: Architecture | None) -> None:
    model, adapters = job.spec.model, job.sizing.model.adapter_parameters
    if adapters is None:
        return
    if model.lora_rank is None or shape is None:
        lines.add("#/model/adapter_parameters", "given", {"adapter_parameters": adapters})
        return
    targets = model.lora_targets or [each for each in LoraTarget if each in shape.matrix_sides]
    lines.add(
        "#/model/adapter_parameters",
        "adapter_parameters",
        {
            "lora_rank": model.lora_rank,
            "matrix_sides": sum(shape.matrix_sides[each] for each in set(targets)),
        },
        "Every matrix of " + ", ".join(targets) + " has an adapter of its own, each expert's too.",
    )


def _explain_state(lines: Lines, job: Facts) -> None:
    model, block = job.spec.model, job.sizing.model
    if block.items is None:
        lines.add(
            "#/model/bytes_per_parameter",
            "given",
            {"bytes_per_parameter": block.bytes_per_parameter},
            f"Adam in mixed precision with the bf16 weights, {DEFAULT_BYTES_PER_PARAMETER:g} bytes, the default."
            if model.bytes_per_parameter is None
            else None,
        )
        lines.add(
            "#/model/state_bytes",
            "state_item_bytes",
            {"parameters": block.parameters, "bytes_per_parameter": block.bytes_per_parameter},
        )
        return
    recipe = presets.recipes()[str(model.recipe)]
    lines.add(
        "#/model/bytes_per_parameter",
        "ratio",
        {
            "state_bytes": block.state_bytes,
            "parameters": block.adapter_parameters or block.parameters,
        },
        source=recipe.source,
    )
    lines.add(
        "#/model/state_bytes",
        "sum",
        {f"{item.name}_bytes": item.bytes for item in block.items},
        source=recipe.source,
    )
    for at, item in enumerate(block.items):
        pointer = f"#/model/items/{at}"
        if item.of is StateScope.ALL:
            lines.add(f"{pointer}/parameters", "same", {"parameters": item.parameters})
        elif item.of is StateScope.ADAPTER:
            lines.add(f"{pointer}/parameters", "same", {"adapter_parameters": item.parameters})
        else:
            lines.add(f"{pointer}/parameters", "sum", _of(block.parts or [], item.of))
        named = at < len(recipe.items)
        lines.add(
            f"{pointer}/bytes_per_parameter",
            "given",
            {"bytes_per_parameter": item.bytes_per_parameter},
            None if named else "The moving average is kept in fp32.",
            recipe.source if named else "The spec: ema_copy",
        )
        lines.add(
            f"{pointer}/bytes",
            "state_item_bytes",
            {"parameters": item.parameters, "bytes_per_parameter": item.bytes_per_parameter},
        )


def _of(parts: list[ModelPart], scope: StateScope) -> dict[str, float]:
    wanted = scope is StateScope.MATRICES
    return {
        f"{part.part}_parameters": part.parameters for part in parts if (part.part in MATRICES) is wanted
    } or {"parameters": 0}


def _explain_parts(lines: Lines, job: Facts, shape: Architecture) -> None:
    block = job.sizing.model
    items = (
        [(item.of, item.bytes_per_parameter) for item in block.items]
        if block.items is not None
        else [(StateScope.ALL, block.bytes_per_parameter)]
    )
    for at, part in enumerate(block.parts or []):
        pointer = f"#/model/parts/{at}"
        lines.add(f"{pointer}/parameters", "counted", _layer_by_layer(shape, part.part, active=False))
        lines.add(f"{pointer}/active_parameters", "counted", _layer_by_layer(shape, part.part, active=True))
        if part.bytes is not None:
            lines.add(
                f"{pointer}/bytes",
                "state_item_bytes",
                {
                    "parameters": part.parameters,
                    "bytes_per_parameter": part_bytes_per_parameter(part.part, items),
                },
            )


def _layer_by_layer(shape: Architecture, kind: str, *, active: bool) -> dict[str, float]:
    """Return how many layers hold how much of a kind of part, and what lies outside them."""
    depths: dict[int, int] = {}
    for run in shape.layers:
        held = sum(
            part.active_parameters if active else part.parameters for part in run.parts if part.name == kind
        )
        if held:
            depths[held] = depths.get(held, 0) + run.depth
    inputs: dict[str, float] = {}
    for at, (held, depth) in enumerate(depths.items(), start=1):
        inputs |= {f"layers_{at}": depth, f"parameters_per_layer_{at}": held}
    outside = sum(part.parameters for part in (*shape.embedding, *shape.head) if part.name == kind)
    if outside or not inputs:
        inputs["parameters_outside_layers"] = outside
    return inputs
