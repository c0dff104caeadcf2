"""A lab cluster over TLS on loopback, and winboot's own client against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from winboot_lab.cluster import ClusterServer, LabCluster
from winboot_lab.cluster.identity import ADMIN, Identity, user

from winboot.cluster import Cluster, connect


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
