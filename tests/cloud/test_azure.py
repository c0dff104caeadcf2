"""Azure through its real SDK, against the stand-in of azure_arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cloud.azure_arm import SUBSCRIPTION, Arm, handler_for, serving
from tests.cloud.azure_fixtures import an_arm, an_azure
from winboot.base.errors import CloudError, CloudRefused, NoSuchHost, UsageError
from winboot.remote.cloud.azure import Azure
from winboot.remote.cloud.azure_names import ResourceId
from winboot.remote.cloud.azure_policy import ACTIONS, actions
from winboot.remote.cloud.base import CloudHost, Forwarding, PodRoute, Provider, Query, same_provider_id


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Arm, Azure, Path]]:
    with an_arm(tmp_path) as (arm, certificate):
        azure = an_azure(arm, certificate)
        yield arm, azure, certificate
        azure.close()
        assert not arm.unknown


def hosts(azure: Azure) -> dict[str, CloudHost]:
    """The machines by the names of their Nodes."""
    return {azure.identity(one).node_name: one for one in azure.hosts(Query())}


def host(azure: Azure, name: str) -> CloudHost:
    return hosts(azure)[name]


def test_machines_and_instances_of_both_kinds_of_scale_sets_are_listed_with_their_addresses(
    world: tuple[Arm, Azure, Path],
) -> None:
    arm, azure, _ = world
    arm.add_machine("Win-1", address="10.1.0.4", computer_name="WIN-1", tags={"role": "windows"})
    arm.add_machine("win-2", address="10.1.0.5", power="deallocated")
    arm.add_set("flex", mode="Flexible")
    arm.add_machine("flex_a1b2", address="10.1.0.6", computer_name="flex000001", scale_set="flex")
    arm.add_set("pool", 3)
    found = hosts(azure)
    assert set(found) == {"win-1", "win-2", "flex000001", "pool000000", "pool000001", "pool000002"}
    assert {name: one.private_ip for name, one in found.items()} == {
        "win-1": "10.1.0.4",
        "win-2": "10.1.0.5",
        "flex000001": "10.1.0.6",
        "pool000000": "10.2.0.10",
        "pool000001": "10.2.0.11",
        "pool000002": "10.2.0.12",
    }
    assert [one.state for one in found.values()].count("running") == 5
    assert (found["win-2"].state, found["win-2"].data["powerstate"]) == ("stopped", "deallocated")
    assert (found["win-1"].zone, found["win-1"].windows) == ("westeurope-2", True)
    assert found["win-1"].image == "MicrosoftWindowsServer:WindowsServer:2022-datacenter-core:latest"
    assert [found[name].data["orchestration"] for name in ("win-1", "flex000001", "pool000000")] == [
        "",
        "flexible",
        "uniform",
    ]
    assert (found["flex000001"].group, found["pool000000"].group) == ("flex", "pool")
    assert found["win-1"].tags == {"role": "windows"}


def test_no_request_is_made_for_each_machine(world: tuple[Arm, Azure, Path]) -> None:
    """Two machines and twelve are read by the same lists; only their pages are more."""
    arm, azure, _ = world
    for number in range(12):
        arm.add_machine(f"win-{number}", address=f"10.1.0.{4 + number}")
    assert len(hosts(azure)) == 12
    assert {path.rpartition("/")[2] for _, path in arm.requests} == {
        "virtualMachines",
        "virtualMachineScaleSets",
        "networkInterfaces",
    }


def test_machines_are_chosen_by_resource_group_tag_and_id(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_machine("win-1", address="10.1.0.4", tags={"role": "windows"})
    arm.add_machine("win-2", address="10.1.0.5", group="other")
    arm.add_set("pool", 1)
    found = hosts(azure)

    def chosen(query: Query) -> list[str]:
        return [azure.identity(one).node_name for one in azure.hosts(query)]

    assert chosen(Query(scopes=("RG-POOL",))) == ["win-1", "pool000000"]
    assert chosen(Query(filters={"tag:role": ("windows", "gpu")})) == ["win-1"]
    assert chosen(Query(filters={"location": ("westeurope",), "resource_group": ("other",)})) == ["win-2"]
    assert azure.host(azure.identity(found["pool000000"]).provider_id) == found["pool000000"]
    assert azure.host(found["win-1"].id.replace("win-1", "win-9")) is None


def test_azure_is_a_provider(world: tuple[Arm, Azure, Path]) -> None:
    provider: Provider = world[1]
    assert (provider.name, provider.account()) == ("azure", SUBSCRIPTION)
    assert provider.lifecycle() is provider


def test_a_provider_id_is_the_one_that_the_cloud_provider_writes() -> None:
    """The resource group is in lower case; both kinds of ids come back the same."""
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/RG-Pool"
    uniform = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/0"
    resource = ResourceId.parse(uniform)
    assert resource.provider_id == "azure://" + uniform.replace("RG-Pool", "rg-pool")
    assert resource.provider_id.startswith("azure:///subscriptions/")
    assert ResourceId.parse(resource.provider_id).provider_id == resource.provider_id
    assert same_provider_id(resource.provider_id, "azure://" + uniform)
    assert resource.machine_name == "pool_0"
    with pytest.raises(UsageError):
        ResourceId.parse("aws:///eu-west-1a/i-0abc")


def test_azure_asks_to_wait_and_is_waited_for(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_set("pool", 1)
    arm.throttled = 1
    assert list(hosts(azure)) == ["pool000000"]
    assert arm.throttled == 0


def test_a_reimaged_instance_keeps_its_id_and_its_address(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_set("pool", 2)
    arm.add_machine("win-1", address="10.1.0.4")
    before = host(azure, "pool000001")
    azure.reimage(before)
    azure.reimage(host(azure, "win-1"))
    assert host(azure, "pool000001") == before
    assert [key.rpartition("/")[2] for key, one in arm.resources.items() if one.get("reimaged")] == [
        "1",
        "win-1",
    ]


def test_an_operation_that_fails_later_says_what_azure_said(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_set("pool", 1)
    arm.next_error = {"code": "OSProvisioningTimedOut", "message": "OS provisioning did not finish in time."}
    with pytest.raises(CloudError, match=r"reimage pool_0: .*OSProvisioningTimedOut") as caught:
        azure.reimage(host(azure, "pool000000"))
    assert not caught.value.worth_retrying


def test_a_replaced_instance_is_gone_and_another_one_has_started(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    identifier = arm.add_set("pool", 3)
    azure.replace(host(azure, "pool000001"))
    assert list(hosts(azure)) == ["pool000000", "pool000002", "pool000003"]
    assert arm.resources[identifier.lower()]["sku"]["capacity"] == 3


def test_a_machine_of_no_scale_set_is_not_replaced(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_machine("win-1", address="10.1.0.4")
    with pytest.raises(UsageError, match="no scale set"):
        azure.replace(host(azure, "win-1"))
    assert list(hosts(azure)) == ["win-1"]


def test_an_instance_is_protected_and_let_go_again(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_set("pool", 1)
    for protected in (True, True, False):
        azure.protect(host(azure, "pool000000"), protected=protected)
        assert host(azure, "pool000000").data["protected"] is protected
    assert arm.bodies[-1][1]["properties"]["osProfile"], (
        "the whole instance is sent back, not its protection alone"
    )
    with pytest.raises(UsageError, match="Uniform"):
        azure.protect(
            replace(host(azure, "pool000000"), id=arm.path("virtualMachines", "flex_1")), protected=True
        )


def test_the_automatic_repairs_of_a_scale_set_are_read(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    policy = {"enabled": True, "gracePeriod": "PT30M", "repairAction": "Reimage"}
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}}
    arm.add_set(
        "pool", 2, automaticRepairsPolicy=policy, virtualMachineProfile={"scheduledEventsProfile": notice}
    )
    found = azure.scale_set("rg-pool", "pool")
    assert (found.capacity, found.uniform, found.notice) == (2, True, "PT10M")
    assert (found.repairs.enabled, found.repairs.grace, found.repairs.action) == (True, "PT30M", "Reimage")


def add_route_table(arm: Arm, *routes: tuple[str, str, str, str]) -> str:
    """A subnet with a route table of these (name, prefix, type of next hop, next hop)."""
    entries = [
        {"name": name, "properties": {"addressPrefix": prefix, "nextHopType": kind, "nextHopIpAddress": hop}}
        for name, prefix, kind, hop in routes
    ]
    table = arm.put(
        arm.path("routeTables", "nodes", provider="Microsoft.Network"), {"properties": {"routes": entries}}
    )
    network = arm.path("virtualNetworks", "vnet", provider="Microsoft.Network")
    return arm.put(f"{network}/subnets/nodes", {"properties": {"routeTable": {"id": table}}})


def test_forwarding_is_that_of_the_interfaces_and_of_the_subnets_route_table(
    world: tuple[Arm, Azure, Path],
) -> None:
    arm, azure, _ = world
    subnet = add_route_table(
        arm,
        ("win-1", "10.244.3.0/24", "VirtualAppliance", "10.1.0.4"),
        ("win-2", "10.244.4.0/24", "None", ""),
        ("internet", "0.0.0.0/0", "Internet", ""),
    )
    bare = arm.put(subnet.replace("nodes", "bare"), {"properties": {}})
    arm.add_machine("win-1", address="10.1.0.4", subnet=subnet)
    arm.add_machine("win-2", address="10.1.0.5", subnet=subnet, forwarding=False)
    arm.add_machine("win-3", address="10.1.0.6", subnet=bare)
    assert azure.forwarding(host(azure, "win-1"), ("10.244.3.0/24",)) == Forwarding(
        True, (PodRoute("nodes", "10.244.3.0/24", "10.1.0.4"),)
    )
    assert azure.forwarding(host(azure, "win-2"), ("10.244.4.0/24",)) == Forwarding(
        False, (PodRoute("nodes", "10.244.4.0/24", "None", blackhole=True),)
    )
    assert azure.forwarding(host(azure, "win-3"), ("10.244.5.0/24",)) == Forwarding(True)


def test_what_azure_refuses_is_reported_with_the_way_to_the_role(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.refused.add("Microsoft.Compute/virtualMachines/read")
    with pytest.raises(CloudRefused, match="AuthorizationFailed") as caught:
        list(azure.hosts(Query()))
    assert caught.value.exit_code == 77
    assert "winboot cloud policy azure" in caught.value.hint


def test_a_wrong_client_secret_is_a_login_that_is_refused(world: tuple[Arm, Azure, Path]) -> None:
    arm, _, certificate = world
    with pytest.raises(CloudRefused) as caught:
        hosts(an_azure(arm, certificate, secret="wrong"))
    assert "wrong" not in str(caught.value)


def test_an_instance_that_is_gone_is_named(world: tuple[Arm, Azure, Path]) -> None:
    arm, azure, _ = world
    arm.add_set("pool", 1)
    found = host(azure, "pool000000")
    gone = replace(found, id=found.id.removesuffix("0") + "7", name="pool_7")
    with pytest.raises(NoSuchHost, match="pool_7"):
        azure.reimage(gone)


def test_a_managed_identity_logs_in_by_the_metadata_service(
    world: tuple[Arm, Azure, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.identity import ManagedIdentityCredential

    arm, _, certificate = world
    arm.add_set("pool", 1)
    with serving(handler_for(arm)) as port:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{port}")
        azure = Azure(
            SUBSCRIPTION,
            credential=ManagedIdentityCredential(),
            endpoint=arm.url,
            poll=0,
            connection_verify=str(certificate),
        )
        assert list(hosts(azure)) == ["pool000000"]


def test_the_printed_role_has_exactly_the_rights_of_the_recorded_calls(
    world: tuple[Arm, Azure, Path],
) -> None:
    """Every call that winboot makes, recorded: no value is missing in the table, and nothing in it is for no call."""
    arm, azure, _ = world
    subnet = add_route_table(arm)
    arm.add_machine("win-1", address="10.1.0.4", subnet=subnet)
    arm.add_set("pool", 2)
    first = host(azure, "pool000000")
    azure.scale_set("rg-pool", "pool")
    azure.forwarding(host(azure, "win-1"), ())
    azure.reimage(first)
    azure.reimage(host(azure, "win-1"))
    azure.protect(first, protected=True)
    azure.replace(first)
    assert sorted(arm.actions) == sorted(actions())
    assert len({one.name for one in ACTIONS}) == len(ACTIONS)
