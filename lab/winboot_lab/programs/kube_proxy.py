"""kube-proxy.exe: waits for the HNS network, then turns services into load balancers of HNS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final

from winboot.config.compat.version import Version
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import kind_of
from winboot_lab.programs import hcn
from winboot_lab.programs import settings as reading
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.session import Computer
from winboot_lab.windows.sockets import Response

HEALTH: Final = 10256
METRICS: Final = 10249
SYNC_S: Final = 30.0
# How long it waits for the Node's address before it continues without one, and for an overlay's late settings.
NODE_S: Final = 30.0
OVERLAY_S: Final = 10.0
SERVICES: Final = kind_of("services")
SLICES: Final = kind_of("endpointslices", "discovery.k8s.io")
Key = tuple[str, int, int]  # address (empty for a NodePort), port, protocol
Backend = tuple[str, str]  # address, node (empty where it is outside the cluster)
_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"


class KubeProxyProgram:
    """The program: a service with --windows-service."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Only with its flag it answers the control manager."""
        return any(a in ("--windows-service", "--windows-service=true") for a in argv)

    def serve(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str]
    ) -> KubeProxy:
        """A running kube-proxy."""
        return KubeProxy(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """`--version`, `--help`, or its configuration written to nowhere."""
        run = Run(machine, process, argv, env, stdin)
        compat = self._outside.compat
        try:
            said = reading.answer(run, compat, "kube-proxy")
            if said is not None:
                return Exit(0, go_text(said))
            settings = reading.load(run, compat, "kube-proxy", {})
        except GoError as e:
            return Exit(1, b"", go_text(f"Error: {e}"))
        # cmd/kube-proxy/app/options.go, Run: it ends when the file is written.
        if settings.flags.text("write-config-to").upper() == "NUL":
            return Exit(0)
        raise run.refuse("in the foreground")


class KubeProxy(Daemon):
    """A running kube-proxy. `synced` is True once it has seen services and endpoints and written them to HNS."""

    def __init__(self, run: Run, outside: Outside) -> None:
        super().__init__(run)
        self._outside = outside
        self._next = 0.0
        self._found = False
        self._until = self.machine.time.seconds + NODE_S
        self._node_ip, self._mac = "", ""
        # A service without any endpoint that HNS has: it is tried again at each sync.
        self._left_out = False
        self.synced = False
        self._seen: tuple[object, ...] = ()
        # The services that it has written, and to which network. It does not look whether HNS still has them: syncProxyRules of
        # kubernetes' pkg/proxy/winkernel/proxier.go skips a service whose policyApplied is set, and forgets that only where the
        # network has another id.
        self._written: dict[Key, tuple[str, tuple[str, ...]]] = {}
        self._written_to = ""

    def on_start(self) -> Died | None:
        """Read and check the configuration; then the ports."""
        try:
            self._settings = reading.load(self.run, self._outside.compat, "kube-proxy", {})
            for warning in self._settings.warnings:
                self.klog(warning, "W", "server.go:1")
            self._check()
            self._listen()
        except GoError as e:
            return self.fatal(f'"Error running ProxyServer" err="{e}"')
        return None

    def _check(self) -> None:
        settings = self._settings
        version = Version.parse(self.run.version)
        mode = settings.get("mode") or ("kernelspace" if version.at_least("1.26") else "userspace")
        if mode != "kernelspace":
            raise GoError(f"unable to create proxier: unsupported proxy mode {mode!r}")
        kubeconfig = settings.get("clientConnection.kubeconfig") or settings.flags.text("kubeconfig")
        if not kubeconfig:
            raise GoError(
                "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
            )
        self._client = KubeClient(self.run, self._outside, load_kubeconfig(self.run, str(kubeconfig)))
        self._network_name = str(
            settings.get("winkernel.networkName") or self.run.env.get("KUBE_NETWORK", "")
        )
        if not self._network_name:
            raise GoError(
                "unable to create proxier: environment variable KUBE_NETWORK and network-flag not initialized"
            )
        self._dsr = settings.get("winkernel.enableDSR") is True
        if self._dsr and not self._gate("WinDSR", since="1.33", version=version):
            raise GoError("unable to create proxier: WinDSR feature gate not enabled")

    def _gate(self, name: str, *, since: str, version: Version) -> bool:
        given = (self._settings.get("featureGates") or {}).get(name)
        return bool(given) if given is not None else version.at_least(since)

    def _listen(self) -> None:
        for port, address in ((HEALTH, "0.0.0.0"), (METRICS, "127.0.0.1")):
            try:
                self.machine.sockets.listen(
                    self.process, port, address=address, handler=lambda request: self._health()
                )
            except Failure as e:
                raise GoError(f"listen tcp :{port}: bind: {e.problem.message}.") from None

    def _health(self) -> Response:
        return Response(200 if self.synced else 503, b"{}")

    # Each second

    def on_tick(self) -> Died | None:
        """Learn the node's address, wait for the network, then write the services to HNS, again and again."""
        if self.machine.time.seconds < self._next and not self._news():
            return None
        try:
            if not self._node_ip:
                self._learn_address()
                return None
            network = self._network()
            if network is None:
                self._wait_for_network()
            elif self._found:
                self._sync(network)
                self._next = self.machine.time.seconds + (SYNC_S if self.synced else 2.0)
            else:
                self._begin(network)
        except GoError as e:
            return self.fatal(f'"Error running ProxyServer" err="unable to create proxier: {e}"')
        return None

    def _learn_address(self) -> None:
        """The Node's address, which decides the host's MAC address; without one in time it takes the loopback's."""
        try:
            node = self._client.ask("GET", f"/api/v1/nodes/{self._node}")
            addresses = node.get("status", {}).get("addresses") or []
            self._node_ip = next((one["address"] for one in addresses if one["type"] == "InternalIP"), "")
        except (GoError, ApiFailure) as e:
            problem = e.message if isinstance(e, ApiFailure) else str(e)
            self.klog(f'"Failed to retrieve node info" err="{problem}"', "E", "server.go:1")
        if not self._node_ip and self.machine.time.seconds >= self._until:
            self._node_ip = "127.0.0.1"
        if self._node_ip:
            self.klog(f'"Successfully retrieved NodeIPs" NodeIPs=["{self._node_ip}"]', "I", "server.go:1")
            self._forget_balancers()
            return
        self._next = self.machine.time.seconds + 1.0

    @property
    def _node(self) -> str:
        return str(self._settings.get("hostnameOverride") or self.machine.name).lower()

    def _forget_balancers(self) -> None:
        """What another proxy left in HNS goes before anything is looked at."""
        for found in hcn.call(self.machine, "GET", "/policylists/") or []:
            hcn.call(self.machine, "DELETE", f"/policylists/{found['ID']}")
        hcn.call(self.machine, "GET", "/globals/version")

    def _network(self) -> dict[str, Any] | None:
        return next(iter(hcn.find(self.machine, "Network", Name=self._network_name)), None)

    def _news(self) -> bool:
        """Whether a watch of services or endpoints would have reported something."""
        if not self.synced:
            return False
        try:
            return (self._client.latest(SERVICES, SLICES), self._written_to) != self._seen
        except GoError:
            return False

    def _wait_for_network(self) -> None:
        self.synced = False
        problem = "Unable to find HNS Network specified, please check network name and CNI deployment"
        self.klog(f'"{problem}" hnsNetworkName="{self._network_name}"', "E", "proxier.go:1")
        self._next = self.machine.time.seconds + 1.0

    def _begin(self, network: Mapping[str, Any]) -> None:
        """What is settled once: the overlay's source address and the host's MAC address."""
        version = Version.parse(self.run.version)
        if network["Type"] == "Overlay":
            if not self._gate("WinOverlay", since="1.20", version=version):
                raise GoError("WinOverlay feature gate not enabled")
            if not self._source:
                raise GoError("source-vip flag not set")
            self._mac = self._host_mac()
            # Remote subnets and the management address may come later than the network.
            self._next = self.machine.time.seconds + OVERLAY_S
        self.klog('"Using Kernelspace Proxier."')
        self._found = True

    @property
    def _source(self) -> str:
        return str(self._settings.get("winkernel.sourceVip") or "")

    def _host_mac(self) -> str:
        holder = self.machine.network.holder(self._node_ip)
        if holder is None or not holder.mac:
            raise GoError(f"could not find host mac address for {self._node_ip}")
        return holder.mac.replace("-", ":").lower()

    def _sync(self, network: Mapping[str, Any]) -> None:
        try:
            seen = (
                self._client.latest(SERVICES, SLICES),
                str(network["ID"]),
            )
            if self.synced and seen == self._seen and not self._left_out:
                return
            services = self._client.ask("GET", "/api/v1/services")["items"]
            slices = self._client.ask("GET", _SLICES)["items"]
        except (GoError, ApiFailure) as e:
            self.synced = False
            problem = e.message if isinstance(e, ApiFailure) else str(e)
            self.klog(f'"Failed to watch" err="failed to list: {problem}"', "E", "reflector.go:1")
            return
        self._left_out = False
        self._write(network, services, _backends(slices))
        self.synced = True
        self._seen = seen

    def _write(
        self,
        network: Mapping[str, Any],
        services: list[dict[str, Any]],
        backends: Mapping[str, list[Backend]],
    ) -> None:
        identity = str(network["ID"])
        known = {one["IpConfigurations"][0]["IpAddress"]: one for one in self._endpoints(identity)}
        balancers = hcn.find(self.machine, "LoadBalancer")
        if self._written_to != identity:
            self._written, self._written_to = (
                {_key(one): self._noted(one, known) for one in balancers},
                identity,
            )
        if network["Type"] == "Overlay":
            self._make_vips(identity, services, known)
        wanted = dict(_wanted(services, backends))
        there = {str(one["ID"]) for one in balancers}
        for key in [one for one in self._written if self._written[one][1] != _addresses(wanted.get(one))]:
            balancer, _ = self._written.pop(key)
            if balancer in there:
                hcn.delete(self.machine, "LoadBalancer", balancer)
        for key, (inner, found) in wanted.items():
            if key not in self._written:
                self._balance(network, key, inner, found, known)

    def _endpoints(self, network: str) -> list[dict[str, Any]]:
        return [
            one
            for one in hcn.find(self.machine, "Endpoint", VirtualNetwork=network)
            if one["IpConfigurations"]
        ]

    def _make_vips(
        self, network: str, services: list[dict[str, Any]], known: dict[str, dict[str, Any]]
    ) -> None:
        """On an overlay the source address and each service's address are endpoints of their own."""
        if self._source not in known:
            known[self._source] = self._make(network, self._source, self._mac)
        for service in services:
            address = str(service["spec"].get("clusterIP", ""))
            if address not in ("", "None", *known):
                known[address] = self._make(network, address, self._mac, provider=self._node_ip)

    def _make(self, network: str, address: str, mac: str, *, provider: str | None = None) -> dict[str, Any]:
        """An endpoint (hns.go, createEndpoint): a remote one where there is a `provider`, which may be empty."""
        policies = (
            [{"Type": "ProviderAddress", "Settings": {"ProviderAddress": provider}}] if provider else []
        )
        document: dict[str, Any] = {
            "HostComputeNetwork": network,
            **({"Policies": policies} if policies else {}),
            "IpConfigurations": [{"IpAddress": address}],
            "Dns": {},
            "MacAddress": mac,
            **({} if provider is None else {"Flags": 1}),
            "Health": {"Extra": {}},
            **hcn.SCHEMA,
        }
        return hcn.create(self.machine, "Endpoint", document)

    def _balance(
        self,
        network: Mapping[str, Any],
        key: Key,
        inner: int,
        backends: tuple[Backend, ...],
        known: dict[str, dict[str, Any]],
    ) -> None:
        address, port, protocol = key
        identities, public = self._identities(network, backends, known)
        if not identities:
            self._left_out = True
            self.klog(
                f'"Endpoint information not available for service, not applying any policy" serviceName="{address}:{port}"',
                "E",
                "proxier.go:1",
            )
            return
        ports: dict[str, Any] = {"Protocol": protocol, "InternalPort": inner, "ExternalPort": port}
        source = self._node_ip if public and self._source else self._source
        document: dict[str, Any] = {
            "HostComputeEndpoints": identities,
            **({"SourceVIP": source} if source else {}),
            # None for a NodePort: all addresses of the node. Never DSR, LocalRoutedVIP (2) and VipExternalIP (16).
            **({"FrontendVIPs": [address]} if address else {}),
            "PortMappings": [ports if address else {**ports, "Flags": 18}],
            **hcn.SCHEMA,
            **({"Flags": 1} if address and self._dsr else {}),
        }
        made = hcn.create(self.machine, "LoadBalancer", document)
        self._written[key] = (str(made["ID"]), tuple(ip for ip, _ in backends))

    def _identities(
        self, network: Mapping[str, Any], backends: tuple[Backend, ...], known: dict[str, dict[str, Any]]
    ) -> tuple[list[str], bool]:
        """The endpoints of the backends, and whether one is outside the pods' networks. One that is not on this node is made
        as a remote one; a pod of this node that HNS does not have is left out."""
        found, public = list[str](), False
        for address, node in backends:
            if address not in known and node == self._node:
                self.klog(
                    f'"Local endpoint not found: on network" ip="{address}" hnsNetworkName="{self._network_name}"',
                    "E",
                    "proxier.go:1",
                )
                continue
            provider = _provider(network, address) if network["Type"] == "Overlay" else ""
            public = public or (network["Type"] == "Overlay" and address not in known and not provider)
            if address not in known:
                provider = provider or (self._node_ip if network["Type"] == "Overlay" else "")
                known[address] = self._make(
                    str(network["ID"]), address, _conjured(address), provider=provider
                )
            found.append(str(known[address]["ID"]))
        return found, public

    @staticmethod
    def _noted(
        balancer: Mapping[str, Any], known: Mapping[str, dict[str, Any]]
    ) -> tuple[str, tuple[str, ...]]:
        """A load balancer that was there: its id, and the addresses it leads to."""
        ids = {one["ID"]: address for address, one in known.items()}
        return str(balancer["ID"]), tuple(ids[one] for one in balancer["HostComputeEndpoints"] if one in ids)


def _addresses(wanted: tuple[int, tuple[Backend, ...]] | None) -> tuple[str, ...] | None:
    return None if wanted is None else tuple(address for address, _ in wanted[1])


def _conjured(address: str) -> str:
    """proxier.go, conjureMac: the address in hexadecimal digits."""
    return "02-11-" + "-".join(f"{int(part):02x}" for part in address.split("."))


def _provider(network: Mapping[str, Any], address: str) -> str:
    """The node behind a pod's address, by the remote subnets that flanneld notes at the network."""
    for policy in network["Policies"]:
        settings = policy["Settings"]
        if policy["Type"] == "RemoteSubnetRoute" and ip_address(address) in ip_network(
            settings["DestinationPrefix"]
        ):
            return str(settings["ProviderAddress"])
    return ""


def _backends(slices: list[dict[str, Any]]) -> dict[str, list[Backend]]:
    """Addresses by service, each with its node."""
    found: dict[str, list[Backend]] = {}
    for one in slices:
        metadata = one["metadata"]
        service = (metadata.get("labels") or {}).get("kubernetes.io/service-name", "")
        ends = [
            (address, str(e.get("nodeName", "")))
            for e in one.get("endpoints") or []
            for address in e.get("addresses") or []
        ]
        found.setdefault(f"{metadata['namespace']}/{service}", []).extend(ends)
    return found


def _wanted(
    services: list[dict[str, Any]], backends: Mapping[str, list[Backend]]
) -> Iterator[tuple[Key, tuple[int, tuple[Backend, ...]]]]:
    """Each load balancer that there should be: its key, the port of the backends, and these."""
    for service in services:
        spec = service["spec"]
        found = tuple(backends.get(f"{service['metadata']['namespace']}/{service['metadata']['name']}", ()))
        address = str(spec.get("clusterIP", ""))
        for port in spec.get("ports") or []:
            inner = int(port.get("targetPort") or port["port"])
            protocol = 17 if port.get("protocol") == "UDP" else 6
            if found and address not in ("", "None"):
                yield (address, int(port["port"]), protocol), (inner, found)
            if found and port.get("nodePort"):
                yield ("", int(port["nodePort"]), protocol), (inner, found)


def _key(balancer: Mapping[str, Any]) -> Key:
    ports = balancer["PortMappings"][0]
    address = str((balancer.get("FrontendVIPs") or [""])[0])
    return address, int(ports["ExternalPort"]), int(ports["Protocol"])
