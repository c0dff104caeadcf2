"""`winboot preflight`: are cluster and machines ready for a join, and may we do what a join does?"""

from __future__ import annotations

from dataclasses import replace

import typer

from winboot.cli.options import Checked, Machines, View, expanded


@expanded()
def preflight(machines: Machines, checked: Checked, view: View) -> None:
    """Check cluster and machines and change nothing: each finding has an id, a reason and a fix. Exits with 1 on an
    error."""
    from winboot.cli.local_checks import able
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.join import check_both_sides

    reporting = Reporting(view.report, view.output)
    fleet = load_fleet(machines.inventory, machines.chosen, trust=machines.trust)
    specs = fleet.specs
    options = checked.options()
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        specs, unable = able(specs, context)
        result = check_both_sides(specs, context, tuned(options))
        result = replace(result, nodes=(*result.nodes, *unable))
    raise typer.Exit(reporting.end(result, context.stop))
