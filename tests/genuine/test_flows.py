"""`winboot verify` in a genuine cluster with lab machines. The cluster admits its objects and makes real endpoint slices.

The real API server's exec, logs and port-forward reach its pods, and real controllers delete them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from winboot_lab.cluster import ApiFailure
from winboot_lab.cluster.kinds import PODS
from winboot_lab.programs.node_api import LinuxApi
from winboot_lab.programs.node_api import dial as dial_node

from tests.genuine.kubelets import Dial
from tests.genuine.linux import ADDRESS, NAME, STRATEGIC, LinuxNode
from tests.genuine.test_genuine import until
from tests.genuine.test_lab_machines import Joined, joined, specs
from winboot import cli
from winboot.operations.verify.flows import IDS
from winboot.remote.manifests import manifest

__all__ = ["joined"]
pytestmark = pytest.mark.genuine
SERVING = r"C:\var\lib\kubelet\pki\kubelet-server-current.pem"


def dialling(joined: Joined, linux: LinuxNode) -> Dial:
    """The network between the API server and the nodes: as the lab's models have it."""
    outside = joined.lab.outside

    def pods_of(node: str) -> list[dict[str, Any]]:
        return [one for one in joined.cluster.objects(PODS) if one["spec"].get("nodeName") == node]

    def dial(address: str) -> Any:
        if address == ADDRESS:
            return LinuxApi(outside.containers()), linux.serving, lambda: pods_of(NAME)
        for name, (machine, _, _) in outside.kubelets.items():
            if machine.network.lan.address == address:
                api = dial_node(outside.containers(), outside.kubelets, name, ADDRESS)
                return api, machine.files.text(SERVING), partial(pods_of, name)
        raise ApiFailure(500, f"dial tcp {address}: no route to host")

    return dial


@pytest.fixture(scope="module")
def cluster(joined: Joined) -> Iterator[Joined]:
    """The joined machines, a Linux node with the DNS, and a way from the API server to the kubelets."""
    genuine = joined.genuine
    assert genuine.kubelets is not None
    genuine.apply(manifest("verifier-anywhere", specs(joined.staged)))
    linux = LinuxNode(genuine)
    linux.start(until)
    genuine.kubelets.dial = dialling(joined, linux)
    # From 1.36 on a kubelet says that it speaks WebSockets itself; to the others the API server speaks SPDY.
    declared = {"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}}
    answer = genuine.ask("PATCH", "/api/v1/nodes/win-2/status", declared, kind=STRATEGIC)
    assert answer.status_code == 200, answer.text
    yield joined
    linux.close()


def verified(
    joined: Joined, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the lines of `winboot verify`."""
    capsys.readouterr()
    code = cli.run(["verify", "-i", str(joined.staged.inventory), "-o", "json", *words])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def flows(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in lines if one["kind"] == "flow"]


def spaces(joined: Joined) -> list[str]:
    found = joined.get("/api/v1/namespaces?labelSelector=winboot.io/verify")["items"]
    return [one["metadata"]["name"] for one in found]


def test_all_flows_pass_and_nothing_is_left(cluster: Joined, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = verified(cluster, capsys)

    rows = flows(lines)
    # The machines' time runs ahead of the cluster's: waits are short in the lab, and the probe says so.
    wrong = [
        one for one in rows if one["state"] not in ("passed", "limitation") and one["flow"] != "node-clock"
    ]
    assert wrong == []
    assert code in (0, 1)
    assert {one["flow"] for one in rows if one["state"] == "passed"} >= set(IDS) - {"egress", "node-clock"}
    assert spaces(cluster) == []
    kubelets = cluster.genuine.kubelets
    assert kubelets is not None
    ways = Counter((path.split("/")[1], upgrade.lower()) for path, upgrade in kubelets.asked)
    assert {("exec", "spdy/3.1"), ("exec", "websocket"), ("portForward", "websocket")} <= ways.keys()


def test_a_kubelet_that_is_not_reached_breaks_the_flows_of_the_api_and_no_other(
    cluster: Joined, capsys: pytest.CaptureFixture[str]
) -> None:
    """The row has the real API server's message; no pod can try the other flows."""
    firewall = cluster.lab.nodes["win-1"].machine.firewall
    kept = firewall.find("winboot-kubelet")
    assert kept is not None
    firewall.remove("winboot-kubelet")
    try:
        code, lines = verified(
            cluster, capsys, "--limit", "win-1", "--flows", "exec,logs,port-forward,node-pod"
        )
    finally:
        firewall.save(kept)

    failed = {one["flow"]: one for one in flows(lines) if one["state"] == "failed"}
    assert code == 1
    assert set(failed) == {"exec", "logs", "port-forward"}
    for one in failed.values():
        assert "error dialing backend" in one["seen"], one
        assert one["cause"] == "the firewall of win-1 blocks port 10250 for the API server"
    assert spaces(cluster) == []


def test_kept_objects_stay_until_a_user_removes_them(
    cluster: Joined, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = verified(cluster, capsys, "--flows", "pod-start", "--keep")
    (kept,) = spaces(cluster)
    again, _ = verified(cluster, capsys, "--flows", "pod-start")

    assert (code, again, spaces(cluster)) == (0, 0, [kept])
    cluster.genuine.ask("DELETE", f"/api/v1/namespaces/{kept}")
    assert until(lambda: not spaces(cluster))
