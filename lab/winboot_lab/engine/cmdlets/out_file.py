"""Output as text: the target of `>`.

The lab lays out strings, numbers and other simple values, which stand on a line of their own. What PowerShell would print as
a table or list is refused.
"""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.encodings import body, mark_of
from winboot_lab.engine.errors import cmdlet_failure
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, RuntimeException
from winboot_lab.engine.lines import lines_of
from winboot_lab.engine.locations import FILES
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope

Value = Any


class FileSink:
    """The file behind `>`: UTF-16 with a mark, CRLF."""

    def __init__(self, scope: Scope, path: str, *, append: bool = False) -> None:
        self.scope = scope
        self.path = _full_path(scope, path)
        self.lines: list[str] = []
        self.used = False
        stat = ask_one(scope, "file.stat", path=self.path)
        self.fresh = not append or stat is None or stat["length"] == 0
        self._store(b"", "file.append" if append and stat is not None else "file.write")

    def _store(self, content: bytes, primitive: str) -> None:
        ask(self.scope, primitive, path=self.path, content=content)

    def write(self, value: Value) -> None:
        """One object."""
        self.used = True
        self.lines.extend(lines_of(value, self.scope))

    def close(self) -> None:
        """Write what has come."""
        content = body("".join(line + "\r\n" for line in self.lines), "unicode")
        self.lines.clear()
        if self.fresh and self.used:  # an object without a line, as $null is, still makes it write the mark
            content = mark_of("unicode") + content
        if content:
            self._store(content, "file.append")


def open_failure(failure: DotNetException, path: str) -> RuntimeException:
    """What `>` throws when its file cannot be opened."""
    record = ErrorRecord(
        failure, "FileOpenFailure,Microsoft.PowerShell.Commands.OutFileCommand", "OpenError", path
    )
    return cmdlet_failure(record)


def _full_path(scope: Scope, text: str) -> str:
    """A file-system path made absolute by the session's location. Another provider's path is refused."""
    place = scope.session.locations.place(text)
    if place.provider != FILES:
        raise Refusal("value", text, "a path of another provider where a file is wanted")
    return place.path
