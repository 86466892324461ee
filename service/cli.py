"""The command `stallbudget`: serve, migrate, key, workspace, backup, export, import, prune, openapi, size.

And at the user's: convert, submit, recorder.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from zoneinfo import ZoneInfo

import typer

from service.store.caller import AccessScope

if TYPE_CHECKING:
    from typing import BinaryIO
    from uuid import UUID

    from sqlalchemy import Connection

    from service.api.tracing import Tracing
    from service.settings import Settings
    from service.store.audit import AuditAction, AuditedResource
    from service.store.database import Database
    from service.store.keys import ApiKey, Secret

app = typer.Typer(
    help="Size checkpoint storage for training clusters, and judge what was measured against it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

key_app = typer.Typer(help="Make, list, rotate and revoke the keys of requests.", no_args_is_help=True)
workspace_app = typer.Typer(
    help="Make and list workspaces, which see nothing of each other.", no_args_is_help=True
)
app.add_typer(key_app, name="key")
app.add_typer(workspace_app, name="workspace")

# Each command imports what it needs: `stallbudget size` loads no web framework.


@app.command()
def serve() -> None:
    """Bring the database to this version's tables, then serve on STALLBUDGET_HOST:STALLBUDGET_PORT.

    With STALLBUDGET_MIGRATE_AT_START=false it leaves the tables as they are.
    """
    from service.api import logs
    from service.api.connections import DrainingServer
    from service.app import create_app
    from service.settings import AccessMode
    from service.store import keys

    settings = _settings()
    logs.configure(settings, sys.stderr)
    if settings.migrate_at_start:
        _migrate(settings)
    if settings.access is AccessMode.AUTO and not settings.may_be_open:
        with _transaction() as transaction:
            has_keys = keys.any_exist(transaction)
        if not has_keys:
            _fail(
                f"STALLBUDGET_HOST: on {settings.host} others can reach the service, and there is no key to keep "
                "them out: make one with `stallbudget key create --name NAME --scope admin`, or set "
                "STALLBUDGET_ACCESS=keys to start without."
            )
    app = create_app(settings, tracing=_tracing())
    server = DrainingServer(app, host=settings.host, port=settings.port)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise typer.Exit(3)


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


Workspace = Annotated[str, typer.Option("--workspace", help="The workspace that it opens.")]


@key_app.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="Who or what it is for.")],
    scope: Annotated[
        list[AccessScope],
        typer.Option(
            help="What it is good for: read; write, which reads as well; submit, which posts benchmark runs and "
            "nothing else; admin, which does everything. May be repeated."
        ),
    ],
    workspace: Workspace = "default",
    expires_days: Annotated[
        int | None,
        typer.Option(min=1, max=36_500, help="After how many days it is refused; never without it."),
    ] = None,
) -> None:
    """Make a key and print it, this once: what is kept of it cannot be turned back into it."""
    from uuid import uuid4

    from service.store import audit, keys, workspaces

    _check_name(name)
    at, secret = datetime.now(UTC), _secret()
    with _transaction() as transaction:
        made = keys.create(
            transaction,
            workspace_id=(workspace_id := workspaces.find(transaction, name=workspace).id),
            id=uuid4(),
            at=at,
            name=name,
            scopes=scope,
            secret=secret,
            expires_at=None if expires_days is None else at + timedelta(days=expires_days),
        )
        _record(
            transaction, workspace_id, audit.AuditAction.CREATE, audit.AuditedResource.API_KEY, made.id, at
        )
    typer.echo(f"The key {made.id} opens the workspace {workspace!r}. It is shown this once:", err=True)
    typer.echo(keys.written(made.id, secret))


@key_app.command("list")
def list_keys(
    workspace: Annotated[str | None, typer.Option(help="Only the keys of this workspace.")] = None,
) -> None:
    """Print every key, a line each: id, workspace, name, scopes, whether it is good, and when it was last used."""
    from service.store import keys, workspaces

    at = datetime.now(UTC)
    with _transaction() as transaction:
        listed = (
            workspaces.list_all(transaction)
            if workspace is None
            else [workspaces.find(transaction, name=workspace)]
        )
        lines = []
        for each in listed:
            after = None
            while True:
                page = keys.list_page(transaction, workspace_id=each.id, limit=1000, after=after)
                lines += [_key_line(each.name, key, at) for key in page.items]
                after = page.next_after
                if after is None:
                    break
    for line in lines:
        typer.echo(line)


@key_app.command("rotate")
def rotate_key(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the key.")],
    grace_hours: Annotated[
        float, typer.Option(min=0, max=720, help="How long the present secret is taken as well.")
    ] = 0,
) -> None:
    """Give a key another secret and print it, this once."""
    from service.store import audit, keys

    at, secret, key_id = datetime.now(UTC), _secret(), _key_id(id)
    with _transaction() as transaction:
        workspace_id = keys.workspace_of(transaction, id=key_id)
        keys.rotate(
            transaction,
            workspace_id=workspace_id,
            id=key_id,
            at=at,
            secret=secret,
            old_expires_at=at + timedelta(hours=grace_hours),
        )
        _record(
            transaction, workspace_id, audit.AuditAction.ROTATE, audit.AuditedResource.API_KEY, key_id, at
        )
    until = f"for another {grace_hours:g} h" if grace_hours else "no longer"
    typer.echo(f"The secret of before is good {until}. The new key is shown this once:", err=True)
    typer.echo(keys.written(key_id, secret))


@key_app.command("revoke")
def revoke_key(id: Annotated[str, typer.Argument(metavar="ID", help="The id of the key.")]) -> None:
    """Refuse a key for good: other processes do so within seconds."""
    from service.store import audit, keys

    at, key_id = datetime.now(UTC), _key_id(id)
    with _transaction() as transaction:
        workspace_id = keys.workspace_of(transaction, id=key_id)
        if keys.revoke(transaction, workspace_id=workspace_id, id=key_id, at=at):
            _record(
                transaction, workspace_id, audit.AuditAction.REVOKE, audit.AuditedResource.API_KEY, key_id, at
            )
    typer.echo(f"The key {key_id} is revoked.", err=True)


@workspace_app.command("create")
def create_workspace(name: Annotated[str, typer.Argument(metavar="NAME", help="A name of its own.")]) -> None:
    """Make a workspace, and print its id."""
    from uuid import uuid4

    from service.store import audit, workspaces

    _check_name(name)
    at = datetime.now(UTC)
    with _transaction() as transaction:
        made = workspaces.create(transaction, id=uuid4(), at=at, name=name)
        _record(transaction, made.id, audit.AuditAction.CREATE, audit.AuditedResource.WORKSPACE, made.id, at)
    typer.echo(made.id)


@workspace_app.command("list")
def list_workspaces() -> None:
    """Print every workspace, a line each: id, name, and when it was made."""
    from service.store import workspaces

    with _transaction() as transaction:
        listed = workspaces.list_all(transaction)
    for each in listed:
        typer.echo(f"{each.id}  {each.name}  {_shown(each.created_at)}")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to; a file that is not there yet.")],
) -> None:
    """Copy a SQLite database to a file while it is in use. For Postgres use pg_dump."""
    from service.store import backup as backups

    with _database() as database:
        if not database.is_sqlite:
            _fail(
                "STALLBUDGET_DATABASE_URL: a Postgres database is backed up with pg_dump, see deploy/README.md."
            )
        try:
            size = backups.copy(database, file)
        except FileExistsError:
            _fail(f"{file}: there is a file of that name.")
        except OSError as error:
            _fail(f"{file}: {error.strerror}.")
    typer.echo(f"{file}: {size} bytes.", err=True)


@app.command("export")
def export_workspace(
    workspace: Annotated[str, typer.Option(help="Which workspace.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="Where to, instead of standard output; a file that is not there yet."),
    ] = None,
) -> None:
    """Write a workspace as one file of JSON lines, for `import` on either database; no keys, no audit trail."""
    from service.store import archive, workspaces

    with _database() as database, _new_file(file) as sink, database.read() as transaction:
        found = workspaces.find(transaction, name=workspace)
        counts = archive.write(transaction, sink, workspace_id=found.id, workspace=found.name)
    typer.echo(f"{counts}.", err=True)


@app.command("import")
def import_workspace(
    file: Annotated[Path, typer.Argument(help="What `stallbudget export` wrote; - for stdin.")],
    workspace: Annotated[
        str | None,
        typer.Option(help="Where to, instead of the workspace of that name; made where it is not there."),
    ] = None,
) -> None:
    """Store all that an exported file holds, or nothing where it is damaged or clashes with what is there."""
    from uuid import uuid4

    from service.errors import NotFound
    from service.store import archive, audit, workspaces

    at, settings = datetime.now(UTC), _settings()
    try:
        source = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        _fail(f"{file}: {error.strerror}.")
    with source, _transaction() as transaction:
        named, lines = archive.workspace_named_in(source)
        name = named if workspace is None else workspace
        _check_name(name)
        try:
            place = workspaces.find(transaction, name=name)
        except NotFound:
            place = workspaces.create(transaction, id=uuid4(), at=at, name=name)
            _record(
                transaction, place.id, audit.AuditAction.CREATE, audit.AuditedResource.WORKSPACE, place.id, at
            )
        counts = archive.read(
            transaction, lines, workspace_id=place.id, max_document_bytes=settings.max_document_bytes
        )
        _record(
            transaction,
            place.id,
            audit.AuditAction.IMPORT,
            audit.AuditedResource.WORKSPACE,
            place.id,
            at,
            new_version=counts.sha256,
        )
    typer.echo(f"{counts}.", err=True)


@app.command()
def prune(
    documents_older_than: Annotated[
        float,
        typer.Option(min=0, max=36_500, metavar="DAYS", help="Of runs that came more days ago than this."),
    ],
    workspace: Annotated[str | None, typer.Option(help="Only of this workspace.")] = None,
) -> None:
    """Remove the original documents of old runs, and keep the runs with all that was read from them."""
    from uuid import uuid4

    from service.store import documents, workspaces
    from service.store.caller import Caller

    at = datetime.now(UTC)
    with _database() as database:
        with database.read() as transaction:
            chosen = (
                workspaces.list_all(transaction)
                if workspace is None
                else [workspaces.find(transaction, name=workspace)]
            )
        for each in chosen:
            by = Caller(workspace_id=each.id, name="cli", scopes=frozenset(AccessScope))
            removed, in_one_go = 0, documents.AT_ONCE
            # Some at a time: between two transactions others get their turn.
            while in_one_go == documents.AT_ONCE:
                with database.begin() as transaction:
                    in_one_go = documents.remove_older(
                        transaction,
                        by=by,
                        new_id=uuid4,
                        at=at,
                        received_before=at - timedelta(days=documents_older_than),
                    )
                removed += in_one_go
            typer.echo(f"{each.name}: {removed} documents removed.")
        database.forget_deleted()


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
    """Post files to a service. Ends with 0 if all are stored, 1 if some were refused, 2 if it could not ask.

    The key of a service that needs one is taken from STALLBUDGET_API_KEY, not from an argument, which others could see.
    """
    import httpx

    from service.submit import TIMEOUT, Fate, Submitter, Tags, Unreachable

    for file in files:
        if not file.is_file():
            _fail(f"{file}: there is no such file.")
    if ran_at is not None:
        _instant("--ran-at", ran_at)
    if "@" in url.partition("://")[2].partition("/")[0]:
        _fail("--url: leave out what stands before the @; the key goes into STALLBUDGET_API_KEY.")
    tags = Tags(storage_label, [str(one) for one in condition or ()], note, ran_at, nodes)
    fates = []
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT, headers=_key_header()) as client:
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


def _key_header() -> dict[str, str]:
    """Return the header that carries the key of STALLBUDGET_API_KEY; none where it is unset or empty."""
    key = os.environ.get("STALLBUDGET_API_KEY", "").strip()
    if not key.isascii() or not all(character.isalnum() or character == "_" for character in key):
        _fail("STALLBUDGET_API_KEY holds no key: it has characters that no key has.")
    return {"Authorization": f"Bearer {key}"} if key else {}


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


@contextmanager
def _transaction() -> Iterator["Connection"]:
    """Give a transaction on the database of the settings; end with a sentence where it fails."""
    with _database() as database, database.begin() as transaction:
        yield transaction


@contextmanager
def _new_file(file: Path | None) -> Iterator["BinaryIO"]:
    """Give what is to be a file once it is whole, and for its owner alone; standard output where none is named."""
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = file.with_name(file.name + ".part")
    if file.exists():
        _fail(f"{file}: there is a file of that name.")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        part.replace(file)
    except OSError as error:
        _fail(f"{file}: {error.strerror}.")
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _database() -> Iterator["Database"]:
    """Give the database of the settings; end with a sentence where it fails."""
    from service.errors import StallbudgetError
    from service.store.database import Database

    database = Database(_settings().database_url)
    try:
        yield database
    except StallbudgetError as error:
        _fail(str(error))
    finally:
        database.close()


def _record(
    transaction: "Connection",
    workspace_id: "UUID",
    action: "AuditAction",
    resource: "AuditedResource",
    resource_id: "UUID",
    at: datetime,
    *,
    new_version: str | None = None,
) -> None:
    """Write down a change that the command line makes."""
    from uuid import uuid4

    from service.store import audit
    from service.store.caller import Caller

    by = Caller(workspace_id=workspace_id, name="cli", scopes=frozenset(AccessScope))
    audit.record(
        transaction,
        by=by,
        id=uuid4(),
        at=at,
        action=action,
        resource=resource,
        resource_id=resource_id,
        new_version=new_version,
    )


def _secret() -> "Secret":
    from secrets import token_bytes, token_hex

    from service.store.keys import Secret

    return Secret(text=token_hex(32), salt=token_bytes(16))


def _key_id(text: str) -> "UUID":
    from uuid import UUID

    try:
        return UUID(text)
    except ValueError:
        _fail(f"{text!r} is no id of a key; `stallbudget key list` shows them.")


def _check_name(name: str) -> None:
    if not 0 < len(name) <= 200 or any(character < " " or character == "\x7f" for character in name):
        _fail("A name has 1 to 200 characters, and no control characters.")


def _key_line(workspace: str, key: "ApiKey", at: datetime) -> str:
    if key.revoked_at is not None:
        state = f"revoked {_shown(key.revoked_at)}"
    elif key.expires_at is None:
        state = "good"
    else:
        state = f"{'expired' if key.expires_at <= at else 'good until'} {_shown(key.expires_at)}"
    used = "never used" if key.last_used_at is None else f"last used {_shown(key.last_used_at)}"
    return "  ".join([str(key.id), workspace, key.name, ",".join(key.scopes), state, used])


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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
