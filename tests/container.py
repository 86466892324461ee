"""Replays the Dockerfile without Docker: every RUN line in a clean folder, then the image's command.

`make container` runs it. It installs from the package registry, so it is no part of `make test`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.free_port import free_port

ROOT = Path(__file__).parent.parent


def run_lines(dockerfile: str) -> list[str]:
    """Return the commands of the RUN instructions, in order."""
    joined = dockerfile.replace("\\\n", " ")
    return [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]


def copied(dockerfile: str) -> list[str]:
    """Return what the first stage copies from the checkout."""
    first = dockerfile.split("\nFROM ")[1]
    return [name for line in re.findall(r"^COPY (.*)$", first, re.MULTILINE) for name in line.split()[:-1]]


def main() -> None:
    """Build, migrate, serve and ask the service whether it is ready; exit with 1 where it is not."""
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    subprocess.run(
        [
            Path(sys.executable).with_name("check-jsonschema"),
            "--builtin-schema",
            "vendor.compose-spec",
            "docker-compose.yml",
        ],
        cwd=ROOT,
        check=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        top, source = Path(folder), Path(folder, "src")
        source.mkdir()
        for name in copied(dockerfile):
            place = ROOT / name
            if place.is_dir():
                shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(place, source / name)
        for line in run_lines(dockerfile):
            command = line.replace("/opt/", f"{top}/")
            if command.startswith("python "):
                command = sys.executable + command.removeprefix("python")
            print("replay:", line, flush=True)
            subprocess.run(command, shell=True, cwd=source, check=True, stdout=subprocess.DEVNULL)  # noqa: S602
        serve(top)
    print("container: the compose file is valid, and the image's commands install and serve")


def serve(top: Path) -> None:
    """Run the image's command away from the checkout, until it says that it is ready."""
    port = free_port()
    elsewhere = top / "elsewhere"
    elsewhere.mkdir()
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STALLBUDGET_", "PYTHON"))
        },
        "STALLBUDGET_PORT": str(port),
        "STALLBUDGET_DATABASE_URL": f"sqlite:///{top}/container.db",
    }
    with subprocess.Popen(
        [top / "stallbudget/bin/stallbudget", "serve"], cwd=elsewhere, env=environment
    ) as server:
        try:
            for _ in range(120):
                if server.poll() is not None:
                    raise SystemExit(f"container: the server ended with {server.returncode}")
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2)
                except urllib.error.URLError:
                    time.sleep(0.25)
                else:
                    return
            raise SystemExit("container: the server was not ready within 30 s")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
