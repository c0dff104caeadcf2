"""Host networking: HNS networks, endpoints and policy lists behind the JSON API of vmcompute.dll's HNSCall.

What matters to a node is kept: which networks hang on which adapter, and which survive a reboot. Making the first
network on an adapter re-plumbs it (network.py) with all that this breaks.
"""

from __future__ import annotations

import copy
import ipaddress
import json
import re
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.host import Host
from winboot_lab.windows.network import Adapter, Address, Network, Route
from winboot_lab.windows.registry import SERVICES
from winboot_lab.windows.scm import ServiceControl
from winboot_lab.windows.snapshot import Tree

Json: TypeAlias = dict[str, Any]

TYPES = ("l2bridge", "overlay", "transparent", "nat", "l2tunnel", "ics", "internal")
_ON_ADAPTER = ("l2bridge", "overlay", "transparent", "l2tunnel")
NON_PERSISTENT = 8
# HNS of this version has V2, remote subnets and HostRoute (HostRouteVersion of microsoft/hcsshim hcn/hcnglobals.go).
_HOST_ROUTE_SINCE = (9, 2)
# EndpointState of microsoft/hcsshim internal/hns/hnsendpoint.go: 4 is "detached, after being attached".
# Unsourced: endpoint-detached-state.
_CREATED, _ATTACHED, _SHARED, _DETACHED = 1, 2, 3, 4
GUID = re.compile(r"\{?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")

_NETWORK_KEYS = frozenset(
    [
        "ID",
        "Name",
        "Type",
        "NetworkAdapterName",
        "SourceMac",
        "Policies",
        "MacPools",
        "Subnets",
        "DNSSuffix",
        "DNSServerList",
        "DNSServerCompartment",
        "ManagementIP",
        "AutomaticDNS",
        "Flags",
        "IsolateSwitch",
    ]
)
_ENDPOINT_KEYS = frozenset(
    [
        "ID",
        "Name",
        "VirtualNetwork",
        "VirtualNetworkName",
        "Policies",
        "MacAddress",
        "IPAddress",
        "IPv6Address",
        "DNSSuffix",
        "DNSServerList",
        "DNSDomain",
        "GatewayAddress",
        "GatewayAddressV6",
        "EnableInternalDNS",
        "DisableICC",
        "PrefixLength",
        "IPv6PrefixLength",
        "IsRemoteEndpoint",
        "EnableLowMetric",
        "Namespace",
        "EncapOverhead",
        "SharedContainers",
        "Flags",
    ]
)
_POLICY_LIST_KEYS = frozenset(["ID", "References", "Policies"])


class HnsError(Exception):
    """HNS says no: an HRESULT and its text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _exists() -> HnsError:
    return HnsError(0x803B0010, "The object already exists.")


def _not_found(what: str) -> HnsError:
    return HnsError(0x803B0001 if what == "network" else 0x803B0002, f"The {what} was not found.")


def _no_endpoint() -> HnsError:
    return HnsError(0x800706D9, "There are no more endpoints available from the endpoint mapper.")


def _has_host_route(network: Json) -> bool:
    return any(one.get("Type") == "HostRoute" for one in network["Policies"])


def _wrong_parameter() -> HnsError:
    return HnsError(0x80070057, "The parameter is incorrect.")


class Hns:
    """All HNS objects of the machine."""

    def __init__(self, machine: Host, network: Network, services: ServiceControl) -> None:
        self._machine, self._network, self._services = machine, network, services
        services.stopped["hns"] = self.service_stopped
        self.networks: dict[str, Json] = {}
        self.endpoints: dict[str, Json] = {}
        self.policy_lists: dict[str, Json] = {}
        # The index of the adapter that each network is on.
        self._places: dict[str, int] = {}
        self._next_error: HnsError | None = None
        # Faults: how often, and how long (lab seconds), calls of a method below a path hang.
        self._hangs: list[tuple[str, str, float]] = []
        # A fault: how long (lab seconds) HNS answers no call once it has taken an adapter; and until when it does so now.
        self._stalling = 0.0
        self._stalled_until = 0.0
        # What the call that began it is answered with, where its caller still waits.
        self._late: tuple[str, str] | None = None
        # A fault: load balancers are in a state in which no network goes before them.
        self.blocking_lists = False
        # A fault: so many attachments are refused, as right after a network was made (flannel-io/flannel#1112).
        self.busy_attachments = 0
        # How long (lab seconds) it takes until a new network knows its ManagementIP. Unsourced: management-address-delay.
        self.management_delay = 1.0

    # ---- the door --------------------------------------------------------------------------------------

    def call(self, method: str, path: str, request: str) -> str:
        """HNSCall: the JSON answer with Success, and Output or Error."""
        if not self._services.running("hns"):
            return _failed(_no_endpoint())
        if self._late is not None and self._late[0] == request and request:
            return self._late[1]
        return self._answer(method, path, request)

    def _answer(self, method: str, path: str, request: str) -> str:
        try:
            body = json.loads(request) if request else {}
            output = self._route(method.upper(), [p for p in path.split("/") if p], body)
        except HnsError as failed:
            return _failed(failed)
        except ValueError:
            return _failed(HnsError(0x803B001B, "The specified JSON document is invalid."))
        return json.dumps({"Success": True, "Output": output})

    def fail_next(self, code: int, message: str) -> None:
        """A fault: the next creation of a network or endpoint fails so."""
        self._next_error = HnsError(code, message)

    def hang(self, method: str, path: str, *, seconds: float = 86400.0, times: int = 1) -> None:
        """A fault: the next `times` calls of a method below a path take so long. The second version's are QUERY and MODIFY.

        HNS does so in the field: azure-container-networking wraps each call in a limit (hnswrapper,
        hnsTimeoutDurationInSeconds), and AgentBaker's cleanupnetwork.ps1 reports deletions that never end.
        """
        self._hangs += [(method, path, seconds)] * times

    def forget_hangs(self) -> None:
        """The fault is over."""
        self._hangs.clear()

    def stall(self, seconds: float) -> None:
        """A fault: the next network that takes an adapter takes it, and then HNS answers no call for so long.

        Unsourced: stalled-network. Here the adapter has lost its IP and the switch's interface is not there yet, the worst
        case.
        """
        self._stalling = seconds

    @property
    def stalled(self) -> bool:
        """Whether HNS answers no call now because of it."""
        return self._machine.time.seconds < self._stalled_until

    def _stall(self, method: str, path: str, request: str) -> float:
        now = self._machine.time.seconds
        creates = (method.upper(), path.strip("/")) == ("POST", "networks")
        if self._stalling and not self.stalled and creates:
            body = json.loads(request)
            adapter = self._taking(body)
            if adapter is not None:
                seconds, self._stalling = self._stalling, 0.0
                self._stalled_until = now + seconds
                self._network.take(adapter, "")
                self._machine.after(seconds, lambda: self._complete(path, request))
        return max(0.0, self._stalled_until - now)

    def _taking(self, body: Json) -> Adapter | None:
        """The adapter that a new network would take, which has no switch yet."""
        if str(body.get("Type", "")).lower() not in _ON_ADAPTER:
            return None
        try:
            adapter = self._uplink(str(body.get("NetworkAdapterName") or ""))
        except HnsError:
            return None
        return adapter if adapter.switch is None else None

    def _complete(self, path: str, request: str) -> None:
        """HNS continues, whether or not a caller still waits for it."""
        self._late = (request, self._answer("POST", path, request))

        def forget() -> None:
            self._late = None

        self._machine.after(0.5, forget)

    def hanging(self, method: str, path: str, request: str = "") -> float:
        """How long this call takes; 0 where nothing is wrong."""
        if stalled := self._stall(method, path, request):
            return stalled
        # "requires the hns policy list to be removed before network" (AgentBaker, cleanupnetwork.ps1, of 17763.1554).
        if (
            self._machine.build == 17763
            and self.policy_lists
            and (method.upper(), path[:10]) == ("DELETE", "/networks/")
        ):
            return 86400.0
        for one in self._hangs:
            if one[0] == method.upper() and path.startswith(one[1]):
                self._hangs.remove(one)
                return one[2]
        return 0.0

    def _route(self, method: str, parts: list[str], body: Json) -> Any:
        match method, parts:
            case "GET", ["globals", "version"]:
                major, minor = self._machine.release.hns_version
                return {"Major": major, "Minor": minor}
            case "GET", ["networks"]:
                return self.list(self.networks)
            case "GET", ["endpoints"]:
                return self.list(self.endpoints)
            case "GET", ["policylists"]:
                return self.list(self.policy_lists)
            case "POST", ["networks"]:
                return copy.deepcopy(self.create_network(body))
            case "POST", ["endpoints"]:
                return copy.deepcopy(self.create_endpoint(body))
            case "POST", ["policylists"]:
                return copy.deepcopy(self.create_policy_list(body))
            case "GET", [kind, identity]:
                return copy.deepcopy(self._find(kind, identity))
            case "DELETE", [kind, identity]:
                return self._delete(kind, identity)
            case "POST", ["networks", identity]:
                return self._update(self._find("networks", identity), body, _NETWORK_KEYS)
            case "POST", ["endpoints", identity]:
                return self._update(self._find("endpoints", identity), body, _ENDPOINT_KEYS)
            case "POST", ["endpoints", identity, "attach"]:
                return self.attach(self._find("endpoints", identity), body)
            case "POST", ["endpoints", identity, "detach"]:
                return self.detach(self._find("endpoints", identity))
            case _:
                raise Refusal("value", f"HNSCall {method} /{'/'.join(parts)}")

    def _table(self, kind: str) -> dict[str, Json]:
        tables = {"networks": self.networks, "endpoints": self.endpoints, "policylists": self.policy_lists}
        if kind not in tables:
            raise Refusal("value", f"HNS /{kind}")
        return tables[kind]

    def _find(self, kind: str, identity: str) -> Json:
        found = self._table(kind).get(identity.strip("{}").upper())
        if found is None:
            raise _not_found(kind.rstrip("s"))
        return found

    def list(self, table: dict[str, Json]) -> list[Json]:
        """Copies of all objects of a table."""
        return [copy.deepcopy(o) for o in table.values()]

    def by_name(self, table: dict[str, Json], name: str) -> Json | None:
        """The first object of a name, without case."""
        return next((o for o in table.values() if str(o.get("Name", "")).lower() == name.lower()), None)

    def _identity(self, asked: object) -> str:
        return str(asked).strip("{}").upper() if asked else str(uuid.uuid4()).upper()

    def _known(self, body: Json, keys: frozenset[str], what: str) -> Json:
        # HNS reads key names without case; what the model does not know is refused, never dropped.
        spelled = {k.lower(): k for k in keys}
        unknown = [k for k in body if k.lower() not in spelled]
        if unknown:
            raise Refusal("value", unknown[0], f"an unknown key of an HNS {what}")
        return {spelled[k.lower()]: v for k, v in body.items()}

    def _trip(self) -> None:
        if self._next_error is not None:
            error, self._next_error = self._next_error, None
            raise error

    # ---- networks --------------------------------------------------------------------------------------

    def create_network(self, body: Json) -> Json:
        """Make a network. The first one on an adapter re-plumbs it."""
        self._trip()
        # docker/for-win#9474: with the firewall's services off HNS answers so. Unsourced: hns-without-a-firewall.
        if not self._services.running("mpssvc"):
            raise _no_endpoint()
        wanted = self._known(body, _NETWORK_KEYS, "network")
        name, kind = str(wanted.get("Name", "")), str(wanted.get("Type", ""))
        if kind.lower() not in TYPES:
            raise _wrong_parameter()
        if name and self.by_name(self.networks, name) is not None:
            raise _exists()
        subnets = [self._subnet(s) for s in wanted.get("Subnets") or []]
        network: Json = {
            "ActivityId": str(uuid.uuid4()).upper(),
            "ID": self._identity(wanted.get("ID")),
            "Name": name,
            "Type": next(
                t
                for t in ("L2Bridge", "Overlay", "Transparent", "NAT", "L2Tunnel", "ICS", "Internal")
                if t.lower() == kind.lower()
            ),
            "State": 1,
            "Version": 64424509440 + self._machine.release.hns_version[0],
            "Policies": list(wanted.get("Policies") or []),
            "Subnets": subnets,
            "MacPools": wanted.get("MacPools")
            or [{"StartMacAddress": "00-15-5D-52-C0-00", "EndMacAddress": "00-15-5D-52-CF-FF"}],
            "DNSSuffix": wanted.get("DNSSuffix", ""),
            "DNSServerList": wanted.get("DNSServerList", ""),
            "AutomaticDNS": bool(wanted.get("AutomaticDNS", False)),
            "Flags": int(wanted.get("Flags", 0)),
            "ManagementIP": wanted.get("ManagementIP", ""),
            "NetworkAdapterName": "",
            "SourceMac": wanted.get("SourceMac", ""),
            "IsolateSwitch": bool(wanted.get("IsolateSwitch", False)),
            "TotalEndpoints": 0,
            "CurrentEndpointCount": 0,
        }
        if kind.lower() in _ON_ADAPTER:
            self._place(network, str(wanted.get("NetworkAdapterName") or ""))
        if kind.lower() == "overlay":
            network["Policies"] = [*network["Policies"], self._router_mac(network["ID"])]
        self.networks[network["ID"]] = network
        return network

    def _router_mac(self, identity: str) -> Json:
        digits = identity.replace("-", "")
        return {
            "Type": "DrMacAddress",
            "Address": "00-15-5D-" + "-".join(digits[i : i + 2] for i in (0, 2, 4)),
        }

    def _subnet(self, asked: Json) -> Json:
        prefix = str(asked.get("AddressPrefix", ""))
        try:
            net = ipaddress.ip_network(prefix)
        except ValueError:
            raise _wrong_parameter() from None
        gateway = str(asked.get("GatewayAddress", ""))
        if gateway and gateway != "0.0.0.0" and ipaddress.ip_address(gateway) not in net:
            raise _wrong_parameter()
        return {
            "AdditionalParams": {},
            "AddressPrefix": prefix,
            "GatewayAddress": gateway,
            "Flags": 0,
            "Policies": asked.get("Policies") or [],
            "State": 0,
        }

    def _place(self, network: Json, asked: str) -> None:
        adapter = self._uplink(asked)
        # Unsourced: renamed-adapter. Here it stays the old one.
        network["NetworkAdapterName"] = adapter.name
        # Every network on one adapter must be of one kind. A bridge and an overlay do not share a switch ("no available NIC for
        # the HNS network to be created on", microsoft/SDN#269). Unsourced: one-kind-per-adapter-words.
        if any(one["Type"] != network["Type"] for one in self._on(adapter)):
            raise _wrong_parameter()
        carrier = adapter
        if adapter.virtual is not None:
            carrier = adapter.virtual
        elif adapter.switch is None or not self._on(adapter):
            carrier = self._network.bind_switch(adapter, network["ID"], keep_static=self._keeps_static())
        self._places[network["ID"]] = adapter.index
        if not network["ManagementIP"]:
            self._machine.after(self.management_delay, lambda: self._learn_management(network, carrier))

    def _on(self, adapter: Adapter) -> tuple[Json, ...]:
        """The networks on an adapter, whatever its name is by now."""
        return tuple(n for n in self.networks.values() if self._places.get(n["ID"]) == adapter.index)

    def _uplink(self, asked: str) -> Adapter:
        net = self._network
        # "per hns team, the hns calls fails if passed a vSwitch interface" (azure-container-networking,
        # network/network_windows.go): the interface of a switch is no adapter to name.
        adapter = net.adapter(asked) if asked else self._picked()
        if adapter is None or not adapter.physical:
            raise HnsError(0x803B0006, "The specified network adapter was not found.")
        if adapter.team and self._machine.build >= 20348:
            # No switch binds to a team of the kind LBFO from Windows Server 2022 on (New-VMSwitch, -AllowNetLbfoTeams).
            raise HnsError(0x80070032, "The request is not supported.")
        return adapter

    def _picked(self) -> Adapter | None:
        """The adapter where none is named: one with a switch, else any; the model's is the first that Windows lists.

        HNS picks an adapter at random (azure-container-networking, network/network_windows.go, PR 813). It uses an existing
        switch again: SDN's KubeCluster.ps1 relies on that. It makes `External` on the adapter named, then starts flanneld,
        which names none.
        """
        usable = [a for a in self._network.adapters if a.physical and a.up]
        return next((a for a in usable if a.switch is not None), next(iter(usable), None))

    def _keeps_static(self) -> bool:
        # 2004 and 20H2 lose static settings, 1909 did not (microsoft/SDN#498); Calico's users lose them at each restart
        # (projectcalico/calico#4631). Unsourced: static-address-on-a-switch.
        release = self._machine.release
        if release.keeps_static_address:
            return True
        flag = self._machine.registry.number(SERVICES + r"\hns\State", "DeviceLessNicDisabled")
        return release.name == "2019" and flag == 1

    def _learn_management(self, network: Json, carrier: Adapter) -> None:
        # HNS fills it in after it made the network: flanneld asks each half second, for 30 seconds (flannel hostgw_windows.go,
        # "Wait for the network to populate Management IP").
        usable = [a for a in carrier.ipv4 if a.origin in ("Manual", "Dhcp") and a.state == "Preferred"]
        if usable:
            network["ManagementIP"] = usable[0].ip
            network["SourceMac"] = carrier.mac
        elif network["ID"] in self.networks:
            latched = [a for a in carrier.ipv4 if a.origin == "Link"]
            if latched:
                network["ManagementIP"] = latched[0].ip
            else:
                self._machine.after(1.0, lambda: self._learn_management(network, carrier))

    def _delete(self, kind: str, identity: str) -> Json:
        found = self._find(kind, identity)
        if kind == "endpoints":
            self.remove_endpoint(found)
        elif kind == "networks":
            self.remove_network(found)
        else:
            del self.policy_lists[found["ID"]]
        return {}

    def remove_network(self, network: Json) -> None:
        """Remove a network with its endpoints; the last one of an adapter gives it back. The adapter has its address again
        ("If I remove the HNS Network, then the IP comes back", microsoft/SDN#498)."""
        if self.blocking_lists and self.policy_lists:
            # From 17763.1554 on (AgentBaker, cleanupnetwork.ps1). What HNS says then is recorded nowhere: no script may
            # build on this code.
            raise HnsError(
                0x80070020, "The process cannot access the file because it is being used by another process."
            )
        for endpoint in [e for e in self.endpoints.values() if e["VirtualNetwork"] == network["ID"]]:
            self.remove_endpoint(endpoint)
        del self.networks[network["ID"]]
        adapter = self._network.by_index(self._places.pop(network["ID"], 0))
        if adapter is None or self._on(adapter):
            return
        self._network.release_switch(adapter, keep_static=self._keeps_static())

    def _update(self, found: Json, body: Json, keys: frozenset[str]) -> Json:
        found.update({k: v for k, v in self._known(body, keys, "object").items() if k not in ("ID", "Name")})
        return copy.deepcopy(found)

    # ---- the second version --------------------------------------------------------------------------

    def properties(self, identity: str, query: str) -> str:
        """HcnQueryNetworkProperties: what of it is modelled, in the schema of version 2."""
        asked = json.loads(query)
        if asked != {"SchemaVersion": {"Major": 2, "Minor": 0}}:
            raise Refusal("value", query, "an HCN query other than the default one")
        network = self._find("networks", identity)
        found = {"ID": network["ID"], "Name": network["Name"], "Type": network["Type"]}
        policies = [{"Type": "HostRoute", "Settings": {}}] if _has_host_route(network) else []
        return json.dumps({**found, "Policies": policies})

    def modify(self, identity: str, settings: str) -> None:
        """HcnModifyNetwork: AddPolicy and RemovePolicy (hcsshim, hcnnetwork.go) of an overlay, for HostRoute and remote
        subnets. The first version shows HostRoute without settings (Get-HnsNetwork in knabben.github.io/2021/0903)."""
        network, asked = self._find("networks", identity), json.loads(settings)
        if asked["ResourceType"] != "Policy" or asked["RequestType"] not in ("Add", "Remove"):
            raise Refusal("value", settings, "a change of an HCN network other than one of its policies")
        for policy in asked["Settings"]["Policies"]:
            if policy["Type"] not in ("HostRoute", "RemoteSubnetRoute"):
                raise Refusal("value", settings, "an HCN policy other than HostRoute and RemoteSubnetRoute")
            if network["Type"] != "Overlay" or self._machine.release.hns_version < _HOST_ROUTE_SINCE:
                raise _wrong_parameter()
            one = {"Type": policy["Type"], **policy["Settings"]}
            network["Policies"] = [known for known in network["Policies"] if known != one]
            if asked["RequestType"] == "Add":
                network["Policies"].append(one)

    def join(self, identity: str, namespace: str) -> None:
        """HcnModifyNamespace: an endpoint is a sandbox's from now on, or no one's."""
        if namespace and not GUID.fullmatch(namespace):
            raise Refusal("value", namespace, "a namespace whose id is no GUID")
        state = _SHARED if namespace else _DETACHED
        given = {"Namespace": {"ID": namespace} if namespace else {}, "State": state}
        self._find("endpoints", identity).update(given)

    def share(self, identity: str, container: str) -> None:
        """HotAttachEndpoint of hcsshim, for runtimes that know no namespaces: a container has the endpoint, too."""
        endpoint = self._find("endpoints", identity)
        if container not in endpoint["SharedContainers"]:
            endpoint["SharedContainers"].append(container)
        endpoint["State"] = _SHARED

    def unshare(self, identity: str, container: str) -> None:
        """The container has it no more."""
        endpoint = self._find("endpoints", identity)
        if container in endpoint["SharedContainers"]:
            endpoint["SharedContainers"].remove(container)
        if not endpoint["SharedContainers"]:
            endpoint["State"] = _DETACHED

    def host_reaches(self, address: str) -> bool:
        """Whether packets of the host itself arrive at a local endpoint: on an overlay only with HostRoute
        (hcsshim hcnglobals.go; flannel-io/flannel#1170)."""
        for endpoint in self.endpoints.values():
            if endpoint["IPAddress"] == address and not endpoint["IsRemoteEndpoint"]:
                network = self.networks[endpoint["VirtualNetwork"]]
                return network["Type"] != "Overlay" or _has_host_route(network)
        return False

    # ---- endpoints -------------------------------------------------------------------------------------

    def create_endpoint(self, body: Json) -> Json:
        """Make an endpoint; without an address it gets a free one of its network."""
        self._trip()
        wanted = self._known(body, _ENDPOINT_KEYS, "endpoint")
        network = self._network_of(wanted)
        name = str(wanted.get("Name", ""))
        if name and self.by_name(self.endpoints, name) is not None:
            raise _exists()
        address = str(wanted.get("IPAddress") or self._free_address(network))
        taken = [e for e in self.endpoints.values() if e["VirtualNetwork"] == network["ID"]]
        if any(e["IPAddress"] == address and not e.get("IsRemoteEndpoint") for e in taken):
            words = "The IP address is either invalid or not part of any configured subnet(s)."
            raise HnsError(0x803B002F, words)
        endpoint: Json = {
            "ActivityId": str(uuid.uuid4()).upper(),
            "ID": self._identity(wanted.get("ID")),
            "Name": name,
            "VirtualNetwork": network["ID"],
            "VirtualNetworkName": network["Name"],
            "Type": network["Type"],
            "State": _SHARED if (wanted.get("Namespace") or {}).get("ID") else _CREATED,
            "IPAddress": address,
            "PrefixLength": int(wanted.get("PrefixLength") or self._prefix_length(network, address)),
            "MacAddress": wanted.get("MacAddress") or self._mac(address),
            "GatewayAddress": wanted.get("GatewayAddress", self._gateway(network, address)),
            "DNSSuffix": wanted.get("DNSSuffix", ""),
            "DNSServerList": wanted.get("DNSServerList", ""),
            "Policies": wanted.get("Policies") or [],
            "IsRemoteEndpoint": bool(wanted.get("IsRemoteEndpoint", False)),
            "Namespace": wanted.get("Namespace") or {},
            "SharedContainers": list(wanted.get("SharedContainers") or []),
            "Resources": {},
            "EnableInternalDNS": bool(wanted.get("EnableInternalDNS", False)),
        }
        self.endpoints[endpoint["ID"]] = endpoint
        network["TotalEndpoints"] = network["CurrentEndpointCount"] = len(taken) + 1
        return endpoint

    def _network_of(self, wanted: Json) -> Json:
        identity = str(wanted.get("VirtualNetwork") or "").strip("{}").upper()
        found = self.networks.get(identity) if identity else None
        if found is None and wanted.get("VirtualNetworkName"):
            found = self.by_name(self.networks, str(wanted["VirtualNetworkName"]))
        if found is None:
            raise _not_found("network")
        return found

    def _free_address(self, network: Json) -> str:
        taken = {e["IPAddress"] for e in self.endpoints.values() if e["VirtualNetwork"] == network["ID"]}
        for subnet in network["Subnets"]:
            for address in ipaddress.ip_network(subnet["AddressPrefix"]).hosts():
                if str(address) != subnet["GatewayAddress"] and str(address) not in taken:
                    return str(address)
        raise HnsError(0x803B002F, "No addresses are available.")

    def _prefix_length(self, network: Json, address: str) -> int:
        subnet = self._subnet_of(network, address)
        return ipaddress.ip_network(subnet["AddressPrefix"]).prefixlen if subnet else 0

    def _gateway(self, network: Json, address: str) -> str:
        subnet = self._subnet_of(network, address)
        return str(subnet["GatewayAddress"]) if subnet else ""

    def _subnet_of(self, network: Json, address: str) -> Json | None:
        for subnet in network["Subnets"]:
            if ipaddress.ip_address(address) in ipaddress.ip_network(subnet["AddressPrefix"]):
                found: Json = subnet
                return found
        return None

    def _mac(self, address: str) -> str:
        packed = ipaddress.ip_address(address).packed[-3:]
        return "00-15-5D-" + "-".join(f"{b:02X}" for b in packed)

    def attach(self, endpoint: Json, body: Json) -> Json:
        """Attach an endpoint to a compartment of the host: an interface with its address appears."""
        self._known(
            body, frozenset(("CompartmentId", "SystemType", "VirtualNICName", "ContainerID")), "attachment"
        )
        if str(body.get("SystemType", "Host")) != "Host":
            raise Refusal("value", str(body.get("SystemType")), "attaching to something other than the host")
        if self.busy_attachments:
            self.busy_attachments -= 1
            raise HnsError(0x80070032, "The request is not supported.")
        if endpoint.get("_interface"):
            raise HnsError(0x803B0014, "This endpoint is already attached to the switch.")
        net = self._network
        adapter = net.add_adapter(
            f"vEthernet ({endpoint['Name']})",
            "Hyper-V Virtual Ethernet Container Adapter",
            mac=endpoint["MacAddress"],
            physical=False,
        )
        adapter.compartment = int(body.get("CompartmentId", 1))
        address = Address(endpoint["IPAddress"], endpoint["PrefixLength"], "Manual")
        adapter.addresses.append(address)
        gateway = str(endpoint["GatewayAddress"])
        if gateway and gateway != "0.0.0.0":
            net.routes.append(Route("0.0.0.0/0", gateway, adapter.index, 5256, persistent=False))
        net.publish(adapter)
        endpoint["_interface"] = adapter.index
        endpoint["State"] = _ATTACHED
        endpoint["CompartmentId"] = adapter.compartment
        return {}

    def detach(self, endpoint: Json) -> Json:
        """Take the interface away again."""
        index = endpoint.pop("_interface", None)
        endpoint.pop("CompartmentId", None)
        endpoint["State"] = _DETACHED
        net = self._network
        adapter = net.by_index(index) if index is not None else None
        if adapter is not None:
            net.adapters.remove(adapter)
            net.routes = [r for r in net.routes if r.interface != adapter.index]
        return {}

    def remove_endpoint(self, endpoint: Json) -> None:
        """Remove an endpoint, its interface, and policy lists that name it."""
        self.detach(endpoint)
        del self.endpoints[endpoint["ID"]]
        mark = f"/endpoints/{endpoint['ID']}".lower()
        for policy in list(self.policy_lists.values()):
            if any(str(r).lower() == mark for r in policy["References"]):
                del self.policy_lists[policy["ID"]]
        network = self.networks.get(endpoint["VirtualNetwork"])
        if network is not None:
            network["CurrentEndpointCount"] -= 1

    # ---- policy lists ----------------------------------------------------------------------------------

    def create_policy_list(self, body: Json) -> Json:
        """Make a load balancer (policy list) over endpoints."""
        wanted = self._known(body, _POLICY_LIST_KEYS, "policy list")
        for reference in wanted.get("References") or []:
            parts = [p for p in str(reference).split("/") if p]
            if parts[:1] == ["endpoints"] and parts[1].upper() not in self.endpoints:
                raise _not_found("endpoint")
        made: Json = {
            "ID": self._identity(wanted.get("ID")),
            "References": list(wanted.get("References") or []),
            "Policies": list(wanted.get("Policies") or []),
            # In effect: AgentBaker's networkhealth.ps1 takes any other state for a fault.
            "State": 2,
        }
        self.policy_lists[made["ID"]] = made
        return made

    # ---- service, down, up -----------------------------------------------------------------------------

    def _persists(self, network: Json) -> bool:
        return not network["Flags"] & NON_PERSISTENT

    def service_stopped(self) -> None:
        """`Restart-Service hns`: all load balancers vanish ("HNS policies will be purged", AgentBaker hnsremediator.ps1).

        Unsourced: volatile-networks.
        """
        self._drop_volatile(self.remove_network)

    def machine_went_down(self) -> None:
        """A reboot: networks that are not persistent vanish. An adapter that was taken for one that was not made is free."""
        self._stalled_until, self._late = 0.0, None
        for adapter in self._network.adapters:
            if adapter.switch == "":
                self._network.release_switch(adapter, keep_static=self._keeps_static())
        self._drop_volatile(self.remove_network)

    def machine_came_up(self) -> None:
        """Boot: persistent networks are there again, on their adapters; nothing of what ran in pods is.

        Unsourced: networks-before-services.
        """
        for endpoint in self.endpoints.values():
            endpoint["Namespace"], endpoint["SharedContainers"] = {}, []

    def _drop_volatile(self, remove: Callable[[Json], None]) -> None:
        self.policy_lists.clear()
        for network in [n for n in self.networks.values() if not self._persists(n)]:
            remove(network)

    def tree(self) -> Tree:
        """Networks and endpoints by name; policy lists by what they balance."""
        networks: dict[str, Tree] = {}
        for network in self.networks.values():
            networks[network["Name"]] = {
                "type": network["Type"],
                "adapter": network["NetworkAdapterName"],
                "management": network["ManagementIP"],
                "subnets": [f"{s['AddressPrefix']} via {s['GatewayAddress']}" for s in network["Subnets"]],
                "persistent": self._persists(network),
            }
        endpoints: dict[str, Tree] = {}
        for endpoint in self.endpoints.values():
            endpoints[endpoint.get("Name") or endpoint["IPAddress"]] = {
                "network": endpoint["VirtualNetworkName"],
                "address": endpoint["IPAddress"],
                "attached": endpoint.get("CompartmentId"),
            }
        lists: list[Tree] = []
        lists += sorted(json.dumps(p["Policies"], sort_keys=True) for p in self.policy_lists.values())
        return {"networks": networks, "endpoints": endpoints, "policy lists": lists}


def _failed(error: HnsError) -> str:
    return json.dumps({"Success": False, "Error": error.message, "ErrorCode": error.code})
