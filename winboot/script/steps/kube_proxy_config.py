"""Configure kube-proxy: which network it serves, from which address it answers, and its identity.

By default it is the kubelet's certificate: nothing to renew. A credential of its own (`kube_proxy.kubeconfig`) is
taken out of the kubeconfig that the profile names and written on the node below the cluster's own server and CA. The
node compares all of that file but the credential itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.config.networks import STEPS_AFTER
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import json_text, node_kubeconfig_text

KUBECONFIG_SECRET: Final = "kube-proxy-kubeconfig"
USER: Final = "kube-proxy"


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    own: dict[str, object] | None = None
    if spec.kube_proxy.kubeconfig is not None:
        own = {
            "path": spec.paths.kube_proxy_kubeconfig,
            "server": spec.cluster.server,
            "ca_path": spec.paths.cluster_ca,
            "secret": KUBECONFIG_SECRET,
        }
    return {"credential": own}


def _files(spec: NodeSpec) -> Mapping[str, str]:
    files = {spec.paths.kube_proxy_config: json_text(spec.kube_proxy.config)}
    if spec.kube_proxy.kubeconfig is None:
        files[spec.paths.kube_proxy_kubeconfig] = node_kubeconfig_text(spec, USER)
    return files


def _secrets(spec: NodeSpec) -> tuple[str, ...]:
    return () if spec.kube_proxy.kubeconfig is None else (KUBECONFIG_SECRET,)


def kube_proxy_wanted(spec: NodeSpec) -> bool:
    """Whether kube-proxy runs on this node as our own service."""
    return spec.kube_proxy.wanted


KUBE_PROXY_CONFIG = Step(
    name="kube-proxy-config",
    why="services fail on this node unless kube-proxy has the exact names of HNS network, host endpoint and node",
    inputs=_inputs,
    leaves=lambda spec: {
        "files with secrets": [] if spec.kube_proxy.kubeconfig is None else [spec.paths.kube_proxy_kubeconfig]
    },
    needs=(
        "directories",
        "registration",
        "ipam-reservations",
        "pod-network",
        *STEPS_AFTER,
        "operator-network",
    ),
    wanted=kube_proxy_wanted,
    secrets=_secrets,
    files=_files,
)
