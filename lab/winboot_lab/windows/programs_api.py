"""The programs that run on the machine, as the machine sees them: files, ends, running instances.

A program is found by what its image file holds, not by its name. The first line of a lab stand-in reads
`winboot-lab-program: NAME VERSION` (for example `winboot-lab-program: kubelet 1.36.5`), wherever the file
lies and however it is called. In-box programs (`sc.exe`, `tar.exe`) are such files in
`C:\\Windows\\System32`. A file without that line is no program: starting it fails with Win32 error 193.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


class Served(Protocol):
    """One running instance of a long-lived program. Calls come under the machine's lock, on any thread."""

    def on_start(self) -> Died | None:
        """The process was created. None: it runs (a service reports Running). Died: it ended before that."""

    def on_tick(self) -> Died | None:
        """Time has passed (about each lab second). None: it continues. Died: it ended."""

    def on_stop(self) -> None:
        """It is stopped in good order (service stop, Ctrl-C). Not called on a kill or a reboot."""


class Installed(Protocol):
    """The program of one process, with its arguments and environment."""

    def run(self, stdin: bytes = b"") -> Exit:
        """Run to the end."""

    def serve(self) -> Served | None:
        """A new running instance, whose `on_start` is called next; None for a console program."""

    def is_service(self) -> bool:
        """Whether it answers the service control manager when started like this (else error 1053)."""


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
