"""`winboot plan`: what is, what is wanted, and what it would cost, for every node and step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from winboot.cli.options import Looked, Machines, View, expanded


@expanded()
def plan(
    machines: Machines,
    look: Looked,
    view: View,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Also write the plan to this file, for `winboot join --plan FILE`."
        ),
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show every difference and the texts of files in full.")
    ] = False,
) -> None:
    """Look at every node and show the differences; change nothing. Exits with 2 if a node differs."""
    from winboot.cli.approval import save_plan, selection_of
    from winboot.cli.local_checks import able
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.join import survey
    from winboot.operations.join.story import refuse_without_ca
    from winboot.report.plan_file import plan_of

    reporting = Reporting(view.report, view.output)
    fleet = load_fleet(machines.inventory, machines.chosen, pinned=True, trust=machines.trust)
    specs = fleet.specs
    options = look.options()
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        refuse_without_ca(specs)
        specs, unable = able(specs, context)
        result = survey(specs, context, tuned(options))
        result = replace(result, nodes=(*result.nodes, *unable))
    if out is not None and not context.stop.requested:
        save_plan(plan_of(result, selection_of(options), context.holder), out)
    raise typer.Exit(reporting.end(result, context.stop, differences=True, texts=diff))
