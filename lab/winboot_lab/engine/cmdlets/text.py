"""ConvertTo-Json and ConvertFrom-Json, ConvertFrom-StringData."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import cmdlet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    InvalidOperationException,
)
from winboot_lab.engine.json_reader import DuplicateKeys, read_json
from winboot_lab.engine.json_writer import NotAString, write_json
from winboot_lab.engine.values import NOTHING, Array, Extension, plain

Value = Any

MAX_DEPTH = 100


@cmdlet(
    "ConvertTo-Json",
    """
    InputObject: object mandatory position=0 value null none empty
    Depth: int range=1,2147483647
    Compress: switch
    """,
)
class ConvertToJson:
    """All objects of the pipeline as one JSON text."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.values: list[Value] = []
        self.depth = call.get("Depth", 2)
        if self.depth > MAX_DEPTH:
            call.fail(
                InvalidOperationException(f"The maximum depth allowed for serialization is {MAX_DEPTH}."),
                "ReachedMaximumDepthAllowed",
                "InvalidOperation",
            )

    def process(self) -> None:
        value = self.call["InputObject"]
        if plain(value) is not None and value is not NOTHING:
            self.values.append(value)

    def end(self) -> None:
        if not self.values:
            return
        call = self.call
        try:
            text = write_json(
                self.values,
                call.scope,
                depth=self.depth,
                compress=call.flag("Compress"),
                wrapped=call.expects_input,
            )
        except NotAString as found:
            call.fail(found.failure, "NonStringKeyInDictionary", "InvalidOperation", found.table)
        call.write(text)


@cmdlet("ConvertFrom-Json", "InputObject: string mandatory position=0 value empty")
class ConvertFromJson:
    """JSON texts as objects; lines that are no document each are one document together."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.lines: list[str] = []

    def process(self) -> None:
        self.lines.append(self.call["InputObject"])

    def end(self) -> None:
        if not self.lines:
            return
        if len(self.lines) == 1:
            self._convert(self.lines[0])
            return
        try:
            each = self._convert(self.lines[0])
        except ArgumentException:
            each = False
        if each:
            for line in self.lines[1:]:
                self._convert(line)
        else:
            self._convert("\r\n".join(self.lines))

    def _convert(self, text: str) -> bool:
        try:
            value = read_json(text)
        except DuplicateKeys as found:
            self.call.fail(found.failure, "DuplicateKeysInJsonString", "InvalidOperation")
        if isinstance(value, Array):
            # The array leaves in a PSObject, which ConvertTo-Json would show as value and Count.
            value.extension = Extension()
        self.call.write(value)
        return value is not None
