"""Paths of all providers: what exists, what is inside, and which items a pattern means.

A provider answers for one kind of place; `resolve` turns the paths a cmdlet was given into places and reports those
that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import (
    DotNetException,
    DriveNotFoundException,
    IOException,
    ItemNotFoundException,
    ProviderNotFoundException,
    PSNotSupportedException,
)
from winboot_lab.engine.items import with_notes
from winboot_lab.engine.locations import (
    FILES,
    HIVES,
    REGISTRY,
    Place,
    join,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.types.fileinfo import HIDDEN, FileSystemInfo, is_folder
from winboot_lab.engine.types.registry import registry_key
from winboot_lab.engine.values import STRING, Array, NoteProperty, decorate
from winboot_lab.engine.wildcards import has_wildcards, like, unescape_wildcards

Value = Any


@dataclass(frozen=True, slots=True)
class Child:
    """One name inside a container; `facts` is what the provider already knows."""

    name: str
    container: bool
    hidden: bool = False
    facts: Any = None


class Provider:
    """The operations of every provider. The places given are of this provider."""

    name = ""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def exists(self, place: Place) -> bool:
        raise NotImplementedError

    def is_container(self, place: Place) -> bool:
        raise NotImplementedError

    def children(self, place: Place) -> list[Child]:
        """In the order in which Get-ChildItem shows them."""
        raise NotImplementedError

    def item(self, place: Place, facts: Any = None) -> Value:
        """The object of an existing place, with its notes."""
        raise NotImplementedError

    def _noted(self, value: Value, place: Place, *, container: bool | None) -> Value:
        return with_notes(value, place, self.scope.session.locations, container=container)


class FileProvider(Provider):
    """The file system."""

    name = FILES

    def facts(self, place: Place) -> Any:
        """The machine's facts about a path, or None."""
        try:
            return ask_one(self.scope, "file.stat", path=place.path)
        except DotNetException:
            return None

    def exists(self, place: Place) -> bool:
        return self.facts(place) is not None

    def is_container(self, place: Place) -> bool:
        return is_folder(self.facts(place))

    def children(self, place: Place) -> list[Child]:
        found = [
            Child(entry["name"], is_folder(entry), bool(int(entry["attributes"]) & HIDDEN), entry)
            for entry in ask(self.scope, "file.list", path=place.path)
        ]
        found.sort(key=lambda child: not child.container)
        return found

    def item(self, place: Place, facts: Any = None) -> Value:
        """A FileInfo or DirectoryInfo; one that was listed shows its name alone, as .NET Framework's do."""
        shown = None if facts is None else str(facts["name"])
        facts = facts or self.facts(place)
        made = FileSystemInfo(place.path, shown, folder=is_folder(facts), facts=facts)
        return self._noted(made, place, container=is_folder(facts))


REGISTRY_HIVES = frozenset(HIVES.values())


class RegistryProvider(Provider):
    """The registry; keys are containers, values are properties."""

    name = REGISTRY

    def exists(self, place: Place) -> bool:
        if not place.path:
            return True
        if place.path.partition("\\")[0].upper() not in REGISTRY_HIVES:
            return False
        return ask_one(self.scope, "registry.stat", key=place.path) is not None

    def is_container(self, place: Place) -> bool:
        return self.exists(place)

    def children(self, place: Place) -> list[Child]:
        return [Child(name, container=True) for name in ask(self.scope, "registry.list", key=place.path)]

    def item(self, place: Place, facts: Any = None) -> Value:
        return self.key_item(place, writable=False)

    def key_item(self, place: Place, *, writable: bool) -> Value:
        """A key's object; `Property` is what it holds now."""
        key = registry_key(self.scope, place.path, writable=writable)
        made, extension = decorate(key)
        extension.add(NoteProperty("Property", Array(shown_names(key.names(self.scope)), STRING)))
        return self._noted(made, place, container=True)


def shown_names(names: Sequence[str]) -> list[str]:
    """Value names as the provider shows them: the default value is `(default)`."""
    return [name or "(default)" for name in names]


_PROVIDERS: dict[str, type[Provider]] = {kind.name: kind for kind in (FileProvider, RegistryProvider)}


def provider_of(scope: Scope, place: Place) -> Provider:
    """The provider that answers for a place."""
    kind = _PROVIDERS.get(place.provider)
    if kind is None:
        raise Refusal("value", f"{place.provider}::", "paths of this provider")
    return kind(scope)


# -- places from paths


def place_of(scope: Scope, text: str) -> Place:
    """What a literal path means, with the trailing separator it was written with."""
    place: Place = scope.session.locations.place(text)
    if place.provider == REGISTRY and "/" in text and "\\" in text:
        raise Refusal("value", text, "a registry path with both kinds of slashes")
    if place.provider == FILES and text[-1:] in ("\\", "/") and not place.path.endswith("\\"):
        return replace(place, path=place.path + "\\")
    return place


def expand(scope: Scope, text: str, *, literal: bool) -> list[Place] | None:
    """The existing places a path means; None when a path without wildcards means nothing that exists."""
    if literal or not has_wildcards(text):
        place = place_of(scope, text if literal else unescape_wildcards(text))
        return [place] if provider_of(scope, place).exists(place) else None
    return list(glob(scope, scope.session.locations.place(text)))


def glob(scope: Scope, pattern: Place) -> Iterator[Place]:
    """The existing places that fit a pattern."""
    provider = provider_of(scope, pattern)
    base, parts = _split(pattern)
    found = [base]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        found = list(_step(provider, found, part, last=last))
    yield from found


def _split(pattern: Place) -> tuple[Place, list[str]]:
    """The part of a path before its first wildcard, and the rest part by part."""
    parts = pattern.path.split("\\")
    fixed: list[str] = []
    while parts and not has_wildcards(parts[0]):
        fixed.append(unescape_wildcards(parts.pop(0)))
    base = "\\".join(fixed)
    if len(base) == 2 and base[1] == ":":
        base += "\\"
    return replace(pattern, path=base), parts


def _step(provider: Provider, places: Sequence[Place], part: str, *, last: bool) -> Iterator[Place]:
    for place in places:
        if not has_wildcards(part):
            child = place.child(unescape_wildcards(part))
            if provider.exists(child):
                yield child
            continue
        if not provider.is_container(place):
            continue
        for entry in provider.children(place):
            if like(entry.name, part) and (last or entry.container):
                yield replace(place, path=join(place.path, entry.name))


def missing(shown: str) -> ItemNotFoundException:
    """The error of a path that leads nowhere."""
    return ItemNotFoundException(
        f"Cannot find path '{shown}' because it does not exist.", "PathNotFound", "ObjectNotFound", shown
    )


def report_missing(call: Call, shown: str) -> None:
    """Say that a path leads nowhere."""
    call.error(missing(shown), "PathNotFound", "ObjectNotFound", shown)


def shown_path(scope: Scope, text: str, *, literal: bool = True) -> str:
    """A path as messages show it: complete, with its drive."""
    return scope.session.locations.place(text if literal else unescape_wildcards(text)).shown


def no_place(call: Call, failure: DriveNotFoundException | ProviderNotFoundException) -> None:
    """Report a drive or provider that does not exist."""
    call.error(failure, failure.id, failure.category, failure.target)


def given_paths(call: Call) -> Iterator[tuple[str, bool]]:
    """The paths a call names: text, and whether it is literal."""
    if call.has("LiteralPath"):
        for text in call.items("LiteralPath"):
            yield text, True
    else:
        for text in call.items("Path"):
            yield text, False


def resolve(call: Call, paths: Iterator[tuple[str, bool]] | None = None) -> Iterator[Place]:
    """The existing places a call's paths mean; what is missing is reported."""
    for text, literal in paths if paths is not None else given_paths(call):
        try:
            found = expand(call.scope, text, literal=literal)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            continue
        if found is None:
            report_missing(call, shown_path(call.scope, text, literal=literal))
        else:
            yield from found


def literal_places(call: Call, paths: Iterator[str]) -> Iterator[Place]:
    """Places that need not exist."""
    for text in paths:
        try:
            yield place_of(call.scope, text)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)


def chosen_by_name(call: Call, name: str) -> bool:
    """Does a name pass -Include and -Exclude?"""
    include, exclude = call.items("Include"), call.items("Exclude")
    if include and not any(like(name, pattern) for pattern in include):
        return False
    return not any(like(name, pattern) for pattern in exclude)


def filtered(call: Call, name: str) -> bool:
    """Does a file name pass -Filter (the file system's own patterns)?"""
    pattern = call["Filter"]
    if pattern is None or pattern == "":
        return True
    plain = pattern.replace("[", "`[").replace("]", "`]")
    if like(name, plain):
        return True
    _, dot, extension = pattern.rpartition(".")
    if (
        dot
        and len(extension) == 3
        and "*" not in extension
        and "?" not in extension
        and like(name, plain + "*")
    ):
        # Short (8.3) names make such a file fit on a volume that has them.
        raise Refusal(
            "parameter", f"{call.name} -Filter {pattern}", f"whether {name} fits depends on short names"
        )
    return pattern in ("*", "*.*")


NO_SUCH_OPERATION = "Provider operation stopped because the provider does not support this operation."


def not_supported(call: Call, what: str = NO_SUCH_OPERATION) -> NoReturn:
    """The provider cannot do this."""
    call.fail(PSNotSupportedException(what), "NotSupported", "NotImplemented")


def hidden_item(call: Call, place: Place) -> None:
    """Get-Item without -Force does not see hidden files."""
    call.error(
        IOException(f"Could not find item {place.path}."), "ItemNotFound", "ObjectNotFound", place.path
    )
