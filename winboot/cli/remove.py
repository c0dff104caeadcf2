"""`winboot remove`: put machines back as they were before winboot, and take their Nodes out of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.base.errors import UsageError
from winboot.cli.options import DryRun, Machines, TakeOver, View, Yes, expanded
from winboot.cli.pace import Pacing

if TYPE_CHECKING:
    from winboot.cli.output import Reporting
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options
    from winboot.operations.remove import Removal
    from winboot.report.results import NodeReport


@expanded(without=("canary",))
def remove(
    machines: Machines,
    pacing: Pacing,
    view: View,
    yes: Yes = False,
    keep_node: Annotated[
        bool, typer.Option("--keep-node", help="Leave the Node in the cluster, cordoned.")
    ] = False,
    cluster_only: Annotated[
        bool,
        typer.Option("--cluster-only", help="The machine no longer exists: clean up only the cluster."),
    ] = False,
    dry_run: DryRun = False,
    drain_timeout: Annotated[
        float, typer.Option("--drain-timeout", min=0, help="Seconds to wait until a node's pods are evicted.")
    ] = 600.0,
    take_over: TakeOver = False,
) -> None:
    """Drain each node, restore its machine to the state before winboot, and delete its Node, one after the other.

    winboot restores what it recorded before its changes. It lists its own objects without a record, and deletes them if you
    confirm. Other tools' objects stay.
    """
    from winboot.cli.approval import at_terminal
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.join import Options
    from winboot.operations.remove import Removal, survey_removal
    from winboot.operations.remove import remove as remove_nodes

    if keep_node and cluster_only:
        raise UsageError(
            "--keep-node and --cluster-only do not go together", hint="Together they would change nothing."
        )
    if not (dry_run or yes or at_terminal()):
        raise UsageError(
            "remove restores machines and deletes Nodes, but there is no terminal for a confirmation",
            hint="See the changes with --dry-run, then repeat the command with --yes.",
        )
    reporting = Reporting(view.report, view.output)
    fleet = load_fleet(machines.inventory, machines.chosen, trust=machines.trust, may_ask=not yes)
    specs = fleet.specs
    removal = Removal(keep_node=keep_node, cluster_only=cluster_only)
    options = Options(take_over=take_over, drain_timeout=drain_timeout, budget=pacing.budget())
    left: tuple[NodeReport, ...] = ()
    if not dry_run and not yes:
        options, left = _asked(specs, options, removal, view, reporting)
        kept = {node.node for node in left}
        specs = [spec for spec in specs if spec.node.name not in kept]
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        work = survey_removal if dry_run else remove_nodes
        result = work(specs, context, tuned(options), removal)
        result = replace(result, nodes=(*result.nodes, *left))
    code = reporting.end(result, context.stop, differences=dry_run)
    raise typer.Exit(code)


def _asked(
    specs: Sequence[NodeSpec], options: Options, removal: Removal, view: View, reporting: Reporting
) -> tuple[Options, tuple[NodeReport, ...]]:
    """Look at all nodes, show what would go, and ask; what was shown becomes what is approved. Nodes that the look did not
    reach come with it. Ends the command where nothing is left to remove; Declined where the answer is no."""
    from winboot.cli.approval import ask, selection_of
    from winboot.cli.output import progress
    from winboot.cli.targets import run_context
    from winboot.operations.remove import survey_removal
    from winboot.report.plan_file import plan_of

    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener) as (context, tuned),
    ):
        found = survey_removal(specs, context, tuned(options), removal)
    lost = tuple(node for node in found.nodes if node.failure is not None)
    nothing = all(node.outcome == "ok" for node in found.nodes if node.failure is None)
    if context.stop.requested or nothing:
        raise typer.Exit(reporting.end(found, context.stop))
    ask(found, view.output, verb="Remove")
    return replace(options, approved=plan_of(found, selection_of(options), context.holder)), lost
