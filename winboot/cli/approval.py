"""What was approved: a plan from a file, or a yes at the terminal to what all looks found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from winboot.base.errors import Declined, Interrupted, InvalidInput, UsageError
from winboot.base.limits import LARGEST_PLAN
from winboot.cli.colour import tell

if TYPE_CHECKING:
    from winboot.cli.options import Output
    from winboot.config.demands import Demand
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.join import Options
    from winboot.report.plan_file import PlanFile, Selection
    from winboot.report.results import NodeReport, Report


def load_plan(file: Path) -> PlanFile:
    """The plan in a file. Raises InvalidInput where it cannot be read, is damaged, or is another winboot's."""
    from winboot.report.plan_file import read_plan

    if file.exists() and not file.is_file():
        raise InvalidInput(f"{file}: no file", hint="Give a file of `winboot plan --out FILE`.")
    try:
        with file.open(encoding="utf-8") as source:
            text = source.read(LARGEST_PLAN + 1) if file.stat().st_size <= LARGEST_PLAN else None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{file}: no plan: it is not UTF-8", hint="Give a file of `winboot plan --out FILE`."
        ) from error
    except OSError as error:
        raise InvalidInput(
            f"{file}: the plan cannot be read: {error.strerror}",
            hint="Give a file of `winboot plan --out FILE`.",
        ) from error
    if text is None or len(text) > LARGEST_PLAN:
        raise InvalidInput(f"{file}: larger than any plan", hint="Give a file of `winboot plan --out FILE`.")
    return read_plan(text, str(file))


def approved_plan(file: Path, *, trust: bool) -> PlanFile:
    """The plan in a file that is to be run: an approval, and so no file that others may write, but with `trust`. Raises
    InvalidInput."""
    from winboot.base.private import others_say

    try:
        whose = "" if trust else others_say(file)
    except OSError as error:
        whose = f"the owner of {file} cannot be read ({error.strerror})"
    if whose:
        raise InvalidInput(
            f"{whose}: this user could approve changes in your place",
            hint="Review it with `winboot show FILE`. Then make the file your own, or add --trust.",
        )
    return load_plan(file)


def save_plan(plan: PlanFile, file: Path) -> None:
    """Write a plan, 0600. Raises UsageError where that is not possible."""
    from winboot.base.private import replace_privately

    try:
        replace_privately(file, plan.text())
    except OSError as error:
        raise UsageError(
            f"--out {file} cannot be written: {error.strerror}", hint="Give another file."
        ) from error


def selection_of(options: Options) -> Selection:
    """What of the options decides what a look finds."""
    from winboot.report.plan_file import Selection

    return Selection(options.only, options.skip, options.adopt)


def with_plan(options: Options, plan: PlanFile) -> Options:
    """The options of a join that runs a plan; UsageError where the command line chooses steps itself."""
    chosen = plan.selection
    for flag, given, planned in (
        ("--only", options.only, chosen.only),
        ("--skip", options.skip, chosen.skip),
        ("--adopt", options.adopt, chosen.adopt),
    ):
        if given and given != planned:
            raise UsageError(
                f"{flag} and --plan do not go together: the plan already has the steps",
                hint=f"Leave {flag} out, or make another plan with {flag}.",
            )
    return replace(options, only=chosen.only, skip=chosen.skip, adopt=chosen.adopt, approved=plan)


def gone(plan: PlanFile, specs: Sequence[NodeSpec]) -> tuple[NodeReport, ...]:
    """The nodes of the plan that the inventory does not have any more, as reports of nodes that were left alone."""
    from winboot.base.errors import OtherThanPlanned
    from winboot.report.results import Failure, NodeReport

    here = {spec.node.name for spec in specs}
    return tuple(
        NodeReport(
            name,
            "",
            "",
            failure=Failure.of(
                OtherThanPlanned(
                    f"{name}: the inventory no longer has this node",
                    hint="`winboot plan --out FILE` makes a new plan.",
                )
            ),
        )
        for name in plan.nodes
        if name not in here
    )


def at_terminal() -> bool:
    """Whether a person can answer: the question goes to standard error, the answer comes from standard input."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(found: Report, form: Output, wanted: Sequence[Demand] = (), verb: str = "Change") -> None:
    """Show what all looks found, with its totals and what the files have this computer run and read, and ask once. Declined
    where the answer is no; no session is open."""
    from winboot.cli.options import Output
    from winboot.cli.output import console
    from winboot.report.table import print_report

    print_report(found, console(stderr=form is not Output.table), differences=True)
    nodes = sum(node.outcome not in ("ok", "failed", "skipped") for node in found.nodes)
    if wanted:
        head = (
            "Because of these lines in your files, winboot runs programs or reads files and variables here:"
        )
        tell("\n  ".join((head, *map(str, wanted))), err=True)
    confirm(f"{verb} {nodes} node{'s' if nodes != 1 else ''}?")


def confirm(question: str) -> None:
    """Ask a person, on standard error; Declined where the answer is no, Interrupted at Ctrl-C."""
    typer.echo(f"{question} [y/N]: ", nl=False, err=True)
    try:
        # Not typer.confirm: it writes a blank to standard output, which belongs to the report.
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        typer.echo("", err=True)
        raise Interrupted("winboot changed nothing", hint="The same command checks and asks again.") from None
    if answer.strip().lower() not in ("y", "yes"):
        raise Declined("winboot changed nothing", hint="The same command checks and asks again.")
