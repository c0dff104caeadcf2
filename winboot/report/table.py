"""The report for people: a table of nodes, and below it whatever needs their attention."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from winboot.report.events import Difference
from winboot.report.finding import Finding
from winboot.report.results import NodeReport, Report, StepReport

_COLOURS = {
    "ok": "green",
    "changed": "yellow",
    "would-change": "yellow",
    "blocked": "magenta",
    "skipped": "magenta",
    "failed": "red",
    "interrupted": "red",
}
_FLAGS = (
    ("reboot", "reboots"),
    ("disrupts", "network blip"),
    ("disturbs", "disturbs pods"),
    ("policy", "held by policy or another owner"),
)


def print_report(report: Report, console: Console, *, differences: bool = False) -> None:
    """Write the table; with `differences`, also what each step found (as `plan` does)."""
    for finding in report.preflight:
        console.print(_finding(finding))
    for node in report.nodes:
        for block in _details(node, differences=differences):
            console.print(block)
    console.print(_table(report))
    console.print(summary(report))


def summary(report: Report) -> str:
    """The closing line: how many nodes ended how."""
    outcomes: dict[str, int] = {}
    for node in report.nodes:
        outcomes[node.outcome] = outcomes.get(node.outcome, 0) + 1
    parts = ", ".join(f"{count} {name}" for name, count in outcomes.items()) or "no nodes"
    return f"{report.command}: {parts}; {report.changed} steps changed in {report.seconds:.1f} s"


# Columns of numbers: the heading, and what it counts on a node. Those that are 0 on every node are left out.
_NUMBERS: tuple[tuple[str, Callable[[NodeReport], int]], ...] = (
    ("ok", lambda node: node.counts["ok"]),
    ("changed", lambda node: node.counts["changed"]),
    ("to change", lambda node: node.counts["would-change"]),
    ("blocked", lambda node: node.counts["blocked"]),
    ("failed", lambda node: node.counts["failed"]),
    ("reboots", lambda node: node.reboots),
    ("detached", lambda node: node.detached),
    ("reconnects", lambda node: node.reconnects),
)


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("node", "os", "outcome", "ready"):
        table.add_column(name, no_wrap=True)
    shown = [(name, count) for name, count in _NUMBERS if any(map(count, report.nodes))]
    for name in (*(name for name, _ in shown), "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for node in report.nodes:
        table.add_row(
            node.node,
            node.os,
            Text(node.outcome, style=_COLOURS[node.outcome]),
            {True: "yes", False: "no", None: "-"}[node.ready],
            *(str(count(node)) for _, count in shown),
            f"{node.seconds:.1f}",
        )
    return table


def _finding(finding: Finding) -> RenderableType:
    level = "skipped" if finding.skipped else finding.level
    colour = {"error": "red", "warning": "yellow", "skipped": "dim"}[level]
    where = f" ({', '.join(finding.nodes)})" if finding.nodes else ""
    head = Text.assemble("preflight: ", (f"{finding.id} {level}", colour), f"{where}: {finding.reason}")
    return Group(head, Text(f"  next: {finding.fix}"))


def _details(node: NodeReport, *, differences: bool) -> list[RenderableType]:
    blocks: list[RenderableType] = []
    worth_showing = (s for s in node.steps if s.problem is not None or (differences and s.differences))
    blocks.extend(_step(node.node, step) for step in worth_showing)
    if node.failure is not None:
        skipped = node.outcome == "skipped"
        said = node.failure.message.removeprefix(f"{node.node}: ")
        text = Text(f"{node.node}: {'skipped: ' if skipped else ''}{said}", _COLOURS[node.outcome])
        blocks.append(Group(text, Text(f"  next: {node.failure.hint}")) if node.failure.hint else text)
    blocks.extend(Text(f"{node.node}: {note}", style="dim") for note in node.notes)
    return blocks


def _step(node: str, step: StepReport) -> RenderableType:
    head = Text.assemble(f"{node}: {step.name} ", (step.state, _COLOURS[step.state]))
    lines: list[Text] = [head]
    lines.extend(Text(f"  {difference_line(difference)}") for difference in step.differences)
    if step.problem is not None:
        lines.append(Text(f"  {step.problem.id}: {step.problem.message}", style="red"))
        if step.problem.hint:
            lines.append(Text(f"  next: {step.problem.hint}"))
        if step.problem.position:
            lines.append(Text(f"  at: {step.problem.position}", style="dim"))
    return Group(*lines)


def difference_line(difference: Difference) -> str:
    """A difference in one line, in the manner of a Terraform plan: `~ what: is -> want (flags)`."""
    flags = ", ".join(text for name, text in _FLAGS if getattr(difference, name))
    suffix = f"  ({flags})" if flags else ""
    if difference.is_ is None:
        return f"+ {difference.what}: {_short(difference.want)}{suffix}"
    if difference.want is None:
        return f"- {difference.what}: {_short(difference.is_)}{suffix}"
    return f"~ {difference.what}: {_short(difference.is_)} -> {_short(difference.want)}{suffix}"


def _short(text: str | None, limit: int = 120) -> str:
    flat = " ".join((text or "").split()) or "(none)"
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
