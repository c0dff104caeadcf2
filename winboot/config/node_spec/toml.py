"""A nested mapping as TOML, and its texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml(table: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """The lines of a table: its own values, then the tables in it. Every value is a mapping, a list, a text, a number or a
    boolean (https://toml.io/en/v1.0.0)."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if name and (len(inner) < len(table) or not table):
        yield f"[{name}]"
    for key, value in table.items():
        if key not in inner:
            yield f"{'  ' if name else ''}{_key(key)} = {_value(value)}"
    for key, below in inner.items():
        yield from toml(below, f"{name}.{_key(key)}" if name else _key(key))


def quoted(text: str) -> str:
    """A TOML string without escapes, in which backslashes stay; with escapes where it holds a quotation mark."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else quoted(key)


def _value(value: Any) -> str:
    match value:
        case str():
            return quoted(value)
        case Mapping():
            return f"{{{', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case float():
            return str(value)  # inf, -inf and nan too, as TOML has them
    # Numbers and booleans are written as in JSON.
    return json.dumps(value)
