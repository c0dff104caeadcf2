"""`winboot join` and `winboot repair`: make the nodes what the profile says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from winboot.cli.options import (
    DEFAULT_INVENTORY,
    Adopt,
    Drain,
    InventoryFile,
    Limit,
    Only,
    Output,
    OutputForm,
    ReportFile,
    Skip,
    SkipPreflight,
    TakeOver,
    Workers,
    words,
)

if TYPE_CHECKING:
    from winboot.join import Options, RunContext
    from winboot.spec import NodeSpec


def join(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    only: Only = None,
    skip: Skip = None,
    drain: Drain = False,
    take_over: TakeOver = False,
    adopt: Adopt = False,
    skip_preflight: SkipPreflight = None,
    output: OutputForm = Output.table,
    report: ReportFile = None,
    workers: Workers = 32,
) -> None:
    """Make every machine of the inventory a Ready node. On a node that exists this is repair; on a right one, nothing."""
    from winboot.join import Options

    options = Options(
        only=words(only),
        skip=words(skip),
        drain=drain,
        take_over=take_over,
        adopt=adopt,
        skip_preflight=words(skip_preflight),
        workers=workers,
    )
    _run("join", inventory, words(limit), options, output, report)


def repair(
    inventory: InventoryFile = DEFAULT_INVENTORY,
    limit: Limit = None,
    only: Only = None,
    skip: Skip = None,
    drain: Drain = False,
    take_over: TakeOver = False,
    adopt: Adopt = False,
    skip_preflight: SkipPreflight = None,
    output: OutputForm = Output.table,
    report: ReportFile = None,
    workers: Workers = 32,
) -> None:
    """The same as join, for the machines that are nodes of the cluster already; new ones are left alone."""
    from winboot.join import Options

    options = Options(
        only=words(only),
        skip=words(skip),
        drain=drain,
        take_over=take_over,
        adopt=adopt,
        skip_preflight=words(skip_preflight),
        workers=workers,
    )
    _run("repair", inventory, words(limit), options, output, report)


def _run(
    command: str,
    inventory: Path,
    limit: tuple[str, ...],
    options: Options,
    output: Output,
    report: Path | None,
) -> None:
    from winboot.cli.output import check_report_path, progress, save, save_exit, show
    from winboot.cli.targets import load_targets, run_context
    from winboot.join import join as join_nodes

    check_report_path(report)
    specs = load_targets(inventory, limit)
    with (
        progress(output, [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener) as (context, tuned),
    ):
        chosen = _existing(specs, context) if command == "repair" else specs
        result = join_nodes(chosen, context, tuned(options), command=command)
    show(result, output)
    saved = save(result, report)
    if result.exit_code:
        typer.echo(f"journal: {context.journals / context.run}", err=True)
    raise typer.Exit(context.stop.exit_code if context.stop.requested else save_exit(saved, result.exit_code))


def _existing(specs: Sequence[NodeSpec], context: RunContext) -> list[NodeSpec]:
    """The machines whose Node exists; the others are named, because leaving them out in silence would surprise."""
    found = []
    for spec in specs:
        cluster = context.cluster(spec)
        if cluster is not None and cluster.node(spec.node.name) is not None:
            found.append(spec)
        else:
            context.listener.say(
                spec.node.name, "left alone: the cluster has no Node of this name (join makes one)"
            )
    return found
