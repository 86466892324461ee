"""How Alembic runs the migrations: one way for SQLite and Postgres.

The service hands its own connection over (`service/store/migrate.py`), already inside the transaction that
guards the schema. The `alembic` command, used to write a new migration, gets one from the settings.

SQLite cannot alter most of a table: new migrations are written in batch mode, which copies it instead.
"""

from alembic import context
from sqlalchemy import Connection

from service.settings import Settings
from service.store import tables
from service.store.database import Database


def run(connection: Connection) -> None:
    """Run what was asked for on this connection; it commits, not we."""
    context.configure(connection=connection, target_metadata=tables.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


handed_over = context.config.attributes.get("connection")
if context.is_offline_mode():
    raise SystemExit("The migrations run on a database; they are not written out as SQL.")
if handed_over is not None:
    run(handed_over)
else:
    database = Database(Settings.from_environment().database_url)
    try:
        with database.migrating() as own:
            run(own)
    finally:
        database.close()
