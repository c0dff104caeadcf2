"""`winboot upgrade`: the versions of the profile for nodes that exist, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.cli.options import (
    DEFAULT_INVENTORY,
    InventoryFile,
    Limit,
    LogFile,
    Output,
    OutputForm,
    ReportFile,
    SkipPreflight,
    TakeOver,
    Trust,
    Verbose,
    View,
    Yes,
    words,
)
from winboot.cli.pace import Canary, Deadline, MaxFailed, MaxUnavailable, budget_of

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options, RunContext
    from winboot.report.results import Report

DrainTimeout = Annotated[
    float, typer.Option("--drain-timeout", min=0, help="Seconds that the pods of a node may take to go.")
]
Grace = Annotated[
    int | None,
    typer.Option("--grace", min=0, help="Seconds that each pod has to end, in the place of its own."),
]
DeleteEmptydirData = Annotated[
    bool, typer.Option("--delete-emptydir-data", help="Evict pods whose emptyDir volumes are lost, too.")
]
Force = Annotated[bool, typer.Option("--force", help="Evict pods that nothing makes again, too.")]
VerifyFlows = Annotated[
    bool,
    typer.Option("--verify", help="Try each node's flows, too, before its pods come back (docs/verify.md)."),
]


def upgrade(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    yes: Yes = False,
    drain_timeout: DrainTimeout = 600.0,
    grace: Grace = None,
    delete_emptydir_data: DeleteEmptydirData = False,
    force: Force = False,
    verify: VerifyFlows = False,
    take_over: TakeOver = False,
    skip_preflight: SkipPreflight = None,
    trust: Trust = False,
    output: OutputForm = Output.table,
    report: ReportFile = None,
    canary: Canary = None,
    max_unavailable: MaxUnavailable = None,
    max_failed: MaxFailed = None,
    deadline: Deadline = None,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Give each node the versions of its profile: drained, changed, proved, and open for pods again; one after the other.

    Unlike `join --drain` it refuses a wrong order (the API server first, one minor at a time), asks each node whether it
    works before pods may come back, and stops at the first node that fails (or after those that --max-failed bears). With
    --max-unavailable as many nodes go at a time.
    """
    from winboot.operations.join import Options
    from winboot.operations.upgrade import refuse_wrong_order
    from winboot.operations.upgrade import upgrade as upgrade_nodes
    from winboot.remote.cluster.base import DrainRules

    options = Options(
        drain=True,
        drain_timeout=drain_timeout,
        drain_rules=DrainRules(grace=grace, emptydir=delete_emptydir_data, unmanaged=force),
        take_over=take_over,
        skip_preflight=words(skip_preflight),
        versions="released",
        budget=budget_of(
            canary=canary,
            max_unavailable=max_unavailable,
            max_failed=max_failed,
            deadline=deadline,
        ),
    )

    def work(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
        return upgrade_nodes(specs, context, options, flows=verify)

    bring(
        "upgrade",
        inventory,
        words(limit),
        options,
        View(output, verbose, log_file),
        report,
        work,
        yes=yes,
        trust=trust,
        first=lambda specs, context: refuse_wrong_order(specs, context.cluster),
    )


def bring(
    command: str,
    inventory: Path,
    limit: tuple[str, ...],
    options: Options,
    view: View,
    report: Path | None,
    work: Callable[[Sequence[NodeSpec], RunContext, Options], Report],
    *,
    yes: bool,
    trust: bool,
    first: Callable[[Sequence[NodeSpec], RunContext], None] = lambda specs, context: None,
) -> None:
    """Bring other versions to nodes: ask at a terminal, `work`, report, and exit. `first` may refuse before any contact with a
    machine."""
    from winboot.cli.approval import at_terminal
    from winboot.cli.join import asked
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.report.results import NodeReport

    left: tuple[NodeReport, ...] = ()
    reporting = Reporting(report, view.output)
    fleet = load_fleet(inventory, limit, pinned=command == "upgrade", trust=trust, may_ask=not yes)
    specs = fleet.specs
    with (
        progress(view, []) as listener,
        run_context(specs, listener) as (context, _),
    ):
        first(specs, context)
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
