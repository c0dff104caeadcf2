"""`winboot verify-report`: whether the hashes in a report are what this winboot renders from the files now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from winboot.base import exits
from winboot.base.errors import InvalidInput
from winboot.cli.options import DEFAULT_INVENTORY, InventoryFile


def verify_report(
    report: Annotated[
        Path, typer.Argument(metavar="REPORT", help="A report from --report FILE.json or -o json.")
    ],
    inventory: InventoryFile = DEFAULT_INVENTORY,
) -> None:
    """Compare a report's digests with the current rendering; contact nothing. Exits with 2 if one differs."""
    from winboot.cli.targets import load_targets
    from winboot.config.node_spec.digest import settings_digest
    from winboot.operations.join import Options, prepare

    told = _nodes(report)
    now = {
        task.spec.node.name: {
            "library": task.script.library.sha256,
            "settings": settings_digest(task.spec),
            "script": task.script.digest,
        }
        for task in prepare(load_targets(inventory, ()), Options())
    }
    code = exits.DONE
    for name, digests in told.items():
        here = now.get(name)
        if here is None:
            said = "the inventory does not have this node"
        else:
            differ = [kind for kind, digest in here.items() if digests.get(kind) != digest]
            said = f"differs: {', '.join(differ)}" if differ else "as rendered now"
        code = code if said == "as rendered now" else exits.NOT_DONE
        typer.echo(f"{name}: {said}")
    raise typer.Exit(code)


def _nodes(report: Path) -> dict[str, dict[str, Any]]:
    """Each node's digests. Raises InvalidInput where the file is not a report in JSON lines, or an older one."""
    try:
        lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        found = {line["node"]: dict(line["digests"]) for line in lines if line["kind"] == "node"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{report}: this is not a report with digests: {error}", hint="Name a file of --report FILE.json."
        ) from error
    if not found:
        raise InvalidInput(f"{report}: the report has no nodes", hint="Name a file of --report FILE.json.")
    return found
