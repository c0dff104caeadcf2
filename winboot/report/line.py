"""The form of a JSON line: an object with `version` and `kind`. Each kind is declared once, as a class below `Line`.

A declaration is the type in the code, the reader, the writer, the schema (`winboot schema lines`) and the page docs/json.md.
Within a version kinds and keys may be added; none goes, is renamed or changes its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 1

Count = Annotated[int, Meta(ge=0)]
Sha = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
# Empty where nothing was rendered.
ShaOrNothing = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]


def says(text: str) -> Meta:
    """What a key means, for the schema and the page."""
    return Meta(description=text)


class Line(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One kind of line. `where` names the commands that write it."""

    where: ClassVar[str]
    version: Literal[1] = VERSION


def json_text(kind: str, data: Mapping[str, Any]) -> str:
    """One line. What JSON has no form for (a date) is written as its text."""
    return json.dumps({"version": VERSION, "kind": kind, **data}, default=str) + "\n"


def json_line(line: Line, instead: Mapping[str, Any] | None = None) -> str:
    """The line of a value, some keys replaced. ASCII, so that it means the same in every encoding of a terminal."""
    return json.dumps({"version": VERSION, **msgspec.to_builtins(line), **(instead or {})}) + "\n"


def schema_of(form: Any, title: str, brief: tuple[type[Struct], ...] = ()) -> dict[str, Any]:
    """The JSON Schema of what winboot writes. It writes every key, but of `brief` classes none that has its default."""
    schema = msgspec.json.schema(form)
    names = {one.__name__ for one in brief}
    for name, one in schema["$defs"].items():
        keys = one.get("properties", {})
        one["required"] = [key for key in keys if name not in names or "default" not in keys[key]]
        one["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
