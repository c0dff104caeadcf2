"""Other versions for nodes that exist, in the order of the inventory: one after the other, or as many at a time as may be
unavailable.

    order → look → cordon, drain → change → Ready with the wanted versions → probes → lift our cordon

What differs from `join --drain`: the order is checked for all nodes before anything is touched (the API server first, one
minor at a time, no way back). Pods go by kubectl drain's rules, winboot tries whether each node works before pods may
come back, and the first node that fails is the last one unless some may. A node that failed stays cordoned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from winboot.base.errors import NodeFailed, PreflightFailed
from winboot.config.compat.version import Version
from winboot.config.node_spec import NodeSpec
from winboot.node.fleet import NodeRun, Options, RunContext, Share, run_nodes
from winboot.node.preflight import Preflight
from winboot.node.probes import probe_node
from winboot.operations.join.story import refuse_unresolved, repair_node
from winboot.operations.verify import verify_beside
from winboot.remote.cluster.base import Cluster, NodeFacts
from winboot.report.results import Report


def upgrade(
    specs: Sequence[NodeSpec], context: RunContext, options: Options, *, flows: bool = False
) -> Report:
    """Give each node the versions of its profile; with `flows`, traffic has to flow before the next one begins.

    Raises PreflightFailed where the order is wrong, InvalidInput while a hash is missing: then no machine is contacted.
    """
    refuse_unresolved(specs)
    refuse_wrong_order(specs, context.cluster)
    options = replace(one_by_one(specs, options, flows=flows), versions="released")
    preflight = Preflight(specs, context.cluster, skip=options.skip_preflight, drains=True)
    work = partial(repair_node, preflight=preflight)
    return run_nodes("upgrade", work, specs, context, options, preflight.so_far)


def one_by_one(specs: Sequence[NodeSpec], options: Options, *, flows: bool) -> Options:
    """The options of other versions: drained, one node after the other, each proved, and none after the first that
    failed. As many at a time as may be unavailable, and none after those that may fail, where the budget says so."""
    budget = options.budget
    # Flows are tried between two nodes that stand still.
    side_by_side = budget.max_unavailable is not None and not flows
    return replace(
        options,
        drain=True,
        workers=options.workers if side_by_side else 1,
        budget=replace(budget, max_failed=Share(0) if budget.max_failed is None else budget.max_failed),
        prove=partial(_prove_with_flows, specs) if flows else _prove,
    )


def refuse_wrong_order(specs: Sequence[NodeSpec], cluster_of: Callable[[NodeSpec], Cluster | None]) -> None:
    """PreflightFailed that names every node whose step is too large or goes the wrong way, each with the right one."""
    wrong = [problem for spec in specs for problem in _order_problems(spec, cluster_of(spec))]
    if wrong:
        raise PreflightFailed(
            "; ".join(wrong),
            hint="winboot changed nothing. Upgrade the control plane, or set kubernetes.version to the named version.",
        )


def _order_problems(spec: NodeSpec, cluster: Cluster | None) -> Iterator[str]:
    """A kubelet may not be newer than its API server, and nodes go one minor at a time
    (kubernetes.io/releases/version-skew-policy)."""
    name, wanted = spec.node.name, spec.kubernetes.version
    if cluster is None:
        yield f"{name}: the profile has no cluster.kubeconfig, so winboot cannot check the versions' order"
        return
    server = cluster.version()
    if (wanted.major, wanted.minor_number) > (server.major, server.minor_number):
        yield f"{name}: the profile has {wanted}, but the API server {server}: upgrade the API server first"
    node = cluster.node(name)
    if node is None or not node.kubelet_version:
        return
    try:
        runs = Version.parse(node.kubelet_version)
    except ValueError:
        yield f"{name}: the Node reports the kubelet version {node.kubelet_version!r}"
        return
    if (wanted.major, wanted.minor_number) < (runs.major, runs.minor_number):
        yield f"{name}: the node runs {runs}, but the profile has the older {wanted}: use a rollback"
    elif wanted.minor_number > runs.minor_number + 1:
        yield f"{name}: the node runs {runs}: upgrade to {runs.major}.{runs.minor_number + 1} before {wanted}"


def _prove(run: NodeRun, started: float) -> None:
    """Ask the node whether it works. Raises NodeFailed with each probe that fails and its next step."""
    assert run.cluster is not None
    run.say("asking whether it works")
    node: NodeFacts | None = run.cluster.node(run.name)
    with run.context.connect(run.spec) as transport:
        found = probe_node(
            run.spec,
            transport,
            node,
            changed_s=time.monotonic() - started,
            wait=run.context.stop.wait,
            now=run.cluster.server_time,
        )
    run.notes.extend(f"not asked: {one.what}: {one.seen}" for one in found if one.passed is None)
    failed = [one for one in found if one.passed is False]
    if failed:
        said = "; ".join(
            f"check {one.what!r} failed: {one.seen} (expected: {one.expected})" for one in failed
        )
        raise NodeFailed(
            f"{run.name}: the changed node does not work, so it stays cordoned: {said}",
            hint=failed[0].next or "Correct the fault and run the same command again.",
            node=run.name,
        )


def _prove_with_flows(specs: Sequence[NodeSpec], run: NodeRun, started: float) -> None:
    """The same, and then whether traffic flows from it and to it, with the first other node that is Ready as the other end.
    Raises NodeFailed with each flow that does not."""
    _prove(run, started)
    run.say("trying its flows")
    others = [spec for spec in specs if spec.node.name != run.name]
    found = verify_beside(run.spec, others, run.context, time.monotonic() - started)
    run.notes.extend(found.notes)
    failed = [row for row in found.rows if row.state == "failed" and row.node in ("", run.name)]
    if failed:
        said = "; ".join(
            f"{row.flow} ({row.source} to {row.target}): {row.cause or row.seen}" for row in failed
        )
        raise NodeFailed(
            f"{run.name}: flows of the changed node fail, so it stays cordoned: {said}",
            hint=failed[0].next or "Correct the fault and run the same command again.",
            node=run.name,
        )
    tried = found.counts["passed"]
    run.notes.append(f"all {tried} tried flows pass" if tried else "no flow could be tried")
