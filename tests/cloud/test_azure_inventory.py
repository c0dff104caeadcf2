"""`*.azure.yaml`: machines and scale sets of Azure as an inventory, by the code that AWS's files use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.azure_arm import SUBSCRIPTION, Arm
from tests.cloud.azure_fixtures import an_arm, an_azure
from tests.config.scene import CA, GOOD
from winboot.base.errors import InvalidInput
from winboot.config.inventory import load_inventory
from winboot.remote.cloud.azure import Azure
from winboot.remote.cloud.base import same_provider_id
from winboot.remote.cloud.composing import Member
from winboot.remote.cloud.pool import Pool, frozen_text

FILE = f"""
plugin: azure.azcollection.azure_rm
subscription_id: {SUBSCRIPTION}
profile: profile.yaml
keyed_groups:
  - {{key: tags.role, prefix: role}}
  - {{key: location, prefix: region}}
groups: {{big: "'D4s' in virtual_machine_size"}}
compose: {{address: "private_ipv4_addresses[0]", os: "'2022'"}}
defaults: {{connection: {{user: winboot, password: {{env: WINBOOT_PASSWORD}}}}}}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Arm, Azure]]:
    with an_arm(tmp_path) as (arm, certificate):
        azure = an_azure(arm, certificate)
        arm.add_machine(
            "Win-1", address="10.1.0.4", computer_name="WIN-1", tags={"role": "gpu"}, group="single"
        )
        arm.add_machine("linux-1", address="10.1.0.5", os="Linux")
        arm.add_machine("win-2", address="10.1.0.6", power="deallocated")
        arm.add_set("pool", 3)
        yield arm, azure
        azure.close()
        assert not arm.unknown


def a_pool(folder: Path, azure: Azure, more: str = "") -> Pool:
    (folder / "profile.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "ca.crt").write_text(CA, encoding="utf-8")
    (folder / "kubeconfig").write_text("{}", encoding="utf-8")
    file = folder / "pool.azure.yaml"
    file.write_text(FILE + more, encoding="utf-8")
    pool = Pool.read(file)
    assert pool.file.connection() == {"subscription": SUBSCRIPTION}
    pool._opened = azure
    return pool


def members(pool: Pool) -> dict[str, Member]:
    return {one.name: one for one in pool.members(pool.asked())}


def test_running_windows_machines_of_both_kinds_become_machines_with_profiles(
    world: tuple[Arm, Azure], tmp_path: Path
) -> None:
    pool = a_pool(tmp_path, world[1])
    found = members(pool)
    assert list(found) == ["pool000000", "pool000001", "pool000002", "win-1"]
    assert found["win-1"].groups == ("big", "role_gpu", "region_westeurope")
    inventory = pool.inventory(list(found.values()))
    assert [one.address for one in inventory] == ["10.2.0.10", "10.2.0.11", "10.2.0.12", "10.1.0.4"]
    for one in inventory:
        assert one.provider_id is not None
        assert same_provider_id(one.provider_id, found[one.name].identity.provider_id)
        assert one.computer_name.lower() == one.name


def test_every_machine_reports_its_events(world: tuple[Arm, Azure], tmp_path: Path) -> None:
    _, azure = world
    pool = a_pool(tmp_path, azure)
    frozen = tmp_path / "frozen.yaml"
    frozen.write_text(frozen_text(pool, list(members(pool).values())), encoding="utf-8")

    for inventory in (pool.inventory(list(members(pool).values())), load_inventory(frozen)):
        assert {one.profile.node.scheduled_events for one in inventory} == {True}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("include_vm_resource_groups: [single]\n", ["pool000000", "pool000001", "pool000002", "win-1"]),
        ("include_vm_resource_groups: [other]\n", ["pool000000", "pool000001", "pool000002"]),
        ("include_vmss_resource_groups: other\n", ["win-1"]),
        ("filters: {'tag:role': gpu}\n", ["win-1"]),
        ("exclude_filters: [{'tag:role': [gpu]}]\n", ["pool000000", "pool000001", "pool000002"]),
        ("filters: {powerstate: deallocated}\n", ["win-2"]),
        (
            "platform: any\nfilters: {resource_type: Microsoft.Compute/virtualMachines}\n",
            ["linux-1", "win-1"],
        ),
    ],
)
def test_the_file_chooses_machines(
    world: tuple[Arm, Azure], tmp_path: Path, more: str, expected: list[str]
) -> None:
    assert list(members(a_pool(tmp_path, world[1], more))) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exclude_host_filters: [x]\n", "expected exclude_filters"),
        ("include_host_filters: [x]\n", "expected filters"),
        ("hostvar_expressions: {a: b}\n", "expected compose"),
    ],
)
def test_a_key_of_ansibles_that_winboot_has_under_another_name_is_named(
    line: str, said: str, world: tuple[Arm, Azure], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        a_pool(tmp_path, world[1], line)
    assert said in " ".join(str(one) for one in caught.value.problems)
