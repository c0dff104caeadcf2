"""The CNI plug-ins: host-local, win-bridge, win-overlay, flannel. Each fails as the real one does."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from winboot.lab.programs import cni, hcn
from winboot.lab.programs.base import GoError, Run, go_text
from winboot.lab.windows import paths
from winboot.lab.windows.programs_api import Exit

if TYPE_CHECKING:
    from winboot.lab.windows.machine import Machine
    from winboot.lab.windows.processes import Process

VERSIONS: Final = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
STORE: Final = "/var/lib/cni/networks"
SUBNET_ENV: Final = "/run/flannel/subnet.env"
_IN_USE: Final = (
    "hcnCreateEndpoint failed in Win32: The IP address is either invalid or not part of any configured subnet(s). "
    "(0x803b002f)"
)


class Plugin:
    """A CNI plug-in: one command in the environment, its configuration on standard input, JSON on output."""

    about = "CNI plugin"

    def run(
        self, machine: Machine, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        command = env.get("CNI_COMMAND", "")
        if command == "VERSION":
            return Exit(0, go_text(json.dumps({"cniVersion": "1.0.0", "supportedVersions": list(VERSIONS)})))
        if not command:
            return Exit(1, b"", go_text(f"{self.about} {run.version}"))
        try:
            return Exit(0, json.dumps(self._answer(run, command)).encode("utf-8"))
        except GoError as e:
            return Exit(1, json.dumps({"cniVersion": "1.0.0", "code": 999, "msg": str(e)}).encode("utf-8"))

    def _answer(self, run: Run, command: str) -> dict[str, Any]:
        for name in ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"):
            if not run.env.get(name) and not (command in ("DEL", "STATUS") and name == "CNI_NETNS"):
                raise GoError(f"required env variables [{name}] missing")
        conf = cni.decode_json(run.stdin, "failed to decode incoming network config")
        version = str(conf.get("cniVersion", "0.1.0"))
        if version not in VERSIONS:
            raise GoError(
                f"incompatible CNI versions; config is {version!r}, plugin supports {list(VERSIONS)!r}"
            )
        match command:
            case "ADD":
                return self.add(run, conf)
            case "DEL":
                self.delete(run, conf)
                return {}
            case "CHECK" | "STATUS" | "GC":
                return {}
        raise GoError(f"unknown CNI_COMMAND: {command}")

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Connect the sandbox; gives the CNI result."""
        raise run.refuse("ADD")

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Disconnect it; what is gone already is fine."""


def _sandbox(run: Run) -> cni.Sandbox:
    return cni.Sandbox(run.env["CNI_CONTAINERID"], run.env.get("CNI_NETNS", ""), run.env.get("CNI_ARGS", ""))


def _folders(run: Run) -> list[str]:
    return run.env["CNI_PATH"].split(";")


class HostLocal(Plugin):
    """Addresses from files, one a lease, named after the address."""

    about = "CNI host-local plugin"

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Take the next free address of the first range set."""
        ipam = conf.get("ipam") or {}
        subnet, first, gateway = self._range(ipam)
        folder = self._folder(run, conf)
        holder = f"{run.env['CNI_CONTAINERID']}\r\n{run.env['CNI_IFNAME']}".encode("ascii")
        for address in self._candidates(run, folder, subnet, first, gateway):
            path = paths.join(folder, str(address))
            if not run.machine.files.exists(path):
                run.write(path, holder)
                run.write(paths.join(folder, "last_reserved_ip.0"), str(address).encode("ascii"))
                return {
                    "cniVersion": "1.0.0",
                    "ips": [{"address": f"{address}/{subnet.prefixlen}", "gateway": str(gateway)}],
                }
        last = subnet.broadcast_address - 1
        raise GoError(
            f"failed to allocate for range 0: no IP addresses available in range set: {subnet[1]}-{last}"
        )

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Give back whatever the container has."""
        folder = self._folder(run, conf)
        if not run.machine.files.is_directory(folder):
            return
        for entry in run.machine.files.list(folder):
            path = paths.join(folder, entry.name)
            if run.read(path).decode("ascii", "replace").splitlines()[:1] == [run.env["CNI_CONTAINERID"]]:
                run.machine.files.delete(path)

    def _folder(self, run: Run, conf: dict[str, Any]) -> str:
        store = str((conf.get("ipam") or {}).get("dataDir") or STORE)
        return run.path(f"{store}/{conf['name']}")

    def _range(
        self, ipam: Mapping[str, Any]
    ) -> tuple[ipaddress.IPv4Network, ipaddress.IPv4Address, ipaddress.IPv4Address]:
        ranges = ipam.get("ranges") or [[ipam]]
        entry = ranges[0][0]
        if not entry.get("subnet"):
            raise GoError("no IP ranges specified")
        try:
            subnet = ipaddress.IPv4Network(entry["subnet"])
        except ValueError:
            raise GoError(f"invalid range set 0: invalid subnet {entry['subnet']}") from None
        first = ipaddress.IPv4Address(entry.get("rangeStart") or subnet[1])
        gateway = ipaddress.IPv4Address(entry.get("gateway") or subnet[1])
        if first not in subnet:
            raise GoError(f"RangeStart {first} not in network {subnet}")
        return subnet, first, gateway

    def _candidates(
        self,
        run: Run,
        folder: str,
        subnet: ipaddress.IPv4Network,
        first: ipaddress.IPv4Address,
        gateway: ipaddress.IPv4Address,
    ) -> Iterator[ipaddress.IPv4Address]:
        """Round the range once, beginning after the last address handed out; never the gateway."""
        span = [
            a
            for a in map(ipaddress.IPv4Address, range(int(first), int(subnet.broadcast_address)))
            if a != gateway
        ]
        marker = paths.join(folder, "last_reserved_ip.0")
        last = (
            ipaddress.IPv4Address(run.read(marker).decode("ascii"))
            if run.machine.files.exists(marker)
            else None
        )
        start = span.index(last) + 1 if last in span else 0
        yield from span[start:]
        yield from span[:start]


class WinPlugin(Plugin):
    """What win-bridge and win-overlay share: address, HNS endpoint with policies, and the sandbox's namespace."""

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Take an address, make the endpoint, attach it."""
        name = str(conf["name"])
        network = self.network(run, name)
        endpoint_name = f"{run.env['CNI_CONTAINERID']}_{name}"
        if int(conf.get("apiVersion", 1)) != 2:
            # A namespace GUID means nothing to the old API: it looks for an endpoint that a v1 runtime would have made.
            raise GoError(f"failed to find HNSEndpoint {endpoint_name}: Endpoint {endpoint_name} not found")
        lease = cni.invoke(run, "ADD", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
        address = ipaddress.IPv4Interface(lease["ips"][0]["address"])
        try:
            self._make(run, conf, network, endpoint_name, address)
        except GoError:
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
            raise
        return {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": endpoint_name, "sandbox": run.env["CNI_NETNS"]}],
            "ips": [
                {"address": str(address), "gateway": str(self.gateway(address, network)), "interface": 0}
            ],
            "dns": conf.get("dns") or {},
        }

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Give address and endpoint back."""
        if conf.get("ipam"):
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
        found = hcn.endpoint(run.machine, f"{run.env['CNI_CONTAINERID']}_{conf['name']}")
        if found is not None:
            hcn.call(run.machine, "DELETE", f"/endpoints/{found['ID']}")

    def network(self, run: Run, name: str) -> dict[str, Any]:
        """The HNS network; it is found by the configuration's name."""
        found = hcn.network(run.machine, name)
        if found is None:
            raise GoError(f'error while hcn.GetNetworkByName({name}): Network name "{name}" not found')
        return found

    def gateway(self, address: ipaddress.IPv4Interface, network: Mapping[str, Any]) -> ipaddress.IPv4Address:
        """What the pod's default route points at."""
        return address.network[2]

    def policies(
        self, conf: dict[str, Any], address: ipaddress.IPv4Interface, network: Mapping[str, Any]
    ) -> list[Any]:
        """The endpoint's policies."""
        return endpoint_policies(conf)

    def _make(
        self,
        run: Run,
        conf: dict[str, Any],
        network: Mapping[str, Any],
        name: str,
        address: ipaddress.IPv4Interface,
    ) -> None:
        if any(e.get("IPAddress") == str(address.ip) for e in hcn.endpoints(run.machine)):
            raise GoError(f"error while adding HostComputeEndpoint: {_IN_USE}")
        dns = (conf.get("runtimeConfig") or {}).get("dns") or conf.get("dns") or {}
        request = {
            "Name": name,
            "VirtualNetwork": network["ID"],
            "IPAddress": str(address.ip),
            "PrefixLength": address.network.prefixlen,
            "GatewayAddress": str(self.gateway(address, network)),
            "DNSServerList": ",".join(dns.get("servers") or dns.get("nameservers") or []),
            "DNSSuffix": ",".join(dns.get("searches") or dns.get("search") or []),
            "Policies": self.policies(conf, address, network),
            "Namespace": {"ID": run.env["CNI_NETNS"]},
        }
        try:
            hcn.call(run.machine, "POST", "/endpoints/", request)
        except GoError as e:
            raise GoError(f"error while adding HostComputeEndpoint: {e}") from None


def endpoint_policies(conf: Mapping[str, Any]) -> list[Any]:
    """The policies of the configuration as the endpoint gets them, with the plug-in's own NAT appended.

    The plug-in adds an OutBoundNAT for `ipMasqNetwork`, unless an OutBoundNAT of the configuration names exactly
    that network among its exceptions, with exactly these keys. Two of them leave it open which one holds.
    """
    given = [p.get("value") or p.get("Value") for p in conf.get("policies") or [] if isinstance(p, dict)]
    found: list[dict[str, Any]] = [p for p in given if isinstance(p, dict)]
    masquerade = conf.get("ipMasqNetwork")
    if conf.get("ipMasq") and masquerade:
        has = any(
            p.get("Type") == "OutBoundNAT"
            and masquerade in ((p.get("Settings") or {}).get("Exceptions") or [])
            for p in found
        )
        if not has:
            found.append({"Type": "OutBoundNAT", "Settings": {"Exceptions": [masquerade]}})
    for mapping in (conf.get("runtimeConfig") or {}).get("portMappings") or []:
        ports = {"InternalPort": mapping.get("containerPort"), "ExternalPort": mapping.get("hostPort")}
        found.append({"Type": "PortMapping", "Settings": ports})
    return found


class WinBridge(WinPlugin):
    """L2Bridge: the gateway is the second address, where the host's endpoint sits."""

    about = "CNI win-bridge plugin"


class WinOverlay(WinPlugin):
    """Overlay: the gateway is the network's; a provider address policy is added."""

    about = "CNI win-overlay plugin"

    def network(self, run: Run, name: str) -> dict[str, Any]:
        """The network must be an overlay."""
        found = super().network(run, name)
        if str(found.get("Type", "")).lower() != "overlay":
            raise GoError(f"network {name} is of an unexpected type: {found.get('Type')}")
        return found

    def gateway(self, address: ipaddress.IPv4Interface, network: Mapping[str, Any]) -> ipaddress.IPv4Address:
        """The overlay's gateway."""
        subnets = network.get("Subnets") or [{}]
        return ipaddress.IPv4Address(subnets[0].get("GatewayAddress") or address.network[1])

    def policies(
        self, conf: dict[str, Any], address: ipaddress.IPv4Interface, network: Mapping[str, Any]
    ) -> list[Any]:
        """The configured ones, and the provider address."""
        found = super().policies(conf, address, network)
        if not any(p.get("Type") == "ProviderAddress" for p in found):
            provider = {"ProviderAddress": network.get("ManagementIP", "")}
            found.append({"Type": "ProviderAddress", "Settings": provider})
        return found


class Flannel(Plugin):
    """Hands the sandbox on to another plug-in, with the node's subnet as flanneld wrote it down."""

    about = "CNI flannel plugin"

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Fill in the delegate and let it do the work."""
        delegate = self._delegate(run, conf)
        state = f"/var/lib/cni/flannel/{run.env['CNI_CONTAINERID']}"
        run.write(run.path(state), json.dumps(delegate).encode("utf-8"))
        return cni.invoke(run, "ADD", delegate, _sandbox(run), _folders(run))

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """The same way back, with what was noted at ADD."""
        state = run.path(f"/var/lib/cni/flannel/{run.env['CNI_CONTAINERID']}")
        if not run.machine.files.exists(state):
            return
        delegate = json.loads(run.read(state))
        cni.invoke(run, "DEL", delegate, _sandbox(run), _folders(run))
        run.machine.files.delete(state)

    def _delegate(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        subnet = read_subnet_env(run, str(conf.get("subnetFile") or SUBNET_ENV))
        delegate: dict[str, Any] = dict(conf.get("delegate") or {})
        delegate["name"] = conf["name"]
        delegate.setdefault("type", "win-bridge")
        if delegate["type"] in ("win-bridge", "win-overlay"):
            delegate.setdefault("ipMasq", subnet.get("FLANNEL_IPMASQ") == "true")
            delegate["ipMasqNetwork"] = subnet["FLANNEL_NETWORK"]
        delegate["cniVersion"] = conf.get("cniVersion", "0.3.1")
        network = ipaddress.IPv4Interface(subnet["FLANNEL_SUBNET"]).network
        # Whatever the delegate says of addresses is overwritten here; so no address can be kept back by it.
        delegate["ipam"] = {"type": "host-local", "subnet": str(network)}
        if conf.get("runtimeConfig"):
            delegate["runtimeConfig"] = conf["runtimeConfig"]
        return delegate


def read_subnet_env(run: Run, path: str) -> dict[str, str]:
    """flanneld's file; GoError as the flannel plug-in words it."""
    try:
        text = run.read(path).decode("utf-8", "replace")
    except GoError as e:
        raise GoError(f"loadFlannelSubnetEnv failed: {e}") from None
    values = dict(line.split("=", 1) for line in text.split() if "=" in line)
    missing = [
        k for k in ("FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_MTU", "FLANNEL_IPMASQ") if k not in values
    ]
    if missing:
        raise GoError(f"loadFlannelSubnetEnv failed: {path} is missing {', '.join(missing)}")
    return values
