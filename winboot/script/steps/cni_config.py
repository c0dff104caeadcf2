"""Tell containerd how a pod gets its network, once that network is there."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.networks import STEPS_AFTER
from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step
from winboot.script.steps.texts import json_text


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"folder": spec.paths.cni_conf}


def _files(spec: NodeSpec) -> Mapping[str, str]:
    assert spec.network.cni_conf is not None  # `wanted` says so
    return {spec.network.cni_conf_path: json_text(spec.network.cni_conf)}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.cni_conf is not None


CNI_CONFIG = Step(
    name="cni-config",
    why="the node becomes Ready when the CNI configuration exists, so winboot writes it after the pod network",
    inputs=_inputs,
    needs=("registration", "ipam-reservations", "pod-network", *STEPS_AFTER, "operator-network"),
    wanted=_wanted,
    files=_files,
)
