"""What is done for one machine: it is joined until its Node is Ready, or its Node is drained and removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from winboot.cloud.base import CloudHost, same_provider_id
from winboot.cloud.composing import Member
from winboot.cloud.pool import ANY_LIVE, Pool
from winboot.cluster.base import Cluster, NodeFacts
from winboot.errors import InvalidInput, UsageError
from winboot.fleet import Options, RunContext
from winboot.join import join
from winboot.report import NodeReport
from winboot.spec import NodeSpec, resolve

_AGAIN_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Target:
    """One machine of ours: what it is in the cloud, what it is to be, and its cluster."""

    member: Member
    spec: NodeSpec
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work ended; `reason` says why it did not end well."""

    good: bool
    reason: str = ""


@dataclass(slots=True)
class NodeWork:
    """The ways to machines and cluster, and how long each may take. Times are in seconds."""

    pool: Pool
    context: RunContext
    options: Options
    join_timeout: float = 2400.0
    drain_timeout: float = 600.0
    again: float = _AGAIN_S

    def target(self, instance: str) -> Target | None:
        """The machine, where the inventory means it; None for one that is not in it, or one that is gone."""
        found = self.pool.asked(ids=(instance,), states=ANY_LIVE)
        members = self.pool.members(found)
        if not members:
            return None
        machine = next(iter(self.pool.inventory(members)))
        spec = resolve(machine.profile, machine)
        cluster = self.context.cluster(spec)
        if cluster is None:
            raise UsageError(
                "the profile has no cluster.kubeconfig", hint="A hook's worker needs the cluster."
            )
        return Target(members[0], spec, cluster)

    def host(self, instance: str) -> CloudHost | None:
        """The machine, whoever it belongs to."""
        return self.pool.provider.host(instance)

    def launch(self, target: Target, lost: Callable[[], bool]) -> Outcome:
        """Join until the Node is Ready. A machine that still starts is tried again, for a bounded time."""
        deadline = time.monotonic() + self.join_timeout
        patience = replace(self.options.patience, poll=target.spec.machine.connection.poll_s)
        options = replace(self.options, patience=patience)
        while True:
            try:
                (report,) = join([target.spec], self.context, options, command="hook").nodes
            except InvalidInput as error:
                return Outcome(False, error.problem)
            if report.exit_code == 0:
                return Outcome(True)
            reason = reason_of(report)
            if lost():
                return Outcome(False, f"another worker has taken it over; here it had come to: {reason}")
            if time.monotonic() >= deadline or self.context.stop.wait(self.again):
                return Outcome(False, reason)

    def terminate(self, target: Target) -> Outcome:
        """Drain for a bounded time, then remove the Node: the machine goes in any case."""
        node = self.node_of(target)
        if node is None:
            return Outcome(True, "there was no Node")
        target.cluster.cordon(node.name)
        drained = target.cluster.drain(node.name, timeout=self.drain_timeout, wait=self.context.stop.wait)
        target.cluster.delete_node(node.name)
        left = "; ".join(f"{pod}: {why}" for pod, why in drained.left)
        return Outcome(True, f"pods were left: {left}" if left else "")

    @staticmethod
    def node_of(target: Target) -> NodeFacts | None:
        """Its Node: by provider id first, by name second, and never another machine's."""
        wanted = target.member.identity.provider_id
        named = target.cluster.node(target.spec.node.name)
        if named is not None and same_provider_id(named.provider_id or wanted, wanted):
            return named
        return next(
            (one for one in target.cluster.nodes() if same_provider_id(one.provider_id, wanted)), None
        )


def reason_of(report: NodeReport) -> str:
    """Why a node is not done, in one sentence."""
    if report.failure is not None:
        return report.failure.message
    for step in report.steps:
        if step.problem is not None:
            return f"step {step.name}: {step.problem.message}"
    return "the Node is not Ready"
