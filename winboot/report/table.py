"""The report for people: a table of nodes, and below it whatever needs their attention."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from msgspec import structs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from winboot.report.causes import causes, followers, named
from winboot.report.differences import difference_text
from winboot.report.finding import Finding
from winboot.report.grouped import found_lines
from winboot.report.plan_file import PlanFile
from winboot.report.prose import print_prose
from winboot.report.results import Digests, Need, NodeReport, Report, StepReport, tenths
from winboot.report.totals import in_all

_COLOURS = {
    "ok": "green",
    "changed": "yellow",
    "would-change": "yellow",
    "blocked": "magenta",
    "skipped": "magenta",
    "failed": "red",
    "interrupted": "red",
}


def print_report(report: Report, console: Console, *, differences: bool = False, texts: bool = False) -> None:
    """Write why nodes failed and the table; with `differences`, also what each step found (as `plan` does), with `texts` in
    full."""
    for finding in report.preflight:
        print_prose(console, _finding(finding))
    if differences:
        for found in found_lines(report.nodes, min(console.width, _ROW), texts=texts):
            console.print(found)
    for text in _why(report):
        print_prose(console, text)
    console.print(_table(report, console.width))
    if differences:
        for line in _costs(report):
            print_prose(console, Text(line))
    console.print(summary(report))


def _costs(report: Report) -> Iterator[str]:
    """What a join would cost on each node and in all, and what it would refuse."""
    needs: dict[Need, list[str]] = {}
    for node in report.nodes:
        for need in node.needs:
            needs.setdefault(need, []).append(node.node)
    for need, names in needs.items():
        yield f"{named(names)}: join refuses without {need.flag}: {need.why}"
    if (total := in_all(report)).steps:
        who = report.nodes[0].node if len(report.nodes) == 1 else f"all {len(report.nodes)} nodes"
        yield f"{who}: {total}"


def planned_lines(plan: PlanFile) -> Iterator[str]:
    """A plan that was written to a file, a node below the other."""
    for name, node in plan.nodes.items():
        yield ""
        yield f"{name}: {len(node.steps)} steps to change" if node.steps else f"{name}: nothing to change"
        if node.failure:
            yield f"  winboot could not look: {node.failure}"
        for kind, digest in structs.asdict(Digests(node.settings, node.script, node.library)).items():
            yield f"  {kind:8} {digest}"
        for step, found in node.steps.items():
            yield f"  {step}" + (f": {found.problem}" if found.problem else "")
            for one in found.differences:
                yield textwrap.indent(difference_text(one), "    ")


def summary(report: Report) -> str:
    """The closing line: how many nodes ended how."""
    outcomes: dict[str, int] = {}
    for node in report.nodes:
        outcomes[node.outcome] = outcomes.get(node.outcome, 0) + 1
    parts = ", ".join(f"{count} {name}" for name, count in outcomes.items()) or "no nodes"
    return f"{report.command}: {parts}; {report.changed} steps changed in {tenths(report.seconds)} s"


# A row of a plan, also in a pipe.
_ROW = 80

# Columns of numbers: the heading, and what it counts on a node. Those that are 0 on every node are left out; where there is
# no room for the others, the last ones go first.
NUMBERS: tuple[tuple[str, Callable[[NodeReport], int]], ...] = (
    ("failed", lambda node: node.counts["failed"]),
    ("changed", lambda node: node.counts["changed"]),
    ("to change", lambda node: node.counts["would-change"]),
    ("blocked", lambda node: node.counts["blocked"]),
    ("ok", lambda node: node.counts["ok"]),
    ("reboots", lambda node: node.reboots),
    ("detached", lambda node: node.detached),
    ("reconnects", lambda node: node.reconnects),
)
# Between two columns.
_GAP = 1


def _table(report: Report, width: int) -> Table:
    """The name of a node is never cut: where the terminal is narrow, columns go."""
    columns = _columns(report)
    while len(columns) > 1 and _width(columns) > width:
        del columns[_least(columns)]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for heading, cells in columns.items():
        right = heading not in _WORDS
        table.add_column(
            heading,
            no_wrap=True,
            justify="right" if right else "left",
            min_width=max(map(len, (heading, *cells))),
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(cell, _COLOURS.get(cell, "")) for cell in row))
    return table


_WORDS = ("node", "os", "outcome", "ready")


def _columns(report: Report) -> dict[str, list[str]]:
    nodes = report.nodes
    columns: dict[str, list[str]] = {
        "node": [node.node for node in nodes],
        "os": [node.os for node in nodes],
        "outcome": [node.outcome for node in nodes],
        "ready": [{True: "yes", False: "no", None: "-"}[node.ready] for node in nodes],
    }
    columns |= {
        name: [str(count(node)) for node in nodes] for name, count in NUMBERS if any(map(count, nodes))
    }
    return columns | {"seconds": [tenths(node.seconds) for node in nodes]}


def _least(columns: dict[str, list[str]]) -> str:
    """The column that is missed least."""
    numbers = [name for name, _ in NUMBERS if name in columns]
    return (
        numbers[-1]
        if numbers
        else [name for name in ("ready", "outcome", "os", "seconds") if name in columns][-1]
    )


def _width(columns: dict[str, list[str]]) -> int:
    """In characters, with the gaps."""
    return sum(max(map(len, (heading, *cells))) + _GAP for heading, cells in columns.items()) - _GAP


def _below(text: str) -> str:
    """A text of several lines; those after the first are further in, so that none looks like another node's."""
    return "\n    ".join(text.splitlines())


def _finding(finding: Finding) -> Text:
    level = "skipped" if finding.skipped else finding.level
    colour = {"error": "red", "warning": "yellow", "skipped": "dim"}[level]
    where = f" ({', '.join(finding.nodes)})" if finding.nodes else ""
    head = (f"{finding.id} {level}", colour)
    return Text.assemble("preflight: ", head, f"{where}: {finding.reason}\n  next: {finding.fix}")


def _why(report: Report) -> Iterator[Text]:
    """Each cause once, what waits for it in one line, then what is worth knowing of single nodes."""
    for cause in causes(report.nodes):
        if cause.step is not None:
            yield from _step(cause.who, cause.step)
        if cause.failure is not None:
            skipped = "skipped: " if cause.outcome == "skipped" else ""
            yield Text(f"{cause.who}: {skipped}{_below(cause.failure.message)}", _COLOURS[cause.outcome])
            if cause.failure.hint:
                yield Text(f"  next: {_below(cause.failure.hint)}")
    for who, steps in followers(report.nodes):
        count = f"{len(steps)} steps wait" if len(steps) != 1 else "1 step waits"
        yield Text(f"{who}: {count} and will follow: {', '.join(steps)}", _COLOURS["blocked"])
    for node in report.nodes:
        yield from (Text(f"{node.node}: {_below(note)}", style="dim") for note in node.notes)


def _step(who: str, step: StepReport) -> Iterator[Text]:
    yield Text.assemble(f"{who}: {step.name} ", (step.state, _COLOURS[step.state]))
    for one in step.differences:
        yield Text(textwrap.indent(difference_text(one), "  "))
    if step.problem is not None:
        yield Text(f"  {step.problem.id}: {_below(step.problem.message)}", style="red")
        if step.problem.hint:
            yield Text(f"  next: {_below(step.problem.hint)}")
        if step.problem.position:
            yield Text(f"  at: {_below(step.problem.position)}", style="dim")
