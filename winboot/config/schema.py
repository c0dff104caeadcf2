"""What profiles and inventories may say, published: JSON Schemas for editors, and pages for people.

`python -m winboot.config.schema` writes docs/schemas/*.json, docs/profile.md and docs/inventory.md; a test holds
them current.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from winboot.config.inventory import SECTIONS, Connection, HostKeys
from winboot.config.model import Model, model_at
from winboot.config.profile import Profile
from winboot.config.profile import Reference as SecretReference
from winboot.report.plan_file import plan_schema
from winboot.report.shape import lines_page, lines_schema

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


def profile_page() -> str:
    """docs/profile.md: every key with its type, its default and what it does."""
    lines = [
        "# Profile",
        "",
        "What every node of a pool should be. Every key with its default; a key set to null is as good as absent.",
        "This page is made from the models in `winboot/config/profile/sections.py` (`python -m winboot.config.schema`).",
        "",
        *_table(Profile, ""),
    ]
    for name, info in Profile.model_fields.items():
        section = model_at(Profile, (name,))
        if section is not None:
            lines += ["", f"## {name}", "", f"{_sentence(info)}", "", *_table(section, f"{name}.")]
    lines += [
        "",
        "## Secrets",
        "",
        "Wherever a secret is needed, the file has a reference to it, one of",
        "",
        *_table(SecretReference, ""),
    ]
    return "\n".join(lines) + "\n"


def inventory_page() -> str:
    """docs/inventory.md: what an inventory may say."""
    return "\n".join(
        [
            "# Inventory",
            "",
            "Which machines there are, how to reach them, and which profile each gets.",
            "This page is made from the models in `winboot/config/inventory/` (`python -m winboot.config.schema`).",
            "",
            "    defaults:   connection, os, and any section of a profile",
            "    groups:",
            "      <group>:  profile, members, connection, os, and any section of a profile",
            "        hosts:",
            "          <node name>:  the keys below, and any section of a profile",
            "",
            "Merge order: profile < defaults < groups in file order < host. Maps merge, lists replace, null removes.",
            "The host key is the name of the Node: lower case, as in a host name. A host belongs under `hosts` of one",
            "group; other groups that name it in `members` add their settings. A group names its profile.",
            "",
            "## A host",
            "",
            *_table(HostKeys, ""),
            "",
            "## connection",
            "",
            *_table(Connection, "connection."),
            "",
        ]
    )


def write(docs: Path) -> None:
    """Bring the published files under `docs` up to date."""
    (docs / "schemas").mkdir(parents=True, exist_ok=True)
    for path, text in published().items():
        (docs / path).write_text(text, encoding="utf-8", newline="\n")


def published() -> dict[str, str]:
    """Path below docs → text, of all that this module publishes."""
    return {
        "schemas/profile.json": _json(profile_schema()),
        "schemas/inventory.json": _json(inventory_schema()),
        "schemas/plan.json": _json(plan_schema()),
        "schemas/lines.json": _json(lines_schema()),
        "profile.md": profile_page(),
        "inventory.md": inventory_page(),
        "json.md": lines_page(),
    }


def _json(schema: Json) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


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


def _table(model: type[Model], prefix: str) -> Iterator[str]:
    yield "| key | default | what |"
    yield "| --- | --- | --- |"
    yield from _rows(model, prefix)


def _rows(model: type[Model], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        default = (
            "**needed**" if info.is_required() else _default(info.get_default(call_default_factory=True))
        )
        yield f"| `{prefix}{name}` | {default} | {_cell(info.description or '')} |"
        below = model_at(model, (name,))
        if below is not None and below is not SecretReference and prefix:
            inner = f"{prefix}{name}[]." if name == "steps" else f"{prefix}{name}."
            yield from _rows(below, inner if _is_one(info) else f"{prefix}{name}.<host>.")


def _is_one(info: FieldInfo) -> bool:
    """Is the field one model, rather than a map of them?"""
    return "dict" not in str(info.annotation)


def _default(value: Any) -> str:
    if value is None or (isinstance(value, BaseModel)):
        return ""
    if value in ((), {}, ""):
        return ""
    text = json.dumps(value) if isinstance(value, bool | int | tuple) else str(value)
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _sentence(info: FieldInfo) -> str:
    text = info.description or ""
    return text[:1].upper() + text[1:] + "."


if __name__ == "__main__":
    write(Path(__file__).parents[2] / "docs")
