"""The reference plugins without an agent: winboot makes the HNS network.

Routes to the pods of other nodes are the business of the network (routers, a cloud's route table). Only something
that runs all the time can follow nodes that come and go. Where all nodes share one layer-2 network and nothing else
does it, `network.routes: winboot` makes them from the Node objects. It reads them at each run with the node's own
certificate, which needs the right to list nodes (`winboot manifests rbac`).
"""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.networks.base import (
    CNI_PLUGINS,
    Choices,
    ClusterNeed,
    Data,
    Known,
    Network,
    Owners,
    PortRule,
    Reservation,
)
from winboot.config.networks.policies import (
    CAPABILITIES,
    CNI_VERSION,
    L2BRIDGE_EXCEPTIONS,
    OVERLAY_EXCEPTIONS,
    l2bridge_policies,
    overlay_policies,
)

_OWNERS = Owners(
    hns_network="winboot",
    binaries="winboot",
    cni_conf="winboot",
    ipam_store="winboot",
    routes="operator",
    kube_proxy="winboot",
)
_NEEDS = (
    ClusterNeed(
        "node-cidrs", "pods get their addresses from spec.podCIDR, which the controller manager allocates"
    ),
    ClusterNeed(
        "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
    ),
)
_SOURCE = "https://github.com/containernetworking/plugins"


def _win_bridge_conf(choices: Choices) -> Mapping[str, Data]:
    # win-bridge takes the first address that it is given and no other: a second range would only be used up.
    ranges: list[Data] = [
        [{"subnet": Known("pod_cidr"), "rangeStart": Known("pod_first"), "gateway": Known("pod_endpoint")}]
    ]
    plugin: dict[str, Data] = {
        "type": "win-bridge",
        "apiVersion": 2,
        "capabilities": CAPABILITIES,
        "ipam": {"type": "host-local", "ranges": ranges},
        "policies": l2bridge_policies(choices),
    }
    if choices.dsr:
        plugin["loopbackDSR"] = True
    return {"name": choices.network_name, "cniVersion": CNI_VERSION, "plugins": [plugin]}


def overlay_conf(choices: Choices) -> Mapping[str, Data]:
    """Pods on the HNS overlay of the configuration's name, with addresses of the node's own pod network."""
    plugin: dict[str, Data] = {
        "type": "win-overlay",
        "apiVersion": 2,
        "capabilities": CAPABILITIES,
        "endpointMacPrefix": choices.vxlan.mac_prefix,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": Known("pod_cidr")}]]},
        "policies": overlay_policies(choices),
    }
    if choices.dsr:
        plugin["loopbackDSR"] = True
    return {"name": choices.network_name, "cniVersion": CNI_VERSION, "plugins": [plugin]}


WIN_BRIDGE = Network(
    id="win-bridge",
    cni="win-bridge",
    mode=None,
    what="an L2 bridge without an agent, for networks whose routers (or cloud routes) have a route to every node's pods",
    hns_type="L2Bridge",
    default_name="cbr0",
    owners=_OWNERS,
    conf_file="10-win-bridge.conflist",
    cni_conf=_win_bridge_conf,
    reservations=(
        Reservation(Known("pod_gateway"), "winboot", "gateway", "HNS gives the gateway the first address"),
        Reservation(
            Known("pod_endpoint"), "winboot", "endpoint", "the host's own endpoint: the pods' gateway"
        ),
    ),
    plugins=("win-bridge", "host-local"),
    downloads=(CNI_PLUGINS,),
    pod_cidr=True,
    host_endpoint="{name}_ep",
    pods_own_macs=True,
    exceptions=L2BRIDGE_EXCEPTIONS,
    can_route=True,
    dual_stack=True,
    dual_stack_note="win-bridge gives pods only IPv4 addresses; node, routes and services support both families",
    needs=(
        *_NEEDS,
        ClusterNeed("pod-routes", "every router (or cloud route table) leads a pod subnet to its node"),
    ),
    source=_SOURCE,
)

WIN_OVERLAY = Network(
    id="win-overlay",
    cni="win-overlay",
    mode=None,
    what="an overlay without an agent, for clusters whose own controller writes other nodes' subnets to HNS",
    hns_type="Overlay",
    default_name="vxlan0",
    owners=_OWNERS,
    conf_file="10-win-overlay.conflist",
    cni_conf=overlay_conf,
    reservations=(
        Reservation(Known("pod_gateway"), "winboot", "gateway", "HNS gives the gateway the first address"),
        Reservation(
            Known("source_vip"), "kube-proxy", "source-vip", "kube-proxy's source address on the overlay"
        ),
    ),
    plugins=("win-overlay", "host-local"),
    downloads=(CNI_PLUGINS,),
    pod_cidr=True,
    source_vip=True,
    # flanneld and Calico add it to theirs, too (flannel device_windows.go, Calico dataplane_windows.go).
    host_route=True,
    exceptions=OVERLAY_EXCEPTIONS,
    ports=(PortRule("winboot-vxlan", "4789", "UDP", "VXLAN packets of other nodes"),),
    features=("overlay",),
    needs=(*_NEEDS, ClusterNeed("remote-subnets", "your controller writes other nodes' subnets to HNS")),
    source=_SOURCE,
)
