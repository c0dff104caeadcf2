"""Output as text: Out-String, Out-File, Tee-Object to a file, and the target of `>`.

The lab lays out strings, numbers and other simple values, which stand on a line of their own. What PowerShell would print as
a table or list is refused.
"""

from __future__ import annotations

from typing import Any

from winboot.lab.engine.locations import full_path
from winboot.lab.engine.refusal import Refusal
from winboot.lab.engine.scopes import Scope
from winboot.lab.engine.texts import to_text
from winboot.lab.engine.values import (
    NOTHING,
    NUMBER_CLASSES,
    Char,
    EnumValue,
    Version,
    enumerate_value,
    plain,
)

Value = Any

_SIMPLE = NUMBER_CLASSES | {str, bool, Char}


def lines_of(value: Value, scope: Scope) -> list[str]:
    """The lines that the default formatting of one object gives."""
    bare = plain(value)
    if bare is None or bare is NOTHING:
        return []
    if type(bare) is str:
        return bare.replace("\r\n", "\n").split("\n")
    if type(bare) in _SIMPLE or isinstance(bare, EnumValue):
        return [to_text(bare, scope)]
    items = enumerate_value(bare)
    if items is not None:
        return [line for item in items for line in lines_of(item, scope)]
    from winboot.lab.engine.objects import InformationRecord, _Message

    if isinstance(bare, (InformationRecord, _Message)):
        return str(bare).split("\n")
    raise Refusal("value", f"{type(bare).__name__} as text", "its default formatting")


class FileSink:
    """The file behind `>` and `>>`: UTF-16 with a mark, CRLF, as Out-File of 5.1 writes it."""

    def __init__(self, scope: Scope, path: str, *, append: bool) -> None:
        self.scope = scope
        self.path = full_path(scope, path)
        self.append = append
        self.lines: list[str] = []
        if not append:
            self._store(b"\xff\xfe", "file.write")

    def _store(self, content: bytes, primitive: str) -> None:
        from winboot.lab.engine.door import ask

        ask(self.scope, primitive, path=self.path, content=content)

    def write(self, value: Value) -> None:
        """One object."""
        self.lines.extend(lines_of(value, self.scope))

    def close(self) -> None:
        """Write what has come."""
        if not self.lines:
            return
        content = "".join(line + "\r\n" for line in self.lines).encode("utf-16-le")
        self.lines.clear()
        self._store(content, "file.append")


__all__ = ["FileSink", "Version", "lines_of"]
