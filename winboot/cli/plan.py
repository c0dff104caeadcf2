"""`winboot plan`: what is, what is wanted, and what it would cost, for every node and step."""

from __future__ import annotations

import typer

from winboot.cli.options import (
    DEFAULT_INVENTORY,
    Adopt,
    InventoryFile,
    Limit,
    Only,
    Output,
    OutputForm,
    ReportFile,
    Skip,
    SkipPreflight,
    Workers,
    words,
)


def plan(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    only: Only = None,
    skip: Skip = None,
    skip_preflight: SkipPreflight = None,
    adopt: Adopt = False,
    output: OutputForm = Output.table,
    report: ReportFile = None,
    workers: Workers = 32,
) -> None:
    """Look at every node and show the differences; change nothing. Exits 2 when there is something to do."""
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_targets, run_context
    from winboot.operations.join import Options, survey

    reporting = Reporting(report, output)
    specs = load_targets(inventory, words(limit), pinned=True)
    options = Options(
        only=words(only),
        skip=words(skip),
        skip_preflight=words(skip_preflight),
        adopt=adopt,
        workers=workers,
    )
    with (
        progress(output, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep) as (context, tuned),
    ):
        result = survey(specs, context, tuned(options))
    raise typer.Exit(reporting.end(result, context.stop, differences=True))
