"""The contracts: what a real program does, row by row, each with the place that shows it.

`lab/contracts/<program>.yaml` is a list of rows. A program's own test compares the stand-in with each row; it has one
comparison for each row's `id` or `kind`. A row with `differs` is not compared: its sentence says why it cannot matter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

FOLDER: Final = Path(__file__).parents[2] / "contracts"
Text = Annotated[str, Field(min_length=3)]
Tag = Annotated[str, Field(pattern=r"\d")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Upstream(_Part):
    """A place in the program's source: repository (owner/name), tag, file, and an identifier or text in it."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    tag: Tag
    path: Text
    quote: Text


class Recorded(_Part):
    """A line that the real program wrote: a key of `recordings/<program>.yaml`, and a part of one of its lines."""

    recording: Text
    quote: Text


class Row(_Part):
    """One fact about a program: what it does (`expect`) `when` something is so."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    kind: Literal["request", "file", "exit", "limit", "message"]
    when: Any
    expect: Any = None
    source: Upstream | Recorded
    differs: Annotated[str, Field(min_length=20)] | None = None


def read(program: str) -> list[Row]:
    """All rows of a program; pydantic's ValidationError for a row that is no fact, such as one without a source."""
    text = (FOLDER / f"{program}.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[Row]).validate_python(yaml.safe_load(text))


def recordings(program: str) -> dict[str, list[str]]:
    """The copied lines of a program's recordings, by the recording's name."""
    path = FOLDER / "recordings" / f"{program}.yaml"
    if not path.exists():
        return {}
    return TypeAdapter(dict[str, list[str]]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))


def compared(program: str) -> list[Row]:
    """The rows that a stand-in has to follow, for parametrize."""
    return [row for row in read(program) if row.differs is None]
