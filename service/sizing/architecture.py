"""What a model is made of: its parts with their parameters, and along what a parallel layout may cut each.

A shape comes from `hugging_face.py` or a preset; `layout.py` places it on ranks.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

MATRICES = frozenset({"attention", "mlp", "router", "routed_experts", "shared_experts"})
"""The kinds of part that are matrices of the layers; embeddings, head, norms and biases are not."""


class Cut(StrEnum):
    """Along what a parallel layout divides a part."""

    TENSOR = "tensor"
    """Over the tensor-parallel ranks: matrices of attention and feed-forward, embeddings by vocabulary."""
    REPLICATED = "replicated"
    """Whole on every tensor-parallel rank: norms, routers, biases of row-parallel matrices."""
    EXPERT = "expert"
    """Over the expert-parallel ranks, and each expert over the expert-tensor-parallel ranks."""


class Part(NamedTuple):
    """Weights of one kind, in one layer or outside the layers."""

    name: str
    """`embedding`, `attention`, `mlp`, `router`, `routed_experts`, `shared_experts`, `norms`, `biases` (every vector
    that is no norm), `output_head`."""
    parameters: int
    """All stored parameters of it."""
    active_parameters: int
    """Those of them that work on one token: fewer for routed experts, none else."""
    cut: Cut


class Layers(NamedTuple):
    """A run of consecutive layers that are alike."""

    depth: int
    """How many."""
    parts: tuple[Part, ...]
    """Of each of them."""


class Architecture(NamedTuple):
    """A model's shape, with what a layout must divide evenly."""

    embedding: tuple[Part, ...]
    """What the first pipeline stage holds before the layers."""
    layers: tuple[Layers, ...]
    """In order of depth."""
    head: tuple[Part, ...]
    """What the last stage holds after the layers: the last norm, and the output matrix unless it is tied."""
    tied_embeddings: bool
    """Whether input and output share a matrix, which is then stored, and counted, once, in `embedding`."""
    hidden: int
    vocabulary: int
    attention_heads: int
    key_value_heads: int
    routed_experts: int
    """Per expert layer; 0 for a dense model."""
    notes: tuple[str, ...] = ()
    """What of the model is not counted, in words."""
    matrix_sides: Mapping[str, int] = MappingProxyType({})
    """Rows and columns of the layers' matrices, added up by kind of part: a low-rank adapter of rank r has r times
    as many parameters."""

    def each_layer(self) -> Iterator[tuple[Part, ...]]:
        """Yield the parts of each layer, in order of depth."""
        for run in self.layers:
            for _ in range(run.depth):
                yield run.parts

    @property
    def layer_count(self) -> int:
        """Layers, whatever they hold."""
        return sum(run.depth for run in self.layers)

    def totals(self) -> dict[str, Part]:
        """Return each kind of part summed over the model, in order of first appearance.

        A kind may hold weights that are cut and others that are not; what is said of its cut is that of the first.
        """
        found: dict[str, Part] = {}
        runs = ((1, self.embedding), *self.layers, (1, self.head))
        for depth, parts in runs:
            for part in parts:
                before = found.get(part.name)
                stored, active = part.parameters * depth, part.active_parameters * depth
                if before is not None:
                    stored, active = stored + before.parameters, active + before.active_parameters
                found[part.name] = Part(part.name, stored, active, part.cut)
        return found

    @property
    def parameters(self) -> int:
        """All stored parameters: these size storage."""
        return sum(part.parameters for part in self.totals().values())

    @property
    def active_parameters(self) -> int:
        """Parameters that work on one token: these size compute, never storage."""
        return sum(part.active_parameters for part in self.totals().values())
