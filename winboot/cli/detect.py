"""What a cluster itself says of the answers that `winboot init` asks for, each with where it is from."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import typer

from winboot.config import networks

if TYPE_CHECKING:
    from winboot.remote.cluster import Kubeconfig
    from winboot.remote.cluster.base import Cluster, Contents, Nodes

# The answer, and where it is from.
Found: TypeAlias = dict[str, tuple[str, str]]
KUBEADM: Final = "kubeadm's ConfigMap kube-system/kubeadm-config"
DNS_SERVICE: Final = "the Service kube-system/kube-dns"
_OF_KUBEADM: Final = {"podSubnet": "pod_cidr", "serviceSubnet": "service_cidr", "dnsDomain": "dns_domain"}
# What a network of pods is at least wide, as a rule: the nodes' own parts are much smaller.
_WIDTH: Final = {4: 16, 6: 56}


def detect(kubeconfig: Kubeconfig | Path, context: str | None = None) -> Found:
    """What the cluster says of `version`, `network`, `pod_cidr`, `service_cidr`, `dns_service_ip` and `dns_domain`.

    `node_pod_cidrs` are those of its nodes, separated by blanks, and `pod_cidr_guess` what is around them. Nothing where it
    does not answer, with a warning.
    """
    from winboot.base.errors import ClusterError
    from winboot.remote.cluster import connect

    try:
        with connect(kubeconfig, context=context) as cluster:
            return found_in(cluster)
    except ClusterError as error:
        typer.echo(f"warning: winboot could not query the cluster: {error.problem}", err=True)
        return {}


def found_in(cluster: Cluster) -> Found:
    """The same of a cluster that answers. winboot prompts for what this user may not read."""
    from winboot.base.errors import ClusterError, InvalidInput

    found: Found = {"version": (str(cluster.version().upstream), "the API server's /version")}
    # The later knows better: flannel and its pods' network are one.
    for source in (_of_nodes, _of_kubeadm, _of_dns, _of_service_cidrs, _of_network):
        try:
            found |= source(cluster)
        except (ClusterError, InvalidInput):
            continue
    return found


def doubts(answers: Mapping[str, str], found: Found) -> Iterator[str]:
    """What the cluster shows against the CIDRs that were answered."""
    parts, _ = found.get("node_pod_cidrs", ("", ""))
    outside = [one for one in parts.split() if not within(one, answers["pod_cidr"])]
    if outside:
        yield f"nodes have pod CIDRs outside of {answers['pod_cidr']}: {', '.join(outside)}; give --pod-cidr"
    dns, _ = found.get("dns_service_ip", ("", ""))
    if dns and not within(dns, answers["service_cidr"]):
        yield f"{DNS_SERVICE} has {dns}, which is outside of {answers['service_cidr']}; give --service-cidr"


def dns_of(service_cidr: str) -> str:
    """The default address of the cluster's DNS: the tenth of the service network (kubeadm, GetDNSIP)."""
    try:
        return str(ipaddress.ip_network(service_cidr).network_address + 10)
    except ValueError:
        return ""


def _of_nodes(cluster: Nodes) -> Found:
    cidrs = [cidr for node in cluster.nodes() for cidr in node.pod_cidrs if ":" not in cidr]
    found: Found = {}
    if cidrs:
        found["node_pod_cidrs"] = (" ".join(cidrs), "the Nodes")
        guessed = _around(cidrs)
        if guessed:
            found["pod_cidr_guess"] = (guessed, f"a guess: the pod CIDRs of the nodes, {_some(cidrs)}")
    return found


def _around(cidrs: Sequence[str]) -> str:
    """The network of all pods by those of the nodes: one of the usual width, where it holds them all."""
    first = ipaddress.ip_network(cidrs[0])
    width = min(_WIDTH[first.version], first.prefixlen)
    whole = str(first.supernet(new_prefix=width))
    return whole if all(within(one, whole) for one in cidrs) else ""


def _some(cidrs: Sequence[str]) -> str:
    return ", ".join(cidrs[:3]) + (" …" if len(cidrs) > 3 else "")


def _of_kubeadm(cluster: Contents) -> Found:
    """What kubeadm was given: it keeps it in kube-system/kubeadm-config
    (kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details, "Upload kubeadm ClusterConfiguration")."""
    from winboot.config.source import Scalar, Table, compose

    kept = cluster.config_map("kube-system", "kubeadm-config") or {}
    written = compose(kept.get("ClusterConfiguration", ""), "kubeadm-config", foreign=True)
    networking = written.get("networking")
    values = networking.entries if isinstance(networking, Table) else {}
    return {
        _OF_KUBEADM[key]: (entry.value.text, KUBEADM)
        for key, entry in values.items()
        if key in _OF_KUBEADM and isinstance(entry.value, Scalar) and "," not in entry.value.text
    }


def _of_dns(cluster: Contents) -> Found:
    """CoreDNS's Service has kept the name kube-dns
    (kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers)."""
    addresses = cluster.service_addresses("kube-system", "kube-dns")
    return {"dns_service_ip": (addresses[0], DNS_SERVICE)} if addresses else {}


def _of_service_cidrs(cluster: Contents) -> Found:
    """From 1.33 on the API says it itself: the ServiceCIDR `kubernetes`
    (kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation; before, only a flag of the API server does)."""
    from winboot.remote.cluster.base import SERVICE_CIDR

    for one in cluster.resources(SERVICE_CIDR) or ():
        cidrs = one.get("cidrs") or []
        if one["name"] == "kubernetes" and len(cidrs) == 1:
            return {"service_cidr": (str(cidrs[0]), "the API's ServiceCIDR kubernetes")}
    return {}


def _of_network(cluster: Contents) -> Found:
    for settings in networks.cluster_settings():
        seen = settings.detect(cluster) if settings.detect is not None else None
        if seen is not None:
            found = {"network": (seen.network, seen.where)}
            return found | ({"pod_cidr": (seen.pod_cidr, seen.where)} if seen.pod_cidr else {})
    return {}


def within(inner: str, outer: str) -> bool:
    try:
        small, large = ipaddress.ip_network(inner), ipaddress.ip_network(outer)
    except ValueError:
        return True  # judged elsewhere, with its place
    if isinstance(small, ipaddress.IPv4Network) and isinstance(large, ipaddress.IPv4Network):
        return small.subnet_of(large)
    if isinstance(small, ipaddress.IPv6Network) and isinstance(large, ipaddress.IPv6Network):
        return small.subnet_of(large)
    return False
