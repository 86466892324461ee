"""The tiers that hold checkpoints nearer than shared storage, and what failures leave of them."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from service.errors import Fault
from service.sizing.spec.fields import Count, PositiveSeconds, Seconds, refuse, together
from service.wire import WHOLE, Absent, Incoming

DEFAULT_PEER_REPLICAS = 2
"""GEMINI's default: the node's own copy, and one on a peer."""
DEFAULT_VERSIONS = 2
"""The complete checkpoint, and the one that is being written."""
WHOLE_FRACTION_TOLERANCE = 1e-9

GbPerSecond = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-6, le=1e9)]


class TierKind(StrEnum):
    """Where a copy lies, nearest first."""

    HOST_MEMORY = "host_memory"
    PEER_MEMORY = "peer_memory"
    NODE_LOCAL_NVME = "node_local_nvme"
    SHARED_STORAGE = "shared_storage"


class FailureKind(StrEnum):
    """What a failure leaves of the nodes that it strikes."""

    PROCESS = "process"
    """The training processes are gone; every node keeps its memory and its drives."""
    NODE_REBOOT = "node_reboot"
    """The nodes lose their memory and keep their drives."""
    NODE_LOSS = "node_loss"
    """The nodes are gone, with their memory and their drives."""


class TierSpec(Incoming):
    """A tier nearer than shared storage. The scenario's own `save` and `interval` are the tier `shared_storage`."""

    kind: TierKind
    """`host_memory` survives failures of the processes; `peer_memory` also those of nodes, as its copies allow;
    `node_local_nvme` reboots, and lost nodes only with replicas."""
    interval_seconds: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e9)]
    """How often it is saved to, start to start. It is fitted to save with every save of the next tier. [s]"""
    blocking_seconds: Seconds
    """How long training stops for a save to this tier, beyond the stalls of the other tiers. [s]"""
    durable_lag_seconds: PositiveSeconds | Absent = None
    """From training going on until this tier holds the save. Not for `host_memory`, which holds it at once. [s]"""
    node_write_gb_per_second: GbPerSecond | Absent = None
    """In its place: what a node writes to its drives, or sends to its peers. [10^9 B/s]"""
    restore_seconds: Seconds | Absent = None
    """Until every rank has its state from this tier. [s]"""
    node_read_gb_per_second: GbPerSecond | Absent = None
    """In its place: what a node reads from this tier. [10^9 B/s]"""
    read_gb_per_second: GbPerSecond | Absent = None
    """In its place: what all nodes together read from this tier. [10^9 B/s]"""
    replicas: Annotated[int, Field(strict=True, ge=1, le=16), WHOLE] | Absent = None
    """Nodes that hold each part, its own included; without it 2 for `peer_memory` and 1 for `node_local_nvme`."""
    versions: Annotated[int, Field(strict=True, ge=1, le=16), WHOLE] = DEFAULT_VERSIONS
    """Checkpoints held at once: the complete one, and the one that is being written."""
    drives_per_node: Annotated[int, Field(strict=True, ge=1, le=256), WHOLE] | Absent = None
    """Drives of `node_local_nvme` that a node spreads its copies over."""
    drive_bytes: Annotated[int, Field(strict=True, ge=1, le=10**15), WHOLE] | Absent = None
    """Capacity of one of them. [B]"""
    rated_drive_writes_per_day: (
        Annotated[float, Field(strict=True, allow_inf_nan=False, ge=1e-3, le=1e4)] | Absent
    ) = None
    """How often a day the drive may be written over, as its maker rates it. [1/day]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._contradictions())
        return self

    @property
    def copies(self) -> int:
        """Nodes that hold each part, its own included."""
        if self.replicas is not None:
            return self.replicas
        return DEFAULT_PEER_REPLICAS if self.kind is TierKind.PEER_MEMORY else 1

    def _contradictions(self) -> Iterable[Fault]:
        if self.kind is TierKind.SHARED_STORAGE:
            yield Fault(
                "/kind",
                "contradiction",
                "The scenario's save and interval are the tier shared_storage: list the nearer tiers alone.",
            )
            return
        if self.blocking_seconds >= self.interval_seconds:
            yield Fault(
                "/blocking_seconds",
                "too_large",
                f"A save that blocks as long as the interval leaves no time to train: block for less than "
                f"{self.interval_seconds:g} s, or save less often.",
            )
        if self.durable_lag_seconds is not None and self.durable_lag_seconds > self.interval_seconds:
            yield Fault(
                "/durable_lag_seconds",
                "too_large",
                f"A save has to be durable before the next begins, within {self.interval_seconds:g} s: save less "
                "often, or write faster.",
            )
        yield from self._ways()
        yield from self._foreign_fields()
        drives = ("drives_per_node", "drive_bytes")
        yield from together(self, "The drives of a node", drives)
        if self.rated_drive_writes_per_day is not None and self.drive_bytes is None:
            yield Fault(
                "/drive_bytes",
                "missing",
                "A rating counts writes of the whole drive: give drive_bytes and drives_per_node.",
            )

    def _ways(self) -> Iterable[Fault]:
        """Yield faults of what can be said in several ways, and has to be said in one."""
        ways: tuple[tuple[str, ...], ...] = (
            ("restore_seconds", "node_read_gb_per_second", "read_gb_per_second"),
            ("durable_lag_seconds", "node_write_gb_per_second"),
        )
        for names in ways[:1] if self.kind is TierKind.HOST_MEMORY else ways:
            given = [name for name in names if getattr(self, name) is not None]
            if not given:
                yield Fault(
                    f"/{names[0]}", "missing", f"Give one of {', '.join(names)}: unknown is not zero."
                )
            for name in given[1:]:
                yield Fault(f"/{name}", "contradiction", f"Give {given[0]} or {name}, not both.")

    def _foreign_fields(self) -> Iterable[Fault]:
        """Yield faults of fields that belong to tiers of another kind."""
        if self.kind is TierKind.HOST_MEMORY:
            for name in ("durable_lag_seconds", "node_write_gb_per_second"):
                if getattr(self, name) is not None:
                    yield Fault(
                        f"/{name}",
                        "contradiction",
                        "Host memory holds a save when training goes on: leave it out, and count the copy as blocking.",
                    )
            if self.replicas is not None:
                yield Fault(
                    "/replicas",
                    "contradiction",
                    "Copies in the memory of other nodes are the tier peer_memory.",
                )
        if self.kind is TierKind.PEER_MEMORY and self.replicas == 1:
            yield Fault(
                "/replicas",
                "too_small",
                "A copy on the node alone is the tier host_memory: peer_memory needs 2 or more.",
            )
        if self.kind is not TierKind.NODE_LOCAL_NVME:
            for name in ("drives_per_node", "drive_bytes", "rated_drive_writes_per_day"):
                if getattr(self, name) is not None:
                    yield Fault(
                        f"/{name}", "contradiction", f"{name} belongs to node_local_nvme; leave it out."
                    )


class FailureShareSpec(Incoming):
    """A kind of failure, and how many of all failures are of it."""

    kind: FailureKind
    """`process`: nodes keep their memory; `node_reboot`: only their drives; `node_loss`: nothing."""
    nodes: Count | Absent = None
    """Nodes that are struck at once, any as likely as any others; 1 without it. Not for `process`."""
    fraction: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)]
    """Failures of this kind over all failures; those of the list add up to 1."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind is FailureKind.PROCESS and self.nodes is not None:
            refuse(
                [
                    Fault(
                        "/nodes",
                        "contradiction",
                        "A failure of the processes costs no node: leave nodes out.",
                    )
                ]
            )
        return self

    @property
    def struck_nodes(self) -> int | None:
        """Nodes that are struck at once; None where the failure is of processes alone."""
        return None if self.kind is FailureKind.PROCESS else self.nodes or 1


Tiers = Annotated[list[TierSpec], Field(min_length=1, max_length=3)]
FailureShares = Annotated[list[FailureShareSpec], Field(min_length=1, max_length=32)]


def tier_contradictions(
    *,
    tiers: Sequence[TierSpec] | None,
    failure_mix: Sequence[FailureShareSpec] | None,
    nodes: int,
    interval_seconds: float | None,
) -> Iterable[Fault]:
    """Yield what is wrong with the tiers together, on so many nodes, beside a fixed interval of shared storage."""
    if failure_mix is not None:
        if tiers is None:
            yield Fault(
                "/failure_mix", "contradiction", "Only tiers ask what failures leave: give tiers too."
            )
        yield from _mix_contradictions(failure_mix, nodes)
    kinds = list(TierKind)
    for at, (nearer, tier) in enumerate(pairwise(tiers or ()), start=1):
        if kinds.index(tier.kind) <= kinds.index(nearer.kind):
            yield Fault(
                f"/tiers/{at}/kind",
                "contradiction",
                f"{tier.kind} stands after {nearer.kind}: list each kind once, nearest first "
                f"({', '.join(kinds[:-1])}).",
            )
        elif tier.interval_seconds < nearer.interval_seconds:
            yield Fault(
                f"/tiers/{at}/interval_seconds",
                "too_small",
                f"A farther tier saves no more often than the one before it: at least {nearer.interval_seconds:g} s.",
            )
    for at, tier in enumerate(tiers or ()):
        if tier.copies > nodes:
            yield Fault(
                f"/tiers/{at}/replicas",
                "too_large",
                f"Each copy lies on a node of its own, and there are {nodes}.",
            )
        if interval_seconds is not None and tier.interval_seconds > interval_seconds:
            yield Fault(
                f"/tiers/{at}/interval_seconds",
                "too_large",
                f"A tier saves no less often than shared storage, every {interval_seconds:g} s.",
            )


def _mix_contradictions(failure_mix: Sequence[FailureShareSpec], nodes: int) -> Iterable[Fault]:
    total = sum(share.fraction for share in failure_mix)
    if abs(total - 1.0) > WHOLE_FRACTION_TOLERANCE:
        yield Fault(
            "/failure_mix", "contradiction", f"The fractions add up to {total:.10g}; they have to make 1."
        )
    seen = set()
    for at, share in enumerate(failure_mix):
        if (share.kind, share.struck_nodes) in seen:
            yield Fault(
                f"/failure_mix/{at}/kind",
                "contradiction",
                "Give each kind and number of nodes once: add them up.",
            )
        seen.add((share.kind, share.struck_nodes))
        if share.nodes is not None and share.nodes > nodes:
            yield Fault(f"/failure_mix/{at}/nodes", "too_large", f"There are {nodes} nodes.")
