"""The state as one plain tree: how things are shown in it, what differs between two, and what a digest leaves out."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"

_SHOWN_TEXT = 2048

# Parts of the tree that hold what happened, not how things are.
_CHANCE_PARTS = ("processes", "events")
_CHANCE_KEYS = re.compile(
    r"(?i)^(pid|id|guid|instanceid|time|created|modified|start_time|last_run|record_id|skew|.*\bboot\b.*|uptime|"
    r"externalinterfaceid|vswitchid|vportid|mac|macaddress|sourcemac|hnsid|thumbprint)$"
)


def show_bytes(content: bytes) -> Tree:
    """Bytes as size and hash, with their text when it is short and readable."""
    shown: dict[str, Tree] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if len(content) <= _SHOWN_TEXT:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return shown
        if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text):
            shown["text"] = text
    return shown


def plain(value: object) -> Tree:
    """Anything the model keeps, as a plain tree."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return show_bytes(value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple():
            return [plain(v) for v in value]
        case set() | frozenset():
            return sorted((plain(v) for v in value), key=str)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        case _:
            raise TypeError(f"no plain form for {type(value).__name__}")


def diff(before: Tree, after: Tree, path: str = "") -> list[str]:
    """What differs, a line each: `registry/HKLM…/Start: 3 -> 2`, `+ path: new`, `- path: old`."""
    if isinstance(before, dict) and isinstance(after, dict):
        return list(_diff_maps(before, after, path))
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        lines: list[str] = []
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            lines.extend(diff(old, new, f"{path}[{index}]"))
        return lines
    return [] if before == after else [f"{path}: {_short(before)} -> {_short(after)}"]


def _diff_maps(before: dict[str, Tree], after: dict[str, Tree], path: str) -> Iterator[str]:
    for key in sorted({*before, *after}):
        below = f"{path}/{key}" if path else key
        if key not in after:
            yield f"- {below}: {_short(before[key])}"
        elif key not in before:
            yield f"+ {below}: {_short(after[key])}"
        else:
            yield from diff(before[key], after[key], below)


def _short(value: Tree) -> str:
    if isinstance(value, dict) and "text" in value and "sha256" in value:
        return repr(value["text"])
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def without_chance(tree: Tree, top: bool = True) -> Tree:
    """The tree without what differs between two equal runs: ids, times, processes and events."""
    if isinstance(tree, dict):
        return {
            key: without_chance(value, top=False)
            for key, value in tree.items()
            # The name of a file, a key or a task says nothing about chance, whatever words are in it.
            if ("\\" in key or not _CHANCE_KEYS.match(key)) and not (top and key in _CHANCE_PARTS)
        }
    if isinstance(tree, list):
        return [without_chance(value, top=False) for value in tree]
    return tree
