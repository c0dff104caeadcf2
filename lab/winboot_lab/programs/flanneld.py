"""flanneld.exe: takes its lease from the Node, makes the HNS network, writes subnet.env, and keeps the routes.

It is no Windows service: started by the control manager itself it ends in error 1053. Waiting is done in seconds of
the lab, one step a tick, because making the network takes the machine off the wire for a moment.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import NODES
from winboot_lab.programs import cni, hcn
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.goflags import Flags, goflags
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.network import Adapter, Route
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.sockets import Response

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.processes import Process

PREFIX: Final = "flannel.alpha.coreos.com"
STRATEGIC: Final = "application/strategic-merge-patch+json"
MANAGEMENT_S: Final = 5.0
INTERFACE_S: Final = {"host-gw": 5.0, "vxlan": 45.0}
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
Phase = Literal["nodes", "lease", "management", "interface", "running"]


class FlanneldProgram:
    """The program."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Never: there is no code for the control manager in it."""
        return False

    def serve(self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str]) -> Flanneld:
        """A running flanneld."""
        return Flanneld(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """`--version`."""
        run = Run(machine, process, argv, env, stdin)
        try:
            flags = goflags(argv[1:], _FLAGS)
        except GoError as e:
            return Exit(2, b"", go_text(str(e)))
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

    @property
    def mtu(self) -> int:
        return 1500 if self.type == "host-gw" else 1450


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

    # Start

    def on_start(self) -> Died | None:
        """Read flags, configuration and kubeconfig, and find the interface."""
        try:
            self._flags = goflags(self.run.argv[1:], _FLAGS)
        except GoError as e:
            self.klog(str(e), "E")
            return Died(2)
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

    def _matches(self, network: Mapping[str, Any], kind: str, subnet: ipaddress.IPv4Network) -> bool:
        first = (network.get("Subnets") or [{}])[0]
        return (
            str(network.get("Type", "")).lower() == kind.lower()
            and first.get("AddressPrefix") == str(subnet)
            and first.get("GatewayAddress") == str(subnet[1])
        )

    def _existing(self, kind: str, subnet: ipaddress.IPv4Network) -> bool:
        """Keep a network that fits; remove one that does not, with all that hangs on it."""
        found = hcn.network(self.machine, self.backend.name)
        if found is None:
            return False
        if self._matches(found, kind, subnet):
            self.klog(f"Found existing HNSNetwork {self.backend.name}")
            return True
        self.klog(f"Deleting stale HNSNetwork {self.backend.name}", "W")
        hcn.call(self.machine, "DELETE", f"/networks/{found['ID']}")
        return False

    def _ensure_bridge(self, subnet: ipaddress.IPv4Network) -> None:
        if self._existing("L2Bridge", subnet):
            return
        self.klog(f"Attempting to create HNSNetwork {self.backend.name}")
        request = {
            "Name": self.backend.name,
            "Type": "L2Bridge",
            "DNSServerList": self.backend.dns,
            "Subnets": [{"AddressPrefix": str(subnet), "GatewayAddress": str(subnet[1])}],
        }
        try:
            hcn.call(self.machine, "POST", "/networks/", request)
        except GoError as e:
            raise GoError(f"unable to create network {self.backend.name}: {e}") from None

    def _ensure_overlay(self, subnet: ipaddress.IPv4Network) -> None:
        if not self._existing("Overlay", subnet):
            self._make_overlay(subnet)
        try:
            hcn.add_host_route(self.machine, self._network()["ID"])
        except GoError:
            self.klog(
                "Could not apply HostRoute policy for local host to local pod connectivity. This policy requires "
                "Windows 18321.1000.19h1_release.190117-1502 or newer"
            )

    def _make_overlay(self, subnet: ipaddress.IPv4Network) -> None:
        holder = self.machine.network.holder(self.public_ip)
        # The interface as it is called, also that of a switch (vxlan_windows.go: interfaceName, since 761c2578).
        adapter = holder.name if holder is not None else ""
        vsid = {"Type": "VSID", "VSID": self.backend.vni}
        request = {
            "Name": self.backend.name,
            "Type": "Overlay",
            "NetworkAdapterName": adapter,
            "Flags": 8,  # EnableNonPersistent: the network is gone after a reboot
            "Subnets": [{"AddressPrefix": str(subnet), "GatewayAddress": str(subnet[1]), "Policies": [vsid]}],
        }
        try:
            hcn.call(self.machine, "POST", "/networks/", request)
        except GoError as e:
            raise GoError(f"failed to create network {self.backend.name}: {e}") from None

    def _network(self) -> dict[str, Any]:
        found = hcn.network(self.machine, self.backend.name)
        if found is None:
            raise GoError(f"network {self.backend.name} has gone")
        return found

    def _await_management(self) -> None:
        address = str(self._network().get("ManagementIP", ""))
        if address:
            self._phase = "interface"
            self._limit = self.machine.time.seconds + INTERFACE_S[self.backend.type]
        elif self.machine.time.seconds >= self._limit:
            raise GoError(
                f"timed out waiting to get net interface for HNSNetwork {self.backend.name}: no ManagementIP"
            )

    def _await_interface(self) -> None:
        address = str(self._network().get("ManagementIP", ""))
        adapter = self.machine.network.holder(address)
        if adapter is None:
            if self.machine.time.seconds >= self._limit:
                raise GoError(
                    f"timed out waiting to get net interface for HNSNetwork {self.backend.name} ({address})"
                )
            return
        self._link = adapter
        if self.backend.type == "host-gw":
            self._ensure_endpoint(adapter)
        else:
            self._publish_mac()
        self._write_subnet_env()
        self._phase = "running"

    def _ensure_endpoint(self, adapter: Adapter) -> None:
        """The host's own endpoint on the bridge, attached to the host, with forwarding on both sides."""
        name, address = f"{self.backend.name}_ep", str(self.subnet[2])
        found = hcn.endpoint(self.machine, name)
        if found is not None and found.get("IPAddress") != address:
            hcn.call(self.machine, "DELETE", f"/endpoints/{found['ID']}")
            found = None
        if found is None:
            # No gateway: HNS takes the subnet's (expectedBridgeEndpoint in v0.27.4 hostgw_windows.go).
            request = {"Name": name, "VirtualNetwork": self._network()["ID"], "IPAddress": address}
            found = hcn.call(self.machine, "POST", "/endpoints/", request)
        if self.machine.network.holder(address) is None:
            body = {"SystemType": "Host", "CompartmentId": 1}
            hcn.call(self.machine, "POST", f"/endpoints/{found['ID']}/attach", body)
        own = self.machine.network.holder(address)
        for one in (adapter, own):
            if one is not None:
                one.forwarding = True

    def _publish_mac(self) -> None:
        policies = self._network().get("Policies") or []
        mac = next((str(p["Address"]) for p in policies if p.get("Type") == "DrMacAddress"), "")
        self._acquire_lease(mac.lower().replace("-", ":"))

    def _write_subnet_env(self) -> None:
        masquerade = "true" if self._option("ip-masq", "false").lower() in ("1", "true") else "false"
        lines = {
            "FLANNEL_NETWORK": self.backend.network,
            "FLANNEL_SUBNET": f"{self.subnet[1]}/{self.subnet.prefixlen}",
            "FLANNEL_MTU": str(self.backend.mtu),
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
        if self.backend.type == "host-gw":
            self._set_routes(others)
        else:
            self._set_remote_subnets(others)
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

    def _set_remote_subnets(self, others: list[tuple[str, str]]) -> None:
        network = hcn.network(self.machine, self.backend.name)
        if network is None:
            self.klog(f"Error updating network {self.backend.name}: not found", "E", "vxlan_windows.go:1")
            return
        own = [p for p in network.get("Policies") or [] if p.get("Type") != "RemoteSubnetRoute"]
        remote = [
            {
                "Type": "RemoteSubnetRoute",
                "DestinationPrefix": prefix,
                "IsolationId": self.backend.vni,
                "ProviderAddress": hop,
            }
            for prefix, hop in others
        ]
        if network.get("Policies") != [*own, *remote]:
            hcn.call(self.machine, "POST", f"/networks/{network['ID']}", {"Policies": [*own, *remote]})


def _inside(prefix: str, network: ipaddress.IPv4Network) -> bool:
    found = ipaddress.ip_network(prefix)
    return isinstance(found, ipaddress.IPv4Network) and found.subnet_of(network)
