"""The README is true: its commands run in order against a real server, and print what it shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from service.app import create_app
from service.settings import PREFIX, Settings
from tests.running_server import running_server

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
ADDRESS = "127.0.0.1:8000"

NOT_RUN = {
    # What the page says about setting up; `make serve` is what the server of this test stands in for.
    "make serve",
    "make test",
    "STALLBUDGET_DATABASE_URL=postgresql://stallbudget:secret@db.example:5432/stallbudget make serve",
    "STALLBUDGET_POSTGRES_PASSWORD=secret docker compose up --build",
}


class Block(NamedTuple):
    """Commands, and what the page shows as their output; None where it shows none."""

    commands: str
    shown: str | None


def blocks(page: str) -> list[Block]:
    """Return the shell blocks of a page, each with the block of output that follows it."""
    found = re.findall(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", page, re.DOTALL | re.MULTILINE)
    assert len(found) == len(re.findall(r"^```sh$", page, re.MULTILINE))
    shown = re.findall(r"^```text$", page, re.MULTILINE)
    assert sum(bool(output) for _, output in found) == len(shown), "an output that follows no commands"
    return [Block(commands.rstrip("\n"), output or None) for commands, output in found]


TOUR = [block for block in blocks(README) if block.commands not in NOT_RUN]


def run(tour: list[Block], port: int) -> list[str]:
    """Return what each block prints, errors included, run one after the other in one shell."""
    mark = "=== end of block ==="
    # What an installation puts into .venv/bin, as this checkout has it.
    script = f'stallbudget() {{ {shlex.quote(sys.executable)} -m service.cli "$@"; }}\n' + "".join(
        f"{block.commands}\necho '{mark}'\n" for block in tour
    )
    done = subprocess.run(
        ["sh"],
        input=script.replace(ADDRESS, f"127.0.0.1:{port}"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.replace(f"127.0.0.1:{port}", ADDRESS).split(mark + "\n")[:-1]


def test_the_tour_prints_what_the_page_shows(tmp_path: Path) -> None:
    with running_server(f"sqlite:///{tmp_path / 'tour.db'}") as port:
        printed = run(TOUR, port)
    assert len(printed) == len(TOUR) > 10
    for block, output in zip(TOUR, printed, strict=True):
        assert output == (block.shown or ""), block.commands


def test_every_block_that_is_not_run_is_on_the_page() -> None:
    commands = {block.commands for block in blocks(README)}
    assert commands >= NOT_RUN


def test_every_setting_is_on_the_page_with_its_default() -> None:
    rows = dict(re.findall(rf"^\| `({PREFIX}\w+)` \| (.*?) \|", README, re.MULTILINE))
    assert set(rows) == {PREFIX + name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default is None else f"`{field.default}`"
        assert rows[PREFIX + name.upper()] == default, name


def test_every_other_variable_on_the_page_is_one_that_something_reads() -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+[A-Z]", README))
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    readers = ("docker-compose.yml", "tests/conftest.py", "service/cli.py")
    elsewhere = "".join((ROOT / reader).read_text("utf-8") for reader in readers)
    assert [name for name in named - settings if name not in elsewhere] == []


def test_every_make_target_on_the_page_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE))
    assert {"serve", "test", "benchmark"} <= named <= targets


PATHS = re.findall(r"(?:`| @|python3 )([\w.-]+(?:/[\w.-]+)*/?)(?=[`\s])", README)
PATHS = [path for path in PATHS if "/" in path or re.search(r"\.(?:md|yml|py|json|toml)$", path)]
MEDIA_TYPES = {path for path in PATHS if path.split("/")[0] in ("application", "text")}
MADE_WHEN_RUN = {".venv/bin", ".venv/bin/stallbudget"}


def test_every_resource_is_on_the_page_with_its_methods() -> None:
    served = {
        (method.upper(), path)
        for path, methods in create_app(Settings(database_url="sqlite:///unused.db"))
        .openapi()["paths"]
        .items()
        for method in methods
    }
    listed = {
        (method, path)
        for methods, path in re.findall(r"`([A-Z]+(?:, [A-Z]+)*) (/[^`]*)`", README)
        for method in methods.split(", ")
    }
    assert served - listed == set()
    assert {path for _, path in listed - served} == {
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
    }


@pytest.mark.parametrize("path", sorted({path for path in PATHS if path not in MADE_WHEN_RUN | MEDIA_TYPES}))
def test_every_path_on_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("example", "kept"),
    [
        ("examples/dcp-timing.json", "tests/data/dcp/w4-resharded-from-8.json"),
        ("examples/mdtest.txt", "tests/data/benchmarks/mdtest-4.0-files-only-3iters.txt"),
        ("examples/ior-write-read.txt", "tests/data/benchmarks/ior-4.0-posix-fpp-write-read-2reps.txt"),
        ("examples/nemo.log", "tests/data/dcp/foreign/nemo-style.log"),
    ],
)
def test_the_examples_are_the_files_that_the_parsers_are_tested_with(example: str, kept: str) -> None:
    assert (ROOT / example).read_bytes() == (ROOT / kept).read_bytes()
