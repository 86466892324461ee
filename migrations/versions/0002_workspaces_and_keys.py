"""Workspaces, which every scenario belongs to; API keys; the audit trail; idempotency keys.

Revision: 0002
Follows: 0001
"""

from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
DEFAULT = UUID("00000000-0000-4000-8000-000000000001")


def upgrade() -> None:
    workspaces = op.create_table(
        "workspaces",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workspaces"),
        sa.UniqueConstraint("name", name="uq_workspaces_name"),
    )
    op.bulk_insert(workspaces, [{"id": DEFAULT, "name": "default", "created_at": datetime.now(UTC)}])
    op.drop_index("ix_scenarios_created_at_id", "scenarios")
    with op.batch_alter_table("scenarios") as scenarios:
        # In hexadecimal, as SQLite keeps it; Postgres reads it too.
        scenarios.add_column(sa.Column("workspace_id", sa.Uuid, nullable=False, server_default=DEFAULT.hex))
    with op.batch_alter_table("scenarios") as scenarios:
        scenarios.alter_column("workspace_id", existing_type=sa.Uuid, server_default=None)
        scenarios.create_foreign_key(
            "fk_scenarios_workspace_id_workspaces",
            "workspaces",
            ["workspace_id"],
            ["id"],
            ondelete="RESTRICT",
        )
        scenarios.drop_constraint("uq_scenarios_name", type_="unique")
        scenarios.create_unique_constraint("uq_scenarios_workspace_id_name", ["workspace_id", "name"])
    op.create_index(
        "ix_scenarios_workspace_id_created_at_id", "scenarios", ["workspace_id", "created_at", "id"]
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.Uuid, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=True),
        sa.Column("rotated_at", INSTANT, nullable=True),
        sa.Column("revoked_at", INSTANT, nullable=True),
        sa.Column("last_used_at", INSTANT, nullable=True),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("old_salt", sa.LargeBinary, nullable=True),
        sa.Column("old_hash", sa.LargeBinary, nullable=True),
        sa.Column("old_expires_at", INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name="fk_api_keys_workspace_id_workspaces",
            ondelete="RESTRICT",
        ),
    )
    op.create_index(
        "ix_api_keys_workspace_id_created_at_id", "api_keys", ["workspace_id", "created_at", "id"]
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.Uuid, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("key_id", sa.Uuid, nullable=True),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("resource_id", sa.Uuid, nullable=False),
        sa.Column("request_id", sa.Text, nullable=True),
        sa.Column("old_version", sa.Text, nullable=True),
        sa.Column("new_version", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name="fk_audit_events_workspace_id_workspaces",
            ondelete="RESTRICT",
        ),
    )
    op.create_index("ix_audit_events_workspace_id_at_id", "audit_events", ["workspace_id", "at", "id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("owner_id", sa.Uuid, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=True),
        sa.Column("resource_id", sa.Uuid, nullable=True),
        sa.PrimaryKeyConstraint("owner_id", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_index("ix_idempotency_keys_resource_id", "idempotency_keys", ["resource_id"])


def downgrade() -> None:
    _make_names_unique(op.get_bind())
    op.drop_table("idempotency_keys")
    op.drop_table("audit_events")
    op.drop_table("api_keys")
    op.drop_index("ix_scenarios_workspace_id_created_at_id", "scenarios")
    with op.batch_alter_table("scenarios") as scenarios:
        scenarios.drop_constraint("uq_scenarios_workspace_id_name", type_="unique")
        scenarios.drop_constraint("fk_scenarios_workspace_id_workspaces", type_="foreignkey")
        scenarios.drop_column("workspace_id")
        scenarios.create_unique_constraint("uq_scenarios_name", ["name"])
    op.create_index("ix_scenarios_created_at_id", "scenarios", ["created_at", "id"])
    op.drop_table("workspaces")


def _make_names_unique(connection: sa.Connection) -> None:
    """Add the name of its workspace to each scenario outside the default one whose name is taken elsewhere."""
    workspaces = sa.table("workspaces", sa.column("id", sa.Uuid), sa.column("name", sa.Text))
    scenarios = sa.table(
        "scenarios",
        sa.column("id", sa.Uuid),
        sa.column("name", sa.Text),
        sa.column("revision", sa.Integer),
        sa.column("workspace_id", sa.Uuid),
    )
    revisions = sa.table(
        "scenario_revisions",
        sa.column("scenario_id", sa.Uuid),
        sa.column("revision", sa.Integer),
        sa.column("name", sa.Text),
    )
    rows = connection.execute(
        sa.select(
            scenarios.c.id, scenarios.c.name, scenarios.c.revision, workspaces.c.name.label("workspace")
        )
        .join(workspaces, workspaces.c.id == scenarios.c.workspace_id)
        .order_by(workspaces.c.id != DEFAULT, workspaces.c.name, scenarios.c.name)
    ).all()
    names = {row.name for row in rows}
    taken: set[str] = set()
    for row in rows:
        name = row.name
        if name in taken:
            name = f"{row.name} ({row.workspace})"
            if name in names | taken:
                name = f"{row.name} ({row.id})"
            connection.execute(scenarios.update().where(scenarios.c.id == row.id).values(name=name))
            connection.execute(
                revisions.update()
                .where(revisions.c.scenario_id == row.id, revisions.c.revision == row.revision)
                .values(name=name)
            )
        taken.add(name)
