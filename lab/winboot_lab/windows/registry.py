"""The registry: hives, keys without case, typed values in creation order, and keys that only last until the next boot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import SYSTEM, SYSTEM_TOKEN, Token
from winboot_lab.windows.acl import CHANGE_PERMISSIONS, Acl, handed_down, registry_root
from winboot_lab.windows.failure import failure
from winboot_lab.windows.snapshot import Tree, show_bytes

Kind = Literal["String", "ExpandString", "Binary", "DWord", "MultiString", "QWord", "None", "Unknown"]
KINDS: tuple[Kind, ...] = (
    *("String", "ExpandString", "Binary", "DWord", "MultiString", "QWord", "None"),
    # REG_LINK, REG_RESOURCE_LIST and others, as RegistryKey.GetValueKind calls them.
    "Unknown",
)
Data: TypeAlias = str | int | bytes | list[str]

HKLM = "HKEY_LOCAL_MACHINE"
SERVICES = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services"
SESSION_MANAGER = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Session Manager"
ENVIRONMENT = SESSION_MANAGER + r"\Environment"
ACTIVE_NAME = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName"
CBS_PENDING = (
    r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending"
)
POLICIES = r"HKEY_LOCAL_MACHINE\SOFTWARE\Policies\Microsoft"

_HIVES = (HKLM, "HKEY_USERS", "HKEY_CURRENT_USER", "HKEY_CLASSES_ROOT", "HKEY_CURRENT_CONFIG")
_READ = 0x20019
_WRITE = 0x6


@dataclass(slots=True)
class Value:
    """A named value; `data` in the natural Python form of its kind (a DWord unsigned)."""

    name: str
    kind: Kind
    data: Data


@dataclass(eq=False, slots=True)
class Key:
    """A key: values in creation order, subkeys by lower-case name."""

    name: str
    values: dict[str, Value] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    volatile: bool = False
    acl: Acl | None = None


def checked(kind: str, data: object) -> Data:
    """A value's data in canonical form, or the failure .NET has for a kind that does not fit."""
    match kind, data:
        case ("String" | "ExpandString", str()):
            return data
        case ("MultiString", list() | tuple()) if all(isinstance(d, str) for d in data):
            return [str(d) for d in data]
        case ("Binary" | "None" | "Unknown", bytes() | bytearray()):
            return bytes(data)
        case ("DWord", bool()):
            return int(data)
        case ("DWord", int()) if -(2**31) <= data < 2**32:
            return data & 0xFFFFFFFF
        case ("QWord", int()) if -(2**63) <= data < 2**64:
            return data & 0xFFFFFFFFFFFFFFFF
    message = (
        "The type of the value object did not match the specified RegistryValueKind "
        "or the object could not be properly converted."
    )
    raise failure("System.ArgumentException", message, hresult=0x80070057)


class Registry:
    """All hives. Keys are addressed by their long name; `CurrentControlSet` is the first control set."""

    def __init__(self) -> None:
        self._machine_hive = Key(HKLM, acl=registry_root())
        self._users = Key("HKEY_USERS", acl=registry_root())
        # How many keys have rules of their own below the hives; while no key has any, all keys have the same.
        self._own_rules = 0
        self._common = registry_root()
        # Set once Windows is installed: from then on nothing can be made directly below a hive.
        self.sealed = False
        # Values that a Group Policy holds (key and name in lower case): no other program changes them.
        self.policies: set[tuple[str, str]] = set()

    # ---- finding ---------------------------------------------------------------------------------------

    def find(self, path: str, token: Token = SYSTEM_TOKEN) -> Key | None:
        """The key, or None."""
        key, parts = self._start(path, token)
        for part in parts:
            below = key.keys.get(part.lower())
            if below is None:
                return None
            key = below
        return key

    def _start(self, path: str, token: Token) -> tuple[Key, list[str]]:
        hive, *parts = [p for p in path.split("\\") if p]
        hive = hive.upper()
        if hive not in _HIVES:
            raise Refusal("value", path, "an unknown registry hive")
        if hive == "HKEY_CURRENT_USER":
            return self._users, [token.sid, *parts]
        if hive == "HKEY_USERS":
            return self._users, parts
        if hive == "HKEY_CLASSES_ROOT":
            return self._machine_hive, ["SOFTWARE", "Classes", *parts]
        if hive == "HKEY_CURRENT_CONFIG":
            parts = ["SYSTEM", "ControlSet001", "Hardware Profiles", "Current", *parts]
        if [p.lower() for p in parts[:2]] == ["system", "currentcontrolset"]:
            parts[1] = "ControlSet001"
        return self._machine_hive, parts

    def need(self, path: str, token: Token = SYSTEM_TOKEN, rights: int = _READ) -> Key:
        """The key, or the failure for a missing one; checks the access."""
        key = self.find(path, token)
        if key is None:
            raise failure(
                "System.ArgumentException",
                "The registry key at the specified path does not exist.",
                hresult=0x80070002,
                target=path,
            )
        self._allow(path, token, rights)
        return key

    def _allow(self, path: str, token: Token, rights: int) -> None:
        rules = self.acl(path, token) if self._own_rules else self._common
        if not rules.allows(token, rights):
            raise failure(
                "System.Security.SecurityException"
                if rights == _READ
                else "System.UnauthorizedAccessException",
                "Requested registry access is not allowed.",
                hresult=0x8013150A if rights == _READ else 0x80070005,
                target=path,
            )

    def exists(self, path: str) -> bool:
        """Whether there is such a key."""
        return self.find(path) is not None

    def subkeys(self, path: str) -> list[str]:
        """The names of the subkeys, sorted without case; empty for a missing key."""
        key = self.find(path)
        return [] if key is None else [key.keys[k].name for k in sorted(key.keys)]

    # ---- values ----------------------------------------------------------------------------------------

    def value(self, path: str, name: str) -> Value | None:
        """One value, or None when key or value are missing."""
        key = self.find(path)
        return None if key is None else key.values.get(name.lower())

    def text(self, path: str, name: str, default: str = "") -> str:
        """A string value, environment references expanded in an ExpandString."""
        value = self.value(path, name)
        if value is None or not isinstance(value.data, str):
            return default
        return self.expand(value.data) if value.kind == "ExpandString" else value.data

    def number(self, path: str, name: str, default: int = 0) -> int:
        """A DWord or QWord value."""
        value = self.value(path, name)
        return value.data if value is not None and isinstance(value.data, int) else default

    def strings(self, path: str, name: str) -> list[str]:
        """A MultiString value; a String counts as one line."""
        value = self.value(path, name)
        if value is None:
            return []
        if isinstance(value.data, list):
            return list(value.data)
        return [value.data] if isinstance(value.data, str) else []

    def binary(self, path: str, name: str) -> bytes:
        """A Binary value; empty when missing."""
        value = self.value(path, name)
        return value.data if value is not None and isinstance(value.data, bytes) else b""

    def set(self, path: str, name: str, kind: Kind, data: Data) -> None:
        """Write a value as the system does: makes the key."""
        self.create(path)
        self.put(path, name, kind, data)

    def put(self, path: str, name: str, kind: str, data: object, token: Token = SYSTEM_TOKEN) -> None:
        """Write a value of an existing key; a value that is overwritten keeps its place and spelling."""
        key = self.need(path, token, _WRITE)
        known = next((k for k in KINDS if k == kind), None)
        if known is None:
            raise Refusal("value", kind, "an unknown registry value kind")
        canonical = checked(known, data)
        if self.policies and (path.lower(), name.lower()) in self.policies:
            return
        old = key.values.get(name.lower())
        key.values[name.lower()] = Value(old.name if old else name, known, canonical)

    def delete_value(self, path: str, name: str, token: Token = SYSTEM_TOKEN) -> bool:
        """Remove a value; False when it is absent."""
        key = self.need(path, token, _WRITE)
        return key.values.pop(name.lower(), None) is not None

    def forget(self, path: str, name: str) -> None:
        """Remove a value as the system does: missing is fine."""
        key = self.find(path)
        if key is not None:
            key.values.pop(name.lower(), None)

    # ---- keys ------------------------------------------------------------------------------------------

    def create(self, path: str, token: Token = SYSTEM_TOKEN, *, volatile: bool = False) -> bool:
        """Make a key and its parents; False when it was there."""
        key, parts = self._start(path, token)
        made = False
        for index, part in enumerate(parts):
            below = key.keys.get(part.lower())
            if below is None:
                if self.sealed and key in (self._users, self._machine_hive):
                    message = "Cannot create a subkey directly below a hive."
                    raise failure("System.ArgumentException", message, hresult=0x80070057, target=path)
                words = [p for p in path.split("\\") if p]
                self._allow("\\".join(words[: len(words) - len(parts) + index]), token, 0x4)
                below = Key(part, volatile=volatile)
                key.keys[part.lower()] = below
                made = True
            key = below
        return made

    def delete_key(self, path: str, token: Token = SYSTEM_TOKEN, *, recurse: bool = False) -> None:
        """Remove a key; subkeys only go with `recurse`."""
        key = self.need(path, token, 0x10000)
        if key.keys and not recurse:
            raise failure(
                "System.InvalidOperationException",
                "Registry key has subkeys and recursive removes are not supported by this method.",
                hresult=0x80131509,
                target=path,
            )
        above, _, name = path.rstrip("\\").rpartition("\\")
        parent = self.find(above, token)
        if parent is not None:
            parent.keys.pop(name.lower(), None)

    def wipe(self, path: str) -> None:
        """Remove a key with all below, if it is there."""
        if self.exists(path):
            self.delete_key(path, recurse=True)

    def walk(self, path: str) -> Iterator[tuple[str, Key]]:
        """The key and all below it, with their paths."""
        key = self.find(path)
        if key is None:
            return
        yield path, key
        for name in self.subkeys(path):
            yield from self.walk(f"{path}\\{name}")

    # ---- rules -----------------------------------------------------------------------------------------

    def acl(self, path: str, token: Token = SYSTEM_TOKEN) -> Acl:
        """The rules of a key; what it does not have of its own comes from above."""
        key, parts = self._start(path, token)
        found = key.acl or registry_root()
        for part in parts:
            below = key.keys.get(part.lower())
            if below is None:
                return found
            handed = handed_down(found.rules, directory=True, owner=found.owner)
            if below.acl is None:
                found = Acl(found.owner, SYSTEM, inherited=handed)
            else:
                found = below.acl.copy()
                found.inherited = [] if found.protected else handed
            key = below
        return found

    def set_acl(
        self, path: str, wanted: Acl, token: Token = SYSTEM_TOKEN, *, privileged: bool = False
    ) -> None:
        """Give a key rules of its own. With its privileges a session may make itself or another account the owner, whatever the
        rules are (learn.microsoft.com/windows/win32/secauthz/privilege-constants)."""
        before = self.acl(path, token)
        taken = privileged and wanted.owner != before.owner
        if not taken or wanted.explicit != before.explicit:
            self._allow(path, token, CHANGE_PERMISSIONS)
        self.need(path, token).acl = wanted
        self._own_rules += 1

    # ---- helpers ---------------------------------------------------------------------------------------

    def expand(self, text: str, environment: dict[str, str] | None = None) -> str:
        """Replace `%NAME%` from the given environment, or from the machine's; unknown names stay."""
        names = environment if environment is not None else self.machine_environment()
        known = {k.lower(): v for k, v in names.items()}
        pieces = text.split("%")
        out = pieces[0]
        index = 1
        while index < len(pieces):
            if index + 1 < len(pieces) and pieces[index].lower() in known:
                out += known[pieces[index].lower()] + pieces[index + 1]
                index += 2
            else:
                out += "%" + pieces[index]
                index += 1
        return out

    def machine_environment(self) -> dict[str, str]:
        """The machine's variables as the registry has them now, expanded among themselves."""
        raw: dict[str, str] = {
            "SystemDrive": "C:",
            "SystemRoot": r"C:\Windows",
            "ProgramData": r"C:\ProgramData",
            "ProgramFiles": r"C:\Program Files",
            "ProgramFiles(x86)": r"C:\Program Files (x86)",
            "ProgramW6432": r"C:\Program Files",
            "CommonProgramFiles": r"C:\Program Files\Common Files",
            "ALLUSERSPROFILE": r"C:\ProgramData",
            "PUBLIC": r"C:\Users\Public",
            "COMPUTERNAME": self.text(ACTIVE_NAME, "ComputerName"),
        }
        key = self.find(ENVIRONMENT)
        for value in key.values.values() if key else ():
            if isinstance(value.data, str):
                text = value.data
                if value.kind == "ExpandString":
                    text = self.expand(text, raw)
                raw[value.name] = text
        return raw

    def forget_volatile(self) -> None:
        """A reboot: volatile keys go."""
        for hive in (self._machine_hive, self._users):
            _drop_volatile(hive)

    def tree(self) -> Tree:
        """Everything, by key path and value name."""
        found: dict[str, Tree] = {}
        for hive in (self._machine_hive, self._users):
            _show(hive, hive.name, found)
        return found


def _drop_volatile(key: Key) -> None:
    for name, below in list(key.keys.items()):
        if below.volatile:
            del key.keys[name]
        else:
            _drop_volatile(below)


def _show(key: Key, path: str, found: dict[str, Tree]) -> None:
    values: dict[str, Tree] = {}
    for value in key.values.values():
        data: Tree = show_bytes(value.data) if isinstance(value.data, bytes) else _listed(value.data)
        values[value.name] = data if value.kind in ("String", "DWord") else {"kind": value.kind, "data": data}
    if values or not key.keys:
        found[path] = values
    for name in sorted(key.keys):
        below = key.keys[name]
        _show(below, f"{path}\\{below.name}", found)


def _listed(data: str | int | list[str]) -> Tree:
    return list(data) if isinstance(data, list) else data
