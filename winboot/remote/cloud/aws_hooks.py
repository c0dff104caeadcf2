"""The queue that lifecycle hooks write to, and the answers that Auto Scaling waits for."""

from __future__ import annotations

import re
from typing import Any, Final

from winboot.base.errors import CloudError
from winboot.remote.cloud.aws_calls import Calls, translated
from winboot.remote.cloud.base import HookAction, Letter

# How long SQS holds a request while there is no message: the longest it allows.
LONG_POLL_S: Final = 20


class AwsHooks:
    """One queue; see `winboot.remote.cloud.base.HookQueue`."""

    def __init__(self, calls: Calls, url: str, region: str, *, long_poll: int = LONG_POLL_S) -> None:
        found = re.match(r"https://sqs\.([a-z0-9-]+)\.", url)
        self._region = found.group(1) if found is not None else region
        self._calls = calls
        self._url = url
        self._long_poll = long_poll

    def receive(self, most: int, visibility: int) -> list[Letter]:
        """Wait for messages; none after the long poll is over."""
        with translated("waiting for messages"):
            answer: Any = self._calls.client("sqs", self._region).receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(most, 10),
                WaitTimeSeconds=self._long_poll,
                VisibilityTimeout=visibility,
                AttributeNames=["ApproximateReceiveCount"],
            )
        return [
            Letter(
                handle=one["ReceiptHandle"],
                body=one["Body"],
                received=int(one.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for one in answer.get("Messages", [])
        ]

    def extend(self, letter: Letter, seconds: int) -> None:
        """Keep the message from being delivered again for so long."""
        with translated("keeping a message"):
            self._calls.client("sqs", self._region).change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=letter.handle, VisibilityTimeout=seconds
            )

    def delete(self, letter: Letter) -> None:
        """The message is done with."""
        with translated("deleting a message"):
            self._calls.client("sqs", self._region).delete_message(
                QueueUrl=self._url, ReceiptHandle=letter.handle
            )

    def state(self, action: HookAction) -> str:
        """The lifecycle state of the instance (`Pending:Wait`); empty where no group has it."""
        with translated(f"reading the lifecycle state of {action.instance}"):
            answer = self._calls.client("autoscaling", self._region).describe_auto_scaling_instances(
                InstanceIds=[action.instance]
            )
        return next((str(one["LifecycleState"]) for one in answer["AutoScalingInstances"]), "")

    def begin(self, action: HookAction) -> None:
        """Nothing: an instance that waits for its hook is neither repaired nor chosen by a scale-in."""

    def heartbeat(self, action: HookAction) -> None:
        """Ask for more time."""
        with translated(f"sending the heartbeat of {action.instance}"):
            self._calls.client("autoscaling", self._region).record_lifecycle_action_heartbeat(
                **_words(action)
            )

    def complete(self, action: HookAction, result: str) -> bool:
        """CONTINUE or ABANDON; False where nobody waits for it any more, because it was answered or timed out."""
        try:
            with translated(f"completing the hook of {action.instance}"):
                self._calls.client("autoscaling", self._region).complete_lifecycle_action(
                    **_words(action), LifecycleActionResult=result
                )
        except CloudError:
            # Auto Scaling answers ValidationError for any reason; the state tells whether it still waits.
            if self.state(action).endswith(":Wait"):
                raise
            return False
        return True


def _words(action: HookAction) -> dict[str, str]:
    words = {
        "LifecycleHookName": action.hook,
        "AutoScalingGroupName": action.group,
        "InstanceId": action.instance,
    }
    return {**words, **({"LifecycleActionToken": action.token} if action.token else {})}
