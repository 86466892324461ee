"""What routes ask for: the database, the settings, the clock, who asks, ids from the path."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Request
from pydantic import BeforeValidator

from service.api.access import Access
from service.api.problems import request_id_of
from service.settings import Settings
from service.store.caller import Caller
from service.store.database import Database


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _access(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


async def _workspace_id(request: Request) -> UUID:
    caller: Caller = request.scope["caller"]
    return caller.workspace_id


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return replace(caller, request_id=request_id_of(request))


def now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)


_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DIGITS = re.compile(r"-?[0-9]{1,18}")


def _written_as(pattern: re.Pattern[str], what: str) -> BeforeValidator:
    """Refuse other ways of writing a value of the URL: braces round an id, `1_0`, `1.0`, `+1`."""

    def check(value: object) -> object:
        if isinstance(value, str) and not pattern.fullmatch(value):
            raise ValueError(f"give {what}")
        return value

    return BeforeValidator(check)


DIGITS = _written_as(_DIGITS, "a whole number in digits")
"""Stands last in an annotation: the bounds before it stay those of a plain integer."""
ID = _written_as(_UUID, "an id as it was answered")
"""Stands last in the annotation of an id."""

UseDatabase = Annotated[Database, Depends(_database)]
UseSettings = Annotated[Settings, Depends(_settings)]
UseAccess = Annotated[Access, Depends(_access)]
UseWorkspaceId = Annotated[UUID, Depends(_workspace_id)]
"""Whose resources the request sees."""
UseCaller = Annotated[Caller, Depends(_caller)]
"""Who makes the change; the workspace among the rest."""
ScenarioId = Annotated[UUID, ID, Path(description="The `id` of a scenario.")]
KeyId = Annotated[UUID, ID, Path(description="The `id` of an API key.")]
RunId = Annotated[UUID, ID, Path(description="The `id` of a benchmark run.")]
