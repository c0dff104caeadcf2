"""`winboot report`: the report of an earlier run, in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from winboot.cli import completion
from winboot.cli.options import Output, OutputForm


def report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            autocompletion=completion.runs,
            help="The id of a run, its beginning, or `last`.",
        ),
    ],
    output: OutputForm = Output.table,
    file: Annotated[
        Path | None,
        typer.Option("--report", help="Write the report to this file: .html, .json, .jsonl or .xml (JUnit)."),
    ] = None,
) -> None:
    """Show the report of a run again: what it found, changed and could not do; contact nothing."""
    from winboot.cli.output import show
    from winboot.report.archive import Archive
    from winboot.report.file import ReportFile

    archive = Archive()
    found = archive.find(run)
    told = archive.report(found)
    if not found.ended:
        typer.echo(f"{found.run} has not ended: winboot still runs, or was killed", err=True)
    if file is not None:
        ReportFile(file).save(told)
        typer.echo(f"written: {file}", err=True)
        return
    show(told, output, differences=told.command == "plan")
