"""Azure CNI: the plugin makes the HNS network itself when the first pod arrives.

What the plug-in reads: Azure/azure-container-networking, cni/netconfig.go and network/policy/policy_windows.go. What a
node of Azure's own service gets: Azure/AgentBaker, staging/cse/windows/azurecnifunc.ps1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from winboot.config.compat.downloads import proposed
from winboot.config.networks.base import (
    Choices,
    ClusterNeed,
    Data,
    Destination,
    Download,
    HnsName,
    HnsType,
    Network,
    Owners,
)
from winboot.config.networks.policies import CAPABILITIES

# The DNS of each virtual network, and the host's service for its machines.
FABRIC = "168.63.129.16"
IPAMS = ("azure-vnet-ipam", "azure-cns")
# With azure-cns only this mode gives pods the NAT to the fabric's DNS, from the primary address of their network container,
# and to the metadata service: getNATInfo of azure-container-networking, cni/network/network_windows.go. Its own generator
# writes it (SWIFTGenerator, the Windows one), and so does AKS (AgentBaker, AzureCNI.Expect.Swift.conflist).
SWIFT = {"executionMode": "v4swift"}
# The whole virtual network, as with Azure's own service.
_EXCEPTIONS: tuple[Destination, ...] = ("pods", "nodes", "services")


def _policy(value: Mapping[str, Data]) -> Data:
    return {"Name": "EndpointPolicy", "Value": value}


def _walls() -> list[Data]:
    """Pods do not reach the host's service at the fabric's address: it hands out the settings of the machine's
    extensions, secrets among them (the same rules as in AgentBaker azurecnifunc.ps1). DNS there stays open."""
    blocked: dict[str, Data] = {
        "Type": "ACL",
        "Protocols": "6",
        "Action": "Block",
        "Direction": "Out",
        "RemoteAddresses": f"{FABRIC}/32",
        "Priority": 200,
        "RuleType": "Switch",
    }
    walls = [_policy({**blocked, "RemotePorts": port}) for port in ("80", "32526")]
    # Everything else passes, as there.
    rest = [
        _policy({"Type": "ACL", "Action": "Allow", "Direction": way, "Priority": 65500})
        for way in ("In", "Out")
    ]
    return [*walls, *rest]


def _conf(choices: Choices, mode: str) -> Mapping[str, Data]:
    arguments = [_policy({"Type": "OutBoundNAT", "ExceptionList": choices.nat_exceptions(_EXCEPTIONS)})]
    if not choices.dsr:
        # With direct server return the load balancer works at the port of the pod, and the route would lead
        # past it.
        arguments += [
            _policy({"Type": "ROUTE", "DestinationPrefix": cidr, "NeedEncap": True})
            for cidr in choices.service_cidrs
        ]
    plugin: dict[str, Data] = {
        "type": "azure-vnet",
        "mode": mode,
        "bridge": "azure0",
        **(SWIFT if choices.ipam == "azure-cns" else {}),
        "capabilities": CAPABILITIES,
        "ipam": {"type": choices.ipam or IPAMS[0]},
        "dns": {
            "Nameservers": [*choices.dns_service_ips, FABRIC],
            "Search": [f"svc.{choices.dns_domain}"],
        },
        "AdditionalArgs": [*arguments, *_walls()],
        "windowsSettings": {"enableLoopbackDSR": choices.dsr, "hnsTimeoutDurationInSeconds": 120},
    }
    return {"cniVersion": "0.3.0", "name": choices.network_name, "adapterName": "", "plugins": [plugin]}


def _bridge_conf(choices: Choices) -> Mapping[str, Data]:
    return _conf(choices, "bridge")


def _tunnel_conf(choices: Choices) -> Mapping[str, Data]:
    return _conf(choices, "tunnel")


AZURE_BRIDGE = Network(
    id="azure",
    cni="azure",
    mode="bridge",
    what="pods get addresses of the Azure virtual network; for machines with secondary addresses on their adapter",
    hns_type="L2Bridge",
    default_name="azure",
    hns_names=(
        HnsName(
            "azure", "Azure/AgentBaker staging/cse/windows/azurecnifunc.ps1, the name in the configuration"
        ),
        HnsName("ext", "Azure/AgentBaker staging/cse/windows/windowscnifunc.ps1"),
    ),
    owners=Owners(
        hns_network="agent",
        binaries="winboot",
        cni_conf="winboot",
        ipam_store="agent",
        routes="none",
        kube_proxy="winboot",
    ),
    conf_file="10-azure.conflist",
    cni_conf=_bridge_conf,
    plugins=("azure-vnet", "azure-vnet-ipam"),
    downloads=(Download("azure-cni", "azure_cni", "Azure CNI", proposed=proposed("azure-cni")),),
    ipams=IPAMS,
    exceptions=_EXCEPTIONS,
    pods_in_node_network=True,
    # Pods' addresses come from the virtual network: a cluster of this kind allocates no spec.podCIDR
    # (Azure/aad-pod-identity#40).
    pod_cidr=False,
    first_switch="ext",
    steps_beside=("azure-state",),
    no_proxy=(FABRIC,),
    fixes=("azure-remote-arp",),
    # IPv6 would need ipv6Mode with a second IPAM plug-in, azure-vnet-ipamv6, which reads the Node object with a
    # kubeconfig of its own (cni/network/invoker_azure.go, ipam/manager.go). Azure's service takes azure-cns with an
    # overlay instead.
    dual_stack=False,
    needs=(
        ClusterNeed("secondary-addresses", "azure-vnet-ipam assigns the adapter's Azure addresses"),
        ClusterNeed(
            "kube-proxy-rbac", "kube-proxy reads services and endpoint slices with the node's certificate"
        ),
    ),
    source="https://github.com/Azure/azure-container-networking",
)

_TUNNEL_TYPE: HnsType = "L2Tunnel"
AZURE_TUNNEL = replace(
    AZURE_BRIDGE,
    id="azure-tunnel",
    mode="tunnel",
    what="like azure, but each packet goes through the virtualization host, whose policies apply to it (L2 tunnel)",
    hns_type=_TUNNEL_TYPE,
    cni_conf=_tunnel_conf,
)
