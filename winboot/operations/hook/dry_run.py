"""`winboot hook serve --dry-run`: what each message in the queue would lead to. Nothing is claimed, answered or deleted."""

from __future__ import annotations

from collections.abc import Iterator

from winboot.base.errors import WinbootError
from winboot.operations.hook.work import NodeWork, Place
from winboot.remote.cloud.base import HookAction, HookQueue, Nothing

_FOREIGN = "skip: the inventory does not select this machine"


def forecasts(queue: HookQueue, work: NodeWork) -> Iterator[tuple[HookAction | None, str]]:
    """Each message that the queue delivers now, once: its action (None for one without work), and what it would lead to.

    A message is visible to other workers at once; SQS counts the delivery all the same.
    """
    seen: set[str] = set()
    while messages := [one for one in queue.receive(10, 0) if (one.id or one.handle) not in seen]:
        for message in messages:
            seen.add(message.id or message.handle)
            if isinstance(message.action, Nothing):
                what = "delete the message" if message.action.understood else "leave the message in the queue"
                yield None, f"{what}: {message.action.reason}"
                continue
            try:
                yield message.action, forecast(queue, work, message.action)
            except WinbootError as error:
                yield message.action, f"try again: {error.problem}"


def forecast(queue: HookQueue, work: NodeWork, action: HookAction) -> str:
    """What the hook would do next for this action, as an imperative."""
    if action.kind == "launch":
        return _launch(queue, work, action)
    place = work.place(action.instance)
    if (place is None or not place.ours) and work.whose(action.instance) == "foreign":
        return _FOREIGN
    if action.kind == "terminate":
        return _termination(queue, work, action, place)
    if place is None:
        return "delete the message: there is no Node"
    name = place.node.name
    match action.kind:
        case "drain":
            return f"cordon and drain {name}: {action.hook}"
        case "gone":
            return f"cordon {name}, and delete it when the cloud no longer lists the machine"
    return f"cordon {name}: {action.hook}"


def _launch(queue: HookQueue, work: NodeWork, action: HookAction) -> str:
    stage = queue.stage(action)
    if stage == "unlisted":
        return "wait: the cloud does not list the machine"
    if stage not in ("starts", "warms"):
        return "delete the message: its hook no longer waits"
    target = work.target(action.instance)
    if target is None:
        return _FOREIGN if work.whose(action.instance) == "foreign" else "wait: the machine is not listed"
    if why := work.answering([target]).get(action.instance, ""):
        return f"wait until {target.spec.node.name} answers: {why}"
    name = target.spec.node.name
    return f"prepare {name} for the warm pool" if stage == "warms" else f"join {name}"


def _termination(queue: HookQueue, work: NodeWork, action: HookAction, place: Place | None) -> str:
    if queue.stage(action) in ("starts", "stays"):
        return "delete the message: the machine stays in its group"
    if place is None:
        return "answer CONTINUE: there is no Node"
    return (
        f"cordon {place.node.name}, drain it for up to {work.drain_timeout:.0f} s, delete it, answer CONTINUE"
    )
