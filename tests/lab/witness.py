"""Everything that an observer could see on a lab machine: its present state, and each state in between.

What is over leaves no trace in the machine's state (a process, a task, a file that was overwritten), so a witness is
there from the beginning and keeps it.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from winboot_lab.engine import cmdlet
from winboot_lab.engine.values import NoteProperty, PSCustomObject
from winboot_lab.windows.accounts import ADMINISTRATORS, SYSTEM
from winboot_lab.windows.eventlog import Event, EventLog
from winboot_lab.windows.files import Files, Node
from winboot_lab.windows.machine import Machine
from winboot_lab.windows.processes import Process, Processes
from winboot_lab.windows.registry import HKLM, Registry
from winboot_lab.windows.tasks import Task, Tasks

Thing = tuple[str, bytes | str]


@dataclass(frozen=True)
class Written:
    """A file at the moment its content was stored. `strangers` may read it: anybody but SYSTEM and administrators."""

    path: str
    content: bytes
    strangers: frozenset[str]


class Witness:
    """Sees what all machines of a lab do, from now on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.written: list[Written] = []
        self._processes: list[Process] = []
        self._tasks: list[Task] = []
        self._events: list[Event] = []
        self._registry: list[Thing] = []
        # What PowerShell's module logging (event 4103) would write down: each cmdlet with its bound parameters.
        self.bound: set[tuple[str, str]] = set()
        self._watch(patch)

    def _watch(self, patch: pytest.MonkeyPatch) -> None:
        store, add, register = Files._store, Processes.add, Tasks.register
        write, put, guard = EventLog.write, Registry.put, cmdlet.CmdletStage._guard

        def storing(files: Files, node: Node, content: bytes, path: str) -> None:
            self.written.append(Written(path, content, _strangers(node)))
            store(files, node, content, path)

        def adding(processes: Processes, *given: Any, **more: Any) -> Process:
            process = add(processes, *given, **more)
            self._processes.append(process)
            return process

        def registering(tasks: Tasks, task: Task) -> None:
            self._tasks.append(task)
            register(tasks, task)

        def writing(log: EventLog, *given: Any, **more: Any) -> Event:
            event = write(log, *given, **more)
            self._events.append(event)
            return event

        def putting(registry: Registry, path: str, name: str, kind: str, data: object, *more: Any) -> None:
            self._registry.append((f"registry {path}: {name}", _raw(data)))
            put(registry, path, name, kind, data, *more)

        def guarding(stage: cmdlet.CmdletStage, work: Any) -> Any:
            for name, value in stage.binding.bound.items():
                self.bound.add((f"{stage.command.name} -{name}", _logged(value)))
            return guard(stage, work)

        patch.setattr(Files, "_store", storing)
        patch.setattr(Processes, "add", adding)
        patch.setattr(Tasks, "register", registering)
        patch.setattr(EventLog, "write", writing)
        patch.setattr(Registry, "put", putting)
        patch.setattr(cmdlet.CmdletStage, "_guard", guarding)

    def things(self) -> Iterator[Thing]:
        """All of it but the files' contents, each with its place."""
        for process in self._processes:
            yield f"command line of {process.name}", process.command_line
            yield f"environment of {process.name}", json.dumps(process.environment)
        for task in self._tasks:
            for action in task.actions:
                yield f"task {task.name}", f"{action.execute} {action.arguments}"
        for event in self._events:
            yield f"event log {event.log}", "\n".join((event.provider, event.message, *event.properties))
        for place, text in sorted(self.bound):
            yield f"module logging {place}", text
        yield from self._registry
        for one in self.written:
            yield "name of a file", one.path


def on_machine(machine: Machine) -> Iterator[Thing]:
    """What is on a machine now, but the files' contents: registry with services, tasks, firewall, HNS, names of files."""
    for path, key in machine.registry.walk(HKLM):
        yield "registry key", path
        for value in key.values.values():
            yield f"registry {path}: {value.name}", _raw(value.data)
    for path, _ in machine.files.walk("C:\\"):
        yield "name of a file", path
    tree = machine.snapshot()
    assert isinstance(tree, dict)
    for part, content in tree.items():
        if part not in ("files", "registry"):
            yield part, json.dumps(content)


def files_of(machine: Machine) -> Iterator[Written]:
    """The files that are on a machine now."""
    for path, node in machine.files.walk("C:\\"):
        if not node.directory:
            yield Written(path, node.content, _strangers(node))


def _strangers(node: Node) -> frozenset[str]:
    rules = (rule for rule in node.acl.rules if rule.kind == "Allow")
    return frozenset(rule.sid for rule in rules) - {SYSTEM, ADMINISTRATORS}


def _raw(data: object) -> bytes | str:
    return data if isinstance(data, bytes) else json.dumps(data, default=str)


def _logged(value: object) -> str:
    """What module logging writes of a value: texts, those in a list, and those in the properties of an object."""
    match value:
        case str() | int() | float() | bytes():
            return str(value)
        case list():
            return ", ".join(map(_logged, value))
        case PSCustomObject():
            members = value.extension.members.values()
            return "; ".join(_logged(one.value) for one in members if isinstance(one, NoteProperty))
    return type(value).__name__


class Tap:
    """A wire between two TCP ports that keeps what goes over it, in both directions."""

    def __init__(self, port: int) -> None:
        self._far = port
        self._heard: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def heard(self) -> bytes:
        """Everything so far, in the order in which it came."""
        return b"".join(self._heard)

    def close(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._far))
            except OSError:
                near.close()
                continue
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                self._heard.append(piece)
                target.sendall(piece)
        # One end is gone: close the other, so that its client does not wait in vain.
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
