"""Which rights winboot needs in AWS: one table, from which the policy is printed and which tests hold against the calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

Part = Literal["inventory", "password", "hook", "routes", "replace", "console"]
# What the calls of the inventory need is needed by every other part, too.
PARTS: Final[tuple[Part, ...]] = ("inventory", "password", "hook", "routes", "replace", "console")


@dataclass(frozen=True, slots=True)
class Right:
    """One call: IAM's `service:Operation`, what it is for, and how far it can be narrowed.

    `resource` is `*` for what IAM cannot narrow (Describe calls), `tagged` for what carries the cluster's tag,
    `queue` for the hook's queue. `key` is for the customer's KMS key that encrypts the queue (SQS developer guide,
    "Key management": a receiver needs kms:Decrypt; AWS' own key needs no right). See the service authorization
    reference of EC2, EC2 Auto Scaling and SQS. Actions on queues know no condition key aws:ResourceTag, so they are
    bound to the queue's ARN; tests/cloud/test_aws_policy.py has the reference's rows.
    """

    action: str
    part: Part
    why: str
    resource: Literal["*", "tagged", "queue", "key"] = "*"


# Where each service says what its actions are, what they can be narrowed to, and by which condition keys.
_REFERENCE: Final = "https://docs.aws.amazon.com/service-authorization/latest/reference/"
SOURCES: Final = {
    "autoscaling": _REFERENCE + "list_amazonec2autoscaling.html",
    "ec2": _REFERENCE + "list_amazonec2.html",
    "kms": _REFERENCE + "list_awskeymanagementservice.html",
    "sqs": _REFERENCE + "list_amazonsqs.html",
}

RIGHTS: Final = (
    Right("ec2:DescribeInstances", "inventory", "which machines there are"),
    Right("ec2:GetPasswordData", "password", "password: {ec2_key: …}", "tagged"),
    Right("sqs:ReceiveMessage", "hook", "messages of lifecycle hooks", "queue"),
    Right("sqs:ChangeMessageVisibility", "hook", "keep a message while its machine is worked on", "queue"),
    Right("sqs:DeleteMessage", "hook", "a message is done with", "queue"),
    Right("kms:Decrypt", "hook", "messages of a queue that a key of yours encrypts", "key"),
    Right("autoscaling:DescribeAutoScalingInstances", "hook", "does a machine still wait?"),
    Right(
        "autoscaling:DescribeLifecycleHooks",
        "hook",
        "do the time limits of the group's hooks leave enough time?",
    ),
    Right("autoscaling:DescribeAutoScalingGroups", "hook", "how many machines may start at once?"),
    Right("autoscaling:RecordLifecycleActionHeartbeat", "hook", "ask for more time", "tagged"),
    Right(
        "autoscaling:CompleteLifecycleAction",
        "hook",
        "answer the hook: a machine enters or leaves the group",
        "tagged",
    ),
    Right("ec2:DescribeRouteTables", "routes", "routes to pods"),
    Right("ec2:ModifyInstanceAttribute", "routes", "switch the source/destination check off", "tagged"),
    Right("ec2:CreateRoute", "routes", "a route to the pods of a node", "tagged"),
    Right("ec2:ReplaceRoute", "routes", "a route that points elsewhere, or nowhere", "tagged"),
    Right("ec2:GetConsoleOutput", "console", "what a machine says that never reached the hook", "tagged"),
    Right("autoscaling:TerminateInstanceInAutoScalingGroup", "replace", "repair --by replace", "tagged"),
)


def rights(parts: Iterable[Part]) -> tuple[Right, ...]:
    """The rights of some parts; the inventory's are always among them."""
    wanted = {"inventory", *parts}
    return tuple(one for one in RIGHTS if one.part in wanted)


def policy(parts: Iterable[Part], *, cluster: str, queue: str = "*", key: str = "") -> dict[str, Any]:
    """The IAM policy. `cluster` is the name in the tag kubernetes.io/cluster/NAME, `queue` the queue's ARN, `key` the ARN
    of the KMS key that encrypts it, empty where AWS' own does."""
    return {"Version": "2012-10-17", "Statement": list(_statements(rights(parts), cluster, queue, key))}


def _statements(wanted: tuple[Right, ...], cluster: str, queue: str, key: str) -> Iterator[dict[str, Any]]:
    tag = f"aws:ResourceTag/kubernetes.io/cluster/{cluster}"
    forms: dict[str, tuple[str, dict[str, Any]]] = {
        "*": ("WinbootReads", {"Resource": "*"}),
        "tagged": ("WinbootChangesItsCluster", {"Resource": "*", "Condition": {"StringLike": {tag: "*"}}}),
        "queue": ("WinbootWorksOnTheQueue", {"Resource": queue}),
        **({"key": ("WinbootReadsTheQueue", {"Resource": key})} if key else {}),
    }
    for kind, (name, rest) in forms.items():
        actions = sorted(one.action for one in wanted if one.resource == kind)
        if actions:
            yield {"Sid": name, "Effect": "Allow", "Action": actions, **rest}
