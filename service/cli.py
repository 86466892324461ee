"""The command `stallbudget`: serve, migrate, openapi, size; and on the user's side convert, submit, recorder."""

import json
import sys
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from zoneinfo import ZoneInfo

import typer

if TYPE_CHECKING:
    from service.api.tracing import Tracing
    from service.settings import Settings

app = typer.Typer(
    help="Size checkpoint storage for training clusters, and judge what was measured against it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Each command imports what it needs: `stallbudget size` loads no web framework.


@app.command()
def serve() -> None:
    """Bring the database to this version's tables, then serve on STALLBUDGET_HOST:STALLBUDGET_PORT."""
    import uvicorn

    from service.api import logs
    from service.api.connections import server_options
    from service.app import create_app

    settings = _settings()
    logs.configure(settings, sys.stderr)
    _migrate(settings)
    app = create_app(settings, tracing=_tracing())
    uvicorn.run(app, host=settings.host, port=settings.port, **server_options(app))


@app.command()
def migrate() -> None:
    """Bring the database of STALLBUDGET_DATABASE_URL to this version's tables."""
    _migrate(_settings())


@app.command()
def openapi(
    output: Annotated[Path | None, typer.Argument(help="Write to this file instead of the terminal.")] = None,
) -> None:
    """Write the OpenAPI document."""
    from service.app import create_app
    from service.settings import Settings

    # The document needs no database, and none is opened.
    document = create_app(Settings(database_url="sqlite:///unused.db")).openapi()
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            output.write_text(text, "utf-8")
        except OSError as error:
            _fail(f"{output}: {error.strerror}.")


@app.command()
def size(
    file: Annotated[
        Path, typer.Argument(help="A scenario spec as JSON, as POST /v1/sizings takes it; - for stdin.")
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Add each figure's formula, inputs, assumption and source.")
    ] = False,
) -> None:
    """Size a scenario spec without a server, and print the sizing as JSON."""
    from pydantic import ValidationError

    from service.errors import Unsatisfiable
    from service.sizing.size import size as sizing_of
    from service.sizing.spec import ScenarioSpec
    from service.strict_json import JsonFault, loads, pointer

    try:
        text = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8-sig")
        spec = ScenarioSpec.model_validate(loads(text, finite=False))
        sizing = sizing_of(spec, explained=explain)
    except OSError as error:
        _fail(f"{file}: {error.strerror}.")
    except UnicodeDecodeError as error:
        _fail(f"{file}: byte {error.start} is not UTF-8.")
    except JsonFault as fault:
        _fail(f"{file}: {fault.pointer or '#'}: {fault}")
    except ValidationError as error:
        lines = []
        for item in error.errors():
            place = pointer(*item["loc"])
            faults = item.get("ctx", {}).get("faults")
            lines += [f"{place}{fault.pointer}: {fault.detail}" for fault in faults or ()] or [
                f"{place}: {item['msg']}."
            ]
        _fail("\n".join(f"{file}: {line}" for line in lines))
    except Unsatisfiable as error:
        _fail("\n".join(f"{file}: {fault.pointer}: {fault.detail}" for fault in error.faults))
    typer.echo(sizing.model_dump_json(exclude_none=True, indent=1))


class Trainer(StrEnum):
    """Whose files `convert` reads, by the names of `parsers.conversion.READERS`."""

    TORCH_DCP_LOG = "torch-dcp-log"
    DLIO = "dlio"
    NEMO = "nemo"
    TORCHTITAN = "torchtitan"
    MEGATRON = "megatron"
    S3TORCHBENCHMARKING = "s3torchbenchmarking"


class Mode(StrEnum):
    """What the saves of a log are."""

    SAVE = "save"
    ASYNC_SAVE = "async_save"


class StorageCondition(StrEnum):
    """The state of the storage during a run, as `parsers.run.Condition` has it."""

    IDLE = "idle"
    UNDER_READ_LOAD = "under_read_load"
    DEGRADED = "degraded"


class StorageKind(StrEnum):
    """Kinds of storage, in the words of the dcp-timing format."""

    LOCAL = "local"
    REMOTE_BLOCK = "remote_block"
    NAS = "nas"
    PARALLEL_FS = "parallel_fs"
    OBJECT = "object"
    MEMORY = "memory"
    OTHER = "other"


@app.command()
def convert(
    trainer: Annotated[Trainer, typer.Argument(metavar="TRAINER", help="Whose files they are.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="All files of one run: every rank's, where ranks have one; - for stdin."
        ),
    ],
    run_id: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="How many nodes took part.")
    ] = None,
    world_size: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="How many ranks took part.")
    ] = None,
    storage_label: Annotated[str | None, typer.Option(help="Which storage was measured.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="What the saves are, where the log cannot tell.")] = None,
    checkpoint_bytes: Annotated[
        int | None,
        typer.Option(min=1, max=2**53 - 1, help="Size of each checkpoint: the sum of its *.distcp files."),
    ] = None,
    saved_world_size: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="How many ranks wrote what was loaded.")
    ] = None,
    storage_kind: Annotated[StorageKind | None, typer.Option(help="What kind of storage that is.")] = None,
    checkpointer_version: Annotated[
        str | None, typer.Option(help="Version of what made the checkpoints.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Free text to go with the run.")] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(help="Of times written without one: Europe/Berlin, UTC, +02:00."),
    ] = None,
    recorded_at: Annotated[
        str | None, typer.Option(help="When it was recorded; by default the latest time in the files.")
    ] = None,
) -> None:
    """Make what a trainer or a benchmark printed into one dcp-timing document, and print that."""
    from service.parsers.conversion import convert as converted
    from service.parsers.conversion import log_file
    from service.parsers.trainer_logs import Stated, Unconvertible

    stated = Stated(
        run_id=run_id,
        storage_label=storage_label,
        storage_kind=storage_kind,
        nodes=nodes,
        world_size=world_size,
        mode=mode,
        checkpoint_bytes=checkpoint_bytes,
        saved_world_size=saved_world_size,
        checkpointer_version=checkpointer_version,
        label=label,
        zone=None if time_zone is None else _zone(time_zone),
    )
    at = None if recorded_at is None else _instant("--recorded-at", recorded_at)
    try:
        read = [log_file(str(file), _bytes_of(file)) for file in files]
        text, notes = converted(trainer, read, stated, recorded_at=at, now=_written_at(files))
    except Unconvertible as error:
        _fail(str(error))
    for note in notes:
        typer.echo(note, err=True)
    sys.stdout.write(text)


def _written_at(files: list[Path]) -> datetime:
    """Return when the newest of the files was written: the same files give the same document, byte for byte."""
    written = [file.stat().st_mtime for file in files if str(file) != "-"]
    newest = datetime.fromtimestamp(max(written), UTC) if written else datetime.now(UTC)
    return newest.replace(microsecond=0)


@app.command()
def submit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="What benchmarks wrote, and dcp-timing documents.")
    ],
    scenario: Annotated[str, typer.Option(help="Name or id of the scenario that they are evidence for.")],
    url: Annotated[str, typer.Option(help="Address of the service, such as http://127.0.0.1:8000.")],
    storage_label: Annotated[str | None, typer.Option(help="Which storage was measured.")] = None,
    condition: Annotated[
        list[StorageCondition] | None,
        typer.Option(help="The state of the storage meanwhile; may be repeated."),
    ] = None,
    note: Annotated[str | None, typer.Option(help="Anything worth keeping with the runs.")] = None,
    ran_at: Annotated[str | None, typer.Option(help="When the runs took place, with a time zone.")] = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="How many nodes took part, where a file says none."),
    ] = None,
) -> None:
    """Post files to a service. Ends with 0 if all are stored, 1 if some were refused, 2 if it could not ask."""
    import httpx

    from service.submit import TIMEOUT, Fate, Submitter, Tags, Unreachable

    for file in files:
        if not file.is_file():
            _fail(f"{file}: there is no such file.")
    if ran_at is not None:
        _instant("--ran-at", ran_at)
    tags = Tags(storage_label, [str(one) for one in condition or ()], note, ran_at, nodes)
    fates = []
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT) as client:
            submitter = Submitter(
                client,
                wait=time.sleep,
                tell=lambda line: typer.echo(line, err=True),
                now=lambda: datetime.now(UTC),
            )
            scenario_id = submitter.scenario_id(scenario)
            for at, file in enumerate(files, start=1):
                if len(files) > 1:
                    typer.echo(f"[{at}/{len(files)}] {file}, {file.stat().st_size} bytes", err=True)
                outcome = submitter.submit(file, scenario_id=scenario_id, tags=tags)
                typer.echo(outcome.text())
                fates.append(outcome.fate)
    except (Unreachable, httpx.InvalidURL) as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}.")
    if Fate.REFUSED in fates:
        raise typer.Exit(1)


@app.command()
def recorder() -> None:
    """Print a recorder of checkpoint times: one file, to lie beside a training script, that needs torch alone."""
    sys.stdout.write(resources.files("service").joinpath("recorder.py").read_text("utf-8"))


def _bytes_of(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        _fail(f"{file}: {error.strerror}.")


def _zone(name: str) -> tzinfo:
    """Return a time zone by its name or its offset."""
    if name in ("Z", "UTC"):
        return UTC
    try:
        sign, hours, minutes = name[0], name[1:3], name[-2:]
        if sign in "+-" and len(name) == 6 and name[3] == ":":
            return timezone((1 if sign == "+" else -1) * timedelta(hours=int(hours), minutes=int(minutes)))
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        _fail(f"--time-zone: {name!r} is no time zone; give one such as Europe/Berlin, UTC or +02:00.")


def _instant(option: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        _fail(f"{option}: {text!r} is no time with a zone, such as 2026-11-29T10:00:00Z.")
    return at


def _migrate(settings: "Settings") -> None:
    from service.errors import DatabaseUnavailable
    from service.store.database import Database
    from service.store.migrate import upgrade

    database = Database(settings.database_url)
    try:
        upgrade(database)
    except DatabaseUnavailable as error:
        _fail(f"STALLBUDGET_DATABASE_URL: {error}")
    finally:
        database.close()


def _tracing() -> "Tracing | None":
    from service.settings import SettingError, sends_traces

    if not sends_traces():
        return None
    from service.api import tracing

    try:
        return tracing.from_environment()
    except SettingError as error:
        _fail(str(error))


def _settings() -> "Settings":
    from service.settings import SettingError, Settings

    try:
        return Settings.from_environment()
    except SettingError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
