"""The machine is reached by every address it had: during a join, after it, and after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from winboot_lab.programs import hcn
from winboot_lab.windows.network import Adapter, Route

from tests.lab.cuts import a_machine, power
from tests.lab.server_room import DNS, NODE, ROOMS, SECOND, Addressing, Room, Watch, reached
from tests.lab.site import Site, differences, only, problems
from tests.lab.state import without_endpoint_routes
from tests.matrix import first
from winboot.report.hints import HINTS


@pytest.fixture(autouse=True)
def time_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is outside the lab: on a slow computer, too, its time waits for a task that is at work."""
    monkeypatch.setattr("winboot_lab.windows.clock.PATIENCE", 60.0)


def carrier(site: Site, ip: str = NODE) -> Adapter:
    """The interface that has an address."""
    found = site.machine.network.holder(ip)
    assert found is not None, ip
    return found


# Seconds that the adapter of the node's address may be without one while a switch comes onto it. It is 2 to 4 in the lab; a
# connection of TCP outlives it.
BLINK = 10.0


def ways_out(site: Site) -> set[tuple[str, str]]:
    """The machine's own default routes: next hop, and the address of the interface; the one that HNS gives the host's
    endpoint is left out."""
    network = site.machine.network
    return {
        (route.next_hop, adapter.ipv4[0].ip)
        for route in network.routes
        for adapter in [network.by_index(route.interface)]
        if route.prefix == "0.0.0.0/0" and adapter is not None and adapter.lan is not None
    }


def never_cut_off(watch: Watch) -> None:
    """Each address was there all the time, but for the moment in which a switch takes its own adapter over."""
    assert watch.looks > 100
    for away in (watch.longest, watch.after_start):
        for ip, seconds in away.items():
            assert seconds <= (BLINK if ip in (NODE, SECOND) else 0.0), (ip, watch.longest, watch.after_start)


def holds(room: Room, folder: Path) -> None:
    """A join, another one, and a restart leave the machine its addresses, its ways out and what was set by hand."""
    site = room.site(folder)
    before, dns, ways = reached(site), list(carrier(site).dns), ways_out(site)
    assert len(before) == room.adapters + room.addresses - 1
    watch = Watch(site)

    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    site.settle(200)
    assert (reached(site), ways_out(site)) == (before, ways)
    assert (carrier(site).dns, differences(site.join())) == (dns, {})
    site.machine.reboot()
    site.settle(600)

    assert (reached(site), ways_out(site)) == (before, ways)
    assert carrier(site).dns == dns
    assert (differences(site.join()), site.refusals) == ({}, [])
    never_cut_off(watch)


@pytest.mark.parametrize("room", ROOMS.params(str))
def test_a_machine_keeps_its_addresses_in_every_room(room: Room, tmp_path: Path) -> None:
    holds(room, tmp_path)


@pytest.mark.matrix
def test_the_switch_of_flannel_is_made_on_the_adapter_of_the_nodes_address(tmp_path: Path) -> None:
    """HNS would take the storage adapter, which Windows lists first."""
    site = Room("flannel-host-gw", 2, "static", 2, "2022").site(tmp_path)
    watch = Watch(site)
    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)

    networks = site.machine.hns.networks.values()
    assert {(one["Name"], one["NetworkAdapterName"]) for one in networks} == {
        ("External", "Ethernet"),
        ("cbr0", "Ethernet"),
    }
    assert {NODE, SECOND, "172.20.0.5"} <= reached(site)
    (second,) = [one for one in carrier(site).addresses if one.ip == SECOND]
    assert second.skip_as_source
    site.machine.reboot()
    site.settle(300)
    assert {NODE, SECOND, "172.20.0.5"} <= reached(site)
    never_cut_off(watch)


@pytest.mark.parametrize(
    "solution", first(0, ["flannel-host-gw", "azure", "flannel-vxlan", "win-bridge"], daily=0)
)
def test_a_node_whose_management_is_on_another_adapter_keeps_it(solution: str, tmp_path: Path) -> None:
    """Management, the default route and the API server are on `Ethernet`, which Windows lists first; the inventory puts the
    node's address on `Cluster`."""
    site = Room(solution, 1, "static", 2, "2022").site(tmp_path)
    site.machine.network.plug_in_another("Cluster", "10.7.0.11")
    inventory = yaml.safe_load(site.files.inventory.read_text())
    (group,) = inventory["groups"].values()
    group["hosts"]["win-1"]["node_ip"] = "10.7.0.11"
    site.files.inventory.write_text(yaml.safe_dump(inventory))
    assert [spec.machine.node_ip for spec in site.specs()] == ["10.7.0.11"]
    before, watch = reached(site), Watch(site)

    report = site.join()
    site.settle(60)
    assert (problems(report), only(report).ready) == ([], True)
    assert {one["NetworkAdapterName"] for one in site.machine.hns.networks.values()} == {"Cluster"}
    site.machine.reboot()
    site.settle(600)

    assert reached(site) == before
    assert (differences(site.join()), site.refusals) == ({}, [])
    assert {ip: watch.longest[ip] for ip in (NODE, SECOND)} == {NODE: 0.0, SECOND: 0.0}
    assert watch.longest["10.7.0.11"] <= BLINK


@pytest.mark.parametrize(
    "solution", first(0, ["win-bridge", "flannel-vxlan", "flannel-host-gw", "azure"], daily=0)
)
def test_the_second_address_of_an_adapter_is_there_during_a_join_after_it_and_after_a_restart(
    solution: str, tmp_path: Path
) -> None:
    """On Windows Server 2022 the switch removes it; another application needs it."""
    holds(Room(solution, 1, "static", 2, "2022"), tmp_path)


@pytest.mark.parametrize(
    ("solution", "attempt"), first(0, [("win-overlay", 2), ("flannel-vxlan", 1)], daily=0)
)
def test_power_that_goes_between_two_addresses_costs_the_machine_none_and_no_route(
    solution: str, attempt: int, tmp_path: Path
) -> None:
    """The first address is back on the interface: for good at the second attempt, as it is not settled before that. Windows
    keeps the switch of win-overlay over the restart and drops that of flannel."""
    site = a_machine(solution, "2022", tmp_path)
    before, attempts = reached(site), list[str]()

    def hear(command: str, parameters: Mapping[str, Any]) -> None:
        if command == "new-netipaddress" and SECOND in parameters.values():
            attempts.append(command)
            if len(attempts) == attempt:
                power(site)

    site.machine.faults.watch_writes(hear)
    site.join(adopt=True)
    report = site.join(adopt=True)

    assert len(attempts) >= attempt
    assert (problems(report), only(report).ready) == ([], True)
    for _ in range(2):
        assert reached(site) == before
        assert "10.99.0.0/16" in {route.prefix for route in site.machine.network.routes}
        site.machine.reboot()
        site.settle(400)
    assert (differences(site.join(adopt=True)), site.refusals) == ({}, [])


@pytest.mark.parametrize("solution", first(0, ["flannel-host-gw", "azure", "calico"], daily=1))
def test_what_an_operator_changes_on_a_node_survives_its_restarts(solution: str, tmp_path: Path) -> None:
    """Another address and gateway, other DNS servers, category, MTU, IPv6."""
    site = Room(solution, 1, "static", 1, "2022").site(tmp_path)
    assert problems(site.join()) == []
    site.settle(300)
    network, uplink = site.machine.network, carrier(site)
    (address,) = [one for one in uplink.addresses if one.ip == NODE]
    address.ip = "10.0.1.77"
    uplink.dns, uplink.category, uplink.mtu, uplink.ipv6 = list(DNS), "Private", 1400, False
    ways = [one for one in network.routes if one.prefix == "0.0.0.0/0"]
    (route,) = [one for one in ways if one.interface == uplink.index]
    route.next_hop = "10.0.0.254"
    network.publish(uplink)
    before = without_endpoint_routes(network.tree())

    site.machine.reboot()
    site.settle(900)

    assert without_endpoint_routes(network.tree()) == before


@pytest.mark.matrix
def test_a_network_that_an_agent_made_on_another_adapter_is_taken_back_and_named(tmp_path: Path) -> None:
    """Another program's bridge on the storage adapter: HNS uses a switch that is there, and flanneld names no adapter."""
    site = Room("flannel-host-gw", 2, "static", 2, "2022").site(tmp_path)
    machine, before = site.machine, reached(site)

    def hear(line: str) -> None:
        hns = machine.services.find("hns")
        if '"step":"flanneld"' not in line or hns is None or hns.status != "Running":
            return
        if hcn.network(machine, "theirs") is not None:
            return
        subnet = {"AddressPrefix": "172.30.0.0/24", "GatewayAddress": "172.30.0.1"}
        asked = {"Name": "theirs", "Type": "L2Bridge", "NetworkAdapterName": "Storage", "Subnets": [subnet]}
        hcn.call(machine, "POST", "/networks/", asked)

    report = site.controller(hear=hear).join()
    site.settle(300)

    (told,) = [one for one in problems(report) if "DetachedFailed" in one]
    assert "the HNS network cbr0 was made on Storage, and the node's address is on Ethernet" in told
    assert HINTS["WrongAdapter"] in told
    assert {one["Name"] for one in machine.hns.networks.values()} & {"cbr0"} == set()
    assert machine.services.need("flanneld").status == "Stopped"
    assert reached(site) >= before - {"172.20.0.5"}, "another program's bridge keeps its address"


@pytest.mark.parametrize(
    ("solution", "addressing"),
    first(
        0,
        [
            ("flannel-vxlan", "dhcp"),
            ("calico", "static"),
            ("flannel-host-gw", "static"),
            ("flannel-vxlan", "static"),
        ],
        daily=0,
    ),
)
def test_a_route_set_by_hand_outlives_restarts(solution: str, addressing: Addressing, tmp_path: Path) -> None:
    """flannel's overlay ends with the boot, and what was on the interface of its switch with it."""
    site = Room(solution, 1, addressing, 1, "2019").site(tmp_path)
    network = site.machine.network
    network.add_route(Route("10.99.0.0/16", "10.0.0.254", carrier(site).index))
    assert problems(site.join()) == []
    site.settle(300)
    for _ in range(2):
        site.machine.reboot()
        site.settle(400)

        (route,) = [one for one in network.routes if one.prefix == "10.99.0.0/16"]
        assert (route.next_hop, route.persistent, route.interface) == (
            "10.0.0.254",
            True,
            carrier(site).index,
        )
    assert differences(site.join()) == {}


@pytest.mark.parametrize("solution", first(0, ["flannel-vxlan", "win-bridge"], daily=0))
def test_routes_changed_by_hand_on_a_node_are_as_the_last_run_saw_them(solution: str, tmp_path: Path) -> None:
    """One is removed and one added after a join: the next join takes note, once, and a restart keeps to it."""
    site = Room(solution, 1, "static", 1, "2019").site(tmp_path)
    network = site.machine.network
    network.add_route(Route("10.98.0.0/16", "10.0.0.254", carrier(site).index))
    assert problems(site.join()) == []
    site.settle(300)
    (gone,) = [one for one in network.routes if one.prefix == "10.98.0.0/16"]
    network.remove_route(gone)
    network.add_route(Route("10.99.0.0/16", "10.0.0.254", carrier(site).index))

    assert differences(site.join()) == {
        "postboot-task": [f"record of the network settings: {carrier(site).name}"]
    }
    assert differences(site.join()) == {}
    site.machine.reboot()
    site.settle(600)

    assert [one.prefix for one in network.routes if one.prefix in (gone.prefix, "10.99.0.0/16")] == [
        "10.99.0.0/16"
    ]
    assert differences(site.join()) == {}


@pytest.mark.parametrize("solution", first(0, ["flannel-host-gw", "flannel-vxlan"], daily=0))
def test_two_interfaces_of_one_mac_address_keep_what_each_had(solution: str, tmp_path: Path) -> None:
    """As a team's interfaces for several VLANs have it: one carries the node's address, the other stays as it is."""
    site = Room(solution, 2, "static", 2, "2019").site(tmp_path)
    other = carrier(site, "172.20.0.5")
    other.mac, other.dns = carrier(site).mac, ["172.20.0.53"]
    site.machine.network.publish(other)
    before, as_it_was = reached(site), asdict(other)

    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    assert (reached(site), asdict(other)) == (before, as_it_was)
    site.machine.reboot()
    site.settle(600)

    assert (reached(site), asdict(other)) == (before, as_it_was)
    assert (differences(site.join()), site.refusals) == ({}, [])


@pytest.mark.parametrize("solution", first(0, ["flannel-host-gw", "azure"], daily=0))
def test_the_second_function_of_accelerated_networking_is_left_alone(solution: str, tmp_path: Path) -> None:
    """The virtual function has the MAC address of the adapter that it serves, and nothing of IP is bound to it."""
    site = Room(solution, 1, "static", 2, "2022").site(tmp_path)
    network, uplink = site.machine.network, carrier(site)
    function = network.add_adapter(
        "Ethernet 2", "Mellanox ConnectX-4 Lx Virtual Ethernet Adapter", mac=uplink.mac
    )
    function.bound, function.ipv6, function.addresses = False, False, []
    before, as_it_was = reached(site), asdict(function)

    report = site.join()
    assert (problems(report), only(report).ready) == ([], True)
    site.machine.reboot()
    site.settle(600)

    assert (reached(site), asdict(function)) == (before, as_it_was)
    assert (differences(site.join()), site.refusals) == ({}, [])
