"""Tell kube-proxy which network it serves and from which address it answers."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.spec import NodeSpec
from winboot.steps.step import Step
from winboot.steps.texts import json_text, node_kubeconfig_text, source


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"source": source(spec)}


def _files(spec: NodeSpec) -> Mapping[str, str]:
    return {
        spec.paths.kube_proxy_config: json_text(spec.kube_proxy.config),
        spec.paths.kube_proxy_kubeconfig: node_kubeconfig_text(spec, "kube-proxy"),
    }


def kube_proxy_wanted(spec: NodeSpec) -> bool:
    """Whether kube-proxy runs on this node as a service of ours."""
    return spec.kube_proxy.wanted


KUBE_PROXY_CONFIG = Step(
    name="kube-proxy-config",
    why="kube-proxy must name the HNS network, the host's endpoint and the node exactly, or services fail on this node",
    inputs=_inputs,
    needs=("directories", "registration", "ipam-reservations"),
    wanted=kube_proxy_wanted,
    files=_files,
)
