"""The cluster: its networks, its server, its CA and its DNS service."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from winboot.config.profile import sections
from winboot.config.profile.checks.draft import Draft
from winboot.config.profile.values import NAME
from winboot.config.source import Complaint, PathParts

_RESERVED: Final[Mapping[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = {
    "loopback": ipaddress.ip_network("127.0.0.0/8"),
    "link-local addresses": ipaddress.ip_network("169.254.0.0/16"),
    "multicast": ipaddress.ip_network("224.0.0.0/4"),
}

# Room for what a range must hold: the pods of one node at least; the API server's and the DNS service's addresses.
_LONGEST_PREFIX: Final = {4: 28, 6: 124}


def check(draft: Draft) -> Iterator[Complaint]:
    """Networks that share no address, a server outside them, a CA."""
    cluster = draft.cluster
    if cluster is None:
        return
    if cluster.ca is None and cluster.ca_hash is None:
        yield draft.at(("cluster",), "no CA is given", "ca: {file: ca.crt} or ca_hash: sha256:…", key=True)
    if cluster.bootstrap_token == "mint" and cluster.kubeconfig is None:
        wrong = "without a kubeconfig, winboot cannot mint a bootstrap token"
        expected = "kubeconfig: {file: ~/.kube/config}, or bootstrap_token: {env: NAME}"
        yield draft.at(("cluster",), wrong, expected, key=True, warning=True)
    named = {
        "pod_cidr": cluster.pod_cidr,
        "service_cidr": cluster.service_cidr,
        "node_cidr": cluster.node_cidr,
    }
    # Pods may have addresses of the network that the nodes are in.
    shared = draft.solution is not None and draft.solution.pods_in_node_network
    yield from _overlaps(draft, named, frozenset({"pod_cidr", "node_cidr"}) if shared else frozenset())
    yield from _sizes(draft, named)
    yield from _server(draft, cluster, ("service_cidr",) if shared else ("pod_cidr", "service_cidr"))
    for key in ("pod_cidr", "service_cidr"):
        yield from _families(draft, key, named[key])
    if len(cluster.pod_cidr) != len(cluster.service_cidr) and len(cluster.service_cidr) > 1:
        yield draft.at(
            ("cluster", "service_cidr"), "two service networks, but one family of pods", "one network"
        )
    yield from _dns(draft, cluster)
    if not NAME.fullmatch(cluster.dns_domain):
        yield draft.at(("cluster", "dns_domain"), repr(cluster.dns_domain), "a domain such as cluster.local")


def _families(draft: Draft, key: str, cidrs: tuple[Any, ...]) -> Iterator[Complaint]:
    path: PathParts = ("cluster", key)
    families = [cidr.version for cidr in cidrs]
    if not families:
        yield draft.at(path, "the list has no network", "one network, or an IPv4 and an IPv6 one")
    elif families == [6]:
        yield draft.at(path, "only IPv6, but Windows nodes need IPv4", "an IPv4 network, or both families")
    elif len(families) > 2 or len(set(families)) != len(families):
        yield draft.at(path, "two networks of one address family", "one network, or an IPv4 and an IPv6 one")
    elif families == [6, 4]:
        yield draft.at(
            path,
            "the IPv6 network is first, but Windows nodes use IPv4 as their first address family",
            "the IPv4 network first",
        )


def _sizes(draft: Draft, named: Mapping[str, tuple[Any, ...]]) -> Iterator[Complaint]:
    for key in ("pod_cidr", "service_cidr"):
        for cidr in named[key]:
            longest = _LONGEST_PREFIX[cidr.version]
            if cidr.prefixlen > longest:
                wrong = f"{cidr} has only {cidr.num_addresses} addresses for the whole cluster"
                yield draft.at(("cluster", key), wrong, f"a prefix of at most /{longest}")


def _overlaps(
    draft: Draft, named: Mapping[str, tuple[Any, ...]], shared: frozenset[str]
) -> Iterator[Complaint]:
    """No two networks share an address, but for the pair that is `shared`."""
    seen: list[tuple[str, Any]] = []
    for key, cidrs in named.items():
        for cidr in cidrs:
            path: PathParts = ("cluster", key)
            for other, known in seen:
                if {key, other} == shared:
                    continue
                if cidr.version == known.version and cidr.overlaps(known):
                    yield draft.at(
                        path, f"{cidr} overlaps {known} of cluster.{other}", "networks that share no address"
                    )
            for what, known in _RESERVED.items():
                if cidr.version == known.version and cidr.overlaps(known):
                    yield draft.at(path, f"{cidr} overlaps {known}, {what}", "another network")
            seen.append((key, cidr))


def _server(draft: Draft, cluster: sections.Cluster, keys: Iterable[str]) -> Iterator[Complaint]:
    """A node reaches the server before there are pods or services, so its address is outside of both."""
    host = urlsplit(cluster.server).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    for key in keys:
        for cidr in getattr(cluster, key):
            if cidr.version == address.version and address in cidr:
                wrong = f"{address} is an address of cluster.{key} ({cidr})"
                yield draft.at(("cluster", "server"), wrong, "the API server's address for nodes")


def _dns(draft: Draft, cluster: sections.Cluster) -> Iterator[Complaint]:
    for address in cluster.dns_service_ip:
        inside = [
            cidr for cidr in cluster.service_cidr if cidr.version == address.version and address in cidr
        ]
        if not inside:
            cidrs = ", ".join(map(str, cluster.service_cidr))
            yield draft.at(
                ("cluster", "dns_service_ip"),
                f"{address} is outside the service network",
                f"an address in {cidrs}",
            )
