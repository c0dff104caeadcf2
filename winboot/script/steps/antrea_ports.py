"""Remove what Open vSwitch kept of an earlier start, before Antrea's agent makes its network again."""

from __future__ import annotations

from collections.abc import Mapping

from winboot.config.node_spec import NodeSpec
from winboot.script.steps.step import Step


def _inputs(spec: NodeSpec) -> Mapping[str, object]:
    return {"network": spec.network.network_name}


def _wanted(spec: NodeSpec) -> bool:
    return ANTREA_PORTS.name in spec.network.solution.steps


ANTREA_PORTS = Step(
    name="antrea-ports",
    why="a restart removes Antrea's HNS network, but Open vSwitch keeps its recorded ports, which make Antrea's agent fail",
    inputs=_inputs,
    needs=("containerd", "postboot-task"),
    wanted=_wanted,
)
