"""Join-, Split-, Test-, Resolve- and Convert-Path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.dotnet import enum_type
from winboot_lab.engine.exceptions import (
    DriveNotFoundException,
    FormatException,
    ProviderNotFoundException,
)
from winboot_lab.engine.items import PathInfo
from winboot_lab.engine.locations import FILES, REGISTRY, Place
from winboot_lab.engine.providers import (
    chosen_by_name,
    expand,
    given_paths,
    no_place,
    place_of,
    provider_of,
    resolve,
)

Value = Any

enum_type("Microsoft.PowerShell.Commands.TestPathType", {"Any": 0, "Container": 1, "Leaf": 2})

PATH_OR_LITERAL = """
    Path: string[] mandatory position=0 value name set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
"""

_QUALIFIER = re.compile(r"(?:[^\\/]+::|[^\\/:]+:(?!:))")


# -- Join-Path


@cmdlet(
    "Join-Path",
    """
    Path: string[] mandatory position=0 value name alias=PSPath
    ChildPath: string mandatory position=1 name null empty
    Resolve: switch
    Credential: pscredential refused
    """,
    module=MANAGEMENT,
)
def join_path(call: Call) -> None:
    """Parent and child with one separator between them; the parent's drive must exist."""
    for parent in call.items("Path"):
        try:
            call.session.locations.place(parent)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            continue
        joined = joined_path(parent, call["ChildPath"] or "")
        if call.flag("Resolve"):
            for place in resolve(call, iter([(joined, False)])):
                call.write(shown(place))
        else:
            call.write(joined)


def joined_path(parent: str, child: str) -> str:
    """What MakePath of the providers gives."""
    parent, child = parent.replace("/", "\\"), child.replace("/", "\\")
    if not child:
        return parent if parent.endswith("\\") else parent + "\\"
    if not parent.endswith("\\"):
        parent += "\\"
    return parent + (child[1:] if child.startswith("\\") else child)


def shown(place: Place) -> str:
    """A place as a path string: with its drive, or qualified."""
    return str(PathInfo(place))


# -- Split-Path


@cmdlet(
    "Split-Path",
    """
    Path: string[] mandatory position=0 value name set=ParentSet,LeafSet,QualifierSet,NoQualifierSet
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPathSet
    Qualifier: switch mandatory set=QualifierSet
    NoQualifier: switch mandatory set=NoQualifierSet
    Parent: switch set=ParentSet
    Leaf: switch mandatory set=LeafSet
    Resolve: switch
    Credential: pscredential refused
    """,
    module=MANAGEMENT,
    default_set="ParentSet",
)
def split_path(call: Call) -> None:
    """A part of each path."""
    for text in _split_texts(call):
        if call.flag("Qualifier"):
            _write_qualifier(call, text)
        elif call.flag("NoQualifier"):
            call.write(text[len(qualifier(text)) :])
        elif call.flag("Leaf"):
            call.write(leaf_of(call, text))
        else:
            call.write(parent_of(call, text))


def _split_texts(call: Call) -> Iterator[str]:
    if call.flag("Resolve"):
        for place in resolve(call):
            yield shown(place)
    else:
        for text, _ in given_paths(call):
            yield text


def qualifier(text: str) -> str:
    """`C:`, `HKLM:` or `Registry::` in front of a path, or ''."""
    if text.startswith(("\\", "/")):
        return ""
    found = _QUALIFIER.match(text)
    return found.group() if found else ""


def _write_qualifier(call: Call, text: str) -> None:
    found = qualifier(text)
    if found:
        call.write(found)
        return
    call.error(
        FormatException(f"Cannot parse path because path '{text}' does not have a qualifier specified."),
        "ParsePathFormatError",
        "InvalidArgument",
        text,
    )


def leaf_of(call: Call, text: str) -> str:
    """The last part; a path that ends in a drive or in dots is worked out first."""
    found = qualifier(text)
    rest = text[len(found) :].replace("/", "\\").rstrip("\\")
    last = rest.rpartition("\\")[2]
    if last and last not in (".", ".."):
        return last
    place: Place = call.session.locations.place(text)
    return place.path if place.path.endswith(":\\") else place.leaf


def parent_of(call: Call, text: str) -> str:
    """Everything before the last part."""
    found = qualifier(text)
    rest = text[len(found) :].replace("/", "\\")
    if rest.startswith("\\\\") and rest.strip("\\").count("\\") < 2:
        call.refuse("of a network share")
    rest = rest.rstrip("\\")
    cut = rest.rfind("\\")
    if cut < 0:
        return ""
    return found + (rest[:cut] if cut else "\\")


# -- Test-Path


@cmdlet(
    "Test-Path",
    PATH_OR_LITERAL
    + """
    Filter: string refused
    Include: string[]
    Exclude: string[]
    PathType: Microsoft.PowerShell.Commands.TestPathType alias=Type
    IsValid: switch
    Credential: pscredential refused
    OlderThan: object refused dynamic
    NewerThan: object refused dynamic
    """,
    module=MANAGEMENT,
    default_set="Path",
)
def test_path(call: Call) -> None:
    """True or false for each path; a missing drive is just false."""
    for text, literal in given_paths(call):
        call.write(_test(call, text, literal=literal))


def _test(call: Call, text: str, *, literal: bool) -> bool:
    if call.flag("IsValid"):
        return _is_valid(call, text)
    try:
        places = expand(call.scope, text, literal=literal) or []
    except (DriveNotFoundException, ProviderNotFoundException):
        return False
    kind = str(call.get("PathType", "Any"))
    for place in places:
        if not chosen_by_name(call, place.leaf):
            continue
        provider = provider_of(call.scope, place)
        if kind == "Any" or provider.is_container(place) == (kind == "Container"):
            return True
    return False


def _is_valid(call: Call, text: str) -> bool:
    try:
        place = place_of(call.scope, text)
    except (DriveNotFoundException, ProviderNotFoundException):
        return False
    if place.provider == FILES:
        return not any(letter in '<>"|?*' or letter < " " or letter == ":" for letter in place.path[2:])
    return place.provider == REGISTRY or call.refuse("-IsValid")
