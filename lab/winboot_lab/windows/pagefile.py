"""The page file: what the registry asks for, and what the last boot made of it."""

from __future__ import annotations

from dataclasses import dataclass

from winboot_lab.windows.registry import SESSION_MANAGER
from winboot_lab.windows.session import Computer

KEY = SESSION_MANAGER + r"\Memory Management"
NAME = "PagingFiles"
_AUTOMATIC = "?:\\pagefile.sys"


@dataclass(slots=True)
class PageFile:
    """One page file in MiB; 0 and 0 let Windows choose."""

    name: str
    initial: int
    maximum: int


def automatic(machine: Computer) -> bool:
    """Whether Windows manages page files for all drives."""
    return machine.registry.strings(KEY, NAME) == [_AUTOMATIC]


def set_automatic(machine: Computer, on: bool) -> None:
    """Switch it; off leaves one file whose size Windows chooses."""
    if on != automatic(machine):
        machine.registry.set(KEY, NAME, "MultiString", [_AUTOMATIC] if on else ["C:\\pagefile.sys 0 0"])


def settings(machine: Computer) -> list[PageFile]:
    """The files asked for; none while Windows manages them."""
    if automatic(machine):
        return []
    found: list[PageFile] = []
    for line in machine.registry.strings(KEY, NAME):
        words = line.split()
        sizes = [int(w) for w in words[1:3] if w.isdigit()]
        found.append(PageFile(words[0], *(sizes if len(sizes) == 2 else (0, 0))))
    return found


def store(machine: Computer, files: list[PageFile]) -> None:
    """Ask for these files from the next boot on."""
    machine.registry.set(KEY, NAME, "MultiString", [f"{f.name} {f.initial} {f.maximum}" for f in files])


def in_use(machine: Computer) -> list[PageFile]:
    """The files as the last boot made them."""
    gib = machine.hardware.memory // 1024**3
    found: list[PageFile] = []
    for line in machine.power.page_files:
        words = line.split()
        name = words[0].replace("?:", "C:")
        size = (
            int(words[2]) if len(words) == 3 and words[2].isdigit() and words[2] != "0" else gib * 1024 // 8
        )
        found.append(PageFile(name, size, size))
    return found
