"""Sentences wrapped at words; the rows after the first of a line are further in."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_HANG: Final = 2


def folded(text: str, width: int | None) -> str:
    """The text in rows of at most `width` columns; as it is for None. A longer word stays whole."""
    return text if width is None else "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * (_indent(line) + _HANG),
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def print_prose(console: Console, text: Text) -> None:
    """Print the text as `folded` does, with its styles; a pipe gets each line whole."""
    for line in text.split("\n", allow_blank=True):
        if not console.is_terminal or len(line) <= console.width:
            console.print(line)
            continue
        hang = _indent(line.plain) + _HANG
        first, *rest = line.wrap(console, max(console.width - hang, 1), overflow="ignore")
        console.print(first)
        for row in rest:
            row.pad_left(hang)
            console.print(row)
