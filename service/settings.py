"""Every environment variable that the service reads, with its meaning.

`Settings.from_environment()` reads them, and says in a sentence what is wrong with one.
"""

from enum import StrEnum
from ipaddress import ip_address
from typing import Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.units import MIB

PREFIX = "STALLBUDGET_"


class SettingError(ValueError):
    """A setting has no usable value. The message is one sentence that names its variable."""


class AccessMode(StrEnum):
    """Whether a request needs a key."""

    AUTO = "auto"
    KEYS = "keys"


class Settings(BaseSettings):
    """What can be set, each as `STALLBUDGET_` and the name in capitals. An empty variable counts as unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    database_url: str = Field(default="sqlite:///stallbudget.db", repr=False, validate_default=True)
    """Where everything is kept: `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://…`.
    It may hold a password, and is not printed."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """The address to listen on; `0.0.0.0` for every interface."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The TCP port to listen on; 0 for any that is free."""
    access: AccessMode = AccessMode.AUTO
    """`keys`: every request needs a key. `auto`: none does while the service listens on the loopback alone and no
    key was ever made."""
    max_json_bytes: int = Field(default=1 * MIB, ge=1024)
    """The largest body of a JSON resource. [B]"""
    max_document_bytes: int = Field(default=128 * MIB, ge=1024, le=512 * MIB)
    """The largest document of a benchmark run; what a database row holds sets the upper limit. [B]"""
    full_scale_low_fraction: float = Field(default=0.95, gt=0, le=1, allow_inf_nan=False)
    """From which fraction of the scenario's nodes on a run counts as one at full scale."""
    full_scale_high_fraction: float = Field(default=1.05, ge=1, le=10, allow_inf_nan=False)
    """Up to which fraction of the scenario's nodes a run counts as one at full scale."""
    restore_drill_days: float = Field(default=30, gt=0, le=36_500, allow_inf_nan=False)
    """For how many days a read that was measured is proof that a restart can load. [d]"""
    pool_size: int = Field(default=10, ge=1, le=100)
    """Database connections of one process, and threads that handle its requests."""

    @property
    def may_be_open(self) -> bool:
        """Whether requests without a key may be answered, as long as there is none."""
        return self.access is AccessMode.AUTO and is_loopback(self.host)

    @field_validator("database_url")
    @classmethod
    def _is_a_database_we_know(cls, value: str) -> str:
        # Imported here: what computes without a database need not load SQLAlchemy.
        from service.store.database import parse_url

        return parse_url(value).render_as_string(hide_password=False)

    @model_validator(mode="before")
    @classmethod
    def _text_is_trimmed(cls, values: object) -> object:
        if isinstance(values, dict):
            return {key: value.strip() if isinstance(value, str) else value for key, value in values.items()}
        return values

    @classmethod
    def from_environment(cls) -> Self:
        """Return the settings of this process's environment; raise SettingError in one sentence."""
        try:
            return cls()
        except ValidationError as error:
            raise SettingError(" ".join(_sentence(fault) for fault in _faults(error))) from None


def is_loopback(host: str) -> bool:
    """Return whether a host, without its port, is this machine under a name that nobody else can give."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _faults(error: ValidationError) -> list[tuple[str, str]]:
    """Return the variable and the complaint of each fault."""
    return [
        (PREFIX + "_".join(str(part) for part in fault["loc"]).upper(), fault["msg"])
        for fault in error.errors(include_url=False, include_input=False)
    ]


def _sentence(fault: tuple[str, str]) -> str:
    variable, complaint = fault
    complaint = complaint.removeprefix("Value error, ").rstrip(".")
    return f"{variable}: {complaint}."
