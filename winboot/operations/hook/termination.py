"""A machine that ends: cordon, drain for a bounded time, delete the Node, let the cloud go on. Its id is all that is needed."""

from __future__ import annotations

from functools import partial

from winboot.base.errors import CloudUnreachable, InvalidInput
from winboot.config.annotations import CORDON, MEANWHILE
from winboot.operations.hook.answers import Answers
from winboot.operations.hook.heartbeat import Owner
from winboot.operations.hook.item import Next, WorkItem
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.work import Outcome, Place
from winboot.remote.cloud.base import Stage
from winboot.remote.cluster.base import Cluster
from winboot.remote.cluster.claims import PROVIDER_ID, RESULT


class Termination:
    """The work on items of kind terminate."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._answers = Answers(shared)

    def work(self, item: WorkItem) -> Next:
        """Drain the machine and let it go, unless its end is over or called off, or it is not ours."""
        shared, instance = self._shared, item.action.instance
        stage = self._stage(item)
        place = shared.work.place(instance)
        if stage in ("stays", "starts"):
            return self._stays(item, stage, place)
        if stage == "unlisted" and place is None:
            return self._answers.not_waiting(item, stage)
        if stage == "unlisted" and not shared.work.has_ended(instance):
            # A person took it out of its group, or it is not listed yet.
            return self._stays(item, stage, place)
        if (place is None or not place.ours) and shared.work.whose(instance) == "foreign":
            return self._answers.foreign(item)
        item.ours = True
        shared.items.end_launch(instance, "")
        if place is not None:
            place.cluster.cordon(place.node.name)
        return self._drain(item, place)

    def _stage(self, item: WorkItem) -> Stage:
        try:
            return self._shared.queue.stage(item.action)
        except CloudUnreachable:
            # A cordon has five seconds, and needs the cluster alone.
            place = self._shared.work.place(item.action.instance)
            if place is not None and place.ours:
                place.cluster.cordon(place.node.name, why=MEANWHILE)
            raise

    def _stays(self, item: WorkItem, stage: Stage, place: Place | None) -> Next:
        """The message was of an end that is over, or was called off."""
        if place is not None and place.node.annotations.get(CORDON) == MEANWHILE:
            place.cluster.uncordon(place.node.name)
        return self._answers.not_waiting(item, stage)

    def _drain(self, item: WorkItem, place: Place | None) -> Next:
        cluster, node = self._claim_of(item, place)
        if cluster is None:
            waited = self._shared.queue.complete(item.action, "CONTINUE")
            reason = "there was no Node"
            self._shared.log("done", result="CONTINUE", reason=reason, waited=waited, **item.about())
            self._answers.delete(item)
            return Next("done", f"CONTINUE: {reason}", outcome="continue")
        notes = {PROVIDER_ID: place.node.provider_id} if place is not None else {}
        return self._answers.owned(item, cluster, node, notes, partial(self._let_go, item, node))

    def _claim_of(self, item: WorkItem, place: Place | None) -> tuple[Cluster | None, str]:
        """Where the claim on the machine is, and its name: a join may hold it before there is a Node."""
        if place is not None:
            return place.cluster, place.node.name
        try:
            target = self._shared.work.target(item.action.instance)
        except InvalidInput:
            target = None
        return (None, "") if target is None else (target.cluster, target.spec.node.name)

    def _let_go(self, item: WorkItem, node: str, owner: Owner) -> Next:
        """Drain for a bounded time, then remove the Node: the machine goes in any case."""
        shared = self._shared
        item.begun = shared.pace.now()
        shared.log("begun", node=node, taken_over=owner.claim.taken_over, **item.about())
        with owner:
            shared.queue.begin(item.action)
            # A join that held the claim until now may have made it since.
            place, left = shared.work.place(item.action.instance), "there was no Node"
            if place is not None:
                place.cluster.cordon(place.node.name)
                left = self._answers.empty(item, place, shared.work.drain_timeout)
                place.cluster.delete_node(place.node.name)
        owner.note(RESULT, "ok")
        return self._answers.answer(item, node, owner, Outcome(True, left))
