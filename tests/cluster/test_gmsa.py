"""What preflight asks a cluster about windows-gmsa, as requests and answers of its API."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from winboot_lab.cluster.authority import Authority

from winboot.remote.cluster.lightkube import LightkubeCluster

PEM = Authority("a webhook").pem
WEBHOOK = {
    "name": "admission-webhook.windows-gmsa.sigs.k8s.io",
    "clientConfig": {"caBundle": base64.b64encode(PEM.encode()).decode()},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
LISTED = {"apiVersion": "v1", "metadata": {}}


class Api(httpx2.BaseTransport):
    """Answers as an API server with windows-gmsa; `filled` is what its webhook does to a pod, `refusal` its error."""

    def __init__(self, *, crd: bool = True, filled: bool = True, refusal: str = "", code: int = 403) -> None:
        self.crd, self.filled, self.refusal, self.code = crd, filled, refusal, code
        self.asked: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.method} {request.url.raw_path.decode()}")
        path = request.url.path
        if path.endswith("/gmsacredentialspecs"):
            items = [{"metadata": {"name": "webapp"}}]
            return (
                httpx2.Response(200, json={**LISTED, "items": items})
                if self.crd
                else httpx2.Response(404, json={})
            )
        if path.endswith("webhookconfigurations"):
            items = [{"metadata": {"name": "gmsa"}, "webhooks": [WEBHOOK]}]
            return httpx2.Response(200, json={**LISTED, "items": items})
        pod: Any = json.loads(request.read())
        if self.refusal:
            status = {
                "kind": "Status",
                "status": "Failure",
                "message": self.refusal,
                "code": self.code,
            }
            return httpx2.Response(self.code, json=status)
        if self.filled:
            pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = "{}"
        return httpx2.Response(201, json=pod)


def test_the_specs_and_the_bundles_of_both_configurations_are_read(kubeconfig: Path) -> None:
    with LightkubeCluster(kubeconfig, transport=Api()) as cluster:
        state = cluster.gmsa()

    assert state.specs == {"webapp"}
    assert state.bundles == {
        "MutatingWebhookConfiguration gmsa": PEM,
        "ValidatingWebhookConfiguration gmsa": PEM,
    }


def test_a_cluster_without_the_crd_has_none(kubeconfig: Path) -> None:
    with LightkubeCluster(kubeconfig, transport=Api(crd=False)) as cluster:
        assert cluster.gmsa().specs is None


@pytest.mark.parametrize(
    ("api", "says"),
    [
        (Api(), ""),
        (Api(filled=False), "no webhook filled it in"),
        (Api(refusal="web is not authorized to use webapp"), "is not authorized to use webapp"),
        (Api(refusal='namespaces "shop" not found', code=404), "not found"),
        (
            Api(refusal="failed calling webhook: context deadline exceeded", code=500),
            "failed calling webhook",
        ),
    ],
)
def test_a_pod_is_tried_and_never_made(kubeconfig: Path, api: Api, says: str) -> None:
    with LightkubeCluster(kubeconfig, transport=api) as cluster:
        found = cluster.try_gmsa("shop", "web", "webapp")

    assert says in found
    assert bool(found) == bool(says)
    posts = [one for one in api.asked if one.startswith("POST")]
    assert posts and all("/namespaces/shop/pods?" in one and "dryRun=All" in one for one in posts)
