"""Places in a script: the line on which something stands, and how an error shows it."""

from __future__ import annotations

from contextvars import ContextVar

from winboot_lab.language.syntax import Extent

# How many lines of the script that is run stand above its library.
ABOVE: ContextVar[int] = ContextVar("lines above the library", default=0)


def position_message(extent: Extent) -> str:
    """What `InvocationInfo.PositionMessage` says of a place in an unnamed script."""
    line, column = extent.position
    text = line_text(extent).rstrip("\r\n")
    last_line, last_column = extent.end_position
    marks = (last_column if last_line == line else len(text) + 1) - column
    return f"At line:{line} char:{column}\r\n+ {text}\r\n+ {' ' * (column - 1)}{'~' * max(marks, 1)}"


def line_text(extent: Extent) -> str:
    """The whole line on which an extent begins, with its line end."""
    text = extent.source.text
    begin = max(text.rfind("\n", 0, extent.start), text.rfind("\r", 0, extent.start)) + 1
    end = text.find("\n", extent.start)
    return text[begin:] if end < 0 else text[begin : end + 1]
