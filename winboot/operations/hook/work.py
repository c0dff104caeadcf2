"""What is done for one machine: it is joined until its Node is Ready, or its Node is drained and removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from winboot.base.errors import InvalidInput, UsageError
from winboot.config.annotations import OWNED
from winboot.config.inventory import Connection, Machine
from winboot.config.node_spec import NodeSpec, resolve
from winboot.config.profile import Profile
from winboot.config.source import Table, raw
from winboot.node import cloud_routes
from winboot.node.admission import LABELS, STARTUP_TAINT, Admission
from winboot.node.fleet import Options, RunContext
from winboot.node.roster import Roster
from winboot.node.run import Listener, Stop
from winboot.operations.join import join
from winboot.remote.cloud.base import CloudHost, same_provider_id
from winboot.remote.cloud.cache import Found
from winboot.remote.cloud.composing import Member
from winboot.remote.cloud.passwords import without_password
from winboot.remote.cloud.pool import ANY_LIVE, EVERY, Pool
from winboot.remote.cluster.base import Cluster, NodeFacts, Verdict
from winboot.remote.cluster.claims import PLAN_DIGEST, PROVIDER_ID
from winboot.remote.cluster.requests import concerns
from winboot.remote.transport.reach import not_reached
from winboot.report.events import Event, StepDone
from winboot.report.notices import Notice
from winboot.report.results import NodeReport
from winboot.script.plan import make_plan
from winboot.script.steps import STEPS

_AGAIN_S: Final = 15.0
# How many machines winboot tries at the same time for an answer.
_AT_ONCE: Final = 64
Heard = Callable[[str], None]
Whose = Literal["ours", "ours, ended", "foreign", "gone"]


def _unheard(instance: str, problem: str) -> None:
    """Ignore the problem: there is no listener."""


@dataclass(frozen=True, slots=True)
class Target:
    """One of our machines: what it is in the cloud, what it is to be, and its cluster."""

    member: Member
    spec: NodeSpec
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work ended; `reason` says why it did not end well, and `code` the same as a class of error or problem. What
    is `final` ends no other way when it is tried again."""

    good: bool
    reason: str = ""
    code: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The Node of a machine: all that an end needs."""

    cluster: Cluster
    node: NodeFacts

    @property
    def ours(self) -> bool:
        """Whether winboot has made it a node; then winboot asks no cloud whose the machine is."""
        return OWNED in self.node.annotations


@dataclass(slots=True)
class NodeWork:
    """The ways to machines and cluster, and how long each may take. Times are in seconds.

    `self_registering` says that machines join by themselves (their image or user data does it). winboot opens no
    session, and does in the cluster what a machine cannot do for itself.
    """

    pool: Pool
    context: RunContext
    options: Options
    join_timeout: float = 2400.0
    drain_timeout: float = 600.0
    again: float = _AGAIN_S
    self_registering: bool = False
    clock: Callable[[], float] = time.monotonic
    # Called with a machine's id and what is wrong with it, where it does not resolve; the others go on.
    unresolved: Callable[[str, str], None] = _unheard
    _look: tuple[float, tuple[Target, ...]] | None = None
    _clusters: dict[int, Cluster] = field(default_factory=dict)

    def target(self, instance: str) -> Target | None:
        """The machine, where the inventory means it; None for one that is not in it, or one that is gone. InvalidInput
        where it does not resolve."""
        known = self.seen()
        found = None if known is None else _by_id(known, instance)
        if known is not None and (found is not None or self.pool.name != "aws"):
            return found
        members = self.pool.members(self.pool.asked(ids=(instance,), states=ANY_LIVE))
        return self._resolved(members)[0] if members else None

    def look(self, lasts: float) -> tuple[Target, ...]:
        """All machines, asked now; for so many seconds `seen` and `target` answer from this list without a call.

        For a cloud whose list of one machine costs as much as that of all.
        """
        found = tuple(self.targets())
        self._look = (self.clock() + lasts, found)
        return found

    def seen(self) -> tuple[Target, ...] | None:
        """What `look` has found; None where no look was made, or too long ago."""
        look = self._look
        return look[1] if look is not None and self.clock() < look[0] else None

    def notes(self, target: Target) -> dict[str, str]:
        """What a claim says of the work on a machine."""
        plan = make_plan(target.spec, STEPS, only=(), skip=())
        return {PROVIDER_ID: target.member.identity.provider_id, PLAN_DIGEST: f"sha256:{plan.digest}"}

    def targets(self, instances: tuple[str, ...] = ()) -> list[Target]:
        """All machines that the inventory means, or those of these ids, as the cloud has them now. One that does not
        resolve (its address or its name is gone already) is reported, and hides no other."""
        known = self.seen() if instances else None
        if known is not None and self.pool.name != "aws":
            return [one for one in known if one.member.host.id in instances]
        found = self.pool.asked(ids=instances, states=ANY_LIVE)
        try:
            return self._resolved(self.pool.members(found))
        except InvalidInput:
            return [target for one in found for target in self._alone(one)]

    def groups(self) -> tuple[str, ...]:
        """The groups of all machines that the inventory means now. One without machines is met with its first message."""
        found = self.pool.asked(ids=(), states=ANY_LIVE)
        return tuple(sorted({host.group for host, _ in found if host.group}))

    def _alone(self, found: Found) -> list[Target]:
        try:
            return self._resolved(self.pool.members([found]))
        except InvalidInput as error:
            problems = "; ".join(map(str, error.problems))
            self.unresolved(found[0].id, f"{error.problem}: {problems}" if problems else error.problem)
            return []

    def _resolved(self, members: Sequence[Member]) -> list[Target]:
        machines = {one.name: one for one in self.pool.inventory(members)} if members else {}
        return [self._target(one, machines[one.name]) for one in members]

    def _target(self, member: Member, machine: Machine) -> Target:
        spec = resolve(machine.profile, machine)
        cluster = self.context.cluster(spec)
        if cluster is None:
            raise UsageError(
                "the profile has no cluster.kubeconfig",
                hint="Set it; in a pod of the cluster, winboot uses the pod's service account.",
            )
        self._clusters[id(cluster)] = cluster
        return Target(member, spec, cluster)

    def clusters(self) -> list[Cluster]:
        """The clusters of the inventory's profiles and of all machines that were seen. A profile that can be read no
        longer removes none of them."""
        for profile in self._profiles():
            # Only what it says of the cluster counts; no machine has this name.
            machine = Machine("none", "", "2022", "NONE", None, Connection(), profile=profile)
            with suppress(InvalidInput):
                cluster = self.context.cluster(resolve(profile, machine))
                if cluster is not None:
                    self._clusters[id(cluster)] = cluster
        return list(self._clusters.values())

    def _profiles(self) -> Iterator[Profile]:
        settings = self.pool.top.get("settings")
        named = [
            self.pool.file.profile,
            *(
                str(raw(profile))
                for group in (settings.entries.values() if isinstance(settings, Table) else ())
                if isinstance(group.value, Table) and (profile := group.value.get("profile")) is not None
            ),
        ]
        for name in dict.fromkeys(one for one in named if one):
            with suppress(InvalidInput):
                yield self.pool.profile(name)

    def place(self, instance: str) -> Place | None:
        """The Node of an instance, by the provider id alone."""
        for cluster in self.clusters():
            for node in cluster.nodes():
                if is_instance(node.provider_id, instance):
                    return Place(cluster, node)
        return None

    def whose(self, instance: str) -> Whose:
        """Whose machine it is, by what the cloud answers now."""
        host = self.host(instance)
        if host is None:
            return "gone"
        if self.pool.asked(ids=(instance,), states=EVERY, any_state=True):
            return "ours" if host.state != "terminated" else "ours, ended"
        # EC2 shows a terminated instance for about an hour, but not always its tags.
        return "gone" if host.state == "terminated" and not host.tags else "foreign"

    def has_ended(self, instance: str) -> bool:
        """Whether the machine is no more, whatever cluster it belonged to."""
        host = self.host(instance)
        return host is None or host.state == "terminated"

    def host(self, instance: str) -> CloudHost | None:
        """The machine, whatever cluster it belongs to."""
        return self.pool.provider.host(instance)

    def answering(self, targets: Sequence[Target]) -> dict[str, str]:
        """By instance: why a machine cannot be joined yet, empty where it answers. winboot asks all at the same
        time."""
        if self.self_registering:
            return {one.member.host.id: "" for one in targets}
        with ThreadPoolExecutor(max_workers=min(_AT_ONCE, max(len(targets), 1))) as pool:
            answers = list(pool.map(lambda one: not_answering(one.spec), targets))
        return {one.member.host.id: answer for one, answer in zip(targets, answers, strict=True)}

    def launch(
        self, target: Target, halt: Stop, *, take_over: bool = False, heard: Heard | None = None
    ) -> Outcome:
        """Try once to make the Node Ready. `halt` ends it at its next step; `take_over` raises the machine's fence
        against a run that another worker left there. `heard` is called with the name of each step that has ended
        well."""
        joined = partial(self._joined, halt=halt, take_over=take_over, heard=heard or _nothing)
        bring = self._finished_here if self.self_registering else joined
        try:
            outcome = bring(target)
        except InvalidInput as error:
            return Outcome(False, error.problem, type(error).__name__, final=True)
        return Outcome(True, "; ".join(self._forwarded(target))) if outcome.good else outcome

    def prepare(
        self, target: Target, halt: Stop, *, take_over: bool = False, heard: Heard | None = None
    ) -> Outcome:
        """Try once to do all on a machine of a warm pool that says nothing of which node it will be. The cluster is not
        asked for anything."""
        if self.self_registering:
            return Outcome(True, "machines prepare themselves")
        only = tuple(step.name for step in STEPS if not step.identity)
        return self._joined(target, halt=halt, take_over=take_over, heard=heard or _nothing, only=only)

    def _joined(
        self, target: Target, *, halt: Stop, take_over: bool, heard: Heard, only: tuple[str, ...] = ()
    ) -> Outcome:
        """One join, or the part that `only` names. A machine that still starts is not an error."""
        patience = replace(self.options.patience, poll=target.spec.machine.connection.poll_s)
        options = replace(self.options, patience=patience, take_over=take_over, only=only)
        context = replace(self.context, listener=_Steps(self.context.listener, heard), stop=halt)
        if only:
            context = replace(context, cluster=lambda spec: None)
        (report,) = join([target.spec], context, options, command="hook").nodes
        if report.exit_code == 0:
            return Outcome(True)
        return Outcome(False, reason_of(report), code_of(report))

    def settle(self) -> tuple[list[Verdict], list[Target]]:
        """Judge the certificate requests of all machines that the inventory means; gives what became of them, and the
        machines whose Node is Ready and still has its startup taint. A cordoned Node is an administrator's: winboot
        leaves it out."""
        clusters: dict[int, list[Target]] = {}
        for one in self.targets():
            clusters.setdefault(id(one.cluster), []).append(one)
        verdicts: list[Verdict] = []
        open_: list[Target] = []
        for several in clusters.values():
            cluster = several[0].cluster
            verdicts += cluster.judge_requests(Roster.of([one.spec for one in several]).judge)
            nodes = {one.name: one for one in cluster.nodes() if one.ready and not one.unschedulable}
            for one in several:
                node = nodes.get(one.spec.node.name)
                if node is not None and node.has_taint(one.spec.node.startup_taint.key):
                    open_.append(one)
        return verdicts, open_

    def finish(self, target: Target) -> Outcome:
        """What a machine that joined by itself leaves to us, tried once."""
        try:
            outcome = self._finished_here(target)
            return Outcome(True, "; ".join(self._forwarded(target))) if outcome.good else outcome
        except InvalidInput as error:
            return Outcome(False, error.problem, type(error).__name__)

    def _finished_here(self, target: Target) -> Outcome:
        reason = _finish(self, target)
        return Outcome(not reason, reason, "NotFinished" if reason else "")

    def _forwarded(self, target: Target) -> tuple[str, ...]:
        """What was changed in the cloud's network for the node's pods, a sentence each."""
        return cloud_routes.settle(
            self.pool.provider, target.member.host, target.spec, target.cluster, self.pool.file
        )

    def drain(self, place: Place, seconds: float, over: Callable[[], bool]) -> str:
        """Evict its pods for a bounded time, or until `over` says that there is nothing left to wait for; gives what was
        left, by name."""

        def wait(pause: float) -> bool:
            return self.context.stop.wait(pause) or over()

        drained = place.cluster.drain(place.node.name, timeout=max(seconds, 0.0), wait=wait)
        return "; ".join(f"{pod}: {why}" for pod, why in drained.left)

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


def _finish(work: NodeWork, target: Target) -> str:
    """What a machine that joins by itself leaves to us: its serving certificate, labels and taints, and last the
    startup taint. Why it is not done yet, or nothing."""
    roster = Roster.of([target.spec])
    refused = [one for one in target.cluster.judge_requests(roster.judge) if not one.approved]
    if refused:
        return f"certificate request {refused[0].request}: {'; '.join(refused[0].reasons)}"
    node = work.node_of(target)
    if node is None:
        return "the machine has not registered its Node"
    if node.name != target.spec.node.name or not node.provider_id:
        return f"the Node {node.name} does not have the providerID {target.member.identity.provider_id}"
    if not node.ready:
        return f"the Node is not Ready: {node.reason}: {node.message}"
    if target.spec.kubelet.config.get("serverTLSBootstrap") is True and not _has_serving(target, roster):
        return "the kubelet has not requested its serving certificate"
    steps: list[StepDone] = []
    ours = (LABELS, STARTUP_TAINT)
    wait = work.context.stop.wait
    admission = Admission(target.cluster, target.spec, ours, 0.0, wait, _nothing, _nothing)
    admission.admit(steps.append)
    return next((step.problem.message for step in steps if step.problem is not None), "")


def _by_id(targets: Sequence[Target], instance: str) -> Target | None:
    return next((one for one in targets if one.member.host.id.lower() == instance.lower()), None)


def is_instance(provider_id: str, instance: str) -> bool:
    """Whether a provider id is that of this instance: aws:///ZONE/ID whatever the zone, azure:// and the ARM id."""
    if provider_id.startswith("azure://"):
        return provider_id.removeprefix("azure://").lower() == instance.lower()
    return provider_id.startswith("aws://") and provider_id.rpartition("/")[2] == instance


def _has_serving(target: Target, roster: Roster) -> bool:
    """Whether its kubelet has a serving certificate, or is being given one."""
    (expected,) = roster.nodes
    return any(
        one.kind == "serving" and one.state in ("approved", "issued") and concerns(one, expected)
        for one in target.cluster.certificate_requests()
    )


def _nothing(text: str) -> None:
    """Ignore the text: there is no listener."""


def not_answering(spec: NodeSpec) -> str:
    """Why a machine cannot be joined yet: nothing listens, or its cloud has no password for it; empty where it can."""
    return not_reached(spec.machine.connection) or without_password(spec)


@dataclass(frozen=True, slots=True)
class _Steps:
    """A listener that also reports which steps have ended well."""

    inner: Listener
    heard: Heard

    def event(self, node: str, event: Event | Notice) -> None:
        """See `Listener`."""
        self.inner.event(node, event)
        if isinstance(event, StepDone) and event.state in ("ok", "changed"):
            self.heard(event.step)

    def say(self, node: str, text: str) -> None:
        """See `Listener`."""
        self.inner.say(node, text)


def code_of(report: NodeReport) -> str:
    """Why a node is not done, as the class of its error or the id of its step's problem."""
    if report.failure is not None:
        return report.failure.name
    return next((step.problem.id for step in report.steps if step.problem is not None), "NotReady")


def reason_of(report: NodeReport) -> str:
    """Why a node is not done, in one sentence."""
    if report.failure is not None:
        return report.failure.message
    for step in report.steps:
        if step.problem is not None:
            return f"step {step.name}: {step.problem.message}"
    return "the Node is not Ready"
