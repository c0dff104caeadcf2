"""Where a packet goes: from a pod, a machine or a Linux node to an address and port, by nothing but the models' own state.

Routes, forwarding and addresses are the machines' (`windows.network`), endpoints, policies and load balancers those of HNS
(`windows.hns`), what may come in is the firewall's. Linux nodes are taken as well kept: they route by the Node objects, as
flannel and Calico do there. A connection comes about, is refused, or gets no answer.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from winboot_lab.cluster import LabCluster
from winboot_lab.cluster.kinds import NODES, PODS, kind_of
from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.hns import Json
from winboot_lab.windows.network import Adapter
from winboot_lab.windows.session import Computer

SERVICES: Final = kind_of("services")
SLICES: Final = kind_of("endpointslices", "discovery.k8s.io")
VXLAN: Final = 4789
LARGE: Final = 1500
_FLANNEL: Final = "flannel.alpha.coreos.com"
_BRIDGES: Final = ("L2Bridge", "L2Tunnel")
Protocol = Literal["tcp", "udp"]
_NUMBERS: Final[Mapping[str, int]] = {"tcp": 6, "udp": 17}


class Lost(Exception):
    """No answer comes; the text says where the packet ended, for a test that looks into the lab."""


class Closed(Exception):
    """The other side says no."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection: a pod on a machine, a machine, something on a Linux node, or a place outside the cluster."""

    kind: Literal["pod", "host", "linux", "outside"]
    address: str
    machine: Computer | None = None
    endpoint: Json | None = None
    node: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A connection that came about: at which end and port, and from which address as it is seen there."""

    end: End
    port: int
    source: str


@lru_cache(maxsize=2000)
def _net(prefix: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(prefix, strict=False)


def _within(address: str, prefix: str) -> bool:
    return ipaddress.ip_address(address) in _net(prefix)


@dataclass(frozen=True, slots=True)
class LinuxNode:
    """A Node of the cluster that is no machine of the lab."""

    name: str
    address: str
    pods: tuple[str, ...]


class Traffic:
    """All connections of one lab."""

    def __init__(
        self, machines: Callable[[], Sequence[Computer]], clusters: Callable[[], Sequence[LabCluster]]
    ) -> None:
        self._machines = machines
        self._clusters = clusters
        # Whether routers know which node has which pods, as where no agent makes routes (profile win-bridge).
        self.routers_know_pods = False

    # ---- addresses and their ends ----------------------------------------------------------------------------------

    def pod(self, machine: Computer, address: str) -> End | None:
        """The pod of a machine that has an address."""
        for endpoint in list(machine.hns.endpoints.values()):
            if _is_a_pods(endpoint) and not endpoint["IsRemoteEndpoint"] and endpoint["IPAddress"] == address:
                return End("pod", address, machine, endpoint)
        return None

    def find(self, address: str) -> End:
        """The end that has an address."""
        for machine in self._running():
            found = self.pod(machine, address)
            if found is not None:
                return found
            if machine.network.holder(address) is not None and not ipaddress.ip_address(address).is_loopback:
                return End("host", address, machine)
        for node in self.linux_nodes():
            if address == node.address or any(_within(address, pods) for pods in node.pods):
                return End("linux", address, node=node.name)
        for pod in self._objects(PODS):
            if pod.get("status", {}).get("podIP") == address:
                return End("linux", address, node=str(pod["spec"].get("nodeName", "")))
        if any(address in backends for _, backends in self._slices()):
            return End("linux", address, node=next((one.name for one in self.linux_nodes()), ""))
        return End("outside", address)

    def linux_nodes(self) -> list[LinuxNode]:
        """The Nodes that are no machines of the lab."""
        found = []
        for node in self._objects(NODES):
            if (node["metadata"].get("labels") or {}).get("kubernetes.io/os") == "linux":
                name, pods = node["metadata"]["name"], tuple(node["spec"].get("podCIDRs") or ())
                found.append(LinuxNode(name, _address_of(node), pods))
        return found

    def _running(self) -> Iterator[Computer]:
        for machine in self._machines():
            if machine.running:
                yield machine

    def _objects(self, kind: Any) -> list[dict[str, Any]]:
        return [thing for cluster in self._clusters() for thing in cluster.objects(kind)]

    def _slices(self) -> Iterator[tuple[str, list[str]]]:
        for one in self._objects(SLICES):
            name = (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name", "")
            addresses = [a for e in one.get("endpoints") or [] for a in e.get("addresses") or []]
            yield f"{one['metadata']['namespace']}/{name}", addresses

    def _service_networks(self) -> tuple[str, ...]:
        return tuple(cidr for cluster in self._clusters() for cidr in cluster.plan.service_cidrs)

    def _is_service(self, address: str) -> bool:
        return any(_within(address, cidr) for cidr in self._service_networks())

    # ---- the way there ---------------------------------------------------------------------------------

    def connect(
        self, start: End, address: str, port: int, *, protocol: Protocol = "tcp", size: int = 64
    ) -> Arrival:
        """A connection, whose largest packet has `size` bytes. Raises Lost and Closed."""
        if start.kind == "pod":
            return self._from_pod(start, address, port, protocol, size)
        if start.kind == "host":
            return self._from_host(start, address, port, protocol, size)
        return self._from_linux(start, address, port, protocol, size)

    def _from_pod(self, start: End, address: str, port: int, protocol: Protocol, size: int) -> Arrival:
        machine, endpoint = _both(start)
        network = machine.hns.networks.get(endpoint["VirtualNetwork"])
        if network is None or endpoint["ID"] not in machine.hns.endpoints:
            raise Lost("the pod's endpoint is gone")
        if network["Type"] == "Transparent":
            raise Refusal("value", str(network["Name"]), "traffic through Open vSwitch")
        _filtered(endpoint, "Out", address, port, protocol)
        policy = _balancer(machine, address, port, protocol)
        if policy is None:
            if self._is_service(address):
                raise Lost(f"{machine.name} has no load balancer for {address}:{port}")
            return self._direct(start, network, address, port, protocol, size)
        if not policy["IsDSR"] and network["Type"] in _BRIDGES and not _routed(endpoint, address):
            raise Lost("the pod's traffic to services does not pass the load balancer")
        backend, inner = self._backend(machine, policy)
        _source_vip(machine, network, policy, backend)
        return self._direct(start, network, backend, inner, protocol, size)

    def _backend(self, machine: Computer, policy: Json) -> tuple[str, int]:
        """The first backend of a load balancer that HNS still knows."""
        for reference in policy["References"]:
            endpoint = machine.hns.endpoints.get(str(reference).rpartition("/")[2])
            if endpoint is not None:
                return str(endpoint["IPAddress"]), int(policy["InternalPort"])
        raise Lost("the load balancer has no backend")

    def _direct(
        self, start: End, network: Json, address: str, port: int, protocol: Protocol, size: int
    ) -> Arrival:
        """From a pod to an address that is no service's."""
        machine, endpoint = _both(start)
        there = self.find(address)
        if there.machine is machine and there.kind == "pod":
            return _arrive(there, start.address, port, protocol)
        if there.machine is machine:
            self._to_own_host(start, network, address)
            return _at_host(there, start.address, port, protocol)
        hidden = _hidden(endpoint, address)
        if network["Type"] == "Overlay":
            return self._over(start, network, there, port, protocol, size, hidden=hidden)
        return self._across(start, network, there, port, protocol, size, hidden=hidden)

    def _to_own_host(self, start: End, network: Json, address: str) -> None:
        """A pod to the node it is on: on a bridge by a route through the host, on an overlay by HostRoute."""
        machine, endpoint = _both(start)
        if network["Type"] == "Overlay":
            if not any(one.get("Type") == "HostRoute" for one in network["Policies"]):
                raise Lost("the overlay leads nothing to its own host")
        elif not _in_subnets(network, address) and not _routed(endpoint, address):
            raise Lost("no route of the endpoint leads to the pod's own node")
        elif not _in_subnets(network, address):
            _host_endpoint(machine, endpoint)

    # Bridges

    def _across(
        self, start: End, network: Json, there: End, port: int, protocol: Protocol, size: int, *, hidden: bool
    ) -> Arrival:
        """From a pod on a bridge to another machine, a Linux end or the outside."""
        machine, endpoint = _both(start)
        _spoofing(machine)
        flat = _in_subnets(
            network, machine.network.lan.address
        )  # pods have addresses of the nodes' own network
        if not flat:
            _host_endpoint(machine, endpoint)
        source = machine.network.lan.address if hidden else start.address
        if there.kind == "outside":
            return self._outside(machine, there, source, port, flat=flat, hidden=hidden)
        self._leads(machine, there, flat=flat)
        _fits(machine, size)
        if not hidden and not flat:
            self._leads_back(there, start)
        elif there.machine is not None and not there.machine.network.reachable():
            raise Lost("the other machine is cut off")
        return self._enter(there, source, port, protocol, size, flat=flat)

    def _leads(self, machine: Computer, there: End, *, flat: bool) -> None:
        """Whether the routes of a machine lead to the node that a pod or address is on."""
        node = self._node_address(there)
        if flat or there.address == node:
            if not machine.network.reaches(there.address):
                raise Lost("no route")
            return
        hop = _next_hop(machine, there.address)
        if hop == node:
            return
        if hop == machine.network.lan.gateway and self.routers_know_pods:
            return
        raise Lost(f"{machine.name} sends {there.address} to {hop or 'nobody'}, it is on {node}")

    def _leads_back(self, there: End, start: End) -> None:
        """Whether the other side's routes lead to a pod that is not hidden behind its node."""
        machine = start.machine
        assert machine is not None
        if there.machine is not None:
            self._leads(there.machine, start, flat=False)
        elif there.kind == "linux" and not self._linux_leads(start):
            raise Lost("the Linux nodes know another network for this node's pods")

    def _linux_leads(self, there: End) -> bool:
        """Whether Linux nodes send a pod's packets to its machine: by flannel's annotation, or spec.podCIDR."""
        machine = there.machine
        assert machine is not None
        for node in self._objects(NODES):
            if any(_within(there.address, cidr) for cidr in node["spec"].get("podCIDRs") or ()):
                told = (node["metadata"].get("annotations") or {}).get(f"{_FLANNEL}/public-ip")
                return (told or _address_of(node)) == machine.network.lan.address
        # Calico or a cloud hands out addresses and has the list of their owners.
        return not any(node["spec"].get("podCIDRs") for node in self._objects(NODES))

    def _node_address(self, there: End) -> str:
        if there.machine is not None:
            return there.machine.network.lan.address
        found = next((one for one in self.linux_nodes() if one.name == there.node), None)
        return found.address if found is not None else there.address

    def _enter(
        self, there: End, source: str, port: int, protocol: Protocol, size: int, *, flat: bool
    ) -> Arrival:
        """The last part: into a pod by way of its node, or into the node."""
        machine = there.machine
        if machine is None:
            return Arrival(there, port, source)
        if not machine.network.reachable():
            raise Lost(f"{machine.name} is cut off")
        _fits(machine, size)
        if there.kind == "host":
            return self._knock(there, source, port, protocol)
        _, endpoint = _both(there)
        _spoofing(machine)
        network = machine.hns.networks[endpoint["VirtualNetwork"]]
        if not flat and network["Type"] in _BRIDGES:
            _host_endpoint(machine, endpoint)
        return _arrive(there, source, port, protocol)

    def _outside(
        self, machine: Computer, there: End, source: str, port: int, *, flat: bool, hidden: bool
    ) -> Arrival:
        """Beyond the cluster only nodes' addresses are known, and those of a virtual network of a cloud."""
        if not hidden and not flat:
            raise Lost("the network outside has no route to the address of a pod")
        return self._host_outside(machine, there, source, port)

    def _host_outside(self, machine: Computer, there: End, source: str, port: int) -> Arrival:
        world = machine.world
        if not machine.network.reaches(there.address) or not machine.network.online():
            raise Lost("no route to the outside")
        if (there.address, port) in world.servers:
            return Arrival(there, port, source)
        if world.knows(there.address):
            raise Closed
        raise Lost("no machine has this address")

    # Overlays

    def _over(
        self, start: End, network: Json, there: End, port: int, protocol: Protocol, size: int, *, hidden: bool
    ) -> Arrival:
        """From a pod on an overlay: to other nodes' pods in VXLAN, to everything else behind the node's address."""
        machine, endpoint = _both(start)
        if not self._in_pods(there):
            if not hidden:
                raise Lost("the network outside of the overlay has no route to the address of a pod")
            source = machine.network.lan.address
            if there.kind == "outside":
                return self._host_outside(machine, there, source, port)
            self._leads(machine, there, flat=True)
            return self._enter(there, source, port, protocol, size, flat=True)
        if hidden:
            raise Lost("what is hidden behind the node's address does not come back through the overlay")
        _provider(machine, endpoint)
        self._tunnel(machine, network, there)
        _fits(machine, size)
        if there.machine is None:
            self._linux_vni(network)
            if not self._linux_leads(start) or not _same_router(network, self._node_of(machine)):
                raise Lost("the Linux nodes send this node's pods elsewhere")
            _lets_vxlan(machine, self._node_address(there))
            return Arrival(there, port, start.address)
        other, its_endpoint = _both(there)
        its_network = other.hns.networks[its_endpoint["VirtualNetwork"]]
        _provider(other, its_endpoint)  # its answers are wrapped as well
        self._tunnel(other, its_network, start)
        _fits(other, size)
        if _vni(network) != _vni(its_network):
            raise Lost("the networks have different VNIs")
        return _arrive(there, start.address, port, protocol)

    def _in_pods(self, there: End) -> bool:
        """Whether an end is a pod, or represents one on a Linux node."""
        return there.kind == "pod" or (there.kind == "linux" and there.address != self._node_address(there))

    def _tunnel(self, machine: Computer, network: Json, there: End) -> None:
        """Whether a machine's overlay sends a pod's packets to its node, and lets that node's in."""
        node = self._node_address(there)
        if str(network["Name"]) == "Calico":
            hop = node if self._felix(machine) else ""
        else:
            hop = next(
                (
                    str(one.get("ProviderAddress"))
                    for one in network["Policies"]
                    if one.get("Type") == "RemoteSubnetRoute"
                    and _within(there.address, one["DestinationPrefix"])
                ),
                "",
            )
        if hop != node:
            raise Lost(f"the overlay of {machine.name} sends {there.address} to {hop or 'nobody'}")
        if not machine.network.reaches(node):
            raise Lost("no route between the nodes")
        _lets_vxlan(machine, node)

    def _felix(self, machine: Computer) -> bool:
        """Whether something keeps Calico's routes: its own program, or the HostProcess pod of its operator."""
        if machine.processes.named("calico-node"):
            return True
        return any(cluster.plan.calico for cluster in self._clusters())

    def _linux_vni(self, network: Json) -> None:
        """flanneld of a Linux node takes the VNI from the cluster's net-conf.json."""
        backends = [cluster.plan.flannel for cluster in self._clusters() if cluster.plan.flannel]
        if any(int(one["VNI"]) != _vni(network) for one in backends if "VNI" in one):
            raise Lost("the Linux nodes have another VNI")

    def _node_of(self, machine: Computer) -> dict[str, Any]:
        address = machine.network.lan.address
        return next((one for one in self._objects(NODES) if _address_of(one) == address), {})

    # ---- from a machine itself -------------------------------------------------------------------------

    def _from_host(self, start: End, address: str, port: int, protocol: Protocol, size: int) -> Arrival:
        machine = start.machine
        assert machine is not None
        if self._is_service(address):
            raise Lost("a node does not reach the addresses of services")
        there = self.find(address)
        if there.machine is machine and there.kind == "pod":
            if not machine.hns.host_reaches(address) or not _host_on_bridge(machine, there):
                raise Lost("the host does not reach its own pods")
            return _arrive(there, start.address, port, protocol)
        if there.kind == "outside":
            return self._host_outside(machine, there, start.address, port)
        flat = self._flat(there)
        if self._in_pods(there) and not flat and self._overlaid(machine):
            raise Lost("a node reaches no pod of another node through an overlay")
        self._leads(machine, there, flat=flat)
        _fits(machine, size)
        return self._enter(there, start.address, port, protocol, size, flat=flat)

    def _flat(self, there: End) -> bool:
        """Whether a pod's address is one of the nodes' own network."""
        if there.machine is None or there.endpoint is None:
            return there.address == self._node_address(there)
        network = there.machine.hns.networks[there.endpoint["VirtualNetwork"]]
        return _in_subnets(network, there.machine.network.lan.address)

    def _overlaid(self, machine: Computer) -> bool:
        return any(one["Type"] == "Overlay" for one in machine.hns.networks.values())

    def _knock(self, there: End, source: str, port: int, protocol: Protocol) -> Arrival:
        """At a machine's own address: a NodePort, else a program that listens."""
        machine = there.machine
        assert machine is not None
        policy = _node_port(machine, port, protocol)
        if policy is None:
            return _at_host(there, source, port, protocol)
        if not machine.firewall.lets_in(protocol.upper(), port, source):
            raise Lost(f"the firewall of {machine.name} keeps port {port}")
        backend, inner = self._backend(machine, policy)
        local = self.pod(machine, backend)
        if local is not None:
            return _arrive(local, source, inner, protocol)
        # Any pod of this node would take the same way to the backend.
        network = next((one for one in machine.hns.networks.values() if self._carries_pods(one)), None)
        if network is None:
            raise Lost("no network")
        _source_vip(machine, network, policy, backend)
        return self._from_host(
            End("host", machine.network.lan.address, machine), backend, inner, protocol, 64
        )

    def _carries_pods(self, network: Json) -> bool:
        return not str(network["Name"]).lower().startswith("ext")

    # ---- from a Linux node -----------------------------------------------------------------------------

    def _from_linux(self, start: End, address: str, port: int, protocol: Protocol, size: int) -> Arrival:
        if self._is_service(address):
            address, port = self._translated(address, port)
        there = self.find(address)
        if there.machine is None:
            return Arrival(there, port, start.address)
        if there.kind == "host":
            return self._enter(there, self._node_address(start), port, protocol, size, flat=True)
        machine, endpoint = _both(there)
        network = machine.hns.networks[endpoint["VirtualNetwork"]]
        if not self._flat(there) and not self._linux_leads(there):
            raise Lost("the Linux nodes send this pod's packets elsewhere")
        if network["Type"] == "Overlay":
            if not _same_router(network, self._node_of(machine)):
                raise Lost("the Linux nodes send to another MAC address")
            _provider(machine, endpoint)
            self._linux_vni(network)
            self._tunnel(machine, network, start)
            _fits(machine, size)
            return _arrive(there, start.address, port, protocol)
        if not self._flat(there):
            self._leads(machine, start, flat=False)
        return self._enter(there, start.address, port, protocol, size, flat=self._flat(there))

    def _translated(self, address: str, port: int) -> tuple[str, int]:
        """What a well-kept kube-proxy makes of a service's address."""
        backends = dict(self._slices())
        for service in self._objects(SERVICES):
            spec = service["spec"]
            for one in spec.get("ports") or []:
                if spec.get("clusterIP") == address and int(one["port"]) == port:
                    name = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
                    if backends.get(name):
                        return backends[name][0], int(one.get("targetPort") or port)
        raise Closed


def _both(end: End) -> tuple[Computer, Json]:
    assert end.machine is not None and end.endpoint is not None
    return end.machine, end.endpoint


def _address_of(node: Mapping[str, Any]) -> str:
    addresses = (node.get("status") or {}).get("addresses") or []
    return next((str(one["address"]) for one in addresses if one["type"] == "InternalIP"), "")


def _policies(endpoint: Json, kind: str) -> Iterator[Json]:
    """An endpoint's policies of a kind, in the form of either version: with Settings, or all in one."""
    for one in endpoint["Policies"]:
        if str(one.get("Type", "")).lower() == kind.lower():
            yield one.get("Settings") or one


def _hidden(endpoint: Json, address: str) -> bool:
    """Whether a pod's packets to an address carry the address of its node: an OutBoundNAT without an exception for it."""
    rules = [
        one
        for one in _policies(endpoint, "OutBoundNAT")
        if not one.get("VirtualIP") and not one.get("Destinations")
    ]
    exceptions = [e for one in rules for e in one.get("Exceptions") or one.get("ExceptionList") or []]
    return bool(rules) and not any(_within(address, str(e)) for e in exceptions)


def _routed(endpoint: Json, address: str) -> bool:
    """Whether a route policy of the endpoint leads an address through the host's stack."""
    routes = [*_policies(endpoint, "SDNRoute"), *_policies(endpoint, "ROUTE")]
    return any(_within(address, str(one["DestinationPrefix"])) for one in routes)


def _filtered(endpoint: Json, way: str, address: str, port: int, protocol: Protocol) -> None:
    """The access list of an endpoint: the rule of the lowest number that fits decides."""
    rules = [one for one in _policies(endpoint, "ACL") if str(one.get("Direction")) == way]
    rules.sort(key=lambda one: int(one.get("Priority", 65500)))
    for one in rules:
        ports = str(one.get("RemotePorts" if way == "Out" else "LocalPorts") or "")
        addresses = str(one.get("RemoteAddresses") or "")
        if str(one.get("Protocols") or "") not in ("", "256", str(_NUMBERS[protocol])):
            continue
        if ports and str(port) not in ports.split(","):
            continue
        if addresses and not any(_within(address, each) for each in addresses.split(",")):
            continue
        if str(one.get("Action")) == "Block":
            raise Lost("an access list of the endpoint")
        return


def _balancer(machine: Computer, address: str, port: int, protocol: Protocol) -> Json | None:
    """The load balancer for a service's address, its policy and references in one."""
    return _policy_list(machine, lambda one: address in (one.get("VIPs") or ()), port, protocol)


def _node_port(machine: Computer, port: int, protocol: Protocol) -> Json | None:
    return _policy_list(machine, lambda one: not any(one.get("VIPs") or ()), port, protocol)


def _policy_list(
    machine: Computer, fits: Callable[[Json], bool], port: int, protocol: Protocol
) -> Json | None:
    for one in list(machine.hns.policy_lists.values()):
        policy = (one["Policies"] or [{}])[0]
        same = (
            int(policy.get("ExternalPort", 0)) == port
            and int(policy.get("Protocol", 6)) == _NUMBERS[protocol]
        )
        if same and fits(policy):
            return {"IsDSR": False, **policy, "References": one["References"]}
    return None


def _source_vip(machine: Computer, network: Json, policy: Json, backend: str) -> None:
    """On an overlay the load balancer sends to other nodes from an address that must be this node's, and no pod's."""
    if network["Type"] != "Overlay" or any(
        one["IPAddress"] == backend and not one["IsRemoteEndpoint"] for one in machine.hns.endpoints.values()
    ):
        return
    source = str(policy.get("SourceVIP") or "")
    taken = any(one["IPAddress"] == source and _is_a_pods(one) for one in machine.hns.endpoints.values())
    # For what lies outside the pods' networks kube-proxy names the node's own address (proxier.go, containsPublicIP).
    own = source == machine.network.lan.address
    if not source or not (own or _in_subnets(network, source)) or taken:
        raise Lost(f"answers to the source address {source or 'none'} do not come back to this node")


def _in_subnets(network: Json, address: str) -> bool:
    return any(_within(address, one["AddressPrefix"]) for one in network["Subnets"])


def _spoofing(machine: Computer) -> None:
    """A hypervisor that lets no other MAC address through keeps all packets of pods on a bridge."""
    hardware = machine.hardware
    if hardware.hypervisor not in ("none", "aws", "azure") and not hardware.mac_spoofing:
        raise Lost(f"the hypervisor's port of {machine.name} lets no packet of a pod through")


def _host_endpoint(machine: Computer, endpoint: Json) -> None:
    """The gateway of pods on a bridge is the host's own endpoint: attached, and forwarding, as the adapter beyond it."""
    gateway = str(endpoint["GatewayAddress"])
    own = machine.network.holder(gateway) if gateway else None
    uplink = machine.network.management()
    if own is None or not own.up:
        raise Lost(f"the gateway {gateway or 'of the pod'} is no address of {machine.name}")
    if not own.forwarding or uplink is None or not uplink.forwarding:
        raise Lost(f"{machine.name} does not forward")


def _host_on_bridge(machine: Computer, there: End) -> bool:
    """Whether the host itself is on the bridge of a pod: by its own endpoint, or in the same network."""
    _, endpoint = _both(there)
    network = machine.hns.networks[endpoint["VirtualNetwork"]]
    if network["Type"] == "Overlay" or _in_subnets(network, machine.network.lan.address):
        return True
    own = machine.network.holder(str(endpoint["GatewayAddress"]))
    return own is not None and own.up


def _next_hop(machine: Computer, address: str) -> str:
    """Where a machine's routes send an address; empty where nowhere."""
    usable = []
    for route in machine.network.all_routes():
        adapter = machine.network.by_index(route.interface)
        net = _net(route.prefix)
        target = ipaddress.ip_address(address)
        if adapter is not None and adapter.up and net.version == target.version and target in net:
            usable.append((-net.prefixlen, route.metric, route.next_hop))
    return min(usable)[2] if usable else ""


def _fits(machine: Computer, size: int) -> None:
    """Whether packets pass the machine's adapter: what is larger than its MTU is dropped without a report. More data than
    fits into one packet makes full ones; an overlay's pods have an MTU that leaves room for the wrapping (flannel: 1450)."""
    uplink = _uplink(machine)
    if size > LARGE and uplink is not None and uplink.mtu < LARGE:
        raise Lost(f"a large packet does not fit through {uplink.name} of {machine.name}")


def _uplink(machine: Computer) -> Adapter | None:
    return machine.network.management()


def _provider(machine: Computer, endpoint: Json) -> None:
    for one in _policies(endpoint, "ProviderAddress"):
        address = str(one.get("ProviderAddress", ""))
        if address and machine.network.holder(address) is None:
            raise Lost(f"the provider address {address} is no address of {machine.name}")


def _lets_vxlan(machine: Computer, source: str) -> None:
    if not machine.firewall.lets_in("UDP", VXLAN, source):
        raise Lost(f"the firewall of {machine.name} keeps VXLAN out")


def _vni(network: Json) -> int:
    for subnet in network["Subnets"]:
        for one in subnet.get("Policies") or []:
            if one.get("Type") == "VSID":
                return int(one["VSID"])
    return 0


def _same_router(network: Json, node: Mapping[str, Any]) -> bool:
    """Whether the Node shows the MAC address that the overlay listens to; without flannel no node reads it."""
    told = ((node.get("metadata") or {}).get("annotations") or {}).get(f"{_FLANNEL}/backend-data")
    if not told:
        return True
    mac = str((json.loads(told) or {}).get("VtepMAC", "")).lower()
    own = next((str(p["Address"]) for p in network["Policies"] if p.get("Type") == "DrMacAddress"), "")
    return mac == own.lower().replace("-", ":")


def _arrive(there: End, source: str, port: int, protocol: Protocol) -> Arrival:
    _, endpoint = _both(there)
    _filtered(endpoint, "In", source, port, protocol)
    return Arrival(there, port, source)


def _at_host(there: End, source: str, port: int, protocol: Protocol) -> Arrival:
    machine = there.machine
    assert machine is not None
    if not machine.firewall.lets_in(protocol.upper(), port, source):
        raise Lost(f"the firewall of {machine.name} keeps port {port}")
    if not any(
        one.protocol == protocol and one.takes(there.address, port) for one in machine.sockets.listeners
    ):
        raise Closed
    return Arrival(there, port, source)


def _is_a_pods(endpoint: Json) -> bool:
    """In a sandbox's namespace, or shared by containers of Docker."""
    return bool((endpoint.get("Namespace") or {}).get("ID") or endpoint["SharedContainers"])
