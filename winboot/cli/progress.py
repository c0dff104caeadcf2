"""What a person sees while nodes are at work: plain lines for logs and pipes; the live view is in winboot.cli.board."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.text import Text

from winboot.node.run import Listener
from winboot.report.causes import FOLLOWS, causes
from winboot.report.events import Detached, Event, Problem, RebootWanted, RunStarted, StepDone
from winboot.report.notices import NodeEnded, Notice
from winboot.report.results import NodeReport


class Quiet:
    """Says nothing: for `--output json` and for tests."""

    def event(self, node: str, event: Event | Notice) -> None:
        """Ignore."""

    def say(self, node: str, text: str) -> None:
        """Ignore."""


class Both:
    """Tells several listeners the same."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def event(self, node: str, event: Event | Notice) -> None:
        """Pass it on."""
        for one in self._listeners:
            one.event(node, event)

    def say(self, node: str, text: str) -> None:
        """Pass it on."""
        for one in self._listeners:
            one.say(node, text)


def ending(report: NodeReport) -> str:
    """How a node ended, in one line: its outcome, how long that took, whether it is Ready, and the first cause of trouble.

    "not Ready after 1:45" would suggest a wait that did not happen."""
    line = f"{report.outcome} in {lasted(report.seconds)}"
    if report.ready is not None:
        line += ", Ready" if report.ready else ", not Ready"
    found = causes([report])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    for cause in found:
        if cause.failure is not None:
            if cause.failure.message == report.outcome:  # an interrupted node says so once
                return line
            return f"{line}: {cause.failure.name}: {cause.failure.message}{more}"
        if cause.step is not None and cause.step.problem is not None:
            problem = cause.step.problem
            return f"{line}: {cause.step.name}: {problem.id}: {problem.message}{more}"
    return line


def one_line(text: str) -> str:
    """A text without the ends of its lines: a line of a log says which node it is of, and a machine's message begins none."""
    return " ".join(text.splitlines())


def lasted(seconds: float) -> str:
    """41 s, 3:07 or 1:02:07."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def describe(event: Event | Notice, *, everything: bool = False) -> str | None:
    """An event in a few words; None for those that are not shown: what is right and what is blocked (but with `everything`),
    and what waits for another step. The line of the node's end names what blocks it."""
    match event:
        case NodeEnded(report=report):
            return ending(report)
        case StepDone(step=step, state=state) if everything and event.problem is None:
            return f"{step}: {state} in {event.ms} ms"
        case StepDone(problem=Problem(id=id)) if id == FOLLOWS:
            return None
        case StepDone(step=step, state=state) if everything or state not in ("ok", "would-change", "blocked"):
            return f"{step}: {state}" + (f" ({event.problem.message})" if event.problem else "")
        case RebootWanted(steps=steps):
            return f"the machine needs a restart for {', '.join(steps)}"
        case Detached(step=step, timeout_s=seconds):
            return f"{step}: continues as a task on the node, for at most {seconds} s"
        case RunStarted(build=build):
            return f"connected, build {build}"
    return None


class ProgressConsole(Console):
    """Standard error while nodes are at work. When its reader is gone (`2>&1 | head`, a terminal that was closed), it
    prints no more, and the work continues: rich would end the process.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        """Standard error, or a file in its place."""
        super().__init__(stderr=file is None, file=file, highlight=False)
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
    """One plain line for each thing worth knowing, or with `everything` for each step: for logs and pipes."""

    def __init__(self, console: ProgressConsole, *, everything: bool = False) -> None:
        self._console = console
        self._everything = everything
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def event(self, node: str, event: Event | Notice) -> None:
        """Write the event's line, if it has one."""
        text = describe(event, everything=self._everything)
        if text is not None:
            self.say(node, text)

    def say(self, node: str, text: str) -> None:
        """Write `seconds node text`."""
        with self._lock, self._console.tolerant():
            self._console.print(
                Text(f"{time.monotonic() - self._start:6.1f}s {node}: {one_line(text)}"),
                soft_wrap=True,
                highlight=False,
            )
