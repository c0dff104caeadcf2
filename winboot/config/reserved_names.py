"""Names and addresses that no node's certificate may have, whatever file has them: they are the API server's, a
service's or everybody's."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from winboot.base.limits import MOST_NAMES
from winboot.config.profile import Profile
from winboot.config.profile.values import Address


def foreign_name(name: str, profile: Profile) -> str:
    """Whose this name is, as the end of a sentence; empty where it may be a node's.

    The API server's own names are those that kubeadm writes into its certificate:
    https://kubernetes.io/docs/setup/best-practices/certificates/#all-certificates
    """
    name = name.lower().rstrip(".")
    domain = profile.cluster.dns_domain.lower()
    if name.partition(".")[0] == "kubernetes" or name == server_host(profile).lower():
        return "is the API server's"
    if name.endswith((".svc", f".svc.{domain}")):
        return "is a service's"
    return "is everybody's" if name.rpartition(".")[2] in ("localhost", "ip6-localhost") else ""


def foreign_address(address: Address, profile: Profile) -> str:
    """The same for an address."""
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        return "cannot be a node's address"
    if str(address) == server_host(profile):
        return "is the API server's"
    own = profile.solution.pods_in_node_network
    networks = {
        "service_cidr": profile.cluster.service_cidr,
        "pod_cidr": () if own else profile.cluster.pod_cidr,
    }
    for key, cidrs in networks.items():
        if any(address in cidr for cidr in cidrs if cidr.version == address.version):
            return f"is an address of cluster.{key}"
    return ""


def foreign(name: str, profile: Profile) -> str:
    """The same for either, as `certificate_names` has them."""
    try:
        return foreign_address(ipaddress.ip_address(name), profile)
    except ValueError:
        return foreign_name(name, profile)


def wrong_names(names: tuple[str, ...], profile: Profile) -> Iterator[str]:
    """What is wrong with the `certificate_names` of a machine."""
    if len(names) > MOST_NAMES:
        yield f"{len(names)} names are more than the {MOST_NAMES} that a certificate may have"
    for name in names:
        whose = foreign(name, profile)
        if whose:
            yield f"{name} {whose}"


def server_host(profile: Profile) -> str:
    """The host of cluster.server."""
    return urlsplit(profile.cluster.server).hostname or ""
