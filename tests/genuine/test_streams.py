"""exec, logs and port-forward through a real API server to a kubelet of this test: as SPDY, and as WebSockets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from winboot_lab.cluster.authority import SERVER_AUTH, Subject
from winboot_lab.cluster.streams import Ran

from tests.genuine.conftest import Genuine
from tests.genuine.linux import STRATEGIC
from winboot.base.errors import ClusterError
from winboot.remote.cluster import connect

pytestmark = pytest.mark.genuine
PODS = "/api/v1/namespaces/default/pods"


class Api:
    """What a kubelet answers."""

    def execute(self, pod: Any, command: Any) -> Ran:
        return Ran(3, b"out of " + " ".join(command).encode(), b"an error")

    def log(self, pod: Any) -> str:
        return "one\ntwo\n"

    def forward(self, pod: Any, port: int, request: bytes) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n%d" % (8000 + port)


@pytest.mark.parametrize(
    ("features", "way"),
    [([], "spdy/3.1"), (["ExtendWebSocketsToKubelet"], "websocket")],
    ids=["spdy", "websocket"],
)
def test_a_command_a_log_and_a_port_come_through(genuine: Genuine, features: list[str], way: str) -> None:
    kubelets, name = genuine.kubelets, f"streams-{len(features)}"
    # Its own: the API server keeps connections to a node.
    address = f"10.0.7.{len(features) + 1}"
    assert kubelets is not None
    genuine.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    genuine.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "declaredFeatures": features,
    }
    answer = genuine.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, kind=STRATEGIC)
    assert answer.status_code == 200, answer.text
    spec = {"nodeName": name, "containers": [{"name": "server", "image": "x"}]}
    answer = genuine.ask("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    assert answer.status_code == 201, answer.text
    pair = genuine.authority.issue(
        Subject(f"system:node:{name}", ("system:nodes",), (name,), (address,)), (SERVER_AUTH,)
    )
    kubelets.dial = lambda _: (Api(), pair.certificate + pair.key, lambda: [answer.json()])
    kubelets.asked.clear()

    with connect(genuine.kubeconfig("kubernetes-admin", "system:masters")) as cluster:
        bench = cluster.workbench()
        ran = bench.execute("default", name, ["curl", "x"], timeout=30)
        log = bench.logs("default", name)
        got = bench.forward("default", name, 80, b"GET / HTTP/1.0\r\n\r\n", timeout=30)
        genuine.ask("DELETE", f"/api/v1/nodes/{name}")
        with pytest.raises(ClusterError):
            bench.execute("default", "nobody", ["curl"], timeout=30)

    assert (ran.code, ran.output, ran.errors) == (3, "out of curl x", "an error")
    assert log == "one\ntwo\n"
    assert got.endswith(b"8080")
    ways = Counter((path.split("/")[1], upgrade.lower()) for path, upgrade in kubelets.asked)
    assert ways == {("exec", way): 1, ("containerLogs", ""): 1, ("portForward", "websocket"): 1}
