"""`stallbudget serve` as a process that a test can signal, and whose log it can wait for."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 60.0
"""How long a test waits for what must happen."""


class Served:
    """A server process, and what it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._listen)
        self._reader.start()
        self.port = 0
        self.url = ""

    def starts(self) -> None:
        """Wait until it answers."""
        self.port = int(self.until(r"running on http://127\.0\.0\.1:(\d+)")[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def until(self, pattern: str) -> "re.Match[str]":
        """Wait until it says something."""
        while True:
            found = re.search(pattern, self._lines.get(timeout=SECONDS))
            if found:
                return found

    def is_told_to_end(self) -> None:
        """Send it what `docker stop` sends."""
        self.process.send_signal(signal.SIGTERM)

    def ends(self) -> int:
        """Wait for its end, and return how it ended."""
        status = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return status


@contextmanager
def served(database_url: str, **settings: object) -> Iterator[Served]:
    """Give a server process that answers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    environment |= {"STALLBUDGET_DATABASE_URL": database_url, "STALLBUDGET_PORT": "0"}
    environment |= {f"STALLBUDGET_{name.upper()}": str(value) for name, value in settings.items()}
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "serve"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        server = Served(process)
        try:
            server.starts()
            yield server
        finally:
            process.kill()
            server.ends()
