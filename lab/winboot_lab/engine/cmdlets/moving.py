"""Copy-Item, Move-Item and Rename-Item, of files and of registry keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.door import ask
from winboot_lab.engine.exceptions import (
    DotNetException,
    DriveNotFoundException,
    IOException,
    ProviderNotFoundException,
    UnauthorizedAccessException,
)
from winboot_lab.engine.locations import FILES, REGISTRY, Place
from winboot_lab.engine.providers import (
    FileProvider,
    RegistryProvider,
    chosen_by_name,
    filtered,
    no_place,
    not_supported,
    place_of,
    resolve,
)
from winboot_lab.engine.types.fileinfo import DIRECTORY, HIDDEN, READ_ONLY, REPARSE, SYSTEM, is_folder

Value = Any

_TWO_PATHS = """
    Path: string[] mandatory position=0 value name set=Path
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralPath
    Destination: string position=1 name
    PassThru: switch
    Force: switch
    Filter: string
    Include: string[]
    Exclude: string[]
    Credential: pscredential refused
    UseTransaction: switch refused alias=usetx
"""


def destination(call: Call) -> Place | None:
    """Where things go; None after a complaint."""
    try:
        return place_of(call.scope, call.get("Destination") or ".")
    except (DriveNotFoundException, ProviderNotFoundException) as failure:
        no_place(call, failure)
        return None


def bare(place: Place) -> Place:
    """The place without a trailing separator."""
    path = place.path if place.path.endswith(":\\") else place.path.rstrip("\\")
    return replace(place, path=path)


# -- Copy-Item


@cmdlet(
    "Copy-Item",
    _TWO_PATHS
    + """
    Container: switch
    Recurse: switch
    FromSession: object refused
    ToSession: object refused
    """,
    module=MANAGEMENT,
    default_set="Path",
    should_process=True,
)
def copy_item(call: Call) -> None:
    """Copy what the paths name to one destination."""
    if call.has("Container"):
        call.refuse("-Container")
    target = destination(call)
    if target is None:
        return
    sources = [
        place for place in resolve(call) if chosen_by_name(call, place.leaf) and filtered(call, place.leaf)
    ]
    for place in sources:
        if place.provider != target.provider:
            call.refuse("between two providers")
        if not call.should_process():
            continue
        if place.provider == FILES:
            _Copy(call).start(bare(place), target)
        elif place.provider == REGISTRY:
            _copy_key(call, place, target)
        else:
            call.refuse(f"of {place.provider.lower()}:")


class _Copy:
    """One copy of a file or a folder."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.provider = FileProvider(call.scope)

    def start(self, source: Place, target: Place) -> None:
        facts = self.provider.facts(source)
        known = self.provider.facts(target)
        if is_folder(facts) and not int(facts["attributes"]) & REPARSE:
            self._folder(source, target.child(source.leaf) if is_folder(known) else bare(target))
            return
        if is_folder(known):
            target = target.child(source.leaf)
        elif target.path.endswith("\\") and not target.path.endswith(":\\"):
            self.call.refuse("of a file to a folder that is not there")
        self._file(source, target)

    def _file(self, source: Place, target: Place) -> None:
        call = self.call
        if source.path.lower() == target.path.lower():
            call.error(
                IOException(f"Cannot overwrite the item {source.path} with itself."),
                "CopyError",
                "WriteError",
                source.path,
            )
            return
        try:
            self._unlock(target)
            ask(call.scope, "file.copy", source=source.path, destination=target.path, overwrite=True)
        except UnauthorizedAccessException as failure:
            call.error(failure, "CopyFileInfoItemUnauthorizedAccessError", "PermissionDenied", source.path)
        except IOException as failure:
            call.error(failure, "CopyFileInfoItemIOError", "WriteError", source.path)
        else:
            self._show(target)

    def _unlock(self, target: Place) -> None:
        """With -Force a read-only or hidden file is overwritten as well."""
        facts = self.provider.facts(target)
        if facts is None or not self.call.flag("Force"):
            return
        number = int(facts["attributes"])
        if number & (READ_ONLY | HIDDEN | SYSTEM):
            ask(
                self.call.scope,
                "file.set-attributes",
                path=target.path,
                attributes=number & ~(READ_ONLY | HIDDEN | SYSTEM | DIRECTORY) or 128,
            )

    def _folder(self, source: Place, target: Place) -> None:
        call = self.call
        if target.path.lower() == source.path.lower() or target.path.lower().startswith(
            source.path.lower() + "\\"
        ):
            call.refuse("of a folder into itself")
        known = self.provider.facts(target)
        if known is not None and not is_folder(known):
            call.refuse("of a folder over a file")
        if known is None or call.flag("Recurse"):
            try:
                ask(call.scope, "file.make-directory", path=target.path)
            except DotNetException as failure:
                call.error(failure, "CreateDirectoryIOError", "WriteError", target.path)
                return
            if known is None:
                self._show(target)
        if not call.flag("Recurse"):
            return
        for child in self.provider.children(source):
            if not chosen_by_name(call, child.name):
                continue
            inner, place = source.child(child.name), target.child(child.name)
            if child.container and not int(child.facts["attributes"]) & REPARSE:
                self._folder(inner, place)
            else:
                self._file(inner, place)

    def _show(self, target: Place) -> None:
        if self.call.flag("PassThru"):
            self.call.write(self.provider.item(target))


def _copy_key(call: Call, source: Place, target: Place) -> None:
    provider = RegistryProvider(call.scope)
    if provider.exists(target):
        target = target.child(source.leaf)
    _copy_tree(call, source, target, deep=call.flag("Recurse"))
    if call.flag("PassThru"):
        call.write(provider.item(target))


def _copy_tree(call: Call, source: Place, target: Place, *, deep: bool) -> None:
    ask(call.scope, "registry.create", key=target.path)
    for record in ask(call.scope, "registry.values", key=source.path):
        ask(
            call.scope,
            "registry.set",
            key=target.path,
            name=record["name"],
            kind=record["kind"],
            value=record["value"],
        )
    if deep:
        for name in ask(call.scope, "registry.list", key=source.path):
            _copy_tree(call, source.child(name), target.child(name), deep=True)


# -- Move-Item


@cmdlet("Move-Item", _TWO_PATHS, module=MANAGEMENT, default_set="Path", should_process=True)
def move_item(call: Call) -> None:
    """Move what the paths name to one destination."""
    target = destination(call)
    if target is None:
        return
    sources = [
        place for place in resolve(call) if chosen_by_name(call, place.leaf) and filtered(call, place.leaf)
    ]
    for place in sources:
        if place.provider != target.provider:
            call.refuse("between two providers")
        if not call.should_process():
            continue
        if place.provider == FILES:
            _move_file(call, bare(place), target)
        elif place.provider == REGISTRY:
            _move_key(call, place, target)
        else:
            not_supported(call)


def _move_file(call: Call, source: Place, target: Place) -> None:
    provider = FileProvider(call.scope)
    facts = provider.facts(source)
    known = provider.facts(target)
    folder = is_folder(facts)
    if is_folder(known) and source.path.lower() != bare(target).path.lower():
        target = target.child(source.leaf)
        known = provider.facts(target)
    target = bare(target)
    kind = "DirectoryInfo" if folder else "FileInfo"
    force = call.flag("Force")
    try:
        if force and int(facts["attributes"]) & (READ_ONLY | HIDDEN) and not folder:
            number = int(facts["attributes"]) & ~(READ_ONLY | HIDDEN) or 128
            ask(call.scope, "file.set-attributes", path=source.path, attributes=number)
        if known is not None and force and not folder and not is_folder(known):
            _take_away(call, target, int(known["attributes"]))
        ask(call.scope, "file.move", source=source.path, destination=target.path)
    except UnauthorizedAccessException as failure:
        call.error(failure, f"Move{kind}ItemUnauthorizedAccessError", "PermissionDenied", source.path)
    except IOException as failure:
        call.error(failure, f"Move{kind}ItemIOError", "WriteError", source.path)
    else:
        if call.flag("PassThru"):
            call.write(provider.item(target))


def _take_away(call: Call, target: Place, attributes: int) -> None:
    if attributes & READ_ONLY:
        ask(call.scope, "file.set-attributes", path=target.path, attributes=attributes & ~READ_ONLY or 128)
    ask(call.scope, "file.delete", path=target.path)


def _move_key(call: Call, source: Place, target: Place) -> None:
    provider = RegistryProvider(call.scope)
    if provider.exists(target):
        target = target.child(source.leaf)
    if provider.exists(target):
        call.refuse("over a key that is there")
    _copy_tree(call, source, target, deep=True)
    ask(call.scope, "registry.delete-key", key=source.path, recurse=True)
    if call.flag("PassThru"):
        call.write(provider.item(target))


# -- Rename-Item
