"""A fault of the API server does not change what becomes of a join: whatever it is, and at whichever request."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster import ApiFailure, LabCluster
from winboot_lab.cluster.authority import Subject, new_key, request_pem
from winboot_lab.cluster.controllers import SERVING_SIGNER

from tests.cluster.conftest import Fault, LabTransport, Time, kubelet
from winboot.base.errors import (
    ClusterBusy,
    ClusterConflict,
    ClusterError,
    ClusterRefused,
    ClusterUnreachable,
)
from winboot.config.node_spec import Taint
from winboot.remote.cluster.base import ExpectedNode, NodeWish
from winboot.remote.cluster.calls import Patience
from winboot.remote.cluster.lightkube import LightkubeCluster

NODE = "/api/v1/nodes"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STARTING = {"key": "winboot.io/starting", "value": "true", "effect": "NoSchedule"}
WISH = NodeWish({"pool": "windows"}, [Taint("os", "windows", "NoSchedule")])


def answers(code: int, message: str = "not now", **headers: str) -> Fault:
    """The API server's own answer with this status."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.Response(code, json=ApiFailure(code, message).status(), headers=named)

    return answer


def breaks(kind: type[httpx2.TransportError], text: str) -> Fault:
    """A connection that ends in this way."""

    def end(request: httpx2.Request) -> httpx2.Response:
        raise kind(text, request=request)

    return end


def bare(code: int, text: str = "", **headers: str) -> Fault:
    """What a proxy in front answers: no Status, perhaps not even a content type."""
    return lambda request: httpx2.Response(
        code, content=text.encode(), headers={n.replace("_", "-"): v for n, v in headers.items()}
    )


FAULTS: dict[str, Fault] = {
    "429 with Retry-After": answers(429, Retry_After="1"),
    "429 without": answers(429),
    "500": answers(500, "etcdserver: leader changed"),
    "502 of a proxy": bare(502, "<html>Bad Gateway</html>", Content_Type="text/html"),
    "503 without a content type": bare(503),
    "504": answers(504, Retry_After="Mon, 02 Mar 2020 12:00:00 GMT"),
    "connection reset": breaks(httpx2.ReadError, "Connection reset by peer"),
    "no answer in time": breaks(httpx2.ReadTimeout, "timed out"),
    "closed without an answer": breaks(httpx2.RemoteProtocolError, "Server disconnected"),
}


@dataclass
class Join:
    """The cluster's side of a join of win-1, as one sequence of calls, on a lab with a transport that has faults."""

    kubeconfig: Path
    faults: dict[int, Fault] = field(default_factory=dict)
    done_first: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.time = Time()
        start = datetime.now(UTC)
        self.lab = LabCluster(now=lambda: start + timedelta(seconds=self.time.now))
        self.transport = LabTransport(self.lab, faults=self.faults, done_first=self.done_first)
        lab = self.lab
        spec = {"taints": [STARTING]}
        lab.request(kubelet("win-1"), "POST", NODE, {"metadata": {"name": "win-1"}, "spec": spec})
        subject = Subject("system:node:win-1", ("system:nodes",), ("win-1",), ("10.0.1.11",))
        wanted = {
            "request": base64.b64encode(request_pem(new_key(), subject).encode()).decode(),
            "signerName": SERVING_SIGNER,
            "usages": ["digital signature", "server auth"],
        }
        lab.request(kubelet("win-1"), "POST", CSRS, {"metadata": {"name": "csr-1"}, "spec": wanted})
        pod = {"metadata": {"name": "web"}, "spec": {"nodeName": "win-1", "containers": []}}
        lab.request(self.transport.who, "POST", "/api/v1/namespaces/default/pods", pod)

    def run(self) -> dict[str, Any]:
        """The result: everything that a caller receives, and everything that stays in the cluster."""
        expected = ExpectedNode("win-1", addresses=frozenset({"10.0.1.11"}))
        with LightkubeCluster(
            self.kubeconfig, transport=self.transport, wait=self.time.wait, clock=self.time.clock
        ) as cluster:
            told = [
                str(cluster.version()),
                cluster.own_missing_rights(()),
                cluster.cordon("win-1"),
                cluster.drain("win-1", timeout=30, wait=self.time.wait).evicted,
            ]
            token = cluster.mint_token(node="win-1", lifetime=timedelta(hours=1))
            tokens = len(self.secrets())
            approved = self.until(lambda: cluster.settle_requests(expected))
            cluster.forget_token(token.id)
            told += [
                cluster.change_node("win-1", WISH),
                cluster.wait_ready("win-1", timeout=9, wait=self.ready),
            ]
            told += [cluster.lift_taint("win-1", STARTING["key"])]
            told += [
                cluster.uncordon("win-1"),
                cluster.config_map("kube-flannel", "kube-flannel-cfg"),
                len(cluster.nodes()),
            ]
        self.time.wait(1)
        node = self.lab.request(self.transport.who, "GET", f"{NODE}/win-1").body
        node["metadata"] = {
            "labels": node["metadata"]["labels"],
            "annotations": node["metadata"]["annotations"],
        }
        status = self.lab.request(self.transport.who, "GET", f"{CSRS}/csr-1").body["status"]
        facts = told[5]
        told[5] = facts.ready if facts is not None else None  # its version counts every write
        return {
            "told": told,
            "tokens": (tokens, len(self.secrets())),
            "approved": len(approved) <= 1 and "certificate" in status,
            "node": {**node, "status": None},
        }

    def secrets(self) -> list[Any]:
        path = "/api/v1/namespaces/kube-system/secrets"
        query = {"labelSelector": "app.kubernetes.io/managed-by=winboot"}
        return list(self.lab.request(self.transport.who, "GET", path, query=query).body["items"])

    def until(self, look: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Three looks, as the approver's thread has many."""
        found: tuple[Any, ...] = ()
        for _ in range(3):
            try:
                found += look()
            except ClusterUnreachable:
                continue
            finally:
                self.time.wait(1)
        return found

    def ready(self, seconds: float) -> bool:
        """The node becomes Ready while it is waited for."""
        body = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
        kind = "application/strategic-merge-patch+json"
        self.lab.request(kubelet("win-1"), "PATCH", f"{NODE}/win-1/status", body, content_type=kind)
        return self.time.wait(seconds)


def plain(kubeconfig: Path) -> tuple[dict[str, Any], list[str]]:
    """The outcome without a fault, and the requests."""
    join = Join(kubeconfig)
    return join.run(), join.transport.asked


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_any_request_does_not_change_the_outcome(kubeconfig: Path, name: str) -> None:
    wanted, requests = plain(kubeconfig)

    for number, request in enumerate(requests):
        join = Join(kubeconfig, {number: FAULTS[name]})
        assert join.run() == wanted, f"{name} at request {number}, {request}"


@pytest.mark.parametrize("name", ["504", "connection reset"])
def test_a_request_that_was_done_and_not_answered_does_not_change_it_either(
    kubeconfig: Path, name: str
) -> None:
    wanted, requests = plain(kubeconfig)

    for number, request in enumerate(requests):
        join = Join(kubeconfig, {number: FAULTS[name]}, done_first=frozenset({number}))
        assert join.run() == wanted, f"{name} at request {number}, {request}"


def test_a_conflict_at_any_write_does_not_change_the_outcome(kubeconfig: Path) -> None:
    wanted, requests = plain(kubeconfig)
    writes = [
        number for number, request in enumerate(requests) if request.split()[0] in ("PATCH", "POST", "PUT")
    ]

    assert len(writes) > 5
    for number in writes:
        if requests[number].endswith("/eviction"):
            continue  # an eviction has no version to conflict with
        assert Join(kubeconfig, {number: answers(409)}).run() == wanted, requests[number]


def test_a_server_with_retry_after_gets_no_earlier_request(kubeconfig: Path) -> None:
    time_ = Time()
    transport = LabTransport(LabCluster(), faults={0: answers(429, Retry_After="7")})
    with LightkubeCluster(kubeconfig, transport=transport, wait=time_.wait) as cluster:
        cluster.version()

    assert 7 <= time_.now < 8


def test_a_server_that_wants_longer_than_there_is_patience_ends_it_at_once(kubeconfig: Path) -> None:
    time_ = Time()
    transport = LabTransport(LabCluster(), faults={0: answers(503, Retry_After="3600")})
    with (
        LightkubeCluster(kubeconfig, transport=transport, wait=time_.wait) as cluster,
        pytest.raises(ClusterBusy, match=r"cannot answer now \(503\)") as caught,
    ):
        cluster.version()

    assert (time_.now, caught.value.retry_after) == (0, 3600)


def always(fault: Fault, *, start: int = 0) -> dict[int, Fault]:
    return dict.fromkeys(range(start, 2000), fault)


QUICK = Patience(first=0.05, later=0.3)
REFUSED = breaks(httpx2.ConnectError, "Connection refused")


def test_an_address_that_never_answered_is_given_up_sooner(kubeconfig: Path) -> None:
    """Without patience for a first answer the client tries once; it retries a server that has answered before."""
    patience = Patience(first=0.0, later=0.3)

    def asked(answered: bool) -> int:
        transport = LabTransport(LabCluster(), faults=always(REFUSED, start=1 if answered else 0))
        with LightkubeCluster(kubeconfig, transport=transport, patience=patience) as cluster:
            if answered:
                cluster.version()
            before = len(transport.asked)
            with pytest.raises(ClusterUnreachable, match="does not answer"):
                cluster.node("win-1")
            return len(transport.asked) - before

    assert asked(answered=False) == 1 < asked(answered=True)


def test_ctrl_c_ends_the_waiting_for_a_server(kubeconfig: Path) -> None:
    transport = LabTransport(LabCluster(), faults=always(answers(503)))
    with (
        LightkubeCluster(kubeconfig, transport=transport, wait=lambda seconds: True) as cluster,
        pytest.raises(ClusterBusy),
    ):
        cluster.node("win-1")
    assert len(transport.asked) == 2


def test_a_server_that_stays_away_is_the_reason_why_a_node_was_not_seen_ready(kubeconfig: Path) -> None:
    """Not `not Ready`: winboot could not read the Node."""
    time_ = Time()
    transport = LabTransport(LabCluster(), faults=always(REFUSED))
    with (
        LightkubeCluster(kubeconfig, transport=transport, clock=time_.clock) as cluster,
        pytest.raises(ClusterUnreachable),
    ):
        cluster.wait_ready("win-1", timeout=30, wait=time_.wait)

    assert len(transport.asked) == 16


def test_waiting_for_ready_goes_by_the_clock(kubeconfig: Path) -> None:
    """Requests that take long take from the time, too."""
    time_ = Time()

    def slow(request: httpx2.Request) -> httpx2.Response:
        time_.wait(10)
        raise httpx2.ReadTimeout("timed out", request=request)

    transport = LabTransport(LabCluster(), faults=always(slow))
    with (
        LightkubeCluster(kubeconfig, transport=transport, clock=time_.clock) as cluster,
        pytest.raises(ClusterUnreachable),
    ):
        cluster.wait_ready("win-1", timeout=30, wait=time_.wait)

    assert len(transport.asked) == 3


STRANGERS: dict[str, tuple[Fault, str]] = {
    "a web server": (bare(200, "<html>", Content_Type="text/html"), "from Kubernetes"),
    "another API": (lambda request: httpx2.Response(200, json={"status": "ok"}), "from Kubernetes"),
    "a list": (lambda request: httpx2.Response(200, json=[]), "from Kubernetes"),
    "https spoken to by http": (
        bare(400, "Client sent an HTTP request to an HTTPS server.\n"),
        "from Kubernetes",
    ),
    "an error that is no Status": (bare(404, "[]", Content_Type="application/json"), "from Kubernetes"),
    "a redirect to a login page": (bare(302, "", Location="https://login.example.com/"), "from Kubernetes"),
}


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("ask", ["version", "nodes", "server_time"])
def test_a_stranger_at_the_address_is_named_as_such(kubeconfig: Path, name: str, ask: str) -> None:
    fault, problem = STRANGERS[name]
    transport = LabTransport(LabCluster(), faults=always(fault))
    with LightkubeCluster(kubeconfig, transport=transport, patience=QUICK) as cluster:
        if ask == "server_time" and "200" in str(fault(httpx2.Request("GET", "https://x"))):
            return  # any answer has a Date
        with pytest.raises(ClusterError, match=problem) as caught:
            getattr(cluster, ask)()
    assert "server" in caught.value.hint


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "127.0.0.1:1"])
def test_a_server_that_does_not_answer_is_a_cluster_error(kubeconfig: Path, server: str) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("https://10.0.0.10:6443", server))
    with pytest.raises(ClusterError) as caught, LightkubeCluster(kubeconfig, patience=QUICK) as cluster:
        cluster.version()
    assert "server" in caught.value.hint


def test_many_writers_are_waited_out(kubeconfig: Path) -> None:
    """Conflicts pause between tries: five tries within milliseconds once gave up."""
    join = Join(kubeconfig, {number: answers(409) for number in range(1, 12)})
    with LightkubeCluster(kubeconfig, transport=join.transport) as cluster:
        patches = [n for n in range(12) if n % 2]
        join.transport.faults = {n: answers(409) for n in patches}
        start = time.monotonic()
        assert cluster.lift_taint("win-1", STARTING["key"])
        assert time.monotonic() - start > 0.01


def test_an_eviction_that_several_budgets_forbid_is_reported_with_the_reason(kubeconfig: Path) -> None:
    """The API says 500 to that, for as long as the budgets are there."""
    message = (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    join = Join(kubeconfig)
    join.transport.faults = {number: answers(500, message) for number in range(1, 40, 2)}
    time_ = Time()
    with LightkubeCluster(kubeconfig, transport=join.transport, clock=time_.clock) as cluster:
        drained = cluster.drain("win-1", timeout=10, wait=time_.wait)

    assert drained.left == (("default/web", message),)


def test_a_drain_that_ends_without_the_api_server_names_the_pods_it_saw_last(kubeconfig: Path) -> None:
    join = Join(kubeconfig)
    join.transport.faults = {number: answers(503) for number in range(2, 60)}
    time_ = Time()
    with LightkubeCluster(kubeconfig, transport=join.transport, clock=time_.clock) as cluster:
        drained = cluster.drain("win-1", timeout=10, wait=time_.wait)

    assert drained.evicted == ()
    assert [name for name, _ in drained.left] == ["default/web"]
    assert drained.left[0][1].startswith("its present state is unknown: ")


def test_a_refusal_is_no_reason_to_ask_again(kubeconfig: Path) -> None:
    transport = LabTransport(LabCluster(), faults=always(answers(403, "nodes is forbidden")))
    with LightkubeCluster(kubeconfig, transport=transport) as cluster, pytest.raises(ClusterRefused):
        cluster.nodes()
    assert len(transport.asked) == 1


def test_a_conflict_that_never_ends_is_named(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winboot.remote.cluster.lightkube._OVERTAKEN_S", 0.2)
    join = Join(
        kubeconfig, {number: answers(409, "the object has been modified") for number in range(1, 400, 2)}
    )
    with (
        LightkubeCluster(kubeconfig, transport=join.transport) as cluster,
        pytest.raises(ClusterConflict, match="the object has been modified") as caught,
    ):
        cluster.lift_taint("win-1", STARTING["key"])
    assert caught.value.hint
