"""Receive, hold, claim, work, answer the cloud, and only then delete the message.

    receiver   takes every message there is: one that waits holds no worker
    minders    keep what waits alive: the message in the queue, and the hook in its group
    watch      looks at all machines that still boot together; a join begins when one answers and a worker is free

Ends and notices begin at once, each beside the others. A worker that is killed anywhere leaves the messages in the queue:
they are delivered again, to this worker or another one, and the work continues where it was. Two workers never work on one
machine: the claim (a Lease) keeps them apart, and the fence on the node refuses one that was paused and wakes up.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from zlib import crc32

from winboot.base.errors import (
    CloudRefused,
    CloudUnreachable,
    ClusterError,
    InvalidInput,
    UsageError,
    WinbootError,
)
from winboot.node.run import Stop
from winboot.operations.hook.cases import Case, Cases
from winboot.operations.hook.keeper import Keeper
from winboot.operations.hook.message import Nothing, parse
from winboot.operations.hook.metrics import Log, Metrics
from winboot.operations.hook.pace import Pace
from winboot.operations.hook.work import NodeWork, Outcome, Place, Target
from winboot.remote.cloud.base import HookNeeds, HookQueue, Letter
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.claims import PROVIDER_ID, RESULT, STEP, Claim, Claimant, Leases
from winboot.remote.cluster.labels import CORDON, FOR_AN_EVENT, MEANWHILE

# States in which a group has let a machine in, or works on letting it in: an end has nothing to do there.
_STAYS: Final = (
    *("InService", "Pending", "Standby", "EnteringStandby", "Detach"),
    *("Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated"),
)
# How long SQS keeps a message that is kept, from its first delivery on, is 12 hours (SQS developer guide, "Visibility
# timeout"); a drain that would last longer goes on with the next delivery.
_LONGEST_S: Final = 11 * 3600.0
# How long a machine that was told to be taken away is waited for, so that its Node goes with it.
_LAST_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds, except `workers` (joins at a time), `minders` (threads) and `gone_after`: looks, or deliveries, after which an
    instance that nobody knows is gone, and failures after which a message is left to the queue.

    `sweep` lies between two looks at machines that join by themselves, also those that no message names: None for none.
    `look` is how often what waits is looked through, `again` when what could not be done is tried again.
    """

    workers: int = 8
    visibility: int = 120
    heartbeat: float = 30.0
    pause: float = 5.0
    gone_after: int = 5
    idle: float | None = None
    sweep: float | None = None
    minders: int = 4
    look: float = 1.0
    again: float = 15.0

    def needs(self, work: NodeWork, claim: float) -> HookNeeds:
        """What the hooks of a group must allow: a message comes again when nobody keeps it, and a claim is over when nobody
        has renewed it."""
        return HookNeeds(
            takeover=self.heartbeat + self.visibility + claim + self.again,
            join=work.join_timeout,
            drain=work.drain_timeout,
            workers=self.workers,
        )


@dataclass(slots=True)
class Worker:
    """One process. `run` returns when it is asked to stop and holds nothing any more, or after `settings.idle`."""

    queue: HookQueue
    work: NodeWork
    claimant: Claimant
    leases: Callable[[Cluster], Leases]
    stop: Stop
    settings: Settings = Settings()
    metrics: Metrics = field(default_factory=Metrics)
    log: Log = field(default_factory=Log)
    pace: Pace = field(default_factory=Pace)
    cases: Cases = field(default_factory=Cases)
    _ticked: dict[str, float] = field(default_factory=dict)
    _deaf: bool = True
    _sweep_due: float = 0.0
    _said: set[tuple[str, str]] = field(default_factory=set)
    _groups: set[str] = field(default_factory=set)
    # Machines that will not stay, why, and until when that counts: a launch message may come after the notice.
    _doomed: dict[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether receiver and watch have gone round in the last five minutes: a metadata service may take two for its
        first answer."""
        now = self.pace.now()
        return all(now - at < 300.0 for at in self._ticked.values())

    @property
    def ready(self) -> bool:
        """Whether it is healthy and the last question for messages was answered."""
        return self.healthy and not self._deaf

    # The loops.

    def run(self) -> None:
        """Receive until `stop` is requested; then finish what is worked on and give back what waits. Raises UsageError and
        CloudRefused where the queue is not there, or not for this account, when it is asked for the first time."""
        self.log("started", holder=self.claimant.holder)
        self._say_what_does_not_fit_now()
        over = self.pace.stop()
        beside = [
            self.pace.spawn(f"minder-{at}", partial(self._mind, at, over))
            for at in range(self.settings.minders)
        ]
        beside.append(self.pace.spawn("watch", partial(self._watch, over)))
        try:
            self._receive()
        finally:
            self._give_back()
            while self.cases.working():
                self.pace.stop().wait(min(self.settings.look, 0.2))
            over.request()
            for one in beside:
                one.join()
        self.log("stopped")

    def _receive(self) -> None:
        quiet, first = self.pace.now(), True
        while not self.stop.requested:
            self._ticked["receiver"] = self.pace.now()
            self._sweep_when_due()
            letters = self._received(first=first)
            first = False
            for letter in letters:
                self._accept(letter)
            if letters or len(self.cases):
                quiet = self.pace.now()
            idle = self.settings.idle
            if idle is not None and not letters and self.pace.now() - quiet >= idle:
                break

    def _received(self, *, first: bool) -> list[Letter]:
        try:
            letters = self.queue.receive(10, self.settings.visibility)
        except WinbootError as error:
            self._deaf = True
            # What will not mend by itself is told at the start, where somebody looks.
            if first and isinstance(error, UsageError | CloudRefused):
                raise
            # Azure's queue asks cloud, cluster and machines: none of them ends the worker.
            self.metrics.left("queue")
            self.log("nothing received", problem=error.problem, hint=error.hint)
            self.stop.wait(self.settings.pause)
            return []
        except Exception as error:  # noqa: BLE001 - a bug about one machine must not end the work on the others
            self._deaf = True
            self.metrics.left("queue")
            self.log("a bug in winboot itself", problem=f"{type(error).__name__}: {error}")
            self.stop.wait(self.settings.pause)
            return []
        self._deaf = False
        return letters

    def _accept(self, letter: Letter) -> None:
        """Hold what a message asks for; ends and notices begin at once."""
        case = self._opened(letter)
        if isinstance(case, str) or not self.cases.add(case):
            return
        if case.action.kind == "launch":
            self._say_what_does_not_fit(case.action.group)
        elif self.cases.claim(case):
            self._begin(case)

    def _opened(self, letter: Letter) -> Case | str:
        """The case of a message; for one without work what became of it."""
        try:
            found = letter.action or parse(letter.body)
        except Exception as error:  # noqa: BLE001 - whoever may write to the queue must not end the worker
            found = Nothing(f"it cannot be read: {type(error).__name__}")
        if isinstance(found, Nothing):
            outcome = self._nothing(letter, found)
            self.metrics.done("other", outcome)
            return outcome
        now = self.pace.now()
        case = Case(found, {letter.id or letter.handle: letter}, now, self.pace.stop(), now)
        why, until = self._doomed.get(found.instance, ("", 0.0))
        case.doomed = why if found.kind == "launch" and now < until else ""
        return case

    def _nothing(self, letter: Letter, found: Nothing) -> str:
        """What asks for nothing is deleted; what is not understood may be another's, and stays in the queue."""
        if not found.understood:
            self.log("a message was not understood; it stays in the queue", reason=found.reason)
            return "not understood"
        self.log("no work in a message", reason=found.reason)
        try:
            self.queue.delete(letter)
        except WinbootError as error:
            self.log("a message was not deleted", problem=error.problem)
        return "ignored"

    def _begin(self, case: Case) -> None:
        self.pace.spawn(f"hook-{case.action.instance}", partial(self._run, case))

    def _run(self, case: Case) -> None:
        """Work on a case that was claimed; then it is done with, or waits again."""
        outcome = self._tried(case)
        later = self._later(case, outcome)
        case.joins = False
        if later is None:
            self._count(case, outcome)
            self.cases.end(case)
        else:
            case.due = self.pace.now() + later
            case.waits = True

    def _count(self, case: Case, outcome: str) -> None:
        worked = outcome in ("continue", "abandon") and case.begun is not None
        self.metrics.done(case.action.kind, outcome, self.pace.now() - case.since if worked else None)

    def _later(self, case: Case, outcome: str) -> float | None:
        """In how many seconds a case is tried again after this outcome; None for one that is done with."""
        again = self.settings.again
        if outcome == "error":
            case.errors += 1
            # A cordon has five seconds; what fails again and again is left to the queue, which counts it.
            return min(2.0 ** (case.errors - 1), again) if case.errors <= self.settings.gone_after else None
        case.errors = 0
        match outcome:
            case "waits":
                # One that answers waits for a free worker alone.
                return 0.0 if case.answering else self.work.again
            case "held":
                return again if case.action.kind == "launch" else min(again, 5.0)
            case "unknown":
                return again
        return None

    def _watch(self, over: Stop) -> None:
        """Look at what waits, until `over`."""
        while not over.requested:
            self._ticked["watch"] = self.pace.now()
            try:
                self._look_through()
            except WinbootError as error:
                self.metrics.left("watch")
                self.log("not looked at", problem=error.problem, hint=error.hint)
            except Exception as error:  # noqa: BLE001 - a bug at one machine must not end the work on the others
                self.log("a bug in winboot itself", problem=f"{type(error).__name__}: {error}")
            over.wait(self.settings.look)

    def _look_through(self) -> None:
        now = self.pace.now()
        if self.stop.requested:
            return
        due = self.cases.waiting(lambda one: one.due <= now)
        for case in due:
            if case.action.kind != "launch" and self.cases.claim(case):
                self._begin(case)
        launches = [case for case in due if case.action.kind == "launch"]
        self._ask_those_that_boot([case for case in launches if not case.answering and not case.doomed])
        free = self.settings.workers - self.cases.joining()
        for case in launches:
            over = bool(case.doomed) or case.halt.requested or self._is_over(case)
            case.joins = case.answering and not over and free > 0
            if (over or case.joins or case.target is None) and self.cases.claim(case):
                free -= case.joins
                self._begin(case)
            elif not case.answering:
                case.due = now + self.work.again

    def _ask_those_that_boot(self, cases: list[Case]) -> None:
        """All at the same time, and their descriptions in one question."""
        unread = {case.action.instance: case for case in cases if case.target is None}
        if unread:
            for target in self.work.targets(tuple(unread)):
                case = unread.get(target.member.host.id)
                if case is not None:
                    case.target, case.ours, case.kept = target, True, 0.0
        asked = {case.action.instance: case for case in cases if case.target is not None}
        answers = self.work.answering([case.target for case in asked.values() if case.target is not None])
        for instance, why in answers.items():
            if instance in asked:
                asked[instance].why, asked[instance].answering = why, not why

    def _is_over(self, case: Case) -> bool:
        """Whether a machine has had the time that it may have to boot, or to be joined. Waiting for a free worker costs it
        nothing."""
        if case.begun is None and case.answering:
            return False
        return self.pace.now() - (case.since if case.begun is None else case.begun) >= self.work.join_timeout

    def _mind(self, at: int, over: Stop) -> None:
        """Keep this minder's share of what waits alive, until `over`."""
        while not over.requested:
            now = self.pace.now()
            for case in self.cases.to_mind(now):
                if crc32(case.action.instance.encode()) % self.settings.minders == at:
                    self._keep(case)
            over.wait(self.settings.look)

    def _keep(self, case: Case) -> None:
        case.kept = self.pace.now() + self.settings.heartbeat
        try:
            self.extend(case, self.settings.visibility)
            if not case.ours:
                # Known within a second; then it is kept at once.
                return
            if case.action.kind == "launch":
                self._guard(case)
            if case.waits and not self.beat(case):
                case.due = 0.0
        except WinbootError as error:
            self.log("a heartbeat failed", instance=case.action.instance, problem=error.problem)

    def extend(self, case: Case, seconds: int) -> None:
        """Keep the messages of a case from being delivered again."""
        for letter in list(case.letters.values()):
            self.queue.extend(letter, seconds)

    def beat(self, case: Case) -> bool:
        """Ask the cloud for more time; False where nobody waits any more, which ends the work on a machine that starts."""
        if case.action.kind not in ("launch", "terminate") or self.queue.heartbeat(case.action):
            return True
        if case.action.kind == "launch":
            case.halt.request()
        return False

    def _give_back(self) -> None:
        """Let another worker have at once what waits here."""
        for case in self.cases.waiting():
            if self.cases.claim(case):
                with suppress(WinbootError):
                    self.extend(case, 0)
                self.cases.end(case)

    def _say_what_does_not_fit_now(self) -> None:
        """Of the groups that have machines, at the start, when somebody looks."""
        try:
            groups = self.work.groups()
        except WinbootError as error:
            self.log("the groups were not listed", problem=error.problem)
            return
        for group in groups:
            self._say_what_does_not_fit(group)

    def _say_what_does_not_fit(self, group: str) -> None:
        """Once for each group: which of its limits cannot be met."""
        if not group or group in self._groups:
            return
        self._groups.add(group)
        try:
            problems = self.queue.unfit(group, self.settings.needs(self.work, self.claimant.duration))
        except WinbootError as error:
            self.log("the limits of a group were not read", group=group, problem=error.problem)
            return
        for problem in problems:
            self.log("the group does not fit", group=group, problem=problem)

    # One case.

    def handle(self, letter: Letter) -> str:
        """Do all that one message asks for, here and now; gives what became of it. An error leaves it in the queue."""
        case = self._opened(letter)
        if isinstance(case, str):
            return case
        case.waits, case.joins = False, True
        self.cases.add(case)
        try:
            while (outcome := self._tried(case)) == "waits":
                self.stop.wait(self.work.again)
            self._count(case, outcome)
            return outcome
        finally:
            self.cases.end(case)

    def _tried(self, case: Case) -> str:
        try:
            return self._act(case)
        except WinbootError as error:
            self.log("left in the queue", **case.about(), problem=error.problem, hint=error.hint)
            return "error"
        except Exception as error:  # noqa: BLE001 - a bug at one machine must not end the work on the others
            self.log("a bug in winboot itself", **case.about(), problem=f"{type(error).__name__}: {error}")
            return "bug"

    def _act(self, case: Case) -> str:
        match case.action.kind:
            case "launch":
                return self._start(case)
            case "terminate":
                return self._end(case)
            case _:
                return self._notice(case)

    # A machine that starts.

    def _start(self, case: Case) -> str:
        state = self.queue.state(case.action)
        warm = state.startswith("Warmed:")
        if not state.removeprefix("Warmed:").startswith("Pending") or state.endswith(":Proceed"):
            return self._not_waiting(case, state)
        if case.halt.requested and not case.doomed:
            # It still waits: only the work before was to end.
            case.halt = self.pace.stop()
        target = self.work.target(case.action.instance)
        if target is None:
            return self._unknown(case)
        case.target = target
        if not case.ours:
            case.ours, case.kept = True, 0.0
        if not case.answering and not case.doomed:
            case.why = self.work.answering([target]).get(target.member.host.id, "")
            case.answering = not case.why
        failed = Outcome(False, case.doomed, "Ended") if case.doomed else None
        if failed is None and self._is_over(case):
            failed = case.last or Outcome(False, case.why, "Unreachable")
        if failed is None and not (case.answering and case.joins):
            self._guard(case)
            return "waits"
        return self._claimed(case, target, partial(self._join, case, target, warm=warm, failed=failed))

    def _guard(self, case: Case) -> None:
        """Keep the cloud's own repairs and scale-in away from a machine that boots, waits, or is joined."""
        if not case.guarded:
            self.queue.begin(case.action)
            case.guarded = True

    def _claimed(self, case: Case, target: Target, work: Callable[[Keeper], str]) -> str:
        """Do it while the claim is ours."""
        leases, node = self.leases(target.cluster), target.spec.node.name
        claim = self.claimant.take(leases, node, self.work.notes(target))
        if claim is None:
            self.log("left to the worker that holds it", node=node, **case.about())
            return "held"
        return self._kept(self._keeper(case, leases, claim), work)

    def _keeper(self, case: Case, leases: Leases, claim: Claim) -> Keeper:
        settings = self.settings
        return Keeper(self, case, leases, claim, every=settings.heartbeat, visibility=settings.visibility)

    def _kept(self, keeper: Keeper, work: Callable[[Keeper], str]) -> str:
        try:
            with self.metrics.held.track_inprogress():
                return work(keeper)
        except WinbootError:
            keeper.release()
            raise

    def _join(self, case: Case, target: Target, keeper: Keeper, *, warm: bool, failed: Outcome | None) -> str:
        taken_over = keeper.claim.taken_over
        if case.begun is None:
            case.begun = self.pace.now()
            self.log("begun", node=target.spec.node.name, taken_over=taken_over, warm=warm, **case.about())
        with keeper:
            outcome = failed
            if outcome is None:
                self._guard(case)
                work = self.work.prepare if warm else self.work.launch
                # Whoever had it before may be paused, not dead: the node's fence refuses it when it wakes up.
                heard = partial(keeper.note, STEP)
                outcome = work(target, case.halt, take_over=taken_over, heard=heard)
        return self._joined(case, target, keeper, outcome)

    def _joined(self, case: Case, target: Target, keeper: Keeper, outcome: Outcome) -> str:
        node, stopped = target.spec.node.name, case.halt.requested and not keeper.lost
        if stopped and not outcome.good and not case.doomed:
            # The machine is being ended. The state says the rest, and the end has the claim now.
            keeper.release()
            self.log("the join ends with its machine", node=node, reason=outcome.reason, **case.about())
            return "waits"
        # An interrupted join is not a failed one.
        interrupted = not outcome.good and self.stop.requested
        over = outcome.good or outcome.final or bool(case.doomed) or self._is_over(case)
        if not keeper.lost and not interrupted and not over:
            keeper.release()
            case.answering, case.last = False, outcome
            return "waits"
        if case.doomed:
            outcome = Outcome(False, case.doomed, "Ended")
        if not interrupted:
            keeper.note(RESULT, "ok" if outcome.good else f"failed:{outcome.code}")
        answer = self._answered(case, node, keeper, outcome, interrupted=interrupted)
        if answer == "abandon" and self.queue.abandoned_ends:
            self._forget(case.action.instance)
        return answer

    def _forget(self, instance: str) -> None:
        """Delete the Node of a machine that is no more, or that its group ends now: nobody will tell of it again."""
        place = self.work.place(instance)
        if place is not None and (place.ours or self.work.whose(instance) != "foreign"):
            place.cluster.delete_node(place.node.name)
            self.log("its Node is deleted", node=place.node.name, instance=instance)

    def _answered(
        self, case: Case, node: str, keeper: Keeper, outcome: Outcome, *, interrupted: bool = False
    ) -> str:
        """The answer to the cloud, then the claim, and last the message."""
        # A worker that was paused learns only now that the machine is another one's: that one answers.
        if not keeper.holds() or interrupted:
            keeper.release()
            reason = outcome.reason
            if keeper.lost:
                reason = f"another worker has taken it over; here it had come to: {reason}"
            self.log("left in the queue", reason=reason, node=node, **case.about())
            return "left"
        result = "CONTINUE" if outcome.good else "ABANDON"
        waited = self.queue.complete(case.action, result)
        self.log("done", result=result, reason=outcome.reason, waited=waited, node=node, **case.about())
        keeper.release()
        self._delete(case)
        return result.lower()

    def _delete(self, case: Case) -> None:
        for letter in list(case.letters.values()):
            self.queue.delete(letter)

    def _not_waiting(self, case: Case, state: str) -> str:
        """Answered already, or over, or not listed yet: only the last is tried again."""
        if not state:
            ended = self.work.has_ended(case.action.instance)
            if not ended and case.deliveries < self.settings.gone_after:
                return self._not_yet(case)
            if ended:
                self._forget(case.action.instance)
        self.log("nothing waits for it any more", state=state, **case.about())
        self._delete(case)
        return "stale"

    def _not_yet(self, case: Case) -> str:
        case.looks += 1
        self.log("the cloud does not know it yet", **case.about())
        return "unknown"

    def _unknown(self, case: Case) -> str:
        """Another cluster's machine is left alone; one that the cloud does not know (yet) is tried again a few times."""
        match self.work.whose(case.action.instance):
            case "foreign":
                self.log("left alone: the inventory does not mean it", **case.about())
                return "foreign"
            case "ours, ended":
                self.queue.complete(case.action, "ABANDON")
                self.log("the machine has ended before it was joined", **case.about())
                self._delete(case)
                return "abandon"
            case _:
                if case.deliveries < self.settings.gone_after:
                    return self._not_yet(case)
        self.log("gone", **case.about())
        self._delete(case)
        return "gone"

    # A machine that ends. Its id is all that is needed.

    def _end(self, case: Case) -> str:
        instance = case.action.instance
        try:
            state = self.queue.state(case.action)
        except CloudUnreachable:
            # A cordon has five seconds, and needs the cluster alone.
            place = self.work.place(instance)
            if place is not None and place.ours:
                place.cluster.cordon(place.node.name, why=MEANWHILE)
            raise
        place = self.work.place(instance)
        if state.startswith(_STAYS):
            return self._stays(case, state, place)
        if not state and place is None:
            return self._not_waiting(case, state)
        if not state and not self.work.has_ended(instance):
            # Taken out of its group by a person, or not listed yet.
            return self._stays(case, state, place)
        if (place is None or not place.ours) and self.work.whose(instance) == "foreign":
            self.log("left alone: the inventory does not mean it", **case.about())
            return "foreign"
        case.ours = True
        self._halt_joins(instance, "")
        if place is not None:
            place.cluster.cordon(place.node.name)
        return self._drained(case, place)

    def _stays(self, case: Case, state: str, place: Place | None) -> str:
        """The message was of an end that is over, or was called off."""
        if place is not None and place.node.annotations.get(CORDON) == MEANWHILE:
            place.cluster.uncordon(place.node.name)
        return self._not_waiting(case, state)

    def _drained(self, case: Case, place: Place | None) -> str:
        cluster, name = self._claim_of(case, place)
        if cluster is None:
            waited = self.queue.complete(case.action, "CONTINUE")
            self.log("done", result="CONTINUE", reason="there was no Node", waited=waited, **case.about())
            self._delete(case)
            return "continue"
        leases = self.leases(cluster)
        notes = {PROVIDER_ID: place.node.provider_id} if place is not None else {}
        claim = self.claimant.take(leases, name, notes)
        if claim is None:
            self.log("left to the worker that holds it", node=name, **case.about())
            return "held"
        return self._kept(self._keeper(case, leases, claim), partial(self._let_go, case, name))

    def _claim_of(self, case: Case, place: Place | None) -> tuple[Cluster | None, str]:
        """Where the claim on the machine is, and its name: a join may hold it before there is a Node."""
        if place is not None:
            return place.cluster, place.node.name
        try:
            target = self.work.target(case.action.instance)
        except InvalidInput:
            target = None
        return (None, "") if target is None else (target.cluster, target.spec.node.name)

    def _let_go(self, case: Case, name: str, keeper: Keeper) -> str:
        """Drain for a bounded time, then remove the Node: the machine goes in any case."""
        case.begun = self.pace.now()
        self.log("begun", node=name, taken_over=keeper.claim.taken_over, **case.about())
        with keeper:
            self.queue.begin(case.action)
            # A join that held the claim until now may have made it since.
            place, left = self.work.place(case.action.instance), "there was no Node"
            if place is not None:
                place.cluster.cordon(place.node.name)
                left = self._emptied(case, place, self.work.drain_timeout)
                place.cluster.delete_node(place.node.name)
        keeper.note(RESULT, "ok")
        return self._answered(case, name, keeper, Outcome(True, left))

    def _emptied(self, case: Case, place: Place, seconds: float) -> str:
        """Drain; what was left, or nothing. A machine that has ended keeps no drain waiting."""
        asked = [self.pace.now()]

        def over() -> bool:
            if self.pace.now() - asked[0] < self.settings.again:
                return False
            asked[0] = self.pace.now()
            with suppress(WinbootError):
                return self.work.has_ended(case.action.instance)
            return False

        left = self.work.drain(place, seconds, over)
        return f"pods were left: {left}" if left else ""

    def _halt_joins(self, instance: str, why: str) -> None:
        """Let a join of this machine end at its next step: what it makes would not stay."""
        for case in self.cases.of(instance, "launch"):
            case.doomed = case.doomed or why
            case.halt.request()
            case.due = 0.0

    # What is noticed beside hooks.

    def _notice(self, case: Case) -> str:
        ends = case.action.kind == "gone" or case.action.final
        if ends and not self.work.self_registering:
            # One that is only stopped may be started again later.
            why = f"it is taken away: {case.action.hook}"
            self._doomed[case.action.instance] = (why, self.pace.now() + _LAST_S)
        outcomes = {self._noticed(case, one, ends=ends) for one in (case.action.instance, *case.action.also)}
        for outcome in ("unknown", "waits", "left"):
            if outcome in outcomes:
                return outcome
        if outcomes == {"foreign"}:
            return "foreign"
        self._delete(case)
        return "done"

    def _noticed(self, case: Case, instance: str, *, ends: bool) -> str:
        place = self.work.place(instance)
        if place is None or not place.ours:
            whose = self.work.whose(instance)
            if whose == "foreign":
                self.log("left alone: the inventory does not mean it", **case.about())
                return "foreign"
        if ends:
            self._halt_joins(instance, f"it is taken away: {case.action.hook}")
        if place is None:
            self.log("noticed; there is no Node", notice=case.action.hook, **case.about())
            return "done"
        if case.begun is None:
            place.cluster.cordon(place.node.name, why=FOR_AN_EVENT if case.action.returns else "true")
            self.log("cordoned", notice=case.action.hook, node=place.node.name, **case.about())
            if case.action.kind == "drain":
                outcome = self._drained_in_time(case, place)
                if outcome != "done":
                    return outcome
                if case.action.token:
                    self.queue.complete(case.action, "CONTINUE")
        if ends:
            return self._outlived(case, instance, place)
        return "done"

    def _drained_in_time(self, case: Case, place: Place) -> str:
        """Drain until the notice ends."""
        until = case.action.until
        seconds = self.work.drain_timeout if until is None else (until - self.pace.today()).total_seconds()
        with self.metrics.held.track_inprogress():
            left = self._emptied(case, place, min(seconds, _LONGEST_S))
        self.log("drained", notice=case.action.hook, left=left, node=place.node.name, **case.about())
        return "left" if left and seconds > _LONGEST_S else "done"

    def _outlived(self, case: Case, instance: str, place: Place) -> str:
        """Delete the Node of a machine that has ended; one that takes its time is waited for."""
        if case.begun is None:
            case.begun = self.pace.now()
        if self.work.has_ended(instance):
            place.cluster.delete_node(place.node.name)
            self.log("the machine has ended: its Node is deleted", node=place.node.name, **case.about())
            return "done"
        return "waits" if self.pace.now() - case.begun < _LAST_S else "done"

    # Machines that join by themselves.

    def _sweep_when_due(self) -> None:
        every = self.settings.sweep
        if every is None or self.pace.now() < self._sweep_due:
            return
        self._sweep_due = self.pace.now() + every
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
        node, leases = target.spec.node.name, self.leases(target.cluster)
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
