"""Whether another account's file may make this computer run and read things: `--trust`, WINBOOT_TRUST, or a yes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from winboot.base.errors import InvalidInput
from winboot.base.private import others_say
from winboot.cli.approval import at_terminal, confirm

if TYPE_CHECKING:
    from winboot.config.demands import Demand, Kind
    from winboot.config.source import Table

VARIABLE: Final = "WINBOOT_TRUST"
# What was looked at in this process, by the file that says it: a file is read again when it is used.
_settled: set[tuple[Path, Kind, str]] = set()


def settle(found: Sequence[Demand], *, trust: bool, may_ask: bool) -> None:
    """Accept what the user's own files demand. What files of others demand needs the user's consent: `trust`, the setting
    WINBOOT_TRUST (files and folders), or an answer at a terminal.

    Raises InvalidInput without consent, Declined where the answer is no. Nothing of it was run or read before. What was
    agreed to once in this process is not asked about again.
    """
    strange = {} if trust else _of_others(one.file for one in found)
    wanted = [one for one in found if one.file in strange and _key(one) not in _settled]
    if wanted:
        _agree(wanted, strange, may_ask=may_ask)
    _settled.update(map(_key, found))


def settle_files(tables: Mapping[Path, Table]) -> None:
    """The same for the nodes of files as they were just read, without a person to answer: a worker reads them each time."""
    from winboot.config.demands import demands

    settle(demands(tables), trust=False, may_ask=False)


def hold(file: Path, text: str) -> None:
    """Raises InvalidInput if another account's kubeconfig has gained a command or file since `settle` read it.

    An account that may write the kubeconfig could have replaced it."""
    from winboot.config.demands import in_kubeconfig
    from winboot.config.source import compose

    new = [one for one in in_kubeconfig(compose(text, str(file))) if _key(one) not in _settled]
    strange = _of_others([file]) if new else {}
    if strange:
        raise InvalidInput(
            f"{file} changed after this command started, and {strange[file]}",
            problems=tuple(new),
            hint="Make the file your own, check its content, and run the same command again.",
        )


def settled() -> frozenset[tuple[Path, Kind, str]]:
    """What was looked at in this process, for another one of the same command."""
    return frozenset(_settled)


def settled_before(found: frozenset[tuple[Path, Kind, str]]) -> None:
    """What was looked at in the process that has started this one."""
    _settled.update(found)


def _key(one: Demand) -> tuple[Path, Kind, str]:
    return one.file.absolute(), one.kind, one.what


def _agree(wanted: Sequence[Demand], strange: Mapping[Path, str], *, may_ask: bool) -> None:
    whose = "; ".join(dict.fromkeys(strange.values()))
    if not (may_ask and at_terminal()):
        raise InvalidInput(
            f"{whose}: another user can make this computer run or read what your own files do not name",
            problems=tuple(wanted),
            hint=f"If you trust it, add --trust or set {VARIABLE} to the file or folder; else make the files your own.",
        )
    typer.echo(f"{whose}. This computer would:", err=True)
    for one in wanted:
        typer.echo(f"  {one}", err=True)
    confirm("Is this correct?")


def _of_others(files: Iterable[Path]) -> dict[Path, str]:
    """Why others may say what is in a file, for each such file that the user's setting does not name."""
    named = [Path(one).expanduser() for one in os.environ.get(VARIABLE, "").split(os.pathsep) if one]
    reasons: dict[Path, str] = {}
    for file in dict.fromkeys(files):
        if any(file.resolve().is_relative_to(one.resolve()) for one in named):
            continue
        try:
            reason = others_say(file)
        except OSError as error:
            reason = f"the owner of {file} cannot be read ({error.strerror})"
        if reason:
            reasons[file] = reason
    return reasons
