"""Lines for a person: in a colour and wrapped at words on a terminal, as they are elsewhere."""

from __future__ import annotations

import os
import shutil
import sys

import typer

from winboot.report.prose import folded


def say(text: str, colour: str, *, err: bool = False, bold: bool = False) -> None:
    """Write a line; in its colour only on a terminal, and not where NO_COLOR is set (https://no-color.org)."""
    # Typer leaves colours out where there is no terminal, and does not read the variable.
    wanted = False if os.environ.get("NO_COLOR") else None
    typer.secho(folded(text, room(err=err)), err=err, fg=colour, bold=bold, color=wanted)


def tell(text: str, *, err: bool = False) -> None:
    """Write lines without a colour."""
    typer.echo(folded(text, room(err=err)), err=err)


def room(*, err: bool = False) -> int | None:
    """The columns of the terminal; None for a pipe or a file, which take a line of any length."""
    stream = sys.stderr if err else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else None
