"""What became of each flow that was tried between pods, nodes and services: rows, and their forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal
from xml.etree import ElementTree as ET

from msgspec import structs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from winboot.base import exits
from winboot.report.causes import named
from winboot.report.line import Line, json_line, says
from winboot.report.prose import print_prose
from winboot.report.results import tenths
from winboot.report.shape import Flows

State = Literal["passed", "failed", "untried", "left-out", "limitation"]
_COLOURS = {"passed": "green", "failed": "red", "untried": "magenta", "left-out": "dim", "limitation": "dim"}


class FlowRow(Line, frozen=True, tag="flow", rename={"source": "from", "target": "to"}):
    """One flow between two ends."""

    where = "`verify`"
    flow: Annotated[str, says("the id of the flow")]
    node: Annotated[str, says("the node that the row is about; empty for a row about all nodes")]
    source: Annotated[str, says("where the flow begins")]
    target: Annotated[str, says("where the flow ends; empty for a probe of a node")]
    state: Annotated[
        State,
        says(
            "untried: an earlier flow failed; left-out: no such pair, or not requested; limitation: impossible on Windows"
        ),
    ]
    expected: Annotated[str, says("the result on a healthy node")]
    seen: Annotated[str, says("the result on this node")] = ""
    cause: Annotated[str, says("the probable cause")] = ""
    next: Annotated[str, says("what to do next")] = ""


@dataclass(frozen=True, slots=True)
class FlowReport:
    """One run over its nodes. `code`: the exit code of what ended the run early, 0 where nothing did; `notes` are sentences
    worth knowing: where the Linux ends are, what was left."""

    run: str
    started: str
    rows: tuple[FlowRow, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    code: int = 0
    nodes: tuple[str, ...] = field(default=())

    @property
    def counts(self) -> Counter[str]:
        """How many rows are in each state."""
        return Counter(row.state for row in self.rows)

    @property
    def exit_code(self) -> int:
        """1 where a flow failed or could not be tried; what ended the run early goes before."""
        counts = self.counts
        failed = exits.FAILED if counts["failed"] or counts["untried"] else exits.DONE
        return exits.foremost((self.code, failed))


def flow_lines(report: FlowReport) -> Iterator[str]:
    """A JSON line a row, the line of the run last."""
    yield from map(json_line, report.rows)
    yield json_line(
        Flows(
            run=report.run,
            started=report.started,
            seconds=round(report.seconds, 3),
            nodes=report.nodes,
            notes=report.notes,
            exit_code=report.exit_code,
        )
    )


def flows_junit(report: FlowReport) -> str:
    """A test suite a node, a test case a row."""
    root = ET.Element("testsuites", name="winboot verify")
    by_node: dict[str, list[FlowRow]] = {}
    for row in report.rows:
        by_node.setdefault(row.node or "cluster", []).append(row)
    for node, rows in by_node.items():
        suite = ET.SubElement(root, "testsuite", name=node, tests=str(len(rows)))
        for row in rows:
            name = f"{row.flow}: {row.source} to {row.target}" if row.target else row.flow
            case = ET.SubElement(suite, "testcase", classname=node, name=name)
            if row.state in ("failed", "untried"):
                failure = ET.SubElement(case, "failure", message=row.seen, type=row.flow)
                failure.text = f"{row.cause} {row.next}".strip()
            elif row.state != "passed":
                ET.SubElement(case, "skipped", message=row.seen)
    return _text(root)


def one_document(first: str, second: str) -> str:
    """The test suites of two JUnit documents in one: a program reads one from standard output."""
    root = ET.fromstring(first)
    root.extend(ET.fromstring(second))
    return _text(root)


def _text(root: ET.Element) -> str:
    """ASCII, with references for other characters."""
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode", xml_declaration=True)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


# What is left of a target at least.
_LEAST: Final = 8
# Below this, expected and seen would have ten letters each.
_WIDE: Final = 120


def _whole(report: FlowReport) -> Iterator[list[str]]:
    """The cells of the columns that are never cut."""
    yield [row.flow for row in report.rows]
    yield [row.source for row in report.rows]
    yield [row.state for row in report.rows]


def print_flows(report: FlowReport, console: Console, *, passed: bool = False) -> None:
    """What needs attention, each cause once, and how many flows ended how; with `passed` all rows in a table before it."""
    if passed:
        console.print(_table(report, console.width))
        for row in report.rows:
            if row.state == "limitation" and console.width < _WIDE:
                print_prose(console, Text(f"{row.flow}: {row.seen}", style="dim"))
    for (row, target), sources in _wrong(report).items():
        where = f"{named(sources)} to {target}" if target else named(sources)
        print_prose(console, Text(f"{row.flow}, {where}: {row.seen}", style=_COLOURS[row.state]))
        if row.cause:
            print_prose(console, Text(f"  probable cause: {row.cause}"))
        if row.next:
            print_prose(console, Text(f"  next: {row.next}"))
    for note in report.notes:
        print_prose(console, Text(note, style="dim"))
    parts = ", ".join(f"{count} {name}" for name, count in report.counts.items()) or "no flows"
    shown = "" if passed or not report.rows else "; -v shows each"
    console.print(f"verify: {parts} in {tenths(report.seconds)} s{shown}")


def _wrong(report: FlowReport) -> dict[tuple[FlowRow, str], list[str]]:
    """The flows that failed or were not tried, without their ends, and their target, with the sources that share them."""
    found: dict[tuple[FlowRow, str], list[str]] = {}
    for row in report.rows:
        if row.state in ("failed", "untried"):
            found.setdefault((structs.replace(row, node="", source="", target=""), row.target), []).append(
                row.source
            )
    return found


def _table(report: FlowReport, width: int) -> Table:
    """All rows. On a narrow terminal a row is one line, without what was expected and seen."""
    narrow = width < _WIDE
    columns = ("flow", "from", "to", "", "expected", "seen")[: 4 if narrow else 6]
    table = Table(box=None, pad_edge=False)
    # Of one line the target is cut: it is an address, or named below where something is wrong.
    whole = (
        [max((len(text) for text in texts), default=0) for texts in _whole(report)] if narrow else [0, 0, 0]
    )
    room = width - sum(whole) - len(whole) * 2
    table.add_column("flow", no_wrap=True, min_width=whole[0])
    table.add_column("from", no_wrap=narrow, min_width=whole[1])
    table.add_column("to", no_wrap=narrow, max_width=max(room, _LEAST) if narrow else None)
    for name in columns[3:]:
        table.add_column(name, no_wrap=name == "", min_width=whole[2] if name == "" else None)
    for row in report.rows:
        state = Text(row.state, style=_COLOURS[row.state])
        cells = (row.flow, row.source, row.target, state, row.expected, row.seen)
        table.add_row(*cells[: len(columns)])
    return table
