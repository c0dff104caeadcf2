"""Laying a user's configuration over winboot's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def over(
    low: Mapping[str, Any], high: Mapping[str, Any], whole: Collection[str] = (), above: str = ""
) -> dict[str, Any]:
    """Maps merge, everything else replaces, a None of `high` takes the key away.

    `whole` names fields by their dotted paths whose map replaces the one below. Nones alone still take keys away there.
    """
    merged = dict(low)
    for key, value in high.items():
        path = f"{above}.{key}" if above else key
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = {} if path in whole and _says(value) else merged.get(key)
            merged[key] = over(below if isinstance(below, Mapping) else {}, value, whole, path)
        else:
            merged[key] = value
    return merged


def _says(value: Mapping[str, Any]) -> bool:
    """True where a map names a value, or is empty and so means none."""
    return not value or any(one is not None for one in value.values())


def without_nones(flags: Mapping[str, str | None]) -> dict[str, str]:
    """The flags that are set."""
    return {name: value for name, value in flags.items() if value is not None}
