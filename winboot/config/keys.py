"""The keys of profiles and inventories by their dotted names, for `winboot explain` and for hints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from winboot.config.inventory import HostKeys
from winboot.config.model import Model, model_at
from winboot.config.profile import Profile, Reference


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `path` as in `network.cni`, the file it belongs to, what it does, its default, and the keys below it."""

    path: str
    file: str
    says: str
    default: str
    below: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.path}: a key of the {self.file}", f"  {self.says}"]
        if self.default:
            lines.append(f"  default  {self.default}")
        if self.below:
            lines.append(f"  below    {', '.join(self.below)}")
        return "\n".join(lines)


@cache
def keys() -> dict[str, Key]:
    """All of them, by path, in the order of the models."""
    found = [*_keys(HostKeys, "", "inventory"), *_keys(Profile, "", "profile")]
    return {key.path: key for key in reversed(found)}


def key_named(name: str) -> Key | None:
    """The key of that path; a last part that only one key has is enough. None where there is none."""
    wanted = name.strip().strip(".")
    if wanted in keys():
        return keys()[wanted]
    ends = [key for path, key in keys().items() if path.rpartition(".")[2] == wanted]
    return ends[0] if len(ends) == 1 else None


def _keys(model: type[Model], prefix: str, file: str) -> Iterator[Key]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        default = (
            "none: it is needed"
            if info.is_required()
            else _default(info.get_default(call_default_factory=True))
        )
        below = model_at(model, (name,))
        if below is not None and not issubclass(below, Reference):
            yield Key(path, file, info.description or "", default, tuple(below.model_fields))
            yield from _keys(below, f"{path}.", file)
        else:
            yield Key(path, file, info.description or "", default)


def _default(value: Any) -> str:
    if value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    return json.dumps(value) if isinstance(value, bool | int | tuple) else str(value)
