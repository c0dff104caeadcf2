"""The way back: a machine is as it was before winboot, and its Node leaves the cluster.

    look → drain → undo, over restarts and detached runs → delete Node, certificate requests, Lease and tokens

The Node goes last: while its kubelet runs it would come back. Killed anywhere, the same command continues.
`survey_removal` is the same without a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from msgspec import structs

from winboot.base.errors import ClusterError, InvalidInput, NotDone
from winboot.config.annotations import OWNED
from winboot.config.compat import Version
from winboot.config.node_spec import NodeSpec
from winboot.node.drain import drain
from winboot.node.fleet import Budget, NodeRun, Options, RunContext, run_nodes
from winboot.node.run import Pass
from winboot.operations.join.story import refuse_another_machine
from winboot.remote.cluster import labels
from winboot.remote.cluster.base import Belonging, Cluster, NodeFacts, NodeWish, PodFacts
from winboot.report.events import Difference, Problem, StepDone
from winboot.report.results import Report, collect

# What the controller does; named like steps in the report.
DRAIN: Final = "drain"
NODE_OBJECT: Final = "node-object"
# How it calls a machine that is another tool's node, or is one again after the undo.
OTHERS: Final = "undo:other-tool"
# And one whose kubelet ran Docker before winboot took it over.
DOCKER: Final = "undo:docker"
# The first minor without dockershim (kubernetes CHANGELOG-1.24).
WITHOUT_DOCKERSHIM: Final = "1.24"
# A Node without a label and a taint of winboot.
_UNMARKED: Final = NodeWish({}, ())
_CORDON: Final = Difference("cordon of the Node", "winboot's", None, key="cordon")
# How a look calls what it finds without a note (templates/powershell/lib/removal.ps1).
UNNOTED: Final = "unnoted:"


@dataclass(frozen=True, slots=True)
class Removal:
    """What of a node is to go: `keep_node` leaves the Node in the cluster, `cluster_only` the machine alone. `others`: the
    node is another tool's again afterwards."""

    keep_node: bool = False
    cluster_only: bool = False
    others: bool = False


def survey_removal(
    specs: Sequence[NodeSpec], context: RunContext, options: Options, removal: Removal
) -> Report:
    """What a removal would do to each node; nothing is changed anywhere."""
    # A budget counts from the first change on.
    return _run(_survey, specs, context, replace(options, budget=Budget()), removal)


def remove(specs: Sequence[NodeSpec], context: RunContext, options: Options, removal: Removal) -> Report:
    """Remove one node after the other, in the order of the inventory."""
    return _run(_remove, specs, context, replace(options, workers=1), removal)


def _run(
    work: Callable[..., None],
    specs: Sequence[NodeSpec],
    context: RunContext,
    options: Options,
    removal: Removal,
) -> Report:
    if removal.cluster_only and (
        without := [one.node.name for one in specs if one.cluster.kubeconfig is None]
    ):
        raise InvalidInput(
            f"--cluster-only needs cluster.kubeconfig in the profile: {', '.join(without)}",
            hint="Set cluster.kubeconfig, or delete the Node with kubectl.",
        )
    return run_nodes(
        "remove",
        partial(work, removal=removal),
        specs,
        context,
        replace(options, undo=True),
    )


def _survey(run: NodeRun, *, removal: Removal) -> None:
    node = _reached(run, removal)
    look = None if removal.cluster_only else _looked(run, node)
    removal = _seen(removal, look)
    for done in _cluster_look(run, node, removal, look):
        run.step(done)


def _remove(run: NodeRun, *, removal: Removal) -> None:
    run.refuse_other_script()
    node = _reached(run, removal)
    # What is not a node any more needs no claim that shows how it is.
    with run.claimed(leave=False):
        look = None if removal.cluster_only else _looked(run, node)
        removal = _seen(removal, look)
        told = tuple(_cluster_look(run, node, removal, look))
        if look is not None and not _machine_undone(run, node, look, told, removal):
            run.step(_blocked())
            return
        if run.cluster is not None:
            _leave(run, run.cluster, node, removal)


def _looked(run: NodeRun, node: NodeFacts | None) -> Pass:
    look = run.look(node)
    refuse_another_machine(run.spec, node, look)
    refuse_dockershim(run.name, node.kubelet_version if node is not None else "", look.steps)
    return look


def _seen(removal: Removal, look: Pass | None) -> Removal:
    """The removal of this machine: the Node of another tool stays."""
    others = look is not None and OTHERS in _keys(look.steps)
    return replace(removal, keep_node=True, others=True) if others else removal


def refuse_dockershim(name: str, kubelet: str, steps: Sequence[StepDone]) -> None:
    """Raises NotDone where the undo would bring back dockershim after the kubelet's version, '' if unknown, has lost it."""
    if not kubelet or DOCKER not in _keys(steps):
        return
    if Version.parse(kubelet.removeprefix("v")).at_least(WITHOUT_DOCKERSHIM):
        raise NotDone(
            f"{name}: the node ran Docker with dockershim before, which Kubernetes {kubelet} no longer has",
            hint="Install the machine again, then run `winboot remove --cluster-only`; or go back to 1.23 first.",
            node=name,
        )


def _keys(steps: Sequence[StepDone]) -> set[str]:
    return {found.key for step in steps for found in step.differences}


def _reached(run: NodeRun, removal: Removal) -> NodeFacts | None:
    """The Node. Raises NotDone for --cluster-only where it is Ready: its machine is not gone."""
    node = run.connect_cluster()
    if run.cluster is None:
        run.notes.append(
            f"winboot cannot drain or delete the Node: kubectl drain {run.name}; kubectl delete node {run.name}"
        )
    if removal.cluster_only and node is not None and node.ready:
        raise NotDone(
            f"{run.name}: the Node is Ready, so its machine still exists",
            hint="Without --cluster-only, winboot also restores the machine.",
            node=run.name,
        )
    return node


def _machine_undone(
    run: NodeRun, node: NodeFacts | None, look: Pass, told: Sequence[StepDone], removal: Removal
) -> bool:
    """Drain the node and put its machine back; whether all of it is back."""
    run.refuse_other_look(collect([*look.steps, *told]))
    if run.cluster is not None and any(done.step == DRAIN for done in told):
        _drained(run, run.cluster, told)
    if not look.to_change:
        return True
    shown = [found.key for step in look.steps for found in step.differences]
    unnoted = [key.removeprefix(UNNOTED) for key in shown if key.startswith(UNNOTED)]
    run.runner.undo({**run.facts(node, drained=True), "Unnoted": unnoted})
    return all(step.state in ("ok", "changed") for step in collect(run.record.steps))


def _drained(run: NodeRun, cluster: Cluster, told: Sequence[StepDone]) -> None:
    """Evict all pods. Raises NodeFailed where one stays: then nothing was changed."""
    run.say("draining")
    drain(cluster, run.name, timeout=run.options.drain_timeout, wait=run.pause)
    for done in told:
        if done.step == DRAIN:
            run.step(structs.replace(done, state="changed" if done.differences else "ok"))


def _cluster_look(
    run: NodeRun, node: NodeFacts | None, removal: Removal, look: Pass | None
) -> Iterator[StepDone]:
    """What goes with the node in the cluster: its pods, its Node, and what else the cluster keeps about it. The pods of
    another tool's node stay where its machine does not change."""
    if run.cluster is None:
        return
    if node is not None and look is not None and (look.to_change or not removal.others):
        yield _would(DRAIN, [_pod(pod) for pod in run.cluster.pods_to_drain(run.name)])
    found = (
        [_gone("node", f"Node {run.name}", "in the cluster")]
        if node is not None and not removal.keep_node
        else []
    )
    found += [
        _gone(f"{one.kind}:{one.name}", str(one), "in the cluster") for one in _belongings(run, removal)
    ]
    if node is not None and removal.others:
        found += _marks(node)
        if labels.cordoned_by_us(node):
            found.append(_CORDON)
    yield _would(NODE_OBJECT, found)


def _pod(pod: PodFacts) -> Difference:
    lost = " (nothing makes it again)" if pod.unmanaged else ""
    return Difference(f"pod {pod.name}", f"runs here{lost}", "evicted", key=f"pod:{pod.name}", disturbs=True)


def _gone(key: str, what: str, is_: str) -> Difference:
    return Difference(what, is_, None, key=key)


def _marks(node: NodeFacts) -> tuple[Difference, ...]:
    """winboot's labels and taints, which another tool's node loses; it may never have had any."""
    return labels.differences(node, _UNMARKED) if OWNED in node.annotations else ()


def _would(step: str, differences: Sequence[Difference]) -> StepDone:
    return StepDone("", step, "would-change" if differences else "ok", 0, tuple(differences))


def _belongings(run: NodeRun, removal: Removal) -> tuple[Belonging, ...]:
    """Requests, Lease and tokens; the Lease stays with its Node."""
    assert run.cluster is not None
    return tuple(
        one for one in run.cluster.belongings(run.name) if not (removal.keep_node and one.kind == "lease")
    )


def _leave(run: NodeRun, cluster: Cluster, node: NodeFacts | None, removal: Removal) -> None:
    """Delete the Node and what else the cluster keeps about it. A right that is missing fails this step alone."""
    found: list[Difference] = []
    try:
        if node is not None and not removal.keep_node and cluster.delete_node(run.name):
            found.append(_gone("node", f"Node {run.name}", "in the cluster"))
        for one in _belongings(run, removal):
            cluster.delete_belonging(one)
            found.append(_gone(f"{one.kind}:{one.name}", str(one), "in the cluster"))
        if removal.others and node is not None:
            if _marks(node):
                found += cluster.change_node(run.name, _UNMARKED)
            # The drain's cordon came and goes in this run.
            if cluster.uncordon(run.name) and labels.cordoned_by_us(node):
                found.append(_CORDON)
    except ClusterError as error:
        problem = Problem(type(error).__name__, error.problem, error.hint)
        run.step(StepDone("", NODE_OBJECT, "failed", 0, tuple(found), problem))
        return
    run.step(StepDone("", NODE_OBJECT, "changed" if found else "ok", 0, tuple(found)))
    run.ready = None


def _blocked() -> StepDone:
    problem = Problem(
        "NeedsStep", "the machine is not restored yet", "Fix these steps, and run the same command again."
    )
    return StepDone("", NODE_OBJECT, "blocked", 0, problem=problem)
