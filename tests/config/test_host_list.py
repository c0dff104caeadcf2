"""Machine lists of other programs: the right machines, or a refusal."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winboot.base.errors import InvalidInput
from winboot.config.host_list import Listed, read_hosts

AZ = [
    {
        "name": "vm-win-1",
        "osProfile": {"computerName": "win-1"},
        "privateIps": "10.0.1.11",
        "publicIps": "203.0.113.5",
        "storageProfile": {"osDisk": {"osType": "Windows"}, "imageReference": {"sku": "2022-datacenter-g2"}},
    },
    {
        "name": "linux-1",
        "osProfile": {"computerName": "linux-1"},
        "privateIps": "10.0.1.20",
        "storageProfile": {"osDisk": {"osType": "Linux"}},
    },
]
AZ_ADDRESSES = [
    {
        "virtualMachine": {
            "name": "win-1",
            "network": {
                "privateIpAddresses": ["10.0.1.11"],
                "publicIpAddresses": [{"name": "win-1-pip", "ipAddress": "203.0.113.5"}],
            },
        }
    }
]
GCLOUD = [
    {
        "kind": "compute#instance",
        "name": "win-1",
        "networkInterfaces": [
            {"networkIP": "10.0.1.11", "accessConfigs": [{"natIP": "203.0.113.5"}]},
            {"networkIP": "10.9.1.11"},
        ],
        "disks": [
            {
                "licenses": [
                    "https://www.example/projects/windows-cloud/global/licenses/windows-server-2022-dc"
                ]
            }
        ],
    },
    {
        "name": "db-1",
        "networkInterfaces": [{"networkIP": "10.0.1.30"}],
        "disks": [{"licenses": ["x/debian-12"]}],
    },
]
KUBECTL = {
    "kind": "List",
    "items": [
        {
            "kind": "Node",
            "metadata": {"name": "control-plane"},
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.10"},
                    {"type": "Hostname", "address": "cp"},
                ],
                "nodeInfo": {"operatingSystem": "linux", "osImage": "Debian"},
            },
        },
        {
            "kind": "Node",
            "metadata": {"name": "win-1"},
            "status": {
                "addresses": [
                    {"type": "Hostname", "address": "win-1"},
                    {"type": "InternalIP", "address": "10.0.1.11"},
                ],
                "nodeInfo": {"operatingSystem": "windows", "osImage": "Windows Server 2022 Datacenter"},
            },
        },
    ],
}
AWS = {
    "Reservations": [
        {
            "Instances": [
                {
                    "InstanceId": "i-1",
                    "PrivateIpAddress": "10.0.1.11",
                    "PublicIpAddress": "203.0.113.5",
                    "Platform": "windows",
                    "PlatformDetails": "Windows",
                    "Tags": [{"Key": "Team", "Value": "x"}, {"Key": "Name", "Value": "WIN-1"}],
                },
                {"InstanceId": "i-2", "PrivateIpAddress": "10.0.1.30", "PlatformDetails": "Linux/UNIX"},
            ]
        }
    ]
}
NETBOX = {
    "count": 1,
    "results": [
        {
            "id": 1,
            "name": "win-1",
            "platform": {"name": "Windows Server 2022"},
            "primary_ip": {"address": "10.0.1.11/24"},
            "primary_ip4": {"address": "10.0.1.11/24"},
        }
    ],
}


def output(value: Any) -> dict[str, Any]:
    return {"sensitive": False, "type": ["object", {}], "value": value}


READ: dict[str, tuple[Any, list[tuple[str, str, str]]]] = {
    "az vm list -d": (AZ, [("win-1", "10.0.1.11", "2022")]),
    "az vm list-ip-addresses": (AZ_ADDRESSES, [("win-1", "10.0.1.11", "")]),
    "gcloud": (GCLOUD, [("win-1", "10.0.1.11", "2022")]),
    "kubectl": (KUBECTL, [("win-1", "10.0.1.11", "2022")]),
    "aws": (AWS, [("win-1", "10.0.1.11", "")]),
    "netbox": (NETBOX, [("win-1", "10.0.1.11", "2022")]),
    "one output of several": (
        {"nodes": output({"win-1": "10.0.1.11"}), "url": output("https://10.0.0.1")},
        [("win-1", "10.0.1.11", "")],
    ),
    "an output of objects": (
        {"nodes": output({"a": {"name": "win-1", "private_ip": "10.0.1.11", "os": "2025"}})},
        [("win-1", "10.0.1.11", "2025")],
    ),
    "one Node": (KUBECTL["items"][1], [("win-1", "10.0.1.11", "2022")]),
    "objects of several systems": (
        {
            "cp": {"ip": "10.0.1.10", "os": "linux"},
            "win-1": {"ip": "10.0.1.11", "os": "windows"},
            "win-2": {"ip": "10.0.1.12", "os": "Microsoft Windows Server 2019"},
            "win-3": {"ip": "10.0.1.13", "os": ""},
        },
        [("win-1", "10.0.1.11", ""), ("win-2", "10.0.1.12", "2019"), ("win-3", "10.0.1.13", "")],
    ),
    "a bare map": (
        {"ship": "10.0.1.11", "trip-1": "fd00::1"},
        [("ship", "10.0.1.11", ""), ("trip-1", "fd00::1", "")],
    ),
}


@pytest.mark.parametrize("source", READ)
def test_the_windows_machines_of_a_program_are_read(source: str) -> None:
    document, machines = READ[source]

    assert list(read_hosts(json.dumps(document), "list")) == [Listed(*one) for one in machines]


REFUSED: dict[str, tuple[Any, str]] = {
    "objects without a name": ([{"privateIps": "10.0.1.11", "publicIps": "203.0.113.5"}], "[0] has no name"),
    "a name without an address": (
        [{"name": "a", "ip": "10.0.0.1"}, {"name": "b"}],
        "[1] has no name with an IP address",
    ),
    "an object of addresses": (
        {"privateIps": "10.0.1.11", "publicIps": "203.0.113.5"},
        "word for an address",
    ),
    "networkip": ({"networkip": "10.0.0.1"}, "word for an address"),
    "two outputs": (
        {"a": output({"w": "10.0.0.1"}), "b": output(["10.0.0.2"])},
        "2 outputs are lists or maps: a, b",
    ),
    "two parallel lists": (
        {"nodes": output({"names": ["a"], "ips": ["10.0.0.1"]})},
        "names has no name with an IP address",
    ),
    "ansible-inventory --list": (
        {"_meta": {"hostvars": {"w1": {"ansible_host": "10.0.0.1"}}}, "all": {"children": []}},
        "the key _meta",
    ),
    "terraform.tfstate": (
        {
            "version": 4,
            "terraform_version": "1.9.0",
            "resources": [{"instances": [{"attributes": {"private_ip_address": "10.0.1.11"}}]}],
        },
        "the key terraform_version",
    ),
    "terraform show -json": (
        {
            "format_version": "1.0",
            "terraform_version": "1.9.0",
            "values": {
                "root_module": {
                    "resources": [{"address": "azurerm_windows_virtual_machine.win[0]", "name": "win"}]
                }
            },
        },
        "the key terraform_version",
    ),
    "a resource's address": (
        [{"name": "win", "address": "azurerm_windows_virtual_machine.win[0]"}],
        "[0] has no name",
    ),
    "a version": ({"win-1": "1.9.0"}, "win-1 has no name with an IP address"),
    "an address that is no text": ({"win-1": 7}, "win-1 has no name with an IP address"),
    "openstack server list": (
        [{"Name": "w", "Networks": {"lan": ["10.0.0.1"]}}],
        "[0] has no name with an IP address",
    ),
    "Get-VM": ([{"Name": "w", "State": 2, "Version": "9.0"}], "[0] has no name with an IP address"),
    "az vm list without -d": (
        [{"name": "w", "storageProfile": {"osDisk": {"osType": "Windows"}}}],
        "w has 0 addresses",
    ),
    "several addresses": (
        [{"virtualMachine": {"name": "w", "network": {"privateIpAddresses": ["10.0.0.1", "10.0.0.2"]}}}],
        "w has 2 addresses",
    ),
    "addresses in one text": (
        [
            {
                "name": "w",
                "privateIps": "10.0.0.1,10.0.0.2",
                "storageProfile": {"osDisk": {"osType": "Windows"}},
            }
        ],
        "w has 2 addresses",
    ),
    "an instance without a name": (
        {"Reservations": [{"Instances": [{"InstanceId": "i", "Platform": "windows"}]}]},
        "no name",
    ),
    "Linux alone": ([AZ[1]], "no machine is in it"),
    "a list of Linux machines": ([{"name": "a", "ip": "10.0.0.1", "os": "ubuntu"}], "no machine is in it"),
    "no instance": ({"Reservations": []}, "no machine is in it"),
    "no virtual machine": ({"virtualMachines": None}, "no machine is in it"),
}


@pytest.mark.parametrize("text", ['{"w": "10.0.0.1", "w": "10.0.0.2"}', '{"w": "10.0.0.1", "W": "10.0.0.2"}'])
def test_a_name_that_stands_there_twice_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_hosts(text, "list")

    assert "a key twice" in str(caught.value.problems[0])


def test_lines_are_machines_in_lower_case() -> None:
    found = read_hosts("WIN-1 10.0.0.1 2022  # rack 1\r\nwin-2.corp.example\n\nwin-3=2001:db8::1", "list")

    assert [(one.name, one.address, one.os) for one in found] == [
        ("win-1", "10.0.0.1", "2022"),
        ("win-2.corp.example", "", ""),
        ("win-3", "2001:db8::1", ""),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hostname,ip", "a heading"),
        ("ComputerName,IPv4Address", "a heading"),
        ("VM,Private_IP,OS", "a heading"),
        ("10.0.0.1 win-2", "10.0.0.1 is an address, and no name"),
        ("10.0.0.1", "10.0.0.1 is an address, and no name"),
        ('"win-2","10.0.0.2"', '"win-2"'),
        ("win_2,10.0.0.2", "win_2"),
        ("win-2,10.0.0.300", "10.0.0.300"),
        ("win-2,10.0.0.2,Windows Server 2022", "5 words"),
        ("win-2,10.0.0.2,windows", "'windows' is not a release"),
    ],
)
def test_a_line_that_is_no_machine_is_refused_at_its_place(line: str, said: str) -> None:
    """The first line of a CSV file, a file of addresses, and what other tables write."""
    with pytest.raises(InvalidInput) as caught:
        read_hosts(f"win-1,10.0.0.1\n{line}\n", "list")

    problem = str(caught.value.problems[0])
    assert problem.startswith("list:2:1: ")
    assert said in problem


@pytest.mark.parametrize("source", REFUSED)
def test_another_document_is_refused(source: str) -> None:
    document, said = REFUSED[source]

    with pytest.raises(InvalidInput) as caught:
        read_hosts(json.dumps(document), "list")

    assert said in str(caught.value.problems[0])


WORDS = st.sampled_from(
    [
        "win-1",
        "name",
        "Name",
        "privateIps",
        "natIP",
        "networkip",
        "address",
        "ip",
        "public_ip",
        "value",
        "type",
        "status",
        "items",
        "results",
        "primary_ip4",
        "metadata",
        "addresses",
        "virtualMachine",
        "network",
        "tags",
        "version",
        "hosts",
    ]
)
VALUES = st.sampled_from(
    ["10.0.0.1", "10.0.0.2/24", "203.0.113.5", "win-7", "1.9.0", "windows", "InternalIP", "", 7, None]
)
DOCUMENTS = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


ADDRESS_WORDS = {
    "privateips",
    "natip",
    "networkip",
    "address",
    "addresses",
    "ip",
    "public_ip",
    "network",
    "version",
}


def strings_of(data: Any) -> set[str]:
    if isinstance(data, dict):
        return {one for value in data.values() for one in strings_of(value)}
    if isinstance(data, list):
        return {one for value in data for one in strings_of(value)}
    return {data.lower()} if isinstance(data, str) else set()


def maps_of(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, dict):
        return [data, *(one for value in data.values() for one in maps_of(value))]
    return [one for value in data for one in maps_of(value)] if isinstance(data, list) else []


def holds_an_address(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else [value]
    return any(is_address(one) for one in values)


def is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(ipaddress.ip_interface(value))
    except ValueError:
        return False


@given(DOCUMENTS)
def test_a_name_is_a_value_or_stands_among_addresses(document: Any) -> None:
    """A machine's name is a text of the document, or a key whose siblings all have addresses; its address is one."""
    try:
        found = read_hosts(json.dumps(document), "list")
    except InvalidInput:
        return
    for one in found if isinstance(document, dict | list) else ():
        assert is_address(one.address)
        assert one.name in strings_of(document) or any(
            one.name in [key.lower() for key in each]
            and all(holds_an_address(value) for value in each.values())
            for each in maps_of(document)
        )
        assert one.name not in ADDRESS_WORDS or one.name in strings_of(document)
