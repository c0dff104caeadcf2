"""ConvertTo- and ConvertFrom-Csv, Export- and Import-Csv."""

from __future__ import annotations

from typing import Any

Value = Any

# -- CSV


def quoted(text: str) -> str:
    """A field in quotes."""
    return '"' + text.replace('"', '""') + '"'
