"""The compose file and the Dockerfile, as far as they can be held to account without Docker.

`make container` goes further: it replays the Dockerfile's commands, which takes the package registry.
"""

import subprocess
import sys
from pathlib import Path

import yaml

from tests.container import ROOT, copied, run_lines

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_the_compose_file_is_valid() -> None:
    command = [
        str(Path(sys.executable).with_name("check-jsonschema")),
        "--builtin-schema",
        "vendor.compose-spec",
        str(ROOT / "docker-compose.yml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_waits_for_a_healthy_postgres_and_is_given_its_address() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    assert services["service"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert "@postgres:5432/" in services["service"]["environment"]["STALLBUDGET_DATABASE_URL"]
    assert services["postgres"]["healthcheck"]["test"]


def test_the_image_is_built_from_files_that_are_here_and_not_ignored() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").split() if line[0] == "!"}
    assert {name.rstrip("/") for name in copied(DOCKERFILE)} == let_through
    assert all((ROOT / name).exists() for name in let_through)


def test_every_package_of_the_image_comes_from_a_lock_file_or_from_the_checkout() -> None:
    installs = [line for line in run_lines(DOCKERFILE) if " pip install " in line]
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
