"""The stand-in for AWS does what AWS's API reference says of the calls that moto lacks."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError
from winboot_lab.aws import AwsSite


def test_a_group_with_hooks_waits_at_both_ends_and_says_so(aws: AwsSite) -> None:
    aws.group("pool", aws.network())
    scaling, sqs = aws.client("autoscaling"), aws.client("sqs")

    aws.scale("pool", 2)
    assert set(aws.states("pool").values()) == {"Pending:Wait"}
    first, second = aws.states("pool")
    common = {"AutoScalingGroupName": "pool", "LifecycleHookName": "launching"}
    scaling.record_lifecycle_action_heartbeat(InstanceId=first, **common)
    scaling.complete_lifecycle_action(InstanceId=first, LifecycleActionResult="CONTINUE", **common)
    scaling.complete_lifecycle_action(InstanceId=second, LifecycleActionResult="ABANDON", **common)
    assert aws.states("pool") == {first: "InService"}
    with pytest.raises(ClientError, match="No active Lifecycle Action"):
        scaling.complete_lifecycle_action(InstanceId=first, LifecycleActionResult="CONTINUE", **common)

    aws.scale("pool", 0)
    assert aws.states("pool") == {first: "Terminating:Wait"}
    bodies = [
        json.loads(message["Body"])
        for _ in range(3)
        for message in sqs.receive_message(QueueUrl=aws.queue(), MaxNumberOfMessages=10).get("Messages", [])
    ]
    assert sorted((one["EC2InstanceId"], one["LifecycleHookName"]) for one in bodies) == sorted(
        [(first, "launching"), (second, "launching"), (first, "terminating")]
    )
