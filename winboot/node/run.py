"""One node, driven: look, change, restart, wait for a detached run, continue, until nothing is left to do.

The same script text runs in every pass; what differs is the mode, the secrets (only in Change) and the facts the
controller knows. A lost connection, a restart or a killed controller needs no memory here: the next pass looks again.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Protocol

from winboot.base.errors import (
    Busy,
    ConnectionLost,
    ExcessiveOutput,
    IncompleteRun,
    Interrupted,
    NodeFailed,
    ProtocolError,
    QuietNode,
    RestartForbidden,
    Superseded,
    TransportError,
    Unreachable,
    WinbootError,
)
from winboot.base.limits import (
    EVENTS_PER_STEP,
    LARGEST_PASS,
    LARGEST_RUN,
    LONGEST_DETACHED,
    LONGEST_NOISE,
    MORE_EVENTS,
    MOST_DETACHED,
    MOST_LOST,
    MOST_NOISE,
    MOST_PASSES,
)
from winboot.base.retry import retried
from winboot.base.secret import Secret
from winboot.node.names import refuse_second_claim
from winboot.remote.transport.base import Transport
from winboot.report.events import (
    Detached,
    Event,
    LibraryMissing,
    RebootWanted,
    RunEnded,
    RunStarted,
    StepDone,
    parse,
)
from winboot.report.journal import Journal
from winboot.report.notices import Notice, PassBegun, Waiting
from winboot.script.rendering import Helpers, Script

Mode = Literal["Look", "Change", "Undo"]
Facts = Mapping[str, object]

# How a pass ends that went through all steps of the plan.
WHOLE_PASSES: Final = frozenset({"complete", "reboot"})
# What a new connection can cure.
RETRIED: Final = (Unreachable, ConnectionLost, Busy)
# An id as Get-BootId writes it; an error or a warning of the machine is not one.
BOOT_ID: Final = re.compile(r"[0-9A-Za-z-]+")
# How often the old boot id is answered before winboot requests a restart again, when the machine had taken the
# request.
PATIENT_ANSWERS: Final = 24


class Stop:
    """Tells every node's work to end at its next safe point, after Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._urgent = threading.Event()
        # The exit code of the command: 128 and the number of the signal.
        self.exit_code = Interrupted.exit_code

    def request(self, signal: int | None = None) -> None:
        """Ask all work to end; a second time: at once, without waiting for any node."""
        if self._event.is_set():
            self._urgent.set()
        elif signal is not None:
            self.exit_code = 128 + signal
        self._event.set()

    @property
    def urgent(self) -> bool:
        """Whether the nodes are not to be waited for any more."""
        return self._urgent.is_set()

    @property
    def requested(self) -> bool:
        """Whether the work should end now."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, or less when the work should end; True when it should."""
        return self._event.wait(seconds)


class Listener(Protocol):
    """Hears of everything that happens on the nodes; called from the nodes' threads."""

    def event(self, node: str, event: Event | Notice) -> None:
        """The node's script said something, or the controller begins, waits or ends."""

    def say(self, node: str, text: str) -> None:
        """The controller does something for the node: connecting, waiting, restarting."""


class Quiet:
    """A listener that says nothing: a log or the journal has it all."""

    def event(self, node: str, event: Event | Notice) -> None:
        """Nothing."""

    def say(self, node: str, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the controller waits for a node, in seconds of its own clock."""

    poll: float = 5.0
    reconnect: float = 600.0
    restart: float = 1800.0
    detached_margin: float = 120.0
    held: float = 900.0
    # A machine that answers, but not yet: how long its first session is tried for.
    first: float = 60.0
    # The longest silence of a script: DISM with a slow source takes half an hour.
    quiet: float = 3600.0


@dataclass(slots=True)
class RunRecord:
    """What a node's run cost and met; filled while it runs."""

    pipelines: int = 0
    reboots: int = 0
    detached: int = 0
    reconnects: int = 0
    steps: list[StepDone] = field(default_factory=list)
    started: RunStarted | None = None
    # By the clock of time.monotonic: when each step was last reported as not as wanted, or as changed.
    told: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pipeline, from its first event to its last."""

    started: RunStarted
    steps: tuple[StepDone, ...]
    ended: RunEnded
    reboot: RebootWanted | None
    detached: Detached | None

    @property
    def to_change(self) -> tuple[StepDone, ...]:
        """The steps that are not as wanted."""
        return tuple(step for step in self.steps if step.state != "ok")


@dataclass(slots=True)
class ScriptState:
    """What a pipeline has said so far."""

    started: RunStarted | None = None
    ended: RunEnded | None = None
    reboot: RebootWanted | None = None
    detached: Detached | None = None
    steps: list[StepDone] = field(default_factory=list)
    noise: int = 0
    events: int = 0


def superseded(node: str, by: str) -> Superseded:
    """What ends a run whose node is another's by now."""
    return Superseded(
        f"{node}: another run has taken over this node: {by}",
        hint="Wait until that run ends; then `winboot plan` shows the remaining differences.",
        node=node,
    )


class ScriptRunner:
    """The run of one script on one node. Not shared between threads; `close` when done."""

    def __init__(
        self,
        node: str,
        script: Script,
        helpers: Helpers,
        connect: Callable[[], Transport],
        *,
        steps: Sequence[str],
        listener: Listener,
        journal: Journal,
        patience: Patience,
        restarts: bool = True,
        undoes: bool = False,
        stop: Stop,
        now: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self.node = node
        self.record = RunRecord()
        # Receives the machine's identity at the beginning of each pass; what it raises ends the run.
        self.on_started: Callable[[RunStarted], None] = lambda started: None
        self._script = script
        # Whether the machine is believed to keep the library: then the script goes without it.
        self._expects_library = False
        # The names of the plan's steps, in the order in which the script reports them.
        self._steps = tuple(steps)
        self._heard = time.monotonic()
        # Characters that the machine has said in this run.
        self._said = 0
        self._helpers = helpers
        self._connect = connect
        self._listener = listener
        self._journal = journal
        self._patience = patience
        self._restarts = restarts
        # The script of `remove`: steps of an older profile have left their notes.
        self._undoes = undoes
        self._stop = stop
        # The time that the machine's clock is compared with, or None without one.
        self._now = now
        self._transport: Transport | None = None
        # Which run has taken the node over, as far as the claims say.
        self._taken_by = ""
        # The run that this one waits for, once that was reported.
        self._holder = ""

    def expect_library(self) -> None:
        """From now on send the script without the library; a machine that does not keep it is sent the whole one."""
        self._expects_library = True

    def exchange(self, script: Script, steps: Sequence[str]) -> None:
        """Run another script from now on, in the same session. What the first one reported of its steps counts no
        more."""
        self._script = script
        self._steps = tuple(steps)
        self.record.steps.clear()

    def look(self, facts: Facts) -> Pass:
        """Run the script in mode Look: nothing is changed and no secret travels. Raises the error that ended it."""
        return self._persist("Look", facts, {})

    def change(self, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        """Run the script in mode Change until it has nothing left to do, over restarts and detached runs.

        Returns the last pass. Raises Superseded, NodeFailed (held, or going round in circles) or a TransportError.
        """
        for secret in secrets.values():
            self._journal.hide(secret)
        return self._until_done("Change", facts, secrets)

    def undo(self, facts: Facts) -> Pass:
        """The same in mode Undo, with the script of `remove`."""
        return self._until_done("Undo", facts, {})

    def _until_done(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        deadline_held = time.monotonic() + self._patience.held
        detached_until: dict[str, float] = {}
        passes = 0
        while passes < MOST_PASSES:
            done = self._persist(mode, facts, secrets)
            match done.ended.reason:
                case "complete":
                    return done
                case "reboot":
                    passes += 1
                    self._restart(done)
                case "detached":
                    # Asking again is not a new attempt: the run on the node has a deadline of its own.
                    self._wait_detached(done, detached_until)
                case "held":
                    self._wait_held(done.ended.message, deadline_held)
                case "superseded":
                    raise superseded(self.node, done.ended.message)
                case reason:
                    raise NodeFailed(
                        f"{self.node}: the script ended for the unknown reason {reason!r}",
                        hint="The script on the node is of another winboot version; run the command again.",
                        node=self.node,
                    )
        raise NodeFailed(
            f"{self.node}: not finished after {MOST_PASSES} restarts",
            hint="A step asks for a restart after each restart; `winboot plan` shows this step. See the node's journal.",
            node=self.node,
        )

    def forget(self) -> None:
        """Close, and drop the node's part of the script: some 40 KB for each node that has ended."""
        self.close()
        self._script = replace(self._script, node_part="", files=())

    def close(self) -> None:
        """End the session on the node, if there is one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def interrupt(self) -> None:
        """End the script that runs on the node now; for another thread, after a request to stop."""
        transport = self._transport
        if transport is not None:
            transport.interrupt()

    def supersede(self, by: str) -> None:
        """Another run has the node now: end at the next safe point, from any thread."""
        self._taken_by = by
        self.interrupt()

    def _persist(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        """One pass, tried again after errors that a new connection can cure.

        A machine that was reached is waited for, `patience.reconnect` seconds; one that was never reached fails at
        once, unless it answers that it is busy (`patience.first`). A machine that breaks every session off is not
        tried without end.
        """
        begun, lost = time.monotonic(), 0

        def helps(error: WinbootError) -> bool:
            nonlocal lost
            lost += isinstance(error, ConnectionLost)
            reached = self.record.pipelines > 0 or lost > 0
            patience = self._patience.reconnect if reached else self._patience.first
            return (
                (reached or isinstance(error, Busy))
                and lost < MOST_LOST
                and time.monotonic() - begun < patience
            )

        def again_after(error: WinbootError) -> None:
            self.record.reconnects += 1
            left = self._patience.reconnect - (time.monotonic() - begun)
            self._wait(f"connection lost ({error.problem}); continuing", max(0.0, left))

        return retried(
            lambda: self._try_pass(mode, facts, secrets),
            max(self._patience.reconnect, self._patience.first),
            *RETRIED,
            when=helps,
            pause=self._patience.poll,
            sleep=self._pause,
            between=again_after,
        )

    def _try_pass(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        """One pass; the session is given up where it fails."""
        self._check_stop()
        try:
            return self._pass(mode, facts, secrets)
        except TransportError as error:
            self._drop(error)
            # A script that we ended ourselves is not a failure of its node.
            self._check_stop()
            raise

    def _pass(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        transport = self._open()
        run = uuid.uuid4().hex
        heard = ScriptState()
        self._journal.write("pass", {"mode": mode, "run": run})
        self._listener.event(self.node, PassBegun(self._steps, mode == "Look"))
        now = self._now()
        seconds = None if now is None else round(now.timestamp())
        arguments = {"Mode": mode, "RunId": run, "Facts": {**facts, "Now": seconds}}
        self._heard = time.monotonic()
        transport.on_quiet = lambda: self._check_quiet(heard)
        # Nothing here holds the whole text, half a megabyte, while the machine is listened to.
        if self._expects_library:
            kept = self._script.kept
            short = {**arguments, **kept.texts}
            self._listen(transport.run(kept.loader, short, secrets), run, heard)
        if not self._expects_library:
            self._listen(transport.run(self._script.text, arguments, secrets), run, heard)
        done = self._judge(mode, heard)
        # A change that went through all steps has kept the library.
        self._expects_library |= mode == "Change" and done.ended.reason in WHOLE_PASSES
        return done

    def _listen(self, lines: Iterator[str], run: str, heard: ScriptState) -> None:
        for line in self._bounded(lines):
            self._hear(line, run, heard)
            self._check_quiet(heard)

    def _bounded(self, lines: Iterator[str]) -> Iterator[str]:
        """What a script says, as much as any of our scripts could. Raises ExcessiveOutput beyond that."""
        before = self._said
        for line in lines:
            self._said += len(line) + 1
            if self._said - before > LARGEST_PASS:
                raise self._excess(f"more than {LARGEST_PASS >> 20} MiB in one pass of the script")
            if self._said > LARGEST_RUN:
                raise self._excess(f"more than {LARGEST_RUN >> 20} MiB in one run")
            yield line

    def _excess(self, what: str) -> ExcessiveOutput:
        return ExcessiveOutput(
            f"{self.node}: the machine sent {what}",
            hint="winboot's scripts never do this: check the machine. docs/security.md lists all limits.",
            node=self.node,
        )

    def _count(self, event: Event, heard: ScriptState) -> None:
        """One more event of a pass, as far as a script of this plan may have so many."""
        heard.events += 1
        most = EVENTS_PER_STEP * len(self._steps) + MORE_EVENTS
        if heard.events > most:
            raise self._excess(f"more than {most} events in one pass of the script")
        if isinstance(event, RunStarted) and heard.started is not None:
            raise self._excess("its identity twice in one pass")

    def _hear(self, line: str, run: str, heard: ScriptState) -> None:
        """One line of the script: an event of this run, or noise, of which the journal keeps the beginning."""
        event = parse(line, run)
        if event is None:
            heard.noise += 1
            if heard.noise <= MOST_NOISE:
                self._journal.write("noise", {"line": line[:LONGEST_NOISE]})
            return
        self._count(event, heard)
        self._journal.write("event", {"line": line})
        self._heard = time.monotonic()
        if isinstance(event, LibraryMissing):
            # Nothing that a caller needs: the whole script follows.
            self._expects_library = False
            return
        self._listener.event(self.node, event)
        match event:
            case RunStarted():
                if self.record.started is not None:
                    refuse_second_claim(self.node, self.record.started, event)
                self.on_started(event)
                heard.started = self.record.started = event
            case StepDone():
                heard.steps.append(event)
                # At once, too: the report of a run that breaks off has what was done.
                self.record.steps.append(event)
                if event.state != "ok":
                    self.record.told[event.step] = time.monotonic()
            case RebootWanted():
                heard.reboot = event
            case Detached():
                heard.detached = event
            case RunEnded():
                heard.ended = event

    def _judge(self, mode: Mode, heard: ScriptState) -> Pass:
        """What a pass came to. Raises ConnectionLost for one that broke off, IncompleteRun for one that says less, or
        more, than its plan."""
        if heard.started is None or heard.ended is None:
            raise ConnectionLost(
                f"{self.node}: the output is incomplete", hint="Run the command again.", node=self.node
            )
        self.record.pipelines += 1
        if heard.noise > MOST_NOISE:
            self._journal.write("noise", {"line": f"({heard.noise - MOST_NOISE} more lines were dropped)"})
        problem = heard.ended.problem
        if problem is not None:
            # Outside of any step: what the run needs itself, such as its fence, could not be read or written.
            raise NodeFailed(
                f"{self.node}: {problem.id}: {problem.message}", hint=problem.hint, node=self.node
            )
        self._refuse_incomplete(mode, [step.step for step in heard.steps], heard.ended.reason)
        return Pass(heard.started, tuple(heard.steps), heard.ended, heard.reboot, heard.detached)

    def _refuse_incomplete(self, mode: Mode, told: Sequence[str], reason: str) -> None:
        """A look, and a change that went through all steps, names each step of the plan once."""
        counts = Counter(told)
        wrong = [f"{name} {count} times" for name, count in counts.items() if count > 1]
        strangers = [name for name in counts if name not in self._steps]
        wrong += [f"{name}, which is not in the plan" for name in strangers if not self._undoes]
        missing = [name for name in self._steps if name not in counts]
        if missing and (mode == "Look" or reason in WHOLE_PASSES):
            wrong.append(f"{len(counts)} of {len(self._steps)} steps, not {missing[0]}")
        if mode == "Look" and reason != "complete":
            wrong.append(f"the end {reason!r} of a look")
        if wrong:
            raise IncompleteRun(
                f"{self.node}: the script reported {'; '.join(wrong)}",
                hint="Run the same command again; if it fails again, report a bug with the node's journal.",
                node=self.node,
            )

    def _check_quiet(self, heard: ScriptState) -> None:
        """Called while the script says nothing, and after each line of it."""
        self._check_stop()
        silence = time.monotonic() - self._heard
        if silence > self._patience.quiet:
            told = {step.step for step in heard.steps}
            due = next((name for name in self._steps if name not in told), "the end of the run")
            raise QuietNode(
                f"{self.node}: the script has sent nothing for {silence:.0f} s; winboot waits for {due}",
                hint="Look on the machine for a hanging DISM, WMI or download, then run the same command again.",
                node=self.node,
            )

    def _open(self) -> Transport:
        if self._transport is None:
            self._listener.say(self.node, "connecting")
            self._transport = self._connect()
        return self._transport

    def _drop(self, error: WinbootError) -> None:
        self._journal.write("error", {"name": type(error).__name__, "problem": error.problem})
        self.close()

    def _restart(self, done: Pass) -> None:
        """Restart the machine and wait until its boot id has changed: a port that answers proves nothing.

        A request that the machine refused is sent again once the old boot id has answered. It is guarded by that id,
        so that a machine which has restarted meanwhile does not do so twice.
        """
        names = ", ".join(done.reboot.steps) if done.reboot else "a pending change"
        if not self._restarts:
            raise RestartForbidden(
                f"{self.node}: the machine needs a restart for {names}, which --no-restart forbids",
                hint="When the machine may restart, run the same command again without --no-restart.",
                node=self.node,
            )
        self.record.reboots += 1
        self._wait(f"restarting for {names}", self._patience.restart)
        before = done.started.boot_id
        if not before:
            raise NodeFailed(
                f"{self.node}: the machine reports no boot id, so winboot could not detect a restart",
                hint="Restart the machine by hand, then run the same command again.",
                node=self.node,
            )
        taken = self._ask_to_restart(names, before)
        deadline, answers = time.monotonic() + self._patience.restart, 0
        strange: ProtocolError | None = None
        while time.monotonic() < deadline:
            self._pause(self._patience.poll)
            try:
                now, strange = self._boot_id(), None
            except ProtocolError as error:
                # A machine that goes down still starts programs, and ends them before they have said anything
                # (Microsoft's System Error Codes, 624 ERROR_DLL_INIT_FAILED_LOGOFF).
                now, strange = None, error
            if now == before:
                answers += 1
                if not taken or answers % PATIENT_ANSWERS == 0:
                    taken = self._ask_to_restart(names, before)
            elif now:
                self._listener.say(self.node, "the machine answers again after the restart")
                return
        if strange is not None:
            raise strange
        raise Unreachable(
            f"{self.node}: the machine does not answer {self._patience.restart:.0f} s after the restart",
            hint="Look at the machine's console; when it answers again, run the same command.",
            node=self.node,
        )

    def _ask_to_restart(self, names: str, boot_id: str) -> bool:
        """Send the request; whether the machine took it. It may go down while it answers."""
        try:
            # Another controller may have restarted it meanwhile; that one's work is not interrupted for nothing.
            arguments = {"Reason": f"winboot: {names}", "BootId": boot_id}
            for line in self._bounded(self._open().run(self._helpers.restart, arguments, {})):
                self._journal.write("noise", {"line": line[:LONGEST_NOISE]})
        except TransportError as error:
            self._drop(error)
            return False
        self.close()
        return True

    def _boot_id(self) -> str | None:
        """The id of the machine's current boot; None while it does not answer, or does not say it."""
        try:
            lines = [
                line[:LONGEST_NOISE].strip()
                for line in self._bounded(self._open().run(self._helpers.boot_id, {}, {}))
            ]
        except TransportError as error:
            self._drop(error)
            if not error.worth_retrying:
                raise
            return None
        # winboot does not believe a restart that no look saw: only an id proves it.
        return next((line for line in reversed(lines) if BOOT_ID.fullmatch(line)), None)

    def _wait_detached(self, done: Pass, until: dict[str, float]) -> None:
        if done.detached is None:
            raise NodeFailed(f"{self.node}: the script ended as detached without a run's id", node=self.node)
        run = done.detached
        if not 0 <= run.timeout_s <= LONGEST_DETACHED:
            raise self._excess(
                f"that {run.step} runs detached for {run.timeout_s} s, of at most {LONGEST_DETACHED}"
            )
        if run.id not in until:
            if len(until) == MOST_DETACHED:
                raise self._excess(f"more than {MOST_DETACHED} detached runs")
            self.record.detached += 1
            until[run.id] = time.monotonic() + run.timeout_s + self._patience.detached_margin
            self._listener.event(
                self.node, Waiting(f"{run.step}: continues as a task on the node", run.timeout_s)
            )
        if time.monotonic() > until[run.id]:
            raise NodeFailed(
                f"{self.node}: {run.step} has run detached for more than {run.timeout_s} s and reported no result",
                hint=rf"Read C:\ProgramData\winboot\detached\{run.id}.json on the node, then run the command again.",
                node=self.node,
            )
        # The session may not survive what the run does to the network: leave it before it dies.
        self.close()
        self._pause(self._patience.poll)

    def _wait_held(self, holder: str, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise NodeFailed(
                f"{self.node}: held by another run: {holder}",
                hint="Wait for that run, or use --take-over if that run no longer exists.",
                node=self.node,
            )
        if holder != self._holder:
            self._holder = holder
            self._wait(f"held by another run ({holder}); waiting", max(0.0, deadline - time.monotonic()))
        self._pause(self._patience.poll)

    def _wait(self, why: str, most: float) -> None:
        """Tell what is waited for, and for how many seconds at most."""
        self._listener.say(self.node, why)
        self._listener.event(self.node, Waiting(why, most))

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._taken_by:
            raise superseded(self.node, self._taken_by)
        if self._stop.requested:
            raise Interrupted(
                f"{self.node}: interrupted",
                hint="Run the same command again: it continues where it stopped.",
                node=self.node,
            )
