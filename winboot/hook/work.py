"""What is done for one machine: it is joined until its Node is Ready, or its Node is drained and removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from winboot import cloud_routes
from winboot.admission import LABELS, STARTUP_TAINT, Admission
from winboot.cloud.base import CloudHost, same_provider_id
from winboot.cloud.composing import Member
from winboot.cloud.pool import ANY_LIVE, Pool
from winboot.cluster.base import Cluster, NodeFacts
from winboot.cluster.requests import concerns
from winboot.errors import InvalidInput, UsageError
from winboot.events import StepDone
from winboot.fleet import Options, RunContext
from winboot.inventory import Machine
from winboot.join import join
from winboot.report import NodeReport
from winboot.roster import Roster
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
    """The ways to machines and cluster, and how long each may take. Times are in seconds.

    `self_registering` says that machines join by themselves (their image or user data does it): no session is opened, and
    what a machine cannot do for itself is done in the cluster.
    """

    pool: Pool
    context: RunContext
    options: Options
    join_timeout: float = 2400.0
    drain_timeout: float = 600.0
    again: float = _AGAIN_S
    self_registering: bool = False

    def target(self, instance: str) -> Target | None:
        """The machine, where the inventory means it; None for one that is not in it, or one that is gone."""
        return next(iter(self.targets((instance,))), None)

    def targets(self, instances: tuple[str, ...] = ()) -> list[Target]:
        """All machines that the inventory means, or those of these ids, as the cloud has them now."""
        members = self.pool.members(self.pool.asked(ids=instances, states=ANY_LIVE))
        machines = {one.name: one for one in self.pool.inventory(members)} if members else {}
        return [self._target(one, machines[one.name]) for one in members]

    def _target(self, member: Member, machine: Machine) -> Target:
        spec = resolve(machine.profile, machine)
        cluster = self.context.cluster(spec)
        if cluster is None:
            raise UsageError(
                "the profile has no cluster.kubeconfig",
                hint="Name one; in a pod of the cluster its service account is used.",
            )
        return Target(member, spec, cluster)

    def host(self, instance: str) -> CloudHost | None:
        """The machine, whoever it belongs to."""
        return self.pool.provider.host(instance)

    def launch(self, target: Target, lost: Callable[[], bool], *, take_over: bool = False) -> Outcome:
        """Until the Node is Ready. `take_over` raises the machine's fence against a run that another worker left there."""
        bring = self._finished if self.self_registering else partial(self._joined, take_over=take_over)
        deadline = time.monotonic() + self.join_timeout
        while True:
            try:
                reason = bring(target)
            except InvalidInput as error:
                return Outcome(False, error.problem)
            if not reason:
                return Outcome(True, "; ".join(self._forwarded(target)))
            if lost():
                return Outcome(False, f"another worker has taken it over; here it had come to: {reason}")
            if time.monotonic() >= deadline or self.context.stop.wait(self.again):
                return Outcome(False, reason)

    def _joined(self, target: Target, *, take_over: bool) -> str:
        """One join; why it did not end well, or nothing. A machine that still starts is no error."""
        patience = replace(self.options.patience, poll=target.spec.machine.connection.poll_s)
        options = replace(self.options, patience=patience, take_over=take_over)
        (report,) = join([target.spec], self.context, options, command="hook").nodes
        return "" if report.exit_code == 0 else reason_of(report)

    def _finished(self, target: Target) -> str:
        """What a machine that joins by itself leaves to us: its serving certificate, labels and taints, and last the
        startup taint. Why it is not done yet, or nothing."""
        roster = Roster.of([target.spec])
        refused = [one for one in target.cluster.judge_requests(roster.judge) if not one.approved]
        if refused:
            return f"certificate request {refused[0].request}: {'; '.join(refused[0].reasons)}"
        node = self.node_of(target)
        if node is None:
            return "the machine has not registered its Node"
        if node.name != target.spec.node.name or not node.provider_id:
            return f"the Node {node.name} does not say that it is {target.member.identity.provider_id}"
        if not node.ready:
            return f"the Node is not Ready: {node.reason}: {node.message}"
        if target.spec.kubelet.config.get("serverTLSBootstrap") is True and not _has_serving(target, roster):
            return "the kubelet has not asked for its serving certificate"
        steps: list[StepDone] = []
        ours = (LABELS, STARTUP_TAINT)
        wait = self.context.stop.wait
        admission = Admission(target.cluster, target.spec, ours, 0.0, wait, _nothing, _nothing, minted=False)
        admission.admit(steps.append)
        return next((step.problem.message for step in steps if step.problem is not None), "")

    def _forwarded(self, target: Target) -> tuple[str, ...]:
        """What was changed in the cloud's network for the node's pods, a sentence each."""
        return cloud_routes.settle(
            self.pool.provider, target.member.host, target.spec, target.cluster, self.pool.file
        )

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


def _has_serving(target: Target, roster: Roster) -> bool:
    """Whether its kubelet has a serving certificate, or is being given one."""
    (expected,) = roster.nodes
    return any(
        one.kind == "serving" and one.state in ("approved", "issued") and concerns(one, expected)
        for one in target.cluster.certificate_requests()
    )


def _nothing(text: str) -> None:
    """Nobody listens."""


def reason_of(report: NodeReport) -> str:
    """Why a node is not done, in one sentence."""
    if report.failure is not None:
        return report.failure.message
    for step in report.steps:
        if step.problem is not None:
            return f"step {step.name}: {step.problem.message}"
    return "the Node is not Ready"
