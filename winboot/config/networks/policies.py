"""The HNS endpoint policies that several solutions write, in the schema of HNS version 2.

containerd hands a namespace to the plugins that only this schema knows: `apiVersion: 2` and `Type` with `Settings`.
The older form (`ExceptionList`, `ROUTE`) is read by plugins of the Docker days, by Azure's and by Calico's.
"""

from __future__ import annotations

from collections.abc import Sequence

from winboot.config.networks.base import Choices, Data, Destination, Known, Text

CNI_VERSION = "1.0.0"
L2BRIDGE_EXCEPTIONS: tuple[Destination, ...] = ("pods", "services", "node_subnet")
OVERLAY_EXCEPTIONS: tuple[Destination, ...] = ("pods", "services")
CAPABILITIES = {"portMappings": True, "dns": True}


def with_suffix(value: Text, suffix: str) -> Text:
    """A text or a value of the node with more text behind it."""
    if isinstance(value, Known):
        return Known(value.name, value.prefix, value.suffix + suffix)
    return value + suffix


def outbound_nat(exceptions: Sequence[Text]) -> Data:
    """Pods reach the outside behind the node's address, except these destinations.

    Behind flannel the plug-ins look for one network among them, byte for byte, and append a policy of the same type
    for it where it is missing (containernetworking/plugins netconf_windows.go, ApplyOutboundNatPolicy). The plug-in
    win-bridge looks for flannel's whole Network, so winboot writes it as flannel has it. The plug-in win-overlay looks
    for the network of this node's pods, which is next to it (win-overlay_windows.go, cmdHcnAdd). No source shows which of two
    policies holds.
    """
    return _policy("OutBoundNAT", {"Exceptions": list(exceptions)})


def encapsulated_route(destination: Text) -> Data:
    """Traffic to this destination takes the host's stack, so that the load balancer sees it."""
    return _policy("SDNRoute", {"DestinationPrefix": destination, "NeedEncap": True})


def provider_address(address: Text) -> Data:
    """The address that encapsulated packets carry outside."""
    return _policy("ProviderAddress", {"ProviderAddress": address})


def l2bridge_policies(choices: Choices) -> list[Data]:
    """What a pod on an L2 bridge needs: no NAT inside the cluster, services and its own node through the
    host. Of IPv4 alone: win-bridge gives a pod one address, and a policy of the other family has no place there."""
    exceptions = [one for one in choices.nat_exceptions(L2BRIDGE_EXCEPTIONS) if ":" not in str(one)]
    return [
        outbound_nat(exceptions),
        *(encapsulated_route(cidr) for cidr in _ipv4(choices.service_cidrs)),
        encapsulated_route(with_suffix(choices.node_ip, "/32")),
    ]


def _ipv4(cidrs: Sequence[str]) -> list[str]:
    return [cidr for cidr in cidrs if ":" not in cidr]


def overlay_policies(choices: Choices, own: Sequence[Destination] = OVERLAY_EXCEPTIONS) -> list[Data]:
    """What a pod on an overlay needs; its node is not among the exceptions, for an overlay cannot reach it anyway."""
    return [
        outbound_nat(choices.nat_exceptions(own)),
        *(encapsulated_route(cidr) for cidr in choices.service_cidrs),
        provider_address(choices.node_ip),
    ]


def _policy(kind: str, settings: Data) -> Data:
    return {"name": "EndpointPolicy", "value": {"Type": kind, "Settings": settings}}
