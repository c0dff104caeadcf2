"""`winboot preflight`: are cluster and machines ready for a join, and may we do what a join does?"""

from __future__ import annotations

from dataclasses import replace

import typer

from winboot.cli.options import (
    DEFAULT_INVENTORY,
    Drain,
    InventoryFile,
    Limit,
    LogFile,
    Output,
    OutputForm,
    ReportFile,
    SkipPreflight,
    Trust,
    Verbose,
    View,
    Workers,
    words,
)


def preflight(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    drain: Drain = False,
    skip_preflight: SkipPreflight = None,
    output: OutputForm = Output.table,
    report: ReportFile = None,
    workers: Workers = 32,
    trust: Trust = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Look at both sides and change nothing: each finding with its id, its reason and its fix. Exits 1 on an error."""
    from winboot.cli.output import Reporting, progress
    from winboot.cli.outset import able
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.join import Options, check_both_sides

    reporting = Reporting(report, output)
    fleet = load_fleet(inventory, words(limit), trust=trust)
    specs = fleet.specs
    options = Options(drain=drain, skip_preflight=words(skip_preflight), workers=workers)
    with (
        progress(View(output, verbose, log_file), [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        specs, unable = able(specs, context)
        result = check_both_sides(specs, context, tuned(options))
        result = replace(result, nodes=(*result.nodes, *unable))
    raise typer.Exit(reporting.end(result, context.stop))
