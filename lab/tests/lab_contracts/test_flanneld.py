"""The lab's flanneld does what flanneld.exe does, row by row of its contract."""

from __future__ import annotations

import pytest
from lab_programs.conftest import Node
from lab_programs.test_traps import vxlan
from winboot_lab.programs import flanneld

from lab_contracts.contract import Row, compared
from lab_contracts.requests import ordered, sent

ROWS = compared("flanneld")
SUBNET_ENV = r"C:\run\flannel\subnet.env"


def of(kind: str) -> list[Row]:
    return [row for row in ROWS if row.kind == kind]


def a_node(mode: str = "host-gw") -> Node:
    """A registered node before its flanneld starts. Its kubelet has stopped: nothing else asks HNS."""
    node = vxlan(flannel=False) if mode == "vxlan" else registered()
    node.sc("stop", "kubelet")
    return node


def registered() -> Node:
    node = Node()
    node.binaries()
    node.configuration()
    node.containerd()
    node.kubelet()
    node.settle(20)
    return node


def started(node: Node) -> None:
    if node.machine.services.find("flanneld") is None:
        node.flanneld()
    else:
        assert node.sc("start", "flanneld") == 0
    node.settle(60)


@pytest.mark.parametrize("when", dict.fromkeys(row.when for row in of("request")))
def test_it_sends_what_upstream_sends_and_nothing_else(when: str) -> None:
    node = a_node(when.split()[0])
    if "is there" in when:
        started(node)
        node.sc("stop", "flanneld")
    with sent(node.machine) as requests:
        started(node)

    assert [ordered(one) for one in _without_rounds(requests)] == [
        ordered(row.expect) for row in of("request") if row.when == when
    ]


def _without_rounds(requests: list[list[object]]) -> list[list[object]]:
    """Without the looks at the network after the last change: each round of the leases begins with one."""
    last = max(at for at, one in enumerate(requests) if one[0] != "Enumerate")
    return requests[: last + 1]


@pytest.mark.parametrize("row", of("file"), ids=lambda row: row.id)
def test_it_writes_the_file_of_its_subnet(row: Row) -> None:
    node = a_node(row.when["mode"])
    uplink = node.machine.network.management()
    assert uplink is not None
    uplink.mtu = row.when["mtu"]

    started(node)

    assert node.read(SUBNET_ENV).split() == row.expect


@pytest.mark.parametrize("row", of("exit"), ids=lambda row: row.id)
def test_it_ends_with_upstreams_code(row: Row) -> None:
    node = Node()
    node.binaries()

    ended = node.run(r"C:\k\flanneld.exe", *row.when)

    assert ended.code == row.expect["code"]
    assert row.expect["says"] in (ended.stdout + ended.stderr).decode()


@pytest.mark.parametrize("row", of("limit"), ids=lambda row: row.id)
def test_it_waits_as_long_as_upstream(row: Row) -> None:
    assert getattr(flanneld, row.when) == row.expect


@pytest.mark.parametrize("row", of("message"), ids=lambda row: row.id)
def test_an_endpoint_without_an_interface_ends_it(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    node = registered()
    monkeypatch.setattr(node.machine.hns, "attach", lambda *_: {})

    started(node)

    assert row.expect in node.log("flanneld")
