"""The import contract: arrows run down, and the pure rooms load neither a web framework nor a database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parent.parent.parent
HEAVY = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "psycopg", "typer", "httpx2"}


def _loaded(statement: str, *arguments: str) -> set[str]:
    """Return the names of the top-level modules that a fresh interpreter has after a statement."""
    code = f"import sys; {statement}; import json; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(names)


@pytest.mark.parametrize(
    "module",
    [
        "service.sizing.size",
        "service.parsers",
        "service.judgement.gap",
        "service.planning.plan",
        "service.planning.script",
        "service.errors",
        "service.strict_json",
        "service.wire",
    ],
)
def test_a_pure_room_loads_neither_http_nor_sql(module: str) -> None:
    loaded = _loaded(f"import {module}")
    assert "service" in loaded
    assert loaded & HEAVY == set()


def test_the_store_loads_no_http() -> None:
    loaded = _loaded("import service.store.benchmark_runs, service.store.scenarios, service.store.migrate")
    assert "sqlalchemy" in loaded
    assert loaded & {"fastapi", "starlette", "uvicorn", "typer"} == set()


def test_sizing_on_the_command_line_loads_neither_http_nor_sql(tmp_path: Path) -> None:
    from service.api.examples import LLAMA_405B_SYNC

    file = tmp_path / "spec.json"
    file.write_text(json.dumps(LLAMA_405B_SYNC), "utf-8")
    loaded = _loaded(
        "from service.cli import app; app(['size', sys.argv[1], '--explain'], standalone_mode=False)",
        str(file),
    )
    assert "typer" in loaded
    assert loaded & (HEAVY - {"typer"}) == set()


def test_every_contract_of_import_linter_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    printed = capsys.readouterr().out
    assert status == EXIT_STATUS_SUCCESS, printed
    assert " 0 broken" in printed
    assert " 0 kept" not in printed
