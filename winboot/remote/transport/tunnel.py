"""A way to a machine that a command opens: SSM port forwarding, Azure Bastion, `ssh -L`, `kubectl port-forward`.

winboot picks a free port on loopback, starts the command with it, waits until something listens there, and talks to
127.0.0.1 as if it were the machine. Host names for TLS, Kerberos and host keys stay those of the machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from winboot.base.errors import Unreachable, UsageError
from winboot.base.secret import Secret
from winboot.config.inventory import Connection
from winboot.remote.transport.base import Probe, Transport, nobody_waits

LOOPBACK: Final = "127.0.0.1"
_LOOK_S: Final = 0.05
_END_S: Final = 5.0
_LAST_WORDS: Final = 2000
_TABLE: Final = Path("/proc/net/tcp")


class Tunnel:
    """A running command and the port that it forwards. `close` ends it by its process id."""

    def __init__(self, command: str, *, host: str, port: int, name: str, wait_s: float) -> None:
        """Start the command and wait until its port answers, at most `wait_s` seconds. Raises Unreachable."""
        self._name = name
        self.port: Final = _free_port()
        values = {"local_port": str(self.port), "host": host, "port": str(port), "name": name}
        words = [_filled(word, values) for word in split(command, name)]
        self._said = b""
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            raise Unreachable(
                f"{name}: the tunnel's command {words[0]!r} cannot be started ({error.strerror})",
                hint="Check `connection.tunnel` in the inventory.",
                node=name,
            ) from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._await(wait_s)

    @property
    def ended(self) -> bool:
        """Whether the command has ended by itself."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the command, politely first. Never raises."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)
        self._reader.join(_END_S)
        if self._process.stdout is not None:
            with suppress(OSError):
                self._process.stdout.close()

    def _await(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if owners := _listeners(self.port):
                return self._refuse_strangers(owners)
            time.sleep(_LOOK_S)
        ended = self._process.poll()
        self.close()
        said = self._said.decode("utf-8", errors="replace").strip()
        what = f"ended with code {ended}" if ended is not None else f"opened no port within {seconds:.0f} s"
        raise Unreachable(
            f"{self._name}: the tunnel's command {what}" + (f": {said}" if said else ""),
            hint="Run the command of `connection.tunnel` by hand; it must forward {local_port} on 127.0.0.1.",
            node=self._name,
        )

    def _refuse_strangers(self, owners: set[int]) -> None:
        strangers = owners - {0, os.geteuid()}
        if not strangers:
            return
        self.close()
        raise Unreachable(
            f"{self._name}: the user {min(strangers)} of this computer listens at the tunnel's port {self.port}",
            hint="Another user took the port before the tunnel's command did. Run the command again; if it is"
            " refused again, look for that user's program with `ss -ltnpe`.",
            node=self._name,
        )

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            while piece := os.read(self._process.stdout.fileno(), 4096):
                self._said = (self._said + piece)[-_LAST_WORDS:]


class TunnelledTransport(Transport):
    """A transport through a tunnel: both are opened on first use, and closed together."""

    def __init__(
        self, connection: Connection, make: Callable[[tuple[str, int] | None], Transport], *, name: str
    ) -> None:
        self._connection = connection
        self._make = make
        self._name = name
        self._open: tuple[Tunnel, Transport] | None = None
        self.on_quiet = nobody_waits

    def run(
        self, script: str, arguments: Mapping[str, object], secrets: Mapping[str, Secret]
    ) -> Iterator[str]:
        """See `Transport.run`."""
        inner = self._inner()
        inner.on_quiet = self.on_quiet
        return inner.run(script, arguments, secrets)

    def probe(self) -> Probe:
        """See `Transport.probe`."""
        return self._inner().probe()

    def close(self) -> None:
        """See `Transport.close`."""
        opened, self._open = self._open, None
        if opened is not None:
            tunnel, inner = opened
            inner.close()
            tunnel.close()

    def interrupt(self) -> None:
        """See `Transport.interrupt`."""
        opened = self._open
        if opened is not None:
            opened[1].interrupt()

    def _inner(self) -> Transport:
        if self._open is not None and not self._open[0].ended:
            return self._open[1]
        self.close()
        tunnel = _opened(self._connection, self._name)
        self._open = (tunnel, self._make((LOOPBACK, tunnel.port)))
        return self._open[1]


@contextmanager
def through(connection: Connection, *, name: str) -> Iterator[tuple[str, int]]:
    """A tunnel for one look: the address that leads to the machine. Raises Unreachable and UsageError."""
    tunnel = _opened(connection, name)
    try:
        yield LOOPBACK, tunnel.port
    finally:
        tunnel.close()


def _opened(way: Connection, name: str) -> Tunnel:
    assert way.tunnel is not None
    return Tunnel(way.tunnel, host=way.host, port=way.port_number, name=name, wait_s=way.connect_timeout_s)


def split(command: str, name: str) -> list[str]:
    """The words of a command as a POSIX shell would read them; no shell runs. Raises UsageError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"{name}: connection.tunnel is not a command line ({error})", hint="Check its quotes.", node=name
        ) from error
    if not words or not any("{local_port}" in word for word in words):
        raise UsageError(
            f"{name}: connection.tunnel does not contain {{local_port}}",
            hint="The command must forward the port that winboot picks, for example"
            " `ssh -N -L {local_port}:{host}:{port} jump.example`.",
            node=name,
        )
    return words


def _filled(word: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        word = word.replace(f"{{{key}}}", value)
    return word


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _listeners(port: int) -> set[int]:
    """The ids of the users that listen at this port; 0 (root) where the system has no table of them."""
    # A bind shows it without our own connection: a forwarder may take one for the first use of the tunnel.
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return _owners(port) if _TABLE.exists() else {0}
    return set()


def _owners(port: int) -> set[int]:
    # Linux, net/ipv4/tcp_ipv4.c, get_tcp4_sock: the second word is the local address and port in hex, the fourth the state
    # (0A listens), and the eighth the result of sock_i_uid.
    tables = [table for table in (_TABLE, _TABLE.with_name("tcp6")) if table.exists()]
    rows = [row.split() for table in tables for row in table.read_text("ascii").splitlines()[1:]]
    return {int(row[7]) for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
