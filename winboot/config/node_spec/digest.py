"""The digest of everything that the files say of one machine: equal for two runs exactly when its merged settings are."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Any

from winboot.base.secret import Secret
from winboot.config.node_spec.node import NodeSpec


def settings_digest(spec: NodeSpec) -> str:
    """The SHA-256 in hex; secrets are in it by their reference, never by their value."""
    return hashlib.sha256(json.dumps(_plain(spec), sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """The same value of what JSON has, in an order that does not depend on the process. Raises TypeError for others."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case enum.Enum():
            return value.name
        case Secret():
            return "a secret"
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case AbstractSet():
            return sorted(json.dumps(_plain(one), sort_keys=True) for one in value)
        case PurePath():
            return str(value)
    if dataclasses.is_dataclass(value):
        fields = {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"": type(value).__qualname__, **fields}
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="python"))
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)
