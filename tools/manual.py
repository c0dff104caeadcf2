"""The manual page, from the help of the commands: `make wheel` puts it into the wheel.

Its language is that of man(7): a line that begins with a dot is a request, a backslash begins an escape.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from winboot import __version__
from winboot.cli.commands import COMMANDS
from winboot.script.glossary import EXIT_CODES

_SUMMARY: Final = "turn Windows Server machines into Ready Kubernetes nodes, and say first what would change"
_FILES: Final = (
    ("inventory.yaml", "The inventory, unless --inventory or WINBOOT_INVENTORY names another one."),
    ("$WINBOOT_STATE/runs", "Reports and journals of earlier runs; without it ~/.local/state/winboot/runs."),
)
_ENVIRONMENT: Final = (
    ("WINBOOT_INVENTORY", "The inventory."),
    ("WINBOOT_STATE", "The folder for journals and reports."),
    ("WINBOOT_KEEP_RUNS", "How many runs are kept: 200 without it, and none of the last day is deleted."),
    ("WINBOOT_TRUST", "As --trust: files of others may have programs run here."),
    ("NO_COLOR", "No colours."),
)


def manual() -> str:
    """The page as man(1) reads it: the same bytes wherever it is made."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield f'.TH WINBOOT 1 "" "winboot {__version__}" "User Commands"'
    yield from (".SH NAME", f"winboot \\- {_text(_SUMMARY)}")
    yield from (".SH SYNOPSIS", ".B winboot", r"\fICOMMAND\fR [\fIOPTIONS\fR]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(
        "winboot renders one PowerShell script from a profile, runs it over WinRM or SSH, and continues until a Windows "
        "machine is a Ready node. `plan` shows what would change and changes nothing; `join` again repairs, or does "
        "nothing. The command explain says what a key, flag, step, problem, exit code or word means."
    )
    yield ".SH COMMANDS"
    for command in COMMANDS:
        yield from _command(f"winboot {command.name}", command.function())
    yield from (
        ".SS winboot lab",
        "A rehearsal stage on loopback, a distribution of its own: `winboot lab \\-\\-help`.",
    )
    yield from (".SH EXIT STATUS", *_list((str(code), says) for code, says in sorted(EXIT_CODES.items())))
    yield from (".SH ENVIRONMENT", *_list(_ENVIRONMENT))
    yield from (".SH FILES", *_list(_FILES))


def _command(name: str, command: Any) -> Iterator[str]:
    """One command: what it does, and each of its arguments and options; then those of its own commands."""
    if isinstance(command, typer.Typer):
        for one in command.registered_commands:
            assert one.callback is not None
            word = one.name or one.callback.__name__.replace("_", "-")
            yield from _command(f"{name} {word}", one.callback)
        return
    parameters = list(_parameters(command))
    arguments = [(_argument(one), one.info.help) for one in parameters if isinstance(one.info, ArgumentInfo)]
    options = [(_option(one), _meaning(one.info)) for one in parameters if isinstance(one.info, OptionInfo)]
    yield f".SS {_text(name)}"
    words = [*(term for term, _ in arguments), *(["[OPTIONS]"] if options else [])]
    yield rf"\fB{_text(name)}\fR {_text(' '.join(words))}".rstrip()
    if command.__doc__:
        yield ".PP"
        yield from _paragraphs(command.__doc__)
    yield from _list((*arguments, *options))


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: Any
    default: Any
    info: ParameterInfo


def _parameters(command: Any) -> Iterator[_Parameter]:
    """As in the signature: `name: Annotated[type, typer.Option(…)] = default`."""
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind, *rest = get_args(parameter.annotation)
        info = next(one for one in rest if isinstance(one, ParameterInfo))
        if not info.hidden:
            yield _Parameter(name, kind, parameter.default, info)


def _argument(one: _Parameter) -> str:
    name = str(one.info.metavar or one.name).upper()
    name += "..." if "list" in str(one.type) else ""
    return name if one.default is inspect.Parameter.empty else f"[{name}]"


def _option(one: _Parameter) -> str:
    # In an Annotated the first name has the place of the default (typer, "CLI Parameters with Annotated").
    first = (one.info.default,) if isinstance(one.info.default, str) else ()
    names = ", ".join(sorted((*first, *(one.info.param_decls or ())), key=len))
    if one.type is bool:
        return names.replace("/", " / ")
    return f"{names} {one.info.metavar or _value(one.type)}"


def _value(kind: Any) -> str:
    """What is written behind an option of this type."""
    known = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return known.get(kind) or next((_value(one) for one in get_args(kind)), "VALUE")


def _meaning(info: ParameterInfo) -> str:
    said = info.help or ""
    return f"{said} (Also ${info.envvar}.)" if isinstance(info.envvar, str) else said


def _paragraphs(text: str) -> Iterator[str]:
    for number, part in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _text(" ".join(part.split()))


def _list(rows: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for term, says in rows:
        yield from (".TP", rf"\fB{_text(term)}\fR", _text(" ".join((says or "").split())))


def _text(text: str) -> str:
    """Nothing in it is a request, an escape, or a hyphen that a viewer makes a dash of (man(7), groff_char(7))."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    print(manual(), end="")
