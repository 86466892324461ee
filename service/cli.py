"""The command `stallbudget`: serve, migrate, openapi, size."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
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

    from service.app import create_app

    settings = _settings()
    _migrate(settings)
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port)


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
