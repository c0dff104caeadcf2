"""A value as text where the script says so: strings with `$x` in them, arguments, messages. `$OFS` separates list items."""

from __future__ import annotations

from typing import Any

from winboot_lab.engine.convert import to_string
from winboot_lab.engine.scopes import Scope


def to_text(value: Any, scope: Scope) -> str:
    """The value as PowerShell writes it into a string, in this scope."""
    if type(value) is str:
        return value
    separator = scope.find("ofs")
    if separator is None:
        return to_string(value)
    return to_string(value, to_string(separator.value))
