"""A genuine sshd on loopback, whose only command is a lab machine's powershell.exe."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
KEYGEN = shutil.which("ssh-keygen")
needs_sshd = pytest.mark.skipif(
    SSHD is None or KEYGEN is None,
    reason="no sshd: apt-get install --no-install-recommends openssh-server",
)


def new_key(file: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A key pair made by ssh-keygen; the private key's file."""
    assert KEYGEN is not None
    subprocess.run([KEYGEN, "-q", "-t", kind, "-N", passphrase, "-f", str(file)], check=True)
    return file


def fingerprint(file: Path) -> str:
    """As ssh-keygen says it."""
    assert KEYGEN is not None
    said = subprocess.run([KEYGEN, "-lf", str(file)], check=True, capture_output=True, text=True).stdout
    return said.split()[1]


class Sshd:
    """The server, its keys and its port; `start` and `stop` as often as a test likes."""

    def __init__(
        self, folder: Path, command: Path, environment: Mapping[str, str], **options: object
    ) -> None:
        self.user = getpass.getuser()
        self.host_key = new_key(folder / "host")
        self.key = new_key(folder / "user")
        (folder / "authorized").write_text((folder / "user.pub").read_text())
        self.port = _free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.host_key,
            "AuthorizedKeysFile": folder / "authorized",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "yes",
            "PermitRootLogin": "yes",
            "ForceCommand": command,
            "AcceptEnv": "none",
            "LogLevel": "ERROR",
            **options,
        }
        words = " ".join(f'{name}="{value}"' for name, value in environment.items())
        text = "".join(f"{name} {value}\n" for name, value in lines.items()) + f"SetEnv {words}\n"
        (folder / "sshd_config").write_text(text)

    def start(self) -> None:
        """Start it and wait until its port answers."""
        assert SSHD is not None
        Path("/run/sshd").mkdir(exist_ok=True)  # Debian's build wants it
        config = str(self._folder / "sshd_config")
        self._process = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError("sshd did not start")

    def stop(self) -> None:
        """End it; connections that are open live on, as with every sshd."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


@contextlib.contextmanager
def serving(sshd: Sshd) -> Iterator[Sshd]:
    """The server, up."""
    sshd.start()
    try:
        yield sshd
    finally:
        sshd.stop()


class CuttingRelay:
    """A port that passes everything on to another one, and breaks the connection when `cut` says so.

    `cut` receives the number of pieces from the server so far, over all connections.
    """

    def __init__(self, to: int, cut: Callable[[int], bool]) -> None:
        self._to, self._cut = to, cut
        self.pieces = 0
        self.cuts = 0
        self.connections = 0
        self.heard = bytearray()  # everything that passed, in either direction
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingRelay:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                client.close()
                continue
            pair = (client, server)
            threading.Thread(target=self._pass, args=(client, server, pair, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, pair, True), daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, pair: tuple[socket.socket, ...], counted: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(16384):
                self.heard += data
                if counted and self._due():
                    break
                target.sendall(data)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _due(self) -> bool:
        with self._lock:
            self.pieces += 1
            due = self._cut(self.pieces)
            self.cuts += due
            return due


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
