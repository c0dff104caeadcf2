"""A stub kubelet: what it does at the API server when a node joins, each request with its own credential.

It asks for its client certificate with the bootstrap token, registers its Node with the startup taint, and asks for its
serving certificate. It is Ready once that is issued: so a join that approves nothing fails.
"""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any, Final

from winboot_lab.cluster import Credentials, LabCluster
from winboot_lab.cluster.authority import Subject, new_key, request_pem
from winboot_lab.cluster.controllers import CLIENT_SIGNER, SERVING_SIGNER

if TYPE_CHECKING:
    from winboot_lab.wsman.executor import Stop

    from tests.peer.conduct import Facts

CSRS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODES: Final = "/api/v1/nodes"
STRATEGIC: Final = "application/strategic-merge-patch+json"
# How often it looks whether its certificate is there, in seconds.
ASK_AGAIN_S: Final = 0.1


class Kubelet:
    """The kubelet of one machine."""

    def __init__(self, api: LabCluster, taint: dict[str, str]) -> None:
        self._api = api
        self._taint = taint

    def join(self, token: str, facts: Facts, cancelled: Stop) -> None:
        """Become a Ready node. Ends early when the script that started it is stopped."""
        stopped = threading.Event()
        cancelled.then(stopped.set)
        user = Subject(f"system:node:{facts.name}", ("system:nodes",))
        client = self._certificate(Credentials(token=token), user, CLIENT_SIGNER, "client auth", stopped)
        if client is None:
            return
        own = Credentials(certificate=client)
        self._register(own, facts)
        names = Subject(
            user.common_name, user.organizations, dns_names=(facts.name,), addresses=(facts.address,)
        )
        if self._certificate(own, names, SERVING_SIGNER, "server auth", stopped) is not None:
            self._report(own, facts, ready="True")

    def _certificate(
        self, asker: Credentials, subject: Subject, signer: str, usage: str, stopped: threading.Event
    ) -> str | None:
        """Ask for it, and wait until it is issued; None when it was stopped before."""
        pem = request_pem(new_key(), subject)
        spec = {
            "request": base64.b64encode(pem.encode()).decode(),
            "signerName": signer,
            "usages": ["digital signature", usage],
        }
        made = self._ask(asker, "POST", CSRS, {"metadata": {"generateName": "csr-"}, "spec": spec})
        path = f"{CSRS}/{made['metadata']['name']}"
        while not stopped.is_set():
            issued = self._ask(asker, "GET", path).get("status", {}).get("certificate")
            if issued:
                return base64.b64decode(issued).decode()
            stopped.wait(ASK_AGAIN_S)
        return None

    def _register(self, own: Credentials, facts: Facts) -> None:
        labels = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": facts.name}
        status = {
            "addresses": [{"type": "InternalIP", "address": facts.address}],
            "nodeInfo": {
                "systemUUID": facts.uuid,
                "kubeletVersion": f"v{self._api.plan.version}",
                "operatingSystem": "windows",
            },
            "conditions": [_readiness("False")],
        }
        node = {
            "metadata": {"name": facts.name, "labels": labels},
            "spec": {"taints": [self._taint]},
            "status": status,
        }
        self._ask(own, "POST", NODES, node)

    def _report(self, own: Credentials, facts: Facts, *, ready: str) -> None:
        body = {"status": {"conditions": [_readiness(ready)]}}
        self._ask(own, "PATCH", f"{NODES}/{facts.name}/status", body, content_type=STRATEGIC)

    def _ask(
        self,
        who: Credentials,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self._api.request(who, method, path, body, content_type=content_type).body
        return answer


def _readiness(status: str) -> dict[str, str]:
    return {
        "type": "Ready",
        "status": status,
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    }
