"""The dialect: which cmdlets and which part of .NET the lab has. `data/cmdlets.txt` and `data/types.txt` list them.

The engine declares exactly these (lab/tests/lab_engine/test_dialect.py), and docs/lab-language.md shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

PAGE: Final = "docs/lab-language.md"
"""The page that lists the dialect; each refusal names it."""


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type's members by their spelling, and how many arguments its constructors take (`2+`: two or more).

    `lacks` names what the real type has and the lab lacks, or is None where other names may exist, too.
    """

    name: str
    members: tuple[str, ...] = ()
    statics: tuple[str, ...] = ()
    constructors: tuple[str, ...] = ()
    lacks: frozenset[str] | None = None


@cache
def types() -> Mapping[str, TypeFacts]:
    """The listed types by full name."""
    return {name: _facts(name, parts) for name, parts in _entries("types.txt")}


@cache
def cmdlets() -> Mapping[str, tuple[str, ...]]:
    """The listed cmdlets by name, each with its parameters."""
    return {name: tuple(parts.get("has", ())) for name, parts in _entries("cmdlets.txt")}


def _facts(name: str, parts: Mapping[str, list[str]]) -> TypeFacts:
    lacks = frozenset(member.lower() for member in parts["lacks"]) if "lacks" in parts else None
    return TypeFacts(
        name, tuple(parts.get("has", ())), tuple(parts.get("static", ())), tuple(parts.get("new", ())), lacks
    )


def _entries(file: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each name that begins a line, with the words of the indented lines below it (`has: …`)."""
    text = resources.files(__package__).joinpath("data", file).read_text(encoding="utf-8")
    name, parts = "", dict[str, list[str]]()
    for line in text.splitlines():
        if line.startswith(" "):
            head, _, words = line.strip().partition(":")
            parts[head] = words.split()
        elif line and not line.startswith("#"):
            if name:
                yield name, parts
            name, parts = line, {}
    yield name, parts
