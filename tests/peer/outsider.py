"""What may stand at a machine's address instead of its WinRM: nothing, silence, a redirect, or an answer that drips."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

# How long a dripping answer takes over one byte, in seconds.
DRIP_S: Final = 0.2


class Gone:
    """A port without a listener, which no other program can take."""

    asked = False

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


class _Answering(socketserver.ThreadingTCPServer):
    """Listens, and lets `answer` deal with each connection in a thread of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port: int = self.server_address[1]
        self.closing = threading.Event()
        self.asked = False
        threading.Thread(target=self.serve_forever, args=(0.05,), name="outsider", daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        """One request has been read."""
        raise NotImplementedError

    def close(self) -> None:
        """End all connections."""
        self.closing.set()
        self.shutdown()
        self.server_close()


class _Connection(socketserver.BaseRequestHandler):
    server: _Answering

    def handle(self) -> None:
        with suppress(OSError):
            while self.request.recv(1 << 16):
                self.server.asked = True
                self.server.answer(self.request)


class Deaf(_Answering):
    """Takes every connection and never says a word."""

    def answer(self, connection: socket.socket) -> None:
        self.closing.wait()


class Redirecting(_Answering):
    """Sends everybody to another machine."""

    def answer(self, connection: socket.socket) -> None:
        where = b"Location: http://127.0.0.1:9/wsman"
        connection.sendall(b"HTTP/1.1 307 Moved\r\n" + where + b"\r\nContent-Length: 0\r\n\r\n")


class Slow(_Answering):
    """Answers at once, and then a byte now and then: no byte is late, but the answer never ends."""

    def answer(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not self.closing.wait(DRIP_S):
            connection.sendall(b"x")


Outsider = Gone | _Answering
OUTSIDERS: Final[Mapping[str, type[Outsider]]] = {
    "gone": Gone,
    "deaf": Deaf,
    "redirecting": Redirecting,
    "slow": Slow,
}
