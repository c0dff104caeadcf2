"""`python -m tools.compat_bake OVERLAY.yaml`: write an overlay into the data that winboot ships.

The files keep one entry a line, so that a change of the facts reads well in a diff. Without an overlay the
files are only brought into that form.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from winboot.config import compat
from winboot.config.compat.facts import FILES, load

DATA = Path(compat.__file__).parent / "data"


def bake(overlay: Path | None, folder: Path = DATA) -> None:
    """Lay the overlay over the facts and write them to `folder`."""
    compat = load(overlay)
    for name, sections in FILES.items():
        text = written({section: compat.section(section) for section in sections})
        (folder / f"{name}.json").write_text(text, encoding="utf-8", newline="\n")


def written(sections: Mapping[str, Any]) -> str:
    """JSON with one line for each entry of a section."""
    return "{\n" + ",\n".join(_section(name, body) for name, body in sections.items()) + "\n}\n"


def _section(name: str, body: Any) -> str:
    if isinstance(body, Mapping) and all(isinstance(value, str) for value in body.values()) and len(body) < 8:
        return f" {_json(name)}: {_json(body)}"
    if isinstance(body, Mapping):
        return f" {_json(name)}: {{\n" + ",\n".join(_entries(body)) + "\n }"
    if isinstance(body, Sequence) and not isinstance(body, str):
        return f" {_json(name)}: [\n" + ",\n".join(f"  {_json(item)}" for item in body) + "\n ]"
    return f" {_json(name)}: {_json(body)}"


def _entries(body: Mapping[str, Any]) -> Iterator[str]:
    """An entry on its line; one that is a map of maps has a line for each of these."""
    for key, value in body.items():
        if isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in value.values()):
            inner = ",\n".join(f"   {_json(name)}: {_json(one)}" for name, one in value.items())
            yield f"  {_json(key)}: {{\n{inner}\n  }}"
        else:
            yield f"  {_json(key)}: {_json(value)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    bake(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
