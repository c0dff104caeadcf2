"""The way from `winboot lab exec|break|heal` to a lab that is up: a socket next to the lab's files.

One connection is one request: a line of JSON, answered by a line of JSON. Only a user with write access to the
folder can connect; the socket has mode 0600.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from winboot.base.errors import Unreachable, UsageError
from winboot.config.source import nearest
from winboot_lab.cli.breaking import KINDS, at_console
from winboot_lab.console import run_command
from winboot_lab.up import Lab
from winboot_lab.windows.session import StandardStreams

NAME: Final = "lab.sock"
USER_DATA: Final = r"C:\user-data.ps1"
# A script that is typed is no longer.
_MOST: Final = 1 << 20

Answer = dict[str, Any]


class Control:
    """Answers requests about one lab while it is up."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        """Raises OSError where there are no such sockets, or the folder's path is too long for one."""
        self._lab = lab
        self._path = folder / NAME
        self._broken: dict[str, list[str]] = {}
        with suppress(FileNotFoundError):
            self._path.unlink()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        self._listener.listen()
        threading.Thread(target=self._accept, name="lab-control", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rwb") as stream, suppress(OSError):
            asked = json.loads(stream.readline(_MOST))
            stream.write(json.dumps(self.answer(asked)).encode() + b"\n")

    def answer(self, asked: Mapping[str, Any]) -> Answer:
        """Do the request and return its answer; a request that fails returns `problem` and `hint`."""
        nodes, name = self._lab.nodes, str(asked.get("node"))
        if asked["do"] == "heal" and not asked.get("node"):
            return self._heal(list(self._broken))
        if name not in nodes:
            meant = nearest(name, nodes)
            hint = f"Did you mean {meant!r}?" if meant else f"It has {', '.join(nodes)}."
            return {"problem": f"the lab has no machine {name}", "hint": hint}
        machine = nodes[name].machine
        match asked["do"]:
            case "exec":
                if not machine.running:
                    return {"problem": f"{name} is off", "hint": f"`winboot lab heal {name}` turns it on."}
                code, told = at_console(machine, str(asked["script"]))
                return {"code": code, "said": told}
            case "boot":
                return self._boot(name, str(asked["script"]))
            case "break":
                return self._break(name, str(asked["kind"]))
            case _:
                return self._heal([name])

    def _boot(self, name: str, script: str) -> Answer:
        """What the agent of an image does with user data; the machine then lives by itself."""
        if not self._lab.boots:
            return {"problem": "the lab is up without --boot", "hint": "`winboot lab up --boot`"}
        machine = self._lab.nodes[name].machine
        with machine.lock:
            machine.files.write(USER_DATA, script.encode("ascii"))
        pieces: list[bytes] = []
        streams = StandardStreams(b"", pieces.append, pieces.append)
        if run_command(machine, f"powershell.exe -File {USER_DATA}", streams):
            told = b"".join(pieces).decode("utf-8", "replace").strip()
            return {"problem": f"{name}: {told}", "hint": "`winboot userdata --for file` prints the text."}
        machine.live()
        return {"said": f"{name}: boots for the first time; `winboot why {name}` shows how far it is\n"}

    def _break(self, name: str, kind: str) -> Answer:
        if kind not in KINDS:
            meant = nearest(kind, KINDS)
            hint = f"Did you mean {meant!r}?" if meant else f"One of {', '.join(KINDS)}."
            return {"problem": f"nothing is called {kind}", "hint": hint}
        found = KINDS[kind]
        try:
            found.do(self._lab, self._lab.nodes[name].machine)
        except ValueError as error:
            return {"problem": f"{name}: {error}", "hint": f"Is it a node already? `winboot join -l {name}`"}
        if found.heal is None:
            return {
                "said": f"{name}: {found.says}; `winboot plan -l {name}` sees it, `winboot repair` heals it\n"
            }
        self._broken.setdefault(name, []).append(kind)
        return {"said": f"{name}: {found.says}; `winboot lab heal {name}` takes it back\n"}

    def _heal(self, names: list[str]) -> Answer:
        said = ""
        for name in names:
            for kind in reversed(self._broken.pop(name, [])):
                heal = KINDS[kind].heal
                assert heal is not None
                heal(self._lab, self._lab.nodes[name].machine)
                said += f"{name}: {kind} is taken back\n"
        return {"said": said or "nothing to take back here; `winboot repair` heals the others\n"}


def ask(folder: Path, asked: Mapping[str, Any]) -> Answer:
    """Ask the lab whose files are in this folder. Raises Unreachable where none is up, UsageError for what it refuses."""
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(folder / NAME))
            with server.makefile("rwb") as stream:
                stream.write(json.dumps(asked).encode() + b"\n")
                stream.flush()
                answer: Answer = json.loads(stream.readline())
    except (OSError, ValueError, AttributeError) as error:
        raise Unreachable(
            f"no lab of {folder} answers",
            hint="`winboot lab up` brings one up; --folder says where its files are.",
        ) from error
    if "problem" in answer:
        raise UsageError(answer["problem"], hint=answer["hint"])
    return answer
