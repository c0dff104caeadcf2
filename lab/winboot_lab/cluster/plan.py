"""What a lab cluster looks like to the machines that join it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(slots=True)
class ClusterPlan:
    """What kind of cluster this is: everything a profile can disagree with."""

    version: str = "1.36.5"
    server: str = "https://10.0.0.10:6443"  # the address that machines use
    pod_cidrs: tuple[str, ...] = ("10.244.0.0/16",)
    service_cidrs: tuple[str, ...] = ("10.96.0.0/12",)
    # Whether the controller manager gives each Node a part of pod_cidrs (--allocate-node-cidrs).
    allocates: bool = True
    flannel: Mapping[str, Any] | None = field(
        default_factory=lambda: {"Type": "host-gw"}
    )  # net-conf Backend; None: no flannel in this cluster.
    calico: bool = False  # An operator that brings Calico to Windows nodes with a DaemonSet.
    kube_proxy_pods: bool = False  # Puts kube-proxy into HostProcess pods, next to Calico.
    calico_nodes: bool = False  # Calico without that, its roles bound to system:nodes
    ovn: str = ""  # The network of OVN-Kubernetes' hybrid overlay; without one the cluster has none.
    antrea: bool = False  # Its DaemonSet for Windows nodes, with Open vSwitch in the same pod.
    grant_nodes: bool = True  # bind kube-proxy's and flannel's roles to system:nodes

    @property
    def address(self) -> str:
        """Where the one machine of the control plane is, also where `server` is a name."""
        host = urlsplit(self.server).hostname or ""
        return host if host.replace(".", "").isdigit() else "10.0.0.10"
