"""What is wrong between a node and its cloud: findings, each with a stable id, a reason and a fix.

`Sight` is what was seen, without a judgement; `findings` judges. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from winboot.base.clock import clock_level
from winboot.config.networks import Network
from winboot.remote.cloud.base import CloudHost, Forwarding, NodeIdentity, PodRoute, same_provider_id
from winboot.remote.cloud.metadata import ADDRESS, Answer
from winboot.remote.cluster.base import NodeFacts
from winboot.report.finding import CloudFinding, Finding, Level


@dataclass(frozen=True, slots=True)
class Sight:
    """A node seen from its three sides. None means what could not be seen: no cluster, no Node, no session.

    `clock` is the machine's clock minus the cluster's (ours, without a cluster); `network` its solution.
    """

    name: str
    network: Network
    host: CloudHost
    identity: NodeIdentity
    node: NodeFacts | None = None
    forwarding: Forwarding | None = None
    metadata: Answer | None = None
    clock: timedelta | None = None


def findings(sight: Sight) -> tuple[Finding, ...]:
    """What is wrong, in the order of the checks; empty when all is well."""
    return tuple(one for check in _CHECKS for one in check(sight))


def _state(sight: Sight) -> Iterator[Finding]:
    if sight.host.state != "running":
        reason = f"the cloud reports that the machine is {sight.host.state}"
        yield _found(sight, "cloud-state", "error", reason, "Start it, or remove it from the inventory.")


def _node_name(sight: Sight) -> Iterator[Finding]:
    expected = sight.identity.node_name
    if expected and expected != sight.name:
        reason = f"the cloud controller manager looks for a Node {expected}, but this Node is {sight.name}"
        yield _found(sight, "cloud-node-name", "error", reason, f"Name the host {expected} in the inventory.")


def _provider_id(sight: Sight) -> Iterator[Finding]:
    if sight.node is None:
        return
    wanted = sight.identity.provider_id
    if not sight.node.provider_id:
        fix = f"Set `provider_id: {wanted}` on the host before it joins; a Node's providerID cannot be changed later."
        yield _found(sight, "cloud-provider-id", "warning", "the Node has no spec.providerID", fix)
    elif not same_provider_id(sight.node.provider_id, wanted):
        reason = f"the Node's providerID is {sight.node.provider_id}, but the machine's is {wanted}"
        # It cannot be changed: kubernetes pkg/apis/core/validation, ValidateNodeUpdate.
        fix = "Delete the Node and join the machine again: the field cannot be changed."
        yield _found(sight, "cloud-provider-id", "error", reason, fix)


def _metadata(sight: Sight) -> Iterator[Finding]:
    """Creating the HNS network, or a restart after it, loses the route (openshift/windows-machine-config-operator
    docs/TROUBLESHOOTING.md; projectcalico/calico libs/calico/calico.psm1 Set-MetaDataServerRoute)."""
    if sight.metadata is not None and not sight.metadata.reached:
        reason = f"no metadata service answers at {ADDRESS} ({sight.metadata.problem}): pods and agents get no identity"
        fix = (
            "Run `winboot repair` for the node: it restores the adapter's recorded routes. Or run `route add "
            f"{ADDRESS} mask 255.255.255.255` with the node's gateway."
        )
        yield _found(sight, "cloud-metadata", "warning", reason, fix)


def _forwarding(sight: Sight) -> Iterator[Finding]:
    if not sight.network.routed or sight.forwarding is None or sight.forwarding.forwards:
        return
    aws = sight.host.provider == "aws"
    what = "the source/destination check is on" if aws else "IP forwarding is off"
    fix = (
        "aws ec2 modify-instance-attribute --no-source-dest-check --instance-id " + sight.host.id
        if aws
        else "Set enableIPForwarding on the network interface, or in the scale set's network profile."
    )
    reason = f"{what}: the cloud drops packets of {sight.network.id}'s pods"
    yield _found(sight, "cloud-forwarding", "error", reason, fix)


def _pod_route(sight: Sight) -> Iterator[Finding]:
    if not sight.network.routed or sight.forwarding is None or sight.node is None:
        return
    for cidr in sight.node.pod_cidrs:
        routes = [one for one in sight.forwarding.routes if one.destination == cidr]
        if not routes:
            yield _no_route(sight, cidr)
        for route in routes:
            reason = _astray(sight, route)
            if reason:
                fix = f"Change the route {cidr} of {route.table} to go to {sight.host.private_ip}."
                yield _found(sight, "cloud-pod-route", "error", reason, fix)


def _no_route(sight: Sight, cidr: str) -> Finding:
    """Azure's network delivers by address alone; in one subnet of AWS nodes reach each other without a route, which
    the project has not seen on a real one."""
    level: Level = "error" if sight.host.provider == "azure" else "warning"
    reason = f"no route table of the node's subnet has a route to the node's pods ({cidr})"
    fix = (
        f"Let the cloud controller manager write routes (--configure-cloud-routes), or add a route {cidr} through "
        f"{sight.host.private_ip}."
    )
    return _found(sight, "cloud-pod-route", level, reason, fix)


def _astray(sight: Sight, route: PodRoute) -> str:
    """What is wrong with a route to the node's pods; empty for a good one."""
    if route.blackhole:
        return f"the route {route.destination} of {route.table} has no effect (its target was deleted)"
    # AWS names an instance or an interface; only Azure names the address.
    if sight.host.provider == "azure" and route.target != sight.host.private_ip:
        return f"the route {route.destination} of {route.table} goes to {route.target}, not to {sight.host.private_ip}"
    return ""


def _clock(sight: Sight) -> Iterator[Finding]:
    if sight.clock is None or (level := clock_level(sight.clock)) == "ok":
        return
    reason = f"the machine's clock is {sight.clock.total_seconds():+.0f} s from the cluster's"
    fix = "Set windows.time_servers in the profile, and let w32time resync."
    yield _found(sight, "cloud-clock", level, reason, fix)


def _found(sight: Sight, id: str, level: Level, reason: str, fix: str) -> Finding:
    return CloudFinding(id, level, reason, fix, (sight.name,))


_CHECKS: Final = (_state, _node_name, _provider_id, _metadata, _forwarding, _pod_route, _clock)
