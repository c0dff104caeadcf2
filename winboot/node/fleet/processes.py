"""More than one process for one run: others work on the nodes; this one lets them in, listens to all and makes the report.

The threads of a process share its interpreter lock, so that beyond some fifty nodes a second more of them only wait. Each
process has its own sessions, claims and journals of the nodes that it is given. When a node's turn comes, it goes to
the process that has the fewest. A process that dies costs no node: another one takes its nodes over, once its claims
are over. When the run's own process is gone, the others end at their next safe points.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, Self

from msgspec import structs

from winboot.base.errors import ConnectionLost, InternalError, LoginRefused, NodeFailed, WinbootError
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet.node import NOT_IN_TIME, interrupted, under_way
from winboot.node.run import Listener, Stop
from winboot.remote.transport.logins import Logins
from winboot.report.events import Event, RunStarted, StepDone
from winboot.report.finding import Finding
from winboot.report.notices import NodeEnded, Notice
from winboot.report.results import Failure, NodeReport, collect

# Starts a process, by its number from 0 on, that calls `Line.serve` at its end of the pipe.
Start = Callable[[int, "Connection"], BaseProcess]

# How many processes may be lost before no other is started in their place, in addition to those of the beginning.
_SPARE: Final = 8
# How many processes one node may lose: it may be the one that they die of, or a neighbour of it.
_TRIES: Final = 3
# Seconds: between two looks whether the run is to stop, for what is known of a node then, and for a process to end by itself.
_LOOK_S: Final = 0.1
_LAST_WORD_S: Final = 2.0
_END_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Begin:
    """To a process: work on this node."""

    node: str


@dataclass(frozen=True, slots=True)
class _Halt:
    """To a process: end at the next safe point, for this signal; sent again: at once."""

    signal: int | None


@dataclass(frozen=True, slots=True)
class _Leave:
    """To a process: there is nothing left to do. A connection that a thread reads from cannot be closed at the same
    time."""


@dataclass(frozen=True, slots=True)
class _Told:
    """From a process: what a listener receives."""

    node: str
    event: Event | Notice


@dataclass(frozen=True, slots=True)
class _Said:
    """From a process: what a listener receives in words."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class _Done:
    """From a process: how a node ended, and what preflight has found there so far."""

    report: NodeReport
    findings: tuple[Finding, ...]


class Line:
    """A process's way to the one that has started it: the listener of its work. Told from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def event(self, node: str, event: Event | Notice) -> None:
        """Pass it on; its report says how a node ended."""
        if not isinstance(event, NodeEnded):
            self._send(_Told(node, event))

    def say(self, node: str, text: str) -> None:
        """Pass it on."""
        self._send(_Said(node, text))

    def serve(
        self, work: Callable[[str], NodeReport], findings: Callable[[], tuple[Finding, ...]], stop: Stop
    ) -> None:
        """Work on the nodes that come, each in a thread, until the run is over, or lost with the process that has
        begun it. What still runs then ends at its next safe point."""
        threads: list[threading.Thread] = []

        def do(node: str) -> None:
            self._send(_Done(_reported(work, node), findings()))

        with suppress(EOFError, OSError):
            while True:
                match self._connection.recv():
                    case Begin(node=node):
                        threads = [one for one in threads if one.is_alive()]
                        threads.append(threading.Thread(target=do, args=(node,), name=node, daemon=True))
                        threads[-1].start()
                    case _Halt(signal=signal):
                        stop.request(signal)
                    case _Leave():
                        break
        stop.request()
        for thread in threads:
            thread.join(_END_S)

    def _send(self, message: object) -> None:
        # It has no reader any more, where the other side is gone.
        with suppress(OSError), self._lock:
            self._connection.send(message)


def _reported(work: Callable[[str], NodeReport], node: str) -> NodeReport:
    try:
        return work(node)
    except Exception as error:  # noqa: BLE001 - whoever waits for the node is to hear of it
        problem = f"{node}: a bug in winboot itself: {type(error).__name__}: {error}"
        bug = InternalError(problem, hint="Report the bug; the same command continues.", node=node)
        return NodeReport(node, "", "", failure=Failure.of(bug))


@dataclass(slots=True)
class _Errand:
    """One node in the hands of a process. `heard`: its machine has answered, or it is over; `over`: it was reported, or the
    process is gone."""

    node: str
    steps: list[StepDone] = field(default_factory=list)
    answered: bool = False
    report: NodeReport | None = None
    heard: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def hear(self, event: Event | Notice) -> None:
        """The machine has said something."""
        if isinstance(event, StepDone):
            self.steps.append(event)
        if isinstance(event, RunStarted):
            self.answered = True
            self.heard.set()

    def end(self, report: NodeReport | None) -> None:
        """It was reported, or lost."""
        self.report = report
        self.heard.set()
        self.over.set()


@dataclass(slots=True, eq=False)
class _Process:
    """One process, seen from here."""

    number: int
    connection: Connection
    itself: BaseProcess
    errands: dict[str, _Errand] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: object) -> None:
        """Where it is gone, the thread that listens to it finds that out."""
        with suppress(OSError), self.lock:
            self.connection.send(message)


class Processes:
    """The processes of a run, within a `with`. Used from the threads of its nodes."""

    def __init__(self, count: int, start: Start, listener: Listener, stop: Stop) -> None:
        self.count = count
        self._start = start
        self._listener = listener
        self._stop = stop
        self._lock = threading.Lock()
        self._alive: list[_Process] = []
        self._started = 0
        self._findings: dict[int, tuple[Finding, ...]] = {}
        self._over = threading.Event()

    def __enter__(self) -> Self:
        with self._lock:
            for _ in range(self.count):
                self._begin_one()
        threading.Thread(target=self._pass_stop_on, name="processes", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        """Let them go; winboot ends a process that does not end by itself."""
        self._over.set()
        with self._lock:
            alive = list(self._alive)
        for one in alive:
            one.send(_Leave())
        end = time.monotonic() + (_LAST_WORD_S if self._stop.urgent else _END_S)
        for one in alive:
            one.itself.join(max(0.0, end - time.monotonic()))
            if one.itself.is_alive():
                one.itself.kill()
                one.itself.join()

    def findings(self) -> tuple[Finding, ...]:
        """What preflight has found in any of them so far, each once."""
        with self._lock:
            found = list(self._findings.values())
        return tuple(dict.fromkeys(one for several in found for one in several))

    def begin(self, node: str) -> _Errand:
        """Give a node to the process that has the fewest. Raises NodeFailed where no process is left, Interrupted
        where the run is to stop."""
        if self._stop.requested:
            raise interrupted(node, "its process ended, and no other process has continued")
        with self._lock:
            if (
                len(self._alive) < self.count
                and self._started < self.count + _SPARE
                and not self._over.is_set()
            ):
                self._begin_one()
            if not self._alive:
                raise NodeFailed(
                    f"{node}: not started: all processes of this run ended unexpectedly",
                    hint="Does this computer have enough memory? Try fewer --processes, or fewer --workers.",
                    node=node,
                )
            process = min(self._alive, key=lambda one: len(one.errands))
            errand = process.errands[node] = _Errand(node)
        process.send(Begin(node))
        return errand

    def _begin_one(self) -> None:
        """By the thread that has the lock."""
        here, there = Pipe()
        process = _Process(self._started, here, self._start(self._started, there))
        # Else its end would not be seen.
        there.close()
        self._started += 1
        self._alive.append(process)
        threading.Thread(
            target=self._listen, args=(process,), name=f"process-{process.number}", daemon=True
        ).start()

    def _listen(self, process: _Process) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._hear(process, process.connection.recv())
        process.connection.close()
        with self._lock:
            if process in self._alive:
                self._alive.remove(process)
            left = list(process.errands.values())
        for errand in left:
            errand.end(None)

    def _hear(self, process: _Process, message: object) -> None:
        match message:
            case _Told(node=node, event=event):
                if node in process.errands:
                    process.errands[node].hear(event)
                self._listener.event(node, event)
            case _Said(node=node, text=text):
                self._listener.say(node, text)
            case _Done(report=report, findings=findings):
                with self._lock:
                    self._findings[process.number] = findings
                    errand = process.errands.pop(report.node)
                errand.end(report)

    def _pass_stop_on(self) -> None:
        """A request to stop goes to all of them, and a second one, too."""
        if self._comes(lambda: self._stop.requested):
            self._halt()
        if self._comes(lambda: self._stop.urgent):
            self._halt()

    def _comes(self, asked: Callable[[], bool]) -> bool:
        """Wait for a request; False where the run is over before."""
        while not asked():
            if self._over.wait(_LOOK_S):
                return False
        return True

    def _halt(self) -> None:
        with self._lock:
            alive = list(self._alive)
        for one in alive:
            one.send(_Halt(self._stop.exit_code - 128))


class NodeElsewhere:
    """One node of a run that another process works on."""

    def __init__(self, spec: NodeSpec, processes: Processes, logins: Logins) -> None:
        self.spec = spec
        self.name = spec.node.name
        self._processes = processes
        self._logins = logins
        self._run_began = time.monotonic()
        self._let_in: float | None = None
        self._errand: _Errand | None = None

    def reported(self, begin: Callable[[str], None]) -> NodeReport:
        """Wait for its turn, and then for its end."""
        try:
            begin(self.name)
            self._let_in = time.monotonic()
            for _ in range(_TRIES):
                report = self._worked_on()
                if report is not None:
                    return self._timed(report)
            raise NodeFailed(
                f"{self.name}: {_TRIES} processes ended unexpectedly while they worked on this node",
                hint="Does this computer have enough memory? Try fewer --processes; the same command continues.",
                node=self.name,
            )
        except WinbootError as error:
            return self._so_far(Failure.of(error))

    def abandoned(self) -> NodeReport:
        """What its process knows of it, or what it has reported until now."""
        errand = self._errand
        if errand is not None and errand.over.wait(_LAST_WORD_S) and errand.report is not None:
            return self._timed(errand.report)
        return self._so_far(Failure.of(interrupted(self.name, NOT_IN_TIME)))

    def unfinished(self) -> NodeReport:
        """What it has reported until now."""
        begun = self._errand is not None
        return self._so_far(Failure.of(interrupted(self.name, under_way(begun=begun))))

    def interrupt(self) -> None:
        """winboot asks its process to stop, too, and it does."""

    def _worked_on(self) -> NodeReport | None:
        """What a process made of it; None where that one was lost. Raises LoginRefused where its account is not tried."""
        errand = None
        try:
            with self._logins.trying(self.spec.machine.connection, self.name):
                errand = self._errand = self._processes.begin(self.name)
                errand.heard.wait()
                _raise_what_kept_it_out(errand)
        except (LoginRefused, ConnectionLost):
            if errand is None:
                raise
        errand.over.wait()
        return errand.report

    def _timed(self, report: NodeReport) -> NodeReport:
        """With the times of the whole run."""
        began = self._let_in if self._let_in is not None else time.monotonic()
        return structs.replace(report, began=began - self._run_began, seconds=time.monotonic() - began)

    def _so_far(self, failure: Failure) -> NodeReport:
        steps = collect(self._errand.steps) if self._errand is not None else ()
        machine = self.spec.machine
        return self._timed(NodeReport(self.name, machine.address, machine.os, steps, failure))


def _raise_what_kept_it_out(errand: _Errand) -> None:
    """Whether its account is good is known once its machine has answered, and what is wrong with it where it was refused."""
    if errand.answered:
        return
    failure = errand.report.failure if errand.report is not None else None
    if failure is not None and failure.name == LoginRefused.__name__:
        raise LoginRefused(failure.message, hint=failure.hint, node=errand.node)
    raise ConnectionLost(f"{errand.node}: the process ended before the machine answered", node=errand.node)
