"""`winboot runs`: what winboot did before, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from winboot.cli.options import Listed, ListedForm

if TYPE_CHECKING:
    from winboot.report.archive import PastRun


def runs(
    most: Annotated[int, typer.Option("--most", "-n", min=1, help="At most this many runs.")] = 20,
    node: Annotated[str, typer.Option("--node", help="Only runs with this node.")] = "",
    output: ListedForm = Listed.table,
) -> None:
    """List earlier runs: `winboot report RUN` and `winboot log RUN` show one of them."""
    from winboot.report.archive import Archive
    from winboot.report.line import json_line

    archive = Archive()
    found = [run for run in archive.runs() if not node or node in run.nodes][:most]
    if output is Listed.table:
        _table(found)
    for run in found:
        if output is Listed.json:
            typer.echo(json_line(run), nl=False)
        elif output is Listed.name:
            typer.echo(run.run)
    if not found:
        typer.echo(f"no runs in {archive.folder}", err=True)


def _table(found: list[PastRun]) -> None:
    from winboot.cli.output import age, columns

    rows = [
        {
            "run": run.run,
            "age": age(run.started),
            "command": run.command,
            "nodes": str(len(run.nodes)),
            "ready": str(run.ready),
            "failed": str(run.failed),
            "changed": str(run.changed),
            "seconds": f"{run.seconds:.0f}" if run.ended else "not ended",
            "code": str(run.exit_code) if run.ended else "-",
        }
        for run in found
    ]
    columns(rows)
