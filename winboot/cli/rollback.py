"""`winboot rollback`: nodes go back to the versions that they had before, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.cli import completion
from winboot.cli.options import (
    DEFAULT_INVENTORY,
    InventoryFile,
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
    says_something,
    words,
)
from winboot.cli.pace import Canary, Deadline, MaxUnavailable, budget_of
from winboot.cli.upgrade import DeleteEmptydirData, DrainTimeout, Force, Grace, VerifyFlows, bring

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options, RunContext
    from winboot.report.results import Report


def rollback(
    node: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE...",
            callback=says_something,
            autocompletion=completion.hosts,
            help="Which nodes; as for --limit of other commands.",
        ),
    ],
    inventory: InventoryFile = DEFAULT_INVENTORY,
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
    deadline: Deadline = None,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Take nodes back to the versions they had before: drained, changed, proved, and open for pods again; one after the other.

    The node stays there: `plan` names the difference, `join` and `repair` leave its versions alone (exit code 2), until the
    profile wants the same or `winboot upgrade` runs.
    """
    from winboot.operations.join import Options
    from winboot.operations.rollback import rollback as roll_back
    from winboot.remote.cluster.base import DrainRules

    options = Options(
        drain=True,
        drain_timeout=drain_timeout,
        drain_rules=DrainRules(grace=grace, emptydir=delete_emptydir_data, unmanaged=force),
        take_over=take_over,
        skip_preflight=words(skip_preflight),
        versions="back",
        budget=budget_of(canary=canary, max_unavailable=max_unavailable, deadline=deadline),
    )

    def work(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
        return roll_back(specs, context, options, flows=verify)

    bring(
        "rollback",
        inventory,
        words(node),
        options,
        View(output, verbose, log_file),
        report,
        work,
        yes=yes,
        trust=trust,
    )
