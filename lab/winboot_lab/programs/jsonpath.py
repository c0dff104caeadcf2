"""kubectl's `--output=jsonpath=`, as far as rows of fields go: range, fields, list items, one filter, literals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from winboot_lab.programs.base import GoError

Piece: TypeAlias = tuple[str | None, str | None]  # what is in braces, or the text between them

_PIECE: Final = re.compile(r"\{([^{}]*)\}|([^{}]+)")
_STEP: Final = re.compile(
    r"""\.(?P<field>[A-Za-z0-9_-]+)|(?P<all>\[\*\])|\[\?\(@\.(?P<key>\w+)==["'](?P<value>[^"']*)["']\)\]"""
)


def show(template: str, data: Any) -> str:
    """The text of a template for an object; GoError where this stand-in does not know it."""
    return _show([(match[1], match[2]) for match in _PIECE.finditer(template)], data)


def _show(pieces: list[Piece], data: Any) -> str:
    text = ""
    while pieces:
        (code, literal), pieces = pieces[0], pieces[1:]
        if code is None:
            text += literal or ""
        elif code.startswith("range "):
            inner, pieces = _until_end(pieces)
            text += "".join(_show(inner, item) for item in _find(code.removeprefix("range "), data))
        elif code == "end":
            raise GoError("error parsing jsonpath, not in range, nothing to end")
        elif code.startswith('"'):
            text += str(json.loads(code))
        else:
            text += " ".join(map(_word, _find(code, data)))
    return text


def _until_end(pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    depth = 0
    for at, (code, _) in enumerate(pieces):
        depth += (code or "").startswith("range ")
        if code == "end":
            if depth == 0:
                return pieces[:at], pieces[at + 1 :]
            depth -= 1
    raise GoError("error parsing jsonpath, unclosed range")


def _find(path: str, data: Any) -> list[Any]:
    found, at = [data], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise GoError(f"error parsing jsonpath {path}")
        found = [item for one in found for item in _step(match, one)]
        at = match.end()
    return found


def _step(match: re.Match[str], one: Any) -> Iterator[Any]:
    if match["field"]:
        if isinstance(one, dict) and match["field"] in one:
            yield one[match["field"]]
    elif isinstance(one, list):
        for item in one:
            if match["all"] or (isinstance(item, dict) and str(item.get(match["key"])) == match["value"]):
                yield item


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
