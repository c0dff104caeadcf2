"""Output as text: Out-String, Out-File, Tee-Object to a file, and the target of `>`.

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
from winboot_lab.engine.values import (
    Version,
)

Value = Any

_READ_ONLY, _FOLDER, _NORMAL = 0x1, 0x10, 0x80


class FileSink:
    """The file behind `>`, Out-File and Tee-Object: UTF-16 with a mark unless an encoding is named, CRLF."""

    def __init__(
        self,
        scope: Scope,
        path: str,
        *,
        append: bool = False,
        encoding: str = "unicode",
        newline: str = "\r\n",
        force: bool = False,
    ) -> None:
        self.scope = scope
        self.given = path
        self.path = _full_path(scope, path)
        self.encoding = encoding
        self.newline = newline
        self.lines: list[str] = []
        self.used = False
        self.old: int | None = None
        stat = ask_one(scope, "file.stat", path=self.path)
        self.fresh = not append or stat is None or stat["length"] == 0
        if (
            stat is not None
            and force
            and stat["attributes"] & _READ_ONLY
            and not stat["attributes"] & _FOLDER
        ):
            self.old = stat["attributes"]
            self._mark(self.old & ~_READ_ONLY or _NORMAL)
        self._store(b"", "file.append" if append and stat is not None else "file.write")

    def _mark(self, attributes: int) -> None:
        ask(self.scope, "file.set-attributes", path=self.path, attributes=attributes)

    def _store(self, content: bytes, primitive: str) -> None:
        ask(self.scope, primitive, path=self.path, content=content)

    def write(self, value: Value) -> None:
        """One object."""
        self.used = True
        self.lines.extend(lines_of(value, self.scope))

    def close(self) -> None:
        """Write what has come."""
        content = body("".join(line + self.newline for line in self.lines), self.encoding)
        self.lines.clear()
        if self.fresh and self.used:  # an object without a line, as $null is, still makes it write the mark
            content = mark_of(self.encoding) + content
        if content:
            self._store(content, "file.append")
        if self.old is not None:
            self._mark(self.old)


def open_failure(failure: DotNetException, command: str, path: str) -> RuntimeException:
    """What a cmdlet that writes text throws when its file cannot be opened."""
    record = ErrorRecord(
        failure, f"FileOpenFailure,Microsoft.PowerShell.Commands.{command}", "OpenError", path
    )
    return cmdlet_failure(record)


__all__ = ["FileSink", "Version", "lines_of"]


def _full_path(scope: Scope, text: str) -> str:
    """A file-system path made absolute by the session's location. Another provider's path is refused."""
    place = scope.session.locations.place(text)
    if place.provider != FILES:
        raise Refusal("value", text, "a path of another provider where a file is wanted")
    return place.path
