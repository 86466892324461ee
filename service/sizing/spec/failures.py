"""How often the job is interrupted."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing import presets
from service.sizing.spec.fields import PresetName, refuse, together
from service.wire import WHOLE, Absent, Incoming

MtbfHours = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1e10)]
"""A mean time between failures. [h]"""


class FailingComponent(Incoming):
    """Parts of one kind, any one of which stops the job when it fails."""

    component: Annotated[
        str, Field(strict=True, min_length=1, max_length=32, pattern=r"^[a-z0-9][a-z0-9_-]*$")
    ]
    """What it is: `gpu`, `hbm`, `nic`, `switch`, `host`, `psu`, or a word of your own."""
    per_node: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-4, le=1e5)]
    """How many a node has; a part that nodes share counts as a fraction: a switch over 16 nodes is 0.0625."""
    mtbf_hours: MtbfHours
    """Mean time between failures of one of them. [h]"""


_OBSERVED = ("observed_failures", "observed_hours", "observed_gpus")
_WAYS = (
    ("preset",),
    (*_OBSERVED, "observed_planned"),
    ("mtbf_hours", "mtbf_gpus"),
    ("components",),
    ("per_1000_node_days",),
)
_WAYS_IN_WORDS = (
    "preset; the record observed_failures, observed_hours and observed_gpus; mtbf_hours; components; and "
    "per_1000_node_days"
)


class FailuresSpec(Incoming):
    """How often the job is interrupted: a `preset`, an observed record, a mean time, components, or a rate by node."""

    preset: PresetName | Absent = None
    """A record of `GET /v1/presets/failure-records`."""
    observed_failures: Annotated[int, Field(strict=True, ge=0, le=10**9), WHOLE] | Absent = None
    """Unexpected interruptions that were counted; none at all gives a bound of the time between them."""
    observed_planned: Annotated[int, Field(strict=True, ge=0, le=10**9), WHOLE] | Absent = None
    """Planned interruptions in the same time. They are no failures, and priced apart."""
    observed_hours: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e8)] | Absent = None
    """How long they were counted. [h]"""
    observed_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """On how many GPUs."""
    mtbf_hours: MtbfHours | Absent = None
    """Mean time between failures, given directly. [h]"""
    mtbf_gpus: Annotated[int, Field(strict=True, ge=1, le=10**8), WHOLE] | Absent = None
    """The GPU count for which `mtbf_hours` holds (1: per GPU, 8: per node of 8); without it this cluster's."""
    components: Annotated[list[FailingComponent], Field(min_length=1, max_length=64)] | Absent = None
    """What a node is made of; the rates are added up, and over the nodes of this cluster."""
    per_1000_node_days: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-9, le=1e9)] | Absent
    ) = None
    """Interruptions of the job in a day for every 1000 nodes, as nodes are in this cluster. [1/(1000 node days)]"""
    early_life_factor: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1, le=1000)] | Absent = (
        None
    )
    """How many times as often a cluster fails in its first weeks; without it the cluster is taken to have settled."""
    counts: (
        Annotated[str, Field(strict=True, min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
        | Absent
    ) = None
    """What is counted as a failure, in words; kept beside every figure that follows. A preset says its own."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterable[Fault]:
        given = [[name for name in way if getattr(self, name) is not None] for way in _WAYS]
        known = presets.failure_records()
        if not any(given):
            yield Fault("", "missing", f"Give one of {_WAYS_IN_WORDS}.")
        if sum(map(bool, given)) > 1:
            for names in filter(None, given):
                yield Fault(f"/{names[0]}", "contradiction", f"Give one of {_WAYS_IN_WORDS}; not several.")
        yield from together(self, "An observed record", _OBSERVED)
        if self.observed_planned is not None and not given[1][:-1]:
            yield Fault(
                "/observed_failures",
                "missing",
                "observed_planned belongs to an observed record: give observed_failures, observed_hours and "
                "observed_gpus.",
            )
        if self.mtbf_gpus is not None and self.mtbf_hours is None:
            yield Fault(
                "/mtbf_hours",
                "missing",
                "mtbf_gpus says for how many GPUs mtbf_hours holds: give mtbf_hours.",
            )
        if self.components is not None:
            yield from _named_twice(self.components)
        if self.preset is not None and self.counts is not None:
            yield Fault(
                "/counts",
                "contradiction",
                "A preset says what it counts: leave counts out, or give the record itself.",
            )
        if self.preset is not None and self.preset not in known:
            yield Fault("/preset", "unknown_preset", f"The failure records are {', '.join(known)}.")


def _named_twice(components: list[FailingComponent]) -> Iterable[Fault]:
    seen: set[str] = set()
    for at, part in enumerate(components):
        if part.component in seen:
            yield Fault(
                f"/components/{at}/component",
                "duplicate",
                f"{part.component} is there already, and its failures would count twice: give each kind once, or "
                "name the second one apart.",
            )
        seen.add(part.component)
