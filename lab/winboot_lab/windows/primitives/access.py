"""acl.*: access rules of files and registry keys, and account names."""

from __future__ import annotations

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.accounts import ADMINISTRATORS
from winboot_lab.windows.acl import Acl, Rule
from winboot_lab.windows.call import as_int, as_text, primitive
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


def show_acl(acl: Acl) -> Record:
    """A descriptor as a Record."""
    rules: list[Plain] = [
        Record(
            "rule",
            {
                "identity": r.sid,
                "rights": r.rights,
                "type": r.kind,
                "inheritance": r.inheritance,
                "propagation": r.propagation,
                "inherited": r.inherited,
            },
        )
        for r in acl.rules
    ]
    return Record(
        "acl",
        {
            "owner": acl.owner,
            "group": acl.group,
            "protected": acl.protected,
            "rules": rules,
            "sddl": acl.sddl(),
        },
    )


def read_acl(record: Record) -> Acl:
    """A descriptor from a Record {owner?, group?, protected, rules}; only explicit rules count."""
    properties = record.properties
    found = Acl(as_text(properties.get("owner")), as_text(properties.get("group")))
    found.protected = bool(properties.get("protected"))
    found.explicit = read_rules(properties.get("rules"))
    return found


def read_rules(value: Plain) -> list[Rule]:
    """The explicit rules of a list of Records."""
    found: list[Rule] = []
    for item in value if isinstance(value, list) else []:
        assert isinstance(item, Record)
        if not item.properties.get("inherited"):
            found.append(
                Rule(
                    as_text(item["identity"]),
                    as_int(item["rights"]),
                    "Deny" if as_text(item["type"]) == "Deny" else "Allow",
                    as_int(item["inheritance"]),
                    as_int(item["propagation"]),
                )
            )
    return found


@primitive("acl.get")
def get(session: Session, path: str, kind: str = "file") -> Objects:
    """The rules of a file, directory or key."""
    if kind == "registry":
        session.machine.registry.need(path, session.token)
        return (show_acl(session.machine.registry.acl(path, session.token)),)
    return (show_acl(session.machine.files.need(path)[1].acl),)


@primitive("acl.set")
def set_(
    session: Session,
    path: str,
    kind: str = "file",
    owner: str | None = None,
    group: str | None = None,
    protected: bool | None = None,
    preserve: bool = True,
    rules: Plain = None,
    audit: str | None = None,
) -> Objects:
    """Change what is given. Audit entries are those of the SDDL text; an empty one takes them away."""
    machine = session.machine
    if kind == "registry":
        wanted = machine.registry.acl(path, session.token).copy()
    else:
        wanted = machine.files.need(path)[1].acl.copy()
    wanted.owner, wanted.group = owner or wanted.owner, group or wanted.group
    # The rules given are the caller's whole list: what it kept of the inherited ones is among them.
    if protected and not wanted.protected:
        wanted.protect(preserve and rules is None)
    elif protected is False:
        wanted.protected = False
    if rules is not None:
        wanted.explicit = read_rules(rules)
    wanted.audit = wanted.audit if audit is None else audit
    if kind == "registry":
        machine.registry.set_acl(path, wanted, session.token, privileged=session.privileged)
    else:
        machine.files.set_acl(path, wanted, session.token)
    return ()


@primitive("acl.enable-privileges")
def enable_privileges(session: Session) -> Objects:
    """Let the session take the ownership of keys, and give it to any account: SeTakeOwnership and SeRestorePrivilege."""
    if ADMINISTRATORS not in session.token.sids:
        raise Refusal("value", session.token.name, "the lab has these privileges for administrators alone")
    session.privileged = True
    return ()


@primitive("acl.name")
def name(session: Session, sid: str) -> Objects:
    """The account of a SID."""
    found = session.machine.accounts.name(sid, session.machine.name)
    return () if found is None else (found,)


@primitive("acl.sid")
def sid(session: Session, name: str) -> Objects:
    """The SID of an account."""
    found = session.machine.accounts.sid(name, session.machine.name)
    return () if found is None else (found,)
