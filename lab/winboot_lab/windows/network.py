"""Adapters, addresses, routes, DNS settings and ports; and what a virtual switch does to an adapter it takes over."""

from __future__ import annotations

import ipaddress
import uuid
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from winboot_lab.windows.host import Host
from winboot_lab.windows.registry import SERVICES
from winboot_lab.windows.snapshot import Tree

INTERFACES = SERVICES + r"\Tcpip\Parameters\Interfaces"
# How long the interface of a new virtual switch refuses addresses.
SETTLING = 0.8
# How often an interface that invented an address asks for a lease again: "every five minutes" (Microsoft's KB 220874 on
# automatic private addresses, as quoted by Windows IT Pro, 1999).
DISCOVERY = 300.0
PERSISTENT_ROUTES = SERVICES + r"\Tcpip\Parameters\PersistentRoutes"

Origin = Literal["Manual", "Dhcp", "WellKnown", "Link"]
Category = Literal["Public", "Private", "DomainAuthenticated"]

# Every connection of a probe asks for all routes, and a machine has the same few networks all its life.
_network = lru_cache(maxsize=1000)(ipaddress.ip_network)
_address = lru_cache(maxsize=1000)(ipaddress.ip_address)


@lru_cache(maxsize=1000)
def _on_link(ip: str, prefix_length: int) -> tuple[str, ...]:
    """The prefixes of the on-link routes that follow from an address."""
    network = _network(f"{ip}/{prefix_length}", strict=False)
    if network.version == 6:
        return tuple(dict.fromkeys((str(network), f"{ip}/128")))
    nets = (str(network), f"{ip}/32", f"{network.broadcast_address}/32", "224.0.0.0/4", "255.255.255.255/32")
    return tuple(dict.fromkeys(nets))


@dataclass(slots=True)
class Address:
    """One address of an adapter."""

    ip: str
    prefix_length: int
    origin: Origin = "Manual"
    state: Literal["Preferred", "Tentative", "Deprecated", "Duplicate"] = "Preferred"
    skip_as_source: bool = False

    @property
    def version(self) -> int:
        """4 or 6."""
        return _address(self.ip).version

    @property
    def link_local(self) -> bool:
        """An IPv6 address that the interface made itself."""
        return self.version == 6 and self.origin == "WellKnown"

    @property
    def network(self) -> str:
        """The subnet it is in."""
        return str(_network(f"{self.ip}/{self.prefix_length}", strict=False))


@dataclass(slots=True)
class Route:
    """One route that was set (on-link routes follow from the addresses)."""

    prefix: str
    next_hop: str
    interface: int
    metric: int = 256
    persistent: bool = True
    protocol: Literal["NetMgmt", "Dhcp", "Local"] = "NetMgmt"


@dataclass(slots=True)
class Settings:
    """The settings of an interface that were made by hand or by a program."""

    dhcp: bool
    addresses: list[Address]
    dns: list[str]
    suffix: str
    metric: int | None
    routes: list[Route]


@dataclass(eq=False, slots=True)
class Adapter:
    """One network interface. `switch`: the virtual switch that has taken it over (then it carries no addresses)."""

    name: str
    description: str
    guid: str
    mac: str
    index: int
    mtu: int = 1500
    up: bool = True
    physical: bool = True
    hidden: bool = False
    loopback: bool = False
    dhcp: bool = False
    addresses: list[Address] = field(default_factory=list)
    dns: list[str] = field(default_factory=list)
    dhcp_dns: list[str] = field(default_factory=list)
    suffix: str = ""
    register: bool = True
    metric: int | None = None
    forwarding: bool = False
    weak_host_send: bool = False
    weak_host_receive: bool = False
    category: Category = "Public"
    compartment: int = 1
    switch: str | None = None
    # The interface that the host has in that switch.
    virtual: Adapter | None = None
    stored: Settings | None = None
    vlan: int = 0
    ipv6: bool = True
    wireless: bool = False
    # A team of the old kind (LBFO).
    team: bool = False
    # False: no protocol is bound to it, as to the virtual function of accelerated networking. It only carries the
    # packets of another adapter with the same MAC address (learn.microsoft.com, "How Accelerated Networking works").
    bound: bool = True
    # The wire it is on, and whether a DHCP server answers there.
    lan: Lan | None = None
    served: bool = False
    # Until then, in lab time, Windows is still at it and takes no address from others.
    settled: float = 0.0

    @property
    def dns_servers(self) -> list[str]:
        """The servers in use: the static list, else what DHCP gave."""
        return self.dns or self.dhcp_dns

    @property
    def ipv4(self) -> list[Address]:
        """Its IPv4 addresses."""
        return [a for a in self.addresses if a.version == 4]

    @property
    def component(self) -> str:
        """ComponentID, as Get-NetAdapter shows it: what kind of driver it has."""
        if self.team:
            return "COMPOSITEBUS\\MS_IMPLAT_MP"
        return "VMBUS\\{f8615163-df3e-46c5-913f-f2d2f965ed0e}" if self.physical else "vms_mp"


@dataclass(frozen=True, slots=True)
class Lan:
    """What the wire gives: the management address and its surroundings."""

    address: str
    prefix_length: int
    gateway: str
    dns: tuple[str, ...]


class Network:
    """The network stack of the machine."""

    def __init__(self, machine: Host) -> None:
        self._machine = machine
        self.adapters: list[Adapter] = []
        self.routes: list[Route] = []
        self.ports: dict[str, tuple[int, int]] = {"tcp": (49152, 16384), "udp": (49152, 16384)}
        self.excluded: list[tuple[str, int, int, bool]] = []
        # Names that devices still have which are gone: Windows gives none of them to another.
        self.kept_names: set[str] = set()
        self.lan = Lan("", 0, "", ())
        self.cut_off = False
        self._indexes = 1

    # ---- building --------------------------------------------------------------------------------------

    def plug_in(
        self, address: str, prefix_length: int, gateway: str, dns: list[str], *, dhcp: bool
    ) -> Adapter:
        """The machine's adapter with its address; `address` is also what others reach the machine at."""
        self.lan = Lan(address, prefix_length, gateway, tuple(dns))
        loopback = self.add_adapter(
            "Loopback Pseudo-Interface 1", "Software Loopback Interface 1", loopback=True, physical=False
        )
        loopback.addresses = [Address("127.0.0.1", 8, "WellKnown"), Address("::1", 128, "WellKnown")]
        description = {
            "vmware": "vmxnet3 Ethernet Adapter",
            "kvm": "Red Hat VirtIO Ethernet Adapter",
            "aws": "Amazon Elastic Network Adapter",
            "none": "Intel(R) Ethernet Controller X550",
        }.get(self._machine.hardware.hypervisor, "Microsoft Hyper-V Network Adapter")
        self._indexes = 5
        adapter = self.add_adapter("Ethernet", description, mac=self._machine.hardware.mac)
        # Whether a DHCP server answers on the wire; a static LAN has none.
        adapter.lan, adapter.served = self.lan, dhcp
        self._configure(adapter, dhcp)
        return adapter

    def plug_in_another(
        self, name: str, address: str, prefix_length: int = 24, *, dhcp: bool = False, first: bool = False
    ) -> Adapter:
        """One more adapter on a wire of its own, without a gateway. `first`: Windows lists it before the others."""
        digits = uuid.uuid5(uuid.NAMESPACE_OID, f"{self._machine.hardware.uuid} {name}").hex
        mac = "00-15-5D-" + "-".join(digits[i : i + 2].upper() for i in (0, 2, 4))
        adapter = self.add_adapter(name, f"Microsoft Hyper-V Network Adapter #{len(self.adapters)}", mac=mac)
        adapter.lan, adapter.served = Lan(address, prefix_length, "", ()), dhcp
        self._configure(adapter, dhcp)
        if first:
            self.adapters.remove(adapter)
            self.adapters.insert(0, adapter)
        return adapter

    def add_adapter(
        self,
        name: str,
        description: str,
        *,
        mac: str = "",
        loopback: bool = False,
        physical: bool = True,
        hidden: bool = False,
    ) -> Adapter:
        """One more interface."""
        # A new interface has a new GUID, also where one of that name was before.
        seed = f"{self._machine.hardware.uuid} {name} {self._indexes}"
        guid = "{" + str(uuid.uuid5(uuid.NAMESPACE_OID, seed)).upper() + "}"
        adapter = Adapter(
            name, description, guid, mac, self._indexes, loopback=loopback, physical=physical, hidden=hidden
        )
        self._indexes += 1 if loopback else 4
        self.adapters.append(adapter)
        if not loopback:
            tail = guid[1:5].lower()
            adapter.addresses.append(Address(f"fe80::{tail}:1", 64, "WellKnown"))
        return adapter

    def _configure(self, adapter: Adapter, dhcp: bool) -> None:
        lan = adapter.lan
        assert lan is not None, f"{adapter.name} is on no wire"
        adapter.dhcp = dhcp
        origin: Origin = "Dhcp" if dhcp else "Manual"
        adapter.addresses.append(Address(lan.address, lan.prefix_length, origin))
        if dhcp:
            adapter.dhcp_dns = list(lan.dns)
        else:
            adapter.dns = list(lan.dns)
        if lan.gateway:
            protocol: Literal["NetMgmt", "Dhcp"] = "Dhcp" if dhcp else "NetMgmt"
            metric = 0 if dhcp else 256
            self.routes.append(Route("0.0.0.0/0", lan.gateway, adapter.index, metric, not dhcp, protocol))
        self.publish(adapter)

    # ---- looking ---------------------------------------------------------------------------------------

    def adapter(self, name: str) -> Adapter | None:
        """An adapter by name, without case."""
        return next((a for a in self.adapters if a.name.lower() == name.lower()), None)

    def by_index(self, index: int) -> Adapter | None:
        """An adapter by interface index."""
        return next((a for a in self.adapters if a.index == index), None)

    def holder(self, ip: str) -> Adapter | None:
        """The adapter that has an address."""
        return next((a for a in self.adapters if any(d.ip == ip for d in a.addresses)), None)

    def default_adapter(self) -> Adapter | None:
        """The adapter of the best default route."""
        routes = [r for r in self.routes if r.prefix == "0.0.0.0/0"]
        routes.sort(key=lambda r: r.metric)
        return self.by_index(routes[0].interface) if routes else None

    def management(self) -> Adapter | None:
        """The adapter with the address others reach the machine at."""
        return self.holder(self.lan.address)

    def reachable(self, ip: str = "") -> bool:
        """Whether an address works, the management address where none is named."""
        wanted = ip or self.lan.address
        adapter = self.holder(wanted)
        if adapter is None or not adapter.up or self.cut_off:
            return False
        return any(a.ip == wanted and a.state == "Preferred" for a in adapter.addresses)

    def own_addresses(self) -> list[str]:
        """The IPv4 addresses of the machine that others may come in by, pods' endpoints left out."""
        return [
            a.ip
            for adapter in self.adapters
            if adapter.lan is not None
            for a in adapter.ipv4
            if a.origin in ("Manual", "Dhcp")
        ]

    def source(self, ip: str) -> str:
        """The address that a connection to `ip` goes out from: one of the interface of the most exact route."""
        target = _address(ip)
        fitting = [r for r in self.all_routes() if target in _network(r.prefix)]
        fitting.sort(key=lambda r: (-_network(r.prefix).prefixlen, r.metric))
        for route in fitting:
            adapter = self.by_index(route.interface)
            for address in adapter.ipv4 if adapter is not None else []:
                if address.state == "Preferred" and not address.skip_as_source:
                    return address.ip
        return self.lan.address

    def online(self) -> bool:
        """Whether the machine reaches others: an address that works and a way out."""
        adapter = self.default_adapter()
        if adapter is None or adapter.lan is None or self.cut_off or not adapter.up:
            return False
        return any(a.state == "Preferred" and a.origin in ("Manual", "Dhcp") for a in adapter.ipv4)

    def reaches(self, ip: str) -> bool:
        """Whether there is a route to an address over a working interface."""
        target = _address(ip)
        if target.is_loopback or self.holder(ip) is not None:
            return True
        if self.cut_off:
            return False
        for route in self.all_routes():
            network = _network(route.prefix)
            adapter = self.by_index(route.interface)
            if adapter is None or not adapter.up:
                continue
            # No machine has the address of a bridge's gateway: pods that used it reached no other node
            # (microsoft/windows-container-networking#40; win-bridge_windows.go: "needs to be x.2").
            if adapter.lan is None and route.next_hop not in ("0.0.0.0", "::"):
                continue
            if network.version == target.version and target in network:
                usable = [
                    a for a in adapter.ipv4 if a.state == "Preferred" and a.origin in ("Manual", "Dhcp")
                ]
                if usable:
                    return True
        return False

    def all_routes(self) -> list[Route]:
        """Routes that were set, and the on-link ones that follow from the addresses."""
        found = list(self.routes)
        for adapter in self.adapters:
            for address in adapter.addresses:
                if not adapter.up or address.state != "Preferred":
                    continue
                hop = "0.0.0.0" if address.version == 4 else "::"
                found.extend(
                    Route(net, hop, adapter.index, 256, False, "Local")
                    for net in _on_link(address.ip, address.prefix_length)
                )
        return found

    # ---- changing --------------------------------------------------------------------------------------

    def add_address(self, adapter: Adapter, address: Address) -> None:
        """Set a static address: DHCP of the interface ends, the address is tentative for a moment."""
        if address.origin == "Manual" and adapter.dhcp and address.version == 4:
            self._drop_lease(adapter)
        address.state = "Tentative"
        adapter.addresses.append(address)

        def settle() -> None:
            address.state = "Preferred"
            self._machine.signal("network-back")

        self._machine.after(2.0, settle)
        self.publish(adapter)

    def remove_address(self, adapter: Adapter, address: Address) -> None:
        """Take an address away."""
        adapter.addresses.remove(address)
        if address.ip == self.lan.address:
            self._machine.signal("network-lost")
        self.publish(adapter)

    def set_dhcp(self, adapter: Adapter, on: bool) -> None:
        """Switch DHCP of an interface; on: static addresses go, a lease comes after a while."""
        if on == adapter.dhcp:
            return
        adapter.dhcp = on
        if on:
            adapter.addresses = [a for a in adapter.addresses if a.version == 6]
            self.routes = [
                r for r in self.routes if not (r.interface == adapter.index and r.prefix == "0.0.0.0/0")
            ]
            self._ask_lease(adapter)
        else:
            self._drop_lease(adapter)
        self.publish(adapter)

    def _drop_lease(self, adapter: Adapter) -> None:
        adapter.dhcp = False
        self._forget_lease(adapter)

    def _forget_lease(self, adapter: Adapter) -> None:
        adapter.addresses = [a for a in adapter.addresses if a.origin not in ("Dhcp", "Link")]
        adapter.dhcp_dns = []
        self.routes = [r for r in self.routes if not (r.interface == adapter.index and r.protocol == "Dhcp")]

    def _ask_lease(self, adapter: Adapter) -> None:
        hardware = self._machine.hardware
        seconds = hardware.dhcp_seconds if adapter.served else hardware.autoconfiguration_seconds
        self._machine.after(seconds, lambda: self._leased(adapter))

    def _leased(self, adapter: Adapter) -> None:
        if not adapter.dhcp or adapter not in self.adapters or adapter.switch is not None:
            return
        if any(a.origin == "Dhcp" for a in adapter.addresses):
            return
        if adapter.served:
            adapter.addresses = [a for a in adapter.addresses if a.origin != "Link"]
            self._configure(adapter, True)
            self._machine.signal("network-back")
        elif not adapter.ipv4:
            taken = self.holder("169.254.17.42") is not None
            invented = f"169.254.18.{adapter.index}" if taken else "169.254.17.42"
            adapter.addresses.append(Address(invented, 16, "Link"))
        if not adapter.served:
            self._machine.after(DISCOVERY, lambda: self._leased(adapter))

    def add_route(self, route: Route) -> None:
        """Set a route."""
        self.routes.append(route)
        self._publish_routes()

    def remove_route(self, route: Route) -> None:
        """Take a route away."""
        if route in self.routes:
            self.routes.remove(route)
        self._publish_routes()

    # ---- virtual switches ------------------------------------------------------------------------------

    def bind_switch(self, adapter: Adapter, switch: str, *, keep_static: bool) -> Adapter:
        """A virtual switch takes an adapter: its settings move to a new interface, or what was set is lost.

        All of it then, not the first address alone: addresses, routes, DNS servers and metric (microsoft/SDN#498 and
        Windows-Containers#162 report static settings lost on 2004 and 20H2). What a driver holds (VLAN) stays below.
        The adapter's own settings stay stored and hold again once the switch is gone.
        """
        if adapter.switch is None:
            self.take(adapter, switch)
        stored = adapter.stored
        assert stored is not None
        virtual = self.add_adapter(
            self._free_name(f"vEthernet ({adapter.name})"),
            "Hyper-V Virtual Ethernet Adapter",
            mac=adapter.mac,
            physical=False,
        )
        adapter.switch, adapter.virtual = switch, virtual
        virtual.lan, virtual.served = adapter.lan, adapter.served
        if keep_static:
            self._apply(virtual, stored)
        else:
            # What is left is an interface as new: DHCP, and no server that answers.
            virtual.dhcp = True
            self._ask_lease(virtual)
        # The driver below continues tagging; the new interface speaks IPv6 whatever the old one did.
        virtual.mtu, virtual.category = adapter.mtu, adapter.category
        virtual.settled = self._machine.time.seconds + SETTLING
        self._replumbed(adapter, virtual)
        return virtual

    def take(self, adapter: Adapter, switch: str) -> None:
        """The first half of it: the switch is bound to the adapter, which carries no IP any more; nothing else does yet."""
        adapter.switch, adapter.virtual = switch, None
        adapter.stored = self._settings(adapter)
        self._strip(adapter)
        self._replumbed(adapter)

    def _free_name(self, name: str) -> str:
        """Windows puts a number behind a name that another device has, also one that is hidden.

        Seen on a node of GCE with an l2bridge, whose address is on `vEthernet (Ethernet) 2`; SDN's and AgentBaker's
        helper.psm1 look for `vEthernet ($InterfaceName*` for that reason.
        """
        taken = {one.name.lower() for one in self.adapters} | {one.lower() for one in self.kept_names}
        number, free = 1, name
        while free.lower() in taken:
            number += 1
            free = f"{name} {number}"
        return free

    def release_switch(self, adapter: Adapter, *, keep_static: bool) -> None:
        """The switch goes, and the virtual interface with it: the adapter has its own settings again.

        Where static settings do not survive a switch, routes beyond the default one are lost. Unsourced: routes-after-a-switch.
        """
        virtual, adapter.switch, adapter.virtual = adapter.virtual, None, None
        if virtual is not None:
            self._strip(virtual)
            self.adapters.remove(virtual)
            self._machine.registry.wipe(f"{INTERFACES}\\{virtual.guid.lower()}")
        stored = adapter.stored
        if stored is not None:
            if not keep_static:
                stored.routes = [r for r in stored.routes if r.prefix == "0.0.0.0/0"]
            self._apply(adapter, stored)
        self._replumbed(adapter)

    def _settings(self, adapter: Adapter) -> Settings:
        static = [replace(a, state="Preferred") for a in adapter.addresses if a.origin == "Manual"]
        routes = [replace(r) for r in self.routes if r.interface == adapter.index and r.protocol == "NetMgmt"]
        return Settings(adapter.dhcp, static, list(adapter.dns), adapter.suffix, adapter.metric, routes)

    def _apply(self, adapter: Adapter, settings: Settings) -> None:
        adapter.dhcp, adapter.dns = settings.dhcp, list(settings.dns)
        adapter.suffix, adapter.metric = settings.suffix, settings.metric
        adapter.addresses = [a for a in adapter.addresses if a.link_local]
        adapter.addresses += [replace(a) for a in settings.addresses]
        self.routes += [replace(r, interface=adapter.index) for r in settings.routes]
        if adapter.dhcp:
            self._ask_lease(adapter)

    def _strip(self, adapter: Adapter) -> None:
        adapter.addresses = [a for a in adapter.addresses if a.link_local]
        adapter.dns, adapter.dhcp_dns, adapter.dhcp = [], [], False
        self.routes = [r for r in self.routes if r.interface != adapter.index]

    def _replumbed(self, *adapters: Adapter) -> None:
        # The interface with the addresses goes away for a moment: each client loses its connection.
        self._publish_routes()
        for adapter in adapters:
            self.publish(adapter)
        self._machine.signal("network-lost")
        if self.reachable():
            self._machine.after(1.0, lambda: self._machine.signal("network-back"))

    # ---- registry --------------------------------------------------------------------------------------

    def publish(self, adapter: Adapter) -> None:
        """Write an interface's settings where Windows keeps them."""
        if adapter.loopback:
            return
        registry = self._machine.registry
        key = f"{INTERFACES}\\{adapter.guid.lower()}"
        registry.set(key, "EnableDHCP", "DWord", int(adapter.dhcp))
        static = [a for a in adapter.ipv4 if a.origin == "Manual"]
        registry.set(key, "IPAddress", "MultiString", [a.ip for a in static])
        masks = [str(_network(f"0.0.0.0/{a.prefix_length}").netmask) for a in static]
        registry.set(key, "SubnetMask", "MultiString", masks)
        gateways = [
            r.next_hop
            for r in self.routes
            if r.interface == adapter.index and r.prefix == "0.0.0.0/0" and r.protocol == "NetMgmt"
        ]
        registry.set(key, "DefaultGateway", "MultiString", gateways)
        # Each stack keeps the servers of its own family.
        registry.set(key, "NameServer", "String", ",".join(s for s in adapter.dns if ":" not in s))
        beside = key.replace(r"\Tcpip" + "\\", r"\Tcpip6" + "\\")
        if any(":" in s for s in adapter.dns):
            registry.set(beside, "NameServer", "String", ",".join(s for s in adapter.dns if ":" in s))
        else:
            registry.forget(beside, "NameServer")
        registry.set(key, "Domain", "String", adapter.suffix)
        leased = next((a for a in adapter.ipv4 if a.origin == "Dhcp"), None)
        if leased is not None:
            registry.set(key, "DhcpIPAddress", "String", leased.ip)
            registry.set(key, "DhcpNameServer", "String", " ".join(adapter.dhcp_dns))
        else:
            registry.forget(key, "DhcpIPAddress")
            registry.forget(key, "DhcpNameServer")

    def _publish_routes(self) -> None:
        registry = self._machine.registry
        registry.wipe(PERSISTENT_ROUTES)
        registry.create(PERSISTENT_ROUTES)
        for route in self.routes:
            network = _network(route.prefix)
            if route.persistent and route.protocol == "NetMgmt" and network.version == 4:
                name = f"{network.network_address},{network.netmask},{route.next_hop},{route.metric}"
                registry.set(PERSISTENT_ROUTES, name, "String", "")
        for adapter in self.adapters:
            self.publish(adapter)

    # ---- down and up -----------------------------------------------------------------------------------

    def machine_went_down(self) -> None:
        """Routes that were only active go; so do leases and unfinished address checks."""
        self.routes = [r for r in self.routes if r.persistent]
        for adapter in self.adapters:
            if adapter.dhcp:
                self._forget_lease(adapter)
            for address in adapter.addresses:
                address.state = "Preferred"

    def machine_came_up(self) -> None:
        """Interfaces with DHCP that lack a lease ask for one."""
        for adapter in self.adapters:
            if (
                adapter.dhcp
                and not any(a.origin == "Dhcp" for a in adapter.addresses)
                and adapter.switch is None
            ):
                self._ask_lease(adapter)

    def tree(self) -> Tree:
        """Interfaces by name, routes and ports."""
        interfaces: dict[str, Tree] = {}
        for adapter in self.adapters:
            interfaces[adapter.name] = {
                "up": adapter.up,
                "dhcp": adapter.dhcp,
                "addresses": [
                    f"{a.ip}/{a.prefix_length} {a.origin} {a.state}"
                    for a in adapter.addresses
                    if not a.link_local
                ],
                "ipv6": adapter.ipv6,
                "vlan": adapter.vlan,
                "dns": list(adapter.dns_servers),
                "suffix": adapter.suffix,
                "mtu": adapter.mtu,
                "forwarding": adapter.forwarding,
                "category": adapter.category,
                "switch": adapter.switch is not None,
            }
        names = {a.index: a.name for a in self.adapters}
        routes: list[Tree] = [
            f"{r.prefix} via {r.next_hop} on {names.get(r.interface, '?')} metric {r.metric}"
            + ("" if r.persistent else " (active only)")
            for r in sorted(self.routes, key=lambda r: (r.prefix, r.next_hop))
        ]
        return {
            "interfaces": interfaces,
            "routes": routes,
            "ports": {k: list(v) for k, v in self.ports.items()},
            "excluded": [f"{p} {s}+{n}" for p, s, n, _ in sorted(self.excluded)],
        }
