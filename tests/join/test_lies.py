"""A machine that lies about itself: no certificate with a foreign name, no label or taint of its choice, no other node."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from winboot_lab.cluster.authority import Subject

from tests.cluster.test_requests import a_serving_request
from tests.config.scene import a_spec
from tests.join.fakes import FakeCluster, Found, Scene, a_node
from winboot.base.errors import ClaimRefused, ClusterRefused
from winboot.node.names import Claim, Others, believed, expected_node
from winboot.remote.cluster.requests import problems
from winboot.report.events import RunStarted

OTHER_UUID: Final = "11111111-2222-3333-4444-555555555555"
LONG: Final = "n" * 300
# Each lie: what the machine says in its look, and what it says from the change on.
LIES: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    **{
        f"name: {name[:30]!r}": ({"computer_name": name}, {})
        for name in (
            "kubernetes", "KUBERNETES", "kubernetes.default", "kubernetes.default.svc", "localhost",
            "kubernetes.default.svc.cluster.local", "*", "*.example.com", "win-2", "WIN-2", "win-2.example.com",
            "10.0.0.10", "10.96.0.1", "", " ", "win-1 ", "win-1.", "win-1\u0000.example.com", "\u0455ystem", LONG,
        )
    },
    **{
        f"address: {address[:30]!r}": ({"node_ip": address}, {})
        for address in (
            "10.96.0.1", "10.0.0.10", "10.0.1.12", "127.0.0.1", "0.0.0.0", "169.254.169.254", "::1", "10.244.3.7",
            "::ffff:10.96.0.1", "224.0.0.1", "10.0.1.11,10.96.0.1", "kubernetes", "10.0.1.011", "255.255.255.255",
            "fe80::1%eth0", "9" * 4000,
        )
    },
    "address: right in the look, the API server's in the change": ({}, {"node_ip": "10.0.0.10"}),
    "address: none in the look, the service's in the change": ({"node_ip": ""}, {"node_ip": "10.96.0.1"}),
    "UUID: another one in the change": ({}, {"smbios_uuid": OTHER_UUID}),
    "UUID: a neighbour's": ({"smbios_uuid": OTHER_UUID}, {}),
    "UUID: no UUID": ({"smbios_uuid": "none"}, {}),
    "UUID: a text": ({"smbios_uuid": "system:masters"}, {"smbios_uuid": "system:masters"}),
    "build: a text": ({"build": "20348.1; drop"}, {}),
    "build: another in the change": ({}, {"build": "99999.1"}),
    "boot id: none": ({"boot_id": ""}, {}),
    "boot id: another one each time": ({}, {"boot_id": "b2"}),
}  # fmt: skip


# Some lies of each kind; `make check` tries all.
TOLD: Final = [
    pytest.param(lie, marks=() if at % 3 == 0 else pytest.mark.check) for at, lie in enumerate(LIES)
]


@pytest.mark.parametrize("lie", TOLD)
def test_a_lie_gains_nothing_and_touches_no_other_node(lie: str, tmp_path: Path) -> None:
    """Its kubelet asks for what it has claimed, and for what it would like to have."""
    says, then = LIES[lie]
    scene = Scene(tmp_path, Found("registration"), Found("kubelet-credentials"), says=says, then=then)

    report = scene.join()

    for node in scene.cluster.expected:
        assert node.names == {"win-1"}
        assert node.addresses <= {"10.0.1.11"}
    claimed = {**says, **then}
    names = tuple(str(claimed[key]) for key in ("computer_name", "node_ip") if key in claimed)
    for name in (*names, "kubernetes.default.svc"):
        # Names are compared without regard to case, so that its own in capitals is its own.
        if name.isascii() and "\0" not in name and len(name) < 250 and name.lower() not in ("", "win-1"):
            asked = a_serving_request(Subject("system:node:win-1", ("system:nodes",), (name,)))
            assert all(problems(asked, node) for node in scene.cluster.expected)
    touched = {call[1] for call in scene.cluster.calls if call[0] in ("node", "change_node", "wait_ready")}
    assert touched == {"win-1"}
    assert all(wish.labels == scene.spec.node.labels for wish in scene.cluster.wishes)
    assert all(wish.taints == scene.spec.node.taints for wish in scene.cluster.wishes)
    # winboot names a refused claim and ends the node before it makes a secret, unless the lie comes only later.
    if report.failure is not None:
        assert report.failure.name == "ClaimRefused"
        assert report.failure.hint
        assert then or "mint_token" not in scene.cluster.names


def test_there_are_forty_lies_and_more() -> None:
    assert len(LIES) >= 40


FOREIGN: Final = {
    "10.96.0.1": "is in the service network 10.96.0.0/12",
    "10.244.3.7": "is in the pod network 10.244.0.0/16",
    "10.0.0.10": "is the API server's address (10.0.0.10)",
    "10.0.1.12": "is the address of win-2 in the inventory",
    "10.0.1.13": "is the address of win-2 in the inventory",
    "10.0.1.99": "is not the machine's address in the inventory (10.0.1.11)",
    "127.0.0.1": "cannot be a node's address",
    "fd00::1": "is not an IPv4 address",
}


@pytest.mark.parametrize("address", FOREIGN)
def test_a_foreign_address_is_refused_with_what_to_write(address: str, tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    neighbour = a_spec(tmp_path, host="{address: 10.0.1.12, certificate_names: [10.0.1.13]}").machine
    others = Others([_named(neighbour, "win-2")], lambda: ())

    with pytest.raises(ClaimRefused) as refused:
        believed(spec, said(address), others)

    assert f"which {FOREIGN[address]};" in refused.value.problem
    assert "write `node_ip: ADDRESS` for win-1 in the inventory" in refused.value.hint


def test_the_address_at_which_the_inventory_reaches_it_is_believed(tmp_path: Path) -> None:
    """Other Nodes' claims cannot block it: a lying neighbour would keep this one from joining."""
    thief = a_node(name="linux-1", addresses=(("InternalIP", "10.0.1.11"),))

    assert believed(a_spec(tmp_path), said("10.0.1.11"), Others((), lambda: (thief,))) == "10.0.1.11"


def test_a_name_of_the_inventory_leads_to_its_addresses(tmp_path: Path, monkeypatch: Any) -> None:
    """But in a domain a machine writes its own record: no address of another Node."""
    monkeypatch.setattr(socket, "getaddrinfo", _zone({"win-1.example.com": ("10.0.1.99", "10.0.1.20")}))
    spec = a_spec(tmp_path, host="{address: win-1.example.com}")
    theirs = a_node(name="linux-1", addresses=(("InternalIP", "10.0.1.20"),))
    others = Others((), lambda: (theirs,))

    assert believed(spec, said("10.0.1.99"), others) == "10.0.1.99"
    with pytest.raises(ClaimRefused, match="is an address of the Node linux-1"):
        believed(spec, said("10.0.1.20"), others)
    with pytest.raises(ClaimRefused, match="is not the machine's address in"):
        believed(spec, said("10.0.1.21"), others)


def test_where_the_nodes_may_not_be_listed_a_name_is_not_enough(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _zone({"win-1.example.com": ("10.0.1.99",)}))

    def refused() -> tuple[()]:
        raise ClusterRefused("listing nodes: forbidden")

    with pytest.raises(ClaimRefused, match="could not be compared"):
        believed(
            a_spec(tmp_path, host="{address: win-1.example.com}"), said("10.0.1.99"), Others((), refused)
        )


def test_addresses_that_the_name_of_the_api_server_leads_to_are_its_own(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _zone({"api.example.com": ("10.0.1.11",)}))
    spec = a_spec(tmp_path, profile="cluster: {server: 'https://api.example.com:6443'}")

    with pytest.raises(ClaimRefused, match=r"is the API server's address \(api.example.com\)"):
        believed(spec, said("10.0.1.11"), Others((), tuple))


def test_an_address_of_the_inventory_needs_no_confirmation(tmp_path: Path) -> None:
    """Where it names the address, the machine's does not count, be it the same or another."""
    for host in ("{node_ip: 10.0.1.11}", "{address: a.example.com, certificate_names: [10.0.1.99]}"):
        spec = a_spec(tmp_path, host=host)
        assert believed(spec, said("10.0.1.99"), Others((), tuple)) == ""
    spec = a_spec(tmp_path, host="{address: a.example.com, node_ip: 10.0.1.11}")
    assert expected_node(spec, "", None).addresses == {"10.0.1.11"}


def test_names_are_those_of_the_inventory(tmp_path: Path) -> None:
    host = "{address: 10.0.1.11, computer_name: WIN-NEW, certificate_names: [a.internal, 3.4.5.6]}"

    node = expected_node(a_spec(tmp_path, host=host), "10.0.1.11", "system:bootstrap:abcdef")

    assert node.names == {"win-1", "win-new", "a.internal", "3.4.5.6"}
    assert node.addresses == {"10.0.1.11", "a.internal", "3.4.5.6"}
    assert node.requestors == {"system:bootstrap:abcdef"}


def test_a_change_that_asks_for_no_certificate_continues_without_one(tmp_path: Path) -> None:
    """A node behind NAT that was registered long ago: its labels may be put right."""
    scene = Scene(
        tmp_path, Found("kubelet-config"), cluster=FakeCluster(a_node()), says={"node_ip": "10.0.1.99"}
    )

    report = scene.join()

    assert report.failure is None
    assert {address for node in scene.cluster.expected for address in node.addresses} == set()


def test_a_claim_is_settled_once(tmp_path: Path) -> None:
    claim = Claim(a_spec(tmp_path), Others((), tuple), needed=True)

    claim.hear(said("10.0.1.11"))
    claim.hear(said("10.0.1.11"))

    assert claim.address == "10.0.1.11"


def said(address: str) -> RunStarted:
    return RunStarted("r", "b", "u", "20348.1", "WIN-OLDNAME", 1, node_ip=address)


def _named(machine: Any, name: str) -> Any:

    return replace(machine, name=name)


def _zone(hosts: Mapping[str, tuple[str, ...]]) -> Any:
    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        if host not in hosts:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in hosts[host]]

    return getaddrinfo
