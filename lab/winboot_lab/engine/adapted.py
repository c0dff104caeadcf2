"""Properties as the binder and the object cmdlets of Windows PowerShell see them: the keys of a hashtable do not count."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.members import MISSING, check_absence, find_property
from winboot_lab.engine.members import _lookup_adapted as lookup_adapted
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.values import NOTHING, PSMethod, _Mapping, extension_of, plain

Value = Any


def property_of(value: Value, name: str, scope: Scope) -> tuple[Value] | None:
    """(value,) of a property, or None; the keys of a hashtable do not count."""
    if value is None or value is NOTHING:
        return None
    bare = plain(value)
    if not isinstance(bare, _Mapping):
        return find_property(value, name, scope)
    extension = extension_of(value)
    if extension is not None and extension.find(name) is not None:
        return find_property(value, name, scope)
    found = lookup_adapted(value, bare, name, name.lower(), scope)
    if found is MISSING:
        check_absence(bare, name)
        return None
    return None if type(found) is PSMethod else (found,)
