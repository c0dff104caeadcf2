"""Messages of lifecycle hooks: every envelope says the same, and no text stops the worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from winboot.operations.hook.message import Nothing, parse
from winboot.remote.cloud.base import HookAction

DIRECT: dict[str, Any] = {
    "Service": "AWS Auto Scaling",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING",
    "EC2InstanceId": "i-0a",
    "AutoScalingGroupName": "pool",
    "LifecycleHookName": "join",
    "LifecycleActionToken": "t-1",
}
LAUNCH = HookAction("launch", "i-0a", "pool", "join", "t-1")
BRIDGE = {
    "source": "aws.autoscaling",
    "detail-type": "EC2 Instance-launch Lifecycle Action",
    "detail": DIRECT,
}


@pytest.mark.parametrize(
    "body",
    [DIRECT, BRIDGE, {"Type": "Notification", "Message": json.dumps(DIRECT)}],
    ids=["direct", "bridge", "sns"],
)
def test_every_envelope_says_the_same(body: dict[str, Any]) -> None:
    assert parse(json.dumps(body)) == LAUNCH


def test_a_machine_that_ends_is_told_from_one_that_starts() -> None:
    body = {**DIRECT, "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    assert parse(json.dumps(body)) == HookAction("terminate", "i-0a", "pool", "join", "t-1")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("no json", "no JSON"),
        ("[1]", "no JSON object"),
        (json.dumps({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"}), "the test"),
        (json.dumps({"source": "aws.ec2", "detail": {}}), "not about a lifecycle hook"),
        (json.dumps({"source": "aws.autoscaling", "detail": []}), "detail"),
        (json.dumps({**DIRECT, "EC2InstanceId": ["i-0a"]}), "missing"),
        (json.dumps({**DIRECT, "LifecycleHookName": ""}), "missing"),
    ],
)
def test_what_is_no_work_says_why(body: str, why: str) -> None:
    found = parse(body)
    assert isinstance(found, Nothing) and why in found.reason
