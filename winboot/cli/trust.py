"""Whether a file of somebody else's may have this computer run and read things: `--trust`, WINBOOT_TRUST, or a yes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from winboot.base.errors import InvalidInput
from winboot.base.private import others_say
from winboot.cli.approval import at_terminal, confirm

if TYPE_CHECKING:
    from winboot.config.demands import Demand

VARIABLE: Final = "WINBOOT_TRUST"


def settle(found: Sequence[Demand], *, trust: bool, may_ask: bool) -> None:
    """Let pass what the user's own files say, and what others' say where the user agrees: by `trust`, by the setting
    WINBOOT_TRUST (files and folders), or at a terminal where he may be asked.

    Raises InvalidInput where nobody agreed, Declined where the answer is no. Nothing of it was run or read before.
    """
    strange = {} if trust else _of_others(found)
    wanted = [one for one in found if one.file in strange]
    if not wanted:
        return
    whose = "; ".join(dict.fromkeys(strange.values()))
    if not (may_ask and at_terminal()):
        raise InvalidInput(
            f"{whose}: whoever that is has this computer run or read what your own files do not name",
            problems=tuple(wanted),
            hint=f"If that is meant, give --trust or name file or folder in {VARIABLE}; else make the files your own.",
        )
    typer.echo(f"{whose}. This computer would:", err=True)
    for one in wanted:
        typer.echo(f"  {one}", err=True)
    confirm("Is that meant?")


def _of_others(found: Sequence[Demand]) -> dict[Path, str]:
    """Why others may say what is in a file, for each such file that the user's setting does not name."""
    named = [Path(one).expanduser() for one in os.environ.get(VARIABLE, "").split(os.pathsep) if one]
    reasons: dict[Path, str] = {}
    for file in dict.fromkeys(one.file for one in found):
        if any(file.resolve().is_relative_to(one.resolve()) for one in named):
            continue
        try:
            reason = others_say(file)
        except OSError as error:
            reason = f"whose {file} is cannot be asked ({error.strerror})"
        if reason:
            reasons[file] = reason
    return reasons
