"""The original bytes of uploads: compressed, each once in a workspace, and gone with the last run that had them.

Equal bytes are kept once in a workspace and never once for several: whether an upload is stored or found, and how
long a deletion takes, would otherwise tell one team what another one has.
"""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, exists, func, select

from service.errors import DatabaseUnavailable
from service.store import audit
from service.store.audit import AuditedResource
from service.store.caller import Caller
from service.store.database import insert_unless_present
from service.store.tables import benchmark_documents, benchmark_runs, document_bodies, in_utc
from service.store.tables import scenarios as scenarios_table
from service.wire import Outgoing

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3
"""How hard zstd tries: some hundreds of megabytes a second, and text a tenth of its size."""
AT_ONCE = 500
"""Values that one statement names; SQLite and Postgres take more."""


@dataclass(frozen=True, slots=True)
class PackedDocument:
    """A document as it is kept.

    Attributes:
        sha256: Digest of its bytes, in hexadecimal.
        original_bytes: How many they are.
        body: The bytes, compressed.
    """

    sha256: str
    original_bytes: int
    body: bytes


def pack(document: bytes) -> PackedDocument:
    """Return a document as it is kept. To be done before a transaction opens: it takes time."""
    return PackedDocument(
        sha256=hashlib.sha256(document).hexdigest(),
        original_bytes=len(document),
        body=zstd.compress(document, LEVEL),
    )


def unpack(body: bytes) -> bytes:
    """Return the bytes of a document that is kept."""
    return zstd.decompress(body)


class BrokenBody(ValueError):
    """Bytes are not the packed form of the document that they are said to be."""


def check(document: PackedDocument) -> None:
    """Raise BrokenBody unless a packed document from outside is what it says; unpack no more of it than it says."""
    unpacker, digest, room = zstd.ZstdDecompressor(), hashlib.sha256(), document.original_bytes
    piece = document.body
    try:
        while not unpacker.eof:
            if unpacker.needs_input and not piece:
                raise BrokenBody("it ends before its compressed form does")
            made = unpacker.decompress(piece, max_length=min(room, 1 << 20) + 1)
            piece = b""
            digest.update(made)
            room -= len(made)
            if room < 0:
                raise BrokenBody("it unpacks to more than it says")
    except zstd.ZstdError:
        raise BrokenBody("it is not compressed by zstd") from None
    if room or unpacker.unused_data or digest.hexdigest() != document.sha256:
        raise BrokenBody("it unpacks to something else than it says")


def keep(transaction: Connection, *, workspace_id: UUID, document: PackedDocument) -> None:
    """Keep the bytes of a document in a workspace, unless it has them; hold them there until the end."""
    row = {
        "workspace_id": workspace_id,
        "sha256": document.sha256,
        "original_bytes": document.original_bytes,
        "stored_bytes": len(document.body),
        "body": document.body,
    }
    held = (
        select(document_bodies.c.sha256)
        .where(_is(workspace_id), document_bodies.c.sha256 == document.sha256)
        # Whoever deletes their last run meanwhile waits, and then sees that of this transaction.
        .with_for_update(read=True, key_share=True)
    )
    # More than once only where they are deleted between the two statements.
    for _ in range(5):
        insert_unless_present(transaction, document_bodies, row)
        if transaction.scalar(held) is not None:
            return
    raise DatabaseUnavailable("Documents like this one come and go too fast to store it.")


def attach(transaction: Connection, *, workspace_id: UUID, run_id: UUID, document: PackedDocument) -> None:
    """Keep a document as that of a run."""
    keep(transaction, workspace_id=workspace_id, document=document)
    transaction.execute(
        benchmark_documents.insert(),
        {"run_id": run_id, "workspace_id": workspace_id, "body_sha256": document.sha256},
    )


def release(transaction: Connection, *, workspace_id: UUID, sha256s: Sequence[str]) -> None:
    """Delete those of the bodies that no run has any more."""
    distinct = sorted(set(sha256s))
    for at in range(0, len(distinct), AT_ONCE):
        chosen = (_is(workspace_id), document_bodies.c.sha256.in_(distinct[at : at + AT_ONCE]))
        # Held first, in one order: the deletion then sees every run that came to one of them meanwhile.
        transaction.execute(
            select(document_bodies.c.sha256)
            .where(*chosen)
            .order_by(document_bodies.c.sha256)
            .with_for_update()
        ).all()
        transaction.execute(document_bodies.delete().where(*chosen, ~is_referred_to()))


def remove_older(
    transaction: Connection,
    *,
    by: Caller,
    new_id: Callable[[], UUID],
    at: datetime,
    received_before: datetime,
) -> int:
    """Remove the documents of a workspace's oldest runs, which stay; return how many: `AT_ONCE` at most.

    Args:
        transaction: What it happens in.
        by: Whose documents, and who removes them.
        new_id: Makes the id of an audit event.
        at: The present time.
        received_before: Only of runs that came before.
    """
    own = select(scenarios_table.c.id).where(scenarios_table.c.workspace_id == by.workspace_id)
    rows = transaction.execute(
        select(benchmark_runs.c.id, benchmark_runs.c.sha256, benchmark_documents.c.body_sha256)
        .join(benchmark_documents, benchmark_documents.c.run_id == benchmark_runs.c.id)
        .where(benchmark_runs.c.scenario_id.in_(own), benchmark_runs.c.received_at < in_utc(received_before))
        .order_by(benchmark_runs.c.received_at, benchmark_runs.c.id)
        .limit(AT_ONCE)
        .with_for_update(of=benchmark_runs)
    ).all()
    ids = [row.id for row in rows]
    transaction.execute(
        benchmark_runs.update().where(benchmark_runs.c.id.in_(ids)).values(document_removed_at=in_utc(at))
    )
    transaction.execute(benchmark_documents.delete().where(benchmark_documents.c.run_id.in_(ids)))
    release(transaction, workspace_id=by.workspace_id, sha256s=[row.body_sha256 for row in rows])
    audit.record_deletions(
        transaction,
        by=by,
        at=at,
        resource=AuditedResource.BENCHMARK_DOCUMENT,
        deleted=[(new_id(), row.id, row.sha256) for row in rows],
    )
    return len(rows)


class Usage(Outgoing):
    """What a workspace holds, and what its documents take."""

    scenarios: int
    benchmark_runs: int
    documents: int
    """Runs whose original document is kept."""
    distinct_documents: int
    """Documents that are kept: equal ones once."""
    received_bytes: int
    """The size of what was posted, the sum of every run's `document_bytes`."""
    original_bytes: int
    """The size of the distinct documents, unpacked."""
    stored_bytes: int
    """What the distinct documents take in the database, compressed."""


def usage(transaction: Connection, *, workspace_id: UUID) -> Usage:
    """Return what a workspace holds."""
    own = select(scenarios_table.c.id).where(scenarios_table.c.workspace_id == workspace_id)
    runs = transaction.execute(
        select(func.count(), func.sum(benchmark_runs.c.document_bytes)).where(
            benchmark_runs.c.scenario_id.in_(own)
        )
    ).one()
    bodies = transaction.execute(
        select(
            func.count(), func.sum(document_bodies.c.original_bytes), func.sum(document_bodies.c.stored_bytes)
        ).where(_is(workspace_id))
    ).one()
    counted = {
        "scenarios": select(func.count()).select_from(own.subquery()),
        "documents": select(func.count()).where(benchmark_documents.c.workspace_id == workspace_id),
    }
    return Usage(
        **{name: transaction.scalar(query) or 0 for name, query in counted.items()},
        benchmark_runs=runs[0],
        received_bytes=int(runs[1] or 0),
        distinct_documents=bodies[0],
        original_bytes=int(bodies[1] or 0),
        stored_bytes=int(bodies[2] or 0),
    )


def _is(workspace_id: UUID) -> ColumnElement[bool]:
    return document_bodies.c.workspace_id == workspace_id


def is_referred_to() -> ColumnElement[bool]:
    """Return whether a run has the body, for a query on the bodies."""
    return exists(
        select(benchmark_documents.c.run_id).where(
            benchmark_documents.c.workspace_id == document_bodies.c.workspace_id,
            benchmark_documents.c.body_sha256 == document_bodies.c.sha256,
        )
    )
