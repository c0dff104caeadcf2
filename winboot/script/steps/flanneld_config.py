"""Tell flanneld which network it builds, and give it the kubelet's credentials."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import json_text, node_kubeconfig_text


def _files(spec: NodeSpec) -> Mapping[str, str]:
    assert spec.network.net_conf is not None  # `wanted` says so
    paths = spec.network.solution.paths
    return {
        paths["net_conf"]: json_text(spec.network.net_conf),
        paths["flanneld_kubeconfig"]: node_kubeconfig_text(spec, "flanneld"),
    }


def flannel_wanted(spec: NodeSpec) -> bool:
    """Whether flanneld runs on this node as our own service."""
    return FLANNELD_CONFIG.name in spec.network.solution.steps


FLANNELD_CONFIG = Step(
    name="flanneld-config",
    why="flanneld reads its network from a file; the CNI configuration and kube-proxy must use the same network name",
    needs=("directories",),
    wanted=flannel_wanted,
    files=_files,
)
