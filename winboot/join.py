"""The story: make every machine of an inventory a Ready node of its cluster, and report on each.

    look → (drain) → change, over restarts and detached runs → Ready → labels and taints → lift the startup taint

`survey` is the same without a change: what `winboot plan` prints.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from winboot import fleet
from winboot.cluster.approver import Approver
from winboot.cluster.base import Cluster, ExpectedNode, NodeFacts, NodeWish
from winboot.cluster.identity import same_machine
from winboot.cluster.labels import cordoned_by_us
from winboot.cluster.labels import differences as label_differences
from winboot.compat.platform import check_skew
from winboot.errors import ClusterError, InternalError, InvalidInput, NodeFailed, WinbootError, WrongMachine
from winboot.events import Difference, Problem, StepDone
from winboot.journal import Journal
from winboot.plan import Plan, make_plan
from winboot.report import Failure, NodeReport, Report, collect
from winboot.run import Drive, Listener, Pass, Patience, Stop
from winboot.script import Helpers, Script, helpers, render
from winboot.secret import Secret
from winboot.spec import NodeSpec, unresolved
from winboot.steps import STEPS
from winboot.steps.kube_proxy_config import KUBECONFIG_SECRET, own_kubeconfig
from winboot.transport.base import Transport

# Long enough for a machine that restarts twice, short enough to be worth little when found.
TOKEN_LIFETIME: Final = timedelta(hours=2)
BOOTSTRAP: Final = "bootstrap-token"
# How a look says that a value comes into being only with the join.
KNOWN_LATER: Final = "(known after join)"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for. Times are in seconds; `ready` bounds the wait for the Ready condition."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    drain: bool = False
    take_over: bool = False
    workers: int = 32
    ready: float = 300.0
    drain_timeout: float = 600.0
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True)
class World:
    """What a run needs from outside: ways to the machines and the cluster, ears, and a place for its journal."""

    connect: Callable[[NodeSpec], Transport]
    cluster: Callable[[NodeSpec], Cluster | None]
    listener: Listener
    journals: Path
    run: str
    holder: str
    stop: Stop


@dataclass(frozen=True, slots=True)
class Task:
    """One node with everything that is decided before it is contacted."""

    spec: NodeSpec
    plan: Plan
    script: Script


def prepare(specs: Sequence[NodeSpec], options: Options) -> list[Task]:
    """Plan and render every node; a mistake shows before any machine is contacted."""
    tasks = []
    for spec in specs:
        plan = make_plan(spec, STEPS, only=options.only, skip=options.skip)
        tasks.append(Task(spec, plan, render(plan, spec)))
    return tasks


def survey(specs: Sequence[NodeSpec], world: World, options: Options) -> Report:
    """Look at every node and say how it differs; nothing is changed anywhere."""
    return _each("plan", _survey_node, specs, world, options)


def refuse_unresolved(specs: Sequence[NodeSpec]) -> None:
    """Raises InvalidInput while a CA or a hash is missing: nothing is downloaded that is not pinned."""
    missing = {what: None for spec in specs for what in unresolved(spec)}
    if missing:
        raise InvalidInput(
            f"{len(missing)} values are still to be found out",
            problems=tuple(missing),
            hint="`winboot init` fetches the artifacts once and fills them in.",
        )


def join(specs: Sequence[NodeSpec], world: World, options: Options, *, command: str = "join") -> Report:
    """Make every node what its profile says. A node that is so already costs one pipeline."""
    refuse_unresolved(specs)
    return _each(command, _join_node, specs, world, options)


def _each(
    command: str,
    work: Callable[[Work], NodeReport],
    specs: Sequence[NodeSpec],
    world: World,
    options: Options,
) -> Report:
    started, clock = datetime.now(UTC), time.monotonic()
    small = helpers()
    works = [Work(task, world, options, small) for task in prepare(specs, options)]
    nodes = fleet.each(works, lambda one: one.guarded(work), stop=world.stop, workers=options.workers)
    return Report(
        command=command,
        run=world.run,
        started=started.isoformat(timespec="seconds"),
        nodes=tuple(nodes),
        seconds=time.monotonic() - clock,
    )


class Work:
    """One node while it is worked on: its session, its journal, and what has happened so far."""

    def __init__(self, task: Task, world: World, options: Options, small: Helpers) -> None:
        self.spec = task.spec
        self.plan = task.plan
        self.world = world
        self.options = options
        self.name = task.spec.node.name
        self.cluster: Cluster | None = None
        self.cluster_steps: list[StepDone] = []
        self.ready: bool | None = None
        # The id of the bootstrap token that was made for this run.
        self.token: str | None = None
        self.notes: list[str] = []
        self.journal = Journal(world.journals / world.run / f"{self.name}.jsonl")
        self.drive = Drive(
            self.name,
            task.script.text,
            small,
            lambda: world.connect(task.spec),
            listener=world.listener,
            journal=self.journal,
            patience=options.patience,
            stop=world.stop,
        )

    def guarded(self, work: Callable[[Work], NodeReport]) -> NodeReport:
        """Do the work; an error becomes this node's outcome and nobody else's, be it expected or a bug."""
        clock = time.monotonic()
        try:
            report = work(self)
        except WinbootError as error:
            self.journal.write("failed", {"name": type(error).__name__, "problem": error.problem})
            report = self.report(Failure.of(error))
        except Exception as error:  # noqa: BLE001 - a bug at one node must not cost the others their report
            report = self.report(Failure.of(self._bug(error)))
        finally:
            self.drive.close()
            self.journal.close()
        return replace(report, seconds=time.monotonic() - clock)

    def _bug(self, error: Exception) -> InternalError:
        self.journal.write("bug", {"traceback": "".join(traceback.format_exception(error))})
        return InternalError(
            f"{self.name}: a bug in winboot itself: {type(error).__name__}: {error}",
            hint=f"Report it with {self.journal.path}; running the command again loses nothing.",
            node=self.name,
        )

    def report(self, failure: Failure | None = None) -> NodeReport:
        """What has happened so far, as this node's part of the report."""
        tally = self.drive.tally
        whys = {step.name: step.why for step in self.plan.steps}
        if self.journal.problem:
            self.notes.append(self.journal.problem)
        return NodeReport(
            node=self.name,
            address=self.spec.machine.address,
            os=self.spec.machine.os,
            steps=collect([*tally.steps, *self.cluster_steps], whys),
            failure=failure,
            reboots=tally.reboots,
            detached=tally.detached,
            reconnects=tally.reconnects,
            pipelines=tally.pipelines,
            ready=self.ready,
            notes=tuple(self.notes),
        )

    def facts(self, node: NodeFacts | None, *, drained: bool = False) -> Mapping[str, object]:
        """What the script is told: a node that has lost its startup taint may have pods, and is not disturbed."""
        live = node is not None and not node.has_taint(self.spec.node.startup_taint.key)
        return {
            "NodeIsLive": live,
            "Drained": drained,
            "TakeOver": self.options.take_over,
            "Holder": self.world.holder,
        }

    def say(self, text: str) -> None:
        """Tell the listener what the controller does for this node."""
        self.world.listener.say(self.name, text)

    def step(self, name: str, done: StepDone) -> None:
        """Record a step that the controller did."""
        self.cluster_steps.append(done)
        self.world.listener.event(self.name, done)

    @property
    def wish(self) -> NodeWish:
        """Labels and taints as the profile wants them."""
        return NodeWish(self.spec.node.labels, self.spec.node.taints)


def _survey_node(work: Work) -> NodeReport:
    node = _meet_cluster(work)
    look = work.drive.look(work.facts(node))
    _check_identity(work, node, look)
    for done in _cluster_look(work, node):
        work.step(done.step, done)
    return work.report()


def _join_node(work: Work) -> NodeReport:
    node = _meet_cluster(work)
    look = work.drive.look(work.facts(node))
    _check_identity(work, node, look)
    if look.to_change:
        _change(work, node, look)
    _finish(work)
    return work.report()


def _meet_cluster(work: Work) -> NodeFacts | None:
    """Connect to the cluster and ask for the Node; without a kubeconfig only the node's own side is done."""
    work.cluster = work.world.cluster(work.spec)
    if work.cluster is None:
        work.notes.append("no cluster.kubeconfig in the profile: Ready, labels and taints were not looked at")
        return None
    node = work.cluster.node(work.name)
    work.ready = node is not None and node.ready
    return node


def _check_identity(work: Work, node: NodeFacts | None, look: Pass) -> None:
    """A Ready Node that is another machine must not lose its name to this one."""
    if node is None or not node.ready or same_machine(node.system_uuid, look.started.smbios_uuid):
        return
    raise WrongMachine(
        f"{work.name}: the cluster has a Ready node of this name on another machine "
        f"({node.system_uuid}; this one is {look.started.smbios_uuid})",
        hint="Correct the address or the name in the inventory, or delete the Node if that machine is gone.",
        node=work.name,
    )


def _change(work: Work, node: NodeFacts | None, look: Pass) -> None:
    """The change pipeline, with the node drained first where that is wanted and needed."""
    _refuse_skew(work)
    drained = _drain(work, node, look.to_change)
    try:
        secrets, requestor = _secrets(work, look)
        with Approver(
            work.cluster, work.name, lambda: _expected(work, requestor), poll=work.options.patience.poll
        ) as approver:
            done = work.drive.change(work.facts(node, drained=drained), secrets)
            # What a look could not know, or what follows from another change, shows only now.
            if not drained and _drain(work, node, _held_back(done)):
                drained = True
                work.drive.change(work.facts(node, drained=True), secrets)
        work.notes.extend(approver.refusals)
    finally:
        # Another controller at the same node has a token of its own, which its kubelet may still need.
        if work.cluster is not None and work.token is not None:
            work.cluster.forget_token(work.token)
    # With the whole plan the cordon goes last, when the node is Ready again (_admit).
    if drained and work.cluster is not None and not any(s.name == "startup-taint" for s in work.plan.steps):
        work.cluster.uncordon(work.name)


def _refuse_skew(work: Work) -> None:
    """A kubelet newer than the API server, or too old for it, is not installed."""
    if work.cluster is None:
        return
    for finding in check_skew(work.spec.kubernetes.version, work.cluster.version()):
        raise NodeFailed(
            f"{work.name}: {finding.about}: {finding.reason}",
            hint=f"kubernetes.version in the profile: {finding.instead}.",
            node=work.name,
        )


def _held_back(done: Pass) -> list[StepDone]:
    """The steps that a node with pods on it did not let happen."""
    return [step for step in done.steps if step.problem is not None and step.problem.id == "NeedsDrain"]


def _is_rough(difference: Difference) -> bool:
    """Whether mending it would disturb pods. What is there and cannot be judged yet is left alone until it can."""
    rough = difference.reboot or difference.disrupts or difference.disturbs
    unknown = difference.is_ is not None and KNOWN_LATER in (difference.want or "")
    return rough and not difference.policy and not unknown


def _drain(work: Work, node: NodeFacts | None, steps: Sequence[StepDone]) -> bool:
    """Cordon and evict when a difference would disturb pods and --drain allows it; true when that was done."""
    rough = [d for step in steps for d in step.differences if _is_rough(d)]
    live = work.facts(node)["NodeIsLive"]
    if not (work.options.drain and live and rough and work.cluster is not None):
        return False
    work.say("draining")
    work.cluster.cordon(work.name)
    drained = work.cluster.drain(work.name, timeout=work.options.drain_timeout, wait=work.world.stop.wait)
    if drained.left:
        pods = "; ".join(f"{pod}: {why}" for pod, why in drained.left)
        raise NodeFailed(
            f"{work.name}: not drained, nothing was changed: {pods}",
            hint="Free these pods (disruption budgets, pods without a controller) and run the same command again.",
            node=work.name,
        )
    return True


def _secret_names(work: Work, look: Pass) -> set[str]:
    """The secrets that the differing steps ask for."""
    differing = {step.step for step in look.to_change}
    return {
        name for step in work.plan.node_side if step.name in differing for name in step.secrets(work.spec)
    }


def _secrets(work: Work, look: Pass) -> tuple[dict[str, Secret], str | None]:
    """The secrets of the differing steps, read or minted now, and the user a bootstrap token speaks as."""
    secrets: dict[str, Secret] = {}
    requestor = None
    for name in sorted(_secret_names(work, look)):
        if name == BOOTSTRAP:
            secrets[name] = _bootstrap_token(work)
            requestor = f"system:bootstrap:{secrets[name].reveal().partition('.')[0]}"
        elif name == KUBECONFIG_SECRET:
            secrets[name] = _kube_proxy_kubeconfig(work)
        else:
            secrets[name] = _registry_secret(work, name)
    return secrets, requestor


def _bootstrap_token(work: Work) -> Secret:
    wanted = work.spec.cluster.bootstrap_token
    if wanted != "mint":
        return wanted.read(f"{work.name}: cluster.bootstrap_token")
    if work.cluster is None:
        raise InvalidInput(
            f"{work.name}: a token must be minted, but the profile names no cluster.kubeconfig",
            hint="Name one, or give cluster.bootstrap_token as {env: NAME}, {file: PATH} or {command: [...]}.",
        )
    token = work.cluster.mint_token(node=work.name, lifetime=TOKEN_LIFETIME)
    work.token = token.id
    return token.value


def _kube_proxy_kubeconfig(work: Work) -> Secret:
    wanted, where = work.spec.kube_proxy.kubeconfig, f"{work.name}: kube_proxy.kubeconfig"
    assert wanted is not None  # the step asks for it only then
    return own_kubeconfig(wanted.read(where), work.spec, where)


def _registry_secret(work: Work, name: str) -> Secret:
    for registry in work.spec.runtime.registries:
        if registry.secret == name and registry.credential is not None:
            return registry.credential.read(f"{work.name}: runtime.registries.{registry.host}.credential")
    raise InvalidInput(
        f"{work.name}: no reference says where the secret {name!r} is", hint="Check the profile."
    )


def _expected(work: Work, requestor: str | None) -> ExpectedNode:
    """What a certificate of this node may say: what inventory and machine gave, not what the Node claims."""
    machine = work.spec.machine
    started = work.drive.tally.started
    names = {work.name, machine.computer_name.lower(), *([started.computer_name.lower()] if started else [])}
    # What winboot connects to may be a name, a NAT or a management adapter: the machine knows its own address.
    own = machine.node_ip or (started.node_ip if started else "")
    return ExpectedNode(
        name=work.name,
        names=frozenset(names) | frozenset(machine.certificate_names),
        addresses=frozenset({own, *machine.certificate_names} - {""}),
        requestors=frozenset({requestor} if requestor else ()),
    )


def _cluster_look(work: Work, node: NodeFacts | None) -> list[StepDone]:
    """The controller's own steps, looked at."""
    found: dict[str, tuple[Difference, ...]] = {
        "node-labels": _label_look(work, node),
        "startup-taint": _taint_look(work, node),
    }
    chosen = {step.name for step in work.plan.cluster_side}
    if work.cluster is None:
        return []
    return [
        StepDone("", name, "would-change" if differences else "ok", 0, differences)
        for name, differences in found.items()
        if name in chosen
    ]


def _label_look(work: Work, node: NodeFacts | None) -> tuple[Difference, ...]:
    if node is not None:
        return label_differences(node, work.wish)
    labels = tuple(
        Difference(f"node label {key}", None, value) for key, value in sorted(work.wish.labels.items())
    )
    return labels + tuple(
        Difference(f"node taint {taint.key}:{taint.effect}", None, str(taint)) for taint in work.wish.taints
    )


def _taint_look(work: Work, node: NodeFacts | None) -> tuple[Difference, ...]:
    taint = work.spec.node.startup_taint
    if node is None:
        return (Difference(f"node {work.name}: Ready", None, "True"),)
    if node.has_taint(taint.key):
        return (Difference(f"node taint {taint.key}", str(taint), None),)
    if not node.ready:
        return (Difference(f"node {work.name}: Ready", node.reason or "False", "True"),)
    # A cordon of ours that an earlier run could not lift.
    return (Difference(f"node {work.name}: cordon", "by winboot", None),) if cordoned_by_us(node) else ()


def _finish(work: Work) -> None:
    """Ready, labels and taints, and last the startup taint; nothing of it on a node whose own steps are not done."""
    chosen = {step.name for step in work.plan.cluster_side}
    if work.cluster is None or not chosen:
        return
    undone = [
        step.name
        for step in collect(work.drive.tally.steps)
        if step.state not in ("ok", "changed", "skipped")
    ]
    if undone:
        problem = Problem(
            "NeedsStep", f"the node is not done: {', '.join(undone)}", "Mend those steps first."
        )
        for step in work.plan.cluster_side:
            work.step(step.name, StepDone("", step.name, "blocked", 0, problem=problem))
        return
    if "node-labels" in chosen:
        _timed(work, "node-labels", lambda cluster: cluster.change_node(work.name, work.wish))
    if "startup-taint" in chosen:
        _timed(work, "startup-taint", lambda cluster: _admit(work, cluster))


def _timed(work: Work, name: str, act: Callable[[Cluster], tuple[Difference, ...]]) -> None:
    """Do one of the controller's steps; what it changed is what was different."""
    assert work.cluster is not None  # _finish has asked
    clock = time.monotonic()
    try:
        changed = act(work.cluster)
    except (ClusterError, NodeFailed) as error:
        problem = Problem(type(error).__name__, error.problem, error.hint)
        work.step(name, StepDone("", name, "failed", _ms(clock), problem=problem))
        return
    work.step(name, StepDone("", name, "changed" if changed else "ok", _ms(clock), changed))


def _admit(work: Work, cluster: Cluster) -> tuple[Difference, ...]:
    """Wait for Ready and lift the startup taint: from here on pods may come."""
    before = cluster.node(work.name)
    # Another controller may have brought it here since this one has looked.
    work.ready = before is not None and before.ready
    differences = _taint_look(work, before)
    if not differences:
        return ()
    if before is None or not before.ready:
        work.say("waiting for Ready")
    node = cluster.wait_ready(work.name, timeout=work.options.ready, wait=work.world.stop.wait)
    work.ready = node is not None and node.ready
    if node is None or not node.ready:
        reason = "there is no Node" if node is None else f"{node.reason}: {node.message}"
        raise NodeFailed(
            f"not Ready after {work.options.ready:.0f} s: {reason}",
            hint=f"kubectl describe node {work.name}; the kubelet's log on the machine says more.",
            node=work.name,
        )
    # One that a killed run left behind has done its duty, too.
    cluster.forget_tokens(node=work.name)
    cluster.lift_taint(work.name, work.spec.node.startup_taint.key)
    cluster.uncordon(work.name)
    return differences


def _ms(clock: float) -> int:
    return round((time.monotonic() - clock) * 1000)
