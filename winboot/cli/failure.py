"""How the command line prints an error: what happened, where, and what to do next."""

from __future__ import annotations

import platform
import re
import sys
import tempfile
import traceback
from typing import Final

from typer.exceptions import TyperException

from winboot import __version__
from winboot.base.errors import InvalidInput, WinbootError
from winboot.cli.colour import say, tell
from winboot.cli.commands import OTHER_OPTIONS, OTHER_WORDS


def explain_error(error: WinbootError) -> None:
    """An expected error, on standard error: its sentence, one line for each complaint, and the next step."""
    say(f"winboot: {error.problem}", "red", err=True)
    if isinstance(error, InvalidInput):
        from winboot.config.keys import housed
        from winboot.config.source import Complaint

        for problem in error.problems:
            shown = housed(problem) if isinstance(problem, Complaint) else problem
            tell(f"  {shown}", err=True)
    if error.hint:
        tell(f"next: {error.hint}", err=True)


def explain_usage(error: TyperException) -> None:
    """Wrong use, in Typer's words, with the command's help one step away."""
    context = getattr(error, "ctx", None)
    # A group called without a command has shown its help already and says nothing more.
    told = _without_harm(error).format_message()
    if not told:
        return
    say(f"winboot: {_own_words(told)}", "red", err=True)
    if context is not None:
        tell(f"next: {_answer(error) or f'{context.command_path} --help'}", err=True)


def _answer(error: TyperException) -> str:
    """What winboot has for a word of another tool; empty for any other word."""
    if option := getattr(error, "option_name", ""):
        return OTHER_OPTIONS.get(option, "")
    if command := _NO_COMMAND.match(error.message):
        return OTHER_WORDS.get(command[1], "")
    if "'html' is not one of" in error.message:
        return "winboot report RUN --report FILE.html writes the page"
    return ""


def _without_harm(error: TyperException) -> TyperException:
    """The error without a suggestion that disturbs pods: a typo must not lead there."""
    if possible := getattr(error, "possibilities", None):
        error.possibilities = [one for one in possible if one != "--drain"]  # type: ignore[attr-defined]
    return error


_NO_COMMAND: Final = re.compile(r"No such command '([^']+)'")
# How the library beneath Typer speaks of a value, and how winboot does.
_WORDS: Final = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"expected a number from \1 on"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"expected a number up to \1"),
    (re.compile(r"Input should be greater than (\S+)"), r"expected a number above \1"),
    (re.compile(r"Input should be a valid integer\b.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number\b.*"), "expected a number"),
)


def _own_words(told: str) -> str:
    """A complaint about an option without a library's words."""
    for words, ours in _WORDS:
        told = words.sub(ours, told)
    return told


def explain_bug(error: Exception, arguments: list[str]) -> None:
    """An unexpected error: a file with what a bug report needs, and one line that names it."""
    versions = f"winboot {__version__}, Python {platform.python_version()}, {platform.platform()}"
    # Arguments name files, nodes and steps; secrets never travel on the command line.
    text = f"{versions}\narguments: {arguments}\n\n{''.join(traceback.format_exception(error))}"
    with tempfile.NamedTemporaryFile(
        "w", prefix="winboot-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    say(f"winboot: a bug in winboot itself: {type(error).__name__}: {error}", "red", err=True)
    tell(f"next: report the bug with {file.name}; you can run the command again", err=True)
    sys.stderr.flush()
