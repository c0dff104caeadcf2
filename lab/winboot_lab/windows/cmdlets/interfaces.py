"""Get-NetAdapter, Get-/Set-NetIPInterface, Get-/Set-DnsClient, connection profiles, TCP and UDP settings."""

from __future__ import annotations

from dataclasses import replace

from winboot_lab.windows.boot import TCPIP
from winboot_lab.windows.call import BOOL, STRINGS, Call, as_int, as_text, cmdlet, parameter, switch
from winboot_lab.windows.cmdlets.shapes import (
    CIM,
    enum,
    instance,
    not_found,
    nothing_fits,
    select,
    uint16,
    uint32,
    windows_error,
)
from winboot_lab.windows.door import InSet, Parameter, Plain, Record, Typed
from winboot_lab.windows.network import Adapter

_MODULE = "NetTCPIP"
_GENERATED = "Microsoft.PowerShell.Cmdletization.GeneratedTypes"

# Several cmdlets pick interfaces by alias or index; both may be bound from an object's properties.
INTERFACE = (
    parameter("InterfaceAlias", STRINGS, aliases=("ifAlias",), by_name=True),
    parameter("InterfaceIndex", "System.UInt32[]", aliases=("ifIndex",), by_name=True),
)

# The modules DnsClient and NetConnection do the same without the short aliases.
PLAIN_INTERFACE = (
    parameter("InterfaceAlias", STRINGS, by_name=True),
    parameter("InterfaceIndex", "System.UInt32[]", by_name=True),
)


def family_enum(type_name: str, version: int) -> Typed:
    """IPv4 (2) or IPv6 (23) as an enum."""
    return enum(type_name, 2 if version == 4 else 23, f"IPv{version}")


def family_number(call: Call) -> int:
    """4 or 6 from -AddressFamily."""
    word = call.text("AddressFamily").lower()
    if word not in ("ipv4", "ipv6", "2", "23"):
        raise call.refuse("AddressFamily", word)
    return 4 if word in ("ipv4", "2") else 6


def on_interfaces(call: Call, class_name: str) -> list[Adapter]:
    """The interfaces that -InterfaceAlias and -InterfaceIndex choose; all without them."""
    adapters = [a for a in call.machine.network.adapters if not a.hidden]
    chosen = select(call, adapters, "InterfaceAlias", "InterfaceAlias", class_name, lambda a: a.name)
    if not call.has("InterfaceIndex"):
        return chosen
    wanted = call.numbers("InterfaceIndex")
    for index in wanted:
        if not any(a.index == index for a in adapters):
            call.fail(not_found(call, class_name, "InterfaceIndex", str(index)))
    return [a for a in chosen if a.index in wanted]


def one_interface(call: Call) -> Adapter | None:
    """The interface a New- cmdlet is about, or the error that it is missing."""
    network = call.machine.network
    found = network.adapter(call.text("InterfaceAlias")) if call.has("InterfaceAlias") else None
    if call.has("InterfaceIndex"):
        found = network.by_index(call.number("InterfaceIndex"))
    if found is None:
        call.fail(windows_error(call, 87, "The parameter is incorrect.", category="InvalidArgument"))
    return found


# ---- adapters ------------------------------------------------------------------------------------------


def _show_adapter(adapter: Adapter) -> Record:
    return instance(
        "MSFT_NetAdapter",
        {
            "Name": adapter.name,
            "InterfaceAlias": adapter.name,
            "ifAlias": adapter.name,
            "InterfaceDescription": adapter.description,
            "ifDesc": adapter.description,
            "InterfaceIndex": uint32(adapter.index),
            "ifIndex": uint32(adapter.index),
            "InterfaceGuid": adapter.guid,
            "DeviceID": adapter.guid,
            "Status": "Up" if adapter.up else "Disconnected",
            "MacAddress": adapter.mac,
            "PermanentAddress": adapter.mac.replace("-", ""),
            "LinkSpeed": "10 Gbps",
            "MtuSize": uint32(adapter.mtu),
            "Hidden": adapter.hidden,
            "Virtual": not adapter.physical,
            "HardwareInterface": adapter.physical,
            "ConnectorPresent": adapter.physical,
            "MediaType": "Native 802.11" if adapter.wireless else "802.3",
            "PhysicalMediaType": "Native 802.11" if adapter.wireless else "802.3",
            "VlanID": Typed("System.UInt16", adapter.vlan),
            "DriverDescription": adapter.description,
            "ComponentID": adapter.component,
            "InterfaceName": f"ethernet_{32768 + adapter.index}",
        },
        text=f'MSFT_NetAdapter (Name = "{adapter.name}")',
    )


@cmdlet(
    "Get-NetAdapter",
    "NetAdapter",
    Parameter(
        "Name", STRINGS, ("ifAlias", "InterfaceAlias"), sets=(InSet("ByName", position=0, by_name=True),)
    ),
    Parameter(
        "InterfaceDescription",
        STRINGS,
        ("ifDesc",),
        sets=(InSet("ByInstanceID", mandatory=True, by_name=True),),
    ),
    Parameter(
        "InterfaceIndex",
        "System.UInt32[]",
        ("ifIndex",),
        sets=(InSet("ByIfIndex", mandatory=True, by_name=True),),
    ),
    switch("IncludeHidden"),
    switch("Physical"),
    kind="Function",
    default_set="ByName",
)
def get_adapter(call: Call) -> None:
    """Adapters; the loopback interface does not count, compartments of containers are hidden."""
    every = [a for a in call.machine.network.adapters if not a.loopback and a.compartment == 1]
    if not call.flag("IncludeHidden"):
        every = [a for a in every if not a.hidden]
    if call.flag("Physical"):
        every = [a for a in every if a.physical]
    found = select(call, every, "Name", "Name", "MSFT_NetAdapter", lambda a: a.name)
    if call.has("InterfaceDescription"):
        found = select(
            call,
            found,
            "InterfaceDescription",
            "InterfaceDescription",
            "MSFT_NetAdapter",
            lambda a: a.description,
        )
    if call.has("InterfaceIndex"):
        found = select(
            call, found, "InterfaceIndex", "InterfaceIndex", "MSFT_NetAdapter", lambda a: str(a.index)
        )
    call.give(*(_show_adapter(a) for a in found))


@cmdlet(
    "Get-NetAdapterBinding",
    "NetAdapter",
    Parameter(
        "Name", STRINGS, ("ifAlias", "InterfaceAlias"), sets=(InSet("ByName", position=0, by_name=True),)
    ),
    parameter("ComponentID", STRINGS),
    parameter("DisplayName", STRINGS),
    switch("IncludeHidden"),
    kind="Function",
    default_set="ByName",
)
def get_binding(call: Call) -> None:
    """Protocols bound to adapters; a virtual switch takes them all but its own."""
    adapters = [a for a in call.machine.network.adapters if not a.loopback]
    found = select(call, adapters, "Name", "Name", "MSFT_NetAdapterBindingSettingData", lambda a: a.name)
    for adapter in found:
        every = [
            (c, d, adapter.switch is None and (c != "ms_tcpip6" or adapter.ipv6)) for c, d in _COMPONENTS
        ]
        every.append(("vms_pp", "Hyper-V Extensible Virtual Switch", adapter.switch is not None))
        chosen = select(
            call, every, "ComponentID", "ComponentID", "MSFT_NetAdapterBindingSettingData", lambda b: b[0]
        )
        for component, display, enabled in chosen:
            properties: dict[str, Plain] = {
                "Name": adapter.name,
                "InterfaceAlias": adapter.name,
                "ComponentID": component,
                "DisplayName": display,
                "Enabled": enabled,
            }
            call.give(instance("MSFT_NetAdapterBindingSettingData", properties))


@cmdlet(
    "Set-NetAdapterBinding",
    "NetAdapter",
    Parameter(
        "Name", STRINGS, ("ifAlias", "InterfaceAlias"), sets=(InSet("ByName", position=0, by_name=True),)
    ),
    parameter("ComponentID", STRINGS, mandatory=True),
    parameter("Enabled", BOOL, mandatory=True),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_binding(call: Call) -> None:
    """Bind a protocol to adapters or take it off; the model can do without IPv6 alone."""
    if [name.lower() for name in call.texts("ComponentID")] != ["ms_tcpip6"]:
        raise call.refuse("ComponentID", ", ".join(call.texts("ComponentID")))
    adapters = [a for a in call.machine.network.adapters if not a.loopback]
    for adapter in select(
        call, adapters, "Name", "Name", "MSFT_NetAdapterBindingSettingData", lambda a: a.name
    ):
        adapter.ipv6 = call.flag("Enabled")
        if not adapter.ipv6:
            adapter.addresses = [a for a in adapter.addresses if a.version == 4 or a.link_local]


_COMPONENTS = (
    ("ms_tcpip", "Internet Protocol Version 4 (TCP/IPv4)"),
    ("ms_tcpip6", "Internet Protocol Version 6 (TCP/IPv6)"),
    ("ms_server", "File and Printer Sharing for Microsoft Networks"),
    ("ms_msclient", "Client for Microsoft Networks"),
)


@cmdlet(
    "Get-NetAdapterAdvancedProperty",
    "NetAdapter",
    Parameter(
        "Name", STRINGS, ("ifAlias", "InterfaceAlias"), sets=(InSet("ByName", position=0, by_name=True),)
    ),
    parameter("RegistryKeyword", STRINGS, aliases=("RegKey",)),
    switch("AllProperties"),
    switch("IncludeHidden"),
    kind="Function",
    default_set="ByName",
)
def get_advanced(call: Call) -> None:
    """Driver settings; the model has the VLAN id, where one is set."""
    word = "MSFT_NetAdapterAdvancedPropertySettingData"
    adapters = [a for a in call.machine.network.adapters if not a.loopback]
    for adapter in select(call, adapters, "Name", "Name", word, lambda a: a.name):
        every = [("VlanID", str(adapter.vlan))] if adapter.vlan else []
        for keyword, value in select(call, every, "RegistryKeyword", "RegistryKeyword", word, lambda p: p[0]):
            properties: dict[str, Plain] = {
                "Name": adapter.name,
                "InterfaceAlias": adapter.name,
                "DisplayName": "VLAN ID",
                "DisplayValue": value,
                "RegistryKeyword": keyword,
                "RegistryValue": [value],
            }
            call.give(instance(word, properties))


@cmdlet(
    "Set-NetAdapterAdvancedProperty",
    "NetAdapter",
    Parameter(
        "Name", STRINGS, ("ifAlias", "InterfaceAlias"), sets=(InSet("ByName", position=0, by_name=True),)
    ),
    parameter("RegistryKeyword", STRINGS, mandatory=True, aliases=("RegKey",)),
    parameter("RegistryValue", STRINGS, mandatory=True),
    switch("NoRestart"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_advanced(call: Call) -> None:
    """Change a driver setting; the model has the VLAN id."""
    if [name.lower() for name in call.texts("RegistryKeyword")] != ["vlanid"]:
        raise call.refuse("RegistryKeyword", ", ".join(call.texts("RegistryKeyword")))
    word = "MSFT_NetAdapterAdvancedPropertySettingData"
    adapters = [a for a in call.machine.network.adapters if a.physical and not a.loopback]
    for adapter in select(call, adapters, "Name", "Name", word, lambda a: a.name):
        adapter.vlan = int(call.texts("RegistryValue")[0])


@cmdlet(
    "Get-NetTCPConnection",
    _MODULE,
    parameter("LocalAddress", STRINGS, 0, aliases=("IPAddress",)),
    parameter("LocalPort", "System.UInt16[]", 1),
    parameter("State", f"{_GENERATED}.NetTCPConnection.State[]"),
    parameter("OwningProcess", "System.UInt32[]"),
    kind="Function",
)
def get_connection(call: Call) -> None:
    """Listening ports; the model keeps no list of established connections."""
    states = [s.lower() for s in call.texts("State")]
    if states and states != ["listen"]:
        raise call.refuse("State", states[0])
    found = [n for n in call.machine.sockets.listeners if n.protocol == "tcp"]
    if call.has("LocalPort"):
        found = [n for n in found if n.port in call.numbers("LocalPort")]
    if call.has("OwningProcess"):
        found = [n for n in found if n.pid in call.numbers("OwningProcess")]
    if call.has("LocalAddress"):
        found = [n for n in found if n.address in call.texts("LocalAddress")]
    if not found and call.parameters:
        call.fail(nothing_fits(call, "MSFT_NetTCPConnection"))
    for listener in found:
        call.give(
            instance(
                "MSFT_NetTCPConnection",
                {
                    "LocalAddress": listener.address,
                    "LocalPort": uint16(listener.port),
                    "RemoteAddress": "::" if ":" in listener.address else "0.0.0.0",
                    "RemotePort": uint16(0),
                    "State": enum(f"{_GENERATED}.NetTCPConnection.State", 2, "Listen"),
                    "OwningProcess": uint32(listener.pid),
                },
            )
        )


# ---- IP interfaces -------------------------------------------------------------------------------------


def _show_interface(adapter: Adapter, version: int) -> Record:
    kind = f"{_GENERATED}.NetIPInterface"

    def switched(name: str, on: bool) -> Typed:
        return enum(f"{kind}.{name}", int(on), "Enabled" if on else "Disabled")

    connected = adapter.up
    return instance(
        "MSFT_NetIPInterface",
        {
            "InterfaceAlias": adapter.name,
            "InterfaceIndex": uint32(adapter.index),
            "ifIndex": uint32(adapter.index),
            "AddressFamily": family_enum(f"{kind}.AddressFamily", version),
            "Dhcp": switched("Dhcp", adapter.dhcp),
            "Forwarding": switched("Forwarding", adapter.forwarding),
            "WeakHostSend": switched("WeakHostSend", adapter.weak_host_send),
            "WeakHostReceive": switched("WeakHostReceive", adapter.weak_host_receive),
            "NlMtu": uint32(adapter.mtu),
            "InterfaceMetric": uint32(15 if adapter.metric is None else adapter.metric),
            "AutomaticMetric": switched("AutomaticMetric", adapter.metric is None),
            "ConnectionState": enum(
                f"{kind}.ConnectionState", int(connected), "Connected" if connected else "Disconnected"
            ),
            "CompartmentId": uint32(adapter.compartment),
            "PolicyStore": "ActiveStore",
        },
    )


_SWITCHED = ("Dhcp", "Forwarding", "WeakHostSend", "WeakHostReceive", "AutomaticMetric")


@cmdlet(
    "Get-NetIPInterface",
    _MODULE,
    Parameter("InterfaceAlias", STRINGS, ("ifAlias",), sets=(InSet("ByName", position=0, by_name=True),)),
    Parameter("InterfaceIndex", "System.UInt32[]", ("ifIndex",), sets=(InSet("ByName", by_name=True),)),
    parameter("AddressFamily", f"{_GENERATED}.NetIPInterface.AddressFamily", words=("IPv4", "IPv6")),
    *(parameter(name, f"{_GENERATED}.NetIPInterface.{name}[]") for name in _SWITCHED),
    parameter("ConnectionState", f"{_GENERATED}.NetIPInterface.ConnectionState[]"),
    parameter("PolicyStore"),
    kind="Function",
    default_set="ByName",
)
def get_interface(call: Call) -> None:
    """Interfaces, one object for each family."""
    versions = [family_number(call)] if call.has("AddressFamily") else [6, 4]
    chosen = on_interfaces(call, "MSFT_NetIPInterface")
    for version in versions:
        for adapter in chosen:
            if adapter.switch is not None or not adapter.bound:
                continue
            record = _show_interface(adapter, version)
            names = [n for n in (*_SWITCHED, "ConnectionState") if call.has(n)]
            if all(as_text(record[n]).lower() in [w.lower() for w in call.texts(n)] for n in names):
                call.give(record)


@cmdlet(
    "Set-NetIPInterface",
    _MODULE,
    Parameter("InterfaceAlias", STRINGS, ("ifAlias",), sets=(InSet("ByName", position=0, by_name=True),)),
    Parameter("InterfaceIndex", "System.UInt32[]", ("ifIndex",), sets=(InSet("ByName", by_name=True),)),
    Parameter(
        "InputObject",
        f"{CIM}#MSFT_NetIPInterface[]",
        sets=(InSet("InputObject", mandatory=True, by_value=True),),
    ),
    parameter("AddressFamily", f"{_GENERATED}.NetIPInterface.AddressFamily", words=("IPv4", "IPv6")),
    *(
        parameter(name, f"{_GENERATED}.NetIPInterface.{name}", words=("Enabled", "Disabled"))
        for name in _SWITCHED
    ),
    parameter("InterfaceMetric", "System.UInt32"),
    parameter("NlMtuBytes", "System.UInt32"),
    parameter("PolicyStore"),
    switch("PassThru"),
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_interface(call: Call) -> None:
    """Change settings of interfaces."""
    network = call.machine.network
    if call.has("InputObject"):
        indexes = [as_int(r["InterfaceIndex"]) for r in call.records("InputObject")]
        chosen = [a for a in network.adapters if a.index in indexes]
    else:
        chosen = on_interfaces(call, "MSFT_NetIPInterface")
    for adapter in chosen:
        if call.has("Dhcp"):
            network.set_dhcp(adapter, call.flag("Dhcp"))
        adapter.forwarding = call.flag("Forwarding", adapter.forwarding)
        adapter.weak_host_send = call.flag("WeakHostSend", adapter.weak_host_send)
        adapter.weak_host_receive = call.flag("WeakHostReceive", adapter.weak_host_receive)
        adapter.mtu = call.number("NlMtuBytes", adapter.mtu)
        if call.has("InterfaceMetric"):
            adapter.metric = call.number("InterfaceMetric")
        if call.flag("AutomaticMetric"):
            adapter.metric = None
        network.publish(adapter)
        if call.flag("PassThru"):
            call.give(_show_interface(adapter, 4))


# ---- DNS client ----------------------------------------------------------------------------------------


@cmdlet("Get-DnsClient", "DnsClient", *PLAIN_INTERFACE, kind="Function", default_set="ByAlias")
def get_dns_client(call: Call) -> None:
    """The DNS settings of interfaces."""
    for adapter in on_interfaces(call, "MSFT_DNSClient"):
        call.give(
            instance(
                "MSFT_DNSClient",
                {
                    "InterfaceAlias": adapter.name,
                    "InterfaceIndex": uint32(adapter.index),
                    "ConnectionSpecificSuffix": adapter.suffix,
                    "ConnectionSpecificSuffixSearchList": [],
                    "RegisterThisConnectionsAddress": adapter.register,
                    "UseSuffixWhenRegistering": False,
                },
            )
        )


@cmdlet(
    "Set-DnsClient",
    "DnsClient",
    Parameter("InterfaceAlias", STRINGS, sets=(InSet("ByAlias", mandatory=True, position=0, by_name=True),)),
    Parameter("InterfaceIndex", "System.UInt32[]", sets=(InSet("ByIndex", mandatory=True, by_name=True),)),
    parameter("ConnectionSpecificSuffix", aliases=("Suffix",)),
    parameter("RegisterThisConnectionsAddress", BOOL),
    switch("ResetConnectionSpecificSuffix", aliases=("ResetSuffix",)),
    kind="Function",
    default_set="ByAlias",
    should_process=True,
)
def set_dns_client(call: Call) -> None:
    """Change the DNS settings of interfaces."""
    for adapter in on_interfaces(call, "MSFT_DNSClient"):
        adapter.suffix = call.text("ConnectionSpecificSuffix", adapter.suffix)
        if call.flag("ResetConnectionSpecificSuffix"):
            adapter.suffix = ""
        adapter.register = call.flag("RegisterThisConnectionsAddress", adapter.register)
        call.machine.network.publish(adapter)


def _search_list(call: Call) -> list[str]:
    text = call.machine.registry.text(TCPIP, "SearchList")
    return [s for s in text.split(",") if s]


@cmdlet("Get-DnsClientGlobalSetting", "DnsClient", kind="Function")
def get_dns_global(call: Call) -> None:
    """The machine's suffix search list."""
    names: list[Plain] = [*_search_list(call)]
    properties: dict[str, Plain] = {
        "UseSuffixSearchList": True,
        "SuffixSearchList": names,
        "UseDevolution": True,
        "DevolutionLevel": uint32(0),
    }
    call.give(instance("MSFT_DNSClientGlobalSetting", properties))


@cmdlet(
    "Set-DnsClientGlobalSetting",
    "DnsClient",
    parameter("SuffixSearchList", STRINGS),
    parameter("UseDevolution", BOOL),
    kind="Function",
    should_process=True,
)
def set_dns_global(call: Call) -> None:
    """Set the machine's suffix search list."""
    if call.has("UseDevolution"):
        raise call.refuse("UseDevolution")
    call.machine.registry.set(
        TCPIP, "SearchList", "String", ",".join(s for s in call.texts("SuffixSearchList") if s)
    )


# ---- connection profiles -------------------------------------------------------------------------------

_CATEGORIES = {"Public": 0, "Private": 1, "DomainAuthenticated": 2}


@cmdlet(
    "Get-NetConnectionProfile",
    "NetConnection",
    parameter("Name", STRINGS),
    *PLAIN_INTERFACE,
    kind="Function",
)
def get_profile(call: Call) -> None:
    """The networks that interfaces are connected to."""
    connected = [a for a in on_interfaces(call, "MSFT_NetConnectionProfile") if _has_profile(a)]
    if (
        not connected
        and not call.result.errors
        and (call.has("InterfaceAlias") or call.has("InterfaceIndex"))
    ):
        name = "InterfaceAlias" if call.has("InterfaceAlias") else "InterfaceIndex"
        call.fail(not_found(call, "MSFT_NetConnectionProfile", name, call.texts(name)[0]))
    call.give(*(_show_profile(a) for a in connected))


def _has_profile(adapter: Adapter) -> bool:
    return not adapter.loopback and adapter.up and adapter.switch is None and bool(adapter.ipv4)


def _show_profile(adapter: Adapter) -> Record:
    kind = f"{_GENERATED}.NetConnectionProfile"
    online = any(a.origin in ("Manual", "Dhcp") for a in adapter.ipv4)
    return instance(
        "MSFT_NetConnectionProfile",
        {
            "Name": "Network",
            "InterfaceAlias": adapter.name,
            "InterfaceIndex": uint32(adapter.index),
            "NetworkCategory": enum(
                f"{kind}.NetworkCategory", _CATEGORIES[adapter.category], adapter.category
            ),
            "IPv4Connectivity": enum(
                f"{kind}.IPv4Connectivity", 4 if online else 1, "Internet" if online else "NoTraffic"
            ),
            "IPv6Connectivity": enum(f"{kind}.IPv6Connectivity", 1, "NoTraffic"),
        },
    )


@cmdlet(
    "Set-NetConnectionProfile",
    "NetConnection",
    parameter("Name", STRINGS, sets=("ByQuery",)),
    *(replace(p, sets=(InSet("ByQuery", by_name=True),)) for p in PLAIN_INTERFACE),
    Parameter(
        "InputObject",
        f"{CIM}#MSFT_NetConnectionProfile[]",
        sets=(InSet("InputObject", mandatory=True, by_value=True),),
    ),
    parameter(
        "NetworkCategory", f"{_GENERATED}.NetConnectionProfile.NetworkCategory", words=("Public", "Private")
    ),
    switch("PassThru"),
    kind="Function",
    default_set="ByQuery",
    should_process=True,
)
def set_profile(call: Call) -> None:
    """Change the category of a connected network; a domain network cannot be changed by hand."""
    if call.has("InputObject"):
        indexes = [as_int(r["InterfaceIndex"]) for r in call.records("InputObject")]
        chosen = [a for a in call.machine.network.adapters if a.index in indexes]
    else:
        chosen = [a for a in on_interfaces(call, "MSFT_NetConnectionProfile") if _has_profile(a)]
    word = call.text("NetworkCategory")
    for adapter in chosen:
        if adapter.category == "DomainAuthenticated":
            message = (
                "Unable to set NetworkCategory due to one of the following possible reasons: not running "
            )
            message += (
                "PowerShell elevated; the NetworkCategory cannot be changed from 'DomainAuthenticated'."
            )
            call.fail(windows_error(call, 5, message, category="PermissionDenied"))
        elif word:
            adapter.category = "Private" if word.lower() == "private" else "Public"


# ---- TCP and UDP ---------------------------------------------------------------------------------------

_TEMPLATES = ("Automatic", "InternetCustom", "DatacenterCustom", "Compat", "Datacenter", "Internet")


def _show_tcp(call: Call, name: str) -> Record:
    start, count = call.machine.network.ports["tcp"]
    empty = name == "Automatic"
    return instance(
        "MSFT_NetTCPSetting",
        {
            "SettingName": name,
            "DynamicPortRangeStartPort": None if empty else Typed("System.UInt16", start),
            "DynamicPortRangeNumberOfPorts": None if empty else Typed("System.UInt16", count),
        },
    )


@cmdlet(
    "Get-NetTCPSetting",
    _MODULE,
    Parameter("SettingName", STRINGS, sets=(InSet("ByName", position=0, by_name=True),)),
    kind="Function",
    default_set="ByName",
)
def get_tcp(call: Call) -> None:
    """The TCP templates; the dynamic port range is one for all of them."""
    names = select(call, _TEMPLATES, "SettingName", "SettingName", "MSFT_NetTCPSetting", lambda n: n)
    call.give(*(_show_tcp(call, name) for name in names))


_PORTS = (
    parameter("DynamicPortRangeStartPort", "System.UInt16"),
    parameter("DynamicPortRangeNumberOfPorts", "System.UInt16"),
)


def _set_ports(call: Call, protocol: str) -> None:
    ports = call.machine.network.ports
    start = call.number("DynamicPortRangeStartPort", ports[protocol][0])
    count = call.number("DynamicPortRangeNumberOfPorts", ports[protocol][1])
    if start < 1025 or count < 255 or start + count > 65536:
        call.fail(windows_error(call, 87, "The parameter is incorrect.", category="InvalidArgument"))
        return
    ports[protocol] = (start, count)


@cmdlet(
    "Set-NetTCPSetting",
    _MODULE,
    Parameter("SettingName", STRINGS, sets=(InSet("ByName", position=0, by_name=True),)),
    *_PORTS,
    kind="Function",
    default_set="ByName",
    should_process=True,
)
def set_tcp(call: Call) -> None:
    """Set the dynamic port range. Only custom templates take other settings, which the model does not have."""
    select(call, _TEMPLATES, "SettingName", "SettingName", "MSFT_NetTCPSetting", lambda n: n)
    if not call.result.errors:
        _set_ports(call, "tcp")


@cmdlet("Get-NetUDPSetting", _MODULE, kind="Function")
def get_udp(call: Call) -> None:
    """The UDP port range."""
    start, count = call.machine.network.ports["udp"]
    properties: dict[str, Plain] = {
        "DynamicPortRangeStartPort": Typed("System.UInt16", start),
        "DynamicPortRangeNumberOfPorts": Typed("System.UInt16", count),
    }
    call.give(instance("MSFT_NetUDPSetting", properties))


@cmdlet("Set-NetUDPSetting", _MODULE, *_PORTS, kind="Function", should_process=True)
def set_udp(call: Call) -> None:
    """Set the UDP port range."""
    _set_ports(call, "udp")
