"""Register containerd as a service and keep it running."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.containerd_config import runs_containerd
from winboot.script.steps.services import service_table
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {
        "service": service_table(spec, "containerd"),
        "root": spec.paths.containerd_root,
        "pipe": spec.paths.containerd_pipe,
    }


CONTAINERD = Step(
    name="containerd",
    wanted=runs_containerd,
    why="the kubelet starts no pod without a container runtime, and containerd writes a log only if a log file is set",
    inputs=_inputs,
    leaves=lambda spec: {"services": ["containerd"]},
    needs=("containerd-config", "windows-features"),
    identity=False,
)
