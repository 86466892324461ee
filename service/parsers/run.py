"""A benchmark run: a parser's record with its ids, times and tags.

The store keeps it, the judgement reads it, the wire shows it; there is no second form of it.
"""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from service.parsers.measurement import Doubt, DoubtCode, Measurement, Operation, Record
from service.wire import Absent


class Condition(StrEnum):
    """The state of the storage while the run took place, as the poster says it."""

    IDLE = "idle"
    UNDER_READ_LOAD = "under_read_load"
    DEGRADED = "degraded"


class BenchmarkRun(Record):
    """One upload: what its parser read, and what is known about it.

    Attributes:
        id: The run's own id.
        scenario_id: The scenario that it was posted to.
        scenario_revision: What that scenario said then.
        received_at: When the upload was stored.
        ran_at: When the run took place: as the poster said, else the file's own time, else absent.
        sha256: Digest of the bytes as they were received, in hexadecimal.
        document_bytes: Size of the original.
        storage_label: Which storage was measured: as the poster said, else as the file says.
        conditions: The state of that storage, as the poster said.
        note: The poster's own words.
        document_removed_at: When the original was removed, for its age; absent as long as it is kept.
    """

    id: UUID
    scenario_id: UUID
    scenario_revision: int
    received_at: datetime
    sha256: str
    document_bytes: int
    conditions: list[Condition]
    note: str | Absent = None
    document_removed_at: datetime | Absent = None

    @property
    def version(self) -> str:
        """What changes whenever the run does: the sha256, and whether the original is there."""
        return self.sha256 if self.document_removed_at is None else f"{self.sha256}-without-document"

    @property
    def took_place_at(self) -> datetime:
        """When it took place, as far as is known: at the latest when it was received."""
        return self.ran_at if self.ran_at is not None else self.received_at


class StatedNodesDiffer(ValueError):
    """The node count that the poster states cannot be that of the file."""


def with_stated_nodes(record: Record, *, nodes: int) -> Record:
    """Return the record with the poster's node count wherever the file has none, marked as stated.

    Args:
        record: What the parser read.
        nodes: How many nodes took part, as the poster says.

    Raises:
        StatedNodesDiffer: The file says another count, or has fewer ranks than that.
    """
    known = [
        part.nodes for part in (record.operations or record.measurements or ()) if part.nodes is not None
    ]
    for found in known:
        if found != nodes:
            raise StatedNodesDiffer(
                f"The file says {found} nodes, not {nodes}; leave nodes out, or correct it."
            )
    if record.measurements is None:
        return record
    measurements, doubts = [], list(record.doubts)
    for at, measurement in enumerate(record.measurements):
        if measurement.nodes is not None:
            measurements.append(measurement)
            continue
        if measurement.ranks is not None and measurement.ranks < nodes:
            raise StatedNodesDiffer(f"The file has {measurement.ranks} ranks, too few for {nodes} nodes.")
        measurements.append(measurement.model_copy(update={"nodes": nodes, "nodes_stated": True}))
        if nodes == 1 and measurement.operation is Operation.READ and not _is_doubted(doubts, at):
            doubts.append(
                Doubt(
                    code=DoubtCode.CACHED_READ,
                    measurement=at,
                    message="The read ran on one node, as stated, which may hold in memory what it wrote; read "
                    "from other nodes, or more data than three times the memory.",
                )
            )
    stated = {at for at, measurement in enumerate(measurements) if measurement.nodes_stated}
    return record.model_copy(
        update={
            "measurements": measurements,
            "doubts": _without_unknown_topology(doubts, stated, measurements),
        }
    )


def _is_doubted(doubts: list[Doubt], at: int) -> bool:
    return any(doubt.code is DoubtCode.CACHED_READ and doubt.measurement in (None, at) for doubt in doubts)


def _without_unknown_topology(
    doubts: list[Doubt], stated: set[int], measurements: list[Measurement]
) -> list[Doubt]:
    """Return the doubts less those of an unknown node count that is stated now."""
    whole_file = len(stated) == len(measurements)
    return [
        doubt
        for doubt in doubts
        if doubt.code is not DoubtCode.UNKNOWN_TOPOLOGY
        or (not whole_file if doubt.measurement is None else doubt.measurement not in stated)
    ]
