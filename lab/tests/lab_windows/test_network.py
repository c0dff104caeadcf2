"""Addresses, routes, DNS, ports, and what a virtual switch does to them."""

from __future__ import annotations

from typing import Any

import pytest
from winboot_lab.windows.machine import Machine

from lab_windows.conftest import ask, one, refused, shown, still

ETHERNET = 5


def addresses(machine: Machine, **more: Any) -> list[str]:
    """The IPv4 addresses there are."""
    return [a["IPAddress"] for a in ask(machine, "Get-NetIPAddress", AddressFamily="IPv4", **more)]


def test_a_machine_has_loopback_and_its_address(machine: Machine) -> None:
    """The address is static by default."""
    assert addresses(machine) == ["127.0.0.1", "10.0.0.21"]
    own = one(machine, "Get-NetIPAddress", IPAddress=["10.0.0.21"])
    assert (shown(own, "PrefixOrigin"), shown(own, "AddressState")) == ("Manual", "Preferred")


def test_the_link_local_address_is_listed_without_a_family(machine: Machine) -> None:
    """Get-NetIPAddress without -AddressFamily gives IPv6 too."""
    found = ask(machine, "Get-NetIPAddress", InterfaceIndex=[ETHERNET])
    assert {shown(a, "AddressFamily") for a in found} == {"IPv4", "IPv6"}


def test_asking_for_a_missing_address_is_an_error_with_its_id(machine: Machine) -> None:
    """CDXML's own."""
    problem = refused(machine, "Get-NetIPAddress", IPAddress=["10.9.9.9"])
    assert (problem.id, problem.category) == (
        "CmdletizationQuery_NotFound_IPAddress,Get-NetIPAddress",
        "ObjectNotFound",
    )


def test_a_new_static_address_is_tentative_for_a_moment(machine: Machine) -> None:
    """Duplicate address detection takes its time."""
    ask(machine, "New-NetIPAddress", InterfaceIndex=ETHERNET, IPAddress="10.0.0.99", PrefixLength=24)
    assert shown(one(machine, "Get-NetIPAddress", IPAddress=["10.0.0.99"]), "AddressState") == "Tentative"
    machine.settle(3)
    assert shown(one(machine, "Get-NetIPAddress", IPAddress=["10.0.0.99"]), "AddressState") == "Preferred"


def test_an_address_that_exists_cannot_be_made_again(machine: Machine) -> None:
    """Windows System Error 5010."""
    problem = refused(
        machine, "New-NetIPAddress", InterfaceIndex=ETHERNET, IPAddress="10.0.0.21", PrefixLength=24
    )
    assert problem.id == "Windows System Error 5010,New-NetIPAddress"


def test_on_link_routes_follow_from_the_addresses(machine: Machine) -> None:
    """Get-NetRoute lists them with the default route, with protocol Local."""
    routes = ask(machine, "Get-NetRoute", InterfaceIndex=[ETHERNET], AddressFamily="IPv4")
    by_protocol = {r["DestinationPrefix"]: shown(r, "Protocol") for r in routes}
    assert by_protocol["0.0.0.0/0"] == "NetMgmt"
    assert by_protocol["10.0.0.0/24"] == by_protocol["10.0.0.21/32"] == "Local"


def test_routes_of_the_active_store_end_with_a_reboot(machine: Machine) -> None:
    """Persistent routes stay in the registry."""
    ask(machine, "New-NetRoute", InterfaceIndex=ETHERNET, DestinationPrefix="10.1.0.0/16", NextHop="10.0.0.5")
    ask(
        machine,
        "New-NetRoute",
        InterfaceIndex=ETHERNET,
        DestinationPrefix="10.2.0.0/16",
        NextHop="10.0.0.5",
        PolicyStore="ActiveStore",
    )
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\PersistentRoutes"
    names = [v["name"] for v in ask(machine, "registry.values", key=key)]
    assert "10.1.0.0,255.255.0.0,10.0.0.5,256" in names
    assert not any(n.startswith("10.2.") for n in names)
    machine.reboot()
    machine.settle(60)
    left = [r["DestinationPrefix"] for r in ask(machine, "Get-NetRoute", NextHop=["10.0.0.5"])]
    assert left == ["10.1.0.0/16"]


def test_dns_servers_are_listed_for_each_family(machine: Machine) -> None:
    """An empty list is an object too."""
    found = ask(machine, "Get-DnsClientServerAddress", InterfaceIndex=[ETHERNET])
    assert [f["ServerAddresses"] for f in found] == [["10.0.0.2"], []]
    ask(machine, "Set-DnsClientServerAddress", InterfaceIndex=[ETHERNET], ServerAddresses=["10.0.0.3"])
    assert ask(machine, "Get-DnsClientServerAddress", InterfaceIndex=[ETHERNET])[0]["ServerAddresses"] == [
        "10.0.0.3"
    ]


def test_forwarding_and_mtu_are_set_on_an_interface(machine: Machine) -> None:
    """And read back."""
    ask(
        machine,
        "Set-NetIPInterface",
        InterfaceIndex=[ETHERNET],
        AddressFamily="IPv4",
        Forwarding="Enabled",
        NlMtuBytes=1450,
    )
    found = one(machine, "Get-NetIPInterface", InterfaceIndex=[ETHERNET], AddressFamily="IPv4")
    assert (shown(found, "Forwarding"), shown(found, "NlMtu")) == ("Enabled", "1450")


def test_the_dynamic_ports_are_one_range_for_all_tcp_templates(machine: Machine) -> None:
    """The template Automatic shows none."""
    ask(machine, "Set-NetTCPSetting", DynamicPortRangeStartPort=33000, DynamicPortRangeNumberOfPorts=32536)
    found = {s["SettingName"]: s["DynamicPortRangeStartPort"] for s in ask(machine, "Get-NetTCPSetting")}
    assert found["Automatic"] is None
    assert found["Internet"].value == 33000


def test_a_domain_network_keeps_its_category(machine: Machine) -> None:
    """Windows detects a domain network by itself."""
    ask(machine, "Set-NetConnectionProfile", InterfaceIndex=[ETHERNET], NetworkCategory="Private")
    assert shown(one(machine, "Get-NetConnectionProfile"), "NetworkCategory") == "Private"
    machine.network.adapters[1].category = "DomainAuthenticated"
    problem = refused(
        machine, "Set-NetConnectionProfile", InterfaceIndex=[ETHERNET], NetworkCategory="Public"
    )
    assert problem.category == "PermissionDenied"


def test_the_adapter_that_was_never_there_is_an_error(machine: Machine) -> None:
    """By name; a wildcard finds nothing in silence."""
    assert (
        refused(machine, "Get-NetAdapter", Name=["eth0"]).id
        == "CmdletizationQuery_NotFound_Name,Get-NetAdapter"
    )
    assert ask(machine, "Get-NetAdapter", Name=["eth*0"]) == []


def test_a_machine_on_dhcp_gets_its_address_again_behind_a_switch() -> None:
    """The address returns after a few seconds; until then the machine is out of reach."""
    machine = Machine("WIN-2", time=still(), dhcp=True)
    heard: list[str] = []
    machine.watch(heard.append)
    machine.features.install_now("Containers")
    machine.hns.create_network({"Name": "cbr0", "Type": "L2Bridge", "Subnets": []})
    assert (machine.reachable(), set(heard)) == (False, {"network-lost"})
    machine.settle(10)
    assert machine.reachable()
    assert "network-back" in heard
    holder = machine.network.management()
    assert holder is not None
    assert holder.name == "vEthernet (Ethernet)"


def test_a_machine_on_dhcp_asks_for_its_address_at_each_boot() -> None:
    """Slow DHCP is what agents stumble over."""
    machine = Machine("WIN-7", time=still(), dhcp=True)
    machine.hardware.dhcp_seconds = 20
    machine.reboot()
    machine.settle(50)
    assert (machine.running, machine.reachable()) == (True, False)
    machine.settle(20)
    assert machine.reachable()
    assert len([r for r in machine.network.routes if r.prefix == "0.0.0.0/0"]) == 1


@pytest.mark.parametrize(("release", "kept"), [("2019", False), ("2022", False), ("2025", True)])
def test_a_static_address_is_lost_behind_a_switch_on_older_systems(release: Any, kept: bool) -> None:
    """Address, gateway, DNS servers and static routes; the interface falls back to DHCP."""
    machine = Machine("WIN-3", time=still(), release=release)
    machine.features.install_now("Containers")
    machine.hns.create_network({"Name": "cbr0", "Type": "L2Bridge", "Subnets": []})
    machine.settle(70)
    assert machine.reachable() is kept
    virtual = machine.network.adapter("vEthernet (Ethernet)")
    assert virtual is not None
    assert (virtual.dhcp, virtual.dns_servers == ["10.0.0.2"]) == (not kept, kept)
    assert (machine.network.default_adapter() is virtual) is kept
    if not kept:
        assert [a.ip for a in virtual.ipv4] == ["169.254.17.42"]


def test_the_flag_for_static_addresses_helps_on_2019() -> None:
    """DeviceLessNicDisabled=1."""
    machine = Machine("WIN-4", time=still(), release="2019")
    machine.features.install_now("Containers")
    key = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\hns\State"
    ask(machine, "registry.set", key=key, name="DeviceLessNicDisabled", kind="DWord", value=1)
    machine.hns.create_network({"Name": "cbr0", "Type": "L2Bridge", "Subnets": []})
    assert machine.network.management() is not None


def test_what_was_lost_can_be_put_back(machine: Machine) -> None:
    """With the cmdlets a watchdog uses; then the machine is reached again."""
    machine.features.install_now("Containers")
    machine.hns.create_network({"Name": "cbr0", "Type": "L2Bridge", "Subnets": []})
    index = next(a.index for a in machine.network.adapters if a.name == "vEthernet (Ethernet)")
    # The first watchdog's try comes too early: Windows is still at it.
    early = machine.console.invoke("New-NetIPAddress", {"InterfaceIndex": index, "IPAddress": "10.0.0.21"})
    assert [error.id for error in early.errors] == ["Windows System Error 1168,New-NetIPAddress"]
    machine.settle(1)
    ask(
        machine,
        "New-NetIPAddress",
        InterfaceIndex=index,
        IPAddress="10.0.0.21",
        PrefixLength=24,
        DefaultGateway="10.0.0.1",
    )
    machine.settle(3)
    assert machine.reachable()
    assert machine.network.online()


def test_removing_the_last_network_gives_the_adapter_back(machine: Machine) -> None:
    """The virtual interface goes."""
    machine.features.install_now("Containers")
    network = machine.hns.create_network({"Name": "a", "Type": "L2Bridge"})
    second = machine.hns.create_network({"Name": "b", "Type": "L2Bridge"})
    machine.hns.remove_network(network)
    assert machine.network.adapter("vEthernet (Ethernet)") is not None
    machine.hns.remove_network(second)
    assert machine.network.adapter("vEthernet (Ethernet)") is None
    assert machine.network.adapters[1].switch is None


def test_the_adapter_has_its_own_settings_again_but_not_all_routes(machine: Machine) -> None:
    """Static settings stay stored below a switch; on 2022 routes beyond the default one are lost."""
    ask(
        machine,
        "New-NetRoute",
        InterfaceIndex=ETHERNET,
        DestinationPrefix="169.254.169.254/32",
        NextHop="10.0.0.1",
    )
    machine.features.install_now("Containers")
    network = machine.hns.create_network({"Name": "a", "Type": "L2Bridge"})
    assert not machine.reachable()
    machine.hns.remove_network(network)
    assert machine.reachable()
    assert machine.network.adapters[1].dns == ["10.0.0.2"]
    assert [r.prefix for r in machine.network.routes] == ["0.0.0.0/0"]


def test_the_binding_shows_the_owner_of_the_adapter(machine: Machine) -> None:
    """Below a switch no protocol is bound any more."""
    assert (
        one(machine, "Get-NetAdapterBinding", Name=["Ethernet"], ComponentID=["ms_tcpip6"])["Enabled"] is True
    )
    machine.features.install_now("Containers")
    machine.hns.create_network({"Name": "cbr0", "Type": "L2Bridge"})
    assert (
        one(machine, "Get-NetAdapterBinding", Name=["Ethernet"], ComponentID=["ms_tcpip"])["Enabled"] is False
    )


def test_remote_management_listens(machine: Machine) -> None:
    """Port 5985, by the system."""
    assert (
        one(machine, "Get-NetTCPConnection", State=["Listen"], LocalPort=[5985])["OwningProcess"].value == 4
    )
    assert (
        refused(machine, "Get-NetTCPConnection", State=["Listen"], LocalPort=[10250]).category
        == "ObjectNotFound"
    )


def test_management_may_listen_elsewhere(machine: Machine) -> None:
    """Also after the next boot; an endpoint on loopback has its own port."""
    machine.manage_at(43121)
    machine.reboot()
    machine.settle(60)
    assert one(machine, "Get-NetTCPConnection", State=["Listen"])["LocalPort"].value == 43121
