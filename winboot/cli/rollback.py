"""`winboot rollback`: nodes go back to the versions that they had before, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.cli import completion
from winboot.cli.options import DryRun, Machines, View, Yes, expanded, says_something
from winboot.cli.pace import Pacing
from winboot.cli.upgrade import Versions, bring

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options, RunContext
    from winboot.report.results import Report


@expanded(without=("nodes", "limit", "max_failed"))
def rollback(
    node: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE",
            callback=says_something,
            autocompletion=completion.hosts,
            help="Which nodes; as for --limit of other commands.",
        ),
    ],
    machines: Machines,
    versions: Versions,
    pacing: Pacing,
    view: View,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Take nodes back to the versions they had before: drained, changed, proved, and open for pods again; one after the other.

    The node stays there: `plan` names the difference, `join` and `repair` leave its versions alone (exit code 2), until the
    profile wants the same or `winboot upgrade` runs.
    """
    from winboot.operations.rollback import rollback as roll_back

    def work(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
        return roll_back(specs, context, options, flows=versions.verify)

    options = versions.options("back", pacing.budget())
    bring("rollback", replace(machines, limit=node), options, view, work, yes=yes, dry_run=dry_run)
