"""Output as text: Out-String, Out-File, Tee-Object to a file, and the target of `>`.

The lab lays out strings, numbers and other simple values, which stand on a line of their own. What PowerShell would print as
a table or list is refused.
"""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.encodings import body, mark_of
from winboot_lab.engine.errors import cmdlet_failure
from winboot_lab.engine.exceptions import DotNetException, ErrorRecord, IOException, RuntimeException
from winboot_lab.engine.lines import lines_of
from winboot_lab.engine.locations import full_path
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import (
    Version,
)
from winboot_lab.engine.wildcards import has_wildcards

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
        self.path = full_path(scope, path)
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


_ENCODINGS = "words=unknown,string,unicode,bigendianunicode,utf8,utf7,utf32,ascii,default,oem"


@cmdlet(
    "Out-File",
    f"""
    FilePath: string mandatory position=0 set=ByPath
    LiteralPath: string mandatory name alias=PSPath set=ByLiteralPath
    Encoding: string position=1 filled {_ENCODINGS}
    Append: switch
    Force: switch
    NoClobber: switch alias=NoOverwrite
    Width: int range=2,2147483647
    NoNewline: switch
    InputObject: psobject value
    """,
    default_set="ByPath",
    should_process=True,
)
class OutFile:
    """Objects as text into a file."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.sink: FileSink | None = None
        if call.has("Width"):
            call.refuse("-Width")
        path = call["FilePath"] or call["LiteralPath"]
        if has_wildcards(path) and call.has("FilePath"):
            call.refuse("-FilePath with a wildcard")
        if not call.should_process():
            return
        if call.flag("NoClobber") and not call.flag("Append"):
            self._refuse_existing(path)
        try:
            self.sink = FileSink(
                call.scope,
                path,
                append=call.flag("Append"),
                encoding=call["Encoding"] or "unicode",
                newline="" if call.flag("NoNewline") else "\r\n",
                force=call.flag("Force"),
            )
        except DotNetException as failure:
            call.fail(failure, "FileOpenFailure", "OpenError", path)

    def _refuse_existing(self, path: str) -> None:
        full = full_path(self.call.scope, path)
        if ask_one(self.call.scope, "file.stat", path=full) is not None:
            self.call.fail(
                IOException(f"The file '{full}' already exists."), "NoClobber", "ResourceExists", path
            )

    def process(self) -> None:
        if self.sink is not None:
            self.sink.write(self.call["InputObject"])

    def end(self) -> None:
        if self.sink is not None:
            self.sink.close()


@cmdlet(
    "Out-String",
    """
    Stream: switch
    Width: int range=2,2147483647
    InputObject: psobject value
    """,
)
class OutString:
    """Objects as text: one string, or a string for each line."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.lines: list[str] = []
        if call.has("Width"):
            call.refuse("-Width")

    def process(self) -> None:
        if self.call.has("InputObject"):
            self.lines.extend(lines_of(self.call["InputObject"], self.call.scope))

    def end(self) -> None:
        if self.call.flag("Stream"):
            for line in self.lines:
                self.call.write(line)
            return
        self.call.write("".join(line + "\r\n" for line in self.lines))


__all__ = ["FileSink", "Version", "lines_of"]
