"""What routes ask for: the database, the settings, the clock, ids from the path."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Request

from service.settings import Settings
from service.store.database import Database


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)


UseDatabase = Annotated[Database, Depends(_database)]
UseSettings = Annotated[Settings, Depends(_settings)]
ScenarioId = Annotated[UUID, Path(description="The `id` of a scenario.")]
RunId = Annotated[UUID, Path(description="The `id` of a benchmark run.")]
