"""Let the node reach its own pods on an overlay that winboot makes."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"network": spec.network.network_name}


def _wanted(spec: NodeSpec) -> bool:
    # Windows Server 2019 has it with the very update that overlays need. Both came with HNS 9.2 (RemoteSubnetVersion
    # and HostRouteVersion of microsoft/hcsshim hcn/hcnglobals.go; the network of HNS 9.5 in
    # knabben.github.io/2021/0903 has it). flannel's message names 18321, the build of its day.
    return spec.network.solution.host_route


HOST_ROUTE = Step(
    name="host-route",
    why="without this route the node cannot reach its own pods on an overlay, and the kubelet's probes time out",
    inputs=_inputs,
    needs=("pod-network",),
    wanted=_wanted,
)
