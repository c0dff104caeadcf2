"""`winboot upgrade`: the versions of the profile for nodes that exist, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from winboot.cli.options import DryRun, Machines, SkipPreflight, TakeOver, View, Yes, expanded, words
from winboot.cli.pace import Pacing

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.node.fleet import Budget
    from winboot.operations.join import Options, RunContext
    from winboot.report.results import Report


@dataclass(frozen=True)
class Versions:
    """How a node is given other versions."""

    drain_timeout: Annotated[
        float, typer.Option("--drain-timeout", min=0, help="Seconds to wait until a node's pods are evicted.")
    ] = 600.0
    grace: Annotated[
        int | None,
        typer.Option("--grace", min=0, help="Seconds for each pod to end, instead of its own grace period."),
    ] = None
    delete_emptydir_data: Annotated[
        bool, typer.Option("--delete-emptydir-data", help="Evict pods whose emptyDir volumes are lost, too.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Also evict pods without a controller.")] = False
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Also try each node's flows before pods return to the node (docs/verify.md)."
        ),
    ] = False
    take_over: TakeOver = False
    skip_preflight: SkipPreflight = None

    def options(self, versions: Literal["released", "back"], budget: Budget) -> Options:
        """The options of a run that goes there."""
        from winboot.operations.join import Options
        from winboot.remote.cluster.base import DrainRules

        return Options(
            drain=True,
            drain_timeout=self.drain_timeout,
            drain_rules=DrainRules(
                grace=self.grace, emptydir=self.delete_emptydir_data, unmanaged=self.force
            ),
            take_over=self.take_over,
            skip_preflight=words(self.skip_preflight),
            versions=versions,
            budget=budget,
        )


@expanded()
def upgrade(
    machines: Machines,
    versions: Versions,
    pacing: Pacing,
    view: View,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Give each node its profile's versions, one after the other: drain, change, probe, uncordon.

    Unlike `join --drain` it refuses a wrong order (the API server first, one minor at a time), and probes each node before
    pods come back. It stops at the first node that fails, or after the number of --max-failed. With --max-unavailable it
    works on that many nodes at a time.
    """
    from winboot.operations.upgrade import refuse_wrong_order
    from winboot.operations.upgrade import upgrade as upgrade_nodes

    def work(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
        return upgrade_nodes(specs, context, options, flows=versions.verify)

    bring(
        "upgrade",
        machines,
        versions.options("released", pacing.budget()),
        view,
        work,
        yes=yes,
        dry_run=dry_run,
        first=lambda specs, context: refuse_wrong_order(specs, context.cluster),
    )


def bring(
    command: str,
    machines: Machines,
    options: Options,
    view: View,
    work: Callable[[Sequence[NodeSpec], RunContext, Options], Report],
    *,
    yes: bool,
    dry_run: bool,
    first: Callable[[Sequence[NodeSpec], RunContext], None] = lambda specs, context: None,
) -> None:
    """Bring other versions to nodes: ask at a terminal, `work`, report, and exit. `first` may refuse before any contact with a
    machine; with `dry_run` the command ends after the look."""
    from winboot.cli.approval import at_terminal
    from winboot.cli.join import asked, preview
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.report.results import NodeReport

    left: tuple[NodeReport, ...] = ()
    reporting = Reporting(view.report, view.output)
    fleet = load_fleet(
        machines.inventory,
        machines.chosen,
        pinned=command == "upgrade",
        trust=machines.trust,
        may_ask=not yes,
    )
    specs = fleet.specs
    with (
        progress(view, []) as listener,
        run_context(specs, listener) as (context, _),
    ):
        first(specs, context)
    if dry_run:
        preview(command, specs, fleet, options, view, reporting)
    if at_terminal() and not yes:
        options, left = asked(command, specs, fleet, options, view, reporting)
        kept = {node.node for node in left}
        specs = [spec for spec in specs if spec.node.name not in kept]
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        result = work(specs, context, tuned(options))
    result = replace(result, nodes=(*result.nodes, *left))
    code = reporting.end(result, context.stop)
    if result.exit_code:
        typer.echo(f"journal: {context.journals / context.run} (`winboot log {context.run}`)", err=True)
    raise typer.Exit(code)
