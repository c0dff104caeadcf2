"""flannel: flanneld makes the HNS network, its CNI plugin hands pods on to win-bridge or win-overlay."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.compat.downloads import proposed
from winboot.config.networks.base import (
    CNI_PLUGINS,
    Agent,
    Choices,
    ClusterNeed,
    Data,
    Destination,
    Download,
    HnsName,
    Known,
    Network,
    Owners,
    PortRule,
    Reservation,
    Rights,
)
from winboot.config.networks.flannel_settings import FLANNEL_SETTINGS
from winboot.config.networks.policies import (
    CAPABILITIES,
    CNI_VERSION,
    L2BRIDGE_EXCEPTIONS,
    OVERLAY_EXCEPTIONS,
    l2bridge_policies,
    overlay_policies,
)

HEALTHZ_PORT = 8471

_OWNERS = Owners(
    hns_network="agent",
    binaries="winboot",
    cni_conf="winboot",
    ipam_store="winboot",
    routes="agent",
    kube_proxy="winboot",
)
_NEEDS = (
    ClusterNeed(
        "flannel-config", "the ConfigMap kube-flannel-cfg must say the same backend, VNI, port and network"
    ),
    ClusterNeed("node-cidrs", "flanneld waits for spec.podCIDR, which the controller manager allocates"),
    ClusterNeed(
        "flannel-rbac", "flanneld reads all nodes and writes its annotations with the node's certificate"
    ),
    ClusterNeed(
        "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
    ),
)
_SOURCE = "https://github.com/flannel-io/flannel"
_SERVICE = "flanneld"
_NAMES = (
    HnsName("cbr0", "flannel-io/flannel v0.27.4 pkg/backend/hostgw/hostgw_windows.go, the default of Name"),
    HnsName(
        "flannel.*", "flannel-io/flannel v0.27.4 pkg/backend/vxlan/vxlan_windows.go, the default of Name"
    ),
    HnsName("External", "microsoft/SDN Kubernetes/windows KubeCluster.ps1, made before flanneld starts"),
)
_STEPS = ("flanneld-config", "flanneld")
_PATHS = {
    "flanneld": r"C:\k\flanneld.exe",
    "flanneld_kubeconfig": r"C:\k\flanneld.kubeconfig",
    "net_conf": r"C:\etc\kube-flannel\net-conf.json",
    # Written by flanneld, read by its plug-in.
    "subnet_env": r"C:\run\flannel\subnet.env",
}
_PROGRAMS = (("flanneld", "flanneld"),)
_OVERLAY_EXCEPTIONS: tuple[Destination, ...] = (*OVERLAY_EXCEPTIONS, "node_pods")
_DOWNLOADS = (
    CNI_PLUGINS,
    Download("flannel-cni", "flannel_cni", "flannel's CNI plug-in", proposed("flannel-cni")),
    Download("flannel", "flannel", "flannel", proposed("flannel")),
)
_RIGHTS = Rights(
    name="winboot:flannel",
    rules=(
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ),
)


def _conflist(choices: Choices, delegate: Mapping[str, Data]) -> Mapping[str, Data]:
    plugin: dict[str, Data] = {
        "type": "flannel",
        "capabilities": CAPABILITIES,
        "delegate": {**delegate, "apiVersion": 2},
    }
    return {"name": choices.network_name, "cniVersion": CNI_VERSION, "plugins": [plugin]}


def _host_gw_conf(choices: Choices) -> Mapping[str, Data]:
    delegate: dict[str, Data] = {"type": "win-bridge", "policies": l2bridge_policies(choices)}
    if choices.dsr:
        # With direct server return a pod reaches itself through its service only with this.
        delegate["loopbackDSR"] = True
    return _conflist(choices, delegate)


def _vxlan_conf(choices: Choices) -> Mapping[str, Data]:
    delegate: dict[str, Data] = {
        "type": "win-overlay",
        "policies": overlay_policies(choices, _OVERLAY_EXCEPTIONS),
        "endpointMacPrefix": choices.vxlan.mac_prefix,
    }
    if choices.dsr:
        delegate["loopbackDSR"] = True
    return _conflist(choices, delegate)


def _host_gw_net_conf(choices: Choices) -> Mapping[str, Data]:
    return {"Network": choices.pod_cidrs[0], "Backend": {"Type": "host-gw", "Name": choices.network_name}}


def _vxlan_net_conf(choices: Choices) -> Mapping[str, Data]:
    backend: dict[str, Data] = {
        "Type": "vxlan",
        "VNI": choices.vxlan.vni,
        "Port": choices.vxlan.port,
        "Name": choices.network_name,
        "MacPrefix": choices.vxlan.mac_prefix,
    }
    return {"Network": choices.pod_cidrs[0], "Backend": backend}


def _agent(choices: Choices) -> Agent:
    return Agent(
        service=_SERVICE,
        display="flannel network agent",
        program=choices.paths["flanneld"],
        arguments={
            "kube-subnet-mgr": "1",
            "kubeconfig-file": choices.paths["flanneld_kubeconfig"],
            "iface": choices.node_ip,
            "ip-masq": "1",
            "net-config-path": choices.paths["net_conf"],
            # Off by default; with it there is something to ask whether flanneld is well.
            "healthz-port": str(HEALTHZ_PORT),
        },
        environment={"NODE_NAME": choices.node_name},
    )


FLANNEL_HOST_GW = Network(
    id="flannel-host-gw",
    cni="flannel",
    mode="host-gw",
    what="flannel with plain routes between nodes of one layer-2 network; the fastest, and the simplest to debug",
    hns_type="L2Bridge",
    default_name="cbr0",
    hns_names=_NAMES,
    owners=_OWNERS,
    conf_file="10-flannel.conflist",
    cni_conf=_host_gw_conf,
    net_conf=_host_gw_net_conf,
    agent=_agent,
    reservations=(
        Reservation(Known("pod_gateway"), "winboot", "gateway", "HNS gives the gateway the first address"),
        Reservation(
            Known("pod_endpoint"), "winboot", "endpoint", "the host's endpoint has the second address"
        ),
    ),
    plugins=("flannel", "win-bridge", "host-local"),
    paths=_PATHS,
    configuration=("net_conf",),
    written=("subnet_env",),
    programs=_PROGRAMS,
    downloads=_DOWNLOADS,
    agent_service=_SERVICE,
    agent_nssm=True,
    rights=_RIGHTS,
    steps_before=_STEPS,
    pod_cidr=True,
    host_endpoint="{name}_ep",
    pods_own_macs=True,
    exceptions=L2BRIDGE_EXCEPTIONS,
    # win-bridge would append it again, in a policy of its own (see policies.outbound_nat).
    fixed_exceptions=("pods",),
    needs=(
        *_NEEDS,
        ClusterNeed("same-network", "host-gw routes reach only nodes of the same layer-2 network"),
    ),
    in_cluster=FLANNEL_SETTINGS,
    source=_SOURCE,
)

FLANNEL_VXLAN = Network(
    id="flannel-vxlan",
    cni="flannel",
    mode="vxlan",
    what="flannel with VXLAN between nodes; works across routers, is slower, and supports only IPv4",
    hns_type="Overlay",
    default_name="flannel.{vni}",
    hns_names=_NAMES,
    owners=_OWNERS,
    conf_file="10-flannel.conflist",
    cni_conf=_vxlan_conf,
    net_conf=_vxlan_net_conf,
    agent=_agent,
    reservations=(
        Reservation(
            Known("source_vip"), "kube-proxy", "source-vip", "kube-proxy's source address on the overlay"
        ),
    ),
    plugins=("flannel", "win-overlay", "host-local"),
    paths=_PATHS,
    configuration=("net_conf",),
    written=("subnet_env",),
    programs=_PROGRAMS,
    downloads=_DOWNLOADS,
    agent_service=_SERVICE,
    agent_nssm=True,
    rights=_RIGHTS,
    steps_before=_STEPS,
    pod_cidr=True,
    source_vip=True,
    exceptions=_OVERLAY_EXCEPTIONS,
    # win-overlay would append it again, in a policy of its own (see policies.outbound_nat).
    fixed_exceptions=("node_pods",),
    ports=(PortRule("winboot-vxlan", "4789", "UDP", "VXLAN packets of other nodes"),),
    features=("overlay",),
    needs=_NEEDS,
    in_cluster=FLANNEL_SETTINGS,
    source=_SOURCE,
)
