"""Calico with VXLAN, in three forms: run by its operator in HostProcess pods, by winboot's service, or by services
that a person installed."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.networks.base import (
    Agent,
    Choices,
    ClusterNeed,
    Data,
    Destination,
    Download,
    HnsName,
    Network,
    Owners,
    PortRule,
    Rights,
)
from winboot.config.networks.calico_settings import CALICO_SETTINGS

_NODENAME_FILE = "C:/CalicoWindows/nodename"
# Calico's own credential, where install-calico.ps1 looks for it: a kubelet may not read Calico's IPAM resources.
_KUBECONFIG = r"C:\CalicoWindows\calico-kube-config"
# `calico-node -startup` makes it after the network: a remote endpoint, third address of the node's block, with the
# node's own address behind it (projectcalico/calico v3.32.0, dataplane_windows.go createAndAttachVxlanHostEP).
_ENDPOINT = "Calico_ep"
_SERVICE = "calico-node"
_NAMES = tuple(
    HnsName(name, f"projectcalico/calico v3.32.0 node/windows-packaging/CalicoWindows/{where}")
    for name, where in (
        ("External", "node-service.ps1"),
        ("Calico", "config.ps1, KUBE_NETWORK"),
        ("Calico.*", "config.ps1, KUBE_NETWORK"),
    )
)
# Felix adds the pools itself.
_EXCEPTIONS: tuple[Destination, ...] = ("services",)


def _policy(value: Mapping[str, Data]) -> Data:
    return {"Name": "EndpointPolicy", "Value": value}


def _by_hand_conf(choices: Choices) -> Mapping[str, Data]:
    return _conf(choices, _NODENAME_FILE, _KUBECONFIG)


def _own_conf(choices: Choices) -> Mapping[str, Data]:
    nodename = choices.paths["calico_nodename"].replace("\\", "/")
    return _conf(choices, nodename, choices.paths["calico_kubeconfig"])


def _conf(choices: Choices, nodename: str, kubeconfig: str) -> Mapping[str, Data]:
    routes = [
        _policy({"Type": "SDNROUTE", "DestinationPrefix": cidr, "NeedEncap": True})
        for cidr in choices.service_cidrs
    ]
    return {
        "name": choices.network_name,
        "cniVersion": "1.0.0",
        "type": "calico",
        "mode": "vxlan",
        "vxlan_mac_prefix": choices.vxlan.mac_prefix,
        "vxlan_vni": choices.vxlan.vni,
        "policy": {"type": "k8s"},
        "windows_use_single_network": True,
        "windows_loopback_DSR": choices.dsr,
        "capabilities": {"dns": True},
        "DNS": {"Nameservers": list(choices.dns_service_ips), "Search": [f"svc.{choices.dns_domain}"]},
        "nodename_file": nodename,
        "datastore_type": "kubernetes",
        "kubernetes": {"kubeconfig": kubeconfig},
        "ipam": {"type": "calico-ipam"},
        "policies": [
            _policy({"Type": "OutBoundNAT", "ExceptionList": choices.nat_exceptions(_EXCEPTIONS)}),
            *routes,
        ],
    }


_NEEDS = (
    ClusterNeed(
        "calico-vxlan", "IP-in-IP must be off: Windows supports only VXLAN, with VNI 4096 and UDP port 4789"
    ),
    ClusterNeed(
        "calico-strict-affinity", "Calico's IPAM must not borrow addresses of another node (strictAffinity)"
    ),
)
_PORTS = (
    PortRule("winboot-vxlan", "4789", "UDP", "VXLAN packets of other nodes"),
    PortRule("winboot-typha", "5473", "TCP", "Felix asks Typha", direction="out"),
)
_SOURCE = "https://github.com/projectcalico/calico"

CALICO_OPERATOR = Network(
    id="calico-vxlan",
    cni="calico",
    mode="vxlan",
    managed_by="operator",
    what="Calico, run by the Tigera operator in HostProcess pods; winboot runs kubelet and containerd",
    hns_type="Overlay",
    default_name="Calico",
    hns_names=_NAMES,
    owners=Owners(
        hns_network="operator",
        binaries="operator",
        cni_conf="operator",
        ipam_store="operator",
        routes="operator",
        kube_proxy="operator",
    ),
    owner_hint="Calico's pods make the network: kubectl get pods --namespace calico-system --output wide.",
    conf_file="10-calico.conflist",
    source_vip=True,
    source_vip_endpoint=_ENDPOINT,
    ports=_PORTS,
    features=("overlay", "host-process"),
    needs=(
        *_NEEDS,
        ClusterNeed(
            "calico-windows",
            "the operator's Installation must have windowsDataplane: HNS and the service CIDRs",
        ),
        ClusterNeed(
            "kube-proxy-daemonset", "kube-proxy runs as a DaemonSet for Windows; winboot starts none"
        ),
    ),
    in_cluster=CALICO_SETTINGS,
    source=_SOURCE,
)

CALICO_SERVICES = Network(
    id="calico-vxlan-services",
    cni="calico",
    mode="vxlan",
    managed_by="winboot",
    what="Calico's own Windows services, which you install; winboot writes the CNI configuration and runs kube-proxy",
    hns_type="Overlay",
    default_name="Calico",
    hns_names=_NAMES,
    owners=Owners(
        hns_network="operator",
        binaries="operator",
        cni_conf="winboot",
        ipam_store="operator",
        routes="operator",
        kube_proxy="winboot",
    ),
    owner_hint="Calico's Windows services make the network: install and start them (install-calico.ps1), "
    r"with CNI_BIN_DIR C:\opt\cni\bin and CNI_CONF_DIR C:\etc\cni\net.d, then run the same command again.",
    conf_file="10-calico.conf",
    cni_conf=_by_hand_conf,
    exceptions=_EXCEPTIONS,
    plugins=("calico", "calico-ipam"),
    source_vip=True,
    source_vip_endpoint=_ENDPOINT,
    ports=_PORTS,
    features=("overlay",),
    needs=(
        *_NEEDS,
        ClusterNeed(
            "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
        ),
    ),
    in_cluster=CALICO_SETTINGS,
    source=_SOURCE,
)


def _agent(choices: Choices) -> Agent:
    """calico-node makes the network and ends; then Felix, the same program, keeps routes and policies.

    It answers no service manager. Where the first part fails the command ends, and NSSM begins again. The second
    switch of the first part makes it clear the condition NetworkUnavailable, which some clouds set on a new Node
    (v3.32.0: node-service.ps1, main.go `-complete-startup`). Felix ends with 129 to be started again with a changed
    configuration (felix-service.ps1): NSSM starts it after any end, and no step counts that.
    """
    program = choices.paths["calico_node"]
    startup, felix = (" ".join((program, *choices.calls[part])) for part in ("startup", "felix"))
    return Agent(
        service=_SERVICE,
        display="Calico network agent",
        program=choices.paths["cmd"],
        arguments={},
        words=("/c", f"{startup} && {felix}"),
        runs=program,
        environment={
            "CALICO_DATASTORE_TYPE": "kubernetes",
            "CALICO_K8S_NODE_REF": choices.node_name,
            "CALICO_NETWORKING_BACKEND": "vxlan",
            "CALICO_NODENAME_FILE": choices.paths["calico_nodename"],
            "FELIX_DATASTORETYPE": "kubernetes",
            "FELIX_FELIXHOSTNAME": choices.node_name,
            "FELIX_LOGSEVERITYFILE": "none",
            "FELIX_LOGSEVERITYSYS": "none",
            "FELIX_METADATAADDR": "none",
            "FELIX_VXLANVNI": str(choices.vxlan.vni),
            "IP": "autodetect",
            "KUBECONFIG": choices.paths["calico_kubeconfig"],
            "KUBE_NETWORK": f"{choices.network_name}.*",
            "NODENAME": choices.node_name,
            "USE_POD_CIDR": "false",
            "VXLAN_VNI": str(choices.vxlan.vni),
        },
    )


CALICO_OWN = Network(
    id="calico-vxlan-node",
    cni="calico",
    mode="vxlan",
    managed_by="winboot",
    what="Calico's node agent and CNI plug-ins, which winboot installs and runs together with kube-proxy",
    hns_type="Overlay",
    default_name="Calico",
    hns_names=_NAMES,
    owners=Owners(
        hns_network="agent",
        binaries="winboot",
        cni_conf="winboot",
        ipam_store="agent",
        routes="agent",
        kube_proxy="winboot",
    ),
    chosen_by="calico",
    conf_file="10-calico.conf",
    cni_conf=_own_conf,
    agent=_agent,
    agent_service=_SERVICE,
    agent_nssm=True,
    # The roles come with Calico's own manifests.
    rights=Rights(bound=("calico-node", "calico-cni-plugin")),
    steps_after=("calico-node",),
    exceptions=_EXCEPTIONS,
    plugins=("calico", "calico-ipam"),
    paths={
        "calico_node": r"C:\k\calico-node.exe",
        "calico_kubeconfig": r"C:\k\calico.kubeconfig",
        "calico_nodename": r"C:\k\calico-nodename",
    },
    programs=(("calico-node", "calico_node"),),
    downloads=(Download("calico", "calico", "Calico"),),
    # Calico's IPAM takes a block of its own pools for the node (startup_windows.go, EnsureBlock).
    pod_cidr=False,
    source_vip=True,
    source_vip_endpoint=_ENDPOINT,
    # Without it the first overlay rewires the adapter while no program watches over the address.
    first_switch="External",
    first_vni=9999,
    makes_own=True,
    ports=_PORTS,
    features=("overlay",),
    needs=(
        *_NEEDS,
        ClusterNeed(
            "calico-rbac", "calico-node and its plug-ins log in with the node's certificate: manifests rbac"
        ),
        ClusterNeed(
            "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
        ),
    ),
    in_cluster=CALICO_SETTINGS,
    source=_SOURCE,
)
