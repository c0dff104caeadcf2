"""One node, driven: look, change, restart, wait for a detached run, go on, until nothing is left to do.

The same script text runs in every pass; what differs is the mode, the secrets (only in Change) and the facts the
controller knows. A lost connection, a restart or a killed controller needs no memory here: the next pass looks again.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from winboot.errors import (
    ConnectionLost,
    Interrupted,
    NodeFailed,
    Superseded,
    TransportError,
    Unreachable,
    WinbootError,
)
from winboot.events import Detached, Event, RebootWanted, RunEnded, RunStarted, StepDone, parse
from winboot.journal import Journal
from winboot.script import Helpers
from winboot.secret import Secret
from winboot.transport.base import Transport

Mode = Literal["Look", "Change"]
Facts = Mapping[str, object]

# A run that needs more passes than this is going round in circles; a bare machine needs three to five.
MOST_PASSES: Final = 20


class Stop:
    """Tells every node's work to end at its next safe point, after Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        """Ask all work to end."""
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether the work should end now."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, or less when the work should end; True when it should."""
        return self._event.wait(seconds)


class Listener(Protocol):
    """Hears of everything that happens on the nodes; called from the nodes' threads."""

    def event(self, node: str, event: Event) -> None:
        """The node's script said something."""

    def say(self, node: str, text: str) -> None:
        """The controller does something for the node: connecting, waiting, restarting."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the controller waits for a node, in seconds of its own clock."""

    poll: float = 5.0
    reconnect: float = 600.0
    restart: float = 1800.0
    detached_margin: float = 120.0
    held: float = 900.0


@dataclass(slots=True)
class RunRecord:
    """What a node's run cost and met; filled while it goes on."""

    pipelines: int = 0
    reboots: int = 0
    detached: int = 0
    reconnects: int = 0
    steps: list[StepDone] = field(default_factory=list)
    started: RunStarted | None = None


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
        return tuple(step for step in self.steps if step.state not in ("ok", "skipped"))


class ScriptRunner:
    """The run of one script on one node. Not shared between threads; `close` when done."""

    def __init__(
        self,
        node: str,
        script: str,
        helpers: Helpers,
        connect: Callable[[], Transport],
        *,
        listener: Listener,
        journal: Journal,
        patience: Patience,
        stop: Stop,
    ) -> None:
        self.node = node
        self.record = RunRecord()
        self._script = script
        self._helpers = helpers
        self._connect = connect
        self._listener = listener
        self._journal = journal
        self._patience = patience
        self._stop = stop
        self._transport: Transport | None = None

    def look(self, facts: Facts) -> Pass:
        """Run the script in mode Look: nothing is changed and no secret travels. Raises the error that ended it."""
        return self._persist("Look", facts, {})

    def change(self, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        """Run the script in mode Change until it has nothing left to do, over restarts and detached runs.

        Returns the last pass. Raises Superseded, NodeFailed (held, or going round in circles) or a TransportError.
        """
        for secret in secrets.values():
            self._journal.hide(secret)
        deadline_held = time.monotonic() + self._patience.held
        detached_until: dict[str, float] = {}
        passes = 0
        while passes < MOST_PASSES:
            done = self._persist("Change", facts, secrets)
            match done.ended.reason:
                case "complete":
                    return done
                case "reboot":
                    passes += 1
                    self._restart(done)
                case "detached":
                    # Asking again is no new attempt: the run on the node has a deadline of its own.
                    self._wait_detached(done, detached_until)
                case "held":
                    self._wait_held(done.ended.message, deadline_held)
                case "superseded":
                    raise Superseded(
                        f"{self.node}: another run has taken over: {done.ended.message}",
                        hint="Let that run finish; `winboot plan` shows what is left.",
                        node=self.node,
                    )
                case reason:
                    raise NodeFailed(
                        f"{self.node}: the script ended for the unknown reason {reason!r}",
                        hint="The node's script is of another winboot version; run the command again.",
                        node=self.node,
                    )
        raise NodeFailed(
            f"{self.node}: {MOST_PASSES} restarts and still not done",
            hint="A step asks for a restart again and again; `winboot plan` names it. See the node's journal.",
            node=self.node,
        )

    def close(self) -> None:
        """End the session on the node, if there is one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _persist(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        """One pass, tried again after errors that a new connection can cure, for `patience.reconnect` seconds."""
        deadline = time.monotonic() + self._patience.reconnect
        reached = self.record.pipelines > 0
        while True:
            self._check_stop()
            try:
                return self._pass(mode, facts, secrets)
            except TransportError as error:
                self._drop(error)
                reached = reached or isinstance(error, ConnectionLost)
                if not error.worth_retrying or not reached or time.monotonic() >= deadline:
                    raise
                self.record.reconnects += 1
                self._listener.say(self.node, f"connection lost ({error.problem}); going on")
                self._pause(self._patience.poll)

    def _pass(self, mode: Mode, facts: Facts, secrets: Mapping[str, Secret]) -> Pass:
        transport = self._open()
        run = uuid.uuid4().hex
        started: RunStarted | None = None
        ended: RunEnded | None = None
        reboot: RebootWanted | None = None
        detached: Detached | None = None
        steps: list[StepDone] = []
        self._journal.write("pass", {"mode": mode, "run": run})
        arguments = {"Mode": mode, "RunId": run, "Facts": dict(facts)}
        for line in transport.run(self._script, arguments, secrets):
            event = parse(line)
            self._journal.write("event" if event else "noise", {"line": line})
            if event is None or event.run != run:
                continue
            self._listener.event(self.node, event)
            match event:
                case RunStarted():
                    # At once: whoever approves certificates meanwhile asks for the machine's name and address.
                    started = self.record.started = event
                case StepDone():
                    steps.append(event)
                case RebootWanted():
                    reboot = event
                case Detached():
                    detached = event
                case RunEnded():
                    ended = event
            self._check_stop()
        if started is None or ended is None:
            raise ConnectionLost(
                f"{self.node}: the script's output ended early", hint="Run the command again.", node=self.node
            )
        self.record.pipelines += 1
        self.record.steps.extend(steps)
        if ended.problem is not None:
            # Outside of any step: what the run needs itself, such as its fence, could not be read or written.
            raise NodeFailed(
                f"{self.node}: {ended.problem.id}: {ended.problem.message}",
                hint=ended.problem.hint,
                node=self.node,
            )
        return Pass(started, tuple(steps), ended, reboot, detached)

    def _open(self) -> Transport:
        if self._transport is None:
            self._listener.say(self.node, "connecting")
            self._transport = self._connect()
        return self._transport

    def _drop(self, error: WinbootError) -> None:
        self._journal.write("error", {"name": type(error).__name__, "problem": error.problem})
        self.close()

    def _restart(self, done: Pass) -> None:
        """Restart the machine and wait until its boot id has changed: a port that answers proves nothing."""
        self.record.reboots += 1
        names = ", ".join(done.reboot.steps) if done.reboot else "a pending change"
        self._listener.say(self.node, f"restarting for {names}")
        try:
            # Another controller may have restarted it meanwhile; that one's work is not interrupted for nothing.
            arguments = {"Reason": f"winboot: {names}", "BootId": done.started.boot_id}
            for line in self._open().run(self._helpers.restart, arguments, {}):
                self._journal.write("noise", {"line": line})
        except TransportError as error:
            # The machine may go down while it answers; only a boot id that stays the same is a failure.
            self._journal.write("error", {"name": type(error).__name__, "problem": error.problem})
        self.close()
        deadline = time.monotonic() + self._patience.restart
        while time.monotonic() < deadline:
            self._pause(self._patience.poll)
            if self._boot_id() not in (None, done.started.boot_id):
                self._listener.say(self.node, "back after the restart")
                return
        raise Unreachable(
            f"{self.node}: not back {self._patience.restart:.0f} s after the restart",
            hint="Look at the machine's console; when it answers again, run the same command.",
            node=self.node,
        )

    def _boot_id(self) -> str | None:
        """The id of the machine's current boot; None while it does not answer."""
        try:
            lines = list(self._open().run(self._helpers.boot_id, {}, {}))
        except TransportError as error:
            self._drop(error)
            if not error.worth_retrying:
                raise
            return None
        return lines[-1].strip() if lines else None

    def _wait_detached(self, done: Pass, until: dict[str, float]) -> None:
        if done.detached is None:
            raise NodeFailed(f"{self.node}: the script ended as detached and names no run", node=self.node)
        run = done.detached
        if run.id not in until:
            self.record.detached += 1
            until[run.id] = time.monotonic() + run.timeout_s + self._patience.detached_margin
        if time.monotonic() > until[run.id]:
            raise NodeFailed(
                f"{self.node}: {run.step} runs detached since more than {run.timeout_s} s and has not said how it ended",
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
                hint="Wait for it, or use --take-over when that run is gone.",
                node=self.node,
            )
        self._listener.say(self.node, f"held by another run ({holder}); waiting")
        self._pause(self._patience.poll)

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.requested:
            raise Interrupted(
                f"{self.node}: interrupted", hint="Run the same command again; it goes on.", node=self.node
            )
