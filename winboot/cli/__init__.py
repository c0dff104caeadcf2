"""The command line: one file a command; this one assembles them and turns every error into words and an exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from winboot import __version__


def main() -> NoReturn:
    """Run the command line and exit: the codes are those of docs/exit-codes.md, wrong use is 64."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Machines speak any language, and a locale or a pipe on Windows may not: what it lacks is escaped, as Python does
        # on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code comes back, no expected error escapes.

    Help and version are answered before Typer is imported, which costs more than all the rest of them.
    """
    arguments = _in_own_words(arguments)
    if arguments in (["--help"], ["-h"]):
        from winboot.cli.commands import help_text

        return _say(help_text())
    if arguments == ["--version"]:
        return _say(f"winboot {__version__}")
    if sorted(arguments) in (["--version", "-v"], ["--verbose", "--version"]):
        return _say(_version_and_data())
    from winboot.cli.application import execute

    return execute(arguments)


def _in_own_words(arguments: list[str]) -> list[str]:
    """`version`, `help` and `help COMMAND`, which other tools have as commands, as winboot's options."""
    match arguments:
        case ["version", *rest]:
            return ["--version", *rest]
        case ["help", *rest]:
            return [*rest, "--help"]
        case ["completion"]:
            return ["--show-completion"]
    return arguments


def _version_and_data() -> str:
    """The version, and of what day the compatibility data is."""
    from winboot.config.compat import age, load

    facts = load()
    lines = [
        f"winboot {__version__}",
        f"compatibility data of {facts.as_of}, {age.days(facts)} days old, up to Kubernetes {facts.newest}",
    ]
    if age.said(facts):
        lines.append(
            f"older than {age.LIMIT_DAYS} days: take a newer winboot, or an overlay (docs/compat.md)"
        )
    return "\n".join(lines)


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader closed the pipe. Python would report that again when it closes the stream.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    return 0
