"""The Host Network Service."""

from __future__ import annotations

import json
from typing import Any

import pytest
from winboot_lab.engine.refusal import Refusal
from winboot_lab.windows.machine import Machine

from lab_windows.conftest import ask, one, still

BRIDGE = {
    "Name": "cbr0",
    "Type": "L2Bridge",
    "NetworkAdapterName": "Ethernet",
    "Subnets": [{"AddressPrefix": "10.244.3.0/24", "GatewayAddress": "10.244.3.1"}],
}


@pytest.fixture
def machine() -> Machine:
    """A machine on DHCP with containers."""
    machine = Machine("WIN-1", time=still(), dhcp=True)
    machine.features.install_now("Containers")
    return machine


def call(machine: Machine, method: str, path: str, request: Any = None) -> Any:
    """One HNSCall, as it answers."""
    text = "" if request is None else json.dumps(request)
    (answer,) = ask(machine, "hns.call", method=method, path=path, request=text)
    return json.loads(answer)


def test_a_network_learns_its_management_address_when_the_interface_has_one(machine: Machine) -> None:
    """On slow DHCP that takes a while."""
    made = call(machine, "POST", "/networks/", BRIDGE)["Output"]
    assert made["ManagementIP"] == ""
    machine.settle(10)
    found = call(machine, "GET", f"/networks/{made['ID']}")["Output"]
    assert (found["ManagementIP"], found["Subnets"][0]["GatewayAddress"]) == ("10.0.0.21", "10.244.3.1")


def test_a_name_can_only_be_taken_once(machine: Machine) -> None:
    """0x803b0010."""
    call(machine, "POST", "/networks", BRIDGE)
    answer = call(machine, "POST", "/networks", BRIDGE)
    assert (answer["Success"], answer["ErrorCode"]) == (False, 0x803B0010)


def test_errors_have_the_codes_of_windows(machine: Machine) -> None:
    """golang/sys, windows/zerrors_windows.go: HCN_E_ADAPTER_NOT_FOUND, HCN_E_ENDPOINT_ALREADY_ATTACHED."""
    absent = call(machine, "POST", "/networks", {**BRIDGE, "NetworkAdapterName": "Absent"})
    network = call(machine, "POST", "/networks", BRIDGE)["Output"]["ID"]
    endpoint = call(machine, "POST", "/endpoints", {"Name": "e", "VirtualNetwork": network})["Output"]["ID"]
    host = {"SystemType": "Host", "CompartmentId": 1}
    first, second = (call(machine, "POST", f"/endpoints/{endpoint}/attach", host) for _ in range(2))

    assert (absent["ErrorCode"], first["Success"], second["ErrorCode"]) == (0x803B0006, True, 0x803B0014)


def test_two_kinds_on_one_adapter_are_a_wrong_parameter(machine: Machine) -> None:
    """0x57, as with Antrea next to a bridge."""
    call(machine, "POST", "/networks", BRIDGE)
    answer = call(
        machine, "POST", "/networks", {"Name": "vxlan", "Type": "Overlay", "NetworkAdapterName": "Ethernet"}
    )
    assert answer["ErrorCode"] == 0x80070057


def test_an_unknown_key_is_refused_by_name(machine: Machine) -> None:
    """Never dropped in silence."""
    with pytest.raises(Refusal, match="Colour"):
        call(machine, "POST", "/networks", {**BRIDGE, "Colour": "red"})


def test_a_network_that_is_not_persistent_ends_with_the_boot(machine: Machine) -> None:
    """And with a restart of the service; a bridge stays."""
    call(machine, "POST", "/networks", BRIDGE)
    call(machine, "POST", "/networks", {"Name": "nat", "Type": "NAT", "Flags": 8})
    machine.reboot()
    machine.settle(60)
    assert [n["Name"] for n in call(machine, "GET", "/networks")["Output"]] == ["cbr0"]
    machine.settle(10)
    assert machine.reachable()


def test_an_endpoint_attached_to_the_host_is_an_interface(machine: Machine) -> None:
    """cbr0_ep with the second address, as flanneld makes it."""
    network = call(machine, "POST", "/networks", BRIDGE)["Output"]
    body = {
        "Name": "cbr0_ep",
        "VirtualNetwork": network["ID"],
        "IPAddress": "10.244.3.2",
        "GatewayAddress": "0.0.0.0",
    }
    endpoint = call(machine, "POST", "/endpoints", body)["Output"]
    attach = {"CompartmentId": 1, "SystemType": "Host"}
    assert call(machine, "POST", f"/endpoints/{endpoint['ID']}/attach", attach)["Success"]
    assert not call(machine, "POST", f"/endpoints/{endpoint['ID']}/attach", attach)["Success"]
    found = one(machine, "Get-NetIPAddress", IPAddress=["10.244.3.2"])
    assert found["InterfaceAlias"] == "vEthernet (cbr0_ep)"
    call(machine, "DELETE", f"/endpoints/{endpoint['ID']}")
    assert machine.network.holder("10.244.3.2") is None


def test_an_endpoint_without_an_address_gets_a_free_one(machine: Machine) -> None:
    """Not the gateway's."""
    network = call(machine, "POST", "/networks", BRIDGE)["Output"]
    taken = [
        call(machine, "POST", "/endpoints", {"VirtualNetwork": network["ID"]})["Output"]["IPAddress"]
        for _ in "ab"
    ]
    assert taken == ["10.244.3.2", "10.244.3.3"]


def test_load_balancers_go_with_their_endpoints_and_with_the_service(machine: Machine) -> None:
    """kube-proxy has to make them again."""
    network = call(machine, "POST", "/networks", BRIDGE)["Output"]
    endpoint = call(machine, "POST", "/endpoints", {"VirtualNetwork": network["ID"]})["Output"]
    body = {"References": [f"/endpoints/{endpoint['ID']}"], "Policies": [{"Type": "ELB"}]}
    call(machine, "POST", "/policylists", body)
    assert len(ask(machine, "Get-HnsPolicyList")) == 1
    ask(machine, "Restart-Service", Name=["hns"], Force=True)
    assert ask(machine, "Get-HnsPolicyList") == []
    assert len(ask(machine, "Get-HnsNetwork")) == 1


def test_the_cmdlets_come_with_the_containers_feature() -> None:
    """Before that they do not exist, and nothing can be imported from vmcompute.dll."""
    bare = Machine("WIN-5", time=still())
    assert "get-hnsnetwork" not in bare.commands
    with pytest.raises(Refusal, match="Get-HnsNetwork"):
        bare.invoke("Get-HnsNetwork", {})
    result = bare.invoke("hns.call", {"method": "GET", "path": "/networks"})
    assert result.errors[0].exception == "System.DllNotFoundException"


def test_the_version_follows_the_build(machine: Machine) -> None:
    """9 on 2019, 13 on 2022, 15 on 2025."""
    assert call(machine, "GET", "/globals/version")["Output"]["Major"] == 13


def test_a_fault_makes_the_next_creation_fail(machine: Machine) -> None:
    """With the error asked for, once."""
    machine.hns.fail_next(0x803B001B, "The specified JSON document is invalid.")
    assert call(machine, "POST", "/networks", BRIDGE)["ErrorCode"] == 0x803B001B
    assert call(machine, "POST", "/networks", BRIDGE)["Success"]


def test_networks_come_as_objects_and_can_be_piped_to_remove(machine: Machine) -> None:
    """Get-HnsNetwork | Remove-HnsNetwork."""
    call(machine, "POST", "/networks", BRIDGE)
    found = one(machine, "Get-HnsNetwork")
    assert (found["Name"], found["Subnets"][0]["AddressPrefix"]) == ("cbr0", "10.244.3.0/24")
    ask(machine, "Remove-HnsNetwork", InputObjects=[found])
    assert ask(machine, "Get-HnsNetwork") == []


NAMESPACE = "0d7a6a54-2a0e-4f9e-8a5c-9f0e2b1c7d3a"


def test_an_endpoint_that_was_attached_is_detached_and_not_as_new(machine: Machine) -> None:
    """EndpointState of hcsshim: 1 created, 2 attached, 3 attached and shared, 4 detached."""
    hns = machine.hns
    network = call(machine, "POST", "/networks", BRIDGE)["Output"]["ID"]
    found = hns.create_endpoint({"Name": "pod", "VirtualNetwork": network})
    states = [found["State"]]
    for change in (
        lambda: hns.join(found["ID"], NAMESPACE),
        lambda: hns.join(found["ID"], ""),
        lambda: hns.share(found["ID"], "one"),
        lambda: hns.unshare(found["ID"], "one"),
        lambda: hns.attach(found, {"CompartmentId": 1}),
        lambda: hns.detach(found),
    ):
        change()
        states.append(hns.endpoints[found["ID"]]["State"])

    assert states == [1, 3, 4, 3, 4, 2, 4]
    with pytest.raises(Refusal, match="no GUID"):
        hns.join(found["ID"], "pod-1")
