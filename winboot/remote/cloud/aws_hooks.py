"""The queue that lifecycle hooks write to, and the answers that Auto Scaling waits for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from winboot.base.errors import CloudError, UsageError
from winboot.remote.cloud.aws_calls import Calls, error_code, translated
from winboot.remote.cloud.aws_messages import parse
from winboot.remote.cloud.base import HookAction, HookNeeds, Message, Stage

# How long SQS holds a request while there is no message: the longest it allows.
LONG_POLL_S: Final = 20
# A label of a host name that is a region: eu-west-1, us-gov-east-1, us-isob-east-1.
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")
# "Legacy service endpoints" of SQS: https://docs.aws.amazon.com/general/latest/gr/sqs-service.html.
_FIRST: Final = "queue.amazonaws.com"
_FIRST_REGION: Final = "us-east-1"
# What SQS answers about a queue that is not there, by its two protocols (API reference, ReceiveMessage).
_NO_QUEUE: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})

# States in which a group has let a machine in, or works on letting it in.
_STAYS: Final = (
    *("InService", "Pending", "Standby", "EnteringStandby", "Detach"),
    *("Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated"),
)


class AwsHooks:
    """One queue; see `winboot.remote.cloud.base.HookQueue`."""

    def __init__(self, calls: Calls, url: str, region: str, *, long_poll: int = LONG_POLL_S) -> None:
        self._region = region_of(url) or region
        self._endpoint = endpoint_of(url)
        self._calls = calls
        self._url = url
        self._long_poll = long_poll

    @property
    def abandoned_ends(self) -> bool:
        """Auto Scaling terminates it."""
        return True

    def _queue(self) -> Any:
        return self._calls.client("sqs", self._region, endpoint=self._endpoint)

    def receive(self, most: int, visibility: int) -> list[Message]:
        """Wait for messages; none after the long poll is over. UsageError where there is no such queue."""
        try:
            with translated("waiting for messages"):
                answer: Any = self._queue().receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(most, 10),
                    WaitTimeSeconds=self._long_poll,
                    VisibilityTimeout=visibility,
                    AttributeNames=["ApproximateReceiveCount"],
                )
        except CloudError as error:
            if error_code(error) in _NO_QUEUE:
                raise UsageError(
                    f"there is no queue {self._url} in {self._region}",
                    hint="`aws sqs list-queues` shows the URLs of those there are; --queue takes one.",
                ) from error
            raise
        return [
            Message(
                handle=one["ReceiptHandle"],
                action=parse(one["Body"]),
                id=one.get("MessageId", ""),
                received=int(one.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for one in answer.get("Messages", [])
        ]

    def extend(self, message: Message, seconds: int) -> None:
        """Keep the message from being delivered again for so long."""
        with translated("keeping a message"):
            self._queue().change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=message.handle, VisibilityTimeout=seconds
            )

    def delete(self, message: Message) -> None:
        """The message is done with."""
        with translated("deleting a message"):
            self._queue().delete_message(QueueUrl=self._url, ReceiptHandle=message.handle)

    def stage(self, action: HookAction) -> Stage:
        """By its lifecycle state, where a group has it."""
        return stage_of(self._state(action))

    def _state(self, action: HookAction) -> str:
        with translated(f"reading the lifecycle state of {action.instance}"):
            answer = self._calls.client("autoscaling", self._region).describe_auto_scaling_instances(
                InstanceIds=[action.instance]
            )
        return next((str(one["LifecycleState"]) for one in answer["AutoScalingInstances"]), "")

    def begin(self, action: HookAction) -> None:
        """Nothing: an instance that waits for its hook is neither repaired nor chosen by a scale-in."""

    def heartbeat(self, action: HookAction) -> bool:
        """Ask for more time; False where the group no longer waits: answered, timed out, or the machine is being
        ended."""
        try:
            with translated(f"sending the heartbeat of {action.instance}"):
                self._calls.client("autoscaling", self._region).record_lifecycle_action_heartbeat(
                    **_words(action)
                )
        except CloudError:
            # Auto Scaling answers ValidationError for any reason; the state shows whether it still waits.
            if waits_for(action, self._state(action)):
                raise
            return False
        return True

    def unfit(self, group: str, needs: HookNeeds) -> list[str]:
        """By the hooks of the group, and the most machines that it may start at once."""
        client = self._calls.client("autoscaling", self._region)
        with translated(f"reading the hooks of {group}"):
            hooks = client.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
            found = client.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        most = int(found[0]["MaxSize"]) if found else 1
        return [problem for hook in hooks for problem in unfit_hook(hook, most, needs)]

    def complete(self, action: HookAction, result: str) -> bool:
        """CONTINUE or ABANDON; False where the group no longer waits for it, because it was answered or timed out."""
        try:
            with translated(f"completing the hook of {action.instance}"):
                self._calls.client("autoscaling", self._region).complete_lifecycle_action(
                    **_words(action), LifecycleActionResult=result
                )
        except CloudError:
            # Auto Scaling answers ValidationError for any reason; the state shows whether it still waits.
            if waits_for(action, self._state(action)):
                raise
            return False
        return True


def stage_of(state: str) -> Stage:
    """Of a lifecycle state (EC2 Auto Scaling user guide, "Amazon EC2 Auto Scaling instance lifecycle"); empty: no group has the
    instance."""
    if not state:
        return "unlisted"
    warm, plain = state.startswith("Warmed:"), state.removeprefix("Warmed:")
    if plain.startswith("Pending") and not plain.endswith(":Proceed"):
        return "warms" if warm else "starts"
    return "stays" if state.startswith(_STAYS) else "ends"


def waits_for(action: HookAction, state: str) -> bool:
    """Whether a machine in this lifecycle state waits for the answer of this hook.

    With a warm pool, a machine that starts waits in Warmed:Pending:Wait and again in Pending:Wait. One that goes back
    into the pool waits in Warmed:Pending:Wait for the hook of its end (Auto Scaling user guide, "Use lifecycle hooks
    with a warm pool").
    """
    if action.kind == "launch":
        return state in ("Pending:Wait", "Warmed:Pending:Wait")
    return state in ("Terminating:Wait", "Warmed:Terminating:Wait", "Warmed:Pending:Wait")


def unfit_hook(hook: Mapping[str, Any], most: int, needs: HookNeeds) -> Iterator[str]:
    """What of one hook's limits cannot be met. `most` machines may start at once.

    GlobalTimeout, which no heartbeat prolongs, is 48 hours or a hundred times the heartbeat timeout, whichever is less
    (Auto Scaling API reference, LifecycleHook).
    """
    name, pause, whole = (
        hook["LifecycleHookName"],
        float(hook["HeartbeatTimeout"]),
        float(hook["GlobalTimeout"]),
    )
    if pause < needs.takeover:
        yield (
            f"hook {name} ends after {pause:.0f} s without a heartbeat, and a worker that is killed is followed by another "
            f"one within {needs.takeover:.0f} s: set its heartbeat timeout to 900"
        )
    if not str(hook["LifecycleTransition"]).endswith("LAUNCHING"):
        if whole < needs.drain:
            yield f"hook {name} ends after {whole:.0f} s in any case, and a drain may take {needs.drain:.0f} s"
        return
    rounds = math.ceil(max(most, 1) / needs.workers)
    longest = needs.join + rounds * needs.join
    if whole < longest:
        yield (
            f"hook {name} ends after {whole:.0f} s in any case, but {most} machines may need {longest:.0f} s. A machine "
            f"boots in {needs.join:.0f} s and joins in {needs.join:.0f} s, and {needs.workers} join at a time. Raise the "
            "hook's heartbeat timeout (a hundredth of the whole) or --workers, or lower --join-timeout"
        )


def _words(action: HookAction) -> dict[str, str]:
    words = {
        "LifecycleHookName": action.hook,
        "AutoScalingGroupName": action.group,
        "InstanceId": action.instance,
    }
    return {**words, **({"LifecycleActionToken": action.token} if action.token else {})}


def region_of(url: str) -> str:
    """The region that a queue's URL says; empty where it says none, as a stand-in's on loopback.

    `sqs.REGION.amazonaws.com`, `REGION.queue.amazonaws.com`, `sqs-fips.REGION.…`, `VPCE.sqs.REGION.vpce.…`,
    `sqs.REGION.api.aws` (https://docs.aws.amazon.com/general/latest/gr/sqs-service.html; SQS developer guide, "Interface
    VPC endpoints").
    """
    host = urlsplit(url).hostname or ""
    if host == _FIRST:
        return _FIRST_REGION
    return next((label for label in host.split(".") if _REGION.fullmatch(label)), "")


def endpoint_of(url: str) -> str | None:
    """Where to ask, where the SDK would not by itself: at a VPC endpoint or a FIPS one. None for the SDK's own choice."""
    found = urlsplit(url)
    host = found.hostname or ""
    if ".vpce." in host or host.startswith("sqs-fips."):
        return f"{found.scheme}://{found.netloc}"
    return None
