"""A real server: `stallbudget serve` as a process of its own, on a port that the system gives it."""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

READY_WITHIN_SECONDS = 60.0
_SERVES = re.compile(r"running on http://127\.0\.0\.1:(\d+)")


@contextmanager
def running_server(database_url: str) -> Iterator[int]:
    """Give the port of a server that answers, and end it. It makes its tables itself."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STALLBUDGET_")}
    environment |= {"STALLBUDGET_DATABASE_URL": database_url, "STALLBUDGET_PORT": "0"}
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        ports: queue.Queue[int | None] = queue.Queue()
        said: list[str] = []

        def listen() -> None:
            assert server.stderr is not None
            for line in server.stderr:
                said.append(line)
                found = _SERVES.search(line)
                if found:
                    ports.put(int(found[1]))
            ports.put(None)

        # It reads to the end, since a full pipe would stop the server.
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            port = ports.get(timeout=READY_WITHIN_SECONDS)
            assert port is not None, "".join(said)
            yield port
        finally:
            server.terminate()
            server.wait(timeout=READY_WITHIN_SECONDS)
            listener.join(timeout=READY_WITHIN_SECONDS)
