"""The PowerShell process that serves this one: started at the first run, shared by all of them."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from winboot_lab.pwsh.stand_ins import BUILT_IN, csharp, stand_ins
from winboot_lab.windows.door import CommandSignature

_HERE: Final = Path(__file__).parent
_STARTING: Final = 120.0  # seconds: compiling the stand-ins takes some on a slow machine


class NoPowerShell(Exception):
    """There is no PowerShell at that path, or it does not start."""


class Connection:
    """One run's wire: JSON texts, one a line."""

    def __init__(self, port: int, secret: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self._socket.makefile("r", encoding="utf-8", newline="\n")
        self._socket.sendall(f"{secret}\n".encode())

    def send(self, message: Any) -> None:
        """One JSON text."""
        text = json.dumps(message, separators=(",", ":"))
        self._socket.sendall(f"{text}\n".encode())

    def receive(self) -> Any:
        """The next one. Raises NoPowerShell when the other side is gone."""
        line = self._reader.readline()
        if not line:
            raise NoPowerShell("PowerShell ended in the middle of a run")
        return json.loads(line)

    def close(self) -> None:
        """Let go of it."""
        self._reader.close()
        self._socket.close()


class Process:
    """A PowerShell at work. It ends with this process, or when closed."""

    def __init__(self, path: str, commands: Iterable[CommandSignature]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="winboot-lab-")
        self._secret = secrets.token_hex(16)
        folder = Path(self._folder.name)
        files = {
            "Bridge.cs": (_HERE / "Bridge.cs").read_text(encoding="utf-8"),
            "StandIns.cs": csharp(commands),
            "names.txt": "\n".join(stand_ins()),
            "gone.txt": "\n".join(BUILT_IN),
            "secret.txt": self._secret,
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        words = ["-NoProfile", "-NonInteractive", "-File", str(_HERE / "host.ps1"), "-Folder", str(folder)]
        environment = {**os.environ, "POWERSHELL_TELEMETRY_OPTOUT": "1", "POWERSHELL_UPDATECHECK": "Off"}
        try:
            self._process = subprocess.Popen(
                [path, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        except OSError as error:
            raise NoPowerShell(f"{path} cannot be started: {error.strerror}") from error
        self._port = self._wait()

    def _wait(self) -> int:
        """The port it listens on."""
        assert self._process.stdout is not None
        timer = threading.Timer(_STARTING, self._process.kill)
        timer.start()
        said: list[str] = []
        try:
            for line in self._process.stdout:
                text = line.decode("utf-8", "replace").rstrip()
                if text.startswith("listening "):
                    return int(text.removeprefix("listening "))
                said.append(text)
        finally:
            timer.cancel()
        self._process.wait()
        raise NoPowerShell("\n".join(["it did not start:", *said[-30:]]))

    def connect(self) -> Connection:
        """A wire for one run."""
        return Connection(self._port, self._secret)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()
