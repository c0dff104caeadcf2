"""`winboot join` and `winboot repair`: make the nodes what the profile says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from winboot.base import exits
from winboot.base.errors import UsageError, WinbootError
from winboot.cli.options import Changed, DryRun, Machines, Output, View, Yes, expanded
from winboot.cli.pace import Pacing

if TYPE_CHECKING:
    from winboot.cli.output import Reporting
    from winboot.cli.targets import Fleet
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options, RunContext
    from winboot.report.flows import FlowReport
    from winboot.report.results import NodeReport, Report


class Depth(StrEnum):
    """How deep a repair goes."""

    in_place = "in-place"
    reimage = "reimage"
    another = "replace"


@expanded()
def join(
    machines: Machines,
    change: Changed,
    pacing: Pacing,
    view: View,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Make every machine of the inventory a Ready node. It repairs an existing node, and does not change a right one."""
    options = change.options(budget=pacing.budget())
    run_nodes("join", machines, change, options, view, yes=yes, dry_run=dry_run)


@expanded()
def repair(
    machines: Machines,
    change: Changed,
    pacing: Pacing,
    view: View,
    by: Annotated[
        Depth, typer.Option("--by", help="in-place; reimage: a fresh disk; replace: a new machine.")
    ] = Depth.in_place,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask, not even before the cloud reimages or replaces machines."),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """The same as join, but only for machines that are already nodes of the cluster."""
    from winboot.cli.approval import at_terminal

    options = change.options(budget=pacing.budget())
    if by is Depth.in_place:
        run_nodes("repair", machines, change, options, view, yes=yes, dry_run=dry_run)
        return
    if change.plan is not None:
        raise UsageError("--plan and --by do not go together", hint="A plan is of the machines as they are.")
    if not (yes or dry_run or at_terminal()):
        raise UsageError(
            f"--by {by.value} deletes all data on the machines, but there is no terminal for a confirmation",
            hint="Run the command at a terminal, where winboot first shows the machines, or repeat it with --yes.",
        )
    _recover(machines, by, yes=yes, dry_run=dry_run, drain_timeout=options.drain_timeout)
    if by is Depth.reimage:
        # What its files name was agreed to a moment ago; what is in them since then is not.
        run_nodes("join", replace(machines, trust=False), change, options, view, yes=True, dry_run=False)


def run_nodes(
    command: str,
    machines: Machines,
    change: Changed,
    options: Options,
    view: View,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """`winboot join` or `winboot repair` of these machines; ends the command with its exit code."""
    from winboot.cli.approval import approved_plan, at_terminal, gone, with_plan
    from winboot.cli.failure import explain_error
    from winboot.cli.local_checks import able
    from winboot.cli.output import Reporting, progress
    from winboot.cli.targets import load_fleet, run_context
    from winboot.operations.join import join as join_nodes
    from winboot.operations.join.story import refuse_without_ca

    if dry_run and change.plan is not None:
        raise UsageError(
            "--plan and --dry-run do not go together", hint="`winboot show FILE` shows the plan."
        )
    left: tuple[NodeReport, ...] = ()
    approved = None if change.plan is None else approved_plan(change.plan, trust=machines.trust)
    if approved is not None:
        options = with_plan(options, approved)
    reporting = Reporting(view.report, view.output, passed=view.verbose)
    limit = machines.chosen
    fleet = load_fleet(machines.inventory, limit, pinned=True, trust=machines.trust, may_ask=not yes)
    specs = fleet.specs
    if dry_run:
        preview(command, specs, fleet, options, view, reporting)
    if approved is not None:
        left = () if limit else gone(approved, specs)
        specs = [spec for spec in specs if spec.node.name in approved.nodes]
    elif at_terminal() and not yes:
        options, left = asked(command, specs, fleet, options, view, reporting)
        kept = {node.node for node in left}
        specs = [spec for spec in specs if spec.node.name not in kept]
    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        reporting.kept() as keep,
        run_context(specs, listener, keep, fleet=fleet) as (context, tuned),
    ):
        refuse_without_ca(specs)
        specs, unable = able(specs, context)
        if change.processes > 1:
            from winboot.cli.processes import join_by_processes

            result = join_by_processes(change.processes, specs, context, tuned(options), command=command)
        else:
            result = join_nodes(specs, context, tuned(options), command=command)
        result = replace(result, nodes=(*result.nodes, *unable, *left))
        unrouted = _forward(
            machines.inventory, specs, context, {one.node for one in result.nodes if one.ready}
        )
        flows, untried = _verified(result, specs, context) if change.verify else (None, None)
    code = reporting.end(result, context.stop, flows=flows)
    if result.exit_code:
        typer.echo(f"journal: {context.journals / context.run} (`winboot log {context.run}`)", err=True)
    for error in (unrouted, untried):
        if error is not None:
            explain_error(error)
            code = exits.foremost((code, error.exit_code))
    raise typer.Exit(code)


def _verified(
    result: Report, specs: Sequence[NodeSpec], context: RunContext
) -> tuple[FlowReport | None, WinbootError | None]:
    """The flows of the nodes that were changed. What kept them from being tried is returned, for after the report: the nodes
    are done."""
    from winboot.operations.verify import verify_changed

    try:
        flows = verify_changed(result, specs, context)
    except WinbootError as error:
        return None, error
    if flows is None:
        typer.echo("verify: no node that this run changed is Ready, so winboot tried no flow", err=True)
    return flows, None


def preview(
    command: str,
    specs: Sequence[NodeSpec],
    fleet: Fleet,
    options: Options,
    view: View,
    reporting: Reporting,
) -> NoReturn:
    """Look at all nodes, show what would be done, and end the command: 2 where something differs."""
    found, context = _surveyed(command, specs, fleet, options, view)
    raise typer.Exit(reporting.end(found, context.stop, differences=True))


def asked(
    command: str,
    specs: Sequence[NodeSpec],
    fleet: Fleet,
    options: Options,
    view: View,
    reporting: Reporting,
) -> tuple[Options, tuple[NodeReport, ...]]:
    """Look at all nodes, show what would be done and ask. What was shown becomes what is approved; nodes that the look did
    not reach come with it, as they are reported. `fleet` is what the specs are of.

    Ends the command where nothing differs, or nothing could be looked at. Raises Declined where the answer is no.
    """
    from winboot.cli.approval import ask, selection_of
    from winboot.report.plan_file import plan_of

    found, context = _surveyed(command, specs, fleet, options, view)
    lost = tuple(node for node in found.nodes if node.failure is not None)
    nothing = all(node.outcome == "ok" for node in found.nodes if node.failure is None)
    if context.stop.requested or nothing:
        raise typer.Exit(reporting.end(found, context.stop))
    ask(found, view.output, fleet.demands)
    return replace(options, approved=plan_of(found, selection_of(options), context.holder)), lost


def _surveyed(
    command: str, specs: Sequence[NodeSpec], fleet: Fleet, options: Options, view: View
) -> tuple[Report, RunContext]:
    """What a look at all nodes finds, those included that this side cannot work on."""
    from winboot.cli.local_checks import able
    from winboot.cli.output import progress
    from winboot.cli.targets import run_context
    from winboot.operations.join import survey
    from winboot.operations.join.story import refuse_without_ca

    with (
        progress(view, [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener, fleet=fleet) as (context, tuned),
    ):
        refuse_without_ca(specs)
        able_specs, unable = able(specs, context)
        found = survey(able_specs, context, tuned(options), command=command)
    return replace(found, nodes=(*found.nodes, *unable)), context


def _forward(
    inventory: Path, specs: Sequence[NodeSpec], context: RunContext, ready: set[str]
) -> WinbootError | None:
    """`routes` of a cloud inventory: the cloud's network carries the packets of the pods of each node that is Ready.

    What went wrong is returned, for after the report: the nodes are done.
    """
    from winboot.config.inventory.cloud_name import provider_of

    if provider_of(inventory) is None:
        return None
    try:
        _route(inventory, specs, context, ready)
    except WinbootError as error:
        return error
    return None


def _route(inventory: Path, specs: Sequence[NodeSpec], context: RunContext, ready: set[str]) -> None:
    from winboot.node import cloud_routes
    from winboot.remote.cloud.pool import Pool

    pool = Pool.read(inventory)
    chosen = {
        spec.machine.provider_id: spec
        for spec in specs
        if spec.node.name in ready and cloud_routes.may_write(spec.network.solution, pool.file)
    }
    for host, identity in pool.asked() if chosen else ():
        spec = chosen.get(identity.provider_id)
        cluster = context.cluster(spec) if spec is not None else None
        if spec is not None and cluster is not None:
            for said in cloud_routes.settle(pool.provider, host, spec, cluster, pool.file):
                context.listener.say(spec.node.name, said)


def _recover(machines: Machines, by: Depth, *, yes: bool, dry_run: bool, drain_timeout: float) -> None:
    """Show the plan, ask, and have the cloud do it, one machine after the other: the first that fails stops the rest.

    Raises Declined where a person says no.
    """
    from winboot.cli.approval import confirm
    from winboot.cli.output import progress
    from winboot.cli.targets import load_targets, open_transport, run_context
    from winboot.operations.recovery import Means, planned, recover
    from winboot.remote.cloud.lookup import machine_of

    def answers(spec: NodeSpec) -> None:
        with open_transport(spec) as transport:
            transport.probe()

    limit = machines.chosen
    specs = load_targets(machines.inventory, limit, trust=machines.trust, may_ask=not yes)
    with (
        progress(View(Output.table), [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener) as (context, _),
    ):
        depth: Literal["reimage", "replace"] = "reimage" if by is Depth.reimage else "replace"
        found = planned(specs, depth, machine_of, context.cluster)
        for one in found:
            typer.echo(f"{one.name}: " + "; ".join(one.steps), err=True)
        if dry_run:
            raise typer.Exit(exits.NOT_DONE if found else exits.DONE)
        if not yes:
            confirm(f"{by.value} {len(found)} machine{'s' if len(found) != 1 else ''}?")
        for one in found:
            means = Means(context.cluster(one.spec), answers, context.stop.wait, listener.say, drain_timeout)
            recover(one, means)
