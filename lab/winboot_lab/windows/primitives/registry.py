"""registry.*: keys and typed values."""

from __future__ import annotations

from winboot_lab.windows import registry as model
from winboot_lab.windows.call import primitive
from winboot_lab.windows.door import Plain, Record
from winboot_lab.windows.failure import failure
from winboot_lab.windows.session import Session

Objects = tuple[Plain, ...]


def _shown(session: Session, value: model.Value) -> Record:
    data: Plain
    match value.data:
        case list():
            data = list(value.data)
        case int() if value.kind == "DWord" and value.data >= 2**31:
            data = value.data - 2**32
        case int() if value.data >= 2**63:
            data = value.data - 2**64
        case _:
            data = value.data
    properties: dict[str, Plain] = {"name": value.name, "kind": value.kind, "value": data}
    if value.kind == "ExpandString" and isinstance(value.data, str):
        properties["expanded"] = session.machine.registry.expand(value.data, session.environment)
    return Record("value", properties)


@primitive("registry.stat")
def stat(session: Session, key: str) -> Objects:
    """One or none."""
    found = session.machine.registry.find(key, session.token)
    if found is None:
        return ()
    return (Record("key", {"name": found.name, "values": len(found.values), "subkeys": len(found.keys)}),)


@primitive("registry.list")
def list_(session: Session, key: str) -> Objects:
    """The subkeys' names."""
    found = session.machine.registry.need(key, session.token)
    return tuple(found.keys[name].name for name in sorted(found.keys))


@primitive("registry.values")
def values(session: Session, key: str) -> Objects:
    """The values in creation order."""
    found = session.machine.registry.need(key, session.token)
    return tuple(_shown(session, value) for value in found.values.values())


@primitive("registry.get")
def get(session: Session, key: str, name: str) -> Objects:
    """One or none."""
    found = session.machine.registry.need(key, session.token).values.get(name.lower())
    return () if found is None else (_shown(session, found),)


@primitive("registry.set")
def set_(session: Session, key: str, name: str, kind: str, value: Plain) -> Objects:
    """Write a value of an existing key."""
    session.machine.registry.put(key, name, kind, value, session.token)
    return ()


@primitive("registry.create")
def create(session: Session, key: str) -> Objects:
    """Make a key and its parents."""
    return (Record("created", {"created": session.machine.registry.create(key, session.token)}),)


@primitive("registry.delete-key")
def delete_key(session: Session, key: str, recurse: bool = False) -> Objects:
    """Remove a key."""
    session.machine.registry.delete_key(key, session.token, recurse=recurse)
    return ()


@primitive("registry.delete-value")
def delete_value(session: Session, key: str, name: str) -> Objects:
    """Remove a value."""
    if not session.machine.registry.delete_value(key, name, session.token):
        raise failure("System.ArgumentException", "No value exists with that name.", hresult=0x80070057)
    return ()
