"""A real server: `stallbudget serve` as a process of its own, on a port that the system gives it."""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

READY_WITHIN_SECONDS = 60.0
_SERVES = re.compile(r"running on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True, slots=True)
class Instance:
    """A server that answers.

    Attributes:
        port: Where, on 127.0.0.1.
        process: The server itself.
    """

    port: int
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it as a crash does, and return when it is gone."""
        self.process.kill()
        self.process.wait(timeout=READY_WITHIN_SECONDS)


@contextmanager
def running_server(database_url: str, said: list[str] | None = None, /, **settings: object) -> Iterator[int]:
    """Give the port of a server that answers, and end it; as `running_instance`."""
    with running_instance(database_url, said, **settings) as instance:
        yield instance.port


@contextmanager
def running_instance(
    database_url: str, said: list[str] | None = None, /, **settings: object
) -> Iterator[Instance]:
    """Give a server that answers, and end it unless it has ended. It makes its tables itself.

    Args:
        database_url: Where it keeps everything.
        said: Gets the lines of its log; all of them are there once it has ended.
        settings: Any other settings, by their names in small letters.
    """
    lines = [] if said is None else said
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    environment |= {"STALLBUDGET_DATABASE_URL": database_url, "STALLBUDGET_PORT": "0"}
    environment |= {f"STALLBUDGET_{name.upper()}": str(value) for name, value in settings.items()}
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        ports: queue.Queue[int | None] = queue.Queue()

        def listen() -> None:
            assert server.stderr is not None
            for line in server.stderr:
                lines.append(line)
                found = _SERVES.search(line)
                if found:
                    ports.put(int(found[1]))
            ports.put(None)

        # It reads to the end, since a full pipe would stop the server.
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            port = ports.get(timeout=READY_WITHIN_SECONDS)
            assert port is not None, "".join(lines)
            yield Instance(port, server)
        finally:
            server.terminate()
            server.wait(timeout=READY_WITHIN_SECONDS)
            listener.join(timeout=READY_WITHIN_SECONDS)
