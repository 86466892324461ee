"""How long a save and a load take on the spec's storage system, and which of its figures sets that."""

from service.sizing import bandwidth
from service.sizing.operation import Job

LIMITING_FIELD = {
    bandwidth.Limit.AGGREGATE_BANDWIDTH: "#/storage/write_gb_per_second",
    bandwidth.Limit.NODE_BANDWIDTH: "#/storage/node_gb_per_second",
    bandwidth.Limit.FILE_CREATES: "#/storage/file_creates_per_second",
}
"""The field to blame for a save's time."""


def save_transfer(job: Job) -> bandwidth.Transfer:
    """Return how long a save takes on the spec's storage system, which has a limit that times one."""
    storage = job.spec.storage_system
    assert storage is not None  # noqa: S101 - callers ask the spec first
    return bandwidth.transfer_time(
        total_bytes=job.checkpoint_bytes,
        total_gb_per_second=storage.write_gb_per_second,
        node_bytes=job.node_share_bytes,
        node_gb_per_second=storage.node_gb_per_second,
        files=job.files,
        file_creates_per_second=storage.file_creates_per_second,
    )


def load_transfer(job: Job) -> bandwidth.Transfer:
    """Return how long a restart's load takes on it, likewise."""
    storage = job.spec.storage_system
    assert storage is not None  # noqa: S101 - callers ask the spec first
    restored = job.saved.restored_bytes
    return bandwidth.transfer_time(
        total_bytes=bandwidth.read_bytes(
            checkpoint_bytes=restored, read_amplification=job.read_amplification
        ),
        total_gb_per_second=storage.read_gb_per_second,
        node_bytes=job.node_read_bytes * (restored / job.checkpoint_bytes),
        node_gb_per_second=storage.node_gb_per_second,
    )
