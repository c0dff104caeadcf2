"""`winboot schema`: the JSON Schemas of what winboot reads and writes, for editors and programs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from winboot.base.errors import UsageError

# Beside the files that `init` writes; their first line names it (github.com/redhat-developer/yaml-language-server,
# "Using inlined schema").
FOLDER: Final = ".winboot"


class Which(StrEnum):
    """Of what there is a schema."""

    profile = "profile"
    inventory = "inventory"
    lines = "lines"
    plan = "plan"


def schema(
    which: Annotated[Which, typer.Argument(help="The schema: profiles, inventories, JSON lines or plans.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to this file.")] = None,
) -> None:
    """Print a JSON Schema of this version of winboot."""
    text = _text(which)
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}", hint="Give a file that you can write.") from error


def write_beside(folder: Path) -> None:
    """The schemas of profiles and inventories in `.winboot` of a folder. Raises OSError."""
    (folder / FOLDER).mkdir(exist_ok=True)
    for which in (Which.profile, Which.inventory):
        (folder / FOLDER / f"{which.value}.json").write_text(_text(which) + "\n", encoding="utf-8")


def remark(which: Which) -> str:
    """The line by which an editor finds the schema."""
    return f"# yaml-language-server: $schema={FOLDER}/{which.value}.json"


def _text(which: Which) -> str:
    from winboot.config.schema import inventory_schema, profile_schema
    from winboot.report.plan_file import plan_schema
    from winboot.report.schema import lines_schema

    made: dict[Which, Any] = {
        Which.profile: profile_schema,
        Which.inventory: inventory_schema,
        Which.lines: lines_schema,
        Which.plan: plan_schema,
    }
    return json.dumps(made[which](), indent=1, ensure_ascii=False)
