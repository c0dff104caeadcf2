"""Get-/New-/Remove-/Set-NetIPAddress, Get-/New-/Remove-/Set-NetRoute, Get-/Set-DnsClientServerAddress."""

from __future__ import annotations

import ipaddress
from datetime import timedelta

from winboot_lab.windows.call import (
    BOOL,
    STRING,
    STRINGS,
    SWITCH,
    Call,
    as_int,
    as_text,
    cmdlet,
    parameter,
    switch,
)
from winboot_lab.windows.cmdlets.interfaces import (
    INTERFACE,
    PLAIN_INTERFACE,
    family_enum,
    family_number,
    on_interfaces,
    one_interface,
)
from winboot_lab.windows.cmdlets.shapes import (
    CIM,
    enum,
    instance,
    nothing_fits,
    select,
    uint8,
    uint16,
    uint32,
    windows_error,
)
from winboot_lab.windows.door import InSet, Parameter, Record
from winboot_lab.windows.network import Adapter, Address, Route

_MODULE = "NetTCPIP"
_GENERATED = "Microsoft.PowerShell.Cmdletization.GeneratedTypes"
_ORIGINS = {"Manual": 1, "WellKnown": 2, "Dhcp": 3, "Link": 5}
_STATES = {"Invalid": 0, "Tentative": 1, "Duplicate": 2, "Deprecated": 3, "Preferred": 4}
_FOREVER = timedelta(days=10675199, hours=2, minutes=48, seconds=5, microseconds=477580)

FAMILY = parameter("AddressFamily", f"{_GENERATED}.NetIPAddress.AddressFamily", words=("IPv4", "IPv6"))
POLICY_STORE = parameter("PolicyStore")


def _store_words(call: Call) -> str:
    word = call.text("PolicyStore")
    if word.lower() not in ("", "activestore", "persistentstore"):
        raise call.refuse("PolicyStore", word)
    return word.lower()


# ---- addresses -----------------------------------------------------------------------------------------


def _origin(address: Address) -> str:
    # An automatic private address counts as made from the link.
    return "WellKnown" if address.origin == "Link" else address.origin


def show_address(adapter: Adapter, address: Address) -> Record:
    """One MSFT_NetIPAddress."""
    kind = f"{_GENERATED}.NetIPAddress"
    suffix = "Link" if address.origin == "Link" else address.origin
    return instance(
        "MSFT_NetIPAddress",
        {
            "IPAddress": address.ip,
            "IPv4Address": address.ip if address.version == 4 else None,
            "IPv6Address": address.ip if address.version == 6 else None,
            "InterfaceIndex": uint32(adapter.index),
            "InterfaceAlias": adapter.name,
            "AddressFamily": family_enum(f"{kind}.AddressFamily", address.version),
            "Type": enum(f"{kind}.Type", 1, "Unicast"),
            "PrefixLength": uint8(address.prefix_length),
            "PrefixOrigin": enum(f"{kind}.PrefixOrigin", _ORIGINS[_origin(address)], _origin(address)),
            "SuffixOrigin": enum(f"{kind}.SuffixOrigin", _ORIGINS[suffix], suffix),
            "AddressState": enum(f"{kind}.AddressState", _STATES[address.state], address.state),
            "ValidLifetime": _FOREVER if address.origin != "Dhcp" else timedelta(hours=8),
            "PreferredLifetime": _FOREVER if address.origin != "Dhcp" else timedelta(hours=8),
            "SkipAsSource": address.skip_as_source,
            "PolicyStore": "ActiveStore",
        },
        text=address.ip,
    )


_ADDRESS_SELECTORS = (
    Parameter("IPAddress", STRINGS, ("LocalAddress",), sets=(InSet("ByName", position=0, by_name=True),)),
    *INTERFACE,
    FAMILY,
    parameter("PrefixLength", "System.Byte[]"),
    parameter("PrefixOrigin", f"{_GENERATED}.NetIPAddress.PrefixOrigin[]"),
    parameter("SuffixOrigin", f"{_GENERATED}.NetIPAddress.SuffixOrigin[]"),
    parameter("AddressState", f"{_GENERATED}.NetIPAddress.AddressState[]"),
    parameter("SkipAsSource", BOOL),
    POLICY_STORE,
)


def _addresses(call: Call) -> list[tuple[Adapter, Address]]:
    if call.has("InputObject"):
        wanted = {(as_int(r["InterfaceIndex"]), as_text(r["IPAddress"])) for r in call.records("InputObject")}
        every = [(a, d) for a in call.machine.network.adapters for d in a.addresses]
        return [(a, d) for a, d in every if (a.index, d.ip) in wanted]
    store = _store_words(call)
    chosen = on_interfaces(call, "MSFT_NetIPAddress")
    found = [(a, d) for a in chosen for d in a.addresses]
    if store == "persistentstore":
        found = [(a, d) for a, d in found if d.origin == "Manual"]
    found = select(call, found, "IPAddress", "IPAddress", "MSFT_NetIPAddress", lambda p: p[1].ip)
    words = (
        ("PrefixOrigin", _origin),
        ("SuffixOrigin", lambda d: d.origin),
        ("AddressState", lambda d: d.state),
        ("PrefixLength", lambda d: str(d.prefix_length)),
    )
    narrowed = call.has("IPAddress") or not found
    for name, text in words:
        if call.has(name):
            allowed = {w.lower() for w in call.texts(name)}
            found = [(a, d) for a, d in found if text(d).lower() in allowed]
            narrowed = False
    if call.has("AddressFamily"):
        version = family_number(call)
        found = [(a, d) for a, d in found if d.version == version]
        narrowed = False
    if call.has("SkipAsSource"):
        found = [(a, d) for a, d in found if d.skip_as_source == call.flag("SkipAsSource")]
    if not found and not narrowed and not call.result.errors:
        call.fail(nothing_fits(call, "MSFT_NetIPAddress"))
    return found


@cmdlet("Get-NetIPAddress", _MODULE, *_ADDRESS_SELECTORS, kind="Function", default_set="ByName")
def get_address(call: Call) -> None:
    """The addresses that fit."""
    call.give(*(show_address(a, d) for a, d in _addresses(call)))


@cmdlet(
    "New-NetIPAddress",
    _MODULE,
    parameter("IPAddress", position=0, mandatory=True, aliases=("LocalAddress",), by_name=True),
    Parameter("InterfaceAlias", STRING, ("ifAlias",), sets=(InSet("ByInterfaceAlias", mandatory=True),)),
    Parameter(
        "InterfaceIndex", "System.UInt32", ("ifIndex",), sets=(InSet("ByInterfaceIndex", mandatory=True),)
    ),
    parameter("PrefixLength", "System.Byte"),
    parameter("DefaultGateway"),
    FAMILY,
    parameter("SkipAsSource", BOOL),
    POLICY_STORE,
    kind="Function",
    default_set="ByInterfaceAlias",
    should_process=True,
)
def new_address(call: Call) -> None:
    """Set a static address, with its gateway if given."""
    adapter = one_interface(call)
    if adapter is None:
        return
    network = call.machine.network
    if call.machine.time.seconds < adapter.settled:
        call.fail(windows_error(call, 1168, "Element not found.", category="ObjectNotFound"))
        return
    ip = str(ipaddress.ip_address(call.text("IPAddress")))
    if any(d.ip == ip for a in network.adapters for d in a.addresses):
        target = "MSFT_NetIPAddress:ROOT/StandardCimv2/MSFT_NetIPAddress"
        call.fail(
            windows_error(call, 5010, "The object already exists.", category="ResourceExists", target=target)
        )
        return
    width = 32 if ":" not in ip else 128
    address = Address(ip, call.number("PrefixLength", width), "Manual")
    address.skip_as_source = call.flag("SkipAsSource")
    gateway = call.text("DefaultGateway")
    if gateway and any(
        r.prefix == "0.0.0.0/0"
        and r.interface == adapter.index
        and r.next_hop == gateway
        and r.protocol == "NetMgmt"
        for r in network.routes
    ):
        message = "Instance DefaultGateway already exists"
        call.fail(windows_error(call, 87, message, category="InvalidArgument", target="MSFT_NetIPAddress"))
        return
    network.add_address(adapter, address)
    if gateway:
        network.add_route(Route("0.0.0.0/0", gateway, adapter.index))
    call.give(show_address(adapter, address))


@cmdlet(
    "Remove-NetIPAddress",
    _MODULE,
    *_ADDRESS_SELECTORS,
    Parameter(
        "InputObject",
        f"{CIM}#MSFT_NetIPAddress[]",
        sets=(InSet("InputObject", mandatory=True, by_value=True),),
    ),
    parameter("DefaultGateway"),
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
    confirm_impact="High",
)
def remove_address(call: Call) -> None:
    """Take addresses away."""
    network = call.machine.network
    for adapter, address in _addresses(call):
        network.remove_address(adapter, address)
        if call.flag("PassThru"):
            call.give(show_address(adapter, address))
        for route in [r for r in network.routes if r.interface == adapter.index]:
            if call.has("DefaultGateway") and route.next_hop == call.text("DefaultGateway"):
                network.remove_route(route)


@cmdlet(
    "Set-NetIPAddress",
    _MODULE,
    Parameter("IPAddress", STRINGS, ("LocalAddress",), sets=(InSet("ByName", position=0, by_name=True),)),
    *INTERFACE,
    Parameter(
        "InputObject",
        f"{CIM}#MSFT_NetIPAddress[]",
        sets=(InSet("InputObject", mandatory=True, by_value=True),),
    ),
    FAMILY,
    parameter("PrefixLength", "System.Byte"),
    parameter("SkipAsSource", BOOL),
    POLICY_STORE,
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_address(call: Call) -> None:
    """Change the prefix length or SkipAsSource of addresses."""
    plain = Call(
        call.session,
        call.command,
        {k: v for k, v in call.parameters.items() if k not in ("PrefixLength", "SkipAsSource", "PassThru")},
        call.result,
    )
    for adapter, address in _addresses(plain):
        if call.has("PrefixLength"):
            address.prefix_length = call.number("PrefixLength")
        if call.has("SkipAsSource"):
            address.skip_as_source = call.flag("SkipAsSource")
        call.machine.network.publish(adapter)
        if call.flag("PassThru"):
            call.give(show_address(adapter, address))


# ---- routes --------------------------------------------------------------------------------------------


def _show_route(call: Call, route: Route, *, store: str = "ActiveStore") -> Record:
    adapter = call.machine.network.by_index(route.interface)
    kind = f"{_GENERATED}.NetRoute"
    version = ipaddress.ip_network(route.prefix).version
    protocols = {"Local": 2, "NetMgmt": 3, "Dhcp": 5}
    metric = adapter.metric if adapter is not None and adapter.metric is not None else 15
    return instance(
        "MSFT_NetRoute",
        {
            "DestinationPrefix": route.prefix,
            "NextHop": route.next_hop,
            "InterfaceIndex": uint32(route.interface),
            "ifIndex": uint32(route.interface),
            "InterfaceAlias": adapter.name if adapter else "",
            "InterfaceMetric": uint32(metric),
            "RouteMetric": uint16(route.metric),
            "AddressFamily": family_enum(f"{kind}.AddressFamily", version),
            "Protocol": enum(f"{kind}.Protocol", protocols[route.protocol], route.protocol),
            "Publish": enum(f"{kind}.Publish", 0, "No"),
            "Store": enum(f"{kind}.Store", int(store == "ActiveStore"), store),
            "PolicyStore": store,
            "CompartmentId": uint32(adapter.compartment if adapter else 1),
        },
        text=route.prefix,
    )


_ROUTE_SELECTORS = (
    Parameter("DestinationPrefix", STRINGS, sets=(InSet("ByName", position=0, by_name=True),)),
    *INTERFACE,
    parameter("NextHop", STRINGS, by_name=True),
    parameter("RouteMetric", "System.UInt16[]"),
    parameter("Protocol", f"{_GENERATED}.NetRoute.Protocol[]"),
    FAMILY,
    POLICY_STORE,
)


def _routes(call: Call) -> list[tuple[Route, str]]:
    network = call.machine.network
    if call.has("InputObject"):
        keys = {
            (as_text(r["DestinationPrefix"]), as_text(r["NextHop"]), as_int(r["InterfaceIndex"]))
            for r in call.records("InputObject")
        }
        return [
            (r, "ActiveStore") for r in network.all_routes() if (r.prefix, r.next_hop, r.interface) in keys
        ]
    chosen = {a.index for a in on_interfaces(call, "MSFT_NetRoute")}
    store = _store_words(call)
    every = network.routes if store == "persistentstore" else network.all_routes()
    found = [r for r in every if r.interface in chosen]
    if store == "persistentstore":
        found = [r for r in found if r.persistent and r.protocol == "NetMgmt"]
    found = select(call, found, "DestinationPrefix", "DestinationPrefix", "MSFT_NetRoute", lambda r: r.prefix)
    before = bool(found)
    if call.has("NextHop"):
        hops = {h.lower() for h in call.texts("NextHop")}
        found = [r for r in found if r.next_hop.lower() in hops]
    if call.has("RouteMetric"):
        found = [r for r in found if r.metric in call.numbers("RouteMetric")]
    if call.has("Protocol"):
        words = {w.lower() for w in call.texts("Protocol")}
        found = [r for r in found if r.protocol.lower() in words]
    if call.has("AddressFamily"):
        version = family_number(call)
        found = [r for r in found if ipaddress.ip_network(r.prefix).version == version]
    if before and not found:
        call.fail(nothing_fits(call, "MSFT_NetRoute"))
    return [(r, "PersistentStore" if store == "persistentstore" else "ActiveStore") for r in found]


@cmdlet("Get-NetRoute", _MODULE, *_ROUTE_SELECTORS, kind="Function", default_set="ByName")
def get_route(call: Call) -> None:
    """The routes that fit, on-link ones included."""
    call.give(*(_show_route(call, r, store=s) for r, s in _routes(call)))


@cmdlet(
    "New-NetRoute",
    _MODULE,
    parameter("DestinationPrefix", position=0, mandatory=True, by_name=True),
    Parameter("InterfaceAlias", STRING, ("ifAlias",), sets=(InSet("ByInterfaceAlias", mandatory=True),)),
    Parameter(
        "InterfaceIndex", "System.UInt32", ("ifIndex",), sets=(InSet("ByInterfaceIndex", mandatory=True),)
    ),
    parameter("NextHop", by_name=True),
    parameter("RouteMetric", "System.UInt16"),
    FAMILY,
    POLICY_STORE,
    kind="Function",
    default_set="ByInterfaceAlias",
    should_process=True,
)
def new_route(call: Call) -> None:
    """Set a route; both stores by default."""
    adapter = one_interface(call)
    if adapter is None:
        return
    network = call.machine.network
    prefix = str(ipaddress.ip_network(call.text("DestinationPrefix")))
    hop = call.text("NextHop", "0.0.0.0" if ":" not in prefix else "::")
    if any((r.prefix, r.next_hop, r.interface) == (prefix, hop, adapter.index) for r in network.all_routes()):
        target = "MSFT_NetRoute:ROOT/StandardCimv2/MSFT_NetRoute"
        message = "Instance MSFT_NetRoute already exists"
        call.fail(windows_error(call, 87, message, category="InvalidArgument", target=target))
        return
    route = Route(prefix, hop, adapter.index, call.number("RouteMetric", 256))
    route.persistent = _store_words(call) != "activestore"
    network.add_route(route)
    call.give(_show_route(call, route))


@cmdlet(
    "Remove-NetRoute",
    _MODULE,
    *_ROUTE_SELECTORS,
    Parameter(
        "InputObject", f"{CIM}#MSFT_NetRoute[]", sets=(InSet("InputObject", mandatory=True, by_value=True),)
    ),
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
    confirm_impact="High",
)
def remove_route(call: Call) -> None:
    """Take routes away."""
    for route, _ in _routes(call):
        call.machine.network.remove_route(route)
        if call.flag("PassThru"):
            call.give(_show_route(call, route))


# ---- DNS servers ---------------------------------------------------------------------------------------


@cmdlet(
    "Get-DnsClientServerAddress",
    "DnsClient",
    *PLAIN_INTERFACE,
    parameter("AddressFamily", f"{_GENERATED}.DnsClientServerAddress.AddressFamily[]", aliases=("Family",)),
    kind="Function",
    default_set="ByAlias",
)
def get_dns_servers(call: Call) -> None:
    """One object for each interface and family, also where the list is empty."""
    families = {"ipv4": 4, "ipv6": 6}
    asked = [families[w.lower()] for w in call.texts("AddressFamily")] or [4, 6]
    for adapter in on_interfaces(call, "MSFT_DNSClientServerAddress"):
        for version in asked:
            servers = [s for s in adapter.dns_servers if ipaddress.ip_address(s).version == version]
            call.give(
                instance(
                    "MSFT_DNSClientServerAddress",
                    {
                        "InterfaceAlias": adapter.name,
                        "InterfaceIndex": uint32(adapter.index),
                        "AddressFamily": uint16(2 if version == 4 else 23),
                        "ServerAddresses": [*servers],
                        "Address": [*servers],
                    },
                )
            )


@cmdlet(
    "Set-DnsClientServerAddress",
    "DnsClient",
    Parameter("InterfaceAlias", STRINGS, sets=(InSet("ByAlias", mandatory=True, position=0, by_name=True),)),
    Parameter("InterfaceIndex", "System.UInt32[]", sets=(InSet("ByIndex", mandatory=True, by_name=True),)),
    Parameter(
        "InputObject",
        f"{CIM}#MSFT_DNSClientServerAddress[]",
        sets=(InSet("InputObject", mandatory=True, by_value=True),),
    ),
    parameter("ServerAddresses", STRINGS, aliases=("Addresses",)),
    switch("ResetServerAddresses", aliases=("ResetAddresses",)),
    parameter("Validate", SWITCH),
    switch("PassThru"),
    kind="Function",
    default_set="ByAlias",
    should_process=True,
)
def set_dns_servers(call: Call) -> None:
    """Set the servers of an interface, or give them back to DHCP."""
    if call.flag("Validate"):
        raise call.refuse("Validate")
    if call.has("InputObject"):
        indexes = [as_int(r["InterfaceIndex"]) for r in call.records("InputObject")]
        chosen = [a for a in call.machine.network.adapters if a.index in indexes]
    else:
        chosen = on_interfaces(call, "MSFT_DNSClientServerAddress")
    for adapter in chosen:
        adapter.dns = [] if call.flag("ResetServerAddresses") else call.texts("ServerAddresses")
        call.machine.network.publish(adapter)
