"""A place to run a plan's script: a PATH of nothing but what a test puts there, a storage, and a folder to start in."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

STAND_IN = Path(__file__).parent / "stand_in.py"
BENCHMARKS = ("mpirun", "srun", "ior", "mdtest")
TOOLS = ("awk", "cat", "cut", "df", "id", "ls", "mkdir", "mkfifo", "rm", "sort", "uname", "wc")
"""What every system has, and a script may use."""


@dataclass
class Workplace:
    """Where a script runs.

    Attributes:
        folder: All of it.
        environment: The script's.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage.mkdir()
        self.path.mkdir()
        for tool in TOOLS:
            self.link(tool)
        self.environment |= {
            "PATH": str(self.path),
            "STAND_IN_NOTES": str(self.folder / "notes"),
            "STAND_IN_STATUS": "201",
            "STAND_IN_GB_PER_SECOND": "5",
            "STAND_IN_CREATES_PER_SECOND": "5000",
        }

    @property
    def storage(self) -> Path:
        """What is under test."""
        return self.folder / "storage"

    @property
    def path(self) -> Path:
        """The one folder on the PATH."""
        return self.folder / "bin"

    def link(self, tool: str) -> None:
        """Put the system's own tool on the PATH."""
        found = shutil.which(tool)
        assert found is not None, tool
        (self.path / tool).symlink_to(found)

    def stand_in(self, *programs: str) -> None:
        """Put stand-ins on the PATH."""
        for program in programs:
            self.write(program, f'exec "{sys.executable}" -I "{STAND_IN}" {program} "$@"')

    def write(self, program: str, line: str) -> None:
        """Put a program of one line of shell on the PATH."""
        file = self.path / program
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    def start(self, script: str, *arguments: str, shell: str = "sh") -> subprocess.Popen[str]:
        """Start a script."""
        file = self.folder / "plan.sh"
        file.write_text(script, "utf-8")
        found = shutil.which(shell)
        assert found is not None
        with _no_signal_ignored():
            return subprocess.Popen(
                [found, str(file), *arguments],
                cwd=self.folder,
                env={**self.environment, **{k: v for k, v in os.environ.items() if k.startswith("OMPI_")}},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def run(self, script: str, *arguments: str, shell: str = "sh") -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        with self.start(script, *arguments, shell=shell) as started:
            out, err = started.communicate(timeout=120)
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def calls(self) -> list[list[str]]:
        """Return the calls that the stand-ins noted."""
        notes = self.folder / "notes"
        lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
        return [json.loads(line)["argv"] for line in lines]


@contextmanager
def _no_signal_ignored() -> Iterator[None]:
    """Let what is started see every signal.

    Tests that run in the background, or under nohup, ignore some; a shell cannot trap what was ignored before it.
    """
    ignored = [
        each
        for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(each) is signal.SIG_IGN
    ]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each in ignored:
            signal.signal(each, signal.SIG_IGN)
