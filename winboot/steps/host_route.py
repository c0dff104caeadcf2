"""Let the node reach its own pods on an overlay that winboot makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from winboot.spec import NodeSpec
from winboot.steps.step import Step

# Older builds refuse the policy (flannel device_windows.go: "requires Windows 18321.1000.19h1_release or newer").
FIRST_BUILD: Final = 18321


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"network": spec.network.network_name}


def _wanted(spec: NodeSpec) -> bool:
    return spec.network.solution.host_route and spec.machine.build >= FIRST_BUILD


HOST_ROUTE = Step(
    name="host-route",
    why="without it the node does not reach its own pods on an overlay, and the kubelet's probes of them time out",
    inputs=_inputs,
    needs=("pod-network",),
    wanted=_wanted,
)
