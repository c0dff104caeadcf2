"""The story: make every machine of an inventory a Ready node of its cluster, and report on each.

    look → preflight → claim → drain → change → admit

`PHASES` has what each of them does; `winboot steps` prints them with the steps of both sides.
`survey` is the same without a change: what `winboot plan` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from winboot.base.errors import InvalidInput, NoNodeYet, WrongMachine
from winboot.config.node_spec import NodeSpec, unresolved
from winboot.node.admission import STARTUP_TAINT, Admission, believed
from winboot.node.drain import drain, held_back, needs_drain
from winboot.node.fleet import NodeRun, Options, RunContext, run_nodes
from winboot.node.names import Claim, expected_node
from winboot.node.preflight import Preflight
from winboot.node.run import Pass
from winboot.operations.join.secrets import change_secrets
from winboot.remote.cluster.approver import Approver
from winboot.remote.cluster.base import NodeFacts
from winboot.remote.cluster.identity import same_machine
from winboot.report.events import StepDone
from winboot.report.results import Need, Report, collect

# The step that waits for the serving certificate.
REGISTRATION = "registration"


def survey(
    specs: Sequence[NodeSpec], context: RunContext, options: Options, *, command: str = "plan"
) -> Report:
    """Look at every node and say how it differs; nothing is changed anywhere. For `repair`, machines that are not nodes are
    skipped.

    Raises InvalidInput while the cluster's CA is missing: each node would be compared with a text that cannot run.
    """
    refuse_without_ca(specs)
    preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=options.drain)
    work = survey_known_node if command in ("repair", "upgrade", "rollback") else survey_node
    return run_nodes(command, partial(work, preflight=preflight), specs, context, options, preflight.so_far)


def join(
    specs: Sequence[NodeSpec], context: RunContext, options: Options, *, command: str = "join"
) -> Report:
    """Make every node what its profile says. A node that is so already costs one pipeline; the command `repair` skips
    machines that are not nodes.

    Raises InvalidInput while a CA or a hash is missing: nothing is downloaded that is not pinned.
    """
    refuse_unresolved(specs)
    preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=options.drain)
    work = partial(work_of(command), preflight=preflight)
    return run_nodes(command, work, specs, context, options, preflight.so_far)


def work_of(command: str) -> Callable[..., None]:
    """What `join` and `repair` do with a node, whose run they take, and the `preflight`."""
    return repair_node if command == "repair" else join_node


def check_both_sides(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
    """Preflight alone: the cluster's side, and the machine's own step of that name."""
    preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=options.drain)
    only = replace(options, only=("node-preflight", "download-sources"), versions="released")
    return run_nodes(
        "preflight", partial(survey_node, preflight=preflight), specs, context, only, preflight.so_far
    )


def ask_sources(specs: Sequence[NodeSpec], context: RunContext, options: Options) -> Report:
    """Let each machine ask for what it would have to download, without a call to the cluster."""
    only = replace(options, only=("download-sources",), versions="released")
    return run_nodes("ping", _look, specs, context, only)


def _look(run: NodeRun) -> None:
    run.look(None)


def refuse_unresolved(specs: Sequence[NodeSpec]) -> None:
    """Raises InvalidInput that names every CA and hash that is missing."""
    _refuse({what: None for spec in specs for what in unresolved(spec)})


def refuse_without_ca(specs: Sequence[NodeSpec]) -> None:
    """Raises InvalidInput where a CA is missing."""
    _refuse(without_ca(specs))


def without_ca(specs: Sequence[NodeSpec]) -> dict[str, None]:
    """What `unresolved` says of the CA, once; empty where every node has it."""
    return {"cluster.ca": None} if any(not spec.cluster.ca_pem for spec in specs) else {}


def _refuse(missing: Mapping[str, None]) -> None:
    if missing:
        raise InvalidInput(
            f"{len(missing)} value{' is' if len(missing) == 1 else 's are'} still missing",
            problems=tuple(missing),
            hint="`winboot init -i INVENTORY` fetches CA and artifacts once and fills them in.",
        )


def survey_node(run: NodeRun, *, preflight: Preflight) -> None:
    """Look at one node, and at its Node."""
    _survey(run, run.connect_cluster(), preflight)


def survey_known_node(run: NodeRun, *, preflight: Preflight) -> None:
    """The same for a machine whose Node exists; NoNodeYet for another one."""
    _survey(run, _existing(run), preflight)


def _survey(run: NodeRun, node: NodeFacts | None, preflight: Preflight) -> None:
    preflight.findings(run.spec)
    look = run.look(node)
    run.look_for_life(node, look)
    refuse_another_machine(run.spec, node, look)
    for done in _look_at_node(run, node):
        run.step(done)
    run.needs.extend(_needs(run, node, look))


def _look_at_node(run: NodeRun, node: NodeFacts | None) -> tuple[StepDone, ...]:
    """What the controller's own steps would change at the Node."""
    admission = _admission(run)
    return tuple(admission.look(node)) if admission is not None else ()


def _needs(run: NodeRun, node: NodeFacts | None, look: Pass) -> Iterator[Need]:
    """The flags without which a join of this node would refuse, each with what it is for."""
    if run.is_live(node) and not run.options.drain and needs_drain(look.steps):
        names = [step.step for step in look.steps if needs_drain([step])]
        yield Need("--drain", f"pods run on it, and these steps would disturb them: {', '.join(names)}")
    if any(step.problem is not None and step.problem.id == "ForeignNode" for step in look.steps):
        yield Need("--adopt", "another tool made this machine a node")


def join_node(run: NodeRun, *, preflight: Preflight) -> None:
    """Bring one machine to Ready. Preflight runs only where something is to be changed: a node that is right costs
    the cluster nothing more."""
    run.refuse_other_script()
    join_known_node(run, run.connect_cluster(), preflight=preflight)


def repair_node(run: NodeRun, *, preflight: Preflight) -> None:
    """The same for a machine whose Node exists. Raises NoNodeYet for another one: it is not even connected to."""
    run.refuse_other_script()
    join_known_node(run, _existing(run), preflight=preflight)


def _existing(run: NodeRun) -> NodeFacts:
    """The Node of a machine that has one; NoNodeYet for another one."""
    node = run.connect_cluster()
    if node is None:
        where = (
            "the profile has no kubeconfig" if run.cluster is None else "the cluster has no Node of this name"
        )
        raise NoNodeYet(
            f"{run.name}: {where}", hint="`winboot join` makes this machine a node.", node=run.name
        )
    return node


def join_known_node(run: NodeRun, node: NodeFacts | None, *, preflight: Preflight) -> None:
    """Take a machine through the phases; `node` is the Node as it was before, if there is one."""
    with ExitStack() as until_ended:
        state = _Join(run, node, preflight, until_ended)
        for phase in PHASES:
            if phase.always or state.look.to_change:
                phase.do(state)


@dataclass(slots=True)
class _Join:
    """What the phases of one join hand on. `until_ended` gives the claim back."""

    run: NodeRun
    node: NodeFacts | None
    preflight: Preflight
    until_ended: ExitStack
    look: Pass = field(init=False)
    claim: Claim = field(init=False)
    drained: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a join, its title for people, and whether a machine that is right goes through it, too."""

    name: str
    title: str
    do: Callable[[_Join], None]
    always: bool = False


def _look_first(state: _Join) -> None:
    state.look = _looked(state.run, state.node)


def _ask_preflight(state: _Join) -> None:
    run = state.run
    if run.turned:
        state.preflight = state.preflight.instead(run.spec)
    state.preflight.stop_on_error(run.spec)


def _take(state: _Join) -> None:
    run = state.run
    if not state.until_ended.enter_context(run.claimed()):
        return
    # Another run may have changed the machine while this one waited. It may be a node by now, with pods.
    run.record.steps.clear()
    run.record.told.clear()
    if run.cluster is not None:
        state.node = run.connect_cluster()
    state.look = _looked(run, state.node)


def _looked(run: NodeRun, node: NodeFacts | None) -> Pass:
    """A look, at a machine that may be changed. Raises WrongMachine and OtherThanPlanned."""
    look = run.look(node)
    run.look_for_life(node, look)
    refuse_another_machine(run.spec, node, look)
    if run.options.approved is not None:
        held = [] if run.held is None else [run.held]
        run.refuse_other_look(collect([*look.steps, *held, *_look_at_node(run, node)]))
    return look


def refuse_another_machine(spec: NodeSpec, node: NodeFacts | None, look: Pass) -> None:
    """A Node that is Ready or was admitted must not lose its name to another machine: WrongMachine. One that is not Ready may
    have pods all the same, which could answer instead of a machine."""
    if node is None or same_machine(node.system_uuid, look.started.smbios_uuid):
        return
    if not node.ready and not node.was_admitted(spec.node.startup_taint.key):
        return
    name, state = spec.node.name, "Ready" if node.ready else "admitted"
    raise WrongMachine(
        f"{name}: the cluster has the {state} Node {name} on another machine "
        f"({node.system_uuid}; this one is {look.started.smbios_uuid})",
        hint="Correct the address or the name in the inventory; if that machine is gone, delete the Node: "
        f"kubectl delete node {name}",
        node=name,
    )


def _claim(run: NodeRun, look: Pass, preflight: Preflight) -> Claim:
    """What a certificate may have because the machine says it. Raises ClaimRefused where that is to come and may not:
    before anything is changed, and before a secret is made."""
    serving = run.spec.kubelet.config.get("serverTLSBootstrap") is True and run.cluster is not None
    differs = any(step.step == REGISTRATION for step in look.to_change)
    claim = Claim(run.spec, preflight.others(run.spec), needed=serving and differs)
    claim.hear(look.started)
    run.runner.on_started = claim.hear
    return claim


def _drain_first(state: _Join) -> None:
    # Refuses what a certificate may not have, before a pod is evicted.
    state.claim = _claim(state.run, state.look, state.preflight)
    state.drained = _drained(state.run, state.node, state.look.to_change)


def _change(state: _Join) -> None:
    run, node, look, claim, drained = state.run, state.node, state.look, state.claim, state.drained
    with change_secrets(
        run.spec,
        run.plan,
        look.to_change,
        run.cluster,
        run.notes.append,
        lambda token: setattr(run, "token", token),
        run.context.run,
    ) as secrets:
        approver = Approver(
            run.cluster,
            run.name,
            lambda: expected_node(run.spec, claim.address, secrets.requestor),
            poll=run.options.patience.poll,
        )
        try:
            with approver:
                done = run.runner.change(run.facts(node, drained=drained), secrets.values)
                # What a look could not know, or what follows from another change, shows only now.
                if not drained and _drained(run, node, held_back(done)):
                    drained = True
                    run.runner.change(run.facts(node, drained=True), secrets.values)
        finally:
            run.notes.extend(approver.refusals)
    # With the whole plan the cordon goes last, when the node is Ready again (admission).
    if drained and run.cluster is not None and STARTUP_TAINT not in _own_steps(run):
        run.cluster.uncordon(run.name)


def _drained(run: NodeRun, node: NodeFacts | None, steps: Sequence[StepDone]) -> bool:
    """Drain when a difference would disturb pods and --drain allows it; true when that was done."""
    if run.cluster is None or not (run.options.drain and run.is_live(node) and needs_drain(steps)):
        return False
    run.wait("draining", run.options.drain_timeout)
    drain(
        run.cluster,
        run.name,
        timeout=run.options.drain_timeout,
        wait=run.pause,
        rules=run.options.drain_rules,
    )
    return True


def _admit(state: _Join) -> None:
    """Nothing of it on a node whose own steps are not done."""
    run = state.run
    admission = _admission(run)
    if admission is None:
        return
    undone = [step.name for step in collect(run.record.steps) if step.state not in ("ok", "changed")]
    if undone:
        for blocked in admission.blocked(undone):
            run.step(blocked)
        return
    seen = admission.admit(run.step)
    run.ready = seen is not None and seen.ready


def _admission(run: NodeRun) -> Admission | None:
    """The controller's own steps of the plan; None without a cluster, or where the plan has none of them."""
    steps, prove = _own_steps(run), run.options.prove
    if run.cluster is None or not steps:
        return None
    return Admission(
        run.cluster,
        run.spec,
        steps,
        run.options.ready,
        run.pause,
        lambda why: run.wait(why, run.options.ready),
        run.notes.append,
        changed=any(step.state == "changed" for step in run.record.steps),
        prove=believed if prove is None else partial(prove, run, run.began),
    )


def _own_steps(run: NodeRun) -> tuple[str, ...]:
    return tuple(step.name for step in run.plan.cluster_side)


PHASES: Final = (
    Phase("look", "compare the machine and its Node with the profile", _look_first, always=True),
    Phase("preflight", "check the cluster for everything that a join needs", _ask_preflight),
    Phase("claim", "keep other runs away from the node", _take),
    Phase("drain", "evict the node's pods if a change disturbs them and --drain allows it", _drain_first),
    Phase("change", "apply all steps with differences, across restarts and detached runs", _change),
    Phase(
        "admit", "wait for Ready, set labels and taints, remove the startup taint last", _admit, always=True
    ),
)
