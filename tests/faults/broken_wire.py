"""A wire between the service and Postgres that can be cut, moved to another server, and lose what is said on it."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path


class Loses(Enum):
    """What becomes of the next COMMIT of a change."""

    NOTHING = "nothing"
    COMMIT = "commit"
    """It never arrives."""
    ANSWER = "answer"
    """It is done, and nobody hears of it."""


class BrokenWire:
    """Takes connections on a port and hands them on to a socket.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        leads_to: The socket of the server.
        loses: What becomes of the next COMMIT of a change, and of the connection with it.
    """

    def __init__(self, leads_to: Path) -> None:
        self.leads_to = leads_to
        self.loses = Loses.NOTHING
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable"
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._take)]
        self._threads[0].start()

    def cut(self) -> None:
        """End every connection."""
        _shut(*list(self._open))

    def close(self) -> None:
        """Take no more connections, end those there are, and return when all is over."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(timeout=30)

    def _take(self) -> None:
        while True:
            try:
                service, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self.leads_to))
            except OSError:
                service.close()
                server.close()
                continue
            self._open |= {service, server}
            is_deaf = threading.Event()
            forth = threading.Thread(target=self._carry_questions, args=(service, server, is_deaf))
            back = threading.Thread(target=self._carry_answers, args=(server, service, is_deaf))
            self._threads += [forth, back]
            forth.start()
            back.start()

    def _carry_questions(
        self, service: socket.socket, server: socket.socket, is_deaf: threading.Event
    ) -> None:
        writes = False
        with contextlib.suppress(OSError):
            while piece := service.recv(65_536):
                if b"BEGIN" in piece:
                    writes = b"READ ONLY" not in piece
                if writes and self.loses is not Loses.NOTHING and b"COMMIT\0" in piece:
                    lost, self.loses = self.loses, Loses.NOTHING
                    if lost is Loses.COMMIT:
                        break
                    is_deaf.set()
                server.sendall(piece)
        _shut(service, server)

    def _carry_answers(self, server: socket.socket, service: socket.socket, is_deaf: threading.Event) -> None:
        with contextlib.suppress(OSError):
            # Deaf, it waits for the answer nevertheless: what was asked is done when the connection breaks.
            while (piece := server.recv(65_536)) and not is_deaf.is_set():
                service.sendall(piece)
        _shut(service, server)
        self._open -= {service, server}
        service.close()
        server.close()


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def broken_wire(leads_to: Path) -> Iterator[BrokenWire]:
    """Give a wire to a server's socket, whole as yet."""
    wire = BrokenWire(leads_to)
    try:
        yield wire
    finally:
        wire.close()
