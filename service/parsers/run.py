"""A benchmark run: a parser's record with its ids, times and tags.

The store keeps it, the judgement reads it, the wire shows it; there is no second form of it.
"""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from service.parsers.measurement import Record
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
    """

    id: UUID
    scenario_id: UUID
    scenario_revision: int
    received_at: datetime
    sha256: str
    document_bytes: int
    conditions: list[Condition]
    note: str | Absent = None
