"""kube-proxy.exe: waits for the HNS network, then turns services into load balancers of HNS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from winboot.config.compat.version import Version
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import kind_of
from winboot_lab.programs import hcn
from winboot_lab.programs import settings as reading
from winboot_lab.programs.base import Daemon, GoError, Run, go_text
from winboot_lab.programs.kubeclient import KubeClient, load_kubeconfig
from winboot_lab.programs.outside import Outside
from winboot_lab.windows.failure import Failure
from winboot_lab.windows.programs_api import Died, Exit
from winboot_lab.windows.sockets import Response

if TYPE_CHECKING:
    from winboot_lab.windows.machine import Machine
    from winboot_lab.windows.processes import Process

HEALTH: Final = 10256
METRICS: Final = 10249
SYNC_S: Final = 30.0
SERVICES: Final = kind_of("services")
SLICES: Final = kind_of("endpointslices", "discovery.k8s.io")
Key = tuple[str, int, int]  # address (empty for a NodePort), port, protocol
_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"


class KubeProxyProgram:
    """The program: a service with --windows-service."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def is_service(self, argv: list[str]) -> bool:
        """Only with its flag it answers the control manager."""
        return any(a in ("--windows-service", "--windows-service=true") for a in argv)

    def serve(self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str]) -> KubeProxy:
        """A running kube-proxy."""
        return KubeProxy(Run(machine, process, argv, env), self._outside)

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
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
        """Wait for the network; then write the services to HNS, again and again."""
        if self.machine.time.seconds < self._next and not self._news():
            return None
        try:
            network = hcn.network(self.machine, self._network_name)
            if network is None:
                self._wait_for_network()
                return None
            if not self._found:
                self._begin(network)
            self._sync(network)
            self._next = self.machine.time.seconds + (SYNC_S if self.synced else 2.0)
        except GoError as e:
            return self.fatal(f'"Error running ProxyServer" err="unable to create proxier: {e}"')
        return None

    def _news(self) -> bool:
        """Whether a watch of services or endpoints would have told of something."""
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
        """What is settled once: the overlay's source address, the root endpoint, and a clean table."""
        version = Version.parse(self.run.version)
        if str(network.get("Type", "")).lower() == "overlay":
            if not self._gate("WinOverlay", since="1.20", version=version):
                raise GoError("WinOverlay feature gate not enabled")
            if not self._settings.get("winkernel.sourceVip"):
                raise GoError("source-vip flag not set")
        else:
            self._find_root()
        for found in hcn.call(self.machine, "GET", "/policylists/") or []:
            hcn.call(self.machine, "DELETE", f"/policylists/{found['ID']}")
        self.klog('"Using Kernelspace Proxier."')
        self._found = True

    def _find_root(self) -> None:
        root = str(self._settings.get("winkernel.rootHnsEndpointName") or "cbr0")
        if hcn.endpoint(self.machine, root) is None:
            self.klog(
                f'"Failed to find HNS endpoint, health check VIPs will not work" hnsEndpointName="{root}"',
                "E",
                "proxier.go:1",
            )

    def _sync(self, network: Mapping[str, Any]) -> None:
        try:
            seen = (
                self._client.latest(SERVICES, SLICES),
                str(network["ID"]),
            )
            if self.synced and seen == self._seen:
                return
            services = self._client.ask("GET", "/api/v1/services")["items"]
            slices = self._client.ask("GET", _SLICES)["items"]
        except (GoError, ApiFailure) as e:
            self.synced = False
            problem = e.message if isinstance(e, ApiFailure) else str(e)
            self.klog(f'"Failed to watch" err="failed to list: {problem}"', "E", "reflector.go:1")
            return
        backends = _backends(slices)
        if self._written_to != str(network["ID"]):
            self._written, self._written_to = {}, str(network["ID"])
            for found in hcn.call(self.machine, "GET", "/policylists/") or []:
                self._written[_key(found)] = (str(found["ID"]), self._addresses(found))
        wanted = dict(_wanted(services, backends))
        for key in [
            one for one in self._written if one not in wanted or wanted[one][1] != self._written[one][1]
        ]:
            identity, _ = self._written.pop(key)
            if identity in self.machine.hns.policy_lists:
                hcn.call(self.machine, "DELETE", f"/policylists/{identity}")
        for key, (inner, addresses) in wanted.items():
            if key not in self._written:
                self._balance(network, key, inner, addresses)
        self.synced = True
        self._seen = seen

    def _balance(self, network: Mapping[str, Any], key: Key, inner: int, backends: tuple[str, ...]) -> None:
        address, port, protocol = key
        policy: dict[str, Any] = {
            "Type": "ELB",
            # None for a NodePort: all addresses of the node.
            "VIPs": [address] if address else [],
            "ExternalPort": port,
            "InternalPort": inner,
            "Protocol": protocol,
            "IsDSR": self._dsr,
        }
        source = self._settings.get("winkernel.sourceVip")
        if source:
            policy["SourceVIP"] = source
        references = [f"/endpoints/{self._remote(network, backend)}" for backend in backends]
        body = {"References": references, "Policies": [policy]}
        made = hcn.call(self.machine, "POST", "/policylists/", body)
        self._written[key] = (str(made["ID"]), backends)

    def _addresses(self, policy_list: Mapping[str, Any]) -> tuple[str, ...]:
        """The addresses that a load balancer leads to."""
        known = self.machine.hns.endpoints
        ids = [str(reference).rpartition("/")[2] for reference in policy_list.get("References") or []]
        return tuple(str(known[one]["IPAddress"]) for one in ids if one in known)

    def _remote(self, network: Mapping[str, Any], address: str) -> str:
        """The id of the HNS endpoint of a backend; one that is not on this node is made as a remote one."""
        for endpoint in hcn.endpoints(self.machine):
            if endpoint.get("IPAddress") == address and endpoint.get("VirtualNetwork") == network["ID"]:
                return str(endpoint["ID"])
        mac = "02-11-" + "-".join(f"{int(part):02X}" for part in address.split("."))
        request = {
            "VirtualNetwork": network["ID"],
            "IPAddress": address,
            "MacAddress": mac,
            "IsRemoteEndpoint": True,
        }
        return str(hcn.call(self.machine, "POST", "/endpoints/", request)["ID"])


def _backends(slices: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Addresses by service."""
    found: dict[str, list[str]] = {}
    for one in slices:
        metadata = one["metadata"]
        service = (metadata.get("labels") or {}).get("kubernetes.io/service-name", "")
        addresses = [a for e in one.get("endpoints") or [] for a in e.get("addresses") or []]
        found.setdefault(f"{metadata['namespace']}/{service}", []).extend(addresses)
    return found


def _wanted(
    services: list[dict[str, Any]], backends: Mapping[str, list[str]]
) -> Iterator[tuple[Key, tuple[int, tuple[str, ...]]]]:
    """Each load balancer that there should be: its key, the port of the backends, and their addresses."""
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


def _key(policy_list: Mapping[str, Any]) -> Key:
    policy = (policy_list.get("Policies") or [{}])[0]
    address = str((policy.get("VIPs") or [""])[0])
    return address, int(policy.get("ExternalPort", 0)), int(policy.get("Protocol", 6))
