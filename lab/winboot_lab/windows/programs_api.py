"""The interface between the machine and the programs that run on it.

A program is found by what its image file holds, not by its name. The first line of a lab stand-in reads
`winboot-lab-program: NAME VERSION` (for example `winboot-lab-program: kubelet 1.36.5`), wherever the file
lies and however it is called. In-box programs (`sc.exe`, `tar.exe`) are such files in
`C:\\Windows\\System32`. A file without that line is no program: starting it fails with Win32 error 193.

Console programs answer `run`; those that may be services (or are kept running by one) also answer `serve`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.processes import Process

MARK = b"winboot-lab-program:"


@dataclass(frozen=True, slots=True)
class Image:
    """What an executable file says it is."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a console program ended. `lingers`: for so many seconds a program that it started keeps its pipes open."""

    code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    lingers: float = 0.0


@dataclass(frozen=True, slots=True)
class Died:
    """A served program ended by itself with exit code `code`; `service_code`: what it reported to the SCM."""

    code: int
    service_code: int | None = None


class Program(Protocol):
    """A program the lab can run. One object serves all processes; what belongs to one is in its `Served`."""

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """Run to the end and say how it went. `argv[0]` is the program as it was called."""
        ...


class Served(Protocol):
    """One running instance of a long-lived program. Calls come under the machine's lock, on any thread."""

    def on_start(self) -> Died | None:
        """The process was created. None: it runs (a service reports Running). Died: it ended before that."""
        ...

    def on_tick(self) -> Died | None:
        """Time has passed (about each lab second). None: it continues. Died: it ended."""
        ...

    def on_stop(self) -> None:
        """It is stopped in good order (service stop, Ctrl-C). Not called on a kill or a reboot."""
        ...


@runtime_checkable
class LongLived(Program, Protocol):
    """A program that can stay: as a service, below a wrapper service, or started without waiting."""

    def is_service(self, argv: list[str]) -> bool:
        """Whether it answers the service control manager when started like this (else error 1053)."""
        ...

    def serve(self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str]) -> Served:
        """A new running instance; `on_start` is called next."""
        ...


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


def image_bytes(name: str, version: str = "1.0", *, body: bytes = b"") -> bytes:
    """The content of a stand-in executable: the mark, then anything that makes its hash its own."""
    return MARK + f" {name} {version}\n".encode("ascii") + body


def read_image(content: bytes) -> Image | None:
    """What the file says it is; None when it is no lab program."""
    first, _, _ = content[:200].partition(b"\n")
    if not first.startswith(MARK):
        return None
    words = first[len(MARK) :].decode("ascii", "replace").split()
    if not words:
        return None
    return Image(words[0], words[1] if len(words) > 1 else "")
