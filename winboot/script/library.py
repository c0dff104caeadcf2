"""The PowerShell library: its files whole and in order, as the one text that every script of a release ends with.

`library()` depends on winboot's files alone, on no profile and no node: a person reads it once a release, and knows it
again by its SHA-256. The small helper scripts take only the functions that they use, by `functions_for`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import winboot
from winboot.base.errors import ScriptError
from winboot.powershell.parser import parse
from winboot.powershell.pieces import BOUNDARY
from winboot.powershell.syntax import FunctionDefinition, Node, StringConstant, walk


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
    """templates/powershell: inside an installed package, or beside the package in a checkout."""
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
    """What each file is about, in the words that it begins with."""
    wide = max(map(len, library_files()))
    lines = []
    for name, text in library_files().items():
        first = text.partition("\n")[0]
        about = first.removeprefix("# ") if first.startswith("# ") else ""
        lines.append(f"#   {name:{wide}}  {about}".rstrip() + "\n")
    return "".join(lines)


@functools.cache
def functions() -> Mapping[str, Function]:
    """All functions by name, in the order of the files and of the functions in them.

    Raises ScriptError where two have the same name.
    """
    found: dict[str, Function] = {}
    for file, text in library_files().items():
        for node in walk(parse(text)):
            if not isinstance(node, FunctionDefinition):
                continue
            if node.name in found:
                raise ScriptError(f"{file}: the function {node.name} is defined twice in the library")
            found[node.name] = Function(
                node.name, file, node.extent.text + "\n", frozenset(_words(node.body))
            )
    return found


@functools.lru_cache(maxsize=512)
def names_for(text: str) -> tuple[str, ...]:
    """The library functions that `text` names, and those that these name, in the library's order."""
    used: set[str] = set()
    waiting = {word for word in _words(parse(text)) if word in functions()}
    while waiting:
        name = waiting.pop()
        used.add(name)
        waiting |= (functions()[name].names & functions().keys()) - used
    return tuple(name for name in functions() if name in used)


def functions_for(text: str) -> str:
    """The text of the functions of `names_for`."""
    return "\n".join(functions()[name].text for name in names_for(text))


def _words(node: Node) -> Iterator[str]:
    """What a call of a function is written as; also a name as a string, to call it by."""
    return (one.value for one in walk(node) if isinstance(one, StringConstant))
