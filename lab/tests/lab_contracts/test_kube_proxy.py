"""The lab's kube-proxy does what kube-proxy.exe did, row by row of its contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from lab_programs.conftest import PROXY_CONFIG, Node
from lab_programs.test_traps import vxlan
from winboot_lab.programs import kube_proxy

from lab_contracts.contract import Recorded, Row, compared, recordings
from lab_contracts.requests import fields, ordered, sent
from lab_contracts.test_flanneld import registered, started

ROWS: Final = compared("kube-proxy")
SERVICES: Final = "/api/v1/namespaces/{}/services"
SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
REMOTE: Final = "10.244.0.99"


def of(kind: str) -> list[Row]:
    return [row for row in ROWS if row.kind == kind]


def a_node(network: str = "bridge") -> Node:
    """A node before its kube-proxy starts, with direct server return. Its kubelet has stopped: nothing else asks HNS."""
    if network == "overlay":
        node = vxlan()
        winkernel = {"networkName": "flannel.4096", "sourceVip": "10.244.1.200"}
    else:
        node = registered()
        started(node)
        winkernel = {"networkName": "cbr0"}
    node.sc("stop", "kubelet")
    node.file(r"C:\k\kube-proxy.yaml", {**PROXY_CONFIG, "winkernel": {**winkernel, "enableDSR": True}})
    for path in (SERVICES, SLICES):
        for one in node.admin("GET", path.replace("/namespaces/{}", ""))["items"]:
            metadata = one["metadata"]
            node.admin("DELETE", f"{path.format(metadata['namespace'])}/{metadata['name']}")
    return node


def a_service(node: Node, address: str, on: str = "linux-1") -> None:
    """The service of the recording, with one endpoint."""
    ports = [{"port": 80, "targetPort": 8080, "nodePort": 30080}]
    spec = {"clusterIP": "10.96.162.78", "type": "NodePort", "ports": ports}
    node.admin("POST", SERVICES.format("default"), {"metadata": {"name": "web"}, "spec": spec})
    slice_ = {
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "nodeName": on}],
    }
    node.admin("POST", SLICES.format("default"), slice_)


def ran(node: Node) -> list[list[Any]]:
    """What kube-proxy sends until it has nothing more to write."""
    with sent(node.machine) as requests:
        assert node.kube_proxy() == 0
        node.settle(45)
    return requests


def told(node: Node, one: list[Any]) -> str:
    """A request as text, with the host's MAC address by its meaning."""
    uplink = node.machine.network.management()
    assert uplink is not None
    return ordered(one).replace(uplink.mac.replace("-", ":").lower(), "<mac of the host>")


@pytest.mark.parametrize("network", ["bridge", "overlay"])
def test_it_writes_what_upstream_writes_and_nothing_else(network: str) -> None:
    node = a_node(network)
    a_service(node, REMOTE)

    requests = ran(node)

    wanted = [ordered(row.expect) for row in of("request") if row.when == network]
    looks = [one for one in wanted if '"Create"' not in one]
    assert [told(node, one) for one in requests if one[0] == "Create"] == [
        one for one in wanted if '"Create"' in one
    ]
    met = list(dict.fromkeys(told(node, one) for one in requests if one[0] != "Create"))
    assert met == looks or network == "overlay"


@pytest.mark.parametrize(
    "row", [row for row in of("request") if isinstance(row.source, Recorded)], ids=lambda row: row.id
)
def test_a_request_has_the_recorded_fields_in_their_order(row: Row) -> None:
    assert isinstance(row.source, Recorded)
    lines = recordings("kube-proxy")[row.source.recording]
    (line,) = [one for one in lines if row.source.quote in one][:1]
    recorded = json.loads(line)["request"][-1]

    if isinstance(row.expect[-1], dict):
        assert fields(json.loads(recorded)) == fields(row.expect[-1])
    else:
        assert json.loads(line)["request"] == row.expect


def _plain(node: Node) -> None:
    a_service(node, REMOTE)


def _without_the_pod(node: Node) -> None:
    a_service(node, "10.244.1.77", on="win-1")


def _without_an_address(node: Node) -> None:
    node.admin("DELETE", "/api/v1/nodes/win-1")


MOMENTS: Final[dict[str, tuple[str, Callable[[Node], None]]]] = {
    "bridge": ("bridge", _plain),
    "a pod of this node is not in HNS": ("bridge", _without_the_pod),
    "the Node of an overlay has no address": ("overlay", _without_an_address),
}


@pytest.mark.parametrize("row", of("message"), ids=lambda row: row.id)
def test_it_says_what_upstream_says(row: Row) -> None:
    network, happens = MOMENTS[row.when]
    node = a_node(network)
    happens(node)

    ran(node)

    assert row.expect in node.log("kube-proxy")


@pytest.mark.parametrize("row", of("limit"), ids=lambda row: row.id)
def test_it_waits_as_long_as_upstream(row: Row) -> None:
    assert getattr(kube_proxy, row.when) == row.expect
