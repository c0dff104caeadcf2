"""What a message of a lifecycle hook's queue says: straight from Auto Scaling, by EventBridge, or inside SNS.

aws-node-termination-handler:pkg/monitor/sqsevent/asg-lifecycle-event.go knows the same forms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from winboot.remote.cloud.base import HookAction

_KINDS: Final[dict[str, Literal["launch", "terminate"]]] = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": "launch",
    "autoscaling:EC2_INSTANCE_TERMINATING": "terminate",
}
_TEST: Final = "autoscaling:TEST_NOTIFICATION"


@dataclass(frozen=True, slots=True)
class Nothing:
    """A message without work in it, and why."""

    reason: str


def parse(body: str) -> HookAction | Nothing:
    """What is to be done; no text is an error: whoever may write to the queue must not stop the worker."""
    try:
        found = json.loads(body)
    except ValueError:
        return Nothing("it is no JSON")
    if not isinstance(found, Mapping):
        return Nothing("it is no JSON object")
    if found.get("Type") == "Notification" and isinstance(found.get("Message"), str):
        return parse(str(found["Message"]))
    detail = found.get("detail") if found.get("source") == "aws.autoscaling" else found
    return _action(detail) if isinstance(detail, Mapping) else Nothing("its detail is no JSON object")


def _action(detail: Mapping[str, Any]) -> HookAction | Nothing:
    if detail.get("Event") == _TEST:
        return Nothing("it is the test that Auto Scaling sends when a hook is made")
    kind = _KINDS.get(str(detail.get("LifecycleTransition")))
    if kind is None:
        return Nothing("it is not about a lifecycle hook")
    words = [detail.get(key) for key in ("EC2InstanceId", "AutoScalingGroupName", "LifecycleHookName")]
    if not all(isinstance(word, str) and word for word in words):
        return Nothing("instance, group or hook is missing")
    instance, group, hook = map(str, words)
    return HookAction(kind, instance, group, hook, str(detail.get("LifecycleActionToken") or ""))
