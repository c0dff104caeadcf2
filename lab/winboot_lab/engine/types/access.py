"""System.Security.AccessControl: access rules and the security objects that hold them (files, folders, registry, mutexes).

A security object is a value: it reaches the machine only through `machine_record()` (Set-Acl, new files) and comes from
it through `security_of(kind, record)` (Get-Acl).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from winboot_lab.engine.door import ask_one
from winboot_lab.engine.dotnet import DotNetType, Runtime, dotnet, named
from winboot_lab.engine.exceptions import (
    ArgumentException,
    ArgumentNullException,
    ArgumentOutOfRangeException,
)
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.types.principals import (
    ACCOUNT,
    SID,
    IdentityNotMappedException,
    NTAccount,
    SecurityIdentifier,
    sddl_sid,
    sid_of_sddl,
)
from winboot_lab.engine.values import EnumValue, Instance, Value, View, enum_value
from winboot_lab.windows.door import Record

_NS = "System.Security.AccessControl."
CONTAINER, OBJECT = 1, 2
NO_PROPAGATE, INHERIT_ONLY = 1, 2
SYNCHRONIZE = 0x100000
FULL_CONTROL = 0x1F01FF


# -- access control entries


@dataclass(frozen=True, slots=True)
class Ace:
    """One entry: an account, the rights that it allows or denies, and how children inherit it."""

    allow: bool
    sid: str
    mask: int
    inheritance: int = 0
    propagation: int = 0
    inherited: bool = False

    @property
    def flags(self) -> tuple[int, int]:
        return self.inheritance, self.propagation

    @property
    def priority(self) -> tuple[int, int]:
        """Explicit before inherited, deny before allow: the canonical order."""
        return int(self.inherited), int(self.allow)


_RIGHTS = {
    "FA": 0x1F01FF,
    "FR": 0x120089,
    "FW": 0x120116,
    "FX": 0x1200A0,
    "KA": 0xF003F,
    "KR": 0x20019,
    "KW": 0x20006,
    "KX": 0x20019,
    "GA": 0x10000000,
    "GX": 0x20000000,
    "GW": 0x40000000,
    "GR": 0x80000000,
}
_SINGLE_RIGHTS = {
    "CC": 0x1,
    "DC": 0x2,
    "LC": 0x4,
    "SW": 0x8,
    "RP": 0x10,
    "WP": 0x20,
    "DT": 0x40,
    "LO": 0x80,
    "CR": 0x100,
    "SD": 0x10000,
    "RC": 0x20000,
    "WD": 0x40000,
    "WO": 0x80000,
}


def _mask_text(mask: int) -> str:
    exact = next((name for name, value in _RIGHTS.items() if value == mask), None)
    if exact is not None:
        return exact
    text, rest = "", mask
    for name, bit in _SINGLE_RIGHTS.items():
        if mask & bit:
            text += name
            rest &= ~bit
    return text if not rest else f"0x{mask:x}"


def _mask_of(text: str) -> int:
    if text.lower().startswith("0x"):
        return int(text, 16)
    if text.isdigit():
        return int(text)
    mask = 0
    for at in range(0, len(text), 2):
        name = text[at : at + 2].upper()
        if name not in _RIGHTS and name not in _SINGLE_RIGHTS:
            raise _invalid_sddl()
        mask |= _RIGHTS.get(name) or _SINGLE_RIGHTS[name]
    return mask


def _invalid_sddl() -> ArgumentException:
    return ArgumentException(
        "The SDDL string contains an invalid sid or a sid that cannot be translated.", "sddlForm"
    )


_ACE = re.compile(r"\(([^;()]*);([^;()]*);([^;()]*);([^;()]*);([^;()]*);([^;()]*)\)")
_FLAG_NAMES = ("OI", "CI", "NP", "IO", "ID")


def _ace_text(ace: Ace) -> str:
    flags = (
        ("OI" if ace.inheritance & OBJECT else "")
        + ("CI" if ace.inheritance & CONTAINER else "")
        + ("NP" if ace.propagation & NO_PROPAGATE else "")
        + ("IO" if ace.propagation & INHERIT_ONLY else "")
        + ("ID" if ace.inherited else "")
    )
    return f"({'A' if ace.allow else 'D'};{flags};{_mask_text(ace.mask)};;;{sddl_sid(ace.sid)})"


def _ace_of(match: re.Match[str]) -> Ace:
    kind, flags, rights, guid, inherited_guid, sid = match.groups()
    if kind not in ("A", "D") or guid or inherited_guid:
        raise Refusal("value", match.group(), "kind of entry in SDDL")
    names = [flags[at : at + 2].upper() for at in range(0, len(flags), 2)]
    if any(name not in _FLAG_NAMES for name in names):
        raise _invalid_sddl()
    return Ace(
        kind == "A",
        sid_of_sddl(sid) or _no_sid(),
        _mask_of(rights),
        (OBJECT if "OI" in names else 0) | (CONTAINER if "CI" in names else 0),
        (NO_PROPAGATE if "NP" in names else 0) | (INHERIT_ONLY if "IO" in names else 0),
        "ID" in names,
    )


def _no_sid() -> str:
    raise _invalid_sddl()


def _sid_order(sid: str) -> tuple[int, int, list[int]]:
    parts = [int(part) for part in sid.split("-")[2:]]
    return parts[0], len(parts), parts[1:]


# -- descriptors

OWNER, GROUP, ACCESS, AUDIT = 4, 8, 2, 1
_SDDL = re.compile(
    r"(?:O:(?P<owner>[^:]*?))?(?:G:(?P<group>[^:]*?))?(?:D:(?P<flags>[A-Z]*)(?P<aces>(?:\([^()]*\))*))?(?:S:.*)?"
)


class Descriptor:
    """Owner, group and the discretionary list of one object."""

    def __init__(self) -> None:
        self.owner: str | None = None
        self.group: str | None = None
        self.protected = False
        self.auto_inherited = False
        self.has_list = True
        self.aces: list[Ace] = []

    def read(self, text: str, sections: int) -> None:
        """Take over the wanted sections of an SDDL text."""
        match = _SDDL.fullmatch(text)
        if match is None or not text:
            raise _invalid_sddl()
        for key, bit in (("owner", OWNER), ("group", GROUP)):
            given = match[key]
            if given is not None and sections & bit:
                setattr(self, key, sid_of_sddl(given) or _no_sid())
        if match["flags"] is not None and sections & ACCESS:
            self.protected = "P" in match["flags"].replace("AI", "").replace("AR", "")
            self.auto_inherited = "AI" in match["flags"]
            self.aces = [_ace_of(found) for found in _ACE.finditer(match["aces"])]

    def write(self, sections: int) -> str:
        """The wanted sections as SDDL."""
        text = ""
        if self.owner is not None and sections & OWNER:
            text += f"O:{sddl_sid(self.owner)}"
        if self.group is not None and sections & GROUP:
            text += f"G:{sddl_sid(self.group)}"
        if self.has_list and sections & ACCESS:
            flags = ("P" if self.protected else "") + ("AI" if self.auto_inherited else "")
            text += f"D:{flags}" + "".join(_ace_text(ace) for ace in self.aces)
        return text

    def settle(self) -> None:
        """Put the entries into canonical order and drop those without rights."""
        kept = [ace for ace in self.aces if ace.mask]
        explicit = [ace for ace in kept if not ace.inherited]
        explicit.sort(key=lambda ace: (ace.priority, _sid_order(ace.sid)))
        self.aces = explicit + [ace for ace in kept if ace.inherited]

    def add(self, new: Ace) -> None:
        """Add an entry, joined with one that differs in its rights or its flags alone."""
        for at, ace in enumerate(self.aces):
            if ace.inherited or (ace.allow, ace.sid) != (new.allow, new.sid):
                continue
            if ace.flags == new.flags:
                self.aces[at] = replace(ace, mask=ace.mask | new.mask)
                self.settle()
                return
            if ace.mask == new.mask and not ace.propagation and not new.propagation:
                self.aces[at] = replace(ace, inheritance=ace.inheritance | new.inheritance)
                self.settle()
                return
        self.aces.append(new)
        self.settle()


# -- rules


class Rule(Instance):
    """FileSystemAccessRule, RegistryAccessRule or MutexAccessRule."""

    def __init__(self, kind: Kind, identity: Value, ace: Ace) -> None:
        self.kind = kind
        self.identity = identity
        self.ace = ace

    @property
    def dotnet_type(self) -> DotNetType:
        return self.kind.rule_type


class Kind:
    """What distinguishes files, folders, registry keys and mutexes."""

    def __init__(self, name: str, rights: str, *, container: bool, rule: str) -> None:
        self.name = name
        self.rights = _NS + rights
        self.container = container
        self.rule = _NS + rule

    @property
    def rule_type(self) -> DotNetType:
        return named(self.rule)

    def mask(self, rights: int, *, allow: bool) -> int:
        """The access mask of a rule: those of files gain Synchronize when they allow."""
        if self.rights != _NS + "FileSystemRights":
            return rights
        if not 0 <= rights <= 0x1F01FF:
            raise ArgumentOutOfRangeException("fileSystemRights")
        if allow:
            return rights | SYNCHRONIZE
        return rights if rights in (FULL_CONTROL, FULL_CONTROL & ~64) else rights & ~SYNCHRONIZE


FILE_KIND = Kind("file", "FileSystemRights", container=False, rule="FileSystemAccessRule")
FOLDER_KIND = Kind("file", "FileSystemRights", container=True, rule="FileSystemAccessRule")
KEY_KIND = Kind("registry", "RegistryRights", container=True, rule="RegistryAccessRule")
MUTEX_KIND = Kind("mutex", "MutexRights", container=False, rule="MutexAccessRule")

BASE_RULE = dotnet(_NS + "AuthorizationRule", kind="abstract")
ACCESS_RULE = dotnet(_NS + "AccessRule", base=BASE_RULE, kind="abstract")


def _declare_rule(kind: Kind, property_name: str) -> DotNetType:
    made = dotnet(kind.rule, base=ACCESS_RULE)
    made.prop(property_name, kind.rights, lambda self: enum_value(kind.rights, self.ace.mask))
    made.prop(
        "AccessControlType",
        _NS + "AccessControlType",
        lambda self: _enum("AccessControlType", int(not self.ace.allow)),
    )
    made.prop("IdentityReference", "System.Security.Principal.IdentityReference", lambda self: self.identity)
    made.prop(
        "PropagationFlags",
        _NS + "PropagationFlags",
        lambda self: _enum("PropagationFlags", self.ace.propagation),
    )

    def make(
        identity: Value,
        rights: EnumValue,
        inheritance: EnumValue | None,
        propagation: EnumValue | None,
        control: EnumValue,
    ) -> Rule:
        if identity is None:
            raise ArgumentNullException("identity")
        who = NTAccount(identity) if isinstance(identity, str) else identity
        sid = who.value if isinstance(who, SecurityIdentifier) else ""
        allow = control.number == 0
        given = 0 if inheritance is None else inheritance.number
        passed = 0 if propagation is None or not given else propagation.number
        return Rule(kind, who, Ace(allow, sid, kind.mask(rights.number, allow=allow), given, passed))

    who_types = ("System.Security.Principal.IdentityReference identity", "string identity")
    for who in who_types:
        made.constructor(f"{who}, {kind.rights} rights, {_NS}AccessControlType type")(
            lambda identity, rights, control: make(identity, rights, None, None, control)
        )
    return made


def _enum(name: str, number: int) -> EnumValue:
    return enum_value(_NS + name, number)


_declare_rule(FILE_KIND, "FileSystemRights")
_declare_rule(KEY_KIND, "RegistryRights")
_declare_rule(MUTEX_KIND, "MutexRights")

# -- security objects


class Security(Instance):
    """FileSecurity, DirectorySecurity, RegistrySecurity or MutexSecurity."""

    def __init__(self, kind: Kind, dotnet_type: DotNetType) -> None:
        self.kind = kind
        self.dotnet_type = dotnet_type
        self.descriptor = Descriptor()
        # The sections that were written: only these go to the machine where the object writes itself (SetAccessControl).
        self.changed = 0

    def changes(self) -> dict[str, Any]:
        """What `acl.set` needs to write the changed sections and nothing else."""
        whole = self.machine_record().properties
        keys = {OWNER: ("owner",), GROUP: ("group",), ACCESS: ("protected", "rules")}
        return {name: whole[name] for bit, names in keys.items() if self.changed & bit for name in names}

    def machine_record(self) -> Record:
        """The descriptor as the machine's primitives take it. Entries that protection keeps become explicit."""
        kept = [ace for ace in self.descriptor.aces if self.descriptor.protected or not ace.inherited]
        properties: dict[str, Any] = {
            "owner": self.descriptor.owner,
            "group": self.descriptor.group,
            "protected": self.descriptor.protected,
            "rules": [_rule_record(ace) for ace in kept],
        }
        return Record("acl", properties)


def _rule_record(ace: Ace) -> Record:
    return Record(
        "rule",
        {
            "identity": ace.sid,
            "rights": ace.mask,
            "type": "Allow" if ace.allow else "Deny",
            "inheritance": ace.inheritance,
            "propagation": ace.propagation,
            "inherited": False,
        },
    )


OBJECT_SECURITY = dotnet(_NS + "ObjectSecurity", kind="abstract")
NATIVE = dotnet(_NS + "NativeObjectSecurity", base=OBJECT_SECURITY, kind="abstract")
FILE_SYSTEM = dotnet(_NS + "FileSystemSecurity", base=NATIVE, kind="abstract")
TYPES: dict[str, tuple[DotNetType, Kind]] = {
    "FileSecurity": (dotnet(_NS + "FileSecurity", base=FILE_SYSTEM), FILE_KIND),
    "DirectorySecurity": (dotnet(_NS + "DirectorySecurity", base=FILE_SYSTEM), FOLDER_KIND),
    "RegistrySecurity": (dotnet(_NS + "RegistrySecurity", base=NATIVE), KEY_KIND),
    "MutexSecurity": (dotnet(_NS + "MutexSecurity", base=NATIVE), MUTEX_KIND),
}


def new_security(name: str) -> Security:
    """An empty security object: FileSecurity, DirectorySecurity, RegistrySecurity, MutexSecurity."""
    dotnet_type, kind = TYPES[name]
    return Security(kind, dotnet_type)


def security_of(name: str, record: Any) -> Security:
    """The security object of something on the machine, from the record that `acl.get` gives."""
    made = new_security(name)
    found = made.descriptor
    found.owner, found.group = record["owner"], record["group"]
    found.protected = bool(record["protected"])
    found.auto_inherited = True
    found.aces = [
        Ace(
            rule["type"] == "Allow",
            str(rule["identity"]),
            int(rule["rights"]),
            int(rule["inheritance"]),
            int(rule["propagation"]),
            bool(rule["inherited"]),
        )
        for rule in record["rules"]
    ]
    return made


for _name, (_type, _) in TYPES.items():
    _type.constructor("")(lambda _name=_name: new_security(_name))


# adding and taking rules


def _sid_of(runtime: Runtime, identity: Value) -> str:
    if isinstance(identity, SecurityIdentifier):
        return identity.value
    found = ask_one(runtime, "acl.sid", name=identity.value)
    if found is None:
        raise IdentityNotMappedException("Some or all identity references could not be translated.")
    return str(found)


def _ace(runtime: Runtime, self: Security, rule: Rule | None) -> Ace:
    if rule is None:
        raise ArgumentNullException("rule")
    if rule.ace.inheritance and not self.kind.container:
        raise ArgumentException("No flags can be set.", "inheritanceFlags")
    return replace(rule.ace, sid=_sid_of(runtime, rule.identity))


def _add(runtime: Runtime, self: Security, rule: Rule) -> None:
    self.changed |= ACCESS
    self.descriptor.add(_ace(runtime, self, rule))


for _type, _kind in TYPES.values():
    _type.method(f"void AddAccessRule({_kind.rule} rule)", effect=True)(_add)


# reading rules


def _named(runtime: Runtime, sid: str, target: DotNetType) -> Value:
    """An identity as the wanted type; a SID without a name stays a SID."""
    if target is SID:
        return SecurityIdentifier(sid)
    if target is not ACCOUNT:
        raise ArgumentException("The targetType parameter must be of IdentityReference type.", "targetType")
    name = ask_one(runtime, "acl.name", sid=sid)
    return SecurityIdentifier(sid) if name is None else NTAccount(str(name))


def rules_of(runtime: Runtime, self: Security, target: DotNetType, wanted: Iterable[Ace]) -> View:
    """An AuthorizationRuleCollection of these entries."""
    rules = [Rule(self.kind, _named(runtime, ace.sid, target), ace) for ace in wanted]
    return View(_NS + "AuthorizationRuleCollection", lambda: list[Any](rules))


@OBJECT_SECURITY.method(
    "GetAccessRules(bool includeExplicit, bool includeInherited, type targetType)", effect=True
)
def _get_rules(runtime: Runtime, self: Security, explicit: bool, inherited: bool, target: DotNetType) -> View:
    return rules_of(
        runtime,
        self,
        target,
        [ace for ace in self.descriptor.aces if (inherited if ace.inherited else explicit)],
    )


RULES = dotnet(_NS + "AuthorizationRuleCollection")


def _identity_text(runtime: Runtime, sid: str | None) -> str | None:
    return None if sid is None else str(_named(runtime, sid, ACCOUNT).value)


def _translated(key: str) -> Callable[[Runtime, Security, DotNetType], Value]:
    def get(runtime: Runtime, self: Security, target: DotNetType) -> Value:
        sid = getattr(self.descriptor, key)
        return None if sid is None else _named(runtime, sid, target)

    return get


OBJECT_SECURITY.method("GetOwner(type targetType)", effect=True)(_translated("owner"))


@OBJECT_SECURITY.method("void SetAccessRuleProtection(bool isProtected, bool preserveInheritance)")
def _protect(self: Security, protect: bool, preserve: bool) -> None:
    if protect and not preserve:
        self.descriptor.aces = [ace for ace in self.descriptor.aces if not ace.inherited]
    self.descriptor.protected = protect
    self.changed |= ACCESS


OBJECT_SECURITY.method(f"GetSecurityDescriptorSddlForm({_NS}AccessControlSections includeSections)")(
    lambda self, sections: self.descriptor.write(sections.number)
)


@OBJECT_SECURITY.method("void SetSecurityDescriptorSddlForm(string sddlForm)")
@OBJECT_SECURITY.method(
    f"void SetSecurityDescriptorSddlForm(string sddlForm, {_NS}AccessControlSections includeSections)"
)
def _set_sddl(self: Security, text: str | None, sections: EnumValue | None = None) -> None:
    if text is None:
        raise ArgumentNullException("sddlForm")
    wanted = 15 if sections is None else sections.number
    self.descriptor.read(text, wanted)
    self.changed |= wanted


# what 5.1's type data adds to every security object


def _added(name: str, get: Callable[[Runtime, Security], Value]) -> None:
    OBJECT_SECURITY.prop(name, "object", get, effect=True)


def _access(runtime: Runtime, self: Security) -> View:
    return rules_of(runtime, self, ACCOUNT, self.descriptor.aces)


def _access_text(runtime: Runtime, self: Security) -> str:
    lines = []
    for rule in _access(runtime, self):
        rights = enum_value(self.kind.rights, rule.ace.mask)
        lines.append(f"{rule.identity.value} {'Allow' if rule.ace.allow else 'Deny'}  {rights}")
    return "\n".join(lines)


_added("Owner", lambda runtime, self: _identity_text(runtime, self.descriptor.owner))
_added("Group", lambda runtime, self: _identity_text(runtime, self.descriptor.group))
_added("Access", _access)
_added("Sddl", lambda runtime, self: self.descriptor.write(15))
_added("AccessToString", _access_text)

# -- raw descriptors


class RawEntry(Instance):
    """One entry of a raw list."""

    def __init__(self, ace: Ace) -> None:
        self.ace = ace


class Raw(Instance):
    """RawSecurityDescriptor."""

    def __init__(self, text: str) -> None:
        self.descriptor = Descriptor()
        self.descriptor.read(text, 15)


def _binary(data: Any, offset: int) -> Raw:
    """A self-relative descriptor: MS-DTYP 2.4.6 (SECURITY_DESCRIPTOR), 2.4.5 (ACL), 2.4.4 (ACE), 2.4.2.2 (SID)."""
    raw = bytes(data)[offset:]
    made = Raw.__new__(Raw)
    made.descriptor = found = Descriptor()
    owner, group, _, rules = struct.unpack_from("<4I", raw, 4)
    found.owner = _sid_at(raw, owner) if owner else None
    found.group = _sid_at(raw, group) if group else None
    found.has_list = bool(rules)
    at = rules + 8
    for _ in range(struct.unpack_from("<H", raw, rules + 4)[0] if rules else 0):
        kind, flags, size, mask = struct.unpack_from("<BBHi", raw, at)
        if kind not in (0, 1):
            raise _invalid_sddl()
        found.aces.append(
            Ace(kind == 0, _sid_at(raw, at + 8), mask, flags & 3, flags >> 2 & 3, bool(flags & 16))
        )
        at += size
    return made


def _sid_at(raw: bytes, at: int) -> str:
    count = raw[at + 1]
    parts = struct.unpack_from(f"<{count}I", raw, at + 8)
    return "-".join(["S", str(raw[at]), str(int.from_bytes(raw[at + 2 : at + 8], "big")), *map(str, parts)])


ENTRY = dotnet(_NS + "CommonAce", RawEntry)
ENTRY.prop("AceType", "string", lambda self: "AccessAllowed" if self.ace.allow else "AccessDenied")
ENTRY.prop("AccessMask", "int", lambda self: self.ace.mask)
ENTRY.prop("SecurityIdentifier", SID.name, lambda self: SecurityIdentifier(self.ace.sid))
RAW = dotnet(_NS + "RawSecurityDescriptor", Raw)
RAW.constructor("byte[] binaryForm, int offset")(_binary)
RAW.prop(
    "Owner",
    SID.name,
    lambda self: None if self.descriptor.owner is None else SecurityIdentifier(self.descriptor.owner),
)
RAW.prop(
    "DiscretionaryAcl",
    "object",
    lambda self: View(_NS + "RawAcl", lambda: [RawEntry(ace) for ace in self.descriptor.aces]),
)
RAW_LIST = dotnet(_NS + "RawAcl")
