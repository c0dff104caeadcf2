"""The JSON Schemas of profiles and inventories, for editors (`winboot schema`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from winboot.config.inventory import SECTIONS, HostKeys
from winboot.config.profile import Profile

Json = dict[str, Any]
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_MACHINE_KEYS: Final = ("os", "connection")


def profile_schema() -> Json:
    """The JSON Schema of a profile."""
    return {"$schema": _DRAFT, **_nullable(Profile.model_json_schema()), "title": "winboot profile"}


def inventory_schema() -> Json:
    """The JSON Schema of an inventory: sections of the profile at three places, none of them required there."""
    profile, host = Profile.model_json_schema(), HostKeys.model_json_schema()
    definitions = {**profile["$defs"], **host["$defs"]}
    for definition in definitions.values():
        # An override says a part of what a profile must say as a whole.
        definition.pop("required", None)
    sections = {key: profile["properties"][key] for key in SECTIONS}
    machine = {key: host["properties"][key] for key in _MACHINE_KEYS}
    own = {key: value for key, value in host["properties"].items() if key not in _MACHINE_KEYS}
    one_host = _object({**own, **machine, **sections})
    group = {
        "profile": {"type": "string", "description": "the path of the profile, from this file"},
        "members": {
            "type": "array",
            "items": {"type": "string"},
            "description": "hosts of other groups that take the settings of this one too",
        },
        "hosts": {
            "type": "object",
            "description": "host key (the node's name) → what is special about it",
            "additionalProperties": {"anyOf": [one_host, {"type": "null"}]},
        },
    }
    top = _object(
        {
            "defaults": _object({**machine, **sections}),
            "groups": {"type": "object", "additionalProperties": _object({**group, **machine, **sections})},
        }
    )
    return {"$schema": _DRAFT, "title": "winboot inventory", **_nullable({**top, "$defs": definitions})}


def _object(properties: Mapping[str, Any]) -> Json:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _nullable(schema: Any) -> Any:
    """The schema with null allowed for every key: it means that the key is absent."""
    if isinstance(schema, list):
        return [_nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _nullable(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        changed["properties"] = {key: _or_null(value) for key, value in changed["properties"].items()}
    return changed


def _or_null(schema: Json) -> Json:
    alternatives = schema.get("anyOf", [])
    if {"type": "null"} in alternatives:
        return schema
    kept: Json = {key: schema[key] for key in ("description", "default", "title") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in kept}
    return {
        "anyOf": [*alternatives, {"type": "null"}] if set(rest) == {"anyOf"} else [rest, {"type": "null"}],
        **kept,
    }
