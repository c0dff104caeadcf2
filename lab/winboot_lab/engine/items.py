"""Objects of the providers: PathInfo, drives, providers, and the properties that every provider object carries."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.dotnet import dotnet
from winboot_lab.engine.locations import CERTIFICATES, FILES, REGISTRY, Drive, Locations, Place
from winboot_lab.engine.values import Instance, NoteProperty, decorate

Value = Any
_SMA = "System.Management.Automation."


class ProviderInfo(Instance):
    """System.Management.Automation.ProviderInfo."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        module = "Microsoft.PowerShell.Security" if self.name == CERTIFICATES else "Microsoft.PowerShell.Core"
        return f"{module}\\{self.name}"


class DriveInfo(Instance):
    """System.Management.Automation.PSDriveInfo."""

    def __init__(self, drive: Drive) -> None:
        self.drive = drive

    def __str__(self) -> str:
        return self.drive.name


class PathInfo(Instance):
    """System.Management.Automation.PathInfo: what Get-Location and Resolve-Path give."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    def path(self) -> str:
        """The path with its drive, or qualified by its provider."""
        place = self.place
        if place.drive is None:
            return place.qualified
        return place.relative_to_drive(place.path)

    def __str__(self) -> str:
        return self.path


_providers: dict[str, ProviderInfo] = {}


def provider_info(name: str) -> ProviderInfo:
    """The one object of a provider."""
    return _providers.setdefault(name, ProviderInfo(name))


def drive_info(drive: Drive | None, locations: Locations) -> DriveInfo | None:
    """A drive as an object; the same object each time."""
    if drive is None:
        return None
    known: dict[int, DriveInfo] = locations.drive_objects
    found = known.get(id(drive))
    if found is None:
        found = known[id(drive)] = DriveInfo(drive)
    return found


PROVIDER_INFO = dotnet(_SMA + "ProviderInfo", ProviderInfo)

DRIVE_INFO = dotnet(_SMA + "PSDriveInfo", DriveInfo)

PATH_INFO = dotnet(_SMA + "PathInfo", PathInfo)


def with_notes(value: Value, place: Place, locations: Locations, *, container: bool | None) -> Value:
    """The value with PSPath, PSParentPath, PSChildName, PSDrive, PSProvider and perhaps PSIsContainer."""
    made, extension = decorate(value)
    for name, content in note_values(place, locations):
        extension.add(NoteProperty(name, content))
    if container is not None:
        extension.add(NoteProperty("PSIsContainer", container))
    return made


def note_values(place: Place, locations: Locations) -> list[tuple[str, Value]]:
    """The properties that say where an object comes from."""
    found: list[tuple[str, Value]] = [("PSPath", place.qualified)]
    parent = place.parent
    if place.provider in (FILES, REGISTRY):
        found.append(("PSParentPath", "" if parent is None else parent.qualified))
    found.append(("PSChildName", place.leaf))
    if place.drive is not None:
        found.append(("PSDrive", drive_info(place.drive, locations)))
    found.append(("PSProvider", provider_info(place.provider)))
    return found
