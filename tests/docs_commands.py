"""The command lines of winboot that the pages show, with placeholders filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from typer._click.exceptions import MissingParameter, NoArgsIsHelpError
from typer.main import get_command

from winboot.cli import commands
from winboot.cli.application import app

_FENCE: Final = re.compile(r"^```(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED: Final = re.compile(r"(?:^    .*\n?)+", re.MULTILINE)
_INLINE: Final = re.compile(r"`(winboot [^`\n]+)`")
# Behind a command in some blocks, its explanation.
_PROSE: Final = re.compile(r" {3,}.*| {2,}#.*")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]+=.*")
# Placeholders of numbers.
_NUMBERS: Final = ("N", "SECONDS")
_PLACEHOLDER: Final = re.compile(r"[A-Z][A-Z_]*(?:\.\w+)?|…")


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words behind `winboot` of each command line, in blocks of code and in code style."""
    text = page.read_text(encoding="utf-8")
    blocks = [
        *(block for language, block in _FENCE.findall(text) if not language),
        *_INDENTED.findall(_FENCE.sub("", text)),
    ]
    for line in [line for block in blocks for line in block.splitlines()] + _INLINE.findall(text):
        if re.search(r"\bwinboot [a-z-]", line) and "`" not in line:
            yield from _commands(_PROSE.sub("", line.strip()))


def _commands(line: str) -> Iterator[list[str]]:
    """What winboot is called with in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&>()")
    lexer.commenters, lexer.whitespace_split = "", True
    command: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("|;&>()"):
            while command and (_ASSIGNED.fullmatch(command[0]) or command[0] == "$"):
                del command[0]
            # Typer installs the completion while it parses.
            if command[1:] and command[0].endswith("winboot") and "--install-completion" not in command:
                yield list(_filled(command[1:]))
            command = []
        else:
            command.append(word)


def _filled(words: list[str]) -> Iterator[str]:
    for before, word in pairwise(["", *words]):
        if word in _NUMBERS:
            yield "3"
        elif word != "…" or before.startswith("--"):
            yield "last" if _PLACEHOLDER.fullmatch(word) else word.strip("[]")


def parse(words: list[str]) -> None:
    """Parse a command line as winboot does, without running it. Raises what typer raises for a wrong one; the name of a command
    alone is a mention of it."""
    if words[0].startswith("-"):
        return
    commands.register(app, words)
    command: Any = get_command(app)
    name, rest, context, given = "winboot", words, None, len(words)
    try:
        while rest:
            context = command.make_context(name, list(rest), parent=context)
            if not getattr(context, "_protected_args", None):
                return
            name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            given = len(rest)
    except (MissingParameter, NoArgsIsHelpError):
        if given:
            raise
