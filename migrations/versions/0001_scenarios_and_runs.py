"""Scenarios with their revisions, and benchmark runs with their documents.

Revision: 0001
Follows: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "scenarios",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scenarios"),
        sa.UniqueConstraint("name", name="uq_scenarios_name"),
    )
    op.create_index("ix_scenarios_created_at_id", "scenarios", ["created_at", "id"])
    op.create_table(
        "scenario_revisions",
        sa.Column("scenario_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("scenario_id", "revision", name="pk_scenario_revisions"),
        sa.ForeignKeyConstraint(
            ["scenario_id"],
            ["scenarios.id"],
            name="fk_scenario_revisions_scenario_id_scenarios",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "benchmark_runs",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("scenario_id", sa.Uuid, nullable=False),
        sa.Column("scenario_revision", sa.Integer, nullable=False),
        sa.Column("received_at", INSTANT, nullable=False),
        sa.Column("ran_at", INSTANT, nullable=True),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("tool_version", sa.Text, nullable=True),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("document_bytes", sa.BigInteger, nullable=False),
        sa.Column("storage_label", sa.Text, nullable=True),
        sa.Column("conditions", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=True),
        sa.Column("run_id", sa.Text, nullable=True),
        sa.Column("record", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_benchmark_runs"),
        sa.ForeignKeyConstraint(
            ["scenario_id"],
            ["scenarios.id"],
            name="fk_benchmark_runs_scenario_id_scenarios",
            ondelete="RESTRICT",
        ),
        sa.ForeignKeyConstraint(
            ["scenario_id", "scenario_revision"],
            ["scenario_revisions.scenario_id", "scenario_revisions.revision"],
            name="fk_benchmark_runs_scenario_revisions",
            ondelete="RESTRICT",
        ),
        sa.UniqueConstraint("scenario_id", "sha256", name="uq_benchmark_runs_scenario_id_sha256"),
        sa.UniqueConstraint("scenario_id", "run_id", name="uq_benchmark_runs_scenario_id_run_id"),
    )
    op.create_index(
        "ix_benchmark_runs_scenario_id_received_at_id", "benchmark_runs", ["scenario_id", "received_at", "id"]
    )
    op.create_index(
        "ix_benchmark_runs_scenario_id_storage_label_received_at_id",
        "benchmark_runs",
        ["scenario_id", "storage_label", "received_at", "id"],
    )
    op.create_table(
        "benchmark_documents",
        sa.Column("run_id", sa.Uuid, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_benchmark_documents"),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["benchmark_runs.id"],
            name="fk_benchmark_documents_run_id_benchmark_runs",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("benchmark_documents")
    op.drop_table("benchmark_runs")
    op.drop_table("scenario_revisions")
    op.drop_table("scenarios")
