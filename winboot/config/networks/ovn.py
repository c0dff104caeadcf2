"""The hybrid overlay of OVN-Kubernetes: winboot runs hybrid-overlay-node as a service, and kube-proxy after it.

All names and numbers are those of ovn-kubernetes/ovn-kubernetes 8871cd9c (2026-08-21), go-controller. Its maintainers
discuss the end of Windows support (pull 6200).
"""

from __future__ import annotations

from winboot.config.networks.base import (
    CNI_PLUGINS,
    Agent,
    Choices,
    ClusterNeed,
    Download,
    HnsName,
    Known,
    Network,
    Owners,
    PortRule,
    Reservation,
)
from winboot.config.networks.policies import OVERLAY_EXCEPTIONS
from winboot.config.networks.reference import overlay_conf

_SERVICE = "hybrid-overlay-node"
# hybrid-overlay/pkg/controller/ho_node_windows.go: networkName and ensureBaseNetwork.
_NETWORK = "OVNKubernetesHybridOverlayNetwork"
_BASE = "BaseOVNKubernetesHybridOverlayNetwork"
_WHERE = "ovn-kubernetes/ovn-kubernetes go-controller/hybrid-overlay/pkg/controller/ho_node_windows.go"
# hybrid-overlay/pkg/types/types.go: HybridOverlayVNI.
VNI = 4097


def _agent(choices: Choices) -> Agent:
    """The flags are those of OpenShift's operator for Windows nodes (openshift/windows-machine-config-operator
    pkg/services/services.go, hybridOverlayConfiguration). The kubelet's kubeconfig only asks for a certificate of its own
    (pkg/util/kube.go, StartNodeCertificateManager), which ovnkube-identity approves. It is next to
    the kubelet's, in a folder that SYSTEM and Administrators alone can read."""
    return Agent(
        service=_SERVICE,
        display="OVN-Kubernetes hybrid overlay",
        program=choices.paths["hybrid_overlay"],
        arguments={
            "node": choices.node_name,
            "bootstrap-kubeconfig": choices.paths["kubeconfig"],
            "cert-dir": choices.paths["kubelet_pki"],
            "cert-duration": "24h",
            "k8s-apiserver": choices.server,
            "k8s-cacert": choices.paths["cluster_ca"],
        },
        environment={},
    )


OVN_HYBRID = Network(
    id="ovn-hybrid",
    cni="ovn-hybrid",
    mode=None,
    what="OVN-Kubernetes' hybrid overlay: kube-proxy and the service hybrid-overlay-node, which you provide by address",
    hns_type="Overlay",
    default_name=_NETWORK,
    hns_names=(
        HnsName(_NETWORK, f"{_WHERE}, networkName"),
        HnsName(_BASE, f"{_WHERE}, ensureBaseNetwork"),
    ),
    owners=Owners(
        hns_network="agent",
        binaries="winboot",
        cni_conf="winboot",
        ipam_store="winboot",
        routes="agent",
        kube_proxy="winboot",
    ),
    conf_file="10-ovn-hybrid.conflist",
    cni_conf=overlay_conf,
    agent=_agent,
    agent_service=_SERVICE,
    agent_nssm=True,
    steps_after=("hybrid-overlay",),
    paths={"hybrid_overlay": r"C:\k\hybrid-overlay-node.exe"},
    plugins=("win-overlay", "host-local"),
    programs=(("hybrid-overlay-node", "hybrid_overlay"),),
    downloads=(
        CNI_PLUGINS,
        Download("hybrid-overlay-node", "hybrid_overlay", "OVN-Kubernetes' hybrid overlay"),
    ),
    # The control plane writes it for nodes with --no-hostsubnet-nodes (pkg/types/types.go, HybridOverlayNodeSubnet).
    pod_cidr=True,
    pod_cidr_annotation="k8s.ovn.org/hybrid-overlay-node-subnet",
    reservations=(
        Reservation(
            Known("pod_gateway"), "winboot", "gateway", "the agent gives the gateway the first address"
        ),
        Reservation(
            Known("source_vip"), "kube-proxy", "source-vip", "kube-proxy's source address on the overlay"
        ),
    ),
    source_vip=True,
    # Where a network of this name has another subnet or gateway, the agent makes it again (EnsureExistingNetworkIsValid).
    first_switch=_BASE,
    first_vni=VNI + 1,
    first_subnet=("100.64.0.0/30", "100.64.0.2"),
    makes_own=True,
    exceptions=OVERLAY_EXCEPTIONS,
    ports=(PortRule("winboot-vxlan", "4789", "UDP", "VXLAN packets of other nodes"),),
    features=("overlay",),
    needs=(
        ClusterNeed(
            "ovn-hybrid-overlay",
            "ovnkube must run with --enable-hybrid-overlay and must not assign subnets to Windows nodes",
        ),
        ClusterNeed(
            "ovnkube-identity", "ovnkube must approve the agent's certificate, because winboot does not"
        ),
        ClusterNeed(
            "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
        ),
    ),
    source="https://github.com/ovn-kubernetes/ovn-kubernetes",
)
