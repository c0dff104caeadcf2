"""A live node is not disturbed by surprise: which differences would disturb its pods, and moving the pods away first.

A node is live when it has lost its startup taint: pods may be on it. One that is not Ready, whose pod network is gone
and none of whose pods runs a container any more, is not. Without `--drain` the script itself refuses a change that
would disturb them (problem `NeedsDrain`).
"""

from __future__ import annotations

from collections.abc import Sequence

from winboot.base.errors import NodeFailed
from winboot.node.run import Pass
from winboot.remote.cluster.base import ALL_PODS, Cluster, DrainRules, Wait
from winboot.report.events import Difference, StepDone


def needs_drain(steps: Sequence[StepDone]) -> bool:
    """Whether one of the differences found would disturb pods when it is changed."""
    return any(disturbs_pods(difference) for step in steps for difference in step.differences)


def disturbs_pods(difference: Difference) -> bool:
    """Whether the change would disturb pods. What exists and cannot be judged yet is left alone until it can be."""
    rough = difference.reboot or difference.disrupts or difference.disturbs
    unknown = difference.is_ is not None and difference.unknown
    return rough and not difference.policy and not unknown


def held_back(done: Pass) -> list[StepDone]:
    """The steps that the script did not change because pods are on the node."""
    return [step for step in done.steps if step.problem is not None and step.problem.id == "NeedsDrain"]


def drain(cluster: Cluster, name: str, *, timeout: float, wait: Wait, rules: DrainRules = ALL_PODS) -> None:
    """Cordon the node and evict its pods, for at most `timeout` seconds. NodeFailed where pods are left; then the node is
    schedulable again, if it was before."""
    cordoned = cluster.cordon(name)
    drained = cluster.drain(name, timeout=timeout, wait=wait, rules=rules)
    if drained.left:
        if cordoned:
            cluster.uncordon(name)
        pods = "; ".join(f"{pod}: {why}" for pod, why in drained.left)
        raise NodeFailed(
            f"{name}: winboot could not drain the node, and changed nothing: {pods}",
            hint="Check these pods (disruption budgets, pods without a controller) and run the same command again.",
            node=name,
        )
