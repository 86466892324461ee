"""Replays the image and the compose file without Docker.

Every RUN line of the Dockerfile in a clean folder; then, as a user who may write to nothing of it, the image by itself
on SQLite, and what the compose file runs: the migrations, two services over one Postgres, the image's health check, the
documented first key.

`make container` runs it. It installs from the package registry, so it is no part of `make test`.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy.engine import make_url

from tests.api.asking import SYNC
from tests.conftest import own_postgres, postgres_tools
from tests.free_port import free_port

ROOT = Path(__file__).parent.parent
USER = 10001
"""Whom the image runs as."""
READY_WITHIN_SECONDS = 30.0


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Return the instructions, each with what follows it, in order."""
    text = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in found]


def run_lines(dockerfile: str) -> list[str]:
    """Return the commands of the RUN instructions, in order."""
    return [rest for word, rest in instructions(dockerfile) if word == "RUN"]


def copied(dockerfile: str) -> list[str]:
    """Return what the first stage copies from the checkout."""
    first = dockerfile.split("\nFROM ")[1]
    return [name for line in re.findall(r"^COPY (.*)$", first, re.MULTILINE) for name in line.split()[:-1]]


def of_last_stage(dockerfile: str, word: str) -> list[str]:
    """Return what follows an instruction of the last stage."""
    last = "FROM " + dockerfile.split("\nFROM ")[-1]
    return [rest for found, rest in instructions(last) if found == word]


def health_command(dockerfile: str) -> list[str]:
    """Return the command of the health check."""
    (check,) = of_last_stage(dockerfile, "HEALTHCHECK")
    command: list[str] = json.loads(check.partition("CMD ")[2])
    return command


def services_of(compose: str) -> dict[str, Any]:
    """Return the services of a compose file."""
    services: dict[str, Any] = yaml.safe_load(compose)["services"]
    return services


def first_key_command(page: str) -> list[str]:
    """Return what the page has the service run to make the first key."""
    (found,) = re.findall(
        r"^docker compose run --rm service (stallbudget key create .*)$", page, re.MULTILINE
    )
    return shlex.split(found)


class Image:
    """The image's files in a folder, run as its user as far as we may.

    Args:
        top: Where they are, in place of `/opt` and `/data`.
        dockerfile: What they were made by.
    """

    def __init__(self, top: Path, dockerfile: str) -> None:
        self.top = top
        self.data = top / "data"
        self.scratch = top / "scratch"
        self.scratch.mkdir()
        self.said = (top / "said").open("wb")
        self._environment = {"HOME": "/nonexistent", "TMPDIR": str(self.scratch)}
        for line in of_last_stage(dockerfile, "ENV"):
            for pair in shlex.split(line):
                name, _, value = pair.partition("=")
                value = value.replace("/opt/", f"{top}/").replace("////data/", f"///{self.data}/")
                self._environment[name] = value.replace("$PATH", os.environ["PATH"])
        if os.geteuid() == 0:
            for folder in (self.data, self.scratch):
                os.chown(folder, USER, USER)
        for place in (top / "stallbudget").rglob("*"):
            if not place.is_symlink():
                place.chmod(place.stat().st_mode & ~0o222)

    def start(self, command: list[str], **environment: str) -> "subprocess.Popen[str]":
        """Start a command of the image. What it says goes to `said`."""
        as_user: dict[str, Any] = (
            {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        return subprocess.Popen(
            [str(self.top / "stallbudget/bin" / command[0]), *command[1:]],
            cwd="/",
            env=self._environment | environment,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            **as_user,
        )

    def run(self, command: list[str], **environment: str) -> tuple[int, str]:
        """Run a command of the image to its end, and return its status and what it printed."""
        with self.start(command, **environment) as process:
            printed, _ = process.communicate(timeout=60)
            return process.returncode, printed

    def files(self) -> dict[str, tuple[int, float]]:
        """Return the size and the time of each installed file."""
        return {
            str(place): (place.lstat().st_size, place.lstat().st_mtime)
            for place in (self.top / "stallbudget").rglob("*")
        }


def main() -> None:
    """Build, migrate, serve and ask; exit with 1 where something is not as it should be."""
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    check_schema()
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        top.chmod(0o755)
        build(top, dockerfile)
        image = Image(top, dockerfile)
        before = image.files()
        try:
            serve_alone(image, dockerfile)
            with own_postgres() as url, reachable_by_tcp(url) as port:
                serve_as_composed(image, dockerfile, url, port)
        except AssertionError:
            print((top / "said").read_text("utf-8"))
            raise
        finally:
            image.said.close()
        assert image.files() == before, "an installed file was written to"
        assert not list(image.scratch.iterdir()), "something was left in the temporary folder"
    print("container: the compose file is valid, and what it runs installs, migrates, serves and ends")


def check_schema() -> None:
    """Hold the compose file against the schema of such files."""
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


def build(top: Path, dockerfile: str) -> None:
    """Run the Dockerfile's RUN lines on what it copies."""
    source = top / "src"
    source.mkdir()
    for name in copied(dockerfile):
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, source / name)
    python = interpreter()
    for line in run_lines(dockerfile):
        command = line.replace("/opt/", f"{top}/")
        if command.startswith("python "):
            command = python + command.removeprefix("python")
        print("replay:", line, flush=True)
        subprocess.run(command, shell=True, cwd=source, check=True, stdout=subprocess.DEVNULL)  # noqa: S602


def interpreter() -> str:
    """Return a Python that whoever is to run the image may run too."""
    if os.geteuid() != 0:
        return sys.executable
    for found in (os.path.realpath(sys.executable), shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        if found is not None and _is_for_all(Path(found)) and _can_make_environments(found):
            return found
    raise SystemExit("container: no Python 3.11 or newer, with venv, that others than root may run")


def _is_for_all(program: Path) -> bool:
    return all(place.stat().st_mode & stat.S_IXOTH for place in (program, *program.parents))


def _can_make_environments(python: str) -> bool:
    check = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", check], check=False, stderr=subprocess.DEVNULL).returncode == 0


@contextmanager
def reachable_by_tcp(url: str) -> Iterator[int]:
    """Give a port of the loopback that leads to a Postgres with a socket that only its own user may open."""
    place = f"{make_url(url).query['host']}/.s.PGSQL.{make_url(url).port or 5432}"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def carry(source: socket.socket, target: socket.socket) -> None:
            try:
                while piece := source.recv(65_536):
                    target.sendall(piece)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def accept() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                far = socket.socket(socket.AF_UNIX)
                far.connect(place)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        port: int = listener.getsockname()[1]
        yield port


def composed_environment(service: dict[str, Any], port: int) -> dict[str, str]:
    """Return the environment of a composed service, with its Postgres at a port of this machine."""
    return {
        name: re.sub(r"\$\{\w+:\?[^}]*\}", "secret", value).replace("@postgres:5432/", f"@127.0.0.1:{port}/")
        for name, value in service["environment"].items()
    }


def serve_as_composed(image: Image, dockerfile: str, url: str, port: int) -> None:
    """Run what the compose file runs, and use it."""
    services = services_of((ROOT / "docker-compose.yml").read_text("utf-8"))
    subprocess.run(
        [postgres_tools() / "psql", url, "--quiet", "--command", "CREATE ROLE stallbudget LOGIN", "--command",
         "CREATE DATABASE stallbudget OWNER stallbudget"],
        check=True,
    )  # fmt: skip
    migrating = composed_environment(services["migrate"], port)
    for _ in range(2):
        status, _printed = image.run(services["migrate"]["command"], **migrating)
        assert status == 0, "the migrations failed"
    environment = composed_environment(services["service"], port)
    status, key = image.run(first_key_command((ROOT / "deploy/README.md").read_text("utf-8")), **environment)
    assert status == 0, "no key was made"
    (command,) = of_last_stage(dockerfile, "CMD")
    with ExitStack() as ends:
        ports = [free_port() for _ in range(services["service"]["deploy"]["replicas"])]
        for each in ports:
            ends.enter_context(
                served(image, dockerfile, json.loads(command), {**environment, "STALLBUDGET_PORT": str(each)})
            )
        assert ask(ports[0], "/v1/scenarios")[0] == 401
        made = ask(ports[0], "/v1/scenarios", key, {"name": "a", "spec": SYNC})
        assert made[0] == 201, made
        read = ask(ports[-1], f"/v1/scenarios/{made[1]['id']}", key)
        assert read == (200, made[1]), read


def serve_alone(image: Image, dockerfile: str) -> None:
    """Run the image with nothing said but that it needs keys: on SQLite, in its volume."""
    (command,) = of_last_stage(dockerfile, "CMD")
    environment = {"STALLBUDGET_ACCESS": "keys", "STALLBUDGET_PORT": str(free_port())}
    with served(image, dockerfile, json.loads(command), environment):
        assert ask(int(environment["STALLBUDGET_PORT"]), "/v1/scenarios")[0] == 401
    assert [place.name for place in image.data.iterdir()] == ["stallbudget.db"]


@contextmanager
def served(image: Image, dockerfile: str, command: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Run a service until the image's health check passes, and then as long as the block takes."""
    check = health_command(dockerfile)
    assert image.run(check, **environment)[0] != 0, "the health check passes where nothing runs"
    with image.start(command, **environment) as process:
        try:
            deadline = time.monotonic() + READY_WITHIN_SECONDS
            while image.run(check, **environment)[0] != 0:
                assert process.poll() is None, f"the service ended with {process.returncode}"
                assert time.monotonic() < deadline, f"not healthy within {READY_WITHIN_SECONDS:g} s"
                time.sleep(0.25)
            yield
        finally:
            process.terminate()
            ended = process.wait(60)
        assert ended in (0, -signal.SIGTERM), f"the service ended with {ended}"


def ask(port: int, path: str, key: str = "", body: Any = None) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    """Return the status and the JSON of an answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data=None if body is None else json.dumps(body).encode()
    )
    if key:
        request.add_header("Authorization", f"Bearer {key.strip()}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


if __name__ == "__main__":
    main()
