"""Clear away what Azure's CNI plugin remembers of pods that a restart has ended."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    # The plugin writes next to the process that calls it: containerd's folder, or the one its scripts use.
    return {"folders": [spec.paths.bin, r"C:\Windows\System32"], "network": spec.network.network_name}


def _wanted(spec: NodeSpec) -> bool:
    return AZURE_STATE.name in spec.network.solution.steps


AZURE_STATE = Step(
    name="azure-state",
    why="after a restart, Azure's CNI plug-in would still use the addresses and endpoints of deleted pods",
    inputs=_inputs,
    needs=("pod-network", "kubelet"),
    wanted=_wanted,
)
