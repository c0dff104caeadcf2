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
        expand_tabs=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def print_prose(console: Console, text: Text) -> None:
    """Print the text as `folded` does, with its styles; a pipe gets each line whole."""
    for line in text.split("\n", allow_blank=True):
        at = 0
        for number, row in enumerate(
            folded(line.plain, console.width if console.is_terminal else None).split("\n")
        ):
            words = row.strip() if number else row
            at = line.plain.index(words, at)
            part = line[at : at + len(words)]
            part.pad_left(len(row) - len(words))
            console.print(part)
