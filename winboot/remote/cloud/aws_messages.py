"""What a message of the hook's queue says: a lifecycle hook's, straight from Auto Scaling, by EventBridge or inside
SNS. Without a hook, EventBridge reports that AWS will end an instance, or that it has ended.

aws-node-termination-handler:pkg/monitor/sqsevent (asg-lifecycle-event.go, spot-itn-event.go,
rebalance-recommendation-event.go, ec2-state-change-event.go, scheduled-change-event.go) knows the same forms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from winboot.remote.cloud.base import HookAction, Nothing

_KINDS: Final[dict[str, Literal["launch", "terminate"]]] = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": "launch",
    "autoscaling:EC2_INSTANCE_TERMINATING": "terminate",
}
_TEST: Final = "autoscaling:TEST_NOTIFICATION"
# "a warning two minutes before" (EC2 user guide, "Spot Instance interruption notices").
SPOT_NOTICE: Final = timedelta(minutes=2)
# How often an envelope may lie in another one; SNS wraps once.
_DEEPEST: Final = 3


def parse(body: str, depth: int = 0) -> HookAction | Nothing:
    """What is to be done; no text is an error: a sender with access to the queue must not stop the worker."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        # json.loads answers brackets nested by the thousand with a RecursionError.
        return Nothing("it is not JSON")
    if not isinstance(found, Mapping):
        return Nothing("it is not a JSON object")
    if found.get("Type") == "Notification" and isinstance(found.get("Message"), str) and depth < _DEEPEST:
        return parse(str(found["Message"]), depth + 1)
    source = found.get("source")
    if source is None:
        return _action(found)
    reader = _SOURCES.get(str(source))
    if reader is None:
        return Nothing(f"its source is {str(source)[:60]!r}")
    detail = found.get("detail")
    return (
        reader(found, detail) if isinstance(detail, Mapping) else Nothing("its detail is not a JSON object")
    )


def _lifecycle(event: Mapping[str, Any], detail: Mapping[str, Any]) -> HookAction | Nothing:
    if "LifecycleTransition" not in detail and detail.get("Event") != _TEST:
        return Nothing("a group reports what it did, and waits for no answer", understood=True)
    return _action(detail)


def _action(detail: Mapping[str, Any]) -> HookAction | Nothing:
    if detail.get("Event") == _TEST:
        return Nothing("it is the test that Auto Scaling sends when a hook is made", understood=True)
    kind = _KINDS.get(str(detail.get("LifecycleTransition")))
    if kind is None:
        return Nothing("it is not about a lifecycle hook")
    words = [detail.get(key) for key in ("EC2InstanceId", "AutoScalingGroupName", "LifecycleHookName")]
    if not all(isinstance(word, str) and word for word in words):
        return Nothing("instance, group or hook is missing")
    instance, group, hook = map(str, words)
    return HookAction(kind, instance, group, hook, str(detail.get("LifecycleActionToken") or ""))


def _ec2(event: Mapping[str, Any], detail: Mapping[str, Any]) -> HookAction | Nothing:
    """What EC2 says of one instance (EventBridge's event reference, "Amazon EC2")."""
    kind, instance = event.get("detail-type"), detail.get("instance-id")
    if not isinstance(instance, str) or not instance:
        return Nothing("it names no instance")
    match kind:
        case "EC2 Spot Instance Interruption Warning":
            since = _time(event.get("time"))
            until = since + SPOT_NOTICE if since is not None else None
            return HookAction("drain", instance, "", "spot interruption", until=until, final=True)
        case "EC2 Instance Rebalance Recommendation":
            return HookAction("cordon", instance, "", "rebalance recommendation")
        case "EC2 Instance State-change Notification":
            return _state(instance, str(detail.get("state")))
    return Nothing(f"EC2 says {str(kind)[:60]!r}")


def _state(instance: str, state: str) -> HookAction | Nothing:
    match state:
        case "stopping" | "stopped" | "shutting-down":
            return HookAction("cordon", instance, "", f"state {state}")
        case "terminated":
            return HookAction("gone", instance, "", "state terminated")
        case "pending" | "running":
            return Nothing(f"an instance is {state}", understood=True)
    return Nothing(f"an instance is {state[:60]!r}")


def _health(event: Mapping[str, Any], detail: Mapping[str, Any]) -> HookAction | Nothing:
    """A scheduled change of EC2 (AWS Health user guide, "Event schema"): reboot, retirement, maintenance."""
    entities = detail.get("affectedEntities")
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return Nothing("AWS Health says something that takes no instance away", understood=True)
    named = [one.get("entityValue") for one in entities or () if isinstance(one, Mapping)]
    instances = [one for one in named if isinstance(one, str) and one.startswith("i-")]
    if not instances:
        return Nothing("AWS Health names no instance")
    cause = f"scheduled change {str(detail.get('eventTypeCode', ''))[:80]}".strip()
    return HookAction(
        "drain", instances[0], "", cause, until=_time(detail.get("startTime")), also=tuple(instances[1:])
    )


_Reader = Callable[[Mapping[str, Any], Mapping[str, Any]], HookAction | Nothing]
_SOURCES: Final[Mapping[str, _Reader]] = {
    "aws.autoscaling": _lifecycle,
    "aws.ec2": _ec2,
    "aws.health": _health,
}


def _time(text: object) -> datetime | None:
    """`2026-01-01T00:00:00Z` of EventBridge, or `Thu, 27 Jan 2026 06:27:57 GMT` of AWS Health."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(str(text))
        except ValueError:
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None
