"""flanneld.exe: takes its lease from the Node, makes the HNS network, writes subnet.env, and keeps the routes.

It is no Windows service: started by the control manager itself it ends in error 1053. Waiting is done in seconds of
the lab, one step a tick, because making the network takes the machine off the wire for a moment.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import NODES
from winboot_lab.programs import cni, hcn
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.goflags import Flags, goflags
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.network import Adapter, Route
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer
from winboot_lab.windows.sockets import Response

PREFIX: Final = "flannel.alpha.coreos.com"
STRATEGIC: Final = "application/strategic-merge-patch+json"
MANAGEMENT_S: Final = 5.0
INTERFACE_S: Final = {"host-gw": 5.0, "vxlan": 45.0}
ATTACH_S: Final = 5.0
# encapOverhead of vxlan_network_windows.go.
ENCAPSULATION: Final = 50
ROUTES_S: Final = 10.0
RETRY_S: Final = 5.0
SYNC_LIMIT_S: Final = 600.0
_FLAGS: Final = {
    "kube-subnet-mgr": "bool",
    "kubeconfig-file": "text",
    "kube-api-url": "text",
    "kube-annotation-prefix": "text",
    "iface": "text",
    "iface-regex": "text",
    "iface-can-reach": "text",
    "ip-masq": "bool",
    "iptables-forward-rules": "bool",
    "net-config-path": "text",
    "subnet-file": "text",
    "public-ip": "text",
    "public-ipv6": "text",
    "healthz-ip": "text",
    "healthz-port": "text",
    "set-node-network-unavailable": "bool",
    "subnet-lease-renew-margin": "text",
    "version": "bool",
    "v": "text",
    "vmodule": "text",
    "logtostderr": "bool",
}
# Its usage function ends it, with the code of success (main.go, usage).
USAGE: Final = "Usage: flanneld.exe [OPTION]..."
Phase = Literal["nodes", "lease", "management", "interface", "attach", "running"]


class FlanneldProgram:
    """The program."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Never: there is no code for the control manager in it."""
        return False

    def serve(self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]) -> Flanneld:
        """A running flanneld."""
        return Flanneld(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """`--version`."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = goflags(argv[1:], _FLAGS)
        except GoError as e:
            return Exit(0, b"", go_text(str(e), USAGE))
        if flags.flag("version"):
            return Exit(0, b"", go_text(f"v{run.version}"))
        raise run.refuse("in the foreground")


class Backend:
    """What net-conf.json asks for, checked as flanneld on Windows checks it."""

    def __init__(self, raw: bytes) -> None:
        data = cni.decode_json(raw, "error parsing subnet config")
        backend = data.get("Backend") or {}
        self.network = str(data.get("Network", ""))
        self.type = str(backend.get("Type", "udp"))
        self.vni = int(backend.get("VNI", 4096))
        self.port = int(backend.get("Port", 4789))
        default = "cbr0" if self.type == "host-gw" else f"flannel.{self.vni}"
        self.name = str(backend.get("Name") or default)
        self.dns = str(backend.get("DNSServerList", ""))
        if not self.network:
            raise GoError("error parsing subnet config: invalid Network")
        if self.type not in ("host-gw", "vxlan"):
            raise GoError(f"unknown backend type {self.type}")
        if self.type == "vxlan":
            self._check_vxlan(backend)

    def _check_vxlan(self, backend: Mapping[str, Any]) -> None:
        if self.vni < 4096:
            raise GoError(
                f"invalid VXLAN configuration: VNI {self.vni} must be greater than or equal to 4096"
            )
        if self.port != 4789:
            raise GoError(f"invalid VXLAN configuration: port {self.port}, Windows supports 4789 only")
        for name in ("DirectRouting", "GBP"):
            if backend.get(name):
                raise GoError(f"{name} is not supported on Windows")


class Flanneld(Daemon):
    """A running flanneld."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._flags = Flags()
        self._phase: Phase = "nodes"
        self._next = 0.0
        self._limit = self.machine.time.seconds + SYNC_LIMIT_S
        self._seen: tuple[int, ...] = ()
        self._others: list[tuple[str, str]] = []
        self._link: Adapter | None = None
        self._mtu = 0
        self._endpoint = ""
        # The network's id, and the machine's address as the network has it.
        self._network, self._management = "", ""
        self._host_route = False

    # Start

    def on_start(self) -> Died | None:
        """Read flags, configuration and kubeconfig, and find the interface."""
        try:
            self._flags = goflags(self.run.argv[1:], _FLAGS)
        except GoError as e:
            for line in (str(e), USAGE):
                self.sink(line)
            return Died(0)
        try:
            self._prepare()
        except GoError as e:
            return self.fatal(str(e))
        return None

    def _option(self, name: str, default: str = "") -> str:
        variable = "FLANNELD_" + name.upper().replace("-", "_")
        return self._flags.text(name) or self.run.env.get(variable, default)

    def _prepare(self) -> None:
        failed = "Failed to create SubnetManager"
        if self._option("kube-subnet-mgr", "false").lower() not in ("1", "true"):
            raise self.run.refuse("with etcd (--kube-subnet-mgr is off)")
        self.node = self.run.env.get("NODE_NAME", "")
        if not self.node:
            raise GoError(f"{failed}: env variables POD_NAME and POD_NAMESPACE must be set")
        try:
            config = load_kubeconfig(self.run, self._option("kubeconfig-file"))
            self.client = KubeClient(self.run, self._outside, config)
        except GoError as e:
            raise GoError(f"{failed}: fail to create kubernetes config: {e}") from None
        path = self._option("net-config-path", "/etc/kube-flannel/net-conf.json")
        try:
            self.backend = Backend(self.run.read(path))
        except GoError as e:
            raise GoError(f"{failed}: failed to read net conf: {e}") from None
        self.public_ip = self._interface_address()
        port = self._option("healthz-port", "0")
        if port != "0":
            self._listen(int(port))

    def _interface_address(self) -> str:
        wanted = self._option("iface")
        net = self.machine.network
        adapter = net.holder(wanted) if wanted[:1].isdigit() else net.adapter(wanted)
        if not wanted:
            adapter = net.default_adapter()
        if adapter is None or not adapter.ipv4:
            raise GoError(f"Failed to find any valid interface to use: failed to find interface {wanted}")
        address = wanted if wanted[:1].isdigit() else adapter.ipv4[0].ip
        self._mtu = adapter.mtu - (ENCAPSULATION if self.backend.type == "vxlan" else 0)
        public = self._option("public-ip")
        if public and public != address and self.backend.type == "host-gw":
            why = "meaning that probably you're on a NAT, which is not supported by host-gw backend"
            raise GoError(f"Error registering network: your PublicIP differs from interface IP, {why}")
        return public or address

    def _listen(self, port: int) -> None:
        try:
            self.machine.sockets.listen(
                self.process, port, handler=lambda request: Response(200, b"flanneld is running")
            )
        except Failure as e:
            raise GoError(f"Start healthz server error. listen tcp :{port}: {e.problem.message}") from None

    # Each second

    def on_tick(self) -> Died | None:
        """One step further."""
        if self.machine.time.seconds < self._next:
            return None
        try:
            match self._phase:
                case "nodes":
                    self._sync_nodes()
                case "lease":
                    self._register()
                case "management":
                    self._await_management()
                case "interface":
                    self._await_interface()
                case "attach":
                    self._attach()
                case "running":
                    self._keep_up()
        except GoError as e:
            return self.fatal(f"Error registering network: {e}")
        return None

    def _later(self, seconds: float) -> None:
        self._next = self.machine.time.seconds + seconds

    def _sync_nodes(self) -> None:
        """The subnet manager lists all nodes first; without the right it waits ten minutes, then gives up."""
        try:
            self.client.ask("GET", "/api/v1/nodes")
        except (GoError, ApiFailure) as e:
            problem = e.message if isinstance(e, ApiFailure) else str(e)
            self.klog(f"Failed to watch *v1.Node: failed to list *v1.Node: {problem}", "E", "reflector.go:1")
            if self.machine.time.seconds > self._limit:
                raise GoError(
                    "error waiting for nodeController to sync state: timed out waiting for the condition"
                ) from None
            self._later(RETRY_S)
            return
        self._phase = "lease"

    def _register(self) -> None:
        subnet = self._acquire_lease(vtep=None if self.backend.type == "vxlan" else "")
        self.subnet = subnet
        if self.backend.type == "host-gw":
            self._ensure_bridge(subnet)
        else:
            self._ensure_overlay(subnet)
        self._phase = "management"
        self._limit = self.machine.time.seconds + MANAGEMENT_S

    def _acquire_lease(self, vtep: str | None) -> ipaddress.IPv4Network:
        """Write our annotations on the Node; its pod CIDR is the lease."""
        try:
            node = self.client.ask("GET", f"/api/v1/nodes/{self.node}")
        except ApiFailure as e:
            raise GoError(f"failed to acquire lease: {e.message}") from None
        cidr = node["spec"].get("podCIDR")
        if not cidr:
            raise GoError(f'failed to acquire lease: node "{self.node}" pod cidr not assigned')
        prefix = self._option("kube-annotation-prefix", PREFIX)
        wanted = {
            f"{prefix}/backend-type": self.backend.type,
            f"{prefix}/backend-data": self._backend_data(vtep),
            f"{prefix}/public-ip": self.public_ip,
            f"{prefix}/kube-subnet-manager": "true",
        }
        have = node["metadata"].get("annotations") or {}
        if any(have.get(k) != v for k, v in wanted.items()):
            path = f"/api/v1/nodes/{self.node}/status"
            try:
                self.client.ask("PATCH", path, {"metadata": {"annotations": wanted}}, content_type=STRATEGIC)
            except ApiFailure as e:
                raise GoError(f"failed to acquire lease: {e.message}") from None
        return ipaddress.IPv4Network(cidr)

    def _backend_data(self, vtep: str | None) -> str:
        if self.backend.type == "host-gw":
            return "null"
        data: dict[str, Any] = {"VNI": self.backend.vni}
        return json.dumps({**data, "VtepMAC": vtep} if vtep else data, separators=(",", ":"))

    # The HNS network

    def _ensure_bridge(self, subnet: ipaddress.IPv4Network) -> None:
        """Keep a network with this subnet, of whatever type; replace one that has none of it."""
        wanted = {"AddressPrefix": str(subnet), "GatewayAddress": str(subnet[1])}
        found = hcn.network(self.machine, self.backend.name)
        for one in (found or {}).get("Subnets") or []:
            if {key: one.get(key) for key in wanted} == wanted:
                self.klog(f"Found existing HNSNetwork {self.backend.name}")
                assert found is not None  # it has a subnet
                self._network, self._management = str(found["ID"]), str(found["ManagementIP"])
                return
        if found is not None:
            hcn.call(self.machine, "DELETE", f"/networks/{found['ID']}")
            self.klog(f"Deleted stale HNSNetwork {self.backend.name}")
        request: dict[str, Any] = {"Name": self.backend.name, "Type": "L2Bridge", "Subnets": [wanted]}
        if self.backend.dns:
            request["DNSServerList"] = self.backend.dns
        self.klog(f"Attempting to create HNSNetwork {json.dumps(request, separators=(',', ':'))}")
        try:
            self._network = str(hcn.call(self.machine, "POST", "/networks/", request)["ID"])
        except GoError as e:
            raise GoError(f"failed to create HNSNetwork {self.backend.name}: {e}") from None
        self.klog(f"Waiting to get ManagementIP from HNSNetwork {self.backend.name}")

    def _ensure_overlay(self, subnet: ipaddress.IPv4Network) -> None:
        """Keep an overlay whose first subnet this is; replace whatever else has its name."""
        found = self._second_version()
        first = found["Ipams"][0]["Subnets"][0]["IpAddressPrefix"] if found is not None else ""
        if found is not None and (found["Type"], first) == ("Overlay", str(subnet)):
            self.klog(f"Found existing HostComputeNetwork {self.backend.name}")
            self._management = _setting(found, "ProviderAddress", "ProviderAddress")
        else:
            if found is not None:
                hcn.delete(self.machine, "Network", str(found["ID"]))
                self.klog(f"Deleted stale HostComputeNetwork {self.backend.name}")
            found = self._make_overlay(subnet)
        self._network = str(found["ID"])
        self._host_route = any(one["Type"] == "HostRoute" for one in found["Policies"])

    def _add_host_route(self) -> None:
        if self._host_route:
            return
        try:
            hcn.add_host_route(self.machine, self._network)
        except GoError:
            self.klog(
                "Could not apply HostRoute policy for local host to local pod connectivity. This policy requires "
                "Windows 18321.1000.19h1_release.190117-1502 or newer"
            )

    def _second_version(self) -> dict[str, Any] | None:
        return next(iter(hcn.find(self.machine, "Network", Name=self.backend.name)), None)

    def _make_overlay(self, subnet: ipaddress.IPv4Network) -> dict[str, Any]:
        holder = self.machine.network.holder(self.public_ip)
        # The interface as it is called, also that of a switch (vxlan_windows.go: interfaceName, since 761c2578).
        adapter = {"NetworkAdapterName": holder.name if holder is not None else ""}
        route = {"NextHop": str(subnet[1]), "DestinationPrefix": "0.0.0.0/0"}
        vsid = {"Type": "VSID", "Settings": {"IsolationId": self.backend.vni}}
        ipam = {"IpAddressPrefix": str(subnet), "Policies": [vsid], "Routes": [route]}
        request = {
            "Name": self.backend.name,
            "Type": "Overlay",
            "Policies": [{"Type": "NetAdapterName", "Settings": adapter}],
            "MacPool": {},
            "Dns": {},
            "Ipams": [{"Type": "Static", "Subnets": [ipam]}],
            "Flags": 8,  # EnableNonPersistent: the network is gone after a reboot
            "Health": {"Extra": {}},
            **hcn.SCHEMA,
        }
        self.klog(f"Attempting to create HostComputeNetwork {self.backend.name}")
        try:
            return hcn.create(self.machine, "Network", request)
        except GoError as e:
            raise GoError(f"failed to create HostComputeNetwork {self.backend.name}: {e}") from None

    def _await_management(self) -> None:
        """A new network learns the machine's address after it is made: asked by its id until then."""
        self._management = self._management or self._asked_address()
        if self._management:
            self._phase = "interface"
            self._limit = self.machine.time.seconds + INTERFACE_S[self.backend.type]
        elif self.machine.time.seconds >= self._limit:
            what = "HNSNetwork" if self.backend.type == "host-gw" else "HostComputeNetwork"
            raise GoError(f"timeout, failed to get management IP from {what} {self.backend.name}")

    def _asked_address(self) -> str:
        if self.backend.type == "host-gw":
            return str(hcn.call(self.machine, "GET", f"/networks/{self._network}").get("ManagementIP", ""))
        found = hcn.find(self.machine, "Network", ID=self._network)
        return _setting(found[0], "ProviderAddress", "ProviderAddress") if found else ""

    def _await_interface(self) -> None:
        address = self._management
        adapter = self.machine.network.holder(address)
        if adapter is None:
            if self.machine.time.seconds >= self._limit:
                raise GoError(
                    f"timed out waiting to get net interface for HNSNetwork {self.backend.name} ({address})"
                )
            return
        self._link = adapter
        if self.backend.type == "host-gw":
            self._ensure_endpoint()
            self._phase, self._limit = "attach", self.machine.time.seconds + ATTACH_S
            return
        self._add_host_route()
        self._publish_mac()
        self._write_subnet_env()
        self._phase = "running"

    def _ensure_endpoint(self) -> None:
        """The host's own endpoint on the bridge, with the second address of the subnet."""
        name, address = f"{self.backend.name}_ep", str(self.subnet[2])
        found = hcn.endpoint(self.machine, name)
        if found is not None and found.get("IPAddress") != address:
            hcn.call(self.machine, "DELETE", f"/endpoints/{found['ID']}")
            found = None
        if found is None:
            # No gateway: HNS takes the subnet's (expectedBridgeEndpoint in v0.27.4 hostgw_windows.go).
            request = {"Name": name, "VirtualNetwork": self._network, "IPAddress": address}
            found = hcn.call(self.machine, "POST", "/endpoints/", request)
        self._endpoint = str(found["ID"])

    def _attach(self) -> None:
        """Attach the endpoint to the host, which HNS may refuse for a while, and forward on both sides."""
        try:
            body = {"SystemType": "Host", "CompartmentId": 1}
            hcn.call(self.machine, "POST", f"/endpoints/{self._endpoint}/attach", body)
        except GoError as e:
            if "This endpoint is already attached to the switch." not in str(e):
                if self.machine.time.seconds < self._limit:
                    return
                name = f"{self.backend.name}_ep"
                raise GoError(
                    f"failed to hot attach bridge HNSEndpoint {name} to host compartment: {e}"
                ) from None
        own = self.machine.network.holder(str(self.subnet[2]))
        if own is None:
            raise GoError(
                f"failed to find interface for IP Address {self.subnet[2]}: no interface with given IP found"
            )
        for one in (self._link, own):
            if one is not None:
                one.forwarding = True
        self._write_subnet_env()
        self._phase = "running"

    def _publish_mac(self) -> None:
        network = self._second_version()
        if network is None:
            raise GoError(f"failed to get HNS network: Network name {self.backend.name!r} not found")
        self._acquire_lease(_setting(network, "DrMacAddress", "Address").lower().replace("-", ":"))

    def _write_subnet_env(self) -> None:
        masquerade = "true" if self._option("ip-masq", "false").lower() in ("1", "true") else "false"
        lines = {
            "FLANNEL_NETWORK": self.backend.network,
            "FLANNEL_SUBNET": f"{self.subnet[1]}/{self.subnet.prefixlen}",
            "FLANNEL_MTU": str(self._mtu),
            "FLANNEL_IPMASQ": masquerade,
        }
        path = self._option("subnet-file", "/run/flannel/subnet.env")
        self.run.write(path, go_text(*(f"{k}={v}" for k, v in lines.items())))
        self.klog(f"Wrote subnet file to {path}")

    # Running

    def _keep_up(self) -> None:
        """Follow the other nodes; an API that is away for a while changes nothing."""
        self._later(ROUTES_S)
        try:
            seen = self.client.latest(NODES)
            if seen == self._seen and self._routed():
                return
            nodes = self.client.ask("GET", "/api/v1/nodes")["items"]
        except (GoError, ApiFailure) as e:
            self.klog(f"Failed to watch *v1.Node: {e}", "E", "reflector.go:1")
            return
        others: list[tuple[str, str]] = []
        routers: dict[str, str] = {}
        for node in nodes:
            annotations = node["metadata"].get("annotations") or {}
            if node["metadata"]["name"] == self.node or not node["spec"].get("podCIDR"):
                continue
            kind = annotations.get(f"{PREFIX}/backend-type")
            if kind != self.backend.type:
                if kind:
                    self.klog(f"Ignoring non-{self.backend.type} subnet: type={kind}", "W")
                continue
            others.append((node["spec"]["podCIDR"], annotations[f"{PREFIX}/public-ip"]))
            data = json.loads(annotations.get(f"{PREFIX}/backend-data") or "null") or {}
            routers[node["spec"]["podCIDR"]] = str(data.get("VtepMAC", ""))
        if self.backend.type == "host-gw":
            self._set_routes(others)
        else:
            self._set_remote_subnets(others, routers)
        self._seen, self._others = seen, others

    def _routed(self) -> bool:
        """Whether every route is still there; a person or a bouncing adapter may have taken some away."""
        if self.backend.type != "host-gw":
            return True
        routes = {(r.prefix, r.next_hop) for r in self.machine.network.routes}
        return all(other in routes for other in self._others)

    def _set_routes(self, others: list[tuple[str, str]]) -> None:
        # The interface it found when it started: one that appears later in its place is never looked for.
        net, adapter = self.machine.network, self._link
        if adapter not in net.adapters:
            self.klog("Error adding route: Element not found.", "E", "route_network_windows.go:1")
            return
        assert adapter is not None  # None is on no machine
        wanted = dict(others)
        pods = ipaddress.IPv4Network(self.backend.network)
        for route in [r for r in net.routes if r.interface == adapter.index and _inside(r.prefix, pods)]:
            if wanted.get(route.prefix) == route.next_hop:
                del wanted[route.prefix]
            else:
                net.remove_route(route)
        for prefix, hop in wanted.items():
            # New-NetRoute as it stands: kept over a restart.
            net.add_route(Route(prefix, hop, adapter.index))

    def _set_remote_subnets(self, others: list[tuple[str, str]], routers: Mapping[str, str]) -> None:
        """A remote subnet for each node that has reported the MAC address of its router (handleSubnetEvents)."""
        network = self._second_version()
        if network is None:
            self.klog(f"Unable to find network {self.backend.name}", "E", "vxlan_network_windows.go:1")
            return
        wanted = [
            self._remote_subnet(prefix, hop, routers[prefix]) for prefix, hop in others if routers[prefix]
        ]
        there = [one for one in network["Policies"] if one["Type"] == "RemoteSubnetRoute"]
        for how, policies in (
            ("Remove", [one for one in there if one not in wanted]),
            ("Add", [one for one in wanted if one not in there]),
        ):
            for policy in policies:
                hcn.modify(self.machine, str(network["ID"]), how, policy)

    def _remote_subnet(self, prefix: str, hop: str, router: str) -> dict[str, Any]:
        settings = {
            "DestinationPrefix": prefix,
            "IsolationId": self.backend.vni,
            "ProviderAddress": hop,
            "DistributedRouterMacAddress": router,
        }
        return {"Type": "RemoteSubnetRoute", "Settings": settings}


def _setting(network: Mapping[str, Any], policy: str, name: str) -> str:
    """A setting of the first policy of a type; empty where it has no such policy."""
    return next((str(one["Settings"][name]) for one in network["Policies"] if one["Type"] == policy), "")


def _inside(prefix: str, network: ipaddress.IPv4Network) -> bool:
    found = ipaddress.ip_network(prefix)
    return isinstance(found, ipaddress.IPv4Network) and found.subnet_of(network)
