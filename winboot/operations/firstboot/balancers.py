"""Load balancers that name their callers: their networks, and what must not lie in one."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from winboot.base.errors import InvalidInput, UsageError
from winboot.operations.firstboot.door import Meant, Names
from winboot.operations.server import Network

# As many addresses as a /28 of IPv4 has: what calls from there may be any host of the inventory.
_MOST_ADDRESSES: Final = 16


def balancers(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks of `--proxy-from`. Raises UsageError for a text that is not a network, and for a wide one."""
    return tuple(_network(text) for text in texts)


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise UsageError(
            f"--proxy-from {text}: {error}",
            hint="Write the load balancer's address, for example 10.0.0.7/32.",
        ) from error
    if network.num_addresses > _MOST_ADDRESSES:
        raise UsageError(
            f"--proxy-from {text} has {network.num_addresses} addresses, and each of them could act for any host",
            hint="Give the load balancer's own addresses (/32); winboot accepts at most a /28.",
        )
    return network


def refuse_hosts_among(networks: Sequence[Network], meant: Meant, names: Names) -> None:
    """Raises InvalidInput where a host of the inventory could pass for a load balancer, and so for any other host."""
    specs = [spec for spec, _ in meant] if networks else []
    for spec, addresses in zip(specs, names.addresses(specs), strict=True):
        for address in sorted(addresses):
            for network in networks:
                if ipaddress.ip_address(address) in network:
                    raise InvalidInput(
                        f"--proxy-from {network}: the host {spec.node.name} has the address {address} in this network, "
                        "and could act for any other host",
                        hint="Give the load balancer's own addresses (/32).",
                    )
