"""A machine that starts: ask whether it answers, join it until its Node is Ready, answer the cloud."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from winboot.operations.hook.answers import Answers
from winboot.operations.hook.heartbeat import Owner, guard
from winboot.operations.hook.item import Next, WorkItem
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.work import Outcome, Target
from winboot.remote.cluster.claims import RESULT, STEP


class Launch:
    """The work on items of kind launch."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._answers = Answers(shared)

    def work(self, item: WorkItem) -> Next:
        """One look at the machine; one try to join it where the item is in state joining."""
        shared = self._shared
        stage = shared.queue.stage(item.action)
        if stage not in ("starts", "warms"):
            return self._answers.not_waiting(item, stage)
        if item.halt.requested and not item.ending:
            # It still waits: only the work before was to end.
            item.halt = shared.pace.stop()
        target = shared.work.target(item.action.instance)
        if target is None:
            return self._unknown(item)
        self.identified(item, target)
        if not item.answers and not item.ending:
            why = shared.work.answering([target]).get(target.member.host.id, "")
            self.asked(item, why)
        failed = self._failed(item)
        if failed is None and item.state != "joining":
            guard(shared, item)
            return Next(item.state, item.reason, 0.0 if item.answers else shared.work.again)
        join = partial(self._join, item, target, warm=stage == "warms", failed=failed)
        notes = shared.work.notes(target)
        return self._answers.owned(item, target.cluster, target.spec.node.name, notes, join)

    def ask(self, items: list[WorkItem]) -> None:
        """Ask machines that boot, all at the same time, and the cloud once for those that are not described yet."""
        work = self._shared.work
        unread = {item.action.instance: item for item in items if item.target is None}
        for target in work.targets(tuple(unread)) if unread else ():
            if target.member.host.id in unread:
                self.identified(unread[target.member.host.id], target)
        asked = {item.action.instance: item for item in items if item.target is not None}
        answers = work.answering([item.target for item in asked.values() if item.target is not None])
        for instance, why in answers.items():
            if instance in asked and not asked[instance].busy:
                self.asked(asked[instance], why)

    def is_over(self, item: WorkItem) -> bool:
        """Whether a machine has had the time that it may have to boot, or to be joined. The wait for a free worker does not
        count."""
        if item.begun is None and item.answers:
            return False
        since = item.since if item.begun is None else item.begun
        return self._shared.pace.now() - since >= self._shared.work.join_timeout

    def identified(self, item: WorkItem, target: Target) -> None:
        """Note which machine it is; from now on it is kept alive as ours."""
        item.target = target
        if not item.ours:
            item.ours, item.beat_due = True, 0.0

    def asked(self, item: WorkItem, why: str) -> None:
        """Note whether the machine answers; `why` it does not is empty where it does."""
        if why:
            self._shared.items.move(item, "booting", why)
        else:
            self._shared.items.move(item, "queued", "the machine answers")

    def _failed(self, item: WorkItem) -> Outcome | None:
        """The outcome of a machine that is given up; None for one that may still be joined."""
        if item.ending:
            return Outcome(False, item.ending, "Ended", final=True)
        if self.is_over(item):
            return replace(item.last or Outcome(False, item.reason, "Unreachable"), final=True)
        return None

    def _join(
        self, item: WorkItem, target: Target, owner: Owner, *, warm: bool, failed: Outcome | None
    ) -> Next:
        taken_over = owner.claim.taken_over
        if item.begun is None:
            item.begun = self._shared.pace.now()
            node = target.spec.node.name
            self._shared.log("begun", node=node, taken_over=taken_over, warm=warm, **item.about())
        with owner:
            outcome = failed
            if outcome is None:
                guard(self._shared, item)
                work = self._shared.work.prepare if warm else self._shared.work.launch
                # The former owner may be paused, not dead: the node's fence refuses it when it wakes up.
                heard = partial(owner.note, STEP)
                outcome = work(target, item.halt, take_over=taken_over, heard=heard)
        return self._joined(item, target.spec.node.name, owner, outcome)

    def _joined(self, item: WorkItem, node: str, owner: Owner, outcome: Outcome) -> Next:
        shared = self._shared
        stopped = item.halt.requested and not owner.lost
        if stopped and not outcome.good and not item.ending:
            # The machine is being ended. Its stage says the rest, and the termination takes the claim now.
            owner.release()
            shared.log("the join ends: the machine ends", node=node, reason=outcome.reason, **item.about())
            return Next("waiting", "the machine ends")
        # An interrupted join is not a failed one.
        interrupted = not outcome.good and shared.stop.requested
        over = outcome.good or outcome.final or bool(item.ending) or self.is_over(item)
        if not owner.lost and not interrupted and not over:
            owner.release()
            item.last = outcome
            return Next("booting", outcome.reason, shared.work.again)
        if item.ending:
            outcome = Outcome(False, item.ending, "Ended")
        if not interrupted:
            owner.note(RESULT, "ok" if outcome.good else f"failed:{outcome.code}")
        after = self._answers.answer(item, node, owner, outcome, interrupted=interrupted)
        if after.outcome == "abandon" and shared.queue.abandoned_ends:
            self._answers.forget(item.action.instance)
        return after

    def _unknown(self, item: WorkItem) -> Next:
        """A machine that the inventory does not mean now: another cluster's, one that has ended, or one not listed yet."""
        shared = self._shared
        match shared.work.whose(item.action.instance):
            case "foreign":
                return self._answers.foreign(item)
            case "ours, ended":
                shared.queue.complete(item.action, "ABANDON")
                shared.log("the machine ended before its join", **item.about())
                self._answers.delete(item)
                return Next("failed", "ABANDON: the machine has ended", outcome="abandon")
            case _:
                if item.deliveries < shared.settings.gone_after:
                    return self._answers.not_listed(item)
        shared.log("gone", **item.about())
        self._answers.delete(item)
        return Next("done", "the cloud does not list the machine", outcome="gone")
