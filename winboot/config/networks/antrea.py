"""Antrea, run by its DaemonSet in HostProcess pods: Open vSwitch takes the node's adapter.

All names and numbers are those of antrea-io/antrea v2.7.0.
"""

from __future__ import annotations

from winboot.config.networks.antrea_settings import ANTREA_SETTINGS
from winboot.config.networks.base import ClusterNeed, HnsName, Network, Owners, PortRule

ANTREA = Network(
    id="antrea",
    cni="antrea",
    mode=None,
    managed_by="operator",
    what="Antrea with Open vSwitch, run by Antrea's DaemonSet; winboot prepares Windows, kubelet and containerd",
    # pkg/agent/util/net_windows.go: LocalHNSNetwork, and "Transparent" in CreateHNSNetwork.
    hns_type="Transparent",
    default_name="antrea-hnsnetwork",
    hns_names=(
        HnsName(
            "antrea-hnsnetwork", "antrea-io/antrea v2.7.0 pkg/agent/util/net_windows.go, LocalHNSNetwork"
        ),
    ),
    owners=Owners(
        hns_network="operator",
        binaries="operator",
        cni_conf="operator",
        ipam_store="operator",
        routes="operator",
        # antreaProxy.proxyAll takes its place (docs/windows.md).
        kube_proxy="none",
    ),
    owner_hint="Antrea's DaemonSet makes the network: kubectl get pods --namespace kube-system --output wide.",
    # build/charts/antrea-windows/conf/Install-WindowsCNI.ps1, with C:\opt\cni\bin and C:\etc\cni\net.d.
    conf_file="10-antrea.conflist",
    plugins=("antrea", "host-local"),
    steps_beside=("test-signing", "antrea-ports"),
    # pkg/agent/agent_windows.go: prepareHNSNetworkAndOVSExtension fails without PodIPv4CIDR, and on a virtual adapter.
    pod_cidr=True,
    alone=True,
    # docs/windows.md, Prerequisites: "Hyper-V with management tools".
    roles=("Hyper-V", "Hyper-V-PowerShell"),
    test_signed=True,
    # docs/network-requirements.md
    ports=(
        PortRule("winboot-geneve", "6081", "UDP", "Geneve packets of other nodes"),
        PortRule(
            "winboot-antrea-agent", "10349-10351", "TCP", "the agent's API and the list of its neighbours"
        ),
        PortRule("winboot-antrea-members", "10351", "UDP", "the list of the agent's neighbours"),
    ),
    features=("host-process",),
    needs=(
        ClusterNeed(
            "antrea-config",
            "the DaemonSet antrea-agent-windows must run, with proxyAll and kubeAPIServerOverride",
        ),
        ClusterNeed("node-cidrs", "the agent waits for spec.podCIDR, which the controller manager allocates"),
    ),
    in_cluster=ANTREA_SETTINGS,
    source="https://github.com/antrea-io/antrea",
)
