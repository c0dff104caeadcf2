"""The dialect: which part of .NET the scripts may use. `data/types.txt` lists it, and says how to read it.

It names what each type lacks where no other name exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

PAGE: Final = "docs/lab-language.md"
"""The page that lists the dialect; each refusal names it."""


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type's members by lower-case name, each with its spelling; `absent_known` where no other name exists but `lacks`."""

    name: str
    members: Mapping[str, str] = field(default_factory=dict)
    statics: Mapping[str, str] = field(default_factory=dict)
    constructors: tuple[str, ...] = ()
    lacks: frozenset[str] = frozenset()
    absent_known: bool = False


@cache
def types() -> Mapping[str, TypeFacts]:
    """The listed types by full name."""
    return {facts.name: facts for facts in _read()}


def _read() -> Iterator[TypeFacts]:
    text = resources.files(__package__).joinpath("data/types.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        name, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if name:
            parts = {head: rest.split() for head, _, rest in (line.strip().partition(": ") for line in lines)}
            yield TypeFacts(
                name,
                {member.lower(): member for member in parts.get("has", ())},
                {member.lower(): member for member in parts.get("static", ())},
                tuple(parts.get("new", ())),
                frozenset(member.lower() for member in parts.get("lacks", ())),
                "lacks" in parts,
            )
