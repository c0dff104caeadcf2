"""What a cloud announces without hooks: it will remove a machine, may remove it, or it has ended."""

from __future__ import annotations

from typing import Final

from winboot.config.annotations import FOR_AN_EVENT
from winboot.operations.hook.answers import Answers
from winboot.operations.hook.item import Next, WorkItem
from winboot.operations.hook.shared import Shared
from winboot.operations.hook.work import Place

# SQS keeps a message whose visibility is extended for 12 hours from its first delivery (SQS developer guide,
# "Visibility timeout"). A drain that would last longer continues with the next delivery.
_LONGEST_S: Final = 11 * 3600.0
# How long the hook waits for a machine that the cloud will remove, so that its Node goes with it.
_LAST_S: Final = 900.0


class Notices:
    """The work on items of kind drain, cordon and gone."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._answers = Answers(shared)

    def work(self, item: WorkItem) -> Next:
        """Cordon, drain where there is time, and delete the Node of a machine that has ended."""
        action, shared = item.action, self._shared
        ends = action.kind == "gone" or action.final
        if ends and not shared.work.self_registering:
            # One that is only stopped may be started again later.
            shared.items.end_launch(action.instance, _why(item), _LAST_S)
        outcomes = {self._noticed(item, one, ends=ends) for one in (action.instance, *action.also)}
        if outcomes == {"foreign"}:
            return self._answers.foreign(item)
        if "waits" in outcomes:
            return Next("waiting", "the machine has not ended yet", shared.work.again)
        if "left" in outcomes:
            return Next("failed", "the machine ends later than the queue keeps its message", outcome="left")
        self._answers.delete(item)
        return Next("done", action.hook, outcome="done")

    def _noticed(self, item: WorkItem, instance: str, *, ends: bool) -> str:
        shared = self._shared
        place = shared.work.place(instance)
        if (place is None or not place.ours) and shared.work.whose(instance) == "foreign":
            return "foreign"
        if ends:
            shared.items.end_launch(instance, _why(item))
        if place is None:
            shared.log("no action: the machine has no Node", notice=item.action.hook, **item.about())
            return "done"
        if item.begun is None and self._cordoned(item, place) == "left":
            return "left"
        return self._outlived(item, instance, place) if ends else "done"

    def _cordoned(self, item: WorkItem, place: Place) -> str:
        action, shared = item.action, self._shared
        place.cluster.cordon(place.node.name, why=FOR_AN_EVENT if action.returns else "true")
        shared.log("cordoned", notice=action.hook, node=place.node.name, **item.about())
        if action.kind != "drain":
            return "done"
        outcome = self._drained(item, place)
        if outcome == "done" and action.token:
            shared.queue.complete(action, "CONTINUE")
        return outcome

    def _drained(self, item: WorkItem, place: Place) -> str:
        """Drain until the notice ends."""
        shared, until = self._shared, item.action.until
        seconds = (
            shared.work.drain_timeout if until is None else (until - shared.pace.today()).total_seconds()
        )
        with shared.metrics.held.track_inprogress():
            left = self._answers.empty(item, place, min(seconds, _LONGEST_S))
        shared.log("drained", notice=item.action.hook, left=left, node=place.node.name, **item.about())
        return "left" if left and seconds > _LONGEST_S else "done"

    def _outlived(self, item: WorkItem, instance: str, place: Place) -> str:
        """Delete the Node of a machine that has ended; wait for one that takes its time."""
        shared = self._shared
        if item.begun is None:
            item.begun = shared.pace.now()
        if shared.work.has_ended(instance):
            place.cluster.delete_node(place.node.name)
            shared.log("the machine ended: the hook deletes its Node", node=place.node.name, **item.about())
            return "done"
        return "waits" if shared.pace.now() - item.begun < _LAST_S else "done"


def _why(item: WorkItem) -> str:
    return f"the cloud removes it: {item.action.hook}"
