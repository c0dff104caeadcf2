"""The lab's CNI plug-ins do what the real ones do, row by row of their contract."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from lab_programs.conftest import Node, conflist
from lab_programs.test_traps import vxlan
from winboot_lab.windows.programs_api import Exit

from lab_contracts.contract import Row, compared
from lab_contracts.requests import ordered, sent
from lab_contracts.test_flanneld import registered, started

ROWS: Final = compared("cni")
BIN: Final = r"C:\opt\cni\bin"
POD: Final = {
    "CNI_CONTAINERID": "c0ffee02",
    "CNI_NETNS": "11111111-2222-3333-4444-555555555555",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": BIN,
}
RUNTIME: Final = {
    "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
    "dns": {"servers": ["10.96.0.10"], "searches": ["svc.cluster.local"]},
}


def of(kind: str) -> list[Row]:
    return [row for row in ROWS if row.kind == kind]


def a_node(kind: str) -> Node:
    """A node whose network stands. Its kubelet has stopped: nothing else asks HNS."""
    if kind == "win-overlay":
        node = vxlan()
    else:
        node = registered()
        started(node)
        node.reserve()
    node.sc("stop", "kubelet")
    # The kubelet's own probe of the network had an address.
    name = "flannel.4096" if kind == "win-overlay" else "cbr0"
    node.machine.files.delete(rf"C:\var\lib\cni\networks\{name}\last_reserved_ip.0")
    return node


def conf(kind: str, **more: Any) -> dict[str, Any]:
    """What flannel.exe hands on, with direct server return."""
    delegate = conflist(type=kind)["plugins"][0]["delegate"]
    name = "cbr0" if kind == "win-bridge" else "flannel.4096"
    own = {"name": name, "cniVersion": "1.0.0", "ipMasq": True, "ipMasqNetwork": "10.244.0.0/16"}
    ipam = {"type": "host-local", "subnet": "10.244.1.0/24"}
    return {**delegate, **own, "ipam": ipam, "loopbackDSR": True, "runtimeConfig": RUNTIME, **more}


def called(node: Node, kind: str, command: str, given: dict[str, Any]) -> Exit:
    environment = {**POD, "CNI_COMMAND": command}
    return node.run(rf"{BIN}\{kind}.exe", env=environment, stdin=json.dumps(given).encode())


def store(node: Node) -> list[str]:
    return sorted(entry.name for entry in node.machine.files.list(r"C:\var\lib\cni\networks\cbr0"))


@pytest.mark.parametrize("when", dict.fromkeys(row.when for row in of("request")))
def test_a_plug_in_sends_what_upstream_sends_and_nothing_else(when: str) -> None:
    kind, command = when.split()[0], "ADD" if "adds" in when else "DEL"
    node = a_node(kind)
    if command == "DEL":
        assert called(node, kind, "ADD", conf(kind)).code == 0
    with sent(node.machine) as requests:
        ended = called(node, kind, command, conf(kind))

    assert ended.code == 0, ended.stdout
    assert [ordered(one) for one in requests] == [
        ordered(row.expect) for row in of("request") if row.when == when
    ]


@pytest.mark.parametrize("row", of("exit"), ids=lambda row: row.id)
@pytest.mark.parametrize("kind", ["flannel", "win-bridge", "win-overlay", "host-local"])
def test_a_plug_in_ends_with_upstreams_code(row: Row, kind: str) -> None:
    node = Node()
    node.binaries()

    ended = node.run(rf"{BIN}\{kind}.exe", env=row.when, stdin=b"{}")

    assert ended.code == row.expect["code"]
    for stream in ("stdout", "stderr"):
        assert row.expect.get(stream, "") in getattr(ended, stream).decode()


def _result(row: Row, node: Node) -> None:
    result = json.loads(called(node, "win-bridge", "ADD", conf("win-bridge")).stdout)

    assert {key: [list(one) for one in result[key]] for key in ("interfaces", "ips")} == {
        key: row.expect[key] for key in ("interfaces", "ips")
    }
    assert list(result["dns"]) == row.expect["dns"]


def _taken(row: Row, node: Node) -> None:
    assert called(node, "win-bridge", "ADD", conf("win-bridge")).code == 0
    assert store(node) == row.expect


def _refused(row: Row, node: Node) -> None:
    node.machine.hns.fail_next(0x803B002F, "No addresses are available.")
    assert called(node, "win-bridge", "ADD", conf("win-bridge")).code == 1
    assert store(node) == row.expect


FILES: Final = {"result-of-a-pod": _result, "folder-of-host-local": _taken, "address-goes-back": _refused}


@pytest.mark.parametrize("row", of("file"), ids=lambda row: row.id)
def test_a_plug_in_leaves_what_upstream_leaves(row: Row) -> None:
    """A KeyError is a row without a comparison."""
    FILES[row.id](row, a_node("win-bridge"))


@pytest.mark.parametrize("row", of("message"), ids=lambda row: row.id)
def test_flannel_hands_on_what_upstream_hands_on(row: Row) -> None:
    node = a_node("win-bridge")
    given = {**conflist()["plugins"][0], "name": "cbr0", "cniVersion": "1.0.0"}

    assert called(node, "flannel", "ADD", given).code == 0

    delegate = json.loads(node.read(r"C:\var\lib\cni\flannel\c0ffee02"))
    assert {key: delegate[key] for key in row.expect} == row.expect
