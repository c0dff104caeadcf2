"""The CNI plug-ins: host-local, win-bridge, win-overlay, flannel. Each fails as the real one does."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from winboot_lab.programs import cni, hcn
from winboot_lab.programs.base import GoError, Run, go_text
from winboot_lab.windows import paths
from winboot_lab.windows.processes import Process
from winboot_lab.windows.programs_api import Exit
from winboot_lab.windows.session import Computer

VERSIONS: Final = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
STORE: Final = "/var/lib/cni/networks"
SUBNET_ENV: Final = "/run/flannel/subnet.env"


class Plugin:
    """A CNI plug-in: one command in the environment, its configuration on standard input, JSON on output."""

    about = "CNI plugin"

    def run(
        self, machine: Computer, process: Process, argv: list[str], env: Mapping[str, str], stdin: bytes
    ) -> Exit:
        """One invocation."""
        run = Run(machine, process, argv, env, stdin)
        command = env.get("CNI_COMMAND", "")
        if command == "VERSION":
            return Exit(0, go_text(json.dumps({"cniVersion": "1.1.0", "supportedVersions": list(VERSIONS)})))
        if not command:
            # skel.go, pluginMain: it only says what it is, with the code of success.
            protocols = f"CNI protocol versions supported: {', '.join(VERSIONS)}"
            return Exit(0, b"", go_text(f"{self.about} v{run.version}", protocols))
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


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


class _Range:
    """One range of addresses: its subnet, the first that may be given, and the gateway, which never is."""

    def __init__(self, entry: Mapping[str, Any], index: int) -> None:
        if not entry.get("subnet"):
            raise GoError("no IP ranges specified")
        try:
            self.subnet: Network = ipaddress.ip_network(entry["subnet"])
        except ValueError:
            raise GoError(f"invalid range set {index}: invalid subnet {entry['subnet']}") from None
        self.first: Address = ipaddress.ip_address(entry.get("rangeStart") or str(self.subnet[1]))
        self.gateway: Address = ipaddress.ip_address(entry.get("gateway") or str(self.subnet[1]))
        if self.first not in self.subnet:
            raise GoError(f"RangeStart {self.first} not in network {self.subnet}")

    def after(self, last: Address | None) -> Iterator[Address]:
        """Round the range once, beginning after the last address handed out."""
        end = int(self.subnet.broadcast_address)
        begin = int(last) + 1 if last is not None and last in self.subnet else int(self.first)
        kind = type(self.gateway)
        for number in chain(range(begin, end), range(int(self.first), begin)):
            address = kind(number)
            if address != self.gateway:
                yield address


class HostLocal(Plugin):
    """Addresses from files, one a lease, named after the address; one address from each set of ranges."""

    about = "CNI host-local plugin"

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Take the next free address of each range set."""
        ipam = conf.get("ipam") or {}
        sets = [s[0] for s in ipam.get("ranges") or [[ipam]]]
        ranges = [_Range(entry, index) for index, entry in enumerate(sets)]
        folder = self._folder(run, conf)
        # Its lock stays as a file (backend/disk/lock.go, NewFileLock).
        if not run.machine.files.exists(paths.join(folder, "lock")):
            run.write(paths.join(folder, "lock"), b"")
        return {"cniVersion": "1.0.0", "ips": [self._take(run, folder, r, n) for n, r in enumerate(ranges)]}

    def _take(self, run: Run, folder: str, range_: _Range, index: int) -> dict[str, str]:
        holder = f"{run.env['CNI_CONTAINERID']}\r\n{run.env['CNI_IFNAME']}".encode("ascii")
        marker = paths.join(folder, f"last_reserved_ip.{index}")
        known = run.machine.files.exists(marker)
        last = ipaddress.ip_address(run.read(marker).decode("ascii")) if known else None
        for address in range_.after(last):
            # A file name cannot hold a colon.
            path = paths.join(folder, str(address).replace(":", "_"))
            if not run.machine.files.exists(path):
                run.write(path, holder)
                run.write(marker, str(address).encode("ascii"))
                return {"address": f"{address}/{range_.subnet.prefixlen}", "gateway": str(range_.gateway)}
        span = f"{range_.first}-{range_.subnet.broadcast_address - 1}"
        raise GoError(f"failed to allocate for range {index}: no IP addresses available in range set: {span}")

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


# What dockershim and cri-dockerd hand over as the network namespace of a pause container; of the others it is
# `container:` and the id of that one (dockershim/helpers_windows.go, getNetworkNamespace).
PAUSE_NETNS: Final = "none"


def _sandbox_id(run: Run) -> str:
    """GetSandboxContainerID of pkg/hns/endpoint_windows.go."""
    kind, colon, identity = run.env.get("CNI_NETNS", "").partition(":")
    return identity if colon and kind != PAUSE_NETNS else run.env["CNI_CONTAINERID"]


class WinPlugin(Plugin):
    """What win-bridge and win-overlay share: address, HNS endpoint with policies, and the sandbox's namespace."""

    first_types: tuple[str, ...] = ()

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Take an address, make the endpoint, give it to the sandbox. The address goes back where that fails (cmdAdd)."""
        name = str(conf["name"])
        endpoint_name = f"{_sandbox_id(run)}_{name}"
        if int(conf.get("apiVersion", 1)) != 2:
            return self._add_first(run, conf, endpoint_name)
        network = self.network(run, name)
        hcn.find(run.machine, "Endpoint", Name=endpoint_name)
        lease = cni.invoke(run, "ADD", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
        # The plug-ins know one address of a pod, the first that they are given.
        address = ipaddress.ip_interface(lease["ips"][0]["address"])
        try:
            made = self._make(run, conf, network, endpoint_name, address)
        except GoError:
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
            raise
        given = {"address": str(address), "gateway": str(self.gateway(address, network))}
        return self._result(conf, made, given)

    def _result(
        self, conf: Mapping[str, Any], made: Mapping[str, Any], given: dict[str, str]
    ) -> dict[str, Any]:
        return {
            "cniVersion": conf.get("cniVersion", "1.1.0"),
            "interfaces": [{"name": made["Name"], "mac": made["MacAddress"]}],
            "ips": [given],
            "dns": _lower(_dns(conf)),
        }

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Give address and endpoint back."""
        if conf.get("ipam"):
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
        if int(conf.get("apiVersion", 1)) != 2:
            self._delete_first(run, f"{_sandbox_id(run)}_{conf['name']}")
            return
        for found in hcn.find(run.machine, "Endpoint", Name=f"{run.env['CNI_CONTAINERID']}_{conf['name']}"):
            hcn.remove_from_namespace(run.machine, str(found["HostComputeNamespace"]), str(found["ID"]))
            hcn.delete(run.machine, "Endpoint", str(found["ID"]))

    # The first version of the API, for Docker: pkg/hns/endpoint_windows.go, ProvisionEndpoint and DeprovisionEndpoint.

    def _add_first(self, run: Run, conf: dict[str, Any], name: str) -> dict[str, Any]:
        """The pod's pause container makes the endpoint, every later call for the pod takes the same one."""
        container, network = run.env["CNI_CONTAINERID"], self.first_network(run, str(conf["name"]))
        found = hcn.endpoint(run.machine, name)
        if found is None and run.env["CNI_NETNS"] != PAUSE_NETNS:
            # A namespace GUID means nothing here: an endpoint is sought that the pause container would have.
            raise GoError(f"failed to find HNSEndpoint {name}: Endpoint {name} not found")
        if found is None:
            found = self._make_first(run, conf, network, name)
        run.machine.hns.share(str(found["ID"]), container)
        net = ipaddress.ip_network(network["Subnets"][0]["AddressPrefix"])
        given = {"address": f"{found['IPAddress']}/{net.prefixlen}", "gateway": str(found["GatewayAddress"])}
        return self._result(conf, found, given)

    def _make_first(
        self, run: Run, conf: dict[str, Any], network: dict[str, Any], name: str
    ) -> dict[str, Any]:
        lease = cni.invoke(run, "ADD", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
        address, dns = ipaddress.ip_interface(lease["ips"][0]["address"]), _dns(conf)
        document = {
            "Name": name,
            "VirtualNetwork": network["ID"],
            "DNSServerList": ",".join(dns.get("ServerList", [])),
            "DNSSuffix": ",".join(dns.get("Search", [])),
            "GatewayAddress": str(self.gateway(address, {"First": network})),
            "IPAddress": str(address.ip),
            "Policies": self.first_policies(run, conf, network),
            "MacAddress": self.mac(conf, address),
        }
        try:
            made: dict[str, Any] = hcn.call(run.machine, "POST", "/endpoints/", document)
        except GoError as e:
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))
            raise GoError(
                f"error while adding HNSEndpoint: failed to create the new HNSEndpoint: {e}"
            ) from None
        return made

    def _delete_first(self, run: Run, name: str) -> None:
        found = hcn.endpoint(run.machine, name)
        if found is None or not run.env.get("CNI_NETNS"):
            return
        run.machine.hns.unshare(str(found["ID"]), run.env["CNI_CONTAINERID"])
        if run.env["CNI_NETNS"] == PAUSE_NETNS:
            hcn.call(run.machine, "DELETE", f"/endpoints/{found['ID']}")

    def first_network(self, run: Run, name: str) -> dict[str, Any]:
        """The HNS network by name, of a type that the plug-in takes."""
        found = hcn.network(run.machine, name)
        if found is None:
            raise GoError(f"error while getting network {name}: Network {name} not found")
        if found["Type"] not in self.first_types:
            raise GoError(f"network {name} is of unexpected type: {found['Type']}")
        return found

    def first_policies(self, run: Run, conf: dict[str, Any], network: Mapping[str, Any]) -> list[Any]:
        """The endpoint's policies, with each member on the level of the type."""
        found = _configured(conf)
        if any("Settings" in one for one in found):
            # Unsourced: what HNS makes of the second version's form in a request of the first.
            raise run.refuse("a policy with Settings in a configuration of HNS version 1")
        return found

    def network(self, run: Run, name: str) -> dict[str, Any]:
        """The HNS network, of the second version; it is found by the configuration's name."""
        for found in hcn.find(run.machine, "Network", Name=name):
            return found
        raise GoError(f'error while hcn.GetNetworkByName({name}): Network name "{name}" not found')

    def gateway(self, address: Interface, network: Mapping[str, Any]) -> Address:
        """What the pod's default route points at."""
        return address.network[2]

    def policies(self, conf: dict[str, Any], network: Mapping[str, Any], address: Interface) -> list[Any]:
        """The endpoint's policies: those of the configuration, and the plug-in's own behind them."""
        raise NotImplementedError

    def look_again(self, run: Run, conf: Mapping[str, Any], name: str) -> None:
        """What the plug-in checks once more between the address and the endpoint (GenerateHcnEndpoint)."""
        hcn.find(run.machine, "Endpoint", Name=name)
        _ask_for_dsr(run, conf)

    def mac(self, conf: Mapping[str, Any], address: Interface) -> str:
        """The MAC address that the plug-in asks for; empty where HNS chooses."""
        return ""

    def _make(
        self, run: Run, conf: dict[str, Any], network: Mapping[str, Any], name: str, address: Interface
    ) -> dict[str, Any]:
        """An endpoint as hcsshim writes it (pkg/hns/endpoint_windows.go, GenerateHcnEndpoint): without a prefix length."""
        self.look_again(run, conf, name)
        gateway, everywhere = (
            str(self.gateway(address, network)),
            "0.0.0.0/0" if address.version == 4 else "::/0",
        )
        policies, mac = self.policies(conf, network, address), self.mac(conf, address)
        document: dict[str, Any] = {
            "Name": name,
            "HostComputeNetwork": network["ID"],
            **({"Policies": policies} if policies else {}),
            "IpConfigurations": [{"IpAddress": str(address.ip)}],
            "Dns": _dns(conf),
            "Routes": [{"NextHop": gateway, "DestinationPrefix": everywhere}],
            **({"MacAddress": mac} if mac else {}),
            "Health": {"Extra": {}},
            **hcn.SCHEMA,
        }
        try:
            made = hcn.create(run.machine, "Endpoint", document)
            hcn.add_to_namespace(run.machine, run.env["CNI_NETNS"], str(made["ID"]))
        except GoError as e:
            raise GoError(f"error while adding HostComputeEndpoint: {e}") from None
        return made


def _ask_for_dsr(run: Run, conf: Mapping[str, Any]) -> None:
    """hcn.DSRSupported, which hcsshim remembers."""
    if conf.get("loopbackDSR"):
        hcn.call(run.machine, "GET", "/globals/version")


def _dns(conf: Mapping[str, Any]) -> dict[str, Any]:
    """What the runtime gives comes before the configuration (netconf_windows.go, GetDNS)."""
    own, runtime = conf.get("dns") or {}, (conf.get("runtimeConfig") or {}).get("dns") or {}
    found = {
        "Domain": own.get("domain"),
        "Search": runtime.get("searches") or runtime.get("search") or own.get("search"),
        "ServerList": runtime.get("servers") or runtime.get("nameservers") or own.get("nameservers"),
        "Options": own.get("options"),
    }
    return {key: value for key, value in found.items() if value}


def _lower(dns: Mapping[str, Any]) -> dict[str, Any]:
    """The same in a CNI result."""
    names = {"Domain": "domain", "Search": "search", "ServerList": "nameservers", "Options": "options"}
    return {names[key]: value for key, value in dns.items()}


def _configured(conf: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = [p.get("value") or p.get("Value") for p in conf.get("policies") or [] if isinstance(p, dict)]
    return [p for p in given if isinstance(p, dict)]


def _masqueraded(policies: list[dict[str, Any]], network: str) -> list[dict[str, Any]]:
    """With an OutBoundNAT for `network`, unless one of the configuration names exactly that among its exceptions, with
    exactly these keys (ApplyOutboundNatPolicy). Two of them leave it open which one holds."""
    has = any(
        p.get("Type") == "OutBoundNAT" and network in ((p.get("Settings") or {}).get("Exceptions") or [])
        for p in policies
    )
    own = {"Type": "OutBoundNAT", "Settings": {"Exceptions": [network]}}
    return policies if has or not network else [*policies, own]


def _masqueraded_first(policies: list[dict[str, Any]], network: str) -> list[dict[str, Any]]:
    """ApplyOutboundNatPolicy of the first version: the network goes to the end of the first OutBoundNAT's list."""
    if not network:
        return policies
    for index, one in enumerate(policies):
        if str(one.get("Type", "")).lower() == "outboundnat":
            kept = [each for each in one.get("ExceptionList") or [] if each != network]
            added = {"Type": "OutBoundNAT", "ExceptionList": [*kept, network]}
            return [*policies[:index], added, *policies[index + 1 :]]
    return [*policies, {"Type": "OutBoundNAT", "ExceptionList": [network]}]


def _port_mappings(conf: Mapping[str, Any]) -> list[dict[str, Any]]:
    """ApplyPortMappingPolicy."""
    return [
        {
            "Type": "PortMapping",
            "Settings": {
                "InternalPort": mapping.get("containerPort"),
                "ExternalPort": mapping.get("hostPort"),
                "Protocol": 17 if str(mapping.get("protocol", "tcp")).lower() == "udp" else 6,
                "VIP": mapping.get("hostIP", ""),
            },
        }
        for mapping in (conf.get("runtimeConfig") or {}).get("portMappings") or []
    ]


def _loopback(conf: Mapping[str, Any], address: Interface) -> list[dict[str, Any]]:
    """ApplyLoopbackDSRPolicy."""
    own = {"Type": "OutBoundNAT", "Settings": {"Destinations": [str(address.ip)]}}
    return [own] if conf.get("loopbackDSR") else []


class WinBridge(WinPlugin):
    """L2Bridge: the gateway is the second address, where the host's endpoint sits."""

    about = "CNI win-bridge plugin"
    first_types = ("L2Bridge", "L2Tunnel")

    def first_policies(self, run: Run, conf: dict[str, Any], network: Mapping[str, Any]) -> list[Any]:
        """As below, of the first version (cmdHnsAdd)."""
        found = super().first_policies(run, conf, network)
        return _masqueraded_first(found, str(conf.get("ipMasqNetwork") or ""))

    def policies(self, conf: dict[str, Any], network: Mapping[str, Any], address: Interface) -> list[Any]:
        """NAT for `ipMasqNetwork`, port mappings, loopback (win-bridge_windows.go, processEndpointArgs)."""
        found = _masqueraded(_configured(conf), str(conf.get("ipMasqNetwork") or ""))
        return [*found, *_port_mappings(conf), *_loopback(conf, address)]


class WinOverlay(WinPlugin):
    """Overlay: the gateway is the network's; a provider address policy is added."""

    about = "CNI win-overlay plugin"
    first_types = ("Overlay",)

    def first_policies(self, run: Run, conf: dict[str, Any], network: Mapping[str, Any]) -> list[Any]:
        """The provider address, and with `ipMasq` NAT for the node's own subnet (cmdHnsAdd)."""
        found = super().first_policies(run, conf, network)
        if not any(one.get("PA") for one in found):
            found.append({"Type": "PA", "PA": network["ManagementIP"]})
        own = network["Subnets"][0]["AddressPrefix"] if conf.get("ipMasq") else ""
        return _masqueraded_first(found, own)

    def network(self, run: Run, name: str) -> dict[str, Any]:
        """The network must be an overlay. The plug-in reads it in the first version of the API, too."""
        first = hcn.network(run.machine, name)
        found = super().network(run, name)
        if first is None or found["Type"] != "Overlay":
            raise GoError(f"network {name} is of an unexpected type: {found['Type']}")
        return {**found, "First": first}

    def gateway(self, address: Interface, network: Mapping[str, Any]) -> Address:
        """The overlay's gateway."""
        return ipaddress.ip_address(network["First"]["Subnets"][0]["GatewayAddress"])

    def look_again(self, run: Run, conf: Mapping[str, Any], name: str) -> None:
        """As above; its own loopback policy comes first."""
        _ask_for_dsr(run, conf)
        hcn.find(run.machine, "Endpoint", Name=name)

    def mac(self, conf: Mapping[str, Any], address: Interface) -> str:
        """Made of the address, behind a prefix (endpointMacPrefix)."""
        prefix = conf.get("endpointMacPrefix") or "0E-2A"
        return f"{prefix}-" + "-".join(f"{part:02x}" for part in address.ip.packed)

    def policies(self, conf: dict[str, Any], network: Mapping[str, Any], address: Interface) -> list[Any]:
        """Loopback, the provider address, and with `ipMasq` NAT for the node's own subnet, not for `ipMasqNetwork`; no port
        mappings (win-overlay_windows.go, processEndpointArgs and cmdHcnAdd)."""
        found = [*_configured(conf), *_loopback(conf, address)]
        if not any(p.get("Type") == "ProviderAddress" for p in found):
            provider = {"ProviderAddress": network["First"]["ManagementIP"]}
            found.append({"Type": "ProviderAddress", "Settings": provider})
        own = network["First"]["Subnets"][0]["AddressPrefix"] if conf.get("ipMasq") else ""
        return _masqueraded(found, own)


class Azure(Plugin):
    """azure-vnet: makes the HNS network with the first pod, and takes the old (v1) form of policies."""

    about = "Azure CNI"
    NETWORK: Final = "azure"
    CNS: Final = "azure-cns"
    CNS_PORT: Final = 10090

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """Take one of the adapter's further addresses, make network and endpoint. It goes back where they are not made
        (azure-container-networking, cni/network/network.go, cleanupAllocationOnError)."""
        lease = self._lease(run, conf)
        try:
            return self._connect(run, conf, lease)
        except GoError:
            self._give_back(run, conf)
            raise

    def _connect(self, run: Run, conf: dict[str, Any], lease: dict[str, Any]) -> dict[str, Any]:
        name = f"{run.env['CNI_CONTAINERID'][:8]}-{run.env['CNI_IFNAME']}"
        address = ipaddress.ip_interface(lease["ips"][0]["address"])
        network = self._network(run, conf, address)
        policies = [p.get("Value") or p.get("value") for p in conf.get("AdditionalArgs") or []]
        for policy in policies:
            if "Settings" in policy:
                raise GoError(
                    f"failed to parse policy {policy.get('Type')}: the plugin knows the form with ExceptionList"
                )
        request = {
            "Name": name,
            "VirtualNetwork": network["ID"],
            "IPAddress": str(address.ip),
            "PrefixLength": address.network.prefixlen,
            "DNSServerList": ",".join((conf.get("dns") or {}).get("Nameservers") or []),
            "DNSSuffix": self._suffix(run, conf),
            "Policies": [*policies, *self._nat(run, conf, address)],
            "Namespace": {"ID": run.env["CNI_NETNS"]},
        }
        hcn.call(run.machine, "POST", "/endpoints/", request)
        return {
            "cniVersion": "0.3.0",
            "ips": [{"version": "4", "address": str(address), "gateway": lease["ips"][0]["gateway"]}],
        }

    def _suffix(self, run: Run, conf: Mapping[str, Any]) -> str:
        """The pod's namespace before what the configuration searches: getEndpointDNSSettings of azure-container-networking
        (cni/network/network_windows.go)."""
        search = (conf.get("dns") or {}).get("Search") or []
        words = dict(pair.partition("=")[::2] for pair in run.env.get("CNI_ARGS", "").split(";"))
        return f"{words.get('K8S_POD_NAMESPACE', '')}.{','.join(search)}" if search else ""

    def _nat(self, run: Run, conf: Mapping[str, Any], address: Interface) -> list[dict[str, Any]]:
        """What pods need to reach the fabric's DNS and the metadata service: getNATInfo of azure-container-networking
        (cni/network/network_windows.go) and AddNATPolicyV2 (network/policy/policy_windows.go). Windows before 1903 has no
        such NAT. The lab has no network container: its primary address is the fourth of the net."""
        if conf.get("executionMode") != "v4swift" or run.machine.build < 18362:
            return []
        container = str(address.network[4])
        return [
            {"Type": "OutBoundNAT", "Settings": {"VirtualIP": container, "Destinations": ["168.63.129.16"]}},
            {"Type": "OutBoundNAT", "Settings": {"Destinations": ["169.254.169.254"]}},
        ]

    def _lease(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """From an IPAM plug-in, or from the container networking service of the node."""
        kind = conf["ipam"]["type"]
        if kind != self.CNS:
            return cni.invoke(run, "ADD", {**conf, "type": kind}, _sandbox(run), _folders(run))
        if not any(one.port == self.CNS_PORT for one in run.machine.sockets.listeners):
            raise GoError(
                f"Failed to allocate address: Post http://localhost:{self.CNS_PORT}/network/requestipconfigs: dial tcp "
                f"127.0.0.1:{self.CNS_PORT}: No connection could be made because the target machine actively refused it."
            )
        return AzureIpam().add(run, conf)

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Give the endpoint and the address back."""
        self._give_back(run, conf)
        found = hcn.endpoint(run.machine, f"{run.env['CNI_CONTAINERID'][:8]}-{run.env['CNI_IFNAME']}")
        if found is not None:
            hcn.call(run.machine, "DELETE", f"/endpoints/{found['ID']}")

    def _give_back(self, run: Run, conf: dict[str, Any]) -> None:
        if conf["ipam"]["type"] == self.CNS:
            AzureIpam().delete(run, conf)
        else:
            cni.invoke(run, "DEL", {**conf, "type": conf["ipam"]["type"]}, _sandbox(run), _folders(run))

    def _network(self, run: Run, conf: Mapping[str, Any], address: Interface) -> dict[str, Any]:
        found = hcn.network(run.machine, str(conf.get("name") or self.NETWORK))
        if found is not None:
            return found
        kind = "L2Tunnel" if conf.get("mode") == "tunnel" else "L2Bridge"
        net = address.network
        request = {
            "Name": str(conf.get("name") or self.NETWORK),
            "Type": kind,
            "Subnets": [{"AddressPrefix": str(net), "GatewayAddress": str(net[1])}],
        }
        made: dict[str, Any] = hcn.call(run.machine, "POST", "/networks/", request)
        return made


class AzureIpam(Plugin):
    """azure-vnet-ipam: the further addresses of the adapter. In the lab they follow the machine's own address."""

    about = "Azure IPAM"
    STATE: Final = "/k/azure-vnet-ipam.json"
    COUNT: Final = 30

    def add(self, run: Run, conf: dict[str, Any]) -> dict[str, Any]:
        """The next free one."""
        lan = run.machine.network.lan
        net = ipaddress.ip_interface(f"{lan.address}/{lan.prefix_length}").network
        taken = self._state(run)
        for offset in range(1, self.COUNT):
            # A block of its own at the upper end, so that no other machine's address is in it.
            number = (
                int(net.broadcast_address)
                - self.COUNT * (int(ipaddress.ip_address(lan.address)) % 8 + 1)
                + offset
            )
            address = str(ipaddress.ip_address(number))
            if address not in taken:
                self._keep(run, {**taken, address: run.env["CNI_CONTAINERID"]})
                return {
                    "cniVersion": "0.3.0",
                    "ips": [
                        {"version": "4", "address": f"{address}/{net.prefixlen}", "gateway": str(net[1])}
                    ],
                }
        raise GoError("Failed to allocate address: No available addresses")

    def delete(self, run: Run, conf: dict[str, Any]) -> None:
        """Give back what the container has."""
        self._keep(run, {a: c for a, c in self._state(run).items() if c != run.env["CNI_CONTAINERID"]})

    def _state(self, run: Run) -> dict[str, str]:
        path = run.path(self.STATE)
        return dict(json.loads(run.read(path))) if run.machine.files.exists(path) else {}

    def _keep(self, run: Run, state: dict[str, str]) -> None:
        run.write(run.path(self.STATE), json.dumps(state).encode("ascii"))


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
