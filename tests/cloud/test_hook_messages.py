"""Messages of lifecycle hooks: every envelope says the same, and no text stops the worker."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from winboot.remote.cloud.aws_messages import parse
from winboot.remote.cloud.base import HookAction, Nothing

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


def test_a_machine_that_ends_is_distinguished_from_one_that_starts() -> None:
    body = {**DIRECT, "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    assert parse(json.dumps(body)) == HookAction("terminate", "i-0a", "pool", "join", "t-1")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("no json", "not JSON"),
        ("[1]", "not a JSON object"),
        (json.dumps({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"}), "the test"),
        (json.dumps({"source": "aws.ec2", "detail": {}}), "names no instance"),
        (json.dumps({"LifecycleTransition": "autoscaling:NEW"}), "not about a lifecycle hook"),
        (json.dumps({"source": "aws.autoscaling", "detail": []}), "detail"),
        (json.dumps({**DIRECT, "EC2InstanceId": ["i-0a"]}), "missing"),
        (json.dumps({**DIRECT, "LifecycleHookName": ""}), "missing"),
    ],
)
def test_what_is_no_work_says_why(body: str, why: str) -> None:
    found = parse(body)
    assert isinstance(found, Nothing) and why in found.reason


def bridge(kind: str, detail: dict[str, Any], source: str = "aws.ec2") -> str:
    """An event as EventBridge writes it."""
    return json.dumps(
        {"source": source, "detail-type": kind, "time": "2026-01-01T00:00:00Z", "detail": detail}
    )


NOON = datetime(2026, 1, 1, tzinfo=UTC)
STATE = "EC2 Instance State-change Notification"
MAINTENANCE = {
    "service": "EC2",
    "eventTypeCategory": "scheduledChange",
    "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "startTime": "Thu, 01 Jan 2026 06:00:00 GMT",
    "affectedEntities": [{"entityValue": "i-0a"}, {"entityValue": "i-0b"}, {"entityValue": "vol-1"}],
}


@pytest.mark.parametrize(
    ("body", "action"),
    [
        (
            bridge("EC2 Spot Instance Interruption Warning", {"instance-id": "i-0a"}),
            HookAction(
                "drain", "i-0a", "", "spot interruption", until=NOON + timedelta(minutes=2), final=True
            ),
        ),
        (
            bridge("EC2 Instance Rebalance Recommendation", {"instance-id": "i-0a"}),
            HookAction("cordon", "i-0a", "", "rebalance recommendation"),
        ),
        (
            bridge(STATE, {"instance-id": "i-0a", "state": "shutting-down"}),
            HookAction("cordon", "i-0a", "", "state shutting-down"),
        ),
        (
            bridge(STATE, {"instance-id": "i-0a", "state": "terminated"}),
            HookAction("gone", "i-0a", "", "state terminated"),
        ),
        (
            bridge("AWS Health Event", MAINTENANCE, "aws.health"),
            HookAction(
                "drain",
                "i-0a",
                "",
                "scheduled change AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
                until=NOON + timedelta(hours=6),
                also=("i-0b",),
            ),
        ),
    ],
    ids=["spot", "rebalance", "shutting-down", "terminated", "maintenance"],
)
def test_what_is_said_of_an_instance_beside_hooks_is_work(body: str, action: HookAction) -> None:
    assert parse(body) == action


def test_brackets_nested_by_the_thousand_and_envelopes_in_envelopes_end_nothing() -> None:
    assert parse("[" * 100_000) == Nothing("it is not JSON")
    nested = json.dumps(DIRECT)
    for _ in range(5):
        nested = json.dumps({"Type": "Notification", "Message": nested})
    assert isinstance(parse(nested), Nothing)


@pytest.mark.parametrize(
    ("body", "understood"),
    [
        (bridge(STATE, {"instance-id": "i-0a", "state": "running"}), True),
        (bridge("EC2 Instance Launch Successful", {"EC2InstanceId": "i-0a"}, "aws.autoscaling"), True),
        (bridge("AWS Health Event", {"service": "RDS"}, "aws.health"), True),
        (json.dumps({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"}), True),
        (bridge("Something Newer", {"instance-id": "i-0a"}), False),
        (bridge("Anything", {}, "my.own"), False),
        ("no json", False),
    ],
)
def test_what_is_understood_and_no_work_is_distinguished_from_what_is_not_understood(
    body: str, understood: bool
) -> None:
    found = parse(body)
    assert isinstance(found, Nothing) and found.understood is understood
