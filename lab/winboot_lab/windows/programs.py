"""The lab's programs by name, as they are written, and how a machine starts them.

Console programs answer `run`; those that may be services (or are kept running by one) also answer `serve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from winboot_lab.windows.processes import Process, split_arguments
from winboot_lab.windows.programs_api import Exit, Image, Installed, Served
from winboot_lab.windows.session import Computer


class Program(Protocol):
    """A program the lab can run. One object serves all processes; what belongs to one is in its `Served`."""

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Run to the end and say how it went. `argv[0]` is the program as it was called."""


@runtime_checkable
class LongLived(Program, Protocol):
    """A program that can stay: as a service, below a wrapper service, or started without waiting."""

    def is_service(self, argv: list[str]) -> bool:
        """Whether it answers the service control manager when started like this (else error 1053)."""

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Served:
        """A new running instance; `on_start` is called next."""


class Programs:
    """The registry `machine.programs`: programs by the name in their image."""

    def __init__(self) -> None:
        self._known: dict[str, Program] = {}

    def add(self, name: str, program: Program) -> None:
        """Make the program known under `name` (without `.exe`)."""
        self._known[name.lower()] = program

    def find(self, image: Image) -> Program | None:
        """The program an image names, or None when the lab has no such program."""
        return self._known.get(image.name.lower())

    def __iter__(self) -> Iterator[str]:
        """The names known."""
        return iter(sorted(self._known))


@dataclass(frozen=True, slots=True)
class _Installed:
    """A program in the process that was made for it."""

    machine: Computer
    process: Process
    program: Program

    def run(self, stdin: bytes = b"") -> Exit:
        return self.program.run(self.machine, self.process, self._argv(), self.process.environment, stdin)

    def serve(self) -> Served | None:
        if not isinstance(self.program, LongLived):
            return None
        return self.program.serve(self.machine, self.process, self._argv(), self.process.environment)

    def is_service(self) -> bool:
        return isinstance(self.program, LongLived) and self.program.is_service(self._argv())

    def _argv(self) -> list[str]:
        return split_arguments(self.process.command_line)


@dataclass(frozen=True, slots=True)
class Launcher:
    """The lab's programs, on one machine."""

    machine: Computer
    programs: Programs

    def find(self, process: Process, image: Image) -> Installed | None:
        """What runs in a process of an image, or None when the lab has no such program."""
        program = self.programs.find(image)
        return None if program is None else _Installed(self.machine, process, program)
