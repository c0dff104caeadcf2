"""The PowerShell library: its files whole and in order, as the one text that every script of a release ends with.

`library()` depends on winboot's files alone, on no profile and no node: a person reads it once a release, and knows it
again by its SHA-256. The small helper scripts take only the functions that they use, by `functions_for`.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import winboot
from winboot.base.errors import ScriptError
from winboot.script.pieces import BOUNDARY

_FUNCTION: Final = re.compile(r"^function ([\w-]+) \{.*?^\}\n", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"^\s*#.*$", re.MULTILINE)
_CALL: Final = re.compile(r"[A-Za-z]+-[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class Library:
    """The text of the library, from its boundary line to the end of the script, and its SHA-256 in hex."""

    text: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Function:
    """One library function: its text as it is in its file, and the words in it that may be names of functions."""

    name: str
    file: str
    text: str
    names: frozenset[str]


def templates_root() -> Path:
    """templates/powershell: inside an installed package, or next to the package in a checkout."""
    package = Path(winboot.__file__).parent
    inside = package / "_templates" / "powershell"
    return inside if inside.is_dir() else package.parent / "templates" / "powershell"


@functools.cache
def library_files() -> Mapping[str, str]:
    """The library's files: name → text."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((templates_root() / "lib").glob("*.ps1"))
    }


@functools.cache
def library() -> Library:
    """The library of this release."""
    start = (templates_root() / "_start.ps1").read_text(encoding="utf-8")
    parts = [
        f"{BOUNDARY}\n"
        "# Its SHA-256 is in the head of the script. These are the files of templates/powershell/lib in winboot's repository:\n"
        + _contents(),
        *(f"# {'-' * 4} {name}\n{text}" for name, text in library_files().items()),
        f"#endregion\n\n{start}",
    ]
    text = "\n".join(parts)
    return Library(text, hashlib.sha256(text.encode()).hexdigest())


def _contents() -> str:
    """Each file with its summary, a line each."""
    wide = max(map(len, library_files()))
    return "".join(f"#   {name:{wide}}  {summary(text)}\n" for name, text in library_files().items())


def summary(text: str) -> str:
    """What a library file does, from its first line; empty if that line is not a summary."""
    head, mark, rest = text.partition("\n")[0].partition("# SUMMARY ")
    return rest if mark and not head else ""


@functools.cache
def functions() -> Mapping[str, Function]:
    """All functions by name, in the order of the files and of the functions in them.

    The style test holds the layout that the pattern needs: `function`, name and `{` on a line, `}` alone in column 1.
    Raises ScriptError where two functions have the same name.
    """
    found: dict[str, Function] = {}
    for file, text in library_files().items():
        for match in _FUNCTION.finditer(text):
            name = match[1]
            if name in found:
                raise ScriptError(f"{file}: the function {name} is defined twice in the library")
            found[name] = Function(name, file, match[0], _words(match[0]) - {name})
    return found


@functools.lru_cache(maxsize=512)
def names_for(text: str) -> tuple[str, ...]:
    """The library functions that `text` names, and those that these name, in the library's order."""
    used: set[str] = set()
    waiting = set(_words(text) & functions().keys())
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting |= (functions()[name].names & functions().keys()) - used
    return tuple(name for name in functions() if name in used)


def functions_for(text: str) -> str:
    """The text of the functions of `names_for`."""
    return "\n".join(functions()[name].text for name in names_for(text))


def _words(text: str) -> frozenset[str]:
    """What may be a call of a function, or its name in a string: each Verb-Noun outside of whole-line comments."""
    return frozenset(_CALL.findall(_COMMENT.sub("", text)))
