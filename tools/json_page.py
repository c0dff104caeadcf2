"""docs/json.md: each kind of JSON line with its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from winboot.report.shape import ANSWERS, DEFINITIONS, JOURNAL, SHA, VERSION, Json, Kind

_HEAD: Final = """# JSON

With `-o json` a command writes one JSON object a line to standard output. `--report FILE.json` and the journals of a run
have the same shape: each object has `version` (this page is about {version}) and `kind`, and the keys of its kind below. The
schema is printed by `winboot schema lines`; a test holds every command to it.

Within a version kinds and keys may be added. None goes, is renamed or changes its type: read what you know, and leave the
rest. A plan (`winboot plan --out FILE`) is one object with `kind` and `version` of its own, `winboot schema plan`.

Questions, progress, warnings and errors of usage go to standard error as text, never between the lines. Times have their
unit in the name or in the table. No line holds a secret.

Not of this shape, because other programs define it: `inventory --list` (Ansible), `cloud policy` (AWS, Azure), `--report
FILE.xml` and `-o junit` (JUnit), and the log of `hook serve` (`time`, `message`, and what it is about).

This page is made from `winboot/report/shape.py` (`make golden`).
"""


def lines_page() -> str:
    """docs/json.md: each kind of line with its keys."""
    return "\n".join(
        [
            _HEAD.format(version=VERSION),
            "## Answers of commands, and reports",
            *(line for kind in ANSWERS for line in _section(kind)),
            "",
            "## The journal of a node",
            "",
            "`$WINBOOT_STATE/runs/RUN/NODE.jsonl`, a line for each thing in the order in which it happened.",
            *(line for kind in JOURNAL for line in _section(kind)),
            "",
            "## Parts of them",
            *(line for name, schema in DEFINITIONS.items() for line in _part(name, schema)),
            "",
        ]
    )


def _section(kind: Kind) -> Iterator[str]:
    yield from ("", f"### `{kind.name}`", "", f"{kind.where}: {kind.says}.", "")
    yield from ("| key | type | says |", "| --- | --- | --- |")
    for key, (schema, says) in kind.keys.items():
        yield f"| `{key}` | {_type(schema)} | {says} |"
    for key, (schema, says) in (kind.optional or {}).items():
        yield f"| `{key}` | {_type(schema)}, optional | {says} |"


def _part(name: str, schema: Json) -> Iterator[str]:
    yield from ("", f"### {name}", "", "| key | type |", "| --- | --- |")
    for key, value in schema["properties"].items():
        yield f"| `{key}` | {_type(value)}{'' if key in schema['required'] else ', optional'} |"


def _type(schema: Json) -> str:
    """A schema in words."""
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "pattern" in schema:
        return "64 hex digits" + ("" if schema["pattern"] == SHA["pattern"] else " or empty")
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])
