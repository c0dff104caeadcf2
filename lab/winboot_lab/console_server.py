"""A machine's console for programs of this host: what `winboot-lab-powershell` speaks to."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from types import TracebackType
from typing import Final, Self

from winboot_lab.console import run_command
from winboot_lab.shell import HEAD
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import Session, StandardStreams

_LOOK_S: Final = 0.01


class ConsoleServer:
    """Runs command lines on one machine for programs of this host. One connection is one command:

    the client sends one line of JSON (the command line, the length of the standard input in bytes) and the input.
    It receives pieces of output, and at last the exit code. A client that goes away ends the command.
    """

    def __init__(self, machine: Machine, *, user: str = "Administrator") -> None:
        self._machine, self._user = machine, user
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Final = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no further connections."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as heard, contextlib.suppress(OSError):
            asked = json.loads(heard.readline())
            streams = StandardStreams(
                heard.read(asked["input"]),
                lambda data: _send(client, b"o", data),
                lambda data: _send(client, b"e", data),
            )
            # A user at the machine's console waits while it restarts.
            while not self._machine.running and not self._closed.wait(_LOOK_S):
                pass
            code = run_command(
                self._machine,
                asked["command"],
                streams,
                user=self._user,
                started=lambda session: _interrupt_when_gone(client, session),
            )
            _send(client, b"x", struct.pack(">i", code))


def _interrupt_when_gone(client: socket.socket, session: Session) -> None:
    def wait() -> None:
        with contextlib.suppress(OSError):
            if not client.recv(1):
                session.interrupt()

    threading.Thread(target=wait, daemon=True).start()


def _send(client: socket.socket, kind: bytes, data: bytes) -> None:
    try:
        client.sendall(HEAD.pack(kind, len(data)) + data)
    except OSError as gone:
        raise BrokenPipeError from gone
