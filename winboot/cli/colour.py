"""Lines with a colour, for whoever looks at a terminal and wants any."""

from __future__ import annotations

import os

import typer


def say(text: str, colour: str, *, err: bool = False, bold: bool = False) -> None:
    """Write a line; in its colour only on a terminal, and not where NO_COLOR is set (https://no-color.org)."""
    # Typer leaves colours out where there is no terminal, and knows of no variable.
    wanted = False if os.environ.get("NO_COLOR") else None
    typer.secho(text, err=err, fg=colour, bold=bold, color=wanted)
