"""Get-Item, Get-ChildItem, New-Item, Set-Item, Clear-Item, Remove-Item, Invoke-Item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.cmdlets.paths import PATH_OR_LITERAL, joined_path
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.convert import to_string
from winboot_lab.engine.door import ask, ask_one
from winboot_lab.engine.exceptions import (
    ArgumentException,
    DotNetException,
    DriveNotFoundException,
    IOException,
    ProviderNotFoundException,
    RuntimeException,
    UnauthorizedAccessException,
    declare_exception,
)
from winboot_lab.engine.items import with_notes
from winboot_lab.engine.locations import (
    FILES,
    REGISTRY,
    Place,
    join,
    parent_path,
)
from winboot_lab.engine.providers import (
    Child,
    FileProvider,
    Provider,
    RegistryProvider,
    chosen_by_name,
    expand,
    filtered,
    given_paths,
    hidden_item,
    literal_places,
    no_place,
    not_supported,
    place_of,
    provider_of,
    report_missing,
    resolve,
    shown_path,
)
from winboot_lab.engine.types.fileinfo import DIRECTORY, HIDDEN, READ_ONLY, REPARSE, SYSTEM
from winboot_lab.engine.types.registry import data_for, kind_for, store
from winboot_lab.engine.values import ScriptBlock, Structured, plain
from winboot_lab.engine.wildcards import has_wildcards, like

Value = Any

FILTERS = """
    Filter: string position=1
    Include: string[]
    Exclude: string[]
"""
FORCE = "Force: switch\n"
CREDENTIAL = "Credential: pscredential refused\nUseTransaction: switch refused alias=usetx\n"


# -- Get-Item


@cmdlet(
    "Get-Item",
    PATH_OR_LITERAL
    + """
    Filter: string
    Include: string[]
    Exclude: string[]
    Stream: string[] refused dynamic
    """
    + FORCE
    + CREDENTIAL,
    module=MANAGEMENT,
    default_set="Path",
)
def get_item(call: Call) -> None:
    """The object at each path."""
    for text, literal in given_paths(call):
        pattern = not literal and has_wildcards(text)
        for place in resolve(call, iter([(text, literal)])):
            _write_item(call, place, pattern=pattern)


def _write_item(call: Call, place: Place, *, pattern: bool) -> None:
    if not chosen_by_name(call, place.leaf) or not filtered(call, place.leaf):
        return
    provider = provider_of(call.scope, place)
    if isinstance(provider, FileProvider):
        facts = provider.facts(place)
        if _is_hidden(facts) and not call.flag("Force"):
            if not pattern:
                hidden_item(call, place)
            return
    call.write(provider.item(place))


def _is_hidden(facts: Any) -> bool:
    return facts is not None and bool(int(facts["attributes"]) & HIDDEN)


# -- Get-ChildItem


@cmdlet(
    "Get-ChildItem",
    """
    Path: string[] position=0 value name set=Items
    LiteralPath: string[] mandatory name alias=PSPath set=LiteralItems
    Recurse: switch alias=s
    Depth: uint32
    Name: switch
    Attributes: string refused dynamic
    Directory: switch dynamic alias=ad,d
    File: switch dynamic alias=af
    Hidden: switch dynamic alias=ah,h
    ReadOnly: switch dynamic alias=ar
    System: switch dynamic alias=as
    """
    + FILTERS
    + FORCE,
    module=MANAGEMENT,
    default_set="Items",
)
def get_child_item(call: Call) -> None:
    """What is inside each path, or the items a pattern names."""
    paths = list(given_paths(call)) or [(".", True)]
    for text, literal in paths:
        _Listing(call).run(text, literal=literal)


class _Listing:
    """One Get-ChildItem of one path."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.deep = call.flag("Recurse") or call.has("Depth")
        self.limit = int(call["Depth"]) if call.has("Depth") else None
        self.pattern: str | None = None

    def run(self, text: str, *, literal: bool) -> None:
        call = self.call
        pattern = not literal and has_wildcards(text)
        if pattern and self.deep:
            text = self._split_pattern(text)
            pattern = has_wildcards(text)
        try:
            places = expand(call.scope, text, literal=literal)
        except (DriveNotFoundException, ProviderNotFoundException) as failure:
            no_place(call, failure)
            return
        if places is None:
            self._missing(text, literal=literal)
            return
        for place in places:
            self._one(place, pattern=pattern)

    def _split_pattern(self, text: str) -> str:
        """With -Recurse a pattern in the last part is looked for at every depth below the rest."""
        head, cut, last = text.replace("/", "\\").rpartition("\\")
        if not has_wildcards(last):
            self.call.refuse("-Recurse with a wildcard inside the path")
        self.pattern = last
        return (head or "\\") if cut else "."

    def _missing(self, text: str, *, literal: bool) -> None:
        if self.deep and not literal:
            place = self.call.session.locations.place(text)
            up = place.parent
            if place.provider == FILES and up is not None and provider_of(self.call.scope, up).exists(up):
                self.call.refuse("-Recurse of a missing path")
        report_missing(self.call, shown_path(self.call.scope, text, literal=literal))

    def _one(self, place: Place, *, pattern: bool) -> None:
        call = self.call
        provider = provider_of(call.scope, place)
        if call["Filter"] and not isinstance(provider, FileProvider):
            not_supported(call, "Cannot call method. The provider does not support the use of filters.")
        if pattern and not self.deep:
            if call.has("Include") and provider.is_container(place) and place.provider == REGISTRY:
                return
            self._item(provider, place, None, place.leaf)
            return
        if not provider.is_container(place):
            if self.deep:
                call.refuse("-Recurse of a file")
            self._item(provider, place, None, place.leaf)
            return
        if call.has("Include") and not self.deep:
            return
        for child_place, child, relative in self._walk(provider, place, "", 0):
            if self.pattern is not None and not like(child.name, self.pattern):
                continue
            self._item(provider, child_place, child, relative)

    def _walk(
        self, provider: Provider, place: Place, relative: str, depth: int
    ) -> Iterator[tuple[Place, Child, str]]:
        """Everything below a container: its own children first, then what they hold."""
        try:
            children = provider.children(place)
        except DotNetException as failure:
            self._denied(place, failure)
            return
        inside: list[tuple[Place, str]] = []
        for child in children:
            if child.hidden and not self.call.flag("Force") and not self.call.flag("Hidden"):
                continue
            path = replace(place, path=join(place.path, child.name))
            name = f"{relative}{child.name}"
            yield path, child, name
            if self.deep and child.container and (self.limit is None or depth < self.limit):
                if child.facts is not None and int(child.facts["attributes"]) & REPARSE:
                    self.call.refuse("-Recurse through a link")
                if place.provider == REGISTRY and not self.call.flag("Name"):
                    yield from self._walk(provider, path, name + "\\", depth + 1)
                else:
                    inside.append((path, name + "\\"))
        for path, name in inside:
            yield from self._walk(provider, path, name, depth + 1)

    def _denied(self, place: Place, failure: DotNetException) -> None:
        if isinstance(failure, UnauthorizedAccessException):
            self.call.error(failure, "DirUnauthorizedAccessError", "PermissionDenied", place.path)
            return
        raise failure

    def _item(self, provider: Provider, place: Place, child: Child | None, relative: str) -> None:
        call = self.call
        if not chosen_by_name(call, place.leaf):
            return
        facts = child.facts if child is not None else None
        if isinstance(provider, FileProvider):
            facts_now = facts or provider.facts(place)
            if not self._fits(facts_now):
                return
            if not filtered(call, place.leaf):
                return
        if call.flag("Name"):
            container = child.container if child is not None else provider.is_container(place)
            call.write(with_notes(relative, place, call.session.locations, container=container))
        else:
            call.write(provider.item(place, facts))

    def _fits(self, facts: Any) -> bool:
        """-Directory, -File, -Hidden, -ReadOnly, -System; hidden items only when the script asks for them."""
        call, number = self.call, int(facts["attributes"])
        if number & HIDDEN and not (call.flag("Force") or call.flag("Hidden")):
            return False
        for name, bit in (
            ("Directory", DIRECTORY),
            ("Hidden", HIDDEN),
            ("ReadOnly", READ_ONLY),
            ("System", SYSTEM),
        ):
            if call.flag(name) and not number & bit:
                return False
        return not (call.flag("File") and number & DIRECTORY)


# -- New-Item


@cmdlet(
    "New-Item",
    """
    Path: string[] mandatory position=0 name set=pathSet
    Path: string[] position=0 name set=nameSet
    Name: string mandatory name null empty set=nameSet
    ItemType: string name alias=Type
    Value: object value name alias=Target
    """
    + FORCE
    + CREDENTIAL,
    module=MANAGEMENT,
    default_set="pathSet",
    should_process=True,
)
def new_item(call: Call) -> None:
    """Make a file, folder, link, key, variable or function."""
    paths = call.items("Path") or ["."]
    if call.has("Name") and call["Name"]:
        paths = [joined_path(path, call["Name"]) for path in paths]
    for place in literal_places(call, iter(paths)):
        if not call.should_process():
            continue
        if place.provider == FILES:
            _new_file_item(call, place)
        elif place.provider == REGISTRY:
            _new_key(call, place)
        elif (
            place.provider == "Function"
            and call.flag("Force")
            and isinstance(plain(call["Value"]), ScriptBlock)
        ):
            from winboot_lab.engine.invoke import define_function

            define_function(call.scope, place.path, plain(call["Value"]))
            call.write(call["Value"])
        else:
            call.refuse(f"of {place.provider}")


_FILE_TYPES = (
    ("directory", "directory"),
    ("container", "directory"),
    ("file", "file"),
    ("symboliclink", "SymbolicLink"),
    ("junction", "Junction"),
    ("hardlink", "HardLink"),
)


def _new_file_item(call: Call, place: Place) -> None:
    wanted = call.get("ItemType") or "file"
    kind = next((kind for word, kind in _FILE_TYPES if word.startswith(wanted.lower())), None)
    place = replace(place, path=place.path if place.path.endswith(":\\") else place.path.rstrip("\\"))
    if kind is None:
        call.fail(
            ArgumentException(
                'The type is not a known type for the file system. Only "file","directory" or "symboliclink" can be '
                "specified.",
                "type",
            ),
            "Argument",
            "InvalidArgument",
        )
    elif kind == "directory":
        _new_folder(call, place)
    elif kind == "file":
        _new_file(call, place)
    else:
        _new_link(call, place, kind)


def _new_folder(call: Call, place: Place) -> None:
    provider = FileProvider(call.scope)
    facts = provider.facts(place)
    if facts is not None and not call.flag("Force"):
        call.error(
            IOException(f"An item with the specified name {facts['path']} already exists."),
            "DirectoryExist",
            "ResourceExists",
            facts["path"],
        )
        return
    if facts is not None and facts["kind"] != "directory":
        return
    try:
        made = ask_one(call.scope, "file.make-directory", path=place.path)
    except IOException as failure:
        call.error(failure, "CreateDirectoryIOError", "WriteError", place.path)
    except UnauthorizedAccessException as failure:
        call.error(failure, "CreateDirectoryUnauthorizedAccessError", "PermissionDenied", place.path)
    else:
        call.write(provider.item(replace(place, path=str(made["path"]))))


def _new_file(call: Call, place: Place) -> None:
    value = call["Value"]
    content = b"" if value is None else to_string(value).encode("utf-8")
    force = call.flag("Force")
    try:
        up = parent_path(place.path)
        if force and up is not None:
            ask(call.scope, "file.make-directory", path=up)
        ask(
            call.scope,
            "file.write",
            path=place.path,
            content=content,
            mode="Create" if force else "CreateNew",
            share="None",
        )
    except IOException as failure:
        call.error(failure, "NewItemIOError", "WriteError", place.path)
    except UnauthorizedAccessException as failure:
        call.error(failure, "NewItemUnauthorizedAccessError", "PermissionDenied", place.path)
    else:
        call.write(FileProvider(call.scope).item(place))


def _new_link(call: Call, place: Place, kind: str) -> None:
    target = call["Value"]
    if target is None or not str(target):
        call.refuse(f"-ItemType {kind} without -Value")
    if FileProvider(call.scope).exists(place):
        call.refuse(f"-ItemType {kind} over something that is there")
    # Windows PowerShell links to nothing absent: PowerShell/PowerShell pull request 804 came with version 6.
    if not FileProvider(call.scope).exists(place_of(call.scope, str(target))):
        report_missing(call, str(target))
        return
    try:
        ask(call.scope, "file.link", path=place.path, target=call.text(target), kind=kind)
    except DotNetException as failure:
        call.error(failure, "NewItemIOError", "WriteError", place.path)
    else:
        call.write(FileProvider(call.scope).item(place))


def _new_key(call: Call, place: Place) -> None:
    provider = RegistryProvider(call.scope)
    if call.has("ItemType") and call["ItemType"]:
        call.refuse("-ItemType of a registry key")
    up = place.parent
    force = call.flag("Force")
    if up is None or not (force or provider.exists(up)):
        call.error(
            ArgumentException("The registry key at the specified path does not exist."),
            "System.ArgumentException",
            "InvalidArgument",
            up.path if up is not None else place.path,
        )
        return
    if provider.exists(place):
        if not force:
            call.error(
                IOException("A key in this path already exists."),
                "System.IO.IOException",
                "ResourceExists",
                Structured("Microsoft.PowerShell.Commands.RegistryWrapper", {"Name": place.path}),
            )
            return
        ask(call.scope, "registry.delete-key", key=place.path, recurse=True)
    try:
        ask(call.scope, "registry.create", key=place.path)
        if call["Value"] is not None:
            _set_default(call, place)
    except DotNetException as failure:
        registry_failure(call, failure, place)
    else:
        call.write(provider.key_item(place, writable=True))


def registry_failure(call: Call, failure: DotNetException, place: Place) -> None:
    """A .NET exception of the registry as the provider reports it."""
    denied = failure.type_name in ("System.UnauthorizedAccessException", "System.Security.SecurityException")
    category = "PermissionDenied" if denied else "WriteError"
    if isinstance(failure, ArgumentException):
        category = "InvalidArgument"
    call.error(failure, failure.type_name, category, place.path)


def _set_default(call: Call, place: Place) -> None:
    value = call["Value"]
    kind = kind_for(value)
    store(call.scope, place.path, "", kind, data_for(value, kind))


# -- Remove-Item

HostException = declare_exception("System.Management.Automation.Host.HostException", RuntimeException)


@cmdlet(
    "Remove-Item",
    PATH_OR_LITERAL
    + """
    Filter: string
    Include: string[]
    Exclude: string[]
    Recurse: switch
    Stream: string[] refused dynamic
    """
    + FORCE
    + CREDENTIAL,
    module=MANAGEMENT,
    default_set="Path",
    should_process=True,
)
def remove_item(call: Call) -> None:
    """Delete what the paths name."""
    for text, literal in given_paths(call):
        pattern = not literal and has_wildcards(text)
        for place in resolve(call, iter([(text, literal)])):
            if not chosen_by_name(call, place.leaf) or not filtered(call, place.leaf):
                continue
            _remove(call, place, pattern=pattern)


def _remove(call: Call, place: Place, *, pattern: bool) -> None:
    provider = provider_of(call.scope, place)
    if isinstance(provider, FileProvider):
        facts = provider.facts(place)
        if pattern and _is_hidden(facts) and not call.flag("Force"):
            return
        is_link = bool(int(facts["attributes"]) & REPARSE)
        folder = facts["kind"] == "directory"
        if folder and not is_link:
            _check_children(call, provider, place)
        if call.should_process():
            _remove_file(call, provider, replace(place, path=_bare(place.path)), facts)
    elif isinstance(provider, RegistryProvider):
        _check_children(call, provider, place)
        if call.should_process():
            try:
                ask(call.scope, "registry.delete-key", key=place.path, recurse=True)
            except DotNetException as failure:
                registry_failure(call, failure, place)


def _bare(path: str) -> str:
    return path if path.endswith(":\\") else path.rstrip("\\")


def _check_children(call: Call, provider: Provider, place: Place) -> None:
    """Without -Recurse PowerShell asks the user before it removes children; the lab has no user to answer."""
    if call.flag("Recurse") or not provider.children(place):
        return
    if call.common.what_if or call.common.confirm is False:
        return
    call.fail(
        HostException(
            "A command that prompts the user failed because the host program or the command type does not support user "
            "interaction. The host was attempting to request confirmation with the following message: The item at "
            f"{place.shown} has children and the Recurse parameter was not specified. If you continue, all children "
            "will be removed with the item. Are you sure you want to continue?"
        ),
        "HostFunctionNotImplemented",
        "NotImplemented",
    )


def _remove_file(call: Call, provider: FileProvider, place: Place, facts: Any) -> bool:
    """Delete a file or folder with all in it; what resists is reported, and what holds it stays."""
    number = int(facts["attributes"])
    if facts["kind"] == "directory" and not number & REPARSE:
        done = True
        for child in provider.children(place):
            inner = replace(place, path=join(place.path, child.name))
            done = _remove_file(call, provider, inner, child.facts) and done
        if not done:
            return _not_removed(call, place, IOException("The directory is not empty.\r\n"))
    if number & (READ_ONLY | HIDDEN | SYSTEM) and not call.flag("Force"):
        denied = IOException(
            "You do not have sufficient access rights to perform this operation or the item is hidden, system, or read "
            "only."
        )
        call.error(
            IOException(f"Cannot remove item {place.path}: {denied.message}"),
            "RemoveFileSystemItemUnAuthorizedAccess",
            "PermissionDenied",
            provider.item(place),
        )
        return False
    try:
        if number & READ_ONLY:
            ask(
                call.scope,
                "file.set-attributes",
                path=place.path,
                attributes=number & ~READ_ONLY & ~DIRECTORY,
            )
        kind = "file.delete-directory" if facts["kind"] == "directory" else "file.delete"
        ask(call.scope, kind, path=place.path)
    except (IOException, UnauthorizedAccessException) as failure:
        return _not_removed(call, place, failure)
    return True


def _not_removed(call: Call, place: Place, failure: DotNetException) -> bool:
    denied = isinstance(failure, UnauthorizedAccessException)
    told = f"Cannot remove item {place.path}: {failure.message}"
    call.error(
        UnauthorizedAccessException(told) if denied else IOException(told, hresult=failure.hresult),
        "RemoveFileSystemItemUnAuthorizedAccess" if denied else "RemoveFileSystemItemIOError",
        "PermissionDenied" if denied else "WriteError",
        FileProvider(call.scope).item(place),
    )
    return False
