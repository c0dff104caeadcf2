"""What the programs of lab machines meet outside: clusters at their addresses, and registries with images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from winboot.config.compat import Compat, load
from winboot_lab.cluster import LabCluster
from winboot_lab.cluster.streams import NodeApi
from winboot_lab.programs.base import Run
from winboot_lab.programs.containers import Containers
from winboot_lab.programs.node_api import NodePods, dial
from winboot_lab.programs.traffic import Closed, End, Lost, Traffic
from winboot_lab.windows.host import Host
from winboot_lab.windows.processes import Process
from winboot_lab.windows.session import Computer
from winboot_lab.windows.sockets import Request, Response, World

# How a registry asks for a token (distribution/distribution, docs/spec/auth/token.md).
REGISTRY_LOGIN = {"WWW-Authenticate": 'Bearer realm="https://auth.example/token"'}
HostProcess = Callable[[Run, Mapping[str, Any]], None]  # its process, and the Node object


@dataclass(slots=True)
class Images:
    """Container images by full reference, with the Windows builds in their manifests.

    `hosts` are the registries that answer; `missing` references that are not there although the registry is.
    """

    builds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=lambda: {"registry.k8s.io", "mcr.microsoft.com"})
    missing: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, compat: Compat) -> Images:
        """The pause images that the data knows, under both of their homes."""
        pause: Mapping[str, list[int]] = compat.section("pause")
        found = {}
        for tag, builds in pause.items():
            if builds:
                found[f"registry.k8s.io/pause:{tag}"] = tuple(int(b) for b in builds)
                found[f"mcr.microsoft.com/oss/kubernetes/pause:{tag}"] = tuple(int(b) for b in builds)
        for release, build in (("2019", 17763), ("2022", 20348), ("2025", 26100)):
            found[f"mcr.microsoft.com/windows/servercore:ltsc{release}"] = (build,)
        return cls(found)


@dataclass(slots=True)
class Outside:
    """One lab's surroundings, shared by all its machines' programs."""

    world: World
    compat: Compat = field(default_factory=load)
    images: Images = field(default_factory=lambda: Images.of(load()))
    # What HostProcess pods do on a machine, by the repository of their image.
    host_processes: dict[str, HostProcess] = field(default_factory=dict)
    # What ends with them, where their work is a program that stays.
    host_ends: dict[str, Callable[[Computer], None]] = field(default_factory=dict)
    clusters: dict[tuple[str, int], LabCluster] = field(default_factory=dict)
    # The kubelets that were started, by node: the machine, the process, its pods.
    kubelets: dict[str, tuple[Computer, Process, NodePods]] = field(default_factory=dict)
    traffic: Traffic = field(init=False)
    _containers: dict[int, Containers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.traffic = Traffic(self._machines, self._clusters)
        self.world.way = self._way
        for host in tuple(self.images.hosts):
            self.serve_registry(host)

    def serve_registry(self, host: str) -> None:
        """Let a registry answer: 401 without a token, with the header that asks for one."""
        self.images.hosts.add(host)
        self.world.serve(host, 443, lambda request: Response(401, headers=REGISTRY_LOGIN))

    def attach(self, cluster: LabCluster) -> None:
        """Put a cluster at the address that its plan says machines use."""
        parts = urlsplit(cluster.plan.server)
        host, port = parts.hostname or "", parts.port or 443

        def handler(request: Request) -> Response:
            code = (
                200
                if request.path.partition("?")[0] in ("/healthz", "/livez", "/readyz", "/version")
                else 401
            )
            return Response(code, b"ok" if code == 200 else b"Unauthorized")

        self.world.serve(host, port, handler, issuer=cluster.authority.pem)
        cluster.kubelet = lambda node: dial(self.containers(), self.kubelets, node, host)
        # Where no agent makes routes, the network's own routers know which node has which pods.
        self.traffic.routers_know_pods = cluster.plan.flannel is None
        self.clusters[self.world.address(host) or host, port] = cluster

    def _clusters(self) -> Sequence[LabCluster]:
        return tuple(self.clusters.values())

    def _machines(self) -> Sequence[Computer]:
        return [machine for machine in self.world.machines if isinstance(machine, Computer)]

    def _way(self, machine: Host, address: str, port: int) -> str | None:
        """How a connection of a machine itself ends; None for an address outside of the cluster, and for a Linux host's own:
        the world knows its ports."""
        there = self.traffic.find(address)
        hosts = (node.address for node in self.traffic.linux_nodes())
        if there.kind == "outside" or not self.clusters or address in hosts:
            return None
        assert isinstance(machine, Computer)
        start = End("host", machine.network.lan.address, machine)
        try:
            arrival = self.traffic.connect(start, address, port)
            if arrival.end.kind == "pod":
                self.containers().answer(arrival, "/")
        except Lost:
            return "silent"
        except Closed:
            return "closed"
        return "open"

    def containers(self) -> Containers:
        """What runs in the containers of the cluster's pods."""
        cluster = self._clusters()[0]
        if id(cluster) not in self._containers:
            self._containers[id(cluster)] = Containers(self.traffic, cluster, self.world)
        return self._containers[id(cluster)]

    def api(self, node: str) -> NodeApi:
        """The kubelet of a node, as an API server reaches it."""
        return self._clusters()[0].kubelet(node)
