"""Register the kubelet as a service and keep it running."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"service": service_table(spec, "kubelet")}


KUBELET = Step(
    name="kubelet",
    why="the kubelet makes the machine a node; it must run without a logon, restart after a crash, and write a log",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["kubelet"]},
    needs=(
        "kubelet-config",
        "kubelet-credentials",
        "containerd",
        "docker",
        "cri-dockerd",
        "artifacts",
        "firewall-rules",
        "address-guard",
    ),
)
