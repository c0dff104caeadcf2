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
            help="The nodes, by the patterns of --limit.",
        ),
    ],
    machines: Machines,
    versions: Versions,
    pacing: Pacing,
    view: View,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Take nodes back to their previous versions, one after the other: drain, change, probe, uncordon.

    The node keeps these versions: `plan` names the difference, and `join` and `repair` do not change them (exit code 2), until
    you set them in the profile or run `winboot upgrade`.
    """
    from winboot.operations.rollback import rollback as roll_back

    def work(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
        return roll_back(specs, context, options, flows=versions.verify)

    options = versions.options("back", pacing.budget())
    bring("rollback", replace(machines, limit=node), options, view, work, yes=yes, dry_run=dry_run)
