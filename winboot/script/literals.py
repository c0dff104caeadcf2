"""Python values as PowerShell literals: the one way by which a value gets into a script.

A text becomes a single-quoted string in which every character that PowerShell takes for a single quote is
doubled, and nothing else is touched. No text can leave such quotes. Whatever is not plain data is refused,
a `Secret` first of all.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

# PowerShell ends a single-quoted string at any of these, so each is doubled.
_SINGLE_QUOTES: Final = re.compile("(['\u2018\u2019\u201a\u201b])")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_INT64: Final = range(-(2**63), 2**63)


def literal(value: object) -> str:
    """Write plain data as a PowerShell expression that is valid as an argument as well as in an expression.

    Takes None, bool, int, float, str, list or tuple (an array), and a mapping with text keys. That becomes a hash
    table (an ordered one for an OrderedDict), nested as deep as need be. Raises TypeError for every other type and
    ValueError for a value that PowerShell would not give back as it is.
    """
    match value:
        case None:
            return "$null"
        case bool():
            return "$true" if value else "$false"
        case int():
            return _integer(value)
        case float():
            return _float(value)
        case str():
            return quoted(value)
        case list() | tuple():
            return _array(value)
        case Mapping():
            return _hashtable(value)
    raise TypeError(_refusal(value))


def quoted(text: str) -> str:
    """A text as a single-quoted string."""
    if _SURROGATE.search(text):
        raise ValueError("a text with one half of a surrogate pair cannot be written into a script")
    return "'" + _SINGLE_QUOTES.sub(r"\1\1", text) + "'"


def _signed(text: str) -> str:
    """A negative number in parentheses: `Get-Thing -5` would pass the parameter `5`."""
    return f"({text})" if text.startswith("-") else text


def _integer(value: int) -> str:
    if value not in _INT64:
        raise ValueError(f"{value} does not fit into 64 bits")
    return _signed(str(int(value)))


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"PowerShell has no literal for {value}")
    return _signed(repr(float(value)))


def _array(values: list[object] | tuple[object, ...]) -> str:
    items = [literal(value) for value in values]
    if len(values) == 1 and isinstance(values[0], list | tuple):
        # @( @(1, 2) ) would be unrolled to @(1, 2); the comma keeps the inner array whole.
        return f"@(, {items[0]})"
    return f"@({', '.join(items)})"


def _hashtable(values: Mapping[object, object]) -> str:
    seen: set[str] = set()
    pairs: list[str] = []
    for key, value in values.items():
        if not isinstance(key, str):
            raise TypeError(f"a key of a hash table is a text, not {type(key).__name__}")
        if key.lower() in seen:
            raise ValueError(f"the keys of a hash table differ only in case: {key!r}")
        seen.add(key.lower())
        pairs.append(f"{quoted(key)} = {literal(value)}")
    table = "@{ " + "; ".join(pairs) + " }" if pairs else "@{}"
    # As an argument, [ordered]@{} without parentheses would be two words.
    return f"([ordered]{table})" if isinstance(values, OrderedDict) else table


def _refusal(value: object) -> str:
    kind = type(value)
    if hasattr(kind, "reveal"):
        return "a Secret is never a part of the script: winboot sends it separately"
    if any(base.__name__ == "Undefined" for base in kind.__mro__):
        # A strict undefined value of the template engine gives its own name when a template wants its text.
        return f"undefined: {value}"
    return f"no PowerShell literal for a value of the type {kind.__name__}"
