"""Round trips of a node that is right already: `winboot join` over SSH compared with WinRM.

Both go through a relay that counts turns: how often the client sends after it has received something. For WinRM these
are its HTTP requests. SSH has no requests; over a long distance each turn costs one round trip.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from winboot_lab.cli.staging import stage
from winboot_lab.node import LabNode
from winboot_lab.up import Lab

from benchmarks import Figure, beside
from winboot import cli

_PIECE = 1 << 16


class Turns:
    """A port that leads to another one, and counts the turns of all connections, the first word included."""

    def __init__(self, to: int) -> None:
        self._to = to
        self.count = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close the relay."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            heard = threading.Event()
            heard.set()
            threading.Thread(target=self._pass, args=(client, server, heard, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, heard, False), daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, heard: threading.Event, speaks: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                if not speaks:
                    heard.set()
                elif heard.is_set():
                    heard.clear()
                    with self._lock:
                        self.count += 1
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _through(relay: Turns, inventory: Path, **connection: Any) -> Iterator[Path]:
    """The lab's inventory with another way to its one node."""
    data = yaml.safe_load(inventory.read_text(encoding="utf-8"))
    (group,) = data["groups"].values()
    (host,) = group["hosts"].values()
    host["connection"] = {**connection, "port": relay.port}
    file = inventory.with_name(f"through-{relay.port}.yaml")
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    try:
        yield file
    finally:
        relay.close()


def _ways(node: LabNode) -> dict[str, tuple[Turns, dict[str, Any]]]:
    assert node.ssh is not None
    server, http_port = node.ssh, node.endpoint.http_port
    assert http_port is not None
    ssh = {"transport": "ssh", "host_key": server.fingerprint, "user": server.user}
    return {
        "ssh": (Turns(server.port), ssh),
        "winrm": (Turns(http_port), {"scheme": "http", "auth": "ntlm"}),
    }


def _join(inventory: Path, folder: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.run(["join", "-i", str(inventory), "--report", str(folder / "report.jsonl")])
    assert code == 0, code


def measure() -> Iterator[Figure]:
    """Turns of a join that changes nothing, over both, in one run."""
    turns: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name, Lab(nodes=1, ssh=True) as lab:
        folder = Path(name)
        os.environ["WINBOOT_STATE"] = str(folder / "state")
        staged = stage(lab, folder)
        _join(staged.inventory, folder)
        for way, (relay, connection) in _ways(lab.nodes["win-1"]).items():
            with _through(relay, staged.inventory, **connection) as inventory:
                # Another port is another script, which the first run brings to the machine.
                _join(inventory, folder)
                before = relay.count
                _join(inventory, folder)
                turns[way] = relay.count - before
    note = beside([turns["ssh"]], [turns["winrm"]], "turns", "WinRM")
    yield Figure("node without a change: round trips over SSH", [turns["ssh"] / turns["winrm"]], 1.25, note)
