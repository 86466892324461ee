"""The lines of an explanation as they grow, and what many of them rest on."""

from collections.abc import Mapping
from typing import NamedTuple

from service.sizing.formulas import REGISTER
from service.sizing.placement import Placement
from service.sizing.sizing import Explanation, ExplanationInput, Sizing
from service.sizing.spec import ScenarioSpec
from service.sizing.state import Saved
from service.units import unit_of

EVEN = "All shards are equal: neither skew nor largest_shard_bytes was given, nor a parallel layout."


RATE_SCALES = "Failures grow with the GPU count, and strike at a constant rate."


RATES_ADD_UP = "Any one component stops the whole job, independently of the others, and at a constant rate."


LAST_NODE_FULL = "Every node holds the same share."


EXPONENTIAL = "Failures come at a constant rate, also during a restart."


CREATES_OVERLAP = "Files are created while data is written, not before."


class Facts(NamedTuple):
    """Numbers that many lines use."""

    spec: ScenarioSpec
    sizing: Sizing
    skew: float
    even: str | None
    node_share_bytes: float
    read_amplification: float
    node_read_bytes: float
    placement: Placement | None
    headroom: float
    buffers: int
    is_async: bool
    mtbf_seconds: float
    saved: Saved

    @property
    def whole_share_bytes(self) -> float:
        """What a whole copy takes of the node that holds most. [B]"""
        return self.node_share_bytes * (self.saved.whole_bytes / self.saved.full_bytes)

    @property
    def staged_share_bytes(self) -> float:
        """What one save stages on the node that holds most. [B]"""
        return self.node_share_bytes * (self.saved.staged_bytes / self.saved.full_bytes)


class Lines(list[Explanation]):
    """The explanation as it grows."""

    def add(
        self,
        pointer: str,
        formula: str,
        inputs: Mapping[str, float | None],
        assumption: str | None = None,
        source: str | None = None,
    ) -> None:
        """Add the line of one figure; an input that is None does not go into it."""
        entry = REGISTER[formula]
        self.append(
            Explanation(
                pointer=pointer,
                formula=formula,
                expression=entry.expression,
                inputs=[
                    ExplanationInput(name=name, value=value, unit=unit_of(name))
                    for name, value in inputs.items()
                    if value is not None
                ],
                assumption=assumption,
                source=source or entry.source,
            )
        )
