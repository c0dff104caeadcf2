"""`winboot-lab-powershell`: powershell.exe of a lab machine as a program of this host.

Where `WINBOOT_LAB_CONSOLE` names the address (host:port) of a console that a running lab serves, the command runs on that
lab's machine; else on a bare machine of its own that is gone afterwards. It is what `transport: local` starts in a
rehearsal, and what a real sshd starts: as a forced command it takes the words of SSH_ORIGINAL_COMMAND.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from types import TracebackType
from typing import Final, NoReturn, Self

from winboot_lab.console import run_command
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import Session, StandardStreams

CONSOLE_VARIABLE: Final = "WINBOOT_LAB_CONSOLE"
_PIECE: Final = 1 << 16
_HEAD: Final = struct.Struct(">cI")  # what follows (o output, e error, x exit code), and its length in bytes


class ConsoleServer:
    """Runs command lines on one machine for programs of this host. One connection is one command:

    the client sends one line of JSON (the command line, the length of the standard input in bytes) and the input; it gets
    pieces of output, and at last the exit code. A client that goes away ends the command.
    """

    def __init__(self, machine: Machine, *, user: str = "Administrator") -> None:
        self._machine, self._user = machine, user
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Final = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
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
            if not self._machine.reachable():
                return
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
        client.sendall(_HEAD.pack(kind, len(data)) + data)
    except OSError as gone:
        raise BrokenPipeError from gone


def main() -> NoReturn:
    """Run the command line of this process on a lab machine; the exit code is that of the command."""
    command = os.environ.get("SSH_ORIGINAL_COMMAND") or subprocess.list2cmdline(
        ["powershell.exe", *sys.argv[1:]]
    )
    given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    address = os.environ.get(CONSOLE_VARIABLE)
    code = _elsewhere(address, command, given) if address else _here(command, given)
    sys.stdout.flush()
    # powershell.exe gives the low byte only where the system takes no more; Python would refuse a larger number.
    os._exit(code & 0xFF)


def _here(command: str, given: bytes) -> int:
    return run_command(Machine(), command, StandardStreams(given, _output, _error))


def _elsewhere(address: str, command: str, given: bytes) -> int:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        asked = json.dumps({"command": command, "input": len(given)})
        server.sendall(asked.encode("ascii") + b"\n" + given)
        with server.makefile("rb") as answer:
            while head := answer.read(_HEAD.size):
                kind, length = _HEAD.unpack(head)
                data = answer.read(length)
                if kind == b"x":
                    return int(struct.unpack(">i", data)[0])
                (_output if kind == b"o" else _error)(data)
    return 255  # the machine went away in the middle, as ssh says it


def _output(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _error(content: bytes) -> None:
    sys.stderr.buffer.write(content)
    sys.stderr.buffer.flush()


if __name__ == "__main__":
    main()
