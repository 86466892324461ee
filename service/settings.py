"""Every environment variable that the service reads, with its meaning.

`Settings.from_environment()` reads them, and says in a sentence what is wrong with one.
"""

import os
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.units import KIB, MIB

PREFIX = "STALLBUDGET_"


class SettingError(ValueError):
    """A setting has no usable value. The message is one sentence that names its variable."""


class AccessMode(StrEnum):
    """Whether a request needs a key."""

    AUTO = "auto"
    KEYS = "keys"


class LogFormat(StrEnum):
    """How a line of the log is written."""

    JSON = "json"
    LOGFMT = "logfmt"


class LogLevel(StrEnum):
    """From which level on the log has lines; those of requests are `info`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class MetricsMode(StrEnum):
    """Who may read `/metrics`, which asks for no key."""

    OFF = "off"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    ON = "on"


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
    migrate_at_start: bool = True
    """Whether `stallbudget serve` brings the database to this version's tables. Where it does not, `/readyz` is a 503
    until `stallbudget migrate` has."""
    pool_size: int = Field(default=10, ge=1, le=100)
    """Database connections of one process, and threads that handle its requests."""
    lock_seconds: float = Field(default=10, gt=0, le=600, allow_inf_nan=False)
    """How long a change waits for another's lock, and a request for a database connection; then it gets a 503. [s]"""
    reading_per_minute: int = Field(default=6000, ge=0, le=10**9)
    """How many requests that only read a key, or an address without one, may send a minute; 0 for no limit."""
    computing_per_minute: int = Field(default=6000, ge=0, le=10**9)
    """The same for those that compute: sizings, test plans, gap reports, series."""
    writing_per_minute: int = Field(default=3000, ge=0, le=10**9)
    """The same for those that store or delete; an upload is one."""
    max_concurrent_requests: int = Field(default=200, ge=1, le=100_000)
    """How many requests one process works on at once; those beyond get a 503."""
    max_concurrent_per_address: int = Field(default=100, ge=1, le=100_000)
    """How many of them may come from one address, so that nobody takes them all."""
    failed_keys: int = Field(default=20, ge=1, le=1_000_000)
    """How many wrong keys one address may try in a minute; its next ones wait."""
    max_connections: int = Field(default=1000, ge=1, le=1_000_000)
    """How many connections one process keeps open; those beyond are closed at once."""
    max_head_bytes: int = Field(default=64 * KIB, ge=1024, le=16 * MIB)
    """The longest request line with headers. [B]"""
    head_seconds: float = Field(default=10, gt=0, le=3600, allow_inf_nan=False)
    """How long a client may take for the request line and the headers. [s]"""
    idle_seconds: float = Field(default=75, gt=0, le=3600, allow_inf_nan=False)
    """How long a connection between two requests is kept; longer than the proxy in front keeps its own. [s]"""
    slow_seconds: float = Field(default=20, gt=0, le=3600, allow_inf_nan=False)
    """Over how long the pace of a body that comes in, or of an answer that goes out, is taken. [s]"""
    min_bytes_per_second: float = Field(default=10_000, ge=0, le=1e9, allow_inf_nan=False)
    """The pace below which a body or an answer is cut off. [B/s]"""
    request_seconds: float = Field(default=120, gt=0, le=86_400, allow_inf_nan=False)
    """How long a request whose body is there may take until its answer begins; then it gets a 503. [s]"""
    drain_seconds: float = Field(default=0, ge=0, le=3600, allow_inf_nan=False)
    """How long a process that is told to end goes on as before while `/readyz` says 503, so that a balancer in front
    sends it nothing more. [s]"""
    shutdown_seconds: float = Field(default=30, gt=0, le=3600, allow_inf_nan=False)
    """How long it then waits for the requests that it is answering. [s]"""
    ready_seconds: float = Field(default=3, gt=0, le=60, allow_inf_nan=False)
    """How long `/readyz` waits for the database. [s]"""
    trusted_proxies: str | None = None
    """The addresses or networks, divided by commas, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    log_format: LogFormat = LogFormat.LOGFMT
    """How the log is written: `logfmt` for people, `json` for programs; one line an event."""
    log_level: LogLevel = LogLevel.INFO
    """From which level on."""
    metrics: MetricsMode = MetricsMode.LOOPBACK
    """Who may read `/metrics`: this machine (`loopback`), private networks too, everybody (`on`), nobody (`off`);
    what comes through a proxy only where it is `on`."""

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

    @field_validator("trusted_proxies")
    @classmethod
    def _are_addresses(cls, value: str | None) -> str | None:
        if value is not None:
            for item in value.split(","):
                try:
                    ip_network(item.strip())
                except ValueError:
                    raise ValueError(
                        f"{item.strip()!r} is no address and no network, such as 10.0.0.7 or 10.0.0.0/24"
                    ) from None
        return value

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


def sends_traces() -> bool:
    """Return whether the standard variables of OpenTelemetry say where traces go. What else they say, its SDK reads."""
    return (
        any(os.environ.get(f"OTEL_EXPORTER_OTLP_{name}") for name in ("ENDPOINT", "TRACES_ENDPOINT"))
        and os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
        and (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").strip().lower() == "otlp"
    )


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
