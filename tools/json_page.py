"""docs/json.md: each kind of JSON line with its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from winboot.report.line import VERSION, Line
from winboot.report.schema import ANSWERS, JOURNAL, lines_schema

_HEAD: Final = """# JSON

With `-o json` a command writes one JSON object a line to standard output. `--report FILE.json` and the journals of a run
have the same shape: each object has `version` (this page is about {version}) and `kind`, and the keys of its kind below.
`winboot schema lines` prints the schema; a test checks every command against it.

Within a version we may add kinds and keys. We do not remove or rename any, and change no type: read the keys that you
need, and ignore the rest. A plan (`winboot plan --out FILE`) is one object with `kind` and `version` of its own,
`winboot schema plan`.

Questions, progress, warnings and errors of usage go to standard error as text, never between the lines. Times have their
unit in the name or in the table. No line holds a secret.

Other programs define the shape of these outputs: `inventory --list` (Ansible), `cloud policy` (AWS, Azure),
`--report FILE.xml` and `-o junit` (JUnit). Each line of the log of `hook serve` is one JSON object with `time`, `message` and
keys such as `group` or `problem`.

This page is made from the classes that `winboot/report/schema.py` lists (`make golden`).
"""


def lines_page() -> str:
    """docs/json.md: each kind of line with its keys."""
    parts: dict[str, Any] = lines_schema()["$defs"]
    kinds = {kind.__name__ for kind in (*ANSWERS, *JOURNAL)}
    return "\n".join(
        [
            _HEAD.format(version=VERSION),
            "## Answers of commands, and reports",
            *(line for kind in ANSWERS for line in _section(kind, parts[kind.__name__])),
            "",
            "## The journal of a node",
            "",
            "`$WINBOOT_STATE/runs/RUN/NODE.jsonl`, one line for each event, in order of time.",
            *(line for kind in JOURNAL for line in _section(kind, parts[kind.__name__])),
            "",
            "## Parts of them",
            *(line for name, schema in parts.items() if name not in kinds for line in _part(name, schema)),
            "",
        ]
    )


def _section(kind: type[Line], schema: Mapping[str, Any]) -> Iterator[str]:
    name = schema["properties"]["kind"]["enum"][0]
    yield from ("", f"### `{name}`", "", f"{kind.where}: {kind.__doc__}", "")
    yield from ("| key | type | meaning |", "| --- | --- | --- |")
    for key, value in schema["properties"].items():
        if key not in ("kind", "version"):
            yield f"| `{key}` | {_type(value)}{_optional(key, schema)} | {value['description']} |"


def _part(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"### {name}", "", "| key | type |", "| --- | --- |")
    for key, value in schema["properties"].items():
        yield f"| `{key}` | {_type(value)}{_optional(key, schema)} |"


def _optional(key: str, schema: Mapping[str, Any]) -> str:
    return "" if key in schema["required"] else ", optional"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words."""
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "pattern" in schema:
        return "64 hex digits" + (" or empty" if "?" in schema["pattern"] else "")
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema["type"])
