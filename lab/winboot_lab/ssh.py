"""sshd on a lab machine: password and key logins, one command for each channel, as Win32-OpenSSH serves them.

The command line goes to the account's default shell on Windows; here it goes to `console.run_command`, which starts
powershell.exe or another program of the machine. A client that goes away ends nothing that runs
(PowerShell/Win32-OpenSSH issue 1751): a program ends when it is killed or cannot write any more.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import logging
import queue
import socket
import threading
from types import TracebackType
from typing import Final, Self

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

from winboot_lab.console import run_command
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.session import StandardStreams

logging.getLogger("paramiko").addHandler(logging.NullHandler())
_PIECE: Final = 1 << 16


class SshServer:
    """One machine's sshd on a free port of loopback. Accepts while the machine is reachable."""

    def __init__(
        self,
        machine: Machine,
        *,
        user: str,
        password: str,
        keys: tuple[paramiko.PKey, ...] = (),
        host_key: paramiko.PKey | None = None,
    ) -> None:
        self._machine = machine
        self.user, self.password, self.keys = user, password, keys
        self.host_key = host_key or paramiko.ECDSAKey.generate()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: Final[int] = self._listener.getsockname()[1]
        self._open: set[paramiko.Transport] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, name=f"sshd {machine.label}", daemon=True)
        self._thread.start()

    @property
    def fingerprint(self) -> str:
        """The host key's fingerprint, as `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(self.host_key.asbytes()).digest()
        return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")

    def cut(self) -> None:
        """Break every connection, as a restart or a lost network does."""
        with self._lock:
            gone, self._open = self._open, set()
        for transport in gone:
            transport.close()

    def close(self) -> None:
        """Accept no further connections and break the open ones."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._thread.join(5)

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
            if self._machine.reachable():
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
            else:
                client.close()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(client)
        transport.add_server_key(self.host_key)
        with self._lock:
            self._open.add(transport)
        try:
            transport.start_server(server=_Gate(self, client.getpeername()), event=threading.Event())
            held: list[paramiko.Channel] = []
            while transport.is_active():
                # A channel is served when it asks for a command; until then paramiko itself holds it weakly only.
                held = [
                    channel for channel in (*held, transport.accept(1.0)) if channel and not channel.closed
                ]
        except (paramiko.SSHException, EOFError, OSError):
            pass
        finally:
            transport.close()
            with self._lock:
                self._open.discard(transport)

    def run(self, channel: paramiko.Channel, command: str, peer: tuple[str, int]) -> None:
        """One command behind a channel: input to its end, then output as it falls, then the exit code. `peer` is the client.

        The connection is in its environment (setup_session_env in w32-doexec.c of PowerShell/openssh-portable), with
        the machine's own address, whatever loopback port of this host leads to it.
        """
        given = b""
        client, client_port = peer
        own = self._machine.network.lan.address
        connection = {"SSH_CONNECTION": f"{client} {client_port} {own} 22"}
        with contextlib.suppress(OSError, EOFError):
            while piece := channel.recv(_PIECE):
                given += piece
        pump = _Pump(channel)
        code = run_command(
            self._machine,
            command,
            StandardStreams(given, pump.output, pump.error),
            user=self.user,
            started=lambda session: session.environment.update(connection),
        )
        pump.finish(code)


class _Gate(paramiko.ServerInterface):
    """The accounts that may log in, and the requests that a channel may make."""

    def __init__(self, server: SshServer, peer: tuple[str, int]) -> None:
        self._server = server
        self._peer = peer

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password"

    def check_auth_password(self, username: str, password: str) -> int:
        fits = username.lower() == self._server.user.lower() and password == self._server.password
        return AUTH_SUCCESSFUL if fits else AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = any(key.asbytes() == each.asbytes() for each in self._server.keys)
        fits = username.lower() == self._server.user.lower() and known
        return AUTH_SUCCESSFUL if fits else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind == "session":
            return OPEN_SUCCEEDED
        return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        text = command.decode("utf-8")
        threading.Thread(target=self._server.run, args=(channel, text, self._peer), daemon=True).start()
        return True


class _Pump:
    """Sends what a program writes, in order, from a thread of its own: the machine's lock is held while it writes."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._said: queue.SimpleQueue[tuple[bool, bytes] | None] = queue.SimpleQueue()
        self._broken = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def output(self, content: bytes) -> None:
        """Standard output. Raises BrokenPipeError when the client is gone."""
        self._put(False, content)

    def error(self, content: bytes) -> None:
        """Standard error."""
        self._put(True, content)

    def finish(self, code: int) -> None:
        """Say how it ended, after all output, and close."""
        self._said.put(None)
        self._thread.join(60)
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.send_exit_status(code & 0xFFFFFFFF)
            self._channel.close()

    def _put(self, error: bool, content: bytes) -> None:
        if self._broken:
            raise BrokenPipeError
        self._said.put((error, content))

    def _send(self) -> None:
        while (piece := self._said.get()) is not None:
            error, content = piece
            try:
                (self._channel.sendall_stderr if error else self._channel.sendall)(content)
            except (OSError, EOFError, paramiko.SSHException):
                self._broken = True
