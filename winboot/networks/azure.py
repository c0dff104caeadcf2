"""Azure CNI: the plugin makes the HNS network itself when the first pod arrives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from winboot.networks.base import Choices, ClusterNeed, Data, HnsType, Known, Network, Owners
from winboot.networks.policies import CAPABILITIES

AZURE_DNS = "168.63.129.16"


def _policy(value: Mapping[str, Data]) -> Data:
    return {"Name": "EndpointPolicy", "Value": value}


def _conf(choices: Choices, mode: str) -> Mapping[str, Data]:
    exceptions: list[Data] = [Known("node_subnet"), *choices.pod_cidrs, *choices.service_cidrs]
    arguments = [_policy({"Type": "OutBoundNAT", "ExceptionList": exceptions})]
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
        "capabilities": CAPABILITIES,
        "ipam": {"type": choices.ipam or "azure-vnet-ipam"},
        "dns": {
            "Nameservers": [*choices.dns_service_ips, AZURE_DNS],
            "Search": [f"svc.{choices.dns_domain}"],
        },
        "AdditionalArgs": arguments,
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
    what="pods take addresses of the Azure virtual network; for machines with secondary addresses on their adapter",
    hns_type="L2Bridge",
    default_name="azure",
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
    artifacts=("azure-cni",),
    first_switch="ext",
    fixes=("azure-remote-arp",),
    dual_stack=True,
    needs=(
        ClusterNeed("secondary-addresses", "azure-vnet-ipam hands out the addresses Azure gave the adapter"),
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
    what="as azure, with every packet sent to the virtualization host so that its policies apply (L2 tunnel)",
    hns_type=_TUNNEL_TYPE,
    cni_conf=_tunnel_conf,
)
