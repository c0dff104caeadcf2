"""exec, logs and port-forward over real WebSockets: TLS on loopback, both protocol versions, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from winboot_lab.cluster import ApiFailure, streams
from winboot_lab.cluster.streams import Ran

from tests.cluster.conftest import Scene
from winboot.base.errors import ClusterError, ClusterRefused, ClusterUnreachable
from winboot.base.limits import LONGEST_TEXT
from winboot.remote.cluster.workbench import Workbench

LARGE = 70_000  # more than the 64 KiB that a library takes for the end of a message


@dataclass
class Kubelet:
    """A kubelet that answers from here."""

    asked: list[Sequence[str]] = field(default_factory=list)

    def execute(self, pod: Any, command: Sequence[str]) -> Ran:
        self.asked.append(command)
        match command[0]:
            case "fail":
                return Ran(22, b"out", b"err")
            case "large":
                return Ran(0, b"x" * LARGE)
            case "gone":
                raise ApiFailure(500, 'container not found ("server")')
        return Ran(0, " ".join(command).encode())

    def log(self, pod: Any) -> str:
        return "winboot-server 80\n"

    def forward(self, pod: Any, port: int, request: bytes) -> bytes:
        if port != 80:
            raise ApiFailure(500, f"failed to connect to 10.244.1.3:{port}: connection refused")
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def kubelet(scene: Scene) -> Kubelet:
    """A pod on a node whose kubelet answers."""
    made = Kubelet()
    scene.lab.kubelet = lambda node: made
    pod = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "win-1", "containers": [{"name": "server", "image": "i"}]},
    }
    scene.admin("POST", "/api/v1/namespaces/default/pods", pod)
    return made


@pytest.fixture
def bench(scene: Scene) -> Workbench:
    return scene.cluster.workbench()


@pytest.fixture(params=[("v5.channel.k8s.io", "v4.channel.k8s.io"), ("v4.channel.k8s.io",)], ids=["v5", "v4"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the API server speaks: up to 1.29 it knows no v5."""
    monkeypatch.setattr("winboot_lab.cluster.cluster.EXEC", request.param)


@pytest.mark.usefixtures("protocol")
def test_a_command_runs_and_ends_with_its_code_and_both_outputs(bench: Workbench, kubelet: Kubelet) -> None:
    ended = bench.execute("default", "p", ["say", "a b", 'c"d', "e&f"], timeout=10)
    failed = bench.execute("default", "p", ["fail"], timeout=10)

    assert (ended.code, ended.output) == (0, 'say a b c"d e&f')
    assert kubelet.asked[0] == ["say", "a b", 'c"d', "e&f"]
    assert (failed.code, failed.output, failed.errors) == (22, "out", "err")


@pytest.mark.usefixtures("protocol", "kubelet")
def test_an_output_larger_than_a_message_may_be_is_no_broken_connection(bench: Workbench) -> None:
    """It is cut as every text of others is."""
    output = bench.execute("default", "p", ["large"], timeout=10).output

    assert output.endswith(f"({LARGE - LONGEST_TEXT} more characters)")


@pytest.mark.usefixtures("protocol", "kubelet")
def test_a_container_that_is_gone_is_reported_with_the_message_of_the_kubelet(bench: Workbench) -> None:
    with pytest.raises(ClusterError, match="container not found"):
        bench.execute("default", "p", ["gone"], timeout=10)


@pytest.mark.usefixtures("kubelet")
def test_a_log_is_read_and_a_port_is_reached(bench: Workbench) -> None:
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    assert bench.logs("default", "p") == "winboot-server 80\n"
    assert bench.forward("default", "p", 80, request, timeout=10).endswith(b"\r\n\r\nok")


@pytest.mark.usefixtures("kubelet")
def test_a_refusing_port_is_reported_by_the_error_channel(bench: Workbench) -> None:
    with pytest.raises(ClusterError, match="connection refused"):
        bench.forward("default", "p", 81, b"GET / HTTP/1.1\r\n\r\n", timeout=10)


@pytest.mark.usefixtures("kubelet")
def test_an_upgrade_that_is_refused_is_reported_with_what_the_api_server_said(
    scene: Scene, bench: Workbench
) -> None:
    scene.lab.faults.refuse = lambda who, method, path: (
        ApiFailure(403, 'pods "p" is forbidden: cannot create resource "pods/exec"')
        if "exec" in path
        else None
    )

    with pytest.raises(ClusterRefused, match="pods/exec"):
        bench.execute("default", "p", ["say"], timeout=10)


def test_a_pod_that_is_not_there_is_named(bench: Workbench) -> None:
    with pytest.raises(ClusterError, match="not found"):
        bench.execute("default", "nobody", ["say"], timeout=10)


@pytest.mark.usefixtures("kubelet")
def test_a_server_that_hangs_up_in_the_middle_is_no_end_of_the_command(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its output nor its code is taken for whole."""
    monkeypatch.setattr(streams, "status_of", lambda ran: {})
    monkeypatch.setattr("winboot_lab.cluster.server.serve", lambda sock, stream: sock.shutdown(2))

    with pytest.raises(ClusterUnreachable):
        bench.execute("default", "p", ["say"], timeout=10)
