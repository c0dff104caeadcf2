"""The range of an empty HNS network that only puts a switch on the node's adapter."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

# What Calico's and Azure's own scripts use (kubernetes-sigs/sig-windows-tools, hostprocess/calico/node/node-service.ps1;
# Azure/AgentBaker, windowscnifunc.ps1). It stays first, so that an existing node keeps its network.
USUAL: Final = ipaddress.IPv4Network("192.168.255.0/30")

# RFC 5737 keeps these networks for documentation, so no machine has an address there.
_OTHERS: Final = tuple(
    ipaddress.IPv4Network(f"{network}.0/30") for network in ("192.0.2", "198.51.100", "203.0.113")
)


def first_switch_range(taken: Iterable[str]) -> ipaddress.IPv4Network:
    """The first of four ranges that shares no address with the networks `taken` (CIDRs of both families).

    If `taken` covers all four, the usual one: upstream makes it whatever the cluster's networks are.
    """
    networks = [ipaddress.ip_network(one) for one in taken]
    free = (one for one in (USUAL, *_OTHERS) if not any(one.overlaps(other) for other in networks))
    return next(free, USUAL)
