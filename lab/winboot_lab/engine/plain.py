"""Values of Python that come from outside (script parameters) as PowerShell values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from winboot_lab.engine.values import Array, Hashtable, from_plain


def to_value(value: Any) -> Any:
    """A mapping becomes a hashtable, a list an array, deeply; what is a PowerShell value already stays."""
    if isinstance(value, Mapping):
        made = Hashtable()
        for key, item in value.items():
            made.put(to_value(key), to_value(item))
        return made
    if type(value) in (list, tuple):
        return Array([to_value(item) for item in value])
    return from_plain(value)
