"""The live view on a terminal: a line of totals, and rows for what failed and what is at work. What ended stays above as a
log. It fits any number of nodes into the height of the terminal, and no name of a node is ever cut.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from winboot.cli.progress import ProgressConsole, describe, ending, lasted, one_line
from winboot.report.causes import causes
from winboot.report.events import Detached, Event, RunStarted, StepDone
from winboot.report.notices import NodeEnded, Notice, PassBegun, Waiting
from winboot.report.results import NodeReport, Outcome

# Of the rows of a terminal, so many parts at most are for what failed: what is at work needs the others.
_FAILED_PART: Final = 3
# What the line of totals counts, in this order.
_COUNTED: Final[tuple[Outcome, ...]] = ("failed", "interrupted", "changed", "blocked", "skipped")
# The line of totals, and the terminal's own last line.
_AROUND: Final = 2
_FRAME_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Task:
    """A step that continues as a task on the node, since when, for how long at most."""

    step: str
    since: float
    most: float


@dataclass(slots=True)
class _Row:
    """One node that is at work: what it does, since when, for how long at most, and how far it is."""

    text: str
    since: float
    most: float = 0.0
    steps: tuple[str, ...] = ()
    told: int = 0
    # The most steps that a pass of this run has reported done; a restart or a task begins at the first step again.
    far: int = 0
    look: bool = False
    task: _Task | None = None

    def begin(self, text: str, now: float, most: float = 0.0) -> None:
        """Something else happens from now on."""
        text = one_line(text)
        if text != self.text:
            self.text, self.since = text, now
        self.most = most

    def due(self, now: float) -> None:
        """The next step of the script is under way."""
        if self.told < len(self.steps):
            self.begin(self.steps[self.told], now)
        elif self.steps:
            self.begin("the end of the script", now)

    def detach(self, step: str, most: float, now: float) -> None:
        """A step continues as a task; the controller asks for it again and again, which is not news."""
        if self.task is None or self.task.step != step:
            self.task = _Task(step, now, most)
        self.back_to_task()

    def back_to_task(self) -> None:
        """What is under way is the task still, since it began."""
        if self.task is not None:
            self.text = f"{self.task.step}: continues as a task on the node"
            self.since, self.most = self.task.since, self.task.most
            self.told = self.steps.index(self.task.step) if self.task.step in self.steps else self.told

    def end_task(self) -> None:
        """The task has ended, and the script reports its steps again from the first one on."""
        if self.task is not None:
            self.task, self.told = None, 0

    @property
    def place(self) -> str:
        """Which step of how many; it never goes back."""
        if self.look:
            return "look"
        return f"{min(max(self.told, self.far) + 1, len(self.steps))}/{len(self.steps)}" if self.steps else ""

    def done(self, step: str) -> None:
        """A step is reported."""
        self.end_task()
        self.told = max(self.told, self.steps.index(step) + 1)
        if not self.look:
            self.far = max(self.far, self.told)


class Board:
    """Follows the nodes of a run; accepts events from any thread."""

    def __init__(
        self,
        console: ProgressConsole,
        nodes: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self._nodes = tuple(nodes)
        self._rows: dict[str, _Row] = {}
        self._ended: dict[str, NodeReport] = {}
        # rich takes the cursor up by the height of the last frame: a line that comes between that and the next frame is
        # written over. So lines and frames are written one after the other, and rich starts no thread of its own.
        self._writing = threading.Lock()
        self._live = Live(self, console=console, auto_refresh=False, transient=True)
        self._left = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="board", daemon=True)

    def __enter__(self) -> Board:
        with self._writing, self._console.tolerant():
            self._live.__enter__()
        self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._painter.join()
        with self._writing, self._console.tolerant():
            self._live.__exit__(kind, error, trace)

    def _paint(self) -> None:
        while not self._left.wait(_FRAME_S):
            with self._writing, self._console.tolerant():
                self._live.refresh()

    def event(self, node: str, event: Event | Notice) -> None:
        """Note what the node does now; one that has ended goes to the log above."""
        if isinstance(event, NodeEnded):
            self._end(node, event.report)
            return
        with self._lock:
            row, now = self._row(node), self._clock()
            match event:
                case PassBegun(steps=steps, look=look):
                    row.steps, row.told, row.look = steps, 0, look
                    row.back_to_task()
                case RunStarted() if row.task is not None:
                    row.back_to_task()
                case RunStarted():
                    row.due(now)
                case StepDone(step=step) if step in row.steps:
                    row.done(step)
                    row.due(now)
                case Detached(step=step, timeout_s=seconds):
                    row.detach(step, seconds, now)
                case Waiting(text=text, most=most):
                    row.begin(text, now, most)
                case _:
                    row.begin(describe(event) or row.text, now)

    def say(self, node: str, text: str) -> None:
        """Show what happens to the node now."""
        with self._lock:
            row = self._row(node)
            if row.task is None:
                row.begin(text, self._clock())

    def _row(self, node: str) -> _Row:
        return self._rows.setdefault(node, _Row("", self._clock()))

    def _end(self, node: str, report: NodeReport) -> None:
        with self._lock:
            self._rows.pop(node, None)
            self._ended[node] = report
        colour = {"failed": "red", "interrupted": "red", "changed": "yellow"}.get(report.outcome, "")
        line = Text.assemble((node, "bold"), " ", (one_line(ending(report)), colour))
        with self._writing, self._console.tolerant():
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            lines = list(self._lines(options.max_width, console.height - _AROUND))
        yield Text("\n").join(lines)

    def _lines(self, width: int, height: int) -> Iterator[Text]:
        """At most `height` lines and the totals, none longer than `width` (but for a name that is)."""
        failed = [node for node in self._nodes if self._fails(node)]
        shown = _fitting(failed, max(1, height // _FAILED_PART))
        for node in shown:
            yield _line(node, len(node), "failed", "", _cause(self._ended[node]), width, "red")
        if len(failed) > len(shown):
            yield Text(f"and {len(failed) - len(shown)} more failed nodes", "red")
        yield from self._at_work(width, height - len(shown) - (len(failed) > len(shown)))
        yield Text(_joined(self._totals(), width), "bold")

    def _at_work(self, width: int, height: int) -> Iterator[Text]:
        """Rows in the order of the run; where there is no room for all, those that have done the same for longest."""
        rows = [(node, self._rows[node]) for node in self._nodes if node in self._rows]
        shown = rows
        if len(rows) > height:
            longest = sorted(rows, key=lambda row: row[1].since)[: max(1, height - 1)]
            shown = [row for row in rows if row in longest]
        names = max((len(node) for node, _ in shown), default=0)
        now = self._clock()
        for node, row in shown:
            passed = lasted(now - row.since)
            if row.most:
                passed += f" of {lasted(row.most)}"
            yield _line(node, names, row.place, passed, row.text, width)
        if len(shown) < len(rows):
            yield Text(f"and {len(rows) - len(shown)} more nodes at work", "dim")

    def _fails(self, node: str) -> bool:
        return node in self._ended and self._ended[node].outcome == "failed"

    def _totals(self) -> list[str]:
        """What has become of how many; the most important first."""
        ended = self._ended.values()
        count = len(self._nodes)
        said = [f"{len(self._ended)} of {count} done", f"{sum(bool(one.ready) for one in ended)} Ready"]
        counts = Counter(one.outcome for one in ended)
        said += [f"{counts[one]} {one}" for one in _COUNTED if counts[one]]
        said.append(lasted(self._clock() - self._start))
        left = [
            (row.most - (self._clock() - row.since), node) for node, row in self._rows.items() if row.most
        ]
        if left:
            seconds, node = max(left)
            said.append(f"longest wait at most {lasted(max(0.0, seconds))} more ({node})")
        return said


def _fitting(nodes: Sequence[str], most: int) -> Sequence[str]:
    """The last ones, as many as there is room for with a line for the others."""
    return nodes if len(nodes) <= most else nodes[len(nodes) - max(1, most - 1) :]


def _joined(parts: Sequence[str], width: int) -> str:
    """As many of the parts as fit."""
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) <= width:
            line += f", {part}"
    return line


def _cause(report: NodeReport) -> str:
    """Why it failed, by name."""
    for cause in causes([report]):
        if cause.failure is not None:
            return cause.failure.name
        if cause.step is not None and cause.step.problem is not None:
            return f"{cause.step.name}: {cause.step.problem.id}"
    return ""


def _line(node: str, names: int, place: str, passed: str, text: str, width: int, colour: str = "") -> Text:
    """A row: the name whole, then as much of the others as there is room for."""
    rest = f"  {place:>6}  {passed:>6}  {text}" if passed else f"  {place}  {text}"
    room = max(0, width - names)
    if len(rest) > room:
        rest = rest[: max(0, room - 1)] + ("…" if room else "")
    return Text.assemble((node.ljust(names), "bold"), (rest, colour), no_wrap=True, overflow="ignore")
