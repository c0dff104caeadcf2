"""Endpoints with canned answers, in a process of their own: the wire is real, and no engine is in a figure.

A look is answered with the events of a node that is right. With a latency model each request takes a round trip longer,
a new shell and a pipeline what a real host takes for them.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from winboot_lab.wsman.endpoint import Endpoint, Settings
from winboot_lab.wsman.executor import Emit, Ended
from winboot_lab.wsman.farm import Farm
from winboot_lab.wsman.faults import Delay

USER: Final = "Administrator"
PASSWORD: Final = "bench"
# What a real host adds, in seconds (facts/winrm.md: 20 ms of round trip, 400 ms for a shell, 50 ms for a pipeline).
_ROUND_TRIP, _SHELL, _PIPELINE = 0.02, 0.4, 0.05
_ACTIONS: Final = {
    "Create": _ROUND_TRIP + _SHELL,
    "Command": _ROUND_TRIP + _PIPELINE,
    "Receive": _ROUND_TRIP,
    "Send": _ROUND_TRIP,
    "Signal": _ROUND_TRIP,
    "Delete": _ROUND_TRIP,
}
_ALWAYS: Final = 10**9
_MODULE: Final = json.dumps({"changed": False, "ping": "pong"})


class Gate:
    """Where looks wait without an end, and are counted."""

    def __init__(self) -> None:
        self.waiting = 0
        self._lock = threading.Lock()

    def wait(self, cancelled: Callable[[], bool]) -> None:
        """Wait until the caller cancels the look."""
        with self._lock:
            self.waiting += 1
        while not cancelled():
            time.sleep(0.2)


@dataclass(frozen=True, slots=True)
class Canned:
    """A machine that needs no change. A script without a RunId is an Ansible task. `gate` holds back the answer of each
    look."""

    steps: tuple[str, ...]
    gate: Gate | None = None

    def run(
        self, script: str, parameters: Mapping[str, object], emit: Emit, cancelled: Callable[[], bool]
    ) -> Ended:
        """See `Executor.run`."""
        if self.gate is not None:
            self.gate.wait(cancelled)
        if "RunId" not in parameters:
            emit("output", _MODULE)
            return Ended()
        for line in events(str(parameters["RunId"]), self.steps):
            emit("output", line)
        return Ended()


def events(run: str, steps: tuple[str, ...]) -> Iterator[str]:
    """What the script of a node says that is right, in the form of New-EventLine (lib/drive.ps1)."""
    base: dict[str, Any] = {"v": 1, "run": run}
    who = {"boot_id": "1", "smbios_uuid": "u", "build": "20348.2227", "computer_name": "WIN-LAB", "fence": 3}
    yield json.dumps(base | {"event": "run", "seq": 1, "node_ip": "10.0.0.1"} | who)
    for seq, step in enumerate(steps, 2):
        said = {"step": step, "state": "ok", "ms": 3, "differences": [], "problem": None}
        yield json.dumps(base | {"event": "step", "seq": seq} | said)
    yield json.dumps(base | {"event": "done", "seq": len(steps) + 2, "reason": "complete", "message": ""})


@dataclass(frozen=True, slots=True)
class Peers:
    """The endpoints' ports, and a line to their process."""

    ports: tuple[int, ...]
    line: Connection

    def spent(self) -> tuple[int, int]:
        """Requests and bytes that have come in since the last call."""
        self.line.send("spent")
        answer: tuple[int, int] = self.line.recv()
        return answer

    def waiting(self) -> int:
        """How many looks are held now, and asked for their output."""
        self.line.send("waiting")
        count: int = self.line.recv()
        return count


def _serve(line: Connection, count: int, steps: tuple[str, ...], latency: bool, held: bool) -> None:
    gate = Gate() if held else None
    with Farm() as farm:
        settings = Settings(users={USER: PASSWORD}, gather_s=0.2)
        ends = [farm.add(f"bench-{number}", Canned(steps, gate), settings) for number in range(count)]
        for end in ends if latency else ():
            for action, seconds in _ACTIONS.items():
                end.faults.on(action, Delay(seconds), times=_ALWAYS)
        line.send(tuple(end.http_port for end in ends))
        while (word := line.recv()) != "end":
            line.send(_waiting(gate, ends) if word == "waiting" and gate is not None else _spent(ends))


def _waiting(gate: Gate, ends: list[Endpoint]) -> int:
    """How many looks are held whose controller has asked for their output, too."""
    asked = [end.requests[-1] for end in ends if end.requests]
    return min(gate.waiting, sum(one.action == "Receive" and one.status is None for one in asked))


def _spent(ends: list[Endpoint]) -> tuple[int, int]:
    seen = [one for end in ends for one in end.requests]
    for end in ends:
        end.recount()
    return len(seen), sum(one.received for one in seen)


@contextmanager
def endpoints(
    count: int, steps: tuple[str, ...], *, latency: bool = False, held: bool = False
) -> Iterator[Peers]:
    """`count` endpoints whose looks find these steps to be right; with `held` each look waits."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there, count, steps, latency, held), daemon=True
    )
    process.start()
    yield Peers(here.recv(), here)
    here.send("end")
    process.join()
