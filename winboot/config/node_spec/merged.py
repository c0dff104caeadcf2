"""Laying a user's configuration over winboot's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def over(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Maps merge, everything else replaces, a None of `high` takes the key away."""
    merged = dict(low)
    for key, value in high.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = over(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def without_nones(flags: Mapping[str, str | None]) -> dict[str, str]:
    """The flags that are set."""
    return {name: value for name, value in flags.items() if value is not None}
