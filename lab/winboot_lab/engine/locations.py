"""Drives, the current location, and what a path means: which provider, and which path inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winboot_lab.engine.exceptions import DriveNotFoundException, ProviderNotFoundException
from winboot_lab.windows.door import Door

FILES, REGISTRY, ENVIRONMENT, VARIABLES, FUNCTIONS, ALIASES, CERTIFICATES = (
    "FileSystem",
    "Registry",
    "Environment",
    "Variable",
    "Function",
    "Alias",
    "Certificate",
)
PROVIDERS = {
    name.lower(): name for name in (FILES, REGISTRY, ENVIRONMENT, VARIABLES, FUNCTIONS, ALIASES, CERTIFICATES)
}
MODULE = "Microsoft.PowerShell.Core"

HIVES = {
    "hklm": "HKEY_LOCAL_MACHINE",
    "hkcu": "HKEY_CURRENT_USER",
    "hkcr": "HKEY_CLASSES_ROOT",
    "hku": "HKEY_USERS",
    "hkcc": "HKEY_CURRENT_CONFIG",
}


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive: its provider and where in the provider it begins."""

    name: str
    provider: str
    root: str


@dataclass(frozen=True, slots=True)
class Place:
    """One path, understood: the provider, the provider's own full path, and the drive it was reached by (if any).

    Paths inside a provider are `C:\\k\\x`, `HKEY_LOCAL_MACHINE\\SOFTWARE`, or a plain name (`PATH`); '' is the root.
    """

    provider: str
    path: str
    drive: Drive | None = None

    @property
    def qualified(self) -> str:
        """The provider-qualified path, as PSPath shows it."""
        module = "Microsoft.PowerShell.Security" if self.provider == CERTIFICATES else MODULE
        return f"{module}\\{self.provider}::{self.path}"

    @property
    def shown(self) -> str:
        """The path with its drive, as messages and `Resolve-Path` show it."""
        if self.drive is None or self.provider == FILES:
            return self.path if self.provider == FILES else self.qualified
        return self.relative_to_drive(self.path)

    def relative_to_drive(self, path: str) -> str:
        """A provider path as `DRIVE:\\…`."""
        assert self.drive is not None
        rest = path[len(self.drive.root) :].lstrip("\\")
        return (
            f"{self.drive.name}:\\{rest}"
            if self.provider in (REGISTRY, FILES)
            else f"{self.drive.name}:{rest}"
        )

    def child(self, name: str) -> Place:
        """The path of a child."""
        return Place(self.provider, join(self.path, name), self.drive)

    @property
    def parent(self) -> Place | None:
        """The path one level up, or None at a root."""
        if self.provider not in (FILES, REGISTRY):
            return None if not self.path else Place(self.provider, "", self.drive)
        up = parent_path(self.path)
        return None if up is None else Place(self.provider, up, self.drive)

    @property
    def leaf(self) -> str:
        """The last part."""
        return self.path.rstrip("\\").rpartition("\\")[2] or self.path


def join(parent: str, child: str) -> str:
    """Two parts of a path with one backslash between them."""
    if not parent:
        return child
    return parent.rstrip("\\") + "\\" + child.lstrip("\\")


def parent_path(path: str) -> str | None:
    """One level up, or None at a root (`C:\\`, `HKEY_LOCAL_MACHINE`)."""
    bare = path.rstrip("\\")
    if len(bare) == 2 and bare[1] == ":":
        return None
    head, cut, _ = bare.rpartition("\\")
    if not cut:
        return None
    return head + "\\" if len(head) == 2 and head[1] == ":" else head


def normalise(path: str) -> str:
    """Slashes turned, `.` and `..` worked out, no doubled or trailing backslash (but `C:\\` keeps its own)."""
    path = path.replace("/", "\\")
    prefix = ""
    if path.startswith("\\\\"):
        prefix, path = "\\\\", path[2:]
    elif len(path) >= 2 and path[1] == ":":
        prefix, path = path[0] + ":\\", path[2:]
    parts: list[str] = []
    for part in path.split("\\"):
        if part in ("", "."):
            continue
        if part == "..":
            if parts:
                parts.pop()
            continue
        parts.append(part)
    return prefix + "\\".join(parts)


class Locations:
    """The drives of a session, and where it stands: in a folder, which no cmdlet of the lab changes."""

    def __init__(self, machine: Door, home: str, start: str) -> None:
        self.home = home
        self.drives: dict[str, Drive] = {}
        for name, provider, root in (
            ("HKLM", REGISTRY, "HKEY_LOCAL_MACHINE"),
            ("HKCU", REGISTRY, "HKEY_CURRENT_USER"),
            ("Env", ENVIRONMENT, ""),
            ("Variable", VARIABLES, ""),
            ("Function", FUNCTIONS, ""),
            ("Alias", ALIASES, ""),
            ("Cert", CERTIFICATES, ""),
        ):
            self.drives[name.lower()] = Drive(name, provider, root)
        for volume in machine.invoke("file.volumes", {}).objects:
            letter = str(volume["name"])[0].upper()  # type: ignore[index,call-overload]
            self.drives[letter.lower()] = Drive(letter, FILES, f"{letter}:\\")
        self.current: Place = Place(FILES, normalise(start), self.drives.get(start[0].lower()))
        self.process_directory: str | None = None
        self.drive_objects: dict[int, Any] = {}

    def knows_drive(self, name: str) -> bool:
        """Is there a drive of that name?"""
        return name.lower() in self.drives

    def file_path(self, text: str) -> str | None:
        """A path for programs and .NET: the full file-system path, or None when it is not one."""
        try:
            place = self.place(text)
        except (DriveNotFoundException, ProviderNotFoundException):
            return None
        return place.path if place.provider == FILES else None

    def place(self, text: str) -> Place:
        """What a path means. Raises DriveNotFoundException and ProviderNotFoundException."""
        if "::" in text:
            return self._provider_path(text)
        if text.startswith(("\\\\", "//")):
            return Place(FILES, normalise(text))
        name, colon, rest = text.partition(":")
        if colon and "\\" not in name and "/" not in name and name:
            return self._drive_path(name, rest)
        if text == "~" or text.startswith(("~\\", "~/")):
            return Place(FILES, normalise(self.home + text[1:]), self.drives.get(self.home[0].lower()))
        return self._relative(text)

    def _provider_path(self, text: str) -> Place:
        head, _, rest = text.partition("::")
        name = head.rpartition("\\")[2].lower()
        provider = PROVIDERS.get(name)
        if provider is None:
            raise ProviderNotFoundException(
                f"Cannot find a provider with the name '{head}'.", "ProviderNotFound", "ObjectNotFound", head
            )
        if provider == FILES:
            return Place(FILES, normalise(rest))
        if provider == REGISTRY:
            return Place(REGISTRY, _with_hive(normalise_inner(rest)))
        return Place(provider, normalise_inner(rest))

    def _drive_path(self, name: str, rest: str) -> Place:
        drive = self.drives.get(name.lower())
        if drive is None:
            raise DriveNotFoundException(
                f"Cannot find drive. A drive with the name '{name}' does not exist.",
                "DriveNotFound",
                "ObjectNotFound",
                name,
            )
        if drive.provider == FILES:
            if not rest or rest[0] not in "\\/":
                start = self.current.path if self.current.drive is drive else drive.root
                return Place(FILES, normalise(join(start, rest)), drive)
            return Place(FILES, normalise(join(drive.root, rest)), drive)
        inner = normalise_inner(rest)
        return Place(drive.provider, join(drive.root, inner) if inner else drive.root, drive)

    def _relative(self, text: str) -> Place:
        here = self.current
        if text.startswith(("\\", "/")):
            return Place(FILES, normalise(here.path[:2] + text), here.drive)
        return Place(FILES, normalise(join(here.path, text)), here.drive)


def normalise_inner(path: str) -> str:
    """A path inside a provider without drives: no leading or doubled separators."""
    parts: list[str] = []
    for part in path.replace("/", "\\").split("\\"):
        if part in ("", "."):
            continue
        if part == "..":
            if parts:
                parts.pop()
            continue
        parts.append(part)
    return "\\".join(parts)


def _with_hive(path: str) -> str:
    head, cut, rest = path.partition("\\")
    return HIVES.get(head.lower(), head) + cut + rest
