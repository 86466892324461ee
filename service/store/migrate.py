"""Bringing the tables to the version that this code knows, with Alembic.

The migrations lie beside the code when it is installed, and beside the package in a checkout.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

import service
from service.errors import DatabaseUnavailable
from service.store.database import Database

if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(database: Database, *, revision: str = "head") -> None:
    """Run the migrations that are still to be run, up to a revision.

    Several processes may do so at once: the first one migrates, the others wait and find nothing to do.

    Raises:
        DatabaseUnavailable: The database does not answer, or another migration takes too long.
    """
    from alembic import command
    from alembic.util import CommandError

    with database.migrating() as connection:
        config = _config()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, revision)
        except CommandError as error:
            raise DatabaseUnavailable(
                f"The database is not one that this version can migrate: {error}."
            ) from error
        except DBAPIError as error:
            if "already exists" not in str(error.orig):
                raise
            raise DatabaseUnavailable(
                "The database has tables of our names that our migrations did not make; name an empty one: "
                f"{error.orig}."
            ) from error


def downgrade(database: Database, *, revision: str = "base") -> None:
    """Undo the migrations after a revision; `base` undoes all, and drops every row with its table.

    Raises:
        DatabaseUnavailable: The database does not answer, or another migration takes too long.
    """
    from alembic import command

    with database.migrating() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def is_at_head(database: Database) -> bool:
    """Return whether the tables are those of this version, at the cost of two short queries.

    Raises:
        DatabaseUnavailable: The database does not answer.
    """
    return current(database) == head()


def current(database: Database) -> str | None:
    """Return the revision that the tables are at; None where nothing was migrated yet.

    Raises:
        DatabaseUnavailable: The database does not answer.
    """
    with database.read() as transaction:
        if not transaction.dialect.has_table(transaction, "alembic_version"):
            return None
        revision: str | None = transaction.scalar(text("SELECT version_num FROM alembic_version"))
        return revision


@cache
def head() -> str:
    """Return the newest revision of this version's migrations. They are read once: code does not change."""
    from alembic.script import ScriptDirectory

    newest = ScriptDirectory.from_config(_config()).get_current_head()
    if newest is None:
        raise DatabaseUnavailable("This installation has no migrations.")
    return newest


def folder() -> Path:
    """Return where the migrations are: in the installed package, else beside it in the checkout."""
    package = Path(service.__file__).parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    # Alembic reads a percent sign as the start of a reference.
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    return config
