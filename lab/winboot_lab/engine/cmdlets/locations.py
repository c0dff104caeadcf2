"""Where a session stands, and its drives: Get-, Set-, Push- and Pop-Location; Get-, New- and Remove-PSDrive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winboot_lab.engine.cmdlet import Call
from winboot_lab.engine.commands import MANAGEMENT, cmdlet
from winboot_lab.engine.exceptions import (
    DriveNotFoundException,
    IOException,
    ProviderNotFoundException,
    PSArgumentException,
    SessionStateException,
)
from winboot_lab.engine.items import drive_info, path_info
from winboot_lab.engine.locations import FILES, PROVIDERS, REGISTRY, Drive, Place
from winboot_lab.engine.providers import FileProvider, given_paths, place_of, provider_of, resolve
from winboot_lab.engine.wildcards import has_wildcards, like

Value = Any


@cmdlet(
    "Get-Location",
    """
    PSProvider: string[] refused set=Location
    PSDrive: string[] refused set=Location
    Stack: switch refused set=Stack
    StackName: string[] refused set=Stack
    """,
    module=MANAGEMENT,
    default_set="Location",
)
def get_location(call: Call) -> None:
    locations = call.session.locations
    call.write(path_info(locations.current, locations))


@cmdlet(
    "Set-Location",
    """
    Path: string position=0 value name set=Path
    LiteralPath: string mandatory name alias=PSPath set=LiteralPath
    PassThru: switch
    StackName: string refused set=Stack
    """,
    module=MANAGEMENT,
    default_set="Path",
)
def set_location(call: Call) -> None:
    """Go to a container; the location is spelled as the file system spells it."""
    if not call.has("Path") and not call.has("LiteralPath"):
        call.refuse("without a path")
    _go(call)
    if call.flag("PassThru"):
        get_location(call)


def _go(call: Call) -> bool:
    for place in resolve(call):
        provider = provider_of(call.scope, place)
        if not provider.is_container(place):
            call.refuse("to something that holds nothing")
        if isinstance(provider, FileProvider):
            place = replace(place, path=str(provider.facts(place)["path"]))
        call.session.locations.move(place)
        return True
    return False


@cmdlet(
    "Push-Location",
    """
    Path: string position=0 value name set=Path
    LiteralPath: string mandatory name alias=PSPath set=LiteralPath
    PassThru: switch
    StackName: string refused
    """,
    module=MANAGEMENT,
    default_set="Path",
)
def push_location(call: Call) -> None:
    """Remember the location, and perhaps go elsewhere."""
    locations = call.session.locations
    before = locations.current
    if any(given_paths(call)) and not _go(call):
        return
    locations.stack.append(before)
    if call.flag("PassThru"):
        get_location(call)


@cmdlet("Pop-Location", "PassThru: switch\nStackName: string refused", module=MANAGEMENT)
def pop_location(call: Call) -> None:
    """Back to the location remembered last."""
    locations = call.session.locations
    if locations.stack:
        locations.move(locations.stack.pop())
    if call.flag("PassThru"):
        get_location(call)


# -- drives


@cmdlet(
    "Get-PSDrive",
    """
    Name: string[] position=0 name set=Name
    LiteralName: string[] mandatory position=0 set=LiteralName
    Scope: string refused
    PSProvider: string[] name
    """,
    module=MANAGEMENT,
    default_set="Name",
)
def get_drive(call: Call) -> None:
    """The drives that fit."""
    locations = call.session.locations
    names = call.items("LiteralName") or call.items("Name") or ["*"]
    wanted = [name.lower() for name in call.items("PSProvider")]
    for name in names:
        found = [
            drive
            for drive in sorted(locations.drives.values(), key=lambda drive: drive.name.lower())
            if like(drive.name, name) and (not wanted or drive.provider.lower() in wanted)
        ]
        if not found and not has_wildcards(name):
            failure = DriveNotFoundException(
                f"Cannot find drive. A drive with the name '{name}' does not exist.",
                "GetLocationNoMatchingDrive",
                "ObjectNotFound",
                name,
            )
            call.error(failure, "GetLocationNoMatchingDrive", "ObjectNotFound", name)
        for drive in found:
            call.write(drive_info(drive, locations))


@cmdlet(
    "New-PSDrive",
    """
    Name: string mandatory position=0 name
    PSProvider: string mandatory position=1 name
    Root: string mandatory position=2 name empty
    Description: string
    Scope: string name
    Persist: switch refused
    Credential: pscredential refused
    """,
    module=MANAGEMENT,
    should_process=True,
)
def new_drive(call: Call) -> None:
    """A further name for a folder or key, for this session."""
    name: str = call["Name"]
    if any(letter in name for letter in ";~/\\.:"):
        call.fail(
            PSArgumentException(
                "Cannot process the drive name because the drive name contains one or more of the following characters "
                "that are not valid: ; ~ / \\ . :"
            ),
            "Argument",
            "InvalidArgument",
        )
    if call.scope is not call.scope.top and str(call["Scope"]).lower() != "global":
        call.refuse("in a scope that ends")
    provider = PROVIDERS.get(call["PSProvider"].lower())
    if provider not in (FILES, REGISTRY):
        call.refuse(f"-PSProvider {call['PSProvider']}")
    assert provider is not None
    locations = call.session.locations
    if locations.knows_drive(name):
        call.error(
            SessionStateException(
                f"A drive with the name '{name}' already exists.",
                "DriveAlreadyExists",
                "ResourceExists",
                name,
            ),
            "DriveAlreadyExists",
            "ResourceExists",
            name,
        )
        return
    if not call.should_process():
        return
    drive = _drive(call, name, provider, call["Root"])
    if drive is not None:
        locations.drives[name.lower()] = drive
        call.write(drive_info(drive, locations))


def _drive(call: Call, name: str, provider: str, root: str) -> Drive | None:
    try:
        place: Place = place_of(call.scope, f"{provider}::{root}")
    except (DriveNotFoundException, ProviderNotFoundException):
        place = Place(provider, root)
    if not provider_of(call.scope, place).is_container(place):
        call.error(
            IOException(f'The specified drive root "{root}" either does not exist, or it is not a folder.'),
            "DriveRootError",
            "ReadError",
            name,
        )
        return None
    return Drive(name, provider, place.path)


@cmdlet(
    "Remove-PSDrive",
    """
    Name: string[] mandatory position=0 name set=Name
    LiteralName: string[] mandatory position=0 value name set=LiteralName
    PSProvider: string[] name refused
    Scope: string name refused
    Force: switch
    """,
    module=MANAGEMENT,
    default_set="Name",
    should_process=True,
)
def remove_drive(call: Call) -> None:
    """Forget drives."""
    locations = call.session.locations
    for name in call.items("LiteralName") or call.items("Name"):
        found = [key for key, drive in locations.drives.items() if like(drive.name, name)]
        if not found and not has_wildcards(name):
            failure = DriveNotFoundException(
                f"Cannot find drive. A drive with the name '{name}' does not exist.",
                "DriveNotFound",
                "ObjectNotFound",
                name,
            )
            call.error(failure, "DriveNotFound", "ObjectNotFound", name)
        for key in found:
            if locations.current.drive is locations.drives[key]:
                call.refuse("of the current drive")
            if call.should_process():
                del locations.drives[key]
