"""The accounts of the machine: well-known SIDs, local accounts, and what a logon token holds."""

from __future__ import annotations

from dataclasses import dataclass

SYSTEM = "S-1-5-18"
LOCAL_SERVICE = "S-1-5-19"
NETWORK_SERVICE = "S-1-5-20"
ADMINISTRATORS = "S-1-5-32-544"
USERS = "S-1-5-32-545"
EVERYONE = "S-1-1-0"
AUTHENTICATED_USERS = "S-1-5-11"
CREATOR_OWNER = "S-1-3-0"
TRUSTED_INSTALLER = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

WELL_KNOWN: dict[str, str] = {
    SYSTEM: r"NT AUTHORITY\SYSTEM",
    LOCAL_SERVICE: r"NT AUTHORITY\LOCAL SERVICE",
    NETWORK_SERVICE: r"NT AUTHORITY\NETWORK SERVICE",
    ADMINISTRATORS: r"BUILTIN\Administrators",
    USERS: r"BUILTIN\Users",
    EVERYONE: "Everyone",
    AUTHENTICATED_USERS: r"NT AUTHORITY\Authenticated Users",
    CREATOR_OWNER: "CREATOR OWNER",
    TRUSTED_INSTALLER: r"NT SERVICE\TrustedInstaller",
    "S-1-3-1": "CREATOR GROUP",
    "S-1-5-2": r"NT AUTHORITY\NETWORK",
    "S-1-5-3": r"NT AUTHORITY\BATCH",
    "S-1-5-4": r"NT AUTHORITY\INTERACTIVE",
    "S-1-5-6": r"NT AUTHORITY\SERVICE",
    "S-1-5-7": r"NT AUTHORITY\ANONYMOUS LOGON",
    "S-1-5-32-546": r"BUILTIN\Guests",
    "S-1-5-32-555": r"BUILTIN\Remote Desktop Users",
    "S-1-5-32-573": r"BUILTIN\Event Log Readers",
    "S-1-5-32-578": r"BUILTIN\Hyper-V Administrators",
    "S-1-5-32-580": r"BUILTIN\Remote Management Users",
    "S-1-15-2-1": r"APPLICATION PACKAGE AUTHORITY\ALL APPLICATION PACKAGES",
}

# Names of the same account in other spellings.
_SPELLINGS = {
    "localsystem": SYSTEM,
    "nt authority\\localservice": LOCAL_SERVICE,
    "nt authority\\networkservice": NETWORK_SERVICE,
}


@dataclass(slots=True)
class Account:
    """A local user. The password is the lab's, for services that run as this user."""

    name: str
    sid: str
    administrator: bool = True
    password: str | None = None
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """What a logon holds: the user, its groups, and whether it is the full (elevated) one."""

    name: str
    sid: str
    groups: tuple[str, ...]
    elevated: bool = True
    authentication: str = "Negotiate"

    @property
    def sids(self) -> frozenset[str]:
        """Every identity an access rule may name. A filtered token does not count as administrator."""
        groups = self.groups if self.elevated else tuple(g for g in self.groups if g != ADMINISTRATORS)
        return frozenset((self.sid, *groups))


SYSTEM_TOKEN = Token(
    r"NT AUTHORITY\SYSTEM",
    SYSTEM,
    (ADMINISTRATORS, EVERYONE, AUTHENTICATED_USERS),
    authentication="Negotiate",
)


class Accounts:
    """The account database: names to SIDs and back."""

    def __init__(self, machine_sid: str) -> None:
        self.machine_sid = machine_sid
        self.users: dict[str, Account] = {}
        self.domains: dict[str, str] = {}
        self.add("Administrator", 500)
        self.add("Guest", 501, administrator=False)

    def add(
        self, name: str, rid: int | None = None, *, administrator: bool = True, password: str | None = None
    ) -> Account:
        """Make a local user."""
        number = rid if rid is not None else 1000 + len(self.users)
        profile = rf"C:\Users\{name}"
        account = Account(name, f"{self.machine_sid}-{number}", administrator, password, profile)
        self.users[name.lower()] = account
        return account

    def token(self, user: str, *, elevated: bool = True, authentication: str = "NTLM") -> Token:
        """A logon of a local user (`name`, `.\\name` or `MACHINE\\name`)."""
        account = self.users[user.rpartition("\\")[2].lower()]
        groups = [EVERYONE, USERS, AUTHENTICATED_USERS, "S-1-5-2"]
        if account.administrator:
            groups.append(ADMINISTRATORS)
        return Token(account.name, account.sid, tuple(groups), elevated, authentication)

    def sid(self, name: str, computer: str) -> str | None:
        """The SID of an account name in any usual spelling; None when there is no such account."""
        wanted = name.lower()
        if wanted in _SPELLINGS:
            return _SPELLINGS[wanted]
        for sid, full in WELL_KNOWN.items():
            if wanted in (full.lower(), full.rpartition("\\")[2].lower()):
                return sid
        domain, _, short = wanted.rpartition("\\")
        if domain in ("", ".", computer.lower()) and short in self.users:
            return self.users[short].sid
        for sid, full in self.domains.items():
            if wanted == full.lower():
                return sid
        return None

    def name(self, sid: str, computer: str) -> str | None:
        """The account name of a SID; None when it cannot be resolved."""
        if sid in WELL_KNOWN:
            return WELL_KNOWN[sid]
        for account in self.users.values():
            if account.sid == sid:
                return f"{computer}\\{account.name}"
        return self.domains.get(sid)
