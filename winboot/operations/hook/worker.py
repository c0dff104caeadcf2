"""The loop: receive, claim, work, answer the cloud, and only then delete the message.

A worker that is killed anywhere leaves the message in the queue: it is delivered again, to this worker or another one,
and the work continues where it was. Two workers never work on one machine: the claim (a Lease) keeps them apart, and the
fence on the node refuses one that was paused and wakes up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from winboot.base.errors import CloudError, ClusterConflict, ClusterError, WinbootError
from winboot.node.run import Stop
from winboot.operations.hook.message import Nothing, parse
from winboot.operations.hook.metrics import Log, Metrics
from winboot.operations.hook.work import NodeWork, Outcome, Target
from winboot.remote.cloud.base import HookAction, HookQueue, Letter
from winboot.remote.cluster.claims import RESULT, STEP, Claim, Claimant, Leases

_WAITS = {"launch": "Pending", "terminate": "Terminating"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds, except `workers` and `gone_after`: deliveries after which an instance that nobody knows is gone.

    `sweep` lies between two looks at machines that join by themselves, also those that no message names: None for none.
    """

    workers: int = 8
    visibility: int = 120
    heartbeat: float = 30.0
    pause: float = 5.0
    gone_after: int = 5
    idle: float | None = None
    sweep: float | None = None


@dataclass(slots=True)
class Worker:
    """One process. `run` returns when it is asked to stop and holds nothing any more, or after `settings.idle`."""

    queue: HookQueue
    work: NodeWork
    claimant: Claimant
    leases: Callable[[Target], Leases]
    stop: Stop
    settings: Settings = Settings()
    metrics: Metrics = field(default_factory=Metrics)
    log: Log = field(default_factory=Log)
    _held: set[threading.Thread] = field(default_factory=set)
    _ticked: float = field(default_factory=time.monotonic)
    _sweep_due: float = 0.0
    _said: set[tuple[str, str]] = field(default_factory=set)

    @property
    def healthy(self) -> bool:
        """Whether the loop has gone round in the last five minutes: a metadata service may take two for its first answer."""
        return time.monotonic() - self._ticked < 300.0

    def run(self) -> None:
        """Receive until `stop` is requested; then finish what is held."""
        self.log("started", holder=self.claimant.holder)
        quiet = time.monotonic()
        while not self.stop.requested:
            self._ticked = time.monotonic()
            self._held = {thread for thread in self._held if thread.is_alive()}
            if self._held:
                quiet = time.monotonic()
            self._sweep_when_due()
            letters = self._received(self.settings.workers - len(self._held))
            for letter in letters:
                self._start(letter)
            if not letters and self._is_idle(quiet):
                break
        for thread in self._held:
            thread.join()
        self.log("stopped")

    def _is_idle(self, quiet: float) -> bool:
        idle = self.settings.idle
        return idle is not None and not self._held and time.monotonic() - quiet >= idle

    def _received(self, most: int) -> list[Letter]:
        if most <= 0:
            self.stop.wait(min(1.0, self.settings.pause))
            return []
        try:
            return self.queue.receive(most, self.settings.visibility)
        except WinbootError as error:
            # Azure's queue asks cloud, cluster and machines: none of them ends the worker.
            self.metrics.left("queue")
            self.log("nothing received", problem=error.problem, hint=error.hint)
            self.stop.wait(self.settings.pause)
            return []

    def _sweep_when_due(self) -> None:
        every = self.settings.sweep
        if every is None or time.monotonic() < self._sweep_due:
            return
        self._sweep_due = time.monotonic() + every
        try:
            self.sweep()
        except WinbootError as error:
            self.metrics.left("sweep")
            self.log("nothing swept", problem=error.problem, hint=error.hint)

    def sweep(self) -> None:
        """Finish what machines that joined by themselves leave to us: certificates that a kubelet asks for later, too, and
        machines whose group had no hook yet or whose message was lost."""
        verdicts, waiting = self.work.settle()
        for one in verdicts:
            what = "approved" if one.approved else "refused"
            if not one.approved:
                self.metrics.left("certificate request")
            self._say_once(f"certificate request {what}", one.request, reason="; ".join(one.reasons))
        for target in waiting:
            self._finish(target)

    def _finish(self, target: Target) -> None:
        node, leases = target.spec.node.name, self.leases(target)
        claim = self.claimant.take(leases, node, self.work.notes(target))
        if claim is None:
            return
        try:
            outcome = self.work.finish(target)
            if not outcome.good:
                self.metrics.left("machine")
            self._say_once("finished" if outcome.good else "not finished", node, reason=outcome.reason)
        finally:
            # Only what is still ours is given back.
            with suppress(ClusterError):
                leases.renew(claim)
                leases.delete(node)

    def _say_once(self, message: str, about: str, *, reason: str) -> None:
        """What a sweep sees again and again is said the first time."""
        if (message, f"{about} {reason}") not in self._said:
            self._said.add((message, f"{about} {reason}"))
            self.log(message, about=about, reason=reason)

    def _start(self, letter: Letter) -> None:
        thread = threading.Thread(target=self.handle, args=(letter,), name="hook", daemon=True)
        self._held.add(thread)
        thread.start()

    def handle(self, letter: Letter) -> str:
        """Do all that one message asks for; gives what became of it. An error leaves it in the queue."""
        found = letter.action or parse(letter.body)
        kind = "other" if isinstance(found, Nothing) else found.kind
        started = time.monotonic()
        try:
            outcome = self._nothing(letter, found) if isinstance(found, Nothing) else self._act(letter, found)
        except WinbootError as error:
            self.log("left in the queue", kind=kind, problem=error.problem, hint=error.hint)
            outcome = "error"
        except Exception as error:  # noqa: BLE001 - a bug at one machine must not end the work on the others
            self.log("a bug in winboot itself", kind=kind, problem=f"{type(error).__name__}: {error}")
            outcome = "bug"
        worked = time.monotonic() - started if outcome in ("continue", "abandon") else None
        self.metrics.done(kind, outcome, worked)
        return outcome

    def _nothing(self, letter: Letter, found: Nothing) -> str:
        self.log("no work in a message", reason=found.reason)
        self.queue.delete(letter)
        return "ignored"

    def _act(self, letter: Letter, action: HookAction) -> str:
        about = {"kind": action.kind, "instance": action.instance, "group": action.group}
        if not self.queue.state(action).startswith(_WAITS[action.kind]):
            return self._stale(letter, action, about)
        target = self.work.target(action.instance)
        if target is None:
            return self._unknown(letter, action, about)
        leases = self.leases(target)
        claim = self.claimant.take(leases, target.spec.node.name, self.work.notes(target))
        if claim is None:
            self.log("left to the worker that holds it", node=target.spec.node.name, **about)
            return "held"
        keeper = Keeper(self, letter, action, leases, claim)
        try:
            with keeper, self.metrics.held.track_inprogress():
                self.log("begun", node=target.spec.node.name, taken_over=claim.transitions > 0, **about)
                outcome = self._worked(action, target, keeper)
        except WinbootError:
            keeper.release()
            raise
        return self._answered(letter, action, target, keeper, outcome, about)

    def _worked(self, action: HookAction, target: Target, keeper: Keeper) -> Outcome:
        self.queue.begin(action)
        if action.kind == "launch":
            # Whoever had it before may be paused, not dead: the node's fence refuses it when it wakes up.
            return self.work.launch(
                target,
                lambda: keeper.lost,
                take_over=keeper.claim.transitions > 0,
                heard=partial(keeper.note, STEP),
            )
        return self.work.terminate(target)

    def _answered(
        self,
        letter: Letter,
        action: HookAction,
        target: Target,
        keeper: Keeper,
        outcome: Outcome,
        about: dict[str, Any],
    ) -> str:
        """The answer to the cloud, then the claim, and last the message."""
        node = target.spec.node.name
        # An interrupted join is not a failed one.
        interrupted = not outcome.good and self.stop.requested
        if not interrupted:
            keeper.note(RESULT, "ok" if outcome.good else f"failed:{outcome.code}")
        # A worker that was paused learns only now that the machine is another one's: that one answers.
        if not keeper.holds() or interrupted:
            keeper.release()
            self.log("left in the queue", reason=outcome.reason, node=node, **about)
            return "left"
        result = "CONTINUE" if outcome.good else "ABANDON"
        waited = self.queue.complete(action, result)
        self.log("done", result=result, reason=outcome.reason, waited=waited, node=node, **about)
        keeper.release()
        self.queue.delete(letter)
        return result.lower()

    def _stale(self, letter: Letter, action: HookAction, about: dict[str, Any]) -> str:
        """It was answered already, or its time is over: a message delivered twice, or late."""
        self.log("nothing waits for it any more", **about)
        self.queue.delete(letter)
        return "stale"

    def _unknown(self, letter: Letter, action: HookAction, about: dict[str, Any]) -> str:
        """Another cluster's machine is left alone; one that the cloud does not know (yet) is tried again a few times."""
        if self.work.host(action.instance) is not None:
            self.log("left alone: the inventory does not mean it", **about)
            return "foreign"
        if letter.received < self.settings.gone_after:
            self.log("the cloud does not know it yet", **about)
            return "unknown"
        self.log("gone", **about)
        self.queue.delete(letter)
        return "gone"


class Keeper:
    """Keeps message, hook and claim alive while the work lasts, from one timer. `lost` once another worker has the claim."""

    def __init__(
        self, worker: Worker, letter: Letter, action: HookAction, leases: Leases, claim: Claim
    ) -> None:
        self._worker, self._letter, self._action = worker, letter, action
        self._leases, self.claim = leases, claim
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"keeper-{action.instance}", daemon=True)
        self._notes: dict[str, str] = {}
        self.lost = False

    def note(self, key: str, text: str) -> None:
        """What the claim is to say from its next renewal on."""
        self._notes = {**self._notes, key: text}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def holds(self) -> bool:
        """Whether the claim is ours, asked now: renewed, nobody else can take it for its whole duration."""
        if not self.lost:
            with suppress(ClusterConflict):
                self._renew()
        return not self.lost

    def release(self) -> None:
        """Give the claim back, where it is still ours. That it cannot be is no harm: it is over after its duration."""
        try:
            if self.holds():
                self._leases.delete(self.claim.node)
        except ClusterError as error:
            self._worker.log(
                "a claim was not given back", instance=self._action.instance, problem=error.problem
            )

    def _loop(self) -> None:
        while not self._ended.wait(self._worker.settings.heartbeat):
            for keep in (self._renew, self._extend, self._beat):
                try:
                    keep()
                except (CloudError, ClusterError) as error:
                    self._worker.log(
                        "a heartbeat failed", instance=self._action.instance, problem=error.problem
                    )

    def _renew(self) -> None:
        try:
            notes = {**self.claim.notes, **self._notes}
            self.claim = self._leases.renew(replace(self.claim, notes=notes))
        except ClusterConflict:
            self.lost = True
            self._ended.set()
            raise

    def _extend(self) -> None:
        if not self.lost:
            self._worker.queue.extend(self._letter, self._worker.settings.visibility)

    def _beat(self) -> None:
        if not self.lost:
            self._worker.queue.heartbeat(self._action)
