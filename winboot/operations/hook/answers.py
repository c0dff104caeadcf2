"""What launches, terminations and notices have in common: own the machine, answer the cloud, delete the messages last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from winboot.base.errors import WinbootError
from winboot.operations.hook.heartbeat import Owner
from winboot.operations.hook.item import Next, WorkItem
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.work import Outcome, Place
from winboot.remote.cloud.base import Stage
from winboot.remote.cluster.base import Cluster


class Answers:
    """The ends that an item may come to."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def owned(
        self,
        item: WorkItem,
        cluster: Cluster,
        node: str,
        notes: Mapping[str, str],
        work: Callable[[Owner], Next],
    ) -> Next:
        """Do the work while the machine's claim is ours; wait where another worker owns it."""
        shared, leases = self.shared, self.shared.leases(cluster)
        claim = shared.claimant.take(leases, node, notes)
        if claim is None:
            shared.log("skipped: another worker owns it", node=node, **item.about())
            again = shared.settings.again
            later = again if item.action.kind == "launch" else min(again, 5.0)
            return Next("waiting", "another worker owns the machine", later)
        owner = Owner(shared, item, leases, claim)
        try:
            with shared.metrics.held.track_inprogress():
                return work(owner)
        except WinbootError:
            owner.release()
            raise

    def answer(
        self, item: WorkItem, node: str, owner: Owner, outcome: Outcome, *, interrupted: bool = False
    ) -> Next:
        """Answer the cloud, then release the claim, and last delete the messages."""
        # A worker that was paused learns only now that another one owns the machine: that one answers.
        if not owner.holds() or interrupted:
            owner.release()
            reason = outcome.reason
            if owner.lost:
                reason = f"another worker owns the machine; here: {reason}"
            self.shared.log("left in the queue", reason=reason, node=node, **item.about())
            return Next("failed", reason, outcome="left")
        result = "CONTINUE" if outcome.good else "ABANDON"
        waited = self.shared.queue.complete(item.action, result)
        about = item.about()
        self.shared.log("done", result=result, reason=outcome.reason, waited=waited, node=node, **about)
        owner.release()
        self.delete(item)
        reason = f"{result}: {outcome.reason}" if outcome.reason else result
        return Next("done" if outcome.good else "failed", reason, outcome=result.lower())

    def delete(self, item: WorkItem) -> None:
        """Delete the item's messages."""
        for message in list(item.messages.values()):
            self.shared.queue.delete(message)

    def foreign(self, item: WorkItem) -> Next:
        """Leave another cluster's machine alone, and its message in the queue."""
        self.shared.log("skipped: the inventory does not select this machine", **item.about())
        return Next("done", "the inventory does not select this machine", outcome="foreign")

    def not_listed(self, item: WorkItem) -> Next:
        """Try one that the cloud does not list yet again."""
        item.looks += 1
        self.shared.log("the cloud does not list this machine yet", **item.about())
        return Next("waiting", "the cloud does not list the machine yet", self.shared.settings.again)

    def not_waiting(self, item: WorkItem, stage: Stage) -> Next:
        """It was answered already, or is over, or is not listed yet: only the last is tried again."""
        if stage == "unlisted":
            ended = self.shared.work.has_ended(item.action.instance)
            if not ended and item.deliveries < self.shared.settings.gone_after:
                return self.not_listed(item)
            if ended:
                self.forget(item.action.instance)
        self.shared.log("no lifecycle hook waits for it", stage=stage, **item.about())
        self.delete(item)
        return Next("done", "the machine's lifecycle hook no longer waits", outcome="stale")

    def forget(self, instance: str) -> None:
        """Delete the Node of a machine that is gone, or that its group ends now: no further message reports it."""
        place = self.shared.work.place(instance)
        if place is not None and (place.ours or self.shared.work.whose(instance) != "foreign"):
            place.cluster.delete_node(place.node.name)
            self.shared.log("the machine's Node is deleted", node=place.node.name, instance=instance)

    def empty(self, item: WorkItem, place: Place, seconds: float) -> str:
        """Drain; gives the pods that were left, or nothing. It ends when the machine has ended."""
        shared = self.shared
        asked = [shared.pace.now()]

        def over() -> bool:
            if shared.pace.now() - asked[0] < shared.settings.again:
                return False
            asked[0] = shared.pace.now()
            with suppress(WinbootError):
                return shared.work.has_ended(item.action.instance)
            return False

        left = shared.work.drain(place, seconds, over)
        return f"the drain left pods: {left}" if left else ""
