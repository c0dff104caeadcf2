"""What the lab believes of Windows: facts.toml, row by row."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Fact:
    """One belief: `file` (below this folder) holds it where the text `at` is.

    It has a `source`, or a read-only `command` of Windows PowerShell 5.1 that answers it on a real machine at the moment
    `when` (empty: at any).
    """

    id: str
    file: str
    at: str
    fact: str
    source: str = ""
    command: str = ""
    when: str = ""

    @property
    def bundled(self) -> bool:
        """Whether `winboot collect` runs the command: it answers at any moment, and without free text and command lines."""
        private = any(word in self.command for word in ("Message", "PathName", "CommandLine"))
        return (
            bool(self.command)
            and not private
            and self.when in ("", "after a start of the machine", "after a restart")
        )


def facts() -> tuple[Fact, ...]:
    """All rows, in the order of the file."""
    rows = tomllib.loads((FOLDER / "facts.toml").read_text(encoding="utf-8"))
    return tuple(Fact(name, **row) for name, row in rows.items())


def unsourced() -> tuple[Fact, ...]:
    """The rows that a command on a real machine has yet to answer."""
    return tuple(one for one in facts() if not one.source)
