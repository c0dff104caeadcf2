"""Fields of the kubelet's and kube-proxy's configuration that winboot writes from other keys of the profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from winboot.config.compat.flags import Component
from winboot.config.networks import Network

CLUSTER_CA: Final = r"C:\etc\kubernetes\pki\ca.crt"
CONTAINERD: Final = "npipe:////./pipe/containerd-containerd"
CRI_DOCKERD: Final = "npipe:////./pipe/cri-dockerd"
DOCKERSHIM: Final = "npipe:////./pipe/dockershim"
KUBE_PROXY_KUBECONFIG: Final = r"C:\k\kube-proxy.kubeconfig"

# The key of the profile that each field comes from.
OWNED_FIELDS: Final[Mapping[Component, Mapping[str, str]]] = {
    "kubelet": {
        "registerWithTaints": "node.taints",
        "containerRuntimeEndpoint": "",
        "clusterDomain": "cluster.dns_domain",
        "clusterDNS": "cluster.dns_service_ip",
        "authentication.x509.clientCAFile": "cluster.ca",
    },
    "kube-proxy": {
        "mode": "",
        "hostnameOverride": "the host key of the inventory",
        "clusterCIDR": "cluster.pod_cidr",
        "windowsRunAsService": "services.manager",
        "clientConnection.kubeconfig": "kube_proxy.kubeconfig",
        "winkernel.networkName": "network.network_name",
        "winkernel.sourceVip": "",
        "winkernel.enableDSR": "kube_proxy.dsr",
        "winkernel.rootHnsEndpointName": "",
    },
}
_UNKNOWN_NETWORK: Final = frozenset({"winkernel.sourceVip", "winkernel.rootHnsEndpointName"})

# What kubeadm writes for Linux nodes into the ConfigMaps that all nodes share. On Windows `kubeadm join` itself empties
# resolvConf and takes the other two paths as C:\etc\kubernetes\... (cmd/kubeadm/app/componentconfigs/kubelet.go,
# mutatePathsOnWindows; cgroupDriver: Default there). winboot keeps the CA in that place, and leaves static pods out:
# a worker has none, and a user with write access to that folder would own the node. For kube-proxy: kubeproxy.go next
# to it (kubeproxyKubeConfigFileName), and `mode: iptables` from 1.37 on (kubernetes/kubernetes#139777).
OF_LINUX: Final[Mapping[Component, Mapping[str, str]]] = {
    "kubelet": {
        "authentication.x509.clientCAFile": "/etc/kubernetes/pki/ca.crt",
        "cgroupDriver": "systemd",
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        "staticPodPath": "/etc/kubernetes/manifests",
    },
    "kube-proxy": {
        "clientConnection.kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf",
        "mode": "iptables",
    },
}


def owned_fields(component: Component, solution: Network | None) -> Mapping[str, str]:
    """The fields that winboot writes, each with its key. A network that others make is theirs to describe."""
    foreign = solution is not None and not solution.default_name
    return {
        path: key
        for path, key in OWNED_FIELDS[component].items()
        if not (foreign and path in _UNKNOWN_NETWORK)
    }


def unowned(component: Component, config: Mapping[str, Any], solution: Network | None) -> dict[str, Any]:
    """The configuration without winboot's fields and without kubeadm's values for Linux."""
    owned, linux = owned_fields(component, solution), OF_LINUX[component]
    return _without(config, lambda path, value: path in owned or (path in linux and linux[path] == value))


def said(component: Component, config: Mapping[str, Any], solution: Network | None) -> dict[str, Any]:
    """What the user's configuration says in addition to winboot's.

    Empty texts and durations of 0s say nothing: kubeadm writes them for every field without a value. The programs
    fill them with their defaults (SetDefaults_KubeletConfiguration, SetDefaults_KubeProxyConfiguration). resolvConf
    is the one text for which empty is a value, and it is winboot's.
    """
    return _without(unowned(component, config, solution), lambda path, value: value in ("", "0s"))


def at(config: Mapping[str, Any], path: str) -> Any:
    """The value under a dotted path; None where it is missing."""
    value: Any = config
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _without(config: Mapping[str, Any], gone: Callable[[str, Any], bool], above: str = "") -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{above}.{key}" if above else key
        if not gone(path, value):
            kept[key] = _without(value, gone, path) if isinstance(value, Mapping) else value
    return kept
