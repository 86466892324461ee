"""SECURITY.md names tests that exist, for each defence; and what it says that the server never does."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
CLIENT_SIDE = {"cli.py", "submit.py", "recorder.py"}
"""What runs on the user's side, or puts the parts together."""
FORBIDDEN_MODULES = {
    "pickle", "marshal", "shelve", "dill", "subprocess", "pty", "ctypes", "runpy", "code", "yaml", "xml", "ftplib",
    "smtplib", "telnetlib", "requests", "httpx", "aiohttp", "socket", "http.client", "urllib.request",
}  # fmt: skip
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "execv", "execve", "spawnv"}


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda value: value.rpartition("/")[2])
def test_each_test_that_is_named_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_defence_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    tables = [at for at, line in enumerate(rows) if line == "| against | what is done | test |"]
    defences = [line for line in rows[tables[0] :] if line not in (rows[tables[0]],)]
    assert len(tables) == 5
    assert len(defences) > 35
    for line in defences:
        assert re.search(r"`tests/[\w/]+\.py::\w+`[^|]*\|$", line), line
    assert PAGE.count("::") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", PAGE))


def _server_files() -> list[Path]:
    files = [file for file in (ROOT / "service").rglob("*.py") if file.name not in CLIENT_SIDE]
    assert len(files) > 100
    return files


def test_the_server_runs_nothing_and_unpickles_nothing() -> None:
    for file in _server_files():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
            else:
                imported = set()
            assert not imported & FORBIDDEN_MODULES, f"{file}: {imported}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in FORBIDDEN_CALLS, f"{file}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_ours = isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
                assert not (is_ours and node.func.attr in FORBIDDEN_CALLS), f"{file}:{node.lineno}"


def test_the_server_loads_no_client_of_http() -> None:
    code = (
        "import sys; from service.app import create_app; from service.settings import Settings; "
        "import service.parsers.register, service.api.connections; "
        "create_app(Settings(database_url='sqlite:///unused.db')).openapi(); "
        "print(sorted({'httpx', 'requests', 'aiohttp', 'httpcore', 'urllib3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"
