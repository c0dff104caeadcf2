"""Give the kubelet a way into the cluster: the cluster's CA, and a token where it has no certificate of its own yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import kubeconfig_text

BOOTSTRAP_TOKEN: Final = "bootstrap-token"
TOKEN_PLACE: Final = "<token>"


def _bootstrap(spec: NodeSpec) -> str:
    return kubeconfig_text(spec, user="kubelet-bootstrap", credential={"token": TOKEN_PLACE})


def credential_table(spec: NodeSpec) -> dict[str, object]:
    """What decides whether the kubelet's client certificate can be used, as Get-CredentialFault takes it."""
    paths = spec.paths
    return {
        "node": spec.node.name,
        "server": spec.cluster.server,
        "kubeconfig": paths.kubeconfig,
        "certificate": paths.kubelet_client_certificate,
        "pki": paths.kubelet_pki,
        "ca_path": paths.cluster_ca,
        "ca_sha256": spec.cluster.ca_sha256,
    }


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    credential = {
        **credential_table(spec),
        "bootstrap_path": spec.paths.bootstrap_kubeconfig,
        "bootstrap_text": _bootstrap(spec),
        "token_place": TOKEN_PLACE,
        "secret": BOOTSTRAP_TOKEN,
    }
    return {"credential": credential}


def _files(spec: NodeSpec) -> Mapping[str, str]:
    return {spec.paths.cluster_ca: spec.cluster.ca_pem}


def _secrets(spec: NodeSpec) -> tuple[str, ...]:
    return (BOOTSTRAP_TOKEN,)


KUBELET_CREDENTIALS = Step(
    name="kubelet-credentials",
    why="the kubelet logs in with a client certificate; a kubelet without a valid one requests it with a short-lived token",
    inputs=_inputs,
    leaves=lambda spec: {
        "files with secrets": [spec.paths.kubeconfig, rf"{spec.paths.kubelet_pki}\kubelet-*"]
    },
    needs=("directories", "computer-name", "adoption"),
    secrets=_secrets,
    files=_files,
)
