"""Every table, and the type that instants are kept in.

The same on SQLite and Postgres. What is JSON is kept as text, exactly as it was written: JSONB would sort
the keys and rewrite the numbers, and nothing is ever searched inside. The migrations make these tables; a
test compares the two.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""All constraints have names, so that migrations can drop them."""


_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def in_utc(moment: datetime) -> datetime:
    """Return the moment in UTC; raise ValueError when it has no time zone.

    In the first hours of the year 1 and the last ones of 9999, where UTC may have no date for it, the
    nearest that it has.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment} has no time zone, and is no moment without one")
    return min(max(moment, _FIRST), _LAST).astimezone(UTC)


class Instant(TypeDecorator[datetime]):
    """A moment to the microsecond: aware in, UTC out.

    SQLite keeps text without a time zone; the text is always UTC, so it also sorts as the moments do.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC; raise ValueError when it has no time zone."""
        return None if value is None else in_utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC, whatever zone the database answers in."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else in_utc(value)


workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("name"),
)
"""Whose everything is: what belongs to one workspace, the keys of another never see."""

scenarios = Table(
    "scenarios",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="RESTRICT"), nullable=False),
    UniqueConstraint("workspace_id", "name"),
    # The order of the list.
    Index(None, "workspace_id", "created_at", "id"),
)
"""A scenario's identity, and the number of the revision that holds what it says now."""

scenario_revisions = Table(
    "scenario_revisions",
    metadata,
    Column("scenario_id", Uuid, ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("spec", Text, nullable=False),
)
"""What a scenario said at each revision, the present one included."""

benchmark_runs = Table(
    "benchmark_runs",
    metadata,
    Column("id", Uuid, primary_key=True),
    # RESTRICT: measured results go only when their deletion is asked for.
    Column("scenario_id", Uuid, ForeignKey("scenarios.id", ondelete="RESTRICT"), nullable=False),
    Column("scenario_revision", Integer, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("ran_at", Instant),
    Column("tool", Text, nullable=False),
    Column("tool_version", Text),
    Column("format", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("document_bytes", BigInteger, nullable=False),
    Column("storage_label", Text),
    Column("conditions", Text, nullable=False),
    Column("note", Text),
    Column("run_id", Text),
    # What the parser read. After the others, so that a scan for those need not read its pages.
    Column("record", Text, nullable=False),
    Column("document_removed_at", Instant),
    ForeignKeyConstraint(
        ["scenario_id", "scenario_revision"],
        ["scenario_revisions.scenario_id", "scenario_revisions.revision"],
        # Postgres cuts names after 63 letters; the convention's has more.
        name="fk_benchmark_runs_scenario_revisions",
        ondelete="RESTRICT",
    ),
    UniqueConstraint("scenario_id", "sha256"),
    # Runs without a run_id never clash: to a unique constraint NULLs differ from one another.
    UniqueConstraint("scenario_id", "run_id"),
    # The order of the list and of the judgement, with and without a label.
    Index(None, "scenario_id", "received_at", "id"),
    Index(None, "scenario_id", "storage_label", "received_at", "id"),
)
"""One upload each: the figures that were read, without the bytes they were read from."""

benchmark_documents = Table(
    "benchmark_documents",
    metadata,
    Column("run_id", Uuid, ForeignKey("benchmark_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("workspace_id", Uuid, nullable=False),
    Column("body_sha256", String(64), nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "body_sha256"],
        ["document_bodies.workspace_id", "document_bodies.sha256"],
        name="fk_benchmark_documents_document_bodies",
        ondelete="RESTRICT",
    ),
    # To find whether a body is still anybody's.
    Index(None, "workspace_id", "body_sha256"),
)
"""Which document a run was read from. A run whose document was removed has no row."""

document_bodies = Table(
    "document_bodies",
    metadata,
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="RESTRICT"), primary_key=True),
    # Of what is kept, which is not always what was posted: an environment is cut out.
    Column("sha256", String(64), primary_key=True),
    Column("original_bytes", BigInteger, nullable=False),
    Column("stored_bytes", BigInteger, nullable=False),
    # Compressed by zstd. Last, so that the sizes are read without its pages.
    Column("body", LargeBinary, nullable=False),
)
"""The original bytes of the runs, apart from them: lists and judgements never load them. Equal ones of a workspace
are kept once, and go with the last run that has them."""

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="RESTRICT"), nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("rotated_at", Instant),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    Column("salt", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    # The secret before the present one, while it is still taken.
    Column("old_salt", LargeBinary),
    Column("old_hash", LargeBinary),
    Column("old_expires_at", Instant),
    # The order of the list.
    Index(None, "workspace_id", "created_at", "id"),
)
"""What lets in. Of a secret only its keyed hash is kept. No row is ever deleted: after the first, keys are needed."""

audit_events = Table(
    "audit_events",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="RESTRICT"), nullable=False),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("key_id", Uuid),
    Column("action", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("resource_id", Uuid, nullable=False),
    Column("request_id", Text),
    Column("old_version", Text),
    Column("new_version", Text),
    # The order of the list.
    Index(None, "workspace_id", "at", "id"),
)
"""Who changed what, written with the change. They refer to no row, since they outlive what they tell of."""

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner_id", Uuid, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("created_at", Instant, nullable=False),
    Column("request_sha256", String(64), nullable=False),
    # Known at the end of the transaction that makes the row.
    Column("status", Integer),
    Column("resource_id", Uuid),
    # To find what is too old, and what is deleted with its resource.
    Index(None, "created_at"),
    Index(None, "resource_id"),
)
"""Requests that must not be done twice, with what became of them."""
