"""A lab cluster over TLS on loopback, and winboot's own client against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster import ApiFailure, ClusterServer, LabCluster
from winboot_lab.cluster.identity import ADMIN, Identity, user

from winboot.remote.cluster import Cluster, connect


def kubelet(name: str) -> Identity:
    """The identity of a node's kubelet."""
    return user(f"system:node:{name}", "system:nodes")


@dataclass
class Scene:
    """The lab, its server, and the client under test."""

    lab: LabCluster
    server: ClusterServer
    cluster: Cluster
    kubeconfig: Path

    def ask(self, who: Identity, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """A request to the lab, past TLS."""
        return self.lab.request(who, method, path, body, **rest).body

    def admin(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """A request as the administrator."""
        return self.ask(ADMIN, method, path, body, **rest)

    def join(self, name: str = "win-1", **rest: Any) -> Any:
        """A node registers."""
        return self.ask(kubelet(name), "POST", "/api/v1/nodes", {"metadata": {"name": name}, **rest})

    def make_ready(self, name: str = "win-1", status: str = "True", reason: str = "KubeletReady") -> None:
        """Its kubelet reports."""
        body = {
            "status": {
                "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": reason}]
            }
        }
        content_type = "application/strategic-merge-patch+json"
        self.ask(kubelet(name), "PATCH", f"/api/v1/nodes/{name}/status", body, content_type=content_type)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    lab = LabCluster()
    with ClusterServer(lab) as server:
        kubeconfig = tmp_path / "admin.conf"
        server.write_admin_kubeconfig(kubeconfig)
        with connect(kubeconfig) as cluster:
            yield Scene(lab, server, cluster, kubeconfig)


class Time:
    """A clock that stands still but for waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


# What happens to one request: it gets this answer, or an exception; before it reached the server, or after.
Fault = Callable[[httpx2.Request], httpx2.Response]


@dataclass
class LabTransport(httpx2.BaseTransport):
    """The lab's API without sockets, as one user. `faults` are by the number of the request."""

    lab: LabCluster
    who: Identity = ADMIN
    faults: dict[int, Fault] = field(default_factory=dict)
    # Numbers of requests that are done, and whose answer is lost all the same.
    done_first: frozenset[int] = frozenset()
    asked: list[str] = field(default_factory=list)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        number = len(self.asked)
        self.asked.append(f"{request.method} {request.url.path}")
        if number in self.faults:
            if number in self.done_first:
                self._answer(request)
            return self.faults[number](request)
        return self._answer(request)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        kind = request.headers.get("Content-Type", "application/json")
        body = json.loads(request.content) if request.content else None
        try:
            answer = self.lab.request(
                self.who,
                request.method,
                request.url.path,
                body,
                query=dict(request.url.params),
                content_type=kind,
            )
        except ApiFailure as failure:
            return httpx2.Response(failure.code, json=failure.status())
        return httpx2.Response(answer.code, json=answer.body)


def write_unasked(folder: Path) -> Path:
    """A kubeconfig whose server gets no request: a LabTransport answers."""
    path = folder / "lab.conf"
    # Reading this computer's own CAs takes longer than all the requests of a test.
    server = {"server": "https://10.0.0.10:6443", "insecure-skip-tls-verify": True}
    config = {
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": server}],
        "users": [{"name": "lab", "user": {"token": "t"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    }
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """The same in the test's own folder."""
    return write_unasked(tmp_path)
