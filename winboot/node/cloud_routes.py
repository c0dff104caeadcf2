"""`routes: auto | winboot | none` of a cloud inventory: what lets the cloud's network carry the packets of a node's
pods.

Only networks whose pods have addresses of their own there need it (flannel host-gw, win-bridge). The pod CIDR is the
Node's: any allocator writes it there.
"""

from __future__ import annotations

from typing import Final

from winboot.base.errors import CloudRefused
from winboot.config.networks import Network
from winboot.config.node_spec import NodeSpec
from winboot.remote.cloud.base import CloudHost, Provider
from winboot.remote.cloud.settings import CloudFile
from winboot.remote.cluster.base import NodeFacts, Nodes

# What the route controller of a cloud controller manager writes as the reason of the condition NetworkUnavailable
# (kubernetes/cloud-provider controllers/route/route_controller.go, updateNetworkingCondition).
_ROUTE_CONTROLLER: Final = frozenset({"RouteCreated", "NoRouteCreated"})


def settle(
    provider: Provider, host: CloudHost, spec: NodeSpec, cluster: Nodes, file: CloudFile
) -> tuple[str, ...]:
    """Make the cloud forward and route for a node where that is ours to do; a sentence for each change.

    Raises CloudError; a refusal only for `routes: winboot`, which `auto` puts into words.
    """
    if not may_write(spec.network.solution, file):
        return ()
    node = cluster.node(spec.node.name)
    if node is None or (file.routes == "auto" and somebody_routes(node)):
        return ()
    if not node.pod_cidrs:
        return ("winboot made no route: the Node has no pod CIDR (see --allocate-node-cidrs)",)
    try:
        return provider.ensure_forwarding(host, node.pod_cidrs)
    except CloudRefused as error:
        if file.routes != "auto":
            raise
        # The user did not ask for this check: the Node is Ready, and the reader learns what its pods lack.
        return (f"routes to the node's pods: {error.problem} ({error.hint})",)


def may_write(network: Network, file: CloudFile) -> bool:
    """Whether the file leaves routes to winboot. `auto` writes nothing where no `cluster` says which tables are ours."""
    if file.routes == "none" or not network.routed:
        return False
    return file.routes == "winboot" or bool(file.cluster)


def somebody_routes(node: NodeFacts) -> bool:
    """Whether the route controller of the cluster looks after this Node."""
    return node.network_reason in _ROUTE_CONTROLLER
