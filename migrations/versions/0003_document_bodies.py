"""Documents compressed, each once in a workspace; runs whose document was removed for its age.

Revision: 0003
Follows: 0002
"""

import hashlib
import sys
from typing import Any

import sqlalchemy as sa
from alembic import op

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    bodies = op.create_table(
        "document_bodies",
        sa.Column("workspace_id", sa.Uuid, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("original_bytes", sa.BigInteger, nullable=False),
        sa.Column("stored_bytes", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "sha256", name="pk_document_bodies"),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name="fk_document_bodies_workspace_id_workspaces",
            ondelete="RESTRICT",
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        # It is compressed already: Postgres need not try.
        op.execute("ALTER TABLE document_bodies ALTER COLUMN body SET STORAGE EXTERNAL")
    op.add_column("benchmark_runs", sa.Column("document_removed_at", INSTANT, nullable=True))
    op.add_column("benchmark_documents", sa.Column("workspace_id", sa.Uuid, nullable=True))
    op.add_column("benchmark_documents", sa.Column("body_sha256", sa.String(64), nullable=True))
    _pack(op.get_bind(), bodies)
    with op.batch_alter_table("benchmark_documents") as documents:
        documents.drop_column("body")
        documents.alter_column("workspace_id", existing_type=sa.Uuid, nullable=False)
        documents.alter_column("body_sha256", existing_type=sa.String(64), nullable=False)
        documents.create_foreign_key(
            "fk_benchmark_documents_document_bodies",
            "document_bodies",
            ["workspace_id", "body_sha256"],
            ["workspace_id", "sha256"],
            ondelete="RESTRICT",
        )
    op.create_index(
        "ix_benchmark_documents_workspace_id_body_sha256",
        "benchmark_documents",
        ["workspace_id", "body_sha256"],
    )


def downgrade() -> None:
    op.drop_index("ix_benchmark_documents_workspace_id_body_sha256", "benchmark_documents")
    op.add_column("benchmark_documents", sa.Column("body", sa.LargeBinary, nullable=True))
    _unpack(op.get_bind())
    with op.batch_alter_table("benchmark_documents") as documents:
        documents.drop_constraint("fk_benchmark_documents_document_bodies", type_="foreignkey")
        documents.drop_column("workspace_id")
        documents.drop_column("body_sha256")
        documents.alter_column("body", existing_type=sa.LargeBinary, nullable=False)
    with op.batch_alter_table("benchmark_runs") as runs:
        runs.drop_column("document_removed_at")
    op.drop_table("document_bodies")


_documents = sa.table(
    "benchmark_documents",
    sa.column("run_id", sa.Uuid),
    sa.column("body", sa.LargeBinary),
    sa.column("workspace_id", sa.Uuid),
    sa.column("body_sha256", sa.String),
)
_runs = sa.table("benchmark_runs", sa.column("id", sa.Uuid), sa.column("scenario_id", sa.Uuid))
_scenarios = sa.table("scenarios", sa.column("id", sa.Uuid), sa.column("workspace_id", sa.Uuid))


def _pack(connection: sa.Connection, bodies: sa.Table) -> None:
    """Move each document to the bodies of its workspace, one at a time: together they may be larger than memory."""
    owners = connection.execute(
        sa.select(_documents.c.run_id, _scenarios.c.workspace_id)
        .join(_runs, _runs.c.id == _documents.c.run_id)
        .join(_scenarios, _scenarios.c.id == _runs.c.scenario_id)
    ).all()
    kept = set()
    for run_id, workspace_id in owners:
        document: Any = connection.scalar(sa.select(_documents.c.body).where(_documents.c.run_id == run_id))
        sha256 = hashlib.sha256(document).hexdigest()
        if (workspace_id, sha256) not in kept:
            kept.add((workspace_id, sha256))
            body = zstd.compress(document)
            connection.execute(
                bodies.insert(),
                {
                    "workspace_id": workspace_id,
                    "sha256": sha256,
                    "original_bytes": len(document),
                    "stored_bytes": len(body),
                    "body": body,
                },
            )
        connection.execute(
            _documents.update()
            .where(_documents.c.run_id == run_id)
            # What it holds goes now, and not only with its column, which Postgres merely hides.
            .values(workspace_id=workspace_id, body_sha256=sha256, body=b"")
        )


def _unpack(connection: sa.Connection) -> None:
    """Give each run its document back. One that was removed stays so: its run is then without."""
    bodies = sa.table(
        "document_bodies",
        sa.column("workspace_id", sa.Uuid),
        sa.column("sha256", sa.String),
        sa.column("body", sa.LargeBinary),
    )
    rows = connection.execute(
        sa.select(_documents.c.run_id, _documents.c.workspace_id, _documents.c.body_sha256)
    ).all()
    for run_id, workspace_id, sha256 in rows:
        body: Any = connection.scalar(
            sa.select(bodies.c.body).where(bodies.c.workspace_id == workspace_id, bodies.c.sha256 == sha256)
        )
        connection.execute(
            _documents.update().where(_documents.c.run_id == run_id).values(body=zstd.decompress(body))
        )
