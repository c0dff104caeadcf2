"""`winboot doctor`: what is wrong with nodes, why, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winboot.base import exits
from winboot.cli.options import (
    Changed,
    DryRun,
    Lines,
    LinesForm,
    Machines,
    View,
    Workers,
    expanded,
)
from winboot.report.line import json_line
from winboot.report.shape import Diagnosis, DoctorFinding

if TYPE_CHECKING:
    from winboot.config.node_spec import NodeSpec
    from winboot.operations.doctor import Document, Finding, Verdict
    from winboot.operations.doctor.gather import Reading
    from winboot.operations.join import RunContext

_INDENT = "  "


@expanded()
def doctor(
    machines: Machines,
    api_only: Annotated[
        bool, typer.Option("--api-only", help="Query only the cluster; do not log in to the machines.")
    ] = False,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Use facts that --out or `winboot collect` wrote; contact no machine and no cluster.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the facts to this file.")
    ] = None,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile",
            metavar="FILE.prom",
            help="Write the findings for the textfile collector of windows_exporter or node_exporter.",
        ),
    ] = None,
    fix: Annotated[
        str,
        typer.Option("--fix", metavar="RULE", help="Repair the step of this rule if the rule has a finding."),
    ] = "",
    workers: Workers = 8,
    output: LinesForm = Lines.table,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask for confirmation.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Find what is wrong with nodes, name the first cause with its evidence, and the next command. Changes nothing without
    --fix. Exits with 1 if a node has a fault, with 0 if it has warnings at most.
    """
    from winboot.operations.doctor import judge, load, save

    documents = (
        load(from_) if from_ is not None else gathered(machines, workers, _nothing if api_only else _live)
    )
    if from_ is not None and machines.nodes:
        documents = [one for one in documents if one.node in machines.nodes]
    if out is not None:
        write(out, save(documents).decode())
    verdicts = judge(documents)
    if textfile is not None:
        from winboot.operations.doctor.metrics import metrics

        write(textfile, metrics(verdicts))
        # The exporter is another user.
        textfile.chmod(0o644)
    if fix:
        _fix(fix, verdicts, machines, yes=yes, dry_run=dry_run)
    if output is Lines.json:
        sys.stdout.writelines(_lines(verdicts))
    else:
        sys.stdout.writelines(f"{line}\n" for one in verdicts for line in _shown(one))
    raise typer.Exit(exits.foremost(tuple(map(_code, verdicts))))


def gathered(
    machines: Machines, workers: int, reading: Callable[[RunContext, NodeSpec], Reading | None]
) -> list[Document]:
    """The documents of all nodes, in the order of the inventory; `reading` is the way to read a machine."""
    from winboot.cli.output import progress
    from winboot.cli.targets import load_targets, run_context
    from winboot.operations.doctor import gather

    specs = load_targets(machines.inventory, machines.chosen, trust=machines.trust)
    with (
        progress(View(), [spec.node.name for spec in specs]) as listener,
        run_context(specs, listener) as (context, _),
        ThreadPoolExecutor(max_workers=workers) as pool,
    ):

        def one(spec: NodeSpec) -> Document:
            return gather(spec, reading(context, spec), context.cluster(spec))

        return list(pool.map(one, specs))


def _live(context: RunContext, spec: NodeSpec) -> Reading:
    from winboot.operations.doctor import live

    return live(lambda: context.connect(spec))


def _nothing(context: RunContext, spec: NodeSpec) -> None:
    """With --api-only: no machine is read."""


def write(path: Path, content: str | bytes) -> None:
    """Replace the file as a whole: a collector never reads half of it. Raises UsageError if the file cannot be written."""
    from winboot.base.errors import UsageError
    from winboot.base.private import replace_privately

    try:
        replace_privately(path, content)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _code(verdict: Verdict) -> int:
    """1 for a fault or something degraded, and if neither side answered."""
    document = verdict.document
    silent = bool(document.login_problem) or (document.api is None and bool(document.api_problem))
    found = any(one.rule.severity != "warning" for one in verdict.findings)
    return exits.FAILED if found or silent else exits.DONE


def _shown(verdict: Verdict) -> Iterator[str]:
    """The verdict for a person: the first cause, then the others."""
    first = verdict.first
    if first is None:
        yield f"{verdict.node}: " + (
            "healthy" if not verdict.unread else "no rule has a finding, but winboot could not read all facts"
        )
    else:
        yield f"{verdict.node}: {first.rule.title}"
        yield from _about(first, verdict.node)
    for one in verdict.findings:
        if one is not first and not one.cause:
            yield f"{_INDENT}also: {one.rule.title} ({one.rule.id})"
            yield from (_INDENT + line for line in _about(one, verdict.node))
    follows = [f"{one.rule.title} ({one.rule.id})" for one in verdict.findings if one.cause]
    yield from (f"{_INDENT}consequence: {text}" for text in follows)
    yield from (f"{_INDENT}not read: {text}" for text in verdict.unread)


def _about(finding: Finding, node: str) -> Iterator[str]:
    """Evidence, next step and command of a finding."""
    yield from (f"{_INDENT}seen: {text}" for text in finding.evidence)
    yield f"{_INDENT}next: {finding.rule.fix}"
    if command := _command(finding, node):
        yield f"{_INDENT}      {command}"


def _command(finding: Finding, node: str) -> str:
    """The repair of the rule's step; nothing if a person must act."""
    rule = finding.rule
    if not rule.step:
        return ""
    only = "" if rule.step == "*" else f" --only {rule.step}"
    return f"winboot repair --limit {node}{only}{' --drain' if rule.drain else ''}"


def _lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A JSON line for each finding, then one for each node."""
    for verdict in verdicts:
        for one in verdict.findings:
            yield json_line(
                DoctorFinding(
                    node=verdict.node,
                    rule=one.rule.id,
                    severity=one.rule.severity,
                    title=one.rule.title,
                    evidence=one.evidence,
                    cause=one.cause or None,
                    next=one.rule.fix,
                    command=_command(one, verdict.node) or None,
                    source=one.rule.source,
                )
            )
        first = verdict.first
        yield json_line(
            Diagnosis(
                node=verdict.node,
                first=first.rule.id if first is not None else None,
                findings=len(verdict.findings),
                not_read=verdict.unread,
                taken=verdict.document.taken,
            )
        )


def _fix(rule: str, verdicts: Sequence[Verdict], machines: Machines, *, yes: bool, dry_run: bool) -> None:
    """Repair the step of a rule on the nodes where it fired; ends the command. Raises UsageError if no step fixes it."""
    from winboot.base.errors import UsageError
    from winboot.cli.join import run_nodes
    from winboot.operations.doctor.rules import RULES

    found = next((one for one in RULES if one.id == rule), None)
    if found is None or not found.step or found.drain:
        fixable = ", ".join(sorted(one.id for one in RULES if one.step and not one.drain))
        raise UsageError(
            f"--fix {rule}: no step fixes this rule without a drain",
            hint=f"Rules that --fix takes: {fixable}.",
        )
    sick = [one.node for one in verdicts if any(two.rule.id == rule for two in one.findings)]
    if not sick:
        typer.echo(f"{rule}: no node has this finding", err=True)
        return
    change = Changed(only=None if found.step == "*" else [found.step])
    only = replace(machines, nodes=sick, limit=None)
    run_nodes("repair", only, change, change.options(), View(), yes=yes, dry_run=dry_run)
