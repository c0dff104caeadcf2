"""Access rules in one simple canonical form, for files and registry keys.

A descriptor keeps inherited rules next to explicit ones, as NTFS does: a moved file keeps what it inherited, a changed
folder hands its rules down again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from winboot_lab.windows.accounts import (
    ADMINISTRATORS,
    AUTHENTICATED_USERS,
    CREATOR_OWNER,
    EVERYONE,
    LOCAL_SERVICE,
    NETWORK_SERVICE,
    SYSTEM,
    TRUSTED_INSTALLER,
    USERS,
    Token,
)

CONTAINER = 1
OBJECT = 2
NO_PROPAGATE = 1
INHERIT_ONLY = 2

FULL = 0x1F01FF
MODIFY = 0x1301BF
READ_EXECUTE = 0x1200A9
READ = 0x1
WRITE = 0x2
APPEND = 0x4
DELETE_CHILD = 0x40
DELETE = 0x10000
CHANGE_PERMISSIONS = 0x40000
TAKE_OWNERSHIP = 0x80000

_SDDL_SIDS = {
    SYSTEM: "SY",
    ADMINISTRATORS: "BA",
    USERS: "BU",
    EVERYONE: "WD",
    AUTHENTICATED_USERS: "AU",
    CREATOR_OWNER: "CO",
    LOCAL_SERVICE: "LS",
    NETWORK_SERVICE: "NS",
}
_SDDL_RIGHTS = {FULL: "FA", 0x120089: "FR", 0x120116: "FW", 0x1200A0: "FX", 0xF003F: "KA", 0x20019: "KR"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One access rule: which account, which rights, and how it reaches children (flags as .NET numbers them)."""

    sid: str
    rights: int
    kind: Literal["Allow", "Deny"] = "Allow"
    inheritance: int = 0
    propagation: int = 0
    inherited: bool = False


@dataclass(slots=True)
class Acl:
    """Owner, group and rules of one object. `protected`: nothing is inherited from above. `audit`: entries as SDDL."""

    owner: str
    group: str
    protected: bool = False
    explicit: list[Rule] = field(default_factory=list)
    inherited: list[Rule] = field(default_factory=list)
    audit: str = ""

    @property
    def rules(self) -> list[Rule]:
        """All rules in canonical order: explicit deny, explicit allow, then what was inherited."""
        return [*sorted(self.explicit, key=lambda r: r.kind != "Deny"), *self.inherited]

    def copy(self) -> Acl:
        """A descriptor of its own with the same content."""
        return Acl(
            self.owner, self.group, self.protected, list(self.explicit), list(self.inherited), self.audit
        )

    def allows(self, token: Token, rights: int) -> bool:
        """Whether the token has all of `rights`. The owner may always read and change the rules."""
        sids = token.sids
        missing = rights
        if self.owner in sids:
            missing &= ~(0x20000 | CHANGE_PERMISSIONS)
        for rule in self.rules:
            if rule.propagation & INHERIT_ONLY or rule.sid not in sids:
                continue
            if rule.kind == "Deny" and rule.rights & missing:
                return False
            if rule.kind == "Allow":
                missing &= ~_specific(rule.rights)
        return missing == 0

    def protect(self, preserve: bool) -> None:
        """Stop inheriting; what was inherited becomes explicit or goes."""
        if not self.protected and preserve:
            self.explicit.extend(replace(r, inherited=False) for r in self.inherited)
        self.protected = True
        self.inherited = []

    def sddl(self) -> str:
        """The descriptor as SDDL text; what stands on disk is always marked as auto-inherited."""
        flags = "PAI" if self.protected else "AI"
        aces = "".join(_ace(r) for r in self.rules)
        audit = f"S:AI{self.audit}" if self.audit else ""
        return f"O:{_sid(self.owner)}G:{_sid(self.group)}D:{flags}{aces}{audit}"


def _specific(rights: int) -> int:
    # Generic rights appear in a few default rules (CREATOR OWNER).
    return FULL | rights if rights & 0x10000000 else rights


def _sid(sid: str) -> str:
    return _SDDL_SIDS.get(sid, sid)


def _ace(rule: Rule) -> str:
    flags = ("OI" if rule.inheritance & OBJECT else "") + ("CI" if rule.inheritance & CONTAINER else "")
    flags += "NP" if rule.propagation & NO_PROPAGATE else ""
    flags += "IO" if rule.propagation & INHERIT_ONLY else ""
    flags += "ID" if rule.inherited else ""
    rights = _SDDL_RIGHTS.get(rule.rights, hex(rule.rights))
    return f"({'A' if rule.kind == 'Allow' else 'D'};{flags};{rights};;;{_sid(rule.sid)})"


def handed_down(parent: Iterable[Rule], *, directory: bool, owner: str) -> list[Rule]:
    """The rules that a new or re-inheriting child gets from its parent's rules."""
    found: list[Rule] = []
    for rule in parent:
        wanted = CONTAINER if directory else OBJECT
        passes_on = directory and rule.inheritance and not rule.propagation & NO_PROPAGATE
        sid = owner if rule.sid == CREATOR_OWNER else rule.sid
        if rule.inheritance & wanted:
            if rule.sid == CREATOR_OWNER and passes_on:
                found.append(replace(rule, sid=sid, inheritance=0, propagation=0, inherited=True))
                found.append(replace(rule, propagation=INHERIT_ONLY, inherited=True))
                continue
            inheritance = rule.inheritance if passes_on else 0
            found.append(replace(rule, sid=sid, inheritance=inheritance, propagation=0, inherited=True))
        elif passes_on and rule.inheritance & OBJECT:
            found.append(replace(rule, propagation=INHERIT_ONLY, inherited=True))
    return found


def drive_root() -> Acl:
    """What the root of the system drive has."""
    down = CONTAINER | OBJECT
    return Acl(
        TRUSTED_INSTALLER,
        TRUSTED_INSTALLER,
        protected=True,
        explicit=[
            Rule(SYSTEM, FULL, inheritance=down),
            Rule(ADMINISTRATORS, FULL, inheritance=down),
            Rule(USERS, READ_EXECUTE, inheritance=down),
            Rule(USERS, APPEND, inheritance=CONTAINER),
            Rule(USERS, WRITE, inheritance=CONTAINER, propagation=INHERIT_ONLY),
            Rule(CREATOR_OWNER, 0x10000000, inheritance=down, propagation=INHERIT_ONLY),
        ],
    )


def program_files() -> Acl:
    """What `C:\\Program Files` and `C:\\Windows` have, as far as it matters here."""
    down = CONTAINER | OBJECT
    return Acl(
        TRUSTED_INSTALLER,
        TRUSTED_INSTALLER,
        protected=True,
        explicit=[
            Rule(SYSTEM, FULL, inheritance=down),
            Rule(ADMINISTRATORS, FULL, inheritance=down),
            Rule(USERS, READ_EXECUTE, inheritance=down),
            Rule(CREATOR_OWNER, 0x10000000, inheritance=down, propagation=INHERIT_ONLY),
        ],
    )


def registry_root() -> Acl:
    """What `HKEY_LOCAL_MACHINE\\SOFTWARE` and `SYSTEM` have. Unsourced: credential-classes has it too."""
    return Acl(
        ADMINISTRATORS,
        SYSTEM,
        protected=True,
        explicit=[
            Rule(SYSTEM, 0xF003F, inheritance=CONTAINER),
            Rule(ADMINISTRATORS, 0xF003F, inheritance=CONTAINER),
            Rule(USERS, 0x20019, inheritance=CONTAINER),
            Rule(CREATOR_OWNER, 0xF003F, inheritance=CONTAINER, propagation=INHERIT_ONLY),
        ],
    )
