"""`python -m tools.pages` writes what is made from the code under docs/: pages and the schema of profiles.

A test compares them with the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tools.dialect_page import dialect_page
from tools.doctor_page import doctor_page
from tools.facts_page import facts_page
from tools.facts_script import facts_script
from tools.json_page import lines_page
from tools.problems_page import problems_page
from tools.steps_page import steps_page
from winboot.config.inventory import Connection, HostKeys
from winboot.config.model import Model, model_at
from winboot.config.profile import Profile
from winboot.config.profile import Reference as SecretReference
from winboot.config.schema import Json, profile_schema


def profile_page() -> str:
    """docs/profile.md: every key with its type, its default and what it does."""
    lines = [
        "# Profile",
        "",
        "Every key of a profile with its default. A key set to null is the same as an absent one.",
        "This page is made from the models in `winboot/config/profile/sections.py` (`make golden`).",
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
            "An inventory lists machines, their connections and their profiles.",
            "This page is made from the models in `winboot/config/inventory/` (`make golden`).",
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
    """Bring the published files under `docs` up to date, and the generated part of the scripts."""
    script = docs.parent / "templates" / "powershell" / "_unsourced.ps1"
    script.write_text(facts_script(), encoding="utf-8", newline="\n")
    (docs / "schemas").mkdir(parents=True, exist_ok=True)
    for path, text in published().items():
        (docs / path).write_text(text, encoding="utf-8", newline="\n")


def published() -> dict[str, str]:
    """Path below docs → text, of everything under docs/ that is made from the code."""
    return {
        "schemas/profile.json": _json(profile_schema()),
        "profile.md": profile_page(),
        "inventory.md": inventory_page(),
        "json.md": lines_page(),
        "lab-language.md": dialect_page(),
        "steps.md": steps_page(),
        "problems.md": problems_page(),
        "unsourced.md": facts_page(),
        "doctor.md": doctor_page(),
    }


def _json(schema: Json) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


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
    write(Path(__file__).parents[1] / "docs")
