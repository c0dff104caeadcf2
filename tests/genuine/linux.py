"""A Linux node of a genuine cluster, with the cluster's DNS on it: a stand-in that reports what a well-kept one would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any, Final

from winboot_lab.cluster.authority import SERVER_AUTH, Subject

from tests.genuine.conftest import Genuine

NAME: Final = "control-plane"
ADDRESS: Final = "10.0.0.10"
DNS: Final = "10.96.0.10"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
STRATEGIC: Final = "application/strategic-merge-patch+json"
_FLANNEL: Final = "flannel.alpha.coreos.com"


class LinuxNode:
    """Its kubelet, as far as the API sees it: the Node with its Lease, and the pods that were put on it."""

    def __init__(self, genuine: Genuine) -> None:
        self._genuine = genuine
        self._ended = threading.Event()
        pair = genuine.authority.issue(
            Subject(f"system:node:{NAME}", ("system:nodes",), (NAME,), (ADDRESS,)), (SERVER_AUTH,)
        )
        self.serving = pair.certificate + pair.key
        self.pods = ip_network("10.244.0.0/24")
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self, until: Callable[[Callable[[], Any]], Any]) -> None:
        """Register, wait for the pods' network, and put the cluster's DNS there."""
        annotations = {
            f"{_FLANNEL}/backend-type": "host-gw",
            f"{_FLANNEL}/backend-data": "null",
            f"{_FLANNEL}/kube-subnet-manager": "true",
            f"{_FLANNEL}/public-ip": ADDRESS,
        }
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": NAME}
        metadata = {"name": NAME, "labels": labels, "annotations": annotations}
        self._post("/api/v1/nodes", {"metadata": metadata})
        self._report()
        self._thread.start()
        node = until(lambda: (found := self._get(f"/api/v1/nodes/{NAME}"))["spec"].get("podCIDR") and found)
        self.pods = ip_network(node["spec"]["podCIDR"])
        self._dns(str(self.pods[2]))

    def _dns(self, address: str) -> None:
        name, space = "kube-dns", "kube-system"
        ports = [
            {"name": one, "port": 53, "protocol": protocol}
            for one, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
        ]
        self._post(
            f"/api/v1/namespaces/{space}/services",
            {
                "metadata": {"name": name, "labels": {"k8s-app": "kube-dns"}},
                "spec": {"clusterIP": DNS, "ports": ports},
            },
        )
        self._post(
            f"/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices",
            {
                "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
                "ports": ports,
            },
        )

    def close(self) -> None:
        """The node goes, and its DNS."""
        self._ended.set()
        self._thread.join()
        for path in (
            f"/api/v1/nodes/{NAME}",
            "/api/v1/namespaces/kube-system/services/kube-dns",
            "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns-1",
        ):
            self._genuine.ask("DELETE", path)

    # ---- each second -----------------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._ended.wait(1):
            self._report()
            for pod in self._get(f"/api/v1/pods?fieldSelector=spec.nodeName={NAME}")["items"]:
                self._run(pod)

    def _run(self, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            self._genuine.ask("DELETE", path, {"gracePeriodSeconds": 0})
        elif not pod["status"].get("podIP"):
            status = {
                "phase": "Running",
                "podIP": str(self.pods[20]),
                "podIPs": [{"ip": str(self.pods[20])}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            self._patch(f"{path}/status", {"status": status})

    def _report(self) -> None:
        now = datetime.now(UTC)
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "a stand-in"}
        status = {
            "addresses": [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": NAME}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "conditions": [{**condition, "lastHeartbeatTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}],
        }
        self._patch(f"/api/v1/nodes/{NAME}/status", {"status": status})

    def _get(self, path: str) -> Any:
        return self._genuine.ask("GET", path).json()

    def _post(self, path: str, body: Any) -> None:
        answer = self._genuine.ask("POST", path, body)
        assert answer.status_code == 201, answer.text

    def _patch(self, path: str, body: Any) -> None:
        answer = self._genuine.ask("PATCH", path, body, kind=STRATEGIC)
        assert answer.status_code in (200, 404), answer.text
