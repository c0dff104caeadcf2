"""System.Security.Principal: the current account, security identifiers, and account names."""

from __future__ import annotations

import re
from typing import Any

from winboot_lab.engine.comparison import compared_by_value
from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import OBJECT, DotNetType, Runtime, dotnet
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    SystemException,
    declare_exception,
)
from winboot_lab.engine.values import Array, Instance

Value = Any

IdentityNotMappedException = declare_exception(
    "System.Security.Principal.IdentityNotMappedException", SystemException
)
_UNMAPPED = "Some or all identity references could not be translated."

REFERENCE = dotnet("System.Security.Principal.IdentityReference", kind="abstract")


class SecurityIdentifier(Instance):
    """A SID in its S-1-… form."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecurityIdentifier) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class NTAccount(Instance):
    """An account by its name."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NTAccount) and self.value.lower() == other.value.lower()

    def __hash__(self) -> int:
        return hash(self.value.lower())


ABBREVIATIONS = {
    "SY": "S-1-5-18",
    "BA": "S-1-5-32-544",
    "BU": "S-1-5-32-545",
    "BG": "S-1-5-32-546",
    "PU": "S-1-5-32-547",
    "AO": "S-1-5-32-548",
    "SO": "S-1-5-32-549",
    "PO": "S-1-5-32-550",
    "BO": "S-1-5-32-551",
    "RE": "S-1-5-32-552",
    "RU": "S-1-5-32-554",
    "RD": "S-1-5-32-555",
    "NO": "S-1-5-32-556",
    "MU": "S-1-5-32-558",
    "LU": "S-1-5-32-559",
    "WD": "S-1-1-0",
    "CO": "S-1-3-0",
    "CG": "S-1-3-1",
    "OW": "S-1-3-4",
    "NU": "S-1-5-2",
    "IU": "S-1-5-4",
    "SU": "S-1-5-6",
    "AN": "S-1-5-7",
    "ED": "S-1-5-9",
    "PS": "S-1-5-10",
    "AU": "S-1-5-11",
    "RC": "S-1-5-12",
    "LS": "S-1-5-19",
    "NS": "S-1-5-20",
    "AC": "S-1-15-2-1",
}
"""The two letters of a well-known SID in SDDL."""


def sddl_sid(sid: str) -> str:
    """A SID as SDDL writes it."""
    return next((short for short, long in ABBREVIATIONS.items() if long == sid), sid)


def sid_of_sddl(text: str) -> str | None:
    """The SID behind two letters or an `S-1-...`, or None."""
    text = text.strip().upper()
    if text in ABBREVIATIONS:
        return ABBREVIATIONS[text]
    return text if _SID.fullmatch(text) is not None else None


_SID = re.compile(r"S-1-\d+(-\d+)+", re.IGNORECASE)
SID = dotnet("System.Security.Principal.SecurityIdentifier", SecurityIdentifier, base=REFERENCE)
ACCOUNT = dotnet("System.Security.Principal.NTAccount", NTAccount, base=REFERENCE)


@SID.constructor("string sddlForm")
def _sid(text: str | None) -> SecurityIdentifier:
    if text is None:
        raise ArgumentNullException("sddlForm")
    found = sid_of_sddl(text)
    if found is None:
        raise ArgumentException("Value was invalid.", "sddlForm")
    return SecurityIdentifier(found)


@ACCOUNT.constructor("string name")
def _account(name: str | None) -> NTAccount:
    if name is None:
        raise ArgumentNullException("name")
    return NTAccount(name)


for _kind in (SID, ACCOUNT):
    _kind.prop("Value", "string", lambda self: self.value)
    _kind.method("ToString()")(str)
SID.method("Equals(object o)")(lambda self, other: self == other)
compared_by_value(SecurityIdentifier, NTAccount)


@SID.method("Translate(type targetType)", effect=True)
def _translate_sid(runtime: Runtime, self: SecurityIdentifier, target: DotNetType) -> Value:
    if target is SID:
        return self
    if target is not ACCOUNT:
        raise ArgumentException("The targetType parameter must be of IdentityReference type.", "targetType")
    name = ask_one(runtime, "acl.name", sid=self.value)
    if name is None:
        raise IdentityNotMappedException(_UNMAPPED)
    return NTAccount(str(name))


@ACCOUNT.method("Translate(type targetType)", effect=True)
def _translate_account(runtime: Runtime, self: NTAccount, target: DotNetType) -> Value:
    if target is ACCOUNT:
        return self
    if target is not SID:
        raise ArgumentException("The targetType parameter must be of IdentityReference type.", "targetType")
    sid = ask_one(runtime, "acl.sid", name=self.value)
    if sid is None:
        raise IdentityNotMappedException(_UNMAPPED)
    return SecurityIdentifier(str(sid))


class WindowsIdentity(Instance):
    """The user of this session."""

    def __init__(self, record: Any) -> None:
        self.record = record


class WindowsPrincipal(Instance):
    """A user with the groups that count in this session."""

    def __init__(self, identity: WindowsIdentity) -> None:
        self.identity = identity


IDENTITY = dotnet("System.Security.Principal.WindowsIdentity", WindowsIdentity, base=OBJECT)
PRINCIPAL = dotnet("System.Security.Principal.WindowsPrincipal", WindowsPrincipal, base=OBJECT)


@IDENTITY.static_method("GetCurrent()", effect=True)
def _current(runtime: Runtime) -> WindowsIdentity:
    return WindowsIdentity(ask_one(runtime, "identity.current"))


IDENTITY.prop("Name", "string", lambda self: str(self.record["name"]))
IDENTITY.prop("User", SID.name, lambda self: SecurityIdentifier(str(self.record["sid"])))
IDENTITY.prop("Owner", SID.name, lambda self: SecurityIdentifier(str(self.record["sid"])))
IDENTITY.prop(
    "Groups", "object", lambda self: Array([SecurityIdentifier(str(sid)) for sid in self.record["groups"]])
)
IDENTITY.method("void Dispose()")(lambda self: None)
PRINCIPAL.constructor(f"{IDENTITY.name} ntIdentity")(WindowsPrincipal)
PRINCIPAL.prop("Identity", IDENTITY.name, lambda self: self.identity)
_ADMINISTRATOR = 544


def _is_in(self: WindowsPrincipal, sid: str) -> bool:
    record = self.identity.record
    if sid == f"S-1-5-32-{_ADMINISTRATOR}":
        # A filtered token still lists the group, for deny rules only.
        return bool(record["elevated"])
    return sid in [str(one) for one in record["groups"]]


PRINCIPAL.method("IsInRole(System.Security.Principal.WindowsBuiltInRole role)")(
    lambda self, role: _is_in(self, f"S-1-5-32-{role.number}")
)
PRINCIPAL.method(f"IsInRole({SID.name} sid)")(lambda self, sid: _is_in(self, sid.value))


@PRINCIPAL.method("IsInRole(string role)", effect=True)
def _is_in_named(runtime: Runtime, self: WindowsPrincipal, role: str) -> bool:
    sid = ask_one(runtime, "acl.sid", name=role)
    return sid is not None and _is_in(self, str(sid))
