"""What a person sees while nodes are at work: a live line a node on a terminal, plain lines anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from winboot.report.causes import FOLLOWS
from winboot.report.events import Detached, Event, Problem, RebootWanted, RunStarted, StepDone


class Quiet:
    """Says nothing: for `--output json` and for tests."""

    def event(self, node: str, event: Event) -> None:
        """Ignore."""

    def say(self, node: str, text: str) -> None:
        """Ignore."""


def describe(event: Event) -> str | None:
    """An event in a few words; None for those that are not shown: what is right, and what waits for another step."""
    match event:
        case StepDone(problem=Problem(id=id)) if id == FOLLOWS:
            return None
        case StepDone(step=step, state=state) if state not in ("ok", "would-change"):
            return f"{step}: {state}" + (f" ({event.problem.message})" if event.problem else "")
        case RebootWanted(steps=steps):
            return f"needs a restart for {', '.join(steps)}"
        case Detached(step=step, timeout_s=seconds):
            return f"{step}: continues as a task on the node, at most {seconds} s"
        case RunStarted(build=build):
            return f"connected, build {build}"
    return None


class ProgressConsole(Console):
    """Standard error while nodes are at work. When nobody reads it any more (`2>&1 | head`, a terminal that was closed), it
    falls silent, and the work goes on: rich would end the process.
    """

    def __init__(self) -> None:
        super().__init__(stderr=True, highlight=False)
        self.lost = False

    def on_broken_pipe(self) -> None:
        """Fall silent."""
        self.fall_silent()

    def fall_silent(self) -> None:
        """Write nothing any more."""
        self.lost = self.quiet = True

    @contextmanager
    def tolerant(self) -> Iterator[None]:
        """What is written within this block may be lost."""
        try:
            yield
        except OSError:
            self.fall_silent()


class Lines:
    """One plain line for each thing worth knowing: for logs and pipes."""

    def __init__(self, console: ProgressConsole) -> None:
        self._console = console
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def event(self, node: str, event: Event) -> None:
        """Write the event's line, if it has one."""
        text = describe(event)
        if text is not None:
            self.say(node, text)

    def say(self, node: str, text: str) -> None:
        """Write `seconds node text`."""
        with self._lock, self._console.tolerant():
            self._console.print(
                Text(f"{time.monotonic() - self._start:6.1f}s {node}: {text}"),
                soft_wrap=True,
                highlight=False,
            )


class Board:
    """A live table on a terminal, one line a node: what it does now, and how far it is."""

    def __init__(self, console: ProgressConsole, nodes: Sequence[str]) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._now = dict.fromkeys(nodes, "waiting")
        self._done = dict.fromkeys(nodes, 0)
        self._changed = dict.fromkeys(nodes, 0)
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=8, transient=True)

    def __enter__(self) -> Board:
        with self._console.tolerant():
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._console.tolerant():
            self._live.__exit__(kind, error, trace)

    def event(self, node: str, event: Event) -> None:
        """Count the step and show it."""
        with self._lock:
            if isinstance(event, StepDone):
                self._done[node] = self._done.get(node, 0) + 1
                self._changed[node] = self._changed.get(node, 0) + (event.state == "changed")
            text = describe(event)
            if text is not None:
                self._now[node] = text

    def say(self, node: str, text: str) -> None:
        """Show what happens to the node now."""
        with self._lock:
            self._now[node] = text

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        with self._lock:
            for node, now in self._now.items():
                table.add_row(
                    Text(node, style="bold"), f"{self._changed[node]} changed", Text(now, overflow="ellipsis")
                )
        return table
